package locker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// swungLate deposits R-1 behind a door that had been reported as not opened: staff are to look.
func (s *story) swungLate() asked {
	s.t.Helper()
	a := s.ask()
	s.begin(a)
	s.outcome(a.id, wire.OutcomePartial, map[uint]string{a.Doors[0]: wire.DoorOpenFailed})
	s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: a.OpeningID, Door: a.Doors[0], Pulses: 2})
	s.settle(a)
	require.Equal(s.t, []string{"deposit_unverified low"}, s.exceptions())
	return a
}

// A doubt about a deposit ends with what answers it: the package was there, and is gone.
func TestADoubtEndsWithItsPackage(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e")
	f := plays(t)
	f("collected", 1, func(s *story) {
		a := s.swungLate()
		grid := s.cell(a.Doors[0]).GridCode
		id := s.open1("deposit_unverified")
		s.pickUp("op_1", 2, nil, a.Doors...)
		require.Equal(s.t, "deposit_unverified resolved deposit_confirmed "+grid+"; ", s.everyException())
		x, err := s.Lockers.FindCabinetException(ctx, s.staff(), locker.ByException{ID: id})
		require.NoError(s.t, err)
		require.Equal(s.t, "device", *x.Exception.ClosedBy)
		require.Contains(s.t, x.Exception.Note, "; the package was collected")
	})
	f("the cabinet's own doubt, collected", 1, func(s *story) {
		a := s.open()
		s.doubt(a.Doors...)
		s.end(a, wire.EndDepositUnverified)
		s.pickUp("op_1", 2, nil, a.Doors...)
		require.Empty(s.t, s.exceptions())
		require.Contains(s.t, s.everyException(), "deposit_unverified resolved deposit_confirmed")
	})
	f("one of two was collected", 2, func(s *story) {
		a := s.open()
		s.settle(a)
		s.doubt(a.Doors...)
		s.pickUp("op_1", 2, []uint{a.Doors[1]}, a.Doors[0])
		require.Equal(s.t, []string{"deposit_unverified medium"}, s.exceptions(), "the other one lies there")
		require.Contains(s.t, s.everyException(), "deposit_unverified resolved deposit_confirmed "+s.cell(a.Doors[0]).GridCode)
	})
	f("what a partner had left out of its confirmation, and the recipient found", 2, func(s *story) {
		a := s.open()
		s.Drop()
		synctest.Wait()
		require.NoError(s.t, s.confirmOnly(locker.ConfirmPackage{TrackingNumber: "PK-1"}))
		s.Device = s.Connect("CAB-1", s.Memory)
		s.Greet(nil)
		s.settle(a)
		require.Equal(s.t, []string{"deposit_unverified medium"}, s.exceptions())
		s.pickUp("op_1", 2, nil, a.Doors...)
		require.Contains(s.t, s.everyException(), "deposit_unverified resolved no_action "+s.cell(a.Doors[1]).GridCode)
	})
	f("taken back by a courier", 1, func(s *story) {
		s.swungLate()
		_, err := s.retrieve("recall", func(b asked) { s.begin(b); s.outcome(b.id, wire.OutcomeDone, nil); s.swung(b, true) })
		require.NoError(s.t, err)
		require.NoError(s.t, s.retrieved())
		require.Empty(s.t, s.exceptions())
		require.Contains(s.t, s.everyException(), "deposit_unverified resolved deposit_confirmed")
	})
	f("removed by staff", 1, func(s *story) {
		s.swungLate()
		require.NoError(s.t, s.remove("PK-1", "overdue_return"))
		require.Empty(s.t, s.exceptions())
		require.Contains(s.t, s.everyException(), "deposit_unverified resolved package_returned")
	})
	f("the doubt comes after the collection", 1, func(s *story) {
		a := s.open()
		s.Drop()
		synctest.Wait()
		require.NoError(s.t, s.confirm())
		s.Device = s.Connect("CAB-1", s.Memory)
		s.Greet(nil)
		s.pickUp("op_1", 2, nil, a.Doors...)
		s.status(cloud.DeliveryPickedUp)
		s.settle(a, wire.Unverified)
		require.Empty(s.t, s.exceptions())
		require.Contains(s.t, s.everyException(), "deposit_unverified resolved deposit_confirmed")
	})
	f("a doubt about the next parcel stays", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.pickUp("op_1", 2, nil, a.Doors...)
		door := s.bringAnother()
		s.doubt(door)
		require.Equal(s.t, []string{"deposit_unverified medium"}, s.exceptions())
	})
}

