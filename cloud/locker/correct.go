package locker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// maxCorrections is how often a delivery's compartments may be reopened.
const maxCorrections = 3

// CorrectInput asks for compartments of a deposit to be opened once more. None
// named: all that hold a package.
type CorrectInput struct {
	Delivery     DeliveryKey    `path:"id" json:"-"`
	Compartments []cloud.GridID `json:"compartments"`
	Reason       string         `json:"reason" required:"true" max:"255"`
}

// CorrectionBody is the block "correction".
type CorrectionBody struct {
	CorrectionID string         `json:"correction_id"`
	WindowEndsAt *string        `json:"window_ends_at"`
	Reason       string         `json:"reason"`
	RequestedBy  string         `json:"requested_by"`
	Compartments []cloud.GridID `json:"compartments"`
}

// CorrectOutput is the answer to a correction. Pending is set while the outcome
// is not known.
type CorrectOutput struct {
	Result     bool            `json:"result"`
	Opening    *OpeningBody    `json:"opening"`
	Correction *CorrectionBody `json:"correction"`
	Pending    bool            `json:"-"`
}

// correctionBody shows the correction that an opening is; nil for others.
func (s *core) correctionBody(d cloud.Delivery, o *cloud.Opening, b cloud.Business) *CorrectionBody {
	if o == nil || o.Kind != wire.OpenCorrection {
		return nil
	}
	body := &CorrectionBody{CorrectionID: "cor_" + strings.TrimPrefix(o.ID, "op_"), WindowEndsAt: cloud.Stamp(d.DepositedAt.Add(b.Settings.Correction(s.cfg.Correction)), b.Location()),
		Reason: o.Reason, RequestedBy: o.Requester.Type, Compartments: []cloud.GridID{}}
	for _, od := range o.Doors {
		body.Compartments = append(body.Compartments, od.GridID)
	}
	return body
}

// Correct opens compartments of a deposit once more, inside the correction
// window. Meanwhile the pickup code does not work; closing the doors confirms
// the deposit again. While a correction runs it is the same one that goes on.
// Errors: DELIVERY_NOT_FOUND, VALIDATION_FAILED, DELIVERY_STATE_CONFLICT,
// CORRECTION_WINDOW_CLOSED, CORRECTION_LIMIT, GRID_NOT_FOUND, DEVICE_OFFLINE,
// DEVICE_TIMEOUT.
func (s partners) Correct(ctx context.Context, c cloud.Caller, in CorrectInput) (CorrectOutput, error) {
	var cmd cloud.Command
	id, err := s.decide(ctx, c, in.Delivery, func(w *Work, d *cloud.Delivery) (err error) {
		if cmd, err = w.correct(c, d, in); err != nil {
			return err
		}
		opened, err := w.pending(d, cmd)
		if err != nil {
			return err
		}
		b, err := w.v.Business(d.BusinessID)
		if err != nil {
			return err
		}
		o, err := w.opening(cmd.OpeningID)
		w.ch.Answer = CorrectOutput{Result: true, Opening: opened.Opening, Correction: s.correctionBody(*d, o, b), Pending: true}
		w.ch.Unfinished = true
		return err
	})
	if err != nil {
		return CorrectOutput{}, err
	}
	opened, err := s.await(ctx, cmd, defaultWait*time.Second)
	if err != nil {
		return CorrectOutput{}, err
	}
	shown, err := s.show(ctx, id)
	return CorrectOutput{Result: err == nil, Opening: opened.Opening, Correction: shown.Delivery.Correction, Pending: opened.Pending}, err
}

