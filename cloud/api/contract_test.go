package api_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/ring"
)

// checked starts the proxy that holds a server to its own document. It gives the
// proxy's address, and what it saw, once asked, of which operation: statuses and
// how often.
func checked(t *testing.T, upstream string) (addr string, end func() map[string]map[string]int) {
	t.Helper()
	program, err := exec.LookPath("node")
	ring.Needs(t, ring.EnvBrowsers, "node", err == nil)
	dir := filepath.Join("..", "page", "browser")
	_, err = os.Stat(filepath.Join(dir, "node_modules", "ajv-formats"))
	ring.Needs(t, ring.EnvBrowsers, "node_modules/ajv-formats (npm ci in cloud/page/browser)", err == nil)
	cmd := exec.CommandContext(t.Context(), program, "proxy.mjs", upstream, strings.Join(check.Formats(), ","))
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	addr, err = lines.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(strings.TrimPrefix(addr, "http://")), func() (seen map[string]map[string]int) {
		require.NoError(t, in.Close())
		require.NoError(t, json.NewDecoder(lines).Decode(&seen))
		require.NoError(t, cmd.Wait())
		return seen
	}
}

// reachable gives the world's server an address that other programs reach.
func (x *world) reachable() string {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(x.t, err)
	x.t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			out, err := ln.Accept()
			if err != nil {
				return
			}
			in, err := x.dial()
			if err != nil {
				_ = out.Close()
				return
			}
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
		}
	}()
	return "http://" + ln.Addr().String()
}

// Every operation answers what the document says, when it does what it is asked
// and when it refuses: a call without a token, a stranger's, one about nothing, one that
// says nonsense, one that was done already, one too many.
func TestAnswersAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	addr, end := checked(t, x.reachable())
	x.c.Dial = func(string) (net.Conn, error) { return net.Dial("tcp4", addr) }
	x.made("PUT", "/api/v1/apps/customer-app", x.token(admin), `{"enabled":true}`)
	ops := x.table.Operations()
	for _, o := range ops {
		c := x.call(o)
		own := x.token(c.as)
		if own != "" {
			own = x.login(own, "*")
		}
		try := func(path, token, body string, headers ...string) {
			if a := x.do(o.Method, path, token, body, headers...); a.status == mismatch {
				t.Errorf("%s: %s %s %s: %s", o.Name, o.Method, path, body, a.body)
			}
		}
		if o.Types != nil {
			try(c.path, "", c.body)
			try(c.path, "wrong", c.body)
			try(c.path, x.notFor(o), c.body)
		}
		if o.HasBody() || o.Raw() != nil {
			try(c.path, own, `{"`)
			try(c.path, own, nonsense(c.body))
		}
		if strings.Contains(o.Path, "{") {
			try(unknown(o.Path, "987654"), own, c.body)
		}
		try(c.path, own, c.body)
		if o.Writes() { // what was done can seldom be done again
			try(c.path, own, c.body)
		} else { // who has every answer there may be needs none
			try(c.path, own, c.body, "If-None-Match", "*")
		}
		if o.Idempotent {
			c = x.call(o)
			for _, body := range []string{c.body, c.body, strings.Replace(c.body, "{", `{"note":"another",`, 1)} {
				try(c.path, x.token(c.as), body, "Idempotency-Key", "contract-"+o.Name)
			}
		}
		if o.Group == catalog.Quotes {
			for range 140 { // 120 a minute, and what comes back meanwhile
				try(c.path, own, c.body)
			}
		}
	}
	for _, f := range projection.Formats() {
		for _, envelope := range []string{"1", "0"} {
			a := x.do("GET", "/api/v1/otep/trackings/"+webtest.Waiting+"?format="+f.Name+"&envelope="+envelope, "", "")
			require.Equal(t, 200, a.status, "%s: %s", f.Name, a.body)
		}
	}

	seen, all := end(), map[string]int{}
	for _, o := range ops {
		good := 0
		for status, n := range seen[o.Name] {
			all[status] += n
			if status < "300" {
				good += n
			}
		}
		if !slices.Contains(elsewhere, o.Name) {
			require.Positive(t, good, "%s only answered %v", o.Name, seen[o.Name])
		}
		require.Equal(t, o.Tagged, seen[o.Name]["304"] > 0, o.Name)
	}
	for _, status := range []string{"200", "201", "202", "400", "401", "403", "404", "409", "422", "429"} {
		require.Positive(t, all[status], "%s among %v", status, all)
	}
}

// mismatch is the proxy's own status, of what the document does not say.
const mismatch = 599

// notFor is the token of an account that may not call an operation.
func (x *world) notFor(o catalog.Operation) string {
	for typ, token := range x.w.Tokens {
		if !slices.Contains(o.Types, typ) {
			return token
		}
	}
	return "wrong" // everybody may
}

// nonsense is a body whose members have the wrong type.
func nonsense(body string) string {
	var m map[string]any
	if json.Unmarshal([]byte(body), &m) != nil || len(m) == 0 {
		return "[]"
	}
	for k, v := range m {
		m[k] = "nonsense"
		if _, text := v.(string); text {
			m[k] = 7
		}
	}
	b, _ := json.Marshal(m) // it was read a line ago
	return string(b)
}

