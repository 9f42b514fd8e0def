package locker

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

func verifier(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

func (w *world) list(entries ...wire.CodeEntry) {
	from := w.s.Meta.CodeList
	w.step(CodesCame{Codes: wire.Codes{DeviceCode: "A-1", From: from, To: from + uint64(len(entries)), Entries: entries}})
}

func (w *world) deposit() {
	w.list(wire.CodeEntry{Number: w.s.Meta.CodeList + 1, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(7), DeliveryRef: "LD-1", Active: wire.ActiveAtSettle})
	w.openDoors("op_1", 1)
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
}

func TestDepositSettlesWhenTheDoorCloses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.openDoors("op_1", 2)
	require.Equal(t, []edge.DoorNumber{2}, w.pulses)
	w.swing()
	require.Equal(t, wire.OutcomeDone, bodies[wire.CommandOutcome](w)[0].Outcome)
	closedAt := w.now.Mono
	w.setDoor(2, false)
	w.wait(1900 * time.Millisecond)
	require.Empty(t, bodies[wire.OpeningSettled](w), "the settle delay lets a person open it again by hand")
	w.wait(200 * time.Millisecond)
	got := bodies[wire.OpeningSettled](w)
	require.Len(t, got, 1)
	require.Equal(t, wire.ByDoorClose, got[0].ConfirmedBy)
	require.Equal(t, w.now.Wall(closedAt), got[0].Doors[0].ClosedAt)
	require.Equal(t, []wire.SettledPackage{{Ref: "PK2", Door: 2, Outcome: wire.Deposited}}, got[0].Packages)
	require.Empty(t, w.s.Openings)
	require.Equal(t, "LD-1", w.s.Doors[2].Delivery)
}

func TestTwoDoorsSettleTogetherThoughTheSecondIsSlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.openDoors("op_1", 1, 2)
	for _, n := range w.takePulses() {
		w.step(Pulsing{Door: n, Outcome: edge.PulseConfirmed, Mono: w.now.Mono})
	}
	w.setDoor(1, true)
	w.wait(1200 * time.Millisecond)
	w.setDoor(1, false)
	w.wait(4 * time.Second) // the second pulse of door 2 falls in here
	require.Empty(t, bodies[wire.OpeningSettled](w))
	require.Equal(t, []edge.DoorNumber{2}, w.takePulses())
	w.step(Pulsing{Door: 2, Outcome: edge.PulseConfirmed, Mono: w.now.Mono})
	w.setDoor(2, true)
	w.wait(5 * time.Second)
	require.Empty(t, bodies[wire.OpeningSettled](w))
	w.setDoor(2, false)
	w.wait(3 * time.Second)
	got := bodies[wire.OpeningSettled](w)
	require.Len(t, got, 1)
	require.Len(t, got[0].Packages, 2)
}

func TestReopenedInsideTheSettleDelayStartsItAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	w.swing()
	w.setDoor(1, false)
	w.wait(1500 * time.Millisecond)
	w.setDoor(1, true)
	w.wait(1500 * time.Millisecond)
	require.Empty(t, bodies[wire.OpeningSettled](w))
	w.setDoor(1, false)
	w.wait(2100 * time.Millisecond)
	require.Len(t, bodies[wire.OpeningSettled](w), 1)
	require.Empty(t, bodies[wire.Tamper](w))
}

func TestJammedDoorFailsAfterTwoPulses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	pulses := 0
	for range 60 {
		for range w.takePulses() {
			pulses++
			w.step(Pulsing{Door: 1, Outcome: edge.PulseConfirmed, Mono: w.now.Mono})
		}
		w.wait(100 * time.Millisecond)
	}
	require.Equal(t, 2, pulses)
	require.Equal(t, []wire.CommandOutcome{{CommandID: bodies[wire.CommandOutcome](w)[0].CommandID, Outcome: wire.OutcomeFailed, Doors: map[uint]string{1: wire.DoorOpenFailed}}}, bodies[wire.CommandOutcome](w))
	require.Equal(t, []wire.OpeningEnded{{OpeningID: "op_1", Reason: wire.EndOpenFailed}}, bodies[wire.OpeningEnded](w))
	require.Equal(t, 1, w.s.Doors[1].Failures)
}

