package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/ring"
)

// Lists that have more rows than are counted are read in other ways than short ones:
// each page is what a statement without any hint gives.
func TestListsBeyondWhatIsCounted(t *testing.T) {
	ring.SkipUnlessCheck(t, "short lists")
	t.Parallel()
	const n = 14_000
	for name, open := range map[string]func(testing.TB) *DB{
		"SQLite":     func(t testing.TB) *DB { return openTest(t, Config{Dir: t.TempDir()}) },
		"PostgreSQL": openSchema,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			fillOrders(t, db, n)
			for _, x := range orderListCases() {
				var c conditions
				l := orderList{db: db.database, q: x.query, column: orderSorts[x.query.Sort]}
				l.where(&c)
				where := c.where()
				if x.query.Keyword != "" {
					c.args = append(c.args, "%"+x.query.Keyword+"%")
					where += fmt.Sprintf(` AND o.id IN (SELECT s.order_id FROM order_search s WHERE s.value LIKE $%d)`, len(c.args))
				}
				var numbers []string
				var total int64
				err := db.engine.read(t.Context(), func(ctx context.Context, r querier) (err error) {
					if total, err = one(ctx, r, `SELECT COUNT(*) FROM orders o`+where, scanInt, c.args...); err != nil {
						return err
					}
					rows, err := r.query(ctx, `SELECT o.number_key FROM orders o`+where+l.order("o.")+` LIMIT 60`, c.args...)
					if err != nil {
						return err
					}
					defer rows.Close()
					for rows.Next() {
						var s string
						if err := rows.Scan(&s); err != nil {
							return err
						}
						numbers = append(numbers, s)
					}
					return rows.Err()
				})
				require.NoError(t, err, x.name)
				if x.query.Keyword != "" && l.lite() { // by words alone, whatever else is asked for
					require.NoError(t, db.engine.read(t.Context(), func(ctx context.Context, r querier) error {
						listed, found, err := l.keywordRows(ctx, r)
						require.Equal(t, min(int(total), cloud.MaxTotal), listed.Total, x.name)
						for i, o := range found {
							require.Equal(t, numbers[i], o.Number, x.name)
						}
						return err
					}))
				}
				var got, offset []string
				q := x.query
				for range 3 {
					listed, found, err := db.ListOrders(t.Context(), q)
					require.NoError(t, err, x.name)
					require.Equal(t, min(int(total), cloud.MaxTotal), listed.Total, x.name)
					require.Equal(t, total > cloud.MaxTotal, listed.AtLeast, x.name)
					for _, o := range found {
						got = append(got, o.Number)
					}
					if q.After = listed.Next; q.After == nil {
						break
					}
				}
				require.Equal(t, numbers, got, x.name)
				for page := range 3 {
					q := x.query
					q.Offset = page * q.Limit
					_, found, err := db.ListOrders(t.Context(), q)
					require.NoError(t, err, x.name)
					for _, o := range found {
						offset = append(offset, o.Number)
					}
				}
				require.Equal(t, numbers, offset, x.name)
			}
		})
	}
}

// A keyword is looked for in the few orders that the rest of a query finds, whatever that
// rest is: the search's index has all orders of all times. Alone it needs the index.
func TestAKeywordIsLookedForInFewOrders(t *testing.T) {
	t.Parallel()
	db := openTest(t, Config{Dir: t.TempDir()})
	at := time.Now()
	for name, q := range map[string]cloud.OrderQuery{
		"alone":          {},
		"statuses":       {Statuses: []cloud.OrderStatus{cloud.OrderNew}},
		"created since":  {CreatedFrom: at},
		"created until":  {CreatedTo: at},
		"type":           {Type: "D"},
		"scheduled":      {ScheduledFrom: "2026-01-01"},
		"customer":       {CustomerID: 1},
		"status of type": {Statuses: []cloud.OrderStatus{cloud.OrderNew}, Type: "D"},
	} {
		q.BusinessID, q.Keyword = 1, "anna"
		require.NoError(t, db.engine.read(t.Context(), func(ctx context.Context, r querier) error {
			l, err := orderList{db: db.database, q: q, column: orderSorts["id"]}.narrowed(ctx, r, fewCandidates)
			if name == "alone" {
				require.Equal(t, []string{"anna", ""}, []string{l.q.Keyword, l.within})
			} else {
				require.Equal(t, []string{"", "anna"}, []string{l.q.Keyword, l.within}, name)
			}
			return err
		}))
	}
}
