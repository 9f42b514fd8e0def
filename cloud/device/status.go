package device

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// duplicateWithin is how close together two agents must take turns to count as
// two with one identity.
const duplicateWithin = 10 * time.Minute

// status takes a device's present and answers with what the device lacks. It
// never settles, ends, opens or closes anything: records do.
func (s queue) status(ctx context.Context, x *session, in incoming) {
	st, err := wire.DecodeStatus(wire.Clean(in.payload))
	if x.upKey != nil && (err != nil || !signed.VerifyStatus(x.upKey, x.code, in.payload, st)) {
		s.Metrics.BadSignatures.Add(1)
		s.keepFault(ctx, x, newUnsigned("status", "the signature is not by the registered key", in).fault(x.id, 1))
		return
	}
	if err == nil {
		err = plausible(st)
	}
	if err == nil && x.upKey != nil && len(st.Instance) == 0 {
		err = errors.New("a signed status names its instance")
	}
	if err != nil {
		s.Metrics.Refused.Add(1)
		s.fault(ctx, x, cloud.DevBadBatch, "status: "+err.Error(), in.at)
		return
	}
	if st.State == wire.Offline {
		will := st
		if x.upKey == nil {
			will = nil
		}
		s.offline(ctx, x.id, x.generation, will, nil)
		return
	}
	var t *statusIntake
	err = s.cfg.Store.Decide(ctx, x.id, func(v cloud.View) (*cloud.Changes, error) {
		t = &statusIntake{s: s.core, v: v, x: x, st: st, at: in.at, asks: x.challenged()}
		return t.readStatus()
	})
	if err != nil {
		if !errors.Is(err, cloud.ErrStale) && ctx.Err() == nil {
			s.log.Error("store status", "device", x.code, "err", err)
		}
		return
	}
	if t.old {
		s.Metrics.OldStatuses.Add(1)
		return
	}
	if t.unproven {
		s.Metrics.OldStatuses.Add(1)
		s.sendTime(x, st, x.challenge(st, t.lanes))
		return
	}
	x.dropChallenge(st)
	s.answer(ctx, x, st, t.device, t.lanes, t.refused)
}

// statusIntake is one transaction's status. It is built inside the decision and
// thrown away when that is run again.
type statusIntake struct {
	s  *core
	v  cloud.View
	x  *session
	st *wire.Status
	at time.Time

	device  cloud.Device
	lanes   [wire.Lanes]cloud.LaneState
	refused []wire.Ack // answers to an epoch that cannot be the device's
	old     bool       // overtaken: nothing changes, and nothing is answered
	ch      cloud.Changes

	asks     challenge // what the device was given last in this session
	proven   bool      // the status repeats it
	unproven bool      // it has to and does not: nothing changes
}

// readStatus is what a status teaches.
func (t *statusIntake) readStatus() (*cloud.Changes, error) {
	t.ch.Generation = t.x.generation
	var err error
	if t.device, err = t.v.Device(t.x.id); err != nil {
		return nil, err
	}
	if err := t.session(); err != nil || t.old {
		return &t.ch, err
	}
	current, err := t.stores()
	if err != nil {
		return nil, err
	}
	if t.unproven {
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Generation: t.x.generation}}, nil
	}
	t.countGeneration()
	if err := t.raiseConfig(); err != nil {
		return nil, err
	}
	t.seen()
	behind, freed, err := t.doors()
	if err != nil {
		return nil, err
	}
	compared := current && !behind && t.complete() // else it would make orders of versions that are behind
	if !compared && !freed {
		return &t.ch, nil
	}
	w := t.s.cfg.Meaning.Begin(t.v, t.device, t.at)
	if freed {
		if err := w.DoorsFreed(t.st, t.at); err != nil {
			return nil, err
		}
	}
	if compared {
		if err := w.Snapshot(t.st, t.at); err != nil {
			return nil, err
		}
	}
	return &t.ch, w.Finish(&t.ch)
}

