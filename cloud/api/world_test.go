package api_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"maps"
	"math/rand/v2"
	"mime/multipart"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
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
	"github.com/postern-io/postern/cloud/job"
	"github.com/postern-io/postern/cloud/live"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/cloud/platform"
	"github.com/postern-io/postern/cloud/push"
	"github.com/postern-io/postern/cloud/rest"
	"github.com/postern-io/postern/cloud/route"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/cloud/webhook/sender"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/protocol/wire"
)

// world is the whole table over a filled store, behind both faces.
type world struct {
	t        *testing.T
	w        *webtest.World
	table    *catalog.Catalog
	asked    *approval.Service
	jobs     *job.Service
	platform *platform.Service
	packs    int // containers that were made
	graph    *graphql.Server
	files    *object.Files
	pages    page.Config // what pages over the same world need
	dial     func() (net.Conn, error)
	c        *fasthttp.Client
	others   []*fasthttp.Client // of other nodes, which get calls too
	n        int                // things that were made
	links    map[string]string  // keys of recipients' links, by delivery number; of others that of the one that waits
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

func newWorld(t *testing.T) *world { return newWorldOn(t, storetest.OpenSQLite(t)) }

// newWorldOn fills an empty store.
func newWorldOn(t *testing.T, db *store.DB) *world { return newWorldMailing(t, db, "") }

// newWorldMailing sends links by mail that begin with an address; "": it sends none.
func newWorldMailing(t *testing.T, db *store.DB, mailBase string) *world {
	return newWorldIn(t, db, t.TempDir(), mailBase)
}

// newWorldIn is newWorldMailing with its files in a folder.
func newWorldIn(t *testing.T, db *store.DB, folder, mailBase string) *world {
	w := webtest.NewOn(t, db)
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
	fresh.Recipient.Email = "jane.smith@example.com"
	w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{fresh}}, TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 101, BusinessID: 42, Number: "EPCIS-1", SSCC: "106141412345678908", ProviderID: 17, Profile: "parcel"}}}})
	addMock(t, w)
	return serveWorld(t, w, folder, mailBase)
}

// serveWorld is a node that serves a filled store, with its files in a folder.
func serveWorld(t *testing.T, w *webtest.World, folder, mailBase string) *world {
	gate := auth.NewGate(w.Auth, auth.GateConfig{PerIP: 10000, PerEmail: 10000})
	keys, err := auth.NewPasskeys("https://cloud.test", []byte("challenges"))
	require.NoError(t, err)
	w.Auth.WithPasskeys(keys)
	accounts := account.New(account.Config{Passkeys: keys, Store: w.DB, Confirm: api.Confirm(gate), MailBase: mailBase})
	receivers := webhook.New(w.DB, openGuard{}).Sending(sender.New(sender.Config{Store: w.DB, Guard: fetch.NewGuard(fetch.GuardConfig{HTTP: true}), Resolver: somewhere{}, Dial: answering}),
		func(event string) (cloud.HookSample, bool) {
			return cloud.SampleOf(slices.Concat(order.Events(), locker.Events()), event)
		})
	files, err := object.Open(folder, bytes.Repeat([]byte{1}, 32))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, files.Close()) })
	orders := order.New(order.Config{Store: w.DB, Webhooks: receivers, Sealer: storetest.Box(t), SignFile: files.Address, Number: storetest.OldNumber})
	chats := chat.New(chat.Config{Store: w.DB, Files: files, SignFile: files.Address, Key: bytes.Repeat([]byte{2}, 32), PerMinute: -1})
	chats.LetListen(listening{})
	parcels := tracking.New(w.DB).SignFiles(files.Address).MoveOrders(order.CarriersOf(orders)).TakeOlder(100 * 365 * 24 * time.Hour).Guard(tracking.GuardConfig{Legacy: tracking.LegacyOpen})
	parcels.InviteToChat(chats.Invite)
	operators := platform.New(platform.Config{Store: w.DB, InvitationPath: account.InvitationPath, Jobs: w.DB, Over: store.ExportOver, Archives: files.Archives(), DigestKey: []byte("k")})
	line := catalog.NewPipeline(catalog.Config{FindToken: w.FindToken, FindRecipient: chats.FindRecipient, Feature: accounts.Gate, Calls: w.DB, Hold: waits, Limits: catalog.Limits{Authenticated: -1, Anonymous: -1, Replay: -1, Batch: -1, Doors: -1}})
	asked := approval.New(approval.Config{Store: w.DB, Holds: catalog.Holds, Message: locale.Error, Run: held})
	jobs := newJobs(w.DB, line)
	w.DB.OnCommit(jobs.Committed)
	table := api.New(api.Config{Jobs: jobs, Store: w.DB, Pipeline: line, Auth: w.Auth, Approvals: asked, Gate: gate, Lockers: w.Lockers, Mocks: mocksOf(t, w),
		Tracking: parcels, Files: files, Chat: chats, Orders: orders, Pushes: push.NewReader(w.DB), Live: live.New(live.Config{Store: w.DB, Sealer: storetest.Box(t), FindToken: w.FindToken, Prefix: "tms", URL: "ssl://mqtt.example:8883", WebSocketURL: "wss://mqtt.example/mqtt",
			SeesOrders: func(s auth.Session) bool { return catalog.SessionHolds(s, "orders:read") }, SeesChats: func(s auth.Session) bool { return catalog.SessionHolds(s, "chat:read") }, SeesPushes: func(s auth.Session) bool { return catalog.SessionHolds(s, "routes:read") }}), Routes: route.New(route.Config{Store: w.DB, Orders: orders}), Receivers: receivers,
		Accounts: accounts, Apps: app.New(app.Config{Store: w.DB, Feature: accounts.Gate, Languages: []string{"en"}, Text: func(lang, key string) string { return locale.Word(lang, key) }}),
		Platform: operators,
		Setup:    setup.New(setup.Config{Store: w.DB, NewToken: device.NewToken}),
		Enrol: func(context.Context, string, string, []byte) (any, error) {
			return map[string]bool{"result": true}, nil
		}})
	graph, err := graphql.New(graphql.Config{Catalog: table, Pipeline: line, Timeout: time.Minute})
	require.NoError(t, err)
	s := rest.New(rest.Config{Catalog: table, Pipeline: line, Timeout: time.Minute, GraphQL: func(ctx context.Context, q rest.GraphQLRequest) rest.GraphQLResponse {
		return rest.GraphQLResponse(graph.Serve(ctx, graphql.Request(q)))
	}})
	ln := webtest.Serve(t, s)
	pages := page.Config{Store: w.DB, Tracking: parcels, Gate: gate, Auth: w.Auth, FindToken: w.FindToken, Deliveries: w.Deliveries, Approvals: asked, Receivers: receivers, Catalog: table, Pipeline: line, DigestKey: []byte("k"), Chats: true, PerMinute: -1}
	return &world{t: t, w: w, jobs: jobs, pages: pages, table: table, asked: asked, platform: operators, graph: graph, files: files, dial: ln.Dial, c: &fasthttp.Client{Dial: func(string) (net.Conn, error) { return ln.Dial() }}}
}

