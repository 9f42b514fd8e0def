package sender

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/fetch/fetchtest"
)

func TestTowardsPause(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f := func(since time.Duration, failures, want int) {
		t.Helper()
		require.Equal(t, want, towardsPause(cloud.EndpointHealth{FailingSince: now.Add(-since), Failures: failures}, now))
	}
	day := 24 * time.Hour
	f(0, 0, 0)
	f(day, 49, 98)
	f(day, 50, 100)
	f(day-time.Minute, 1000, 99)
	f(12*time.Hour, 25, 50)
	f(5*day, 9, 90)
	f(5*day, 10, 100)
	f(5*day-time.Hour, 10, 99)
	f(30*day, 9, 90)
	f(30*day, 1, 10)
	require.Zero(t, towardsPause(cloud.EndpointHealth{}, now), "a success has cleared it")
}

// actions are the audit lines of what the sender reported to an owner, oldest first.
func (w *world) actions() (out []string) {
	lines, err := w.db.ListAudits(context.Background(), 42, 0, 1000)
	require.NoError(w.t, err)
	for i := range lines {
		out = append(out, lines[len(lines)-1-i].Action)
	}
	return out
}

// A receiver that does nothing but fail for a day is paused after three
// warnings; what comes then is kept, and sent when the pause ends. One success
// in between would have begun anew.
func TestPauseWarnsKeepsAndResumes(t *testing.T) {
	t.Parallel()
	for _, failed := range []bool{false, true} {
		t.Run(fmt.Sprint("ended as failed ", failed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				for range 7 { // attempts enough
					w.waits = append(w.waits, 20*time.Minute)
				}
				var well atomic.Bool
				w.a.Reply = func(_ int, rw http.ResponseWriter) {
					if !well.Load() {
						rw.WriteHeader(404)
					}
				}
				hour := func() { // nothing runs for most of it: that is quicker
					w.run()
					synctest.Wait()
					for range 3 {
						w.emit(nil)
					}
					time.Sleep(10 * time.Second)
					w.stop()
					time.Sleep(time.Hour - 10*time.Second)
				}
				for range 11 { // half a day of failures, then a success: nothing is left of it
					hour()
				}
				health := func() []string {
					return slices.DeleteFunc(w.actions(), func(a string) bool { return a == "webhook_given_up" })
				}
				require.Empty(t, health())
				well.Store(true)
				hour()
				h, err := w.db.FindHealth(t.Context(), 3)
				require.NoError(t, err)
				require.Zero(t, h.Failures)
				well.Store(false)
				e := cloud.Endpoint{}
				for hours := 0; e.Status != "paused"; hours++ {
					require.Less(t, hours, 30)
					hour()
					e, err = w.db.FindEndpoint(t.Context(), 3)
					require.NoError(t, err)
					if hours < 23 {
						require.NotEqual(t, "paused", e.Status, "after %d hours", hours)
					}
				}
				require.Equal(t, []string{"webhook_url_failing", "webhook_url_failing", "webhook_url_failing", "webhook_url_paused"}, health())
				w.run()
				synctest.Wait()
				seen := len(w.a.Seen())
				kept := w.emit(nil)
				time.Sleep(time.Minute)
				require.Len(t, w.a.Seen(), seen, "nothing is sent")
				row, _ := w.row(kept)
				require.Equal(t, cloud.OutboxPaused, row.State)
				well.Store(true)
				e.Status, e.StatusSince = "healthy", time.Now()
				w.write(&cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{e}}})
				reason := ""
				if failed {
					reason = "given_up"
				}
				require.NoError(t, w.db.EndPause(t.Context(), 3, time.Now(), reason))
				time.Sleep(time.Minute)
				row, _ = w.row(kept)
				if failed {
					require.Equal(t, []any{cloud.OutboxFailed, "given_up", seen}, []any{row.State, row.Reason, len(w.a.Seen())})
				} else {
					require.Equal(t, cloud.OutboxSuccess, row.State)
				}
				w.stop()
				w.close()
			})
		})
	}
}

// Sandbox events and sends by hand say nothing about a receiver's health.
func TestTestsDoNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.a.Reply = func(_ int, rw http.ResponseWriter) { rw.WriteHeader(500) }
		d := w.run()
		synctest.Wait()
		w.emit(func(o *cloud.OutboxWrite) { o.Event.Test = true })
		w.direct(d, nil)
		time.Sleep(time.Minute)
		w.stop()
		h, err := w.db.FindHealth(t.Context(), 3)
		require.NoError(t, err)
		require.Zero(t, h.Failures)
		require.True(t, h.FailedAt.IsZero())
		w.close()
	})
}

