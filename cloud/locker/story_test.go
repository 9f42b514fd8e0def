package locker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-io/postern/cloud/server"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// story is one delivery R-1 with packages PK-1 and so on, and the cabinet it is
// for, which speaks by hand.
type story struct {
	t *testing.T
	*devicetest.World
	*devicetest.Device
	code    string // delivery number, its reference on the link
	purpose string // of R-1
}

var ctx = context.Background()

func tell(t *testing.T, packages int, log *slog.Logger, f func(s *story)) {
	t.Helper()
	tellOf(t, "", packages, log, f)
}

// tellOf is tell of a delivery with a purpose.
func tellOf(t *testing.T, purpose string, packages int, log *slog.Logger, f func(s *story)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := devicetest.New(t, log)
		defer w.Stop()
		s := &story{t: t, World: w, Device: w.Connect("CAB-1", nil), purpose: purpose}
		s.Greet(nil)
		s.code = s.create("R-1", packages).DeliveryNumber
		synctest.Wait()
		f(s)
		synctest.Wait()
		s.listsWhatWasSent()
		// Whatever the story: the journal proves nothing that is not stored.
		again, err := s.Rebuild(ctx, false)
		require.NoError(t, err)
		require.Empty(t, again.Missing)
		require.Empty(t, again.Different)
		folded, err := server.RefoldTimelines(ctx, s.Store, server.Refold{})
		require.NoError(t, err)
		require.Empty(t, folded.List, "%+v", folded.List)
	})
}

func (s *story) create(ref string, packages int) locker.DeliveryBody {
	s.t.Helper()
	in := locker.CreateInput{ReferenceNumber: ref, DeviceID: s.ID, Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"},
		Courier: &cloud.Courier{ID: "C-19", Name: "Ana"}}
	if s.purpose != "" {
		in.Purpose, in.Sender = s.purpose, &cloud.Sender{Name: "Sid Sender", Email: "sid@example.com", Language: "de"}
		in.Recipient.Address = "1 Main St"
	}
	for i := range packages {
		in.Packages = append(in.Packages, locker.PackageInput{TrackingNumber: "PK-" + string(rune('1'+i)), Reference: "P-1", Size: "M"})
	}
	out, err := s.Lockers.Create(ctx, s.Box.ProviderCaller, in)
	require.NoError(s.t, err)
	return out.Delivery
}

func (s *story) find() locker.DeliveryBody {
	s.t.Helper()
	out, err := s.Lockers.Find(ctx, s.Box.ProviderCaller, "ref:R-1")
	require.NoError(s.t, err)
	return out.Delivery
}

func (s *story) status(want cloud.DeliveryStatus) {
	s.t.Helper()
	require.Equal(s.t, want, s.find().Status)
}

type asked struct {
	wire.OpenDoors
	id string
}

// ask asks for the doors and gives the command.
func (s *story) ask() asked {
	s.t.Helper()
	zero := 0
	_, err := s.Lockers.OpenDoors(ctx, s.Box.ProviderCaller, locker.OpenInput{Delivery: "ref:R-1", WaitSeconds: &zero})
	require.NoError(s.t, err)
	var a asked
	a.id = s.Command(&a.OpenDoors).CommandID
	return a
}

func (s *story) begin(a asked) {
	s.t.Helper()
	s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: a.OpeningID, Kind: a.Kind, Doors: a.Doors, CommandID: a.id, Who: "remote"})
}

func (s *story) outcome(id, outcome string, codes map[uint]string) {
	s.t.Helper()
	s.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: id, Outcome: outcome, Doors: codes})
}

// open opens all doors: R-1 is doors_opened after it.
func (s *story) open() asked {
	s.t.Helper()
	a := s.ask()
	s.begin(a)
	s.outcome(a.id, wire.OutcomeDone, nil)
	s.status(cloud.DeliveryDoorsOpened)
	return a
}

// settle settles an opening by its doors. outcomes are those of its packages in
// the order of doors; missing ones are deposited.
func (s *story) settle(a asked, outcomes ...string) {
	s.t.Helper()
	now := time.Now().UnixNano()
	b := wire.OpeningSettled{OpeningID: a.OpeningID, ConfirmedBy: wire.ByDoorClose}
	for i, n := range a.Doors {
		out := wire.Deposited
		if i < len(outcomes) {
			out = outcomes[i]
		}
		d := wire.SettledDoor{Door: n, OpenedAt: now - 9e9, ClosedAt: now - 2e9}
		failure := ""
		if out == wire.Failed {
			d, failure = wire.SettledDoor{Door: n}, "DOOR_NOT_OPENED"
		}
		b.Doors = append(b.Doors, d)
		for _, ref := range a.Packages[n] {
			b.Packages = append(b.Packages, wire.SettledPackage{Ref: ref, Door: n, Outcome: out, FailureCode: failure})
		}
	}
	s.Tell(wire.KindOpeningSettled, b)
}

func (s *story) end(a asked, reason string) {
	s.t.Helper()
	s.Tell(wire.KindOpeningEnded, wire.OpeningEnded{OpeningID: a.OpeningID, Reason: reason})
}

// pickUp collects everything with a code of the list.
func (s *story) pickUp(opening string, number uint64, left []uint, doors ...uint) {
	s.t.Helper()
	s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: opening, Kind: wire.OpenPickup, Doors: append(slices.Clone(doors), left...), CommandID: wire.LocalCommand, Who: "recipient", DeliveryRef: s.code})
	s.Tell(wire.KindPickupCompleted, wire.PickupCompleted{DeliveryRef: s.code, OpeningID: opening, Doors: doors, Left: left, How: "keypad", CodeNumber: number, ListNumber: 2})
}

func (s *story) cancel() error {
	_, err := s.Lockers.Cancel(ctx, s.Box.ProviderCaller, locker.CancelInput{Delivery: "ref:R-1", Reason: "partner_request"})
	return err
}

