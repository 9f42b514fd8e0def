package page_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Staff see what needs them in words, take it and put it off by forms without script;
// the cabinet's page has a drawer for the door, with what is done there.
func TestWorkList(t *testing.T) {
	r := newRig(t, nil)
	r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Exceptions: []cloud.Exception{
		{ID: 9301, BusinessID: 42, DeviceID: 88, GridCode: "A01", Source: "w1", Type: "door_left_open", Severity: "high", Status: "open", OpenedAt: time.Now().Add(-time.Hour)},
		{ID: 9302, BusinessID: r.w.Other.ID, DeviceID: 88, GridCode: "A02", Source: "w2", Type: "item_missing", Severity: "high", Status: "open", OpenedAt: time.Now().Add(-time.Hour)},
	}}})
	g := r.do("GET", "/console/work", nil)
	require.Equal(t, 303, g.status, "without a login")
	r.signedIn()
	g = r.do("GET", "/console/work", nil)
	require.Equal(t, 200, g.status, g.body)
	require.Contains(t, g.body, "Door A01 at")
	require.Contains(t, g.body, "/console/cabinets/88#door-A01")
	require.NotContains(t, g.body, "exception-9302", "of another business")
	send := func(do string, more url.Values) got {
		form := url.Values{"form": {formField.FindStringSubmatch(g.body)[1]}, "item": {"exception-9301"}, "do": {do}}
		for k, v := range more {
			form[k] = v
		}
		return r.do("POST", "/console/work", form)
	}
	require.Equal(t, 303, send("take", nil).status)
	require.Equal(t, 303, send("note", url.Values{"note": {"<b>On my way"}}).status)
	g = r.do("GET", "/console/work?show=mine", nil)
	require.Contains(t, g.body, "sees to it")
	require.Contains(t, g.body, "&lt;b&gt;On my way")
	require.Equal(t, 303, send("snooze", url.Values{"hours": {"1"}}).status)
	require.NotContains(t, r.do("GET", "/console/work", nil).body, "exception-9301")
	require.Contains(t, r.do("GET", "/console/work?show=snoozed", nil).body, "exception-9301")
	require.Equal(t, 404, send("open", nil).status)

	g = r.do("GET", "/console/cabinets/88", nil)
	require.Equal(t, 200, g.status, g.body)
	require.Contains(t, g.body, `id="door-A01"`)
	require.Contains(t, g.body, "/console/cabinets/88/open?grid_ids=8801")
	for _, tab := range []string{"health", "service"} {
		require.Equal(t, 200, r.do("GET", "/console/cabinets/88?tab="+tab, nil).status)
	}
	require.Equal(t, 404, r.do("GET", "/console/cabinets/987654", nil).status)
}
