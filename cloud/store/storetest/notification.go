package storetest

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// notifications are tried by one node at a time, each attempt counted when it begins, end
// once, and then hold no text.
func notifications(t *testing.T, db *store.DB) {
	ctx := t.Context()
	mail := func(id string, at time.Time) cloud.Notification {
		return cloud.Notification{ID: id, BusinessID: 1, AccountID: 8, Channel: cloud.ByEmail, Kind: cloud.NotifyReset, At: at, Until: at.Add(time.Hour),
			NotificationText: cloud.NotificationText{To: "ann@a.example", Language: "de", Name: "Ann", Business: "Acme", Link: "https://cloud.test/x?key=1"}}
	}
	a, b := mail("a", now), mail("b", now.Add(time.Second))
	write(t, db, 0, &cloud.Changes{NotificationChanges: cloud.NotificationChanges{Notifications: []cloud.Notification{a, b}}})
	due, err := db.NotificationDue(ctx, cloud.ByEmail, now.Add(-time.Millisecond))
	require.NoError(t, err)
	require.False(t, due)
	due, err = db.NotificationDue(ctx, cloud.ByEmail, now)
	require.NoError(t, err)
	require.True(t, due)
	mine, err := db.ClaimNotifications(ctx, cloud.ByEmail, now, 10)
	require.NoError(t, err)
	require.Len(t, mine, 1)
	require.Equal(t, []any{a, 1, cloud.NotificationWaiting}, []any{mine[0].Notification, mine[0].Attempts, mine[0].State})
	again, err := db.ClaimNotifications(ctx, cloud.ByEmail, now, 10)
	require.NoError(t, err)
	require.Empty(t, again, "it is tried")
	require.NoError(t, db.RecoverNotifications(ctx, cloud.ByEmail))
	mine, err = db.ClaimNotifications(ctx, cloud.ByEmail, now, 10)
	require.NoError(t, err)
	require.Equal(t, 2, mine[0].Attempts, "the node ended in the middle of the first")
	mine[0].Reason, mine[0].NextAt = "server", now.Add(time.Minute)
	require.NoError(t, db.RetryNotification(ctx, mine[0]))
	mine, err = db.ClaimNotifications(ctx, cloud.ByEmail, now.Add(time.Minute), 10)
	require.NoError(t, err)
	require.Len(t, mine, 2)
	for _, m := range mine {
		m.State, m.EndedAt, m.Reason = cloud.NotificationSent, now, ""
		m.Generation++
		ended, err := db.EndNotification(ctx, m)
		require.NoError(t, err)
		require.False(t, ended, "under another lease")
		m.Generation--
		ended, err = db.EndNotification(ctx, m)
		require.NoError(t, err)
		require.True(t, ended)
		m.State = cloud.NotificationFailed
		ended, err = db.EndNotification(ctx, m)
		require.NoError(t, err)
		require.False(t, ended, "it has ended")
	}
	list, err := db.ListNotifications(ctx, 1, 10)
	require.NoError(t, err)
	require.Len(t, list, 2)
	for _, m := range list {
		require.Equal(t, []any{cloud.NotificationSent, cloud.NotificationText{}, now}, []any{m.State, m.NotificationText, m.EndedAt})
	}
	none, err := db.ListNotifications(ctx, 2, 10)
	require.NoError(t, err)
	require.Empty(t, none)

	// Channels are apart, and a notification about a test is sent to no one.
	text, late, tried := mail("sms", now), mail("late", now.Add(30*time.Minute)), mail("test", now)
	text.Channel, text.ProviderID, text.DeliveryID, text.To = cloud.BySMS, 3, 7, "+14165550123"
	late.Channel, late.DeliveryID = cloud.BySMS, 7
	tried.Channel, tried.ProviderID, tried.DeliveryID, tried.Sandbox = cloud.BySMS, 3, 9, true
	write(t, db, 0, &cloud.Changes{NotificationChanges: cloud.NotificationChanges{Notifications: []cloud.Notification{text, late, tried}}})
	due, err = db.NotificationDue(ctx, cloud.ByEmail, now.Add(time.Hour))
	require.NoError(t, err)
	require.False(t, due)
	due, err = db.NotificationDue(ctx, cloud.BySMS, now)
	require.NoError(t, err)
	require.True(t, due)
	sms, err := db.ClaimNotifications(ctx, cloud.BySMS, now, 10)
	require.NoError(t, err)
	require.Len(t, sms, 1)
	require.Equal(t, text, sms[0].Notification)
	require.NoError(t, db.RecoverNotifications(ctx, cloud.ByEmail))
	again, err = db.ClaimNotifications(ctx, cloud.BySMS, now, 10)
	require.NoError(t, err)
	require.Empty(t, again, "another channel's were given back")
	require.NoError(t, db.RecoverNotifications(ctx, cloud.BySMS))
	again, err = db.ClaimNotifications(ctx, cloud.BySMS, now.Add(30*time.Minute), 10)
	require.NoError(t, err)
	require.Len(t, again, 2, "the other's time has come")
	look(t, db, func(v cloud.View) {
		about := func(f cloud.NotificationFilter) (ids []string) {
			f.Page = cloud.Page{Sort: "id", Down: true, Limit: 10}
			found, listed, err := v.Notifications(f)
			require.NoError(t, err)
			require.Equal(t, int64(len(found)), int64(listed.Total))
			for _, m := range found {
				ids = append(ids, m.ID)
			}
			return ids
		}
		require.Equal(t, []string{"late", "sms"}, about(cloud.NotificationFilter{BusinessID: 1}), "about deliveries alone")
		require.Equal(t, []string{"sms"}, about(cloud.NotificationFilter{BusinessID: 1, ProviderID: 3}))
		require.Equal(t, []string{"late", "sms"}, about(cloud.NotificationFilter{BusinessID: 1, DeliveryID: 7, Status: cloud.NotificationWaiting}))
		require.Equal(t, []string{"test"}, about(cloud.NotificationFilter{BusinessID: 1, Sandbox: true}))
		require.Empty(t, about(cloud.NotificationFilter{BusinessID: 2, Sandbox: true}))
		require.Empty(t, about(cloud.NotificationFilter{BusinessID: 1, ProviderID: 4, Sandbox: true}))
		found, err := v.SandboxNotification(1, "test")
		require.NoError(t, err)
		require.Equal(t, tried, found.Notification, "with its text")
		for b, id := range map[cloud.BusinessID]string{1: "sms", 2: "test"} {
			_, err = v.SandboxNotification(b, id)
			require.ErrorIs(t, err, cloud.ErrNotFound)
		}
	})
	require.NoError(t, db.DropNotifications(ctx, now.Add(time.Second), now, now))
	look(t, db, func(v cloud.View) {
		_, err := v.SandboxNotification(1, "test")
		require.ErrorIs(t, err, cloud.ErrNotFound)
	})
	for _, m := range again {
		m.State, m.EndedAt = cloud.NotificationSent, now
		_, err := db.EndNotification(ctx, m)
		require.NoError(t, err)
	}
	put := mail("put off", now)
	put.Channel, put.From, put.Until = cloud.BySMS, now.Add(time.Minute), now.Add(2*time.Minute)
	write(t, db, 0, &cloud.Changes{NotificationChanges: cloud.NotificationChanges{Notifications: []cloud.Notification{put}}})
	due, err = db.NotificationDue(ctx, cloud.BySMS, now.Add(time.Minute-time.Millisecond))
	require.NoError(t, err)
	require.False(t, due)
	require.NoError(t, db.ExpireNotifications(ctx, now.Add(2*time.Minute)))
	due, err = db.NotificationDue(ctx, cloud.BySMS, now.Add(time.Hour))
	require.NoError(t, err)
	require.True(t, due)
	require.NoError(t, db.ExpireNotifications(ctx, now.Add(2*time.Minute+time.Millisecond)))
	due, err = db.NotificationDue(ctx, cloud.BySMS, now.Add(time.Hour))
	require.NoError(t, err)
	require.False(t, due, "without a carrier it ends as well")

	// One request an address waits, and a further one is kept after a while.
	request := func(at time.Time) cloud.ResetRequest {
		return cloud.ResetRequest{Digest: sha256.Sum256([]byte("ann@a.example")), Email: "ann@a.example", Language: "de", At: at}
	}
	keep := func(r cloud.ResetRequest) {
		write(t, db, 0, &cloud.Changes{NotificationChanges: cloud.NotificationChanges{ResetRequests: []cloud.ResetRequest{r}}})
	}
	keep(request(now))
	keep(request(now.Add(time.Minute)))
	waiting, err := db.ListResetRequests(ctx, 10)
	require.NoError(t, err)
	require.Equal(t, []cloud.ResetRequest{request(now)}, waiting)
	ended := waiting[0]
	ended.DoneAt = now.Add(time.Second)
	write(t, db, 0, &cloud.Changes{NotificationChanges: cloud.NotificationChanges{DoneResetRequests: []cloud.ResetRequest{ended}}})
	look(t, db, func(v cloud.View) {
		got, err := v.ResetRequest(ended.Digest)
		require.NoError(t, err)
		require.Equal(t, ended, got)
	})
	keep(request(now.Add(cloud.ResetPause - time.Millisecond)))
	waiting, err = db.ListResetRequests(ctx, 10)
	require.NoError(t, err)
	require.Empty(t, waiting)
	keep(request(now.Add(cloud.ResetPause)))
	waiting, err = db.ListResetRequests(ctx, 10)
	require.NoError(t, err)
	require.Len(t, waiting, 1)
	require.NoError(t, db.DropNotifications(ctx, now, now.Add(time.Second), now.Add(time.Hour)))
	list, err = db.ListNotifications(ctx, 1, 10)
	require.NoError(t, err)
	require.Len(t, list, 2)
	waiting, err = db.ListResetRequests(ctx, 10)
	require.NoError(t, err)
	require.Empty(t, waiting)
}
