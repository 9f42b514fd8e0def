// Package httpdevice lets simple devices take part that run no agent: a kiosk, a smart drop, a
// small cabinet. Such a device calls the cloud over HTTPS, says how its doors stand, and
// carries out signed orders; the rules of a cabinet (edge/locker) run for it in the cloud.
//
// What it promises:
//   - A call counts once, and only with a signature by the device's own secret. One that waits
//     for orders ends with that secret.
//   - A lock is opened only by an order that the cloud signed, for one act, within 20 s. An
//     order is given to one start of the device's program: after another start, what was
//     fetched before is never given again, nor one whose door has moved or whose opening has
//     ended since.
//   - Door reports are taken in their order, and no calls of a start that another has followed.
//     A device that has not called for 90 s is offline,
//     and its doors are unknown; its deposits wait for the next report.
//
// Any node may take any call. All methods are safe for concurrent use. Source:
// lockers-devices 10.4.
package httpdevice

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/hosted"
	"github.com/postern-io/postern/cloud/limit"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// Store is what this package needs of the database.
type Store interface {
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	Look(ctx context.Context, fn func(cloud.View) error) error
	FindDeviceByCode(ctx context.Context, code string) (cloud.Device, error)
	ListDueHTTP(ctx context.Context, now time.Time, limit int) ([]cloud.DeviceID, error)
	CountHTTPOrders(ctx context.Context, id cloud.DeviceID) (uint64, error)
}

// Config is what New needs.
type Config struct {
	Store   Store
	Lockers *locker.Service
	Sealer  locker.Sealer
	Signer  *signed.Signer
	Nodes   limit.Nodes
	Log     *slog.Logger
}

// Service is the feature.
type Service struct {
	cfg    Config
	player *hosted.Player
	calls  *limit.Buckets // by device

	mu    sync.Mutex
	polls map[cloud.DeviceID]chan struct{} // calls that wait for orders
}

// Limits of calls.
const (
	perMinute = 600 // calls of one device
	maxKeys   = 100_000
	maxBody   = 64 << 10
	maxWait   = 25 * time.Second
	// lookEvery is how often a node that waits looks for orders that another node gave.
	lookEvery = time.Second
	// Window is how far the time of a call may be off.
	window = 300 * time.Second
)

// New builds the service; it starts nothing.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{cfg: cfg, calls: limit.New(maxKeys, cfg.Nodes), polls: map[cloud.DeviceID]chan struct{}{}}
	s.player = hosted.NewPlayer(hosted.PlayerConfig{Log: cfg.Log,
		Due: func(ctx context.Context, now time.Time, n int) ([]cloud.DeviceID, error) {
			return cfg.Store.ListDueHTTP(ctx, now, n)
		},
		Step: func(ctx context.Context, id cloud.DeviceID) (time.Time, error) { return s.step(ctx, id, nil, nil) },
		PutOff: func(ctx context.Context, id cloud.DeviceID, until time.Time) error {
			return cfg.Store.Decide(ctx, id, func(cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{HTTPDevices: []cloud.HTTPDevice{{DeviceID: id, DueAt: until}}}, Unaudited: true}, nil
			})
		}})
	return s
}

// Run steps devices at which something is due, until ctx ends. Any number of nodes may run it.
func (s *Service) Run(ctx context.Context) error { return s.player.Run(ctx) }

// Committed plays devices for which something was stored, and wakes calls that wait for
// orders. It does not block.
func (s *Service) Committed(ch *cloud.Changes) {
	for _, d := range ch.HTTPDevices {
		if d.State == nil && !d.DueAt.IsZero() && !d.DueAt.After(time.Now()) {
			s.player.Play(d.DeviceID)
		}
		if d.Orders > 0 {
			s.wake(d.DeviceID)
		}
	}
}

const sealSecret = "http-device-secret"

// Begin is the row of a device that is given a secret. What it knew is lost: its code list
// says what lies in it.
func Begin(box locker.Sealer, id cloud.DeviceID, secret string, enrolledBefore bool) cloud.HTTPDevice {
	row := cloud.HTTPDevice{DeviceID: id, SealedSecret: box.Seal(sealSecret, []byte(secret)), State: []byte{}}
	if enrolledBefore {
		row.State = []byte{0} // of no form
	}
	return row
}

// call is one request of a device, whose signature holds.
type call struct {
	device   cloud.Device
	sealed   []byte // the secret that signed it, as it is stored
	at       time.Time
	once     string // nonce
	instance string
	firmware string
}

func (c *call) nonce(id cloud.DeviceID, now time.Time) cloud.HTTPNonce {
	return cloud.HTTPNonce{DeviceID: id, Nonce: c.once, ExpiresAt: c.at.Add(2 * window), Now: now}
}

const codeSignature = "DEVICE_SIGNATURE_INVALID"

// errSignature says no more than that: who guesses learns nothing.
func errSignature() error { return cloud.E(cloud.Unauthenticated, codeSignature) }

// Headers of a call.
const (
	headerCode      = "X-Device-Code"
	headerTime      = "X-Device-Timestamp"
	headerNonce     = "X-Device-Nonce"
	headerSignature = "X-Device-Signature"
)

