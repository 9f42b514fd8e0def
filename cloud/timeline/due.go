package timeline

import (
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// IsPending reports whether an event counts, but not yet at now.
func IsPending(e cloud.TimelineEvent, now time.Time) bool {
	return e.Event.CountsAt(time.Time{}) && !e.Event.CountsAt(now)
}

// AddDue keeps those of new events whose time has not come, until it comes.
func AddDue(v cloud.View, ch *cloud.Changes, by cloud.ProviderID, events []cloud.TimelineEvent, now time.Time) error {
	for _, e := range events {
		if !IsPending(e, now) {
			continue
		}
		id, err := v.NewID(cloud.DueEventIDs)
		if err != nil {
			return err
		}
		row := cloud.DueEvent{ShipmentID: e.ShipmentID, PackageID: e.Package, EventID: e.Event.EventID, ProviderID: by, DueAt: e.Event.CountsFrom().Truncate(time.Millisecond).Add(time.Millisecond).UTC()}
		row.Begin(id, e.BusinessID, now)
		ch.Rows = append(ch.Rows, row)
	}
	return nil
}

// DropDue forgets events of a shipment that are taken back before they came to count, and gives them.
func DropDue(v cloud.View, ch *cloud.Changes, s cloud.Shipment, taken []cloud.EventRef) (out []cloud.EventRef, err error) {
	if len(taken) == 0 {
		return nil, nil
	}
	found, err := cloud.All(v, cloud.DueEvent{Kept: cloud.Kept[cloud.DueEventID]{BusinessID: s.BusinessID}, ShipmentID: s.ID})
	for _, row := range found {
		if HasRef(taken, row.Ref()) {
			ch.DroppedRows = append(ch.DroppedRows, row)
			out = append(out, row.Ref())
		}
	}
	return out, err
}

// HasRef reports whether an event of a shipment is among others of it.
func HasRef(list []cloud.EventRef, ref cloud.EventRef) bool {
	return slices.ContainsFunc(list, func(x cloud.EventRef) bool { return x.Key() == ref.Key() })
}
