package kiosk

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"testing"
	"time"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode/decoder"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/internal/browsertest"
	"github.com/postern-io/postern/protocol/wire"
)

func TestReceiptsAreReadAsWhatTheySay(t *testing.T) {
	t.Parallel()
	const plain = "CAB-1\nA-1\n2027-01-15T08:00:00Z\nop_1"
	for _, c := range []struct {
		url      string
		packages []string
		link     bool
		want     string
	}{
		{"https://parcels.example", []string{"PK/1"}, true, "https://parcels.example/track/PK%2F1"},
		{"", []string{"PK/1"}, false, plain},
		{"https://parcels.example", []string{"PK/1", "PK/2"}, false, plain},
		{"https://parcels.example", nil, false, plain},
	} {
		f := &fake{state: newState()}
		at := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
		f.state.Ended["op_1"] = locker.EndedOpening{ID: "op_1", Kind: wire.OpenDeposit, Settled: true, Delivery: "LD-1", Doors: []edge.DoorNumber{7}, At: locker.Instant{Boot: 1, Mono: moment.Mono}}
		f.state.Deliveries["LD-1"] = locker.Delivery{Ref: "LD-1", Doors: map[edge.DoorNumber][]string{7: c.packages}}
		k := newKiosk(f, io.Discard)
		k.cfg.CloudURL = c.url
		k.cfg.Now = func() locker.Now {
			return locker.Now{Boot: 1, Mono: moment.Mono, Offset: at.UnixNano() - moment.Mono, Clock: wire.ClockSynced}
		}
		status, body, _ := call(k, "POST", "/api/receipt", `{"opening_id":"op_1"}`)
		require.Equal(t, 200, status, body)
		var got struct {
			Text string
			Link bool
			Rows []string
		}
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		require.Equal(t, c.link, got.Link)
		bits, err := gozxing.NewBitMatrix(len(got.Rows), len(got.Rows))
		require.NoError(t, err)
		for y, row := range got.Rows {
			for x := range row {
				if row[x] == '1' {
					bits.Set(x, y)
				}
			}
		}
		require.Equal(t, c.want, got.Text)
		read, err := decoder.NewDecoder().DecodeWithoutHint(bits)
		require.NoError(t, err)
		require.Equal(t, c.want, read.GetText(), "another reader reads the symbol")
		status, _, _ = call(k, "POST", "/api/receipt", `{"opening_id":"op_2"}`)
		require.Equal(t, 404, status)
	}
}

// An opening that left and took nothing has no receipt, which is no error of its page's: nothing
// stands in the browser's console of it.
func TestOpeningsWithoutAReceiptAreNoErrors(t *testing.T) {
	t.Parallel()
	f := &fake{state: newState()}
	k := newKiosk(f, io.Discard)
	ended := locker.EndedOpening{ID: "op_1", Kind: wire.OpenStaff, Settled: true, Doors: []edge.DoorNumber{7}, At: locker.Instant{Boot: 1, Mono: moment.Mono}}
	for name, change := range map[string]func(*locker.EndedOpening){
		"of staff":                   func(*locker.EndedOpening) {},
		"the door did not open":      func(e *locker.EndedOpening) { e.Kind, e.Settled, e.Delivery = wire.OpenPickup, false, "LD-1" },
		"nothing was left":           func(e *locker.EndedOpening) { e.Kind, e.Delivery = wire.OpenDeposit, "LD-1" },
		"it was more than a bit ago": func(e *locker.EndedOpening) { e.At.Mono -= int64(time.Hour) },
	} {
		e := ended
		change(&e)
		f.state.Ended["op_1"] = e
		status, body, _ := call(k, "POST", "/api/receipt", `{"opening_id":"op_1"}`)
		require.Equal(t, 204, status, name)
		require.Empty(t, body)
	}
	browser := browsertest.Start(t)
	if browser == nil {
		return
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx, ln) }()
	defer func() { stop(); require.NoError(t, <-done) }()
	x := browser.Open("http://" + ln.Addr().String() + "/")
	x.Await(`document.body.dataset.screen === "start"`)
	f.set(func(s *locker.State) {
		s.Openings = map[string]locker.Opening{"op_2": {ID: "op_2", Kind: wire.OpenStaff, Doors: []locker.OpeningDoor{{Door: 7, Phase: locker.Opened}}}}
	})
	x.Await(`document.body.dataset.screen === "flow"`)
	f.set(func(s *locker.State) {
		s.Openings = map[string]locker.Opening{}
		e := ended
		e.ID = "op_2"
		s.Ended = map[string]locker.EndedOpening{"op_2": e}
	})
	x.Await(`document.body.dataset.screen === "finished" && performance.getEntriesByType("resource").some((e) => e.name.endsWith("/api/receipt"))`)
	var failed []string
	x.Eval(`performance.getEntriesByType("resource").filter((e) => e.responseStatus >= 400).map((e) => e.responseStatus + " " + e.name)`, &failed)
	require.Empty(t, failed)
	require.False(t, x.Has("#receipt"))
}
