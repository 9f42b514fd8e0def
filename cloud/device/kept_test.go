package device_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/protocol/wire"
)

// A compartment in which a parcel may lie was given to the next delivery, or taken
// from its own, by an end of an opening that said nothing of it.
func TestACompartmentThatMayHoldAParcelIsKept(t *testing.T) {
	t.Run("a later opening fails", func(t *testing.T) {
		signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
			ref := create(w, "R-1", d.Code, "PK-1").DeliveryNumber
			o := startOpening(w, d, "R-1")
			d.Tell(wire.KindOpeningEnded, wire.OpeningEnded{OpeningID: o.OpeningID, Reason: wire.EndDepositUnverified})
			again := startOpening(w, d, "R-1")
			require.Equal(t, o.Doors, again.Doors)
			d.Tell(wire.KindOpeningEnded, wire.OpeningEnded{OpeningID: again.OpeningID, Reason: wire.EndOpenFailed})
			c := cell(w, d, o.Doors[0])
			require.Equal(t, []any{cloud.GridOccupied, deliveryOf(w, ref).ID}, []any{c.State, c.DeliveryID})
			require.NotEqual(t, cloud.DeliveryFailed, deliveryOf(w, ref).Status)
		})
	})
	t.Run("cancelled with something inside", func(t *testing.T) {
		signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
			ref := create(w, "R-1", d.Code, "PK-1").DeliveryNumber
			o := startOpening(w, d, "R-1")
			d.Tell(wire.KindExceptionOpened, wire.Exception{ID: "ex_1", Type: wire.ExDepositUnverified, Severity: wire.SeverityMedium, Door: o.Doors[0], Evidence: "cancelled with something inside"})
			d.Tell(wire.KindOpeningEnded, wire.OpeningEnded{OpeningID: o.OpeningID, Reason: wire.EndCancelled})
			c := cell(w, d, o.Doors[0])
			require.Equal(t, []any{cloud.GridOccupied, deliveryOf(w, ref).ID}, []any{c.State, c.DeliveryID})
		})
	})
	t.Run("cancelled with nothing inside", func(t *testing.T) {
		signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
			create(w, "R-1", d.Code, "PK-1")
			o := startOpening(w, d, "R-1")
			d.Tell(wire.KindOpeningEnded, wire.OpeningEnded{OpeningID: o.OpeningID, Reason: wire.EndCancelled})
			require.Equal(t, cloud.GridFree, cell(w, d, o.Doors[0]).State)
		})
	})
}
