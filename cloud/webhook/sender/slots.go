package sender

import (
	"context"
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Nodes are the processes that share what is to be sent. cloud/node's Member is one.
//
// Each slot is of one of them at a time: of that which has the greatest hash of instance
// and slot, so that few slots change hands when one comes or goes. One that has a slot
// which another should have takes up nothing of it any more, gives back what waits, and
// leaves the slot when its attempts have ended and are stored. The other one takes it
// then, or when the node that has it has lost its lease.
type Nodes interface {
	Instance() string
	// Living are the processes with a lease, and a channel that is closed when there are
	// others.
	Living() ([]cloud.Node, <-chan struct{})
	// Sure ends when this process's lease is in doubt, at least fetch.Timeout before
	// another process may end it.
	Sure() context.Context
}

// allSlots is a bit for each slot.
const allSlots = ^uint64(0)

func slotOf(w *cloud.OutboxWork) int {
	return cloud.OutboxSlot(w.Delivery.EndpointID, w.Event.Reference())
}

// wantedSlots are those that a process should have.
func wantedSlots(instance string, living []cloud.Node) (out uint64) {
	for slot := range cloud.OutboxSlots {
		var first string
		var most uint64
		for _, n := range living {
			if !n.Core {
				continue
			}
			if w := weight(n.Instance, slot); first == "" || w > most || w == most && n.Instance < first {
				first, most = n.Instance, w
			}
		}
		if first == instance {
			out |= 1 << slot
		}
	}
	return out
}

func weight(instance string, slot int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(instance))
	_, _ = h.Write([]byte{byte(slot)})
	x := h.Sum64() // whose last byte moves few bits: they are spread
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// tenure is which slots this process has. Guarded by the Dispatcher's mu.
type tenure struct {
	held    uint64                 // it sends
	leaving uint64                 // are others', once nothing of them is in hand
	inHand  map[cloud.OutboxID]int // slots of deliveries in flight, until their outcome is stored
}

func (t *tenure) has(slot int) bool { return t.held>>slot&1 == 1 }

// hasOf reports whether this process sends to a receiver about a reference.
func (t *tenure) hasOf(to cloud.EndpointID, e *cloud.OutboxEvent) bool {
	return t.held == allSlots || t.has(cloud.OutboxSlot(to, e.Reference()))
}

// noteInFlight notes a delivery that is in flight from now on. One process alone needs no notes.
func (t *tenure) noteInFlight(it *item) {
	if t.inHand != nil {
		t.inHand[it.work.Delivery.ID] = slotOf(&it.work)
	}
}

// busy are the slots of what is in hand.
func (t *tenure) busy() (out uint64) {
	for _, slot := range t.inHand {
		out |= 1 << slot
	}
	return out
}

// share is this process's part of what is bounded for all together.
func (t *tenure) share() float64 {
	return float64(max(bits.OnesCount64(t.held), 1)) / cloud.OutboxSlots
}

// limitAttempts bounds the attempts at an address by what a receiver there wants, of which this
// process has a part. Guarded by mu.
func limitAttempts(d *Dispatcher, at address, e *cloud.Endpoint) {
	share := d.slots.share()
	d.queues.limit(at, e.Rate*share, int(math.Round(float64(e.Burst)*share)))
}

// leaseIsSure reports whether this process's lease holds.
func leaseIsSure(d *Dispatcher) bool { return d.cfg.Nodes == nil || d.cfg.Nodes.Sure().Err() == nil }

// othersCame is closed when there are other processes.
func othersCame(d *Dispatcher) <-chan struct{} {
	if d.cfg.Nodes == nil {
		return nil
	}
	_, changed := d.cfg.Nodes.Living()
	return changed
}

// balanceSlots leaves slots that others should have, and takes those that it should have.
func balanceSlots(d *Dispatcher, ctx context.Context) {
	if d.cfg.Nodes == nil {
		return
	}
	lease, wanted := d.cfg.Nodes.Sure(), uint64(0)
	if lease.Err() == nil {
		living, _ := d.cfg.Nodes.Living()
		wanted = wantedSlots(d.cfg.Nodes.Instance(), living)
	}
	d.mu.Lock()
	d.yield(time.Now())
	if lost := d.slots.held &^ wanted; lost != 0 {
		d.slots.held &^= lost
		d.slots.leaving |= lost
		d.overflow = append(d.overflow, d.queues.drain(lost)...)
		d.cfg.Store.HoldSlots(d.slots.held)
	}
	leave, take := d.slots.leaving&^d.slots.busy(), wanted&^d.slots.held&^d.slots.leaving
	d.mu.Unlock()
	d.deliverInbox(ctx)
	if lease.Err() != nil {
		return
	}
	if leave != 0 {
		err := d.cfg.Store.LeaveSlots(ctx, leave)
		noteSlots(d, ctx, lease, "leaving slots of webhooks failed", err, func() { d.slots.leaving &^= leave })
	}
	if take != 0 {
		got, err := d.cfg.Store.TakeSlots(ctx, take)
		noteSlots(d, ctx, lease, "taking slots of webhooks failed", err, func() {
			d.slots.held |= got
			d.cfg.Store.HoldSlots(d.slots.held)
			d.more = d.more || got != 0
		})
	}
}

// noteSlots takes down what the store did, unless the lease was in doubt by then: then
// others may have the slots.
func noteSlots(d *Dispatcher, ctx context.Context, lease context.Context, what string, err error, done func()) {
	if err != nil {
		if ctx.Err() == nil {
			d.log.Warn(what, "error", err)
		}
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if lease.Err() == nil {
		done()
	}
}

// leaveAllSlots lets others have all slots, at the end.
func leaveAllSlots(d *Dispatcher, ctx context.Context) error {
	if d.cfg.Nodes == nil {
		return nil
	}
	return d.cfg.Store.LeaveSlots(ctx, allSlots)
}

// Notice takes note that another node has written something to send of some slots.
func (d *Dispatcher) Notice(slots uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running && d.slots.held&slots != 0 {
		d.more = true
		d.nudge()
	}
}

// UnleasedSlots are the slots of what was written for other nodes to send.
func UnleasedSlots(c *cloud.Changes) (out uint64) {
	for i := range c.Outbox {
		for _, x := range c.Outbox[i].Deliveries {
			if x.LeaseOwner == "" && x.State == cloud.OutboxPending {
				out |= 1 << cloud.OutboxSlot(x.EndpointID, c.Outbox[i].Event.Reference())
			}
		}
	}
	return out
}

// lookSoon looks into the store soon.
func lookSoon(d *Dispatcher) {
	time.AfterFunc(lookAgain+rand.N(lookAgain), func() { d.Notice(allSlots) })
}

// lookAgain is how long a delivery stays in the store that waits for one before it.
const lookAgain = 25 * time.Millisecond
