package device

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// batches stores a run of batches of one device and answers them.
func (s queue) batches(ctx context.Context, x *session, run []incoming) {
	decoded := make([]parsed, len(run))
	for i, in := range run {
		decoded[i] = parse(in)
	}
	bytes := 0
	for _, in := range run {
		bytes += len(in.payload)
	}
	var bad []unsigned
	if x.upKey != nil {
		decoded, bad = checkSigned(x, decoded)
	}
	room := s.evidence.room(x.id, time.Now())
	var t *intake
	err := s.cfg.Store.Decide(ctx, x.id, func(v cloud.View) (*cloud.Changes, error) {
		var err error
		t, err = s.newIntake(v, x)
		if err != nil {
			return nil, err
		}
		t.asideRoom, t.unsigned = room, slices.Clone(bad)
		for _, p := range decoded {
			if err := t.decideBatch(p); err != nil {
				return nil, err
			}
		}
		return t.finish()
	})
	if err != nil {
		s.flow.drop(bytes)
	} else {
		s.flow.committed(bytes, t.records, time.Now())
		s.evidence.spend(x.id, t.aside)
	}
	switch {
	case errors.Is(err, cloud.ErrStale):
		return // taken over, or stored by another node: no receipt, the agent asks again
	case err != nil:
		if ctx.Err() == nil {
			s.log.Error("store batches", "device", x.code, "batches", len(run), "err", err)
		}
		return
	}
	s.Metrics.Batches.Add(uint64(t.stored))
	s.Metrics.Records.Add(uint64(t.records))
	s.Metrics.Repeats.Add(uint64(t.repeats))
	s.Metrics.Holes.Add(uint64(t.holes))
	s.Metrics.Refused.Add(uint64(t.refused))
	s.Metrics.Unknown.Add(uint64(t.unknown))
	s.Metrics.Problems.Add(uint64(t.problems))
	s.Metrics.BadSignatures.Add(uint64(len(t.unsigned)))
	x.behaved(t.refused > 0, t.stored > 0)
	for _, a := range t.acks {
		s.acknowledge(x, a.ack, a.records, a.now)
	}
}

// parsed is a payload, read as far as that went.
type parsed struct {
	incoming
	batch   *wire.Batch
	records []wire.Record // nil body and zero kind where unreadable
	err     error
}

func parse(in incoming) parsed {
	p := parsed{incoming: in}
	p.batch, p.err = wire.DecodeBatch(in.payload)
	if p.err != nil {
		return p
	}
	p.records = make([]wire.Record, len(p.batch.Records))
	for i, raw := range p.batch.Records {
		r, err := wire.DecodeRecord(raw)
		if err != nil {
			r = wire.Record{}
		}
		p.records[i] = r
	}
	return p
}

type pendingAck struct {
	ack     wire.Ack
	records int
	now     bool // brought nothing new: answered at once
}

// intake is one transaction's worth of batches. It is built inside the
// decision and thrown away when that is run again.
type intake struct {
	s      *core
	v      cloud.View
	x      *session
	device cloud.Device
	work   Work
	ch     cloud.Changes

	epoch   cloud.Epoch // current; zero when none
	lanes   map[laneKey]*lane
	gaps    []cloud.GapRange // stored by this transaction
	journal []cloud.JournalBatch
	acks    []pendingAck

	stored, records, repeats, holes, refused, unknown, problems int

	begun            int // epochs of this transaction
	asideRoom, aside int // how many batches may be kept aside, and were

	unsigned []unsigned // batches that the device's key did not sign, or whose records it did not
}

type laneKey struct {
	epoch wire.Epoch
	lane  wire.Lane
}

type lane struct {
	cloud.LaneState
	from uint64 // stored next, 0 when there is no row
}

func (s *core) newIntake(v cloud.View, x *session) (*intake, error) {
	d, err := v.Device(x.id)
	if err != nil {
		return nil, fmt.Errorf("read device %s: %w", x.code, err)
	}
	t := &intake{s: s, v: v, x: x, device: d, lanes: map[laneKey]*lane{}}
	t.ch.Generation = x.generation
	if t.epoch, err = v.CurrentEpoch(x.id); ignoreNotFound(err) != nil {
		return nil, err
	}
	return t, nil
}

