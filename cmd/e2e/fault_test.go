package e2e

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	simboard "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// Rows of locker-hardware 5, by name, from what physically happens at the simulated
// boards to the exception that the cloud keeps about the compartment, and back to
// resolved. edge/locker has the same table for the cabinet alone, with the rows that
// reach no receiver outside of it.
func TestFaultTable(t *testing.T) {
	ring.SkipUnlessCheck(t, "the same rules by the seeds of the quick ring")
	for _, f := range []struct {
		name string
		typ  string // of the exception, "" none
		// cause makes it happen and gives the door.
		cause func(t *testing.T, w *world, c *cabinet) uint
		mend  func(t *testing.T, w *world, c *cabinet, door uint)
		how   string // of the resolution
		by    string // who closed it, "" anyone
	}{
		{name: "open failed",
			cause: func(t *testing.T, w *world, c *cabinet) uint {
				require.NoError(t, c.sim.Jam(1))
				w.create("R-1", 0, "PK-R-1")
				_, err := w.open("R-1")
				require.Equal(t, "DELIVERY_STATE_CONFLICT", refusal(err))
				w.awaits("another compartment", time.Minute, func() bool { return w.cellOf(c, 1).State == cloud.GridBlocked })
				return 1
			},
			mend: func(t *testing.T, w *world, c *cabinet, door uint) {
				require.NoError(t, c.sim.Free(door))
				out, err := w.open("R-1")
				require.NoError(t, err)
				require.NotEqual(t, door, out.Opening.Compartments[0].Door)
				require.NoError(t, c.sim.PutItem(out.Opening.Compartments[0].Door))
				c.close(out)
				w.delivered("R-1")
			}},
		{name: "opened but not swung",
			cause: func(t *testing.T, w *world, c *cabinet) uint {
				require.NoError(t, c.sim.Inject("A", simboard.Relatch, 1))
				return w.begin("R-1", "PK-R-1").Opening.Compartments[0].Door
			},
			mend: func(t *testing.T, w *world, c *cabinet, door uint) {
				require.Len(t, c.coils(), 2, "one more pulse")
				require.True(t, c.sim.OpenAt(door, time.Now()))
				require.NoError(t, c.sim.PutItem(door))
				require.NoError(t, c.sim.CloseDoor(door))
				w.delivered("R-1")
			}},
		{name: "left open", typ: wire.ExDoorLeftOpen,
			cause: func(t *testing.T, w *world, c *cabinet) uint {
				door := w.collecting(t, c)
				require.NoError(t, c.sim.TakeItem(door))
				time.Sleep(12 * time.Minute) // beyond the session
				return door
			},
			mend: func(t *testing.T, w *world, c *cabinet, door uint) {
				require.NoError(t, c.sim.CloseDoor(door))
				require.Equal(t, cloud.DeliveryPickedUp, w.find("R-1").Status)
			}, how: "door_closed_on_site", by: "device"},
		{name: "forced open", typ: wire.ExDoorLeftOpen,
			cause: func(t *testing.T, w *world, c *cabinet) uint {
				require.NoError(t, c.sim.Force(2))
				time.Sleep(10 * time.Second)
				told, _ := kept[wire.Tamper](w, wire.KindTamper)
				require.Equal(t, []wire.Tamper{{What: wire.TamperDoorForced, Door: 2}}, told)
				return 2
			},
			mend: func(t *testing.T, _ *world, c *cabinet, door uint) { require.NoError(t, c.sim.CloseDoor(door)) },
			how:  "door_closed_on_site", by: "device"},
		{name: "item missing after deposit", typ: wire.ExDepositUnverified,
			cause: func(_ *testing.T, w *world, c *cabinet) uint {
				out := w.begin("R-1", "PK-R-1")
				c.close(out)
				time.Sleep(time.Minute)
				return out.Opening.Compartments[0].Door
			},
			mend: func(t *testing.T, w *world, c *cabinet, door uint) {
				require.Equal(t, cloud.GridOccupied, w.cellOf(c, door).State, "the compartment stays assigned")
				require.NotEqual(t, cloud.DeliveryDelivered, w.find("R-1").Status)
				require.NoError(t, w.confirm("R-1"))
				w.delivered("R-1")
			}},
		{name: "item gone without session", typ: wire.ExItemMissing,
			cause: func(t *testing.T, w *world, c *cabinet) uint {
				_, door := w.stored(t, c)
				require.NoError(t, c.sim.TakeItem(door))
				time.Sleep(time.Minute)
				return door
			},
			mend: func(t *testing.T, w *world, c *cabinet, door uint) {
				cell := w.cellOf(c, door)
				require.Equal(t, cloud.GridOccupied, cell.State, "the compartment is not freed")
				_, err := w.cloud.Lockers.Clear(context.Background(), w.staff, locker.ClearInput{Device: w.box.Devices[0].DeviceID, Grid: cell.GridID, Reason: "empty"})
				require.NoError(t, err)
				w.awaits("free", time.Minute, func() bool { return w.cellOf(c, door).State == cloud.GridFree })
			}},
		{name: "item left after pickup",
			cause: func(t *testing.T, w *world, c *cabinet) uint {
				door := w.collecting(t, c)
				require.NoError(t, c.sim.CloseDoor(door))
				time.Sleep(time.Minute)
				return door
			},
			mend: func(t *testing.T, w *world, c *cabinet, door uint) {
				require.Equal(t, cloud.DeliveryDelivered, w.find("R-1").Status, "it stays occupied")
				a := c.try(*w.find("R-1").PickupCode)
				require.Equal(t, wire.CodeOK, a.Outcome, "the code works")
				time.Sleep(3 * time.Second)
				require.NoError(t, c.sim.TakeItem(door))
				require.NoError(t, c.sim.CloseDoor(door))
				w.awaits("collected", time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
			}},
		{name: "board offline",
			cause: func(t *testing.T, w *world, c *cabinet) uint {
				w.create("R-1", 0, "PK-R-1")
				c.sim.PowerOff()
				time.Sleep(30 * time.Second)
				_, err := w.open("R-1")
				require.Error(t, err, "no new session there")
				return 1
			},
			mend: func(t *testing.T, w *world, c *cabinet, _ uint) {
				c.sim.PowerOn()
				time.Sleep(30 * time.Second)
				out, err := w.open("R-1")
				require.NoError(t, err)
				require.NoError(t, c.sim.PutItem(out.Opening.Compartments[0].Door))
				c.close(out)
				w.delivered("R-1")
			}},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 7, 1) // item sensors are wired
				defer w.close()
				c := w.cabinets[0]
				require.True(t, c.sensors)
				w.ready(c)
				door := f.cause(t, w, c)
				rows := w.exceptions()
				if f.typ == "" {
					require.Empty(t, rows)
				} else {
					require.Len(t, rows, 1)
					require.Equal(t, []string{f.typ, "open", w.cellOf(c, door).GridCode}, []string{rows[0].Type, rows[0].Status, rows[0].GridCode})
				}
				f.mend(t, w, c, door)
				time.Sleep(time.Minute)
				for _, e := range w.exceptions() {
					require.Equal(t, "resolved", e.Status, "%s: %s", e.Type, e.Note)
					require.NotEmpty(t, e.Resolution)
					require.NotEmpty(t, e.ClosedBy)
					if f.how != "" {
						require.Equal(t, []string{f.how, f.by}, []string{e.Resolution, e.ClosedBy})
					}
				}
				require.Len(t, w.exceptions(), len(rows), "and no other one")
				require.Empty(t, c.agent.Loop().State().Exceptions, "nor at the cabinet")
			})
		})
	}
}

// exceptions are those of all compartments, as the cloud keeps them.
func (w *world) exceptions() []cloud.Exception {
	w.t.Helper()
	rows, err := w.cloud.Store.ListExceptions(context.Background(), w.box.ProviderCaller.Account.BusinessID, "", 0, 100)
	require.NoError(w.t, err)
	return rows
}

// stored is a deposit that the item sensor sees; it gives the pickup code and the
// door.
func (w *world) stored(t *testing.T, c *cabinet) (code string, door uint) {
	out := w.begin("R-1", "PK-R-1")
	door = out.Opening.Compartments[0].Door
	require.NoError(t, c.sim.PutItem(door))
	c.close(out)
	w.delivered("R-1")
	w.listed(c)
	time.Sleep(time.Minute)
	return *out.PickupCode, door
}

// collecting is a recipient at the open door of a stored parcel.
func (w *world) collecting(t *testing.T, c *cabinet) (door uint) {
	code, door := w.stored(t, c)
	require.Equal(t, wire.CodeOK, c.try(code).Outcome)
	time.Sleep(3 * time.Second)
	require.True(t, c.sim.OpenAt(door, time.Now()))
	return door
}
