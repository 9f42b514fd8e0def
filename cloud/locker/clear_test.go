package locker_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

func (s *story) clear(c cloud.Caller, door uint) (locker.ClearOutput, error) {
	return s.Lockers.Clear(ctx, c, locker.ClearInput{Device: s.ID, Grid: s.grid(door), Reason: "A technician found it empty"})
}

// Staff declare a compartment empty that holds a deposit: the package is removed,
// its delivery fails, its codes die, and the cabinet is to forget that delivery only.
func TestClearedCompartmentEndsItsDelivery(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		_, err := s.clear(s.staff(), a.Doors[0])
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err), "an opening runs")
		s.settle(a)
		door := a.Doors[0]
		_, err = s.clear(s.stranger(), door)
		require.Equal(s.t, "DEVICE_NOT_FOUND", code(err))
		_, err = s.Lockers.Clear(ctx, s.staff(), locker.ClearInput{Device: s.ID, Grid: 987654, Reason: "x"})
		require.Equal(s.t, "GRID_NOT_FOUND", code(err))
		s.status(cloud.DeliveryDelivered)

		var p cloud.Preview
		seen, err := s.Lockers.Clear(cloud.WithPreview(ctx, &p), s.staff(), locker.ClearInput{Device: s.ID, Grid: s.grid(door), Reason: "x"})
		require.NoError(s.t, err)
		require.Equal(s.t, "PK-1", seen.Cleared[0].TrackingNumber)
		named := false
		for _, e := range p.Effects() {
			named = named || e.Type == "delivery" && e.Name == s.code && e.After["status"] == cloud.DeliveryFailed
		}
		require.True(s.t, named, "%v", p.Effects())
		s.status(cloud.DeliveryDelivered)
		require.Empty(s.t, s.commandKinds())

		for _, seen := range []cloud.DeliveryID{0, s.find().DeliveryID + 1} {
			_, err = s.Lockers.Clear(ctx, s.staff(), locker.ClearInput{Device: s.ID, Grid: s.grid(door), Reason: "x", Seen: &seen})
			require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err), "it holds another than was seen")
			s.status(cloud.DeliveryDelivered)
		}
		held := s.find().DeliveryID
		_, err = s.Lockers.Clear(cloud.WithPreview(ctx, &p), s.staff(), locker.ClearInput{Device: s.ID, Grid: s.grid(door), Reason: "x", Seen: &held})
		require.NoError(s.t, err)

		out, err := s.clear(s.staff(), door)
		require.NoError(s.t, err)
		require.Equal(s.t, []locker.ClearedPackage{{DeliveryID: s.find().DeliveryID, DeliveryNumber: s.code, ReferenceNumber: "R-1", TrackingNumber: "PK-1", Deposited: true, DeliveryEnds: true}}, out.Cleared)
		require.Equal(s.t, cloud.GridFree, out.Grid.State)
		require.Nil(s.t, out.Grid.DeliveryID)
		var b wire.DoorReason
		cmd := s.Command(&b)
		require.Equal(s.t, wire.CmdClear, cmd.Kind)
		require.Equal(s.t, wire.DoorReason{Door: door, Reason: "A technician found it empty", DeliveryRef: s.code}, b)
		require.Equal(s.t, s.cell(door).Version, cmd.Versions[door])

		s.status(cloud.DeliveryFailed)
		require.False(s.t, s.find().PickupCodeActive)
		require.Empty(s.t, s.liveCodes())
		require.Equal(s.t, []string{"PK-1 removed"}, s.orders())
		s.told("doors_opened", "delivered", "delivery_failed")
		s.Look(func(v cloud.View) error {
			rows, err := v.DeviceOrders(s.find().DeliveryID)
			require.Equal(s.t, "anomaly", rows[0].RemovalReason)
			return err
		})
		lines, err := s.Store.ListAudits(ctx, s.staff().Account.BusinessID, 0, 100)
		require.NoError(s.t, err)
		found := 0
		for _, l := range lines {
			if l.Action == "grid_cleared" && l.Actor == "account:2" && strings.Contains(l.Detail, "A technician found it empty") && strings.Contains(l.Detail, s.code) {
				found++
			}
		}
		require.Equal(s.t, 1, found)

		again, err := s.clear(s.staff(), door)
		require.NoError(s.t, err)
		require.Empty(s.t, again.Cleared)
		s.told("doors_opened", "delivered", "delivery_failed")

		// It was there after all, and was collected before the cabinet knew.
		s.pickUp("op_late", 2, nil, door)
		s.status(cloud.DeliveryFailed)
		require.Equal(s.t, []string{"item_missing high"}, s.exceptions())
		require.Equal(s.t, []string{"PK-1 removed"}, s.orders())
	})
}

