package order

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// people is a view of one customer.
type people struct {
	cloud.View
	customer cloud.Account
}

func (p people) Account(cloud.AccountID) (cloud.Account, error) { return p.customer, nil }

// Prices are sent, but not to a customer from whom they are hidden.
func TestPricesInEvents(t *testing.T) {
	t.Parallel()
	prices := &cloud.OrderPrices{Currency: "CAD", Details: []cloud.PriceDetail{{Code: "base"}}}
	f := func(hidden, customer bool) map[string]any {
		t.Helper()
		p := people{customer: cloud.Account{ID: 3}}
		if hidden {
			p.customer.PriceHidden = []string{cloud.LocalDelivery}
		}
		d := &Decision{View: p, Order: cloud.Order{ID: 7, CustomerID: 3, Prices: prices, Note: "fragile", CreatedAt: time.Now()}}
		data, err := (&eventWriter{d: d, customer: customer}).created()
		require.NoError(t, err)
		raw, err := json.Marshal(data)
		require.NoError(t, err)
		var out map[string]any
		require.NoError(t, json.Unmarshal(raw, &out))
		return out
	}
	members := []string{"shipping_price", "tax", "total_price", "currency", "price_details"}
	for _, shown := range []map[string]any{f(false, true), f(true, false), f(false, false)} {
		for _, name := range members {
			require.Contains(t, shown, name)
		}
		require.NotContains(t, shown, "price_hidden")
	}
	secret := f(true, true)
	for _, name := range members {
		require.NotContains(t, secret, name)
	}
	require.Equal(t, true, secret["price_hidden"])
	require.Nil(t, secret["note"])
	require.Equal(t, "fragile", f(true, false)["note"])
}
