package server

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signature"
)

// A carrier's batch reaches everybody: the order moves, the shop's receiver verifies the events, the open page
// of the parcel changes by itself, the feed and the trace collector have each once. What the carrier takes back
// is gone from all of them.
func TestCarriersEventsReachEverybody(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); followCarrier(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); followCarrier(t, storetest.MigratedPostgresURL(t)) })
}

// lines collects what a stream says.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// follow reads a stream of events until the test ends.
func (w *hookWorld) follow(path, token string) *lines {
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.base+path, nil)
	require.NoError(w.t, err)
	req.Header.Set("Accept", "text/event-stream")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(w.t, err)
	require.Equal(w.t, 200, resp.StatusCode)
	l := &lines{}
	go func() {
		defer resp.Body.Close()
		s := bufio.NewScanner(resp.Body)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			l.mu.Lock()
			l.text.WriteString(s.Text() + "\n")
			l.mu.Unlock()
		}
	}()
	return l
}

// page is an address of the pages, as a visitor without an account sees it.
func (w *hookWorld) page(path string) string {
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.base+path, nil)
	require.NoError(w.t, err)
	req.Header.Set("Accept", "text/html")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	require.Equal(w.t, 200, resp.StatusCode, "%s", b)
	return string(b)
}

func followCarrier(t *testing.T, database string) {
	var spans lines
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return
		}
		b, _ := io.ReadAll(z)
		spans.mu.Lock()
		defer spans.mu.Unlock()
		spans.text.Write(b)
	}))
	t.Cleanup(collector.Close)
	w := newHookWorld(t, database, func(c *Config) { c.OTLPEndpoint = collector.URL })
	const secret = "0123456789abcdef0123456789abcdef"
	admin := w.box.Admin.Token
	status, out := w.call("PUT", "/api/v1/webhook-settings", admin, map[string]any{"webhook_sign_secret": secret, "tracking_event_webhook_url": w.hook.URL + "/events", "order_status_change_webhook_url": w.hook.URL + "/status"})
	require.Equal(t, 200, status, "%v", out)
	status, out = w.call("POST", "/api/v1/providers", admin, map[string]any{"code": "swift", "name": "Swift", "services": []string{"otep"}, "source_type": "carrier", "scope": "all"})
	require.Equal(t, 201, status, "%v", out)
	status, out = w.call("POST", fmt.Sprintf("/api/v1/providers/%.0f/tokens", out["provider"].(map[string]any)["id"]), admin, map[string]any{"name": "events", "confirm": true, "password": w.box.Admin.Password})
	require.Equal(t, 201, status, "%v", out)
	carrier := out["token"].(string)
	status, made := w.call("POST", "/api/v1/client/orderCreate", admin, map[string]any{"type": "D", "packages": []any{map[string]any{"weight": 1}}, "recipient": map[string]any{"name": "Ada", "phone": "+14165550123",
		"address_line1": "100 Queen St W", "city": "Toronto", "province": "ON", "postal_code": "M5H 2N2", "country": "CA"}})
	require.Equal(t, 201, status, "%v", made)
	number, id := made["tracking_number"].(string), fmt.Sprintf("%.0f", made["order_id"])

	ticket := regexp.MustCompile(`data-ticket="([^"]+)"`).FindStringSubmatch(w.page("/track/" + number))
	require.NotNil(t, ticket, "the page has a ticket for what changes")
	live := w.follow("/live?t="+url.QueryEscape(html.UnescapeString(ticket[1])), "")
	failed, onTheWay := html.EscapeString(locale.Status("en", "delivery_failed")), html.EscapeString(locale.Status("en", "out_for_delivery"))
	feed := w.follow("/api/v1/otep/changes", admin)
	ring.Await(t, func() bool { return strings.Contains(feed.String(), `"information_submitted"`) })

	at := time.Now().Add(time.Second)
	event := func(id, code string, after int) map[string]any {
		return map[string]any{"event_id": id, "status_code": code, "occurred_at": at.Add(time.Duration(after) * time.Second).Format(time.RFC3339Nano), "source": map[string]any{"type": "carrier"}}
	}
	begun := time.Now()
	status, out = w.call("POST", "/api/v1/otep/ingest", carrier, map[string]any{"otep_version": "0.1", "subject": map[string]any{"tracking_number": number},
		"events": []any{event("c-1", "in_transit", 0), event("c-2", "out_for_delivery", 1), event("c-3", "delivery_failed", 2)}})
	require.Equal(t, 200, status, "%v", out)
	moved := out["timelines"].([]any)[0].(map[string]any)["order"].(map[string]any)
	require.Equal(t, []any{43.0, true}, []any{moved["order_status"], moved["moved"]})

	heard := func() (events, statuses []string) {
		for _, g := range w.got() {
			require.NoError(t, signature.VerifyV2(g.head.Get, g.body, time.Now(), []byte(secret)), g.path)
			var body struct {
				Data map[string]any `json:"data"`
			}
			require.NoError(t, json.Unmarshal(g.body, &body))
			if g.path == "/events" {
				events = append(events, body.Data["tracking_event_key"].(string))
			} else {
				statuses = append(statuses, fmt.Sprint(body.Data["order_status_id"]))
			}
		}
		return events, statuses
	}
	ring.Await(t, func() bool {
		events, statuses := heard()
		return len(events) == 4 && len(statuses) > 0 && strings.Count(feed.String(), `"event.recorded"`) == 4 && strings.Contains(live.String(), failed)
	})
	t.Logf("everybody had it after %s", time.Since(begun).Round(time.Millisecond))
	events, _ := heard()
	require.ElementsMatch(t, []string{"information_submitted", "in_transit", "out_for_delivery", "delivery_failed"}, events)
	require.Contains(t, w.page("/track/"+number), failed)
	ring.Await(t, func() bool { return strings.Contains(spans.String(), "delivery_failed") })

	status, out = w.call("POST", "/api/v1/otep/ingest", carrier, map[string]any{"otep_version": "0.1", "subject": map[string]any{"tracking_number": number}, "events": []any{},
		"withdrawals": []any{map[string]any{"event_id": "c-3", "reason": "did_not_occur"}}})
	require.Equal(t, 200, status, "%v", out)
	ring.Await(t, func() bool { return strings.Contains(feed.String(), `"event.withdrawn"`) })
	_, out = w.call("GET", "/api/v1/orders/"+id, admin, nil)
	order := out["order"].(map[string]any)
	require.Equal(t, []any{40.0, "out_for_delivery"}, []any{order["order_status_id"], order["otep_status"]}, "the order went back")
	ring.Await(t, func() bool {
		return strings.LastIndex(live.String(), onTheWay) > strings.LastIndex(live.String(), failed)
	})
	page := w.page("/track/" + number)
	require.NotContains(t, page, failed)
	require.Contains(t, page, onTheWay)
}
