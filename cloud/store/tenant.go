package store

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
)

// Tables of a business, by which all that it has is exported and removed. Each is
// walked by the first column of its key, so many rows of any business at a time, and
// of those the business's are taken: no table needs an index for it, and no step is
// large.

// tenantTable is a table with rows of businesses.
type tenantTable struct {
	name, key string // the first column of an index, behind business_id where the table is one of byBusiness
	owner     string // what says whose a row is: one of owners
	// columns are those that an export has, with spaces; "" is none. Secrets, codes,
	// digests and what was sealed are never among them.
	columns string
	// left are the columns that an export leaves out.
	left string
}

// owners are conditions on a row t that it is of the business $1.
var owners = map[string]string{
	"id":       "t.id = $1",
	"business": "t.business_id = $1",
	"driver":   "t.business = $1",
	"device":   "EXISTS (SELECT 1 FROM device x WHERE x.id = t.device_id AND x.business_id = $1)",
	"delivery": "EXISTS (SELECT 1 FROM delivery x WHERE x.id = t.delivery_id AND x.business_id = $1)",
	"outbox":   "EXISTS (SELECT 1 FROM outbox x WHERE x.id = t.delivery_id AND x.business_id = $1)",
	"endpoint": "EXISTS (SELECT 1 FROM endpoint x WHERE x.id = t.endpoint_id AND x.business_id = $1)",
	"shipment": "EXISTS (SELECT 1 FROM shipment x WHERE x.id = t.shipment_id AND x.business_id = $1)",
	"account":  "EXISTS (SELECT 1 FROM account x WHERE x.id = t.account_id AND x.business_id = $1)",
	"person":   "EXISTS (SELECT 1 FROM account x WHERE x.id = t.driver_id AND x.business_id = $1)",
	"job":      "EXISTS (SELECT 1 FROM order_job x WHERE x.id = t.job_id AND x.business_id = $1)",
	"pass":     "EXISTS (SELECT 1 FROM platform_pass x WHERE x.token_hash = t.hash AND x.business_id = $1)",
}

