package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	factorColumns = `account_id, secret, pending, pending_until, step, recovery, wrong, locked_until, set_up_at, reset_at`
	sqlFactor     = `SELECT ` + factorColumns + ` FROM second_factor WHERE account_id = $1`
	sqlSaveFactor = `INSERT INTO second_factor (` + factorColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (account_id) DO UPDATE SET secret = excluded.secret, pending = excluded.pending, pending_until = excluded.pending_until,
  step = excluded.step, recovery = excluded.recovery, wrong = excluded.wrong, locked_until = excluded.locked_until,
  set_up_at = excluded.set_up_at, reset_at = excluded.reset_at`

	ticketColumns = `hash, kind, account_id, password_mark, name, life, expires_at, used_at, mailed, made_by`
	sqlTicket     = `SELECT ` + ticketColumns + ` FROM ticket WHERE hash = $1`
	sqlSaveTicket = `INSERT INTO ticket (` + ticketColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (hash) DO UPDATE SET expires_at = excluded.expires_at, used_at = excluded.used_at`
	sqlDropTickets = `DELETE FROM ticket WHERE expires_at < $1`
	sqlEndTickets  = `DELETE FROM ticket WHERE account_id = $1 AND used_at IS NULL`

	sqlLoginFailures     = `SELECT times, locked_until, over_at FROM login_failure WHERE key = $1`
	sqlSaveLoginFailures = `INSERT INTO login_failure (key, times, locked_until, over_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (key) DO UPDATE SET times = excluded.times, locked_until = excluded.locked_until, over_at = excluded.over_at`
	sqlForgetLoginFailures = `DELETE FROM login_failure WHERE key = $1`
	sqlDropLoginFailures   = `DELETE FROM login_failure WHERE over_at < $1`

	// Changes no value: logins and removals of second factors write their
	// account, so of such a one and a demand at the same moment one is run again.
	sqlMeetLogins  = `UPDATE account SET enabled = enabled WHERE business_id = $1 AND type <> 'provider'`
	sqlLimitLogins = `UPDATE token SET kind = 'setup' WHERE id = 0 AND grant_id = 0 AND kind = '' AND NOT strong AND revoked_at IS NULL AND ` + withoutFactor
	sqlLimitGrants = `UPDATE oauth_grant SET ended_at = $2 WHERE ended_at IS NULL AND NOT strong AND ` + withoutFactor
	sqlLimitAgents = `UPDATE token SET revoked_at = $2 WHERE grant_id <> 0 AND NOT strong AND revoked_at IS NULL AND ` + withoutFactor

	withoutFactor = `account_id IN (SELECT id FROM account WHERE business_id = $1 AND type <> 'provider'
    AND NOT EXISTS (SELECT 1 FROM second_factor WHERE second_factor.account_id = account.id AND second_factor.secret IS NOT NULL))`
)

func factorPurpose(id cloud.AccountID, what string) string {
	return fmt.Sprintf("second factor/%d/%s", id, what)
}

func (v factorView) SecondFactor(id cloud.AccountID) (cloud.SecondFactor, error) {
	f, err := one(v.ctx, v.q, v.locked(sqlFactor), func(r rows, f *cloud.SecondFactor) error {
		return r.Scan(&f.AccountID, &f.Secret, &f.Pending, when(&f.PendingUntil), &f.Step, parsed(&f.Recovery), &f.Wrong, when(&f.LockedUntil), when(&f.SetUpAt), when(&f.ResetAt))
	}, int64(id))
	if errors.Is(err, cloud.ErrNotFound) {
		return cloud.SecondFactor{AccountID: id}, nil
	}
	if err == nil {
		f.Secret, err = v.sealer().open(factorPurpose(id, "secret"), f.Secret)
	}
	if err == nil {
		f.Pending, err = v.sealer().open(factorPurpose(id, "pending"), f.Pending)
	}
	if err != nil {
		return f, fmt.Errorf("second factor of account %d: %w", id, err)
	}
	return f, nil
}

func (v factorView) Ticket(hash [32]byte) (cloud.Ticket, error) {
	return one(v.ctx, v.q, v.locked(sqlTicket), func(r rows, t *cloud.Ticket) error {
		var life int64
		err := r.Scan(fixed(t.Hash[:]), &t.Kind, &t.AccountID, fixed(t.PasswordMark[:]), &t.Name, &life, when(&t.ExpiresAt), when(&t.UsedAt), &t.Mailed, &t.MadeBy)
		t.Life = time.Duration(life) * time.Millisecond
		return err
	}, hash[:])
}

func (v factorView) LoginFailures(key [32]byte) (cloud.LoginFailures, error) {
	f, err := one(v.ctx, v.q, v.locked(sqlLoginFailures), func(r rows, f *cloud.LoginFailures) error {
		return r.Scan(parsed(&f.Times), when(&f.LockedUntil), when(&f.OverAt))
	}, key[:])
	f.Key = key
	if errors.Is(err, cloud.ErrNotFound) {
		err = nil
	}
	return f, err
}

func (w *writer) factors(c *cloud.Changes) {
	for _, f := range c.SecondFactors {
		w.add(anything, sqlSaveFactor, int64(f.AccountID), w.seal(factorPurpose(f.AccountID, "secret"), f.Secret), w.seal(factorPurpose(f.AccountID, "pending"), f.Pending),
			ms(f.PendingUntil), f.Step, text(f.Recovery), int64(f.Wrong), ms(f.LockedUntil), ms(f.SetUpAt), ms(f.ResetAt))
	}
	if !c.DropTickets.IsZero() {
		w.add(anything, sqlDropTickets, ms(c.DropTickets))
	}
	for _, id := range c.EndTickets {
		w.add(anything, sqlEndTickets, int64(id))
	}
	if !c.DropFailures.IsZero() {
		w.add(anything, sqlDropLoginFailures, ms(c.DropFailures))
	}
	for _, f := range c.LoginFailures {
		if f.OverAt.IsZero() {
			w.add(anything, sqlForgetLoginFailures, f.Key[:])
			continue
		}
		w.add(anything, sqlSaveLoginFailures, f.Key[:], text(f.Times), ms(f.LockedUntil), ms(f.OverAt))
	}
	for _, t := range c.Tickets {
		w.add(anything, sqlSaveTicket, t.Hash[:], string(t.Kind), int64(t.AccountID), t.PasswordMark[:], t.Name, t.Life.Milliseconds(), ms(t.ExpiresAt), ms(t.UsedAt), t.Mailed, int64(t.MadeBy))
	}
	for _, b := range c.LimitLogins {
		w.add(anything, sqlMeetLogins, int64(b))
		w.add(anything, sqlLimitLogins, int64(b))
		for _, sql := range []string{sqlLimitGrants, sqlLimitAgents} {
			w.add(anything, sql, int64(b), ms(time.Now()))
		}
	}
}
