package locker_test

import (
	"context"
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

// everyException is each exception as type, status, resolution and compartment.
func (s *story) everyException() string {
	s.t.Helper()
	o, err := s.Lockers.ListCabinetExceptions(ctx, s.staff(), locker.CabinetExceptionsInput{Status: "all"})
	require.NoError(s.t, err)
	out := ""
	for _, e := range o.Exceptions {
		resolution := "-"
		if e.Resolution != nil {
			resolution = *e.Resolution
		}
		out += fmt.Sprint(e.Type, " ", e.Status, " ", resolution, " ", e.GridCode, "; ")
	}
	return out
}

// doubt is what the cabinet reports of a deposit that it could not verify.
func (s *story) doubt(doors ...uint) {
	s.t.Helper()
	for _, n := range doors {
		s.Tell(wire.KindExceptionOpened, wire.Exception{ID: fmt.Sprint("x-", n), Type: wire.ExDepositUnverified, Severity: wire.SeverityMedium, Door: n, Evidence: "nothing seen inside"})
	}
}

// bringAnother deposits another delivery, R-2 with PK-9, and gives its door.
func (s *story) bringAnother() uint {
	s.t.Helper()
	_, err := s.Lockers.Create(ctx, s.Box.ProviderCaller, locker.CreateInput{ReferenceNumber: "R-2", DeviceID: s.ID, Recipient: cloud.Recipient{Name: "Bob", Phone: "+14165550124"},
		Packages: []locker.PackageInput{{TrackingNumber: "PK-9", Size: "M"}}})
	require.NoError(s.t, err)
	s.sent()
	_, err = s.Lockers.OpenDoors(ctx, s.Box.ProviderCaller, locker.OpenInput{Delivery: "ref:R-2", WaitSeconds: new(0)})
	require.NoError(s.t, err)
	var a asked
	a.id = s.Command(&a.OpenDoors).CommandID
	s.begin(a)
	s.outcome(a.id, wire.OutcomeDone, nil)
	s.settle(a)
	return a.Doors[0]
}

// What a person says about one exception touches nothing else.
func TestAResolutionTouchesItsOwnDeliveryAlone(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e")
	f := plays(t)
	another := func(s *story, door uint, resolve func() error) {
		require.Equal(s.t, door, s.bringAnother(), "it lies where the other did")
		require.NoError(s.t, resolve())
		out, err := s.Lockers.Find(ctx, s.Box.ProviderCaller, "ref:R-2")
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.DeliveryDelivered, out.Delivery.Status)
		require.Equal(s.t, "stored", s.row("PK-9").Status)
		require.Empty(s.t, s.sent(), "the cabinet keeps it")
	}
	f("an old item_missing, and another parcel since", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.pickUp("op_1", 2, nil, a.Doors...)
		s.pickUp("op_2", 2, nil, a.Doors...)
		id := s.open1("item_missing")
		another(s, a.Doors[0], func() error { _, err := s.resolve(id, "package_lost"); return err })
	})
	f("an old door_left_open, and another parcel since", 1, func(s *story) {
		a := s.open()
		s.Tell(wire.KindExceptionOpened, wire.Exception{ID: "x-2", Type: wire.ExDoorLeftOpen, Severity: wire.SeverityMedium, Door: a.Doors[0], Evidence: "open"})
		s.settle(a)
		s.pickUp("op_1", 2, nil, a.Doors...)
		id := s.open1("door_left_open")
		another(s, a.Doors[0], func() error { _, err := s.resolve(id, "package_lost"); return err })
	})
	f("one door of two in doubt was looked behind", 2, func(s *story) {
		a := s.open()
		s.doubt(a.Doors...)
		s.end(a, wire.EndDepositUnverified)
		list, err := s.Lockers.ListCabinetExceptions(ctx, s.staff(), locker.CabinetExceptionsInput{})
		require.NoError(s.t, err)
		_, err = s.resolve(list.Exceptions[0].ExceptionID, "deposit_confirmed")
		require.Equal(s.t, "DEVICE_ORDER_STATE_CONFLICT", code(err), "the cabinet would let go of the other")
		require.Equal(s.t, []string{"PK-1 unverified ", "PK-2 unverified "}, s.removals())
		_, err = s.resolve(list.Exceptions[0].ExceptionID, "deposit_cancelled")
		require.NoError(s.t, err)
		_, err = s.resolve(list.Exceptions[1].ExceptionID, "deposit_confirmed")
		require.NoError(s.t, err)
		require.Equal(s.t, []string{"PK-1 stored ", "PK-2 removed anomaly"}, s.removals())
		s.status(cloud.DeliveryDelivered)
	})
	f("a confirmation that names one package of two", 2, func(s *story) {
		a := s.open()
		s.doubt(a.Doors...)
		s.end(a, wire.EndDepositUnverified)
		require.NoError(s.t, s.confirmOnly(locker.ConfirmPackage{TrackingNumber: "PK-1"}))
		require.Contains(s.t, s.everyException(), "deposit_unverified resolved deposit_confirmed "+s.cell(a.Doors[0]).GridCode)
		require.Contains(s.t, s.everyException(), "deposit_unverified resolved deposit_cancelled "+s.cell(a.Doors[1]).GridCode)
	})
	f("the doubtful one of two packages behind one door", 2, func(s *story) {
		a := s.open()
		door := a.Doors[0]
		now := time.Now().UnixNano()
		s.Tell(wire.KindOpeningSettled, wire.OpeningSettled{OpeningID: a.OpeningID, ConfirmedBy: wire.ByDoorClose, Doors: []wire.SettledDoor{{Door: door, OpenedAt: now - 9e9, ClosedAt: now - 2e9}},
			Packages: []wire.SettledPackage{{Ref: "PK-1", Door: door, Outcome: wire.Deposited}, {Ref: "PK-2", Door: door, Outcome: wire.Unverified}}})
		s.doubt(door)
		_, err := s.resolve(s.open1("deposit_unverified"), "deposit_cancelled")
		require.NoError(s.t, err)
		require.Equal(s.t, []string{"PK-1 stored ", "PK-2 removed anomaly"}, s.removals())
		s.status(cloud.DeliveryDelivered)
	})
	f("the doubtful one of two was taken out", 2, func(s *story) {
		a := s.open()
		door := a.Doors[0]
		now := time.Now().UnixNano()
		s.Tell(wire.KindOpeningSettled, wire.OpeningSettled{OpeningID: a.OpeningID, ConfirmedBy: wire.ByDoorClose, Doors: []wire.SettledDoor{{Door: door, OpenedAt: now - 9e9, ClosedAt: now - 2e9}},
			Packages: []wire.SettledPackage{{Ref: "PK-1", Door: door, Outcome: wire.Deposited}, {Ref: "PK-2", Door: door, Outcome: wire.Unverified}}})
		s.doubt(door)
		require.NoError(s.t, s.remove("PK-2", "anomaly"))
		require.Empty(s.t, s.exceptions(), "nothing is in doubt any more")
	})
}

