// Package rest answers HTTP with JSON: one adapter turns a row of the catalogue
// into a route. The package decides nothing about lockers or parcels itself.
//
// A request gets its id and language, passes the catalogue's pipeline, and has
// its input decoded before the operation runs.
// Every error has the same body, in the caller's language; what is ours is
// logged in full and shown as INTERNAL_ERROR. A panic ends one request.
// Operations get a context of the server's with a deadline, and copies of all
// bytes.
//
// What is neither an operation nor a service address goes to Config.Pages.
package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/router"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/limit"
	"github.com/postern-io/postern/cloud/peer"
)

// Config is what New needs.
type Config struct {
	Catalog  *catalog.Catalog
	Pipeline *catalog.Pipeline

	// GraphQL answers POST /api/graphql; nil: there is no such address.
	GraphQL func(ctx context.Context, q GraphQLRequest) GraphQLResponse

	// Mounts answer what they like at addresses of their own.
	Mounts []Mount
	// Pages answers what is no operation. nil: NOT_FOUND.
	Pages    fasthttp.RequestHandler
	Ready    func(ctx context.Context) error // for /readyz; nil: always ready
	Instance string                          // of this process, that /healthz names in InstanceHeader
	// HealthOnly serves /healthz and /readyz and nothing else.
	HealthOnly bool

	Metrics prometheus.Registerer // nil: they are not shown
	// AccessLog gets a line of each answered request, at the level info; nil: none is
	// written.
	AccessLog *slog.Logger

	// Alone says that no other node writes to the database: answers to callers with an account
	// are kept for a second, too, until they change.
	Alone bool

	BaseURL string // own public address, for links; "": from the request
	Version string // of the product, for the description
	Log     *slog.Logger
	// Proxies are those whose word about their callers counts.
	Proxies peer.Proxies
	// RedirectTLS is the public address, https://host, that requests without TLS are
	// sent to; "": they are served. Secure is what every answer over TLS says of
	// later visits, a Strict-Transport-Security header; "": nothing.
	RedirectTLS, Secure string
	// Challenge answers what a certificate authority asks over plain HTTP and says
	// whether it did; nil: nothing is asked.
	Challenge func(ctx *fasthttp.RequestCtx) bool
	// Origins are pages of others that may call with a token: https://host.
	Origins []string
	Room    Room
	// Connections bounds those that are open, by address but for this machine's, private
	// networks' and trusted proxies'.
	Connections limit.Connections
	// Timeout bounds one operation; 0 is 30 s.
	Timeout time.Duration
}

// Mount is an address that another face answers, whatever the method. Its
// answers get a request id like all others; a panic ends one request.
type Mount struct {
	Path    string // may have {names}
	MaxBody int    // bytes; 0 is that of the server
	Slow    bool   // answers may take minutes
	// Upload names the cookie that holds the token of who sends a file: the bodies of
	// callers whose token is good may take minutes, those of others are as short as
	// everywhere. Empty: bodies are no files.
	Upload string
	Handle fasthttp.RequestHandler
	// TooLarge answers a request whose body is over MaxBody and was not read.
	// nil: as everywhere.
	TooLarge fasthttp.RequestHandler
	// Answer, in place of Handle, gives a body that is answered as JSON, with an ETag, or an
	// error in the form of all others.
	Answer func(c context.Context, ctx *fasthttp.RequestCtx) (any, error)
	// Document, in place of Handle, is a document that everybody may read, by GET
	// and HEAD, from pages of any origin.
	Document func(q DocumentQuery) (Document, error)
}

// RequestID is the id of a request that a Mount answers.
func RequestID(ctx *fasthttp.RequestCtx) string {
	id, _ := ctx.UserValue(idKey).(string)
	return id
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
	answers *answers
	metrics *metrics
	routes  []route
	// addresses are those that are answered but for pages, by method.
	addresses map[string][]string
	// transfers are the rows whose bodies are files.
	transfers []*catalog.Operation

	descriptionOnce sync.Once
	description     []byte // of the REST addresses, with someBase

	warnedOfProxy atomic.Bool

	slow      slow
	room      *room
	crowd     *limit.Crowd
	mu        sync.Mutex // of what follows
	listeners []net.Listener
	stopped   bool
}

