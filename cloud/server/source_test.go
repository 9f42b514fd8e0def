package server

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/httpdevice"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// Whatever an event comes from, a webhook, the change feed and the open page of the parcel have it, each once.
func TestEachSourceReachesEverybody(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); followSources(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); followSources(t, storetest.MigratedPostgresURL(t)) })
}

// shipped is an order whose parcel a source tells of.
type shipped struct{ id, number, parcel string }

// source makes an event of a parcel, after what has to come before it.
type source struct {
	before, tell func(shipped)
	code         string // of the event that it makes
}

// eventOfDevice is a device that calls the cloud with an event of its own.
func eventOfDevice(w *hookWorld) source {
	w.t.Helper()
	status, made := w.call("POST", "/api/v1/smart-lockers/devices", w.box.Admin.Token, map[string]any{"device_name": "Drop box", "device_code": "DROP-1", "layout": "small", "protocol": "http"})
	require.Equal(w.t, 201, status, made)
	status, enrolled := w.call("POST", "/api/v1/devices/enrol", "", map[string]any{"device_code": "DROP-1", "token": made["enrolment"].(map[string]any)["token"]})
	require.Equal(w.t, 200, status, enrolled)
	return source{nil, func(o shipped) {
		body, err := json.Marshal(map[string]any{"events": []any{map[string]any{"event_id": "d-1", "tracking_number": o.parcel, "status_code": "arrival_scan"}}})
		require.NoError(w.t, err)
		path, at, nonce := "/api/v1/devices/events?instance=first", fmt.Sprint(time.Now().Unix()), rand.Text()
		req, err := http.NewRequestWithContext(w.t.Context(), "POST", w.base+path, bytes.NewReader(body))
		require.NoError(w.t, err)
		sum := httpdevice.Sign([]byte(enrolled["device_secret"].(string)), at, nonce, "POST", path, body)
		for k, v := range map[string]string{"X-Device-Code": "DROP-1", "X-Device-Timestamp": at, "X-Device-Nonce": nonce, "X-Device-Signature": hex.EncodeToString(sum)} {
			req.Header.Set(k, v)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(w.t, err)
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		require.NoError(w.t, err)
		require.Equal(w.t, 200, resp.StatusCode, string(answer))
		require.Contains(w.t, string(answer), `"accepted":1`)
	}, "arrival_scan"}
}

// labelAtPost is a warehouse post that reads the label of a parcel which has been collected.
func labelAtPost(w *hookWorld, drive func(shipped, ...string), assign func(shipped)) source {
	w.t.Helper()
	status, made := w.call("POST", "/api/v1/smart-lockers/devices", w.box.Admin.Token, map[string]any{"device_name": "Dock 3", "device_code": "DOCK-3", "device_type": "scan_post"})
	require.Equal(w.t, 201, status, made)
	post := cloud.DeviceID(made["device"].(map[string]any)["device_id"].(float64))
	return source{func(o shipped) {
		assign(o)
		drive(o, "accept", "start-pickup")
		status, out := w.call("POST", "/api/v1/driver/orders/"+o.id+"/pickup", w.box.Driver.Token, map[string]any{"result": "success"})
		require.Equal(w.t, 200, status, out)
	}, func(o shipped) {
		now := time.Now().UTC()
		require.NoError(w.t, w.s.Store.Decide(w.t.Context(), post, func(v cloud.View) (*cloud.Changes, error) {
			d, err := v.Device(post)
			if err != nil {
				return nil, err
			}
			work, ch := w.s.Lockers.Begin(v, d, now), &cloud.Changes{}
			problem, err := work.Apply(locker.Occurrence{Record: wire.Record{Kind: wire.KindTrackingEvent, At: now.UnixNano(), Body: wire.MustEncode(wire.TrackingEvent{Subject: o.parcel, StatusCode: "received"})}, OccurredAt: now})
			require.Empty(w.t, problem)
			return ch, errors.Join(err, work.Finish(ch))
		}))
		status, order := w.call("GET", "/api/v1/orders/detail?order_id="+o.id, w.box.Admin.Token, nil)
		require.Equal(w.t, 200, status)
		require.Equal(w.t, "DELIVERED", order["order"].(map[string]any)["order_status"], "a pickup order ends at its warehouse")
	}, "received"}
}

func followSources(t *testing.T, database string) {
	w := newHookWorld(t, database)
	admin := w.box.Admin.Token
	ok := func(want int, method, path, token string, body any) map[string]any {
		t.Helper()
		status, out := w.call(method, path, token, body)
		require.Equal(t, want, status, "%s %s: %v", method, path, out)
		return out
	}
	ok(200, "PUT", "/api/v1/webhook-settings", admin, map[string]any{"webhook_sign_secret": "0123456789abcdef0123456789abcdef", "tracking_event_webhook_url": w.hook.URL + "/events"})
	provider := ok(201, "POST", "/api/v1/providers", admin, map[string]any{"code": "swift", "name": "Swift", "services": []string{"otep"}, "source_type": "carrier", "scope": "all"})["provider"].(map[string]any)
	carrier := ok(201, "POST", fmt.Sprintf("/api/v1/providers/%.0f/tokens", provider["id"]), admin, map[string]any{"name": "events", "confirm": true, "password": w.box.Admin.Password})["token"].(string)
	at := func() string { return time.Now().UTC().Format(time.RFC3339Nano) }
	drive := func(o shipped, steps ...string) {
		for _, step := range steps {
			ok(200, "POST", "/api/v1/driver/orders/"+o.id+"/"+step, w.box.Driver.Token, map[string]any{})
		}
	}
	assign := func(o shipped) {
		drivers := ok(200, "GET", "/api/v1/drivers", admin, nil)["drivers"].([]any)
		ok(200, "POST", "/api/v1/orders/"+o.id+"/driver", admin, map[string]any{"driver_id": drivers[0].(map[string]any)["driver_id"]})
	}
	sources := map[string]source{
		"a carrier's OTEP": {nil, func(o shipped) {
			ok(200, "POST", "/api/v1/otep/ingest", carrier, map[string]any{"otep_version": "0.1", "subject": map[string]any{"tracking_number": o.number},
				"events": []any{map[string]any{"event_id": "o-1", "status_code": "in_transit", "occurred_at": at(), "source": map[string]any{"type": "carrier"}}}})
		}, "in_transit"},
		"a carrier's EPCIS": {nil, func(o shipped) {
			ok(200, "POST", "/api/v1/otep/ingest/epcis", carrier, map[string]any{"@context": []any{"https://ref.gs1.org/standards/epcis/2.0.0/epcis-context.jsonld"}, "type": "EPCISDocument", "schemaVersion": "2.0", "creationDate": at(),
				"epcisBody": map[string]any{"eventList": []any{map[string]any{"type": "ObjectEvent", "eventID": "urn:uuid:0b5d6d2e-44a5-4b8f-9d2b-1c5f6a6f7f01", "eventTime": at(), "eventTimeZoneOffset": "+00:00", "action": "OBSERVE",
					"epcList": []any{"urn:otep:subject:" + o.number}, "bizStep": "departing", "disposition": "in_transit"}}}})
		}, "in_transit"},
		"a warehouse's scan": {func(o shipped) {
			assign(o)
			drive(o, "accept", "start-pickup")
			ok(200, "POST", "/api/v1/driver/orders/"+o.id+"/pickup", w.box.Driver.Token, map[string]any{"result": "success"})
		}, func(o shipped) {
			ok(200, "POST", "/api/v1/warehouse/scan", w.box.Staff.Token, map[string]any{"code": o.parcel, "action": "receive"})
		}, "received"},
		"a driver": {func(o shipped) { assign(o); drive(o, "accept") }, func(o shipped) { drive(o, "start-delivery") }, "out_for_delivery"},
		"staff": {nil, func(o shipped) {
			ok(200, "POST", "/api/v1/orders/"+o.id+"/cancel", admin, map[string]any{"reason": "sold twice"})
		}, "cancelled"},
	}
	sources["a device's own event"], sources["a label at a post"] = eventOfDevice(w), labelAtPost(w, drive, assign)
	feed := w.follow("/api/v1/otep/changes", admin)
	recorded := func(o shipped) (codes []string) {
		for line := range strings.Lines(feed.String()) {
			data, found := strings.CutPrefix(line, "data: ")
			var c struct {
				Kind   string
				Number string `json:"tracking_number"`
				Event  struct {
					Code string `json:"status_code"`
				}
			}
			if found && json.Unmarshal([]byte(data), &c) == nil && c.Number == o.number && c.Kind == "event.recorded" {
				codes = append(codes, c.Event.Code)
			}
		}
		return codes
	}
	hooked := func(o shipped) (codes []string) {
		for _, g := range w.got() {
			var body struct {
				Data struct {
					Order struct {
						Number string `json:"tracking_number"`
					}
					Code string `json:"tracking_event_key"`
				}
			}
			require.NoError(t, json.Unmarshal(g.body, &body))
			if body.Data.Order.Number == o.number {
				codes = append(codes, body.Data.Code)
			}
		}
		return codes
	}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		s := sources[name]
		kind, party := "D", "recipient"
		if s.code == "received" { // at the end of a pickup
			kind, party = "P", "sender"
		}
		made := ok(201, "POST", "/api/v1/client/orderCreate", admin, map[string]any{"type": kind, "packages": []any{map[string]any{"weight": 1}}, party: map[string]any{"name": "Ada", "phone": "+14165550123",
			"address_line1": "100 Queen St W", "city": "Toronto", "province": "ON", "postal_code": "M5H 2N2", "country": "CA"}})
		o := shipped{id: fmt.Sprintf("%.0f", made["order_id"]), number: made["tracking_number"].(string)}
		order := ok(200, "GET", "/api/v1/orders/detail?order_id="+o.id, admin, nil)["order"].(map[string]any)
		o.parcel = order["packages"].([]any)[0].(map[string]any)["tracking_number"].(string)
		if s.before != nil {
			s.before(o)
		}
		ticket := regexp.MustCompile(`data-ticket="([^"]+)"`).FindStringSubmatch(w.page("/track/" + o.number))
		require.NotNil(t, ticket)
		live := w.follow("/live?t="+url.QueryEscape(html.UnescapeString(ticket[1])), "")
		ring.Await(t, func() bool { return len(recorded(o)) > 0 && len(hooked(o)) == len(recorded(o)) })
		begun := time.Now()
		s.tell(o)
		ring.Await(t, func() bool { return slices.Contains(recorded(o), s.code) && slices.Contains(hooked(o), s.code) })
		shown := w.page("/track/" + o.number)
		status := regexp.MustCompile(`<h1[^>]*>([^<]+)</h1>`).FindStringSubmatch(shown)
		require.NotNil(t, status, name)
		ring.Await(t, func() bool { return strings.Contains(live.String(), strings.TrimSpace(status[1])) })
		t.Logf("%s: everybody had %s after %s", name, s.code, time.Since(begun).Round(time.Millisecond))
		codes := recorded(o)
		require.ElementsMatch(t, codes, hooked(o), name)
		require.Equal(t, 1, len(slices.DeleteFunc(slices.Clone(codes), func(c string) bool { return c != s.code })), "%s: %v", name, codes)
	}
}
