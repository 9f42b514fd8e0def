package cloud

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"sync"
	"time"
)

// Preview takes down what decisions would write, in place of writing it. A
// context that carries one makes the store run decisions as ever and throw away
// their changes. Safe for concurrent use.
type Preview struct {
	mu      sync.Mutex
	effects []Effect
	others  []Effect // what has no rule here, of decisions without another effect
}

// Effect is one thing that a decision would change.
type Effect struct {
	Type string `json:"type"` // order
	ID   any    `json:"id"`   // null for a new one
	// Name is what people call it, as far as that is ours: a number.
	Name   string         `json:"name,omitempty"`
	Before map[string]any `json:"before"` // members that change; null for a new one
	After  map[string]any `json:"after"`  // null for one that is gone

	version string // of the thing as it is, whether it is shown or not; of a new one what is not shown of it
}

type previewKey struct{}

// WithPreview is a context in which nothing is written.
func WithPreview(ctx context.Context, p *Preview) context.Context {
	return context.WithValue(ctx, previewKey{}, p)
}

// PreviewOf is the preview of a context, nil when what is decided is written.
func PreviewOf(ctx context.Context) *Preview {
	p, _ := ctx.Value(previewKey{}).(*Preview)
	return p
}

// Effects are what decisions would change so far. When that is nothing that a
// preview shows members of, they name the kinds of things that would change: a
// preview says that nothing would only when nothing is written.
func (p *Preview) Effects() []Effect {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.effects) == 0 {
		return append([]Effect{}, p.others...)
	}
	return append([]Effect{}, p.effects...)
}

// Take takes down what c would change of what v shows.
func (p *Preview) Take(v View, c *Changes) error {
	out, err := effectsOf(v, c)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.effects = append(p.effects, out...)
	if len(out) == 0 {
		p.others = append(p.others, c.kinds()...)
	}
	return nil
}

