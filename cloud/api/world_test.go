package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/api"
	"github.com/postern-io/postern/cloud/app"
	"github.com/postern-io/postern/cloud/approval"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/chat"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/graphql"
	"github.com/postern-io/postern/cloud/live"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/push"
	"github.com/postern-io/postern/cloud/rest"
	"github.com/postern-io/postern/cloud/route"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/cloud/webhook/sender"
	"github.com/postern-io/postern/cloud/webtest"
)

// world is the whole table over a filled store, behind both faces.
type world struct {
	t     *testing.T
	w     *webtest.World
	table *catalog.Catalog
	asked *approval.Service
	graph *graphql.Server
	files *object.Folder
	dial  func() (net.Conn, error)
	c     *fasthttp.Client
	n     int // things that were made
}

type openGuard struct{}

func (openGuard) CheckURL(context.Context, string) error { return nil }

// somewhere is where every name leads, and answering a receiver there that
// takes everything.
type somewhere struct{}

func (somewhere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

func answering(context.Context, netip.AddrPort) (net.Conn, error) {
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		if req, err := http.ReadRequest(bufio.NewReader(there)); err == nil {
			_, _ = io.Copy(io.Discard, req.Body)
			_, _ = io.WriteString(there, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		}
	}()
	return here, nil
}

func newWorld(t *testing.T) *world {
	w := webtest.New(t)
	w.Business.Settings.DriverMarksReady, w.Other.Settings.DriverMarksReady = true, true
	for _, b := range []*cloud.Business{&w.Business, &w.Other} {
		b.Settings.Features = append(slices.Clone(b.Settings.Features), cloud.Feature{Family: chat.Feature, Enabled: true})
		b.Settings.Chat.Recipient = true
	}
	w.Business.Settings.Apps = []cloud.App{{Code: "customer-app", Enabled: true}}
	w.Business.Settings.Country, w.Business.Settings.Currency = "CA", "CAD"
	w.Business.Settings.Prices = &cloud.PriceList{Base: 899, IncludedKilograms: 2, PerKilogram: 50, TaxCode: "tax_hst", TaxPercent: 13}
	w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{w.Business, w.Other}}})
	fresh := w.Delivery
	fresh.DepositedAt = time.Now().UTC() // it can still be corrected
	w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{fresh}}, TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 101, BusinessID: 42, Number: "EPCIS-1", SSCC: "106141412345678908", ProviderID: 17, Profile: "parcel"}}}})
	accounts := account.New(account.Config{Store: w.DB, KnownScope: catalog.KnownScope, KnownProfile: catalog.KnownProfile})
	receivers := webhook.New(w.DB, openGuard{}).Sending(sender.New(sender.Config{Store: w.DB, Guard: fetch.NewGuard(fetch.GuardConfig{HTTP: true}), Resolver: somewhere{}, Dial: answering}),
		func(event string) (cloud.HookSample, bool) {
			return cloud.SampleOf(slices.Concat(order.Events(), locker.Events()), event)
		})
	files, err := object.Open(t.TempDir(), bytes.Repeat([]byte{1}, 32))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, files.Close()) })
	orders := order.New(order.Config{Store: w.DB, Webhooks: receivers, Sealer: storetest.Box(t), SignFile: files.Address, Number: storetest.OldNumber})
	chats := chat.New(chat.Config{Store: w.DB, Files: files, SignFile: files.Address, Key: bytes.Repeat([]byte{2}, 32), PerMinute: -1})
	chats.LetListen(listening{})
	parcels := tracking.New(w.DB).SignFiles(files.Address).Guard(tracking.GuardConfig{Legacy: tracking.LegacyOpen})
	parcels.InviteToChat(chats.Invite)
	line := catalog.NewPipeline(catalog.Config{FindToken: w.FindToken, FindRecipient: chats.FindRecipient, Feature: accounts.Gate, Calls: w.DB, Hold: waits, Limits: catalog.Limits{Authenticated: -1, Anonymous: -1, Replay: -1, Batch: -1, Doors: -1}})
	asked := approval.New(approval.Config{Store: w.DB, Holds: catalog.Holds, Message: locale.Error, Run: held})
	table := api.New(api.Config{Store: w.DB, Pipeline: line, Auth: w.Auth, Approvals: asked, Gate: auth.NewGate(w.Auth, auth.GateConfig{PerIP: 10000, PerEmail: 10000}), Lockers: w.Lockers,
		Tracking: parcels, Files: files, Chat: chats, Orders: orders, Pushes: push.NewDesk(w.DB), Live: live.New(live.Config{Store: w.DB, Sealer: storetest.Box(t), FindToken: w.FindToken, Prefix: "tms", URL: "ssl://mqtt.example:8883", WebSocketURL: "wss://mqtt.example/mqtt",
			SeesOrders: func(s auth.Session) bool { return catalog.SessionHolds(s, "orders:read") }, SeesChats: func(s auth.Session) bool { return catalog.SessionHolds(s, "chat:read") }, SeesPushes: func(s auth.Session) bool { return catalog.SessionHolds(s, "routes:read") }}), Routes: route.New(route.Config{Store: w.DB, Orders: orders}), Receivers: receivers,
		Accounts: accounts, Apps: app.New(app.Config{Store: w.DB, Feature: accounts.Gate, Languages: []string{"en"}, Text: func(lang, key string) string { return locale.Word(lang, key) }}),
		Setup: setup.New(setup.Config{Store: w.DB, NewToken: device.NewToken}),
		Enrol: func(context.Context, string, string, []byte) (any, error) {
			return map[string]bool{"result": true}, nil
		}})
	graph, err := graphql.New(graphql.Config{Catalog: table, Pipeline: line, Timeout: 2 * time.Second})
	require.NoError(t, err)
	s := rest.New(rest.Config{Catalog: table, Pipeline: line, Timeout: 2 * time.Second, GraphQL: func(ctx context.Context, q rest.GraphQLRequest) rest.GraphQLResponse {
		return rest.GraphQLResponse(graph.Serve(ctx, graphql.Request(q)))
	}})
	ln := webtest.Serve(t, s)
	return &world{t: t, w: w, table: table, asked: asked, graph: graph, files: files, dial: ln.Dial, c: &fasthttp.Client{Dial: func(string) (net.Conn, error) { return ln.Dial() }}}
}

