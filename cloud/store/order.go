package store

import (
	"context"
	"fmt"
	"math"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlOrder         = `SELECT body FROM orders WHERE business_id = $1 AND id = $2`
	sqlOrderByNumber = `SELECT body FROM orders WHERE business_id = $1 AND number_key = $2`
	sqlOrderByRef    = `SELECT body FROM orders WHERE business_id = $1 AND customer_id = $2 AND ref = $3 AND ref <> ''`
	sqlOrdersByRef   = `SELECT body FROM orders WHERE business_id = $1 AND ref = $2 AND ref <> '' ORDER BY id`
	sqlOrderShipment = `SELECT ` + shipmentColumns + ` FROM shipment WHERE business_id = $1 AND order_id = $2 AND order_id <> 0`

	sqlSaveOrder = `INSERT INTO orders (
  id, business_id, customer_id, number_key, ref, type, status_id, scheduled_date, priority, warehouse_id,
  route_id, driver_id, broker_id, created_at, updated_at, status_at, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
ON CONFLICT (id) DO UPDATE SET
  customer_id = excluded.customer_id, ref = excluded.ref, type = excluded.type, status_id = excluded.status_id,
  scheduled_date = excluded.scheduled_date, priority = excluded.priority, warehouse_id = excluded.warehouse_id,
  route_id = excluded.route_id, driver_id = excluded.driver_id, broker_id = excluded.broker_id,
  updated_at = excluded.updated_at, status_at = excluded.status_at, body = excluded.body
WHERE orders.business_id = excluded.business_id`
	sqlSaveOrderPackage = `INSERT INTO order_package (id, order_id, business_id, number_key, external_key) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO UPDATE SET external_key = excluded.external_key WHERE order_package.external_key <> excluded.external_key`

	sqlDropTerms    = `DELETE FROM order_search WHERE rowid >= $1 AND rowid < $2`
	sqlAddTerm      = `INSERT INTO order_search (rowid, business_id, order_id, field, value) VALUES ($1, $2, $3, $4, $5)`
	sqlAddOperation = `INSERT INTO order_operation (order_id, business_id, type, at, body) VALUES ($1, $2, $3, $4, $5)`

	sqlInterception     = `SELECT body FROM interception WHERE business_id = $1 AND id = $2`
	sqlInterceptions    = `SELECT body FROM interception WHERE business_id = $1 AND order_id = $2 ORDER BY id`
	sqlSaveInterception = `INSERT INTO interception (id, business_id, order_id, status, body) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, body = excluded.body WHERE interception.business_id = excluded.business_id`

	sqlDropTimeline = `DELETE FROM timeline WHERE shipment_id IN (SELECT id FROM shipment WHERE business_id = $1 AND order_id = $2 AND order_id <> 0)`
	sqlDropShipment = `DELETE FROM shipment WHERE business_id = $1 AND order_id = $2 AND order_id <> 0`
	sqlDropOrder    = `DELETE FROM orders WHERE business_id = $1 AND id = $2`

	sqlOperations = `SELECT n, body FROM order_operation WHERE business_id = $1 AND order_id = $2 ORDER BY n`
)

// Parts of the query for a page of orders; which ones and the order depend on
// what is asked for.
const (
	// Statuses are bits of one number.
	ordersWhere = `FROM orders WHERE business_id = $1
  AND (CAST($2 AS @int) = 0 OR (CAST($2 AS @int) >> CAST(status_id AS INTEGER)) & 1 = 1)
  AND ($3 = '' OR type = $3)
  AND ($4 = '' OR scheduled_date >= $4) AND ($5 = '' OR (scheduled_date <= $5 AND scheduled_date <> ''))
  AND created_at >= $6 AND created_at < $7
  AND (CAST($8 AS @int) = 0 OR driver_id = $8) AND (CAST($9 AS @int) = 0 OR route_id = $9)
  AND (CAST($10 AS @int) = 0 OR warehouse_id = $10)`
	ordersOfCustomer = ` AND customer_id = $11 AND customer_id <> 0`
	ordersOfBroker   = ` AND broker_id = $12 AND broker_id <> 0`
	ordersLike       = ` AND id IN (SELECT order_id FROM order_search WHERE business_id = $1 AND @contains $13)`
)

