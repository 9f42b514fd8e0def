package sender

import (
	"bytes"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// described is a registry that remembers what its metrics are called.
type described struct {
	prometheus.Registerer
	text strings.Builder
}

func (d *described) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		descs := make(chan *prometheus.Desc, 10)
		c.Describe(descs)
		close(descs)
		for x := range descs {
			d.text.WriteString(x.String())
		}
	}
}

// Every metric and label that an alarm asks for is one of ours, and there are
// all the metrics that operators are promised.
func TestAlarmsAskForMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	var d described
	newMetrics(&d)
	raw, err := os.ReadFile("../../../configs/alerts.yaml")
	require.NoError(t, err)
	names := regexp.MustCompile(`webhook_[a-z_]+`).FindAllString(string(raw), -1)
	require.Greater(t, len(names), 5)
	names = append(names, "webhook_emitted_total", "webhook_attempts_total", "webhook_deliveries_total", "webhook_first_attempt_seconds", "webhook_delivery_seconds",
		"webhook_attempt_seconds", "webhook_waiting", "webhook_oldest_due_seconds", "webhook_in_flight", "webhook_endpoints", "webhook_postponed_total",
		"webhook_connections_total", "webhook_commit_batch_size", "webhook_lease_lost_total", "webhook_secret_overlap")
	for _, name := range names {
		require.Contains(t, d.text.String(), `fqName: "`+name+`"`)
	}
}

// An account many of whose addresses are refused is named in the log, once in a
// minute.
func TestManyRefusedAddressesAreLogged(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	d := New(Config{Logger: slog.New(slog.NewTextHandler(&b, nil))})
	for range 3 * manyBlocked {
		d.noteBlocked(7)
	}
	d.noteBlocked(8)
	require.GreaterOrEqual(t, strings.Count(b.String(), "business=7"), 1)
	require.LessOrEqual(t, strings.Count(b.String(), "business=7"), 2, "the minute may have changed")
	require.NotContains(t, b.String(), "business=8")
}
