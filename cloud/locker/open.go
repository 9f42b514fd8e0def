package locker

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// OpenInput asks for the doors of a delivery.
type OpenInput struct {
	Delivery     DeliveryKey    `json:"-"`
	Compartments []cloud.GridID `json:"compartments"`
	Sizes        []string       `json:"sizes"`
	Courier      *cloud.Courier `json:"courier"`
	WaitSeconds  *int           `json:"wait_seconds"`
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
// DEVICE_OFFLINE, NO_COMPARTMENT, GRID_NOT_FREE, DEVICE_TIMEOUT.
func (s *Service) OpenDoors(ctx context.Context, c cloud.Caller, in OpenInput) (OpenOutput, error) {
	wait := defaultWait
	if in.WaitSeconds != nil {
		if wait = *in.WaitSeconds; wait < 0 || wait > maxWait {
			f := fields{}
			f.add("wait_seconds", "The value must be between 0 and 20.")
			return OpenOutput{}, f.err()
		}
	}
	var device cloud.DeviceID
	err := s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := find(v, c, in.Delivery)
		device = d.DeviceID
		return err
	})
	if err != nil {
		return OpenOutput{}, err
	}
	var order cloud.Command
	err = s.cfg.Store.Decide(ctx, device, func(v cloud.View) (*cloud.Changes, error) {
		ch, cmd, err := s.open(v, c, in, time.Now().UTC())
		order = cmd
		return ch, err
	})
	if err != nil {
		return OpenOutput{}, err
	}
	return s.await(ctx, order, time.Duration(wait)*time.Second)
}

// open decides on a remote opening: delivery change and command row together.
func (s *Service) open(v cloud.View, c cloud.Caller, in OpenInput, now time.Time) (*cloud.Changes, cloud.Command, error) {
	d, err := find(v, c, in.Delivery)
	if err != nil {
		return nil, cloud.Command{}, err
	}
	switch d.Status {
	case cloud.DeliveryCreated, cloud.DeliveryDoorsOpened, cloud.DeliveryFailed:
	default:
		return nil, cloud.Command{}, conflict(d)
	}
	last, err := lastOpening(v, d)
	if err != nil {
		return nil, cloud.Command{}, err
	}
	running := last != nil && !last.Ended() && last.Kind.IsDeposit()
	if !running && !now.Before(d.DeliverBefore) {
		return nil, cloud.Command{}, conflict(d)
	}
	row, err := v.Session(d.DeviceID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return nil, cloud.Command{}, err
	}
	if !row.Online {
		return nil, cloud.Command{}, cloud.E(cloud.Conflict, "DEVICE_OFFLINE")
	}
	ch := &cloud.Changes{}
	if in.Courier != nil {
		d.Courier = in.Courier
	}
	if running {
		cmd, err := s.openAgain(v, ch, d, *last, now)
		return ch, cmd, err
	}
	cells, err := s.chooseCells(v, ch, &d, in)
	if err != nil {
		return nil, cloud.Command{}, err
	}
	code, err := pickupEntry(v, d)
	if err != nil {
		return nil, cloud.Command{}, err
	}
	o := cloud.Opening{ID: newOpeningID(), BusinessID: d.BusinessID, DeviceID: d.DeviceID, DeliveryID: d.ID, Kind: wire.OpenDeposit,
		Requester: cloud.Requester{Type: "partner_api", ID: strconv.FormatInt(int64(c.Provider.ID), 10), Name: c.Provider.Name},
		State:     cloud.OpeningRequested, RequestedAt: now, EndsAt: now.Add(s.cfg.Session)}
	packages := map[uint][]string{}
	for _, cell := range cells {
		refs := packagesIn(&d, cell.GridID)
		packages[cell.Door] = refs
		o.Doors = append(o.Doors, cloud.OpeningDoor{Door: cell.Door, GridID: cell.GridID, Packages: refs, Status: "unknown"})
	}
	body := wire.OpenDoors{OpeningID: o.ID, Kind: o.Kind, Doors: doorsOf(o), SessionSeconds: uint(s.cfg.Session / time.Second), DeliveryRef: d.Number, Packages: packages, Code: code}
	cmd, err := s.commandRow(v, ch, d.DeviceID, o.ID, wire.CmdOpenDoors, body, doorsOf(o), now, commandLife)
	if err != nil {
		return nil, cloud.Command{}, err
	}
	if d.Status == cloud.DeliveryFailed {
		for i := range d.Packages {
			d.Packages[i].Status, d.Packages[i].FailureCode = cloud.PackageCreated, ""
		}
	}
	ch.Deliveries, ch.Openings = []cloud.Delivery{d}, []cloud.Opening{o}
	return ch, cmd, nil
}