// newJobs builds a service of jobs as a node has one.
func newJobs(db *store.DB, line *catalog.Pipeline) *job.Service { return newJobsOn(db, line) }

func newJobsOn(db job.Store, line *catalog.Pipeline) *job.Service {
	return job.New(job.Config{Store: db, Pipeline: line, DigestKey: []byte("k"), Message: locale.Error, Field: locale.FieldOf, Word: locale.Word, Country: locale.CountryIn, Languages: []string{"en", "zh-Hans", "zh-Hant", "fr", "de", "es"}})
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
	if number, ok := strings.CutPrefix(path, "/api/v1/customer/lockers/dropoffs/"); token == "" && ok { // by who has the sender's link
		number, _, _ = strings.Cut(number, "/")
		req.Header.Set("X-Tracking-Key", x.links[number])
	}
	if token == "" && strings.HasPrefix(path, "/api/v1/customer/lockers/parcels") { // by who has the recipient's link
		number, _, _ := strings.Cut(strings.TrimPrefix(path, "/api/v1/customer/lockers/parcels/"), "/")
		req.Header.Set("X-Tracking-Key", cmp.Or(x.links[number], webtest.Links.OfShipment(1, 0)))
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	c := x.c
	if i := rand.N(len(x.others) + 1); i > 0 {
		c = x.others[i-1]
	}
	require.NoError(x.t, c.DoTimeout(&req, &resp, 2*time.Minute))
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

// notified adds a notification about a delivery, or about one of the sandbox.
func (x *world) notified(test bool) {
	n := cloud.Notification{ID: x.next("N"), BusinessID: 42, ProviderID: 17, DeliveryID: 64021, Channel: cloud.ByEmail, Kind: cloud.NotifyParcelReminder, At: time.Now(), Until: time.Now().Add(time.Hour), Sandbox: test,
		NotificationText: cloud.NotificationText{To: "jane@a.example", Language: "en", Name: "Jane", Business: "Acme", Parcel: &cloud.ParcelNotice{Code: "135790", Until: time.Now()}}}
	if test {
		n.DeliveryID = 64023
	}
	x.w.Write(x.t, cloud.Changes{NotificationChanges: cloud.NotificationChanges{Notifications: []cloud.Notification{n}}})
}

func deliveryOf(ref string, device int, numbers ...string) string {
	var packages []string
	for _, n := range numbers {
		packages = append(packages, fmt.Sprintf(`{"tracking_number":%q,"size":"S"}`, n))
	}
	return fmt.Sprintf(`{"reference_number":%q,"device_id":%d,"packages":[%s],"recipient":{"name":"X","phone":"+14165550100"},"reserve":false}`, ref, device, strings.Join(packages, ","))
}

func cabinetOf(code string) string {
	return fmt.Sprintf(`{"device_name":"Pier","device_code":%q,"layout":"small"}`, code)
}

// call is one good call of an operation: by whom, for what, with what.
type call struct {
	as         cloud.AccountType
	path, body string
}

// call is the example of an operation's row, about things that are there: what
// stand has them in place of the example's.
func (x *world) call(o catalog.Operation) call {
	s := x.stand(o.Name)
	c := call{as: s.as}
	if c.as == "" && o.Types != nil {
		c.as = o.Types[0]
		if slices.Contains(o.Types, admin) {
			c.as = admin
		}
	}
	in := o.WorkedInput()
	if in == nil {
		in = map[string]any{}
	}
	for _, m := range o.Members() {
		if v, ok := s.in[m.Name]; ok {
			in[m.Name] = v
		}
	}
	c.path = pathOf(o, in)
	for _, m := range o.Members() {
		if m.Place != "" {
			delete(in, m.Name)
		}
	}
	switch {
	case s.path != "":
		c.path = s.path
	case s.body != "":
		c.body = s.body
	case o.Raw() != nil:
		c.body = o.Example
	case o.Upload() != nil:
		c.body = formOf(in)
	case o.HasBody():
		raw, err := json.Marshal(in)
		require.NoError(x.t, err)
		c.body = string(raw)
	}
	return c
}

// standIn is the account type that calls an operation, "": admin or the first of its row,
// and what a call has in place of its example.
type standIn struct {
	as   cloud.AccountType
	in   map[string]any
	body string // in place of the whole
	path string // in place of the whole
}

// stand makes what a call of an operation needs. Of those that are not here the
// example does as it is.
func (x *world) stand(name string) (s standIn) {
	type m = map[string]any
	fresh := func(status cloud.OrderStatus) m { id, _ := x.order(status); return m{"order_id": id} }
	news := func() (id, ref string) { return x.order(cloud.OrderNew) }
	email := func() m { return m{"email": x.next("n") + "@acme.example"} }
	told := func() m { return m{"id": x.told()} }
	delivery := func() standIn { return standIn{provider, m{"id": x.delivery()}, "", ""} }
	entrusted := func(over bool) m { return m{"assignment_number": x.entrusted(over)} }
	approval := func() m { return m{"approval_id": x.approval()} }
	said := func() m { id, message := x.said(); return m{"order_id": id, "message_id": message} }
	switch name {
	case "user.login":
		s.as, s.in = admin, m{"email": x.w.Emails[admin], "password": webtest.Password}
	case "user.login.second_factor":
		s.as, s.in = admin, m{"challenge": x.challenge(), "otp": x.otp()}
	case "user.second_factor.confirm":
		x.factor(2, false)
		s.as, s.in = cloud.ClientEmployee, m{"otp": x.otp()}
	case "user.second_factor.recovery_codes", "user.second_factor.remove":
		x.factor(2, true)
		s.as, s.in = cloud.ClientEmployee, m{"otp": x.otp()}
	case "user.password.change", "user.sessions.end_others": // the administrator's token is that of other calls
		s.as = cloud.Broker
	case "third_party.deliveries.resend_delivery_code":
		s.as, s.in = provider, m{"id": "64022"}
	case "user.sessions.end":
		s.in = m{"session_id": x.session()}
	case "user.passkeys.rename", "user.passkeys.remove":
		s.in = m{"passkey_id": x.passkey(cloud.AccountID(1))}
	case "users.sessions.end", "users.password_reset":
		s.in = m{"id": "22"}
	case "invitations.create":
		s.in = email()
	case "invitations.withdraw":
		s.in = m{"id": x.invitation().id}
	case "invitations.accept":
		i := x.invitation()
		s.in = m{"token": i.token, "email": i.email}
	case "user.password_reset.complete":
		s.as, s.in = admin, m{"token": x.made("POST", "/api/v1/users/22/password-reset", x.token(admin), "")["token"]}
	case "users.second_factor.reset":
		x.w.Write(x.t, cloud.Changes{FactorChanges: cloud.FactorChanges{SecondFactors: []cloud.SecondFactor{{AccountID: 22, Secret: factorSecret}}}})
		s.in = m{"id": "22"}
	case "users.identities.end":
		x.w.Write(x.t, cloud.Changes{IdentityChanges: cloud.IdentityChanges{Identities: []cloud.Identity{{BusinessID: 42, Issuer: "https://id.example/" + x.next("i"), Subject: "x", AccountID: 22, CreatedAt: time.Now()}}}})
		s.in = m{"id": "22"}
	case "smart_lockers.staff_codes.end", "smart_lockers.staff_codes.list", "user.staff_codes.find":
		x.made("POST", "/api/v1/user/staff-codes", x.token(admin), "")
		if name == "smart_lockers.staff_codes.end" {
			s.in = m{"account_id": 1}
		}
	case "user.api_keys.find", "user.api_keys.revoke":
		s.in = m{"id": x.key()}
	case "user.agents.list", "user.agents.end":
		s.in = m{"id": x.agent()}
	case "users.create", "customers.create", "driver.register":
		s.in = email()
	case "providers.create":
		s.in = m{"code": x.next("n")}
	case "providers.tokens.revoke":
		s.in = m{"token_id": x.providerToken()}

	case "third_party.deliveries.create":
		ref := x.next("REF-")
		s.in = m{"reference_number": ref, "packages": []any{m{"tracking_number": ref, "size": "S"}}, "reserve": false}
	case "third_party.deliveries.edit", "third_party.deliveries.cancel", "third_party.deliveries.rotate_delivery_code", "third_party.deliveries.open_doors", "third_party.deliveries.courier_qr",
		"third_party.deliveries.reassign", "third_party.deliveries.confirm", "third_party.deliveries.fail":
		s = delivery()
	case "third_party.deliveries.add_package":
		s = delivery()
		s.in["tracking_number"] = x.next("REF-")
	case "third_party.deliveries.remove_package":
		s.in = x.packed()
	case "third_party.webhook_endpoint.test":
		x.made("PUT", partner+"/webhook-endpoint", x.token(provider), `{"url":"http://hooks.example.com/new"}`)
	case "third_party.webhook_deliveries.find", "third_party.webhook_deliveries.redeliver":
		s.in = m{"id": x.w.Outbox}
	case "third_party.assignments.create":
		s.in = fresh(cloud.OrderNew)
	case "third_party.assignments.hand_over":
		s.in = entrusted(false)
	case "third_party.assignments.cancel":
		s.in = entrusted(true)
	case "third_party.assignments.find", "third_party.assignments.accept", "third_party.assignments.reject":
		s.as, s.in = provider, entrusted(false)
	case "third_party.assignments.set_leg":
		s.in = entrusted(false)
		s.in["external_tracking_number"] = x.next("REF-")
	case "third_party.assignments.report":
		s.in = entrusted(true)
		has := x.made("GET", fmt.Sprint(partner, "/assignments/", s.in["assignment_number"]), x.token(provider), "")
		s.in["packages"] = []any{m{"tracking_number": at(has, "assignment", "package_tracking_numbers").([]any)[0], "outcome": "delivered"}}
	case "platform.businesses.create":
		s.in = m{"code": x.next("b"), "administrator_email": x.next("p") + "@acme.example"}
	case "platform.exports.find", "platform.exports.download":
		id := x.id(at(x.made("POST", "/api/v1/platform/businesses/"+x.business()+"/exports", x.token(cloud.PlatformAdmin), "{}"), "job", "job_id"))
		require.NoError(x.t, x.platform.Work(x.t.Context()))
		s.in = m{"job_id": id}
	case "platform.removals.begin":
		s.in = x.removal()
	case "platform.removals.find":
		in := x.removal()
		a := x.made("POST", "/api/v1/platform/businesses/"+in["business_id"].(string)+"/removal", x.token(cloud.PlatformAdmin), fmt.Sprintf(`{"digest":%q,"code":%q,"reason":"Over","confirm":true}`, in["digest"], in["code"]))
		s.in = m{"job_id": x.id(at(a, "job", "job_id"))}
	case "platform.businesses.suspend":
		s.in = m{"business_id": x.business()}
	case "platform.businesses.resume":
		id := x.business()
		x.made("POST", "/api/v1/platform/businesses/"+id+"/suspend", x.token(cloud.PlatformAdmin), `{"reason":"The contract ended"}`)
		s.in = m{"business_id": id}
	case "platform.passes.end", "operator_passes.end":
		id, _ := x.pass()
		s.in = m{"pass_id": id}

	case "smart_lockers.devices.create":
		s.in = m{"device_code": x.next("PIER-")}
	case "smart_lockers.devices.renew_token", "smart_lockers.devices.report_stolen", "smart_lockers.devices.edit", "smart_lockers.devices.set_layout", "smart_lockers.devices.replace_hardware", "smart_lockers.devices.retire":
		s.in = m{"id": x.id(at(x.made("POST", "/api/v1/smart-lockers/devices", x.token(admin), cabinetOf(x.next("PIER-"))), "device", "device_id"))}
	case "smart_lockers.grids.block": // deliveries take compartments of the other one
		s.in = m{"id": 89, "grid_id": 8902}
	case "smart_lockers.grids.clear": // of which a person is to look what lies inside
		x.n++
		x.w.Write(x.t, cloud.Changes{LockerChanges: cloud.LockerChanges{Exceptions: []cloud.Exception{{ID: cloud.ExceptionID(70000 + x.n), BusinessID: 42, DeviceID: 89, GridCode: "A03",
			Source: x.next("x"), Type: "deposit_unverified", Severity: "medium", Status: "open", OpenedAt: time.Now()}}}})
		s.in = m{"id": 89, "grid_id": 8903}
	case "smart_lockers.devices.test_channel": // deliveries take compartments
		s.in = m{"test_occupied": true}
	case "otep.reviews.find", "otep.reviews.decide":
		s.in = m{"id": x.review()}
	case "otep.dispute":
		s.as = provider
		event := at(x.made("GET", "/api/v1/otep/trackings/"+webtest.Waiting, x.token(provider), ""), "data", "events").([]any)[0]
		s.in = m{"tracking_number": webtest.Waiting, "event_id": at(event, "event_id")}
	case "smart_lockers.diagnoses.find":
		s.in = m{"diagnosis_id": x.diagnosis()}
	case "smart_lockers.rollouts.create":
		x.stopRollouts()
	case "smart_lockers.rollouts.find", "smart_lockers.rollouts.stop":
		x.stopRollouts()
		s.in = m{"rollout_id": x.rollout(cloud.RolloutRunning)}
	case "smart_lockers.rollouts.resume":
		x.stopRollouts()
		s.in = m{"rollout_id": x.rollout(cloud.RolloutStopped)}
	case "sites.create":
		s.in = m{"name": x.next("Site ")}
	case "sites.edit":
		s.in = m{"location_id": x.site()}
	case "third_party.announced_packages.create":
		s.in = m{"packages": []any{m{"carrier_reference": x.next("CR-"), "recipient": m{"name": "Jane Smith", "phone": "+14165550123"}, "destination_location_id": 12}}}
	case "third_party.announced_packages.remove":
		s.in = m{"package_number": x.packageAnnounced()}
	case "device_orders.remove":
		s.in = m{"id": x.stored()}
	case "device_order_exceptions.find", "device_order_exceptions.resolve", "device_order_exceptions.dismiss":
		_, id, _ := cloud.ParseWorkID(x.exception())
		s.in = m{"id": id}
	case "work_items.find", "work_items.take", "work_items.release", "work_items.note", "work_items.snooze", "work_items.close":
		s.in = m{"id": x.exception()}
	case "smart_lockers.deliveries.confirm", "smart_lockers.deliveries.cancel", "smart_lockers.deliveries.expire", "smart_lockers.deliveries.courier_qr":
		s.in = m{"id": x.delivery()}

	case "third_party.deliveries.take_back", "smart_lockers.deliveries.take_back", "customer.parcels.take_back":
		x.made("POST", partner+"/deliveries/64021/handover", x.token(provider), `{"name":"Sam Smith"}`)

	case "customer.parcels.return":
		s.in = m{"delivery_number": x.collected()}
	case "customer.parcels.find_return":
		number := x.collected()
		x.made("POST", "/api/v1/customer/lockers/parcels/"+number+"/return", "", "{}")
		s.in = m{"delivery_number": number}

	case "customer.dropoffs.find", "customer.dropoffs.cancel":
		s.in = m{"delivery_number": x.dropoff()}

	case "customer.parcels.open":
		s.in = m{"delivery_number": x.waits()}

	case "otep.ingest":
		s.as, s.body = provider, timeline(webtest.Announced)
	case "otep.ingest_epcis":
		x.n++
		s.as, s.body = provider, epcis(x.n)
	case "otep.epcis_events", "otep.changes":
		s.as = provider

	case "approvals.list", "approvals.find", "approvals.approve", "approvals.reject":
		s.in = approval()
	case "approvals.reject_many":
		s.in = m{"approval_ids": []any{x.approval()}}

	case "broker_order_assignments.assign":
		id, _ := news()
		s.in = m{"order_ids": []any{number(id)}}
	case "broker_order_assignments.revoke":
		s.in = m{"order_ids": []any{number(x.held())}}
	case "broker_order_assignments.release":
		s.in = m{"order_id": number(x.held())}

	case "routes.find", "routes.update", "routes.cancel":
		s.in = m{"route_id": x.route()}
	case "routes.add":
		id, _ := news()
		s.in = m{"route_id": x.route(), "order_ids": []any{number(id)}}
	case "routes.remove", "routes.dispatch":
		route, id := x.planned(false)
		s.in = m{"route_id": route, "order_ids": []any{number(id)}}
	case "orders.driver":
		s.in = fresh(cloud.OrderNew)
	case "user.live_token":
		s.as = cloud.DriverAccount
	case "driver.push_token.set":
		s.in = m{"token": x.next("n")}
	case "driver.pushes.list", "driver.orders.accept", "driver.orders.decline", "driver.orders.start_delivery", "driver.orders.proof_files":
		s.in = x.driven("")
	case "driver.orders.start_pickup":
		s.in = x.driven("P")
	case "driver.orders.pickup":
		s.in = x.driven("P start-pickup")
	case "driver.orders.deliver":
		s.in = x.driven("start-delivery")
	case "driver.orders.ready":
		s.in = fresh(cloud.OrderNew)

	case "webhook_logs.find", "webhook_logs.replay":
		s.in = told()
	case "webhook_logs.replay_many", "webhook_urls.list":
		x.told()
	case "otep.containers.list":
		x.stacked()
	case "otep.containers.find":
		s.in = m{"id": x.stacked()}
	case "otep.containers.bind", "otep.containers.unbind":
		id, _ := news()
		parcel, _ := at(x.made("GET", "/api/v1/orders/"+id, x.token(admin), ""), "order", "tracking_number").(string)
		s.in = m{"id": x.stacked(), "children": []any{parcel}}
	case "otep.aliases.list", "otep.aliases.add", "otep.aliases.remove":
		id, _ := news()
		parcel, _ := at(x.made("GET", "/api/v1/orders/"+id, x.token(admin), ""), "order", "tracking_number").(string)
		s.in = m{"tracking_number": parcel, "kind": "carrier", "value": "ALIAS OF " + parcel}
		if name != "otep.aliases.add" {
			made := x.made("POST", "/api/v1/otep/trackings/"+parcel+"/aliases", x.token(admin), `{"kind":"carrier","value":"1Z `+parcel+`"}`)
			s.in = m{"tracking_number": parcel, "id": x.id(at(made, "alias", "alias_id"))}
		}
		if name == "otep.aliases.list" {
			s.in = m{"tracking_number": parcel}
		}
	case "tracking_subscriptions.create":
		id, _ := news()
		parcel, _ := at(x.made("GET", "/api/v1/orders/"+id, x.token(admin), ""), "order", "tracking_number").(string)
		s.in = m{"tracking_numbers": []any{parcel}, "url": "https://hooks.example.com/parcels"}
	case "tracking_subscriptions.list":
		x.subscribed()
	case "tracking_subscriptions.find", "tracking_subscriptions.remove":
		s.in = m{"id": x.subscribed()}
	case "webhook_settings.test":
		x.told()
		s.in = m{"url": "http://hooks.example.com/test"}
	case "webhook_urls.pause", "webhook_urls.resume", "webhook_urls.check_up":
		s.in = m{"url_id": x.toldAt()}
	case "webhook_replays.find", "webhook_replays.cancel":
		s.in = m{"job_id": x.replaying()}

	case "order_chat.conversations", "order_chat.unread_count":
		x.said()
	case "order_chat.send", "order_chat.typing", "order_chat.attach":
		s.in = fresh(cloud.OrderNew)
	case "order_chat.find", "order_chat.messages", "order_chat.edit", "order_chat.delete", "order_chat.close", "order_chat.participants.list", "order_chat.participants.add",
		"order_chat.participants.remove":
		s.in = said()
	case "order_chat.read":
		id, message := x.said()
		s.in = m{"order_id": id, "last_message_id": number(message)}
	case "order_chat.reopen":
		s.in = said()
		x.made("POST", fmt.Sprint("/api/v1/order-chat/orders/", s.in["order_id"], "/close"), x.token(admin), `{}`)
	case "order_chat.token":
		id, _ := x.said()
		s.in = m{"order_ids": []any{number(id)}}

	case "orders.proof_files.remove":
		p := x.proof()
		s.in = m{"order_id": p.order, "file_id": p.file}
	case "files.find":
		s.as, s.path = admin, x.proof().address
	case "orders.create":
		s.in = m{"order_ref": x.next("REF-")}
	case "orders.batch_async":
		s.in = m{"orders": []any{json.RawMessage(orderOf(x.next("REF-")))}}
	case "orders.search":
		s.in = m{"query": "SO-"}
	case "orders.detail", "orders.operations":
		_, ref := news()
		s.in = m{"order_ref": ref}
	case "orders.time_windows":
		_, ref := news()
		s.in = m{"order_refs": []any{ref}}
	case "orders.find", "orders.update", "orders.delete", "orders.cancel", "orders.hold", "orders.tracking_number", "orders.ready", "orders.reroute", "orders.interceptions", "orders.proof_files.add":
		s.in = fresh(cloud.OrderNew)
	case "orders.release":
		s.in = fresh(cloud.OrderHold)
	case "orders.job":
		s.in = m{"id": x.job()}
	case "orders.intercept":
		s.in = fresh(cloud.OrderPickedUp)
	case "orders.override", "orders.reschedule":
		s.in = fresh(cloud.OrderDeliveryFailed)
	case "orders.take_back":
		s.in = fresh(cloud.OrderOutForDelivery)
	case "warehouse.scan":
		_, ref := x.order(cloud.OrderPickedUp)
		s.in = m{"code": ref}
	case "interceptions.withdraw", "interceptions.execute", "interceptions.hold", "interceptions.fail":
		s.in = m{"id": x.interception(false)}
	case "interceptions.reject", "interceptions.approve":
		s.in = m{"id": x.interception(true)}
	case "jobs.find", "jobs.rows", "jobs.problems":
		s.in = m{"id": x.bulk(x.token(admin), "orders", cloud.JobChecked)}
	case "jobs.start", "jobs.cancel", "jobs.columns", "jobs.mend", "jobs.fill":
		s.in = m{"id": x.bulk(x.token(admin), "orders", cloud.JobChecked), "digest": "d", "row": 1, "columns": []string{"type"}, "cells": []string{"D"}, "path": "type", "value": "D"}
	case "jobs.retry":
		s.in = m{"id": x.bulk(x.token(admin), "orders", cloud.JobFailed)}
	case "jobs.import":
		s.body = fileOf("customer", "name,email\nNoor,"+x.next("n")+"@goods.example\n")
	default:
		s.in = x.row(name)
	}
	for name, v := range s.in { // ids in bodies are numbers
		if v, ok := v.(string); ok && strings.HasSuffix(name, "_id") {
			s.in[name] = number(v)
		}
	}
	return s
}

var factorSecret = []byte("twenty bytes of zinc")

// factor gives a person a second factor, or one that waits for its first
// code.
func (x *world) factor(id cloud.AccountID, on bool) {
	f := cloud.SecondFactor{AccountID: id, Pending: factorSecret, PendingUntil: time.Now().Add(time.Minute)}
	if on {
		f = cloud.SecondFactor{AccountID: id, Secret: factorSecret, SetUpAt: time.Now()}
	}
	x.w.Write(x.t, cloud.Changes{FactorChanges: cloud.FactorChanges{SecondFactors: []cloud.SecondFactor{f}}})
}

func (x *world) otp() string {
	c, err := totp.GenerateCode(auth.KeyText(factorSecret), time.Now())
	require.NoError(x.t, err)
	return c
}

// row is a new row for an operation of a simple family (cloud/collection), made by the
// example of the family's create, under another name and code.
func (x *world) row(operation string) map[string]any {
	family, verb := operation[:strings.LastIndex(operation, ".")+1], operation[strings.LastIndex(operation, ".")+1:]
	create, one := x.table.Find(family+"create"), x.table.Find(family+"find")
	if create == nil || one == nil {
		return nil
	}
	if _, named := reflect.New(one.In()).Elem().Interface().(interface{ Key() int64 }); !named {
		return nil
	}
	var in map[string]any
	require.NoError(x.t, json.Unmarshal([]byte(create.Example), &in))
	own := map[string]any{"name": x.next("Row ")}
	if _, coded := in["code"]; coded {
		own["code"] = x.next("row-")
	}
	maps.Copy(in, own)
	if verb == "create" || !strings.Contains(x.table.Find(operation).Path, "{id}") {
		return own
	}
	body, err := json.Marshal(in)
	require.NoError(x.t, err)
	for member, v := range x.made(create.Method, create.Path, x.token(admin), string(body)) {
		if answer, ok := v.(map[string]any); ok {
			return map[string]any{"id": x.id(answer[member+"_id"])}
		}
	}
	return nil
}

// diagnosis is a new one of the cabinet, answered.
func (x *world) diagnosis() string {
	id, err := x.w.DB.NewID(x.t.Context(), cloud.DiagnosisIDs)
	require.NoError(x.t, err)
	d, file := x.w.Diagnosed(x.t, cloud.DiagnosisID(id), 88, wire.CmdChannelTest)
	x.w.Write(x.t, cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{d}}, FileChanges: cloud.FileChanges{Files: []cloud.KeptFile{file}}})
	return fmt.Sprint(id)
}

