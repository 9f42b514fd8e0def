package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// Paused deliveries are kept until the pause ends, and then go or have failed;
// those of other receivers stay.
func pausedDeliveries(t *testing.T, db *store.DB) {
	ctx := t.Context()
	c := &cloud.Changes{}
	for n := 1; n <= 1200; n++ { // more than fit into two transactions
		o := event(n, 3)
		o.Deliveries[0].State, o.Deliveries[0].NextAt = cloud.OutboxPaused, now
		c.Outbox = append(c.Outbox, o)
	}
	other := event(5000, 4)
	other.Deliveries[0].State = cloud.OutboxPaused
	c.Outbox = append(c.Outbox, other)
	write(t, db, 0, c)
	due, err := db.DueEndpoints(ctx, now.Add(24*time.Hour))
	require.NoError(t, err)
	require.Empty(t, due)

	require.NoError(t, db.EndPause(ctx, 3, now.Add(time.Hour), ""))
	got, err := db.ClaimOutbox(ctx, 3, now.Add(time.Hour), 2000)
	require.NoError(t, err)
	require.Len(t, got, 1200)
	require.EqualValues(t, 10, got[0].Delivery.ID)
	row, err := db.FindOutbox(ctx, 50000)
	require.NoError(t, err)
	require.Equal(t, cloud.OutboxPaused, row.Delivery.State)

	require.NoError(t, db.EndPause(ctx, 4, now.Add(time.Hour), "given_up"))
	row, err = db.FindOutbox(ctx, 50000)
	require.NoError(t, err)
	require.Equal(t, []any{cloud.OutboxFailed, "given_up", true}, []any{row.Delivery.State, row.Delivery.Reason, row.Delivery.NextAt.IsZero()})
}

// A delivery that its writer sends is not taken up by another node. It shows as
// delivering until its outcome is stored, or has failed when that never comes.
func sentByTheirWriter(t *testing.T, db *store.DB) {
	ctx := t.Context()
	direct := func(n int) cloud.OutboxWrite {
		o := event(n, 0)
		o.Deliveries[0].State, o.Deliveries[0].URL = cloud.OutboxDelivering, "https://elsewhere.example/"
		return o
	}
	write(t, db, 0, &cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{direct(1), direct(2)}}})
	work, err := db.Redeliver(ctx, cloud.OutboxOwner{ProviderID: 17}, 10, 30, "https://third.example/", now, nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, work.Delivery.Generation)
	due, err := db.DueEndpoints(ctx, now.Add(time.Hour))
	require.NoError(t, err)
	require.Empty(t, due)
	for _, id := range []cloud.OutboxID{10, 20, 30} {
		row, err := db.FindOutbox(ctx, id)
		require.NoError(t, err)
		require.Equal(t, cloud.OutboxDelivering, row.Delivery.State)
	}
	lost, err := db.FinishOutbox(ctx, []cloud.OutboxResult{{ID: 10, Generation: 1, State: cloud.OutboxSuccess, Attempts: 1, DeliveredAt: now}})
	require.NoError(t, err)
	require.Empty(t, lost)
	require.NoError(t, db.RecoverOutbox(ctx)) // the process came again
	for id, want := range map[cloud.OutboxID][]any{10: {cloud.OutboxSuccess, "", "https://elsewhere.example/"}, 20: {cloud.OutboxFailed, store.ReasonInterrupted, "https://elsewhere.example/"},
		30: {cloud.OutboxFailed, store.ReasonInterrupted, "https://third.example/"}} {
		row, err := db.FindOutbox(ctx, id)
		require.NoError(t, err)
		require.Equal(t, want, []any{row.Delivery.State, row.Delivery.Reason, row.Delivery.URL})
	}
}

