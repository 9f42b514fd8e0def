package route

import (
	"context"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/protocol/otep"
)

// ByOrder names an order of a driver.
type ByOrder struct {
	OrderID cloud.OrderID `path:"order_id" json:"-"`
}

// drive is an act of a driver on an order that it has.
func (s *Service) drive(ctx context.Context, c cloud.Caller, id cloud.OrderID, fn func(t *task, o cloud.Order) ([]order.MoveInput, error)) (OrderOutput, error) {
	r, err := driver(c)
	if err != nil {
		return OrderOutput{}, err
	}
	return s.order(ctx, c, r, id, fn)
}

// Accept takes an order on. Errors: ORDER_NOT_FOUND, ORDER_STATUS_CONFLICT.
func (s *Service) Accept(ctx context.Context, c cloud.Caller, in ByOrder) (OrderOutput, error) {
	return s.drive(ctx, c, in.OrderID, func(_ *task, o cloud.Order) ([]order.MoveInput, error) {
		return []order.MoveInput{step(o, cloud.OrderDriverAccepted, order.DriverAccepts, opAccepted, "", nil)}, nil
	})
}

// DeclineInput is why a driver does not take an order on.
type DeclineInput struct {
	OrderID cloud.OrderID `path:"order_id" json:"-"`
	Reason  string        `json:"reason" max:"255" line:"true"`
}

// Decline gives an order back that the driver has not set out for: it leaves the
// route and can be planned again. Errors: ORDER_NOT_FOUND,
// ORDER_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) Decline(ctx context.Context, c cloud.Caller, in DeclineInput) (OrderOutput, error) {
	return s.drive(ctx, c, in.OrderID, func(_ *task, o cloud.Order) ([]order.MoveInput, error) {
		if o.Before == 0 {
			return nil, orderConflict(o)
		}
		return []order.MoveInput{step(o, o.Before, order.DriverDeclines, opDeclined, in.Reason, nil)}, nil
	})
}

// StartPickup is a driver on the way to the sender. It starts the route.
// Errors: ORDER_NOT_FOUND, ORDER_STATUS_CONFLICT, also when the business wants
// orders accepted first, ROUTE_STATUS_CONFLICT of a route that is not dispatched.
func (s *Service) StartPickup(ctx context.Context, c cloud.Caller, in ByOrder) (OrderOutput, error) {
	return s.drive(ctx, c, in.OrderID, func(t *task, o cloud.Order) ([]order.MoveInput, error) {
		return []order.MoveInput{step(o, cloud.OrderOutForPickup, order.StartPickup, opPickupStarted, "", nil)}, t.start(o)
	})
}

// StartDelivery is a driver on the way to the recipient, for the first time or
// again. It starts the route. Errors: those of StartPickup.
func (s *Service) StartDelivery(ctx context.Context, c cloud.Caller, in ByOrder) (OrderOutput, error) {
	return s.drive(ctx, c, in.OrderID, func(t *task, o cloud.Order) ([]order.MoveInput, error) {
		by := order.StartDelivery
		if o.Status == cloud.OrderPickedUp {
			by = order.RunDirect
		}
		return []order.MoveInput{step(o, cloud.OrderOutForDelivery, by, opStarted, "", nil)}, t.start(o)
	})
}

// start checks that a driver may set out for an order, and starts its route.
func (t *task) start(o cloud.Order) error {
	b, err := t.v.Business(o.BusinessID)
	if err != nil {
		return err
	}
	if b.Settings.DriverAccepts && slices.Contains(planned, o.Status) && o.Status != cloud.OrderDriverAccepted {
		return orderConflict(o)
	}
	if o.RouteID == 0 {
		return nil
	}
	x, err := t.v.Route(o.BusinessID, o.RouteID)
	if err != nil {
		return err
	}
	switch phase := x.Phase(); phase {
	case cloud.RouteInProgress:
		return nil
	case cloud.RouteDispatched:
		x.StartedAt, x.UpdatedAt = t.now, t.now
		t.ch.Routes = append(t.ch.Routes, x)
		return nil
	default:
		return routeConflict(phase)
	}
}

// ResultInput is what came of a stop.
type ResultInput struct {
	OrderID     cloud.OrderID `path:"order_id" json:"-"`
	Result      string        `json:"result" required:"true" enum:"success,failed"`
	FailureCode string        `json:"failure_code" doc:"An incident reason of OTEP; required when it failed, but for a refusal"`
	FollowUp    string        `json:"follow_up" enum:"redelivery,reschedule,refused" doc:"What comes after a failure; redelivery when absent"`
	Date        string        `json:"scheduled_date" format:"date" doc:"With reschedule: the new day"`
	// Delivered are the packages that were handed over, when only some were.
	Delivered []cloud.PackageID `json:"delivered_package_ids"`
	Recipient string            `json:"recipient_name" max:"100" line:"true" doc:"Who took all that was left"`
	Latitude  *float64          `json:"latitude" min:"-90" max:"90" with:"longitude"`
	Longitude *float64          `json:"longitude" min:"-180" max:"180" with:"latitude"`
}