func (s *story) confirm() error {
	_, err := s.Lockers.Confirm(ctx, s.Box.ProviderCaller, locker.ConfirmInput{Delivery: "ref:R-1"})
	return err
}

func code(err error) string {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// events are the names of what was sent, oldest first, and the last body of each.
func (s *story) events() (names []string, bodies map[string]map[string]any) {
	s.t.Helper()
	_, rows, err := s.Store.ListOutbox(ctx, cloud.OutboxFilter{ProviderID: s.Box.ProviderCaller.Provider.ID, Page: cloud.Page{Limit: 100}})
	require.NoError(s.t, err)
	slices.Reverse(rows)
	bodies = map[string]map[string]any{}
	for _, r := range rows {
		name := strings.TrimPrefix(r.Event.Event, "locker_delivery.")
		names = append(names, name)
		x, err := s.Store.FindOutbox(ctx, r.Delivery.ID)
		require.NoError(s.t, err)
		var body map[string]any
		require.NoError(s.t, json.Unmarshal(x.Event.Body, &body))
		bodies[name] = body
	}
	return names, bodies
}

// listsWhatWasSent says that the provider's list of events is what its endpoint got, one for
// one and with the same data.
func (s *story) listsWhatWasSent() {
	s.t.Helper()
	_, rows, err := s.Store.ListOutbox(ctx, cloud.OutboxFilter{ProviderID: s.Box.ProviderCaller.Provider.ID, ReferenceID: s.code, Page: cloud.Page{Limit: 100}})
	require.NoError(s.t, err)
	list, err := s.Lockers.ListDeliveryEvents(ctx, s.Box.ProviderCaller, "ref:R-1")
	require.NoError(s.t, err)
	require.Len(s.t, list.Events, len(rows))
	for i, e := range list.Events {
		row := rows[len(rows)-1-i]
		sent, err := s.Store.FindOutbox(ctx, row.Delivery.ID)
		require.NoError(s.t, err)
		var want struct {
			EventID    string          `json:"event_id"`
			Event      string          `json:"event"`
			Sequence   int64           `json:"sequence"`
			OccurredAt string          `json:"occurred_at"`
			Data       json.RawMessage `json:"data"`
		}
		require.NoError(s.t, json.Unmarshal(sent.Event.Body, &want))
		data, err := json.Marshal(e.Data)
		require.NoError(s.t, err)
		require.Equal(s.t, []any{want.EventID, want.Event, want.Sequence, want.OccurredAt}, []any{e.EventID, e.Event, e.Sequence, *e.OccurredAt})
		require.JSONEq(s.t, string(want.Data), string(data))
	}
}

func (s *story) told(want ...string) {
	s.t.Helper()
	names, _ := s.events()
	if want == nil {
		want = []string{}
	}
	require.Equal(s.t, want, append([]string{}, names...))
}

// exceptions are the open ones, as type and severity.
func (s *story) exceptions() (out []string) {
	s.t.Helper()
	s.Look(func(v cloud.View) error {
		rows, err := v.OpenExceptions(s.ID)
		for _, e := range rows {
			out = append(out, e.Type+" "+e.Severity)
		}
		return err
	})
	return out
}

func (s *story) cell(door uint) (c cloud.Compartment) {
	s.t.Helper()
	s.Look(func(v cloud.View) (err error) { c, err = v.Compartment(s.ID, door); return err })
	return c
}

// liveCodes are the kinds of codes that a cabinet with an empty list gets.
func (s *story) liveCodes() (out []string) {
	s.t.Helper()
	s.Look(func(v cloud.View) error {
		rows, err := v.CodeRows(s.ID, 0, 100)
		for _, r := range rows {
			if r.Entry.Op == wire.CodeSet {
				out = append(out, r.Entry.Kind+" "+r.Entry.Active)
			}
		}
		return err
	})
	return out
}

func (s *story) orders() (out []string) {
	s.t.Helper()
	s.Look(func(v cloud.View) error {
		rows, err := v.DeviceOrders(s.find().DeliveryID)
		for _, r := range rows {
			out = append(out, r.Tracking+" "+r.Status)
		}
		return err
	})
	slices.Sort(out)
	return out
}

// Records of a cabinet against what the cloud decided meanwhile, row by row of
// the rules: what happened at the cabinet stands.
func TestWhatHappenedAtTheCabinetStands(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e and the other stories of this package")
	t.Parallel()
	f := func(name string, packages int, play func(s *story)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(t, packages, nil, play)
		})
	}
	f("created, doors opened, delivered, picked up", 1, func(s *story) {
		s.status(cloud.DeliveryCreated)
		require.Nil(s.t, s.find().PickupCode, "not assigned before doors open")
		a := s.ask()
		s.begin(a)
		s.status(cloud.DeliveryCreated)
		s.told()
		s.outcome(a.id, wire.OutcomeDone, nil)
		s.status(cloud.DeliveryDoorsOpened)
		require.NotNil(s.t, s.find().PickupCode)
		require.False(s.t, s.find().PickupCodeActive, "usable only after settle")
		s.told("doors_opened")
		s.settle(a)
		d := s.find()
		require.Equal(s.t, cloud.DeliveryDelivered, d.Status)
		require.Equal(s.t, wire.ByDoorClose, *d.ConfirmedBy)
		require.True(s.t, d.PickupCodeActive)
		require.Equal(s.t, []string{"PK-1 stored"}, s.orders())
		s.pickUp("op_p", 2, nil, a.Doors...)
		d = s.find()
		require.Equal(s.t, cloud.DeliveryPickedUp, d.Status)
		require.Nil(s.t, d.PickupCode)
		s.told("doors_opened", "delivered", "picked_up")
		require.Equal(s.t, []string{"PK-1 picked_up"}, s.orders())
		require.Equal(s.t, cloud.GridFree, s.cell(a.Doors[0]).State)
		require.Empty(s.t, s.liveCodes())
		require.Empty(s.t, s.exceptions())
		require.Empty(s.t, s.Faults())
	})
	f("a settlement without an outcome before it tells both", 1, func(s *story) {
		a := s.ask()
		s.begin(a)
		s.settle(a)
		s.told("doors_opened", "delivered")
	})
	f("every opening has its own doors_opened, once", 1, func(s *story) {
		a := s.open()
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: a.OpeningID, Door: a.Doors[0]})
		s.end(a, wire.EndDepositUnverified)
		b := s.open()
		require.NotEqual(s.t, a.OpeningID, b.OpeningID)
		s.told("doors_opened", "doors_opened")
	})
	f("while an opening runs it is the same opening that goes on", 1, func(s *story) {
		a := s.open()
		again := s.ask()
		require.Equal(s.t, a.OpeningID, again.OpeningID)
		require.Zero(s.t, again.SessionSeconds, "its end is unchanged")
		s.outcome(again.id, wire.OutcomeDone, nil)
		s.told("doors_opened")
	})
	f("open_failed and another compartment fits", 1, func(s *story) {
		a := s.ask()
		s.begin(a)
		s.outcome(a.id, wire.OutcomeFailed, map[uint]string{a.Doors[0]: wire.DoorOpenFailed})
		s.end(a, wire.EndOpenFailed)
		s.status(cloud.DeliveryCreated)
		s.told()
		require.Equal(s.t, cloud.GridBlocked, s.cell(a.Doors[0]).State)
		b := s.open()
		require.NotEqual(s.t, a.Doors, b.Doors)
		s.settle(b)
		s.told("doors_opened", "delivered")
	})
	f("open_failed and no other compartment fits", 4, func(s *story) {
		a := s.ask()
		s.begin(a)
		s.end(a, wire.EndOpenFailed)
		s.status(cloud.DeliveryFailed)
		s.told("delivery_failed")
		for _, n := range a.Doors {
			require.Equal(s.t, cloud.GridBlocked, s.cell(n).State)
		}
	})
	f("a door swings after its opening was told as failed, and is closed", 4, func(s *story) {
		a := s.ask()
		s.begin(a)
		s.outcome(a.id, wire.OutcomePartial, map[uint]string{a.Doors[0]: wire.DoorOpenFailed})
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: a.OpeningID, Door: a.Doors[0], Pulses: 2})
		s.settle(a)
		s.status(cloud.DeliveryDelivered)
		require.Contains(s.t, s.exceptions(), "deposit_unverified low", "the courier may have gone")
	})
	f("some packages settle and others do not", 2, func(s *story) {
		a := s.ask()
		s.begin(a)
		s.outcome(a.id, wire.OutcomePartial, map[uint]string{a.Doors[1]: wire.DoorOpenFailed})
		s.settle(a, wire.Deposited, wire.Failed)
		d := s.find()
		require.Equal(s.t, cloud.DeliveryDelivered, d.Status)
		require.Equal(s.t, cloud.PackageInCompartment, d.Packages[0].Status)
		require.Equal(s.t, cloud.PackageFailed, d.Packages[1].Status)
		s.told("doors_opened", "delivered", "delivery_failed")
		require.Equal(s.t, cloud.GridBlocked, s.cell(a.Doors[1]).State)
	})
	f("an empty compartment at settle is for that package only", 2, func(s *story) {
		a := s.open()
		s.settle(a, wire.Deposited, wire.Unverified)
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, []string{"PK-1 stored", "PK-2 unverified"}, s.orders())
		require.Equal(s.t, cloud.GridOccupied, s.cell(a.Doors[1]).State)
		require.Equal(s.t, s.find().DeliveryID, s.cell(a.Doors[1]).DeliveryID, "stays assigned")
	})
	f("a correction settles what was unverified", 2, func(s *story) {
		a := s.open()
		s.settle(a, wire.Deposited, wire.Unverified)
		waits := func(ref string) (n int) {
			timeline, err := s.Store.FindTimeline(ctx, ref, nil)
			rows := timeline.Events
			require.NoError(s.t, err)
			for _, row := range rows {
				if row.Event.StatusCode == otep.AvailableForPickup {
					n++
				}
			}
			return n
		}
		require.Equal(s.t, []int{1, 0}, []int{waits("PK-1"), waits("PK-2")})
		_, err := s.correct(func(b asked) { s.opened(b); s.settle(b) })
		require.NoError(s.t, err)
		require.Equal(s.t, []string{"PK-1 stored", "PK-2 stored"}, s.orders())
		require.Equal(s.t, []int{1, 1}, []int{waits("PK-1"), waits("PK-2")}, "each is told once")
	})
	f("no door report came: unverified until somebody confirms", 1, func(s *story) {
		a := s.open()
		s.end(a, wire.EndDepositUnverified)
		d := s.find()
		require.Equal(s.t, cloud.DeliveryDoorsOpened, d.Status)
		require.Nil(s.t, d.ConfirmedBy)
		require.Equal(s.t, []string{"PK-1 unverified"}, s.orders())
		require.NoError(s.t, s.confirm())
		require.Equal(s.t, wire.ByPartnerAPI, *s.find().ConfirmedBy)
		require.Equal(s.t, []string{"PK-1 stored"}, s.orders())
		var body wire.CloseSession
		s.Command(&body)
		require.Equal(s.t, wire.CloseSession{OpeningID: a.OpeningID, How: wire.CloseSettle, ConfirmedBy: wire.ByPartnerAPI, DeliveryRef: s.find().DeliveryNumber}, body)
	})
	f("no door report came: staff confirm at the console, and see no codes", 1, func(s *story) {
		a := s.open()
		s.end(a, wire.EndDepositUnverified)
		id := s.find().DeliveryID
		confirm := func(c cloud.Caller) (locker.DeliveryOutput, error) {
			return s.Lockers.Confirm(ctx, c, locker.ConfirmInput{Delivery: locker.DeliveryKey(strconv.FormatInt(int64(id), 10))})
		}
		other := s.Box.AdminCaller
		other.Account.BusinessID += 900
		_, err := confirm(other)
		require.Equal(s.t, "DELIVERY_NOT_FOUND", code(err), "of another business")
		out, err := confirm(s.Box.AdminCaller)
		require.NoError(s.t, err)
		require.Equal(s.t, wire.ByConsole, *out.Delivery.ConfirmedBy)
		require.Nil(s.t, out.Delivery.PickupCode)
		require.Nil(s.t, out.Delivery.DeliveryCode)
		require.NotNil(s.t, s.find().PickupCode, "the partner sees it")
		require.Equal(s.t, []string{"PK-1 stored"}, s.orders())
		var body wire.CloseSession
		s.Command(&body)
		require.Equal(s.t, wire.CloseSession{OpeningID: a.OpeningID, How: wire.CloseSettle, ConfirmedBy: wire.ByConsole, DeliveryRef: s.find().DeliveryNumber}, body)
		require.NoError(s.t, s.confirm(), "the partner's is evidence")
		require.Equal(s.t, wire.ByConsole, *s.find().ConfirmedBy, "whichever came first")
		s.told("doors_opened", "delivered")
	})
	f("deposit settled, confirmed by the partner meanwhile: evidence only", 1, func(s *story) {
		a := s.open()
		require.NoError(s.t, s.confirm())
		s.settle(a)
		require.Equal(s.t, wire.ByPartnerAPI, *s.find().ConfirmedBy, "whichever came first")
		s.told("doors_opened", "delivered")
		require.Empty(s.t, s.exceptions())
	})
	f("deposit settled as unverified, confirmed by the partner meanwhile", 1, func(s *story) {
		a := s.open()
		require.NoError(s.t, s.confirm())
		s.settle(a, wire.Unverified)
		s.status(cloud.DeliveryDelivered)
		s.told("doors_opened", "delivered")
		require.Equal(s.t, []string{"deposit_unverified medium"}, s.exceptions())
	})
	f("partner's confirm after the settlement: evidence, no second event", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		require.NoError(s.t, s.confirm())
		require.Equal(s.t, wire.ByDoorClose, *s.find().ConfirmedBy)
		s.told("doors_opened", "delivered")
		rows, err := s.Store.ListAudits(ctx, s.Box.ProviderCaller.Provider.BusinessID, 0, 10)
		require.NoError(s.t, err)
		require.Equal(s.t, "deposit_evidence", rows[0].Action)
	})
	f("partner's photos of a deposit are kept with its evidence", 1, func(s *story) {
		s.open()
		for range 2 {
			_, err := s.Lockers.Confirm(ctx, s.Box.ProviderCaller, locker.ConfirmInput{Delivery: "ref:R-1", Photos: []string{"IMG_1.jpg"}})
			require.NoError(s.t, err)
		}
		rows, err := s.Store.ListAudits(ctx, s.Box.ProviderCaller.Provider.BusinessID, 0, 2)
		require.NoError(s.t, err)
		require.Len(s.t, rows, 2)
		require.Equal(s.t, []string{"deposit_evidence", "deposit_confirmed"}, []string{rows[0].Action, rows[1].Action})
		for _, r := range rows {
			require.JSONEq(s.t, `{"confirmed_by":"partner_api","photos":["IMG_1.jpg"]}`, r.Detail)
		}
	})
	f("deposit settled, cancelled meanwhile", 1, func(s *story) {
		a := s.ask()
		s.begin(a)
		s.end(a, wire.EndCancelled)
		require.NoError(s.t, s.cancel())
		s.status(cloud.DeliveryCancelled)
		// Offline, the courier had used the delivery code before word came.
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_l", Kind: wire.OpenDeposit, Doors: []uint{2}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
		s.settle(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_l", Doors: []uint{2}, Packages: map[uint][]string{2: {"PK-1"}}}})
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, []string{"deposit_unverified low"}, s.exceptions())
		require.True(s.t, s.find().PickupCodeActive)
		// The revocation took the pickup code from the cabinet: the recipient had a
		// code that the cloud called active, and that opened nothing.
		require.Equal(s.t, []string{"pickup now"}, s.liveCodes())
	})
	f("deposit settled, failed meanwhile", 1, func(s *story) {
		a := s.open()
		require.NoError(s.t, s.Store.Decide(ctx, s.ID, func(v cloud.View) (*cloud.Changes, error) { // the courier's or partner's word
			d, err := v.DeliveryByNumber(s.code)
			d.Status, d.FailedAt, d.FailureCode = cloud.DeliveryFailed, time.Now().UTC(), "OTHER"
			return &cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d}}}, err
		}))
		s.settle(a)
		d := s.find()
		require.Equal(s.t, cloud.DeliveryDelivered, d.Status)
		require.Nil(s.t, d.FailedAt)
		require.Equal(s.t, []string{"deposit_unverified low"}, s.exceptions())
	})
	f("reported as failed while a deposit at the cabinet was on its way to the cloud", 1, func(s *story) {
		time.Sleep(20 * time.Second)
		require.NoError(s.t, s.fail(`{"failure_code":"PARCEL_TOO_LARGE"}`))
		time.Sleep(time.Second)
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_l", Kind: wire.OpenDeposit, Doors: []uint{2}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
		s.settle(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_l", Doors: []uint{2}, Packages: map[uint][]string{2: {"PK-1"}}}})
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, cloud.PackageInCompartment, s.find().Packages[0].Status)
		require.Equal(s.t, cloud.GridOccupied, s.cell(2).State)
		require.Equal(s.t, []string{"deposit_unverified low"}, s.exceptions())
		s.told("delivery_failed", "delivered")
	})
	f("a courier's deposit at a cabinet that did not know of the failure yet", 1, func(s *story) {
		require.NoError(s.t, s.fail(`{"failure_code":"OTHER"}`))
		time.Sleep(20 * time.Second)
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_l", Kind: wire.OpenDeposit, Doors: []uint{2}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
		s.settle(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_l", Doors: []uint{2}, Packages: map[uint][]string{2: {"PK-1"}}}})
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, cloud.PackageInCompartment, s.find().Packages[0].Status)
		require.Equal(s.t, cloud.GridOccupied, s.cell(2).State)
		s.told("delivery_failed", "doors_opened", "delivered")
		require.Contains(s.t, s.liveCodes(), "pickup now")
	})
	f("pickup with the former code, rotated meanwhile", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.Drop()
		synctest.Wait()
		former := *s.find().PickupCode
		out, err := s.Lockers.RotatePickupCode(ctx, s.Box.ProviderCaller, locker.RotateInput{Delivery: "ref:R-1", Reason: "recipient_request"})
		require.NoError(s.t, err)
		require.False(s.t, out.AppliedOnDevice, "the cabinet is offline")
		require.NotEqual(s.t, former, out.PickupCode)
		require.Equal(s.t, out.PickupCode, *s.find().PickupCode)
		require.Equal(s.t, out.Rotation, *s.find().Rotation)
		require.Equal(s.t, []string{"pickup_code", "recipient_request", "partner_api"}, []string{out.Rotation.CodeKind, out.Rotation.Reason, out.Rotation.RotatedBy})
		s.Device = s.Connect("CAB-1", s.Memory)
		s.Greet(nil)
		s.pickUp("op_p", 2, nil, a.Doors...)
		s.status(cloud.DeliveryPickedUp)
		rows, err := s.Store.ListAudits(ctx, s.Box.ProviderCaller.Provider.BusinessID, 0, 10)
		require.NoError(s.t, err)
		require.Equal(s.t, "pickup_with_former_code", rows[0].Action)
		require.Empty(s.t, s.Faults())
	})
	f("pickup before the deposit is confirmed: the cabinet's own order decides", 1, func(s *story) {
		a := s.open()
		s.pickUp("op_p", 2, nil, a.Doors...)
		s.status(cloud.DeliveryPickedUp)
		s.settle(a)
		s.status(cloud.DeliveryPickedUp)
	})
	f("pickup, picked up by another opening before", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.pickUp("op_p", 2, nil, a.Doors...)
		s.pickUp("op_q", 2, nil, a.Doors...)
		s.status(cloud.DeliveryPickedUp)
		require.Equal(s.t, []string{"item_missing high"}, s.exceptions())
		s.told("doors_opened", "delivered", "picked_up")
	})
	f("pickup of a part keeps the rest and the code", 2, func(s *story) {
		a := s.open()
		s.settle(a)
		s.pickUp("op_p", 2, a.Doors[1:], a.Doors[0])
		d := s.find()
		require.Equal(s.t, cloud.DeliveryDelivered, d.Status)
		require.True(s.t, d.PickupCodeActive)
		require.Equal(s.t, []string{"PK-1 picked_up", "PK-2 stored"}, s.orders())
		s.pickUp("op_q", 2, nil, a.Doors[1])
		s.status(cloud.DeliveryPickedUp)
		s.told("doors_opened", "delivered", "picked_up")
	})
	f("the cabinet lost its store during an opening", 1, func(s *story) {
		a := s.open()
		b := s.ask() // accepted, and forgotten by the cabinet
		s.begin(b)
		old := s.Epoch
		s.NewEpoch(devicetest.EpochOf(100), nil)
		s.Boot++
		s.Tell(wire.KindGap, wire.Gap{Epoch: old, Reason: wire.GapStoreDamaged})
		s.Look(func(v cloud.View) error {
			o, err := v.Opening(a.OpeningID)
			require.Equal(s.t, wire.EndDepositUnverified, o.EndReason)
			c, err2 := v.Command(b.id)
			require.Equal(s.t, cloud.CommandInterrupted, c.State, "it would open the door once more")
			return errors.Join(err, err2)
		})
		s.status(cloud.DeliveryDoorsOpened)
		require.Equal(s.t, []string{"deposit_unverified medium"}, s.exceptions())
		require.Equal(s.t, []string{"PK-1 unverified"}, s.orders())
	})
	f("the cabinet lost its store during a second opening of a parcel that was collected", 1, func(s *story) {
		a := s.open()
		s.settle(a)
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_2", Kind: wire.OpenDeposit, Doors: a.Doors, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
		s.pickUp("op_q", 2, nil, a.Doors[0])
		s.status(cloud.DeliveryPickedUp)
		old := s.Epoch
		s.NewEpoch(devicetest.EpochOf(100), nil)
		s.Boot++
		s.Tell(wire.KindGap, wire.Gap{Epoch: old, Reason: wire.GapStoreDamaged})
		s.Look(func(v cloud.View) error {
			o, err := v.Opening("op_2")
			require.Equal(s.t, wire.EndDepositUnverified, o.EndReason)
			return err
		})
		require.Equal(s.t, []string{"PK-1 picked_up"}, s.orders())
		require.NotEqual(s.t, cloud.GridOccupied, s.cell(a.Doors[0]).State)
	})
	f("a late word of a command that had expired", 1, func(s *story) {
		a := s.ask()
		time.Sleep(25 * time.Second)
		s.Look(func(v cloud.View) error {
			o, err := v.Opening(a.OpeningID)
			require.True(s.t, o.Ended())
			return err
		})
		s.begin(a)
		s.outcome(a.id, wire.OutcomeDone, nil)
		s.status(cloud.DeliveryDoorsOpened)
		s.settle(a)
		s.status(cloud.DeliveryDelivered)
	})
}

