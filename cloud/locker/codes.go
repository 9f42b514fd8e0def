package locker

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

const (
	// maxDeliveryCodes bounds the entries of deliveries that a device's list holds at once.
	maxDeliveryCodes = wire.MaxRecords
	// maxLiveCodes bounds all of its entries, with the staff codes of two draws in a row.
	maxLiveCodes = maxDeliveryCodes + 2*maxStaffHolders*staffDays
)

// codeFree refuses a verifier that is in the list, or may still be live at a
// cabinet that has not seen its revocation.
func codeFree(v cloud.View, d cloud.Device, verifiers ...[]byte) error {
	rows, err := v.CodeRows(d.ID, 0, maxLiveCodes)
	if err != nil {
		return err
	}
	ofStaff := 0
	for _, r := range rows {
		if r.StaffCodeID != 0 {
			ofStaff++
		}
	}
	if len(rows)-ofStaff+len(verifiers) > maxDeliveryCodes {
		return cloud.E(cloud.Conflict, "NO_COMPARTMENT")
	}
	unseen, err := unconfirmed(v, d)
	if err != nil {
		return err
	}
	for _, r := range unseen {
		if r.Entry.Op != wire.CodeRevoke || r.DeliveryID == 0 {
			continue
		}
		old, err := v.DeliveryCodes(r.DeliveryID) // those that the cabinet still takes
		if err != nil {
			return err
		}
		rows = append(rows, old...)
	}
	for _, r := range append(rows, unseen...) {
		for _, x := range verifiers {
			if bytes.Equal(r.Entry.Verifier, x) {
				return errCodeTaken
			}
		}
	}
	return nil
}

// unconfirmed are the entries that no status has confirmed: a list that did not
// reach the cabinet, or that was withheld from it, leaves former codes live.
// Those of a void list are for other secrets.
func unconfirmed(v cloud.View, d cloud.Device) ([]cloud.CodeRow, error) {
	var all []cloud.CodeRow
	for from := max(d.ListHeld(), max(d.ListFrom, 1)-1, 1); ; { // 0 would list only what is live
		rows, err := v.CodeRows(d.ID, from, maxLiveCodes)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
		if len(rows) < maxLiveCodes {
			return all, nil
		}
		from = rows[len(rows)-1].Entry.Number
	}
}

// codes are a delivery's entries in the list, by number, those of this decision
// too.
func (w *codeList) codes(id cloud.DeliveryID) ([]*cloud.CodeRow, error) {
	if rows, ok := w.codeRows[id]; ok {
		return rows, nil
	}
	rows, err := w.v.DeliveryCodes(id)
	if err != nil {
		return nil, err
	}
	out := make([]*cloud.CodeRow, len(rows))
	for i := range rows {
		out[i] = &rows[i]
	}
	w.codeRows[id] = out
	return out, nil
}

// newest is the last entry that set a delivery's code of a kind, revoked or
// not; nil when there was none.
func (w *codeList) newest(d *cloud.Delivery, kind string) (*cloud.CodeRow, error) {
	rows, err := w.codes(d.ID)
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Backward(rows) {
		if r.Entry.Op == wire.CodeSet && r.Entry.Kind == kind {
			if r.Entry.Number < w.device.ListFrom {
				return w.remade(d, *r)
			}
			return r, nil
		}
	}
	return nil, nil
}

// remade is an entry of a former list with a verifier of the device's present
// secrets. It costs a slow hash inside the decision; codes that come back after
// their device was given other secrets are few.
func (w *codeList) remade(d *cloud.Delivery, r cloud.CodeRow) (*cloud.CodeRow, error) {
	if r.Entry.Kind == wire.CodeOutgoing {
		return &r, nil // there is no code behind it
	}
	codes, err := w.s.openCodes(*d)
	if err != nil {
		return nil, err
	}
	secrets, err := OpenSecrets(w.s.cfg.Sealer, w.device.SealedCode)
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", w.device.Code, err)
	}
	code := codes.Pickup
	if r.Entry.Kind == wire.CodeDelivery {
		code = codes.Delivery
	}
	r.Entry.Verifier = passcode.Verifier(code, secrets.Salt, secrets.Key, secrets.Params)
	return &r, nil
}

