package sender

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/fetch/fetchtest"
	"github.com/postern-io/postern/protocol/signature"
)

func TestDeliversSignedBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run()
		synctest.Wait()
		id := w.emit(nil)
		time.Sleep(10 * time.Millisecond)
		posts := w.a.Seen()
		require.Len(t, posts, 1)
		p := posts[0]
		body := event(1).Event.Body
		require.Equal(t, body, p.Body)
		require.Equal(t, "/hook?key=hidden", p.Path)
		require.Equal(t, "a.example.com", p.Host)
		require.NoError(t, signature.VerifyProvider(p.Head.Get, p.Body, time.Now(), []byte(secret)))
		for name, want := range map[string]string{"Content-Type": "application/json; charset=utf-8", "User-Agent": "TMS-Webhooks/1",
			"X-Webhook-Event": "locker_delivery.delivered", "X-Webhook-Event-Id": "PLE-810201", "X-Webhook-Id": "PLE-810201",
			"X-Webhook-Attempt": "1", "X-Webhook-Timestamp": fmt.Sprint(p.At.Unix()), "X-Webhook-Content-Digest": signature.Digest(body)} {
			require.Equal(t, want, p.Head.Get(name), name)
			delete(p.Head, http.CanonicalHeaderKey(name))
		}
		uid, err := uuid.Parse(p.Head.Get("X-Webhook-Delivery-Id"))
		require.NoError(t, err)
		require.EqualValues(t, 4, uid.Version())
		for _, name := range []string{"X-Webhook-Delivery-Id", "X-Webhook-Signature", "Content-Length"} {
			delete(p.Head, name)
		}
		require.Empty(t, p.Head, "nothing else is sent")

		w.stop()
		row, as := w.row(id)
		require.Equal(t, cloud.OutboxSuccess, row.State)
		require.Equal(t, 1, row.Attempts)
		require.Empty(t, row.LeaseOwner)
		require.False(t, row.DeliveredAt.IsZero())
		require.Len(t, as, 1)
		require.Equal(t, 200, as[0].HTTPStatus)
		require.Equal(t, uid.String(), as[0].DeliveryUID)
		require.Equal(t, "http://a.example.com/hook?key=***", as[0].URL)
		require.Contains(t, as[0].RequestHead, "X-Webhook-Signature: ")
		require.NotContains(t, as[0].RequestHead, "hidden")
		require.NotContains(t, as[0].RequestHead, secret)
		require.Equal(t, 1.0, w.count("webhook_deliveries_total", "outcome", "success"))
		require.Equal(t, 1.0, w.count("webhook_attempts_total", "result", "2xx"))
		require.Equal(t, 1.0, w.count("webhook_emitted_total", "event", "locker_delivery.delivered"))
		w.close()
	})
}

