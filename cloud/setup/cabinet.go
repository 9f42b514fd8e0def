package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// Cabinet describes a cabinet to make. Zero Times and Codes are the usual ones.
type Cabinet struct {
	Code, Name, Type    string
	Address             string
	Latitude, Longitude float64
	Layout              []wire.LayoutDoor
	Times               wire.Times
	Codes               wire.CodeParams
	Test                bool // what it reports are tests
}

const perColumn = 6 // compartments, from top to bottom

// Rows puts a cabinet that has not enrolled into ch, as its last device. next gives
// ids.
func (c Cabinet) Rows(ch *cloud.Changes, next func(cloud.IDKind) int64, b cloud.Business, pinned []wire.PinnedKey, now time.Time) *cloud.Device {
	if c.Codes == (wire.CodeParams{}) {
		c.Codes = passcode.DefaultParams()
	}
	conf := wire.Config{Version: 1, DeviceCode: c.Code, Layout: c.Layout, Times: c.Times, Policy: wire.Policy{LocalDropOff: true, RetainDays: 30}, Codes: c.Codes, Keys: pinned}
	d := cloud.Device{ID: cloud.DeviceID(next(cloud.DeviceIDs)), BusinessID: b.ID, Code: c.Code, Name: c.Name, Type: c.Type, Address: c.Address, Latitude: c.Latitude,
		Longitude: c.Longitude, Timezone: b.Timezone, Protocol: "mqtt", Livemode: !c.Test, CreatedAt: now, CodeGeneration: 1, Config: wire.MustEncode(conf), ConfigVersion: conf.Version}
	ch.Devices = append(ch.Devices, d)
	if ch.Shelves == nil {
		ch.Shelves = map[cloud.DeviceID][]cloud.Shelf{}
	}
	ch.Shelves[d.ID] = []cloud.Shelf{{Code: "A", Position: 1}}
	for i, l := range c.Layout {
		ch.Compartments = append(ch.Compartments, cloud.Compartment{GridID: cloud.GridID(next(cloud.GridIDs)), DeviceID: d.ID, GridCode: fmt.Sprintf("A%02d", i+1),
			ShelfCode: "A", Door: l.Door, PickupNumber: i + 1, Label: fmt.Sprintf("A-%d", i+1), Column: 1 + i/perColumn, Row: 1 + i%perColumn, Size: l.Size, PickupEnabled: true,
			DoorStatus: "unknown", State: cloud.GridFree})
	}
	return &ch.Devices[len(ch.Devices)-1]
}

// Template is a layout that a new cabinet can have: compartments on one board
// named A, in the order of its channels.
type Template struct {
	Name  string // small, medium, large
	Sizes string // of the compartments in their order, each S, M, L or XL
}

// Templates lists the layouts.
func Templates() []Template {
	return []Template{
		{"small", "S S M M M M L L"},
		{"medium", "S S S M M M M M M L L L"},
		{"large", "S S S S S S M M M M M M M M M M M M L L L L XL XL"},
	}
}

// Doors is how many compartments the layout has.
func (t Template) Doors() int { return len(strings.Fields(t.Sizes)) }

func (t Template) layout() []wire.LayoutDoor {
	var out []wire.LayoutDoor
	for i, size := range strings.Fields(t.Sizes) {
		n := uint(i + 1)
		out = append(out, wire.LayoutDoor{Door: n, Board: "A", Channel: n, Size: size, Display: n, Label: fmt.Sprintf("A-%d", n)})
	}
	return out
}

// CabinetInput is what a new cabinet needs.
type CabinetInput struct {
	Name    string // at most 120 characters
	Code    string // device code, unique in the deployment
	Address string // one line, at most 200 characters; may be empty
	Layout  string // name of a template
}

// Enrolment is a cabinet with the token that lets it enrol, which is shown once.
type Enrolment struct {
	Device cloud.Device
	Token  string
	Until  time.Time
}

