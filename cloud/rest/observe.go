package rest

import (
	"log/slog"
	"time"

	"github.com/fasthttp/router"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/peer"
)

// operationKey is where a request keeps the name of what answers it.
type operationKey struct{}

// Names of what is no operation of the catalogue. Mounts have their paths, as they are
// declared.
const (
	opUnknown    = "unknown"
	opPage       = "page"
	opGraphQL    = "graphql"
	opProbe      = "probe"
	opRedirect   = "redirect"
	opPreflight  = "preflight"
	opUnreadable = "unreadable"
)

// named gives requests the name that metrics and the access log know them by.
func named(name string, h fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		ctx.SetUserValue(operationKey{}, name)
		h(ctx)
	}
}

// metrics of requests. The labels are names of operations and classes of statuses, so
// that there are no more series than operations times five.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer, open func() float64) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "postern_http_requests_total", Help: "Requests that were answered, by operation and class of the status."}, []string{"operation", "class"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "postern_http_request_seconds", Help: "Time until the answer was made; a stream goes on after it.",
			Buckets: []float64{.001, .005, .025, .1, .5, 2.5, 10}}, []string{"operation"}),
	}
	if r != nil {
		r.MustRegister(m.requests, m.seconds, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "postern_http_connections", Help: "Open connections of HTTP."}, open))
	}
	return m
}

// observe counts an answered request and writes its line of the access log.
func (s *Server) observe(ctx *fasthttp.RequestCtx, begun time.Time) {
	name, ok := ctx.UserValue(operationKey{}).(string)
	if !ok {
		name = opUnknown
	}
	took, status := time.Since(begun), ctx.Response.StatusCode()
	s.metrics.requests.WithLabelValues(name, string('0'+byte(min(max(status/100, 1), 5)))+"xx").Inc()
	s.metrics.seconds.WithLabelValues(name).Observe(took.Seconds())
	if s.cfg.AccessLog.Enabled(s.ctx, slog.LevelInfo) && (name != opProbe || status >= fasthttp.StatusBadRequest) {
		s.logAccess(ctx, name, took)
	}
}

// logAccess writes what may be known of a request: names of ours in place of its address,
// which may hold codes, keys and tokens, and nothing of its headers and body but a usable
// request id. Balancers' questions that were answered yes have no line.
func (s *Server) logAccess(ctx *fasthttp.RequestCtx, name string, took time.Duration) {
	line := append(make([]slog.Attr, 0, 9), slog.String("method", methodOf(ctx)), slog.String("operation", name))
	if route, ok := ctx.UserValue(router.MatchedRoutePathParam).(string); ok {
		line = append(line, slog.String("route", route))
	}
	line = append(line, slog.Int("status", ctx.Response.StatusCode()))
	if n := answered(ctx); n >= 0 {
		line = append(line, slog.Int("bytes", n))
	}
	line = append(line, slog.Float64("duration_ms", float64(took.Microseconds())/1000))
	if id := peer.Account(ctx); id != 0 {
		line = append(line, slog.Int64("account", id))
	}
	if id := RequestID(ctx); id != "" {
		line = append(line, slog.String("request_id", id))
	}
	s.cfg.AccessLog.LogAttrs(s.ctx, slog.LevelInfo, "request", append(line, slog.String("address", ctx.RemoteIP().String()))...)
}

// methodOf is a request's method; one that HTTP does not have may be any text.
func methodOf(ctx *fasthttp.RequestCtx) string {
	switch m := string(ctx.Method()); m {
	case fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost, fasthttp.MethodPut, fasthttp.MethodPatch, fasthttp.MethodDelete, fasthttp.MethodOptions:
		return m
	}
	return "other"
}

// answered is how many bytes the body of an answer has, as it is sent; -1 of a stream
// whose end is not known.
func answered(ctx *fasthttp.RequestCtx) int {
	switch {
	case ctx.IsHead():
		return 0
	case ctx.Response.IsBodyStream():
		return ctx.Response.Header.ContentLength()
	}
	return len(ctx.Response.Body())
}
