package order

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Decision is one decision about one order. It is built again when that is run
// again.
type Decision struct {
	service           *Service
	View              cloud.View
	Caller            cloud.Caller
	Now               time.Time
	At                time.Time // of what happens now; not after now
	only              bool      // it happens to some of the packages
	apart             parcels   // which
	noted             bool      // the timeline has the event of the move that is being made
	Order             cloud.Order
	Was               cloud.Order                 // as it was before; zero when it is new
	timeline          *Timeline                   // the order's timeline, once it is needed
	news              cloud.TrackingNews          // that the decision is about, if it is
	interception      *cloud.Interception         // open or just ended, once it is needed
	thirdParty        *cloud.ThirdPartyAssignment // the latest, once it is needed; written when thirdNew is set
	Changes           cloud.Changes
	done              bool // ch is complete
	thirdPartyChanged bool
	touched           bool // the order is written although nothing was done to it
	// device is the cabinet that acts, nil when the caller does; code is its own.
	device *cloud.Operator
	code   string
	trace  string // of the call that made the cabinet act, "" when that was not followed

	// What is sent of the decision.
	steps            []step
	events           []pending
	trigger          Trigger             // of the move that is being made
	reason           string              // OTEP incident reason of that move
	interceptionWas  string              // status that the interception had, "" when it is new
	thirdPartyEvents []string            // events about the assignment to a third party
	batch            *cloud.AccountEvent // the end of the batch that the order is made by
	refusal          *cloud.Error        // the answer, although something is written
	quiet            bool                // the caller that moves it notifies the drivers
	test             bool                // of a sandbox
	repeats          bool                // a repeat of the call gets its answer
	lockerPushes     []driverPush        // of a cabinet, to drivers
}

// begin begins a decision about an order.
func (s *Service) begin(v cloud.View, c cloud.Caller, now time.Time, o cloud.Order) *Decision {
	return &Decision{service: s, View: v, Caller: c, Now: now, At: now, Order: o, Was: o}
}

// Decide runs one decision about an order that the caller may see and stores
// what it changed. fn may run more than once. Errors: those of find and fn.
func (s *Service) Decide(ctx context.Context, c cloud.Caller, k Key, fn func(d *Decision) error) (OrderOutput, error) {
	r, err := reachOf(c)
	if err != nil {
		return OrderOutput{}, err
	}
	now := s.time()
	var out OrderOutput
	var refusal *cloud.Error
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		o, err := find(v, r, k)
		if err != nil {
			return nil, err
		}
		d := s.begin(v, c, now, o)
		if err := fn(d); err != nil {
			return nil, err
		}
		if err := d.finish(); err != nil {
			return nil, err
		}
		if refusal = d.refusal; refusal != nil {
			d.Changes.Refused = true
			return &d.Changes, nil
		}
		out.Result = true
		if out.Order, err = s.shower(v, c).order(d.Order, d); d.repeats {
			d.Changes.Answer = out
		}
		return &d.Changes, err
	})
	if err == nil && refusal != nil {
		return OrderOutput{}, refusal
	}
	return out, err
}

// DecideIn runs one decision about an order inside a decision of another feature,
// and gives what is to be written. Errors: those of fn.
func (s *Service) DecideIn(v cloud.View, c cloud.Caller, o cloud.Order, fn func(d *Decision) error) (*cloud.Changes, error) {
	d := s.begin(v, c, s.time(), o)
	if err := fn(d); err != nil {
		return nil, err
	}
	return &d.Changes, d.finish()
}

// time is now as it is stored.
func (s *Service) time() time.Time { return s.now().UTC().Truncate(time.Millisecond) }

