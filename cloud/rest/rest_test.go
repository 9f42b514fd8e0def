package rest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/api"
	"github.com/postern-io/postern/cloud/app"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/chat"
	"github.com/postern-io/postern/cloud/job"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/push"
	routes "github.com/postern-io/postern/cloud/route"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/cloud/webtest"
)

// guard takes every address but those on host "inside".
type guard struct{}

func (guard) CheckURL(_ context.Context, url string) error {
	if strings.Contains(url, "inside") || !strings.HasPrefix(url, "https://") {
		return errors.New("not a public address")
	}
	return nil
}

type rig struct {
	t  testing.TB
	w  *webtest.World
	s  *Server
	ln *fasthttputil.InmemoryListener
	c  *fasthttp.Client
	// month, unless empty, stands for June 2026 in requests and answers: what
	// ended long ago is public no more.
	month string
}

// options are what a test may change.
type options struct {
	Config
	Limits      catalog.Limits
	Gate        auth.GateConfig
	Unavailable []string // families
	Enrol       func(context.Context, string, string, []byte) (any, error)
	FindToken   func(context.Context, [32]byte) (auth.Session, error)
	Calls       catalog.Calls
}

func newRig(t testing.TB, change func(*options)) *rig { return rigOn(t, webtest.New(t), change) }

func rigOn(t testing.TB, w *webtest.World, change func(*options)) *rig {
	o := options{Limits: catalog.Limits{Authenticated: -1, Anonymous: -1, Replay: -1, Doors: -1},
		Enrol: func(_ context.Context, code, token string, _ []byte) (any, error) {
			if token != "one-time" {
				return nil, cloud.E(cloud.Unauthenticated, "TOKEN_INVALID")
			}
			return map[string]string{"device_code": code}, nil
		}, Gate: auth.GateConfig{PerIP: 1000, PerEmail: 1000}, FindToken: w.FindToken, Calls: w.DB}
	if change != nil {
		change(&o)
	}
	accounts := account.New(account.Config{Store: w.DB, Unavailable: o.Unavailable})
	files, err := object.Open(t.TempDir(), bytes.Repeat([]byte{1}, 32))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, files.Close()) })
	chats := chat.New(chat.Config{Store: w.DB, Files: files, SignFile: files.Address, Key: bytes.Repeat([]byte{2}, 32)})
	o.Pipeline = catalog.NewPipeline(catalog.Config{FindToken: o.FindToken, FindRecipient: chats.FindRecipient, Feature: accounts.Gate, Hidden: api.PricesHidden, Calls: o.Calls, Limits: o.Limits})
	receivers := webhook.New(w.DB, guard{})
	orders := order.New(order.Config{Store: w.DB, Webhooks: receivers, Sealer: storetest.Box(t), SignFile: files.Address})
	parcels := tracking.New(w.DB).SignFiles(files.Address).MoveOrders(order.CarriersOf(orders)).TakeOlder(100 * 365 * 24 * time.Hour).Guard(tracking.GuardConfig{Legacy: tracking.LegacyOpen, Lookups: o.Pipeline.Lookups()})
	parcels.InviteToChat(chats.Invite)
	jobs := job.New(job.Config{Store: w.DB, Pipeline: o.Pipeline, Message: locale.Error, Field: locale.FieldOf, Word: locale.Word, Country: locale.CountryIn})
	o.Catalog = api.New(api.Config{Jobs: jobs, Store: w.DB, Pipeline: o.Pipeline, Auth: w.Auth, Gate: auth.NewGate(w.Auth, o.Gate), Lockers: w.Lockers,
		Tracking: parcels, Files: files, Chat: chats, Orders: orders, Pushes: push.NewReader(w.DB), Routes: routes.New(routes.Config{Store: w.DB, Orders: orders}), Receivers: receivers, Accounts: accounts, Apps: app.New(app.Config{Store: w.DB, Feature: accounts.Gate, Languages: []string{"en", "fr"}, Text: func(lang, key string) string { return locale.Word(lang, key) }}), Enrol: o.Enrol})
	o.Alone = !w.DB.Peers()
	r := &rig{t: t, w: w, s: New(o.Config)}
	w.DB.OnCommit(r.s.Committed)
	w.DB.OnCommit(parcels.Committed)
	t.Cleanup(parcels.EndFeed)
	r.s.http.ReadTimeout = time.Second // some odd requests look unfinished
	r.ln = webtest.Serve(t, r.s)
	r.c = webtest.Client(r.ln)
	return r
}

type got struct {
	status int
	header func(string) string
	head   string // all headers, as they came
	body   []byte
	json   map[string]any
}

func (g got) code() string { c, _ := g.json["error_code"].(string); return c }

