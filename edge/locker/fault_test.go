package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// fault is one row of locker-hardware 5 or device-link 9, from its physical cause
// to the exception or record that names it, and back to order.
type fault struct {
	name string
	run  func(t *testing.T, w *world)
}

// exceptions are those of a type that were opened (repeats included) and closed.
func (w *world) exceptions(typ string) (opened, closed []wire.Exception) {
	for _, r := range w.records {
		if e, ok := r.Body.(wire.Exception); ok && e.Type == typ {
			if r.Kind == wire.KindExceptionOpened {
				opened = append(opened, e)
			} else {
				closed = append(closed, e)
			}
		}
	}
	return opened, closed
}

// fail pulses a door that does not move, until its opening has ended.
func (w *world) fail(id string) {
	w.openDoors(id, 1)
	for range 60 {
		w.answer(edge.PulseConfirmed)
		w.wait(100 * time.Millisecond)
	}
}

func (w *world) try(v byte) Answer {
	return w.step(CodeTried{Verifier: verifier(v), Input: "keypad"}).Answer
}

func (w *world) last() wire.CommandOutcome {
	list := bodies[wire.CommandOutcome](w)
	return list[len(list)-1]
}

func (w *world) shows(d time.Duration, what string) (n int) {
	for end := w.now.Mono + int64(d); w.now.Mono < end; {
		w.now.Mono += 500 * milli
		for _, a := range w.step(Tick{}).Actions {
			if s, ok := a.(Show); ok && s.What == what {
				n++
			}
		}
	}
	return n
}

func (w *world) item(n edge.DoorNumber, open bool, item wire.Item) {
	w.open[n] = open
	w.step(Reading{Door: n, Open: open, Item: item, Mono: w.now.Mono})
}

func TestFaultTable(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.run(t, newWorld(t, 2))
		})
	}
}

