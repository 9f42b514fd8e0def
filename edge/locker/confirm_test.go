package locker

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

func (w *world) confirmed(opening string, packages map[uint][]string) {
	w.step(Ordered{Command: w.command(wire.CmdCloseSession, nil, wire.CloseSession{OpeningID: opening, How: wire.CloseSettle, ConfirmedBy: wire.ByPartnerAPI, Packages: packages})})
}

// pickup is the code of LD-1, listed ahead of its deposit.
func (w *world) pickup() {
	w.list(wire.CodeEntry{Number: w.s.Meta.CodeList + 1, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(7), DeliveryRef: "LD-1", Active: wire.ActiveAtSettle})
}

func TestConfirmationOfSomePackagesActivatesTheCodeForThemAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.pickup()
	w.openDoors("op_1", 1, 2)
	w.swing()
	w.setDoor(1, false)
	w.setDoor(2, false)
	w.confirmed("op_1", map[uint][]string{2: {"PK2"}})
	got := bodies[wire.OpeningSettled](w)
	require.Len(t, got, 1)
	require.Equal(t, []wire.SettledPackage{
		{Ref: "PK1", Door: 1, Outcome: wire.Failed, FailureCode: "NOT_DEPOSITED"},
		{Ref: "PK2", Door: 2, Outcome: wire.Deposited, CodeNumber: 1},
	}, got[0].Packages)
	require.Empty(t, w.s.Doors[1].Delivery, "free for the next one")
	out := w.step(CodeTried{Verifier: verifier(7), Input: "keypad"})
	require.Equal(t, []edge.DoorNumber{2}, out.Answer.Doors)
}

func TestConfirmationThatPutsBothPackagesBehindOneDoor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.pickup()
	w.openDoors("op_1", 1, 2)
	w.swing()
	w.setDoor(1, false)
	w.setDoor(2, false)
	w.confirmed("op_1", map[uint][]string{2: {"PK1", "PK2"}})
	require.Equal(t, map[edge.DoorNumber][]string{2: {"PK1", "PK2"}}, w.s.Deliveries["LD-1"].Doors)
	require.Len(t, bodies[wire.OpeningSettled](w)[0].Packages, 2)
}

func TestLateConfirmationOfSomeFreesTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.pickup()
	w.openDoors("op_1", 1, 2)
	for _, n := range w.takePulses() {
		w.step(Lost{Doors: []edge.DoorNumber{n}, Mono: w.now.Mono})
		w.step(Pulsing{Door: n, Outcome: edge.PulseUnanswered, Mono: w.now.Mono})
	}
	w.readAll()
	w.now.Mono += 601 * second
	w.step(Tick{})
	require.Equal(t, wire.EndDepositUnverified, bodies[wire.OpeningEnded](w)[0].Reason)
	require.Len(t, w.s.Exceptions, 2)
	w.confirmed("op_1", map[uint][]string{1: {"PK1"}})
	require.Equal(t, map[edge.DoorNumber][]string{1: {"PK1"}}, w.s.Deliveries["LD-1"].Doors)
	require.Empty(t, w.s.Doors[2].Delivery)
	require.Empty(t, w.s.Exceptions)
}

func TestCorrectionKeepsWhatADoorThatDidNotOpenHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.pickup()
	w.openDoors("op_1", 1, 2)
	w.swing()
	w.setDoor(1, false)
	w.setDoor(2, false)
	w.wait(3 * time.Second)
	w.order("op_2", wire.OpenCorrection, 1, 2)
	for _, n := range w.takePulses() {
		w.step(Pulsing{Door: n, Outcome: edge.PulseConfirmed, Mono: w.now.Mono})
	}
	w.setDoor(1, true)
	w.wait(1500 * time.Millisecond)
	for range 3 { // the second pulse of door 2, and its wait
		for _, n := range w.takePulses() {
			w.step(Pulsing{Door: n, Outcome: edge.PulseConfirmed, Mono: w.now.Mono})
		}
		w.wait(2 * time.Second)
	}
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	got := bodies[wire.OpeningSettled](w)
	require.Len(t, got, 2)
	for _, p := range got[1].Packages {
		require.Equal(t, wire.Deposited, p.Outcome, "door %d", p.Door)
	}
	require.Len(t, w.s.Deliveries["LD-1"].Doors, 2)
}