func TestConfirmAndCancel(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e and the other stories of this package")
	t.Parallel()
	f := func(name string, play func(s *story)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(t, 1, nil, play)
		})
	}
	f("confirm before doors opened", func(s *story) {
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.confirm()))
		s.ask()
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.confirm()))
	})
	f("confirm while a door is known to be open", func(s *story) {
		a := s.open()
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: a.OpeningID, Door: a.Doors[0]})
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.confirm()))
		s.Tell(wire.KindDoorClosed, wire.DoorClosed{OpeningID: a.OpeningID, Door: a.Doors[0]})
		require.NoError(s.t, s.confirm())
	})
	f("confirm while the cabinet is offline reaches it on reconnect", func(s *story) {
		a := s.open()
		s.Drop()
		synctest.Wait()
		require.NoError(s.t, s.confirm())
		s.status(cloud.DeliveryDelivered)
		s.told("doors_opened", "delivered")
		time.Sleep(time.Hour)
		s.Device = s.Connect("CAB-1", s.Memory)
		s.Greet(nil)
		var body wire.CloseSession
		c := s.Command(&body)
		require.Equal(s.t, wire.CloseSession{OpeningID: a.OpeningID, How: wire.CloseSettle, ConfirmedBy: wire.ByPartnerAPI, DeliveryRef: s.find().DeliveryNumber}, body)
		require.Equal(s.t, 24*time.Hour, time.Duration(c.ExpiresAt-c.IssuedAt))
	})
	// The opening that failed took the place of the one before: a confirmation
	// settled it, with nothing in it.
	f("confirm after an opening of which no door opened", func(s *story) {
		a := s.open()
		s.end(a, wire.EndDepositUnverified)
		b := s.ask()
		s.begin(b)
		s.end(b, wire.EndOpenFailed)
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.confirm()))
	})
	f("confirm of a package that is none", func(s *story) {
		s.open()
		in := locker.ConfirmInput{Delivery: "ref:R-1"}
		require.NoError(s.t, json.Unmarshal([]byte(`{"packages":[{"tracking_number":"PK-9"}]}`), &in))
		_, err := s.Lockers.Confirm(ctx, s.Box.ProviderCaller, in)
		require.Equal(s.t, "PACKAGE_NOT_IN_DELIVERY", code(err))
	})
	f("cancel before doors opened, the cabinet offline", func(s *story) {
		s.Drop()
		synctest.Wait()
		require.NoError(s.t, s.cancel())
		s.status(cloud.DeliveryCancelled)
		s.told("cancelled")
		require.Empty(s.t, s.liveCodes())
		require.Equal(s.t, cloud.GridFree, s.cell(1).State)
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(s.cancel()))
	})
	f("cancel with doors opened, the cabinet offline", func(s *story) {
		s.open()
		s.Drop()
		synctest.Wait()
		require.Equal(s.t, "DEVICE_OFFLINE", code(s.cancel()))
		s.status(cloud.DeliveryDoorsOpened)
		s.told("doors_opened")
	})
	f("cancel with doors opened, once the cabinet has answered", func(s *story) {
		a := s.open()
		answer := make(chan error, 1)
		go func() { answer <- s.cancel() }()
		var body wire.CloseSession
		c := s.Command(&body)
		require.Equal(s.t, wire.CloseCancel, body.How)
		s.status(cloud.DeliveryDoorsOpened)
		s.outcome(c.CommandID, wire.OutcomeDone, nil)
		require.NoError(s.t, <-answer)
		s.status(cloud.DeliveryCancelled)
		s.told("doors_opened", "cancelled")
		// The codes stayed live: the courier's opened doors for a delivery that was
		// over.
		require.Empty(s.t, s.liveCodes())
		s.end(a, wire.EndCancelled)
		require.Equal(s.t, cloud.GridFree, s.cell(a.Doors[0]).State)
	})
	f("cancel with doors opened, and no answer", func(s *story) {
		s.open()
		require.Equal(s.t, "DEVICE_TIMEOUT", code(s.cancel()))
		s.status(cloud.DeliveryDoorsOpened)
	})
	f("cancel with doors opened, the deposit comes first", func(s *story) {
		a := s.open()
		answer := make(chan error, 1)
		go func() { answer <- s.cancel() }()
		var body wire.CloseSession
		c := s.Command(&body)
		s.settle(a)
		s.outcome(c.CommandID, wire.OutcomeDone, nil)
		<-answer
		s.status(cloud.DeliveryDelivered)
		s.told("doors_opened", "delivered")
	})
	// A parcel may lie inside; the next one would have been put on top.
	f("cancel after nobody saw what was left inside", func(s *story) {
		a := s.open()
		s.end(a, wire.EndDepositUnverified)
		require.NoError(s.t, s.cancel())
		require.Equal(s.t, cloud.GridOccupied, s.cell(a.Doors[0]).State)
	})
	f("an open door is shown, and a session of an offline cabinet stays open", func(s *story) {
		s.open()
		s.Drop()
		time.Sleep(time.Hour)
		out, err := s.Lockers.Doors(ctx, s.Box.ProviderCaller, "ref:R-1")
		require.NoError(s.t, err)
		require.Equal(s.t, "open", out.Session.State)
		require.False(s.t, out.Online)
		require.NotNil(s.t, out.Session.EndsAt)
	})
	f("open-doors of a device that is offline, or never answers", func(s *story) {
		began := time.Now()
		twenty := 20
		_, err := s.Lockers.OpenDoors(ctx, s.Box.ProviderCaller, locker.OpenInput{Delivery: "ref:R-1", WaitSeconds: &twenty})
		require.Equal(s.t, "DEVICE_TIMEOUT", code(err))
		require.Equal(s.t, 20*time.Second, time.Since(began).Round(time.Second))
		s.Drop()
		synctest.Wait()
		began = time.Now()
		_, err = s.Lockers.OpenDoors(ctx, s.Box.ProviderCaller, locker.OpenInput{Delivery: "ref:R-1"})
		require.Equal(s.t, "DEVICE_OFFLINE", code(err))
		require.Zero(s.t, time.Since(began), "at once")
	})
	f("open-doors that the cabinet refuses", func(s *story) {
		answer := make(chan error, 1)
		go func() {
			_, err := s.Lockers.OpenDoors(ctx, s.Box.ProviderCaller, locker.OpenInput{Delivery: "ref:R-1"})
			answer <- err
		}()
		var body wire.OpenDoors
		c := s.Command(&body)
		s.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: c.CommandID, Outcome: wire.OutcomeRefused, Reason: wire.ReasonBusy})
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(<-answer))
		s.open() // another try is another opening
	})
}

