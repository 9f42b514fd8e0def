package e2e

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	edgelocker "github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// onDisk restarts the cabinet on a store whose commits take a time or fail.
func (c *cabinet) onDisk(disk func() error) {
	c.w.t.Helper()
	c.drained()
	c.halt()
	c.disk = disk
	c.start()
	c.w.ready(c)
}

// A commit is two syncs, one behind the other, of two seconds each. Doors open
// all the same, nothing is taken for late that the boards had reported in time,
// and nothing is lost.
func TestWholeAgentOnADiskWhoseSyncsTakeTwoSeconds(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		var slow atomic.Bool
		var commits atomic.Int64
		c.onDisk(func() error {
			commits.Add(1)
			if slow.Load() {
				time.Sleep(4 * time.Second)
			}
			return nil
		})
		other := w.create("R-2", 0, "PK-3")
		w.listed(c)
		slow.Store(true)

		// From afar, two doors at once.
		w.create("R-1", 0, "PK-1", "PK-2")
		twenty := 20
		began := time.Now()
		out, err := w.cloud.Lockers.OpenDoors(context.Background(), w.box.ProviderCaller, locker.OpenInput{Delivery: "ref:R-1", WaitSeconds: &twenty})
		require.NoError(t, err)
		require.False(t, out.Pending, "the doors open within the command's life")
		require.Less(t, time.Since(began), 20*time.Second)
		for _, x := range out.Opening.Compartments {
			require.True(t, c.sim.OpenAt(x.Door, time.Now()))
		}

		// By a code, while readings of the other opening wait to be written.
		c.close(out)
		began = time.Now()
		a := c.try(*other.DeliveryCode)
		require.Equal(t, wire.CodeOK, a.Outcome)
		require.Less(t, time.Since(began), 15*time.Second, "a page waits twenty")
		time.Sleep(3 * time.Second)
		require.True(t, c.sim.OpenAt(uint(a.Doors[0]), time.Now()), "the intent was durable when it answered")
		time.Sleep(20 * time.Second)
		require.NoError(t, c.sim.CloseDoor(uint(a.Doors[0])))

		// Everything that a noisy day reports meanwhile is kept, in few commits.
		before := commits.Load()
		for range 20 {
			require.NoError(t, c.sim.Force(4))
			time.Sleep(2 * time.Second)
			require.NoError(t, c.sim.CloseDoor(4))
			time.Sleep(2 * time.Second)
		}
		w.delivered("R-1")
		w.delivered("R-2")
		time.Sleep(time.Minute)
		require.Less(t, commits.Load()-before, int64(60))

		slow.Store(false)
		c.drained()
		settled, _ := kept[wire.OpeningSettled](w, wire.KindOpeningSettled)
		require.Len(t, settled, 2)
		for _, s := range settled {
			require.Equal(t, wire.ByDoorClose, s.ConfirmedBy)
			for _, d := range s.Doors {
				require.NotZero(t, d.OpenedAt)
			}
		}
		opened, _ := kept[wire.DoorOpened](w, wire.KindDoorOpened)
		forced, pulses := 0, uint(0)
		for _, o := range opened {
			if o.Door == 4 && o.OpeningID == "" {
				forced++
			}
			pulses = max(pulses, o.Pulses)
		}
		require.Equal(t, 20, forced, "no reading is lost")
		require.EqualValues(t, 1, pulses, "no door was pulsed twice for a reading that waited")
		w.judge(t)
		require.Empty(t, w.faults())
	})
}

// While a commit takes long the page learns that the cabinet is at work.
func TestCabinetSaysThatItIsAtWorkOnASlowDisk(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		var slow atomic.Bool
		c.onDisk(func() error {
			if slow.Load() {
				time.Sleep(4 * time.Second)
			}
			return nil
		})
		d := w.create("R-1", 0, "PK-1")
		w.listed(c)
		require.False(t, c.agent.Loop().Working())
		slow.Store(true)
		done := make(chan edgelocker.Answer, 1)
		go func() { done <- c.try(*d.DeliveryCode) }()
		time.Sleep(3 * time.Second)
		require.True(t, c.agent.Loop().Working())
		require.False(t, c.agent.Loop().Broken())
		require.Equal(t, wire.CodeOK, (<-done).Outcome)
	})
}

// ENOSPC under the whole agent: what is on disk stays, who asks is refused with
// a reason, and what the boards report is written once there is room again.
func TestWholeAgentOnAFullDisk(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		var full atomic.Bool
		c.onDisk(func() error {
			if full.Load() {
				return syscall.ENOSPC
			}
			return nil
		})
		other := w.create("R-2", 0, "PK-2")
		out := w.begin("R-1", "PK-1")
		w.listed(c)
		w.shown("R-1", "open")
		full.Store(true)
		_, err := c.agent.Codes().Type(context.Background(), *other.DeliveryCode, nil)
		require.ErrorIs(t, err, edgelocker.ErrFull, "no new session")
		require.True(t, c.agent.Loop().Full(), "and the page says so")
		require.Len(t, c.agent.Loop().State().Openings, 1)
		asked, err := w.open("R-2")
		require.NoError(t, err)
		require.True(t, asked.Pending, "nobody answers")
		c.close(out)
		time.Sleep(2 * time.Minute)
		require.Equal(t, cloud.DeliveryDoorsOpened, w.find("R-1").Status, "nothing is told that is not on disk")
		_, err = c.agent.Codes().Type(context.Background(), *other.DeliveryCode, nil)
		require.Error(t, err)
		require.False(t, c.sim.OpenAt(2, time.Now()))

		full.Store(false)
		w.delivered("R-1")
		require.False(t, c.agent.Loop().Full())
		c.drained()
		settled, _ := kept[wire.OpeningSettled](w, wire.KindOpeningSettled)
		require.Len(t, settled, 1)
		a := c.try(*other.DeliveryCode)
		require.Equal(t, wire.CodeOK, a.Outcome)
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(uint(a.Doors[0])))
		w.delivered("R-2")
		w.judge(t)
		require.Empty(t, w.faults())

		// A power cut on a full disk: what was acknowledged is there.
		third := w.begin("R-3", "PK-3")
		full.Store(true)
		c.close(third)
		time.Sleep(10 * time.Second)
		c.halt()
		full.Store(false)
		c.start()
		w.ready(c)
		w.delivered("R-3")
	})
}
