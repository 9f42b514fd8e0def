package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// TestInput asks for a test send: the sample of an event, to an address.
type TestInput struct {
	Event      string          `json:"event" doc:"order.created when empty"`
	URL        string          `json:"url" doc:"https; empty: the first address that is set for the event"`
	URLID      int64           `json:"url_id" doc:"An address of the settings, by its id, in place of url and customer_id"`
	CustomerID cloud.AccountID `json:"customer_id" doc:"A customer of the business whose level is tested; empty: the business"`
	Scheme     string          `json:"scheme" enum:"account,provider,ohp" doc:"How it is signed; account when empty"`
	Secret     string          `json:"secret" doc:"16 to 128 characters; empty: the secret of the level"`
	Format     string          `json:"format" enum:"native,ce_binary,ce_structured" doc:"Format of the body; empty: that of the address, native for an address outside the settings"`
}

// TestOutput says what came of a test send.
type TestOutput struct {
	Result     bool           `json:"result"`
	Delivered  bool           `json:"delivered"`
	HTTPStatus *int           `json:"http_status"`
	DurationMS *int64         `json:"duration_ms"`
	LogID      cloud.OutboxID `json:"log_id"`
	Error      *string        `json:"error"`
}

const sampleEvent = "order.created"

// Test sends the sample of an event, signed and marked as a test: one attempt,
// in the log, and counted nowhere. Errors: ACCOUNT_TYPE_NOT_ALLOWED,
// CUSTOMER_NOT_FOUND, WEBHOOK_URL_NOT_FOUND, VALIDATION_FAILED, BLOCKED_URL.
func (s accountHooks) Test(ctx context.Context, c cloud.Caller, in TestInput) (out TestOutput, err error) {
	if in.Event == "" {
		in.Event = sampleEvent
	}
	sample, known := s.samples(in.Event)
	if err := s.checkTest(ctx, in, known); err != nil {
		return out, err
	}
	var to cloud.Endpoint
	var b cloud.BusinessID
	var customer cloud.AccountID
	err = s.store.Look(ctx, func(v cloud.View) error {
		if in.URLID != 0 {
			e, _, _, err := s.ownURL(v, c, URLInput{in.URLID})
			if err != nil {
				return err
			}
			in.URL, in.CustomerID = e.URL, e.CustomerID
		}
		if b, customer, err = levelOf(v, c, LevelInput{in.CustomerID}); err != nil {
			return err
		}
		to, err = testReceiver(v, b, customer, in, sample.Settings)
		return err
	})
	if err != nil {
		return out, err
	}
	if p := cloud.PreviewOf(ctx); p != nil {
		p.SentTest(in.Event, host(to.URL))
		return TestOutput{Result: true}, nil
	}
	sent, err := s.sendTest(ctx, c, to, in.Event, cloud.HookTweak{})
	return sent.output(), err
}

func (s accountHooks) checkTest(ctx context.Context, in TestInput, known bool) error {
	p := problems{}
	if !known {
		p.add("event", "There is no such event.")
	}
	if in.Secret != "" && !goodSecret(in.Secret) {
		p.add("secret", badSecret)
	}
	if err := p.err(); err != nil || in.URL == "" {
		return err
	}
	return s.allowed(ctx, "url", in.URL)
}

// allowed refuses an address that can receive no event. Errors:
// VALIDATION_FAILED, BLOCKED_URL.
func (s *core) allowed(ctx context.Context, field, address string) error {
	p := problems{}
	if len(address) > maxURL {
		p.add(field, tooLong(field, address))
		return p.err()
	}
	if err := s.guard.CheckURL(ctx, address); err != nil {
		p.add(field, "This address cannot be used: it must be a public https address that our guard accepts.")
		return &cloud.Error{Kind: cloud.Invalid, Code: codeBlocked, Fields: p, Details: map[string]any{field: err.Error()}}
	}
	return nil
}

