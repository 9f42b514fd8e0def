package sender

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/fetch/fetchtest"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signature"
)

// Another account names the same address, with a secret that the receiver
// refuses and a rate of nearly nothing: the address's owner gets its event at once.
func TestAnAddressIsEachAccountsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.a.Reply = func(n int, rw http.ResponseWriter) {
			p := w.a.Seen()[n-1]
			if _, err := signature.Verify(p.Head.Get, p.Body, p.At, secret); err != nil {
				rw.WriteHeader(http.StatusUnauthorized)
			}
		}
		w.endpoint(func(e *cloud.Endpoint) {
			e.ID, e.BusinessID, e.ProviderID, e.Secret, e.Rate, e.Burst = 9, 7, 18, []byte(nextSecret), 100, 100
		})
		d := w.run()
		synctest.Wait()
		stranger := func(o *cloud.OutboxWrite) {
			o.Event.BusinessID, o.Deliveries[0].BusinessID, o.Deliveries[0].EndpointID = 7, 7, 9
		}
		for range 40 {
			w.emit(stranger)
		}
		time.Sleep(5 * time.Second)
		refused := len(w.a.Seen())
		require.GreaterOrEqual(t, refused, 10)
		why, _ := d.Held(7, "http://a.example.com/hook?key=hidden")
		require.Equal(t, "breaker", why)
		why, _ = d.Held(42, "http://a.example.com/hook?key=hidden")
		require.Empty(t, why)
		own := w.emit(nil)
		time.Sleep(time.Second)
		row, _ := w.row(own)
		require.Equal(t, cloud.OutboxSuccess, row.State)
		w.stop()
		w.close()
	})
}

// What a receiver answers is stored, whatever bytes it is made of, and holds up
// no other delivery's outcome.
func TestAnswersOfAnyBytesAreStored(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *store.DB) {
		n, well := fetchtest.NewNetwork(), &fetchtest.Receiver{}
		n.Serve[netip.AddrPortFrom(fetchtest.AddrA.Addr(), 80)] = func(c net.Conn) {
			if fetchtest.ReadPost(c) {
				fmt.Fprint(c, "HTTP/1.1 503 No\r\nRetry-After: \xff\xfe\r\nWebhook-Delivery: \xff\r\nX-A: \xff\r\nLocation: \xff\r\nContent-Type: \xff\r\nContent-Length: 3\r\n\r\n\xff\x00a")
			}
		}
		n.Serve[netip.AddrPortFrom(fetchtest.AddrB.Addr(), 80)] = well.Handle
		c := &cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{
			{ID: 3, BusinessID: 42, ProviderID: 17, URL: "http://a.example.com/", Enabled: true, Status: "healthy", Secret: []byte(secret)},
			{ID: 4, BusinessID: 43, ProviderID: 18, URL: "http://b.example.com/", Enabled: true, Status: "healthy", Secret: []byte(secret)}}}}
		bad, good := event(1), event(2)
		good.Deliveries[0].EndpointID, good.Deliveries[0].BusinessID = 4, 43
		c.Outbox = []cloud.OutboxWrite{bad, good}
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		d := New(Config{Store: db, Guard: fetch.NewGuard(fetch.GuardConfig{HTTP: true}), Resolver: n, Dial: n.Dial, Logger: slog.New(slog.DiscardHandler)})
		go func() { ended <- d.Run(ctx) }()
		ring.Await(t, func() bool {
			b, err := db.FindOutbox(t.Context(), 1)
			require.NoError(t, err)
			g, err := db.FindOutbox(t.Context(), 2)
			require.NoError(t, err)
			return b.Delivery.State == cloud.OutboxRetrying && b.Delivery.Attempts == 1 && g.Delivery.State == cloud.OutboxSuccess
		})
		cancel()
		require.NoError(t, <-ended)
		n.Handlers.Wait()
		as, err := db.OutboxAttempts(t.Context(), 1)
		require.NoError(t, err)
		require.Len(t, as, 1)
		require.Equal(t, 503, as[0].HTTPStatus)
	})
}

