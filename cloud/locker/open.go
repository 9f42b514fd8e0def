package locker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// OpenInput asks for the doors of a delivery.
type OpenInput struct {
	Delivery     DeliveryKey    `path:"id" json:"-"`
	Compartments []cloud.GridID `json:"compartments"`
	Sizes        []string       `json:"sizes" item_enum:"S,M,L,XL"`
	Courier      *cloud.Courier `json:"courier"`
	WaitSeconds  *int           `json:"wait_seconds" min:"0" max:"20"`
}

// OpenOutput is the answer. Pending is set while the outcome is not known:
// doors are shown as unknown.
type OpenOutput struct {
	Result     bool         `json:"result"`
	Opening    *OpeningBody `json:"opening"`
	PickupCode *string      `json:"pickup_code"`
	Pending    bool         `json:"-"`
}

// OpenDoors opens a delivery's compartments from afar and waits for what the
// cabinet says. While an opening of the delivery runs it is the same opening
// that goes on. Errors: DELIVERY_NOT_FOUND, DELIVERY_STATE_CONFLICT,
// DEVICE_OFFLINE, NO_COMPARTMENT, PARCEL_TOO_LARGE, GRID_NOT_FREE, DEVICE_TIMEOUT.
func (s partners) OpenDoors(ctx context.Context, c cloud.Caller, in OpenInput) (OpenOutput, error) {
	wait := defaultWait
	if in.WaitSeconds != nil {
		wait = *in.WaitSeconds
	}
	var cmd cloud.Command
	_, err := s.decide(ctx, c, in.Delivery, func(w *Work, d *cloud.Delivery) (err error) {
		if cmd, err = w.open(c, d, in); err != nil {
			return err
		}
		out, err := w.pending(d, cmd)
		w.ch.Answer, w.ch.Unfinished = out, true
		return err
	})
	if err != nil {
		return OpenOutput{}, err
	}
	return s.await(ctx, cmd, time.Duration(wait)*time.Second)
}

// pending is the answer while it is not known what becomes of a command.
func (w requests) pending(d *cloud.Delivery, cmd cloud.Command) (OpenOutput, error) {
	o, err := w.opening(cmd.OpeningID)
	if err != nil {
		return OpenOutput{}, err
	}
	cells, err := cellsOf(w.v, d.DeviceID, *o)
	if err != nil {
		return OpenOutput{}, err
	}
	b, err := w.v.Business(d.BusinessID)
	if err != nil {
		return OpenOutput{}, err
	}
	codes, err := w.s.openCodes(*d)
	if err != nil {
		return OpenOutput{}, err
	}
	_, pickup := shownCodes(*d, codes)
	return OpenOutput{Result: true, Opening: openingBody(*o, cells, b.Location()), PickupCode: pickup, Pending: true}, nil
}

// open decides on a remote opening: delivery change and command row together.
func (w requests) open(c cloud.Caller, d *cloud.Delivery, in OpenInput) (cloud.Command, error) {
	running, err := w.mayOpen(d)
	if err != nil {
		return cloud.Command{}, err
	}
	if in.Courier != nil {
		d.Courier = in.Courier
		w.touch(d)
	}
	if running != nil {
		return w.openAgain(d, *running)
	}
	w.retry(d)
	cells, err := w.chooseCells(d, in)
	if err != nil {
		return cloud.Command{}, err
	}
	return w.openCells(c, d, wire.OpenDeposit, cells, "", "")
}

// mayOpen says whether a delivery's compartments may be opened for a deposit,
// and gives the opening for one that runs already.
func (w requests) mayOpen(d *cloud.Delivery) (running *cloud.Opening, err error) {
	switch d.Status {
	case cloud.DeliveryCreated, cloud.DeliveryDoorsOpened, cloud.DeliveryFailed:
	default:
		return nil, conflict(*d)
	}
	last, err := w.lastOpening(d)
	if err != nil {
		return nil, err
	}
	if last != nil && !last.Ended() && last.Kind.IsDeposit() {
		running = last
	} else if !w.received.Before(d.DeliverBefore) {
		return nil, conflict(*d)
	}
	return running, w.online()
}

// retry gives the packages of a delivery that had failed another chance.
func (w requests) retry(d *cloud.Delivery) {
	if d.Status != cloud.DeliveryFailed {
		return
	}
	for i := range d.Packages {
		d.Packages[i].Status, d.Packages[i].FailureCode = cloud.PackageCreated, ""
	}
	w.touch(d)
}

// openCells starts an opening of a delivery's compartments. replaces names the
// running opening that it takes the place of, if any.
func (w requests) openCells(c cloud.Caller, d *cloud.Delivery, kind wire.OpeningKind, cells []*cloud.Compartment, replaces, reason string) (cloud.Command, error) {
	w.touch(d)
	if kind != wire.OpenCorrection {
		if err := w.place(d); err != nil {
			return cloud.Command{}, err
		}
	}
	code, err := w.newest(d, pickupKind(*d))
	if err != nil {
		return cloud.Command{}, err
	}
	o := w.newOpening(kind, d.ID, requester(c), reason)
	packages := map[uint][]string{}
	for _, cell := range cells {
		refs := packagesIn(d, cell.GridID)
		packages[cell.Door] = refs
		o.Doors = append(o.Doors, cloud.OpeningDoor{Door: cell.Door, GridID: cell.GridID, Packages: refs, Status: "unknown"})
	}
	w.openings[o.ID] = o
	w.touch(o)
	body := wire.OpenDoors{OpeningID: o.ID, Kind: kind, Doors: doorsOf(*o), SessionSeconds: uint(w.s.cfg.Session / time.Second), DeliveryRef: d.Number,
		Packages: packages, Replaces: replaces}
	if code != nil && code.DroppedAt.IsZero() {
		body.Code = &code.Entry
	}
	return w.send(o.ID, wire.CmdOpenDoors, body, doorsOf(*o), commandLife)
}

