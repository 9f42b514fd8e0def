package page_test

import (
	"context"
	"encoding/json"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/cloud/rest"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// fresh is the pages over an empty database.
type fresh struct {
	t     *testing.T
	db    *store.DB
	setup *setup.Service
	rest  *rest.Server
	base  string
	token string
}

func newFresh(t *testing.T, proxies ...peer.Proxies) *fresh {
	f := &fresh{t: t, db: storetest.OpenSQLite(t)}
	f.setup = setup.New(setup.Config{Store: f.db, Key: []byte("key"), NewToken: device.NewToken})
	var err error
	f.token, _, err = f.setup.IssueToken(t.Context())
	require.NoError(t, err)
	_, f.rest, _ = serverBehind(t, slices.Concat(proxies, []peer.Proxies{{}})[0], func(c *page.Config) {
		c.Setup, c.Store, c.FindToken = f.setup, f.db, func(ctx context.Context, hash [32]byte) (auth.Session, error) {
			l, err := f.db.FindToken(ctx, hash)
			return auth.Session{Token: l.Token, Account: l.Account}, err
		}
	})
	return f
}

func (f *fresh) serve() {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(f.t, err)
	f.base = "http://" + ln.Addr().String()
	done := make(chan error, 1)
	go func() { done <- f.rest.Serve(ln) }()
	f.t.Cleanup(func() { require.NoError(f.t, f.rest.Shutdown(context.Background())); require.NoError(f.t, <-done) })
}

// browser keeps cookies and follows redirects.
func (f *fresh) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	require.NoError(f.t, err)
	tr := &http.Transport{}
	f.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: tr}
}

func (f *fresh) do(c *http.Client, method, path string, form url.Values, change func(*http.Request)) (*http.Response, string) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.base+path, strings.NewReader(form.Encode()))
	require.NoError(f.t, err)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(req)
	}
	r, err := c.Do(req)
	require.NoError(f.t, err)
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	require.NoError(f.t, err)
	return r, string(raw)
}

var hiddenField = regexp.MustCompile(`name="form" value="([^"]+)"`)

func hiddenIn(t *testing.T, text string) string {
	t.Helper()
	m := hiddenField.FindStringSubmatch(text)
	require.Len(t, m, 2, text)
	return m[1]
}

func firstForm(form string) url.Values {
	return url.Values{"form": {form}, "business": {"Harbour"}, "timezone": {"Asia/Tokyo"}, "email": {"ada@harbour.example"}, "password": {"a long enough password"}}
}

// The page is served on this machine and over TLS, and on no other connection,
// whatever the request says and whether or not the value is right.
func TestSetUpIsServedOnSafeConnectionsOnly(t *testing.T) {
	t.Parallel()
	f := newFresh(t)
	f.serve()
	for name, change := range map[string]func(*http.Request){
		"a name that resolves to this machine": func(r *http.Request) { r.Host = "postern.evil.example" },
		"another address of this machine":      func(r *http.Request) { r.Host = "192.0.2.7:8080" },
		"an unknown proxy that has TLS":        func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") },
		"an unknown proxy":                     func(r *http.Request) { r.Header.Set("X-Forwarded-For", "127.0.0.1") },
		"a forged Forwarded":                   func(r *http.Request) { r.Header.Set("Forwarded", "for=127.0.0.1;proto=https") },
		"a proxy that only says Via":           func(r *http.Request) { r.Header.Set("Via", "1.1 cache") },
	} {
		for _, path := range []string{"/setup?key=" + f.token, "/setup?key=wrong", "/setup", "/setup/cabinet"} {
			r, text := f.do(f.browser(), "GET", path, nil, change)
			require.Equal(t, 403, r.StatusCode, "%s %s", name, path)
			require.Contains(t, text, "needs a safe connection", name)
			require.Empty(t, r.Cookies(), name)
		}
		r, _ := f.do(f.browser(), "POST", "/setup", firstForm("x"), change)
		require.Equal(t, 403, r.StatusCode, name)
	}
	r, _ := f.do(f.browser(), "GET", "/setup?key="+f.token, nil, nil)
	require.Equal(t, 200, r.StatusCode)
}

