package platform_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/platform"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/webtest"
)

func code(t *testing.T, err error) string {
	t.Helper()
	var e *cloud.Error
	require.ErrorAs(t, err, &e)
	return e.Code
}

var someOperator = cloud.Caller{Account: cloud.Account{ID: 6, Type: cloud.PlatformAdmin}}

// begin suspends a business and begins its removal by what is shown.
func begin(t *testing.T, s *platform.Service, id cloud.BusinessID, name string) (platform.RemovalPreview, error) {
	t.Helper()
	if _, err := s.Suspend(t.Context(), someOperator, platform.SuspendInput{ID: id, Reason: "Over"}); err != nil {
		require.Equal(t, "BUSINESS_SUSPENDED", code(t, err))
	}
	shown, err := s.PreviewRemoval(t.Context(), someOperator, platform.ByBusiness{ID: id})
	require.NoError(t, err)
	yes := true
	_, err = s.Remove(t.Context(), someOperator, platform.RemoveInput{ID: id, Digest: shown.Digest, Code: name, Reason: "Over", Confirm: &yes})
	return shown, err
}

// A parcel that was not collected in time lies in its compartment, and its code works:
// a business with one is not removed. Once staff took it out the business may be.
func TestAnOverdueParcelKeepsABusiness(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *store.DB{"SQLite": storetest.OpenSQLite, "PostgreSQL": storetest.OpenPostgres} {
		t.Run(name, func(t *testing.T) {
			w := webtest.NewOn(t, open(t))
			s := service(t, w.DB, w.DB)
			late := w.Delivery
			late.Status, late.ExpiredKind, late.ExpiredAt = cloud.DeliveryExpired, "pickup_overdue", time.Now().UTC().Truncate(time.Millisecond)
			w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{late}}})
			shown, err := begin(t, s, 42, "acme")
			require.Equal(t, "PARCELS_INSIDE", code(t, err))
			require.Equal(t, 1, shown.Inside)

			var cell cloud.Compartment
			require.NoError(t, w.DB.Look(t.Context(), func(v cloud.View) (err error) { cell, err = v.Compartment(88, 3); return err }))
			cell.State, cell.DeliveryID = cloud.GridFree, 0
			w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{cell}}})
			shown, err = begin(t, s, 42, "acme")
			require.NoError(t, err)
			require.Zero(t, shown.Inside)
		})
	}
}

// A business that is being removed is not resumed: its people would be let into what
// is half gone.
func TestABusinessThatIsBeingRemovedIsNotResumed(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	s := platform.New(platform.Config{Store: w.DB, Jobs: w.DB, Over: store.ExportOver, Dir: t.TempDir(), DigestKey: []byte("k")})
	_, err := begin(t, s, 43, "other")
	require.NoError(t, err)
	_, err = s.Resume(t.Context(), someOperator, platform.ByBusiness{ID: 43})
	require.Equal(t, "BUSINESS_REMOVAL_RUNNING", code(t, err))
}
