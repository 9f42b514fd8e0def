package order

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

var errDatabase = errors.New("the database is away")

// failingView is a database that answers nothing.
type failingView struct{ cloud.View }

func (failingView) OrderShipment(cloud.BusinessID, cloud.OrderID) (cloud.Shipment, error) {
	return cloud.Shipment{}, errDatabase
}

func (failingView) Interception(cloud.BusinessID, cloud.InterceptionID) (cloud.Interception, error) {
	return cloud.Interception{}, errDatabase
}

// An error of the database ends a decision: it is not taken for "there is none".
func TestDecisionsEndWithTheDatabase(t *testing.T) {
	t.Parallel()
	d := &Decision{View: failingView{}, Order: cloud.Order{InterceptionID: 7}}
	i, err := d.Interception()
	require.ErrorIs(t, err, errDatabase)
	require.Nil(t, i)
	s := &shower{v: failingView{}}
	require.ErrorIs(t, s.related(cloud.Order{ID: 1}, nil, &OrderBody{}), errDatabase)
}

// Staff reach the orders of their business, whichever it is; an account without
// one reaches none.
func TestReachOfStaff(t *testing.T) {
	t.Parallel()
	for business, nothing := range map[cloud.BusinessID]bool{0: true, 1: false, 42: false} {
		r, err := reachOf(cloud.Caller{Account: cloud.Account{ID: 1, BusinessID: business, Type: cloud.ClientAdmin}})
		require.NoError(t, err)
		require.Equal(t, reach{business: business, nothing: nothing}, r)
	}
	_, err := reachOf(cloud.Caller{Account: cloud.Account{ID: 6, Type: cloud.PlatformAdmin}})
	var e *cloud.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, CodeType, e.Code, "an operator of the platform has a pass or nothing")
}

// An order that was stopped comes back to its route, the first one too, with the
// driver that the route has by then.
func TestResumedStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		paused *cloud.PausedRoute
		to     cloud.OrderStatus
		want   cloud.OrderStatus
	}{
		{&cloud.PausedRoute{RouteID: 1}, cloud.OrderDriverAssigned, cloud.OrderRoutePlanned},
		{&cloud.PausedRoute{RouteID: 1, DriverID: 6}, cloud.OrderRoutePlanned, cloud.OrderDriverAssigned},
		{&cloud.PausedRoute{RouteID: 1, DriverID: 6}, cloud.OrderDriverAccepted, cloud.OrderDriverAccepted},
		{&cloud.PausedRoute{}, cloud.OrderDriverAssigned, cloud.OrderDriverAssigned},
		{nil, cloud.OrderDriverAssigned, cloud.OrderDriverAssigned},
	} {
		d := &Decision{Order: cloud.Order{Status: cloud.OrderIntercepted, Paused: tt.paused}}
		require.Equal(t, tt.want, d.resumedStatus(tt.to), "%+v", tt)
	}
}

// A copy of an order begins without a route, a driver and a contractor.
func TestACopyOfAnOrderIsNew(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	o := cloud.Order{Status: cloud.OrderOutForDelivery, Before: cloud.OrderNew, Collected: true, RouteID: 2, Stop: 3, DriverID: 4, DriverName: "Sam", BrokerID: 5, AssignmentID: 6,
		InterceptionID: 7, Attempts: 8, ThirdPartyID: 9, ThirdPartyOpen: true, Packages: []cloud.OrderPackage{{ID: 10, Status: cloud.OrderPackageInTransit}}}
	was := o
	fresh(&o, now)
	require.Equal(t, cloud.Order{Status: cloud.OrderNew, StatusAt: now, CreatedAt: now, UpdatedAt: now, Packages: []cloud.OrderPackage{{ID: 10, Status: cloud.OrderPackageCreated}}}, o)
	require.Equal(t, cloud.OrderPackageInTransit, was.Packages[0].Status, "the order that was copied stays as it was")
}
