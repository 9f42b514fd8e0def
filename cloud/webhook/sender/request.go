package sender

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/span"
	"github.com/postern-io/postern/protocol/cloudevent"
	"github.com/postern-io/postern/protocol/signature"
)

const userAgent = "TMS-Webhooks/1"

// Bodies are refused above maxBody, and counted above largeBody, which is what
// receivers of CloudEvents must be able to take, headers included.
const (
	maxBody   = 256 << 10
	largeBody = 64 << 10
)

// request is what goes out in one attempt.
type request struct {
	head string // request line and headers, with the empty line behind them
	body []byte // what the signatures are of
}

// large reports whether a receiver may find a request too large.
func (r request) large() bool { return len(r.head)+len(r.body) > largeBody }

// message is an event on its way to one receiver.
type message struct {
	target   *fetch.Target
	endpoint *cloud.Endpoint
	work     *cloud.OutboxWork
	base     string // the deployment's address, without a slash at its end
	uid      string // X-Webhook-Delivery-Id
	attempt  int
	now      time.Time
	key      ed25519.PrivateKey // the deployment's, for v1a; nil: there is none
	trace    string             // traceparent of the attempt, "" when it is not followed
}

// build makes the request:
//
//	POST path HTTP/1.1
//	Host, Content-Type, Content-Length, User-Agent
//	X-Webhook-Event, -Event-Id, -Id, -Timestamp, -Reference-Sequence, -Attempt
//	ce-…                           in binary mode
//	the signatures of the channel
//	webhook-…                      of Standard Webhooks
//	X-Webhook-Test, -Replay, -Sequence, traceparent when they apply
//
// The format is applied first: every signature is of the bytes that go out.
func (m message) build() (r request, err error) {
	e := &m.work.Event
	switch {
	case len(m.endpoint.Secret) == 0:
		return r, errors.New("the receiver has no secret")
	case len(e.Body) > maxBody:
		return r, errors.New("the body is too large")
	case !signature.PlainID(e.EventID) || !signature.PlainID(m.work.Delivery.WebhookID):
		return r, errors.New("an id holds other characters than A-Z, a-z, 0-9, _ and -, or more than 64")
	}
	h, contentType, stamp := header{}, "application/json; charset=utf-8", strconv.FormatInt(m.now.Unix(), 10)
	r.body = e.Body
	if m.endpoint.Format == cloud.FormatStructured {
		contentType = cloudevent.ContentType
		if r.body, err = cloudevent.Structured(m.event(), e.Body); err != nil {
			return r, err
		}
	}
	h.b.Grow(1536)
	h.b.WriteString("POST " + m.target.Path + " HTTP/1.1\r\n")
	h.add("Host", m.target.HostHeader())
	h.add("Content-Type", contentType)
	h.add("Content-Length", strconv.Itoa(len(r.body)))
	h.add("User-Agent", userAgent)
	h.add("X-Webhook-Event", e.Event)
	h.add("X-Webhook-Event-Id", e.EventID)
	h.add("X-Webhook-Id", m.work.Delivery.WebhookID)
	h.add(signature.HeaderTimestamp, stamp)
	if e.Sequence > 0 {
		h.add("X-Webhook-Reference-Sequence", strconv.FormatInt(e.Sequence, 10))
	}
	h.add("X-Webhook-Attempt", strconv.Itoa(m.attempt))
	if m.endpoint.Format == cloud.FormatBinary {
		for _, a := range m.event().Attributes() {
			h.add("ce-"+a.Name, cloudevent.EncodeHeader(a.Value))
		}
	}
	switch scheme := m.endpoint.Scheme; {
	case scheme == cloud.SchemeHandoff:
		m.signHandoff(&h, r.body)
	case scheme == cloud.SchemeProvider, scheme == "" && e.Channel != cloud.ChannelAccount:
		m.signProvider(&h, r.body)
	default:
		m.signAccount(&h, r.body)
	}
	if err := m.signStandard(&h, r.body); err != nil {
		return r, err
	}
	if e.Test {
		h.add("X-Webhook-Test", "1")
	}
	if m.work.Delivery.ReplayOf != 0 {
		h.add("X-Webhook-Replay", "1")
	}
	if n := m.work.Delivery.Sequence; n > 0 {
		h.add("X-Webhook-Sequence", strconv.FormatInt(n, 10))
	}
	if m.trace != "" {
		h.add(span.HeaderName, m.trace)
	}
	h.b.WriteString("\r\n")
	if h.bad {
		return r, errors.New("a header would hold other characters than printable ASCII")
	}
	r.head = h.b.String()
	return r, nil
}

// signHandoff writes the signature of the handoff protocol, which a test send
// may ask for.
func (m message) signHandoff(h *header, body []byte) {
	current, _ := m.endpoint.Secrets(m.now)
	h.add(signature.HeaderHandoffTimestamp, strconv.FormatInt(m.now.Unix(), 10))
	h.add(signature.HeaderHandoff, signature.Handoff(current, m.now, body))
}

