package page_test

import (
	"bytes"
	"cmp"
	"context"
	"html"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/api"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/chat"
	agentdocs "github.com/postern-io/postern/cloud/docs/agent"
	"github.com/postern-io/postern/cloud/graphql"
	"github.com/postern-io/postern/cloud/job"
	"github.com/postern-io/postern/cloud/limit"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/oauth"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/cloud/peer"
	business "github.com/postern-io/postern/cloud/platform"
	"github.com/postern-io/postern/cloud/rest"
	"github.com/postern-io/postern/cloud/route"
	platform "github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store/storetest"
	tools "github.com/postern-io/postern/cloud/tool"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/cloud/webtest"
)

// feed is what tests reach of the parts behind the pages.
type feed struct {
	tool runner
	to   atomic.Value // address of the receiver that every name leads to

	service *webhook.Service
	pages   *page.Pages
}

// passkeysAt is the address that passkeys are for in a test with a browser, which has
// the process to itself; empty: that of the others.
var passkeysAt string

// server is the whole HTTP face over a filled store.
func server(t testing.TB, change func(*page.Config)) (*webtest.World, *rest.Server, *feed) {
	return serverBehind(t, peer.Proxies{}, change)
}

func serverBehind(t testing.TB, proxies peer.Proxies, change func(*page.Config)) (*webtest.World, *rest.Server, *feed) {
	w, f := webtest.New(t), &feed{}
	keys, err := auth.NewPasskeys(cmp.Or(passkeysAt, "https://cloud.test"), []byte("challenges"))
	require.NoError(t, err)
	w.Auth.WithPasskeys(keys)
	gate := auth.NewGate(w.Auth, auth.GateConfig{PerIP: 1000, PerEmail: 1000})
	cfg := page.Config{Store: w.DB, Tracking: tracking.New(w.DB).Guard(tracking.GuardConfig{Links: linkKey}), Gate: gate, Auth: w.Auth, Passkeys: true, FindToken: w.FindToken, Deliveries: w.Deliveries, PerMinute: -1, Agents: oauth.New(oauth.Config{Store: w.DB}), Receivers: f.receivers(w)}
	hooks, err := platform.HookGuide("")
	require.NoError(t, err)
	cfg.Webhooks = hooks
	if change != nil {
		change(&cfg)
	}
	line := catalog.NewPipeline(catalog.Config{FindToken: cfg.FindToken})
	if cfg.Approvals == nil {
		cfg.Approvals = approvals(w, f)
	}
	orders := order.New(order.Config{Store: w.DB, Sealer: storetest.Box(t)})
	chats := chat.New(chat.Config{Store: w.DB, Key: bytes.Repeat([]byte{2}, 32)})
	table := api.New(api.Config{Approvals: cfg.Approvals, Store: w.DB, Pipeline: line, Setup: cfg.Setup, Accounts: account.New(account.Config{Store: w.DB, Confirm: api.Confirm(gate), Passkeys: keys, MailBase: map[bool]string{true: "https://cloud.test"}[cfg.Mails]}), Gate: gate, Auth: w.Auth, Lockers: w.Lockers, Tracking: cfg.Tracking, Orders: orders, Chat: chats, Platform: business.New(business.Config{Store: w.DB, Jobs: w.DB}), Jobs: job.New(job.Config{Store: w.DB, Pipeline: line}), Routes: route.New(route.Config{Store: w.DB, Orders: orders}), Receivers: cfg.Receivers})
	cfg.Catalog, cfg.Pipeline = table, line
	if cfg.Interface == nil {
		cfg.Interface = func() []byte { return table.OpenAPI("", "test") }
	}
	pages, err := page.New(cfg)
	require.NoError(t, err)
	f.pages = pages
	w.DB.OnCommit(pages.Committed)
	graph, err := graphql.New(graphql.Config{Catalog: table, Pipeline: line})
	require.NoError(t, err)
	var mounts []rest.Mount
	for _, r := range cfg.Agents.Routes() {
		mounts = append(mounts, rest.Mount{Path: r.Path, MaxBody: oauth.MaxBody, Handle: r.Handle})
	}
	describes, err := agentdocs.New(agentdocs.Config{Catalog: table, Tools: tools.New(tools.Config{Catalog: table, Pipeline: line}).Tools, About: func(scope string) string { return locale.Scope(locale.English, scope) }})
	require.NoError(t, err)
	for _, x := range describes.Documents() {
		mounts = append(mounts, rest.Mount{Path: x.Path, Document: func(q rest.DocumentQuery) (rest.Document, error) {
			f, err := x.Get(q.Base, q.Value)
			return rest.Document(f), err
		}})
	}
	return w, rest.New(rest.Config{Proxies: proxies, Catalog: table, Pipeline: line, Mounts: mounts, Pages: pages.Handler, GraphQL: func(ctx context.Context, q rest.GraphQLRequest) rest.GraphQLResponse {
		return rest.GraphQLResponse(graph.Serve(ctx, graphql.Request(q)))
	}}), f
}