func TestReferenceIsIdempotent(t *testing.T) {
	t.Parallel()
	tell(t, 1, nil, func(s *story) {
		first := s.find().DeliveryID
		require.Equal(s.t, first, s.create("R-1", 1).DeliveryID)
		_, err := s.Lockers.Create(ctx, s.Box.ProviderCaller, locker.CreateInput{ReferenceNumber: "R-1", DeviceID: s.ID, Recipient: cloud.Recipient{Name: "Somebody else", Phone: "1"},
			Packages: []locker.PackageInput{{TrackingNumber: "PK-1"}}})
		require.Equal(s.t, "DUPLICATE_REFERENCE", code(err))
		var wg sync.WaitGroup
		ids := make([]cloud.DeliveryID, 8)
		for i := range ids {
			wg.Go(func() {
				out, err := s.Lockers.Create(ctx, s.Box.ProviderCaller, locker.CreateInput{ReferenceNumber: "R-2", DeviceID: s.ID, Recipient: cloud.Recipient{Name: "J", Phone: "1"},
					Packages: []locker.PackageInput{{TrackingNumber: "PK-7"}}})
				if err != nil {
					s.t.Errorf("create at the same time: %v", err)
				}
				ids[i] = out.Delivery.DeliveryID
			})
		}
		wg.Wait()
		for _, id := range ids {
			require.Equal(s.t, ids[0], id)
			require.NotZero(s.t, id)
		}
	})
}