// What is sent to a sandbox address, whatever it answers, is nothing to the
// address of live events, and neither is a sandbox event that goes there.
func TestASandboxSaysNothingOfTheRest(t *testing.T) {
	t.Parallel()
	for name, sandbox := range map[string]string{"own address": "http://b.example.com/", "the same": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, box := newWorld(t), &fetchtest.Receiver{}
				w.net.Serve[netip.AddrPortFrom(fetchtest.AddrB.Addr(), 80)] = box.Handle
				tested := func(n int, rw http.ResponseWriter) {
					switch n {
					case 1:
						rw.WriteHeader(http.StatusGone)
					case 2:
						rw.Header().Set("Webhook-Delivery", "disable")
						rw.WriteHeader(http.StatusInternalServerError)
					}
				}
				if box.Reply = tested; sandbox == "" {
					w.a.Reply = tested
				}
				w.endpoint(func(e *cloud.Endpoint) { e.SandboxURL = sandbox })
				w.run()
				synctest.Wait()
				test := func(o *cloud.OutboxWrite) { o.Event.Test = true }
				status := func() string {
					e, err := w.db.FindEndpoint(t.Context(), 3)
					require.NoError(t, err)
					return e.Status
				}
				for _, want := range []string{ReasonGone, ReasonAborted, ""} {
					id := w.emit(test)
					time.Sleep(12 * time.Second) // the address is new
					row, _ := w.row(id)
					require.Equal(t, want, row.Reason)
					require.Equal(t, "healthy", status())
				}
				require.NoError(t, w.db.SetEndpointStatus(t.Context(), 3, "gone", "", time.Now()))
				w.emit(test)
				time.Sleep(12 * time.Second) // the address is new
				require.Equal(t, "gone", status(), "a test that is taken well heals nothing")
				w.emit(nil)
				time.Sleep(12 * time.Second) // the address is new
				require.Equal(t, "healthy", status())
				w.stop()
				w.close()
			})
		})
	}
}

// What a pause keeps goes on when the pause is over, also what was kept too late to
// be let go with the rest; and it ends when nothing goes to the receiver any more.
func TestNothingStaysKeptWithoutAPause(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *store.DB) {
		n, r := fetchtest.NewNetwork(), &fetchtest.Receiver{}
		n.Serve[netip.AddrPortFrom(fetchtest.AddrA.Addr(), 80)] = r.Handle
		c := &cloud.Changes{}
		for id, change := range map[cloud.EndpointID]func(*cloud.Endpoint){1: func(*cloud.Endpoint) {}, 2: func(e *cloud.Endpoint) { e.Status = "paused" },
			3: func(e *cloud.Endpoint) { e.Status, e.Enabled = "paused", false }, 4: func(e *cloud.Endpoint) { e.Status = "gone" },
			6: func(e *cloud.Endpoint) { e.StatusSince = time.Now() }} {
			e := cloud.Endpoint{ID: id, BusinessID: 42, ProviderID: 17, URL: fmt.Sprint("http://a.example.com/", id), Enabled: true, Status: "healthy", Secret: []byte(secret)}
			change(&e)
			c.Endpoints = append(c.Endpoints, e)
		}
		for i := range 6 { // of the fifth receiver nothing is known any more, and who resumed the sixth has not decided what is to come of this
			o := event(i + 1)
			o.Deliveries[0].EndpointID, o.Deliveries[0].State, o.Deliveries[0].Reason = cloud.EndpointID(i+1), cloud.OutboxPaused, ReasonPaused
			c.Outbox = append(c.Outbox, o)
		}
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		d := New(Config{Store: db, Guard: fetch.NewGuard(fetch.GuardConfig{HTTP: true}), Resolver: n, Dial: n.Dial, Logger: slog.New(slog.DiscardHandler)})
		go func() { ended <- d.Run(ctx) }()
		want := map[cloud.OutboxID]string{1: "success ", 2: "paused paused", 3: "failed endpoint_disabled", 4: "success ", 5: "failed endpoint_removed", 6: "paused paused"}
		got := map[cloud.OutboxID]string{}
		ring.Await(t, func() bool {
			for id := range want {
				w, err := db.FindOutbox(t.Context(), id)
				require.NoError(t, err)
				got[id] = fmt.Sprint(w.Delivery.State, " ", w.Delivery.Reason)
			}
			return maps.Equal(got, want)
		})
		cancel()
		require.NoError(t, <-ended)
		n.Handlers.Wait()
		require.Len(t, r.Seen(), 2)
	})
}

