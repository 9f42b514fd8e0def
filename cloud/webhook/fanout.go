package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Envelope is the body of every event of the account channel.
type Envelope struct {
	cloud.EventHead
	CustomerID *cloud.AccountID `json:"customer_id"`
	Test       bool             `json:"test"`
	Data       any              `json:"data"`
}

// target is an address subscribed to an event.
type target struct {
	endpoint cloud.EndpointID
	setting  string
	customer cloud.AccountID // whose level
	numbered bool
	provider cloud.ProviderID // whose subscription; such a target gets an event of its own
}

// FanOut returns the outbox writes that deliver events to the addresses that
// subscribe to them by the settings in the view; none for an event without a
// subscriber. The writes belong into the changes of the decision that reads the
// view.
func (s accountHooks) FanOut(v cloud.View, events ...cloud.AccountEvent) ([]cloud.OutboxWrite, error) {
	t := fanout{v: v, known: map[cloud.AccountID]cloud.WebhookSettings{}, now: time.Now().UTC()}
	var out []cloud.OutboxWrite
	for _, e := range events {
		ws, err := t.writes(e)
		if err != nil {
			return nil, fmt.Errorf("fan out %s: %w", e.Event, err)
		}
		out = append(out, ws...)
	}
	return out, nil
}

// fanout makes the deliveries of one decision. It reads settings once.
type fanout struct {
	v     cloud.View
	now   time.Time
	known map[cloud.AccountID]cloud.WebhookSettings // of the business of the last event
	of    cloud.BusinessID
	// subscribed are the subscriptions to the shipment about, once they were read.
	subscribed []cloud.Subscribed
	about      cloud.ShipmentID
}

func (t *fanout) settings(b cloud.BusinessID, customer cloud.AccountID) (cloud.WebhookSettings, error) {
	if t.of != b {
		clear(t.known)
		t.of = b
	}
	if s, ok := t.known[customer]; ok {
		return s, nil
	}
	s, err := t.v.WebhookSettings(b, customer)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return s, err
	}
	if customer != 0 && len(s.URLs) > 0 {
		a, err := t.v.Account(customer)
		if err != nil {
			return s, err
		}
		s.Off = s.Off || !a.Enabled // nothing goes to a customer that was switched off
	}
	t.known[customer] = s
	return s, nil
}

// levelOf finds the level that a setting is taken from: the customer's where
// that has it, else the business's.
func (t *fanout) levelOf(b cloud.BusinessID, customer cloud.AccountID, has func(cloud.WebhookSettings) bool) (cloud.WebhookSettings, error) {
	if customer != 0 {
		s, err := t.settings(b, customer)
		if err != nil || has(s) {
			return s, err
		}
	}
	return t.settings(b, 0)
}

func has(setting string) func(cloud.WebhookSettings) bool {
	return func(s cloud.WebhookSettings) bool {
		_, ok := s.URLs[setting]
		return ok
	}
}

// targets are the addresses subscribed to an event, each once.
func (t *fanout) targets(e cloud.AccountEvent) ([]target, error) {
	if e.Endpoint != 0 {
		return []target{{endpoint: e.Endpoint, customer: e.CustomerID}}, nil
	}
	var out []target
	seen := map[cloud.EndpointID]bool{}
	for _, setting := range e.Settings {
		s, err := t.levelOf(e.BusinessID, e.CustomerID, has(setting))
		if err != nil {
			return nil, err
		}
		if wanted, err := t.wanted(e, setting); err != nil || s.Off || !wanted {
			if err != nil {
				return nil, err
			}
			continue
		}
		for _, u := range s.URLs[setting] {
			if !seen[u.EndpointID] {
				seen[u.EndpointID] = true
				out = append(out, target{endpoint: u.EndpointID, setting: setting, customer: s.CustomerID, numbered: u.Numbered})
			}
		}
	}
	return out, nil
}

// narrowed are the settings that names of events narrow, with those names.
var narrowed = map[string]func(cloud.WebhookSettings) []string{
	cloud.HookOrderLifecycle: func(s cloud.WebhookSettings) []string { return s.LifecycleEvents },
	cloud.HookDeviceOrder:    func(s cloud.WebhookSettings) []string { return s.DeviceEvents },
	cloud.HookTrackingEvent:  func(s cloud.WebhookSettings) []string { return s.TrackingEvents },
}

