// Package oidctest is a sign-in provider (OpenID Connect) on the loopback for tests, made of
// a library of others.
package oidctest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
)

// Secret of the client.
const Secret = "a secret of the client"

// People are those of the provider, by id.
type People map[string]*storage.User

// GetUserByID implements storage.UserStore.
func (p People) GetUserByID(id string) *storage.User { return p[id] }

// GetUserByUsername implements storage.UserStore.
func (p People) GetUserByUsername(name string) *storage.User {
	for _, u := range p {
		if u.Username == name {
			return u
		}
	}
	return nil
}

// ExampleClientID implements storage.UserStore.
func (p People) ExampleClientID() string { return "service" }

// Provider is a real one of a library of others, at one address for as long as the test.
type Provider struct {
	t        testing.TB
	URL      string
	People   People
	callback string
	face     atomic.Pointer[http.Handler]
}

// New starts a provider for one client, postern with Secret, that is sent back to callback.
func New(t testing.TB, callback string) *Provider {
	p := &Provider{t: t, callback: callback, People: People{}}
	for id, u := range map[string]storage.User{"ann": {Email: "ann@a.example", EmailVerified: true}, "eve": {Email: "ben@a.example"}, "cus": {Email: "cus@a.example", EmailVerified: true}, "out": {Email: "out@x.example", EmailVerified: true}, "thief": {Email: "ann@a.example", EmailVerified: true}} {
		u.ID, u.Username, u.Password = id, id, "a password of the provider"
		p.People[id] = &u
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*p.face.Load()).ServeHTTP(w, r) }))
	t.Cleanup(s.Close)
	p.URL = s.URL
	p.Start()
	return p
}

// Start gives the provider keys of its own, others each time.
func (p *Provider) Start() {
	s := storage.NewStorageWithClients(p.People, map[string]*storage.Client{"postern": storage.WebClient("postern", Secret, p.callback)})
	h := http.Handler(exampleop.SetupServer(p.URL, s, nil, false))
	p.face.Store(&h)
}

// Face is what answers now.
func (p *Provider) Face() http.Handler { return *p.face.Load() }

// SetFace makes another handler answer.
func (p *Provider) SetFace(h http.Handler) { p.face.Store(&h) }

// Stop answers everything with a status.
func (p *Provider) Stop(status int) {
	h := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	p.face.Store(&h)
}

var authRequest = regexp.MustCompile(`authRequestID=([^&]+)`)

// SignIn is what a person does there; it gives the query of the callback.
func (p *Provider) SignIn(address, who string) url.Values {
	p.t.Helper()
	c := &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	next := func(a *http.Response, err error) string {
		p.t.Helper()
		require.NoError(p.t, err)
		defer a.Body.Close()
		raw, err := io.ReadAll(a.Body)
		require.NoError(p.t, err)
		require.Equal(p.t, 302, a.StatusCode, "%s", raw)
		to, err := url.Parse(p.URL)
		require.NoError(p.t, err)
		to, err = to.Parse(a.Header.Get("Location"))
		require.NoError(p.t, err)
		return to.String()
	}
	login := next(c.Get(address))
	m := authRequest.FindStringSubmatch(login)
	require.NotNil(p.t, m, login)
	back := next(c.PostForm(p.URL+"/login/username", url.Values{"username": {who}, "password": {"a password of the provider"}, "id": {m[1]}}))
	u, err := url.Parse(next(c.Get(back)))
	require.NoError(p.t, err)
	require.True(p.t, strings.HasPrefix(u.String(), p.callback), u.String())
	return u.Query()
}