func TestCorrectionInWhichThePackageWasTakenOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.deposit()
	w.order("op_2", wire.OpenCorrection, 1)
	w.swing()
	require.True(t, w.s.Deliveries["LD-1"].Suspended)
	require.Equal(t, wire.CodeNotActive, w.step(CodeTried{Verifier: verifier(7), Input: "keypad"}).Answer.Outcome)
	w.step(Reading{Door: 1, Open: false, Mono: w.now.Mono, Item: wire.ItemAbsent})
	w.open[1] = false
	w.wait(3 * time.Second)
	got := bodies[wire.OpeningSettled](w)
	require.Len(t, got, 2)
	require.Equal(t, []wire.SettledPackage{{Ref: "PK1", Door: 1, Outcome: wire.Failed, FailureCode: "NOT_DEPOSITED"}}, got[1].Packages)
	require.Empty(t, w.s.Doors[1].Delivery)
	require.Empty(t, w.s.Deliveries)
	require.Empty(t, w.s.Exceptions)
	require.Equal(t, wire.CodeUnknown, w.step(CodeTried{Verifier: verifier(7), Input: "keypad"}).Answer.Outcome, "nothing to collect")
}

// The courier had typed the code, and the cloud had not learned of it: another
// compartment takes the place of the first, whose door closes with nothing inside.
func TestReassignmentOfADepositThatTheCloudDoesNotKnow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-1", Doors: []uint{1}, Packages: map[uint][]string{1: {"PK1"}}, Active: wire.ActiveNow})
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(5), Input: "keypad"}).Answer.Outcome)
	w.swing()
	w.order("op_2", wire.OpenDeposit, 2)
	require.Empty(t, w.takePulses(), "one deposit of a delivery at a time")
	got := bodies[wire.CommandOutcome](w)
	require.Equal(t, wire.ReasonBusy, got[len(got)-1].Reason)
	w.order("op_3", wire.OpenReassign, 3)
	w.swing()
	w.setDoor(1, false)
	w.setDoor(3, false)
	w.wait(3 * time.Second)
	settled := bodies[wire.OpeningSettled](w)
	require.Len(t, settled, 1)
	require.Equal(t, "op_3", settled[0].OpeningID)
	require.Empty(t, w.s.Doors[1].Delivery)
	require.Equal(t, "LD-1", w.s.Doors[3].Delivery)
}

func TestCorrectionOfADeliveryThatWasCollected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.deposit()
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(7), Input: "keypad"}).Answer.Outcome)
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Len(t, bodies[wire.PickupCompleted](w), 1)
	w.order("op_2", wire.OpenCorrection, 1) // the cloud has not learned of it yet
	require.Empty(t, w.takePulses())
	got := bodies[wire.CommandOutcome](w)
	require.Equal(t, wire.ReasonNotInside, got[len(got)-1].Reason)
	w.wait(11 * time.Minute)
	require.Len(t, bodies[wire.OpeningSettled](w), 1, "nothing is deposited again")
}

// slowStore takes its time and keeps how many commits there were.
type slowStore struct {
	mu      sync.Mutex
	commits int
	records []Encoded
}

