package locker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

func pulsesOf(out Out) (list []Pulse) {
	for _, a := range out.Actions {
		if p, ok := a.(Pulse); ok {
			list = append(list, p)
		}
	}
	return list
}

func TestEachPulseNamesTheActThatAllowsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	c := w.command(wire.CmdOpenDoors, nil, wire.OpenDoors{OpeningID: "op_1", Kind: wire.OpenDeposit, Doors: []uint{1}, SessionSeconds: 600, DeliveryRef: "LD-1",
		Packages: map[uint][]string{1: {"PK1"}}, Code: &wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(7), DeliveryRef: "LD-1"}})
	got := pulsesOf(w.step(Ordered{Command: c}))
	require.Equal(t, []Pulse{{Door: 1, By: edge.Authority{Boot: 1, OpeningID: "op_1", Act: c.CommandID, Kind: edge.ByCommand, Mono: w.now.Mono, Until: w.now.Mono + 60*second}}}, got)
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * 1e9)
	out := w.step(CodeTried{Verifier: verifier(7), Input: "keypad"})
	got = pulsesOf(out)
	require.Len(t, got, 1)
	require.NotEmpty(t, got[0].By.Act)
	require.Equal(t, edge.Authority{Boot: 1, OpeningID: out.Answer.OpeningID, Act: got[0].By.Act, Kind: edge.ByCode, CodeNumber: 1, Mono: w.now.Mono, Until: w.now.Mono + 60*second}, got[0].By)
}
