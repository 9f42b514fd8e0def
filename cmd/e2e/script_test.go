package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cmd/internal/truth"
	simboard "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

// step is one action of a random day. Its chance is its own, so that a day with
// a step left out is otherwise the same.
type step struct {
	what    string
	cabinet int
	wait    time.Duration // after it
	seed    uint64
}

func (s step) String() string {
	return fmt.Sprintf("%-15s cabinet %d, then %s", s.what, s.cabinet+1, s.wait.Round(100*time.Millisecond))
}

// action is what a step does. People go their way by themselves (world.people);
// everything else happens at once.
type action struct {
	name   string
	weight int
	do     func(w *world, s step, rnd *rand.Rand)
}

// actions is everything that can happen on a random day.
var actions = []action{
	{"deposit", 10, func(w *world, s step, rnd *rand.Rand) { w.newTask(s, rnd, w.depositRemote) }},
	{"deposit_code", 6, func(w *world, s step, rnd *rand.Rand) { w.newTask(s, rnd, w.depositLocal) }},
	{"deposit_qr", 5, func(w *world, s step, rnd *rand.Rand) { w.newTask(s, rnd, w.depositQR) }},
	{"bring_qr", 3, func(w *world, s step, rnd *rand.Rand) { w.withOf(s, rnd, w.outside, w.depositQR) }},
	{"staff_qr", 3, func(w *world, s step, rnd *rand.Rand) { w.staffQR(s, rnd) }},
	{"announce", 3, func(w *world, s step, rnd *rand.Rand) { w.newTask(s, rnd, func(*task, *rand.Rand) {}) }},
	{"bring", 5, func(w *world, s step, rnd *rand.Rand) { w.withOf(s, rnd, w.outside, w.depositRemote) }},
	{"bring_code", 4, func(w *world, s step, rnd *rand.Rand) { w.withOf(s, rnd, w.outside, w.depositLocal) }},
	{"collect", 12, func(w *world, s step, rnd *rand.Rand) {
		w.withOf(s, rnd, w.inside, func(x *task, rnd *rand.Rand) {
			if x.outgoing {
				w.collectOutgoing(x, rnd)
			} else if c, ok := w.codes(x); ok {
				w.collectWith(x, former{code: c.Pickup, kind: w.collects(x)}, false, rnd)
			}
		})
	}},
	{"collect_qr", 4, func(w *world, s step, rnd *rand.Rand) {
		w.withOf(s, rnd, w.inside, func(x *task, rnd *rand.Rand) {
			if c, ok := w.codes(x); ok && !x.outgoing {
				w.collectWith(x, former{code: c.Pickup, kind: w.collects(x)}, true, rnd)
			}
		})
	}},
	{"collect_link", 8, func(w *world, s step, rnd *rand.Rand) { w.withOf(s, rnd, w.inside, w.collectByLink) }},
	{"former_code", 5, func(w *world, s step, rnd *rand.Rand) {
		w.withOf(s, rnd, w.inside, func(x *task, rnd *rand.Rand) {
			if len(x.former) > 0 {
				w.collectWith(x, x.former[rnd.IntN(len(x.former))], rnd.IntN(2) == 0, rnd)
			}
		})
	}},
	{"wrong_codes", 2, func(w *world, s step, rnd *rand.Rand) {
		for range 1 + rnd.IntN(3) {
			_, _ = w.enter(w.cabinets[s.cabinet], truth.Act{Code: "wrong"}, wrongCode(rnd), rnd.IntN(3) == 0)
		}
	}},
	{"rotate", 7, func(w *world, s step, rnd *rand.Rand) {
		w.withOf(s, rnd, w.inside, func(x *task, rnd *rand.Rand) {
			before, ok := w.codes(x)
			kind := w.collects(x)
			reasons := []string{"recipient_request", "partner_request", "security", "resend"}
			_, err := w.server().Lockers.RotatePickupCode(context.Background(), w.box.ProviderCaller, locker.RotateInput{Delivery: x.key(), Reason: reasons[rnd.IntN(len(reasons))]})
			w.effect("rotate", err)
			if ok && err == nil {
				x.former = append(x.former, w.formerCode(x, before.Pickup, kind))
			}
		})
	}},
	{"hand_over", 6, func(w *world, s step, rnd *rand.Rand) { w.withOf(s, rnd, w.inside, w.handOver) }},
	{"rotate_delivery", 2, func(w *world, s step, rnd *rand.Rand) {
		w.withTask(s, rnd, func(x *task, _ *rand.Rand) {
			_, err := w.server().Lockers.RotateDeliveryCode(context.Background(), w.box.ProviderCaller, locker.RotateInput{Delivery: x.key(), Reason: "security"})
			w.effect("rotate_delivery", err)
		})
	}},
	{"extend", 1, func(w *world, s step, rnd *rand.Rand) {
		w.withOf(s, rnd, w.inside, func(x *task, _ *rand.Rand) {
			_, err := w.server().Lockers.Extend(context.Background(), w.box.ProviderCaller, locker.ExtendInput{Delivery: x.key(), Hours: 5})
			w.effect("extend", err)
		})
	}},
	{"cancel", 3, func(w *world, s step, rnd *rand.Rand) {
		w.withOf(s, rnd, w.outside, func(x *task, _ *rand.Rand) {
			_, err := w.server().Lockers.Cancel(w.soon(), w.box.ProviderCaller, locker.CancelInput{Delivery: x.key(), Reason: "changed"})
			w.effect("cancel", err)
		})
	}},
	{"fail", 1, func(w *world, s step, rnd *rand.Rand) {
		w.withOf(s, rnd, w.outside, func(x *task, _ *rand.Rand) {
			_, err := w.server().Lockers.Fail(w.soon(), w.box.ProviderCaller, locker.FailInput{Delivery: x.key(), FailureCode: "COURIER_ABORTED"})
			w.effect("fail", err)
		})
	}},
	{"confirm", 3, func(w *world, s step, rnd *rand.Rand) {
		w.withTask(s, rnd, func(x *task, rnd *rand.Rand) {
			for _, p := range x.packages {
				if !w.placed(p) {
					return // who knows does not confirm what was never brought
				}
			}
			if rnd.IntN(2) == 0 {
				_, err := w.server().Lockers.Confirm(w.soon(), w.box.AdminCaller, locker.ConfirmInput{Delivery: locker.DeliveryKey(strconv.FormatInt(int64(x.id), 10))})
				w.effect("confirm_staff", err)
				return
			}
			_, err := w.server().Lockers.Confirm(w.soon(), w.box.ProviderCaller, locker.ConfirmInput{Delivery: x.key()})
			w.effect("confirm", err)
		})
	}},
	{"correct", 3, func(w *world, s step, rnd *rand.Rand) {
		w.withOf(s, rnd, w.inside, func(x *task, rnd *rand.Rand) {
			_, err := w.server().Lockers.Correct(w.soon(), w.box.ProviderCaller, locker.CorrectInput{Delivery: x.key(), Reason: "forgot a label"})
			w.effect("correct", err)
			boxes := w.boxes(x)
			if err == nil {
				w.takeOneOut(x, boxes)
			}
			var doors []uint
			for n := range boxes {
				doors = append(doors, n)
			}
			w.leave(w.cabinets[x.cabinet], doors, rnd)
		})
	}},
	{"reassign", 2, func(w *world, s step, rnd *rand.Rand) {
		w.withOf(s, rnd, w.outside, func(x *task, rnd *rand.Rand) {
			for _, p := range x.packages {
				if w.placed(p) {
					return
				}
			}
			_, err := w.server().Lockers.Reassign(w.soon(), w.box.ProviderCaller, locker.ReassignInput{Delivery: x.key(), Size: "M", Reason: "dirty"})
			w.effect("reassign", err)
			w.courier(x, rnd)
		})
	}},
	{"retrieve", 4, func(w *world, s step, rnd *rand.Rand) {
		w.withOf(s, rnd, w.inside, func(x *task, _ *rand.Rand) { w.retrieve(x) })
	}},
	{"staff_remove", 4, func(w *world, s step, rnd *rand.Rand) { w.withOf(s, rnd, w.inside, w.staffRemove) }},
	{"staff_screen", 5, func(w *world, s step, rnd *rand.Rand) { w.withOf(s, rnd, w.inside, w.screenRemove) }},
	{"staff_open", 3, func(w *world, s step, rnd *rand.Rand) { w.staffOpen(s, rnd) }},
	{"staff_block", 2, func(w *world, s step, rnd *rand.Rand) { w.staffBlock(s, rnd) }},
	{"cancel_pickup", 7, func(w *world, s step, rnd *rand.Rand) { w.withOf(s, rnd, w.inside, w.cancelPickup) }},
	{"last_moment", 3, func(w *world, s step, rnd *rand.Rand) { w.lastMoment(s, rnd) }},
	{"late_swing", 6, func(w *world, s step, rnd *rand.Rand) { w.withOf(s, rnd, w.outside, w.lateSwing) }},
	{"wrong_clear", 2, func(w *world, s step, rnd *rand.Rand) { w.wrongClear(s, rnd) }},
	{"reset_tries", 1, func(w *world, s step, _ *rand.Rand) { w.staffReset(s) }},
	{"staff_code", 4, func(w *world, s step, rnd *rand.Rand) { w.staffCode(s, rnd) }},
	{"vandal", 2, func(w *world, s step, rnd *rand.Rand) { w.vandal(s, rnd) }},
	{"command", 4, func(w *world, s step, rnd *rand.Rand) { w.deviceCommand(s, rnd) }},
	{"staff_clear", 4, func(w *world, s step, rnd *rand.Rand) { w.staffClear(s, rnd) }},
	{"block_unblock", 2, func(w *world, s step, rnd *rand.Rand) { w.blockByCall(s, rnd) }},
	{"replace", 3, func(w *world, s step, rnd *rand.Rand) { w.replaceHardware(s, rnd) }},
	{"steal", 2, func(w *world, s step, rnd *rand.Rand) { w.steal(s, rnd) }},
	{"cut", 8, func(w *world, s step, _ *rand.Rand) { c := w.cabinets[s.cabinet]; c.setCut(!c.cut.Load()) }},
	{"drop", 4, func(w *world, s step, _ *rand.Rand) { w.cabinets[s.cabinet].drop() }},
	{"kill", 14, func(w *world, s step, rnd *rand.Rand) {
		c := w.cabinets[s.cabinet]
		c.kill()
		time.Sleep(pick(rnd, 0, 2*time.Second, 30*time.Second, 5*time.Minute))
		c.start()
	}},
	{"kill_at_pulse", 4, func(w *world, s step, rnd *rand.Rand) { w.killAtPulse(s, rnd) }},
	{"restart", 3, func(w *world, s step, rnd *rand.Rand) {
		w.cabinets[s.cabinet].restart(time.Duration(rnd.IntN(90)) * time.Second)
	}},
	{"power_cut", 5, func(w *world, s step, rnd *rand.Rand) { // of the whole cabinet
		c := w.cabinets[s.cabinet]
		c.sim.PowerOff()
		c.kill()
		time.Sleep(pick(rnd, time.Second, 20*time.Second, 10*time.Minute))
		c.sim.PowerOn()
		c.start()
	}},
	{"boards_dark", 4, func(w *world, s step, rnd *rand.Rand) {
		c := w.cabinets[s.cabinet]
		c.sim.PowerOff()
		d := pick(rnd, time.Second, 30*time.Second, 3*time.Minute)
		c.disturb("boards", 0, d+30*time.Second)
		w.people.Go(func() { time.Sleep(d); c.sim.PowerOn() })
	}},
	{"clock", 2, func(w *world, s step, rnd *rand.Rand) { // the machine's clock is wrong at its next start
		c := w.cabinets[s.cabinet]
		off := pick(rnd, -400*24*time.Hour, -time.Hour, time.Hour, 400*24*time.Hour)
		c.disturb("clock", 0, 0)
		c.kill()
		c.system = func() time.Time { return time.Now().Add(off) }
		c.start()
	}},
	{"disk_full", 2, func(w *world, s step, rnd *rand.Rand) {
		c := w.cabinets[s.cabinet]
		end := time.Now().Add(pick(rnd, 5*time.Second, time.Minute))
		c.disturb("disk", 0, time.Until(end)+10*time.Second)
		c.kill()
		c.disk = func() error {
			if time.Now().Before(end) {
				return syscall.ENOSPC
			}
			return nil
		}
		c.start()
	}},
	{"copy_disk", 2, func(w *world, s step, rnd *rand.Rand) {
		c := w.cabinets[s.cabinet]
		c.halt()
		old := diskCopy{s.cabinet, time.Now(), c.copyStore()}
		c.start()
		w.people.Go(func() {
			time.Sleep(pick(rnd, 2*time.Minute, 10*time.Minute))
			w.mu.Lock()
			w.copies = append(w.copies, old)
			w.mu.Unlock()
		})
	}},
	{"roll_back", 2, func(w *world, s step, _ *rand.Rand) {
		w.mu.Lock()
		var found diskCopy
		for _, x := range w.copies {
			if x.cabinet == s.cabinet {
				found = x
			}
		}
		w.mu.Unlock()
		if found.store == nil {
			return
		}
		c := w.cabinets[s.cabinet]
		c.kill()
		c.putStore(found.store)
		c.forget(found.at, 0)
		c.start()
	}},
	{"damage_disk", 2, func(w *world, s step, rnd *rand.Rand) {
		c := w.cabinets[s.cabinet]
		c.kill()
		c.damageStore(rnd.Int64N(1 << 40))
		c.forget(c.unsentSince, time.Minute)
		c.start()
	}},
	{"cloud_down", 4, func(w *world, s step, rnd *rand.Rand) {
		w.people.Wait() // their calls go to the process that ends
		w.outage("cloud", func() {
			w.stopCloud()
			time.Sleep(time.Duration(rnd.IntN(60)) * time.Second)
			w.startCloud()
		})
	}},
	{"hook_sick", 2, func(w *world, _ step, rnd *rand.Rand) { w.hooks.fallSick(pick(rnd, 5*time.Second, time.Minute)) }},
	{"board_fault", 9, func(w *world, s step, rnd *rand.Rand) {
		faults := simboard.AllFaults()
		c := w.cabinets[s.cabinet]
		c.disturb("fault", 0, time.Minute)
		_ = c.sim.Inject("A", faults[rnd.IntN(len(faults))], 1+rnd.IntN(4))
	}},
	{"jam", 3, func(w *world, s step, rnd *rand.Rand) {
		c, door := w.cabinets[s.cabinet], uint(1+rnd.IntN(doors))
		c.disturb("jam", door, 0)
		_ = c.sim.Jam(door)
	}},
	{"force", 2, func(w *world, s step, rnd *rand.Rand) {
		c, door := w.cabinets[s.cabinet], uint(1+rnd.IntN(doors))
		c.disturb("force", door, time.Minute)
		_ = c.sim.Force(door)
	}},
	{"configure", 2, func(w *world, s step, rnd *rand.Rand) {
		_, _ = w.server().Lockers.Configure(context.Background(), w.box.Devices[s.cabinet].DeviceID, func(c *wire.Config) error {
			c.Times.SettleMS = uint32(500 + 500*rnd.IntN(6))
			for i := range c.Layout {
				c.Layout[i].Display = uint(1 + (i+rnd.IntN(2))%len(c.Layout))
			}
			return nil
		})
	}},
	{"layout", 3, func(w *world, s step, rnd *rand.Rand) { w.changeLayout(s, rnd) }},
	{"noise", 2, func(w *world, _ step, rnd *rand.Rand) { w.noise.Store(int64(rnd.IntN(30))) }},
	{"attack", 14, func(w *world, s step, rnd *rand.Rand) { w.tap.attack(w.cabinets[s.cabinet].code, rnd) }},
}

