package locker

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// parcel is a pickup code, active in a door by the cloud's list.
func parcel(number uint64, door uint) wire.CodeEntry {
	ref := fmt.Sprintf("LD-%d", number)
	return wire.CodeEntry{Number: number, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(byte(number)), DeliveryRef: ref,
		Doors: []uint{door}, Packages: map[uint][]string{door: {"PK-" + ref}}, Active: wire.ActiveNow}
}

// partsOf divides a whole list of generation 3 as the cloud does.
func partsOf(n int, nonce []byte, entries ...wire.CodeEntry) []wire.Codes {
	var out []wire.Codes
	from, end := uint64(0), entries[len(entries)-1].Number
	for chunk := range slices.Chunk(entries, (len(entries)+n-1)/n) {
		to := chunk[len(chunk)-1].Number
		out = append(out, wire.Codes{From: from, To: to, Entries: chunk, Generation: 3, Nonce: nonce, Part: uint(len(out) + 1), End: end})
		from = to
	}
	return out
}

func parcels(n int) []wire.CodeEntry {
	var out []wire.CodeEntry
	for i := 1; i <= n; i++ {
		out = append(out, parcel(uint64(10+i), uint(i)))
	}
	return out
}

// A whole list of more than one message was applied piece by piece: after a loss
// the first piece alone ended it, and what the others named was forgotten.
func TestAWholeListInPartsRestoresAllOfIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.s.Meta.Lost, w.s.Meta.LostBoot = true, 1
	held := w.s.Doors[3]
	held.Delivery = "LD-13"
	w.s.Doors[3] = held
	w.s.Deliveries["LD-13"] = Delivery{Ref: "LD-13", Doors: map[edge.DoorNumber][]string{3: {"PK-LD-13"}}}
	marks := func(in *CodesCame) { in.Marks = Marks{Generation: 3, Number: 14} }
	list := partsOf(4, nonceA, parcels(4)...)
	for _, c := range list[:3] {
		require.Equal(t, "nothing", w.take(c, marks))
		require.True(t, w.s.Meta.Lost)
		require.Empty(t, w.s.Codes)
		require.Equal(t, Marks{Generation: 3, Number: 14}, w.s.HeldList(Marks{Generation: 3, Number: 14}))
	}
	require.Equal(t, "applied", w.take(list[3], marks))
	require.False(t, w.s.Meta.Lost)
	for n := edge.DoorNumber(1); n <= 4; n++ {
		require.Equal(t, fmt.Sprintf("LD-%d", 10+n), w.s.Doors[n].Delivery)
	}
	require.Equal(t, []uint64{11, 12, 13, 14}, sorted(w.s.Codes))
	require.Equal(t, Meta{CodeList: 14, Generation: 3, ListNonce: nonceA, LostBoot: 1, Budgets: w.s.Meta.Budgets}, w.s.Meta)
	require.Zero(t, w.s.Parts, "nothing of it is held twice")
	for _, c := range list { // once more in the same connection
		require.Equal(t, "nothing", w.take(c, marks))
	}
}

// Every sequence of up to five of three parts: the list is applied whole when its
// parts come in a row, and never in part. What disturbs it asks for another one,
// which is applied.
func TestPartsOfAListAreAppliedTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	list := partsOf(3, nonceC, parcels(3)...)
	again := partsOf(3, nonceB, parcels(3)...)
	old := []uint64{9}
	for length := 1; length <= 5; length++ {
		for n := range pow(3, length) {
			var seq []int
			for range length {
				seq, n = append(seq, n%3), n/3
			}
			w := keyed(t)
			w.s.Meta.Lost = true
			next, applied, asked := 0, false, false
			for _, i := range seq {
				got := w.take(list[i], func(in *CodesCame) { in.Asked = nonceC })
				switch {
				case applied:
					require.Equal(t, "nothing", got, "%v", seq)
				case i != next:
					require.Equal(t, "asked", got, "%v", seq)
					next, asked = 0, true
				case i < 2:
					require.Equal(t, "nothing", got, "%v", seq)
					next++
				default:
					require.Equal(t, "applied", got, "%v", seq)
					applied = true
				}
				want := old
				if applied {
					want = []uint64{11, 12, 13}
				}
				require.Equal(t, want, sorted(w.s.Codes), "%v", seq)
				require.Equal(t, applied, !w.s.Meta.Lost, "%v", seq)
				require.Equal(t, want[len(want)-1], w.s.Meta.CodeList, "%v", seq)
			}
			if applied || !asked {
				continue
			}
			newer := func(in *CodesCame) { in.Asked, in.Earlier = nonceB, [][]byte{nonceC} }
			require.Equal(t, "nothing", w.take(list[next], newer), "what answers the nonce before is late")
			require.Equal(t, []string{"nothing", "nothing", "applied"}, []string{w.take(again[0], newer), w.take(again[1], newer), w.take(again[2], newer)}, "%v", seq)
			require.Empty(t, bodies[wire.Tamper](w))
		}
	}
}

