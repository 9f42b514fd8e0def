package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

const (
	// A change is readable when every transaction that began before its own has ended: none
	// can come to stand before it any more.
	sqlFeedPage = `SELECT f.epoch, f.transaction_id, f.n, f.kind, f.subject, f.at, (@settled OR f.epoch < (` + feedEpoch + `)),
  COALESCE(p.number_key, ''), t.event, t.withdrawn_at, t.withdrawn_reason, t.withdrawn_by, t.corrected_by,
  s.id, s.business_id, s.number, s.external, s.provider_id, s.delivery_id, s.profile, s.current_code, s.last_at, s.created_at,
  s.sscc, s.piece, s.estimated, s.order_id, s.customer_id, s.link_from
FROM feed_change f LEFT JOIN shipment s ON s.id = f.shipment_id LEFT JOIN timeline t ON t.shipment_id = f.shipment_id AND t.event_id = f.subject
  LEFT JOIN order_package p ON t.package_id <> 0 AND p.id = t.package_id
WHERE f.business_id = $1 AND (f.epoch, f.transaction_id, f.n) > ($2, $3, $4)
ORDER BY f.epoch, f.transaction_id, f.n LIMIT $5`
	sqlFeedEnd = `SELECT f.epoch, f.transaction_id, f.n FROM feed_change f
WHERE f.business_id = $1 AND (@settled OR f.epoch < (` + feedEpoch + `))
ORDER BY f.epoch DESC, f.transaction_id DESC, f.n DESC LIMIT 1`

	sqlAddFeedChange = `INSERT INTO feed_change (epoch, transaction_id, business_id, shipment_id, kind, subject, at)
SELECT (` + feedEpoch + `), @transaction, s.business_id, s.id, CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS @int) FROM shipment s WHERE s.id = $1`
	// It comes before the shipment is saved.
	sqlAddFeedEstimate = `INSERT INTO feed_change (epoch, transaction_id, business_id, shipment_id, kind, subject, at)
SELECT (` + feedEpoch + `), @transaction, CAST($2 AS @int), CAST($1 AS @int), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS @int)
WHERE NOT EXISTS (SELECT 1 FROM shipment WHERE id = $1 AND estimated = $4)`

	// The newest change of a business stays: on SQLite the numbers of rows continue above those
	// that are there.
	sqlOldFeed  = `SELECT n, at FROM feed_change WHERE n > $1 ORDER BY n LIMIT $2`
	sqlDropFeed = `DELETE FROM feed_change WHERE n > $1 AND n <= $2 AND at < $3
  AND EXISTS (SELECT 1 FROM feed_change l WHERE l.business_id = feed_change.business_id
    AND (l.epoch, l.transaction_id, l.n) > (feed_change.epoch, feed_change.transaction_id, feed_change.n))`

	feedEpoch = `SELECT COALESCE(MAX(noted_at), 0) FROM recovery`
)

// ifTouched is a statement that writes a change where the one that it comes with touched a row.
func ifTouched(id cloud.ShipmentID, kind cloud.FeedKind, subject string, at time.Time) *op {
	return &op{sql: sqlAddFeedChange, args: []any{int64(id), string(kind), subject, ms(at)}}
}

// feedOfRow has the feed tell of a row: that a parcel was put into a container, or taken out, the other way round of a
// mark that is withdrawn; that it has an alias. scanFeed reads the subjects.
func feedOfRow(w *writer, x cloud.Row) {
	switch x := x.(type) {
	case cloud.ContainerMark:
		kind := cloud.ContainerUnbound
		if x.Inside == x.WithdrawnAt.IsZero() {
			kind = cloud.ContainerBound
		}
		if x.ShipmentID != 0 {
			w.add(anything, sqlAddFeedChange, int64(x.ShipmentID), string(kind), fmt.Sprint(int64(x.ContainerID), " ", x.Child), ms(x.UpdatedAt))
		}
	case cloud.Alias:
		if x.ShipmentID != 0 && x.CreatedAt.Equal(x.UpdatedAt) {
			w.add(anything, sqlAddFeedChange, int64(x.ShipmentID), string(cloud.AliasAdded), strings.Join([]string{x.Kind, x.Issuer, x.Value}, "\n"), ms(x.CreatedAt))
		}
	}
}

var touchedTexts sync.Map // [2]string{first, then} to text

// touching is one statement of PostgreSQL for one that writes and one that follows where it
// touched a row. The arguments of the second come behind those of the first.
func touching(o *op) (string, []any) {
	args := append(append(make([]any, 0, len(o.args)+len(o.then.args)), o.args...), o.then.args...)
	key := [2]string{o.sql, o.then.sql}
	if t, ok := touchedTexts.Load(key); ok {
		return t.(string), args
	}
	var b strings.Builder
	b.WriteString("WITH touched AS (" + o.sql + " RETURNING 1) ")
	b.WriteString(shiftParams(o.then.sql, len(o.args)))
	b.WriteString(" AND EXISTS (SELECT 1 FROM touched)")
	touchedTexts.Store(key, b.String())
	return b.String(), args
}

