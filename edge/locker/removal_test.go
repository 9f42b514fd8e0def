package locker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// stores has a delivery brought to a door, with a pickup code n that is good until due, unix
// ns, 0 for no end, and a purpose.
func (w *world) stores(n uint, due int64, purpose string) string {
	ref := fmt.Sprint("LD-", n)
	kind := wire.CodePickup
	if purpose != "" {
		kind = wire.CodeOutgoing
	}
	packages := map[uint][]string{n: {fmt.Sprint("PK", n), fmt.Sprint("QK", n)}}
	w.list(wire.CodeEntry{Number: w.s.Meta.CodeList + 1, Op: wire.CodeSet, Kind: kind, Verifier: verifier(byte(100 + n)), DeliveryRef: ref, NotAfter: due, Active: wire.ActiveAtSettle, Purpose: purpose})
	w.step(Ordered{Command: w.command(wire.CmdOpenDoors, map[uint]uint64{n: w.s.Doors[edge.DoorNumber(n)].Version + 1},
		wire.OpenDoors{OpeningID: fmt.Sprint("op_", n, w.commits), Kind: wire.OpenDeposit, Doors: []uint{n}, SessionSeconds: 600, DeliveryRef: ref, Packages: packages})})
	w.swing()
	w.setDoor(edge.DoorNumber(n), false)
	w.wait(3 * time.Second)
	require.Equal(w.t, ref, w.s.Doors[edge.DoorNumber(n)].Delivery)
	return ref
}

const staffVerifier = 9

// collecting is a cabinet with an overdue delivery behind door 1, an outgoing one behind
// door 2, one that waits behind door 3, and a staff code.
func collecting(t testing.TB) *world {
	w := newWorld(t, 5)
	w.stores(1, w.now.Wall(w.now.Mono)-second, "")
	w.stores(2, 0, wire.PurposeReturn)
	w.stores(3, w.now.Wall(w.now.Mono)+100*hour, "")
	w.list(wire.CodeEntry{Number: w.s.Meta.CodeList + 1, Op: wire.CodeSet, Kind: wire.CodeStaff, Verifier: verifier(staffVerifier), NotAfter: w.now.Wall(w.now.Mono) + 12*hour})
	return w
}

func (w *world) queue(doors ...edge.DoorNumber) Answer {
	return w.step(CodeTried{Verifier: verifier(staffVerifier), Input: "keypad", Budget: BudgetStaff, Doors: doors, Queue: true}).Answer
}

func (w *world) staffOpens(doors ...edge.DoorNumber) Answer {
	a := w.step(CodeTried{Verifier: verifier(staffVerifier), Input: "keypad", Budget: BudgetStaff, Doors: doors}).Answer
	require.Equal(w.t, wire.CodeOK, a.Outcome)
	w.swing()
	for _, n := range doors {
		w.setDoor(n, false)
	}
	return a
}

func (w *world) next(session string) Answer { return w.step(OpenNext{Session: session}).Answer }

func (w *world) state(a Answer, outcome, reason string) string {
	return w.step(Remove{Session: w.s.Staff.ID, OpeningID: a.OpeningID, Door: a.Doors[0], Outcome: outcome, Reason: reason}).Answer.Outcome
}

