package locker

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

const (
	second = int64(time.Second)
	milli  = int64(time.Millisecond)
)

// world drives the rules like the loop does, with doors that it moves itself,
// and keeps what is needed to judge them.
type world struct {
	t       testing.TB
	s       State
	now     Now
	kept    map[string][]byte
	records []Record
	pulses  []edge.DoorNumber
	asked   []Pulse                  // since the last takePulses, as they were asked
	read    map[edge.DoorNumber]bool // in this boot
	acts    map[string]Now           // in this boot, when each was
	coils   map[string]int           // per act and door
	open    map[edge.DoorNumber]bool // physically
	rnd     *rand.Rand
	commits int
}

func testConfig(doors int) wire.Config {
	c := wire.Config{Version: 1, DeviceCode: "A-1", Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}}
	for n := 1; n <= doors; n++ {
		c.Layout = append(c.Layout, wire.LayoutDoor{Door: uint(n), Board: "b", Channel: uint(n), Size: "M"})
	}
	return c
}

func newWorld(t testing.TB, doors int) *world {
	w := &world{t: t, s: New(testConfig(doors)), kept: map[string][]byte{}, open: map[edge.DoorNumber]bool{}, rnd: rand.New(rand.NewPCG(1, 2)),
		read: map[edge.DoorNumber]bool{}, acts: map[string]Now{}, coils: map[string]int{}}
	w.now = Now{Boot: 1, Mono: second, Offset: 1_800_000_000 * second, Clock: wire.ClockSynced}
	w.step(Started{})
	for n := 1; n <= doors; n++ {
		w.step(Reading{Door: edge.DoorNumber(n), Mono: w.now.Mono})
	}
	return w
}

func (w *world) step(in Input) Out {
	for i := range w.now.Random {
		w.now.Random[i] = byte(w.rnd.Uint32())
	}
	w.seen(in)
	before := fmt.Sprintf("%v", w.s)
	next, out := Step(w.s, in, w.now)
	require.Equal(w.t, before, fmt.Sprintf("%v", w.s), "a step leaves the old state as it was")
	w.s = next
	w.authorised(in)
	for k, v := range out.Put {
		if v == nil {
			delete(w.kept, k)
		} else {
			w.kept[k] = v
		}
	}
	w.records = append(w.records, out.Records...)
	for _, a := range out.Actions {
		if p, ok := a.(Pulse); ok {
			w.judgePulse(p)
			w.pulses, w.asked = append(w.pulses, p.Door), append(w.asked, p)
		}
	}
	w.commits++
	w.judge(out.Records)
	return out
}

// judge holds every settlement against the doors themselves.
func (w *world) judge(records []Record) {
	for _, r := range records {
		if b, ok := r.Body.(wire.OpeningSettled); ok {
			for _, d := range b.Doors {
				require.False(w.t, w.open[edge.DoorNumber(d.Door)], "settled %s while door %d was open", b.OpeningID, d.Door)
			}
		}
	}
}

// wait lets time pass in steps of 100 ms, or larger ones where that would be over
// a thousand steps, and to every moment that the state waits for.
func (w *world) wait(d time.Duration) {
	step := max(100*milli, int64(d)/1000)
	end := w.now.Mono + int64(d)
	for w.now.Mono < end {
		next := min(end, w.now.Mono+step)
		if n := w.s.Next(w.now); n > w.now.Mono && n < next {
			next = n
		}
		w.now.Mono = next
		w.step(Tick{})
	}
}

func (w *world) takePulses() []edge.DoorNumber {
	p := w.pulses
	w.pulses, w.asked = nil, nil
	return p
}

func (w *world) setDoor(n edge.DoorNumber, open bool) {
	w.open[n] = open
	w.step(Reading{Door: n, Open: open, Mono: w.now.Mono, Item: w.s.Doors[n].Item})
}

// swing answers the waiting pulses and opens those doors.
func (w *world) swing() {
	for _, n := range w.takePulses() {
		w.step(Pulsing{Door: n, Outcome: edge.PulseUnanswered, Mono: w.now.Mono})
		w.now.Mono += 20 * milli
		w.setDoor(n, true)
	}
	w.wait(time.Second)
}

// restart loses everything that was not kept.
func (w *world) restart(off time.Duration, clock wire.Clock) {
	w.s = New(w.s.Config)
	for k, v := range w.kept {
		require.NoError(w.t, w.s.Load(k, v))
	}
	w.s.Settle()
	wall := w.now.Wall(w.now.Mono) + int64(off)
	w.now = Now{Boot: w.now.Boot + 1, Mono: second, Clock: clock}
	if clock > wire.ClockUnset {
		w.now.Offset = wall - second
	}
	w.pulses, w.asked, w.read = nil, nil, map[edge.DoorNumber]bool{}
	w.step(Started{})
}

func (w *world) readAll() {
	for n := 1; n <= len(w.s.Doors); n++ {
		w.step(Reading{Door: edge.DoorNumber(n), Open: w.open[edge.DoorNumber(n)], Mono: w.now.Mono})
	}
}

func (w *world) command(kind wire.CommandKind, versions map[uint]uint64, body any) wire.Command {
	return wire.Command{CommandID: fmt.Sprintf("cmd-%d", w.rnd.Uint64()), DeviceCode: "A-1", IssuedAt: w.now.Wall(w.now.Mono),
		ExpiresAt: w.now.Wall(w.now.Mono) + 20*second, Versions: versions, Kind: kind, Body: wire.MustEncode(body)}
}

func (w *world) openDoors(id string, doors ...uint) {
	w.order(id, wire.OpenDeposit, doors...)
}

func (w *world) order(id string, kind wire.OpeningKind, doors ...uint) {
	packages, versions := map[uint][]string{}, map[uint]uint64{}
	for _, n := range doors {
		packages[n] = []string{fmt.Sprintf("PK%d", n)}
		versions[n] = w.s.Doors[edge.DoorNumber(n)].Version + 1
	}
	w.step(Ordered{Command: w.command(wire.CmdOpenDoors, versions, wire.OpenDoors{OpeningID: id, Kind: kind, Doors: doors, SessionSeconds: 600,
		DeliveryRef: "LD-1", Packages: packages})})
}

func bodies[T any](w *world) []T {
	var out []T
	for _, r := range w.records {
		if b, ok := r.Body.(T); ok {
			out = append(out, b)
		}
	}
	return out
}
