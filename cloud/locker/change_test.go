package locker_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// during plays the cabinet's part while an operation waits for it.
func during[Out any](s *story, ask func() (Out, error), play func(a asked)) (Out, error) {
	s.t.Helper()
	type answer struct {
		out Out
		err error
	}
	done := make(chan answer, 1)
	go func() {
		out, err := ask()
		done <- answer{out, err}
	}()
	var a asked
	a.id = s.Command(&a.OpenDoors).CommandID
	play(a)
	got := <-done
	return got.out, got.err
}

func (s *story) correct(play func(a asked), grids ...cloud.GridID) (locker.CorrectOutput, error) {
	s.t.Helper()
	return during(s, func() (locker.CorrectOutput, error) {
		return s.Lockers.Correct(ctx, s.Box.ProviderCaller, locker.CorrectInput{Delivery: "ref:R-1", Reason: "wrong_parcel", Compartments: grids})
	}, play)
}

// opened is the cabinet's answer to an opening: all doors open.
func (s *story) opened(a asked) {
	s.t.Helper()
	s.begin(a)
	s.outcome(a.id, wire.OutcomeDone, nil)
}

func (s *story) refusedCorrection() string {
	_, err := s.Lockers.Correct(ctx, s.Box.ProviderCaller, locker.CorrectInput{Delivery: "ref:R-1", Reason: "wrong_parcel"})
	return code(err)
}

