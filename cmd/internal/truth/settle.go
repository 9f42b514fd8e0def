package truth

import (
	"slices"
	"time"

	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

const (
	closeSlack = 3 * time.Second        // polls of an idle or noisy line, debounce
	startSlack = 100 * time.Millisecond // a program's start and its first reading of the time
	leftSlack  = 2 * time.Second        // a switch and the record of it
	longOpen   = 13 * time.Minute       // the longest door session with what follows it
)

// settlements judges every end of an opening that the journal holds.
func (j *judge) settlements(b *Cabinet) {
	ends := map[string]time.Time{}
	for _, r := range j.Cloud.Devices[b.Code].Records {
		var id string
		switch r.Kind {
		case wire.KindOpeningSettled:
			var body wire.OpeningSettled
			if wire.Decode(r.Body, &body) != nil {
				continue
			}
			id = body.OpeningID
			j.Settled++
			j.settlement(b, r, body)
		case wire.KindOpeningEnded:
			var body wire.OpeningEnded
			if wire.Decode(r.Body, &body) == nil {
				id = body.OpeningID
			}
		case wire.KindPickupCompleted:
			var body wire.PickupCompleted
			if wire.Decode(r.Body, &body) == nil {
				id = body.OpeningID
				j.Collected++
			}
		}
		if id == "" {
			continue
		}
		first, again := ends[id]
		if again && !b.lostBetween(first, b.at(r)) && !b.repeated(r.Boot) {
			j.find("twice", b, 0, b.at(r), "%s ended twice", id)
		}
		ends[id] = b.at(r)
	}
}

// lostBetween reports whether the cabinet lost its memory between two moments: an
// older copy of a store ends what it knows as running.
func (b *Cabinet) lostBetween(from, to time.Time) bool {
	if to.Before(from) {
		from, to = to, from
	}
	return slices.ContainsFunc(b.Boots, func(x Boot) bool { return x.Lost && within(x.Start, from, to) })
}

// repeated reports whether a start's number was given again by an older copy of the
// store: without a clock it cannot be said which of them wrote a record.
func (b *Cabinet) repeated(n uint64) bool {
	starts, lost := b.starts(n)
	return starts > 1 && lost
}

// starts counts the starts of a number, and reports whether the store was lost in one.
func (b *Cabinet) starts(n uint64) (count int, lost bool) {
	for _, x := range b.Boots {
		if x.N == n {
			count, lost = count+1, lost || x.Lost
		}
	}
	return count, lost
}

// forcedSeen is how long the polls of a noisy line in a session, and the debounce, take to show
// that a door was forced: no record can know of it sooner.
const forcedSeen = 500 * time.Millisecond

// forcedIn reports whether a door was forced in a stretch of time.
func (b *Cabinet) forcedIn(door uint, from, to time.Time) bool {
	return slices.ContainsFunc(b.Trouble, func(s Span) bool { return s.Door == door && s.What == force && within(s.At, from, to) })
}

// settlement: no door was open, and its times are what was seen.
func (j *judge) settlement(b *Cabinet, r wire.Record, s wire.OpeningSettled) {
	at := b.at(r)
	for _, d := range s.Doors {
		slack := startSlack
		if b.WallClock && b.begin(r.Boot).IsZero() {
			slack = closeSlack // by the cloud's clock, which may differ
		}
		if b.openAt(d.Door, at) && b.openAt(d.Door, at.Add(slack)) && !b.forcedIn(d.Door, at.Add(-forcedSeen), at) {
			j.find("open_settle", b, d.Door, at, "%s settled while the door was open", s.OpeningID)
		}
		if d.ClosedAt == 0 || r.Clock != wire.ClockSynced || j.clockWrong(b, d.Door, at) {
			continue
		}
		err := time.Duration(r.ErrMS)*time.Millisecond + closeSlack
		from, to := time.Unix(0, d.ClosedAt).Add(-err), time.Unix(0, d.ClosedAt).Add(err)
		if d.ClosedBefore != 0 {
			from, to = time.Unix(0, d.ClosedAfter).Add(-err), time.Unix(0, d.ClosedBefore).Add(err)
		}
		closed := slices.ContainsFunc(b.Facts, func(f board.Fact) bool { return f.Door == d.Door && f.Kind == board.HookIn && within(f.At, from, to) })
		if !closed {
			j.find("close_time", b, d.Door, at, "%s tells a close between %s and %s; the door did not close then", s.OpeningID, clockTime(from), clockTime(to))
		}
	}
}

// clockWrong reports whether the machine's clock was wrong, and no answer of the
// cloud had set the agent's yet, when a door closed that was settled at a moment,
// or when that was first read. Such a time is approximate, which its record says.
func (j *judge) clockWrong(b *Cabinet, door uint, settled time.Time) bool {
	i := slices.IndexFunc(b.Trouble, func(s Span) bool { return s.What == clock })
	if i < 0 {
		return false
	}
	closed := b.Trouble[i].At
	for _, f := range b.Facts {
		if f.Door == door && f.Kind == board.HookIn && !f.At.After(settled) {
			closed = f.At
		}
	}
	read := closed
	if b.blind(closed) {
		read = settled
	}
	for _, x := range b.Boots {
		if !x.End.IsZero() && x.End.Before(b.Trouble[i].At) {
			continue
		}
		wrong := Span{At: x.Start, Until: x.End}
		for _, r := range j.Cloud.Devices[b.Code].Records {
			if at := b.at(r); r.Boot == x.N && r.Clock == wire.ClockSynced && (wrong.Until.IsZero() || at.Before(wrong.Until)) && !at.Before(x.Start) {
				wrong.Until = at
			}
		}
		if wrong.touches(closed, read) {
			return true
		}
	}
	return false
}

// openAt reports whether a door physically stood open.
func (b *Cabinet) openAt(door uint, at time.Time) bool {
	open := false
	for _, f := range b.Facts {
		if f.At.After(at) {
			break
		}
		if f.Door == door && (f.Kind == board.Opened || f.Kind == board.Closed) {
			open = f.Kind == board.Opened && f.At.Before(at)
		}
	}
	return open
}

// records: everything that the agents kept is stored or named by a gap. A record that was
// being written when an agent was killed may be stored without having been
// counted. The end of a lost store's gap is unknown: what it held that had not
// been sent, and nothing else, is gone.
func (j *judge) records() {
	gone := uint64(0)
	for _, b := range j.Cabinets {
		for i, x := range b.Boots {
			if i > 0 && x.Lost {
				gone += b.Boots[i-1].Unsent
			}
		}
	}
	if have := uint64(j.Cloud.Audit.Stored + j.Cloud.Audit.Gaps); have+gone < j.Recorded {
		j.find("lost", nil, 0, time.Time{}, "%d records kept, %d stored, %d named by gaps, %d gone with lost stores", j.Recorded, j.Cloud.Audit.Stored, j.Cloud.Audit.Gaps, gone)
	}
}

// ends: nothing runs once everything was said.
func (j *judge) ends(b *Cabinet) {
	d := j.Cloud.Devices[b.Code]
	for _, o := range d.Running {
		j.find("running", b, 0, o.RequestedAt, "the cloud's opening %s (%s) has no end", o.ID, o.State)
	}
	for _, c := range d.Commands {
		j.find("running", b, 0, c.IssuedAt, "the command %s (%s) has no outcome: %s", c.ID, c.Kind, c.State)
	}
	for _, id := range b.Running {
		j.find("running", b, 0, time.Time{}, "the cabinet's opening %s has no end", id)
	}
}

// stretch is a time during which a door stood open; until is zero when it still
// does.
type stretch struct{ from, until time.Time }

func (b *Cabinet) openStretches(door uint) (out []stretch) {
	for _, f := range b.Facts {
		switch {
		case f.Door != door:
		case f.Kind == board.Opened:
			out = append(out, stretch{from: f.At})
		case f.Kind == board.Closed && len(out) > 0:
			out[len(out)-1].until = f.At
		}
	}
	return out
}

// openingLives is how long an opening waits for its door.
const openingLives = 30 * time.Minute

// lastOpened is when the door opened for the last time before a moment; that moment itself when
// it stood shut for longer than an opening waits.
func (b *Cabinet) lastOpened(door uint, at time.Time) time.Time {
	for _, s := range slices.Backward(b.openStretches(door)) {
		if s.from.After(at) {
			continue
		}
		if s.until.IsZero() || s.until.After(at.Add(-openingLives)) {
			return s.from
		}
		break
	}
	return at
}

// exceptions judges causes: each exception has one, and each cause that lasted
// has its exception.
func (j *judge) exceptions(b *Cabinet) {
	left := map[uint][]time.Time{}
	for _, r := range j.Cloud.Devices[b.Code].Records {
		if r.Kind != wire.KindExceptionOpened {
			continue
		}
		var e wire.Exception
		if wire.Decode(r.Body, &e) != nil {
			continue
		}
		j.Exceptions++
		at := b.at(r)
		switch e.Type {
		case wire.ExDoorLeftOpen:
			left[e.Door] = append(left[e.Door], at)
			if !b.hookOut(e.Door, at.Add(-closeSlack-leftSlack), at) {
				j.find("cause", b, e.Door, at, "door_left_open (%s), and its latch was in", e.Evidence)
			}
		case wire.ExItemMissing:
			if !slices.ContainsFunc(b.Facts, func(f board.Fact) bool { return f.Door == e.Door && f.Kind == board.ItemOut && !f.At.After(at) }) {
				j.find("cause", b, e.Door, at, "item_missing, and nothing had left the box")
			}
		case wire.ExDepositUnverified:
			if !b.Sensors && !b.troubled(e.Door, b.lastOpened(e.Door, at).Add(-openingLives), at) && !b.forcedIn(e.Door, at.Add(-forcedIn), at) {
				j.find("cause", b, e.Door, at, "deposit_unverified (%s) on a calm day", e.Evidence)
			}
		}
	}
	for door := range j.Cloud.Devices[b.Code].Cells {
		for _, s := range b.openStretches(door) {
			until := s.until
			if until.IsZero() {
				until = s.from.Add(longOpen)
			}
			if until.Sub(s.from) < longOpen || b.troubled(door, s.from, s.from.Add(longOpen)) {
				continue
			}
			if !slices.ContainsFunc(left[door], func(t time.Time) bool { return within(t, s.from, until) }) {
				j.find("silent", b, door, s.from, "open for %s without door_left_open", until.Sub(s.from).Round(time.Second))
			}
		}
	}
}

// hookOut reports whether a door's hook was out at any moment between two.
func (b *Cabinet) hookOut(door uint, from, to time.Time) bool {
	out := false
	for _, f := range b.Facts {
		if f.Door != door || f.Kind != board.HookOut && f.Kind != board.HookIn {
			continue
		}
		if f.At.After(to) {
			break
		}
		if out && f.At.After(from) {
			return true
		}
		out = f.Kind == board.HookOut
	}
	return out
}
