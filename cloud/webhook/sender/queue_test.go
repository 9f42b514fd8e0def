package sender

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
)

func work(id cloud.OutboxID, account int, ref string, attempts int) cloud.OutboxWork {
	return cloud.OutboxWork{Event: cloud.OutboxEvent{ReferenceID: ref, Body: make([]byte, 10)},
		Delivery: cloud.OutboxDelivery{ID: id, BusinessID: cloud.BusinessID(account), Attempts: attempts, MaxAttempts: 8}}
}

// TestQueuesAgainstRules drives the queues with random steps and checks the
// promises after each: at most one in flight per URL and reference, at most the
// cap per URL and in all, oldest first, and nothing lost.
func TestQueuesAgainstRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const slots = 12
		q := newQueues(slots)
		now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
		type flight struct {
			it   *item
			done func(error)
		}
		var flights []flight
		waiting := map[cloud.OutboxID]bool{}
		next := cloud.OutboxID(0)
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			switch rapid.IntRange(0, 20).Draw(t, "step") % 5 {
			case 0:
				next++
				u := rapid.IntRange(0, 5).Draw(t, "url")
				require.True(t, q.push(address{url: fmt.Sprint(u), account: cloud.BusinessID(u % 3)}, work(next, u%3, fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "ref")), 0)))
				require.False(t, q.push(address{url: fmt.Sprint(u), account: cloud.BusinessID(u % 3)}, work(next, u%3, "x", 0)), "it is there already")
				waiting[next] = true
			case 1, 2:
				if it, done := q.pop(now); it != nil {
					id := it.work.Delivery.ID
					require.True(t, waiting[id])
					delete(waiting, id)
					inURL := 1
					for _, f := range flights {
						if f.it.url == it.url {
							inURL++
							require.NotEqual(t, f.it.work.Event.ReferenceID, it.work.Event.ReferenceID)
						}
					}
					require.LessOrEqual(t, inURL, perURL)
					for _, other := range it.line.items {
						require.Greater(t, other.work.Delivery.ID, id, "oldest first")
					}
					flights = append(flights, flight{it, done})
				}
			case 4:
				if rapid.IntRange(0, 9).Draw(t, "drain") > 0 {
					continue
				}
				for _, r := range q.drain(allSlots) {
					require.True(t, waiting[r.ID])
					delete(waiting, r.ID)
				}
				require.Empty(t, waiting, "everything that waited, and nothing in flight")
			case 3:
				if len(flights) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(flights)-1).Draw(t, "flight")
				f := flights[i]
				flights = append(flights[:i], flights[i+1:]...)
				a := fetch.Answer{Status: 200}
				f.it.url.report(f.done, &a, now)
				q.done(f.it, outcome{state: cloud.OutboxSuccess}, &a, now)
			}
			require.LessOrEqual(t, len(flights), slots)
			require.Equal(t, len(flights), q.inFlight)
			require.Equal(t, len(waiting), q.count)
			require.Equal(t, 10*len(waiting), q.bytes)
		}
		for len(waiting)+len(flights) > 0 { // everything gets out
			for _, f := range flights {
				a := fetch.Answer{Status: 200}
				f.it.url.report(f.done, &a, now)
				q.done(f.it, outcome{state: cloud.OutboxSuccess}, &a, now)
			}
			flights = nil
			before := len(waiting)
			for {
				it, done := q.pop(now)
				if it == nil {
					break
				}
				delete(waiting, it.work.Delivery.ID)
				flights = append(flights, flight{it, done})
			}
			require.True(t, len(waiting) < before || before == 0, "stuck with %d", before)
		}
		require.Zero(t, q.bytes)
		q.forget(now.Add(time.Hour))
		require.Empty(t, q.urls)
	})
}

// A flood of one account gets the same turns as a single delivery of another.
func TestAccountsTakeTurns(t *testing.T) {
	t.Parallel()
	q, now := newQueues(4), time.Now()
	for i := range 500 {
		q.push(address{1, "flood"}, work(cloud.OutboxID(i+1), 1, fmt.Sprint(i), 0))
		q.push(address{1, "flood2"}, work(cloud.OutboxID(i+1001), 1, fmt.Sprint(i), 0))
	}
	for i := range 3 {
		q.push(address{2, "quiet"}, work(cloud.OutboxID(i+5001), 2, fmt.Sprint(i), 0))
	}
	var got []string
	for range 4 {
		it, _ := q.pop(now)
		got = append(got, it.url.url)
	}
	require.Equal(t, []string{"flood", "quiet", "flood2", "quiet"}, got)
	it, _ := q.pop(now)
	require.Nil(t, it, "all slots are taken")
}

