package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/diagnosis"
	"github.com/postern-io/postern/protocol/wire"
)

var testUpload = wire.Upload{Path: "/api/v1/x", Until: 1 << 62, Max: 9}

func (w *world) testOrder(id string, door uint, occupied bool) Ordered {
	return Ordered{Command: w.command(wire.CmdChannelTest, map[uint]uint64{door: w.s.Doors[edge.DoorNumber(door)].Version + 1},
		wire.ChannelTest{OpeningID: id, Kind: wire.OpenStaff, Doors: []uint{door}, SessionSeconds: 120, Upload: testUpload, Occupied: occupied})}
}

func (w *world) viewOrder() Ordered {
	return Ordered{Command: w.command(wire.CmdBoardView, nil, wire.Diagnosis{Upload: testUpload})}
}

// A diagnosis is wanted until its outcome, through any number of starts, and has one outcome.
func TestDiagnosisIsWantedUntilItsOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	o := w.viewOrder()
	out := w.step(o)
	require.Contains(t, out.Actions, DiagnosisWanted{})
	require.Empty(t, out.Records)
	require.Empty(t, w.step(o).Actions, "a repeat")
	second := w.viewOrder()
	w.step(second)
	w.restart(time.Minute, wire.ClockUnset)
	require.Equal(t, &Diagnosis{CommandID: o.Command.CommandID, Kind: wire.CmdBoardView, Upload: testUpload}, w.s.Meta.Diagnosis)
	w.step(Diagnosed{CommandID: "another", Outcome: wire.OutcomeDone})
	require.NotNil(t, w.s.Meta.Diagnosis)
	done := Diagnosed{CommandID: o.Command.CommandID, Outcome: wire.OutcomeDone, Digest: []byte{7}}
	w.step(done)
	w.step(done)
	w.restart(time.Minute, wire.ClockUnset)
	w.step(done)
	require.Nil(t, w.s.Meta.Diagnosis)
	require.Equal(t, []wire.CommandOutcome{{CommandID: second.Command.CommandID, Outcome: wire.OutcomeRefused, Reason: wire.ReasonDiagnosing}, {CommandID: o.Command.CommandID, Outcome: wire.OutcomeDone, Digest: []byte{7}}},
		bodies[wire.CommandOutcome](w))
}

// What cannot be carried out is refused, and no door opens for it.
func TestDiagnosisIsRefused(t *testing.T) {
	t.Parallel()
	refused := func(reason string, prepare func(*world, *Ordered)) {
		t.Helper()
		w := newWorld(t, 2)
		o := w.testOrder("op_t", 1, false)
		prepare(w, &o)
		o.Command.Versions = map[uint]uint64{1: 9}
		w.takePulses()
		w.step(o)
		require.Empty(t, w.takePulses(), reason)
		all := bodies[wire.CommandOutcome](w)
		require.NotEmpty(t, all, reason)
		require.Equal(t, wire.CommandOutcome{CommandID: o.Command.CommandID, Outcome: wire.OutcomeRefused, Reason: reason}, all[len(all)-1])
		require.Nil(t, w.s.Openings["op_t"].Doors)
	}
	body := func(change func(*wire.ChannelTest)) func(*world, *Ordered) {
		return func(_ *world, o *Ordered) {
			var b wire.ChannelTest
			require.NoError(t, wire.Decode(o.Command.Body, &b))
			change(&b)
			o.Command.Body = wire.MustEncode(b)
		}
	}
	refused(wire.ReasonBusy, func(w *world, _ *Ordered) { w.order("op_1", wire.OpenStaff, 1) })
	refused(wire.ReasonBusy, func(w *world, _ *Ordered) { w.order("op_1", wire.OpenDeposit, 2) })
	refused(wire.ReasonBusy, func(w *world, _ *Ordered) { w.setDoor(1, true) })
	refused(wire.ReasonOccupied, func(w *world, _ *Ordered) { w.occupy(1, "LD-9") })
	refused(wire.ReasonBoard, func(w *world, _ *Ordered) { w.step(Lost{Doors: []edge.DoorNumber{1}, Mono: w.now.Mono}) })
	refused(wire.ReasonNoCloud, func(_ *world, o *Ordered) { o.Problem = wire.ReasonNoCloud })
	refused(wire.ReasonClock, func(w *world, _ *Ordered) { w.now.Clock = wire.ClockCarried })
	refused(wire.ReasonUnknownDoor, body(func(b *wire.ChannelTest) { b.Doors = []uint{9} }))
	refused(wire.ReasonUnsupported, body(func(b *wire.ChannelTest) { b.Doors = []uint{1, 2} }))
	refused(wire.ReasonUnsupported, body(func(b *wire.ChannelTest) { b.Kind = wire.OpenDeposit }))
	refused(wire.ReasonUnsupported, body(func(b *wire.ChannelTest) { b.Upload.Path = "" }))
	refused(wire.ReasonDiagnosing, func(w *world, _ *Ordered) { w.step(w.viewOrder()) })
}

func (w *world) occupy(n edge.DoorNumber, ref string) {
	door := w.s.Doors[n]
	door.Delivery = ref
	w.s.Doors[n] = door
}

