package store

import (
	"cmp"
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
	sqlEndSecrets      = `UPDATE endpoint SET secret = secret_next, secret_next = NULL, next_until = NULL WHERE secret_next IS NOT NULL AND next_until <= $1`
	sqlEndLevelSecrets = `UPDATE webhook_setting SET secret = secret_next, secret_next = NULL, next_until = NULL
WHERE secret_next IS NOT NULL AND next_until <= $1`
	sqlAccountEndpoints = `SELECT ` + endpointColumns + ` FROM endpoint
WHERE provider_id = 0 AND business_id = $1 ORDER BY id`
)

// hookBody is what of a level's settings is no secret, as it is stored.
type hookBody struct {
	URLs            map[string][]cloud.HookURL `json:"urls,omitempty"`
	LifecycleEvents []string                   `json:"lifecycle_events,omitempty"`
	DeviceEvents    []string                   `json:"device_events,omitempty"`
	TrackingEvents  []string                   `json:"tracking_events,omitempty"`
	PlaceEvery      time.Duration              `json:"place_every,omitempty"`
	Off             bool                       `json:"off,omitempty"`
	Unseen          bool                       `json:"secret_unseen,omitempty"`
}

// scanWebhookSettings leaves the secrets sealed.
func scanWebhookSettings(r rows, s *cloud.WebhookSettings) error {
	var b hookBody
	err := r.Scan(&s.BusinessID, &s.CustomerID, &s.Secret, &s.SecretNext, when(&s.NextUntil), parsed(&b))
	s.URLs, s.LifecycleEvents, s.DeviceEvents, s.TrackingEvents, s.PlaceEvery, s.Off, s.Unseen = b.URLs, b.LifecycleEvents, b.DeviceEvents, b.TrackingEvents, b.PlaceEvery, b.Off, b.Unseen
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

func (v accountView) WebhookSettings(b cloud.BusinessID, customer cloud.AccountID) (cloud.WebhookSettings, error) {
	sql := sqlWebhookSettings
	if v.locks {
		sql += " @share"
	}
	return v.sealer().webhookSettings(v.ctx, v.q, sql, b, customer)
}

func (v accountView) AccountEndpoints(b cloud.BusinessID) ([]cloud.Endpoint, error) {
	return v.endpoints(sqlAccountEndpoints, int64(b))
}

func (w *writer) webhookSettings(c *cloud.Changes) {
	for _, s := range c.WebhookSettings {
		purpose := hookPurpose(s.BusinessID, s.CustomerID)
		w.add(anything, sqlSaveWebhookSettings, int64(s.BusinessID), int64(s.CustomerID), w.seal(purpose, s.Secret), w.seal(purpose, s.SecretNext),
			ms(s.NextUntil), text(hookBody{s.URLs, s.LifecycleEvents, s.DeviceEvents, s.TrackingEvents, s.PlaceEvery, s.Off, s.Unseen}))
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

// DropOldSecrets drops the secrets whose successors have taken their place at now.
func (db webhooks) DropOldSecrets(ctx context.Context, now time.Time) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		return nil, s.last(ctx, []op{{sql: sqlEndSecrets, args: []any{now.UnixMilli()}, need: anything}, {sql: sqlEndLevelSecrets, args: []any{now.UnixMilli()}, need: anything}})
	})
}

// withEvents are deliveries o with their events e.
const withEvents = ` JOIN outbox_event e ON e.event_id = o.event_id`

// accountLog is a list of the account channel's log, each filter in the words of
// the index that serves it. Rows are counted before they are joined with their
// events, unless a filter is about those.
func accountLog(f cloud.AccountLog) keyList {
	var c conditions
	c.and(`o.provider_id = 0`)
	c.and(`o.business_id = $%d`, int64(f.BusinessID))
	index := ""
	if f.Event != "" {
		index = ` @by_event`
		c.and(`o.event = $%d`, f.Event)
	}
	if f.CustomerID != 0 {
		index = ` @by_customer`
		c.and(`o.customer_id <> 0 AND o.customer_id = $%d`, int64(f.CustomerID))
	}
	if f.EndpointID != 0 {
		index = ` @by_receiver`
		c.and(`o.endpoint_id = $%d`, int64(f.EndpointID))
	}
	index = cmp.Or(c.state(f.State, `@by_unsent`, accountUnsent...), index)
	if f.ReferenceID != "" {
		index = ` @by_reference`
		c.and(`o.reference_id = $%d`, f.ReferenceID)
	}
	c.created("o.", f.From, f.To)
	f.Sort, f.Down = "created_at", true
	l := keyList{columns: outboxRowColumns, from: `outbox o` + index + withEvents, counted: `outbox o` + index, prefix: "o.", by: sortColumn{name: "created_at"}, page: f.Page}
	if f.ReferenceType != "" {
		c.and(`e.reference_type = $%d`, f.ReferenceType)
		l.counted = l.from
	}
	l.where = c
	return l
}

// created adds that rows are of a time, to excluded; prefix is that of their table.
func (c *conditions) created(prefix string, from, to time.Time) {
	if !from.IsZero() {
		c.and(prefix+`created_at >= $%d`, from.UnixMilli())
	}
	if !to.IsZero() {
		c.and(prefix+`created_at < $%d`, to.UnixMilli())
	}
}

// ListAccountOutbox lists a page of the account channel's delivery log, newest
// first, and counts all of its pages up to cloud.MaxTotal rows. A row that a
// sender holds shows as delivering. Error: cloud.ErrNoMark.
func (db webhooks) ListAccountOutbox(ctx context.Context, f cloud.AccountLog) (cloud.Listed, []cloud.OutboxRow, error) {
	if f.BusinessID == 0 {
		return cloud.Listed{}, nil, errors.New("list outbox: the filter names no business")
	}
	if f.State == cloud.OutboxDead {
		return cloud.Listed{}, nil, nil // of this channel's deliveries none ends so
	}
	return readLog(ctx, db.database, accountLog(f))
}

// readLog reads a page of a delivery log with the last attempt of each row.
func readLog(ctx context.Context, db *database, l keyList) (out cloud.Listed, found []cloud.OutboxRow, err error) {
	err = db.engine.read(ctx, func(ctx context.Context, q querier) (err error) {
		if out, found, err = readKeyList(ctx, q, l, scanOutboxRow); err != nil {
			return err
		}
		return last(ctx, q, found)
	})
	return out, found, err
}
