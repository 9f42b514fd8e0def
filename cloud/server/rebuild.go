package server

import (
	"context"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/timeline"
	"github.com/postern-io/postern/protocol/otep"
)

// Rebuilt is what reading the journal again found of timelines.
type Rebuilt struct {
	Written   bool         `json:"written"` // what was missing
	Records   int          `json:"records"` // read
	Events    int          `json:"events"`  // that they prove
	Missing   []LostEvent  `json:"missing"`
	Different []OtherEvent `json:"different"` // left as they are
}

// LostEvent is an event that the journal proves and its timeline lacks.
type LostEvent struct {
	Number     string    `json:"tracking_number"`
	EventID    string    `json:"event_id"`
	StatusCode otep.Code `json:"status_code"`
	OccurredAt otep.Time `json:"occurred_at"`
}

// OtherEvent is an event that is stored otherwise than the journal proves it.
type OtherEvent struct {
	LostEvent
	StoredCode otep.Code `json:"stored_status_code"`
	StoredAt   otep.Time `json:"stored_occurred_at"`
}

// Rebuild reads the whole journal and finds the timeline events that it proves
// and that are not stored. With write they are stored, with the ids that they
// had, and the parcel's current status is folded again. Nothing else changes
// and nothing is sent. It may run beside a server and be repeated.
func (s *Server) Rebuild(ctx context.Context, write bool) (Rebuilt, error) {
	all := Rebuilt{Written: write, Missing: []LostEvent{}, Different: []OtherEvent{}}
	replays := map[cloud.DeviceID]*device.Replay{}
	const page = 500
	for after := int64(0); ; {
		rows, err := s.Store.JournalAfter(ctx, after, page)
		if err != nil {
			return all, fmt.Errorf("read journal: %w", err)
		}
		for _, row := range rows {
			after = row.N
			if row.Aside != "" {
				continue
			}
			p := replays[row.DeviceID]
			if p == nil {
				p = &device.Replay{}
				replays[row.DeviceID] = p
			}
			records, err := p.Records(row.JournalBatch)
			if err != nil {
				return all, err
			}
			if err := s.rebuild(ctx, row.JournalBatch, records, write, &all); err != nil {
				return all, fmt.Errorf("rebuild from row %d of the journal: %w", row.N, err)
			}
			all.Records += len(records)
		}
		if len(rows) < page {
			return all, nil
		}
	}
}

// rebuild compares one batch.
func (s *Server) rebuild(ctx context.Context, j cloud.JournalBatch, records []device.Record, write bool, all *Rebuilt) error {
	var found Rebuilt
	compare := func(v cloud.View) (*cloud.Changes, error) {
		found = Rebuilt{}
		d, err := v.Device(j.DeviceID)
		if err != nil {
			return nil, fmt.Errorf("read device %d: %w", j.DeviceID, err)
		}
		c := comparison{v: v, found: &found, ch: &cloud.Changes{}, parcels: map[cloud.ShipmentID]*parcel{}}
		work := s.Lockers.Begin(v, d, j.ReceivedAt)
		for _, r := range records {
			events, err := work.Rederive(locker.Occurrence{Record: r.Record, OccurredAt: r.OccurredAt, Approximate: r.Approximate, Earliest: r.Earliest, Latest: r.Latest})
			if err != nil {
				return nil, err
			}
			for _, e := range events {
				if err := c.compare(e); err != nil {
					return nil, err
				}
			}
		}
		return c.ch, c.fold()
	}
	err := s.Store.Look(ctx, func(v cloud.View) error { _, err := compare(v); return err })
	if err == nil && write && len(found.Missing) > 0 {
		err = s.Store.Decide(ctx, j.DeviceID, compare)
	}
	all.Events += found.Events
	all.Missing, all.Different = append(all.Missing, found.Missing...), append(all.Different, found.Different...)
	return err
}

type parcel struct {
	cloud.Shipment
	events  []cloud.TimelineEvent
	changed bool
}

type comparison struct {
	v       cloud.View
	found   *Rebuilt
	ch      *cloud.Changes
	parcels map[cloud.ShipmentID]*parcel
	order   []*parcel
}

func (c *comparison) compare(e locker.Rederived) error {
	p, err := c.parcel(e.Shipment)
	if err != nil {
		return err
	}
	c.found.Events++
	lost := LostEvent{Number: p.Number, EventID: e.Event.EventID, StatusCode: e.Event.StatusCode, OccurredAt: e.Event.OccurredAt}
	for _, row := range p.events {
		have := row.Event
		if have.EventID != e.Event.EventID {
			continue
		}
		if have.StatusCode != e.Event.StatusCode || !have.OccurredAt.Equal(e.Event.OccurredAt.Time) {
			c.found.Different = append(c.found.Different, OtherEvent{lost, have.StatusCode, have.OccurredAt})
		}
		return nil
	}
	row := cloud.TimelineEvent{ShipmentID: p.ID, BusinessID: p.BusinessID, Package: e.Package, Event: e.Event}
	p.events, p.changed = append(p.events, row), true
	c.found.Missing = append(c.found.Missing, lost)
	c.ch.Events = append(c.ch.Events, row)
	return nil
}

func (c *comparison) parcel(s cloud.Shipment) (*parcel, error) {
	if p := c.parcels[s.ID]; p != nil {
		return p, nil
	}
	rows, err := c.v.Timeline(s.ID)
	if err != nil {
		return nil, fmt.Errorf("read timeline of %s: %w", s.Number, err)
	}
	p := &parcel{Shipment: s, events: rows}
	c.parcels[s.ID], c.order = p, append(c.order, p)
	return p, nil
}

// fold brings the cached status of parcels that got events up to date.
func (c *comparison) fold() error {
	for _, p := range c.order {
		if !p.changed {
			continue
		}
		packages, err := timeline.PackagesOf(c.v, p.Shipment)
		if err != nil {
			return err
		}
		if right := timeline.StateAt(p.Shipment, p.events, packages, time.Now()); right.Current != "" {
			p.Shipment = right
		}
		c.ch.Shipments = append(c.ch.Shipments, p.Shipment)
	}
	return nil
}
