package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

const (
	sqlDevice       = `SELECT ` + deviceColumns + ` FROM device d JOIN device_seen s ON s.device_id = d.id WHERE d.id = $1`
	sqlDeviceByCode = `SELECT ` + deviceColumns + ` FROM device d JOIN device_seen s ON s.device_id = d.id WHERE d.code = $1`
	sqlDevices      = `SELECT ` + deviceColumns + ` FROM device d JOIN device_seen s ON s.device_id = d.id
WHERE d.business_id = $1 AND d.id > $2 AND d.retired_at IS NULL AND d.protocol <> 'mock' ORDER BY d.id LIMIT $3`
	sqlAllDevices = `SELECT ` + deviceColumns + ` FROM device d JOIN device_seen s ON s.device_id = d.id
WHERE d.id > $1 ORDER BY d.id LIMIT $2`
	sqlSession       = `SELECT ` + sessionColumns + ` FROM device_session WHERE device_id = $1`
	sqlSessions      = `SELECT ` + sessionColumns + ` FROM device_session WHERE device_id > $1 ORDER BY device_id LIMIT $2`
	sqlHasGeneration = `SELECT 1 FROM device_session WHERE device_id = $1 AND generation = $2`
	sqlCurrentEpoch  = `SELECT ` + epochColumns + ` FROM epoch WHERE device_id = $1 AND is_current`
	sqlEpochsSince   = `SELECT opened_at FROM epoch WHERE device_id = $1 AND opened_at >= $2 LIMIT $3`
	sqlFindEpoch     = `SELECT ` + epochColumns + ` FROM epoch WHERE epoch = $1`
	sqlLane          = `SELECT device_id, epoch, lane, next, head FROM lane WHERE device_id = $1 AND epoch = $2 AND lane = $3`
	sqlLanes         = `SELECT device_id, epoch, lane, next, head FROM lane WHERE device_id = $1 ORDER BY epoch, lane`
	sqlStartLane     = `INSERT INTO lane (device_id, epoch, lane, next, head) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (device_id, epoch, lane) DO NOTHING`
	sqlMoveLane = `UPDATE lane SET next = $4, head = $5 WHERE device_id = $1 AND epoch = $2 AND lane = $3 AND next = $6`
	sqlGaps     = `SELECT device_id, epoch, lane, first, last, reason, missing, head FROM gap
WHERE device_id = $1 AND epoch = $2 AND lane = $3 AND (last = 0 OR last >= $4) ORDER BY first`
	sqlJournal = `SELECT ` + journalColumns + ` FROM journal
WHERE device_id = $1 AND epoch = $2 AND lane = $3 AND aside = '' AND first <= $5 AND first + count > $4
  AND first >= COALESCE((SELECT MAX(first) FROM journal
    WHERE device_id = $1 AND epoch = $2 AND lane = $3 AND aside = '' AND first <= $4), 0)
ORDER BY first`
	sqlJournalAfter = `SELECT n, ` + journalColumns + ` FROM journal WHERE n > $1 ORDER BY n LIMIT $2`
	sqlAsides       = `SELECT n, ` + journalColumns + ` FROM journal WHERE device_id = $1 AND aside <> '' AND n > $2 ORDER BY n LIMIT $3`
	sqlTrimAsides   = `DELETE FROM journal WHERE n IN (SELECT n FROM (SELECT n, ROW_NUMBER() OVER (ORDER BY n DESC) AS place,
  SUM(LENGTH(bytes)) OVER (ORDER BY n DESC) AS total FROM journal WHERE device_id = $1 AND aside <> '') AS kept
WHERE place > $2 OR total > $3)`
	sqlJournalStats = `SELECT CAST(COALESCE(SUM(count), 0) AS @int), COUNT(*) FROM journal WHERE device_id = $1 AND aside = ''`
	sqlGapStats     = `SELECT CAST(COALESCE(SUM(missing), 0) AS @int), COUNT(*) FROM gap WHERE device_id = $1`
	sqlDeviceFaults = `SELECT device_id, type, detail, count, opened_at, seen_at, closed_at FROM device_exception
WHERE device_id = $1 ORDER BY n DESC LIMIT $2`
	sqlCountFault = `INSERT INTO device_exception (device_id, type, detail, count, opened_at, seen_at, closed_at)
VALUES ($1, $2, $3, $4, $5, $6, NULL)
ON CONFLICT (device_id, type) WHERE closed_at IS NULL DO UPDATE SET
  detail = excluded.detail, count = device_exception.count + excluded.count, seen_at = excluded.seen_at`
	sqlCloseFault = `UPDATE device_exception SET closed_at = $3 WHERE device_id = $1 AND type = $2 AND closed_at IS NULL`
	sqlEnrolment  = `SELECT hash, device_id, expires_at, used_at FROM enrolment WHERE hash = $1`
	sqlStartSeen  = `INSERT INTO device_seen (device_id, applied, codes_held, firmware, status_end0, status_end1)
VALUES ($1, 0, 0, '', 0, 0) ON CONFLICT (device_id) DO NOTHING`
	sqlSeen = `UPDATE device_seen SET
  last_seen_at = COALESCE($2, last_seen_at), last_placed = COALESCE($3, last_placed), applied = COALESCE($4, applied),
  codes_held = COALESCE($5, codes_held), firmware = COALESCE($6, firmware), status_at = COALESCE($7, status_at),
  status_end0 = COALESCE($8, status_end0), status_end1 = COALESCE($9, status_end1),
  status_epoch = COALESCE($10, status_epoch), held_generation = COALESCE($11, held_generation)
WHERE device_id = $1`

	sqlMock       = `SELECT device_id, state, due_at FROM mock_cabinet WHERE device_id = $1`
	sqlDueMocks   = `SELECT device_id FROM mock_cabinet WHERE due_at <= $1 ORDER BY due_at, device_id LIMIT $2`
	sqlMockDue    = `UPDATE mock_cabinet SET due_at = $2 WHERE device_id = $1`
	sqlSaveMock   = `INSERT INTO mock_cabinet (device_id, state, due_at) VALUES ($1, $2, $3) ON CONFLICT (device_id) DO UPDATE SET state = excluded.state, due_at = excluded.due_at`
	sqlHTTPDevice = `SELECT device_id, sealed_secret, state, orders, due_at FROM http_device WHERE device_id = $1`
	sqlDueHTTP    = `SELECT device_id FROM http_device WHERE due_at <= $1 ORDER BY due_at, device_id LIMIT $2`
	sqlHTTPOrders = `SELECT orders FROM http_device WHERE device_id = $1`
	sqlBeginHTTP  = `INSERT INTO http_device (device_id, sealed_secret, state, orders, due_at) VALUES ($1, $2, $3, 0, $4)
ON CONFLICT (device_id) DO UPDATE SET sealed_secret = excluded.sealed_secret, state = excluded.state, orders = 0, due_at = excluded.due_at`
	sqlSaveHTTP          = `UPDATE http_device SET state = $2, orders = $3, due_at = $4 WHERE device_id = $1`
	sqlHTTPDue           = `UPDATE http_device SET due_at = $2 WHERE device_id = $1`
	sqlDropHTTP          = `DELETE FROM http_device WHERE device_id = $1`
	sqlDropAllHTTPNonces = `DELETE FROM http_nonce WHERE device_id = $1`
	sqlDropHTTPNonces    = `DELETE FROM http_nonce WHERE device_id = $1 AND expires_at < $2`
	sqlUseHTTPNonce      = `INSERT INTO http_nonce (device_id, nonce, expires_at) VALUES ($1, $2, $3)`
	sqlMockOf            = `SELECT ` + deviceColumns + ` FROM device d JOIN device_seen s ON s.device_id = d.id WHERE d.owner_provider_id = $1 AND d.protocol = 'mock' LIMIT 1`
	sqlHasDevice         = `SELECT 1 FROM device WHERE code = $1`
	sqlMocklessOnes      = `SELECT ` + providerColumns + ` FROM provider p WHERE p.id > $1 AND p.services LIKE '%"locker"%'
  AND NOT EXISTS (SELECT 1 FROM device d WHERE d.owner_provider_id = p.id AND d.protocol = 'mock') ORDER BY p.id LIMIT $2`

	sqlTypedLocked = `UPDATE device_seen SET typed_locked = $2 WHERE device_id = $1`
	sqlProgram     = `UPDATE device_seen SET program = $2 WHERE device_id = $1 AND program <> $2`
	sqlOpenFaults  = `SELECT device_id, type, detail, count, opened_at, seen_at, closed_at FROM device_exception
WHERE device_id = $1 AND closed_at IS NULL ORDER BY n`
	sqlCountFaults = `SELECT type, COUNT(*) FROM device_exception WHERE closed_at IS NULL GROUP BY type ORDER BY type`

	deviceColumns = `d.id, d.business_id, d.code, d.name, d.type, d.address, d.latitude, d.longitude, d.timezone, d.protocol,
  d.disabled, d.livemode, d.owner_provider_id, d.created_at, d.secret_mac, d.sealed_code, d.enrolled_at, d.config,
  d.config_version, d.code_list, d.list_from, d.up_key, d.code_generation, s.applied, s.codes_held, s.firmware, s.last_seen_at, s.last_placed, s.status_at,
  s.status_end0, s.status_end1, s.status_epoch, s.held_generation, s.typed_locked, s.program, d.cut_off_at, d.retired_at, d.maintenance_at, d.profile, d.public, d.postal_code, d.country`
	sessionColumns = `device_id, generation, node, online, instance, instances, connected_at, last_seen_at`
	epochColumns   = `device_id, epoch, prev, is_current, opened_at, closed_at`
	journalColumns = `device_id, epoch, lane, first, count, bytes, head, received_at, aside`
)

