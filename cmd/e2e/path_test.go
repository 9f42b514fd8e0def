package e2e

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

func TestADoorClosesAndTheCloudKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		defer w.close()
		c := w.cabinets[0]
		w.awaits("cabinet online", time.Minute, func() bool { return w.cloud.Devices.Online(c.code) })
		w.awaits("boards read", time.Minute, func() bool { return c.agent.Loop().State().Doors[1].Known })
		d := w.create("REF-1", 0, "PK-1")
		require.Equal(t, cloud.DeliveryCreated, d.Status)
		require.Nil(t, d.PickupCode)

		out, err := w.open("REF-1")
		require.NoError(t, err)
		require.False(t, out.Pending)
		require.NotNil(t, out.PickupCode)
		require.Equal(t, cloud.DeliveryDoorsOpened, w.find("REF-1").Status)

		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(out.Opening.Compartments[0].Door))
		w.awaits("delivered", time.Minute, func() bool { return w.find("REF-1").Status == cloud.DeliveryDelivered })
		d = w.find("REF-1")
		require.Equal(t, wire.ByDoorClose, *d.ConfirmedBy)
		require.True(t, d.PickupCodeActive)

		// The recipient collects with the cable cut.
		c.setCut(true)
		answer, err := c.agent.Codes().Type(context.Background(), *d.PickupCode, nil)
		require.NoError(t, err)
		require.Equal(t, wire.CodeOK, answer.Outcome)
		time.Sleep(10 * time.Second)
		require.NoError(t, c.sim.CloseDoor(uint(answer.Doors[0])))
		time.Sleep(time.Minute)
		require.Equal(t, cloud.DeliveryDelivered, w.find("REF-1").Status)
		c.setCut(false)
		w.awaits("picked up", 5*time.Minute, func() bool { return w.find("REF-1").Status == cloud.DeliveryPickedUp })
	})
}
