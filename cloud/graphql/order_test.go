package graphql_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// TestOrdersAsFields makes an order, finds it through a filter and acts on it.
func TestOrdersAsFields(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin := r.w.Tokens[cloud.ClientAdmin]
	input := map[string]any{"type": "D", "order_ref": "SO-1", "declared_value": 12.5, "metadata": map[string]any{"channel": "shop"},
		"recipient": map[string]any{"name": "Ada Moreau", "phone": "+14165550123", "address_line1": "100 Queen St W", "city": "Toronto", "province": "ON", "postal_code": "M5H 2N2", "country": "CA"},
		"packages":  []any{map[string]any{"weight": 2.5, "weight_unit": "kg", "dimension_unit": "cm"}}}
	const create = `mutation ($in: OrderInput!) { clientOrderCreate(input: $in) { order_id order { declared_value order_status recipient { city } time_window } } }`
	_, m := r.ask(create, map[string]any{"in": input}, admin)
	require.Empty(t, m["errors"])
	made := m["data"].(map[string]any)["clientOrderCreate"].(map[string]any)
	o := made["order"].(map[string]any)
	require.Equal(t, 12.5, o["declared_value"])
	require.Equal(t, "Toronto", o["recipient"].(map[string]any)["city"])
	require.Nil(t, o["time_window"])
	_, m = r.ask(create, map[string]any{"in": input}, admin)
	r.failed(m, "DUPLICATE_ORDER_REF", 409)
	_, m = r.ask(create, map[string]any{"in": input})
	r.failed(m, "UNAUTHENTICATED", 401)

	list := func(filter any) any {
		_, m := r.ask(`query ($f: OrderFilter) { orders(filter: $f, page: 1, perPage: 5) { total orders { order_id } } }`, map[string]any{"f": filter}, admin)
		require.Empty(t, m["errors"])
		return m["data"].(map[string]any)["orders"].(map[string]any)["total"]
	}
	require.Equal(t, 1.0, list(nil))
	require.Equal(t, 1.0, list(map[string]any{"keyword": "moreau", "type": "D"}))
	require.Equal(t, 0.0, list(map[string]any{"status_ids": []int{98, 99}}))

	id := map[string]any{"id": made["order_id"]}
	_, m = r.ask(`mutation ($id: Int!) { orderHold(orderId: $id, reason: "customs") { order_status } orderCancel(orderId: $id) { order_status } }`, id, admin)
	require.Empty(t, m["errors"])
	_, m = r.ask(`query ($id: Int!) { trackingOperationevents(orderId: $id) { total events { operation_name operator changes } } }`, id, admin)
	require.Empty(t, m["errors"])
	require.Equal(t, 3.0, m["data"].(map[string]any)["trackingOperationevents"].(map[string]any)["total"], "made, held, cancelled")
	_, m = r.ask(`query ($id: Int!) { order(orderId: $id) { order_status note } }`, id, r.w.OtherAdmin)
	r.failed(m, "ORDER_NOT_FOUND", 404)
}

// A contractor's part by GraphQL: the four mirrors, with the same rights.
func TestAssignmentsAsFields(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, broker := r.w.Tokens[cloud.ClientAdmin], r.w.Tokens[cloud.Broker]
	create := `mutation { clientOrderCreate(input: {type: D, order_ref: "G-1", packages: [{weight: 1}], recipient: {name: "Ada", address_line1: "1 Elm St", city: "Toronto", province: "ON", postal_code: "M5H 2N2", country: "CA"}}) { order_id order { broker_assignment { id } } } }`
	_, m := r.ask(create, nil, admin)
	require.Empty(t, m["errors"])
	id := map[string]any{"id": m["data"].(map[string]any)["clientOrderCreate"].(map[string]any)["order_id"]}

	assign := `mutation ($id: Int!) { assignOrdersToBroker(orderIds: [$id, 99999], brokerId: 3, note: "early") { result assigned skipped errors { order_id code message } } }`
	_, m = r.ask(assign, id, broker)
	r.failed(m, "ACCOUNT_TYPE_NOT_ALLOWED", 403)
	_, m = r.ask(assign, id, admin, "", "fr")
	require.Empty(t, m["errors"])
	out := m["data"].(map[string]any)["assignOrdersToBroker"].(map[string]any)
	require.Equal(t, 1.0, out["assigned"])
	require.Contains(t, out["errors"].([]any)[0].(map[string]any)["message"], "commande")

	list := `query ($s: BrokerAssignmentStatus) { brokerOrderAssignments(status: $s) { total per_page assignments { order_id broker_name status note assigned_at } } }`
	_, m = r.ask(list, map[string]any{"s": "active"}, broker)
	require.Empty(t, m["errors"])
	require.Equal(t, 1.0, m["data"].(map[string]any)["brokerOrderAssignments"].(map[string]any)["total"])
	_, m = r.ask(list, map[string]any{"s": "lost"}, broker)
	r.failed(m, "BAD_REQUEST", 400)
	_, m = r.ask(`query ($id: Int!) { order(orderId: $id) { broker_assignment { broker_id status } } }`, id, broker)
	require.Empty(t, m["errors"])
	require.Equal(t, map[string]any{"broker_id": 3.0, "status": "active"}, m["data"].(map[string]any)["order"].(map[string]any)["broker_assignment"])

	_, m = r.ask(`mutation ($id: Int!) { releaseBrokerOrderAssignment(orderId: $id, reason: "no van") { result message } }`, id, broker)
	require.Empty(t, m["errors"])
	_, m = r.ask(`mutation ($id: Int!) { releaseBrokerOrderAssignment(orderId: $id) { result } }`, id, broker)
	r.failed(m, "NOT_ASSIGNED", 400)
	_, m = r.ask(`mutation ($id: Int!) { revokeBrokerOrderAssignments(orderIds: [$id], reason: "x") { result revoked errors { code } } }`, id, admin)
	require.Empty(t, m["errors"])
	require.Equal(t, false, m["data"].(map[string]any)["revokeBrokerOrderAssignments"].(map[string]any)["result"])
}