// New builds the server; Serve starts it.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.AccessLog == nil {
		cfg.AccessLog = slog.New(slog.DiscardHandler)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	s := &Server{cfg: cfg, log: cfg.Log, answers: newAnswers(), room: newRoom(cfg.Room)}
	s.crowd = limit.NewCrowd(cfg.Connections, cfg.Proxies.SpeakForMany)
	s.ctx, s.stop = context.WithCancel(context.Background())
	for _, op := range cfg.Catalog.Operations() {
		s.routes = append(s.routes, routeOf(&op))
		if op.Upload() != nil || op.Streams() {
			s.transfers = append(s.transfers, &op)
		}
	}
	s.metrics = newMetrics(cfg.Metrics, func() float64 { return float64(s.http.GetOpenConnectionsCount()) })
	s.http = &fasthttp.Server{
		Handler: s.handler(), ErrorHandler: s.unreadable, NoDefaultServerHeader: true, NoDefaultContentType: true,
		HeaderReceived: s.received, MaxRequestBodySize: maxBody, ReadBufferSize: maxHeader, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		Concurrency: concurrency, DisablePreParseMultipartForm: true, CloseOnShutdown: true,
		KeepHijackedConns: true, // streams of pages close their own
		TCPKeepalive:      true, Logger: quiet{s.log}, SecureErrorLogMessage: true,
	}
	return s
}

// Addresses are those that are answered, but for pages, by method; ANY, written *, is every
// method, and a part in braces stands for any.
func (s *Server) Addresses() map[string][]string { return s.addresses }

// SetConnections changes how many connections may be open.
func (s *Server) SetConnections(most limit.Connections) { s.crowd.SetMost(most) }

// quiet takes what the HTTP library says about connections.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(format string, args ...any) {
	q.log.Debug("http connection", "detail", fmt.Sprintf(format, args...))
}

// Serve takes connections until Shutdown. Several listeners can be served at once,
// those with TLS too.
func (s *Server) Serve(ln net.Listener) error {
	ln = &closedOnce{Listener: &lingering{Listener: ln, slow: &s.slow, crowd: s.crowd}}
	s.mu.Lock()
	s.listeners = append(s.listeners, ln)
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		return ln.Close()
	}
	if err := s.http.Serve(ln); err != nil && !s.ended(err) {
		return fmt.Errorf("serve HTTP on %s: %w", ln.Addr(), err)
	}
	return nil
}

// Shutdown stops taking connections, lets running requests and streams end,
// and gives up on them when ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.stop()
	s.mu.Lock()
	s.stopped = true
	for _, ln := range s.listeners { // the library only knows of one once it serves
		_ = ln.Close()
	}
	s.mu.Unlock()
	if err := s.http.ShutdownWithContext(ctx); err != nil {
		return fmt.Errorf("stop HTTP: %w", err)
	}
	return nil
}

// closedOnce is a listener that may be closed again: by us, and by the library,
// which takes a second close for a failure.
type closedOnce struct {
	net.Listener
	once sync.Once
	err  error
}

func (l *closedOnce) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}

// ended reports whether serving ended because it was asked to.
func (s *Server) ended(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped && (errors.Is(err, net.ErrClosed) || errors.Is(err, fasthttputil.ErrInmemoryListenerClosed))
}

// route is one row with what fills its input from requests.
type route struct {
	*catalog.Operation
	fill func(reflect.Value, *query) error
}

func routeOf(op *catalog.Operation) route { return route{op, binder(op.In())} }

