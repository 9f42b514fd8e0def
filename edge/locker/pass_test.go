package locker

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// courierPass is a pass of the moment for a delivery that the cabinet has not heard of.
func (w *world) courierPass(id byte, doors ...uint) wire.Pass {
	p := wire.Pass{DeviceCode: "A-1", ID: bytes.Repeat([]byte{id}, wire.PassIDSize), Kind: wire.OpenDeposit, Doors: doors, NotBefore: w.now.Wall(w.now.Mono) - 10*second,
		NotAfter: w.now.Wall(w.now.Mono) + 4*hour, DeliveryRef: "LD-8", Packages: map[uint][]string{}, CodeNumber: w.s.Meta.CodeList + 1, Generation: w.s.Meta.Generation}
	for _, n := range doors {
		p.Packages[n] = []string{"PK" + string(rune('0'+n))}
	}
	return p
}

func (w *world) staffPass(id byte, doors ...uint) wire.Pass {
	p := w.courierPass(id, doors...)
	p.Kind, p.DeliveryRef, p.Packages, p.CodeNumber, p.Generation = wire.OpenStaff, "", nil, 0, 0
	p.NotAfter = p.NotBefore + int64(wire.MaxStaffPass)
	return p
}

func (w *world) show(p wire.Pass) string {
	return w.step(PassShown{Pass: p, Device: "A-1"}).Answer.Outcome
}

func TestACourierBringsAParcelByAPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	p := w.courierPass(1, 2, 3)
	require.Equal(t, wire.CodeOK, w.show(p))
	require.Equal(t, []edge.DoorNumber{2, 3}, w.pulses)
	started := bodies[wire.OpeningStarted](w)[0]
	require.Equal(t, wire.PassInput, started.How)
	require.Equal(t, p.ID, started.PassID, "the cloud learns of the id")
	require.Equal(t, "courier", started.Who)
	require.Equal(t, "LD-8", started.DeliveryRef)
	require.Equal(t, wire.LocalCommand, started.CommandID)
	require.Equal(t, []wire.CodeAttempt{{Outcome: wire.CodeOK, Input: wire.PassInput}}, bodies[wire.CodeAttempt](w))
	require.Equal(t, wire.PassUsed, w.show(p), "while it runs")
	require.Equal(t, wire.ReasonBusy, w.show(w.courierPass(2, 1)), "another pass for the same delivery")
	w.swing()
	w.setDoor(2, false)
	w.setDoor(3, false)
	w.wait(3 * time.Second)
	settled := bodies[wire.OpeningSettled](w)
	require.Len(t, settled, 1)
	require.Equal(t, wire.ByDoorClose, settled[0].ConfirmedBy)
	require.Equal(t, []wire.SettledPackage{{Ref: "PK2", Door: 2, Outcome: wire.Deposited}, {Ref: "PK3", Door: 3, Outcome: wire.Deposited}}, settled[0].Packages)
	require.Equal(t, "LD-8", w.s.Doors[2].Delivery)
	require.Equal(t, wire.CodeExpired, w.show(w.courierPass(3, 1)), "the delivery is here")

	// The link is back: the list brings the entries, and the recipient's code opens.
	w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-8", Doors: []uint{2, 3}},
		wire.CodeEntry{Number: 2, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(7), DeliveryRef: "LD-8", Active: wire.ActiveNow, Doors: []uint{2, 3}})
	require.Equal(t, wire.CodeExpired, w.step(CodeTried{Verifier: verifier(5), Input: "keypad"}).Answer.Outcome, "the courier's code opens nothing more")
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(7), Input: "keypad"}).Answer.Outcome)
	w.swing()
	w.setDoor(2, false)
	w.setDoor(3, false)
	w.wait(3 * time.Second)
	require.Len(t, bodies[wire.PickupCompleted](w), 1)
	again := w.courierPass(4, 2)
	again.CodeNumber = 1
	require.Equal(t, wire.PassRevoked, w.show(again), "collected: the entry is gone")
}