// onEach runs a test on a new SQLite and on a schema of its own on PostgreSQL.
func onEach(t *testing.T, run func(t *testing.T, db *store.DB)) {
	for name, cfg := range map[string]func(t *testing.T) store.Config{
		"SQLite":     func(t *testing.T) store.Config { return store.Config{Dir: storetest.MigratedDir(t)} },
		"PostgreSQL": func(t *testing.T) store.Config { return store.Config{URL: storetest.SecondPostgresURL(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cfg(t)
			c.Instance, c.Box = "n1", storetest.Box(t)
			run(t, storetest.Open(t, c))
		})
	}
}

// A receiver that gets another address has to answer well there before it is sent
// much; that it has done so elsewhere does not count, neither for its sandbox.
func TestANewAddressIsProvenAnew(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]bool{"another address": false, "sandbox": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, victim := newWorld(t), &fetchtest.Receiver{Reply: func(_ int, rw http.ResponseWriter) { rw.WriteHeader(404) }}
				w.net.Serve[netip.AddrPortFrom(fetchtest.AddrB.Addr(), 80)] = victim.Handle
				w.run()
				synctest.Wait()
				w.emit(nil)
				time.Sleep(time.Second)
				require.Len(t, w.a.Seen(), 1)
				e, err := w.db.FindEndpoint(t.Context(), 3)
				require.NoError(t, err)
				if e.SandboxURL = "http://b.example.com/victim"; !test {
					e.URL = e.SandboxURL
				}
				w.write(&cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{e}}})
				for range 20 {
					w.emit(func(o *cloud.OutboxWrite) { o.Event.Test = test })
				}
				time.Sleep(35 * time.Second)
				n := len(victim.Seen())
				require.True(t, n >= 3 && n <= 4, "%d attempts in 35 s", n)
				w.stop()
				w.close()
			})
		})
	}
}

// After a pause a streak of failures begins anew: the first failure is not the one
// that pauses again.
func TestAResumedReceiverHasAnotherChance(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *store.DB) {
		e := cloud.Endpoint{ID: 3, BusinessID: 42, ProviderID: 17, URL: "http://a.example.com/", Enabled: true, Status: "healthy", Secret: []byte(secret)}
		save := func() {
			require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{e}}}, nil
			}))
		}
		note := func(tally cloud.EndpointTally) cloud.EndpointHealth {
			tally.EndpointID = 3
			_, err := db.NoteHealth(t.Context(), []cloud.EndpointTally{tally})
			require.NoError(t, err)
			h, err := db.FindHealth(t.Context(), 3)
			require.NoError(t, err)
			return h
		}
		now := time.Now().Truncate(time.Millisecond)
		save()
		note(cloud.EndpointTally{SucceededAt: now.Add(-50 * time.Hour)})
		failures := func(n int, at time.Time) cloud.EndpointTally {
			return cloud.EndpointTally{FailedAt: at, FailingSince: at, Streak: n, Attempts: n, Failures: n}
		}
		require.Equal(t, 100, min(towardsPause(note(failures(60, now.Add(-40*time.Hour))), now), 100))
		_, err := db.PauseEndpoint(t.Context(), 3, now, cloud.Audit{BusinessID: 42, At: now})
		require.NoError(t, err)
		e.Status = "paused"
		save()
		require.Equal(t, 61, note(failures(1, now)).Failures, "it is paused still")
		e.Status = "healthy"
		save()
		h := note(failures(1, now))
		require.Equal(t, 1, h.Failures)
		require.Less(t, towardsPause(h, now), 50)
		require.False(t, h.SucceededAt.IsZero(), "it is no stranger")
		e.Secret = []byte(nextSecret)
		save()
		require.Equal(t, 2, note(failures(1, now)).Failures, "what has nothing to do with it changes nothing")
		e.URL = "http://b.example.com/"
		save()
		h = note(failures(1, now))
		require.Equal(t, 1, h.Failures)
		require.True(t, h.SucceededAt.IsZero(), "of another address nothing is known")
	})
}

