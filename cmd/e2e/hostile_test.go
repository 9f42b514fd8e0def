package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// The broker belongs to an attacker. Every trick is tried several times while
// people deposit, collect and change codes; none opens a door, moves a parcel,
// loses a record or brings a dead code back, and afterwards everything works.
func TestHostileBrokerOpensNothingAndMovesNothing(t *testing.T) {
	if !testing.Verbose() { // who asks for details wants the table
		ring.SkipUnlessCheck(t, "the seeds have the same attacker")
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, 2)
		defer w.close()
		w.tap.keeps = 4000 // what happened once, at the beginning, is replayed too
		for _, c := range w.cabinets {
			w.ready(c)
		}
		c, rnd := w.cabinets[0], rand.New(rand.NewPCG(1, 1))
		c.restart(time.Second) // a farewell to record
		w.ready(c)
		type tried struct {
			name            string
			times, coils    int
			forged, refused uint64
		}
		var report []tried
		for i, trick := range w.tap.tricks(c.code, rnd) {
			row := tried{name: trick.name, forged: c.forged(), refused: w.refused()}
			rounds := 1
			if ring.Full() || strings.HasPrefix(trick.name, "invent") {
				rounds = 3
			}
			for range rounds {
				w.newTask(step{cabinet: i % 2, seed: rnd.Uint64() >> 16}, rnd, w.depositRemote)
				if trick.do() {
					row.times++
				}
				w.people.Wait()
				quiet := len(c.coils())
				if trick.do() {
					row.times++
				}
				time.Sleep(5 * time.Second)
				row.coils += len(c.coils()) - quiet // no person came meanwhile
				w.tap.calm()
				w.rotateSome(rnd)
				w.collectSome(i%2, rnd)
			}
			row.forged, row.refused = c.forged()-row.forged, w.refused()-row.refused
			report = append(report, row)
			w.tap.count(trick.name)
		}
		w.people.Wait()
		w.settleDown()
		t.Logf("%-22s %6s %16s %18s %14s", "the broker tried", "times", "refused by the", "refused by the", "coils while")
		t.Logf("%-22s %6s %16s %18s %14s", "", "", "cabinet", "cloud", "no one came")
		for _, r := range report {
			t.Logf("%-22s %6d %16d %18d %14d", r.name, r.times, r.forged, r.refused, r.coils)
			require.Zero(t, r.coils, "%s fired a lock", r.name)
			if strings.HasPrefix(r.name, "invent") {
				require.GreaterOrEqual(t, int(r.forged+r.refused), r.times, "%s: what is invented is refused and counted", r.name)
			}
		}
		for _, r := range report {
			require.NotZero(t, r.times, "%s: never tried", r.name)
		}
		v := w.verdict()
		require.True(t, v.OK(), v.String())
		require.Empty(t, w.tryEveryDoor())
		v = w.verdict()
		require.True(t, v.OK(), v.String())
	})
}

// refused is how many messages the cloud refused, took for forged, or knew
// already.
func (w *world) refused() uint64 {
	m := &w.cloud.Devices.Metrics
	return m.Refused.Load() + m.BadSignatures.Load() + m.OldStatuses.Load() + m.Repeats.Load()
}

// forged is how many messages the agent took for forged.
func (c *cabinet) forged() uint64 { return c.running().Health().Uplink["forged"] }

// rotateSome gives every parcel inside a new code.
func (w *world) rotateSome(rnd *rand.Rand) {
	for _, x := range w.tasks {
		if !w.inside(x) || rnd.IntN(2) == 0 {
			continue
		}
		before, ok := w.codes(x)
		kind := w.collects(x)
		_, err := w.cloud.Lockers.RotatePickupCode(w.soon(), w.box.ProviderCaller, locker.RotateInput{Delivery: x.key(), Reason: "security"})
		if ok && err == nil {
			x.former = append(x.former, w.formerCode(x, before.Pickup, kind))
		}
	}
}

// collectSome lets recipients come, with former codes too, until a cabinet has
// room again.
func (w *world) collectSome(cabinet int, rnd *rand.Rand) {
	for _, x := range w.tasks {
		if x.cabinet != cabinet || !w.inside(x) {
			continue
		}
		if len(x.former) > 0 {
			w.collectWith(x, x.former[len(x.former)-1], true, rnd)
		}
		if codes, ok := w.codes(x); ok {
			w.collectWith(x, former{code: codes.Pickup, kind: w.collects(x)}, true, rnd)
		}
	}
	time.Sleep(20 * time.Second)
}