// Two people open the address; the second to send the form finds it used, and the
// first goes on to a cabinet.
func TestTheFirstBusinessAndCabinetByPages(t *testing.T) {
	t.Parallel()
	f := newFresh(t)
	f.serve()
	one, two := f.browser(), f.browser()
	r, text := f.do(one, "GET", "/setup?key="+f.token, nil, nil)
	require.Equal(t, []any{200, ""}, []any{r.StatusCode, r.Request.URL.RawQuery}, "the value is not in the address any more")
	_, second := f.do(two, "GET", "/setup?key="+f.token, nil, nil)
	for _, c := range one.Jar.Cookies(r.Request.URL) {
		require.NotEmpty(t, c.Name)
	}

	bad := firstForm(hiddenIn(t, text))
	bad.Set("password", "short")
	r, again := f.do(one, "POST", "/setup", bad, func(r *http.Request) { r.Header.Set("Accept-Language", "de") })
	require.Equal(t, 422, r.StatusCode)
	require.Contains(t, again, "Ein Passwort hat 10 bis 256 Zeichen.")
	require.Contains(t, again, `value="Harbour"`, "what was typed stays")
	require.NotContains(t, again, "short")
	r, _ = f.do(one, "POST", "/setup", firstForm("another page's"), nil)
	require.Equal(t, 403, r.StatusCode)
	r, _ = f.do(f.browser(), "POST", "/setup", firstForm(hiddenIn(t, text)), nil)
	require.Equal(t, 403, r.StatusCode, "without the cookies of the page")

	r, text = f.do(one, "POST", "/setup", firstForm(hiddenIn(t, again)), nil)
	require.Equal(t, []any{200, "/setup/cabinet"}, []any{r.StatusCode, r.Request.URL.Path})
	rival := firstForm(hiddenIn(t, second))
	rival.Set("email", "eve@rival.example")
	r, late := f.do(two, "POST", "/setup", rival, nil)
	require.Equal(t, 410, r.StatusCode, late)
	require.Contains(t, late, `href="/console/login"`, "the page leads to the login that it names")
	accounts, err := f.db.FindAccountsByEmail(t.Context(), "eve@rival.example")
	require.NoError(t, err)
	require.Empty(t, accounts)
	r, _ = f.do(two, "GET", "/setup/cabinet", nil, nil)
	require.Equal(t, "/console/login", r.Request.URL.Path)

	add := url.Values{"form": {hiddenIn(t, text)}, "device_name": {"Pier 7"}, "device_code": {"PIER-7"}, "layout": {"small"}}
	r, text = f.do(one, "POST", "/setup/cabinet", add, nil)
	require.Equal(t, 200, r.StatusCode, text)
	line := regexp.MustCompile(`<code id="enrolment">([^<]+)</code>`).FindStringSubmatch(text)
	require.Len(t, line, 2)
	require.Regexp(t, `^`+regexp.QuoteMeta(f.base)+` PIER-7 [0-9A-Z]{5}(-[0-9A-Z]{5}){4}-[0-9A-Z]$`, html.UnescapeString(line[1]))
	require.Regexp(t, `<time datetime="[^"]+" title="[-0-9]+ [:0-9]+ JST">`, text, "times are those of the business")
	r, text = f.do(one, "POST", "/setup/cabinet", add, nil)
	require.Equal(t, 422, r.StatusCode)
	require.Contains(t, text, "A cabinet with this code exists.")
	renew := regexp.MustCompile(`name="renew" value="([0-9]+)"`).FindStringSubmatch(text)
	require.Len(t, renew, 2)
	r, text = f.do(one, "POST", "/setup/cabinet", url.Values{"form": {hiddenIn(t, text)}, "renew": {renew[1]}}, nil)
	require.Equal(t, 200, r.StatusCode)
	require.NotContains(t, text, line[1], "another token")
	r, text = f.do(one, "POST", "/setup/cabinet", url.Values{"form": {add.Get("form")}, "renew": {"999999"}}, nil)
	require.Equal(t, 404, r.StatusCode, text)
	require.Contains(t, text, `name="device_code"`, "the page says it above its form")
	r, _ = f.do(one, "POST", "/setup/cabinet", url.Values{"form": {"x"}, "renew": {renew[1]}}, nil)
	require.Equal(t, 403, r.StatusCode)
}

// Behind a trusted proxy with TLS the page is served, and every cookie is for TLS
// only.
func TestCookiesAreSecureWhereTheCallerHasTLS(t *testing.T) {
	t.Parallel()
	proxies, err := peer.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, "")
	require.NoError(t, err)
	f := newFresh(t, proxies)
	f.serve()
	for proto, secure := range map[string]bool{"https": true, "http": false} {
		c := f.browser()
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		r, _ := f.do(c, "GET", "/setup?key="+f.token, nil, func(r *http.Request) {
			r.Host = "tms.example"
			r.Header.Set("X-Forwarded-For", "192.0.2.9")
			r.Header.Set("X-Forwarded-Proto", proto)
		})
		if !secure {
			require.Equal(t, 403, r.StatusCode)
			continue
		}
		require.Equal(t, 303, r.StatusCode)
		require.NotEmpty(t, r.Cookies())
		for _, k := range r.Cookies() {
			require.True(t, k.Secure && k.HttpOnly, k.Name)
		}
	}
}

// In a real browser: nothing that axe objects to on the pages of the first start,
// in six languages; they work with the keyboard and without script.
func TestSetUpInARealBrowser(t *testing.T) {
	f := newFresh(t)
	f.serve()
	out := nodeAt(t, f.base, nil, "setup.mjs", withBrowser(t, []string{f.token})...)
	var found struct {
		Axe      map[string][]string
		Console  []string
		Foreign  []string
		Overflow []string
		Ended    string
		Scan     bool
	}
	require.NoError(t, json.Unmarshal(out, &found))
	require.NotEmpty(t, found.Axe)
	for name, violations := range found.Axe {
		require.Empty(t, violations, name)
	}
	require.Empty(t, found.Console)
	require.Empty(t, found.Foreign)
	require.Empty(t, found.Overflow)
	require.Equal(t, "/setup/cabinet", found.Ended)
	require.True(t, found.Scan, "the QR code is drawn black on white in both schemes")
}
