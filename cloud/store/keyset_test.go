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

// asked keeps the statements that a view asks.
type asked struct {
	querier
	list []statement
}

func (a *asked) query(ctx context.Context, sql string, args ...any) (rows, error) {
	a.list = append(a.list, statement{sql, args})
	return a.querier.query(ctx, sql, args...)
}

// Pages of lists, the first one and those behind a mark, come out of an index in
// their order: none is sorted, and none is read from the beginning of a table.
func TestPagesOfListsAreReadByIndexes(t *testing.T) {
	t.Parallel()
	db := openTest(t, Config{Dir: t.TempDir()})
	byName := []string{"id", "name", "email", "created_at"}
	for _, x := range []struct {
		name   string
		sorts  []string
		idText bool
		read   func(v *view, p cloud.Page) error
	}{
		{"customers", byName, false, func(v *view, p cloud.Page) error {
			_, _, err := v.Accounts(cloud.AccountFilter{BusinessID: 42, Types: []cloud.AccountType{cloud.Customer}, Page: p})
			return err
		}},
		{"drivers", byName, false, func(v *view, p cloud.Page) error {
			_, _, err := v.Drivers(cloud.DriverFilter{BusinessID: 42, Page: p})
			return err
		}},
		{"routes", []string{"id", "date", "name"}, false, func(v *view, p cloud.Page) error {
			_, _, err := v.Routes(cloud.RouteFilter{BusinessID: 42, Page: p})
			return err
		}},
		{"routes of a driver", []string{"id"}, false, func(v *view, p cloud.Page) error {
			_, _, err := v.Routes(cloud.RouteFilter{BusinessID: 42, DriverID: 4, Page: p})
			return err
		}},
		{"approvals", []string{"requested_at"}, true, func(v *view, p cloud.Page) error {
			_, _, err := v.Approvals(cloud.ApprovalFilter{BusinessID: 42, Page: p})
			return err
		}},
		{"pending approvals", []string{"requested_at"}, true, func(v *view, p cloud.Page) error {
			_, _, err := v.Approvals(cloud.ApprovalFilter{BusinessID: 42, Status: cloud.ApprovalPending, Now: time.Now(), Page: p})
			return err
		}},
		{"messages", []string{"id"}, false, func(v *view, p cloud.Page) error {
			_, _, err := v.ChatMessages(cloud.ChatPage{BusinessID: 42, OrderID: 7, Page: p})
			return err
		}},
	} {
		for _, sort := range x.sorts {
			m := &cloud.Mark{ID: int64(9)}
			if x.idText {
				m.ID = "9"
			}
			switch sort {
			case "id":
			case "created_at", "requested_at":
				m.Key = int64(9)
			default:
				m.Key = "9"
			}
			for _, p := range []cloud.Page{{Sort: sort, Limit: 20}, {Sort: sort, Limit: 20, After: m}, {Sort: sort, Down: true, Limit: 20, After: m}} {
				a := &asked{}
				require.NoError(t, db.engine.read(t.Context(), func(ctx context.Context, q querier) error {
					a.querier = q
					return x.read(newView(snapshot{ctx: ctx, q: a}), p)
				}))
				s := a.list[len(a.list)-1]
				text := plan(t, db, s.sql, s.args...)
				require.NotContains(t, text, "TEMP B-TREE", "%s by %s: %s", x.name, sort, s.sql)
				if p.After != nil {
					require.Regexp(t, `[<>](\(\?,\?\)|\?)\)`, text, "%s by %s: %s", x.name, sort, s.sql)
				}
				require.NotContains(t, text, "SCAN", "%s by %s: %s", x.name, sort, s.sql)
			}
		}
	}
	for want, l := range map[string]keyList{
		"o USING INDEX outbox_log (provider_id=? AND id<?)":                                                             providerLog(cloud.OutboxFilter{ProviderID: 17, BusinessID: 42, Event: "x"}),
		"o USING INDEX outbox_reference (reference_id=? AND provider_id=? AND id<?)":                                    providerLog(cloud.OutboxFilter{ProviderID: 17, BusinessID: 42, ReferenceID: "7"}),
		"broker_assignment USING INDEX broker_assignment_broker (business_id=? AND broker_id=? AND id<?)":               assignmentList(cloud.AssignmentQuery{BusinessID: 42, BrokerID: 3, Status: cloud.AssignmentActive}),
		"broker_assignment USING INDEX broker_assignment_business (business_id=? AND id<?)":                             assignmentList(cloud.AssignmentQuery{BusinessID: 42}),
		"third_party_assignment USING INDEX third_party_assignment_provider (business_id=? AND provider_id=? AND id<?)": thirdPartyList(cloud.ThirdPartyQuery{BusinessID: 42, ProviderID: 17}),
		"third_party_assignment USING INDEX third_party_assignment_order (business_id=? AND order_id=? AND id<?)":       thirdPartyList(cloud.ThirdPartyQuery{BusinessID: 42, OrderID: 7}),
	} {
		l.page.Limit, l.page.After = 20, &cloud.Mark{ID: int64(9)}
		s := l.rows()
		require.Contains(t, plan(t, db, s.sql, s.args...), "SEARCH "+want)
	}
}

