package mock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
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
	Form       uint
	Start      int64 // unix ns, when its count of time begins
	Last       int64 // of that count, ns: the newest step
	Acted      int64 // of that count, ns: the newest act or order
	Rules      rules.State
	Doors      map[edge.DoorNumber]door
	Faults     Faults
	Generation uint64   // of the code list held
	Unanswered []string // ids of commands that it will not answer
	Reports    []report // that the cloud does not have: it is offline
	Placed     int64    // unix ns, when the newest applied report happened
}

// door is the hardware of one compartment.
type door struct {
	Open       bool
	Jammed     bool // its lock holds when it is pulsed
	Unreported bool // it was closed, and its switch did not say so
	Item       wire.Item
}

// report is a record before it is applied.
type report struct {
	Kind wire.Kind
	Mono int64
	Body []byte
}

// machine is one step of a cabinet.
type machine struct {
	cabinet
	v      cloud.View
	device cloud.Device
	now    time.Time
	work   *locker.Work
	// session is to be written, nil for none.
	session *cloud.Session
	// reset comes once all that the cabinet has to say was applied, nil for none. Its orders
	// are obeyed in the next step.
	reset func() error
	// leaves is set when it goes offline after that.
	leaves bool
	// show is called at the end of the step, nil for nothing.
	show func() error
	log  *slog.Logger
}

// maxReports bounds what an offline cabinet keeps: more is not played.
const maxReports = 500

// keptEnds is how many ended openings a cabinet remembers.
const keptEnds = 100

// idle is how long after the newest act or order a cabinet goes on by itself. Whatever is
// due later happens with the next one.
const idle = int64(2 * time.Hour)

