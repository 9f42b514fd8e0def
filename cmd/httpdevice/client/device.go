package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/postern-io/postern/protocol/wire"
)

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

// Device is one start of the device's program. What it promises:
//   - A lock is opened only by an order that the cloud has signed for this device, once, before
//     its end by the cloud's time, and not when its door has moved since the report that the
//     call for it named.
//   - Every move of a door is reported in its order, and again until the cloud has taken it.
//   - The device's own clock may be wrong: the cloud's is used.
//
// Nothing but the secrets has to be kept over a start. Methods are safe for concurrent use, but
// Turn is called by one goroutine.
type Device struct {
	*Client
	cfg  Config
	done map[string]string // outcomes of orders of this start; used by Turn

	sending chan struct{} // has room for one: reports are sent one after the other
	mu      sync.Mutex    // guards all below
	doors   []Door
	reports []report // that were not taken yet, in their order
	seq     uint64
	moved   map[uint]uint64 // number of the report of each door's newest move
}

type report struct {
	seq   uint64
	doors []Door
}

// New begins a start. Its first report is of how the doors stand.
func New(cfg Config) *Device {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	d := &Device{Client: &Client{Cloud: cfg.Cloud, Transport: cfg.Transport, Now: cfg.Now, Secrets: cfg.Secrets, Instance: rand.Text()},
		cfg: cfg, done: map[string]string{}, sending: make(chan struct{}, 1), doors: slices.Clone(cfg.Doors), moved: map[uint]uint64{}}
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

// FindDoors asks for the doors that the device has.
func (d *Device) FindDoors(ctx context.Context) ([]Door, error) {
	var out struct{ Doors []Door }
	err := d.call(ctx, "GET", "/api/v1/devices/config", nil, &out)
	return out.Doors, err
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
	d.reports = append(d.reports, report{d.seq, slices.Clone(d.doors)})
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
		if err := d.Report(ctx, next.seq, next.doors); err != nil {
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
func (d *Device) obey(c wire.Command, seq uint64, now time.Time) (outcome string) {
	var open wire.OpenDoors
	switch {
	case d.done[c.CommandID] != "":
		return d.done[c.CommandID]
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
	return outcome
}

// Turn says how the doors stand, asks for the time and carries out what the cloud wants.
func (d *Device) Turn(ctx context.Context) error {
	if err := d.Send(ctx); err != nil {
		return err
	}
	cloudTime, err := d.FindTime(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	seq := d.seq
	d.mu.Unlock()
	orders, awaits, err := d.FindOrders(ctx, seq)
	if err != nil {
		return err
	}
	if awaits {
		d.mu.Lock()
		d.report()
		d.mu.Unlock()
	}
	for _, c := range orders {
		if err := d.Send(ctx); err != nil { // what moved while the call waited
			return err
		}
		if err := d.Acknowledge(ctx, c.CommandID, d.obey(c, seq, cloudTime())); err != nil {
			return err
		}
	}
	return nil
}
