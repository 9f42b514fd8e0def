package cloud

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Settings of the account channel. Each holds the addresses that get
// one family of events.
const (
	HookOrderCreate    = "order_create_webhook_url"
	HookStatusChange   = "order_status_change_webhook_url"
	HookTrackingEvent  = "tracking_event_webhook_url"
	HookPostback       = "order_create_async_postback_url"
	HookProofFiles     = "pod_files_webhook_url"
	HookOrderDeleted   = "order_deleted_webhook_url"
	HookCancelFailed   = "order_cancel_failed_webhook_url"
	HookIntercept      = "order_intercept_webhook_url"
	HookDeviceOrder    = "device_order_webhook_url"
	HookOrderLifecycle = "order_lifecycle_webhook_url"
	HookDriverPlace    = "driver_location_webhook_url"
)

// HookSettings lists them in the order in which they are shown.
func HookSettings() []string {
	return []string{HookOrderCreate, HookStatusChange, HookTrackingEvent, HookPostback, HookProofFiles, HookOrderDeleted, HookCancelFailed, HookIntercept,
		HookDeviceOrder, HookOrderLifecycle, HookDriverPlace}
}

// Kinds of endpoints of the account channel.
const (
	AccountEndpoint  = "account"  // stands in settings
	PostbackEndpoint = "postback" // was given with one batch
)

// Formats of what goes to an endpoint.
const (
	FormatNative     = "native"
	FormatBinary     = "ce_binary"     // attributes of CloudEvents in headers
	FormatStructured = "ce_structured" // a CloudEvent around the body
)

// HookFormats lists them.
func HookFormats() []string { return []string{FormatNative, FormatBinary, FormatStructured} }

// Signatures of what goes to an endpoint, beside those of its channel.
const (
	SignatureNative     = "native" // none
	SignatureStandard   = "standard_webhooks"
	SignatureAsymmetric = "standard_webhooks_v1a" // with an Ed25519 signature too
)

// HookSignatures lists them.
func HookSignatures() []string {
	return []string{SignatureNative, SignatureStandard, SignatureAsymmetric}
}

// Schemes by which a test send can be signed.
const (
	SchemeAccount  = "account"
	SchemeProvider = "provider"
	SchemeHandoff  = "ohp"
)

// WebhookSettings are the receivers of one level: of a business, or of one of
// its customers in place of the business's.
type WebhookSettings struct {
	BusinessID BusinessID
	CustomerID AccountID // 0: the business's own
	// Secret signs what goes to this level's addresses; nil: the business's does.
	Secret     []byte // encrypted at rest
	SecretNext []byte // during a rotation
	NextUntil  time.Time
	// Unseen says that Secret was made where no person read the answer: by a tool, or
	// by a call that was approved. The next secret takes its place at once.
	Unseen bool
	// URLs are by setting. A setting that is missing is not set; one without
	// addresses sends to no endpoint.
	URLs map[string][]HookURL
	// LifecycleEvents narrow order_lifecycle_webhook_url, DeviceEvents
	// device_order_webhook_url: names, of which the last character may be a star.
	// nil: not set.
	LifecycleEvents, DeviceEvents []string
	// TrackingEvents are the events that tracking_event_webhook_url gets, named as
	// above. nil: not set, which is TrackingEvents.
	TrackingEvents []string
	// PlaceEvery is how far apart events about one driver's place are; 0: not set.
	// A business's own.
	PlaceEvery time.Duration
	Off        bool // nothing goes to this level's addresses
}

// Events of timelines that tracking_event_webhook_url may get.
const (
	EventTracking      = "tracking.event"           // a timeline has a new event
	HookEventWithdrawn = "tracking.event_withdrawn" // one was taken back
	HookEventDisputed  = "tracking.disputed"        // one is said to be wrong
	EventProof         = "pod.files_updated"
)

// TrackingEvents are those that it gets where nothing is set.
func TrackingEvents() []string { return []string{EventTracking, EventProof} }

// PlaceEvery is how far apart events about one driver's place are where nothing
// is set.
const PlaceEvery = time.Minute

// HookEvent is a kind of event that endpoints can receive.
type HookEvent struct {
	Name   string // order.created
	Family string // of events that belong together; a line of the event catalogue
	About  string // when it is sent
	// Channel of providers that the event goes by; "": it is of the account channel.
	Channel       string
	Settings      []string // of the account channel, that name its endpoints
	ReferenceType string
	Prefix        string // of the event's id
	Data          any    // a value of the type of the member data
	// Envelope is a value of the type of the whole body; nil: it is that of the
	// account channel.
	Envelope any
	// Sample is a complete body, in JSON, of an order and people that are made up.
	Sample []byte
	// TestData is the member data of a test; nil: that of the sample.
	TestData json.RawMessage
}

