package server

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/internal/ring"
)

// accessLine is a line of the access log.
type accessLine struct {
	Time, Level, Msg, Method, Operation, Route, Address string
	Status, Bytes                                       int
	Took                                                float64 `json:"duration_ms"`
	Account                                             int64
	RequestID                                           string `json:"request_id"`
}

// Each request to the public address has one line, which names its operation and account
// and holds nothing of what the request holds: its path, query, headers and body carry
// what lets its holder in.
func TestAccessLogHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "hunter2secret"
	proxies, err := peer.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "")
	require.NoError(t, err)
	var log written
	w := agentWorldOf(t, Config{Proxies: proxies, AccessLog: slog.New(slog.NewJSONHandler(&log, nil))}, true)
	admin := int64(w.box.AdminCaller.Account.ID)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	person := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	form := url.Values{"email": {w.box.Admin.Email}, "password": {w.box.Admin.Password}}
	lines := 0
	for _, x := range []struct {
		method, path, token, kind, body string
		want                            accessLine
	}{
		{method: "GET", path: "/track/" + number + "?key=" + secret, want: accessLine{Operation: "page", Route: "/track/{number}", Status: 404}},
		{method: "GET", path: "/invitation?key=" + secret, want: accessLine{Operation: "page", Route: "/invitation", Status: 303}},
		{method: "GET", path: "/" + secret + "/" + secret, want: accessLine{Operation: "page", Status: 404}},
		{method: "GET", path: "/api/v1/otep/trackings/" + number + "?key=" + secret, want: accessLine{Operation: "otep.tracking", Status: 404}},
		{method: "GET", path: "/api/v1/" + secret, want: accessLine{Operation: "unknown", Status: 404}},
		{method: "GET", path: "/api/v1/user/me", token: secret, want: accessLine{Operation: "user.me", Status: 401}},
		{method: "GET", path: "/api/v1/user/me", token: w.box.Admin.Token, want: accessLine{Operation: "user.me", Status: 200, Account: admin}},
		{method: "POST", path: "/api/v1/user/login", kind: "application/json", body: `{"email":"` + w.box.Admin.Email + `","password":"` + secret + `"}`, want: accessLine{Operation: "user.login", Status: 401}},
		{method: "POST", path: "/api/graphql", token: w.box.Admin.Token, kind: "application/json", body: `{"query":"query ` + secret + ` { me { id } }"}`, want: accessLine{Operation: "graphql", Account: admin}},
		{method: "POST", path: "/mcp/developer?key=" + secret, token: w.box.Admin.Token, kind: "application/json", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + secret + `","arguments":{"password":"` + secret + `"}}}`,
			want: accessLine{Operation: "/mcp/developer", Account: admin}},
		{method: "POST", path: "/console/login", kind: "application/x-www-form-urlencoded", want: accessLine{Operation: "page", Route: "/console/login", Status: 303}},
		{method: "GET", path: "/console?key=" + secret, want: accessLine{Operation: "page", Route: "/console", Status: 200, Account: admin}},
		{method: "HEAD", path: "/track", want: accessLine{Operation: "page", Route: "/track", Status: 303}},
		{method: strings.ToUpper(secret), path: "/track", want: accessLine{Method: "other", Operation: "page"}},
		{method: "GET", path: "/readyz"}, // no line: it is asked every second
		{method: "GET", path: "/robots.txt", want: accessLine{Operation: "page", Route: "/robots.txt", Status: 200}},
	} {
		name := x.method + " " + x.path
		if x.path == "/console/login" {
			r, err := person.Get(w.base + x.path)
			require.NoError(t, err)
			page, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.NoError(t, r.Body.Close())
			m := regexp.MustCompile(`name="(\w+)" value="([^"]{32})"`).FindSubmatch(page)
			require.NotNil(t, m)
			form.Set(string(m[1]), string(m[2]))
			x.body = form.Encode()
			lines++
			ring.Await(t, func() bool { return strings.Count(log.text(), "\n") == lines })
		}
		req, err := http.NewRequestWithContext(t.Context(), x.method, w.base+x.path, strings.NewReader(x.body))
		require.NoError(t, err)
		req.Header.Set("X-Forwarded-For", "203.0.113.7")
		req.Header.Set("User-Agent", secret)
		req.Header.Set("Referer", "http://x/"+secret)
		req.Header.Set("X-Tracking-Key", secret)
		req.Header.Set("Accept-Encoding", "identity")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if x.kind != "" {
			req.Header.Set("Content-Type", x.kind)
		}
		if x.token != "" {
			req.Header.Set("Authorization", "Bearer "+x.token)
		}
		r, err := person.Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		if x.want == (accessLine{}) {
			continue
		}
		lines++
		ring.Await(t, func() bool { return strings.Count(log.text(), "\n") == lines }, name)
		got := lastLine(t, log.text())
		if x.want.Status == 0 {
			x.want.Status = r.StatusCode
		}
		if x.want.Method == "" {
			x.want.Method = x.method
		}
		x.want.Time, x.want.Level, x.want.Msg, x.want.Took = got.Time, "INFO", "request", got.Took
		x.want.Bytes, x.want.RequestID, x.want.Address = len(body), r.Header.Get("X-Request-Id"), "203.0.113.7"
		require.Equal(t, x.want, got, name)
		require.Equal(t, got.Status, r.StatusCode, name)
		require.NotEmpty(t, got.Time, name)
		require.Positive(t, got.Took, name)
	}
	raw(t, w.base, secret+" /"+secret+" HTTP/9\r\n\r\n")
	lines++
	ring.Await(t, func() bool { return strings.Count(log.text(), "\n") == lines })
	got := lastLine(t, log.text())
	require.Equal(t, "unreadable", got.Operation)
	require.Equal(t, 400, got.Status)
	for _, word := range []string{secret, strings.ToUpper(secret), number, w.box.Admin.Password, w.box.Admin.Email, w.box.Admin.Token, "Mina", "Bearer"} {
		require.NotContains(t, log.text(), word)
	}
	for _, c := range jar.Cookies(mustURL(t, w.base+"/console")) {
		require.NotContains(t, log.text(), c.Value)
	}
}

// lastLine reads the last line of an access log. It has no members that the type lacks.
func lastLine(t *testing.T, text string) (out accessLine) {
	t.Helper()
	all := strings.Split(strings.TrimSpace(text), "\n")
	d := json.NewDecoder(strings.NewReader(all[len(all)-1]))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&out), text)
	return out
}

// raw sends what is no request and waits for the end of the answer.
func raw(t *testing.T, base, text string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	require.NoError(t, err)
	defer c.Close()
	_, err = fmt.Fprint(c, text)
	require.NoError(t, err)
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Contains(t, string(answer), " "+strconv.Itoa(http.StatusBadRequest)+" ")
}

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}
