package graphql_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/api"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/graphql"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/route"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/cloud/webtest"
)

var update = flag.Bool("update", false, "rewrite the golden schema")

// anywhere is a guard that takes every address.
type anywhere struct{}

func (anywhere) CheckURL(context.Context, string) error { return nil }

type rig struct {
	t *testing.T
	w *webtest.World
	s *graphql.Server
	// key is sent as Idempotency-Key, unless it is empty; replayed says whether
	// the last answer was a repeat's.
	key      string
	replayed bool
}

func newRig(t *testing.T) *rig {
	w := webtest.New(t)
	line := catalog.NewPipeline(catalog.Config{FindToken: w.FindToken, Hidden: api.PricesHidden, Calls: w.DB, Limits: catalog.Limits{Anonymous: -1, Authenticated: -1}})
	orders := order.New(order.Config{Store: w.DB, Sealer: storetest.Box(t)})
	table := api.New(api.Config{Store: w.DB, Pipeline: line, Auth: w.Auth, Gate: auth.NewGate(w.Auth, auth.GateConfig{PerIP: 1000, PerEmail: 1000}), Lockers: w.Lockers, Tracking: tracking.New(w.DB), Orders: orders, Routes: route.New(route.Config{Store: w.DB, Orders: orders}), Receivers: webhook.New(w.DB, anywhere{})})
	s, err := graphql.New(graphql.Config{Catalog: table, Pipeline: line})
	require.NoError(t, err)
	return &rig{t: t, w: w, s: s}
}

// ask sends a query; further pairs are token, accept, language.
func (r *rig) ask(query string, vars map[string]any, more ...string) (int, map[string]any) {
	r.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": vars})
	require.NoError(r.t, err)
	return r.send(body, more...)
}

func (r *rig) send(body []byte, more ...string) (int, map[string]any) {
	r.t.Helper()
	more = append(more, "", "", "")
	q := graphql.Request{Body: body, Accept: more[1], Key: r.key, Who: catalog.Who{RequestID: "req-1", IP: "192.0.2.1", Language: "en", BaseURL: "https://api.example.com"}}
	if more[0] != "" {
		q.Authorization = "Bearer " + more[0]
	}
	if more[2] != "" {
		q.Language = more[2]
	}
	a := r.s.Serve(context.Background(), q)
	r.replayed = a.Replayed
	var m map[string]any
	require.NoError(r.t, json.Unmarshal(a.Body, &m), "%s", a.Body)
	return a.Status, m
}

func (r *rig) failed(m map[string]any, code string, status float64) {
	r.t.Helper()
	require.NotEmpty(r.t, m["errors"], "%v", m)
	x := m["errors"].([]any)[0].(map[string]any)["extensions"].(map[string]any)
	require.Equal(r.t, code, x["code"], "%v", m)
	require.Equal(r.t, code, x["error_code"])
	require.Equal(r.t, status, x["http_status"])
	require.Equal(r.t, "req-1", x["request_id"])
}

// Answers come in one piece: what would split them is neither shown nor taken.
func TestNoDirectiveThatIsNotObeyed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, m := r.ask(`{ __schema { directives { name } } }`, nil)
	require.NotContains(t, fmt.Sprint(m), "defer")
	_, m = r.ask(`{ ... @defer { __typename } }`, nil)
	r.failed(m, "BAD_REQUEST", 400)
}

// The schema as callers see it: review reads the difference.
func TestSchema(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const path = "testdata/schema.graphql"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(r.s.Schema()), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run with -update to write it")
	require.Equal(t, string(want), r.s.Schema())
}

func TestPublicFields(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	status, m := r.ask(`query ($n: String!) {
	  t: trackingPublic(trackingNumber: $n) { __typename tracking_number otep_status status_label recipient ...journey packages locker }
	  otepTracking(trackingNumber: $n, format: "amazon")
	}
	fragment journey on TrackingResult { events { tracking_event_key phase @include(if: true) description @skip(if: true) } }`, map[string]any{"n": webtest.Waiting})
	require.Equal(t, 200, status)
	require.Empty(t, m["errors"])
	d := m["data"].(map[string]any)
	tr := d["t"].(map[string]any)
	require.Equal(t, "TrackingResult", tr["__typename"])
	require.Equal(t, webtest.Waiting, tr["tracking_number"])
	require.Equal(t, "x-available_for_pickup", tr["otep_status"])
	require.Equal(t, "J*** S***", tr["recipient"].(map[string]any)["name"])
	require.Equal(t, map[string]any{"tracking_event_key": "x-available_for_pickup", "phase": "out_for_delivery"}, tr["events"].([]any)[0])
	require.Equal(t, webtest.Waiting, d["otepTracking"].(map[string]any)["trackingId"])

	status, m = r.ask(`{ trackingPublic(trackingNumber: "NOBODY") { tracking_number } otepTracking(trackingNumber: "`+webtest.Waiting+`") }`, nil, "", "", "de")
	require.Equal(t, 200, status)
	r.failed(m, "TRACKING_NOT_FOUND", 404)
	require.Nil(t, m["data"].(map[string]any)["trackingPublic"], "and the rest is there")
	require.NotNil(t, m["data"].(map[string]any)["otepTracking"])
	require.Equal(t, []any{"trackingPublic"}, m["errors"].([]any)[0].(map[string]any)["path"])
	require.Contains(t, m["errors"].([]any)[0].(map[string]any)["message"], "Nummer")
}

