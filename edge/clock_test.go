package edge

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

func TestClockIsCarriedOnlyWhenItLiesAfterWhatIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		f := func(system time.Time, known int64, want wire.Clock) {
			t.Helper()
			c := NewClock(system)
			require.Equal(t, wire.ClockUnset, c.Sample(time.Now()).Clock)
			c.Begin(7, known)
			s := c.Sample(time.Now())
			require.Equal(t, want, s.Clock)
			require.EqualValues(t, 7, s.Boot)
			require.Zero(t, s.ErrMS, "a bound only for a synchronised clock")
		}
		f(now, 0, wire.ClockUnset)
		f(now, now.Add(-time.Hour).UnixNano(), wire.ClockCarried)
		f(now, now.Add(time.Hour).UnixNano(), wire.ClockUnset) // the machine's clock fell back
		f(time.Unix(0, 0), now.UnixNano(), wire.ClockUnset)
	})
}

func TestClockRunsOnAfterASyncWithAGrowingBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewClock(time.Unix(0, 0))
		c.Begin(1, 0)
		true0 := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		c.Sync(true0.UnixNano(), time.Now(), 40*time.Millisecond)
		s := c.Sample(time.Now())
		require.Equal(t, wire.ClockSynced, s.Clock)
		require.Equal(t, true0.UnixNano(), s.Wall)
		require.GreaterOrEqual(t, s.ErrMS, uint32(40))
		require.LessOrEqual(t, s.ErrMS, uint32(41))
		time.Sleep(24 * time.Hour)
		s = c.Sample(time.Now())
		require.Equal(t, true0.Add(24*time.Hour).UnixNano(), s.Wall)
		require.InDelta(t, 40+8640, s.ErrMS, 2, "100 ppm of a day")
	})
}

func TestMonotonicTimesAreUniqueAndMoveByLessThanAMicrosecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewClock(time.Now())
		seen := map[int64]bool{}
		for range 1000 {
			r := c.Stamp(time.Now())
			require.False(t, seen[r.Mono])
			seen[r.Mono] = true
			require.InDelta(t, c.Mono(time.Now()), r.Mono, 1000)
		}
	})
}

func TestFloorIsATimeThatHasCertainlyPassed(t *testing.T) {
	t.Parallel()
	machine := time.Unix(2_000_000, 0)
	c := NewClock(machine)
	at := func(d time.Duration) time.Time { return c.start.Add(d) }
	require.Zero(t, c.Floor(at(time.Hour)), "nothing is known")
	known := int64(1_000_000 * time.Second)
	c.Begin(3, known)
	require.Equal(t, known, c.Floor(at(0)), "the machine's clock is no proof")
	require.Equal(t, known+int64(time.Hour)-int64(360*time.Millisecond), c.Floor(at(time.Hour)), "less what the oscillator may be ahead")
	server := int64(3_000_000 * time.Second)
	c.Sync(server, at(2*time.Hour), 40*time.Millisecond)
	s := c.Sample(at(2 * time.Hour))
	require.Equal(t, server-int64(s.ErrMS)*int64(time.Millisecond), c.Floor(at(2*time.Hour)))
	require.GreaterOrEqual(t, s.ErrMS, uint32(40))
	c.Sync(server-int64(time.Hour), at(2*time.Hour), 0)
	require.Less(t, c.Floor(at(2*time.Hour)), server-int64(59*time.Minute), "the cloud's newest word counts, also when it goes back")
}
