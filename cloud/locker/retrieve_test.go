package locker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

func (s *story) retrieve(reason string, play func(a asked)) (locker.RetrieveOutput, error) {
	s.t.Helper()
	return during(s, func() (locker.RetrieveOutput, error) {
		return s.Lockers.Retrieve(ctx, s.Box.ProviderCaller, locker.RetrieveInput{Delivery: "ref:R-1", Reason: reason, Courier: &cloud.Courier{ID: "C-20", Name: "Bo"}})
	}, play)
}

func (s *story) refusedRetrieval(reason string) string {
	_, err := s.Lockers.Retrieve(ctx, s.Box.ProviderCaller, locker.RetrieveInput{Delivery: "ref:R-1", Reason: reason})
	return code(err)
}

func (s *story) retrieved(packages ...string) error {
	_, err := s.Lockers.RetrieveConfirm(ctx, s.Box.ProviderCaller, locker.RetrieveConfirmInput{Delivery: "ref:R-1", Packages: packages})
	return err
}

// swung is what the cabinet reports of doors that were opened and closed again.
func (s *story) swung(a asked, closed bool) {
	s.t.Helper()
	for _, n := range a.Doors {
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: a.OpeningID, Door: n, Pulses: 1})
		if closed {
			s.Tell(wire.KindDoorClosed, wire.DoorClosed{OpeningID: a.OpeningID, Door: n, OpenMS: 4000})
		}
	}
	if closed {
		s.end(a, wire.EndDone)
	}
	synctest.Wait()
}

// sent are the commands that wait for the cabinet, as kind and delivery.
func (s *story) sent() (out []string) {
	s.t.Helper()
	synctest.Wait()
	for len(s.Cmds) > 0 {
		c := <-s.Cmds
		var b wire.DoorReason
		require.NoError(s.t, wire.Decode(c.Body, &b))
		out = append(out, string(c.Kind)+" "+b.DeliveryRef)
		s.outcome(c.CommandID, wire.OutcomeDone, nil)
	}
	return out
}

