package locker_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// listed are the live entries that set a code of a kind, as a cabinet with an
// empty list gets them.
func (s *story) listed(kind string) (out []wire.CodeEntry) {
	s.t.Helper()
	s.Look(func(v cloud.View) error {
		rows, err := v.CodeRows(s.ID, 0, 100)
		for _, r := range rows {
			if r.Entry.Op == wire.CodeSet && r.Entry.Kind == kind {
				out = append(out, r.Entry)
			}
		}
		return err
	})
	return out
}

func (s *story) confirmOnly(packages ...locker.ConfirmPackage) error {
	_, err := s.Lockers.Confirm(ctx, s.Box.ProviderCaller, locker.ConfirmInput{Delivery: "ref:R-1", Packages: packages})
	return err
}

func plays(t *testing.T) func(name string, packages int, play func(s *story)) {
	t.Parallel()
	return func(name string, packages int, play func(s *story)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(t, packages, nil, play)
		})
	}
}

// The codes of a delivery are for where its packages are to go. They named the
// former compartments after a move, and a courier's code opened nothing.
func TestCodesFollowMovedPackages(t *testing.T) {
	f := plays(t)
	moved := func(s *story, former []uint, play func()) {
		s.t.Helper()
		before := [2]wire.CodeEntry{s.listed(wire.CodeDelivery)[0], s.listed(wire.CodePickup)[0]}
		play()
		for i, kind := range []string{wire.CodeDelivery, wire.CodePickup} {
			now := s.listed(kind)
			require.Len(s.t, now, 1, "the former one is revoked")
			require.Equal(s.t, before[i].Verifier, now[0].Verifier, "the same code")
			require.Greater(s.t, now[0].Number, before[1].Number)
			for _, n := range former {
				require.NotContains(s.t, now[0].Doors, n)
				require.NotContains(s.t, now[0].Packages, n)
			}
			require.Len(s.t, now[0].Doors, len(before[i].Doors))
			require.Equal(s.t, before[i].NotAfter, now[0].NotAfter)
			require.Equal(s.t, before[i].Active, now[0].Active)
		}
		var revoked []string
		s.Look(func(v cloud.View) error {
			rows, err := v.CodeRows(s.ID, 2, 100)
			for _, r := range rows {
				if r.Entry.Op == wire.CodeRevoke {
					revoked = append(revoked, r.Entry.Kind)
				}
			}
			return err
		})
		slices.Sort(revoked)
		require.Equal(s.t, []string{wire.CodeDelivery, wire.CodePickup}, revoked)
	}
	f("open_failed", 2, func(s *story) {
		a := s.ask()
		s.begin(a)
		moved(s, a.Doors, func() { s.end(a, wire.EndOpenFailed) })
		b := s.open()
		require.Equal(s.t, s.listed(wire.CodePickup)[0], *b.Code, "what a settlement activates")
		s.settle(b)
		e := s.listed(wire.CodePickup)[0]
		require.Equal(s.t, wire.ActiveNow, e.Active)
		require.ElementsMatch(s.t, b.Doors, e.Doors)
	})
	f("another compartment named", 1, func(s *story) {
		zero := 0
		moved(s, []uint{1}, func() {
			_, err := s.Lockers.OpenDoors(ctx, s.Box.ProviderCaller, locker.OpenInput{Delivery: "ref:R-1", WaitSeconds: &zero, Compartments: []cloud.GridID{s.cell(3).GridID}})
			require.NoError(s.t, err)
		})
		require.Equal(s.t, []uint{3}, s.listed(wire.CodeDelivery)[0].Doors)
	})
	f("nothing moved: nothing listed anew", 2, func(s *story) {
		before := s.listed(wire.CodeDelivery)
		s.open()
		require.Equal(s.t, before, s.listed(wire.CodeDelivery))
	})
	f("failed, and tried again: the codes come back", 4, func(s *story) {
		a := s.ask()
		s.begin(a)
		s.end(a, wire.EndOpenFailed)
		s.status(cloud.DeliveryFailed)
		require.Empty(s.t, s.liveCodes(), "no code of a delivery that is over")
		for _, n := range a.Doors {
			c := s.cell(n)
			c.State, c.BlockReason = cloud.GridFree, ""
			require.NoError(s.t, s.Store.Decide(ctx, s.ID, func(cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{c}}}, nil
			}))
		}
		b := s.open()
		require.Equal(s.t, []string{"delivery now", "pickup at_settle"}, s.liveCodes())
		s.settle(b)
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, []string{"delivery now", "pickup now"}, s.liveCodes())
	})
}