// review is a new one, about an event of a parcel.
func (x *world) review() string {
	id, err := x.w.DB.NewID(x.t.Context(), cloud.ReviewIDs)
	require.NoError(x.t, err)
	now := time.Now().UTC().Truncate(time.Millisecond)
	r := cloud.Review{Kind: cloud.ReviewDispute, Status: cloud.ReviewOpen, TrackingNumber: webtest.Waiting, ShipmentID: 1, EventID: x.next("e"), StatusCode: "delivered", OccurredAt: now,
		DisputeKind: "not_received", Note: "The locker was empty", EndsAt: now.Add(cloud.ReviewLasts)}
	r.Begin(id, 42, now)
	x.w.Write(x.t, cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{r}}})
	return fmt.Sprint(id)
}

// rollout is a new one. A business has one that runs.
func (x *world) rollout(state cloud.RolloutState) string {
	id, err := x.w.DB.NewID(x.t.Context(), cloud.RolloutIDs)
	require.NoError(x.t, err)
	now := time.Now().UTC()
	r := cloud.Rollout{Version: "1.4.0", State: state, Rings: 1, HealthySeconds: 3600, PatienceSeconds: 7200, Devices: []cloud.RolloutDevice{{DeviceID: 88, Before: "v1.3.0", State: cloud.RolloutWaiting}}}
	if state == cloud.RolloutStopped {
		r.Stop, r.StopNote = cloud.RolloutStopAsked, "The first cabinet is slow"
	}
	r.Begin(id, 42, now)
	x.w.Write(x.t, cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{r}}})
	return fmt.Sprint(id)
}