// A test is an opening by staff with one pulse's authority; what it has shown is kept when the
// opening ends, and its outcome comes with the diagnosis alone.
func TestChannelTestIsAnOpeningByStaff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.occupy(1, "LD-9")
	o := w.testOrder("op_t", 1, true)
	w.step(o)
	require.Len(t, w.asked, 1)
	require.Equal(t, edge.ByCommand, w.asked[0].By.Kind)
	require.Equal(t, o.Command.CommandID, w.asked[0].By.Act)
	started := bodies[wire.OpeningStarted](w)
	require.Len(t, started, 1)
	require.Equal(t, []any{"op_t", wire.OpenStaff, o.Command.CommandID}, []any{started[0].OpeningID, started[0].Kind, started[0].CommandID})
	w.swing()
	w.wait(4 * time.Second)
	require.False(t, w.s.Meta.Diagnosis.Test.Over)
	w.setDoor(1, false)
	w.wait(10 * time.Second)
	require.Empty(t, w.s.Openings)
	got := w.s.Meta.Diagnosis.Test
	require.True(t, got.Over && got.Closed)
	require.Equal(t, diagnosis.Opened, got.Result)
	require.EqualValues(t, 20, *got.DelayMS)
	require.InDelta(t, 5000, *got.OpenMS, 200)
	require.Equal(t, "LD-9", w.s.Doors[1].Delivery, "the delivery stays")
	require.Empty(t, bodies[wire.CommandOutcome](w))
	w.restart(time.Minute, wire.ClockUnset)
	require.Equal(t, got, w.s.Meta.Diagnosis.Test)
	w.step(Diagnosed{CommandID: o.Command.CommandID, Outcome: wire.OutcomeDone, Digest: []byte{1}})
	require.Equal(t, []wire.CommandOutcome{{CommandID: o.Command.CommandID, Outcome: wire.OutcomeDone, Digest: []byte{1}}}, bodies[wire.CommandOutcome](w))
}

// A lock that does not open, a door that stays open, a board that falls silent and a start
// in the middle are told apart.
func TestChannelTestTellsWhatItSaw(t *testing.T) {
	t.Parallel()
	test := func(happens func(*world)) (Test, map[uint]string) {
		w := newWorld(t, 1)
		o := w.testOrder("op_t", 1, false)
		w.step(o)
		happens(w)
		x := w.s.Meta.Diagnosis
		require.NotNil(t, x)
		require.True(t, x.Test.Over)
		w.step(Diagnosed{CommandID: o.Command.CommandID, Outcome: wire.OutcomeDone})
		return *x.Test, bodies[wire.CommandOutcome](w)[0].Doors
	}
	stuck, codes := test(func(w *world) {
		for range 6 {
			w.answer(edge.PulseConfirmed)
			w.wait(3 * time.Second)
		}
	})
	require.Equal(t, diagnosis.NotOpened, stuck.Result)
	require.Equal(t, 2, stuck.Pulses)
	require.Equal(t, map[uint]string{1: wire.DoorOpenFailed}, codes)

	left, codes := test(func(w *world) {
		w.swing()
		w.wait(121 * time.Second)
		require.NotEmpty(t, w.s.Openings, "it stays this opening's until it is closed")
	})
	require.Equal(t, []any{diagnosis.Opened, false}, []any{left.Result, left.Closed})
	require.Nil(t, left.OpenMS)
	require.Nil(t, codes)

	cut, codes := test(func(w *world) {
		w.restart(time.Second, wire.ClockSynced)
		w.readAll()
		w.wait(130 * time.Second)
	})
	require.Equal(t, diagnosis.NotSeen, cut.Result)
	require.Equal(t, uint64(1), cut.At.Boot, "the agent sees by that that it started again")
	require.Equal(t, map[uint]string{1: wire.DoorNotSeen}, codes)
}

// Power goes after any step of a test: what was kept goes on to one end and one outcome, and
// no lock is pulsed for an intent of an earlier start.
func TestPowerCutsInAChannelTest(t *testing.T) {
	t.Parallel()
	steps := []func(w *world, o Ordered){
		func(w *world, o Ordered) { w.step(o) },
		func(w *world, _ Ordered) { w.swing() },
		func(w *world, _ Ordered) { w.wait(2 * time.Second) },
		func(w *world, _ Ordered) { w.setDoor(1, false) },
		func(w *world, _ Ordered) { w.wait(10 * time.Second) },
		func(w *world, o Ordered) {
			w.step(Diagnosed{CommandID: o.Command.CommandID, Outcome: wire.OutcomeDone})
		},
	}
	for cut := range len(steps) + 1 {
		w := newWorld(t, 1)
		o := w.testOrder("op_t", 1, false)
		for i, step := range steps {
			if i == cut {
				w.restart(time.Second, wire.ClockSynced)
				w.readAll()
				require.Empty(t, w.takePulses(), "cut %d", cut)
			}
			if i > 0 && len(w.acts) == 0 && w.s.Meta.Diagnosis == nil && len(bodies[wire.CommandOutcome](w)) == 0 {
				w.step(o) // the cloud sends it again
			}
			step(w, o)
		}
		if cut == len(steps) {
			w.restart(time.Second, wire.ClockSynced)
			w.readAll()
		}
		w.open[1] = false
		w.readAll()
		w.wait(3 * time.Minute)
		w.step(o)
		w.step(Diagnosed{CommandID: o.Command.CommandID, Outcome: wire.OutcomeDone})
		require.Empty(t, w.s.Openings, "cut %d", cut)
		require.Nil(t, w.s.Meta.Diagnosis, "cut %d", cut)
		require.Len(t, bodies[wire.CommandOutcome](w), 1, "cut %d", cut)
		w.endsOnce()
	}
}