func TestStaffCollectInAQueue(t *testing.T) {
	t.Parallel()
	w := collecting(t)
	require.Equal(t, []string{DueOverdue, DueOutgoing, "", ""}, []string{w.s.Due(1, w.now), w.s.Due(2, w.now), w.s.Due(3, w.now), w.s.Due(4, w.now)})
	require.Empty(t, w.takePulses())
	a := w.queue(1, 3, 2, 9)
	require.Equal(t, wire.CodeOK, a.Outcome)
	require.Equal(t, []edge.DoorNumber{1}, a.Doors)
	require.NotEmpty(t, a.Session)
	require.Equal(t, []edge.DoorNumber{1}, w.pulses, "one after the other")
	require.Equal(t, wire.ReasonBusy, w.next(a.Session).Outcome, "the first is on its way")
	w.swing()
	require.Equal(t, wire.ReasonBusy, w.next(a.Session).Outcome, "and open")
	require.Equal(t, RemovalDoorOpen, w.state(a, wire.RemovalTaken, wire.RemovalCollected))
	w.setDoor(1, false)
	require.Equal(t, wire.CodeOK, w.state(a, wire.RemovalTaken, wire.RemovalCollected))
	got := bodies[wire.Removal](w)
	require.Len(t, got, 1)
	require.NotEmpty(t, got[0].ID)
	got[0].ID = ""
	require.Equal(t, wire.Removal{DeliveryRef: "LD-1", OpeningID: a.OpeningID, Door: 1, Outcome: wire.RemovalTaken, Reason: wire.RemovalCollected, CodeNumber: 4}, got[0])
	require.Empty(t, w.s.Doors[1].Delivery)
	require.NotContains(t, w.s.Deliveries, "LD-1")
	require.Equal(t, wire.CodeUnknown, w.typed(101).Outcome, "its code is dead")
	require.Equal(t, wire.CodeOK, w.state(a, wire.RemovalTaken, wire.RemovalCollected), "a repeat")
	require.Equal(t, wire.ReasonNotInside, w.state(a, wire.RemovalNotFound, wire.RemovalCollected), "it was stated already")
	require.Len(t, bodies[wire.Removal](w), 1)

	b := w.next(a.Session)
	require.Equal(t, wire.CodeOK, b.Outcome)
	require.Equal(t, []edge.DoorNumber{2}, b.Doors, "nothing is to be collected behind door 3")
	require.Equal(t, "LD-3", w.s.Doors[3].Delivery)
	w.swing()
	w.setDoor(2, false)
	require.Equal(t, wire.CodeOK, w.state(b, wire.RemovalRefused, wire.RemovalCollected))
	require.Equal(t, "LD-2", w.s.Doors[2].Delivery, "it is left")
	require.Equal(t, wire.CodeOK, w.state(b, wire.RemovalNotFound, wire.RemovalCollected), "on a second look")
	require.Empty(t, w.s.Doors[2].Delivery)
	require.Equal(t, wire.RemovalNotFound, bodies[wire.Removal](w)[2].Outcome)
	require.Equal(t, QueueDone, w.next(a.Session).Outcome)
	w.wait(3 * time.Second)
	require.Empty(t, w.s.Openings)
	for _, e := range bodies[wire.OpeningEnded](w) {
		require.Equal(t, wire.EndDone, e.Reason)
	}
	require.Empty(t, bodies[wire.PickupCompleted](w))
}

func TestRemovalsThatAreNotTaken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		want            string
		outcome, reason string
		change          func(w *world, a *Answer)
	}{
		"a courier's reason for a parcel that waits": {want: RemovalNotDue, reason: wire.RemovalCollected},
		"unknown reason":                {want: wire.ReasonUnsupported, reason: "stolen"},
		"unknown outcome":               {want: wire.ReasonUnsupported, outcome: "lost"},
		"left inside for another cause": {want: wire.ReasonUnsupported, outcome: wire.RemovalRefused},
		"another session":               {want: wire.ReasonNoOpening, change: func(w *world, _ *Answer) { w.step(CodeTried{Verifier: verifier(staffVerifier), Input: "keypad"}) }},
		"after a start":                 {want: wire.ReasonNoOpening, change: func(w *world, _ *Answer) { w.restart(time.Second, wire.ClockSynced); w.readAll() }},
		"another opening":               {want: wire.ReasonNoOpening, change: func(_ *world, a *Answer) { a.OpeningID = "op_3" }},
		"another door":                  {want: wire.ReasonNoOpening, change: func(_ *world, a *Answer) { a.Doors = []edge.DoorNumber{1} }},
		"much later":                    {want: wire.ReasonNoOpening, change: func(w *world, _ *Answer) { w.wait(11 * time.Minute) }},
		"opened again by hand":          {want: RemovalDoorOpen, change: func(w *world, _ *Answer) { w.setDoor(3, true) }},
		"board silent":                  {want: wire.ReasonBoard, change: func(w *world, _ *Answer) { w.step(Lost{Doors: []edge.DoorNumber{3}, Mono: w.now.Mono}) }},
		"something seen":                {want: RemovalSeen, change: func(w *world, _ *Answer) { w.item(3, false, wire.ItemPresent) }},
		"the recipient is at it": {want: wire.ReasonBusy, change: func(w *world, _ *Answer) {
			w.wait(3 * time.Second)
			require.Equal(w.t, wire.CodeOK, w.typed(103).Outcome)
		}},
		"collected by its recipient": {want: wire.ReasonNotInside, change: func(w *world, _ *Answer) {
			w.wait(3 * time.Second)
			require.Equal(w.t, wire.CodeOK, w.typed(103).Outcome)
			w.swing()
			w.setDoor(3, false)
			w.wait(3 * time.Second)
		}},
		"cleared, and another came": {want: wire.ReasonNotInside, change: func(w *world, _ *Answer) {
			w.wait(3 * time.Second)
			w.step(Ordered{Command: w.command(wire.CmdClear, nil, wire.DoorReason{Door: 3, DeliveryRef: "LD-3"})})
			w.occupy(3, "LD-9")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := collecting(t)
			a := w.staffOpens(3)
			if c.change != nil {
				c.change(w, &a)
			}
			if c.outcome == "" {
				c.outcome = wire.RemovalTaken
			}
			if c.reason == "" {
				c.reason = "handover"
			}
			before, lay := len(w.records), w.s.Doors[3].Delivery
			require.Equal(t, c.want, w.state(a, c.outcome, c.reason))
			require.Len(t, w.records, before)
			require.Equal(t, lay, w.s.Doors[3].Delivery)
		})
	}
}