// tenantTables are in the order of a removal: what hangs on a row goes before it.
var tenantTables = withRows([]tenantTable{
	{"token", "hash", "account", "", ""},
	{"token", "hash", "pass", "", ""},
	{"second_factor", "account_id", "account", "", ""},
	{"identity", "business_id", "business", "issuer subject account_id created_at", "business_id"},
	{"mail", "n", "business", "id account_id provider_id delivery_id channel kind at until state attempts ended_at reason", "n business_id next_at lease_owner lease_until generation body"},
	{"ticket", "hash", "account", "", ""},
	{"oauth_grant", "id", "account", "id account_id client_id client_name host profile scopes audience created_at used_at expires_at ended_at policy strong", "code_hash code_redirect code_challenge code_expires_at code_used_at"},
	{"push_token", "driver_id", "person", "", ""},
	{"push", "n", "business", "id driver_id type test at state attempts ended_at reason", "n business_id collapse next_at lease_owner lease_until generation body"},
	{"driver", "account_id", "driver", "account_id broker_id body waits_since", "business"},
	{"driver_place", "account_id", "driver", "account_id recorded_at body", "business told_at due_at"},
	{"live_event", "id", "business", "", ""},
	{"approval", "id", "business", "id status tool requested_by requested_at expires_at reviewed_by reviewed_at body", "business_id sealed"},
	{"chat_read", "order_id", "business", "order_id account_id up_to at", "business_id"},
	{"chat_member", "order_id", "business", "order_id account_id read_to muted gone", "business_id"},
	{"chat_attachment", "id", "business", "id order_id at body", "business_id"},
	{"chat_message", "id", "business", "id order_id sender_id staff deleted body", "business_id client_id"},
	{"conversation", "order_id", "business", "id order_id closed_at reopened_at shown_at updated_at body", "business_id"},
	{"kept_file", "path", "business", "path order_id at", "shard business_id"},
	{"replay_job", "id", "business", "id customer_id status sent total created_at finished_at body", "business_id position_at position"},
	{"outbox_attempt", "delivery_id", "outbox", "delivery_id attempt at http_status duration_us error_code error remote_ip planned_at wait_reason", "url delivery_uid request_head answer_head answer_body reused repeated retry_after dns_us connect_us tls_us first_byte_us"},
	{"outbox", "id", "business", "id event_id endpoint_id provider_id event reference_id webhook_id state attempts max_attempts reason created_at delivered_at replay_of customer_id sequence reference_sequence", "business_id next_at lease_owner lease_until generation setting url slot"},
	{"outbox_event", "event_id", "business", "event_id event provider_id channel reference_type reference_id occurred_at created_at test sequence", "business_id body trace"},
	{"reference_sequence", "reference_id", "business", "", ""},
	{"report_slot", "slot", "business", "livemode slot shard deposits taken0 taken1 taken2 taken3 taken4 taken5 taken6 waited", "business_id"},
	{"connection_gap", "ended_at", "business", "device_id began_at ended_at", "business_id"},
	{"endpoint_health", "endpoint_id", "endpoint", "endpoint_id succeeded_at failed_at failing_since failures", "warned"},
	{"endpoint_hour", "endpoint_id", "endpoint", "endpoint_id hour attempts failures", ""},
	{"endpoint_sequence", "endpoint_id", "endpoint", "", ""},
	{"endpoint", "id", "business", "id provider_id kind url sandbox_url sandbox_enabled events enabled status status_since created_at customer_id format signature rate burst status_reason numbered categories", "business_id secret secret_next next_until signing_key"},
	{"webhook_setting", "business_id", "business", "customer_id body", "business_id secret secret_next next_until"},
	{"job_key", "job_id", "business", "", ""},
	{"order_job_row", "job_id", "job", "job_id row_number failed input result checked bad", ""},
	{"order_job", "id", "business", "id account_id operation status created_at finished_at body", "business_id lease_owner lease_until"},
	{"order_search", "rowid", "business", "", ""},
	{"former_number", "number_key", "business", "number_key order_id", "business_id"},
	{"route_stop", "order_id", "business", "order_id n route_id pending", "business_id"},
	{"route", "id", "business", "id broker_id driver_id date name phase body", "business_id"},
	{"broker_assignment", "id", "business", "id order_id broker_id status body", "business_id"},
	{"third_party_assignment", "id", "business", "id order_id provider_id number status body", "business_id"},
	{"interception", "id", "business", "id order_id status body", "business_id"},
	{"order_operation", "n", "business", "n order_id type at body", "business_id"},
	{"order_package", "id", "business", "id order_id number_key external_key", "business_id"},
	{"orders", "id", "business", "id customer_id number_key ref type status_id scheduled_date priority warehouse_id route_id driver_id broker_id created_at updated_at status_at body", "business_id"},
	{"proof_guess", "shipment_id", "business", "", ""},
	{"timeline_kept", "shipment_id", "shipment", "", ""}, // follow from the timeline
	{"timeline_checkpoint", "shipment_id", "shipment", "", ""},
	{"observation", "shipment_id", "shipment", "shipment_id source raw code seen_at", ""},
	{"feed_change", "n", "business", "", ""},
	{"timeline", "n", "business", "n shipment_id event_id occurred_at event withdrawn_at withdrawn_reason withdrawn_by corrected_by package_id reported", "business_id told"},
	{"shipment", "id", "business", "id number external provider_id delivery_id profile current_code last_at created_at sscc piece estimated order_id customer_id link_from", "business_id number_key external_key"},
	{"exception", "id", "business", "id device_id device_order_id delivery_id grid_code source type severity status resolution note opened_at closed_at closed_by", "business_id"},
	{"device_order", "id", "business", "id device_id grid_code kind status next_actor delivery_id tracking reference removal_reason due_at overdue_at stored_at ended_at", "business_id"},
	{"opening", "id", "business", "id device_id delivery_id kind requester doors state end_reason confirmed_by requested_at opened_at ends_at ended_at reason", "business_id told trace"},
	{"package", "delivery_id", "delivery", "delivery_id position tracking_number reference size weight length width height description grid_id status failure_code order_id order_package_id", ""},
	{"code_entry", "device_id", "device", "", ""},
	{"staff_list", "device_id", "device", "", ""},
	{"staff_rota", "business_id", "business", "", ""},
	{"device_photo", "id", "business", "id created_at updated_at device_id door opening_id taken_at", "business_id name path"},
	{"diagnosis", "id", "business", "id created_at updated_at device_id kind grid_id command_id requested_by reason until state note size_bytes digest ended_at", "business_id token_hash path"},
	{"staff_code", "id", "business", "id created_at updated_at account_id day starts_at ends_at dropped_at", "business_id sealed"},
	{"staff_code_holder", "id", "business", "id created_at updated_at account_id", "business_id"},
	{"reminder", "delivery_id", "delivery", "", ""},
	{"delivery", "id", "business", "id number provider_id device_id reference status recipient courier notify deliver_before collect_within_ms due_at pickup_assigned pickup_code_active confirmed_by expired_kind cancel_reason cancelled_by failure_code picked_up_by picked_up_method corrections livemode metadata created_at doors_opened_at deposited_at picked_up_at expired_at cancelled_at failed_at deposited_earliest deposited_latest handover purpose sender returns_id rotation", "business_id request_hash sealed_codes"},
	{"command", "id", "device", "id device_id opening_id kind issued_at expires_at state reason doors sent_at ended_at", "body versions trace"},
	{"enrolment", "hash", "device", "", ""},
	{"device_exception", "n", "device", "n device_id type detail count opened_at seen_at closed_at", ""},
	{"gap", "device_id", "device", "", ""},
	{"lane", "device_id", "device", "", ""},
	{"epoch", "epoch", "device", "", ""},
	{"journal", "n", "device", "n device_id lane first count received_at bytes", "epoch aside head"},
	{"compartment", "grid_id", "device", "grid_id device_id door grid_code shelf_code pickup_number label col lin size width height depth pickup_enabled door_status occupied state block_reason delivery_id cleared_at", "version opening_id dispute"},
	{"shelf", "device_id", "device", "device_id position code", ""},
	{"device_session", "device_id", "device", "", ""},
	{"mock_cabinet", "device_id", "device", "", ""},
	{"http_nonce", "device_id", "device", "", ""},
	{"http_device", "device_id", "device", "", ""},
	{"device_seen", "device_id", "device", "device_id firmware last_seen_at", "applied codes_held last_placed status_at status_end0 status_end1 status_epoch held_generation typed_locked program"},
	{"device", "id", "business", "id code name type address postal_code country latitude longitude timezone protocol disabled livemode owner_provider_id created_at enrolled_at config_version cut_off_at retired_at maintenance_at profile public", "business_id secret_mac sealed_code config code_list list_from up_key code_generation changed_at"},
	{"account", "id", "business", "id type email name provider_id locale enabled created_at permissions price_hidden preferred_device_id", "business_id password_hash mail_proof"},
	{"provider", "id", "business", "id code name services livemode_allowed created_at source_type scope authority", "business_id"},
	{"audit", "n", "business", "n at actor action target detail", "business_id"},
	{"platform_pass", "id", "business", "id operator reason created_at expires_at ended_at", "business_id account_id token_hash ended_by"},
	{"business_health", "business_id", "business", "", ""},
	{"business_state", "business_id", "business", "", ""},
	{"business", "id", "id", "id code name timezone support_phone support_email settings", ""},
})

