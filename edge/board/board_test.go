package board_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/board"
	sim "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/lockbus"
	"github.com/postern-io/postern/protocol/wire"
)

func TestADoorOpensAndClosesOnEveryFamily(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, fam lockbus.Family) {
		cfg := single(fam)
		cfg.Doors[1].Item = true
		inBubble(t, cfg, func(r *rig) {
			first := r.after(2 * time.Second)
			for d := edge.DoorNumber(1); d <= 3; d++ {
				require.Equal(t, "c", states(first, d), "known once at the start")
			}
			want := wire.ItemUnknown
			if fam.HasItems() {
				want = wire.ItemPresent
			}
			require.Equal(t, want, readings(first, 2)[0].Item)

			r.cab.SetSession(true)
			r.cab.Pulse(2, edge.Authority{})
			opened := r.after(1500 * time.Millisecond)
			outcome := edge.PulseUnanswered
			if fam.AnswersUnlock() {
				outcome = edge.PulseConfirmed
			}
			require.Equal(t, []edge.PulseOutcome{outcome}, results(opened))
			require.Equal(t, "o", states(opened, 2), "one change, whatever the switch bounced")
			require.True(t, r.sim.OpenAt(2, time.Now()))
			require.Empty(t, states(opened, 1)+states(opened, 3))

			r.do(r.sim.TakeItem(2))
			r.do(r.sim.CloseDoor(2))
			closed := r.after(time.Second)
			got := readings(closed, 2)
			last := got[len(got)-1]
			require.False(t, last.Open)
			require.False(t, r.sim.OpenAt(2, time.Now()))
			if fam.HasItems() {
				require.Equal(t, wire.ItemAbsent, last.Item)
			}
			h := r.cab.Health()["A"]
			require.Equal(t, "online", h.State)
			require.EqualValues(t, 1, h.Pulses)
			require.Zero(t, h.Bad)
			require.GreaterOrEqual(t, h.Edges[3], uint64(2), "door 2 is on channel 3")
		})
	})
}

func TestPolarityOfBoardAndDoor(t *testing.T) {
	t.Parallel()
	cfg := single(lockbus.CU48)
	cfg.Boards[0].Inverted = true
	cfg.Doors[0].Inverted = true
	inBubble(t, cfg, func(r *rig) {
		first := r.after(2 * time.Second)
		require.Equal(t, "c", states(first, 1))
		require.Equal(t, "c", states(first, 2))
		r.cab.Pulse(1, edge.Authority{})
		r.cab.Pulse(2, edge.Authority{})
		opened := r.after(4 * time.Second)
		require.Equal(t, "o", states(opened, 1))
		require.Equal(t, "o", states(opened, 2))
	})
}

func TestAJammedDoorIsNotSeenOpen(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, fam lockbus.Family) {
		inBubble(t, single(fam), func(r *rig) {
			r.after(2 * time.Second)
			r.do(r.sim.Jam(1))
			r.cab.SetSession(true)
			r.cab.Pulse(1, edge.Authority{})
			got := r.after(3 * time.Second)
			require.Empty(t, states(got, 1))
			want := map[lockbus.Family]edge.PulseOutcome{
				lockbus.CU48: edge.PulseUnanswered, lockbus.CU16: edge.PulseUnanswered,
				lockbus.CU48B: edge.PulseConfirmed, lockbus.Station: edge.PulseConfirmed,
				lockbus.Door80: edge.PulseDenied, lockbus.Preamble: edge.PulseDenied,
			}
			require.Equal(t, []edge.PulseOutcome{want[fam]}, results(got))
		})
	})
}

func TestALostAnswerIsNotAFailure(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, fam lockbus.Family) {
		inBubble(t, single(fam), func(r *rig) {
			r.after(2 * time.Second)
			r.do(r.sim.Inject("A", sim.LostAnswer, 1))
			r.cab.Pulse(1, edge.Authority{})
			got := r.after(3 * time.Second)
			require.Equal(t, []edge.PulseOutcome{edge.PulseUnanswered}, results(got))
			require.Equal(t, "o", states(got, 1))
		})
	})
}

