package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

const (
	sqlShipmentByNumber = `SELECT ` + shipmentColumns + ` FROM shipment WHERE number_key = $1`
	sqlShipmentsAfter   = `SELECT ` + shipmentColumns + ` FROM shipment WHERE id > $1 ORDER BY id LIMIT $2`
	sqlLockShipment     = `SELECT id FROM shipment WHERE number_key = $1 @lock`
	sqlDeliveryShipment = `SELECT ` + shipmentColumns + ` FROM shipment WHERE delivery_id = $1 AND delivery_id <> 0 ORDER BY id`
	// A shipment with its newest events, one on a line, and the packages of its order. Before an event stand a dash if it was taken
	// back, a question mark if it was reported, and the number of its package.
	sqlTimelineByNumber = `SELECT ` + shipmentColumns + `,
  (SELECT @join(newest.line, @newline) FROM (SELECT CASE WHEN t.withdrawn_at IS NULL AND t.package_id = 0 AND NOT t.reported THEN t.event
       ELSE CASE WHEN t.withdrawn_at IS NULL THEN '' ELSE '-' END || CASE WHEN t.reported THEN '?' ELSE '' END || CAST(t.package_id AS TEXT) || t.event END AS line
     FROM timeline t WHERE t.shipment_id = shipment.id ORDER BY t.occurred_at DESC, t.n DESC LIMIT $2) AS newest),
  CASE WHEN shipment.order_id <> 0 THEN (SELECT @join(CAST(p.id AS TEXT) || ' ' || p.number_key, @newline) FROM order_package p WHERE p.order_id = shipment.order_id) END
FROM shipment WHERE number_key = $1`
	sqlTimeline     = `SELECT shipment_id, business_id, package_id, event, withdrawn_at IS NOT NULL, reported FROM timeline WHERE shipment_id = $1 ORDER BY occurred_at DESC, n DESC LIMIT $2`
	sqlTimelineUpto = `SELECT shipment_id, business_id, package_id, event, withdrawn_at IS NOT NULL, reported FROM timeline
WHERE shipment_id = $1 AND occurred_at <= $2 ORDER BY occurred_at DESC, n DESC LIMIT $3`
	sqlCountEvents = `SELECT count(*) FROM timeline WHERE shipment_id = $1`
	sqlIsSplit     = `SELECT 1 FROM timeline WHERE shipment_id = $1 AND package_id <> 0 LIMIT 1`

	sqlEventAfter = `SELECT occurred_at FROM timeline WHERE shipment_id = $1 AND occurred_at > $2 LIMIT 1`

	sqlShipmentsByNumber   = `SELECT ` + shipmentColumns + ` FROM shipment WHERE business_id = $1 AND number_key = $2`
	sqlShipmentsByExternal = `SELECT ` + shipmentColumns + ` FROM shipment
WHERE business_id = $1 AND external_key = $2 AND external_key <> '' ORDER BY id LIMIT 20`
	sqlShipmentsBySSCC = `SELECT ` + shipmentColumns + ` FROM shipment
WHERE business_id = $1 AND sscc = $2 AND sscc <> '' ORDER BY id LIMIT 20`
	sqlShipmentsByPiece = `SELECT ` + shipmentColumns + ` FROM shipment
WHERE business_id = $1 AND piece = $2 AND piece <> '' ORDER BY id LIMIT 20`
	sqlShipmentsByOrder   = `SELECT ` + shipmentColumns + ` FROM shipment WHERE business_id = $1 AND order_id = $2 AND order_id <> 0`
	sqlShipmentsByPackage = `SELECT ` + shipmentColumns + ` FROM shipment
WHERE business_id = $1 AND order_id <> 0 AND order_id IN (SELECT order_id FROM order_package WHERE id = $2)`
	sqlShipmentsByPackageNumber = `SELECT ` + shipmentColumns + ` FROM shipment
WHERE business_id = $1 AND order_id <> 0 AND order_id IN (SELECT order_id FROM order_package WHERE number_key = $2)`
	sqlShipmentsByPackageExternal = `SELECT ` + shipmentColumns + ` FROM shipment
WHERE business_id = $1 AND order_id <> 0 AND order_id IN (SELECT order_id FROM order_package WHERE external_key = $2 AND external_key <> '') ORDER BY id LIMIT 20`
	sqlShipmentOfPackage = `SELECT ` + shipmentColumns + ` FROM shipment
WHERE order_id <> 0 AND order_id IN (SELECT order_id FROM order_package WHERE number_key = $1)`
	sqlShipmentByFormer = `SELECT ` + shipmentColumns + ` FROM shipment
WHERE order_id <> 0 AND order_id IN (SELECT order_id FROM former_number WHERE number_key = $1)`
	sqlShipmentsByFormer = `SELECT ` + shipmentColumns + ` FROM shipment
WHERE business_id = $1 AND order_id <> 0 AND order_id IN (SELECT order_id FROM former_number WHERE number_key = $2)`
	sqlNewestByPackageExternal = `SELECT ` + shipmentColumns + ` FROM shipment
WHERE order_id <> 0 AND order_id IN (SELECT order_id FROM order_package WHERE external_key = $1 AND external_key <> '') ORDER BY id DESC LIMIT 20`
	sqlNewestByExternal = `SELECT ` + shipmentColumns + ` FROM shipment
WHERE external_key = $1 AND external_key <> '' ORDER BY id DESC LIMIT 20`
	sqlWithdraw = `UPDATE timeline SET withdrawn_at = $3, withdrawn_reason = $4, withdrawn_by = $5, corrected_by = $6, told = 2
WHERE shipment_id = $1 AND event_id = $2 AND withdrawn_at IS NULL`
	sqlJudge      = `UPDATE timeline SET reported = $3, told = $4 WHERE shipment_id = $1 AND event_id = $2 AND reported <> $3`
	sqlPackagesOf = `SELECT id, number_key, external_key FROM order_package WHERE order_id = $1 AND business_id = $2 ORDER BY id`
	sqlEndReviews = `UPDATE review SET status = 'ended', updated_at = $1 WHERE id IN (SELECT id FROM review WHERE status = 'open' AND ends_at < $1 ORDER BY ends_at LIMIT $2)`
	sqlWithdrawn  = `SELECT shipment_id, package_id, withdrawn_at, withdrawn_reason, withdrawn_by, corrected_by, event FROM timeline
WHERE shipment_id = $1 AND withdrawn_at IS NOT NULL AND occurred_at >= $2 AND occurred_at <= $3`
	sqlObservation = `SELECT shipment_id, source, raw, code, seen_at FROM observation WHERE shipment_id = $1 AND source = $2`
	sqlObserve     = `INSERT INTO observation (shipment_id, source, raw, code, seen_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (shipment_id, source) DO UPDATE SET raw = excluded.raw, code = excluded.code, seen_at = excluded.seen_at`
	// A page of a business's events: strictly behind (occurred_at, n), oldest first.
	sqlEventPage = `SELECT t.n, t.occurred_at, t.package_id, COALESCE(p.number_key, ''), COALESCE(p.external_key, ''), t.event, s.id, s.business_id, s.number, s.external, s.provider_id, s.delivery_id, s.profile,
  s.current_code, s.last_at, s.created_at, s.sscc, s.piece, s.estimated, s.order_id, s.customer_id, s.link_from
FROM timeline t JOIN shipment s ON s.id = t.shipment_id LEFT JOIN order_package p ON t.package_id <> 0 AND p.id = t.package_id
WHERE t.business_id = $1 AND t.withdrawn_at IS NULL AND NOT t.reported AND t.occurred_at >= $2 AND t.occurred_at < $3
  AND (t.occurred_at > $4 OR t.occurred_at = $4 AND t.n > $5) AND ($6 = 0 OR s.provider_id = $6)
ORDER BY t.occurred_at, t.n LIMIT $7`

	shipmentColumns = `id, business_id, number, external, provider_id, delivery_id, profile, current_code, last_at, created_at,
  sscc, piece, estimated, order_id, customer_id, link_from`
)

