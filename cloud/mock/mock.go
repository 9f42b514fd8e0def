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
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/hosted"
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
	cfg    Config
	player *hosted.Player
}

// New builds the service; it starts nothing.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{cfg: cfg}
	s.player = hosted.NewPlayer(hosted.PlayerConfig{Log: cfg.Log,
		Due: func(ctx context.Context, now time.Time, limit int) ([]cloud.DeviceID, error) {
			return cfg.Store.ListDueMocks(ctx, now, limit)
		},
		Step:   func(ctx context.Context, id cloud.DeviceID) (time.Time, error) { return s.step(ctx, id, nil) },
		PutOff: s.putOff})
	return s
}

// template is the layout of a mock cabinet.
var template = wiring.Template{Sizes: "S S S S M M M M L L XL"}

// inner are the measures of its compartments, by size. Mock cabinets that are older have none, and
// are chosen by size alone.
var inner = map[string]cloud.Inner{
	"S":  {Width: 45, Height: 12, Depth: 60},
	"M":  {Width: 45, Height: 20, Depth: 60},
	"L":  {Width: 45, Height: 40, Depth: 60},
	"XL": {Width: 45, Height: 80, Depth: 60},
}

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
	d := setup.Cabinet{Code: code, Name: "Mock locker of " + p.Name, Type: "smart_locker", Address: "1 Front St W, Toronto ON", PostalCode: "M5J 1E6", Country: "CA", Layout: layout, Times: times, Codes: params, Test: true}.Rows(ch, next, b, nil, now)
	for i := len(ch.Compartments) - len(layout); i < len(ch.Compartments); i++ {
		ch.Compartments[i].DoorStatus, ch.Compartments[i].Inner = "closed", inner[ch.Compartments[i].Size]
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
			s.player.Play(m.DeviceID)
		}
	}
}

// Run makes the cabinets that are missing, and steps those that are due, until ctx ends.
// Any number of nodes may run it.
func (s *Service) Run(ctx context.Context) error {
	if err := s.makeMissing(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Log.Error("make mock cabinets", "err", err)
	}
	return s.player.Run(ctx)
}

const lookPage = 100 // providers

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

// putOff has a cabinet looked at later.
func (s *Service) putOff(ctx context.Context, id cloud.DeviceID, until time.Time) error {
	return s.cfg.Store.Decide(ctx, id, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Mocks: []cloud.MockCabinet{{DeviceID: id, DueAt: until}}}, Unaudited: true}, nil
	})
}
