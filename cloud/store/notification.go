package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	notificationColumns = `id, business_id, account_id, provider_id, delivery_id, channel, kind, at, until, state, attempts, next_at, ended_at, reason, generation, body`

	sqlSaveNotification = `INSERT INTO mail (id, business_id, account_id, provider_id, delivery_id, channel, kind, at, until, state, attempts, next_at, ended_at, reason, lease_owner, lease_until, generation, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, $11, $12, '', '', NULL, 0, $13)`
	sqlNotificationDue = `SELECT 1 FROM mail WHERE state = 'waiting' AND channel = $1 AND next_at <= $2 AND (lease_owner = '' OR lease_until < @now) LIMIT 1`
	// An attempt counts from when it is begun: a node that ends in the middle of
	// each does not go on for ever.
	sqlClaimNotifications = `UPDATE mail SET lease_owner = $1, lease_until = @lease, generation = generation + 1, attempts = attempts + 1
WHERE n IN (SELECT n FROM mail WHERE state = 'waiting' AND channel = $2 AND next_at <= $3 AND (lease_owner = '' OR lease_until < @now)
  ORDER BY next_at, n LIMIT $4 @skip)
RETURNING ` + notificationColumns
	sqlEndNotification = `UPDATE mail SET state = $4, reason = $5, ended_at = $6, lease_owner = '', lease_until = NULL, body = NULL
WHERE id = $1 AND lease_owner = $2 AND generation = $3 AND state = 'waiting'`
	sqlRetryNotification = `UPDATE mail SET reason = $4, next_at = $5, attempts = $6, lease_owner = '', lease_until = NULL
WHERE id = $1 AND lease_owner = $2 AND generation = $3 AND state = 'waiting'`
	sqlReleaseNotifications     = `UPDATE mail SET lease_owner = '', lease_until = NULL WHERE state = 'waiting' AND channel = $1 AND lease_owner <> ''`
	sqlReleaseOwnNotifications  = `UPDATE mail SET lease_owner = '', lease_until = NULL WHERE state = 'waiting' AND channel = $1 AND lease_owner = $2 AND lease_owner <> ''`
	sqlReleaseNodeNotifications = `UPDATE mail SET lease_owner = '', lease_until = NULL WHERE state = 'waiting' AND lease_owner = $1 AND lease_owner <> ''`
	sqlExpireNotifications      = `UPDATE mail SET state = 'expired', ended_at = $1, body = NULL
WHERE n IN (SELECT n FROM mail WHERE state = 'waiting' AND until < $1 AND (lease_owner = '' OR lease_until < @now) LIMIT $2)`
	sqlDropNotifications   = `DELETE FROM mail WHERE n IN (SELECT n FROM mail WHERE at < $1 ORDER BY at, n LIMIT $2)`
	sqlDropSandbox         = `DELETE FROM mail WHERE n IN (SELECT n FROM mail WHERE at < $1 AND state = 'sandbox' ORDER BY at, n LIMIT $2)`
	sqlNotifications       = `SELECT ` + notificationColumns + ` FROM mail WHERE business_id = $1 ORDER BY n DESC LIMIT $2`
	sqlSandboxNotification = `SELECT ` + notificationColumns + ` FROM mail WHERE business_id = $1 AND id = $2 AND state = 'sandbox'`

	requestColumns = `digest, email, language, at, done_at`
	sqlRequest     = `SELECT ` + requestColumns + ` FROM reset_request WHERE digest = $1`
	sqlRequests    = `SELECT ` + requestColumns + ` FROM reset_request WHERE done_at IS NULL ORDER BY at LIMIT $1`
	sqlSaveRequest = `INSERT INTO reset_request (` + requestColumns + `) VALUES ($1, $2, $3, $4, NULL)
ON CONFLICT (digest) DO UPDATE SET language = excluded.language, at = excluded.at, done_at = NULL WHERE reset_request.at <= excluded.at - $5`
	sqlEndRequest   = `UPDATE reset_request SET done_at = $2 WHERE digest = $1`
	sqlDropRequests = `DELETE FROM reset_request WHERE digest IN (SELECT digest FROM reset_request WHERE at < $1 ORDER BY at LIMIT $2)`
)

func notificationPurpose(id string) string { return "mail/" + id }

