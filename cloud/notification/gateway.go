package notification

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/hook"
)

// Gateway is an address that takes short messages and hands them to a telephone network.
type Gateway struct{ hook.Address }

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
	_, err = g.Address.Send(ctx, m.ID, body)
	switch {
	case errors.Is(err, hook.ErrRefused):
		return fmt.Errorf("%w: SMS gateway: %w", ErrRefused, err)
	case err != nil:
		return fmt.Errorf("SMS gateway: %w", err)
	}
	return nil
}
