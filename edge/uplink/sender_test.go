package uplink

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/protocol/wire"
)

func flying(n int, now time.Time) sender {
	s := newSender(1)
	for i := range uint64(n) {
		s.sent(flight{first: 1 + i*10, next: 11 + i*10, bytes: 1000}, now)
	}
	return s
}

// The cloud answers every batch behind a hole with the same word.
func TestHoleIsAnsweredOnceForAllBatchesBehindIt(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	s := flying(8, now)
	now = now.Add(100 * time.Millisecond)
	require.True(t, s.hole(1, now))
	require.Equal(t, uint64(1), s.next)
	s.sent(flight{first: 1, next: 11, bytes: 1000}, now)
	for range 6 {
		now = now.Add(20 * time.Millisecond)
		require.False(t, s.hole(1, now))
	}
	require.Equal(t, uint64(11), s.next)
	s.acked(11, now)
	require.True(t, s.hole(11, now), "another hole")
	require.True(t, s.hole(11, now.Add(sameHole)), "or the same, lost again")
}

func TestAfterARefusalOneBatchFliesAtATimeUntilAllAreLargeAgain(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	s := flying(8, now)
	_, aside := s.bad(21, 21, now)
	require.False(t, aside)
	require.Equal(t, 5, s.limit)
	_, aside = s.bad(31, 21, now)
	require.False(t, aside)
	require.Equal(t, 5, s.limit, "an answer about a batch of before")
	for s.limit < wire.MaxRecords {
		require.Positive(t, s.room(now))
		s.sent(flight{first: s.next, next: s.next + uint64(s.limit), bytes: 10}, now)
		require.Zero(t, s.room(now))
		s.acked(s.next, now)
	}
	s.sent(flight{first: s.next, next: s.next + 1, bytes: 10}, now)
	require.Positive(t, s.room(now))
}

// Over any stretch the credit spent is at most what was granted for it, and a
// second's worth more.
func TestCreditIsNeverOverdrawn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1000, 0)
		rate := rapid.Uint64Range(1, 5000).Draw(t, "rate")
		c := newCredit(now)
		n, _ := c.allow(100, now)
		require.Zero(t, n, "none before the first word")
		c.grant(&rate, now)
		began, spent := now, 0
		for range 200 {
			waiting := rapid.Uint64Range(1, 3000).Draw(t, "waiting")
			n, again := c.allow(waiting, now)
			if n == 0 {
				require.True(t, again.After(now))
				now = again
				n, _ = c.allow(waiting, now)
				require.Positive(t, n, "what was promised is there")
			}
			n = min(n, int(waiting))
			c.spend(n, now)
			spent += n
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond)
			require.LessOrEqual(t, float64(spent), now.Sub(began).Seconds()*float64(rate)+float64(rate)+1)
		}
	})
}