func (w *world) count(name, label, value string) float64 {
	families, err := w.metrics.Gather()
	require.NoError(w.t, err)
	for _, f := range families {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if f.GetName() == name && l.GetName() == label && l.GetValue() == value {
					return m.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}

// A receiver that stays down gets eight attempts at the planned times,
// the same bytes and ids in each, and the delivery ends as a dead letter.
func TestRetriesByTheTableAndDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, wait := range Waits() { // a twentieth of the table, for a quick test
			w.waits = append(w.waits, wait/20)
		}
		w.a.Reply = func(_ int, w http.ResponseWriter) { w.WriteHeader(500); fmt.Fprint(w, "no") }
		w.run()
		synctest.Wait()
		id := w.emit(nil)
		planned := []time.Time{time.Now()}
		for n := 1; n <= 8; n++ {
			for len(w.a.Seen()) < n {
				time.Sleep(200 * time.Millisecond)
				if row, _ := w.row(id); time.Until(row.NextAt) > 2*time.Second {
					time.Sleep(time.Until(row.NextAt) - time.Second)
				}
			}
			time.Sleep(10 * time.Millisecond)
			row, as := w.row(id)
			require.Len(t, as, n)
			require.Equal(t, n, row.Attempts)
			posts := w.a.Seen()
			late := posts[n-1].At.Sub(planned[n-1])
			require.True(t, late >= 0 && late <= 1100*time.Millisecond, "attempt %d came %v after its time", n, late)
			if n == 8 {
				require.Equal(t, cloud.OutboxDead, row.State)
				require.True(t, row.NextAt.IsZero())
				break
			}
			require.Equal(t, cloud.OutboxRetrying, row.State)
			wait := row.NextAt.Sub(posts[n-1].At).Seconds() / w.waits[n-1].Seconds()
			require.True(t, wait >= 0.79 && wait <= 1.21, "wait %d is %.2f of the table's", n, wait)
			planned = append(planned, row.NextAt)
		}
		time.Sleep(time.Hour)
		posts := w.a.Seen()
		require.Len(t, posts, 8, "no attempt beyond the count")
		uids := map[string]bool{}
		for i, p := range posts {
			require.Equal(t, posts[0].Body, p.Body)
			require.Equal(t, "PLE-810201", p.Head.Get("X-Webhook-Id"))
			require.Equal(t, fmt.Sprint(i+1), p.Head.Get("X-Webhook-Attempt"))
			require.NoError(t, signature.VerifyProvider(p.Head.Get, p.Body, p.At, []byte(secret)))
			uids[p.Head.Get("X-Webhook-Delivery-Id")] = true
		}
		require.Len(t, uids, 8)

		// By hand: same bytes and ids, a new row, one attempt.
		w.a.Reply = nil
		again, err := w.db.Redeliver(context.Background(), cloud.OutboxOwner{ProviderID: 17}, id, 1000, "", time.Now(), nil)
		require.NoError(t, err)
		d := again.Delivery
		time.Sleep(10 * time.Millisecond)
		p := w.a.Seen()[8]
		require.Equal(t, posts[0].Body, p.Body)
		require.Equal(t, "PLE-810201", p.Head.Get("X-Webhook-Id"))
		require.Equal(t, "1", p.Head.Get("X-Webhook-Replay"))
		w.stop()
		row, _ := w.row(d.ID)
		require.Equal(t, cloud.OutboxSuccess, row.State)
		require.Equal(t, id, row.ReplayOf)
		row, _ = w.row(id)
		require.Equal(t, cloud.OutboxDead, row.State)
		require.Equal(t, 8, row.Attempts, "an attempt by hand uses up none")
		w.close()
	})
}