func TestCorrection(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e and the other stories of this package")
	f := plays(t)
	f("reopened and confirmed again", 2, func(s *story) {
		a := s.open()
		s.settle(a)
		deposited := *s.find().DepositedAt
		time.Sleep(10 * time.Minute)
		var b asked
		out, err := s.correct(func(x asked) { b = x; s.opened(x) })
		require.NoError(s.t, err)
		require.Equal(s.t, wire.OpenCorrection, b.Kind)
		require.ElementsMatch(s.t, a.Doors, b.Doors)
		require.Equal(s.t, wire.OpenCorrection, out.Opening.Kind)
		require.Equal(s.t, "wrong_parcel", out.Correction.Reason)
		require.Equal(s.t, stamp(s.t, deposited).Add(15*time.Minute), stamp(s.t, *out.Correction.WindowEndsAt))
		d := s.find()
		require.Equal(s.t, cloud.DeliveryCorrecting, d.Status)
		require.False(s.t, d.PickupCodeActive, "inactive while open")
		require.Equal(s.t, cloud.PackageCorrecting, d.Packages[0].Status)
		s.settle(b)
		d = s.find()
		require.Equal(s.t, cloud.DeliveryDelivered, d.Status)
		require.True(s.t, d.PickupCodeActive)
		require.Equal(s.t, deposited, *d.DepositedAt)
		require.Equal(s.t, []string{"PK-1 stored", "PK-2 stored"}, s.orders())
		s.told("doors_opened", "delivered", "correction_reopened", "delivered")
		_, bodies := s.events()
		require.NotNil(s.t, bodies["delivered"]["data"].(map[string]any)["correction"])
		s.pickUp("op_p", 2, nil, a.Doors...)
		s.status(cloud.DeliveryPickedUp)
	})
	f("one compartment of two", 2, func(s *story) {
		a := s.open()
		s.settle(a)
		grid := s.cell(a.Doors[1]).GridID
		_, err := s.correct(func(b asked) {
			require.Equal(s.t, a.Doors[1:], b.Doors)
			s.opened(b)
			s.settle(b)
		}, grid)
		require.NoError(s.t, err)
		require.ElementsMatch(s.t, a.Doors, s.listed(wire.CodePickup)[0].Doors, "the code opens both")
		_, err = s.Lockers.Correct(ctx, s.Box.ProviderCaller, locker.CorrectInput{Delivery: "ref:R-1", Reason: "x", Compartments: []cloud.GridID{s.cell(4).GridID}})
		require.Equal(s.t, "GRID_NOT_FOUND", code(err), "only the delivery's own")
	})
	f("too early, too late, too often, offline, without a reason", 1, func(s *story) {
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", s.refusedCorrection())
		a := s.open()
		s.settle(a)
		_, err := checktest.Given(s.Lockers.Correct)(ctx, s.Box.ProviderCaller, locker.CorrectInput{Delivery: "ref:R-1"})
		require.Equal(s.t, "VALIDATION_FAILED", code(err))
		for range 3 {
			_, err := s.correct(func(b asked) { s.opened(b); s.settle(b) })
			require.NoError(s.t, err)
		}
		require.Equal(s.t, "CORRECTION_LIMIT", s.refusedCorrection())
		time.Sleep(15 * time.Minute)
		require.Equal(s.t, "CORRECTION_WINDOW_CLOSED", s.refusedCorrection())
	})
	f("offline", 1, func(s *story) {
		s.settle(s.open())
		s.Drop()
		time.Sleep(2 * time.Minute)
		require.Equal(s.t, "DEVICE_OFFLINE", s.refusedCorrection())
		s.status(cloud.DeliveryDelivered)
	})
	f("the door did not open: nothing has changed", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		_, err := s.correct(func(b asked) {
			s.begin(b)
			s.outcome(b.id, wire.OutcomeFailed, map[uint]string{b.Doors[0]: wire.DoorOpenFailed})
			s.end(b, wire.EndOpenFailed)
		})
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err))
		d := s.find()
		require.Equal(s.t, cloud.DeliveryDelivered, d.Status)
		require.True(s.t, d.PickupCodeActive)
		require.Equal(s.t, d.DeliveryID, s.cell(a.Doors[0]).DeliveryID, "the parcel lies inside")
		s.told("doors_opened", "delivered")
		_, err = s.correct(func(b asked) { s.opened(b); s.settle(b) })
		require.NoError(s.t, err, "and it does not count")
	})
	f("taken out", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		_, err := s.correct(func(b asked) {
			s.opened(b)
			s.Tell(wire.KindOpeningSettled, wire.OpeningSettled{OpeningID: b.OpeningID, ConfirmedBy: wire.ByDoorClose,
				Packages: []wire.SettledPackage{{Ref: "PK-1", Door: b.Doors[0], Outcome: wire.Failed, FailureCode: "NOT_DEPOSITED"}}})
		})
		require.NoError(s.t, err)
		d := s.find()
		require.Equal(s.t, cloud.DeliveryFailed, d.Status)
		require.Equal(s.t, "NOT_DEPOSITED", d.Packages[0].FailureCode)
		require.Equal(s.t, cloud.GridFree, s.cell(a.Doors[0]).State)
		require.Empty(s.t, s.listed(wire.CodePickup))
		require.Equal(s.t, []string{"PK-1 removed"}, s.orders())
		s.told("doors_opened", "delivered", "correction_reopened", "delivery_failed")
	})
	f("one of two taken out", 2, func(s *story) {
		a := s.open()
		s.settle(a)
		_, err := s.correct(func(b asked) {
			s.opened(b)
			s.Tell(wire.KindOpeningSettled, wire.OpeningSettled{OpeningID: b.OpeningID, ConfirmedBy: wire.ByDoorClose, Packages: []wire.SettledPackage{
				{Ref: "PK-1", Door: b.Doors[0], Outcome: wire.Deposited}, {Ref: "PK-2", Door: b.Doors[1], Outcome: wire.Failed, FailureCode: "NOT_DEPOSITED"}}})
		})
		require.NoError(s.t, err)
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, []string{"PK-1 stored", "PK-2 removed"}, s.orders())
		require.Equal(s.t, a.Doors[:1], s.listed(wire.CodePickup)[0].Doors)
		s.told("doors_opened", "delivered", "correction_reopened", "delivered", "delivery_failed")
	})
	f("one of two reported as taken out", 2, func(s *story) {
		a := s.open()
		s.settle(a)
		fail := func(numbers ...string) string {
			in := locker.FailInput{Delivery: "ref:R-1"}
			for _, n := range numbers {
				in.Packages = append(in.Packages, locker.FailPackage{TrackingNumber: n, FailureCode: "RECIPIENT_UNKNOWN"})
			}
			_, err := s.Lockers.Fail(ctx, s.Box.ProviderCaller, in)
			return code(err)
		}
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", fail("PK-2"), "no door is open")
		var b asked
		_, err := s.correct(func(x asked) { b = x; s.opened(x) }, s.cell(a.Doors[1]).GridID)
		require.NoError(s.t, err)
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", fail("PK-1"), "its door is shut")
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", fail("PK-1", "PK-2"), "nothing would be left")
		_, err = s.Lockers.Cancel(ctx, s.Box.ProviderCaller, locker.CancelInput{Delivery: "ref:R-1", Reason: "x"})
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err))
		require.Empty(s.t, fail("PK-2"))
		require.Empty(s.t, fail("PK-2"), "said again")
		s.end(b, wire.EndDepositUnverified)
		d := s.find()
		require.Equal(s.t, cloud.DeliveryDelivered, d.Status)
		require.Equal(s.t, []cloud.PackageStatus{cloud.PackageInCompartment, cloud.PackageFailed}, []cloud.PackageStatus{d.Packages[0].Status, d.Packages[1].Status})
		require.Equal(s.t, []string{"PK-1 stored", "PK-2 removed"}, s.orders())
		s.told("doors_opened", "delivered", "correction_reopened", "delivered", "delivery_failed")
		_, err = s.correct(func(b asked) { require.Equal(s.t, a.Doors[:1], b.Doors); s.opened(b); s.settle(b) })
		require.NoError(s.t, err, "of what is left")
		s.told("doors_opened", "delivered", "correction_reopened", "delivered", "delivery_failed", "correction_reopened", "delivered")
	})
	f("one of two reported as taken out, of which its door tells nothing", 2, func(s *story) {
		a := s.open()
		s.settle(a)
		var b asked
		_, err := s.correct(func(x asked) { b = x; s.opened(x) }, s.cell(a.Doors[1]).GridID)
		require.NoError(s.t, err)
		_, err = s.Lockers.Fail(ctx, s.Box.ProviderCaller, locker.FailInput{Delivery: "ref:R-1", Packages: []locker.FailPackage{{TrackingNumber: "PK-2", FailureCode: "RECIPIENT_UNKNOWN"}}})
		require.NoError(s.t, err)
		b.Packages = map[uint][]string{b.Doors[0]: {"PK-2"}} // as the cabinet has it
		s.settle(b)
		require.Equal(s.t, []string{"PK-1 stored", "PK-2 removed"}, s.orders())
		s.pickUp("op_p", 2, nil, a.Doors...) // the code opens both
		s.status(cloud.DeliveryPickedUp)
		require.Empty(s.t, s.exceptions(), "nothing is missing")
		require.Equal(s.t, cloud.GridFree, s.cell(a.Doors[1]).State)
	})
	f("one reported as taken out whose door stayed shut", 2, func(s *story) {
		a := s.open()
		s.settle(a)
		_, err := s.correct(func(b asked) {
			s.begin(b)
			s.outcome(b.id, wire.OutcomePartial, map[uint]string{b.Doors[1]: wire.DoorOpenFailed})
		})
		require.NoError(s.t, err)
		fail := func(number string) string {
			_, err := s.Lockers.Fail(ctx, s.Box.ProviderCaller, locker.FailInput{Delivery: "ref:R-1", Packages: []locker.FailPackage{{TrackingNumber: number, FailureCode: "RECIPIENT_UNKNOWN"}}})
			return code(err)
		}
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", fail("PK-2"), "it lies inside")
		require.Empty(s.t, fail("PK-1"))
	})
	f("the cabinet lost its store meanwhile", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		_, err := s.correct(s.opened)
		require.NoError(s.t, err)
		old := s.Epoch
		s.NewEpoch([16]byte{9}, nil)
		s.Boot++
		s.Tell(wire.KindGap, wire.Gap{Epoch: old, Reason: wire.GapStoreDamaged})
		d := s.find()
		require.Equal(s.t, cloud.DeliveryDelivered, d.Status, "not correcting for ever")
		require.True(s.t, d.PickupCodeActive)
		require.Equal(s.t, []string{"deposit_unverified medium"}, s.exceptions())
	})
	f("a partner's word ends it", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		_, err := s.correct(s.opened)
		require.NoError(s.t, err)
		require.NoError(s.t, s.confirm())
		require.Equal(s.t, wire.ByPartnerAPI, *s.find().ConfirmedBy)
		s.status(cloud.DeliveryDelivered)
	})
}

