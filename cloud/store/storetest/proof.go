package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// proofGuesses are kept by shipment, listed by business, and leave with the order.
func proofGuesses(t *testing.T, db *store.DB) {
	g := cloud.ProofGuesses{ShipmentID: 9301, BusinessID: 1, Number: "SR-G", Wrong: 2, Total: 7, Locks: 1, LockedAt: now, LockedUntil: now.Add(time.Hour)}
	open := cloud.ProofGuesses{ShipmentID: 9302, BusinessID: 1, Number: "SR-H", Wrong: 1, Total: 1}
	foreign := cloud.ProofGuesses{ShipmentID: 9303, BusinessID: 2, Number: "SR-I", Locks: 1, Total: 5, LockedAt: now, LockedUntil: now}
	o := order(9301, 1)
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}},
		TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 9301, BusinessID: 1, Number: "SR-G", OrderID: 9301, Profile: "parcel"}},
			ProofGuesses: []cloud.ProofGuesses{g, open, foreign}}})
	find := func(id cloud.ShipmentID) (found cloud.ProofGuesses, err error) {
		require.NoError(t, db.Look(t.Context(), func(v cloud.View) error { found, err = v.ProofGuesses(id); return nil }))
		return found, err
	}
	found, err := find(9301)
	require.NoError(t, err)
	require.Equal(t, g, found)
	_, err = find(9304)
	require.ErrorIs(t, err, cloud.ErrNotFound)
	list, err := db.ListLockedParcels(t.Context(), 1, now, 10)
	require.NoError(t, err)
	require.Equal(t, []cloud.ProofGuesses{g}, list)
	list, err = db.ListLockedParcels(t.Context(), 1, now.Add(time.Second), 10)
	require.NoError(t, err)
	require.Empty(t, list)
	g.Total, g.Wrong = 8, 3
	write(t, db, 0, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{ProofGuesses: []cloud.ProofGuesses{g}}})
	found, err = find(9301)
	require.NoError(t, err)
	require.Equal(t, g, found)
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{DroppedOrders: []cloud.OrderKey{{BusinessID: 1, ID: 9301}}}})
	_, err = find(9301)
	require.ErrorIs(t, err, cloud.ErrNotFound)
}