// The same rights as over REST: nothing without a token but what is public.
func TestRights(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, m := r.ask(`{ me { id } }`, nil)
	r.failed(m, "UNAUTHENTICATED", 401)
	require.Nil(t, m["data"])
	_, m = r.ask(`{ me { id } }`, nil, "unknown-token")
	r.failed(m, "TOKEN_INVALID", 401)
	_, m = r.ask(`{ me { account_type email business_id } }`, nil, r.w.Tokens[cloud.Customer])
	require.Equal(t, map[string]any{"account_type": "customer", "email": r.w.Emails[cloud.Customer], "business_id": 42.0}, m["data"].(map[string]any)["me"])
	_, m = r.ask(`mutation ($e: String!, $p: String!) { userLogin(email: $e, password: $p) { access_token token_type } }`,
		map[string]any{"e": r.w.Emails[cloud.ClientAdmin], "p": webtest.Password})
	login := m["data"].(map[string]any)["userLogin"].(map[string]any)
	require.Equal(t, "Bearer", login["token_type"])
	_, m = r.ask(`{ me { account_type } }`, nil, login["access_token"].(string))
	require.Equal(t, "client_admin", m["data"].(map[string]any)["me"].(map[string]any)["account_type"])
	_, m = r.ask(`mutation { userLogin(email: "a@b.example", password: "wrong") { access_token } }`, nil)
	r.failed(m, "INVALID_CREDENTIALS", 401)
}

// A variable that does not fit is named by its path, in the caller's language, and so is what it
// has to be.
func TestVariablesThatDoNotFit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for variables, want := range map[string][2]string{
		`"query ($n: String!) { otepTracking(trackingNumber: $n) }","variables":{}`:                                                                                               {"n", "n is required."},
		`"query ($n: String!) { otepTracking(trackingNumber: $n) }","variables":{"n":null}`:                                                                                       {"n", "n is required."},
		`"query ($n: String!) { otepTracking(trackingNumber: $n) }","variables":{"n":7}`:                                                                                          {"n", "n must be a text."},
		`"query ($a: [String!]) { otepTracking(trackingNumber: $a) }","variables":{"a":["x",[]]}`:                                                                                 {"", ""},
		`"mutation ($p: [DistributionPackageInput!]!) { thirdPartyAnnouncedPackagesCreate(packages: $p) { packages { package_number } } }","variables":{"p":[{},{"weight":"x"}]}`: {"p.1.weight", "p[1].weight must be a number."},
		`"mutation ($p: [DistributionPackageInput!]!) { thirdPartyAnnouncedPackagesCreate(packages: $p) { packages { package_number } } }","variables":{"p":[{"nope":1}]}`:        {"p.0.nope", "p[0].nope is no member that is known here."},
	} {
		_, m := r.send([]byte(`{"query":` + variables + `}`))
		first := m["errors"].([]any)[0].(map[string]any)
		if want[0] == "" {
			require.NotContains(t, first["message"], "slice")
			continue
		}
		require.Equal(t, want[1], first["message"], variables)
		require.Equal(t, []any{want[1]}, first["extensions"].(map[string]any)["errors"].(map[string]any)[want[0]], variables)
	}
}

// GraphQL over HTTP: what is answered with which status.
func TestStatuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const modern = "application/graphql-response+json"
	f := func(body string, status, modernStatus int, code string) {
		t.Helper()
		got, m := r.send([]byte(body))
		require.Equal(t, status, got, body)
		r.failed(m, code, 400)
		require.NotContains(t, m, "data")
		got, _ = r.send([]byte(body), "", modern)
		require.Equal(t, modernStatus, got, body)
	}
	f(`{`, 400, 400, "MALFORMED_JSON")
	f(`"query"`, 400, 400, "MALFORMED_JSON")
	f(`{"query":7}`, 400, 400, "MALFORMED_JSON")
	f(`{"variables":[]}`, 400, 400, "MALFORMED_JSON")
	f(`{}`, 400, 400, "BAD_REQUEST")
	f(`{"query":"{ me { id "}`, 200, 400, "BAD_REQUEST")
	f(`{"query":"{ nothing }"}`, 200, 400, "BAD_REQUEST")
	f(`{"query":"{ me { nothing } }"}`, 200, 400, "BAD_REQUEST")
	f(`{"query":"query A { me { id } } query B { me { id } }"}`, 400, 400, "BAD_REQUEST")
	f(`{"query":"query A { me { id } }","operationName":"B"}`, 400, 400, "BAD_REQUEST")
	f(`{"query":"query ($n: String!) { otepTracking(trackingNumber: $n) }"}`, 200, 400, "BAD_REQUEST")
	f(`{"query":"query ($n: String!) { otepTracking(trackingNumber: $n) }","variables":{"n":7}}`, 200, 400, "BAD_REQUEST")
	got, m := r.send([]byte(`{"query":"{ me { id } }"}`), "", modern)
	require.Equal(t, 200, got, "a field that failed is no failed request")
	r.failed(m, "UNAUTHENTICATED", 401)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	number := fmt.Sprintf("%q", webtest.Waiting)
	f := func(query, message string) {
		t.Helper()
		_, m := r.ask(query, nil)
		require.NotContains(t, m, "data")
		require.Contains(t, fmt.Sprint(m["errors"]), message)
	}
	f("{ "+strings.Repeat(" ", 20_001)+" me { id } }", "20015 characters; at most 20000")
	f("{ "+strings.Repeat("a ", 4_001)+"}", "")
	many, roots := "", ""
	for i := range 201 {
		many += fmt.Sprintf("a%d: id ", i)
	}
	for i := range 11 {
		roots += fmt.Sprintf("a%d: otepTracking(trackingNumber: %s) ", i, number)
	}
	f("{ me { "+many+"} }", "too much")
	f("{ "+roots+"}", "too much")
	_, m := r.ask("{ a: otepTracking(trackingNumber: "+number+") ...x } fragment x on Query { b: otepTracking(trackingNumber: "+number+") }", nil)
	require.Len(t, m["data"], 2)
}

