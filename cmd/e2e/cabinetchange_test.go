package e2e

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/protocol/wire"
)

// layout is the cabinet's present layout, as an editor would send it.
func (w *world) layout(cabinet int) (in locker.LayoutInput, out locker.DeviceOutput) {
	w.t.Helper()
	id := w.box.Devices[cabinet].DeviceID
	out, err := w.server().Lockers.FindDevice(context.Background(), w.staff, id)
	require.NoError(w.t, err)
	in = locker.LayoutInput{Device: id, Shelves: []locker.LayoutShelf{{Code: "A"}}}
	for _, g := range out.Device.Grids {
		if g.Column > 0 {
			in.Shelves[0].Grids = append(in.Shelves[0].Grids, locker.LayoutGrid{Door: int(g.Door), Column: g.Column, Row: g.Row, Size: g.Size, PickupEnabled: &g.PickupEnabled})
		}
	}
	return in, out
}

// changeLayout has staff move compartments, make some larger and take one out, which
// they put back later. What is in use is refused.
func (w *world) changeLayout(s step, rnd *rand.Rand) {
	in, out := w.layout(s.cabinet)
	grids := in.Shelves[0].Grids
	if rnd.IntN(2) == 0 {
		rnd.Shuffle(len(grids), func(i, j int) { grids[i].Row, grids[j].Row = grids[j].Row, grids[i].Row })
	}
	grids[rnd.IntN(len(grids))].Row += 10 * rnd.IntN(2)
	whole := slices.Clone(grids)
	if len(grids) == doors && rnd.IntN(2) == 0 {
		at := rnd.IntN(len(grids))
		in.Shelves[0].Grids = slices.Delete(grids, at, at+1)
	}
	in.Version = new(int64(out.Device.ConfigVersion))
	began := time.Now()
	_, err := w.server().Lockers.SetLayout(context.Background(), w.staff, in)
	w.effect("layout", err)
	if err != nil || len(in.Shelves[0].Grids) == doors {
		return
	}
	w.people.Go(func() {
		for { // a compartment that came into use meanwhile keeps its place for now
			time.Sleep(time.Duration(10+rnd.IntN(200)) * time.Second)
			var back uint
			in, out := w.layout(s.cabinet)
			if len(in.Shelves[0].Grids) == doors {
				return
			}
			for _, g := range whole {
				if !slices.ContainsFunc(in.Shelves[0].Grids, func(x locker.LayoutGrid) bool { return x.Door == g.Door }) {
					g.Column, g.Row = 30, 1 // behind all others, whose labels stay
					for _, x := range in.Shelves[0].Grids {
						if x.Column == g.Column {
							g.Row = max(g.Row, x.Row+1)
						}
					}
					in.Shelves[0].Grids = append(in.Shelves[0].Grids, g)
					back = uint(g.Door)
				}
			}
			in.Version = new(int64(out.Device.ConfigVersion))
			again := time.Now()
			_, err := w.server().Lockers.SetLayout(context.Background(), w.staff, in)
			w.effect("layout put back", err)
			if err == nil {
				c := w.cabinets[s.cabinet]
				c.mu.Lock()
				c.removed = append(c.removed, truth.Span{At: began, Until: again, Door: back})
				c.mu.Unlock()
			}
		}
	})
}

