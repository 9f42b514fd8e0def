// Package route holds the rules of routes and of their drivers: what may
// be planned on a route and by whom, who drives it, and what a driver does at
// its stops.
//
// What is on a route is kept in the orders and nowhere else, so a route's stops,
// counts and the end of its status are always those of its orders, whatever
// moved them. Orders move by the table of cloud/order only, in the same
// transaction as what is changed here.
//
// Everything is bound to the caller's business: staff see all of its routes and
// drivers, contractors their own, drivers their own routes. Safe for concurrent
// use.
package route

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
)

// Store is what this package needs of the database.
type Store interface {
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	// DuePlaces lists places that receivers are to get at now.
	DuePlaces(ctx context.Context, now time.Time, limit int) ([]cloud.DriverPlace, error)
	Look(ctx context.Context, fn func(cloud.View) error) error
}

// Orders moves orders.
type Orders interface {
	// Steps makes moves inside a decision and gives what is to be written.
	Steps(v cloud.View, c cloud.Caller, list ...order.MoveInput) (*cloud.Changes, error)
}

// Webhooks are the webhook subscriptions to events of drivers.
type Webhooks interface {
	// FanOut returns the outbox writes for the subscribers of events.
	FanOut(v cloud.View, events ...cloud.AccountEvent) ([]cloud.OutboxWrite, error)
}

// Config is what New needs.
type Config struct {
	Store    Store
	Orders   Orders
	Webhooks Webhooks // nil: no event is sent
}

// noWebhooks has no subscription.
type noWebhooks struct{}

func (noWebhooks) FanOut(cloud.View, ...cloud.AccountEvent) ([]cloud.OutboxWrite, error) {
	return nil, nil
}

// Service is the feature.
type Service struct {
	store    Store
	orders   Orders
	webhooks Webhooks
	now      func() time.Time
}

// New builds the service; it starts nothing.
func New(cfg Config) *Service {
	if cfg.Webhooks == nil {
		cfg.Webhooks = noWebhooks{}
	}
	return &Service{store: cfg.Store, orders: cfg.Orders, webhooks: cfg.Webhooks, now: time.Now}
}

// Error codes of this package.
const (
	codeRoute        = "ROUTE_NOT_FOUND"
	codeRouteStatus  = "ROUTE_STATUS_CONFLICT"
	codeNeedsDriver  = "DRIVER_REQUIRED"
	codeDriver       = "DRIVER_NOT_FOUND"
	codeNotAvailable = "DRIVER_NOT_AVAILABLE"
	codeOrder        = "ORDER_NOT_FOUND"
	codeOrderStatus  = "ORDER_STATUS_CONFLICT"
	codeContractor   = "HELD_BY_CONTRACTOR"
	codeNotHeld      = "NOT_HELD_BY_CONTRACTOR"
	codeThirdParty   = "HELD_BY_THIRD_PARTY"
	codeOnRoute      = "ALREADY_ON_ROUTE"
	codeNotOnRoute   = "NOT_ON_ROUTE"
	codeNotPlannable = "STATUS_NOT_PLANNABLE"
	codeForbidden    = "FORBIDDEN"
	codeType         = "ACCOUNT_TYPE_NOT_ALLOWED"
	codeAnonymous    = "UNAUTHENTICATED"
	codeProof        = "PROOF_REQUIRED"
	codeInvalid      = "VALIDATION_FAILED"
	maxPage          = 200
)

// Done is the answer that has nothing to show.
type Done struct {
	Result bool `json:"result"`
}

// reach is what a caller may see.
type reach struct {
	business cloud.BusinessID
	broker   cloud.AccountID // 0: everybody's
	driver   cloud.AccountID // 0: everybody's
}

func reachOf(c cloud.Caller) (reach, error) {
	r := reach{business: c.Account.BusinessID}
	switch c.Account.Type {
	case cloud.ClientAdmin, cloud.ClientEmployee:
	case cloud.Broker:
		r.broker = c.Account.ID
	case cloud.DriverAccount:
		r.driver = c.Account.ID
	default:
		if c.Anonymous() {
			return r, cloud.E(cloud.Unauthenticated, codeAnonymous)
		}
		return r, cloud.E(cloud.Forbidden, codeType)
	}
	return r, nil
}

// planner is the reach of accounts that plan: staff and contractors.
func planner(c cloud.Caller) (reach, error) {
	r, err := reachOf(c)
	if err == nil && r.driver != 0 {
		err = cloud.E(cloud.Forbidden, codeType)
	}
	return r, err
}

// staff refuses everybody but the business's own people.
func staff(c cloud.Caller) (reach, error) {
	r, err := planner(c)
	if err == nil && r.broker != 0 {
		err = cloud.E(cloud.Forbidden, codeType)
	}
	return r, err
}

// driver refuses every account but drivers.
func driver(c cloud.Caller) (reach, error) {
	r, err := reachOf(c)
	if err == nil && r.driver == 0 {
		err = cloud.E(cloud.Forbidden, codeType)
	}
	return r, err
}

func (r reach) route(v cloud.View, id cloud.RouteID) (cloud.Route, error) {
	x, err := v.Route(r.business, id)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (r.broker != 0 && x.BrokerID != r.broker || r.driver != 0 && x.DriverID != r.driver) {
		return cloud.Route{}, cloud.E(cloud.NotFound, codeRoute)
	}
	return x, err
}

func (r reach) person(v cloud.View, id cloud.AccountID) (cloud.Driver, error) {
	d, err := v.Driver(r.business, id)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (r.broker != 0 && d.BrokerID != r.broker || r.driver != 0 && d.Account.ID != r.driver) {
		return cloud.Driver{}, cloud.E(cloud.NotFound, codeDriver)
	}
	return d, err
}

// order finds an order that the caller may plan, or that the driver has.
func (r reach) order(v cloud.View, id cloud.OrderID) (cloud.Order, error) {
	o, err := v.Order(r.business, id)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (r.broker != 0 && o.BrokerID != r.broker || r.driver != 0 && o.DriverID != r.driver) {
		return cloud.Order{}, cloud.E(cloud.NotFound, codeOrder)
	}
	return o, err
}

// time is now as it is stored.
func (s *Service) time() time.Time { return s.now().UTC().Truncate(time.Millisecond) }

func audit(c cloud.Caller, now time.Time, action, target string, id int64, detail string) []cloud.Audit {
	return []cloud.Audit{{BusinessID: c.Account.BusinessID, At: now, Actor: c.Account.ID.Actor(), Action: action,
		Target: target + ":" + strconv.FormatInt(id, 10), Detail: detail}}
}

// routeConflict says that the route is in no status for what was asked.
func routeConflict(s cloud.RouteStatus) error {
	return &cloud.Error{Kind: cloud.Conflict, Code: codeRouteStatus, Details: map[string]any{"status": s}}
}

// orderConflict says that the order is in no status for what was asked.
func orderConflict(o cloud.Order) error {
	return &cloud.Error{Kind: cloud.Conflict, Code: codeOrderStatus, Details: map[string]any{"order_status_id": o.Status, "order_status": o.Status.String()}}
}
