package cloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Receipt takes down what the transactions of a call wrote that its caller may want to
// know: the subject of the audit line, and who is notified. Safe for concurrent use.
type Receipt struct {
	mu     sync.Mutex
	target string
	sent   map[string]map[string]bool // receivers by kind
}

// Kinds of notices of a receipt.
const (
	NoticeWebhook = "webhook"
	NoticeMail    = "mail"
	NoticeSMS     = "sms"
	NoticePush    = "push"
	NoticeChat    = "chat"
	NoticeCabinet = "cabinet"
)

// Notice says how many receivers of a kind are notified.
type Notice struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

type receiptKey struct{}

// WithReceipt is a context whose decisions are taken down.
func WithReceipt(ctx context.Context, r *Receipt) context.Context {
	return context.WithValue(ctx, receiptKey{}, r)
}

// ReceiptOf is the receipt of a context, nil when there is none.
func ReceiptOf(ctx context.Context) *Receipt {
	r, _ := ctx.Value(receiptKey{}).(*Receipt)
	return r
}

// Take takes down changes that are stored, and the subject of their audit line where
// they have none of their own.
func (r *Receipt) Take(c *Changes, target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(c.Audits) > 0 {
		target = c.Audits[0].Target
	}
	if r.target == "" {
		r.target = target
	}
	if r.sent == nil {
		r.sent = map[string]map[string]bool{}
	}
	add := func(kind string, receiver any) {
		if r.sent[kind] == nil {
			r.sent[kind] = map[string]bool{}
		}
		r.sent[kind][fmt.Sprint(receiver)] = true
	}
	for _, w := range c.Outbox {
		for _, d := range w.Deliveries {
			add(NoticeWebhook, d.EndpointID)
		}
	}
	for _, m := range c.Notifications {
		switch {
		case m.Sandbox: // it goes nowhere
		case m.Channel == BySMS:
			add(NoticeSMS, m.ID)
		default:
			add(NoticeMail, m.ID)
		}
	}
	for _, p := range c.Pushes {
		add(NoticePush, p.DriverID)
	}
	for _, m := range c.ChatMessages {
		add(NoticeChat, m.OrderID)
	}
	for _, m := range c.Commands {
		add(NoticeCabinet, m.DeviceID)
	}
}

// Target is the subject of the audit line, "" when none was written.
func (r *Receipt) Target() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.target
}

// Notices are the kinds of receivers that are notified.
func (r *Receipt) Notices() (out []Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kind := range slices.Sorted(maps.Keys(r.sent)) {
		out = append(out, Notice{kind, len(r.sent[kind])})
	}
	return out
}
