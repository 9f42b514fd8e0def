package locker

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// Marks is what a cabinet remembers of its code list outside the store, so that
// neither a new store nor an older copy of one takes the list back.
type Marks struct {
	Generation uint64 `json:"generation"`
	Number     uint64 `json:"number"` // of the newest entry in that generation
}

// Mute counts repeats that are not written.
type Mute struct {
	At    int64 // mono of the last one written in this boot, 0 when none
	Count uint64
}

// listFate is what becomes of a message about the code list.
type listFate uint8

const (
	listApplies listFate = iota
	listWaits            // a part of a list that is not complete yet
	listGap              // it does not follow what is held: another one has to be asked for
	listLate             // a repeat of what is held, or overtaken on its way
	listRefused          // it would take the list back: a recorded one
)

// Applies reports whether a message about the code list would be applied, with
// the parts that came before it. Number and generation of what is held are then
// those that it leads to.
func (s *State) Applies(in CodesCame) bool { return s.fate(in) == listApplies }

// fate decides on a message about the code list. device-link 6: a list never goes
// back. A nonce of this connection proves that the cloud made it since: it can be
// late, as lists cross on their way, but is no recorded one.
//
//	                              nonce of this connection   any other, or none
//	goes back                     late                       refused
//	tail that follows             applies                    applies
//	tail that does not            gap                        gap
//	whole list, newest nonce      applies, once              -
//	whole list, another nonce     late                       refused
//	part out of its order         gap                        refused
//
// A cloud that names no generation is obeyed as long as it never did, by a
// device without a key.
func (s *State) fate(in CodesCame) listFate {
	c := in.Codes
	switch fresh := in.isFresh(); {
	case s.goesBack(in) && fresh:
		return listLate
	case s.goesBack(in):
		return listRefused
	case c.To < c.From:
		return listGap
	case !c.IsWhole():
		if c.Generation != s.Meta.Generation || c.From != s.ListNumber(in.Marks) {
			return listGap
		}
	case c.Generation == 0:
	case !fresh:
		return listRefused
	case !bytes.Equal(c.Nonce, in.Asked) || bytes.Equal(c.Nonce, s.Meta.ListNonce):
		return listLate
	case c.Part != 0 && !s.Parts.isFollowedBy(c):
		return listGap
	case c.Part != 0 && c.To < c.End:
		return listWaits
	}
	return listApplies
}

// goesBack reports whether a message leads to less than the cabinet ever held.
func (s *State) goesBack(in CodesCame) bool {
	c, held := in.Codes, s.HeldList(in.Marks)
	return c.Generation < held.Generation || c.Generation == 0 && in.Keyed ||
		c.Generation == held.Generation && c.Last() < max(held.Number, s.Meta.CodeList)
}

// isFresh reports whether a message names a nonce of this connection.
func (in CodesCame) isFresh() bool {
	is := func(n []byte) bool { return len(n) > 0 && bytes.Equal(n, in.Codes.Nonce) }
	return is(in.Asked) || slices.ContainsFunc(in.Earlier, is)
}

// HeldList is the newest generation and number that the cabinet ever held, of
// store and marks together.
func (s *State) HeldList(m Marks) Marks {
	own := Marks{s.Meta.Generation, s.Meta.CodeList}
	switch {
	case m.Generation > own.Generation:
		return m
	case m.Generation == own.Generation && m.Generation > 0:
		own.Number = max(own.Number, m.Number)
	}
	return own
}

// ListNumber is the number of the list held, 0 when a whole one is needed: the
// memory was lost, or the store is an older copy than the marks.
func (s *State) ListNumber(m Marks) uint64 {
	if s.Meta.Lost || s.HeldList(m) != (Marks{s.Meta.Generation, s.Meta.CodeList}) {
		return 0
	}
	return s.Meta.CodeList
}

// codes applies a tail that follows what is held; a whole list, once all of its
// parts are there, replaces it.
func (d codeList) codes(in CodesCame) {
	c := in.Codes
	if !bytes.Equal(d.Parts.nonce, in.Asked) {
		d.Parts = listParts{}
	}
	switch d.fate(in) {
	case listGap:
		if c.Part != 0 {
			d.Parts = listParts{}
		}
		d.addAction(AskList{})
		return
	case listRefused: // no status: its answer might be the same list again, and so for ever
		d.oldList()
		return
	case listLate:
		d.present = true
		return
	case listWaits:
		d.Parts = d.Parts.with(c)
		return
	}
	if c.Part != 0 {
		c = d.Parts.join(c)
		d.Parts = listParts{}
	}
	d.present = true // a status with the number confirms
	whole := c.From == 0
	if whole {
		for _, n := range sorted(d.Codes) {
			d.dropCode(n)
		}
	}
	if whole && d.Meta.Lost {
		d.forgo(c)
	}
	for _, e := range c.Entries {
		switch e.Op {
		case wire.CodeSet:
			d.setCode(e)
			if whole && d.Meta.Lost {
				d.restore(e)
			}
		case wire.CodeRevoke:
			d.revoke(e)
		}
	}
	d.forgetStaff()
	m := d.Meta
	m.CodeList, m.Generation = c.To, c.Generation
	if whole {
		m.Lost, m.ListNonce = false, c.Nonce
	}
	d.setMeta(m)
}

