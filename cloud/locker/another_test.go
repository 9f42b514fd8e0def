package locker_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// door is the compartment that is kept for R-1.
func (s *story) door() uint {
	s.t.Helper()
	for n := uint(1); n <= devicetest.Doors; n++ {
		if c := s.cell(n); c.DeliveryID != 0 {
			return n
		}
	}
	s.t.Fatal("no compartment is kept")
	return 0
}

// takeLarger is a courier who opens R-1's compartment by the code and takes another one.
func (s *story) takeLarger(from, to uint) {
	s.t.Helper()
	s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_1", Kind: wire.OpenDeposit, Doors: []uint{from}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
	s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: "op_1", Door: from})
	s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_2", Kind: wire.OpenReassign, Doors: []uint{to}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
}

// A courier's parcel does not fit: what the cabinet gave in its place is what the cloud
// keeps, lists and shows, and the former compartment is free.
func TestALargerCompartmentAtTheCabinet(t *testing.T) {
	t.Parallel()
	f := func(name string, does func(s *story, from, to uint)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(t, 1, slog.New(slog.DiscardHandler), func(s *story) {
				from := s.door()
				to := from + 1
				does(s, from, to)
			})
		})
	}
	second := func(to uint) asked {
		return asked{OpenDoors: wire.OpenDoors{OpeningID: "op_2", Doors: []uint{to}, Packages: map[uint][]string{to: {"PK-1"}}}}
	}
	f("deposited there", func(s *story, from, to uint) {
		s.takeLarger(from, to)
		require.Equal(s.t, s.cell(to).GridID, *s.find().Packages[0].GridID)
		require.Equal(s.t, cloud.GridReserved, s.cell(to).State)
		require.NotEqual(s.t, cloud.GridFree, s.cell(from).State, "its door is open")
		s.end(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_1"}}, wire.EndCancelled)
		require.Equal(s.t, cloud.GridFree, s.cell(from).State)
		s.settle(second(to))
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, cloud.GridOccupied, s.cell(to).State)
		require.Contains(s.t, s.liveCodes(), "pickup now")
		require.Empty(s.t, s.exceptions())
	})
	f("deposited before the former door is closed", func(s *story, from, to uint) {
		s.takeLarger(from, to)
		s.settle(second(to))
		s.status(cloud.DeliveryDelivered)
		s.end(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_1"}}, wire.EndCancelled)
		require.Equal(s.t, cloud.GridFree, s.cell(from).State)
		require.Equal(s.t, cloud.GridOccupied, s.cell(to).State)
		require.Empty(s.t, s.exceptions())
	})
	f("the larger one does not open", func(s *story, from, to uint) {
		s.takeLarger(from, to)
		s.end(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_1"}}, wire.EndCancelled)
		s.end(second(to), wire.EndOpenFailed)
		require.Equal(s.t, cloud.GridBlocked, s.cell(to).State)
		now := s.door()
		require.NotEqual(s.t, to, now)
		require.Equal(s.t, cloud.GridReserved, s.cell(now).State, "another one is kept for it")
		require.Equal(s.t, s.cell(now).GridID, *s.find().Packages[0].GridID)
	})
	f("it was reserved for another delivery, of which the cabinet had no word", func(s *story, from, to uint) {
		for s.cell(to).State != cloud.GridReserved {
			_, err := s.Lockers.Create(ctx, s.Box.ProviderCaller, locker.CreateInput{ReferenceNumber: "R-2", DeviceID: s.ID,
				Recipient: cloud.Recipient{Name: "Jo Doe", Phone: "+14165550124"}, Packages: []locker.PackageInput{{TrackingNumber: "PK-9", Size: "M"}}})
			require.NoError(s.t, err)
			time.Sleep(time.Second)
		}
		s.takeLarger(from, to)
		s.settle(second(to))
		s.end(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_1"}}, wire.EndCancelled)
		s.status(cloud.DeliveryDelivered)
		out, err := s.Lockers.Find(ctx, s.Box.ProviderCaller, "ref:R-2")
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.DeliveryCreated, out.Delivery.Status)
		require.NotNil(s.t, out.Delivery.Packages[0].GridID, "it is given another one")
		require.NotEqual(s.t, s.cell(to).GridID, *out.Delivery.Packages[0].GridID)
		require.Equal(s.t, cloud.GridOccupied, s.cell(to).State)
	})
}

// leave is a courier who has R-1's compartment open and has it blocked; to is the other one that
// they take, 0 for none.
func (s *story) leave(from, to uint, reason string) {
	s.t.Helper()
	s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_1", Kind: wire.OpenDeposit, Doors: []uint{from}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
	s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: "op_1", Door: from})
	if to != 0 {
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_2", Kind: wire.OpenReassign, Doors: []uint{to}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code,
			Packages: map[uint][]string{to: {"PK-1"}}})
	}
	s.Tell(wire.KindCompartmentBlocked, wire.CompartmentBlocked{BlockID: "blk_1", Door: from, Reason: reason, OpeningID: "op_1", Who: "courier"})
}

