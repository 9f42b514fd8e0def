package page

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/webhook"
)

const (
	maxHead   = 8000 // characters of a request's or answer's head
	maxAnswer = 5000
	maxTries  = 30
	barWidth  = 1000
)

// entryPage is one delivery.
type entryPage struct {
	frame
	CSRF               string
	D                  webhookRow
	EventID, WebhookID string
	ReferenceType      string
	Receiver           *receiverRow // nil: it is there no more
	Next               string       // what happens next
	NextAt             *moment
	Reason             string // why it waits, or was not sent
	Delivered          *moment
	Of                 cloud.OutboxID // this one repeats; 0: none
	Again              cloud.OutboxID // was just sent for this one; 0: none
	Tries              []try
	Left               int // tries that are not shown
	Contents           bool
	Body               string
	MayReplay          bool
	Obstacle           string
	Open               bool // more will become of it
}

// try is one attempt.
type try struct {
	N                int
	At               *moment
	URL              string
	OK               bool
	HTTP             int
	Took             string
	Code, Error      string
	Reused, Repeated bool
	RetryAfter       string
	Planned          *moment
	Wait             *bar   // between Planned and At
	WaitReason       string // what held it up beside its plan
	Sent, Head, Body string
	Bars             []bar
}

// bar is a part of an attempt's time, as it is drawn: barWidth is the longest
// attempt of the delivery.
type bar struct {
	Name, Took string
	X, W       int
}

// span is a part of an attempt's time.
type span struct {
	name string
	took time.Duration
}

// spans are the parts of an attempt's time that are known, in their order. What
// comes after the first byte of the answer is the rest.
func spans(a cloud.OutboxAttempt) []span {
	list := []span{{"dns", a.DNS}, {"connect", a.Connect}, {"tls", a.TLS}, {"first_byte", a.FirstByte}}
	known := a.DNS + a.Connect + a.TLS + a.FirstByte
	if known == 0 {
		return []span{{"whole", a.Duration}}
	}
	return append(list, span{"rest", a.Duration - known})
}

// waited is how long after its plan an attempt began.
func waited(a cloud.OutboxAttempt) time.Duration {
	if a.PlannedAt.IsZero() {
		return 0
	}
	return max(a.At.Sub(a.PlannedAt), 0)
}

// scale is what barWidth stands for on a page: the longest attempt, and the
// longest wait before one.
type scale struct{ attempt, wait time.Duration }

func scaleOf(attempts []cloud.OutboxAttempt) scale {
	s := scale{time.Millisecond, time.Millisecond}
	for _, a := range attempts {
		s.attempt, s.wait = max(s.attempt, a.Duration), max(s.wait, waited(a))
	}
	return s
}

func newBar(s span, at, longest time.Duration) bar {
	x := min(int(barWidth*at/longest), barWidth-4)
	return bar{Name: s.name, Took: milliseconds(s.took), X: x, W: min(max(int(barWidth*s.took/longest), 4), barWidth-x)}
}

func newTry(f frame, a cloud.OutboxAttempt, long scale) try {
	t := try{N: a.Attempt, At: f.Time(a.At), URL: outside(a.URL, maxAddress), OK: a.ErrorCode == "", HTTP: a.HTTPStatus, Took: milliseconds(a.Duration), Code: outside(a.ErrorCode, 40),
		Error: outside(a.Error, maxValue), Reused: a.Reused, Repeated: a.Repeated, RetryAfter: outside(a.RetryAfter, 80), Planned: f.Time(a.PlannedAt),
		Sent: outside(a.RequestHead, maxHead), Head: outside(a.AnswerHead, maxHead), Body: outside(a.AnswerBody, maxAnswer)}
	if a.WaitReason != "" {
		t.WaitReason = f.V("hookwait", outside(a.WaitReason, 40))
	}
	if late := waited(a); late > 0 {
		b := newBar(span{"wait", late}, 0, long.wait)
		t.Wait = &b
	}
	at := time.Duration(0)
	for _, s := range spans(a) {
		if s.took <= 0 {
			continue
		}
		t.Bars = append(t.Bars, newBar(s, at, long.attempt))
		at += s.took
	}
	return t
}