// do sends a request; headers are pairs.
func (r *rig) do(method, path, token, body string, headers ...string) got {
	r.t.Helper()
	var req fasthttp.Request
	var resp fasthttp.Response
	req.Header.SetMethod(method)
	req.SetRequestURI("http://cloud.test" + path)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if r.month != "" {
		body = strings.ReplaceAll(body, "2026-06-", r.month)
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
	require.NoError(r.t, r.c.DoTimeout(&req, &resp, 30*time.Second))
	g := got{status: resp.StatusCode(), header: func(n string) string { return string(resp.Header.Peek(n)) }, head: resp.Header.String(), body: append([]byte(nil), resp.Body()...)}
	if r.month != "" {
		g.body = bytes.ReplaceAll(g.body, []byte(r.month), []byte("2026-06-"))
	}
	_ = json.Unmarshal(g.body, &g.json) // some answers are no JSON
	return g
}

// refused checks an error answer's whole shape.
func (r *rig) refused(g got, status int, code string) {
	r.t.Helper()
	require.Equal(r.t, status, g.status, "%s", g.body)
	require.Equal(r.t, code, g.code())
	require.Equal(r.t, false, g.json["result"])
	require.Equal(r.t, code, g.json["code"])
	require.Equal(r.t, g.header("X-Request-Id"), g.json["request_id"])
	require.NotEmpty(r.t, g.json["request_id"])
	require.NotEmpty(r.t, g.json["message"])
	require.Equal(r.t, "application/json; charset=utf-8", g.header("Content-Type"))
	require.Empty(r.t, g.header("Server"))
}

const base = "/api/v1/third-party-delivery"

func (r *rig) provider() string { return r.w.Tokens[cloud.ProviderType] }

// fill puts ids of the first business into a path.
func (r *rig) fill(path string) string {
	for from, to := range map[string]string{"/deliveries/{id}": fmt.Sprintf("/deliveries/%d", r.w.Delivery.ID), "/webhook-deliveries/{id}": fmt.Sprintf("/webhook-deliveries/%d", r.w.Outbox), "/trackings/{tracking_number}": "/trackings/" + webtest.Waiting, "/tracking/{tracking_number}": "/tracking/" + webtest.Waiting, "/devices/{id}": "/devices/88", "{grid_id}": "7001", "/packages/{tracking_number}": "/packages/PK-1"} {
		path = strings.ReplaceAll(path, from, to)
	}
	return path
}

// bodies are valid bodies for operations that need one.
var bodies = map[string]string{
	"third_party.deliveries.create": `{"reference_number":"R-1","device_id":88,"packages":[{"tracking_number":"NEW1"}],"recipient":{"name":"X","phone":"+14165550100"}}`,

	"third_party.deliveries.add_package": `{"tracking_number":"NEW2"}`,
	"third_party.deliveries.reassign":    `{"size":"M"}`,
	"third_party.deliveries.fail":        `{"failure_code":"OTHER"}`,
	"third_party.deliveries.correct":     `{"reason":"wrong parcel"}`,
	"third_party.deliveries.extend":      `{"hours":24}`,
}

// An employee without the scope is refused, with it let in.
func TestEmployeesNeedScopes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	token := r.w.Tokens[cloud.ClientEmployee]
	path := "/api/v1/smart-lockers/devices/88"
	g := r.do("GET", path, token, "")
	r.refused(g, 403, "FORBIDDEN")
	require.Equal(t, map[string]any{"scope": "lockers:read"}, g.json["details"])
	s, err := r.w.FindToken(t.Context(), auth.Hash(token))
	require.NoError(t, err)
	s.Account.Permissions = []string{"lockers:read"}
	r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{s.Account}}})
	require.Equal(t, 200, r.do("GET", path, token, "").status)
	r.refused(r.do("POST", path+"/grids/8809/unblock", token, "{}"), 403, "FORBIDDEN")
}

func TestDescriptionOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := r.do("GET", "/api/openapi.json", "", "")
	require.Equal(t, 200, g.status)
	require.Equal(t, "3.1.0", g.json["openapi"])
	require.Equal(t, 304, r.do("GET", "/api/openapi.json", "", "", "If-None-Match", g.header("ETag")).status)
}

// What a refusal for want of a name asks for.
func TestAskingForAToken(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for token, code := range map[string]string{"": "UNAUTHENTICATED", "unknown-token": "TOKEN_INVALID"} {
		g := r.do("GET", base+"/me", token, "")
		r.refused(g, 401, code)
		require.Equal(t, "Bearer", g.header("WWW-Authenticate"))
	}
}

func TestStaffUnblockCompartments(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin := r.w.Tokens[cloud.ClientAdmin]
	r.refused(r.do("GET", "/api/v1/smart-lockers/devices/x", admin, ""), 404, "DEVICE_NOT_FOUND")
	const mine = "/api/v1/smart-lockers/devices/88"
	g := r.do("GET", mine, admin, "")
	require.Equal(t, 200, g.status, "%s", g.body)
	grids := g.json["device"].(map[string]any)["grids"].([]any)
	require.NotEmpty(t, grids)
	for _, x := range grids {
		if grid := x.(map[string]any); grid["state"] == "blocked" {
			g := r.do("POST", fmt.Sprintf("%s/grids/%v/unblock", mine, grid["grid_id"]), admin, `{"reason":"lock freed"}`)
			require.Equal(t, 200, g.status, "%s", g.body)
			require.Equal(t, "free", g.json["grid"].(map[string]any)["state"])
			require.Nil(t, g.json["grid"].(map[string]any)["block_reason"])
		}
	}
	r.refused(r.do("POST", mine+"/grids/1/unblock", admin, `{}`), 404, "GRID_NOT_FOUND")
	r.refused(r.do("POST", mine+"/grids/7001/unblock", admin, `{"reason":"`+strings.Repeat("x", 256)+`"}`), 422, "VALIDATION_FAILED")
}

