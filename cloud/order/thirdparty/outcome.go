package thirdparty

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/protocol/otep"
)

// OutcomesInput says what became of packages at a third party.
type OutcomesInput struct {
	ThirdPartyKey
	Packages []OutcomeInput `json:"packages" required:"true" max:"100"`
}

// OutcomeInput is what became of one package.
type OutcomeInput struct {
	Number      string   `json:"tracking_number" required:"true" max:"64"`
	Outcome     string   `json:"outcome" required:"true" enum:"delivered,failed,returned"`
	FailureCode string   `json:"failure_code" pattern:"^[A-Za-z0-9_-]{1,64}$" example:"recipient_unavailable" doc:"Required with failed, and only with it. The incident reasons of OTEP go into the timeline, and recipient_refused for all packages ends the order as refused"`
	OccurredAt  string   `json:"occurred_at" format:"moment" doc:"Now when absent, and not in the future"`
	Proofs      []string `json:"proof_files" max:"10" item_format:"https" item_max:"2048"`
}

// Report keeps what became of packages. While any is on its way the
// assignment goes on, and a package that failed may still be delivered or come
// back; with the last it ends, and the order is delivered, delivered in part,
// refused, returned, or failed. An outcome that is reported again changes
// nothing. Its carrier may. Errors: ASSIGNMENT_NOT_FOUND,
// ASSIGNMENT_STATE_CONFLICT, PACKAGE_NOT_IN_ASSIGNMENT, VALIDATION_FAILED.
func (s *Service) Report(ctx context.Context, c cloud.Caller, in OutcomesInput) (out ThirdPartyOutput, err error) {
	return s.decide(ctx, c, in.ThirdPartyKey.Number, true, func(d *order.Decision, a *cloud.ThirdPartyAssignment) error { return report(d, a, in) })
}

// check checks outcomes, with times without offset in a zone.
func (in OutcomesInput) check(now time.Time, zone *time.Location) error {
	f := check.Fields{}
	for i, p := range in.Packages {
		at := fmt.Sprintf("packages.%d.", i)
		switch failed := p.Outcome == string(cloud.OutcomeFailed); {
		case failed && p.FailureCode == "":
			f.Say(at+"failure_code", check.MessageRequired)
		case p.FailureCode != "" && !failed:
			f.Add(at+"failure_code", "This goes with a failure only.")
		}
		if check.Moment(p.OccurredAt, zone).After(now.Add(time.Minute)) {
			f.Add(at+"occurred_at", "The time must not be in the future.")
		}
		if slices.ContainsFunc(in.Packages[:i], func(o OutcomeInput) bool { return strings.EqualFold(o.Number, p.Number) }) {
			f.Add(at+"tracking_number", "The tracking_number is listed twice.")
		}
	}
	return f.Err()
}

// shownAs are the outcomes as packages of orders show them.
var shownAs = map[cloud.ThirdPartyOutcome]cloud.OrderPackageStatus{cloud.OutcomeDelivered: cloud.OrderPackageDelivered, cloud.OutcomeFailed: cloud.OrderPackageFailed,
	cloud.OutcomeReturned: cloud.OrderPackageReturned}