func TestADepositIsConfirmedInPart(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e")
	f := plays(t)
	f("the rest of a delivery that is settled", 2, func(s *story) {
		a := s.open()
		s.doubt(a.Doors[1])
		s.settle(a, wire.Deposited, wire.Unverified)
		before := s.moves()
		_, err := s.resolve(s.open1("deposit_unverified"), "deposit_confirmed")
		require.NoError(s.t, err)
		require.Equal(s.t, []string{"PK-1 stored ", "PK-2 stored "}, s.removals())
		require.Equal(s.t, before, s.moves(), "of PK-1 nothing is new")
		require.Equal(s.t, wire.ByDoorClose, *s.find().ConfirmedBy, "the first one counts")
		require.Len(s.t, s.listed(wire.CodePickup)[0].Doors, 2)
		var b wire.CloseSession
		require.Equal(s.t, wire.CmdCloseSession, s.Command(&b).Kind)
		require.Equal(s.t, map[uint][]string{a.Doors[0]: {"PK-1"}, a.Doors[1]: {"PK-2"}}, b.Packages, "what the order leaves out was not brought")
	})
	f("what was collected meanwhile is not there again", 2, func(s *story) {
		a := s.open()
		s.doubt(a.Doors[1])
		s.settle(a, wire.Deposited, wire.Unverified)
		require.NoError(s.t, s.remove("PK-1", "relay"))
		_, err := s.resolve(s.open1("deposit_unverified"), "deposit_confirmed")
		if err != nil {
			require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err))
		}
		require.Contains(s.t, s.removals(), "PK-1 removed relay")
	})
	f("not in a cabinet that was stolen", 1, func(s *story) {
		a := s.open()
		s.doubt(a.Doors[0])
		s.end(a, wire.EndDepositUnverified)
		time.Sleep(time.Second)
		_, err := s.Lockers.ReportStolen(ctx, s.staff(), locker.StolenInput{Device: s.ID, Reason: "gone"})
		require.NoError(s.t, err)
		_, err = s.resolve(s.open1("deposit_unverified"), "deposit_confirmed")
		require.Equal(s.t, "DEVICE_DISABLED", code(err))
		_, err = s.Lockers.Confirm(ctx, s.staff(), locker.ConfirmInput{Delivery: locker.DeliveryKey(s.id())})
		require.Equal(s.t, "DEVICE_DISABLED", code(err))
		require.False(s.t, s.find().PickupCodeActive)
	})
	f("not cancelled where a sensor sees it", 1, func(s *story) {
		a := s.open()
		n := a.Doors[0]
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: a.OpeningID, Door: n, Pulses: 1})
		s.Tell(wire.KindDoorClosed, wire.DoorClosed{OpeningID: a.OpeningID, Door: n, OpenMS: 4000, Item: wire.ItemPresent})
		s.doubt(n)
		s.end(a, wire.EndDepositUnverified)
		_, err := s.resolve(s.open1("deposit_unverified"), "deposit_cancelled")
		require.Equal(s.t, "DEVICE_ORDER_STATE_CONFLICT", code(err))
		require.Equal(s.t, cloud.GridOccupied, s.cell(n).State)
	})
	f("a correction left one unverified: more time is for the other", 2, func(s *story) {
		s.settle(s.open())
		_, err := s.correct(func(b asked) {
			s.opened(b)
			s.settle(b, wire.Deposited, wire.Unverified)
		})
		require.NoError(s.t, err)
		synctest.Wait()
		_, err = s.Lockers.ExtendDeviceOrder(ctx, s.staff(), locker.ExtendDeviceOrderInput{ID: s.row("PK-1").ID, Hours: 24})
		require.NoError(s.t, err)
		require.Equal(s.t, []string{"PK-1 stored ", "PK-2 unverified "}, s.removals())
		_, err = s.Lockers.ExtendDeviceOrder(ctx, s.staff(), locker.ExtendDeviceOrderInput{ID: s.row("PK-2").ID, Hours: 24})
		require.Equal(s.t, "DEVICE_ORDER_STATE_CONFLICT", code(err))
	})
}

