package push

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/signature"
)

// Post sends a body to an address and gives the answer. Headers are beside those
// that every request has.
type Post func(ctx context.Context, url string, headers [][2]string, body []byte) (status int, answer []byte, err error)

// Hook is a provider behind one address: it takes a signed POST for each push and
// hands it to the platforms' services. Any answer of the 200s takes the push; an
// answer, also one that does not take it, may name devices that are gone. The signature is that of Standard
// Webhooks, and so are the headers; webhook-id is the push's id.
type Hook struct {
	URL    string
	Secret string // as in settings: whsec_… or any text
	Post   Post
}

// hookBody is what the address is sent.
type hookBody struct {
	cloud.PushBody
	DriverID   cloud.AccountID  `json:"driver_id"`
	BusinessID cloud.BusinessID `json:"business_id"`
	Devices    []device         `json:"devices"`
}

type device struct {
	Token    string `json:"token"`
	Platform string `json:"platform"`
}

// Send implements Provider.
func (h Hook) Send(ctx context.Context, p cloud.Push, devices []cloud.PushToken) ([]string, error) {
	b := hookBody{PushBody: p.PublicBody(), DriverID: p.DriverID, BusinessID: p.BusinessID}
	for _, d := range devices {
		b.Devices = append(b.Devices, device{d.Token, d.Platform})
	}
	body, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode push: %w", err)
	}
	headers, err := signature.StandardHeaders(h.Secret, p.ID, time.Now(), body)
	if err != nil {
		return nil, fmt.Errorf("secret of the push provider: %w", err)
	}
	status, answer, err := h.Post(ctx, h.URL, append(headers, [2]string{"Content-Type", "application/json"}), body)
	if err != nil {
		return nil, err
	}
	var said struct {
		Gone []string `json:"gone"`
	}
	if json.Unmarshal(answer, &said) != nil { // the status says what became of the push
		said.Gone = nil
	}
	switch {
	case status == 400 || status == 413 || status == 422:
		err = fmt.Errorf("%w: it answered %d", ErrRefused, status)
	case status < 200 || status > 299:
		err = fmt.Errorf("the provider answered %d", status)
	}
	return said.Gone, err
}
