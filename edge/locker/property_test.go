package locker

import (
	"flag"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// The quick ring walks beside the model fewer times; -rapid.checks says otherwise.
var _ = flag.Set("rapid.checks", strconv.Itoa(ring.Count(30, 100)))

// Whatever doors, boards, people, commands and restarts do, in any order: an
// opening ends exactly once, nothing settles over an open door (world.judge),
// every pulse belongs to an act of this boot (world.judgePulse), and what was kept
// is enough to go on after any step.
func TestAnyOrderOfThings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		const doors = 3
		w := newWorld(t, doors)
		for i, size := range []string{"S", "M", "L"} {
			w.s.Config.Layout[i].Size = size
		}
		named := []uint{1, 2, 3}
		if rapid.Bool().Draw(rt, "of one door") {
			named = []uint{1}
		}
		purpose := rapid.SampledFrom([]string{"", wire.PurposeSend, wire.PurposeReturn}).Draw(rt, "purpose")
		w.list(
			wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(7), DeliveryRef: "LD-1", Active: wire.ActiveAtSettle, NotAfter: w.now.Wall(w.now.Mono) + 300*second},
			wire.CodeEntry{Number: 2, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-2", Doors: named, Purpose: purpose},
			wire.CodeEntry{Number: 3, Op: wire.CodeSet, Kind: wire.CodeStaff, Verifier: verifier(8)},
			wire.CodeEntry{Number: 4, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(9), DeliveryRef: "LD-2", Active: wire.ActiveAtSettle},
			wire.CodeEntry{Number: 5, Op: wire.CodeSet, Kind: wire.CodeOutgoing, DeliveryRef: "LD-2", Active: wire.ActiveAtSettle, Purpose: purpose},
		)
		started := 0
		var passes []wire.Pass
		opened := map[string]bool{} // by ids of passes
		show := func(rt *rapid.T, p wire.Pass) {
			begun := len(bodies[wire.OpeningStarted](w))
			if w.show(p) == wire.CodeOK {
				require.False(rt, opened[string(p.ID)], "a pass opens once")
				opened[string(p.ID)] = true
				require.Equal(rt, p.ID, bodies[wire.OpeningStarted](w)[begun].PassID)
			}
		}
		door := rapid.IntRange(1, doors)
		lost := map[edge.DoorNumber]bool{}
		read := func(n edge.DoorNumber) {
			delete(lost, n)
			w.setDoor(n, w.open[n])
		}
		rt.Repeat(map[string]func(*rapid.T){
			"open by command": func(rt *rapid.T) {
				started++
				set := []uint{uint(door.Draw(rt, "door"))}
				if second := uint(door.Draw(rt, "second")); second != set[0] {
					set = append(set, second)
				}
				kind := rapid.SampledFrom([]wire.OpeningKind{wire.OpenDeposit, wire.OpenStaff, wire.OpenCorrection, wire.OpenPickup, wire.OpenReassign}).Draw(rt, "kind")
				w.order("op_"+string(rune('A'+started)), kind, set...)
			},
			"a channel is tested": func(rt *rapid.T) {
				started++
				w.step(w.testOrder("op_"+string(rune('A'+started)), uint(door.Draw(rt, "door")), rapid.Bool().Draw(rt, "occupied")))
			},
			"a diagnosis is sent": func(rt *rapid.T) {
				if x := w.s.Meta.Diagnosis; x != nil {
					w.step(Diagnosed{CommandID: x.CommandID, Outcome: rapid.SampledFrom([]string{wire.OutcomeDone, wire.OutcomeFailed}).Draw(rt, "outcome")})
				}
			},
			"type the code": func(*rapid.T) { w.step(CodeTried{Verifier: verifier(7), Input: "keypad"}) },
			"type a recipient's code of what was brought": func(rt *rapid.T) {
				a := w.step(CodeTried{Verifier: verifier(9), Input: "keypad"}).Answer
				if purpose != "" {
					require.NotEqual(rt, wire.CodeOK, a.Outcome, "a courier collects it")
				}
			},
			"board answers": func(rt *rapid.T) {
				for _, p := range w.takeAsked() {
					n := p.Door
					outcome := rapid.SampledFrom([]edge.PulseOutcome{edge.PulseConfirmed, edge.PulseUnanswered, edge.PulseNotSent, edge.PulseRefused, edge.PulseDenied}).Draw(rt, "outcome")
					w.step(Pulsing{Door: n, By: p.By, Outcome: outcome, Mono: w.now.Mono})
					if outcome == edge.PulseConfirmed && rapid.Bool().Draw(rt, "swings") && !lost[n] {
						w.setDoor(n, true)
					}
				}
			},
			"door moves": func(rt *rapid.T) {
				n := edge.DoorNumber(door.Draw(rt, "door"))
				w.open[n] = rapid.Bool().Draw(rt, "open")
				if !lost[n] {
					read(n)
				}
			},
			"board falls silent": func(rt *rapid.T) {
				n := edge.DoorNumber(door.Draw(rt, "door"))
				lost[n] = true
				w.step(Lost{Doors: []edge.DoorNumber{n}, Mono: w.now.Mono})
			},
			"board is back": func(rt *rapid.T) { read(edge.DoorNumber(door.Draw(rt, "door"))) },
			"close session": func(rt *rapid.T) {
				if ids := sorted(w.s.Openings); len(ids) > 0 {
					id := ids[0]
					how := rapid.SampledFrom([]string{wire.CloseCancel, wire.CloseSettle}).Draw(rt, "how")
					var named map[uint][]string
					if first := uint(w.s.Openings[id].Doors[0].Door); how == wire.CloseSettle && rapid.Bool().Draw(rt, "in part") {
						named = map[uint][]string{first: {"PK" + string(rune('0'+first))}}
					}
					w.step(Ordered{Command: w.command(wire.CmdCloseSession, nil, wire.CloseSession{OpeningID: id, How: how, ConfirmedBy: wire.ByPartnerAPI, Packages: named})})
				}
			},
			"time passes":            func(rt *rapid.T) { w.wait(time.Duration(rapid.IntRange(1, 4000).Draw(rt, "ms")) * time.Millisecond) },
			"clock jumps":            func(rt *rapid.T) { w.now.Offset += int64(rapid.IntRange(-90, 90).Draw(rt, "minutes")) * 60 * second },
			"courier types the code": func(*rapid.T) { w.step(CodeTried{Verifier: verifier(5), Input: "keypad"}) },
			"staff code": func(rt *rapid.T) {
				w.step(CodeTried{Verifier: verifier(8), Input: "keypad", Doors: []edge.DoorNumber{edge.DoorNumber(door.Draw(rt, "door"))}})
			},
			"staff collect": func(rt *rapid.T) {
				w.step(CodeTried{Verifier: verifier(8), Input: "keypad", Queue: true, Doors: []edge.DoorNumber{edge.DoorNumber(door.Draw(rt, "door")), edge.DoorNumber(door.Draw(rt, "second"))}})
			},
			"staff go on": func(*rapid.T) { w.step(OpenNext{Session: w.s.Staff.ID}) },
			"staff state what became of a parcel": func(rt *rapid.T) {
				n := edge.DoorNumber(door.Draw(rt, "door"))
				if rapid.Bool().Draw(rt, "just opened") && w.s.Doors[n].Opening == "" {
					if w.s.Doors[n].Delivery == "" {
						w.occupy(n, "LD-7")
					}
					w.step(CodeTried{Verifier: verifier(8), Input: "keypad", Doors: []edge.DoorNumber{n}})
					for _, p := range w.takeAsked() {
						w.step(Pulsing{Door: p.Door, By: p.By, Outcome: edge.PulseConfirmed, Mono: w.now.Mono})
						w.open[p.Door] = true
						if !lost[p.Door] {
							read(p.Door)
						}
					}
					w.wait(time.Second)
					if w.open[n] = rapid.Bool().Draw(rt, "still open"); !lost[n] {
						read(n)
					}
				}
				in := Remove{Session: w.s.Staff.ID, OpeningID: w.s.Staff.Seen[n].OpeningID, Door: n, Outcome: wire.RemovalTaken, Reason: "relay"}
				if rapid.Bool().Draw(rt, "courier") {
					in.Outcome, in.Reason = rapid.SampledFrom([]string{wire.RemovalTaken, wire.RemovalNotFound, wire.RemovalRefused}).Draw(rt, "what"), wire.RemovalCollected
				}
				before, lay := len(bodies[wire.Removal](w)), w.s.Doors[n]
				a := w.step(in).Answer
				if len(bodies[wire.Removal](w)) == before {
					require.Equal(rt, lay.Delivery, w.s.Doors[n].Delivery, "nothing was stated: %s", a.Outcome)
					return
				}
				require.Equal(rt, wire.CodeOK, a.Outcome)
				require.False(rt, lay.Open || !lay.Known || lay.Item == wire.ItemPresent && in.Outcome != wire.RemovalRefused)
				require.NotEmpty(rt, lay.Delivery)
				require.Equal(rt, in.Outcome == wire.RemovalRefused, w.s.Doors[n].Delivery != "")
			},
			"a pass is shown": func(rt *rapid.T) {
				p := w.courierPass(byte(len(passes)+1), uint(door.Draw(rt, "door")))
				if rapid.Bool().Draw(rt, "staff") {
					p = w.staffPass(byte(len(passes)+1), p.Doors...)
				} else if rapid.Bool().Draw(rt, "unheard of") {
					p.DeliveryRef = "LD-" + string(rune('a'+len(passes)%26))
				}
				p.NotBefore -= int64(rapid.IntRange(-30, 30).Draw(rt, "earlier")) * second
				p.NotAfter = min(p.NotAfter, p.NotBefore+4*hour)
				passes = append(passes, p)
				show(rt, p)
			},
			"a pass is shown again": func(rt *rapid.T) {
				if len(passes) > 0 {
					show(rt, passes[rapid.IntRange(0, len(passes)-1).Draw(rt, "pass")])
				}
			},
			"does not fit": func(rt *rapid.T) {
				if rapid.Bool().Draw(rt, "just now") {
					w.typed(5)
					for _, p := range w.takeAsked() {
						w.step(Pulsing{Door: p.Door, By: p.By, Outcome: edge.PulseConfirmed, Mono: w.now.Mono})
						if !lost[p.Door] {
							w.setDoor(p.Door, true)
						}
					}
					w.wait(time.Second)
				}
				for _, id := range sorted(w.s.Openings) {
					at := rapid.SampledFrom(w.s.Openings[id].numbers()).Draw(rt, "door")
					reason := rapid.SampledFrom([]string{TooSmall, TooSmall, wire.BlockOccupied, wire.BlockDirty, wire.BlockBroken}).Draw(rt, "reason")
					n, may, was, blocks := w.s.Another(id, at, reason, w.now), w.s.CanLeave(id, at, w.now), w.s.Doors[at].Blocked, len(bodies[wire.CompartmentBlocked](w))
					over := may && reason != TooSmall && !w.s.mayBlock(w.s.Openings[id].DeliveryRef)
					if over {
						n, may = 0, false
					}
					a := w.step(TakeAnother{OpeningID: id, Door: at, Reason: reason}).Answer
					require.Equal(rt, over, a.Outcome == TooManyBlocked)
					require.Equal(rt, n != 0, a.Outcome == wire.CodeOK)
					require.Equal(rt, n == 0 && may && reason != TooSmall, a.Outcome == NoOther)
					if n != 0 {
						require.Equal(rt, []edge.DoorNumber{n}, a.Doors)
					}
					if n != 0 || may && reason != TooSmall {
						require.True(rt, w.s.Openings[id].Cancelled)
						require.Equal(rt, []edge.DoorNumber{at}, w.s.Openings[id].numbers())
					}
					if may && reason != TooSmall && was == "" {
						blocks++
						require.Equal(rt, reason, w.s.Doors[at].Blocked)
					}
					require.Len(rt, bodies[wire.CompartmentBlocked](w), blocks)
				}
			},
			"back into use": func(rt *rapid.T) {
				n := uint(door.Draw(rt, "door"))
				w.step(Ordered{Command: w.command(wire.CmdUnblock, map[uint]uint64{n: w.s.Doors[edge.DoorNumber(n)].Version + 1}, wire.DoorReason{Door: n})})
			},
			"done": func(*rapid.T) {
				for _, id := range sorted(w.s.Openings) {
					w.step(PressedDone{OpeningID: id})
				}
			},
			"long wait": func(rt *rapid.T) {
				w.now.Mono += int64(rapid.IntRange(5, 100).Draw(rt, "s")) * second
				w.step(Tick{})
			},
			"session over": func(*rapid.T) {
				w.now.Mono += 601 * second
				w.step(Tick{})
			},
			"restart": func(rt *rapid.T) {
				clock := rapid.SampledFrom([]wire.Clock{wire.ClockUnset, wire.ClockCarried}).Draw(rt, "clock")
				w.restart(time.Duration(rapid.IntRange(1, 1000).Draw(rt, "off"))*time.Second, clock)
				for n := range w.open {
					lost[n] = true
				}
				w.now.Clock, w.now.Offset = wire.ClockSynced, 1_800_000_000*second
			},
			"": func(rt *rapid.T) {
				w.endsOnce()
				if dl, ok := w.s.Deliveries["LD-2"]; ok {
					require.Equal(rt, purpose, dl.Purpose, "the cabinet knows what is outgoing")
				}
			},
		})
		// In the end every door closes and everything ends.
		for n := edge.DoorNumber(1); n <= doors; n++ {
			w.open[n] = false
			read(n)
		}
		for range 8 {
			w.answer(edge.PulseConfirmed)
			w.wait(2 * time.Second)
		}
		w.now.Mono += 601 * second
		w.step(Tick{})
		w.wait(3 * time.Second)
		if len(w.s.Openings) > 0 {
			rt.Fatalf("everything ends, but: %+v, doors %+v", w.s.Openings, w.s.Doors)
		}
		w.endsOnce()
	})
}

func (w *world) endsOnce() {
	outcomes := map[string]int{}
	for _, o := range bodies[wire.CommandOutcome](w) {
		outcomes[o.CommandID]++
		require.LessOrEqual(w.t, outcomes[o.CommandID], 1, "outcomes of %s", o.CommandID)
	}
	if x := w.s.Meta.Diagnosis; x != nil {
		require.Zero(w.t, outcomes[x.CommandID], "an outcome of a diagnosis that is still wanted")
		if x.Test != nil {
			o, running := w.s.Openings[x.Test.OpeningID]
			require.Equal(w.t, !running || o.LeftOpen, x.Test.Over, "a test is over with its opening or session")
		}
	}
	ends := map[string]int{}
	for _, r := range w.records {
		switch b := r.Body.(type) {
		case wire.OpeningStarted:
			ends[b.OpeningID] += 0
		case wire.OpeningSettled:
			ends[b.OpeningID]++
		case wire.OpeningEnded:
			ends[b.OpeningID]++
		case wire.PickupCompleted:
			ends[b.OpeningID]++
		}
	}
	for id, n := range ends {
		_, running := w.s.Openings[id]
		want := 1
		if running {
			want = 0
		}
		require.Equal(w.t, want, n, "ends of %s", id)
	}
}