// boot is that of every record: a mock cabinet never starts again.
const boot = 1

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
		if err := m.catchUp(); err != nil {
			return nil, err
		}
		if act != nil {
			m.Acted = m.Last
			if err := act(m); err != nil {
				return nil, err
			}
		}
		if err := m.report(); err != nil {
			return nil, err
		}
		due = m.due()
		if m.reset != nil {
			if err := m.reset(); err != nil {
				return nil, err
			}
			due = now
		}
		if m.leaves {
			m.Faults.Offline = true
			if err := m.connect(); err != nil {
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
	m = &machine{v: v, device: d, now: now, work: s.cfg.Lockers.Begin(v, d, now), log: s.cfg.Log}
	if len(row.State) > 0 && wire.DecodeKept(row.State, &m.cabinet) == nil && m.Form == form {
		return m, row.DueAt, nil
	}
	return m, row.DueAt, m.begin(len(row.State) > 0)
}

// begin starts a cabinet whose state is new, or was lost.
func (m *machine) begin(lost bool) error {
	c, err := m.readConfig()
	if err != nil {
		return err
	}
	m.cabinet = cabinet{Form: form, Start: m.now.UnixNano(), Rules: rules.New(c), Doors: map[edge.DoorNumber]door{}}
	if lost {
		m.Start -= int64(time.Hour) // records of it have other times than those of before
		if err := m.work.StoreLost(m.now); err != nil {
			return err
		}
	}
	m.stepRules(rules.Started{Fresh: lost}) // a new one has forgotten nothing: orders of before count
	for _, l := range c.Layout {
		m.Doors[edge.DoorNumber(l.Door)] = door{}
		m.read(edge.DoorNumber(l.Door))
	}
	return nil
}

// readConfig is the configuration that the cloud has for the cabinet.
func (m *machine) readConfig() (c wire.Config, err error) {
	if err = wire.Decode(m.device.Config, &c); err != nil {
		err = fmt.Errorf("read configuration of device %d: %w", m.device.ID, err)
	}
	return c, err
}

// between is what passes at least between two inputs of a step, so that each door that
// opens is open for long enough to count.
const between = int64(2 * time.Millisecond)

// at is the time of the next input.
func (m *machine) at() rules.Now {
	m.Last = max(m.Last+between, m.now.UnixNano()-m.Start)
	n := rules.Now{Boot: boot, Mono: m.Last, Offset: m.Start, Clock: wire.ClockSynced}
	_, _ = rand.Read(n.Random[:]) // never fails
	return n
}

// stepRules gives the rules an input, keeps their records and pulses the locks they ask for.
func (m *machine) stepRules(in rules.Input) rules.Answer {
	next, out := rules.Step(m.Rules, in, m.at())
	m.Rules = next
	for _, r := range out.Records {
		m.Reports = append(m.Reports, report{Kind: r.Kind, Mono: r.Mono, Body: wire.MustEncode(r.Body)})
	}
	for _, a := range out.Actions {
		if p, is := a.(rules.Pulse); is {
			m.pulse(p)
		}
	}
	return out.Answer
}

// pulse fires a lock, which opens unless it is jammed.
func (m *machine) pulse(p rules.Pulse) {
	m.stepRules(rules.Pulsing{Door: p.Door, By: p.By, Outcome: edge.PulseConfirmed, Mono: m.Last + between})
	if d := m.Doors[p.Door]; !d.Jammed {
		m.move(p.Door, func(d *door) { d.Open, d.Unreported = true, false })
	}
}

// move changes a door and reads it.
func (m *machine) move(n edge.DoorNumber, f func(*door)) {
	d := m.Doors[n]
	f(&d)
	m.Doors[n] = d
	m.read(n)
}

// read tells the rules of a door as its switches show it.
func (m *machine) read(n edge.DoorNumber) {
	d := m.Doors[n]
	m.stepRules(rules.Reading{Door: n, Open: d.Open || d.Unreported, Item: d.Item, Mono: m.Last + between})
}

// catchUp lets time pass and takes what the cloud has for the cabinet.
func (m *machine) catchUp() error {
	if len(m.Reports) >= maxReports {
		return nil
	}
	m.stepRules(rules.Tick{})
	if m.Faults.Offline {
		return nil
	}
	if m.device.ConfigVersion > m.Rules.Config.Version {
		c, err := m.readConfig()
		if err != nil {
			return err
		}
		m.stepRules(rules.ConfigCame{Config: c})
	}
	if err := m.takeCodes(); err != nil {
		return err
	}
	return m.takeCommands()
}

// takeCodes takes what is new of the code list.
func (m *machine) takeCodes() error {
	from, generation := m.Rules.Meta.CodeList, max(m.device.CodeGeneration, 1)
	if generation != m.Generation || from < m.device.ListFrom {
		m.Rules.Meta.CodeList, from = 0, 0
		m.Generation = generation
	} else if from == m.device.CodeList {
		return nil
	}
	rows, err := m.v.CodeRows(m.device.ID, from, wire.MaxRecords*wire.MaxListParts)
	if err != nil {
		return err
	}
	codes := wire.Codes{DeviceCode: m.device.Code, From: from, To: m.device.CodeList}
	for _, r := range rows {
		codes.Entries = append(codes.Entries, r.Entry)
	}
	m.stepRules(rules.CodesCame{Codes: codes})
	return nil
}

// takeCommands obeys the orders that wait, but for one that a fault lets pass.
func (m *machine) takeCommands() error {
	open, err := m.v.OpenCommands(m.device.ID)
	if err != nil {
		return err
	}
	m.Unanswered = slices.DeleteFunc(m.Unanswered, func(id string) bool {
		return !slices.ContainsFunc(open, func(c cloud.Command) bool { return c.ID == id })
	})
	for _, c := range open {
		if c.State == cloud.CommandAccepted || !m.now.Before(c.ExpiresAt) || slices.Contains(m.Unanswered, c.ID) {
			continue
		}
		if _, seen := m.Rules.Commands[c.ID]; seen {
			continue
		}
		m.Acted = m.Last
		if c.Kind == wire.CmdOpenDoors && m.Faults.TimeoutNextOpen {
			m.Faults.TimeoutNextOpen = false
			m.Unanswered = append(m.Unanswered, c.ID)
			continue
		}
		m.stepRules(rules.Ordered{Command: wire.Command{CommandID: c.ID, DeviceCode: m.device.Code, IssuedAt: c.IssuedAt.UnixNano(), ExpiresAt: c.ExpiresAt.UnixNano(),
			Versions: c.Versions, Kind: c.Kind, Body: c.Body}})
	}
	return nil
}

// report applies what the cabinet has to say, unless it is offline.
func (m *machine) report() error {
	if m.Faults.Offline {
		return nil
	}
	for _, r := range m.Reports {
		at := max(min(m.Start+r.Mono, m.now.UnixNano()), m.Placed) // nodes' clocks differ
		m.Placed = at
		problem, err := m.work.Apply(locker.Occurrence{Record: wire.Record{Kind: r.Kind, At: m.Start + r.Mono, Boot: boot, Mono: m.Start + r.Mono, Clock: wire.ClockSynced, Body: r.Body},
			OccurredAt: time.Unix(0, at).UTC().Truncate(time.Millisecond), Present: true})
		if err != nil {
			return err
		}
		if problem != "" { // it leads to nothing, as that of any cabinet
			m.log.Warn("a mock cabinet reports what cannot be", "device_id", m.device.ID, "record", r.Kind.String(), "problem", problem)
		}
	}
	m.Reports = nil
	return nil
}

// due is when something happens next without an act or an order.
func (m *machine) due() time.Time {
	next := m.Rules.Next(rules.Now{Boot: boot, Mono: m.Last, Offset: m.Start, Clock: wire.ClockSynced})
	if next == 0 || len(m.Reports) >= maxReports || m.Last-m.Acted > idle {
		return time.Time{}
	}
	return time.Unix(0, m.Start+next).UTC().Truncate(time.Millisecond).Add(time.Millisecond)
}

func (m *machine) finish(ch *cloud.Changes, due time.Time) error {
	m.forget()
	if err := m.work.Finish(ch); err != nil {
		return err
	}
	state, err := wire.Encode(m.cabinet)
	if err != nil {
		return fmt.Errorf("encode mock cabinet %d: %w", m.device.ID, err)
	}
	if m.session != nil {
		ch.Sessions = append(ch.Sessions, *m.session)
	}
	ch.Mocks = []cloud.MockCabinet{{DeviceID: m.device.ID, State: state, DueAt: due}} // what this step stored, it has looked at
	if m.Faults.Offline {
		return nil
	}
	held, generation := m.Rules.Meta.CodeList, m.Generation
	ch.Seen = append(ch.Seen, cloud.DeviceSeen{DeviceID: m.device.ID, LastSeenAt: m.now, LastPlaced: m.now, Applied: m.Rules.Config.Version, CodesHeld: &held, HeldGeneration: &generation,
		StatusAt: m.now, Firmware: "mock"})
	return nil
}

// forget drops all but the newest ends of openings, which would make the row large.
func (m *machine) forget() {
	if len(m.Rules.Ended) <= keptEnds {
		return
	}
	ids := slices.SortedFunc(maps.Keys(m.Rules.Ended), func(a, b string) int { return cmp.Compare(m.Rules.Ended[b].At.Mono, m.Rules.Ended[a].At.Mono) })
	m.Rules.Ended = maps.Clone(m.Rules.Ended)
	for _, id := range ids[keptEnds:] {
		delete(m.Rules.Ended, id)
	}
}
