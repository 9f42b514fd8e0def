package truth

import (
	"time"

	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

// ChannelTest is a test of a lock that staff of the script asked for.
type ChannelTest struct {
	Cabinet   string
	Door      uint
	OpeningID string
	At        time.Time
	Occupied  bool // they knew that something may lie inside
}

// judgeTests judges them: a test is no deposit and no pickup, and opens no door behind which a
// parcel lies unless staff said that it may.
func judgeTests(j *judge, b *Cabinet) {
	d := j.Cloud.Devices[b.Code]
	for _, x := range j.Tests {
		if x.Cabinet != b.Code {
			continue
		}
		for _, r := range d.Records {
			var settled wire.OpeningSettled
			var taken wire.PickupCompleted
			switch {
			case r.Kind == wire.KindOpeningSettled && wire.Decode(r.Body, &settled) == nil && settled.OpeningID == x.OpeningID,
				r.Kind == wire.KindPickupCompleted && wire.Decode(r.Body, &taken) == nil && taken.OpeningID == x.OpeningID:
				j.find("test", b, x.Door, b.at(r), "a channel test counts as a %s", r.Kind)
			}
		}
		if o, ok := d.Openings[x.OpeningID]; ok && o.Kind != wire.OpenStaff {
			j.find("test", b, x.Door, x.At, "a channel test is an opening of the kind %s", o.Kind)
		}
		for _, p := range b.Pulses {
			if p.OpeningID != x.OpeningID {
				continue
			}
			if uint(p.Door) != x.Door {
				j.find("test", b, uint(p.Door), p.At, "a test of door %d has opened it", x.Door)
			}
			before := Cabinet{Code: b.Code, Boots: b.Boots, Trouble: b.Trouble}
			for _, f := range b.Facts {
				if f.At.Before(p.At) {
					before.Facts = append(before.Facts, f)
				}
			}
			inside := before.items()[x.Door]
			if len(inside) > 0 && !x.Occupied && !j.doubted(b, d, x.Door, before.around(x.Door, board.ItemIn, inside)) {
				j.find("test", b, x.Door, p.At, "a channel test has opened the door over %v", inside)
			}
		}
	}
}