func (x *world) stopRollouts() {
	x.t.Helper()
	list, err := x.w.DB.ListRunningRollouts(x.t.Context(), 0, 100)
	require.NoError(x.t, err)
	for _, ref := range list {
		require.NoError(x.t, x.w.DB.Decide(x.t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
			r, err := cloud.Find(v, cloud.Rollout{Kept: cloud.Kept[cloud.RolloutID]{ID: ref.ID, BusinessID: ref.BusinessID}})
			r.State, r.Stop = cloud.RolloutStopped, cloud.RolloutStopAsked
			return &cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{r}}}, err
		}))
	}
}

// cabinetProfile is a new one.
func (x *world) cabinetProfile() string {
	return x.id(at(x.made("POST", "/api/v1/smart-lockers/profiles", x.token(admin), fmt.Sprintf(`{"name":%q}`, x.next("Profile "))), "cabinet_profile", "cabinet_profile_id"))
}

// enrolledCabinet is a new cabinet whose agent has been enrolled.
func (x *world) enrolledCabinet() (id cloud.DeviceID) {
	made := x.made("POST", "/api/v1/smart-lockers/devices", x.token(admin), cabinetOf(x.next("PIER-")))
	id = cloud.DeviceID(at(made, "device", "device_id").(float64))
	var d cloud.Device
	require.NoError(x.t, x.w.DB.Look(x.t.Context(), func(v cloud.View) (err error) { d, err = v.Device(id); return err }))
	d.EnrolledAt = time.Now()
	x.w.Write(x.t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}})
	return id
}

