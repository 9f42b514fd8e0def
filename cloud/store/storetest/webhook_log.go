package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// A business's log has all of its channels and no other business's, newest first, and
// each page goes on where the last one ended.
func businessLog(t *testing.T, db *store.DB) {
	ctx, c := t.Context(), &cloud.Changes{}
	for n := 1; n <= 6; n++ {
		if n%2 == 0 {
			c.Outbox = append(c.Outbox, event(n, 3))
		} else {
			c.Outbox = append(c.Outbox, accountEvent(n, 42, cloud.AccountID(n%3)))
		}
	}
	old := accountEvent(7, 42, 0) // its number is the highest, its time the lowest
	old.Deliveries[0].CreatedAt, old.Deliveries[0].State = now.Add(-time.Hour), cloud.OutboxFailed
	twin := event(8, 3)
	twin.Deliveries[0].CreatedAt = event(6).Event.CreatedAt // of the same moment as another
	twin.Deliveries[0].State = cloud.OutboxDead
	held := event(9, 4)
	held.Deliveries[0].State = cloud.OutboxPaused
	foreign, theirs := accountEvent(20, 43, 0), event(21, 5)
	theirs.Event.BusinessID, theirs.Event.ProviderID, theirs.Deliveries[0].BusinessID = 43, 18, 43
	theirs.Deliveries[0].State = cloud.OutboxFailed
	c.Outbox = append(c.Outbox, old, twin, held, foreign, theirs)
	write(t, db, 0, c)
	f := func(f cloud.BusinessLog, want ...int) []cloud.OutboxRow {
		t.Helper()
		if f.BusinessID == 0 {
			f.BusinessID = 42
		}
		if f.Limit == 0 {
			f.Limit = 100
		}
		rows, err := db.ListBusinessOutbox(ctx, f)
		require.NoError(t, err)
		var got []int
		for _, r := range rows {
			got = append(got, int(r.Delivery.ID)/10)
			require.Nil(t, r.Event.Body)
			require.Equal(t, f.BusinessID, r.Event.BusinessID)
		}
		require.Equal(t, want, got)
		return rows
	}
	f(cloud.BusinessLog{}, 9, 8, 6, 5, 4, 3, 2, 1, 7)
	var before cloud.OutboxMark
	for _, want := range [][]int{{9, 8}, {6, 5}, {4, 3}, {2, 1}, {7}} {
		rows := f(cloud.BusinessLog{Before: before, Limit: 2}, want...)
		d := rows[len(rows)-1].Delivery
		before = cloud.OutboxMark{At: d.CreatedAt, ID: d.ID}
	}
	f(cloud.BusinessLog{Before: before})
	f(cloud.BusinessLog{BusinessID: 43}, 21, 20)
	f(cloud.BusinessLog{BusinessID: 44})
	f(cloud.BusinessLog{EndpointID: 3}, 8, 6, 4, 2)
	f(cloud.BusinessLog{BusinessID: 43, EndpointID: 3}, nil...)
	f(cloud.BusinessLog{Event: "order.status_change"}, 5, 3, 1, 7)
	f(cloud.BusinessLog{ReferenceID: "64001"}, 4, 1, 7)
	f(cloud.BusinessLog{State: cloud.OutboxFailed}, 7)
	f(cloud.BusinessLog{State: cloud.OutboxDead, EndpointID: 3, Event: "locker_delivery.delivered"}, 8)
	f(cloud.BusinessLog{State: cloud.OutboxPending}, 6, 5, 4, 3, 2, 1)
	f(cloud.BusinessLog{From: now.Add(3 * time.Second), To: now.Add(5 * time.Second)}, 4, 3)
	_, err := db.ListBusinessOutbox(ctx, cloud.BusinessLog{Limit: 1})
	require.Error(t, err, "tenants are never mixed")

	mock := accountEvent(30, 42, 0)
	mock.Deliveries[0].State, mock.Deliveries[0].MaxAttempts = cloud.OutboxFailed, 1
	write(t, db, 0, &cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{mock}}})
	for b, want := range map[cloud.BusinessID]int{42: 2, 43: 1, 44: 0} {
		n, err := db.CountFailing(ctx, b)
		require.NoError(t, err)
		require.Equal(t, want, n, "what is held back has not failed, and tests do not count")
	}
}

