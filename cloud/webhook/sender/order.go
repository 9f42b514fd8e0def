package sender

import (
	"context"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
)

// A node that shares its store with others does not know from its memory what goes before
// a delivery: another node may have written that, or its own notice of it may be still
// under way. So it looks what the store has unfinished about the reference. What waits
// there goes first; behind what waits for its first retry the line is blocked; and what
// others have, or this node has and does not know yet, is waited for in the store.

// line of a receiver, over all of its addresses.
type lineName struct {
	to    cloud.EndpointID
	about cloud.EventReference
}

// blocker is a delivery that waits for its first retry in the store.
type blocker struct {
	at    rank
	until time.Time
}

// orderDeliveries gives the deliveries with those that go before them, each line in its order,
// what blocks lines, and what is to be given back.
func orderDeliveries(d *Dispatcher, ctx context.Context, work []cloud.OutboxWork) (ready []cloud.OutboxWork, blocked map[lineName]blocker, rest []cloud.OutboxResult) {
	if !d.shared { // it is as it was committed
		return work, nil, nil
	}
	work, blocked, rest = withPredecessors(d, ctx, work)
	slices.SortStableFunc(work, cloud.CompareOutbox)
	return work, blocked, rest
}

// hasPredecessors reports whether a delivery may have to wait for others.
func hasPredecessors(w *cloud.OutboxWork) bool {
	return w.Event.Sequence > 1 && w.Delivery.ReplayOf == 0 && !w.Event.Supersedes()
}

func nameOf(w *cloud.OutboxWork) lineName {
	return lineName{w.Delivery.EndpointID, w.Event.Reference()}
}

func withPredecessors(d *Dispatcher, ctx context.Context, work []cloud.OutboxWork) ([]cloud.OutboxWork, map[lineName]blocker, []cloud.OutboxResult) {
	here := make(map[cloud.OutboxID]bool, len(work))
	last := map[lineName]int64{}            // number of the last delivery of each line
	refs := map[cloud.EndpointID][]string{} // to look for
	for i := range work {
		w := &work[i]
		here[w.Delivery.ID] = true
		if n := nameOf(w); hasPredecessors(w) {
			if last[n] == 0 {
				refs[n.to] = append(refs[n.to], n.about.ID)
			}
			last[n] = max(last[n], w.Event.Sequence)
		}
	}
	waits := map[lineName]rank{} // nothing from there on goes
	blocked := map[lineName]blocker{}
	hold := func(n lineName, at rank) {
		if p, ok := waits[n]; !ok || at.before(p) {
			waits[n] = at
		}
	}
	for to, list := range refs {
		found, err := d.cfg.Store.Unfinished(ctx, to, list)
		if err != nil {
			d.log.Warn("reading unfinished webhook deliveries failed", "endpoint", to, "error", err)
			for n := range last {
				if n.to == to {
					hold(n, rank{})
				}
			}
			continue
		}
		take := map[cloud.OutboxID]lineName{}
		var ids []cloud.OutboxID
		at := map[cloud.OutboxID]rank{}
		for _, x := range found {
			n, p := lineName{to, x.Reference}, rank{x.Sequence, x.ID}
			switch {
			case x.Sequence >= last[n] || here[x.ID] || knowsDelivery(d, x.ID):
			case x.LeaseOwner != "":
				hold(n, p)
			case x.Attempts == 0 && x.State == cloud.OutboxPending || !x.NextAt.After(time.Now()):
				take[x.ID], at[x.ID], ids = n, p, append(ids, x.ID)
			case x.Attempts <= 1:
				if b := blocked[n]; b.at.before(p) {
					blocked[n] = blocker{p, x.NextAt.Add(fetch.NameLife)}
				}
			}
		}
		if len(ids) == 0 {
			continue
		}
		taken, err := d.cfg.Store.TakeOutbox(ctx, to, ids)
		if err != nil {
			d.log.Warn("taking up webhook deliveries failed", "endpoint", to, "error", err)
		}
		for _, w := range taken {
			delete(take, w.Delivery.ID)
		}
		for id, n := range take { // of another node's, or finished since
			hold(n, at[id])
		}
		work = append(work, taken...)
	}
	if len(waits) == 0 {
		return work, blocked, nil
	}
	var rest []cloud.OutboxResult
	work = slices.DeleteFunc(work, func(w cloud.OutboxWork) bool {
		p, ok := waits[nameOf(&w)]
		if ok = ok && w.Delivery.ReplayOf == 0 && !rankOf(&w).before(p); ok {
			rest = append(rest, leaseOf(&w))
		}
		return ok
	})
	if len(rest) > 0 {
		lookSoon(d)
	}
	return work, blocked, rest
}

// addLine adds a line to a set of them.
func addLine(lines map[lineName]bool, n lineName) map[lineName]bool {
	if lines == nil {
		lines = map[lineName]bool{}
	}
	lines[n] = true
	return lines
}

// knowsDelivery reports whether a delivery waits in memory, or is in flight or being stored.
func knowsDelivery(d *Dispatcher, id cloud.OutboxID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, busy := d.slots.inHand[id]
	return busy || d.queues.held[id]
}
