package page

import (
	"cmp"
	"time"

	"github.com/postern-io/postern/firmware-sim/board"
)

// State is what a page shows: the cabinet as it physically stands. It holds no
// code.
type State struct {
	Code     string     `json:"code"`
	Name     string     `json:"name"`
	Kiosk    string     `json:"kiosk,omitempty"`
	Cabinets []Link     `json:"cabinets"` // all of them, this one too
	Doors    []Door     `json:"doors"`
	Power    bool       `json:"power"`
	Network  *bool      `json:"network"`          // null: it has none
	Parcel   string     `json:"parcel,omitempty"` // id of the parcel that waits for the guest
	Guests   bool       `json:"guests"`           // parcels wait for guests here, now or later
	Facts    []Happened `json:"facts"`            // the newest, in order of time
}

// Link leads to a cabinet's page.
type Link struct {
	Code string `json:"code"`
	Name string `json:"name"`
}

// Door is one door, its lock and its box.
type Door struct {
	Door   uint     `json:"door"`
	Size   string   `json:"size"`
	Open   bool     `json:"open"`
	Jammed bool     `json:"jammed"`
	Items  []string `json:"items"`
}

// Happened is one fact that people can see.
type Happened struct {
	At   time.Time      `json:"at"`
	Kind board.FactKind `json:"kind"`
	Door uint           `json:"door,omitempty"`
	Item string         `json:"item,omitempty"`
}

// visible are the facts that a page lists.
var visible = []board.FactKind{board.Opened, board.Closed, board.ItemIn, board.ItemOut, board.CoilFired, board.PowerOff, board.PowerOn}

// maxFacts is how many facts a page lists.
const maxFacts = 8

func (p *Page) state(c *Cabinet) State {
	v := c.Sim.View()
	s := State{Code: c.Code, Name: c.Name, Kiosk: c.Kiosk, Power: c.Power.On(), Guests: p.guests, Facts: []Happened{}}
	for _, x := range p.cfg.Cabinets {
		s.Cabinets = append(s.Cabinets, Link{Code: x.Code, Name: x.Name})
	}
	for _, d := range v.Doors {
		s.Doors = append(s.Doors, Door{Door: d.Number, Size: cmp.Or(c.Sizes[d.Number], "M"), Open: d.Open, Jammed: d.Jammed, Items: d.Items})
	}
	if c.Network != nil {
		on := c.Network.On()
		s.Network = &on
	}
	for _, f := range c.Sim.Newest(maxFacts, visible...) {
		s.Facts = append(s.Facts, Happened{At: f.At, Kind: f.Kind, Door: f.Door, Item: f.Item})
	}
	if x, ok := p.cfg.Waiting(c.Code); ok {
		s.Parcel = x.ID
	}
	return s
}