func (t *intake) lane(e wire.Epoch, l wire.Lane) (*lane, error) {
	k := laneKey{e, l}
	if p, ok := t.lanes[k]; ok {
		return p, nil
	}
	st, err := t.v.Lane(t.x.id, e, l)
	p := &lane{LaneState: st, from: st.Next}
	if errors.Is(err, cloud.ErrNotFound) {
		p.LaneState = cloud.LaneState{DeviceID: t.x.id, Epoch: e, Lane: l, Next: 1, Head: wire.FirstHead(e, l)}
	} else if err != nil {
		return nil, err
	}
	t.lanes[k] = p
	return p, nil
}

func (t *intake) fault(typ, detail string, at time.Time) {
	t.ch.DeviceFaults = append(t.ch.DeviceFaults, cloud.DeviceException{DeviceID: t.x.id, Type: typ, Detail: cloud.DetailText(detail), OpenedAt: at, SeenAt: at})
}

// refuse keeps a batch aside as evidence, as long as there is room for more of
// that, and answers it.
func (t *intake) refuse(p parsed, b wire.Batch, reason, fault, detail string) error {
	t.refused++
	t.fault(fault, detail, p.at)
	if t.aside < t.asideRoom {
		t.aside++
		t.ch.Batches = append(t.ch.Batches, cloud.JournalBatch{DeviceID: t.x.id, Epoch: b.Epoch, Lane: b.Lane, First: b.First, Count: len(b.Records),
			Bytes: p.payload, Head: b.Head, ReceivedAt: p.at, Aside: reason})
	}
	ack := wire.Ack{Epoch: b.Epoch, Lane: b.Lane, Next: 1, Refused: reason, RefusedFirst: b.First}
	if b.Lane < wire.Lanes {
		ack.Head = wire.FirstHead(b.Epoch, b.Lane)
	}
	if reason == wire.RefusedBadBatch && t.epoch.Epoch == b.Epoch && b.Lane < wire.Lanes {
		l, err := t.lane(b.Epoch, b.Lane)
		if err != nil {
			return err
		}
		ack.Next, ack.Head = l.Next, l.Head
	}
	t.acks = append(t.acks, pendingAck{ack: ack, now: true})
	return nil
}

// decideBatch decides what becomes of one batch.
func (t *intake) decideBatch(p parsed) error {
	if p.err != nil {
		return t.unreadable(p)
	}
	b := p.batch
	var known cloud.Epoch
	var err error
	if b.Epoch == t.epoch.Epoch {
		known = t.epoch
	} else {
		known, err = t.v.FindEpoch(b.Epoch)
	}
	switch {
	case err == nil && known.DeviceID != t.x.id:
		return t.refuse(p, *b, wire.RefusedEpochConflict, cloud.DevEpochConflict, "an epoch of another device: "+b.Epoch.String())
	case err == nil && b.Epoch != t.epoch.Epoch && t.x.upKey != nil:
		t.repeats++ // kept and sent again; a store that was rolled back is found by its status
		return nil
	case err == nil && b.Epoch != t.epoch.Epoch:
		return t.refuse(p, *b, wire.RefusedFork, cloud.DevStoreFork, "a closed epoch goes on: "+b.Epoch.String())
	case err != nil && !errors.Is(err, cloud.ErrNotFound):
		return err
	case err != nil && b.Epoch != t.epoch.Epoch:
		if b.First != 1 || t.x.upKey != nil && t.device.StatusEpoch != b.Epoch {
			return t.hole(b.Epoch, b.Lane) // an epoch is begun by a status
		}
		if t.x.upKey != nil && !fitsAlone(b) {
			t.unsigned = append(t.unsigned, newUnsigned("batch", "the records do not fit the signed head", p.incoming))
			return nil
		}
		if ok, err := t.mayBegin(p.at); err != nil {
			return err
		} else if !ok {
			t.postpone(p)
			return nil
		}
		t.begin(p)
	}
	l, err := t.lane(b.Epoch, b.Lane)
	if err != nil {
		return err
	}
	if b.First > l.Next {
		ok, err := t.jump(l, b.First)
		if err != nil {
			return err
		}
		if !ok {
			return t.hole(b.Epoch, b.Lane)
		}
	}
	same, err := t.sameAsStored(l, b)
	if err != nil {
		return err
	}
	if !same && t.x.upKey != nil {
		t.misfit(p, l, fmt.Sprintf("lane %d: record %d and on differ from what is stored", b.Lane, b.First))
		return nil
	}
	if !same {
		return t.refuse(p, *b, wire.RefusedFork, cloud.DevStoreFork, fmt.Sprintf("lane %d: record %d and on differ from what was stored", b.Lane, b.First))
	}
	if b.Last() < l.Next {
		t.repeats++
		t.acks = append(t.acks, pendingAck{ack: wire.Ack{Epoch: b.Epoch, Lane: b.Lane, Next: l.Next, Head: l.Head}, now: true})
		return nil
	}
	skip := int(l.Next - b.First)
	head := l.Head
	for _, raw := range b.Records[skip:] {
		head = head.Next(raw)
	}
	if head != b.Head && t.x.upKey != nil {
		t.misfit(p, l, fmt.Sprintf("lane %d: the records up to %d do not fit the signed head", b.Lane, b.Last()))
		return nil
	}
	if head != b.Head {
		return t.refuse(p, *b, wire.RefusedFork, cloud.DevStoreFork, fmt.Sprintf("lane %d: the chain differs after record %d", b.Lane, b.Last()))
	}
	return t.store(p, l, skip, head)
}

