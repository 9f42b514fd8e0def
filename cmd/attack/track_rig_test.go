package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/internal/ring"
)

// gateway is a running cloud with the tokens of its sandbox. A stranger knows
// its HTTP address and nothing else.
type gateway struct {
	t      *testing.T
	server *server.Server
	box    server.Sandbox
	base   string
	log    *lines
}

// launch starts a cloud. Strangers are not limited unless change says so.
func launch(t *testing.T, change ...func(*server.Config)) *gateway {
	ring.SkipUnlessCheck(t, "each rule of these attacks has tests beside its code")
	t.Helper()
	g := &gateway{t: t, log: &lines{}}
	cfg := server.Config{Dir: t.TempDir(), Log: g.log.logger(), ToolsPerMinute: -1,
		Limits: catalog.Limits{Authenticated: -1, Anonymous: -1, Replay: -1, Batch: -1, Quotes: -1, Doors: -1}}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	g.server, err = server.New(t.Context(), cfg)
	require.NoError(t, err)
	g.box, err = g.server.Sandbox(t.Context(), server.SandboxConfig{Passwords: true, HashCost: cheapPasswords, Codes: cheapCodes})
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- g.server.Run(ctx, server.Listeners{HTTP: ln}) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	g.base = "http://" + ln.Addr().String()
	return g
}

// result is an answer of the cloud.
type result struct {
	status int
	header http.Header
	raw    string
	json   any
}

// at is a member of the answer by its path: packages.0.status. nil: there is none.
func (r result) at(path string) any {
	v := r.json
	for name := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			n := -1
			if _, err := fmt.Sscan(name, &n); err != nil || n < 0 || n >= len(x) {
				return nil
			}
			v = x[n]
		default:
			return nil
		}
	}
	return v
}

func (r result) text(path string) string { s, _ := r.at(path).(string); return s }

// plain is a client that follows no redirect.
var plain = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// call sends a request. Headers are pairs.
func (g *gateway) call(method, path, token, body string, headers ...string) result {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.base+path, strings.NewReader(body))
	require.NoError(g.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := plain.Do(req)
	require.NoError(g.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(g.t, err)
	r := result{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	_ = json.Unmarshal(raw, &r.json) // a page has none
	return r
}

// must sends a request that has to succeed.
func (g *gateway) must(method, path, token, body string, headers ...string) result {
	g.t.Helper()
	r := g.call(method, path, token, body, headers...)
	require.Less(g.t, r.status, 300, "%s %s: %s", method, path, r.raw)
	return r
}

// parcel is an order with a recipient, as its owner sees it.
type parcel struct {
	id     int
	number string
	link   string // recipient_link
}

// order makes an order for a recipient whose telephone number ends in 0123.
func (g *gateway) order(token, ref string) parcel {
	g.t.Helper()
	r := g.must("POST", "/api/v1/client/orderCreate", token, fmt.Sprintf(`{"type":"D","order_ref":%q,"note":"the dog bites","recipient":{"name":"Ann Lee","phone":"+14165550123","address_line1":"100 Queen St W",
		"city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"},"packages":[{"weight":2.5}]}`, ref))
	p := parcel{number: r.text("order.tracking_number"), link: r.text("order.recipient_link")}
	id, _ := r.at("order.order_id").(float64)
	p.id = int(id)
	require.NotZero(g.t, p.id, r.raw)
	return p
}

// visitor is a browser without a login. It follows no redirect.
type visitor struct {
	g       *gateway
	cookies map[string]string
}

func (g *gateway) visitor() *visitor { return &visitor{g, map[string]string{}} }

func (v *visitor) send(method, path string, form url.Values) result {
	v.g.t.Helper()
	var pairs []string
	for name, value := range v.cookies {
		pairs = append(pairs, name+"="+value)
	}
	headers := []string{"Cookie", strings.Join(pairs, "; "), "Sec-Fetch-Site", "same-origin"}
	body := ""
	if form != nil {
		body = form.Encode()
		headers = append(headers, "Content-Type", "application/x-www-form-urlencoded")
	}
	r := v.g.call(method, path, "", body, headers...)
	for _, c := range (&http.Response{Header: r.header}).Cookies() {
		v.cookies[c.Name] = c.Value
		if c.MaxAge < 0 || c.Value == "" {
			delete(v.cookies, c.Name)
		}
	}
	return r
}

// lines is what a cloud logs.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
