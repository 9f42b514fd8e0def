package api_test

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/internal/ring"
)

// listCase is a list operation with what grows it.
type listCase struct {
	as      cloud.AccountType // "" is admin
	path    string            // "" is the operation's
	key     map[string]any    // what else is asked for
	other   map[string]any    // the same list with another filter
	rows    string            // path of the rows in an answer
	id      string            // path of a row's id
	back    bool              // rows of a page are in the other order than pages
	add     func()            // one row; nil when the list does not grow
	atFirst func(l *listCase) // rows that are there from the beginning; nil adds six
}

// lists are all list operations, by name.
func (x *world) lists() map[string]listCase {
	keep := func(f func() string) func() { return func() { f() } }
	ofOrder := func(s cloud.OrderStatus) func() { return func() { x.order(s) } }
	person := func(path, body string) func() {
		return func() {
			name := x.next("p")
			x.made("POST", path, x.token(admin), fmt.Sprintf(body, name, name, name))
		}
	}
	later := func(id cloud.AccountID) func() { // a login that is newer than all before
		return func() {
			x.n++
			at := time.Now().Add(time.Duration(x.n) * time.Second)
			x.w.Write(x.t, cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: auth.Hash(auth.NewToken()), AccountID: id, CreatedAt: at, ExpiresAt: at.Add(time.Hour)}}}})
		}
	}
	sorted := map[string]any{"sort": "id"}
	route := keep(x.route)
	changed, said := "", "" // paths of an order and of its messages
	return map[string]listCase{
		"users.list":            {other: sorted, rows: "users", id: "id", add: person("/api/v1/users", `{"account_type":"client_employee","name":%q,"email":"%s@acme.example","password":"long enough %s"}`)},
		"customers.list":        {other: sorted, key: map[string]any{"sort": "name"}, rows: "customers", id: "id", add: person("/api/v1/customers", `{"name":"`+strings.Repeat("<漢", 55)+`%s","email":"%s@acme.example","password":"long enough %s"}`)},
		"providers.list":        {other: sorted, key: map[string]any{"sort": "-created_at"}, rows: "providers", id: "id", add: person("/api/v1/providers", `{"code":%q,"name":"Quick Box %s %s","services":["otep"]}`)},
		"providers.tokens.list": {path: "/api/v1/providers/17/tokens", other: sorted, rows: "tokens", id: "id", add: keep(x.providerToken)},
		"user.api_keys.list":    {other: sorted, rows: "api_keys", id: "id", add: keep(x.key)},
		"user.sessions.list":    {other: sorted, rows: "sessions", id: "session_id", add: later(1)},
		"users.sessions.list":   {path: "/api/v1/users/2/sessions", other: sorted, rows: "sessions", id: "session_id", add: later(2)},
		"audit.list": {other: map[string]any{"actor": "account:1"}, rows: "lines", id: "id", add: func() {
			x.made("PUT", "/api/v1/user/locale", x.login(x.token(admin)), `{"locale":"de"}`)
		}},
		"invitations.list": {other: sorted, rows: "invitations", id: "invitation_id", add: func() { x.invitation() }},
		"user.agents.list": {other: sorted, rows: "agents", id: "id", add: keep(x.agent)},

		"orders.list":       {other: map[string]any{"type": "D"}, key: map[string]any{"sort": "priority"}, rows: "orders", id: "order_id", add: ofOrder(cloud.OrderNew)},
		"orders.exceptions": {other: map[string]any{"customer_id": 5}, rows: "exceptions", id: "order_id", add: ofOrder(cloud.OrderHold)},
		"orders.operations": {other: map[string]any{"operation_types": []int{1001}}, rows: "events", id: "id", atFirst: func(l *listCase) {
			id, _ := x.order(cloud.OrderNew)
			changed = "/api/v1/orders/" + id
			l.key = map[string]any{"order_id": json.Number(id)}
			for range 5 {
				x.made("PATCH", changed, x.token(admin), `{"note":"`+x.next("n")+`"}`)
			}
		}, add: func() { x.made("PATCH", changed, x.token(admin), `{"note":"`+x.next("n")+`"}`) }},
		"orders.job": {rows: "results", id: "row", atFirst: func(l *listCase) {
			var orders []string
			for range 5 {
				orders = append(orders, orderOf(x.next("JOB-")))
			}
			id, _ := at(x.made("POST", "/api/v1/client/batchOrderCreateAsync", x.token(admin), `{"orders":[`+strings.Join(orders, ",")+`]}`), "asyncId").(string)
			l.path = "/api/v1/client/async/" + id
			var done []cloud.JobRow
			for i := range orders {
				done = append(done, cloud.JobRow{JobID: id, Row: i + 1, Input: []byte(`{}`), Result: fmt.Appendf(nil, `{"row":%d}`, i+1)})
			}
			x.w.Write(x.t, cloud.Changes{JobChanges: cloud.JobChanges{JobRows: done}})
		}},
		"jobs.list": {other: map[string]any{"status": "checked"}, rows: "jobs", id: "job_id", add: func() { x.bulk(x.token(admin), "orders", cloud.JobChecked) }},
		"jobs.rows": {rows: "rows", id: "row", atFirst: func(l *listCase) {
			id := x.bulk(x.token(admin), "orders", cloud.JobChecked)
			l.path = "/api/v1/jobs/" + id + "/rows"
			var more []cloud.JobRow
			for i := range 5 {
				more = append(more, cloud.JobRow{JobID: id, Row: i + 2, Input: []byte(`{"cells":["D"]}`), Checked: []byte(`{}`)})
			}
			x.w.Write(x.t, cloud.Changes{JobChanges: cloud.JobChanges{JobRows: more}})
		}},
		"broker_order_assignments.list": {other: map[string]any{"status": "revoked"}, rows: "assignments", id: "id", add: keep(x.held)},
		"third_party.assignments.list":  {other: map[string]any{"provider_id": 17}, rows: "assignments", id: "assignment_number", add: func() { x.entrusted(false) }},
		"third_party.webhook_deliveries.list": {as: provider, other: map[string]any{"status": "pending"}, rows: "deliveries", id: "id", add: func() {
			x.made("POST", fmt.Sprintf("%s/webhook-deliveries/%d/redeliver", partner, x.w.Outbox), x.token(provider), "")
		}},
		"third_party.lockers.list": {as: provider, other: map[string]any{"keyword": "p"}, rows: "lockers", id: "device_id", add: func() {
			x.enrolledCabinet()
		}},
		"public.pickup_points": {key: map[string]any{"client_code": "acme"}, other: map[string]any{"q": "p"}, rows: "pickup_points", id: "device_id", add: func() {
			x.made("PATCH", fmt.Sprintf("/api/v1/smart-lockers/devices/%d", x.enrolledCabinet()), x.token(admin), `{"public":true}`)
		}},
		"customer.parcels.list":       {as: cloud.Customer, rows: "parcels", id: "delivery_number", add: func() { x.waitsFor(x.w.Emails[cloud.Customer]) }},
		"third_party.deliveries.list": {as: provider, other: map[string]any{"status": "created"}, key: map[string]any{"device_id": 88}, rows: "deliveries", id: "delivery_id", add: keep(x.delivery)},
		"otep.containers.list":        {other: map[string]any{"kind": "bag"}, rows: "containers", id: "container_id", add: keep(x.stacked)},
		"tracking_subscriptions.list": {rows: "subscriptions", id: "subscription_id", add: keep(x.subscribed)},
		"webhook_logs.list":           {other: map[string]any{"status": "pending"}, rows: "logs", id: "id", add: keep(x.told)},

		"routes.list":    {other: sorted, key: map[string]any{"sort": "date"}, rows: "routes", id: "route_id", add: route},
		"drivers.routes": {path: "/api/v1/drivers/4/routes", other: sorted, rows: "routes", id: "route_id", add: route},
		"driver.routes": {as: cloud.DriverAccount, other: map[string]any{"date": "2099-12-01"}, rows: "routes", id: "route_id", add: func() {
			route, _ := x.planned(false)
			x.made("POST", "/api/v1/routes/"+route+"/dispatch", x.token(admin), `{}`)
		}},
		"drivers.list": {other: map[string]any{"status": "active"}, key: map[string]any{"keyword": "sam", "sort": "name"}, rows: "drivers", id: "driver_id", add: func() {
			x.made("POST", "/api/v1/driver/register", "", `{"client_code":"acme","name":"Sam","phone":"+14165550177","email":"`+x.next("sam")+`@acme.example","password":"long enough"}`)
		}},
		"platform.businesses.list": {as: cloud.PlatformAdmin, rows: "businesses", id: "business_id", add: func() { x.business() }},
		"platform.health.list": {as: cloud.PlatformAdmin, rows: "health", id: "business_id", add: func() {
			x.business()
			require.NoError(x.t, x.w.DB.CountBusinesses(x.t.Context(), time.Now()))
		}},
		"platform.passes.list":                {as: cloud.PlatformAdmin, path: "/api/v1/platform/businesses/42/passes", rows: "passes", id: "pass_id", add: func() { x.pass() }},
		"operator_passes.list":                {rows: "passes", id: "pass_id", add: func() { x.pass() }},
		"platform.audit.list":                 {as: cloud.PlatformAdmin, other: map[string]any{"actor": "account:6"}, rows: "lines", id: "id", add: func() { x.business() }},
		"smart_lockers.deliveries.list":       {other: map[string]any{"status": "created"}, key: map[string]any{"device_id": 88}, rows: "deliveries", id: "delivery_id", add: keep(x.delivery)},
		"notifications.list":                  {other: map[string]any{"status": "waiting"}, key: map[string]any{"delivery_id": 64021}, rows: "notifications", id: "notification_id", add: func() { x.notified(false) }},
		"sandbox.messages.list":               {other: map[string]any{"delivery_id": 64021}, key: map[string]any{"delivery_id": 64023}, rows: "messages", id: "message_id", add: func() { x.notified(true) }},
		"smart_lockers.rollouts.list":         {other: map[string]any{"state": "stopped"}, rows: "rollouts", id: "rollout_id", add: func() { x.rollout(cloud.RolloutStopped) }},
		"smart_lockers.profiles.list":         {rows: "cabinet_profiles", id: "cabinet_profile_id", add: keep(x.cabinetProfile)},
		"smart_lockers.devices.diagnoses":     {path: "/api/v1/smart-lockers/devices/88/diagnoses", other: sorted, rows: "diagnoses", id: "diagnosis_id", add: keep(x.diagnosis)},
		"otep.reviews.list":                   {other: map[string]any{"status": "decided"}, rows: "reviews", id: "review_id", add: keep(x.review)},
		"sites.list":                          {rows: "sites", id: "location_id", add: keep(x.site)},
		"third_party.announced_packages.list": {as: provider, other: map[string]any{"member_number": "M-204"}, rows: "packages", id: "package_number", add: keep(x.packageAnnounced)},
		"package_distribution.packages.list":  {key: map[string]any{"location_id": 12}, rows: "packages", id: "package_number", add: keep(x.packageAnnounced)},
		"device_orders.list":                  {other: map[string]any{"status": "stored"}, key: map[string]any{"device_id": 89}, rows: "device_orders", id: "id", add: keep(x.stored)},
		"device_order_exceptions.list": {other: map[string]any{"status": "all"}, key: map[string]any{"device_id": 88}, rows: "exceptions", id: "exception_id", add: func() {
			x.n++
			x.w.Write(x.t, cloud.Changes{LockerChanges: cloud.LockerChanges{Exceptions: []cloud.Exception{{ID: cloud.ExceptionID(700 + x.n), BusinessID: 42, DeviceID: 88, GridCode: "A01", Source: x.next("x"), Type: "door_left_open", Severity: "medium", Status: "open", OpenedAt: time.Now()}}}})
		}},
		"approvals.list": {other: map[string]any{"status": "all"}, rows: "approvals", id: "approval_id", add: keep(x.approval)},
		"order_chat.messages": {other: map[string]any{"limit": 3}, rows: "messages", id: "message_id", back: true, atFirst: func(l *listCase) {
			id, _ := x.said()
			said = "/api/v1/order-chat/orders/" + id + "/messages"
			l.path = said
			for range 4 {
				l.add()
			}
		}, add: func() {
			x.made("POST", said, x.token(admin), `{"client_message_id":"`+x.next("m")+`","text":"Hello"}`)
		}},
		"smart_lockers.devices.list": {other: map[string]any{"status": "online"}, key: map[string]any{"sort": "device_name"}, rows: "devices", id: "device_id", add: func() {
			x.made("POST", "/api/v1/smart-lockers/devices", x.token(admin), cabinetOf(x.next("PIER-")))
		}},
		"smart_lockers.devices.door_reports": {path: "/api/v1/smart-lockers/devices/88/door-reports", rows: "door_reports", id: "opening_id", add: func() {
			x.n++
			x.w.Write(x.t, cloud.Changes{LockerChanges: cloud.LockerChanges{Openings: []cloud.Opening{{ID: x.next("op_"), BusinessID: 42, DeviceID: 88, State: cloud.OpeningEnded, RequestedAt: time.Now().Add(time.Duration(x.n) * time.Second)}}}})
		}},
		"order_chat.conversations": {other: map[string]any{"status": "open"}, rows: "conversations", id: "order_id", add: func() { x.said() }},
	}
}

