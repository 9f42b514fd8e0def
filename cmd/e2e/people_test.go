package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/agent"
	edgelocker "github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// task is a delivery with what its people know of it. Its people move one after
// the other; busy keeps the script from sending a second one.
type task struct {
	ref, number string
	id          cloud.DeliveryID
	cabinet     int
	packages    []string
	busy        bool
	outgoing    bool     // its sender brings it, and a courier collects it
	former      []former // codes that opened its doors until others took their place
}

// running is the agent at this moment.
func (c *cabinet) running() *agent.Agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.agent
}

// codes are a delivery's present codes, which no interface gives away.
func (w *world) codes(x *task) (out locker.Codes, ok bool) {
	s := w.server()
	d, err := s.Store.FindDelivery(context.Background(), w.box.ProviderCaller.Provider.ID, x.id)
	if err != nil {
		return out, false
	}
	raw, err := s.Box.Open("delivery-codes", d.SealedCodes)
	return out, err == nil && json.Unmarshal(raw, &out) == nil
}

// boxes are the doors that a delivery's packages are to go to, or lie behind.
func (w *world) boxes(x *task) map[uint][]string {
	s := w.server()
	d, err := s.Store.FindDelivery(context.Background(), w.box.ProviderCaller.Provider.ID, x.id)
	if err != nil {
		return nil
	}
	cells, err := s.Store.ListCompartments(context.Background(), d.DeviceID)
	if err != nil {
		return nil
	}
	out := map[uint][]string{}
	for _, p := range d.Packages {
		for _, c := range cells {
			if p.GridID == c.GridID && p.Status != cloud.PackagePickedUp && (c.DeliveryID == 0 || c.DeliveryID == d.ID) {
				out[c.Door] = append(out[c.Door], p.TrackingNumber)
			}
		}
	}
	return out
}

// opened reports whether a door was opened for a delivery's courier since a moment:
// not for staff and not for another delivery. One that stood open is the courier's
// where the running opening shows it as open.
func (w *world) opened(c *cabinet, x *task, door uint, since time.Time) bool {
	switch p := c.pulsedSince(door, since); {
	case p.Kind == "":
		return w.shownOpen(x, door)
	case strings.HasPrefix(p.OpeningID, staffOpening):
		return false
	case p.Kind == edge.ByCommand:
		return w.opens(p.OpeningID, x)
	}
	return true
}

// shownOpen reports whether a delivery's running opening shows a door as open, at
// the cabinet or in the cloud, which may not have heard of it.
func (w *world) shownOpen(x *task, door uint) (shown bool) {
	if w.runs(x, door, wire.OpenDeposit, wire.OpenReassign, wire.OpenCorrection) {
		return true
	}
	_ = w.server().Store.Decide(context.Background(), 0, func(v cloud.View) (*cloud.Changes, error) {
		list, err := v.DeliveryOpenings(x.id)
		shown = slices.ContainsFunc(list, func(o cloud.Opening) bool {
			return o.State == cloud.OpeningRunning && slices.ContainsFunc(o.Doors, func(d cloud.OpeningDoor) bool { return d.Door == door && d.Status == wire.DoorOpen })
		})
		return &cloud.Changes{}, err
	})
	return shown
}

// runs reports whether a cabinet has a running opening of some kinds for a delivery
// in which a door is open.
func (w *world) runs(x *task, door uint, kinds ...wire.OpeningKind) bool {
	for _, o := range w.cabinets[x.cabinet].running().Loop().State().Openings {
		if o.DeliveryRef == x.number && slices.Contains(kinds, o.Kind) &&
			slices.ContainsFunc(o.Doors, func(d edgelocker.OpeningDoor) bool { return uint(d.Door) == door && d.Phase == edgelocker.Opened }) {
			return true
		}
	}
	return false
}

// opens reports whether an opening is one of a delivery.
func (w *world) opens(opening string, x *task) (mine bool) {
	_ = w.server().Store.Decide(context.Background(), 0, func(v cloud.View) (*cloud.Changes, error) {
		o, err := v.Opening(opening)
		mine = err == nil && o.DeliveryID == x.id
		return &cloud.Changes{}, err
	})
	return mine
}

