package server

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
)

// A customer from whom prices are hidden finds none in the answer of any tool, whether
// the tool is one operation, several or a query (interface 1.5).
func TestToolsTellNoHiddenPrices(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	customer := []string{"Authorization", w.box.Customer.Token}
	session, err := w.s.findToken(t.Context(), auth.Hash(w.box.Customer.Token))
	require.NoError(t, err)
	hide := func(families ...string) {
		require.NoError(t, w.s.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
			b, err := v.Business(session.Account.BusinessID)
			b.Settings.Currency, b.Settings.Prices = "CAD", &cloud.PriceList{Base: 98765_43}
			a := session.Account
			a.PriceHidden = families
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}, Accounts: []cloud.Account{a}}}, err
		}))
	}
	amounts := regexp.MustCompile(`98765|CAD|shipping_price|total_price|paid_amount|price_details|\b(?:tax|currency)\\?":`)
	n := 0
	// calls are the answers of every tool that a customer may call, by name.
	calls := func() map[string]string {
		n++
		ref := fmt.Sprint("P-", n)
		made := w.call("create_order", fmt.Sprintf(anOrder, ref), customer...)
		require.False(t, made.failed, "%s", made.raw)
		tried := w.call("create_order", fmt.Sprintf(anOrder, ref+"d"), append(customer, "X-MCP-Dry-Run", "1")...)
		require.False(t, tried.failed, "%s", tried.raw)
		out := map[string]string{"create_order": string(made.raw), "create_order, tried": string(tried.raw)}
		about := fmt.Sprintf(`{"order_ref":%q}`, ref)
		arguments := map[string]string{"quote_delivery": `{"type":"D","destination":{"postal_code":"M5H 2N2","country":"CA"},"packages":[{"weight":1}]}`,
			"bulk_create_orders": fmt.Sprintf(`{"confirm":true,"orders":[`+anOrder+`]}`, ref+"b"),
			"update_order_note":  strings.TrimSuffix(about, "}") + `,"note":"x"}`,
			"find_order":         `{"query":"ann lee"}`,
			"run_graphql_query":  `{"query":"{ orders { orders { order_id price_hidden } } }"}`,
		}
		for server, path := range servers {
			for _, x := range w.s.Catalog.Tools(server) {
				if x.Name == "create_order" || x.Public() || x.Types != nil && !strings.Contains(fmt.Sprint(x.Types), string(cloud.Customer)) {
					continue
				}
				for _, in := range []string{`{}`, about, arguments[x.Name]} {
					if in == "" || x.Writes() && in != arguments[x.Name] {
						continue
					}
					if r := w.on(path, x.Name, in, customer...); !r.failed && r.body != nil {
						out[x.Name] += string(r.raw)
					}
				}
			}
		}
		return out
	}
	hide()
	open := calls()
	for _, name := range []string{"create_order", "get_orders", "get_order_detail", "order_snapshot", "quote_delivery", "bulk_create_orders", "find_order", "run_graphql_query"} {
		require.Contains(t, open, name)
	}
	shown := 0
	for _, raw := range open {
		if strings.Contains(raw, "98765") {
			shown++
		}
	}
	require.Greater(t, shown, 4)
	hide(cloud.LocalDelivery)
	for name, raw := range calls() {
		require.Empty(t, amounts.FindAllString(raw, -1), "%s: %.2000s", name, raw)
		if strings.Contains(open[name], "98765") {
			require.Contains(t, raw, `price_hidden\":true`, name)
		}
	}
}
