package truth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// Read reads the cloud's part of a case: everything about its devices and the deliveries of every
// provider there, the commands that the cabinets' traces name, and the provider's webhook log. The
// error is the store's.
func Read(ctx context.Context, s *server.Server, provider cloud.ProviderID, cabinets []Cabinet, simple ...Simple) (Cloud, error) {
	c := Cloud{Provider: provider, Commands: map[string]cloud.Command{}, Devices: map[string]Device{}, Timelines: map[string][]Step{}}
	var err error
	if c.Audit, err = s.Audit(ctx); err != nil {
		return c, err
	}
	records, err := readRecords(ctx, s)
	if err != nil {
		return c, err
	}
	cabinets = slices.Clone(cabinets)
	for _, x := range simple {
		cabinets = append(cabinets, Cabinet{Code: x.Code})
	}
	for _, b := range cabinets {
		d, err := readDevice(ctx, s, b.Code)
		if err != nil {
			return c, fmt.Errorf("read device %s: %w", b.Code, err)
		}
		d.Records = records[d.Row.ID]
		c.Devices[b.Code] = d
		for _, p := range b.Pulses {
			err := s.Store.Look(ctx, func(v cloud.View) error {
				cmd, err := v.Command(p.Act)
				if err == nil {
					c.Commands[p.Act] = cmd
				}
				if errors.Is(err, cloud.ErrNotFound) {
					return nil
				}
				return err
			})
			if err != nil {
				return c, fmt.Errorf("read command %s: %w", p.Act, err)
			}
		}
		for _, x := range d.Deliveries {
			if err := readTimelines(ctx, s, x, c.Timelines); err != nil {
				return c, err
			}
		}
	}
	for _, x := range simple {
		if err := readOpenings(ctx, s, x, c.Devices[x.Code].Openings); err != nil {
			return c, err
		}
	}
	c.Events, err = readEvents(ctx, s, provider)
	return c, err
}

// readOpenings reads those that a device's orders name, as those of staff.
func readOpenings(ctx context.Context, s *server.Server, x Simple, into map[string]cloud.Opening) error {
	return s.Store.Look(ctx, func(v cloud.View) error {
		for _, u := range x.Unlocks {
			o, err := v.Opening(u.Opening)
			if err != nil && !errors.Is(err, cloud.ErrNotFound) {
				return fmt.Errorf("read opening %s: %w", u.Opening, err)
			}
			if err == nil {
				into[o.ID] = o
			}
		}
		return nil
	})
}

type recordKey struct {
	device cloud.DeviceID
	boot   uint64
	mono   int64
	kind   wire.Kind
}

// readRecords reads the journal; a record that was carried into another epoch
// counts once.
func readRecords(ctx context.Context, s *server.Server) (map[cloud.DeviceID][]wire.Record, error) {
	out, seen := map[cloud.DeviceID][]wire.Record{}, map[recordKey]bool{}
	const page = 500
	for after := int64(0); ; {
		rows, err := s.Store.JournalAfter(ctx, after, page)
		if err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		for _, row := range rows {
			after = row.N
			if row.Aside != "" {
				continue
			}
			raws, err := device.JournalRecords(row.JournalBatch)
			if err != nil {
				return nil, err
			}
			for _, raw := range raws {
				r, err := wire.DecodeRecord(raw)
				if err != nil {
					continue
				}
				k := recordKey{row.DeviceID, r.Boot, r.Mono, r.Kind}
				if !seen[k] {
					seen[k] = true
					out[row.DeviceID] = append(out[row.DeviceID], r)
				}
			}
		}
		if len(rows) < page {
			break
		}
	}
	for _, list := range out {
		slices.SortStableFunc(list, func(a, b wire.Record) int { return cmp.Or(cmp.Compare(a.Boot, b.Boot), cmp.Compare(a.Mono, b.Mono)) })
	}
	return out, nil
}

const many = 100_000

