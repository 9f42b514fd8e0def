package locker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// row is the device order of a package, the newest where there are several.
func (s *story) row(number string) locker.DeviceOrderView {
	s.t.Helper()
	out, err := s.Lockers.ListDeviceOrders(ctx, s.staff(), locker.DeviceOrdersInput{})
	require.NoError(s.t, err)
	for _, o := range out.DeviceOrders {
		if o.TrackingNumber == number {
			return o
		}
	}
	require.FailNow(s.t, "no device order", number)
	return locker.DeviceOrderView{}
}

func (s *story) remove(number, reason string) error {
	s.t.Helper()
	_, err := s.Lockers.RemoveDeviceOrder(ctx, s.staff(), locker.RemoveInput{ID: s.row(number).ID, Reason: reason})
	return err
}

// open1 is the only open exception of a type.
func (s *story) open1(typ string) cloud.ExceptionID {
	s.t.Helper()
	out, err := s.Lockers.ListCabinetExceptions(ctx, s.staff(), locker.CabinetExceptionsInput{})
	require.NoError(s.t, err)
	found := cloud.ExceptionID(0)
	for _, e := range out.Exceptions {
		if e.Type == typ {
			require.Zero(s.t, found, "more than one")
			found = e.ExceptionID
		}
	}
	require.NotZero(s.t, found, "no open exception %s", typ)
	return found
}

func (s *story) resolve(id cloud.ExceptionID, action string) (locker.CabinetExceptionBody, error) {
	s.t.Helper()
	in := locker.ResolveInput{ID: id, Action: action, Note: "Seen by Sam"}
	if action == "extended" {
		hours := 24
		in.Hours = &hours
	}
	out, err := s.Lockers.ResolveException(ctx, s.staff(), in)
	return out.Exception, err
}

func (s *story) overdue() {
	s.t.Helper()
	_, err := s.Lockers.ExpireDelivery(ctx, s.staff(), locker.EndInput{Delivery: locker.DeliveryKey(s.id()), Reason: "Too long"})
	require.NoError(s.t, err)
}

// Staff bring the deadline of a parcel forward: its row names the deadline that has passed,
// and its timeline says that it is overdue.
func TestARowThatIsOverdueNamesTheDeadlineThatHasPassed(t *testing.T) {
	tell(t, 2, nil, func(s *story) {
		s.settle(s.open())
		s.overdue()
		o := s.row("PK-1")
		require.Equal(s.t, "overdue", o.Status)
		require.NotNil(s.t, o.OverdueAt)
		require.Equal(s.t, *o.OverdueAt, *o.DueAt)
		require.Contains(s.t, s.moves(), "x-pickup_overdue locker pickup_expired")
	})
}