// Every operation with another partner's, and another business's, delivery.
func TestDeliveriesOfOthersAreNotFound(t *testing.T) {
	t.Parallel()
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		s.settle(a)
		before := s.find()
		foreign := s.Box.ProviderCaller
		foreign.Provider.ID += 1000
		tenant := foreign
		tenant.Provider.BusinessID += 1000
		id := locker.DeliveryKey("1")
		s.Look(func(v cloud.View) error {
			d, err := v.DeliveryByNumber(s.code)
			id = locker.DeliveryKey(json.Number(strings.TrimSpace(string(mustJSON(d.ID)))).String())
			return err
		})
		for _, c := range []cloud.Caller{foreign, tenant} {
			for _, key := range []locker.DeliveryKey{"ref:R-1", id} {
				for name, op := range map[string]func() error{
					"find":    func() error { _, err := s.Lockers.Find(ctx, c, key); return err },
					"open":    func() error { _, err := s.Lockers.OpenDoors(ctx, c, locker.OpenInput{Delivery: key}); return err },
					"doors":   func() error { _, err := s.Lockers.Doors(ctx, c, key); return err },
					"confirm": func() error { _, err := s.Lockers.Confirm(ctx, c, locker.ConfirmInput{Delivery: key}); return err },
					"cancel":  func() error { _, err := s.Lockers.Cancel(ctx, c, locker.CancelInput{Delivery: key}); return err },
					"rotate": func() error {
						_, err := s.Lockers.RotatePickupCode(ctx, c, locker.RotateInput{Delivery: key})
						return err
					},
				} {
					require.Equal(s.t, "DELIVERY_NOT_FOUND", code(op()), "%s %s", name, key)
				}
			}
		}
		_, err := s.Lockers.Create(ctx, tenant, locker.CreateInput{ReferenceNumber: "X", DeviceID: s.ID, Recipient: cloud.Recipient{Name: "J", Phone: "1"}, Packages: []locker.PackageInput{{TrackingNumber: "Z"}}})
		require.Error(s.t, err)
		require.Equal(s.t, before, s.find())
	})
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// shape compares names and types of a body with an example's. null goes with
// anything; lists compare by their first element.
func shape(t *testing.T, path string, want, got any) {
	t.Helper()
	if want == nil || got == nil {
		return
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		require.True(t, ok, path)
		for name, x := range w {
			require.Contains(t, g, name, "%s has no %s", path, name)
			shape(t, path+"."+name, x, g[name])
		}
		for name := range g {
			if _, ok := w[name]; !ok && !slices.Contains([]string{"deposited_at", "picked_up_at", "expired_at", "cancelled_at", "failure_code"}, name) {
				t.Errorf("%s.%s is in no example", path, name)
			}
		}
	case []any:
		g, ok := got.([]any)
		require.True(t, ok, path)
		if len(w) > 0 && len(g) > 0 {
			shape(t, path+"[0]", w[0], g[0])
		}
	default:
		require.IsType(t, want, got, path)
	}
}

