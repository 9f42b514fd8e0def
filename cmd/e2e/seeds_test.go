package e2e

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	simboard "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

var (
	seeds    = flag.Int("seeds", ring.Count(8, ring.FullSeeds), "how many seeds of the simulated world to try")
	seedOnly = flag.Uint64("seed", 0, "try this seed of the simulated world alone")
)

// Nothing is lost, nothing counts twice, nothing settles over an open door:
// boards, agents, link, broker and cloud under one seed and a simulated clock,
// with cuts, broken connections, board faults and crashes of either side.
func TestAnySeed(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n = min(n, 20)
	}
	first, last := ring.Seeds(1, uint64(n))
	if *seedOnly != 0 {
		first, last = *seedOnly, *seedOnly
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { day(t, seed) })
		})
		if t.Failed() {
			t.Fatalf("try it alone: go test ./cmd/e2e -run TestAnySeed -seed %d", seed)
		}
	}
}

// day is one random day of two cabinets.
func day(t *testing.T, seed uint64) {
	w := newWorld(t, seed, 2)
	defer w.close()
	var codes []pickup
	for _, c := range w.cabinets {
		w.awaits("cabinet online and read", 5*time.Minute, func() bool { return w.cloud.Devices.Online(c.code) && c.agent.Loop().State().Doors[1].Known })
	}
	w.noise.Store(int64(w.rnd.IntN(30)))
	for step := range 12 + w.rnd.IntN(12) {
		i := w.rnd.IntN(len(w.cabinets))
		c := w.cabinets[i]
		switch w.rnd.IntN(12) {
		case 0, 1, 2:
			if p, ok := w.deposit(i, fmt.Sprintf("R-%d", step)); ok {
				codes = append(codes, p)
			}
		case 3, 4:
			if len(codes) > 0 {
				w.collect(codes[0])
				codes = codes[1:]
			}
		case 5:
			c.setCut(!c.cut.Load())
		case 6:
			c.drop()
		case 7:
			if w.rnd.IntN(2) == 0 {
				c.drop() // as a power cut: nobody is told
			}
			c.restart(time.Duration(w.rnd.IntN(90)) * time.Second)
		case 8:
			w.stopCloud()
			time.Sleep(time.Duration(w.rnd.IntN(60)) * time.Second)
			w.startCloud()
		case 9:
			faults := simboard.AllFaults()
			f := faults[w.rnd.IntN(len(faults))]
			require.NoError(t, c.sim.Inject("A", f, 1+w.rnd.IntN(4)))
		case 10:
			door := uint(1 + w.rnd.IntN(doors))
			require.NoError(t, c.sim.Jam(door))
			defer func() { _ = c.sim.Free(door) }()
		case 11:
			door := uint(1 + w.rnd.IntN(doors))
			require.NoError(t, c.sim.Force(door))
		}
		time.Sleep(time.Duration(w.rnd.IntN(120)) * time.Second)
		w.closeSome()
	}
	w.settleDown(t)
	w.judge(t)
}

type pickup struct {
	device int
	ref    string
	code   string
}

// deposit tries a whole deposit: the door may jam, the network may be cut.
func (w *world) deposit(i int, ref string) (pickup, bool) {
	c := w.cabinets[i]
	free := false
	cells, err := w.cloud.Store.ListCompartments(context.Background(), w.box.Devices[i].DeviceID)
	require.NoError(w.t, err)
	for _, cell := range cells {
		free = free || cell.State == cloud.GridFree && cell.OpeningID == ""
	}
	if !free {
		return pickup{}, false
	}
	w.create(ref, i, "PK-"+ref)
	out, err := w.open(ref)
	if err != nil || out.PickupCode == nil {
		return pickup{}, false
	}
	time.Sleep(time.Duration(1+w.rnd.IntN(20)) * time.Second)
	if w.rnd.IntN(6) > 0 {
		for _, x := range out.Opening.Compartments {
			_ = c.sim.CloseDoor(x.Door)
		}
	}
	return pickup{i, ref, *out.PickupCode}, true
}

// collect types a pickup code, whatever the network does.
func (w *world) collect(p pickup) {
	c := w.cabinets[p.device]
	a, err := c.agent.Desk().Type(context.Background(), p.code, nil)
	if err != nil || a.Outcome != wire.CodeOK {
		return
	}
	time.Sleep(time.Duration(2+w.rnd.IntN(10)) * time.Second)
	for _, n := range a.Doors {
		_ = c.sim.CloseDoor(uint(n))
	}
}

// closeSome shuts doors that stand open, most of the time.
func (w *world) closeSome() {
	for _, c := range w.cabinets {
		for n := uint(1); n <= doors; n++ {
			if w.rnd.IntN(4) > 0 && c.sim.OpenAt(n, time.Now()) {
				_ = c.sim.CloseDoor(n)
			}
		}
	}
}

// settleDown ends all trouble and waits until everything has arrived.
func (w *world) settleDown(t *testing.T) {
	w.noise.Store(0)
	for _, c := range w.cabinets {
		c.setCut(false)
		for n := uint(1); n <= doors; n++ {
			_ = c.sim.Free(n)
			_ = c.sim.CloseDoor(n)
		}
	}
	time.Sleep(11 * time.Minute) // longest door session
	for _, c := range w.cabinets {
		for n := uint(1); n <= doors; n++ {
			_ = c.sim.CloseDoor(n)
		}
	}
	time.Sleep(time.Minute)
	for _, c := range w.cabinets {
		w.awaits(c.code+": nothing runs", 15*time.Minute, func() bool { return len(c.agent.Loop().State().Openings) == 0 })
		w.awaits(c.code+": everything sent", 15*time.Minute, func() bool { return c.agent.Store().Backlog() == [2]uint64{} })
	}
}

// judge compares what agents recorded, what the cloud holds and what was
// physically true.
func (w *world) judge(t *testing.T) {
	a, err := w.cloud.Audit(context.Background())
	require.NoError(t, err)
	recorded := uint64(0)
	for _, c := range w.cabinets {
		recorded += c.recorded + c.agent.Recorded.Load()
	}
	require.Equal(t, int(recorded), a.Stored+a.Gaps, "recorded = stored + gaps")
	require.Zero(t, a.SettledTwice, "openings that ended twice")
	for id, end := range a.Openings {
		if end.End != wire.KindOpeningSettled {
			continue
		}
		for i, d := range w.box.Devices {
			if d.DeviceID != end.Device {
				continue
			}
			for _, n := range end.Doors {
				require.False(t, w.cabinets[i].sim.OpenAt(n, end.Ended), "%s settled while door %d was open", id, n)
			}
		}
	}
	err = w.cloud.Store.Look(context.Background(), func(v cloud.View) error {
		for _, d := range w.box.Devices {
			running, err := v.RunningOpenings(d.DeviceID)
			if err != nil {
				return err
			}
			require.Empty(t, running, "openings without an end")
			open, err := v.OpenCommands(d.DeviceID)
			if err != nil {
				return err
			}
			require.Empty(t, open, "commands without an outcome")
		}
		return nil
	})
	require.NoError(t, err)
}
