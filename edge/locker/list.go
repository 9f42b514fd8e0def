package locker

import (
	"bytes"
	"slices"

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

// listFate is what becomes of a piece of the code list.
type listFate uint8

const (
	listApplies listFate = iota
	listGap              // it does not follow what is held: another one has to be asked for
	listHeld             // a repeat of what is held, or a late answer
	listRefused          // it would take the list back
)

// Applies reports whether a piece of the code list would be applied.
func (s *State) Applies(in CodesCame) bool { return s.fate(in) == listApplies }

// fate decides on a piece of the code list. device-link 6: a list never goes
// back. A cloud that names no generation is obeyed as long as it never did, by a
// device without a key.
func (s *State) fate(in CodesCame) listFate {
	c, held := in.Codes, s.HeldList(in.Marks)
	switch {
	case c.Generation < held.Generation, c.Generation == 0 && in.Keyed:
		return listRefused
	case c.Generation == held.Generation && c.To < max(held.Number, s.Meta.CodeList):
		return listRefused
	case c.To < c.From:
		return listGap
	case c.From != 0:
		if c.Generation != s.Meta.Generation || c.From != s.ListNumber(in.Marks) {
			return listGap
		}
		return listApplies
	case c.Generation == 0:
		return listApplies
	case len(c.Nonce) > 0 && bytes.Equal(c.Nonce, s.Meta.ListNonce):
		if c.Generation == s.Meta.Generation && c.To == s.Meta.CodeList {
			return listHeld
		}
		return listRefused
	case slices.ContainsFunc(in.Earlier, func(n []byte) bool { return len(n) > 0 && bytes.Equal(n, c.Nonce) }):
		return listHeld
	case len(c.Nonce) == 0 || !bytes.Equal(c.Nonce, in.Asked):
		return listRefused
	}
	return listApplies
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

// codes applies a piece of the code list that follows what is held; a whole one
// replaces it.
func (d *draft) codes(in CodesCame) {
	c := in.Codes
	switch d.fate(in) {
	case listGap:
		d.do(AskList{})
		return
	case listRefused: // no status: its answer might be the same list again, and so for ever
		d.oldList()
		return
	case listHeld:
		d.present = true
		return
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
	m := d.Meta
	m.CodeList, m.Generation = c.To, c.Generation
	if whole {
		m.Lost, m.ListNonce = false, c.Nonce
	}
	d.setMeta(m)
}

// oldList records a code list that would have gone back.
func (d *draft) oldList() {
	m := d.OldLists
	if m.At != 0 && d.now.Mono < m.At+repeatMuted {
		m.Count++
		d.OldLists = m
		return
	}
	d.record(wire.KindTamper, d.now.Mono, wire.Tamper{What: wire.TamperOldList, Count: m.Count})
	d.OldLists = Mute{At: d.now.Mono}
}

// lose declares that the cabinet's memory of what lies where cannot be relied on:
// its store is new, or an older copy. The next whole list brings it back.
func (d *draft) lose() {
	m := d.Meta
	if m.Lost {
		return
	}
	m.Lost, m.LostBoot = true, d.now.Boot
	d.setMeta(m)
	d.present = true
}

// forgo lets go of deliveries that an older copy of the store remembers and a
// whole list does not name: they ended after the copy was made. What the cabinet
// did since the loss counts more.
func (d *draft) forgo(c wire.Codes) {
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

// restore takes a pickup code of a whole list as word that its parcels lie
// inside: the cabinet has lost its own memory of them. What it did since counts
// more.
func (d *draft) restore(e wire.CodeEntry) {
	if e.Active == wire.ActiveAtSettle {
		d.mayHold(e)
		return
	}
	if e.Active != wire.ActiveNow || len(e.Doors) == 0 || e.Kind != wire.CodePickup && e.Kind != wire.CodeHandover {
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
	dl := Delivery{Ref: e.DeliveryRef, Doors: map[edge.DoorNumber][]string{}}
	for _, n := range numbers(e.Doors) {
		if door, ok := d.Doors[n]; ok && (door.Delivery == "" || door.Delivery == e.DeliveryRef) {
			dl.Doors[n] = e.Packages[uint(n)]
			door.Delivery, door.Unverified = e.DeliveryRef, true
			d.setDoor(door)
		}
	}
	if len(dl.Doors) > 0 {
		d.setDelivery(dl)
	}
}

// used reports whether an entry was listed before its delivery was settled or
// collected here. One that is listed anew after that may be used; numbers of
// another generation tell nothing.
func (d *draft) used(e wire.CodeEntry) bool {
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

func (d *draft) revoke(e wire.CodeEntry) {
	for _, n := range sorted(d.Codes) {
		c := d.Codes[n]
		if n < e.Number && c.Kind == e.Kind && (e.DeliveryRef != "" && c.DeliveryRef == e.DeliveryRef || e.DeliveryRef == "" && bytes.Equal(c.Verifier, e.Verifier)) {
			d.dropCode(n)
		}
	}
}