// askList asks for a page of a list.
func (x *world) askList(o catalog.Operation, l listCase, more map[string]any) answer {
	x.t.Helper()
	path, token, body := cmp.Or(l.path, o.Path), x.token(cmp.Or(l.as, admin)), ""
	asked := map[string]any{}
	for _, part := range []map[string]any{l.key, more} {
		for k, v := range part {
			asked[k] = v
		}
	}
	if o.Method == "POST" {
		raw, err := json.Marshal(asked)
		require.NoError(x.t, err)
		body = string(raw)
	} else {
		q := url.Values{}
		for k, v := range asked {
			q.Set(k, fmt.Sprint(v))
		}
		path += "?" + q.Encode()
	}
	return x.do(o.Method, path, token, body)
}

// ids are those of an answer's rows.
func (x *world) ids(o catalog.Operation, l listCase, a answer) (out []string) {
	x.t.Helper()
	require.Equal(x.t, 200, a.status, "%s: %s", o.Name, a.body)
	rows, ok := at(a.json, l.rows).([]any)
	require.True(x.t, ok, "%s: %s", o.Name, a.body)
	for _, r := range rows {
		id := at(r, l.id)
		require.NotNil(x.t, id, "%s: %v", o.Name, r)
		out = append(out, fmt.Sprint(id))
	}
	if l.back {
		slices.Reverse(out)
	}
	return out
}

