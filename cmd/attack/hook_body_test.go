package attack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Bodies of webhooks are kept in logs that more people read than may open a
// parcel: no body of a whole day, no log line and no stored event has a link's
// secret or a chat token.
func TestAttackLinksInWebhooks(t *testing.T) {
	t.Parallel()
	at, got := receiver(t)
	g := hooked(t, at)
	admin, customer := g.box.Admin.Token, g.box.Customer.Token
	g.must("PUT", "/api/v1/order-chat/settings", admin, `{"allow_recipient":true}`)
	every := []string{fmt.Sprintf(`"webhook_sign_secret":%q`, companySecret)}
	for _, s := range cloud.HookSettings() {
		every = append(every, fmt.Sprintf(`%q:%q`, s, at))
	}
	g.must("PUT", "/api/v1/webhook-settings", admin, "{"+strings.Join(every, ",")+"}")
	g.must("PUT", "/api/v1/webhook-settings", customer, "{"+strings.Join(slices.DeleteFunc(slices.Clone(every), func(s string) bool { return strings.Contains(s, cloud.HookDriverPlace) }), ",")+"}")
	g.must("PUT", "/api/v1/third-party-delivery/webhook-endpoint", g.box.Provider.Token, fmt.Sprintf(`{"url":%q}`, at))

	// The day: an order that is driven and delivered, one that is renumbered, one that
	// is stopped, one that goes to a third party, a batch, and what is said.
	var links []string
	keep := func(p parcel) parcel { links = append(links, p.key(t)); return p }
	driven, renewed := keep(g.order(admin, "DAY-1")), keep(g.order(customer, "DAY-2"))
	stopped, third := keep(g.order(admin, "DAY-3")), keep(g.order(admin, "DAY-4"))
	me := g.must("GET", "/api/v1/user/me", g.box.Driver.Token, "")
	g.must("POST", fmt.Sprintf("/api/v1/orders/%d/driver", driven.id), admin, fmt.Sprintf(`{"driver_id":%v}`, me.at("user.id")))
	for _, step := range []string{"accept", "start-delivery", "deliver"} {
		g.call("POST", fmt.Sprintf("/api/v1/driver/orders/%d/%s", driven.id, step), g.box.Driver.Token, `{}`)
	}
	for range 2 {
		r := g.must("POST", fmt.Sprintf("/api/v1/orders/%d/tracking-number", renewed.id), customer, `{}`)
		renewed = keep(parcel{renewed.id, r.text("order.tracking_number"), r.text("order.recipient_link")})
	}
	shown := g.must("GET", "/api/v1/tracking/"+renewed.number, "", "", "X-Tracking-Key", renewed.key(t))
	links = append(links, shown.text("chat.token"))
	require.NotContains(t, links, "")
	g.must("POST", fmt.Sprintf("/api/v1/order-chat/orders/%d/messages", renewed.id), shown.text("chat.token"), `{"text":"ring twice","client_message_id":"d-1"}`)
	g.must("POST", fmt.Sprintf("/api/v1/orders/%d/interceptions", stopped.id), admin, `{"outcome":"return_to_sender"}`)
	g.must("POST", "/api/v1/third-party-delivery/assignments", admin, fmt.Sprintf(`{"order_id":%d,"provider_id":%d}`, third.id, g.box.ProviderCaller.Provider.ID))
	g.must("POST", fmt.Sprintf("/api/v1/orders/%d/cancel", stopped.id), admin, `{"reason":"x"}`)
	g.must("POST", "/api/v1/client/batchOrderCreateAsync", admin, `{"orders":[{"type":"D","order_ref":"DAY-5","recipient":{"name":"Ann Lee","phone":"+14165550123","address_line1":"1 A St","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"},"packages":[{"weight":1}]}]}`)
	next(t, got, "order.batch_processed", "")
	batch := g.must("GET", "/api/v1/orders/detail?order_ref=DAY-5", admin, "")
	links = append(links, parcel{link: batch.text("order.recipient_link")}.key(t))
	next(t, got, "order.tracking_number_changed", renewed.number)

	var seen []string
	listed, rows, err := g.server.Store.ListAccountOutbox(t.Context(), cloud.AccountLog{BusinessID: 1, Page: cloud.Page{Limit: 1000}})
	require.NoError(t, err)
	require.Len(t, rows, listed.Total)
	events := map[string]bool{}
	for _, r := range rows {
		x, err := g.server.Store.FindOutbox(t.Context(), r.Delivery.ID)
		require.NoError(t, err)
		events[x.Event.Event] = true
		seen = append(seen, string(x.Event.Body))
	}
	for _, p := range got.kept {
		seen = append(seen, string(p.body), fmt.Sprint(p.header))
	}
	require.GreaterOrEqual(t, len(events), 8, "%v", events)
	operations := g.must("POST", "/api/v1/tracking/operationevents", admin, fmt.Sprintf(`{"order_id":%d}`, renewed.id))
	logs := g.must("GET", "/api/v1/webhook-delivery-logs?per_page=100", admin, "")
	live, err := g.server.Store.Live(t.Context(), time.Now().Add(-time.Hour), 1000)
	require.NoError(t, err)
	seen = append(seen, g.log.String(), operations.raw, logs.raw)
	for _, e := range live {
		raw, err := json.Marshal(e)
		require.NoError(t, err)
		seen = append(seen, string(raw), string(e.Body))
	}
	for _, secret := range links {
		for _, text := range seen {
			require.NotContains(t, text, secret)
		}
	}
	for _, text := range seen {
		require.NotContains(t, text, "?k=")
		require.NotContains(t, text, cloud.RecipientToken+"A")
	}
}
