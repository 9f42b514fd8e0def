package setup

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
	"github.com/postern-io/postern/protocol/wiring"
)

// Cabinet describes a cabinet, or a warehouse post without a Layout, to make. Zero Times and Codes are the usual ones.
type Cabinet struct {
	Code, Name, Type    string
	Address             string
	PostalCode, Country string // of the address
	Latitude, Longitude float64
	Layout              []wire.LayoutDoor
	Times               wire.Times
	Codes               wire.CodeParams
	Protocol            string // "": cloud.ProtocolMQTT
	Test                bool   // what it reports are tests
}

// becomeHTTP makes it a device whose rules run in the cloud: it says itself when a door has
// opened or closed, its orders need time to arrive, and no verifier of its codes leaves the
// cloud.
func (c *Cabinet) becomeHTTP() {
	c.Protocol = cloud.ProtocolHTTP
	c.Times = wire.Times{DebounceMS: 1, MinOpenMS: 1, OpenWaitMS: 10_000}
	c.Codes = wire.CodeParams{MemoryKiB: 8, Passes: 1}
}

// IDs gives ids in a decision and keeps the first error for the end: none is given after it.
type IDs struct {
	View cloud.View
	Err  error
}

// Next is an id that was never given before, 0 after an error.
func (g *IDs) Next(k cloud.IDKind) int64 {
	if g.Err != nil {
		return 0
	}
	id, err := g.View.NewID(k)
	g.Err = err
	return id
}

const perColumn = 6 // compartments, from top to bottom

// Rows puts a cabinet that has not enrolled into ch, as its last device. next gives
// ids.
func (c Cabinet) Rows(ch *cloud.Changes, next func(cloud.IDKind) int64, b cloud.Business, pinned []wire.PinnedKey, now time.Time) *cloud.Device {
	if c.Codes == (wire.CodeParams{}) {
		c.Codes = passcode.DefaultParams()
	}
	conf := wire.Config{Version: 1, DeviceCode: c.Code, Layout: c.Layout, Times: c.Times, Policy: wire.Policy{LocalDropOff: true, RetainDays: 30}, Codes: c.Codes, Keys: pinned}
	d := cloud.Device{ID: cloud.DeviceID(next(cloud.DeviceIDs)), BusinessID: b.ID, Code: c.Code, Name: c.Name, Type: c.Type, Address: c.Address, PostalCode: c.PostalCode, Country: c.Country, Latitude: c.Latitude,
		Longitude: c.Longitude, Timezone: b.Timezone, Protocol: cmp.Or(c.Protocol, cloud.ProtocolMQTT), Livemode: !c.Test, CreatedAt: now, CodeGeneration: 1, Config: wire.MustEncode(conf), ConfigVersion: conf.Version}
	ch.Devices = append(ch.Devices, d)
	if d.IsPost() {
		return &ch.Devices[len(ch.Devices)-1]
	}
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

// Layout is a template's compartments as a cabinet's configuration has them.
func Layout(t wiring.Template) (out []wire.LayoutDoor) {
	for i, size := range t.Each() {
		n := uint(i + 1)
		out = append(out, wire.LayoutDoor{Door: n, Board: wiring.Board, Channel: n, Size: size, Display: n, Label: fmt.Sprintf("A-%d", n)})
	}
	return out
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
