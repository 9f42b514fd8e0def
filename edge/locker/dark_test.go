package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// dark makes the board of a door fall silent.
func (w *world) dark(n edge.DoorNumber) {
	w.step(Lost{Doors: []edge.DoorNumber{n}, Mono: w.now.Mono})
}

func (w *world) without(n uint) string {
	var rest []wire.LayoutDoor
	for _, l := range w.s.Config.Layout {
		if l.Door != n {
			rest = append(rest, l)
		}
	}
	return newStep(&draft{State: w.s.clone(), now: w.now, touched: map[string]bool{}}).layoutProblem(rest)
}

// After a day without power the first reading still decides, however slowly boards come.
func TestADayWithoutPowerEndsNoOpening(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	w.swing()
	w.restart(50*time.Hour, wire.ClockCarried)
	w.wait(5 * time.Minute)
	require.Len(t, w.s.Openings, 1)
	w.setDoor(1, false)
	w.wait(5 * time.Second)
	require.Len(t, bodies[wire.OpeningSettled](w), 1)
}

// With one board silent for good, the opening waits for its other door to be closed.
func TestASilentBoardDoesNotEndAnOpeningWithAnotherDoorOpen(t *testing.T) {
	t.Parallel()
	for _, how := range []string{wire.CloseCancel, ""} {
		w := newWorld(t, 2)
		w.openDoors("op_1", 1, 2)
		w.swing()
		if how != "" {
			w.step(Ordered{Command: w.command(wire.CmdCloseSession, nil, wire.CloseSession{OpeningID: "op_1", How: how, DeliveryRef: "LD-1"})})
		}
		w.dark(1)
		w.now.Mono += 25 * hour
		w.step(Tick{})
		require.Len(t, w.s.Openings, 1)
		w.setDoor(2, false)
		w.wait(5 * time.Second)
		require.Empty(t, w.s.Openings)
	}
}

// A door that stands open when its board comes back was opened by the opening that has
// ended, or was looked at by staff: it was not forced, also after a start.
func TestADoorOfASilentBoardWasNotForced(t *testing.T) {
	t.Parallel()
	for _, seen := range []bool{true, false} {
		for _, cleared := range []bool{true, false} {
			for _, restarted := range []bool{true, false} {
				w := newWorld(t, 2)
				w.openDoors("op_1", 1)
				if w.open[1] = true; seen {
					w.swing()
				} else {
					w.step(Pulsing{Door: 1, Outcome: edge.PulseUnanswered, Mono: w.now.Mono})
				}
				w.dark(1)
				w.now.Mono += 25 * hour
				w.step(Tick{})
				require.Empty(t, w.s.Openings)
				if cleared {
					w.step(Ordered{Command: w.command(wire.CmdClear, nil, wire.DoorReason{Door: 1})})
				}
				if restarted {
					w.restart(time.Minute, wire.ClockSynced)
					w.step(Reading{Door: 2, Mono: w.now.Mono})
					w.dark(1)
					w.wait(time.Minute)
				}
				w.setDoor(1, true)
				w.wait(10 * time.Second)
				require.Empty(t, bodies[wire.Tamper](w))
				w.setDoor(1, false)
				w.wait(10 * time.Second)
				w.setDoor(1, true)
				w.wait(10 * time.Second)
				require.Len(t, bodies[wire.Tamper](w), 1, "and the next time it was")
			}
		}
	}
}

// Of a door whose opening ended while its board was silent, a pulse that may have gone out explains
// that it stands open later. Without one, and after its opening was seen to be over, it was forced.
func TestADoorIsFoundByItsPulses(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		before func(w *world)
		forced int
	}{
		"pulsed":            {func(w *world) { w.answer(edge.PulseConfirmed) }, 0},
		"pulsed, no answer": {func(w *world) { w.answer(edge.PulseUnanswered) }, 0},
		"the pulse waits":   {func(*world) {}, 0},
		"not sent":          {func(w *world) { w.answer(edge.PulseNotSent) }, 1},
		"refused twice": {func(w *world) {
			w.answer(edge.PulseRefused)
			w.wait(200 * time.Millisecond)
			w.answer(edge.PulseRefused)
		}, 1},
		"opened and closed":  {func(w *world) { w.swing(); w.setDoor(1, false) }, 1},
		"opened, not closed": {func(w *world) { w.swing() }, 0},
	} {
		w := newWorld(t, 2)
		w.openDoors("op_1", 1, 2)
		both := w.takeAsked()
		w.pulses, w.asked = []edge.DoorNumber{1}, both[:1]
		x.before(w)
		w.pulses, w.asked = []edge.DoorNumber{2}, nil
		w.swing() // the other door holds the opening
		w.dark(1)
		w.dark(2)
		w.now.Mono += 25 * hour
		w.step(Tick{})
		require.Empty(t, w.s.Openings, name)
		w.setDoor(1, true)
		w.wait(10 * time.Second)
		require.Len(t, bodies[wire.Tamper](w), x.forced, name)
	}
}