func TestJudge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	d := &cloud.OutboxWork{Delivery: cloud.OutboxDelivery{MaxAttempts: 8}}
	replay := &cloud.OutboxWork{Delivery: cloud.OutboxDelivery{MaxAttempts: 1, ReplayOf: 5}}
	f := func(d *cloud.OutboxWork, made int, a fetch.Answer, random float64, state cloud.OutboxState, wait time.Duration, reason string) {
		t.Helper()
		if a.Code == "" {
			a.JudgeStatus()
		}
		v := nextState(now, Waits(), d, made, &a, random)
		require.Equal(t, state, v.state)
		require.Equal(t, reason, v.reason)
		if state == cloud.OutboxRetrying {
			require.InDelta(t, wait, v.next.Sub(now), float64(time.Millisecond))
		}
	}
	for status, want := range map[int]cloud.OutboxState{200: cloud.OutboxSuccess, 204: cloud.OutboxSuccess, 299: cloud.OutboxSuccess} {
		f(d, 1, fetch.Answer{Status: status}, 0, want, 0, "")
	}
	for _, status := range []int{199, 301, 302, 307, 400, 401, 404, 500} {
		f(d, 1, fetch.Answer{Status: status}, 0.5, cloud.OutboxRetrying, 30*time.Second, fetch.CodeStatus)
	}
	for _, status := range []int{408, 425, 429, 502, 503, 504} {
		f(d, 1, fetch.Answer{Status: status}, 0.5, cloud.OutboxRetrying, time.Minute, fetch.CodeStatus)
		f(d, 2, fetch.Answer{Status: status}, 0.5, cloud.OutboxRetrying, 2*time.Minute, fetch.CodeStatus)
	}
	f(d, 1, fetch.Answer{Code: fetch.CodeTimeout}, 0, cloud.OutboxRetrying, 24*time.Second, fetch.CodeTimeout)
	f(d, 1, fetch.Answer{Code: fetch.CodeTLS}, 0.999999, cloud.OutboxRetrying, 36*time.Second, fetch.CodeTLS)
	f(d, 7, fetch.Answer{Code: fetch.CodeDNS}, 0.5, cloud.OutboxRetrying, 34*time.Hour+8*time.Minute, fetch.CodeDNS)
	f(d, 8, fetch.Answer{Code: fetch.CodeDNS}, 0.5, cloud.OutboxDead, 0, ReasonOutOfTries)
	f(d, 1, fetch.Answer{Status: 410}, 0.5, cloud.OutboxDead, 0, ReasonGone)
	f(d, 1, fetch.Answer{Code: fetch.CodeBlocked}, 0.5, cloud.OutboxDead, 0, fetch.CodeBlocked)
	f(replay, 1, fetch.Answer{Status: 500}, 0.5, cloud.OutboxFailed, 0, ReasonOutOfTries)
	f(d, 7, fetch.Answer{Status: 500, Directive: directiveDisable}, 0.5, cloud.OutboxPaused, 0, ReasonPaused)
	f(d, 8, fetch.Answer{Status: 500, Directive: directiveDisable}, 0.5, cloud.OutboxDead, 0, ReasonOutOfTries)
	f(replay, 1, fetch.Answer{Status: 500, Directive: directiveDisable}, 0.5, cloud.OutboxFailed, 0, ReasonOutOfTries)
	f(d, 1, fetch.Answer{Status: 503, RetryAfter: "90"}, 0.5, cloud.OutboxRetrying, 90*time.Second, fetch.CodeStatus)
	f(d, 1, fetch.Answer{Status: 503, RetryAfter: "10"}, 0.5, cloud.OutboxRetrying, time.Minute, fetch.CodeStatus)
	f(d, 1, fetch.Answer{Status: 503, RetryAfter: "999999"}, 0.5, cloud.OutboxRetrying, time.Hour, fetch.CodeStatus)
	f(d, 6, fetch.Answer{Status: 503, RetryAfter: "3600"}, 0.5, cloud.OutboxRetrying, Waits()[5], fetch.CodeStatus)
	total := time.Duration(0)
	for _, w := range Waits() {
		total += w
	}
	require.Equal(t, 45.5, total.Round(6*time.Minute).Hours(), "a night's outage survives")
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{"1": time.Second, "1.2": 2 * time.Second, " 30 ": 30 * time.Second, "1e3": 0, "": 0, "-1": 0, "0": 0,
		"soon": 0, "99999999999999999999": time.Hour, "Fri, 20 Nov 2026 12:05:00 GMT": 5 * time.Minute, "Fri, 20 Nov 2026 11:00:00 GMT": 0,
		"Sat, 21 Nov 2026 12:05:00 GMT": time.Hour, "..": 0, strings.Repeat("1", 65): 0} {
		got, ok := retryAfter(value, now)
		require.Equal(t, want != 0, ok, value)
		require.Equal(t, want, got, value)
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("120")
	f.Add("Fri, 20 Nov 2026 12:05:00 GMT")
	f.Fuzz(func(t *testing.T, v string) {
		d, ok := retryAfter(v, time.Unix(1795216320, 0))
		if ok != (d > 0) || d > maxRetryAfter {
			t.Fatalf("%q gives %v, %v", v, d, ok)
		}
	})
}

// Retry-After delays the receiver's other deliveries too.
func TestRetryAfterHoldsTheWholeURL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.a.Reply = func(n int, w http.ResponseWriter) {
			if n == 1 {
				w.Header().Set("Retry-After", "120")
				w.WriteHeader(503)
			}
		}
		w.run()
		synctest.Wait()
		w.emit(nil)
		time.Sleep(time.Second)
		w.emit(nil)
		time.Sleep(115 * time.Second)
		require.Len(t, w.a.Seen(), 1)
		time.Sleep(10 * time.Second)
		require.Len(t, w.a.Seen(), 3)
		w.stop()
		require.Positive(t, w.count("webhook_postponed_total", "reason", "retry_after"))
		w.close()
	})
}

