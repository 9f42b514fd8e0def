package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

var (
	subscriptions = newRowTable("tracking_subscription", cloud.Subscription{})

	sqlSubscriptionsTo = `SELECT p.package_id, s.` + strings.ReplaceAll(subscriptions.list, ", ", ", s.") + ` FROM subscribed_parcel AS p
JOIN tracking_subscription AS s ON s.id = p.subscription_id WHERE p.business_id = $1 AND p.shipment_id IN (0, $2)`
	sqlIdleSubscriptions = `SELECT s.id, s.endpoint_id FROM tracking_subscription AS s
WHERE s.id > $1 AND s.created_at < $2 AND NOT s.everything AND NOT EXISTS (SELECT 1 FROM subscribed_parcel AS p JOIN shipment AS x ON x.id = p.shipment_id
  WHERE p.subscription_id = s.id AND (x.last_at IS NULL OR x.last_at >= $2 OR x.current_code NOT IN ('` + terminalCodes() + `')))
ORDER BY s.id LIMIT $3`
)

// subscriptionsAtOnce is how many of a kind a transaction of EndSubscriptions ends.
const subscriptionsAtOnce = 100

const (
	sqlExpiredSubscriptions = `SELECT id, endpoint_id FROM tracking_subscription WHERE expires_at < $1 ORDER BY expires_at LIMIT $2`
	sqlDropSubscription     = `DELETE FROM tracking_subscription WHERE id = $1`
	sqlDropSubscribed       = `DELETE FROM subscribed_parcel WHERE subscription_id = $1`
	sqlDisableEndpoint      = `UPDATE endpoint SET enabled = FALSE WHERE id = $1`
)

// terminalCodes are the codes that end the way of a parcel, as a list of SQL without its outer quotes.
func terminalCodes() string {
	var out []string
	for _, s := range otep.Vocabulary() {
		if s.Terminal {
			out = append(out, string(s.Code))
		}
	}
	return strings.Join(out, "', '")
}

// SubscriptionsTo implements cloud.HookView.
func (v trackingView) SubscriptionsTo(b cloud.BusinessID, id cloud.ShipmentID) ([]cloud.Subscribed, error) {
	found, err := list(v.ctx, v.q, sqlSubscriptionsTo, scanSubscribed, int64(b), int64(id))
	slices.SortFunc(found, func(x, y cloud.Subscribed) int { return int(x.ID - y.ID) })
	return found, err
}

// behind reads the columns of a row that come behind a first one.
type behind struct {
	rows
	first any
}

func (b behind) Scan(dst ...any) error { return b.rows.Scan(append([]any{b.first}, dst...)...) }

func scanSubscribed(r rows, s *cloud.Subscribed) error {
	var row cloud.Row
	if err := subscriptions.scan(behind{r, &s.PackageID}, &row); err != nil {
		return err
	}
	s.Subscription = row.(cloud.Subscription)
	return nil
}

// EndSubscriptions removes subscriptions that expired before a time, and those all of whose parcels
// came to their end before another.
func (db timelines) EndSubscriptions(ctx context.Context, expired, ended time.Time) error {
	type row struct{ id, endpoint int64 }
	for last, left := int64(0), true; left; {
		err := db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
			scan := func(r rows, x *row) error { return r.Scan(&x.id, &x.endpoint) }
			over, err := list(ctx, s, sqlExpiredSubscriptions, scan, ms(expired), subscriptionsAtOnce)
			if err != nil {
				return nil, err
			}
			idle, err := list(ctx, s, sqlIdleSubscriptions, scan, last, ms(ended), subscriptionsAtOnce)
			if err != nil {
				return nil, err
			}
			left = len(over) == subscriptionsAtOnce || len(idle) == subscriptionsAtOnce
			for _, x := range idle {
				last = x.id
			}
			var ops []op
			for _, x := range append(over, idle...) {
				ops = append(ops, op{sql: sqlDropSubscribed, args: []any{x.id}}, op{sql: sqlDropSubscription, args: []any{x.id}}, op{sql: sqlDisableEndpoint, args: []any{x.endpoint}})
			}
			return nil, s.last(ctx, ops)
		})
		if err != nil {
			return fmt.Errorf("end subscriptions: %w", err)
		}
	}
	return nil
}