// Totals end where lists are counted to; pages do not. Those of assignments are exact.
func TestTotalsOfLongLists(t *testing.T) {
	ring.SkipUnlessCheck(t, "short lists")
	t.Parallel()
	const n, stopped = 10_100, 10_050
	for name, open := range map[string]func(testing.TB) *DB{
		"SQLite":     func(t testing.TB) *DB { return openTest(t, Config{Dir: t.TempDir()}) },
		"PostgreSQL": openSchema,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			fillOrders(t, db, n)
			require.NoError(t, db.engine.write(t.Context(), 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
				return nil, s.apply(ctx, []op{
					{sql: `UPDATE orders SET status_id = 3 WHERE id <= $1`, args: []any{stopped}},
					{sql: `UPDATE orders SET status_id = 1, scheduled_date = '2026-11-02' WHERE id > $1`, args: []any{stopped}},
					{sql: `INSERT INTO broker_assignment (id, business_id, order_id, broker_id, status, body) SELECT id, 1, id, 3, 'revoked', '{}' FROM orders`},
					{sql: `INSERT INTO third_party_assignment (id, business_id, order_id, provider_id, number, status, body) SELECT id, 1, id, 17, CAST(id AS TEXT), 'cancelled', '{}' FROM orders`},
				})
			}))
			end := cloud.Page{Offset: n - 10, Limit: 20}
			listed, assigned, err := db.ListAssignments(t.Context(), cloud.AssignmentQuery{BusinessID: 1, Page: end})
			require.NoError(t, err)
			require.Len(t, assigned, 10)
			require.Equal(t, cloud.Listed{Total: n}, listed)
			listed, carried, err := db.ListThirdParties(t.Context(), cloud.ThirdPartyQuery{BusinessID: 1, Page: end})
			require.NoError(t, err)
			require.Len(t, carried, 10)
			require.Equal(t, cloud.Listed{Total: cloud.MaxTotal, AtLeast: true}, listed)

			q := cloud.ConcernQuery{BusinessID: 1, Stopped: cloud.StoppedStatuses, From: time.UnixMilli(1), To: time.UnixMilli(1 << 50), DueFrom: "2026-11-02", DueTo: "2026-11-02",
				Page: cloud.Page{Limit: 20}}
			for offset, want := range map[int][2]int{0: {stopped, stopped - 19}, stopped - 10: {10, n - 9}, n - 20: {n - 30, n - 49}} {
				q.Offset = offset
				listed, found, err := db.ListConcerns(t.Context(), q)
				require.NoError(t, err)
				require.Len(t, found, 20)
				require.Equal(t, [2]string{filledNumber(want[0]), filledNumber(want[1])}, [2]string{found[0].Number, found[19].Number}, "%d", offset)
				require.Equal(t, cloud.MaxTotal, listed.Total)
				require.True(t, listed.AtLeast)
			}
		})
	}
}

// filledNumber is that of an order of fillOrders.
func filledNumber(id int) string { return fmt.Sprintf("SR%09d", 500000000+id) }
