package oauth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

const (
	base     = "https://x.example"
	callback = "https://desk.example/cb"
	local    = "http://127.0.0.1/cb"
	verifier = "abcdefghijklmnopqrstuvwxyz-._~0123456789ABCDEF"

	admin, employee, nobody, disabled cloud.AccountID = 1, 2, 3, 4
)

func challengeOf(v string) string {
	sum := sha256.Sum256([]byte(v))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// rig is the server over a store with a few accounts.
type rig struct {
	t    testing.TB
	s    *Service
	db   *store.DB
	docs map[string]Document
	log  *lockedBuffer
	said []string // secrets that nothing may repeat
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func newRig(t testing.TB) *rig { return rigOn(t, storetest.OpenSQLite(t)) }

func rigOn(t testing.TB, db *store.DB) *rig {
	r := &rig{t: t, db: db, docs: map[string]Document{}, log: &lockedBuffer{}}
	r.s = New(Config{Store: db, BaseURL: base + "/", Log: slog.New(slog.NewTextHandler(r.log, nil)), Fetch: func(_ context.Context, url string) (Document, error) {
		d, ok := r.docs[url]
		if !ok {
			return d, errors.New("DNS: the host name does not resolve")
		}
		return d, nil
	}})
	a := func(id cloud.AccountID, typ cloud.AccountType, enabled bool, permissions ...string) cloud.Account {
		return cloud.Account{ID: id, BusinessID: 42, Type: typ, Name: "A", Email: string(rune('a'+id)) + "@x.example", Enabled: enabled, Permissions: permissions, CreatedAt: time.Now()}
	}
	r.write(cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 42, Code: "b"}},
		Accounts: []cloud.Account{a(admin, cloud.ClientAdmin, true),
			a(employee, cloud.ClientEmployee, true, "orders:read", "wms:read"), a(nobody, cloud.ClientEmployee, true), a(disabled, cloud.Customer, false)}}})
	return r
}

func (r *rig) write(ch cloud.Changes) {
	r.t.Helper()
	require.NoError(r.t, r.db.Decide(context.Background(), 0, func(cloud.View) (*cloud.Changes, error) { return &ch, nil }))
}

type reply struct {
	status int
	json   map[string]any
	header func(string) string
	body   string
}

func (a reply) error() string        { s, _ := a.json["error"].(string); return s }
func (a reply) text(n string) string { s, _ := a.json[n].(string); return s }

// do asks one of the routes.
func (r *rig) do(method, path, kind, body string, headers ...string) reply {
	r.t.Helper()
	for _, route := range r.s.Routes() {
		if route.Path != path {
			continue
		}
		var req fasthttp.Request
		req.Header.SetMethod(method)
		req.SetRequestURI(base + path)
		if kind != "" {
			req.Header.SetContentType(kind)
		}
		req.SetBodyString(body)
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		var ctx fasthttp.RequestCtx
		ctx.Init(&req, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 5}, nil)
		route.Handle(&ctx)
		out := reply{status: ctx.Response.StatusCode(), body: string(ctx.Response.Body()), header: func(n string) string { return string(ctx.Response.Header.Peek(n)) }}
		_ = json.Unmarshal(ctx.Response.Body(), &out.json) // some have no body
		return out
	}
	r.t.Fatalf("no route %s", path)
	return reply{}
}

// post sends a form.
func (r *rig) post(path string, f url.Values) reply {
	r.t.Helper()
	return r.do("POST", path, "application/x-www-form-urlencoded", f.Encode())
}

// client registers one.
func (r *rig) client(redirects ...string) string {
	r.t.Helper()
	c, err := r.s.register(context.Background(), metadata{Name: "Desk", RedirectURIs: redirects}, "192.0.2.7")
	require.NoError(r.t, err)
	return c.ID
}

// asking is a good authorization request, but for some changes: pairs of names
// and values, where an empty value leaves the parameter out.
func asking(client string, changes ...string) url.Values {
	v := url.Values{"client_id": {client}, "redirect_uri": {callback}, "response_type": {"code"}, "state": {"st-1"}, "code_challenge": {challengeOf(verifier)},
		"code_challenge_method": {"S256"}, "resource": {base + "/mcp"}}
	return with(v, changes...)
}

func with(v url.Values, changes ...string) url.Values {
	v = maps.Clone(v)
	for i := 0; i < len(changes); i += 2 {
		if v.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			v.Del(changes[i])
		}
	}
	return v
}

func (r *rig) check(v url.Values) (*Request, *Refusal) {
	r.t.Helper()
	q, err := r.s.Check(context.Background(), base, v.Encode(), "192.0.2.7")
	var refusal *Refusal
	if err != nil {
		require.ErrorAs(r.t, err, &refusal)
	}
	return q, refusal
}

// allowed is a code that a user's consent gave.
func (r *rig) allowed(id cloud.AccountID, profile string, v url.Values) string {
	r.t.Helper()
	q, refusal := r.check(v)
	require.Nil(r.t, refusal)
	to, err := r.s.Allow(context.Background(), q, cloud.Token{AccountID: id}, Choice{Profile: profile}, "192.0.2.7")
	require.NoError(r.t, err)
	u, err := url.Parse(to)
	require.NoError(r.t, err)
	code := u.Query().Get("code")
	require.Len(r.t, code, 64)
	r.said = append(r.said, code)
	return code
}

// paying is a good token request for a code.
func paying(client, code string, changes ...string) url.Values {
	return with(url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "code": {code}, "redirect_uri": {callback}, "code_verifier": {verifier}, "resource": {base + "/mcp"}}, changes...)
}

func refreshing(client, token string, changes ...string) url.Values {
	return with(url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {token}, "resource": {base + "/mcp"}}, changes...)
}

// given is a pair of tokens.
func (r *rig) given(f url.Values) (access, refresh string) {
	r.t.Helper()
	a := r.token(f)
	require.Equal(r.t, 200, a.status, a.body)
	return a.text("access_token"), a.text("refresh_token")
}

func (r *rig) token(f url.Values) reply {
	r.t.Helper()
	a := r.post(TokenPath, f)
	if a.status == 429 {
		r.t.Fatal("the test asks too often")
	}
	for _, n := range []string{"access_token", "refresh_token"} {
		if s := a.text(n); s != "" {
			r.said = append(r.said, s)
		}
	}
	return a
}

// unlimited is a server that answers as often as it is asked.
func (r *rig) unlimited() *rig {
	r.s = New(r.s.cfg)
	return r
}

// stored is a token as it is kept, and whether it lets in.
func (r *rig) stored(token string) (cloud.Token, bool) {
	r.t.Helper()
	l, err := r.db.FindToken(context.Background(), auth.Hash(token))
	require.NoError(r.t, err)
	return l.Token, auth.Valid(l.Token, time.Now())
}

// audits are the actions of all lines, newest first. None holds a secret.
func (r *rig) audits() (out []string) {
	r.t.Helper()
	for _, b := range []cloud.BusinessID{0, 42} {
		rows, err := r.db.ListAudits(context.Background(), b, 0, 1000)
		require.NoError(r.t, err)
		for _, a := range rows {
			for _, secret := range append(r.said, verifier, challengeOf(verifier), "st-1") {
				require.NotContains(r.t, a.Detail+a.Target+a.Action+a.Actor, secret)
			}
			require.True(r.t, json.Valid([]byte(a.Detail)))
			out = append(out, a.Action)
		}
	}
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	for _, secret := range append(r.said, verifier) {
		require.False(r.t, strings.Contains(r.log.b.String(), secret), "the log holds a secret")
	}
	return out
}