func endpointHealth(t *testing.T, db *store.DB) {
	ctx := t.Context()
	hour := now.Unix() / 3600
	note := func(tallies ...cloud.EndpointTally) []cloud.EndpointHealth {
		t.Helper()
		failing, err := db.NoteHealth(ctx, tallies)
		require.NoError(t, err)
		return failing
	}
	_, err := db.FindHealth(ctx, 3)
	require.ErrorIs(t, err, cloud.ErrNotFound)
	first := now.Add(-time.Hour)
	failing := note(cloud.EndpointTally{EndpointID: 3, Hour: hour - 1, Attempts: 4, Failures: 4, FailedAt: first.Add(time.Minute), FailingSince: first, Streak: 4})
	require.Equal(t, []cloud.EndpointHealth{{EndpointID: 3, FailedAt: first.Add(time.Minute), FailingSince: first, Failures: 4}}, failing)
	failing = note(cloud.EndpointTally{EndpointID: 3, Hour: hour, Attempts: 2, Failures: 2, FailedAt: now, FailingSince: now, Streak: 2},
		cloud.EndpointTally{EndpointID: 4, Hour: hour, Attempts: 9, SucceededAt: now})
	require.Equal(t, []cloud.EndpointHealth{{EndpointID: 3, FailedAt: now, FailingSince: first, Failures: 6}}, failing, "the streak goes on")

	a := cloud.Audit{BusinessID: 42, At: now, Actor: "system", Action: "webhook_url_failing", Target: "endpoint:3"}
	for i, want := range []bool{true, false} {
		is, err := db.WarnEndpoint(ctx, 3, 50, a)
		require.NoError(t, err)
		require.Equal(t, want, is, i)
	}
	is, err := db.WarnEndpoint(ctx, 3, 70, a)
	require.NoError(t, err)
	require.True(t, is)
	write(t, db, 0, &cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{{ID: 3, BusinessID: 42, Kind: cloud.ThirdPartyEndpoint, Status: "healthy", Enabled: true, NextUntil: now.Add(time.Hour)},
		{ID: 6, BusinessID: 42, Kind: cloud.LockerEndpoint, NextUntil: now.Add(-time.Hour)}}}})
	for _, want := range []bool{true, false} {
		is, err := db.PauseEndpoint(ctx, 3, now, a)
		require.NoError(t, err)
		require.Equal(t, want, is)
	}
	lines, err := db.ListAudits(ctx, 42, 0, 10)
	require.NoError(t, err)
	require.Len(t, lines, 3, "one line each time that it was the first")

	reports, err := db.ReportEndpoints(ctx, []cloud.EndpointID{3, 4, 5}, now)
	require.NoError(t, err)
	require.Equal(t, []any{6, 6, 6, 6, 70}, []any{reports[0].Attempts24h, reports[0].Failures24h, reports[0].AttemptsHour, reports[0].FailuresHour, reports[0].Warned})
	require.Equal(t, []any{9, 0, true}, []any{reports[1].Attempts24h, reports[1].Failures24h, reports[1].SucceededAt.Equal(now)})
	require.Equal(t, cloud.EndpointReport{EndpointHealth: cloud.EndpointHealth{EndpointID: 5}}, reports[2])
	reports, err = db.ReportEndpoints(ctx, []cloud.EndpointID{3}, now.Add(2*time.Hour))
	require.NoError(t, err)
	require.Equal(t, []int{0, 6}, []int{reports[0].AttemptsHour, reports[0].Attempts24h})

	require.Empty(t, note(cloud.EndpointTally{EndpointID: 3, Hour: hour + 1, Attempts: 2, Failures: 1, FailedAt: now.Add(time.Minute), SucceededAt: now.Add(2 * time.Minute)}))
	h, err := db.FindHealth(ctx, 3)
	require.NoError(t, err)
	require.Equal(t, cloud.EndpointHealth{EndpointID: 3, SucceededAt: now.Add(2 * time.Minute), FailedAt: now.Add(time.Minute)}, h, "a success ends it all")

	status, overlap, err := db.CountEndpoints(ctx, now)
	require.NoError(t, err)
	require.Equal(t, []cloud.EndpointCount{{Label: "paused", Count: 1}}, status)
	require.Equal(t, []cloud.EndpointCount{{Label: cloud.ChannelLocker}, {Label: cloud.ChannelThirdParty, Count: 1}, {Label: cloud.ChannelAccount}}, overlap)
}

// What is older than the log goes, in steps: with its attempts, and with its
// event unless that is being sent again. A held event stays.
func pruneOutbox(t *testing.T, db *store.DB) {
	ctx := t.Context()
	c := &cloud.Changes{}
	for n := 1; n <= 25; n++ { // created n seconds after now, two deliveries each
		c.Outbox = append(c.Outbox, event(n, 3, 4))
	}
	write(t, db, 0, c)
	held, err := db.ClaimOutbox(ctx, 3, now.Add(time.Hour), 2)
	require.NoError(t, err)
	_, err = db.FinishOutbox(ctx, []cloud.OutboxResult{{ID: held[1].Delivery.ID, Generation: held[1].Delivery.Generation, State: cloud.OutboxSuccess,
		Attempt: &cloud.OutboxAttempt{DeliveryID: held[1].Delivery.ID, Attempt: 1, At: now}}})
	require.NoError(t, err)
	_, err = db.Redeliver(ctx, cloud.OutboxOwner{ProviderID: 17}, 50, 10_000, "", now.Add(time.Hour), nil)
	require.NoError(t, err)

	before, removed := now.Add(11*time.Second), 0
	for last, more := cloud.OutboxID(0), true; more; {
		var n int
		last, n, more, err = db.PruneOutbox(ctx, last, before, 7)
		require.NoError(t, err)
		removed += n
	}
	require.Equal(t, 19, removed, "two each of the first ten, but for the one that is held")
	there := func(id cloud.OutboxID) bool {
		_, err := db.FindOutbox(ctx, id)
		if err != nil {
			require.ErrorIs(t, err, cloud.ErrNotFound)
		}
		return err == nil
	}
	require.False(t, there(20))
	require.False(t, there(21))
	require.False(t, there(51), "one of an event that is sent again")
	require.True(t, there(110))
	require.True(t, there(10_000), "with the body that it sends")
	left, err := db.OutboxAttempts(ctx, held[1].Delivery.ID)
	require.NoError(t, err)
	require.Empty(t, left)

	require.NoError(t, db.RecoverOutbox(ctx))
	_, n, _, err := db.PruneOutbox(ctx, 0, now.Add(2*time.Hour), 1000)
	require.NoError(t, err)
	require.Equal(t, 32, n)
	require.False(t, there(10_000))
	write(t, db, 0, &cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{event(5, 3)}}}) // its event is gone: the key is free
}

