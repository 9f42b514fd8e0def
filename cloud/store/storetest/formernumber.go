package storetest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/protocol/otep"
)

// formerNumbers find an order for callers who see it, also as numbers of packages,
// until the order is dropped.
func formerNumbers(t *testing.T, db *store.DB) {
	const first, second, third = "SR7KQ4M2XD9HTB", "SR822552824", "SRKQ47M2XD9HTC"
	o := order(9401, 1)
	o.Number, o.Packages = first, []cloud.OrderPackage{{ID: 94011, Number: first + "-1"}}
	s := cloud.Shipment{ID: 9401, BusinessID: 1, Number: first, OrderID: 9401, Profile: "parcel"}
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}, TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{s}}})
	for _, next := range []string{second, third} {
		o.FormerNumbers = append([]string{o.Number}, o.FormerNumbers...)
		o.Number, s.Number, o.Packages = next, next, []cloud.OrderPackage{{ID: 94011, Number: next + "-1"}}
		write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}, TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{s}}})
	}
	seen := func(yes bool) func(cloud.Shipment) bool { return func(cloud.Shipment) bool { return yes } }
	for _, number := range []string{first, first + "-1", second, second + "-1", third, third + "-1"} {
		current := strings.HasPrefix(number, third)
		for _, prefer := range []func(cloud.Shipment) bool{seen(true), seen(false), nil} {
			timeline, err := db.FindTimeline(t.Context(), number, prefer)
			found := timeline.Shipment
			if current || prefer != nil && prefer(s) {
				require.NoError(t, err, number)
				require.Equal(t, s.ID, found.ID)
			} else {
				require.ErrorIs(t, err, cloud.ErrNotFound, number)
			}
		}
		look(t, db, func(v cloud.View) {
			subjects, err := v.ShipmentsBySubject(1, otep.Subject{TrackingNumber: number})
			require.NoError(t, err)
			require.Len(t, subjects, 1, number)
			others, err := v.ShipmentsBySubject(2, otep.Subject{TrackingNumber: number})
			require.NoError(t, err)
			require.Empty(t, others)
			_, err = v.OrderByNumber(2, number)
			require.ErrorIs(t, err, cloud.ErrNotFound)
			if number != third+"-1" {
				found, err := v.OrderByNumber(1, number)
				require.NoError(t, err, number)
				require.Equal(t, o, found)
			}
		})
	}
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{DroppedOrders: []cloud.OrderKey{{BusinessID: 1, ID: 9401}}}})
	_, err := db.FindTimeline(t.Context(), first, seen(true))
	require.ErrorIs(t, err, cloud.ErrNotFound)
	look(t, db, func(v cloud.View) {
		_, err := v.OrderByNumber(1, first)
		require.ErrorIs(t, err, cloud.ErrNotFound)
	})
}
