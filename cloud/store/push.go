package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	pushColumns = `id, business_id, driver_id, type, collapse, test, at, state, attempts, next_at, ended_at, reason, generation, body`

	sqlReplacePush = `UPDATE push SET state = 'replaced', ended_at = $3
WHERE driver_id = $1 AND collapse = $2 AND collapse <> '' AND state = 'waiting' AND (lease_owner = '' OR lease_until < @now)`
	sqlSavePush = `INSERT INTO push (id, business_id, driver_id, type, collapse, test, at, state, attempts, next_at, ended_at, reason,
  lease_owner, lease_until, generation, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, $10, '', '', NULL, 0, $11)`

	sqlPushDue     = `SELECT 1 FROM push WHERE state = 'waiting' AND next_at <= $1 AND (lease_owner = '' OR lease_until < @now) LIMIT 1`
	sqlClaimPushes = `UPDATE push SET lease_owner = $1, lease_until = @lease, generation = generation + 1
WHERE n IN (SELECT n FROM push WHERE state = 'waiting' AND next_at <= $2 AND (lease_owner = '' OR lease_until < @now)
  ORDER BY next_at, n LIMIT $3 @skip)
RETURNING ` + pushColumns
	sqlEndPush = `UPDATE push SET state = $4, attempts = $5, reason = $6, ended_at = $7, lease_owner = '', lease_until = NULL
WHERE id = $1 AND lease_owner = $2 AND generation = $3 AND state = 'waiting'`
	// A later one that came while it was tried takes its place.
	sqlRetryPush = `UPDATE push SET attempts = $4, reason = $5, next_at = $6, lease_owner = '', lease_until = NULL,
  state = CASE WHEN collapse <> '' AND EXISTS (SELECT 1 FROM push AS later WHERE later.driver_id = push.driver_id AND later.collapse = push.collapse
    AND later.collapse <> '' AND later.n > push.n) THEN 'replaced' ELSE 'waiting' END,
  ended_at = CASE WHEN collapse <> '' AND EXISTS (SELECT 1 FROM push AS later WHERE later.driver_id = push.driver_id AND later.collapse = push.collapse
    AND later.collapse <> '' AND later.n > push.n) THEN CAST($7 AS @int) ELSE NULL END
WHERE id = $1 AND lease_owner = $2 AND generation = $3 AND state = 'waiting'`
	// The word that a push was received may come after a later one took its place.
	sqlHeardPush  = `UPDATE push SET state = 'heard', reason = '', ended_at = $2 WHERE id = $1 AND state IN ('waiting', 'replaced')`
	sqlRetellPush = `UPDATE push SET body = $2 WHERE id = $1`
	sqlExpirePush = `UPDATE push SET state = CASE WHEN attempts > 0 THEN 'failed' ELSE 'expired' END, ended_at = $2
WHERE n IN (SELECT n FROM push WHERE at < $1 AND state = 'waiting' AND (lease_owner = '' OR lease_until < @now) ORDER BY at, n LIMIT $3)`
	sqlReleasePush    = `UPDATE push SET lease_owner = '', lease_until = NULL WHERE state = 'waiting' AND lease_owner <> ''`
	sqlReleaseOwnPush = `UPDATE push SET lease_owner = '', lease_until = NULL WHERE state = 'waiting' AND lease_owner = $1 AND lease_owner <> ''`
	sqlDropPushes     = `DELETE FROM push WHERE n IN (SELECT n FROM push WHERE at < $1 ORDER BY at, n LIMIT $2)`

	sqlPush       = `SELECT ` + pushColumns + ` FROM push WHERE id = $1`
	sqlPushes     = `SELECT ` + pushColumns + ` FROM push WHERE business_id = $1 AND driver_id = $2 AND at >= $3 ORDER BY at, n LIMIT $4`
	sqlTestPushes = `SELECT ` + pushColumns + ` FROM push WHERE test AND business_id = $1 AND at >= $2 ORDER BY at, n LIMIT $3`

	sqlForeignPushToken = `DELETE FROM push_token WHERE hash = $1 AND driver_id <> $2`
	sqlSavePushToken    = `INSERT INTO push_token (driver_id, hash, login, platform, at, token) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (driver_id, hash) DO UPDATE SET login = excluded.login, platform = excluded.platform, at = excluded.at, token = excluded.token`
	sqlOldPushTokens = `DELETE FROM push_token WHERE driver_id = $1 AND hash NOT IN (SELECT hash FROM push_token WHERE driver_id = $1 ORDER BY at DESC, hash LIMIT $2)`
	sqlNoPushTokens  = `DELETE FROM push_token WHERE login = $1`
	sqlDropPushToken = `DELETE FROM push_token WHERE driver_id = $1 AND hash = $2`
	sqlPushTokens    = `SELECT p.driver_id, p.token, p.platform, p.login, p.at, p.hash FROM push_token p JOIN token t ON t.hash = p.login JOIN account a ON a.id = p.driver_id
WHERE p.driver_id = $1 AND t.account_id = p.driver_id AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $2) AND a.enabled = $3`
)

