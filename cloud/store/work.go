package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// workSource is a table whose rows are work items. $1 is the business, $2 the moment.
type workSource struct {
	kinds  []string // that its rows are
	kind   string   // expression of it
	from   string
	where  string
	id     string // column that the subject names
	number bool   // the subject is a number
	// columns: type, severity, since, device id, device name, grid id, grid code, name
	// of the door, delivery id, title, status of the delivery, parcels, open door.
	columns string
	since   string
	// graded says that an index has the rows of each severity by time: each severity is
	// asked for alone. Otherwise a business has few rows.
	graded   bool
	severity string // expression; "": a scanned item has it
}

// workSources are read one after the other: each by an index of its own, and no further
// than its limit.
var workSources = []workSource{
	{
		kinds: []string{cloud.WorkException, cloud.WorkOverdue}, kind: `CASE WHEN x.type = 'overdue' THEN 'overdue' ELSE 'exception' END`,
		from:  `exception x LEFT JOIN device d ON d.id = x.device_id LEFT JOIN delivery l ON l.id = x.delivery_id`,
		where: `x.business_id = $1 AND x.status = 'open' AND COALESCE(d.protocol, '') <> 'mock'`, id: `x.id`, number: true, since: `x.opened_at`, graded: true, severity: `x.severity`,
		columns: `x.type, x.severity, x.opened_at, x.device_id, COALESCE(d.name, ''), (SELECT MIN(c.grid_id) FROM compartment c WHERE c.device_id = x.device_id AND c.grid_code = x.grid_code), x.grid_code,
		  COALESCE((SELECT MIN(NULLIF(c.label, '')) FROM compartment c WHERE c.device_id = x.device_id AND c.grid_code = x.grid_code), x.grid_code), x.delivery_id, COALESCE(l.number, ''), COALESCE(l.status, ''), 0,
		  CASE WHEN x.type = 'door_left_open' THEN COALESCE((SELECT MIN(COALESCE(NULLIF(c.label, ''), c.grid_code)) FROM compartment c JOIN device_session s ON s.device_id = c.device_id
		    WHERE c.device_id = x.device_id AND c.grid_code = x.grid_code AND c.door_status = 'open' AND c.state <> 'blocked' AND s.online), '') ELSE '' END`,
	},
	{
		kinds: []string{cloud.WorkFault}, kind: `'fault'`,
		from:  `device d JOIN device_exception x ON x.device_id = d.id AND x.closed_at IS NULL`,
		where: `d.business_id = $1 AND d.retired_at IS NULL AND d.protocol <> 'mock'`, id: `x.n`, number: true, since: `x.opened_at`, severity: faultSeverity,
		columns: `x.type, ` + faultSeverity + `, x.opened_at, d.id, d.name, 0, '', CASE WHEN x.type IN ('` + cloud.DevDoorShut + `', '` + cloud.DevCompartmentBlocked + `') THEN x.detail ELSE '' END, 0, '', '', 0, ''`,
	},
	{
		kinds: []string{cloud.WorkSilent}, kind: `'silent'`,
		from:  `device d JOIN device_session x ON x.device_id = d.id LEFT JOIN device_seen y ON y.device_id = d.id`,
		where: `d.business_id = $1 AND d.protocol <> 'mock' AND NOT d.disabled AND d.retired_at IS NULL AND d.cut_off_at IS NULL AND d.maintenance_at IS NULL AND NOT x.online AND ` + lastSeen + ` <= CAST($2 AS @int) - 600000`,
		id:    `d.id`, number: true, since: lastSeen, severity: `'medium'`,
		columns: `'offline', 'medium', ` + lastSeen + `, d.id, d.name, 0, '', '', 0, '', '', (SELECT COUNT(*) FROM compartment c WHERE c.device_id = d.id AND c.state = 'occupied'), ''`,
	},
	{
		kinds: []string{cloud.WorkEndpoint}, kind: `'endpoint'`,
		from:  `endpoint x LEFT JOIN endpoint_health h ON h.endpoint_id = x.id`,
		where: `x.business_id = $1 AND x.enabled AND x.status IN ('degraded', 'gone')`, id: `x.id`, number: true,
		since: `COALESCE(h.failing_since, x.status_since, x.created_at)`, severity: endpointSeverity,
		columns: `x.status, ` + endpointSeverity + `, COALESCE(h.failing_since, x.status_since, x.created_at), 0, '', 0, '', '', 0, x.url, '', 0, ''`,
	},
	{
		kinds: []string{cloud.WorkApproval}, kind: `'approval'`,
		from:  `approval x`,
		where: `x.business_id = $1 AND x.status = 'pending' AND x.reviewed_by = 0 AND x.expires_at > CAST($2 AS @int)`, id: `x.id`, since: `x.requested_at`,
		columns: `x.tool, 'medium', x.requested_at, 0, '', 0, '', '', 0, x.body, '', 0, ''`,
	},
}

// maxUngraded is how many items are read to choose those of a severity that is no column.
const maxUngraded = 1000

const (
	faultSeverity    = `CASE WHEN x.type IN ('` + cloud.DevBadSignature + `', '` + cloud.DevStoreFork + `', '` + cloud.DevDuplicateIdentity + `', '` + cloud.DevReportedStolen + `', '` + cloud.DevDoorShut + `') THEN 'high' WHEN x.type IN ('` + cloud.DevContentsMismatch + `', '` + cloud.DevKeypadLocked + `', '` + cloud.DevConfigRefused + `', '` + cloud.DevCompartmentBlocked + `') THEN 'medium' ELSE 'low' END`
	endpointSeverity = `CASE WHEN x.status = 'gone' THEN 'high' ELSE 'medium' END`
	lastSeen         = `(CASE WHEN COALESCE(y.last_seen_at, 0) > COALESCE(x.last_seen_at, 0) THEN y.last_seen_at ELSE x.last_seen_at END)`
)

