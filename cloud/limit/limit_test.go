package limit

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var start = time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)

func TestABucketEmptiesAndFillsAgain(t *testing.T) {
	t.Parallel()
	b := New(0, nil)
	for i := range 5 {
		s := b.Take("a", 5, start)
		require.True(t, s.OK)
		require.Equal(t, 4-i, s.Remaining)
	}
	s := b.Take("a", 5, start)
	require.False(t, s.OK)
	require.Equal(t, 12, s.RetryAfter, "five a minute are one in twelve seconds")
	require.Equal(t, start.Add(time.Minute), s.Reset)
	require.True(t, b.Take("b", 5, start).OK, "keys do not share")
	require.False(t, b.Take("a", 5, start.Add(11*time.Second)).OK)
	require.True(t, b.Take("a", 5, start.Add(12*time.Second)).OK)
	require.True(t, b.Take("a", 0, start).OK, "no limit")
}

func TestTheSetStaysBounded(t *testing.T) {
	t.Parallel()
	b := New(64, nil)
	for i := range 10_000 {
		b.Take(strconv.Itoa(i), 1, start.Add(time.Duration(i)*time.Millisecond))
		require.LessOrEqual(t, len(b.list), 64)
	}
}

// However calls are spread, no stretch of time lets through more than the
// bucket and what flowed in.
func TestNeverMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 40).Draw(rt, "limit")
		b, now, passed := New(0, nil), start, 0
		for range rapid.IntRange(1, 200).Draw(rt, "calls") {
			now = now.Add(time.Duration(rapid.IntRange(-100, 3000).Draw(rt, "wait")) * time.Millisecond)
			s := b.Take("k", limit, now)
			if s.OK {
				passed++
			} else if s.RetryAfter < 1 {
				rt.Fatal("a refused call says how long to wait")
			}
		}
		longest := start.Add(200 * 3 * time.Second)
		if most := float64(limit) + longest.Sub(start).Minutes()*float64(limit); float64(passed) > most {
			rt.Fatalf("%d passed, at most %.1f may", passed, most)
		}
	})
}

// However calls are spread, no minute has more than the limit, and one that was
// told to wait may come when it has.
func TestNoMinuteHasMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 25).Draw(rt, "limit")
		w, now := NewWindows(0), start
		var passed []time.Time
		for range rapid.IntRange(1, 150).Draw(rt, "calls") {
			now = now.Add(time.Duration(rapid.IntRange(0, 6000).Draw(rt, "wait")) * time.Millisecond)
			within := 0
			for _, at := range passed {
				if now.Sub(at) < time.Minute {
					within++
				}
			}
			wait, ok := w.Take("k", limit, now)
			if ok != (within < limit) {
				rt.Fatalf("%d within the minute, limit %d, taken: %v", within, limit, ok)
			}
			if !ok {
				if now = now.Add(time.Duration(wait) * time.Second); wait < 1 || wait > 60 {
					rt.Fatalf("to wait for %d s", wait)
				}
				if _, ok = w.Take("k", limit, now); !ok {
					rt.Fatal("it waited as long as it was told")
				}
			}
			passed = append(passed, now)
		}
	})
	w := NewWindows(64)
	for i := range 10_000 {
		_, ok := w.Take(strconv.Itoa(i), 1, start.Add(time.Duration(i)*time.Millisecond))
		require.True(t, ok, "keys do not share")
		require.LessOrEqual(t, len(w.list), 64)
	}
	_, ok := w.Take("9999", 0, start)
	require.True(t, ok, "no limit")
}

// Nodes that callers are spread over let no more through together than one alone, but
// for what rounding up gives, and tell callers the whole limit.
func TestNodesShareALimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n, limit := rapid.IntRange(1, 5).Draw(t, "nodes"), rapid.IntRange(1, 300).Draw(t, "limit")
		minutes := rapid.IntRange(1, 5).Draw(t, "minutes")
		var nodes []*Buckets
		var budgets []*Budget
		for range n {
			nodes = append(nodes, New(0, func() int { return n }))
			budgets = append(budgets, NewBudget(float64(limit), float64(limit), func() int { return n }))
		}
		now, end, passed, spent := start, start.Add(time.Duration(minutes)*time.Minute), 0, 0
		for now.Before(end) {
			for i := range nodes {
				s := nodes[i].Take("x", limit, now)
				require.Equal(t, limit, s.Limit)
				require.LessOrEqual(t, s.Remaining, limit)
				if s.OK {
					passed++
				}
				if budgets[i].Take("x", now) == 0 {
					spent++
				}
			}
			now = now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "ms")) * time.Millisecond)
		}
		whole := limit * (1 + minutes)
		require.LessOrEqual(t, passed, whole+(n-1)*(1+minutes))
		require.LessOrEqual(t, spent, whole+n)
	})
}

// A node that comes or goes changes the part of those that are there at once.
func TestPartsFollowTheNodes(t *testing.T) {
	t.Parallel()
	n := 1
	b := New(0, func() int { return n })
	took := func() (k int) {
		for b.Take("x", 60, start).OK {
			k++
		}
		return k
	}
	n = 3
	require.Equal(t, 20, took())
	n = 1
	require.Zero(t, took(), "what was used stays so")
	require.Equal(t, 1, b.Take("x", 60, start).RetryAfter)
	n = 6
	require.Equal(t, 6, b.Take("x", 60, start).RetryAfter)
}
