package locker

import (
	"time"

	"github.com/postern-io/postern/protocol/wire"
)

// How an open door's last known moment is kept. A door that has been closed for
// less than openMargin may still count as open: polls, debounce and a board that
// has just fallen silent.
const (
	seenEvery  = int64(time.Minute)
	openMargin = int64(2 * time.Second)
)

// seeOpen keeps when the doors of running openings were last known to be open:
// with each step that keeps their opening, and every minute.
func (d openings) seeOpen() {
	for _, id := range sorted(d.Openings) {
		o := d.Openings[id]
		for _, od := range o.Doors {
			door := d.Doors[od.Door]
			if door.Opening != id || !door.Known || !door.Open || !door.Counted || door.MissedClosed || door.Suspect {
				continue
			}
			if !d.touched[keyOpening+id] && d.now.Mono < seenAgain(od, d.now) {
				continue
			}
			last := later(od.LastOpen, d.now.instant(max(door.Since, d.now.Mono-openMargin)))
			if last != od.LastOpen {
				d.setOpening(d.Openings[id].with(od.Door, func(x *OpeningDoor) { x.LastOpen = last }))
			}
		}
	}
}

// seenAgain is when the last known moment of an open door is kept again.
func seenAgain(od OpeningDoor, now Now) int64 {
	if od.LastOpen.Boot != now.Boot {
		return now.Mono
	}
	return od.LastOpen.Mono + openMargin + seenEvery
}

// later is the later of two moments of which b is of this boot.
func later(a, b Instant) Instant {
	if a.Boot == b.Boot && a.Mono > b.Mono {
		return a
	}
	return b
}

// settledDoor is a door as a settlement tells of it: one that closed without being
// seen has bounds.
func (d openings) settledDoor(od OpeningDoor) wire.SettledDoor {
	out := wire.SettledDoor{Door: uint(od.Door), OpenedAt: d.now.date(od.OpenedAt), ClosedAt: d.now.date(od.ClosedAt), Item: od.Item}
	if od.Phase != Closed || !od.Unseen {
		return out
	}
	out.ClosedBefore = out.ClosedAt
	if after := od.LastOpen; after.Boot == od.ClosedAt.Boot || after.Clock == wire.ClockSynced && after.Wall <= out.ClosedBefore {
		out.ClosedAfter = d.now.date(after)
	}
	return out
}
