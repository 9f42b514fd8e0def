package attack

import (
	"bytes"
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// A link that reached the wrong people opened the parcel for good: nothing
// replaced its secret or its number.
func TestAttackALeakedLinkIsReplaced(t *testing.T) {
	t.Parallel()
	at, got := receiver(t)
	g := hooked(t, at)
	g.must("PUT", "/api/v1/order-chat/settings", g.box.Admin.Token, `{"allow_recipient":true}`)
	g.must("PUT", "/api/v1/webhook-settings", g.box.Admin.Token, fmt.Sprintf(`{"webhook_sign_secret":%q,"order_lifecycle_webhook_url":%q}`, companySecret, at))
	p := g.order(g.box.Admin.Token, "LEAK-1")
	path := fmt.Sprintf("/api/v1/orders/%d/tracking-number", p.id)
	read := func(number, key string) result {
		return g.call("GET", "/api/v1/tracking/"+number, "", "", "X-Tracking-Key", key)
	}
	stolen := read(p.number, p.key(t))
	require.Equal(t, "recipient", stolen.text("access.level"))
	talk := stolen.text("chat.token")
	require.NotEmpty(t, talk)
	thief := g.visitor()
	link, err := url.Parse(p.link)
	require.NoError(t, err)
	thief.send("GET", link.RequestURI(), nil)
	digits := g.visitor()
	require.Equal(t, 303, digits.send("POST", "/track/"+p.number, url.Values{"do": {"verify"}, "digits": {"0123"}}).status)

	t.Run("by nobody else", func(t *testing.T) {
		for name, token := range map[string]string{"customer of another order": g.box.Customer.Token, "contractor": g.box.Contractor.Token, "driver": g.box.Driver.Token, "provider": g.box.Provider.Token, "stranger": "", "chat token": talk} {
			r := g.call("POST", path, token, `{}`)
			require.Contains(t, []int{401, 403, 404}, r.status, "%s: %s", name, r.raw)
		}
		reader := g.must("POST", "/api/v1/user/api-keys", g.box.Admin.Token, `{"name":"reads","scopes":["orders:read"]}`).text("token")
		require.Equal(t, 403, g.call("POST", path, reader, `{}`).status)
		require.Equal(t, "recipient", read(p.number, p.key(t)).text("access.level"))
	})
	only := g.must("POST", path, g.box.Admin.Token, `{"link_only":true}`)
	require.Equal(t, p.number, only.text("order.tracking_number"))
	second := parcel{p.id, p.number, only.text("order.recipient_link")}
	require.Equal(t, "public", read(p.number, p.key(t)).text("access.level"), "the old link is dead at once")
	require.Equal(t, "recipient", read(p.number, second.key(t)).text("access.level"))
	require.NotContains(t, thief.send("GET", "/track/"+p.number, nil).raw, "oct_", "so is its cookie")
	require.NotContains(t, digits.send("GET", "/track/"+p.number, nil).raw, "oct_", "and what digits gave")
	require.Equal(t, 401, g.call("GET", fmt.Sprintf("/api/v1/order-chat/orders/%d/messages", p.id), talk, "").status, "and the chat's token")

	made := g.must("POST", path, g.box.Admin.Token, `{}`)
	fresh := parcel{p.id, made.text("order.tracking_number"), made.text("order.recipient_link")}
	require.NotEqual(t, p.number, fresh.number)
	require.Equal(t, fresh.number+"-1", made.text("order.packages.0.tracking_number"))
	require.Equal(t, "recipient", read(fresh.number, fresh.key(t)).text("access.level"))
	require.Equal(t, "public", read(fresh.number, second.key(t)).text("access.level"))
	for _, number := range []string{p.number, p.number + "-1"} {
		for _, key := range []string{"", p.key(t), second.key(t), fresh.key(t)} {
			require.Equal(t, 404, read(number, key).status, "the old number is for owners only")
		}
		require.Equal(t, 404, g.call("GET", "/api/v1/otep/trackings/"+number, "", "").status)
		require.Equal(t, 404, g.visitor().send("GET", "/track/"+number, nil).status)
		require.Equal(t, fresh.number, g.must("GET", "/api/v1/tracking/"+number, g.box.Admin.Token, "").text("tracking_number"))
		require.Equal(t, 404, g.call("GET", "/api/v1/tracking/"+number, g.box.Customer.Token, "").status)
		require.Equal(t, float64(p.id), g.must("GET", "/api/v1/orders/detail?tracking_number="+number, g.box.Admin.Token, "").at("order.order_id"))
	}
	require.Equal(t, float64(p.id), g.must("GET", "/api/v1/orders/search?query="+p.number, g.box.Admin.Token, "").at("matches.0.order_id"), "who has the old label in hand finds it")
	told := next(t, got, "order.tracking_number_changed", fresh.number)
	require.Contains(t, string(told.body), p.number, "who must tell the recipient knows which one it was")
	for _, key := range []string{p.key(t), second.key(t), fresh.key(t)} {
		require.False(t, bytes.Contains(told.body, []byte(key)))
		require.NotContains(t, g.log.String(), key)
	}
	events := g.must("POST", "/api/v1/tracking/operationevents", g.box.Admin.Token, fmt.Sprintf(`{"order_id":%d,"operation_types":[3060]}`, p.id))
	require.Equal(t, 2.0, events.at("total"), events.raw)
}
