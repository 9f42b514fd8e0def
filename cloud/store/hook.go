package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlWebhookSettings = `SELECT business_id, customer_id, secret, secret_next, next_until, body FROM webhook_setting
WHERE business_id = $1 AND customer_id = $2`
	sqlSaveWebhookSettings = `INSERT INTO webhook_setting (business_id, customer_id, secret, secret_next, next_until, body)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (business_id, customer_id) DO UPDATE SET secret = excluded.secret, secret_next = excluded.secret_next,
  next_until = excluded.next_until, body = excluded.body`
	sqlAccountEndpoints = `SELECT ` + endpointColumns + ` FROM endpoint
WHERE provider_id = 0 AND business_id = $1 ORDER BY id`

	accountLogWhere = `FROM outbox o JOIN outbox_event e ON e.event_id = o.event_id
WHERE o.provider_id = 0 AND o.business_id = $1 AND (CAST($2 AS @int) = 0 OR o.customer_id = $2)
  AND ($3 = '' OR o.event = $3) AND ($4 = '' OR o.state = $4) AND ($5 = '' OR o.reference_id = $5)
  AND ($6 = '' OR e.reference_type = $6) AND o.created_at >= $7 AND o.created_at < $8`
	sqlAccountLog      = `SELECT ` + outboxRowColumns + ` ` + accountLogWhere + ` ORDER BY o.id DESC LIMIT $9 OFFSET $10`
	sqlAccountLogTotal = `SELECT COUNT(*) ` + accountLogWhere
)

// hookBody is what of a level's settings is no secret, as it is stored.
type hookBody struct {
	URLs            map[string][]cloud.HookURL `json:"urls,omitempty"`
	LifecycleEvents []string                   `json:"lifecycle_events,omitempty"`
	DeviceEvents    []string                   `json:"device_events,omitempty"`
	Off             bool                       `json:"off,omitempty"`
}

// scanWebhookSettings leaves the secrets sealed.
func scanWebhookSettings(r rows, s *cloud.WebhookSettings) error {
	var b hookBody
	err := r.Scan(&s.BusinessID, &s.CustomerID, &s.Secret, &s.SecretNext, when(&s.NextUntil), parsed(&b))
	s.URLs, s.LifecycleEvents, s.DeviceEvents, s.Off = b.URLs, b.LifecycleEvents, b.DeviceEvents, b.Off
	return err
}

func hookPurpose(b cloud.BusinessID, customer cloud.AccountID) string {
	return fmt.Sprintf("webhook/%d/%d", b, customer)
}

func (b sealer) webhookSettings(ctx context.Context, q querier, sql string, id cloud.BusinessID, customer cloud.AccountID) (cloud.WebhookSettings, error) {
	s, err := one(ctx, q, sql, scanWebhookSettings, int64(id), int64(customer))
	if err != nil {
		return s, err
	}
	purpose := hookPurpose(id, customer)
	if s.Secret, err = b.open(purpose, s.Secret); err == nil {
		s.SecretNext, err = b.open(purpose, s.SecretNext)
	}
	if err != nil {
		return s, fmt.Errorf("secret of %s: %w", purpose, err)
	}
	return s, nil
}

func (v *view) WebhookSettings(b cloud.BusinessID, customer cloud.AccountID) (cloud.WebhookSettings, error) {
	sql := sqlWebhookSettings
	if v.locks {
		sql += " @share"
	}
	return v.sealer().webhookSettings(v.ctx, v.q, sql, b, customer)
}

func (v *view) AccountEndpoints(b cloud.BusinessID) ([]cloud.Endpoint, error) {
	return v.endpoints(sqlAccountEndpoints, int64(b))
}

func (w *writer) webhookSettings(c *cloud.Changes) {
	for _, s := range c.WebhookSettings {
		purpose := hookPurpose(s.BusinessID, s.CustomerID)
		w.add(anything, sqlSaveWebhookSettings, int64(s.BusinessID), int64(s.CustomerID), w.seal(purpose, s.Secret), w.seal(purpose, s.SecretNext),
			ms(s.NextUntil), text(hookBody{s.URLs, s.LifecycleEvents, s.DeviceEvents, s.Off}))
	}
}

// signing gives an address of the account channel the secrets of its level, or
// where that has none of the business.
func (b sealer) signing(ctx context.Context, q querier, e *cloud.Endpoint) error {
	for _, customer := range []cloud.AccountID{e.CustomerID, 0} {
		s, err := b.webhookSettings(ctx, q, sqlWebhookSettings, e.BusinessID, customer)
		if err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return err
		}
		if len(s.Secret) > 0 {
			e.Secret, e.SecretNext, e.NextUntil = s.Secret, s.SecretNext, s.NextUntil
			return nil
		}
	}
	return nil
}

// ListAccountOutbox lists a page of the account channel's delivery log, and
// counts all of its pages. A row that a sender holds shows as delivering.
func (db *DB) ListAccountOutbox(ctx context.Context, f cloud.AccountLog) (total int, out []cloud.OutboxRow, err error) {
	if f.BusinessID == 0 {
		return 0, nil, errors.New("list outbox: the filter names no business")
	}
	until := f.To
	if until.IsZero() {
		until = time.UnixMilli(1 << 52)
	}
	var from int64
	if !f.From.IsZero() {
		from = f.From.UnixMilli()
	}
	args := []any{int64(f.BusinessID), int64(f.CustomerID), f.Event, string(f.State), f.ReferenceID, f.ReferenceType, from, until.UnixMilli()}
	err = db.engine.read(ctx, func(ctx context.Context, q querier) error {
		n, err := one(ctx, q, sqlAccountLogTotal, scanInt, args...)
		if err != nil {
			return err
		}
		total = int(n)
		if out, err = list(ctx, q, sqlAccountLog, scanOutboxRow, append(args, f.Limit, f.Offset)...); err != nil {
			return err
		}
		return last(ctx, q, out)
	})
	return total, out, err
}
