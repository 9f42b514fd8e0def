package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// boxActions is everything that can happen at the device that speaks HTTP.
var boxActions = []action{
	{"box_deposit", 9, func(w *world, s step, rnd *rand.Rand) { w.simple.newTask(s, rnd, w.simple.depositRemote) }},
	{"box_code", 9, func(w *world, s step, rnd *rand.Rand) { w.simple.newTask(s, rnd, w.simple.depositCode) }},
	{"box_bring", 6, func(w *world, _ step, rnd *rand.Rand) { w.simple.withTask(rnd, w.simple.outside, w.simple.depositCode) }},
	{"box_collect", 26, func(w *world, _ step, rnd *rand.Rand) { w.simple.withTask(rnd, w.simple.inside, w.simple.collect) }},
	{"box_recall", 3, func(w *world, _ step, rnd *rand.Rand) { w.simple.withTask(rnd, w.simple.inside, w.simple.retrieve) }},
	{"box_again", 4, func(w *world, _ step, rnd *rand.Rand) { w.simple.withTask(rnd, nil, w.simple.enterAgain) }},
	{"box_rotate", 4, func(w *world, _ step, rnd *rand.Rand) { w.simple.withTask(rnd, w.simple.inside, w.simple.rotate) }},
	{"box_cancel", 2, func(w *world, _ step, rnd *rand.Rand) { w.simple.withTask(rnd, w.simple.outside, w.simple.cancel) }},
	{"box_wrong", 2, func(w *world, _ step, rnd *rand.Rand) {
		for range 1 + rnd.IntN(3) {
			_, _ = w.simple.enter(truth.Act{Code: "wrong"}, wrongCode(rnd), rnd.IntN(3) == 0)
		}
	}},
	{"box_force", 2, func(w *world, _ step, rnd *rand.Rand) { w.simple.force(uint(1 + rnd.IntN(len(w.simple.doors)))) }},
	{"box_stuck", 2, func(w *world, _ step, rnd *rand.Rand) { w.simple.jam(1 + rnd.IntN(len(w.simple.doors))) }},
	{"box_block", 3, func(w *world, _ step, rnd *rand.Rand) { w.simple.block(rnd) }},
	{"box_cut", 6, func(w *world, _ step, rnd *rand.Rand) {
		w.simple.net.cut.Store(true)
		w.people.Go(func() {
			time.Sleep(pick(rnd, 5*time.Second, 40*time.Second, 3*time.Minute))
			w.simple.net.cut.Store(false)
		})
	}},
	{"box_noise", 5, func(w *world, _ step, rnd *rand.Rand) { w.simple.net.noise.Store(int64(rnd.IntN(40))) }},
	{"box_power", 7, func(w *world, _ step, rnd *rand.Rand) {
		w.simple.powerOff()
		time.Sleep(pick(rnd, 0, 2*time.Second, 30*time.Second, 4*time.Minute))
		w.simple.powerOn()
	}},
	{"box_power_at_lock", 5, func(w *world, _ step, rnd *rand.Rand) {
		off := pick(rnd, 0, 3*time.Second, 10*time.Second, 40*time.Second)
		w.people.Go(func() { w.simple.failAtLock(off) })
	}},
	{"box_clock", 4, func(w *world, _ step, rnd *rand.Rand) { // it jumps, also while the program runs
		w.simple.off.Store(int64(pick(rnd, 0, -30*time.Second, 30*time.Second, -4*time.Minute, -400*24*time.Hour, 400*24*time.Hour)))
	}},
}

// newTask announces a delivery, and lets a person begin with it.
func (b *httpBox) newTask(s step, rnd *rand.Rand, do func(*task, *rand.Rand)) {
	x := &task{ref: fmt.Sprintf("B-%x", s.seed), busy: true, packages: []string{fmt.Sprintf("BK-%x", s.seed)}}
	in := locker.CreateInput{ReferenceNumber: x.ref, DeviceID: b.id, Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}, Packages: []locker.PackageInput{{TrackingNumber: x.packages[0], Size: "S"}}}
	x.outgoing = purposed(s, &in)
	out, err := b.w.server().Lockers.Create(context.Background(), b.w.box.ProviderCaller, in)
	b.w.effect("box_create", err)
	if err != nil {
		return
	}
	x.id, x.number = out.Delivery.DeliveryID, out.Delivery.DeliveryNumber
	b.mu.Lock()
	b.tasks = append(b.tasks, x)
	b.mu.Unlock()
	b.w.send(x, rnd, do)
}

// withTask lets a person go on with some delivery of a kind; nil is any.
func (b *httpBox) withTask(rnd *rand.Rand, kind func(*task) bool, do func(*task, *rand.Rand)) {
	b.mu.Lock()
	all := slices.Clone(b.tasks)
	b.mu.Unlock()
	b.w.mu.Lock()
	idle := slices.DeleteFunc(all, func(x *task) bool { return x.busy || kind != nil && !kind(x) })
	if len(idle) == 0 {
		b.w.mu.Unlock()
		return
	}
	x := idle[rnd.IntN(len(idle))]
	x.busy = true
	b.w.mu.Unlock()
	b.w.send(x, rnd, do)
}

