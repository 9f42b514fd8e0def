package api_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// A country that ISO 3166-1 does not assign is refused wherever an operation takes one, with
// what is allowed, in the caller's language; Kosovo's is taken. An order that has such a
// country from before is read, searched and changed as any other.
func TestCountriesThatOperationsTake(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	me := x.login(x.token(admin))
	in := func(country, body string) string {
		return strings.ReplaceAll(body, `"country":"CA"`, `"country":"`+country+`"`)
	}
	id, ref := x.order(cloud.OrderNew)
	const from = `{"postal_code":"M5H 2N2","country":"CA"}`
	for name, c := range map[string]struct{ method, path, member, body string }{
		"a new order":     {"POST", "/api/v1/client/orderCreate", "recipient.country", orderOf(x.next("SO-"))},
		"a changed order": {"PATCH", "/api/v1/orders/" + id, "recipient.country", `{"recipient":` + address + `}`},
		"a price":         {"POST", "/api/v1/orders/rate", "destination.country", `{"type":"D","destination":` + from + `,"packages":[{"weight":2.5}]}`},
		"the settings":    {"PUT", "/api/v1/settings", "country", `{"country":"CA"}`},
	} {
		for _, bad := range []string{"XX", "AA", "QM", "ZZ", "EU", "UK", "xa"} {
			a := x.do(c.method, c.path, me, in(bad, c.body), "Accept-Language", "de")
			require.Equal(t, "VALIDATION_FAILED", a.code(), "%s %s: %s", name, bad, a.body)
			require.Equal(t, []any{c.member + " muss ein Ländercode aus zwei Buchstaben sein, den ISO 3166-1 vergibt, zum Beispiel CA, DE oder US."}, at(a.json, "errors").(map[string]any)[c.member], name)
		}
		for _, good := range []string{"XK", "DE", "ca"} {
			a := x.do(c.method, c.path, me, strings.ReplaceAll(in(good, c.body), `"order_ref":"`, `"order_ref":"`+good))
			require.Less(t, a.status, 300, "%s %s: %s", name, good, a.body)
		}
	}
	require.Equal(t, "CA", x.read("/api/v1/settings", "settings", "country"), "it is kept in capital letters")

	var old cloud.Order
	require.NoError(t, x.w.DB.Look(t.Context(), func(v cloud.View) error {
		list, err := v.OrdersByRef(42, ref)
		old = list[0]
		return err
	}))
	old.Recipient.Country = "XX"
	x.w.Write(t, cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{old}}})
	require.Equal(t, "XX", x.read("/api/v1/orders/"+id, "order", "recipient", "country"))
	x.made("PATCH", "/api/v1/orders/"+id, me, `{"note":"still there"}`)
	require.Contains(t, string(x.do("GET", "/api/v1/orders/search?query="+ref, me, "").body), ref)
}
