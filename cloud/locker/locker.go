// Package locker holds the rules of locker deliveries as the platform sees
// them: partners' tasks, remote openings, codes, and what the records of a
// cabinet mean for them.
//
// What happened at a cabinet stands: a record of an opening, deposit or pickup
// is applied whatever was decided meanwhile, each once by its opening. The
// cloud runs no settlement timer of its own. Every operation is one typed
// function of a caller and an input, and every change is one transaction with
// its tracking events and outbox events.
package locker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// Store is what this package needs of the database.
type Store interface {
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	Look(ctx context.Context, fn func(cloud.View) error) error
}

// Sealer encrypts what is secret at rest.
type Sealer interface {
	Seal(purpose string, plain []byte) []byte
	Open(purpose string, sealed []byte) ([]byte, error)
}

// Orders follows what happens to packages of orders.
type Orders interface {
	// FromLocker gives what is to be written besides. It refuses nothing.
	FromLocker(v cloud.View, news []cloud.LockerNews) (*cloud.Changes, error)
}

// Programs finds versions of the agent for platforms, such as linux/arm64.
type Programs interface {
	// FindUpdate gives an order whose address is good until a time. Error: cloud.ErrNotFound.
	FindUpdate(ctx context.Context, version, platform string, until time.Time) (wire.Update, error)
}

// Files keeps files that cabinets send.
type Files interface {
	Put(ctx context.Context, area string, body io.Reader, max int64, kinds ...string) (cloud.StoredFile, error)
	Delete(ctx context.Context, path string) error
}

// Config is what New needs.
type Config struct {
	Store    Store
	Sealer   Sealer
	Orders   Orders                      // nil: no parcel is an order's
	Channels []cloud.NotificationChannel // by which people are notified; those of tests have all
	Parcels  Parcels                     // nil: no parcel has subscribers
	Webhooks Webhooks                    // nil: no event is sent
	Passes   PassSigner                  // of signed QR codes; nil: none are given out
	// Session is how long a door session lasts; 0 is ten minutes.
	Session time.Duration
	// Correction is how long after a deposit its compartments may be opened
	// once more; 0 is 15 minutes.
	Correction time.Duration
	// Programs has versions of the agent; nil: none.
	Programs Programs
	// Files keeps the answers of cabinets to diagnoses; nil: none are asked for. OpenFile
	// opens one, with its size; its error is cloud.ErrNotFound. SignFile makes the address at
	// which one is read until a time.
	Files    Files
	OpenFile func(ctx context.Context, path string) (io.ReadCloser, int64, error)
	SignFile func(path string, until time.Time) string
	// Links makes the secrets of recipients' links; empty: no link is proof.
	Links cloud.LinkKey
	// LinkBase is what links in notifications begin with, as https://tms.example; empty:
	// they have none.
	LinkBase string
	// TimelineEvents is how many events a parcel's timeline has before a device adds none; 0 is
	// cloud.TimelineEvents.
	TimelineEvents int
	Log            *slog.Logger
}

// Service is the feature. Safe for concurrent use.
type Service struct {
	*core
	partners
	recipients
	senders
	staff
	registry
	rekeying
	deadlines
	rollouts
	diagnoses
}

// Sections of the service.
type (
	partners   struct{ *core } // deliveries, for the partners that bring them
	recipients struct{ *core } // for the people whom parcels are for: by a link or an account
	senders    struct{ *core } // for the people who bring parcels: by a link or an account
	staff      struct{ *core } // cabinets, for the staff that looks after them
	registry   struct{ *core } // what rests in cabinets and what is wrong there, for the same staff
	rekeying   struct{ *core } // codes of a cabinet whose configuration changes
	deadlines  struct{ *core } // what time alone ends
)