// times is how often a task's parcel was put in and taken out.
func (b *httpBox) times(x *task) (came, left int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.facts {
		switch {
		case f.Item != x.packages[0]:
		case f.Kind == "item_in":
			came++
		default:
			left++
		}
	}
	return came, left
}

func (b *httpBox) inside(x *task) bool { came, left := b.times(x); return came > left }

func (b *httpBox) outside(x *task) bool { came, _ := b.times(x); return came == 0 }

// deposit puts a task's parcel behind the door that opens for it.
func (b *httpBox) deposit(x *task, since time.Time, rnd *rand.Rand) {
	doors := b.useDoors(x, since, func(n uint) bool { return b.put(n, x.packages[0]) == nil })
	b.leave(doors, rnd)
}

func (b *httpBox) depositRemote(x *task, rnd *rand.Rand) {
	began := time.Now()
	n := b.w.act(truth.Act{Cabinet: b.code, Kind: edge.ByCommand, Delivery: x.number, Code: string(wire.OpenDeposit)})
	out, err := b.w.tryOpen(x)
	b.w.effect("box_open", err)
	switch refusal(err) {
	case "", "DEVICE_TIMEOUT", "DELIVERY_STATE_CONFLICT": // a door that was not seen may stand open
	default:
		b.answered(n, false, refusal(err), nil)
		return
	}
	if err == nil && !out.Pending {
		b.answered(n, true, wire.CodeOK, nil)
	}
	b.deposit(x, began, rnd)
}

func (b *httpBox) depositCode(x *task, rnd *rand.Rand) {
	codes, ok := b.w.codes(x)
	if !ok {
		return
	}
	began := time.Now()
	out, err := b.enter(truth.Act{Delivery: x.number, Code: wire.CodeDelivery}, codes.Delivery, rnd.IntN(3) == 0)
	if err == nil && out.Action != "open" {
		return
	}
	b.deposit(x, began, rnd)
}

// collect is the recipient of a parcel, or the courier of one that a sender has brought.
func (b *httpBox) collect(x *task, rnd *rand.Rand) {
	if x.outgoing {
		b.retrieve(x, rnd)
		return
	}
	codes, ok := b.w.codes(x)
	if !ok {
		return
	}
	began := time.Now()
	out, err := b.enter(truth.Act{Delivery: x.number, Code: wire.CodePickup}, codes.Pickup, rnd.IntN(2) == 0)
	if err == nil && out.Action != "open" {
		return
	}
	doors := b.useDoors(x, began, func(n uint) bool { items, _ := b.take(n); return len(items) > 0 })
	b.leave(doors, rnd)
}

// enterAgain is a person who tries codes that have done what they were for, or have not begun.
func (b *httpBox) enterAgain(x *task, rnd *rand.Rand) {
	codes, ok := b.w.codes(x)
	came, left := b.times(x)
	if !ok || came == 0 || came > left && !x.outgoing {
		return
	}
	if codes.Pickup != "" {
		_, _ = b.enter(truth.Act{Delivery: x.number, Code: wire.CodePickup}, codes.Pickup, rnd.IntN(2) == 0)
	}
	time.Sleep(time.Second)
	_, _ = b.enter(truth.Act{Delivery: x.number, Code: wire.CodeDelivery}, codes.Delivery, rnd.IntN(2) == 0)
}

// rotate has another code take the place of a recipient's, who tries the former one.
func (b *httpBox) rotate(x *task, rnd *rand.Rand) {
	before, ok := b.w.codes(x)
	if !ok || x.outgoing {
		return
	}
	_, err := b.w.server().Lockers.RotatePickupCode(context.Background(), b.w.box.ProviderCaller, locker.RotateInput{Delivery: x.key(), Reason: "security"})
	b.w.effect("box_rotate", err)
	if err == nil {
		_, _ = b.enter(truth.Act{Delivery: x.number, Code: wire.CodePickup, Replaced: 1}, before.Pickup, rnd.IntN(2) == 0)
	}
}

func (b *httpBox) cancel(x *task, _ *rand.Rand) {
	_, err := b.w.server().Lockers.Cancel(b.w.soon(), b.w.box.ProviderCaller, locker.CancelInput{Delivery: x.key(), Reason: "changed"})
	b.w.effect("box_cancel", err)
}

