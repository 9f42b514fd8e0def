package api_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
)

// A search finds records of every noun that the caller may read, exact hits first, and
// none of another business.
func TestSearchFindsWhatTheCallerMayRead(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	id, _ := x.order(cloud.OrderNew)
	detail := x.do("GET", "/api/v1/orders/"+id, x.token(admin), "")
	number, _ := at(detail.json, "order", "tracking_number").(string)
	require.NotEmpty(t, number)
	foreign := x.w.Delivery
	foreign.ID, foreign.BusinessID, foreign.Number, foreign.Reference = 990, x.w.Other.ID, "LD-000990990", "elsewhere"
	person := cloud.Account{ID: 7001, BusinessID: x.w.Other.ID, Type: cloud.Customer, Name: "Foreign Customer", Email: "foreign@b.example", Enabled: true}
	x.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{foreign}}, AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{person}}})
	found := func(token, text string) map[string][]string {
		a := x.do("GET", "/api/v1/search?query="+url.QueryEscape(text), token, "")
		require.Equal(t, 200, a.status, "%s %s", text, a.body)
		out := map[string][]string{}
		groups, _ := a.json["groups"].([]any)
		for i, g := range groups {
			noun, _ := at(g.(map[string]any), "noun").(string)
			hits, _ := at(g.(map[string]any), "hits").([]any)
			require.NotEmpty(t, hits)
			for _, h := range hits {
				id, _ := at(h.(map[string]any), "id").(string)
				if at(h.(map[string]any), "exact") == true {
					require.Zero(t, i, "exact hits come first")
					id += "!"
				}
				out[noun] = append(out[noun], id)
			}
		}
		return out
	}
	staff := x.token(admin)
	device, delivery := strconv.Itoa(int(x.w.Device.ID)), strconv.Itoa(int(x.w.Delivery.ID))
	require.Equal(t, map[string][]string{"order": {id + "!"}}, found(staff, strings.ToLower(number)))
	require.Equal(t, map[string][]string{"order": {id + "!"}}, found(staff, strings.ToLower(number)+"-1"), "the number of its package")
	require.Empty(t, found(staff, number+"-99"))
	require.Equal(t, []string{device + "!"}, found(staff, x.w.Device.Code)["cabinet"])
	require.Equal(t, []string{delivery + "!"}, found(staff, strings.ToLower(x.w.Delivery.Number))["delivery"])
	require.Equal(t, []string{delivery + "!"}, found(staff, x.w.Delivery.Packages[0].TrackingNumber)["delivery"])
	require.Equal(t, []string{"1!"}, found(staff, x.w.Emails[admin])["user"])
	require.NotEmpty(t, found(staff, "driver")["driver"])
	ravi := cloud.Account{ID: 7003, BusinessID: x.w.Business.ID, Type: cloud.Broker, Name: "Ravi Das", Email: "ravi@a.example", Enabled: true}
	x.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{ravi}}})
	for _, text := range []string{"Ravi", "ravi das", "Das"} {
		require.Equal(t, []string{"7003"}, found(staff, text)["user"], text)
		require.Empty(t, found(x.w.OtherAdmin, text), text)
		require.Empty(t, found(x.token(cloud.Broker), text)["user"], text)
	}
	for text, id := range map[string]string{"swift": "17", "Swift Parcel": "17!", "parcel": "17", "swiftparcel": "17!"} {
		require.Equal(t, []string{id}, found(staff, text)["provider"], text)
		require.Empty(t, found(x.w.OtherAdmin, text)["provider"], text)
		require.Empty(t, found(x.token(cloud.Broker), text)["provider"], text)
	}
	require.NotEmpty(t, found(staff, "customer")["customer"])

	for _, text := range []string{foreign.Number, "elsewhere", "foreign@b", "Foreign Customer", "LD-00099"} {
		require.Empty(t, found(staff, text), text)
	}
	for _, text := range []string{`"`, `""`, `'; --`, `%%`, `__`, `\\`, "OR 1=1", "a* NOT b", "NEAR(a b)", "(((", "  ", "🚪🚪", strings.Repeat("x", 120), strings.Repeat("漢", 120)} {
		a := x.do("GET", "/api/v1/search?query="+url.QueryEscape(text), staff, "")
		require.Contains(t, []int{200, 422}, a.status, text)
		require.Empty(t, a.json["groups"], text)
	}
	require.Equal(t, 422, x.do("GET", "/api/v1/search?query="+strings.Repeat("x", 121), staff, "").status)
	require.Equal(t, 422, x.do("GET", "/api/v1/search?query=a", staff, "").status)
	require.Equal(t, 401, x.do("GET", "/api/v1/search?query=abc", "", "").status)

	// An employee without rights finds nothing; with one, records of it alone.
	require.Empty(t, found(x.login(x.token(cloud.ClientEmployee)), "LD-0"))
	locker := found(x.login(x.token(cloud.ClientEmployee), "lockers:read"), x.w.Delivery.Number)
	require.Equal(t, map[string][]string{"delivery": {delivery + "!"}}, locker)
	require.Empty(t, found(x.login(x.token(cloud.ClientEmployee), "lockers:read"), number))
	require.Equal(t, map[string][]string{"order": {id + "!"}}, found(x.login(x.token(cloud.ClientEmployee), "orders:read"), number))

	// A parcel is found by its recipient's name or telephone number by who may list parcels,
	// and of their business alone.
	parcel := x.w.Delivery
	parcel.ID, parcel.Number, parcel.Reference, parcel.Packages = 991, "LD-000990991", "leeward", []cloud.Package{{TrackingNumber: "1ZLEE", Size: "S"}}
	parcel.Recipient = cloud.Recipient{Name: "Quentin Lee", Phone: "+1 (647) 555-0199"}
	foreign.Recipient = parcel.Recipient
	x.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{parcel, foreign}}})
	for _, text := range []string{"quentin", "Lee", "quentin lee", "+16475550199", "647 555-0199"} {
		require.Equal(t, []string{"991"}, found(staff, text)["delivery"], text)
		require.Equal(t, map[string][]string{"delivery": {"991"}}, found(x.login(x.token(cloud.ClientEmployee), "lockers:read"), text), text)
		require.Empty(t, found(x.login(x.token(cloud.ClientEmployee), "orders:read"), text), text)
		require.Empty(t, found(x.token(cloud.Customer), text)["delivery"], text)
		require.Empty(t, found(x.token(cloud.Broker), text)["delivery"], text)
		require.Equal(t, []string{"990"}, found(x.w.OtherAdmin, text)["delivery"], text)
	}

	// Customers and contractors find their own orders alone.
	order, err := strconv.Atoi(id)
	require.NoError(t, err)
	var of cloud.AccountID
	require.NoError(t, x.w.DB.Look(t.Context(), func(v cloud.View) error {
		o, err := v.Order(x.w.Business.ID, cloud.OrderID(order))
		of = o.CustomerID
		return err
	}))
	other := cloud.Account{ID: 7002, BusinessID: x.w.Business.ID, Type: cloud.Customer, Name: "Another", Email: "another@a.example", Enabled: true}
	token := auth.NewToken()
	x.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{other}, Tokens: []cloud.Token{{Hash: auth.Hash(token), AccountID: other.ID, Name: "test", ExpiresAt: time.Now().Add(time.Hour)}}}})
	require.Empty(t, found(token, number))
	if of != 0 {
		require.Equal(t, map[string][]string{"order": {id + "!"}}, found(x.token(cloud.Customer), number))
	}
	require.NotContains(t, found(x.token(cloud.Customer), "ustomer"), "customer")
	require.NotContains(t, found(x.token(cloud.Broker), x.w.Delivery.Number), "delivery")
}