// linkKey makes the tracking links of these tests.
var linkKey = webtest.Links

type rig struct {
	t       testing.TB
	w       *webtest.World
	s       *rest.Server
	f       *feed
	ln      *fasthttputil.InmemoryListener
	c       *fasthttp.Client
	cookies map[string]string
	asked   int
}

func newRig(t testing.TB, change func(*page.Config)) *rig {
	w, s, f := server(t, change)
	ln := webtest.Serve(t, s)
	return &rig{t: t, w: w, s: s, f: f, ln: ln, c: webtest.Client(ln), cookies: map[string]string{}}
}

type got struct {
	status int
	header func(string) string
	body   string
	set    map[string]string // cookies as set, whole
}

// hidden is the value of a hidden field of the page.
func (g got) hidden(t testing.TB, name string) string {
	t.Helper()
	m := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(g.body)
	require.NotNil(t, m, "%s: %s", name, g.body)
	return html.UnescapeString(m[1])
}

// do sends a request with the cookies so far and keeps those that are set.
func (r *rig) do(method, path string, form url.Values, headers ...string) got {
	r.t.Helper()
	if form == nil {
		return r.raw(method, path, "", "", headers...)
	}
	return r.raw(method, path, "application/x-www-form-urlencoded", form.Encode(), headers...)
}

