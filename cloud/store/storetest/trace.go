package storetest

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/protocol/otep"
)

func tracedEvent(shipment int64, id string) cloud.TimelineEvent {
	return cloud.TimelineEvent{ShipmentID: cloud.ShipmentID(shipment), BusinessID: 42, Event: otep.Event{EventID: id, Version: otep.Version, StatusCode: otep.InTransit,
		Phase: otep.PhaseTransit, OccurredAt: otep.Time{Time: now}, RecordedAt: otep.Time{Time: now}}}
}

// untold is what UnsentTraces gives, as shipment: event.
func untold(t *testing.T, db *store.DB, limit int) map[string]cloud.TracedEvent {
	t.Helper()
	parcels, err := db.UnsentTraces(t.Context(), limit)
	require.NoError(t, err)
	out := map[string]cloud.TracedEvent{}
	for _, p := range parcels {
		require.NotEmpty(t, p.Shipment.Number)
		for _, e := range p.Events {
			out[fmt.Sprint(p.Shipment.ID, " ", e.Event.EventID)] = e
		}
	}
	return out
}

func confirmTraced(t *testing.T, db *store.DB, events ...cloud.TracedEvent) {
	t.Helper()
	require.NoError(t, db.NoteSentTraces(t.Context(), events))
}

func traces(t *testing.T, db *store.DB) {
	ctx := t.Context()
	shipments := []cloud.Shipment{{ID: 1, BusinessID: 42, Number: "T1", Profile: "parcel", CreatedAt: now}, {ID: 2, BusinessID: 42, Number: "T2", Profile: "parcel", CreatedAt: now}}
	write(t, db, 0, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: shipments, Events: []cloud.TimelineEvent{tracedEvent(1, "old")}}})
	require.Empty(t, untold(t, db, 10), "nobody is told yet")
	held, err := db.ClaimTraces(ctx)
	require.NoError(t, err)
	require.True(t, held)
	require.Empty(t, untold(t, db, 10), "what is older than telling waits for news of its parcel")

	write(t, db, 0, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{tracedEvent(2, "a"), tracedEvent(1, "b")}}})
	held, err = db.ClaimTraces(ctx)
	require.NoError(t, err)
	require.True(t, held, "again, and without a new beginning")
	got := untold(t, db, 10)
	require.Len(t, got, 3)
	for _, e := range got {
		require.Equal(t, cloud.TraceUntold, e.State)
		require.False(t, e.Event.Withdrawn)
	}
	oldest := untold(t, db, 1)
	require.Len(t, oldest, 1)
	require.Contains(t, oldest, "2 a")

	confirmTraced(t, db, got["2 a"], got["1 b"])
	require.Empty(t, untold(t, db, 10))
	confirmTraced(t, db, got["1 old"])

	// One that is withdrawn between being read and being sent stays.
	write(t, db, 0, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{tracedEvent(2, "c")}}})
	got = untold(t, db, 10)
	require.Equal(t, cloud.TraceSent, got["2 a"].State)
	write(t, db, 0, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Withdrawn: []cloud.EventRef{{ShipmentID: 2, EventID: "c", At: now}, {ShipmentID: 1, EventID: "old", At: now}}}})
	confirmTraced(t, db, got["2 c"])
	got = untold(t, db, 10)
	require.Len(t, got, 4)
	for _, id := range []string{"2 c", "1 old"} {
		require.Equal(t, cloud.TraceWithdrawn, got[id].State, id)
		require.True(t, got[id].Event.Withdrawn)
	}
	confirmTraced(t, db, got["2 c"], got["1 old"])
	require.Empty(t, untold(t, db, 10))
	require.NoError(t, db.ReleaseTraces(ctx))
	held, err = db.ClaimTraces(ctx)
	require.NoError(t, err)
	require.True(t, held)
}

// TracesOfTwoNodes is what two nodes on one PostgreSQL database promise each
// other: one tells at a time, and a lease that ended by the database's clock is
// free.
func TracesOfTwoNodes(t *testing.T) {
	url := MigratedPostgresURL(t)
	a, b := Open(t, store.Config{URL: url, Instance: "a", Box: Box(t)}), Open(t, store.Config{URL: url, Instance: "b", Box: Box(t)})
	claim := func(db *store.DB) bool {
		held, err := db.ClaimTraces(t.Context())
		require.NoError(t, err)
		return held
	}
	require.True(t, claim(a))
	require.False(t, claim(b))
	require.True(t, claim(a), "renewed")
	require.NoError(t, b.ReleaseTraces(t.Context()))
	require.False(t, claim(b), "nobody gives back another's lease")
	require.NoError(t, a.ReleaseTraces(t.Context()))
	require.True(t, claim(b))
	require.False(t, claim(a))

	c, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Exec(t.Context(), "UPDATE trace_push SET lease_until = lease_until - 31000")
	require.NoError(t, err)
	require.True(t, claim(a), "the lease has ended")
	require.False(t, claim(b))
}
