package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signature"
)

const (
	partnerPath   = "/api/v1/third-party-delivery"
	endpointPath  = partnerPath + "/webhook-endpoint"
	partnerLog    = partnerPath + "/webhook-deliveries"
	thirdCreated  = "third_party_delivery.created"
	thirdHanded   = "third_party_delivery.packages_handed_over"
	thirdEndpoint = cloud.ThirdPartyEndpoint
)

// A third party has an endpoint beside that of its lockers: with a secret, log
// rows and rules of its own, against a running cloud and a receiver that really
// gets what is sent.
func TestEndpointsOfThirdParties(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); thirdPartyEndpoints(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); thirdPartyEndpoints(t, storetest.SecondPostgresURL(t)) })
}

func thirdPartyEndpoints(t *testing.T, database string) {
	tries := make([]time.Duration, cloud.ProviderAttempts-1)
	for i := range tries {
		tries[i] = time.Millisecond
	}
	w := newHookWorld(t, database, func(c *Config) { c.WebhookWaits = tries })
	token, provider := w.box.Provider.Token, w.box.ProviderCaller.Provider
	good := func(method, path string, body any) map[string]any {
		t.Helper()
		status, out := w.call(method, path, token, body)
		require.Equal(t, 200, status, "%v", out)
		return out
	}
	wrong := func(method, path string, body any, field string) {
		t.Helper()
		status, out := w.call(method, path, token, body)
		require.Equal(t, []any{422, "VALIDATION_FAILED"}, []any{status, out["error_code"]}, "%v", out)
		require.Contains(t, out["errors"], field)
	}
	services := func(of ...string) {
		t.Helper()
		status, out := w.call("PATCH", fmt.Sprintf("/api/v1/providers/%d", provider.ID), w.box.Admin.Token, map[string]any{"services": of})
		require.Equal(t, 200, status, "%v", out)
	}
	third := func(also map[string]any) map[string]any {
		out := map[string]any{"kind": thirdEndpoint}
		for k, v := range also {
			out[k] = v
		}
		return out
	}

	// An endpoint is for a service that the provider has, and for no other account.
	services("locker")
	wrong("PUT", endpointPath, third(map[string]any{"url": w.hook.URL + "/third"}), "kind")
	wrong("GET", endpointPath+"?kind="+thirdEndpoint, nil, "kind")
	wrong("POST", endpointPath+"/secret", third(nil), "kind")
	wrong("POST", endpointPath+"/test", third(map[string]any{"event": thirdCreated}), "kind")
	wrong("POST", endpointPath+"/test", map[string]any{"event": thirdCreated}, "kind")
	services("otep")
	unset := func(path string) {
		t.Helper()
		status, out := w.call("GET", path, token, nil)
		require.Equal(t, []any{404, "WEBHOOK_ENDPOINT_NOT_FOUND"}, []any{status, out["error_code"]}, "%v", out)
	}
	unset(endpointPath) // the caller may fill lockers
	services("third_party")
	unset(endpointPath + "?kind=" + cloud.LockerEndpoint)
	require.Equal(t, thirdEndpoint, good("PUT", endpointPath, map[string]any{"url": w.hook.URL + "/first"})["webhook_endpoint"].(map[string]any)["kind"], "its only one")
	services("third_party", "locker")
	for who, other := range map[string]string{"administrator": w.box.Admin.Token, "staff": w.box.Staff.Token, "customer": w.box.Customer.Token, "driver": w.box.Driver.Token, "contractor": w.box.Contractor.Token} {
		for _, op := range []string{"GET " + endpointPath + "?kind=" + thirdEndpoint, "PUT " + endpointPath, "POST " + endpointPath + "/secret", "POST " + endpointPath + "/test", "GET " + partnerLog} {
			method, path, _ := strings.Cut(op, " ")
			status, _ := w.call(method, path, other, nil)
			require.Equal(t, 403, status, "%s: %s", who, op)
		}
	}
	status, _ := w.call("GET", endpointPath, "", nil)
	require.Equal(t, 401, status)

	// Two endpoints, each with its own secret and what can be chosen of it.
	lockers := good("PUT", endpointPath, map[string]any{"url": w.hook.URL + "/lockers"})
	require.Equal(t, cloud.LockerEndpoint, lockers["webhook_endpoint"].(map[string]any)["kind"], "the first service's")
	own := good("POST", endpointPath+"/secret", third(nil))["secret"].(string)
	require.NotEqual(t, lockers["secret"], own)
	for kind, channel := range map[string]string{cloud.LockerEndpoint: cloud.ChannelLocker, thirdEndpoint: cloud.ChannelThirdParty} {
		for _, e := range HookEvents() {
			body := map[string]any{"kind": kind, "events": []string{e.Name}}
			if e.Channel == channel {
				good("PUT", endpointPath, body)
			} else {
				wrong("PUT", endpointPath, body, "events")
			}
		}
		good("PUT", endpointPath, map[string]any{"kind": kind, "events": []string{"*"}})
	}
	wrong("PUT", endpointPath, map[string]any{"categories": []string{"handover"}}, "categories")
	wrong("PUT", endpointPath, third(map[string]any{"categories": []string{"handover", "return"}}), "categories")
	wrong("PUT", endpointPath, map[string]any{"kind": "carrier"}, "kind")
	wrong("POST", endpointPath+"/test", third(map[string]any{"event": "locker_delivery.delivered"}), "event")
	good("PUT", endpointPath, third(map[string]any{"url": w.hook.URL + "/third", "categories": []string{"outcome", "handover", "handover"}}))
	e := good("GET", endpointPath+"?kind="+thirdEndpoint, nil)["webhook_endpoint"].(map[string]any)
	require.Equal(t, []any{thirdEndpoint, w.hook.URL + "/third", []any{"handover", "outcome"}, "…" + own[len(own)-4:]}, []any{e["kind"], e["url"], e["categories"], e["secret_hint"]})
	e = good("GET", endpointPath, nil)["webhook_endpoint"].(map[string]any)
	require.Equal(t, []any{cloud.LockerEndpoint, w.hook.URL + "/lockers", []any{}}, []any{e["kind"], e["url"], e["categories"]})

	// Mock events are signed and marked, in headers and data, and go where those
	// of the sandbox go.
	verify := func(g told) {
		t.Helper()
		require.NoError(t, signature.VerifyProvider(g.head.Get, g.body, time.Now(), []byte(own)))
		require.Error(t, signature.VerifyProvider(g.head.Get, g.body, time.Now(), []byte(lockers["secret"].(string))))
		require.NotContains(t, string(g.body), "livemode")
		require.Empty(t, g.head.Get("ce-livemode"))
	}
	mock := func() map[string]any {
		t.Helper()
		return good("POST", endpointPath+"/test", map[string]any{"event": thirdCreated})
	}
	require.Equal(t, true, mock()["delivered"], "of whatever category")
	good("PUT", endpointPath, third(map[string]any{"sandbox_url": w.hook.URL + "/sandbox", "format": cloud.FormatBinary}))
	require.Equal(t, true, mock()["delivered"])
	good("PUT", endpointPath, third(map[string]any{"sandbox_enabled": false}))
	out := mock()
	require.Equal(t, []any{false, "sandbox_disabled"}, []any{out["delivered"], out["error"]})
	require.Len(t, w.got(), 2)
	for i, g := range w.got() {
		require.Equal(t, []string{"/third", "/sandbox"}[i], g.path)
		verify(g)
		var body struct {
			EventID  string `json:"event_id"`
			Event    string
			Provider struct{ Code string }
			Data     struct {
				Assignment string `json:"assignment_number"`
				Test       bool
			}
		}
		require.NoError(t, json.Unmarshal(g.body, &body))
		require.Equal(t, []any{thirdCreated, provider.Code, true, "TPA-2026-004411"}, []any{body.Event, body.Provider.Code, body.Data.Test, body.Data.Assignment})
		require.Regexp(t, `^TPD-MOCK-\d+$`, body.EventID)
		require.Equal(t, []string{"1", body.EventID}, []string{g.head.Get("X-Webhook-Test"), g.head.Get("X-Webhook-Id")})
	}
	require.Equal(t, thirdCreated, w.got()[1].head.Get("ce-type"))
	good("PUT", endpointPath, third(map[string]any{"format": cloud.FormatNative}))

	// What happens is sent to the endpoint of its channel, of the categories that
	// it chose.
	tell := func(event string) {
		t.Helper()
		require.NoError(t, w.s.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
			writes, err := w.s.webhooks.FanOutToProvider(v, cloud.ProviderEvent{BusinessID: provider.BusinessID, ProviderID: provider.ID, Channel: cloud.ChannelThirdParty, Event: event, Prefix: "TPD-",
				ReferenceType: "third_party_assignment", ReferenceID: "TPA-2026-000001", OccurredAt: time.Now(),
				Body: func(head cloud.EventHead) (any, error) {
					if event != thirdHanded {
						return nil, errors.New("nobody is to hear of " + event)
					}
					return map[string]string{"event_id": head.EventID, "event": event, "note": "<b>"}, nil
				}})
			return &cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: writes}}, err
		}))
	}
	before := len(w.got())
	tell(thirdCreated)
	tell("third_party_delivery.cancelled")
	tell(thirdHanded)
	var row map[string]any
	state := func(want string) func() bool {
		return func() bool {
			row = good("GET", partnerLog, nil)["deliveries"].([]any)[0].(map[string]any)
			return row["status"] == want
		}
	}
	ring.Await(t, state("success"))
	got := w.got()[before:]
	require.Len(t, got, 1)
	verify(got[0])
	id := got[0].head.Get("X-Webhook-Id")
	require.Regexp(t, `^TPD-\d+$`, id)
	require.Equal(t, []string{"/third", "", id}, []string{got[0].path, got[0].head.Get("X-Webhook-Test"), got[0].head.Get("X-Webhook-Event-Id")})
	require.Contains(t, string(got[0].body), `"note":"<b>"`, "nothing is escaped that need not be")
	require.Equal(t, []any{cloud.ChannelThirdParty, "provider", float64(provider.ID), "third_party_assignment", "TPA-2026-000001", thirdHanded, float64(cloud.ProviderAttempts), false},
		[]any{row["channel"], row["level"], row["provider_id"], row["reference_type"], row["reference_id"], row["event"], row["max_attempts"], row["is_test"]})

	// Seven more tries, then a dead letter, which goes out by hand with the same id.
	w.mu.Lock()
	w.reply = func(*http.Request, []byte) int { return 500 }
	w.mu.Unlock()
	before = len(w.got())
	tell(thirdHanded)
	ring.Await(t, state("dead"))
	w.mu.Lock()
	w.reply = nil
	w.mu.Unlock()
	got = w.got()[before:]
	require.Len(t, got, 8)
	uids := map[string]bool{}
	for _, g := range got {
		require.Equal(t, got[0].head.Get("X-Webhook-Id"), g.head.Get("X-Webhook-Id"))
		require.Equal(t, got[0].body, g.body)
		uids[g.head.Get("X-Webhook-Delivery-Id")] = true
	}
	require.Len(t, uids, 8)
	one := fmt.Sprintf("%s/%.0f", partnerLog, row["id"])
	require.Len(t, good("GET", one, nil)["delivery"].(map[string]any)["attempts"], 8)

	status, made := w.call("POST", "/api/v1/providers", w.box.Admin.Token, map[string]any{"code": "rival", "name": "Rival Post", "services": []string{"third_party"}})
	require.Equal(t, 201, status, "%v", made)
	rival := fmt.Sprintf("/api/v1/providers/%.0f/tokens", made["provider"].(map[string]any)["id"])
	status, made = w.call("POST", rival, w.box.Admin.Token, map[string]any{"name": "theirs"})
	require.Equal(t, 201, status, "%v", made)
	for op, code := range map[string]string{"GET " + one: "WEBHOOK_DELIVERY_NOT_FOUND", "POST " + one + "/redeliver": "WEBHOOK_DELIVERY_NOT_FOUND", "GET " + endpointPath: "WEBHOOK_ENDPOINT_NOT_FOUND",
		"POST " + endpointPath + "/secret": "WEBHOOK_ENDPOINT_NOT_FOUND"} {
		method, path, _ := strings.Cut(op, " ")
		status, out := w.call(method, path, made["token"].(string), nil)
		require.Equal(t, []any{404, code}, []any{status, out["error_code"]}, op)
	}

	good("POST", one+"/redeliver", map[string]any{})
	ring.Await(t, state("success"))
	again := w.got()[before+8]
	verify(again)
	require.Equal(t, []string{got[0].head.Get("X-Webhook-Id"), "1", "/third"}, []string{again.head.Get("X-Webhook-Id"), again.head.Get("X-Webhook-Replay"), again.path})
	require.Equal(t, got[0].body, again.body)

	families, err := w.s.Metrics.Gather()
	require.NoError(t, err)
	counted := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "channel" && strings.HasPrefix(l.GetValue(), "third") && m.GetCounter() != nil {
					counted[f.GetName()] += m.GetCounter().GetValue()
				}
			}
		}
	}
	require.Equal(t, []float64{2, 10 + 2}, []float64{counted["webhook_emitted_total"], counted["webhook_attempts_total"]}, "%v", counted)
}