// listening gives credentials that open nothing.
type listening struct{}

func (listening) Issue(_ context.Context, who chat.Listener) (chat.MQTT, error) {
	m := chat.MQTT{URL: "mqtts://cloud.test:8883", ClientID: fmt.Sprint("listener-", who.Account), Username: "listener", Password: strings.Repeat("p", 32), ExpiresAt: "2026-11-20T19:12:00-05:00"}
	for _, c := range who.Channels {
		m.Topics = append(m.Topics, fmt.Sprintf("postern/order-chat/%d/%d", who.BusinessID, c.OrderID))
	}
	return m, nil
}

// requestID is sent with every request, so that answers that are alike are so
// byte for byte.
const requestID = "the-same-id"

type answer struct {
	status int
	body   []byte
	json   map[string]any
}

func (a answer) code() string { c, _ := a.json["error_code"].(string); return c }

func (x *world) do(method, path, token, body string, headers ...string) answer {
	x.t.Helper()
	var req fasthttp.Request
	var resp fasthttp.Response
	req.Header.SetMethod(method)
	req.SetRequestURI("http://cloud.test" + path)
	req.Header.Set("X-Request-Id", requestID)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.SetContentType("application/json")
		if first, _, form := strings.Cut(body, "\r\n"); form && strings.HasPrefix(first, "--") {
			req.Header.SetContentType("multipart/form-data; boundary=" + first[2:])
		}
		req.SetBodyString(body)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	require.NoError(x.t, x.c.DoTimeout(&req, &resp, 20*time.Second))
	a := answer{status: resp.StatusCode(), body: bytes.Clone(resp.Body())}
	_ = json.Unmarshal(a.body, &a.json) // some answers are no JSON
	return a
}

// made is the answer of a call that must succeed.
func (x *world) made(method, path, token, body string) map[string]any {
	x.t.Helper()
	a := x.do(method, path, token, body)
	require.Less(x.t, a.status, 300, "%s %s: %s", method, path, a.body)
	return a.json
}

// at is a member of an answer by its path.
func at(v any, path ...string) any {
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	return v
}

func (x *world) id(v any) string { x.t.Helper(); return fmt.Sprintf("%.0f", v) }

func (x *world) token(t cloud.AccountType) string { return x.w.Tokens[t] }

const (
	admin    = cloud.ClientAdmin
	provider = cloud.ProviderType
	partner  = "/api/v1/third-party-delivery"
	address  = `{"name":"Ada Moreau","phone":"+14165550123","address_line1":"100 Queen St W","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"}`
)

// next is a name that nothing has yet.
func (x *world) next(prefix string) string { x.n++; return fmt.Sprint(prefix, x.n) }

func orderOf(ref string) string {
	return fmt.Sprintf(`{"type":"D","order_ref":%q,"recipient":%s,"packages":[{"weight":2.5}]}`, ref, address)
}

// order makes an order and puts it into a status.
func (x *world) order(s cloud.OrderStatus) (id, ref string) {
	ref = x.next("SO-")
	id = x.id(at(x.made("POST", "/api/v1/client/orderCreate", x.token(admin), orderOf(ref)), "order_id"))
	if s != cloud.OrderNew {
		var o cloud.Order
		var n int64
		_, err := fmt.Sscan(id, &n)
		require.NoError(x.t, err)
		require.NoError(x.t, x.w.DB.Look(x.t.Context(), func(v cloud.View) (err error) { o, err = v.Order(42, cloud.OrderID(n)); return err }))
		o.Status = s
		x.w.Write(x.t, cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}})
	}
	return id, ref
}

// interception stops an order on its way; one for review waits for staff.
func (x *world) interception(review bool) string {
	var b cloud.Business // as it is by now
	require.NoError(x.t, x.w.DB.Look(x.t.Context(), func(v cloud.View) (err error) { b, err = v.Business(42); return err }))
	b.Settings.InterceptionReview = review
	x.w.Write(x.t, cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}})
	who := admin
	var id string
	if review {
		who = cloud.Customer
		id = x.id(at(x.made("POST", "/api/v1/client/orderCreate", x.token(who), orderOf(x.next("CU-"))), "order_id"))
	} else {
		id, _ = x.order(cloud.OrderNew)
	}
	return x.id(at(x.made("POST", "/api/v1/orders/"+id+"/interceptions", x.token(who), `{"outcome":"return_to_sender"}`), "interception", "interception_id"))
}