func pow(b, n int) int {
	out := 1
	for range n {
		out *= b
	}
	return out
}

// Parts of two lists never make one: neither of another nonce, nor of another
// generation, nor where the cloud cut or ended the list elsewhere.
func TestPartsOfTwoListsAreNotJoined(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*wire.Codes){
		"generation": func(c *wire.Codes) { c.Generation = 4 },
		"end":        func(c *wire.Codes) { c.End++ },
		"cut":        func(c *wire.Codes) { c.From-- },
		"number":     func(c *wire.Codes) { c.Part = 3 },
		"backwards":  func(c *wire.Codes) { c.To = c.From - 1 },
		"beyond":     func(c *wire.Codes) { c.To = c.End + 1 },
		"too many":   func(c *wire.Codes) { c.Part = wire.MaxListParts + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := keyed(t)
			list := partsOf(2, nonceB, parcels(2)...)
			asked := func(in *CodesCame) { in.Asked = nonceB }
			require.Equal(t, "nothing", w.take(list[0], asked))
			other := list[1]
			change(&other)
			require.Equal(t, "asked", w.take(other, asked))
			require.Equal(t, "asked", w.take(list[1], asked), "what had come is dropped")
			require.Equal(t, []uint64{9}, sorted(w.s.Codes))
		})
	}
}

// Power goes between two parts: what had come is gone, and the rest of it answers
// no nonce of the new connection.
func TestAStartForgetsThePartsOfAList(t *testing.T) {
	t.Parallel()
	w := keyed(t)
	list := partsOf(3, nonceB, parcels(3)...)
	asked := func(in *CodesCame) { in.Asked = nonceB }
	before := len(w.kept)
	require.Equal(t, "nothing", w.take(list[0], asked))
	require.Equal(t, "nothing", w.take(list[1], asked))
	require.Len(t, w.kept, before, "nothing is written before the list is whole")
	w.restart(0, wire.ClockSynced)
	require.Zero(t, w.s.Parts)
	require.Equal(t, "asked", w.take(list[2], asked), "even if the nonce were the same")
	require.Equal(t, []uint64{9}, sorted(w.s.Codes))
	require.Equal(t, "tamper", w.take(list[2], func(in *CodesCame) { in.Asked = []byte("C") }))
}

// 2,000 parcels, sent in nine parts, come back after a loss.
func TestTwoThousandParcelsComeBack(t *testing.T) {
	t.Parallel()
	s := New(testConfig(2000))
	now := Now{Boot: 1, Mono: second, Offset: 1_800_000_000 * second, Clock: wire.ClockSynced}
	s, _ = Step(s, Started{Fresh: true}, now)
	list := partsOf(9, nonceA, parcels(2000)...)
	for i, c := range list {
		var out Out
		in := CodesCame{Codes: c, Asked: nonceA, Keyed: true}
		require.Equal(t, i == 8, s.Applies(in))
		s, out = Step(s, in, now)
		if i < 8 {
			require.Empty(t, out.Put)
		}
	}
	require.Len(t, s.Codes, 2000)
	for n := edge.DoorNumber(1); n <= 2000; n++ {
		require.Equal(t, fmt.Sprintf("LD-%d", 10+n), s.Doors[n].Delivery)
	}
}