func conflict(d cloud.Delivery) error {
	return &cloud.Error{Kind: cloud.Conflict, Code: "DELIVERY_STATE_CONFLICT", Details: map[string]any{"status": d.Status}}
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
func (s *Service) openAgain(v cloud.View, ch *cloud.Changes, d cloud.Delivery, o cloud.Opening, now time.Time) (cloud.Command, error) {
	var doors []uint
	for _, od := range o.Doors {
		cell, err := v.Compartment(d.DeviceID, od.Door)
		if err != nil {
			return cloud.Command{}, err
		}
		if cell.DoorStatus != "open" {
			doors = append(doors, od.Door)
		}
	}
	if len(doors) == 0 {
		doors = doorsOf(o) // all stand open: the cabinet says so at once
	}
	body := wire.OpenDoors{OpeningID: o.ID, Kind: o.Kind, Doors: doors, DeliveryRef: d.Number}
	return s.commandRow(v, ch, d.DeviceID, o.ID, wire.CmdOpenDoors, body, doors, now, commandLife)
}

// chooseCells are the compartments of an opening: those the caller named,
// those reserved, or the first that fit.
func (s *Service) chooseCells(v cloud.View, ch *cloud.Changes, d *cloud.Delivery, in OpenInput) ([]cloud.Compartment, error) {
	rows, err := v.Compartments(d.DeviceID)
	if err != nil {
		return nil, err
	}
	byGrid := map[cloud.GridID]cloud.Compartment{}
	for _, c := range rows {
		byGrid[c.GridID] = c
	}
	if len(in.Compartments) > 0 {
		if err := moveTo(d, byGrid, in.Compartments, ch); err != nil {
			return nil, err
		}
	}
	if len(in.Sizes) > 0 {
		for i := range d.Packages {
			if i < len(in.Sizes) {
				d.Packages[i].Size = in.Sizes[i]
			}
		}
	}
	for i := range d.Packages {
		p := &d.Packages[i]
		if c, ok := byGrid[p.GridID]; ok && (c.DeliveryID != d.ID || c.State == cloud.GridBlocked) {
			p.GridID = 0 // taken away meanwhile
		}
	}
	reserved, err := reserve(v, d)
	if err != nil {
		return nil, err
	}
	for _, c := range reserved {
		byGrid[c.GridID] = c
	}
	var out []cloud.Compartment
	for _, p := range d.Packages {
		c := byGrid[p.GridID]
		if !slices.ContainsFunc(out, func(o cloud.Compartment) bool { return o.GridID == c.GridID }) {
			out = append(out, c)
		}
	}
	ch.Compartments = append(ch.Compartments, reserved...)
	return out, nil
}

// moveTo puts a delivery's packages into the compartments that were named.
func moveTo(d *cloud.Delivery, byGrid map[cloud.GridID]cloud.Compartment, grids []cloud.GridID, ch *cloud.Changes) error {
	for i, g := range grids {
		c, ok := byGrid[g]
		if !ok {
			return cloud.E(cloud.NotFound, "GRID_NOT_FOUND")
		}
		if c.State != cloud.GridFree && c.DeliveryID != d.ID || c.State == cloud.GridBlocked {
			return cloud.E(cloud.Conflict, "GRID_NOT_FREE")
		}
		if i >= len(d.Packages) {
			break
		}
		c.State, c.DeliveryID = cloud.GridReserved, d.ID
		byGrid[g] = c
		ch.Compartments = append(ch.Compartments, c)
	}
	for i := range d.Packages {
		d.Packages[i].GridID = grids[min(i, len(grids)-1)]
	}
	for g, c := range byGrid {
		if c.DeliveryID == d.ID && c.State == cloud.GridReserved && !slices.Contains(grids, g) {
			c.State, c.DeliveryID = cloud.GridFree, 0
			byGrid[g] = c
			ch.Compartments = append(ch.Compartments, c)
		}
	}
	return nil
}

// pickupEntry is the code entry that a settlement activates.
func pickupEntry(v cloud.View, d cloud.Delivery) (*wire.CodeEntry, error) {
	rows, err := v.DeliveryCodes(d.ID)
	if err != nil {
		return nil, err
	}
	var found *wire.CodeEntry
	for _, r := range rows {
		if r.Entry.Op == wire.CodeSet && r.Entry.Kind == wire.CodePickup && r.DroppedAt.IsZero() {
			e := r.Entry
			found = &e
		}
	}
	return found, nil
}

// commandRow adds a command and counts up the compartments it is for.
func (s *Service) commandRow(v cloud.View, ch *cloud.Changes, dev cloud.DeviceID, opening string, kind wire.CommandKind, body any, doors []uint, now time.Time, life time.Duration) (cloud.Command, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return cloud.Command{}, fmt.Errorf("make command id: %w", err)
	}
	raw, err := wire.Encode(body)
	if err != nil {
		return cloud.Command{}, fmt.Errorf("encode %s: %w", kind, err)
	}
	c := cloud.Command{ID: id.String(), DeviceID: dev, OpeningID: opening, Kind: kind, Body: raw, Versions: map[uint]uint64{}, IssuedAt: now,
		ExpiresAt: now.Add(life), State: cloud.CommandQueued}
	for _, n := range doors {
		i := slices.IndexFunc(ch.Compartments, func(x cloud.Compartment) bool { return x.Door == n })
		if i < 0 {
			cell, err := v.Compartment(dev, n)
			if err != nil {
				return c, err
			}
			ch.Compartments = append(ch.Compartments, cell)
			i = len(ch.Compartments) - 1
		}
		ch.Compartments[i].Version++
		c.Versions[n] = ch.Compartments[i].Version
	}
	ch.Commands = append(ch.Commands, c)
	return c, nil
}

