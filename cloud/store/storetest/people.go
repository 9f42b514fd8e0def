package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// accountPages compares every part of every list with a sorted slice.
func accountPages(t *testing.T, db *store.DB) {
	c := &cloud.Changes{}
	types := []cloud.AccountType{cloud.ClientAdmin, cloud.Broker, cloud.ProviderType}
	for i := range 30 {
		a := cloud.Account{ID: cloud.AccountID(i + 1), BusinessID: cloud.BusinessID(1 + i%2), Type: types[i%3], Name: fmt.Sprintf("n%d", i%4),
			Email: fmt.Sprintf("%02d@x.example", 99-i), Enabled: i%5 != 0, CreatedAt: now}
		if a.Type == cloud.ProviderType {
			a.ProviderID = cloud.ProviderID(i % 4)
		}
		c.Accounts = append(c.Accounts, a)
		c.Providers = append(c.Providers, cloud.Provider{ID: cloud.ProviderID(i + 1), BusinessID: a.BusinessID, Code: fmt.Sprintf("c%d", 99-i), Name: a.Name,
			SourceType: "partner", Scope: cloud.ScopeOwn, Authority: cloud.AuthorityMoves, CreatedAt: now})
	}
	minutes := 0
	b := cloud.Business{ID: 2, Code: "b", Settings: cloud.Settings{DefaultLocale: "fr", Rules: cloud.Rules{PhotoRequired: true}, CorrectionMinutes: &minutes,
		Features: []cloud.Feature{{Family: "order_chat", Enabled: true, Revoked: true}}}}
	c.Businesses = []cloud.Business{b}
	write(t, db, 0, c)
	look(t, db, func(v cloud.View) {
		got, err := v.Business(2)
		require.NoError(t, err)
		require.Equal(t, b, got)
	})
	by := map[string]func(a, b cloud.Account) int{"id": func(a, b cloud.Account) int { return 0 },
		"name": func(a, b cloud.Account) int { return strings.Compare(a.Name, b.Name) }, "email": func(a, b cloud.Account) int { return strings.Compare(a.Email, b.Email) },
		"created_at": func(a, b cloud.Account) int { return a.CreatedAt.Compare(b.CreatedAt) }}
	for sort, less := range by {
		for _, f := range []cloud.AccountFilter{{}, {Types: types[:2]}, {Enabled: true}, {ProviderID: 2}, {Types: types[1:], Enabled: true, ProviderID: 1}} {
			for _, down := range []bool{false, true} {
				f.BusinessID, f.Page = 2, cloud.Page{Sort: sort, Down: down, Limit: 4}
				want := slices.DeleteFunc(slices.Clone(c.Accounts), func(a cloud.Account) bool {
					return a.BusinessID != 2 || len(f.Types) > 0 && !slices.Contains(f.Types, a.Type) || f.Enabled && !a.Enabled || f.ProviderID != 0 && a.ProviderID != f.ProviderID
				})
				slices.SortStableFunc(want, less) // by id where equal
				if down {
					slices.Reverse(want)
				}
				var got []cloud.Account
				for f.Page.Offset = 0; f.Page.Offset <= len(want); f.Page.Offset += 4 {
					look(t, db, func(v cloud.View) {
						list, listed, err := v.Accounts(f)
						require.NoError(t, err)
						require.Equal(t, len(want), listed.Total)
						got = append(got, list...)
						requireWalk(t, f.Page, func(p cloud.Page) (cloud.Listed, []cloud.Account, error) {
							f := f
							f.Page = p
							list, listed, err := v.Accounts(f)
							return listed, list, err
						})
					})
				}
				require.Equal(t, len(want), len(got))
				for i := range want {
					require.Equal(t, want[i], got[i])
				}
			}
		}
	}
	look(t, db, func(v cloud.View) {
		ps, listed, err := v.Providers(1, cloud.Page{Sort: "code", Offset: 1, Limit: 2})
		require.NoError(t, err)
		require.Equal(t, 15, listed.Total)
		for _, sort := range []string{"id", "code", "name", "created_at"} {
			requireWalk(t, cloud.Page{Sort: sort, Limit: 4}, func(p cloud.Page) (cloud.Listed, []cloud.Provider, error) {
				list, listed, err := v.Providers(1, p)
				return listed, list, err
			})
		}
		require.Equal(t, []cloud.Provider{c.Providers[26], c.Providers[24]}, ps)
		_, _, err = v.Providers(1, cloud.Page{Sort: "id; DROP TABLE account", Limit: 1})
		require.ErrorContains(t, err, "cannot be sorted")
		a, err := v.Account(7)
		require.NoError(t, err)
		require.Equal(t, c.Accounts[6], a)
	})
}
