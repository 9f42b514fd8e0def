// Package access turns what people type or show at a cabinet into the verifiers
// that the locker rules know. A try costs a slow hash on purpose; one runs at a
// time, and a locked budget costs none. Codes are never logged or kept.
package access

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// Loop is the owner of the cabinet's state.
type Loop interface {
	Do(ctx context.Context, in locker.Input) (locker.Answer, error)
	State() locker.State
}

// Link is the way to the cloud.
type Link interface {
	Connected() bool
	// StatusChanged sends a status, which brings the tail of the code list.
	StatusChanged()
}

// Config is what New needs.
type Config struct {
	DeviceCode string
	Salt, Key  []byte
	Loop       Loop
	Link       Link
	Now        func() locker.Now  // for the lock-out
	Keys       func() signed.Keys // of the cloud, as they are pinned now
}

// Verifier takes codes. Safe for concurrent use.
type Verifier struct {
	cfg  Config
	turn chan struct{}
}

// New builds a desk.
func New(cfg Config) *Verifier { return &Verifier{cfg: cfg, turn: make(chan struct{}, 1)} }

// ErrNotACode says that the input cannot be a code. It is no try.
var ErrNotACode = errors.New("not a code of this cabinet")

// tailWait is how long an unknown code waits for codes issued a moment ago.
const tailWait = 3 * time.Second

// Entered is what a person enters at a terminal.
type Entered struct {
	Code  string            // typed
	Text  string            // of a QR symbol, in place of a typed code
	Doors []edge.DoorNumber // chosen at the terminal, for a staff code
	// Label was scanned before: a courier's code has to be of its delivery. "" is none.
	Label string
	// Queue has Doors opened one after the other, for a staff code.
	Queue bool
	// Choose says that the terminal lets couriers choose the size of a compartment.
	Choose bool
}

// Type tries a typed code. doors are those chosen at the terminal for a staff
// code.
func (d *Verifier) Type(ctx context.Context, code string, doors []edge.DoorNumber) (locker.Answer, error) {
	return d.Enter(ctx, Entered{Code: code, Doors: doors})
}

// Scan tries the text of a QR symbol: a pickup code, or a signed QR code.
func (d *Verifier) Scan(ctx context.Context, text string) (locker.Answer, error) {
	return d.Enter(ctx, Entered{Text: text})
}

// Enter tries what was entered at a terminal. Error: ErrNotACode.
func (d *Verifier) Enter(ctx context.Context, in Entered) (locker.Answer, error) {
	if in.Text == "" {
		if !passcode.Valid(in.Code) || in.Queue && len(in.Code) != passcode.StaffDigits {
			return locker.Answer{}, ErrNotACode
		}
		budget := locker.BudgetTyped
		if len(in.Code) == passcode.StaffDigits {
			budget = locker.BudgetStaff
		}
		return d.try(ctx, in.Code, locker.CodeTried{Input: "keypad", Budget: budget, Doors: in.Doors, Queue: in.Queue, Label: in.Label, Choose: in.Choose})
	}
	if signed.IsPass(in.Text) {
		return d.show(ctx, in)
	}
	code, ok := passcode.ParseQR(d.cfg.DeviceCode, in.Text)
	if !ok {
		return locker.Answer{}, ErrNotACode
	}
	return d.try(ctx, code, locker.CodeTried{Input: "qr", Budget: locker.BudgetScanned, Label: in.Label, Choose: in.Choose})
}

// show tries a signed QR code. One that the cloud has not signed costs no try, and no
// more than a look at its signature.
func (d *Verifier) show(ctx context.Context, in Entered) (locker.Answer, error) {
	pass, err := d.cfg.Keys().OpenPass(in.Text)
	if err != nil {
		return locker.Answer{Outcome: wire.PassForged}, nil
	}
	return d.cfg.Loop.Do(ctx, locker.PassShown{Pass: pass, Device: d.cfg.DeviceCode, Label: in.Label})
}

// try tries a code; in is what is known of the try but for its verifier.
func (d *Verifier) try(ctx context.Context, code string, in locker.CodeTried) (locker.Answer, error) {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return locker.Answer{}, ctx.Err()
	}
	defer func() { <-d.turn }()
	s := d.cfg.Loop.State()
	if s.Config.Codes.Passes == 0 && d.cfg.Link.Connected() {
		d.awaitTail(ctx, s.Meta.CodeList) // the configuration comes with it
		s = d.cfg.Loop.State()
	}
	if s.Config.Codes.Passes == 0 {
		return locker.Answer{Outcome: wire.CodeNotActive}, nil // no list without a configuration: no code is wrong yet
	}
	if s.Meta.Budgets.Of(in.Budget).Locked(d.cfg.Now()) == 0 {
		in.Verifier = passcode.Verifier(code, d.cfg.Salt, d.cfg.Key, s.Config.Codes)
		if !knows(s, in.Verifier) && d.cfg.Link.Connected() {
			d.awaitTail(ctx, s.Meta.CodeList)
		}
	}
	return d.cfg.Loop.Do(ctx, in)
}

func knows(s locker.State, verifier []byte) bool {
	for _, c := range s.Codes {
		if bytes.Equal(c.Verifier, verifier) {
			return true
		}
	}
	return false
}

// awaitTail asks for codes that were issued a moment ago.
func (d *Verifier) awaitTail(ctx context.Context, held uint64) {
	d.cfg.Link.StatusChanged()
	deadline := time.NewTimer(tailWait)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for d.cfg.Loop.State().Meta.CodeList == held {
		select {
		case <-ctx.Done():
			return
		case <-deadline.C:
			return
		case <-tick.C:
		}
	}
}

// Secrets are what the cabinet holds outside its store.
type Secrets struct {
	DeviceCode   string           `json:"device_code"`
	DeviceSecret string           `json:"device_secret"`
	CodeSalt     []byte           `json:"code_salt"`
	CodeKey      []byte           `json:"code_key"`
	Keys         []wire.PinnedKey `json:"keys"`
	Brokers      []string         `json:"brokers"`
	Prefix       string           `json:"prefix"`
	// DeviceKey is the seed of the cabinet's own Ed25519 key, 32 bytes; empty for a
	// device that signs nothing.
	DeviceKey []byte `json:"device_key,omitempty"`
	// ReleaseKeys are those that sign updates of the agent. Without one it takes none.
	ReleaseKeys []wire.PinnedKey `json:"release_keys,omitempty"`
	// CloudURL is the cloud that the cabinet was enrolled at, https://host; its updates come
	// from there. "" is not known.
	CloudURL string `json:"cloud_url,omitempty"`
}

// Check reports what is missing.
func (s Secrets) Check() error {
	switch {
	case s.DeviceCode == "" || s.DeviceSecret == "":
		return errors.New("secrets: device_code and device_secret are required")
	case len(s.CodeSalt) != passcode.SaltSize || len(s.CodeKey) != passcode.KeySize:
		return errors.New("secrets: code_salt has 16 bytes and code_key 32, both base64")
	case len(s.DeviceKey) != 0 && len(s.DeviceKey) != ed25519.SeedSize:
		return errors.New("secrets: device_key has 32 bytes, base64, or is left out")
	case len(s.Keys) == 0:
		return errors.New("secrets: no pinned key of the cloud")
	case len(s.Brokers) == 0:
		return errors.New("secrets: no broker address")
	}
	return nil
}