// pushText is what of a push is sealed.
type pushText struct {
	Title string         `json:"title"`
	Body  string         `json:"body"`
	Data  cloud.PushData `json:"data"`
}

func pushPurpose(id string) string { return "push/" + id }

func (w *writer) pushText(p cloud.Push) any {
	return w.seal(pushPurpose(p.ID), []byte(text(pushText{p.Title, p.Body, p.Data})))
}

func (w *writer) pushes(c *cloud.Changes) {
	for _, p := range c.Pushes {
		if p.Collapse != "" {
			w.add(anything, sqlReplacePush, int64(p.DriverID), p.Collapse, ms(p.At))
		}
		state, next, ended := cloud.PushWaiting, ms(p.At.Add(cloud.PushDelay)), any(nil)
		if p.Test {
			state, next, ended = cloud.PushLogged, nil, ms(p.At)
		}
		w.add(anything, sqlSavePush, p.ID, int64(p.BusinessID), int64(p.DriverID), p.Type, p.Collapse, p.Test, ms(p.At), string(state), next, ended,
			w.pushText(p))
		w.liveEvent(p.Live())
	}
	for _, p := range c.RewordedPushes {
		w.add(anything, sqlRetellPush, p.ID, w.pushText(p))
		w.add(anything, sqlRetellLive, p.ID, p.Live().Body)
	}
	for _, t := range c.PushTokens {
		hash := sha256.Sum256([]byte(t.Token))
		w.add(anything, sqlForeignPushToken, hash[:], int64(t.DriverID))
		w.add(anything, sqlSavePushToken, int64(t.DriverID), hash[:], t.Login[:], t.Platform, ms(t.At), w.seal(tokenPurpose(hash[:]), []byte(t.Token)))
		w.add(anything, sqlOldPushTokens, int64(t.DriverID), cloud.MaxPushTokens)
	}
	for _, login := range c.NoPushTokens {
		w.add(anything, sqlNoPushTokens, login[:])
	}
}

func tokenPurpose(hash []byte) string { return "push_token/" + hex.EncodeToString(hash) }

func (b sealer) scanPush(r rows, p *cloud.PushRow) error {
	var body []byte
	if err := r.Scan(&p.ID, &p.BusinessID, &p.DriverID, &p.Type, &p.Collapse, &p.Test, when(&p.At), &p.State, &p.Attempts, when(&p.NextAt), when(&p.EndedAt),
		&p.Reason, &p.Generation, &body); err != nil {
		return err
	}
	plain, err := b.open(pushPurpose(p.ID), body)
	if err != nil {
		return fmt.Errorf("push %s: %w", p.ID, err)
	}
	var t pushText
	if err := json.Unmarshal(plain, &t); err != nil {
		return fmt.Errorf("push %s: %w", p.ID, err)
	}
	p.Title, p.Body, p.Data = t.Title, t.Body, t.Data
	return nil
}

// PushDue reports whether there is a push that ClaimPushes would take.
func (db pushes) PushDue(ctx context.Context, now time.Time) (bool, error) {
	found, err := readList(ctx, db.database, sqlPushDue, scanInt, ms(now))
	return len(found) > 0, err
}

// ClaimPushes takes pushes that are due at now and that no node tries, the oldest
// first. A node that does not end or put off one within Lease loses it.
func (db pushes) ClaimPushes(ctx context.Context, now time.Time, limit int) (out []cloud.PushRow, err error) {
	err = db.write(ctx, 0, func(ctx context.Context, s session) (_ *cloud.Changes, err error) {
		out, err = list(ctx, changing{s}, sqlClaimPushes, sealer{db.box}.scanPush, db.node, ms(now), limit)
		return nil, err
	})
	return out, err
}

