package tracking

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// fileSigned is how long an address of a proof file can be used.
const fileSigned = 7 * 24 * time.Hour

// order fills in what the parcel's order tells.
func (s *Service) order(v cloud.View, c cloud.Caller, p parcel, out *PublicOutput) error {
	o, err := v.Order(p.shipment.BusinessID, p.shipment.OrderID)
	if errors.Is(err, cloud.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	kind, id, name := string(o.Type), int(o.Status), o.Status.String()
	out.OrderRef, out.Family, out.Type, out.OrderStatusID, out.OrderStatus = cloud.OrNull(o.Ref), cloud.LocalDelivery, &kind, &id, &name
	out.ScheduledDate, out.ETA = cloud.OrNull(o.ScheduledDate), cloud.Stamp(o.ETA, out.Zone)
	if o.WindowStart != "" {
		out.TimeWindow = &TimeWindow{Start: o.WindowStart, End: o.WindowEnd}
	}
	for _, x := range o.Packages {
		status := string(x.Status)
		out.Packages = append(out.Packages, Package{TrackingNumber: x.Number, Status: &status, Weight: cloud.OrNull(x.Weight), WeightUnit: x.WeightUnit})
	}
	if out.Carrier.Name == nil && o.SelfDelivery {
		out.Carrier = Carrier{Name: cloud.OrNull(out.Business.Name), Phone: out.Business.SupportPhone}
	}
	whole := p.whole()
	if a := o.Recipient; a != nil {
		out.Recipient = consignee(*a, whole)
	}
	out.Proof = s.proof(c, o, p.timeline, whole)
	if out.Driver, err = driverOf(v, o); err != nil {
		return err
	}
	out.OrderID = o.ID
	if out.Plan, err = planOf(v, o); err != nil {
		return err
	}
	if s.invite != nil {
		token, ok, err := s.invite(v, o)
		if err != nil {
			return err
		}
		if out.Chat = (Chat{Enabled: ok, Token: cloud.OrNull(token)}); ok {
			out.Chat.OrderID = &o.ID
		}
	}
	if out.StopsBefore, err = stopsBefore(v, o); err != nil {
		return err
	}
	return orderLocker(v, o, out)
}

// planOf is what is planned for an order. The day of a route counts once its driver has it.
func planOf(v cloud.View, o cloud.Order) (Plan, error) {
	plan := Plan{Day: o.ScheduledDate}
	switch o.Status {
	case cloud.OrderRoutePlanned:
		plan.Routed = true
	case cloud.OrderDriverAssigned, cloud.OrderDriverAccepted:
		plan.Routed, plan.Driver = true, true
	case cloud.OrderNew, cloud.OrderReady:
		if o.AssignmentID == 0 {
			return Plan{}, nil
		}
		plan.Partner = true
	default:
		return Plan{}, nil
	}
	if o.RouteID == 0 {
		return plan, nil
	}
	r, err := v.Route(o.BusinessID, o.RouteID)
	if errors.Is(err, cloud.ErrNotFound) {
		return plan, nil
	}
	if err == nil && r.Phase() != cloud.RoutePlanned {
		plan.Day = r.Date
	}
	return plan, err
}

// driverOf is the driver on the way with an order, nil while there is none, with the
// place within the last quarter of an hour, to about a hundred metres. The place of
// a driver who has ended work, or has been switched off, is not shown.
func driverOf(v cloud.View, o cloud.Order) (*Driver, error) {
	if o.Status != cloud.OrderOutForPickup && o.Status != cloud.OrderOutForDelivery {
		return nil, nil
	}
	name := strings.Fields(o.DriverName)
	if len(name) == 0 {
		return nil, nil
	}
	d := &Driver{FirstName: name[0]}
	who, err := v.Driver(o.BusinessID, o.DriverID)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (!who.Account.Enabled || !who.OnDuty && !who.DutySince.IsZero()) {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := v.DriverPlace(o.BusinessID, o.DriverID)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && time.Since(p.RecordedAt) > cloud.PlaceFresh {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := v.Business(o.BusinessID)
	if err != nil {
		return nil, err
	}
	d.Latitude, d.Longitude, d.UpdatedAt = rounded(p.Latitude), rounded(p.Longitude), cloud.Stamp(p.RecordedAt, b.Location())
	return d, nil
}

func rounded(degrees float64) *float64 {
	x := math.Round(degrees*1000) / 1000
	return &x
}

// stopsBefore is how many stops the driver makes before that of an order, nil
// while the route has not started.
func stopsBefore(v cloud.View, o cloud.Order) (*int, error) {
	if o.RouteID == 0 {
		return nil, nil
	}
	r, err := v.Route(o.BusinessID, o.RouteID)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && r.Phase() != cloud.RouteInProgress {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	orders, err := v.RouteOrders(o.BusinessID, o.RouteID)
	if err != nil {
		return nil, err
	}
	if n, ok := cloud.StopsBefore(o, orders); ok {
		return &n, nil
	}
	return nil, nil
}

// proof is what is known of the delivery: who took the goods, and the files that
// show it.
func (s *Service) proof(c cloud.Caller, o cloud.Order, t otep.Timeline, whole bool) Proof {
	p := Proof{Files: []string{}}
	if t.Delivered {
		for _, e := range slices.Backward(t.Events) {
			if e.StatusCode != otep.Delivered || e.PoD == nil {
				continue
			}
			pod := e.PoD
			if !whole {
				pod = pod.Public()
			}
			p.Available, p.RecipientName = true, cloud.OrNull(pod.Recipient)
			break
		}
	}
	for _, f := range o.Files {
		if f.Event != otep.Delivered {
			continue
		}
		p.Available = true
		if whole && s.sign != nil {
			p.Files = append(p.Files, c.BaseURL+s.sign(f.Path, time.Now().Add(fileSigned)))
		}
	}
	return p
}

// consignee is who an order is for: in full for callers who may see it.
func consignee(a cloud.Address, whole bool) Recipient {
	r := Recipient{Name: cloud.OrNull(a.Name), City: cloud.OrNull(a.City), Province: cloud.OrNull(a.Province), PostalCode: cloud.OrNull(a.PostalCode),
		Country: cloud.OrNull(a.Country)}
	if !whole {
		r.Name, r.PostalCode = cloud.OrNull(maskName(a.Name)), cloud.OrNull(maskPostalCode(a.PostalCode))
	}
	return r
}