func TestACompartmentThatACourierHadBlocked(t *testing.T) {
	t.Parallel()
	f := func(name string, does func(s *story, from, to uint)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(t, 1, slog.New(slog.DiscardHandler), func(s *story) {
				from := s.door()
				does(s, from, from+1)
			})
		})
	}
	unblock := func(s *story, door uint) {
		s.t.Helper()
		_, err := s.Lockers.Unblock(ctx, s.Box.AdminCaller, locker.UnblockInput{Device: s.ID, Grid: s.cell(door).GridID, Reason: "cleaned"})
		require.NoError(s.t, err)
	}
	f("another one is taken", func(s *story, from, to uint) {
		s.leave(from, to, wire.BlockDirty)
		require.Equal(s.t, []string{cloud.GridBlocked, wire.BlockDirty}, []string{s.cell(from).State, s.cell(from).BlockReason})
		require.Zero(s.t, s.cell(from).DeliveryID)
		require.Contains(s.t, s.Faults()[cloud.DevCompartmentBlocked].Detail, ": dirty")
		var items []cloud.WorkItem
		s.Look(func(v cloud.View) (err error) {
			items, _, err = v.WorkItems(cloud.WorkFilter{BusinessID: s.Box.AdminCaller.Account.BusinessID, Now: time.Now(), Limit: 50})
			return err
		})
		at := slices.IndexFunc(items, func(x cloud.WorkItem) bool { return x.Type == cloud.DevCompartmentBlocked })
		require.GreaterOrEqual(s.t, at, 0)
		require.Equal(s.t, s.cell(from).Name(), items[at].Door, "the door by its name")
		s.end(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_1"}}, wire.EndCancelled)
		require.Equal(s.t, cloud.GridBlocked, s.cell(from).State)
		s.settle(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_2", Doors: []uint{to}, Packages: map[uint][]string{to: {"PK-1"}}}})
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, cloud.GridOccupied, s.cell(to).State)
		history, err := s.Lockers.ListDoorHistory(ctx, s.Box.AdminCaller, locker.HistoryInput{Device: s.ID})
		require.NoError(s.t, err)
		found := ""
		for _, l := range history.Reports {
			if l.OpeningID == "op_1" {
				found = *l.Doors[0].Error
			}
		}
		require.Equal(s.t, wire.BlockDirty, found, "in the history of the door")

		unblock(s, from)
		require.Equal(s.t, cloud.GridFree, s.cell(from).State)
		require.NotContains(s.t, s.Faults(), cloud.DevCompartmentBlocked)
		s.Tell(wire.KindCompartmentBlocked, wire.CompartmentBlocked{BlockID: "blk_1", Door: from, Reason: wire.BlockDirty, OpeningID: "op_1", Who: "courier"})
		require.Equal(s.t, cloud.GridFree, s.cell(from).State, "a repeat in another epoch blocks nothing again")
	})
	f("no other one is free", func(s *story, from, _ uint) {
		s.leave(from, 0, wire.BlockOccupied)
		s.end(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_1"}}, wire.EndCancelled)
		require.Equal(s.t, cloud.GridBlocked, s.cell(from).State)
		s.status(cloud.DeliveryDoorsOpened)
		now := s.door()
		require.NotEqual(s.t, from, now)
		require.Equal(s.t, cloud.GridReserved, s.cell(now).State, "the cloud knows one")
		require.Contains(s.t, s.liveCodes(), "delivery now")
		again := asked{OpenDoors: wire.OpenDoors{OpeningID: "op_3", Doors: []uint{now}, Packages: map[uint][]string{now: {"PK-1"}}}}
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_3", Kind: wire.OpenDeposit, Doors: []uint{now}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
		s.settle(again)
		s.status(cloud.DeliveryDelivered)
	})
	f("an order to unblock it is on its way", func(s *story, _, to uint) {
		_, err := s.Lockers.Block(ctx, s.Box.AdminCaller, locker.BlockInput{Device: s.ID, Grid: s.cell(to).GridID, Reason: "look"})
		require.NoError(s.t, err)
		unblock(s, to)
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_0", Kind: wire.OpenReassign, Doors: []uint{to}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
		s.Tell(wire.KindCompartmentBlocked, wire.CompartmentBlocked{BlockID: "blk_0", Door: to, Reason: wire.BlockBroken, OpeningID: "op_0", Who: "courier"})
		var orders []cloud.Command
		require.NoError(s.t, s.Store.Look(ctx, func(v cloud.View) (err error) { orders, err = v.OpenCommands(s.ID); return err }))
		last := orders[len(orders)-1]
		require.Equal(s.t, wire.CmdBlock, last.Kind)
		require.Equal(s.t, s.cell(to).Version, last.Versions[to], "the newest of all counts")
		require.Equal(s.t, cloud.GridBlocked, s.cell(to).State)
	})
	f("what is no block of this cabinet", func(s *story, from, _ uint) {
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_1", Kind: wire.OpenDeposit, Doors: []uint{from}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
		for _, b := range []wire.CompartmentBlocked{
			{BlockID: "", Door: from, Reason: wire.BlockDirty, OpeningID: "op_1"},
			{BlockID: "b", Door: from, Reason: "ugly", OpeningID: "op_1"},
			{BlockID: "b", Door: from + 1, Reason: wire.BlockDirty, OpeningID: "op_1"},
			{BlockID: "b", Door: 99, Reason: wire.BlockDirty, OpeningID: "op_1"},
			{BlockID: "b", Door: from, Reason: wire.BlockDirty, OpeningID: "op_x"},
			{BlockID: "b", Door: from, Reason: wire.BlockDirty},
		} {
			s.Tell(wire.KindCompartmentBlocked, b)
			require.NotEqual(s.t, cloud.GridBlocked, s.cell(from).State)
		}
	})
}

// One of two compartments is left for another; the other one is closed over its parcel before or
// after the former opening ends.
func TestOneOfTwoCompartmentsIsLeft(t *testing.T) {
	t.Parallel()
	for _, endsFirst := range []bool{false, true} {
		tell(t, 2, slog.New(slog.DiscardHandler), func(s *story) {
			doors := []uint{}
			for n := uint(1); n <= devicetest.Doors; n++ {
				if s.cell(n).DeliveryID != 0 {
					doors = append(doors, n)
				}
			}
			require.Len(t, doors, 2)
			stays, left := doors[0], doors[1]
			to := left + 1
			s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_1", Kind: wire.OpenDeposit, Doors: doors, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
			s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: "op_1", Door: stays})
			s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: "op_1", Door: left})
			s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_2", Kind: wire.OpenReassign, Doors: []uint{stays, to}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code,
				Packages: map[uint][]string{stays: {"PK-1"}, to: {"PK-2"}}})
			end := func() { s.end(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_1"}}, wire.EndCancelled) }
			if endsFirst {
				end()
				require.Equal(t, cloud.GridReserved, s.cell(stays).State, "it belongs to the other opening now")
			}
			s.settle(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_2", Doors: []uint{stays, to}, Packages: map[uint][]string{stays: {"PK-1"}, to: {"PK-2"}}}})
			if !endsFirst {
				end()
			}
			s.status(cloud.DeliveryDelivered)
			require.Equal(t, []string{cloud.GridOccupied, cloud.GridFree, cloud.GridOccupied}, []string{s.cell(stays).State, s.cell(left).State, s.cell(to).State})
			require.Empty(t, s.exceptions())
		})
	}
}