func (w requests) correct(c cloud.Caller, d *cloud.Delivery, in CorrectInput) (cloud.Command, error) {
	b, err := w.v.Business(d.BusinessID)
	if err != nil {
		return cloud.Command{}, err
	}
	last, err := w.lastOpening(d)
	if err != nil {
		return cloud.Command{}, err
	}
	running := last != nil && !last.Ended() && last.Kind == wire.OpenCorrection
	switch {
	case d.Status == cloud.DeliveryCorrecting && running:
	case d.Status != cloud.DeliveryDelivered:
		return cloud.Command{}, conflict(*d)
	case w.received.After(d.DepositedAt.Add(b.Settings.Correction(w.s.cfg.Correction))):
		return cloud.Command{}, cloud.E(cloud.Conflict, "CORRECTION_WINDOW_CLOSED")
	case d.Corrections >= maxCorrections:
		return cloud.Command{}, cloud.E(cloud.Conflict, "CORRECTION_LIMIT")
	}
	if err := w.online(); err != nil {
		return cloud.Command{}, err
	}
	if running {
		return w.openAgain(d, *last)
	}
	cells, err := w.allCells()
	if err != nil {
		return cloud.Command{}, err
	}
	var chosen []*cloud.Compartment
	for _, cell := range cells {
		if cell.DeliveryID == d.ID && len(packagesIn(d, cell.GridID)) > 0 && (len(in.Compartments) == 0 || slices.Contains(in.Compartments, cell.GridID)) {
			chosen = append(chosen, cell)
		}
	}
	for _, g := range in.Compartments {
		if !slices.ContainsFunc(chosen, func(x *cloud.Compartment) bool { return x.GridID == g }) {
			return cloud.Command{}, cloud.E(cloud.NotFound, "GRID_NOT_FOUND") // only the delivery's own
		}
	}
	if len(chosen) == 0 {
		return cloud.Command{}, conflict(*d)
	}
	return w.openCells(c, d, wire.OpenCorrection, chosen, "", in.Reason)
}

// notCorrected ends a correction that settled nothing: what lies inside stays
// as it was, and the code works again.
func (w reports) notCorrected(r Occurrence, o *cloud.Opening, d *cloud.Delivery) error {
	if d.Status != cloud.DeliveryCorrecting {
		return nil
	}
	d.Status, d.PickupCodeActive = cloud.DeliveryDelivered, !d.IsOutgoing()
	out := false
	for i := range d.Packages {
		p := &d.Packages[i]
		if p.Status == cloud.PackageCorrecting {
			p.Status = cloud.PackageInCompartment
		}
		if p.Status == cloud.PackageFailed && p.GridID != 0 { // reported as taken out meanwhile
			p.GridID, out = 0, true
			if err := errors.Join(w.notIn(r, d, p), w.trackLoss(r, o, d, p)); err != nil {
				return err
			}
		}
	}
	w.touch(d)
	if err := w.activate(d); err != nil { // one that was listed meanwhile waited for the end of the correction
		return err
	}
	if err := w.s.addDeliveryEvent(w.v, &w.ch, EventDelivered, r.OccurredAt, *d, o, nil); err != nil || !out {
		return err
	}
	return w.s.addDeliveryEvent(w.v, &w.ch, EventDeliveryFailed, r.OccurredAt, *d, o, nil)
}

// notIn ends the registry row of a package that is not, or no longer, inside.
func (w *handling) notIn(r Occurrence, d *cloud.Delivery, p *cloud.Package) error {
	return w.endRow(r, d, p, "removed", "anomaly")
}

// endRow ends the registry row of a package, removed for a reason or picked up.
func (w *handling) endRow(r Occurrence, d *cloud.Delivery, p *cloud.Package, status, removal string) error {
	rows, err := w.deviceOrders(d.ID)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Tracking == p.TrackingNumber && row.EndedAt.IsZero() {
			row.Status, row.NextActor, row.RemovalReason, row.EndedAt = status, "", removal, r.OccurredAt
			w.touch(row)
		}
	}
	return nil
}

// takenOut ends a delivery whose packages were taken out in a correction.
func (w *handling) takenOut(r Occurrence, o *cloud.Opening, d *cloud.Delivery) error {
	d.FailureCode = notDeposited
	return w.fail(r, o, d)
}
