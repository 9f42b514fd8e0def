package locker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/wire"
)

// PassSigner makes the text of a signed QR code; it is the one of commands.
type PassSigner interface {
	SignPass(p wire.Pass) (string, error)
}

const (
	// passEarly is how much earlier a signed QR code is good than it is made: the
	// cabinet's clock may be late by some seconds.
	passEarly = 10 * time.Second
	// defaultCourierHours is how long a courier's is good.
	defaultCourierHours = 4
)

// CourierQRInput asks for a courier's signed QR code.
type CourierQRInput struct {
	Delivery DeliveryKey `path:"id" json:"-"`
	Hours    *int        `json:"hours" min:"1" max:"8" doc:"How long it can be used; 4 when absent, and never beyond deliver_before"`
}

// OpeningQRInput asks for a signed QR code that opens compartments for staff.
type OpeningQRInput struct {
	Device cloud.DeviceID `path:"id" json:"-"`
	Grids  []cloud.GridID `json:"grid_ids" required:"true" max:"10" doc:"Compartments of this cabinet, 1 to 10"`
	Reason string         `json:"reason" required:"true" max:"255" doc:"Why; the door history keeps it with your name"`
}

// QROutput is a signed QR code.
type QROutput struct {
	Result    bool           `json:"result"`
	QR        string         `json:"qr" doc:"Text of the QR code: letters and digits for a symbol in alphanumeric mode. It opens doors and is shown once; empty in a dry run."`
	QRID      string         `json:"qr_id" doc:"Names the QR code in the audit trail; it opens nothing"`
	Grids     []cloud.GridID `json:"grid_ids" doc:"Compartments that it opens"`
	ExpiresAt string         `json:"expires_at"`
}

// IssueCourierQR gives out a signed QR code that opens the compartments of a delivery
// once for its deposit, also when the cabinet is offline and has not heard of the
// delivery. Compartments are reserved as for an opening from afar. Errors:
// DELIVERY_NOT_FOUND, DELIVERY_STATE_CONFLICT (also while an opening runs),
// DEVICE_DISABLED, NO_COMPARTMENT, QR_NOT_SUPPORTED, QR_TOO_LARGE.
func (s *Service) IssueCourierQR(ctx context.Context, c cloud.Caller, in CourierQRInput) (out QROutput, err error) {
	pass, err := newPass()
	if err != nil {
		return out, err
	}
	_, err = s.decide(ctx, c, in.Delivery, func(w *Work, d *cloud.Delivery) (err error) {
		if err := coverDelivery(w, &pass, d, in); err != nil {
			return err
		}
		by := requester(c)
		if c.Account.Type.IsStaff() {
			by = employee(c)
		}
		out, err = issuePass(w, c, pass, cloud.QRCode{DeliveryID: d.ID, IssuedBy: by}, d.Number)
		return err
	})
	return shownOnce(ctx, out, err)
}

// IssueOpeningQR gives out a signed QR code that opens compartments of a cabinet of the
// caller's business once, whatever lies inside, also when the cabinet is offline. Errors:
// DEVICE_NOT_FOUND, DEVICE_HAS_NO_DOORS, GRID_NOT_FOUND, VALIDATION_FAILED,
// DEVICE_DISABLED, QR_NOT_SUPPORTED.
func (s *Service) IssueOpeningQR(ctx context.Context, c cloud.Caller, in OpeningQRInput) (out QROutput, err error) {
	pass, err := newPass()
	if err != nil {
		return out, err
	}
	now := time.Now().UTC()
	err = s.cfg.Store.Decide(ctx, in.Device, func(v cloud.View) (*cloud.Changes, error) {
		device, err := withDoors(v, c, in.Device)
		if err != nil {
			return nil, err
		}
		w := s.Begin(v, device, now)
		if err := coverGrids(w, &pass, in.Grids); err != nil {
			return nil, err
		}
		if out, err = issuePass(w, c, pass, cloud.QRCode{IssuedBy: employee(c), Reason: in.Reason}, device.Code); err != nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		return ch, w.Finish(ch)
	})
	return shownOnce(ctx, out, err)
}

// shownOnce is an answer that a dry run gives without the text: nothing says then that
// it was given out.
func shownOnce(ctx context.Context, out QROutput, err error) (QROutput, error) {
	if err != nil {
		return QROutput{}, err
	}
	if cloud.PreviewOf(ctx) != nil {
		out.QR = ""
	}
	return out, nil
}

func newPass() (p wire.Pass, err error) {
	p.ID = make([]byte, wire.PassIDSize)
	if _, err := rand.Read(p.ID); err != nil {
		return p, fmt.Errorf("draw the id of a QR code: %w", err)
	}
	return p, nil
}

func employee(c cloud.Caller) cloud.Requester {
	return cloud.Requester{Type: "console", ID: strconv.FormatInt(int64(c.Account.ID), 10), Name: c.Account.Name}
}

