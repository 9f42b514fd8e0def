package board_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/edge"
	sim "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/lockbus"
)

// lineFaults are chances that leave the line usable. Each fault spoils at most
// one answer; two in a row that happen to lie alike are what debouncing cannot
// see, so the station board, which has no check byte, gets fewer.
func lineFaults(fam lockbus.Family) sim.Faults {
	f := sim.Faults{
		sim.DropByte: 0.03, sim.ExtraByte: 0.03, sim.FlipBit: 0.03, sim.FlipKeepSum: 0.03, sim.SwapBytes: 0.03,
		sim.Echo: 0.2, sim.StaleAnswer: 0.03, sim.WrongBoard: 0.03, sim.TwoAnswers: 0.03, sim.Collision: 0.03,
		sim.Silence: 0.03, sim.WrongBaud: 0.02, sim.SplitAnswer: 0.2, sim.NoiseOnIdle: 0.05, sim.LostUnlock: 0.1,
		sim.LostAnswer: 0.1, sim.BusyAfter: 0.1, sim.Relatch: 0.1, sim.AdapterGone: 0.002,
	}
	if fam == lockbus.Station {
		for _, k := range []sim.Fault{sim.FlipBit, sim.FlipKeepSum, sim.SwapBytes, sim.Collision} {
			f[k] = 0.005
		}
	}
	return f
}

// Whatever the line does to the bytes, a reading that is sent was true at some
// moment between its first poll and its sending.
func TestEveryReadingWasTrueWhileItWasDebounced(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, fam lockbus.Family) {
		rapid.Check(t, func(rt *rapid.T) {
			cfg := single(fam)
			cfg.Seed = rapid.Uint64().Draw(rt, "seed")
			cfg.Faults = lineFaults(fam)
			cfg.Person = &sim.Person{Wait: 400 * time.Millisecond, Slams: 0.2, Forgets: 0.1}
			session := rapid.Bool().Draw(rt, "session")
			doors := rapid.SliceOfN(rapid.IntRange(1, 3), 5, 12).Draw(rt, "doors")
			inBubble(t, cfg, func(r *rig) {
				r.cab.SetSession(session)
				for _, d := range doors {
					r.cab.Pulse(edge.DoorNumber(d), edge.Authority{})
					time.Sleep(1700 * time.Millisecond)
				}
				synctest.Wait()
				n := 0
				for _, e := range r.all() {
					d, ok := e.Event.(edge.DoorReading)
					if !ok || d.Suspect {
						continue
					}
					n++
					was := r.sim.HookInBetween
					if d.Open {
						was = r.sim.HookOutBetween
					}
					// The switch bounces for 80 ms after the hook has moved, and
					// a stale answer is one poll old.
					from := d.At.Add(-150 * time.Millisecond)
					require.True(t, was(uint(d.Door), from, e.seen), "seed %d: door %d read open=%v from %v to %v",
						cfg.Seed, d.Door, d.Open, d.At, e.seen)
				}
				require.GreaterOrEqual(t, n, 3, "seed %d: every door is read at least once", cfg.Seed)
			})
		})
	})
}

// A door that opens once and closes once gives one change each, however much
// its switch bounces.
func TestBounceNeverGivesMoreThanOneChange(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, fam lockbus.Family) {
		rapid.Check(t, func(rt *rapid.T) {
			cfg := single(fam)
			cfg.Seed = rapid.Uint64().Draw(rt, "seed")
			cfg.Doors[0].Bounce = rapid.SampledFrom([]int{2, 4, 6}).Draw(rt, "bounce")
			wait := time.Duration(rapid.IntRange(0, 1000).Draw(rt, "ms")) * time.Millisecond
			inBubble(t, cfg, func(r *rig) {
				r.cab.SetSession(rapid.Bool().Draw(rt, "session"))
				require.Equal(t, "c", states(r.after(2*time.Second+wait), 1))
				r.cab.Pulse(1, edge.Authority{})
				require.Equal(t, "o", states(r.after(2*time.Second), 1))
				r.do(r.sim.CloseDoor(1))
				require.Equal(t, "c", states(r.after(3*time.Second), 1))
			})
		})
	})
}

// Flips that keep the check byte right, one answer in four, and no door moves.
func TestFlipsThatKeepTheCheckByteOpenNoDoor(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, fam lockbus.Family) {
		cfg := single(fam)
		inBubble(t, cfg, func(r *rig) {
			r.after(2 * time.Second)
			for i := range 40 {
				r.cab.SetSession(i%2 == 0)
				r.do(r.sim.Inject("A", sim.FlipKeepSum, 1))
				r.after(1500 * time.Millisecond)
			}
			for d := edge.DoorNumber(1); d <= 3; d++ {
				require.Equal(t, "c", states(r.all(), d))
			}
		})
	})
}
