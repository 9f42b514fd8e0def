package limit

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var usual = LookupLimits{Parcel: 60, Address: 1200, Everywhere: 600, Misses: 60}

// reads looks up a parcel that is there and says how long its reader has to wait.
func reads(l *Lookups, address string, parcel int64, proven bool, now time.Time) time.Duration {
	k, wait := l.Enter(address, fmt.Sprint("PK-", parcel), proven, now)
	if wait > 0 {
		return wait
	}
	return k.Found(parcel, proven, now)
}

// guesses looks up what is not there.
func guesses(l *Lookups, address string, cost float64, now time.Time) time.Duration {
	k, wait := l.Enter(address, fmt.Sprint("GUESS-", cost), false, now)
	if wait == 0 {
		k.Missed(cost, now)
	}
	return wait
}

// Thirty recipients behind one address who reload their pages all the while do not
// lock each other out; one of them who reloads too often is refused alone.
func TestThirtyRecipientsBehindOneAddress(t *testing.T) {
	t.Parallel()
	l := NewLookups(usual, nil)
	for i := range int64(30) {
		for range 30 {
			require.Zero(t, reads(l, "198.51.100.7", i, false, start))
		}
	}
	for range 30 {
		require.Zero(t, reads(l, "198.51.100.7", 0, false, start))
	}
	require.Equal(t, time.Second, reads(l, "198.51.100.7", 0, false, start))
	require.Zero(t, reads(l, "198.51.100.7", 1, false, start))
	require.Zero(t, reads(l, "203.0.113.9", 0, false, start), "another address has its own")
}

// Who guesses is stopped for longer and longer; those at the same address who watch
// a parcel, or have its link, go on.
func TestGuessingIsBoundedByAddress(t *testing.T) {
	t.Parallel()
	l := NewLookups(usual, nil)
	const here = "2001:db8:1:2::1"
	require.Zero(t, reads(l, here, 7, false, start))
	for i := range 20 {
		require.Zero(t, guesses(l, fmt.Sprintf("2001:db8:1:2::%x", i+100), CostMiss, start), "one network, one caller")
	}
	require.Equal(t, 30*time.Second, guesses(l, here, CostMiss, start))
	require.Zero(t, reads(l, here, 7, false, start), "it was found a moment ago")
	require.Equal(t, 30*time.Second, reads(l, here, 8, false, start))
	require.Zero(t, reads(l, here, 8, true, start), "who has the link does not guess")
	require.Zero(t, reads(l, "2001:db8:1:3::1", 8, false, start), "the next network")

	k, wait := l.Enter(here, "PK-9", true, start)
	require.Zero(t, wait)
	require.Equal(t, 30*time.Second, k.Found(9, false, start), "a wrong secret lets in as little as none")
	require.Equal(t, 30*time.Second, k.Missed(CostMiss, start), "nor does it say that there is nothing")
	for range 100 {
		_, wait = l.Enter(here, "PK-9", true, start)
	}
	require.Positive(t, wait, "wrong secrets are bounded, too")

	now := start.Add(30 * time.Second)
	for range 20 {
		wait = guesses(l, here, CostMiss, now)
		now = now.Add(5 * time.Second)
	}
	require.Zero(t, wait)
	require.Equal(t, 55*time.Second, guesses(l, here, CostMiss, now), "the next wait is a minute")
}

// People at one address who mistype a number now and then are no guessers.
func TestMissesAreForgotten(t *testing.T) {
	t.Parallel()
	l, now := NewLookups(usual, nil), start
	for range 300 {
		require.Zero(t, guesses(l, "198.51.100.7", CostMiss, now))
		now = now.Add(4 * time.Minute)
	}
	for range 60 {
		require.Zero(t, guesses(l, "198.51.100.8", CostMistyped, now))
		now = now.Add(time.Second)
	}
}

// One parcel is slowed whichever addresses ask, longer each time; its recipient
// with proof is not.
func TestOneParcelFromManyAddresses(t *testing.T) {
	t.Parallel()
	l, now, n := NewLookups(usual, nil), start, 0
	crowd := func() time.Duration {
		for {
			n++
			if wait := reads(l, fmt.Sprintf("10.%d.%d.1", n/250, n%250), 7, false, now); wait > 0 {
				return wait
			}
		}
	}
	for _, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 15 * time.Minute, 15 * time.Minute} {
		require.Equal(t, want, crowd())
		require.Zero(t, reads(l, "192.0.2.9", 7, true, now), "the recipient")
		require.Zero(t, reads(l, "192.0.2.9", 8, false, now), "another parcel")
		now = now.Add(want)
	}
	require.GreaterOrEqual(t, n, 7*300)
}