// HookURL is an address in a setting.
type HookURL struct {
	EndpointID EndpointID `json:"endpoint_id"`
	URL        string     `json:"url"`
	Numbered   bool       `json:"numbered,omitzero"` // as the endpoint is
}

// Secrets are the signing secrets at now, like those of an Endpoint.
func (s WebhookSettings) Secrets(now time.Time) (current, next []byte) {
	return Endpoint{Secret: s.Secret, SecretNext: s.SecretNext, NextUntil: s.NextUntil}.Secrets(now)
}

// HookNamed reports whether an event is among names, of which each may end with
// a star. No names are all.
func HookNamed(names []string, event string) bool {
	for _, n := range names {
		if start, all := strings.CutSuffix(n, "*"); n == event || all && strings.HasPrefix(event, start) {
			return true
		}
	}
	return len(names) == 0
}

// AccountEvent is something to tell the receivers that a business, or the
// customer that it is about, has set.
type AccountEvent struct {
	BusinessID BusinessID
	CustomerID AccountID // that it is about; 0: none
	Settings   []string  // each receives it, an address once
	// Endpoint, unless 0, receives it in place of the settings; it is of the level
	// of CustomerID.
	Endpoint EndpointID
	// Unless is another event: a level that gets that one by its settings does
	// not get this one. nil: no matter what.
	Unless *AccountEvent
	// Tracked is what happened to a parcel, whose subscribers receive the event too; nil: it is none
	// that they receive.
	Tracked       *TrackedEvent
	Event         string // order.created
	ID            string // event_id; one that ends with "-" gets a number
	ReferenceType string
	ReferenceID   string
	OccurredAt    time.Time
	// Data makes the member data. number is that in the event's id, 0 when ID was
	// whole; customer says that it goes to a customer, who sees less. It is called
	// at most once, and not at all when no endpoint gets the event.
	Data func(number int64, customer bool) (any, error)
}

// Kind is that of the providers' endpoints which the event goes to; "" for the
// account channel.
func (e HookEvent) Kind() string {
	for _, kind := range []string{LockerEndpoint, ThirdPartyEndpoint} {
		if (Endpoint{Kind: kind}).Channel() == e.Channel {
			return kind
		}
	}
	return ""
}

// ProviderEvent is something to tell the receivers of a provider.
type ProviderEvent struct {
	BusinessID    BusinessID
	ProviderID    ProviderID
	Channel       string // ChannelLocker, ChannelThirdParty
	Event         string // locker_delivery.delivered
	Prefix        string // of the event's id, which gets a number: PLE-
	ReferenceType string
	ReferenceID   string
	OccurredAt    time.Time
	Test          bool   // of the sandbox: its id says so
	Trace         string // as OutboxEvent.Trace
	// Body makes the whole body, with the head as its first members. It is called at
	// most once, and not at all when no endpoint gets the event.
	Body func(EventHead) (any, error)
}

// EventReference is what an event is about.
type EventReference struct {
	BusinessID BusinessID
	Type, ID   string // order, 120045
}

// EventHead are the first members of every body.
type EventHead struct {
	EventID    string  `json:"event_id"`
	Event      string  `json:"event"`
	APIVersion string  `json:"api_version"`
	OccurredAt *string `json:"occurred_at"` // to the second, with the business's offset
	// OccurredAtMS is the same moment in Unix milliseconds.
	OccurredAtMS int64 `json:"occurred_at_ms"`
	// Sequence is the number of the event among those about its reference: it rises
	// with each change, whatever receivers the events between had.
	Sequence   int64      `json:"sequence"`
	BusinessID BusinessID `json:"business_id"`
}

// Head is the head of an event's body.
func (e OutboxEvent) Head(l *time.Location) EventHead {
	return EventHead{EventID: e.EventID, Event: e.Event, APIVersion: "1", OccurredAt: Stamp(e.OccurredAt, l), OccurredAtMS: e.OccurredAt.UnixMilli(), Sequence: e.Sequence, BusinessID: e.BusinessID}
}

// Reference is what the event is about.
func (e OutboxEvent) Reference() EventReference {
	return EventReference{e.BusinessID, e.ReferenceType, e.ReferenceID}
}

// MockPrefix comes behind the prefix of an event's id in what is sent to
// providers from the sandbox and as a test.
const MockPrefix = "MOCK-"

