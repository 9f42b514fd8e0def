package locker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// seen notes what makes a pulse lawful: boards that were read, and the acts of
// this boot.
func (w *world) seen(in Input) {
	switch in := in.(type) {
	case Reading:
		w.read[in.Door] = true
	case Lost:
		for _, n := range in.Doors {
			w.read[n] = true // asked often enough to be given up
		}
	case Ordered:
		if _, twice := w.acts[in.Command.CommandID]; !twice {
			w.acts[in.Command.CommandID] = w.now
		}
	}
}

// authorised notes the acts that a step at the cabinet itself has made.
func (w *world) authorised(in Input) {
	switch in.(type) {
	case CodeTried, PassShown, Reopen, TakeAnother, PickSize, OpenNext:
	default:
		return
	}
	for _, o := range w.s.Openings {
		for _, od := range o.Doors {
			if _, known := w.acts[od.By.Act]; !known && od.By.Kind != edge.ByCommand {
				w.acts[od.By.Act] = w.now
			}
		}
	}
}

// judgePulse holds a pulse against the one rule for all of them.
func (w *world) judgePulse(p Pulse) {
	w.t.Helper()
	for n := range w.s.Doors {
		require.True(w.t, w.read[n], "pulse of door %d before door %d was read", p.Door, n)
	}
	act, known := w.acts[p.By.Act]
	require.True(w.t, known, "pulse of door %d without an act: %+v", p.Door, p.By)
	require.Equal(w.t, w.now.Boot, act.Boot, "the act is of an earlier boot")
	require.Equal(w.t, w.now.Boot, p.By.Boot)
	require.Equal(w.t, act.Mono, p.By.Mono)
	age := w.now.Mono - act.Mono
	require.LessOrEqual(w.t, age, 60*second+4*second*int64(len(w.s.Doors)), "the act is too old")
	require.LessOrEqual(w.t, w.now.Mono, p.By.Until)
	key := fmt.Sprint(p.By.Act, p.Door)
	w.coils[key]++
	require.LessOrEqual(w.t, w.coils[key], 2, "coils of %+v on door %d", p.By, p.Door)
	o, running := w.s.Openings[p.By.OpeningID]
	require.True(w.t, running, "the opening has ended")
	require.False(w.t, o.Cancelled)
	require.Less(w.t, w.now.Mono, o.Ends.Mono, "the session is over")
	require.False(w.t, w.s.Doors[p.Door].Open, "the door is open already")
}

// answer answers the waiting pulses, in their order.
func (w *world) answer(outcome edge.PulseOutcome) {
	for _, p := range w.takeAsked() {
		w.step(Pulsing{Door: p.Door, By: p.By, Outcome: outcome, Mono: w.now.Mono})
	}
}

func (w *world) takeAsked() []Pulse {
	p := w.asked
	w.pulses, w.asked = nil, nil
	return p
}

// The agent was killed within 1.3 s of a pulse and the courier closed the door.
// The new agent pulsed again 90 ms after its start, before any board was read;
// five hours later just the same.
func TestNoLockFiresByItselfAfterAStart(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{200 * time.Millisecond, 5 * time.Hour} {
		for _, answered := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s off, pulse answered %t", off, answered), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, 2)
				w.openDoors("op_1", 1)
				if answered {
					w.answer(edge.PulseUnanswered)
				}
				w.takePulses()
				w.restart(off, wire.ClockCarried)
				w.wait(5 * time.Second)
				require.Empty(t, w.takePulses())
				w.readAll()
				w.wait(5 * time.Second)
				require.Empty(t, w.takePulses())
				got := bodies[wire.CommandOutcome](w)
				require.Len(t, got, 1)
				require.Equal(t, wire.OutcomeInterrupted, got[0].Outcome)
				require.Equal(t, map[uint]string{1: wire.DoorNotSeen}, got[0].Doors)
				w.wait(11 * time.Minute)
				require.Equal(t, []wire.OpeningEnded{{OpeningID: "op_1", Reason: wire.EndDepositUnverified}}, bodies[wire.OpeningEnded](w))
			})
		}
	}
}

