package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/pem"
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

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// talkWorld is a running cloud with every listener, in which six people of all
// kinds may talk about an order. It can be stopped and started again.
type talkWorld struct {
	*hookWorld
	cfg    Config
	addr   [5]string // HTTP, then as in addresses
	tls    *tls.Config
	ca     string // PEM
	stop   func()
	order  int
	number string
	tokens map[string]string // by role, those of others too
	ids    map[string]int    // of accounts
}

// Roles at the order, in the order of their entry. The recipient comes by the
// token of the tracking answer.
var talkers = []string{"admin", "staff", "contractor", "driver", "customer", "recipient"}

// Addresses of listeners: over TCP, TCP with TLS, WebSocket, and that with TLS.
const (
	overTCP = iota + 1
	overTLS
	overWS
	overWSS
)

// bothTalks runs a test on each database.
func bothTalks(t *testing.T, test func(t *testing.T, w *talkWorld)) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); test(t, newTalkWorld(t, "")) })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); test(t, newTalkWorld(t, storetest.SecondPostgresURL(t))) })
}

func newTalkWorld(t *testing.T, database string) *talkWorld {
	w := &talkWorld{hookWorld: &hookWorld{t: t}, tokens: map[string]string{}, ids: map[string]int{}}
	w.hook = httptest.NewServer(w.hookWorld)
	t.Cleanup(w.hook.Close)
	at, err := url.Parse(w.hook.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(at.Port())
	require.NoError(t, err)
	secure := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	secure.Close()
	w.tls = &tls.Config{Certificates: secure.TLS.Certificates, MinVersion: tls.VersionTLS12}
	w.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	w.cfg = Config{Dir: storetest.MigratedDir(t), Database: database, Node: "one", WebhookNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, WebhookPorts: []uint16{uint16(port)}, WebhookHTTP: true,
		PushURL: w.hook.URL + "/send", PushSecret: pushSecret, Recheck: 50 * time.Millisecond, Limits: catalog.Limits{Authenticated: -1, Anonymous: -1}}
	w.start(func() {
		w.box, err = w.s.Sandbox(t.Context(), SandboxConfig{})
		require.NoError(t, err)
	})
	t.Cleanup(func() { w.stop() })
	w.people()
	return w
}

// start starts the cloud, at the addresses that it had before if it had any.
func (w *talkWorld) start(before func()) {
	w.t.Helper()
	var ln [5]net.Listener
	for i := range ln {
		var err error
		ln[i], err = net.Listen("tcp", cmp.Or(w.addr[i], "127.0.0.1:0"))
		require.NoError(w.t, err)
		w.addr[i] = ln[i].Addr().String()
	}
	w.base, w.cfg.AppURL, w.cfg.AppWebSocketURL = "http://"+w.addr[0], "tcp://"+w.addr[overTCP], "ws://"+w.addr[overWS]+"/mqtt"
	var err error
	w.s, err = New(w.t.Context(), w.cfg)
	require.NoError(w.t, err)
	before()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- w.s.Run(ctx, Listeners{HTTP: ln[0], MQTT: ln[overTCP], MQTTTLS: ln[overTLS], WebSocket: ln[overWS], WebSocketTLS: ln[overWSS], TLS: w.tls})
	}()
	var once sync.Once
	w.stop = func() { once.Do(func() { cancel(); require.NoError(w.t, <-done) }) }
}

// people gives everybody a token: those of the sandbox, another driver and another
// customer, and the administrator of another business. The order is the
// customer's, the contractor holds it, and the contractor's driver has it.
func (w *talkWorld) people() {
	w.t.Helper()
	b := w.box
	for role, token := range map[string]string{"admin": b.Admin.Token, "staff": b.Staff.Token, "contractor": b.Contractor.Token, "driver": b.Driver.Token, "customer": b.Customer.Token,
		"another driver": w.add("another driver", cloud.DriverAccount, false), "another customer": w.add("another customer", cloud.Customer, false), "stranger": w.add("stranger", cloud.ClientAdmin, true)} {
		w.tokens[role] = token
		w.ids[role] = int(w.good("GET", "/api/v1/user/me", token, nil)["user"].(map[string]any)["id"].(float64))
	}
	for _, role := range []string{"driver", "another driver"} {
		w.good("PATCH", fmt.Sprintf("/api/v1/drivers/%d", w.ids[role]), b.Admin.Token, map[string]any{"broker_id": w.ids["contractor"]})
	}
	w.order, w.number = w.newOrder()
	w.good("PUT", "/api/v1/order-chat/settings", b.Admin.Token, map[string]any{"allow_recipient": true})
	ring.Await(w.t, func() bool {
		chat := w.good("GET", "/api/v1/tracking/"+w.number, b.Admin.Token, nil)["chat"].(map[string]any)
		w.tokens["recipient"], _ = chat["token"].(string)
		return chat["enabled"] == true
	})
}

