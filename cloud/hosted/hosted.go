// Package hosted runs the rules of cabinets that have no agent of their own: mock cabinets,
// and devices that speak HTTP. Such a cabinet obeys the same rules as an agent does
// (edge/locker), and what they record is applied as the records of an agent are; only its
// hardware differs.
//
// A cabinet's state is a row. A step reads it, lets time pass, gives it the orders and codes
// that the cloud has for it, then one input of its hardware's, and writes the state with all
// that it led to in one transaction: any node may make any step, and none is made twice.
package hosted

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	rules "github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// Kept is what is kept of every hosted cabinet. A kind of cabinet keeps it with what its
// hardware needs, as one structure.
type Kept struct {
	Form       uint
	Start      int64 // unix ns, when its count of time begins
	Last       int64 // of that count, ns: the newest step
	Acted      int64 // of that count, ns: the newest act or order
	Rules      rules.State
	Generation uint64   // of the code list held
	Reports    []Report // that the cloud does not have: it is offline
	Placed     int64    // unix ns, when the newest applied report happened
}

// Report is a record before it is applied.
type Report struct {
	Kind wire.Kind
	Mono int64
	Body []byte
}

// Hardware is what differs between kinds of cabinets. Its methods are called within a step.
type Hardware interface {
	// Do carries out what the rules ask for: pulses, messages.
	Do(a rules.Action)
	// Takes reports whether an order of the cloud's reaches the cabinet now.
	Takes(c cloud.Command) bool
	// Away reports whether nothing passes between the cabinet and the cloud: what it
	// records is kept until it is back.
	Away() bool
}

// Machine is one step of a cabinet.
type Machine struct {
	*Kept
	Hardware Hardware
	View     cloud.View
	Device   cloud.Device
	Now      time.Time
	Work     *locker.Work
	// Session is to be written, nil for none.
	Session *cloud.Session
	// Spoke says that the cabinet itself is there in this step.
	Spoke bool
	// Firmware is what is said about the cabinet's program.
	Firmware string
	Log      *slog.Logger
}

// MaxReports bounds what an offline cabinet keeps: more is not played.
const MaxReports = 500

// keptEnds is how many ended openings a cabinet remembers.
const keptEnds = 100

// boot is that of every record: the rules of a hosted cabinet never start again.
const boot = 1

// Begin starts a cabinet whose state is new, or was lost: then its code list says what lies
// in it. No door has been read. At one that is fresh, doors that are found open count as found
// and not as forced, and orders of before count for nothing.
func (m *Machine) Begin(form uint, lost, fresh bool) error {
	c, err := m.readConfig()
	if err != nil {
		return err
	}
	*m.Kept = Kept{Form: form, Start: m.Now.UnixNano(), Rules: rules.New(c)}
	if lost {
		m.Start -= int64(time.Hour) // records of it have other times than those of before
		if err := m.Work.StoreLost(m.Now); err != nil {
			return err
		}
	}
	m.Give(rules.Started{Fresh: fresh})
	return nil
}

// readConfig is the configuration that the cloud has for the cabinet.
func (m *Machine) readConfig() (c wire.Config, err error) {
	if err = wire.Decode(m.Device.Config, &c); err != nil {
		err = fmt.Errorf("read configuration of device %d: %w", m.Device.ID, err)
	}
	return c, err
}

// Between is what passes at least between two inputs of a step, so that each door that
// opens is open for long enough to count.
const Between = int64(2 * time.Millisecond)

// at is the time of the next input.
func (m *Machine) at() rules.Now {
	m.Last = max(m.Last+Between, m.Now.UnixNano()-m.Start)
	n := rules.Now{Boot: boot, Mono: m.Last, Offset: m.Start, Clock: wire.ClockSynced}
	_, _ = rand.Read(n.Random[:]) // never fails
	return n
}

// Give gives the rules an input, keeps their records and has the hardware do what they ask
// for.
func (m *Machine) Give(in rules.Input) rules.Answer {
	next, out := rules.Step(m.Rules, in, m.at())
	m.Rules = next
	for _, r := range out.Records {
		m.Reports = append(m.Reports, Report{Kind: r.Kind, Mono: r.Mono, Body: wire.MustEncode(r.Body)})
	}
	for _, a := range out.Actions {
		m.Hardware.Do(a)
	}
	return out.Answer
}

// Connect shows the cabinet online or offline. It has no connection to a node.
func (m *Machine) Connect(online bool) error {
	row, err := m.View.Session(m.Device.ID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return err
	}
	row.DeviceID, row.Node, row.Online, row.LastSeenAt = m.Device.ID, "", online, m.Now
	if online {
		row.Generation, row.ConnectedAt = row.Generation+1, m.Now
	}
	m.Session = &row
	return nil
}

// CatchUp lets time pass and takes what the cloud has for the cabinet.
func (m *Machine) CatchUp() error {
	if len(m.Reports) >= MaxReports {
		return nil
	}
	m.Give(rules.Tick{})
	if m.Hardware.Away() {
		return nil
	}
	if m.Device.ConfigVersion > m.Rules.Config.Version {
		c, err := m.readConfig()
		if err != nil {
			return err
		}
		m.Give(rules.ConfigCame{Config: c})
	}
	if err := m.takeCodes(); err != nil {
		return err
	}
	return m.takeCommands()
}

// maxMoments bounds the moments of one Advance that are played each by itself.
const maxMoments = 1000

