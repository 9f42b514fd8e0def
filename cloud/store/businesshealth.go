package store

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlSaveHealth = `INSERT INTO business_health (business_id, cabinets, online, endpoints, failing, backlog, counted_at)
SELECT $1, (SELECT COUNT(*) FROM device WHERE business_id = $1 AND protocol <> 'mock'),
  (SELECT COUNT(*) FROM device d JOIN device_session s ON s.device_id = d.id WHERE d.business_id = $1 AND s.online AND NOT d.disabled AND d.protocol <> 'mock'),
  (SELECT COUNT(*) FROM endpoint WHERE business_id = $1 AND enabled),
  (SELECT COUNT(*) FROM endpoint WHERE business_id = $1 AND enabled AND status <> 'healthy'),
  (SELECT COUNT(*) FROM (SELECT 1 FROM endpoint e JOIN outbox o ON o.endpoint_id = e.id AND o.state IN ('pending', 'delivering', 'retrying') WHERE e.business_id = $1 LIMIT 10001) AS waiting), $2
WHERE EXISTS (SELECT 1 FROM business WHERE id = $1)
ON CONFLICT (business_id) DO UPDATE SET cabinets = excluded.cabinets, online = excluded.online, endpoints = excluded.endpoints, failing = excluded.failing, backlog = excluded.backlog, counted_at = excluded.counted_at`
	sqlNextBusiness       = `SELECT id FROM business WHERE id > $1 ORDER BY id LIMIT 100`
	sqlHealthOf           = `SELECT counted_at FROM business_health WHERE business_id = $1`
	businessHealthColumns = `business_id, cabinets, online, endpoints, failing, backlog, counted_at`
)

// CountBusinesses counts how every business is, one in each transaction, those that
// were not counted within the last half minute.
func (db accounts) CountBusinesses(ctx context.Context, now time.Time) error {
	for after := int64(0); ; {
		ids, err := readList(ctx, db.database, sqlNextBusiness, scanInt, after)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			after = id
			at, err := readList(ctx, db.database, sqlHealthOf, scanInt, id)
			if err != nil {
				return err
			}
			if len(at) > 0 && at[0] > now.Add(-30*time.Second).UnixMilli() {
				continue
			}
			if err := db.exec(ctx, sqlSaveHealth, id, now.UnixMilli()); err != nil {
				return err
			}
		}
	}
}

// BusinessHealths lists a part of how businesses were when they were counted, by id.
func (v platformView) BusinessHealths(p cloud.Page) ([]cloud.BusinessHealth, cloud.Listed, error) {
	var c conditions
	c.and("business_id > $%d", int64(0))
	return part(v.snapshot, keyList{from: "business_health", columns: businessHealthColumns, where: c, page: p}, sortable{"id": {id: "business_id"}}, func(r rows, h *cloud.BusinessHealth) error {
		return r.Scan(&h.BusinessID, &h.Cabinets, &h.Online, &h.Endpoints, &h.Failing, &h.Backlog, when(&h.CountedAt))
	})
}