type diskCopy struct {
	cabinet int
	at      time.Time
	store   []byte
}

func pick[T any](rnd *rand.Rand, of ...T) T { return of[rnd.IntN(len(of))] }

// soon bounds a call that waits for the cabinet.
func (w *world) soon() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	context.AfterFunc(ctx, cancel)
	return ctx
}

// outage runs something during which what is in flight may be lost.
func (w *world) outage(what string, during func()) {
	s := truth.Span{At: time.Now(), What: what}
	during()
	s.Until = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outages = append(w.outages, s)
}

func (x *task) key() locker.DeliveryKey { return locker.DeliveryKey("ref:" + x.ref) }

// newTask announces a delivery of one to three packages, and lets a person begin
// with it. A cabinet without room takes none.
func (w *world) newTask(s step, rnd *rand.Rand, do func(*task, *rand.Rand)) {
	x := &task{ref: fmt.Sprintf("R-%x", s.seed), cabinet: s.cabinet, busy: true}
	in := locker.CreateInput{ReferenceNumber: x.ref, DeviceID: w.box.Devices[s.cabinet].DeviceID, Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}}
	for i := range 1 + rnd.IntN(5)/3 {
		p := fmt.Sprintf("PK-%x-%d", s.seed, i)
		x.packages = append(x.packages, p)
		in.Packages = append(in.Packages, locker.PackageInput{TrackingNumber: p, Size: "M"})
	}
	x.outgoing = purposed(s, &in)
	out, err := w.server().Lockers.Create(context.Background(), w.box.ProviderCaller, in)
	if err != nil {
		return
	}
	x.id, x.number = out.Delivery.DeliveryID, out.Delivery.DeliveryNumber
	w.mu.Lock()
	w.tasks = append(w.tasks, x)
	w.mu.Unlock()
	w.send(x, rnd, do)
}

