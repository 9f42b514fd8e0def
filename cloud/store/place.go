package store

import "github.com/postern-io/postern/cloud"

const (
	sqlPlace     = `SELECT account_id, business, body FROM driver_place WHERE business = $1 AND account_id = $2`
	sqlSavePlace = `INSERT INTO driver_place (account_id, business, recorded_at, body) VALUES ($1, $2, $3, $4)
ON CONFLICT (account_id) DO UPDATE SET recorded_at = excluded.recorded_at, body = excluded.body
WHERE driver_place.business = excluded.business AND driver_place.recorded_at < excluded.recorded_at`
)

func (v *view) DriverPlace(b cloud.BusinessID, id cloud.AccountID) (cloud.DriverPlace, error) {
	return one(v.ctx, v.q, sqlPlace, func(r rows, p *cloud.DriverPlace) error { return r.Scan(&p.AccountID, &p.BusinessID, parsed(p)) }, int64(b), int64(id))
}

// places keeps where drivers were, unless something newer is kept.
func (w *writer) places(c *cloud.Changes) {
	for _, p := range c.DriverPlaces {
		w.add(anything, sqlSavePlace, int64(p.AccountID), int64(p.BusinessID), ms(p.RecordedAt), text(p))
	}
}
