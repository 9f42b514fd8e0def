package limit

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestABudgetIsSpentByCost(t *testing.T) {
	t.Parallel()
	b, now := NewBudget(60, 100, nil), time.Unix(1_800_000_000, 0)
	for range 20 {
		require.Zero(t, b.Wait("a", now))
		b.Spend("a", 5, now)
	}
	require.Equal(t, time.Second, b.Wait("a", now))
	require.Zero(t, b.Wait("b", now))
	b.Spend("a", 9, now)
	require.Equal(t, 10*time.Second, b.Wait("a", now), "what was spent beyond is waited for")
	require.Equal(t, 10*time.Second, b.Wait("a", now.Add(-time.Hour)), "a clock that went back adds nothing")
	require.Zero(t, b.Wait("a", now.Add(10*time.Second)))
	b.Spend("a", 100, now.Add(time.Hour))
	require.Positive(t, b.Wait("a", now.Add(time.Hour)), "it never holds more than its burst")
}

func TestBudgetsAndBlocksAreBounded(t *testing.T) {
	t.Parallel()
	b, x, now := NewBudget(1, 1, nil), NewBlocks(2, time.Second, time.Minute, nil), time.Unix(1_800_000_000, 0)
	for i := range 3 * DefaultKeys {
		b.Spend(strconv.Itoa(i), 1, now)
		x.Miss(strconv.Itoa(i), now)
	}
	require.LessOrEqual(t, len(b.list), DefaultKeys)
	require.LessOrEqual(t, len(x.list), DefaultKeys)
}

func TestBlocksGrow(t *testing.T) {
	t.Parallel()
	b, now := NewBlocks(20, 30*time.Second, time.Hour, nil), time.Unix(1_800_000_000, 0)
	miss := func(n int) time.Duration {
		for range n {
			b.Miss("a", now)
		}
		return b.Wait("a", now)
	}
	require.Zero(t, miss(19))
	for _, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour} {
		if want == 30*time.Second {
			require.Equal(t, want, miss(1))
		} else {
			require.Equal(t, want, miss(20))
		}
		require.Zero(t, b.Wait("b", now))
		now = now.Add(want)
		require.Zero(t, b.Wait("a", now))
	}
	now = now.Add(2 * time.Hour)
	require.Zero(t, miss(19))
	require.Equal(t, 30*time.Second, miss(1), "after a quiet hour it begins anew")
}