// isList reports whether an operation answers a part of a list.
func isList(o catalog.Operation) bool {
	has := func(t reflect.Type, name string) bool {
		return t != nil && t.Kind() == reflect.Struct && slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
			n, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return n == name || f.Tag.Get("query") == name
		})
	}
	return has(o.In(), "per_page") || has(o.Out(), "per_page")
}

// Every list is asked for in one way: by pages, or by a cursor, with which rows that
// are added meanwhile shift nothing.
func TestEveryListHasPagesAndCursors(t *testing.T) {
	ring.SkipUnlessCheck(t, "cloud/store pages the same lists")
	var names []string
	for _, o := range newWorld(t).table.Operations() {
		if isList(o) {
			names = append(names, o.Name)
			for typ, want := range map[reflect.Type]reflect.Type{o.In(): reflect.TypeFor[check.Keyset](), o.Out(): reflect.TypeFor[check.PageOutput]()} {
				require.True(t, slices.ContainsFunc(reflect.VisibleFields(typ), func(f reflect.StructField) bool { return f.Anonymous && f.Type == want }), "%s: %s has no %s", o.Name, typ, want)
			}
		}
	}
	for name := range newWorld(t).lists() {
		require.Contains(t, names, name)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { t.Parallel(); walkList(t, name) })
	}
}

