package attack

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// carry hands an order's timeline to the sandbox's provider.
func (g *gateway) carry(p parcel, add ...otep.Event) {
	g.t.Helper()
	require.NoError(g.t, g.server.Store.Decide(g.t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		s, err := v.ShipmentByNumber(p.number)
		s.ProviderID = g.box.ProviderCaller.Provider.ID
		ch := &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{s}}}
		for _, e := range add {
			ch.Events = append(ch.Events, cloud.TimelineEvent{ShipmentID: s.ID, BusinessID: s.BusinessID, Event: e.Fill("parcel")})
		}
		return ch, err
	}))
}

// An event ahead of its time was the status of its order as soon as the business
// did anything, and what the business reported then was dated behind it.
func TestAttackTheFutureOfAnOrder(t *testing.T) {
	t.Parallel()
	g := launch(t)
	p := g.order(g.box.Admin.Token, "AHEAD-1")
	g.carry(p)
	now := time.Now()
	require.Equal(t, 200, g.ingest(p.number, `"events":[`+event("delivered", now.Add(3*time.Hour), "")+`]`).status)
	far := now.Add(240 * time.Hour).UTC().Format(time.RFC3339)
	capture := fmt.Sprintf(`{"@context":["https://ref.gs1.org/standards/epcis/2.0.0/epcis-context.jsonld"],"type":"EPCISDocument","schemaVersion":"2.0","creationDate":%q,"epcisBody":{"eventList":[{"type":"ObjectEvent","eventTime":%q,"eventTimeZoneOffset":"+00:00","action":"OBSERVE","bizStep":"arriving","epcList":["https://id.example/%s"],"otep:tracking_number":%q}]}}`, now.UTC().Format(time.RFC3339), far, p.number, p.number)
	r := g.call("POST", "/api/v1/otep/ingest/epcis", g.box.Provider.Token, capture)
	require.Equal(t, []any{0.0, 1.0}, []any{r.at("accepted"), r.at("quarantined")}, "EPCIS: %s", r.raw)

	g.must("POST", fmt.Sprintf("/api/v1/orders/%d/hold", p.id), g.box.Admin.Token, `{"reason":"x"}`)
	g.must("POST", fmt.Sprintf("/api/v1/orders/%d/release", p.id), g.box.Admin.Token, `{}`)
	me := g.must("GET", "/api/v1/user/me", g.box.Driver.Token, "")
	g.must("POST", fmt.Sprintf("/api/v1/orders/%d/driver", p.id), g.box.Admin.Token, fmt.Sprintf(`{"driver_id":%v}`, me.at("user.id")))
	status := func() []any {
		one := fmt.Sprintf("/api/v1/orders/%d", p.id)
		tool := g.must("POST", "/mcp", g.box.Admin.Token, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_order_detail","arguments":{"order_id":%d}}}`, p.id), "Accept", "application/json, text/event-stream")
		return []any{
			g.must("GET", one, g.box.Admin.Token, "").at("order.otep_status"),
			g.must("GET", "/api/v1/orders", g.box.Admin.Token, "").at("orders.0.otep_status"),
			g.must("POST", "/api/graphql", g.box.Admin.Token, fmt.Sprintf(`{"query":"{order(orderId:%d){otep_status}}"}`, p.id)).at("data.order.otep_status"),
			tool.at("result.structuredContent.order.otep_status"),
			g.must("GET", "/api/v1/tracking/"+p.number, "", "").at("otep_status"),
			g.must("GET", "/api/v1/otep/trackings/"+p.number, g.box.Admin.Token, "").at("data.current_status"),
		}
	}
	for i, s := range status() {
		require.NotEqual(t, "delivered", s, i)
		require.NotNil(t, s, i)
	}
	for i := range 20 {
		e := g.must("GET", "/api/v1/otep/trackings/"+p.number+"/events", g.box.Admin.Token, "")
		code, at := e.text(fmt.Sprintf("data.%d.status_code", i)), e.text(fmt.Sprintf("data.%d.occurred_at", i))
		if code == "" || code == "delivered" {
			continue
		}
		when, err := time.Parse(time.RFC3339Nano, at)
		require.NoError(t, err)
		require.Less(t, time.Until(when), time.Minute, "%s is dated by an event that has not happened", code)
	}

	t.Run("what the business says counts now", func(t *testing.T) {
		p = g.order(g.box.Admin.Token, "AHEAD-3")
		g.carry(p)
		require.Equal(t, 200, g.ingest(p.number, `"events":[`+event("in_transit", now.Add(3*time.Hour), "")+`]`).status)
		g.must("POST", fmt.Sprintf("/api/v1/orders/%d/cancel", p.id), g.box.Admin.Token, `{"reason":"x"}`)
		for i, s := range status() {
			require.Equal(t, "cancelled", s, i)
		}
	})
	t.Run("its time comes", func(t *testing.T) {
		p = g.order(g.box.Admin.Token, "AHEAD-2")
		before := otep.Time{Time: time.Now().UTC().Add(-time.Hour)}
		time.Sleep(2 * time.Millisecond) // after the order itself
		// What was ahead of its time when it was stored, and nothing came since.
		g.carry(p, otep.Event{EventID: "evt_soon", OccurredAt: otep.Time{Time: time.Now().UTC().Truncate(time.Millisecond)}, RecordedAt: before, StatusCode: otep.InTransit, Source: &otep.Source{Type: "carrier"}})
		for i, s := range status() {
			require.Equal(t, "in_transit", s, i)
		}
	})
}