func milliseconds(d time.Duration) string {
	if d > 0 && d < time.Millisecond {
		return "< 1 ms"
	}
	if d >= 10*time.Second {
		return strconv.FormatInt(int64(d.Round(time.Second)/time.Second), 10) + " s"
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
}

// hookID is the delivery that an address names; one that names none is 0, which
// no delivery has.
func hookID(s string) int64 {
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id < 0 || strconv.FormatInt(id, 10) != s {
		return 0
	}
	return id
}

func hookInput(ctx *fasthttp.RequestCtx) webhook.EntryInput {
	id, _ := ctx.UserValue("id").(string)
	return webhook.EntryInput{ID: hookID(id)}
}

// showDelivery shows one delivery.
func (p webhookPages) showDelivery(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.reader(c, ctx, "webhook_logs.list")
	if !ok {
		return
	}
	in := hookInput(ctx)
	v.Title = v.T("hooklog.one", strconv.FormatInt(in.ID, 10))
	s, err := p.cfg.Receivers.FindDeliveryView(c, v.c, in)
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	page := newEntryPage(v, s)
	page.CSRF = p.formToken(ctx, &forStaff)
	if again := hookID(string(ctx.QueryArgs().Peek("again"))); again != 0 {
		if n, err := p.cfg.Receivers.FindDeliveryView(c, v.c, webhook.EntryInput{ID: again}); err == nil && n.Delivery.ReplayOf == s.Delivery.ID {
			page.Again = n.Delivery.ID
			page.Query = "again=" + fmt.Sprint(again)
		}
	}
	p.show(ctx, fasthttp.StatusOK, "hookentry.html", page)
}

func newEntryPage(v visitor, s webhook.DeliveryView) entryPage {
	d, f := s.Delivery, v.frame
	page := entryPage{frame: f, D: newWebhookRow(f, cloud.OutboxRow{Event: s.Event, Delivery: d}), EventID: outside(d.EventID, 80),
		WebhookID: outside(d.WebhookID, 80), ReferenceType: locale.Thing(f.Lang, s.Event.ReferenceType), Delivered: f.Time(d.DeliveredAt), Of: d.ReplayOf, Contents: s.Contents,
		Body: outside(s.Body, maxPretty), MayReplay: s.Obstacle == nil, Next: f.V("hooknext", string(d.State))}
	switch d.State {
	case cloud.OutboxPending, cloud.OutboxRetrying:
		page.NextAt, page.Open = f.Time(d.NextAt), true
	case cloud.OutboxDelivering:
		page.Open = true
	}
	if d.Reason != "" {
		page.Reason = reason(f, d.Reason)
	}
	if s.Receiver.ID != 0 {
		row := newReceiverRow(f, s.Receiver)
		page.Receiver, page.D.To = &row, row.Name
		if d.State == cloud.OutboxDelivering && row.Held != "" { // the sender has it, and waits
			page.Next, page.NextAt = f.T("hooklog.held")+" "+row.Held, f.Time(s.Receiver.Held.Until)
		}
	}
	if s.Obstacle != nil {
		page.Obstacle = f.T("hooklog.admins")
		if s.Event.ProviderID != 0 {
			page.Obstacle = f.T("hooklog.theirs")
		}
	}
	attempts := s.Attempts
	if page.Left = max(len(attempts)-maxTries, 0); page.Left > 0 {
		attempts = attempts[page.Left:]
	}
	long := scaleOf(attempts)
	for _, a := range attempts {
		page.Tries = append(page.Tries, newTry(f, a, long))
	}
	return page
}

// replay sends a delivery once more for the sender of the form.
func (p webhookPages) replay(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.writer(c, ctx)
	if !ok {
		return
	}
	in := hookInput(ctx)
	out, err := run[webhook.RedeliverOutput](c, ctx, p.kit, v, "webhook_logs.replay", map[string]any{"id": in.ID})
	if err != nil {
		var shown *cloud.Error
		if errors.As(err, &shown) && shown.Kind == cloud.Forbidden {
			p.message(ctx, fasthttp.StatusForbidden, "trouble.title", "hooklog.admins")
			return
		}
		p.refused(ctx, v, err)
		return
	}
	seeOther(ctx, fmt.Sprintf("%s/%d?again=%d", hooksPath, in.ID, out.LogID))
}

// reason is why a delivery waits or was not sent, in words.
func reason(f frame, code string) string {
	switch code {
	case "TIMEOUT", "DNS", "TLS", "CONNECT", "HTTP_STATUS":
		return f.V("hookerror", code)
	}
	return f.V("hookreason", outside(code, 80))
}