// EndPush says what became of a push that was tried; nothing when another node
// has it by now, or its driver has received it.
func (db pushes) EndPush(ctx context.Context, p cloud.PushRow) error {
	return db.exec(ctx, sqlEndPush, p.ID, db.node, p.Generation, string(p.State), p.Attempts, p.Reason, ms(p.EndedAt))
}

// RetryPush puts a push off until NextAt, unless a later one takes its place.
func (db pushes) RetryPush(ctx context.Context, p cloud.PushRow, now time.Time) error {
	return db.exec(ctx, sqlRetryPush, p.ID, db.node, p.Generation, p.Attempts, p.Reason, ms(p.NextAt), ms(now))
}

// HeardPushes says that apps have acknowledged pushes, also those whose place a
// later one took meanwhile; what has ended otherwise stays as it is.
func (db pushes) HeardPushes(ctx context.Context, ids []string, now time.Time) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		ops := make([]op, len(ids))
		for i, id := range ids {
			ops[i] = op{sql: sqlHeardPush, args: []any{id, ms(now)}}
		}
		return nil, s.last(ctx, ops)
	})
}

// ExpirePushes ends what is from before a time and still waits.
func (db pushes) ExpirePushes(ctx context.Context, before, now time.Time) error {
	return db.inSteps(ctx, sqlExpirePush, ms(before), ms(now))
}

// RecoverPushes gives back what an earlier run of this node was trying; on
// SQLite, where there is one node, whatever its name was.
func (db pushes) RecoverPushes(ctx context.Context) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		if s.postgres() {
			return nil, s.last(ctx, []op{{sql: sqlReleaseOwnPush, args: []any{db.node}}})
		}
		return nil, s.last(ctx, []op{{sql: sqlReleasePush}})
	})
}

// DropPushes removes what is from before a time.
func (db pushes) DropPushes(ctx context.Context, before time.Time) error {
	return db.inSteps(ctx, sqlDropPushes, ms(before))
}

// FindPush finds a push. Whose it is, is for the caller to look at.
func (db pushes) FindPush(ctx context.Context, id string) (cloud.PushRow, error) {
	return readOne(ctx, db.database, sqlPush, sealer{db.box}.scanPush, id)
}

// ListPushes lists a driver's pushes from a time on, oldest first.
func (db pushes) ListPushes(ctx context.Context, b cloud.BusinessID, driver cloud.AccountID, from time.Time, limit int) ([]cloud.PushRow, error) {
	return readList(ctx, db.database, sqlPushes, sealer{db.box}.scanPush, int64(b), int64(driver), ms(from), limit)
}

// ListTestPushes lists the pushes of a business's sandbox from a time on, oldest
// first.
func (db pushes) ListTestPushes(ctx context.Context, b cloud.BusinessID, from time.Time, limit int) ([]cloud.PushRow, error) {
	return readList(ctx, db.database, sqlTestPushes, sealer{db.box}.scanPush, int64(b), ms(from), limit)
}

// PushTokens lists where a driver's apps are reached whose logins are good at
// now; none of a driver who may not log in.
func (db pushes) PushTokens(ctx context.Context, driver cloud.AccountID, now time.Time) ([]cloud.PushToken, error) {
	return readList(ctx, db.database, sqlPushTokens, func(r rows, t *cloud.PushToken) error {
		var sealed, hash []byte
		if err := r.Scan(&t.DriverID, &sealed, &t.Platform, fixed(t.Login[:]), when(&t.At), &hash); err != nil {
			return err
		}
		plain, err := sealer{db.box}.open(tokenPurpose(hash), sealed)
		if err != nil {
			return fmt.Errorf("push token of %d: %w", t.DriverID, err)
		}
		t.Token = string(plain)
		return nil
	}, int64(driver), ms(now), true)
}

// DropPushToken removes an address that the provider says is none any more.
func (db pushes) DropPushToken(ctx context.Context, driver cloud.AccountID, token string) error {
	hash := sha256.Sum256([]byte(token))
	return db.exec(ctx, sqlDropPushToken, int64(driver), hash[:])
}
