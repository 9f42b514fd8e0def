package webhook

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// A healthy address is degraded while its breaker would be open, or when more
// than a tenth of an hour's attempts failed; what was decided about it stands.
func TestWhenAnAddressIsDegraded(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	report := func(attempts, failures, streak int) cloud.EndpointReport {
		return cloud.EndpointReport{EndpointHealth: cloud.EndpointHealth{Failures: streak, FailingSince: since}, AttemptsHour: attempts, FailuresHour: failures}
	}
	for _, c := range []struct {
		status string
		report cloud.EndpointReport
		want   string
	}{
		{"healthy", report(0, 0, 0), "healthy"},
		{"healthy", report(100, 10, 0), "healthy"},
		{"healthy", report(100, 11, 0), "degraded"},
		{"healthy", report(10_000, 9, 9), "healthy"},
		{"healthy", report(10_000, 10, 10), "degraded"},
		{"paused", report(100, 100, 100), "paused"},
		{"gone", report(100, 100, 100), "gone"},
	} {
		h := urlHealth(urlSeen{Endpoint: cloud.Endpoint{Status: c.status}}, c.report, time.UTC)
		require.Equal(t, c.want, h.Status, "%+v", c.report)
		if c.want == "degraded" {
			require.Equal(t, "2026-11-20T12:00:00Z", *h.Since)
		}
	}
}

// The overlap of secrets is the deployment's; none ends the former at once.
func TestOverlapOfSecrets(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, overlap := range []time.Duration{0, time.Hour} {
		next := "fedcba9876543210"
		k := settingsWriter{now: now, overlap: overlap, to: cloud.WebhookSettings{Secret: []byte("0123456789abcdef")}}
		k.secrets(&SettingsInput{SecretNext: &next, given: map[string]bool{memberNext: true}}, problems{})
		current, also := k.to.Secrets(now)
		if overlap == 0 {
			require.Equal(t, []any{next, ""}, []any{string(current), string(also)})
			continue
		}
		require.Equal(t, []any{"0123456789abcdef", next}, []any{string(current), string(also)})
		current, also = k.to.Secrets(now.Add(overlap))
		require.Equal(t, []any{next, ""}, []any{string(current), string(also)})
	}
}