// unreadable refuses a batch that cannot be read. That of a device with a key is
// refused only when it is what the device sent: its records follow what is kept
// and fit its head. Otherwise a change on the way would make the device
// set a sound record aside.
func (t *intake) unreadable(p parsed) error {
	if t.x.upKey != nil {
		f, _ := wire.PeekFrame(p.payload) // it did verify
		l, err := t.lane(f.Epoch, f.Lane)
		if err != nil {
			return err
		}
		head := l.Head
		for _, raw := range f.Records {
			head = head.Next(raw)
		}
		if f.First != l.Next || head != f.Head {
			t.misfit(p, l, "the records do not fit the signed head")
			return nil
		}
	}
	sum := sha256.Sum256(p.payload)
	return t.refuse(p, peek(p.payload), wire.RefusedBadBatch, cloud.DevBadBatch, fmt.Sprintf("%v (%d bytes, SHA-256 %x)", p.err, len(p.payload), sum))
}

// peek reads what it can of a batch that cannot be taken, so that the answer
// names it. Absent members stay zero.
func peek(payload []byte) wire.Batch {
	e, l, first, _ := wire.PeekBatch(payload)
	return wire.Batch{Epoch: e, Lane: l, First: first}
}

// begin makes the batch's epoch the current one and closes the old.
func (t *intake) begin(p parsed) {
	b := p.batch
	t.begun++
	prev := wire.Epoch{}
	if b.PrevEpoch != nil {
		prev = *b.PrevEpoch
	}
	if old := t.epoch; !old.Epoch.IsZero() {
		if !prev.IsZero() && prev != old.Epoch {
			if e, err := t.v.FindEpoch(prev); err == nil && e.DeviceID == t.x.id {
				t.fault(cloud.DevStoreFork, "a new epoch replaces one that was closed: "+prev.String(), p.at)
			}
		}
		old.Current, old.ClosedAt = false, p.at
		t.ch.Epochs = append(t.ch.Epochs, old)
	}
	t.epoch = cloud.Epoch{DeviceID: t.x.id, Epoch: b.Epoch, Prev: prev, Current: true, OpenedAt: p.at}
	t.ch.Epochs = append(t.ch.Epochs, t.epoch)
}

// hole answers a batch that starts behind what is stored.
func (t *intake) hole(e wire.Epoch, n wire.Lane) error {
	t.holes++
	ack := wire.Ack{Epoch: e, Lane: n, Next: 1, Head: wire.FirstHead(e, n), ResendFrom: 1}
	if e == t.epoch.Epoch {
		l, err := t.lane(e, n)
		if err != nil {
			return err
		}
		ack.Next, ack.Head, ack.ResendFrom = l.Next, l.Head, l.Next
	}
	t.acks = append(t.acks, pendingAck{ack: ack, now: true})
	return nil
}

// jump moves lane 1 across gaps that cover everything up to first without a
// hole, and goes on from the last gap's head.
func (t *intake) jump(l *lane, first uint64) (bool, error) {
	if l.Lane != wire.Telemetry {
		return false, nil
	}
	stored, err := t.v.Gaps(t.x.id, l.Epoch, l.Lane, l.Next)
	if err != nil {
		return false, err
	}
	next, head := l.Next, l.Head
	for next < first {
		moved := false
		for _, g := range append(stored, t.gaps...) {
			if g.Epoch == l.Epoch && g.Lane == l.Lane && g.First <= next && g.Last >= next && g.Last < first && g.Head != (wire.Head{}) {
				next, head, moved = g.Last+1, g.Head, true
			}
		}
		if !moved {
			break
		}
	}
	if next != first {
		return false, nil
	}
	l.Next, l.Head = next, head
	return true, nil
}

