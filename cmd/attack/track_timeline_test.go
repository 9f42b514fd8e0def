package attack

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// carried is a parcel of the sandbox's provider.
func (g *gateway) carried(number string) cloud.ShipmentID {
	g.t.Helper()
	var id int64
	require.NoError(g.t, g.server.Store.Decide(g.t.Context(), 0, func(v cloud.View) (_ *cloud.Changes, err error) {
		id, err = v.NewID(cloud.ShipmentIDs)
		return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: cloud.ShipmentID(id), BusinessID: 1, Number: number, ProviderID: g.box.ProviderCaller.Provider.ID, Profile: "parcel", CreatedAt: time.Now().UTC()}}}}, err
	}))
	return cloud.ShipmentID(id)
}

func (g *gateway) ingest(number, members string) result {
	g.t.Helper()
	return g.call("POST", "/api/v1/otep/ingest", g.box.Provider.Token, fmt.Sprintf(`{"otep_version":"0.1","subject":{"tracking_number":%q},%s}`, number, members))
}

func event(code string, at time.Time, more string) string {
	return fmt.Sprintf(`{"occurred_at":%q,"status_code":%q,"source":{"type":"carrier"}%s}`, at.UTC().Format(time.RFC3339), code, more)
}

// A provider reported the status of next week, and it was today's.
func TestAttackTheFutureIsNotNow(t *testing.T) {
	t.Parallel()
	g := launch(t)
	now := time.Now()
	g.carried("FUT-1")
	require.Equal(t, 200, g.ingest("FUT-1", `"events":[`+event("in_transit", now.Add(-time.Hour), "")+`]`).status)
	far := now.Add(240 * time.Hour).UTC().Format(time.RFC3339)
	for _, attempt := range []string{
		`"events":[` + event("delivered", now.Add(240*time.Hour), "") + `]`,
		`"events":[],"current_status":"delivered","last_event_at":"` + far + `"`,
	} {
		r := g.ingest("FUT-1", attempt)
		require.NotContains(t, r.raw, `"accepted":1`, attempt)
		if r.status != 422 { // staff see it before it counts
			require.Equal(t, []any{200, "quarantined"}, []any{r.status, r.text("timelines.0.events.0.outcome")}, attempt)
		}
		require.Equal(t, "in_transit", g.must("GET", "/api/v1/tracking/FUT-1", "", "").text("otep_status"), attempt)
	}
	soon := g.ingest("FUT-1", `"events":[`+event("delivered", now.Add(3*time.Hour), "")+`]`)
	require.Equal(t, 200, soon.status, "up to two days it waits for its time: %s", soon.raw)
	require.Equal(t, "in_transit", soon.text("timelines.0.current_status"))
	r := g.must("GET", "/api/v1/tracking/FUT-1", "", "")
	require.Equal(t, "in_transit", r.text("otep_status"))
	require.NotContains(t, r.raw, `"delivered"`, "strangers see it when its time has come")
	owner := g.must("GET", "/api/v1/otep/trackings/FUT-1", g.box.Provider.Token, "")
	require.Equal(t, "in_transit", owner.text("data.current_status"))
	require.Contains(t, owner.raw, `"status_code":"delivered"`, "its source sees what is stored")
}

// What was refused with 422 was stored in part: its SSCC, its estimate.
func TestAttackRefusedTimelinesStoreNothing(t *testing.T) {
	t.Parallel()
	g := launch(t)
	id := g.carried("REF-1")
	before, err := g.server.Store.FindShipment(t.Context(), "REF-1")
	require.NoError(t, err)
	bad := event("no_such_code", time.Now().Add(-time.Hour), "")
	r := g.call("POST", "/api/v1/otep/ingest", g.box.Provider.Token, fmt.Sprintf(`{"otep_version":"0.1","subject":{"tracking_number":"REF-1","gs1_sscc":"106141412345678908","piece_id":"P-1"},"estimated_delivery_at":"2030-01-01T00:00:00Z","current_status":"delivered","events":[%s]}`, bad))
	require.Equal(t, 422, r.status, r.raw)
	after, err := g.server.Store.FindShipment(t.Context(), "REF-1")
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Equal(t, id, after.ID)
	only := g.ingest("REF-1", `"events":[],"estimated_delivery_at":"2030-01-01T00:00:00Z"`)
	require.Equal(t, 200, only.status, "an estimate alone is stored, and said to be: %s", only.raw)
	require.Equal(t, "stored", only.text("timelines.0.estimate"))
}

// One timeline took events without end: every anonymous read was megabytes, and
// every further event read them all while others waited.
func TestAttackATimelineWithoutEnd(t *testing.T) {
	t.Parallel()
	g := launch(t)
	id := g.carried("BIG-1")
	now := time.Now().UTC().Truncate(time.Second)
	fill := func(from, to int) {
		ch := &cloud.Changes{}
		for i := from; i < to; i++ {
			at := otep.Time{Time: now.Add(time.Duration(i-4000) * time.Minute)}
			ch.Events = append(ch.Events, cloud.TimelineEvent{ShipmentID: id, BusinessID: 1, Event: otep.Event{EventID: fmt.Sprintf("e-%d", i), OccurredAt: at, RecordedAt: at, StatusCode: otep.InTransit,
				Source: &otep.Source{Type: "carrier"}, Location: &otep.Location{Type: "hub", Name: strings.Repeat("x", 200)}}.Fill("parcel")})
		}
		require.NoError(t, g.server.Store.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return ch, nil }))
	}
	fill(0, 1998)
	more := func(n int, code string) result {
		var list []string
		for i := range n {
			list = append(list, event(code, now.Add(time.Duration(i-1000)*time.Minute), fmt.Sprintf(`,"event_id":"%s-%d"`, code, i)))
		}
		return g.ingest("BIG-1", `"events":[`+strings.Join(list, ",")+`]`)
	}
	r := more(5, "arrival_scan")
	require.Equal(t, 200, r.status, r.raw)
	require.EqualValues(t, 2, r.at("accepted"), "two more, and no third")
	require.Equal(t, "rejected", r.text("timelines.0.events.2.outcome"), r.raw)
	require.Equal(t, "OTEP_TIMELINE_FULL", r.text("timelines.0.events.2.code"), "each event that was not taken says why")
	full := more(9, "received")
	require.Equal(t, 409, full.status, full.raw)
	require.Equal(t, "OTEP_TIMELINE_FULL", full.text("code"))
	require.Equal(t, 200, g.ingest("BIG-1", `"events":[`+event("delivered", now, "")+`]`).status, "an end is always taken")
	for _, path := range []string{"/api/v1/tracking/BIG-1", "/api/v1/otep/trackings/BIG-1", "/api/v1/otep/trackings/BIG-1/events", "/api/v1/otep/trackings/BIG-1?format=epcis", "/track/BIG-1"} {
		r := g.must("GET", path, "", "")
		require.Less(t, len(r.raw), 1_000_000, path)
	}
	page := g.must("GET", "/api/v1/otep/trackings/BIG-1", "", "")
	list, _ := page.at("data.events").([]any)
	require.Len(t, list, 500)
	require.Equal(t, "delivered", page.text("data.current_status"))
	require.Equal(t, "delivered", page.text("data.events.499.status_code"), "the newest are shown")
	require.Equal(t, true, page.at("truncated"))
}
