package store

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
)

const sqlOldDiagnoses = `SELECT id, business_id, path FROM diagnosis WHERE created_at < $1 ORDER BY created_at LIMIT $2`

// ListOldDiagnoses lists diagnoses of all businesses that were asked for before a time, by
// their ids, owners and files alone, at most limit.
func (db devices) ListOldDiagnoses(ctx context.Context, before time.Time, limit int) ([]cloud.Diagnosis, error) {
	return readList(ctx, db.database, sqlOldDiagnoses, func(r rows, x *cloud.Diagnosis) error { return r.Scan(&x.ID, &x.BusinessID, &x.Path) }, ms(before), limit)
}

const sqlOldPhotos = `SELECT id, business_id, path FROM device_photo WHERE created_at < $1 ORDER BY created_at LIMIT $2`

// ListOldPhotos lists photos of devices of all businesses that came before a time, by their ids,
// owners and files alone, at most limit.
func (db devices) ListOldPhotos(ctx context.Context, before time.Time, limit int) ([]cloud.DevicePhoto, error) {
	return readList(ctx, db.database, sqlOldPhotos, func(r rows, x *cloud.DevicePhoto) error { return r.Scan(&x.ID, &x.BusinessID, &x.Path) }, ms(before), limit)
}