var faults = []fault{
	{"open failed", func(t *testing.T, w *world) {
		for i, id := range []string{"op_1", "op_2", "op_3"} {
			w.fail(id)
			require.Equal(t, wire.OutcomeFailed, w.last().Outcome)
			require.Len(t, bodies[wire.OpeningEnded](w), i+1)
		}
		w.openDoors("op_4", 1)
		require.Equal(t, wire.ReasonSuspect, w.last().Reason, "three in a row")
		w.openDoors("op_5", 2)
		require.Len(t, w.takePulses(), 1, "another compartment")
		w.step(Ordered{Command: w.command(wire.CmdUnblock, nil, wire.DoorReason{Door: 1})})
		w.order("op_6", wire.OpenStaff, 1)
		w.swing()
		require.Equal(t, wire.OutcomeDone, w.last().Outcome)
	}},
	{"open failed, until staff open it", func(t *testing.T, w *world) {
		for _, id := range []string{"op_1", "op_2", "op_3"} {
			w.fail(id)
		}
		require.Equal(t, wire.ReasonSuspect, w.s.Doors[1].Blocked)
		w.order("op_4", wire.OpenStaff, 1)
		w.swing()
		w.setDoor(1, false)
		w.wait(5 * time.Second)
		require.Empty(t, w.s.Doors[1].Blocked, "its lock works")
		w.openDoors("op_5", 1)
		w.swing()
		require.Equal(t, wire.OutcomeDone, w.last().Outcome)
	}},
	{"opened but not swung", func(t *testing.T, w *world) {
		w.openDoors("op_1", 1)
		w.answer(edge.PulseConfirmed)
		w.setDoor(1, true)
		w.wait(300 * time.Millisecond)
		w.open[1] = false
		out := w.step(Reading{Door: 1, Mono: w.now.Mono})
		require.Contains(t, out.Actions, Show{What: "pull", Door: 1})
		w.swing()
		require.Equal(t, wire.OutcomeDone, w.last().Outcome)
		w.setDoor(1, false)
		w.wait(3 * time.Second)
		require.Len(t, bodies[wire.OpeningSettled](w), 1)
	}},
	{"left open", func(t *testing.T, w *world) {
		w.deposit()
		w.try(7)
		w.swing()
		require.Zero(t, w.shows(118*time.Second, "sound"))
		require.NotZero(t, w.shows(3*time.Second, "sound"), "from 120 s on")
		require.Equal(t, 2, w.shows(2*time.Minute, "sound"))
		w.wait(10 * time.Minute)
		opened, _ := w.exceptions(wire.ExDoorLeftOpen)
		require.Len(t, opened, 1)
		require.True(t, bodies[wire.PickupCompleted](w)[0].StillOpen)
		w.openDoors("op_2", 1)
		require.Equal(t, wire.ReasonBusy, w.last().Reason, "no new session on that compartment")
		w.wait(15 * time.Minute)
		opened, _ = w.exceptions(wire.ExDoorLeftOpen)
		require.Len(t, opened, 2)
		w.wait(46 * time.Minute)
		opened, _ = w.exceptions(wire.ExDoorLeftOpen)
		require.Len(t, opened, 3)
		w.setDoor(1, false)
		_, closed := w.exceptions(wire.ExDoorLeftOpen)
		require.Equal(t, "door_closed_on_site", closed[0].Evidence)
		require.Equal(t, opened[0].ID, closed[0].ID)
		require.Zero(t, w.shows(5*time.Minute, "sound"))
		w.openDoors("op_3", 1)
		require.Len(t, w.takePulses(), 1)
	}},
	{"forced open", func(t *testing.T, w *world) {
		w.setDoor(1, true)
		w.wait(time.Second)
		require.Equal(t, []wire.Tamper{{What: wire.TamperDoorForced, Door: 1}}, bodies[wire.Tamper](w))
		opened, _ := w.exceptions(wire.ExDoorLeftOpen)
		require.Equal(t, wire.SeverityHigh, opened[0].Severity)
		w.setDoor(1, false)
		_, closed := w.exceptions(wire.ExDoorLeftOpen)
		require.Len(t, closed, 1)
		require.Empty(t, w.s.Exceptions)
	}},
	{"flapping", func(t *testing.T, w *world) {
		w.step(Reading{Door: 1, Open: true, Suspect: true, Mono: w.now.Mono})
		w.wait(time.Minute)
		require.Empty(t, bodies[wire.DoorOpened](w), "a sensor that flaps opens nothing")
		require.Empty(t, bodies[wire.Tamper](w))
		w.setDoor(1, false)
		w.openDoors("op_1", 1)
		w.swing()
		w.setDoor(1, false)
		w.wait(3 * time.Second)
		require.Len(t, bodies[wire.OpeningSettled](w), 1)
	}},
	{"stuck sensor, open", func(t *testing.T, w *world) {
		w.openDoors("op_1", 1)
		w.swing() // and it never reads closed again
		w.wait(3 * time.Hour)
		require.Empty(t, bodies[wire.OpeningSettled](w), "never settled from it")
		opened, _ := w.exceptions(wire.ExDoorLeftOpen)
		require.NotEmpty(t, opened)
		w.setDoor(1, false) // repaired
		w.wait(3 * time.Second)
		require.Len(t, bodies[wire.OpeningSettled](w), 1)
		require.Empty(t, w.s.Exceptions)
	}},
	{"stuck sensor, closed", func(t *testing.T, w *world) {
		for _, id := range []string{"op_1", "op_2", "op_3"} {
			w.fail(id)
		}
		require.Equal(t, wire.ReasonSuspect, w.s.Doors[1].Blocked)
		require.Empty(t, bodies[wire.OpeningSettled](w))
		w.order("op_4", wire.OpenStaff, 1) // staff sees to it
		w.swing()
		require.Zero(t, w.s.Doors[1].Failures)
		w.setDoor(1, false)
		w.wait(3 * time.Second)
		w.step(Ordered{Command: w.command(wire.CmdUnblock, nil, wire.DoorReason{Door: 1})})
		w.openDoors("op_5", 1)
		require.Len(t, w.takePulses(), 1)
	}},
	{"item missing after deposit", func(t *testing.T, w *world) {
		w.pickup()
		w.openDoors("op_1", 1)
		w.swing()
		w.item(1, false, wire.ItemAbsent)
		w.wait(3 * time.Second)
		require.Equal(t, wire.Unverified, bodies[wire.OpeningSettled](w)[0].Packages[0].Outcome)
		opened, _ := w.exceptions(wire.ExDepositUnverified)
		require.Len(t, opened, 1)
		require.Equal(t, "LD-1", w.s.Doors[1].Delivery, "it stays assigned")
		require.Equal(t, wire.CodeNotActive, w.try(7).Outcome)
		w.confirmed("op_1", nil)
		_, closed := w.exceptions(wire.ExDepositUnverified)
		require.Equal(t, opened[0].ID, closed[0].ID)
		require.Equal(t, wire.CodeOK, w.try(7).Outcome)
	}},
	{"item gone without session", func(t *testing.T, w *world) {
		w.item(1, false, wire.ItemPresent)
		w.deposit()
		w.item(1, false, wire.ItemPresent)
		w.item(1, false, wire.ItemAbsent)
		opened, _ := w.exceptions(wire.ExItemMissing)
		require.Len(t, opened, 1)
		require.Equal(t, "LD-1", w.s.Doors[1].Delivery, "the compartment is not freed")
		w.step(Ordered{Command: w.command(wire.CmdClear, nil, wire.DoorReason{Door: 1})})
		_, closed := w.exceptions(wire.ExItemMissing)
		require.Len(t, closed, 1)
		require.Empty(t, w.s.Doors[1].Delivery)
	}},
	{"item left after pickup", func(t *testing.T, w *world) {
		w.deposit()
		for i, after := range []wire.Item{wire.ItemPresent, wire.ItemAbsent} {
			require.Equal(t, wire.CodeOK, w.try(7).Outcome)
			w.swing()
			w.item(1, false, after)
			w.wait(3 * time.Second)
			require.Len(t, bodies[wire.PickupCompleted](w), i, "it stays occupied, and the code works")
		}
		require.Equal(t, wire.CodeUnknown, w.try(7).Outcome)
	}},
	{"hook and item disagree", func(t *testing.T, w *world) {
		w.item(1, false, wire.ItemPresent) // something appears in a free, locked compartment
		w.item(1, false, wire.ItemAbsent)
		require.Empty(t, bodies[wire.Exception](w), "nothing of a delivery is gone")
	}},
	{"board offline", func(t *testing.T, w *world) {
		w.step(Lost{Doors: []edge.DoorNumber{1}, Mono: w.now.Mono})
		door := w.s.Doors[1]
		require.Equal(t, wire.DoorUnknown, door.State(&w.s, 0, w.now.Mono))
		w.openDoors("op_1", 1)
		require.Equal(t, wire.ReasonBoard, w.last().Reason)
		w.openDoors("op_2", 2)
		require.Len(t, w.takePulses(), 1, "other boards work on")
		w.step(Reading{Door: 1, Mono: w.now.Mono})
		w.order("op_3", wire.OpenStaff, 1)
		require.Len(t, w.takePulses(), 1)
	}},
	{"power lost", func(t *testing.T, w *world) {
		w.openDoors("op_1", 1)
		w.swing()
		w.restart(20*time.Second, wire.ClockCarried)
		w.setDoor(2, false)
		w.setDoor(1, true)
		w.wait(time.Minute)
		require.Empty(t, bodies[wire.OpeningSettled](w), "the door is open still")
		require.Empty(t, bodies[wire.Tamper](w), "an open door of a session is not forced")
		w.setDoor(1, false)
		w.wait(3 * time.Second)
		require.Equal(t, wire.ByDoorClose, bodies[wire.OpeningSettled](w)[0].ConfirmedBy)
	}},
	{"disk full", func(t *testing.T, w *world) {
		w.openDoors("op_1", 1)
		w.swing()
		c := w.command(wire.CmdOpenDoors, nil, wire.OpenDoors{OpeningID: "op_2", Kind: wire.OpenDeposit, Doors: []uint{2}, DeliveryRef: "LD-2"})
		next, out := Step(w.s, Ordered{Command: c}, w.now)
		require.NotEmpty(t, next.Openings)
		require.False(t, out.Urgent, "a full store takes no new session")
		out = w.step(Refuse{Command: c, Reason: wire.ReasonStore})
		require.True(t, out.Urgent)
		require.Equal(t, wire.ReasonStore, w.last().Reason)
		require.Empty(t, w.takePulses())
		w.open[1] = false
		out = w.step(Reading{Door: 1, Mono: w.now.Mono})
		require.True(t, out.Urgent, "doors of open sessions are watched")
		w.wait(3 * time.Second)
		require.Len(t, bodies[wire.OpeningSettled](w), 1)
	}},
	{"damaged store", func(t *testing.T, w *world) {
		w.s = New(testConfig(2))
		w.step(Started{Fresh: true})
		require.True(t, w.s.Meta.Lost)
		w.setDoor(1, true)
		w.setDoor(2, false)
		w.wait(time.Second)
		require.Empty(t, bodies[wire.Tamper](w), "found open, not forced")
		require.Equal(t, "applied", w.take(wire.Codes{To: 9, Generation: 3, Nonce: nonceA}))
		require.False(t, w.s.Meta.Lost)
		w.setDoor(1, false)
		w.openDoors("op_1", 1)
		require.Len(t, w.takePulses(), 1)
	}},
	{"clock not set", func(t *testing.T, w *world) {
		w.deposit()
		w.restart(0, wire.ClockUnset)
		w.readAll()
		w.openDoors("op_2", 2)
		require.Equal(t, wire.ReasonClock, w.last().Reason)
		require.Equal(t, wire.CodeOK, w.try(7).Outcome, "a pickup needs no clock")
		w.swing()
		w.setDoor(1, false)
		w.wait(3 * time.Second)
		require.Len(t, bodies[wire.PickupCompleted](w), 1)
		w.now.Clock = wire.ClockSynced
		w.openDoors("op_3", 2)
		require.Len(t, w.takePulses(), 1)
	}},
	{"expired command", func(t *testing.T, w *world) {
		c := w.command(wire.CmdOpenDoors, nil, wire.OpenDoors{OpeningID: "op_1", Kind: wire.OpenStaff, Doors: []uint{1}})
		c.ExpiresAt = w.now.Wall(w.now.Mono) - 1
		w.step(Ordered{Command: c})
		require.Equal(t, wire.OutcomeExpired, w.last().Outcome)
		require.Empty(t, w.takePulses())
		w.order("op_2", wire.OpenStaff, 1)
		require.Len(t, w.takePulses(), 1)
	}},
	{"overtaken command", func(t *testing.T, w *world) {
		open := func(version uint64, id string) {
			w.step(Ordered{Command: w.command(wire.CmdOpenDoors, map[uint]uint64{1: version}, wire.OpenDoors{OpeningID: id, Kind: wire.OpenStaff, Doors: []uint{1}})})
		}
		open(5, "op_1")
		w.swing()
		w.setDoor(1, false)
		w.wait(3 * time.Second)
		open(5, "op_2")
		require.Equal(t, []string{wire.OutcomeRefused, wire.ReasonOvertaken}, []string{w.last().Outcome, w.last().Reason})
		require.Empty(t, w.takePulses())
		open(6, "op_3")
		require.Len(t, w.takePulses(), 1)
	}},
	{"repeated command", func(t *testing.T, w *world) {
		c := w.command(wire.CmdOpenDoors, nil, wire.OpenDoors{OpeningID: "op_1", Kind: wire.OpenStaff, Doors: []uint{1}})
		w.step(Ordered{Command: c})
		require.Len(t, w.takePulses(), 1)
		out := w.step(Ordered{Command: c})
		require.Empty(t, out.Records)
		require.Empty(t, out.Put)
		require.Empty(t, w.takePulses())
	}},
	{"code list that goes back", func(t *testing.T, w *world) {
		w.s.Meta.Lost = true
		w.take(wire.Codes{To: 9, Generation: 3, Nonce: nonceA})
		require.Equal(t, "tamper", w.take(wire.Codes{To: 40, Generation: 2}))
		require.Equal(t, "applied", w.take(wire.Codes{From: 9, To: 10, Generation: 3}))
	}},
}