func TestRemovalsAndWhatFollows(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e")
	f := plays(t)
	for _, reason := range []string{"destroyed", "handover"} {
		f("a part that was removed is collected after all: "+reason, 2, func(s *story) {
			a := s.open()
			s.settle(a)
			require.NoError(s.t, s.remove("PK-1", reason))
			s.pickUp("op_p", 2, nil, a.Doors...)
			require.Equal(s.t, []string{"item_missing high"}, s.exceptions())
			require.Equal(s.t, []string{"PK-1 removed " + reason, "PK-2 picked_up "}, s.removals())
		})
	}
	f("the removed part alone is collected", 2, func(s *story) {
		a := s.open()
		s.settle(a)
		require.NoError(s.t, s.remove("PK-1", "destroyed"))
		s.pickUp("op_p", 2, []uint{a.Doors[1]}, a.Doors[0])
		require.Equal(s.t, []string{"item_missing high"}, s.exceptions())
		s.status(cloud.DeliveryDelivered)
	})
	f("doubts about what was handed over end as found", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.doubt(a.Doors[0])
		s.Tell(wire.KindExceptionOpened, wire.Exception{ID: "x-9", Type: wire.ExItemMissing, Severity: wire.SeverityLow, Door: a.Doors[0], Evidence: "sensor"})
		require.NoError(s.t, s.remove("PK-1", "handover"))
		require.Contains(s.t, s.everyException(), "item_missing resolved package_found")
		require.Contains(s.t, s.everyException(), "deposit_unverified resolved deposit_confirmed")
	})
	f("nothing is found behind a door that stands open", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.Tell(wire.KindExceptionOpened, wire.Exception{ID: "x-9", Type: wire.ExItemMissing, Severity: wire.SeverityHigh, Door: a.Doors[0], Evidence: "sensor"})
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{Door: a.Doors[0]})
		_, err := s.resolve(s.open1("item_missing"), "package_found")
		require.Equal(s.t, "DOOR_OPEN", code(err))
		s.Tell(wire.KindDoorClosed, wire.DoorClosed{Door: a.Doors[0]})
		_, err = s.resolve(s.open1("item_missing"), "package_found")
		require.NoError(s.t, err)
	})
	f("an overdue exception ends by an action of its own type", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.doubt(a.Doors[0])
		s.overdue()
		_, err := s.resolve(s.open1("deposit_unverified"), "deposit_cancelled")
		require.NoError(s.t, err)
		require.Contains(s.t, s.everyException(), "overdue resolved no_action")
	})
	f("what was returned decides, not what was never verified", 2, func(s *story) {
		a := s.open()
		s.doubt(a.Doors[1])
		s.settle(a, wire.Deposited, wire.Unverified)
		s.overdue()
		_, err := s.resolve(s.open1("overdue"), "package_returned")
		require.NoError(s.t, err)
		require.Equal(s.t, []string{"PK-1 removed overdue_return", "PK-2 removed anomaly"}, s.removals())
		s.status(cloud.DeliveryPickedUp)
	})
	f("no message about what cannot be collected", 2, func(s *story) {
		l := s.notifying(cloud.BySMS)
		a := s.open()
		s.doubt(a.Doors[1])
		s.settle(a, wire.Deposited, wire.Unverified)
		_, err := l.ResendDeviceOrderCode(ctx, s.staff(), locker.ResendDeviceOrderCodeInput{ID: s.row("PK-1").ID})
		require.NoError(s.t, err)
		require.Len(s.t, s.sendable(l, time.Hour), 1)
		_, err = l.RemoveDeviceOrder(ctx, s.staff(), locker.RemoveInput{ID: s.row("PK-1").ID, Reason: "handover"})
		require.NoError(s.t, err)
		require.Empty(s.t, s.sendable(l, time.Hour))
	})
	f("the registry knows its exception, in the order of a real cabinet", 1, func(s *story) {
		a := s.open()
		s.doubt(a.Doors[0])
		s.end(a, wire.EndDepositUnverified)
		out, err := s.Lockers.FindDeviceOrder(ctx, s.staff(), locker.ByDeviceOrder{ID: s.row("PK-1").ID})
		require.NoError(s.t, err)
		require.Len(s.t, out.DeviceOrder.Exceptions, 1)
		x, err := s.Lockers.FindCabinetException(ctx, s.staff(), locker.ByException{ID: s.open1("deposit_unverified")})
		require.NoError(s.t, err)
		require.Equal(s.t, "PK-1", x.Exception.DeviceOrder.TrackingNumber)
	})
	f("a cabinet that is gone, with an open door as its last word", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{Door: a.Doors[0], Pulses: 1})
		require.Equal(s.t, "DOOR_OPEN", code(s.remove("PK-1", "destroyed")))
		s.Drop()
		synctest.Wait()
		require.NoError(s.t, s.remove("PK-1", "destroyed"))
	})
	f("a dry run shows rows and reasons, and changes nothing", 1, func(s *story) {
		s.settle(s.open())
		var p cloud.Preview
		_, err := s.Lockers.RemoveDeviceOrder(cloud.WithPreview(ctx, &p), s.staff(), locker.RemoveInput{ID: s.row("PK-1").ID, Reason: "handover"})
		require.NoError(s.t, err)
		shown := false
		for _, e := range p.Effects() {
			shown = shown || e.Type == "device_order" && e.After["status"] == "removed"
		}
		require.True(s.t, shown, "%v", p.Effects())
		require.Equal(s.t, []string{"PK-1 stored "}, s.removals())
		require.Empty(s.t, s.commandKinds())
	})
	f("removals and resolutions at once: one of them is done", 1, func(s *story) {
		s.settle(s.open())
		s.overdue()
		id, o := s.open1("overdue"), s.row("PK-1").ID
		calls := []func() error{
			func() error {
				_, err := s.Lockers.RemoveDeviceOrder(ctx, s.staff(), locker.RemoveInput{ID: o, Reason: "handover"})
				return err
			},
			func() error {
				_, err := s.Lockers.RemoveDeviceOrder(ctx, s.staff(), locker.RemoveInput{ID: o, Reason: "destroyed"})
				return err
			},
			func() error {
				_, err := s.Lockers.ResolveException(ctx, s.staff(), locker.ResolveInput{ID: id, Action: "package_returned"})
				return err
			},
			func() error {
				_, err := s.Lockers.ResolveException(ctx, s.staff(), locker.ResolveInput{ID: id, Action: "package_lost"})
				return err
			},
		}
		done := make(chan error, len(calls))
		for _, call := range calls {
			go func() { done <- call() }()
		}
		good := 0
		for range calls {
			if <-done == nil {
				good++
			}
		}
		require.Equal(s.t, 1, good)
		require.Equal(s.t, []string{"clear " + s.code}, s.sent())
	})
}

