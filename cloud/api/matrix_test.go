package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/ring"
)

// login is a token of its own for one call: some calls end theirs.
func (x *world) login(token string, scopes ...string) string {
	s, err := x.w.FindToken(x.t.Context(), auth.Hash(token))
	require.NoError(x.t, err)
	fresh := auth.NewToken()
	ch := cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: auth.Hash(fresh), AccountID: s.Account.ID, Name: "test", ExpiresAt: time.Now().Add(time.Hour)}}}}
	if s.Account.Type == cloud.ClientEmployee {
		s.Account.Permissions = scopes
		ch.Accounts = []cloud.Account{s.Account}
	}
	x.w.Write(x.t, ch)
	return fresh
}

// field is a document that asks for one root field with just what it needs;
// arguments that are ids have the given one.
func (x *world) field(schema *ast.Schema, o catalog.Operation, c call) string {
	given := map[string]any{}
	if c.body != "" {
		require.NoError(x.t, json.Unmarshal([]byte(c.body), &given), o.Name)
	}
	if c.path != "" {
		for _, s := range segments(o.Path, c.path) {
			given[strings.Trim(s[0], "{}")] = s[1]
		}
	}
	root, kind := schema.Query, "query"
	if o.GraphQL.Mutation {
		root, kind = schema.Mutation, "mutation"
	}
	def := root.Fields.ForName(o.GraphQL.Field)
	require.NotNil(x.t, def, o.Name)
	var literal func(t *ast.Type) string
	literal = func(t *ast.Type) string {
		in := schema.Types[t.Name()]
		switch {
		case t.Elem != nil:
			return "[" + literal(t.Elem) + "]"
		case in.Kind == ast.InputObject:
			var members []string
			for _, f := range in.Fields {
				if f.Type.NonNull {
					members = append(members, f.Name+": "+literal(f.Type))
				}
			}
			return "{" + strings.Join(members, ", ") + "}"
		case in.Kind == ast.Enum:
			return in.EnumValues[0].Name
		case t.Name() == "Int", t.Name() == "Float", t.Name() == "Long":
			return "1"
		case t.Name() == "Boolean":
			return "true"
		}
		return `"x"`
	}
	var said func(t *ast.Type, v any) string // a value of JSON
	said = func(t *ast.Type, v any) string {
		switch in := schema.Types[t.Name()]; v := v.(type) {
		case []any:
			var list []string
			for _, e := range v {
				list = append(list, said(t.Elem, e))
			}
			return "[" + strings.Join(list, ", ") + "]"
		case map[string]any:
			var members []string
			for name, e := range v {
				if f := in.Fields.ForName(name); f != nil {
					members = append(members, name+": "+said(f.Type, e))
				}
			}
			return "{" + strings.Join(members, ", ") + "}"
		case string:
			if in.Kind == ast.Enum || t.Name() == "Int" || t.Name() == "Long" {
				return v
			}
			return strconv.Quote(v)
		default:
			raw, err := json.Marshal(v)
			require.NoError(x.t, err)
			return string(raw)
		}
	}
	members := map[string]string{} // by argument
	for _, m := range o.Members() {
		words := strings.Split(m.Name, "_")
		for i, w := range words[1:] {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
		members[strings.Join(words, "")] = m.Name
	}
	var args []string
	for _, a := range def.Arguments {
		v, known := given[members[a.Name]]
		if a.Name == "input" && o.GraphQL.Input && c.body != "" {
			v, known = given, true
		}
		switch {
		case known:
			args = append(args, a.Name+": "+said(a.Type, v))
		case a.Type.NonNull:
			args = append(args, a.Name+": "+literal(a.Type))
		}
	}
	out := def.Name
	if len(args) > 0 {
		out += "(" + strings.Join(args, ", ") + ")"
	}
	if schema.Types[def.Type.Name()].Kind == ast.Object {
		out += " { __typename }"
	}
	return kind + " { " + out + " }"
}

func (x *world) ask(query, token string) answer {
	body, err := json.Marshal(map[string]string{"query": query})
	require.NoError(x.t, err)
	a := x.do("POST", "/api/graphql", token, string(body))
	if errs, ok := a.json["errors"].([]any); ok {
		e := errs[0].(map[string]any)["extensions"].(map[string]any)
		a.status = int(e["http_status"].(float64))
		a.json = map[string]any{"error_code": e["code"], "details": e["details"]}
	}
	return a
}

// Every operation, by every kind of account and without one, over both faces: a caller
// that is not in its row gets exactly the answer that says so, every other caller gets
// past.
func TestEveryOperationLetsInWhomItsRowNames(t *testing.T) {
	ring.SkipUnlessCheck(t, "single operations; this one walks over all of them")
	t.Parallel()
	x := newWorld(t)
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: x.graph.Schema()})
	require.Nil(t, err)
	gates := []string{"UNAUTHENTICATED", "ACCOUNT_TYPE_NOT_ALLOWED", "FORBIDDEN", "TOKEN_INVALID"}
	tried := map[string]int{}
	for _, o := range x.table.Operations() {
		faces := map[string]func(token string) answer{"REST": func(token string) answer {
			body := ""
			if o.HasBody() || o.Raw() != nil {
				body = "{}"
			}
			return x.do(o.Method, unknown(o.Path, "987654"), token, body)
		}}
		if o.GraphQL != nil {
			query := x.field(schema, o, call{})
			faces["GraphQL"] = func(token string) answer { return x.ask(query, token) }
		}
		for face, call := range faces {
			expect := func(a answer, status int, code string, who any) {
				t.Helper()
				tried[code]++
				require.Equal(t, code, a.code(), "%s, %s, %v: %s", o.Name, face, who, a.body)
				require.Equal(t, status, a.status, "%s, %s, %v", o.Name, face, who)
			}
			pass := func(a answer, who any) {
				t.Helper()
				tried["passed"]++
				require.NotContains(t, gates, a.code(), "%s, %s, %v: %s", o.Name, face, who, a.body)
			}
			if o.NoToken {
				pass(call("any-token-at-all"), "a token that is not looked at")
			} else {
				for _, bad := range []string{"unknown-token", x.w.Expired, strings.Repeat("x", 300)} {
					code := "TOKEN_INVALID"
					if o.NoTokenCode != "" {
						code = o.NoTokenCode
					}
					expect(call(bad), 401, code, "a bad token")
				}
			}
			if o.Types == nil {
				pass(call(""), "nobody")
			} else {
				expect(call(""), 401, "UNAUTHENTICATED", "nobody")
			}
			for typ, token := range x.w.Tokens {
				switch {
				case o.Types != nil && !slices.Contains(o.Types, typ):
					expect(call(x.login(token, "*")), 403, "ACCOUNT_TYPE_NOT_ALLOWED", typ)
				case typ == cloud.ClientEmployee && len(o.Scopes) > 0:
					a := call(x.login(token))
					expect(a, 403, "FORBIDDEN", typ)
					require.Equal(t, o.Scopes[0], at(a.json, "details", "scope"))
					pass(call(x.login(token, o.Scopes...)), typ)
				default:
					pass(call(x.login(token)), typ)
				}
			}
		}
	}
	for _, code := range append(gates, "passed") {
		require.Greater(t, tried[code], 20, code)
	}
}

