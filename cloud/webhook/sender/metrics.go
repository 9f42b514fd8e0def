package sender

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
)

// metrics of the sender. No label holds an address, customer or event id.
type metrics struct {
	emitted, attempts, deliveries, postponed, connections, oversize *prometheus.CounterVec
	leaseLost                                                       prometheus.Counter
	first, delivery, phase, batch                                   *prometheus.HistogramVec
	waiting, oldest, inFlight, endpoints, overlap                   *prometheus.GaugeVec
}

var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 600, 3600, 86400}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, b []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: b}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		emitted:     counter("webhook_emitted_total", "Events with a receiver.", "channel", "event"),
		attempts:    counter("webhook_attempts_total", "Attempts by what came back.", "channel", "result"),
		deliveries:  counter("webhook_deliveries_total", "Deliveries that ended.", "channel", "outcome"),
		postponed:   counter("webhook_postponed_total", "Times a receiver was passed over.", "reason"),
		connections: counter("webhook_connections_total", "Connections that carried an attempt.", "reused"),
		oversize:    counter("webhook_oversize_total", "Attempts above 64 KiB, headers included, which receivers of CloudEvents need not take.", "channel"),
		leaseLost: prometheus.NewCounter(prometheus.CounterOpts{Name: "webhook_lease_lost_total",
			Help: "Results that came after another node had taken over."}),
		first:     histogram("webhook_first_attempt_seconds", "From commit to the first byte out.", buckets, "channel"),
		delivery:  histogram("webhook_delivery_seconds", "From commit to success.", buckets, "channel"),
		phase:     histogram("webhook_attempt_seconds", "Phases of an attempt.", buckets, "phase"),
		batch:     histogram("webhook_commit_batch_size", "Results stored together.", prometheus.ExponentialBuckets(1, 2, 10), "kind"),
		waiting:   gauge("webhook_waiting", "Deliveries that are not finished.", "channel", "state"),
		oldest:    gauge("webhook_oldest_due_seconds", "How long the oldest due delivery has waited.", "channel"),
		inFlight:  gauge("webhook_in_flight", "Attempts in flight.", "channel"),
		endpoints: gauge("webhook_endpoints", "Receivers that are switched on.", "status"),
		overlap:   gauge("webhook_secret_overlap", "Secrets that sign beside another one.", "channel"),
	}
	if r != nil {
		r.MustRegister(m.emitted, m.attempts, m.deliveries, m.postponed, m.connections, m.oversize, m.leaseLost, m.first, m.delivery,
			m.phase, m.batch, m.waiting, m.oldest, m.inFlight, m.endpoints, m.overlap)
	}
	return m
}

var codeResults = map[string]string{fetch.CodeTimeout: "timeout", fetch.CodeConnect: "connect", fetch.CodeTLS: "tls", fetch.CodeDNS: "dns", fetch.CodeBlocked: "blocked"}

// size counts a request that may be too large.
func (m *metrics) size(w *cloud.OutboxWork, r request) {
	if r.large() {
		m.oversize.WithLabelValues(w.Event.Channel).Inc()
	}
}

// attempt counts one attempt that ended at now.
func (m *metrics) attempt(w *cloud.OutboxWork, a *fetch.Answer) {
	result := codeResults[a.Code]
	switch {
	case result != "":
	case a.Status >= 100 && a.Status < 600:
		result = string('0'+byte(a.Status/100)) + "xx"
	default: // a receiver may answer any number
		result = "other"
	}
	m.attempts.WithLabelValues(w.Event.Channel, result).Inc()
	if a.Sent.IsZero() {
		return
	}
	reused := "false"
	if a.Reused {
		reused = "true"
	}
	m.connections.WithLabelValues(reused).Inc()
	if w.Delivery.Attempts == 0 && w.Delivery.ReplayOf == 0 {
		m.first.WithLabelValues(w.Event.Channel).Observe(a.Sent.Sub(w.Delivery.CreatedAt).Seconds())
	}
	for phase, d := range map[string]time.Duration{"dns": a.Phases.DNS, "connect": a.Phases.Connect, "tls": a.Phases.TLS,
		"first_byte": a.Phases.FirstByte, "total": a.Phases.Total} {
		if d > 0 {
			m.phase.WithLabelValues(phase).Observe(d.Seconds())
		}
	}
}

// ended counts one delivery that will not be tried again.
func (m *metrics) ended(w *cloud.OutboxWork, r *cloud.OutboxResult) {
	outcome := string(r.State)
	switch {
	case r.State == cloud.OutboxSuccess:
		m.delivery.WithLabelValues(w.Event.Channel).Observe(r.DeliveredAt.Sub(w.Delivery.CreatedAt).Seconds())
	case r.State == cloud.OutboxRetrying || r.State == cloud.OutboxPaused:
		return
	case r.Reason == ReasonGone:
		outcome = ReasonGone
	}
	m.deliveries.WithLabelValues(w.Event.Channel, outcome).Inc()
}