const sqlSaveShipment = `INSERT INTO shipment (
  id, business_id, number, number_key, external, provider_id, delivery_id, profile, current_code, last_at,
  created_at, external_key, sscc, piece, estimated, order_id, customer_id, link_from)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
ON CONFLICT (id) DO UPDATE SET
  business_id = excluded.business_id, number = excluded.number, number_key = excluded.number_key, external =
  excluded.external, provider_id = excluded.provider_id, delivery_id = excluded.delivery_id, profile =
  excluded.profile, current_code = excluded.current_code, last_at = excluded.last_at, created_at =
  excluded.created_at, external_key = excluded.external_key, sscc = excluded.sscc, piece = excluded.piece,
  estimated = excluded.estimated, order_id = excluded.order_id,
  customer_id = excluded.customer_id, link_from = excluded.link_from`

// What was withdrawn by cloud.ByContainer may come back.
const sqlAddEvent = `INSERT INTO timeline (
  shipment_id, business_id, event_id, occurred_at, event, package_id, reported, told)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (shipment_id, event_id) DO UPDATE SET withdrawn_at = NULL, withdrawn_reason = '', withdrawn_by = '', corrected_by = '', told = excluded.told
WHERE timeline.withdrawn_at IS NOT NULL AND timeline.withdrawn_by = '(container)'`

