package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/postern-io/postern/cloud/auth"
)

// shop is the business's own shop system, which receives new orders. It
// verifies by the library of Standard Webhooks, and each day it fails, hangs and
// recovers. Beside it stands the partner's system for tests, which wants nothing.
type shop struct {
	s  *stage
	ln net.Listener
	h  *http.Server

	mu      sync.Mutex
	verify  *standardwebhooks.Webhook
	seen    map[string]bool // verified webhook ids
	bad     int
	illness []symptom // of the next requests
	refused int       // by the system for tests
}

// symptom is what a sick shop does with a request.
type symptom int

const (
	fails   symptom = iota // answers 500
	hangs                  // answers nothing
	refuses                // answers 500, and that no sender should try again
)

// illness is one day's: ten failures in a row, which open the sender's breaker.
var illness = []symptom{fails, fails, fails, fails, hangs, hangs, refuses, fails, fails, fails}

const (
	shopPath = "/orders"
	testPath = "/sandbox" // of the partner's system for tests
	patience = 2          // times that it fails before it asks for no more
)

func newShop(s *stage) (*shop, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the shop's webhooks: %w", err)
	}
	p := &shop{s: s, ln: ln, seen: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+shopPath, p.orders)
	mux.HandleFunc("POST "+testPath, p.tests)
	p.h = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := p.h.Serve(ln); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.logStory("shop", "%v", err)
		}
	}()
	return p, nil
}

func (p *shop) port() uint16           { return uint16(p.ln.Addr().(*net.TCPAddr).Port) }
func (p *shop) url(path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", p.port(), path) }
func (p *shop) close()                 { _ = p.h.Close() }
func (p *shop) verified() int          { p.mu.Lock(); defer p.mu.Unlock(); return len(p.seen) }
func (p *shop) forged() int            { p.mu.Lock(); defer p.mu.Unlock(); return p.bad }
func (p *shop) well() bool             { p.mu.Lock(); defer p.mu.Unlock(); return len(p.illness) == 0 }

// symptom is what is to be done with the next request; ok is false when the shop
// is well.
func (p *shop) symptom() (s symptom, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.illness) == 0 {
		return 0, false
	}
	s, p.illness = p.illness[0], p.illness[1:]
	if len(p.illness) == 0 {
		go p.s.logStory("shop", "is well again; the sender finds out when it tries one delivery")
	}
	return s, true
}

