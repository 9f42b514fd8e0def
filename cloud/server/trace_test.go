package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
)

// A server with a collector sends it a parcel's event; one without sends
// nothing.
func TestJourneysArePushed(t *testing.T) {
	t.Parallel()
	got := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.URL.Path }))
	defer collector.Close()

	without, err := New(t.Context(), Config{Dir: storetest.MigratedDir(t)})
	require.NoError(t, err)
	require.Nil(t, without.traces)
	s, err := New(t.Context(), Config{Dir: storetest.MigratedDir(t), OTLPEndpoint: collector.URL})
	require.NoError(t, err)
	_, err = New(t.Context(), Config{Dir: storetest.MigratedDir(t), OTLPEndpoint: "collector"})
	require.ErrorContains(t, err, "trace collector")

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	for _, x := range []*Server{without, s} {
		go func() { done <- x.Run(ctx, Listeners{}) }()
	}
	// Events from before pushing began are not sent; wait until it has.
	ring.Await(t, func() bool {
		at := otep.Time{Time: time.Now().UTC()}
		e := otep.Event{OccurredAt: at, RecordedAt: at, StatusCode: otep.InTransit}.Fill("parcel")
		e.EventID = at.Format(time.RFC3339Nano)
		ch := &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 1, BusinessID: 42, Number: "T1", Profile: "parcel", CreatedAt: at.Time}},
			Events: []cloud.TimelineEvent{{ShipmentID: 1, BusinessID: 42, Event: e}}}}
		require.NoError(t, s.Store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) { return ch, nil }))
		return len(got) > 0
	})
	require.Equal(t, "/v1/traces", <-got)
	cancel()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
}