func TestWhatIsNoOperation(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.refused(r.do("GET", "/api/v1/nothing", "", ""), 404, "NOT_FOUND")
	r.refused(r.do("GET", "/nothing", "", ""), 404, "NOT_FOUND")
	r.refused(r.do("GET", base+"/me/", r.provider(), ""), 404, "NOT_FOUND")
	g := r.do("DELETE", base+"/me", r.provider(), "")
	r.refused(g, 405, "METHOD_NOT_ALLOWED")
	require.Contains(t, g.header("Allow"), "GET")
	r.refused(r.do("OPTIONS", base+"/me", "", ""), 405, "METHOD_NOT_ALLOWED")
	require.Equal(t, 200, r.do("GET", "/healthz", "", "").status)
	require.Equal(t, 200, r.do("GET", "/readyz", "", "").status)
	r.refused(r.do("GET", "/metrics", "", ""), 404, "NOT_FOUND")
	r.refused(r.do("GET", "/debug/pprof/", "", ""), 404, "NOT_FOUND")
}

func TestReadyTellsWhenItIsNot(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *options) { c.Ready = func(context.Context) error { return errors.New("database is gone") } })
	g := r.do("GET", "/readyz", "", "")
	require.Equal(t, 503, g.status)
	require.NotContains(t, string(g.body), "database")
}

func TestUnreadableBodies(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	post := base + "/deliveries"
	for _, body := range []string{"{", "[]", `"x"`, "null", "{}{}", `{"a":"` + "\xff" + `"}`} {
		r.refused(r.do("POST", post, r.provider(), body), 400, "MALFORMED_JSON")
	}
	g := r.do("POST", post, r.provider(), `{"packages":[{"weight":"heavy"}]}`)
	r.refused(g, 422, "VALIDATION_FAILED")
	require.Contains(t, g.json["errors"], "packages.0.weight")
	for body, want := range map[string]string{`{"reference_number":"a\u0000b"}`: "reference_number must not contain the character U+0000.", `{"recipient":{"name":"\ud83d"}}`: "recipient.name must be valid UTF-8."} {
		g = r.do("POST", post, r.provider(), body)
		r.refused(g, 422, "VALIDATION_FAILED")
		require.Contains(t, string(g.body), want)
	}
	g = r.do("POST", post, r.provider(), `{}`)
	r.refused(g, 422, "VALIDATION_FAILED")
	require.Contains(t, g.json["errors"], "reference_number")
	r.refused(r.do("POST", post, r.provider(), "a=b", "Content-Type", "application/x-www-form-urlencoded"), 415, "UNSUPPORTED_MEDIA_TYPE")
	r.refused(r.do("POST", post, r.provider(), "{}", "Content-Encoding", "gzip"), 415, "UNSUPPORTED_MEDIA_TYPE")
	r.refused(r.do("GET", base+"/deliveries/%zz", r.provider(), ""), 400, "BAD_REQUEST")
	r.refused(r.do("GET", base+"/deliveries/a%00b", r.provider(), ""), 400, "BAD_REQUEST")
	r.refused(r.do("GET", base+"/webhook-deliveries/abc", r.provider(), ""), 404, "WEBHOOK_DELIVERY_NOT_FOUND")
	g = r.do("GET", base+"/webhook-deliveries?per_page=many", r.provider(), "")
	r.refused(g, 422, "VALIDATION_FAILED")
	r.refused(r.do("GET", base+"/webhook-deliveries?per_page=201", r.provider(), ""), 422, "VALIDATION_FAILED")
	status, body := r.raw("POST " + post + " HTTP/1.1\r\nHost: x\r\nContent-Length: 2097153\r\n\r\n{")
	require.Equal(t, 413, status)
	require.Contains(t, body, "PAYLOAD_TOO_LARGE")
	status, body = r.raw("POST " + post + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n200001\r\n" + strings.Repeat("x", maxBody+1) + "\r\n0\r\n\r\n")
	require.Equal(t, 413, status, body)
	g = r.do("POST", post, r.provider(), `{"a":"`+strings.Repeat("x", maxBody-10)+`"}`)
	r.refused(g, 422, "VALIDATION_FAILED") // as much as may be
}

// Members that an operation does not know are named in a header, which no other answer has.
func TestUnknownMembersAreNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	post := base + "/deliveries"
	g := r.do("POST", post, r.provider(), `{"colour":1,"a, b":1,"packages":[{"size":"S","ü":1}]}`)
	require.Equal(t, "a%2C b, colour, packages.0.%C3%BC", g.header(unknownHeader))
	for _, body := range []string{"", "{}", `{"reference_number":"R-1"}`} {
		require.NotContains(t, r.do("POST", post, r.provider(), body).head, unknownHeader, body)
	}
}

