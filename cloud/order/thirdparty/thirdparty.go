// Package thirdparty assigns orders to delivery companies: the assignment with its
// packages and legs, the hand-over, and the outcomes that a company reports. What
// ends an assignment when its order moves by another way is the order's own rule.
// Staff of the business assign, hand over and cancel; the provider's own key
// accepts, rejects, sets legs and reports. Safe for concurrent use.
package thirdparty

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/protocol/otep"
)

// Service is the feature.
type Service struct{ orders *order.Service }

// New builds the service; it starts nothing.
func New(orders *order.Service) *Service { return &Service{orders: orders} }

// Operation types of assignments to third parties, and of what they report.
const (
	thirdCreated    = 8001
	thirdHandedOver = 8002
	thirdReported   = 1005
)

const (
	codeNoThird    = "ASSIGNMENT_NOT_FOUND"
	codeThirdState = "ASSIGNMENT_STATE_CONFLICT"
	codeNotInThird = "PACKAGE_NOT_IN_ASSIGNMENT"
	codeHeld       = "HELD_BY_CONTRACTOR"
)

// thirdParty is the service of a provider that carries orders.
const thirdParty = "third_party"

// ThirdPartyInput gives an order to a third party.
type ThirdPartyInput struct {
	OrderID    cloud.OrderID    `json:"order_id" required:"true" min:"1"`
	ProviderID cloud.ProviderID `json:"provider_id" required:"true" min:"1" doc:"A provider of the business with the service third_party"`
	Packages   []string         `json:"package_tracking_numbers" min:"1" max:"100" item_max:"64" doc:"Packages of the order; all of them when absent"`
	Service    string           `json:"service_code" max:"64" line:"true" doc:"A service of the provider"`
	Note       string           `json:"note" max:"500" doc:"For the provider"`
}

// ThirdPartyOutput shows one assignment.
type ThirdPartyOutput struct {
	Result     bool           `json:"result"`
	Assignment ThirdPartyBody `json:"assignment"`
}

// Assign gives an order to a delivery company and notifies it. No other party
// may plan the order from then on; it moves when packages are handed over.
// Staff may. Errors: ORDER_NOT_FOUND, VALIDATION_FAILED, HELD_BY_THIRD_PARTY,
// HELD_BY_CONTRACTOR, ORDER_ON_ROUTE, ORDER_STATUS_CONFLICT.
func (s *Service) Assign(ctx context.Context, c cloud.Caller, in ThirdPartyInput) (out ThirdPartyOutput, err error) {
	if err := order.RequireStaff(c); err != nil {
		return out, err
	}
	_, err = s.orders.Decide(ctx, c, order.Key{OrderID: in.OrderID}, func(d *order.Decision) error {
		a, err := assign(d, in)
		if err == nil {
			out, err = show(d, *a)
		}
		return err
	})
	return out, err
}

// whyNotThirdParty is why an order cannot go to a third party, nil when it can.
func whyNotThirdParty(o cloud.Order) error {
	code := ""
	switch {
	case o.HeldByThirdParty():
		code = order.CodeThirdParty
	case order.OnRoute(o):
		code = order.CodeOnRoute
	case o.AssignmentID != 0:
		code = codeHeld
	case !order.Resting(o.Status):
		return order.StatusConflict(o)
	default:
		return nil
	}
	return cloud.E(cloud.Conflict, code)
}

