package page_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wiring"
)

// The console leads to the page of a connected cabinet, which gives it no second
// code and, in a browser that never saw its commands, names the usual addresses:
// those are the ports that its programs listen on.
func TestAConnectedCabinetIsReachedFromTheConsole(t *testing.T) {
	t.Parallel()
	for _, address := range []string{wiring.ScreenAddress, wiring.SimulatorAddress} { // taken, by its programs or another test
		if ln, err := net.Listen("tcp", address); err == nil {
			defer func() { require.NoError(t, ln.Close()) }()
		}
	}
	w, f := newTrial(t, nil)
	admin := f.enter(w.Emails[cloud.ClientAdmin])
	_, text := f.do(admin, "GET", "/console", nil, nil)
	require.Contains(t, text, `<a href="/setup/cabinet/88">Send a first parcel</a>`)
	_, text = f.do(admin, "GET", "/setup/cabinet/88", nil, nil)
	require.Contains(t, text, `id="send-parcel"`)
	require.NotContains(t, text, `name="renew"`, "an enrolled cabinet takes no code")
	require.NotContains(t, text, `id="command-`, "nothing is to be started")
	r, text := f.do(admin, "GET", parcelPath, nil, nil)
	require.Equal(t, 200, r.StatusCode)
	_, text = f.do(admin, "POST", parcelPath, map[string][]string{"form": {hiddenIn(t, text)}}, nil)
	require.Contains(t, text, `href="http://`+wiring.ScreenAddress+`"`, text)

	_, text = f.do(admin, "GET", "/setup/cabinet/89", nil, nil)
	require.Contains(t, text, `id="command-edge"`, "one that is not connected is started")
	require.NotContains(t, text, `name="renew"`)
	w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{{ID: 990, BusinessID: 42, Code: "NEW-1", Name: "Brand New", Type: "smart_locker", Protocol: "mqtt", CreatedAt: time.Now()}}}})
	_, text = f.do(admin, "GET", "/setup/cabinet/990", nil, nil)
	require.Contains(t, text, `name="renew" value="990"`, "one that never enrolled takes another code")
	staff := f.enter(w.Emails[cloud.ClientEmployee])
	_, text = f.do(staff, "GET", "/console", nil, nil)
	require.NotContains(t, text, "/setup/cabinet/", "who adds no cabinets")
}
