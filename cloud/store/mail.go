package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	mailColumns = `id, business_id, account_id, kind, at, until, state, attempts, next_at, ended_at, reason, generation, body`

	sqlSaveMail = `INSERT INTO mail (id, business_id, account_id, kind, at, until, state, attempts, next_at, ended_at, reason, lease_owner, lease_until, generation, body)
VALUES ($1, $2, $3, $4, $5, $6, 'waiting', 0, $5, NULL, '', '', NULL, 0, $7)`
	sqlMailDue = `SELECT 1 FROM mail WHERE state = 'waiting' AND next_at <= $1 AND (lease_owner = '' OR lease_until < @now) LIMIT 1`
	// An attempt counts from when it is begun: a node that ends in the middle of
	// each does not go on for ever.
	sqlClaimMails = `UPDATE mail SET lease_owner = $1, lease_until = @lease, generation = generation + 1, attempts = attempts + 1
WHERE n IN (SELECT n FROM mail WHERE state = 'waiting' AND next_at <= $2 AND (lease_owner = '' OR lease_until < @now)
  ORDER BY next_at, n LIMIT $3 @skip)
RETURNING ` + mailColumns
	sqlEndMail = `UPDATE mail SET state = $4, reason = $5, ended_at = $6, lease_owner = '', lease_until = NULL, body = NULL
WHERE id = $1 AND lease_owner = $2 AND generation = $3 AND state = 'waiting'`
	sqlRetryMail = `UPDATE mail SET reason = $4, next_at = $5, lease_owner = '', lease_until = NULL
WHERE id = $1 AND lease_owner = $2 AND generation = $3 AND state = 'waiting'`
	sqlReleaseMail    = `UPDATE mail SET lease_owner = '', lease_until = NULL WHERE state = 'waiting' AND lease_owner <> ''`
	sqlReleaseOwnMail = `UPDATE mail SET lease_owner = '', lease_until = NULL WHERE state = 'waiting' AND lease_owner = $1 AND lease_owner <> ''`
	sqlDropMails      = `DELETE FROM mail WHERE n IN (SELECT n FROM mail WHERE at < $1 AND state <> 'waiting' ORDER BY at, n LIMIT $2)`
	sqlMails          = `SELECT ` + mailColumns + ` FROM mail WHERE business_id = $1 ORDER BY n DESC LIMIT $2`

	requestColumns = `digest, email, language, at, done_at`
	sqlRequest     = `SELECT ` + requestColumns + ` FROM reset_request WHERE digest = $1`
	sqlRequests    = `SELECT ` + requestColumns + ` FROM reset_request WHERE done_at IS NULL ORDER BY at LIMIT $1`
	sqlSaveRequest = `INSERT INTO reset_request (` + requestColumns + `) VALUES ($1, $2, $3, $4, NULL)
ON CONFLICT (digest) DO UPDATE SET language = excluded.language, at = excluded.at, done_at = NULL WHERE reset_request.at <= excluded.at - $5`
	sqlEndRequest   = `UPDATE reset_request SET done_at = $2 WHERE digest = $1`
	sqlDropRequests = `DELETE FROM reset_request WHERE digest IN (SELECT digest FROM reset_request WHERE at < $1 ORDER BY at LIMIT $2)`
)

func mailPurpose(id string) string { return "mail/" + id }

func saveMails(w *writer, c *cloud.Changes) {
	for _, m := range c.Mails {
		w.add(anything, sqlSaveMail, m.ID, int64(m.BusinessID), int64(m.AccountID), string(m.Kind), ms(m.At), ms(m.Until), w.seal(mailPurpose(m.ID), []byte(text(m.MailText))))
	}
	for _, r := range c.ResetRequests {
		w.add(anything, sqlSaveRequest, r.Digest[:], r.Email, r.Language, ms(r.At), cloud.ResetPause.Milliseconds())
	}
	for _, r := range c.DoneResetRequests {
		w.add(anything, sqlEndRequest, r.Digest[:], ms(r.DoneAt))
	}
}