// handler makes a route of every row.
func (s *Server) handler() fasthttp.RequestHandler {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath, r.HandleOPTIONS = false, false, false
	r.NotFound = s.guarded(func(ctx *fasthttp.RequestCtx) {
		if s.cfg.HealthOnly {
			writeText(ctx, fasthttp.StatusNotFound, "this node serves devices; ask one that serves HTTP\n")
			return
		}
		if s.cfg.Pages != nil && isPage(string(ctx.Path())) {
			named(opPage, s.cfg.Pages)(ctx)
			return
		}
		c, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
		defer cancel()
		state, err := s.cfg.Pipeline.Unknown(c, string(ctx.Path()), s.who(ctx))
		limitHeaders(ctx, state)
		s.refuse(ctx, err)
	})
	r.MethodNotAllowed = s.guarded(func(ctx *fasthttp.RequestCtx) {
		s.refuse(ctx, cloud.E(cloud.Malformed, "METHOD_NOT_ALLOWED"))
	})
	r.GET("/healthz", named(opProbe, s.guarded(s.healthy)))
	r.GET("/readyz", named(opProbe, s.guarded(s.ready)))
	if s.cfg.HealthOnly {
		return s.entered(r.Handler)
	}
	methods := map[string][]string{} // by path
	for i := range s.routes {
		op := &s.routes[i]
		h := named(op.Name, s.guarded(s.shared(func(ctx *fasthttp.RequestCtx) { s.serve(ctx, op) })))
		r.Handle(op.Method, op.Path, h)
		methods[op.Path] = append(methods[op.Path], op.Method)
		if op.Method == fasthttp.MethodGet {
			r.HEAD(op.Path, h)
		}
	}
	if s.cfg.GraphQL != nil {
		r.POST("/api/graphql", named(opGraphQL, s.guarded(s.shared(s.graphQL))))
		methods["/api/graphql"] = []string{fasthttp.MethodPost}
	}
	for path, list := range methods {
		r.OPTIONS(path, named(opPreflight, s.asked(list)))
	}
	for _, m := range s.cfg.Mounts {
		if m.Document != nil {
			h := named(m.Path, s.guarded(func(ctx *fasthttp.RequestCtx) { s.document(ctx, m) }))
			r.GET(m.Path, h)
			r.HEAD(m.Path, h)
			r.OPTIONS(m.Path, named(opPreflight, s.guarded(preflight)))
			continue
		}
		handle := m.Handle
		if m.Answer != nil {
			handle = func(ctx *fasthttp.RequestCtx) { s.answerMount(ctx, m) }
		}
		r.ANY(m.Path, named(m.Path, s.guarded(handle)))
	}
	r.GET("/api/openapi.json", named("/api/openapi.json", s.guarded(s.openAPI)))
	s.addresses = r.List()
	return s.entered(r.Handler)
}

// isPage reports whether an address is for people: all but the interface, and
// in there the protocol's description and the guide for receivers of webhooks.
func isPage(path string) bool {
	const guide, hooks = "/api/otep-guide", "/api/webhooks-guide"
	return path != "/api" && !strings.HasPrefix(path, "/api/") || path == guide || strings.HasPrefix(path, guide+"/") || path == hooks
}

// guarded ends a panic at its request and gives every answer its id.
func (s *Server) guarded(h fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		id := requestID(ctx)
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("request panicked", "request_id", id, "path", loggedPath(ctx), "panic", p, "stack", stack())
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

// InstanceHeader names the process that answers /healthz.
const InstanceHeader = "X-Postern-Instance"

func (s *Server) healthy(ctx *fasthttp.RequestCtx) {
	if s.cfg.Instance != "" {
		ctx.Response.Header.Set(InstanceHeader, s.cfg.Instance)
	}
	writeText(ctx, fasthttp.StatusOK, "ok\n")
}

func (s *Server) ready(ctx *fasthttp.RequestCtx) {
	if s.cfg.Ready != nil {
		c, cancel := context.WithTimeout(s.ctx, 2*time.Second)
		defer cancel()
		if err := s.cfg.Ready(c); err != nil {
			s.log.Warn("not ready", "err", err)
			writeText(ctx, fasthttp.StatusServiceUnavailable, "not ready\n")
			return
		}
	}
	writeText(ctx, fasthttp.StatusOK, "ready\n")
}

func writeText(ctx *fasthttp.RequestCtx, status int, text string) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.SetBodyString(text)
}
