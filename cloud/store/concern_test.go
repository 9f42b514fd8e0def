package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// With a million orders nearly all of which are done, the few that are not are
// found by an index of their own.
func TestConcernsAreReadByTheirIndexes(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), Config{Dir: t.TempDir(), Node: "test", Box: testBox(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	q := cloud.ConcernQuery{BusinessID: 1, Stopped: cloud.StoppedStatuses, From: time.Now(), To: time.Now(), DueFrom: "2026-11-01", DueTo: "2026-11-02", UnassignedOn: "2026-11-03"}
	list := concernsOf(q)
	require.Len(t, list, 3)
	for i, c := range list {
		var plan []string
		require.NoError(t, db.engine.read(t.Context(), func(ctx context.Context, r querier) error {
			rows, err := r.query(ctx, `EXPLAIN QUERY PLAN SELECT body `+c.where+c.order, append(c.args, 20, 0)...)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var id, parent, unused int64
				var detail string
				require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
				plan = append(plan, detail)
			}
			return rows.Err()
		}))
		text := strings.Join(plan, "; ")
		require.Contains(t, text, "SEARCH orders USING INDEX "+[]string{"orders_stopped", "orders_open", "orders_open"}[i], text)
		require.NotContains(t, text, "TEMP B-TREE", "the index has the order already")
	}
}