// Fields of prices are null for whom they are hidden from, and say so.
func TestHiddenPricesAsFields(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	customer := r.w.Tokens[cloud.Customer]
	b := r.w.Business
	b.Settings.Currency, b.Settings.Prices = "CAD", &cloud.PriceList{Base: 123450}
	r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}})
	create := `mutation { clientOrderCreate(input: {type: D, packages: [{weight: 1}], recipient: {name: "Ada", address_line1: "1 Elm St", city: "Toronto", province: "ON", postal_code: "M5H 2N2", country: "CA"}}) { order_id total_price currency price_hidden order { shipping_price price_hidden } } }`
	_, m := r.ask(create, nil, customer)
	require.Empty(t, m["errors"])
	require.Equal(t, 1234.5, m["data"].(map[string]any)["clientOrderCreate"].(map[string]any)["total_price"])
	require.NoError(t, r.w.DB.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		a, err := v.Account(5)
		a.PriceHidden = []string{cloud.LocalDelivery}
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}}, err
	}))
	_, m = r.ask(create, nil, customer)
	require.Empty(t, m["errors"])
	out := m["data"].(map[string]any)["clientOrderCreate"].(map[string]any)
	require.Nil(t, out["total_price"])
	require.Nil(t, out["currency"])
	require.Equal(t, true, out["price_hidden"])
	require.Equal(t, map[string]any{"shipping_price": nil, "price_hidden": true}, out["order"])
	_, m = r.ask(`{ orders { orders { total_price tax paid_amount price_details price_hidden } } }`, nil, customer)
	require.Empty(t, m["errors"])
	for _, o := range m["data"].(map[string]any)["orders"].(map[string]any)["orders"].([]any) {
		require.Equal(t, map[string]any{"total_price": nil, "tax": nil, "paid_amount": nil, "price_details": nil, "price_hidden": true}, o)
	}
}

// TestKeysOfMutations sends one mutation twice with a key: it is done once, and
// answered with what each asks for.
func TestKeysOfMutations(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin := r.w.Tokens[cloud.ClientAdmin]
	input := map[string]any{"type": "D", "packages": []any{map[string]any{"weight": 2.5}},
		"recipient": map[string]any{"name": "Ada Moreau", "phone": "+14165550123", "address_line1": "100 Queen St W", "city": "Toronto", "province": "ON", "postal_code": "M5H 2N2", "country": "CA"}}
	const create = `mutation ($in: OrderInput!) { made: clientOrderCreate(input: $in) { order_id tracking_number } }`
	r.key = "k1"
	_, first := r.ask(create, map[string]any{"in": input}, admin)
	require.Empty(t, first["errors"])
	require.False(t, r.replayed)
	_, again := r.ask(create, map[string]any{"in": input}, admin)
	require.Equal(t, first, again)
	require.True(t, r.replayed)
	_, less := r.ask(`mutation ($in: OrderInput!) { clientOrderCreate(input: $in) { order { source } } }`, map[string]any{"in": input}, admin)
	require.Equal(t, "graphql", less["data"].(map[string]any)["clientOrderCreate"].(map[string]any)["order"].(map[string]any)["source"])
	require.True(t, r.replayed)
	input["note"] = "another"
	_, m := r.ask(create, map[string]any{"in": input}, admin)
	r.failed(m, "IDEMPOTENCY_KEY_REUSED", 409)
	r.key = "k2"
	_, m = r.ask(create, map[string]any{"in": input}, admin)
	require.NotEqual(t, first, m, "another key is another call")
	r.key = "k3"
	input["scheduled_date"] = "2020-01-01" // which the operation itself refuses
	_, m = r.ask(create, map[string]any{"in": input}, admin)
	r.failed(m, "VALIDATION_FAILED", 422)
	_, m = r.ask(create, map[string]any{"in": input}, admin)
	r.failed(m, "VALIDATION_FAILED", 422)
	require.True(t, r.replayed)
	status, m := r.ask(`mutation { a: orderHold(orderId: 1) { order_id } b: orderHold(orderId: 2) { order_id } }`, nil, admin)
	require.Equal(t, 400, status)
	require.Nil(t, m["data"], "nothing was done")
	r.key = ""
	_, m = r.ask(`{ orders { total } }`, nil, admin)
	require.Equal(t, 2.0, m["data"].(map[string]any)["orders"].(map[string]any)["total"])
}
