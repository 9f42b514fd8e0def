package locker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// atScreen is what staff do at the cabinet: a door opens by their code, is closed, and they
// state what became of the delivery behind it.
func (s *story) atScreen(door uint, outcome, reason string, change ...func(*wire.Removal)) wire.Removal {
	s.t.Helper()
	b := wire.Removal{ID: fmt.Sprintf("rm_%d", time.Now().UnixNano()), DeliveryRef: s.code, OpeningID: fmt.Sprintf("op_s%d", time.Now().UnixNano()), Door: door, Outcome: outcome, Reason: reason,
		Item: wire.ItemAbsent}
	for _, c := range change {
		c(&b)
	}
	s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: b.OpeningID, Kind: wire.OpenStaff, Doors: []uint{door}, CommandID: wire.LocalCommand, Who: "staff", CodeNumber: b.CodeNumber})
	s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: b.OpeningID, Door: door, Pulses: 1})
	s.Tell(wire.KindDoorClosed, wire.DoorClosed{OpeningID: b.OpeningID, Door: door, OpenMS: 4000, Item: b.Item})
	s.Tell(wire.KindRemoval, b)
	s.Tell(wire.KindOpeningEnded, wire.OpeningEnded{OpeningID: b.OpeningID, Reason: wire.EndDone})
	return b
}

// history are removals of the history of doors, the newest first.
func (s *story) history() (out []string) {
	s.t.Helper()
	list, err := s.Lockers.ListDoorHistory(ctx, s.staff(), locker.HistoryInput{Device: s.ID, LongKeyset: check.LongKeyset{}})
	require.NoError(s.t, err)
	for _, l := range list.Reports {
		for _, d := range l.Doors {
			for _, r := range d.Removals {
				name := "-"
				if l.ByName != nil {
					name = *l.ByName
				}
				out = append(out, r.Outcome+" "+r.Reason+" "+name)
			}
		}
	}
	return out
}

func TestStaffRemoveAtTheCabinet(t *testing.T) {
	f := plays(t)
	for reason, want := range map[string]struct {
		status cloud.DeliveryStatus
		by     any
	}{
		"overdue_return": {cloud.DeliveryPickedUp, "overdue_return"}, "handover": {cloud.DeliveryPickedUp, "handover"}, "relay": {cloud.DeliveryFailed, nil}, "anomaly": {cloud.DeliveryFailed, nil},
		"recovery": {cloud.DeliveryFailed, nil}, "pending_area": {cloud.DeliveryFailed, nil}, "deleted": {cloud.DeliveryFailed, nil}, "destroyed": {cloud.DeliveryFailed, nil},
	} {
		f(reason, 1, func(s *story) {
			a := s.open()
			s.settle(a)
			b := s.atScreen(a.Doors[0], wire.RemovalTaken, reason)
			s.status(want.status)
			require.Equal(s.t, []string{"PK-1 removed " + reason}, s.removals())
			c := s.cell(a.Doors[0])
			require.Equal(s.t, []any{cloud.GridFree, cloud.DeliveryID(0)}, []any{c.State, c.DeliveryID})
			require.Empty(s.t, s.liveCodes(), "its codes are dead")
			require.Empty(s.t, s.sent(), "the cabinet has let go of it by itself")
			require.Empty(s.t, s.exceptions())
			require.Equal(s.t, []string{"taken " + reason + " -"}, s.history())
			names, bodies := s.events()
			last := "delivery_failed"
			if want.by != nil {
				last = "picked_up"
				require.Equal(s.t, map[string]any{"type": "staff", "method": want.by}, bodies["picked_up"]["data"].(map[string]any)["picked_up_by"])
			}
			require.Equal(s.t, []string{"doors_opened", "delivered", last}, names)
			s.Tell(wire.KindRemoval, b) // repeated under another epoch
			require.Len(s.t, s.history(), 1)
			after, _ := s.events()
			require.Equal(s.t, names, after)
			require.Empty(s.t, s.exceptions())
		})
	}
	require.Equal(t, wire.RemovalReasons(), []string{"overdue_return", "handover", "relay", "anomaly", "recovery", "pending_area", "deleted", "destroyed"}, "those of RemoveInput")
}

