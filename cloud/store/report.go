package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	slotMS = int64(cloud.ReportSlot / time.Millisecond)

	slotColumns = `business_id, livemode, slot, shard, deposits, taken0, taken1, taken2, taken3, taken4, taken5, taken6, waited`
	addToSlot   = ` ON CONFLICT (business_id, livemode, slot, shard) DO UPDATE SET deposits = report_slot.deposits + excluded.deposits, taken0 = report_slot.taken0 + excluded.taken0, taken1 = report_slot.taken1 + excluded.taken1, taken2 = report_slot.taken2 + excluded.taken2, taken3 = report_slot.taken3 + excluded.taken3, taken4 = report_slot.taken4 + excluded.taken4, taken5 = report_slot.taken5 + excluded.taken5, taken6 = report_slot.taken6 + excluded.taken6, waited = report_slot.waited + excluded.waited`
	noneTaken   = `0, 0, 0, 0, 0, 0, 0, 0`
	// A collection after w milliseconds, and one less of them.
	oneTaken = `CASE WHEN w < 3600000 THEN 1 ELSE 0 END, CASE WHEN w >= 3600000 AND w < 14400000 THEN 1 ELSE 0 END, CASE WHEN w >= 14400000 AND w < 43200000 THEN 1 ELSE 0 END, CASE WHEN w >= 43200000 AND w < 86400000 THEN 1 ELSE 0 END, CASE WHEN w >= 86400000 AND w < 172800000 THEN 1 ELSE 0 END, CASE WHEN w >= 172800000 AND w < 259200000 THEN 1 ELSE 0 END, CASE WHEN w >= 259200000 THEN 1 ELSE 0 END, w`
	oneLess  = `CASE WHEN w < 3600000 THEN -1 ELSE 0 END, CASE WHEN w >= 3600000 AND w < 14400000 THEN -1 ELSE 0 END, CASE WHEN w >= 14400000 AND w < 43200000 THEN -1 ELSE 0 END, CASE WHEN w >= 43200000 AND w < 86400000 THEN -1 ELSE 0 END, CASE WHEN w >= 86400000 AND w < 172800000 THEN -1 ELSE 0 END, CASE WHEN w >= 172800000 AND w < 259200000 THEN -1 ELSE 0 END, CASE WHEN w >= 259200000 THEN -1 ELSE 0 END, -w`

	// A delivery is counted once: by the times that it has now, and no more by those that it
	// had. $1 is the delivery.
	sqlUncountDeposit = `INSERT INTO report_slot (` + slotColumns + `)
SELECT d.business_id, d.livemode, d.deposited_at / 900000, d.id % @shards, -1, ` + noneTaken + ` FROM delivery d
WHERE d.id = $1 AND d.deposited_at IS NOT NULL AND d.deposited_at <> COALESCE(CAST($2 AS @int), -1)` + addToSlot
	sqlCountDeposit = `INSERT INTO report_slot (` + slotColumns + `)
SELECT CAST($3 AS @int), $4, CAST($2 AS @int) / 900000, CAST($1 AS @int) % @shards, 1, ` + noneTaken + `
WHERE NOT EXISTS (SELECT 1 FROM delivery d WHERE d.id = $1 AND d.deposited_at = CAST($2 AS @int))` + addToSlot
	sqlUncountCollection = `INSERT INTO report_slot (` + slotColumns + `)
SELECT business_id, livemode, picked_up_at / 900000, id % @shards, 0, ` + oneLess + ` FROM (SELECT d.*, d.picked_up_at - d.deposited_at AS w FROM delivery d
  WHERE d.id = $1 AND d.picked_up_at IS NOT NULL AND d.deposited_at IS NOT NULL AND (d.deposited_at <> COALESCE(CAST($2 AS @int), -1) OR d.picked_up_at <> COALESCE(CAST($3 AS @int), -1))) AS former WHERE TRUE` + addToSlot
	sqlCountCollection = `INSERT INTO report_slot (` + slotColumns + `)
SELECT CAST($4 AS @int), $5, picked_up_at / 900000, CAST($1 AS @int) % @shards, 0, ` + oneTaken + ` FROM (SELECT CAST($3 AS @int) AS picked_up_at, CAST($3 AS @int) - CAST($2 AS @int) AS w) AS latter
WHERE NOT EXISTS (SELECT 1 FROM delivery d WHERE d.id = $1 AND d.deposited_at = CAST($2 AS @int) AND d.picked_up_at = CAST($3 AS @int))` + addToSlot

	sqlReportSlots = `SELECT slot, CAST(SUM(deposits) AS @int), CAST(SUM(taken0) AS @int), CAST(SUM(taken1) AS @int), CAST(SUM(taken2) AS @int), CAST(SUM(taken3) AS @int), CAST(SUM(taken4) AS @int), CAST(SUM(taken5) AS @int), CAST(SUM(taken6) AS @int), CAST(SUM(waited) AS @int) FROM report_slot
WHERE business_id = $1 AND livemode = $2 AND slot >= $3 AND slot < $4 GROUP BY slot ORDER BY slot`

	// A login of a cabinet that was without a connection ends a gap.
	sqlEndConnectionGap = `INSERT INTO connection_gap (business_id, ended_at, device_id, began_at)
SELECT d.business_id, CAST($2 AS @int), s.device_id, s.last_seen_at FROM device_session s JOIN device d ON d.id = s.device_id
WHERE s.device_id = $1 AND d.protocol <> 'mock' AND NOT s.online AND s.last_seen_at <= CAST($2 AS @int) - 60000 AND (s.connected_at IS NULL OR s.connected_at <> CAST($2 AS @int))
ON CONFLICT DO NOTHING`
	sqlConnectionGaps = `SELECT g.device_id, d.name, g.gaps, g.down, g.longest FROM (SELECT device_id, COUNT(*) AS gaps, CAST(SUM(` + gapInside + `) AS @int) AS down, MAX(` + gapInside + `) AS longest
  FROM connection_gap WHERE business_id = $1 AND ended_at > $2 AND began_at < $3 GROUP BY device_id) AS g JOIN device d ON d.id = g.device_id WHERE d.retired_at IS NULL`
	gapInside   = `CASE WHEN ended_at > CAST($3 AS @int) THEN CAST($3 AS @int) ELSE ended_at END - CASE WHEN began_at < CAST($2 AS @int) THEN CAST($2 AS @int) ELSE began_at END`
	sqlOpenGaps = `SELECT d.id, d.name, x.last_seen_at FROM device d JOIN device_session x ON x.device_id = d.id
WHERE d.business_id = $1 AND d.protocol <> 'mock' AND d.retired_at IS NULL AND NOT d.disabled AND NOT x.online AND x.last_seen_at IS NOT NULL AND x.last_seen_at <= $2 ORDER BY d.id`

	// Sums and gaps of one day are removed at a time, the oldest first.
	sqlOldestSlot = `SELECT slot FROM report_slot WHERE business_id = $1 AND slot < $2 ORDER BY slot LIMIT 1`
	sqlDropSlots  = `DELETE FROM report_slot WHERE business_id = $1 AND slot < $2`
	sqlOldestGap  = `SELECT ended_at FROM connection_gap WHERE business_id = $1 AND ended_at < $2 ORDER BY ended_at LIMIT 1`
	sqlDropGaps   = `DELETE FROM connection_gap WHERE business_id = $1 AND ended_at < $2`

	sqlEndpointHours = `SELECT h.hour, h.attempts, h.failures FROM endpoint e JOIN endpoint_hour h ON h.endpoint_id = e.id
WHERE e.business_id = $1 AND h.hour >= $2 AND h.hour < $3`
	sqlCompartmentStates = `SELECT d.id, d.name, CASE WHEN c.state = 'free' AND c.door_status = 'unknown' THEN '' ELSE c.state END AS seen, COUNT(*) FROM device d JOIN compartment c ON c.device_id = d.id
WHERE d.business_id = $1 AND d.protocol <> 'mock' AND d.retired_at IS NULL AND (c.col <> 0 OR c.pickup_enabled) GROUP BY d.id, seen ORDER BY d.id, seen`
	sqlOrderDays = `SELECT scheduled_date, status_id, COUNT(*) FROM orders
WHERE business_id = $1 AND scheduled_date >= $2 AND scheduled_date <= $3 GROUP BY scheduled_date, status_id ORDER BY scheduled_date, status_id`
	sqlDeliveredSlots = `SELECT scheduled_date, status_at / 900000, COUNT(*) FROM orders
WHERE business_id = $1 AND scheduled_date >= $2 AND scheduled_date <= $3 AND status_id = 41 AND status_at IS NOT NULL GROUP BY scheduled_date, status_at / 900000 ORDER BY scheduled_date, status_at / 900000`
)

