package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/postern-io/postern/cloud"
)

// Orders that need attention. The lists of statuses are those of the indexes
// orders_stopped and orders_open, without which these would read everything.
const (
	concernStopped = `status_id IN (3, 22, 42, 43, 45, 48) AND status_at >= $%d AND status_at < $%d AND (CAST($%d AS @int) >> CAST(status_id AS INTEGER)) & 1 = 1`
	concernOpen    = `status_id IN (1, 2, 4, 10, 11, 12, 13, 20, 21, 23, 30, 31, 32, 33, 40, 44) AND scheduled_date >= $%d AND scheduled_date <= $%d`
	// What could be given to a driver.
	concernUnassigned = ` AND driver_id = 0 AND status_id IN (1, 4, 10, 23, 30, 31, 44)`
)

// Kinds of concerns, in the order of their list.
const (
	concernsStopped = iota
	concernsDue
	concernsUnassigned
)

// concern is one kind of orders that need attention.
type concern struct {
	kind int
	keyList
}

func concernsOf(q cloud.ConcernQuery) (out []concern) {
	add := func(kind int, by sortColumn, condition string, values ...any) {
		var c conditions
		c.and("business_id = $%d", int64(q.BusinessID))
		if q.CustomerID != 0 {
			c.and("customer_id = $%d", int64(q.CustomerID))
		}
		if q.BrokerID != 0 {
			c.and("broker_id = $%d", int64(q.BrokerID))
		}
		c.and(condition, values...)
		out = append(out, concern{kind, keyList{columns: "body", from: "orders", where: c, by: by, page: cloud.Page{Sort: by.name, Down: true}, exact: q.Offset >= cloud.MaxTotal}})
	}
	if len(q.Stopped) > 0 {
		var statuses int64
		for _, s := range q.Stopped {
			statuses |= 1 << s
		}
		add(concernsStopped, sortColumn{name: "status_at"}, concernStopped, ms(q.From), ms(q.To), statuses)
	}
	day := sortColumn{name: "scheduled_date", text: true}
	if q.DueTo != "" {
		add(concernsDue, day, concernOpen, q.DueFrom, q.DueTo)
	}
	if q.UnassignedOn != "" {
		add(concernsUnassigned, day, concernOpen+concernUnassigned, q.UnassignedOn, q.UnassignedOn)
	}
	return out
}

// concernOf is the kind of the row that a page begins behind. An order without a
// driver is one of those whose day is over after midnight.
func concernOf(q cloud.ConcernQuery) (kind int, err error) {
	if q.After == nil {
		return concernsStopped, nil
	}
	if !isOf(q.After.ID, false) {
		return 0, cloud.ErrNoMark
	}
	switch key := q.After.Key.(type) {
	case int64:
		return concernsStopped, nil
	case string:
		if q.UnassignedOn != "" && key >= q.UnassignedOn {
			return concernsUnassigned, nil
		}
		return concernsDue, nil
	}
	return 0, cloud.ErrNoMark
}

// ListConcerns reads a page of the orders that need attention and counts all that
// the query asks for, up to cloud.MaxTotal. Error: cloud.ErrNoMark.
func (db orders) ListConcerns(ctx context.Context, q cloud.ConcernQuery) (out cloud.Listed, found []cloud.Order, err error) {
	first, err := concernOf(q)
	if err != nil {
		return out, nil, err
	}
	err = db.engine.read(ctx, func(ctx context.Context, r querier) error {
		var total int64
		var next *cloud.Mark
		found = nil
		for _, c := range concernsOf(q) {
			count := c.count()
			n, err := one(ctx, r, count.sql, scanInt, count.args...)
			if err != nil {
				return err
			}
			skip := max(q.Offset-int(total), 0)
			total += n
			if c.kind < first || skip >= int(n) {
				continue
			}
			if c.kind == first {
				c.page.After = q.After
			}
			if c.page.Limit, c.page.Offset = q.Limit-len(found), skip; c.page.Limit == 0 {
				next = cmp.Or(next, concernMark(found[len(found)-1]))
				continue
			}
			s := c.rows()
			var part []cloud.Order
			if part, next, err = readKeyed(ctx, r, s, c.page, scanOrder); err != nil {
				return err
			}
			found = append(found, part...)
		}
		out = cloud.Counted(total)
		out.Next = next
		return nil
	})
	return out, found, err
}

// concernMark is the mark of an order in the list of its kind.
func concernMark(o cloud.Order) *cloud.Mark {
	if slices.Contains(cloud.StoppedStatuses, o.Status) {
		return &cloud.Mark{Key: ms(o.Since()), ID: int64(o.ID)}
	}
	return &cloud.Mark{Key: o.ScheduledDate, ID: int64(o.ID)}
}
