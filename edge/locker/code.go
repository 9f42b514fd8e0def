package locker

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

func (d *draft) setCode(e wire.CodeEntry) {
	d.Codes[e.Number] = e
	d.touch(keyCode + strconv.FormatUint(e.Number, 10))
	if dl, ok := d.Deliveries[e.DeliveryRef]; ok && e.Purpose != "" && dl.Purpose != e.Purpose {
		dl.Purpose = e.Purpose // it was deposited before its entry came
		d.setDelivery(dl)
	}
}

// tryCode decides on a code by the cabinet's own list alone.
func (d keypad) tryCode(in CodeTried) {
	outcome, budget := wire.CodeLockedOut, in.budget()
	if d.Meta.Budgets.Of(budget).Locked(d.now) == 0 {
		outcome = d.useCode(in)
		if outcome == wire.CodeUnknown {
			d.wrong(budget)
		}
	}
	tries := d.Meta.Budgets.Of(budget)
	d.out.Answer.Outcome, d.out.Answer.Budget, d.out.Answer.Left, d.out.Answer.Until = outcome, budget, tries.left(d.now), tries.Locked(d.now)
	kept := outcome
	switch outcome {
	case ChooseSize:
		kept = wire.CodeOK
	case wire.CodeOK, wire.CodeUnknown, wire.CodeNotActive, wire.CodeExpired, wire.CodeLockedOut:
	case QueueDone:
		kept = wire.CodeOK
	default:
		kept = wire.CodeNotActive // right code, but the doors cannot open now
	}
	d.record(wire.KindCodeAttempt, d.now.Mono, wire.CodeAttempt{Outcome: kept, Input: in.Input})
}

// budget is what a wrong one counts against.
func (in CodeTried) budget() Budget {
	switch {
	case in.Budget != "":
		return in.Budget
	case in.Input == "qr":
		return BudgetScanned
	}
	return BudgetTyped
}

// useCode acts on the entry that a verifier belongs to.
func (d keypad) useCode(in CodeTried) string {
	var entry wire.CodeEntry
	for _, n := range sorted(d.Codes) {
		if e := d.Codes[n]; len(in.Verifier) == 32 && bytes.Equal(e.Verifier, in.Verifier) {
			entry = e // the newest wins
		}
	}
	if entry.Number == 0 {
		return wire.CodeUnknown
	}
	// A code opens neither before nor after its time. Without a synchronised clock
	// the list alone says what has begun, but what had run out once stays so.
	certain := d.now.certain()
	if d.now.Clock == wire.ClockSynced && entry.NotBefore != 0 && certain < entry.NotBefore {
		return wire.CodeNotActive
	}
	late := entry.NotAfter != 0 && certain > entry.NotAfter
	switch entry.Kind {
	case wire.CodePickup, wire.CodeHandover:
		return d.pickUp(entry, in.Input) // an overdue parcel can still be collected
	case wire.CodeDelivery:
		switch {
		case late:
			return wire.CodeExpired
		case d.isOther(in.Label, entry.DeliveryRef):
			return OtherLabel
		}
		return d.dropOff(entry, in, "")
	case wire.CodeStaff:
		if late {
			return wire.CodeExpired
		}
		d.resetTries()
		return d.staff(entry, numbers(in.Doors), in.Queue)
	}
	return wire.CodeUnknown
}

// Purpose is what the cabinet knows of the purpose of a delivery: wire.PurposeSend,
// wire.PurposeReturn, or "" for one to its recipient and one that is not known.
func (s *State) Purpose(ref string) string {
	if dl, ok := s.Deliveries[ref]; ok && dl.Purpose != "" {
		return dl.Purpose
	}
	for _, n := range sorted(s.Codes) {
		if e := s.Codes[n]; ref != "" && e.DeliveryRef == ref && e.Purpose != "" {
			return e.Purpose
		}
	}
	return ""
}

// locates reports whether entries of a kind say where the parcels of a delivery lie.
func locates(kind string) bool { return collects(kind) || kind == wire.CodeOutgoing }

// collects reports whether codes of a kind open the doors of a delivery that waits:
// the recipient's own, or the one of whom the recipient has named.
func collects(kind string) bool { return kind == wire.CodePickup || kind == wire.CodeHandover }

func (d keypad) pickUp(e wire.CodeEntry, how string) string {
	dl, ok := d.Deliveries[e.DeliveryRef]
	if !ok || dl.Suspended || len(dl.Doors) == 0 || d.Purpose(e.DeliveryRef) != "" {
		return wire.CodeNotActive
	}
	doors := opens(e, dl)
	if len(doors) == 0 {
		return wire.CodeNotActive
	}
	for _, id := range sorted(d.Openings) {
		if o := d.Openings[id]; o.DeliveryRef == e.DeliveryRef && o.Kind == wire.OpenPickup && !o.Cancelled {
			return d.codeAgain(o, doors, edge.ByCode, e)
		}
	}
	return d.local(Opening{Kind: wire.OpenPickup, Who: "recipient", How: how, DeliveryRef: e.DeliveryRef, CodeNumber: e.Number}, edge.ByCode, doors, dl.Doors)
}

