package store

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// plan is how SQLite would run a query.
func plan(t *testing.T, db *DB, sql string, args ...any) string {
	c := <-db.engine.(*lite).readers
	defer func() { db.engine.(*lite).readers <- c }()
	r, err := c.query(t.Context(), "EXPLAIN QUERY PLAN "+sql, args...)
	require.NoError(t, err)
	defer r.Close()
	var lines []string
	for r.Next() {
		var id, parent, unused int64
		var detail string
		require.NoError(t, r.Scan(&id, &parent, &unused, &detail))
		lines = append(lines, detail)
	}
	require.NoError(t, r.Err())
	return strings.Join(lines, "\n")
}

// indexed is a line of a plan, whether or not the index has all that is read.
func indexed(line string) string { return strings.Replace(line, "INDEX", "(COVERING )?INDEX", 1) }

// Staff walk their business's conversations in the order of changes; everybody
// else begins with the orders that are theirs, which are few.
func TestConversationsAreReadByTheirIndexes(t *testing.T) {
	t.Parallel()
	db := openTest(t, Config{Dir: t.TempDir()})
	for name, c := range map[string]struct {
		q     cloud.ConversationQuery
		index string
	}{
		"staff":      {cloud.ConversationQuery{Staff: true}, "SEARCH c USING INDEX conversation_updated"},
		"customer":   {cloud.ConversationQuery{Customer: 6, Allowed: true}, "SEARCH o USING INDEX orders_customer"},
		"driver":     {cloud.ConversationQuery{Staff: true, Driver: 4, Allowed: true}, "SEARCH o USING INDEX orders_driver"},
		"contractor": {cloud.ConversationQuery{Staff: true, Contractor: 3, Allowed: true}, "SEARCH o USING INDEX orders_broker"},
	} {
		for _, filter := range []func(q *cloud.ConversationQuery){func(*cloud.ConversationQuery) {}, func(q *cloud.ConversationQuery) { q.Status, q.Ended = "open", time.Now() }, func(q *cloud.ConversationQuery) { q.Unread = true }} {
			q := c.q
			q.BusinessID, q.Reader = 42, 6
			filter(&q)
			s := db.conversationList(q).rows()
			text := plan(t, db, s.sql, s.args...)
			require.Regexp(t, indexed(c.index), text, name)
			require.NotContains(t, text, "SCAN", name)
			if name == "staff" {
				require.NotContains(t, text, "TEMP B-TREE", name)
				continue
			}
			s = db.unreadSQL(q, 10)
			text = plan(t, db, s.sql, s.args...)
			require.Regexp(t, indexed(c.index), text, name)
		}
	}
}

// The statements name the statuses in which an order has ended; so does the table
// of statuses.
func TestChatsEndWithTheirOrders(t *testing.T) {
	t.Parallel()
	var ended []string
	for id := range cloud.OrderStatus(100) {
		if id.State().Terminal {
			ended = append(ended, strconv.Itoa(int(id)))
		}
	}
	require.Contains(t, chatEnded, "IN ("+strings.Join(ended, ", ")+")")
}
