// Package order holds the rules of orders: what they are, who may see and
// change them, and how they move from status to status.
//
// One table says which moves there are. Every move is one transaction with its
// timeline event, its operation, its audit line, and its events for the receivers
// that are set; the timeline that comes of it has no invalid move.
// What another feature saw happen (a scan, a door, a driver) comes in through
// Move and is held to the same table.
//
// Everything is bound to the caller's business: staff see all of its orders,
// customers their own, contractors those that they hold, drivers those that they were given.
// Safe for concurrent use.
package order

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/order/pricing"
)

// Store is what this package needs of the database.
type Store interface {
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	Look(ctx context.Context, fn func(cloud.View) error) error
	ListOrders(ctx context.Context, q cloud.OrderQuery) (cloud.Listed, []cloud.Order, error)
	SearchOrders(ctx context.Context, q cloud.OrderSearch) ([]cloud.OrderMatch, error)
	ListOrderOperations(ctx context.Context, b cloud.BusinessID, id cloud.OrderID) ([]cloud.OrderOperation, error)
	ListOpenJobs(ctx context.Context, limit int) ([]cloud.Job, error)
	NextJobRow(ctx context.Context, job string) (int, error)
	ListJobRows(ctx context.Context, b cloud.BusinessID, id string, p cloud.Page) (cloud.Job, cloud.JobCount, cloud.Listed, []cloud.JobRow, error)
	ListAssignments(ctx context.Context, q cloud.AssignmentQuery) (cloud.Listed, []cloud.Assignment, error)
	ListThirdParties(ctx context.Context, q cloud.ThirdPartyQuery) (cloud.Listed, []cloud.ThirdPartyAssignment, error)
	ListConcerns(ctx context.Context, q cloud.ConcernQuery) (cloud.Listed, []cloud.Order, error)
	ListInterceptions(ctx context.Context, b cloud.BusinessID, id cloud.OrderID) ([]cloud.Interception, error)
}

// Config is what New needs.
type Config struct {
	Store Store
	// SignFile is the address, without the host, at which a stored file can be
	// read until then. nil leaves addresses of files out.
	SignFile func(path string, until time.Time) string
	// Sealer keeps rates from being made up.
	Sealer   pricing.Sealer
	Webhooks Webhooks // nil: no event is sent
	Talk     Talk     // nil: there are no chats
	// Links makes the secrets of tracking links; empty: answers hold none.
	Links cloud.LinkKey
	// Number makes the tracking number of a new order; nil is
	// cloud.NewTrackingNumber.
	Number func(cloud.OrderID) string
}

// Talk is what people say about orders, live.
type Talk interface {
	// DriverChanged is what the participants of an order's chat receive when its driver has
	// changed; was drove it before, 0 for none.
	DriverChanged(v cloud.View, o cloud.Order, was cloud.AccountID) ([]cloud.LiveEvent, error)
}

// Service is the feature.
type Service struct {
	store    Store
	box      pricing.Sealer
	sign     func(path string, until time.Time) string
	webhooks Webhooks
	talk     Talk
	links    cloud.LinkKey
	number   func(cloud.OrderID) string
	now      func() time.Time
	wake     chan struct{}
	dropped  time.Time // old jobs; owned by Run
}

// New builds the service; it starts nothing.
func New(cfg Config) *Service {
	if cfg.Webhooks == nil {
		cfg.Webhooks = noWebhooks{}
	}
	if cfg.Number == nil {
		cfg.Number = func(cloud.OrderID) string { return cloud.NewTrackingNumber() }
	}
	return &Service{store: cfg.Store, box: cfg.Sealer, sign: cfg.SignFile, webhooks: cfg.Webhooks, talk: cfg.Talk, links: cfg.Links, number: cfg.Number, now: time.Now, wake: make(chan struct{}, 1)}
}

// Store is the database of the orders, for the features about them.
func (s *Service) Store() Store { return s.store }

// Error codes of this package.
const (
	CodeNotFound       = "ORDER_NOT_FOUND"
	codeStatus         = "ORDER_STATUS_CONFLICT"
	codeNotCancellable = "ORDER_NOT_CANCELLABLE"
	codeDuplicateRef   = "DUPLICATE_ORDER_REF"
	codeAmbiguousRef   = "AMBIGUOUS_ORDER_REF"
	CodeType           = "ACCOUNT_TYPE_NOT_ALLOWED"
	CodeAnonymous      = "UNAUTHENTICATED"
)