func scanShipment(r rows, s *cloud.Shipment) error {
	return r.Scan(&s.ID, &s.BusinessID, &s.Number, &s.External, &s.ProviderID, &s.DeliveryID, &s.Profile, &s.Current,
		when(&s.LastAt), when(&s.CreatedAt), &s.SSCC, &s.PieceID, &s.Estimated, &s.OrderID, &s.CustomerID, &s.LinkFrom)
}

func scanEvent(r rows, e *cloud.TimelineEvent) error {
	return r.Scan(&e.ShipmentID, &e.BusinessID, &e.Package, (*eventColumn)(&e.Event), &e.Event.Withdrawn, &e.Event.Reported)
}

// eventColumn reads one stored event.
type eventColumn otep.Event

// Scan implements sql.Scanner.
func (c *eventColumn) Scan(src any) (err error) {
	s, ok := src.(string)
	if !ok {
		return fmt.Errorf("an event is stored as %T", src)
	}
	*(*otep.Event)(c), err = otep.DecodeEvent(s)
	return err
}

// timelineRow is a shipment with its events.
type timelineRow struct {
	cloud.Shipment
	lines    *string // nil without any
	packages *string // id and number, one on a line; nil without an order
}

func scanTimeline(r rows, t *timelineRow) error {
	s := &t.Shipment
	return r.Scan(&s.ID, &s.BusinessID, &s.Number, &s.External, &s.ProviderID, &s.DeliveryID, &s.Profile, &s.Current,
		when(&s.LastAt), when(&s.CreatedAt), &s.SSCC, &s.PieceID, &s.Estimated, &s.OrderID, &s.CustomerID, &s.LinkFrom, &t.lines, &t.packages)
}

func (t timelineRow) events() ([]cloud.TimelineEvent, error) {
	if t.lines == nil {
		return nil, nil
	}
	out := make([]cloud.TimelineEvent, 0, strings.Count(*t.lines, "\n")+1)
	for line := range strings.SplitSeq(*t.lines, "\n") { // JSON as we write it has none of its own
		line, withdrawn := strings.CutPrefix(line, "-")
		line, reported := strings.CutPrefix(line, "?")
		var of int64
		if end := strings.IndexByte(line, '{'); end > 0 {
			of, _ = strconv.ParseInt(line[:end], 10, 64) // a number of the database
			line = line[end:]
		}
		e, err := otep.DecodeEvent(line)
		if err != nil {
			return nil, fmt.Errorf("event of shipment %d: %w", t.ID, err)
		}
		e.Withdrawn, e.Reported = withdrawn, reported
		out = append(out, cloud.TimelineEvent{ShipmentID: t.ID, BusinessID: t.BusinessID, Package: cloud.PackageID(of), Event: e})
	}
	return out, nil
}