// site is a new one.
func (x *world) site() string {
	return x.id(at(x.made("POST", "/api/v1/sites", x.token(admin), fmt.Sprintf(`{"name":%q,"address":"1 King St"}`, x.next("Site "))), "site", "location_id"))
}

// packageAnnounced is a package that a provider has announced.
func (x *world) packageAnnounced() string {
	a := x.made("POST", partner+"/announced-packages", x.token(provider), fmt.Sprintf(`{"packages":[{"carrier_reference":%q,"recipient":{"name":"Jane","phone":"+14165550100"},"destination_location_id":12}]}`, x.next("CR-")))
	return a["packages"].([]any)[0].(map[string]any)["package_number"].(string)
}

// stored is a device order of a delivery that waits in a cabinet.
func (x *world) stored() string {
	x.n++
	return fmt.Sprint(int64(x.w.Stored(x.t, cloud.DeliveryID(83000+x.n), x.next("STORED-"))))
}

// waits is the number of a delivery that waits in the cabinet that is connected.
func (x *world) waits() string {
	x.n++
	d := x.w.Delivery
	d.ID, d.DeviceID, d.Handover = cloud.DeliveryID(85000+x.n), x.w.Device.ID, nil
	d.Number, d.Reference = fmt.Sprintf("LD-%09d", d.ID), x.next("WAITS-")
	d.Packages = []cloud.Package{{TrackingNumber: d.Reference, GridID: x.idleGrid(), Status: cloud.PackageInCompartment}}
	sh := cloud.Shipment{ID: cloud.ShipmentID(d.ID), BusinessID: d.BusinessID, Number: d.Reference, ProviderID: d.ProviderID, DeliveryID: d.ID, Profile: "locker", CreatedAt: time.Now()}
	x.w.Write(x.t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d}}, TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{sh}}})
	if x.links == nil {
		x.links = map[string]string{}
	}
	x.links[d.Number] = webtest.Links.OfShipment(sh.ID, 0)
	return d.Number
}

