// Package admin serves what people who run a node look at: metrics, profiles and
// health. It has a listener of its own, so that the public one serves none of it.
//
// With a token every request needs it, as Authorization: Bearer. Without one only
// programs on this machine are served: the request comes over the loopback, names the
// loopback as its host, and shows no proxy, so that neither a page in a browser (which
// may resolve its own name to the loopback) nor a misdirected proxy reads anything.
// The command line is not among the profiles: it may hold the database's password.
package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"golang.org/x/net/netutil"

	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/internal/loopback"
)

// MinToken is how many characters a token has at least.
const MinToken = 16

// Config is what New needs.
type Config struct {
	// Token lets requests in; empty: only those of this machine.
	Token    string
	Gatherer prometheus.Gatherer
	Ready    func(ctx context.Context) error // for /readyz; nil: always ready
	Log      *slog.Logger
}

// Server is the listener's server. Safe for concurrent use.
type Server struct {
	cfg   Config
	token atomic.Pointer[[sha256.Size]byte] // nil: only programs of this machine are served
	http  *http.Server
}

const (
	headerWait  = 5 * time.Second
	idleTimeout = time.Minute
	maxHeader   = 16 << 10
	maxConns    = 128 // together; more wait
	readyWait   = 2 * time.Second
)

// New builds the server; Serve starts it.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg}
	if cfg.Token != "" {
		s.SetToken(cfg.Token)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index) // and each profile by name
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	s.http = &http.Server{Handler: s.guarded(mux), ReadHeaderTimeout: headerWait, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug)}
	return s
}

// SetToken changes the token, which is not empty. The former one is good no more.
func (s *Server) SetToken(token string) {
	sum := sha256.Sum256([]byte(token))
	s.token.Store(&sum)
}

// Serve takes connections until Close. A listener beyond the loopback is closed and
// refused when there is no token.
func (s *Server) Serve(ln net.Listener) error {
	if s.token.Load() == nil && !onLoopback(ln.Addr()) {
		return errors.Join(fmt.Errorf("the admin listener at %s needs a token: set one, or listen on the loopback", ln.Addr()), ln.Close())
	}
	if err := s.http.Serve(netutil.LimitListener(ln, maxConns)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve administration: %w", err)
	}
	return nil
}

// Close ends all connections at once: a profile that is being taken is worth no wait.
func (s *Server) Close() error { return s.http.Close() }

func onLoopback(a net.Addr) bool {
	ap, err := netip.ParseAddrPort(a.String())
	return err == nil && ap.Addr().Unmap().IsLoopback()
}

func (s *Server) guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		switch {
		case r.ContentLength != 0: // nothing here takes a body, and none is waited for
			w.Header().Set("Connection", "close")
			writeText(w, http.StatusBadRequest, "send no body\n")
		case s.token.Load() == nil && !local(r):
			writeText(w, http.StatusForbidden, "without a token only programs on this machine are served, at localhost or 127.0.0.1: set admin.token_file\n")
		case s.token.Load() != nil && !s.bears(r):
			w.Header().Set("WWW-Authenticate", `Bearer realm="postern admin"`)
			writeText(w, http.StatusUnauthorized, "send the token of admin.token_file as Authorization: Bearer\n")
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// bears reports whether a request has the token. The time that it takes tells nothing
// of either.
func (s *Server) bears(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return subtle.ConstantTimeCompare(sum[:], s.token.Load()[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// local reports whether a request is of a program on this machine.
func local(r *http.Request) bool {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !ap.Addr().Unmap().IsLoopback() || !loopback.IsHost(r.Host) || r.Header.Get("Origin") != "" {
		return false
	}
	return !peer.ClaimsForwarding(func(name string) bool { return r.Header.Get(name) != "" })
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWait)
	defer cancel()
	if s.cfg.Ready != nil {
		if err := s.cfg.Ready(ctx); err != nil {
			s.cfg.Log.Warn("not ready", "err", err)
			writeText(w, http.StatusServiceUnavailable, "not ready\n")
			return
		}
	}
	writeText(w, http.StatusOK, "ready\n")
}

// metrics answers with everything the gatherer has; a collector that fails costs only
// its own metrics.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	families, err := s.cfg.Gatherer.Gather()
	if err != nil {
		s.cfg.Log.Error("gather metrics", "err", err)
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	var b bytes.Buffer
	e := expfmt.NewEncoder(&b, format)
	for _, f := range families {
		if err := e.Encode(f); err != nil {
			s.cfg.Log.Error("encode metric", "metric", f.GetName(), "err", err)
			writeText(w, http.StatusInternalServerError, "metrics cannot be written; the log says why\n")
			return
		}
	}
	w.Header().Set("Content-Type", string(format))
	_, _ = w.Write(b.Bytes()) // a caller that left needs no answer
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // a caller that left needs no answer
}
