package webhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Row is one delivery of an event, with its last attempt.
type Row struct {
	ID            cloud.OutboxID    `json:"id"`
	EventID       string            `json:"event_id"`
	WebhookID     string            `json:"webhook_id"`
	Event         string            `json:"event"`
	Channel       string            `json:"channel"`
	Setting       *string           `json:"setting"`
	Level         string            `json:"level"`
	CustomerID    *cloud.AccountID  `json:"customer_id"`
	ProviderID    *cloud.ProviderID `json:"provider_id"`
	ReferenceType string            `json:"reference_type"`
	ReferenceID   string            `json:"reference_id"`
	URL           *string           `json:"url"`
	Format        string            `json:"format"`
	Signature     string            `json:"signature"`
	Attempt       int               `json:"attempt"`
	MaxAttempts   int               `json:"max_attempts"`
	Status        cloud.OutboxState `json:"status"`
	HTTPStatus    *int              `json:"http_status"`
	DurationMS    *int64            `json:"duration_ms"`
	ErrorCode     *string           `json:"error_code"`
	Error         *string           `json:"error"`
	NextRetryAt   *string           `json:"next_retry_at"`
	DeliveredAt   *string           `json:"delivered_at"`
	CreatedAt     *string           `json:"created_at"`
	IsTest        bool              `json:"is_test"`
	ReplayOf      *cloud.OutboxID   `json:"replay_of"`
}

// Entry is a delivery in full. Codes of its body are masked wherever they stand.
type Entry struct {
	Row
	RequestHeaders  map[string]string `json:"request_headers"`
	RequestBody     json.RawMessage   `json:"request_body"`
	ResponseHeaders map[string]string `json:"response_headers"`
	ResponseBody    *string           `json:"response_body"`
	Attempts        []Attempt         `json:"attempts"`
}

// Attempt is one request.
type Attempt struct {
	Attempt    int     `json:"attempt"`
	At         *string `json:"at"`
	HTTPStatus *int    `json:"http_status"`
	DurationMS int64   `json:"duration_ms"`
	ErrorCode  *string `json:"error_code"`
	// Parts of the duration, and what the attempt waited for beside its plan.
	DNSMS       int64   `json:"dns_ms"`
	ConnectMS   int64   `json:"connect_ms"`
	TLSMS       int64   `json:"tls_ms"`
	FirstByteMS int64   `json:"first_byte_ms"`
	Reused      bool    `json:"reused"`   // a connection that was there
	Repeated    bool    `json:"repeated"` // as that connection was dead
	PlannedAt   *string `json:"planned_at"`
	RetryAfter  *string `json:"retry_after"`
	WaitReason  *string `json:"wait_reason"` // rate, breaker, order, retry_after, proxy
}

// LogInput asks for a page of the log, newest first.
type LogInput struct {
	Event       string `query:"event"`
	Status      string `query:"status" enum:"pending,delivering,success,retrying,failed,dead,paused"`
	ReferenceID string `query:"reference_id"`
	From        string `query:"from" format:"moment"`
	To          string `query:"to" format:"moment"`
	Before      int64  `query:"before" doc:"Only those with smaller ids; a cursor does the same"`
	check.Keyset
}

// LogOutput is a page of the log. NextBefore is the Before of the next one, null at
// the end.
type LogOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Deliveries []Row           `json:"deliveries"`
	NextBefore *cloud.OutboxID `json:"next_before"`
}

// List shows the caller's delivery log. Error: VALIDATION_FAILED.
func (s deliveryLog) List(ctx context.Context, c cloud.Caller, in LogInput) (out LogOutput, err error) {
	l, err := s.zone(ctx, c.Provider.BusinessID)
	if err != nil {
		return out, err
	}
	f, err := in.filter(c, l)
	if err != nil {
		return out, err
	}
	listed, rows, err := s.store.ListOutbox(ctx, f)
	if err != nil {
		return out, fmt.Errorf("list deliveries: %w", err)
	}
	out = LogOutput{Result: true, PageOutput: in.Output(in, listed), Deliveries: []Row{}}
	if listed.Next != nil {
		out.NextBefore = &rows[len(rows)-1].Delivery.ID
	}
	for _, r := range rows {
		out.Deliveries = append(out.Deliveries, row(r, l))
	}
	return out, nil
}

func (in LogInput) filter(c cloud.Caller, l *time.Location) (cloud.OutboxFilter, error) {
	page, err := in.Part(in, "-id")
	if page.After == nil && in.Before > 0 {
		page.After = &cloud.Mark{ID: in.Before}
	}
	return cloud.OutboxFilter{BusinessID: c.Provider.BusinessID, ProviderID: c.Provider.ID, Event: in.Event, ReferenceID: in.ReferenceID,
		State: cloud.OutboxState(in.Status), Page: page, From: check.Moment(in.From, l), To: check.Moment(in.To, l)}, err
}

// EntryInput names one delivery.
type EntryInput struct {
	ID int64 `path:"id"`
}

