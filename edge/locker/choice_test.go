package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// unplaced is a cabinet with a delivery LD-1 of one package PK1 whose compartment of size M is
// chosen when it is brought, by code 5, and a delivery LD-2 of a package PK2 for door 1, by code 6.
func unplaced(t testing.TB, letters ...string) *world {
	w := newWorld(t, len(letters))
	for i, size := range letters {
		w.s.Config.Layout[i].Size = size
	}
	w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-1", Sizes: []string{"M"}, Packages: map[uint][]string{0: {"PK1"}},
		NotAfter: w.now.Wall(w.now.Mono) + 3600*second},
		wire.CodeEntry{Number: 2, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(6), DeliveryRef: "LD-2", Doors: []uint{1}, Packages: map[uint][]string{1: {"PK2"}}})
	return w
}

func (w *world) choosing(v byte, label string) Answer {
	return w.step(CodeTried{Verifier: verifier(v), Input: "keypad", Choose: true, Label: label}).Answer
}

func (w *world) pick(choice, size string) Answer {
	return w.step(PickSize{Choice: choice, Size: size}).Answer
}

func TestACourierChoosesTheSize(t *testing.T) {
	t.Parallel()
	for size, door := range map[string]edge.DoorNumber{"S": 2, "M": 3, "L": 4} {
		w := unplaced(t, "S", "S", "M", "L", "M", wire.SizeStaff)
		a := w.choosing(5, "")
		require.Equal(t, []any{ChooseSize, "M", []FreeSize{{"S", 1}, {"M", 2}, {"L", 1}}}, []any{a.Outcome, a.Size, a.Free}, "door 1 is kept for another delivery, and staff's door is no choice")
		require.Empty(t, a.OpeningID)
		require.Empty(t, w.s.Openings)
		require.Empty(t, w.takePulses(), "no door opens before the choice")
		require.Equal(t, wire.CodeOK, bodies[wire.CodeAttempt](w)[0].Outcome)
		require.Equal(t, wire.ReasonNoOpening, w.pick("ch_x", size).Outcome)
		require.Equal(t, wire.ReasonOccupied, w.pick(a.Choice, "XL").Outcome, "none is free, and another may be chosen")
		require.Equal(t, wire.ReasonOccupied, w.pick(a.Choice, wire.SizeStaff).Outcome)
		b := w.pick(a.Choice, size)
		require.Equal(t, []any{wire.CodeOK, []edge.DoorNumber{door}}, []any{b.Outcome, b.Doors}, size)
		require.Equal(t, wire.ReasonNoOpening, w.pick(a.Choice, "M").Outcome, "once")
		w.swing()
		w.setDoor(door, false)
		w.wait(3 * time.Second)
		settled := bodies[wire.OpeningSettled](w)
		require.Len(t, settled, 1)
		require.Equal(t, []wire.SettledPackage{{Ref: "PK1", Door: uint(door), Outcome: wire.Deposited}}, settled[0].Packages)
	}
}

func TestAChoiceIsNotAskedWhereThereIsNone(t *testing.T) {
	t.Parallel()
	w := unplaced(t, "M", "M")
	require.Equal(t, []edge.DoorNumber{2}, w.choosing(5, "").Doors, "only the proposed size is free")
	w = unplaced(t, "S", "M", "L")
	require.Equal(t, []edge.DoorNumber{1}, w.choosing(6, "").Doors, "the delivery has its compartment")
	require.Equal(t, []edge.DoorNumber{2}, w.typed(5).Doors, "the terminal has no choice")
	require.Equal(t, []edge.DoorNumber{2}, w.choosing(5, "").Doors, "it runs already")
	w = unplaced(t, "S")
	require.Equal(t, wire.ReasonOccupied, w.choosing(5, "").Outcome)
	w = unplaced(t, "S", "S")
	require.Equal(t, []FreeSize{{"S", 1}}, w.choosing(5, "").Free, "one that is smaller, where no other is free")
	w = unplaced(t, "S", "M", "L")
	w.s.Meta.Lost = true
	require.Equal(t, wire.ReasonOccupied, w.choosing(5, "").Outcome, "what lies where is not known")
}

func TestAChoiceEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]func(w *world){
		"in time":     func(w *world) { w.wait(2 * time.Minute) },
		"by a start":  func(w *world) { w.restart(time.Second, wire.ClockSynced); w.readAll() },
		"by a choice": func(w *world) { w.choosing(5, "") },
		"by the list": func(w *world) {
			w.list(wire.CodeEntry{Number: 3, Op: wire.CodeRevoke, Kind: wire.CodeDelivery, DeliveryRef: "LD-1"})
		},
	} {
		w := unplaced(t, "S", "M", "L")
		a := w.choosing(5, "")
		c(w)
		require.Equal(t, wire.ReasonNoOpening, w.pick(a.Choice, "L").Outcome, name)
		require.Empty(t, w.s.Openings, name)
		require.Empty(t, w.takePulses(), name)
	}
	w := unplaced(t, "S", "M", "L")
	e := w.s.Codes[1]
	e.NotAfter = w.now.Wall(w.now.Mono) + 30*second
	w.s.Codes[1] = e
	a := w.choosing(5, "")
	w.wait(time.Minute)
	require.Equal(t, wire.CodeExpired, w.pick(a.Choice, "L").Outcome)
}

// A label opens no door: it has to be that of the delivery whose code is typed or shown.
func TestALabelIsHeldAgainstTheCode(t *testing.T) {
	t.Parallel()
	w := unplaced(t, "S", "M", "L")
	require.Equal(t, "LD-1", w.s.Labelled(" pk1 "))
	require.Equal(t, "LD-2", w.s.Labelled("PK2"))
	require.Empty(t, w.s.Labelled("PK3")+w.s.Labelled("")+w.s.Labelled(" "))
	require.Equal(t, OtherLabel, w.choosing(5, "PK2").Outcome)
	require.Equal(t, OtherLabel, w.choosing(6, "PK3").Outcome)
	require.Empty(t, w.s.Openings)
	require.Zero(t, w.s.Meta.Budgets.Typed.Wrong, "no wrong code")
	require.Equal(t, wire.CodeUnknown, w.choosing(9, "PK2").Outcome, "a label does not say whether a code is right")
	p := w.courierPass(1, 2)
	p.DeliveryRef = "LD-1"
	require.Equal(t, OtherLabel, w.step(PassShown{Pass: p, Device: "A-1", Label: "PK2"}).Answer.Outcome)
	require.Equal(t, wire.CodeOK, w.step(PassShown{Pass: p, Device: "A-1", Label: "PK1"}).Answer.Outcome, "the refusal used nothing up")
	require.Equal(t, []edge.DoorNumber{1}, w.choosing(6, "pk2").Doors)
}

// Whatever is typed, chosen, collected and restarted: a choice opens one free compartment of its
// size, for its own delivery.
func TestAnyOrderOfChoices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := unplaced(t, "S", "M", "M", "L")
		known := []string{"ch_x"}
		rt.Repeat(map[string]func(*rapid.T){
			"type": func(rt *rapid.T) {
				if a := w.choosing(5, ""); a.Outcome == ChooseSize {
					require.NotContains(rt, known, a.Choice)
					known = append(known, a.Choice)
				}
			},
			"type another": func(*rapid.T) { w.choosing(6, "") },
			"pick": func(rt *rapid.T) {
				size := rapid.SampledFrom([]string{"S", "M", "L", "XL", "staff"}).Draw(rt, "size")
				free, began := map[edge.DoorNumber]bool{}, len(bodies[wire.OpeningStarted](w))
				for n, d := range w.s.Doors {
					free[n] = d.Opening == "" && d.Delivery == "" && d.Blocked == ""
				}
				choice := rapid.SampledFrom(known).Draw(rt, "choice")
				c, has := w.s.choices[choice]
				a := w.pick(choice, size)
				if a.Outcome != wire.CodeOK {
					require.Len(rt, bodies[wire.OpeningStarted](w), began)
					return
				}
				require.True(rt, has && w.now.Mono < c.Until)
				require.Len(rt, a.Doors, 1)
				if len(bodies[wire.OpeningStarted](w)) > began { // else the code opened the running one again
					require.Equal(rt, size, w.s.SizeOf(a.Doors[0]))
					require.True(rt, free[a.Doors[0]])
				}
				require.Equal(rt, "LD-1", w.s.Openings[a.OpeningID].DeliveryRef)
			},
			"swing": func(*rapid.T) { w.swing() },
			"close": func(*rapid.T) {
				for n := range w.open {
					w.setDoor(n, false)
				}
				w.wait(3 * time.Second)
			},
			"wait":    func(rt *rapid.T) { w.wait(time.Duration(rapid.IntRange(1, 90).Draw(rt, "s")) * time.Second) },
			"restart": func(*rapid.T) { w.restart(time.Second, wire.ClockSynced); w.readAll(); known = known[:1] },
			"":        func(*rapid.T) { w.endsOnce() },
		})
	})
}