func TestACourierCollectsAtTheCabinet(t *testing.T) {
	f := plays(t)
	f("overdue", 2, func(s *story) {
		a := s.open()
		s.settle(a)
		s.overdue()
		for _, e := range s.listed(wire.CodePickup) {
			require.NotZero(s.t, e.NotAfter, "the cabinet knows when it is overdue")
			require.LessOrEqual(s.t, e.NotAfter, time.Now().UnixNano())
		}
		s.atScreen(a.Doors[0], wire.RemovalTaken, wire.RemovalCollected)
		s.status(cloud.DeliveryExpired)
		require.Len(s.t, s.listed(wire.CodePickup)[0].Doors, 1, "its code opens what is left")
		s.atScreen(a.Doors[1], wire.RemovalTaken, wire.RemovalCollected)
		s.status(cloud.DeliveryPickedUp)
		require.Equal(s.t, []string{"PK-1 removed overdue_return", "PK-2 removed overdue_return"}, s.removals())
		require.Empty(s.t, s.exceptions(), "it is overdue no more")
		require.Empty(s.t, s.sent())
		p, err := s.Lockers.Pickup(ctx, s.Box.ProviderCaller, "ref:R-1")
		require.NoError(s.t, err)
		require.Equal(s.t, "returned", p.Pickup.Status)
	})
	f("outgoing", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		require.NoError(s.t, s.Store.Decide(ctx, s.ID, func(v cloud.View) (*cloud.Changes, error) {
			rows, err := v.DeliveryCodes(s.find().DeliveryID)
			for i := range rows {
				rows[i].Entry.Purpose = wire.PurposeReturn
			}
			return &cloud.Changes{LockerChanges: cloud.LockerChanges{Codes: rows}}, err
		}))
		s.atScreen(a.Doors[0], wire.RemovalTaken, wire.RemovalCollected)
		s.status(cloud.DeliveryPickedUp)
		require.Empty(s.t, s.exceptions())
	})
	f("not found", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.overdue()
		s.atScreen(a.Doors[0], wire.RemovalNotFound, wire.RemovalCollected)
		s.status(cloud.DeliveryFailed)
		require.Equal(s.t, []string{"item_missing high"}, s.exceptions())
		require.Equal(s.t, []string{"PK-1 removed anomaly"}, s.removals())
		require.Equal(s.t, cloud.GridFree, s.cell(a.Doors[0]).State)
		require.Empty(s.t, s.sent())
		e, err := s.resolve(s.open1(wire.ExItemMissing), "package_lost")
		require.NoError(s.t, err)
		require.Contains(s.t, e.Note, "did not find it")
	})
	f("left inside", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.overdue()
		s.atScreen(a.Doors[0], wire.RemovalRefused, wire.RemovalCollected)
		s.status(cloud.DeliveryExpired)
		require.Equal(s.t, []string{"refused collected -"}, s.history())
		require.Equal(s.t, cloud.GridOccupied, s.cell(a.Doors[0]).State)
	})
	f("by name", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		_, err := s.Lockers.DrawStaffCodes(ctx, s.Box.AdminCaller, locker.StaffCodesInput{})
		require.NoError(s.t, err)
		s.runStaff(time.Second)
		number := uint64(0)
		s.Look(func(v cloud.View) error {
			rows, err := v.StaffEntries(s.ID)
			number = rows[0].Entry.Number
			return err
		})
		s.atScreen(a.Doors[0], wire.RemovalTaken, "relay", func(b *wire.Removal) { b.CodeNumber = number })
		require.Equal(s.t, []string{"taken relay " + s.Box.AdminCaller.Account.Name}, s.history())
	})
	f("the start of its opening is lost", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		b := wire.Removal{ID: "rm_1", DeliveryRef: s.code, OpeningID: "op_lost", Door: a.Doors[0], Outcome: wire.RemovalTaken, Reason: "relay"}
		s.Tell(wire.KindRemoval, b)
		s.Tell(wire.KindRemoval, b)
		s.status(cloud.DeliveryFailed)
		require.Len(s.t, s.history(), 1)
		require.Empty(s.t, s.exceptions())
	})
}