// orders takes the events that the shop receives.
func (p *shop) orders(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(io.LimitReader(q.Body, 1<<20))
	if err != nil {
		return // the sender left
	}
	if s, sick := p.symptom(); sick {
		switch s {
		case hangs:
			<-q.Context().Done()
			return
		case refuses:
			w.Header().Set("Webhook-Delivery", "abort")
		}
		http.Error(w, "the shop's database is gone", http.StatusInternalServerError)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.verify.Verify(body, q.Header); err != nil {
		p.bad++
		go p.s.logStory("shop", "refused a webhook: %v", err)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var event struct {
		Event string `json:"event"`
		Data  struct {
			Order struct {
				Number string `json:"tracking_number"`
			} `json:"order"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &event) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if id := q.Header.Get("webhook-id"); q.Header.Get("X-Webhook-Test") == "" && !p.seen[id] {
		p.seen[id] = true
		go p.s.logStory("shop", "%s %s, verified by the Standard Webhooks library", event.Event, event.Data.Order.Number)
	}
	w.WriteHeader(http.StatusNoContent)
}

// tests takes nothing: what it is sent becomes a dead letter.
func (p *shop) tests(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	p.refused++
	if p.refused%(patience+1) == 0 {
		w.Header().Set("Webhook-Delivery", "abort")
	}
	p.mu.Unlock()
	http.Error(w, "no tests today", http.StatusInternalServerError)
}

// open sets the shop as the receiver of new orders, and the system for tests as
// the partner's.
func (p *shop) open(ctx context.Context) error {
	admin := p.s.admin()
	url := p.url(shopPath)
	var out struct {
		Secret string `json:"webhook_sign_secret_standard"`
	}
	if err := admin.call(ctx, http.MethodPut, admin.base+"/api/v1/webhook-settings", map[string]any{"webhook_sign_secret": auth.NewToken()[:43], "order_create_webhook_url": url,
		"webhook_url_options": []any{map[string]any{"url": url, "signature": "standard_webhooks"}}}, &out); err != nil {
		return fmt.Errorf("set the shop's webhooks: %w", err)
	}
	v, err := standardwebhooks.NewWebhook(out.Secret)
	if err != nil {
		return fmt.Errorf("read the shop's secret: %w", err)
	}
	p.mu.Lock()
	p.verify = v
	p.mu.Unlock()
	return p.s.api.call(ctx, http.MethodPut, p.s.api.base+"/api/v1/third-party-delivery/webhook-endpoint", map[string]any{"sandbox_url": p.url(testPath)}, nil)
}

// day is the shop's: an order arrives, then it falls ill while four more are made,
// and one of the partner's tests goes nowhere. Waiting deliveries arrive once the sender
// finds it well.
func (p *shop) day(ctx context.Context) error {
	s, before := p.s, p.verified()
	if err := s.order(ctx); err != nil {
		return err
	}
	if err := s.awaits(ctx, "an order sent to the shop", time.Minute, func() bool { return p.verified() > before }); err != nil {
		return err
	}
	p.mu.Lock()
	p.illness = append([]symptom{}, illness...)
	p.mu.Unlock()
	s.logStory("shop", "answers 500, then hangs: see the deliveries and their attempts at http://%s/console/webhooks", s.http)
	for range 4 {
		if err := s.order(ctx); err != nil {
			return err
		}
	}
	return p.test(ctx)
}

// test makes an event of the partner's test cabinet.
func (p *shop) test(ctx context.Context) error {
	s := p.s
	s.refs++
	d, err := s.api.create(ctx, &cabinet{id: int64(s.box.Devices[len(cast)].DeviceID)}, fmt.Sprintf("TEST-%d-%03d-%d", s.flags.Seed, s.refs, s.begun.Unix()%100000), "M")
	if err != nil {
		return fmt.Errorf("create test delivery: %w", err)
	}
	return s.api.call(ctx, http.MethodPost, fmt.Sprintf("%s/api/v1/third-party-delivery/deliveries/%d/cancel", s.api.base, d.ID), map[string]any{"reason": "a test"}, nil)
}

// waitDelivered waits until nothing is left to tell the shop and the system for tests.
func (p *shop) waitDelivered(ctx context.Context) error {
	return p.s.awaits(ctx, "all events at the shop", 2*time.Minute, func() bool {
		left := 1
		if p.well() {
			left = p.s.unfinished(ctx, p.s.admin(), "/api/v1/webhook-delivery-logs?status=") + p.s.unfinished(ctx, p.s.api, "/api/v1/third-party-delivery/webhook-deliveries?status=")
		}
		return left == 0
	})
}

// admin speaks to the cloud as the business's administrator does.
func (s *stage) admin() *api {
	return s.as(s.box.Admin.Token)
}

// order makes an order, as a clerk with an agent does.
func (s *stage) order(ctx context.Context) error {
	_, err := s.tool(ctx, "create_order", someOrder())
	return err
}

// unfinished counts deliveries of a log that something is still to come of.
func (s *stage) unfinished(ctx context.Context, a *api, log string) int {
	n := 0
	for _, status := range []string{"pending", "delivering", "retrying"} {
		var out struct {
			Deliveries, Logs []struct{}
		}
		if a.call(ctx, http.MethodGet, a.base+log+status, nil, &out) != nil {
			return 1
		}
		n += len(out.Deliveries) + len(out.Logs)
	}
	return n
}
