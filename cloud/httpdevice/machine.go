package httpdevice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/hosted"
	"github.com/postern-io/postern/edge"
	rules "github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// form is the number of the form in which a device is kept. One of another form begins as
// one that has lost its memory: its code list says what lies in it.
const form = 1

// kept is what is kept of a device.
type kept struct {
	hosted.Kept
	Instance string  // of the device's program: its newest start
	Former   []start // that came before it, the newest last: their calls count no more
	Taken    uint64  // number of its newest door report that was taken
	Orders   []order // that it has to carry out, the oldest first
	Count    uint64  // of orders ever given
	Silent   bool    // it has not called for a while
	Unread   bool    // its doors are unknown until it reports them
	Refused  uint64  // number of the newest configuration that its rules refused, as was said
}

// start is one of the device's program that another has followed.
type start struct{ Instance string }

// order is something that the device has to do.
type order struct {
	ID      string
	Kind    wire.CommandKind
	Door    edge.DoorNumber // to open; 0 for the others
	Opening string
	By      edge.Authority // of a pulse
	Text    string         // to show
	Issued  int64          // unix ns
	Expires int64          // unix ns
	Given   string         // instance that fetched it, "" for none
	Done    bool           // it was carried out, and since then nothing says how the door stands
}

// end is when the order is given up, unix ns: one that was fetched may be answered for a while.
func (o order) end() int64 {
	if o.Given == "" {
		return o.Expires
	}
	return o.Expires + int64(answerWait)
}

const (
	// silence is after what time without a call a device is shown offline.
	silence = 90 * time.Second
	// orderLife is for how long a lock may be opened by an order.
	orderLife = 20 * time.Second
	// answerWait is how long after its end an order that was fetched may be answered.
	answerWait = 10 * time.Second
	// maxFormer bounds the starts that are remembered, the newest, however long ago they were:
	// a second program with the secret may go on calling.
	maxFormer = 100
	// maxOrders bounds what waits for a device that does not fetch it.
	maxOrders = 200
)

// machine is one step of a device.
type machine struct {
	hosted.Machine
	kept kept
	row  cloud.HTTPDevice
	// loaded has the times that were kept.
	loaded struct{ Last, Acted int64 }
	// read is set when doors were reported.
	read bool
	// relaid is set when a configuration came that leaves the state of doors unknown.
	relaid bool
}

// load reads a device as it is kept. Error: DEVICE_SIGNATURE_INVALID for one that has no way
// in any more.
func (s *Service) load(v cloud.View, id cloud.DeviceID, now time.Time) (*machine, error) {
	d, err := v.Device(id)
	if err != nil {
		return nil, err
	}
	row, err := v.HTTPDevice(id)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && !admitted(d) {
		return nil, errSignature()
	}
	if err != nil {
		return nil, err
	}
	m := &machine{row: row, Machine: hosted.Machine{View: v, Device: d, Now: now, Work: s.cfg.Lockers.Begin(v, d, now), Log: s.cfg.Log}}
	m.Kept, m.Hardware = &m.kept.Kept, m
	if len(row.State) > 0 && wire.DecodeKept(row.State, &m.kept) == nil && m.Form == form {
		m.loaded.Last, m.loaded.Acted = m.Last, m.Acted
		return m, nil
	}
	m.kept = kept{Silent: true, Unread: true}
	return m, m.Begin(form, len(row.State) > 0, true)
}

// admitted reports whether a device may call.
func admitted(d cloud.Device) bool {
	return d.Protocol == cloud.ProtocolHTTP && !d.Disabled && !d.IsCutOff() && !d.EnrolledAt.IsZero()
}