// assign makes the assignment.
func assign(d *order.Decision, in ThirdPartyInput) (*cloud.ThirdPartyAssignment, error) {
	f := check.Fields{}
	p, err := d.View.Provider(in.ProviderID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return nil, err
	}
	if err != nil || p.BusinessID != d.Order.BusinessID || !slices.Contains(p.Services, thirdParty) {
		f.Add("provider_id", "This is no third-party delivery provider of yours.")
	}
	var list []cloud.ThirdPartyPackage
	for _, x := range d.Order.Packages {
		if !order.IsFinalPackage(x.Status) {
			list = append(list, cloud.ThirdPartyPackage{ID: x.ID, Number: x.Number, Own: x.ExternalNumber, Outcome: cloud.OutcomePending})
		}
	}
	which, unknown := chosen(list, in.Packages)
	if len(unknown) > 0 {
		f.Add("package_tracking_numbers", "This package is not part of the order.")
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	if err := whyNotThirdParty(d.Order); err != nil {
		return nil, err
	}
	if len(which) == 0 {
		return nil, order.StatusConflict(d.Order) // nothing is left to be brought
	}
	b, err := d.View.Business(d.Order.BusinessID)
	if err != nil {
		return nil, err
	}
	id, err := d.View.NewID(cloud.ThirdPartyIDs)
	if err != nil {
		return nil, err
	}
	l, err := d.Timeline()
	if err != nil {
		return nil, err
	}
	a := &cloud.ThirdPartyAssignment{ID: cloud.ThirdPartyID(id), BusinessID: d.Order.BusinessID, OrderID: d.Order.ID, ProviderID: p.ID,
		Number: fmt.Sprintf("TPA-%d-%06d", d.Now.In(b.Location()).Year(), id), Status: cloud.ThirdPartyCreated, Service: in.Service, Note: in.Note, Own: d.Order.ExternalNumber, By: d.Caller.Account.ID, CreatedAt: d.Now}
	for _, i := range which {
		a.Packages = append(a.Packages, list[i])
	}
	d.AddThirdParty(a)
	d.LogOperation(thirdCreated, d.Order.Status, in.Note, map[string]cloud.FieldChange{"third_party": {To: a.Number}})
	if l.Bookable() {
		l.Append(otep.BookingConfirmed, otep.ThirdParty, "", d.Now, d.Now)
	}
	return a, nil
}

// chosen are the places of packages by their numbers, of all when none is named,
// and the numbers that are of none.
func chosen(list []cloud.ThirdPartyPackage, numbers []string) (which []int, unknown []string) {
	for i, p := range list {
		if len(numbers) == 0 || slices.ContainsFunc(numbers, func(n string) bool { return strings.EqualFold(n, p.Number) }) {
			which = append(which, i)
		}
	}
	for _, n := range numbers {
		if !slices.ContainsFunc(list, func(p cloud.ThirdPartyPackage) bool { return strings.EqualFold(n, p.Number) }) {
			unknown = append(unknown, n)
		}
	}
	return which, unknown
}

// notIn says that packages are not of an assignment.
func notIn(unknown []string) error {
	return &cloud.Error{Kind: cloud.Invalid, Code: codeNotInThird, Details: check.Listed("package_tracking_numbers", unknown)}
}

// stateConflict says that the assignment is in no state for what was asked.
func stateConflict(a cloud.ThirdPartyAssignment) error {
	return &cloud.Error{Kind: cloud.Conflict, Code: codeThirdState, Details: map[string]any{"assignment_number": a.Number, "status": a.Status}}
}

// findAssignment reads an assignment that the caller names: of its business, or of a
// provider its own. Errors: ASSIGNMENT_NOT_FOUND, ACCOUNT_TYPE_NOT_ALLOWED.
func findAssignment(v cloud.View, c cloud.Caller, number string) (a cloud.ThirdPartyAssignment, err error) {
	missing := cloud.E(cloud.NotFound, codeNoThird)
	business := c.Provider.BusinessID
	if c.Provider.ID == 0 {
		if err := order.RequireStaff(c); err != nil {
			return a, err
		}
		business = c.Account.BusinessID
	}
	if !order.IsSane(number) {
		return a, missing
	}
	a, err = v.ThirdPartyByNumber(business, number)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && c.Provider.ID != 0 && a.ProviderID != c.Provider.ID {
		return cloud.ThirdPartyAssignment{}, missing
	}
	return a, err
}

// rule is what an operation does to an open assignment and its order.
type rule func(d *order.Decision, a *cloud.ThirdPartyAssignment) error

// decide runs one decision about an open assignment, of staff or, with provider
// set, of its carrier. Errors: those of findAssignment and fn,
// ASSIGNMENT_STATE_CONFLICT.
func (s *Service) decide(ctx context.Context, c cloud.Caller, number string, provider bool, fn rule) (out ThirdPartyOutput, err error) {
	if provider != (c.Provider.ID != 0) {
		if c.Anonymous() {
			return out, cloud.E(cloud.Unauthenticated, order.CodeAnonymous)
		}
		return out, cloud.E(cloud.Forbidden, order.CodeType)
	}
	err = s.orders.Store().Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		a, err := findAssignment(v, c, number)
		if err != nil {
			return nil, err
		}
		o, err := v.Order(a.BusinessID, a.OrderID)
		if errors.Is(err, cloud.ErrNotFound) || err == nil && (o.ThirdPartyID != a.ID || !a.Open()) {
			return nil, stateConflict(a)
		}
		if err != nil {
			return nil, err
		}
		return s.orders.DecideIn(v, c, o, func(d *order.Decision) error {
			open, err := d.ThirdParty()
			if err != nil {
				return err
			}
			if err := fn(d, open); err != nil {
				return err
			}
			out, err = show(d, *open)
			return err
		})
	})
	if err != nil {
		return ThirdPartyOutput{}, err
	}
	return out, nil
}

