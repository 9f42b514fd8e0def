package store

import (
	"context"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlInterception     = `SELECT body FROM interception WHERE business_id = $1 AND id = $2`
	sqlInterceptions    = `SELECT body FROM interception WHERE business_id = $1 AND order_id = $2 ORDER BY id`
	sqlSaveInterception = `INSERT INTO interception (id, business_id, order_id, status, body) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, body = excluded.body WHERE interception.business_id = excluded.business_id`
)

func scanInterception(r rows, i *cloud.Interception) error { return r.Scan(parsed(i)) }

func (v orderView) Interception(b cloud.BusinessID, id cloud.InterceptionID) (cloud.Interception, error) {
	return one(v.ctx, v.q, sqlInterception, scanInterception, int64(b), int64(id))
}

// ListInterceptions lists an order's interceptions, oldest first.
func (db orders) ListInterceptions(ctx context.Context, b cloud.BusinessID, id cloud.OrderID) ([]cloud.Interception, error) {
	return readList(ctx, db.database, sqlInterceptions, scanInterception, int64(b), int64(id))
}

func (w *writer) interceptions(c *cloud.Changes) {
	for _, i := range c.Interceptions {
		w.add(mustExist, sqlSaveInterception, int64(i.ID), int64(i.BusinessID), int64(i.OrderID), i.Status, text(i))
	}
}
