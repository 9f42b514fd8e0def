package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// deposited is a world with a parcel behind door 1, as a sensor sees it.
func deposited(t *testing.T, sensor wire.Item) *world {
	w := newWorld(t, 2)
	if sensor != wire.ItemUnknown {
		w.item(1, false, wire.ItemAbsent)
	}
	w.openDoors("op_1", 1)
	w.swing()
	w.item(1, true, sensor)
	w.wait(time.Second)
	w.item(1, false, sensor)
	w.wait(5 * time.Second)
	require.Len(t, bodies[wire.OpeningSettled](w), 1)
	return w
}

// evidences are those of the exceptions of a type that are open.
func (w *world) evidences(typ string) (out []string) {
	for _, id := range sorted(w.s.Exceptions) {
		if e := w.s.Exceptions[id]; e.Type == typ {
			out = append(out, e.Evidence)
		}
	}
	return out
}

// What lies in a compartment is taken through a forced door: as long as nothing says that the
// parcel is there, staff are asked to look, also once the door is shut.
func TestAParcelTakenThroughAForcedDoorIsMissing(t *testing.T) {
	t.Parallel()
	w := deposited(t, wire.ItemPresent)
	w.item(1, true, wire.ItemPresent)
	w.wait(3 * time.Second)
	require.Equal(t, []string{"forced"}, w.evidences(wire.ExDoorLeftOpen))
	w.item(1, true, wire.ItemAbsent)
	w.wait(time.Second)
	w.item(1, false, wire.ItemAbsent)
	w.wait(5 * time.Second)
	require.Empty(t, w.evidences(wire.ExDoorLeftOpen), "it is shut")
	require.Equal(t, []string{"item gone while the door was open without a session"}, w.evidences(wire.ExItemMissing))
	require.Equal(t, "LD-1", w.s.Doors[1].Delivery, "it is not freed")
	w.item(1, true, wire.ItemAbsent)
	w.wait(3 * time.Second)
	w.item(1, false, wire.ItemAbsent)
	w.wait(time.Second)
	opened, _ := w.exceptions(wire.ExItemMissing)
	require.Len(t, opened, 1, "said once")
}

// A sensor that lost sight of a parcel sees it again: its theft is noticed all the same.
func TestAParcelThatIsSeenAgainCanBeMissedAgain(t *testing.T) {
	t.Parallel()
	w := deposited(t, wire.ItemPresent)
	w.item(1, false, wire.ItemAbsent)
	require.Len(t, w.evidences(wire.ExItemMissing), 1)
	w.item(1, false, wire.ItemPresent)
	for id := range w.s.Exceptions { // staff have found it
		delete(w.s.Exceptions, id)
	}
	w.item(1, true, wire.ItemPresent)
	w.wait(3 * time.Second)
	w.item(1, true, wire.ItemAbsent)
	w.item(1, false, wire.ItemAbsent)
	w.wait(time.Second)
	require.Equal(t, []string{"item gone while the door was open without a session"}, w.evidences(wire.ExItemMissing))
}

// The thief leaves the parcel: nothing is missing.
func TestAForcedDoorOverAParcelThatStays(t *testing.T) {
	t.Parallel()
	w := deposited(t, wire.ItemPresent)
	w.item(1, true, wire.ItemPresent)
	w.wait(3 * time.Second)
	w.item(1, false, wire.ItemPresent)
	w.wait(5 * time.Second)
	require.Empty(t, w.s.Exceptions)
}

// Without a sensor a shut door says nothing about what was behind it.
func TestAForcedDoorWithoutASensorLeavesADoubt(t *testing.T) {
	t.Parallel()
	w := deposited(t, wire.ItemUnknown)
	w.setDoor(1, true)
	w.wait(3 * time.Second)
	w.setDoor(1, false)
	w.wait(5 * time.Second)
	require.Empty(t, w.evidences(wire.ExDoorLeftOpen))
	require.Equal(t, []string{"forced open, and no sensor sees what lies inside"}, w.evidences(wire.ExDepositUnverified))
	w.setDoor(2, true) // nothing lies there
	w.wait(3 * time.Second)
	w.setDoor(2, false)
	w.wait(time.Second)
	require.Len(t, w.s.Exceptions, 1)
}

// The agent is down while the door is forced, emptied and shut.
func TestAParcelTakenWhileNothingLookedIsMissing(t *testing.T) {
	t.Parallel()
	w := deposited(t, wire.ItemPresent)
	w.restart(time.Minute, wire.ClockSynced)
	w.item(1, false, wire.ItemAbsent)
	w.item(2, false, wire.ItemAbsent)
	w.wait(time.Second)
	require.Equal(t, []string{"item gone while nothing looked"}, w.evidences(wire.ExItemMissing))
	w.restart(time.Minute, wire.ClockSynced)
	w.item(1, false, wire.ItemAbsent)
	w.item(2, false, wire.ItemAbsent)
	w.wait(time.Second)
	opened, _ := w.exceptions(wire.ExItemMissing)
	require.Len(t, opened, 1, "said once")
}

// takesOut has a parcel taken out of a door that has just been pulled open, and the door shut.
func (w *world) takesOut(t *testing.T, n edge.DoorNumber) {
	t.Helper()
	w.swing()
	w.item(n, true, wire.ItemAbsent)
	w.wait(time.Second)
	w.item(n, false, wire.ItemAbsent)
	w.wait(time.Minute)
	require.Empty(t, w.s.Openings)
}

