package store

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
)

// BenchmarkSearch measures the search of the console over a million orders (20,000 with
// -short): what an employee types of an order, a delivery and a person.
func BenchmarkSearch(b *testing.B) {
	n := 1_000_000
	if testing.Short() {
		n = fewOrders
	}
	staff := cloud.Caller{Account: cloud.Account{ID: 1, BusinessID: 1, Type: cloud.ClientAdmin}}
	for name, open := range map[string]func(testing.TB) *DB{
		"SQLite":     func(b testing.TB) *DB { return openTest(b, Config{Dir: b.TempDir()}) },
		"PostgreSQL": openSchema,
	} {
		b.Run(name, func(b *testing.B) {
			db := open(b)
			fillOrders(b, db, n)
			orders := order.New(order.Config{Store: db})
			for _, c := range []struct {
				name, text string
				none       bool
			}{{name: "number", text: "SR500012345"}, {name: "reference", text: "R-1234"}, {name: "reference-part", text: "r-123"}, {name: "name", text: "chloe lindqvist"}, {name: "name-part", text: "lindq"},
				{name: "telephone", text: "+1 416 555-5123"}, {name: "everything", text: "sr500"}, {name: "nothing", text: "nowhere at all", none: true}} {
				b.Run(c.name, func(b *testing.B) {
					for b.Loop() {
						found, err := order.FindByText(b.Context(), orders, staff, c.text, 6)
						require.NoError(b, err)
						require.Equal(b, c.none, len(found) == 0)
						require.NoError(b, findOthers(b.Context(), db, c.text))
					}
				})
			}
		})
	}
}

// findOthers searches what a search of the console searches besides orders.
func findOthers(ctx context.Context, db *DB, text string) error {
	return db.Look(ctx, func(v cloud.View) error {
		if _, err := v.SearchDeliveries(1, text, 6); err != nil {
			return err
		}
		for _, t := range []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Customer} {
			if _, err := v.SearchAccounts(1, t, text, 6); err != nil {
				return err
			}
		}
		return nil
	})
}