// Two people clear at once: the parcel is given up once, with one command.
func TestTwoPeopleClearACompartmentAtOnce(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		s.settle(a)
		grid := s.grid(a.Doors[0])
		s.Drop()
		synctest.Wait()
		var all sync.WaitGroup
		var cleared [2]int
		for i := range cleared {
			all.Go(func() {
				out, err := s.Lockers.Clear(ctx, s.staff(), locker.ClearInput{Device: s.ID, Grid: grid, Reason: "Empty"})
				if err == nil {
					cleared[i] = 1 + len(out.Cleared)
				}
			})
		}
		all.Wait()
		require.Equal(s.t, 3, cleared[0]+cleared[1], "both are answered, and one gives the package up")
		require.Equal(s.t, []wire.CommandKind{wire.CmdClear}, s.commandKinds(), "it waits for the cabinet, which is offline")
		s.told("doors_opened", "delivered", "delivery_failed")
	})
}

// A deposit that was not verified: the doubt is resolved, and the package was not
// deposited.
func TestClearedDoubtIsResolved(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		door := a.Doors[0]
		s.Tell(wire.KindExceptionOpened, wire.Exception{ID: "x-1", Type: wire.ExDepositUnverified, Severity: wire.SeverityMedium, Door: door, Evidence: "no door report"})
		s.end(a, wire.EndDepositUnverified)
		require.Equal(s.t, []string{"PK-1 unverified"}, s.orders())
		require.Len(s.t, s.exceptions(), 1)
		out, err := s.clear(s.staff(), door)
		require.NoError(s.t, err)
		require.False(s.t, out.Cleared[0].Deposited)
		require.Equal(s.t, cloud.GridFree, out.Grid.State)
		require.Empty(s.t, s.exceptions())
		require.Equal(s.t, []string{"PK-1 removed"}, s.orders())
		s.status(cloud.DeliveryFailed)
		require.Equal(s.t, "NOT_DEPOSITED", s.find().Packages[0].FailureCode)
		s.Tell(wire.KindExceptionClosed, wire.Exception{ID: "x-1", Type: wire.ExDepositUnverified, Door: door, Evidence: "cleared"})
		require.Empty(s.t, s.exceptions())
	})
}

// The rest of a delivery waits with its code, and an overdue one ends with its
// exception.
func TestClearedPartOfADelivery(t *testing.T) {
	tell(t, 2, nil, func(s *story) {
		a := s.open()
		s.settle(a)
		require.Len(s.t, a.Doors, 2)
		out, err := s.clear(s.staff(), a.Doors[0])
		require.NoError(s.t, err)
		require.False(s.t, out.Cleared[0].DeliveryEnds)
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, []string{"pickup now"}, s.liveCodes()[len(s.liveCodes())-1:])
		_, err = s.Lockers.ExpireDelivery(ctx, s.staff(), locker.EndInput{Delivery: locker.DeliveryKey(s.id()), Reason: "Too long"})
		require.NoError(s.t, err)
		require.Equal(s.t, []string{"overdue low"}, s.exceptions())
		out, err = s.clear(s.staff(), a.Doors[1])
		require.NoError(s.t, err)
		require.True(s.t, out.Cleared[0].DeliveryEnds)
		s.status(cloud.DeliveryFailed)
		require.Empty(s.t, s.exceptions())
		require.Empty(s.t, s.liveCodes())
	})
}

// Of a delivery that was settled in part, staff take out what was deposited: the rest
// is unverified, and its code opens nothing.
func TestClearedDepositLeavesTheUnverifiedRest(t *testing.T) {
	tell(t, 2, nil, func(s *story) {
		a := s.open()
		require.Len(s.t, a.Doors, 2)
		s.settle(a, wire.Deposited, wire.Unverified)
		require.True(s.t, s.find().PickupCodeActive)
		out, err := s.clear(s.staff(), a.Doors[0])
		require.NoError(s.t, err)
		require.False(s.t, out.Cleared[0].DeliveryEnds)
		require.False(s.t, s.find().PickupCodeActive)
		_, err = s.clear(s.staff(), a.Doors[1])
		require.NoError(s.t, err)
		s.status(cloud.DeliveryFailed)
	})
}

// A reservation is no parcel, and a cabinet that is out of service is not commanded.
func TestClearLeavesAReservation(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		door := uint(1)
		for s.cell(door).State != cloud.GridReserved {
			door++
		}
		out, err := s.clear(s.staff(), door)
		require.NoError(s.t, err)
		require.Empty(s.t, out.Cleared)
		require.Equal(s.t, cloud.GridReserved, out.Grid.State)
		require.Empty(s.t, s.commandKinds())
		s.status(cloud.DeliveryCreated)
		time.Sleep(time.Second)
		_, err = s.Lockers.ReportStolen(ctx, s.staff(), locker.StolenInput{Device: s.ID, Reason: "gone"})
		require.NoError(s.t, err)
		_, err = s.clear(s.staff(), door)
		require.Equal(s.t, "DEVICE_DISABLED", code(err))
	})
}

