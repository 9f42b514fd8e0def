package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/protocol/otep"
)

// feed: what was changed is there once, in order, with what it was about; what changed
// nothing is not.
func feed(t *testing.T, db *store.DB) {
	a := cloud.Shipment{ID: 1, BusinessID: 1, Number: "SWP1", ProviderID: 17, Profile: "parcel"}
	b := cloud.Shipment{ID: 2, BusinessID: 2, Number: "SWP2"}
	of := func(s cloud.Shipment, id string) cloud.TimelineEvent {
		return cloud.TimelineEvent{ShipmentID: s.ID, BusinessID: s.BusinessID, Event: scanAt(t, id, "2026-11-20T10:00:00Z")}
	}
	tracked := func(c cloud.TrackingChanges) { t.Helper(); write(t, db, 0, &cloud.Changes{TrackingChanges: c}) }
	began := time.Now().Truncate(time.Millisecond)
	tracked(cloud.TrackingChanges{Shipments: []cloud.Shipment{a, b}, Events: []cloud.TimelineEvent{of(a, "e1"), of(b, "e1"), of(a, "e2"), of(a, "e1")}})
	tracked(cloud.TrackingChanges{Shipments: []cloud.Shipment{a}, Events: []cloud.TimelineEvent{of(a, "e2")}})
	took := cloud.EventRef{ShipmentID: 1, EventID: "e1", At: now, Reason: otep.DidNotOccur, By: "ups"}
	tracked(cloud.TrackingChanges{Withdrawn: []cloud.EventRef{took, {ShipmentID: 1, EventID: "unknown", At: now}}})
	tracked(cloud.TrackingChanges{Withdrawn: []cloud.EventRef{took}})
	replaced := cloud.EventRef{ShipmentID: 1, EventID: "e2", At: now, Reason: otep.IncorrectData, By: "ups", CorrectedBy: "e3"}
	again := cloud.EventRef{ShipmentID: 1, EventID: "e3", At: now, Reason: otep.IncorrectData, By: "ups", CorrectedBy: "e4"}
	tracked(cloud.TrackingChanges{Events: []cloud.TimelineEvent{of(a, "e3"), of(a, "e4")}, Withdrawn: []cloud.EventRef{replaced, again}})
	for _, estimate := range []string{"2026-11-24T12:00:00Z", "2026-11-24T12:00:00Z", "2026-11-25T12:00:00Z"} {
		a.Estimated = estimate
		tracked(cloud.TrackingChanges{Shipments: []cloud.Shipment{a}})
	}
	c := cloud.Shipment{ID: 3, BusinessID: 1, Number: "SWP3", Estimated: "2026-11-26T12:00:00Z"}
	tracked(cloud.TrackingChanges{Shipments: []cloud.Shipment{c}})

	var got []string
	var at cloud.FeedPosition
	for {
		p, err := db.FeedPage(t.Context(), 1, at, 3)
		require.NoError(t, err)
		if p.Pending { // transactions of other tests hold it back
			time.Sleep(5 * time.Millisecond)
		}
		for _, x := range p.Changes {
			require.Positive(t, x.Position.Compare(at))
			at = x.Position
			require.False(t, x.RecordedAt.Before(began) || x.RecordedAt.After(time.Now()), "%v", x.RecordedAt)
			line := fmt.Sprint(x.Shipment.ID, " ", x.Kind, " ", x.Estimate)
			if x.Event != nil {
				require.Equal(t, a, x.Shipment, "as it is now")
				require.Equal(t, of(a, x.Event.EventID).Event, *x.Event)
				require.Positive(t, x.Size)
				line += x.Event.EventID
			}
			if x.Withdrawal != (cloud.EventRef{}) {
				line += " " + x.Withdrawal.CorrectedBy
				want := map[string]cloud.EventRef{"e1": took, "e2": replaced, "e3": again}[x.Event.EventID]
				require.Equal(t, want, x.Withdrawal)
			}
			got = append(got, line)
		}
		if p.End && !p.Pending {
			break
		}
	}
	require.Equal(t, []string{"1 event.recorded e1", "1 event.recorded e2", "1 event.withdrawn e1 ", "1 event.corrected e2 e3", "1 event.recorded e3", "1 event.corrected e3 e4", "1 event.recorded e4",
		"1 estimate.changed 2026-11-24T12:00:00Z", "1 estimate.changed 2026-11-25T12:00:00Z", "3 estimate.changed 2026-11-26T12:00:00Z"}, got)
	end, err := db.FeedEnd(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, at, end)
	p, err := db.FeedPage(t.Context(), 2, cloud.FeedPosition{}, 10)
	require.NoError(t, err)
	require.Len(t, p.Changes, 1, "older than what was read")
	require.Equal(t, b, p.Changes[0].Shipment)
	end, err = db.FeedEnd(t.Context(), 9)
	require.NoError(t, err)
	require.Zero(t, end)
}
