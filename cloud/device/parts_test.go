package device_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/protocol/wire"
)

// entries lists n more codes at the device, as so many deliveries would.
func entries(t *testing.T, w *devicetest.World, d *devicetest.Device, n int) (newest uint64) {
	t.Helper()
	return entriesOf(t, w, d, n, 32)
}

// entriesOf are entries with verifiers of size bytes.
func entriesOf(t *testing.T, w *devicetest.World, d *devicetest.Device, n, size int) (newest uint64) {
	t.Helper()
	require.NoError(t, w.Store.Decide(t.Context(), d.ID, func(v cloud.View) (*cloud.Changes, error) {
		row, err := v.Device(d.ID)
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		for range n {
			row.CodeList++
			ch.Codes = append(ch.Codes, cloud.CodeRow{DeviceID: d.ID, CreatedAt: time.Now().UTC(), Entry: wire.CodeEntry{Number: row.CodeList, Op: wire.CodeSet,
				Kind: wire.CodePickup, Verifier: fmt.Appendf(nil, "%0*d", size, row.CodeList), DeliveryRef: fmt.Sprint("LD-", row.CodeList), Doors: []uint{1},
				Packages: map[uint][]string{1: {fmt.Sprint("PK-", row.CodeList)}}, Active: wire.ActiveNow}})
		}
		newest = row.CodeList
		ch.Devices = []cloud.Device{row}
		return ch, nil
	}))
	return newest
}

// The whole list of 2,000 deliveries is more than a message holds. It was cut, and
// a cabinet that had lost its memory took the first piece for all of it.
func TestAWholeListOfManyDeliveriesComesInParts(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		newest := entries(t, w, d, 2000)
		d.Lost = true
		drain(d)
		d.Status(func(s *wire.Status) { s.Nonce = []byte("lost") })
		synctest.Wait()
		var at uint64
		for part := uint(1); ; part++ {
			c := list(t, d)
			require.Equal(t, []any{at, newest, part, uint64(1), "lost"}, []any{c.From, c.End, c.Part, c.Generation, string(c.Nonce)})
			for _, e := range c.Entries {
				require.Greater(t, e.Number, at)
				at = e.Number
			}
			require.Equal(t, at, c.To)
			if at == newest {
				require.Greater(t, part, uint(1))
				break
			}
		}
		require.Empty(t, d.Codes)
		d.List, d.Generation, d.Lost = newest, 1, false
		d.Status(nil)
		time.Sleep(20 * time.Second)
		require.Empty(t, d.Codes, "it is confirmed")
	})
}

// A tail that is more than a message holds, of entries or of bytes, comes in pieces that
// each follow what the device holds by then, were it a single entry.
func TestALongTailComesInPiecesThatStandForThemselves(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"entries": 32, "bytes": 64} {
		t.Run(name, func(t *testing.T) {
			signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
				require.EqualValues(t, 1, entries(t, w, d, 1))
				confirm(w, d)
				newest := entriesOf(t, w, d, 2000, size)
				drain(d)
				for pieces := 0; d.List != newest; pieces++ {
					require.Less(t, pieces, 10)
					c := ask(t, d, fmt.Sprint("at ", d.List))
					require.Equal(t, []any{d.List, uint(0), uint64(0), fmt.Sprint("at ", d.List)}, []any{c.From, c.Part, c.End, string(c.Nonce)})
					require.Equal(t, c.To, c.Entries[len(c.Entries)-1].Number)
					require.Len(t, c.Entries, int(c.To-c.From))
					require.Empty(t, d.Codes)
					d.List = c.To
				}
			})
		})
	}
}

// Before any part is confirmed the device is made to ask anew, as for a list in one
// message, and the parts name that nonce.
func TestPartsThatWereLostAreAskedForAnew(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		newest := entries(t, w, d, 2000)
		require.Equal(t, "one", string(ask(t, d, "one").Nonce))
		drain(d)
		c := list(t, d)
		require.Equal(t, []any{newest, newest, uint(0), "one", 0}, []any{c.From, c.To, c.Part, string(c.Nonce), len(c.Entries)}, "an announcement")
		require.Equal(t, []any{uint(1), "two"}, func() []any { c := ask(t, d, "two"); return []any{c.Part, string(c.Nonce)} }())
	})
}