func (r *rig) raw(method, path, kind, body string, headers ...string) got {
	r.t.Helper()
	var req fasthttp.Request
	var resp fasthttp.Response
	req.Header.SetMethod(method)
	req.SetRequestURI("http://cloud.test" + path)
	for k, v := range r.cookies {
		req.Header.SetCookie(k, v)
	}
	if kind != "" {
		req.Header.SetContentType(kind)
		req.SetBodyString(body)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	require.NoError(r.t, r.c.DoTimeout(&req, &resp, 30*time.Second))
	g := got{status: resp.StatusCode(), header: func(n string) string { return string(resp.Header.Peek(n)) }, body: string(resp.Body()), set: map[string]string{}}
	for _, whole := range resp.Header.Cookies() {
		var c fasthttp.Cookie
		require.NoError(r.t, c.ParseBytes(whole))
		g.set[string(c.Key())] = string(whole)
		if len(c.Value()) == 0 {
			delete(r.cookies, string(c.Key()))
		} else {
			r.cookies[string(c.Key())] = string(c.Value())
		}
	}
	return g
}

var formField = regexp.MustCompile(`name="form" value="([^"]{32})"`)

// signIn logs a person in by the form.
func (r *rig) signIn(email string) got {
	r.t.Helper()
	page := r.do("GET", "/console/login", nil)
	m := formField.FindStringSubmatch(page.body)
	require.NotNil(r.t, m)
	return r.do("POST", "/console/login", url.Values{"email": {email}, "password": {webtest.Password}, "form": {m[1]}})
}

// fillIn opens a generated form, fills it in and sends it to be looked at. The hidden
// fields of the page are added to form.
func (r *rig) fillIn(path string, form url.Values) got {
	r.t.Helper()
	g := r.do("GET", path, nil)
	require.Equal(r.t, 200, g.status, path)
	for name, field := range map[string]string{"form": formField.FindStringSubmatch(g.body)[1], "key": g.hidden(r.t, "key"), "was": g.hidden(r.t, "was"), "step": "next"} {
		form.Set(name, field)
	}
	return r.do("POST", path, form)
}

// confirm fills in a form and does what its preview showed.
func (r *rig) confirm(path string, form url.Values) got {
	r.t.Helper()
	g := r.fillIn(path, form)
	require.Equal(r.t, 200, g.status, g.body)
	form.Set("digest", g.hidden(r.t, "digest"))
	form.Set("step", "do")
	return r.do("POST", path, form)
}

func (r *rig) signedIn() {
	r.t.Helper()
	g := r.signIn(r.w.Emails[cloud.ClientAdmin])
	require.Equal(r.t, 303, g.status, g.body)
}

// clean checks that a page holds nothing secret and nothing inline.
func clean(t testing.TB, r *rig, g got) {
	t.Helper()
	for _, secret := range []string{webtest.PickupCode, webtest.DeliveryCode, webtest.Secret, webtest.Password, "555 0123", "9 Secret Lane", "Jane Smith"} {
		require.NotContains(t, g.body, secret)
	}
	for _, token := range r.w.Tokens {
		require.NotContains(t, g.body, token)
	}
	if s := r.cookies["postern_session"]; s != "" {
		require.NotContains(t, g.body, s)
	}
	require.NotRegexp(t, `>(account|cab|col|collect|console|todo|track|work)\.[a-z_.]+<`, g.body, "a word that there is not")
	require.NotContains(t, g.body, "<style")
	require.NotRegexp(t, `\sstyle=`, g.body)
	require.NotRegexp(t, `\son[a-z]+=`, g.body)
	require.NotRegexp(t, `<script(?:>|[^>]*>[^<])`, g.body, "a script has no body")
	require.NotRegexp(t, `(?:src|href)="(?:https?:)?//`, g.body, "nothing comes from other hosts")
	require.Contains(t, g.header("Content-Security-Policy"), "default-src 'none'")
	require.NotContains(t, g.header("Content-Security-Policy"), "unsafe")
	require.Equal(t, "no-store", g.header("Cache-Control"))
	require.NotContains(t, g.body, "ZgotmplZ", "the template engine refused a value")
	ids := map[string]int{}
	for _, m := range anID.FindAllStringSubmatch(g.body, -1) {
		ids[m[1]]++
		require.Equal(t, 1, ids[m[1]], "elements with the id %s", m[1])
	}
	for _, m := range idNamed.FindAllStringSubmatch(g.body, -1) {
		for _, id := range strings.Fields(m[1]) {
			require.Contains(t, ids, id, "what names an element is on its page")
		}
	}
}

var anID, idNamed = regexp.MustCompile(`\sid="([^"]+)"`), regexp.MustCompile(`aria-(?:labelledby|describedby)="([^"]+)"`)

func TestEveryPageInEveryLanguageIsClean(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	for _, l := range locale.All() {
		for path, status := range map[string]int{"/": 200, "/track/" + webtest.Waiting: 200, "/track/" + webtest.Announced: 200, "/track/NOTHING": 404, "/track/" + webtest.Old: 404,
			"/nothing": 404, "/console/login": 200, "/console": 200, "/track/%zz": 404} {
			g := r.do("GET", path+"?lang="+l.Code, nil)
			require.Equal(t, status, g.status, path)
			clean(t, r, g)
			require.Contains(t, g.body, `<html lang="`+l.Code+`">`)
			require.Equal(t, 1, strings.Count(g.body, "<h1"), path)
			require.Contains(t, g.body, `<main id="main"`)
		}
	}
}

func TestTheTrackingPageTellsWhatMatters(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := r.do("GET", "/track/"+webtest.Waiting, nil, "Accept-Language", "de")
	for _, want := range []string{"Abholbereit", "Wie es weitergeht", "Front St Lobby", "120 Front St W", "Letzte vier Ziffern", "Zuletzt bestätigt", "Angezeigt mit Stand", "Abholen bis", "Swift Parcel", "Zustellung begonnen", "tel:&#43;1 416 555 0100"} {
		require.Contains(t, strings.ReplaceAll(g.body, "%20", " "), want)
	}
	require.NotContains(t, g.body, "nicht verbunden")
	g = r.do("GET", "/track/"+webtest.Announced, nil)
	require.Contains(t, g.body, "The locker is not connected right now", "a page about an offline locker says so")
	require.Contains(t, g.body, "last seen")
	g = r.do("GET", "/track/%3Cscript%3Ealert(1)%3C%2Fscript%3E", nil)
	require.Equal(t, 404, g.status)
	require.Contains(t, g.body, "&lt;script&gt;alert(1)")
	require.Contains(t, g.body, "Check it for typing errors")
	g = r.do("GET", "/track?number=+"+webtest.Waiting+"%2Fx+", nil)
	require.Equal(t, 303, g.status)
	require.Equal(t, "/track/"+webtest.Waiting+"%2Fx", g.header("Location"))
	require.Equal(t, "/", r.do("GET", "/track?number=", nil).header("Location"))
}

// When a locker falls silent, its parcel's page does not look fresh.
func TestASilentLockerShowsOnItsParcels(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	seen := time.Now().Add(-90 * time.Minute).UTC()
	r.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{{DeviceID: 88, Generation: 2, Node: "test", LastSeenAt: seen}}}})
	g := r.do("GET", "/track/"+webtest.Waiting, nil)
	require.Contains(t, g.body, "The locker is not connected right now")
	toronto, err := time.LoadLocation("America/Toronto")
	require.NoError(t, err)
	require.Contains(t, g.body, seen.In(toronto).Format("2006-01-02 15:04 MST"))
}

func TestLanguageIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Contains(t, r.do("GET", "/", nil, "Accept-Language", "zh-HK").body, `<html lang="zh-Hant">`)
	require.Contains(t, r.do("GET", "/?lang=es", nil, "Accept-Language", "de").body, `<html lang="es">`)
	require.Contains(t, r.do("GET", "/", nil, "Accept-Language", "de").body, `<html lang="es">`, "the choice is kept")
	require.Contains(t, r.do("GET", "/?lang=xx", nil, "Accept-Language", "de").body, `<html lang="es">`)
}

func TestAssetsComeFromHere(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	home := r.do("GET", "/", nil).body
	for _, m := range regexp.MustCompile(`(?:src|href)="(/assets/[^"]+)"`).FindAllStringSubmatch(home, -1) {
		g := r.do("GET", m[1], nil)
		require.Equal(t, 200, g.status, m[1])
		require.Contains(t, g.header("Cache-Control"), "immutable")
		require.NotRegexp(t, `url\(\s*["']?https?:|@import`, g.body)
	}
	require.Equal(t, "no-cache", r.do("GET", "/assets/page.css?v=old", nil).header("Cache-Control"))
	require.Equal(t, 404, r.do("GET", "/assets/none.css", nil).status)
	require.Equal(t, 405, r.do("POST", "/", url.Values{}).status)
}

func TestSigningInAndOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *page.Config) { c.Secure = true })
	g := r.do("GET", "/console", nil)
	require.Equal(t, 303, g.status)
	require.Equal(t, "/console/login", g.header("Location"))
	g = r.signIn(r.w.Emails[cloud.ClientEmployee])
	require.Equal(t, 303, g.status)
	cookie := g.set["postern_session"]
	for _, want := range []string{"HttpOnly", "SameSite=Lax", "secure", "path=/"} {
		require.Contains(t, cookie, want)
	}
	token := r.cookies["postern_session"]
	g = r.do("GET", "/console", nil)
	require.Equal(t, 200, g.status)
	m := formField.FindStringSubmatch(g.body)
	require.Equal(t, 403, r.do("POST", "/console/logout", url.Values{"form": {strings.Repeat("x", 32)}}).status)
	require.Equal(t, 403, r.do("POST", "/console/logout", url.Values{"form": {m[1]}}, "Sec-Fetch-Site", "cross-site").status)
	require.Equal(t, 200, r.do("GET", "/console", nil).status, "a foreign form signs nobody out")
	g = r.do("POST", "/console/logout", url.Values{"form": {m[1]}})
	require.Equal(t, 303, g.status)
	r.cookies["postern_session"] = token
	require.Equal(t, 303, r.do("GET", "/console", nil).status, "the token itself has ended")
}

