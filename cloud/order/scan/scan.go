// Package scan takes the scans of goods in a warehouse: received, arrived from
// another facility, sent out (operation types 4001 to 4006). Every scan is one
// decision of package order. Safe for concurrent use.
package scan

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/interception"
)

// Actions of a scan.
const (
	receive  = "receive"
	arrive   = "arrive"
	outbound = "outbound"
	lineHaul = "line_haul"
)

// Operation types (interface 4.5).
const (
	received, arrived, sentOut, shelved = 4001, 4002, 4003, 4005
)

// Service is the feature.
type Service struct{ orders *order.Service }

// New builds the service; it starts nothing.
func New(orders *order.Service) *Service { return &Service{orders: orders} }

// ScanInput is one scan.
type ScanInput struct {
	Code   string `json:"code" required:"true" max:"128" doc:"Tracking number of an order or of one of its packages, or the reference of an order"`
	Action string `json:"action" required:"true" enum:"receive,arrive,outbound,line_haul" doc:"receive: at the warehouse; arrive: at a facility on the way; outbound: leaves the facility; line_haul: leaves on a line haul"`
	Note   string `json:"note" max:"255"`
}

// ScanOutput is what a scan came to. Changed is false for a scan that had been made
// before. Held says that the order is intercepted and its goods stay here. PackageID
// is the package that was scanned, null when the code names the whole order.
type ScanOutput struct {
	Result    bool             `json:"result"`
	Changed   bool             `json:"changed"`
	Held      bool             `json:"held"`
	PackageID *cloud.PackageID `json:"package_id"`
	Order     order.OrderBody  `json:"order"`
}

// Scan notes where goods are and moves their order by the table. The scan of a
// package counts for that package, and its order moves with the first one; a pickup
// order ends with the last. An order that is intercepted is held at the warehouse,
// one that is planned again is back on its shelf. Staff may. Errors: ORDER_NOT_FOUND,
// AMBIGUOUS_ORDER_REF, ORDER_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) Scan(ctx context.Context, c cloud.Caller, in ScanInput) (ScanOutput, error) {
	if err := order.RequireStaff(c); err != nil {
		return ScanOutput{}, err
	}
	number, _ := splitNumber(in.Code)
	var out ScanOutput
	var err error
	// A reference may look like a number, and the other way round.
	for _, k := range []order.Key{{Number: in.Code}, {Number: number}, {Ref: in.Code}} {
		var done order.OrderOutput
		done, err = s.orders.Decide(ctx, c, k, func(d *order.Decision) (err error) {
			out = ScanOutput{Result: true}
			return scan(d, in, k.Number, &out)
		})
		out.Order = done.Order
		var e *cloud.Error
		if !errors.As(err, &e) || e.Code != order.CodeNotFound {
			break
		}
	}
	if err != nil {
		return ScanOutput{}, err
	}
	return out, nil
}

// splitNumber is the order's number in that of a package: the part before -1, -2, …
func splitNumber(code string) (number string, ok bool) {
	i := strings.LastIndexByte(code, '-')
	if i <= 0 || i == len(code)-1 || strings.Trim(code[i+1:], "0123456789") != "" {
		return code, false
	}
	return code[:i], true
}

// scan is one scan of an order that was found by a number, "": by its reference.
func scan(d *order.Decision, in ScanInput, number string, out *ScanOutput) error {
	var pkg *cloud.OrderPackage
	if _, split := splitNumber(in.Code); number != "" && split && cloud.NumberKey(in.Code) != cloud.NumberKey(d.Order.Number) {
		if pkg = packageOf(d.Order, in.Code); pkg == nil {
			return cloud.E(cloud.NotFound, order.CodeNotFound) // a package that the order does not have
		}
		out.PackageID = &pkg.ID
	}
	if d.Order.Status == cloud.OrderIntercepted && in.Action == receive {
		out.Held = true
		var err error
		out.Changed, err = interception.HoldOrder(d, in.Note)
		return err
	}
	m, state := move(d.Order, in.Action)
	if m.Operation == 0 {
		return order.StatusConflict(d.Order)
	}
	m.BusinessID, m.OrderID, m.Note = d.Order.BusinessID, d.Order.ID, in.Note
	m.Packages = packages(d.Order, pkg, state)
	ends := d.Order.Type == cloud.PickupOrder && m.To == cloud.OrderReceived
	if ends && waits(d.Order, m.Packages) {
		m.To = 0
	}
	switch {
	case m.To == 0 && len(m.Packages) == 0:
		return nil // it had been scanned
	case m.To != 0 && (ends || pkg == nil): // what becomes of the order becomes of its packages
		m.Packages = nil
	}
	out.Changed = true
	return d.Step(m)
}