// await waits until the command has an outcome, the wait is over, or the
// command expires.
func (s *Service) await(ctx context.Context, cmd cloud.Command, wait time.Duration) (OpenOutput, error) {
	changed, stop := s.watch(cmd.OpeningID)
	defer stop()
	timer := time.NewTimer(min(wait, time.Until(cmd.ExpiresAt)))
	defer timer.Stop()
	for over := false; ; {
		out, done, err := s.look(ctx, cmd)
		if done || err != nil {
			return out, err
		}
		if over {
			if !time.Now().Before(cmd.ExpiresAt) {
				return out, &cloud.Error{Kind: cloud.Timeout, Code: "DEVICE_TIMEOUT", RetryAfter: 5}
			}
			out.Pending = true
			return out, nil
		}
		poll := time.NewTimer(time.Second) // another node may have stored it
		select {
		case <-ctx.Done():
			poll.Stop()
			return out, ctx.Err()
		case <-changed:
		case <-poll.C:
		case <-timer.C:
			over = true
		}
		poll.Stop()
	}
}

// look reads how far a command has come.
func (s *Service) look(ctx context.Context, cmd cloud.Command) (out OpenOutput, done bool, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		c, err := v.Command(cmd.ID)
		if err != nil {
			return err
		}
		o, err := v.Opening(cmd.OpeningID)
		if err != nil {
			return err
		}
		d, err := v.Delivery(o.DeliveryID)
		if err != nil {
			return err
		}
		shown, err := s.output(v, d)
		if err != nil {
			return err
		}
		biz, err := v.Business(d.BusinessID)
		if err != nil {
			return err
		}
		cells, err := cellsOf(v, d.DeviceID, o)
		if err != nil {
			return err
		}
		out = OpenOutput{Result: true, Opening: openingBody(o, cells, biz.Location()), PickupCode: shown.Delivery.PickupCode}
		switch c.State {
		case cloud.CommandDone, cloud.CommandPartial:
			done = true
		case cloud.CommandExpired:
			return &cloud.Error{Kind: cloud.Timeout, Code: "DEVICE_TIMEOUT", RetryAfter: 5}
		case cloud.CommandFailed, cloud.CommandRefused, cloud.CommandInterrupted:
			return &cloud.Error{Kind: cloud.Conflict, Code: "DELIVERY_STATE_CONFLICT",
				Details: map[string]any{"status": d.Status, "outcome": c.State, "reason": c.Reason, "opening_id": o.ID}}
		}
		return nil
	})
	return out, done, err
}

