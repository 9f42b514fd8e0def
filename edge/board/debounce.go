package board

import "time"

const (
	flapChanges = 6 // more in flapWindow is a sensor that cannot be trusted
	flapWindow  = 10 * time.Second
	flapUneasy  = 3 * time.Second // without any stable state: flaps faster than the debounce time
)

// debounce turns polls of one switch into a state. A value becomes the state
// after at least need equal polls that span hold with no other value between.
// More than six changes in 10 s, or 3 s without a stable value, freeze the state
// until the switch has been quiet for 10 s. The zero value knows nothing.
type debounce struct {
	known bool
	value bool

	seen  bool // cand and since are set
	cand  bool // value of the last poll
	since time.Time
	polls int

	steady bool      // the last polls alone prove the state, or it is frozen
	uneasy time.Time // first poll that differed from the state; zero when it agrees
	moves  int       // raw changes since uneasy
	frozen bool
	last   [flapChanges]time.Time // times of the latest changes, the newest last
}

// step takes one poll. changed says that known, value or frozen did; since is
// then the time of the first of the equal polls. edge says that the raw value moved. need
// is two or more.
func (d *debounce) step(v bool, now time.Time, need int, hold time.Duration) (changed, edge bool) {
	if !d.seen || v != d.cand {
		edge = d.seen
		d.seen, d.cand, d.since, d.polls = true, v, now, 1
		d.moves++
	} else {
		d.polls++
	}
	stable := d.polls >= need && now.Sub(d.since) >= hold
	if d.frozen {
		if d.polls < 2 || now.Sub(d.since) < flapWindow {
			return false, edge
		}
		*d = debounce{known: true, value: v, seen: true, cand: v, since: d.since, polls: d.polls, steady: true}
		return true, edge
	}
	changed = d.settle(v, now, stable)
	d.steady = stable || d.frozen
	return changed, edge
}

func (d *debounce) settle(v bool, now time.Time, stable bool) (changed bool) {
	switch {
	case stable && d.known && v == d.value:
		d.uneasy = time.Time{}
		return false
	case stable && !d.known:
		d.known, d.value, d.uneasy = true, v, time.Time{}
		return true
	case stable:
		d.uneasy = time.Time{}
		if !d.last[0].IsZero() && now.Sub(d.last[0]) <= flapWindow {
			d.frozen = true // this one would be the seventh
			return true
		}
		copy(d.last[:], d.last[1:])
		d.last[flapChanges-1] = now
		d.value = v
		return true
	case d.known && d.uneasy.IsZero() && v != d.value:
		d.uneasy, d.moves = now, 0
	case d.known && !d.uneasy.IsZero() && now.Sub(d.uneasy) >= flapUneasy && d.moves > flapChanges:
		d.frozen = true
		return true
	}
	return false
}

// pending says that the last poll differs from the state, or there is none yet.
func (d *debounce) pending() bool {
	return !d.frozen && (!d.known || d.cand != d.value)
}

// forget makes the state unknown.
func (d *debounce) forget() { *d = debounce{} }