// newOrder makes an order of the customer that contractor and driver have.
func (w *talkWorld) newOrder() (id int, number string) {
	w.t.Helper()
	made := w.good("POST", "/api/v1/client/orderCreate", w.tokens["customer"], map[string]any{"type": "D", "recipient": map[string]any{"name": "Jane", "phone": "+14165550123", "address_line1": "1 Secret Lane",
		"city": "Toronto", "province": "ON", "postal_code": "M5V 2T6", "country": "CA"}, "packages": []map[string]any{{"weight": 1}}})
	id, number = int(made["order_id"].(float64)), made["tracking_number"].(string)
	w.good("POST", "/api/v1/broker-order-assignments", w.tokens["admin"], map[string]any{"order_ids": []int{id}, "broker_id": w.ids["contractor"]})
	w.give(id, "driver")
	return id, number
}

// give gives an order to a driver.
func (w *talkWorld) give(order int, driver string) {
	w.t.Helper()
	w.good("POST", fmt.Sprintf("/api/v1/orders/%d/driver", order), w.tokens["admin"], map[string]any{"driver_id": w.ids[driver]})
}

// add makes an account, of another business if it is to be, and gives its token.
func (w *talkWorld) add(name string, kind cloud.AccountType, elsewhere bool) string {
	w.t.Helper()
	token := auth.NewToken()
	require.NoError(w.t, w.s.Store.Decide(w.t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		ids, now := setup.IDs{View: v}, time.Now().UTC()
		ch, b := &cloud.Changes{}, cloud.BusinessID(1)
		if elsewhere {
			b = cloud.BusinessID(ids.Next(cloud.BusinessIDs))
			ch.Businesses = []cloud.Business{{ID: b, Code: "other", Name: "Other", Timezone: "UTC", Settings: cloud.Settings{Country: "CA", Currency: "CAD", Features: []cloud.Feature{{Family: "order_chat", Enabled: true}}}}}
		}
		a := cloud.Account{ID: cloud.AccountID(ids.Next(cloud.AccountIDs)), BusinessID: b, Type: kind, Name: name, Enabled: true, CreatedAt: now}
		ch.Accounts = []cloud.Account{a}
		ch.Tokens = []cloud.Token{{Hash: auth.Hash(token), AccountID: a.ID, Name: "test", CreatedAt: now, ExpiresAt: now.Add(time.Hour)}}
		return ch, ids.Err
	}))
	return token
}

// good is an answer that must be good.
func (w *talkWorld) good(method, path, token string, body any) map[string]any {
	w.t.Helper()
	status, out := w.call(method, path, token, body)
	require.Less(w.t, status, 300, "%s %s: %v", method, path, out)
	return out
}

// of is an address of the order's chat.
func (w *talkWorld) of(leaf string) string {
	return fmt.Sprintf("/api/v1/order-chat/orders/%d%s", w.order, leaf)
}

// says sends a message and gives its id.
func (w *talkWorld) says(role, text, audience string) int64 {
	w.t.Helper()
	m := w.good("POST", w.of("/messages"), w.tokens[role], map[string]any{"text": text, "audience": audience})
	return int64(m["message"].(map[string]any)["message_id"].(float64))
}

// pass is what an app listens with.
type pass struct {
	ClientID string   `json:"client_id"`
	Username string   `json:"username"`
	Password string   `json:"password"`
	Topics   []string `json:"topics"`
	role     string
}

// pass gives a role credentials for the order.
func (w *talkWorld) pass(role string) pass {
	w.t.Helper()
	m := w.good("POST", "/api/v1/order-chat/token", w.tokens[role], map[string]any{"order_ids": []int{w.order}})["mqtt"].(map[string]any)
	ends, err := time.Parse(time.RFC3339, m["expires_at"].(string))
	require.NoError(w.t, err)
	require.WithinDuration(w.t, time.Now().Add(time.Hour), ends, time.Minute)
	p := pass{ClientID: m["client_id"].(string), Username: m["username"].(string), Password: m["password"].(string), role: role}
	for _, topic := range m["topics"].([]any) {
		p.Topics = append(p.Topics, topic.(string))
	}
	return p
}

// chat and staff are the order's topics.
func (w *talkWorld) chat() string  { return fmt.Sprintf("tms/order-chat/1/%d", w.order) }
func (w *talkWorld) staff() string { return w.chat() + "/staff" }