func TestABusyBoardIsFreedByTheStatusRequestAfterTheUnlock(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, fam lockbus.Family) {
		inBubble(t, single(fam), func(r *rig) {
			r.after(2 * time.Second)
			r.do(r.sim.Inject("A", sim.BusyAfter, 1))
			r.cab.Pulse(1, edge.Authority{})
			got := r.after(3 * time.Second)
			require.Empty(t, losses(got))
			require.Equal(t, "o", states(got, 1))
		})
	})
}

func TestCoolingDownIsRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, single(lockbus.Station), func(r *rig) {
		r.after(2 * time.Second)
		r.do(r.sim.Inject("A", sim.CoolingDown, 1))
		r.cab.Pulse(1, edge.Authority{})
		require.Equal(t, []edge.PulseOutcome{edge.PulseDenied}, results(r.after(2*time.Second)))
	})
}

func TestASilentBoardIsLostOnceAndComesBackWithFreshReadings(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, fam lockbus.Family) {
		for _, session := range []bool{true, false} {
			inBubble(t, single(fam), func(r *rig) {
				r.after(2 * time.Second)
				r.cab.SetSession(session)
				r.do(r.sim.Inject("A", sim.Silence, 1000))
				begin := time.Now()
				got := r.after(20 * time.Second)
				lost := losses(got)
				require.Len(t, lost, 1)
				require.Equal(t, []edge.DoorNumber{1, 2, 3}, lost[0].Doors)
				require.Equal(t, "offline", r.cab.Health()["A"].State)
				took := lost[0].At.Sub(begin)
				if session {
					require.Less(t, took, 2*time.Second)
				} else {
					require.Greater(t, took, 8*time.Second)
				}
				r.cab.Pulse(1, edge.Authority{})
				require.Equal(t, []edge.PulseOutcome{edge.PulseNotSent}, results(r.after(time.Second)))

				r.do(r.sim.Inject("A", sim.Silence, -1000))
				r.do(r.sim.Force(2))
				back := r.after(10 * time.Second)
				require.Equal(t, "c", states(back, 1))
				require.Equal(t, "o", states(back, 2))
				require.Equal(t, "online", r.cab.Health()["A"].State)
			})
		}
	})
}

func TestAnUnpluggedAdapterIsOpenedAgainByItsName(t *testing.T) {
	t.Parallel()
	inBubble(t, single(lockbus.CU48), func(r *rig) {
		r.after(2 * time.Second)
		r.cab.SetSession(true)
		r.do(r.sim.Unplug("main", 10*time.Second))
		got := r.after(9 * time.Second)
		require.Len(t, losses(got), 1)
		r.cab.Pulse(1, edge.Authority{})
		require.Equal(t, []edge.PulseOutcome{edge.PulseNotSent}, results(r.after(500*time.Millisecond)))
		back := r.after(10 * time.Second)
		require.Equal(t, "c", states(back, 1))
	})
}

func TestAResetInASessionShowsZerosNoLongerThanTheBoardDoes(t *testing.T) {
	t.Parallel()
	// 300 ms of zeros are longer than two equal polls and 150 ms, so on boards
	// where zeros read as open the debounced state may follow them: that such a
	// short opening is none is the locker's rule (minimum open time, 0.8 s).
	eachFamily(t, func(t *testing.T, fam lockbus.Family) {
		inBubble(t, single(fam), func(r *rig) {
			r.after(2 * time.Second)
			r.cab.SetSession(true)
			r.after(time.Second)
			r.do(r.sim.ResetBoard("A"))
			got := r.after(3 * time.Second)
			d := readings(got, 1)
			if len(d) == 0 {
				return
			}
			require.Equal(t, "oc", states(got, 1))
			require.Less(t, d[1].At.Sub(d[0].At), 700*time.Millisecond)
		})
	})
}

