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

func shuts(events []stamped) (out []edge.StayedShut) {
	for _, e := range events {
		if s, ok := e.Event.(edge.StayedShut); ok {
			out = append(out, s)
		}
	}
	return out
}

// The lock does not let go: polls say so once, when the time to open is over, and that they
// watched all the time.
func TestADoorThatStaysShutIsReportedOnce(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, fam lockbus.Family) {
		inBubble(t, single(fam), func(r *rig) {
			r.after(2 * time.Second)
			r.do(r.sim.Inject("A", sim.LostUnlock, 1))
			by := edge.Authority{OpeningID: "op_1", Act: "act_1"}
			r.cab.Pulse(2, by)
			require.Empty(t, shuts(r.after(1400*time.Millisecond)))
			got := shuts(r.after(10 * time.Second))
			require.Len(t, got, 1)
			require.Equal(t, []any{edge.DoorNumber(2), by}, []any{got[0].Door, got[0].By})
			require.Less(t, got[0].Gap, 300*time.Millisecond, "also of boards that watch the door themselves for a second")
		})
	})
}

// A door that opens is not reported as shut, also where it shuts before the time to open is over.
func TestADoorThatOpensIsNotReportedShut(t *testing.T) {
	t.Parallel()
	inBubble(t, single(lockbus.CU48), func(r *rig) {
		r.after(2 * time.Second)
		r.cab.Pulse(2, edge.Authority{OpeningID: "op_1"})
		events := r.after(10 * time.Second)
		require.Empty(t, shuts(events))
		require.Equal(t, "o", states(events, 2))
	})
}

// The line stands still while the pulsed door is opened, emptied and shut.
func TestAStandstillAfterAPulseIsReported(t *testing.T) {
	t.Parallel()
	still := 1300 * time.Millisecond
	inBubble(t, single(lockbus.CU48), func(r *rig) {
		r.after(2 * time.Second)
		r.cab.Pulse(2, edge.Authority{OpeningID: "op_1"})
		first := r.after(still - 100*time.Millisecond)
		r.do(r.sim.CloseDoor(2))
		events := append(first, r.after(10*time.Second)...)
		require.Empty(t, readings(events, 2), "no poll saw it open")
		got := shuts(events)
		require.Len(t, got, 1)
		require.GreaterOrEqual(t, got[0].Gap, still)
		require.Less(t, got[0].Gap, still+200*time.Millisecond)
	}, func(c *board.Config) {
		take := c.Sink
		c.Sink = func(e edge.Event) {
			take(e)
			if _, ok := e.(edge.PulseResult); ok {
				time.Sleep(still)
			}
		}
	})
}

// Polls are so far apart that one alone reads the door open, which may be a bounce: how long it may have been open
// is the time between the polls that read it shut.
func TestADoorThatOnePollReadOpen(t *testing.T) {
	t.Parallel()
	inBubble(t, single(lockbus.CU48), func(r *rig) {
		r.after(2 * time.Second)
		r.cab.Pulse(2, edge.Authority{OpeningID: "op_1"})
		first := r.after(750 * time.Millisecond)
		r.do(r.sim.CloseDoor(2))
		events := append(first, r.after(10*time.Second)...)
		require.Empty(t, readings(events, 2), "no two polls saw it open")
		got := shuts(events)
		require.Len(t, got, 1)
		require.GreaterOrEqual(t, got[0].Gap, 600*time.Millisecond)
		require.Less(t, got[0].Gap, time.Second)
	}, func(c *board.Config) { c.FastPoll = 400 * time.Millisecond })
}

// A board that falls silent is lost, and no door of it is reported as shut.
func TestALostBoardReportsNoDoorShut(t *testing.T) {
	t.Parallel()
	inBubble(t, single(lockbus.CU48), func(r *rig) {
		r.after(2 * time.Second)
		r.do(r.sim.Inject("A", sim.LostUnlock, 1))
		r.cab.Pulse(2, edge.Authority{OpeningID: "op_1"})
		first := r.after(500 * time.Millisecond)
		r.do(r.sim.Inject("A", sim.Silence, 1000))
		events := append(first, r.after(10*time.Second)...)
		require.Len(t, losses(events), 1)
		require.Empty(t, shuts(events))
	})
}
