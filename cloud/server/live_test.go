package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signature"
)

// liveWorld is a running cloud with a broker and a push provider.
type liveWorld struct{ *hookWorld }

const pushSecret = "0123456789abcdef0123456789abcdef"

func newLiveWorld(t *testing.T, database string) *liveWorld {
	w := &liveWorld{&hookWorld{t: t}}
	w.hook = httptest.NewServer(w.hookWorld)
	t.Cleanup(w.hook.Close)
	at, err := url.Parse(w.hook.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(at.Port())
	require.NoError(t, err)
	var ln [3]net.Listener
	for i := range ln {
		ln[i], err = net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
	}
	w.base = "http://" + ln[0].Addr().String()
	w.s, err = New(t.Context(), Config{Dir: storetest.MigratedDir(t), Database: database, Node: "one", WebhookNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, WebhookPorts: []uint16{uint16(port)}, WebhookHTTP: true,
		PushURL: w.hook.URL + "/send", PushSecret: pushSecret, AppURL: "tcp://" + ln[1].Addr().String(), AppWebSocketURL: "ws://" + ln[2].Addr().String() + "/mqtt", Limits: catalog.Limits{Authenticated: -1, Anonymous: -1}})
	require.NoError(t, err)
	w.box, err = w.s.Sandbox(t.Context(), SandboxConfig{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.s.Run(ctx, Listeners{HTTP: ln[0], MQTT: ln[1], WebSocket: ln[2]}) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	return w
}

// good is an answer that must be good.
func (w *liveWorld) good(method, path, token string, body any) map[string]any {
	w.t.Helper()
	status, out := w.call(method, path, token, body)
	require.Less(w.t, status, 300, "%s %s: %v", method, path, out)
	return out
}

// listen is an app of an account on the address of that name.
func (w *liveWorld) listen(token, address string) (paho.Client, *heard) {
	w.t.Helper()
	mqtt := w.good("POST", "/api/v1/user/live-token", token, map[string]any{})["mqtt"].(map[string]any)
	id := mqtt["client_id"].(string)
	c := paho.NewClient(paho.NewClientOptions().AddBroker(mqtt[address].(string)).SetClientID(id).SetUsername(mqtt["username"].(string)).SetPassword(mqtt["password"].(string)).SetAutoReconnect(false))
	tok := c.Connect()
	<-tok.Done()
	require.NoError(w.t, tok.Error())
	w.t.Cleanup(func() { c.Disconnect(0) })
	h := &heard{}
	for _, topic := range mqtt["topics"].([]any) {
		tok := c.Subscribe(topic.(string), 1, func(_ paho.Client, m paho.Message) {
			var body map[string]any
			if json.Unmarshal(m.Payload(), &body) == nil {
				h.add(body)
			}
		})
		<-tok.Done()
		require.NoError(w.t, tok.Error())
	}
	return c, h
}

type heard struct {
	mu  sync.Mutex
	all []map[string]any
}

func (h *heard) add(m map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, m)
}

// has is the first thing heard with a member of this value.
func (h *heard) has(t testing.TB, name string, value any) map[string]any {
	t.Helper()
	var found map[string]any
	ring.Await(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, m := range h.all {
			if fmt.Sprint(m[name]) == fmt.Sprint(value) {
				found = m
				return true
			}
		}
		return false
	}, "nothing with %s %v", name, value)
	return found
}

// A driver's app and the dashboard receive at once what the driver is given; when
// the app is gone the provider gets it, signed, until the login ends.
func TestDriversAndDashboardsListen(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); listens(t, newLiveWorld(t, "")) })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); listens(t, newLiveWorld(t, storetest.SecondPostgresURL(t))) })
}

func listens(t *testing.T, w *liveWorld) {
	admin, driver := w.box.Admin.Token, w.box.Driver.Token
	me := w.good("GET", "/api/v1/user/me", driver, nil)["user"].(map[string]any)["id"]
	app, push := w.listen(driver, "url")
	_, board := w.listen(admin, "websocket_url")
	status, _ := w.call("POST", "/api/v1/user/live-token", w.box.Customer.Token, map[string]any{})
	require.Equal(t, http.StatusForbidden, status)

	order := func() any {
		return w.good("POST", "/api/v1/client/orderCreate", admin, map[string]any{"type": "D", "recipient": map[string]any{"name": "Jane", "phone": "+14165550123", "address_line1": "1 Secret Lane", "city": "Toronto", "province": "ON", "postal_code": "M5V 2T6", "country": "CA"},
			"packages": []map[string]any{{"weight": 1}}})["order_id"]
	}
	give := func(id any) {
		w.good("POST", fmt.Sprintf("/api/v1/orders/%.0f/driver", id), admin, map[string]any{"driver_id": me})
	}
	first := order()
	give(first)
	got := push.has(t, "type", "order_assigned")
	require.Equal(t, first, got["data"].(map[string]any)["order_id"])
	require.NotContains(t, fmt.Sprint(got), "Secret")
	change := board.has(t, "order_status_id", int(cloud.OrderDriverAssigned))
	require.Equal(t, first, change["order_id"])
	require.Equal(t, string(cloud.OrderDriverAssigned.State().Code), change["tracking_event_key"])
	_, err := time.Parse(time.RFC3339, change["at"].(string))
	require.NoError(t, err)
	state := func() string {
		for _, p := range w.good("GET", "/api/v1/driver/pushes", driver, nil)["pushes"].([]any) {
			if p := p.(map[string]any); p["push_id"] == got["push_id"] {
				return p["state"].(string)
			}
		}
		return ""
	}
	ring.Await(t, func() bool { return state() == "heard" })
	require.Empty(t, w.good("GET", "/api/v1/sandbox/pushes", admin, nil)["pushes"])

	app.Disconnect(0)
	w.good("POST", "/api/v1/driver/push-token", driver, map[string]any{"token": "device-1", "platform": "fcm"})
	second := order()
	give(second)
	ring.Await(t, func() bool { return len(w.got()) > 0 })
	sent := w.got()[0]
	require.Equal(t, "/send", sent.path)
	sec, err := strconv.ParseInt(sent.head.Get("webhook-timestamp"), 10, 64)
	require.NoError(t, err)
	require.Equal(t, signature.Standard(sent.head.Get("webhook-id"), time.Unix(sec, 0), sent.body, []byte(pushSecret)), sent.head.Get("webhook-signature"))
	var body map[string]any
	require.NoError(t, json.Unmarshal(sent.body, &body))
	require.Equal(t, second, body["data"].(map[string]any)["order_id"])
	require.Equal(t, []any{map[string]any{"token": "device-1", "platform": "fcm"}}, body["devices"])
	got = body
	ring.Await(t, func() bool { return state() == "sent" })
	require.Len(t, w.good("GET", "/api/v1/driver/pushes?after="+fmt.Sprint(body["push_id"]), driver, nil)["pushes"], 1, "one that is little older comes again")

	_, push = w.listen(driver, "websocket_url")
	require.Equal(t, second, push.has(t, "push_id", body["push_id"])["data"].(map[string]any)["order_id"], "told within two minutes")
	w.good("DELETE", "/api/v1/driver/push-token", driver, nil)
	w.good("POST", fmt.Sprintf("/api/v1/orders/%.0f/cancel", second), admin, map[string]any{"reason": "closed"})
	push.has(t, "type", "order_cancelled")
	require.Len(t, w.got(), 1)
}
