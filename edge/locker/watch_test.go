package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// pulsedWatched answers the one pulse that waits, of a source that reports a door that stays
// shut.
func (w *world) pulsedWatched() Pulse {
	w.t.Helper()
	require.Len(w.t, w.asked, 1)
	p := w.asked[0]
	w.takePulses()
	w.step(Pulsing{Door: p.Door, By: p.By, Outcome: edge.PulseConfirmed, Mono: w.now.Mono, Watched: true})
	return p
}

// A door that no poll read open may have been open while none was made: it is not called
// failed then, the lock is not to blame, and it is not pulsed again behind a person who has left.
func TestADoorIsCalledFailedOnlyWherePollsWatchedIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		gaps []time.Duration // of each pulse
		code string
	}{
		{"watched", []time.Duration{50 * time.Millisecond, 700 * time.Millisecond}, wire.DoorOpenFailed},
		{"the first pulse was not watched", []time.Duration{1300 * time.Millisecond}, wire.DoorNotSeen},
		{"the second pulse was not watched", []time.Duration{0, 800 * time.Millisecond}, wire.DoorNotSeen},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.openDoors("op_1", 1)
			for i, gap := range c.gaps {
				p := w.pulsedWatched()
				w.wait(2 * time.Second)
				require.Equal(t, Pulsed, w.s.Openings["op_1"].door(1).Phase, "pulse %d: polls have not said anything yet", i+1)
				w.step(Shut{Door: 1, By: p.By, Mono: w.now.Mono, Gap: int64(gap)})
			}
			w.wait(time.Second)
			require.Empty(t, w.asked)
			require.Equal(t, map[uint]string{1: c.code}, w.last().Doors)
			failures := map[string]int{wire.DoorOpenFailed: 1}[c.code]
			require.Equal(t, failures, w.s.Doors[1].Failures)
		})
	}
}

// The report never comes: the door is not called failed, and the act does not wait for ever.
func TestAWatchWithoutAReportEndsUnseen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	w.pulsedWatched()
	w.wait(5 * time.Second)
	require.Empty(t, w.asked)
	require.Equal(t, map[uint]string{1: wire.DoorNotSeen}, w.last().Doors)
}

// A report about an earlier act, or one that comes while the next pulse waits, says nothing
// about this one.
func TestAReportOfAnotherPulseIsIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	p := w.asked[0]
	w.step(Shut{Door: 1, By: p.By, Mono: w.now.Mono})
	require.Len(t, w.asked, 1, "its pulse still waits")
	w.pulsedWatched()
	other := p.By
	other.Act = "act_other"
	w.step(Shut{Door: 1, By: other, Mono: w.now.Mono})
	require.Empty(t, w.asked)
	w.setDoor(1, true)
	w.wait(time.Second)
	w.step(Shut{Door: 1, By: p.By, Mono: w.now.Mono})
	require.Empty(t, w.asked)
	require.Equal(t, Opened, w.s.Openings["op_1"].door(1).Phase)
}

// Polls stood still around a door that they read open for a moment only: it may have been open
// long enough for what lies inside to be taken.
func TestAShortReadingBetweenPollsFarApartIsNotAFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before time.Duration // from the last poll that read it shut to the first that read it open
		pulses int
		code   string
	}{{600 * time.Millisecond, 1, wire.DoorNotSeen}, {20 * time.Millisecond, 2, wire.DoorOpenFailed}} {
		w := newWorld(t, 1)
		w.openDoors("op_1", 1)
		for range c.pulses {
			w.pulsedWatched()
			shut := w.now.Mono
			w.now.Mono += int64(c.before)
			w.step(Reading{Door: 1, Open: true, Mono: w.now.Mono, OpenFor: 1, LastShut: shut})
			w.now.Mono += 300 * milli
			w.step(Reading{Door: 1, Mono: w.now.Mono, OpenFor: 200 * milli})
		}
		w.wait(time.Second)
		require.Equal(t, map[uint]string{1: c.code}, w.last().Doors, "%s", c.before)
	}
}
