package store

import "github.com/postern-io/postern/cloud"

const (
	identityColumns  = `business_id, issuer, subject, account_id, created_at`
	sqlIdentity      = `SELECT ` + identityColumns + ` FROM identity WHERE business_id = $1 AND issuer = $2 AND subject = $3`
	sqlIdentitiesOf  = `SELECT ` + identityColumns + ` FROM identity WHERE account_id = $1 ORDER BY issuer`
	sqlSaveIdentity  = `INSERT INTO identity (` + identityColumns + `) VALUES ($1, $2, $3, $4, $5)`
	sqlEndIdentities = `DELETE FROM identity WHERE account_id = $1`
)

func scanIdentity(r rows, i *cloud.Identity) error {
	return r.Scan(&i.BusinessID, &i.Issuer, &i.Subject, &i.AccountID, when(&i.CreatedAt))
}

func (v factorView) Identity(b cloud.BusinessID, issuer, subject string) (cloud.Identity, error) {
	return one(v.ctx, v.q, v.locked(sqlIdentity), scanIdentity, int64(b), issuer, subject)
}

func (v factorView) IdentitiesOf(id cloud.AccountID) ([]cloud.Identity, error) {
	return list(v.ctx, v.q, sqlIdentitiesOf, scanIdentity, int64(id))
}

func saveIdentities(w *writer, c *cloud.Changes) {
	for _, id := range c.EndIdentities {
		w.add(anything, sqlEndIdentities, int64(id))
	}
	for _, i := range c.Identities {
		w.add(anything, sqlSaveIdentity, int64(i.BusinessID), i.Issuer, i.Subject, int64(i.AccountID), ms(i.CreatedAt))
	}
}