// sameAsStored compares the part of a batch that is stored already with the
// journal. Records that a gap names are not there to compare.
func (t *intake) sameAsStored(l *lane, b *wire.Batch) (same bool, err error) {
	if b.First >= l.Next {
		return true, nil
	}
	last := min(b.Last(), l.Next-1)
	rows, err := t.v.Journal(t.x.id, b.Epoch, b.Lane, b.First, last)
	if err != nil {
		return false, err
	}
	for _, j := range append(rows, t.journal...) {
		if j.Epoch != b.Epoch || j.Lane != b.Lane {
			continue
		}
		records, err := JournalRecords(j)
		if err != nil {
			return false, err
		}
		for i, raw := range records {
			n := j.First + uint64(i)
			if n >= b.First && n <= last && !bytes.Equal(raw, b.Records[n-b.First]) {
				return false, nil
			}
		}
	}
	return true, nil
}

// JournalRecords are the records that a journal row stands for: those of its
// payload from the row's First on.
func JournalRecords(j cloud.JournalBatch) ([]wire.Raw, error) {
	b, err := wire.DecodeBatch(j.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read journal of device %d, lane %d, record %d: %w", j.DeviceID, j.Lane, j.First, err)
	}
	skip := int(j.First - b.First)
	if j.First < b.First || skip+j.Count > len(b.Records) {
		return nil, fmt.Errorf("journal of device %d, lane %d, record %d does not hold what it should", j.DeviceID, j.Lane, j.First)
	}
	return b.Records[skip : skip+j.Count], nil
}

// store takes the new records of a batch: journal row, lane position, and what
// each of them means.
func (t *intake) store(p parsed, l *lane, skip int, head wire.Head) error {
	b := p.batch
	row := cloud.JournalBatch{DeviceID: t.x.id, Epoch: b.Epoch, Lane: b.Lane, First: b.First + uint64(skip), Count: len(b.Records) - skip,
		Bytes: p.payload, Head: head, ReceivedAt: p.at}
	t.ch.Batches = append(t.ch.Batches, row)
	t.journal = append(t.journal, row)
	for i := skip; i < len(b.Records); i++ {
		if err := t.record(p, b.First+uint64(i), p.records[i], b.Records[i]); err != nil {
			return err
		}
	}
	l.Next, l.Head = b.Last()+1, head
	t.stored++
	t.records += row.Count
	t.acks = append(t.acks, pendingAck{ack: wire.Ack{Epoch: b.Epoch, Lane: b.Lane, Next: l.Next, Head: l.Head}, records: row.Count})
	return nil
}

// record asks what one stored record means. A record that cannot be read, or
// refers to what is not the device's, is stored all the same.
func (t *intake) record(p parsed, seq uint64, r wire.Record, raw wire.Raw) error {
	if r.Kind == 0 {
		t.problems++
		t.fault(cloud.DevBadBatch, fmt.Sprintf("lane %d: record %d cannot be read (%d bytes)", p.batch.Lane, seq, len(raw)), p.at)
		return nil
	}
	if !r.Kind.IsKnown() {
		t.unknown++
		return nil
	}
	if !placed(r.Kind) {
		return nil
	}
	r.Body = wire.Clean(r.Body) // the journal has it as it came
	at, approximate := place(p.batch, r, t.device.LastPlaced, p.at)
	var earliest, latestAt time.Time
	if approximate {
		earliest, latestAt = bounds(p.batch.Lane, at, t.device.LastPlaced, newest(p.batch, r, p.at))
	}
	t.device.LastPlaced = latest(t.device.LastPlaced, at)
	if t.work == nil {
		t.work = t.s.cfg.Meaning.Begin(t.v, t.device, p.at)
	}
	problem, err := "", error(nil)
	switch r.Kind {
	case wire.KindGap:
		problem, err = t.gap(r, at)
	case wire.KindConfigApplied:
		var c wire.ConfigApplied
		if wire.Decode(r.Body, &c) != nil || c.Version > maxNumber {
			problem = cloud.DevBadBatch
			break
		}
		if c.Result == wire.ResultOK {
			t.ch.Seen = append(t.ch.Seen, cloud.DeviceSeen{DeviceID: t.x.id, Applied: c.Version})
		}
		problem, err = t.work.Record(Record{Record: r, Lane: p.batch.Lane, Seq: seq, OccurredAt: at, Approximate: approximate})
	default:
		problem, err = t.work.Record(Record{Record: r, Lane: p.batch.Lane, Seq: seq, OccurredAt: at, Approximate: approximate, Earliest: earliest, Latest: latestAt,
			Present: t.device.StatusEpoch != p.batch.Epoch || seq > t.device.StatusEnds[p.batch.Lane]})
	}
	if problem != "" {
		t.problems++
		t.fault(problem, fmt.Sprintf("%s, lane %d: record %d", r.Kind, p.batch.Lane, seq), p.at)
	}
	return err
}

