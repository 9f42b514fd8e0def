// Package client is the smallest device that speaks HTTP: the interface of lockers-devices 10.4
// without the hardware. It is there to be read.
//
// What it promises:
//   - A lock is opened only by an order that the cloud has signed for this device, once, before
//     its end by the cloud's time, and not when its door has moved since the report that the
//     call for it named.
//   - Every move of a door is reported in its order, and again until the cloud has taken it.
//   - The device's own clock may be wrong: the cloud's is used.
//
// Nothing but the secrets has to be kept over a start. Methods are safe for concurrent use, but
// Turn is called by one goroutine.
package client

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// Secrets are what enrolment gives a device, to be kept in a file.
type Secrets struct {
	Code   string           `json:"device_code"`
	Secret string           `json:"device_secret"`
	Keys   []wire.PinnedKey `json:"keys"`
}

// Door is how one stands.
type Door struct {
	Door  uint   `json:"door"`
	State string `json:"state"` // open, closed, unknown
}

// Config is what New needs.
type Config struct {
	Cloud     string            // its address, such as https://cloud.example
	Transport http.RoundTripper // nil: the usual one
	Now       func() time.Time  // the device's clock, which may be wrong; nil: the machine's
	Secrets   Secrets
	Doors     []Door // as they stand now
	// Unlock pulses the lock of a door for an order. Its switch says the rest, by Moved.
	Unlock func(door uint, order wire.Command)
	// Do carries out an order of another kind.
	Do func(order wire.Command)
}

// Device is one start of the device's program.
type Device struct {
	cfg      Config
	instance string
	done     map[string]string // outcomes of orders of this start; used by Turn

	sending chan struct{} // has room for one: reports are sent one after the other
	mu      sync.Mutex    // guards all below
	doors   []Door
	reports []report // that were not taken yet, in their order
	seq     uint64
	moved   map[uint]uint64 // number of the report of each door's newest move
	ahead   time.Duration   // the cloud's clock less the device's, for stamps
}

type report struct {
	Seq   uint64 `json:"seq"`
	Doors []Door `json:"doors"`
}

// New begins a start. Its first report is of how the doors stand.
func New(cfg Config) *Device {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	d := &Device{cfg: cfg, instance: rand.Text(), done: map[string]string{}, sending: make(chan struct{}, 1), doors: slices.Clone(cfg.Doors), moved: map[uint]uint64{}}
	d.report()
	return d
}

// Enrol exchanges a token for secrets, once.
func Enrol(ctx context.Context, cloud string, transport http.RoundTripper, code, token string) (s Secrets, err error) {
	body, _ := json.Marshal(map[string]string{"device_code": code, "token": token})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, cloud+"/api/v1/devices/enrol", bytes.NewReader(body))
	if err != nil {
		return s, err
	}
	r.Header.Set("Content-Type", "application/json")
	_, err = answer(r, transport, &s)
	return s, err
}

// farOff is from when on the device's clock is not used for stamps: the cloud takes 300 s.
const farOff = time.Minute