func saveNotifications(w *writer, c *cloud.Changes) {
	for _, m := range c.Notifications {
		state, next, ended := cloud.NotificationWaiting, m.From, time.Time{}
		if next.Before(m.At) {
			next = m.At
		}
		if m.Sandbox {
			state, ended = cloud.NotificationSandbox, m.At
		}
		w.add(anything, sqlSaveNotification, m.ID, int64(m.BusinessID), int64(m.AccountID), int64(m.ProviderID), int64(m.DeliveryID), string(m.Channel), string(m.Kind), ms(m.At), ms(m.Until),
			string(state), ms(next), ms(ended), w.seal(notificationPurpose(m.ID), []byte(text(m.NotificationText))))
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

func (b sealer) scanNotification(r rows, m *cloud.NotificationRow) error {
	var body []byte
	if err := r.Scan(&m.ID, &m.BusinessID, &m.AccountID, &m.ProviderID, &m.DeliveryID, &m.Channel, &m.Kind, when(&m.At), when(&m.Until), &m.State, &m.Attempts, when(&m.NextAt), when(&m.EndedAt), &m.Reason, &m.Generation, &body); err != nil {
		return err
	}
	m.Sandbox = m.State == cloud.NotificationSandbox
	plain, err := b.open(notificationPurpose(m.ID), body)
	if err == nil && plain != nil {
		err = json.Unmarshal(plain, &m.NotificationText)
	}
	if err != nil {
		return fmt.Errorf("notification %s: %w", m.ID, err)
	}
	return nil
}

// notificationList is a part of the notifications about deliveries. Each of its filters has an
// index.
func notificationList(f cloud.NotificationFilter) keyList {
	var c conditions
	business := "business_id = $%d"
	if f.ProviderID != 0 || f.DeliveryID != 0 {
		business = "+" + business // is checked, and not searched by: the others have fewer rows
	}
	c.and(business, int64(f.BusinessID))
	if f.Sandbox {
		c.and("state = 'sandbox'")
	} else {
		c.and("state <> 'sandbox' AND delivery_id > 0")
	}
	if f.ProviderID != 0 {
		c.and("provider_id = $%d", int64(f.ProviderID))
	}
	if f.DeliveryID != 0 {
		c.and("delivery_id = $%d", int64(f.DeliveryID))
	}
	if f.Status != "" {
		c.and("state = $%d", string(f.Status))
	}
	return keyList{from: "mail", columns: notificationColumns, where: c, page: f.Page}
}

func (v factorView) Notifications(f cloud.NotificationFilter) ([]cloud.NotificationRow, cloud.Listed, error) {
	return part(v.snapshot, notificationList(f), sortable{"id": {id: "n"}}, v.sealer().scanNotification)
}

func (v factorView) SandboxNotification(b cloud.BusinessID, id string) (cloud.NotificationRow, error) {
	return one(v.ctx, v.q, sqlSandboxNotification, v.sealer().scanNotification, int64(b), id)
}

// NotificationDue reports whether there is a notification that ClaimNotifications would
// take.
func (db pushes) NotificationDue(ctx context.Context, by cloud.NotificationChannel, now time.Time) (bool, error) {
	found, err := readList(ctx, db.database, sqlNotificationDue, scanInt, string(by), ms(now))
	return len(found) > 0, err
}

// ClaimNotifications begins an attempt of notifications of a channel that are due at now
// and that no node tries, the oldest first. A node that does not end or put off one within
// Lease loses it.
func (db pushes) ClaimNotifications(ctx context.Context, by cloud.NotificationChannel, now time.Time, limit int) (out []cloud.NotificationRow, err error) {
	err = db.write(ctx, 0, func(ctx context.Context, s session) (_ *cloud.Changes, err error) {
		out, err = list(ctx, changing{s}, sqlClaimNotifications, sealer{db.box}.scanNotification, db.node, string(by), ms(now), limit)
		return nil, err
	})
	return out, err
}

// EndNotification writes what became of a notification, erases its text and reports that it
// did; nothing when another node has it by now.
func (db pushes) EndNotification(ctx context.Context, m cloud.NotificationRow) (ended bool, err error) {
	var n int64
	err = db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		return nil, s.last(ctx, []op{{sql: sqlEndNotification, args: []any{m.ID, db.node, m.Generation, string(m.State), m.Reason, ms(m.EndedAt)}, count: &n}})
	})
	return n > 0, err
}

// ExpireNotifications ends notifications of any channel that were of no use before now and
// that no node tries, and erases their texts.
func (db pushes) ExpireNotifications(ctx context.Context, now time.Time) error {
	return db.inSteps(ctx, sqlExpireNotifications, ms(now))
}

// RetryNotification puts a notification off until NextAt, with the attempts that it says.
func (db pushes) RetryNotification(ctx context.Context, m cloud.NotificationRow) error {
	return db.exec(ctx, sqlRetryNotification, m.ID, db.node, m.Generation, m.Reason, ms(m.NextAt), m.Attempts)
}

// RecoverNotifications gives back what an earlier run of this node was trying by a channel;
// on SQLite, where there is one node, whatever its name was.
func (db pushes) RecoverNotifications(ctx context.Context, by cloud.NotificationChannel) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		if s.postgres() {
			return nil, s.last(ctx, []op{{sql: sqlReleaseOwnNotifications, args: []any{string(by), db.node}}})
		}
		return nil, s.last(ctx, []op{{sql: sqlReleaseNotifications, args: []any{string(by)}}})
	})
}

// DropNotifications removes notifications of the sandbox, all others, and requests for
// mails, each from before a time.
func (db pushes) DropNotifications(ctx context.Context, sandbox, others, requests time.Time) error {
	for sql, before := range map[string]time.Time{sqlDropSandbox: sandbox, sqlDropNotifications: others, sqlDropRequests: requests} {
		if err := db.inSteps(ctx, sql, ms(before)); err != nil {
			return err
		}
	}
	return nil
}

// ListNotifications lists the newest notifications of a business; the text of those that
// have ended is gone.
func (db pushes) ListNotifications(ctx context.Context, b cloud.BusinessID, limit int) ([]cloud.NotificationRow, error) {
	return readList(ctx, db.database, sqlNotifications, sealer{db.box}.scanNotification, int64(b), limit)
}
