package store

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// However the audit trail is filtered, a page is read by an index in its order: no
// scan of the table and nothing sorted. AUDIT_LINES is how many lines there are when
// it is timed; 0: it is not.
func TestAuditListsUseIndexes(t *testing.T) {
	t.Parallel()
	db := openTest(t, Config{Dir: t.TempDir()})
	lines, _ := strconv.Atoi(os.Getenv("AUDIT_LINES"))
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for done := 0; done < max(lines, 2000); done += 2000 {
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			ch := &cloud.Changes{}
			for i := done; i < done+2000; i++ {
				ch.Audits = append(ch.Audits, cloud.Audit{BusinessID: 1, At: begin.Add(time.Duration(i) * time.Second), Actor: fmt.Sprint("account:", i%40), Action: fmt.Sprint("act_", i%90), Target: fmt.Sprint("order:", i/20), Detail: "{}"})
			}
			return ch, nil
		}))
	}
	mid := begin.Add(time.Duration(lines/2) * time.Second)
	for name, f := range map[string]cloud.AuditFilter{"all": {}, "actor": {Actor: "account:3"}, "action": {Action: "act_3"}, "target": {Target: "order:30"}, "of nobody": {Actor: "account:999"},
		"time": {From: mid, To: mid.Add(time.Hour)}, "actor and time": {Actor: "account:3", From: mid, To: mid.Add(time.Hour)}, "target and all": {Target: "order:30", Actor: "account:3", Action: "act_3"}} {
		index := "INDEX audit_at "
		for column, value := range map[string]string{"action": f.Action, "actor": f.Actor} {
			if value != "" {
				index = "INDEX audit_" + column + " "
			}
		}
		if f.Target != "" {
			index = "INDEX audit_target "
		}
		f.BusinessID, f.Page = 1, cloud.Page{Sort: "at", Down: true, Limit: 50}
		l := auditList(f)
		c := <-db.engine.(*lite).readers
		for _, s := range []statement{l.rows(), l.count()} {
			var plan []string
			rows, err := c.conn.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+liteTokens.Replace(s.sql), s.args...)
			require.NoError(t, err)
			for rows.Next() {
				var id, parent, unused int
				var detail string
				require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
				plan = append(plan, detail)
			}
			require.NoError(t, rows.Err())
			text := strings.Join(plan, "; ")
			t.Log(name, text)
			require.NotContains(t, text, "TEMP B-TREE", name)
			require.NotContains(t, text, "SCAN audit", name)
			require.Contains(t, text, index, name)
		}
		db.engine.(*lite).readers <- c
		if lines > 0 {
			began := time.Now()
			require.NoError(t, db.Look(t.Context(), func(v cloud.View) error { _, _, err := v.Audits(f); return err }))
			t.Log(name, time.Since(began))
		}
	}
}
