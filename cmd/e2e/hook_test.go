package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/postern-io/postern/cmd/internal/truth"
)

const hookAddress = "http://127.0.0.1:8080/hook"

// hookReceiver is the partner's webhook receiver: it remembers what came. While
// it is sick it answers 503, or takes a request and never answers.
type hookReceiver struct {
	server *http.Server
	conns  chan net.Conn
	done   chan struct{}
	once   sync.Once

	mu       sync.Mutex
	received []truth.Received
	sick     time.Time // until then
}

func newHookReceiver() *hookReceiver {
	h := &hookReceiver{conns: make(chan net.Conn), done: make(chan struct{})}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = h.server.Serve(h) }()
	return h
}

// Accept, Close and Addr make it a listener of pipes.
func (h *hookReceiver) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close ends the listener.
func (h *hookReceiver) Close() error { h.once.Do(func() { close(h.done) }); return nil }

// Addr is the address that the endpoint names.
func (h *hookReceiver) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

func (h *hookReceiver) dial(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case h.conns <- newBuffered(there):
		return newBuffered(here), nil
	case <-h.done:
	case <-ctx.Done():
	}
	return nil, errors.New("nothing listens")
}

func (h *hookReceiver) close() { _ = h.server.Close() }

func (h *hookReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var e struct {
		EventID string `json:"event_id"`
	}
	_ = json.Unmarshal(body, &e)
	h.mu.Lock()
	status := http.StatusOK
	if time.Now().Before(h.sick) {
		status = http.StatusServiceUnavailable
	}
	h.received = append(h.received, truth.Received{At: time.Now(), EventID: e.EventID, Body: string(body), Status: status})
	h.mu.Unlock()
	w.WriteHeader(status)
}

func (h *hookReceiver) fallSick(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sick = time.Now().Add(d)
}

func (h *hookReceiver) all() []truth.Received {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.received)
}
