package attack

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A change of an order that named its packages, its driver or its price was
// answered 200 and changed none of them.
func TestChangesOfAnOrderThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	c := start(t)
	id := c.order("MB-1")
	path, admin := fmt.Sprintf("/api/v1/orders/%d", id), c.box.Admin.Token
	before := c.ok("GET", path, admin, "").at("order.updated_at")
	for member, value := range map[string]string{"packages": `[{"weight":90,"quantity":7}]`, "sender": `{"name":"x"}`, "order_ref": `"MB-2"`, "type": `"P"`, "driver_id": `3`, "total_price": `1`, "order_status_id": `50`,
		"cod_amount": `5`, "PACKAGES": `null`} {
		a := c.send("PATCH", path, admin, fmt.Sprintf(`{%q:%s,"note":"changed"}`, member, value))
		require.Equal(t, []any{422, "VALIDATION_FAILED"}, []any{a.status, a.at("code")}, "%s: %s", member, a.raw)
		errs, _ := a.at("errors").(map[string]any)
		require.Len(t, errs[member], 1, "%s", a.raw)
		said := errs[member].([]any)[0]
		for _, part := range []string{member, "delivery_instruction", "note", "priority", "recipient", "scheduled_date", "time_window_end", "time_window_start"} {
			require.Contains(t, said, part)
		}
	}
	german := c.send("PATCH", path, admin, `{"packages":[]}`, "Accept-Language", "de")
	require.Contains(t, string(german.raw), "kann hier nicht geändert werden")
	require.Equal(t, before, c.ok("GET", path, admin, "").at("order.updated_at"), "nothing is changed beside it")
	key := c.key(c.box.Staff.Token, `{"name":"asks","profile":"full","require_approval":"all"}`)
	require.Equal(t, 422, c.send("PATCH", path, key, `{"packages":[]}`).status, "no person is asked about it")
}

// A member that no operation knows had no effect and left no trace. By REST it has
// none still, but the answer names it.
func TestUnknownMembersAreNamed(t *testing.T) {
	t.Parallel()
	c := start(t)
	id := c.order("MB-3")
	named := func(method, path, body string) string {
		a := c.send(method, path, c.box.Admin.Token, body, "Origin", c.base)
		require.Less(t, a.status, 300, "%s", a.raw)
		return a.header.Get("X-Unknown-Members")
	}
	path := fmt.Sprintf("/api/v1/orders/%d", id)
	require.Empty(t, named("PATCH", path, `{"note":"n","recipient":`+fmt.Sprintf(recipient, "2 Main St")+`}`))
	require.Equal(t, "colour, recipient.floor", named("PATCH", path, `{"Note":"m","colour":"red","recipient":{"floor":3,`+fmt.Sprintf(recipient, "2 Main St")[1:]+`}`))
	order := fmt.Sprintf(`{"type":"D","order_ref":"MB-4","metadata":{"any":"thing"},"recipient":%s,"packages":[{"weight":1},{"weight":2,"wieght":3,"items":[{"name":"x","unti":1}]}]}`, fmt.Sprintf(recipient, "1 Main St"))
	require.Equal(t, "packages.1.items.0.unti, packages.1.wieght", named("POST", "/api/v1/client/orderCreate", order))
	require.Equal(t, "a%0D%0AX-Evil%3A 1%2C", named("PATCH", path, `{"note":"o","a\r\nX-Evil: 1,":2}`), "names of others make no headers")
	g := c.send("POST", "/api/graphql", c.box.Admin.Token, `{"query":"query($n:Int){orders(page:$n){total}}","variables":{"n":1,"pge":2,"a,b":3}}`)
	require.Equal(t, []any{200, "variables.a%2Cb, variables.pge"}, []any{g.status, g.header.Get("X-Unknown-Members")}, "%s", g.raw)
	require.Nil(t, g.at("errors"), "%s", g.raw)
}