func (s *story) reassign(in locker.ReassignInput, play func(a asked)) (locker.OpenOutput, error) {
	s.t.Helper()
	in.Delivery = "ref:R-1"
	return during(s, func() (locker.OpenOutput, error) { return s.Lockers.Reassign(ctx, s.Box.ProviderCaller, in) }, play)
}

func TestReassign(t *testing.T) {
	f := plays(t)
	f("while an opening runs: let go when it has ended", 1, func(s *story) {
		a := s.open()
		var b asked
		out, err := s.reassign(locker.ReassignInput{Size: "M", Reason: "too small"}, func(x asked) { b = x; s.opened(x) })
		require.NoError(s.t, err)
		require.Equal(s.t, wire.OpenReassign, b.Kind)
		require.Equal(s.t, a.OpeningID, b.Replaces)
		require.NotEqual(s.t, a.Doors, b.Doors)
		require.NotNil(s.t, out.PickupCode)
		require.Equal(s.t, cloud.GridReserved, s.cell(a.Doors[0]).State, "its door may be open")
		require.Equal(s.t, b.Doors, s.listed(wire.CodeDelivery)[0].Doors)
		s.end(a, wire.EndCancelled)
		require.Equal(s.t, cloud.GridFree, s.cell(a.Doors[0]).State)
		s.settle(b)
		s.status(cloud.DeliveryDelivered)
		s.told("doors_opened", "doors_opened", "delivered")
	})
	f("before doors opened, into a named compartment", 2, func(s *story) {
		grid := s.cell(4).GridID
		_, err := s.reassign(locker.ReassignInput{GridID: grid}, func(b asked) {
			require.Equal(s.t, []uint{4}, b.Doors)
			require.Equal(s.t, map[uint][]string{4: {"PK-1", "PK-2"}}, b.Packages)
			require.Empty(s.t, b.Replaces)
			s.opened(b)
			s.settle(b)
		})
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.GridFree, s.cell(1).State)
		require.Equal(s.t, cloud.GridFree, s.cell(2).State)
		s.status(cloud.DeliveryDelivered)
	})
	f("the cabinet never took it: the former opening settles", 1, func(s *story) {
		a := s.open()
		_, err := s.reassign(locker.ReassignInput{Size: "M"}, func(asked) {})
		if err == nil { // the wait of ten seconds ended first
			time.Sleep(15 * time.Second)
		}
		s.settle(a)
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, cloud.GridOccupied, s.cell(a.Doors[0]).State)
		for n := uint(2); n <= 4; n++ {
			require.Equal(s.t, cloud.GridFree, s.cell(n).State, "what was reserved for it is free again")
		}
	})
	f("the former door did not open, as is reported later", 1, func(s *story) {
		a := s.open()
		var b asked
		_, err := s.reassign(locker.ReassignInput{Size: "M"}, func(x asked) { b = x; s.opened(x) })
		require.NoError(s.t, err)
		s.end(a, wire.EndOpenFailed)
		require.Equal(s.t, cloud.GridBlocked, s.cell(a.Doors[0]).State)
		require.Equal(s.t, s.cell(b.Doors[0]).GridID, *s.find().Packages[0].GridID, "it stays where it was moved")
		require.Equal(s.t, b.Doors, s.listed(wire.CodeDelivery)[0].Doors)
		s.settle(b)
		s.status(cloud.DeliveryDelivered)
	})
	f("refusals", 1, func(s *story) {
		try := func(in locker.ReassignInput) string {
			in.Delivery = "ref:R-1"
			_, err := s.Lockers.Reassign(ctx, s.Box.ProviderCaller, in)
			return code(err)
		}
		require.Equal(s.t, "VALIDATION_FAILED", try(locker.ReassignInput{}))
		require.Equal(s.t, "VALIDATION_FAILED", try(locker.ReassignInput{Size: "M", GridID: 1}))
		require.Equal(s.t, "GRID_NOT_FOUND", try(locker.ReassignInput{GridID: 999999}))
		require.Equal(s.t, "GRID_NOT_FREE", try(locker.ReassignInput{GridID: s.cell(1).GridID}))
		require.Equal(s.t, "PARCEL_TOO_LARGE", try(locker.ReassignInput{Size: "XL"}))
		s.settle(s.open())
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", try(locker.ReassignInput{Size: "M"}))
	})
}

