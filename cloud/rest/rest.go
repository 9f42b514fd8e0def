// Package rest answers HTTP with JSON. Every operation is one row of a table:
// method, path, who may call, how often, and a typed function of a feature; one
// adapter turns a row into a route. The package decides nothing about
// lockers or parcels itself.
//
// A request passes, in this order: request id, language, token, rate limit,
// account type, body, idempotency key, operation. Every error has the same
// body, in the caller's language; what is ours is logged in full and shown as
// INTERNAL_ERROR. A panic ends one request. Operations get a context of the
// server's with a deadline, and copies of all bytes. Rate limits and
// idempotency keys are kept in memory of this node.
//
// What is neither an operation nor a service address goes to Config.Pages.
package rest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/fasthttp/router"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/limit"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/receiver"
	"github.com/postern-io/postern/cloud/tracking"
)

// Store is what this package needs of the database itself.
type Store interface {
	Look(ctx context.Context, fn func(cloud.View) error) error
}

// Config is what New needs.
type Config struct {
	Store     Store
	FindToken func(ctx context.Context, hash [32]byte) (auth.Session, error) // cloud.ErrNotFound when unknown; expired and revoked ones too
	Gate      *auth.Gate
	Auth      *auth.Service
	Lockers   *locker.Service
	Tracking  *tracking.Service
	Receivers *receiver.Service
	// Enrol gives a device its secrets for a one-time token; the answer is
	// encoded as JSON. nil: there is no such operation.
	Enrol func(ctx context.Context, code, token string) (any, error)

	// Pages answers what is no operation. nil: NOT_FOUND.
	Pages    fasthttp.RequestHandler
	Ready    func(ctx context.Context) error // for /readyz; nil: always ready
	Gatherer prometheus.Gatherer             // for /metrics; nil: no such address

	BaseURL string // own public address, for links; "": from the request
	Limits  Limits
	Log     *slog.Logger
	// MaxConnsPerIP bounds connections from one address; 0 is 256, negative is
	// unbounded (behind a balancer that hides addresses).
	MaxConnsPerIP int
	// Timeout bounds one operation; 0 is 30 s.
	Timeout time.Duration
}

// Limits are calls a minute. 0 is the usual figure, a negative one no limit.
type Limits struct {
	Authenticated int // per token; 300
	Anonymous     int // per address; 60
	Replay        int // redeliveries per token; 30
	Doors         int // remote openings per cabinet; 30
	Ingest        int // tracking uploads per provider; 6,000
}

func (l Limits) withDefaults() Limits {
	for _, x := range []struct {
		v     *int
		usual int
	}{{&l.Authenticated, 300}, {&l.Anonymous, 60}, {&l.Replay, 30}, {&l.Doors, 30}, {&l.Ingest, 6000}} {
		if *x.v == 0 {
			*x.v = x.usual
		}
	}
	return l
}

// Bounds of the server. 1 MB is 2^20 bytes.
const (
	maxBody      = 2 << 20
	maxHeader    = 16 << 10
	readTimeout  = 30 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 60 * time.Second
	concurrency  = 16 << 10
)

// Server is the HTTP face. Safe for concurrent use.
type Server struct {
	cfg     Config
	log     *slog.Logger
	http    *fasthttp.Server
	ctx     context.Context // of running operations
	stop    context.CancelFunc
	limits  *limit.Buckets
	replays *replays
	table   []Operation
}

// New builds the server; Serve starts it.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.MaxConnsPerIP == 0 {
		cfg.MaxConnsPerIP = 256
	}
	cfg.Limits = cfg.Limits.withDefaults()
	s := &Server{cfg: cfg, log: cfg.Log, limits: limit.New(0), replays: newReplays()}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.table = s.operations()
	s.http = &fasthttp.Server{
		Handler: s.routes(), ErrorHandler: s.unreadable, NoDefaultServerHeader: true, NoDefaultContentType: true,
		MaxRequestBodySize: maxBody, ReadBufferSize: maxHeader, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		Concurrency: concurrency, MaxConnsPerIP: max(cfg.MaxConnsPerIP, 0), DisablePreParseMultipartForm: true, CloseOnShutdown: true,
		TCPKeepalive: true, Logger: quiet{s.log}, SecureErrorLogMessage: true,
	}
	return s
}

