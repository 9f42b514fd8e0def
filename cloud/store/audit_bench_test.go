package store

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// manyAudits is how many lines of one business the audit list is measured with, and
// fewAudits with -short.
const (
	manyAudits = 10_000_000
	fewAudits  = 200_000
)

// BenchmarkAuditList measures a page of the audit trail, with its count, by what people
// ask for. It reports processor time of this process (cpu-ms).
func BenchmarkAuditList(b *testing.B) {
	n := manyAudits
	if testing.Short() {
		n = fewAudits
	}
	db := openTest(b, Config{Dir: b.TempDir()})
	start := time.Now()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, sql := range []string{`WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < $1 - 1) INSERT INTO audit (business_id, at, actor, action, target, detail)
SELECT 1, $2 + i * 1000, 'account:' || (i % 40), 'act_' || (i % 90), 'order:' || (i / 20), '{"operation":"orders.edit","outcome":"done"}' FROM s`, "ANALYZE"} {
		var args []any
		if sql != "ANALYZE" {
			args = []any{n, begin.UnixMilli()}
		}
		require.NoError(b, db.engine.write(b.Context(), 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
			return nil, s.apply(ctx, []op{{sql: sql, args: args}})
		}))
	}
	b.Logf("%d lines in %s", n, time.Since(start).Round(time.Second))
	mid := begin.Add(time.Duration(n/2) * time.Second)
	for name, f := range map[string]cloud.AuditFilter{"all": {}, "actor": {Actor: "account:3"}, "action": {Action: "act_3"}, "target": {Target: "order:30"}, "nothing": {Actor: "account:999"},
		"day": {From: mid, To: mid.Add(24 * time.Hour)}, "actor and day": {Actor: "account:3", From: mid, To: mid.Add(24 * time.Hour)}} {
		f.BusinessID, f.Page = 1, cloud.Page{Sort: "at", Down: true, Limit: 50}
		b.Run(name, func(b *testing.B) {
			before := processorTime()
			for b.Loop() {
				require.NoError(b, db.Look(b.Context(), func(v cloud.View) error {
					_, _, err := v.Audits(f)
					return err
				}))
			}
			b.ReportMetric(float64((processorTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}