// step plays what is due at a device and then a call of it, nil for none. It returns when
// something is due next, zero for nothing. It may call act several times, of which the last
// one counts.
func (s *Service) step(ctx context.Context, id cloud.DeviceID, c *call, act func(*machine) error) (due time.Time, err error) {
	now := time.Now().UTC()
	err = s.cfg.Store.Decide(ctx, id, func(v cloud.View) (*cloud.Changes, error) {
		m, err := s.load(v, id, now)
		if err != nil {
			if c == nil {
				due = time.Time{}
				return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{HTTPDevices: []cloud.HTTPDevice{{DeviceID: id, Ended: hasEnded(v, id)}}}, Unaudited: true}, ignoreSignature(err)
			}
			return nil, err
		}
		if c != nil && !bytes.Equal(c.sealed, m.row.SealedSecret) { // the device was enrolled again since
			return nil, errSignature()
		}
		ch := &cloud.Changes{Unaudited: true}
		if err := m.fallSilent(); err != nil {
			return nil, err
		}
		if c != nil {
			if c.once != "" {
				ch.HTTPNonces = []cloud.HTTPNonce{c.nonce(id, now)}
			}
			m.Spoke, m.Firmware = true, c.firmware
			if err := m.called(c.instance); err != nil {
				return nil, err
			}
		}
		m.endOrders()
		if err := m.catchUp(); err != nil {
			return nil, err
		}
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
		return ch, m.finish(ch, due)
	})
	return due, err
}

// hasEnded reports whether a device was retired: it never calls again.
func hasEnded(v cloud.View, id cloud.DeviceID) bool {
	d, err := v.Device(id)
	return err == nil && !d.RetiredAt.IsZero()
}

// ignoreSignature is for a device that has no way in: nothing is due there.
func ignoreSignature(err error) error {
	if e := new(cloud.Error); errors.As(err, &e) && e.Code == codeSignature {
		return nil
	}
	return err
}

// called notes a call of an instance of the device's program. What another instance fetched
// it may have carried out or not, and its doors were read by that one alone. Error:
// DEVICE_SIGNATURE_INVALID for an instance that another has followed.
func (m *machine) called(instance string) error {
	if instance != m.kept.Instance {
		if slices.ContainsFunc(m.kept.Former, func(f start) bool { return f.Instance == instance }) {
			return errSignature()
		}
		m.follow(instance)
	}
	row, err := m.View.Session(m.Device.ID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return err
	}
	if m.kept.Silent || !row.Online {
		m.kept.Silent = false
		return m.Connect(true)
	}
	return nil
}

// follow has another instance take the place of the present one.
func (m *machine) follow(instance string) {
	if m.kept.Instance != "" {
		m.kept.Former = append(slices.Clone(m.kept.Former), start{m.kept.Instance})
	}
	if n := len(m.kept.Former); n > maxFormer {
		m.kept.Former = m.kept.Former[n-maxFormer:]
	}
	m.kept.Instance, m.kept.Taken = instance, 0
	m.lose()
	m.answerOrders(func(o order) (edge.PulseOutcome, bool) {
		return edge.PulseUnanswered, o.Given != "" && o.Given != instance
	})
}

// fallSilent shows a device offline that has not called for a while.
func (m *machine) fallSilent() error {
	if m.kept.Silent || m.Now.Before(m.Device.LastSeenAt.Add(silence)) {
		return nil
	}
	m.kept.Silent = true
	m.lose()
	return m.Connect(false)
}

// lose forgets how the doors stand.
func (m *machine) lose() {
	var all []edge.DoorNumber
	for _, l := range m.Rules.Config.Layout {
		if m.Rules.Doors[edge.DoorNumber(l.Door)].Read {
			all = append(all, edge.DoorNumber(l.Door))
		}
	}
	m.kept.Unread = true
	if len(all) > 0 {
		m.Give(rules.Lost{Doors: all, Mono: m.Last + hosted.Between})
	}
}

// catchUp lets time pass and takes what the cloud has for the device. A configuration that its
// rules refuse, as one that moves an open door, is tried again with each step, and that it was
// refused is said once.
func (m *machine) catchUp() error {
	former, said := m.Rules.Config.Version, len(m.Reports)
	if err := m.CatchUp(); err != nil {
		return err
	}
	if m.Rules.Config.Version != former {
		m.relaid = !m.knowsDoors()
		m.kept.Unread = m.kept.Unread || m.relaid
	} else if newest := m.Device.ConfigVersion; newest > former {
		if m.kept.Refused == newest {
			m.Reports = append(m.Reports[:said], slices.DeleteFunc(m.Reports[said:], func(r hosted.Report) bool { return r.Kind == wire.KindConfigApplied })...)
		}
		m.kept.Refused = newest
	}
	return nil
}