// raw sends bytes as they are and gives the first answer.
func (r *rig) raw(request string) (status int, body string) {
	r.t.Helper()
	c, err := r.ln.Dial()
	require.NoError(r.t, err)
	defer c.Close()
	go func() { _, _ = io.WriteString(c, request) }() // the server may hang up half-way
	var resp fasthttp.Response
	if err := resp.Read(bufio.NewReader(c)); err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode(), string(resp.Body())
}

func TestOddFramingIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	head := "POST /api/v1/user/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	for name, req := range map[string]string{
		"two lengths":            head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
		"two equal lengths":      head + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
		"length with chunks":     head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"chunks with length":     head + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"bare line feeds":        strings.ReplaceAll(head+"Content-Length: 2\r\n\r\n", "\r\n", "\n") + "{}",
		"one bare line feed":     head + "X-A: b\nContent-Length: 2\r\n\r\n{}",
		"signed length":          head + "Content-Length: +2\r\n\r\n{}",
		"space before the colon": head + "Content-Length : 2\r\n\r\n{}",
		"other coding":           head + "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"twice chunked":          head + "Transfer-Encoding: chunked, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"folded header":          head + "X-A: b\r\n Content-Length: 2\r\n\r\n{}",
		"header over the limit":  head + "X-A: " + strings.Repeat("a", 2*maxHeader) + "\r\n\r\n",
		"no request":             "hello\r\n\r\n",
	} {
		status, body := r.raw(req)
		require.Equal(t, 400, status, "%s: %s", name, body)
		require.Contains(t, body, "BAD_REQUEST", name)
	}
	status, body := r.raw(head + "Content-Length: 2\r\n\r\n{}")
	require.Equal(t, 422, status, "an ordinary request is read: %s", body)
	status, _ = r.raw(head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
	require.Equal(t, 422, status, "chunks alone are read")
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, "caller-id-1", r.do("GET", "/healthz", "", "", "X-Request-Id", "caller-id-1").header("X-Request-Id"))
	for _, bad := range []string{"short", strings.Repeat("a", 65), "bad id with spaces", "<script>alert</script>"} {
		id := r.do("GET", "/healthz", "", "", "X-Request-Id", bad).header("X-Request-Id")
		require.Len(t, id, 36)
		require.NotEqual(t, bad, id)
	}
}

func TestMessagesFollowTheLanguage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for header, lang := range map[string]string{"": "en", "de-CH": "de", "zh-TW": "zh-Hant", "zh": "zh-Hans", "fr": "fr", "es-AR,en;q=0.5": "es"} {
		g := r.do("GET", "/api/v1/tracking/NOTHING", "", "", "Accept-Language", header)
		r.refused(g, 404, "TRACKING_NOT_FOUND")
		require.Equal(t, locale.Error(lang, "TRACKING_NOT_FOUND"), g.json["message"])
		require.Equal(t, lang, g.header("Content-Language"))
		g = r.do("POST", base+"/deliveries", r.provider(), "{}", "Accept-Language", header)
		require.Equal(t, []any{locale.Field(lang, "device_id is required.")}, g.json["errors"].(map[string]any)["device_id"])
		g = r.do("GET", "/api/v1/otep/trackings/"+webtest.Waiting, "", "", "Accept-Language", header)
		last := g.json["data"].(map[string]any)["events"].([]any)[2].(map[string]any)
		require.Equal(t, locale.Status(lang, "x-available_for_pickup"), last["status_label"])
		require.Equal(t, "x-available_for_pickup", last["status_code"])
	}
}

func TestLimitsAndTheirHeaders(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *options) {
		c.Limits = catalog.Limits{Authenticated: 3, Anonymous: 1, Parcel: 2, Parcels: 3, Replay: 1, Doors: 1}
	})
	for i := range 2 {
		g := r.do("GET", "/api/v1/tracking/"+webtest.Waiting, "", "")
		require.Equal(t, 200, g.status)
		require.Equal(t, "3", g.header("X-RateLimit-Limit"), "of all parcels")
		require.Equal(t, fmt.Sprint(2-i), g.header("X-RateLimit-Remaining"))
		require.NotEmpty(t, g.header("X-RateLimit-Reset"))
	}
	g := r.do("GET", "/api/v1/tracking/"+webtest.Waiting, "", "")
	r.refused(g, 429, "RATE_LIMITED")
	require.NotEmpty(t, g.header("Retry-After"))
	require.Equal(t, "0", g.header("X-RateLimit-Remaining"))
	require.Equal(t, 401, r.do("GET", base+"/me", "guessed", "").status)
	r.refused(r.do("GET", base+"/me", "guessed", ""), 429, "RATE_LIMITED")
	replay := fmt.Sprintf("%s/webhook-deliveries/%d/redeliver", base, r.w.Outbox)
	require.Equal(t, 200, r.do("POST", replay, r.provider(), "").status, "a token has a bucket of its own")
	r.refused(r.do("POST", replay, r.provider(), ""), 429, "RATE_LIMITED")
	require.Equal(t, 200, r.do("GET", base+"/me", r.provider(), "").status)
	r.refused(r.do("GET", base+"/me", r.provider(), ""), 429, "RATE_LIMITED")
}

