package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

func event(n int, endpoints ...cloud.EndpointID) cloud.OutboxWrite {
	e := cloud.OutboxEvent{EventID: fmt.Sprintf("PLE-%d", n), Event: "locker_delivery.delivered", BusinessID: 42, ProviderID: 17,
		Channel: cloud.ChannelLocker, ReferenceType: "locker_delivery", ReferenceID: fmt.Sprint(64000 + n%3), OccurredAt: now,
		CreatedAt: now.Add(time.Duration(n) * time.Second), Body: []byte(fmt.Sprintf(`{"n":%d,"pickup_code":"482913"}`, n))}
	w := cloud.OutboxWrite{Event: e}
	for i, id := range endpoints {
		w.Deliveries = append(w.Deliveries, cloud.OutboxDelivery{ID: cloud.OutboxID(n*10 + i), EventID: e.EventID, EndpointID: id, BusinessID: 42,
			WebhookID: e.EventID, State: cloud.OutboxPending, MaxAttempts: 8, CreatedAt: e.CreatedAt})
	}
	return w
}

func outboxLifecycle(t *testing.T, db *store.DB) {
	ctx, later := t.Context(), now.Add(time.Hour)
	none := event(9)
	write(t, db, 0, &cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{event(2, 3), event(1, 3, 4), none}}})
	_, err := db.FindOutbox(ctx, 90)
	require.ErrorIs(t, err, cloud.ErrNotFound, "no receiver, no rows")

	due, err := db.DueEndpoints(ctx, now)
	require.NoError(t, err)
	require.Empty(t, due, "created a second later")
	due, err = db.DueEndpoints(ctx, later)
	require.NoError(t, err)
	require.Equal(t, []cloud.EndpointID{3, 4}, due)

	got, err := db.ClaimOutbox(ctx, 3, later, 10)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.EqualValues(t, 10, got[0].Delivery.ID, "oldest first")
	require.Equal(t, event(1).Event, got[0].Event, "with its body")
	require.Equal(t, db.Instance(), got[0].Delivery.LeaseOwner)
	again, err := db.ClaimOutbox(ctx, 3, later, 10)
	require.NoError(t, err)
	require.Empty(t, again, "leased")
	due, err = db.DueEndpoints(ctx, later)
	require.NoError(t, err)
	require.Equal(t, []cloud.EndpointID{4}, due)
	row, err := db.FindOutbox(ctx, 10)
	require.NoError(t, err)
	require.Equal(t, cloud.OutboxDelivering, row.Delivery.State)

	a := cloud.OutboxAttempt{DeliveryID: 10, Attempt: 1, At: later, URL: "https://x.example/?…", DeliveryUID: "u", HTTPStatus: 500,
		Duration: 1500 * time.Microsecond, ErrorCode: "HTTP_STATUS", Error: "e", RequestHead: "A: b", AnswerHead: "C: d", AnswerBody: "no",
		Reused: true, RetryAfter: "3"}
	stale := cloud.OutboxResult{ID: 20, Generation: got[1].Delivery.Generation + 1, State: cloud.OutboxDead, Attempts: 9}
	lost, err := db.FinishOutbox(ctx, []cloud.OutboxResult{stale, {ID: 10, Generation: got[0].Delivery.Generation, State: cloud.OutboxRetrying,
		Attempts: 1, NextAt: later.Add(30 * time.Second), Reason: "HTTP_STATUS", Attempt: &a}})
	require.NoError(t, err)
	require.Equal(t, []cloud.OutboxID{20}, lost, "the lease is of another generation")
	as, err := db.OutboxAttempts(ctx, 10)
	require.NoError(t, err)
	require.Equal(t, []cloud.OutboxAttempt{a}, as)
	lost, err = db.FinishOutbox(ctx, []cloud.OutboxResult{{ID: 10, Generation: got[0].Delivery.Generation, State: cloud.OutboxDead}})
	require.NoError(t, err)
	require.Equal(t, []cloud.OutboxID{10}, lost, "given back")

	again, err = db.ClaimOutbox(ctx, 3, later, 10)
	require.NoError(t, err)
	require.Empty(t, again, "the retry is not due")
	require.NoError(t, db.ReleaseOutbox(ctx, []cloud.OutboxResult{{ID: 20, Generation: got[1].Delivery.Generation}}))
	again, err = db.ClaimOutbox(ctx, 3, later.Add(time.Minute), 10)
	require.NoError(t, err)
	require.Len(t, again, 2)
	require.Equal(t, 1, again[0].Delivery.Attempts)
	require.Greater(t, again[0].Delivery.Generation, got[0].Delivery.Generation)
	renewed, err := db.RenewOutbox(ctx, []cloud.OutboxID{10, 20})
	require.NoError(t, err)
	require.ElementsMatch(t, []cloud.OutboxID{10, 20}, renewed)

	require.NoError(t, db.RecoverOutbox(ctx))
	counted := event(3, 7)
	counted.Deliveries[0].Sequence = cloud.Unnumbered
	more := event(4, 7)
	more.Deliveries[0].Sequence = cloud.Unnumbered
	write(t, db, 0, &cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{counted, more, event(6, 7)}}})
	for _, want := range []int64{1, 2, 0} {
		numbered, err := db.ClaimOutbox(ctx, 7, later.Add(time.Minute), 1)
		require.NoError(t, err)
		require.Equal(t, want, numbered[0].Delivery.Sequence)
		stored, err := db.FindOutbox(ctx, numbered[0].Delivery.ID)
		require.NoError(t, err)
		require.Equal(t, want, stored.Delivery.Sequence)
		lost, err = db.FinishOutbox(ctx, []cloud.OutboxResult{{ID: numbered[0].Delivery.ID, Generation: numbered[0].Delivery.Generation, State: cloud.OutboxSuccess, DeliveredAt: later}})
		require.NoError(t, err)
		require.Empty(t, lost)
	}
	third, err := db.ClaimOutbox(ctx, 3, later.Add(time.Minute), 1)
	require.NoError(t, err)
	require.Len(t, third, 1, "at start everything in flight is due")
	w, err := db.OutboxWaiting(ctx)
	require.NoError(t, err)
	require.Len(t, w, 2)

	db.OwnFresh(true)
	var told []cloud.OutboxWrite
	db.OnCommit(func(c *cloud.Changes) { told = append(told, c.Outbox...) })
	write(t, db, 0, &cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{event(5, 3)}}})
	lost, err = db.FinishOutbox(ctx, []cloud.OutboxResult{{ID: 50, Generation: 1, State: cloud.OutboxSuccess, Attempts: 1, DeliveredAt: later}})
	require.NoError(t, err)
	require.Empty(t, lost, "a fresh one is leased to the node that wrote it")

	d, err := db.Redeliver(ctx, cloud.OutboxOwner{ProviderID: 17}, 50, 51, "", later, nil)
	require.NoError(t, err)
	require.EqualValues(t, 50, d.Delivery.ReplayOf)
	require.Equal(t, event(5).Event.Body, told[len(told)-1].Event.Body, "told with the stored bytes")
	for _, o := range []cloud.OutboxOwner{{}, {ProviderID: 18}, {BusinessID: 42}} {
		_, err = db.Redeliver(ctx, o, 50, 52, "", later, nil)
		require.ErrorIs(t, err, cloud.ErrNotFound, "somebody else's")
	}
}

