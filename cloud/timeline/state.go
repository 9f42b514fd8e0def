package timeline

import (
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// Settled is a shipment with the status of its timeline.
func Settled(s cloud.Shipment, t otep.Timeline) cloud.Shipment {
	s.Current, s.LastAt = "", time.Time{}
	if t.Current != nil {
		s.Current, s.LastAt = *t.Current, t.LastEventAt.UTC().Truncate(time.Millisecond)
	}
	return s
}

// StateAt is a shipment with the status that its events lead to at a time. packages are those of its order.
func StateAt(s cloud.Shipment, events []cloud.TimelineEvent, packages []cloud.PackageID, at time.Time) cloud.Shipment {
	return Settled(s, otep.FoldAt(s.Profile, s.Subject(), OfOrder(events, packages, at), at))
}

// PackagesOf are the packages of a shipment's order, by id; none without an order.
func PackagesOf(v cloud.View, s cloud.Shipment) (out []cloud.PackageID, err error) {
	if s.OrderID == 0 {
		return nil, nil
	}
	list, err := v.PackagesOf(s.BusinessID, s.OrderID)
	for _, p := range list {
		out = append(out, p.ID)
	}
	return out, err
}
