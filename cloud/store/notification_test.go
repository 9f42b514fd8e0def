package store

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Lists of notifications find their rows by an index, however many others a business and its
// providers have: none is sorted and none is searched through.
func TestListsOfNotificationsAreIndexed(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), Config{Dir: t.TempDir(), Instance: "test", Box: testBox(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for index, f := range map[string]cloud.NotificationFilter{
		"mail_live (business_id=?":                       {},
		"mail_live_provider (provider_id=?":              {ProviderID: 8},
		"mail_live_state (business_id=? AND state=?":     {Status: cloud.NotificationFailed},
		"mail_live_provider_state (provider_id=? AND st": {ProviderID: 8, Status: cloud.NotificationFailed},
		"mail_sandbox (business_id=?":                    {Sandbox: true},
		"mail_sandbox_provider (provider_id=?":           {Sandbox: true, ProviderID: 8},
		"mail_delivery (delivery_id=?":                   {DeliveryID: 77},
	} {
		f.BusinessID = 1
		f.Page = cloud.Page{Limit: 50, Sort: "id", Down: true}
		l := notificationList(f)
		l.by = sortColumn{id: "n"}
		for i, st := range []statement{l.rows(), l.count()} {
			plan := ""
			require.NoError(t, db.engine.read(t.Context(), func(ctx context.Context, q querier) error {
				lines, err := list(ctx, q, "EXPLAIN QUERY PLAN "+st.sql, func(r rows, line *string) error {
					var id, parent, unused int
					return r.Scan(&id, &parent, &unused, line)
				}, st.args...)
				plan = strings.Join(lines, "\n")
				return err
			}))
			if i == 0 {
				require.Contains(t, plan, index)
			}
			column, _, _ := strings.Cut(index[strings.Index(index, "("):], "=")
			require.Regexp(t, `SEARCH mail USING (COVERING )?INDEX mail_[a-z_]+ \`+column+"=", plan)
			require.NotContains(t, strings.ToUpper(plan), "TEMP B-TREE")
		}
	}
}
