package cloud

import (
	"slices"
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// SubscriptionID names a subscription to parcels.
type SubscriptionID int64

// SubscribedParcelID names a parcel of a subscription.
type SubscribedParcelID int64

// Their sequences.
const (
	SubscriptionIDs     IDKind = "tracking_subscription"
	SubscribedParcelIDs IDKind = "subscribed_parcel"
)

// SubscriptionEndpoint is the kind of endpoints that belong to one subscription each. Subscription
// stands in place of a setting in what is delivered to them.
const (
	SubscriptionEndpoint = "subscription"
	HookSubscription     = "subscription"
)

// SubscriptionEvents are what a subscription can be to.
func SubscriptionEvents() []string {
	return []string{EventTracking, HookEventWithdrawn, HookEventDisputed}
}

// Levels of subscriptions: whose parcels they are about.
const (
	BusinessLevel = "business"
	CustomerLevel = "customer"
	ProviderLevel = "provider"
)

// Subscription sends events of parcels to an endpoint of its own.
type Subscription struct {
	Kept[SubscriptionID]
	AccountID  AccountID   `row:",fixed"` // that made it
	Level      string      `row:",fixed"`
	CustomerID AccountID   `row:",fixed"` // of the customer's level, else 0
	ProviderID ProviderID  `row:",fixed"` // of the provider's level, else 0
	EndpointID EndpointID  `row:",fixed"`
	Everything bool        `row:",fixed"` // all parcels of the level, those to come too
	Parcels    int         `row:",fixed"` // that it names
	Events     []string    `row:",fixed"` // of SubscriptionEvents
	Codes      []otep.Code `row:",fixed"` // none: all
	ExpiresAt  time.Time   `row:",fixed"` // zero: as long as its parcels go on
}

// RowKind implements Row.
func (Subscription) RowKind() IDKind { return SubscriptionIDs }

// SubscribedParcel is a parcel that a subscription names. A subscription to everything has one without
// a shipment.
type SubscribedParcel struct {
	Kept[SubscribedParcelID]
	SubscriptionID SubscriptionID `row:",fixed"`
	ShipmentID     ShipmentID     `row:",fixed"`
	PackageID      PackageID      `row:",fixed"` // 0: the whole shipment
	Number         string         `row:",fixed"` // as it was given
}

// RowKind implements Row.
func (SubscribedParcel) RowKind() IDKind { return SubscribedParcelIDs }

// Subscribed is a subscription that a shipment is a part of, by one of its parcels.
type Subscribed struct {
	Subscription
	PackageID PackageID // 0: the whole shipment
}

// Wants reports whether the subscription is to an event about a package of its shipment, 0 for the
// whole of it, at now.
func (s Subscribed) Wants(event string, about PackageID, code otep.Code, now time.Time) bool {
	return slices.Contains(s.Events, event) && (len(s.Codes) == 0 || slices.Contains(s.Codes, code)) && (s.PackageID == 0 || about == 0 || s.PackageID == about) &&
		(s.ExpiresAt.IsZero() || now.Before(s.ExpiresAt))
}

// TrackedEvent is what an AccountEvent says about a parcel, for its subscribers.
type TrackedEvent struct {
	Shipment Shipment
	Package  PackageID // 0: the whole shipment
	Code     otep.Code
	// Data makes the member data for a provider, who sees of an order no more than its numbers.
	Data func(number int64) (any, error)
}
