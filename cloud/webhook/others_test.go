package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/protocol/signature"
)

// Another account names the same address, with a secret that the receiver
// refuses and a rate of nearly nothing: whose address it is hears at once.
func TestAnAddressIsEachAccountsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.a.reply = func(n int, rw http.ResponseWriter) {
			p := w.a.seen()[n-1]
			if _, err := signature.Verify(p.head.Get, p.body, p.at, secret); err != nil {
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
		refused := len(w.a.seen())
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
// nobody else's outcome.
func TestAnswersOfAnyBytesAreStored(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *store.DB) {
		n, well := newNet(), &receiver{}
		n.serve[netip.AddrPortFrom(addrA.Addr(), 80)] = func(c net.Conn) {
			if readPost(c) {
				fmt.Fprint(c, "HTTP/1.1 503 No\r\nRetry-After: \xff\xfe\r\nWebhook-Delivery: \xff\r\nX-A: \xff\r\nLocation: \xff\r\nContent-Type: \xff\r\nContent-Length: 3\r\n\r\n\xff\x00a")
			}
		}
		n.serve[netip.AddrPortFrom(addrB.Addr(), 80)] = well.handle
		c := &cloud.Changes{Endpoints: []cloud.Endpoint{
			{ID: 3, BusinessID: 42, ProviderID: 17, URL: "http://a.example.com/", Enabled: true, Status: "healthy", Secret: []byte(secret)},
			{ID: 4, BusinessID: 43, ProviderID: 18, URL: "http://b.example.com/", Enabled: true, Status: "healthy", Secret: []byte(secret)}}}
		bad, good := event(1), event(2)
		good.Deliveries[0].EndpointID, good.Deliveries[0].BusinessID = 4, 43
		c.Outbox = []cloud.OutboxWrite{bad, good}
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		d := New(Config{Store: db, Guard: NewGuard(GuardConfig{HTTP: true}), Resolver: n, Dial: n.dial, Logger: slog.New(slog.DiscardHandler)})
		go func() { ended <- d.Run(ctx) }()
		require.Eventually(t, func() bool {
			b, err := db.FindOutbox(t.Context(), 1)
			require.NoError(t, err)
			g, err := db.FindOutbox(t.Context(), 2)
			require.NoError(t, err)
			return b.Delivery.State == cloud.OutboxRetrying && b.Delivery.Attempts == 1 && g.Delivery.State == cloud.OutboxSuccess
		}, 10*time.Second, 20*time.Millisecond)
		cancel()
		require.NoError(t, <-ended)
		n.wg.Wait()
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
				w, box := newWorld(t), &receiver{}
				w.net.serve[netip.AddrPortFrom(addrB.Addr(), 80)] = box.handle
				tested := func(n int, rw http.ResponseWriter) {
					switch n {
					case 1:
						rw.WriteHeader(http.StatusGone)
					case 2:
						rw.Header().Set("Webhook-Delivery", "disable")
						rw.WriteHeader(http.StatusInternalServerError)
					}
				}
				if box.reply = tested; sandbox == "" {
					w.a.reply = tested
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
					time.Sleep(2 * time.Second)
					row, _ := w.row(id)
					require.Equal(t, want, row.Reason)
					require.Equal(t, "healthy", status())
				}
				require.NoError(t, w.db.SetEndpointStatus(t.Context(), 3, "gone", "", time.Now()))
				w.emit(test)
				time.Sleep(2 * time.Second)
				require.Equal(t, "gone", status(), "a test that is taken well heals nothing")
				w.emit(nil)
				time.Sleep(2 * time.Second)
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
		n, r := newNet(), &receiver{}
		n.serve[netip.AddrPortFrom(addrA.Addr(), 80)] = r.handle
		c := &cloud.Changes{}
		for id, change := range map[cloud.EndpointID]func(*cloud.Endpoint){1: func(*cloud.Endpoint) {}, 2: func(e *cloud.Endpoint) { e.Status = "paused" },
			3: func(e *cloud.Endpoint) { e.Status, e.Enabled = "paused", false }, 4: func(e *cloud.Endpoint) { e.Status = "gone" }} {
			e := cloud.Endpoint{ID: id, BusinessID: 42, ProviderID: 17, URL: fmt.Sprint("http://a.example.com/", id), Enabled: true, Status: "healthy", Secret: []byte(secret)}
			change(&e)
			c.Endpoints = append(c.Endpoints, e)
		}
		for i := range 5 { // of the fifth receiver nothing is known any more
			o := event(i + 1)
			o.Deliveries[0].EndpointID, o.Deliveries[0].State, o.Deliveries[0].Reason = cloud.EndpointID(i+1), cloud.OutboxPaused, ReasonPaused
			c.Outbox = append(c.Outbox, o)
		}
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		d := New(Config{Store: db, Guard: NewGuard(GuardConfig{HTTP: true}), Resolver: n, Dial: n.dial, Logger: slog.New(slog.DiscardHandler)})
		go func() { ended <- d.Run(ctx) }()
		want := map[cloud.OutboxID]string{1: "success ", 2: "paused paused", 3: "failed endpoint_disabled", 4: "success ", 5: "failed endpoint_removed"}
		got := map[cloud.OutboxID]string{}
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) && !maps.Equal(got, want); time.Sleep(50 * time.Millisecond) {
			for id := range want {
				w, err := db.FindOutbox(t.Context(), id)
				require.NoError(t, err)
				got[id] = fmt.Sprint(w.Delivery.State, " ", w.Delivery.Reason)
			}
		}
		require.Equal(t, want, got)
		cancel()
		require.NoError(t, <-ended)
		n.wg.Wait()
		require.Len(t, r.seen(), 2)
	})
}

// onEach runs a test on a new SQLite and on a schema of its own on PostgreSQL.
func onEach(t *testing.T, run func(t *testing.T, db *store.DB)) {
	for name, cfg := range map[string]func(t *testing.T) store.Config{
		"SQLite":     func(t *testing.T) store.Config { return store.Config{Dir: t.TempDir()} },
		"PostgreSQL": func(t *testing.T) store.Config { return store.Config{URL: storetest.PostgresURL(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cfg(t)
			c.Node, c.Box = "n1", storetest.Box(t)
			run(t, storetest.Open(t, c))
		})
	}
}