// dropped are the tables that hold nothing but what belongs to one order.
var dropped = []string{
	`DELETE FROM order_package WHERE business_id = $1 AND order_id = $2`,
	`DELETE FROM interception WHERE business_id = $1 AND order_id = $2`,
	`DELETE FROM order_operation WHERE business_id = $1 AND order_id = $2`,
	`DELETE FROM route_stop WHERE business_id = $1 AND order_id = $2`,
	`DELETE FROM kept_file WHERE business_id = $1 AND order_id = $2 AND order_id <> 0`,
}

// orderSorts are the columns that a list may be in the order of.
var orderSorts = map[string]string{"id": "id", "created_at": "created_at", "updated_at": "updated_at",
	"scheduled_date": "scheduled_date", "priority": "priority", "order_status_id": "status_id"}

// termRows is how many row numbers of order_search belong to one order.
const termRows = 8

func scanOrder(r rows, o *cloud.Order) error { return r.Scan(parsed(o)) }

// locked is a statement of a view; in a decision, what it finds stays as it is.
func (v *view) locked(sql string) string {
	if v.locks {
		return sql + " @lock"
	}
	return sql
}

func (v *view) Order(b cloud.BusinessID, id cloud.OrderID) (cloud.Order, error) {
	return one(v.ctx, v.q, v.locked(sqlOrder), scanOrder, int64(b), int64(id))
}

func (v *view) OrderByNumber(b cloud.BusinessID, number string) (cloud.Order, error) {
	return one(v.ctx, v.q, v.locked(sqlOrderByNumber), scanOrder, int64(b), numberKey(number))
}

func (v *view) OrderByRef(b cloud.BusinessID, customer cloud.AccountID, ref string) (cloud.Order, error) {
	return one(v.ctx, v.q, v.locked(sqlOrderByRef), scanOrder, int64(b), int64(customer), ref)
}

func (v *view) OrdersByRef(b cloud.BusinessID, ref string) ([]cloud.Order, error) {
	return list(v.ctx, v.q, v.locked(sqlOrdersByRef), scanOrder, int64(b), ref)
}

func (v *view) OrderShipment(b cloud.BusinessID, id cloud.OrderID) (cloud.Shipment, error) {
	return one(v.ctx, v.q, v.locked(sqlOrderShipment), scanShipment, int64(b), int64(id))
}

func scanInterception(r rows, i *cloud.Interception) error { return r.Scan(parsed(i)) }

func (v *view) Interception(b cloud.BusinessID, id cloud.InterceptionID) (cloud.Interception, error) {
	return one(v.ctx, v.q, sqlInterception, scanInterception, int64(b), int64(id))
}

// ListInterceptions lists an order's interceptions, oldest first.
func (db *DB) ListInterceptions(ctx context.Context, b cloud.BusinessID, id cloud.OrderID) ([]cloud.Interception, error) {
	return readList(ctx, db, sqlInterceptions, scanInterception, int64(b), int64(id))
}

func (w *writer) orders(c *cloud.Changes) {
	for _, k := range c.DroppedOrders {
		w.dropOrder(k)
	}
	for _, o := range c.Orders {
		w.add(mustExist, sqlSaveOrder, int64(o.ID), int64(o.BusinessID), int64(o.CustomerID), numberKey(o.Number), o.Ref, string(o.Type), int64(o.Status),
			o.ScheduledDate, o.Priority, o.WarehouseID, o.RouteID, int64(o.DriverID), int64(o.BrokerID), ms(o.CreatedAt), ms(o.UpdatedAt), ms(o.Since()), text(o))
		for _, p := range o.Packages {
			w.add(anything, sqlSaveOrderPackage, int64(p.ID), int64(o.ID), int64(o.BusinessID), numberKey(p.Number), numberKey(p.ExternalNumber))
		}
		w.stops(o)
	}
	for _, t := range c.OrderTerms {
		w.dropTerms(t.OrderID)
		for field, value := range t.Terms {
			if value != "" {
				w.add(anything, sqlAddTerm, int64(t.OrderID)*termRows+int64(field), int64(t.BusinessID), int64(t.OrderID), field, value)
			}
		}
	}
	for _, x := range c.OrderOperations {
		w.add(anything, sqlAddOperation, int64(x.OrderID), int64(x.BusinessID), x.Type, ms(x.At), text(x))
	}
}