// platformTables are those with rows of no business, or of those that end by
// themselves within a day.
var platformTables = []string{"id_block", "recovery", "login_failure", "node", "task", "schema_oldest", "schema_fill", "oauth_client", "setup", "certificate", "certificate_lock", "trace_push", "call_answer", "key_use", "business_job", "reset_request", "webhook_slot"}

// byBusiness are the tables with an index of their key behind the business: only its
// rows are walked.
var byBusiness = map[string]bool{"chat_read": true, "chat_member": true, "conversation": true, "audit": true, "delivery": true, "exception": true, "device": true, "route": true, "broker_assignment": true, "third_party_assignment": true, "platform_pass": true, "report_slot": true, "connection_gap": true, "reference_sequence": true}

func (t tenantTable) isByBusiness() bool {
	return byBusiness[t.name] || slices.ContainsFunc(rowTables, func(r *rowTable) bool { return r.name == t.name && r.owner.Name == "business_id" })
}

// parents are the tables that others say by whose they are. A removal leaves them
// until a round over the others found nothing.
var parents = map[string]bool{"device": true, "delivery": true, "outbox": true, "endpoint": true, "shipment": true, "account": true, "order_job": true, "platform_pass": true, "business": true, "business_state": true, "audit": true}

// keyKinds are the kinds of keys that are no numbers.
var keyKinds = map[string]string{"hash": "bytes", "epoch": "bytes", "path": "text", "job_id": "text", "number_key": "text", "event_id": "text", "reference_id": "text"}

var textIDs = map[string]bool{"approval": true, "live_event": true, "replay_job": true, "order_job": true, "opening": true, "command": true}

func (t tenantTable) kind() string {
	if t.key == "id" && textIDs[t.name] {
		return "text"
	}
	return keyKinds[t.key]
}