// quiet takes what the HTTP library says about connections.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(format string, args ...any) {
	q.log.Debug("http connection", "detail", fmt.Sprintf(format, args...))
}

// Operations lists the table.
func (s *Server) Operations() []Operation { return slices.Clone(s.table) }

// Serve takes connections until Shutdown. Only one listener is served.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(ln); err != nil {
		return fmt.Errorf("serve HTTP on %s: %w", ln.Addr(), err)
	}
	return nil
}

// Shutdown stops taking connections, lets running requests and streams end,
// and gives up on them when ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.stop()
	if err := s.http.ShutdownWithContext(ctx); err != nil {
		return fmt.Errorf("stop HTTP: %w", err)
	}
	return nil
}

// routes makes a route of every row.
func (s *Server) routes() fasthttp.RequestHandler {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath, r.HandleOPTIONS = false, false, false
	r.NotFound = s.guarded(func(ctx *fasthttp.RequestCtx) {
		if s.cfg.Pages != nil && isPage(string(ctx.Path())) {
			s.cfg.Pages(ctx)
			return
		}
		s.refuse(ctx, cloud.E(cloud.NotFound, "NOT_FOUND"))
	})
	r.MethodNotAllowed = s.guarded(func(ctx *fasthttp.RequestCtx) {
		s.refuse(ctx, cloud.E(cloud.Malformed, "METHOD_NOT_ALLOWED"))
	})
	for i := range s.table {
		op := &s.table[i]
		h := s.guarded(func(ctx *fasthttp.RequestCtx) { s.serve(ctx, op) })
		r.Handle(op.Method, op.Path, h)
		if op.Method == fasthttp.MethodGet {
			r.HEAD(op.Path, h)
		}
	}
	r.GET("/healthz", s.guarded(func(ctx *fasthttp.RequestCtx) { plain(ctx, fasthttp.StatusOK, "ok\n") }))
	r.GET("/readyz", s.guarded(s.ready))
	if s.cfg.Gatherer != nil {
		r.GET("/metrics", s.guarded(s.metrics))
	}
	return r.Handler
}

// isPage reports whether an address is for people: all but the interface, and
// in there the protocol's description.
func isPage(path string) bool {
	const guide = "/api/otep-guide"
	return path != "/api" && !strings.HasPrefix(path, "/api/") || path == guide || strings.HasPrefix(path, guide+"/")
}

// guarded ends a panic at its request and gives every answer its id.
func (s *Server) guarded(h fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		id := requestID(ctx)
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("request panicked", "request_id", id, "path", string(ctx.Path()), "panic", p, "stack", stack())
				ctx.Response.Reset()
				s.refuse(ctx, cloud.E(cloud.Internal, "INTERNAL_ERROR"))
			}
			ctx.Response.Header.Set("X-Request-Id", id)
			ctx.Response.Header.Set("X-Content-Type-Options", "nosniff")
		}()
		if oddFraming(ctx.Request.Header.RawHeaders()) {
			ctx.SetConnectionClose() // where the next request begins is anybody's guess
			s.refuse(ctx, cloud.E(cloud.Malformed, "BAD_REQUEST"))
			return
		}
		h(ctx)
	}
}

func (s *Server) ready(ctx *fasthttp.RequestCtx) {
	if s.cfg.Ready != nil {
		c, cancel := context.WithTimeout(s.ctx, 2*time.Second)
		defer cancel()
		if err := s.cfg.Ready(c); err != nil {
			s.log.Warn("not ready", "err", err)
			plain(ctx, fasthttp.StatusServiceUnavailable, "not ready\n")
			return
		}
	}
	plain(ctx, fasthttp.StatusOK, "ready\n")
}

func plain(ctx *fasthttp.RequestCtx, status int, text string) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.SetBodyString(text)
}