// A receiver may end the attempts of one delivery, or have all of them kept.
func TestReceiversAskForLess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.a.Reply = func(n int, rw http.ResponseWriter) {
			rw.Header().Set("Webhook-Delivery", []string{"abort", "disable", ""}[min(n, 3)-1])
			rw.WriteHeader(500)
		}
		w.run()
		synctest.Wait()
		aborted := w.emit(nil)
		time.Sleep(time.Hour)
		disabled := w.emit(nil)
		time.Sleep(time.Minute)
		later := w.emit(nil)
		time.Sleep(time.Hour)
		w.stop()
		require.Len(t, w.a.Seen(), 2)
		for id, want := range map[cloud.OutboxID][]any{aborted: {cloud.OutboxDead, ReasonAborted}, disabled: {cloud.OutboxPaused, ReasonPaused}, later: {cloud.OutboxPaused, ReasonPaused}} {
			row, _ := w.row(id)
			require.Equal(t, want, []any{row.State, row.Reason})
		}
		w.close()
	})
}

// An address that never answered well gets one attempt in ten seconds, however
// much there is for it; the first good answer lets the rest go.
func TestUnprovenReceiversAreNotFlooded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var well atomic.Bool
		w.a.Reply = func(_ int, rw http.ResponseWriter) {
			if !well.Load() {
				rw.WriteHeader(500)
			}
		}
		e := cloud.Endpoint{ID: 8, BusinessID: 42, ProviderID: 17, URL: "http://a.example.com/new", SandboxEnabled: true, Secret: []byte(secret), Enabled: true, Status: "healthy"}
		w.write(&cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{e}}})
		w.run()
		synctest.Wait()
		var last cloud.OutboxID
		for range 20 {
			last = w.emit(func(o *cloud.OutboxWrite) { o.Deliveries[0].EndpointID = 8 })
		}
		time.Sleep(35 * time.Second)
		n := len(w.a.Seen())
		require.True(t, n >= 3 && n <= 4, "%d attempts in 35 s", n)
		require.Positive(t, w.count("webhook_postponed_total", "reason", "rate"))
		well.Store(true)
		time.Sleep(2 * time.Minute)
		row, as := w.row(last)
		require.Equal(t, cloud.OutboxSuccess, row.State)
		require.Equal(t, waitRate, as[0].WaitReason, "the log says what it waited for")
		require.True(t, as[0].PlannedAt.Equal(row.CreatedAt))
		w.stop()
		w.close()
	})
}

// Given-up deliveries are reported to their owner once in an hour.
func TestOwnersHearOfDeadLetters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.endpoint(func(e *cloud.Endpoint) { e.URL = "http://10.0.0.1/" })
		w.run()
		synctest.Wait()
		for range 5 {
			w.emit(nil)
			time.Sleep(time.Minute)
		}
		require.Equal(t, []string{"webhook_given_up"}, w.actions())
		time.Sleep(time.Hour)
		w.emit(nil)
		time.Sleep(time.Minute)
		require.Len(t, w.actions(), 2)
		w.stop()
		w.close()
	})
}

// direct sends one delivery by hand, as its writer, and gives its id.
func (w *world) direct(d *Dispatcher, change func(*cloud.Endpoint, *cloud.OutboxWrite)) (cloud.OutboxID, cloud.OutboxResult) {
	w.n++
	o := event(w.n)
	o.Event.Test = true
	o.Deliveries[0].State, o.Deliveries[0].MaxAttempts, o.Deliveries[0].EndpointID = cloud.OutboxDelivering, 1, 0
	ep := cloud.Endpoint{BusinessID: 42, URL: "http://a.example.com/try", SandboxEnabled: true, Secret: []byte(secret), Enabled: true, Status: "healthy"}
	if change != nil {
		change(&ep, &o)
	}
	o.Deliveries[0].URL = ep.URL
	w.write(&cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{o}}})
	r, err := d.SendNow(context.Background(), ep, cloud.OutboxWork{Event: o.Event, Delivery: o.Deliveries[0]}, cloud.HookTweak{})
	require.NoError(w.t, err)
	return o.Deliveries[0].ID, r
}