// report is Report about one assignment.
func report(d *order.Decision, a *cloud.ThirdPartyAssignment, reported OutcomesInput) error {
	b, err := d.View.Business(d.Order.BusinessID)
	if err != nil {
		return err
	}
	if err := reported.check(d.Now, b.Location()); err != nil {
		return err
	}
	in := order.MoveInput{Operation: thirdReported, Source: otep.ThirdParty, Packages: map[cloud.PackageID]cloud.OrderPackageStatus{}}
	for _, x := range reported.Packages {
		which, _ := chosen(a.Packages, []string{x.Number})
		if len(which) == 0 {
			return notIn([]string{x.Number})
		}
		p, to := &a.Packages[which[0]], cloud.ThirdPartyOutcome(x.Outcome)
		if p.Outcome == to && p.Failure == x.FailureCode {
			continue
		}
		if p.Outcome != cloud.OutcomeHandedOver && p.Outcome != cloud.OutcomeFailed {
			return stateConflict(*a)
		}
		p.Outcome, p.Failure, p.OccurredAt = to, x.FailureCode, d.Now
		if t := check.Moment(x.OccurredAt, b.Location()); !t.IsZero() && t.Before(d.Now) {
			p.OccurredAt = t
		}
		if len(x.Proofs) > 0 {
			p.Proofs = x.Proofs
		}
		in.Packages[p.ID] = shownAs[to]
		if in.At.Before(p.OccurredAt) {
			in.At = p.OccurredAt
		}
	}
	if len(in.Packages) == 0 {
		return nil
	}
	d.SaveThirdParty()
	d.MarkThirdPartyDelivered()
	ends := !slices.ContainsFunc(a.Packages, func(p cloud.ThirdPartyPackage) bool { return !p.Outcome.Final() })
	if ends {
		if err := conclude(d, *a, &in); err != nil {
			return err
		}
	}
	if err := d.Step(in); err != nil {
		return err
	}
	if in.Trigger == order.InterceptionFailed {
		if err := d.EndInterception(order.ThirdPartyTracking); err != nil {
			return err
		}
	}
	if ends {
		return d.CloseThirdParty(a.Conclusion())
	}
	return nil
}

// conclude puts into a step where the order goes when its third party is done.
// One that is no more with it, by hand or otherwise, stays where it is, and so
// does one that is stopped, which goes on there when it is let go.
func conclude(d *order.Decision, a cloud.ThirdPartyAssignment, in *order.MoveInput) error {
	var delivered []cloud.PackageID
	failed, returned := "", true
	for _, p := range d.Order.Packages {
		status := p.Status
		if now, ok := in.Packages[p.ID]; ok {
			status = now
		}
		if status == cloud.OrderPackageDelivered {
			delivered = append(delivered, p.ID)
		}
		returned = returned && (status == cloud.OrderPackageReturned || status == cloud.OrderPackageLost)
	}
	refused := true
	for _, p := range a.Packages {
		if p.Outcome == cloud.OutcomeFailed {
			failed = strings.ToLower(p.Failure)
		}
		refused = refused && p.Outcome == cloud.OutcomeFailed && failed == order.GoodsRefused
	}
	to := cloud.OrderDeliveryFailed
	switch {
	case len(delivered) == len(d.Order.Packages):
		to = cloud.OrderDelivered
	case len(delivered) > 0:
		to = cloud.OrderPartlyDelivered
	case returned:
		to = cloud.OrderReturned
	case refused && len(a.Packages) == len(d.Order.Packages):
		to = cloud.OrderRejected
	}
	switch {
	case d.Order.Status == cloud.OrderHandedOver, d.Order.Status == cloud.OrderPartlyDelivered && to == cloud.OrderDelivered:
		in.To, in.Trigger = to, order.ThirdPartyTracking
	case d.Order.Status == cloud.OrderIntercepted && to == cloud.OrderDelivered:
		in.To, in.Trigger = to, order.InterceptionFailed
	case d.Order.Status == cloud.OrderIntercepted:
		return resumeAt(d, to)
	default:
		return nil
	}
	if to == cloud.OrderPartlyDelivered {
		in.Delivered = delivered
	}
	if _, known := otep.Reason(failed); known && to == cloud.OrderDeliveryFailed {
		in.Reason = failed
	}
	return nil
}

// resumeAt has a stopped order go on where its third party left it, and not with
// that. It is the interception that brings goods to their end.
func resumeAt(d *order.Decision, to cloud.OrderStatus) error {
	i, err := d.Interception()
	if err != nil || i == nil || i.Before != cloud.OrderHandedOver {
		return err
	}
	if to.State().Terminal {
		to = cloud.OrderDeliveryFailed
	}
	i.Before, i.BeforeCode = to, to.State().Code
	return nil
}
