package board_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/board"
	sim "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/lockbus"
)

// traced collects the doors whose locks were pulsed.
func traced(doors *[]edge.DoorNumber) func(*board.Config) {
	return func(c *board.Config) {
		start := time.Now()
		c.Mono = func(t time.Time) int64 { return int64(t.Sub(start)) }
		c.Trace = func(p edge.PulseTrace) { *doors = append(*doors, p.Door) }
	}
}

func outcomesByDoor(events []stamped) map[edge.DoorNumber]edge.PulseOutcome {
	out := map[edge.DoorNumber]edge.PulseOutcome{}
	for _, e := range events {
		if p, ok := e.Event.(edge.PulseResult); ok {
			out[p.Door] = p.Outcome
		}
	}
	return out
}

// The second door of an opening waits while the first one's coil is on; the
// opening is cancelled meanwhile.
func TestAWithdrawnPulseIsNotWritten(t *testing.T) {
	t.Parallel()
	var pulsed []edge.DoorNumber
	inBubble(t, single(lockbus.CU48), func(r *rig) {
		r.after(2 * time.Second)
		r.cab.Pulse(1, edge.Authority{OpeningID: "op_1"})
		r.cab.Pulse(2, edge.Authority{OpeningID: "op_1"})
		r.cab.Pulse(3, edge.Authority{OpeningID: "op_2"})
		first := r.after(200 * time.Millisecond)
		r.cab.Withdraw("op_1")
		got := outcomesByDoor(append(first, r.after(4*time.Second)...))
		require.Equal(t, []edge.DoorNumber{1, 3}, pulsed)
		require.Equal(t, edge.PulseRefused, got[2])
		require.Len(t, got, 3)
	}, traced(&pulsed))
}

func TestAPulseThatWaitedTooLongIsRefused(t *testing.T) {
	t.Parallel()
	var pulsed []edge.DoorNumber
	inBubble(t, single(lockbus.CU48), func(r *rig) {
		r.after(2 * time.Second)
		now := int64(2 * time.Second)
		r.cab.Pulse(1, edge.Authority{OpeningID: "op_1", Until: now + int64(time.Second)})
		r.cab.Pulse(2, edge.Authority{OpeningID: "op_1", Until: now + int64(400*time.Millisecond)})
		r.cab.Pulse(3, edge.Authority{OpeningID: "op_1", Until: now + int64(2*time.Second)})
		events := r.after(4 * time.Second)
		require.Equal(t, []edge.DoorNumber{1, 3}, pulsed)
		require.Equal(t, edge.PulseRefused, outcomesByDoor(events)[2])
		for _, e := range events {
			if p, ok := e.Event.(edge.PulseResult); ok {
				require.Equal(t, "op_1", p.By.OpeningID, "the answer names the act")
			}
		}
	}, traced(&pulsed))
}

// Doors 2 and 3 change places while their pulses wait: by the new layout they
// would open each other's lock.
func TestPulsesThatWaitAreRefusedWhenTheLayoutChanges(t *testing.T) {
	t.Parallel()
	var pulsed []edge.DoorNumber
	cfg := single(lockbus.CU48)
	inBubble(t, cfg, func(r *rig) {
		r.after(2 * time.Second)
		for d := edge.DoorNumber(1); d <= 3; d++ {
			r.cab.Pulse(d, edge.Authority{OpeningID: "op_1"})
		}
		first := r.after(200 * time.Millisecond)
		l := layoutOf(cfg)
		l.Doors[2], l.Doors[3] = l.Doors[3], l.Doors[2]
		r.do(r.cab.SetLayout(l))
		got := outcomesByDoor(append(first, r.after(4*time.Second)...))
		require.Equal(t, []edge.DoorNumber{1}, pulsed)
		require.Equal(t, map[edge.DoorNumber]edge.PulseOutcome{1: edge.PulseUnanswered, 2: edge.PulseRefused, 3: edge.PulseRefused}, got)
		r.cab.Pulse(2, edge.Authority{OpeningID: "op_2"})
		r.after(2 * time.Second)
		require.Equal(t, []edge.DoorNumber{1, 2}, pulsed, "what is asked for by the new layout is pulsed")
	}, traced(&pulsed))
}

// The board falls silent over an open door, which closes after that: the report names
// the last poll that read it open, and no door that was closed.
func TestALostBoardNamesWhenItsDoorsWereLastOpen(t *testing.T) {
	t.Parallel()
	for _, session := range []bool{true, false} {
		inBubble(t, single(lockbus.CU48), func(r *rig) {
			r.cab.SetSession(session)
			r.after(2 * time.Second)
			r.do(r.sim.Force(2))
			r.after(5 * time.Second)
			silent := time.Now()
			r.do(r.sim.Inject("A", sim.Silence, 1000))
			r.do(r.sim.CloseDoor(2))
			lost := losses(r.after(20 * time.Second))
			require.Len(t, lost, 1)
			require.Len(t, lost[0].LastOpen, 1)
			last := lost[0].LastOpen[2]
			require.False(t, last.After(silent))
			require.Less(t, silent.Sub(last), 2*time.Second)
		})
	}
}
