package board

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const hold = 150 * time.Millisecond

func TestAChangeNeedsBothEqualPollsAndTime(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	var d debounce
	step := func(ms int, v bool) bool {
		changed, _ := d.step(v, at(ms), 2, hold)
		return changed
	}
	require.False(t, step(0, false))
	require.False(t, step(149, false), "two polls, but too close")
	require.True(t, step(150, false))
	require.False(t, step(1000, true))
	require.False(t, step(1500, false), "one poll, however long ago, is none")
	require.False(t, step(2000, true))
	require.True(t, step(2150, true))
	require.Equal(t, at(2000), d.since)
	require.True(t, d.value)
}

func TestADebouncedStateIsAlwaysOneThatPollsShowed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var d debounce
		now := time.Now()
		type poll struct {
			at time.Time
			v  bool
		}
		var polls []poll
		need := rapid.IntRange(2, 5).Draw(t, "need")
		for range rapid.IntRange(1, 200).Draw(t, "polls") {
			now = now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "ms")) * time.Millisecond)
			p := poll{now, rapid.Bool().Draw(t, "v")}
			polls = append(polls, p)
			was := d.value
			changed, _ := d.step(p.v, now, need, hold)
			if changed && d.frozen {
				require.Equal(t, was, d.value, "freezing keeps the state")
				continue
			}
			if !changed {
				continue
			}
			equal := 0
			for i := len(polls) - 1; i >= 0 && polls[i].v == d.value && !polls[i].at.Before(d.since); i-- {
				equal++
			}
			require.GreaterOrEqual(t, equal, need)
			require.GreaterOrEqual(t, now.Sub(d.since), hold)
		}
	})
}

func TestASwitchThatNeverRestsIsFrozen(t *testing.T) {
	t.Parallel()
	var d debounce
	now := time.Now()
	for range 10 {
		now = now.Add(50 * time.Millisecond)
		d.step(false, now, 2, hold)
	}
	froze := false
	for i := range 100 {
		now = now.Add(50 * time.Millisecond)
		changed, _ := d.step(i%2 == 0, now, 2, hold)
		froze = froze || changed && d.frozen
	}
	require.True(t, froze)
	require.False(t, d.value)
}

func TestNoiseIsJudgedOverAMinute(t *testing.T) {
	t.Parallel()
	var n noise
	now := time.Unix(1_700_000_000, 0)
	for i := range 100 {
		n.add(i%21 == 0, now)
	}
	require.False(t, n.noisy, "5 of 100 is not more than 5 %")
	n.add(true, now)
	require.True(t, n.noisy)
	n.add(false, now.Add(61*time.Second))
	require.False(t, n.noisy || n.any)
}