// A deposit that the cabinet had kept is reported after staff found the compartment
// empty: the parcel may be gone, and staff look again. One that was made after the
// clear, or collected before it, is in no doubt.
func TestClearCountsForWhatIsReportedLater(t *testing.T) {
	deposit := func(s *story, door uint) []wire.Raw {
		now := time.Now().UnixNano()
		return []wire.Raw{
			s.Record(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_local", Kind: wire.OpenDeposit, Doors: []uint{door}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code}),
			s.Record(wire.KindOpeningSettled, wire.OpeningSettled{OpeningID: "op_local", ConfirmedBy: wire.ByDoorClose, Doors: []wire.SettledDoor{{Door: door, OpenedAt: now - 9e9, ClosedAt: now - 2e9}},
				Packages: []wire.SettledPackage{{Ref: "PK-1", Door: door, Outcome: wire.Deposited}}}),
		}
	}
	collection := func(s *story, door uint) []wire.Raw {
		return []wire.Raw{
			s.Record(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_pick", Kind: wire.OpenPickup, Doors: []uint{door}, CommandID: wire.LocalCommand, Who: "recipient", DeliveryRef: s.code}),
			s.Record(wire.KindPickupCompleted, wire.PickupCompleted{DeliveryRef: s.code, OpeningID: "op_pick", Doors: []uint{door}, How: "keypad", CodeNumber: 1, ListNumber: 2}),
		}
	}
	wait := func(s *story, d time.Duration) {
		time.Sleep(d)
		s.Mono += int64(d)
	}
	reserved := func(s *story) uint {
		door := uint(1)
		for s.cell(door).State != cloud.GridReserved {
			door++
		}
		return door
	}
	send := func(s *story, raws ...wire.Raw) {
		s.Send(wire.Settlement, raws...)
		synctest.Wait()
	}
	t.Run("deposited before", func(t *testing.T) {
		tell(t, 1, nil, func(s *story) {
			door := reserved(s)
			kept := deposit(s, door)
			wait(s, 5*time.Second)
			out, err := s.clear(s.staff(), door)
			require.NoError(s.t, err)
			require.Empty(s.t, out.Cleared)
			wait(s, 10*time.Second)
			send(s, kept...)
			s.status(cloud.DeliveryDelivered)
			require.Equal(s.t, []string{"item_missing high"}, s.exceptions())
			out, err = s.clear(s.staff(), door)
			require.NoError(s.t, err)
			require.Len(s.t, out.Cleared, 1)
			require.Empty(s.t, s.exceptions())
			s.status(cloud.DeliveryFailed)
		})
	})
	t.Run("deposited after", func(t *testing.T) {
		tell(t, 1, nil, func(s *story) {
			door := reserved(s)
			_, err := s.clear(s.staff(), door)
			require.NoError(s.t, err)
			wait(s, 5*time.Second)
			kept := deposit(s, door)
			wait(s, 10*time.Second)
			send(s, kept...)
			s.status(cloud.DeliveryDelivered)
			require.Empty(s.t, s.exceptions())
		})
	})
	t.Run("collected before", func(t *testing.T) {
		tell(t, 1, nil, func(s *story) {
			door := reserved(s)
			kept := deposit(s, door)
			wait(s, 5*time.Second)
			kept = append(kept, collection(s, door)...)
			wait(s, 5*time.Second)
			_, err := s.clear(s.staff(), door)
			require.NoError(s.t, err)
			wait(s, 10*time.Second)
			send(s, kept[:2]...)
			require.Equal(s.t, []string{"item_missing high"}, s.exceptions())
			send(s, kept[2:]...)
			s.status(cloud.DeliveryPickedUp)
			require.Empty(s.t, s.exceptions())
		})
	})
	t.Run("collected after", func(t *testing.T) {
		tell(t, 1, nil, func(s *story) {
			door := reserved(s)
			kept := deposit(s, door)
			wait(s, 5*time.Second)
			_, err := s.clear(s.staff(), door)
			require.NoError(s.t, err)
			wait(s, 5*time.Second)
			kept = append(kept, collection(s, door)...)
			wait(s, 10*time.Second)
			send(s, kept...)
			s.status(cloud.DeliveryPickedUp)
			require.Equal(s.t, []string{"item_missing high"}, s.exceptions(), "the recipient may have opened an empty compartment")
		})
	})
}
