package page_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	link "github.com/postern-io/postern/protocol/wire"
)

// The page of a cabinet draws what its boards answered and what a channel test has shown, as
// tables in each language, offers the file, and says what is still to come.
func TestDiagnosesOfACabinet(t *testing.T) {
	r := newRig(t, nil)
	r.signedIn()
	g := r.do("GET", "/console/cabinets/88?tab=diagnosis", nil)
	require.Equal(t, 200, g.status, g.body)
	clean(t, r, g)
	for _, text := range []string{"Look at the boards", "Collect a support bundle", "Test a channel", "Board A", "Download the file", "/api/v1/files/answer/", "Switch bit", "no answer, 0.1 s before", `>1</td>`} {
		require.Contains(t, g.body, text)
	}
	require.NotContains(t, g.body, "{&#34;")

	test, file := r.w.Diagnosed(t, 8, 88, link.CmdChannelTest)
	waiting, _ := r.w.Diagnosed(t, 9, 88, link.CmdSupportBundle)
	waiting.State, waiting.Path, waiting.SizeBytes, waiting.EndedAt = cloud.DiagnosisWaiting, "", 0, time.Time{}
	refused, _ := r.w.Diagnosed(t, 10, 88, link.CmdBoardView)
	refused.State, refused.Note, refused.Path, refused.Reason = cloud.DiagnosisRefused, link.ReasonDiagnosing, "", "<script>alert(1)</script>"
	command := cloud.Command{ID: waiting.CommandID, DeviceID: 88, Kind: waiting.Kind, Body: link.MustEncode(link.Diagnosis{}), IssuedAt: time.Now().UTC().Truncate(time.Millisecond),
		ExpiresAt: time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond), State: cloud.CommandSent}
	r.w.Write(t, cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{test, waiting, refused}}, FileChanges: cloud.FileChanges{Files: []cloud.KeptFile{file}},
		LockerChanges: cloud.LockerChanges{Commands: []cloud.Command{command}}})
	g = r.do("GET", "/console/cabinets/88?tab=diagnosis&of=8", nil)
	for _, text := range []string{"The door opened", "What moved", "120 ms", "Closed again"} {
		require.Contains(t, g.body, text)
	}
	require.NotContains(t, g.body, "wires may be mixed up", "its own switch moved too")
	g = r.do("GET", "/console/cabinets/88?tab=diagnosis&of=9", nil)
	require.Contains(t, g.body, "Running")
	require.Contains(t, g.body, "The answer appears here by itself.")
	require.NotContains(t, g.body, "Download the file")
	g = r.do("GET", "/console/cabinets/88?tab=diagnosis", nil)
	require.Contains(t, g.body, "Refused by the cabinet")
	require.Contains(t, g.body, "another diagnosis runs")
	require.NotContains(t, g.body, "<script>alert")
	require.Equal(t, 200, r.do("GET", "/console/cabinets/88?tab=diagnosis&of=99999", nil).status, "the newest")
	for _, lang := range []string{"de", "fr", "es", "zh-CN", "zh-TW"} {
		g := r.do("GET", "/console/cabinets/88?tab=diagnosis&of=8&lang="+lang, nil)
		require.Equal(t, 200, g.status)
		require.NotContains(t, g.body, "cab.diag", lang)
	}
	g = r.do("GET", "/console/cabinets/88", nil)
	require.Contains(t, g.body, "/console/cabinets/88/test_channel?grid_id=")
	for _, form := range []string{"diagnose?type=board_view", "test_channel"} {
		require.Equal(t, 200, r.do("GET", fmt.Sprint("/console/cabinets/88/", form), nil).status, form)
	}
	require.True(t, strings.Contains(r.do("GET", "/console/cabinets/88/diagnose?type=support_bundle", nil).body, "support_bundle"))
}