// entrusted gives an order to a delivery company, and with over its package too.
func (x *world) entrusted(over bool) string {
	id, _ := x.order(cloud.OrderNew)
	number := at(x.made("POST", partner+"/assignments", x.token(admin), `{"order_id":`+id+`,"provider_id":17}`), "assignment", "assignment_number").(string)
	if over {
		x.made("POST", partner+"/assignments/"+number+"/hand-over", x.token(admin), `{}`)
	}
	return number
}

func (x *world) delivery() string {
	ref := x.next("DEL-")
	return x.id(at(x.made("POST", partner+"/deliveries", x.token(provider), deliveryOf(ref, 88, ref)), "delivery", "delivery_id"))
}

func deliveryOf(ref string, device int, numbers ...string) string {
	var packages []string
	for _, n := range numbers {
		packages = append(packages, fmt.Sprintf(`{"tracking_number":%q,"size":"S"}`, n))
	}
	return fmt.Sprintf(`{"reference_number":%q,"device_id":%d,"packages":[%s],"recipient":{"name":"X","phone":"1"},"reserve":false}`, ref, device, strings.Join(packages, ","))
}

func cabinetOf(code string) string {
	return fmt.Sprintf(`{"device_name":"Pier","device_code":%q,"layout":"small"}`, code)
}

// call is one good call of an operation: by whom, for what, with what.
type call struct {
	as         cloud.AccountType
	path, body string
}