// Retries leave most slots to first attempts while those wait.
func TestRetriesLeaveRoom(t *testing.T) {
	t.Parallel()
	q, now := newQueues(10), time.Now()
	id := cloud.OutboxID(0)
	for u := range 10 {
		for range 5 {
			id++
			q.push(address{cloud.BusinessID(u), fmt.Sprint("r", u)}, work(id, u, fmt.Sprint(id), 1))
		}
	}
	for u := range 10 {
		for range 5 {
			id++
			q.push(address{cloud.BusinessID(u), fmt.Sprint("f", u)}, work(id, u, fmt.Sprint(id), 0))
		}
	}
	retries := 0
	for range 10 {
		it, _ := q.pop(now)
		if it.retry() {
			retries++
		}
	}
	require.Equal(t, 3, retries)
}

func TestCapAdapts(t *testing.T) {
	t.Parallel()
	u := &urlQueue{cap: perURL}
	now := time.Now()
	for _, want := range []int{2, 1, 1} {
		u.adapt(&fetch.Answer{Code: fetch.CodeStatus, Status: 429}, now)
		require.Equal(t, want, u.cap)
	}
	for range 2 * capStep {
		u.adapt(&fetch.Answer{Status: 200}, now)
	}
	require.Equal(t, 3, u.cap)
	for range 100 * capStep {
		u.adapt(&fetch.Answer{Status: 200}, now)
	}
	require.Equal(t, perURL, u.cap)
}

// A waiting delivery shows why: the breaker after ten failures in a row, or the time
// that the receiver asked for. Who answers well is held up by nothing.
func TestWhyAnAddressIsHeld(t *testing.T) {
	t.Parallel()
	q := newQueues(10)
	now := time.Now()
	held := func() (string, time.Time) { return q.holds(address{1, "u"}, now) }
	reason, _ := held()
	require.Empty(t, reason, "it was never sent anything")
	try := func(n int, a fetch.Answer) {
		require.True(t, q.push(address{1, "u"}, work(cloud.OutboxID(n), 1, fmt.Sprint(n), 0)))
		it, done := q.pop(now)
		require.NotNil(t, it)
		it.url.report(done, &a, now)
		q.done(it, outcome{state: cloud.OutboxFailed}, &a, now)
	}
	for n := range 9 {
		try(n+1, fetch.Answer{Status: 500, Code: fetch.CodeStatus})
		reason, _ = held()
		require.Empty(t, reason)
	}
	try(10, fetch.Answer{Status: 500, Code: fetch.CodeStatus})
	reason, until := held()
	require.Equal(t, waitBreaker, reason)
	require.Equal(t, now.Add(breakerOpen), until)

	q = newQueues(10)
	try(20, fetch.Answer{Status: 503, Code: fetch.CodeStatus, RetryAfter: "120"})
	reason, until = held()
	require.Equal(t, waitAfter, reason)
	require.Equal(t, now.Add(2*time.Minute), until)
	now = until.Add(time.Second)
	reason, _ = held()
	require.Empty(t, reason)
}

// Of two reasons to leave an address alone, the one that lasts longer counts: a
// short Retry-After does not open a breaker that has opened again and again, and a
// breaker does not cut a long Retry-After short.
func TestTheLongerWaitCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, to, n := newQueues(10), address{1, "u"}, 0
		fail := func(after string) {
			n++
			require.True(t, q.push(to, work(cloud.OutboxID(n), 1, fmt.Sprint(n), 0)))
			now := time.Now()
			it, done := q.pop(now)
			require.NotNil(t, it)
			a := fetch.Answer{Status: 500, Code: fetch.CodeStatus, RetryAfter: after}
			it.url.report(done, &a, now)
			q.done(it, outcome{state: cloud.OutboxFailed}, &a, now)
		}
		for range 10 {
			fail("")
		}
		for open := 2 * breakerOpen; open < breakerMost; open *= 2 {
			_, until := q.holds(to, time.Now())
			time.Sleep(time.Until(until) + time.Second)
			fail("1")
			reason, until := q.holds(to, time.Now())
			require.Equal(t, waitBreaker, reason)
			require.Equal(t, time.Now().Add(open), until)
		}
		_, until := q.holds(to, time.Now())
		time.Sleep(time.Until(until) + time.Second)
		fail("3600")
		reason, until := q.holds(to, time.Now())
		require.Equal(t, waitAfter, reason)
		require.Equal(t, time.Now().Add(time.Hour), until)
		later := time.Now().Add(2 * breakerMost)
		q.urls[to].hold(later, waitBreaker)
		reason, until = q.holds(to, time.Now())
		require.Equal(t, waitAfter, reason)
		require.True(t, until.After(later))
	})
}