func TestGoneAndNotSent(t *testing.T) {
	t.Parallel()
	test := func(o *cloud.OutboxWrite) { o.Event.Test = true }
	for name, c := range map[string]struct {
		endpoint func(*cloud.Endpoint)
		event    func(*cloud.OutboxWrite)
		reply    int
		path     string // asked for, "" when nothing is sent
		state    cloud.OutboxState
		reason   string
		attempts int
	}{
		"live":                {path: "/hook?key=hidden", state: cloud.OutboxSuccess, attempts: 1},
		"gone":                {reply: 410, path: "/hook?key=hidden", state: cloud.OutboxDead, reason: ReasonGone, attempts: 1},
		"sandbox own address": {endpoint: func(e *cloud.Endpoint) { e.SandboxURL = "http://a.example.com/sand" }, event: test, path: "/sand", state: cloud.OutboxSuccess, attempts: 1},
		"sandbox to live":     {event: test, path: "/hook?key=hidden", state: cloud.OutboxSuccess, attempts: 1},
		"sandbox off":         {endpoint: func(e *cloud.Endpoint) { e.SandboxEnabled = false }, event: test, state: cloud.OutboxFailed, reason: ReasonSandboxOff},
		"disabled":            {endpoint: func(e *cloud.Endpoint) { e.Enabled = false }, state: cloud.OutboxFailed, reason: ReasonDisabled},
		"paused":              {endpoint: func(e *cloud.Endpoint) { e.Status = "paused" }, state: cloud.OutboxPaused, reason: ReasonPaused},
		"removed":             {event: func(o *cloud.OutboxWrite) { o.Deliveries[0].EndpointID = 9 }, state: cloud.OutboxFailed, reason: ReasonNoEndpoint},
		"blocked":             {endpoint: func(e *cloud.Endpoint) { e.URL = "http://10.0.0.1/" }, state: cloud.OutboxDead, reason: fetch.CodeBlocked, attempts: 1},
		"bad id":              {event: func(o *cloud.OutboxWrite) { o.Deliveries[0].WebhookID = "a\r\nX: y" }, state: cloud.OutboxDead, reason: ReasonUnsentError},
		"no secret":           {endpoint: func(e *cloud.Endpoint) { e.Secret = nil }, state: cloud.OutboxDead, reason: ReasonUnsentError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if c.reply != 0 {
					w.a.Reply = func(_ int, w http.ResponseWriter) { w.WriteHeader(c.reply) }
				}
				if c.endpoint != nil {
					w.endpoint(c.endpoint)
				}
				w.run()
				synctest.Wait()
				id := w.emit(c.event)
				time.Sleep(100 * time.Millisecond)
				w.stop()
				row, as := w.row(id)
				require.Equal(t, c.state, row.State)
				require.Equal(t, c.reason, row.Reason)
				require.Len(t, as, c.attempts)
				posts := w.a.Seen()
				if c.path == "" {
					require.Empty(t, posts)
				} else {
					require.Len(t, posts, 1)
					require.Equal(t, c.path, posts[0].Path)
					want := ""
					if strings.HasPrefix(name, "sandbox") {
						want = "1"
					}
					require.Equal(t, want, posts[0].Head.Get("X-Webhook-Test"))
				}
				e, err := w.db.FindEndpoint(t.Context(), 3)
				require.NoError(t, err)
				if name == "gone" {
					require.Equal(t, "gone", e.Status)
				}
				w.close()
			})
		})
	}
}

func TestRotationCarriesBothSignatures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const next = "fedcba9876543210fedcba9876543210"
		w.endpoint(func(e *cloud.Endpoint) { e.SecretNext, e.NextUntil = []byte(next), time.Now().Add(time.Hour) })
		w.run()
		synctest.Wait()
		w.emit(nil)
		time.Sleep(2 * time.Hour)
		w.emit(nil)
		time.Sleep(time.Second)
		w.stop()
		posts := w.a.Seen()
		for _, s := range []string{secret, next} {
			require.NoError(t, signature.VerifyProvider(posts[0].Head.Get, posts[0].Body, posts[0].At, []byte(s)))
		}
		// The overlap is over: the next secret is the current one.
		require.NoError(t, signature.VerifyProvider(posts[1].Head.Get, posts[1].Body, posts[1].At, []byte(next)))
		require.Error(t, signature.VerifyProvider(posts[1].Head.Get, posts[1].Body, posts[1].At, []byte(secret)))
		w.close()
	})
}

