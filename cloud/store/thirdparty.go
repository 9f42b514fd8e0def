package store

import (
	"context"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlThirdParty         = `SELECT body FROM third_party_assignment WHERE business_id = $1 AND id = $2`
	sqlThirdPartyByNumber = `SELECT body FROM third_party_assignment WHERE business_id = $1 AND number = $2`
	sqlSaveThirdParty     = `INSERT INTO third_party_assignment (id, business_id, order_id, provider_id, number, status, body) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, body = excluded.body WHERE third_party_assignment.business_id = excluded.business_id`
)

func scanThirdParty(r rows, a *cloud.ThirdPartyAssignment) error { return r.Scan(parsed(a)) }

func (v orderView) ThirdParty(b cloud.BusinessID, id cloud.ThirdPartyID) (cloud.ThirdPartyAssignment, error) {
	return one(v.ctx, v.q, sqlThirdParty, scanThirdParty, int64(b), int64(id))
}

func (v orderView) ThirdPartyByNumber(b cloud.BusinessID, number string) (cloud.ThirdPartyAssignment, error) {
	return one(v.ctx, v.q, sqlThirdPartyByNumber, scanThirdParty, int64(b), number)
}

func (w *writer) thirdParties(c *cloud.Changes) {
	for _, a := range c.ThirdParties {
		w.add(mustExist, sqlSaveThirdParty, int64(a.ID), int64(a.BusinessID), int64(a.OrderID), int64(a.ProviderID), a.Number, string(a.Status), text(a))
	}
}

func thirdPartyList(q cloud.ThirdPartyQuery) keyList {
	return keyList{columns: "body", from: "third_party_assignment", where: assigned(q.BusinessID, "provider_id", int64(q.ProviderID), q.OrderID, string(q.Status)), page: newest(q.Page)}
}

// ListThirdParties reads a page of assignments to third parties, newest first,
// and counts all that the query asks for, up to cloud.MaxTotal. Error:
// cloud.ErrNoMark.
func (db orders) ListThirdParties(ctx context.Context, q cloud.ThirdPartyQuery) (cloud.Listed, []cloud.ThirdPartyAssignment, error) {
	return lookKeyList(ctx, db.database, thirdPartyList(q), scanThirdParty)
}
