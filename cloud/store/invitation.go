package store

import "github.com/postern-io/postern/cloud"

const (
	invitationColumns   = `id, business_id, hash, email, name, type, permissions, invited_by, wrong, created_at, expires_at, accepted_at, withdrawn_at, account_id`
	sqlInvitation       = `SELECT ` + invitationColumns + ` FROM invitation WHERE business_id = $1 AND id = $2`
	sqlInvitationByHash = `SELECT ` + invitationColumns + ` FROM invitation WHERE hash = $1`
	sqlSaveInvitation   = `INSERT INTO invitation (` + invitationColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT (id) DO UPDATE SET wrong = excluded.wrong, accepted_at = excluded.accepted_at, withdrawn_at = excluded.withdrawn_at, account_id = excluded.account_id`
)

var invitationSorts = sortable{"id": {}}

func scanInvitation(r rows, i *cloud.Invitation) error {
	return r.Scan(&i.ID, &i.BusinessID, fixed(i.Hash[:]), &i.Email, &i.Name, &i.Type, parsed(&i.Permissions), &i.InvitedBy, &i.Wrong, when(&i.CreatedAt), when(&i.ExpiresAt),
		when(&i.AcceptedAt), when(&i.WithdrawnAt), &i.AccountID)
}

func (v factorView) Invitation(b cloud.BusinessID, id cloud.InvitationID) (cloud.Invitation, error) {
	return one(v.ctx, v.q, v.locked(sqlInvitation), scanInvitation, int64(b), int64(id))
}

func (v factorView) InvitationByHash(hash [32]byte) (cloud.Invitation, error) {
	return one(v.ctx, v.q, v.locked(sqlInvitationByHash), scanInvitation, hash[:])
}

func (v factorView) Invitations(b cloud.BusinessID, p cloud.Page) ([]cloud.Invitation, cloud.Listed, error) {
	var c conditions
	c.and("business_id = $%d", int64(b))
	return part(v.snapshot, keyList{from: "invitation", columns: invitationColumns, where: c, page: p}, invitationSorts, scanInvitation)
}

func saveInvitations(w *writer, c *cloud.Changes) {
	for _, i := range c.Invitations {
		w.add(anything, sqlSaveInvitation, int64(i.ID), int64(i.BusinessID), i.Hash[:], i.Email, i.Name, string(i.Type), text(i.Permissions), int64(i.InvitedBy), int64(i.Wrong),
			ms(i.CreatedAt), ms(i.ExpiresAt), ms(i.AcceptedAt), ms(i.WithdrawnAt), int64(i.AccountID))
	}
}