func TestTheRegistryShowsWhatRestsInCabinets(t *testing.T) {
	tell(t, 2, nil, func(s *story) {
		list := func(in locker.DeviceOrdersInput) (out []string) {
			got, err := s.Lockers.ListDeviceOrders(ctx, s.staff(), in)
			require.NoError(s.t, err)
			for _, o := range got.DeviceOrders {
				out = append(out, o.TrackingNumber+" "+o.Status)
			}
			return out
		}
		require.Empty(s.t, list(locker.DeviceOrdersInput{}))
		a := s.open()
		s.settle(a)
		require.Equal(s.t, []string{"PK-2 stored", "PK-1 stored"}, list(locker.DeviceOrdersInput{}))
		o := s.row("PK-1")
		require.Equal(s.t, []any{"locker_delivery", "smart_locker", "R-1", s.cell(a.Doors[0]).GridCode, "recipient"}, []any{o.Kind, o.DeviceType, *o.Reference, o.GridCode, *o.NextActor})
		require.Equal(s.t, s.cell(a.Doors[0]).Name(), o.DoorName)
		yes := true
		require.Empty(s.t, list(locker.DeviceOrdersInput{Overdue: &yes}))
		s.overdue()
		require.Len(s.t, list(locker.DeviceOrdersInput{Overdue: &yes}), 2)
		require.Empty(s.t, list(locker.DeviceOrdersInput{Overdue: &yes, Status: "stored"}))
		require.Len(s.t, list(locker.DeviceOrdersInput{Reference: "R-1", DeviceID: s.ID, Kind: "locker_delivery"}), 2)
		require.Empty(s.t, list(locker.DeviceOrdersInput{Reference: "R-2"}))
		require.Empty(s.t, list(locker.DeviceOrdersInput{DeviceID: s.ID + 1}))
		found, err := s.Lockers.FindDeviceOrder(ctx, s.staff(), locker.ByDeviceOrder{ID: o.ID})
		require.NoError(s.t, err)
		events := ""
		for _, e := range found.DeviceOrder.Events {
			events += e.Type + " "
		}
		require.Equal(s.t, "stored overdue exception_opened ", events)
		require.Equal(s.t, "overdue", found.DeviceOrder.Exceptions[0].Type)
		_, err = s.Lockers.FindDeviceOrder(ctx, s.stranger(), locker.ByDeviceOrder{ID: o.ID})
		require.Equal(s.t, "DEVICE_ORDER_NOT_FOUND", code(err))
		for _, call := range []func() error{
			func() error {
				_, err := s.Lockers.RemoveDeviceOrder(ctx, s.stranger(), locker.RemoveInput{ID: o.ID, Reason: "handover"})
				return err
			},
			func() error {
				_, err := s.Lockers.ExtendDeviceOrder(ctx, s.stranger(), locker.ExtendDeviceOrderInput{ID: o.ID, Hours: 2})
				return err
			},
			func() error {
				_, err := s.Lockers.ResendDeviceOrderCode(ctx, s.stranger(), locker.ResendDeviceOrderCodeInput{ID: o.ID})
				return err
			},
		} {
			require.Equal(s.t, "DEVICE_ORDER_NOT_FOUND", code(call()))
		}
		require.Equal(s.t, []string{"PK-2 overdue", "PK-1 overdue"}, list(locker.DeviceOrdersInput{}))
	})
}

// What becomes of a delivery when staff take its only package out, by the reason.
func TestStaffTakeAPackageOut(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e")
	f := plays(t)
	for reason, want := range map[string]struct {
		status cloud.DeliveryStatus
		pickup string // status of the partner's view
		event  string
		last   string // of the timeline
	}{
		"overdue_return": {cloud.DeliveryPickedUp, "returned", "picked_up", "x-removed_from_device locker"},
		"handover":       {cloud.DeliveryPickedUp, "collected", "picked_up", "delivered locker"},
		"relay":          {cloud.DeliveryFailed, "", "delivery_failed", "x-removed_from_device locker"},
		"anomaly":        {cloud.DeliveryFailed, "", "delivery_failed", "x-removed_from_device locker"},
		"recovery":       {cloud.DeliveryFailed, "", "delivery_failed", "x-removed_from_device locker"},
		"pending_area":   {cloud.DeliveryFailed, "", "delivery_failed", "x-removed_from_device locker"},
		"deleted":        {cloud.DeliveryFailed, "", "delivery_failed", "x-removed_from_device locker"},
		"destroyed":      {cloud.DeliveryFailed, "", "delivery_failed", "x-removed_from_device locker"},
	} {
		f(reason, 1, func(s *story) {
			a := s.open()
			s.settle(a)
			s.overdue()
			time.Sleep(time.Minute)
			require.NoError(s.t, s.remove("PK-1", reason))
			s.status(want.status)
			require.False(s.t, s.find().PickupCodeActive)
			require.Empty(s.t, s.liveCodes(), "no code opens anything")
			require.Equal(s.t, []string{"PK-1 removed " + reason}, s.removals())
			require.Empty(s.t, s.exceptions(), "what was overdue has left")
			require.Equal(s.t, cloud.GridFree, s.cell(a.Doors[0]).State)
			require.Zero(s.t, s.cell(a.Doors[0]).DeliveryID)
			require.Equal(s.t, []string{"clear " + s.code}, s.sent(), "the cabinet forgets it")
			s.told("doors_opened", "delivered", "expired", want.event)
			require.Equal(s.t, want.last, s.moves()[len(s.moves())-1])
			if p, err := s.Lockers.Pickup(ctx, s.Box.ProviderCaller, "ref:R-1"); want.pickup == "" {
				require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err))
			} else {
				require.NoError(s.t, err)
				require.Equal(s.t, want.pickup, p.Pickup.Status)
				require.Equal(s.t, "staff", fmt.Sprint(s.field("picked_up", "picked_up_by", "type")))
			}
			require.Equal(s.t, "DEVICE_ORDER_STATE_CONFLICT", code(s.remove("PK-1", reason)), "it has ended")
			_, err := s.Lockers.ExtendDeviceOrder(ctx, s.staff(), locker.ExtendDeviceOrderInput{ID: s.row("PK-1").ID, Hours: 2})
			require.Equal(s.t, "DEVICE_ORDER_STATE_CONFLICT", code(err))
			s.told("doors_opened", "delivered", "expired", want.event)

			// It was taken by its code all the same, before the cabinet knew.
			s.pickUp("op_late", 2, nil, a.Doors...)
			s.status(want.status)
			require.Equal(s.t, []string{"item_missing high"}, s.exceptions())
			require.Equal(s.t, []string{"PK-1 removed " + reason}, s.removals())
		})
	}
}

