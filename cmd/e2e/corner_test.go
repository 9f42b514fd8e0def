package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cmd/internal/truth"
	simboard "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

// What rarely happens, and decides whether a rule is kept to the moment.

// cancelPickup opens the doors of a pickup, has staff cancel it, and leaves them
// open until after the session. Nothing is taken.
func (w *world) cancelPickup(x *task, rnd *rand.Rand) {
	codes, ok := w.codes(x)
	if !ok || x.outgoing {
		return
	}
	c := w.cabinets[x.cabinet]
	a, err := w.enter(c, truth.Act{Delivery: x.number, Code: w.collects(x)}, codes.Pickup, false)
	if err != nil || a.Outcome != wire.CodeOK {
		return
	}
	time.Sleep(4 * time.Second)
	_, command := w.command(x.cabinet, uint(a.Doors[0]), wire.CmdCloseSession, wire.CloseSession{OpeningID: a.OpeningID, How: wire.CloseCancel})
	for end := time.Now().Add(15 * time.Second); !c.running().Loop().State().Openings[a.OpeningID].Cancelled; time.Sleep(time.Second) {
		if time.Now().After(end) { // no word to leave it has reached the recipient
			var doors []uint
			for _, n := range a.Doors {
				doors = append(doors, uint(n))
			}
			w.recipient(x, doors, rnd)
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancels = append(w.cancels, truth.Cancel{Cabinet: c.code, OpeningID: a.OpeningID, CommandID: command})
	for _, n := range a.Doors {
		c.stays[uint(n)] = true
	}
}

// lastMoment types a delivery code a moment before its end, or well after it: a
// clock that is known to be wrong by some milliseconds refuses only what has certainly
// ended.
func (w *world) lastMoment(s step, rnd *rand.Rand) {
	in := locker.CreateInput{ReferenceNumber: fmt.Sprintf("R-%x", s.seed), DeviceID: w.box.Devices[s.cabinet].DeviceID, Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"},
		Packages: []locker.PackageInput{{TrackingNumber: fmt.Sprintf("PK-%x", s.seed), Size: "M"}}}
	end := time.Now().Add(2 * time.Minute).Truncate(time.Second)
	in.DeliverBefore = end.UTC().Format(time.RFC3339)
	out, err := w.server().Lockers.Create(context.Background(), w.box.ProviderCaller, in)
	if err != nil {
		return
	}
	x := &task{ref: in.ReferenceNumber, cabinet: s.cabinet, packages: []string{in.Packages[0].TrackingNumber}, id: out.Delivery.DeliveryID, number: out.Delivery.DeliveryNumber, busy: true}
	w.mu.Lock()
	w.tasks = append(w.tasks, x)
	w.mu.Unlock()
	w.send(x, rnd, func(x *task, rnd *rand.Rand) {
		if rnd.IntN(3) > 0 {
			time.Sleep(time.Until(end) - time.Millisecond)
		} else {
			time.Sleep(time.Until(end) + pick(rnd, 15*time.Second, time.Minute))
		}
		w.depositLocal(x, rnd)
	})
}

// killAtPulse kills the agent between the pulse of a courier's door and the moment at
// which it has seen it open. The courier puts the parcel in and shuts the door
// meanwhile, and the agent starts again. Where the pulse does not come in time, the courier
// waits for the door as on any other day.
func (w *world) killAtPulse(s step, rnd *rand.Rand) {
	c := w.cabinets[s.cabinet]
	before, known := len(c.coils()), len(w.tasks)
	late := make(chan bool, 1)
	w.newTask(s, rnd, func(x *task, rnd *rand.Rand) {
		_, err := w.tryOpen(x)
		if told := refusal(err); <-late && (told == "" || told == "DEVICE_TIMEOUT") {
			w.courier(x, rnd)
		}
	})
	for end := time.Now().Add(5 * time.Second); len(c.coils()) == before && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	if len(c.coils()) == before || len(w.tasks) == known {
		late <- true
		return
	}
	late <- false
	x := w.tasks[known]
	time.Sleep(time.Duration(rnd.IntN(1300)) * time.Millisecond)
	c.kill()
	time.Sleep(pick(rnd, time.Second, 6*time.Second))
	for n, packages := range w.boxes(x) {
		if !c.sim.OpenAt(n, time.Now()) {
			continue
		}
		for _, p := range packages {
			w.hold([]string{p}, c.sim.Put(n, p) != nil)
		}
		_ = c.sim.CloseDoor(n)
	}
	time.Sleep(pick(rnd, 0, 2*time.Second, time.Minute))
	c.start()
	w.effect("killed at a pulse", nil)
}

// lateSwing lets a jammed door go after the cabinet has given it up, and within
// the time in which a door still belongs to its pulse.
func (w *world) lateSwing(x *task, rnd *rand.Rand) {
	c := w.cabinets[x.cabinet]
	all := slices.Sorted(maps.Keys(w.boxes(x)))
	if len(all) == 0 {
		return
	}
	door := all[0]
	_ = c.sim.Jam(door)
	began := time.Now()
	w.people.Go(func() { _, _ = w.tryOpen(x) })
	var last time.Time
	for pulses := 0; pulses < 2 && time.Since(began) < 25*time.Second; time.Sleep(50 * time.Millisecond) {
		pulses = 0
		for _, f := range c.sim.Truth() {
			if f.Door == door && f.Kind == simboard.CoilFired && f.At.After(began) {
				pulses, last = pulses+1, f.At
			}
		}
	}
	if p := c.pulsedSince(door, began); p.Kind != "" && c.running().Loop().State().Openings[p.OpeningID].DeliveryRef != x.number {
		_ = c.sim.Free(door)
		return // staff try the same door, which is not this courier's
	}
	if time.Since(last) < time.Second {
		time.Sleep(time.Until(last.Add(1750 * time.Millisecond)))
		_ = c.sim.Free(door)
		_ = c.sim.Force(door)
	}
	_ = c.sim.Free(door)
	w.courier(x, rnd)
}

// wrongClear has staff clear a compartment at the cabinet alone.
func (w *world) wrongClear(s step, rnd *rand.Rand) {
	c, door := w.cabinets[s.cabinet], uint(1+rnd.IntN(doors))
	if !w.server().Devices.Online(c.code) {
		return
	}
	c.disturb("forgot", door, 30*time.Second)
	w.staffCommand(s, door, wire.CmdClear, wire.DoorReason{Door: door, Reason: "emptied"})
}

// outOfUse reports whether a delivery lies in a compartment about which cabinet and
// cloud disagree: staff have to look before its recipient is let in.
func (w *world) outOfUse(c *cabinet, x *task) bool {
	for door := range w.boxes(x) {
		if w.cellOf(c, door).OutOfUse() {
			return true
		}
	}
	return false
}