// core is what the sections share: decisions, waits for cabinets, and codes.
type core struct {
	cfg Config
	log *slog.Logger

	mu      sync.Mutex
	waiters map[string][]chan struct{} // by opening id
	expiry  time.Time                  // when the next command expires, as far as is known

	hashing chan struct{} // one token a hash: they use much memory
}

// Waits and lives.
const (
	commandLife     = 20 * time.Second // remote openings
	longCommandLife = 24 * time.Hour   // the rest
	defaultSession  = 10 * time.Minute

	defaultCorrection = 15 * time.Minute
	defaultWait       = 10
	maxWait           = 20
)

// New builds the service; it starts nothing.
func New(cfg Config) *Service {
	if cfg.Session == 0 {
		cfg.Session = defaultSession
	}
	if cfg.Correction == 0 {
		cfg.Correction = defaultCorrection
	}
	if cfg.TimelineEvents == 0 {
		cfg.TimelineEvents = cloud.TimelineEvents
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &core{cfg: cfg, log: cfg.Log, waiters: map[string][]chan struct{}{}, hashing: make(chan struct{}, 2)}
	return &Service{c, partners{c}, recipients{c}, senders{c}, staff{c}, registry{c}, rekeying{c}, deadlines{c}, rollouts{c}, diagnoses{c}}
}

// Codes are a delivery's two secrets. Pickup is that of whom the recipient has named,
// while a person is.
type Codes struct {
	Delivery string `json:"d"`
	Pickup   string `json:"p"`
}

// CodeSecrets are what a cabinet's verifiers are made with.
type CodeSecrets struct {
	Salt   []byte          `json:"s"`
	Key    []byte          `json:"k"`
	Params wire.CodeParams `json:"p"`
}

const (
	sealCodes   = "delivery-codes"
	sealSecrets = "device-codes"
)

// SealSecrets encrypts a device's code secrets for its row.
func SealSecrets(s Sealer, c CodeSecrets) []byte {
	b, _ := json.Marshal(c) // plain fields always encode
	return s.Seal(sealSecrets, b)
}

// OpenSecrets is the reverse of SealSecrets.
func OpenSecrets(s Sealer, sealed []byte) (c CodeSecrets, err error) {
	b, err := s.Open(sealSecrets, sealed)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return c, fmt.Errorf("open code secrets: %w", err)
	}
	return c, nil
}

func (s *core) sealCodes(c Codes) []byte {
	b, _ := json.Marshal(c)
	return s.cfg.Sealer.Seal(sealCodes, b)
}

func (s *core) openCodes(d cloud.Delivery) (c Codes, err error) {
	b, err := s.cfg.Sealer.Open(sealCodes, d.SealedCodes)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return c, fmt.Errorf("open codes of delivery %d: %w", d.ID, err)
	}
	return c, nil
}

// Committed wakes the callers that wait for an opening. It does not block.
func (s *core) Committed(ch *cloud.Changes) {
	if len(ch.Openings) == 0 && len(ch.Commands) == 0 {
		return
	}
	for _, c := range ch.Commands {
		if !c.State.Ended() {
			s.noteExpiry(c.ExpiresAt)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range ch.Openings {
		s.wake(o.ID)
	}
	for _, c := range ch.Commands {
		s.wake(c.OpeningID)
	}
}

// Notice wakes callers that wait for openings which another node changed. It does not
// block.
func (s *core) Notice(openings []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range openings {
		s.wake(id)
	}
}

// wake wakes the callers that wait for an opening. Called with mu held.
func (s *core) wake(id string) {
	for _, c := range s.waiters[id] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// watch tells of changes to an opening until stop is called.
func (s *core) watch(id string) (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	s.waiters[id] = append(s.waiters[id], c)
	s.mu.Unlock()
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		list := s.waiters[id]
		for i := range list {
			if list[i] == c {
				list = append(list[:i:i], list[i+1:]...)
				break
			}
		}
		if len(list) == 0 {
			delete(s.waiters, id)
		} else {
			s.waiters[id] = list
		}
	}
}