func readDevice(ctx context.Context, s *server.Server, code string) (Device, error) {
	d := Device{Cells: map[uint]cloud.Compartment{}, Deliveries: map[string]cloud.Delivery{}, Openings: map[string]cloud.Opening{}}
	var err error
	if d.Row, err = s.Store.FindDeviceByCode(ctx, code); err != nil {
		return d, err
	}
	cells, err := s.Store.ListCompartments(ctx, d.Row.ID)
	if err != nil {
		return d, err
	}
	for _, c := range cells {
		d.Cells[c.Door] = c
	}
	deliveries, err := s.Store.ListDeliveries(ctx, store.DeliveryFilter{BusinessID: d.Row.BusinessID, Limit: many})
	if err != nil {
		return d, err
	}
	deliveries = slices.DeleteFunc(deliveries, func(x cloud.Delivery) bool { return x.DeviceID != d.Row.ID })
	for _, x := range deliveries {
		d.Deliveries[x.Number] = x
	}
	all, err := s.Store.ListExceptions(ctx, d.Row.BusinessID, "", 0, many)
	if err != nil {
		return d, err
	}
	for _, e := range all {
		if e.DeviceID == d.Row.ID {
			d.Exceptions = append(d.Exceptions, e)
		}
	}
	if d.Faults, err = s.Store.ListDeviceExceptions(ctx, d.Row.ID, many); err != nil {
		return d, err
	}
	err = s.Store.Look(ctx, func(v cloud.View) (err error) {
		if d.Running, err = v.RunningOpenings(d.Row.ID); err != nil {
			return err
		}
		if d.Commands, err = v.OpenCommands(d.Row.ID); err != nil {
			return err
		}
		if d.QRCodes, err = cloud.All(v, cloud.QRCode{Kept: cloud.Kept[cloud.QRCodeID]{BusinessID: d.Row.BusinessID}, DeviceID: d.Row.ID}); err != nil {
			return err
		}
		for _, q := range d.QRCodes {
			if q.OpeningID == "" {
				continue // it is not used
			}
			o, err := v.Opening(q.OpeningID)
			if err != nil && !errors.Is(err, cloud.ErrNotFound) {
				return err
			}
			d.Openings[q.OpeningID] = o
		}
		for _, x := range deliveries {
			rows, err := v.DeliveryCodes(x.ID)
			if err != nil {
				return err
			}
			d.Codes = append(d.Codes, rows...)
			orders, err := v.DeviceOrders(x.ID)
			if err != nil {
				return err
			}
			d.Orders = append(d.Orders, orders...)
			openings, err := v.DeliveryOpenings(x.ID)
			if err != nil {
				return err
			}
			for _, o := range openings {
				d.Openings[o.ID] = o
			}
		}
		return nil
	})
	return d, err
}

// readTimelines reads the timelines of a delivery's packages as they are served by their
// numbers: that of a package of an order is the order's.
func readTimelines(ctx context.Context, s *server.Server, x cloud.Delivery, into map[string][]Step) error {
	for _, p := range x.Packages {
		timeline, err := s.Store.FindTimeline(ctx, p.TrackingNumber, func(sh cloud.Shipment) bool { return sh.BusinessID == x.BusinessID })
		events := timeline.Events
		if errors.Is(err, cloud.ErrNotFound) || !x.Livemode {
			continue // a test has none, and its number may be a real parcel's
		}
		if err != nil {
			return fmt.Errorf("read timeline of %s: %w", p.TrackingNumber, err)
		}
		slices.SortStableFunc(events, func(a, b cloud.TimelineEvent) int { return a.Event.OccurredAt.Compare(b.Event.OccurredAt.Time) })
		into[p.TrackingNumber] = nil // of an earlier delivery with the number
		for _, e := range events {
			if !e.Event.Withdrawn {
				into[p.TrackingNumber] = append(into[p.TrackingNumber], Step{string(e.Event.StatusCode), e.Event.OccurredAt.UTC()})
			}
		}
	}
	return nil
}

func readEvents(ctx context.Context, s *server.Server, provider cloud.ProviderID) (out []Event, err error) {
	_, rows, err := s.Store.ListOutbox(ctx, cloud.OutboxFilter{ProviderID: provider, Page: cloud.Page{Limit: many}})
	if err != nil {
		return nil, fmt.Errorf("list webhook log: %w", err)
	}
	for _, r := range rows {
		out = append(out, Event{ID: r.Delivery.EventID, Name: r.Event.Event, Reference: r.Event.ReferenceID, OccurredAt: r.Event.OccurredAt, CreatedAt: r.Event.CreatedAt,
			Delivered: r.Delivery.State == cloud.OutboxSuccess, Attempts: r.Delivery.Attempts})
	}
	return out, nil
}

// ReadStore reads what an agent's store that nothing has open believes: door to
// delivery number, which of them are only kept, and the openings without an end.
func (b *Cabinet) ReadStore(path string) error {
	store, err := buffer.Open(buffer.Config{Path: path, Stamp: func() wire.Record { return wire.Record{Mono: 1} }})
	if err != nil {
		return fmt.Errorf("open store %s: %w", path, err)
	}
	defer store.Close()
	state := locker.New(wire.Config{})
	err = store.Load(func(key string, value []byte) error {
		if strings.HasPrefix(key, "agent/") {
			return nil
		}
		return state.Load(key, value)
	})
	if err != nil {
		return fmt.Errorf("read store %s: %w", path, err)
	}
	b.Contents, b.Kept = map[uint]string{}, map[uint]bool{}
	for n, d := range state.Doors {
		if d.Delivery != "" {
			b.Contents[uint(n)], b.Kept[uint(n)] = d.Delivery, state.IsUnconfirmed(n)
		}
	}
	b.Running = slices.Sorted(maps.Keys(state.Openings))
	return nil
}