func TestAllLookupsOfAnAddress(t *testing.T) {
	t.Parallel()
	l := NewLookups(usual, nil)
	for i := range int64(1200) {
		require.Zero(t, reads(l, "198.51.100.7", i, false, start))
	}
	require.Positive(t, reads(l, "198.51.100.7", 5000, false, start))
	require.Zero(t, l.State("198.51.100.7", start).Remaining)
	for i := range int64(2000) {
		require.Zero(t, reads(NewLookups(LookupLimits{}, nil), "198.51.100.8", i, false, start), "no limits")
		require.Zero(t, reads(l, "", i, false, start), "our own")
	}
}

func TestLookupsAreBounded(t *testing.T) {
	t.Parallel()
	const most = 512
	l := NewLookups(usual, nil)
	l.recent.max, l.buckets.max, l.misses.max, l.networks.max, l.missing.max, l.crowded.max = most, most, most, most, most, most
	for i := range int64(10 * most) {
		a := fmt.Sprintf("10.%d.%d.1", i>>8&255, i&255)
		reads(l, a, i, false, start)
		guesses(l, a, CostMiss, start)
	}
	for _, n := range []int{len(l.recent.list), len(l.buckets.list), len(l.misses.list), len(l.networks.list), len(l.missing.list), len(l.crowded.list)} {
		require.LessOrEqual(t, n, most)
	}
}

func TestAccountsAndDigits(t *testing.T) {
	t.Parallel()
	l := NewLookups(usual, nil)
	for range 1000 {
		require.Zero(t, l.AccountWait(4, start))
		l.AccountMissed(4, start)
	}
	require.Positive(t, l.AccountWait(4, start))
	require.Zero(t, l.AccountWait(5, start))
	for range 10 {
		require.Zero(t, l.Guess("198.51.100.7", start))
	}
	require.Positive(t, l.Guess("198.51.100.7", start))
	l.GuessedRight("198.51.100.7", start)
	require.Zero(t, l.Guess("198.51.100.7", start), "right digits cost nothing")
	require.Positive(t, l.Guess("198.51.100.7", start))
	for range 20 {
		l.GuessedRight("198.51.100.9", start)
	}
	for range 10 {
		require.Zero(t, l.Guess("198.51.100.9", start))
	}
	require.Positive(t, l.Guess("198.51.100.9", start), "nothing is saved up")
}

// Digits sent at once, each before the answer to the others, are counted as
// those sent in a row.
func TestDigitsAtOnce(t *testing.T) {
	t.Parallel()
	l := NewLookups(usual, nil)
	var let atomic.Int64
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if l.Guess("198.51.100.7", start) == 0 {
				let.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 10, let.Load())
}

func TestATokenIsGivenBack(t *testing.T) {
	t.Parallel()
	b := New(0, nil)
	for range 50 {
		require.True(t, b.Take("a", 2, start).OK)
		b.Give("a", start)
	}
	require.Equal(t, 2, b.Peek("a", 2, start).Remaining)
	require.True(t, b.Take("a", 2, start).OK)
	require.True(t, b.Take("a", 2, start).OK)
	require.False(t, b.Peek("a", 2, start).OK)
	b.Give("b", start)
	require.Equal(t, 2, b.Peek("b", 2, start).Remaining)
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"198.51.100.7": "198.51.100.7", "2001:db8::1": "2001:db8::/64", "2001:db8:0:1::1": "2001:db8:0:1::/64", "::ffff:198.51.100.7": "::ffff:198.51.100.7", "": "", "x": "x"} {
		require.Equal(t, want, Address(in))
	}
	for in, want := range map[string]string{"198.51.100.7": "198.51.100.0/24", "2001:db8:0:1::1": "2001:db8::/48", "::ffff:198.51.100.7": "198.51.100.0/24", "": "", "x": "x"} {
		require.Equal(t, want, network(in))
	}
}
