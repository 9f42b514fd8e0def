package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlStaffRota     = `SELECT business_id, version, next_at FROM staff_rota WHERE business_id = $1`
	sqlSaveStaffRota = `INSERT INTO staff_rota (business_id, version, next_at) VALUES ($1, 1, $2)
ON CONFLICT (business_id) DO UPDATE SET version = staff_rota.version + 1, next_at = excluded.next_at`
	sqlStaffList     = `SELECT device_id, version, number FROM staff_list WHERE device_id = $1`
	sqlSaveStaffList = `INSERT INTO staff_list (device_id, version, number) VALUES ($1, $2, $3)
ON CONFLICT (device_id) DO UPDATE SET version = excluded.version, number = excluded.number`
	sqlStaffEntries = `SELECT device_id, delivery_id, entry, created_at, dropped_at, staff_code_id FROM code_entry
WHERE device_id = $1 AND dropped_at IS NULL AND staff_code_id > 0`
	sqlDropStaffEntries = `DELETE FROM code_entry WHERE device_id = $1 AND staff_code_id > 0 AND dropped_at < $2`
	sqlAnyStaffRota     = `SELECT business_id FROM staff_rota WHERE business_id > 0 ORDER BY business_id LIMIT 1`
	sqlDueStaffRotas    = `SELECT business_id FROM staff_rota WHERE next_at <= $1 ORDER BY next_at LIMIT $2`
	// Businesses of which a member with codes may not have them any more, each once for a code.
	sqlLostStaffCodes = `SELECT s.business_id FROM staff_code s JOIN account a ON a.id = s.account_id
WHERE s.dropped_at IS NULL AND s.ends_at > $1 AND NOT (a.enabled AND a.business_id = s.business_id AND (a.type = 'client_admin'
  OR a.type = 'client_employee' AND (a.permissions LIKE '%"lockers:write"%' OR a.permissions LIKE '%"*"%'))) LIMIT $2`
	staffDevices = ` FROM staff_rota r JOIN device d ON d.business_id = r.business_id
  LEFT JOIN staff_list l ON l.device_id = d.id
WHERE d.enrolled_at IS NOT NULL AND NOT d.disabled AND d.retired_at IS NULL AND d.protocol <> 'mock' AND d.type <> 'scan_post'`
	sqlDueStaffLists = `SELECT d.id` + staffDevices + ` AND COALESCE(l.version, 0) < r.version AND d.id > $1 ORDER BY d.id LIMIT $2`
	// Cabinets of a business, and those of them that have not confirmed all staff codes.
	sqlStaffReach = `SELECT COUNT(*), COALESCE(SUM(CASE WHEN COALESCE(l.version, 0) < r.version OR COALESCE(
  (SELECT s.codes_held FROM device_seen s WHERE s.device_id = d.id), 0) < l.number THEN 1 ELSE 0 END), 0)` + staffDevices + ` AND r.business_id = $1`
)

// staffEntriesKept is how long entries of staff codes stay on record that have ended: as
// long as the history of doors.
const staffEntriesKept = 90 * 24 * time.Hour

// StaffRota finds the rota of a business. Error: cloud.ErrNotFound.
func (v lockerView) StaffRota(id cloud.BusinessID) (cloud.StaffRota, error) {
	return one(v.ctx, v.q, sqlStaffRota, func(r rows, x *cloud.StaffRota) error {
		return r.Scan(&x.BusinessID, &x.Version, when(&x.NextAt))
	}, int64(id))
}

// StaffList finds how far a cabinet's list follows; the zero one is that of a cabinet
// without staff codes.
func (v lockerView) StaffList(id cloud.DeviceID) (cloud.StaffList, error) {
	found, err := list(v.ctx, v.q, sqlStaffList, func(r rows, x *cloud.StaffList) error {
		return r.Scan(&x.DeviceID, &x.Version, &x.Number)
	}, int64(id))
	if err != nil || len(found) == 0 {
		return cloud.StaffList{DeviceID: id}, err
	}
	return found[0], nil
}

// StaffEntries are the live entries of a device's list that are of staff codes, by number.
func (v lockerView) StaffEntries(id cloud.DeviceID) ([]cloud.CodeRow, error) {
	out, err := list(v.ctx, v.q, sqlStaffEntries, scanCode, int64(id))
	slices.SortFunc(out, func(a, b cloud.CodeRow) int { return cmp.Compare(a.Entry.Number, b.Entry.Number) })
	return out, err
}

// StaffReach counts the cabinets of a business that take staff codes, and those of them
// that have not confirmed a list with all of them.
func (v lockerView) StaffReach(id cloud.BusinessID) (cabinets, waiting int, err error) {
	type counts struct{ all, waiting int }
	c, err := one(v.ctx, v.q, sqlStaffReach, func(r rows, x *counts) error { return r.Scan(&x.all, &x.waiting) }, int64(id))
	return c.all, c.waiting, err
}

// HasStaffRotas reports whether any business ever had a staff code.
func (db lockers) HasStaffRotas(ctx context.Context) (bool, error) {
	found, err := readList(ctx, db.database, sqlAnyStaffRota, func(r rows, id *cloud.BusinessID) error { return r.Scan(id) })
	return len(found) > 0, err
}

// ListDueStaffRotas lists businesses whose staff codes are to be looked at now, each once:
// at most limit whose next day is to be drawn, and those of which a member with codes may
// not have them any more, as far as limit codes show.
func (db lockers) ListDueStaffRotas(ctx context.Context, now time.Time, limit int) ([]cloud.BusinessID, error) {
	scan := func(r rows, id *cloud.BusinessID) error { return r.Scan(id) }
	due, err := readList(ctx, db.database, sqlDueStaffRotas, scan, now.UnixMilli(), limit)
	if err != nil {
		return nil, err
	}
	lost, err := readList(ctx, db.database, sqlLostStaffCodes, scan, now.UnixMilli(), limit)
	out := append(due, lost...)
	slices.Sort(out)
	return slices.Compact(out), err
}

// ListDueStaffLists lists cabinets whose code lists lack changes of staff codes, by id,
// behind after, at most limit.
func (db lockers) ListDueStaffLists(ctx context.Context, after cloud.DeviceID, limit int) ([]cloud.DeviceID, error) {
	return readList(ctx, db.database, sqlDueStaffLists, func(r rows, id *cloud.DeviceID) error { return r.Scan(id) }, int64(after), limit)
}

func saveStaffCodes(w *writer, c *cloud.Changes) {
	for _, r := range c.StaffRotas {
		w.add(anything, sqlSaveStaffRota, int64(r.BusinessID), ms(r.NextAt))
	}
	for _, l := range c.StaffLists {
		w.add(anything, sqlSaveStaffList, int64(l.DeviceID), l.Version, int64(l.Number))
		w.add(anything, sqlDropStaffEntries, int64(l.DeviceID), time.Now().Add(-staffEntriesKept).UnixMilli())
	}
}
