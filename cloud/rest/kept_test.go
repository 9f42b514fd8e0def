package rest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// What an account is answered is what is stored, after each change, for each caller in its turn, beside
// others that read the same all the time. Calls with a trace are always read.
func TestKeptAnswersFollowEachChange(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.False(t, r.w.DB.Peers(), "several nodes keep no answers to accounts")
	admin := r.w.Tokens[cloud.ClientAdmin]
	carrier := cloud.Provider{ID: 17, BusinessID: 42, Code: "swiftparcel", Name: "Swift Parcel", Services: []string{"otep"}, LivemodeAllowed: true}
	widen := func(scope string) {
		carrier.Scope = scope
		r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{carrier}}})
	}
	widen(cloud.ScopeAll)
	rnd := rand.New(rand.NewPCG(7, 7))
	var ids, numbers []string
	for range 3 {
		g := r.do("POST", "/api/v1/client/orderCreate", admin, `{"type":"D","packages":[{"weight":1},{"weight":2}],"recipient":{"name":"Ada","phone":"+14165550123","address_line1":"100 Queen St W","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"}}`)
		require.Equal(t, 201, g.status, "%s", g.body)
		ids = append(ids, fmt.Sprintf("%.0f", g.json["order_id"]))
		number := g.json["tracking_number"].(string)
		numbers = append(numbers, number, number+"-1", number+"-2")
	}
	callers := []string{admin, r.provider(), r.w.Tokens[cloud.ClientEmployee], r.w.Tokens[cloud.Customer], r.w.Stranger, r.w.OtherAdmin, ""}
	hits := 0
	look := func() {
		t.Helper()
		for _, number := range numbers {
			for i, token := range callers {
				for _, format := range []string{"", "?format=epcis"} {
					path := "/api/v1/otep/trackings/" + number + format
					fresh := r.do("GET", path, token, "", "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
					kept := r.do("GET", path, token, "")
					if fresh.status != 200 { // with the id of its request
						fresh.body, kept.body = []byte(fresh.code()), []byte(kept.code())
					}
					require.Equal(t, []any{fresh.status, string(fresh.body), fresh.header("ETag")}, []any{kept.status, string(kept.body), kept.header("ETag")}, "%s, caller %d", path, i)
					if kept.status == 200 {
						hits++
						if tag := kept.header("ETag"); tag != "" {
							require.Equal(t, 304, r.do("GET", path, token, "", "If-None-Match", tag).status)
						}
					}
				}
			}
		}
	}
	events := 0
	for step := range 30 {
		at := rnd.IntN(len(ids))
		subject := numbers[3*at+rnd.IntN(3)]
		switch rnd.IntN(6) {
		case 0, 1:
			events++
			g := r.do("POST", "/api/v1/otep/ingest", r.provider(), fmt.Sprintf(`{"otep_version":"0.1","subject":{"tracking_number":%q},"events":[{"event_id":"e-%d","status_code":"in_transit","occurred_at":"2026-06-10T11:%02d:00Z","source":{"type":"carrier"}}]}`, subject, events, step))
			require.Equal(t, 200, g.status, "%s", g.body)
		case 2:
			r.do("POST", "/api/v1/otep/ingest", r.provider(), fmt.Sprintf(`{"otep_version":"0.1","subject":{"tracking_number":%q},"events":[],"withdrawals":[{"event_id":"e-%d","reason":"did_not_occur"}]}`, subject, events))
		case 3:
			g := r.do("PATCH", "/api/v1/orders/"+ids[at], admin, fmt.Sprintf(`{"delivery_instruction":"Ring %d times"}`, step))
			require.Equal(t, 200, g.status, "%s", g.body)
		case 4:
			g := r.do("POST", "/api/v1/orders/"+ids[at]+"/tracking-number", admin, `{}`)
			if g.status < 300 {
				order := g.json["order"].(map[string]any)
				number := order["tracking_number"].(string)
				numbers[3*at], numbers[3*at+1], numbers[3*at+2] = number, number+"-1", number+"-2"
			}
		case 5: // the provider's rights
			widen("")
			look()
			widen(cloud.ScopeAll)
		}
		look()
	}
	require.Greater(t, hits, 100)
	g := r.do("DELETE", "/api/v1/orders/"+ids[0], admin, "")
	require.Equal(t, 200, g.status, "%s", g.body)
	look()
}