// testReceiver is where a test of a level goes: an address of its settings in the
// format set there, or one that is in none of them. Error: VALIDATION_FAILED.
func testReceiver(v cloud.View, b cloud.BusinessID, customer cloud.AccountID, in TestInput, settings []string) (cloud.Endpoint, error) {
	own, business, err := levels(v, b, customer)
	if err != nil {
		return cloud.Endpoint{}, err
	}
	p := problems{}
	if in.URL == "" {
		list := addressesOf(settings, own, business)
		if len(list) == 0 {
			p.add("url", "No address is set for this event: give one.")
			return cloud.Endpoint{}, p.err()
		}
		in.URL = list[0].URL
	}
	to, err := atAddress(v, own, in.URL)
	if err != nil {
		return to, err
	}
	sign(&to, own, business)
	if to.Scheme = in.Scheme; in.Secret != "" {
		to.Secret, to.SecretNext, to.NextUntil = []byte(in.Secret), nil, time.Time{}
	}
	if in.Format != "" {
		to.Format = in.Format
	}
	if len(to.Secret) == 0 {
		p.add("secret", "There is no secret to sign with: set one or give one.")
	}
	return to, p.err()
}

// atAddress is the receiver of a level's settings that has an address, else one
// for this once.
func atAddress(v cloud.View, level cloud.WebhookSettings, address string) (cloud.Endpoint, error) {
	all, err := v.AccountEndpoints(level.BusinessID)
	if err != nil {
		return cloud.Endpoint{}, err
	}
	for _, e := range all {
		if e.Kind == cloud.AccountEndpoint && e.CustomerID == level.CustomerID && e.URL == address && len(used(level, e.ID)) > 0 {
			return e, nil
		}
	}
	return cloud.Endpoint{BusinessID: level.BusinessID, CustomerID: level.CustomerID, Kind: cloud.AccountEndpoint, URL: address, SandboxEnabled: true, Enabled: true, Status: statusFresh}, nil
}

// sign gives a receiver the secrets of its level, or where that has none those
// of the business. The endpoint of a subscription has its own.
func sign(e *cloud.Endpoint, own, business cloud.WebhookSettings) {
	if e.Kind == cloud.SubscriptionEndpoint {
		return
	}
	if len(own.Secret) == 0 {
		own = business
	}
	e.Secret, e.SecretNext, e.NextUntil = own.Secret, own.SecretNext, own.NextUntil
}

// direct is the receiver of a delivery that is sent again to an address.
func direct(v cloud.View, w cloud.OutboxWork, address string, _ time.Time) (cloud.Endpoint, error) {
	own, business, err := levels(v, w.Event.BusinessID, w.Delivery.CustomerID)
	if err != nil {
		return cloud.Endpoint{}, err
	}
	to, err := atAddress(v, own, address)
	sign(&to, own, business)
	return to, err
}

// addressesOf are the addresses of the first setting that has any.
func addressesOf(settings []string, own, business cloud.WebhookSettings) []cloud.HookURL {
	for _, name := range settings {
		level := own
		if !has(name)(level) {
			level = business
		}
		if list := level.URLs[name]; len(list) > 0 {
			return list
		}
	}
	return nil
}

func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// sentTest is a test with what came of it.
type sentTest struct {
	id cloud.OutboxID
	cloud.OutboxResult
}

// sendTest writes a test to a receiver, sends it and stores what came of it.
func (s *core) sendTest(ctx context.Context, c cloud.Caller, to cloud.Endpoint, event string, tweak cloud.HookTweak) (out sentTest, err error) {
	work, err := s.writeTest(ctx, c, to, event)
	if err != nil {
		return out, err
	}
	out.id = work.Delivery.ID
	out.OutboxResult, err = s.sender.SendNow(ctx, to, work, tweak)
	return out, err
}

// writeTest stores a test that the caller sends.
func (s *core) writeTest(ctx context.Context, c cloud.Caller, to cloud.Endpoint, event string) (work cloud.OutboxWork, err error) {
	now := time.Now().UTC()
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		if work, err = s.test(v, c, to, event, now); err != nil {
			return nil, err
		}
		a := audit(c, to.BusinessID, now, "webhook_test_sent", to.ID)
		a.Detail = fmt.Sprintf(`{"delivery":%d}`, work.Delivery.ID)
		return &cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{{Event: work.Event, Deliveries: []cloud.OutboxDelivery{work.Delivery}}}}, AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{a}}}, nil
	})
	if err != nil {
		return work, fmt.Errorf("write test: %w", err)
	}
	work.Delivery.Generation = 1 // its writer's own
	return work, nil
}