// fault notes a device exception.
func (t *statusIntake) fault(typ, detail string) {
	t.ch.DeviceFaults = append(t.ch.DeviceFaults, cloud.DeviceException{DeviceID: t.x.id, Type: typ, Detail: cloud.DetailText(detail), OpenedAt: t.at, SeenAt: t.at})
}

// session notes which agent speaks, and finds two that take turns. A signed
// status that was overtaken is old.
func (t *statusIntake) session() error {
	row, err := t.v.Session(t.x.id)
	if err != nil {
		return err
	}
	instance := hex.EncodeToString(t.st.Instance)
	twins := func() {
		if instance != row.Instance && alternates(row.Instances, instance, t.at) {
			t.fault(cloud.DevDuplicateIdentity, "two agents take turns under this identity")
		}
	}
	if t.x.upKey != nil {
		var known, twin bool
		if t.old, known, twin = isOld(row, instance, t.st); t.old {
			if twin {
				twins()
			}
			return nil
		}
		t.proven = t.asks.isProven(instance, t.st)
		t.unproven = !known && !t.proven && !isNewest(row, t.st)
	}
	row.Online, row.LastSeenAt = true, t.at
	if instance != "" {
		twins()
		row.Instances = speaks(row.Instances, cloud.InstanceSeen{Instance: instance, At: t.at, Boot: t.st.Boot, Count: t.st.Count})
		row.Instance = instance
	}
	t.ch.Sessions = []cloud.Session{row}
	return nil
}

// speaks puts the agent that speaks now at the end.
func speaks(list []cloud.InstanceSeen, now cloud.InstanceSeen) []cloud.InstanceSeen {
	if n := len(list); n > 0 && list[n-1].Instance == now.Instance {
		now.At = list[n-1].At
	}
	for _, x := range list {
		now.Highest = max(now.Highest, x.Boot, x.Highest)
	}
	out := slices.DeleteFunc(slices.Clone(list), func(x cloud.InstanceSeen) bool { return x.Instance == now.Instance })
	out = append(out, now)
	return out[max(0, len(out)-cloud.MaxInstances):]
}

// countGeneration begins a new generation of the code list where the device
// holds more than there is: a list that is sent then has lower numbers.
func (t *statusIntake) countGeneration() {
	now := max(t.device.CodeGeneration, 1)
	switch st := t.st; {
	case namesGenerations(st) && t.isAbove(st.Generation, now):
		now = st.Generation + 1
	case t.st.CodeList > t.device.CodeList && (st.Generation == now || !namesGenerations(st)):
		now++
	default:
		return
	}
	t.device.CodeGeneration = now
	t.ch.Devices = []cloud.Device{t.device}
}

// raiseConfig gives the configuration a version above the one that the device has, where the
// cloud has none such: its database went back.
func (t *statusIntake) raiseConfig() error {
	if len(t.device.Config) == 0 || !t.isAbove(t.st.ConfigVersion, t.device.ConfigVersion) {
		return nil
	}
	if err := RaiseConfig(&t.device, t.st.ConfigVersion+1); err != nil {
		return err
	}
	t.ch.Devices = []cloud.Device{t.device}
	return nil
}

// RaiseConfig gives the configuration of a device, where it has one, a version.
func RaiseConfig(d *cloud.Device, version uint64) error {
	if len(d.Config) == 0 {
		return nil
	}
	var c wire.Config
	if err := wire.Decode(d.Config, &c); err != nil {
		return fmt.Errorf("stored configuration of %s: %w", d.Code, err)
	}
	c.Version, d.ConfigVersion = version, version
	if d.Profile.Settings.Since > 0 {
		d.Profile.Settings.Since = version // what the device has below it may be of another configuration
	}
	d.Config = wire.MustEncode(c)
	return nil
}

// HasKeys reports whether a configuration names all of some keys.
func HasKeys(c wire.Config, some []wire.PinnedKey) bool {
	for _, k := range some {
		if !slices.ContainsFunc(c.Keys, func(o wire.PinnedKey) bool { return bytes.Equal(o.ID, k.ID) && bytes.Equal(o.Key, k.Key) }) {
			return false
		}
	}
	return true
}

