package store

import (
	"context"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlAssignment     = `SELECT body FROM broker_assignment WHERE business_id = $1 AND id = $2`
	sqlSaveAssignment = `INSERT INTO broker_assignment (id, business_id, order_id, broker_id, status, body) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, body = excluded.body WHERE broker_assignment.business_id = excluded.business_id`

	assignmentsWhere = `FROM broker_assignment WHERE business_id = $1
  AND (CAST($2 AS @int) = 0 OR broker_id = $2) AND (CAST($3 AS @int) = 0 OR order_id = $3) AND ($4 = '' OR status = $4)`
	sqlCountAssignments = `SELECT COUNT(*) ` + assignmentsWhere
	sqlListAssignments  = `SELECT body ` + assignmentsWhere + ` ORDER BY id DESC LIMIT $5 OFFSET $6`
)

func scanAssignment(r rows, a *cloud.Assignment) error { return r.Scan(parsed(a)) }

func (v *view) Assignment(b cloud.BusinessID, id cloud.AssignmentID) (cloud.Assignment, error) {
	return one(v.ctx, v.q, sqlAssignment, scanAssignment, int64(b), int64(id))
}

func (w *writer) assignments(c *cloud.Changes) {
	for _, a := range c.Assignments {
		w.add(mustExist, sqlSaveAssignment, int64(a.ID), int64(a.BusinessID), int64(a.OrderID), int64(a.BrokerID), string(a.Status), text(a))
	}
}

// ListAssignments reads a page of assignments, newest first, and counts all that
// the query asks for.
func (db *DB) ListAssignments(ctx context.Context, q cloud.AssignmentQuery) (total int, found []cloud.Assignment, err error) {
	return readPage(ctx, db, sqlCountAssignments, sqlListAssignments, scanAssignment, q.Limit, q.Offset, int64(q.BusinessID), int64(q.BrokerID), int64(q.OrderID), string(q.Status))
}