// A layout reaches the agent as a configuration of the next version. One that moves a
// compartment that is in use at the cabinet, which the cloud does not know of yet, is
// refused there, staff see why, and it is applied once the compartment is free.
func TestLayoutReachesTheCabinetAndIsRefusedThere(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		in, before := w.layout(0)
		in.Shelves[0].Grids[2].Size = "XL"
		in.Shelves[0].Grids[3].PickupEnabled = new(false)
		_, err := w.cloud.Lockers.SetLayout(t.Context(), w.staff, in)
		require.NoError(t, err)
		w.awaits("layout", time.Minute, func() bool { return c.agent.Loop().State().Config.Version == before.Device.ConfigVersion+1 })
		l := c.agent.Loop().State().Config.Layout
		require.Equal(t, []any{"XL", "A-3", wire.SizeStaff, ""}, []any{l[2].Size, l[2].Label, l[3].Size, l[3].Label})
		require.Empty(t, w.faults())

		// With the network cut a courier brings a parcel; meanwhile staff remove its door.
		x := w.create("R-1", 0, "PK-1")
		held := func() (door uint) {
			_, out := w.layout(0)
			for _, g := range out.Device.Grids {
				if g.State != cloud.GridFree {
					door = g.Door
				}
			}
			return door
		}
		door := held()
		w.awaits("list", time.Minute, func() bool { return c.agent.Loop().State().Meta.CodeList == 2 })
		c.setCut(true)
		require.Equal(t, wire.CodeOK, c.try(*x.DeliveryCode).Outcome)
		_, err = w.cloud.Lockers.Cancel(t.Context(), w.box.ProviderCaller, locker.CancelInput{Delivery: "ref:R-1", Reason: "partner_request"})
		require.NoError(t, err, "the cloud does not know that it is there")
		in, _ = w.layout(0)
		kept := in.Shelves[0].Grids
		in.Shelves[0].Grids = nil
		for _, g := range kept {
			if g.Door != int(door) {
				in.Shelves[0].Grids = append(in.Shelves[0].Grids, g)
			}
		}
		out, err := w.cloud.Lockers.SetLayout(t.Context(), w.staff, in)
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		time.Sleep(10 * time.Second)
		c.setCut(false)
		w.awaits("refusal", 5*time.Minute, func() bool { return w.faults()[cloud.DevConfigRefused] })
		require.Less(t, c.agent.Loop().State().Config.Version, out.Device.ConfigVersion)
		w.delivered("R-1") // what happened at the cabinet stands, removed or not
		_, out = w.layout(0)
		found := false
		for _, g := range out.Device.Grids {
			found = found || g.Door == door && g.State == cloud.GridOccupied
		}
		require.True(t, found, "staff see what lies in the removed compartment")
		code := *w.find("R-1").PickupCode
		a := c.try(code)
		require.Equal(t, wire.CodeOK, a.Outcome)
		require.EqualValues(t, door, a.Doors[0])
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		w.awaits("layout", 30*time.Minute, func() bool { return c.agent.Loop().State().Config.Version == out.Device.ConfigVersion })
		w.awaits("end of the refusal", 5*time.Minute, func() bool {
			got, err := w.cloud.Lockers.FindDevice(t.Context(), w.staff, w.box.Devices[0].DeviceID)
			return err == nil && len(got.Device.Exceptions) == 0 && len(got.Device.Grids) == doors-1
		})
	})
}

// Staff replace a cabinet's hardware with a parcel inside: the new one gets its memory
// back from the cloud, the recipient collects with the code that was sent, and the old
// one, which comes back on line, is refused.
func TestHardwareIsReplacedWithAParcelInside(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		code, door := w.deposited(c, "R-1")
		c.drained()
		ctx, d := t.Context(), &w.box.Devices[0]
		old := d.Enrolled
		_, err := w.cloud.Lockers.ReplaceHardware(ctx, w.staff, locker.ReplaceInput{Device: d.DeviceID, Reason: "water"})
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		require.False(t, w.cloud.Devices.Online(c.code))
		require.Greater(t, c.agent.Link().Counters().Attempts, uint64(3), "it tries to come back")
		c.halt()
		require.NoError(t, os.Rename(c.dir, filepath.Join(w.dir, "old")))

		made, err := w.cloud.Setup.RenewToken(ctx, w.staff, setup.DeviceInput{ID: d.DeviceID})
		require.NoError(t, err)
		secrets, err := w.cloud.Devices.Enrol(ctx, w.cloud.Store, device.Enrolment{Code: d.DeviceCode, Token: made.Enrolment.Token},
			func(ctx context.Context, id cloud.DeviceID, x device.Secrets, decide func(cloud.View) (*cloud.Changes, error)) error {
				return w.cloud.Lockers.Rekey(ctx, id, locker.CodeSecrets{Salt: x.Salt, Key: x.Key, Params: wire.CodeParams{MemoryKiB: 8, Passes: 1}}, decide)
			})
		require.NoError(t, err)
		d.Enrolled = w.cloud.Enrolled(d.DeviceCode, secrets)
		c.start()
		w.ready(c)
		w.awaits("contents", time.Minute, func() bool { return len(c.agent.Loop().State().Deliveries) == 1 })
		fresh, dir := d.Enrolled, c.dir

		// The old hardware comes back, alone: it has no way in.
		c.halt()
		d.Enrolled, c.dir = old, filepath.Join(w.dir, "old")
		c.start()
		time.Sleep(2 * time.Minute)
		require.False(t, w.cloud.Devices.Online(c.code))
		require.Equal(t, cloud.DeliveryDelivered, w.find("R-1").Status)
		c.halt()
		d.Enrolled, c.dir = fresh, dir
		c.start()
		w.ready(c)
		c.setCut(true)
		a := c.try(code)
		require.Equal(t, wire.CodeOK, a.Outcome)
		require.EqualValues(t, door, a.Doors[0])
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		time.Sleep(10 * time.Second)
		c.setCut(false)
		w.awaits("picked up", 5*time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
	})
}