// act notes what a person does; the answer completes it.
func (w *world) act(a truth.Act) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	a.At = time.Now()
	w.acts = append(w.acts, a)
	return len(w.acts) - 1
}

func (w *world) answered(n int, a edgelocker.Answer, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		return // what became of it is not known
	}
	w.acts[n].Until, w.acts[n].OK, w.acts[n].Outcome = time.Now(), a.Outcome == wire.CodeOK, a.Outcome
	for _, d := range a.Doors {
		w.acts[n].Doors = append(w.acts[n].Doors, uint(d))
	}
}

// enter types or shows a code at a cabinet.
func (w *world) enter(c *cabinet, a truth.Act, code string, scan bool) (edgelocker.Answer, error) {
	a.Cabinet, a.Kind, a.Scanned = c.code, edge.ByCode, scan
	n := w.act(a)
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	desk := c.running().Codes()
	var out edgelocker.Answer
	var err error
	if scan {
		out, err = desk.Scan(ctx, fmt.Sprintf("PU:%s:%s", c.code, code))
	} else {
		out, err = desk.Type(ctx, code, nil)
	}
	w.answered(n, out, err)
	return out, err
}

// patience is how long a person waits at a door for it to open.
const patience = 14 * time.Second

// atDoors does something at each door as soon as it is open.
func (w *world) atDoors(c *cabinet, doors []uint, do func(door uint) error) {
	left := slices.Clone(doors)
	for end := time.Now().Add(patience); len(left) > 0 && time.Now().Before(end); time.Sleep(250 * time.Millisecond) {
		left = slices.DeleteFunc(left, func(n uint) bool { return do(n) == nil })
	}
}

// leave closes the doors behind a person, most of the time.
func (w *world) leave(c *cabinet, doors []uint, rnd *rand.Rand) {
	time.Sleep(time.Duration(1+rnd.IntN(15)) * time.Second)
	for _, n := range doors {
		if rnd.IntN(7) > 0 {
			_ = c.sim.CloseDoor(n)
		}
	}
}

// courier puts a delivery's packages into the boxes that open for it.
func (w *world) courier(x *task, rnd *rand.Rand) { w.deposit(x, w.boxes(x), rnd) }

// deposit puts the packages into the doors that the courier was sent to.
func (w *world) deposit(x *task, boxes map[uint][]string, rnd *rand.Rand) {
	c, came := w.cabinets[x.cabinet], time.Now().Add(-40*time.Second) // an opening from afar takes that long
	var doors []uint
	for n := range boxes {
		doors = append(doors, n)
	}
	slices.Sort(doors)
	switch rnd.IntN(16) {
	case 0, 1: // it is dirty inside: another compartment
		w.atDoors(c, doors, func(n uint) error { return w.look(c, n) })
		if w.shutIn(c, boxes) {
			break // what lies behind a shut door cannot be put elsewhere
		}
		out, err := w.server().Lockers.Reassign(w.soon(), w.box.ProviderCaller, locker.ReassignInput{Delivery: x.key(), Size: "M", Reason: "dirty"})
		w.effect("reassign at the door", err)
		if err == nil && (!out.Pending || w.otherOpens(c, x, doors)) {
			for _, n := range doors {
				items, _ := c.sim.TakeOut(n) // none from a door that did not open
				w.hold(items, true)
			}
			w.leave(c, doors, rnd)
			w.courier(x, rnd)
			return
		}
	case 3: // it does not fit: a larger one, chosen at the screen
		w.atDoors(c, doors, func(n uint) error { return w.look(c, n) })
		if w.shutIn(c, boxes) {
			break
		}
		if n := w.takeLarger(c, x, doors); n != 0 {
			for _, d := range doors {
				items, _ := c.sim.TakeOut(d)
				w.hold(items, true)
			}
			w.leave(c, doors, rnd)
			w.deposit(x, map[uint][]string{n: x.packages}, rnd)
			return
		}
	case 2: // too large after all
		w.atDoors(c, doors, func(n uint) error { return w.look(c, n) })
		_, err := w.server().Lockers.Fail(w.soon(), w.box.ProviderCaller, locker.FailInput{Delivery: x.key(), FailureCode: "PARCEL_TOO_LARGE"})
		w.effect("fail at the door", err)
		if err == nil {
			w.leave(c, doors, rnd)
			return
		}
	}
	w.atDoors(c, doors, func(n uint) error {
		var err error
		if !w.opened(c, x, n, came) {
			return errShut
		}
		for _, p := range boxes[n] {
			if err == nil && !w.placed(p) {
				err = c.sim.Put(n, p)
				w.hold([]string{p}, err != nil)
			}
		}
		return err
	})
	w.leave(c, doors, rnd)
	if rnd.IntN(6) > 0 {
		return
	}
	time.Sleep(time.Duration(2+rnd.IntN(30)) * time.Second) // a label was forgotten
	_, err := w.server().Lockers.Correct(w.soon(), w.box.ProviderCaller, locker.CorrectInput{Delivery: x.key(), Reason: "forgot a label"})
	w.effect("correct at the door", err)
	if err == nil {
		w.takeOneOut(x, boxes)
	}
	w.leave(c, doors, rnd)
}

