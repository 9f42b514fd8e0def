package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signature"
)

// One request to a receiver.
type told struct {
	path string
	head http.Header
	body []byte
}

// A business sets its address, makes an order and cancels it, and receives all
// of it, signed; its log says so.
func TestAccountsReceiveEventsOfTheirOrders(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); toldOfOrders(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); toldOfOrders(t, storetest.MigratedPostgresURL(t)) })
}

// hookWorld is a running cloud beside a receiver.
type hookWorld struct {
	t    *testing.T
	s    *Server
	box  Sandbox
	base string
	hook *httptest.Server

	mu    sync.Mutex
	told  []told
	reply func(r *http.Request, body []byte) int // nil: 200
}

func (w *hookWorld) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, told{r.URL.Path, r.Header, body})
	if w.reply != nil {
		rw.WriteHeader(w.reply(r, body))
	}
}

func (w *hookWorld) got() []told {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.told)
}

func newHookWorld(t *testing.T, database string, changes ...func(*Config)) *hookWorld {
	return newHookWorldOf(t, database, SandboxConfig{}, changes...)
}

// newHookWorldOf is newHookWorld with a sandbox that is made as it is described.
func newHookWorldOf(t *testing.T, database string, box SandboxConfig, changes ...func(*Config)) *hookWorld {
	w, cfg := newHooks(t, database, changes...)
	var err error
	w.s, err = New(t.Context(), cfg)
	require.NoError(t, err)
	w.box, err = w.s.Sandbox(t.Context(), box)
	require.NoError(t, err)
	w.run()
	return w
}

// newHooks is a receiver, and how the cloud is set up that may send to it.
func newHooks(t *testing.T, database string, changes ...func(*Config)) (*hookWorld, Config) {
	w := &hookWorld{t: t}
	w.hook = httptest.NewServer(w)
	t.Cleanup(w.hook.Close)
	at, err := url.Parse(w.hook.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(at.Port())
	require.NoError(t, err)
	cfg := Config{Dir: storetest.MigratedDir(t), Database: database, Node: "one", WebhookNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		WebhookPorts: []uint16{uint16(port)}, WebhookHTTP: true, Limits: catalog.Limits{Authenticated: -1, Anonymous: -1, Replay: -1, Batch: -1, Quotes: -1, Doors: -1}}
	for _, change := range changes {
		change(&cfg)
	}
	return w, cfg
}

// run runs the cloud until the test ends.
func (w *hookWorld) run() {
	w.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	w.base = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.s.Run(ctx, Listeners{HTTP: ln}) }()
	w.t.Cleanup(func() { cancel(); require.NoError(w.t, <-done) })
}

func (w *hookWorld) call(method, path, token string, body any) (int, map[string]any) {
	w.t.Helper()
	var raw []byte
	var err error
	if body != nil {
		raw, err = json.Marshal(body)
	}
	require.NoError(w.t, err)
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.base+path, bytes.NewReader(raw))
	require.NoError(w.t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	var out map[string]any
	require.NoError(w.t, json.NewDecoder(resp.Body).Decode(&out))
	return resp.StatusCode, out
}

func toldOfOrders(t *testing.T, database string) {
	w := newHookWorld(t, database)
	hook, box, call := w.hook, w.box, w.call
	const secret = "0123456789abcdef0123456789abcdef"
	admin, customer := box.Admin.Token, box.Customer.Token
	status, out := call("PUT", "/api/v1/webhook-settings", admin, map[string]any{"webhook_sign_secret": secret, "order_create_webhook_url": hook.URL + "/created",
		"order_status_change_webhook_url": hook.URL + "/a," + hook.URL + "/b", "order_cancel_failed_webhook_url": hook.URL + "/refused"})
	require.Equal(t, 200, status, "%v", out)
	status, out = call("PUT", "/api/v1/webhook-settings", admin, map[string]any{"order_deleted_webhook_url": "http://169.254.169.254/latest"})
	require.Equal(t, []any{422, "BLOCKED_URL"}, []any{status, out["error_code"]})
	status, out = call("PUT", "/api/v1/webhook-settings", customer, map[string]any{"webhook_sign_secret": "the-customers-own", "order_create_webhook_url": hook.URL + "/customer"})
	require.Equal(t, 200, status, "%v", out)

	parcel := map[string]any{"type": "D", "packages": []any{map[string]any{"weight": 1}}, "recipient": map[string]any{"name": "Ada", "phone": "+14165550123",
		"address_line1": "100 Queen St W", "city": "Toronto", "province": "ON", "postal_code": "M5H 2N2", "country": "CA"}}
	status, made := call("POST", "/api/v1/client/orderCreate", admin, parcel)
	require.Equal(t, 201, status, "%v", made)
	cancel1 := fmt.Sprintf("/api/v1/orders/%.0f/cancel", made["order_id"])
	status, _ = call("POST", cancel1, admin, map[string]any{"reason": "changed mind"})
	require.Equal(t, 200, status)
	status, out = call("POST", cancel1, admin, map[string]any{})
	require.Equal(t, []any{409, "ORDER_NOT_CANCELLABLE"}, []any{status, out["error_code"]}, "answered as ever")
	status, _ = call("POST", "/api/v1/client/orderCreate", customer, parcel)
	require.Equal(t, 201, status)

	ring.Await(t, func() bool { return len(w.got()) >= 5 })
	got := w.got()
	require.Len(t, got, 5)
	paths := map[string]string{}
	for _, g := range got {
		key := secret
		if g.path == "/customer" {
			key = "the-customers-own"
		}
		require.NoError(t, signature.VerifyV2(g.head.Get, g.body, time.Now(), []byte(key)), g.path)
		require.NoError(t, signature.VerifyLegacy(g.head.Get, g.body, []byte(key)), g.path)
		var body struct {
			Event   string `json:"event"`
			EventID string `json:"event_id"`
			Data    struct {
				Order struct {
					ID float64 `json:"order_id"`
				}
				Code string
			}
		}
		require.NoError(t, json.Unmarshal(g.body, &body))
		require.Equal(t, body.EventID, g.head.Get("X-Webhook-Event-Id"))
		if g.path != "/customer" {
			require.Equal(t, made["order_id"], body.Data.Order.ID)
		}
		paths[g.path] = body.Event + " " + body.Data.Code
	}
	require.Equal(t, map[string]string{"/created": "order.created ", "/a": "order.status_change ", "/b": "order.status_change ", "/refused": "order.cancel_failed ALREADY_CANCELLED",
		"/customer": "order.created "}, paths)

	ring.Await(t, func() bool {
		_, out = call("GET", "/api/v1/webhook-delivery-logs?status=success", admin, nil)
		return out["total"] == 5.0
	})
	_, out = call("GET", "/api/v1/webhook-delivery-logs", customer, nil)
	require.Equal(t, 1.0, out["total"])
}