// DoorsOutput shows an opening's doors.
type DoorsOutput struct {
	Result  bool         `json:"result"`
	Opening *OpeningBody `json:"opening"`
	Session doorsSession `json:"session"`
	Doors   []doorState  `json:"doors"`
	Online  bool         `json:"online"`
}

type doorsSession struct {
	State  string  `json:"state"` // open, closed, timed_out
	EndsAt *string `json:"ends_at"`
}

type doorState struct {
	GridID     cloud.GridID `json:"grid_id"`
	Door       uint         `json:"compartment_number"`
	DoorStatus string       `json:"door_status"`
	Occupied   *bool        `json:"occupied"`
	ErrorCode  *string      `json:"error_code"`
}

// Doors shows the doors of a delivery's last opening as they are now. While
// the device is offline a session stays open with its end passed.
func (s *Service) Doors(ctx context.Context, c cloud.Caller, key DeliveryKey) (out DoorsOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := find(v, c, key)
		if err != nil {
			return err
		}
		biz, err := v.Business(d.BusinessID)
		if err != nil {
			return err
		}
		row, err := v.Session(d.DeviceID)
		if err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return err
		}
		out = DoorsOutput{Result: true, Online: row.Online, Session: doorsSession{State: "closed"}, Doors: []doorState{}}
		o, err := lastOpening(v, d)
		if err != nil || o == nil {
			return err
		}
		cells, err := cellsOf(v, d.DeviceID, *o)
		if err != nil {
			return err
		}
		out.Opening = openingBody(*o, cells, biz.Location())
		out.Session.EndsAt = cloud.Stamp(o.EndsAt, biz.Location())
		if !o.Ended() {
			out.Session.State = "open"
			if row.Online && time.Now().After(o.EndsAt) {
				out.Session.State = "timed_out"
			}
		}
		for _, od := range o.Doors {
			cell := cells[od.Door]
			out.Doors = append(out.Doors, doorState{GridID: od.GridID, Door: od.Door, DoorStatus: cell.DoorStatus, Occupied: cell.Occupied, ErrorCode: cloud.OrNull(od.Error)})
		}
		return nil
	})
	return out, err
}

// ConfirmInput is a partner's or a staff member's word that a deposit is made.
type ConfirmInput struct {
	Delivery DeliveryKey `json:"-"`
	Packages []struct {
		TrackingNumber string       `json:"tracking_number"`
		GridID         cloud.GridID `json:"grid_id"`
	} `json:"packages"`
	Photos []string `json:"photos"`
}

// Confirm settles a deposit by the partner's word, at once in the cloud, and
// tells the cabinet, which activates the code. Whichever came first is kept as
// confirmed_by; a later one is evidence. Errors: DELIVERY_NOT_FOUND,
// PACKAGE_NOT_IN_DELIVERY, DELIVERY_STATE_CONFLICT (also while a door of the
// opening is known to be open).
func (s *Service) Confirm(ctx context.Context, c cloud.Caller, in ConfirmInput) (out DeliveryOutput, err error) {
	var d cloud.Delivery
	if err = s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		d, err = find(v, c, in.Delivery)
		return err
	}); err != nil {
		return out, err
	}
	now := time.Now().UTC()
	err = s.cfg.Store.Decide(ctx, d.DeviceID, func(v cloud.View) (*cloud.Changes, error) {
		return s.confirm(v, d.ID, in, now)
	})
	if err != nil {
		return out, err
	}
	return s.show(ctx, d.ID)
}

