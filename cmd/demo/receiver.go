package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/postern-io/postern/protocol/signature"
)

// receiver takes a partner's webhooks: what happens to its parcels in lockers, and
// at another path what it gets as a delivery company. It verifies every
// signature and, now and then, fails, as receivers do.
type receiver struct {
	s  *stage
	ln net.Listener
	h  *http.Server

	mu       sync.Mutex
	keys     map[string]string // by path
	requests int
	seen     map[string]string // verified webhook id → event
	repeats  int
	bad      int
	sick     bool // answers 503
}

// hookPath is where the partner receives events of lockers.
const hookPath = "/hook"

func newReceiver(s *stage) (*receiver, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	r := &receiver{s: s, ln: ln, seen: map[string]string{}, keys: map[string]string{}}
	r.h = &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := r.h.Serve(ln); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.logStory("receiver", "%v", err)
		}
	}()
	return r, nil
}

func (r *receiver) port() uint16 { return uint16(r.ln.Addr().(*net.TCPAddr).Port) }
func (r *receiver) at(path string) string {
	return fmt.Sprintf("http://127.0.0.1:%d%s", r.port(), path)
}
func (r *receiver) close()                  { _ = r.h.Close() }
func (r *receiver) secret(path, key string) { r.mu.Lock(); r.keys[path] = key; r.mu.Unlock() }
func (r *receiver) setSick(sick bool)       { r.mu.Lock(); r.sick = sick; r.mu.Unlock() }
func (r *receiver) verified() (n int)       { r.mu.Lock(); defer r.mu.Unlock(); return len(r.seen) }
func (r *receiver) has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.seen[id]
	return ok
}
func (r *receiver) forged() (n int) { r.mu.Lock(); defer r.mu.Unlock(); return r.bad }

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(io.LimitReader(q.Body, 1<<20))
	if err != nil {
		return // the sender left
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if r.sick || r.requests%7 == 0 {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if err := signature.VerifyProvider(q.Header.Get, body, time.Now(), []byte(r.keys[q.URL.Path])); err != nil {
		r.bad++
		go r.s.logStory("receiver", "refused a webhook: %v", err)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var b struct {
		Event string `json:"event"`
		Data  struct {
			Delivery struct {
				Number string `json:"delivery_number"`
			} `json:"delivery"`
			ConfirmedBy *string `json:"confirmed_by"`
			assignment
		} `json:"data"`
	}
	if json.Unmarshal(body, &b) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id := q.Header.Get("X-Webhook-Id")
	if _, again := r.seen[id]; again {
		r.repeats++
	} else {
		r.seen[id] = b.Event
		if q.URL.Path == carrierPath {
			go r.s.logStory("company", "%s for %s, signature verified", b.Event, b.Data.Number)
			go r.s.company(b.Event, b.Data.assignment)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		by := ""
		if b.Data.ConfirmedBy != nil {
			by = ", confirmed by " + *b.Data.ConfirmedBy
		}
		go r.s.logStory("receiver", "%s for %s, signature verified%s", b.Event, b.Data.Delivery.Number, by)
	}
	w.WriteHeader(http.StatusNoContent)
}