// header is the head of a request while it is made.
type header struct {
	b   strings.Builder
	bad bool // a value cannot stand in a header
}

func (h *header) add(name, value string) {
	h.bad = h.bad || !headerValue(value)
	h.b.WriteString(name)
	h.b.WriteString(": ")
	h.b.WriteString(value)
	h.b.WriteString("\r\n")
}

// event describes the event as CloudEvents does. Source and id are the same for
// ever; nothing in it is about a person.
func (m message) event() cloudevent.Event {
	e := &m.work.Event
	out := cloudevent.Event{ID: e.EventID, Type: e.Event, Source: m.base + "/businesses/" + strconv.FormatInt(int64(e.BusinessID), 10), Time: occurredAt(e),
		Subject: e.ReferenceType + "/" + e.ReferenceID}
	if e.Channel == cloud.ChannelLocker {
		live := !e.Test
		out.Livemode = &live
	}
	return out
}

// occurredAt is the member of that name, as the body spells it: the envelope
// has it near its beginning, before anything that others wrote.
func occurredAt(e *cloud.OutboxEvent) string {
	if _, rest, ok := bytes.Cut(e.Body[:min(len(e.Body), 512)], []byte(`"occurred_at":"`)); ok {
		text, _, _ := bytes.Cut(rest, []byte(`"`))
		if at, err := time.Parse(time.RFC3339, string(text)); err == nil && at.Sub(e.OccurredAt).Abs() < time.Second {
			return string(text)
		}
	}
	return e.OccurredAt.UTC().Format(time.RFC3339)
}

// signProvider writes the signatures of a provider channel:
//
//	X-Webhook-Delivery-Id
//	X-Webhook-Signature            current secret
//	X-Webhook-Signature-Next       next secret, during a rotation
//	X-Webhook-Content-Digest
func (m message) signProvider(h *header, body []byte) {
	h.add(signature.HeaderDeliveryID, m.uid)
	current, next := m.endpoint.Secrets(m.now)
	h.add(signature.HeaderProvider, signature.Provider(current, m.now, m.uid, body))
	if next != nil {
		h.add(signature.HeaderProviderNext, signature.Provider(next, m.now, m.uid, body))
	}
	h.add(signature.HeaderDigest, signature.Digest(body))
}

// signAccount writes the signatures of the account channel:
//
//	Signature                 current secret
//	Signature-Next            next secret, during a rotation
//	X-Webhook-Signature-V2    next secret, then the current one
func (m message) signAccount(h *header, body []byte) {
	current, next := m.endpoint.Secrets(m.now)
	h.add(signature.HeaderLegacy, signature.Legacy(current, body))
	keys := [][]byte{current}
	if next != nil {
		h.add(signature.HeaderLegacyNext, signature.Legacy(next, body))
		keys = [][]byte{next, current}
	}
	h.add(signature.HeaderV2, signature.V2(m.now, body, keys...))
}

// signStandard writes the headers of Standard Webhooks where they are wanted:
// one v1 signature for each secret, the next one first, and then a v1a one.
func (m message) signStandard(h *header, body []byte) error {
	scheme, id := m.endpoint.Signature, m.work.Event.EventID
	if scheme != cloud.SignatureStandard && scheme != cloud.SignatureAsymmetric {
		return nil
	}
	current, next := m.endpoint.Secrets(m.now)
	var keys [][]byte
	for _, secret := range [][]byte{next, current} {
		if secret == nil {
			continue
		}
		key, err := signature.StandardKey(string(secret))
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	value := signature.Standard(id, m.now, body, keys...)
	if scheme == cloud.SignatureAsymmetric {
		key := signingKey(m.endpoint)
		if key == nil {
			if key = m.key; key == nil {
				return errors.New("the receiver has no signing key")
			}
			h.add(signature.HeaderKeyID, signature.KeyID(key.Public().(ed25519.PublicKey)))
		}
		value += " " + signature.StandardAsymmetric(key, id, m.now, body)
	}
	h.add(signature.HeaderStandardID, id)
	h.add(signature.HeaderStandardTimestamp, strconv.FormatInt(m.now.Unix(), 10))
	h.add(signature.HeaderStandard, value)
	return nil
}

// signingKey is the whole private key of a receiver that has the seed of one, or
// the key itself; nil when it has neither.
func signingKey(e *cloud.Endpoint) ed25519.PrivateKey {
	switch len(e.SigningKey) {
	case ed25519.SeedSize:
		return ed25519.NewKeyFromSeed(e.SigningKey)
	case ed25519.PrivateKeySize:
		return ed25519.PrivateKey(e.SigningKey)
	}
	return nil
}

// headerValue reports whether a value can stand in a header as it is.
func headerValue(v string) bool {
	for _, c := range []byte(v) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return v != ""
}