// AddCabinet makes a cabinet of a business and its enrolment token. Error:
// VALIDATION_FAILED.
func (s *Service) AddCabinet(ctx context.Context, by cloud.Account, in CabinetInput) (out Enrolment, err error) {
	layout, err := in.check()
	if err != nil {
		return out, err
	}
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(by.BusinessID)
		if err != nil {
			return nil, err
		}
		var failed error
		next := func(k cloud.IDKind) int64 {
			id, err := v.NewID(k)
			failed = errors.Join(failed, err)
			return id
		}
		now := time.Now().UTC()
		ch := &cloud.Changes{}
		c := Cabinet{Code: in.Code, Name: in.Name, Type: "smart_locker", Address: in.Address, Layout: layout}
		out.Device = *c.Rows(ch, next, b, s.cfg.Pinned, now)
		if failed != nil {
			return nil, failed
		}
		s.admit(ch, &out, by, "cabinet_made", now)
		return ch, nil
	})
	if errors.Is(err, cloud.ErrExists) {
		f := check.Fields{}
		f.Add("code", "A cabinet with this code exists.")
		return Enrolment{}, f.Err()
	}
	return out, err
}

// admit puts a fresh enrolment token into ch.
func (s *Service) admit(ch *cloud.Changes, out *Enrolment, by cloud.Account, action string, now time.Time) {
	token, row := s.cfg.NewToken(out.Device.ID, now)
	out.Token, out.Until = token, row.ExpiresAt
	ch.Enrolments = append(ch.Enrolments, row)
	ch.Audits = append(ch.Audits, cloud.Audit{BusinessID: by.BusinessID, At: now, Actor: fmt.Sprintf("account:%d", by.ID), Action: action, Target: out.Device.Code, Detail: "{}"})
}

func (in *CabinetInput) check() ([]wire.LayoutDoor, error) {
	f := check.Fields{}
	in.Name, in.Code, in.Address = strings.TrimSpace(in.Name), strings.TrimSpace(in.Code), strings.TrimSpace(in.Address)
	if in.Name == "" {
		f.Add("name", "The value is required.")
	}
	f.Line("name", in.Name, 120)
	f.Line("address", in.Address, 200)
	if !topic.ValidCode(in.Code) {
		f.Add("code", "Use 1 to 32 of A-Z, a-z, 0-9, _ and -, such as PIER-7.")
	}
	for _, t := range Templates() {
		if t.Name == in.Layout {
			return t.layout(), f.Err()
		}
	}
	f.Add("layout", "Choose small, medium or large.")
	return nil, f.Err()
}

// RenewToken makes another enrolment token for a cabinet that never enrolled;
// earlier ones stay good until they end or one is used. Error: DEVICE_NOT_FOUND.
func (s *Service) RenewToken(ctx context.Context, by cloud.Account, code string) (out Enrolment, err error) {
	unknown := cloud.E(cloud.NotFound, "DEVICE_NOT_FOUND")
	d, err := s.cfg.Store.FindDeviceByCode(ctx, code)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && d.BusinessID != by.BusinessID {
		return out, unknown
	}
	if err != nil {
		return out, err
	}
	err = s.cfg.Store.Decide(ctx, d.ID, func(v cloud.View) (*cloud.Changes, error) {
		d, err := v.Device(d.ID)
		if err != nil {
			return nil, err
		}
		if !d.EnrolledAt.IsZero() {
			return nil, unknown
		}
		out.Device = d
		ch := &cloud.Changes{}
		s.admit(ch, &out, by, "enrolment_token_made", time.Now().UTC())
		return ch, nil
	})
	return out, err
}

// maxWaiting is how many cabinets Waiting lists.
const maxWaiting = 100

// Waiting lists a business's cabinets that never enrolled, by id, and says how
// many it has in all, as far as the first hundred go.
func (s *Service) Waiting(ctx context.Context, b cloud.BusinessID) (waiting []cloud.Device, all int, err error) {
	list, err := s.cfg.Store.ListDevices(ctx, b, 0, maxWaiting)
	for _, d := range list {
		if d.EnrolledAt.IsZero() {
			waiting = append(waiting, d)
		}
	}
	return waiting, len(list), err
}