// test makes the event and delivery of a test send.
func (s *core) test(v cloud.View, c cloud.Caller, to cloud.Endpoint, event string, now time.Time) (w cloud.OutboxWork, err error) {
	b, err := v.Business(to.BusinessID)
	if err != nil {
		return w, err
	}
	number, err := v.NewID(cloud.EventIDs)
	if err != nil {
		return w, err
	}
	id, err := v.NewID(cloud.OutboxIDs)
	if err != nil {
		return w, err
	}
	sample, ok := s.samples(event)
	if !ok {
		return w, errors.New("there is no sample of " + event)
	}
	e := cloud.OutboxEvent{EventID: fmt.Sprint("TEST-", number), Event: event, BusinessID: to.BusinessID, Channel: cloud.ChannelAccount, ReferenceType: sample.ReferenceType,
		ReferenceID: fmt.Sprint("TEST-", number), Sequence: 1, OccurredAt: now, CreatedAt: now, Test: true}
	var body any = Envelope{EventHead: e.Head(b.Location()), CustomerID: cloud.OrNull(to.CustomerID), Test: true, Data: sample.Data}
	if to.ProviderID != 0 {
		e.EventID, e.Channel, e.ProviderID = fmt.Sprint(sample.Prefix, cloud.MockPrefix, number), to.Channel(), to.ProviderID
		m := mock{EventHead: e.Head(b.Location()), Provider: mockProvider{c.Provider.ID, c.Provider.Code, c.Provider.Name}, Data: sample.Data}
		if e.Channel == cloud.ChannelLocker { // the others' bodies say it in their data
			m.Livemode = new(bool)
		}
		body = m
	}
	if e.Body, err = marshalJSON(body); err != nil {
		return w, err
	}
	w.Event = e
	w.Delivery = cloud.OutboxDelivery{ID: cloud.OutboxID(id), EventID: e.EventID, EndpointID: to.ID, BusinessID: to.BusinessID, WebhookID: e.EventID, State: cloud.OutboxDelivering, MaxAttempts: 1,
		CreatedAt: now, CustomerID: to.CustomerID}
	if to.ID == 0 {
		w.Delivery.URL = to.URL
	}
	return w, nil
}

// mock is the body of a test to a provider's endpoint.
type mock struct {
	cloud.EventHead
	Provider mockProvider `json:"provider"`
	Livemode *bool        `json:"livemode,omitempty"`
	Data     any          `json:"data"`
}

type mockProvider struct {
	ID   cloud.ProviderID `json:"id"`
	Code string           `json:"code"`
	Name string           `json:"name"`
}

func (t sentTest) output() TestOutput {
	out := TestOutput{Result: true, Delivered: t.State == cloud.OutboxSuccess, LogID: t.id, Error: cloud.OrNull(t.Reason)}
	if a := t.Attempt; a != nil {
		ms := a.Duration.Milliseconds()
		out.HTTPStatus, out.DurationMS = cloud.OrNull(a.HTTPStatus), &ms
		if a.Error != "" {
			out.Error = &a.Error
		}
	}
	return out
}

// MockInput names the event of a test to a provider's endpoint.
type MockInput struct {
	Kind  string `json:"kind" enum:"locker_provider,third_party_delivery" doc:"Which of the provider's endpoints; empty: that which the event is for"`
	Event string `json:"event" doc:"An event of a locker delivery or a third-party delivery"`
}

// TestEndpoint sends a signed mock event to the caller's endpoint, the way that
// sandbox events go. Errors: WEBHOOK_ENDPOINT_NOT_FOUND, VALIDATION_FAILED.
func (s accountHooks) TestEndpoint(ctx context.Context, c cloud.Caller, in MockInput) (out TestOutput, err error) {
	kind, err := kindOf(c, cmp.Or(in.Kind, kindFor(in.Event)))
	if err != nil {
		return out, err
	}
	if !slices.Contains(eventsOf(kind), in.Event) {
		p := problems{}
		p.add("event", "There is no such event.")
		return out, p.err()
	}
	var to cloud.Endpoint
	err = s.store.Look(ctx, func(v cloud.View) error {
		e, ok, err := mine(v, c, kind)
		if err == nil && !ok {
			err = cloud.E(cloud.NotFound, "WEBHOOK_ENDPOINT_NOT_FOUND")
		}
		to = e
		return err
	})
	if err != nil {
		return out, err
	}
	sent, err := s.sendTest(ctx, c, to, in.Event, cloud.HookTweak{})
	return sent.output(), err
}