// What is sent by hand goes once, past the queues of its address, and is in the
// log whatever came of it.
func TestSentByHand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		status := 200
		w.a.Reply = func(_ int, rw http.ResponseWriter) { rw.WriteHeader(status) }
		d := w.run()
		synctest.Wait()
		check := func(change func(*cloud.Endpoint, *cloud.OutboxWrite), state cloud.OutboxState, code string, posts, attempts int) {
			t.Helper()
			seen := len(w.a.Seen())
			id, r := w.direct(d, change)
			require.Equal(t, state, r.State)
			require.Len(t, w.a.Seen(), seen+posts)
			row, as := w.row(id)
			require.Equal(t, []any{state, "", true}, []any{row.State, row.LeaseOwner, row.NextAt.IsZero()})
			require.Len(t, as, attempts)
			if attempts > 0 {
				require.Equal(t, code, as[0].ErrorCode)
			}
		}
		check(nil, cloud.OutboxSuccess, "", 1, 1)
		p := w.a.Seen()[0]
		require.Equal(t, []string{"1", "1"}, []string{p.Head.Get("X-Webhook-Test"), p.Head.Get("X-Webhook-Attempt")})
		status = 503
		check(nil, cloud.OutboxFailed, fetch.CodeStatus, 1, 1)
		check(func(e *cloud.Endpoint, _ *cloud.OutboxWrite) { e.URL = "http://169.254.169.254/latest" }, cloud.OutboxFailed, fetch.CodeBlocked, 0, 1)
		check(func(e *cloud.Endpoint, _ *cloud.OutboxWrite) { e.SandboxEnabled = false }, cloud.OutboxFailed, "", 0, 0)
		check(func(e *cloud.Endpoint, _ *cloud.OutboxWrite) { e.Secret = nil }, cloud.OutboxFailed, "", 0, 0)
		check(func(e *cloud.Endpoint, _ *cloud.OutboxWrite) { e.URL = "http://nowhere.example.com/" }, cloud.OutboxFailed, fetch.CodeDNS, 0, 1)
		time.Sleep(10 * time.Minute)
		require.Len(t, w.a.Seen(), 2, "nothing is tried again")
		require.Zero(t, w.count("webhook_emitted_total", "channel", cloud.ChannelLocker), "no business")
		w.stop()
		w.close()
	})
}

// The log is kept for thirty days; attempts say how long each part took.
func TestTheLogIsKeptForThirtyDays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.a.Reply = func(int, http.ResponseWriter) { time.Sleep(70 * time.Millisecond) }
		w.run()
		synctest.Wait()
		id := w.emit(nil)
		time.Sleep(time.Second)
		_, as := w.row(id)
		require.Equal(t, 70*time.Millisecond, as[0].FirstByte)
		require.Equal(t, 70*time.Millisecond, as[0].Duration)
		require.Zero(t, as[0].TLS)
		require.Empty(t, as[0].WaitReason)
		w.stop()
		time.Sleep(29 * 24 * time.Hour)
		young := w.emit(nil)
		time.Sleep(24 * time.Hour)
		w.run()
		time.Sleep(time.Second)
		_, err := w.db.FindOutbox(t.Context(), id)
		require.ErrorIs(t, err, cloud.ErrNotFound)
		_, as = w.row(young)
		require.Len(t, as, 1)
		w.stop()
		w.close()
	})
}

// One flood and one receiver that hangs, of two accounts, beside eighteen
// healthy ones of others: each of those gets all of its own within the second.
func TestAFloodAndAHangDelayNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.a.Reply = func(int, http.ResponseWriter) { time.Sleep(20 * time.Millisecond) }
		b := &fetchtest.Receiver{Reply: func(int, http.ResponseWriter) { time.Sleep(time.Hour) }}
		w.net.Serve[netip.AddrPortFrom(fetchtest.AddrB.Addr(), 80)] = b.Handle
		const flood, hang = 100, 101
		for n := range 20 {
			w.endpoint(func(e *cloud.Endpoint) {
				e.ID, e.BusinessID, e.URL = cloud.EndpointID(flood+n), cloud.BusinessID(flood+n), fmt.Sprint("http://a.example.com/", n)
				if e.ID == hang {
					e.URL = "http://b.example.com/"
				}
			})
		}
		w.run()
		synctest.Wait()
		emit := func(n int, endpoint cloud.EndpointID) {
			c := &cloud.Changes{}
			for range n {
				w.n++
				o := event(w.n)
				o.Deliveries[0].EndpointID, o.Deliveries[0].BusinessID, o.Event.BusinessID = endpoint, cloud.BusinessID(endpoint), cloud.BusinessID(endpoint)
				c.Outbox = append(c.Outbox, o)
			}
			w.write(c)
		}
		emit(1500, flood)
		emit(200, hang)
		for n := 2; n < 20; n++ {
			emit(10, cloud.EndpointID(flood+n))
		}
		time.Sleep(time.Second)
		times := map[string]int{}
		for _, p := range w.a.Seen() {
			times[p.Path]++
		}
		for n := 2; n < 20; n++ {
			require.Equal(t, 10, times[fmt.Sprint("/", n)])
		}
		require.InDelta(t, 250, times["/0"], 15, "the flood has its own five slots, no more")
		require.Len(t, b.Seen(), perURL)
		w.stop()
		w.close()
	})
}