// Advance lets the cabinet's count of time run ahead of the clock: the moments for which its
// rules wait come one after the other, and seen is called after each, as it is at the end. All
// of them happen now, as the clock has it.
func (m *Machine) Advance(by time.Duration, seen func()) {
	end := max(m.Last, m.Now.UnixNano()-m.Start) + int64(by)
	for range maxMoments {
		next := m.Rules.Next(rules.Now{Boot: boot, Mono: m.Last, Offset: m.Start, Clock: wire.ClockSynced})
		if next == 0 || next >= end || len(m.Reports) >= MaxReports {
			break
		}
		m.Start = m.Now.UnixNano() - next
		m.Give(rules.Tick{})
		seen()
	}
	m.Start = m.Now.UnixNano() - end
	m.Give(rules.Tick{})
	seen()
}

// takeCodes takes what is new of the code list.
func (m *Machine) takeCodes() error {
	from, generation := m.Rules.Meta.CodeList, max(m.Device.CodeGeneration, 1)
	if generation != m.Generation || from < m.Device.ListFrom {
		m.Rules.Meta.CodeList, from = 0, 0
		m.Generation = generation
	} else if from == m.Device.CodeList {
		return nil
	}
	rows, err := m.View.CodeRows(m.Device.ID, from, wire.MaxRecords*wire.MaxListParts)
	if err != nil {
		return err
	}
	codes := wire.Codes{DeviceCode: m.Device.Code, From: from, To: m.Device.CodeList}
	for _, r := range rows {
		codes.Entries = append(codes.Entries, r.Entry)
	}
	m.Give(rules.CodesCame{Codes: codes})
	return nil
}

// takeCommands obeys the orders that wait and reach the cabinet.
func (m *Machine) takeCommands() error {
	open, err := m.View.OpenCommands(m.Device.ID)
	if err != nil {
		return err
	}
	for _, c := range open {
		if c.State == cloud.CommandAccepted || !m.Now.Before(c.ExpiresAt) {
			continue
		}
		if _, seen := m.Rules.Commands[c.ID]; seen {
			continue
		}
		m.Acted = m.Last
		if !m.Hardware.Takes(c) {
			continue
		}
		m.Give(rules.Ordered{Command: wire.Command{CommandID: c.ID, DeviceCode: m.Device.Code, IssuedAt: c.IssuedAt.UnixNano(), ExpiresAt: c.ExpiresAt.UnixNano(),
			Versions: c.Versions, Kind: c.Kind, Body: c.Body}})
	}
	return nil
}

// Apply applies what the cabinet has to say, unless it is away.
func (m *Machine) Apply() error {
	if m.Hardware.Away() {
		return nil
	}
	for _, r := range m.Reports {
		at := max(min(m.Start+r.Mono, m.Now.UnixNano()), m.Placed) // nodes' clocks differ
		m.Placed = at
		problem, err := m.Work.Apply(locker.Occurrence{Record: wire.Record{Kind: r.Kind, At: m.Start + r.Mono, Boot: boot, Mono: m.Start + r.Mono, Clock: wire.ClockSynced, Body: r.Body},
			OccurredAt: time.Unix(0, at).UTC().Truncate(time.Millisecond), Present: true})
		if err != nil {
			return err
		}
		if problem != "" { // it leads to nothing, as that of any cabinet
			m.Log.Warn("a hosted cabinet reports what cannot be", "device_id", m.Device.ID, "record", r.Kind.String(), "problem", problem)
		}
	}
	m.Reports = nil
	return nil
}

// Due is when something happens next without an act or an order, zero for never.
func (m *Machine) Due() time.Time {
	next := m.Rules.Next(rules.Now{Boot: boot, Mono: m.Last, Offset: m.Start, Clock: wire.ClockSynced})
	if next == 0 || len(m.Reports) >= MaxReports {
		return time.Time{}
	}
	return m.Moment(next)
}

// Moment is a time of the cabinet's count, rounded up to the next millisecond.
func (m *Machine) Moment(mono int64) time.Time {
	return time.Unix(0, m.Start+mono).UTC().Truncate(time.Millisecond).Add(time.Millisecond)
}

// Finish puts what a step led to into ch, but for the state itself.
func (m *Machine) Finish(ch *cloud.Changes) error {
	m.forget()
	if err := m.Work.Finish(ch); err != nil {
		return err
	}
	if m.Session != nil {
		ch.Sessions = append(ch.Sessions, *m.Session)
	}
	if m.Hardware.Away() {
		return nil
	}
	held, generation := m.Rules.Meta.CodeList, m.Generation
	seen := cloud.DeviceSeen{DeviceID: m.Device.ID, LastPlaced: m.Now, Applied: m.Rules.Config.Version, CodesHeld: &held, HeldGeneration: &generation, Firmware: m.Firmware}
	if m.Spoke {
		seen.LastSeenAt, seen.StatusAt = m.Now, m.Now
	}
	ch.Seen = append(ch.Seen, seen)
	return nil
}

// forget drops all but the newest ends of openings, which would make the row large.
func (m *Machine) forget() {
	if len(m.Rules.Ended) <= keptEnds {
		return
	}
	ids := slices.SortedFunc(maps.Keys(m.Rules.Ended), func(a, b string) int { return cmp.Compare(m.Rules.Ended[b].At.Mono, m.Rules.Ended[a].At.Mono) })
	m.Rules.Ended = maps.Clone(m.Rules.Ended)
	for _, id := range ids[keptEnds:] {
		delete(m.Rules.Ended, id)
	}
}