func TestDoorOpeningsAreLimitedByCabinet(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *options) { c.Limits = catalog.Limits{Doors: 1} })
	path := fmt.Sprintf("%s/deliveries/%d/open-doors", base, r.w.Delivery.ID)
	r.refused(r.do("POST", path, r.provider(), ""), 409, "DELIVERY_STATE_CONFLICT")
	r.refused(r.do("POST", path, r.provider(), ""), 429, "RATE_LIMITED")
	r.refused(r.do("POST", base+"/deliveries/64022/open-doors", r.provider(), ""), 409, "DEVICE_OFFLINE")
}

func TestInternalErrorsAndPanicsTellNothing(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{"error": func() error { return errors.New("secret detail") }, "panic": func() error { panic("secret detail") }} {
		r := newRig(t, func(c *options) {
			c.FindToken = func(context.Context, [32]byte) (auth.Session, error) { return auth.Session{}, fail() }
		})
		g := r.do("GET", base+"/me", "any", "")
		r.refused(g, 500, "INTERNAL_ERROR")
		require.NotContains(t, string(g.body), "secret detail", name)
		require.Equal(t, 200, r.do("GET", "/healthz", "", "").status, "the server lives on")
	}
}

func TestDeadlineIsAnError(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *options) {
		c.Timeout = 20 * time.Millisecond
		c.Enrol = func(ctx context.Context, _, _ string, _ []byte) (any, error) { <-ctx.Done(); return nil, ctx.Err() }
	})
	g := r.do("POST", "/api/v1/devices/enrol", "", `{"device_code":"A","token":"b"}`)
	r.refused(g, 503, "MODULE_UNAVAILABLE")
	require.Equal(t, "5", g.header("Retry-After"))
}

func TestLoginMeLogout(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	email := r.w.Emails[cloud.ClientAdmin]
	body := fmt.Sprintf(`{"email":%q,"password":%q,"device_name":"laptop"}`, strings.ToUpper(email), webtest.Password)
	g := r.do("POST", "/api/v1/user/login", "ignored", body)
	require.Equal(t, 200, g.status, "%s", g.body)
	token := g.json["access_token"].(string)
	require.Len(t, token, 64)
	require.Equal(t, "Bearer", g.json["token_type"])
	toronto, err := time.LoadLocation("America/Toronto")
	require.NoError(t, err)
	expires, err := time.ParseInLocation(time.DateTime, g.json["expires_at"].(string), toronto)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(auth.TokenLife), expires, time.Minute)
	me := r.do("GET", "/api/v1/user/me", token, "")
	require.Equal(t, g.json["user"], me.json["user"])
	require.Equal(t, email, me.json["user"].(map[string]any)["email"])
	require.Nil(t, me.json["user"].(map[string]any)["customer_id"])
	require.Equal(t, 200, r.do("POST", "/api/v1/user/logout", token, "").status)
	r.refused(r.do("GET", "/api/v1/user/me", token, ""), 401, "TOKEN_INVALID")

	g = r.do("POST", "/api/v1/user/login", "", fmt.Sprintf(`{"email":%q,"password":%q,"remember_me":true,"client_code":"ACME"}`, email, webtest.Password))
	expires, err = time.ParseInLocation(time.DateTime, g.json["expires_at"].(string), toronto)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(auth.RememberedLife), expires, time.Minute)
	for _, bad := range []string{
		fmt.Sprintf(`{"email":%q,"password":"wrong"}`, email), `{"email":"nobody@42.example","password":"wrong"}`,
		fmt.Sprintf(`{"email":%q,"password":%q,"client_code":"other"}`, email, webtest.Password)} {
		g := r.do("POST", "/api/v1/user/login", "", bad)
		r.refused(g, 401, "INVALID_CREDENTIALS")
		require.Empty(t, g.header("WWW-Authenticate"))
	}
	r.refused(r.do("POST", "/api/v1/user/login", "", `{}`), 422, "VALIDATION_FAILED")
}

func TestLoginsAreLimitedAndLocked(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *options) {
		c.Gate = auth.GateConfig{PerIP: 6, PerEmail: 4, Failures: 2}
	})
	try := func(email, password string) got {
		return r.do("POST", "/api/v1/user/login", "", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password))
	}
	email := r.w.Emails[cloud.Broker]
	r.refused(try(email, "x"), 401, "INVALID_CREDENTIALS")
	r.refused(try(email, "x"), 401, "INVALID_CREDENTIALS")
	g := try(email, webtest.Password)
	r.refused(g, 423, "ACCOUNT_LOCKED")
	require.Equal(t, "900", g.header("Retry-After"))
	r.refused(try("ghost@x.example", "x"), 401, "INVALID_CREDENTIALS")
	r.refused(try("ghost@x.example", "x"), 401, "INVALID_CREDENTIALS")
	r.refused(try("ghost@x.example", "x"), 423, "ACCOUNT_LOCKED") // nothing tells which emails exist
	g = try(r.w.Emails[cloud.ClientAdmin], webtest.Password)
	r.refused(g, 429, "RATE_LIMITED") // by address
	require.NotEmpty(t, g.header("Retry-After"))
}