// call makes what an operation needs and says how it is called; ok is false for
// operations that are not here.
func (x *world) call(o catalog.Operation) (call, bool) {
	to := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(o.Path) }
	mine := func(s cloud.OrderStatus, body string) call {
		id, _ := x.order(s)
		return call{admin, to("{order_id}", id), body}
	}
	waiting := func(body string) call {
		return call{provider, to("{id}", "64021", "{tracking_number}", webtest.Waiting), body}
	}
	fresh := func(body string) call { return call{provider, to("{id}", x.delivery()), body} }
	plain := func(as cloud.AccountType, body string) call { return call{as, o.Path, body} }
	person := func(id, body string) call { return call{admin, to("{id}", id), body} }
	stop := func(review bool) call { return call{admin, to("{id}", x.interception(review)), `{"reason":"x"}`} }
	ref, name := x.next("REF-"), x.next("n")
	email := `"email":"` + name + `@acme.example"`
	make, ok := map[string]func() call{
		"user.login": func() call {
			return plain(admin, fmt.Sprintf(`{"email":%q,"password":%q}`, x.w.Emails[admin], webtest.Password))
		},
		"user.me":       func() call { return plain(admin, "") },
		"user.logout":   func() call { return plain(admin, "") },
		"devices.enrol": func() call { return plain(admin, `{"device_code":"X","token":"y"}`) },

		"user.api_keys.list":   func() call { return plain(admin, "") },
		"user.api_keys.create": func() call { return plain(admin, `{"name":"k"}`) },
		"user.api_keys.find":   func() call { return person(x.key(), "") },
		"user.api_keys.revoke": func() call { return person(x.key(), "") },
		"user.agents.list": func() call {
			x.agent()
			return plain(admin, "")
		},
		"user.agents.end": func() call { return person(x.agent(), "") },
		"users.list":      func() call { return plain(admin, "") },
		"users.find":      func() call { return person("2", "") },
		"users.create": func() call {
			return plain(admin, `{"account_type":"client_employee","name":"Ana",`+email+`,"password":"long enough"}`)
		},
		"users.edit":       func() call { return person("2", `{"name":"`+name+`"}`) },
		"customers.list":   func() call { return plain(admin, "") },
		"customers.find":   func() call { return person("5", "") },
		"customers.create": func() call { return plain(admin, `{"name":"Shop",`+email+`,"password":"long enough"}`) },
		"customers.edit":   func() call { return person("5", `{"name":"`+name+`"}`) },
		"settings.find":    func() call { return plain(admin, "") },
		"settings.save":    func() call { return plain(admin, `{"signature_required":true}`) },
		"features.list":    func() call { return plain(admin, "") },
		"features.switch":  func() call { return call{admin, to("{family}", "order_chat"), `{"enabled":true}`} },
		"admin.features.grant": func() call {
			return call{cloud.PlatformAdmin, to("{family}", "order_chat", "{business_id}", "42"), `{"state":"allowed","enabled":true}`}
		},
		"providers.list":          func() call { return plain(admin, "") },
		"providers.find":          func() call { return person("17", "") },
		"providers.create":        func() call { return plain(admin, `{"code":"`+name+`","name":"Quick Box","services":["otep"]}`) },
		"providers.edit":          func() call { return person("17", `{"name":"`+name+`"}`) },
		"providers.tokens.list":   func() call { return person("17", "") },
		"providers.tokens.create": func() call { return person("17", `{"name":"Production"}`) },
		"providers.tokens.revoke": func() call { return call{admin, to("{id}", "17", "{token_id}", x.providerToken()), ""} },

		"third_party.me":                              func() call { return plain(provider, "") },
		"third_party.deliveries.create":               func() call { return plain(provider, deliveryOf(ref, 88, ref)) },
		"third_party.deliveries.find":                 func() call { return waiting("") },
		"third_party.deliveries.edit":                 func() call { return fresh(`{"recipient":{"name":"Y","phone":"2"}}`) },
		"third_party.deliveries.cancel":               func() call { return fresh(`{"reason":"changed"}`) },
		"third_party.deliveries.add_package":          func() call { return fresh(`{"tracking_number":"` + ref + `"}`) },
		"third_party.deliveries.rotate_delivery_code": func() call { return fresh(`{"reason":"security"}`) },
		"third_party.deliveries.open_doors":           func() call { return fresh(`{"wait_seconds":0}`) },
		"third_party.deliveries.doors":                func() call { return waiting("") },
		"third_party.deliveries.reassign":             func() call { return fresh(`{"size":"L"}`) },
		"third_party.deliveries.confirm":              func() call { return fresh(`{}`) },
		"third_party.deliveries.fail":                 func() call { return fresh(`{"failure_code":"OTHER"}`) },
		"third_party.deliveries.correct":              func() call { return waiting(`{"reason":"wrong parcel"}`) },
		"third_party.deliveries.pickup":               func() call { return waiting("") },
		"third_party.deliveries.rotate_pickup_code":   func() call { return waiting(`{"reason":"security"}`) },
		"third_party.deliveries.extend":               func() call { return waiting(`{"hours":24}`) },
		"third_party.webhook_endpoint.find":           func() call { return plain(provider, "") },
		"third_party.webhook_endpoint.save":           func() call { return plain(provider, `{"url":"https://hooks.example/new"}`) },
		"third_party.webhook_endpoint.rotate_secret":  func() call { return plain(provider, `{}`) },
		"third_party.webhook_endpoint.test": func() call {
			x.made("PUT", partner+"/webhook-endpoint", x.token(provider), `{"url":"http://hooks.example.com/new"}`)
			return plain(provider, `{"event":"locker_delivery.delivered"}`)
		},
		"third_party.webhook_deliveries.list":      func() call { return plain(provider, "") },
		"third_party.webhook_deliveries.find":      func() call { return call{provider, to("{id}", fmt.Sprint(x.w.Outbox)), ""} },
		"third_party.webhook_deliveries.redeliver": func() call { return call{provider, to("{id}", fmt.Sprint(x.w.Outbox)), ""} },
		"third_party.deliveries.remove_package":    func() call { return x.packed(to) },
		"third_party.assignments.create": func() call {
			id, _ := x.order(cloud.OrderNew)
			return plain(admin, `{"order_id":`+id+`,"provider_id":17}`)
		},
		"third_party.assignments.list":      func() call { return plain(admin, "") },
		"third_party.assignments.find":      func() call { return call{provider, to("{assignment_number}", x.entrusted(false)), ""} },
		"third_party.assignments.hand_over": func() call { return call{admin, to("{assignment_number}", x.entrusted(false)), `{}`} },
		"third_party.assignments.cancel": func() call {
			return call{admin, to("{assignment_number}", x.entrusted(true)), `{"reason":"reassigned"}`}
		},
		"third_party.assignments.accept": func() call { return call{provider, to("{assignment_number}", x.entrusted(false)), ""} },
		"third_party.assignments.reject": func() call {
			return call{provider, to("{assignment_number}", x.entrusted(false)), `{"reason":"no van"}`}
		},
		"third_party.assignments.set_leg": func() call {
			return call{provider, to("{assignment_number}", x.entrusted(false)), `{"external_order_id":"SW-1","external_tracking_number":"` + ref + `"}`}
		},
		"third_party.assignments.report": func() call {
			number := x.entrusted(true)
			package1 := at(x.made("GET", partner+"/assignments/"+number, x.token(provider), ""), "assignment", "package_tracking_numbers").([]any)[0]
			return call{provider, to("{assignment_number}", number), fmt.Sprintf(`{"packages":[{"tracking_number":%q,"outcome":"delivered"}]}`, package1)}
		},
		"smart_lockers.devices.create": func() call { return plain(admin, cabinetOf(x.next("PIER-"))) },
		"smart_lockers.devices.renew_token": func() call {
			made := x.made("POST", "/api/v1/smart-lockers/devices", x.token(admin), cabinetOf(x.next("PIER-")))
			return person(x.id(at(made, "device", "device_id")), "")
		},
		"smart_lockers.devices.find": func() call { return person("88", "") },
		"smart_lockers.devices.command": func() call {
			return call{admin, to("{id}", "88"), `{"type":"reset_tries","reason":"a child played with it"}`}
		},
		"smart_lockers.deliveries.confirm": func() call { return call{admin, to("{id}", x.delivery()), "{}"} },
		"smart_lockers.grids.unblock":      func() call { return call{admin, to("{id}", "88", "{grid_id}", "8809"), `{"reason":"freed"}`} },

		"tracking.public":   func() call { return call{"", to("{tracking_number}", webtest.Waiting), ""} },
		"otep.tracking":     func() call { return call{"", to("{tracking_number}", webtest.Waiting), ""} },
		"otep.events":       func() call { return call{"", to("{tracking_number}", webtest.Waiting), ""} },
		"otep.batch":        func() call { return plain("", `{"tracking_numbers":["`+webtest.Waiting+`"]}`) },
		"otep.validate":     func() call { return plain("", timeline(ref)) },
		"otep.ingest":       func() call { return plain(provider, timeline(webtest.Announced)) },
		"otep.ingest_epcis": func() call { return plain(provider, epcis(x.n)) },
		"otep.epcis_events": func() call { return plain(provider, "") },

		"platformAppBootstrap":  func() call { return call{"", to("{appCode}", "customer-app", "{clientCode}", "acme"), ""} },
		"approvals.list":        func() call { x.approval(); return plain(admin, "") },
		"approvals.find":        func() call { return call{admin, to("{approval_id}", x.approval()), ""} },
		"approvals.approve":     func() call { return call{admin, to("{approval_id}", x.approval()), `{"note":"checked"}`} },
		"approvals.reject_many": func() call { return plain(admin, `{"approval_ids":["`+x.approval()+`"],"reason":"not now"}`) },
		"approvals.reject":      func() call { return call{admin, to("{approval_id}", x.approval()), `{"reason":"not now"}`} },

		"apps.list":            func() call { return plain(admin, "") },
		"apps.find":            func() call { return call{admin, to("{app_code}", "driver-app"), ""} },
		"apps.save":            func() call { return call{admin, to("{app_code}", "driver-app"), `{"radius":8}`} },
		"settings.prices.find": func() call { return plain(admin, "") },
		"settings.prices.save": func() call { return plain(admin, `{"prices":null}`) },

		"broker_order_assignments.list": func() call { return plain(admin, "") },
		"broker_order_assignments.assign": func() call {
			id, _ := x.order(cloud.OrderNew)
			return plain(admin, `{"order_ids":[`+id+`],"broker_id":3}`)
		},
		"broker_order_assignments.revoke":  func() call { return plain(admin, `{"order_ids":[`+x.held()+`]}`) },
		"broker_order_assignments.release": func() call { return plain(cloud.Broker, `{"order_id":`+x.held()+`}`) },

		"routes.create": func() call { return plain(admin, `{"date":"2099-12-01","name":"`+name+`"}`) },
		"routes.list":   func() call { return plain(admin, "") },
		"routes.find":   func() call { return call{admin, to("{route_id}", x.route()), ""} },
		"routes.update": func() call { return call{admin, to("{route_id}", x.route()), `{"name":"` + name + `"}`} },
		"routes.add": func() call {
			id, _ := x.order(cloud.OrderNew)
			return call{admin, to("{route_id}", x.route()), `{"order_ids":[` + id + `]}`}
		},
		"routes.remove": func() call {
			route, id := x.planned(false)
			return call{admin, to("{route_id}", route), `{"order_ids":[` + id + `]}`}
		},
		"routes.dispatch": func() call { route, _ := x.planned(false); return call{admin, to("{route_id}", route), `{}`} },
		"routes.cancel":   func() call { return call{admin, to("{route_id}", x.route()), `{}`} },
		"orders.driver":   func() call { return mine(cloud.OrderNew, `{"driver_id":4}`) },
		"drivers.list":    func() call { return plain(admin, "") },
		"drivers.find":    func() call { return call{admin, to("{driver_id}", "4"), ""} },
		"drivers.update":  func() call { return call{admin, to("{driver_id}", "4"), `{"skills":["heavy"]}`} },
		"drivers.routes":  func() call { return call{admin, to("{driver_id}", "4"), ""} },
		"driver.register": func() call {
			return call{"", o.Path, `{"client_code":"acme","name":"Sam","phone":"+14165550177",` + email + `,"password":"long enough"}`}
		},
		"driver.routes":                func() call { return plain(cloud.DriverAccount, "") },
		"user.live_token":              func() call { return plain(cloud.DriverAccount, `{}`) },
		"driver.push_token.set":        func() call { return plain(cloud.DriverAccount, `{"token":"`+name+`","platform":"fcm"}`) },
		"driver.push_token.remove":     func() call { return plain(cloud.DriverAccount, "") },
		"driver.pushes.list":           func() call { x.drives(to, "", "{}"); return plain(cloud.DriverAccount, "") },
		"sandbox.pushes.list":          func() call { return plain(admin, "") },
		"driver.duty":                  func() call { return plain(cloud.DriverAccount, `{"on_duty":true}`) },
		"driver.location":              func() call { return plain(cloud.DriverAccount, `{"points":[{"latitude":43.65,"longitude":-79.38}]}`) },
		"driver.orders.accept":         func() call { return x.drives(to, "", `{}`) },
		"driver.orders.decline":        func() call { return x.drives(to, "", `{}`) },
		"driver.orders.start_pickup":   func() call { return x.drives(to, "P", `{}`) },
		"driver.orders.pickup":         func() call { return x.drives(to, "P start-pickup", `{"result":"success"}`) },
		"driver.orders.start_delivery": func() call { return x.drives(to, "", `{}`) },
		"driver.orders.deliver":        func() call { return x.drives(to, "start-delivery", `{"result":"success"}`) },
		"driver.orders.ready": func() call {
			c := mine(cloud.OrderNew, `{}`)
			c.as = cloud.DriverAccount
			return c
		},

		"webhook_settings.find": func() call { return plain(admin, "") },
		"webhook_settings.save": func() call { return plain(admin, hooks) },
		"webhook_logs.list":     func() call { return plain(admin, "") },
		"webhook_logs.find":     func() call { return person(x.told(), "") },
		"webhook_logs.replay":   func() call { return person(x.told(), `{}`) },
		"webhook_settings.test": func() call { x.told(); return plain(admin, `{"url":"http://hooks.example.com/test"}`) },
		"webhook_urls.list":     func() call { x.told(); return plain(admin, "") },
		"webhook_urls.pause":    func() call { return call{admin, to("{url_id}", x.toldAt()), `{}`} },
		"webhook_urls.resume":   func() call { return call{admin, to("{url_id}", x.toldAt()), `{}`} },
		"webhook_urls.check_up": func() call { return call{admin, to("{url_id}", x.toldAt()), `{}`} },
		"webhook_logs.replay_many": func() call {
			x.told()
			return plain(admin, `{"event":"order.created"}`)
		},
		"webhook_replays.find":   func() call { return call{admin, to("{job_id}", x.replaying()), ""} },
		"webhook_replays.cancel": func() call { return call{admin, to("{job_id}", x.replaying()), ""} },

		"order_chat.settings.find": func() call { return plain(admin, "") },
		"order_chat.settings.save": func() call {
			return plain(admin, `{"auto_close_hours":48,"quick_replies":[{"id":"late","text":"I am late"}],"working_hours":[{"days":[1,2],"start":"09:00","end":"17:00"}],"auto_reply":"Later"}`)
		},
		"order_chat.conversations": func() call { x.said(); return plain(admin, "") },
		"order_chat.unread_count":  func() call { x.said(); return plain(admin, "") },
		"order_chat.find":          func() call { id, _ := x.said(); return call{admin, to("{order_id}", id), ""} },
		"order_chat.messages":      func() call { id, _ := x.said(); return call{admin, to("{order_id}", id), ""} },
		"order_chat.send": func() call {
			return mine(cloud.OrderNew, `{"client_message_id":"c-1","text":"Which door is it?","reply_to":null}`)
		},
		"order_chat.edit":   func() call { _, m := x.said(); return call{admin, to("{message_id}", m), `{"text":"Better"}`} },
		"order_chat.delete": func() call { _, m := x.said(); return call{admin, to("{message_id}", m), ""} },
		"order_chat.read": func() call {
			id, m := x.said()
			return call{admin, to("{order_id}", id), `{"last_message_id":` + m + `}`}
		},
		"order_chat.typing": func() call { return mine(cloud.OrderNew, `{"typing":true}`) },
		"order_chat.attach": func() call {
			id, _ := x.order(cloud.OrderNew)
			return plain(admin, proofOf("order_id", id, "name", "door.png"))
		},
		"order_chat.close": func() call { id, _ := x.said(); return call{admin, to("{order_id}", id), `{}`} },
		"order_chat.reopen": func() call {
			id, _ := x.said()
			x.made("POST", "/api/v1/order-chat/orders/"+id+"/close", x.token(admin), `{}`)
			return call{admin, to("{order_id}", id), `{}`}
		},
		"order_chat.participants.list":   func() call { id, _ := x.said(); return call{admin, to("{order_id}", id), ""} },
		"order_chat.participants.add":    func() call { id, _ := x.said(); return call{admin, to("{order_id}", id), `{"id":2}`} },
		"order_chat.participants.remove": func() call { id, _ := x.said(); return call{admin, to("{order_id}", id) + "?type=recipient", ""} },
		"order_chat.token":               func() call { id, _ := x.said(); return plain(admin, `{"order_ids":[`+id+`]}`) },

		"orders.exceptions": func() call { return plain(admin, "") },
		"orders.proof_files.add": func() call {
			return mine(cloud.OrderNew, proofOf("type", "photo", "service_type", "1", "service_status", "1"))
		},
		"orders.proof_files.remove": func() call {
			c := x.proof()
			return call{admin, to("{order_id}", c.order, "{file_id}", c.file), ""}
		},
		"driver.orders.proof_files": func() call {
			return x.drives(to, "", proofOf("type", "photo", "service_type", "1", "service_status", "1"))
		},
		"files.find": func() call { return call{admin, x.proof().address, ""} },
		"orders.rate": func() call {
			return plain(admin, `{"type":"D","destination":{"postal_code":"M5H 2N2","country":"CA"},"packages":[{"weight":2.5}]}`)
		},
		"orders.create": func() call { return plain(admin, orderOf(ref)) },
		"orders.list":   func() call { return plain(admin, "") },
		"orders.search": func() call { return call{admin, o.Path + "?query=SO-", ""} },
		"orders.detail": func() call { _, ref := x.order(cloud.OrderNew); return call{admin, o.Path + "?order_ref=" + ref, ""} },
		"orders.find":   func() call { return mine(cloud.OrderNew, "") },
		"orders.update": func() call { return mine(cloud.OrderNew, `{"note":"n"}`) },
		"orders.delete": func() call { return mine(cloud.OrderNew, "") },
		"orders.time_windows": func() call {
			_, ref := x.order(cloud.OrderNew)
			return plain(admin, `{"order_refs":["`+ref+`"],"time_window_start":"09:00","time_window_end":"10:00"}`)
		},
		"orders.cancel":          func() call { return mine(cloud.OrderNew, `{"reason":"x"}`) },
		"orders.hold":            func() call { return mine(cloud.OrderNew, `{"reason":"x"}`) },
		"orders.release":         func() call { return mine(cloud.OrderHold, `{}`) },
		"orders.tracking_number": func() call { return mine(cloud.OrderNew, `{}`) },
		"orders.ready":           func() call { return mine(cloud.OrderNew, `{}`) },
		"orders.reroute": func() call {
			return mine(cloud.OrderNew, `{"new_address":`+strings.Replace(address, "100", "200", 1)+`}`)
		},
		"orders.batch_async":     func() call { return plain(admin, `{"orders":[`+orderOf(ref)+`]}`) },
		"orders.job":             func() call { return person(x.job(), "") },
		"orders.operations":      func() call { _, ref := x.order(cloud.OrderNew); return plain(admin, `{"order_ref":"`+ref+`"}`) },
		"orders.intercept":       func() call { return mine(cloud.OrderPickedUp, `{"outcome":"return_to_sender"}`) },
		"orders.interceptions":   func() call { return mine(cloud.OrderNew, "") },
		"interceptions.withdraw": func() call { return stop(false) },
		"interceptions.execute":  func() call { return stop(false) },
		"interceptions.reject":   func() call { return stop(true) },
		"interceptions.approve":  func() call { return stop(true) },
	}[o.Name]
	if !ok {
		return call{}, false
	}
	return make(), true
}

