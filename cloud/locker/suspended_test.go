package locker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// The cabinets of a suspended business go on: a parcel inside is collected, and a
// courier's deposit that has begun is settled.
func TestCabinetsOfASuspendedBusinessGoOn(t *testing.T) {
	t.Parallel()
	tell(t, 1, nil, func(s *story) {
		time.Sleep(time.Minute)
		a := s.open()
		require.NoError(s.t, s.Store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{PlatformChanges: cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{{BusinessID: s.Box.ProviderCaller.Provider.BusinessID, SuspendedAt: time.Now(), Reason: "Unpaid"}}}}, nil
		}))
		s.settle(a)
		s.pickUp("op_p", 2, nil, a.Doors...)
		require.True(s.t, s.timeline().Delivered)
		s.status(cloud.DeliveryPickedUp)
	})
}