// dropOff opens the compartments that a delivery was given, or the first free
// ones of its sizes, of which a courier may choose that of a single compartment.
func (d keypad) dropOff(e wire.CodeEntry, in CodeTried, chosen string) string {
	if dl, ok := d.Deliveries[e.DeliveryRef]; ok && len(dl.Doors) > 0 || d.used(e) {
		return wire.CodeExpired
	}
	for _, id := range sorted(d.Openings) {
		if o := d.Openings[id]; o.DeliveryRef == e.DeliveryRef && o.Kind.IsDeposit() && !o.Cancelled {
			named := numbers(e.Doors)
			if len(named) == 0 || o.Kind == wire.OpenReassign { // the list may still name those that it has left
				named = o.numbers()
			}
			return d.codeAgain(o, named, edge.ByCode, e)
		}
	}
	doors := numbers(e.Doors)
	packages := map[edge.DoorNumber][]string{}
	for n, refs := range e.Packages {
		packages[edge.DoorNumber(n)] = refs
	}
	if len(doors) == 0 && d.Meta.Lost {
		return wire.ReasonOccupied // what lies where is not known
	}
	if len(doors) == 0 && in.Choose && len(e.Sizes) == 1 && d.offerSizes(e) {
		return ChooseSize
	}
	if len(doors) == 0 {
		for i, size := range e.Sizes {
			if chosen != "" && len(e.Sizes) == 1 {
				size = chosen
			}
			n := d.firstFree(size, doors, e.DeliveryRef, chosen != "")
			if n == 0 {
				return wire.ReasonOccupied
			}
			doors = append(doors, n)
			if rest := packages[0]; i < len(rest) {
				packages[n] = rest[i : i+1]
			}
		}
	}
	if len(doors) == 0 {
		return wire.ReasonOccupied
	}
	return d.local(Opening{Kind: wire.OpenDeposit, Who: "courier", DeliveryRef: e.DeliveryRef, CodeNumber: e.Number}, edge.ByCode, doors, packages)
}

// codeAgain is a right code for an opening that runs already: it pulses those of
// the opening's doors that the code is for.
func (d openings) codeAgain(o Opening, doors []edge.DoorNumber, kind string, e wire.CodeEntry) string {
	doors = slices.DeleteFunc(slices.Clone(doors), func(n edge.DoorNumber) bool { return o.door(n).Door == 0 })
	if len(doors) == 0 {
		return wire.ReasonBusy
	}
	switch reason := d.again(o, doors, "", d.authority(kind, "", o.ID, e.Number)); reason {
	case "":
	case wire.ReasonNoOpening:
		return wire.CodeNotActive
	default:
		return reason
	}
	d.out.Answer.OpeningID, d.out.Answer.Doors = o.ID, doors
	return wire.CodeOK
}

// firstFree finds a free compartment of a size, or else of the next larger one, that the
// list keeps for no other delivery, in the layout's order; exact leaves the larger ones out, as
// a courier has chosen the size. "" is any size. 0: there is none.
func (d keypad) firstFree(size string, taken []edge.DoorNumber, ref string, exact bool) edge.DoorNumber {
	wanted := []string{size}
	if !exact {
		wanted = append(wanted, sizes[slices.Index(sizes, size)+1:]...)
	}
	for _, s := range wanted {
		for _, l := range d.Config.Layout {
			n := edge.DoorNumber(l.Door)
			if l.Size == s && !slices.Contains(taken, n) && isFor(d.openings, n, ref) {
				return n
			}
		}
	}
	return 0
}

func (d keypad) staff(e wire.CodeEntry, doors []edge.DoorNumber, queue bool) string {
	if len(doors) == 0 {
		beginStaff(d.draft, e.Number)
		return wire.CodeOK // who it is; doors are chosen next
	}
	if queue {
		return chooseDoors(d.openings, e.Number, doors)
	}
	outcome := d.openForStaff(e, doors)
	if outcome == wire.CodeOK {
		joinStaff(d.draft, e.Number, d.out.Answer.OpeningID)
	}
	return outcome
}

func (d keypad) openForStaff(e wire.CodeEntry, doors []edge.DoorNumber) string {
	if o := d.Openings[d.Doors[doors[0]].Opening]; o.Kind == wire.OpenStaff && !slices.ContainsFunc(doors, func(n edge.DoorNumber) bool { return o.door(n).Door == 0 }) {
		return d.codeAgain(o, doors, edge.ByStaff, e)
	}
	return d.local(Opening{Kind: wire.OpenStaff, Who: "staff", CodeNumber: e.Number}, edge.ByStaff, doors, nil)
}

// local starts an opening that the cabinet itself authorised.
func (d openings) local(o Opening, kind string, doors []edge.DoorNumber, packages map[edge.DoorNumber][]string) string {
	if reason := d.free(doors, o.Kind, o.DeliveryRef, ""); reason != "" {
		return reason
	}
	o.ID, o.CommandID = d.newID("op_"), wire.LocalCommand
	if o.Ends == (Instant{}) {
		o.Ends = d.now.instant(d.now.Mono + sec(d.times().SessionS))
	}
	o.ListNumber = d.Meta.CodeList
	for _, n := range doors {
		o.Doors = append(o.Doors, OpeningDoor{Door: n, Packages: packages[n]})
	}
	d.begin(o, d.authority(kind, "", o.ID, o.CodeNumber))
	d.out.Answer.OpeningID, d.out.Answer.Doors = o.ID, doors
	return wire.CodeOK
}
