package server

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/postern-io/postern/cloud/store"
)

// commitMetrics watch transactions.
type commitMetrics struct {
	seconds prometheus.Histogram
	changes prometheus.Histogram
}

func newCommitMetrics(r prometheus.Registerer) commitMetrics {
	m := commitMetrics{
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "postern_commit_seconds", Help: "Time of a transaction with its commit.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}}),
		changes: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "postern_commit_changes", Help: "Changes that were committed together.", Buckets: prometheus.ExponentialBuckets(1, 4, 6)}),
	}
	r.MustRegister(m.seconds, m.changes)
	return m
}

func (m commitMetrics) observe(took time.Duration, changes int) {
	m.seconds.Observe(took.Seconds())
	m.changes.Observe(float64(changes))
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// What nodeMetrics tells.
var (
	buildInfo      = desc("postern_build_info", "1, with the release and the schema of the database.", "version", "schema")
	dbConnections  = desc("postern_database_connections", "Connections to the database, by state.", "state")
	dbMost         = desc("postern_database_connections_max", "The most connections to the database.")
	dbWaits        = desc("postern_database_waits_total", "Times that a connection to the database had to be waited for.")
	dbQueued       = desc("postern_database_queued", "Decisions that wait for the writer of SQLite.")
	dbBytes        = desc("postern_database_bytes", "Size of the file of SQLite and of its write-ahead log; 0 with PostgreSQL.", "file")
	dataFree       = desc("postern_data_free_bytes", "Room that is left on the disk of the data folder.")
	dataSize       = desc("postern_data_size_bytes", "Size of the disk of the data folder.")
	mqttConns      = desc("postern_mqtt_connections", "Connections of this node's broker: devices, apps, and all with those that have not logged in.", "kind")
	mqttMessages   = desc("postern_mqtt_messages_total", "Messages by direction; dropped ones were too many for a slow client, and come again.", "direction")
	mqttBytes      = desc("postern_mqtt_bytes_total", "Bytes of MQTT by direction.", "direction")
	queueRows      = desc("postern_queue_rows", "Rows that wait, counted up to 10,000, in the deployment's database.", "queue")
	queueOldest    = desc("postern_queue_oldest_seconds", "How long the oldest row has waited, or been due; 0: none waits.", "queue")
	taskHeld       = desc("postern_task_held", "1: this node does the background task.", "task")
	taskSeconds    = desc("postern_task_held_seconds", "How long this node has done the background task; 0: it does not.", "task")
	leaseAge       = desc("postern_lease_age_seconds", "How long ago this node's lease was renewed; 0 where no other node shares the database.")
	leaseLost      = desc("postern_lease_lost_total", "Times that this node's lease could not be renewed in time.")
	startedAt      = desc("postern_started_timestamp_seconds", "When this process started.")
	certificateEnd = desc("postern_certificate_not_after_timestamp_seconds", "When the first of this node's certificates ends; 0: it has none yet.")
)

// nodeMetrics collects what a node can tell of itself. Labels name operations, tasks and
// queues of the product, never a business, parcel, code or address.
type nodeMetrics struct{ s *Server }

// Describe implements prometheus.Collector.
func (m nodeMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{buildInfo, dbConnections, dbMost, dbWaits, dbQueued, dbBytes, dataFree, dataSize, mqttConns, mqttMessages, mqttBytes,
		queueRows, queueOldest, taskHeld, taskSeconds, leaseAge, leaseLost, certificateEnd, startedAt} {
		ch <- d
	}
}

// processStart is known without /proc, which a unit of systemd may hide.
var processStart = time.Now()

// queueWait bounds what a scrape asks of the database.
const queueWait = 2 * time.Second

// Collect implements prometheus.Collector. Without an answer of the database in time the
// queues are left out.
func (m nodeMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge(startedAt, float64(processStart.Unix()))
	gauge(buildInfo, 1, m.s.cfg.Version, store.Schema())
	c := m.s.Store.Connections()
	gauge(dbConnections, float64(c.Busy), "busy")
	gauge(dbConnections, float64(max(c.Open-c.Busy, 0)), "idle")
	gauge(dbMost, float64(c.Most))
	counter(dbWaits, float64(c.Waits))
	gauge(dbQueued, float64(c.Queued))
	gauge(dbBytes, float64(c.Size), "database")
	gauge(dbBytes, float64(c.WALSize), "wal")
	if free, size, ok := diskSpace(m.s.cfg.Dir); ok {
		gauge(dataFree, float64(free))
		gauge(dataSize, float64(size))
	}
	t := m.s.Broker.Traffic()
	gauge(mqttConns, float64(t.Devices), "devices")
	gauge(mqttConns, float64(t.Apps), "apps")
	gauge(mqttConns, float64(t.Connections), "all")
	counter(mqttMessages, float64(t.Received), "received")
	counter(mqttMessages, float64(t.Sent), "sent")
	counter(mqttMessages, float64(t.Dropped), "dropped")
	counter(mqttBytes, float64(t.BytesReceived), "received")
	counter(mqttBytes, float64(t.BytesSent), "sent")
	m.leases(gauge, counter)
	if at, ok := endOfCertificates(m.s); ok {
		gauge(certificateEnd, at)
	}
	m.queues(gauge)
}

func (m nodeMetrics) leases(gauge, counter func(*prometheus.Desc, float64, ...string)) {
	now, held := time.Now(), m.s.member.Held()
	age := 0.0
	if m.s.Store.Peers() && !held.Renewed.IsZero() {
		age = now.Sub(held.Renewed).Seconds()
	}
	gauge(leaseAge, age)
	counter(leaseLost, float64(held.Lost))
	for name, since := range held.Tasks {
		does, seconds := 0.0, 0.0
		if !since.IsZero() {
			does, seconds = 1, now.Sub(since).Seconds()
		}
		gauge(taskHeld, does, name)
		gauge(taskSeconds, seconds, name)
	}
}

func (m nodeMetrics) queues(gauge func(*prometheus.Desc, float64, ...string)) {
	ctx, stop := context.WithTimeout(m.s.ctx, queueWait)
	defer stop()
	list, err := m.s.Store.CountQueues(ctx)
	if err != nil {
		m.s.log.Warn("count queues", "err", err)
		return
	}
	now := time.Now()
	for _, q := range list {
		age := 0.0
		if !q.Oldest.IsZero() {
			age = max(now.Sub(q.Oldest).Seconds(), 0)
		}
		gauge(queueRows, float64(q.Count), q.Name)
		gauge(queueOldest, age, q.Name)
	}
}

// endOfCertificates is when the first certificate ends, in unix seconds; 0: one is missing.
// ok is false where TLS is not set up.
func endOfCertificates(s *Server) (at float64, ok bool) {
	if s.tls == nil {
		return 0, false
	}
	names := s.cfg.TLS.Names
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		c, err := s.tls.GetCertificate(&tls.ClientHelloInfo{ServerName: name, SupportedVersions: []uint16{tls.VersionTLS13}})
		if err != nil || c == nil || c.Leaf == nil {
			return 0, true
		}
		if end := float64(c.Leaf.NotAfter.Unix()); at == 0 || end < at {
			at = end
		}
	}
	return at, true
}

// registerMetrics adds what is of the process and of the node.
func registerMetrics(s *Server) {
	s.Metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), nodeMetrics{s})
}