// A board that blinks is not one that is silent for good: an opening whose session is over
// goes on as its door was read.
func TestABlinkOfABoardEndsNoOpening(t *testing.T) {
	t.Parallel()
	for _, how := range []string{wire.CloseCancel, ""} {
		w := newWorld(t, 1)
		w.openDoors("op_1", 1)
		w.swing()
		w.wait(11 * time.Minute)
		if how != "" {
			w.step(Ordered{Command: w.command(wire.CmdCloseSession, nil, wire.CloseSession{OpeningID: "op_1", How: how, DeliveryRef: "LD-1"})})
		} else {
			w.now.Mono += 25 * hour
		}
		w.dark(1)
		w.wait(2 * time.Second)
		require.Len(t, w.s.Openings, 1)
		w.setDoor(1, true)
		w.wait(3 * time.Second)
		require.Len(t, w.s.Openings, 1)
		w.setDoor(1, false)
		w.wait(3 * time.Second)
		require.Empty(t, w.s.Openings)
	}
}

// A board that falls silent in a session and never speaks again does not keep its opening
// for ever: nothing is believed of what was not seen, people look, and the compartment can
// be taken out.
func TestAnOpeningEndsThoughItsBoardIsDark(t *testing.T) {
	t.Parallel()
	settle := func(w *world, how string, named map[uint][]string) {
		w.step(Ordered{Command: w.command(wire.CmdCloseSession, nil, wire.CloseSession{OpeningID: "op_1", How: how, ConfirmedBy: wire.ByConsole, DeliveryRef: "LD-1", Packages: named})})
	}
	open := func(w *world) { w.openDoors("op_1", 1); w.swing(); w.dark(1) }
	for name, x := range map[string]struct {
		begin func(w *world)
		after time.Duration // the opening runs until then
		check func(t *testing.T, w *world)
	}{
		"a deposit whose door was open": {open, 24*time.Hour + 9*time.Minute, func(t *testing.T, w *world) {
			require.Equal(t, wire.EndDepositUnverified, bodies[wire.OpeningEnded](w)[0].Reason)
			require.True(t, w.s.IsUnconfirmed(1))
			require.Empty(t, bodies[wire.OpeningSettled](w))
		}},
		"one whose door was never seen": {func(w *world) { w.openDoors("op_1", 1); w.dark(1) }, 24*time.Hour + 9*time.Minute, func(t *testing.T, w *world) {
			require.Equal(t, wire.EndDepositUnverified, bodies[wire.OpeningEnded](w)[0].Reason)
		}},
		"a deposit that is cancelled": {func(w *world) { open(w); settle(w, wire.CloseCancel, nil) }, 9 * time.Minute, func(t *testing.T, w *world) {
			require.Equal(t, wire.EndCancelled, bodies[wire.OpeningEnded](w)[0].Reason)
			require.Empty(t, w.s.Doors[1].Delivery)
		}},
		"a deposit that a person confirms": {func(w *world) { open(w); settle(w, wire.CloseSettle, nil) }, 9 * time.Minute, func(t *testing.T, w *world) {
			require.Equal(t, wire.EndDepositUnverified, bodies[wire.OpeningEnded](w)[0].Reason)
			require.Empty(t, bodies[wire.OpeningSettled](w), "the door may stand open")
			require.Equal(t, "LD-1", w.s.Doors[1].Delivery)
			require.False(t, w.s.IsUnconfirmed(1), "the person's word counts")
		}},
		"a parcel that was collected": {func(w *world) {
			w.deposit()
			w.try(7)
			w.swing()
			w.dark(1)
		}, 24*time.Hour + 9*time.Minute, func(t *testing.T, w *world) {
			require.True(t, bodies[wire.PickupCompleted](w)[0].StillOpen)
			require.Empty(t, w.s.Doors[1].Delivery)
		}},
		"a parcel whose door was never seen": {func(w *world) {
			w.deposit()
			w.try(7)
			w.dark(1)
		}, 24*time.Hour + 9*time.Minute, func(t *testing.T, w *world) {
			require.Equal(t, wire.EndNotCollected, bodies[wire.OpeningEnded](w)[0].Reason)
			require.Equal(t, "LD-1", w.s.Doors[1].Delivery)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, restarts := range []int{0, 5} {
				w := newWorld(t, 2)
				x.begin(w)
				for range restarts {
					w.now.Mono += int64(x.after) / 6
					w.step(Tick{})
					w.restart(time.Second, wire.ClockCarried)
					w.step(Reading{Door: 2, Mono: w.now.Mono})
					w.dark(1)
				}
				if restarts == 0 {
					w.now.Mono += int64(x.after)
					w.step(Tick{})
				}
				require.Len(t, w.s.Openings, 1, "it runs as long as a reading may decide")
				for end := w.now.Mono + int64(x.after/4+11*time.Minute); len(w.s.Openings) > 0; {
					next := w.s.Next(w.now)
					require.NotZero(t, next)
					require.LessOrEqual(t, next, end)
					w.now.Mono = next
					w.step(Tick{})
				}
				x.check(t, w)
				w.now.Clock = wire.ClockSynced
				w.step(Ordered{Command: w.command(wire.CmdClear, nil, wire.DoorReason{Door: 1})})
				require.Equal(t, wire.OutcomeDone, w.last().Outcome)
				require.Empty(t, w.without(1), "staff have looked")
				require.NotEmpty(t, func() string { w.setDoor(1, true); w.wait(3 * time.Second); return w.without(1) }(), "it is seen open again")
			}
		})
	}
}