// unstored is a store that loses the connection before results are stored.
type unstored struct{ Store }

func (unstored) FinishOutbox(context.Context, []cloud.OutboxResult) ([]cloud.OutboxID, error) {
	return nil, errors.New("killed")
}
func (unstored) ReleaseOutbox(context.Context, []cloud.OutboxResult) error { return nil }

// A process that dies after the post and before the result is stored sends it
// again after the restart, with the same ids and bytes, at once.
func TestKilledBetweenPostAndResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.wrap = func(s Store) Store { return unstored{s} }
		w.run()
		synctest.Wait()
		id := w.emit(nil)
		time.Sleep(time.Second)
		w.cancel()
		<-w.ended
		require.NoError(t, w.db.Close())
		require.Len(t, w.a.Seen(), 1)

		w.open()
		row, as := w.row(id)
		require.Equal(t, cloud.OutboxDelivering, row.State, "still held by the dead process")
		require.Empty(t, as)
		w.wrap = nil
		w.run()
		time.Sleep(100 * time.Millisecond)
		w.stop()
		posts := w.a.Seen()
		require.Len(t, posts, 2)
		require.Equal(t, posts[0].Body, posts[1].Body)
		for _, h := range []string{"X-Webhook-Id", "X-Webhook-Event-Id", "X-Webhook-Attempt"} {
			require.Equal(t, posts[0].Head.Get(h), posts[1].Head.Get(h))
		}
		require.NotEqual(t, posts[0].Head.Get("X-Webhook-Delivery-Id"), posts[1].Head.Get("X-Webhook-Delivery-Id"))
		row, as = w.row(id)
		require.Equal(t, cloud.OutboxSuccess, row.State)
		require.Len(t, as, 1)
		w.close()
	})
}

// What was written while no sender ran is sent at start.
func TestStartsWithWhatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := &cloud.Changes{}
		for n := range 1500 {
			c.Outbox = append(c.Outbox, event(n+1))
		}
		w.write(c)
		w.run()
		time.Sleep(2 * time.Second)
		w.stop()
		require.Len(t, w.a.Seen(), 1500)
		w.close()
	})
}

// More than fits into a URL's memory waits in the store and loses nothing.
func TestOverflowGoesBackToTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		open := make(chan struct{})
		w.a.Reply = func(int, http.ResponseWriter) { <-open }
		d := w.run()
		synctest.Wait()
		const n = perURLWaiting + 200
		c := &cloud.Changes{}
		for i := range n {
			c.Outbox = append(c.Outbox, event(i+1))
		}
		w.write(c)
		time.Sleep(time.Second)
		d.mu.Lock()
		require.LessOrEqual(t, d.queues.count, perURLWaiting)
		d.mu.Unlock()
		close(open)
		time.Sleep(10 * time.Second)
		w.stop()
		seen := map[string]int{}
		for _, p := range w.a.Seen() {
			seen[p.Head.Get("X-Webhook-Id")]++
		}
		require.Len(t, seen, n)
		for id, times := range seen {
			require.Equal(t, 1, times, id)
		}
		rows, err := w.db.OutboxWaiting(t.Context())
		require.NoError(t, err)
		require.Empty(t, rows)
		w.close()
	})
}

// Deliveries about one reference go one by one, oldest first, and wait for the
// first retry of their predecessor; other references do not wait.
func TestOrderPerReference(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.a.Reply = func(n int, rw http.ResponseWriter) {
			time.Sleep(50 * time.Millisecond)
			if h := w.a.Seen()[n-1].Head; h.Get("X-Webhook-Id") == "PLE-810201" && h.Get("X-Webhook-Attempt") == "1" {
				rw.WriteHeader(500)
			}
		}
		w.run()
		synctest.Wait()
		c := &cloud.Changes{}
		for n := 1; n <= 6; n++ {
			o := event(n)
			o.Event.ReferenceID = []string{"same", "same", "same", "same", "other", "other"}[n-1]
			c.Outbox = append(c.Outbox, o)
		}
		w.write(c)
		time.Sleep(10 * time.Second)
		order := func() (ids []string) {
			for _, p := range w.a.Seen() {
				ids = append(ids, strings.TrimPrefix(p.Head.Get("X-Webhook-Id"), "PLE-81020"))
			}
			return ids
		}
		require.ElementsMatch(t, []string{"1", "5", "6"}, order(), "its successors wait for its first retry")
		time.Sleep(time.Minute)
		w.stop()
		got := order()
		require.Equal(t, []string{"1", "2", "3", "4"}, got[len(got)-4:])
		w.close()
	})
}

