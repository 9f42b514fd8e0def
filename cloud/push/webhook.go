package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/hook"
)

// Hook is a provider behind one address, which hands pushes to the platforms' services. An
// answer, also one that does not take a push, may name devices that are gone.
type Hook struct{ hook.Address }

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
	answer, err := h.Address.Send(ctx, p.ID, body)
	if errors.Is(err, hook.ErrRefused) {
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	var said struct {
		Gone []string `json:"gone"`
	}
	if json.Unmarshal(answer, &said) != nil { // the status says what became of the push
		said.Gone = nil
	}
	return said.Gone, err
}
