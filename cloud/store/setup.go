package store

import (
	"errors"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlSetup     = `SELECT nonce, expires_at, keys_digest FROM setup WHERE id = 1`
	sqlSaveSetup = `UPDATE setup SET nonce = $1, expires_at = $2, keys_digest = $3 WHERE id = 1`
	sqlHasAdmin  = `SELECT 1 FROM account WHERE type = 'client_admin' LIMIT 1`
)

func (v accountView) Setup() (cloud.Setup, error) {
	return one(v.ctx, v.q, v.locked(sqlSetup), func(r rows, s *cloud.Setup) error {
		return r.Scan(&s.Nonce, when(&s.ExpiresAt), &s.KeysDigest)
	})
}

func (v accountView) HasAdministrator() (bool, error) {
	_, err := one(v.ctx, v.q, sqlHasAdmin, scanInt)
	if errors.Is(err, cloud.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (w *writer) setup(c *cloud.Changes) {
	if s := c.Setup; s != nil {
		w.add(mustExist, sqlSaveSetup, blob(s.Nonce), ms(s.ExpiresAt), blob(s.KeysDigest))
	}
}
