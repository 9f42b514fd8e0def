package order

import (
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/notice"
)

// pushedMembers are the members whose change is pushed to a driver.
var pushedMembers = []string{"recipient", "sender", "scheduled_date", "time_window_start", "time_window_end", "delivery_instruction", "packages"}

// driverPush is a push of a type to a driver.
type driverPush struct {
	kind   string
	driver cloud.AccountID
}

// pushDrivers tells the order's drivers what became of it, but not of what they did
// themselves. A caller that moves several orders of a route at once notifies the route's
// driver of the route instead.
func pushDrivers(d *Decision) error {
	for _, x := range driverPushes(d) {
		if x.driver == 0 || d.device == nil && x.driver == d.Caller.Account.ID {
			continue
		}
		o := d.Order
		if x.kind == notice.OrderUnassigned { // nothing of whose it is now
			o = d.Was
		}
		list, err := notice.OfOrder(d.View, d.Now, x.kind, x.driver, o)
		if err != nil {
			return err
		}
		for i := range list {
			list[i].Test = d.test
		}
		d.Changes.Pushes = append(d.Changes.Pushes, list...)
	}
	return nil
}

func driverPushes(d *Decision) []driverPush {
	before, after := d.Was.DriverID, d.Order.DriverID
	switch {
	case d.quiet:
		if before != after && d.Was.RouteID == 0 { // that caller does not notify a driver who had it by itself
			return []driverPush{{notice.OrderUnassigned, before}}
		}
		return nil
	case d.device != nil:
		return d.lockerPushes
	case d.isDeleted() || d.Order.Status == cloud.OrderCancelled && d.Was.Status != cloud.OrderCancelled:
		return []driverPush{{notice.OrderCancelled, before}}
	case d.interception != nil && d.interception.InForce() && (d.interceptionWas == "" || d.interceptionWas == cloud.InterceptionRequested):
		return []driverPush{{notice.OrderIntercepted, before}}
	case before != after:
		words := []driverPush{{notice.OrderAssigned, after}}
		if after != 0 || slices.Contains(planned, d.Was.Status) || slices.ContainsFunc(d.steps, func(s step) bool { return s.trigger == TakeBack }) {
			words = append(words, driverPush{notice.OrderUnassigned, before})
		}
		return words
	case slices.ContainsFunc(d.Changes.OrderOperations, changesForDriver):
		return []driverPush{{notice.OrderUpdated, after}}
	}
	return nil
}

func changesForDriver(op cloud.OrderOperation) bool {
	return slices.ContainsFunc(pushedMembers, func(name string) bool { _, changed := op.Changes[name]; return changed })
}

// noteLockerPush notes what a cabinet did with the order for the driver who brings
// it.
func noteLockerPush(d *Decision, n cloud.LockerNews) error {
	kind := map[cloud.LockerNewsKind]string{cloud.LockerOpened: notice.DoorsOpened, cloud.LockerDeposited: notice.DepositSettled}[n.Kind]
	if kind == "" || d.Order.DriverID == 0 {
		return nil
	}
	delivery, err := d.View.Delivery(n.DeliveryID)
	if err != nil {
		return err
	}
	d.lockerPushes, d.test = append(d.lockerPushes, driverPush{kind, d.Order.DriverID}), !delivery.Livemode
	return nil
}