// knowsDoors reports whether it is known how every door stands.
func (m *machine) knowsDoors() bool {
	return !slices.ContainsFunc(m.Rules.Config.Layout, func(l wire.LayoutDoor) bool { return !m.Rules.Doors[edge.DoorNumber(l.Door)].Known })
}

// Do makes orders of what the rules ask for.
func (m *machine) Do(a rules.Action) {
	switch a := a.(type) {
	case rules.Pulse:
		ends := m.Now.Add(orderLife).UnixNano()
		if a.By.Until != 0 {
			ends = min(ends, m.Start+a.By.Until)
		}
		if !m.giveOrder(order{Kind: wire.CmdOpenDoors, Door: a.Door, Opening: a.By.OpeningID, By: a.By, Expires: ends}) {
			m.Give(rules.Pulsing{Door: a.Door, By: a.By, Outcome: edge.PulseNotSent, Mono: m.Last + hosted.Between})
		}
	case rules.Withdraw:
		m.answerOrders(func(o order) (edge.PulseOutcome, bool) {
			return edge.PulseRefused, o.Opening == a.OpeningID && o.Given == ""
		})
	case rules.Show:
		kind, is := map[string]wire.CommandKind{"sound": wire.CmdBeep, "message": wire.CmdShowMessage, "reboot": wire.CmdReboot}[a.What]
		if is {
			m.giveOrder(order{Kind: kind, Text: a.Text, Expires: m.Now.Add(time.Minute).UnixNano()})
		}
	}
}

// giveOrder puts an order in line. It reports whether there was room.
func (m *machine) giveOrder(o order) bool {
	if len(m.kept.Orders) >= maxOrders {
		return false
	}
	o.ID, o.Issued = uuid.Must(uuid.NewV7()).String(), m.Now.UnixNano()
	m.kept.Orders = append(m.kept.Orders, o)
	m.kept.Count++
	return true
}

// refuseMoved gives up orders for a door that is open, though none was fetched: it was not
// opened for them.
func (m *machine) refuseMoved(n edge.DoorNumber) {
	m.answerOrders(func(o order) (edge.PulseOutcome, bool) {
		return edge.PulseNotSent, o.Kind == wire.CmdOpenDoors && o.Door == n && o.Given == "" && !m.wasAsked(o)
	})
}

// wasAsked reports whether an earlier order may have opened the door of an order for the same
// opening.
func (m *machine) wasAsked(o order) bool {
	return slices.ContainsFunc(m.Rules.Openings[o.Opening].Doors, func(d rules.OpeningDoor) bool { return d.Door == o.Door && d.AskedBefore })
}

// answerOrders takes orders out of the line and answers those of locks.
func (m *machine) answerOrders(outcome func(order) (edge.PulseOutcome, bool)) {
	var answered []rules.Pulsing
	m.kept.Orders = slices.DeleteFunc(slices.Clone(m.kept.Orders), func(o order) bool {
		result, ends := outcome(o)
		if ends && o.Kind == wire.CmdOpenDoors {
			answered = append(answered, rules.Pulsing{Door: o.Door, By: o.By, Outcome: result})
		}
		return ends
	})
	for _, p := range answered { // answers may lead to further orders
		p.Mono = m.Last + hosted.Between
		m.Give(p)
	}
}

// endOrders gives up orders whose time is over. Of one that was fetched no one knows whether
// the lock was opened, and how its door stands was read before: the next report tells.
func (m *machine) endOrders() {
	now := m.Now.UnixNano()
	var unread []edge.DoorNumber
	for _, o := range m.kept.Orders {
		if o.Given != "" && o.Kind == wire.CmdOpenDoors && now >= o.end() {
			unread = append(unread, o.Door)
		}
	}
	if len(unread) > 0 {
		m.kept.Unread = true
		m.Give(rules.Lost{Doors: unread, Mono: m.Last + hosted.Between})
	}
	m.answerOrders(func(o order) (edge.PulseOutcome, bool) {
		if o.Given == "" {
			return edge.PulseNotSent, now >= o.end()
		}
		return edge.PulseUnanswered, now >= o.end()
	})
}

// confirmDone answers orders that were carried out, as it is known by now how their doors stand
// since: the device has reported it, or says that none has moved.
func (m *machine) confirmDone() {
	m.answerOrders(func(o order) (edge.PulseOutcome, bool) { return edge.PulseConfirmed, o.Done })
}