// several are the packages of the row's order, if there is more than one.
func (t timelineRow) several() (out []cloud.PackageNumber) {
	if t.packages == nil || !strings.Contains(*t.packages, "\n") {
		return nil
	}
	for line := range strings.SplitSeq(*t.packages, "\n") {
		id, number, _ := strings.Cut(line, " ")
		n, _ := strconv.ParseInt(id, 10, 64) // a number of the database
		out = append(out, cloud.PackageNumber{ID: cloud.PackageID(n), Number: number})
	}
	slices.SortFunc(out, func(a, b cloud.PackageNumber) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// numberKey is what makes two tracking numbers the same.
func numberKey(number string) string { return cloud.NumberKey(number) }

// ShipmentByNumber, in a decision on PostgreSQL, waits for others that decide
// about the same shipment: its fold is made from all of its events.
func (v trackingView) ShipmentByNumber(number string) (cloud.Shipment, error) {
	if s, ok := v.q.(session); ok && v.locks && s.postgres() {
		if _, err := list(v.ctx, v.q, sqlLockShipment, scanInt, numberKey(number)); err != nil {
			return cloud.Shipment{}, err
		}
	}
	return one(v.ctx, v.q, sqlShipmentByNumber, scanShipment, numberKey(number))
}

func (v trackingView) ShipmentByID(id cloud.ShipmentID) (cloud.Shipment, error) {
	return one(v.ctx, v.q, sqlShipment, scanShipment, int64(id))
}

func (v trackingView) DeliveryShipments(id cloud.DeliveryID) ([]cloud.Shipment, error) {
	return list(v.ctx, v.q, sqlDeliveryShipment, scanShipment, int64(id))
}

func (v trackingView) HasEventsAfter(id cloud.ShipmentID, at time.Time) (bool, error) {
	found, err := list(v.ctx, v.q, sqlEventAfter, scanInt, int64(id), at.UnixMilli())
	return len(found) > 0, err
}

func (v trackingView) Timeline(id cloud.ShipmentID) ([]cloud.TimelineEvent, error) {
	return list(v.ctx, v.q, sqlTimelineAfter, scanEvent, int64(id), int64(beforeAll))
}

func (v trackingView) WithdrawnEvents(id cloud.ShipmentID, from, upto time.Time) ([]cloud.WithdrawnEvent, error) {
	return list(v.ctx, v.q, sqlWithdrawn, scanWithdrawn, int64(id), milliseconds(from, beforeAll), milliseconds(upto, afterAll))
}

func scanWithdrawn(r rows, e *cloud.WithdrawnEvent) error {
	err := r.Scan(&e.ShipmentID, &e.Package, when(&e.At), &e.Reason, &e.By, &e.CorrectedBy, (*eventColumn)(&e.Event))
	e.EventID = e.Event.EventID
	return err
}

// TimelineUpto lists events of a time and before, the latest first, at most so many.
func (v trackingView) TimelineUpto(id cloud.ShipmentID, upto time.Time, limit int) ([]cloud.TimelineEvent, error) {
	return list(v.ctx, v.q, sqlTimelineUpto, scanEvent, int64(id), milliseconds(upto, afterAll), limit)
}

// CountEvents is how many events a timeline has.
func (v trackingView) CountEvents(id cloud.ShipmentID) (int, error) {
	n, err := one(v.ctx, v.q, sqlCountEvents, scanInt, int64(id))
	return int(n), err
}

// IsSplit reports whether an event of a shipment is about one package alone.
func (v trackingView) IsSplit(id cloud.ShipmentID) (bool, error) {
	found, err := list(v.ctx, v.q, sqlIsSplit, scanInt, int64(id))
	return len(found) > 0, err
}

// milliseconds are those of a time, and others for the zero time.
func milliseconds(at time.Time, zero int64) int64 {
	if at.IsZero() {
		return zero
	}
	return at.UnixMilli()
}

func (v trackingView) PackagesOf(b cloud.BusinessID, id cloud.OrderID) ([]cloud.PackageNumber, error) {
	return packagesOf(v.ctx, v.q, b, id)
}

func packagesOf(ctx context.Context, q querier, b cloud.BusinessID, id cloud.OrderID) ([]cloud.PackageNumber, error) {
	return list(ctx, q, sqlPackagesOf, func(r rows, p *cloud.PackageNumber) error { return r.Scan(&p.ID, &p.Number, &p.External) }, int64(id), int64(b))
}

// ShipmentsBySubject, in a decision on PostgreSQL, waits for others that decide
// about what it finds, but for shipments of orders: a decision about these reads the order first,
// and two that wait for an order and its shipment in turns would wait for each other.
func (v trackingView) ShipmentsBySubject(b cloud.BusinessID, s otep.Subject) ([]cloud.Shipment, error) {
	for _, by := range []struct {
		sql string
		key any
	}{
		{sqlShipmentsByNumber, numberKey(s.TrackingNumber)},
		{sqlShipmentsByPackageNumber, numberKey(s.TrackingNumber)},
		{sqlShipmentsByFormer, formerKey(s.TrackingNumber)},
		{sqlShipmentsByExternal, numberKey(s.ExternalTrackingNumber)},
		{sqlShipmentsByPackageExternal, numberKey(s.ExternalTrackingNumber)},
		{sqlShipmentsByNumber, numberKey(s.ExternalTrackingNumber)},
		{sqlShipmentsBySSCC, s.SSCC},
		{sqlShipmentsByPackage, s.PackageID},
		{sqlShipmentsByOrder, s.OrderID},
		{sqlShipmentsByPiece, s.PieceID},
	} {
		if by.key == "" || by.key == int64(0) {
			continue
		}
		found, err := list(v.ctx, v.q, by.sql, scanShipment, int64(b), by.key)
		if s, ok := v.q.(session); ok && s.postgres() && v.locks && slices.ContainsFunc(found, func(s cloud.Shipment) bool { return s.OrderID == 0 }) {
			found, err = list(v.ctx, v.q, by.sql+" @lock", scanShipment, int64(b), by.key)
		}
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}

func (v trackingView) Observation(id cloud.ShipmentID, source string) (cloud.Observation, error) {
	return one(v.ctx, v.q, sqlObservation, scanObservation, int64(id), source)
}

func scanObservation(r rows, o *cloud.Observation) error {
	return r.Scan(&o.ShipmentID, &o.Source, &o.Raw, &o.Code, when(&o.SeenAt))
}

// timelines writes changes of timelines, with what the feed has of them: an event whose id is
// stored already, and one that was taken back before, change nothing.
func (w *writer) timelines(c *cloud.Changes) error {
	now := time.Now()
	for _, s := range c.Shipments {
		if s.Estimated != "" { // it is never taken away
			w.add(anything, sqlAddFeedEstimate, int64(s.ID), int64(s.BusinessID), string(cloud.EstimateChanged), s.Estimated, ms(now))
		}
		w.add(anything, sqlSaveShipment, int64(s.ID), int64(s.BusinessID), s.Number, numberKey(s.Number), s.External,
			int64(s.ProviderID), int64(s.DeliveryID), s.Profile, string(s.Current), ms(s.LastAt), ms(s.CreatedAt),
			numberKey(s.External), s.SSCC, s.PieceID, s.Estimated, int64(s.OrderID), int64(s.CustomerID), int64(s.LinkFrom))
	}
	outdateCheckpoints(w, c)
	left := slices.Clone(c.Withdrawn)
	for _, e := range c.Events {
		if e.Event.EventID == "" {
			return fmt.Errorf("timeline event of shipment %d has no id", e.ShipmentID)
		}
		event, err := otep.AppendEvent(nil, &e.Event)
		if err != nil {
			return fmt.Errorf("encode event %s of shipment %d: %w", e.Event.EventID, e.ShipmentID, err)
		}
		told, kind := cloud.TraceUntold, cloud.EventRecorded
		if e.Event.Reported {
			told, kind = cloud.TraceSent, cloud.EventReported // it is in no trace
		}
		left = slices.DeleteFunc(left, func(x cloud.EventRef) bool { // the event that takes the place of another one follows it
			replaced := x.CorrectedBy == e.Event.EventID && x.ShipmentID == e.ShipmentID
			if replaced {
				addWithdrawal(w, x, now)
			}
			return replaced
		})
		key := e.Ref().Key()
		w.ops = append(w.ops, op{sql: sqlAddEvent, args: []any{int64(e.ShipmentID), int64(e.BusinessID), key, ms(e.Event.OccurredAt.Time), string(event), int64(e.Package), e.Event.Reported, int64(told)},
			then: ifTouched(e.ShipmentID, kind, key, now)})
	}
	for _, x := range left {
		addWithdrawal(w, x, now)
	}
	for _, x := range c.Judged {
		told, kind := cloud.TraceUntold, cloud.EventRecorded
		if x.Reported {
			told, kind = cloud.TraceSent, cloud.EventReported
		}
		w.ops = append(w.ops, op{sql: sqlJudge, args: []any{int64(x.ShipmentID), x.Key(), x.Reported, int64(told)}, then: ifTouched(x.ShipmentID, kind, x.Key(), now)})
	}
	for _, o := range c.Observations {
		w.add(anything, sqlObserve, int64(o.ShipmentID), o.Source, o.Raw, string(o.Code), ms(o.SeenAt))
	}
	return nil
}

// EndReviews ends reviews that were not decided before a time.
func (db timelines) EndReviews(ctx context.Context, now time.Time) error {
	return db.inSteps(ctx, sqlEndReviews, ms(now))
}

func addWithdrawal(w *writer, e cloud.EventRef, now time.Time) {
	kind := cloud.EventWithdrawn
	if e.CorrectedBy != "" {
		kind = cloud.EventCorrected
	}
	w.ops = append(w.ops, op{sql: sqlWithdraw, args: []any{int64(e.ShipmentID), e.Key(), ms(e.At), e.Reason, e.By, e.CorrectedBy}, then: ifTouched(e.ShipmentID, kind, e.Key(), now)})
}

// ShipmentsAfter lists shipments behind an id, by id.
func (db timelines) ShipmentsAfter(ctx context.Context, after cloud.ShipmentID, limit int) ([]cloud.Shipment, error) {
	return readList(ctx, db.database, sqlShipmentsAfter, scanShipment, int64(after), limit)
}

// FindShipment finds a shipment by its tracking number, in any case.
func (db timelines) FindShipment(ctx context.Context, number string) (cloud.Shipment, error) {
	return readOne(ctx, db.database, sqlShipmentByNumber, scanShipment, numberKey(number))
}

// newestEvents is how many events of a timeline are read with its shipment: as many as are shown, and
// some that are not.
const newestEvents = 512

// FindTimeline finds a shipment by its tracking number, else by that of a
// package of its order, else by a carrier's number for either, together with
// its newest events as they stood at one moment. Of several with one carrier's number it is the newest that
// prefer likes, else the newest; prefer may be nil. A number that was replaced
// finds a shipment that prefer likes, and no other.
func (db timelines) FindTimeline(ctx context.Context, number string, prefer func(cloud.Shipment) bool) (out cloud.FoundTimeline, err error) {
	newest := cmp.Or(db.newest, newestEvents)
	found, err := readOne(ctx, db.database, sqlTimelineByNumber, scanTimeline, numberKey(number), newest)
	if err == nil {
		out.Shipment = found.Shipment
		out.Packages = found.several()
		out.Events, err = found.events()
		out.Longer = len(out.Events) >= newest
		return out, err
	}
	if !errors.Is(err, cloud.ErrNotFound) {
		return out, err
	}
	err = db.engine.read(ctx, func(ctx context.Context, q querier) (err error) {
		ofPackage := true
		s, err := one(ctx, q, sqlShipmentOfPackage, scanShipment, numberKey(number))
		for _, sql := range []string{sqlNewestByExternal, sqlNewestByPackageExternal} {
			if errors.Is(err, cloud.ErrNotFound) {
				s, err = byExternal(ctx, q, sql, number, prefer)
				ofPackage = sql == sqlNewestByPackageExternal
			}
		}
		if errors.Is(err, cloud.ErrNotFound) {
			ofPackage = false
			s, err = one(ctx, q, sqlShipmentByFormer, scanShipment, formerKey(number))
			if err == nil && (prefer == nil || !prefer(s)) {
				err = cloud.ErrNotFound
			}
		}
		if err != nil {
			return err
		}
		out.Shipment = s
		out.Events, err = list(ctx, q, sqlTimeline, scanEvent, int64(s.ID), newest)
		if out.Longer = len(out.Events) >= newest; err != nil || s.OrderID == 0 {
			return err
		}
		packages, err := packagesOf(ctx, q, s.BusinessID, s.OrderID)
		if err != nil || len(packages) < 2 {
			return err
		}
		out.Packages = packages
		if i := slices.IndexFunc(packages, func(p cloud.PackageNumber) bool {
			return p.Number == numberKey(number) || p.External == numberKey(number)
		}); ofPackage && i >= 0 {
			out.Package = packages[i]
		}
		return nil
	})
	return out, err
}

func byExternal(ctx context.Context, q querier, sql, number string, prefer func(cloud.Shipment) bool) (cloud.Shipment, error) {
	found, err := list(ctx, q, sql, scanShipment, numberKey(number))
	if err != nil {
		return cloud.Shipment{}, err
	}
	if i := slices.IndexFunc(found, func(s cloud.Shipment) bool { return prefer != nil && prefer(s) }); i >= 0 {
		return found[i], nil
	}
	if len(found) == 0 {
		return cloud.Shipment{}, cloud.ErrNotFound
	}
	return found[0], nil
}

// ListDeliveryShipments lists the timelines of a delivery's parcels, by id.
func (db timelines) ListDeliveryShipments(ctx context.Context, id cloud.DeliveryID) ([]cloud.Shipment, error) {
	return readList(ctx, db.database, sqlDeliveryShipment, scanShipment, int64(id))
}

// EventPage reads a page of events that are not taken back.
func (db timelines) EventPage(ctx context.Context, q cloud.EventQuery) ([]cloud.EventRow, error) {
	to := int64(math.MaxInt64)
	if !q.To.IsZero() {
		to = q.To.UnixMilli()
	}
	from, after := int64(math.MinInt64), int64(math.MinInt64)
	if !q.From.IsZero() {
		from = q.From.UnixMilli()
	}
	if !q.After.At.IsZero() {
		after = q.After.At.UnixMilli()
	}
	return readList(ctx, db.database, sqlEventPage, scanEventRow, int64(q.BusinessID), from, to, after, q.After.N, int64(q.ProviderID), q.Limit)
}

func scanEventRow(r rows, e *cloud.EventRow) error {
	s := &e.Shipment
	return r.Scan(&e.Cursor.N, when(&e.Cursor.At), &e.Package.ID, &e.Package.Number, &e.Package.External, (*eventColumn)(&e.Event), &s.ID, &s.BusinessID, &s.Number, &s.External, &s.ProviderID, &s.DeliveryID,
		&s.Profile, &s.Current, when(&s.LastAt), when(&s.CreatedAt), &s.SSCC, &s.PieceID, &s.Estimated, &s.OrderID, &s.CustomerID, &s.LinkFrom)
}