// What happened at the cabinet stands, whatever was decided meanwhile.
func TestRemovalsMeetOtherDecisions(t *testing.T) {
	f := plays(t)
	f("more time was given", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.overdue()
		before := s.listed(wire.CodePickup)[0]
		_, err := s.Lockers.Extend(ctx, s.Box.ProviderCaller, locker.ExtendInput{Delivery: "ref:R-1", Hours: 5})
		require.NoError(s.t, err)
		now := s.listed(wire.CodePickup)
		require.Len(s.t, now, 1)
		require.Greater(s.t, now[0].NotAfter, before.NotAfter)
		require.Greater(s.t, now[0].Number, before.Number, "the list has moved on")
		require.Equal(s.t, before.Verifier, now[0].Verifier)
		s.atScreen(a.Doors[0], wire.RemovalTaken, wire.RemovalCollected)
		s.status(cloud.DeliveryPickedUp)
		require.Equal(s.t, []string{"PK-1 removed overdue_return"}, s.removals())
	})
	f("removed in the console", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		require.NoError(s.t, s.remove("PK-1", "handover"))
		names, _ := s.events()
		s.atScreen(a.Doors[0], wire.RemovalTaken, "relay")
		after, _ := s.events()
		require.Equal(s.t, names, after)
		require.Equal(s.t, []string{"PK-1 removed handover"}, s.removals())
		require.Empty(s.t, s.exceptions(), "two words for one act")
		require.Len(s.t, s.history(), 1)
	})
	f("cleared", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		_, err := s.clear(s.staff(), a.Doors[0])
		require.NoError(s.t, err)
		s.atScreen(a.Doors[0], wire.RemovalTaken, "relay")
		s.status(cloud.DeliveryFailed)
		require.Empty(s.t, s.exceptions())
		require.Equal(s.t, []string{"clear " + s.code}, s.sent(), "the command of the clear names the delivery")
	})
	f("taken back by its courier", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.taken(true)
		require.NoError(s.t, s.retrieved())
		s.atScreen(a.Doors[0], wire.RemovalTaken, wire.RemovalCollected)
		s.status(cloud.DeliveryPickedUp)
		require.Empty(s.t, s.exceptions())
	})
	f("collected by its recipient", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.pickUp("op_p", 2, nil, a.Doors...)
		s.atScreen(a.Doors[0], wire.RemovalTaken, "relay")
		s.status(cloud.DeliveryPickedUp)
		require.Equal(s.t, []string{"item_missing high"}, s.exceptions())
		s.atScreen(a.Doors[0], wire.RemovalNotFound, wire.RemovalCollected)
		require.Len(s.t, s.exceptions(), 1)
	})
	f("it lay elsewhere", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		other := a.Doors[0] + 1
		s.atScreen(other, wire.RemovalTaken, "relay")
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, []string{"item_missing high"}, s.exceptions())
		require.Equal(s.t, cloud.GridOccupied, s.cell(a.Doors[0]).State)
	})
	f("another parcel came since", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		require.NoError(s.t, s.remove("PK-1", "handover"))
		s.sent()
		door := s.bringAnother()
		require.Equal(s.t, a.Doors[0], door)
		before := s.cell(door)
		s.atScreen(door, wire.RemovalTaken, "relay")
		require.Equal(s.t, before.DeliveryID, s.cell(door).DeliveryID)
		require.Equal(s.t, cloud.GridOccupied, s.cell(door).State)
	})
	f("nothing had verified it", 2, func(s *story) {
		a := s.open()
		s.settle(a, wire.Deposited, wire.Unverified)
		s.atScreen(a.Doors[1], wire.RemovalTaken, "handover")
		require.Contains(s.t, s.removals(), "PK-2 removed anomaly")
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, cloud.GridFree, s.cell(a.Doors[1]).State)
	})
	f("not found, and no exception has a number yet", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.atScreen(a.Doors[0], wire.RemovalNotFound, wire.RemovalCollected)
		require.Equal(s.t, []string{"item_missing high"}, s.exceptions())
	})
	f("a doubt was open", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.Tell(wire.KindExceptionOpened, wire.Exception{ID: "ex_1", Type: wire.ExItemMissing, Severity: wire.SeverityHigh, Door: a.Doors[0], Evidence: "sensor cleared"})
		s.atScreen(a.Doors[0], wire.RemovalNotFound, wire.RemovalCollected)
		require.Equal(s.t, []string{"item_missing high"}, s.exceptions(), "one for both")
	})
	f("a doubt is over", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.Tell(wire.KindExceptionOpened, wire.Exception{ID: "ex_1", Type: wire.ExItemMissing, Severity: wire.SeverityHigh, Door: a.Doors[0], Evidence: "sensor cleared"})
		s.atScreen(a.Doors[0], wire.RemovalTaken, "handover")
		require.Empty(s.t, s.exceptions())
	})
}