func TestRetrieval(t *testing.T) {
	ring.SkipUnlessCheck(t, "the stories of cmd/e2e")
	f := plays(t)
	f("a recall: nothing is left, the codes are dead, the cabinet forgets it", 2, func(s *story) {
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", s.refusedRetrieval("recall"), "nothing lies inside")
		a := s.open()
		s.settle(a)
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.retrieved()), "no door was opened for it")
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", s.refusedRetrieval("overdue"), "it is in time")
		var b asked
		out, err := s.retrieve("recall", func(x asked) {
			b = x
			s.begin(x)
			s.swung(x, false)
			s.outcome(x.id, wire.OutcomeDone, nil)
		})
		require.NoError(s.t, err)
		require.Equal(s.t, wire.OpenStaff, out.Opening.Kind)
		require.Equal(s.t, wire.OpenStaff, b.Kind)
		require.ElementsMatch(s.t, a.Doors, b.Doors)
		require.Empty(s.t, b.DeliveryRef, "what lies inside is not the cabinet's to judge")
		require.Nil(s.t, b.Code)
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.retrieved()), "the doors stand open")
		s.swung(b, true)
		require.Equal(s.t, "PACKAGE_NOT_IN_DELIVERY", code(s.retrieved("PK-9")))
		require.NoError(s.t, s.retrieved())
		d := s.find()
		require.Equal(s.t, cloud.DeliveryPickedUp, d.Status)
		require.False(s.t, d.PickupCodeActive)
		require.Empty(s.t, s.liveCodes())
		require.Equal(s.t, []string{"PK-1 removed handover", "PK-2 removed handover"}, s.removals())
		s.told("doors_opened", "delivered", "picked_up")
		_, bodies := s.events()
		require.Equal(s.t, map[string]any{"type": "courier", "method": "remote"}, bodies["picked_up"]["data"].(map[string]any)["picked_up_by"])
		for _, n := range a.Doors {
			require.Equal(s.t, cloud.GridFree, s.cell(n).State)
			require.Zero(s.t, s.cell(n).DeliveryID)
		}
		require.Equal(s.t, []string{"clear " + s.code, "clear " + s.code}, s.sent())
		p, err := s.Lockers.Pickup(ctx, s.Box.ProviderCaller, "ref:R-1")
		require.NoError(s.t, err)
		require.Equal(s.t, "returned", p.Pickup.Status)
		require.NoError(s.t, s.retrieved(), "repeated")
		s.told("doors_opened", "delivered", "picked_up")
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", s.refusedRetrieval("recall"))
		require.Empty(s.t, s.exceptions())
	})
	f("one package of two", 2, func(s *story) {
		a := s.open()
		s.settle(a)
		s.taken(true)
		require.NoError(s.t, s.retrieved("PK-1"))
		d := s.find()
		require.Equal(s.t, cloud.DeliveryDelivered, d.Status)
		require.True(s.t, d.PickupCodeActive)
		require.Equal(s.t, []string{"PK-1 removed handover", "PK-2 stored "}, s.removals())
		require.Len(s.t, s.listed(wire.CodePickup)[0].Doors, 1, "the code opens what is left")
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.retrieved("PK-1")), "taken already")
		require.NoError(s.t, s.retrieved())
		s.status(cloud.DeliveryPickedUp)
	})
	f("overdue", 1, func(s *story) {
		s.settle(s.open())
		_, err := s.Lockers.ExpireDelivery(ctx, s.staff(), locker.EndInput{Delivery: locker.DeliveryKey(s.id()), Reason: "Too long"})
		require.NoError(s.t, err)
		require.Equal(s.t, []string{"overdue low"}, s.exceptions())
		_, err = s.retrieve("overdue", func(x asked) {
			s.begin(x)
			s.swung(x, true)
			s.outcome(x.id, wire.OutcomeDone, nil)
		})
		require.NoError(s.t, err)
		require.NoError(s.t, s.retrieved())
		require.Equal(s.t, []string{"PK-1 removed overdue_return"}, s.removals())
		require.Empty(s.t, s.exceptions(), "what was overdue has left")
	})
	f("the recipient was first", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.taken(true)
		s.pickUp("op_p", 2, nil, a.Doors...)
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.retrieved()))
		s.status(cloud.DeliveryPickedUp)
	})
	f("doors that did not open, a cabinet that is offline, another provider", 1, func(s *story) {
		s.settle(s.open())
		_, err := s.retrieve("recall", func(x asked) {
			s.begin(x)
			s.outcome(x.id, wire.OutcomeFailed, map[uint]string{x.Doors[0]: wire.DoorOpenFailed})
			s.end(x, wire.EndOpenFailed)
		})
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err))
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.retrieved()))
		s.status(cloud.DeliveryDelivered)
		other := s.Box.ProviderCaller
		other.Provider.ID++
		_, err = s.Lockers.Retrieve(ctx, other, locker.RetrieveInput{Delivery: locker.DeliveryKey(s.code), Reason: "recall"})
		require.Equal(s.t, "DELIVERY_NOT_FOUND", code(err))
		s.Drop()
		time.Sleep(2 * time.Minute)
		require.Equal(s.t, "DEVICE_OFFLINE", s.refusedRetrieval("recall"))
	})
}

// taken is a retrieval whose doors were opened and, where closed says so, closed again.
func (s *story) taken(closed bool) (a asked) {
	s.t.Helper()
	_, err := s.retrieve("recall", func(x asked) {
		a = x
		s.begin(x)
		s.swung(x, closed)
		s.outcome(x.id, wire.OutcomeDone, nil)
	})
	require.NoError(s.t, err)
	return a
}

// steps are the codes of PK-1's timeline.
func (s *story) steps() (out []string) {
	s.t.Helper()
	for _, e := range s.timeline().Events {
		out = append(out, string(e.StatusCode))
	}
	return out
}