const sqlSaveDevice = `INSERT INTO device (
  id, business_id, code, name, type, address, latitude, longitude, timezone, protocol, disabled, livemode,
  owner_provider_id, created_at, secret_mac, sealed_code, enrolled_at, config, config_version, code_list,
  list_from, up_key, code_generation, cut_off_at, retired_at, maintenance_at, profile, changed_at, public, postal_code, country)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31)
ON CONFLICT (id) DO UPDATE SET
  business_id = excluded.business_id, code = excluded.code, name = excluded.name, type = excluded.type,
  address = excluded.address, latitude = excluded.latitude, longitude = excluded.longitude, timezone =
  excluded.timezone, protocol = excluded.protocol, disabled = excluded.disabled, livemode = excluded.livemode,
  owner_provider_id = excluded.owner_provider_id, created_at = excluded.created_at, secret_mac =
  excluded.secret_mac, sealed_code = excluded.sealed_code, enrolled_at = excluded.enrolled_at, config =
  excluded.config, config_version = excluded.config_version, code_list = excluded.code_list,
  list_from = excluded.list_from, up_key = excluded.up_key, code_generation = excluded.code_generation,
  cut_off_at = excluded.cut_off_at, retired_at = excluded.retired_at, maintenance_at = excluded.maintenance_at,
  profile = excluded.profile, public = excluded.public, postal_code = excluded.postal_code, country = excluded.country, changed_at = CASE WHEN device.config_version = excluded.config_version AND device.code_list =
  excluded.code_list AND device.code_generation = excluded.code_generation AND device.disabled = excluded.disabled AND
  COALESCE(device.cut_off_at, 0) = COALESCE(excluded.cut_off_at, 0) THEN device.changed_at ELSE excluded.changed_at END`