// Stopping lets what is in flight finish and stores it; the rest is given back.
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.a.Reply = func(int, http.ResponseWriter) { time.Sleep(3 * time.Second) }
		w.run()
		synctest.Wait()
		for range 8 {
			w.emit(nil)
		}
		time.Sleep(time.Second)
		begin := time.Now()
		w.stop()
		require.LessOrEqual(t, time.Since(begin), stopLimit)
		states := map[cloud.OutboxState]int{}
		for id := range 8 {
			row, _ := w.row(cloud.OutboxID(id + 1))
			require.Empty(t, row.LeaseOwner)
			states[row.State]++
		}
		require.Equal(t, map[cloud.OutboxState]int{cloud.OutboxSuccess: perURL, cloud.OutboxPending: 3}, states)
		w.close()
	})
}

// A receiver that hangs holds its own slots only.
func TestHangingReceiverDelaysNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := &fetchtest.Receiver{Reply: func(int, http.ResponseWriter) { time.Sleep(time.Hour) }}
		w.net.Serve[netip.AddrPortFrom(fetchtest.AddrB.Addr(), 80)] = b.Handle
		w.endpoint(func(e *cloud.Endpoint) { e.ID, e.URL = 4, "http://b.example.com/" })
		w.run()
		synctest.Wait()
		for n := range 40 {
			w.emit(func(o *cloud.OutboxWrite) { o.Deliveries[0].EndpointID = cloud.EndpointID(3 + n%2) })
		}
		time.Sleep(100 * time.Millisecond)
		require.Len(t, w.a.Seen(), 20)
		require.Len(t, b.Seen(), perURL)
		w.stop()
		w.close()
	})
}

// After ten failures in a row the receiver is left alone for 30 s, then probed
// with one delivery, and what waited goes out when that one succeeds.
func TestBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var mu sync.Mutex
		down := true
		w.a.Reply = func(_ int, rw http.ResponseWriter) {
			mu.Lock()
			defer mu.Unlock()
			if down {
				rw.WriteHeader(500)
			}
		}
		w.run()
		synctest.Wait()
		for range 30 {
			w.emit(nil)
		}
		time.Sleep(5 * time.Second)
		n := len(w.a.Seen())
		require.True(t, n >= 10 && n < 10+perURL, "%d attempts", n)
		mu.Lock()
		down = false
		mu.Unlock()
		time.Sleep(40 * time.Second)
		require.GreaterOrEqual(t, len(w.a.Seen()), 30)
		w.stop()
		for id := range 30 {
			row, as := w.row(cloud.OutboxID(id + 1))
			require.Equal(t, row.Attempts, len(as), "postponing is not an attempt")
		}
		require.Positive(t, w.count("webhook_postponed_total", "reason", "breaker"))
		w.close()
	})
}

func TestMetricsHaveNoAddresses(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := newMetrics(r)
	m.postponed.WithLabelValues("breaker").Inc()
	w := &cloud.OutboxWork{Event: cloud.OutboxEvent{Channel: cloud.ChannelLocker}}
	for _, code := range []string{fetch.CodeTimeout, fetch.CodeConnect, fetch.CodeTLS, fetch.CodeDNS, fetch.CodeBlocked} {
		m.attempt(w, &fetch.Answer{Code: code})
	}
	m.attempt(w, &fetch.Answer{Status: 503, Code: fetch.CodeStatus, Sent: time.Now()})
	families, err := r.Gather()
	require.NoError(t, err)
	var results []string
	for _, f := range families {
		for _, metric := range f.Metric {
			for _, l := range metric.Label {
				require.NotContains(t, l.GetValue(), "/")
				if l.GetName() == "result" {
					results = append(results, l.GetValue())
				}
			}
		}
	}
	slices.Sort(results)
	require.Equal(t, []string{"5xx", "blocked", "connect", "dns", "timeout", "tls"}, results)
}
