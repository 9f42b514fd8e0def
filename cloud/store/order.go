package store

import (
	"context"
	"errors"
	"slices"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlOrder         = `SELECT body FROM orders WHERE business_id = $1 AND id = $2`
	sqlOrderByNumber = `SELECT body FROM orders WHERE business_id = $1 AND number_key = $2`
	sqlOrderByFormer = `SELECT body FROM orders WHERE business_id = $1 AND id IN (SELECT order_id FROM former_number WHERE number_key = $2)`
	sqlKeepFormer    = `INSERT INTO former_number (number_key, business_id, order_id) VALUES ($1, $2, $3) ON CONFLICT (number_key) DO NOTHING`
	sqlOrderByRef    = `SELECT body FROM orders WHERE business_id = $1 AND customer_id = $2 AND ref = $3 AND ref <> ''`
	sqlOrdersByRef   = `SELECT body FROM orders WHERE business_id = $1 AND ref = $2 AND ref <> '' ORDER BY id`
	sqlOrderShipment = `SELECT ` + shipmentColumns + ` FROM shipment WHERE business_id = $1 AND order_id = $2 AND order_id <> 0`

	sqlSaveOrder = `INSERT INTO orders (
  id, business_id, customer_id, number_key, ref, type, status_id, scheduled_date, priority, warehouse_id,
  route_id, driver_id, broker_id, created_at, updated_at, status_at, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
ON CONFLICT (id) DO UPDATE SET
  number_key = excluded.number_key, customer_id = excluded.customer_id, ref = excluded.ref, type = excluded.type, status_id = excluded.status_id,
  scheduled_date = excluded.scheduled_date, priority = excluded.priority, warehouse_id = excluded.warehouse_id,
  route_id = excluded.route_id, driver_id = excluded.driver_id, broker_id = excluded.broker_id,
  updated_at = excluded.updated_at, status_at = excluded.status_at, body = excluded.body
WHERE orders.business_id = excluded.business_id`
	sqlSaveOrderPackage = `INSERT INTO order_package (id, order_id, business_id, number_key, external_key) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO UPDATE SET number_key = excluded.number_key, external_key = excluded.external_key
WHERE order_package.external_key <> excluded.external_key OR order_package.number_key <> excluded.number_key`

	sqlDropTerms    = `DELETE FROM order_search WHERE rowid >= $1 AND rowid < $2`
	sqlAddTerm      = `INSERT INTO order_search (rowid, business_id, order_id, field, value) VALUES ($1, $2, $3, $4, $5)`
	sqlAddOperation = `INSERT INTO order_operation (order_id, business_id, type, at, body) VALUES ($1, $2, $3, $4, $5)`

	sqlDropReviews  = `DELETE FROM review WHERE business_id = $1 AND shipment_id IN (SELECT id FROM shipment WHERE business_id = $1 AND order_id = $2 AND order_id <> 0)`
	sqlDropTimeline = `DELETE FROM timeline WHERE shipment_id IN (SELECT id FROM shipment WHERE business_id = $1 AND order_id = $2 AND order_id <> 0)`
	sqlDropShipment = `DELETE FROM shipment WHERE business_id = $1 AND order_id = $2 AND order_id <> 0`
	sqlDropOrder    = `DELETE FROM orders WHERE business_id = $1 AND id = $2`

	sqlOperations = `SELECT n, body FROM order_operation WHERE business_id = $1 AND order_id = $2 ORDER BY n`
)

// dropped are the tables that hold nothing but what belongs to one order.
var dropped = []string{
	`DELETE FROM order_package WHERE business_id = $1 AND order_id = $2`,
	`DELETE FROM former_number WHERE business_id = $1 AND order_id = $2`,
	`DELETE FROM interception WHERE business_id = $1 AND order_id = $2`,
	`DELETE FROM order_operation WHERE business_id = $1 AND order_id = $2`,
	`DELETE FROM route_stop WHERE business_id = $1 AND order_id = $2`,
	`DELETE FROM kept_file WHERE business_id = $1 AND order_id = $2 AND order_id <> 0`,
}

// termRows is how many row numbers of order_search belong to one order.
const termRows = 8

func scanOrder(r rows, o *cloud.Order) error { return r.Scan(parsed(o)) }

// locked is a statement of a view; in a decision, what it finds stays as it is.
func (v *snapshot) locked(sql string) string {
	if v.locks {
		return sql + " @lock"
	}
	return sql
}

func (v orderView) Order(b cloud.BusinessID, id cloud.OrderID) (cloud.Order, error) {
	return one(v.ctx, v.q, v.locked(sqlOrder), scanOrder, int64(b), int64(id))
}

func (v orderView) OrderByNumber(b cloud.BusinessID, number string) (cloud.Order, error) {
	o, err := one(v.ctx, v.q, v.locked(sqlOrderByNumber), scanOrder, int64(b), numberKey(number))
	if errors.Is(err, cloud.ErrNotFound) {
		return one(v.ctx, v.q, v.locked(sqlOrderByFormer), scanOrder, int64(b), formerKey(number))
	}
	return o, err
}

// formerKey is what a former number is kept by: that of the order, also for one of
// its packages.
func formerKey(number string) string {
	key := numberKey(number)
	if order, ok := cloud.OrderNumber(key); ok {
		return order
	}
	return key
}

func (v orderView) OrderByRef(b cloud.BusinessID, customer cloud.AccountID, ref string) (cloud.Order, error) {
	return one(v.ctx, v.q, v.locked(sqlOrderByRef), scanOrder, int64(b), int64(customer), ref)
}

func (v orderView) OrdersByRef(b cloud.BusinessID, ref string) ([]cloud.Order, error) {
	return list(v.ctx, v.q, v.locked(sqlOrdersByRef), scanOrder, int64(b), ref)
}

func (v orderView) OrderShipment(b cloud.BusinessID, id cloud.OrderID) (cloud.Shipment, error) {
	return one(v.ctx, v.q, v.locked(sqlOrderShipment), scanShipment, int64(b), int64(id))
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
		for _, n := range o.FormerNumbers {
			w.add(anything, sqlKeepFormer, formerKey(n), int64(o.BusinessID), int64(o.ID))
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

func (w *writer) dropTerms(id cloud.OrderID) {
	w.add(anything, sqlDropTerms, int64(id)*termRows, (int64(id)+1)*termRows)
}

func (w *writer) dropOrder(k cloud.OrderKey) {
	w.add(mustExist, sqlDropOrder, int64(k.BusinessID), int64(k.ID))
	for _, sql := range slices.Concat([]string{sqlDropGuesses, sqlDropReviews, sqlDropDue, sqlDropCheckpoint, sqlDropOrdersKept, sqlDropTimeline, sqlDropShipment, sqlDropConversation}, droppedChat, dropped) {
		w.add(anything, sql, int64(k.BusinessID), int64(k.ID))
	}
	w.dropTerms(k.ID)
}

// ListOrderOperations lists what was done to an order, oldest first. It lists
// that of a deleted order too.
func (db orders) ListOrderOperations(ctx context.Context, b cloud.BusinessID, id cloud.OrderID) ([]cloud.OrderOperation, error) {
	return readList(ctx, db.database, sqlOperations, scanOperation, int64(b), int64(id))
}

func scanOperation(r rows, x *cloud.OrderOperation) error {
	var n int64
	if err := r.Scan(&n, parsed(x)); err != nil {
		return err
	}
	x.ID = n
	return nil
}
