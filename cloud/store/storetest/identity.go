package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// identities and passkeys are found by what names them, each of one account.
func identities(t *testing.T, db *store.DB) {
	i := cloud.Identity{BusinessID: 1, Issuer: "https://id.example", Subject: "ann", AccountID: 8, CreatedAt: now}
	other := cloud.Identity{BusinessID: 1, Issuer: "https://id2.example", Subject: "ann", AccountID: 8, CreatedAt: now}
	p := cloud.Passkey{ID: 3, AccountID: 8, Credential: []byte{0, 1, 255}, Name: "Phone", Data: []byte(`{"a":"ü"}`), CreatedAt: now}
	q := cloud.Passkey{ID: 4, AccountID: 8, Credential: []byte{7}, Name: "Key", Data: []byte(`{}`), CreatedAt: now}
	write(t, db, 0, &cloud.Changes{IdentityChanges: cloud.IdentityChanges{Identities: []cloud.Identity{other, i}}, PasskeyChanges: cloud.PasskeyChanges{Passkeys: []cloud.Passkey{q, p}}})
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
		keys, err := v.Passkeys(8)
		require.NoError(t, err)
		require.Equal(t, []cloud.Passkey{p, q}, keys)
		key, err := v.PasskeyByCredential(p.Credential)
		require.NoError(t, err)
		require.Equal(t, p, key)
	})
	err := db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		i.Subject = "eve"
		return &cloud.Changes{IdentityChanges: cloud.IdentityChanges{Identities: []cloud.Identity{i}}}, nil
	})
	require.Error(t, err, "an account is one person's of a provider")
	p.Name, p.UsedAt, p.AccountID = "Old phone", now, 9
	write(t, db, 0, &cloud.Changes{PasskeyChanges: cloud.PasskeyChanges{Passkeys: []cloud.Passkey{p}, NoPasskeys: []cloud.PasskeyID{4}}})
	look(t, db, func(v cloud.View) {
		p.AccountID = 8 // it never moves
		keys, err := v.Passkeys(8)
		require.NoError(t, err)
		require.Equal(t, []cloud.Passkey{p}, keys)
	})
}