func TestADoorThatDoesNotSwingGetsOneMorePulse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	w.takePulses()
	w.step(Pulsing{Door: 1, Outcome: edge.PulseConfirmed, Mono: w.now.Mono})
	w.setDoor(1, true)
	w.wait(300 * time.Millisecond)
	w.setDoor(1, false)
	require.Equal(t, []edge.DoorNumber{1}, w.takePulses())
	require.Empty(t, bodies[wire.DoorOpened](w), "shorter than the minimum never counts as opened")
}

func TestLeftOpenWaitsAndSettlesWhenItCloses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	w.swing()
	w.wait(11 * time.Minute)
	require.Empty(t, bodies[wire.OpeningSettled](w))
	require.Equal(t, wire.ExDoorLeftOpen, bodies[wire.Exception](w)[0].Type)
	w.wait(70 * time.Minute)
	require.Len(t, bodies[wire.Exception](w), 3, "told again after 15 and 60 minutes")
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Equal(t, wire.ByDoorClose, bodies[wire.OpeningSettled](w)[0].ConfirmedBy)
	last := bodies[wire.Exception](w)[3]
	require.Equal(t, "door_closed_on_site", last.Evidence)
	require.Empty(t, w.s.Exceptions)
}

func TestBoardSilentAfterThePulseIsNotAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	w.takePulses()
	w.step(Pulsing{Door: 1, Outcome: edge.PulseUnanswered, Mono: w.now.Mono})
	w.step(Lost{Doors: []edge.DoorNumber{1}, Mono: w.now.Mono})
	require.Equal(t, wire.OutcomeInterrupted, bodies[wire.CommandOutcome](w)[0].Outcome)
	w.wait(11 * time.Minute)
	require.Empty(t, bodies[wire.OpeningEnded](w), "unknown state ends nothing")
	w.step(Reading{Door: 1, Mono: w.now.Mono})
	require.Equal(t, wire.EndDepositUnverified, bodies[wire.OpeningEnded](w)[0].Reason)
	require.Equal(t, wire.ExDepositUnverified, bodies[wire.Exception](w)[0].Type)
	require.Equal(t, "LD-1", w.s.Doors[1].Delivery, "the compartment stays assigned")
}

func TestRestartInMidSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		off   time.Duration
		clock wire.Clock
		open  bool
		want  wire.ConfirmedBy
	}{
		"closed meanwhile, session still running": {time.Minute, wire.ClockCarried, false, wire.ByDoorClose},
		"closed meanwhile, session over":          {time.Hour, wire.ClockCarried, false, wire.ByTimeoutDoorClosed},
		"closed meanwhile, nobody knows how long": {time.Minute, wire.ClockUnset, false, wire.ByTimeoutDoorClosed},
		"still open, session still running":       {time.Minute, wire.ClockCarried, true, ""},
		"still open, session over":                {time.Hour, wire.ClockCarried, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			w.openDoors("op_1", 1)
			w.swing()
			w.restart(c.off, c.clock)
			require.Empty(t, w.takePulses(), "a lock is never pulsed again by itself")
			w.open[1] = c.open
			w.readAll()
			w.wait(3 * time.Second)
			got := bodies[wire.OpeningSettled](w)
			if c.want == "" {
				require.Empty(t, got)
				w.setDoor(1, false)
				w.wait(3 * time.Second)
				require.Equal(t, wire.ByDoorClose, bodies[wire.OpeningSettled](w)[0].ConfirmedBy)
				return
			}
			require.Len(t, got, 1)
			require.Equal(t, c.want, got[0].ConfirmedBy)
			require.Empty(t, bodies[wire.Tamper](w))
		})
	}
}

// The agent had run for hours, the door closed, and the power went before the
// settle delay was over: the new boot's clock starts at zero, and the deposit
// must not wait until it has run as long.
func TestRestartInsideTheSettleDelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.now.Mono += 5 * 3600 * second
	w.openDoors("op_1", 1)
	w.swing()
	w.setDoor(1, false)
	w.wait(time.Second)
	w.restart(10*time.Second, wire.ClockCarried)
	w.readAll()
	w.wait(3 * time.Second)
	got := bodies[wire.OpeningSettled](w)
	require.Len(t, got, 1)
	require.Equal(t, wire.ByDoorClose, got[0].ConfirmedBy)
}

