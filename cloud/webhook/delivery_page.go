package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// DeliveryView is one delivery as the business's staff see it. Pickup and delivery
// codes are hidden wherever they stand, and so are the receiver's secrets.
type DeliveryView struct {
	Event    cloud.OutboxEvent // without Body
	Delivery cloud.OutboxDelivery
	Receiver Receiver // zero when it is there no more
	Attempts []cloud.OutboxAttempt
	Body     string // indented JSON; "" when it is not JSON
	// Contents reports whether the caller sees what was sent and what came back.
	// Where it is false, Body and the heads and answers of Attempts are empty.
	Contents bool
	// Obstacle is why the caller cannot have it sent again; nil: Replay does.
	Obstacle error
}

// errPartners is said of deliveries that only a partner itself sends again.
var errPartners = cloud.E(cloud.Forbidden, "ACCOUNT_TYPE_NOT_ALLOWED")

// FindDeliveryView shows one delivery of the caller's business, of any channel. Contents are
// for administrators. Errors: ACCOUNT_TYPE_NOT_ALLOWED, WEBHOOK_DELIVERY_NOT_FOUND.
func (s deliveryLog) FindDeliveryView(ctx context.Context, c cloud.Caller, in EntryInput) (out DeliveryView, err error) {
	b, err := staff(c)
	if err != nil {
		return out, err
	}
	work, err := s.store.FindOutbox(ctx, cloud.OutboxID(in.ID))
	if errors.Is(err, cloud.ErrNotFound) || err == nil && work.Event.BusinessID != b {
		return out, errNoDelivery
	}
	if err != nil {
		return out, fmt.Errorf("find delivery %d: %w", in.ID, err)
	}
	out = DeliveryView{Event: work.Event, Delivery: work.Delivery, Contents: c.Account.Type == cloud.ClientAdmin}
	if out.Attempts, err = s.store.OutboxAttempts(ctx, work.Delivery.ID); err != nil {
		return out, fmt.Errorf("list attempts of delivery %d: %w", in.ID, err)
	}
	all, err := s.receivers(ctx, b)
	if err != nil {
		return out, err
	}
	if i := slices.IndexFunc(all, func(r Receiver) bool { return r.ID == work.Delivery.EndpointID }); i >= 0 {
		out.Receiver = all[i]
		reports, err := s.store.ReportEndpoints(ctx, []cloud.EndpointID{out.Receiver.ID}, time.Now())
		if err != nil {
			return out, fmt.Errorf("report on receiver %d: %w", out.Receiver.ID, err)
		}
		s.report(&out.Receiver, reports[0])
	}
	if whose, err := owner(c); err != nil {
		out.Obstacle = err
	} else if !whose.Owns(work) {
		out.Obstacle = errPartners
	}
	out.hide()
	return out, nil
}

// hide takes out what the caller is not to see.
func (s *DeliveryView) hide() {
	hidden := hider(append(codesOf(s.Event.Body), s.Receiver.secrets...))
	if !s.Contents {
		s.Receiver.URL, s.Receiver.SandboxURL = origin(s.Receiver.URL), origin(s.Receiver.SandboxURL)
	} else {
		var b bytes.Buffer
		if m := Masked(s.Event.Body); string(m) != "null" && json.Indent(&b, m, "", "  ") == nil {
			s.Body = hidden.Replace(b.String())
		}
	}
	s.Event.Body, s.Receiver.secrets = nil, nil
	for i := range s.Attempts {
		a := &s.Attempts[i]
		a.Error, a.URL = hidden.Replace(a.Error), hidden.Replace(a.URL)
		if !s.Contents {
			a.URL, a.RequestHead, a.AnswerHead, a.AnswerBody = origin(a.URL), "", "", ""
			continue
		}
		a.RequestHead, a.AnswerHead, a.AnswerBody = hidden.Replace(a.RequestHead), hidden.Replace(a.AnswerHead), hidden.Replace(maskedText(a.AnswerBody))
	}
}

// hider stars values in texts. Those below four characters stay: they would be
// found everywhere.
func hider(values []string) *strings.Replacer {
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, v := range values {
		if len(v) >= 4 {
			pairs = append(pairs, v, mask)
		}
	}
	return strings.NewReplacer(pairs...)
}

// codesOf are the values of the codes in a body.
func codesOf(body []byte) (out []string) {
	var walk func(v any)
	walk = func(v any) {
		switch x := v.(type) {
		case map[string]any:
			for k, inner := range x {
				if code, ok := inner.(string); ok && isCode(k) {
					out = append(out, code)
				}
				walk(inner)
			}
		case []any:
			for _, inner := range x {
				walk(inner)
			}
		}
	}
	var v any
	if json.Unmarshal(body, &v) == nil {
		walk(v)
	}
	return out
}

// maskedURL hides the values of an address's query, which often hold a
// receiver's own keys.
func maskedURL(address string) string {
	start, query, ok := strings.Cut(address, "?")
	if !ok {
		return address
	}
	var parts []string
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		parts = append(parts, name+"=***")
	}
	return start + "?" + strings.Join(parts, "&")
}

// origin is scheme and host of an address, without what may be a key.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
