package cloud_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/cloud"
)

// Stops before an order are those of a plain list of everything open on the
// route.
func TestStopsBefore(t *testing.T) {
	t.Parallel()
	statuses := []cloud.OrderStatus{cloud.OrderDriverAssigned, cloud.OrderOutForPickup, cloud.OrderPickedUp, cloud.OrderOutForDelivery, cloud.OrderDelivered, cloud.OrderDeliveryFailed}
	rapid.Check(t, func(t *rapid.T) {
		var orders []cloud.Order
		stop := 0
		for id := range rapid.IntRange(1, 8).Draw(t, "orders") {
			stop++
			o := cloud.Order{ID: cloud.OrderID(id + 1), Type: cloud.DeliveryOrder, RouteID: 9, Stop: stop, Status: rapid.SampledFrom(statuses).Draw(t, "status")}
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				o.Type = cloud.PickupOrder
			case 1:
				stop++
				o.Type, o.SecondStop = cloud.PointToPoint, stop
			case 2:
				o.Past = []cloud.RouteStop{{RouteID: 9, Sequence: stop, Kind: cloud.DeliveryStop, State: cloud.StopSkipped}}
				o.RouteID, o.Stop = 8, 1
			}
			orders = append(orders, o)
		}
		o := rapid.SampledFrom(orders).Draw(t, "asked")
		mine, before := 0, 0
		for s := stop; s > 0 && mine == 0; s-- {
			for _, x := range o.Stops() {
				if x.RouteID == o.RouteID && x.Sequence == s && x.State == cloud.StopPending {
					mine = s
				}
			}
		}
		for s := 1; s < mine; s++ {
			for _, x := range orders {
				for _, y := range x.Stops() {
					if y.RouteID == o.RouteID && y.Sequence == s && y.State == cloud.StopPending {
						before++
					}
				}
			}
		}
		n, ok := cloud.StopsBefore(o, orders)
		require.Equal(t, mine != 0, ok)
		require.Equal(t, before, n)
	})
	_, ok := cloud.StopsBefore(cloud.Order{Status: cloud.OrderOutForDelivery}, nil)
	require.False(t, ok, "on no route")
}