func TestRemovalsOfOthers(t *testing.T) {
	f := plays(t)
	for name, c := range map[string]struct {
		change func(s *story, b *wire.Removal)
		fault  string
	}{
		"unknown delivery":  {func(_ *story, b *wire.Removal) { b.DeliveryRef = "LD-999999999" }, cloud.DevForeignReference},
		"unknown door":      {func(_ *story, b *wire.Removal) { b.Door = 999 }, cloud.DevForeignReference},
		"no id":             {func(_ *story, b *wire.Removal) { b.ID = "" }, cloud.DevBadBatch},
		"long id":           {func(_ *story, b *wire.Removal) { b.ID = fmt.Sprintf("%041d", 1) }, cloud.DevBadBatch},
		"no opening":        {func(_ *story, b *wire.Removal) { b.OpeningID = "" }, cloud.DevBadBatch},
		"unknown outcome":   {func(_ *story, b *wire.Removal) { b.Outcome = "stolen" }, cloud.DevBadBatch},
		"unknown reason":    {func(_ *story, b *wire.Removal) { b.Reason = "x" }, cloud.DevBadBatch},
		"a deposit's doors": {func(s *story, b *wire.Removal) { b.OpeningID = s.firstOpening() }, cloud.DevBadBatch},
	} {
		f(name, 1, func(s *story) {
			a := s.open()
			s.settle(a)
			b := wire.Removal{ID: "rm_1", DeliveryRef: s.code, OpeningID: "op_x", Door: a.Doors[0], Outcome: wire.RemovalTaken, Reason: "relay"}
			c.change(s, &b)
			s.Tell(wire.KindRemoval, b)
			s.status(cloud.DeliveryDelivered)
			require.Contains(s.t, s.Faults(), c.fault)
			require.Empty(s.t, s.history())
		})
	}
	f("another cabinet", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		other := s.World.Connect("CAB-2", nil)
		other.Greet(nil)
		other.Tell(wire.KindRemoval, wire.Removal{ID: "rm_1", DeliveryRef: s.code, OpeningID: "op_x", Door: a.Doors[0], Outcome: wire.RemovalTaken, Reason: "relay"})
		s.status(cloud.DeliveryDelivered)
		require.Contains(s.t, other.Faults(), cloud.DevForeignReference)
	})
}

func (s *story) firstOpening() (id string) {
	s.Look(func(v cloud.View) error {
		list, err := v.DeliveryOpenings(s.find().DeliveryID)
		id = list[0].ID
		return err
	})
	return id
}
