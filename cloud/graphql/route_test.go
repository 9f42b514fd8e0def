package graphql_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// TestRoutesAsFields finds a route with its stops, by what the interface calls
// the arguments, and only where the caller may.
func TestRoutesAsFields(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := cloud.Order{ID: 5, BusinessID: 42, Number: "SR000000018", Type: cloud.DeliveryOrder, Status: cloud.OrderDriverAssigned, Before: cloud.OrderNew, RouteID: 11, Stop: 1, DriverID: 4}
	r.w.Write(t, cloud.Changes{RouteChanges: cloud.RouteChanges{Routes: []cloud.Route{{ID: 11, BusinessID: 42, Name: "Morning", Date: "2026-12-01", DriverID: 4, DriverName: "driver", LastStop: 1}}}, OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}})
	ask := func(token string) (map[string]any, map[string]any) {
		_, m := r.ask(`query ($d: Date!) { routes(date: $d, status: "planned", driverId: 4, page: 1, perPage: 20) { result total page per_page
			routes { route_id name date status driver_id driver_name broker_id stop_count order_count planned_distance_km planned_minutes stops geometry } }
			route(routeId: 11) { status stops } }`, map[string]any{"d": "2026-12-01"}, token)
		data, _ := m["data"].(map[string]any)
		return data, m
	}
	for _, who := range []cloud.AccountType{cloud.ClientAdmin, cloud.DriverAccount} {
		data, m := ask(r.w.Tokens[who])
		require.Empty(t, m["errors"])
		list := data["routes"].(map[string]any)
		require.Equal(t, 1.0, list["total"])
		one := list["routes"].([]any)[0].(map[string]any)
		require.Equal(t, "[11 Morning 2026-12-01 planned 4 1]", fmt.Sprint([]any{one["route_id"], one["name"], one["date"], one["status"], one["driver_id"], one["stop_count"]}))
		stop := one["stops"].([]any)[0].(map[string]any)
		require.Equal(t, "[1 delivery pending [5]]", fmt.Sprint([]any{stop["sequence"], stop["kind"], stop["status"], stop["order_ids"]}))
		require.Equal(t, "planned", data["route"].(map[string]any)["status"])
	}
	data, m := ask(r.w.OtherAdmin)
	r.failed(m, "ROUTE_NOT_FOUND", 404)
	require.Nil(t, data["route"])
	require.Equal(t, 0.0, data["routes"].(map[string]any)["total"])
	_, m = ask(r.w.Tokens[cloud.Customer])
	r.failed(m, "ACCOUNT_TYPE_NOT_ALLOWED", 403)
	_, m = ask("")
	r.failed(m, "UNAUTHENTICATED", 401)
}
