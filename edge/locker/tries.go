package locker

import (
	"slices"
	"time"

	"github.com/postern-io/postern/protocol/wire"
)

// Limits for wrong codes, of each budget.
const (
	wrongWindow = int64(10 * time.Minute)
	wrongLimit  = 5
	wrongLock   = int64(5 * time.Minute)
	wrongDay    = int64(24 * time.Hour)
	wrongPerDay = 30
)

// Budget is what wrong codes are counted against, so that a vandal at the keypad
// takes the cabinet neither from people who scan nor from staff.
type Budget string

// Budgets. A bad signature costs none.
const (
	BudgetTyped   Budget = "typed"   // 6 and 7 digits
	BudgetScanned Budget = "scanned" // whatever the scanner reads
	BudgetStaff   Budget = "staff"   // 8 digits, typed
)

// Budgets are the counters of a cabinet. They survive a start.
type Budgets struct {
	Typed, Scanned, Staff Tries
}

func (b *Budgets) of(name Budget) *Tries {
	switch name {
	case BudgetScanned:
		return &b.Scanned
	case BudgetStaff:
		return &b.Staff
	}
	return &b.Typed
}

// Of is one budget's counter; an unknown name is the typed one.
func (b Budgets) Of(name Budget) Tries { return *b.of(name) }

// Tries counts wrong codes. Its windows run by the time that the cabinet was awake.
// The time that it was not counts from a signed time on, before and after it: the
// machine's own clock, which a person with the machine may set, proves nothing.
type Tries struct {
	Wrong []Instant // of the last ten minutes, since the last lock
	Day   []Instant // of the last day, at most wrongPerDay
	Until Instant   // locked until, after five; zero when not
	Shut  Instant   // locked until, after thirty; zero when not
	Last  Instant
}

// Locked says until when, as mono, the budget is locked; 0 when it is not.
func (t Tries) Locked(now Now) int64 { return max(t.short(now), t.Long(now)) }

func (t Tries) short(now Now) int64 { return pending(t.Until, now) }

// Long is Locked for the lock after thirty wrong codes alone.
func (t Tries) Long(now Now) int64 { return pending(t.Shut, now) }

func pending(x Instant, now Now) int64 {
	age := now.age(x)
	if x == (Instant{}) || age >= 0 {
		return 0
	}
	return now.Mono - age
}

// age is how long ago a moment was, at least, by the boot's count or by signed
// times; negative for one that is still to come.
func (n Now) age(x Instant) int64 {
	age := n.Mono - x.Mono
	if proven, ok := n.provenAge(x); ok {
		age = max(age, proven)
	}
	return age
}

// passed is how long ago a moment that is over was at least: by the boot's own count or,
// across starts, by signed times alone. 0 when nothing proves it: the machine's own clock
// may have been set.
func (n Now) passed(x Instant) int64 {
	if x.Boot == n.Boot {
		return n.Mono - x.Mono
	}
	proven, _ := n.provenAge(x)
	return max(0, proven)
}

// provenAge is how long ago a moment was at least by signed times; not ok without them.
func (n Now) provenAge(x Instant) (age int64, ok bool) {
	proven := n.certain()
	if x.Clock != wire.ClockSynced || proven == 0 {
		return 0, false
	}
	return proven - x.Wall - ms(maxClockErrMS), true
}

// left is how many wrong codes the budget still bears.
func (t Tries) left(now Now) int {
	if t.Locked(now) != 0 {
		return 0
	}
	return min(wrongLimit-len(since(t.Wrong, now, wrongWindow)), wrongPerDay-len(since(t.Day, now, wrongDay)))
}

func since(list []Instant, now Now, window int64) []Instant {
	return slices.DeleteFunc(slices.Clone(list), func(x Instant) bool { return now.age(x) >= window })
}

// wrong counts one wrong code.
func (t Tries) wrong(now Now) Tries {
	at := now.instant(now.Mono)
	if t.short(now) == 0 {
		t.Until = Instant{}
	}
	if t.Long(now) == 0 {
		t.Shut = Instant{}
	}
	t.Wrong = append(since(t.Wrong, now, wrongWindow), at)
	t.Day = append(since(t.Day, now, wrongDay), at)
	t.Last = at
	if len(t.Wrong) >= wrongLimit {
		t.Until, t.Wrong = now.instant(now.Mono+wrongLock), nil
	}
	if len(t.Day) >= wrongPerDay {
		t.Shut = now.instant(now.Mono - now.age(t.Day[0]) + wrongDay)
	}
	return t
}

