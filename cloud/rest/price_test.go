package rest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// A customer from whom a business hides its prices orders, looks and lists
// without ever meeting an amount; one whose prices are shown sees them.
func TestHiddenPricesOverREST(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin, customer := r.w.Tokens[cloud.ClientAdmin], r.w.Tokens[cloud.Customer]
	r.refused(r.do("PUT", "/api/v1/settings/prices", admin, `{"prices":{"base":8.99}}`), 422, "VALIDATION_FAILED")
	r.made(r.do("PUT", "/api/v1/settings", admin, `{"currency":"CAD"}`), 200, "settings")
	for _, bad := range []string{`{"base":-1}`, `{"tax_percent":13}`, `{"tax_percent":101,"tax_code":"tax_hst"}`, `{"countries":["Canada"]}`, `{"max_kilograms":-1}`} {
		r.refused(r.do("PUT", "/api/v1/settings/prices", admin, `{"prices":`+bad+`}`), 422, "VALIDATION_FAILED")
	}
	r.made(r.do("PUT", "/api/v1/settings/prices", admin, `{"prices":{"base":1234.5,"tax_code":"tax_hst","tax_percent":13,"countries":["CA"]}}`), 200, "prices")
	r.refused(r.do("PUT", "/api/v1/settings/prices", customer, `{}`), 403, "ACCOUNT_TYPE_NOT_ALLOWED")

	ask := `{"type":"D","destination":{"postal_code":"M5H 2N2","country":"CA"},"packages":[{"weight":2.5}]}`
	open := r.do("POST", "/api/v1/orders/rate", customer, ask)
	require.Equal(t, 1394.99, open.json["rates"].([]any)[0].(map[string]any)["total_price"], "%s", open.body)
	id, made := r.order(customer, "C-1")
	require.Equal(t, 1394.99, made.json["total_price"], "%s", made.body)

	// Seven ways to look at it.
	id2 := func() []got {
		return []got{r.do("GET", "/api/v1/orders/"+id, customer, ""), r.do("GET", "/api/v1/orders", customer, ""), r.do("GET", "/api/v1/orders/detail?order_ref=C-1", customer, ""),
			r.do("POST", "/api/v1/orders/rate", customer, ask), r.do("PATCH", "/api/v1/orders/"+id, customer, `{"delivery_instruction":"ring"}`),
			r.do("POST", "/api/v1/client/orderCreate", customer, fmt.Sprintf(parcel, "")), r.do("POST", "/api/v1/orders/"+id+"/cancel", customer, `{}`)}
	}
	r.made(r.do("PATCH", "/api/v1/customers/5", admin, `{"price_hidden_families":["local_delivery"]}`), 200, "customer")
	for i, g := range id2() {
		require.Less(t, g.status, 300, "%d: %s", i, g.body)
		text := rateID.ReplaceAllString(string(g.body), `"rate_id":"x"`) // any letters may stand in one
		for _, leak := range []string{"1234.5", "1394.99", "160.49", "CAD", "shipping_price", "total_price", `"tax"`, "price_details", "paid_amount"} {
			require.NotContains(t, text, leak, "%d", i)
		}
		require.Contains(t, text, `"price_hidden":true`, "%d", i)
		if strings.Contains(text, `"rates"`) {
			require.Contains(t, text, `"rate_id"`)
			require.Contains(t, text, `"service_name"`)
		}
	}
	for _, sort := range []string{"shipping_price", "total_price", "-total_price"} {
		r.refused(r.do("GET", "/api/v1/orders?sort="+sort, customer, ""), 422, "VALIDATION_FAILED")
	}
	require.Contains(t, string(r.do("GET", "/api/v1/orders/"+id, admin, "").body), "1394.99", "the business sees its own")

	// The family counts, and who carries the goods never sees what others pay.
	r.made(r.do("PATCH", "/api/v1/customers/5", admin, `{"price_hidden_families":["label"]}`), 200, "customer")
	require.Contains(t, string(r.do("GET", "/api/v1/orders/"+id, customer, "").body), "1394.99")
	other, _ := r.order(admin, "A-1")
	require.Equal(t, 1.0, r.do("POST", "/api/v1/broker-order-assignments", admin, `{"order_ids":[`+other+`],"broker_id":3}`).json["assigned"])
	held := r.do("GET", "/api/v1/orders/"+other, r.w.Tokens[cloud.Broker], "")
	require.Equal(t, 200, held.status)
	require.NotContains(t, string(held.body), "total_price")
}

var rateID = regexp.MustCompile(`"rate_id":"[^"]*"`)