func TestOneCoilAtATimeAndNoBrownOut(t *testing.T) {
	t.Parallel()
	for _, supply := range []board.Supply{board.Supply12V, board.Supply24V} {
		cfg := single(lockbus.CU48)
		cfg.Boards = append(cfg.Boards, sim.Board{Name: "B", Line: "other", Family: lockbus.CU16, Address: 0})
		for i := range uint(5) {
			cfg.Doors = append(cfg.Doors, sim.Door{Number: 10 + i, Board: "B", Channel: i + 1})
		}
		cfg.Supply = uint(supply / 12)
		inBubble(t, cfg, func(r *rig) {
			r.after(2 * time.Second)
			for d := range edge.DoorNumber(3) {
				r.cab.Pulse(d+1, edge.Authority{})
				r.cab.Pulse(d+10, edge.Authority{})
			}
			got := r.after(8 * time.Second)
			require.Len(t, results(got), 6)
			var fired []time.Time
			for _, f := range r.sim.Truth() {
				require.NotEqual(t, sim.BrownOut, f.Kind)
				if f.Kind == sim.CoilFired {
					fired = append(fired, f.At)
				}
			}
			require.Len(t, fired, 6)
			coils := int(supply / 12)
			for i := coils; i < len(fired); i++ {
				require.GreaterOrEqual(t, fired[i].Sub(fired[i-coils]), 790*time.Millisecond)
			}
		}, func(c *board.Config) { c.Supply = supply })
	}
}

func TestALockRestsAfterThreePulses(t *testing.T) {
	t.Parallel()
	inBubble(t, single(lockbus.CU48), func(r *rig) {
		r.after(2 * time.Second)
		for range 4 {
			r.cab.Pulse(1, edge.Authority{})
		}
		u, no := edge.PulseUnanswered, edge.PulseRefused
		require.Equal(t, []edge.PulseOutcome{u, u, u, no}, results(r.after(5*time.Second)))
		r.cab.Pulse(2, edge.Authority{})
		require.Equal(t, []edge.PulseOutcome{u}, results(r.after(time.Second)), "other locks need no rest")
		r.after(26 * time.Second)
		r.cab.Pulse(1, edge.Authority{})
		require.Equal(t, []edge.PulseOutcome{u}, results(r.after(time.Second)))
		for range 10 {
			r.cab.Pulse(3, edge.Authority{})
		}
		r.cab.Pulse(99, edge.Authority{})
		require.Len(t, results(r.after(10*time.Second)), 11, "every pulse is answered, too many are refused")
	})
}

func TestEchoStaleForeignAndDoubleAnswers(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, fam lockbus.Family) {
		cfg := single(fam)
		cfg.Faults = sim.Faults{sim.Echo: 1, sim.TwoAnswers: 0.3, sim.SplitAnswer: 0.5, sim.NoiseOnIdle: 0.2}
		inBubble(t, cfg, func(r *rig) {
			require.Equal(t, "c", states(r.after(3*time.Second), 1))
			r.do(r.sim.Inject("A", sim.WrongBoard, 2))
			r.cab.SetSession(true)
			r.after(2 * time.Second)
			require.Positive(t, r.cab.Health()["A"].Bad, "an answer of another board is a bad one")
			r.do(r.sim.Inject("A", sim.StaleAnswer, 3))
			r.cab.Pulse(1, edge.Authority{})
			got := r.after(3 * time.Second)
			require.Equal(t, "o", states(got, 1))
			require.Empty(t, states(got, 2))
		})
	})
}

func TestTheEchoOfAnUnlockIsNotTakenForARefusal(t *testing.T) {
	t.Parallel()
	cfg := single(lockbus.Door80)
	cfg.Faults = sim.Faults{sim.Echo: 1}
	inBubble(t, cfg, func(r *rig) {
		r.after(2 * time.Second)
		r.do(r.sim.Inject("A", sim.LostAnswer, 1))
		r.cab.Pulse(1, edge.Authority{})
		got := r.after(4 * time.Second)
		require.Equal(t, []edge.PulseOutcome{edge.PulseUnanswered}, results(got))
		require.Equal(t, "o", states(got, 1))
	})
}