// A refusal because of doors that stand open names them, in the words of the caller.
func TestAConfirmationNamesOpenDoors(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e")
	f := plays(t)
	refused := func(s *story, err error, status cloud.DeliveryStatus, doors ...uint) {
		s.t.Helper()
		var e *cloud.Error
		require.ErrorAs(s.t, err, &e)
		var open []map[string]any
		names := ""
		for i, n := range doors {
			c := s.cell(n)
			open = append(open, map[string]any{"grid_code": c.GridCode, "door_name": c.Name()})
			names += []string{"", ", "}[min(i, 1)] + c.Name()
		}
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", e.Code)
		require.Equal(s.t, map[string]any{"status": status, "open_doors": open}, e.Details)
		require.Contains(s.t, locale.Error("en", e.Code, e.Args...), "reports as open: "+names+".")
		for _, lang := range []string{locale.English, locale.SimplifiedChinese, locale.TraditionalChinese, locale.French, locale.German, locale.Spanish} {
			require.Contains(s.t, locale.Error(lang, e.Code, e.Args...), names, lang)
		}
	}
	f("of a deposit", 2, func(s *story) {
		a := s.open()
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: a.OpeningID, Door: a.Doors[1]})
		refused(s, s.confirm(), cloud.DeliveryDoorsOpened, a.Doors[1])
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: a.OpeningID, Door: a.Doors[0]})
		refused(s, s.confirm(), cloud.DeliveryDoorsOpened, a.Doors...)
	})
	f("of a retrieval", 1, func(s *story) {
		s.settle(s.open())
		var b asked
		_, err := s.retrieve("recall", func(x asked) {
			b = x
			s.begin(x)
			s.outcome(x.id, wire.OutcomeDone, nil)
			s.swung(x, false)
			s.end(x, wire.EndDone)
		})
		require.NoError(s.t, err)
		refused(s, s.retrieved(), cloud.DeliveryDelivered, b.Doors[0])
	})
	f("other refusals name none", 1, func(s *story) {
		var e *cloud.Error
		require.ErrorAs(s.t, s.confirm(), &e)
		require.Empty(s.t, e.Args)
	})
}

// Of an exception that was left open, by a program that did not end it, only what fits the state
// of its package is offered and taken.
func TestAResolutionFitsThePackage(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e")
	f := plays(t)
	left := func(s *story, id cloud.ExceptionID) {
		require.NoError(s.t, s.Store.Decide(ctx, s.ID, func(v cloud.View) (*cloud.Changes, error) {
			e, err := v.Exception(s.staff().Account.BusinessID, id)
			e.Status, e.Resolution, e.ClosedBy, e.ClosedAt = "open", "", "", time.Time{}
			return &cloud.Changes{LockerChanges: cloud.LockerChanges{Exceptions: []cloud.Exception{e}}}, err
		}))
	}
	f("collected", 1, func(s *story) {
		a := s.swungLate()
		id := s.open1("deposit_unverified")
		s.pickUp("op_1", 2, nil, a.Doors...)
		left(s, id)
		x, err := s.Lockers.FindCabinetException(ctx, s.staff(), locker.ByException{ID: id})
		require.NoError(s.t, err)
		require.Equal(s.t, []locker.PossibleResolution{{Action: "deposit_confirmed"}, {Action: "no_action"}}, x.Exception.Resolutions)
		for _, action := range []string{"package_lost", "deposit_cancelled", "package_returned"} {
			_, err := s.resolve(id, action)
			require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err), action)
			var e *cloud.Error
			require.ErrorAs(s.t, err, &e)
			require.Equal(s.t, cloud.DeliveryPickedUp, e.Details["status"])
			require.Equal(s.t, []string{"deposit_confirmed", "no_action"}, e.Details["allowed"])
		}
		before := s.commandKinds()
		_, err = s.resolve(id, "deposit_confirmed")
		require.NoError(s.t, err)
		require.Equal(s.t, before, s.commandKinds(), "nothing is left to settle")
		require.Equal(s.t, []string{"PK-1 picked_up "}, s.removals())
	})
}
