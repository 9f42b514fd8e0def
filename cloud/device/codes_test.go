package device_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// list is the next message about codes, and its status's nonce.
func list(t *testing.T, d *devicetest.Device) wire.Codes {
	t.Helper()
	return devicetest.Wait(t, "codes", d.Codes)
}

// ask sends a status with a nonce of its own and gives the answer about codes.
func ask(t *testing.T, d *devicetest.Device, nonce string) wire.Codes {
	t.Helper()
	drain(d)
	d.Status(func(s *wire.Status) { s.Nonce = []byte(nonce) })
	return list(t, d)
}

func generation(w *devicetest.World, d *devicetest.Device) (n uint64) {
	w.Look(func(v cloud.View) error { row, err := v.Device(d.ID); n = row.CodeGeneration; return err })
	return n
}

// A whole list was sent whenever the cloud thought that it was due, so that a
// broker that had kept one could bring dead codes back: nothing distinguished an old
// list from a new one.
func TestWholeListOnlyAnswersAStatusWithANonce(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		c := list(t, d)
		require.Equal(t, []any{uint64(0), uint64(0), uint64(1), 0}, []any{c.From, c.To, c.Generation, len(c.Entries)}, "the empty list of the present generation")
		create(w, "R-1", d.Code, "PK-1")
		for range 2 { // no status is at hand: the cabinet is only made to send one
			c := list(t, d)
			require.Equal(t, wire.Codes{DeviceCode: d.Code, From: 2, To: 2, Entries: c.Entries, Generation: 1, Nonce: c.Nonce}, c)
			require.Equal(t, "nonce-1", string(c.Nonce), "of the newest status: it is no recorded one")
			require.Empty(t, c.Entries)
		}
		drain(d)
		d.Status(func(s *wire.Status) { s.Nonce = nil })
		_, others := drain(d)
		require.Zero(t, others, "without a nonce there is no list")

		c = ask(t, d, "one")
		require.EqualValues(t, 0, c.From)
		require.EqualValues(t, 2, c.To)
		require.EqualValues(t, 1, c.Generation)
		require.Equal(t, "one", string(c.Nonce))
		require.Len(t, c.Entries, 2)
		require.Equal(t, "two", string(ask(t, d, "two").Nonce), "each list names the status that it answers")
		confirm(w, d)
		time.Sleep(30 * time.Second)
		require.Empty(t, d.Codes)

		create(w, "R-2", d.Code, "PK-2")
		c = list(t, d)
		require.EqualValues(t, 2, c.From, "a tail needs no status")
		require.EqualValues(t, 4, c.To)
		require.EqualValues(t, 1, c.Generation)
		require.Equal(t, "nonce-5", string(c.Nonce))
		confirm(w, d)
		require.EqualValues(t, 1, generation(w, d))
	})
}

func TestGenerationCountsUpWheneverNumbersCouldGoBack(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		create(w, "R-1", d.Code, "PK-1")
		confirm(w, d)

		// New secrets: a list that follows the held number is not for this generation.
		_, err := w.Lockers.Configure(context.Background(), d.ID, func(c *wire.Config) error { c.Codes.Passes = 2; return nil })
		require.NoError(t, err)
		require.EqualValues(t, 2, generation(w, d))
		c := list(t, d)
		require.Equal(t, []any{uint64(4), uint64(4), uint64(2), 0}, []any{c.From, c.To, c.Generation, len(c.Entries)}, "the cabinet is made to ask")
		c = ask(t, d, "secrets")
		require.Equal(t, []any{uint64(0), uint64(4), uint64(2), 2}, []any{c.From, c.To, c.Generation, len(c.Entries)})
		require.Equal(t, "secrets", string(c.Nonce))
		confirm(w, d)

		// It holds more than there is.
		d.List = 99
		c = ask(t, d, "ahead")
		require.Equal(t, []any{uint64(0), uint64(4), uint64(3)}, []any{c.From, c.To, c.Generation})
		require.EqualValues(t, 3, ask(t, d, "still ahead").Generation, "once")
		confirm(w, d)

		// The cloud was restored from an older copy.
		d.Generation = 7
		c = ask(t, d, "restored")
		require.Equal(t, []any{uint64(0), uint64(4), uint64(8)}, []any{c.From, c.To, c.Generation})
		confirm(w, d)
		require.EqualValues(t, 8, generation(w, d))

		// It holds the right number of another list.
		d.Generation = 5
		require.Equal(t, uint64(0), ask(t, d, "other").From)
		require.EqualValues(t, 8, generation(w, d))
	})
}

// A loss that the cabinet declares is answered with all that lies inside, also
// when its number is the newest.
func TestDeclaredLossIsAnsweredWithTheWholeList(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ref, door := stored(t, w, d, "R-1", "PK-1")
		confirm(w, d)
		d.Lost, d.Contents = true, map[uint]string{}
		c := ask(t, d, "lost")
		require.EqualValues(t, 0, c.From)
		require.Equal(t, "lost", string(c.Nonce))
		found := false
		for _, e := range c.Entries {
			if e.Kind == wire.CodePickup {
				found = true
				require.Equal(t, ref, e.DeliveryRef)
				require.Equal(t, wire.ActiveNow, e.Active)
				require.Equal(t, []uint{door}, e.Doors)
				require.Equal(t, map[uint][]string{door: {"PK-1"}}, e.Packages)
			}
		}
		require.True(t, found)
		require.Empty(t, d.Faults(), "what was lost is no difference")
	})
}

// A list that a broker withholds is not at the cabinet: its former codes count
// as live, and a rotation is not applied.
func TestRotationIsAppliedOnceAStatusConfirmsItInThePresentGeneration(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		stored(t, w, d, "R-1", "PK-1")
		confirm(w, d)
		rotate := func(answer func()) bool {
			t.Helper()
			done := make(chan bool)
			go func() {
				out, err := w.Lockers.RotatePickupCode(context.Background(), w.Box.ProviderCaller, locker.RotateInput{Delivery: "ref:R-1"})
				require.NoError(t, err)
				done <- out.AppliedOnDevice
			}()
			synctest.Wait()
			answer()
			return <-done
		}
		newest := func() (n uint64) {
			w.Look(func(v cloud.View) error { row, err := v.Device(d.ID); n = row.CodeList; return err })
			return n
		}
		require.False(t, rotate(func() {}), "nothing confirmed it")
		require.False(t, rotate(func() {
			d.Generation, d.List = 0, newest()
			d.Status(nil)
		}), "the number of another generation")
		require.False(t, rotate(func() {
			st := wire.Status{State: wire.Online, Instance: d.Instance, Boot: d.Boot, Count: d.Count + 50, Epoch: d.Epoch, Snapshot: 1, Generation: 1, CodeList: newest()}
			d.Publish("tms/device/"+d.Code+"/status", wire.MustEncode(st))
		}), "a status that is not signed")
		require.True(t, rotate(func() {
			d.Generation, d.List = 1, newest()
			d.Status(nil)
		}))
		unconfirmed := func() int {
			n := 0
			w.Look(func(v cloud.View) error {
				row, err := v.Device(d.ID)
				if err != nil {
					return err
				}
				rows, err := v.CodeRows(d.ID, max(row.ListHeld(), 1), 1000)
				n = len(rows)
				return err
			})
			return n
		}
		require.Zero(t, unconfirmed())
		d.Generation = 0
		d.Status(nil)
		synctest.Wait()
		require.NotZero(t, unconfirmed(), "what was confirmed of another generation is not")
	})
}
