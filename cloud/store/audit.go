package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlAudits = `SELECT n, business_id, at, actor, action, target, detail FROM audit WHERE business_id = $1 AND n < $2 ORDER BY n DESC LIMIT $3`

	sqlNewestAudit = `SELECT at FROM audit WHERE n < $1 ORDER BY n DESC LIMIT 1`

	sqlAddAudit = `INSERT INTO audit (
  business_id, at, actor, action, target, detail)
VALUES ($1, $2, $3, $4, $5, $6)`
)

// NewestAudit is the time of the last line of the audit log that was written; zero: there is
// none.
func (db accounts) NewestAudit(ctx context.Context) (at time.Time, err error) {
	at, err = readOne(ctx, db.database, sqlNewestAudit, func(r rows, at *time.Time) error { return r.Scan(when(at)) }, int64(math.MaxInt64))
	if errors.Is(err, cloud.ErrNotFound) {
		err = nil
	}
	return at, err
}

// stamped is an audit line that says by which call it came.
func stamped(a cloud.Audit, call *cloud.Call) cloud.Audit {
	if call == nil {
		return a
	}
	detail := map[string]any{}
	_ = json.Unmarshal([]byte(a.Detail), &detail) // of ours, or empty
	if detail == nil {
		detail = map[string]any{}
	}
	for k, v := range map[string]string{"operation": call.Operation, "surface": call.Surface, "ip": call.IP, "request_id": call.RequestID} {
		detail[k] = v
	}
	for k, v := range map[string]string{"server": call.Via.Server, "tool": call.Via.Tool, "token": call.Via.Token, "consent": call.Via.Consent, "approval": string(call.Via.Approval)} {
		if v != "" {
			detail[k] = v
		}
	}
	if call.Pass != 0 {
		detail["pass_id"] = int64(call.Pass)
	}
	if r := call.Via.Reviewer; r != 0 {
		detail["requested_by"] = a.Actor
		a.Actor = fmt.Sprintf("account:%d", r)
	}
	detail["outcome"] = "done"
	if call.Outcome != "" {
		detail["outcome"] = call.Outcome
	}
	a.Detail = text(detail)
	return a
}

// audits writes the lines of a decision, and the one of its call when nothing
// else tells of it. It reports whether there is any.
func (w *writer) audits(call *cloud.Call, c *cloud.Changes, now time.Time) bool {
	lines := c.Audits
	if call != nil && len(lines) == 0 && !call.Audited() && !c.Refused && !c.Unaudited {
		lines = []cloud.Audit{{BusinessID: call.BusinessID, At: now, Actor: call.Actor, Action: call.Operation, Target: call.Target}}
	}
	for _, a := range lines {
		a = stamped(a, call)
		w.add(anything, sqlAddAudit, int64(a.BusinessID), ms(a.At), a.Actor, a.Action, a.Target, a.Detail)
	}
	return len(lines) > 0
}

// AuditRow is one audit line and its place in the list.
type AuditRow struct {
	N int64
	cloud.Audit
}

// ListAudits lists a business's audit lines, newest first, before row before
// (0: from the newest), at most limit.
func (db accounts) ListAudits(ctx context.Context, id cloud.BusinessID, before int64, limit int) ([]AuditRow, error) {
	return readList(ctx, db.database, sqlAudits, func(r rows, a *AuditRow) error {
		return r.Scan(&a.N, &a.BusinessID, when(&a.At), &a.Actor, &a.Action, &a.Target, &a.Detail)
	}, int64(id), orNewest(before), limit)
}

var auditSorts = sortable{"at": {name: "at", id: "n"}}

// auditList is a list of audit lines; each choice has an index in its order.
func auditList(f cloud.AuditFilter) keyList {
	var c conditions
	c.and("business_id = $%d", int64(f.BusinessID))
	by := "at" // SQLite would take a long time's index for a rare actor
	for _, x := range []struct{ column, value string }{{"action", f.Action}, {"actor", f.Actor}, {"target", f.Target}} {
		if x.value != "" {
			by = x.column
			c.and(x.column+" = $%d", x.value)
		}
	}
	if !f.From.IsZero() {
		c.and("at >= $%d", ms(f.From))
	}
	if !f.To.IsZero() {
		c.and("at < $%d", ms(f.To))
	}
	return keyList{from: "audit @by_audit_" + by, columns: "n, business_id, at, actor, action, target, detail", where: c, page: f.Page, by: auditSorts["at"]}
}

// Audits lists a part of a business's audit lines.
func (v factorView) Audits(f cloud.AuditFilter) ([]cloud.AuditLine, cloud.Listed, error) {
	return part(v.snapshot, auditList(f), auditSorts, func(r rows, a *cloud.AuditLine) error {
		return r.Scan(&a.N, &a.BusinessID, when(&a.At), &a.Actor, &a.Action, &a.Target, &a.Detail)
	})
}