// staffKept is how long a staff code is known after its day, so that it is answered as
// expired and costs no try.
const staffKept = 24 * time.Hour

// forgetStaff drops staff codes whose day is long over: no list names them again.
func (d codeList) forgetStaff() {
	for _, n := range sorted(d.Codes) {
		if e := d.Codes[n]; e.Kind == wire.CodeStaff && e.NotAfter != 0 && d.now.certain() > e.NotAfter+int64(staffKept) {
			d.dropCode(n)
		}
	}
}

// oldList records a code list that would have gone back.
func (d codeList) oldList() {
	m := d.OldLists
	if m.At != 0 && d.now.Mono < m.At+repeatMuted {
		m.Count++
		d.OldLists = m
		return
	}
	d.record(wire.KindTamper, d.now.Mono, wire.Tamper{What: wire.TamperOldList, Count: m.Count})
	d.OldLists = Mute{At: d.now.Mono}
}

// forgo lets go of deliveries that an older copy of the store remembers and a
// whole list does not name: they ended after the copy was made. The changes that the cabinet
// did since the loss counts more.
func (d codeList) forgo(c wire.Codes) {
	listed := map[string]bool{}
	for _, e := range c.Entries {
		listed[e.DeliveryRef] = true
	}
	for _, id := range sorted(d.Openings) {
		listed[d.Openings[id].DeliveryRef] = true
	}
	for _, end := range d.Ended {
		if end.At.Boot >= d.Meta.LostBoot {
			listed[end.Delivery] = true
		}
	}
	for _, n := range sorted(d.Doors) {
		if ref := d.Doors[n].Delivery; ref != "" && !listed[ref] && d.Doors[n].Item != wire.ItemPresent {
			d.freeDoor(n)
		}
	}
}

// restore takes an entry of a whole list that locates parcels as word that its parcels lie
// inside: the cabinet has lost its own memory of them. Compartments whose packages
// it names without opening them are kept: nothing has confirmed what lies there. What
// the cabinet did since counts more.
func (d codeList) restore(e wire.CodeEntry) {
	if e.Active == wire.ActiveAtSettle {
		d.mayHold(e, numbers(e.Doors))
		return
	}
	if e.Active != wire.ActiveNow || !locates(e.Kind) {
		return
	}
	if _, ok := d.Deliveries[e.DeliveryRef]; ok {
		return
	}
	for _, end := range d.Ended {
		if end.Used && end.Delivery == e.DeliveryRef {
			return
		}
	}
	dl := Delivery{Ref: e.DeliveryRef, Purpose: e.Purpose, Doors: map[edge.DoorNumber][]string{}}
	for _, n := range numbers(e.Doors) {
		if door, ok := d.Doors[n]; ok && (door.Delivery == "" || door.Delivery == e.DeliveryRef) {
			dl.Doors[n] = e.Packages[uint(n)]
			door.Delivery, door.Unverified = e.DeliveryRef, true
			d.setDoor(door)
		}
	}
	d.mayHold(e, slices.DeleteFunc(numbers(slices.Sorted(maps.Keys(e.Packages))), func(n edge.DoorNumber) bool { return slices.Contains(e.Doors, uint(n)) }))
	if len(dl.Doors) > 0 {
		d.setDelivery(dl)
	}
}

// used reports whether an entry was listed before its delivery was settled or
// collected here. One that is listed anew after that may be used; numbers of
// another generation tell nothing.
func (d keypad) used(e wire.CodeEntry) bool {
	for _, end := range d.Ended {
		if end.Used && end.Delivery != "" && end.Delivery == e.DeliveryRef && (end.Generation != d.Meta.Generation || e.Number <= end.List) {
			return true
		}
	}
	return false
}

// opens are the compartments that a pickup code opens: those in which the cabinet
// itself holds the delivery, and of these the ones that an entry names which is
// active by the cloud's word.
func opens(e wire.CodeEntry, dl Delivery) []edge.DoorNumber {
	doors := sorted(dl.Doors)
	if e.Active != wire.ActiveNow || len(e.Doors) == 0 {
		return doors
	}
	return slices.DeleteFunc(doors, func(n edge.DoorNumber) bool { return !slices.Contains(e.Doors, uint(n)) })
}

func (d codeList) revoke(e wire.CodeEntry) {
	for _, n := range sorted(d.Codes) {
		c := d.Codes[n]
		if n < e.Number && c.Kind == e.Kind && (e.DeliveryRef != "" && c.DeliveryRef == e.DeliveryRef || e.DeliveryRef == "" && bytes.Equal(c.Verifier, e.Verifier)) {
			d.dropCode(n)
		}
	}
}