// PickupInput is what came of a stop at the sender.
type PickupInput struct {
	OrderID     cloud.OrderID `path:"order_id" json:"-"`
	Result      string        `json:"result" required:"true" enum:"success,failed"`
	FailureCode string        `json:"failure_code" doc:"An incident reason of OTEP; required when it failed"`
	FollowUp    string        `json:"follow_up" enum:"redelivery,reschedule" doc:"What comes after a failure; redelivery when absent"`
	Date        string        `json:"scheduled_date" format:"date" doc:"With reschedule: the new day"`
}

// Follow-ups of a failed attempt.
const (
	redelivery = "redelivery" // by the same driver, or planned again
	reschedule = "reschedule" // another day
	refused    = "refused"    // never
)

// check checks the input of one of the two, and fills in what was left out.
func (in *ResultInput) check() error {
	f := check.Fields{}
	if in.Result == "failed" {
		if in.FollowUp == "" {
			in.FollowUp = redelivery
		}
		if in.FollowUp == refused && in.FailureCode == "" {
			in.FailureCode = "recipient_refused"
		}
		if _, ok := otep.Reason(in.FailureCode); !ok {
			f.Add("failure_code", "Use an incident reason of OTEP, such as recipient_unavailable.")
		}
		if len(in.Delivered) > 0 {
			f.Add("delivered_package_ids", "This goes with a success only.")
		}
	} else if in.FailureCode != "" || in.FollowUp != "" {
		f.Add("failure_code", "This goes with a failure only.")
	}
	if in.Date != "" && in.FollowUp != reschedule {
		f.Add("scheduled_date", "This goes with reschedule only.")
	}
	return f.Err()
}

// ahead checks that a new day has not passed.
func (in *ResultInput) ahead(t *task, o cloud.Order) error {
	b, err := t.v.Business(o.BusinessID)
	if err == nil && in.Date != "" && in.Date < t.now.In(b.Location()).Format(time.DateOnly) {
		f := check.Fields{}
		f.Add("scheduled_date", "The date has passed.")
		return f.Err()
	}
	return err
}

// dated puts the new day into an order.
func (in *ResultInput) dated(o *cloud.Order) {
	if in.Date != "" {
		o.ScheduledDate = in.Date
	}
}

// Pickup is what came of a stop at the sender. With reschedule it is planned
// again another day. Errors: ORDER_NOT_FOUND, ORDER_STATUS_CONFLICT,
// VALIDATION_FAILED.
func (s *Service) Pickup(ctx context.Context, c cloud.Caller, p PickupInput) (OrderOutput, error) {
	in := ResultInput{Result: p.Result, FailureCode: p.FailureCode, FollowUp: p.FollowUp, Date: p.Date}
	if err := in.check(); err != nil {
		return OrderOutput{}, err
	}
	return s.drive(ctx, c, p.OrderID, func(t *task, o cloud.Order) ([]order.MoveInput, error) {
		if in.Result == "success" {
			return []order.MoveInput{step(o, cloud.OrderPickedUp, order.PickupResult, opPickupDone, "", nil)}, nil
		}
		m := step(o, cloud.OrderPickupFailed, order.PickupResult, opPickupFail, "", nil)
		m.Reason = in.FailureCode
		moves := []order.MoveInput{m}
		if in.FollowUp == reschedule {
			moves = append(moves, step(o, cloud.OrderPickupRescheduled, order.Reschedule, opPickupFail, reschedule, in.dated))
		}
		return moves, in.ahead(t, o)
	})
}

// Deliver is what came of a stop at the recipient: all packages handed over,
// some of them, or a failure. Errors: ORDER_NOT_FOUND, ORDER_STATUS_CONFLICT,
// VALIDATION_FAILED, and PROOF_REQUIRED while a photo or signature that the
// order asks for is not uploaded.
func (s *Service) Deliver(ctx context.Context, c cloud.Caller, in ResultInput) (OrderOutput, error) {
	if err := in.check(); err != nil {
		return OrderOutput{}, err
	}
	return s.drive(ctx, c, in.OrderID, func(t *task, o cloud.Order) ([]order.MoveInput, error) {
		moves, err := in.failed(o), in.ahead(t, o)
		if in.Result == "success" {
			if moves, err = in.delivered(o); err == nil {
				err = missingProof(o)
			}
		}
		if err == nil {
			moves[0].Place = in.place(o)
		}
		return moves, err
	})
}