// field is a member of the data of the last event of a name.
func (s *story) field(event string, path ...string) any {
	_, bodies := s.events()
	var at any = bodies[event]["data"]
	for _, name := range path {
		m, _ := at.(map[string]any)
		at = m[name]
	}
	return at
}

func TestStaffTakePartOfADeliveryOut(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e")
	f := plays(t)
	f("handed over, and then the rest lost", 2, func(s *story) {
		a := s.open()
		s.settle(a)
		require.NoError(s.t, s.remove("PK-1", "handover"))
		s.status(cloud.DeliveryDelivered)
		require.True(s.t, s.find().PickupCodeActive)
		require.Len(s.t, s.listed(wire.CodePickup)[0].Doors, 1, "the code opens what is left")
		require.Equal(s.t, []string{"PK-1 removed handover", "PK-2 stored "}, s.removals())
		require.Equal(s.t, []string{"clear " + s.code}, s.sent())
		s.told("doors_opened", "delivered")
		require.NoError(s.t, s.remove("PK-2", "destroyed"))
		s.status(cloud.DeliveryFailed)
		require.Empty(s.t, s.liveCodes())
	})
	f("the recipient collects the rest", 2, func(s *story) {
		a := s.open()
		s.settle(a)
		require.NoError(s.t, s.remove("PK-1", "handover"))
		s.pickUp("op_p", 2, nil, a.Doors[1])
		s.status(cloud.DeliveryPickedUp)
		require.Equal(s.t, []string{"PK-1 removed handover", "PK-2 picked_up "}, s.removals())
		require.Empty(s.t, s.exceptions())
	})
	f("two packages behind one door: the door is not cleared while one is left", 2, func(s *story) {
		a := s.open()
		door := a.Doors[0]
		now := time.Now().UnixNano()
		s.Tell(wire.KindOpeningSettled, wire.OpeningSettled{OpeningID: a.OpeningID, ConfirmedBy: wire.ByDoorClose, Doors: []wire.SettledDoor{{Door: door, OpenedAt: now - 9e9, ClosedAt: now - 2e9}},
			Packages: []wire.SettledPackage{{Ref: "PK-1", Door: door, Outcome: wire.Deposited}, {Ref: "PK-2", Door: door, Outcome: wire.Deposited}}})
		require.Equal(s.t, s.row("PK-1").GridCode, s.row("PK-2").GridCode)
		require.NoError(s.t, s.remove("PK-1", "overdue_return"))
		require.Empty(s.t, s.sent(), "the cabinet knows of the door, not of packages")
		require.Equal(s.t, cloud.GridOccupied, s.cell(door).State)
		s.status(cloud.DeliveryDelivered)
		require.NoError(s.t, s.remove("PK-2", "overdue_return"))
		require.Equal(s.t, []string{"clear " + s.code}, s.sent())
		require.Equal(s.t, cloud.GridFree, s.cell(door).State)
		s.status(cloud.DeliveryPickedUp)
	})
	f("not while a door opens, stands open, or a sensor sees something", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		out, err := s.Lockers.OpenGrids(ctx, s.staff(), locker.StaffOpenInput{Device: s.ID, Grids: []cloud.GridID{s.grid(a.Doors[0])}, Reason: "x", Attended: new(true), WaitSeconds: new(0)})
		require.NoError(s.t, err)
		require.NotNil(s.t, out.Opening)
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.remove("PK-1", "handover")), "an opening runs")
		var b asked
		b.id = s.Command(&b.OpenDoors).CommandID
		s.begin(b)
		s.swung(b, false)
		s.outcome(b.id, wire.OutcomeDone, nil)
		s.end(b, wire.EndDone)
		synctest.Wait()
		require.Equal(s.t, "DOOR_OPEN", code(s.remove("PK-1", "handover")))
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, []string{"PK-1 stored "}, s.removals())
	})
}

