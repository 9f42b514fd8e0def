package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/edge/access"
	"github.com/postern-io/postern/protocol/wire"
)

// A call to open a door is one trace, at whichever node the cabinet is: the call, its
// decision, the command, the opening as the cabinet saw it, and the webhooks that came
// of both, whose receiver gets the trace as well. A caller without a token joins none.
func TestACallIsFollowedToTheDoorAndTheReceiver(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) string{"one node": func(testing.TB) string { return "" }, "another node than the cabinet's": storetest.MigratedPostgresURL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database, dir, collector := open(t), storetest.MigratedDir(t), newSpanCollector(t)
			hook := newHook(t)
			var mu sync.Mutex
			var traces []string // of the shop's webhooks
			shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				traces = append(traces, q.Header.Get("traceparent"))
				w.WriteHeader(http.StatusNoContent)
			}))
			t.Cleanup(shop.Close)
			node := func(name string) (*server.Server, string) {
				mqtt, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(t, err)
				web, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(t, err)
				s, err := server.New(t.Context(), server.Config{Dir: dir, Database: database, Node: name, Brokers: []string{"tcp://" + mqtt.Addr().String()},
					OTLPEndpoint: collector.url, OTLPHeaders: map[string]string{"X-Key": "s3cret"},
					WebhookHTTP: true, WebhookPorts: []uint16{hook.port(), uint16(shop.Listener.Addr().(*net.TCPAddr).Port)}, WebhookNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
				require.NoError(t, err)
				runs(t, name, func(ctx context.Context) error { return s.Run(ctx, server.Listeners{MQTT: mqtt, HTTP: web}) })
				return s, "http://" + web.Addr().String()
			}
			near, address := node("near")
			if database != "" {
				_, address = node("far")
			}
			box, err := near.Sandbox(t.Context(), server.SandboxConfig{Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}, Times: quickTimes, WebhookURL: hook.url(),
				Devices: []server.SandboxDevice{{Code: "CAB-1", Name: "Cabinet", Type: "smart_locker", Layout: []wire.LayoutDoor{{Door: 1, Board: "A", Channel: 1, Size: "M"}}}}})
			require.NoError(t, err)
			hook.trust(box.Provider.WebhookSecret)
			sim, cabinet := oneDoor(t, access.Secrets(box.Devices[0].Enrolled))
			takesDeliveries(t, near, box.Devices[0].DeviceID, cabinet)

			ask := func(method, path, in string) (out struct {
				Number string `json:"tracking_number"`
			}) {
				q, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader(in))
				require.NoError(t, err)
				q.Header.Set("Content-Type", "application/json")
				q.Header.Set("Authorization", "Bearer "+box.Admin.Token)
				r, err := http.DefaultClient.Do(q)
				require.NoError(t, err)
				b, err := io.ReadAll(r.Body)
				require.NoError(t, errors.Join(err, r.Body.Close()))
				require.Less(t, r.StatusCode, 300, "%s", b)
				require.NoError(t, json.Unmarshal(b, &out))
				return out
			}
			ask(http.MethodPut, "/api/v1/webhook-settings", fmt.Sprintf(`{"webhook_sign_secret":%q,"order_status_change_webhook_url":%q}`, killSecret, shop.URL))
			number := ask(http.MethodPost, "/api/v1/client/orderCreate", `{"type":"D","packages":[{"weight":2.5}],"recipient":{"name":"Ada Moreau","phone":"+14165550123","address_line1":"100 Queen St W","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"}}`).Number

			_, err = near.Lockers.Create(t.Context(), box.ProviderCaller, locker.CreateInput{ReferenceNumber: "REF-1", DeviceID: box.Devices[0].DeviceID,
				Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}, Packages: []locker.PackageInput{{TrackingNumber: number, Size: "M"}}})
			require.NoError(t, err)

			const id, anonymous, unsampled = "4bf92f3577b34da6a3ce929d0e0e4736", "a3ce929d0e0e47364bf92f3577b34da6", "0e0e47364bf92f3577b34da6a3ce929d"
			call := func(method, path, token, trace, flags string) int {
				q, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader("{}"))
				require.NoError(t, err)
				q.Header.Set("Content-Type", "application/json")
				q.Header.Set("traceparent", "00-"+trace+"-00f067aa0ba902b7-"+flags)
				if token != "" {
					q.Header.Set("Authorization", "Bearer "+token)
				}
				r, err := http.DefaultClient.Do(q)
				require.NoError(t, err)
				_, _ = io.Copy(io.Discard, r.Body)
				require.NoError(t, r.Body.Close())
				return r.StatusCode
			}
			require.Equal(t, http.StatusOK, call(http.MethodGet, "/api/v1/third-party-delivery/deliveries/ref:REF-1", box.Provider.Token, unsampled, "00"))
			require.Equal(t, http.StatusUnauthorized, call(http.MethodPost, "/api/v1/third-party-delivery/deliveries/ref:REF-1/open-doors", "", anonymous, "01"))
			require.Equal(t, http.StatusOK, call(http.MethodPost, "/api/v1/third-party-delivery/deliveries/ref:REF-1/open-doors", box.Provider.Token, id, "01"))
			require.NoError(t, sim.CloseDoor(1))
			soon(t, "webhook", func() bool { return hook.got(locker.EventDelivered) })
			soon(t, "the shop learns of the deposit", func() bool { mu.Lock(); defer mu.Unlock(); return len(traces) > 0 })

			want := []string{"webhook order.status_change", "command open_doors", "decision", "third_party.deliveries.open_doors", "opening deposit", "webhook " + locker.EventDelivered}
			soon(t, "spans", func() bool {
				var names []string
				for _, s := range collector.of(id) {
					names = append(names, s.Name)
				}
				for _, w := range want {
					if !slices.Contains(names, w) {
						return false
					}
				}
				return true
			})
			spans := collector.of(id)
			known := map[string]bool{"00f067aa0ba902b7": true}
			for _, s := range spans {
				known[hex.EncodeToString(s.SpanId)] = true
				require.GreaterOrEqual(t, s.EndTimeUnixNano, s.StartTimeUnixNano, s.Name)
			}
			for _, s := range spans {
				require.True(t, known[hex.EncodeToString(s.ParentSpanId)], "%s stands below a span that the collector has", s.Name)
				if strings.HasPrefix(s.Name, "webhook ") {
					attempt := hex.EncodeToString(s.SpanId)
					mu.Lock()
					atShop := slices.Contains(traces, "00-"+id+"-"+attempt+"-01")
					mu.Unlock()
					require.True(t, atShop || hook.followed(id, attempt), "the receiver got the span of its attempt")
				}
			}
			require.Empty(t, collector.of(anonymous), "a stranger makes the cloud follow its calls")
			require.Empty(t, collector.of(unsampled), "a call whose caller does not follow it is followed")
			sent, err := json.Marshal(collector.all())
			require.NoError(t, err)
			found, err := near.Lockers.Find(t.Context(), box.ProviderCaller, "ref:REF-1")
			require.NoError(t, err)
			for _, secret := range []string{*found.Delivery.PickupCode, "Jane", "+14165550123", box.Provider.Token} {
				require.NotContains(t, string(sent), secret)
			}
			require.Empty(t, hook.refused())
		})
	}
}

// spanCollector is a trace collector as others make them: it reads OTLP over HTTP in
// binary Protobuf, gzipped, and asks for a key.
type spanCollector struct {
	url string

	mu    sync.Mutex
	spans []*tracepb.Span
}

func newSpanCollector(t *testing.T) *spanCollector {
	c := &spanCollector{}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

func (c *spanCollector) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	raw, err := io.ReadAll(q.Body)
	var list tracepb.TracesData
	if err == nil {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(raw)); err == nil {
			raw, err = io.ReadAll(z)
		}
	}
	if err == nil {
		err = proto.Unmarshal(raw, &list)
	}
	if err != nil || q.URL.Path != "/v1/traces" || q.Header.Get("X-Key") != "s3cret" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range list.ResourceSpans {
		for _, s := range r.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
}

func (c *spanCollector) all() []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

func (c *spanCollector) of(trace string) []*tracepb.Span {
	return slices.DeleteFunc(c.all(), func(s *tracepb.Span) bool { return hex.EncodeToString(s.TraceId) != trace })
}