// PruneReports removes the sums of reports and the gaps of connections that were over
// before a time, a day of one business in each transaction. What several nodes remove at
// once is removed once.
func (db accounts) PruneReports(ctx context.Context, before time.Time) error {
	const day = int64(24 * time.Hour / time.Millisecond)
	for after := int64(0); ; {
		ids, err := readList(ctx, db.database, sqlNextBusiness, scanInt, after)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			after = id
			for _, x := range []struct {
				oldest, drop string
				before, step int64
			}{{sqlOldestSlot, sqlDropSlots, before.UnixMilli() / slotMS, day / slotMS}, {sqlOldestGap, sqlDropGaps, before.UnixMilli(), day}} {
				for {
					found, err := readList(ctx, db.database, x.oldest, scanInt, id, x.before)
					if err != nil {
						return err
					}
					if len(found) == 0 {
						break
					}
					if err := db.exec(ctx, x.drop, id, min(found[0]+x.step, x.before)); err != nil {
						return err
					}
				}
			}
		}
	}
}

// reportView reads what reports add up.
type reportView struct{ *snapshot }

// countDeliveries keeps the sums of reports true to deliveries that are about to be saved.
// Rows are taken in one order by all, so that transactions wait for each other at most.
func countDeliveries(w *writer, ds []cloud.Delivery) {
	ordered := slices.SortedFunc(slices.Values(ds), func(a, b cloud.Delivery) int {
		return cmp.Or(a.DepositedAt.Compare(b.DepositedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, d := range ordered {
		if d.DepositedAt.IsZero() && d.Corrections == 0 { // it never lay in a cabinet
			continue
		}
		id, in, out := int64(d.ID), ms(d.DepositedAt), ms(d.PickedUpAt)
		w.add(anything, sqlUncountDeposit, id, in)
		w.add(anything, sqlUncountCollection, id, in, out)
		if d.DepositedAt.IsZero() {
			continue
		}
		w.add(anything, sqlCountDeposit, id, in, int64(d.BusinessID), d.Livemode)
		if !d.PickedUpAt.IsZero() {
			w.add(anything, sqlCountCollection, id, in, out, int64(d.BusinessID), d.Livemode)
		}
	}
}

// DeliverySlots implements cloud.ReportView.
func (v reportView) DeliverySlots(r cloud.ReportRange, livemode bool) ([]cloud.DeliverySlot, error) {
	scan := func(x rows, s *cloud.DeliverySlot) error {
		var slot, waited int64
		err := x.Scan(&slot, &s.Deposits, &s.Taken[0], &s.Taken[1], &s.Taken[2], &s.Taken[3], &s.Taken[4], &s.Taken[5], &s.Taken[6], &waited)
		s.At, s.Waited = time.UnixMilli(slot*slotMS).UTC(), time.Duration(waited)*time.Millisecond
		return err
	}
	return list(v.ctx, v.q, sqlReportSlots, scan, int64(r.BusinessID), livemode, r.From.UnixMilli()/slotMS, (r.To.UnixMilli()+slotMS-1)/slotMS)
}

// WebhookHours implements cloud.ReportView.
func (v reportView) WebhookHours(r cloud.ReportRange) ([]cloud.HourSum, error) {
	type hour struct{ at, attempts, failures int64 }
	found, err := list(v.ctx, v.q, sqlEndpointHours, func(x rows, h *hour) error { return x.Scan(&h.at, &h.attempts, &h.failures) },
		int64(r.BusinessID), r.From.Unix()/3600, (r.To.Unix()+3599)/3600)
	sums := map[int64]*cloud.HourSum{}
	for _, h := range found {
		s := sums[h.at]
		if s == nil {
			s = &cloud.HourSum{At: time.Unix(h.at*3600, 0).UTC()}
			sums[h.at] = s
		}
		s.Attempts, s.Failures = s.Attempts+int(h.attempts), s.Failures+int(h.failures)
	}
	out := make([]cloud.HourSum, 0, len(sums))
	for _, s := range sums {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b cloud.HourSum) int { return a.At.Compare(b.At) })
	return out, err
}

// ConnectionGaps implements cloud.ReportView.
func (v reportView) ConnectionGaps(r cloud.ReportRange, now time.Time) ([]cloud.CabinetGaps, error) {
	out, err := list(v.ctx, v.q, sqlConnectionGaps, func(x rows, g *cloud.CabinetGaps) error {
		var down, longest int64
		err := x.Scan(&g.DeviceID, &g.Name, &g.Gaps, &down, &longest)
		g.Down, g.Longest = time.Duration(down)*time.Millisecond, time.Duration(longest)*time.Millisecond
		return err
	}, int64(r.BusinessID), r.From.UnixMilli(), r.To.UnixMilli())
	if err != nil {
		return nil, err
	}
	at := map[cloud.DeviceID]int{}
	for i, g := range out {
		at[g.DeviceID] = i
	}
	type gap struct {
		cloud.CabinetGaps
		from time.Time
	}
	open, err := list(v.ctx, v.q, sqlOpenGaps, func(x rows, g *gap) error { return x.Scan(&g.DeviceID, &g.Name, when(&g.from)) }, int64(r.BusinessID), now.Add(-time.Minute).UnixMilli())
	for _, g := range open {
		from, to := g.from, now
		if from.Before(r.From) {
			from = r.From
		}
		if to.After(r.To) {
			to = r.To
		}
		if !from.Before(to) {
			continue
		}
		i, ok := at[g.DeviceID]
		if !ok {
			i = len(out)
			out = append(out, g.CabinetGaps)
		}
		out[i].Gaps, out[i].Down, out[i].Longest, out[i].Open = out[i].Gaps+1, out[i].Down+to.Sub(from), max(out[i].Longest, to.Sub(from)), true
	}
	return out, err
}

// CompartmentStates implements cloud.ReportView.
func (v reportView) CompartmentStates(b cloud.BusinessID) ([]cloud.CabinetState, error) {
	return list(v.ctx, v.q, sqlCompartmentStates, func(x rows, s *cloud.CabinetState) error { return x.Scan(&s.DeviceID, &s.Name, &s.State, &s.Count) }, int64(b))
}

// OrderDays implements cloud.ReportView.
func (v reportView) OrderDays(b cloud.BusinessID, from, to string) ([]cloud.DayCount, error) {
	return list(v.ctx, v.q, sqlOrderDays, func(x rows, d *cloud.DayCount) error { return x.Scan(&d.Date, &d.StatusID, &d.Count) }, int64(b), from, to)
}

// DeliveredSlots implements cloud.ReportView. The state of a delivered order is as old as
// its delivery.
func (v reportView) DeliveredSlots(b cloud.BusinessID, from, to string) ([]cloud.DeliveredSlot, error) {
	return list(v.ctx, v.q, sqlDeliveredSlots, func(x rows, s *cloud.DeliveredSlot) error {
		var slot int64
		err := x.Scan(&s.Date, &slot, &s.Count)
		s.At = time.UnixMilli(slot * slotMS).UTC()
		return err
	}, int64(b), from, to)
}