func TestADoorOfAnEarlierBootThatIsFoundOpenCountsAsOpened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.openDoors("op_1", 1)
	w.open[1] = true
	w.restart(time.Second, wire.ClockCarried)
	w.readAll()
	w.wait(time.Second)
	require.Equal(t, wire.OutcomeDone, bodies[wire.CommandOutcome](w)[0].Outcome)
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Len(t, bodies[wire.OpeningSettled](w), 1)
	require.Empty(t, w.takePulses())
}

// A hook that is found popped and falls back at once did not swing; the act that
// allowed its pulse was of an earlier boot.
func TestADoorOfAnEarlierBootThatFallsBackIsNotPulsedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	w.restart(time.Second, wire.ClockCarried)
	w.setDoor(1, true)
	w.wait(300 * time.Millisecond)
	w.setDoor(1, false)
	w.wait(5 * time.Second)
	require.Empty(t, w.takePulses())
	require.Equal(t, NotSeen, w.s.Openings["op_1"].door(1).Phase)
}

func TestAnInterruptedOpeningIsPulsedByANewAct(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.openDoors("op_1", 1)
	w.restart(time.Second, wire.ClockCarried)
	w.now.Clock = wire.ClockSynced
	refused := func() string {
		list := bodies[wire.CommandOutcome](w)
		return list[len(list)-1].Reason
	}
	w.openDoors("op_1", 1)
	require.Equal(t, wire.ReasonBoard, refused(), "no board has been read")
	w.step(Reading{Door: 1, Mono: w.now.Mono})
	w.openDoors("op_1", 1)
	require.Equal(t, wire.ReasonBoard, refused(), "the board of door 2 has not been read")
	w.order("op_2", wire.OpenStaff, 1)
	require.Equal(t, wire.ReasonBoard, refused())
	require.Empty(t, w.takePulses())
	w.step(Reading{Door: 2, Mono: w.now.Mono})
	w.openDoors("op_1", 1)
	require.Len(t, w.asked, 1)
	require.Equal(t, w.now.Boot, w.asked[0].By.Boot)
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Len(t, bodies[wire.OpeningSettled](w), 1)
}

// One board is dead when the power comes back. What lies behind the others is
// collected all the same, once the dead one has been given up.
func TestADeadBoardDoesNotCloseTheWholeCabinet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.restart(time.Second, wire.ClockCarried)
	w.now.Clock = wire.ClockSynced
	w.step(Reading{Door: 1, Mono: w.now.Mono})
	w.openDoors("op_1", 1)
	require.Empty(t, w.takePulses())
	w.step(Lost{Doors: []edge.DoorNumber{2}, Mono: w.now.Mono})
	w.openDoors("op_2", 1)
	require.Equal(t, []edge.DoorNumber{1}, w.takePulses())
	w.openDoors("op_3", 2)
	require.Empty(t, w.takePulses(), "a door that nothing is known of")
}

func TestTheCodeTypedAgainPulsesAnInterruptedPickup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.deposit()
	first := w.step(CodeTried{Verifier: verifier(7), Input: "keypad"}).Answer
	w.restart(time.Second, wire.ClockCarried)
	require.Equal(t, wire.ReasonBoard, w.step(CodeTried{Verifier: verifier(7), Input: "keypad"}).Answer.Outcome)
	w.readAll()
	w.wait(time.Second)
	require.Empty(t, w.takePulses())
	again := w.step(CodeTried{Verifier: verifier(7), Input: "keypad"}).Answer
	require.Equal(t, wire.CodeOK, again.Outcome)
	require.Equal(t, first.OpeningID, again.OpeningID)
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Len(t, bodies[wire.PickupCompleted](w), 1)
}