func outboxLog(t *testing.T, db *store.DB) {
	c := &cloud.Changes{}
	for n := 1; n <= 9; n++ {
		c.Outbox = append(c.Outbox, event(n, 3))
	}
	other := event(20, 5)
	other.Event.ProviderID, other.Event.Event = 18, "other"
	c.Outbox = append(c.Outbox, other)
	write(t, db, 0, c)
	f := func(f cloud.OutboxFilter, want ...int) {
		t.Helper()
		if f.ProviderID == 0 {
			f.ProviderID = 17
		}
		if f.Limit == 0 {
			f.Limit = 100
		}
		_, rows, err := db.ListOutbox(t.Context(), f)
		require.NoError(t, err)
		requireWalk(t, cloud.Page{Limit: 2}, func(p cloud.Page) (cloud.Listed, []cloud.OutboxRow, error) {
			f := f
			f.Page = p
			return db.ListOutbox(t.Context(), f)
		})
		var got []int
		for _, r := range rows {
			got = append(got, int(r.Delivery.ID)/10)
			require.Nil(t, r.Event.Body)
			require.Equal(t, r.Delivery.EventID, r.Event.EventID)
		}
		require.Equal(t, want, got)
	}
	f(cloud.OutboxFilter{}, 9, 8, 7, 6, 5, 4, 3, 2, 1)
	f(cloud.OutboxFilter{Page: cloud.Page{Limit: 2, After: &cloud.Mark{ID: int64(80)}}}, 7, 6)
	f(cloud.OutboxFilter{ReferenceID: "64001"}, 7, 4, 1)
	f(cloud.OutboxFilter{ReferenceID: "64001", Page: cloud.Page{Limit: 1, After: &cloud.Mark{ID: int64(70)}}}, 4)
	f(cloud.OutboxFilter{Event: "nothing"})
	f(cloud.OutboxFilter{ProviderID: 18, Event: "other", BusinessID: 42}, 20)
	f(cloud.OutboxFilter{BusinessID: 43})
	f(cloud.OutboxFilter{From: now.Add(3 * time.Second), To: now.Add(5 * time.Second)}, 4, 3)
	f(cloud.OutboxFilter{State: cloud.OutboxDead})
	_, _, err := db.ListOutbox(t.Context(), cloud.OutboxFilter{Page: cloud.Page{Limit: 1}})
	require.Error(t, err, "tenants are never mixed")
}
