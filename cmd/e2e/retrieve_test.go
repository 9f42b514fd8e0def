package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// A courier of the partner takes a delivery back: the code of its recipient is dead at the
// cabinet, and the compartment takes another delivery.
func TestACourierTakesADeliveryBack(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		ctx, caller := context.Background(), w.box.ProviderCaller
		code, door := w.deposited(c, "R-1")
		out, err := w.cloud.Lockers.Retrieve(ctx, caller, locker.RetrieveInput{Delivery: "ref:R-1", Reason: "recall"})
		require.NoError(t, err)
		require.False(t, out.Pending)
		require.Equal(t, door, out.Opening.Compartments[0].Door)
		confirm := func() error {
			_, err := w.cloud.Lockers.RetrieveConfirm(ctx, caller, locker.RetrieveConfirmInput{Delivery: "ref:R-1"})
			return err
		}
		w.shown("R-1", "open")
		require.Equal(t, "DELIVERY_STATE_CONFLICT", refusal(confirm()), "the door stands open")
		require.NotEqual(t, wire.CodeOK, c.try(code).Outcome, "not while the courier stands there")
		require.NoError(t, c.sim.CloseDoor(door))
		w.awaits("the retrieval has ended", time.Minute, func() bool { return confirm() == nil })
		require.Equal(t, cloud.DeliveryPickedUp, w.find("R-1").Status)
		w.awaits("the cabinet forgets it", time.Minute, func() bool { return c.doorOf(door).Delivery == "" })
		require.NotEqual(t, wire.CodeOK, c.try(code).Outcome)
		c.drained()
		_, next := w.deposited(c, "R-2")
		require.Equal(t, door, next)
		w.judge(t)
		require.Empty(t, w.faults())
	})
}
