package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signature"
)

var hookKillRounds = flag.Int("hook-kill-rounds", countRounds(1), "how often the cloud is killed while it sends webhooks")

// countRounds is how many rounds of kills the ring asks for.
func countRounds(quick int) int {
	first, last := ring.Rounds(quick, 1000)
	return last - first + 1
}

// The built cloud, killed without warning while it takes orders and tells of
// them. In the end the receiver has heard of every order that was acknowledged
// and of none that there is not, repeats have the same ids and bytes, and the
// log holds every attempt but those that a kill cut off.
func TestKilledSendersTellEverything(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and kills programs")
	}
	t.Parallel()
	bin := build(t)
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); killSenders(t, bin, "") })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); killSenders(t, bin, storetest.SecondPostgresURL(t)) })
}

const killSecret = "0123456789abcdef0123456789abcdef"

// heard is what a receiver got under one event id.
type heard struct {
	body  string
	times int
	order float64
}

// listener is a receiver that remembers what it heard.
type listener struct {
	t  *testing.T
	mu sync.Mutex

	events map[string]*heard
	posts  int
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil { // its sender was killed
		return
	}
	var e struct {
		EventID string `json:"event_id"`
		Data    struct {
			Order struct {
				ID float64 `json:"order_id"`
			} `json:"order"`
		} `json:"data"`
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := errors.Join(json.Unmarshal(body, &e), signature.VerifyV2(r.Header.Get, body, time.Now(), []byte(killSecret))); err != nil {
		l.t.Errorf("%v: %s", err, body)
	}
	h := l.events[e.EventID]
	if h == nil {
		h = &heard{body: string(body), order: e.Data.Order.ID}
		l.events[e.EventID] = h
	}
	if h.body != string(body) || r.Header.Get("X-Webhook-Id") != e.EventID || r.Header.Get("X-Webhook-Attempt") != "1" {
		l.t.Errorf("%s came with other bytes or ids", e.EventID)
	}
	h.times++
	l.posts++
}

func killSenders(t *testing.T, bin programs, database string) {
	rnd := rand.New(rand.NewPCG(rand.Uint64(), 3))
	l := &listener{t: t, events: map[string]*heard{}}
	hook := httptest.NewServer(l)
	defer hook.Close()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(hook.URL, "http://"))
	require.NoError(t, err)
	dir, addr, mqtt := t.TempDir(), freeAddress(t), freeAddress(t)
	open := func() *server.Server {
		s, err := server.New(t.Context(), server.Config{Dir: dir, Database: database, Node: "one", Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		return s
	}
	srv := open()
	box, err := srv.Sandbox(t.Context(), server.SandboxConfig{})
	require.NoError(t, err)
	require.NoError(t, errors.Join(srv.Broker.Close(), srv.Store.Close()))

	start := func() *process {
		p := bin.start(t, "cloud", "--data", dir, "--database", database, "--node", "one", "--listen", addr, "--mqtt-listen", mqtt, "--webhook-http",
			"--webhook-allow-network", "127.0.0.0/8", "--webhook-allow-port", port)
		ring.Await(t, func() bool { return listens(addr) }, "not up")
		return p
	}
	call := func(method, path, body string) (int, map[string]any, error) {
		req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, "http://"+addr+path, bytes.NewReader([]byte(body)))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+box.Admin.Token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := page.Do(req)
		if err != nil {
			return 0, nil, err
		}
		defer resp.Body.Close()
		var out map[string]any
		err = json.NewDecoder(resp.Body).Decode(&out)
		return resp.StatusCode, out, err
	}

	p := start()
	status, out, err := call("PUT", "/api/v1/webhook-settings", fmt.Sprintf(`{"webhook_sign_secret":%q,"order_create_webhook_url":%q}`, killSecret, hook.URL+"/created"))
	require.NoError(t, err)
	require.Equal(t, 200, status, "%v", out)
	acked := map[float64]bool{}
	var mu sync.Mutex
	for round := range *hookKillRounds {
		var work sync.WaitGroup
		for range 4 {
			work.Go(func() {
				for {
					status, out, err := call("POST", "/api/v1/client/orderCreate", `{"type":"D","packages":[{"weight":1}],"recipient":{"name":"Ada","phone":"+14165550123",
"address_line1":"100 Queen St W","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"}}`)
					if err != nil || status != 201 {
						return
					}
					mu.Lock()
					acked[out["order_id"].(float64)] = true
					mu.Unlock()
				}
			})
		}
		if round == *hookKillRounds-1 { // a slow machine may have got nowhere in the others
			ring.Await(t, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(acked) > 0
			}, "no order was acknowledged")
		}
		time.Sleep(20*time.Millisecond + time.Duration(rnd.Int64N(int64(250*time.Millisecond))))
		p.kill(t)
		work.Wait()
		p = start()
	}
	require.NotEmpty(t, acked, "hardly anything happened")
	ring.Await(t, func() bool {
		status, out, err := call("GET", "/api/v1/webhook-delivery-logs?status=success&per_page=1", "")
		require.NoError(t, err)
		require.Equal(t, 200, status)
		_, all, err := call("GET", "/api/v1/webhook-delivery-logs?per_page=1", "")
		require.NoError(t, err)
		return out["total"] == all["total"] && out["total"].(float64) >= float64(len(acked))
	}, "not all have arrived")
	p.stop(t)

	srv = open()
	defer func() { require.NoError(t, errors.Join(srv.Broker.Close(), srv.Store.Close())) }()
	l.mu.Lock()
	defer l.mu.Unlock()
	_, rows, err := srv.Store.ListAccountOutbox(t.Context(), cloud.AccountLog{BusinessID: box.ProviderCaller.Provider.BusinessID, Page: cloud.Page{Limit: 100_000}})
	require.NoError(t, err)
	logged := 0
	for _, r := range rows {
		h := l.events[r.Delivery.EventID]
		require.NotNil(t, h, "%s is in the log and never came", r.Delivery.EventID)
		as, err := srv.Store.OutboxAttempts(t.Context(), r.Delivery.ID)
		require.NoError(t, err)
		require.Len(t, as, 1)
		logged += len(as)
	}
	require.Len(t, l.events, len(rows), "nothing came that the log does not have")
	told := map[float64]bool{}
	for id, h := range l.events {
		told[h.order] = true
		require.Equal(t, fmt.Sprintf("OCR-%.0f", h.order), id)
		require.NoError(t, srv.Store.Look(t.Context(), func(v cloud.View) error {
			_, err := v.Order(box.ProviderCaller.Provider.BusinessID, cloud.OrderID(h.order))
			return err
		}), "told of an order that there is not")
	}
	for id := range acked {
		require.True(t, told[id], "order %.0f was acknowledged and never told of", id)
	}
	// In flight are five posts at a time, and as many whose outcome waits for its
	// commit.
	require.LessOrEqual(t, l.posts-logged, *hookKillRounds*10, "no more repeats than what was in flight")
	t.Logf("%d kills: %d orders acknowledged, %d told of, %d posts, %d in the log", *hookKillRounds, len(acked), len(told), l.posts, logged)
}
