package mock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/hosted"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/edge"
	rules "github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// form is the number of the form in which a cabinet is kept. A cabinet of another form
// begins as one that has lost its memory: its code list says what lies in it.
const form = 1

// cabinet is what is kept of a mock cabinet.
type cabinet struct {
	hosted.Kept
	Doors      map[edge.DoorNumber]door
	Faults     Faults
	Unanswered []string // ids of commands that it will not answer
}

// door is the hardware of one compartment.
type door struct {
	Open       bool
	Jammed     bool // its lock holds when it is pulsed
	Unreported bool // it was closed, and the report of that was lost
	Item       wire.Item
}

// machine is one step of a cabinet, and the hardware of it.
type machine struct {
	hosted.Machine
	kept cabinet
	// after comes once all that the cabinet has to say was applied, nil for none. Its orders
	// are obeyed in the next step.
	after func() error
	// leaves is set when it goes offline after that.
	leaves bool
	// show is called at the end of the step, nil for nothing.
	show func() error
}

// idle is how long after the newest act or order a cabinet goes on by itself. Whatever is
// due later happens with the next one.
const idle = int64(2 * time.Hour)

// step plays what is due at a cabinet and then an act, nil for none. It returns when
// something is due next, zero for nothing. Errors: NOT_A_TEST_LOCKER and those of act.
func (s *Service) step(ctx context.Context, id cloud.DeviceID, act func(*machine) error) (due time.Time, err error) {
	now := time.Now().UTC()
	err = s.cfg.Store.Decide(ctx, id, func(v cloud.View) (*cloud.Changes, error) {
		m, at, err := s.load(v, id, now)
		if err != nil {
			return nil, err
		}
		if due = at; act == nil && (due.IsZero() || due.After(now)) {
			return nil, nil // another node has played it
		}
		ch := &cloud.Changes{}
		if err := m.CatchUp(); err != nil {
			return nil, err
		}
		m.readMissed()
		if act != nil {
			m.Acted = m.Last
			if err := act(m); err != nil {
				return nil, err
			}
		}
		if err := m.Apply(); err != nil {
			return nil, err
		}
		due = m.due()
		if m.after != nil {
			if err := m.after(); err != nil {
				return nil, err
			}
			due = now
		}
		if m.leaves {
			m.kept.Faults.Offline = true
			if err := m.Connect(!m.kept.Faults.Offline); err != nil {
				return nil, err
			}
		}
		if m.show != nil {
			if err := m.show(); err != nil {
				return nil, err
			}
		}
		return ch, m.finish(ch, due)
	})
	return due, err
}

// load reads a cabinet, and when something is due there.
func (s *Service) load(v cloud.View, id cloud.DeviceID, now time.Time) (m *machine, due time.Time, err error) {
	d, err := v.Device(id)
	if err != nil {
		return nil, due, err
	}
	row, err := v.MockCabinet(id)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && d.Protocol != cloud.ProtocolMock {
		return nil, due, cloud.E(cloud.Invalid, "NOT_A_TEST_LOCKER")
	}
	if err != nil {
		return nil, due, err
	}
	m = &machine{Machine: hosted.Machine{View: v, Device: d, Now: now, Work: s.cfg.Lockers.Begin(v, d, now), Spoke: true, Firmware: "mock", Log: s.cfg.Log}}
	m.Kept, m.Hardware = &m.kept.Kept, m
	if len(row.State) > 0 && wire.DecodeKept(row.State, &m.kept) == nil && m.Form == form {
		return m, row.DueAt, nil
	}
	return m, row.DueAt, m.begin(len(row.State) > 0)
}

// begin starts a cabinet whose state is new, or was lost.
func (m *machine) begin(lost bool) error {
	m.kept = cabinet{Doors: map[edge.DoorNumber]door{}}
	// A new one has forgotten nothing: orders of before count.
	if err := m.Begin(form, lost, lost); err != nil {
		return err
	}
	for _, l := range m.Rules.Config.Layout {
		m.kept.Doors[edge.DoorNumber(l.Door)] = door{}
		m.read(edge.DoorNumber(l.Door))
	}
	return nil
}

