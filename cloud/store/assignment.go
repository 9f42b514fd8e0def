package store

import (
	"context"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlAssignment     = `SELECT body FROM broker_assignment WHERE business_id = $1 AND id = $2`
	sqlSaveAssignment = `INSERT INTO broker_assignment (id, business_id, order_id, broker_id, status, body) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, body = excluded.body WHERE broker_assignment.business_id = excluded.business_id`
)

func scanAssignment(r rows, a *cloud.Assignment) error { return r.Scan(parsed(a)) }

func (v orderView) Assignment(b cloud.BusinessID, id cloud.AssignmentID) (cloud.Assignment, error) {
	return one(v.ctx, v.q, sqlAssignment, scanAssignment, int64(b), int64(id))
}

func (w *writer) assignments(c *cloud.Changes) {
	for _, a := range c.Assignments {
		w.add(mustExist, sqlSaveAssignment, int64(a.ID), int64(a.BusinessID), int64(a.OrderID), int64(a.BrokerID), string(a.Status), text(a))
	}
}

func assignmentList(q cloud.AssignmentQuery) keyList {
	return keyList{columns: "body", from: "broker_assignment", where: assigned(q.BusinessID, "broker_id", int64(q.BrokerID), q.OrderID, string(q.Status)), page: newest(q.Page), exact: true}
}

// ListAssignments reads a page of assignments, newest first, and counts all that
// the query asks for, to the last one. Error: cloud.ErrNoMark.
func (db orders) ListAssignments(ctx context.Context, q cloud.AssignmentQuery) (cloud.Listed, []cloud.Assignment, error) {
	return lookKeyList(ctx, db.database, assignmentList(q), scanAssignment)
}

// assigned is the condition of a business's assignments, of all holders or of one.
func assigned(b cloud.BusinessID, holder string, id int64, o cloud.OrderID, status string) (c conditions) {
	c.and("business_id = $%d", int64(b))
	if id != 0 {
		c.and(holder+" = $%d", id)
	}
	if o != 0 {
		c.and("order_id = $%d", int64(o))
	}
	if status != "" {
		c.and("status = $%d", status)
	}
	return c
}
