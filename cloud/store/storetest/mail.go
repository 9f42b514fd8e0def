package storetest

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// mails are tried by one node at a time, each attempt counted when it begins, end
// once, and then hold no text.
func mails(t *testing.T, db *store.DB) {
	ctx := t.Context()
	mail := func(id string, at time.Time) cloud.Mail {
		return cloud.Mail{ID: id, BusinessID: 1, AccountID: 8, Kind: cloud.ResetMail, At: at, Until: at.Add(time.Hour),
			MailText: cloud.MailText{To: "ann@a.example", Language: "de", Name: "Ann", Business: "Acme", Link: "https://cloud.test/x?key=1"}}
	}
	a, b := mail("a", now), mail("b", now.Add(time.Second))
	write(t, db, 0, &cloud.Changes{MailChanges: cloud.MailChanges{Mails: []cloud.Mail{a, b}}})
	due, err := db.MailDue(ctx, now.Add(-time.Millisecond))
	require.NoError(t, err)
	require.False(t, due)
	due, err = db.MailDue(ctx, now)
	require.NoError(t, err)
	require.True(t, due)
	mine, err := db.ClaimMails(ctx, now, 10)
	require.NoError(t, err)
	require.Len(t, mine, 1)
	require.Equal(t, []any{a, 1, cloud.MailWaiting}, []any{mine[0].Mail, mine[0].Attempts, mine[0].State})
	again, err := db.ClaimMails(ctx, now, 10)
	require.NoError(t, err)
	require.Empty(t, again, "it is tried")
	require.NoError(t, db.RecoverMails(ctx))
	mine, err = db.ClaimMails(ctx, now, 10)
	require.NoError(t, err)
	require.Equal(t, 2, mine[0].Attempts, "the node ended in the middle of the first")
	mine[0].Reason, mine[0].NextAt = "server", now.Add(time.Minute)
	require.NoError(t, db.RetryMail(ctx, mine[0]))
	mine, err = db.ClaimMails(ctx, now.Add(time.Minute), 10)
	require.NoError(t, err)
	require.Len(t, mine, 2)
	for _, m := range mine {
		m.State, m.EndedAt, m.Reason = cloud.MailSent, now, ""
		m.Generation++
		require.NoError(t, db.EndMail(ctx, m), "under another lease")
		m.Generation--
		require.NoError(t, db.EndMail(ctx, m))
		m.State = cloud.MailFailed
		require.NoError(t, db.EndMail(ctx, m), "it has ended")
	}
	list, err := db.ListMails(ctx, 1, 10)
	require.NoError(t, err)
	require.Len(t, list, 2)
	for _, m := range list {
		require.Equal(t, []any{cloud.MailSent, cloud.MailText{}, now}, []any{m.State, m.MailText, m.EndedAt})
	}
	none, err := db.ListMails(ctx, 2, 10)
	require.NoError(t, err)
	require.Empty(t, none)

	// One request an address waits, and a further one is kept after a while.
	request := func(at time.Time) cloud.ResetRequest {
		return cloud.ResetRequest{Digest: sha256.Sum256([]byte("ann@a.example")), Email: "ann@a.example", Language: "de", At: at}
	}
	keep := func(r cloud.ResetRequest) {
		write(t, db, 0, &cloud.Changes{MailChanges: cloud.MailChanges{ResetRequests: []cloud.ResetRequest{r}}})
	}
	keep(request(now))
	keep(request(now.Add(time.Minute)))
	waiting, err := db.ListResetRequests(ctx, 10)
	require.NoError(t, err)
	require.Equal(t, []cloud.ResetRequest{request(now)}, waiting)
	ended := waiting[0]
	ended.DoneAt = now.Add(time.Second)
	write(t, db, 0, &cloud.Changes{MailChanges: cloud.MailChanges{DoneResetRequests: []cloud.ResetRequest{ended}}})
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
	require.NoError(t, db.DropMails(ctx, now.Add(time.Second), now.Add(time.Hour)))
	list, err = db.ListMails(ctx, 1, 10)
	require.NoError(t, err)
	require.Len(t, list, 1)
	waiting, err = db.ListResetRequests(ctx, 10)
	require.NoError(t, err)
	require.Empty(t, waiting)
}