// EntryOutput shows one delivery.
type EntryOutput struct {
	Result   bool  `json:"result"`
	Delivery Entry `json:"delivery"`
}

var errNoDelivery = cloud.E(cloud.NotFound, "WEBHOOK_DELIVERY_NOT_FOUND")

// FindDelivery shows one delivery of the caller with its attempts. Error:
// WEBHOOK_DELIVERY_NOT_FOUND.
func (s deliveryLog) FindDelivery(ctx context.Context, c cloud.Caller, in EntryInput) (out EntryOutput, err error) {
	out.Delivery, err = s.entry(ctx, cloud.OutboxOwner{BusinessID: c.Provider.BusinessID, ProviderID: c.Provider.ID}, in)
	out.Result = err == nil
	return out, err
}

// owned finds a delivery of an owner. Error: WEBHOOK_DELIVERY_NOT_FOUND.
func (s deliveryLog) owned(ctx context.Context, whose cloud.OutboxOwner, id int64) (cloud.OutboxWork, error) {
	work, err := s.store.FindOutbox(ctx, cloud.OutboxID(id))
	if errors.Is(err, cloud.ErrNotFound) || err == nil && !whose.Owns(work) {
		return cloud.OutboxWork{}, errNoDelivery
	}
	if err != nil {
		return work, fmt.Errorf("find delivery %d: %w", id, err)
	}
	return work, nil
}

// entry shows one delivery in full.
func (s deliveryLog) entry(ctx context.Context, whose cloud.OutboxOwner, in EntryInput) (e Entry, err error) {
	work, err := s.owned(ctx, whose, in.ID)
	if err != nil {
		return e, err
	}
	attempts, err := s.store.OutboxAttempts(ctx, cloud.OutboxID(in.ID))
	if err != nil {
		return e, fmt.Errorf("list attempts of delivery %d: %w", in.ID, err)
	}
	l, err := s.zone(ctx, whose.BusinessID)
	if err != nil {
		return e, err
	}
	shown := cloud.OutboxRow{Event: work.Event, Delivery: work.Delivery}
	e = Entry{Attempts: []Attempt{}, RequestHeaders: map[string]string{}, ResponseHeaders: map[string]string{}, RequestBody: Masked(work.Event.Body)}
	for _, a := range attempts {
		e.Attempts = append(e.Attempts, Attempt{Attempt: a.Attempt, At: cloud.Stamp(a.At, l), HTTPStatus: cloud.OrNull(a.HTTPStatus), DurationMS: a.Duration.Milliseconds(), ErrorCode: cloud.OrNull(a.ErrorCode),
			DNSMS: a.DNS.Milliseconds(), ConnectMS: a.Connect.Milliseconds(), TLSMS: a.TLS.Milliseconds(), FirstByteMS: a.FirstByte.Milliseconds(), Reused: a.Reused, Repeated: a.Repeated,
			PlannedAt: cloud.Stamp(a.PlannedAt, l), RetryAfter: cloud.OrNull(a.RetryAfter), WaitReason: cloud.OrNull(a.WaitReason)})
	}
	if n := len(attempts); n > 0 {
		last := attempts[n-1]
		shown.Last = &last
		hidden := hider(codesOf(work.Event.Body)) // a receiver may say a code in any words
		e.RequestHeaders, e.ResponseHeaders = heads(last.RequestHead), heads(hidden.Replace(last.AnswerHead))
		e.ResponseBody = cloud.OrNull(hidden.Replace(maskedText(last.AnswerBody)))
		last.Error = hidden.Replace(last.Error)
	}
	e.Row = row(shown, l)
	return e, nil
}

// RedeliverOutput tells of the new row.
type RedeliverOutput struct {
	Result bool              `json:"result"`
	LogID  cloud.OutboxID    `json:"log_id"`
	Status cloud.OutboxState `json:"status"`
}

// Redeliver sends a stored event again: the same bytes and ids, a new row.
// Error: WEBHOOK_DELIVERY_NOT_FOUND.
func (s deliveryLog) Redeliver(ctx context.Context, c cloud.Caller, in EntryInput) (out RedeliverOutput, err error) {
	if c.Provider.ID == 0 {
		return out, errors.New("redeliver: the caller is no provider")
	}
	return s.again(ctx, c, cloud.OutboxOwner{BusinessID: c.Provider.BusinessID, ProviderID: c.Provider.ID}, in.ID, "")
}