// waits is a call that a person is asked about.
func waits(context.Context, *catalog.Operation, cloud.Caller, map[string]any, bool) (*catalog.Held, error) {
	return &catalog.Held{Outcome: catalog.OutcomePending, Body: map[string]any{"result": true, "outcome": catalog.OutcomePending}}, nil
}

// held runs an approved call: the order that it names is held.
func held(_ context.Context, _ cloud.Caller, a cloud.Approval) (json.RawMessage, error) {
	return json.RawMessage(`{"result":true,"order":` + string(a.Arguments) + `}`), nil
}

// approval is a write that the contractor's agent asks for.
func (x *world) approval() string {
	id, _ := x.order(cloud.OrderNew)
	s, err := x.w.FindToken(x.t.Context(), auth.Hash(x.token(cloud.Broker)))
	require.NoError(x.t, err)
	out, err := x.asked.Propose(x.t.Context(), cloud.Caller{Account: s.Account, Surface: "mcp"}, approval.ProposeInput{Server: "operations", Tool: "hold_order", Risk: "high",
		Scopes: []string{"orders:write"}, Arguments: json.RawMessage(`{"order_id":` + id + `}`), Summary: "Hold order " + id, Reason: "The address looks wrong", TokenName: "agent-1",
		Preview: json.RawMessage(`{"result":true,"outcome":"preview","tool":"hold_order","would_change":{"affected":[{"type":"order","id":` + id + `,"before":{"order_status_id":1},"after":{"order_status_id":3}}]}}`)})
	require.NoError(x.t, err)
	return string(out.Approval.ApprovalID)
}