// workView reads what waits for people.
type workView struct{ *snapshot }

// WorkItems implements cloud.WorkView.
func (v workView) WorkItems(f cloud.WorkFilter) (out []cloud.WorkItem, cut bool, err error) {
	severities := []string{wire.SeverityHigh, wire.SeverityMedium, wire.SeverityLow}
	if f.Severity != "" {
		severities = []string{f.Severity}
	}
	for _, s := range workSources {
		kinds := s.kinds
		if len(f.Kinds) > 0 {
			kinds = slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return !slices.Contains(f.Kinds, k) })
		}
		if len(kinds) == 0 {
			continue
		}
		for _, severity := range severities {
			part := severity
			if !s.graded && f.Severity == "" {
				part = ""
			}
			sql, args, ok := s.query(f, kinds, part)
			if !ok {
				break
			}
			found, err := list(v.ctx, v.q, sql, scanWork, args...)
			if err != nil {
				return nil, false, fmt.Errorf("list work items of %s: %w", strings.Join(kinds, ", "), err)
			}
			if s.severity == "" { // the gravest first, and of each severity the oldest
				found = slices.DeleteFunc(found, func(w cloud.WorkItem) bool { return f.Severity != "" && w.Severity != f.Severity })
				slices.SortStableFunc(found, func(a, b cloud.WorkItem) int {
					return slices.Index(severities, a.Severity) - slices.Index(severities, b.Severity)
				})
			}
			if len(found) > f.Limit {
				found, cut = found[:f.Limit], true
			}
			out = append(out, found...)
			if part == "" {
				break
			}
		}
	}
	return out, cut, nil
}

// query asks for one more than the limit. ok is false for a subject that no row can have.
func (s workSource) query(f cloud.WorkFilter, kinds []string, severity string) (sql string, args []any, ok bool) {
	args = []any{int64(f.BusinessID), f.Now.UnixMilli()}
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	// The moment stands in every statement: PostgreSQL refuses an argument without a use.
	where := s.where + ` AND CAST($2 AS @int) > 0`
	if len(kinds) < len(s.kinds) {
		where += ` AND ` + s.kind + ` = ` + arg(kinds[0])
	}
	if severity != "" && s.severity != "" {
		where += ` AND ` + s.severity + ` = ` + arg(severity)
	}
	switch {
	case f.Subject != "" && s.number:
		var n int64
		if _, err := fmt.Sscan(f.Subject, &n); err != nil || fmt.Sprint(n) != f.Subject {
			return "", nil, false
		}
		where += ` AND ` + s.id + ` = ` + arg(n)
	case f.Subject != "":
		where += ` AND ` + s.id + ` = ` + arg(f.Subject)
	case f.Snoozed:
		where += ` AND m.snooze_until > CAST($2 AS @int)`
	default:
		where += ` AND (m.snooze_until IS NULL OR m.snooze_until <= CAST($2 AS @int))`
	}
	if f.Owner != 0 {
		where += ` AND m.owner_id = ` + arg(int64(f.Owner))
	}
	limit := f.Limit + 1
	if s.severity == "" { // chosen among what was read
		limit = max(limit, maxUngraded)
	}
	return `SELECT ` + s.kind + `, CAST(` + s.id + ` AS TEXT), ` + s.columns + `, COALESCE(m.owner_id, 0), COALESCE(a.name, ''), COALESCE(m.note, ''), m.snooze_until
FROM ` + s.from + `
LEFT JOIN work_item m ON m.business_id = $1 AND m.kind = ` + s.kind + ` AND m.subject = CAST(` + s.id + ` AS TEXT)
LEFT JOIN account a ON a.id = m.owner_id AND a.business_id = $1
WHERE ` + where + ` ORDER BY ` + s.since + `, ` + s.id + ` LIMIT ` + arg(limit), args, true
}

func scanWork(r rows, w *cloud.WorkItem) error {
	var grid *int64
	if err := r.Scan(&w.Kind, &w.Subject, &w.Type, &w.Severity, when(&w.Since), &w.DeviceID, &w.Device, &grid, &w.GridCode, &w.Door, &w.DeliveryID, &w.Title, &w.DeliveryStatus, &w.Parcels, &w.OpenDoor,
		&w.OwnerID, &w.Owner, &w.Note, when(&w.SnoozeUntil)); err != nil {
		return err
	}
	if grid != nil {
		w.GridID = cloud.GridID(*grid)
	}
	if w.Kind == cloud.WorkFault && w.Type == cloud.DevCompartmentBlocked {
		w.Door = cloud.BlockedDoorNames(w.Door) // the detail
	} else if w.Kind == cloud.WorkFault {
		doors := cloud.ShutDoors(w.Door) // the detail
		w.Door = cloud.ShutDoorNames(doors)
		for i, d := range doors { // the fault is as old as the first door that it was ever about
			if !d.Since.IsZero() && (i == 0 || d.Since.Before(w.Since)) {
				w.Since = d.Since
			}
		}
	}
	if w.Kind == cloud.WorkApproval {
		var a cloud.Approval
		if err := parsed(&a).Scan(w.Title); err != nil {
			return fmt.Errorf("approval %s: %w", w.Subject, err)
		}
		w.Title, w.Severity, w.AskedBy = a.Summary, a.Risk, a.RequestedBy
	}
	return nil
}