// HookSample is an event as it may be sent: what a test sends.
type HookSample struct {
	Event         string
	Channel       string   // of providers; "" for the account channel
	Prefix        string   // of the event's id
	Settings      []string // that name its endpoints
	ReferenceType string
	Data          json.RawMessage // the member data
}

// HookTweak makes a send by hand differ from what is right, to see what its
// receiver makes of it. The zero value changes nothing.
type HookTweak struct {
	Age    time.Duration // the timestamp is so old
	Body   []byte        // goes out in place of what was signed
	Header string        // one more, "Name: value"
}

// SampleOf is an event of a table as it may be sent. ok is false when there is
// no such event.
func SampleOf(events []HookEvent, name string) (s HookSample, ok bool) {
	for _, e := range events {
		var body struct {
			Data json.RawMessage `json:"data"`
		}
		if e.Name == name && json.Unmarshal(e.Sample, &body) == nil {
			if e.TestData != nil {
				body.Data = e.TestData
			}
			return HookSample{Event: name, Channel: e.Channel, Prefix: e.Prefix, Settings: e.Settings, ReferenceType: e.ReferenceType, Data: body.Data}, true
		}
	}
	return s, false
}

// HookView reads the present of webhook settings and endpoints.
type HookView interface {
	Endpoints(ProviderID) ([]Endpoint, error) // of one provider, enabled or not
	// WebhookSettings are those of a business, or with a customer of that
	// customer's level. In a decision they stay as they are until it is stored.
	WebhookSettings(BusinessID, AccountID) (WebhookSettings, error)
	// AccountEndpoints lists the receivers of a business's account channel, those
	// of its customers and of postbacks too, enabled or not, without secrets.
	AccountEndpoints(BusinessID) ([]Endpoint, error)
	OutboxWork(OutboxID) (OutboxWork, error) // a delivery as it is stored, and its event
	// SubscriptionsTo lists the subscriptions that a shipment of a business is a part of, by id; one
	// may be there by several packages.
	SubscriptionsTo(BusinessID, ShipmentID) ([]Subscribed, error)
	// DeliveryEvents are the newest events of a locker delivery, by its number, with their
	// bodies, oldest first.
	DeliveryEvents(b BusinessID, p ProviderID, number string, limit int) ([]OutboxEvent, error)
	// NextSequence gives the next number of a reference, from 1. It is written with what
	// the decision changes, and not at all when that is nothing. Numbers of one reference
	// rise in the order of the commits, over all nodes, with gaps.
	NextSequence(EventReference) (int64, error)
}

// HookChanges are the changes of webhook settings and endpoints.
type HookChanges struct {
	Endpoints       []Endpoint
	WebhookSettings []WebhookSettings
}

func (s *HookChanges) preview(e *effectList) {
	previewEach(e, "WebhookSettings", s.WebhookSettings, func(x WebhookSettings) {
		old, err := e.view.WebhookSettings(x.BusinessID, x.CustomerID)
		if errors.Is(err, ErrNotFound) { // a business that has saved none has those of all
			err = nil
		}
		before, after := old.members(), x.members()
		for name, changed := range map[string]bool{"webhook_sign_secret": !bytes.Equal(old.Secret, x.Secret), "webhook_sign_secret_next": !bytes.Equal(old.SecretNext, x.SecretNext)} {
			if changed && after[name] == before[name] {
				after[name] = "another one"
			}
		}
		e.showMembers(Effect{Type: "webhook_settings", ID: x.BusinessID, Before: before, After: after}, old, err)
	})
}

func (s WebhookSettings) members() map[string]any {
	secret := func(b []byte) string { // whether there is one, not what it is
		if len(b) == 0 {
			return "not set"
		}
		return "set"
	}
	out := map[string]any{"enabled": !s.Off, "webhook_sign_secret": secret(s.Secret), "webhook_sign_secret_next": secret(s.SecretNext), "order_lifecycle_events": s.LifecycleEvents, "device_order_events": s.DeviceEvents, "tracking_events": s.TrackingEvents,
		"driver_location_min_interval_sec": int(s.PlaceEvery / time.Second)}
	for name, list := range s.URLs {
		urls := make([]string, len(list))
		for i, u := range list {
			urls[i] = u.URL
		}
		out[name] = urls
	}
	return out
}

// Sent takes down a webhook that would be sent again.
func (p *Preview) Sent(log int64, event string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.effects = append(p.effects, Effect{Type: "webhook_delivery", ID: log, Name: event, After: map[string]any{"sent_again": true}})
}

// SentTest takes down a test webhook that would be sent.
func (p *Preview) SentTest(event, host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.effects = append(p.effects, Effect{Type: "webhook_delivery", Name: event, After: map[string]any{"test": true, "host": host}})
}
