package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// everyCommand is one command of each kind, as a broker may have recorded it.
func (w *world) everyCommand() map[wire.CommandKind]wire.Command {
	out := map[wire.CommandKind]wire.Command{}
	for kind, body := range map[wire.CommandKind]any{
		wire.CmdOpenDoors:    wire.OpenDoors{OpeningID: "op_old", Kind: wire.OpenStaff, Doors: []uint{1}, SessionSeconds: 600},
		wire.CmdCloseSession: wire.CloseSession{OpeningID: "op_run", How: wire.CloseCancel},
		wire.CmdSyncConfig:   wire.SyncConfig{Version: 1},
		wire.CmdBlock:        wire.DoorReason{Door: 2, Reason: "dirty"},
		wire.CmdUnblock:      wire.DoorReason{Door: 3},
		wire.CmdClear:        wire.DoorReason{Door: 1},
		wire.CmdResetTries:   wire.DoorReason{},
		wire.CmdReboot:       wire.DoorReason{},
		wire.CmdBeep:         wire.DoorReason{},
		wire.CmdShowMessage:  wire.DoorReason{Reason: "hello"},
		wire.CmdCapture:      wire.DoorReason{Door: 1},
		wire.CmdBoardView:    wire.Diagnosis{Upload: testUpload},
		wire.CmdChannelTest:  wire.ChannelTest{OpeningID: "op_test", Kind: wire.OpenStaff, Doors: []uint{1}, SessionSeconds: 120, Upload: testUpload, Occupied: true},
	} {
		c := w.command(kind, nil, body)
		c.ExpiresAt = c.IssuedAt + int64(24*time.Hour)
		out[kind] = c
	}
	return out
}

// losses are the ways in which a store forgets the commands that were carried out.
var losses = map[string]func(w *world){
	"a new store": func(w *world) {
		w.kept = map[string][]byte{}
		w.s = New(testConfig(3))
		w.now.Boot++
		w.now.Offset, w.now.Mono = w.now.Wall(w.now.Mono)+int64(time.Minute), 0
		w.step(Started{Fresh: true})
	},
	"an older copy": func(w *world) {
		w.s = New(testConfig(3))
		w.now.Boot++
		w.now.Offset, w.now.Mono = w.now.Wall(w.now.Mono)+int64(time.Minute), 0
		w.step(Started{Behind: true})
	},
	"an older copy that the cloud found": func(w *world) {
		w.s = New(testConfig(3))
		w.now.Boot++
		w.now.Offset, w.now.Mono = w.now.Wall(w.now.Mono)+int64(time.Minute), 0
		w.step(Started{})
		w.step(Tampered{What: wire.TamperStoreRolledBack})
	},
}

// prepare makes a cabinet in which each of those commands would change something.
func (w *world) prepare() {
	w.readAll()
	for _, n := range []edge.DoorNumber{1, 3} {
		door := w.s.Doors[n]
		door.Delivery = "LD-1"
		if n == 3 {
			door.Blocked = "dirty"
		}
		w.s.Doors[n] = door
	}
	w.s.Deliveries["LD-1"] = Delivery{Ref: "LD-1", Doors: map[edge.DoorNumber][]string{1: {"PK1"}}}
	for range 30 {
		w.step(CodeTried{Verifier: verifier(99), Input: "keypad"})
	}
	w.records = nil
}

// The ids of the commands that were carried out are lost with the store: a broker
// that has recorded one plays it again within its life.
func TestNoCommandFromBeforeALossIsCarriedOut(t *testing.T) {
	t.Parallel()
	for name, lose := range losses {
		for kind := range newWorld(t, 3).everyCommand() {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, 3)
				recorded := w.everyCommand()[kind]
				lose(w)
				w.prepare()
				w.order("op_run", wire.OpenStaff, 2)
				w.takePulses()
				before := w.s
				out := w.step(Ordered{Command: recorded})
				require.Equal(t, before.Doors, w.s.Doors)
				require.Equal(t, before.Deliveries, w.s.Deliveries)
				require.Equal(t, before.Openings, w.s.Openings)
				require.Equal(t, before.Meta.Budgets, w.s.Meta.Budgets)
				require.Empty(t, w.takePulses())
				require.Empty(t, out.Actions)
				require.Equal(t, []wire.CommandOutcome{{CommandID: recorded.CommandID, Outcome: wire.OutcomeRefused, Reason: wire.ReasonMemory}}, outcomesOf(w, recorded.CommandID))
				w.step(Ordered{Command: recorded})
				require.Len(t, outcomesOf(w, recorded.CommandID), 1, "nor a second time")
			})
		}
	}
}

func outcomesOf(w *world, id string) (out []wire.CommandOutcome) {
	for _, o := range bodies[wire.CommandOutcome](w) {
		if o.CommandID == id {
			out = append(out, o)
		}
	}
	return out
}

// One that was made after the loss is carried out, whichever it is.
func TestCommandsFromAfterALossAreCarriedOut(t *testing.T) {
	t.Parallel()
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 3)
			lose(w)
			w.prepare()
			w.now.Mono += int64(time.Second)
			for kind, c := range w.everyCommand() {
				w.step(Ordered{Command: c})
				for _, o := range outcomesOf(w, c.CommandID) {
					require.NotEqual(t, wire.ReasonMemory, o.Reason, kind)
				}
			}
		})
	}
}

// The clock was not synchronised in the boot of the loss, and a broker withheld
// the time until the next start: the loss is not later than that.
func TestALossIsRememberedUntilTheTimeIsKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	c := w.command(wire.CmdUnblock, nil, wire.DoorReason{Door: 3})
	c.ExpiresAt = c.IssuedAt + int64(24*time.Hour)
	truth := w.now.Offset
	w.s, w.kept = New(testConfig(3)), map[string][]byte{}
	w.now = Now{Boot: 2, Mono: second}
	w.step(Started{Fresh: true})
	w.take(wire.Codes{To: 9, Generation: 3, Nonce: nonceA}) // the memory is whole again, but for the commands
	require.False(t, w.s.Meta.Lost)
	w.restart(0, wire.ClockUnset)
	w.now.Offset, w.now.Clock, w.now.ErrMS = truth+int64(time.Hour), wire.ClockSynced, 2000
	w.prepare()
	w.step(Ordered{Command: c})
	require.Equal(t, wire.ReasonMemory, outcomesOf(w, c.CommandID)[0].Reason)
	within := w.command(wire.CmdUnblock, nil, wire.DoorReason{Door: 3})
	within.IssuedAt = w.now.Wall(0) + int64(time.Second) // the clock's error does not exclude that it is older
	w.step(Ordered{Command: within})
	require.Equal(t, wire.ReasonMemory, outcomesOf(w, within.CommandID)[0].Reason)
	w.restart(time.Hour, wire.ClockSynced)
	w.prepare()
	late := w.command(wire.CmdUnblock, nil, wire.DoorReason{Door: 3})
	late.IssuedAt = w.now.Wall(0) - int64(30*time.Minute) // issued between that start and this one
	w.step(Ordered{Command: late})
	require.Equal(t, wire.OutcomeDone, outcomesOf(w, late.CommandID)[0].Outcome, "the floor stays where it was")
}