// PinKeys gives the configuration of a device, where it has one with other keys, these under
// the next version. It reports whether it did.
func PinKeys(d *cloud.Device, keys []wire.PinnedKey) (changed bool, err error) {
	if len(d.Config) == 0 {
		return false, nil
	}
	var c wire.Config
	if err := wire.Decode(d.Config, &c); err != nil {
		return false, fmt.Errorf("stored configuration of %s: %w", d.Code, err)
	}
	if len(c.Keys) == len(keys) && HasKeys(c, keys) {
		return false, nil
	}
	d.ConfigVersion++
	c.Keys, c.Version = keys, d.ConfigVersion
	d.Config = wire.MustEncode(c)
	return true, nil
}

// seen notes what the device holds and how its keypad is.
func (t *statusIntake) seen() {
	st, generation := t.st, t.st.Generation
	if !namesGenerations(st) {
		generation = max(t.device.CodeGeneration, 1)
	}
	seen := cloud.DeviceSeen{DeviceID: t.x.id, LastSeenAt: t.at, StatusAt: t.at, StatusEpoch: st.Epoch, CodesHeld: &st.CodeList, HeldGeneration: &generation,
		Applied: st.ConfigVersion, Firmware: st.AgentVersion, StatusEnds: &[wire.Lanes]uint64{}}
	for l := range min(len(st.Ends), wire.Lanes) {
		seen.StatusEnds[l] = st.Ends[l].Last
	}
	program := cloud.DeviceProgram{Platform: cloud.DetailText(st.Platform)}
	if u := st.Update; u != nil {
		program.Updates, program.Trial, program.GivenUp, program.Reason = true, u.Trial, cloud.DetailText(u.GivenUp), cloud.DetailText(u.Reason)
	}
	seen.Program = &program
	var locked time.Time
	if st.TypedLocked > t.at.UnixNano() {
		locked = time.Unix(0, st.TypedLocked).UTC().Truncate(time.Millisecond)
		t.fault(cloud.DevKeypadLocked, "the keypad takes no typed codes until "+locked.Format(time.RFC3339))
	} else if !t.device.TypedLocked.IsZero() {
		t.ch.DeviceFaults = append(t.ch.DeviceFaults, cloud.DeviceException{DeviceID: t.x.id, Type: cloud.DevKeypadLocked, ClosedAt: t.at})
	}
	if !locked.Equal(t.device.TypedLocked) {
		seen.TypedLocked = &locked
	}
	t.ch.Seen = []cloud.DeviceSeen{seen}
}

// doors sets the present of the compartments that the status names. It reports whether the
// versions of their commands are behind what the device has taken: the database went back, and
// whether a door stands open that had stayed shut.
func (t *statusIntake) doors() (behind, freed bool, err error) {
	cells, err := t.v.Compartments(t.x.id)
	if err != nil {
		return false, false, err
	}
	was := make(map[uint]cloud.Compartment, len(cells))
	for _, c := range cells {
		was[c.Door] = c
	}
	raised := map[uint]uint64{}
	for _, ds := range t.st.Doors {
		if c, ok := was[ds.Door]; ok && t.isAbove(ds.Version, c.Version) {
			raised[ds.Door] = max(raised[ds.Door], ds.Version)
		}
	}
	if err := t.renumber(raised); err != nil {
		return false, false, err
	}
	for _, ds := range t.st.Doors {
		c, ok := was[ds.Door]
		p := cloud.DoorPresent{DeviceID: t.x.id, Door: ds.Door, DoorStatus: doorStatus(ds.State), Occupied: occupied(ds.Item), OpeningID: ds.OpeningID}
		if ok {
			p.DoorStatus = cloud.DoorStatusAfter(c.DoorStatus, p.DoorStatus)
			freed = freed || c.DoorStatus == cloud.DoorJammed && p.DoorStatus != c.DoorStatus
		}
		if p.Version = raised[ds.Door]; p.Version > 0 || ok && (c.DoorStatus != p.DoorStatus || c.OpeningID != p.OpeningID || !sameBool(c.Occupied, p.Occupied)) {
			t.ch.Doors = append(t.ch.Doors, p)
		}
	}
	return len(raised) > 0, freed, nil
}