// missingProof says which files a delivery of the order must have first.
func missingProof(o cloud.Order) error {
	var missing []string
	need := func(wanted bool, kind string) {
		if wanted && !slices.ContainsFunc(o.Files, func(f cloud.ProofFile) bool { return f.Type == kind && f.Event == otep.Delivered }) {
			missing = append(missing, kind)
		}
	}
	need(o.PhotoRequired, "photo")
	need(o.SignatureRequired, "signature")
	if missing == nil {
		return nil
	}
	return &cloud.Error{Kind: cloud.Invalid, Code: codeProof, Details: map[string]any{"missing": missing}}
}

// delivered are the moves of packages that were handed over: some of those that
// were left, or all.
func (in *ResultInput) delivered(o cloud.Order) ([]order.MoveInput, error) {
	left := map[cloud.PackageID]bool{}
	for _, p := range o.Packages {
		left[p.ID] = p.Status != cloud.OrderPackageDelivered
	}
	given := slices.Compact(slices.Sorted(slices.Values(in.Delivered)))
	for _, id := range given {
		if !left[id] {
			f := check.Fields{}
			f.Add("delivered_package_ids", "These must be packages of the order that were not delivered before.")
			return nil, f.Err()
		}
		delete(left, id)
	}
	rest := false
	for _, open := range left {
		rest = rest || open
	}
	by := order.DeliveryResult
	switch {
	case len(given) > 0 && rest && o.Status == cloud.OrderPartlyDelivered:
		return nil, orderConflict(o) // the table knows no second part
	case len(given) > 0 && rest:
		m := step(o, cloud.OrderPartlyDelivered, by, opFailed, "", nil)
		m.Delivered = given
		return []order.MoveInput{m}, nil
	case o.Status == cloud.OrderPickedUp:
		by = order.RunDirect
	}
	m := step(o, cloud.OrderDelivered, by, opDelivered, "", nil)
	m.Recipient = in.Recipient
	return []order.MoveInput{m}, nil
}

// place is where the driver was, nil when that is not known.
func (in *ResultInput) place(o cloud.Order) *otep.Location {
	if in.Latitude == nil {
		return nil
	}
	p := &otep.Location{Type: otep.PlaceAddress, Latitude: in.Latitude, Longitude: in.Longitude}
	if a := o.Recipient; a != nil {
		p.City, p.Region, p.Country = a.City, a.Province, a.Country
	}
	return p
}

// failed are the moves of a failed attempt. The rest of an order that was
// delivered in part goes the same ways, but is not refused: the table knows no
// such move.
func (in *ResultInput) failed(o cloud.Order) []order.MoveInput {
	to := cloud.OrderDeliveryFailed
	if in.FollowUp == refused {
		to = cloud.OrderRejected
	}
	m := step(o, to, order.DeliveryResult, opFailed, "", nil)
	m.Reason = in.FailureCode
	moves := []order.MoveInput{m}
	if in.FollowUp == reschedule {
		moves = append(moves, step(o, cloud.OrderDeliveryRescheduled, order.Reschedule, opFailed, reschedule, in.dated))
	}
	return moves
}

// Ready marks the goods of a new order as ready to be fetched, where the
// business lets drivers do so: of any order that its own drivers, or the
// contractor's, may be given. Errors: FORBIDDEN, ORDER_NOT_FOUND,
// ORDER_STATUS_CONFLICT.
func (s *Service) Ready(ctx context.Context, c cloud.Caller, in ByOrder) (OrderOutput, error) {
	r, err := driver(c)
	if err != nil {
		return OrderOutput{}, err
	}
	var side cloud.AccountID // whose orders the driver may be given
	err = s.store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(r.business)
		if err != nil {
			return err
		}
		if !b.Settings.DriverMarksReady {
			return cloud.E(cloud.Forbidden, codeForbidden)
		}
		d, err := r.person(v, r.driver)
		side = d.BrokerID
		return err
	})
	if err != nil {
		return OrderOutput{}, err
	}
	return s.order(ctx, c, reach{business: r.business}, in.OrderID, func(_ *task, o cloud.Order) ([]order.MoveInput, error) {
		if o.BrokerID != side {
			return nil, cloud.E(cloud.NotFound, codeOrder)
		}
		return []order.MoveInput{step(o, cloud.OrderReady, order.MarkReady, opReady, "", nil)}, nil
	})
}