// dropoff is the number of a delivery that its sender is to bring.
func (x *world) dropoff() string {
	ref := x.next("DROP-")
	body := fmt.Sprintf(`{"reference_number":%q,"device_id":88,"purpose":"send","sender":{"name":"Sid","email":"sid@mail.example"},"packages":[{"tracking_number":%q,"size":"S"}],"recipient":{"name":"X","phone":"+14165550100"},"reserve":false}`, ref, ref)
	d := at(x.made("POST", partner+"/deliveries", x.token(provider), body), "delivery").(map[string]any)
	number := d["delivery_number"].(string)
	if x.links == nil {
		x.links = map[string]string{}
	}
	x.links[number] = webtest.Links.OfSender(cloud.DeliveryID(d["delivery_id"].(float64)))
	return number
}

// collected is the number of a delivery that its recipient has collected and may return.
func (x *world) collected() string {
	number := x.waits()
	require.NoError(x.t, x.w.DB.Decide(x.t.Context(), x.w.Device.ID, func(v cloud.View) (*cloud.Changes, error) {
		d, err := v.DeliveryByNumber(number)
		if err != nil {
			return nil, err
		}
		d.Status, d.PickedUpAt, d.PickedUpBy, d.PickedUpMethod, d.PickupCodeActive = cloud.DeliveryPickedUp, time.Now().UTC().Truncate(time.Second), "recipient", "code", false
		for i := range d.Packages {
			d.Packages[i].Status = cloud.PackagePickedUp
		}
		cells, err := v.Compartments(d.DeviceID)
		if err != nil {
			return nil, err
		}
		cells = slices.DeleteFunc(cells, func(c cloud.Compartment) bool { return c.GridID != d.Packages[0].GridID })
		cells[0].State, cells[0].DeliveryID = cloud.GridFree, 0 // for the return
		b, err := v.Business(d.BusinessID)
		b.Settings.LockerReturns = true
		return &cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d}, Compartments: cells}, AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}, err
	}))
	return number
}

