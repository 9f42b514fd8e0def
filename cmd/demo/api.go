package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/postern-io/postern/protocol/wire"
)

// api speaks to the cloud as a partner does, and to cabinets as a person at
// the screen does.
type api struct {
	base, token string
	client      *http.Client
	headers     []string // pairs that go with every request
}

// apiError is an answer that refuses.
type apiError struct {
	Status  int
	Code    string `json:"code"`
	Message string `json:"message"`
	Details struct {
		Outcome string `json:"outcome"` // of the command to the cabinet
		Reason  string `json:"reason"`
	} `json:"details"`
}

func (e *apiError) Error() string {
	s := fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message)
	if e.Details.Outcome != "" {
		s += fmt.Sprintf(" (the cabinet: %s %s)", e.Details.Outcome, e.Details.Reason)
	}
	return s
}

// passing reports whether the cabinet could not try: its boards did not answer
// in time, as on a busy machine. Someone in front of it presses again.
func (e *apiError) passing() bool {
	return e.Details.Outcome == "interrupted" || e.Details.Outcome == "refused" && e.Details.Reason == wire.ReasonBoard
}

func (a *api) call(ctx context.Context, method, url string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	q, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	q.Header.Set("Content-Type", "application/json")
	if a.token != "" {
		q.Header.Set("Authorization", "Bearer "+a.token)
	}
	for i := 0; i < len(a.headers); i += 2 {
		q.Header.Set(a.headers[i], a.headers[i+1])
	}
	r, err := a.client.Do(q)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, url, err)
	}
	b, rerr := io.ReadAll(r.Body)
	if err := r.Body.Close(); err != nil || rerr != nil {
		return fmt.Errorf("read answer: %v %v", rerr, err)
	}
	if r.StatusCode >= 300 {
		e := &apiError{Status: r.StatusCode}
		_ = json.Unmarshal(b, e) // the status says enough
		return e
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("read answer of %s: %w", url, err)
	}
	return nil
}

type delivery struct {
	ID          int64   `json:"delivery_id"`
	Number      string  `json:"delivery_number"`
	Reference   string  `json:"reference_number"`
	Status      string  `json:"status"`
	Code        *string `json:"delivery_code"`
	PickupCode  *string `json:"pickup_code"`
	ConfirmedBy *string `json:"confirmed_by"`
}

type opening struct {
	Compartments []struct {
		Door uint `json:"compartment_number"`
	} `json:"compartments"`
}

func (a *api) create(ctx context.Context, c *cabinet, ref, size string) (delivery, error) {
	var out struct {
		Delivery delivery `json:"delivery"`
	}
	err := a.call(ctx, http.MethodPost, a.base+"/api/v1/third-party-delivery/deliveries", map[string]any{
		"reference_number": ref, "device_id": c.id,
		"packages":  []any{map[string]any{"tracking_number": "PK-" + ref, "size": size}},
		"recipient": map[string]any{"name": "Jane Smith", "phone": "+14165550123"},
		"courier":   map[string]any{"id": "C-19", "name": "Ana"},
	}, &out)
	return out.Delivery, err
}

func (a *api) find(ctx context.Context, id int64) (delivery, error) {
	var out struct {
		Delivery delivery `json:"delivery"`
	}
	err := a.call(ctx, http.MethodGet, fmt.Sprintf("%s/api/v1/third-party-delivery/deliveries/%d", a.base, id), nil, &out)
	return out.Delivery, err
}

func (a *api) open(ctx context.Context, id int64) (doors []uint, code string, err error) {
	var out struct {
		Opening    opening `json:"opening"`
		PickupCode *string `json:"pickup_code"`
	}
	err = a.call(ctx, http.MethodPost, fmt.Sprintf("%s/api/v1/third-party-delivery/deliveries/%d/open-doors", a.base, id), map[string]any{"wait_seconds": 15}, &out)
	for _, c := range out.Opening.Compartments {
		doors = append(doors, c.Door)
	}
	if out.PickupCode != nil {
		code = *out.PickupCode
	}
	return doors, code, err
}

// missing says what a cabinet still lacks of being up, connected and having read
// its boards; empty: nothing.
func (c *cabinet) missing(ctx context.Context) string {
	var out struct {
		Online bool `json:"online"`
		Doors  []struct {
			Door  uint   `json:"door"`
			State string `json:"state"`
		} `json:"doors"`
	}
	a := &api{client: c.s.api.client}
	err := a.call(ctx, http.MethodGet, "http://"+c.kiosk+"/api/state", nil, &out)
	switch {
	case err != nil:
		return fmt.Sprintf("%s does not answer: %v", c.code, err)
	case !out.Online:
		return c.code + " is offline"
	case len(out.Doors) == 0:
		return c.code + " has no configuration"
	}
	for _, d := range out.Doors {
		if d.State == "unknown" {
			return fmt.Sprintf("%s has not read door %d", c.code, d.Door)
		}
	}
	return ""
}

// unblock puts a cabinet's blocked compartments back into use, as staff do.
func (a *api) unblock(ctx context.Context, c *cabinet) error {
	url := fmt.Sprintf("%s/api/v1/smart-lockers/devices/%d", a.base, c.id)
	var out struct {
		Device struct {
			Grids []struct {
				ID    int64  `json:"grid_id"`
				State string `json:"state"`
			} `json:"grids"`
		} `json:"device"`
	}
	if err := a.call(ctx, http.MethodGet, url, nil, &out); err != nil {
		return err
	}
	for _, g := range out.Device.Grids {
		if g.State != "blocked" {
			continue
		}
		if err := a.call(ctx, http.MethodPost, fmt.Sprintf("%s/grids/%d/unblock", url, g.ID), map[string]any{"reason": "lock freed"}, nil); err != nil {
			return err
		}
	}
	return nil
}
