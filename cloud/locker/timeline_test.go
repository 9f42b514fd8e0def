package locker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// timeline is PK-1's, folded; every event of it is held to the rules of ingest.
func (s *story) timeline() otep.Timeline {
	s.t.Helper()
	timeline, err := s.Store.FindTimeline(ctx, "PK-1", nil)
	sh, rows := timeline.Shipment, timeline.Events
	require.NoError(s.t, err)
	var events []otep.Event
	for _, r := range rows {
		events = append(events, r.Event)
	}
	t := otep.Fold(sh.Profile, otep.Subject{TrackingNumber: sh.Number}, events)
	for i := range t.Events {
		e := t.Events[i]
		read, report, err := otep.Check(t.Subject, []otep.Event{e}, time.Now())
		require.NoError(s.t, err)
		require.Empty(s.t, report.Errors)
		require.Equal(s.t, e, read[0].Fill(sh.Profile), "canonical as it stands")
	}
	return t
}

// moves are the codes with source and reason.
func (s *story) moves() (out []string) {
	s.t.Helper()
	for _, e := range s.timeline().Events {
		out = append(out, strings.TrimSpace(string(e.StatusCode)+" "+e.Source.Type+" "+e.IncidentReason))
	}
	return out
}

// What of the platform's events becomes which event of a timeline (OTEP 14).
func TestLockerEventsBecomeTimelineEvents(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e and the other stories of this package")
	t.Parallel()
	f := func(name string, play func(s *story), want ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(t, 1, nil, func(s *story) {
				time.Sleep(time.Minute) // doors close a little before their record
				play(s)
				require.Equal(s.t, append([]string{"information_submitted partner"}, want...), s.moves())
			})
		})
	}
	f("created by a partner", func(*story) {})
	f("doors opened", func(s *story) { s.open() })
	f("deposit", func(s *story) { s.settle(s.open()) }, "x-available_for_pickup locker")
	f("collected", func(s *story) {
		a := s.open()
		s.settle(a)
		s.pickUp("op_p", 2, nil, a.Doors...)
		require.True(s.t, s.timeline().Delivered)
	}, "x-available_for_pickup locker", "delivered locker")
	f("not collected in time", func(s *story) {
		s.settle(s.open())
		s.soon(time.Minute)
		time.Sleep(3 * time.Minute)
	}, "x-available_for_pickup locker", "x-pickup_overdue locker pickup_expired")
	f("taken out in a correction", func(s *story) {
		a := s.open()
		s.settle(a)
		_, err := s.correct(func(b asked) {
			s.opened(b)
			s.Tell(wire.KindOpeningSettled, wire.OpeningSettled{OpeningID: b.OpeningID, ConfirmedBy: wire.ByDoorClose,
				Packages: []wire.SettledPackage{{Ref: "PK-1", Door: b.Doors[0], Outcome: wire.Failed, FailureCode: "NOT_DEPOSITED"}}})
		})
		require.NoError(s.t, err)
	}, "x-available_for_pickup locker", "x-removed_from_device locker")
	f("failed", func(s *story) { s.failDoors() }, "out_for_delivery locker", "delivery_failed locker device_fault")
	f("failed, on its way before", func(s *story) {
		s.Tell(wire.KindTrackingEvent, wire.TrackingEvent{Subject: "PK-1", StatusCode: "in_transit"})
		time.Sleep(time.Second)
		s.failDoors()
	}, "in_transit locker", "delivery_failed locker device_fault")
	f("unverified", func(s *story) { s.end(s.open(), wire.EndDepositUnverified) })
	f("cancelled", func(s *story) { require.NoError(s.t, s.cancel()) })
}

// Why a package could not be put in, as the cabinet says it.
func TestFailureCodesBecomeReasons(t *testing.T) {
	t.Parallel()
	for code, reason := range map[string]string{"NO_COMPARTMENT": "device_full", "COMPARTMENT_OCCUPIED": "device_full", "DOOR_NOT_OPENED": "device_fault", "DEVICE_OFFLINE": "device_fault",
		"PARCEL_TOO_LARGE": "oversize", "RECIPIENT_UNKNOWN": "address_incorrect", "ANOTHER": "other", "": "other"} {
		tell(t, 2, nil, func(s *story) {
			a := s.open()
			b := wire.OpeningSettled{OpeningID: a.OpeningID, ConfirmedBy: wire.ByDoorClose}
			for _, n := range a.Doors {
				b.Doors = append(b.Doors, wire.SettledDoor{Door: n, OpenedAt: time.Now().UnixNano(), ClosedAt: time.Now().UnixNano()})
				for _, ref := range a.Packages[n] {
					p := wire.SettledPackage{Ref: ref, Door: n, Outcome: wire.Deposited}
					if ref == "PK-1" {
						p.Outcome, p.FailureCode = wire.Failed, code
					}
					b.Packages = append(b.Packages, p)
				}
			}
			s.Tell(wire.KindOpeningSettled, b)
			require.Equal(s.t, []string{"information_submitted partner", "out_for_delivery locker", "delivery_failed locker " + reason}, s.moves(), code)
		})
	}
}