// idleGrid is a compartment of the world's device on which no opening runs.
func (x *world) idleGrid() cloud.GridID {
	grids := []cloud.GridID{8801, 8802, 8804, 8805, 8806, 8808, 8809, 8810, 8811, 8812}
	require.NoError(x.t, x.w.DB.Look(x.t.Context(), func(v cloud.View) error {
		running, err := v.RunningOpenings(x.w.Device.ID)
		for _, o := range running {
			for _, d := range o.Doors {
				grids = slices.DeleteFunc(grids, func(g cloud.GridID) bool { return g == d.GridID })
			}
		}
		return err
	}))
	return grids[x.n%len(grids)]
}

// exception is an open one at a compartment, by the name of its work item.
func (x *world) exception() string {
	x.n++
	id := cloud.ExceptionID(80000 + x.n)
	x.w.Write(x.t, cloud.Changes{LockerChanges: cloud.LockerChanges{Exceptions: []cloud.Exception{{ID: id, BusinessID: 42, DeviceID: 89, GridCode: "A03",
		Source: x.next("x"), Type: "door_left_open", Severity: "medium", Status: "open", OpenedAt: time.Now()}}}})
	return cloud.WorkItem{Kind: cloud.WorkException, Subject: fmt.Sprint(int64(id))}.ID()
}

// invitation is one that waits.
func (x *world) invitation() (i struct{ id, token, email string }) {
	i.email = x.next("new") + "@acme.example"
	a := x.made("POST", "/api/v1/invitations", x.token(admin), fmt.Sprintf(`{"account_type":"driver","name":"Ana Lima","email":%q}`, i.email))
	i.id, i.token = x.id(at(a, "invitation", "invitation_id")), a["token"].(string)
	return i
}

// business is one that the platform made.
func (x *world) business() string {
	a := x.made("POST", "/api/v1/platform/businesses", x.token(cloud.PlatformAdmin), fmt.Sprintf(`{"code":%q,"name":"Harbour","timezone":"UTC","administrator_email":%q,"administrator_name":"Dana"}`, x.next("b"), x.next("d")+"@harbour.example"))
	return x.id(at(a, "business", "business_id"))
}

// removal is what a removal of a fresh business names.
func (x *world) removal() map[string]any {
	id := x.business()
	x.made("POST", "/api/v1/platform/businesses/"+id+"/suspend", x.token(cloud.PlatformAdmin), `{"reason":"Over"}`)
	shown := x.made("GET", "/api/v1/platform/businesses/"+id+"/removal", x.token(cloud.PlatformAdmin), "")
	return map[string]any{"business_id": id, "digest": shown["digest"], "code": at(shown, "business", "code")}
}

// pass is one of the platform's operator into the business of the test.
func (x *world) pass() (id, token string) {
	a := x.made("POST", "/api/v1/platform/businesses/42/passes", x.token(cloud.PlatformAdmin), `{"reason":"Ticket 1187","hours":1}`)
	return x.id(at(a, "pass", "pass_id")), a["token"].(string)
}

// session is a login of the administrator besides that of the test.
func (x *world) session() string {
	list, _ := x.made("GET", "/api/v1/user/sessions?per_page=200", x.login(x.token(admin)), "")["sessions"].([]any)
	for _, s := range list {
		if at(s, "current") == true {
			return x.id(at(s, "session_id"))
		}
	}
	require.Fail(x.t, "no current session")
	return ""
}

// challenge is what a login of the platform's operator is answered.
func (x *world) challenge() string {
	x.factor(6, true)
	a := x.do("POST", "/api/v1/user/login", "", fmt.Sprintf(`{"email":%q,"password":%q}`, x.w.Emails[cloud.PlatformAdmin], webtest.Password))
	require.Equal(x.t, "SECOND_FACTOR_REQUIRED", a.code())
	require.Equal(x.t, 401, a.status)
	c, _ := at(a.json, "details", "challenge").(string)
	return c
}

