package store

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	placeColumns = `account_id, business, told_at, due_at, body`
	sqlPlace     = `SELECT ` + placeColumns + ` FROM driver_place WHERE business = $1 AND account_id = $2`
	sqlSavePlace = `INSERT INTO driver_place (account_id, business, recorded_at, told_at, due_at, body) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (account_id) DO UPDATE SET recorded_at = excluded.recorded_at, told_at = excluded.told_at, due_at = excluded.due_at, body = excluded.body
WHERE driver_place.business = excluded.business AND driver_place.recorded_at <= excluded.recorded_at`
	sqlDuePlaces = `SELECT ` + placeColumns + ` FROM driver_place WHERE due_at IS NOT NULL AND due_at <= $1 ORDER BY due_at LIMIT $2`
)

func scanPlace(r rows, p *cloud.DriverPlace) error {
	return r.Scan(&p.AccountID, &p.BusinessID, when(&p.SentAt), when(&p.DueAt), parsed(p))
}

func (v routeView) DriverPlace(b cloud.BusinessID, id cloud.AccountID) (cloud.DriverPlace, error) {
	return one(v.ctx, v.q, sqlPlace, scanPlace, int64(b), int64(id))
}

// DuePlaces lists places that are to be sent at now.
func (db orders) DuePlaces(ctx context.Context, now time.Time, limit int) ([]cloud.DriverPlace, error) {
	return readList(ctx, db.database, sqlDuePlaces, scanPlace, ms(now), limit)
}

// places keeps where drivers were, unless something newer is kept.
func (w *writer) places(c *cloud.Changes) {
	for _, p := range c.DriverPlaces {
		w.add(anything, sqlSavePlace, int64(p.AccountID), int64(p.BusinessID), ms(p.RecordedAt), ms(p.SentAt), ms(p.DueAt), text(p))
	}
}
