package notice

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
)

// view knows one business and its people.
type view struct {
	cloud.View
	people map[cloud.AccountID]cloud.Account
}

func (v view) Account(id cloud.AccountID) (cloud.Account, error) {
	a, ok := v.people[id]
	if !ok {
		return a, cloud.ErrNotFound
	}
	return a, nil
}

func (v view) Business(id cloud.BusinessID) (cloud.Business, error) {
	return cloud.Business{ID: id}, nil
}

var now = time.Date(2026, 11, 20, 18, 12, 0, 0, time.UTC)

func TestEveryTypeHasATitleInEveryLanguage(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, lang := range locale.All() {
		v := view{people: map[cloud.AccountID]cloud.Account{8: {ID: 8, BusinessID: 1, Type: cloud.DriverAccount, Locale: lang.Code}}}
		for _, kind := range Types {
			list, err := OfOrder(v, now, kind, 8, cloud.Order{ID: 7, BusinessID: 1, Number: "SR1"})
			require.NoError(t, err)
			require.Len(t, list, 1)
			title := list[0].Title
			require.NotContains(t, title, "push.", "%s in %s", kind, lang.Code)
			require.Empty(t, seen[lang.Code+title], "two types are called alike")
			seen[lang.Code+title] = kind
		}
	}
}

func TestAPushNamesNoRecipient(t *testing.T) {
	t.Parallel()
	v := view{people: map[cloud.AccountID]cloud.Account{8: {ID: 8, BusinessID: 1, Type: cloud.DriverAccount}, 9: {ID: 9, BusinessID: 2, Type: cloud.DriverAccount}, 3: {ID: 3, BusinessID: 1, Type: cloud.Customer}}}
	to := &cloud.Address{Name: "Jane Smith", Phone: "+14165550123", Line1: "1 Secret Lane", City: "Toronto", BuzzCode: "4411"}
	from := &cloud.Address{Name: "Bob", City: strings.Repeat("長", 200)}
	o := cloud.Order{ID: 7, BusinessID: 1, RouteID: 5, Type: cloud.PointToPoint, Number: "SR204518837", Sender: from, Recipient: to, Instruction: "code 550618"}
	list, err := OfOrder(v, now, OrderAssigned, 8, o)
	require.NoError(t, err)
	require.Len(t, []rune(list[0].Body), MaxBody, "where it is to be fetched, cut")
	o.Collected = true
	list, err = OfOrder(v, now, OrderAssigned, 8, o)
	require.NoError(t, err)
	require.Equal(t, "SR204518837 · Toronto", list[0].Body)
	require.Equal(t, cloud.PushData{OrderID: 7, RouteID: 5, TrackingNumber: "SR204518837"}, list[0].Data)
	require.True(t, strings.HasPrefix(list[0].ID, "psh_"))
	for _, driver := range []cloud.AccountID{9, 3, 77} {
		list, err := OfRoute(v, now, RouteAssigned, driver, cloud.Route{ID: 5, BusinessID: 1})
		require.NoError(t, err)
		require.Empty(t, list, "no driver of the business")
	}
}
