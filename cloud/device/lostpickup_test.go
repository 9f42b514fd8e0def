package device_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/protocol/wire"
)

// A pickup that runs while the cabinet's store is lost and its memory is not goes on in
// the next epoch: the parcel is collected for cabinet and cloud.
func TestAPickupOutlivesTheStore(t *testing.T) {
	for _, reason := range []string{wire.GapStoreRolledBack, wire.GapStoreDamaged} {
		t.Run(reason, func(t *testing.T) {
			signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
				ref, door := stored(t, w, d, "R-1", "PK-1")
				confirm(w, d)
				held := d.List
				d.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_p", Kind: wire.OpenPickup, Doors: []uint{door}, CommandID: wire.LocalCommand, Who: "recipient", DeliveryRef: ref})
				d.Drop()
				old := d.Epoch
				d.NewEpoch(devicetest.EpochOf(100), &old)
				d = w.Connect(d.Code, d.Memory)
				d.Greet(nil)
				d.Tell(wire.KindGap, wire.Gap{Epoch: old, Reason: reason})
				for range 2 { // the second one is a repeat of a later epoch
					d.Tell(wire.KindPickupCompleted, wire.PickupCompleted{DeliveryRef: ref, OpeningID: "op_p", Doors: []uint{door}, How: "keypad", ListNumber: held})
				}
				delete(d.Contents, door)
				drain(d)
				tellContents(d, nil)
				c := cell(w, d, door)
				require.Equal(t, cloud.DeliveryPickedUp, deliveryOf(w, ref).Status)
				require.False(t, deliveryOf(w, ref).PickupCodeActive)
				require.Equal(t, cloud.GridFree, c.State)
				require.Nil(t, c.Dispute)
			})
		})
	}
}