// done counts audit lines of what was done.
func (x *world) done() int {
	n := 0
	for _, l := range x.audits() {
		if strings.Contains(l.Detail, `"outcome":"done"`) {
			n++
		}
	}
	return n
}

// unknown puts names of nothing into an address.
func unknown(path, id string) string {
	for {
		i, j := strings.Index(path, "{"), strings.Index(path, "}")
		if i < 0 {
			return path
		}
		path = path[:i] + id + path[j+1:]
	}
}

// shared are operations whose address names what is not of one business.
var shared = []string{"tracking.public", "otep.tracking", "otep.events", "features.switch", "admin.features.grant", "platformAppBootstrap", "customer.parcels.open", "customer.parcels.hand_over", "customer.parcels.take_back", "customer.parcels.return", "customer.parcels.find_return", "customer.dropoffs.find", "customer.dropoffs.cancel", "apps.find", "apps.save"}

// What belongs to another business is answered, byte for byte, as what there
// is not; and it is there for its own.
func TestWhatIsForeignLooksLikeNothing(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestAnotherBusinessIsNotThere")
	t.Parallel()
	x := newWorld(t)
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: x.graph.Schema()})
	require.Nil(t, err)
	tried := 0
	for _, o := range x.table.Operations() {
		if !strings.Contains(o.Path, "{") || slices.Contains(shared, o.Name) {
			continue
		}
		c := x.call(o)
		before := x.done()
		given := segments(o.Path, c.path)
		for typ, token := range x.w.Others {
			if !slices.Contains(o.Types, typ) {
				continue
			}
			tried++
			token = x.login(token, "*")
			foreign := x.do(o.Method, c.path, token, c.body)
			require.Equal(t, 404, foreign.status, "%s by %s: %s", o.Name, typ, foreign.body)
			for _, none := range []string{"987654", "0", "-1", "9223372036854775807", "no-such-thing"} {
				for i := range given { // what is left over stays the foreign one
					path := o.Path
					for k, g := range given {
						if k == i || k < i {
							g[1] = none
						}
						path = strings.Replace(path, g[0], g[1], 1)
					}
					nothing := x.do(o.Method, path, token, c.body)
					require.Equal(t, string(foreign.body), string(nothing.body), "%s by %s at %s", o.Name, typ, path)
					require.Equal(t, foreign.status, nothing.status)
				}
			}
			if o.GraphQL != nil {
				seen := x.ask(x.field(schema, o, c), token)
				require.Equal(t, 404, seen.status, "%s: %s", o.Name, seen.body)
				nothing := c
				nothing.path = unknown(o.Path, "987654")
				require.Equal(t, string(seen.body), string(x.ask(x.field(schema, o, nothing), token).body), o.Name)
			}
		}
		require.Equal(t, before, x.done(), "%s did something", o.Name)
		own := x.do(o.Method, c.path, x.login(x.token(c.as), "*"), c.body)
		require.NotContains(t, []int{401, 403, 404}, own.status, "%s: %s", o.Name, own.body)
	}
	require.Greater(t, tried, 40)
}