// pathOf is an operation's address with members in path and query.
func pathOf(o catalog.Operation, in map[string]any) string {
	path, query := o.Path, url.Values{}
	for _, m := range o.Members() {
		v, ok := in[m.Name]
		switch {
		case ok && m.Place == "path":
			path = strings.ReplaceAll(path, "{"+m.Name+"}", url.PathEscape(fmt.Sprint(v)))
		case ok && m.Place == "query":
			query.Set(m.Name, fmt.Sprint(v))
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

// number is an id as JSON has it.
func number(id string) any {
	if _, err := strconv.ParseInt(id, 10, 64); err != nil {
		return id
	}
	return json.Number(id)
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

// driven is an order on a route that was sent to its driver, after what comes
// before it: "P start-pickup".
func (x *world) driven(before string) map[string]any {
	kind, start, _ := strings.Cut(before, " ")
	if kind != "P" {
		start = kind
	}
	route, id := x.planned(kind == "P")
	x.made("POST", "/api/v1/routes/"+route+"/dispatch", x.token(admin), `{}`)
	if start != "" {
		x.made("POST", "/api/v1/driver/orders/"+id+"/"+start, x.token(cloud.DriverAccount), `{}`)
	}
	return map[string]any{"order_id": id}
}

const hooks = `{"webhook_sign_secret":"whk-secret-0123456789-abcdef-wxyz","order_create_webhook_url":"https://mine.example/orders"}`

// A webhook delivery of the business's own channel.
func (x *world) told() string {
	x.made("PUT", "/api/v1/webhook-settings", x.token(admin), hooks)
	x.order(cloud.OrderNew)
	list, _ := x.made("GET", "/api/v1/webhook-delivery-logs", x.token(admin), "")["logs"].([]any)
	require.NotEmpty(x.t, list)
	return x.id(at(list[0], "id"))
}

// toldAt is the address that receives the business's webhooks.
func (x *world) toldAt() string {
	x.made("PUT", "/api/v1/webhook-settings", x.token(admin), strings.Replace(hooks, "https://mine.example", "http://mine.example.com", 1))
	list, _ := x.made("GET", "/api/v1/webhook-urls", x.token(admin), "")["urls"].([]any)
	require.NotEmpty(x.t, list)
	return x.id(at(list[0], "url_id"))
}

// stacked is a new container.
func (x *world) stacked() string {
	x.packs++
	return x.id(at(x.made("POST", "/api/v1/otep/containers", x.token(admin), fmt.Sprintf(`{"kind":"pallet","scheme":"own","identity":"PALLET %d"}`, x.packs)), "container", "container_id"))
}

// subscribed is a subscription of the business.
func (x *world) subscribed() string {
	return x.id(at(x.made("POST", "/api/v1/otep/subscriptions", x.token(admin), `{"tracking_numbers":["SWP100200300"],"url":"https://hooks.example.com/parcels"}`), "subscription", "subscription_id"))
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

// fileOf is a form with a file of new records.
func fileOf(noun, csv string) string {
	const end = "--a-file-of-records"
	return end + "\r\nContent-Disposition: form-data; name=\"noun\"\r\n\r\n" + noun + "\r\n" + end +
		"\r\nContent-Disposition: form-data; name=\"file\"; filename=\"records.csv\"\r\nContent-Type: text/csv\r\n\r\n" + csv + "\r\n" + end + "--\r\n"
}

// bulk is a job of a person over a file of one line, which was checked and failed when
// the job has ended.
func (x *world) bulk(token, name, status string) string {
	s, err := x.w.FindToken(x.t.Context(), auth.Hash(token))
	require.NoError(x.t, err)
	now := time.Now().UTC()
	j := cloud.Job{ID: "bat_" + x.next("bulk"), BusinessID: s.Account.BusinessID, AccountID: s.Account.ID, Surface: "web", Language: "en", Operation: "orders.create", Noun: "order", Total: 2, Status: status, CreatedAt: now,
		Digest: "d", File: name + ".csv", FileHash: x.next("hash"), Headers: []string{"type"}, Columns: []string{"type"}}
	row := cloud.JobRow{JobID: j.ID, Row: 1, Input: []byte(`{"cells":["D"]}`), Checked: []byte(`{}`)}
	bad := cloud.JobRow{JobID: j.ID, Row: 2, Input: []byte(`{"cells":["X"]}`), Checked: []byte(`{"code":"VALIDATION_FAILED","message":"Invalid input.","errors":{"type":["type must be one of D, P."]}}`), Bad: true}
	if status == cloud.JobFailed {
		j.StartedAt, j.FinishedAt, row.Failed, row.Result = now, now, true, []byte(`{"message":"It failed."}`)
	}
	x.w.Write(x.t, cloud.Changes{JobChanges: cloud.JobChanges{Jobs: []cloud.Job{j}, JobRows: []cloud.JobRow{row, bad}}})
	return j.ID
}

// packed is a package of a delivery that has two.
func (x *world) packed() map[string]any {
	ref := x.next("TWO-")
	d := x.made("POST", partner+"/deliveries", x.token(provider), deliveryOf(ref, 88, ref+"a", ref+"b"))
	return map[string]any{"id": x.id(at(d, "delivery", "delivery_id")), "tracking_number": ref + "a"}
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

// formOf is a form with members and a small picture.
func formOf(in map[string]any) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(in)) {
		pairs = append(pairs, name, fmt.Sprint(in[name]))
	}
	return proofOf(pairs...)
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

// passkey is one of an account, whose private key does not exist.
func (x *world) passkey(id cloud.AccountID) string {
	name := x.next("passkey")
	n, err := strconv.ParseInt(strings.TrimPrefix(name, "passkey"), 10, 64)
	require.NoError(x.t, err)
	x.w.Write(x.t, cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{cloud.Passkey{ID: cloud.PasskeyID(1000 + n), AccountID: id, Credential: []byte(name), Name: "Phone", Data: []byte("{}"), CreatedAt: time.Now().UTC()}}}})
	return strconv.FormatInt(1000+n, 10)
}