// coverDelivery makes a pass one for the deposit of a delivery. It stands for the
// newest entry of the delivery code in the cabinet's list, so that a list in which that
// is revoked ends it as well.
func coverDelivery(w *Work, p *wire.Pass, d *cloud.Delivery, in CourierQRInput) error {
	last, err := w.lastOpening(d)
	if err != nil {
		return err
	}
	waits := d.Status == cloud.DeliveryCreated || d.Status == cloud.DeliveryDoorsOpened
	if !waits || last != nil && !last.Ended() || !w.received.Before(d.DeliverBefore) {
		return conflict(*d)
	}
	cells, err := w.chooseCells(d, OpenInput{})
	if err != nil {
		return err
	}
	w.touch(d)
	if err := w.place(d); err != nil {
		return err
	}
	row, err := w.newest(d, wire.CodeDelivery)
	if err != nil {
		return err
	}
	if row == nil || !row.DroppedAt.IsZero() {
		return conflict(*d)
	}
	hours := defaultCourierHours
	if in.Hours != nil {
		hours = *in.Hours
	}
	p.Kind, p.DeliveryRef, p.CodeNumber, p.Generation = wire.OpenDeposit, d.Number, row.Entry.Number, max(w.device.CodeGeneration, 1)
	p.Doors, p.Packages = nil, map[uint][]string{}
	for _, c := range cells {
		p.Doors = append(p.Doors, c.Door)
		p.Packages[c.Door] = packagesIn(d, c.GridID)
	}
	ends := w.received.Add(time.Duration(hours) * time.Hour)
	if d.DeliverBefore.Before(ends) {
		ends = d.DeliverBefore
	}
	p.NotAfter = ends.UnixNano()
	p.NotBefore = max(w.received.Add(-passEarly).UnixNano(), p.NotAfter-int64(wire.MaxCourierPass))
	return nil
}

// coverGrids makes a pass one of staff.
func coverGrids(w *Work, p *wire.Pass, grids []cloud.GridID) error {
	if len(grids) == 0 {
		f := newFields()
		f.Say("grid_ids", check.MessageRequired)
		return f.Err()
	}
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	p.Kind, p.Doors = wire.OpenStaff, nil
	for _, id := range slices.Compact(slices.Sorted(slices.Values(grids))) {
		at := slices.IndexFunc(cells, func(x *cloud.Compartment) bool { return x.GridID == id })
		if at < 0 {
			return cloud.E(cloud.NotFound, "GRID_NOT_FOUND")
		}
		p.Doors = append(p.Doors, cells[at].Door)
	}
	p.NotBefore = w.received.Add(-passEarly).UnixNano()
	p.NotAfter = p.NotBefore + int64(wire.MaxStaffPass)
	return nil
}

// issuePass signs a pass and keeps that it was given out.
func issuePass(w *Work, c cloud.Caller, p wire.Pass, row cloud.QRCode, target string) (out QROutput, err error) {
	switch {
	case w.device.Disabled:
		return out, cloud.E(cloud.Conflict, "DEVICE_DISABLED")
	case w.device.Protocol != cloud.ProtocolMQTT || w.s.cfg.Passes == nil:
		return out, cloud.E(cloud.Conflict, "QR_NOT_SUPPORTED")
	}
	p.DeviceCode = w.device.Code
	text, err := w.s.cfg.Passes.SignPass(p)
	if errors.Is(err, wire.ErrBad) {
		return out, cloud.E(cloud.Conflict, "QR_TOO_LARGE")
	}
	if err != nil {
		return out, err
	}
	biz, err := w.v.Business(w.device.BusinessID)
	if err != nil {
		return out, err
	}
	id, err := w.v.NewID(cloud.QRCodeIDs)
	if err != nil {
		return out, err
	}
	ends := time.Unix(0, p.NotAfter).UTC()
	out = QROutput{Result: true, QR: text, QRID: hex.EncodeToString(p.ID), Grids: []cloud.GridID{}, ExpiresAt: *cloud.Stamp(ends, biz.Location())}
	for _, n := range p.Doors {
		cell, err := w.cell(n)
		if err != nil {
			return out, err
		}
		out.Grids = append(out.Grids, cell.GridID)
	}
	row.Begin(id, w.device.BusinessID, w.received)
	row.PassID, row.DeviceID, row.Kind, row.EndsAt = out.QRID, w.device.ID, p.Kind, ends
	w.ch.Rows = append(w.ch.Rows, row)
	return out, w.auditStaff(c, "qr_code_issued", target, struct {
		QRID    string         `json:"qr_id"`
		Grids   []cloud.GridID `json:"grid_ids"`
		Reason  string         `json:"reason,omitempty"`
		Expires string         `json:"expires_at"`
	}{out.QRID, out.Grids, row.Reason, out.ExpiresAt})
}

// useQRCode notes the opening that a signed QR code has begun, and gives a staff opening
// the name of who asked for it. A code that is not known was given out by a cloud that
// has forgotten it since.
func (w reports) useQRCode(r Occurrence, o *cloud.Opening, pass []byte) error {
	if len(pass) != wire.PassIDSize {
		return nil
	}
	row, err := cloud.Find(w.v, cloud.QRCode{PassID: hex.EncodeToString(pass)})
	if errors.Is(err, cloud.ErrNotFound) || err == nil && row.DeviceID != w.device.ID {
		return nil
	}
	if err != nil {
		return err
	}
	if o.Kind == wire.OpenStaff {
		o.Requester.ID, o.Requester.Name, o.Reason = row.IssuedBy.ID, row.IssuedBy.Name, row.Reason
	}
	if row.OpeningID == "" {
		row.OpeningID, row.UsedAt = o.ID, r.OccurredAt
		row.Touch(w.received)
		w.ch.Rows = append(w.ch.Rows, row)
	}
	return nil
}
