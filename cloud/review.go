package cloud

import "time"

// ReviewID names a review.
type ReviewID int64

// ReviewIDs is their sequence.
const ReviewIDs IDKind = "review"

// Review is something about an event of a timeline that staff decide: whether it is taken, or what
// becomes of it and of the order.
type Review struct {
	Kept[ReviewID]
	Kind           ReviewKind   `row:",fixed"`
	Status         ReviewStatus // open until staff decide or it ends
	TrackingNumber string       `row:",fixed"` // as it is shown: of the package, or the whole shipment
	ShipmentID     ShipmentID   `row:",fixed"`
	PackageID      PackageID    `row:",fixed"` // that the event is about, 0 for the whole shipment
	ProviderID     ProviderID   `row:",fixed"` // who sent the event; 0 for none
	EventID        string       `row:",fixed"`
	StatusCode     string       `row:",fixed"`      // of the event
	OccurredAt     time.Time    `row:",fixed"`      // as the event says
	Given          []byte       `row:",fixed,text"` // the event as it came, in JSON; empty for one that is stored
	DisputeKind    string       `row:",fixed"`      // of a dispute
	Note           string       `row:",fixed"`      // of who disputes
	EndsAt         time.Time    `row:",fixed"`      // it is dismissed then by itself
	Action         string       // that was decided
	Reason         string       // of the decision, in words
	DecidedBy      AccountID
	DecidedAt      time.Time
}

// RowKind implements Row.
func (Review) RowKind() IDKind { return ReviewIDs }

// ReviewKind is what a review is about.
type ReviewKind string

// Kinds of reviews.
const (
	ReviewFuture    ReviewKind = "future"            // the event lies more than 48 hours ahead
	ReviewPast      ReviewKind = "past"              // it is over two years old
	ReviewConflict  ReviewKind = "conflict"          // its id is stored with other content
	ReviewCustody   ReviewKind = "custody"           // it would have moved the order, which its provider has no say in
	ReviewCancelled ReviewKind = "carrier_cancelled" // a carrier says that the order is cancelled
	ReviewDispute   ReviewKind = "dispute"           // the recipient or its source says that it is wrong
	ReviewDisagrees ReviewKind = "order_disagrees"   // an event was taken back after it ended the order
)

// Values are all of them.
func (ReviewKind) Values() []string {
	return []string{string(ReviewFuture), string(ReviewPast), string(ReviewConflict), string(ReviewCustody), string(ReviewCancelled), string(ReviewDispute), string(ReviewDisagrees)}
}

// ReviewStatus is where a review stands.
type ReviewStatus string

// Values of ReviewStatus.
const (
	ReviewOpen    ReviewStatus = "open"
	ReviewDecided ReviewStatus = "decided"
	ReviewEnded   ReviewStatus = "ended" // without a decision
)

// Values are all of them.
func (ReviewStatus) Values() []string {
	return []string{string(ReviewOpen), string(ReviewDecided), string(ReviewEnded)}
}

// ReviewLasts is how long a review waits for a decision.
const ReviewLasts = 30 * 24 * time.Hour

// MaxOpenReviews bounds those about events of one provider.
const MaxOpenReviews = 10_000
