// Package cloud holds the nouns of the core: what is stored about businesses,
// devices, deliveries, timelines and webhooks, the kinds of errors that people
// see, and the two halves of every change: a View to look at and Changes to
// write. It does no I/O and knows neither SQL nor HTTP.
//
// A feature decides in a pure function of a View and returns Changes; the store
// runs that function inside one transaction and writes all of the changes or
// none. The function may be run more than once (a serialisation failure, a
// group commit that had to be split), so it has no side effects.
//
// Times are UTC; the zero time is null. Ids of rows are integers that the View
// gives out (NewID), so that a decision knows them.
package cloud

import (
	"errors"
	"fmt"
)

// Identifiers. Each is an integer that JavaScript can hold.
type (
	BusinessID    int64
	AccountID     int64
	ProviderID    int64
	EndpointID    int64
	DeviceID      int64
	GridID        int64
	DeliveryID    int64
	ShipmentID    int64
	DeviceOrderID int64
	ExceptionID   int64
	OutboxID      int64 // one webhook delivery: a fact to one receiver

	OrderID        int64
	PackageID      int64 // of an order
	InterceptionID int64
	AssignmentID   int64
	ThirdPartyID   int64 // an assignment to a third party
	TokenID        int64
	RouteID        = int64
)

// IDKind is a sequence of ids; each starts at 1.
type IDKind string

// Sequences.
const (
	BusinessIDs    IDKind = "business"
	AccountIDs     IDKind = "account"
	ProviderIDs    IDKind = "provider"
	EndpointIDs    IDKind = "endpoint"
	DeviceIDs      IDKind = "device"
	GridIDs        IDKind = "grid"
	DeliveryIDs    IDKind = "delivery"
	ShipmentIDs    IDKind = "shipment"
	DeviceOrderIDs IDKind = "device_order"
	ExceptionIDs   IDKind = "exception"
	OutboxIDs      IDKind = "outbox"
	EventIDs       IDKind = "event" // the number in an outbox event's id

	OrderIDs        IDKind = "order"
	PackageIDs      IDKind = "package"
	InterceptionIDs IDKind = "interception"
	AssignmentIDs   IDKind = "assignment"
	ThirdPartyIDs   IDKind = "third_party_assignment"
	FileIDs         IDKind = "file"
	TokenIDs        IDKind = "token"
	RouteIDs        IDKind = "route"
	OAuthGrantIDs   IDKind = "oauth_grant"
)

// Kind sorts errors by what the caller can do about them. One table per face
// maps it to a status.
type Kind uint8

// Error kinds.
const (
	Internal        Kind = iota // ours; never shown
	Invalid                     // the request is wrong (422)
	Malformed                   // the request is unreadable (400)
	Unauthenticated             // 401
	Forbidden                   // 403
	NotFound                    // 404
	Conflict                    // 409
	TooLarge                    // 413
	Limited                     // 429
	Unavailable                 // 503
	Timeout                     // 504
)

// Error is an error that may be shown to the caller. Code is the public code;
// the message that people read is found by Code in their language, with Args
// for its blanks. Fields holds messages per dotted field path; Members are
// further members of the body beside the usual ones, and win over them.
type Error struct {
	Kind       Kind
	Code       string
	Args       []any
	Fields     map[string][]string
	Details    map[string]any
	Members    map[string]any
	RetryAfter int // seconds, 0 when not to be tried again
	Err        error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Code, e.Err)
	}
	return e.Code
}

func (e *Error) Unwrap() error { return e.Err }

// E builds an Error with the given kind and public code.
func E(kind Kind, code string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Args: args}
}

// Shown is the error of a chain that callers may see; nil for one of ours.
func Shown(err error) *Error {
	var e *Error
	if errors.As(err, &e) && e.Kind != Internal {
		return e
	}
	return nil
}

// Answered is what callers are answered to an error: the one that they may see, or that the
// database is away, or that something of ours went wrong. ours says that it is to be logged.
func Answered(err error) (e *Error, ours bool) {
	if e = Shown(err); e != nil {
		return e, false
	}
	if errors.Is(err, ErrAway) {
		return &Error{Kind: Unavailable, Code: "MODULE_UNAVAILABLE", RetryAfter: 5, Err: err}, true
	}
	return &Error{Kind: Internal, Code: "INTERNAL_ERROR", Err: err}, true
}

// Errors of the store.
var (
	// ErrNotFound is returned by Find methods and by a View.
	ErrNotFound = errors.New("not found")
	// ErrExists is returned when Changes would insert a row whose natural key
	// (a reference number, a name) is taken.
	ErrExists = errors.New("exists already")
	// ErrStale is returned when a condition in Changes no longer holds: a lane
	// moved on, a session was taken over, a lease was lost. Nothing was written.
	ErrStale = errors.New("overtaken by another change")
	// ErrRepeated is returned by a decision for a call that another call is the
	// first of. Nothing was written.
	ErrRepeated = errors.New("another call was the first")
	// ErrAway says that the database is not there now, or takes no writes: its disk is full, its
	// server ended. What was asked of it did not happen, or its commit was not answered.
	ErrAway = errors.New("the database is away")
)