// list appends an entry to the cabinet's list.
func (w *codeList) list(id cloud.DeliveryID, e wire.CodeEntry) error {
	rows, err := w.codes(id)
	if err != nil {
		return err
	}
	w.device.CodeList++
	w.listed = true
	e.Number = w.device.CodeList
	row := &cloud.CodeRow{DeviceID: w.device.ID, DeliveryID: id, CreatedAt: w.received, Entry: e}
	w.codeRows[id] = append(rows, row)
	w.touch(row)
	return nil
}

// revoke ends live codes of a delivery: each revocation is an entry of its own,
// so that the cabinet's number tells whether it knows.
func (w *codeList) revoke(d *cloud.Delivery, kinds ...string) error {
	rows, err := w.codes(d.ID)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		live := false
		for _, r := range rows {
			if r.DroppedAt.IsZero() && r.Entry.Kind == kind {
				live = live || r.Entry.Op == wire.CodeSet
				r.DroppedAt = w.received
				w.touch(r)
			}
		}
		if !live {
			continue
		}
		if err := w.list(d.ID, wire.CodeEntry{Op: wire.CodeRevoke, Kind: kind, DeliveryRef: d.Number}); err != nil {
			return err
		}
	}
	return nil
}

// place brings the entries of a delivery's codes in line with where its
// packages are to go and until when: what differs is revoked, and the same code
// listed anew. Codes that were revoked when the delivery was given up come back.
func (w *codeList) place(d *cloud.Delivery) error {
	doors, err := w.doorsByGrid()
	if err != nil {
		return err
	}
	var kinds []string
	var entries []wire.CodeEntry
	for _, kind := range []string{wire.CodeDelivery, pickupKind(*d)} {
		row, err := w.newest(d, kind)
		if err != nil {
			return err
		}
		if row == nil {
			continue
		}
		e := codeEntry(*d, doors, kind, row.Entry.Verifier)
		if row.DroppedAt.IsZero() && sameEntry(row.Entry, e) {
			continue
		}
		kinds, entries = append(kinds, kind), append(entries, e)
	}
	if err := w.revoke(d, kinds...); err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.list(d.ID, e); err != nil {
			return err
		}
	}
	return nil
}

// sameEntry compares entries but for their numbers.
func sameEntry(a, b wire.CodeEntry) bool {
	a.Number, b.Number = 0, 0
	return bytes.Equal(wire.MustEncode(a), wire.MustEncode(b))
}

func (w *codeList) doorsByGrid() (map[cloud.GridID]uint, error) {
	cells, err := w.allCells()
	if err != nil {
		return nil, err
	}
	return doorsByGrid(cells), nil
}

func doorsByGrid(cells []*cloud.Compartment) map[cloud.GridID]uint {
	out := make(map[cloud.GridID]uint, len(cells))
	for _, c := range cells {
		out[c.GridID] = c.Door
	}
	return out
}

// deliveryKinds are the kinds of all entries that a delivery may have.
var deliveryKinds = []string{wire.CodeDelivery, wire.CodePickup, wire.CodeHandover, wire.CodeOutgoing}

// pickupKind is the kind of the entry that says where a delivery lies: of the code that opens
// it for who collects it, the recipient or the person whom the recipient has named, or of one
// without a code for what a courier collects.
func pickupKind(d cloud.Delivery) string {
	if d.IsOutgoing() {
		return wire.CodeOutgoing
	}
	if d.Handover != nil {
		return wire.CodeHandover
	}
	return wire.CodePickup
}

// codeEntry is a delivery's entry in the cabinet's list, without its number:
// compartments where its packages are to go, or sizes to choose by.
func codeEntry(d cloud.Delivery, doors map[cloud.GridID]uint, kind string, verifier []byte) wire.CodeEntry {
	e := wire.CodeEntry{Op: wire.CodeSet, Kind: kind, Verifier: verifier, DeliveryRef: d.Number, Active: wire.ActiveNow, Packages: map[uint][]string{}, Purpose: d.Purpose}
	if kind != wire.CodeDelivery {
		e.Active = wire.ActiveAtSettle
	} else {
		e.NotAfter = d.DeliverBefore.UnixNano()
	}
	for _, p := range d.Packages {
		door, ok := doors[p.GridID]
		if !ok {
			e.Packages[0] = append(e.Packages[0], p.TrackingNumber)
			e.Sizes = append(e.Sizes, p.Size)
			continue
		}
		if !slices.Contains(e.Doors, door) {
			e.Doors = append(e.Doors, door)
		}
		e.Packages[door] = append(e.Packages[door], p.TrackingNumber)
	}
	return e
}