// usual are the events of settings that do not get all where nothing is set.
var usual = map[string][]string{cloud.HookTrackingEvent: cloud.TrackingEvents()}

// wanted reports whether a setting is not narrowed to other events.
func (t *fanout) wanted(e cloud.AccountEvent, setting string) (bool, error) {
	names := narrowed[setting]
	if names == nil {
		return true, nil
	}
	s, err := t.levelOf(e.BusinessID, e.CustomerID, func(s cloud.WebhookSettings) bool { return names(s) != nil })
	list := names(s)
	if list == nil {
		list = usual[setting]
	}
	return cloud.HookNamed(list, e.Event), err
}

// quiet drops the targets of levels that get another event instead.
func (t *fanout) quiet(to []target, e *cloud.AccountEvent) ([]target, error) {
	if e == nil || e.Endpoint != 0 || len(to) == 0 {
		return to, nil
	}
	others, err := t.targets(*e)
	if err != nil {
		return nil, err
	}
	levels := map[cloud.AccountID]bool{}
	for _, o := range others {
		levels[o.customer] = true
	}
	var out []target
	for _, x := range to {
		if !levels[x.customer] {
			out = append(out, x)
		}
	}
	return out, nil
}

// writes are the outbox writes of an event: one for the account channel, and one for each provider that
// subscribes to the parcel.
func (t *fanout) writes(e cloud.AccountEvent) (out []cloud.OutboxWrite, err error) {
	to, err := t.targets(e)
	if err == nil {
		to, err = t.quiet(to, e.Unless)
	}
	if err != nil {
		return nil, err
	}
	more, err := t.subscribers(e)
	if err != nil {
		return nil, err
	}
	to = append(to, more...)
	for len(to) > 0 {
		var same, others []target
		for _, x := range to {
			if x.provider == to[0].provider {
				same = append(same, x)
			} else {
				others = append(others, x)
			}
		}
		w, err := t.write(e, same)
		if err != nil {
			return nil, err
		}
		out, to = append(out, w), others
	}
	return out, nil
}

// write is an event with its deliveries to targets, which are one provider's or none.
func (t *fanout) write(e cloud.AccountEvent, to []target) (w cloud.OutboxWrite, err error) {
	b, err := t.v.Business(e.BusinessID)
	if err != nil {
		return w, err
	}
	w.Event = cloud.OutboxEvent{EventID: e.ID, Event: e.Event, BusinessID: e.BusinessID, Channel: cloud.ChannelAccount, ReferenceType: e.ReferenceType,
		ReferenceID: e.ReferenceID, OccurredAt: e.OccurredAt, CreatedAt: t.now, ProviderID: to[0].provider}
	if w.Event.Sequence, err = t.v.NextSequence(w.Event.Reference()); err != nil {
		return w, err
	}
	var number int64
	if strings.HasSuffix(e.ID, "-") {
		if number, err = t.v.NewID(cloud.EventIDs); err != nil {
			return w, err
		}
		w.Event.EventID = fmt.Sprint(e.ID, number)
	}
	body := Envelope{EventHead: w.Event.Head(b.Location())}
	if w.Event.ProviderID != 0 {
		body.Data, err = e.Tracked.Data(number)
	} else {
		body.CustomerID = cloud.OrNull(e.CustomerID)
		body.Data, err = e.Data(number, slices.ContainsFunc(to, func(x target) bool { return x.customer != 0 }))
	}
	if err != nil {
		return w, err
	}
	if w.Event.Body, err = marshalJSON(body); err != nil {
		return w, err
	}
	for i, x := range to {
		id, err := t.v.NewID(cloud.OutboxIDs)
		if err != nil {
			return w, err
		}
		webhookID := body.EventID
		if len(to) > 1 {
			webhookID = fmt.Sprintf("%s-%d", body.EventID, i+1)
		}
		d := cloud.OutboxDelivery{ID: cloud.OutboxID(id), EventID: body.EventID, EndpointID: x.endpoint, BusinessID: e.BusinessID,
			WebhookID: webhookID, State: cloud.OutboxPending, MaxAttempts: cloud.AccountAttempts, NextAt: t.now, CreatedAt: t.now, Setting: x.setting, CustomerID: x.customer}
		if x.numbered {
			d.Sequence = cloud.Unnumbered
		}
		w.Deliveries = append(w.Deliveries, d)
	}
	return w, nil
}

// marshalJSON is a body as it goes out: nothing escaped that need not be, and no
// newline at the end.
func marshalJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