func TestAFlappingSensorIsFrozenAndSuspect(t *testing.T) {
	t.Parallel()
	cfg := single(lockbus.CU48)
	for i := range cfg.Doors {
		cfg.Doors[i].Bounce = -1
	}
	inBubble(t, cfg, func(r *rig) {
		r.cab.SetSession(true)
		r.after(2 * time.Second)
		for range 6 {
			r.do(r.sim.Force(1))
			time.Sleep(400 * time.Millisecond)
			r.do(r.sim.CloseDoor(1))
			time.Sleep(400 * time.Millisecond)
		}
		r.after(time.Second)
		require.Equal(t, "c"+"ocococ"+"?", states(r.all(), 1))
		got := readings(r.all(), 1)
		require.False(t, got[len(got)-1].Open, "the last good state")
		require.Equal(t, "c", states(r.after(15*time.Second), 1), "quiet again")
	})
}

func TestAnUnaskedChangeIsPolledAtOnce(t *testing.T) {
	t.Parallel()
	cfg := single(lockbus.Preamble)
	cfg.Boards[0].Unasked = true
	inBubble(t, cfg, func(r *rig) {
		r.after(5*time.Second + 100*time.Millisecond)
		begin := time.Now()
		r.do(r.sim.Force(1))
		got := readings(r.after(2*time.Second), 1)
		require.Len(t, got, 1)
		require.Less(t, got[0].At.Sub(begin), 200*time.Millisecond, "idle polls come once a second")
	}, func(c *board.Config) { c.Times.PollIdleMS = 5000 })
}

func TestANoisyLineIsSlowedDown(t *testing.T) {
	t.Parallel()
	inBubble(t, single(lockbus.CU48), func(r *rig) {
		r.cab.SetSession(true)
		r.after(2 * time.Second)
		before := r.cab.Health()["A"].Polls
		r.after(10 * time.Second)
		clean := r.cab.Health()["A"].Polls - before
		r.do(r.sim.SetFaults(sim.Faults{sim.FlipBit: 0.4}))
		r.after(30 * time.Second)
		require.Equal(t, "noisy", r.cab.Health()["A"].State)
		before = r.cab.Health()["A"].Polls
		r.after(10 * time.Second)
		require.Less(t, r.cab.Health()["A"].Polls-before, clean/2)
		r.do(r.sim.SetFaults(nil))
		r.after(70 * time.Second)
		require.Equal(t, "online", r.cab.Health()["A"].State)
	})
}

func TestALayoutCanBeReplacedWhileRunning(t *testing.T) {
	t.Parallel()
	cfg := single(lockbus.CU48)
	inBubble(t, cfg, func(r *rig) {
		r.after(2 * time.Second)
		l := layoutOf(cfg)
		delete(l.Doors, 3)
		l.Doors[7] = edge.Place{Board: "A", Channel: 4}
		require.NoError(t, r.cab.SetLayout(l))
		got := r.after(2 * time.Second)
		require.Equal(t, "c", states(got, 1))
		require.Equal(t, "c", states(got, 7))
		require.Empty(t, states(got, 3))
		r.cab.Pulse(7, edge.Authority{})
		require.Equal(t, "o", states(r.after(3*time.Second), 7))
		require.True(t, r.sim.OpenAt(3, time.Now()), "the same lock under its new number")
		l.Doors[8] = edge.Place{Board: "B", Channel: 1}
		require.Error(t, r.cab.SetLayout(l))
	})
}

// A doubled answer lies in wait for the next request, whose own answer then
// lies in wait for the one after: one double once left two requests on the line
// for good. An answer that came faster than its bytes take on the wire gives it
// away, and the line is let fall quiet.
func TestThereAreNeverTwoRequestsOnTheLine(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, fam lockbus.Family) {
		inBubble(t, single(fam), func(r *rig) {
			r.cab.SetSession(true)
			r.after(2 * time.Second)
			r.cab.Pulse(1, edge.Authority{})
			r.after(3 * time.Second)
			require.Zero(t, r.sim.Overlaps("main"))
			for range 5 {
				r.do(r.sim.Inject("A", sim.TwoAnswers, 1))
				r.after(200 * time.Millisecond)
				before := r.sim.Overlaps("main")
				r.after(time.Second)
				require.Equal(t, before, r.sim.Overlaps("main"))
			}
		})
	})
}

