package locker

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// A layout that moves door 1, or drops it, is refused as long as a person could
// find another compartment behind its number.
func TestLayoutThatMovesADoorInUseIsRefused(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(w *world){
		"occupied":          func(w *world) { w.deposit() },
		"open":              func(w *world) { w.setDoor(1, true); w.wait(time.Second) },
		"open for a moment": func(w *world) { w.setDoor(1, true) },
		"an opening runs":   func(w *world) { w.openDoors("op_1", 1) },
		"open when its board fell silent": func(w *world) {
			w.setDoor(1, true)
			w.wait(time.Second)
			w.step(Lost{Doors: []edge.DoorNumber{1}, Mono: w.now.Mono})
		},
		"open before a start": func(w *world) {
			w.setDoor(1, true)
			w.wait(time.Second)
			w.restart(time.Second, wire.ClockCarried)
		},
		"an item is seen inside": func(w *world) { w.step(Reading{Door: 1, Item: wire.ItemPresent, Mono: w.now.Mono}) },
	} {
		for how, change := range map[string]func(c *wire.Config){
			"other channel":  func(c *wire.Config) { c.Layout[0].Channel = 9 },
			"other board":    func(c *wire.Config) { c.Layout[0].Board = "c" },
			"other polarity": func(c *wire.Config) { c.Layout[0].Inverted = true },
			"other label":    func(c *wire.Config) { c.Layout[0].Label = "B-7" },
			"dropped":        func(c *wire.Config) { c.Layout = c.Layout[1:] },
		} {
			if how == "other polarity" && strings.HasPrefix(name, "open") {
				continue // its reading may be what is wrong
			}
			w := newWorld(t, 2)
			prepare(w)
			c := testConfig(2)
			c.Version = 2
			change(&c)
			w.step(ConfigCame{Config: c})
			require.Contains(t, bodies[wire.ConfigApplied](w)[0].Result, "door 1", "%s, %s", name, how)
			require.Equal(t, uint64(1), w.s.Config.Version)
		}
	}
}

// What was read of a lock says nothing of the one that has its number now.
func TestAMovedDoorIsUnknownUntilItIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	c := testConfig(2)
	c.Version = 2
	c.Layout[0].Channel = 9
	w.step(ConfigCame{Config: c})
	require.Equal(t, "ok", bodies[wire.ConfigApplied](w)[0].Result)
	require.False(t, w.s.Doors[1].Known)
	require.True(t, w.s.Doors[2].Known)
	w.openDoors("op_1", 1)
	require.Empty(t, w.takePulses())
	w.step(Reading{Door: 1, Mono: w.now.Mono})
	w.openDoors("op_2", 1)
	require.Len(t, w.takePulses(), 1)
}

// A configuration that is not above the one that is held changes nothing and writes
// nothing: a holder of old ones cannot bring them back.
func TestAnOlderConfigurationChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	c := testConfig(2)
	c.Version = 7
	w.step(ConfigCame{Config: c})
	require.Equal(t, wire.ResultOK, bodies[wire.ConfigApplied](w)[0].Result)
	for _, version := range []uint64{7, 6, 1} {
		old := testConfig(1)
		old.Version = version
		out := w.step(ConfigCame{Config: old})
		require.Empty(t, out.Records)
		require.Empty(t, out.Put)
		require.Equal(t, c, w.s.Config)
	}
}

// A switch that is wired the other way round reads open while its door is shut: what the layout
// says of that is put right all the same, but for a door behind which something is or runs.
func TestPolarityIsPutRightThoughTheDoorReadsOpen(t *testing.T) {
	t.Parallel()
	next := func(w *world, change func(*wire.LayoutDoor)) string {
		c := w.s.Config
		c.Layout = append([]wire.LayoutDoor(nil), c.Layout...)
		change(&c.Layout[0])
		c.Version++
		w.step(ConfigCame{Config: c})
		applied := bodies[wire.ConfigApplied](w)
		return applied[len(applied)-1].Result
	}
	invert := func(l *wire.LayoutDoor) { l.Inverted = !l.Inverted }
	w := newWorld(t, 2)
	w.setDoor(1, true)
	w.wait(2 * time.Second)
	require.True(t, w.s.Doors[1].Counted)
	require.NotEqual(t, wire.ResultOK, next(w, func(l *wire.LayoutDoor) { l.Channel = 9 }), "another lock")
	require.Equal(t, wire.ResultOK, next(w, invert))
	require.False(t, w.s.Doors[1].Known, "it is read anew")
	w.setDoor(1, false)
	w.wait(2 * time.Second)
	require.False(t, w.s.Doors[1].Counted)
	w.openDoors("op_1", 1)
	require.NotEqual(t, wire.ResultOK, next(w, invert), "an opening runs")
}

// A warehouse post takes a configuration without doors and refuses one with doors; a cabinet
// does the opposite. What is refused leaves the former one in use.
func TestDoorsAreOfCabinetsAlone(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		post  bool
		doors int
		want  string
	}{{false, 2, wire.ResultOK}, {false, 0, "no doors"}, {true, 0, wire.ResultOK}, {true, 2, "a warehouse post has no doors"}} {
		w := newWorld(t, 2)
		c := testConfig(2)
		c.Version = 2
		c.Layout = c.Layout[:x.doors]
		w.step(ConfigCame{Config: c, Post: x.post})
		require.Contains(t, bodies[wire.ConfigApplied](w)[0].Result, x.want, "%+v", x)
		taken := uint64(1)
		if x.want == wire.ResultOK {
			taken = 2
		}
		require.Equal(t, taken, w.s.Config.Version, "%+v", x)
	}
}