func scanRequest(r rows, q *cloud.ResetRequest) error {
	return r.Scan(fixed(q.Digest[:]), &q.Email, &q.Language, when(&q.At), when(&q.DoneAt))
}

func (v factorView) ResetRequest(digest [32]byte) (cloud.ResetRequest, error) {
	return one(v.ctx, v.q, v.locked(sqlRequest), scanRequest, digest[:])
}

// ListResetRequests lists requests that were not looked at yet, the oldest first.
func (db pushes) ListResetRequests(ctx context.Context, limit int) ([]cloud.ResetRequest, error) {
	return readList(ctx, db.database, sqlRequests, scanRequest, limit)
}

func (b sealer) scanMail(r rows, m *cloud.MailRow) error {
	var body []byte
	if err := r.Scan(&m.ID, &m.BusinessID, &m.AccountID, &m.Kind, when(&m.At), when(&m.Until), &m.State, &m.Attempts, when(&m.NextAt), when(&m.EndedAt), &m.Reason, &m.Generation, &body); err != nil {
		return err
	}
	plain, err := b.open(mailPurpose(m.ID), body)
	if err == nil && plain != nil {
		err = json.Unmarshal(plain, &m.MailText)
	}
	if err != nil {
		return fmt.Errorf("mail %s: %w", m.ID, err)
	}
	return nil
}

// MailDue reports whether there is a mail that ClaimMails would take.
func (db pushes) MailDue(ctx context.Context, now time.Time) (bool, error) {
	found, err := readList(ctx, db.database, sqlMailDue, scanInt, ms(now))
	return len(found) > 0, err
}

// ClaimMails begins an attempt of mails that are due at now and that no node tries,
// the oldest first. A node that does not end or put off one within Lease loses it.
func (db pushes) ClaimMails(ctx context.Context, now time.Time, limit int) (out []cloud.MailRow, err error) {
	err = db.write(ctx, 0, func(ctx context.Context, s session) (_ *cloud.Changes, err error) {
		out, err = list(ctx, changing{s}, sqlClaimMails, sealer{db.box}.scanMail, db.node, ms(now), limit)
		return nil, err
	})
	return out, err
}

// EndMail writes what became of a mail and erases its text; nothing when another
// node has it by now.
func (db pushes) EndMail(ctx context.Context, m cloud.MailRow) error {
	return db.exec(ctx, sqlEndMail, m.ID, db.node, m.Generation, string(m.State), m.Reason, ms(m.EndedAt))
}

// RetryMail puts a mail off until NextAt.
func (db pushes) RetryMail(ctx context.Context, m cloud.MailRow) error {
	return db.exec(ctx, sqlRetryMail, m.ID, db.node, m.Generation, m.Reason, ms(m.NextAt))
}

// RecoverMails gives back what an earlier run of this node was trying; on SQLite,
// where there is one node, whatever its name was.
func (db pushes) RecoverMails(ctx context.Context) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		if s.postgres() {
			return nil, s.last(ctx, []op{{sql: sqlReleaseOwnMail, args: []any{db.node}}})
		}
		return nil, s.last(ctx, []op{{sql: sqlReleaseMail}})
	})
}

// DropMails removes mails that have ended, and requests, from before a time each.
func (db pushes) DropMails(ctx context.Context, mails, requests time.Time) error {
	if err := db.inSteps(ctx, sqlDropMails, ms(mails)); err != nil {
		return err
	}
	return db.inSteps(ctx, sqlDropRequests, ms(requests))
}

// ListMails lists the newest mails of a business; the text of those that have ended
// is gone.
func (db pushes) ListMails(ctx context.Context, b cloud.BusinessID, limit int) ([]cloud.MailRow, error) {
	return readList(ctx, db.database, sqlMails, sealer{db.box}.scanMail, int64(b), limit)
}
