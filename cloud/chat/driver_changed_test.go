package chat

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// Participants receive that another driver has the order.
func TestDriversComeAndGo(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	orders := order.New(order.Config{Store: r.db, Talk: r.nodes[0]})
	drives := func(who cloud.AccountID) []told {
		t.Helper()
		r.told()
		require.NoError(t, orders.Move(t.Context(), cloud.Caller{}, order.MoveInput{BusinessID: 42, OrderID: theOrder, Operation: 3012, Set: func(o *cloud.Order) { o.DriverID, o.DriverName = who, "" }}))
		return r.told()
	}
	said := func(list []told) (out []string) {
		for _, e := range list {
			require.Equal(t, "participant.changed", e.Type)
			require.Equal(t, "driver", string(e.Data.Participant.Type))
			out = append(out, string(e.Kind)+" "+e.Data.Change+" "+e.Data.Participant.Name)
		}
		return out
	}
	require.Empty(t, drives(second), "nobody talks yet")
	drives(driver)
	r.says(driver, "x")
	require.Empty(t, drives(driver), "it is the same one")
	require.Equal(t, []string{"order_chat removed Person 4", "order_chat added Person 5"}, said(drives(second)))
	require.Equal(t, []string{"order_chat removed Person 5"}, said(drives(0)))
	require.Equal(t, []string{"order_chat added Person 4"}, said(drives(driver)))
	_, err := r.nodes[0].Remove(t.Context(), r.caller(admin), RemoveInput{theOrder, "driver", driver})
	require.NoError(t, err)
	require.Equal(t, []string{"order_chat added Person 5"}, said(drives(second)), "the other was out before")
	r.settings(func(s *cloud.ChatSettings) { s.NoDriver = true })
	require.Empty(t, drives(driver), "drivers have no part")
	r.settings(func(s *cloud.ChatSettings) { s.NoDriver = false })
}

// What only staff and drivers say is no matter of others, nor who drives.
func TestDriversOfAHiddenTalk(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	orders := order.New(order.Config{Store: r.db, Talk: r.nodes[0]})
	r.says(driver, "x", "staff_driver")
	r.told()
	require.NoError(t, orders.Move(t.Context(), cloud.Caller{}, order.MoveInput{BusinessID: 42, OrderID: theOrder, Operation: 3012, Set: func(o *cloud.Order) { o.DriverID = second }}))
	list := r.told()
	require.Len(t, list, 2)
	for _, e := range list {
		require.Equal(t, cloud.LiveChatStaff, e.Kind)
	}
	_, err := r.nodes[0].Close(t.Context(), r.caller(admin), OrderInput{theOrder})
	require.NoError(t, err)
	r.told()
	require.NoError(t, orders.Move(t.Context(), cloud.Caller{}, order.MoveInput{BusinessID: 42, OrderID: theOrder, Operation: 3012, Set: func(o *cloud.Order) { o.DriverID = driver }}))
	require.Empty(t, r.told(), "it is closed")
}
