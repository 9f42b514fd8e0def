package order

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
	"github.com/postern-io/postern/protocol/otep"
)

// Operation types of assignments to third parties, and of what they report.
const (
	thirdCreated    = 8001
	thirdHandedOver = 8002
	thirdCancelled  = 8003
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

// AssignThirdParty gives an order to a delivery company, which is told. Nobody
// else may plan the order from then on; it moves when packages are handed over.
// Staff may. Errors: ORDER_NOT_FOUND, VALIDATION_FAILED, HELD_BY_THIRD_PARTY,
// HELD_BY_CONTRACTOR, ORDER_ON_ROUTE, ORDER_STATUS_CONFLICT.
func (s *Service) AssignThirdParty(ctx context.Context, c cloud.Caller, in ThirdPartyInput) (out ThirdPartyOutput, err error) {
	if err := RequireStaff(c); err != nil {
		return out, err
	}
	_, err = s.Decide(ctx, c, Key{OrderID: in.OrderID}, func(d *Decision) error {
		err := d.assignThirdParty(in)
		if err == nil {
			out, err = d.showThird()
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
		code = CodeThirdParty
	case OnRoute(o):
		code = CodeOnRoute
	case o.AssignmentID != 0:
		code = codeHeld
	case !Resting(o.Status):
		return StatusConflict(o)
	default:
		return nil
	}
	return cloud.E(cloud.Conflict, code)
}

func (d *Decision) assignThirdParty(in ThirdPartyInput) error {
	f := newFields()
	p, err := d.View.Provider(in.ProviderID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return err
	}
	if err != nil || p.BusinessID != d.Order.BusinessID || !slices.Contains(p.Services, thirdParty) {
		f.Add("provider_id", "This is no third-party delivery provider of yours.")
	}
	var list []cloud.ThirdPartyPackage
	for _, x := range d.Order.Packages {
		if !IsFinalPackage(x.Status) {
			list = append(list, cloud.ThirdPartyPackage{ID: x.ID, Number: x.Number, Own: x.ExternalNumber, Outcome: cloud.OutcomePending})
		}
	}
	which, unknown := chosen(list, in.Packages)
	if len(unknown) > 0 {
		f.Add("package_tracking_numbers", "This package is not part of the order.")
	}
	if err := f.Err(); err != nil {
		return err
	}
	if err := whyNotThirdParty(d.Order); err != nil {
		return err
	}
	if len(which) == 0 {
		return StatusConflict(d.Order) // nothing is left to be brought
	}
	b, err := d.View.Business(d.Order.BusinessID)
	if err != nil {
		return err
	}
	id, err := d.View.NewID(cloud.ThirdPartyIDs)
	if err != nil {
		return err
	}
	l, err := d.Timeline()
	if err != nil {
		return err
	}
	d.thirdParty = &cloud.ThirdPartyAssignment{ID: cloud.ThirdPartyID(id), BusinessID: d.Order.BusinessID, OrderID: d.Order.ID, ProviderID: p.ID,
		Number: fmt.Sprintf("TPA-%d-%06d", d.Now.In(b.Location()).Year(), id), Status: cloud.ThirdPartyCreated, Service: in.Service, Note: in.Note, Own: d.Order.ExternalNumber, By: d.Caller.Account.ID, CreatedAt: d.Now}
	for _, i := range which {
		d.thirdParty.Packages = append(d.thirdParty.Packages, list[i])
	}
	d.Order.ThirdPartyID, d.Order.ThirdPartyOpen, d.thirdPartyChanged = d.thirdParty.ID, true, true
	d.LogOperation(thirdCreated, d.Order.Status, in.Note, map[string]cloud.FieldChange{"third_party": {To: d.thirdParty.Number}})
	if l.Bookable() {
		l.Append(otep.BookingConfirmed, otep.ThirdParty, "", d.Now, d.Now)
	}
	d.thirdPartyEvents = append(d.thirdPartyEvents, eventThirdCreated)
	return nil
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
	return &cloud.Error{Kind: cloud.Invalid, Code: codeNotInThird, Details: map[string]any{"package_tracking_numbers": unknown}}
}

// thirdConflict says that the assignment is in no state for what was asked.
func thirdConflict(a cloud.ThirdPartyAssignment) error {
	return &cloud.Error{Kind: cloud.Conflict, Code: codeThirdState, Details: map[string]any{"assignment_number": a.Number, "status": a.Status}}
}

// findThird reads an assignment that the caller names: of its business, or of a
// provider its own. Errors: ASSIGNMENT_NOT_FOUND, ACCOUNT_TYPE_NOT_ALLOWED.
func findThird(v cloud.View, c cloud.Caller, number string) (a cloud.ThirdPartyAssignment, err error) {
	missing := cloud.E(cloud.NotFound, codeNoThird)
	business := c.Provider.BusinessID
	if c.Provider.ID == 0 {
		if err := RequireStaff(c); err != nil {
			return a, err
		}
		business = c.Account.BusinessID
	}
	if !sane(number) {
		return a, missing
	}
	a, err = v.ThirdPartyByNumber(business, number)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && c.Provider.ID != 0 && a.ProviderID != c.Provider.ID {
		return cloud.ThirdPartyAssignment{}, missing
	}
	return a, err
}

// atThird runs one decision about an open assignment, of staff or, with provider
// set, of whoever carries it. Errors: those of findThird and fn,
// ASSIGNMENT_STATE_CONFLICT.
func (s *Service) atThird(ctx context.Context, c cloud.Caller, number string, provider bool, fn func(d *Decision) error) (out ThirdPartyOutput, err error) {
	if provider != (c.Provider.ID != 0) {
		if c.Anonymous() {
			return out, cloud.E(cloud.Unauthenticated, CodeAnonymous)
		}
		return out, cloud.E(cloud.Forbidden, CodeType)
	}
	now := s.time()
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		a, err := findThird(v, c, number)
		if err != nil {
			return nil, err
		}
		o, err := v.Order(a.BusinessID, a.OrderID)
		if errors.Is(err, cloud.ErrNotFound) || err == nil && (o.ThirdPartyID != a.ID || !a.Open()) {
			return nil, thirdConflict(a)
		}
		if err != nil {
			return nil, err
		}
		d := s.begin(v, c, now, o)
		d.thirdParty = &a
		if err := fn(d); err != nil {
			return nil, err
		}
		if out, err = d.showThird(); err != nil {
			return nil, err
		}
		return &d.Changes, d.finish()
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

// HandOverThirdParty notes that packages were handed over: the order is with the
// carrier from the first on, and its timeline is the carrier's to add to. Staff
// may. Errors: ASSIGNMENT_NOT_FOUND, ASSIGNMENT_STATE_CONFLICT,
// PACKAGE_NOT_IN_ASSIGNMENT, ORDER_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) HandOverThirdParty(ctx context.Context, c cloud.Caller, in HandOverInput) (ThirdPartyOutput, error) {
	return s.atThird(ctx, c, in.Number, false, func(d *Decision) error {
		a := d.thirdParty
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
			return thirdConflict(*a)
		}
		step := MoveInput{Operation: thirdHandedOver, Packages: now}
		if d.Order.Status != cloud.OrderHandedOver { // which staff may have set before
			step.To, step.Trigger = cloud.OrderHandedOver, HandOver
		}
		if err := d.Step(step); err != nil {
			return err
		}
		if a.Status == cloud.ThirdPartyCreated {
			a.Status, a.HandedOverAt = cloud.ThirdPartyHandedOver, d.Now
		}
		d.thirdPartyEvents, d.thirdPartyChanged = append(d.thirdPartyEvents, eventThirdHandedOver), true
		return d.SetCarrier(true)
	})
}

// SetCarrier says in the order's timeline whether it is the carrier's to add to.
func (d *Decision) SetCarrier(on bool) error {
	l, err := d.Timeline()
	if err != nil {
		return err
	}
	switch mine := l.Shipment.ProviderID == d.thirdParty.ProviderID; {
	case on && !mine:
		l.Shipment.ProviderID, l.Changed = d.thirdParty.ProviderID, true
	case !on && mine:
		l.Shipment.ProviderID, l.Changed = 0, true
	}
	return nil
}

// CancelThirdPartyInput takes an order back.
type CancelThirdPartyInput struct {
	ThirdPartyKey
	Reason string `json:"reason" required:"true" enum:"cancelled,fallback_to_self_delivery,reassigned" doc:"reassigned: another provider gets it, by an assignment of its own"`
	Note   string `json:"note" max:"255"`
}

// CancelThirdParty ends an assignment; the order is where it was before, and
// anybody's to plan. Staff may. Errors: ASSIGNMENT_NOT_FOUND,
// ASSIGNMENT_STATE_CONFLICT, ORDER_STATUS_CONFLICT of one that was intercepted on
// its way, VALIDATION_FAILED.
func (s *Service) CancelThirdParty(ctx context.Context, c cloud.Caller, in CancelThirdPartyInput) (out ThirdPartyOutput, err error) {
	return s.atThird(ctx, c, in.Number, false, func(d *Decision) error { return d.CancelThirdParty(in.Reason, in.Note) })
}

// CancelThirdParty takes the order back from the third party.
func (d *Decision) CancelThirdParty(reason, note string) error {
	switch stopped := d.Order.Status == cloud.OrderIntercepted; {
	case stopped && d.thirdParty.Status == cloud.ThirdPartyHandedOver: // it would come back to a carrier that has it no more
		return StatusConflict(d.Order)
	case stopped:
		d.LogOperation(thirdCancelled, d.Order.Status, note, nil)
	case d.Order.Status == cloud.OrderHandedOver:
		if err := d.Move(d.Order.Before, FallBack, thirdCancelled, "", note); err != nil {
			return err
		}
	default:
		l, err := d.Timeline()
		if err != nil {
			return err
		}
		l.Append(otep.RouteCancelled, otep.ThirdParty, "", d.Now, d.Now)
		d.LogOperation(thirdCancelled, d.Order.Status, note, nil)
	}
	d.thirdParty.Reason, d.thirdParty.EndNote = reason, note
	if err := d.CloseThirdParty(cloud.ThirdPartyCancelled); err != nil {
		return err
	}
	return d.SetThirdPartyNumbers()
}

// CloseThirdParty ends the assignment. What is not done is the business's own to deliver
// again, and the company has no part in it.
func (d *Decision) CloseThirdParty(to cloud.ThirdPartyStatus) error {
	a := d.thirdParty
	a.Status, a.EndedAt, d.thirdPartyChanged = to, d.Now, true
	if to == cloud.ThirdPartyCancelled {
		for i := range a.Packages {
			if p := &a.Packages[i]; !p.Outcome.Final() {
				p.Outcome, p.OccurredAt = cloud.OutcomeCancelled, d.Now
			}
		}
		d.thirdPartyEvents = append(d.thirdPartyEvents, eventThirdCancelled)
	} else {
		a.CompletedAt = d.Now
	}
	if to == cloud.ThirdPartyPartly {
		d.thirdPartyEvents = append(d.thirdPartyEvents, eventThirdPartial)
	}
	d.Order.ThirdPartyOpen = false
	over := d.Order.Status.State().Terminal
	d.Order.SelfDelivery = d.Order.SelfDelivery || !over
	if over && to != cloud.ThirdPartyCancelled {
		return nil
	}
	return d.SetCarrier(false)
}

// endThirdParty ends the assignment of an order that has come to its end by
// another way: what was delivered, from a locker for one, the carrier brought;
// anything else is called off, and so is what an interception has brought back.
func (d *Decision) endThirdParty() error {
	back := d.Was.Status == cloud.OrderIntercepted && Resting(d.Order.Status)
	if !d.Order.ThirdPartyOpen || !back && !d.Order.Status.State().Terminal {
		return nil
	}
	a, err := d.ThirdParty()
	switch {
	case err != nil:
		return err
	case d.Order.Status == cloud.OrderDelivered:
		d.markDelivered()
		return d.CloseThirdParty(concluded(*a))
	case back && a.Status != cloud.ThirdPartyHandedOver: // it was here all the time
		return nil
	}
	a.Reason = cloud.ThirdPartyCalledOff
	if err := d.CloseThirdParty(cloud.ThirdPartyCancelled); err != nil || !back {
		return err
	}
	return d.SetThirdPartyNumbers()
}

// markDelivered notes in the assignment what was delivered by another way, from a
// locker for one.
func (d *Decision) markDelivered() {
	for i := range d.thirdParty.Packages {
		p := &d.thirdParty.Packages[i]
		there := func(x cloud.OrderPackage) bool { return x.ID == p.ID && x.Status == cloud.OrderPackageDelivered }
		if !p.Outcome.Final() && (d.Order.Status == cloud.OrderDelivered || slices.ContainsFunc(d.Order.Packages, there)) {
			p.Outcome, p.OccurredAt = cloud.OutcomeDelivered, d.Now
		}
	}
}

// ThirdParty is the order's latest assignment to a third party, nil when there
// was none.
func (d *Decision) ThirdParty() (*cloud.ThirdPartyAssignment, error) {
	if d.thirdParty != nil || d.Order.ThirdPartyID == 0 {
		return d.thirdParty, nil
	}
	a, err := d.View.ThirdParty(d.Order.BusinessID, d.Order.ThirdPartyID)
	if err == nil {
		d.thirdParty = &a
	}
	return d.thirdParty, err
}

// AcceptThirdParty notes that a provider takes an assignment. Whoever carries it
// may, once or again. Errors: ASSIGNMENT_NOT_FOUND, ASSIGNMENT_STATE_CONFLICT.
func (s *Service) AcceptThirdParty(ctx context.Context, c cloud.Caller, in ThirdPartyKey) (ThirdPartyOutput, error) {
	return s.atThird(ctx, c, in.Number, true, func(d *Decision) error {
		if d.thirdParty.Status != cloud.ThirdPartyCreated {
			return thirdConflict(*d.thirdParty)
		}
		if d.thirdParty.AcceptedAt.IsZero() {
			d.thirdParty.AcceptedAt = d.Now
			d.noteThird("accepted")
		}
		return nil
	})
}

// noteThird keeps what does nothing to the order, and takes it down in the audit.
func (d *Decision) noteThird(what string) {
	d.thirdPartyChanged, d.touched = true, true
	d.Changes.Audits = append(d.Changes.Audits, cloud.Audit{BusinessID: d.Order.BusinessID, At: d.Now, Actor: fmt.Sprint("account:", d.Caller.Account.ID), Action: "third_party_" + what,
		Target: fmt.Sprint("order:", d.Order.ID), Detail: fmt.Sprintf(`{"assignment_number":%q}`, d.thirdParty.Number)})
}

// RejectThirdPartyInput refuses an assignment.
type RejectThirdPartyInput struct {
	ThirdPartyKey
	Reason string `json:"reason" max:"255" doc:"For the business"`
}

// RejectThirdParty refuses an assignment of which nothing was handed over: it
// ends as one that falls back to self delivery. Whoever was to carry it may.
// Errors: ASSIGNMENT_NOT_FOUND, ASSIGNMENT_STATE_CONFLICT, VALIDATION_FAILED.
func (s *Service) RejectThirdParty(ctx context.Context, c cloud.Caller, in RejectThirdPartyInput) (out ThirdPartyOutput, err error) {
	return s.atThird(ctx, c, in.Number, true, func(d *Decision) error {
		if d.thirdParty.Status != cloud.ThirdPartyCreated {
			return thirdConflict(*d.thirdParty)
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
	f := newFields()
	in.ExternalNumber = strings.TrimSpace(in.ExternalNumber)
	if n := len(in.ExternalNumber); n > maxNumber {
		f.Say("external_tracking_number", check.MessageLong, strconv.Itoa(maxNumber), strconv.Itoa(n))
	}
	in.Status = cmp.Or(in.Status, "booked")
	return f.Err()
}

// SetThirdPartyLeg keeps a leg of an open assignment; its tracking number
// becomes that of its packages, and with all packages of the order the order's.
// Whoever carries it may. Errors: ASSIGNMENT_NOT_FOUND,
// ASSIGNMENT_STATE_CONFLICT, PACKAGE_NOT_IN_ASSIGNMENT, VALIDATION_FAILED.
func (s *Service) SetThirdPartyLeg(ctx context.Context, c cloud.Caller, in LegInput) (out ThirdPartyOutput, err error) {
	if err := in.check(); err != nil {
		return out, err
	}
	return s.atThird(ctx, c, in.Number, true, func(d *Decision) error { return d.leg(in) })
}

func (d *Decision) leg(in LegInput) error {
	a := d.thirdParty
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
		f := newFields()
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
	d.noteThird("leg_set")
	return d.SetThirdPartyNumbers()
}

// SetThirdPartyNumbers gives the order and its packages the tracking numbers that the company
// has for them, and their own where it has none, or has them no more.
func (d *Decision) SetThirdPartyNumbers() error {
	l, err := d.Timeline()
	if err != nil {
		return err
	}
	a, whole := d.thirdParty, ""
	d.Order.Packages = slices.Clone(d.Order.Packages)
	for i := range d.Order.Packages {
		x, external := &d.Order.Packages[i], ""
		for _, p := range a.Packages {
			if p.ID != x.ID {
				continue
			}
			if a.Open() {
				external = p.External
			}
			x.ExternalNumber = cmp.Or(external, p.Own)
		}
		switch {
		case i == 0:
			whole = external
		case external != whole:
			whole = "" // it is not one parcel there
		}
	}
	d.Order.ExternalNumber = cmp.Or(whole, a.Own)
	l.Shipment.External, l.Changed = d.Order.ExternalNumber, true
	d.Index()
	return nil
}

// ThirdPartiesInput asks for a page of assignments, newest first. Fields that are
// not given do not filter.
type ThirdPartiesInput struct {
	OrderID    cloud.OrderID          `query:"order_id"`
	ProviderID cloud.ProviderID       `query:"provider_id" doc:"Without meaning for providers, who see their own"`
	Status     cloud.ThirdPartyStatus `query:"status"`
	check.LongPaging
}

// ThirdPartiesOutput is a page of assignments. Total counts all pages.
type ThirdPartiesOutput struct {
	Result      bool             `json:"result"`
	Total       int              `json:"total"`
	Page        int              `json:"page"`
	PerPage     int              `json:"per_page"`
	Assignments []ThirdPartyBody `json:"assignments"`
}

// ThirdParties lists what third parties carry, or carried: a provider sees its
// own, staff all of the business's. Errors: VALIDATION_FAILED,
// ACCOUNT_TYPE_NOT_ALLOWED.
func (s *Service) ThirdParties(ctx context.Context, c cloud.Caller, in ThirdPartiesInput) (out ThirdPartiesOutput, err error) {
	q := cloud.ThirdPartyQuery{BusinessID: c.Account.BusinessID, ProviderID: in.ProviderID, OrderID: in.OrderID, Status: in.Status}
	if c.Provider.ID != 0 {
		q.BusinessID, q.ProviderID = c.Provider.BusinessID, c.Provider.ID
	} else if err := RequireStaff(c); err != nil {
		return out, err
	}
	page, perPage, offset := in.Window()
	q.Offset, q.Limit = offset, perPage
	total, found, err := s.store.ListThirdParties(ctx, q)
	if err != nil {
		return out, err
	}
	out = ThirdPartiesOutput{Result: true, Total: total, Page: page, PerPage: perPage, Assignments: []ThirdPartyBody{}}
	return out, s.store.Look(ctx, func(v cloud.View) error {
		for _, a := range found {
			b, err := thirdBodyOf(v, a)
			if err != nil {
				return err
			}
			out.Assignments = append(out.Assignments, b)
		}
		return nil
	})
}

// ThirdParty shows one assignment to whoever carries it and to staff. Errors:
// ASSIGNMENT_NOT_FOUND, ACCOUNT_TYPE_NOT_ALLOWED.
func (s *Service) ThirdParty(ctx context.Context, c cloud.Caller, in ThirdPartyKey) (out ThirdPartyOutput, err error) {
	err = s.store.Look(ctx, func(v cloud.View) error {
		a, err := findThird(v, c, in.Number)
		if err != nil {
			return err
		}
		out.Result = true
		out.Assignment, err = thirdBodyOf(v, a)
		return err
	})
	return out, err
}

func (d *Decision) showThird() (out ThirdPartyOutput, err error) {
	out.Assignment, err = showThird(d.View, *d.thirdParty, d.Order)
	out.Result = err == nil
	d.Changes.Answer = out
	return out, err
}
