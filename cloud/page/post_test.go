package page_test

import (
	"fmt"
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// The form of a new cabinet makes a warehouse post as well. Its page gives the line to enrol
// with and the settings to start it by, and no page of it offers doors, boards, a layout or a
// first parcel.
func TestAWarehousePostInTheConsole(t *testing.T) {
	t.Parallel()
	w, f := newTrial(t, nil)
	admin := f.enter(w.Emails[cloud.ClientAdmin])
	_, text := f.do(admin, "GET", "/setup/cabinet", nil, nil)
	require.Contains(t, text, `name="layout" value="scan_post"`)
	add := url.Values{"form": {hiddenIn(t, text)}, "device_name": {"Dock 3"}, "device_code": {"DOCK-3 "}, "layout": {"scan_post"}, "country": {"XX"}}
	r, text := f.do(admin, "POST", "/setup/cabinet", add, nil)
	require.Equal(t, 422, r.StatusCode)
	require.Contains(t, text, `value="scan_post" checked`, "what was chosen stays")
	add.Set("country", "CA")
	r, text = f.do(admin, "POST", "/setup/cabinet", add, nil)
	require.Equal(t, 200, r.StatusCode, text)
	require.Regexp(t, `<code id="enrolment">`+regexp.QuoteMeta(f.base)+` DOCK-3 [0-9A-Z-]+</code>`, text)
	require.Regexp(t, `<code id="command-enrol">[^<]*edge enrol --config configs/edge-post.yaml</code>`, text)
	require.Regexp(t, `<code id="command-edge">[^<]*edge --config configs/edge-post.yaml</code>`, text)
	require.NotContains(t, text, `id="command-simulator"`)
	require.NotContains(t, text, "--line")
	require.NotContains(t, text, "/layout")

	d, err := f.db.FindDeviceByCode(t.Context(), "DOCK-3")
	require.NoError(t, err)
	require.True(t, d.IsPost())
	d.EnrolledAt = d.CreatedAt
	w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}, Sessions: []cloud.Session{{DeviceID: d.ID, Generation: 1, Online: true, ConnectedAt: d.CreatedAt, LastSeenAt: d.CreatedAt}}}})
	_, text = f.do(admin, "GET", fmt.Sprint("/setup/cabinet/", d.ID), nil, nil)
	require.Contains(t, text, `data-connected="yes"`, "a post is ready once it is connected")
	require.Contains(t, text, "It scans labels, and has no doors.")
	require.NotContains(t, text, `id="send-parcel"`)

	here := fmt.Sprint("/console/cabinets/", d.ID)
	for path, want := range map[string]string{here: "Health", here + "?tab=doors": "Health", here + "?tab=diagnosis": "support_bundle", here + "?tab=service": "reboot"} {
		r, text = f.do(admin, "GET", path, nil, nil)
		require.Equal(t, 200, r.StatusCode, path)
		require.Contains(t, text, "Warehouse post", path)
		require.Contains(t, text, want, path)
		for _, no := range []string{here + "/layout", here + "/open", "opening_qr", "test_channel", "board_view", "reset_tries", `id="h-doors"`, `id="h-history"`} {
			require.NotContains(t, text, no, path)
		}
	}
	_, text = f.do(admin, "GET", "/console/cabinets/88", nil, nil)
	for _, has := range []string{"/console/cabinets/88/layout", `id="h-doors"`, "test_channel"} {
		require.Contains(t, text, has, "a cabinet has them")
	}
	for _, path := range []string{here + "/layout", fmt.Sprint("/setup/cabinet/", d.ID, "/parcel")} {
		r, text = f.do(admin, "GET", path, nil, nil)
		require.Equal(t, 409, r.StatusCode, path)
		require.Contains(t, text, "This is a warehouse post: it has no doors", path)
	}
	_, text = f.do(admin, "GET", "/console", nil, nil)
	require.Contains(t, text, `<a href="`+here+`">Dock 3</a>`)
	require.NotContains(t, text, here+"/layout")
	require.NotContains(t, text, "Doors of Dock 3")
}