// again sends a delivery once more: to its receiver, or with url there. What
// went to an address of its own goes there again.
func (s deliveryLog) again(ctx context.Context, c cloud.Caller, whose cloud.OutboxOwner, of int64, url string) (out RedeliverOutput, err error) {
	// Looking first keeps strangers from using ids up, and names the event in a preview.
	work, err := s.owned(ctx, whose, of)
	if err != nil {
		return out, err
	}
	url = cmp.Or(url, work.Delivery.URL)
	if p := cloud.PreviewOf(ctx); p != nil {
		p.Sent(of, work.Event.Event)
		return RedeliverOutput{Result: true}, nil
	}
	now := time.Now().UTC()
	var to cloud.Endpoint
	d, err := s.store.Redeliver(ctx, whose, cloud.OutboxID(of), 0, url, now, func(v cloud.View, d cloud.OutboxWork) (_ *cloud.Changes, err error) {
		if url != "" {
			if to, err = direct(v, d, url, now); err != nil {
				return nil, err
			}
		}
		out = RedeliverOutput{Result: true, LogID: d.Delivery.ID, Status: d.Delivery.State}
		a := audit(c, whose.BusinessID, now, "webhook_redelivered", d.Delivery.EndpointID)
		a.Detail = fmt.Sprintf(`{"delivery":%d,"elsewhere":%t}`, of, url != "")
		return &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{a}}, Answer: out, Unfinished: url != ""}, nil
	})
	if errors.Is(err, cloud.ErrNotFound) {
		return RedeliverOutput{}, errNoDelivery
	}
	if err != nil {
		return RedeliverOutput{}, fmt.Errorf("redeliver %d: %w", of, err)
	}
	if url != "" {
		r, err := s.sender.SendNow(ctx, to, d, cloud.HookTweak{})
		if err != nil {
			return out, fmt.Errorf("redeliver %d: %w", of, err)
		}
		out.Status = r.State
	}
	return out, nil
}

func (s *core) zone(ctx context.Context, id cloud.BusinessID) (l *time.Location, err error) {
	err = s.store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(id)
		l = b.Location()
		return err
	})
	return l, err
}

func row(r cloud.OutboxRow, l *time.Location) Row {
	d, e := r.Delivery, r.Event
	out := Row{ID: d.ID, EventID: d.EventID, WebhookID: d.WebhookID, Event: e.Event, Channel: e.Channel, Setting: cloud.OrNull(d.Setting), Level: level(r), CustomerID: cloud.OrNull(d.CustomerID),
		ProviderID: cloud.OrNull(e.ProviderID), ReferenceType: e.ReferenceType, ReferenceID: e.ReferenceID, Format: "native", Signature: "native", Attempt: d.Attempts, MaxAttempts: d.MaxAttempts,
		Status: d.State, DeliveredAt: cloud.Stamp(d.DeliveredAt, l), CreatedAt: cloud.Stamp(d.CreatedAt, l), IsTest: e.Test, ReplayOf: cloud.OrNull(d.ReplayOf), Error: cloud.OrNull(d.Reason)}
	if d.State == cloud.OutboxPending || d.State == cloud.OutboxRetrying {
		out.NextRetryAt = cloud.Stamp(d.NextAt, l)
	}
	if a := r.Last; a != nil {
		ms := a.Duration.Milliseconds()
		out.URL, out.HTTPStatus, out.DurationMS, out.ErrorCode = cloud.OrNull(a.URL), cloud.OrNull(a.HTTPStatus), &ms, cloud.OrNull(a.ErrorCode)
		if a.Error != "" {
			out.Error = cloud.OrNull(a.Error)
		}
	}
	return out
}

// level is whose settings named the receiver.
func level(r cloud.OutboxRow) string {
	switch {
	case r.Delivery.Setting == cloud.HookSubscription:
		return "subscription"
	case r.Event.ProviderID != 0:
		return "provider"
	case r.Delivery.CustomerID != 0:
		return levelCustomer
	}
	return levelBusiness
}

// heads are header lines as an object.
func heads(lines string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(lines) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.Contains(k, " ") { // the first line is none
			out[k] = strings.TrimSpace(v)
		}
	}
	return out
}

const mask = "******"

// Masked is an event's body for eyes: the values of pickup_code and
// delivery_code are starred, wherever they stand, also inside other texts. A
// body that is not JSON is left out: null.
func Masked(body []byte) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return json.RawMessage("null")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) { // it began like JSON
		return json.RawMessage("null")
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(masked(v, hider(codesOf(body)))) != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}

// maskedText is what a receiver answered: one that sends the event back has its
// codes masked as well.
func maskedText(body string) string {
	if m := Masked([]byte(body)); string(m) != "null" {
		return string(m)
	}
	return codeMember.ReplaceAllString(body, `${1}"`+mask+`"`)
}

// codeMember finds codes in JSON that was cut off.
var codeMember = regexp.MustCompile(`("(?:pickup_code|delivery_code)"\s*:\s*)(?:"[^"]*"?|[0-9]+)`)

// isCode reports whether a member holds a code.
func isCode(name string) bool { return name == "pickup_code" || name == "delivery_code" }

// masked is a value without its codes, and without those that hidden knows.
func masked(v any, hidden *strings.Replacer) any {
	switch x := v.(type) {
	case string:
		return hidden.Replace(x)
	case map[string]any:
		for k, inner := range x {
			if x[k] = mask; inner == nil || !isCode(k) {
				x[k] = masked(inner, hidden)
			}
		}
	case []any:
		for i, inner := range x {
			x[i] = masked(inner, hidden)
		}
	}
	return v
}