const sqlSaveSession = `INSERT INTO device_session (
  device_id, generation, node, online, instance, instances, connected_at, last_seen_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (device_id) DO UPDATE SET
  generation = excluded.generation, node = excluded.node, online = excluded.online, instance =
  excluded.instance, instances = excluded.instances, connected_at = excluded.connected_at, last_seen_at =
  excluded.last_seen_at`

const sqlSaveEpoch = `INSERT INTO epoch (
  device_id, epoch, prev, is_current, opened_at, closed_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (epoch) DO UPDATE SET
  device_id = excluded.device_id, prev = excluded.prev, is_current = excluded.is_current, opened_at =
  excluded.opened_at, closed_at = excluded.closed_at`

const sqlAddBatch = `INSERT INTO journal (
  device_id, epoch, lane, first, count, bytes, head, received_at, aside)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

const sqlSaveGap = `INSERT INTO gap (
  device_id, epoch, lane, first, last, reason, missing, head)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (device_id, epoch, lane, first) DO UPDATE SET
  last = excluded.last, reason = excluded.reason, missing = excluded.missing, head = excluded.head`

const sqlSaveEnrolment = `INSERT INTO enrolment (
  hash, device_id, expires_at, used_at)
VALUES ($1, $2, $3, $4)
ON CONFLICT (hash) DO UPDATE SET
  device_id = excluded.device_id, expires_at = excluded.expires_at, used_at = excluded.used_at`

func scanDevice(r rows, d *cloud.Device) error {
	return r.Scan(&d.ID, &d.BusinessID, &d.Code, &d.Name, &d.Type, &d.Address, &d.Latitude, &d.Longitude, &d.Timezone,
		&d.Protocol, &d.Disabled, &d.Livemode, &d.OwnerProviderID, when(&d.CreatedAt), &d.SecretMAC, &d.SealedCode,
		when(&d.EnrolledAt), &d.Config, &d.ConfigVersion, &d.CodeList, &d.ListFrom, &d.UpKey, &d.CodeGeneration, &d.Applied, &d.CodesHeld, &d.Firmware,
		when(&d.LastSeenAt), when(&d.LastPlaced), when(&d.StatusAt), &d.StatusEnds[0], &d.StatusEnds[1],
		fixed(d.StatusEpoch[:]), &d.HeldGeneration, when(&d.TypedLocked), parsed(&d.Program), when(&d.CutOffAt), when(&d.RetiredAt), when(&d.MaintenanceAt), parsed(&d.Profile), &d.Public, &d.PostalCode, &d.Country)
}

func scanSession(r rows, s *cloud.Session) error {
	return r.Scan(&s.DeviceID, &s.Generation, &s.Node, &s.Online, &s.Instance, parsed(&s.Instances),
		when(&s.ConnectedAt), when(&s.LastSeenAt))
}

func scanEpoch(r rows, e *cloud.Epoch) error {
	return r.Scan(&e.DeviceID, fixed(e.Epoch[:]), fixed(e.Prev[:]), &e.Current, when(&e.OpenedAt), when(&e.ClosedAt))
}

func scanLane(r rows, l *cloud.LaneState) error {
	return r.Scan(&l.DeviceID, fixed(l.Epoch[:]), &l.Lane, &l.Next, fixed(l.Head[:]))
}

func scanGap(r rows, g *cloud.GapRange) error {
	return r.Scan(&g.DeviceID, fixed(g.Epoch[:]), &g.Lane, &g.First, &g.Last, &g.Reason, &g.Missing, fixed(g.Head[:]))
}

func scanBatch(r rows, b *cloud.JournalBatch) error { return r.Scan(batchColumns(b)...) }

func batchColumns(b *cloud.JournalBatch) []any {
	return []any{&b.DeviceID, fixed(b.Epoch[:]), &b.Lane, &b.First, &b.Count, &b.Bytes, fixed(b.Head[:]),
		when(&b.ReceivedAt), &b.Aside}
}

func scanFault(r rows, f *cloud.DeviceException) error {
	return r.Scan(&f.DeviceID, &f.Type, &f.Detail, &f.Count, when(&f.OpenedAt), when(&f.SeenAt), when(&f.ClosedAt))
}

func (v deviceView) Device(id cloud.DeviceID) (cloud.Device, error) {
	return one(v.ctx, v.q, sqlDevice, scanDevice, int64(id))
}

var deviceSorts = sortable{"id": {}, "name": {name: "name", text: true}, "code": {name: "code", text: true}}

// Devices lists a part of a business's devices.
func (v deviceView) Devices(f cloud.DeviceFilter) ([]cloud.Device, cloud.Listed, error) {
	var c conditions
	c.and("d.business_id = $%d", int64(f.BusinessID))
	const online = "EXISTS (SELECT 1 FROM device_session o WHERE o.device_id = d.id AND o.online)"
	if f.Status == cloud.StatusRetired {
		c.and("d.retired_at IS NOT NULL")
	} else {
		c.and("d.retired_at IS NULL")
	}
	switch f.Status {
	case cloud.StatusDisabled:
		c.and("d.disabled")
	case cloud.StatusMaintenance:
		c.and("NOT d.disabled AND d.maintenance_at IS NOT NULL")
	case cloud.StatusOnline:
		c.and("NOT d.disabled AND d.maintenance_at IS NULL AND " + online)
	case cloud.StatusOffline:
		c.and("NOT d.disabled AND d.maintenance_at IS NULL AND NOT " + online)
	}
	if f.Type != "" {
		c.and("d.type = $%d", f.Type)
	}
	if f.Keyword != "" {
		c.and(`(@small(d.name) LIKE $%[1]d ESCAPE '!' OR @small(d.code) LIKE $%[1]d ESCAPE '!' OR @small(d.address) LIKE $%[1]d ESCAPE '!')`, like(f.Keyword))
	}
	if f.PostalCode != "" {
		c.and("REPLACE(UPPER(d.postal_code), ' ', '') = $%d", f.PostalCode)
	}
	if f.Country != "" {
		c.and("d.country = $%d", f.Country)
	}
	if f.UsableBy != 0 {
		c.and("d.owner_provider_id IN (0, $%d) AND "+taking, int64(f.UsableBy))
	} else {
		c.and("d.protocol <> 'mock'")
	}
	if f.Livemode != nil {
		c.and("d.livemode = $%d", *f.Livemode)
	}
	if f.Public {
		c.and("d.public AND " + taking)
	}
	if f.Only != 0 {
		c.and("d.id = $%d", int64(f.Only))
	}
	if len(f.Sizes) > 0 {
		var sizes []any
		for _, size := range f.Sizes {
			sizes = append(sizes, size)
		}
		c.and("EXISTS (SELECT 1 FROM compartment c WHERE c.device_id = d.id AND c.pickup_enabled AND c.size IN "+oneOf(len(sizes))+")", sizes...)
	}
	list, sorts := keyList{from: "device d JOIN device_seen s ON s.device_id = d.id", columns: deviceColumns, where: c, prefix: "d.", page: f.Page}, deviceSorts
	if f.Near != nil {
		list.from += " JOIN (SELECT id AS device_id, " + squaredDistance(*f.Near) + " AS distance FROM device) n ON n.device_id = d.id"
		list.where.and("NOT (d.latitude = 0 AND d.longitude = 0)") // no place is known
		list.where.and("n.distance <= $%d", int64(f.Near.Meters)*int64(f.Near.Meters))
		if f.Sort == "distance" {
			list.prefix, sorts = "", sortable{"distance": {name: "n.distance", id: "d.id"}}
		}
	}
	return part(v.snapshot, list, sorts, scanDevice)
}

// taking is cloud.Device.TakesDeliveries of rows that are not retired.
const taking = `d.enrolled_at IS NOT NULL AND (d.cut_off_at IS NULL OR COALESCE(LENGTH(d.secret_mac), 0) > 0) AND (s.applied > 0 OR s.status_at IS NULL) AND NOT d.disabled AND d.maintenance_at IS NULL AND d.type <> 'scan_post'`

// squaredDistance is the square of a device's distance from the middle of a circle, in
// square metres, as cloud.Circle has it.
func squaredDistance(c cloud.Circle) string {
	north, east := c.PerDegree()
	y := fmt.Sprintf("((latitude - %f) * %f)", c.Latitude, north)
	x := fmt.Sprintf("((180 - ABS(ABS(longitude - %f) - 180)) * %f)", c.Longitude, east)
	return fmt.Sprintf("CAST(%s * %s + %s * %s AS BIGINT)", x, x, y, y)
}

// like is a pattern of texts that hold another, in small letters.
func like(part string) string {
	return "%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(strings.ToLower(part)) + "%"
}

func (v deviceView) DeviceExceptions(id cloud.DeviceID) ([]cloud.DeviceException, error) {
	return list(v.ctx, v.q, sqlOpenFaults, scanFault, int64(id))
}

func (v deviceView) Session(id cloud.DeviceID) (cloud.Session, error) {
	return one(v.ctx, v.q, sqlSession, scanSession, int64(id))
}

func (v deviceView) MockCabinet(id cloud.DeviceID) (cloud.MockCabinet, error) {
	return one(v.ctx, v.q, sqlMock, func(r rows, m *cloud.MockCabinet) error { return r.Scan(&m.DeviceID, &m.State, when(&m.DueAt)) }, int64(id))
}

func (v deviceView) HTTPDevice(id cloud.DeviceID) (cloud.HTTPDevice, error) {
	return one(v.ctx, v.q, sqlHTTPDevice, func(r rows, m *cloud.HTTPDevice) error {
		return r.Scan(&m.DeviceID, &m.SealedSecret, &m.State, &m.Orders, when(&m.DueAt))
	}, int64(id))
}

func (v deviceView) MockOf(p cloud.ProviderID) (cloud.Device, error) {
	return one(v.ctx, v.q, sqlMockOf, scanDevice, int64(p))
}

func (v deviceView) HasDevice(code string) (bool, error) {
	found, err := list(v.ctx, v.q, sqlHasDevice, scanInt, code)
	return len(found) > 0, err
}

func (v deviceView) CurrentEpoch(id cloud.DeviceID) (cloud.Epoch, error) {
	return one(v.ctx, v.q, sqlCurrentEpoch, scanEpoch, int64(id))
}

func (v deviceView) EpochsSince(d cloud.DeviceID, at time.Time, most int) (int, error) {
	found, err := list(v.ctx, v.q, sqlEpochsSince, scanInt, int64(d), at.UnixMilli(), most)
	return len(found), err
}

func (v deviceView) FindEpoch(e wire.Epoch) (cloud.Epoch, error) {
	return one(v.ctx, v.q, sqlFindEpoch, scanEpoch, e[:])
}

func (v deviceView) Lane(d cloud.DeviceID, e wire.Epoch, l wire.Lane) (cloud.LaneState, error) {
	return one(v.ctx, v.q, sqlLane, scanLane, int64(d), e[:], int64(l))
}

func (v deviceView) Gaps(d cloud.DeviceID, e wire.Epoch, l wire.Lane, from uint64) ([]cloud.GapRange, error) {
	return list(v.ctx, v.q, sqlGaps, scanGap, int64(d), e[:], int64(l), int64(from))
}

func (v deviceView) Journal(d cloud.DeviceID, e wire.Epoch, l wire.Lane, first, last uint64) ([]cloud.JournalBatch, error) {
	return list(v.ctx, v.q, sqlJournal, scanBatch, int64(d), e[:], int64(l), int64(first), int64(last))
}

// lanes are conditions as well as changes.
func (w *writer) lanes(c *cloud.Changes) {
	for _, m := range c.Lanes {
		to := m.To
		if m.From == 0 {
			w.add(notStale, sqlStartLane, int64(to.DeviceID), to.Epoch[:], int64(to.Lane), int64(to.Next), to.Head[:])
			continue
		}
		w.add(notStale, sqlMoveLane, int64(to.DeviceID), to.Epoch[:], int64(to.Lane), int64(to.Next), to.Head[:], int64(m.From))
	}
}

func (w *writer) devices(c *cloud.Changes) error {
	for _, d := range c.Devices {
		w.add(anything, sqlSaveDevice, int64(d.ID), int64(d.BusinessID), d.Code, d.Name, d.Type, d.Address, d.Latitude,
			d.Longitude, d.Timezone, d.Protocol, d.Disabled, d.Livemode, int64(d.OwnerProviderID), ms(d.CreatedAt),
			blob(d.SecretMAC), blob(d.SealedCode), ms(d.EnrolledAt), blob(d.Config), int64(d.ConfigVersion), int64(d.CodeList),
			int64(d.ListFrom), blob(d.UpKey), int64(d.CodeGeneration), ms(d.CutOffAt), ms(d.RetiredAt),
			ms(d.MaintenanceAt), text(d.Profile), time.Now().UnixMilli(), d.Public, d.PostalCode, d.Country)
		w.add(anything, sqlStartSeen, int64(d.ID))
	}
	for _, s := range c.Sessions {
		w.add(anything, sqlEndConnectionGap, int64(s.DeviceID), ms(s.ConnectedAt))
		w.add(anything, sqlSaveSession, int64(s.DeviceID), s.Generation, s.Node, s.Online, s.Instance, text(s.Instances),
			ms(s.ConnectedAt), ms(s.LastSeenAt))
	}
	w.epochs(c.Epochs)
	aside := map[cloud.DeviceID]bool{}
	for _, b := range c.Batches {
		if b.Aside != "" {
			aside[b.DeviceID] = true
		}
		if b.Bytes == nil {
			return fmt.Errorf("journal batch %d of device %d has no bytes", b.First, b.DeviceID)
		}
		w.add(anything, sqlAddBatch, int64(b.DeviceID), b.Epoch[:], int64(b.Lane), int64(b.First), int64(b.Count), b.Bytes,
			b.Head[:], ms(b.ReceivedAt), b.Aside)
	}
	for id := range aside {
		w.add(anything, sqlTrimAsides, int64(id), cloud.MaxAside, cloud.MaxAsideBytes)
	}
	for _, g := range c.Gaps {
		w.add(anything, sqlSaveGap, int64(g.DeviceID), g.Epoch[:], int64(g.Lane), int64(g.First), int64(g.Last), g.Reason,
			int64(g.Missing), g.Head[:])
	}
	for _, s := range c.Seen {
		w.seen(s)
	}
	for _, f := range c.DeviceFaults {
		if !f.ClosedAt.IsZero() {
			w.add(anything, sqlCloseFault, int64(f.DeviceID), f.Type, ms(f.ClosedAt))
			continue
		}
		w.add(anything, sqlCountFault, int64(f.DeviceID), f.Type, f.Detail, max(f.Count, 1), ms(f.OpenedAt), ms(f.SeenAt))
	}
	for _, m := range c.Mocks {
		if m.State == nil {
			w.add(anything, sqlMockDue, int64(m.DeviceID), ms(m.DueAt))
			continue
		}
		w.add(anything, sqlSaveMock, int64(m.DeviceID), m.State, ms(m.DueAt))
	}
	for _, m := range c.HTTPDevices {
		switch {
		case m.Ended:
			w.add(anything, sqlDropHTTP, int64(m.DeviceID))
			w.add(anything, sqlDropAllHTTPNonces, int64(m.DeviceID))
		case m.SealedSecret != nil:
			w.add(anything, sqlBeginHTTP, int64(m.DeviceID), m.SealedSecret, m.State, ms(m.DueAt))
		case m.State != nil:
			w.add(mustExist, sqlSaveHTTP, int64(m.DeviceID), m.State, int64(m.Orders), ms(m.DueAt))
		default:
			w.add(anything, sqlHTTPDue, int64(m.DeviceID), ms(m.DueAt))
		}
	}
	for _, n := range c.HTTPNonces {
		w.add(anything, sqlDropHTTPNonces, int64(n.DeviceID), ms(n.Now))
		w.add(anything, sqlUseHTTPNonce, int64(n.DeviceID), n.Nonce, ms(n.ExpiresAt))
	}
	for _, t := range c.Enrolments {
		w.add(anything, sqlSaveEnrolment, t.Hash[:], int64(t.DeviceID), ms(t.ExpiresAt), ms(t.UsedAt))
	}
	return nil
}

// epochs writes those that end before the one that begins: a device has one
// current epoch at every moment.
func (w *writer) epochs(es []cloud.Epoch) {
	for _, current := range []bool{false, true} {
		for _, e := range es {
			if e.Current != current {
				continue
			}
			var prev any
			if !e.Prev.IsZero() {
				prev = slices.Clone(e.Prev[:])
			}
			w.add(anything, sqlSaveEpoch, int64(e.DeviceID), slices.Clone(e.Epoch[:]), prev, e.Current, ms(e.OpenedAt), ms(e.ClosedAt))
		}
	}
}

// seen sets what s knows and leaves the rest.
func (w *writer) seen(s cloud.DeviceSeen) {
	var applied, held, generation, firmware, end0, end1, epoch any
	if s.Applied != 0 {
		applied = int64(s.Applied)
	}
	if s.CodesHeld != nil {
		held = int64(*s.CodesHeld)
	}
	if s.HeldGeneration != nil {
		generation = int64(*s.HeldGeneration)
	}
	if s.Firmware != "" {
		firmware = s.Firmware
	}
	if s.StatusEnds != nil {
		end0, end1 = int64(s.StatusEnds[0]), int64(s.StatusEnds[1])
	}
	if !s.StatusEpoch.IsZero() {
		epoch = s.StatusEpoch[:]
	}
	w.add(mustExist, sqlSeen, int64(s.DeviceID), ms(s.LastSeenAt), ms(s.LastPlaced), applied, held, firmware,
		ms(s.StatusAt), end0, end1, epoch, generation)
	if s.TypedLocked != nil {
		w.add(mustExist, sqlTypedLocked, int64(s.DeviceID), ms(*s.TypedLocked))
	}
	if s.Program != nil {
		w.add(anything, sqlProgram, int64(s.DeviceID), text(*s.Program))
	}
}

// FindDeviceByCode finds a device by the code it signs in with.
func (db devices) FindDeviceByCode(ctx context.Context, code string) (cloud.Device, error) {
	return readOne(ctx, db.database, sqlDeviceByCode, scanDevice, code)
}

// ListDevices lists a business's devices by id, those after the given one
// (0: from the first), at most limit. Retired ones and mock cabinets are left out.
func (db devices) ListDevices(ctx context.Context, id cloud.BusinessID, after cloud.DeviceID, limit int) ([]cloud.Device, error) {
	return readList(ctx, db.database, sqlDevices, scanDevice, int64(id), int64(after), limit)
}

// ListAllDevices lists the devices of every business, as ListDevices does, and
// retired ones too.
func (db devices) ListAllDevices(ctx context.Context, after cloud.DeviceID, limit int) ([]cloud.Device, error) {
	return readList(ctx, db.database, sqlAllDevices, scanDevice, int64(after), limit)
}

// ListSessions lists the sessions of all devices by device, those after the
// given one, at most limit.
func (db devices) ListSessions(ctx context.Context, after cloud.DeviceID, limit int) ([]cloud.Session, error) {
	return readList(ctx, db.database, sqlSessions, scanSession, int64(after), limit)
}

// ListDueMocks lists mock cabinets for which something is due at now, the longest due
// first, at most limit.
func (db devices) ListDueMocks(ctx context.Context, now time.Time, limit int) ([]cloud.DeviceID, error) {
	return readList(ctx, db.database, sqlDueMocks, func(r rows, id *cloud.DeviceID) error { return r.Scan(id) }, now.UnixMilli(), limit)
}

// ListDueHTTP lists devices that speak HTTP for which something is due at now, the longest
// due first.
func (db devices) ListDueHTTP(ctx context.Context, now time.Time, limit int) ([]cloud.DeviceID, error) {
	return readList(ctx, db.database, sqlDueHTTP, func(r rows, id *cloud.DeviceID) error { return r.Scan(id) }, now.UnixMilli(), limit)
}

// CountHTTPOrders counts the orders that a device that speaks HTTP was ever given.
func (db devices) CountHTTPOrders(ctx context.Context, id cloud.DeviceID) (uint64, error) {
	return readOne(ctx, db.database, sqlHTTPOrders, func(r rows, n *uint64) error { return r.Scan(n) }, int64(id))
}

// ListMockless lists providers of locker services that have no mock cabinet, by id, those
// after the given one, at most limit.
func (db devices) ListMockless(ctx context.Context, after cloud.ProviderID, limit int) ([]cloud.Provider, error) {
	return readList(ctx, db.database, sqlMocklessOnes, scanProvider, int64(after), limit)
}

// FindEnrolment finds an enrolment token, used and expired ones too.
func (db devices) FindEnrolment(ctx context.Context, hash [32]byte) (cloud.EnrolmentToken, error) {
	return readOne(ctx, db.database, sqlEnrolment, func(r rows, t *cloud.EnrolmentToken) error {
		return r.Scan(fixed(t.Hash[:]), &t.DeviceID, when(&t.ExpiresAt), when(&t.UsedAt))
	}, hash[:])
}

// ListLanes lists where every lane of a device stands.
func (db devices) ListLanes(ctx context.Context, id cloud.DeviceID) ([]cloud.LaneState, error) {
	return readList(ctx, db.database, sqlLanes, scanLane, int64(id))
}

// ListDeviceExceptions lists a device's exceptions, open and closed, newest
// first, at most limit.
func (db devices) ListDeviceExceptions(ctx context.Context, id cloud.DeviceID, limit int) ([]cloud.DeviceException, error) {
	return readList(ctx, db.database, sqlDeviceFaults, scanFault, int64(id), limit)
}

// FaultCount is how many devices have an open exception of a type.
type FaultCount struct {
	Type  string
	Count int64
}

// CountDeviceExceptions counts the open device exceptions of all devices by type.
func (db devices) CountDeviceExceptions(ctx context.Context) ([]FaultCount, error) {
	return readList(ctx, db.database, sqlCountFaults, func(r rows, f *FaultCount) error { return r.Scan(&f.Type, &f.Count) })
}

// JournalRow is a stored batch and its place in the journal of the whole
// deployment. Places of one device's batches grow in the order of storing.
type JournalRow struct {
	N int64
	cloud.JournalBatch
}

func scanJournalRow(r rows, j *JournalRow) error {
	return r.Scan(append([]any{&j.N}, batchColumns(&j.JournalBatch)...)...)
}

// JournalAfter lists stored batches of all devices, those put aside too, that
// come after place n, at most limit. Going on from the last place until nothing
// comes reads the whole journal.
func (db devices) JournalAfter(ctx context.Context, n int64, limit int) ([]JournalRow, error) {
	return readList(ctx, db.database, sqlJournalAfter, scanJournalRow, n, limit)
}

// ListAsides lists the batches of a device that are kept as evidence only, oldest
// first, at most limit: the newest of all there were (see cloud.MaxAside).
func (db devices) ListAsides(ctx context.Context, id cloud.DeviceID, n int64, limit int) ([]JournalRow, error) {
	return readList(ctx, db.database, sqlAsides, scanJournalRow, int64(id), n, limit)
}

// Stats is what the journal holds of a device.
type Stats struct {
	Records int64 // stored, aside ones not counted
	Batches int64
	Missing int64 // records that gaps name and no other record fills
	Gaps    int64
}

// JournalStats adds up a device's journal.
func (db devices) JournalStats(ctx context.Context, id cloud.DeviceID) (Stats, error) {
	var s Stats
	err := db.engine.read(ctx, func(ctx context.Context, q querier) (err error) {
		s, err = one(ctx, q, sqlJournalStats, func(r rows, s *Stats) error { return r.Scan(&s.Records, &s.Batches) }, int64(id))
		if err != nil {
			return err
		}
		g, err := one(ctx, q, sqlGapStats, func(r rows, s *Stats) error { return r.Scan(&s.Missing, &s.Gaps) }, int64(id))
		s.Missing, s.Gaps = g.Missing, g.Gaps
		return err
	})
	return s, err
}
