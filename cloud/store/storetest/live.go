package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// live keeps what listeners receive, gives it by time and by channel, and lets go of it.
func live(t *testing.T, db *store.DB) {
	event := func(id string, b cloud.BusinessID, kind cloud.LiveKind, subject int64, after time.Duration) cloud.LiveEvent {
		return cloud.LiveEvent{ID: id, Kind: kind, BusinessID: b, Subject: subject, At: now.Add(after), Body: []byte(`{"event_id":"` + id + `"}`)}
	}
	first, typing, second := event("och_1", 1, cloud.LiveChat, 7, 0), event("och_2", 1, cloud.LiveChat, 7, time.Second), event("och_3", 1, cloud.LiveChat, 7, 2*time.Second)
	typing.Passing = true
	others := []cloud.LiveEvent{event("och_4", 2, cloud.LiveChat, 7, 2*time.Second), event("och_5", 1, cloud.LiveChatStaff, 7, 3*time.Second), event("och_6", 1, cloud.LiveDriver, 8, 4*time.Second)}
	write(t, db, 0, &cloud.Changes{LiveChanges: cloud.LiveChanges{Live: append([]cloud.LiveEvent{second, first, typing}, others...)}})

	all, err := db.Live(t.Context(), now, 10)
	require.NoError(t, err)
	require.Equal(t, append([]cloud.LiveEvent{first, typing, second}, others...), all)
	late, err := db.Live(t.Context(), now.Add(2*time.Second), 2)
	require.NoError(t, err)
	require.Equal(t, []cloud.LiveEvent{second, others[0]}, late)
	chat, err := db.LiveOf(t.Context(), 1, cloud.LiveChat, 7, now, 10)
	require.NoError(t, err)
	require.Equal(t, []cloud.LiveEvent{first, second}, chat, "what passes is not told again")

	require.NoError(t, db.DropLive(t.Context(), now.Add(3*time.Second)))
	left, err := db.Live(t.Context(), now, 10)
	require.NoError(t, err)
	require.Equal(t, others[1:], left)
}

// liveSince gives what a poll does not know yet, and what is behind it.
func liveSince(t *testing.T, db *store.DB) {
	ctx := t.Context()
	var all []cloud.LiveEvent
	for i, id := range []string{"och_1", "och_2", "och_3", "och_4"} {
		all = append(all, cloud.LiveEvent{ID: id, Kind: cloud.LiveChat, BusinessID: 1, Subject: 7, At: now.Add(time.Duration(i) * time.Second), Body: []byte("{}")})
	}
	write(t, db, 0, &cloud.Changes{LiveChanges: cloud.LiveChanges{Live: all}})
	since := func(from time.Time, known ...string) []cloud.LiveEvent {
		t.Helper()
		out, err := db.LiveSince(ctx, from, func(id string) bool { return slices.Contains(known, id) })
		require.NoError(t, err)
		return out
	}
	require.Equal(t, all, since(now))
	require.Equal(t, all[1:], since(now.Add(time.Second)))
	require.Equal(t, all[1:3], since(now, "och_1", "och_4"))
	require.Equal(t, all[1:4], since(now, "och_1", "och_3"), "with what is known in between")
	require.Empty(t, since(now, "och_1", "och_2", "och_3", "och_4"))
	require.Empty(t, since(now.Add(time.Minute)))
}

// operationsAfter lists what was done to orders of every business.
func operationsAfter(t *testing.T, db *store.DB) {
	ctx := t.Context()
	last, err := db.LastOperation(ctx)
	require.NoError(t, err)
	require.Zero(t, last)
	var want []cloud.OrderID
	for i := range 7 {
		id := cloud.OrderID(i + 1)
		want = append(want, id)
		write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{OrderOperations: []cloud.OrderOperation{{OrderID: id, BusinessID: cloud.BusinessID(i%2 + 1), Type: 1001, Before: cloud.OrderNew, After: cloud.OrderReady, At: now}}}})
	}
	var got []cloud.OrderID
	for at := int64(0); ; {
		page, err := db.OperationsAfter(ctx, at, 3)
		require.NoError(t, err)
		for _, op := range page {
			require.Greater(t, op.ID, at)
			require.Equal(t, []cloud.OrderStatus{cloud.OrderNew, cloud.OrderReady}, []cloud.OrderStatus{op.Before, op.After})
			got, at = append(got, op.OrderID), op.ID
		}
		if len(page) < 3 {
			last, err = db.LastOperation(ctx)
			require.NoError(t, err)
			require.Equal(t, at, last)
			break
		}
	}
	require.Equal(t, want, got)
}