func TestConfirmOfSomePackages(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e and the other stories of this package")
	f := plays(t)
	f("the others have failed", 2, func(s *story) {
		a := s.open()
		require.NoError(s.t, s.confirmOnly(locker.ConfirmPackage{TrackingNumber: "PK-1"}))
		d := s.find()
		require.Equal(s.t, cloud.DeliveryDelivered, d.Status)
		require.Equal(s.t, cloud.PackageInCompartment, d.Packages[0].Status)
		require.Equal(s.t, cloud.PackageFailed, d.Packages[1].Status)
		require.Equal(s.t, "NOT_DEPOSITED", d.Packages[1].FailureCode)
		require.Nil(s.t, d.Packages[1].GridID)
		s.told("doors_opened", "delivered", "delivery_failed")
		require.Equal(s.t, []string{"PK-1 stored"}, s.orders())
		require.Equal(s.t, cloud.GridOccupied, s.cell(a.Doors[0]).State)
		require.Equal(s.t, cloud.GridFree, s.cell(a.Doors[1]).State, "its door works")
		require.Equal(s.t, []uint{a.Doors[0]}, s.listed(wire.CodePickup)[0].Doors)
		var body wire.CloseSession
		s.Command(&body)
		require.Equal(s.t, map[uint][]string{a.Doors[0]: {"PK-1"}}, body.Packages)
	})
	f("a package that is none, or none of the opening's compartments", 2, func(s *story) {
		s.open()
		require.Equal(s.t, "PACKAGE_NOT_IN_DELIVERY", code(s.confirmOnly(locker.ConfirmPackage{TrackingNumber: "PK-9"})))
		require.Equal(s.t, "GRID_NOT_FOUND", code(s.confirmOnly(locker.ConfirmPackage{TrackingNumber: "PK-1", GridID: s.cell(4).GridID})))
		s.status(cloud.DeliveryDoorsOpened)
	})
	f("both in one compartment", 2, func(s *story) {
		a := s.open()
		grid := s.cell(a.Doors[1]).GridID
		require.NoError(s.t, s.confirmOnly(locker.ConfirmPackage{TrackingNumber: "PK-1", GridID: grid}, locker.ConfirmPackage{TrackingNumber: "PK-2"}))
		d := s.find()
		require.Equal(s.t, grid, *d.Packages[0].GridID)
		require.Equal(s.t, grid, *d.Packages[1].GridID)
		require.Equal(s.t, cloud.GridFree, s.cell(a.Doors[0]).State)
		var body wire.CloseSession
		s.Command(&body)
		require.Equal(s.t, map[uint][]string{a.Doors[1]: {"PK-1", "PK-2"}}, body.Packages)
		s.told("doors_opened", "delivered")
	})
	f("behind a door that did not open", 2, func(s *story) {
		a := s.ask()
		s.begin(a)
		s.outcome(a.id, wire.OutcomePartial, map[uint]string{a.Doors[1]: wire.DoorOpenFailed})
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.confirmOnly(locker.ConfirmPackage{TrackingNumber: "PK-2"})))
		require.NoError(s.t, s.confirm())
		require.Equal(s.t, "DOOR_NOT_OPENED", s.find().Packages[1].FailureCode)
		require.Equal(s.t, cloud.GridBlocked, s.cell(a.Doors[1]).State)
	})
	f("behind a door that swung after its opening was told as failed", 2, func(s *story) {
		a := s.ask()
		s.begin(a)
		s.outcome(a.id, wire.OutcomePartial, map[uint]string{a.Doors[1]: wire.DoorOpenFailed})
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: a.OpeningID, Door: a.Doors[1], Pulses: 2})
		s.Tell(wire.KindDoorClosed, wire.DoorClosed{OpeningID: a.OpeningID, Door: a.Doors[1], OpenMS: 9000})
		require.NoError(s.t, s.confirm())
		require.Equal(s.t, cloud.PackageInCompartment, s.find().Packages[1].Status)
	})
	f("offline, behind a door that swung late: staff look", 2, func(s *story) {
		a := s.ask()
		s.begin(a)
		s.outcome(a.id, wire.OutcomePartial, map[uint]string{a.Doors[1]: wire.DoorOpenFailed})
		s.Drop()
		synctest.Wait()
		require.NoError(s.t, s.confirm())
		require.Equal(s.t, "DOOR_NOT_OPENED", s.find().Packages[1].FailureCode)
		s.Device = s.Connect("CAB-1", s.Memory)
		s.Greet(nil)
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: a.OpeningID, Door: a.Doors[1], Pulses: 2})
		s.settle(a)
		c := s.cell(a.Doors[1])
		require.Equal(s.t, []any{cloud.GridBlocked, s.find().DeliveryID}, []any{c.State, c.DeliveryID}, "nothing else is planned into it")
		list, err := s.Store.ListExceptions(ctx, s.Box.AdminCaller.Account.BusinessID, "", 0, 10)
		require.NoError(s.t, err)
		require.Len(s.t, list, 1)
		require.Equal(s.t, []string{wire.ExDepositUnverified, c.GridCode}, []string{list[0].Type, list[0].GridCode}, "at the door in doubt")
	})
	f("offline, and the cabinet holds all for deposited: staff look", 2, func(s *story) {
		a := s.open()
		s.Drop()
		synctest.Wait()
		require.NoError(s.t, s.confirmOnly(locker.ConfirmPackage{TrackingNumber: "PK-1"}))
		s.Device = s.Connect("CAB-1", s.Memory)
		s.Greet(nil)
		s.settle(a)
		d := s.find()
		require.Equal(s.t, wire.ByPartnerAPI, *d.ConfirmedBy)
		require.Equal(s.t, cloud.PackageFailed, d.Packages[1].Status)
		require.Equal(s.t, []string{"deposit_unverified medium"}, s.exceptions())
		c := s.cell(a.Doors[1])
		require.Equal(s.t, cloud.GridOccupied, c.State, "nothing else goes where something may lie")
		require.Equal(s.t, d.DeliveryID, c.DeliveryID)
		s.told("doors_opened", "delivered", "delivery_failed")
	})
	f("a door known to be open when the cabinet went offline", 1, func(s *story) {
		a := s.open()
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: a.OpeningID, Door: a.Doors[0]})
		s.Drop()
		time.Sleep(time.Hour)
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.confirm()))
		s.Device = s.Connect("CAB-1", s.Memory)
		s.Greet(nil)
		s.settle(a)
		require.Equal(s.t, wire.ByDoorClose, *s.find().ConfirmedBy)
	})
}