// failDoors is a delivery of which every door fails to open.
func (s *story) failDoors() {
	s.t.Helper()
	for range 12 { // as long as another compartment fits
		if s.find().Status == cloud.DeliveryFailed {
			return
		}
		a := s.ask()
		s.begin(a)
		s.outcome(a.id, wire.OutcomeFailed, map[uint]string{a.Doors[0]: "DOOR_OPEN_FAILED"})
		s.end(a, wire.EndOpenFailed)
	}
	s.status(cloud.DeliveryFailed)
}

// Events made at a device pass what a partner's events pass.
func TestEventsOfDevicesAreNormalised(t *testing.T) {
	t.Parallel()
	tell(t, 1, nil, func(s *story) {
		at := time.Now()
		say := func(b wire.TrackingEvent) {
			s.t.Helper()
			time.Sleep(time.Second)
			s.Tell(wire.KindTrackingEvent, b)
		}
		say(wire.TrackingEvent{Subject: "pk-1", StatusCode: "otep:universal:arrival_scan", Location: "Dock 3", Extensions: map[string]string{"lane": "4"}})
		events := s.timeline().Events
		last := events[len(events)-1]
		require.Equal(s.t, otep.ArrivalScan, last.StatusCode)
		require.Equal(s.t, otep.PhaseInbound, last.Phase)
		require.Equal(s.t, "Dock 3", last.Location.Name)
		require.Equal(s.t, otep.Extensions{"lane": "4"}, last.Extensions)
		require.True(s.t, last.OccurredAt.After(at))
		say(wire.TrackingEvent{Subject: "PK-1", StatusCode: "refused"})
		require.Equal(s.t, otep.RejectedByRecipient, *s.timeline().Current, "an accepted spelling")
		require.Empty(s.t, s.Faults())

		before := s.moves()
		for i, bad := range []wire.TrackingEvent{
			{Subject: "PK-1", StatusCode: "nonsense"}, {Subject: "PK-1"}, {Subject: "PK-1", StatusCode: "x-unheard_of"},
			{Subject: "PK-1", StatusCode: "otep:phase:delivered"}, {Subject: "PK-1", StatusCode: "in_transit", Extensions: map[string]string{"k": strings.Repeat("x", otep.MaxExtensionsBytes)}},
		} {
			say(bad)
			require.EqualValues(s.t, i+1, s.Faults()[cloud.DevBadBatch].Count, "%+v", bad)
		}
		require.Equal(s.t, before, s.moves())

		// A label of the carrier's names the newest parcel of the business.
		require.NoError(s.t, s.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
			sh, err := v.ShipmentByNumber("PK-1")
			require.NoError(s.t, err)
			sh.External = "UPS-7"
			other := cloud.Shipment{ID: 9001, BusinessID: sh.BusinessID + 1, Number: "ELSEWHERE", External: "UPS-8", Profile: "parcel"}
			return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{sh, other}}}, nil
		}))
		say(wire.TrackingEvent{Subject: "ups-7", StatusCode: "return_to_sender"})
		require.Equal(s.t, append(slices.Clone(before), "return_to_sender locker"), s.moves())
		say(wire.TrackingEvent{Subject: "UPS-8", StatusCode: "in_transit"})
		say(wire.TrackingEvent{Subject: "ELSEWHERE", StatusCode: "in_transit"})
		require.EqualValues(s.t, 2, s.Faults()[cloud.DevUnknownLabel].Count)
		require.Equal(s.t, "ELSEWHERE; UPS-8", s.Faults()[cloud.DevUnknownLabel].Detail, "the newest first")
		say(wire.TrackingEvent{Subject: "UPS-8", StatusCode: "in_transit"})
		require.Equal(s.t, "UPS-8; ELSEWHERE", s.Faults()[cloud.DevUnknownLabel].Detail, "each once")
		say(wire.TrackingEvent{Subject: "NO\x00WHERE" + strings.Repeat("x", 2000), StatusCode: "in_transit", Location: "Dock 3"})
		require.EqualValues(s.t, 4, s.Faults()[cloud.DevUnknownLabel].Count)
		require.True(s.t, strings.HasSuffix(s.Faults()[cloud.DevUnknownLabel].Detail, "x…; UPS-8; ELSEWHERE"))
		for n := range 300 {
			say(wire.TrackingEvent{Subject: fmt.Sprint("NONE-", n), StatusCode: "in_transit"})
		}
		require.Less(s.t, len(s.Faults()[cloud.DevUnknownLabel].Detail), 2010)
		require.True(s.t, strings.HasPrefix(s.Faults()[cloud.DevUnknownLabel].Detail, "NONE-299; NONE-298; "))
		require.NotContains(s.t, s.Faults()[cloud.DevUnknownLabel].Detail, "\x00")
		require.NotContains(s.t, s.Faults(), cloud.DevForeignReference)
	})
}

