package cloud

import (
	"cmp"
	"time"
)

// OutboxEvent is a fact to tell receivers: the body is serialised once, and its
// bytes go out in every attempt.
type OutboxEvent struct {
	EventID       string // PLE-…, the same for ever
	Event         string // locker_delivery.delivered
	BusinessID    BusinessID
	ProviderID    ProviderID // whose endpoint, for provider channels
	Channel       string     // account, locker_provider, third_party
	ReferenceType string     // locker_delivery
	ReferenceID   string
	Sequence      int64 // of the reference; 0 in events from before these were numbered
	OccurredAt    time.Time
	CreatedAt     time.Time
	Body          []byte // encrypted at rest for locker families
	Test          bool   // sandbox
	Trace         string // traceparent of the call that led to it, "" when that was not followed
}

// EventDriverPlace tells where a driver is.
const EventDriverPlace = "driver.location_update"

// Supersedes reports whether of the event's kind only the newest about each
// reference is worth sending.
func (e OutboxEvent) Supersedes() bool { return e.Event == EventDriverPlace }

// Channels.
const (
	ChannelLocker     = "locker_provider"
	ChannelThirdParty = "third_party"
	ChannelAccount    = "account"
)

// Channels lists them.
func Channels() []string { return []string{ChannelAccount, ChannelLocker, ChannelThirdParty} }

// Attempts of a delivery by itself, the first one included (webhooks 4).
const (
	AccountAttempts  = 6
	ProviderAttempts = 8
)

// OutboxState is where one delivery of an event to one receiver stands.
type OutboxState string

// States of an outbox delivery.
const (
	OutboxPending    OutboxState = "pending"
	OutboxDelivering OutboxState = "delivering"
	OutboxSuccess    OutboxState = "success"
	OutboxRetrying   OutboxState = "retrying"
	OutboxFailed     OutboxState = "failed"
	OutboxDead       OutboxState = "dead"
	OutboxPaused     OutboxState = "paused"
)

// OutboxDelivery is one event to one URL: the work item of the sender.
type OutboxDelivery struct {
	ID          OutboxID
	EventID     string
	EndpointID  EndpointID
	BusinessID  BusinessID
	WebhookID   string // X-Webhook-Id
	State       OutboxState
	Attempts    int // automatic attempts made
	MaxAttempts int
	NextAt      time.Time // zero when nothing is planned
	Reason      string    // why it waits or was not sent
	LeaseOwner  string
	LeaseUntil  time.Time
	Generation  int64 // of the lease
	CreatedAt   time.Time
	DeliveredAt time.Time
	ReplayOf    OutboxID
	// Of the account channel: the setting that named the receiver, and the
	// customer whose level it is of, 0 for the business's.
	Setting    string
	CustomerID AccountID
	// Sequence is its running number for the receiver, which is not that of the reference: 0 when it gets none,
	// Unnumbered until it is taken up for the first time.
	Sequence int64
	// URL is an address that it goes to in place of the receiver's. Such a
	// delivery, and any other that is written as delivering, is sent once by
	// its writer; it has failed if no outcome of it is stored.
	URL string
}

// OutboxSlots are the parts that nodes share what is to be sent by.
const OutboxSlots = 64

// OutboxSlot is the slot of deliveries to a receiver about a reference.
func OutboxSlot(to EndpointID, about EventReference) int {
	h := uint64(14695981039346656037) // FNV-1a
	mix := func(b byte) { h = (h ^ uint64(b)) * 1099511628211 }
	for i := range 8 {
		mix(byte(to >> (8 * i)))
		mix(byte(about.BusinessID >> (8 * i)))
	}
	for _, text := range []string{about.Type, "\x00", about.ID} {
		for i := range len(text) {
			mix(text[i])
		}
	}
	return int((h ^ h>>32) % OutboxSlots)
}

// OutboxWaiting is a delivery that is not finished, in short.
type OutboxWaiting struct {
	ID         OutboxID
	State      OutboxState
	Attempts   int
	NextAt     time.Time
	LeaseOwner string
	Reference  EventReference
	Sequence   int64 // of the reference
}

// Unnumbered is the Sequence of a delivery that gets a number when it is taken
// up.
const Unnumbered = -1