// missesOnceUnstated demands that a parcel that staff took is missing once they are not asked
// any more, that this is said once, and that its compartment is kept.
func (w *world) missesOnceUnstated(t *testing.T, n edge.DoorNumber, ref string) {
	t.Helper()
	require.Empty(t, w.evidences(wire.ExItemMissing), "the answer may still come")
	w.wait(10 * time.Minute)
	require.Equal(t, []string{"item gone in an opening of staff, who stated nothing"}, w.evidences(wire.ExItemMissing))
	require.Equal(t, ref, w.s.Doors[n].Delivery, "it is not freed")
	w.wait(time.Hour)
	opened, _ := w.exceptions(wire.ExItemMissing)
	require.Len(t, opened, 1, "said once")
}

// emptiedByStaff is a cabinet behind whose door 2 a sensor saw a parcel, until a member of the
// staff opened the door at the screen, took it, shut the door and stated nothing.
func emptiedByStaff(t *testing.T) (w *world, a Answer) {
	w = collecting(t)
	w.item(2, false, wire.ItemPresent)
	a = w.queue(2)
	require.Equal(t, wire.CodeOK, a.Outcome)
	w.takesOut(t, 2)
	return w, a
}

// Staff take a parcel and walk away from the question what became of it: once it is not taken
// any more, the parcel is missing.
func TestAParcelThatStaffTookWithoutAWordIsMissing(t *testing.T) {
	t.Parallel()
	w, _ := emptiedByStaff(t)
	w.missesOnceUnstated(t, 2, "LD-2")
}

func TestAnotherStaffSessionEndsTheWaitForAWord(t *testing.T) {
	t.Parallel()
	w, _ := emptiedByStaff(t)
	w.staffOpens(4)
	require.Empty(t, w.evidences(wire.ExItemMissing), "the same session goes on")
	w.list(wire.CodeEntry{Number: w.s.Meta.CodeList + 1, Op: wire.CodeSet, Kind: wire.CodeStaff, Verifier: verifier(staffVerifier + 1), NotAfter: w.now.Wall(w.now.Mono) + 12*hour})
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(staffVerifier + 1), Input: "keypad", Budget: BudgetStaff}).Answer.Outcome)
	require.Len(t, w.evidences(wire.ExItemMissing), 1)
}

func TestAParcelThatStaffTookWithoutAWordBeforeAStartIsMissing(t *testing.T) {
	t.Parallel()
	w, _ := emptiedByStaff(t)
	w.restart(time.Minute, wire.ClockSynced)
	w.item(2, false, wire.ItemAbsent)
	w.wait(time.Second)
	require.Len(t, w.evidences(wire.ExItemMissing), 1)
}

func TestAStatementOfStaffLeavesNothingMissing(t *testing.T) {
	t.Parallel()
	w, a := emptiedByStaff(t)
	require.Equal(t, wire.CodeOK, w.state(a, wire.RemovalTaken, wire.RemovalCollected))
	w.wait(20 * time.Minute)
	require.Empty(t, w.evidences(wire.ExItemMissing))
}

// emptiedFromTheConsole is a cabinet behind whose door 1 a sensor saw a parcel, until staff
// had the door opened from the cloud, and a colleague on site took the parcel and shut the door.
func emptiedFromTheConsole(t *testing.T) *world {
	w := deposited(t, wire.ItemPresent)
	w.step(Ordered{Command: w.command(wire.CmdOpenDoors, nil, wire.OpenDoors{OpeningID: "op_2", Kind: wire.OpenStaff, Doors: []uint{1}, SessionSeconds: 60})})
	w.takesOut(t, 1)
	return w
}

// Staff open a door from the console, and no one confirms what was taken out of it.
func TestAParcelTakenInAnOpeningFromTheConsoleIsMissing(t *testing.T) {
	t.Parallel()
	w := emptiedFromTheConsole(t)
	w.missesOnceUnstated(t, 1, "LD-1")
}

// What was taken out in an opening from the console is put back in the next one.
func TestAParcelThatStaffPutBackIsNotMissing(t *testing.T) {
	t.Parallel()
	w := emptiedFromTheConsole(t)
	w.step(Ordered{Command: w.command(wire.CmdOpenDoors, nil, wire.OpenDoors{OpeningID: "op_3", Kind: wire.OpenStaff, Doors: []uint{1}, SessionSeconds: 60})})
	w.swing()
	w.item(1, true, wire.ItemPresent)
	w.wait(time.Second)
	w.item(1, false, wire.ItemPresent)
	w.wait(20 * time.Minute)
	require.Empty(t, w.evidences(wire.ExItemMissing))
}

// The cloud clears the compartment: what was taken out has been accounted for.
func TestAClearedCompartmentMissesNothing(t *testing.T) {
	t.Parallel()
	w := emptiedFromTheConsole(t)
	w.step(Ordered{Command: w.command(wire.CmdClear, nil, wire.DoorReason{Door: 1})})
	require.Empty(t, w.s.Doors[1].Delivery)
	w.wait(20 * time.Minute)
	require.Empty(t, w.evidences(wire.ExItemMissing))
}