func (s *slowStore) Keep(_ context.Context, _ map[string][]byte, records []Encoded, _ bool) error {
	time.Sleep(4 * time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits++
	s.records = append(s.records, records...)
	return nil
}

type noHardware struct{ pulses chan edge.DoorNumber }

func (h noHardware) Pulse(n edge.DoorNumber, _ edge.Authority) { h.pulses <- n }
func (h noHardware) Withdraw(string)                           {}
func (h noHardware) SetSession(bool)                           {}

// A reading that waited behind a slow commit counts for when it was made: the
// door is not pulsed again for having been late, and one that opened for less
// than the minimum time does not count as opened.
func TestReadingsThatWaitedCountForTheirOwnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, hw := &slowStore{}, noHardware{make(chan edge.DoorNumber, 10)}
		start := time.Now()
		clock := edge.NewClock(start)
		clock.Sync(start.UnixNano(), start, 0)
		l := NewLoop(LoopConfig{State: New(testConfig(3)), Fresh: true, Clock: clock, Store: store, Hardware: hw})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- l.Run(ctx) }()
		for n := edge.DoorNumber(1); n <= 3; n++ {
			l.Event(edge.DoorReading{Door: n, At: time.Now()})
		}
		time.Sleep(20 * time.Second)
		body := wire.MustEncode(wire.OpenDoors{OpeningID: "op_1", Kind: wire.OpenDeposit, Doors: []uint{1}, SessionSeconds: 600, DeliveryRef: "LD-1", Packages: map[uint][]string{1: {"PK1"}}})
		go func() {
			_, _ = l.Do(ctx, Ordered{Command: wire.Command{CommandID: "c-1", IssuedAt: time.Now().UnixNano(), ExpiresAt: time.Now().Add(time.Minute).UnixNano(), Kind: wire.CmdOpenDoors, Body: body}})
		}()
		time.Sleep(2 * time.Second)
		require.True(t, l.Working())
		require.EqualValues(t, 1, <-hw.pulses)
		l.Event(edge.PulseResult{Door: 1, Outcome: edge.PulseConfirmed, At: time.Now()})
		time.Sleep(20 * time.Millisecond)
		l.Event(edge.DoorReading{Door: 1, Open: true, At: time.Now()})
		l.Event(edge.DoorReading{Door: 2, Open: true, At: time.Now()}) // a bounce
		time.Sleep(300 * time.Millisecond)
		l.Event(edge.DoorReading{Door: 2, At: time.Now()})
		time.Sleep(20 * time.Second)
		require.Empty(t, hw.pulses)
		require.Equal(t, Opened, l.State().Openings["op_1"].door(1).Phase)
		require.False(t, l.Working())
		opened := 0
		store.mu.Lock()
		for _, r := range store.records {
			if r.Kind == wire.KindDoorOpened {
				opened++
			}
		}
		require.LessOrEqual(t, store.commits, 6, "what waited is one commit")
		store.mu.Unlock()
		require.Equal(t, 1, opened)
		stop()
		<-ended
	})
}

// Boards fell silent after the first pulse of two: the cabinet kept one of the
// compartments and the cloud both, so that they disagreed about the other one.
func TestADepositThatEndsUnverifiedKeepsAllItsBoxes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.openDoors("op_1", 1, 2)
	w.takePulses()
	w.step(Pulsing{Door: 1, Outcome: edge.PulseUnanswered, Mono: w.now.Mono})
	w.step(Lost{Doors: []edge.DoorNumber{1, 2}, Mono: w.now.Mono})
	w.step(Pulsing{Door: 2, Outcome: edge.PulseNotSent, Mono: w.now.Mono})
	w.wait(time.Minute)
	w.readAll()
	w.wait(11 * time.Minute)
	require.Equal(t, []wire.OpeningEnded{{OpeningID: "op_1", Reason: wire.EndDepositUnverified}}, bodies[wire.OpeningEnded](w))
	var told []string
	for _, e := range bodies[wire.Exception](w) {
		told = append(told, fmt.Sprintf("%s %d: %s", e.Type, e.Door, e.Evidence))
	}
	require.Equal(t, []string{"deposit_unverified 1: no door report", "deposit_unverified 2: the door was not opened"}, told)
	require.Equal(t, "LD-1", w.s.Doors[1].Delivery)
	require.Equal(t, "LD-1", w.s.Doors[2].Delivery)
}

// A person's word reaches a compartment that holds the delivery though the opening it is
// about had other doors.
func TestAConfirmationReachesTheDoorThatItNames(t *testing.T) {
	w := newWorld(t, 2)
	w.openDoors("op_1", 1)
	w.swing()
	w.step(Ordered{Command: w.command(wire.CmdCloseSession, nil, wire.CloseSession{OpeningID: "op_1", How: wire.CloseCancel})})
	w.setDoor(1, false)
	w.wait(5 * time.Second)
	require.Empty(t, w.s.Openings)
	door := w.s.Doors[2]
	door.Delivery = "LD-1"
	w.s.Doors[2] = door
	require.True(t, w.s.IsUnconfirmed(2))
	w.step(Ordered{Command: w.command(wire.CmdCloseSession, nil, wire.CloseSession{OpeningID: "op_1", How: wire.CloseSettle, DeliveryRef: "LD-1", ConfirmedBy: wire.ByConsole, Packages: map[uint][]string{2: {"PK1"}}})})
	require.False(t, w.s.IsUnconfirmed(2))
	require.Empty(t, w.s.Doors[1].Delivery)
}