// Polled once a second, a board that shows zeros for 300 ms after a reset was
// reported as open for a second, which counts as a door that was forced.
func TestAResetOnAnIdleLineShowsZerosNoLongerThanTheBoardDoes(t *testing.T) {
	t.Parallel()
	inBubble(t, single(lockbus.CU16), func(r *rig) {
		r.after(2 * time.Second)
		for range 40 {
			time.Sleep(137 * time.Millisecond)
			r.do(r.sim.ResetBoard("A"))
			time.Sleep(4 * time.Second)
		}
		open := map[edge.DoorNumber]time.Time{}
		seen := 0
		for _, e := range r.all() {
			d, ok := e.Event.(edge.DoorReading)
			switch {
			case !ok:
			case d.Open:
				open[d.Door] = d.At
				seen++
			case !open[d.Door].IsZero():
				require.Less(t, d.At.Sub(open[d.Door]), 800*time.Millisecond)
				require.Less(t, e.seen.Sub(open[d.Door]), 800*time.Millisecond, "told before the minimum time is over")
			}
		}
		require.NotZero(t, seen, "no reset was seen at all")
	})
}

// Power that comes and goes: each time the line is lost the board resets, and the
// zeros of one reset follow those of the last. No poll saw that the doors were shut
// in between, and yet no door opened.
func TestResetsOneAfterAnotherOpenNoDoor(t *testing.T) {
	t.Parallel()
	inBubble(t, single(lockbus.CU48), func(r *rig) {
		r.after(2 * time.Second)
		r.do(r.sim.ResetBoard("A"))
		for range 4 {
			time.Sleep(270 * time.Millisecond)
			r.do(r.sim.Unplug("main", 20*time.Millisecond))
			r.do(r.sim.ResetBoard("A"))
		}
		seen := 0
		for _, e := range r.after(5 * time.Second) {
			if d, ok := e.Event.(edge.DoorReading); ok {
				seen++
				require.Less(t, d.OpenFor, edge.ProvenOpen(800*time.Millisecond))
			}
		}
		require.NotZero(t, seen, "the zeros were read")
		require.Empty(t, r.proofs)
	})
}

// The line is lost while the hook of a pulsed door is out, and the board resets: the
// close says that the row of open readings was broken.
func TestACloseSaysThatTheLineWasLost(t *testing.T) {
	t.Parallel()
	inBubble(t, single(lockbus.CU48), func(r *rig) {
		r.after(2 * time.Second)
		r.do(r.sim.Force(1))
		r.after(time.Second)
		r.do(r.sim.CloseDoor(1))
		d := readings(r.after(time.Second), 1)
		require.False(t, d[len(d)-1].Interrupted)
		for range 2 {
			r.do(r.sim.Force(1))
			time.Sleep(500 * time.Millisecond)
			r.do(r.sim.Unplug("main", 20*time.Millisecond))
			time.Sleep(500 * time.Millisecond)
			r.do(r.sim.CloseDoor(1))
			d = readings(r.after(time.Second), 1)
			require.False(t, d[len(d)-1].Open)
			require.True(t, d[len(d)-1].Interrupted)
		}
	})
}

// The line is lost while a door is shut, and the board that resets shows zeros once it is back: the close says
// that the row of open readings may be the board's, as it does when the agent has just started.
func TestACloseSaysThatTheBoardMayHaveReset(t *testing.T) {
	t.Parallel()
	inBubble(t, single(lockbus.CU48), func(r *rig) {
		closes := func(events []stamped) (out []bool) {
			for _, d := range readings(events, 1) {
				if !d.Open {
					out = append(out, d.Interrupted)
				}
			}
			return out
		}
		opens := func(after time.Duration) []stamped {
			r.do(r.sim.Force(1))
			before := r.after(after)
			r.do(r.sim.CloseDoor(1))
			return append(before, r.after(time.Second)...)
		}
		require.Equal(t, []bool{false}, closes(r.after(2*time.Second)), "it was shut from the start")
		require.Equal(t, []bool{false}, closes(opens(time.Second)))
		r.do(r.sim.Unplug("main", 20*time.Millisecond))
		require.Equal(t, []bool{true}, closes(opens(time.Second)), "it reads open from the first poll of the line")
		r.do(r.sim.Unplug("main", 20*time.Millisecond))
		r.after(2 * time.Second)
		require.Equal(t, []bool{false}, closes(opens(time.Second)), "it read shut once the line was back")
	})
}