// Do fires locks. A mock cabinet has no screen.
func (m *machine) Do(a rules.Action) {
	if p, is := a.(rules.Pulse); is {
		m.pulse(p)
	}
}

// pulse fires a lock, which opens unless it is jammed.
func (m *machine) pulse(p rules.Pulse) {
	m.Give(rules.Pulsing{Door: p.Door, By: p.By, Outcome: edge.PulseConfirmed, Mono: m.Last + hosted.Between})
	if d := m.kept.Doors[p.Door]; !d.Jammed {
		m.move(p.Door, func(d *door) { d.Open, d.Unreported = true, false })
	}
}

// move changes a door and reads it.
func (m *machine) move(n edge.DoorNumber, f func(*door)) {
	d := m.kept.Doors[n]
	f(&d)
	m.kept.Doors[n] = d
	m.read(n)
}

// read tells the rules of a door as its switches show it. Where the report of its closing was
// lost, its state is unknown.
func (m *machine) read(n edge.DoorNumber) {
	d, at := m.kept.Doors[n], m.Last+hosted.Between
	if d.Unreported {
		m.Give(rules.Lost{Doors: []edge.DoorNumber{n}, Mono: at, LastOpen: map[edge.DoorNumber]int64{n: at}})
		return
	}
	m.Give(rules.Reading{Door: n, Open: d.Open, Item: d.Item, Mono: at})
}

// readMissed reads the doors of which the report of the closing was lost once the session of
// their opening is over.
func (m *machine) readMissed() {
	for _, l := range m.Rules.Config.Layout {
		n := edge.DoorNumber(l.Door)
		o, runs := m.Rules.Openings[m.Rules.Doors[n].Opening]
		if m.kept.Doors[n].Unreported && (!runs || m.Last >= o.Ends.Mono) {
			m.move(n, func(d *door) { d.Unreported = false })
		}
	}
}

// Away reports whether the cabinet is offline.
func (m *machine) Away() bool { return m.kept.Faults.Offline }

// Takes reports whether an order is answered: a fault lets one pass.
func (m *machine) Takes(c cloud.Command) bool {
	if slices.Contains(m.kept.Unanswered, c.ID) {
		return false
	}
	if c.Kind == wire.CmdOpenDoors && m.kept.Faults.TimeoutNextOpen {
		m.kept.Faults.TimeoutNextOpen = false
		m.kept.Unanswered = append(m.kept.Unanswered, c.ID)
		return false
	}
	return true
}

// due is when something happens next without an act or an order.
func (m *machine) due() time.Time {
	if m.Last-m.Acted > idle {
		return time.Time{}
	}
	return m.Due()
}

func (m *machine) finish(ch *cloud.Changes, due time.Time) error {
	if err := m.forgetUnanswered(); err != nil {
		return err
	}
	for n, d := range m.kept.Doors {
		if d.Unreported && !m.Away() {
			locker.MissDoor(m.Work, uint(n))
		}
	}
	if err := m.Finish(ch); err != nil {
		return err
	}
	state, err := wire.Encode(m.kept)
	if err != nil {
		return fmt.Errorf("encode mock cabinet %d: %w", m.Device.ID, err)
	}
	ch.Mocks = []cloud.MockCabinet{{DeviceID: m.Device.ID, State: state, DueAt: due}} // what this step stored, it has looked at
	return nil
}

// forgetUnanswered drops the orders that have ended.
func (m *machine) forgetUnanswered() error {
	if len(m.kept.Unanswered) == 0 {
		return nil
	}
	open, err := m.View.OpenCommands(m.Device.ID)
	if err != nil {
		return err
	}
	m.kept.Unanswered = slices.DeleteFunc(m.kept.Unanswered, func(id string) bool {
		return !slices.ContainsFunc(open, func(c cloud.Command) bool { return c.ID == id })
	})
	return nil
}
