package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// A clear names what it takes out: what was brought offline meanwhile stays.
func TestALateClearLeavesANewerParcel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	cmd := w.command(wire.CmdClear, map[uint]uint64{1: 1}, wire.DoorReason{Door: 1, Reason: "contents_mismatch", DeliveryRef: "LD-8"})
	cmd.ExpiresAt = cmd.IssuedAt + int64(24*time.Hour)
	// offline: a courier deposits another delivery by code in door 1
	w.step(CodesCame{Codes: wire.Codes{From: 0, To: 9, Entries: []wire.CodeEntry{
		{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(1), DeliveryRef: "LD-9", Doors: []uint{1}, Packages: map[uint][]string{1: {"PK9"}}, Active: wire.ActiveNow},
		{Number: 2, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(2), DeliveryRef: "LD-9", Active: wire.ActiveAtSettle}}}})
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(1), Input: "keypad"}).Answer.Outcome)
	w.swing()
	w.setDoor(1, false)
	w.wait(5 * time.Second)
	require.Equal(t, "LD-9", w.s.Doors[1].Delivery)
	w.step(Ordered{Command: cmd})
	require.Equal(t, "LD-9", w.s.Doors[1].Delivery, "the late clear takes the newer parcel")
}

// What had run out once stays so: an answer about the time that was held back has a
// larger error, and the floor of time stands.
func TestAHeldTimeAnswerRevivesNoExpiredCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.step(CodesCame{Codes: wire.Codes{From: 0, To: 9, Entries: []wire.CodeEntry{
		{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(1), DeliveryRef: "LD-9", Doors: []uint{1}, Packages: map[uint][]string{1: {"PK9"}}, Active: wire.ActiveNow,
			NotAfter: w.now.Wall(w.now.Mono) - int64(time.Minute)}}}})
	require.Equal(t, wire.CodeExpired, w.step(CodeTried{Verifier: verifier(1), Input: "keypad"}).Answer.Outcome)
	w.now.Floor = w.now.Wall(w.now.Mono)
	w.now.ErrMS = 290_000 // restart, then an answer held back for 9 m 40 s
	require.Equal(t, wire.CodeExpired, w.step(CodeTried{Verifier: verifier(1), Input: "keypad"}).Answer.Outcome)
}

// Reopening is for pickups: a courier's deposit does not become one without a code.
func TestADepositCannotBeReopened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.openDoors("op-1", 1)
	w.swing()
	w.open[1] = false
	w.step(Reading{Door: 1, Open: false, Mono: w.now.Mono, Item: wire.ItemPresent})
	w.wait(5 * time.Second)
	require.Len(t, bodies[wire.OpeningSettled](w), 1)
	out := w.step(Reopen{OpeningID: "op-1"})
	require.NotEqual(t, wire.CodeOK, out.Answer.Outcome, "the door opens again, as a pickup")
}

// The machine's clock of one boot ran an hour ahead, and was never synchronised.
// The door was shut five minutes after the power went; the next boot, two hours
// later, is synchronised.
func TestACarriedClockBoundsNoClose(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.now.Clock = wire.ClockCarried
	truth := w.now.Offset
	w.now.Offset += int64(time.Hour)
	o := wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(1), DeliveryRef: "LD-9", Doors: []uint{1}, Packages: map[uint][]string{1: {"PK9"}}, Active: wire.ActiveNow}
	w.step(CodesCame{Codes: wire.Codes{From: 0, To: 9, Entries: []wire.CodeEntry{o}}})
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(1), Input: "keypad"}).Answer.Outcome)
	w.swing()
	w.wait(2 * time.Minute)
	died := truth + w.now.Mono
	w.open[1] = false // five minutes later, in the dark
	closed := died + int64(5*time.Minute)
	w.restart(2*time.Hour-time.Hour, wire.ClockSynced)
	w.readAll()
	w.wait(time.Minute)
	s := bodies[wire.OpeningSettled](w)
	require.Len(t, s, 1)
	d := s[0].Doors[0]
	t.Logf("closed %s; told between %s and %s", time.Unix(0, closed).UTC(), time.Unix(0, d.ClosedAfter).UTC(), time.Unix(0, d.ClosedBefore).UTC())
	require.LessOrEqual(t, d.ClosedAfter, closed, "the lower bound is later than the close")
}

