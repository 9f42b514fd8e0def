package store

import "github.com/postern-io/postern/cloud"

const (
	passkeyColumns         = `id, account_id, credential, name, data, created_at, used_at`
	sqlPasskeys            = `SELECT ` + passkeyColumns + ` FROM passkey WHERE account_id = $1 ORDER BY id`
	sqlPasskeyByCredential = `SELECT ` + passkeyColumns + ` FROM passkey WHERE credential = $1`
	sqlSavePasskey         = `INSERT INTO passkey (` + passkeyColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, data = excluded.data, used_at = excluded.used_at`
	sqlDropPasskey = `DELETE FROM passkey WHERE id = $1`
)

func scanPasskey(r rows, p *cloud.Passkey) error {
	var data string
	err := r.Scan(&p.ID, &p.AccountID, &p.Credential, &p.Name, &data, when(&p.CreatedAt), when(&p.UsedAt))
	p.Data = []byte(data)
	return err
}

func (v factorView) Passkeys(id cloud.AccountID) ([]cloud.Passkey, error) {
	return list(v.ctx, v.q, sqlPasskeys, scanPasskey, int64(id))
}

func (v factorView) PasskeyByCredential(credential []byte) (cloud.Passkey, error) {
	return one(v.ctx, v.q, v.locked(sqlPasskeyByCredential), scanPasskey, credential)
}

func savePasskeys(w *writer, c *cloud.Changes) {
	for _, id := range c.NoPasskeys {
		w.add(anything, sqlDropPasskey, int64(id))
	}
	for _, p := range c.Passkeys {
		w.add(anything, sqlSavePasskey, int64(p.ID), int64(p.AccountID), p.Credential, p.Name, string(p.Data), ms(p.CreatedAt), ms(p.UsedAt))
	}
}
