package rest

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
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

// named gives requests the name that metrics know them by.
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

// observe counts an answered request.
func (s *Server) observe(ctx *fasthttp.RequestCtx, begun time.Time) {
	name, ok := ctx.UserValue(operationKey{}).(string)
	if !ok {
		name = opUnknown
	}
	took, status := time.Since(begun), ctx.Response.StatusCode()
	s.metrics.requests.WithLabelValues(name, string('0'+byte(min(max(status/100, 1), 5)))+"xx").Inc()
	s.metrics.seconds.WithLabelValues(name).Observe(took.Seconds())
}