// A door that is pulled open by hand before its pulse is through: the pulse
// still comes, and nothing may end before it has.
func TestNothingEndsWhileAPulseIsOnItsWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	w.setDoor(1, true)
	w.wait(time.Second)
	w.setDoor(1, false)
	w.wait(5 * time.Second)
	require.Empty(t, bodies[wire.OpeningSettled](w))
	w.step(Pulsing{Door: 1, Outcome: edge.PulseUnanswered, Mono: w.now.Mono})
	w.wait(time.Second)
	require.Len(t, bodies[wire.OpeningSettled](w), 1)
}

func TestRestartBetweenIntentAndOutcome(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{true, false} {
		w := newWorld(t, 1)
		w.openDoors("op_1", 1)
		w.restart(5*time.Second, wire.ClockCarried)
		w.open[1] = open
		w.readAll()
		w.wait(time.Second)
		require.Empty(t, w.takePulses())
		got := bodies[wire.CommandOutcome](w)
		require.Len(t, got, 1)
		if open {
			require.Equal(t, wire.OutcomeDone, got[0].Outcome)
		} else {
			require.Equal(t, wire.OutcomeInterrupted, got[0].Outcome)
			require.Len(t, w.s.Openings, 1, "the opening runs on")
		}
	}
}

func TestCommandsAreCheckedInOrder(t *testing.T) {
	t.Parallel()
	body := wire.OpenDoors{OpeningID: "op_2", Kind: wire.OpenDeposit, Doors: []uint{1}, DeliveryRef: "LD-9", SessionSeconds: 60}
	try := func(t *testing.T, prepare func(w *world, c *wire.Command)) (out []wire.CommandOutcome, pulses int) {
		w := newWorld(t, 2)
		c := w.command(wire.CmdOpenDoors, map[uint]uint64{1: 5}, body)
		prepare(w, &c)
		n := len(bodies[wire.CommandOutcome](w))
		w.takePulses()
		w.step(Ordered{Command: c})
		return bodies[wire.CommandOutcome](w)[n:], len(w.takePulses())
	}
	for name, c := range map[string]struct {
		prepare         func(w *world, c *wire.Command)
		outcome, reason string
	}{
		"clock carried over":     {func(w *world, c *wire.Command) { w.now.Clock = wire.ClockCarried }, wire.OutcomeRefused, wire.ReasonClock},
		"clock error above 5 s":  {func(w *world, c *wire.Command) { w.now.ErrMS = 5001 }, wire.OutcomeRefused, wire.ReasonClock},
		"expired":                {func(w *world, c *wire.Command) { c.ExpiresAt = w.now.Wall(w.now.Mono) - 1 }, wire.OutcomeExpired, ""},
		"expired within error":   {func(w *world, c *wire.Command) { w.now.ErrMS = 4000; c.ExpiresAt = w.now.Wall(w.now.Mono) + 3*second }, wire.OutcomeExpired, ""},
		"overtaken":              {func(w *world, c *wire.Command) { x := w.s.Doors[1]; x.Version = 5; w.s.Doors[1] = x }, wire.OutcomeRefused, wire.ReasonOvertaken},
		"busy":                   {func(w *world, c *wire.Command) { w.order("op_0", wire.OpenStaff, 1) }, wire.OutcomeRefused, wire.ReasonBusy},
		"another delivery in it": {func(w *world, c *wire.Command) { w.deposit() }, wire.OutcomeRefused, wire.ReasonOccupied},
		"board silent":           {func(w *world, c *wire.Command) { w.step(Lost{Doors: []edge.DoorNumber{1}}) }, wire.OutcomeRefused, wire.ReasonBoard},
		"no such door":           {func(w *world, c *wire.Command) { b := body; b.Doors = []uint{9}; c.Body = wire.MustEncode(b) }, wire.OutcomeRefused, wire.ReasonUnknownDoor},
		"unreadable body":        {func(w *world, c *wire.Command) { c.Body = []byte{0xff} }, wire.OutcomeRefused, wire.ReasonUnsupported},
	} {
		out, pulses := try(t, func(w *world, cmd *wire.Command) { c.prepare(w, cmd); w.takePulses() })
		require.Len(t, out, 1, name)
		require.Equal(t, c.outcome, out[0].Outcome, name)
		require.Equal(t, c.reason, out[0].Reason, name)
		require.Zero(t, pulses, name)
	}
}

func TestARepeatedCommandWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	c := w.command(wire.CmdOpenDoors, map[uint]uint64{1: 1}, wire.OpenDoors{OpeningID: "op_1", Kind: wire.OpenDeposit, Doors: []uint{1}, SessionSeconds: 60})
	w.step(Ordered{Command: c})
	n := len(w.records)
	out := w.step(Ordered{Command: c})
	require.Empty(t, out.Put)
	require.Empty(t, out.Records)
	require.Len(t, w.records, n)
	require.Len(t, w.takePulses(), 1)
}

func TestPickupWithNoNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(7), DeliveryRef: "LD-1", Active: wire.ActiveAtSettle})
	try := func() string { return w.step(CodeTried{Verifier: verifier(7), Input: "keypad"}).Answer.Outcome }
	require.Equal(t, wire.CodeNotActive, try(), "before the deposit")
	w.openDoors("op_1", 1)
	w.swing()
	require.Equal(t, wire.CodeNotActive, try(), "while the door is open")
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Equal(t, uint64(1), bodies[wire.OpeningSettled](w)[0].Packages[0].CodeNumber)

	require.Equal(t, wire.CodeOK, try())
	require.Equal(t, []edge.DoorNumber{1}, w.pulses, "the right door")
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	got := bodies[wire.PickupCompleted](w)
	require.Len(t, got, 1)
	require.Equal(t, []uint{1}, got[0].Doors)
	require.Equal(t, "LD-1", got[0].DeliveryRef)
	require.Equal(t, uint64(1), got[0].ListNumber)
	require.Equal(t, wire.CodeUnknown, try(), "a used code is gone")
	require.Empty(t, w.s.Doors[1].Delivery)
}

func TestPickupAtSessionEndWithTheDoorOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.deposit()
	w.step(CodeTried{Verifier: verifier(7), Input: "qr"})
	w.swing()
	w.wait(11 * time.Minute)
	got := bodies[wire.PickupCompleted](w)
	require.Len(t, got, 1)
	require.True(t, got[0].StillOpen)
	require.Equal(t, wire.ExDoorLeftOpen, bodies[wire.Exception](w)[0].Type)
	w.setDoor(1, false)
	require.Empty(t, w.s.Exceptions)
}

func TestPickupThatFindsAJamKeepsTheCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.deposit()
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(7), Input: "keypad"}).Answer.Outcome)
	for range 60 {
		for range w.takePulses() {
			w.step(Pulsing{Door: 1, Outcome: edge.PulseConfirmed, Mono: w.now.Mono})
		}
		w.wait(100 * time.Millisecond)
	}
	require.Equal(t, wire.EndOpenFailed, bodies[wire.OpeningEnded](w)[0].Reason)
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(7), Input: "keypad"}).Answer.Outcome)
}

func TestWrongCodesLockTheKeypadAndARestartDoesNotHelp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.deposit()
	try := func(b byte) string { return w.step(CodeTried{Verifier: verifier(b), Input: "keypad"}).Answer.Outcome }
	for i := range 5 {
		require.Equal(t, wire.CodeUnknown, try(byte(100+i)))
	}
	require.Equal(t, wire.CodeLockedOut, try(7))
	w.restart(time.Minute, wire.ClockCarried)
	w.readAll()
	require.Equal(t, wire.CodeLockedOut, try(7))
	w.restart(10*time.Second, wire.ClockUnset)
	w.readAll()
	require.Equal(t, wire.CodeLockedOut, try(7), "without a clock the time off does not count")
	w.wait(5 * time.Minute)
	require.Equal(t, wire.CodeOK, try(7))
}

func TestForcedDoor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.setDoor(1, true)
	w.wait(time.Second)
	require.Equal(t, wire.TamperDoorForced, bodies[wire.Tamper](w)[0].What)
	require.Equal(t, wire.SeverityHigh, bodies[wire.Exception](w)[0].Severity)
	w.setDoor(1, false)
	require.Empty(t, w.s.Exceptions)
}