// withTask lets a person go on with some delivery at the cabinet.
func (w *world) withTask(s step, rnd *rand.Rand, do func(*task, *rand.Rand)) {
	w.withOf(s, rnd, nil, do)
}

// inside are deliveries whose first package lies in a box, outside those whose
// first one was never brought.
func (w *world) inside(x *task) bool {
	return slices.ContainsFunc(w.cabinets, func(c *cabinet) bool {
		for n := uint(1); n <= doors; n++ {
			if slices.Contains(c.sim.ItemsAt(n, time.Now()), x.packages[0]) {
				return true
			}
		}
		return false
	})
}

// outside: the courier has the first package yet, and staff have taken none of the others
// out of a box: that would not come with it.
func (w *world) outside(x *task) bool {
	return !w.placed(x.packages[0]) && !slices.ContainsFunc(w.cleared, func(c truth.Clear) bool {
		return slices.ContainsFunc(c.Packages, func(p string) bool { return slices.Contains(x.packages, p) })
	})
}

// withOf lets a person go on with some delivery of a kind; nil is any.
func (w *world) withOf(s step, rnd *rand.Rand, kind func(*task) bool, do func(*task, *rand.Rand)) {
	w.mu.Lock()
	var idle []*task
	for _, x := range w.tasks {
		if x.cabinet == s.cabinet && !x.busy && (kind == nil || kind(x)) {
			idle = append(idle, x)
		}
	}
	if len(idle) == 0 {
		w.mu.Unlock()
		return
	}
	x := idle[max(0, len(idle)-1-rnd.IntN(min(4, len(idle))))]
	x.busy = true
	w.mu.Unlock()
	w.send(x, rnd, do)
}

// send lets a person go their way.
func (w *world) send(x *task, rnd *rand.Rand, do func(*task, *rand.Rand)) {
	own := rand.New(rand.NewPCG(rnd.Uint64(), 5))
	w.people.Go(func() {
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			x.busy = false
		}()
		do(x, own)
	})
}