// shutIn reports whether any of a delivery's packages lies behind a door that is
// not open.
func (w *world) shutIn(c *cabinet, boxes map[uint][]string) bool {
	for n, packages := range boxes {
		for _, p := range c.sim.ItemsAt(n, time.Now()) {
			if slices.Contains(packages, p) && !c.sim.OpenAt(n, time.Now()) {
				return true
			}
		}
	}
	return false
}

// hold notes that a courier took packages back into their hands, or let go of them.
func (w *world) hold(packages []string, held bool) {
	for _, p := range packages {
		w.inHand.Store(p, held)
	}
}

// otherOpens reports whether another door than these opens for a delivery, while
// its courier waits for an answer.
func (w *world) otherOpens(c *cabinet, x *task, than []uint) (opened bool) {
	var others []uint
	for n := range w.boxes(x) {
		if !slices.Contains(than, n) {
			others = append(others, n)
		}
	}
	came := time.Now().Add(-40 * time.Second)
	w.atDoors(c, others, func(n uint) error {
		if !w.opened(c, x, n, came) {
			return errShut
		}
		err := w.look(c, n)
		opened = opened || err == nil
		return err
	})
	return opened
}

// look waits for a door to stand open.
func (w *world) look(c *cabinet, door uint) error {
	if !c.sim.OpenAt(door, time.Now()) {
		return errShut
	}
	return nil
}

var errShut = errors.New("the door is shut")

// placed reports whether a package was put anywhere before: there is one of it.
func (w *world) placed(p string) bool {
	if held, _ := w.inHand.Load(p); held == true {
		return false
	}
	for _, c := range w.cabinets {
		for _, f := range c.sim.Truth() {
			if f.Item == p {
				return true
			}
		}
	}
	return false
}

// recipient takes what lies behind the doors that open.
func (w *world) recipient(x *task, doors []uint, rnd *rand.Rand) {
	c, answered := w.cabinets[x.cabinet], len(doors) > 0
	if !answered {
		for n := range w.boxes(x) {
			doors = append(doors, n)
		}
	}
	slices.Sort(doors)
	w.atDoors(c, doors, func(n uint) error {
		if !answered && !w.runs(x, n, wire.OpenPickup) {
			return errShut // it may stand open for the courier, who has only now put the parcel in
		}
		_, err := c.sim.TakeOut(n)
		return err
	})
	w.leave(c, doors, rnd)
}

// depositRemote makes a delivery and opens its doors from afar.
func (w *world) depositRemote(x *task, rnd *rand.Rand) {
	if _, err := w.tryOpen(x, w.shared(x, rnd)...); refusal(err) != "" && refusal(err) != "DEVICE_TIMEOUT" {
		return
	}
	w.courier(x, rnd) // an answer that did not come is no closed door
}