func TestStaffMayPulseTheirInterruptedOpening(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeStaff, Verifier: verifier(8)})
	try := func(doors ...edge.DoorNumber) Answer {
		return w.step(CodeTried{Verifier: verifier(8), Input: "keypad", Doors: doors}).Answer
	}
	first := try(1)
	w.restart(time.Second, wire.ClockCarried)
	w.readAll()
	w.wait(time.Second)
	require.Equal(t, first.OpeningID, try(1).OpeningID)
	require.Equal(t, []edge.DoorNumber{1}, w.takePulses())
	require.Equal(t, wire.ReasonBusy, try(1, 2).Outcome)
}

// The pulse for a door that was not seen and the one for a door that did not
// swing are two of the same two.
func TestAnActSpendsTwoCoilsOnADoor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	w.answer(edge.PulseConfirmed)
	w.setDoor(1, true)
	w.wait(300 * time.Millisecond)
	w.setDoor(1, false)
	require.Len(t, w.asked, 1, "it did not swing")
	w.answer(edge.PulseConfirmed)
	w.wait(5 * time.Second)
	require.Empty(t, w.takePulses())
	require.Equal(t, wire.EndOpenFailed, bodies[wire.OpeningEnded](w)[0].Reason)
	require.Equal(t, 1, w.s.Doors[1].Failures)
}

// A lock in its rest, or a queue, may hold a pulse up for so long that the person
// is gone: the act allows no further one, and the lock is not to blame.
func TestAnActThatIsTooOldPulsesNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	p := w.takeAsked()[0]
	require.Equal(t, w.now.Mono+60*second, p.By.Until)
	w.now.Mono += 61 * second
	w.step(Pulsing{Door: 1, By: p.By, Outcome: edge.PulseRefused, Mono: w.now.Mono})
	w.wait(5 * time.Second)
	require.Empty(t, w.takePulses())
	require.Zero(t, w.s.Doors[1].Failures)
	require.Equal(t, wire.EndOpenFailed, bodies[wire.OpeningEnded](w)[0].Reason)
}

// A recipient tries again and again within the half minute in which a lock rests after three
// pulses: nothing goes out, and the lock is not taken out of service for it.
func TestARestingLockIsNotToBlame(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	for n, sent := range []int{2, 1, 0, 0, 0, 2} { // pulses of each act that go out
		w.openDoors(fmt.Sprintf("op_%d", n), 1)
		for range sent {
			require.Len(t, w.asked, 1)
			w.answer(edge.PulseConfirmed)
			w.wait(3 * time.Second)
		}
		if sent < 2 {
			require.Len(t, w.asked, 1)
			w.answer(edge.PulseRefused)
		}
		w.wait(5 * time.Second)
		require.Empty(t, w.takePulses(), n)
		require.Len(t, bodies[wire.OpeningEnded](w), n+1)
		require.Equal(t, wire.EndOpenFailed, bodies[wire.OpeningEnded](w)[n].Reason)
		require.Empty(t, w.s.Doors[1].Blocked, n)
	}
	require.Equal(t, 2, w.s.Doors[1].Failures, "the first act, and the last")
}

func TestEachDoorBeforeItInTheQueueGivesAPulseFourSeconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.openDoors("op_1", 1, 2, 3)
	asked := w.takeAsked()
	require.Len(t, asked, 3)
	for i, p := range asked {
		require.Equal(t, w.now.Mono+60*second+int64(i)*4*second, p.By.Until)
	}
}

