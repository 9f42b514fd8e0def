package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

func pushAt(id string, driver cloud.AccountID, at time.Time) cloud.Push {
	return cloud.Push{ID: id, BusinessID: 1, DriverID: driver, Type: "order_assigned", Title: "Neuer Auftrag „A“", Body: "1 Main St", At: at,
		Data: cloud.PushData{OrderID: 7, TrackingNumber: "SR1"}}
}

// pushes are written with their live events, tried by one node at a time, and
// end once.
func pushes(t *testing.T, db *store.DB) {
	ctx := t.Context()
	due := now.Add(cloud.PushDelay)
	state := func(id string) cloud.PushState {
		t.Helper()
		p, err := db.FindPush(ctx, id)
		require.NoError(t, err)
		return p.State
	}
	a, b, test := pushAt("psh_a", 8, now), pushAt("psh_b", 8, now.Add(time.Second)), pushAt("psh_t", 8, now)
	test.Test = true
	write(t, db, 0, &cloud.Changes{PushChanges: cloud.PushChanges{Pushes: []cloud.Push{a, b, test}}})

	told, err := db.LiveOf(ctx, 1, cloud.LiveDriver, 8, now, 10)
	require.NoError(t, err)
	require.Len(t, told, 3)
	require.Equal(t, a.Live(), told[0])
	require.JSONEq(t, `{"push_id":"psh_a","type":"order_assigned","title":"Neuer Auftrag „A“","body":"1 Main St","data":{"order_id":7,"tracking_number":"SR1"},"created_at":"`+now.Format(time.RFC3339)+`"}`,
		string(told[0].Body))

	none, err := db.ClaimPushes(ctx, due.Add(-time.Millisecond), 10)
	require.NoError(t, err)
	require.Empty(t, none, "the live channel comes first")
	mine, err := db.ClaimPushes(ctx, due, 10)
	require.NoError(t, err)
	require.Len(t, mine, 1)
	require.Equal(t, a, mine[0].Push)
	again, err := db.ClaimPushes(ctx, due, 10)
	require.NoError(t, err)
	require.Empty(t, again, "somebody tries it")
	mine[0].Attempts, mine[0].NextAt, mine[0].Reason = 1, due.Add(time.Minute), "away"
	require.NoError(t, db.RetryPush(ctx, mine[0], due))
	again, err = db.ClaimPushes(ctx, due.Add(time.Minute), 10)
	require.NoError(t, err)
	require.Len(t, again, 2)
	for _, p := range again {
		p.State, p.EndedAt = cloud.PushSent, due
		p.Generation++
		require.NoError(t, db.EndPush(ctx, p), "under another lease")
		require.Equal(t, cloud.PushWaiting, state(p.ID))
		p.Generation--
		require.NoError(t, db.EndPush(ctx, p))
		require.Equal(t, cloud.PushSent, state(p.ID))
	}
	require.NoError(t, db.HeardPushes(ctx, []string{"psh_a", "psh_t", "psh_?"}, due))
	require.Equal(t, cloud.PushSent, state("psh_a"))
	require.Equal(t, cloud.PushLogged, state("psh_t"))

	// Heard, expired, failed.
	write(t, db, 0, &cloud.Changes{PushChanges: cloud.PushChanges{Pushes: []cloud.Push{pushAt("psh_c", 9, now), pushAt("psh_d", 9, now), pushAt("psh_e", 9, now)}}})
	mine, err = db.ClaimPushes(ctx, due, 1)
	require.NoError(t, err)
	require.Equal(t, "psh_c", mine[0].ID)
	mine[0].Attempts, mine[0].NextAt = 1, due.Add(time.Hour)
	require.NoError(t, db.RetryPush(ctx, mine[0], due))
	require.NoError(t, db.HeardPushes(ctx, []string{"psh_d"}, due))
	require.NoError(t, db.ExpirePushes(ctx, now.Add(time.Millisecond), due))
	require.Equal(t, []cloud.PushState{cloud.PushFailed, cloud.PushHeard, cloud.PushExpired}, []cloud.PushState{state("psh_c"), state("psh_d"), state("psh_e")})

	list, err := db.ListPushes(ctx, 1, 8, now, 10)
	require.NoError(t, err)
	require.Len(t, list, 3)
	list, err = db.ListPushes(ctx, 1, 8, now.Add(time.Second), 10)
	require.NoError(t, err)
	require.Equal(t, b, list[0].Push)
	for _, business := range []cloud.BusinessID{1, 2} {
		logged, err := db.ListTestPushes(ctx, business, now, 10)
		require.NoError(t, err)
		require.Len(t, logged, int(2-business))
		others, err := db.ListPushes(ctx, 2, 8, now, 10)
		require.NoError(t, err)
		require.Empty(t, others, "another business's")
	}
	require.NoError(t, db.DropPushes(ctx, now.Add(time.Second)))
	_, err = db.FindPush(ctx, "psh_a")
	require.ErrorIs(t, err, cloud.ErrNotFound)
	require.Equal(t, cloud.PushSent, state("psh_b"))
}