// maxNumber is more than any true sequence or version number, and what databases
// can hold.
const maxNumber = 1 << 62

// gap stores a range that will never come. The cloud may hold part of it: what
// is missing is what it lacks.
func (t *intake) gap(r wire.Record, at time.Time) (problem string, err error) {
	var g wire.Gap
	if wire.Decode(r.Body, &g) != nil || g.Lane >= wire.Lanes || g.First > maxNumber || g.Last > maxNumber {
		return cloud.DevBadBatch, nil
	}
	if e, err := t.v.FindEpoch(g.Epoch); err == nil && e.DeviceID != t.x.id {
		return cloud.DevForeignReference, nil
	} else if ignoreNotFound(err) != nil {
		return "", err
	}
	if g.First > 0 && !g.Epoch.IsZero() {
		l, err := t.lane(g.Epoch, g.Lane)
		if err != nil {
			return "", err
		}
		row := cloud.GapRange{DeviceID: t.x.id, Epoch: g.Epoch, Lane: g.Lane, First: g.First, Last: g.Last, Reason: g.Reason}
		if from := max(g.First, l.Next); g.Last >= from {
			row.Missing = g.Last - from + 1
		}
		if g.HeadAfter != nil {
			row.Head = *g.HeadAfter
		}
		if err := t.known(&row); err != nil {
			return "", err
		}
		t.gaps = append(t.gaps, row)
		t.ch.Gaps = append(t.ch.Gaps, row)
	}
	if g.Reason == wire.GapStoreRolledBack && t.x.upKey != nil {
		// It may have found that by a receipt, before a status could prove it.
		t.fault(cloud.DevStoreFork, "the device has found its store forked or rolled back: "+g.Epoch.String(), at)
	}
	if g.Reason == wire.GapStoreCreated || g.Reason == wire.GapStoreDamaged || g.Reason == wire.GapStoreRolledBack {
		return "", t.work.StoreLost(at)
	}
	return "", nil
}

// known keeps what was counted as missing when a gap record comes again under
// another epoch: by then the lane may have moved across the gap.
func (t *intake) known(row *cloud.GapRange) error {
	stored, err := t.v.Gaps(row.DeviceID, row.Epoch, row.Lane, row.First)
	if err != nil {
		return err
	}
	for _, g := range append(stored, t.gaps...) {
		if g.Epoch == row.Epoch && g.Lane == row.Lane && g.First == row.First && g.Last == row.Last {
			row.Missing = max(row.Missing, g.Missing)
		}
	}
	return nil
}

// finish collects the changes. Where nothing was the device's own word there is
// only the exception.
func (t *intake) finish() (*cloud.Changes, error) {
	if n := len(t.unsigned); n > 0 {
		t.ch.DeviceFaults = append(t.ch.DeviceFaults, t.unsigned[n-1].fault(t.x.id, n))
		if t.stored+t.repeats+t.holes+t.refused == 0 {
			return &t.ch, nil
		}
	}
	for _, l := range t.lanes {
		if l.Next != max(l.from, 1) || l.from == 0 && l.Epoch == t.epoch.Epoch {
			t.ch.Lanes = append(t.ch.Lanes, cloud.LaneMove{From: l.from, To: l.LaneState})
		}
	}
	if t.work != nil {
		if err := t.work.Finish(&t.ch); err != nil {
			return nil, err
		}
	}
	t.ch.Seen = append(t.ch.Seen, cloud.DeviceSeen{DeviceID: t.x.id, LastSeenAt: time.Now().UTC(), LastPlaced: t.device.LastPlaced})
	return &t.ch, nil
}