// A recorded list brings no dead code back: the first list of the session is
// played again, alone and with every tail, before and after a restart and with
// the cloud cut off, and the code that was rotated away is tried each time.
func TestReplayedListsBringNoDeadCodeBack(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		code, door := w.deposited(c, "R-1")
		w.listed(c)
		out, err := w.cloud.Lockers.RotatePickupCode(t.Context(), w.box.ProviderCaller, locker.RotateInput{Delivery: "ref:R-1", Reason: "security"})
		require.NoError(t, err)
		w.listed(c)
		for _, again := range []string{"connected", "restarted", "cut off"} {
			switch again {
			case "restarted":
				c.kill()
				c.start()
				w.ready(c)
			case "cut off":
				c.kill()
				c.start()
				c.setCut(true)
				time.Sleep(5 * time.Second)
			}
			w.tap.mu.Lock()
			w.tap.closed, w.tap.until = isDown(wire.DownCodes), time.Now().Add(time.Hour) // but for what the cloud sends now
			w.tap.mu.Unlock()
			w.tap.replayFirst(c.code, wire.DownCodes)
			time.Sleep(2 * time.Second)
			a, err := w.enter(c, truth.Act{Delivery: w.find("R-1").DeliveryNumber, Code: wire.CodePickup}, code, true)
			require.NoError(t, err)
			require.Equal(t, wire.CodeUnknown, a.Outcome, again)
			time.Sleep(5 * time.Second)
			require.False(t, c.sim.OpenAt(door, time.Now()), again)
			w.tap.calm()
		}
		c.setCut(false)
		w.ready(c)
		a, err := w.enter(c, truth.Act{Delivery: w.find("R-1").DeliveryNumber, Code: wire.CodePickup}, out.PickupCode, true)
		require.NoError(t, err)
		require.Equal(t, wire.CodeOK, a.Outcome)
		time.Sleep(5 * time.Second)
		require.True(t, c.sim.OpenAt(door, time.Now()))
	})
}

// Collected with the cable cut, then a rotation in the cloud, then the cable is
// back: the list of the new code fills no empty compartment.
func TestRotationAfterAnOfflineCollectionFillsNothing(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		code, door := w.deposited(c, "R-1")
		w.listed(c)
		require.NoError(t, c.sim.PutItem(door))
		c.setCut(true)
		a := c.try(code)
		require.Equal(t, wire.CodeOK, a.Outcome)
		time.Sleep(3 * time.Second)
		require.NoError(t, c.sim.TakeItem(door))
		require.NoError(t, c.sim.CloseDoor(door))
		time.Sleep(10 * time.Second)
		_, err := w.cloud.Lockers.RotatePickupCode(t.Context(), w.box.ProviderCaller, locker.RotateInput{Delivery: "ref:R-1", Reason: "security"})
		require.NoError(t, err)
		c.setCut(false)
		w.awaits("picked up", 5*time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
		w.listed(c)
		time.Sleep(time.Minute)
		require.Empty(t, c.agent.Loop().State().Doors[1].Delivery, "the compartment is empty")
		out := w.begin("R-2", "PK-2")
		require.Equal(t, door, out.Opening.Compartments[0].Door)
		require.True(t, c.sim.OpenAt(door, time.Now()), "the next delivery's courier")
	})
}

// The agent is killed right after a pulse, the courier closes the door, and the
// agent starts again, at once or hours later: it pulses nothing.
func TestNoLockFiresByItselfAfterARestart(t *testing.T) {
	ring.SkipUnlessCheck(t, "the same rules by the seeds of the quick ring")
	for _, off := range []time.Duration{90 * time.Millisecond, time.Minute, 5 * time.Hour} {
		afters := []time.Duration{10 * time.Millisecond, 300 * time.Millisecond, 700 * time.Millisecond, 1200 * time.Millisecond}
		if off > time.Hour && !ring.Full() {
			afters = afters[1:2] // hours take seconds each
		}
		t.Run(fmt.Sprint(off), func(t *testing.T) {
			story(t, func(t *testing.T, w *world, c *cabinet) {
				for i, after := range afters {
					ref := fmt.Sprintf("R-%d", i)
					w.create(ref, 0, "PK-"+ref)
					w.people.Go(func() { _, _ = w.tryOpen(&task{ref: ref}) })
					w.awaits("the coil fired", 20*time.Second, func() bool { return len(c.coils()) > i })
					time.Sleep(after)
					c.kill()
					time.Sleep(time.Second)
					for n := uint(1); n <= doors; n++ {
						_ = c.sim.CloseDoor(n)
					}
					fired := len(c.coils())
					time.Sleep(off)
					c.start()
					time.Sleep(12 * time.Minute)
					require.Len(t, c.coils(), fired, "a lock fired by itself, %s after the pulse", after)
					w.people.Wait()
				}
			})
		})
	}
}

// coils are the requests that fired one, in order.
func (c *cabinet) coils() (doors []uint) {
	for _, f := range c.sim.Truth() {
		if f.Cause == "request" {
			doors = append(doors, f.Door)
		}
	}
	return doors
}