// An order whose parcel staff handed to its recipient is delivered; one that was taken out for
// another reason is not.
func TestAnOrderFollowsTheRemovalOfItsParcel(t *testing.T) {
	ring.SkipUnlessCheck(t, "the stories of orders")
	t.Parallel()
	for reason, want := range map[string]cloud.OrderStatus{"handover": cloud.OrderDelivered, "overdue_return": cloud.OrderDeliveryFailed, "destroyed": cloud.OrderDeliveryFailed} {
		carried(t, reason, 1, func(s *parcels) {
			s.settle(s.open())
			require.NoError(s.t, s.remove(s.made.Packages[0].Number, reason))
			require.Equal(s.t, want.String(), s.now().Status)
		})
	}
}

// A preview of a resolution says where the exception is and of which type, for people who decide.
func TestPreviewOfAResolutionNamesThePlace(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		s.Tell(wire.KindExceptionOpened, wire.Exception{ID: "x-2", Type: wire.ExDoorLeftOpen, Severity: wire.SeverityMedium, Door: a.Doors[0], Evidence: "open"})
		s.settle(a)
		id := s.open1("door_left_open")
		var p cloud.Preview
		_, err := s.Lockers.ResolveException(cloud.WithPreview(ctx, &p), s.staff(), locker.ResolveInput{ID: id, Action: "no_action"})
		require.NoError(s.t, err)
		for _, e := range p.Effects() {
			if e.Type == "exception" {
				require.Equal(s.t, []any{"One, " + s.cell(a.Doors[0]).Name(), "door_left_open", "no_action"}, []any{e.Name, e.Kind, e.After["resolution"]})
				return
			}
		}
		s.t.Fatal("the exception is no effect")
	})
}