func TestDeliveryFromBodyToBody(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	body := bodies["third_party.deliveries.create"]
	g := r.do("POST", base+"/deliveries", r.provider(), body)
	require.Equal(t, 201, g.status, "%s", g.body)
	d := g.json["delivery"].(map[string]any)
	require.Equal(t, "created", d["status"])
	require.Regexp(t, `^\d{7}$`, d["delivery_code"])
	id := fmt.Sprint(int(d["delivery_id"].(float64)))
	g = r.do("POST", base+"/deliveries", r.provider(), body)
	require.Equal(t, 200, g.status, "the same reference and body")
	r.refused(r.do("POST", base+"/deliveries", r.provider(), strings.Replace(body, "NEW1", "NEW2", 1)), 409, "DUPLICATE_REFERENCE")
	for _, key := range []string{id, "ref:R-1", "ref%3AR-1"} {
		g = r.do("GET", base+"/deliveries/"+key, r.provider(), "")
		require.Equal(t, 200, g.status, key)
		require.Equal(t, "R-1", g.json["delivery"].(map[string]any)["reference_number"])
	}
	g = r.do("GET", base+"/deliveries/"+id+"/doors", r.provider(), "")
	require.Equal(t, 200, g.status)
	require.Equal(t, true, g.json["online"])
	g = r.do("POST", base+"/deliveries/"+id+"/open-doors", r.provider(), `{"wait_seconds":0}`)
	require.Equal(t, 202, g.status, "nobody answered yet: %s", g.body)
	require.NotNil(t, g.json["opening"])
	r.refused(r.do("POST", base+"/deliveries/"+id+"/open-doors", r.provider(), `{"wait_seconds":21}`), 422, "VALIDATION_FAILED")
	r.refused(r.do("POST", base+"/deliveries/"+id+"/confirm", r.provider(), `{}`), 409, "DELIVERY_STATE_CONFLICT")
	r.refused(r.do("POST", base+"/deliveries/"+id+"/confirm", r.provider(), `{"packages":[{"tracking_number":"NOPE"}]}`), 409, "PACKAGE_NOT_IN_DELIVERY")
	g = r.do("POST", base+"/deliveries/64021/pickup-code/rotate", r.provider(), `{"reason":"security"}`)
	require.Equal(t, 200, g.status, "%s", g.body)
	require.Regexp(t, `^\d{6}$`, g.json["pickup_code"])
	r.refused(r.do("POST", base+"/deliveries/64021/pickup-code/rotate", r.provider(), `{"reason":"whim"}`), 422, "VALIDATION_FAILED")
	g = r.do("POST", base+"/deliveries/64022/cancel", r.provider(), `{"reason":"changed"}`)
	require.Equal(t, 200, g.status, "%s", g.body)
	require.Equal(t, "cancelled", g.json["delivery"].(map[string]any)["status"])
	r.refused(r.do("POST", base+"/deliveries/64022/cancel", r.provider(), ""), 409, "DELIVERY_STATE_CONFLICT")
	r.refused(r.do("POST", base+"/deliveries", r.provider(), strings.NewReplacer("R-1", "R-2", "NEW1", "N3", "88", "90").Replace(body)), 404, "DEVICE_NOT_FOUND")
}

func TestWebhookEndpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	path := base + "/webhook-endpoint"
	g := r.do("GET", path, r.provider(), "")
	require.Equal(t, 200, g.status, "%s", g.body)
	require.Equal(t, "…wxyz", g.json["webhook_endpoint"].(map[string]any)["secret_hint"])
	require.NotContains(t, string(g.body), webtest.Secret)
	for field, body := range map[string]string{"url": `{"url":"https://inside.example"}`, "sandbox_url": `{"sandbox_url":"http://x.example"}`, "events": `{"events":["order.created"]}`,
		"format": `{"format":"xml"}`, "signature": `{"signature":"none"}`} {
		g = r.do("PUT", path, r.provider(), body)
		r.refused(g, 422, "VALIDATION_FAILED")
		require.Contains(t, g.json["errors"], field)
	}
	g = r.do("PUT", path, r.provider(), `{"url":"https://new.example/hook","events":["locker_delivery.delivered"],"enabled":false}`)
	require.Equal(t, 200, g.status, "%s", g.body)
	e := g.json["webhook_endpoint"].(map[string]any)
	require.Equal(t, "https://new.example/hook", e["url"])
	require.Equal(t, false, e["enabled"])
	require.NotContains(t, g.json, "secret", "a secret is shown when it is made")

	g = r.do("PUT", path, r.w.Stranger, `{"url":"https://rival.example/hook"}`)
	require.Equal(t, 200, g.status)
	require.Len(t, g.json["secret"], 43, "the first save makes one")
	g = r.do("POST", path+"/secret", r.provider(), `{"secret":"short"}`)
	r.refused(g, 422, "VALIDATION_FAILED")
	require.NotContains(t, string(g.body), "short\"")
	r.refused(r.do("POST", path+"/secret", r.provider(), `{"secret":"whsec_AAAAAAAAAAAAAAAA"}`), 422, "VALIDATION_FAILED")
	g = r.do("POST", path+"/secret", r.provider(), "")
	require.Equal(t, 200, g.status)
	require.Equal(t, false, g.json["dropped_oldest"])
	g = r.do("POST", path+"/secret", r.provider(), `{"secret":"chosen-by-the-provider"}`)
	require.Equal(t, "chosen-by-the-provider", g.json["secret"])
	require.Equal(t, true, g.json["dropped_oldest"])
	require.Equal(t, "…ider", r.do("GET", path, r.provider(), "").json["webhook_endpoint"].(map[string]any)["secret_hint"])
}