// ThirdPartyKey names an assignment.
type ThirdPartyKey struct {
	Number string `path:"assignment_number" json:"-"`
}

// HandOverInput says which packages a third party has now.
type HandOverInput struct {
	ThirdPartyKey
	Packages []string `json:"package_tracking_numbers" min:"1" max:"100" item_max:"64" doc:"All that were not handed over before when absent"`
}

// HandOver notes that packages were handed over: the order is with the
// carrier from the first on, and its timeline is the carrier's to add to. Staff
// may. Errors: ASSIGNMENT_NOT_FOUND, ASSIGNMENT_STATE_CONFLICT,
// PACKAGE_NOT_IN_ASSIGNMENT, ORDER_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) HandOver(ctx context.Context, c cloud.Caller, in HandOverInput) (ThirdPartyOutput, error) {
	return s.decide(ctx, c, in.Number, false, func(d *order.Decision, a *cloud.ThirdPartyAssignment) error {
		which, unknown := chosen(a.Packages, in.Packages)
		if len(unknown) > 0 {
			return notIn(unknown)
		}
		now := map[cloud.PackageID]cloud.OrderPackageStatus{}
		for _, i := range which {
			if p := &a.Packages[i]; p.Outcome == cloud.OutcomePending {
				p.Outcome, p.OccurredAt = cloud.OutcomeHandedOver, d.Now
				now[p.ID] = cloud.OrderPackageInTransit
			}
		}
		if len(now) == 0 {
			return stateConflict(*a)
		}
		step := order.MoveInput{Operation: thirdHandedOver, Source: otep.ThirdParty, Packages: now}
		if d.Order.Status != cloud.OrderHandedOver { // which staff may have set before
			step.To, step.Trigger = cloud.OrderHandedOver, order.HandOver
		}
		if err := d.Step(step); err != nil {
			return err
		}
		if a.Status == cloud.ThirdPartyCreated {
			a.Status, a.HandedOverAt = cloud.ThirdPartyHandedOver, d.Now
		}
		d.SaveThirdParty(order.EventThirdPartyHandedOver)
		return d.SetCarrier(true)
	})
}

// CancelThirdPartyInput takes an order back.
type CancelThirdPartyInput struct {
	ThirdPartyKey
	Reason string `json:"reason" required:"true" enum:"cancelled,fallback_to_self_delivery,reassigned" doc:"reassigned: another provider gets it, by an assignment of its own"`
	Note   string `json:"note" max:"255"`
}

// Cancel ends an assignment; the order is where it was before, and
// anybody's to plan. Staff may. Errors: ASSIGNMENT_NOT_FOUND,
// ASSIGNMENT_STATE_CONFLICT, ORDER_STATUS_CONFLICT of one that was intercepted on
// its way, VALIDATION_FAILED.
func (s *Service) Cancel(ctx context.Context, c cloud.Caller, in CancelThirdPartyInput) (out ThirdPartyOutput, err error) {
	return s.decide(ctx, c, in.Number, false, func(d *order.Decision, a *cloud.ThirdPartyAssignment) error {
		return d.CancelThirdParty(in.Reason, in.Note)
	})
}