// tenantStep is how many keys of a table one step looks at; of uploaded files fewer, since
// an export has their contents too.
const (
	tenantStep = 1000
	fileStep   = 10
)

func (t tenantTable) step() int {
	if t.name == "kept_file" {
		return fileStep
	}
	return tenantStep
}

// at is a position as a key of the table.
func (t tenantTable) at(position string) (any, error) {
	switch t.kind() {
	case "text":
		return position, nil
	case "bytes":
		return hex.DecodeString(position)
	}
	if position == "" {
		return int64(-1 << 62), nil
	}
	return strconv.ParseInt(position, 10, 64)
}

// next is the last key of the step behind a position; more is false at the end of
// the table.
func (t tenantTable) next(ctx context.Context, q querier, b cloud.BusinessID, position string) (from, to any, text string, more bool, err error) {
	if from, err = t.at(position); err != nil {
		return nil, nil, "", false, err
	}
	than := ">"
	if position == "" && t.kind() != "" {
		than = ">="
	}
	whose, args := "", []any{from, t.step()}
	if t.isByBusiness() {
		whose, args = "business_id = $3 AND ", append(args, int64(b))
	}
	sql := fmt.Sprintf(`SELECT MAX(k) FROM (SELECT %[1]s AS k FROM %[2]s WHERE %[4]s%[1]s %[3]s $1 ORDER BY %[1]s LIMIT $2) AS found`, t.key, t.quoted(), than, whose)
	if t.kind() == "bytes" { // PostgreSQL has no greatest of bytes
		sql = fmt.Sprintf(`SELECT k FROM (SELECT %[1]s AS k FROM %[2]s WHERE %[4]s%[1]s %[3]s $1 ORDER BY %[1]s LIMIT $2) AS found ORDER BY k DESC LIMIT 1`, t.key, t.quoted(), than, whose)
	}
	switch t.kind() {
	case "text":
		var k *string
		k, err = one(ctx, q, sql, func(r rows, v **string) error { return r.Scan(v) }, args...)
		if err == nil && k != nil {
			return from, *k, *k, true, nil
		}
	case "bytes":
		var k []byte
		k, err = one(ctx, q, sql, func(r rows, v *[]byte) error { return r.Scan(v) }, args...)
		if err == nil && k != nil {
			return from, k, hex.EncodeToString(k), true, nil
		}
	default:
		var k *int64
		k, err = one(ctx, q, sql, func(r rows, v **int64) error { return r.Scan(v) }, args...)
		if err == nil && k != nil {
			return from, *k, strconv.FormatInt(*k, 10), true, nil
		}
	}
	if errors.Is(err, cloud.ErrNotFound) {
		err = nil
	}
	return from, nil, "", false, err
}

func (t tenantTable) quoted() string { return `"` + t.name + `"` }

// within is the condition of a step on rows t.
func (t tenantTable) within(position string) string {
	than := ">"
	if position == "" && t.kind() != "" {
		than = ">="
	}
	return fmt.Sprintf(`%s AND t.%s %s $2 AND t.%s <= $3`, owners[t.owner], t.key, than, t.key)
}