func (s *story) fail(body string) error {
	in := locker.FailInput{}
	require.NoError(s.t, json.Unmarshal([]byte(body), &in))
	in.Delivery = "ref:R-1"
	_, err := checktest.Given(s.Lockers.Fail)(ctx, s.Box.ProviderCaller, in)
	return err
}

func TestFail(t *testing.T) {
	f := plays(t)
	f("before doors opened", 2, func(s *story) {
		require.NoError(s.t, s.fail(`{"packages":[{"tracking_number":"PK-1","failure_code":"PARCEL_TOO_LARGE"},{"tracking_number":"PK-2","failure_code":"OTHER"}],"note":"no room"}`))
		d := s.find()
		require.Equal(s.t, cloud.DeliveryFailed, d.Status)
		require.Equal(s.t, "PARCEL_TOO_LARGE", d.Packages[0].FailureCode)
		require.Equal(s.t, "OTHER", d.Packages[1].FailureCode)
		_, bodies := s.events()
		var codes []any
		for _, p := range bodies["delivery_failed"]["data"].(map[string]any)["packages"].([]any) {
			codes = append(codes, p.(map[string]any)["failure_code"])
		}
		require.Equal(s.t, []any{"PARCEL_TOO_LARGE", "OTHER"}, codes, "each package's own is sent")
		require.Equal(s.t, cloud.GridFree, s.cell(1).State)
		require.Empty(s.t, s.listed(wire.CodeDelivery))
		s.told("delivery_failed")
		s.settle(s.open()) // tried again
		s.told("delivery_failed", "doors_opened", "delivered")
		require.Equal(s.t, cloud.PackageInCompartment, s.find().Packages[1].Status)
	})
	f("with doors opened, once the cabinet has answered", 1, func(s *story) {
		a := s.open()
		done := make(chan error, 1)
		go func() { done <- s.fail(`{"failure_code":"COURIER_ABORTED"}`) }()
		var body wire.CloseSession
		c := s.Command(&body)
		require.Equal(s.t, wire.CloseCancel, body.How)
		s.status(cloud.DeliveryDoorsOpened)
		s.outcome(c.CommandID, wire.OutcomeDone, nil)
		require.NoError(s.t, <-done)
		d := s.find()
		require.Equal(s.t, cloud.DeliveryFailed, d.Status)
		require.Equal(s.t, "COURIER_ABORTED", d.Packages[0].FailureCode)
		s.end(a, wire.EndCancelled)
		require.Equal(s.t, cloud.GridFree, s.cell(a.Doors[0]).State)
		s.told("doors_opened", "delivery_failed")
	})
	f("with no network, after the deposit", 1, func(s *story) {
		a := asked{wire.OpenDoors{OpeningID: "op_own", Kind: wire.OpenDeposit, Doors: []uint{1}, Packages: map[uint][]string{1: {"PK-1"}}}, wire.LocalCommand}
		began := s.Record(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: a.OpeningID, Kind: a.Kind, Doors: a.Doors, CommandID: a.id, Who: "courier", DeliveryRef: s.code, Packages: a.Packages})
		time.Sleep(20 * time.Second)
		require.NoError(s.t, s.fail(`{"failure_code":"OTHER"}`))
		require.Equal(s.t, otep.DeliveryFailed, *s.timeline().Current)
		s.Send(wire.KindOpeningStarted.Lane(), began)
		s.Ack()
		s.settle(a)
		s.status(cloud.DeliveryDelivered)
		now := s.timeline()
		require.Equal(s.t, otep.AvailableForPickup, *now.Current, "the failure is taken back")
		require.False(s.t, slices.ContainsFunc(now.Events, func(e otep.Event) bool { return e.StatusCode == otep.DeliveryFailed }))
		s.Look(func(v cloud.View) error {
			sh, err := v.ShipmentByNumber("PK-1")
			require.NoError(s.t, err)
			require.Equal(s.t, otep.AvailableForPickup, sh.Current)
			gone, err := v.WithdrawnEvents(sh.ID, time.Time{}, time.Time{})
			require.Len(s.t, gone, 2)
			require.Equal(s.t, []string{otep.DidNotOccur, "locker"}, []string{gone[0].Reason, gone[0].By})
			return err
		})
	})
	f("with no network, by a courier whose door is seen open afterwards", 1, func(s *story) {
		a := asked{wire.OpenDoors{OpeningID: "op_own", Kind: wire.OpenDeposit, Doors: []uint{1}, Packages: map[uint][]string{1: {"PK-1"}}}, wire.LocalCommand}
		time.Sleep(time.Second)
		began := s.Record(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: a.OpeningID, Kind: a.Kind, Doors: a.Doors, CommandID: a.id, Who: "courier", DeliveryRef: s.code, Packages: a.Packages})
		s.Send(wire.KindOpeningStarted.Lane(), began)
		s.Ack()
		time.Sleep(time.Second)
		var d cloud.Delivery // fails at the provider's word, which the cabinet does not hear
		s.Look(func(v cloud.View) (err error) { d, err = v.Delivery(s.find().DeliveryID); return err })
		d.Status, d.FailedAt, d.FailureCode = cloud.DeliveryFailed, time.Now(), "PARCEL_TOO_LARGE"
		d.Packages[0].Status, d.Packages[0].FailureCode = cloud.PackageFailed, d.FailureCode
		s.write(cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d}}})
		time.Sleep(time.Second)
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: a.OpeningID, Door: a.Doors[0], Pulses: 1})
		s.settle(a)
		require.Contains(s.t, s.everyException(), wire.ExDepositUnverified, "staff are to look")
	})
	f("with doors opened, of which the cloud learns after the report", 1, func(s *story) {
		a := s.ask()
		s.begin(a)
		done := make(chan error, 1)
		go func() { done <- s.fail(`{"failure_code":"PARCEL_TOO_LARGE"}`) }()
		var body wire.CloseSession
		c := s.Command(&body)
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: a.OpeningID, Door: a.Doors[0], Pulses: 1})
		s.outcome(c.CommandID, wire.OutcomeDone, nil)
		<-done
		d := s.find()
		require.Equal(s.t, cloud.DeliveryFailed, d.Status)
		require.Equal(s.t, "PARCEL_TOO_LARGE", d.Packages[0].FailureCode)
		s.told("doors_opened", "delivery_failed")
	})
	f("with doors opened, and the deposit comes first", 1, func(s *story) {
		a := s.open()
		done := make(chan error, 1)
		go func() { done <- s.fail(`{"failure_code":"PARCEL_TOO_LARGE"}`) }()
		var body wire.CloseSession
		c := s.Command(&body)
		s.settle(a)
		s.outcome(c.CommandID, wire.OutcomeDone, nil)
		<-done
		s.status(cloud.DeliveryDelivered)
		s.told("doors_opened", "delivered")
		require.Equal(s.t, []string{"deposit_unverified low"}, s.exceptions(), "a closed door says one thing, the courier another")
	})
	f("with doors opened, the cabinet offline", 1, func(s *story) {
		s.open()
		s.Drop()
		time.Sleep(2 * time.Minute)
		require.Equal(s.t, "DEVICE_OFFLINE", code(s.fail(`{"failure_code":"OTHER"}`)))
		s.status(cloud.DeliveryDoorsOpened)
	})
	f("one of two with doors opened: told of when the rest has settled", 2, func(s *story) {
		a := s.open()
		require.NoError(s.t, s.fail(`{"packages":[{"tracking_number":"PK-2","failure_code":"PARCEL_TOO_LARGE"}]}`))
		s.status(cloud.DeliveryDoorsOpened)
		s.told("doors_opened")
		s.settle(a)
		d := s.find()
		require.Equal(s.t, cloud.DeliveryDelivered, d.Status)
		require.Equal(s.t, cloud.PackageInCompartment, d.Packages[0].Status)
		require.Equal(s.t, cloud.PackageFailed, d.Packages[1].Status)
		require.Equal(s.t, "PARCEL_TOO_LARGE", d.Packages[1].FailureCode)
		require.Equal(s.t, []string{"PK-1 stored"}, s.orders())
		s.told("doors_opened", "delivered", "delivery_failed")
		s.pickUp("op_p", 2, nil, a.Doors...)
		s.status(cloud.DeliveryPickedUp)
		require.Equal(s.t, cloud.PackageFailed, s.find().Packages[1].Status)
		for _, n := range a.Doors {
			require.Equal(s.t, cloud.GridFree, s.cell(n).State)
		}
	})
	f("refusals", 2, func(s *story) {
		require.Equal(s.t, "VALIDATION_FAILED", code(s.fail(`{}`)))
		require.Equal(s.t, "VALIDATION_FAILED", code(s.fail(`{"failure_code":"BROKEN"}`)))
		require.Equal(s.t, "VALIDATION_FAILED", code(s.fail(`{"failure_code":"OTHER","packages":[{"tracking_number":"PK-1","failure_code":"OTHER"}]}`)))
		require.Equal(s.t, "PACKAGE_NOT_IN_DELIVERY", code(s.fail(`{"packages":[{"tracking_number":"PK-9","failure_code":"OTHER"}]}`)))
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.fail(`{"packages":[{"tracking_number":"PK-1","failure_code":"OTHER"}]}`)))
		s.settle(s.open())
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.fail(`{"failure_code":"OTHER"}`)))
		s.status(cloud.DeliveryDelivered)
	})
}