// Whatever ends the wish to open takes the waiting pulses back.
func TestPulsesOfAnOpeningThatEndsAreWithdrawn(t *testing.T) {
	t.Parallel()
	order := func(w *world, kind wire.CommandKind, body any) Out {
		return w.step(Ordered{Command: w.command(kind, nil, body)})
	}
	for name, end := range map[string]func(w *world) Out{
		"cancelled": func(w *world) Out {
			return order(w, wire.CmdCloseSession, wire.CloseSession{OpeningID: "op_1", How: wire.CloseCancel})
		},
		"confirmed by a person": func(w *world) Out {
			return order(w, wire.CmdCloseSession, wire.CloseSession{OpeningID: "op_1", How: wire.CloseSettle, ConfirmedBy: wire.ByConsole})
		},
		"done": func(w *world) Out { return w.step(PressedDone{OpeningID: "op_1"}) },
		"reassigned": func(w *world) Out {
			return order(w, wire.CmdOpenDoors, wire.OpenDoors{OpeningID: "op_2", Kind: wire.OpenReassign, Doors: []uint{2}, DeliveryRef: "LD-1", Replaces: "op_1"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 3)
			w.openDoors("op_1", 1)
			p := w.takeAsked()[0]
			require.Contains(t, end(w).Actions, Withdraw{OpeningID: "op_1"})
			w.takePulses()
			w.step(Pulsing{Door: 1, By: p.By, Outcome: edge.PulseRefused, Mono: w.now.Mono})
			w.wait(5 * time.Second)
			for _, again := range w.takeAsked() {
				require.NotEqual(t, "op_1", again.By.OpeningID)
			}
		})
	}
}

// A reassignment that opens one of the former doors: the answer to the former
// opening's pulse is not taken for the new one's, and both end.
func TestAReassignmentTakesADoorOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.openDoors("op_1", 1, 2)
	old := w.takeAsked()
	w.step(Ordered{Command: w.command(wire.CmdOpenDoors, nil, wire.OpenDoors{OpeningID: "op_2", Kind: wire.OpenReassign, Doors: []uint{1}, DeliveryRef: "LD-1",
		Replaces: "op_1", Packages: map[uint][]string{1: {"PK1"}}})})
	for _, p := range old {
		w.step(Pulsing{Door: p.Door, By: p.By, Outcome: edge.PulseRefused, Mono: w.now.Mono})
	}
	require.Equal(t, []wire.OpeningEnded{{OpeningID: "op_1", Reason: wire.EndCancelled}}, bodies[wire.OpeningEnded](w))
	require.True(t, w.s.Openings["op_2"].door(1).Waiting)
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Len(t, bodies[wire.OpeningSettled](w), 1)
	require.Empty(t, w.s.Openings)
}

func TestNoPulseOnceTheSessionIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.openDoors("op_1", 1, 2)
	w.answer(edge.PulseConfirmed)
	w.setDoor(1, true)
	w.wait(11 * time.Minute) // door 1 is left open
	w.takePulses()
	w.openDoors("op_1", 2)
	require.Empty(t, w.takePulses())
	list := bodies[wire.CommandOutcome](w)
	require.Equal(t, wire.ReasonNoOpening, list[len(list)-1].Reason)
}

// The courier closed the door on the parcel and a further command for the same
// opening found the lock jammed: the parcel is inside all the same.
func TestADoorThatDoesNotOpenASecondTimeKeepsItsDeposit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	w.swing()
	w.setDoor(1, false)
	w.openDoors("op_1", 1)
	for range 60 {
		w.answer(edge.PulseConfirmed)
		w.wait(100 * time.Millisecond)
	}
	got := bodies[wire.OpeningSettled](w)
	require.Len(t, got, 1)
	require.Equal(t, wire.Deposited, got[0].Packages[0].Outcome)
	outcomes := bodies[wire.CommandOutcome](w)
	require.Equal(t, wire.OutcomeDone, outcomes[0].Outcome)
	require.Equal(t, wire.OutcomeFailed, outcomes[1].Outcome)
	require.Equal(t, map[uint]string{1: wire.DoorOpenFailed}, outcomes[1].Doors)
}

// A wall clock that jumps, or is not set, makes no act older or younger.
func TestAClockJumpChangesNothingForPulses(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{-48 * time.Hour, 48 * time.Hour} {
		w := newWorld(t, 3)
		w.openDoors("op_1", 1, 2, 3)
		w.now.Offset += int64(jump)
		w.answer(edge.PulseConfirmed)
		w.wait(2 * time.Second)
		require.Len(t, w.takePulses(), 3, "the second of two")
	}
}