// Names are proposed for a few that are not known; for many they would cost more than all else.
func TestNamesAreProposedForAFew(t *testing.T) {
	r := newRig(t)
	for n, proposed := range map[int]bool{1: true, graphql.MaxProblems: true, graphql.MaxProblems + 1: false, graphql.MaxSelections: false} {
		_, a := r.ask("{"+strings.Repeat("ordersLis ", n)+"}", nil)
		said := fmt.Sprint(a["errors"])
		require.Contains(t, said, "Cannot query field", n)
		require.Equal(t, proposed, strings.Contains(said, "Did you mean"), "%d: %s", n, said)
	}
	_, a := r.ask("{"+strings.Repeat("ordersLis ", graphql.MaxSelections+1)+"}", nil)
	require.Contains(t, fmt.Sprint(a["errors"]), "240 selections")
}

// The tools of others read the whole schema.
func TestIntrospection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	status, m := r.ask(`{ __schema { queryType { name } mutationType { name } subscriptionType { name } directives { name locations args { name type { ...t } } }
	  types { kind name description fields(includeDeprecated: true) { name args { name defaultValue type { ...t } } type { ...t } isDeprecated }
	    inputFields { name type { ...t } } interfaces { name } enumValues { name } possibleTypes { name } } }
	  __type(name: "User") { name fields { name type { kind ofType { name } } } } nobody: __type(name: "Nobody") { name } }
	fragment t on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }`, nil)
	require.Equal(t, 200, status)
	require.Empty(t, m["errors"])
	d := m["data"].(map[string]any)
	require.Nil(t, d["nobody"])
	schema := d["__schema"].(map[string]any)
	require.Equal(t, "Query", schema["queryType"].(map[string]any)["name"])
	require.Nil(t, schema["subscriptionType"])
	names := map[string]bool{}
	for _, x := range schema["types"].([]any) {
		names[x.(map[string]any)["name"].(string)] = true
	}
	for _, want := range []string{"Query", "Mutation", "TrackingResult", "TrackingEvent", "User", "LoginResult", "DateTime", "JSON", "Long", "__Schema", "Boolean"} {
		require.True(t, names[want], want)
	}
	require.Equal(t, "User", d["__type"].(map[string]any)["name"])

	// The documents whose answers are kept need the same rights.
	standard, err := os.ReadFile("testdata/introspection-default.graphql")
	require.NoError(t, err)
	_, m = r.ask(string(standard), nil)
	require.Empty(t, m["errors"])
	_, m = r.ask(string(standard), nil, "unknown-token")
	r.failed(m, "TOKEN_INVALID", 401)
	require.Nil(t, m["data"])
}

func FuzzRequest(f *testing.F) {
	for _, seed := range []string{`{"query":"{ me { id } }"}`, `{"query":"{ __schema { types { name } } }"}`, `{"query":"{ ...a } fragment a on Query { ...a }"}`,
		`{"query":"query ($a: [String!]) { otepTracking(trackingNumber: $a) }","variables":{"a":[[]]}}`} {
		f.Add([]byte(seed))
	}
	line := catalog.NewPipeline(catalog.Config{FindToken: func(context.Context, [32]byte) (auth.Session, error) { return auth.Session{}, cloud.ErrNotFound }, Limits: catalog.Limits{Anonymous: 1}})
	s, err := graphql.New(graphql.Config{Catalog: api.New(api.Config{Pipeline: line}), Pipeline: line})
	require.NoError(f, err)
	for range 2 { // no call is let in: only the request is tried
		_ = line.Take("ip/x", 1)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a := s.Serve(context.Background(), graphql.Request{Body: body, Who: catalog.Who{IP: "x", Language: "en"}})
		require.Contains(t, []int{200, 400}, a.Status)
		require.True(t, json.Valid(a.Body))
	})
}