func (s *Service) confirm(v cloud.View, id cloud.DeliveryID, in ConfirmInput, now time.Time) (*cloud.Changes, error) {
	d, err := v.Delivery(id)
	if err != nil {
		return nil, err
	}
	for _, p := range in.Packages {
		if findPackage(&d, p.TrackingNumber) == nil {
			return nil, cloud.E(cloud.NotFound, "PACKAGE_NOT_IN_DELIVERY")
		}
	}
	last, err := lastOpening(v, d)
	if err != nil {
		return nil, err
	}
	if last == nil || !last.Kind.IsDeposit() {
		return nil, conflict(d)
	}
	ch := &cloud.Changes{}
	if d.Status == cloud.DeliveryDelivered { // evidence
		ch.Audits = []cloud.Audit{{BusinessID: d.BusinessID, At: now, Actor: "provider:" + strconv.FormatInt(int64(d.ProviderID), 10),
			Action: "deposit_evidence", Target: last.ID, Detail: `{"confirmed_by":"partner_api"}`}}
		return ch, nil
	}
	if d.Status != cloud.DeliveryDoorsOpened || last.Ended() && last.EndReason != wire.EndDepositUnverified {
		return nil, conflict(d)
	}
	for _, od := range last.Doors {
		cell, err := v.Compartment(d.DeviceID, od.Door)
		if err != nil {
			return nil, err
		}
		if cell.DoorStatus == "open" {
			return nil, conflict(d)
		}
	}
	device, err := v.Device(d.DeviceID)
	if err != nil {
		return nil, err
	}
	w := s.Begin(v, device, now)
	o, err := w.opening(last.ID)
	if err != nil {
		return nil, err
	}
	row, err := w.delivery(d.ID)
	if err != nil {
		return nil, err
	}
	body := wire.OpeningSettled{OpeningID: o.ID, ConfirmedBy: wire.ByPartnerAPI}
	for _, od := range o.Doors {
		for _, ref := range od.Packages {
			if od.Error != wire.DoorOpenFailed {
				body.Packages = append(body.Packages, wire.SettledPackage{Ref: ref, Door: od.Door, Outcome: wire.Deposited})
			}
		}
	}
	if len(body.Packages) == 0 {
		return nil, conflict(d) // no door opened
	}
	// Its events are made from the confirmation, not from a record: the opening
	// stands in for the record's identity.
	r := Occurrence{OccurredAt: now, Record: wire.Record{Kind: wire.KindOpeningSettled, At: now.UnixNano(), Mono: now.UnixNano()}}
	o.State, o.ConfirmedBy, o.EndedAt = cloud.OpeningSettled, wire.ByPartnerAPI, now
	w.touch(o)
	if err := w.deposit(r, o, row, body, now); err != nil {
		return nil, err
	}
	if err := w.Finish(ch); err != nil {
		return nil, err
	}
	_, err = s.commandRow(v, ch, d.DeviceID, o.ID, wire.CmdCloseSession, wire.CloseSession{OpeningID: o.ID, How: wire.CloseSettle, ConfirmedBy: wire.ByPartnerAPI}, nil, now, longCommandLife)
	return ch, err
}

// CancelInput ends a delivery before its deposit.
type CancelInput struct {
	Delivery DeliveryKey `json:"-"`
	Reason   string      `json:"reason"`
}

// Cancel ends a delivery. With doors opened the cabinet has to answer first.
// Errors: DELIVERY_NOT_FOUND, DELIVERY_STATE_CONFLICT, DEVICE_OFFLINE,
// DEVICE_TIMEOUT.
func (s *Service) Cancel(ctx context.Context, c cloud.Caller, in CancelInput) (out DeliveryOutput, err error) {
	if len(in.Reason) > 255 {
		f := fields{}
		f.add("reason", "The reason has at most 255 characters.")
		return out, f.err()
	}
	var d cloud.Delivery
	if err = s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		d, err = find(v, c, in.Delivery)
		return err
	}); err != nil {
		return out, err
	}
	var order *cloud.Command
	err = s.cfg.Store.Decide(ctx, d.DeviceID, func(v cloud.View) (*cloud.Changes, error) {
		ch, cmd, err := s.cancel(v, d.ID, in.Reason, time.Now().UTC())
		order = cmd
		return ch, err
	})
	if err != nil {
		return out, err
	}
	if order != nil {
		if _, err := s.await(ctx, *order, maxWait*time.Second); err != nil {
			return out, err
		}
	}
	return s.show(ctx, d.ID)
}

