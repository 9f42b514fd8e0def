package e2e

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/server"
)

// face is one way to say what the story says. Refused gives code and message of
// what was refused; both are empty when it was not.
type face struct {
	login   func(t *testing.T, p person, who server.SandboxAccount) person
	create  func(t *testing.T, p person, order map[string]any) (id float64)
	assign  func(t *testing.T, p person, id, contractor float64) (assigned any)
	seen    func(t *testing.T, p person, id float64) (order any, listed any)
	release func(t *testing.T, p person, id float64) (code, message any)
}

var faces = map[string]face{
	"REST": {
		login: func(t *testing.T, p person, who server.SandboxAccount) person {
			a := p.do(t, "POST", "/api/v1/user/login", map[string]string{"email": who.Email, "password": who.Password})
			require.Equal(t, 200, a.status, a.body)
			p.token, _ = a.at("access_token").(string)
			return p
		},
		create: func(t *testing.T, p person, order map[string]any) float64 {
			a := p.do(t, "POST", "/api/v1/client/orderCreate", order)
			require.Equal(t, 201, a.status, a.body)
			return a.at("order_id").(float64)
		},
		assign: func(t *testing.T, p person, id, contractor float64) any {
			return p.do(t, "POST", "/api/v1/broker-order-assignments", map[string]any{"order_ids": []float64{id}, "broker_id": contractor}).at("assigned")
		},
		seen: func(t *testing.T, p person, id float64) (any, any) {
			return p.do(t, "GET", "/api/v1/orders/detail?order_id="+number(id), nil).at("order"), p.do(t, "GET", "/api/v1/orders", nil).at("total")
		},
		release: func(t *testing.T, p person, id float64) (any, any) {
			a := p.do(t, "POST", "/api/v1/broker-order-assignments/release", map[string]any{"order_id": id})
			require.Equal(t, a.status == 200, a.at("error_code") == nil)
			if a.status == 200 {
				return nil, nil
			}
			return a.at("error_code"), a.at("message")
		},
	},
	"GraphQL": {
		login: func(t *testing.T, p person, who server.SandboxAccount) person {
			a := p.ask(t, `mutation($e: String!, $p: String!) { userLogin(email: $e, password: $p) { access_token } }`, map[string]any{"e": who.Email, "p": who.Password})
			require.Nil(t, a.at("errors"), a.body)
			p.token, _ = a.at("data", "userLogin", "access_token").(string)
			return p
		},
		create: func(t *testing.T, p person, order map[string]any) float64 {
			a := p.ask(t, `mutation($in: OrderInput!) { clientOrderCreate(input: $in) { order_id } }`, map[string]any{"in": order})
			require.Nil(t, a.at("errors"), a.body)
			return a.at("data", "clientOrderCreate", "order_id").(float64)
		},
		assign: func(t *testing.T, p person, id, contractor float64) any {
			return p.ask(t, `mutation($o: Int!, $b: Int!) { assignOrdersToBroker(orderIds: [$o], brokerId: $b) { assigned } }`, map[string]any{"o": id, "b": contractor}).at("data", "assignOrdersToBroker", "assigned")
		},
		seen: func(t *testing.T, p person, id float64) (any, any) {
			a := p.ask(t, `query($o: Int!) { order(orderId: $o) { order_id route_id } orders { total } }`, map[string]any{"o": id})
			return a.at("data", "order"), a.at("data", "orders", "total")
		},
		release: func(t *testing.T, p person, id float64) (any, any) {
			a := p.ask(t, `mutation($o: Int!) { releaseBrokerOrderAssignment(orderId: $o) { result } }`, map[string]any{"o": id})
			return a.at("errors", 0, "extensions", "code"), a.at("errors", 0, "message")
		},
	},
}

// An order that is handed to a contractor is the contractor's alone until it
// comes back: the business cannot plan it, another contractor does not know of
// it. Every account reads so in its own language, over both faces. Routes are
// only made over REST.
func TestAnOrderGoesToAContractorAndBack(t *testing.T) {
	t.Parallel()
	box := sandbox(t)
	for name, f := range faces {
		t.Run(name, func(t *testing.T) {
			admin := f.login(t, person{base: box.BaseURL, language: "de"}, box.Admin)
			contractor := f.login(t, person{base: box.BaseURL, language: "zh-Hans"}, box.Contractor)
			mine := contractor.do(t, "GET", "/api/v1/user/me", nil).at("user", "id").(float64)
			second := server.SandboxAccount{Email: name + "@rival.example", Password: "a long password"}
			made := admin.do(t, "POST", "/api/v1/users", map[string]any{"account_type": "broker", "name": "Rival", "email": second.Email, "password": second.Password})
			require.Equal(t, 201, made.status, made.body)
			rival := f.login(t, person{base: box.BaseURL, language: "zh-Hans"}, second)

			id := f.create(t, admin, map[string]any{"type": "D", "order_ref": "STORY-" + name, "packages": []any{map[string]any{"weight": 2.5}},
				"recipient": map[string]any{"name": "Ada Moreau", "phone": "+14165550123", "address_line1": "100 Queen St W", "city": "Toronto", "province": "ON", "postal_code": "M5H 2N2", "country": "CA"}})
			route := admin.do(t, "POST", "/api/v1/routes", map[string]any{"date": "2099-12-01", "name": "Morning " + name})
			require.Equal(t, 201, route.status, route.body)
			stops := "/api/v1/routes/" + number(route.at("route", "route_id").(float64)) + "/orders"
			plan := map[string]any{"order_ids": []float64{id}}

			require.EqualValues(t, 1, f.assign(t, admin, id, mine))
			refused := admin.do(t, "POST", stops, plan)
			require.Equal(t, "HELD_BY_CONTRACTOR", refused.at("errors", 0, "code"), refused.body)
			require.Equal(t, locale.Error("de", "HELD_BY_CONTRACTOR"), refused.at("errors", 0, "message"))
			require.EqualValues(t, 0, refused.at("added"))

			order, listed := f.seen(t, contractor, id)
			require.NotNil(t, order)
			require.EqualValues(t, 1, listed)
			order, listed = f.seen(t, rival, id)
			require.Nil(t, order)
			require.EqualValues(t, 0, listed)
			code, message := f.release(t, rival, id)
			require.NotNil(t, code)
			require.Equal(t, locale.Error("zh-Hans", code.(string)), message)
			require.NotEqual(t, locale.Error("en", code.(string)), message)
			unknown, _ := f.release(t, rival, 987654)
			require.Equal(t, unknown, code, "as if it were not there")

			code, message = f.release(t, contractor, id)
			require.Nil(t, code, message)
			require.Nil(t, message)
			order, listed = f.seen(t, contractor, id)
			require.Nil(t, order)
			require.EqualValues(t, 0, listed)
			planned := admin.do(t, "POST", stops, plan)
			require.EqualValues(t, 1, planned.at("added"), planned.body)
			order, _ = f.seen(t, admin, id)
			require.Equal(t, route.at("route", "route_id"), order.(map[string]any)["route_id"])
		})
	}
}

// number is an id as addresses have it.
func number(id float64) string { return strconv.FormatFloat(id, 'f', -1, 64) }