// Repeats are counted for a minute from the first door's opening, however late a busy
// machine looked at it: who compares moments of records sees the same minute.
func TestForcedAgainAfterAMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	began := w.now.Mono
	w.setDoor(1, true)
	w.now.Mono += 3 * second // late
	w.step(Tick{})
	w.setDoor(1, false)
	w.wait(time.Second)
	w.setDoor(1, true) // within the minute
	w.wait(time.Second)
	w.setDoor(1, false)
	require.Len(t, bodies[wire.Tamper](w), 1)
	w.wait(time.Duration(began + 61*second - w.now.Mono))
	w.setDoor(1, true)
	w.wait(time.Second)
	require.Equal(t, []wire.Tamper{{What: wire.TamperDoorForced, Door: 1}, {What: wire.TamperDoorForced, Door: 1, Count: 1}}, bodies[wire.Tamper](w))
}

func TestABoardsResetForcesNoDoor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.setDoor(1, true) // all bits zero for 300 ms
	w.wait(300 * time.Millisecond)
	w.setDoor(1, false)
	w.wait(time.Second)
	require.Empty(t, bodies[wire.Tamper](w))
	require.Empty(t, bodies[wire.DoorOpened](w))
}

func TestANewStoreFindsOpenDoorsItDoesNotForceThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.s = New(testConfig(1))
	w.step(Started{Fresh: true})
	w.setDoor(1, true)
	w.wait(time.Second)
	require.Len(t, bodies[wire.DoorOpened](w), 1)
	require.Empty(t, bodies[wire.Tamper](w))
}

func TestCodeListAppliesOnlyWhatFollows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(1), DeliveryRef: "LD-1"})
	w.step(CodesCame{Codes: wire.Codes{From: 5, To: 6, Entries: []wire.CodeEntry{{Number: 6, Op: wire.CodeSet, Kind: wire.CodePickup}}}})
	require.Equal(t, uint64(1), w.s.Meta.CodeList)
	w.list(wire.CodeEntry{Number: 2, Op: wire.CodeRevoke, Kind: wire.CodePickup, DeliveryRef: "LD-1"})
	require.Empty(t, w.s.Codes)
	require.Equal(t, uint64(2), w.s.Meta.CodeList)
	w.restart(time.Second, wire.ClockCarried)
	w.s.Meta.Lost = true // a new store begins so
	w.readAll()
	w.step(CodesCame{Codes: wire.Codes{From: 0, To: 9, Entries: []wire.CodeEntry{{Number: 7, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(3),
		DeliveryRef: "LD-3", Doors: []uint{1}, Active: wire.ActiveNow}}}})
	require.Equal(t, uint64(9), w.s.Meta.CodeList)
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(3), Input: "keypad"}).Answer.Outcome, "a cabinet that lost its memory opens what the cloud knows to lie inside")
}

func TestAPartnersWordConfirmsWhatWasUnverified(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(7), DeliveryRef: "LD-1", Active: wire.ActiveAtSettle})
	w.openDoors("op_1", 1)
	w.takePulses()
	w.step(Pulsing{Door: 1, Outcome: edge.PulseUnanswered, Mono: w.now.Mono})
	w.step(Lost{Doors: []edge.DoorNumber{1}, Mono: w.now.Mono})
	w.wait(11 * time.Minute)
	w.readAll()
	require.Equal(t, wire.EndDepositUnverified, bodies[wire.OpeningEnded](w)[0].Reason)
	require.Equal(t, wire.CodeNotActive, w.step(CodeTried{Verifier: verifier(7), Input: "keypad"}).Answer.Outcome)
	w.step(Ordered{Command: w.command(wire.CmdCloseSession, nil, wire.CloseSession{OpeningID: "op_1", How: wire.CloseSettle, ConfirmedBy: wire.ByPartnerAPI})})
	require.Empty(t, bodies[wire.OpeningSettled](w), "an opening ends once")
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(7), Input: "keypad"}).Answer.Outcome)
}

func TestLayoutMovesNoOccupiedCompartment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.deposit()
	c := testConfig(2)
	c.Version = 2
	c.Layout[0].Channel, c.Layout[1].Channel = 2, 1
	w.step(ConfigCame{Config: c})
	require.Contains(t, bodies[wire.ConfigApplied](w)[0].Result, "door 1")
	require.Equal(t, uint64(1), w.s.Config.Version)
	c = testConfig(3)
	c.Version = 3
	w.step(ConfigCame{Config: c})
	require.Equal(t, "ok", bodies[wire.ConfigApplied](w)[1].Result)
	require.Len(t, w.s.Doors, 3)
}