// soon moves a delivery's deadlines near, instead of days of simulated time.
func (s *story) soon(in time.Duration) {
	s.t.Helper()
	require.NoError(s.t, s.Store.Decide(ctx, s.ID, func(v cloud.View) (*cloud.Changes, error) {
		d, err := v.DeliveryByNumber(s.code)
		d.DeliverBefore = time.Now().UTC().Add(in)
		if !d.DueAt.IsZero() {
			d.DueAt = d.DeliverBefore
		}
		return &cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d}}}, err
	}))
}

func TestDeadlines(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e and the other stories of this package")
	f := plays(t)
	f("nobody brought it", 1, func(s *story) {
		s.soon(2 * time.Minute)
		time.Sleep(time.Minute)
		s.status(cloud.DeliveryCreated)
		time.Sleep(time.Minute + 15*time.Second)
		d := s.find()
		require.Equal(s.t, cloud.DeliveryExpired, d.Status)
		require.Equal(s.t, *d.DeliverBefore, *d.ExpiredAt, "the deadline, not when we looked")
		s.told("expired")
		_, bodies := s.events()
		data := bodies["expired"]["data"].(map[string]any)
		require.Equal(s.t, "delivery_code_expired", data["expired_kind"])
		require.Nil(s.t, data["delivery_code"])
		require.Equal(s.t, cloud.GridFree, s.cell(1).State)
		require.Empty(s.t, s.listed(wire.CodeDelivery))
		require.Empty(s.t, s.listed(wire.CodePickup))
		time.Sleep(time.Minute)
		s.told("expired")
		_, err := s.Lockers.OpenDoors(ctx, s.Box.ProviderCaller, locker.OpenInput{Delivery: "ref:R-1"})
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err))
	})
	f("doors opened in time: the deposit is waited for", 1, func(s *story) {
		s.soon(5 * time.Second)
		a := s.ask() // begins before, opens after
		s.begin(a)
		time.Sleep(5 * time.Minute)
		s.status(cloud.DeliveryCreated)
		s.outcome(a.id, wire.OutcomeDone, nil)
		s.settle(a)
		s.status(cloud.DeliveryDelivered)
		s.told("doors_opened", "delivered")
	})
	f("an opening that came to nothing", 1, func(s *story) {
		s.soon(5 * time.Second)
		a := s.ask()
		s.begin(a)
		time.Sleep(time.Minute)
		s.status(cloud.DeliveryCreated)
		s.end(a, wire.EndOpenFailed)
		time.Sleep(15 * time.Second)
		s.status(cloud.DeliveryExpired)
	})
	f("nobody collected it: overdue once, and the code works", 2, func(s *story) {
		a := s.open()
		s.settle(a)
		s.soon(time.Minute)
		time.Sleep(time.Minute + 15*time.Second)
		d := s.find()
		require.Equal(s.t, cloud.DeliveryExpired, d.Status)
		require.True(s.t, d.PickupCodeActive)
		require.NotNil(s.t, d.PickupCode)
		require.Equal(s.t, *d.DueAt, *d.ExpiredAt)
		require.Equal(s.t, []string{"PK-1 overdue", "PK-2 overdue"}, s.orders())
		require.Equal(s.t, []string{"overdue low"}, s.exceptions())
		require.Contains(s.t, s.liveCodes(), "pickup now")
		require.Equal(s.t, cloud.GridOccupied, s.cell(a.Doors[0]).State)
		out, err := s.Lockers.Pickup(ctx, s.Box.ProviderCaller, "ref:R-1")
		require.NoError(s.t, err)
		require.Equal(s.t, "overdue", out.Pickup.Status)
		time.Sleep(time.Minute)
		s.told("doors_opened", "delivered", "expired")
		s.pickUp("op_p", 2, nil, a.Doors...)
		s.status(cloud.DeliveryPickedUp)
		require.Equal(s.t, []string{"PK-1 picked_up", "PK-2 picked_up"}, s.orders())
		require.Empty(s.t, s.exceptions(), "closes by itself when the package leaves")
		s.told("doors_opened", "delivered", "expired", "picked_up")
	})
	f("extended, overdue, extended again", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		extend := func(h int) error {
			_, err := checktest.Given(s.Lockers.Extend)(ctx, s.Box.ProviderCaller, locker.ExtendInput{Delivery: "ref:R-1", Hours: h})
			return err
		}
		require.Equal(s.t, "VALIDATION_FAILED", code(extend(0)))
		require.Equal(s.t, "VALIDATION_FAILED", code(extend(169)))
		before := stamp(s.t, *s.find().DueAt)
		require.NoError(s.t, extend(24))
		require.Equal(s.t, before.Add(24*time.Hour), stamp(s.t, *s.find().DueAt))
		s.soon(time.Second)
		time.Sleep(15 * time.Second)
		s.status(cloud.DeliveryExpired)
		require.NoError(s.t, extend(2))
		d := s.find()
		require.Equal(s.t, cloud.DeliveryDelivered, d.Status)
		require.Equal(s.t, time.Now().Add(2*time.Hour).Unix(), stamp(s.t, *d.DueAt).Unix(), "from now")
		require.Equal(s.t, []string{"PK-1 stored"}, s.orders())
		require.Empty(s.t, s.exceptions())
		s.soon(time.Second)
		time.Sleep(15 * time.Second)
		s.status(cloud.DeliveryExpired)
		require.Equal(s.t, []string{"overdue low"}, s.exceptions())
		s.told("doors_opened", "delivered", "expired", "expired")
		s.pickUp("op_p", 2, nil, a.Doors...)
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(extend(1)))
	})
	f("the cloud was stopped over the deadline", 1, func(s *story) {
		s.Drop()
		synctest.Wait()
		s.soon(time.Minute)
		s.Stop()
		time.Sleep(5 * time.Minute)
		s.Start()
		time.Sleep(time.Second)
		s.status(cloud.DeliveryExpired)
		s.told("expired")
	})
	f("deposited offline before the deadline, told of after it", 1, func(s *story) {
		s.soon(time.Minute)
		time.Sleep(2 * time.Minute)
		s.told("expired")
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_l", Kind: wire.OpenDeposit, Doors: []uint{2}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
		s.settle(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_l", Doors: []uint{2}, Packages: map[uint][]string{2: {"PK-1"}}}})
		s.status(cloud.DeliveryDelivered)
		s.told("expired", "delivered")
		require.Equal(s.t, []string{"deposit_unverified low"}, s.exceptions())
		require.Contains(s.t, s.liveCodes(), "pickup now")
	})
}