const (
	jobColumns          = `id, business_id, kind, requested_by, reason, step, position, part, done_rows, bytes, found, created_at, finished_at`
	sqlBusinessJob      = `SELECT ` + jobColumns + ` FROM business_job WHERE id = $1`
	sqlBusinessJobs     = `SELECT ` + jobColumns + ` FROM business_job WHERE business_id = $1 AND kind = $2 ORDER BY id DESC LIMIT $3`
	sqlOpenBusinessJobs = `SELECT ` + jobColumns + ` FROM business_job WHERE finished_at IS NULL ORDER BY id LIMIT 20`
	sqlSaveBusinessJob  = `INSERT INTO business_job (` + jobColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (id) DO UPDATE SET finished_at = excluded.finished_at`
	// Those that were out of service before keep their moment.
	sqlCutOffDevices  = `UPDATE device SET disabled = $2, cut_off_at = $3 WHERE business_id = $1 AND NOT (disabled = $2 AND cut_off_at IS NOT NULL)`
	sqlRestoreDevices = `UPDATE device SET disabled = $2, cut_off_at = NULL WHERE business_id = $1 AND cut_off_at = $3`
	sqlMoveJob        = `UPDATE business_job SET step = $4, position = $5, part = $6, done_rows = $7, bytes = $8, found = $9, finished_at = $10
WHERE id = $1 AND step = $2 AND position = $3 AND part = $11 AND found = $12 AND finished_at IS NULL`
)

func scanBusinessJob(r rows, j *cloud.BusinessJob) error {
	return r.Scan(&j.ID, &j.BusinessID, &j.Kind, &j.RequestedBy, &j.Reason, &j.Step, &j.Position, &j.Part, &j.Rows, &j.Bytes, &j.Found, when(&j.CreatedAt), when(&j.FinishedAt))
}

func jobValues(j cloud.BusinessJob) []any {
	return []any{int64(j.ID), int64(j.BusinessID), j.Kind, int64(j.RequestedBy), j.Reason, int64(j.Step), j.Position, int64(j.Part), j.Rows, j.Bytes, j.Found, ms(j.CreatedAt), ms(j.FinishedAt)}
}

// moveJob writes where a job stands, unless another node moved it.
func moveJob(from, to cloud.BusinessJob) op {
	return op{sql: sqlMoveJob, need: notStale, args: []any{int64(from.ID), int64(from.Step), from.Position, int64(to.Step), to.Position, int64(to.Part), to.Rows, to.Bytes, to.Found, ms(to.FinishedAt), int64(from.Part), from.Found}}
}

// OpenBusinessJobs lists the jobs about businesses that go on, oldest first.
func (db accounts) OpenBusinessJobs(ctx context.Context) ([]cloud.BusinessJob, error) {
	return readList(ctx, db.database, sqlOpenBusinessJobs, scanBusinessJob)
}

// RemoveStep removes some of what a business has, children before what they hang on,
// and gives the job as it stands then. The first step cuts its cabinets off; the second
// one asks empty once more, and when something lies inside stops the removal and gives
// the cabinets back. Then it goes round until a round finds nothing, so that what was
// written meanwhile goes too; then it is finished. Error: cloud.ErrStale when another
// one did the step.
func (db accounts) RemoveStep(ctx context.Context, j cloud.BusinessJob, empty func(cloud.View) (bool, error), end func(cloud.BusinessJob) (cloud.BusinessJob, []cloud.Audit)) (out cloud.BusinessJob, err error) {
	err = db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		out = j
		var ops []op
		if j.Step == 0 && j.Position == "" && j.Part == 0 { // from now on no cabinet of it is listened to
			out.Part = 1
			return nil, s.last(ctx, []op{{sql: sqlCutOffDevices, args: []any{int64(j.BusinessID), true, ms(j.CreatedAt)}}, moveJob(j, out)})
		}
		if j.Step == 0 && j.Position == "" && j.Part == 1 { // what a cabinet had sent until then is known by now
			yes, err := empty(newView(snapshot{ctx: ctx, q: s, box: db.box}))
			if err != nil {
				return nil, err
			}
			if !yes {
				out.Bytes = cloud.RemovalStopped
				ops = append(ops, op{sql: sqlRestoreDevices, args: []any{int64(j.BusinessID), false, ms(j.CreatedAt)}})
				return nil, s.last(ctx, append(append(ops, endJob(&out, end)...), moveJob(j, out)))
			}
		}
		for range stepsAtOnce { // steps without rows are gone over at once
			n, err := removeSome(ctx, s, &out)
			if err != nil {
				return nil, err
			}
			if n > 0 {
				break
			}
			if out.Step == len(tenantTables) {
				ops = endRound(&out, end)
				break
			}
		}
		return nil, s.last(ctx, append(ops, moveJob(j, out)))
	})
	return out, err
}

// stepsAtOnce is how many steps without rows one transaction goes over.
const stepsAtOnce = 20

// removeSome removes the rows of one step, or goes on to the next table.
func removeSome(ctx context.Context, s session, j *cloud.BusinessJob) (n int64, err error) {
	t := tenantTables[j.Step]
	if parents[t.name] && j.Bytes == 0 {
		j.Step, j.Position = j.Step+1, ""
		return 0, nil
	}
	from, to, text, more, err := t.next(ctx, s, j.BusinessID, j.Position)
	if err != nil {
		return 0, err
	}
	if !more {
		j.Step, j.Position = j.Step+1, ""
		return 0, nil
	}
	if err := s.apply(ctx, []op{{sql: `DELETE FROM ` + t.quoted() + ` AS t WHERE ` + t.within(j.Position), args: []any{int64(j.BusinessID), from, to}, count: &n}}); err != nil {
		return 0, fmt.Errorf("remove from %s: %w", t.name, err)
	}
	j.Position, j.Rows, j.Found = text, j.Rows+n, j.Found+n
	return n, nil
}

// endRound begins the next round of a removal, or ends it: the first rounds leave
// parents, until one finds nothing; the last one finds nothing at all.
func endRound(j *cloud.BusinessJob, end func(cloud.BusinessJob) (cloud.BusinessJob, []cloud.Audit)) []op {
	found := j.Found
	j.Step, j.Found, j.Part = 0, 0, j.Part+1 // parts are rounds
	switch {
	case found > 0:
	case j.Bytes == 0:
		j.Bytes = 1 // the next round takes parents too
	default:
		return endJob(j, end)
	}
	return nil
}

// endJob makes of a job its finished form and writes its last audit lines.
func endJob(j *cloud.BusinessJob, end func(cloud.BusinessJob) (cloud.BusinessJob, []cloud.Audit)) (ops []op) {
	var lines []cloud.Audit
	*j, lines = end(*j)
	for _, a := range lines {
		ops = append(ops, op{sql: sqlAddAudit, args: []any{int64(a.BusinessID), ms(a.At), a.Actor, a.Action, a.Target, a.Detail}})
	}
	return ops
}

// ExportStep reads some of what a business has as lines of JSON, and gives the job as
// it will stand when they are kept (KeepStep). table is "" for a step without rows.
// Rows come as they were at the moment of their step.
func (db accounts) ExportStep(ctx context.Context, j cloud.BusinessJob) (table string, lines [][]byte, out cloud.BusinessJob, err error) {
	out = j
	err = db.engine.read(ctx, func(ctx context.Context, q querier) error {
		for range stepsAtOnce {
			t := tenantTables[len(tenantTables)-1-out.Step]
			if t.columns == "" {
				if out.Step, out.Position = out.Step+1, ""; out.Step == len(tenantTables) {
					return nil
				}
				continue
			}
			from, to, text, more, err := t.next(ctx, q, j.BusinessID, out.Position)
			if err != nil {
				return err
			}
			if !more {
				if out.Step, out.Position = out.Step+1, ""; out.Step == len(tenantTables) {
					return nil
				}
				continue
			}
			columns := strings.Fields(t.columns)
			lines, err = list(ctx, q, `SELECT t.`+strings.Join(columns, ", t.")+` FROM `+t.quoted()+` AS t WHERE `+t.within(out.Position)+` ORDER BY t.`+t.key,
				func(r rows, line *[]byte) (err error) { *line, err = exported(r, columns); return err }, int64(j.BusinessID), from, to)
			if err != nil {
				return fmt.Errorf("export %s: %w", t.name, err)
			}
			out.Position = text
			if len(lines) > 0 {
				table, out.Rows = t.name, out.Rows+int64(len(lines))
				return nil
			}
		}
		return nil
	})
	return table, lines, out, err
}

// ExportOver reports whether an export has gone through every table.
func ExportOver(j cloud.BusinessJob) bool { return j.Step >= len(tenantTables) }

// KeepStep writes where an export stands. Error: cloud.ErrStale when another one did
// the step.
func (db accounts) KeepStep(ctx context.Context, from, to cloud.BusinessJob) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		return nil, s.last(ctx, []op{moveJob(from, to)})
	})
}

// exported is a row as a JSON object: JSON columns as they are, bytes in base64, and
// addresses without what may be a secret in them.
func exported(r rows, columns []string) ([]byte, error) {
	values := make([]any, len(columns))
	to := make([]any, len(columns))
	for i := range values {
		to[i] = &values[i]
	}
	if err := r.Scan(to...); err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteByte('{')
	for i, v := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		raw, err := json.Marshal(exportedValue(columns[i], v))
		if err != nil {
			return nil, err
		}
		b.WriteString(strconv.Quote(columns[i]) + ":" + string(raw))
	}
	b.WriteByte('}')
	return []byte(b.String()), nil
}

func exportedValue(column string, v any) any {
	switch x := v.(type) {
	case []byte:
		if (column == "input" || column == "result") && json.Valid(x) && utf8.Valid(x) {
			return json.RawMessage(x)
		}
		return base64.StdEncoding.EncodeToString(x)
	case string:
		switch {
		case column == "url" || column == "sandbox_url":
			u, err := url.Parse(x)
			if err != nil {
				return ""
			}
			return u.Scheme + "://" + u.Host + u.Path
		case len(x) > 1 && (x[0] == '{' || x[0] == '[') && json.Valid([]byte(x)):
			return json.RawMessage(x)
		}
	}
	return v
}
