// Package mock plays the mock cabinets of providers: cabinets without hardware, with
// which a partner rehearses the life of a delivery. A mock cabinet obeys the rules of a
// real one (edge/locker), and what it reports is applied as the records of a real one
// are; only its doors, its parcels and its faults are moved by operations. Time-outs go
// by the real clock.
//
// A cabinet's state is a row. A step reads it, plays what happened since (orders, code
// list, time), then one act of the provider's, and writes the state with all that it led
// to in one transaction: any node may make any step, and none is made twice. All methods
// are safe for concurrent use. Source: lockers-devices 5 (38-40), 12.
package mock

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
	"github.com/postern-io/postern/protocol/wiring"
)

// Store is what this package needs of the database.
type Store interface {
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	Look(ctx context.Context, fn func(cloud.View) error) error
	ListDueMocks(ctx context.Context, now time.Time, limit int) ([]cloud.DeviceID, error)
	ListMockless(ctx context.Context, after cloud.ProviderID, limit int) ([]cloud.Provider, error)
}

// Config is what New needs.
type Config struct {
	Store   Store
	Lockers *locker.Service
	Sealer  locker.Sealer
	Log     *slog.Logger
}

// Service is the feature.
type Service struct {
	cfg Config

	mu      sync.Mutex
	ctx     context.Context                  // of Run, nil before and after it
	playing map[cloud.DeviceID]chan struct{} // cabinets that are played now, by which more is asked for
	wait    sync.WaitGroup
	turns   chan struct{}
}

// New builds the service; it starts nothing.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{cfg: cfg, playing: map[cloud.DeviceID]chan struct{}{}, turns: make(chan struct{}, atOnce)}
}

// template is the layout of a mock cabinet.
var template = wiring.Template{Sizes: "S S S S M M M M L L XL"}

// maxCode is the longest code of a device.
const maxCode = 32

// Make gives what makes the mock cabinet of a provider; nothing where it has one, or
// needs none.
func (s *Service) Make(v cloud.View, p cloud.Provider, now time.Time) (*cloud.Changes, error) {
	ch := &cloud.Changes{}
	if !slices.Contains(p.Services, "locker") {
		return ch, nil
	}
	if _, err := v.MockOf(p.ID); !errors.Is(err, cloud.ErrNotFound) {
		return ch, err
	}
	b, err := v.Business(p.BusinessID)
	if err != nil {
		return nil, err
	}
	code, err := freeCode(v, p)
	if err != nil {
		return nil, err
	}
	ids := setup.IDs{View: v}
	s.Rows(ch, ids.Next, b, p, code, now)
	return ch, ids.Err
}

// freeCode is the code of a provider's mock cabinet. A business may have a provider of the
// same code as another business, and codes of devices are short.
func freeCode(v cloud.View, p cloud.Provider) (string, error) {
	full := cloud.MockCodePrefix + strings.ReplaceAll(p.Code, ".", "-") // which codes of devices do not have
	code := full
	for n := int64(p.ID); ; n++ {
		taken, err := v.HasDevice(code)
		if err != nil || len(code) <= maxCode && !taken {
			return code, err
		}
		number := "-" + strconv.FormatInt(n, 10)
		code = full[:min(len(full), maxCode-len(number))] + number
	}
}

// Rows puts a provider's mock cabinet into ch.
func (s *Service) Rows(ch *cloud.Changes, next func(cloud.IDKind) int64, b cloud.Business, p cloud.Provider, code string, now time.Time) {
	layout := setup.Layout(template)
	params := wire.CodeParams{MemoryKiB: 8, Passes: 1} // its codes open nothing
	times := wire.Times{DebounceMS: 1, MinOpenMS: 1}   // its switches do not bounce
	d := setup.Cabinet{Code: code, Name: "Mock locker of " + p.Name, Type: "smart_locker", Layout: layout, Times: times, Codes: params, Test: true}.Rows(ch, next, b, nil, now)
	for i := len(ch.Compartments) - len(layout); i < len(ch.Compartments); i++ {
		ch.Compartments[i].DoorStatus = "closed"
	}
	var random [passcode.SaltSize + passcode.KeySize]byte
	_, _ = rand.Read(random[:]) // never fails
	d.Protocol, d.OwnerProviderID, d.EnrolledAt = cloud.ProtocolMock, p.ID, now
	d.SealedCode = locker.SealSecrets(s.cfg.Sealer, locker.CodeSecrets{Salt: random[:passcode.SaltSize], Key: random[passcode.SaltSize:], Params: params})
	ch.Sessions = append(ch.Sessions, cloud.Session{DeviceID: d.ID, Generation: 1, Online: true, ConnectedAt: now, LastSeenAt: now})
	ch.Mocks = append(ch.Mocks, cloud.MockCabinet{DeviceID: d.ID, State: []byte{}})
}

