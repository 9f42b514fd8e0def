package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/timeline"
	"github.com/postern-io/postern/protocol/otep"
)

// Refold says which timelines are folded again.
type Refold struct {
	Write    bool             // what differs is put right
	After    cloud.ShipmentID // parcels behind it, by id
	Most     int              // parcels to look at; 0: all
	Progress func(Refolded)   // is called every thousand parcels; may be nil
}

// Refolded is what folding timelines again has found.
type Refolded struct {
	Written   bool             `json:"written"`
	Parcels   int              `json:"parcels"`   // looked at
	Different int              `json:"different"` // of these
	List      []WrongFold      `json:"list"`      // the first thousand of those
	Last      cloud.ShipmentID `json:"last"`      // looked at: after it a later run goes on
	Done      bool             `json:"done"`      // no parcel is behind it
}

// WrongFold is a parcel whose kept state is not what its events lead to.
type WrongFold struct {
	Number     string          `json:"tracking_number"`
	OrderID    cloud.OrderID   `json:"order_id,omitempty"`
	Status     *DifferentState `json:"status,omitempty"`
	Checkpoint bool            `json:"checkpoint,omitempty"` // that of its events is wrong
}

// DifferentState is a status that is kept, and what the events lead to.
type DifferentState struct {
	StoredCode otep.Code  `json:"stored_code"`
	StoredAt   *time.Time `json:"stored_at"`
	Code       otep.Code  `json:"code"`
	At         *time.Time `json:"at"`
}

const (
	refoldStep   = 1000
	refoldListed = 1000
)

// RefoldTimelines folds timelines from their events and compares with what is kept beside them: the status of the parcel, which is that
// of its order, and the checkpoint. Each parcel is read at one moment, so that nothing false is found beside a server that
// writes. With Write what differs is decided anew: the status is set, the checkpoint deleted; the next event makes another.
func RefoldTimelines(ctx context.Context, db *store.DB, in Refold) (Refolded, error) {
	all := Refolded{Written: in.Write, List: []WrongFold{}, Last: in.After}
	for in.Most == 0 || all.Parcels < in.Most {
		step := refoldStep
		if in.Most > 0 {
			step = min(step, in.Most-all.Parcels)
		}
		list, err := db.ShipmentsAfter(ctx, all.Last, step)
		if err != nil {
			return all, fmt.Errorf("read parcels: %w", err)
		}
		for _, x := range list {
			wrong, err := refoldParcel(ctx, db, x, in.Write)
			if err != nil {
				return all, fmt.Errorf("fold the timeline of %s: %w", x.Number, err)
			}
			if all.Parcels, all.Last = all.Parcels+1, x.ID; wrong == nil {
				continue
			}
			if all.Different++; len(all.List) < refoldListed {
				all.List = append(all.List, *wrong)
			}
		}
		if all.Done = len(list) < step; all.Done {
			break
		}
		if in.Progress != nil {
			in.Progress(all)
		}
	}
	return all, nil
}

// refoldParcel compares one parcel, and puts it right if write is set. It is nil where nothing differs.
func refoldParcel(ctx context.Context, db *store.DB, x cloud.Shipment, write bool) (wrong *WrongFold, err error) {
	err = db.Look(ctx, func(v cloud.View) error {
		wrong, _, err = foldAgain(v, x.ID, time.Now())
		return err
	})
	if errors.Is(err, cloud.ErrNotFound) { // deleted since
		return nil, nil
	}
	if err != nil || wrong == nil || !write {
		return wrong, err
	}
	err = db.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		if x.OrderID != 0 { // others read it first, too
			if _, err := v.Order(x.BusinessID, x.OrderID); err != nil && !errors.Is(err, cloud.ErrNotFound) {
				return nil, err
			}
		}
		if _, err := v.ShipmentByNumber(x.Number); err != nil {
			return nil, err
		}
		again, right, err := foldAgain(v, x.ID, time.Now())
		if err != nil || again == nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		if again.Status != nil {
			ch.Shipments = []cloud.Shipment{right}
		}
		if again.Checkpoint {
			ch.Unsettled = []cloud.ShipmentID{x.ID}
		}
		return ch, nil
	})
	return wrong, err
}

// foldAgain compares what is kept of a parcel with what its events lead to. right is the parcel as it should be.
func foldAgain(v cloud.View, id cloud.ShipmentID, now time.Time) (wrong *WrongFold, right cloud.Shipment, err error) {
	kept, err := v.ShipmentByID(id)
	if err != nil {
		return nil, kept, err
	}
	events, err := v.Timeline(id)
	if err != nil {
		return nil, kept, err
	}
	packages, err := timeline.PackagesOf(v, kept)
	if err != nil {
		return nil, kept, err
	}
	out := WrongFold{Number: kept.Number, OrderID: kept.OrderID}
	right = timeline.StateAt(kept, events, packages, now)
	if !isState(kept, right) && !slices.ContainsFunc(comings(events, now), func(at time.Time) bool { return isState(kept, timeline.StateAt(kept, events, packages, at)) }) {
		out.Status = &DifferentState{StoredCode: kept.Current, StoredAt: cloud.OrNull(kept.LastAt), Code: right.Current, At: cloud.OrNull(right.LastAt)}
	}
	c, err := v.Checkpoint(id)
	switch {
	case err == nil:
		out.Checkpoint = !timeline.IsRight(c, events, packages, now)
	case !errors.Is(err, cloud.ErrNotFound):
		return nil, kept, err
	}
	if out.Status == nil && !out.Checkpoint {
		return nil, kept, nil
	}
	return &out, right, nil
}

func isState(a, b cloud.Shipment) bool {
	return a.Current == b.Current && (a.Current == "" || a.LastAt.UnixMilli() == b.LastAt.UnixMilli())
}

// comings are moments just before events came that were ahead of their time when they were recorded: a kept status
// stands where it was when the last event was recorded.
func comings(events []cloud.TimelineEvent, now time.Time) (out []time.Time) {
	for _, x := range events {
		e := &x.Event
		if e.IsAhead(e.RecordedAt.Time) && !e.IsAhead(now) {
			out = append(out, e.CountsFrom().Add(-1))
		}
	}
	return out
}