// A cabinet without a clock reports a deposit and its collection: whatever they are placed
// by, the collection comes after the deposit.
func TestACollectionWithoutAClockFollowsItsDeposit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := devicetest.New(t, nil)
		defer w.Stop()
		s := &story{t: t, World: w, Device: w.Connect("CAB-1", nil)}
		s.Greet(nil)
		s.Tell(wire.KindConfigApplied, wire.ConfigApplied{Version: 1, Result: wire.ResultOK}) // what was placed last
		time.Sleep(10 * time.Second)
		s.code = s.create("R-1", 1).DeliveryNumber
		synctest.Wait()
		say := func(kind wire.Kind, body any) {
			s.Mono += 1e9
			b := s.Batch(wire.Settlement, wire.MustEncode(wire.Record{Kind: kind, At: s.Mono, Boot: s.Boot, Mono: s.Mono, Body: wire.MustEncode(body)}))
			b.Sent = wire.Sample{Boot: s.Boot, Mono: s.Mono, Wall: s.Mono}
			s.Sign(&b)
			s.Up(wire.MustEncode(b))
			synctest.Wait()
		}
		say(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_local", Kind: wire.OpenDeposit, Doors: []uint{1}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
		say(wire.KindOpeningSettled, wire.OpeningSettled{OpeningID: "op_local", ConfirmedBy: wire.ByDoorClose, Doors: []wire.SettledDoor{{Door: 1, OpenedAt: s.Mono - 9e8, ClosedAt: s.Mono - 2e8}},
			Packages: []wire.SettledPackage{{Ref: "PK-1", Door: 1, Outcome: wire.Deposited}}})
		s.status(cloud.DeliveryDelivered)
		say(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_pick", Kind: wire.OpenPickup, Doors: []uint{1}, CommandID: wire.LocalCommand, Who: "recipient", DeliveryRef: s.code})
		say(wire.KindPickupCompleted, wire.PickupCompleted{DeliveryRef: s.code, OpeningID: "op_pick", Doors: []uint{1}, How: "keypad", CodeNumber: 1, ListNumber: 2})
		s.status(cloud.DeliveryPickedUp)
		events := s.timeline().Events
		require.Equal(t, otep.Delivered, events[len(events)-1].StatusCode)
	})
}

// A clock that stepped back between a deposit and its collection, as nodes' clocks differ,
// does not put the collection before the deposit.
func TestACollectionComesAfterItsDepositWhateverTheClockSays(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		s.settle(a)
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_p", Kind: wire.OpenPickup, Doors: a.Doors, CommandID: wire.LocalCommand, Who: "recipient", DeliveryRef: s.code})
		l := wire.KindPickupCompleted.Lane()
		b := s.Batch(l, s.Record(wire.KindPickupCompleted, wire.PickupCompleted{DeliveryRef: s.code, OpeningID: "op_p", Doors: a.Doors, How: "keypad", ListNumber: 2}))
		b.Sent.Wall -= int64(3 * time.Second) // another node gave it the time
		s.Sign(&b)
		s.Up(wire.MustEncode(b))
		synctest.Wait()
		s.Look(func(v cloud.View) error {
			d, err := v.Delivery(s.find().DeliveryID)
			require.Equal(s.t, cloud.DeliveryPickedUp, d.Status)
			require.True(s.t, d.PickedUpAt.After(d.DepositedAt), "%s, %s", d.PickedUpAt, d.DepositedAt)
			return err
		})
	})
}
