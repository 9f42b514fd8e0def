package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// parcelLinks finds the deliveries whose packages a link is for.
func parcelLinks(t *testing.T, db *store.DB) {
	var ch cloud.Changes
	add := func(id cloud.DeliveryID, p cloud.ProviderID, live bool, packages ...cloud.Package) {
		for i := range packages {
			packages[i].Position, packages[i].Status = i, cloud.PackageInCompartment
		}
		ch.Deliveries = append(ch.Deliveries, cloud.Delivery{ID: id, Number: "LD-" + string(rune('A'+id-9600)), BusinessID: 1, ProviderID: p, DeviceID: 1, Reference: "L-" + string(rune('A'+id-9600)),
			Status: cloud.DeliveryDelivered, Livemode: live, CreatedAt: now, Packages: packages})
	}
	add(9601, 3, true, cloud.Package{TrackingNumber: "Again"})
	add(9602, 3, true, cloud.Package{TrackingNumber: "OTHER"}, cloud.Package{TrackingNumber: "AGAIN"})
	add(9603, 3, false, cloud.Package{TrackingNumber: "AGAIN"})
	add(9604, 4, true, cloud.Package{TrackingNumber: "AGAIN"})
	add(9605, 4, true, cloud.Package{TrackingNumber: "AGAIN", OrderID: 9650}, cloud.Package{TrackingNumber: "X", OrderID: 9650})
	add(9606, 3, true, cloud.Package{TrackingNumber: "Y", OrderID: 9650})
	write(t, db, 0, &ch)
	of := func(s cloud.Shipment, want ...cloud.DeliveryID) {
		t.Helper()
		look(t, db, func(v cloud.View) {
			got, err := v.DeliveriesOf(s)
			require.NoError(t, err)
			ids := []cloud.DeliveryID(nil)
			for _, d := range got {
				ids = append(ids, d.ID)
			}
			require.Equal(t, want, ids)
		})
	}
	of(cloud.Shipment{BusinessID: 1, ProviderID: 3, Number: "aGAIN"}, 9601, 9602)
	of(cloud.Shipment{BusinessID: 1, ProviderID: 3, Number: "aGAIN", LinkFrom: 9602}, 9602)
	of(cloud.Shipment{BusinessID: 1, ProviderID: 3, Number: "aGAIN", LinkFrom: 9603})
	of(cloud.Shipment{BusinessID: 1, ProviderID: 4, Number: "AGAIN"}, 9604)
	of(cloud.Shipment{BusinessID: 2, ProviderID: 3, Number: "AGAIN"})
	of(cloud.Shipment{BusinessID: 1, Number: "SR1", OrderID: 9650}, 9605, 9606)
	of(cloud.Shipment{BusinessID: 2, Number: "SR1", OrderID: 9650})
	of(cloud.Shipment{BusinessID: 1, Number: "SR1", OrderID: 9651})
}
