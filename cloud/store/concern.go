package store

import (
	"context"

	"github.com/postern-io/postern/cloud"
)

// Orders that need somebody. The lists of statuses are those of the indexes
// orders_stopped and orders_open, without which these would read everything.
const (
	concernStopped = `FROM orders WHERE business_id = $1 AND status_id IN (3, 22, 42, 43, 45, 48)
  AND (CAST($2 AS @int) = 0 OR customer_id = $2) AND (CAST($3 AS @int) = 0 OR broker_id = $3)
  AND status_at >= $4 AND status_at < $5 AND (CAST($6 AS @int) >> CAST(status_id AS INTEGER)) & 1 = 1`
	concernStoppedOrder = ` ORDER BY status_at DESC, id DESC LIMIT $7 OFFSET $8`

	concernOpen = `FROM orders WHERE business_id = $1 AND status_id IN (1, 2, 4, 10, 11, 12, 13, 20, 21, 23, 30, 31, 32, 33, 40, 44)
  AND (CAST($2 AS @int) = 0 OR customer_id = $2) AND (CAST($3 AS @int) = 0 OR broker_id = $3)
  AND scheduled_date >= $4 AND scheduled_date <= $5`
	concernOpenOrder = ` ORDER BY scheduled_date DESC, id DESC LIMIT $6 OFFSET $7`
	// What somebody could be given to drive.
	concernUnassigned = ` AND driver_id = 0 AND status_id IN (1, 4, 10, 23, 30, 31, 44)`
)

// concern is one kind of orders that need somebody.
type concern struct {
	where, order string
	args         []any
}

func concernsOf(q cloud.ConcernQuery) (out []concern) {
	of := []any{int64(q.BusinessID), int64(q.CustomerID), int64(q.BrokerID)}
	with := func(more ...any) []any { return append(of[:3:3], more...) }
	if len(q.Stopped) > 0 {
		var statuses int64
		for _, s := range q.Stopped {
			statuses |= 1 << s
		}
		out = append(out, concern{concernStopped, concernStoppedOrder, with(ms(q.From), ms(q.To), statuses)})
	}
	if q.DueTo != "" {
		out = append(out, concern{concernOpen, concernOpenOrder, with(q.DueFrom, q.DueTo)})
	}
	if q.UnassignedOn != "" {
		out = append(out, concern{concernOpen + concernUnassigned, concernOpenOrder, with(q.UnassignedOn, q.UnassignedOn)})
	}
	return out
}

// ListConcerns reads a page of the orders that need somebody and counts all that
// the query asks for.
func (db *DB) ListConcerns(ctx context.Context, q cloud.ConcernQuery) (total int, found []cloud.Order, err error) {
	err = db.engine.read(ctx, func(ctx context.Context, r querier) error {
		total, found = 0, nil
		for _, c := range concernsOf(q) {
			n, err := one(ctx, r, `SELECT COUNT(*) `+c.where, scanInt, c.args...)
			if err != nil {
				return err
			}
			skip := max(q.Offset-total, 0)
			total += int(n)
			if rest := q.Limit - len(found); rest > 0 && skip < int(n) {
				page, err := list(ctx, r, `SELECT body `+c.where+c.order, scanOrder, append(c.args, rest, skip)...)
				if err != nil {
					return err
				}
				found = append(found, page...)
			}
		}
		return nil
	})
	return total, found, err
}
