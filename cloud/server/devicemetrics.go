package server

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postern-io/postern/cloud"
)

// deviceExceptionTypes are shown in the metrics also where none is open.
var deviceExceptionTypes = []string{cloud.DevBadBatch, cloud.DevEpochConflict, cloud.DevStoreFork, cloud.DevForeignReference, cloud.DevDuplicateIdentity,
	cloud.DevBadSignature, cloud.DevContentsMismatch, cloud.DevTooManyEpochs, cloud.DevKeypadLocked, cloud.DevReportedStolen, cloud.DevConfigRefused, cloud.DevCompartmentBlocked, cloud.DevDoorShut, cloud.DevUnknownLabel}

var (
	linkTotal = prometheus.NewDesc("postern_device_link_total", "What happened on the device link of this node.", []string{"what"}, nil)
	linkOpen  = prometheus.NewDesc("postern_device_exceptions", "Devices of the deployment with an open exception of a type.", []string{"type"}, nil)
)

// deviceMetrics collects the counters of the device link and the open device
// exceptions.
type deviceMetrics struct{ s *Server }

// Describe implements prometheus.Collector.
func (m deviceMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- linkTotal
	ch <- linkOpen
}

// Collect implements prometheus.Collector. Without an answer of the database
// within two seconds the exceptions are left out.
func (m deviceMetrics) Collect(ch chan<- prometheus.Metric) {
	x := &m.s.Devices.Metrics
	for what, n := range map[string]uint64{"logins": x.Logins.Load(), "batches": x.Batches.Load(), "records": x.Records.Load(), "repeats": x.Repeats.Load(),
		"holes": x.Holes.Load(), "refused": x.Refused.Load(), "dropped": x.Dropped.Load(), "unknown_records": x.Unknown.Load(), "problems": x.Problems.Load(),
		"bad_signatures": x.BadSignatures.Load(), "old_statuses": x.OldStatuses.Load()} {
		ch <- prometheus.MustNewConstMetric(linkTotal, prometheus.CounterValue, float64(n), what)
	}
	ctx, stop := context.WithTimeout(m.s.ctx, 2*time.Second)
	defer stop()
	rows, err := m.s.Store.CountDeviceExceptions(ctx)
	if err != nil {
		m.s.log.Warn("count device exceptions", "err", err)
		return
	}
	open := map[string]int64{}
	for _, t := range deviceExceptionTypes {
		open[t] = 0
	}
	for _, r := range rows {
		open[r.Type] = r.Count
	}
	for t, n := range open {
		ch <- prometheus.MustNewConstMetric(linkOpen, prometheus.GaugeValue, float64(n), t)
	}
}