// said is an order with a message of the admin's about it.
func (x *world) said() (order, message string) {
	order, _ = x.order(cloud.OrderNew)
	m := x.made("POST", "/api/v1/order-chat/orders/"+order+"/messages", x.token(admin), `{"client_message_id":"c-1","text":"Which door is it?"}`)
	return order, x.id(at(m, "message", "message_id"))
}

// route is a route with a driver.
func (x *world) route() string {
	return x.id(at(x.made("POST", "/api/v1/routes", x.token(admin), `{"date":"2099-12-01","driver_id":4}`), "route", "route_id"))
}

// planned is a route with an order on it: a delivery, or a pickup.
func (x *world) planned(pickup bool) (route, id string) {
	route = x.route()
	id, _ = x.order(cloud.OrderNew)
	if pickup {
		id = x.id(at(x.made("POST", "/api/v1/client/orderCreate", x.token(admin), `{"type":"P","sender":`+address+`,"packages":[{"weight":2.5}]}`), "order_id"))
	}
	x.made("POST", "/api/v1/routes/"+route+"/orders", x.token(admin), `{"order_ids":[`+id+`]}`)
	return route, id
}

// drives is a call of the driver about an order on a route that was sent, after
// what comes before it.
func (x *world) drives(to func(...string) string, before, body string) call {
	kind, start, _ := strings.Cut(before, " ")
	if kind != "P" {
		start = kind
	}
	route, id := x.planned(kind == "P")
	x.made("POST", "/api/v1/routes/"+route+"/dispatch", x.token(admin), `{}`)
	if start != "" {
		x.made("POST", "/api/v1/driver/orders/"+id+"/"+start, x.token(cloud.DriverAccount), `{}`)
	}
	return call{cloud.DriverAccount, to("{order_id}", id), body}
}