// Collected before the list named the delivery: a second pass for it opens nothing.
func TestAPassIsNoSecondDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	first := w.courierPass(1, 1)
	first.CodeNumber = 7
	require.Equal(t, wire.CodeOK, w.show(first))
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	w.step(Ordered{Command: w.command(wire.CmdOpenDoors, nil, wire.OpenDoors{OpeningID: "op_p", Kind: wire.OpenPickup, Doors: []uint{1}, SessionSeconds: 60, DeliveryRef: "LD-8"})})
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Len(t, bodies[wire.PickupCompleted](w), 1)
	second := w.courierPass(2, 1)
	second.CodeNumber = 7
	require.Equal(t, wire.CodeExpired, w.show(second))
	second.CodeNumber = 9 // listed anew since
	require.Equal(t, wire.CodeOK, w.show(second))
}

func TestStaffOpenByAPassWhateverLiesInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.deposit()
	w.takePulses()
	require.Equal(t, wire.ReasonOccupied, w.show(w.courierPass(1, 1)))
	p := w.staffPass(2, 1, 2)
	require.Equal(t, wire.CodeOK, w.show(p))
	w.swing()
	w.setDoor(1, false)
	w.setDoor(2, false)
	w.wait(3 * time.Second)
	ended := bodies[wire.OpeningEnded](w)
	require.Equal(t, wire.EndDone, ended[len(ended)-1].Reason)
	require.Equal(t, "LD-1", w.s.Doors[1].Delivery, "what lies inside stays")
	require.Equal(t, wire.PassUsed, w.show(p))
}

func TestPassesAreCheckedInOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(w *world, p *wire.Pass)
		want    string
	}{
		"breaks a limit":            {func(_ *world, p *wire.Pass) { p.Doors = nil }, wire.PassForged},
		"another cabinet":           {func(w *world, p *wire.Pass) { p.DeviceCode = "B-2"; w.now.Clock = wire.ClockUnset }, wire.PassOtherCabinet},
		"clock never set":           {func(w *world, p *wire.Pass) { w.now.Clock = wire.ClockUnset; p.NotAfter = 2; p.NotBefore = 1 }, wire.ReasonClock},
		"clock carried over":        {func(w *world, p *wire.Pass) { w.now.Clock = wire.ClockCarried }, wire.ReasonClock},
		"not begun":                 {func(w *world, p *wire.Pass) { p.NotBefore = w.now.Wall(w.now.Mono) + 1 }, wire.CodeNotActive},
		"perhaps not begun":         {func(w *world, p *wire.Pass) { w.now.ErrMS = 11_000 }, wire.CodeNotActive},
		"over":                      {func(w *world, p *wire.Pass) { p.NotAfter = w.now.Wall(w.now.Mono) - 1 }, wire.CodeExpired},
		"perhaps over":              {func(w *world, p *wire.Pass) { w.now.ErrMS = 4000; p.NotAfter = w.now.Wall(w.now.Mono) + 3*second }, wire.CodeExpired},
		"an uncertain clock is met": {func(w *world, p *wire.Pass) { w.now.ErrMS = 9000 }, wire.CodeOK},
		"over and used": {func(w *world, p *wire.Pass) {
			w.show(*p)
			w.swing()
			w.setDoor(1, false)
			w.wait(3 * time.Second)
			w.now.Offset += 5 * hour
		}, wire.CodeExpired},
		"revoked": {func(w *world, p *wire.Pass) {
			w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-8"}, wire.CodeEntry{Number: 2, Op: wire.CodeRevoke, Kind: wire.CodeDelivery, DeliveryRef: "LD-8"})
		}, wire.PassRevoked},
		"rotated": {func(w *world, p *wire.Pass) {
			w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-8"}, wire.CodeEntry{Number: 2, Op: wire.CodeRevoke, Kind: wire.CodeDelivery, DeliveryRef: "LD-8"},
				wire.CodeEntry{Number: 3, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(6), DeliveryRef: "LD-8"})
		}, wire.PassRevoked},
		"listed": {func(w *world, p *wire.Pass) {
			w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-8"})
		}, wire.CodeOK},
		"entry of another delivery": {func(w *world, p *wire.Pass) {
			w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-9"})
		}, wire.PassRevoked},
		"entry of another kind": {func(w *world, p *wire.Pass) {
			w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(5), DeliveryRef: "LD-8"})
		}, wire.PassRevoked},
		"former generation": {func(w *world, p *wire.Pass) { w.s.Meta.Generation = 3; p.Generation = 2 }, wire.PassRevoked},
		"coming generation": {func(w *world, p *wire.Pass) { w.s.Meta.Generation = 3; p.Generation = 4 }, wire.CodeOK},
		"no such door":      {func(w *world, p *wire.Pass) { *p = w.courierPass(1, 9) }, wire.ReasonUnknownDoor},
		"board silent":      {func(w *world, p *wire.Pass) { w.step(Lost{Doors: []edge.DoorNumber{1}}) }, wire.ReasonBoard},
		"door busy":         {func(w *world, p *wire.Pass) { w.order("op_0", wire.OpenStaff, 1) }, wire.ReasonBusy},
		"door blocked": {func(w *world, p *wire.Pass) {
			w.step(Ordered{Command: w.command(wire.CmdBlock, nil, wire.DoorReason{Door: 1, Reason: "dirty"})})
		}, wire.ReasonSuspect},
	} {
		w := newWorld(t, 2)
		p := w.courierPass(1, 1)
		c.prepare(w, &p)
		w.takePulses()
		before, budgets := len(w.s.Commands), w.s.Meta.Budgets
		require.Equal(t, c.want, w.show(p), name)
		require.Equal(t, budgets, w.s.Meta.Budgets, "%s: no try is counted", name)
		if c.want == wire.CodeOK {
			require.Len(t, w.takePulses(), 1, name)
			continue
		}
		require.Empty(t, w.takePulses(), name)
		require.Len(t, w.s.Commands, before, "%s: a refusal uses nothing up", name)
	}
}