// OutboxOwner is whose deliveries someone may look into: a provider's, or with
// ProviderID 0 those of a business's account channel, all of them or only those
// of one customer's level.
type OutboxOwner struct {
	BusinessID BusinessID
	ProviderID ProviderID
	CustomerID AccountID
}

// Owns reports whether a delivery is the owner's.
func (o OutboxOwner) Owns(w OutboxWork) bool {
	if o.ProviderID != 0 {
		return w.Event.ProviderID == o.ProviderID
	}
	return o.BusinessID != 0 && w.Event.Channel == ChannelAccount && w.Event.BusinessID == o.BusinessID && (o.CustomerID == 0 || w.Delivery.CustomerID == o.CustomerID)
}

// AccountLog chooses a page of the account channel's delivery log, newest first.
// Zero fields do not filter.
type AccountLog struct {
	BusinessID    BusinessID // required
	CustomerID    AccountID  // whose level
	Event         string
	ReferenceType string
	ReferenceID   string
	State         OutboxState
	EndpointID    EndpointID
	From, To      time.Time // of creation, To excluded
	Page                    // its sort is the list's own
}

// OutboxAttempt is one request.
type OutboxAttempt struct {
	DeliveryID  OutboxID
	Attempt     int
	At          time.Time
	URL         string // query masked
	DeliveryUID string // X-Webhook-Delivery-Id
	HTTPStatus  int
	Duration    time.Duration
	ErrorCode   string // TIMEOUT, DNS, TLS, CONNECT, HTTP_STATUS, BLOCKED_URL, ""
	Error       string
	RequestHead string // headers as sent, signatures included, one a line
	AnswerHead  string
	AnswerBody  string // first 4 KiB
	Reused      bool
	Repeated    bool
	RetryAfter  string
	// Parts of Duration; zero when there was none.
	DNS, Connect, TLS, FirstByte time.Duration
	RemoteIP                     string    // for the platform's own people only
	PlannedAt                    time.Time // when it was due
	WaitReason                   string    // what held it up beside its plan: rate, breaker, order, retry_after, proxy
}

// OutboxWork is a delivery that a sender has taken up, with its event.
// Delivery.Generation is that of the sender's lease.
type OutboxWork struct {
	Event    OutboxEvent
	Delivery OutboxDelivery
}

// CompareOutbox orders deliveries: of each reference by its numbers, else by their ids.
func CompareOutbox(a, b OutboxWork) int {
	return cmp.Or(cmp.Compare(a.Event.Sequence, b.Event.Sequence), cmp.Compare(a.Delivery.ID, b.Delivery.ID))
}

// OutboxResult is what became of a delivery that a sender had taken up. Storing
// it gives the lease back; it counts for nothing when the lease was lost.
type OutboxResult struct {
	ID          OutboxID
	Generation  int64 // of the lease
	State       OutboxState
	Attempts    int
	NextAt      time.Time // zero when nothing is planned
	Reason      string
	DeliveredAt time.Time
	Attempt     *OutboxAttempt // nil when nothing was sent
}

// OutboxFilter chooses rows of the delivery log. Zero fields do not filter.
// Rows come newest first.
type OutboxFilter struct {
	BusinessID  BusinessID
	ProviderID  ProviderID // required
	Event       string
	ReferenceID string
	State       OutboxState
	From, To    time.Time // of creation, To excluded
	Before      OutboxID  // 0: all
	Page                  // its sort is the list's own
}

// OutboxRow is one row of the delivery log: the delivery, its event without
// the body, and the last attempt, nil when there was none.
type OutboxRow struct {
	Event    OutboxEvent
	Delivery OutboxDelivery
	Last     *OutboxAttempt
}

// OutboxCount counts deliveries of one channel in one unfinished state.
type OutboxCount struct {
	Channel string
	State   OutboxState
	Count   int64
	Oldest  time.Time // planned time of the oldest
}

// OutboxChanges are the changes of webhooks to send.
type OutboxChanges struct {
	Outbox []OutboxWrite // insert
}

// OutboxWrite is an event and the deliveries that it leads to. With no
// deliveries nothing is written, but for an event that is kept.
type OutboxWrite struct {
	Event      OutboxEvent
	Deliveries []OutboxDelivery
	Stored     bool // the event is stored already: only deliveries are written
	Kept       bool // the event is of use without deliveries
}