// segments are the {names} of an address with what stands there.
func segments(pattern, path string) [][2]string {
	var out [][2]string
	path, _, _ = strings.Cut(path, "?")
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	for i, s := range want {
		if strings.HasPrefix(s, "{") {
			out = append(out, [2]string{s, have[i]})
		}
	}
	return out
}

// The same for ids that stand elsewhere than in the address, and for what hangs
// on something of one's own.
func TestForeignIDsInsideOfCallsLookLikeNothing(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	id, ref := x.order(cloud.OrderNew)
	var number string
	number, _ = at(x.made("GET", "/api/v1/orders/"+id, x.token(admin), ""), "order", "tracking_number").(string)
	require.NotEmpty(t, number)
	secret := x.providerToken()
	with := func(format, v string) string { return fmt.Sprintf(format, v) }
	for _, c := range []struct {
		as                 cloud.AccountType
		method, path, body string // %s is the id
		foreign, unknown   string
	}{
		{admin, "GET", "/api/v1/orders/detail?order_id=%s", "", id, "987654"},
		{admin, "GET", "/api/v1/orders/detail?order_ref=%s", "", ref, "NONE-1"},
		{admin, "GET", "/api/v1/orders/detail?tracking_number=%s", "", number, "NONE1"},
		{admin, "GET", "/api/v1/orders/search?query=%s", "", ref, "NONE-1"},
		{admin, "POST", "/api/v1/tracking/operationevents", `{"order_id":%s}`, id, "987654"},
		{admin, "POST", "/api/v1/tracking/operationevents", `{"tracking_number":"%s"}`, number, "NONE1"},
		{admin, "POST", "/api/v1/client/orderCreate", `{"customer_id":%s,` + orderOf("")[1:], "5", "987654"},
		{admin, "DELETE", "/api/v1/providers/18/tokens/%s", "", secret, "987654"},
		{admin, "POST", "/api/v1/smart-lockers/devices/90/grids/%s/unblock", "{}", "8809", "987654"},
		{provider, "POST", partner + "/deliveries", strings.Replace(deliveryOf("F", 88, "F-1"), "88", "%s", 1), "88", "987654"},
		{provider, "GET", partner + "/deliveries/ref:%s", "", "SWP-REF-88", "NONE-1"},
		{provider, "POST", partner + "/deliveries/ref:%s/cancel", "{}", "SWP-REF-88", "NONE-1"},
	} {
		ask := func(v string) answer {
			path, body := c.path, c.body
			if strings.Contains(path, "%s") {
				path = with(path, v)
			} else {
				body = with(body, v)
			}
			return x.do(c.method, path, x.w.Others[c.as], body)
		}
		require.Equal(t, string(ask(c.unknown).body), string(ask(c.foreign).body), "%s %s", c.method, c.path)
	}
	a := x.do("POST", "/api/v1/orders/time-windows", x.w.OtherAdmin, `{"order_refs":["`+ref+`"],"time_window_start":"09:00","time_window_end":"10:00"}`)
	none := x.do("POST", "/api/v1/orders/time-windows", x.w.OtherAdmin, `{"order_refs":["NONE-1"],"time_window_start":"09:00","time_window_end":"10:00"}`)
	require.Equal(t, strings.ReplaceAll(string(none.body), "NONE-1", ref), string(a.body))
	subscribe := `{"tracking_numbers":["%s"],"url":"https://hooks.example.com/parcels"}`
	for _, token := range x.w.Others { // the numbers that it asked about, and nothing of theirs
		a := x.do("POST", "/api/v1/otep/subscriptions", token, with(subscribe, number))
		none := x.do("POST", "/api/v1/otep/subscriptions", token, with(subscribe, "NONE-1"))
		require.Equal(t, none.status, a.status)
		require.Equal(t, strings.ReplaceAll(string(none.body), "NONE-1", number), string(a.body))
	}
	for _, o := range x.table.Operations() { // lists, and whatever else names nothing in its address
		if strings.Contains(o.Path, "{") || o.Types == nil {
			continue
		}
		c := x.call(o)
		for typ, token := range x.w.Others {
			if slices.Contains(o.Types, typ) {
				a := x.do(o.Method, c.path, x.login(token, "*"), c.body)
				for _, theirs := range []string{number, "42.example", "swiftparcel", "hooks.example/postern", "Jane", "LD-000064021", webtest.Waiting, webtest.PickupCode, webtest.DeliveryCode, webtest.Secret} {
					require.NotContains(t, string(a.body), theirs, "%s by %s", o.Name, typ)
				}
			}
		}
	}
}
