package notification

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/signature"
)

// Post sends a body to an address and gives the answer's status. Headers are beside those
// that every request has.
type Post func(ctx context.Context, url string, headers [][2]string, body []byte) (status int, answer []byte, err error)

// Gateway takes short messages at one address, each as a signed POST, and hands them to a
// telephone network. Any answer of the 200s takes the message; 400, 413 and 422 refuse it
// for good, all others are asked again later. The signature is that of Standard Webhooks,
// and so are the headers; webhook-id is the message's id, by which a gateway drops one that
// comes twice.
type Gateway struct {
	URL    string
	Secret string // as in settings: whsec_… or any text
	Post   Post
}

// gatewayBody is what the address is sent.
type gatewayBody struct {
	MessageID  string                 `json:"message_id"`
	To         string                 `json:"to"` // of E.164, with +
	Text       string                 `json:"text"`
	Language   string                 `json:"language"`
	Encoding   string                 `json:"encoding"`
	Segments   int                    `json:"segments"`
	Kind       cloud.NotificationKind `json:"kind"`
	BusinessID cloud.BusinessID       `json:"business_id"`
	ExpiresAt  string                 `json:"expires_at"` // of no use afterwards
}

// Send implements Carrier. Its errors name neither numbers nor texts.
func (g *Gateway) Send(ctx context.Context, m cloud.Notification) error {
	if cloud.PhoneNumber(m.To) != m.To || m.To == "" {
		return fmt.Errorf("%w: the recipient has no telephone number with a country code", ErrRefused)
	}
	x, err := ComposeSMS(m, time.Now())
	if err != nil {
		return err
	}
	body, err := json.Marshal(gatewayBody{m.ID, m.To, x.Text, x.Language, x.Encoding, x.Segments, m.Kind, m.BusinessID, m.Until.UTC().Format(time.RFC3339)})
	if err != nil {
		return fmt.Errorf("encode short message: %w", err)
	}
	headers, err := signature.StandardHeaders(g.Secret, m.ID, time.Now(), body)
	if err != nil {
		return fmt.Errorf("secret of the SMS gateway: %w", err)
	}
	status, _, err := g.Post(ctx, g.URL, append(headers, [2]string{"Content-Type", "application/json"}), body)
	switch {
	case err != nil:
		return fmt.Errorf("reach the SMS gateway: %w", err)
	case status == 400 || status == 413 || status == 422:
		return fmt.Errorf("%w: the SMS gateway answered %d", ErrRefused, status)
	case status < 200 || status > 299:
		return fmt.Errorf("the SMS gateway answered %d", status)
	}
	return nil
}
