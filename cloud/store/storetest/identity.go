package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// Identities and passkeys are found by what names them, each of one account.
func identities(t *testing.T, db *store.DB) {
	i := cloud.Identity{BusinessID: 1, Issuer: "https://id.example", Subject: "ann", AccountID: 8, CreatedAt: now}
	other := cloud.Identity{BusinessID: 1, Issuer: "https://id2.example", Subject: "ann", AccountID: 8, CreatedAt: now}
	p := cloud.Passkey{ID: 3, AccountID: 8, Credential: []byte{0, 1, 255}, Name: "Phone", Data: []byte(`{"a":"ü"}`), CreatedAt: now}
	q := cloud.Passkey{ID: 4, AccountID: 8, Credential: []byte{7}, Name: "Key", Data: []byte(`{}`), CreatedAt: now}
	write(t, db, 0, &cloud.Changes{IdentityChanges: cloud.IdentityChanges{Identities: []cloud.Identity{other, i}}, RowChanges: cloud.RowChanges{Rows: []cloud.Row{q, p}}})
	look(t, db, func(v cloud.View) {
		got, err := v.Identity(1, i.Issuer, i.Subject)
		require.NoError(t, err)
		require.Equal(t, i, got)
		list, err := v.IdentitiesOf(8)
		require.NoError(t, err)
		require.ElementsMatch(t, []cloud.Identity{i, other}, list)
		for _, x := range []cloud.Identity{{BusinessID: 2, Issuer: i.Issuer, Subject: i.Subject}, {BusinessID: 1, Issuer: i.Issuer, Subject: "Ann"}} {
			_, err = v.Identity(x.BusinessID, x.Issuer, x.Subject)
			require.ErrorIs(t, err, cloud.ErrNotFound)
		}
		keys, err := cloud.All(v, cloud.Passkey{AccountID: 8})
		require.NoError(t, err)
		require.Equal(t, []cloud.Passkey{p, q}, keys)
		key, err := cloud.Find(v, cloud.Passkey{Credential: p.Credential})
		require.NoError(t, err)
		require.Equal(t, p, key)
	})
	err := db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		i.Subject = "eve"
		return &cloud.Changes{IdentityChanges: cloud.IdentityChanges{Identities: []cloud.Identity{i}}}, nil
	})
	require.Error(t, err, "an account is one person's of a provider")
	again := cloud.Identity{BusinessID: 1, Issuer: i.Issuer, Subject: "anew", AccountID: 8, CreatedAt: now}
	elsewhere := cloud.Identity{BusinessID: 1, Issuer: i.Issuer, Subject: "ben", AccountID: 9, CreatedAt: now}
	write(t, db, 0, &cloud.Changes{IdentityChanges: cloud.IdentityChanges{Identities: []cloud.Identity{elsewhere}}})
	write(t, db, 0, &cloud.Changes{IdentityChanges: cloud.IdentityChanges{EndIdentities: []cloud.AccountID{8}, Identities: []cloud.Identity{again}}})
	look(t, db, func(v cloud.View) {
		for id, want := range map[cloud.AccountID]cloud.Identity{8: again, 9: elsewhere} {
			list, err := v.IdentitiesOf(id)
			require.NoError(t, err)
			require.Equal(t, []cloud.Identity{want}, list)
		}
	})
	p.Name, p.UsedAt = "Old phone", now
	moved := p
	moved.AccountID = 9
	err = db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{moved}}}, nil
	})
	require.ErrorIs(t, err, cloud.ErrNotFound, "a row never moves to another owner")
	write(t, db, 0, &cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{p}, DroppedRows: []cloud.Row{cloud.Passkey{ID: 4, AccountID: 8}, cloud.Passkey{ID: 3, AccountID: 9}}}})
	look(t, db, func(v cloud.View) {
		keys, err := cloud.All(v, cloud.Passkey{AccountID: 8})
		require.NoError(t, err)
		require.Equal(t, []cloud.Passkey{p}, keys)
	})
}