func walkList(t *testing.T, name string) {
	x := newWorld(t)
	l, ok := x.lists()[name]
	if family, _ := strings.CutSuffix(name, "list"); !ok && x.row(family+"find") != nil { // a simple family
		rows := family[strings.LastIndex(family[:len(family)-1], ".")+1 : len(family)-1]
		l, ok = listCase{other: map[string]any{"sort": "id"}, rows: rows, id: strings.TrimSuffix(rows, "s") + "_id", add: func() { x.row(family + "find") }}, true
	}
	require.True(t, ok, "the test has no rows for %s", name)
	o := x.table.Find(name)
	if l.atFirst == nil {
		l.atFirst = func(l *listCase) {
			for range 6 {
				l.add()
			}
		}
	}
	l.atFirst(&l)
	all := x.ids(*o, l, x.askList(*o, l, map[string]any{"per_page": 200}))
	require.Greater(t, len(all), 4)

	var paged []string
	for page := 1; len(paged) < len(all); page++ {
		a := x.askList(*o, l, map[string]any{"per_page": 2, "page": page})
		found := x.ids(*o, l, a)
		require.NotEmpty(t, found)
		paged = append(paged, found...)
		require.EqualValues(t, len(all), a.json["total"])
		require.EqualValues(t, page, a.json["page"])
		require.EqualValues(t, 2, a.json["per_page"])
		require.Equal(t, len(paged) < len(all), a.json["next_cursor"] != nil)
	}
	require.Equal(t, all, paged)

	a := x.askList(*o, l, map[string]any{"per_page": 2})
	first, _ := a.json["next_cursor"].(string)
	require.NotEmpty(t, first)
	got := x.ids(*o, l, a)
	for pages := 0; a.json["next_cursor"] != nil; pages++ {
		if l.add != nil && pages < 3 {
			l.add()
		}
		require.Less(t, pages, 50)
		a = x.askList(*o, l, map[string]any{"per_page": 2, "cursor": a.json["next_cursor"]})
		got = append(got, x.ids(*o, l, a)...)
	}
	once := slices.Clone(got)
	slices.Sort(once)
	require.Len(t, slices.Compact(once), len(got), "a row comes twice: %v", got)
	require.Equal(t, all, slices.DeleteFunc(slices.Clone(got), func(id string) bool { return !slices.Contains(all, id) }))

	raw, err := base64.RawURLEncoding.DecodeString(first)
	require.NoError(t, err)
	hash := raw[:8]
	text := func(raw ...byte) string { return base64.RawURLEncoding.EncodeToString(raw) }
	refused := func(of string, more map[string]any) {
		t.Helper()
		a := x.askList(*o, l, more)
		require.Equal(t, 422, a.status, "%s: %s", of, a.body)
		require.Equal(t, check.Code, a.code())
	}
	for _, member := range []string{"page", "per_page"} { // which count from 1
		refused(member+" 0", map[string]any{member: 0})
		refused(member+" below 0", map[string]any{member: -1})
	}
	refused("a page", map[string]any{"cursor": first, "page": 2})
	if l.other != nil {
		other := map[string]any{"cursor": first}
		for k, v := range l.other {
			other[k] = v
		}
		refused("another filter", other)
	}
	for _, mark := range []string{"", "[]", `[{},1]`, `[1.5,"x"]`, `[true,1]`, `["x","\u0000"]`, `[null,null]`} {
		refused("a mark that is none: "+mark, map[string]any{"cursor": text(append(slices.Clone(hash), mark...)...)})
	}
	refused("no cursor at all", map[string]any{"cursor": "x"})
	refused("half a cursor", map[string]any{"cursor": first[:len(first)/2]})
	stranger := slices.Clone(raw)
	stranger[0] ^= 1
	refused("another list", map[string]any{"cursor": text(stranger...)})
}