// Accept notes that a provider takes an assignment. The provider that carries it
// may, once or again. Errors: ASSIGNMENT_NOT_FOUND, ASSIGNMENT_STATE_CONFLICT.
func (s *Service) Accept(ctx context.Context, c cloud.Caller, in ThirdPartyKey) (ThirdPartyOutput, error) {
	return s.decide(ctx, c, in.Number, true, func(d *order.Decision, a *cloud.ThirdPartyAssignment) error {
		if a.Status != cloud.ThirdPartyCreated {
			return stateConflict(*a)
		}
		if a.AcceptedAt.IsZero() {
			a.AcceptedAt = d.Now
			d.NoteThirdParty("accepted")
		}
		return nil
	})
}

// RejectThirdPartyInput refuses an assignment.
type RejectThirdPartyInput struct {
	ThirdPartyKey
	Reason string `json:"reason" max:"255" doc:"For the business"`
}

// Reject refuses an assignment of which nothing was handed over: it
// ends as one that falls back to self delivery. Its intended carrier may.
// Errors: ASSIGNMENT_NOT_FOUND, ASSIGNMENT_STATE_CONFLICT, VALIDATION_FAILED.
func (s *Service) Reject(ctx context.Context, c cloud.Caller, in RejectThirdPartyInput) (out ThirdPartyOutput, err error) {
	return s.decide(ctx, c, in.Number, true, func(d *order.Decision, a *cloud.ThirdPartyAssignment) error {
		if a.Status != cloud.ThirdPartyCreated {
			return stateConflict(*a)
		}
		return d.CancelThirdParty(cloud.ThirdPartyFallback, in.Reason)
	})
}

// LegInput is an order that a provider made of an assignment in its own system
// or at a carrier. One with a leg_id takes the place of that leg.
type LegInput struct {
	ThirdPartyKey
	LegID          int      `json:"leg_id" min:"1" max:"50" doc:"Of a leg that is there; a new one gets its own"`
	CarrierCode    string   `json:"carrier_code" max:"64" line:"true" doc:"The provider's own code when absent"`
	ExternalOrder  string   `json:"external_order_id" required:"true" max:"64" line:"true"`
	ExternalNumber string   `json:"external_tracking_number" max:"64" line:"true" doc:"By which the packages can be tracked too, up to 64 bytes"`
	LabelURL       string   `json:"label_url" max:"2048" format:"https"`
	Status         string   `json:"status" pattern:"^[a-z0-9_]{1,32}$" example:"in_transit" default:"booked"`
	Packages       []string `json:"package_tracking_numbers" min:"1" max:"100" item_max:"64" doc:"Of the assignment; all when absent"`
}

const (
	maxLegs   = 50
	maxNumber = 64 // bytes of a number by which people look for parcels
)

func (in *LegInput) check() error {
	f := check.Fields{}
	in.ExternalNumber = strings.TrimSpace(in.ExternalNumber)
	if n := len(in.ExternalNumber); n > maxNumber {
		f.Say("external_tracking_number", check.MessageLong, strconv.Itoa(maxNumber), strconv.Itoa(n))
	}
	in.Status = cmp.Or(in.Status, "booked")
	return f.Err()
}

// SetLeg keeps a leg of an open assignment; its tracking number
// becomes that of its packages, and with all packages of the order the order's.
// Its carrier may. Errors: ASSIGNMENT_NOT_FOUND,
// ASSIGNMENT_STATE_CONFLICT, PACKAGE_NOT_IN_ASSIGNMENT, VALIDATION_FAILED.
func (s *Service) SetLeg(ctx context.Context, c cloud.Caller, in LegInput) (out ThirdPartyOutput, err error) {
	if err := in.check(); err != nil {
		return out, err
	}
	return s.decide(ctx, c, in.Number, true, func(d *order.Decision, a *cloud.ThirdPartyAssignment) error { return setLeg(d, a, in) })
}