const hooks = `{"webhook_sign_secret":"whk-secret-0123456789-abcdef-wxyz","order_create_webhook_url":"https://mine.example/orders"}`

// told is a webhook delivery of the business's own channel.
func (x *world) told() string {
	x.made("PUT", "/api/v1/webhook-settings", x.token(admin), hooks)
	x.order(cloud.OrderNew)
	list, _ := x.made("GET", "/api/v1/webhook-delivery-logs", x.token(admin), "")["logs"].([]any)
	require.NotEmpty(x.t, list)
	return x.id(at(list[0], "id"))
}

// toldAt is the address at which the business is told.
func (x *world) toldAt() string {
	x.made("PUT", "/api/v1/webhook-settings", x.token(admin), strings.Replace(hooks, "https://mine.example", "http://mine.example.com", 1))
	list, _ := x.made("GET", "/api/v1/webhook-urls", x.token(admin), "")["urls"].([]any)
	require.NotEmpty(x.t, list)
	return x.id(at(list[0], "url_id"))
}

// replaying is a job that sends webhooks again.
func (x *world) replaying() string {
	x.told()
	id, _ := x.made("POST", "/api/v1/webhook-delivery-logs/replay", x.token(admin), `{}`)["job_id"].(string)
	require.NotEmpty(x.t, id)
	return id
}

