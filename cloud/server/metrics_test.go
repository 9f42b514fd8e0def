package server

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/internal/verdict"
)

// number is asked for, so that a label would show it.
const number = "PKG-424242424242"

// scraped starts a node with what is optional and gives the text of its metrics.
func scraped(t *testing.T) (text string, box Sandbox) {
	t.Helper()
	const token = "a-token-of-some-length"
	ln := Listeners{}
	for _, at := range []*net.Listener{&ln.HTTP, &ln.MQTT, &ln.Admin} {
		var err error
		*at, err = net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
	}
	cert, key, _ := writeCertificate(t, t.TempDir(), 1)
	s, err := New(t.Context(), Config{Dir: t.TempDir(), Admin: AdminConfig{Token: token}, Version: "v1", TLS: TLSConfig{Cert: cert, Key: key},
		Backup: BackupConfig{Folder: t.TempDir(), Every: 1e12, Keep: 2}, OTLPEndpoint: "http://127.0.0.1:1", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	box, err = s.Sandbox(t.Context(), SandboxConfig{})
	require.NoError(t, err)
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- s.Run(ctx, ln) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	ask := func(ln net.Listener, path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+ln.Addr().String()+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, ""
		}
		raw, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		require.NoError(t, a.Body.Close())
		return a.StatusCode, string(raw)
	}
	ring.Await(t, func() bool { status, _ := ask(ln.HTTP, "/readyz"); return status == http.StatusOK })
	for _, path := range []string{"/track/" + number + "?code=123456", "/api/v1/nothing/" + number, "/api/v1/otep/track/" + number} {
		ask(ln.HTTP, path)
	}
	for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap"} {
		status, text := ask(ln.HTTP, path)
		require.Equal(t, http.StatusNotFound, status, "the public listener, even with the token: %s", path)
		require.NotContains(t, text, "go_goroutines")
	}
	ring.Await(t, func() bool {
		var status int
		status, text = ask(ln.Admin, "/metrics")
		return status == http.StatusOK && strings.Contains(text, "postern_backup_newest_timestamp_seconds") && strings.Contains(text, `postern_task_held{task="deadlines"} 1`)
	})
	return text, box
}

// Metrics and labels that rules and dashboard ask for are those of a running node, every
// label has few values, and none names a business, parcel or address.
func TestRulesAndDashboardAskForMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	text, box := scraped(t)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	there := map[string]bool{"up": true}
	for name, f := range families {
		there[name] = true
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			there[name+part] = f.GetType().String() == "HISTOGRAM" || f.GetType().String() == "SUMMARY"
		}
		require.LessOrEqual(t, len(f.GetMetric()), 100, name)
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				require.Contains(t, []string{"operation", "class", "channel", "state", "status", "result", "outcome", "reason", "phase", "reused", "event", "kind", "what", "type", "queue", "task", "file", "direction", "version", "schema", "quantile", "le"}, l.GetName(), name)
				if l.GetName() == "schema" || l.GetName() == "le" {
					continue
				}
				require.NotRegexp(t, `\d{5,}|@`, strings.TrimPrefix(l.GetValue(), "v"), "%s %s", name, l.GetName())
			}
		}
	}
	for _, secret := range append(slices.Clone(box.TrackingNumbers), number, box.Admin.Token, "127.0.0.1") {
		require.NotContains(t, text, secret)
	}
	words := regexp.MustCompile(`(?m) \S+$`).ReplaceAllString(text, "") // without what was measured: any six digits may be part of a sum
	require.Contains(t, words, `class="4xx",operation="unknown"`)
	require.NotContains(t, words, "123456")
	for _, name := range []string{"process_resident_memory_bytes", "go_goroutines", "postern_http_requests_total", "postern_http_request_seconds", "postern_http_connections", "postern_commit_seconds", "postern_commit_changes",
		"postern_database_connections", "postern_database_bytes", "postern_mqtt_connections", "postern_mqtt_messages_total", "postern_queue_rows", "postern_queue_oldest_seconds", "postern_task_held", "postern_task_held_seconds",
		"postern_lease_age_seconds", "postern_lease_lost_total", "postern_certificate_not_after_timestamp_seconds", "postern_data_free_bytes", "postern_device_link_total", "postern_intake_wait_seconds"} {
		require.True(t, there[name] || there[name+"_count"], name)
	}
	require.Regexp(t, `postern_http_requests_total{class="4xx",operation="unknown"} [1-9]`, text)
	require.Regexp(t, `postern_commit_seconds_count [1-9]`, text)
	require.Regexp(t, `postern_database_bytes{file="wal"} [1-9]`, text)

	lazy := regexp.MustCompile(`^webhook_`) // has series once there was a webhook; a test of the sender knows their names
	asked := 0
	for _, expr := range expressions(t) {
		for _, name := range regexp.MustCompile(`\b(postern|webhook|trace|go|process)_[a-z_]+\b|\bup\b`).FindAllString(expr, -1) {
			asked++
			require.True(t, there[name] || lazy.MatchString(name), "%s in %s", name, expr)
		}
	}
	require.Greater(t, asked, 40)
}

// expressions are those of the rules and of the dashboard.
func expressions(t *testing.T) (out []string) {
	t.Helper()
	rules, err := os.ReadFile("../../configs/alerts.yaml")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^ *expr: (.*)$`).FindAllStringSubmatch(string(rules), -1) {
		out = append(out, m[1])
	}
	raw, err := os.ReadFile("../../configs/dashboard.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(raw, &board))
	for _, p := range board.Panels {
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			out = append(out, target.Expr)
		}
	}
	return out
}

// Prometheus's own tool reads the rules, and they fire and stay silent when they should.
func TestPrometheusTakesTheRules(t *testing.T) {
	t.Parallel()
	ring.SkipUnlessFull(t, "names of metrics and labels against a real node")
	tool, err := exec.LookPath("promtool")
	ring.Needs(t, ring.EnvTools, "promtool (Debian's prometheus)", err == nil)
	verdict.RecordTest(t, "promtool", "alert rules and the dashboard's expressions")
	for _, args := range [][]string{{"check", "rules", "../../configs/alerts.yaml"}, {"test", "rules", "testdata/alerts_test.yaml"}} {
		out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	var rules []any // of the dashboard's expressions, as the rules' were checked
	for _, expr := range expressions(t) {
		rules = append(rules, map[string]any{"record": "x", "labels": map[string]string{"n": strconv.Itoa(len(rules))}, "expr": strings.ReplaceAll(expr, "$__rate_interval", "5m")})
	}
	raw, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "dashboard.yaml")
	require.NoError(t, os.WriteFile(name, raw, 0o600))
	out, err := exec.CommandContext(t.Context(), tool, "check", "rules", name).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