// retrieve has a courier of the partner collect a parcel.
func (b *httpBox) retrieve(x *task, rnd *rand.Rand) {
	reason := "recall"
	if x.outgoing {
		reason = "collection"
	}
	began := time.Now()
	n := b.w.act(truth.Act{Cabinet: b.code, Kind: edge.ByCommand, Delivery: x.number, Code: string(wire.OpenStaff)})
	out, err := b.w.server().Lockers.Retrieve(b.w.soon(), b.w.box.ProviderCaller, locker.RetrieveInput{Delivery: x.key(), Reason: reason})
	b.w.effect("box_retrieve", err)
	if refusal(err) != "" && refusal(err) != "DEVICE_TIMEOUT" && refusal(err) != "DELIVERY_STATE_CONFLICT" {
		b.answered(n, false, refusal(err), nil)
		return
	}
	if err == nil && !out.Pending {
		b.answered(n, true, wire.CodeOK, nil)
	}
	var taken []string
	doors := b.useDoors(x, began, func(n uint) bool {
		items, _ := b.take(n)
		taken = append(taken, items...)
		return len(items) > 0
	})
	time.Sleep(time.Duration(1+rnd.IntN(8)) * time.Second)
	for _, n := range doors {
		b.close(n)
	}
	if len(taken) == 0 {
		return
	}
	for range 40 { // until the cloud knows that the door is shut
		time.Sleep(5 * time.Second)
		_, err = b.w.server().Lockers.RetrieveConfirm(context.Background(), b.w.box.ProviderCaller, locker.RetrieveConfirmInput{Delivery: x.key(), Packages: taken})
		if err == nil {
			break
		}
	}
	b.w.effect("box_retrieve_confirm", err)
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, n := range doors { // the parcel is gone, and no word of it is taken
			b.trouble = append(b.trouble, truth.Span{At: time.Now(), What: "forgot", Door: n})
		}
	}
}

// jam has a door stay shut, whatever its lock does.
func (b *httpBox) jam(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.doors[n-1].stuck = true
}

// block has staff take a compartment out of use, and put it back later.
func (b *httpBox) block(rnd *rand.Rand) {
	w := b.w
	cells, err := w.server().Store.ListCompartments(context.Background(), b.id)
	if err != nil {
		return
	}
	grid := cells[rnd.IntN(len(cells))].GridID
	_, err = w.server().Lockers.Block(context.Background(), w.staff, locker.BlockInput{Device: b.id, Grid: grid, Reason: "dirty"})
	w.effect("box_block", err)
	if err != nil {
		return
	}
	w.people.Go(func() {
		time.Sleep(time.Duration(rnd.IntN(200)) * time.Second)
		_, err := w.server().Lockers.Unblock(context.Background(), w.staff, locker.UnblockInput{Device: b.id, Grid: grid})
		w.effect("box_unblock", err)
	})
}

// tryJammed has staff open doors that did not open when they were to: mend freed their locks, and a lock that has
// opened is in use again. It says what was not possible.
func (b *httpBox) tryJammed() string {
	find := func() []cloud.Compartment {
		cells, err := b.w.server().Store.ListCompartments(context.Background(), b.id)
		require.NoError(b.w.t, err)
		return slices.DeleteFunc(cells, func(c cloud.Compartment) bool { return c.DoorStatus != cloud.DoorJammed })
	}
	for _, c := range find() {
		_, err := b.w.server().Lockers.OpenGrids(b.w.soon(), b.w.staff, locker.StaffOpenInput{Device: b.id, Grids: []cloud.GridID{c.GridID}, Reason: "the lock was mended", Attended: new(true)})
		b.w.effect("box_staff_open", err)
		if err != nil {
			return fmt.Sprintf("staff cannot open door %d of %s: %v", c.Door, b.code, err)
		}
		b.w.awaits(fmt.Sprintf("%s: door %d opens", b.code, c.Door), time.Minute, func() bool { return b.with(c.Door, func(*boxDoor) {}) == nil })
		time.Sleep(5 * time.Second)
		b.close(c.Door)
		time.Sleep(5 * time.Second) // until its opening has ended
	}
	b.w.awaits(b.code+": doors in use again", 2*time.Minute, func() bool { return len(find()) == 0 && b.told() })
	return ""
}

// tryLast lets every recipient whose parcel waits collect it, and couriers what senders have
// brought. It says what a person at the device could not do, "" when everything worked.
func (b *httpBox) tryLast() string {
	rnd := rand.New(rand.NewPCG(1, 1))
	if text := b.tryJammed(); text != "" {
		return text
	}
	for _, x := range b.tasks {
		d := b.w.find(x.ref)
		if d.Status != cloud.DeliveryDelivered || !b.inside(x) {
			continue
		}
		b.collect(x, rnd)
		if b.inside(x) {
			return fmt.Sprintf("%s stayed in %s: its door did not open", x.number, b.code)
		}
		for n := range b.doors {
			b.close(uint(n + 1))
		}
		b.w.awaits(x.number+" collected", 2*time.Minute, func() bool { return b.w.find(x.ref).Status == cloud.DeliveryPickedUp })
	}
	return ""
}