// Jobs send again what their filter chooses, in order and once each, whatever
// node takes the step.
func replayJobs(t *testing.T, db *store.DB) {
	ctx := t.Context()
	c := &cloud.Changes{}
	for n := 1; n <= 9; n++ {
		c.Outbox = append(c.Outbox, accountEvent(n, 42, cloud.AccountID(n%3)))
	}
	mock := accountEvent(5, 42, 1) // a test is tried once, and not again
	mock.Event.EventID, mock.Deliveries[0].EventID, mock.Deliveries[0].WebhookID = "TEST-1", "TEST-1", "TEST-1"
	mock.Deliveries[0].ID, mock.Deliveries[0].MaxAttempts = 900, 1
	c.Outbox = append(c.Outbox, accountEvent(20, 43, 1), event(30, 3), mock)
	job := cloud.ReplayJob{ID: "rpl_1", BusinessID: 42, Status: cloud.ReplayRunning, CreatedAt: now, PositionAt: time.UnixMilli(0),
		Filter: cloud.ReplayFilter{From: now.Add(2 * time.Second), To: now.Add(9 * time.Second), Event: "order.status_change"}}
	n, err := db.CountReplay(ctx, job)
	require.NoError(t, err)
	require.Zero(t, n)
	c.ReplayJobs = []cloud.ReplayJob{job}
	write(t, db, 0, c)
	for change, want := range map[string]int{"": 7, "customer": 3, "state": 0, "receiver": 0, "own receiver": 7} {
		j := job
		switch change {
		case "customer":
			j.CustomerID = 2
		case "state":
			j.Filter.State = cloud.OutboxFailed
		case "receiver":
			j.Filter.EndpointID = 71
		case "own receiver":
			j.Filter.EndpointID = 70
		}
		n, err := db.CountReplay(ctx, j)
		require.NoError(t, err)
		require.Equal(t, want, n, change)
	}
	next := cloud.OutboxID(1000)
	step := func(n int) {
		t.Helper()
		jobs, err := db.OpenReplays(ctx)
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		var ids []cloud.OutboxID
		for range n {
			next++
			ids = append(ids, next)
		}
		require.NoError(t, db.StepReplay(ctx, jobs[0], ids, now.Add(time.Minute)))
		require.NoError(t, db.StepReplay(ctx, jobs[0], ids, now.Add(time.Minute)), "another node that was slower does nothing")
	}
	step(4)
	j, err := db.FindReplay(ctx, "rpl_1")
	require.NoError(t, err)
	require.Equal(t, []any{4, cloud.ReplayRunning, job.Filter}, []any{j.Sent, j.Status, j.Filter})
	step(4)
	j, err = db.FindReplay(ctx, "rpl_1")
	require.NoError(t, err)
	require.Equal(t, []any{7, cloud.ReplayDone, now.Add(time.Minute)}, []any{j.Sent, j.Status, j.FinishedAt})
	_, rows, err := db.ListAccountOutbox(ctx, cloud.AccountLog{BusinessID: 42, From: now.Add(time.Minute), Page: cloud.Page{Limit: 100}})
	require.NoError(t, err)
	var of []string
	for i := range rows {
		d := rows[len(rows)-1-i].Delivery
		require.Equal(t, 1, d.MaxAttempts)
		of = append(of, fmt.Sprint(d.ReplayOf/10))
	}
	require.Equal(t, []string{"2", "3", "4", "5", "6", "7", "8"}, of)

	again := job
	again.ID = "rpl_2"
	write(t, db, 0, &cloud.Changes{ReplayChanges: cloud.ReplayChanges{ReplayJobs: []cloud.ReplayJob{again}}})
	again.Status, again.FinishedAt = cloud.ReplayCancelled, now
	write(t, db, 0, &cloud.Changes{ReplayChanges: cloud.ReplayChanges{ReplayJobs: []cloud.ReplayJob{again}}})
	open, err := db.OpenReplays(ctx)
	require.NoError(t, err)
	require.Empty(t, open)
	require.NoError(t, db.DropReplays(ctx, now.Add(time.Second)))
	_, err = db.FindReplay(ctx, "rpl_2")
	require.ErrorIs(t, err, cloud.ErrNotFound)
	_, err = db.FindReplay(ctx, "rpl_1")
	require.NoError(t, err)
}