// A line that stands still while a board shows zeros cannot say how long it did: the
// reading carries no more than what polls have seen. Here the receiver of events
// blocks for seconds, as a slow disk makes it.
func TestAStandstillProvesNoOpenDoor(t *testing.T) {
	t.Parallel()
	var r *rig
	var stand atomic.Int64 // ns
	inBubble(t, single(lockbus.CU48), func(x *rig) {
		r = x
		r.after(2 * time.Second)
		stand.Store(int64(3 * time.Second))
		r.do(r.sim.ResetBoard("A"))
		got := r.after(20 * time.Second)
		stand.Store(0)
		seen := 0
		for _, e := range got {
			if d, ok := e.Event.(edge.DoorReading); ok && d.Open {
				seen++
			}
			if d, ok := e.Event.(edge.DoorReading); ok {
				require.NotZero(t, d.OpenFor, "polls never watch without a gap")
				require.Less(t, d.OpenFor, edge.ProvenOpen(800*time.Millisecond))
			}
		}
		require.NotZero(t, seen, "the zeros were read")
		require.Empty(t, r.proofs)

		r.do(r.sim.Force(1)) // a door that really opens is proven once, about when the minimum time is over
		r.after(5 * time.Second)
		require.Len(t, r.proofs, 1)
		require.InDelta(t, 750*time.Millisecond, r.proofs[0].OpenFor, float64(60*time.Millisecond))
		r.do(r.sim.CloseDoor(1))
		closed := readings(r.after(5*time.Second), 1)
		require.Len(t, closed, 1)
		require.InDelta(t, 5*time.Second, closed[0].OpenFor, float64(time.Second))
	}, func(c *board.Config) {
		c.Times.PollIdleMS = 100
		sink := c.Sink
		c.Sink = func(e edge.Event) {
			sink(e)
			time.Sleep(time.Duration(stand.Load()))
		}
	})
}

// An open door names the last poll that read it shut: a line that stands still answers late, and
// the door may have opened at any time since.
func TestAnOpenDoorSaysWhenItWasLastReadShut(t *testing.T) {
	t.Parallel()
	var r *rig
	var stand atomic.Int64 // ns
	inBubble(t, single(lockbus.CU48), func(x *rig) {
		r = x
		r.after(2 * time.Second)
		r.do(r.sim.Force(1))
		got := readings(r.after(3*time.Second), 1)
		require.Len(t, got, 1)
		require.False(t, got[0].LastShut.IsZero())
		require.Less(t, got[0].At.Sub(got[0].LastShut), 200*time.Millisecond, "one poll before")
		r.do(r.sim.CloseDoor(1))
		got = readings(r.after(3*time.Second), 1)
		require.Len(t, got, 1)
		require.Zero(t, got[0].LastShut, "of a door that opened alone")

		stand.Store(int64(4 * time.Second)) // before the next reading is taken
		r.do(r.sim.Force(2))
		r.after(200 * time.Millisecond)
		moved := time.Now()
		r.do(r.sim.Force(3))
		stand.Store(0)
		got = readings(r.after(10*time.Second), 3)
		require.Len(t, got, 1)
		require.LessOrEqual(t, got[0].LastShut.Sub(moved), 100*time.Millisecond)
		require.Greater(t, got[0].At.Sub(got[0].LastShut), 2*time.Second)
	}, func(c *board.Config) {
		c.Times.PollIdleMS = 100
		sink := c.Sink
		c.Sink = func(e edge.Event) { time.Sleep(time.Duration(stand.Load())); sink(e) }
	})
}