// authenticate finds whose call a request is. Errors: TLS_REQUIRED, VALIDATION_FAILED (instance),
// DEVICE_SIGNATURE_INVALID, RATE_LIMITED.
func (s *Service) authenticate(ctx context.Context, r *fasthttp.RequestCtx) (*call, error) {
	if !peer.Secure(r) && !peer.Local(r) {
		return nil, cloud.E(cloud.Forbidden, "TLS_REQUIRED")
	}
	peek := func(name string) string { return string(r.Request.Header.Peek(name)) }
	now := time.Now().UTC()
	c := &call{once: peek(headerNonce), instance: string(r.QueryArgs().Peek("instance"))}
	if !isName(c.instance, 1, 32) { // it is said before anything is known of the device
		f := check.Fields{}
		f.Add("instance", "Add instance to the address, a name of this start of the device's program: 1 to 32 of A-Z, a-z, 0-9, _ and -.")
		return nil, f.Err()
	}
	seconds, err := strconv.ParseInt(peek(headerTime), 10, 64)
	c.at = time.Unix(seconds, 0)
	if code := peek(headerCode); err != nil || code == "" || len(code) > 32 || !isName(c.once, 16, 64) || c.at.Before(now.Add(-window)) || c.at.After(now.Add(window)) {
		return nil, errSignature()
	}
	c.device, err = s.cfg.Store.FindDeviceByCode(ctx, peek(headerCode))
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return nil, err
	}
	c.sealed, err = s.sealedSecret(ctx, c.device)
	if err != nil {
		return nil, err
	}
	var secret []byte
	if len(c.sealed) > 0 {
		if secret, err = s.cfg.Sealer.Open(sealSecret, c.sealed); err != nil {
			return nil, err
		}
	}
	sent, _ := hex.DecodeString(peek(headerSignature))
	want := Sign(secret, peek(headerTime), c.once, string(r.Method()), string(r.RequestURI()), r.PostBody())
	if len(secret) == 0 || !hmac.Equal(sent, want) {
		return nil, errSignature()
	}
	if state := s.calls.Take(strconv.FormatInt(int64(c.device.ID), 10), perMinute, now); !state.OK {
		return nil, limited(time.Minute)
	}
	return c, nil
}

func limited(wait time.Duration) error {
	return &cloud.Error{Kind: cloud.Limited, Code: "RATE_LIMITED", RetryAfter: int(wait / time.Second)}
}

// sealedSecret is that of a device which may call, as it is stored, nil for none.
func (s *Service) sealedSecret(ctx context.Context, d cloud.Device) (sealed []byte, err error) {
	if !admitted(d) {
		return nil, nil
	}
	var row cloud.HTTPDevice
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		row, err = v.HTTPDevice(d.ID)
		return err
	})
	if errors.Is(err, cloud.ErrNotFound) {
		return nil, nil
	}
	return row.SealedSecret, err
}

// Sign is the signature of a call: HMAC-SHA256 under the device secret of timestamp, nonce,
// method, address with its query, and body, with points between them.
func Sign(secret []byte, timestamp, nonce, method, uri string, body []byte) []byte {
	h := hmac.New(sha256.New, secret)
	for _, part := range []string{timestamp, nonce, method, uri} {
		h.Write([]byte(part))
		h.Write([]byte{'.'})
	}
	h.Write(body)
	return h.Sum(nil)
}

// isName reports whether s is of letters, digits, - and _, and of a length.
func isName(s string, shortest, longest int) bool {
	return len(s) >= shortest && len(s) <= longest && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '_'
	})
}

// wake has a call that waits look for orders.
func (s *Service) wake(id cloud.DeviceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.polls[id]; p != nil {
		wakeUp(p)
	}
}

// await waits until a device was given an order beyond a number of them, another call waits in
// the place of this one, or the time is over; then more is false.
func (s *Service) await(ctx context.Context, id cloud.DeviceID, beyond uint64, until time.Time) (more bool, err error) {
	mine := make(chan struct{}, 1)
	s.mu.Lock()
	former := s.polls[id]
	s.polls[id] = mine
	s.mu.Unlock()
	if former != nil {
		wakeUp(former)
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.polls[id] == mine {
			delete(s.polls, id)
		}
	}()
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		n, err := s.cfg.Store.CountHTTPOrders(ctx, id)
		if err != nil || n > beyond || !time.Now().Before(until) || !s.isPolling(id, mine) {
			return n > beyond, err
		}
		select {
		case <-mine:
		case <-ctx.Done():
			return false, nil
		case <-t.C:
		}
	}
}

// isPolling reports whether a device's call is the one that waits.
func (s *Service) isPolling(id cloud.DeviceID, mine chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polls[id] == mine
}

func wakeUp(p chan struct{}) {
	select {
	case p <- struct{}{}:
	default:
	}
}

// sign puts something for a device into an envelope, in base64.
func (s *Service) sign(p signed.Purpose, payload any) (string, error) {
	b, err := s.cfg.Signer.Sign(p, payload)
	return base64.StdEncoding.EncodeToString(b), err
}

// envelope is an order as the device verifies it.
func (s *Service) envelope(d cloud.Device, m *machine, o order) (string, error) {
	c := wire.Command{CommandID: o.ID, DeviceCode: d.Code, IssuedAt: o.Issued, ExpiresAt: o.Expires, Kind: o.Kind}
	switch o.Kind {
	case wire.CmdOpenDoors:
		opening := m.Rules.Openings[o.Opening]
		c.Body = wire.MustEncode(wire.OpenDoors{OpeningID: o.Opening, Kind: opening.Kind, Doors: []uint{uint(o.Door)}, SessionSeconds: uint(m.Rules.Config.Times.WithDefaults().SessionS)})
	case wire.CmdShowMessage:
		c.Body = wire.MustEncode(wire.DoorReason{Reason: o.Text})
	}
	return s.sign(signed.ForCommand, c)
}