// renumber gives orders that wait for the device versions above those that it holds for their
// doors, and notes these: it would refuse them as overtaken. Whatever it has obeyed already it
// knows by the id.
func (t *statusIntake) renumber(held map[uint]uint64) error {
	if len(held) == 0 {
		return nil
	}
	open, err := t.v.OpenCommands(t.x.id)
	if err != nil {
		return err
	}
	for _, c := range open {
		changed := false
		for door := range c.Versions {
			if held[door] > 0 && c.State != cloud.CommandAccepted {
				held[door]++
				c.Versions[door], changed = held[door], true
			}
		}
		if changed {
			t.ch.Commands = append(t.ch.Commands, c)
		}
	}
	return nil
}

// stores compares the device's store with what is kept of it. It reports
// whether the status speaks of the current epoch, and in all of its lanes as the
// cloud knows it or further on.
func (t *statusIntake) stores() (current bool, err error) {
	st := t.st
	known, err := t.v.FindEpoch(st.Epoch)
	if ignoreNotFound(err) != nil {
		return false, err
	}
	refuse := func(l wire.Lane, reason string) {
		t.refused = append(t.refused, wire.Ack{Epoch: st.Epoch, Lane: l, Next: t.lanes[l].Next, Head: t.lanes[l].Head, Refused: reason})
	}
	for l := range t.lanes {
		t.lanes[l], err = t.v.Lane(t.x.id, st.Epoch, wire.Lane(l))
		if errors.Is(err, cloud.ErrNotFound) {
			t.lanes[l] = cloud.LaneState{DeviceID: t.x.id, Epoch: st.Epoch, Lane: wire.Lane(l), Next: 1, Head: wire.FirstHead(st.Epoch, wire.Lane(l))}
		} else if err != nil {
			return false, err
		}
		if l < len(st.Ends) && t.isForked(wire.Lane(l)) {
			refuse(wire.Lane(l), wire.RefusedFork)
			t.fault(cloud.DevStoreFork, fmt.Sprintf("lane %d ends at %d, the cloud holds up to %d", l, st.Ends[l].Last, t.lanes[l].Next-1))
		}
	}
	if (known.DeviceID == 0 || known.DeviceID == t.x.id && known.Current) && len(t.refused) == 0 && t.isAhead() {
		refuse(wire.Settlement, wire.RefusedFork)
		for _, l := range t.lanes {
			t.refused[0].Holds = append(t.refused[0].Holds, l.Next)
		}
		t.fault(cloud.DevStoreFork, fmt.Sprintf("the device was acknowledged more than the records %d and %d that are stored: the database was restored", t.lanes[wire.Settlement].Next-1, t.lanes[wire.Telemetry].Next-1))
	}
	if t.x.upKey != nil && known.DeviceID == t.x.id && !known.Current && len(t.refused) == 0 {
		// Its batches are not answered: they may have been kept and sent again.
		refuse(wire.Settlement, wire.RefusedFork)
		t.fault(cloud.DevStoreFork, "a closed epoch goes on: "+st.Epoch.String())
	}
	t.unproven = t.unproven || t.x.upKey != nil && !t.proven && len(t.refused) > 0
	return known.DeviceID == t.x.id && known.Current && len(t.refused) == 0, nil
}

// isAhead reports whether the device was acknowledged records that are not stored, as
// after a restore from a backup. Of an agent that does not tell that, lane 0 says it,
// which loses no records that wait.
func (t *statusIntake) isAhead() bool {
	acked := t.st.Acked
	if len(acked) == 0 && len(t.st.Ends) > 0 && len(t.st.Backlog) > 0 && t.st.Backlog[0] <= t.st.Ends[0].Last {
		acked = []uint64{t.st.Ends[0].Last + 1 - t.st.Backlog[0]}
	}
	for l := range min(len(acked), len(t.lanes)) {
		if acked[l] > t.lanes[l].Next {
			return true
		}
	}
	return false
}