func TestEdits(t *testing.T) {
	f := plays(t)
	caller := func(s *story) cloud.Caller { return s.Box.ProviderCaller }
	f("the deadline moves at the cabinet too", 1, func(s *story) {
		before := time.Now().UTC().Add(5 * time.Hour).Truncate(time.Second)
		out, err := s.Lockers.Edit(ctx, caller(s), locker.EditInput{Delivery: "ref:R-1", DeliverBefore: before.Format(time.RFC3339), Courier: &cloud.Courier{Name: "Bo"}})
		require.NoError(s.t, err)
		require.Equal(s.t, before, stamp(s.t, *out.Delivery.DeliverBefore).UTC())
		require.Equal(s.t, "Bo", out.Delivery.Courier.Name)
		require.Equal(s.t, before.UnixNano(), s.listed(wire.CodeDelivery)[0].NotAfter)
		require.Equal(s.t, "Jane Smith", out.Delivery.Recipient.Name, "what is absent stays")
		_, err = s.Lockers.Edit(ctx, caller(s), locker.EditInput{Delivery: "ref:R-1", Recipient: &cloud.Recipient{Name: "X"}})
		require.Equal(s.t, "VALIDATION_FAILED", code(err))
		a := s.open()
		s.settle(a)
		_, err = s.Lockers.Edit(ctx, caller(s), locker.EditInput{Delivery: "ref:R-1", DeliverBefore: before.Format(time.RFC3339)})
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err))
		s.pickUp("op_p", 2, nil, a.Doors...)
		_, err = s.Lockers.Edit(ctx, caller(s), locker.EditInput{Delivery: "ref:R-1", Recipient: &cloud.Recipient{Name: "X", Phone: "1"}})
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err), "not after the pickup")
	})
	f("a package more, a package less", 1, func(s *story) {
		add := func(number string) error {
			_, err := s.Lockers.AddPackage(ctx, caller(s), locker.AddPackageInput{Delivery: "ref:R-1", PackageInput: locker.PackageInput{TrackingNumber: number, Size: "M"}})
			return err
		}
		remove := func(number string) error {
			_, err := s.Lockers.RemovePackage(ctx, caller(s), locker.RemovePackageInput{Delivery: "ref:R-1", TrackingNumber: number})
			return err
		}
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(remove("PK-1")), "the last one")
		require.Equal(s.t, "VALIDATION_FAILED", code(add("pk-1")))
		require.NoError(s.t, add("PK-2"))
		require.Equal(s.t, []uint{1, 2}, s.listed(wire.CodeDelivery)[0].Doors)
		require.Equal(s.t, "PACKAGE_NOT_IN_DELIVERY", code(remove("PK-9")))
		require.NoError(s.t, remove("PK-1"))
		require.Equal(s.t, []uint{2}, s.listed(wire.CodeDelivery)[0].Doors)
		require.Equal(s.t, cloud.GridFree, s.cell(1).State)
		a := s.open()
		require.Equal(s.t, map[uint][]string{2: {"PK-2"}}, a.Packages)
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(add("PK-3")))
	})
	f("the courier's code replaced", 1, func(s *story) {
		former := s.find()
		out, err := s.Lockers.RotateDeliveryCode(ctx, caller(s), locker.RotateInput{Delivery: "ref:R-1", Reason: "security"})
		require.NoError(s.t, err)
		require.Len(s.t, out.DeliveryCode, 7)
		require.NotEqual(s.t, *former.DeliveryCode, out.DeliveryCode)
		require.Equal(s.t, out.DeliveryCode, *s.find().DeliveryCode)
		e := s.listed(wire.CodeDelivery)
		require.Len(s.t, e, 1)
		require.Equal(s.t, []uint{1}, e[0].Doors)
		require.NotZero(s.t, e[0].NotAfter)
		_, bodies := s.events()
		data := bodies["pickup_code_changed"]["data"].(map[string]any)
		require.Equal(s.t, "delivery_code", data["rotation"].(map[string]any)["code_kind"])
		s.settle(s.open())
		_, err = s.Lockers.RotateDeliveryCode(ctx, caller(s), locker.RotateInput{Delivery: "ref:R-1"})
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err))
	})
}