func TestEventBodiesAreAsTheExamplesShow(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/events.json")
	require.NoError(t, err)
	var examples map[string]any
	require.NoError(t, json.Unmarshal(raw, &examples))
	check := func(s *story, names ...string) {
		_, bodies := s.events()
		for _, name := range names {
			require.Contains(s.t, bodies, name)
			shape(s.t, name, examples["locker_delivery."+name], bodies[name])
		}
	}
	tell(t, 1, nil, func(s *story) {
		first := s.cell(1)
		first.PickupNumber, first.Label = 6, "A-6" // another number than that of its door
		require.NoError(s.t, s.Store.Decide(ctx, s.ID, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{first}}}, nil
		}))
		a := s.open()
		s.settle(a)
		_, err := s.Lockers.RotatePickupCode(ctx, s.Box.ProviderCaller, locker.RotateInput{Delivery: "ref:R-1", Reason: "recipient_request"})
		require.NoError(s.t, err)
		s.pickUp("op_p", 4, nil, a.Doors...)
		check(s, "doors_opened", "delivered", "pickup_code_changed", "picked_up")
		_, bodies := s.events()
		get := func(event string, path ...string) any {
			var v any = bodies[event]
			for _, p := range path {
				v = v.(map[string]any)[p]
			}
			return v
		}
		require.Equal(s.t, "doors_opened", get("doors_opened", "data", "delivery", "status"))
		require.Equal(s.t, true, get("doors_opened", "livemode"), "of a real cabinet")
		opened := get("doors_opened", "data", "opening", "compartments").([]any)[0].(map[string]any)
		require.Equal(s.t, []any{float64(first.GridID), 1.0, 6.0, "A-6"}, []any{opened["grid_id"], opened["compartment_number"], opened["pickup_locker_number"], opened["pickup_locker_code"]})
		require.Equal(s.t, false, get("doors_opened", "data", "pickup_code_active"))
		require.NotNil(s.t, get("doors_opened", "data", "pickup_code"))
		require.NotNil(s.t, get("doors_opened", "data", "delivery_code"))
		require.Nil(s.t, get("delivered", "data", "delivery_code"))
		require.Equal(s.t, true, get("delivered", "data", "pickup_code_active"))
		require.Equal(s.t, "door_close", get("delivered", "data", "confirmed_by"))
		require.NotNil(s.t, get("delivered", "data", "due_at"))
		require.Equal(s.t, "recipient_request", get("pickup_code_changed", "data", "rotation", "reason"))
		require.Nil(s.t, get("picked_up", "data", "pickup_code"))
		require.Equal(s.t, map[string]any{"type": "recipient", "method": "code"}, get("picked_up", "data", "picked_up_by"))
	})
	tell(t, 4, nil, func(s *story) {
		a := s.ask()
		s.begin(a)
		s.end(a, wire.EndOpenFailed)
		check(s, "delivery_failed")
	})
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		s.settle(a)
		_, err := s.correct(func(b asked) { s.opened(b); s.settle(b) })
		require.NoError(s.t, err)
		s.soon(time.Second)
		time.Sleep(15 * time.Second)
		check(s, "correction_reopened", "expired")
		_, bodies := s.events()
		data := bodies["correction_reopened"]["data"].(map[string]any)
		require.Equal(s.t, "correcting", data["delivery"].(map[string]any)["status"])
		require.Equal(s.t, false, data["pickup_code_active"])
		require.Equal(s.t, "partner_api", data["correction"].(map[string]any)["requested_by"])
		data = bodies["expired"]["data"].(map[string]any)
		require.Equal(s.t, "pickup_overdue", data["expired_kind"])
		require.Equal(s.t, data["due_at"], data["expired_at"])
		require.NotNil(s.t, data["pickup_code"])
	})
	tell(t, 1, nil, func(s *story) {
		require.NoError(s.t, s.cancel())
		check(s, "cancelled")
		_, bodies := s.events()
		data := bodies["cancelled"]["data"].(map[string]any)
		require.Equal(s.t, "partner_request", data["cancel_reason"])
		require.Equal(s.t, "partner_api", data["cancelled_by"])
		require.Nil(s.t, data["pickup_code"])
		require.Nil(s.t, data["delivery_code"])
	})
}