func TestWhoDoesNotGetIn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for typ, first := range map[cloud.AccountType]string{cloud.Broker: "/console/orders", cloud.Customer: "/console/orders", cloud.PlatformAdmin: "/console/businesses", cloud.DriverAccount: ""} {
		g := r.signIn(r.w.Emails[typ])
		require.Equal(t, 303, g.status, typ)
		require.Equal(t, map[bool]string{true: "/account", false: "/console"}[first == ""], g.header("Location"), typ)
		home := r.do("GET", "/console", nil)
		require.Equal(t, 303, home.status, typ)
		if first == "" {
			require.Equal(t, "/console/login", home.header("Location"), typ)
		} else {
			require.Equal(t, first, home.header("Location"), typ)
			for _, path := range []string{"/mcp-approvals", "/console/webhooks", "/console/cabinets/88/layout"} {
				require.Equal(t, 403, r.do("GET", path, nil).status, "%s %s: a page of the whole business", typ, path)
			}
		}
		require.Equal(t, map[bool]int{true: 401, false: 403}[first == ""], r.do("GET", "/live?t=x", nil).status, typ)
		delete(r.cookies, "postern_session")
	}
	require.Equal(t, 401, r.signIn("nobody@nowhere.example").status)
	r.do("GET", "/console/login", nil)
	g := r.do("POST", "/console/login", url.Values{"email": {r.w.Emails[cloud.ClientAdmin]}, "password": {webtest.Password}})
	require.Equal(t, 403, g.status, "without its form's token")
	require.NotContains(t, g.set, "postern_session")
	r.cookies["postern_session"] = r.w.Expired
	require.Equal(t, 303, r.do("GET", "/console", nil).status)
	g = r.signIn(`"><script>alert(1)</script>`)
	require.NotContains(t, g.body, "<script>alert")
}

func TestTheConsoleDrawsWhatStands(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{DeviceFaults: []cloud.DeviceException{{DeviceID: 88, Type: cloud.DevContentsMismatch, OpenedAt: time.Now(), SeenAt: time.Now()},
		{DeviceID: 88, Type: cloud.DevKeypadLocked, OpenedAt: time.Now(), SeenAt: time.Now()}}}})
	r.signedIn()
	g := r.do("GET", "/console", nil)
	for _, want := range []string{"Contents disagree", "Keypad locked", "Acme Logistics", "Front St Lobby", "Union Station East", "s-open", "s-occupied", "s-blocked", "s-unknown", "s-reserved", "s-free", "the door did not open",
		"Online since", "Offline, last seen", "LD-000064021", "in the locker", "locker_delivery.delivered", "delivered", "A-7", "running"} {
		require.Contains(t, g.body, want)
	}
	require.NotContains(t, g.body, "Berlin Hauptbahnhof", "another business's cabinet")
	cab := g.body[strings.Index(g.body, `id="cab-89"`):]
	cab = cab[:strings.Index(cab, "</article>")]
	require.NotContains(t, cab, "closed", "an offline cabinet's door is not claimed to be closed")
	require.Equal(t, 12, strings.Count(cab, "s-unknown"))
}

func TestTrackingPagesAreLimited(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *page.Config) {
		c.Tracking.Guard(tracking.GuardConfig{Lookups: limit.NewLookups(limit.LookupLimits{Parcel: 2, Misses: 60}, nil)})
	})
	for range 2 {
		require.Equal(t, 200, r.do("GET", "/track/"+webtest.Waiting, nil).status)
	}
	g := r.do("GET", "/track/"+webtest.Waiting, nil)
	require.Equal(t, 429, g.status)
	require.NotEmpty(t, g.header("Retry-After"))
	clean(t, r, g)
}