// pushCollapse: of those that wait under one name the last one stays.
func pushCollapse(t *testing.T, db *store.DB) {
	ctx := t.Context()
	due := now.Add(cloud.PushDelay)
	put := func(id, collapse string, driver cloud.AccountID) {
		p := pushAt(id, driver, now)
		p.Collapse = collapse
		write(t, db, 0, &cloud.Changes{PushChanges: cloud.PushChanges{Pushes: []cloud.Push{p}}})
	}
	states := func() (out []cloud.PushState) {
		for _, id := range []string{"psh_1", "psh_2", "psh_3", "psh_4", "psh_5"} {
			p, err := db.FindPush(ctx, id)
			if err == nil {
				out = append(out, p.State)
			}
		}
		return out
	}
	const w, r = cloud.PushWaiting, cloud.PushReplaced
	put("psh_1", "chat/1", 8)
	put("psh_2", "chat/2", 8)
	put("psh_3", "chat/1", 9)
	require.Equal(t, []cloud.PushState{w, w, w}, states(), "other conversations, other drivers")
	put("psh_4", "chat/1", 8)
	require.Equal(t, []cloud.PushState{r, w, w, w}, states())
	mine, err := db.ClaimPushes(ctx, due, 10)
	require.NoError(t, err)
	require.Len(t, mine, 3)
	put("psh_5", "chat/1", 8)
	require.Equal(t, []cloud.PushState{r, w, w, w, w}, states(), "one that is being tried is not taken back")
	for _, p := range mine {
		p.NextAt = due.Add(time.Minute)
		require.NoError(t, db.RetryPush(ctx, p, due))
	}
	require.Equal(t, []cloud.PushState{r, w, w, r, w}, states(), "nor tried again")
	// An app's word that it heard one comes a moment later than the next one.
	require.NoError(t, db.HeardPushes(ctx, []string{"psh_4", "psh_5"}, due))
	require.Equal(t, []cloud.PushState{r, w, w, cloud.PushHeard, cloud.PushHeard}, states())
}

// pushTokens belong to one driver, as long as the login that gave them is good.
func pushTokens(t *testing.T, db *store.DB) {
	ctx := t.Context()
	login := func(n byte, a cloud.AccountID) cloud.Token {
		return cloud.Token{Hash: [32]byte{n}, AccountID: a, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	}
	driver := func(id cloud.AccountID, enabled bool) cloud.Account {
		return cloud.Account{ID: id, BusinessID: 1, Type: cloud.DriverAccount, Enabled: enabled}
	}
	write(t, db, 0, &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{driver(8, true), driver(9, true)}, Tokens: []cloud.Token{login(1, 8), login(2, 8), login(3, 9)}}})
	give := func(token string, d cloud.AccountID, login byte, after time.Duration) {
		write(t, db, 0, &cloud.Changes{PushChanges: cloud.PushChanges{PushTokens: []cloud.PushToken{{DriverID: d, Token: token, Platform: "fcm", Login: [32]byte{login}, At: now.Add(after)}}}})
	}
	has := func(d cloud.AccountID, at time.Time) (out []string) {
		t.Helper()
		list, err := db.PushTokens(ctx, d, at)
		require.NoError(t, err)
		for _, x := range list {
			require.Equal(t, d, x.DriverID)
			out = append(out, x.Token)
		}
		return out
	}
	give("one", 8, 1, 0)
	give("two", 8, 2, 1)
	require.ElementsMatch(t, []string{"one", "two"}, has(8, now))
	require.Empty(t, has(8, now.Add(time.Hour)), "the logins are over")
	give("one", 9, 3, 2)
	require.Equal(t, []string{"two"}, has(8, now), "the telephone has another driver now")
	require.Equal(t, []string{"one"}, has(9, now))
	revoked := login(3, 9)
	revoked.RevokedAt = now
	write(t, db, 0, &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{revoked}}})
	require.Empty(t, has(9, now))
	give("gone", 8, 1, 3)
	require.NoError(t, db.DropPushToken(ctx, 8, "gone"))
	write(t, db, 0, &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{driver(8, false)}}})
	require.Empty(t, has(8, now))
	write(t, db, 0, &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{driver(8, true)}}, PushChanges: cloud.PushChanges{NoPushTokens: [][32]byte{{1}}}})
	require.Equal(t, []string{"two"}, has(8, now))
	for i := range cloud.MaxPushTokens + 3 {
		give(string(rune('A'+i)), 8, 2, time.Duration(10+i)*time.Second)
	}
	require.Len(t, has(8, now), cloud.MaxPushTokens)
	require.NotContains(t, has(8, now), "C")
}

// manyPushes: what is old goes however much it is.
func manyPushes(t *testing.T, db *store.DB) {
	ctx, c := t.Context(), &cloud.Changes{}
	for i := range 1201 {
		c.Pushes = append(c.Pushes, pushAt(fmt.Sprintf("psh_%04d", i), 8, now))
	}
	write(t, db, 0, c)
	require.NoError(t, db.ExpirePushes(ctx, now.Add(time.Second), now.Add(time.Hour)))
	list, err := db.ListPushes(ctx, 1, 8, now, 2000)
	require.NoError(t, err)
	require.Len(t, list, 1201)
	for _, p := range list {
		require.Equal(t, cloud.PushExpired, p.State)
	}
	require.NoError(t, db.DropPushes(ctx, now.Add(time.Second)))
	list, err = db.ListPushes(ctx, 1, 8, now, 2000)
	require.NoError(t, err)
	require.Empty(t, list)
}
