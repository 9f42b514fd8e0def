package savedview_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/collection"
	"github.com/postern-io/postern/cloud/savedview"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// A view is its owner's; a shared one is seen by staff alone, and another
// business sees neither.
func TestWhoSeesAView(t *testing.T) {
	t.Parallel()
	db := storetest.OpenSQLite(t)
	require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "a", Name: "A", Timezone: "UTC"}, {ID: 2, Code: "b", Name: "B", Timezone: "UTC"}}}}, nil
	}))
	s := savedview.New(db)
	who := func(id cloud.AccountID, b cloud.BusinessID, t cloud.AccountType) cloud.Caller {
		return cloud.Caller{Account: cloud.Account{ID: id, BusinessID: b, Type: t}}
	}
	ada, ben, admin := who(1, 1, cloud.ClientEmployee), who(2, 1, cloud.ClientEmployee), who(3, 1, cloud.ClientAdmin)
	customer, foreign := who(4, 1, cloud.Customer), who(5, 2, cloud.ClientAdmin)
	code := func(err error) string {
		var e *cloud.Error
		if errors.As(err, &e) {
			return e.Code
		}
		return ""
	}
	made := func(c cloud.Caller, name string, shared bool) int64 {
		out, err := s.Create(t.Context(), c, savedview.Input{Noun: "order", Name: name, Query: "status_ids=3", Shared: shared})
		require.NoError(t, err, name)
		return int64(out.View.ID)
	}
	own, shared, theirs := made(ada, "Mine", false), made(ada, "Ours", true), made(customer, "Customer's", false)
	_, err := s.Create(t.Context(), ada, savedview.Input{Noun: "order", Name: "Mine"})
	require.Equal(t, "SAVED_VIEW_EXISTS", code(err))
	_, err = s.Create(t.Context(), customer, savedview.Input{Noun: "order", Name: "x", Shared: true})
	require.Equal(t, "VALIDATION_FAILED", code(err))
	_, err = s.Create(t.Context(), ada, savedview.Input{Noun: "order", Name: "x", Query: "a=%zz"})
	require.Equal(t, "VALIDATION_FAILED", code(err))
	made(ben, "Mine", false) // another person may use the name
	for _, x := range []struct {
		c    cloud.Caller
		want []string
	}{{ada, []string{"Mine", "Ours"}}, {ben, []string{"Mine", "Ours"}}, {admin, []string{"Ours"}}, {customer, []string{"Customer's"}}, {foreign, nil}} {
		out, err := s.List(t.Context(), x.c, savedview.ListInput{Noun: "order"})
		require.NoError(t, err)
		var names []string
		for _, v := range out.Views {
			names = append(names, v.Name)
		}
		require.Equal(t, x.want, names, "account %d", x.c.Account.ID)
	}
	remove := func(c cloud.Caller, id int64) string {
		_, err := s.Remove(t.Context(), c, collection.ByID[cloud.SavedView]{ID: id})
		return code(err)
	}
	require.Equal(t, "SAVED_VIEW_NOT_FOUND", remove(ben, own))
	require.Equal(t, "SAVED_VIEW_NOT_OWN", remove(ben, shared))
	require.Equal(t, "SAVED_VIEW_NOT_FOUND", remove(foreign, shared))
	require.Equal(t, "SAVED_VIEW_NOT_FOUND", remove(customer, shared))
	require.Equal(t, "SAVED_VIEW_NOT_FOUND", remove(admin, theirs))
	require.Empty(t, remove(admin, shared))
	require.Empty(t, remove(ada, own))
	require.Equal(t, "SAVED_VIEW_NOT_FOUND", remove(ada, own))
}
