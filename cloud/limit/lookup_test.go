package limit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var usual = LookupLimits{Parcel: 60, Address: 1200, Misses: 60}

// Thirty recipients behind one address who reload their pages all the while do not
// lock each other out; one of them who reloads too often is refused alone.
func TestThirtyRecipientsBehindOneAddress(t *testing.T) {
	t.Parallel()
	l := NewLookups(New(0))
	for i := range 30 {
		for range 30 {
			p := fmt.Sprint("PK-", i)
			require.True(t, l.Take("198.51.100.7", p, usual, start).OK)
			l.Found("198.51.100.7", p, start)
		}
	}
	for range 30 {
		require.True(t, l.Take("198.51.100.7", "PK-0", usual, start).OK)
	}
	s := l.Take("198.51.100.7", "PK-0", usual, start)
	require.False(t, s.OK)
	require.Equal(t, 1, s.RetryAfter)
	require.True(t, l.Take("198.51.100.7", "PK-1", usual, start).OK)
	require.True(t, l.Take("203.0.113.9", "PK-0", usual, start).OK, "another address has its own")
}

// Who guesses is stopped; those at the same address who watch a parcel go on.
func TestGuessingIsBoundedByAddress(t *testing.T) {
	t.Parallel()
	l := NewLookups(New(0))
	const here = "2001:db8:1:2::1"
	require.True(t, l.Take(here, "MINE", usual, start).OK)
	l.Found(here, "MINE", start)
	for i := range 60 {
		from := fmt.Sprintf("2001:db8:1:2::%x", i+100) // one network, one caller
		require.True(t, l.Take(from, fmt.Sprint("GUESS-", i), usual, start).OK)
		l.Missed(from, usual, start)
	}
	require.False(t, l.Take("2001:db8:1:2::ffff", "GUESS-60", usual, start).OK)
	require.True(t, l.Take(here, "MINE", usual, start.Add(30*time.Second/100)).OK, "it was found a moment ago")
	require.True(t, l.Take("2001:db8:1:3::1", "GUESS-60", usual, start).OK, "the next network")
	require.True(t, l.Take(here, "GUESS-61", usual, start.Add(2*time.Second)).OK, "misses fill again")
}

func TestAllLookupsOfAnAddress(t *testing.T) {
	t.Parallel()
	l := NewLookups(New(0))
	for i := range 1200 {
		require.True(t, l.Take("198.51.100.7", fmt.Sprint(i), usual, start).OK)
	}
	require.False(t, l.Take("198.51.100.7", "one more", usual, start).OK)
	for i := range 2000 {
		require.True(t, l.Take("198.51.100.8", fmt.Sprint(i), LookupLimits{}, start).OK, "no limits")
	}
}

func TestATokenIsGivenBack(t *testing.T) {
	t.Parallel()
	b := New(0)
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
}