// feedRow is a change as it is stored.
type feedRow struct {
	cloud.FeedChange
	settled bool
}

func scanFeed(r rows, x *feedRow) error {
	var subject string
	var event, reason, by, correctedBy *string
	var s struct {
		id, business, provider, delivery, order, customer, link *int64
		number, external, profile, current                      *string
		sscc, piece, estimated                                  *string
	}
	var withdrawnAt, lastAt, createdAt time.Time
	c := &x.FeedChange
	err := r.Scan(&c.Position.Epoch, &c.Position.Transaction, &c.Position.N, &c.Kind, &subject, when(&c.RecordedAt), &x.settled,
		&c.Package, &event, when(&withdrawnAt), &reason, &by, &correctedBy,
		&s.id, &s.business, &s.number, &s.external, &s.provider, &s.delivery, &s.profile, &s.current, when(&lastAt), when(&createdAt),
		&s.sscc, &s.piece, &s.estimated, &s.order, &s.customer, &s.link)
	if err != nil || s.id == nil {
		return err
	}
	c.Shipment = cloud.Shipment{ID: cloud.ShipmentID(*s.id), BusinessID: cloud.BusinessID(*s.business), Number: *s.number, External: *s.external, SSCC: *s.sscc, PieceID: *s.piece,
		Estimated: *s.estimated, ProviderID: cloud.ProviderID(*s.provider), DeliveryID: cloud.DeliveryID(*s.delivery), LinkFrom: cloud.DeliveryID(*s.link),
		OrderID: cloud.OrderID(*s.order), CustomerID: cloud.AccountID(*s.customer), Profile: *s.profile, Current: otep.Code(*s.current), LastAt: lastAt, CreatedAt: createdAt}
	switch {
	case c.Kind == cloud.EstimateChanged:
		c.Estimate = subject
	case c.Kind == cloud.ContainerBound || c.Kind == cloud.ContainerUnbound:
		_, err := fmt.Sscan(subject, (*int64)(&c.Container))
		if err != nil {
			return err
		}
	case c.Kind == cloud.AliasAdded:
		if part := strings.SplitN(subject, "\n", 3); len(part) == 3 {
			c.Alias = &cloud.FeedAlias{Kind: part[0], Issuer: part[1], Value: part[2]}
		}
	case event != nil:
		e, err := otep.DecodeEvent(*event)
		if err != nil {
			return err
		}
		c.Event, c.Size = &e, len(*event)
		if c.Kind == cloud.EventWithdrawn || c.Kind == cloud.EventCorrected {
			c.Withdrawal = cloud.EventRef{ShipmentID: c.Shipment.ID, EventID: e.EventID, At: withdrawnAt, Reason: *reason, By: *by, CorrectedBy: *correctedBy}
		}
	}
	return nil
}

// FeedPage reads at most limit changes of a business behind a position, in order. What it
// gives is complete: nothing is written between them, or before them, later.
func (db timelines) FeedPage(ctx context.Context, b cloud.BusinessID, after cloud.FeedPosition, limit int) (p cloud.FeedPage, err error) {
	found, err := readList(ctx, db.database, sqlFeedPage, scanFeed, int64(b), after.Epoch, after.Transaction, after.N, limit)
	if err != nil {
		return p, err
	}
	p.End = len(found) < limit
	for _, x := range found {
		if !x.settled {
			p.End, p.Pending = true, true
			break
		}
		p.Changes = append(p.Changes, x.FeedChange)
	}
	return p, nil
}

// FeedEnd is the position of a business's newest readable change; the zero position without
// any.
func (db timelines) FeedEnd(ctx context.Context, b cloud.BusinessID) (p cloud.FeedPosition, err error) {
	p, err = readOne(ctx, db.database, sqlFeedEnd, func(r rows, p *cloud.FeedPosition) error { return r.Scan(&p.Epoch, &p.Transaction, &p.N) }, int64(b))
	if errors.Is(err, cloud.ErrNotFound) {
		err = nil
	}
	return p, err
}

// PruneFeed removes changes that were recorded before a time, but for the newest of each
// business. It looks at step rows with numbers above after and gives the last of them; more is
// false once they are younger than that time.
func (db timelines) PruneFeed(ctx context.Context, after int64, before time.Time, step int) (last int64, more bool, err error) {
	type row struct {
		n  int64
		at time.Time
	}
	found, err := readList(ctx, db.database, sqlOldFeed, func(r rows, x *row) error { return r.Scan(&x.n, when(&x.at)) }, after, step)
	if err != nil || len(found) == 0 {
		return after, false, err
	}
	newest := found[len(found)-1]
	return newest.n, len(found) == step && newest.at.Before(before), db.exec(ctx, sqlDropFeed, after, newest.n, ms(before))
}