// An id that was used stays used: across a start, a clock that was two days ahead for a
// moment, and every way of losing the store.
func TestAUsedPassStaysUsed(t *testing.T) {
	t.Parallel()
	use := func(t *testing.T) (*world, wire.Pass) {
		w := newWorld(t, 3)
		p := w.staffPass(1, 1)
		require.Equal(t, wire.CodeOK, w.show(p))
		w.swing()
		w.setDoor(1, false)
		w.wait(3 * time.Second)
		w.takePulses()
		return w, p
	}
	t.Run("start", func(t *testing.T) {
		t.Parallel()
		w, p := use(t)
		w.restart(time.Minute, wire.ClockSynced)
		w.readAll()
		require.Equal(t, wire.PassUsed, w.show(p))
	})
	t.Run("power goes right after the intent", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		p := w.staffPass(1, 1)
		w.show(p)
		w.restart(time.Second, wire.ClockSynced)
		w.readAll()
		require.Equal(t, wire.PassUsed, w.show(p))
		require.Empty(t, w.takePulses())
	})
	t.Run("wrong time", func(t *testing.T) {
		t.Parallel()
		w, p := use(t)
		w.now.Offset += 49 * hour
		w.step(Tick{})
		w.now.Offset -= 49 * hour
		require.Equal(t, wire.PassUsed, w.show(p))
	})
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := use(t)
			lose(w)
			w.readAll()
			require.Contains(t, []string{wire.ReasonMemory, wire.CodeExpired}, w.show(p))
			w.now.Clock = wire.ClockCarried
			require.Equal(t, wire.ReasonClock, w.show(p))
			require.Empty(t, w.takePulses())
			w.now.Clock = wire.ClockSynced
			w.now.Mono += 20 * second // one that was made since the loss
			require.Equal(t, wire.CodeOK, w.show(w.staffPass(2, 1)))
			require.Equal(t, wire.ReasonMemory, w.show(w.courierPass(3, 2)), "what lies where is not known before the list")
		})
	}
}
