package order

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
)

// work is one decision about one order. It is built again when that is run
// again.
type work struct {
	s        *Service
	v        cloud.View
	c        cloud.Caller
	now      time.Time
	at       time.Time // of what happens now; not after now
	only     bool      // it happens to some of the packages
	o        cloud.Order
	was      cloud.Order                 // as it was before; zero when it is new
	line     *line                       // the order's timeline, once it is needed
	stop     *cloud.Interception         // open or just ended, once it is needed
	third    *cloud.ThirdPartyAssignment // the latest, once it is needed; written when thirdNew is set
	ch       cloud.Changes
	done     bool // ch is complete
	thirdNew bool
	touched  bool // the order is written although nothing was done to it
	// device is the cabinet that acts, nil when the caller does; code is its own.
	device *cloud.Operator
	code   string

	// What is told of the decision.
	steps   []step
	tells   []pending
	trigger Trigger             // of the move that is being made
	reason  string              // OTEP incident reason of that move
	stopWas string              // status that the interception had, "" when it is new
	thirds  []string            // events about the assignment to a third party
	batch   *cloud.AccountEvent // the end of the batch that the order is made by
	refusal *cloud.Error        // the answer, although something is written
	quiet   bool                // whoever moves it tells the drivers
	test    bool                // of a sandbox
	repeats bool                // a repeat of the call gets its answer
	words   []word              // of a cabinet, to drivers
}

// work begins a decision about an order.
func (s *Service) work(v cloud.View, c cloud.Caller, now time.Time, o cloud.Order) *work {
	return &work{s: s, v: v, c: c, now: now, at: now, o: o, was: o}
}

// decide runs one decision about an order that the caller may see and stores
// what it changed. fn may run more than once. Errors: those of find and fn.
func (s *Service) decide(ctx context.Context, c cloud.Caller, k Key, fn func(w *work) error) (OrderOutput, error) {
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
		w := s.work(v, c, now, o)
		if err := fn(w); err != nil {
			return nil, err
		}
		if err := w.finish(); err != nil {
			return nil, err
		}
		if refusal = w.refusal; refusal != nil {
			w.ch.Refused = true
			return &w.ch, nil
		}
		out.Result = true
		if out.Order, err = s.shower(v, c).order(w.o, w); w.repeats {
			w.ch.Answer = out
		}
		return &w.ch, err
	})
	if err == nil && refusal != nil {
		return OrderOutput{}, refusal
	}
	return out, err
}

// time is now as it is stored.
func (s *Service) time() time.Time { return s.now().UTC().Truncate(time.Millisecond) }

// finish puts the order itself into the changes, and what is told of it. A
// decision that did nothing writes nothing but what was refused.
func (w *work) finish() error {
	if w.done {
		return nil
	}
	w.done = true
	if err := w.settle(); err != nil {
		return err
	}
	if (len(w.ch.OrderOperations) > 0 || w.touched) && !w.dropped() {
		w.o.UpdatedAt = w.now
		w.drove()
		w.ch.Orders = append(w.ch.Orders, w.o)
		if w.line != nil {
			w.line.finish(&w.ch)
		}
		if w.stop != nil {
			w.ch.Interceptions = append(w.ch.Interceptions, *w.stop)
		}
		if was := w.was.DriverID; was != w.o.DriverID && w.was.ID != 0 && w.s.talk != nil {
			said, err := w.s.talk.Redriven(w.v, w.o, was)
			if err != nil {
				return err
			}
			w.ch.Live = append(w.ch.Live, said...)
		}
		if w.thirdNew {
			w.ch.ThirdParties = append(w.ch.ThirdParties, *w.third)
		}
	}
	if err := w.push(); err != nil {
		return err
	}
	return w.told()
}

// drove keeps who drove the order until now, for as long as that counts.
func (w *work) drove() {
	o := &w.o
	o.Drove = slices.DeleteFunc(slices.Clone(o.Drove), func(f cloud.FormerDriver) bool {
		return f.ID == o.DriverID || f.ID == w.was.DriverID || w.now.Sub(f.Until) >= cloud.FormerDriverReads
	})
	if was := w.was.DriverID; was != 0 && was != o.DriverID {
		o.Drove = append(o.Drove, cloud.FormerDriver{ID: was, Until: w.now})
	}
	if len(o.Drove) == 0 {
		o.Drove = nil
	}
}

// did takes down an operation and its audit line. before is the status that
// the order had.
func (w *work) did(kind int, before cloud.OrderStatus, note string, changes map[string]cloud.FieldChange) {
	w.ch.OrderOperations = append(w.ch.OrderOperations, cloud.OrderOperation{OrderID: w.o.ID, BusinessID: w.o.BusinessID, Type: kind,
		Before: before, After: w.o.Status, Changes: changes, Note: note, Operator: w.operator(), At: w.now})
	w.steps = append(w.steps, step{operation: kind, before: before, after: w.o.Status, trigger: w.trigger, reason: w.reason, note: note})
	actor := "system"
	switch {
	case w.device != nil:
		actor = "device:" + w.code
	case !w.c.Anonymous():
		actor = "account:" + strconv.FormatInt(int64(w.c.Account.ID), 10)
	}
	detail, _ := json.Marshal(map[string]any{"operation_type": kind, "before": before, "after": w.o.Status,
		"fields": slices.Sorted(maps.Keys(changes))}) // plain fields always encode
	w.ch.Audits = append(w.ch.Audits, cloud.Audit{BusinessID: w.o.BusinessID, At: w.now, Actor: actor, Action: "order_" + operations[kind],
		Target: fmt.Sprintf("order:%d", w.o.ID), Detail: string(detail)})
}

// operator is who acts.
func (w *work) operator() cloud.Operator {
	if w.device != nil {
		return *w.device
	}
	return operator(w.c)
}

// conflict says that the order is in no status for what was asked.
func conflict(o cloud.Order) error {
	return &cloud.Error{Kind: cloud.Conflict, Code: codeStatus, Details: map[string]any{"order_status_id": o.Status, "order_status": o.Status.String()}}
}

// interception is the order's latest one, nil when there is none.
func (w *work) interception() (*cloud.Interception, error) {
	if w.stop != nil || w.o.InterceptionID == 0 {
		return w.stop, nil
	}
	i, err := w.v.Interception(w.o.BusinessID, w.o.InterceptionID)
	if errors.Is(err, cloud.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	w.stop, w.stopWas = &i, i.Status
	return w.stop, nil
}