// How often the time that passes is kept while wrong codes count, so that a start goes on
// from there: a power cut loses no more of it.
const (
	awakeLocked  = int64(time.Minute)
	awakeCounted = int64(10 * time.Minute)
)

// rebased moves a counter into this boot, as if no time had passed since its last
// wrong code, or since the boot before is known to have been awake. Its moments keep the
// clock that they had.
func (t Tries) rebased(now Now, awake Instant) Tries {
	if t.Last == (Instant{}) {
		return t
	}
	end := t.Last.Mono
	if awake.Boot == t.Last.Boot {
		end = max(end, awake.Mono)
	}
	move := func(x Instant) Instant {
		if x == (Instant{}) {
			return x
		}
		x.Boot, x.Mono = now.Boot, now.Mono-(end-x.Mono)
		return x
	}
	all := func(list []Instant) (out []Instant) {
		for _, x := range list {
			out = append(out, move(x))
		}
		return out
	}
	t.Wrong, t.Day, t.Until, t.Shut = all(t.Wrong), all(t.Day), move(t.Until), move(t.Shut)
	t.Last = move(t.Last)
	return t
}

// startTries moves the counters into this boot.
func (d doors) startTries() {
	m := d.Meta
	b := Budgets{m.Budgets.Typed.rebased(d.now, m.Awake), m.Budgets.Scanned.rebased(d.now, m.Awake), m.Budgets.Staff.rebased(d.now, m.Awake)}
	if m.Tries == nil && b.Typed.Last == (Instant{}) && b.Scanned.Last == (Instant{}) && b.Staff.Last == (Instant{}) {
		return
	}
	m.Budgets, m.Tries, m.Awake = b, nil, d.now.instant(d.now.Mono)
	d.setMeta(m)
}

// awakeDue is when the time that has passed is to be kept, 0 when no wrong code counts.
func (s State) awakeDue(now Now) int64 {
	every := int64(0)
	for _, t := range []Tries{s.Meta.Budgets.Typed, s.Meta.Budgets.Scanned, s.Meta.Budgets.Staff} {
		switch {
		case t.Last == (Instant{}) || now.age(t.Last) >= wrongDay:
			continue
		case t.Locked(now) != 0:
			every = awakeLocked
		case every == 0:
			every = awakeCounted
		}
	}
	switch {
	case every == 0:
		return 0
	case s.Meta.Awake.Boot != now.Boot: // the first one is being counted
		return now.Mono
	}
	return s.Meta.Awake.Mono + every
}

// keepAwake keeps the time that has passed, for the next start.
func (d doors) keepAwake() {
	if due := d.awakeDue(d.now); due != 0 && d.now.Mono >= due {
		m := d.Meta
		m.Awake = d.now.instant(d.now.Mono)
		d.setMeta(m)
	}
}

// wrong counts a wrong code against a budget.
func (d keypad) wrong(name Budget) {
	m := d.Meta
	t := m.Budgets.of(name)
	*t = t.wrong(d.now)
	d.present = d.present || t.Long(d.now) != 0
	d.setMeta(m)
}

// resetTries lifts every lock and forgets wrong codes: staff is at the cabinet, or
// the cloud says so.
func (d *draft) resetTries() {
	m := d.Meta
	m.Budgets = Budgets{}
	d.setMeta(m)
	d.present = true
}

// formerTries is what was kept when there was one counter for everything.
type formerTries struct {
	Wrong    []Instant
	Until    Instant
	Day      Instant // when the day's count began
	DayCount int
	Closed   bool // the day's limit was reached
	Last     Instant
}

// budgets takes the former counter over as that of typed codes: one that was
// closed until staff came is locked until 24 h after its first wrong code.
func (f formerTries) budgets() Budgets {
	t := Tries{Wrong: f.Wrong, Until: f.Until, Last: f.Last}
	for i := range min(f.DayCount, wrongPerDay) {
		at := f.Last // not later than it was
		if i == 0 {
			at = f.Day
		}
		t.Day = append(t.Day, at)
	}
	if f.Closed {
		t.Shut = f.Day
		t.Shut.Mono, t.Shut.Wall = f.Day.Mono+wrongDay, f.Day.Wall+wrongDay
	}
	return Budgets{Typed: t}
}
