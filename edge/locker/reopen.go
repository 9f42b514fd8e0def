package locker

import (
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// Reopenable gives the doors of an ended pickup that open once more without a
// code, as something is still inside, and until when, as mono of this boot. That
// is a while after the end, and never later than the end of the session that the
// code began, however often it was reopened. No doors: it cannot be reopened.
func (s *State) Reopenable(id string, now Now) (doors []edge.DoorNumber, until int64) {
	e := s.Ended[id]
	if e.Kind != wire.OpenPickup || e.At.Boot != now.Boot {
		return nil, 0
	}
	until = min(e.At.Mono+sec(s.Config.Times.WithDefaults().ReopenS), e.Ends.Mono)
	dl := s.Deliveries[e.Delivery]
	if now.Mono >= until || dl.Suspended {
		return nil, until
	}
	for _, n := range e.Doors {
		d := s.Doors[n]
		if _, has := dl.Doors[n]; has && d.Item == wire.ItemPresent && d.Opening == "" {
			doors = append(doors, n)
		}
	}
	return doors, until
}

// reopen opens a pickup once more without a code, in what is left of its session.
func (d openings) reopen(in Reopen) {
	d.out.Answer.Outcome = wire.ReasonNoOpening
	doors, _ := d.Reopenable(in.OpeningID, d.now)
	if len(doors) == 0 {
		return
	}
	e := d.Ended[in.OpeningID]
	d.out.Answer.Outcome = d.local(Opening{Kind: wire.OpenPickup, Who: "recipient", How: "keypad", DeliveryRef: e.Delivery, Ends: e.Ends},
		edge.ByReopen, doors, d.Deliveries[e.Delivery].Doors)
}
