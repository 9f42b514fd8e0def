package webhook_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/webhook"
)

// Those of a provider's endpoints get an event that are of its channel and
// want it: one event, one body, one delivery for each.
func TestTellProvider(t *testing.T) {
	t.Parallel()
	db := storetest.OpenSQLite(t)
	s := webhook.New(db, nil)
	endpoint := func(id cloud.EndpointID, p cloud.ProviderID, kind string, enabled bool, events, categories []string) cloud.Endpoint {
		return cloud.Endpoint{ID: id, BusinessID: 42, ProviderID: p, Kind: kind, URL: fmt.Sprintf("https://hooks.example/%d", id), Events: events, Categories: categories, Enabled: enabled}
	}
	all := []string{"*"}
	write := func(ch *cloud.Changes) {
		t.Helper()
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return ch, nil }))
	}
	write(&cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 42}}}})
	write(&cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{endpoint(1, 17, cloud.LockerEndpoint, true, all, nil), endpoint(2, 17, cloud.ThirdPartyEndpoint, true, all, []string{"handover"}),
		endpoint(3, 17, cloud.ThirdPartyEndpoint, true, []string{"third_party_delivery.packages_handed_over"}, nil), endpoint(4, 17, cloud.ThirdPartyEndpoint, false, all, nil),
		endpoint(5, 18, cloud.ThirdPartyEndpoint, true, all, nil)}}})
	event := cloud.ProviderEvent{BusinessID: 42, ProviderID: 17, Channel: cloud.ChannelThirdParty, Event: "third_party_delivery.packages_handed_over", Prefix: "TPD-", ReferenceType: "third_party_assignment",
		ReferenceID: "TPA-1", OccurredAt: time.Now()}
	bodies := 0
	event.Body = func(h cloud.EventHead) (any, error) {
		bodies++
		return map[string]string{"event_id": h.EventID, "x": "<&>"}, nil
	}
	tell := func(e cloud.ProviderEvent) (out []cloud.OutboxWrite, err error) {
		_ = db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
			bodies = 0
			out, err = s.FanOutToProvider(v, e)
			return nil, err
		})
		return out, err
	}
	out, err := tell(event)
	require.NoError(t, err)
	require.Len(t, out, 1)
	require.Equal(t, 1, bodies)
	w := out[0].Event
	require.Regexp(t, `^TPD-\d+$`, w.EventID)
	require.Equal(t, `{"event_id":"`+w.EventID+`","x":"<&>"}`, string(w.Body))
	require.Equal(t, []any{cloud.ChannelThirdParty, cloud.ProviderID(17), "third_party_assignment", "TPA-1", false}, []any{w.Channel, w.ProviderID, w.ReferenceType, w.ReferenceID, w.Test})
	require.Len(t, out[0].Deliveries, 2)
	for i, d := range out[0].Deliveries {
		require.Equal(t, []any{cloud.EndpointID(2 + i), fmt.Sprintf("%s-%d", w.EventID, i+1), cloud.OutboxPending, 8}, []any{d.EndpointID, d.WebhookID, d.State, d.MaxAttempts})
	}

	other := event
	other.ProviderID, other.Test = 18, true
	out, err = tell(other)
	require.NoError(t, err)
	require.Regexp(t, `^TPD-MOCK-\d+$`, out[0].Event.EventID)
	require.True(t, out[0].Event.Test)
	require.Equal(t, []any{1, out[0].Event.EventID}, []any{len(out[0].Deliveries), out[0].Deliveries[0].WebhookID})

	other.Event, other.ProviderID = "third_party_delivery.cancelled", 17
	out, err = tell(other)
	require.NoError(t, err)
	require.Empty(t, out)
	require.Zero(t, bodies, "nobody wants it")

	event.Body = func(cloud.EventHead) (any, error) { return nil, errors.New("there is no such order") }
	_, err = tell(event)
	require.ErrorContains(t, err, "fan out third_party_delivery.packages_handed_over to provider 17: there is no such order")
}