// Committed plays the mock cabinets for which something was stored. It does not block.
func (s *Service) Committed(ch *cloud.Changes) {
	for _, m := range ch.Mocks {
		if m.State == nil && !m.DueAt.After(time.Now()) {
			s.play(m.DeviceID)
		}
	}
}

const (
	lookEvery = time.Second      // for cabinets that are due
	lookPage  = 100              // of them
	nearby    = 10 * time.Second // what is due within that is waited for here
	atOnce    = 8                // steps of one process
	// afterError is when a cabinet is looked at again that could not be stepped.
	afterError = time.Minute
)

// Run makes the cabinets that are missing, and steps those that are due, until ctx ends.
// Any number of nodes may run it.
func (s *Service) Run(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.ctx = nil
		s.mu.Unlock()
		s.wait.Wait()
	}()
	if err := s.makeMissing(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Log.Error("make mock cabinets", "err", err)
	}
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		due, err := s.cfg.Store.ListDueMocks(ctx, time.Now(), lookPage)
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Error("look for mock cabinets that are due", "err", err)
		}
		for _, id := range due {
			s.play(id)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// makeMissing makes the cabinets of providers that are older than mock cabinets.
func (s *Service) makeMissing(ctx context.Context) error {
	for after := cloud.ProviderID(0); ; {
		list, err := s.cfg.Store.ListMockless(ctx, after, lookPage)
		if err != nil {
			return err
		}
		for _, p := range list {
			after = p.ID
			err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
				present, err := v.Provider(p.ID)
				if err != nil {
					return nil, err
				}
				return s.Make(v, present, time.Now().UTC())
			})
			if err != nil && !errors.Is(err, cloud.ErrExists) && ctx.Err() == nil { // another node has made it
				s.cfg.Log.Error("make a mock cabinet", "provider_id", p.ID, "err", err)
			}
		}
		if len(list) < lookPage {
			return nil
		}
	}
}

// play steps a cabinet beside the caller, and goes on while something is due soon. Each
// cabinet is played once at a time.
func (s *Service) play(id cloud.DeviceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	if asked := s.playing[id]; asked != nil {
		select {
		case asked <- struct{}{}:
		default:
		}
		return
	}
	ctx, asked := s.ctx, make(chan struct{}, 1)
	s.playing[id] = asked
	s.wait.Go(func() { s.keepPlaying(ctx, id, asked) })
}

func (s *Service) keepPlaying(ctx context.Context, id cloud.DeviceID, asked chan struct{}) {
	for {
		due, err := s.stepInTurn(ctx, id)
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Error("step a mock cabinet", "device_id", id, "err", err)
			s.putOff(ctx, id)
		}
		left := time.Until(due)
		if err != nil || due.IsZero() || left > nearby {
			if s.stopPlaying(ctx, id, asked) {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-asked:
		case <-time.After(left):
		}
	}
}

// stepInTurn lets time pass at a cabinet, with not too many others.
func (s *Service) stepInTurn(ctx context.Context, id cloud.DeviceID) (due time.Time, err error) {
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		return due, ctx.Err()
	}
	defer func() { <-s.turns }()
	return s.step(ctx, id, nil)
}

// putOff has a cabinet that could not be stepped looked at later, so that others are not
// kept waiting by it.
func (s *Service) putOff(ctx context.Context, id cloud.DeviceID) {
	err := s.cfg.Store.Decide(ctx, id, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Mocks: []cloud.MockCabinet{{DeviceID: id, DueAt: time.Now().Add(afterError)}}}, Unaudited: true}, nil
	})
	if err != nil && ctx.Err() == nil {
		s.cfg.Log.Error("put a mock cabinet off", "device_id", id, "err", err)
	}
}

// stopPlaying ends the play of a cabinet unless it was asked for again.
func (s *Service) stopPlaying(ctx context.Context, id cloud.DeviceID, asked chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-asked:
		if ctx.Err() == nil {
			return false
		}
	default:
	}
	delete(s.playing, id)
	return true
}
