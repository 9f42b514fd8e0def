package store

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
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