// What is kept for a repeat of a call that waits for the cabinet is not its last answer yet.
func TestAnswersOfCallsThatWaitForTheCabinetAreUnfinished(t *testing.T) {
	f := plays(t)
	unfinished := func(name string, opens func(ctx context.Context, s *story) error) {
		f(name, 1, func(s *story) {
			s.settle(s.open())
			o := &cloud.Once{ID: cloud.CallID{1}, At: time.Now().UTC(), Until: time.Now().UTC().Add(time.Minute), Encode: json.Marshal}
			call := cloud.WithCall(ctx, &cloud.Call{BusinessID: s.Box.ProviderCaller.Account.BusinessID, Actor: "account:1", Operation: name, Once: o})
			var kept cloud.KeptAnswer
			var missing error
			_, err := during(s, func() (struct{}, error) { return struct{}{}, opens(call, s) }, func(a asked) {
				kept, missing = s.Store.FindCall(ctx, o.ID, time.Now())
				s.opened(a)
			})
			require.NoError(s.t, errors.Join(err, missing))
			require.Equal(s.t, o.Until, kept.Running)
		})
	}
	unfinished("correct", func(ctx context.Context, s *story) error {
		_, err := s.Lockers.Correct(ctx, s.Box.ProviderCaller, locker.CorrectInput{Delivery: "ref:R-1", Reason: "wrong_parcel"})
		return err
	})
	unfinished("retrieve", func(ctx context.Context, s *story) error {
		_, err := s.Lockers.Retrieve(ctx, s.Box.ProviderCaller, locker.RetrieveInput{Delivery: "ref:R-1", Reason: "recall"})
		return err
	})
}