// complete reports whether the status tells all that lies in the cabinet, and
// the cloud holds every record that led to it.
func (t *statusIntake) complete() bool {
	ends := t.st.Ends
	return t.st.Snapshot > 0 && !t.st.Lost && len(ends) > int(wire.Settlement) && ends[wire.Settlement].Last+1 == t.lanes[wire.Settlement].Next
}

// plausible refuses numbers that no device can have reached, and that databases
// cannot hold.
func plausible(st *wire.Status) error {
	if st.ConfigVersion > maxVersion || st.CodeList > maxVersion || st.Generation > maxVersion {
		return fmt.Errorf("configuration %d, code list %d of generation %d", st.ConfigVersion, st.CodeList, st.Generation)
	}
	for _, d := range st.Doors {
		if d.Version > maxVersion {
			return fmt.Errorf("version %d of door %d", d.Version, d.Door)
		}
	}
	if st.Boot > maxNumber || st.Count > maxNumber {
		return fmt.Errorf("boot %d, status %d", st.Boot, st.Count)
	}
	if len(st.Contents) > wire.MaxDoors {
		return fmt.Errorf("contents of %d doors, the limit is %d", len(st.Contents), wire.MaxDoors)
	}
	for l, end := range st.Ends {
		if end.Last > maxNumber {
			return fmt.Errorf("lane %d ends at %d", l, end.Last)
		}
	}
	if len(st.Instance) > 64 || len(st.Echo) > 64 {
		return fmt.Errorf("instance of %d bytes, echo of %d bytes, the limit is 64", len(st.Instance), len(st.Echo))
	}
	return nil
}

// isForked reports whether a device's lane cannot be the one the cloud knows: it
// ends before what was stored when it spoke, or where that ends with another chain.
func (t *statusIntake) isForked(l wire.Lane) bool {
	end, known, next := t.st.Ends[l], t.lanes[l], t.lanes[l].Next
	if t.proven {
		next = t.asks.next[l]
	}
	return end.Last+1 < next || end.Last+1 == known.Next && end.Last > 0 && end.Head != known.Head
}

func sameBool(a, b *bool) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

// alternates reports A, then B, then A within the time: two agents, not one
// that restarted.
func alternates(seen []cloud.InstanceSeen, now string, at time.Time) bool {
	for i := len(seen) - 2; i >= 0; i-- {
		if seen[i].Instance == now && at.Sub(seen[i].At) <= duplicateWithin {
			return true
		}
	}
	return false
}

// doorStatus maps a door's state at the cabinet to the public one. Unknown is
// never shown as closed.
func doorStatus(state string) string {
	switch state {
	case wire.DoorLocked, wire.DoorSettling, wire.DoorOpening:
		return "closed"
	case wire.DoorOpen:
		return "open"
	}
	return "unknown"
}

func occupied(i wire.Item) *bool {
	if i == wire.ItemUnknown {
		return nil
	}
	v := i == wire.ItemPresent
	return &v
}

// fault keeps a device exception of its own.
func (s queue) fault(ctx context.Context, x *session, typ, detail string, at time.Time) {
	s.keepFault(ctx, x, cloud.DeviceException{DeviceID: x.id, Type: typ, Detail: cloud.DetailText(detail), OpenedAt: at, SeenAt: at})
}

func (s queue) keepFault(ctx context.Context, x *session, f cloud.DeviceException) {
	err := s.cfg.Store.Decide(ctx, x.id, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{DeviceFaults: []cloud.DeviceException{f}}}, nil
	})
	if err != nil && ctx.Err() == nil {
		s.log.Error("keep device exception", "device", x.code, "type", f.Type, "err", err)
	}
}

// maxVersion is more than any version or generation that the cloud gives reaches.
const maxVersion = 1 << 48

// mostAhead is how far above the seconds of the clock, which are above all numbers that the
// cloud gives, a number may be that is continued from. A hostile device may spend all below
// that; the one that takes its place counts on from there, more slowly than the clock.
const mostAhead = 1 << 32

// isAbove reports whether a number that the device names is above the cloud's, and is one
// to continue from.
func (t *statusIntake) isAbove(named, known uint64) bool {
	return named > known && named <= uint64(max(t.at.Unix(), 0))+mostAhead
}