// A courier who has two compartments open takes one of them over with a third; the former opening
// is cancelled.
func TestACancelledOpeningFreesWhatNoOtherHolds(t *testing.T) {
	t.Parallel()
	f := func(name string, does func(s *story, stays, left, to uint)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(t, 2, slog.New(slog.DiscardHandler), func(s *story) {
				stays := s.door()
				left, to := stays+1, stays+2
				s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_1", Kind: wire.OpenDeposit, Doors: []uint{stays, left}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
				does(s, stays, left, to)
			})
		})
	}
	states := func(s *story, doors ...uint) (out []string) {
		for _, n := range doors {
			out = append(out, s.cell(n).State)
		}
		return out
	}
	f("the other opening may have left its parcels", func(s *story, stays, left, to uint) {
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_2", Kind: wire.OpenReassign, Doors: []uint{stays, to}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code,
			Packages: map[uint][]string{stays: {"PK-1"}, to: {"PK-2"}}})
		s.end(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_2"}}, wire.EndDepositUnverified)
		s.end(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_1"}}, wire.EndCancelled)
		require.Equal(s.t, []string{cloud.GridOccupied, cloud.GridFree, cloud.GridOccupied}, states(s, stays, left, to))
	})
	f("a record before it names an opening that the cloud does not know", func(s *story, stays, left, _ uint) {
		end := func(id string) wire.Raw {
			return s.Record(wire.KindOpeningEnded, wire.OpeningEnded{OpeningID: id, Reason: wire.EndCancelled})
		}
		b := s.Send(wire.Settlement, end("op_x"), end("op_1"))
		require.Equal(s.t, b.Last()+1, s.Ack().Next)
		require.Equal(s.t, []string{cloud.GridFree, cloud.GridFree}, states(s, stays, left))
	})
}