// Staff list live deliveries and those of tests apart, and each row says what it is.
func TestStaffListDeliveriesByMode(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		var mock cloud.Device
		s.Look(func(v cloud.View) (err error) { mock, err = v.MockOf(s.Box.ProviderCaller.Provider.ID); return err })
		_, err := s.Lockers.Create(ctx, s.Box.ProviderCaller, locker.CreateInput{ReferenceNumber: "TEST-1", DeviceID: mock.ID, Recipient: cloud.Recipient{Name: "Bob", Phone: "+14165550124"},
			Packages: []locker.PackageInput{{TrackingNumber: "T-1", Size: "M"}}})
		require.NoError(s.t, err)
		for ask, want := range map[*bool]map[string]bool{nil: {"R-1": true, "TEST-1": false}, new(true): {"R-1": true}, new(false): {"TEST-1": false}} {
			out, err := s.Lockers.ListStaffDeliveries(ctx, s.staff(), locker.StaffDeliveriesInput{Livemode: ask})
			require.NoError(s.t, err)
			got := map[string]bool{}
			for _, d := range out.Deliveries {
				got[d.ReferenceNumber] = d.Livemode
			}
			require.Equal(s.t, want, got)
		}
	})
}

// What a person approves is looked at for a while: what counts from the moment of the decision
// is the same as it was shown.
func TestAPreviewThatCountsFromNowStaysTheSame(t *testing.T) {
	f := plays(t)
	same := func(s *story, hours any, decide func(ctx context.Context) error) {
		marks := func() cloud.Marks {
			var p cloud.Preview
			require.NoError(s.t, decide(cloud.WithPreview(ctx, &p)))
			var said []any
			for _, e := range p.Effects() {
				if in, ok := e.After["due_in_hours"]; ok {
					said = append(said, in)
				}
			}
			require.NotEmpty(s.t, said)
			require.Equal(s.t, hours, said[0])
			return p.Marks()
		}
		shown := marks()
		time.Sleep(3 * time.Second)
		require.Equal(s.t, shown, marks())
		time.Sleep(4 * time.Minute)
		require.Equal(s.t, shown, marks())
	}
	f("a deposit that a person confirms", 1, func(s *story) {
		a := s.open()
		s.doubt(a.Doors...)
		s.end(a, wire.EndDepositUnverified)
		id := s.open1("deposit_unverified")
		same(s, 72, func(ctx context.Context) error {
			_, err := s.Lockers.ResolveException(ctx, s.staff(), locker.ResolveInput{ID: id, Action: "deposit_confirmed"})
			return err
		})
	})
	f("a delivery whose time a person ends", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		id := locker.DeliveryKey(fmt.Sprint(s.find().DeliveryID))
		same(s, 0, func(ctx context.Context) error {
			_, err := s.Lockers.ExpireDelivery(ctx, s.staff(), locker.EndInput{Delivery: id, Reason: "x"})
			return err
		})
	})
}