// The settings of a receiver, its secret among them, do not stay in memory.
func TestSettingsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		d := w.run()
		synctest.Wait()
		known := func() int {
			d.mu.Lock()
			defer d.mu.Unlock()
			return len(d.endpoints)
		}
		w.emit(nil)
		time.Sleep(10 * time.Second)
		require.Equal(t, 1, known())
		time.Sleep(2 * tidyEvery)
		require.Zero(t, known())
		w.emit(nil)
		time.Sleep(10 * time.Second)
		require.Len(t, w.a.Seen(), 2)
		w.stop()
		w.close()
	})
}

// tidySignal says when old secrets have been dropped: endpoints and settings are
// two statements, and between them a reader sees one of each.
type tidySignal struct {
	*store.DB
	dropped chan struct{} // of capacity 1
}

func (s *tidySignal) DropOldSecrets(ctx context.Context, now time.Time) error {
	err := s.DB.DropOldSecrets(ctx, now)
	select {
	case s.dropped <- struct{}{}:
	default:
	}
	return err
}

// A secret whose successor has taken its place is kept nowhere; one that signs
// beside its successor stays.
func TestOldSecretsAreDropped(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *store.DB) {
		c, now := &cloud.Changes{}, time.Now().Truncate(time.Millisecond)
		for i, until := range []time.Time{now.Add(-time.Minute), now.Add(time.Hour), {}} {
			e := cloud.Endpoint{ID: cloud.EndpointID(i + 1), BusinessID: 42, ProviderID: 17, URL: "http://a.example.com/", Enabled: true, Status: "healthy", Secret: []byte(secret), NextUntil: until}
			l := cloud.WebhookSettings{BusinessID: 42, CustomerID: cloud.AccountID(i + 1), Secret: []byte(secret), NextUntil: until}
			if !until.IsZero() {
				e.SecretNext, l.SecretNext = []byte(nextSecret), []byte(nextSecret)
			}
			c.Endpoints, c.WebhookSettings = append(c.Endpoints, e), append(c.WebhookSettings, l)
		}
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		tidied := &tidySignal{DB: db, dropped: make(chan struct{}, 1)}
		d := New(Config{Store: tidied, Guard: fetch.NewGuard(fetch.GuardConfig{}), Logger: slog.New(slog.DiscardHandler)})
		go func() { ended <- d.Run(ctx) }()
		<-tidied.dropped
		secrets := func(i int) (out []string) {
			e, err := db.FindEndpoint(t.Context(), cloud.EndpointID(i))
			require.NoError(t, err)
			var l cloud.WebhookSettings
			require.NoError(t, db.Look(t.Context(), func(v cloud.View) (err error) {
				l, err = v.WebhookSettings(42, cloud.AccountID(i))
				return err
			}))
			require.Equal(t, e.NextUntil, l.NextUntil)
			return []string{string(e.Secret), string(e.SecretNext), string(l.Secret), string(l.SecretNext)}
		}
		require.Equal(t, []string{nextSecret, "", nextSecret, ""}, secrets(1))
		require.Equal(t, []string{secret, nextSecret, secret, nextSecret}, secrets(2))
		require.Equal(t, []string{secret, "", secret, ""}, secrets(3))
		cancel()
		require.NoError(t, <-ended)
	})
}

// A pause that begins while an attempt is in flight stays, whatever the receiver
// answers.
func TestAnAnswerEndsNoPause(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusGone, http.StatusOK} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.a.Reply = func(_ int, rw http.ResponseWriter) {
					time.Sleep(5 * time.Second)
					rw.WriteHeader(status)
				}
				w.endpoint(func(e *cloud.Endpoint) { e.Status = "gone" })
				if status == http.StatusGone {
					w.endpoint(func(*cloud.Endpoint) {})
				}
				w.run()
				synctest.Wait()
				w.emit(nil)
				time.Sleep(time.Second)
				w.endpoint(func(e *cloud.Endpoint) { e.Status, e.StatusReason = "paused", cloud.PausedByHand })
				time.Sleep(10 * time.Second)
				require.Len(t, w.a.Seen(), 1)
				e, err := w.db.FindEndpoint(t.Context(), 3)
				require.NoError(t, err)
				require.Equal(t, []string{"paused", cloud.PausedByHand}, []string{e.Status, e.StatusReason})
				w.stop()
				w.close()
			})
		})
	}
}

