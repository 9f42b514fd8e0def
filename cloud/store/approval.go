package store

import (
	"encoding/json"
	"fmt"

	"github.com/postern-io/postern/cloud"
)

const (
	approvalColumns = `body, sealed`
	sqlApproval     = `SELECT ` + approvalColumns + ` FROM approval WHERE business_id = $1 AND id = $2`
	sqlSaveApproval = `INSERT INTO approval (id, business_id, status, tool, requested_by, requested_at, expires_at, reviewed_by, reviewed_at, body, sealed)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, tool = excluded.tool, requested_by = excluded.requested_by, requested_at = excluded.requested_at,
  expires_at = excluded.expires_at, reviewed_by = excluded.reviewed_by, reviewed_at = excluded.reviewed_at, body = excluded.body, sealed = excluded.sealed
WHERE approval.business_id = excluded.business_id`
)

// approvalContent is what of an approval is sealed, byte for byte.
type approvalContent struct {
	Arguments []byte `json:"arguments,omitempty"`
	Preview   []byte `json:"preview,omitempty"`
	Result    []byte `json:"result,omitempty"`
	Error     []byte `json:"error,omitempty"`
}

func approvalPurpose(b cloud.BusinessID, id cloud.ApprovalID) string {
	return fmt.Sprintf("approval/%d/%s", b, id)
}

// scanApproval opens what is sealed.
func (v accountView) scanApproval(r rows, a *cloud.Approval) error {
	var sealed []byte
	if err := r.Scan(parsed(a), &sealed); err != nil {
		return err
	}
	raw, err := v.sealer().open(approvalPurpose(a.BusinessID, a.ID), sealed)
	if err != nil {
		return fmt.Errorf("content of approval %s: %w", a.ID, err)
	}
	var c approvalContent
	if err := json.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("content of approval %s: %w", a.ID, err)
	}
	a.Arguments, a.Preview, a.Result, a.Error = c.Arguments, c.Preview, c.Result, c.Error
	return nil
}

func (v accountView) Approval(b cloud.BusinessID, id cloud.ApprovalID) (cloud.Approval, error) {
	return one(v.ctx, v.q, v.locked(sqlApproval), v.scanApproval, int64(b), string(id))
}

var approvalSorts = sortable{"id": {idText: true}, "requested_at": {name: "requested_at", idText: true}, "reviewed_at": {name: "reviewed_at", idText: true}}

// Approvals lists a part of a business's approvals.
func (v accountView) Approvals(f cloud.ApprovalFilter) ([]cloud.Approval, cloud.Listed, error) {
	var c conditions
	c.and("business_id = $%d", int64(f.BusinessID))
	switch f.Status {
	case "":
	case cloud.ApprovalPending:
		c.and("status = 'pending' AND (reviewed_by <> 0 OR expires_at > $%d)", f.Now.UnixMilli())
	case cloud.ApprovalExpired:
		c.and("status = 'pending' AND reviewed_by = 0 AND expires_at <= $%d", f.Now.UnixMilli())
	default:
		c.and("status = $%d", f.Status)
	}
	if f.Decided {
		c.and("status <> 'pending'")
	}
	if f.Tool != "" {
		c.and("tool = $%d", f.Tool)
	}
	if f.RequestedBy != 0 {
		c.and("requested_by = $%d", int64(f.RequestedBy))
	}
	return part(v.snapshot, keyList{from: "approval", columns: approvalColumns, where: c, page: f.Page}, approvalSorts, v.scanApproval)
}

func (w *writer) approvals(c *cloud.Changes) {
	for _, a := range c.Approvals {
		content := text(approvalContent{a.Arguments, a.Preview, a.Result, a.Error})
		sealed := w.seal(approvalPurpose(a.BusinessID, a.ID), []byte(content))
		open := a
		open.Arguments, open.Preview, open.Result, open.Error = nil, nil, nil, nil
		w.add(mustExist, sqlSaveApproval, string(a.ID), int64(a.BusinessID), a.Status, a.Tool, int64(a.RequestedBy), ms(a.RequestedAt), ms(a.ExpiresAt),
			int64(a.ReviewedBy), ms(a.ReviewedAt), text(open), sealed)
	}
}
