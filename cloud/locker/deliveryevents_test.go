package locker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/ring"
)

// Events of a delivery are there for its provider alone, with an endpoint or without, and
// for as long as the log of webhooks.
func TestEventsOfADeliveryWithoutAnEndpoint(t *testing.T) {
	ring.SkipUnlessCheck(t, "the stories of cmd/e2e")
	f := plays(t)
	f("a life that no endpoint gets", 1, func(s *story) {
		provider := s.Box.ProviderCaller
		s.withoutEndpoint()
		names := func() (out []string) {
			list, err := s.Lockers.ListDeliveryEvents(ctx, provider, "ref:R-1")
			require.NoError(s.t, err)
			last := int64(0)
			for _, e := range list.Events {
				require.Greater(s.t, e.Sequence, last)
				last = e.Sequence
				out = append(out, e.Event)
			}
			return out
		}
		require.Empty(s.t, names())
		a := s.open()
		s.settle(a)
		require.Equal(s.t, []string{"locker_delivery.doors_opened", "locker_delivery.delivered"}, names())
		s.told()
		other := provider
		other.Provider.ID++
		_, err := s.Lockers.ListDeliveryEvents(ctx, other, "ref:R-1")
		require.Equal(s.t, "DELIVERY_NOT_FOUND", code(err))
		require.NoError(s.t, s.Store.DropDeliveryEvents(ctx, time.Now().Add(-time.Hour)))
		require.Len(s.t, names(), 2)
		require.NoError(s.t, s.Store.DropDeliveryEvents(ctx, time.Now().Add(time.Hour)))
		require.Empty(s.t, names())
	})
	f("the log of webhooks needs its events", 1, func(s *story) {
		s.open()
		require.NoError(s.t, s.Store.DropDeliveryEvents(ctx, time.Now().Add(time.Hour)))
		s.told("doors_opened")
	})
}

// withoutEndpoint turns the provider's endpoints off.
func (s *story) withoutEndpoint() {
	s.t.Helper()
	require.NoError(s.t, s.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		list, err := v.Endpoints(s.Box.ProviderCaller.Provider.ID)
		for i := range list {
			list[i].Enabled = false
		}
		return &cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: list}}, err
	}))
}