// choosy is a slow store that takes no outcome of one delivery.
type choosy struct{ Store }

func (c choosy) FinishOutbox(ctx context.Context, rs []cloud.OutboxResult) ([]cloud.OutboxID, error) {
	time.Sleep(time.Second) // others come to an end meanwhile
	if slices.ContainsFunc(rs, func(r cloud.OutboxResult) bool { return r.ID == 3 }) {
		return nil, errors.New("no")
	}
	return c.Store.FinishOutbox(ctx, rs)
}

// An outcome that the database refuses takes no other with it.
func TestOneOutcomeIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.wrap = func(s Store) Store { return choosy{s} }
		w.run()
		synctest.Wait()
		for range 5 {
			w.emit(nil)
		}
		time.Sleep(30 * time.Second)
		times := map[string]int{}
		for _, p := range w.a.Seen() {
			times[p.Head.Get("X-Webhook-Id")]++
		}
		for _, id := range []cloud.OutboxID{1, 2, 4, 5} {
			row, as := w.row(id)
			require.Equal(t, cloud.OutboxSuccess, row.State)
			require.Len(t, as, 1)
			require.Equal(t, 1, times[row.WebhookID])
		}
		w.stop()
		w.close()
	})
}

// What is written about a sender's work tells no secret, no key in an address, no
// code and no body; and its metrics have the labels that they are to have, with
// values of which there are few.
func TestLogAndMetricsTellNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, log := newWorld(t), &fetchtest.Log{}
		w.log, w.waits = log.Logger(), []time.Duration{time.Second}
		w.a.Reply = func(n int, rw http.ResponseWriter) {
			rw.Header().Set("Retry-After", "soon")
			rw.WriteHeader([]int{200, 500, 404, 700, 410, 503}[n%6])
		}
		w.net.Names["inside.example.com"] = fetchtest.Addrs("10.0.0.1")
		for i, url := range []string{"http://inside.example.com/?key=hidden", "http://nowhere.example.com/hidden", "ftp://hidden"} {
			w.endpoint(func(e *cloud.Endpoint) { e.ID, e.URL = cloud.EndpointID(10+i), url })
		}
		w.endpoint(func(e *cloud.Endpoint) {
			e.SecretNext, e.NextUntil, e.Format, e.Signature, e.SigningKey = []byte(nextSecret), time.Now().Add(time.Hour), cloud.FormatStructured, cloud.SignatureAsymmetric, seed()
		})
		w.endpoint(func(e *cloud.Endpoint) { e.ID, e.Secret = 20, nil })
		d := w.run()
		synctest.Wait()
		for i := range 40 {
			w.emit(func(o *cloud.OutboxWrite) {
				o.Event.Body, o.Event.Test = []byte(`{"pickup_code":"550618"}`), i%7 == 0
				o.Deliveries[0].EndpointID = []cloud.EndpointID{3, 3, 3, 10, 11, 12, 20, 99}[i%8]
			})
		}
		time.Sleep(10 * time.Minute)
		w.direct(d, nil)
		w.stop()
		require.NotEmpty(t, log.String())
		for _, hidden := range []string{secret, nextSecret, string(seed()), "hidden", "550618", "pickup_code"} {
			require.NotContains(t, log.String(), hidden)
		}
		families, err := w.metrics.Gather()
		require.NoError(t, err)
		allowed := map[string][]string{"channel": cloud.Channels(), "event": {"locker_delivery.delivered"}, "reused": {"true", "false"}, "kind": {"result"},
			"result": {"2xx", "3xx", "4xx", "5xx", "timeout", "connect", "tls", "dns", "blocked", "other"}, "outcome": {"success", "failed", "dead", "gone"},
			"phase": {"dns", "connect", "tls", "first_byte", "total"}, "state": {"pending", "delivering", "retrying"}, "status": {"healthy", "paused", "gone"},
			"reason": {waitRate, waitBreaker, waitAfter}}
		for _, f := range families {
			for _, m := range f.Metric {
				for _, l := range m.Label {
					require.Contains(t, allowed[l.GetName()], l.GetValue(), "%s %s", f.GetName(), l.GetName())
				}
			}
		}
		w.close()
	})
}
