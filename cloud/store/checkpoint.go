package store

import (
	"errors"
	"math"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/timeline"
)

const (
	// A checkpoint of other rules, or of other packages than the order has, is none.
	sqlCheckpoint = `SELECT upto, events FROM timeline_checkpoint WHERE shipment_id = $1 AND version = $2
AND packages = (SELECT count(*) FROM order_package p WHERE p.order_id IN (SELECT s.order_id FROM shipment s WHERE s.id = $1 AND s.order_id <> 0))
AND last_package = (SELECT COALESCE(max(p.id), 0) FROM order_package p WHERE p.order_id IN (SELECT s.order_id FROM shipment s WHERE s.id = $1 AND s.order_id <> 0))`
	sqlPackageIDs = `SELECT p.id FROM order_package p WHERE p.order_id IN (SELECT s.order_id FROM shipment s WHERE s.id = $1 AND s.order_id <> 0)`
	sqlKept       = `SELECT t.shipment_id, t.business_id, t.package_id, t.event, t.withdrawn_at IS NOT NULL, t.reported
FROM timeline_kept k JOIN timeline t ON t.shipment_id = k.shipment_id AND t.event_id = k.event_id WHERE k.shipment_id = $1`
	sqlTimelineAfter = `SELECT shipment_id, business_id, package_id, event, withdrawn_at IS NOT NULL, reported FROM timeline
WHERE shipment_id = $1 AND occurred_at > $2 ORDER BY occurred_at DESC, n DESC`
	sqlTimelineEvent = `SELECT shipment_id, business_id, package_id, event, withdrawn_at IS NOT NULL, reported FROM timeline WHERE shipment_id = $1 AND event_id = $2`

	sqlKeptKeys = `SELECT event_id FROM timeline_kept WHERE shipment_id = $1`
	sqlForget   = `DELETE FROM timeline_checkpoint WHERE shipment_id = $1`

	sqlSaveCheckpoint = `INSERT INTO timeline_checkpoint (shipment_id, version, upto, events, packages, last_package) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (shipment_id) DO UPDATE SET version = excluded.version, upto = excluded.upto, events = excluded.events, packages = excluded.packages, last_package = excluded.last_package`
	sqlDropKept = `DELETE FROM timeline_kept WHERE shipment_id = $1`
	sqlAddKept  = `INSERT INTO timeline_kept (shipment_id, event_id) VALUES ($1, $2)`
	sqlOutdate  = `DELETE FROM timeline_checkpoint WHERE shipment_id = $1 AND upto >= $2`
	sqlUnsettle = `DELETE FROM timeline_checkpoint WHERE shipment_id = $1 AND upto >= (SELECT t.occurred_at FROM timeline t WHERE t.shipment_id = $1 AND t.event_id = $2)`

	sqlDropCheckpoint = `DELETE FROM timeline_checkpoint WHERE shipment_id IN (SELECT id FROM shipment WHERE business_id = $1 AND order_id = $2 AND order_id <> 0)`
	sqlDropOrdersKept = `DELETE FROM timeline_kept WHERE shipment_id IN (SELECT id FROM shipment WHERE business_id = $1 AND order_id = $2 AND order_id <> 0)`

	beforeAll           = math.MinInt64
	afterAll            = math.MaxInt64
	timelineWindow      = 300 // events behind a checkpoint, before there is a next one
	timelineWindowLeave = 150 // that it leaves behind
)

// window is how many events stand behind a checkpoint before there is a next one, which leaves some.
type window struct{ most, leave int }

var usualWindow = window{timelineWindow, timelineWindowLeave}

// checkpoint is one with the packages that it was made for.
type checkpoint struct {
	timeline.Checkpoint
	packages []cloud.PackageID
}

// checkpoints are those that one run of a decision makes.
type checkpoints map[cloud.ShipmentID]checkpoint