// activeEntry makes an entry active for the compartments where the delivery's
// parcels lie. Compartments that an ended deposit left unverified have their
// packages named and open by no code: a cabinet that has lost its store, or is new,
// keeps them.
func (w *codeList) activeEntry(d *cloud.Delivery, e wire.CodeEntry) (wire.CodeEntry, error) {
	doors, err := w.doorsByGrid()
	if err != nil {
		return e, err
	}
	e.Active, e.Doors, e.Sizes, e.Packages = wire.ActiveNow, nil, nil, map[uint][]string{}
	if !d.DueAt.IsZero() {
		e.NotAfter = d.DueAt.UnixMilli() * 1e6 // as it is stored
	}
	for _, p := range d.Packages {
		door, ok := doors[p.GridID]
		if !ok || p.Status != cloud.PackageInCompartment {
			continue
		}
		if !slices.Contains(e.Doors, door) {
			e.Doors = append(e.Doors, door)
		}
		e.Packages[door] = append(e.Packages[door], p.TrackingNumber)
	}
	slices.Sort(e.Doors)
	rows, err := w.deviceOrders(d.ID)
	if err != nil {
		return e, err
	}
	cells, err := w.allCells()
	if err != nil {
		return e, err
	}
	for _, o := range rows {
		i := slices.IndexFunc(cells, func(c *cloud.Compartment) bool { return c.GridCode == o.GridCode && c.DeliveryID == d.ID })
		if i >= 0 && o.IsUnverified() && !slices.Contains(e.Doors, cells[i].Door) {
			e.Packages[cells[i].Door] = append(e.Packages[cells[i].Door], o.Tracking)
		}
	}
	return e, nil
}

// activate marks the pickup code's entry as active for the compartments where
// parcels lie, for a cabinet that asks for the whole list later. The one that
// settled has activated it by itself. A code that was revoked when the delivery
// was given up is listed anew: the parcel lies inside.
func (w *codeList) activate(d *cloud.Delivery) error {
	row, err := w.newest(d, pickupKind(*d))
	if err != nil || row == nil {
		return err
	}
	e, err := w.activeEntry(d, row.Entry)
	if err != nil {
		return err
	}
	if row.DroppedAt.IsZero() && row.Entry.NotAfter != e.NotAfter { // the cabinet is to know from when on it is overdue
		row.DroppedAt = w.received
		w.touch(row)
	}
	if !row.DroppedAt.IsZero() {
		return w.list(d.ID, e)
	}
	row.Entry = e
	w.touch(row)
	return nil
}

// activateInside keeps the entry of a delivery that waits in line with its time to collect.
func (w *codeList) activateInside(d *cloud.Delivery) error {
	if !slices.ContainsFunc(d.Packages, func(p cloud.Package) bool { return p.Status == cloud.PackageInCompartment }) {
		return nil
	}
	return w.activate(d)
}

// dropCodes leaves a delivery's codes out of whole lists: the cabinet dropped
// those that it held, up to a number, by itself when the last parcel left. What
// was listed since, while it was offline, is revoked: it would make a code
// usable for a parcel that is gone.
func (w *codeList) dropCodes(d *cloud.Delivery, held uint64) ([]*cloud.CodeRow, error) {
	before, err := w.codes(d.ID)
	if err != nil {
		return nil, err
	}
	var since []string
	for _, r := range before {
		if !r.DroppedAt.IsZero() {
			continue
		}
		if r.Entry.Op == wire.CodeSet && r.Entry.Number > held && !slices.Contains(since, r.Entry.Kind) {
			since = append(since, r.Entry.Kind)
		}
		r.DroppedAt = w.received
		w.touch(r)
	}
	for _, kind := range since {
		if err := w.list(d.ID, wire.CodeEntry{Op: wire.CodeRevoke, Kind: kind, DeliveryRef: d.Number}); err != nil {
			return nil, err
		}
	}
	all, err := w.codes(d.ID)
	for _, r := range all[len(before):] {
		r.DroppedAt = w.received // in tails only: a whole list has nothing to revoke
	}
	return before, err
}
