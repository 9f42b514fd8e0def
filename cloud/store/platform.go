package store

import (
	"errors"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlBusinessState = `SELECT business_id, suspended_at, reason, suspended_by, limits FROM business_state WHERE business_id = $1`
	sqlSaveState     = `INSERT INTO business_state (business_id, suspended_at, reason, suspended_by, limits) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (business_id) DO UPDATE SET suspended_at = excluded.suspended_at, reason = excluded.reason, suspended_by = excluded.suspended_by, limits = excluded.limits`
	// A business's first state: a suspension waits at this row for decisions of its people.
	sqlBeginState    = `INSERT INTO business_state (business_id, suspended_at, reason, suspended_by, limits) VALUES ($1, NULL, '', 0, '{}') ON CONFLICT (business_id) DO NOTHING`
	sqlLastAudit     = `SELECT COALESCE(MAX(n), 0) FROM audit WHERE business_id = $1`
	sqlLastDelivery  = `SELECT COALESCE(MAX(id), 0) FROM delivery WHERE business_id = $1`
	sqlLastException = `SELECT COALESCE(MAX(id), 0) FROM exception WHERE business_id = $1`
)

// platformView reads what the platform does.
type platformView struct{ *snapshot }

func scanState(r rows, s *cloud.BusinessState) error {
	return r.Scan(&s.BusinessID, when(&s.SuspendedAt), &s.Reason, &s.By, parsed(&s.Limits))
}

func (v platformView) Businesses(p cloud.Page) ([]cloud.Business, cloud.Listed, error) {
	var c conditions
	c.and("id > $%d", int64(0))
	return part(v.snapshot, keyList{from: "business", columns: businessColumns, where: c, page: p}, byID, scanBusiness)
}

func (v platformView) BusinessState(b cloud.BusinessID) (cloud.BusinessState, error) {
	return v.state(b, v.locked(sqlBusinessState))
}

func (v platformView) Suspension(b cloud.BusinessID) (cloud.BusinessState, error) {
	sql := sqlBusinessState
	if v.locks {
		sql += " @share"
	}
	return v.state(b, sql)
}

func (v platformView) BusinessRevision(b cloud.BusinessID) (out cloud.BusinessRevision, err error) {
	for sql, to := range map[string]*int64{sqlLastAudit: &out.Audit, sqlLastDelivery: &out.Delivery, sqlLastException: &out.Exception} {
		if *to, err = one(v.ctx, v.q, sql, scanInt, int64(b)); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (v platformView) state(b cloud.BusinessID, sql string) (cloud.BusinessState, error) {
	s, err := oneKept(v.ctx, v.q, sql, scanState, int64(b))
	if errors.Is(err, cloud.ErrNotFound) {
		return cloud.BusinessState{BusinessID: b}, nil
	}
	return s, err
}

func (v platformView) BusinessJob(id cloud.BusinessJobID) (cloud.BusinessJob, error) {
	return one(v.ctx, v.q, sqlBusinessJob, scanBusinessJob, int64(id))
}

func (v platformView) BusinessJobs(b cloud.BusinessID, kind string, limit int) ([]cloud.BusinessJob, error) {
	return list(v.ctx, v.q, sqlBusinessJobs, scanBusinessJob, int64(b), kind, limit)
}

func savePlatform(w *writer, c *cloud.Changes) {
	for _, j := range c.BusinessJobs {
		w.add(anything, sqlSaveBusinessJob, jobValues(j)...)
	}
	for _, s := range c.BusinessStates {
		w.add(anything, sqlSaveState, int64(s.BusinessID), ms(s.SuspendedAt), s.Reason, int64(s.By), text(s.Limits))
	}
}
