package locker

import (
	"maps"
	"slices"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// StaffSession is what a member of the staff may do at the screen after a right staff code,
// or a signed QR code of staff. It lives in memory alone: a start of the agent ends it.
type StaffSession struct {
	ID       string            // random; "": there is none
	Code     uint64            // list entry of the staff code, 0 for a signed QR code: that opens no further doors
	Openings []string          // that it has begun
	Queue    []edge.DoorNumber // doors that were chosen to be opened one after the other and are not yet
	Seen     map[edge.DoorNumber]SeenDoor
}

// SeenDoor is a door that was seen open in an opening of a staff session.
type SeenDoor struct {
	OpeningID string
	Delivery  string // that lay there then, "" for none
	Due       string // as State.Due then
	At        int64  // mono of when it was last open
	Answer    string // outcome of the removal that was stated since, "" for none
}

// QueueDone answers OpenNext when no chosen door is left.
const QueueDone = "queue_done"

// Why the packages behind a door are to be collected.
const (
	DueOverdue  = "overdue"  // their recipient's time is certainly over
	DueOutgoing = "outgoing" // their sender has brought them for a courier
)

// Due says why the packages behind a door are to be collected: DueOverdue, DueOutgoing, or
// "" when they are not. A delivery of which the deposit is being corrected is not.
func (s *State) Due(n edge.DoorNumber, now Now) string {
	ref := s.Doors[n].Delivery
	dl, known := s.Deliveries[ref]
	if ref == "" || dl.Suspended {
		return ""
	}
	if _, inside := dl.Doors[n]; known && inside && s.Purpose(ref) != "" {
		return DueOutgoing
	}
	due := int64(0)
	for _, number := range sorted(s.Codes) { // the newest entry counts
		if e := s.Codes[number]; e.DeliveryRef == ref && collects(e.Kind) {
			due = e.NotAfter
		}
	}
	if due != 0 && now.certain() > due {
		return DueOverdue
	}
	return ""
}

// Collectable lists the doors behind which packages are to be collected, in the layout's order.
func (s *State) Collectable(now Now) (doors []edge.DoorNumber) {
	for _, l := range s.Config.Layout {
		if n := edge.DoorNumber(l.Door); s.Due(n, now) != "" {
			doors = append(doors, n)
		}
	}
	return doors
}

// SeenBy gives the doors that a staff session has seen open, behind which it may still state
// what became of the packages, in the layout's order.
func (s *State) SeenBy(session string, now Now) (doors []edge.DoorNumber) {
	for _, l := range s.Config.Layout {
		n := edge.DoorNumber(l.Door)
		if seen, ok := s.Staff.Seen[n]; ok && session != "" && session == s.Staff.ID && now.Mono <= seen.At+removalFor {
			doors = append(doors, n)
		}
	}
	return doors
}

// beginStaff begins a staff session, which ends the one before it.
func beginStaff(d *draft, code uint64) {
	for _, n := range sorted(d.Staff.Seen) {
		endWait(d, n)
	}
	d.Staff = StaffSession{ID: d.newID("ss_"), Code: code}
	d.out.Answer.Session = d.Staff.ID
}

// joinStaff adds an opening to the session of the code that began it, or begins one with it.
func joinStaff(d *draft, code uint64, opening string) {
	if code == 0 || d.Staff.Code != code {
		beginStaff(d, code)
	}
	d.out.Answer.Session = d.Staff.ID
	if !slices.Contains(d.Staff.Openings, opening) {
		d.Staff.Openings = append(slices.Clone(d.Staff.Openings), opening)
	}
}

// chooseDoors begins a queue of doors with its first.
func chooseDoors(d openings, code uint64, doors []edge.DoorNumber) string {
	if d.Staff.Code != code {
		beginStaff(d.draft, code)
	}
	d.out.Answer.Session = d.Staff.ID
	d.Staff.Queue = doors
	return openQueued(d)
}

// openNext opens the next door that was chosen, for a session whose code still holds and
// whose other doors are shut.
func openNext(d openings, in OpenNext) {
	s := d.Staff
	e, listed := d.Codes[s.Code]
	switch {
	case in.Session == "" || in.Session != s.ID || s.Code == 0:
		d.out.Answer.Outcome = wire.ReasonNoOpening
		return
	case !listed || e.Kind != wire.CodeStaff || e.NotAfter != 0 && d.now.certain() > e.NotAfter:
		d.out.Answer.Outcome = wire.CodeExpired
		return
	}
	for _, id := range s.Openings {
		if o, running := d.Openings[id]; running {
			if t := d.tally(o); t.pending > 0 || t.open {
				d.out.Answer = Answer{Outcome: wire.ReasonBusy, Doors: o.numbers()}
				return
			}
		}
	}
	d.out.Answer.Outcome = openQueued(d)
}

// openQueued opens the first door of the queue behind which something is still to be
// collected. One that cannot be opened is answered, and left out.
func openQueued(d openings) string {
	for len(d.Staff.Queue) > 0 {
		n := d.Staff.Queue[0]
		d.Staff.Queue = d.Staff.Queue[1:]
		if d.Due(n, d.now) == "" {
			continue // it was collected, or its recipient was given more time
		}
		outcome := d.local(Opening{Kind: wire.OpenStaff, Who: "staff", CodeNumber: d.Staff.Code}, edge.ByStaff, []edge.DoorNumber{n}, nil)
		if outcome == wire.CodeOK {
			joinStaff(d.draft, d.Staff.Code, d.out.Answer.OpeningID)
		}
		d.out.Answer.Doors = []edge.DoorNumber{n}
		return outcome
	}
	return QueueDone
}

// seeStaff notes which doors the openings of the staff session have opened, and what lay there.
func seeStaff(d *draft) {
	for _, id := range d.Staff.Openings {
		for _, od := range d.Openings[id].Doors {
			if !od.Phase.opened() || !od.Asked {
				continue
			}
			seen := d.Staff.Seen[od.Door]
			if seen.OpeningID != id {
				seen = SeenDoor{OpeningID: id, Delivery: d.Doors[od.Door].Delivery, Due: d.Due(od.Door, d.now)}
			}
			at := d.now.Mono
			if od.Phase == Closed {
				at = od.ClosedAt.Mono
			}
			if seen.At = at; seen == d.Staff.Seen[od.Door] {
				continue
			}
			all := maps.Clone(d.Staff.Seen)
			if all == nil {
				all = map[edge.DoorNumber]SeenDoor{}
			}
			all[od.Door] = seen
			d.Staff.Seen = all
		}
	}
}

// isAsked reports whether staff who have had a door opened, at the screen or from the cloud, may
// still state what became of the packages behind it.
func (d Door) isAsked(now Now) bool { return d.StaffAt != 0 && now.Mono <= d.StaffAt+removalFor }

// endWait ends the wait for what staff state of the packages behind a door: what they have taken
// out by then, as the sensor says, is missing.
func endWait(d *draft, n edge.DoorNumber) {
	door := d.Doors[n]
	if _, running := d.Openings[door.Opening]; running || door.StaffAt == 0 {
		return
	}
	door.StaffAt = 0
	taken := door.Delivery != "" && door.Seen && door.Known && !door.Open && door.Item == wire.ItemAbsent
	door.Seen = door.Seen && !taken // said once
	d.setDoor(door)
	if taken {
		d.raise(wire.ExItemMissing, wire.SeverityHigh, n, "item gone in an opening of staff, who stated nothing")
	}
}
