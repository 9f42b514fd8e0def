package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/postern-io/postern/edge/kiosk"
	"github.com/postern-io/postern/protocol/wire"
)

// api speaks to the cloud as a partner does, and to cabinets as a person at
// the screen does.
type api struct {
	base, token string
	client      *http.Client
	headers     []string // pairs that go with every request
	// again is how long a call is repeated that no node answered: one that changes
	// something goes under the same key, so that it is done once.
	again time.Duration
}

// steadfast is how long partners and people try to reach a cloud that is being killed: longer
// than the 30 s for which the call of a killed node counts as running.
const steadfast = 45 * time.Second

// as speaks to the cloud with a token.
func (s *stage) as(token string, headers ...string) *api {
	return &api{base: "http://" + s.http, token: token, client: s.client, headers: headers, again: steadfast}
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

// unanswered reports whether nothing says yet what became of the call: no node is there,
// one was killed while it ran, or it runs.
func (e *apiError) unanswered() bool {
	return e.Status == http.StatusBadGateway || e.Status == http.StatusServiceUnavailable || e.Code == "IDEMPOTENCY_IN_PROGRESS"
}

// away reports whether the cabinet was not connected, or got lost on the way.
func (e *apiError) away() bool { return e.Code == "DEVICE_OFFLINE" || e.Code == "DEVICE_TIMEOUT" }

func (a *api) call(ctx context.Context, method, url string, in, out any) (err error) {
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
	}
	key := rand.Text()
	for end := time.Now().Add(a.again); ; sleep(ctx, 200*time.Millisecond) {
		err = a.try(ctx, method, url, key, body, out)
		var refused *apiError
		if err == nil || ctx.Err() != nil || time.Now().After(end) || errors.As(err, &refused) && !refused.unanswered() {
			return err
		}
	}
}

// try makes one request.
func (a *api) try(ctx context.Context, method, url, key string, body []byte, out any) error {
	q, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	q.Header.Set("Content-Type", "application/json")
	if method == http.MethodPost {
		q.Header.Set("Idempotency-Key", key)
	}
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

// doors are those that a delivery's latest opening is about.
func (a *api) doors(ctx context.Context, id int64) (doors []uint, err error) {
	var out struct {
		Doors []struct {
			Door uint `json:"compartment_number"`
		} `json:"doors"`
	}
	err = a.call(ctx, http.MethodGet, fmt.Sprintf("%s/api/v1/third-party-delivery/deliveries/%d/doors", a.base, id), nil, &out)
	for _, d := range out.Doors {
		doors = append(doors, d.Door)
	}
	return doors, err
}

// screen is what a cabinet's page says of the cabinet.
type screen struct {
	Online bool `json:"online"`
	Doors  []struct {
		Door  uint   `json:"door"`
		State string `json:"state"`
	} `json:"doors"`
	Openings []struct{} `json:"openings"`
	Store    struct {
		Waiting []int `json:"waiting"` // records that were not acknowledged, by lane
	} `json:"store"`
	Typed   int `json:"locked_seconds"`
	Scanned int `json:"scan_locked_seconds"`
	Staff   int `json:"staff_locked_seconds"`
}

// look reads what staff see at a cabinet's page.
func (c *cabinet) look(ctx context.Context) (v screen, err error) {
	key, err := kiosk.ReadKey(filepath.Join(c.s.dir, c.code))
	if err != nil {
		return v, err
	}
	a := &api{client: c.s.client, token: key}
	err = a.call(ctx, http.MethodGet, "http://"+c.kiosk+"/api/staff", nil, &v)
	return v, err
}

// sees reports whether a cabinet shows doors as open.
func (c *cabinet) sees(ctx context.Context, doors []uint) bool {
	v, err := c.look(ctx)
	open := 0
	for _, d := range v.Doors {
		if d.State == wire.DoorOpen && slices.Contains(doors, d.Door) {
			open++
		}
	}
	return err == nil && open == len(doors)
}

// missing says what a cabinet still lacks of being up, connected and having read
// its boards; empty: nothing.
func (c *cabinet) missing(ctx context.Context) string {
	out, err := c.look(ctx)
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
