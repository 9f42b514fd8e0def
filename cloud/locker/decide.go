package locker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// decide runs one decision about a delivery of the caller, on its device. fn
// may run more than once. Error: DELIVERY_NOT_FOUND and those of fn.
func (s *core) decide(ctx context.Context, c cloud.Caller, key DeliveryKey, fn func(w *Work, d *cloud.Delivery) error) (cloud.DeliveryID, error) {
	var d cloud.Delivery
	err := s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		d, err = find(v, c, key)
		return err
	})
	if err != nil {
		return 0, err
	}
	now := time.Now().UTC()
	return d.ID, s.decideOn(ctx, d.DeviceID, d.ID, now, fn)
}

// decideOn runs one decision about a delivery of a device.
func (s *core) decideOn(ctx context.Context, device cloud.DeviceID, id cloud.DeliveryID, now time.Time, fn func(w *Work, d *cloud.Delivery) error) error {
	return s.cfg.Store.Decide(ctx, device, func(v cloud.View) (*cloud.Changes, error) {
		row, err := v.Device(device)
		if err != nil {
			return nil, err
		}
		w := s.Begin(v, row, now)
		d, err := w.delivery(id)
		if err != nil {
			return nil, err
		}
		if d == nil {
			return nil, cloud.E(cloud.NotFound, "DELIVERY_NOT_FOUND")
		}
		if err := fn(w, d); err != nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		return ch, w.Finish(ch)
	})
}

// lastOpening is the newest opening of a delivery, as this decision has it.
func (w *rows) lastOpening(d *cloud.Delivery) (*cloud.Opening, error) {
	last, err := lastOpening(w.v, *d)
	if err != nil || last == nil {
		return nil, err
	}
	return w.opening(last.ID)
}

// newestOpening is the newest of a delivery's openings that is one of a kind, nil when there
// is none.
func (w *rows) newestOpening(d *cloud.Delivery, is func(cloud.Opening) bool) (*cloud.Opening, error) {
	list, err := w.v.DeliveryOpenings(d.ID)
	if err != nil {
		return nil, err
	}
	for _, o := range slices.Backward(list) {
		if is(o) {
			return w.opening(o.ID)
		}
	}
	return nil, nil
}

// runningDoors are the doors on which openings run, each with its first, but for one opening.
func (w *rows) runningDoors(but string) (map[uint]string, error) {
	running, err := w.v.RunningOpenings(w.device.ID)
	if err != nil {
		return nil, err
	}
	out := map[uint]string{}
	for _, o := range running {
		if known := w.openings[o.ID]; known != nil && known.Ended() {
			continue // by this decision
		}
		for _, d := range o.Doors {
			if out[d.Door] == "" && o.ID != but {
				out[d.Door] = o.ID
			}
		}
	}
	return out, nil
}

// stated is what a person's word says as it comes, in place of a cabinet's record of a kind.
func (w *rows) stated(k wire.Kind) Occurrence {
	return Occurrence{OccurredAt: w.received, Record: wire.Record{Kind: k, At: w.received.UnixNano(), Mono: w.received.UnixNano()}}
}

// online refuses with DEVICE_OFFLINE what a cabinet has to do at once.
func (w *rows) online() error {
	row, err := w.v.Session(w.device.ID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return err
	}
	if !row.Online {
		return cloud.E(cloud.Conflict, "DEVICE_OFFLINE")
	}
	return nil
}

func requester(c cloud.Caller) cloud.Requester {
	return cloud.Requester{Type: "partner_api", ID: strconv.FormatInt(int64(c.Provider.ID), 10), Name: c.Provider.Name}
}

// send adds a command and counts up the compartments it is for.
func (w *rows) send(opening string, kind wire.CommandKind, body any, doors []uint, life time.Duration) (cloud.Command, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return cloud.Command{}, fmt.Errorf("make command id: %w", err)
	}
	raw, err := wire.Encode(body)
	if err != nil {
		return cloud.Command{}, fmt.Errorf("encode %s: %w", kind, err)
	}
	c := cloud.Command{ID: id.String(), DeviceID: w.device.ID, OpeningID: opening, Kind: kind, Body: raw, Versions: map[uint]uint64{}, IssuedAt: w.received,
		ExpiresAt: w.received.Add(life), State: cloud.CommandQueued}
	for _, n := range doors {
		cell, err := w.cell(n)
		if err != nil {
			return c, err
		}
		if cell == nil {
			return c, fmt.Errorf("device %d has no compartment %d", w.device.ID, n)
		}
		cell.Version++
		w.touch(cell)
		c.Versions[n] = cell.Version
	}
	w.ch.Commands = append(w.ch.Commands, c)
	return c, nil
}

// settledBy is the source of a settlement that the caller states.
func settledBy(c cloud.Caller) wire.ConfirmedBy {
	if c.Account.Type.IsStaff() {
		return wire.ByConsole
	}
	return wire.ByPartnerAPI
}

// closer names the caller in an exception that the call closes.
func closer(c cloud.Caller) string {
	if c.Account.Type.IsStaff() {
		return "staff"
	}
	return "partner"
}

// actor names the caller in the audit trail.
func actor(c cloud.Caller) string {
	if c.Account.Type.IsStaff() {
		return c.Account.ID.Actor()
	}
	return "provider:" + strconv.FormatInt(int64(c.Provider.ID), 10)
}
