package locker

import (
	"context"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// retrieveOverdue is the reason of a retrieval after the time to collect; the other is recall.
const retrieveOverdue = "overdue"

// retrieveCollection is the reason to collect what a sender has brought.
const retrieveCollection = "collection"

// RetrieveInput asks for the doors behind which a delivery waits, so that a courier takes
// it back.
type RetrieveInput struct {
	Delivery    DeliveryKey    `path:"id" json:"-"`
	Reason      string         `json:"reason" required:"true" enum:"overdue,recall,collection" doc:"overdue once the delivery has expired; recall at any time; collection for the purposes send and return, whose parcels a courier collects"`
	Courier     *cloud.Courier `json:"courier" doc:"Who takes it, in place of the delivery's courier"`
	WaitSeconds *int           `json:"wait_seconds" min:"0" max:"20" doc:"How long to wait for the cabinet's answer; 10 when absent"`
}

// RetrieveOutput shows the opening of a retrieval. Pending is set while the outcome is not
// known.
type RetrieveOutput struct {
	Result  bool         `json:"result"`
	Opening *OpeningBody `json:"opening"`
	Pending bool         `json:"-"`
}

// Retrieve opens the compartments that hold a deposited delivery, for a courier of the
// partner. The delivery stays as it is until RetrieveConfirm, and the recipient's code goes
// on opening it. While a retrieval runs it is the same one that goes on. Errors:
// DELIVERY_NOT_FOUND, VALIDATION_FAILED, DELIVERY_STATE_CONFLICT (nothing lies inside, it is
// not overdue yet, or another opening runs on a door), DEVICE_OFFLINE, DEVICE_TIMEOUT.
// Source: lockers-devices 5, operation 25.
func (s partners) Retrieve(ctx context.Context, c cloud.Caller, in RetrieveInput) (RetrieveOutput, error) {
	wait := defaultWait
	if in.WaitSeconds != nil {
		wait = *in.WaitSeconds
	}
	var cmd cloud.Command
	_, err := s.decide(ctx, c, in.Delivery, func(w *Work, d *cloud.Delivery) (err error) {
		cmd, err = retrieving{w.requests}.open(c, d, in)
		if err != nil {
			return err
		}
		out, err := w.pending(d, cmd)
		w.ch.Answer, w.ch.Unfinished = RetrieveOutput{Result: true, Opening: out.Opening, Pending: true}, true
		return err
	})
	if err != nil {
		return RetrieveOutput{}, err
	}
	got, err := s.await(ctx, cmd, time.Duration(wait)*time.Second)
	return RetrieveOutput{Result: err == nil, Opening: got.Opening, Pending: got.Pending}, err
}

// retrieving is the work of one retrieval of a delivery.
type retrieving struct{ requests }

func (w retrieving) open(c cloud.Caller, d *cloud.Delivery, in RetrieveInput) (cmd cloud.Command, err error) {
	if !waits(*d) || in.Reason == retrieveOverdue && !isOverdue(*d) || in.Reason == retrieveCollection && !d.IsOutgoing() {
		return cmd, conflict(*d)
	}
	o, err := w.lastOpening(d)
	if err != nil {
		return cmd, err
	}
	if err := w.online(); err != nil {
		return cmd, err
	}
	if in.Courier != nil {
		d.Courier = in.Courier
		w.touch(d)
	}
	if o != nil && o.Kind == wire.OpenStaff && !o.Ended() {
		return w.openAgain(d, *o)
	}
	o = w.newOpening(wire.OpenStaff, d.ID, requester(c), in.Reason)
	if err := w.addDoorsOf(d, o); err != nil {
		return cmd, err
	}
	// The cabinet opens as for staff: whatever lies inside, and with no word on it.
	body := wire.OpenDoors{OpeningID: o.ID, Kind: o.Kind, Doors: doorsOf(*o), SessionSeconds: uint(w.s.cfg.Session / time.Second)}
	return w.send(o.ID, wire.CmdOpenDoors, body, doorsOf(*o), commandLife)
}

// addDoorsOf gives an opening the doors behind which packages of a deposited delivery lie. It
// refuses with DELIVERY_STATE_CONFLICT when there are none, or another opening runs on one.
func (w *handling) addDoorsOf(d *cloud.Delivery, o *cloud.Opening) error {
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	running, err := w.runningDoors("")
	if err != nil {
		return err
	}
	for _, cell := range cells {
		refs := lying(d, cell.GridID)
		if len(refs) == 0 {
			continue
		}
		if id := running[cell.Door]; id != "" {
			return disturbed(d, id)
		}
		o.Doors = append(o.Doors, cloud.OpeningDoor{Door: cell.Door, GridID: cell.GridID, Packages: refs, Status: "unknown"})
	}
	if len(o.Doors) == 0 {
		return conflict(*d)
	}
	w.openings[o.ID] = o
	w.touch(o)
	return nil
}

// last is the retrieval that was the last to open doors of a delivery, nil when there was
// none, or they were opened for another reason since.
func (w retrieving) last(d *cloud.Delivery) (*cloud.Opening, error) {
	o, err := w.newestOpening(d, func(o cloud.Opening) bool {
		return o.State == cloud.OpeningSettled || slices.ContainsFunc(o.Doors, func(od cloud.OpeningDoor) bool { return !od.OpenedAt.IsZero() })
	})
	if err != nil || o == nil || o.Kind != wire.OpenStaff {
		return nil, err
	}
	return o, nil
}

// disturbed is the refusal while another opening runs on a door.
func disturbed(d *cloud.Delivery, opening string) error {
	return &cloud.Error{Kind: cloud.Conflict, Code: "DELIVERY_STATE_CONFLICT", Details: map[string]any{"status": d.Status, "opening_id": opening}}
}

// RetrieveConfirmInput says which packages a courier has taken back: all behind the doors
// that the retrieval opened when it names none.
type RetrieveConfirmInput struct {
	Delivery DeliveryKey `path:"id" json:"-"`
	Packages []string    `json:"packages" max:"10" item_max:"64" doc:"Tracking numbers of the packages that were taken; all behind the opened doors when absent"`
}

// RetrieveConfirm ends the packages that a courier has taken: their compartments are
// free at once, and the cabinet is ordered to forget them. A delivery of which nothing is
// left is picked up by its courier, and its codes stop working; the rest of another waits
// with its code. One that was retrieved already is shown as it is. Errors:
// DELIVERY_NOT_FOUND, PACKAGE_NOT_IN_DELIVERY, DELIVERY_STATE_CONFLICT (the last to
// open the door was no retrieval, an opening runs on it, it is known to be open, or a sensor
// sees something behind it). Source: lockers-devices 5, operation 26.
func (s partners) RetrieveConfirm(ctx context.Context, c cloud.Caller, in RetrieveConfirmInput) (out DeliveryOutput, err error) {
	id, err := s.decide(ctx, c, in.Delivery, func(w *Work, d *cloud.Delivery) error { return retrieving{w.requests}.confirm(c, d, in.Packages) })
	if err != nil {
		return out, err
	}
	return s.show(ctx, id)
}

func (w retrieving) confirm(c cloud.Caller, d *cloud.Delivery, named []string) error {
	for _, number := range named {
		if findPackage(d, number) == nil {
			return cloud.E(cloud.Conflict, "PACKAGE_NOT_IN_DELIVERY")
		}
	}
	if d.Status == cloud.DeliveryPickedUp && d.PickedUpBy == byCourier {
		return nil
	}
	o, err := w.last(d)
	if err != nil {
		return err
	}
	// The cabinet forgets a delivery once no opening runs on its door.
	if !waits(*d) || o == nil || !o.Ended() && w.received.Before(o.EndsAt) {
		return conflict(*d)
	}
	taken, err := w.packages(d, o, named)
	if err != nil {
		return err
	}
	r := w.stated(wire.KindOpeningEnded)
	if err := w.end(r, d, o, taken); err != nil {
		return err
	}
	w.touch(d)
	w.ch.Audits = append(w.ch.Audits, cloud.Audit{BusinessID: d.BusinessID, At: w.received, Actor: actor(c), Action: "delivery_retrieved", Target: d.Number})
	if slices.ContainsFunc(d.Packages, func(p cloud.Package) bool { return p.Status == cloud.PackageInCompartment }) {
		return w.activate(d)
	}
	return w.endTakenBack(w.received, d, o, byCourier, "remote")
}

// Who took a delivery back that its recipient did not collect.
const (
	byCourier = "courier" // of its partner
	byStaff   = "staff"   // how is the reason in the registry
)

// Reasons of removals by which a package goes on to a person.
const (
	overdueReturn = "overdue_return" // after the time to collect
	handedOver    = "handover"
)

// endTakenBack ends a delivery of which everything was taken out by others than its recipient.
// Its codes die.
func (w *handling) endTakenBack(at time.Time, d *cloud.Delivery, o *cloud.Opening, by, how string) error {
	resolution, closer := noAction, "partner"
	if by == byStaff {
		closer = "staff"
		if how == overdueReturn {
			resolution = packageReturned
		}
	}
	if err := w.closeOverdue(d, resolution, closer); err != nil {
		return err
	}
	d.Status, d.PickupCodeActive, d.PickedUpAt = cloud.DeliveryPickedUp, false, at
	d.PickedUpBy, d.PickedUpMethod = by, how
	if d.IsOutgoing() && by == byCourier {
		if err := w.notifySender(d, cloud.NotifyParcelCollected); err != nil {
			return err
		}
	}
	if err := w.releaseCells(d); err != nil {
		return err
	}
	if err := w.revoke(d, deliveryKinds...); err != nil {
		return err
	}
	return w.s.addDeliveryEvent(w.v, &w.ch, EventPickedUp, at, *d, o, nil)
}

// packages are the packages that lie behind the doors which a retrieval has opened, of
// those that were named. No such door may be known to stand open.
func (w retrieving) packages(d *cloud.Delivery, o *cloud.Opening, named []string) (out []*cloud.Package, err error) {
	running, err := w.runningDoors(o.ID)
	if err != nil {
		return nil, err
	}
	for i := range d.Packages {
		p := &d.Packages[i]
		if len(named) > 0 && !slices.Contains(named, p.TrackingNumber) || p.Status == cloud.PackagePickedUp {
			continue
		}
		at := slices.IndexFunc(o.Doors, func(od cloud.OpeningDoor) bool { return od.GridID == p.GridID && !od.OpenedAt.IsZero() })
		if p.Status != cloud.PackageInCompartment || at < 0 {
			if len(named) > 0 {
				return nil, conflict(*d)
			}
			continue
		}
		cell, err := w.cell(o.Doors[at].Door)
		if err != nil {
			return nil, err
		}
		if cell == nil {
			return nil, conflict(*d)
		}
		if err := areShut(w.rows, d, o.Doors[at:at+1]); err != nil {
			return nil, err
		}
		if id := running[cell.Door]; id != "" {
			return nil, disturbed(d, id)
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, conflict(*d)
	}
	return out, w.seenEmpty(d, out)
}

// seenEmpty refuses with DELIVERY_STATE_CONFLICT where a sensor sees something in a
// compartment of which everything is said to be taken.
func (w retrieving) seenEmpty(d *cloud.Delivery, taken []*cloud.Package) error {
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	for _, cell := range cells {
		gone := 0
		for _, p := range taken {
			if p.GridID == cell.GridID {
				gone++
			}
		}
		if gone > 0 && gone == len(lying(d, cell.GridID)) && cell.Occupied != nil && *cell.Occupied {
			return &cloud.Error{Kind: cloud.Conflict, Code: "DELIVERY_STATE_CONFLICT", Details: map[string]any{"status": d.Status, "grid_id": cell.GridID, "occupied": true}}
		}
	}
	return nil
}

// end ends packages that were taken back, in registry and timeline, and lets their
// compartments go.
func (w retrieving) end(r Occurrence, d *cloud.Delivery, o *cloud.Opening, taken []*cloud.Package) error {
	reason := handedOver
	if o.Reason == retrieveOverdue {
		reason = overdueReturn
	}
	status, code := "removed", otep.RemovedFromDevice
	if d.IsOutgoing() {
		status, reason, code = "picked_up", "", collectedCode(*d)
	}
	for _, p := range taken {
		p.Status = cloud.PackagePickedUp
		if err := w.endRow(r, d, p, status, reason); err != nil {
			return err
		}
		if err := w.addPackageEvent(r, d, p, code); err != nil {
			return err
		}
	}
	for _, od := range o.Doors {
		if len(lying(d, od.GridID)) > 0 || !slices.ContainsFunc(taken, func(p *cloud.Package) bool { return p.GridID == od.GridID }) {
			continue
		}
		cell, err := w.cell(od.Door)
		if err != nil || cell == nil {
			return err
		}
		if cell.DeliveryID == d.ID {
			cell.DeliveryID = 0
			if cell.State == cloud.GridOccupied {
				cell.State = cloud.GridFree
			}
		}
		w.touch(cell)
		if _, err := w.send("", wire.CmdClear, wire.DoorReason{Door: od.Door, Reason: "retrieved", DeliveryRef: d.Number}, []uint{od.Door}, longCommandLife); err != nil {
			return err
		}
	}
	return nil
}