// finish puts the order itself into the changes, and what is sent of it. A
// decision that did nothing writes nothing but what was refused.
func (d *Decision) finish() error {
	if d.done {
		return nil
	}
	d.done = true
	if err := d.endAssignments(); err != nil {
		return err
	}
	if (len(d.Changes.OrderOperations) > 0 || d.touched) && !d.isDeleted() {
		d.Order.UpdatedAt = d.Now
		d.keepFormerDriver()
		d.Changes.Orders = append(d.Changes.Orders, d.Order)
		if d.interception != nil {
			d.Changes.Interceptions = append(d.Changes.Interceptions, *d.interception)
		}
		if was := d.Was.DriverID; was != d.Order.DriverID && d.Was.ID != 0 && d.service.talk != nil {
			said, err := d.service.talk.DriverChanged(d.View, d.Order, was)
			if err != nil {
				return err
			}
			d.Changes.Live = append(d.Changes.Live, said...)
		}
		if d.thirdPartyChanged {
			d.Changes.ThirdParties = append(d.Changes.ThirdParties, *d.thirdParty)
		}
	}
	if d.timeline != nil && !d.isDeleted() {
		d.timeline.finish(&d.Changes)
		if err := d.timeline.keepDue(d.View, &d.Changes, d.news.By.ID); err != nil {
			return err
		}
	}
	if err := pushDrivers(d); err != nil {
		return err
	}
	return d.collectEvents()
}

// keepFormerDriver keeps who drove the order until now, for as long as that counts.
func (d *Decision) keepFormerDriver() {
	o := &d.Order
	o.Drove = slices.DeleteFunc(slices.Clone(o.Drove), func(f cloud.FormerDriver) bool {
		return f.ID == o.DriverID || f.ID == d.Was.DriverID || d.Now.Sub(f.Until) >= cloud.FormerDriverReads
	})
	if was := d.Was.DriverID; was != 0 && was != o.DriverID {
		o.Drove = append(o.Drove, cloud.FormerDriver{ID: was, Until: d.Now})
	}
	if len(o.Drove) == 0 {
		o.Drove = nil
	}
}

// LogOperation takes down an operation and its audit line. before is the status that
// the order had.
func (d *Decision) LogOperation(kind int, before cloud.OrderStatus, note string, changes map[string]cloud.FieldChange) {
	d.Changes.OrderOperations = append(d.Changes.OrderOperations, cloud.OrderOperation{OrderID: d.Order.ID, BusinessID: d.Order.BusinessID, Type: kind,
		Before: before, After: d.Order.Status, Changes: changes, Note: note, Operator: d.Operator(), At: d.Now})
	d.steps = append(d.steps, step{operation: kind, before: before, after: d.Order.Status, trigger: d.trigger, reason: d.reason, note: note})
	actor := "system"
	switch {
	case d.device != nil:
		actor = "device:" + d.code
	case !d.Caller.Anonymous():
		actor = d.Caller.Account.ID.Actor()
	}
	detail, _ := json.Marshal(map[string]any{"operation_type": kind, "before": before, "after": d.Order.Status,
		"fields": slices.Sorted(maps.Keys(changes))}) // plain fields always encode
	d.Changes.Audits = append(d.Changes.Audits, cloud.Audit{BusinessID: d.Order.BusinessID, At: d.Now, Actor: actor, Action: "order_" + operations[kind],
		Target: fmt.Sprintf("order:%d", d.Order.ID), Detail: string(detail)})
}

// Operator is who acts.
func (d *Decision) Operator() cloud.Operator {
	if d.device != nil {
		return *d.device
	}
	return OperatorOf(d.Caller)
}

// StatusConflict says that the order is in no status for what was asked.
func StatusConflict(o cloud.Order) error {
	return &cloud.Error{Kind: cloud.Conflict, Code: codeStatus, Details: map[string]any{"order_status_id": o.Status, "order_status": o.Status.String()}}
}

// Interception is the order's latest one, nil when there is none.
func (d *Decision) Interception() (*cloud.Interception, error) {
	if d.interception != nil || d.Order.InterceptionID == 0 {
		return d.interception, nil
	}
	i, err := d.View.Interception(d.Order.BusinessID, d.Order.InterceptionID)
	if errors.Is(err, cloud.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d.interception, d.interceptionWas = &i, i.Status
	return d.interception, nil
}

// AddInterception makes an interception the order's latest.
func (d *Decision) AddInterception(i *cloud.Interception) {
	d.interception, d.interceptionWas, d.Order.InterceptionID = i, "", i.ID
}

// CanMove reports whether the table lets the order come to a status by a trigger.
// An interception in force does not count.
func (d *Decision) CanMove(to cloud.OrderStatus, t Trigger) bool {
	return rowOf(d.Order, to, t, 0) != nil
}
