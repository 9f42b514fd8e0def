package order_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/store/storetest"
)

func (w *world) priceList(l *cloud.PriceList) {
	w.t.Helper()
	require.NoError(w.t, w.db.Decide(w.t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(42)
		b.Settings.Currency, b.Settings.Prices = "CAD", l
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}, err
	}))
}

var list = cloud.PriceList{Base: 899, IncludedKilograms: 2, PerKilogram: 50, PerPackage: 205, CODFee: 150, TaxCode: "tax_hst", TaxPercent: 13, Countries: []string{"CA"}, MaxKilograms: 40}

func quote(in order.CreateInput) order.RateInput {
	q := order.RateInput{Type: in.Type, Packages: in.Packages, Options: order.RateOptions{COD: in.COD}}
	if a := in.Sender; a != nil {
		q.Origin = &order.RateAddress{PostalCode: a.PostalCode, Country: a.Country}
	}
	if a := in.Recipient; a != nil {
		q.Destination = &order.RateAddress{PostalCode: a.PostalCode, Country: a.Country}
	}
	return q
}

func TestPrices(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		in := input(cloud.DeliveryOrder) // 2.4 kg and 1 lb
		require.Nil(t, w.create(w.staff, in).TotalPrice, "no list, no price")
		out, err := w.orders.Rate(ctx, w.staff, quote(in))
		require.NoError(t, err)
		require.False(t, out.Serviceable)
		require.Equal(t, "NO_PRICE_RULE", *out.Reason)
		require.NotNil(t, out.Rates)

		w.priceList(&list)
		o := w.create(w.customer, in)
		// 8.99 + one begun kilogram 0.50 + one further package 2.05 = 11.54; 13 % of it is 1.5002.
		require.Equal(t, []cloud.Money{1154, 150, 1304}, []cloud.Money{*o.ShippingPrice, *o.Tax, *o.TotalPrice})
		require.Equal(t, "CAD", *o.Currency)
		require.Equal(t, "unpaid", o.PaymentStatus)
		cash := cloud.Money(5000)
		in.COD = &cash
		out, err = w.orders.Rate(ctx, w.customer, quote(in))
		require.NoError(t, err)
		require.True(t, out.Serviceable)
		rate := out.Rates[0]
		require.Equal(t, cloud.Money(1304), rate.Shipping)
		require.Len(t, rate.Details, 5)

		// The rate keeps its price while the list changes.
		dearer := list
		dearer.Base = 9999
		w.priceList(&dearer)
		in.RateID = rate.ID
		o = w.create(w.customer, in)
		require.Equal(t, rate.Total, *o.TotalPrice)
		in.RateID = ""
		require.Greater(t, *w.create(w.customer, in).TotalPrice, rate.Total)

		// It is for this customer, these packages and this place, and no caller makes one up.
		in.RateID = rate.ID
		require.Equal(t, "RATE_MISMATCH", failure(w.orders.Create(ctx, w.other, in)))
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.Create)(ctx, w.stranger, in)))
		more := in
		more.Packages = append(more.Packages[:1:1], order.PackageInput{Weight: 30})
		require.Equal(t, "RATE_MISMATCH", failure(w.orders.Create(ctx, w.customer, more)))
		away := in
		away.Recipient = address("Jane")
		away.Recipient.PostalCode = "H2X 1Y4"
		require.Equal(t, "RATE_MISMATCH", failure(w.orders.Create(ctx, w.customer, away)))
		for _, id := range []string{"rate_", "x", rate.ID[:20], rate.ID + "A", "rate_" + rate.ID[6:]} {
			in.RateID = id
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.Create)(ctx, w.customer, in)), id)
		}

		// What is not done says why.
		far, heavy := quote(in), quote(in)
		far.Destination = &order.RateAddress{PostalCode: "10001", Country: "us"}
		heavy.Packages = []order.PackageInput{{Weight: 41}}
		for reason, q := range map[string]order.RateInput{"OUT_OF_SERVICE_AREA": far, "OVERSIZE": heavy} {
			out, err = w.orders.Rate(ctx, w.staff, q)
			require.NoError(t, err)
			require.Equal(t, reason, *out.Reason)
			require.Empty(t, out.Rates)
		}
		in.RateID, in.Recipient = "", address("Jane")
		in.Recipient.Country = "US"
		require.Equal(t, "OUT_OF_SERVICE_AREA", failure(w.orders.Create(ctx, w.staff, in)))
		for _, q := range []order.RateInput{{}, {Type: "D"}, {Type: "D", Packages: heavy.Packages}, {Type: "P2P", Packages: heavy.Packages, Destination: far.Destination}} {
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.Rate)(ctx, w.staff, q)))
		}
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(w.orders.Rate(ctx, w.driver, heavy)))
	})
}

func TestRatesEnd(t *testing.T) {
	t.Parallel()
	db := storetest.OpenSQLite(t)
	w := newWorld(t, db)
	w.priceList(&list)
	in := input(cloud.DeliveryOrder)
	out, err := w.orders.Rate(t.Context(), w.staff, quote(in))
	require.NoError(t, err)
	in.RateID = out.Rates[0].ID
	ends, err := time.Parse(time.RFC3339, out.Rates[0].ExpiresAt)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(30*time.Minute), ends, time.Minute)
	w.create(w.staff, in)
	order.SetNow(w.orders, func() time.Time { return time.Now().Add(31 * time.Minute) })
	require.Equal(t, "RATE_EXPIRED", failure(w.orders.Create(t.Context(), w.staff, in)))
}
