package device

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNoLoginWaitsWhileTheQueueIsShort(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	f := newFlow(now)
	var xs []*session
	for range 5 {
		x := &session{}
		xs = append(xs, x)
		f.owes(x, 500)
		require.Nil(t, f.credit(x, now))
	}
	require.Empty(t, f.next(now))
	live := &session{}
	f.owes(xs[0], 1<<40)
	f.owes(xs[1], 1<<40)
	require.EqualValues(t, 0, *f.credit(xs[0], now), "all of it together is more than half a second's work")
	require.Nil(t, f.credit(live, now), "one without a backlog has nothing to do with it")
	require.True(t, f.admit(live, firstCapacity*6/10, false))
	require.EqualValues(t, 1, *f.credit(live, now), "unless the queue is long by itself")
	f.drop(firstCapacity * 6 / 10)
	f.owes(xs[0], 0)
	f.owes(xs[1], 0)
	require.Nil(t, f.credit(xs[0], now))
	require.Nil(t, f.credit(xs[2], now), "lifted")
}

func TestTurnsComeRoundToEverybody(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	f := newFlow(now)
	var xs []*session
	had := map[*session]int{}
	for range 40 {
		xs = append(xs, &session{})
		f.owes(xs[len(xs)-1], 1<<20)
	}
	for range 20 {
		begun := f.next(now)
		require.NotEmpty(t, begun)
		require.LessOrEqual(t, float64(f.waiting+f.promised), f.capacity)
		for _, x := range begun {
			had[x]++
			require.NotZero(t, *f.credit(x, now))
		}
		now = now.Add(turnLength) // none of them sends anything
	}
	for _, x := range xs {
		require.InDelta(t, float64(had[xs[0]]), float64(had[x]), 1)
	}
	require.GreaterOrEqual(t, had[xs[0]], 1)
}

// Whatever comes and goes, in whatever order, the sums are those of the parts.
func TestFlowAddsUp(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		now := time.Unix(0, 0)
		f := newFlow(now)
		xs := make([]*session, 10)
		for i := range xs {
			xs[i] = &session{}
		}
		queued := []int{}
		for range 400 {
			x := xs[rnd.IntN(len(xs))]
			now = now.Add(time.Duration(rnd.IntN(300)) * time.Millisecond)
			switch rnd.IntN(5) {
			case 0:
				f.owes(x, uint64(rnd.IntN(3)*rnd.IntN(100_000)))
			case 1, 2:
				n := rnd.IntN(120_000)
				require.True(t, f.admit(x, n, rnd.IntN(2) == 0))
				queued = append(queued, n)
			case 3:
				if len(queued) > 0 {
					f.committed(queued[0], 1+queued[0]/100, now)
					queued = queued[1:]
				}
			case 4:
				f.next(now)
			}
			var waiting, owed, promised, claims int64
			for _, n := range queued {
				waiting += int64(n)
			}
			for _, x := range xs {
				owed += x.share.owed
				promised += x.share.quota
				if x.share.owed > 0 {
					claims++
				}
			}
			require.Equal(t, waiting, f.waiting)
			require.Equal(t, owed, f.owed)
			require.Equal(t, promised, f.promised)
			require.EqualValues(t, claims, len(f.ring))
			require.Positive(t, f.capacity)
			require.Positive(t, f.size)
		}
	}
}
