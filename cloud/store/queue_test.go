package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What metrics ask on each scrape reads the first rows of an index and sorts nothing,
// however many rows there are.
func TestQueuesAreCountedByTheirIndexes(t *testing.T) {
	t.Parallel()
	db := openTest(t, Config{Dir: t.TempDir()})
	c := <-db.engine.(*lite).readers
	defer func() { db.engine.(*lite).readers <- c }()
	indexes := map[string]string{"commands": "command_queued", "mails": "mail_waiting", "sms": "mail_waiting", "pushes": "push_due", "resets": "reset_request_waiting", "jobs": "order_job_open", "replays": "replay_job_open", "business_jobs": "business_job_open"}
	require.Len(t, queues, len(indexes))
	for _, q := range queues {
		r, err := c.conn.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+liteTokens.Replace(q.sql), MostWaiting)
		require.NoError(t, err)
		var plan []string
		for r.Next() {
			var id, parent, unused int
			var detail string
			require.NoError(t, r.Scan(&id, &parent, &unused, &detail))
			plan = append(plan, detail)
		}
		require.NoError(t, r.Err())
		require.NoError(t, r.Close())
		text := strings.Join(plan, "; ")
		require.Contains(t, text, "INDEX "+indexes[q.name], q.name)
		require.NotContains(t, text, "TEMP B-TREE", q.name)
		require.Contains(t, q.sql, "LIMIT $1", q.name)
	}
}

func TestQueuesAreCountedUpToABound(t *testing.T) {
	t.Parallel()
	observed := make(chan int, 1000)
	db := openTest(t, Config{Dir: t.TempDir(), Observe: func(took time.Duration, changes int) {
		require.Positive(t, took)
		observed <- changes
	}})
	before, err := db.CountQueues(t.Context())
	require.NoError(t, err)
	for _, q := range before {
		require.Equal(t, Queue{Name: q.Name}, q)
	}
	insert := fmt.Sprintf(`WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %d)
INSERT INTO command (id, device_id, opening_id, kind, versions, issued_at, state, reason, doors) SELECT 'c' || i, 1, '', 'open', '', 1000000 - i, 'queued', '', '' FROM c`, MostWaiting+500)
	require.NoError(t, db.exec(t.Context(), insert))
	require.NotEmpty(t, observed)
	after, err := db.CountQueues(t.Context())
	require.NoError(t, err)
	require.Equal(t, Queue{Name: "commands", Count: MostWaiting, Oldest: time.UnixMilli(1000000 - MostWaiting - 500).UTC()}, after[0])
	s := db.Connections()
	require.Positive(t, s.Size)
	require.Positive(t, s.WALSize)
	require.Positive(t, s.Open)
}
