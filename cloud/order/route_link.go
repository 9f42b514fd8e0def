package order

import (
	"slices"

	"github.com/postern-io/postern/cloud"
)

// linkRoute keeps the order's place on a route in step with its status, whatever
// moved it: one that may not ride leaves its route, and so does one that is
// planned again. before is the status before planning that the order had.
func linkRoute(d *Decision, from, to, before cloud.OrderStatus) {
	o := &d.Order
	if from == cloud.OrderIntercepted {
		if to.Rides() {
			o.Resume()
		}
		o.Paused = nil
		return
	}
	again := slices.Contains(planned, to) && !slices.Contains(planned, from)
	switch {
	case o.RouteID == 0 && o.DriverID == 0:
	case to == cloud.OrderIntercepted:
		o.Pause(from)
	case slices.Contains(planned, from) && to == before:
		o.TakeOff()
	case to == cloud.OrderInLocker:
		o.Leave(from, cloud.StopDone)
	case !to.Rides() || again:
		o.Leave(from, cloud.StopSkipped)
	}
}