// Key names one order: by its id, else by its reference, else by its tracking
// number.
type Key struct {
	OrderID cloud.OrderID `json:"order_id"`
	Ref     string        `json:"order_ref"`
	Number  string        `json:"tracking_number"`
}

// Check refuses a key that names nothing. Error: VALIDATION_FAILED.
func (k Key) Check() error {
	f := newFields()
	if k == (Key{}) {
		f.Add("order_id", fmt.Sprintf(check.MessageOneOf, "order_id, order_ref, tracking_number"))
	}
	return f.Err()
}

// reach is which orders a caller may see.
type reach struct {
	business cloud.BusinessID
	customer cloud.AccountID // 0: of all customers
	broker   cloud.AccountID // 0: of any contractor, or none
	driver   cloud.AccountID // 0: of any driver, or none
	nothing  bool
}

func reachOf(c cloud.Caller) (reach, error) {
	r := reach{business: c.Account.BusinessID}
	switch c.Account.Type {
	case cloud.ClientAdmin, cloud.ClientEmployee:
	case cloud.Customer:
		r.customer = c.Account.ID
	case cloud.Broker:
		r.broker = c.Account.ID
	case cloud.DriverAccount:
		r.driver = c.Account.ID
	default:
		if c.Anonymous() {
			return r, cloud.E(cloud.Unauthenticated, CodeAnonymous)
		}
		return r, cloud.E(cloud.Forbidden, CodeType)
	}
	r.nothing = r.nothing || r.business == 0
	return r, nil
}

func (r reach) sees(o cloud.Order) bool {
	return !r.nothing && o.BusinessID == r.business && (r.customer == 0 || o.CustomerID == r.customer) && (r.broker == 0 || o.BrokerID == r.broker) &&
		(r.driver == 0 || o.DriverID == r.driver)
}

// RequireStaff refuses every account but staff of the business.
func RequireStaff(c cloud.Caller) error {
	if r, err := reachOf(c); err != nil {
		return err
	} else if r.nothing || r.customer != 0 || r.broker != 0 || r.driver != 0 {
		return cloud.E(cloud.Forbidden, CodeType)
	}
	return nil
}

// RequireOwners refuses every account but staff and customers.
func RequireOwners(c cloud.Caller) error {
	if c.Account.Type == cloud.Customer {
		return nil
	}
	return RequireStaff(c)
}

// find reads the order that a caller names. Errors: ORDER_NOT_FOUND,
// AMBIGUOUS_ORDER_REF.
func find(v cloud.View, r reach, k Key) (cloud.Order, error) {
	missing := cloud.E(cloud.NotFound, CodeNotFound)
	if r.nothing || !IsSane(k.Ref) || !IsSane(k.Number) {
		return cloud.Order{}, missing
	}
	var o cloud.Order
	var err error
	switch {
	case k.OrderID != 0:
		o, err = v.Order(r.business, k.OrderID)
	case k.Ref != "":
		return byRef(v, r, k.Ref)
	default:
		o, err = v.OrderByNumber(r.business, k.Number)
	}
	if errors.Is(err, cloud.ErrNotFound) || err == nil && !r.sees(o) {
		return cloud.Order{}, missing
	}
	return o, err
}

// FindIn reads the order that a caller names, of those that it may see. Errors:
// ORDER_NOT_FOUND, AMBIGUOUS_ORDER_REF, ACCOUNT_TYPE_NOT_ALLOWED, UNAUTHENTICATED.
func FindIn(v cloud.View, c cloud.Caller, k Key) (cloud.Order, error) {
	r, err := reachOf(c)
	if err != nil {
		return cloud.Order{}, err
	}
	return find(v, r, k)
}

// IsSane reports whether a text can be that of a stored order: databases refuse
// some that cannot.
func IsSane(s string) bool {
	return len(s) <= 400 && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}

// byRef finds an order by a reference, which several customers of a business
// may have given.
func byRef(v cloud.View, r reach, ref string) (cloud.Order, error) {
	all, err := v.OrdersByRef(r.business, ref)
	if err != nil {
		return cloud.Order{}, err
	}
	var seen []cloud.Order
	var ids []cloud.OrderID
	for _, o := range all {
		if r.sees(o) {
			seen, ids = append(seen, o), append(ids, o.ID)
		}
	}
	switch len(seen) {
	case 0:
		return cloud.Order{}, cloud.E(cloud.NotFound, CodeNotFound)
	case 1:
		return seen[0], nil
	}
	return cloud.Order{}, &cloud.Error{Kind: cloud.Conflict, Code: codeAmbiguousRef, Details: map[string]any{"order_ids": ids}}
}
