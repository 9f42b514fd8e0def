package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/protocol/wire"
)

// Audit is what the journal says when it is read from the first batch to the
// last: the evidence, independent of everything that was derived from it.
type Audit struct {
	Stored       int // records, distinct by device, boot and monotonic time
	Gaps         int // records that gap records name and the cloud lacks
	Settled      int // deposits
	SettledTwice int // openings with more than one end
	Openings     map[string]OpeningAudit
}

// OpeningAudit is what the journal says of one opening. Times are by the
// device's clock.
type OpeningAudit struct {
	Device         cloud.DeviceID
	Doors          []uint
	Started, Ended time.Time
	End            wire.Kind // of the record that ended it, 0 while it runs
}

// Holds reports whether a door belongs to the opening.
func (o OpeningAudit) Holds(door uint) bool { return slices.Contains(o.Doors, door) }

// Ended lists the openings that have an end, by id.
func (a Audit) Ended() []string {
	var ids []string
	for id, o := range a.Openings {
		if o.End != 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

type recordKey struct {
	device cloud.DeviceID
	boot   uint64
	mono   int64
	at     int64 // a store that began anew counts its boots from 1 again
}

// Audit reads the whole journal.
func (s *Server) Audit(ctx context.Context) (Audit, error) {
	a := Audit{Openings: map[string]OpeningAudit{}}
	seen := map[recordKey]bool{}
	const page = 500
	for after := int64(0); ; {
		rows, err := s.Store.JournalAfter(ctx, after, page)
		if err != nil {
			return a, fmt.Errorf("read journal: %w", err)
		}
		for _, row := range rows {
			after = row.N
			if row.Aside != "" {
				continue
			}
			if err := a.add(row.JournalBatch, seen); err != nil {
				return a, err
			}
		}
		if len(rows) < page {
			break
		}
	}
	a.Stored = len(seen)
	return a, s.auditGaps(ctx, &a)
}

func (a *Audit) add(j cloud.JournalBatch, seen map[recordKey]bool) error {
	records, err := device.JournalRecords(j)
	if err != nil {
		return err
	}
	for _, raw := range records {
		r, err := wire.DecodeRecord(raw)
		if err != nil {
			continue // stored as it came; it counts for nothing
		}
		k := recordKey{j.DeviceID, r.Boot, r.Mono, r.At}
		if seen[k] {
			continue // carried into another epoch
		}
		seen[k] = true
		a.opening(j.DeviceID, r)
	}
	return nil
}

func (a *Audit) opening(d cloud.DeviceID, r wire.Record) {
	at := time.Unix(0, r.At)
	var id string
	switch r.Kind {
	case wire.KindOpeningStarted:
		var b wire.OpeningStarted
		if wire.Decode(r.Body, &b) == nil {
			o := a.Openings[b.OpeningID]
			o.Device, o.Doors, o.Started = d, b.Doors, at
			a.Openings[b.OpeningID] = o
		}
		return
	case wire.KindOpeningSettled:
		var b wire.OpeningSettled
		if wire.Decode(r.Body, &b) == nil {
			id = b.OpeningID
			a.Settled++
		}
	case wire.KindOpeningEnded:
		var b wire.OpeningEnded
		if wire.Decode(r.Body, &b) == nil {
			id = b.OpeningID
		}
	case wire.KindPickupCompleted:
		var b wire.PickupCompleted
		if wire.Decode(r.Body, &b) == nil {
			id = b.OpeningID
		}
	}
	if id == "" {
		return
	}
	o := a.Openings[id]
	if o.End != 0 {
		a.SettledTwice++
	}
	o.End, o.Ended = r.Kind, at
	a.Openings[id] = o
}

func (s *Server) auditGaps(ctx context.Context, a *Audit) error {
	const page = 500
	for after := cloud.DeviceID(0); ; {
		devices, err := s.Store.ListAllDevices(ctx, after, page)
		if err != nil {
			return fmt.Errorf("list devices: %w", err)
		}
		for _, d := range devices {
			after = d.ID
			stats, err := s.Store.JournalStats(ctx, d.ID)
			if err != nil {
				return fmt.Errorf("add up journal: %w", err)
			}
			a.Gaps += int(stats.Missing)
		}
		if len(devices) < page {
			return nil
		}
	}
}