func TestMoreTimeByStaff(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e")
	tell(t, 1, nil, func(s *story) {
		s.settle(s.open())
		s.overdue()
		x, err := s.resolve(s.open1("overdue"), "extended")
		require.NoError(s.t, err)
		require.Equal(s.t, []any{"resolved", "extended", "staff"}, []any{x.Status, *x.Resolution, *x.ClosedBy})
		s.status(cloud.DeliveryDelivered)
		was := *s.row("PK-1").DueAt
		require.Equal(s.t, "stored", s.row("PK-1").Status)
		out, err := s.Lockers.ExtendDeviceOrder(ctx, s.staff(), locker.ExtendDeviceOrderInput{ID: s.row("PK-1").ID, Hours: 24})
		require.NoError(s.t, err)
		before, err := time.Parse(time.RFC3339, was)
		require.NoError(s.t, err)
		after, err := time.Parse(time.RFC3339, *out.DeviceOrder.DueAt)
		require.NoError(s.t, err)
		require.Equal(s.t, 24*time.Hour, after.Sub(before))
	})
}

// Each way to resolve each type of exception, and what the cabinet is ordered.
func TestExceptionsAreResolvedAtTheCabinetToo(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e")
	f := plays(t)
	unverified := func(s *story) asked {
		a := s.open()
		s.end(a, wire.EndDepositUnverified)
		s.Tell(wire.KindExceptionOpened, wire.Exception{ID: "x-1", Type: wire.ExDepositUnverified, Severity: wire.SeverityMedium, Door: a.Doors[0], Evidence: "nothing seen inside"})
		require.Equal(s.t, []string{"PK-1 unverified "}, s.removals())
		return a
	}
	f("a deposit is confirmed: the code is live, in the cabinet too", 1, func(s *story) {
		unverified(s)
		x, err := s.resolve(s.open1("deposit_unverified"), "deposit_confirmed")
		require.NoError(s.t, err)
		require.Equal(s.t, []any{"resolved", "deposit_confirmed", "staff", "nothing seen inside; Seen by Sam"}, []any{x.Status, *x.Resolution, *x.ClosedBy, x.Note})
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, wire.ByConsole, *s.find().ConfirmedBy)
		require.True(s.t, s.find().PickupCodeActive)
		require.Equal(s.t, []wire.CommandKind{wire.CmdCloseSession}, s.commandKinds())
		require.Empty(s.t, s.exceptions())
		_, err = s.resolve(x.ExceptionID, "no_action")
		require.Equal(s.t, "EXCEPTION_CLOSED", code(err))
	})
	f("a confirmation by the partner ends the doubt as well", 1, func(s *story) {
		unverified(s)
		require.NoError(s.t, s.confirm())
		require.Empty(s.t, s.exceptions())
	})
	for _, action := range []string{"deposit_cancelled", "package_lost", "package_returned"} {
		f("nothing was left inside: "+action, 1, func(s *story) {
			a := unverified(s)
			x, err := s.resolve(s.open1("deposit_unverified"), action)
			require.NoError(s.t, err)
			require.Equal(s.t, action, *x.Resolution)
			require.Equal(s.t, []string{"PK-1 removed anomaly"}, s.removals())
			require.Equal(s.t, []string{"clear " + s.code}, s.sent())
			require.Equal(s.t, cloud.GridFree, s.cell(a.Doors[0]).State)
			s.status(cloud.DeliveryFailed)
			require.Empty(s.t, s.exceptions())
		})
	}
	f("a door whose contact is broken is closed by a word once its compartment is blocked", 1, func(s *story) {
		door := s.find().Packages[0].GridID
		require.NoError(s.t, s.cancel())
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{Door: 1})
		s.Tell(wire.KindExceptionOpened, wire.Exception{ID: "x-2", Type: wire.ExDoorLeftOpen, Severity: wire.SeverityHigh, Door: 1, Evidence: "forced"})
		id := s.open1("door_left_open")
		_, err := s.resolve(id, "no_action")
		require.Equal(s.t, "DOOR_OPEN", code(err))
		_, err = s.Lockers.Block(ctx, s.staff(), locker.BlockInput{Device: s.find().DeviceID, Grid: *door, Reason: "Its contact is broken"})
		require.NoError(s.t, err)
		_, err = s.resolve(id, "no_action")
		require.NoError(s.t, err)
		require.Empty(s.t, s.exceptions())
	})
	f("a door that stands open is not closed by a word", 1, func(s *story) {
		a := s.open()
		s.swung(a, false)
		s.Tell(wire.KindExceptionOpened, wire.Exception{ID: "x-2", Type: wire.ExDoorLeftOpen, Severity: wire.SeverityMedium, Door: a.Doors[0], Evidence: "open at the end of the session"})
		id := s.open1("door_left_open")
		_, err := s.resolve(id, "door_closed_on_site")
		require.Equal(s.t, "DOOR_OPEN", code(err))
		_, err = s.resolve(id, "package_lost")
		require.Equal(s.t, "DOOR_OPEN", code(err))
		for _, action := range []string{"no_action", "package_found"} {
			_, err = s.resolve(id, action)
			require.Equal(s.t, "DOOR_OPEN", code(err), action)
		}
		_, err = s.Lockers.DismissException(ctx, s.staff(), locker.DismissInput{ID: id})
		require.Equal(s.t, "DOOR_OPEN", code(err))
		var refused *cloud.Error
		require.ErrorAs(s.t, err, &refused)
		require.Equal(s.t, []any{s.cell(a.Doors[0]).Name()}, refused.Args)
		_, err = s.resolve(id, "deposit_confirmed")
		require.Equal(s.t, "RESOLUTION_NOT_POSSIBLE", code(err))
		require.Equal(s.t, []string{"door_left_open medium"}, s.exceptions(), "nothing was changed")
		s.Tell(wire.KindDoorClosed, wire.DoorClosed{OpeningID: a.OpeningID, Door: a.Doors[0], OpenMS: 700000})
		_, err = s.resolve(id, "door_closed_on_site")
		require.NoError(s.t, err)
		require.Equal(s.t, []wire.CommandKind{wire.CmdSyncConfig}, s.commandKinds())
	})
	for action, reason := range map[string]string{"package_returned": "overdue_return", "package_lost": "anomaly"} {
		f("an overdue delivery of two: "+action, 2, func(s *story) {
			s.settle(s.open())
			s.overdue()
			id := s.open1("overdue")
			_, err := s.Lockers.DismissException(ctx, s.staff(), locker.DismissInput{ID: id, Note: "x"})
			require.Equal(s.t, "RESOLUTION_NOT_POSSIBLE", code(err))
			x, err := s.resolve(id, action)
			require.NoError(s.t, err)
			require.Equal(s.t, action, *x.Resolution)
			require.Equal(s.t, []string{"PK-1 removed " + reason, "PK-2 removed " + reason}, s.removals())
			require.Equal(s.t, []string{"clear " + s.code, "clear " + s.code}, s.sent())
			require.Empty(s.t, s.liveCodes())
		})
	}
	f("explained with the openings of its door", 1, func(s *story) {
		a := unverified(s)
		out, err := s.Lockers.FindCabinetException(ctx, s.staff(), locker.ByException{ID: s.open1("deposit_unverified")})
		require.NoError(s.t, err)
		e := out.Exception
		require.Equal(s.t, []any{"PK-1", true, 1, a.OpeningID}, []any{e.DeviceOrder.TrackingNumber, e.Evidence.Online, len(e.Evidence.DoorReports), e.Evidence.DoorReports[0].OpeningID})
		for _, p := range e.Resolutions {
			require.Equal(s.t, map[string]string{"deposit_confirmed": "close_session", "deposit_cancelled": "clear", "package_lost": "clear", "package_returned": "clear", "no_action": ""}[p.Action], p.Command, p.Action)
		}
		_, err = s.Lockers.FindCabinetException(ctx, s.stranger(), locker.ByException{ID: e.ExceptionID})
		require.Equal(s.t, "EXCEPTION_NOT_FOUND", code(err))
		_, err = s.Lockers.ResolveException(ctx, s.stranger(), locker.ResolveInput{ID: e.ExceptionID, Action: "no_action"})
		require.Equal(s.t, "EXCEPTION_NOT_FOUND", code(err))
		_, err = s.Lockers.DismissException(ctx, s.stranger(), locker.DismissInput{ID: e.ExceptionID})
		require.Equal(s.t, "EXCEPTION_NOT_FOUND", code(err))
		// What decides nothing leaves no delivery behind that waits for ever.
		_, err = s.Lockers.DismissException(ctx, s.staff(), locker.DismissInput{ID: e.ExceptionID, Note: "A cleaner"})
		var refused *cloud.Error
		require.ErrorAs(s.t, err, &refused)
		require.Equal(s.t, []any{"RESOLUTION_NOT_POSSIBLE", []any{"deposit_confirmed, deposit_cancelled, package_lost, package_returned"}}, []any{refused.Code, refused.Args})
		_, err = s.resolve(e.ExceptionID, "no_action")
		require.Equal(s.t, "RESOLUTION_NOT_POSSIBLE", code(err))
		require.Equal(s.t, []string{"deposit_unverified medium"}, s.exceptions())
		_, err = s.resolve(e.ExceptionID, "deposit_confirmed")
		require.NoError(s.t, err)
		s.Tell(wire.KindExceptionOpened, wire.Exception{ID: "x-9", Type: wire.ExItemMissing, Severity: wire.SeverityLow, Door: a.Doors[0], Evidence: "sensor"})
		x, err := s.Lockers.DismissException(ctx, s.staff(), locker.DismissInput{ID: s.open1("item_missing"), Note: "A cleaner"})
		require.NoError(s.t, err)
		require.Equal(s.t, []any{"dismissed", "no_action"}, []any{x.Exception.Status, *x.Exception.Resolution})
		s.status(cloud.DeliveryDelivered)
	})
}