// shared is at times one compartment for all packages of a delivery, else none.
func (w *world) shared(x *task, rnd *rand.Rand) (grids []cloud.GridID) {
	if len(x.packages) < 2 || rnd.IntN(3) > 0 {
		return nil
	}
	d, err := w.server().Store.FindDelivery(context.Background(), w.box.ProviderCaller.Provider.ID, x.id)
	if err != nil || d.Packages[0].GridID == 0 {
		return nil
	}
	return []cloud.GridID{d.Packages[0].GridID}
}

// takeOneOut has a courier, in a correction, take one of several packages of a compartment
// back and report it.
func (w *world) takeOneOut(x *task, boxes map[uint][]string) {
	c := w.cabinets[x.cabinet]
	for n, packages := range boxes {
		if len(packages) < 2 {
			continue
		}
		w.atDoors(c, []uint{n}, func(n uint) error {
			if !w.runs(x, n, wire.OpenCorrection) {
				return errShut
			}
			items, err := c.sim.TakeOut(n)
			if err != nil || len(items) == 0 {
				return err
			}
			w.hold(items, true)
			back := items[1:]
			_, err = w.server().Lockers.Fail(w.soon(), w.box.ProviderCaller, locker.FailInput{Delivery: x.key(), Packages: []locker.FailPackage{{TrackingNumber: items[0], FailureCode: "RECIPIENT_UNKNOWN"}}})
			w.effect("fail in a correction", err)
			if err != nil {
				back = items
			}
			for _, p := range back {
				if c.sim.Put(n, p) == nil {
					w.hold([]string{p}, false)
				}
			}
			return nil
		})
		return
	}
}

func (w *world) tryOpen(x *task, grids ...cloud.GridID) (locker.OpenOutput, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	return w.server().Lockers.OpenDoors(ctx, w.box.ProviderCaller, locker.OpenInput{Delivery: locker.DeliveryKey("ref:" + x.ref), Compartments: grids})
}

// depositLocal types the delivery code at the cabinet.
func (w *world) depositLocal(x *task, rnd *rand.Rand) {
	codes, ok := w.codes(x)
	if !ok {
		return
	}
	a, err := w.enter(w.cabinets[x.cabinet], truth.Act{Delivery: x.number, Code: wire.CodeDelivery}, codes.Delivery, false)
	if err == nil && a.Outcome != wire.CodeOK {
		return
	}
	boxes := w.boxes(x)
	// The cabinet may not have heard that the delivery ended: a courier goes by the
	// doors that it shows.
	if len(boxes) == 0 {
		boxes = map[uint][]string{}
		for i := range min(len(a.Doors), len(x.packages)) {
			boxes[uint(a.Doors[i])] = []string{x.packages[i]}
		}
	}
	w.deposit(x, boxes, rnd)
}

// collect uses the pickup code, or one that was rotated away.
func (w *world) collectWith(x *task, code former, scan bool, rnd *rand.Rand) {
	a, err := w.enter(w.cabinets[x.cabinet], truth.Act{Delivery: x.number, Code: code.kind, Replaced: code.replaced}, code.code, scan)
	if err == nil && a.Outcome != wire.CodeOK {
		return
	}
	var doors []uint
	for _, n := range a.Doors {
		doors = append(doors, uint(n))
	}
	w.recipient(x, doors, rnd)
}

// takeLarger is a courier who takes a larger compartment in place of the open one; 0 when
// the screen offers none.
func (w *world) takeLarger(c *cabinet, x *task, doors []uint) uint {
	a := c.running()
	s := a.Loop().State()
	for id, o := range s.Openings {
		if o.DeliveryRef != x.number || !slices.Equal(doors, []uint{uint(o.Doors[0].Door)}) || s.Another(id, o.Doors[0].Door, edgelocker.TooSmall, a.Now()) == 0 {
			continue
		}
		n := w.act(truth.Act{Cabinet: c.code, Kind: edge.ByLarger, Delivery: x.number, Code: wire.CodeDelivery})
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
		defer cancel()
		out, err := a.Loop().Do(ctx, edgelocker.TakeAnother{OpeningID: id, Door: o.Doors[0].Door, Reason: edgelocker.TooSmall})
		w.answered(n, out, err)
		if err == nil && out.Outcome == wire.CodeOK {
			w.effect("larger", nil)
			return uint(out.Doors[0])
		}
		return 0
	}
	return 0
}