// setLeg adds a leg, or puts it in place of another.
func setLeg(d *order.Decision, a *cloud.ThirdPartyAssignment, in LegInput) error {
	which, unknown := chosen(a.Packages, in.Packages)
	if len(unknown) > 0 {
		return notIn(unknown)
	}
	leg := cloud.ThirdPartyLeg{ID: in.LegID, CarrierCode: cmp.Or(in.CarrierCode, d.Caller.Provider.Code), ExternalOrder: in.ExternalOrder, ExternalNumber: in.ExternalNumber,
		LabelURL: in.LabelURL, Status: in.Status}
	if leg.ID == 0 {
		leg.ID = len(a.Legs) + 1
		a.Legs = append(a.Legs, leg)
	}
	if most := min(len(a.Legs), maxLegs); leg.ID > most {
		f := check.Fields{}
		f.Say("leg_id", check.MessageBetween, "1", strconv.Itoa(most))
		return f.Err()
	}
	for _, i := range which {
		leg.Packages = append(leg.Packages, a.Packages[i].Number)
	}
	a.Legs[leg.ID-1] = leg
	for i := range a.Packages {
		p := &a.Packages[i]
		p.External = ""
		for _, x := range a.Legs {
			if x.ExternalNumber != "" && slices.Contains(x.Packages, p.Number) {
				p.External = x.ExternalNumber
			}
		}
	}
	d.NoteThirdParty("leg_set")
	return d.SetThirdPartyNumbers()
}

// ThirdPartiesInput asks for a page of assignments, newest first. Fields that are
// not given do not filter.
type ThirdPartiesInput struct {
	OrderID    cloud.OrderID          `query:"order_id"`
	ProviderID cloud.ProviderID       `query:"provider_id" doc:"Without meaning for providers, who see their own"`
	Status     cloud.ThirdPartyStatus `query:"status"`
	check.LongKeyset
}

// ThirdPartiesOutput is a page of assignments.
type ThirdPartiesOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Assignments []ThirdPartyBody `json:"assignments"`
}

// List lists what third parties carry, or carried: a provider sees its
// own, staff all of the business's. Errors: VALIDATION_FAILED,
// ACCOUNT_TYPE_NOT_ALLOWED.
func (s *Service) List(ctx context.Context, c cloud.Caller, in ThirdPartiesInput) (out ThirdPartiesOutput, err error) {
	q := cloud.ThirdPartyQuery{BusinessID: c.Account.BusinessID, ProviderID: in.ProviderID, OrderID: in.OrderID, Status: in.Status}
	if c.Provider.ID != 0 {
		q.BusinessID, q.ProviderID = c.Provider.BusinessID, c.Provider.ID
	} else if err := order.RequireStaff(c); err != nil {
		return out, err
	}
	if q.Page, err = in.Part(in, "-id"); err != nil {
		return out, err
	}
	listed, found, err := s.orders.Store().ListThirdParties(ctx, q)
	if err != nil {
		return out, err
	}
	out = ThirdPartiesOutput{Result: true, PageOutput: in.Output(in, listed), Assignments: []ThirdPartyBody{}}
	return out, s.orders.Store().Look(ctx, func(v cloud.View) error {
		for _, a := range found {
			b, err := showAssignment(v, a)
			if err != nil {
				return err
			}
			out.Assignments = append(out.Assignments, b)
		}
		return nil
	})
}

// Find shows one assignment to its carrier and to staff. Errors:
// ASSIGNMENT_NOT_FOUND, ACCOUNT_TYPE_NOT_ALLOWED.
func (s *Service) Find(ctx context.Context, c cloud.Caller, in ThirdPartyKey) (out ThirdPartyOutput, err error) {
	err = s.orders.Store().Look(ctx, func(v cloud.View) error {
		a, err := findAssignment(v, c, in.Number)
		if err != nil {
			return err
		}
		out.Result = true
		out.Assignment, err = showAssignment(v, a)
		return err
	})
	return out, err
}

// show is the answer that shows an assignment.
func show(d *order.Decision, a cloud.ThirdPartyAssignment) (out ThirdPartyOutput, err error) {
	out.Assignment, err = showWithOrder(d.View, a, d.Order)
	out.Result = err == nil
	d.Changes.Answer = out
	return out, err
}
