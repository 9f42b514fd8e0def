// Package client is a device that speaks HTTP, without the hardware: the interface of
// lockers-devices 10.4. client.go makes the calls and is there to be copied; device.go keeps the
// rules about orders and reports that a device is held to.
package client

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// Secrets are what enrolment gives a device, to be kept in a file.
type Secrets struct {
	Code   string           `json:"device_code"`
	Secret string           `json:"device_secret"` // signs the device's calls
	Keys   []wire.PinnedKey `json:"keys"`          // verify the cloud's orders and times
}

// Door is how one stands.
type Door struct {
	Door  uint   `json:"door"`
	State string `json:"state"` // open, closed, unknown
}

// Client makes the calls of one start of the device's program. It is safe for concurrent use.
type Client struct {
	Cloud     string            // its address, such as https://cloud.example
	Transport http.RoundTripper // nil: the usual one
	Now       func() time.Time  // the device's clock, which may be wrong
	Secrets   Secrets
	Instance  string       // drawn at each start: rand.Text()
	ahead     atomic.Int64 // ns, the cloud's clock less the device's, for stamps
}

// farOff is from when on the device's clock is not used for stamps: the cloud takes 300 s.
const farOff = time.Minute

// call makes a signed call.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	body := []byte{}
	if in != nil {
		body, _ = json.Marshal(in)
	}
	path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "instance=" + c.Instance
	stamp, nonce := fmt.Sprint(c.Now().Add(time.Duration(c.ahead.Load())).Unix()), rand.Text()
	h := hmac.New(sha256.New, []byte(c.Secrets.Secret))
	fmt.Fprintf(h, "%s.%s.%s.%s.%s", stamp, nonce, method, path, body)
	r, err := http.NewRequestWithContext(ctx, method, c.Cloud+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = http.Header{"X-Device-Code": {c.Secrets.Code}, "X-Device-Timestamp": {stamp}, "X-Device-Nonce": {nonce},
		"X-Device-Signature": {hex.EncodeToString(h.Sum(nil))}, "Content-Type": {"application/json"}}
	date, err := answer(r, c.Transport, out)
	if off := date.Sub(c.Now()); !date.IsZero() && off.Abs() > farOff {
		c.ahead.Store(int64(off))
	} else if !date.IsZero() {
		c.ahead.Store(0)
	}
	return err
}

// answer makes a call, and says what date it is at the cloud, zero when that is not known.
func answer(r *http.Request, transport http.RoundTripper, out any) (date time.Time, err error) {
	resp, err := (&http.Client{Transport: transport, Timeout: 40 * time.Second}).Do(r)
	if err != nil {
		return date, err
	}
	defer resp.Body.Close()
	date, _ = http.ParseTime(resp.Header.Get("Date"))
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	switch {
	case err != nil:
		return date, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	case resp.StatusCode != http.StatusOK:
		return date, fmt.Errorf("%s %s: %s %s", r.Method, r.URL.Path, resp.Status, b)
	}
	return date, json.Unmarshal(b, out)
}

// FindTime says that the device is there, and gives a clock that shows the cloud's time, which the
// cloud has signed: by it orders end.
func (c *Client) FindTime(ctx context.Context) (now func() time.Time, err error) {
	nonce, began := []byte(rand.Text()), time.Now()
	var beat struct{ Time []byte }
	if err := c.call(ctx, "POST", "/api/v1/devices/heartbeat", map[string]any{"firmware": "httpdevice 1", "nonce": nonce}, &beat); err != nil {
		return nil, err
	}
	var t wire.Time
	if err := signed.PinnedKeys(c.Secrets.Keys).Open(signed.ForTime, beat.Time, &t); err != nil || !bytes.Equal(t.Nonce, nonce) || time.Since(began) > 5*time.Second {
		return nil, errors.New("the cloud's time is not signed for this call, or took more than 5 s")
	}
	return func() time.Time { return time.Unix(0, t.ServerTime).Add(time.Since(began)) }, nil // ahead by less than the call took
}

// Report says how all doors stand. seq begins at 1 with each start, and goes up by one with each report.
func (c *Client) Report(ctx context.Context, seq uint64, doors []Door) error {
	return c.call(ctx, "POST", "/api/v1/devices/doors/report", map[string]any{"seq": seq, "doors": doors}, &struct{}{})
}

// FindOrders waits up to 20 s for orders that the cloud has signed for this device. seq is the
// newest report. awaits: the cloud wants another report.
func (c *Client) FindOrders(ctx context.Context, seq uint64) (orders []wire.Command, awaits bool, err error) {
	var list struct {
		Awaits   bool `json:"awaits_report"`
		Commands []struct{ Envelope []byte }
	}
	err = c.call(ctx, "GET", fmt.Sprintf("/api/v1/devices/commands?wait=20&seq=%d", seq), nil, &list)
	for _, x := range list.Commands {
		var o wire.Command
		if signed.PinnedKeys(c.Secrets.Keys).Open(signed.ForCommand, x.Envelope, &o) == nil && o.DeviceCode == c.Secrets.Code {
			orders = append(orders, o)
		}
	}
	return orders, list.Awaits, err
}

// Acknowledge says what became of an order: done, failed, refused.
func (c *Client) Acknowledge(ctx context.Context, id, outcome string) error {
	return c.call(ctx, "POST", "/api/v1/devices/commands/"+id+"/ack", map[string]string{"outcome": outcome}, &struct{}{})
}

// Verified is what the cloud answers about a code.
type Verified struct {
	Action    string `json:"action"` // open: the orders follow; deny: nothing opens
	Doors     []uint `json:"doors"`
	Reason    string `json:"reason"`
	OpeningID string `json:"opening_id"`
}

// Verify asks about a code that a person has typed ("keypad") or shown ("qr").
func (c *Client) Verify(ctx context.Context, code, input string) (out Verified, err error) {
	err = c.call(ctx, "POST", "/api/v1/devices/codes/verify", map[string]string{"code": code, "input": input}, &out)
	return out, err
}
