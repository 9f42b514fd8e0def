package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlShipmentByNumber = `SELECT ` + shipmentColumns + ` FROM shipment WHERE number_key = $1`
	sqlLockShipment     = `SELECT id FROM shipment WHERE number_key = $1 @lock`
	sqlDeliveryShipment = `SELECT ` + shipmentColumns + ` FROM shipment WHERE delivery_id = $1 AND delivery_id <> 0 ORDER BY id`
	sqlTimeline         = `SELECT shipment_id, business_id, event FROM timeline WHERE shipment_id = $1`
	sqlHasEvent         = `SELECT 1 FROM timeline WHERE shipment_id = $1 AND event_id = $2`

	shipmentColumns = `id, business_id, number, external, provider_id, delivery_id, profile, current_code, last_at, created_at`
)

const sqlSaveShipment = `INSERT INTO shipment (
  id, business_id, number, number_key, external, provider_id, delivery_id, profile, current_code, last_at,
  created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (id) DO UPDATE SET
  business_id = excluded.business_id, number = excluded.number, number_key = excluded.number_key, external =
  excluded.external, provider_id = excluded.provider_id, delivery_id = excluded.delivery_id, profile =
  excluded.profile, current_code = excluded.current_code, last_at = excluded.last_at, created_at =
  excluded.created_at`

const sqlAddEvent = `INSERT INTO timeline (
  shipment_id, business_id, event_id, occurred_at, event)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (shipment_id, event_id) DO NOTHING`

func scanShipment(r rows, s *cloud.Shipment) error {
	return r.Scan(&s.ID, &s.BusinessID, &s.Number, &s.External, &s.ProviderID, &s.DeliveryID, &s.Profile, &s.Current,
		when(&s.LastAt), when(&s.CreatedAt))
}

func scanEvent(r rows, e *cloud.TimelineEvent) error {
	return r.Scan(&e.ShipmentID, &e.BusinessID, parsed(&e.Event))
}

// numberKey is what makes two tracking numbers the same.
func numberKey(number string) string { return strings.ToUpper(number) }

// ShipmentByNumber, in a decision on PostgreSQL, waits for others that decide
// about the same shipment: its fold is made from all of its events.
func (v *view) ShipmentByNumber(number string) (cloud.Shipment, error) {
	if s, ok := v.q.(session); ok && v.locks && s.postgres() {
		if _, err := list(v.ctx, v.q, sqlLockShipment, scanInt, numberKey(number)); err != nil {
			return cloud.Shipment{}, err
		}
	}
	return one(v.ctx, v.q, sqlShipmentByNumber, scanShipment, numberKey(number))
}

func (v *view) Timeline(id cloud.ShipmentID) ([]cloud.TimelineEvent, error) {
	return list(v.ctx, v.q, sqlTimeline, scanEvent, int64(id))
}

func (v *view) HasEvent(id cloud.ShipmentID, event string) (bool, error) {
	found, err := list(v.ctx, v.q, sqlHasEvent, scanInt, int64(id), event)
	return len(found) > 0, err
}

func (w *writer) timelines(c *cloud.Changes) error {
	for _, s := range c.Shipments {
		w.add(anything, sqlSaveShipment, int64(s.ID), int64(s.BusinessID), s.Number, numberKey(s.Number), s.External,
			int64(s.ProviderID), int64(s.DeliveryID), s.Profile, string(s.Current), ms(s.LastAt), ms(s.CreatedAt))
	}
	for _, e := range c.Events {
		if e.Event.EventID == "" {
			return fmt.Errorf("timeline event of shipment %d has no id", e.ShipmentID)
		}
		w.add(anything, sqlAddEvent, int64(e.ShipmentID), int64(e.BusinessID), e.Event.EventID, ms(e.Event.OccurredAt.Time),
			text(e.Event))
	}
	return nil
}

// FindShipment finds a shipment by its tracking number, in any case.
func (db *DB) FindShipment(ctx context.Context, number string) (cloud.Shipment, error) {
	return readOne(ctx, db, sqlShipmentByNumber, scanShipment, numberKey(number))
}

// FindTimeline finds a shipment by its tracking number together with its events
// as they stood at one moment, in no particular order.
func (db *DB) FindTimeline(ctx context.Context, number string) (s cloud.Shipment, es []cloud.TimelineEvent, err error) {
	err = db.engine.read(ctx, func(ctx context.Context, q querier) (err error) {
		if s, err = one(ctx, q, sqlShipmentByNumber, scanShipment, numberKey(number)); err == nil {
			es, err = list(ctx, q, sqlTimeline, scanEvent, int64(s.ID))
		}
		return err
	})
	return s, es, err
}

// ListDeliveryShipments lists the timelines of a delivery's parcels, by id.
func (db *DB) ListDeliveryShipments(ctx context.Context, id cloud.DeliveryID) ([]cloud.Shipment, error) {
	return readList(ctx, db, sqlDeliveryShipment, scanShipment, int64(id))
}