// A server that does not do what its document says is found out, whatever the
// difference; one that does is not.
func TestTheProxySeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	document := table().OpenAPI("http://127.0.0.1", "test")
	var status int
	var kind, answer string
	mux := http.NewServeMux()
	mux.HandleFunc("/api/openapi.json", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(document) })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("ETag", `"tag"`)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	addr, end := checked(t, s.URL)
	const (
		good   = `{"result":true,"features":[]}`
		failed = `{"result":false,"code":"FORBIDDEN","error_code":"FORBIDDEN","message":"m","request_id":"r"}`
		kinds  = "application/json; charset=utf-8"
	)
	for _, c := range []struct {
		method, path, sent string
		status             int
		kind, answer       string
		want               string // "" nothing is wrong
	}{
		{"GET", "/api/v1/features", "", 200, kinds, good, ""},
		{"GET", "/api/v1/features", "", 403, kinds, failed, ""},
		{"GET", "/api/v1/nothing", "", 200, kinds, good, "GET /api/v1/nothing is not described"},
		{"GET", "/api/v1/features", "", 201, kinds, good, "status 201"},
		{"GET", "/api/v1/features", "", 404, kinds, failed, "status 404"},
		{"GET", "/api/v1/features", "", 200, "text/html", good, "content type text/html"},
		{"GET", "/api/v1/features", "", 200, kinds, "so", "no JSON"},
		{"GET", "/api/v1/features", "", 200, kinds, `{"features":[]}`, "required property 'result'"},
		{"GET", "/api/v1/features", "", 200, kinds, `{"result":"yes","features":[]}`, "must be boolean"},
		{"GET", "/api/v1/features", "", 200, kinds, `{"result":true,"features":null}`, "must be array"},
		{"GET", "/api/v1/features", "", 200, kinds, `{"result":true,"features":[],"extra":1}`, `"additionalProperty":"extra"`},
		{"GET", "/api/v1/features", "", 403, kinds, strings.ReplaceAll(failed, "FORBIDDEN", "SO_SO"), "code SO_SO"},
		{"GET", "/api/v1/features", "", 429, kinds, strings.ReplaceAll(failed, "FORBIDDEN", "RATE_LIMITED"), "header Retry-After is missing"},
		{"GET", "/api/v1/features?x=1", "", 200, kinds, good, "query x is not described"},
		{"GET", "/api/v1/users?page=two", "", 200, kinds, good, "query page"},
		{"POST", "/api/v1/user/login", `{"email":7}`, 200, kinds, good, "request/email must be string"},
		{"GET", "/api/v1/otep/trackings/X", "", 200, kinds, `{"trackings":[]}`, ""},
		{"GET", "/api/v1/otep/trackings/X", "", 200, kinds, `{"result":true,"format":"otep","data":{},"extra":1}`, `"additionalProperty":"extra"`},
		{"GET", "/api/v1/otep/trackings/X", "", 200, "application/ld+json", `[]`, "must be object"},
		{"POST", "/api/v1/user/login", "", 200, kinds, good, "a body is missing"},
	} {
		status, kind, answer = c.status, c.kind, c.answer
		req, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+addr+c.path, strings.NewReader(c.sent))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		said, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		if c.want == "" {
			require.Equal(t, c.status, resp.StatusCode, "%s", said)
			require.Equal(t, c.answer, string(said))
			continue
		}
		require.Equal(t, mismatch, resp.StatusCode, "%s %s %d %s", c.method, c.path, c.status, c.answer)
		require.Contains(t, string(said), c.want)
	}
	require.Equal(t, 1, end()["features.list"]["404"])
}

// A caller whose answer was lost asks again with its key: every POST that makes
// something takes one. What shows a secret does not, since the kept answer would
// hold it; who asks without a token has no key of its own.
func TestEveryCallThatCreatesTakesAKey(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	without := map[string]bool{}
	for _, o := range x.table.Operations() {
		if o.Method == http.MethodPost && o.Status == http.StatusCreated && !o.Idempotent {
			require.True(t, o.Secret || o.NoToken, "%s makes something and takes no Idempotency-Key", o.Name)
			without[o.Name] = true
		}
	}
	require.Len(t, without, 11, "%v", without)
	for _, c := range []struct{ path, body string }{
		{"/api/v1/users", `{"account_type":"client_employee","name":"Ada","email":"ada@acme.example","password":"long enough to keep"}`},
		{"/api/v1/customers", `{"name":"Books","email":"books@acme.example","password":"long enough to keep"}`},
		{"/api/v1/providers", `{"code":"swift-2","name":"Swift","services":["locker"]}`},
	} {
		first := x.do("POST", c.path, x.token(admin), c.body, "Idempotency-Key", "made-once")
		require.Equal(t, 201, first.status, "%s: %s", c.path, first.body)
		again := x.do("POST", c.path, x.token(admin), c.body, "Idempotency-Key", "made-once")
		require.Equal(t, []any{201, string(first.body)}, []any{again.status, string(again.body)}, c.path)
		other := x.do("POST", c.path, x.token(admin), strings.Replace(c.body, `"name":"`, `"name":"Not `, 1), "Idempotency-Key", "made-once")
		require.GreaterOrEqual(t, other.status, 400, "%s: another call with a key that is used: %s", c.path, other.body)
	}
}
