package attack

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Without base_url the Host header said where links lead, in what others get too:
// a customer had the company's receiver send out links to a page of the customer's,
// a recipient had staff's apps fetch pictures there.
func TestAttackHostsInWhatOthersGet(t *testing.T) {
	t.Parallel()
	const evil = "evil.example"
	at, got := receiver(t)
	g := hooked(t, at)
	admin, customer := g.box.Admin.Token, g.box.Customer.Token
	g.must("PUT", "/api/v1/order-chat/settings", admin, `{"allow_recipient":true}`)
	g.must("PUT", "/api/v1/webhook-settings", admin, fmt.Sprintf(`{"webhook_sign_secret":%q,"order_create_webhook_url":%q,"order_lifecycle_webhook_url":%[2]q,"pod_files_webhook_url":%[2]q}`, companySecret, at))
	const one = `{"type":"D","order_ref":%q,"recipient":{"name":"Ann Lee","phone":"+14165550123","address_line1":"1 A St","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"},"packages":[{"weight":1}]}`
	own := func(p post, link string) {
		t.Helper()
		require.Contains(t, string(p.body), g.base+link)
		require.NotContains(t, string(p.body), evil)
	}

	made := g.must("POST", "/api/v1/client/orderCreate", customer, fmt.Sprintf(one, "HOST-1"), "Host", evil)
	own(next(t, got, "order.created", "HOST-1"), "/track/"+made.text("order.tracking_number"))
	g.must("POST", "/api/v1/client/batchOrderCreateAsync", customer, `{"orders":[`+fmt.Sprintf(one, "HOST-2")+`]}`, "Host", evil)
	own(next(t, got, "order.created", "HOST-2"), "/track/")
	graph := g.must("POST", "/api/graphql", customer, `{"query":"mutation{clientOrderCreate(input:{type:D,order_ref:\"HOST-3\",recipient:{name:\"Ann Lee\",phone:\"+14165550123\",address_line1:\"1 A St\",city:\"Toronto\",province:\"ON\",postal_code:\"M5H 2N2\",country:\"CA\"},packages:[{weight:1}]}){order_id}}"}`, "Host", evil)
	require.Nil(t, graph.at("errors"), graph.raw)
	own(next(t, got, "order.created", "HOST-3"), "/track/")
	g.must("POST", fmt.Sprintf("/api/v1/orders/%v/tracking-number", made.at("order.order_id")), customer, `{}`, "Host", evil)
	own(next(t, got, "order.tracking_number_changed", ""), "/track/")

	p := g.order(admin, "HOST-4")
	token := g.must("GET", "/api/v1/tracking/"+p.number, "", "", "X-Tracking-Key", p.key(t)).text("chat.token")
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	require.NoError(t, form.WriteField("order_id", fmt.Sprint(p.id)))
	part, err := form.CreateFormFile("file", "door.pdf")
	require.NoError(t, err)
	_, err = part.Write([]byte("%PDF-1.7 x"))
	require.NoError(t, err)
	require.NoError(t, form.Close())
	file := g.must("POST", "/api/v1/order-chat/attachments", token, b.String(), "Content-Type", form.FormDataContentType())
	g.must("POST", fmt.Sprintf("/api/v1/order-chat/orders/%d/messages", p.id), token, fmt.Sprintf(`{"kind":"file","attachment_ids":[%v],"client_message_id":"h-1"}`, file.at("attachment.attachment_id")), "Host", evil)
	live, err := g.server.Store.Live(t.Context(), time.Now().Add(-time.Hour), 1000)
	require.NoError(t, err)
	seen := ""
	for _, e := range live {
		seen += string(e.Body)
	}
	require.Contains(t, seen, g.base+"/")
	require.NotContains(t, seen, evil)
}