func stamp(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	require.NoError(t, err)
	return at
}

// Several nodes look at once, at more deliveries than one look takes: each is
// sent once.
func TestDeadlinesOnSeveralNodesAreSentOnce(t *testing.T) {
	t.Parallel()
	tell(t, 1, nil, func(s *story) {
		s.Drop() // its code list need not go out
		synctest.Wait()
		no := false
		const many = 130
		for i := range many {
			_, err := s.Lockers.Create(ctx, s.Box.ProviderCaller, locker.CreateInput{ReferenceNumber: fmt.Sprintf("M-%d", i), DeviceID: s.ID, Reserve: &no,
				DeliverBefore: time.Now().Add(time.Minute).Format(time.RFC3339), Packages: []locker.PackageInput{{TrackingNumber: fmt.Sprintf("MK-%d", i)}}, Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "1"}})
			require.NoError(s.t, err)
		}
		nodes, stop := context.WithCancel(ctx)
		defer stop()
		for range 3 {
			other := locker.New(locker.Config{Store: s.Store, Sealer: s.Server.Box, Webhooks: webhook.New(s.Store, anyURL{})})
			go func() { _ = other.RunDeadlines(nodes, s.Store) }()
		}
		time.Sleep(90 * time.Second)
		stop()
		synctest.Wait()
		_, rows, err := s.Store.ListOutbox(ctx, cloud.OutboxFilter{ProviderID: s.Box.ProviderCaller.Provider.ID, Page: cloud.Page{Limit: 1000}})
		require.NoError(s.t, err)
		told := map[string]int{}
		for _, r := range rows {
			require.Equal(s.t, locker.EventExpired, r.Event.Event)
			told[r.Event.ReferenceID]++
		}
		require.Len(s.t, told, many)
		for ref, n := range told {
			require.Equal(s.t, 1, n, ref)
		}
		left, err := s.Store.ListDueDeliveries(ctx, time.Now(), cloud.DueDelivery{}, 10)
		require.NoError(s.t, err)
		require.Empty(s.t, left)
	})
}

// A door moves outside of openings too: a record of it that names none is no fault.
func TestADoorMovesOutsideOfOpenings(t *testing.T) {
	t.Parallel()
	tell(t, 1, nil, func(s *story) {
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{Door: 1})
		s.Tell(wire.KindDoorClosed, wire.DoorClosed{Door: 1})
		require.Empty(s.t, s.Faults())
	})
}
