// Package scan takes the scans of goods in a warehouse: received, arrived from
// another facility, sent out (operation types 4001 to 4006). Every scan is one
// decision of package order. Safe for concurrent use.
package scan

import (
	"context"
	"errors"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
)

// Actions of a scan.
const (
	receive  = "receive"
	arrive   = "arrive"
	outbound = "outbound"
	lineHaul = "line_haul"
)

// targets are the statuses that actions lead to.
var targets = map[string]cloud.OrderStatus{receive: cloud.OrderReceived, arrive: cloud.OrderArrivalScan, outbound: cloud.OrderOutbound, lineHaul: cloud.OrderInTransit}

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
		out.Changed, err = order.HoldIntercepted(d, in.Note)
		return err
	}
	m := order.ScanMove(d.Order, pkg, targets[in.Action])
	if m.Operation == 0 {
		return order.StatusConflict(d.Order)
	}
	if m.To == 0 && len(m.Packages) == 0 {
		return nil // it had been scanned
	}
	m.Note, out.Changed = in.Note, true
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
