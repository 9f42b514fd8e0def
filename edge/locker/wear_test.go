package locker

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

// The wear of a lock counts what its acts came to, as a list of all of them says.
func TestWearCountsActs(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		var w Wear
		var acts []bool // the first pulse opened the door
		var opened, failed uint64
		low, high := uint32(1<<31), uint32(0)
		for range rnd.IntN(80) {
			pulses, delay := 1+rnd.IntN(2), time.Duration(rnd.IntN(3000))*time.Millisecond
			if rnd.IntN(4) == 0 {
				delay = -1
				failed++
			} else {
				opened++
				low, high = min(low, uint32(delay/time.Millisecond)), max(high, uint32(delay/time.Millisecond))
			}
			acts = append(acts, pulses == 1 && delay >= 0)
			w = w.acted(pulses, delay)
		}
		require.Equal(t, []uint64{opened, failed}, []uint64{w.Cycles, w.Failed})
		require.EqualValues(t, min(len(acts), 32), w.Acts)
		for i := range int(w.Acts) {
			require.Equal(t, acts[len(acts)-1-i], w.Trouble>>i&1 == 0, "act %d from the end", i)
		}
		if opened > 0 {
			require.GreaterOrEqual(t, w.DelayMS+wearSmooth, low)
			require.LessOrEqual(t, w.DelayMS, high)
		}
	}
}

// A lock that needs its second pulse, and one that fails, are known by it; a door that is
// forced, or opened without a pulse, is no act of its lock.
func TestWearIsOfPulsesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	require.Empty(t, w.s.Wear())
	w.openDoors("op_1", 1)
	w.takePulses()
	w.step(Pulsing{Door: 1, Outcome: 1, Mono: w.now.Mono})
	w.wait(400 * time.Millisecond)
	w.setDoor(1, true)
	w.wait(time.Second)
	got := w.s.Wear()
	require.Len(t, got, 1)
	require.EqualValues(t, []uint64{1, 1}, []uint64{uint64(got[0].Door), got[0].Cycles})
	require.Zero(t, got[0].Trouble)
	require.InDelta(t, 400, got[0].DelayMS, 200)
	w.setDoor(2, true) // forced
	w.wait(5 * time.Second)
	require.Len(t, w.s.Wear(), 1)
	require.NotEmpty(t, bodies[wire.Tamper](w))
}