// held is an order that the contractor holds.
func (x *world) held() string {
	id, _ := x.order(cloud.OrderNew)
	x.made("POST", "/api/v1/broker-order-assignments", x.token(admin), `{"order_ids":[`+id+`],"broker_id":3}`)
	return id
}

func (x *world) key() string {
	return x.id(at(x.made("POST", "/api/v1/user/api-keys", x.token(admin), `{"name":"k"}`), "api_key", "id"))
}

// agent is a program that the admin let act for the account.
func (x *world) agent() string {
	id, err := x.w.DB.NewID(x.t.Context(), cloud.OAuthGrantIDs)
	require.NoError(x.t, err)
	now := time.Now().UTC()
	s, err := x.w.FindToken(x.t.Context(), auth.Hash(x.token(admin)))
	require.NoError(x.t, err)
	x.w.Write(x.t, cloud.Changes{OAuthChanges: cloud.OAuthChanges{OAuthGrants: []cloud.OAuthGrant{{ID: cloud.OAuthGrantID(id), AccountID: s.Account.ID, ClientID: "oac_desk", ClientName: "Desk",
		Host: "127.0.0.1", Profile: "ops-readonly", Scopes: []string{"orders:read"}, Audience: "https://cloud.test/mcp", CreatedAt: now, UsedAt: now, ExpiresAt: now.Add(time.Hour),
		Code: cloud.OAuthCode{Hash: auth.Hash(auth.NewToken()), ExpiresAt: now, UsedAt: now}}}}})
	return fmt.Sprint(id)
}

func (x *world) providerToken() string {
	return x.id(at(x.made("POST", "/api/v1/providers/17/tokens", x.token(admin), `{"name":"Production"}`), "provider_token", "id"))
}

func (x *world) job() string {
	id, _ := at(x.made("POST", "/api/v1/client/batchOrderCreateAsync", x.token(admin), `{"orders":[`+orderOf(x.next("JOB-"))+`]}`), "asyncId").(string)
	return id
}

// packed takes a package out of a delivery that has two.
func (x *world) packed(to func(...string) string) call {
	ref := x.next("TWO-")
	d := x.made("POST", partner+"/deliveries", x.token(provider), deliveryOf(ref, 88, ref+"a", ref+"b"))
	return call{provider, to("{id}", x.id(at(d, "delivery", "delivery_id")), "{tracking_number}", ref+"a"), ""}
}

func timeline(number string) string {
	return fmt.Sprintf(`{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":%q},"events":[{"occurred_at":"2026-06-09T18:20:00-04:00","status_code":"arrival_scan","source":{"type":"partner"}}]}`, number)
}

func epcis(n int) string {
	return fmt.Sprintf(`{"@context":["https://ref.gs1.org/standards/epcis/2.0.0/epcis-context.jsonld"],"type":"EPCISDocument","schemaVersion":"2.0","creationDate":"2026-06-10T00:00:00Z","epcisBody":{"eventList":[
{"type":"ObjectEvent","eventID":"urn:uuid:%d","action":"OBSERVE","bizStep":"receiving","disposition":"in_progress","eventTime":"2026-06-10T14:00:00Z","eventTimeZoneOffset":"-04:00","epcList":["urn:epc:id:sscc:0614141.1234567890"]}]}}`, n)
}

// proofOf is a form with a small picture.
func proofOf(pairs ...string) string {
	var b, pic bytes.Buffer
	_ = png.Encode(&pic, image.NewGray(image.Rect(0, 0, 3, 2))) // to memory
	w := multipart.NewWriter(&b)
	_ = w.SetBoundary("a-part-ends-here")
	for i := 0; i < len(pairs); i += 2 {
		_ = w.WriteField(pairs[i], pairs[i+1])
	}
	f, _ := w.CreateFormFile("file", "../../me.exe")
	_, _ = f.Write(pic.Bytes())
	_ = w.Close()
	return b.String()
}

// proof is an order with a proof file.
func (x *world) proof() (p struct{ order, file, address string }) {
	p.order, _ = x.order(cloud.OrderNew)
	a := x.made("POST", "/api/v1/orders/"+p.order+"/proof-files", x.token(admin), proofOf("type", "photo", "service_type", "1", "service_status", "1"))
	p.file = x.id(at(a, "file", "file_id"))
	url, _ := at(a, "file", "full_url").(string)
	p.address = url[strings.Index(url, "/api/"):] // through whatever face it is asked for
	return p
}