func (w *writer) interceptions(c *cloud.Changes) {
	for _, i := range c.Interceptions {
		w.add(mustExist, sqlSaveInterception, int64(i.ID), int64(i.BusinessID), int64(i.OrderID), i.Status, text(i))
	}
}

func (w *writer) dropTerms(id cloud.OrderID) {
	w.add(anything, sqlDropTerms, int64(id)*termRows, (int64(id)+1)*termRows)
}

func (w *writer) dropOrder(k cloud.OrderKey) {
	w.add(mustExist, sqlDropOrder, int64(k.BusinessID), int64(k.ID))
	for _, sql := range append([]string{sqlDropTimeline, sqlDropShipment}, dropped...) {
		w.add(anything, sql, int64(k.BusinessID), int64(k.ID))
	}
	w.dropTerms(k.ID)
}

// ListOrders reads a page of orders and counts all that the query asks for.
func (db *DB) ListOrders(ctx context.Context, q cloud.OrderQuery) (total int, found []cloud.Order, err error) {
	column, ok := orderSorts[q.Sort]
	if !ok {
		return 0, nil, fmt.Errorf("orders are not sorted by %q", q.Sort)
	}
	where := ordersWhere
	if q.CustomerID != 0 {
		where += ordersOfCustomer
	}
	if q.BrokerID != 0 {
		where += ordersOfBroker
	}
	if q.Keyword != "" {
		where += ordersLike
	}
	direction := ""
	if q.Descending {
		direction = " DESC"
	}
	err = db.engine.read(ctx, func(ctx context.Context, r querier) error {
		args := append(orderArgs(q), db.contains(q.Keyword))
		n, err := one(ctx, r, `SELECT COUNT(*) `+where+unused, scanInt, args...)
		if err != nil {
			return err
		}
		total = int(n)
		found, err = list(ctx, r, `SELECT body `+where+unused+` ORDER BY `+column+direction+`, id`+direction+` LIMIT $14 OFFSET $15`, scanOrder,
			append(args, q.Limit, q.Offset)...)
		return err
	})
	return total, found, err
}

// unused names the arguments that a query does not ask for: an engine refuses
// arguments that are not named.
const unused = ` AND (CAST($11 AS @int) IS NOT NULL AND CAST($12 AS @int) IS NOT NULL AND CAST($13 AS TEXT) IS NOT NULL)`

func orderArgs(q cloud.OrderQuery) []any {
	var statuses int64
	for _, s := range q.Statuses {
		if s > 0 && s < 63 {
			statuses |= 1 << s
		}
	}
	if len(q.Statuses) > 0 && statuses == 0 {
		statuses = 1 << 62 // asked for what no order is
	}
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	if !q.CreatedFrom.IsZero() {
		from = q.CreatedFrom.UnixMilli()
	}
	if !q.CreatedTo.IsZero() {
		to = q.CreatedTo.UnixMilli()
	}
	return []any{int64(q.BusinessID), statuses, string(q.Type), q.ScheduledFrom, q.ScheduledTo, from, to, int64(q.DriverID), q.RouteID, q.WarehouseID,
		int64(q.CustomerID), int64(q.BrokerID)}
}

// ListOrderOperations lists what was done to an order, oldest first. It lists
// that of a deleted order too.
func (db *DB) ListOrderOperations(ctx context.Context, b cloud.BusinessID, id cloud.OrderID) ([]cloud.OrderOperation, error) {
	return readList(ctx, db, sqlOperations, func(r rows, x *cloud.OrderOperation) error {
		var n int64
		if err := r.Scan(&n, parsed(x)); err != nil {
			return err
		}
		x.ID = n
		return nil
	}, int64(b), int64(id))
}
