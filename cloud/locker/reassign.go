package locker

import (
	"context"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/wire"
)

// ReassignInput puts a delivery's packages into other compartments: all into
// the one that is named, or each compartment's into another one of at least a
// size.
type ReassignInput struct {
	Delivery DeliveryKey  `path:"id" json:"-"`
	Size     string       `json:"size" enum:"S,M,L,XL"`
	GridID   cloud.GridID `json:"grid_id"`
	Reason   string       `json:"reason" max:"255"`
}

// Reassign opens other compartments for a delivery in place of those it has,
// which are let go: at once, or when the cabinet has ended the opening that
// runs on them. Codes follow. Errors: DELIVERY_NOT_FOUND, VALIDATION_FAILED,
// DELIVERY_STATE_CONFLICT, GRID_NOT_FOUND, GRID_NOT_FREE, NO_COMPARTMENT,
// PARCEL_TOO_LARGE, DEVICE_OFFLINE, DEVICE_TIMEOUT.
func (s partners) Reassign(ctx context.Context, c cloud.Caller, in ReassignInput) (OpenOutput, error) {
	f := newFields()
	if in.Size == "" && in.GridID == 0 {
		f.Say("size", check.MessageRequired)
	}
	if in.Size != "" && in.GridID != 0 {
		f.Add("grid_id", "Give size or grid_id, not both.")
	}
	if err := f.Err(); err != nil {
		return OpenOutput{}, err
	}
	var cmd cloud.Command
	_, err := s.decide(ctx, c, in.Delivery, func(w *Work, d *cloud.Delivery) (err error) {
		if cmd, err = w.reassign(c, d, in); err != nil {
			return err
		}
		out, err := w.pending(d, cmd)
		w.ch.Answer, w.ch.Unfinished = out, true
		return err
	})
	if err != nil {
		return OpenOutput{}, err
	}
	return s.await(ctx, cmd, defaultWait*time.Second)
}

func (w requests) reassign(c cloud.Caller, d *cloud.Delivery, in ReassignInput) (cloud.Command, error) {
	running, err := w.mayOpen(d)
	if err != nil {
		return cloud.Command{}, err
	}
	w.retry(d)
	cells, err := w.allCells()
	if err != nil {
		return cloud.Command{}, err
	}
	chosen, err := chooseOthers(d, cells, in)
	if err != nil {
		return cloud.Command{}, err
	}
	for _, cell := range chosen {
		w.touch(cell)
	}
	replaces := ""
	if running != nil {
		replaces = running.ID // its compartments are let go when it has ended
	} else if err := w.releaseSpare(d); err != nil {
		return cloud.Command{}, err
	}
	return w.openCells(c, d, wire.OpenReassign, chosen, replaces, in.Reason)
}

// chooseOthers moves a delivery's packages out of the compartments they were to
// go to.
func chooseOthers(d *cloud.Delivery, cells []*cloud.Compartment, in ReassignInput) (chosen []*cloud.Compartment, err error) {
	if in.GridID != 0 {
		i := slices.IndexFunc(cells, func(c *cloud.Compartment) bool { return c.GridID == in.GridID })
		if i < 0 {
			return nil, cloud.E(cloud.NotFound, "GRID_NOT_FOUND")
		}
		if !isFree(*cells[i]) {
			return nil, cloud.E(cloud.Conflict, "GRID_NOT_FREE")
		}
		var moved []cloud.Package
		for j := range d.Packages {
			if p := &d.Packages[j]; p.Status != cloud.PackageFailed {
				p.GridID = in.GridID
				moved = append(moved, *p)
			}
		}
		if !takes(*cells[i], moved...) {
			return nil, tooLargeFor(*cells[i])
		}
		cells[i].State, cells[i].DeliveryID = cloud.GridReserved, d.ID
		return cells[i : i+1], nil
	}
	other := map[cloud.GridID]*cloud.Compartment{}
	for j := range d.Packages {
		p := &d.Packages[j]
		if p.Status == cloud.PackageFailed {
			continue
		}
		cell := other[p.GridID]
		if cell == nil || p.GridID == 0 || !takes(*cell, append(packagesFor(d.Packages[:j], cell.GridID), *p)...) {
			asked := *p
			if fits(p.Size, in.Size) {
				asked.Size = in.Size
			}
			if cell = pick(cells, asked, func(*cloud.Compartment) bool { return true }); cell == nil {
				return nil, noRoom(cells, asked)
			}
			cell.State, cell.DeliveryID = cloud.GridReserved, d.ID
			other[p.GridID] = cell
			chosen = append(chosen, cell)
		}
		p.GridID = cell.GridID
	}
	return chosen, nil
}