// A door that was left open, then its board falls silent, staff clear the compartment and
// close the door; the board comes back with the door closed.
func TestADoorLeftOpenIsClearedWhileItsBoardIsSilent(t *testing.T) {
	for _, kind := range []string{"clear", "no clear"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, 2)
			w.deposit()
			w.try(7)
			w.swing()
			w.wait(11 * time.Minute) // the recipient went, the door stands open
			require.Empty(t, w.s.Openings)
			require.Len(t, bodies[wire.PickupCompleted](w), 1)
			left := len(w.s.Exceptions)
			require.Equal(t, 1, left)
			w.dark(1)
			if kind == "clear" {
				w.step(Ordered{Command: w.command(wire.CmdClear, nil, wire.DoorReason{Door: 1})})
				require.Equal(t, wire.OutcomeDone, w.last().Outcome)
			}
			w.wait(time.Minute)
			w.setDoor(1, false) // a person closed it meanwhile
			w.wait(time.Minute)
			w.step(Ordered{Command: w.command(wire.CmdOpenDoors, nil, wire.OpenDoors{OpeningID: "op_next", Kind: wire.OpenDeposit, Doors: []uint{1}, SessionSeconds: 600, DeliveryRef: "LD-2"})})
			require.Empty(t, w.s.Exceptions, "door_left_open is never closed, and every delivery to the door is refused as busy")
		})
	}
}

// The same after a deposit whose door was open for the whole session.
func TestADepositLeftOpenIsClearedWhileItsBoardIsSilent(t *testing.T) {
	w := newWorld(t, 2)
	w.openDoors("op_1", 1)
	w.swing()
	w.wait(11 * time.Minute)
	require.Len(t, w.s.Exceptions, 1)
	w.dark(1)
	w.now.Mono += 25 * hour
	w.step(Tick{})
	require.Empty(t, w.s.Openings)
	w.step(Ordered{Command: w.command(wire.CmdClear, nil, wire.DoorReason{Door: 1})})
	require.Equal(t, wire.OutcomeDone, w.last().Outcome)
	w.setDoor(1, false)
	w.wait(time.Minute)
	w.step(Ordered{Command: w.command(wire.CmdOpenDoors, nil, wire.OpenDoors{OpeningID: "op_next", Kind: wire.OpenDeposit, Doors: []uint{1}, SessionSeconds: 600, DeliveryRef: "LD-2"})})
	require.Empty(t, w.s.Exceptions)
}