// An exception about what lay behind a door says nothing of what is brought there
// later: the next fault of the same kind is reported as well.
func TestAnExceptionDoesNotOutliveItsParcel(t *testing.T) {
	t.Parallel()
	t.Run("deposit", func(t *testing.T) {
		w := newWorld(t, 1)
		w.pickup()
		empty := func(id string) {
			w.openDoors(id, 1)
			w.swing()
			w.item(1, false, wire.ItemAbsent)
			w.wait(3 * time.Second)
		}
		empty("op_1")
		w.openDoors("op_2", 1) // the courier comes again
		w.swing()
		w.item(1, false, wire.ItemPresent)
		w.wait(3 * time.Second)
		opened, closed := w.exceptions(wire.ExDepositUnverified)
		require.Len(t, opened, 1)
		require.Len(t, closed, 1, "the parcel is seen: nothing is left to look at")
		require.Equal(t, "deposit_confirmed", closed[0].Evidence)
		empty("op_3")
		opened, _ = w.exceptions(wire.ExDepositUnverified)
		require.Len(t, opened, 2)
	})
	t.Run("collection", func(t *testing.T) {
		w := newWorld(t, 1)
		for i, id := range []string{"op_1", "op_2"} {
			w.pickup()
			w.openDoors(id, 1)
			w.swing()
			w.item(1, false, wire.ItemPresent)
			w.wait(3 * time.Second)
			w.item(1, false, wire.ItemPresent)
			w.item(1, false, wire.ItemAbsent)
			opened, _ := w.exceptions(wire.ExItemMissing)
			require.Len(t, opened, i+1)
			require.Equal(t, wire.CodeOK, w.try(7).Outcome) // the recipient looks, and it counts as taken
			w.swing()
			w.item(1, false, wire.ItemAbsent)
			w.wait(3 * time.Second)
			require.Len(t, bodies[wire.PickupCompleted](w), i+1)
			require.Empty(t, w.s.Doors[1].Delivery)
		}
	})
}

// A pickup was cancelled while its door was open, and the door stayed open past
// the session's end: the parcel does not count as collected.
func TestACancelledPickupThatIsLeftOpenIsNotCollected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.deposit()
	id := w.try(7).OpeningID
	w.swing()
	w.step(Ordered{Command: w.command(wire.CmdCloseSession, nil, wire.CloseSession{OpeningID: id, How: wire.CloseCancel})})
	w.wait(11 * time.Minute)
	require.Empty(t, bodies[wire.PickupCompleted](w))
	opened, _ := w.exceptions(wire.ExDoorLeftOpen)
	require.Len(t, opened, 1)
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Empty(t, bodies[wire.PickupCompleted](w))
	require.Equal(t, wire.OpeningEnded{OpeningID: id, Reason: wire.EndCancelled}, bodies[wire.OpeningEnded](w)[0])
	require.Equal(t, "LD-1", w.s.Doors[1].Delivery)
	require.Equal(t, wire.CodeOK, w.try(7).Outcome, "the code works")
}
