package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// Rows of nouns are found by owner and id or by a unique member, listed by an example,
// and belong to their owner whatever is written.
func rows(t *testing.T, db *store.DB) {
	invite := func(id cloud.InvitationID, b cloud.BusinessID, name string) cloud.Invitation {
		return cloud.Invitation{ID: id, BusinessID: b, Hash: [32]byte{byte(id)}, Email: name + "@a.example", Name: name, Type: cloud.ClientEmployee, Permissions: []string{"orders:read"},
			InvitedBy: 5, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	}
	save := func(list ...cloud.Row) error {
		return db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{RowChanges: cloud.RowChanges{Rows: list}}, nil
		})
	}
	a, b, c, other := invite(1, 1, "ann"), invite(2, 1, "bob"), invite(3, 1, "bob"), invite(4, 2, "ann")
	require.NoError(t, save(a, b, c, other))
	look(t, db, func(v cloud.View) {
		got, err := cloud.Find(v, cloud.Invitation{BusinessID: 1, ID: 1, Name: "what else is said does not count"})
		require.NoError(t, err)
		require.Equal(t, a, got)
		got, err = cloud.Find(v, cloud.Invitation{Hash: other.Hash})
		require.NoError(t, err)
		require.Equal(t, other, got)
		for _, none := range []cloud.Invitation{{BusinessID: 1, ID: 4}, {BusinessID: 1}, {ID: 1}, {}, {Name: "ann"}, {Hash: [32]byte{9}}} {
			_, err = cloud.Find(v, none)
			require.ErrorIs(t, err, cloud.ErrNotFound, none)
		}
		list, listed, err := cloud.List(v, cloud.Invitation{BusinessID: 1, Name: "bob"}, cloud.Page{Sort: "id", Down: true, Limit: 1})
		require.NoError(t, err)
		require.Equal(t, []cloud.Invitation{c}, list)
		require.Equal(t, 2, listed.Total)
		list, _, err = cloud.List(v, cloud.Invitation{BusinessID: 1, Name: "bob"}, cloud.Page{Sort: "id", Down: true, Limit: 1, After: listed.Next})
		require.NoError(t, err)
		require.Equal(t, []cloud.Invitation{b}, list)
		list, err = cloud.All(v, cloud.Invitation{BusinessID: 2})
		require.NoError(t, err)
		require.Equal(t, []cloud.Invitation{other}, list)
		_, err = cloud.All(v, cloud.Invitation{Name: "ann"})
		require.ErrorIs(t, err, cloud.ErrNoOwner)
		_, _, err = cloud.List(v, cloud.Invitation{BusinessID: 1}, cloud.Page{Sort: "hash", Limit: 1})
		require.ErrorContains(t, err, "sorted")
	})

	a.AcceptedAt, a.AccountID, a.Permissions = now, 8, nil
	require.NoError(t, save(a))
	moved := b
	moved.BusinessID = 2
	require.ErrorIs(t, save(a, moved), cloud.ErrNotFound, "a row never moves to another owner")
	twin := invite(5, 1, "eve")
	twin.Hash = b.Hash
	require.ErrorIs(t, save(twin), cloud.ErrExists)
	write(t, db, 0, &cloud.Changes{RowChanges: cloud.RowChanges{DroppedRows: []cloud.Row{c, cloud.Invitation{ID: other.ID, BusinessID: 1}}}})
	look(t, db, func(v cloud.View) {
		list, err := cloud.All(v, cloud.Invitation{BusinessID: 1})
		require.NoError(t, err)
		require.Equal(t, []cloud.Invitation{a, b}, list)
		_, err = cloud.Find(v, cloud.Invitation{BusinessID: 2, ID: other.ID})
		require.NoError(t, err)
	})
}