// Pickup codes are in webhook bodies (sealed while they wait) and in answers to
// the partner that made the delivery, and nowhere else: not in the log, not in
// the database file, not in timelines, orders, exceptions or audits.
func TestCodesAreNowhereButInEventsAndAnswers(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	tell(t, 1, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), func(s *story) {
		a := s.open()
		s.settle(a)
		first := *s.find().PickupCode
		out, err := s.Lockers.RotatePickupCode(ctx, s.Box.ProviderCaller, locker.RotateInput{Delivery: "ref:R-1"})
		require.NoError(s.t, err)
		s.Tell(wire.KindCodeAttempt, wire.CodeAttempt{Outcome: wire.CodeUnknown, Input: "keypad"})
		s.pickUp("op_p", 2, nil, a.Doors...)
		_, bodies := s.events()
		require.Equal(s.t, first, bodies["delivered"]["data"].(map[string]any)["pickup_code"])
		codes := []string{first, out.PickupCode, bodies["doors_opened"]["data"].(map[string]any)["delivery_code"].(string)}

		var seen bytes.Buffer
		timeline, err := s.Store.FindTimeline(ctx, "PK-1", nil)
		events := timeline.Events
		require.NoError(s.t, err)
		orders, err := s.Store.ListDeviceOrders(ctx, s.ID)
		require.NoError(s.t, err)
		audits, err := s.Store.ListAudits(ctx, s.Box.ProviderCaller.Provider.BusinessID, 0, 100)
		require.NoError(s.t, err)
		for _, v := range []any{events, orders, audits, s.confirm().Error(), s.cancel().Error()} {
			seen.Write(mustJSON(v))
		}
		copied := filepath.Join(s.t.TempDir(), "copy.db")
		require.NoError(s.t, s.Store.Backup(ctx, copied))
		file, err := os.ReadFile(copied)
		require.NoError(s.t, err)
		for _, c := range codes {
			require.GreaterOrEqual(s.t, len(c), 6)
			for name, where := range map[string][]byte{"log": log.bytes(), "rows": seen.Bytes(), "database": file} {
				require.False(s.t, has(where, c), "a code is in the %s", name)
			}
		}
		s.Publish("tms/foreign", nil)
		devicetest.Wait(s.t, "end of the connection", s.Closed)
	})
	require.NotEmpty(t, log.bytes())
}

// has reports whether a code stands in b on its own, not inside a longer number.
func has(b []byte, code string) bool {
	digit := func(i int) bool { return i >= 0 && i < len(b) && b[i] >= '0' && b[i] <= '9' }
	for i := 0; ; {
		n := bytes.Index(b[i:], []byte(code))
		if n < 0 {
			return false
		}
		if i += n; !digit(i-1) && !digit(i+len(code)) {
			return true
		}
		i++
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.b.Bytes())
}
