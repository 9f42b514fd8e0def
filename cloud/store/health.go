package store

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	healthColumns = `endpoint_id, succeeded_at, failed_at, failing_since, failures, warned`

	sqlHealth          = `SELECT ` + healthColumns + ` FROM endpoint_health WHERE endpoint_id = $1`
	sqlHealthSucceeded = `INSERT INTO endpoint_health (` + healthColumns + `)
SELECT CAST($1 AS @int), CAST($2 AS @int), CAST($3 AS @int), CAST($4 AS @int), CAST($5 AS @int), 0 ` + ofItsAddress + `
ON CONFLICT (endpoint_id) DO UPDATE SET succeeded_at = excluded.succeeded_at,
  failed_at = COALESCE(excluded.failed_at, endpoint_health.failed_at), failing_since = excluded.failing_since,
  failures = excluded.failures, warned = 0`
	sqlHealthFailed = `INSERT INTO endpoint_health (` + healthColumns + `)
SELECT CAST($1 AS @int), CAST($2 AS @int), CAST($3 AS @int), CAST($4 AS @int), CAST($5 AS @int), 0 ` + ofItsAddress + `
ON CONFLICT (endpoint_id) DO UPDATE SET failed_at = excluded.failed_at,
  failing_since = COALESCE(endpoint_health.failing_since, excluded.failing_since),
  failures = endpoint_health.failures + excluded.failures`
	sqlHealthWarned = `UPDATE endpoint_health SET warned = $2 WHERE endpoint_id = $1 AND warned < $2`
	// Before a receiver is saved: a streak of failures ends with a pause, and of
	// another address nothing is known.
	sqlHealthAnew = `UPDATE endpoint_health SET failing_since = NULL, failures = 0, warned = 0,
  succeeded_at = CASE WHEN EXISTS (SELECT 1 FROM endpoint WHERE id = $1 AND url = $2) THEN succeeded_at END
WHERE endpoint_id = $1 AND EXISTS (SELECT 1 FROM endpoint WHERE id = $1 AND (url <> $2 OR status = 'paused' AND $3 <> 'paused'))`
	sqlAddHour = `INSERT INTO endpoint_hour (endpoint_id, hour, attempts, failures) VALUES ($1, $2, $3, $4)
ON CONFLICT (endpoint_id, hour) DO UPDATE SET attempts = endpoint_hour.attempts + excluded.attempts,
  failures = endpoint_hour.failures + excluded.failures`
	sqlDropHours = `DELETE FROM endpoint_hour WHERE endpoint_id = $1 AND hour < $2`
	sqlSumHours  = `SELECT CAST(COALESCE(SUM(attempts), 0) AS @int), CAST(COALESCE(SUM(failures), 0) AS @int)
FROM endpoint_hour WHERE endpoint_id = $1 AND hour >= $2`
	sqlEndpointWaiting = `SELECT (SELECT COUNT(*) FROM outbox WHERE endpoint_id = $1 AND state IN ('pending', 'delivering', 'retrying'))
  + (SELECT COUNT(*) FROM outbox WHERE endpoint_id = $1 AND state = 'paused')`
	sqlEndpointStatus = `SELECT status, COUNT(*) FROM endpoint WHERE enabled GROUP BY status ORDER BY status`
	sqlOverlaps       = `SELECT 'locker_provider', COUNT(*) FROM endpoint WHERE next_until > $1 AND kind = 'locker_provider'
UNION ALL SELECT 'third_party', COUNT(*) FROM endpoint WHERE next_until > $1 AND kind = 'third_party_delivery'
UNION ALL SELECT 'account', COUNT(*) FROM webhook_setting WHERE next_until > $1`

	// What became of attempts at an address that the receiver has no more says
	// nothing about the one that it has.
	ofItsAddress = `WHERE $6 = '' OR EXISTS (SELECT 1 FROM endpoint WHERE id = $1 AND url = $6)`

	hoursKept = 32 * 24 // reports reach back 31 days
)

func scanHealth(r rows, h *cloud.EndpointHealth) error {
	return r.Scan(&h.EndpointID, when(&h.SucceededAt), when(&h.FailedAt), when(&h.FailingSince), &h.Failures, &h.Warned)
}