func TestOnlyTheSessionThatOpenedADoorEmptiesIt(t *testing.T) {
	t.Parallel()
	w := collecting(t)
	require.Equal(t, wire.ReasonNoOpening, w.state(Answer{Doors: []edge.DoorNumber{3}}, wire.RemovalTaken, "relay"), "no session")
	w.step(Remove{Door: 3, Outcome: wire.RemovalTaken, Reason: "relay"})
	require.Equal(t, "LD-3", w.s.Doors[3].Delivery)
	// Staff who opened from afar are not at the screen.
	w.order("op_far", wire.OpenStaff, 3)
	w.swing()
	w.setDoor(3, false)
	require.Equal(t, wire.ReasonNoOpening, w.state(Answer{OpeningID: "op_far", Doors: []edge.DoorNumber{3}}, wire.RemovalTaken, "relay"))
	w.wait(3 * time.Second)
	// A door that did not open is no door that was looked behind.
	a := w.step(CodeTried{Verifier: verifier(staffVerifier), Input: "keypad", Doors: []edge.DoorNumber{3}}).Answer
	w.answer(edge.PulseNotSent)
	w.wait(5 * time.Second)
	require.Equal(t, wire.ReasonNoOpening, w.state(a, wire.RemovalTaken, "relay"))
	for _, reason := range wire.RemovalReasons() {
		w := collecting(t)
		require.Equal(t, wire.CodeOK, w.state(w.staffOpens(3), wire.RemovalTaken, reason), reason)
		require.Empty(t, w.s.Doors[3].Delivery)
		require.Equal(t, reason, bodies[wire.Removal](w)[0].Reason)
	}
}

func TestASignedQRCodeOfStaffRemovesAndOpensNoMore(t *testing.T) {
	t.Parallel()
	w := collecting(t)
	out := w.step(PassShown{Pass: w.staffPass(1, 3), Device: "A-1"})
	require.Equal(t, wire.CodeOK, out.Answer.Outcome)
	require.NotEmpty(t, out.Answer.Session)
	w.swing()
	w.setDoor(3, false)
	require.Equal(t, wire.ReasonNoOpening, w.next(out.Answer.Session).Outcome)
	require.Equal(t, wire.CodeOK, w.state(out.Answer, wire.RemovalTaken, "pending_area"))
	require.Zero(t, bodies[wire.Removal](w)[0].CodeNumber)
	require.Empty(t, w.s.Doors[3].Delivery)
	require.Empty(t, w.step(PassShown{Pass: w.courierPass(2, 4), Device: "A-1"}).Answer.Session, "a courier's begins none")
}