// A lock may let go late: within 3 s after a pulse the door is its opening's, and
// what the courier puts in then is a deposit. After that it is a forced one.
func TestADoorThatOpensSoonAfterAPulseIsNotForced(t *testing.T) {
	t.Parallel()
	for after, forced := range map[time.Duration]int{2900 * time.Millisecond: 0, 3100 * time.Millisecond: 1} {
		for _, said := range []edge.PulseOutcome{edge.PulseConfirmed, edge.PulseUnanswered, edge.PulseDenied} { // a lock that holds its coil is denied
			w := newWorld(t, 1)
			w.openDoors("op_1", 1)
			w.answer(said)
			w.wait(1500 * time.Millisecond)
			w.answer(said)
			pulsed := w.s.Doors[1].PulseAt
			w.wait(1600 * time.Millisecond)
			require.Equal(t, wire.OutcomeFailed, bodies[wire.CommandOutcome](w)[0].Outcome, "the courier is told at once")
			w.wait(time.Duration(pulsed + int64(after) - w.now.Mono))
			w.setDoor(1, true)
			w.wait(time.Second)
			require.Len(t, bodies[wire.Tamper](w), forced, "%s after the pulse (%d)", after, said)
			require.Len(t, bodies[wire.OpeningEnded](w), forced, "%s after the pulse (%d)", after, said)
			w.setDoor(1, false)
			w.wait(3 * time.Second)
			require.Len(t, bodies[wire.OpeningSettled](w), 1-forced, "%s after the pulse (%d)", after, said)
		}
	}
}

// The pulse of an opening that was cancelled may still let a door go.
func TestADoorThatOpensAfterItsOpeningWasCancelledIsNotForced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	w.step(Ordered{Command: w.command(wire.CmdCloseSession, nil, wire.CloseSession{OpeningID: "op_1", How: wire.CloseCancel})})
	w.answer(edge.PulseConfirmed)
	w.wait(2 * time.Second)
	w.setDoor(1, true)
	w.wait(time.Second)
	require.Empty(t, bodies[wire.Tamper](w))
	w.setDoor(1, false)
	w.wait(5 * time.Second)
	require.Empty(t, w.s.Openings)
}

// A line that stands still after a pulse says late that the door is open. What opened it is not
// known: it may have been the pulse, whose 3 s are over only by the time of the answer. A door
// that was read shut after them was forced, and that is known at once.
func TestADoorThatIsReadLateIsNotForced(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name   string
		shut   time.Duration // from the last pulse to the last reading that shows the door shut
		forced int
	}{{"read shut before the pulse alone", -10 * time.Millisecond, 0}, {"read shut at the pulse", 50 * time.Millisecond, 0}, {"read shut after the time of the pulse", 3100 * time.Millisecond, 1}} {
		for _, ended := range []bool{false, true} {
			w := newWorld(t, 1)
			w.openDoors("op_1", 1)
			w.answer(edge.PulseUnanswered)
			w.wait(1500 * time.Millisecond)
			w.answer(edge.PulseUnanswered)
			pulsed := w.s.Doors[1].PulseAt
			if w.wait(2 * time.Second); ended {
				w.wait(2 * time.Second)
			}
			w.now.Mono = max(w.now.Mono, pulsed+int64(4*time.Second))
			w.open[1] = true
			w.step(Reading{Door: 1, Open: true, Mono: w.now.Mono, LastShut: pulsed + int64(x.shut)})
			w.wait(time.Second)
			require.Len(t, bodies[wire.DoorOpened](w), 1, x.name)
			require.Len(t, bodies[wire.Tamper](w), x.forced, "%s, ended: %t", x.name, ended)
			opened, _ := w.exceptions(wire.ExDoorLeftOpen)
			require.Len(t, opened, x.forced, x.name)
		}
	}
}