// A filter by state finds the rows that show it, in each of the logs, and those
// alone: what a sender holds shows as delivering, whatever it was before.
func statesAsShown(t *testing.T, db *store.DB) {
	ctx, later := t.Context(), now.Add(time.Hour)
	paused := func(e cloud.OutboxWrite) cloud.OutboxWrite {
		e.Deliveries[0].State = cloud.OutboxPaused
		return e
	}
	byHand := accountEvent(13, 42, 0)
	byHand.Deliveries[0].State, byHand.Deliveries[0].EndpointID, byHand.Deliveries[0].URL = cloud.OutboxDelivering, 0, "https://once.example/"
	write(t, db, 0, &cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{event(1, 3), event(2, 3), event(3, 3), paused(event(4, 3)),
		accountEvent(10, 42, 0), accountEvent(11, 42, 0), paused(accountEvent(12, 42, 0)), byHand}}})
	hold := func(e cloud.EndpointID, want int) {
		work, err := db.ClaimOutbox(ctx, e, later, want)
		require.NoError(t, err)
		require.Len(t, work, want)
	}
	hold(3, 2)
	hold(accountEvent(10, 42, 0).Deliveries[0].EndpointID, 1)
	shows := func(rows []cloud.OutboxRow, s cloud.OutboxState) (n int) {
		for _, r := range rows {
			if r.Delivery.State == s {
				n++
			}
		}
		return n
	}
	for _, log := range []struct {
		name string
		read func(s cloud.OutboxState) ([]cloud.OutboxRow, error)
		held int
	}{
		{"business", func(s cloud.OutboxState) ([]cloud.OutboxRow, error) {
			return db.ListBusinessOutbox(ctx, cloud.BusinessLog{BusinessID: 42, State: s, Limit: 100})
		}, 4},
		{"account", func(s cloud.OutboxState) ([]cloud.OutboxRow, error) {
			total, rows, err := db.ListAccountOutbox(ctx, cloud.AccountLog{BusinessID: 42, State: s, Page: cloud.Page{Limit: 100}})
			require.Equal(t, len(rows), total.Total)
			return rows, err
		}, 2},
		{"provider", func(s cloud.OutboxState) ([]cloud.OutboxRow, error) {
			total, rows, err := db.ListOutbox(ctx, cloud.OutboxFilter{ProviderID: event(1, 3).Event.ProviderID, State: s, Page: cloud.Page{Limit: 100}})
			require.Equal(t, len(rows), total.Total)
			return rows, err
		}, 2},
	} {
		all, err := log.read("")
		require.NoError(t, err, log.name)
		for _, s := range []cloud.OutboxState{cloud.OutboxPending, cloud.OutboxDelivering, cloud.OutboxSuccess, cloud.OutboxRetrying, cloud.OutboxFailed, cloud.OutboxDead, cloud.OutboxPaused} {
			rows, err := log.read(s)
			require.NoError(t, err, "%s %s", log.name, s)
			require.Equal(t, shows(all, s), len(rows), "%s %s", log.name, s)
			require.Equal(t, len(rows), shows(rows, s), "%s %s", log.name, s)
		}
		require.Equal(t, log.held, shows(all, cloud.OutboxDelivering), log.name)
		require.Positive(t, shows(all, cloud.OutboxPending), log.name)
	}
	rows, err := db.ListBusinessOutbox(ctx, cloud.BusinessLog{BusinessID: 43, State: cloud.OutboxDelivering, Limit: 100})
	require.NoError(t, err)
	require.Empty(t, rows)
}
