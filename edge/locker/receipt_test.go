package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

func TestReceiptsOfWhatWasBroughtAndTaken(t *testing.T) {
	t.Parallel()
	w := sized(t, "M", "M")
	id := w.typed(5).OpeningID
	receipt := func(id string) (Receipt, bool) { return w.s.Receipt(id, w.now) }
	_, ok := receipt(id)
	require.False(t, ok, "it runs")
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	r, ok := receipt(id)
	require.True(t, ok)
	require.Equal(t, Receipt{Kind: wire.OpenDeposit, Doors: []edge.DoorNumber{1}, Packages: []string{"PK1"}, At: r.At}, r)
	require.WithinDuration(t, time.Unix(0, w.now.Wall(w.now.Mono)), r.At, 3*time.Second)
	w.restart(time.Minute, wire.ClockSynced)
	w.readAll()
	_, ok = receipt(id)
	require.True(t, ok, "over a start")
	picked := w.typed(7).OpeningID
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	r, ok = receipt(picked)
	require.True(t, ok)
	require.Equal(t, []any{wire.OpenPickup, []edge.DoorNumber{1}, []string{"PK1"}}, []any{r.Kind, r.Doors, r.Packages})
	_, ok = receipt(id)
	require.False(t, ok, "nothing of it lies there any more")
	w.wait(6 * time.Minute)
	_, ok = receipt(picked)
	require.False(t, ok, "it was five minutes ago")
	_, ok = receipt("op_x")
	require.False(t, ok)
}

func TestNothingBroughtHasNoReceipt(t *testing.T) {
	t.Parallel()
	w := sized(t, "S", "L")
	first := w.typed(5).OpeningID
	w.swing()
	w.larger(first)
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	_, ok := w.s.Receipt(first, w.now)
	require.False(t, ok, "the compartment was left")
	w = sized(t, "S", "L")
	w.now.Clock = wire.ClockUnset
	id := w.typed(5).OpeningID
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	r, ok := w.s.Receipt(id, w.now)
	require.True(t, ok)
	require.True(t, r.At.IsZero(), "no clock")
}