// dropStale takes orders of locks out of the line whose doors have moved meanwhile, or whose
// openings have ended: they are given to no one.
func (m *machine) dropStale() {
	m.answerOrders(func(o order) (edge.PulseOutcome, bool) {
		return edge.PulseRefused, o.Given == "" && m.isStale(o)
	})
}

// isStale reports whether the act of an order wants its door opened no more.
func (m *machine) isStale(o order) bool {
	if o.Kind != wire.CmdOpenDoors {
		return false
	}
	opening, runs := m.Rules.Openings[o.Opening]
	if m.isOpen(o.Door) || !runs || opening.Cancelled || opening.Done {
		return true
	}
	for _, d := range opening.Doors {
		if d.Door == o.Door {
			return !d.Waiting || d.By.Act != o.By.Act || d.Phase != rules.Queued && d.Phase != rules.Pulsed
		}
	}
	return true
}

// isOpen reports whether a door is known to be open.
func (m *machine) isOpen(n edge.DoorNumber) bool {
	door := m.Rules.Doors[n]
	return door.Known && door.Open
}

// Away is false: the rules of a device are in the cloud.
func (m *machine) Away() bool { return false }

// Takes reports whether an order reaches the device: one that it carries out itself waits until
// it calls, and one that opens doors also until it has said how they stand.
func (m *machine) Takes(c cloud.Command) bool {
	switch c.Kind {
	case wire.CmdOpenDoors:
		return !m.kept.Silent && !m.kept.Unread && m.Rules.Ready
	case wire.CmdBeep, wire.CmdShowMessage, wire.CmdReboot:
		return !m.kept.Silent
	}
	return true
}

// due is when something happens next without a call.
func (m *machine) due() time.Time {
	due := m.Due()
	earlier := func(t time.Time) {
		if due.IsZero() || t.Before(due) {
			due = t
		}
	}
	for _, o := range m.kept.Orders {
		earlier(time.Unix(0, o.end()).UTC().Truncate(time.Millisecond).Add(time.Millisecond))
	}
	if !m.kept.Silent {
		last := m.Device.LastSeenAt
		if m.Spoke {
			last = m.Now
		}
		earlier(last.Add(silence).Truncate(time.Millisecond).Add(time.Millisecond))
	}
	return due
}

func (m *machine) finish(ch *cloud.Changes, due time.Time) error {
	if err := m.Finish(ch); err != nil {
		return err
	}
	if m.read {
		if err := m.showDoors(ch); err != nil {
			return err
		}
	}
	state, err := wire.Encode(m.kept)
	if err != nil {
		return fmt.Errorf("encode device %d: %w", m.Device.ID, err)
	}
	row := cloud.HTTPDevice{DeviceID: m.Device.ID, DueAt: due}
	still := m.kept
	still.Last, still.Acted = m.loaded.Last, m.loaded.Acted
	if before, err := wire.Encode(still); err != nil || !bytes.Equal(before, m.row.State) { // more than time has passed
		row.State, row.Orders = state, m.kept.Count
	}
	ch.HTTPDevices = []cloud.HTTPDevice{row} // what this step stored, it has looked at
	return nil
}

// showDoors shows doors as they were read where the cloud shows them otherwise.
func (m *machine) showDoors(ch *cloud.Changes) error {
	cells, err := m.View.Compartments(m.Device.ID)
	if err != nil {
		return err
	}
	for _, c := range cells {
		d, known := m.Rules.Doors[edge.DoorNumber(c.Door)]
		if !known || !d.Known {
			continue
		}
		p := cloud.DoorPresent{DeviceID: m.Device.ID, Door: c.Door, DoorStatus: "closed", OpeningID: d.Opening}
		if d.Open {
			p.DoorStatus = "open"
		}
		p.DoorStatus = cloud.DoorStatusAfter(c.DoorStatus, p.DoorStatus)
		if d.Item != wire.ItemUnknown {
			p.Occupied = new(d.Item == wire.ItemPresent)
		}
		if c.DoorStatus != p.DoorStatus || c.OpeningID != p.OpeningID || !sameBool(c.Occupied, p.Occupied) {
			ch.Doors = append(ch.Doors, p)
		}
	}
	return nil
}

func sameBool(a, b *bool) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