func (s *Service) cancel(v cloud.View, id cloud.DeliveryID, reason string, now time.Time) (*cloud.Changes, *cloud.Command, error) {
	d, err := v.Delivery(id)
	if err != nil {
		return nil, nil, err
	}
	if d.Status != cloud.DeliveryCreated && d.Status != cloud.DeliveryDoorsOpened {
		return nil, nil, conflict(d)
	}
	device, err := v.Device(d.DeviceID)
	if err != nil {
		return nil, nil, err
	}
	last, err := lastOpening(v, d)
	if err != nil {
		return nil, nil, err
	}
	ch := &cloud.Changes{}
	w := s.Begin(v, device, now)
	row, err := w.delivery(id)
	if err != nil {
		return nil, nil, err
	}
	row.CancelReason, row.CancelledBy = reason, "partner_api"
	w.touch(row)
	if last != nil && !last.Ended() {
		session, err := v.Session(d.DeviceID)
		if err != nil || !session.Online {
			return nil, nil, cloud.E(cloud.Conflict, "DEVICE_OFFLINE")
		}
		if err := w.Finish(ch); err != nil {
			return nil, nil, err
		}
		cmd, err := s.commandRow(v, ch, d.DeviceID, last.ID, wire.CmdCloseSession, wire.CloseSession{OpeningID: last.ID, How: wire.CloseCancel}, nil, now, commandLife)
		return ch, &cmd, err
	}
	if err := w.releaseCells(row); err != nil {
		return nil, nil, err
	}
	if err := w.cancelled(now, row); err != nil {
		return nil, nil, err
	}
	if err := s.revoke(v, ch, device, d, now, wire.CodeDelivery, wire.CodePickup); err != nil {
		return nil, nil, err
	}
	return ch, nil, w.Finish(ch)
}

// revoke ends codes of a delivery: each revocation is an entry of its own, so
// that the cabinet's number tells whether it knows.
func (s *Service) revoke(v cloud.View, ch *cloud.Changes, device cloud.Device, d cloud.Delivery, now time.Time, kinds ...string) error {
	rows, err := v.DeliveryCodes(d.ID)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.DroppedAt.IsZero() && slices.Contains(kinds, r.Entry.Kind) {
			r.DroppedAt = now
			ch.Codes = append(ch.Codes, r)
		}
	}
	for _, kind := range kinds {
		device.CodeList++
		ch.Codes = append(ch.Codes, cloud.CodeRow{DeviceID: device.ID, DeliveryID: d.ID, CreatedAt: now,
			Entry: wire.CodeEntry{Number: device.CodeList, Op: wire.CodeRevoke, Kind: kind, DeliveryRef: d.Number}})
	}
	ch.Devices = append(ch.Devices, device)
	return nil
}

// RotateInput replaces a pickup code.
type RotateInput struct {
	Delivery DeliveryKey `json:"-"`
	Reason   string      `json:"reason"`
}

// RotateOutput is the answer to a rotation. AppliedOnDevice tells whether the
// cabinet knows already; until then it may take the former code.
type RotateOutput struct {
	Result          bool     `json:"result"`
	PickupCode      string   `json:"pickup_code"`
	Rotation        Rotation `json:"rotation"`
	AppliedOnDevice bool     `json:"applied_on_device"`
}

var rotationReasons = []string{"recipient_request", "partner_request", "security", "resend", "reassign"}

// RotatePickupCode replaces the pickup code. The former dies at once in the
// cloud, and at the cabinet as soon as its list has the new one. Errors:
// DELIVERY_NOT_FOUND, DELIVERY_STATE_CONFLICT, VALIDATION_FAILED.
func (s *Service) RotatePickupCode(ctx context.Context, c cloud.Caller, in RotateInput) (out RotateOutput, err error) {
	if in.Reason == "" {
		in.Reason = "partner_request"
	}
	if !slices.Contains(rotationReasons, in.Reason) {
		f := fields{}
		f.add("reason", "The reason must be one of %v.", rotationReasons)
		return out, f.err()
	}
	var d cloud.Delivery
	var device cloud.Device
	if err = s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		if d, err = find(v, c, in.Delivery); err == nil {
			device, err = v.Device(d.DeviceID)
		}
		return err
	}); err != nil {
		return out, err
	}
	for range 20 {
		code, verifier, sealed, err := s.drawPickup(ctx, device)
		if err != nil {
			return out, err
		}
		var number uint64
		err = s.cfg.Store.Decide(ctx, d.DeviceID, func(v cloud.View) (*cloud.Changes, error) {
			if now, err := v.Device(d.DeviceID); err != nil || !bytes.Equal(now.SealedCode, sealed) {
				return nil, errors.Join(err, errSecretsChanged)
			}
			ch, rot, n, err := s.rotate(v, d.ID, in.Reason, code, verifier, time.Now().UTC())
			if err == nil {
				out, number = RotateOutput{Result: true, PickupCode: code, Rotation: *rot}, n
			}
			return ch, err
		})
		if errors.Is(err, errCodeTaken) || errors.Is(err, errSecretsChanged) {
			continue
		}
		if err != nil {
			return RotateOutput{}, err
		}
		out.AppliedOnDevice = s.listReached(ctx, d.DeviceID, number)
		return out, nil
	}
	return out, errors.New("no free code could be drawn")
}

