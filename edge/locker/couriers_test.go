package locker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// A second courier's code opens that courier's own compartment while the first
// one's is still open.
func TestTwoCouriersAtOnceHaveTheirOwnOpenings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-1", Doors: []uint{1}, Packages: map[uint][]string{1: {"PK1"}}},
		wire.CodeEntry{Number: 2, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(6), DeliveryRef: "LD-2", Doors: []uint{2}, Packages: map[uint][]string{2: {"PK2"}}})
	for i, code := range []byte{5, 6} {
		require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(code), Input: "keypad"}).Answer.Outcome)
		require.Equal(t, []edge.DoorNumber{edge.DoorNumber(i + 1)}, w.pulses)
		w.swing()
	}
	require.Len(t, w.s.Openings, 2)
}
