package store

import (
	"context"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

const (
	sqlCompartments        = `SELECT ` + compartmentColumns + ` FROM compartment WHERE device_id = $1 ORDER BY door`
	sqlCompartment         = `SELECT ` + compartmentColumns + ` FROM compartment WHERE device_id = $1 AND door = $2`
	sqlCompartmentByGrid   = `SELECT ` + compartmentColumns + ` FROM compartment WHERE grid_id = $1`
	sqlShelves             = `SELECT code, position FROM shelf WHERE device_id = $1 ORDER BY position, code`
	sqlDropShelves         = `DELETE FROM shelf WHERE device_id = $1`
	sqlAddShelf            = `INSERT INTO shelf (device_id, position, code) VALUES ($1, $2, $3)`
	sqlDoor                = `UPDATE compartment SET door_status = $3, occupied = $4, opening_id = $5, version = CASE WHEN version < $6 THEN $6 ELSE version END WHERE device_id = $1 AND door = $2`
	sqlDelivery            = `SELECT ` + deliveryColumns + ` FROM delivery WHERE id = $1`
	sqlDeliveryByNumber    = `SELECT ` + deliveryColumns + ` FROM delivery WHERE number = $1`
	sqlDeliveryByReference = `SELECT ` + deliveryColumns + ` FROM delivery WHERE provider_id = $1 AND reference = $2 AND reference <> ''`
	sqlDeliveriesOfOrder   = `SELECT ` + deliveryColumns + ` FROM delivery
WHERE id IN (SELECT delivery_id FROM package WHERE order_id = $1 AND order_id <> 0) ORDER BY id DESC LIMIT 100`
	sqlDeliveriesOfNumber = `SELECT ` + deliveryColumns + ` FROM delivery
WHERE id IN (SELECT delivery_id FROM package WHERE LOWER(tracking_number) = LOWER(CAST($1 AS TEXT)) AND tracking_number <> '')
  AND provider_id = $2 AND id >= $3 AND livemode ORDER BY id DESC LIMIT 100`
	sqlReturnsOf        = `SELECT ` + deliveryColumns + ` FROM delivery WHERE returns_id = $1 AND returns_id <> 0 ORDER BY id`
	sqlDeviceDeliveries = `SELECT ` + deliveryColumns + ` FROM delivery
WHERE device_id = $1 AND status IN ('created', 'doors_opened', 'delivered', 'correcting') ORDER BY id`
	sqlBusinessDeliveries = `SELECT ` + deliveryColumns + ` FROM delivery
WHERE business_id = $1 AND id < $2 AND ($3 = '' OR status = $3) ORDER BY id DESC LIMIT $4`
	sqlProviderDeliveries = `SELECT ` + deliveryColumns + ` FROM delivery
WHERE provider_id = $1 AND id < $2 AND ($3 = '' OR status = $3) ORDER BY id DESC LIMIT $4`
	// Deliveries whose deadline has passed: never brought, unless an opening still
	// runs, or never collected.
	sqlDueDeliveries = `SELECT id, device_id, at FROM (
  SELECT d.id, d.device_id, d.deliver_before AS at FROM delivery d WHERE d.status = 'created' AND d.deliver_before <= $1
    AND NOT EXISTS (SELECT 1 FROM opening o WHERE o.delivery_id = d.id AND o.state IN ('requested', 'running'))
  UNION ALL
  SELECT d.id, d.device_id, d.due_at AS at FROM delivery d WHERE d.status = 'delivered' AND d.due_at <= $1
) AS due WHERE at > $2 OR at = $2 AND id > $3 ORDER BY at, id LIMIT $4`
	sqlSaveReminder = `INSERT INTO reminder (delivery_id, at) VALUES ($1, $2) ON CONFLICT (delivery_id) DO UPDATE SET at = excluded.at`
	sqlReminder     = `SELECT delivery_id, at FROM reminder WHERE delivery_id = $1`
	sqlDropReminder = `DELETE FROM reminder WHERE delivery_id = $1`
	sqlDueReminders = `SELECT r.delivery_id, d.device_id, r.at FROM reminder r JOIN delivery d ON d.id = r.delivery_id WHERE r.at <= $1 AND (r.at, r.delivery_id) > ($2, $3) ORDER BY r.at, r.delivery_id LIMIT $4`

	sqlPackages = `SELECT position, tracking_number, reference, size, weight, length, width, height, description, grid_id,
  status, failure_code, order_id, order_package_id FROM package WHERE delivery_id = $1 ORDER BY position`
	sqlDropPackages    = `DELETE FROM package WHERE delivery_id = $1 AND position >= $2`
	sqlOpening         = `SELECT ` + openingColumns + ` FROM opening WHERE id = $1`
	sqlRunningOpenings = `SELECT ` + openingColumns + ` FROM opening
WHERE device_id = $1 AND state IN ('requested', 'running') ORDER BY requested_at, id`
	sqlDeliveryOpenings = `SELECT ` + openingColumns + ` FROM opening WHERE delivery_id = $1 ORDER BY requested_at, id`
	sqlCommand          = `SELECT ` + commandColumns + ` FROM command WHERE id = $1`
	sqlOpenCommands     = `SELECT ` + commandColumns + ` FROM command
WHERE device_id = $1 AND state IN ('queued', 'sent', 'accepted') ORDER BY id`
	sqlRecentOrders = `SELECT ` + commandColumns + ` FROM command
WHERE device_id = $1 AND kind IN ('block', 'unblock', 'close_session') ORDER BY id DESC LIMIT 200`
	sqlLiveCodes = `SELECT device_id, delivery_id, entry, created_at, dropped_at, staff_code_id FROM code_entry
WHERE device_id = $1 AND dropped_at IS NULL ORDER BY number LIMIT $2`
	sqlCodesAfter = `SELECT device_id, delivery_id, entry, created_at, dropped_at, staff_code_id FROM code_entry
WHERE device_id = $1 AND number > $2 ORDER BY number LIMIT $3`
	sqlDeliveryCodes = `SELECT device_id, delivery_id, entry, created_at, dropped_at, staff_code_id FROM code_entry
WHERE delivery_id = $1 ORDER BY device_id, number`
	sqlDeliveryOrders     = `SELECT ` + deviceOrderColumns + ` FROM device_order WHERE delivery_id = $1 ORDER BY id`
	sqlDeviceOrders       = `SELECT ` + deviceOrderColumns + ` FROM device_order WHERE device_id = $1 AND ended_at IS NULL ORDER BY id`
	sqlDeviceOrder        = `SELECT ` + deviceOrderColumns + ` FROM device_order WHERE id = $1 AND business_id = $2`
	sqlDeliveryExceptions = `SELECT ` + exceptionColumns + ` FROM exception WHERE delivery_id = $1 AND delivery_id > 0 ORDER BY id`
	sqlOpenExceptions     = `SELECT ` + exceptionColumns + ` FROM exception WHERE device_id = $1 AND status = 'open' ORDER BY id`
	sqlExceptionBySource  = `SELECT ` + exceptionColumns + ` FROM exception WHERE device_id = $1 AND source = $2 AND source <> ''`
	sqlException          = `SELECT ` + exceptionColumns + ` FROM exception WHERE id = $1`
	sqlBusinessExceptions = `SELECT ` + exceptionColumns + ` FROM exception
WHERE business_id = $1 AND id < $2 AND ($3 = '' OR status = $3) AND NOT EXISTS (SELECT 1 FROM device d WHERE d.id = exception.device_id AND d.protocol = 'mock') ORDER BY id DESC LIMIT $4`
	sqlOccupancy = `SELECT d.id, COUNT(c.grid_id),
  CAST(COALESCE(SUM(CASE WHEN c.state = 'free' THEN 1 ELSE 0 END), 0) AS @int),
  CAST(COALESCE(SUM(CASE WHEN c.state = 'reserved' THEN 1 ELSE 0 END), 0) AS @int),
  CAST(COALESCE(SUM(CASE WHEN c.state = 'occupied' THEN 1 ELSE 0 END), 0) AS @int),
  CAST(COALESCE(SUM(CASE WHEN c.state = 'blocked' THEN 1 ELSE 0 END), 0) AS @int),
  CAST(COALESCE(SUM(CASE WHEN c.state = 'cleaning' THEN 1 ELSE 0 END), 0) AS @int),
  CAST(COALESCE(SUM(CASE WHEN c.door_status = 'open' THEN 1 ELSE 0 END), 0) AS @int)
FROM device d LEFT JOIN compartment c ON c.device_id = d.id AND NOT (c.col = 0 AND c.block_reason = 'removed from the layout') WHERE d.business_id = $1 AND d.protocol <> 'mock' AND d.type <> 'scan_post' GROUP BY d.id ORDER BY d.id`

	compartmentColumns = `grid_id, device_id, door, grid_code, shelf_code, pickup_number, label, col, lin, size, width, height,
  depth, pickup_enabled, door_status, occupied, state, block_reason, delivery_id, version, opening_id, dispute,
  cleared_at`
	deliveryColumns = `id, number, business_id, provider_id, device_id, reference, request_hash, status, recipient, courier,
  notify, deliver_before, collect_within_ms, due_at, sealed_codes, pickup_assigned, pickup_code_active, confirmed_by,
  expired_kind, cancel_reason, cancelled_by, failure_code, picked_up_by, picked_up_method, corrections, livemode,
  metadata, created_at, doors_opened_at, deposited_at, picked_up_at, expired_at, cancelled_at, failed_at,
  deposited_earliest, deposited_latest, handover, purpose, sender, returns_id, rotation`
	openingColumns = `id, business_id, device_id, delivery_id, kind, requester, doors, state, end_reason, confirmed_by, told,
  requested_at, opened_at, ends_at, ended_at, reason, trace`
	commandColumns = `id, device_id, opening_id, kind, body, versions, issued_at, expires_at, state, reason, doors, sent_at,
  ended_at, trace`
	deviceOrderColumns = `id, business_id, device_id, grid_code, kind, status, next_actor, delivery_id, tracking, reference,
  removal_reason, due_at, overdue_at, stored_at, ended_at`
	exceptionColumns = `id, business_id, device_id, device_order_id, delivery_id, grid_code, source, type, severity, status,
  resolution, note, opened_at, closed_at, closed_by`
)

const sqlSaveCompartment = `INSERT INTO compartment (
  grid_id, device_id, door, grid_code, shelf_code, pickup_number, label, col, lin, size, width, height, depth,
  pickup_enabled, door_status, occupied, state, block_reason, delivery_id, version, opening_id, dispute, cleared_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)
ON CONFLICT (grid_id) DO UPDATE SET
  device_id = excluded.device_id, door = excluded.door, grid_code = excluded.grid_code, shelf_code =
  excluded.shelf_code, pickup_number = excluded.pickup_number, label = excluded.label, col = excluded.col, lin
  = excluded.lin, size = excluded.size, width = excluded.width, height = excluded.height, depth =
  excluded.depth, pickup_enabled = excluded.pickup_enabled, door_status = excluded.door_status, occupied =
  excluded.occupied, state = excluded.state, block_reason = excluded.block_reason, delivery_id =
  excluded.delivery_id, version = excluded.version, opening_id = excluded.opening_id,
  dispute = excluded.dispute, cleared_at = excluded.cleared_at`

const sqlSaveDelivery = `INSERT INTO delivery (
  id, number, business_id, provider_id, device_id, reference, request_hash, status, recipient, courier,
  notify, deliver_before, collect_within_ms, due_at, sealed_codes, pickup_assigned, pickup_code_active,
  confirmed_by, expired_kind, cancel_reason, cancelled_by, failure_code, picked_up_by, picked_up_method,
  corrections, livemode, metadata, created_at, doors_opened_at, deposited_at, picked_up_at, expired_at,
  cancelled_at, failed_at, deposited_earliest, deposited_latest, handover, purpose, sender, returns_id, rotation)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41)
ON CONFLICT (id) DO UPDATE SET
  number = excluded.number, business_id = excluded.business_id, provider_id = excluded.provider_id, device_id
  = excluded.device_id, reference = excluded.reference, request_hash = excluded.request_hash, status =
  excluded.status, recipient = excluded.recipient, courier = excluded.courier, notify = excluded.notify,
  deliver_before = excluded.deliver_before, collect_within_ms = excluded.collect_within_ms, due_at =
  excluded.due_at, sealed_codes = excluded.sealed_codes, pickup_assigned = excluded.pickup_assigned,
  pickup_code_active = excluded.pickup_code_active, confirmed_by = excluded.confirmed_by, expired_kind =
  excluded.expired_kind, cancel_reason = excluded.cancel_reason, cancelled_by = excluded.cancelled_by,
  failure_code = excluded.failure_code, picked_up_by = excluded.picked_up_by, picked_up_method =
  excluded.picked_up_method, corrections = excluded.corrections, livemode = excluded.livemode, metadata =
  excluded.metadata, created_at = excluded.created_at, doors_opened_at = excluded.doors_opened_at,
  deposited_at = excluded.deposited_at, picked_up_at = excluded.picked_up_at, expired_at =
  excluded.expired_at, cancelled_at = excluded.cancelled_at, failed_at = excluded.failed_at,
  deposited_earliest = excluded.deposited_earliest, deposited_latest = excluded.deposited_latest,
  handover = excluded.handover, purpose = excluded.purpose, sender = excluded.sender, returns_id = excluded.returns_id, rotation = excluded.rotation`

const sqlSavePackage = `INSERT INTO package (
  delivery_id, position, tracking_number, reference, size, weight, length, width, height, description,
  grid_id, status, failure_code, order_id, order_package_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
ON CONFLICT (delivery_id, position) DO UPDATE SET
  tracking_number = excluded.tracking_number, reference = excluded.reference, size = excluded.size, weight =
  excluded.weight, length = excluded.length, width = excluded.width, height = excluded.height, description =
  excluded.description, grid_id = excluded.grid_id, status = excluded.status, failure_code =
  excluded.failure_code, order_id = excluded.order_id, order_package_id = excluded.order_package_id`

const sqlSaveOpening = `INSERT INTO opening (
  id, business_id, device_id, delivery_id, kind, requester, doors, state, end_reason, confirmed_by, told,
  requested_at, opened_at, ends_at, ended_at, reason, trace)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
ON CONFLICT (id) DO UPDATE SET
  business_id = excluded.business_id, device_id = excluded.device_id, delivery_id = excluded.delivery_id, kind
  = excluded.kind, requester = excluded.requester, doors = excluded.doors, state = excluded.state, end_reason
  = excluded.end_reason, confirmed_by = excluded.confirmed_by, told = excluded.told, requested_at =
  excluded.requested_at, opened_at = excluded.opened_at, ends_at = excluded.ends_at, ended_at =
  excluded.ended_at, reason = excluded.reason, trace = excluded.trace`

const sqlSaveCommand = `INSERT INTO command (
  id, device_id, opening_id, kind, body, versions, issued_at, expires_at, state, reason, doors, sent_at,
  ended_at, trace)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT (id) DO UPDATE SET
  device_id = excluded.device_id, opening_id = excluded.opening_id, kind = excluded.kind, body =
  excluded.body, versions = excluded.versions, issued_at = excluded.issued_at, expires_at =
  excluded.expires_at, state = excluded.state, reason = excluded.reason, doors = excluded.doors, sent_at =
  excluded.sent_at, ended_at = excluded.ended_at, trace = excluded.trace`

const sqlSaveCode = `INSERT INTO code_entry (
  device_id, number, delivery_id, entry, created_at, dropped_at, staff_code_id)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (device_id, number) DO UPDATE SET
  delivery_id = excluded.delivery_id, entry = excluded.entry, created_at = excluded.created_at, dropped_at =
  excluded.dropped_at, staff_code_id = excluded.staff_code_id`

const sqlSaveDeviceOrder = `INSERT INTO device_order (
  id, business_id, device_id, grid_code, kind, status, next_actor, delivery_id, tracking, reference,
  removal_reason, due_at, overdue_at, stored_at, ended_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
ON CONFLICT (id) DO UPDATE SET
  business_id = excluded.business_id, device_id = excluded.device_id, grid_code = excluded.grid_code, kind =
  excluded.kind, status = excluded.status, next_actor = excluded.next_actor, delivery_id =
  excluded.delivery_id, tracking = excluded.tracking, reference = excluded.reference, removal_reason =
  excluded.removal_reason, due_at = excluded.due_at, overdue_at = excluded.overdue_at, stored_at =
  excluded.stored_at, ended_at = excluded.ended_at`

const sqlSaveException = `INSERT INTO exception (
  id, business_id, device_id, device_order_id, delivery_id, grid_code, source, type, severity, status,
  resolution, note, opened_at, closed_at, closed_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
ON CONFLICT (id) DO UPDATE SET
  business_id = excluded.business_id, device_id = excluded.device_id, device_order_id =
  excluded.device_order_id, delivery_id = excluded.delivery_id, grid_code = excluded.grid_code, source =
  excluded.source, type = excluded.type, severity = excluded.severity, status = excluded.status, resolution =
  excluded.resolution, note = excluded.note, opened_at = excluded.opened_at, closed_at = excluded.closed_at,
  closed_by = excluded.closed_by`

func scanCompartment(r rows, c *cloud.Compartment) error {
	var width, height, depth float64 // columns of the first release, which held nothing
	err := r.Scan(&c.GridID, &c.DeviceID, &c.Door, &c.GridCode, &c.ShelfCode, &c.PickupNumber, &c.Label, &c.Column, &c.Row,
		&c.Size, &width, &height, &depth, &c.PickupEnabled, &c.DoorStatus, &c.Occupied, &c.State, &c.BlockReason,
		&c.DeliveryID, &c.Version, &c.OpeningID, parsed(&c.Dispute), when(&c.ClearedAt))
	c.Inner = cloud.Inner{Width: int(width), Height: int(height), Depth: int(depth)}
	return err
}

func scanShelf(r rows, s *cloud.Shelf) error { return r.Scan(&s.Code, &s.Position) }

func scanDelivery(r rows, d *cloud.Delivery) error {
	var within int64
	err := r.Scan(&d.ID, &d.Number, &d.BusinessID, &d.ProviderID, &d.DeviceID, &d.Reference, &d.RequestHash, &d.Status,
		parsed(&d.Recipient), parsed(&d.Courier), parsed(&d.Notify), when(&d.DeliverBefore), &within, when(&d.DueAt),
		&d.SealedCodes, &d.PickupAssigned, &d.PickupCodeActive, &d.ConfirmedBy, &d.ExpiredKind, &d.CancelReason,
		&d.CancelledBy, &d.FailureCode, &d.PickedUpBy, &d.PickedUpMethod, &d.Corrections, &d.Livemode, &d.Metadata,
		when(&d.CreatedAt), when(&d.DoorsOpenedAt), when(&d.DepositedAt), when(&d.PickedUpAt), when(&d.ExpiredAt),
		when(&d.CancelledAt), when(&d.FailedAt), when(&d.DepositedEarliest), when(&d.DepositedLatest), parsed(&d.Handover),
		&d.Purpose, parsed(&d.Sender), &d.Returns, parsed(&d.Rotation))
	d.CollectWithin = time.Duration(within) * time.Millisecond
	return err
}

func scanPackage(r rows, p *cloud.Package) error {
	return r.Scan(&p.Position, &p.TrackingNumber, &p.Reference, &p.Size, &p.Weight, &p.Length, &p.Width, &p.Height,
		&p.Description, &p.GridID, &p.Status, &p.FailureCode, &p.OrderID, &p.OrderPackage)
}

func scanOpening(r rows, o *cloud.Opening) error {
	return r.Scan(&o.ID, &o.BusinessID, &o.DeviceID, &o.DeliveryID, &o.Kind, parsed(&o.Requester), parsed(&o.Doors),
		&o.State, &o.EndReason, &o.ConfirmedBy, &o.OpenedSent, when(&o.RequestedAt), when(&o.OpenedAt), when(&o.EndsAt),
		when(&o.EndedAt), &o.Reason, &o.Trace)
}

func scanCommand(r rows, c *cloud.Command) error {
	return r.Scan(&c.ID, &c.DeviceID, &c.OpeningID, &c.Kind, &c.Body, parsed(&c.Versions), when(&c.IssuedAt),
		when(&c.ExpiresAt), &c.State, &c.Reason, parsed(&c.Doors), when(&c.SentAt), when(&c.EndedAt), &c.Trace)
}

func scanCode(r rows, c *cloud.CodeRow) error {
	var entry []byte
	if err := r.Scan(&c.DeviceID, &c.DeliveryID, &entry, when(&c.CreatedAt), when(&c.DroppedAt), &c.StaffCodeID); err != nil {
		return err
	}
	return wire.Decode(entry, &c.Entry)
}

func scanDeviceOrder(r rows, o *cloud.DeviceOrder) error {
	return r.Scan(&o.ID, &o.BusinessID, &o.DeviceID, &o.GridCode, &o.Kind, &o.Status, &o.NextActor, &o.DeliveryID,
		&o.Tracking, &o.Reference, &o.RemovalReason, when(&o.DueAt), when(&o.OverdueAt), when(&o.StoredAt), when(&o.EndedAt))
}

func scanException(r rows, e *cloud.Exception) error {
	return r.Scan(&e.ID, &e.BusinessID, &e.DeviceID, &e.DeviceOrderID, &e.DeliveryID, &e.GridCode, &e.Source, &e.Type,
		&e.Severity, &e.Status, &e.Resolution, &e.Note, when(&e.OpenedAt), when(&e.ClosedAt), &e.ClosedBy)
}

func (v lockerView) Compartments(id cloud.DeviceID) ([]cloud.Compartment, error) {
	return list(v.ctx, v.q, sqlCompartments, scanCompartment, int64(id))
}

func (v lockerView) Compartment(id cloud.DeviceID, door uint) (cloud.Compartment, error) {
	return one(v.ctx, v.q, sqlCompartment, scanCompartment, int64(id), int64(door))
}

func (v lockerView) Shelves(id cloud.DeviceID) ([]cloud.Shelf, error) {
	return list(v.ctx, v.q, sqlShelves, scanShelf, int64(id))
}

func (v lockerView) Delivery(id cloud.DeliveryID) (cloud.Delivery, error) {
	return findDelivery(v.ctx, v.q, sqlDelivery, int64(id))
}

func (v lockerView) DeliveryByNumber(number string) (cloud.Delivery, error) {
	return findDelivery(v.ctx, v.q, sqlDeliveryByNumber, number)
}

func (v lockerView) PickupSizes(ids []cloud.DeviceID) (map[cloud.DeviceID][]string, error) {
	out := map[cloud.DeviceID][]string{}
	if len(ids) == 0 {
		return out, nil
	}
	var c conditions
	var in []any
	for _, id := range ids {
		in = append(in, int64(id))
	}
	c.and("pickup_enabled AND device_id IN "+oneOf(len(in)), in...)
	_, err := list(v.ctx, v.q, "SELECT DISTINCT device_id, size FROM compartment"+c.where()+" ORDER BY device_id, size", func(r rows, _ *struct{}) error {
		var id cloud.DeviceID
		var size string
		err := r.Scan(&id, &size)
		out[id] = append(out[id], size)
		return err
	}, c.args...)
	return out, err
}

// DeliveriesOf reads what may hold packages of a shipment; PackagesOf says what does.
func (v lockerView) DeliveriesOf(s cloud.Shipment) ([]cloud.Delivery, error) {
	sql, args := sqlDeliveriesOfNumber, []any{s.Number, int64(s.ProviderID), int64(s.LinkFrom)}
	if s.OrderID != 0 {
		sql, args = sqlDeliveriesOfOrder, []any{int64(s.OrderID)}
	}
	found, err := list(v.ctx, v.q, sql, scanDelivery, args...)
	for i := range found {
		if err != nil {
			return nil, err
		}
		found[i].Packages, err = list(v.ctx, v.q, sqlPackages, scanPackage, int64(found[i].ID))
	}
	found = slices.DeleteFunc(found, func(d cloud.Delivery) bool { return len(d.PackagesOf(s)) == 0 })
	slices.Reverse(found)
	return found, err
}

// ReturnsOf lists the returns of a delivery's packages, by id.
func (v lockerView) ReturnsOf(id cloud.DeliveryID) ([]cloud.Delivery, error) {
	found, err := list(v.ctx, v.q, sqlReturnsOf, scanDelivery, int64(id))
	for i := range found {
		if err != nil {
			return nil, err
		}
		found[i].Packages, err = list(v.ctx, v.q, sqlPackages, scanPackage, int64(found[i].ID))
	}
	return found, err
}

func (v lockerView) DeliveryByReference(p cloud.ProviderID, reference string) (cloud.Delivery, error) {
	return findDelivery(v.ctx, v.q, sqlDeliveryByReference, int64(p), reference)
}

// findDelivery reads one delivery with its packages.
func findDelivery(ctx context.Context, q querier, sql string, args ...any) (cloud.Delivery, error) {
	d, err := one(ctx, q, sql, scanDelivery, args...)
	if err == nil {
		d.Packages, err = list(ctx, q, sqlPackages, scanPackage, int64(d.ID))
	}
	return d, err
}

func (v lockerView) Opening(id string) (cloud.Opening, error) {
	return one(v.ctx, v.q, sqlOpening, scanOpening, id)
}

func (v lockerView) RunningOpenings(id cloud.DeviceID) ([]cloud.Opening, error) {
	return list(v.ctx, v.q, sqlRunningOpenings, scanOpening, int64(id))
}

var historySorts = sortable{"requested_at": {name: "requested_at", idText: true}}

// DoorHistory lists a part of a device's openings since a time, of one delivery or all.
func (v lockerView) DoorHistory(id cloud.DeviceID, of cloud.DeliveryID, since time.Time, p cloud.Page) ([]cloud.Opening, cloud.Listed, error) {
	var c conditions
	c.and("device_id = $%d", int64(id))
	if of != 0 {
		c.and("delivery_id = $%d", int64(of))
	}
	c.and("requested_at >= $%d", since.UnixMilli())
	p.Sort, p.Down = "requested_at", true
	return part(v.snapshot, keyList{from: "opening", columns: openingColumns, where: c, page: p}, historySorts, scanOpening)
}

func (v lockerView) DeliveryOpenings(id cloud.DeliveryID) ([]cloud.Opening, error) {
	return list(v.ctx, v.q, sqlDeliveryOpenings, scanOpening, int64(id))
}

func (v lockerView) Command(id string) (cloud.Command, error) {
	return one(v.ctx, v.q, sqlCommand, scanCommand, id)
}

func (v lockerView) OpenCommands(id cloud.DeviceID) ([]cloud.Command, error) {
	return list(v.ctx, v.q, sqlOpenCommands, scanCommand, int64(id))
}

func (v lockerView) RecentOrders(id cloud.DeviceID) ([]cloud.Command, error) {
	return list(v.ctx, v.q, sqlRecentOrders, scanCommand, int64(id))
}

func (v lockerView) CodeRows(d cloud.DeviceID, from uint64, limit int) ([]cloud.CodeRow, error) {
	if from == 0 {
		return list(v.ctx, v.q, sqlLiveCodes, scanCode, int64(d), limit)
	}
	return list(v.ctx, v.q, sqlCodesAfter, scanCode, int64(d), int64(from), limit)
}

func (v lockerView) DeliveryCodes(id cloud.DeliveryID) ([]cloud.CodeRow, error) {
	return list(v.ctx, v.q, sqlDeliveryCodes, scanCode, int64(id))
}

func (v lockerView) DeviceOrders(id cloud.DeliveryID) ([]cloud.DeviceOrder, error) {
	return list(v.ctx, v.q, sqlDeliveryOrders, scanDeviceOrder, int64(id))
}

func (v lockerView) DeviceOrder(b cloud.BusinessID, id cloud.DeviceOrderID) (cloud.DeviceOrder, error) {
	return one(v.ctx, v.q, sqlDeviceOrder, scanDeviceOrder, int64(id), int64(b))
}

func (v lockerView) DeliveryExceptions(id cloud.DeliveryID) ([]cloud.Exception, error) {
	return list(v.ctx, v.q, sqlDeliveryExceptions, scanException, int64(id))
}

func (v lockerView) OpenExceptions(id cloud.DeviceID) ([]cloud.Exception, error) {
	return list(v.ctx, v.q, sqlOpenExceptions, scanException, int64(id))
}

func (v lockerView) Exception(b cloud.BusinessID, id cloud.ExceptionID) (cloud.Exception, error) {
	return one(v.ctx, v.q, sqlException+` AND business_id = $2`, scanException, int64(id), int64(b))
}

func (v lockerView) ExceptionBySource(id cloud.DeviceID, source string) (cloud.Exception, error) {
	return one(v.ctx, v.q, sqlExceptionBySource, scanException, int64(id), source)
}

func (w *writer) lockers(c *cloud.Changes) {
	for id, shelves := range c.Shelves {
		w.add(anything, sqlDropShelves, int64(id))
		for _, s := range shelves {
			w.add(anything, sqlAddShelf, int64(id), int64(s.Position), s.Code)
		}
	}
	for _, g := range c.Compartments {
		dispute := ""
		if g.Dispute != nil {
			dispute = text(g.Dispute)
		}
		w.add(anything, sqlSaveCompartment, int64(g.GridID), int64(g.DeviceID), int64(g.Door), g.GridCode, g.ShelfCode,
			int64(g.PickupNumber), g.Label, int64(g.Column), int64(g.Row), g.Size, float64(g.Inner.Width), float64(g.Inner.Height), float64(g.Inner.Depth),
			g.PickupEnabled, g.DoorStatus, maybe(g.Occupied), g.State, g.BlockReason, int64(g.DeliveryID), int64(g.Version),
			g.OpeningID, dispute, ms(g.ClearedAt))
	}
	for _, d := range c.Doors {
		w.add(mustExist, sqlDoor, int64(d.DeviceID), int64(d.Door), d.DoorStatus, maybe(d.Occupied), d.OpeningID, int64(d.Version))
	}
	countDeliveries(w, c.Deliveries)
	for i := range c.Deliveries {
		w.delivery(&c.Deliveries[i])
	}
	for _, r := range c.Reminders {
		if r.At.IsZero() {
			w.add(anything, sqlDropReminder, int64(r.DeliveryID))
			continue
		}
		w.add(anything, sqlSaveReminder, int64(r.DeliveryID), ms(r.At))
	}
	for _, o := range c.Openings {
		w.add(anything, sqlSaveOpening, o.ID, int64(o.BusinessID), int64(o.DeviceID), int64(o.DeliveryID), string(o.Kind),
			text(o.Requester), text(o.Doors), o.State, o.EndReason, string(o.ConfirmedBy), o.OpenedSent, ms(o.RequestedAt),
			ms(o.OpenedAt), ms(o.EndsAt), ms(o.EndedAt), o.Reason, o.Trace)
	}
	for _, m := range c.Commands {
		w.add(anything, sqlSaveCommand, m.ID, int64(m.DeviceID), m.OpeningID, string(m.Kind), blob(m.Body), text(m.Versions),
			ms(m.IssuedAt), ms(m.ExpiresAt), string(m.State), m.Reason, text(m.Doors), ms(m.SentAt), ms(m.EndedAt), m.Trace)
	}
	for _, r := range c.Codes {
		w.add(anything, sqlSaveCode, int64(r.DeviceID), int64(r.Entry.Number), int64(r.DeliveryID), wire.MustEncode(r.Entry),
			ms(r.CreatedAt), ms(r.DroppedAt), int64(r.StaffCodeID))
	}
	saveStaffCodes(w, c)
	for _, o := range c.DeviceOrders {
		w.add(anything, sqlSaveDeviceOrder, int64(o.ID), int64(o.BusinessID), int64(o.DeviceID), o.GridCode, o.Kind, o.Status,
			o.NextActor, int64(o.DeliveryID), o.Tracking, o.Reference, o.RemovalReason, ms(o.DueAt), ms(o.OverdueAt),
			ms(o.StoredAt), ms(o.EndedAt))
	}
	for _, e := range c.Exceptions {
		w.add(anything, sqlSaveException, int64(e.ID), int64(e.BusinessID), int64(e.DeviceID), int64(e.DeviceOrderID),
			int64(e.DeliveryID), e.GridCode, e.Source, e.Type, e.Severity, e.Status, e.Resolution, e.Note, ms(e.OpenedAt),
			ms(e.ClosedAt), e.ClosedBy)
	}
}

func (w *writer) delivery(d *cloud.Delivery) {
	var metadata, courier, handover, sender, rotation any = nil, "", "", "", ""
	if d.Metadata != nil {
		metadata = string(d.Metadata)
	}
	if d.Courier != nil {
		courier = text(d.Courier)
	}
	if d.Handover != nil {
		handover = text(d.Handover)
	}
	if d.Sender != nil {
		sender = text(d.Sender)
	}
	if d.Rotation != nil {
		rotation = text(d.Rotation)
	}
	w.add(anything, sqlSaveDelivery, int64(d.ID), d.Number, int64(d.BusinessID), int64(d.ProviderID), int64(d.DeviceID),
		d.Reference, blob(d.RequestHash), string(d.Status), text(d.Recipient), courier, text(d.Notify), ms(d.DeliverBefore),
		d.CollectWithin.Milliseconds(), ms(d.DueAt), blob(d.SealedCodes), d.PickupAssigned, d.PickupCodeActive,
		string(d.ConfirmedBy), d.ExpiredKind, d.CancelReason, d.CancelledBy, d.FailureCode, d.PickedUpBy, d.PickedUpMethod,
		int64(d.Corrections), d.Livemode, metadata, ms(d.CreatedAt), ms(d.DoorsOpenedAt), ms(d.DepositedAt),
		ms(d.PickedUpAt), ms(d.ExpiredAt), ms(d.CancelledAt), ms(d.FailedAt), ms(d.DepositedEarliest), ms(d.DepositedLatest), handover,
		d.Purpose, sender, int64(d.Returns), rotation)
	// Packages are rows 0, 1, … in the order given.
	w.add(anything, sqlDropPackages, int64(d.ID), int64(len(d.Packages)))
	for i, p := range d.Packages {
		w.add(anything, sqlSavePackage, int64(d.ID), int64(i), p.TrackingNumber, p.Reference, p.Size, p.Weight, p.Length,
			p.Width, p.Height, p.Description, int64(p.GridID), string(p.Status), p.FailureCode, int64(p.OrderID), int64(p.OrderPackage))
	}
}

// maybe is a bool as it is stored, NULL for unknown.
func maybe(b *bool) any {
	if b == nil {
		return nil
	}
	return *b
}

// ListCompartments lists a device's compartments by door.
func (db lockers) ListCompartments(ctx context.Context, id cloud.DeviceID) ([]cloud.Compartment, error) {
	return readList(ctx, db.database, sqlCompartments, scanCompartment, int64(id))
}

// FindCompartment finds a compartment by its grid id.
func (db lockers) FindCompartment(ctx context.Context, id cloud.GridID) (cloud.Compartment, error) {
	return readOne(ctx, db.database, sqlCompartmentByGrid, scanCompartment, int64(id))
}

// ListShelves lists a device's shelves from left to right.
func (db lockers) ListShelves(ctx context.Context, id cloud.DeviceID) ([]cloud.Shelf, error) {
	return readList(ctx, db.database, sqlShelves, scanShelf, int64(id))
}

// FindDelivery finds a delivery of a provider; another provider's is not found.
func (db lockers) FindDelivery(ctx context.Context, p cloud.ProviderID, id cloud.DeliveryID) (cloud.Delivery, error) {
	d, err := db.readDelivery(ctx, sqlDelivery, int64(id))
	if err == nil && d.ProviderID != p {
		return cloud.Delivery{}, cloud.ErrNotFound
	}
	return d, err
}

// FindDeliveryByReference finds a delivery by the provider's own reference.
func (db lockers) FindDeliveryByReference(ctx context.Context, p cloud.ProviderID, reference string) (cloud.Delivery, error) {
	return db.readDelivery(ctx, sqlDeliveryByReference, int64(p), reference)
}

func (db lockers) readDelivery(ctx context.Context, sql string, args ...any) (d cloud.Delivery, err error) {
	err = db.engine.read(ctx, func(ctx context.Context, q querier) (err error) {
		d, err = findDelivery(ctx, q, sql, args...)
		return err
	})
	return d, err
}

// ListDeviceDeliveries lists a device's deliveries that have not ended, by id,
// with their packages.
func (db lockers) ListDeviceDeliveries(ctx context.Context, id cloud.DeviceID) ([]cloud.Delivery, error) {
	return db.readDeliveries(ctx, sqlDeviceDeliveries, int64(id))
}

// DeliveryFilter chooses deliveries: those of ProviderID, or of the whole
// BusinessID when that is 0; of one Status unless it is empty; with ids below
// Before unless that is 0.
type DeliveryFilter struct {
	BusinessID cloud.BusinessID
	ProviderID cloud.ProviderID
	Status     cloud.DeliveryStatus
	Before     cloud.DeliveryID
	Limit      int
}

// ListDeliveries lists deliveries with their packages, newest first.
func (db lockers) ListDeliveries(ctx context.Context, f DeliveryFilter) ([]cloud.Delivery, error) {
	if f.ProviderID != 0 {
		return db.readDeliveries(ctx, sqlProviderDeliveries, int64(f.ProviderID), orNewest(int64(f.Before)), string(f.Status), f.Limit)
	}
	return db.readDeliveries(ctx, sqlBusinessDeliveries, int64(f.BusinessID), orNewest(int64(f.Before)), string(f.Status), f.Limit)
}

// ListDueDeliveries lists deliveries, of every business, whose deadline is not
// after now, by deadline and id: those not brought by deliver_before, but for
// those that an opening still runs for, and those not collected by due_at. after
// is the last one of the page before, zero for the first.
func (db lockers) ListDueDeliveries(ctx context.Context, now time.Time, after cloud.DueDelivery, limit int) ([]cloud.DueDelivery, error) {
	return db.due(ctx, sqlDueDeliveries, now, after, limit)
}

func (db lockers) due(ctx context.Context, sql string, now time.Time, after cloud.DueDelivery, limit int) ([]cloud.DueDelivery, error) {
	return readList(ctx, db.database, sql, func(r rows, d *cloud.DueDelivery) error {
		return r.Scan(&d.ID, &d.DeviceID, when(&d.At))
	}, now.UnixMilli(), max(0, after.At.UnixMilli()), int64(after.ID), limit)
}

func (v lockerView) Reminder(id cloud.DeliveryID) (cloud.Reminder, error) {
	return one(v.ctx, v.q, sqlReminder, func(r rows, x *cloud.Reminder) error { return r.Scan(&x.DeliveryID, when(&x.At)) }, int64(id))
}

// ListDueReminders lists deliveries, of every business, of which the recipient is to be
// reminded at now, by that time, at most limit.
func (db lockers) ListDueReminders(ctx context.Context, now time.Time, after cloud.DueDelivery, limit int) ([]cloud.DueDelivery, error) {
	return db.due(ctx, sqlDueReminders, now, after, limit)
}

func (db lockers) readDeliveries(ctx context.Context, sql string, args ...any) (ds []cloud.Delivery, err error) {
	err = db.engine.read(ctx, func(ctx context.Context, q querier) (err error) {
		if ds, err = list(ctx, q, sql, scanDelivery, args...); err != nil {
			return err
		}
		for i := range ds {
			if ds[i].Packages, err = list(ctx, q, sqlPackages, scanPackage, int64(ds[i].ID)); err != nil {
				return err
			}
		}
		return nil
	})
	return ds, err
}

// ListDeviceOrders lists what rests in a device, by id.
func (db lockers) ListDeviceOrders(ctx context.Context, id cloud.DeviceID) ([]cloud.DeviceOrder, error) {
	return readList(ctx, db.database, sqlDeviceOrders, scanDeviceOrder, int64(id))
}

// FindException finds an exception.
func (db lockers) FindException(ctx context.Context, id cloud.ExceptionID) (cloud.Exception, error) {
	return readOne(ctx, db.database, sqlException, scanException, int64(id))
}

// ListExceptions lists a business's exceptions, newest first: those of one
// status unless it is empty, with ids below before unless that is 0.
func (db lockers) ListExceptions(ctx context.Context, id cloud.BusinessID, status string, before cloud.ExceptionID, limit int) ([]cloud.Exception, error) {
	return readList(ctx, db.database, sqlBusinessExceptions, scanException, int64(id), orNewest(int64(before)), status, limit)
}

// Occupancy counts the compartments of a device.
type Occupancy struct {
	DeviceID                                                  cloud.DeviceID
	Total, Free, Reserved, Occupied, Blocked, Cleaning, Opens int // Opens: doors that stand open
}

// ListOccupancy counts the compartments of each of a business's devices, by
// device id.
func (db lockers) ListOccupancy(ctx context.Context, id cloud.BusinessID) ([]Occupancy, error) {
	return readList(ctx, db.database, sqlOccupancy, func(r rows, o *Occupancy) error {
		return r.Scan(&o.DeviceID, &o.Total, &o.Free, &o.Reserved, &o.Occupied, &o.Blocked, &o.Cleaning, &o.Opens)
	}, int64(id))
}
