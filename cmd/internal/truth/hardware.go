package truth

import (
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

// Replacement is an exchange of a cabinet's hardware.
type Replacement struct {
	Cabinet     string
	At, Started time.Time       // the former was cut off; the new one started
	Inside      map[uint]string // what the cloud knew to lie inside at At: door to delivery number
}

// Stray is hardware that was cut off and is switched on again.
type Stray struct {
	Cabinet, What   string // replaced, stolen
	From, Until     time.Time
	Tried, Accepted int // connections to the broker, and those that it accepted
}

// Clear is a compartment that staff have emptied and declared empty.
type Clear struct {
	Cabinet  string
	Door     uint
	At       time.Time
	Packages []string // tracking numbers that counted as deposited there until then
}

// Reset is a command that lifts the locks of a keypad.
type Reset struct{ Cabinet, CommandID string }

// strays: hardware that was cut off has no way in.
func (j *judge) strays() {
	for _, s := range j.Strays {
		if s.Accepted > 0 {
			j.Findings = append(j.Findings, Finding{Rule: "cut_off", Cabinet: s.Cabinet, At: s.From, Text: s.What + " hardware was let in"})
		}
	}
}

// replacements: new hardware knows what lay inside, where nothing has opened the
// door since, staff have not declared it empty, and no item sensor sees an empty box.
func (j *judge) replacements(b *Cabinet) {
	for _, r := range j.Replaced {
		if r.Cabinet != b.Code {
			continue
		}
		for door, number := range r.Inside {
			moved := slices.ContainsFunc(b.Facts, func(f board.Fact) bool {
				return f.Door == door && f.Kind == board.Opened && f.At.After(r.At.Add(-longOpen))
			}) ||
				b.openAt(door, r.At) || j.mayForget(b, door, r.At) || b.Sensors && len(b.items()[door]) == 0
			if !moved && b.Contents[door] != number && !j.asked(b, door, r.At) {
				j.find("kept", b, door, r.Started, "%s lay there when the hardware was replaced, and the cabinet holds %q", number, b.Contents[door])
			}
		}
	}
}

// asked reports whether staff are asked to look into a compartment of a cabinet that was
// stolen before a moment: a theft ends the codes of what lay there, and new hardware is
// given no list of it.
func (j *judge) asked(b *Cabinet, door uint, before time.Time) bool {
	c := j.Cloud.Devices[b.Code].Cells[door]
	return c.OutOfUse() && slices.ContainsFunc(j.Strays, func(s Stray) bool { return s.Cabinet == b.Code && s.What == "stolen" && s.From.Before(before) })
}

// mayForget reports whether the script made a cabinet forget a door, or cut it off
// as stolen, since a moment.
func (j *judge) mayForget(b *Cabinet, door uint, since time.Time) bool {
	return slices.ContainsFunc(b.Trouble, func(s Span) bool { return s.What == forgot && s.Door == door && s.touches(since, s.At) }) ||
		slices.ContainsFunc(j.Cleared, func(c Clear) bool { return c.Cabinet == b.Code && c.Door == door && c.At.After(since) }) ||
		slices.ContainsFunc(j.Strays, func(s Stray) bool { return s.Cabinet == b.Code && s.What == "stolen" && s.Until.After(since) })
}

// clears: what staff took out of a compartment counts as inside no more, unless it
// was put in once more.
func (j *judge) clears() {
	for _, c := range j.Cleared {
		i := slices.IndexFunc(j.Cabinets, func(b Cabinet) bool { return b.Code == c.Cabinet })
		if i < 0 {
			continue
		}
		b := &j.Cabinets[i]
		for _, name := range c.Packages {
			if slices.ContainsFunc(b.Facts, func(f board.Fact) bool { return f.Kind == board.ItemIn && f.Item == name && f.At.After(c.At) }) {
				continue
			}
			for _, d := range j.Cloud.Devices[b.Code].Deliveries {
				for _, p := range d.Packages {
					if p.TrackingNumber == name && (p.Status == cloud.PackageInCompartment || p.Status == cloud.PackagePickedUp) {
						j.find("cleared", b, c.Door, c.At, "%s was taken out by staff, and is %s", name, p.Status)
					}
				}
			}
		}
	}
}

// Limits of wrong codes (lockers-devices 3).
const (
	wrongLimit  = 5
	wrongWindow = 10 * time.Minute
	wrongLock   = 5 * time.Minute
	wrongPerDay = 30
)

// keypad judges which codes a cabinet looked at. A budget bears five wrong codes
// within ten minutes; then no code of it is looked at for five minutes, unless staff
// lift that. Five wrong ones within less than the lock, and then a sixth, are too
// many; a lock without five is none.
func (j *judge) keypad(b *Cabinet) {
	var resets []time.Time
	for _, r := range j.Cloud.Devices[b.Code].Records {
		var o wire.CommandOutcome
		if r.Kind == wire.KindCommandOutcome && wire.Decode(r.Body, &o) == nil && o.Outcome == wire.OutcomeDone &&
			slices.ContainsFunc(j.Resets, func(x Reset) bool { return x.Cabinet == b.Code && x.CommandID == o.CommandID }) {
			resets = append(resets, b.at(r))
		}
	}
	for _, a := range j.Acts {
		// A right code of staff lifts all locks, also where the door is not opened for it.
		if a.Cabinet == b.Code && a.Code == wire.CodeStaff && !slices.Contains([]string{wire.CodeUnknown, wire.CodeLockedOut, wire.CodeNotActive, wire.CodeExpired}, a.Outcome) {
			resets = append(resets, j.until(a))
		}
	}
	for _, scanned := range []bool{false, true} {
		var wrong []time.Time // since the last reset, those that may be
		for _, a := range j.Acts {
			if a.Cabinet != b.Code || a.Code == "" || a.Code == wire.CodeStaff || a.Scanned != scanned {
				continue
			}
			at := j.until(a)
			if a.Outcome == wire.CodeLockedOut {
				j.locked(b, a, wrong, resets)
			}
			if a.Outcome == wire.CodeUnknown || a.Outcome == "" && !a.OK {
				wrong = append(wrong, at)
			}
			if a.Outcome != wire.CodeUnknown {
				continue
			}
			from := at.Add(-wrongLock + time.Second)
			counted := 0 // of them, within the lock before this one, answered
			for _, x := range j.Acts {
				if x.Cabinet == b.Code && x.Code != wire.CodeStaff && x.Scanned == scanned && x.Outcome == wire.CodeUnknown && within(j.until(x), from, at) {
					counted++
				}
			}
			lifted := slices.ContainsFunc(resets, func(t time.Time) bool { return within(t, from, at.Add(b.slack())) })
			if counted > wrongLimit && !lifted && !b.lostBetween(from, at) {
				j.find("keypad", b, 0, at, "wrong code %d within %s was looked at", counted, wrongLock)
			}
		}
	}
}

// locked: there were five wrong codes, or thirty in a day, and nothing lifted the
// lock since. A start without a clock makes a lock longer.
func (j *judge) locked(b *Cabinet, a Act, wrong, resets []time.Time) {
	since := a.At.Add(-wrongWindow - wrongLock - time.Second)
	if slices.ContainsFunc(b.Boots, func(x Boot) bool { return within(x.Start, since, a.Until) }) {
		since = a.At.Add(-24 * time.Hour)
	}
	day := a.At.Add(-24 * time.Hour)
	for _, t := range resets {
		if t.Before(a.At.Add(-b.slack())) && t.After(day) {
			day = t
		}
	}
	if day.After(since) {
		since = day
	}
	recent := func(from time.Time) (n int) {
		for _, t := range wrong {
			if t.After(from) {
				n++
			}
		}
		return n
	}
	if n := recent(since); n < wrongLimit && recent(day) < wrongPerDay {
		j.find("keypad", b, 0, a.At, "the keypad is locked after %d wrong codes", n)
	}
}