// call makes a signed call.
func (d *Device) call(ctx context.Context, method, path string, in, out any) error {
	body := []byte{}
	if in != nil {
		body, _ = json.Marshal(in)
	}
	path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "instance=" + d.instance
	d.mu.Lock()
	at, nonce := fmt.Sprint(d.cfg.Now().Add(d.ahead).Unix()), rand.Text()
	d.mu.Unlock()
	h := hmac.New(sha256.New, []byte(d.cfg.Secrets.Secret))
	fmt.Fprintf(h, "%s.%s.%s.%s.%s", at, nonce, method, path, body)
	r, err := http.NewRequestWithContext(ctx, method, d.cfg.Cloud+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, v := range map[string]string{"X-Device-Code": d.cfg.Secrets.Code, "X-Device-Timestamp": at, "X-Device-Nonce": nonce, "X-Device-Signature": hex.EncodeToString(h.Sum(nil)), "Content-Type": "application/json"} {
		r.Header.Set(name, v)
	}
	cloud, err := answer(r, d.cfg.Transport, out)
	if off := cloud.Sub(d.cfg.Now()); !cloud.IsZero() {
		d.mu.Lock()
		d.ahead = 0
		if off.Abs() > farOff {
			d.ahead = off
		}
		d.mu.Unlock()
	}
	return err
}

// answer makes a call, and says what time it is at the cloud, zero when that is not known.
func answer(r *http.Request, transport http.RoundTripper, out any) (cloud time.Time, err error) {
	resp, err := (&http.Client{Transport: transport, Timeout: 40 * time.Second}).Do(r)
	if err != nil {
		return cloud, err
	}
	defer resp.Body.Close()
	cloud, _ = http.ParseTime(resp.Header.Get("Date"))
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	switch {
	case err != nil:
		return cloud, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	case resp.StatusCode != http.StatusOK:
		return cloud, fmt.Errorf("%s %s: %s %s", r.Method, r.URL.Path, resp.Status, b)
	}
	return cloud, json.Unmarshal(b, out)
}

// Moved says that a door has moved.
func (d *Device) Moved(door uint, state string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.doors {
		if d.doors[i].Door == door {
			d.doors[i].State = state
		}
	}
	d.moved[door] = d.report()
}

// report puts a report of how the doors stand in line, and gives its number.
func (d *Device) report() uint64 {
	d.seq++
	d.reports = append(d.reports, report{Seq: d.seq, Doors: slices.Clone(d.doors)})
	return d.seq
}

// Send sends the reports that wait.
func (d *Device) Send(ctx context.Context) error {
	select {
	case d.sending <- struct{}{}:
		defer func() { <-d.sending }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		d.mu.Lock()
		if len(d.reports) == 0 {
			d.mu.Unlock()
			return nil
		}
		next := d.reports[0]
		d.mu.Unlock()
		if err := d.call(ctx, "POST", "/api/v1/devices/doors/report", next, &struct{}{}); err != nil {
			return err
		}
		d.mu.Lock()
		d.reports = d.reports[1:]
		d.mu.Unlock()
	}
}

// hasMoved reports whether a door has moved since a report.
func (d *Device) hasMoved(doors []uint, seq uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(doors, func(n uint) bool { return d.moved[n] > seq })
}

// obey carries out an order, once. seq is the report that the call for it named: a door that has
// moved since is not opened, as a person may have used it already. It is given the cloud's time.
func (d *Device) obey(envelope []byte, seq uint64, now time.Time) (id, outcome string) {
	var c wire.Command
	var open wire.OpenDoors
	if err := signed.PinnedKeys(d.cfg.Secrets.Keys).Open(signed.ForCommand, envelope, &c); err != nil || c.DeviceCode != d.cfg.Secrets.Code {
		return "", ""
	}
	switch {
	case d.done[c.CommandID] != "":
		return c.CommandID, d.done[c.CommandID]
	case now.UnixNano() >= c.ExpiresAt:
		outcome = "refused"
	case c.Kind == wire.CmdOpenDoors && (wire.Decode(c.Body, &open) != nil || d.hasMoved(open.Doors, seq)):
		outcome = "refused"
	case c.Kind == wire.CmdOpenDoors:
		for _, n := range open.Doors {
			d.cfg.Unlock(n, c)
		}
		outcome = "done"
	default:
		d.cfg.Do(c)
		outcome = "done"
	}
	d.done[c.CommandID] = outcome
	return c.CommandID, outcome
}

// Turn says how the doors stand, asks for the time and carries out what the cloud wants.
func (d *Device) Turn(ctx context.Context) error {
	if err := d.Send(ctx); err != nil {
		return err
	}
	nonce, began := []byte(rand.Text()), time.Now()
	var beat struct{ Time []byte }
	var now wire.Time
	if err := d.call(ctx, "POST", "/api/v1/devices/heartbeat", map[string]any{"firmware": "httpdevice 1", "nonce": nonce}, &beat); err != nil {
		return err
	}
	if err := signed.PinnedKeys(d.cfg.Secrets.Keys).Open(signed.ForTime, beat.Time, &now); err != nil || !bytes.Equal(now.Nonce, nonce) || time.Since(began) > 5*time.Second {
		return fmt.Errorf("no time from the cloud: %w", err)
	}
	cloudTime := func() time.Time { return time.Unix(0, now.ServerTime).Add(time.Since(began)) } // ahead by less than the call took
	var list struct {
		Awaits   bool `json:"awaits_report"`
		Commands []struct{ Envelope []byte }
	}
	d.mu.Lock()
	seq := d.seq
	d.mu.Unlock()
	path := fmt.Sprintf("/api/v1/devices/commands?wait=20&seq=%d", seq)
	if err := d.call(ctx, "GET", path, nil, &list); err != nil {
		return err
	}
	if list.Awaits {
		d.mu.Lock()
		d.report()
		d.mu.Unlock()
	}
	for _, c := range list.Commands {
		if err := d.Send(ctx); err != nil { // what moved while the call waited
			return err
		}
		if id, outcome := d.obey(c.Envelope, seq, cloudTime()); id != "" {
			if err := d.call(ctx, "POST", "/api/v1/devices/commands/"+id+"/ack", map[string]string{"outcome": outcome}, &struct{}{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// FindDoors asks for the doors that the device has.
func (d *Device) FindDoors(ctx context.Context) ([]Door, error) {
	var out struct{ Doors []Door }
	err := d.call(ctx, "GET", "/api/v1/devices/config", nil, &out)
	return out.Doors, err
}

// Verified is what the cloud answers about a code.
type Verified struct {
	Action    string `json:"action"` // open: the orders follow; deny: nothing opens
	Doors     []uint `json:"doors"`
	Reason    string `json:"reason"`
	OpeningID string `json:"opening_id"`
}

// Verify asks about a code that a person has typed ("keypad") or shown ("qr").
func (d *Device) Verify(ctx context.Context, code, input string) (out Verified, err error) {
	err = d.call(ctx, "POST", "/api/v1/devices/codes/verify", map[string]string{"code": code, "input": input}, &out)
	return out, err
}