func (s *Service) drawPickup(ctx context.Context, d cloud.Device) (code string, verifier, sealed []byte, err error) {
	secrets, sealed, err := s.secrets(ctx, d.ID)
	if err != nil {
		return "", nil, nil, err
	}
	code = passcode.Draw(passcode.PickupDigits)
	verifier, err = s.verifier(ctx, code, secrets)
	return code, verifier, sealed, err
}

func (s *Service) rotate(v cloud.View, id cloud.DeliveryID, reason, code string, verifier []byte, now time.Time) (*cloud.Changes, *Rotation, uint64, error) {
	d, err := v.Delivery(id)
	if err != nil {
		return nil, nil, 0, err
	}
	switch d.Status {
	case cloud.DeliveryPickedUp, cloud.DeliveryFailed, cloud.DeliveryCancelled:
		return nil, nil, 0, conflict(d)
	}
	device, err := v.Device(d.DeviceID)
	if err != nil {
		return nil, nil, 0, err
	}
	if err := codeFree(v, device, verifier); err != nil {
		return nil, nil, 0, err
	}
	ch := &cloud.Changes{}
	if err := s.revoke(v, ch, device, d, now, wire.CodePickup); err != nil {
		return nil, nil, 0, err
	}
	device = ch.Devices[0]
	device.CodeList++
	ch.Devices[0] = device
	entry := codeEntry(d, nil, device.CodeList, wire.CodePickup, verifier)
	if d.PickupCodeActive {
		if entry, err = activeEntry(v, d, entry); err != nil {
			return nil, nil, 0, err
		}
	}
	ch.Codes = append(ch.Codes, cloud.CodeRow{DeviceID: device.ID, DeliveryID: d.ID, CreatedAt: now, Entry: entry})
	codes, err := s.openCodes(d)
	if err != nil {
		return nil, nil, 0, err
	}
	codes.Pickup = code
	d.SealedCodes = s.sealCodes(codes)
	ch.Deliveries = []cloud.Delivery{d}
	biz, err := v.Business(d.BusinessID)
	if err != nil {
		return nil, nil, 0, err
	}
	rot := &Rotation{CodeKind: "pickup_code", Reason: reason, RotatedBy: "partner_api", RotatedAt: *cloud.Stamp(now, biz.Location())}
	return ch, rot, device.CodeList, s.tell(v, ch, EventPickupCodeChanged, now, d, nil, rot)
}

// activeEntry makes an entry active for the compartments where the delivery's
// parcels lie.
func activeEntry(v cloud.View, d cloud.Delivery, e wire.CodeEntry) (wire.CodeEntry, error) {
	cells, err := v.Compartments(d.DeviceID)
	if err != nil {
		return e, err
	}
	e.Active, e.Doors, e.Sizes, e.Packages = wire.ActiveNow, nil, nil, map[uint][]string{}
	for _, c := range cells {
		for _, p := range d.Packages {
			if p.GridID == c.GridID && p.Status == cloud.PackageInCompartment {
				if !slices.Contains(e.Doors, c.Door) {
					e.Doors = append(e.Doors, c.Door)
				}
				e.Packages[c.Door] = append(e.Packages[c.Door], p.TrackingNumber)
			}
		}
	}
	return e, nil
}

// listReached waits a moment for a connected cabinet to confirm a list number.
func (s *Service) listReached(ctx context.Context, dev cloud.DeviceID, number uint64) bool {
	for range 10 {
		reached, online := false, false
		err := s.cfg.Store.Look(ctx, func(v cloud.View) error {
			d, err := v.Device(dev)
			if err != nil {
				return err
			}
			row, err := v.Session(dev)
			reached, online = d.CodesHeld >= number, err == nil && row.Online
			return nil
		})
		if err != nil || reached || !online {
			return reached
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
	return false
}