// A code that was withdrawn, or whose day is over, opens no further door of its queue.
func TestTheQueueEndsWithItsCode(t *testing.T) {
	t.Parallel()
	w := collecting(t)
	a := w.queue(1, 2)
	w.swing()
	w.setDoor(1, false)
	w.list(wire.CodeEntry{Number: w.s.Meta.CodeList + 1, Op: wire.CodeRevoke, Kind: wire.CodeStaff, Verifier: verifier(staffVerifier)})
	require.Equal(t, wire.CodeExpired, w.next(a.Session).Outcome)
	require.Equal(t, wire.CodeOK, w.state(a, wire.RemovalTaken, wire.RemovalCollected), "what was opened was opened")
	w = collecting(t)
	a = w.queue(1, 2)
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	w.now.Mono += 13 * hour
	require.Equal(t, wire.CodeExpired, w.next(a.Session).Outcome)
	require.Equal(t, wire.ReasonNoOpening, w.next("").Outcome)
	require.Equal(t, wire.ReasonNoOpening, w.next("ss_other").Outcome)
}

// A door of the queue on which something runs, or that has no board, is answered and left
// out; one that was collected or given more time meanwhile is passed over.
func TestADoorOfTheQueueThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	w := collecting(t)
	w.stores(4, w.now.Wall(w.now.Mono)-second, "")
	a := w.queue(2, 1, 4)
	w.swing()
	w.setDoor(2, false)
	w.wait(3 * time.Second)
	w.step(Lost{Doors: []edge.DoorNumber{1}, Mono: w.now.Mono})
	b := w.next(a.Session)
	require.Equal(t, []any{wire.ReasonBoard, []edge.DoorNumber{1}}, []any{b.Outcome, b.Doors})
	w.list(wire.CodeEntry{Number: w.s.Meta.CodeList + 1, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(104), DeliveryRef: "LD-4", NotAfter: w.now.Wall(w.now.Mono) + hour, Active: wire.ActiveNow})
	require.Equal(t, QueueDone, w.next(a.Session).Outcome, "it has more time")
	require.Equal(t, wire.CodeOK, w.state(a, wire.RemovalTaken, wire.RemovalCollected))
	// One that got more time while its door was open has left all the same.
	w = collecting(t)
	a = w.queue(1)
	w.swing()
	w.list(wire.CodeEntry{Number: w.s.Meta.CodeList + 1, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(101), DeliveryRef: "LD-1", NotAfter: w.now.Wall(w.now.Mono) + hour, Active: wire.ActiveNow})
	w.setDoor(1, false)
	require.Equal(t, wire.CodeOK, w.state(a, wire.RemovalTaken, wire.RemovalCollected))
}

func TestWhatIsOverdueIsCertain(t *testing.T) {
	t.Parallel()
	w := collecting(t)
	w.now.ErrMS = 3000
	require.Empty(t, w.s.Due(1, Now{Boot: 1, Mono: w.now.Mono}), "no time is known")
	w.stores(4, w.now.Wall(w.now.Mono)+2*second, "")
	require.Empty(t, w.s.Due(4, w.now))
	w.wait(4 * time.Second)
	require.Equal(t, DueOverdue, w.s.Due(4, w.now))
	dl := w.s.Deliveries["LD-4"]
	dl.Suspended = true
	w.s.Deliveries["LD-4"] = dl
	require.Empty(t, w.s.Due(4, w.now), "its deposit is being corrected")
}

// A late command for what was removed takes nothing that was brought since.
func TestALateClearHitsNoLaterParcel(t *testing.T) {
	t.Parallel()
	w := collecting(t)
	clear := Ordered{Command: w.command(wire.CmdClear, nil, wire.DoorReason{Door: 3, DeliveryRef: "LD-3"})}
	require.Equal(t, wire.CodeOK, w.state(w.staffOpens(3), wire.RemovalTaken, "anomaly"))
	w.wait(3 * time.Second)
	w.order("op_new", wire.OpenDeposit, 3)
	w.swing()
	w.setDoor(3, false)
	w.wait(3 * time.Second)
	w.step(clear)
	require.Equal(t, "LD-1", w.s.Doors[3].Delivery)
	require.Equal(t, wire.OutcomeRefused, w.last().Outcome)
}

