package order

import (
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/notice"
)

// toldMembers are those whose change a driver is told of.
var toldMembers = []string{"recipient", "sender", "scheduled_date", "time_window_start", "time_window_end", "delivery_instruction", "packages"}

// word is a push of a type to a driver.
type word struct {
	kind   string
	driver cloud.AccountID
}

// push tells the order's drivers what became of it, but not of what they did
// themselves. Whoever moves several orders of a route at once tells the route's
// driver of the route instead.
func (w *work) push() error {
	for _, x := range w.wordsToDrivers() {
		if x.driver == 0 || w.device == nil && x.driver == w.c.Account.ID {
			continue
		}
		o := w.o
		if x.kind == notice.OrderUnassigned { // nothing of whose it is now
			o = w.was
		}
		list, err := notice.OfOrder(w.v, w.now, x.kind, x.driver, o)
		if err != nil {
			return err
		}
		for i := range list {
			list[i].Test = w.test
		}
		w.ch.Pushes = append(w.ch.Pushes, list...)
	}
	return nil
}

func (w *work) wordsToDrivers() []word {
	before, after := w.was.DriverID, w.o.DriverID
	switch {
	case w.quiet:
		if before != after && w.was.RouteID == 0 { // nobody tells who had it by itself
			return []word{{notice.OrderUnassigned, before}}
		}
		return nil
	case w.device != nil:
		return w.words
	case w.dropped() || w.o.Status == cloud.OrderCancelled && w.was.Status != cloud.OrderCancelled:
		return []word{{notice.OrderCancelled, before}}
	case w.stop != nil && w.stop.InForce() && (w.stopWas == "" || w.stopWas == cloud.InterceptionRequested):
		return []word{{notice.OrderIntercepted, before}}
	case before != after:
		words := []word{{notice.OrderAssigned, after}}
		if after != 0 || slices.Contains(planned, w.was.Status) {
			words = append(words, word{notice.OrderUnassigned, before})
		}
		return words
	case slices.ContainsFunc(w.ch.OrderOperations, tellsDriver):
		return []word{{notice.OrderUpdated, after}}
	}
	return nil
}

func tellsDriver(op cloud.OrderOperation) bool {
	return slices.ContainsFunc(toldMembers, func(name string) bool { _, changed := op.Changes[name]; return changed })
}

// wordOfLocker notes what a cabinet did with the order for the driver who brings
// it.
func (w *work) wordOfLocker(n cloud.LockerNews) error {
	kind := map[cloud.LockerNewsKind]string{cloud.LockerOpened: notice.DoorsOpened, cloud.LockerDeposited: notice.DepositSettled}[n.Kind]
	if kind == "" || w.o.DriverID == 0 {
		return nil
	}
	d, err := w.v.Delivery(n.DeliveryID)
	if err != nil {
		return err
	}
	w.words, w.test = append(w.words, word{kind, w.o.DriverID}), !d.Livemode
	return nil
}
