package kiosk

import (
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode/decoder"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/locker"
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