// effectsOf are the effects of c on what v shows. Times, versions and what
// follows of itself (events, messages, audit lines) are left out.
func effectsOf(v View, c *Changes) ([]Effect, error) {
	var out []Effect
	add := func(kind string, id any, name string, old any, before, after map[string]any) {
		e := Effect{Type: kind, ID: id, Name: name, version: versionOf(old)}
		if before == nil || after == nil {
			e.Before, e.After = dropEmpty(before), dropEmpty(after)
			out = append(out, e)
		} else if e.Before, e.After = differ(before, after); len(e.After) > 0 {
			out = append(out, e)
		}
	}
	for _, o := range c.Orders {
		old, err := v.Order(o.BusinessID, o.ID)
		switch {
		case errors.Is(err, ErrNotFound):
			add("order", nil, "", o.terms(), nil, o.members())
		case err != nil:
			return nil, err
		default:
			add("order", o.ID, o.Number, old, old.members(), o.members())
		}
	}
	for _, k := range c.DroppedOrders {
		old, err := v.Order(k.BusinessID, k.ID)
		if err != nil {
			return nil, err
		}
		add("order", k.ID, old.Number, old, old.members(), nil)
	}
	for _, j := range c.Jobs {
		if j.Operation != "" {
			old, err := v.Job(j.BusinessID, j.ID)
			switch {
			case errors.Is(err, ErrNotFound):
				add("job", nil, "", nil, nil, j.members())
			case err != nil:
				return nil, err
			default:
				add("job", j.ID, j.ID, old, old.members(), j.members())
			}
			continue
		}
		b, err := v.Business(j.BusinessID)
		if err != nil {
			return nil, err
		}
		add("order_batch", nil, "", b.Settings.terms(), nil, map[string]any{"orders": j.Total, "stop_on_error": j.StopOnError, "postback": j.Postback != 0})
	}
	for _, s := range c.WebhookSettings {
		old, err := v.WebhookSettings(s.BusinessID, s.CustomerID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		before, after := old.members(), s.members()
		for name, changed := range map[string]bool{"webhook_sign_secret": !bytes.Equal(old.Secret, s.Secret), "webhook_sign_secret_next": !bytes.Equal(old.SecretNext, s.SecretNext)} {
			if changed && after[name] == before[name] {
				after[name] = "another one"
			}
		}
		add("webhook_settings", s.BusinessID, "", old, before, after)
	}
	for _, a := range c.Approvals {
		old, err := v.Approval(a.BusinessID, a.ID)
		switch {
		case errors.Is(err, ErrNotFound):
			add("approval", nil, "", nil, nil, a.members())
		case err != nil:
			return nil, err
		default:
			add("approval", a.ID, string(a.ID), old, old.members(), a.members())
		}
	}
	for _, m := range c.ChatMessages {
		old, err := v.ChatMessage(m.BusinessID, m.ID)
		switch {
		case errors.Is(err, ErrNotFound):
			add("chat_message", nil, "", nil, nil, m.members())
		case err != nil:
			return nil, err
		default:
			add("chat_message", m.ID, "", old, old.members(), m.members())
		}
	}
	others, err := otherEffects(v, c)
	return append(out, others...), err
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

// dropEmpty leaves out members that say nothing.
func dropEmpty(members map[string]any) map[string]any {
	for k, v := range members {
		if x := reflect.ValueOf(v); v == nil || x.Kind() == reflect.Pointer && x.IsNil() {
			delete(members, k)
		}
	}
	return members
}

// differ leaves of two sets of members those that are not the same.
func differ(before, after map[string]any) (b, a map[string]any) {
	b, a = map[string]any{}, map[string]any{}
	for k, x := range after {
		if !reflect.DeepEqual(before[k], x) {
			b[k], a[k] = before[k], x
		}
	}
	return b, a
}

// members are what people are shown of an order in a preview.
func (o Order) members() map[string]any {
	packages := make([]map[string]any, len(o.Packages))
	for i, p := range o.Packages {
		packages[i] = map[string]any{"package_ref": OrNull(p.Ref), "description": OrNull(p.Description), "quantity": p.Quantity}
	}
	out := map[string]any{
		"order_ref": OrNull(o.Ref), "type": o.Type, "order_status_id": o.Status, "order_status": o.Status.String(), "customer_id": OrNull(o.CustomerID),
		"scheduled_date": OrNull(o.ScheduledDate), "time_window_start": OrNull(o.WindowStart), "time_window_end": OrNull(o.WindowEnd),
		"sender": o.Sender.line(), "recipient": o.Recipient.line(), "packages": packages, "delivery_instruction": OrNull(o.Instruction), "note": OrNull(o.Note),
		"priority": o.Priority, "driver_id": OrNull(o.DriverID), "route_id": OrNull(o.RouteID), "broker_id": OrNull(o.BrokerID), "cancel_reason": OrNull(o.CancelReason),
	}
	if p := o.Prices; p != nil {
		out["shipping_price"], out["tax"], out["total_price"], out["currency"] = p.Shipping, p.Tax, p.Total, p.Currency
	}
	return out
}

// line is an address as one writes it on one line, null when there is none.
func (a *Address) line() any {
	if a == nil {
		return nil
	}
	out := a.Name
	for _, s := range []string{a.Company, a.Line1, a.Line2, a.City, a.Province, a.PostalCode, a.Country} {
		if s != "" {
			out += ", " + s
		}
	}
	return out
}

func (s WebhookSettings) members() map[string]any {
	secret := func(b []byte) string { // whether there is one, not what it is
		if len(b) == 0 {
			return "not set"
		}
		return "set"
	}
	out := map[string]any{"enabled": !s.Off, "webhook_sign_secret": secret(s.Secret), "webhook_sign_secret_next": secret(s.SecretNext), "order_lifecycle_events": s.LifecycleEvents, "device_order_events": s.DeviceEvents, "driver_location_min_interval_sec": int(s.PlaceEvery / time.Second)}
	for name, list := range s.URLs {
		urls := make([]string, len(list))
		for i, u := range list {
			urls[i] = u.URL
		}
		out[name] = urls
	}
	return out
}

func (j Job) members() map[string]any {
	return map[string]any{"operation": j.Operation, "records": j.Total, "status": j.Status, "file": OrNull(j.File)}
}

func (a Approval) members() map[string]any {
	return map[string]any{"tool": a.Tool, "status": a.Status, "summary": a.Summary, "review_note": OrNull(a.Note)}
}

func (m ChatMessage) members() map[string]any {
	return map[string]any{"order_id": m.OrderID, "kind": m.Kind, "text": OrNull(m.Text), "staff_only": m.Staff, "attachments": len(m.Attachments), "deleted": !m.DeletedAt.IsZero()}
}