func TestWebhookLogMasksCodes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := r.do("GET", base+"/webhook-deliveries?status=success&event=locker_delivery.delivered", r.provider(), "")
	require.Equal(t, 200, g.status, "%s", g.body)
	require.Len(t, g.json["deliveries"], 1)
	one := fmt.Sprintf("%s/webhook-deliveries/%d", base, r.w.Outbox)
	g = r.do("GET", one, r.provider(), "")
	require.Equal(t, 200, g.status, "%s", g.body)
	data := g.json["delivery"].(map[string]any)["request_body"].(map[string]any)["data"].(map[string]any)
	require.Equal(t, "******", data["pickup_code"])
	require.Equal(t, "******", data["delivery_code"])
	require.NotContains(t, string(g.body), webtest.PickupCode)
	require.NotContains(t, string(g.body), webtest.DeliveryCode)
	g = r.do("POST", one+"/redeliver", r.provider(), "")
	require.Equal(t, 200, g.status, "%s", g.body)
	require.Equal(t, "pending", g.json["status"])
	id := g.json["log_id"].(float64)
	g = r.do("GET", fmt.Sprintf("%s/webhook-deliveries/%d", base, int(id)), r.provider(), "")
	require.EqualValues(t, r.w.Outbox, g.json["delivery"].(map[string]any)["replay_of"])
	g = r.do("GET", base+"/webhook-deliveries?per_page=1", r.provider(), "")
	require.Len(t, g.json["deliveries"], 1)
	require.NotNil(t, g.json["next_before"])
	hour := func(ago int) string {
		return url.QueryEscape(time.Now().Add(-time.Duration(ago) * time.Hour).Format(time.RFC3339))
	}
	for query, want := range map[string]int{"from=" + hour(3): 2, "from=" + hour(1): 1, "to=" + hour(1): 1, "from=" + hour(3) + "&to=" + hour(1): 1, "from=" + hour(5) + "&to=" + hour(3): 0,
		"status=pending": 1, "status=success": 1, "status=delivering": 0} {
		g = r.do("GET", base+"/webhook-deliveries?"+query, r.provider(), "")
		require.Len(t, g.json["deliveries"], want, query)
	}
	r.refused(r.do("GET", base+"/webhook-deliveries?from=noon", r.provider(), ""), 422, "VALIDATION_FAILED")
	work, err := r.w.DB.ClaimOutbox(t.Context(), 5, time.Now().Add(time.Minute), 1)
	require.NoError(t, err)
	require.Len(t, work, 1)
	g = r.do("GET", base+"/webhook-deliveries?status=delivering", r.provider(), "")
	require.Len(t, g.json["deliveries"], 1, "a filter finds what rows show")
	require.Equal(t, "delivering", g.json["deliveries"].([]any)[0].(map[string]any)["status"])
	require.Empty(t, r.do("GET", base+"/webhook-deliveries?status=pending", r.provider(), "").json["deliveries"])
	r.refused(r.do("GET", base+"/webhook-deliveries/77777", r.provider(), ""), 404, "WEBHOOK_DELIVERY_NOT_FOUND")
}

func TestEnrolment(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := r.do("POST", "/api/v1/devices/enrol", "", `{"device_code":"TOR-FRONT-01","token":"one-time"}`)
	require.Equal(t, 200, g.status)
	require.Equal(t, "TOR-FRONT-01", g.json["device_code"])
	r.refused(r.do("POST", "/api/v1/devices/enrol", "", `{"device_code":"TOR-FRONT-01","token":"two-time"}`), 401, "TOKEN_INVALID")
	r.refused(r.do("POST", "/api/v1/devices/enrol", "", `{}`), 422, "VALIDATION_FAILED")
	key := bytes.Repeat([]byte{251}, 32)
	var shown []byte
	keyed := newRig(t, func(c *options) {
		c.Enrol = func(_ context.Context, _, _ string, key []byte) (any, error) {
			shown = key
			return map[string]bool{"result": true}, nil
		}
	})
	enrol := func(text string) string {
		b, err := json.Marshal(map[string]string{"device_code": "TOR-FRONT-01", "token": "one-time", "public_key": text})
		require.NoError(t, err)
		return string(b)
	}
	for _, bad := range []string{"x", base64.StdEncoding.EncodeToString(key[1:]), base64.RawStdEncoding.EncodeToString(key), base64.URLEncoding.EncodeToString(key), base64.StdEncoding.EncodeToString(append(key, 1))} {
		g := keyed.do("POST", "/api/v1/devices/enrol", "", enrol(bad))
		keyed.refused(g, 422, "VALIDATION_FAILED")
		require.Contains(t, string(g.body), "32 bytes in standard base64", bad)
		require.Nil(t, shown)
	}
	require.Equal(t, 200, keyed.do("POST", "/api/v1/devices/enrol", "", enrol(base64.StdEncoding.EncodeToString(key))).status)
	require.Equal(t, key, shown)
	none := newRig(t, func(c *options) { c.Enrol = nil })
	none.refused(none.do("POST", "/api/v1/devices/enrol", "", `{}`), 404, "NOT_FOUND")
}

func TestTimelineOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	path := "/api/v1/otep/trackings/" + webtest.Waiting
	g := r.do("GET", path, "", "")
	require.Equal(t, 200, g.status, "%s", g.body)
	require.Equal(t, "otep", g.json["format"])
	require.Equal(t, "public, max-age=30", g.header("Cache-Control"))
	require.Equal(t, "Accept, Accept-Language, Authorization, X-Tracking-Key", g.header("Vary"))
	tag := g.header("ETag")
	require.Regexp(t, `^"[0-9a-f]{24}"$`, tag)
	for _, match := range []string{tag, "W/" + tag, `"x", ` + tag, "*", strings.TrimSuffix(tag, `"`) + `-gzip"`} {
		n := r.do("GET", path, "", "", "If-None-Match", match)
		require.Equal(t, 304, n.status, match)
		require.Empty(t, n.body)
	}
	require.Equal(t, 200, r.do("GET", path, "", "", "If-None-Match", `"other"`).status)
	require.NotEqual(t, tag, r.do("GET", path, "", "", "Accept-Language", "de").header("ETag"))
	require.Equal(t, "private, max-age=30", r.do("GET", path, r.provider(), "").header("Cache-Control"))
	bare := r.do("GET", path+"?envelope=0&format=OTEP", "", "")
	require.Equal(t, "0.1", bare.json["otep_version"])
	require.NotContains(t, bare.json, "format")
	z := r.do("GET", path, "", "", "Accept-Encoding", "gzip")
	require.Equal(t, "gzip", z.header("Content-Encoding"))
	require.Equal(t, strings.TrimSuffix(tag, `"`)+`-gzip"`, z.header("ETag"))
	g = r.do("GET", path+"?format=nonsense", "", "")
	r.refused(g, 400, "OTEP_UNSUPPORTED_FORMAT")
	require.Len(t, g.json["supported"], 14)
	require.NotContains(t, g.json, "errors", "no field is wrong")
	r.refused(r.do("GET", "/api/v1/otep/trackings/NOTHING", "", ""), 404, "OTEP_TRACKING_NOT_FOUND")
	require.Equal(t, 200, r.do("HEAD", path, "", "").status)
}

func TestPagesGetWhatIsNoOperation(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *options) {
		c.Pages = func(ctx *fasthttp.RequestCtx) {
			if string(ctx.Path()) == "/boom" {
				panic("page")
			}
			ctx.SetBodyString("page " + string(ctx.Path()))
		}
	})
	g := r.do("GET", "/track/X", "", "")
	require.Equal(t, "page /track/X", string(g.body))
	require.NotEmpty(t, g.header("X-Request-Id"))
	r.refused(r.do("GET", "/api/v1/x", "", ""), 404, "NOT_FOUND")
	r.refused(r.do("GET", "/boom", "", ""), 500, "INTERNAL_ERROR")
}

func FuzzDecodeBody(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", `{"packages":[{"weight":1e400}]}`, `{"a":"\u0000"}`, `{"a":"\\u0000"}`, bodies["third_party.deliveries.create"], strings.Repeat(`{"a":`, 50)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var in locker.OpenInput
		err := decodeBody(body, &in)
		var shown *cloud.Error
		if err != nil {
			require.ErrorAs(t, err, &shown)
			require.Contains(t, []string{"MALFORMED_JSON", "VALIDATION_FAILED"}, shown.Code)
		}
		require.Empty(t, in.Delivery, "a path member cannot come from the body")
	})
}

func FuzzOddFraming(f *testing.F) {
	f.Add([]byte("Host: x\r\nContent-Length: 2\r\n\r\n"))
	f.Add([]byte("Transfer-Encoding: chunked\r\ncontent-length: 1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, lines []byte) {
		if !oddFraming(lines) {
			lower := strings.ToLower(string(lines))
			require.LessOrEqual(t, strings.Count("\n"+lower, "\ncontent-length:")+strings.Count("\n"+lower, "\ntransfer-encoding:"), 1)
			require.Equal(t, strings.Count(lower, "\n"), strings.Count(lower, "\r\n"))
		}
	})
}

// A server that is stopped before it serves ends all the same.
func TestStoppedBeforeItServes(t *testing.T) {
	t.Parallel()
	line := catalog.NewPipeline(catalog.Config{})
	s := New(Config{Catalog: api.New(api.Config{Pipeline: line}), Pipeline: line})
	require.NoError(t, s.Shutdown(t.Context()))
	require.NoError(t, s.Serve(fasthttputil.NewInmemoryListener()))
	for range 50 {
		s := New(Config{Catalog: api.New(api.Config{Pipeline: line}), Pipeline: line})
		done := make(chan error, 1)
		go func() { done <- s.Serve(fasthttputil.NewInmemoryListener()) }()
		require.NoError(t, s.Shutdown(t.Context()))
		require.NoError(t, <-done)
	}
}
