package sender

import (
	"cmp"
	"crypto/ed25519"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
)

// Example is what would go out for an event of an order or delivery with its
// sample as the body, to a receiver of a format and signature that has the
// secret: the headers, one a line, and the body. The Ed25519 key is that of a
// seed of zeros.
func Example(base string, e cloud.HookEvent, sample []byte, format, signature, secret string, at time.Time) (head, body string, err error) {
	t := &fetch.Target{TLS: true, Host: "hooks.example.com", Port: 443, Path: "/postern"}
	var envelope struct {
		ID         string    `json:"event_id"`
		OccurredAt time.Time `json:"occurred_at"`
		Sequence   int64     `json:"sequence"`
		Data       struct {
			Order struct {
				ID int64 `json:"order_id"`
			} `json:"order"`
			Delivery struct {
				Number string `json:"delivery_number"`
			} `json:"delivery"`
			Assignment string `json:"assignment_number"`
		} `json:"data"`
	}
	if err := json.Unmarshal(sample, &envelope); err != nil {
		return "", "", err
	}
	id := envelope.ID
	reference := cmp.Or(envelope.Data.Delivery.Number, envelope.Data.Assignment, strconv.FormatInt(envelope.Data.Order.ID, 10))
	w := &cloud.OutboxWork{
		Event:    cloud.OutboxEvent{EventID: id, Event: e.Name, BusinessID: 42, Channel: cmp.Or(e.Channel, cloud.ChannelAccount), ReferenceType: e.ReferenceType, ReferenceID: reference, Sequence: envelope.Sequence, OccurredAt: envelope.OccurredAt, Body: sample},
		Delivery: cloud.OutboxDelivery{WebhookID: id},
	}
	ep := &cloud.Endpoint{Secret: []byte(secret), Format: format, Signature: signature, SigningKey: make([]byte, ed25519.SeedSize)}
	r, err := message{t, ep, w, strings.TrimRight(base, "/"), "0f2d6c1e-8d0e-4c39-9d0a-6f1b2a3c4d5e", 1, at, nil, ""}.build()
	return strings.TrimSpace(strings.ReplaceAll(r.head, "\r\n", "\n")), string(r.body), err
}