// RecentTimeline is Timeline without what a checkpoint stands for. A decision that finds
// many events behind a checkpoint makes a later one.
func (v trackingView) RecentTimeline(id cloud.ShipmentID) (out cloud.RecentTimeline, err error) {
	if v.checkpoints == nil { // it is to be shown
		out.Events, err = v.Timeline(id)
		out.Count = len(out.Events)
		return out, err
	}
	upto, before := int64(beforeAll), 0
	found, err := v.checkpoint(id)
	switch {
	case err == nil:
		upto, before, out.Upto = found.Upto.UnixMilli(), found.Events, found.Upto
	case !errors.Is(err, cloud.ErrNotFound):
		return out, err
	}
	if out.Events, err = list(v.ctx, v.q, sqlTimelineAfter, scanEvent, int64(id), upto); err != nil {
		return out, err
	}
	behind := len(out.Events)
	out.Count = before + behind
	var kept []cloud.TimelineEvent
	if before > 0 {
		if kept, err = list(v.ctx, v.q, sqlKept, scanEvent, int64(id)); err != nil {
			return out, err
		}
		out.Events = append(out.Events, kept...)
	}
	if w := v.window; behind > w.most {
		packages, err := list(v.ctx, v.q, sqlPackageIDs, func(r rows, p *cloud.PackageID) error { return r.Scan(p) }, int64(id))
		if err != nil {
			return out, err
		}
		if c, ok := timeline.MakeCheckpoint(out.Events, packages, w.leave, time.Now()); ok {
			c.Events += before - len(kept)
			v.checkpoints[id] = checkpoint{c, packages}
		}
	}
	return out, nil
}

// checkpoint is the one of a shipment, without what it keeps.
func (v trackingView) checkpoint(id cloud.ShipmentID) (timeline.Checkpoint, error) {
	return one(v.ctx, v.q, sqlCheckpoint, func(r rows, c *timeline.Checkpoint) error { return r.Scan(when(&c.Upto), &c.Events) }, int64(id), int64(timeline.Version))
}

// Checkpoint is the one that decisions go by. Error: cloud.ErrNotFound.
func (v trackingView) Checkpoint(id cloud.ShipmentID) (cloud.TimelineCheckpoint, error) {
	c, err := v.checkpoint(id)
	if err == nil {
		c.Kept, err = list(v.ctx, v.q, sqlKeptKeys, func(r rows, key *string) error { return r.Scan(key) }, int64(id))
	}
	return c, err
}

func lastOf(packages []cloud.PackageID) (last cloud.PackageID) {
	for _, id := range packages {
		last = max(last, id)
	}
	return last
}

// TimelineEvent finds an event of a shipment by its key.
func (v trackingView) TimelineEvent(id cloud.ShipmentID, key string) (cloud.TimelineEvent, error) {
	return one(v.ctx, v.q, sqlTimelineEvent, scanEvent, int64(id), key)
}

// addCheckpoints writes those that a decision has made, before its changes: what comes late outdates them.
func addCheckpoints(w *writer, made checkpoints) {
	for id, c := range made {
		w.add(anything, sqlSaveCheckpoint, int64(id), int64(timeline.Version), c.Upto.UnixMilli(), int64(c.Events), int64(len(c.packages)), int64(lastOf(c.packages)))
		w.add(anything, sqlDropKept, int64(id))
		for _, key := range c.Kept {
			w.add(anything, sqlAddKept, int64(id), key)
		}
	}
}

// outdateCheckpoints deletes those that events of changes come before.
func outdateCheckpoints(w *writer, c *cloud.Changes) {
	first := map[cloud.ShipmentID]time.Time{}
	for _, e := range c.Events {
		if at, ok := first[e.ShipmentID]; !ok || e.Event.OccurredAt.Before(at) {
			first[e.ShipmentID] = e.Event.OccurredAt.Time
		}
	}
	for _, e := range c.Events {
		if at, ok := first[e.ShipmentID]; ok {
			w.add(anything, sqlOutdate, int64(e.ShipmentID), ms(at))
			delete(first, e.ShipmentID)
		}
	}
	for _, x := range c.Judged {
		w.add(anything, sqlOutdate, int64(x.ShipmentID), ms(x.OccurredAt))
	}
	for _, x := range c.Withdrawn {
		w.add(anything, sqlUnsettle, int64(x.ShipmentID), x.Key())
	}
	for _, id := range c.Unsettled {
		w.add(anything, sqlForget, int64(id))
		w.add(anything, sqlDropKept, int64(id))
	}
}