// What happens at the doors beside a retrieval, and what the partner says of it wrongly.
func TestRetrievalBesideOtherOpenings(t *testing.T) {
	ring.SkipUnlessCheck(t, "the stories and seeds of cmd/e2e")
	f := plays(t)
	f("the code opens both doors before the cabinet has forgotten one", 2, func(s *story) {
		a := s.open()
		s.settle(a)
		s.taken(true)
		require.NoError(s.t, s.retrieved("PK-1"))
		before := s.steps()
		time.Sleep(time.Minute)
		s.pickUp("op_p", 2, nil, a.Doors...)
		s.status(cloud.DeliveryPickedUp)
		require.Equal(s.t, before, s.steps(), "the recipient did not collect what a courier took back")
		require.Equal(s.t, []string{"PK-1 removed handover", "PK-2 picked_up "}, s.removals())
	})
	f("two packages in one compartment", 2, func(s *story) {
		a := s.open()
		s.swung(a, false)
		for _, n := range a.Doors {
			s.Tell(wire.KindDoorClosed, wire.DoorClosed{OpeningID: a.OpeningID, Door: n, OpenMS: 4000})
		}
		g := s.cell(a.Doors[0]).GridID
		require.NoError(s.t, s.confirmOnly(locker.ConfirmPackage{TrackingNumber: "PK-1", GridID: g}, locker.ConfirmPackage{TrackingNumber: "PK-2", GridID: g}))
		s.outcome(s.Command(&wire.CloseSession{}).CommandID, wire.OutcomeDone, nil)
		s.taken(true)
		require.NoError(s.t, s.retrieved("PK-1"))
		require.Empty(s.t, s.sent(), "the other one lies there")
		before := s.steps()
		time.Sleep(time.Minute)
		s.pickUp("op_p", 2, nil, a.Doors[0])
		s.status(cloud.DeliveryPickedUp)
		require.Equal(s.t, before, s.steps())
	})
	f("a sensor sees what the partner says is gone", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		n := a.Doors[0]
		b := s.taken(false)
		s.Tell(wire.KindDoorClosed, wire.DoorClosed{OpeningID: b.OpeningID, Door: n, OpenMS: 4000, Item: wire.ItemPresent})
		s.end(b, wire.EndDone)
		require.True(s.t, *s.cell(n).Occupied)
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.retrieved()))
		require.Equal(s.t, cloud.GridOccupied, s.cell(n).State)
	})
	f("a correction begins before the retrieval is confirmed", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.taken(true)
		_, err := s.correct(func(b asked) {
			s.begin(b)
			require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.retrieved()))
			s.opened(b)
			s.settle(b)
		})
		require.NoError(s.t, err)
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.retrieved()), "what lies there was put in after the retrieval")
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, []string{"PK-1 stored "}, s.removals())
	})
	f("the recipient's code opens the door before the retrieval is confirmed", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.taken(true)
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_p", Kind: wire.OpenPickup, Doors: a.Doors, CommandID: wire.LocalCommand, Who: "recipient", DeliveryRef: s.code})
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.retrieved()))
	})
	f("a second retrieval whose door does not open leaves the first", 1, func(s *story) {
		s.settle(s.open())
		s.taken(true)
		_, err := s.retrieve("recall", func(x asked) {
			s.begin(x)
			s.outcome(x.id, wire.OutcomeFailed, map[uint]string{x.Doors[0]: wire.DoorOpenFailed})
			s.end(x, wire.EndOpenFailed)
		})
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err))
		require.NoError(s.t, s.retrieved())
		s.status(cloud.DeliveryPickedUp)
	})
}

// An order of which a courier took one package back is delivered in part.
func TestOrderOfARetrievedPackage(t *testing.T) {
	ring.SkipUnlessCheck(t, "the stories and seeds of cmd/e2e")
	synctest.Test(t, func(t *testing.T) {
		carry(t, devicetest.New(t, nil), 2, true, func(s *parcels) {
			a := s.open()
			s.settle(a)
			s.taken(true)
			require.NoError(s.t, s.retrieved(s.made.Packages[0].Number))
			time.Sleep(time.Minute)
			s.pickUp("op_p", 2, nil, a.Doors...)
			s.story.status(cloud.DeliveryPickedUp)
			require.Equal(s.t, "PARTIALLY_DELIVERED", s.now().Status)
		})
	})
}

// removals are the registry's rows of the delivery, each with its state and the reason of
// its removal.
func (s *story) removals() (out []string) {
	s.t.Helper()
	d := s.find()
	s.Look(func(v cloud.View) error {
		rows, err := v.DeviceOrders(d.DeliveryID)
		for _, o := range rows {
			out = append(out, o.Tracking+" "+o.Status+" "+o.RemovalReason)
		}
		return err
	})
	return out
}