// Of two doors one stays shut: its parcel was not taken, and its code works on.
func TestAPickupKeepsWhatIsBehindADoorThatStayedShut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.step(CodesCame{Codes: wire.Codes{From: 0, To: 9, Entries: []wire.CodeEntry{
		{Number: 2, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(2), DeliveryRef: "LD-1", Active: wire.ActiveAtSettle}}}})
	w.openDoors("op-1", 1, 2)
	w.swing()
	w.setDoor(1, false)
	w.setDoor(2, false)
	w.wait(5 * time.Second)
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(2), Input: "keypad"}).Answer.Outcome)
	for range 3 { // pulses of door 2 move nothing
		for _, n := range w.takePulses() {
			w.step(Pulsing{Door: n, Outcome: edge.PulseConfirmed, Mono: w.now.Mono})
			if n == 1 {
				w.setDoor(1, true)
			}
		}
		w.wait(2 * time.Second)
	}
	w.setDoor(1, false)
	w.wait(5 * time.Second)
	done := bodies[wire.PickupCompleted](w)
	require.Len(t, done, 1)
	require.Equal(t, []uint{1}, done[0].Doors)
	require.Equal(t, []uint{2}, done[0].Left)
	require.Equal(t, []string{"", "LD-1"}, []string{w.s.Doors[1].Delivery, w.s.Doors[2].Delivery})
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(2), Input: "keypad"}).Answer.Outcome, "the code works on")
}

// A door that swings late, after its opening was cancelled for it, is watched until it is shut:
// staff learn that it stands open, as of any other one.
func TestADoorThatSwingsAfterItsCancelIsWatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.openDoors("op-1", 1)
	for range 40 { // it is pulsed twice and stays shut
		if w.s.Openings["op-1"].door(1).Phase == OpenFailed {
			break
		}
		w.answer(edge.PulseConfirmed)
		w.wait(100 * time.Millisecond)
	}
	require.Equal(t, OpenFailed, w.s.Openings["op-1"].door(1).Phase)
	w.step(Ordered{Command: w.command(wire.CmdCloseSession, nil, wire.CloseSession{OpeningID: "op-1", How: wire.CloseCancel})})
	w.setDoor(1, true)
	w.wait(15 * time.Minute)
	left := bodies[wire.Exception](w)
	require.Len(t, left, 1)
	require.Equal(t, wire.ExDoorLeftOpen, left[0].Type)
	w.setDoor(1, false)
	w.wait(5 * time.Second)
	require.Empty(t, w.s.Openings)
	require.Equal(t, wire.EndCancelled, bodies[wire.OpeningEnded](w)[0].Reason)
}

// A door that is open and that no opening watches counts as left open after the time of a
// session, once, unless staff have taken it out of use.
func TestAnOpenDoorIsAlwaysWatched(t *testing.T) {
	t.Parallel()
	for _, blocked := range []bool{false, true} {
		w := newWorld(t, 2)
		w.openDoors("op-1", 1)
		w.swing()
		w.setDoor(1, false)
		w.wait(5 * time.Second)
		require.Empty(t, w.s.Openings)
		door := w.s.Doors[1]
		door.PulseAt = w.now.Mono // as after a pulse whose opening is over
		if blocked {
			door.Blocked = "contact"
		}
		w.s.Doors[1] = door
		w.setDoor(1, true)
		w.wait(9 * time.Minute)
		require.Empty(t, bodies[wire.Exception](w))
		w.wait(2 * time.Minute)
		left := bodies[wire.Exception](w)
		if blocked {
			require.Empty(t, left)
			continue
		}
		require.Len(t, left, 1)
		require.Equal(t, []any{wire.ExDoorLeftOpen, uint(1)}, []any{left[0].Type, left[0].Door})
		w.setDoor(1, false)
		w.wait(5 * time.Second)
		require.Empty(t, w.s.Exceptions)
	}
}