// packageOf is the package of an order with a number of its own; nil: none. Former
// numbers of the order count.
func packageOf(o cloud.Order, code string) *cloud.OrderPackage {
	_, suffix, _ := cutLast(code)
	for i := range o.Packages {
		if _, s, _ := cutLast(o.Packages[i].Number); s == suffix {
			return &o.Packages[i]
		}
	}
	return nil
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '-')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// move is what a scan does to an order, and what its packages are after it. Of an
// order that is already where the scan leads, To is 0; Operation is 0 where the scan
// is out of place.
func move(o cloud.Order, action string) (order.MoveInput, cloud.OrderPackageStatus) {
	type in = order.MoveInput
	switch s := o.Status; action {
	case receive:
		switch s {
		case cloud.OrderPickedUp, cloud.OrderDeliveryFailed:
			return in{To: cloud.OrderReceived, Trigger: order.ReceiveScan, Operation: received}, cloud.OrderPackageReceived
		case cloud.OrderInTransit, cloud.OrderOutbound:
			return in{To: cloud.OrderReceived, Trigger: order.ArriveScan, Operation: received}, cloud.OrderPackageReceived
		case cloud.OrderReceived:
			return in{Operation: received}, cloud.OrderPackageReceived
		case cloud.OrderDeliveryRescheduled:
			return in{Operation: shelved}, cloud.OrderPackageReceived
		}
	case arrive:
		switch s {
		case cloud.OrderInTransit, cloud.OrderOutbound:
			return in{To: cloud.OrderArrivalScan, Trigger: order.ArriveScan, Operation: arrived}, cloud.OrderPackageReceived
		case cloud.OrderArrivalScan:
			return in{Operation: arrived}, cloud.OrderPackageReceived
		}
	case outbound, lineHaul:
		to := cloud.OrderOutbound
		if action == lineHaul {
			to = cloud.OrderInTransit
		}
		switch s {
		case cloud.OrderReceived, cloud.OrderArrivalScan:
			return in{To: to, Trigger: order.OutboundScan, Operation: sentOut}, cloud.OrderPackageInTransit
		case to:
			return in{Operation: sentOut}, cloud.OrderPackageInTransit
		}
	}
	return in{}, ""
}

// packages are those that a scan changes, with what they are after it: the one that
// was scanned, or all that are on their way.
func packages(o cloud.Order, pkg *cloud.OrderPackage, to cloud.OrderPackageStatus) map[cloud.PackageID]cloud.OrderPackageStatus {
	out := map[cloud.PackageID]cloud.OrderPackageStatus{}
	for _, p := range o.Packages {
		if (pkg == nil || p.ID == pkg.ID) && p.Status != to && moves(p.Status) {
			out[p.ID] = to
		}
	}
	return out
}

// moves reports whether a package in a state can still be scanned.
func moves(s cloud.OrderPackageStatus) bool {
	switch s {
	case cloud.OrderPackageDelivered, cloud.OrderPackageReturned, cloud.OrderPackageCancelled:
		return false
	}
	return true
}

// waits reports whether packages of an order are still on the way when those that are
// scanned now are there.
func waits(o cloud.Order, now map[cloud.PackageID]cloud.OrderPackageStatus) bool {
	return slices.ContainsFunc(o.Packages, func(p cloud.OrderPackage) bool {
		_, here := now[p.ID]
		return !here && p.Status != cloud.OrderPackageReceived && p.Status != cloud.OrderPackageLost && moves(p.Status)
	})
}