// NoteHealth adds what has become of attempts and gives the health of those
// receivers that keep failing.
func (db webhooks) NoteHealth(ctx context.Context, tallies []cloud.EndpointTally) (failing []cloud.EndpointHealth, err error) {
	err = db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		var ops []op
		for _, t := range tallies {
			id := int64(t.EndpointID)
			if t.SucceededAt.IsZero() {
				ops = append(ops, op{sql: sqlHealthFailed, args: []any{id, nil, ms(t.FailedAt), ms(t.FailingSince), int64(t.Streak), t.URL}})
			} else {
				ops = append(ops, op{sql: sqlHealthSucceeded, args: []any{id, ms(t.SucceededAt), ms(t.FailedAt), ms(t.FailingSince), int64(t.Streak), t.URL}})
			}
			ops = append(ops, op{sql: sqlAddHour, args: []any{id, t.Hour, int64(t.Attempts), int64(t.Failures)}},
				op{sql: sqlDropHours, args: []any{id, t.Hour - hoursKept}})
		}
		if err := s.apply(ctx, ops); err != nil {
			return nil, err
		}
		failing = nil
		for _, t := range tallies {
			if t.Streak == 0 {
				continue
			}
			h, err := list(ctx, s, sqlHealth, scanHealth, int64(t.EndpointID))
			if err != nil {
				return nil, err
			}
			failing = append(failing, h...)
		}
		return nil, nil
	})
	return failing, err
}

// FindHealth is the health of a receiver; one that was never tried has none:
// cloud.ErrNotFound.
func (db webhooks) FindHealth(ctx context.Context, id cloud.EndpointID) (cloud.EndpointHealth, error) {
	return readOne(ctx, db.database, sqlHealth, scanHealth, int64(id))
}

// WarnEndpoint notes that its owner was warned of so many percent of the way to
// a pause, with an audit line. first is false when that was done before.
func (db webhooks) WarnEndpoint(ctx context.Context, id cloud.EndpointID, percent int, a cloud.Audit) (first bool, err error) {
	return db.flagOnce(ctx, op{sql: sqlHealthWarned, args: []any{int64(id), int64(percent)}}, a)
}

// PauseEndpoint pauses a receiver, with an audit line. first is false when it
// was paused before.
func (db webhooks) PauseEndpoint(ctx context.Context, id cloud.EndpointID, now time.Time, a cloud.Audit) (first bool, err error) {
	return db.flagOnce(ctx, op{sql: sqlSetEndpointState, args: []any{int64(id), "paused", ms(now), cloud.PausedByRule}}, a)
}

func (db webhooks) flagOnce(ctx context.Context, o op, a cloud.Audit) (first bool, err error) {
	err = db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		var n int64
		o.count = &n
		if err := s.apply(ctx, []op{o}); err != nil || n == 0 {
			first = false
			return nil, err
		}
		first = true
		w := db.writer(0)
		w.audits(nil, &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{a}}}, a.At)
		return nil, s.last(ctx, w.ops)
	})
	return first, err
}

// ReportEndpoints gives the health of receivers, in the order of ids.
func (db webhooks) ReportEndpoints(ctx context.Context, ids []cloud.EndpointID, now time.Time) (out []cloud.EndpointReport, err error) {
	hour := now.Unix() / 3600
	err = db.engine.read(ctx, func(ctx context.Context, q querier) error {
		out = nil
		for _, id := range ids {
			r := cloud.EndpointReport{EndpointHealth: cloud.EndpointHealth{EndpointID: id}}
			found, err := list(ctx, q, sqlHealth, scanHealth, int64(id))
			if err != nil {
				return err
			}
			if len(found) > 0 {
				r.EndpointHealth = found[0]
			}
			for from, to := range map[int64][2]*int{hour - 23: {&r.Attempts24h, &r.Failures24h}, hour - 1: {&r.AttemptsHour, &r.FailuresHour}} {
				sum := func(x rows, _ *struct{}) error { return x.Scan(to[0], to[1]) }
				if _, err := one(ctx, q, sqlSumHours, sum, int64(id), from); err != nil {
					return err
				}
			}
			n, err := one(ctx, q, sqlEndpointWaiting, scanInt, int64(id))
			if err != nil {
				return err
			}
			r.Waiting = int(n)
			out = append(out, r)
		}
		return nil
	})
	return out, err
}

// CountEndpoints counts receivers by status, and by channel secrets that
// overlap at now.
func (db webhooks) CountEndpoints(ctx context.Context, now time.Time) (status, overlap []cloud.EndpointCount, err error) {
	scan := func(r rows, c *cloud.EndpointCount) error { return r.Scan(&c.Label, &c.Count) }
	err = db.engine.read(ctx, func(ctx context.Context, q querier) error {
		if status, err = list(ctx, q, sqlEndpointStatus, scan); err == nil {
			overlap, err = list(ctx, q, sqlOverlaps, scan, now.UnixMilli())
		}
		return err
	})
	return status, overlap, err
}