// A parcel in two compartments is left by halves: its code opens what is left.
func TestTheRestOfADeliveryWaits(t *testing.T) {
	t.Parallel()
	w := collecting(t)
	dl := w.s.Deliveries["LD-3"]
	dl.Doors = map[edge.DoorNumber][]string{3: {"PK3"}, 4: {"PK4"}}
	w.s.Deliveries["LD-3"] = dl
	w.occupy(4, "LD-3")
	require.Equal(t, wire.CodeOK, w.state(w.staffOpens(3), wire.RemovalTaken, "relay"))
	w.wait(3 * time.Second)
	require.Equal(t, []edge.DoorNumber{4}, w.typed(103).Doors)
}

// The memory is lost after a removal that the cloud has not heard of: its whole list does
// not bring back what has left.
func TestAWholeListDoesNotBringBackWhatStaffRemoved(t *testing.T) {
	t.Parallel()
	w := collecting(t)
	w.step(Tampered{What: wire.TamperStoreRolledBack})
	require.Equal(t, wire.CodeOK, w.state(w.staffOpens(3), wire.RemovalTaken, "recovery"))
	w.wait(3 * time.Second)
	w.take(wire.Codes{To: 9, Generation: 3, Nonce: nonceA, Entries: []wire.CodeEntry{{Number: 9, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(103), DeliveryRef: "LD-3", Doors: []uint{3},
		Packages: map[uint][]string{3: {"PK3"}}, Active: wire.ActiveNow}}})
	require.Empty(t, w.s.Doors[3].Delivery)
}

// The power fails after any step of a collection: no door opens that was not opened, what
// was stated stands, and what was not stated lies there still.
func TestAPowerCutDuringACollection(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := collecting(t)
		w.stores(4, w.now.Wall(w.now.Mono)-second, "")
		model := map[edge.DoorNumber]string{1: "LD-1", 2: "LD-2", 3: "LD-3", 4: "LD-4"}
		cut := rapid.IntRange(0, 12).Draw(rt, "cut")
		step, stated := 0, 0
		dead := func() bool { step++; return step > cut }
		func() {
			if dead() {
				return
			}
			a := w.queue(1, 2, 4)
			for range 3 {
				if dead() {
					return
				}
				w.swing()
				if dead() {
					return
				}
				w.setDoor(a.Doors[0], false)
				if dead() {
					return
				}
				outcome := rapid.SampledFrom([]string{wire.RemovalTaken, wire.RemovalNotFound, wire.RemovalRefused}).Draw(rt, "outcome")
				require.Equal(rt, wire.CodeOK, w.state(a, outcome, wire.RemovalCollected))
				if stated++; outcome != wire.RemovalRefused {
					delete(model, a.Doors[0])
				}
				if dead() {
					return
				}
				a = w.next(w.s.Staff.ID)
			}
			require.Equal(rt, QueueDone, a.Outcome)
		}()
		session := w.s.Staff.ID
		w.restart(time.Duration(rapid.IntRange(1, 900).Draw(rt, "off"))*time.Second, rapid.SampledFrom([]wire.Clock{wire.ClockUnset, wire.ClockCarried, wire.ClockSynced}).Draw(rt, "clock"))
		w.readAll()
		require.Equal(rt, wire.ReasonNoOpening, w.next(session).Outcome)
		require.Empty(rt, w.takePulses())
		for n := range w.open {
			w.setDoor(n, false)
		}
		w.wait(time.Duration(ring.Count(21, 25)) * time.Minute)
		require.Empty(rt, w.takePulses())
		require.Empty(rt, w.s.Openings)
		require.Len(rt, bodies[wire.Removal](w), stated)
		for n := edge.DoorNumber(1); n <= 5; n++ {
			require.Equal(rt, model[n], w.s.Doors[n].Delivery, "door %d", n)
			_, known := w.s.Deliveries[model[n]]
			require.Equal(rt, model[n] != "", known)
		}
		w.endsOnce()
	})
}