// newOpening is an opening of the device's doors that is asked for now, of a delivery or of 0.
func (w *rows) newOpening(kind wire.OpeningKind, d cloud.DeliveryID, by cloud.Requester, reason string) *cloud.Opening {
	return &cloud.Opening{ID: newOpeningID(), BusinessID: w.device.BusinessID, DeviceID: w.device.ID, DeliveryID: d, Kind: kind, Requester: by,
		Reason: reason, State: cloud.OpeningRequested, RequestedAt: w.received, EndsAt: w.received.Add(w.s.cfg.Session)}
}

func conflict(d cloud.Delivery) error {
	details := map[string]any{"status": d.Status}
	if d.IsOutgoing() {
		details["purpose"] = d.Purpose
	}
	return &cloud.Error{Kind: cloud.Conflict, Code: "DELIVERY_STATE_CONFLICT", Details: details}
}

func newOpeningID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return "op_" + hex.EncodeToString(b[:])
}

func doorsOf(o cloud.Opening) []uint {
	out := make([]uint, len(o.Doors))
	for i, d := range o.Doors {
		out[i] = d.Door
	}
	return out
}

// openAgain sends a new command for the closed doors of a running opening.
func (w requests) openAgain(d *cloud.Delivery, o cloud.Opening) (cloud.Command, error) {
	var doors []uint
	for _, od := range o.Doors {
		cell, err := w.cell(od.Door)
		if err != nil {
			return cloud.Command{}, err
		}
		if cell != nil && cell.DoorStatus != "open" {
			doors = append(doors, od.Door)
		}
	}
	if len(doors) == 0 {
		doors = doorsOf(o) // all stand open: the cabinet says so at once
	}
	body := wire.OpenDoors{OpeningID: o.ID, Kind: o.Kind, Doors: doors, DeliveryRef: d.Number}
	return w.send(o.ID, wire.CmdOpenDoors, body, doors, commandLife)
}

// chooseCells are the compartments of an opening: those the caller named,
// those reserved, or the first that fit.
func (w requests) chooseCells(d *cloud.Delivery, in OpenInput) ([]*cloud.Compartment, error) {
	cells, err := w.allCells()
	if err != nil {
		return nil, err
	}
	byGrid := map[cloud.GridID]*cloud.Compartment{}
	for _, c := range cells {
		byGrid[c.GridID] = c
	}
	if len(in.Compartments) > 0 {
		if err := w.moveTo(d, cells, in.Compartments); err != nil {
			return nil, err
		}
	}
	for i, size := range in.Sizes {
		if i < len(d.Packages) {
			d.Packages[i].Size = size
		}
	}
	for i := range d.Packages {
		p := &d.Packages[i]
		if c, ok := byGrid[p.GridID]; ok && (c.DeliveryID != d.ID || c.State == cloud.GridBlocked || c.OutOfUse()) {
			p.GridID = 0 // taken away meanwhile
		}
	}
	taken, err := reserve(cells, d)
	if err != nil {
		return nil, err
	}
	for _, c := range taken {
		w.touch(c)
	}
	var out []*cloud.Compartment
	for _, p := range d.Packages {
		if c := byGrid[p.GridID]; !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out, nil
}

// moveTo puts a delivery's packages into the compartments that were named, and
// lets go of others that were reserved for it.
func (w requests) moveTo(d *cloud.Delivery, cells []*cloud.Compartment, grids []cloud.GridID) error {
	for i, g := range grids {
		at := slices.IndexFunc(cells, func(c *cloud.Compartment) bool { return c.GridID == g })
		if at < 0 {
			return cloud.E(cloud.NotFound, "GRID_NOT_FOUND")
		}
		c := cells[at]
		if (c.State != cloud.GridFree || !c.PickupEnabled) && c.DeliveryID != d.ID || c.State == cloud.GridBlocked || c.OutOfUse() {
			return cloud.E(cloud.Conflict, "GRID_NOT_FREE")
		}
		if i < len(d.Packages) {
			c.State, c.DeliveryID = cloud.GridReserved, d.ID
			w.touch(c)
		}
	}
	for i := range d.Packages {
		d.Packages[i].GridID = grids[min(i, len(grids)-1)]
	}
	for _, g := range grids {
		// Their size is a word that the partner may have reason to pass over; measures are not.
		at := slices.IndexFunc(cells, func(c *cloud.Compartment) bool { return c.GridID == g })
		packages := packagesFor(d.Packages, g)
		for i := range packages {
			packages[i].Size = ""
		}
		if !takes(*cells[at], packages...) {
			return tooLargeFor(*cells[at])
		}
	}
	return w.releaseSpare(d)
}

// releaseSpare lets go of compartments that are reserved for a delivery and
// that none of its packages is for.
func (w *handling) releaseSpare(d *cloud.Delivery) error {
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	for _, c := range cells {
		if c.DeliveryID == d.ID && c.State == cloud.GridReserved && len(packagesIn(d, c.GridID)) == 0 {
			c.State, c.DeliveryID = cloud.GridFree, 0
			w.touch(c)
		}
	}
	return nil
}
