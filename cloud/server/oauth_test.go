package server

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// resourceful adds what RFC 8707 asks of token requests to those of a library
// that does not know of it.
type resourceful struct{ resource string }

func (t resourceful) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	text := string(body) + "&resource=" + url.QueryEscape(t.resource)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	return http.DefaultTransport.RoundTrip(r)
}

// A client library that others wrote connects with nothing but one address and
// a login: it finds the server, registers, sends its user there, gets tokens,
// and gets new ones when they are over. The user sees it and ends it.
func TestAClientOfOthersConnects(t *testing.T) {
	ring.SkipUnlessCheck(t, "single calls and packets")
	t.Parallel()
	s, err := New(t.Context(), Config{Dir: storetest.MigratedDir(t), Limits: catalog.Limits{Anonymous: -1}})
	require.NoError(t, err)
	const password = "correct horse battery"
	hash := auth.HashPassword(password)
	person := func(id cloud.AccountID, b cloud.BusinessID, email string) cloud.Account {
		return cloud.Account{ID: id, BusinessID: b, Type: cloud.ClientAdmin, Email: email, Name: "Ada", PasswordHash: hash, Enabled: true, CreatedAt: time.Now()}
	}
	require.NoError(t, s.Store.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 42, Code: "acme", Name: "Acme"}, {ID: 43, Code: "other", Name: "Other"}},
			Accounts: []cloud.Account{person(1, 42, "ada@acme.example"), person(2, 42, "bob@acme.example"), person(3, 43, "eve@other.example")}}}, nil
	}))
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, Listeners{HTTP: ln}) }()
	defer func() { stop(); require.NoError(t, <-done) }()
	base := "http://" + ln.Addr().String()

	// From the address of the tools to the server and a client id.
	var about struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	call(t, "GET", base+"/.well-known/oauth-protected-resource/mcp", "", nil, &about)
	require.Equal(t, base+"/mcp", about.Resource)
	require.Equal(t, []string{base}, about.Servers)
	var server struct {
		Issuer    string `json:"issuer"`
		Authorize string `json:"authorization_endpoint"`
		Token     string `json:"token_endpoint"`
		Register  string `json:"registration_endpoint"`
	}
	call(t, "GET", about.Servers[0]+"/.well-known/oauth-authorization-server", "", nil, &server)
	require.Equal(t, base, server.Issuer)
	var client struct {
		ID string `json:"client_id"`
	}
	call(t, "POST", server.Register, "", map[string]any{"client_name": "Desk", "redirect_uris": []string{"http://127.0.0.1/callback"}}, &client)

	conf := oauth2.Config{ClientID: client.ID, RedirectURL: "http://127.0.0.1:4711/callback", Scopes: []string{"orders:read", "labels:read"}, Endpoint: oauth2.Endpoint{AuthURL: server.Authorize, TokenURL: server.Token}}
	verifier := oauth2.GenerateVerifier()
	answer := consent(t, conf.AuthCodeURL("st", oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", about.Resource)), "ada@acme.example", password, "ops-write")
	require.Equal(t, base, answer.Get("iss"))
	require.Equal(t, "st", answer.Get("state"))

	// The library tries a password first; the code survives that.
	ctx = context.WithValue(t.Context(), oauth2.HTTPClient, &http.Client{Transport: resourceful{about.Resource}})
	_, err = conf.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(oauth2.GenerateVerifier()))
	require.ErrorContains(t, err, "invalid_grant")
	token, err := conf.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(verifier))
	require.NoError(t, err)
	require.Contains(t, token.Extra("scope"), "orders:write")
	require.WithinDuration(t, time.Now().Add(time.Hour), token.Expiry, time.Minute)

	admit := func(token, resource string) error {
		o := catalog.Define(catalog.Operation{Name: "t", Summary: "t", Tag: "t", Method: "GET", Path: "/t", Types: []cloud.AccountType{cloud.ClientAdmin}, Scopes: []string{"orders:write"}},
			func(context.Context, cloud.Caller, struct{}) (struct{}, error) { return struct{}{}, nil }, nil)
		_, _, _, err := s.line.Admit(t.Context(), &o, catalog.Who{Authorization: "Bearer " + token, IP: "192.0.2.1", Resource: resource})
		return err
	}
	require.NoError(t, admit(token.AccessToken, base+"/mcp"))
	require.NoError(t, admit(token.AccessToken, base+"/api/mcp"))
	for _, at := range []string{"", base, base + "/mcp/developer", base + "/mcpx"} {
		require.ErrorContains(t, admit(token.AccessToken, at), "TOKEN_INVALID", at)
	}
	require.ErrorContains(t, admit(token.RefreshToken, base+"/mcp"), "TOKEN_INVALID")
	require.Equal(t, 401, call(t, "GET", base+"/api/v1/user/me", token.AccessToken, nil, nil))
	require.Equal(t, 401, call(t, "GET", base+"/api/v1/user/agents", token.AccessToken, nil, nil))

	// When it is over the library gets new tokens by itself.
	old := *token
	token.Expiry = time.Now().Add(-time.Second)
	fresh, err := conf.TokenSource(ctx, token).Token()
	require.NoError(t, err)
	require.NotEqual(t, old.AccessToken, fresh.AccessToken)
	require.NotEqual(t, old.RefreshToken, fresh.RefreshToken)
	require.NoError(t, admit(fresh.AccessToken, base+"/mcp"))

	// The user sees it; no other account does, and only the user ends it.
	ada, bob, eve := login(t, base, "ada@acme.example", password), login(t, base, "bob@acme.example", password), login(t, base, "eve@other.example", password)
	type agents struct {
		Agents []struct {
			ID      int64
			Name    string
			Profile string
			Host    string `json:"redirect_host"`
		}
	}
	var list agents
	require.Equal(t, 200, call(t, "GET", base+"/api/v1/user/agents", ada, nil, &list))
	require.Len(t, list.Agents, 1)
	require.Equal(t, []string{"Desk", "ops-write", "127.0.0.1:4711"}, []string{list.Agents[0].Name, list.Agents[0].Profile, list.Agents[0].Host})
	address := fmt.Sprintf("%s/api/v1/user/agents/%d", base, list.Agents[0].ID)
	for _, other := range []string{bob, eve} {
		var none agents
		require.Equal(t, 200, call(t, "GET", base+"/api/v1/user/agents", other, nil, &none))
		require.Empty(t, none.Agents)
		require.Equal(t, 404, call(t, "DELETE", address, other, nil, nil))
	}
	var key struct{ Token string }
	require.Equal(t, 201, call(t, "POST", base+"/api/v1/user/api-keys", ada, map[string]any{"name": "k", "profile": "full"}, &key))
	require.Equal(t, 403, call(t, "DELETE", address, key.Token, nil, nil), "a key ends nothing")
	require.NoError(t, admit(fresh.AccessToken, base+"/mcp"))
	require.Equal(t, 200, call(t, "DELETE", address, ada, nil, nil))
	require.ErrorContains(t, admit(fresh.AccessToken, base+"/mcp"), "TOKEN_INVALID")
	require.Equal(t, 404, call(t, "DELETE", address, ada, nil, nil))
	fresh.Expiry = time.Now().Add(-time.Second)
	_, err = conf.TokenSource(ctx, fresh).Token()
	require.ErrorContains(t, err, "invalid_grant")

	// A description on this machine is not read, and a password that changes
	// ends what was allowed under the former one.
	require.Equal(t, 400, call(t, "GET", base+"/oauth/authorize?client_id="+url.QueryEscape("https://127.0.0.1:8443/client.json"), "", nil, nil))
	answer = consent(t, conf.AuthCodeURL("st", oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", about.Resource)), "bob@acme.example", password, "ops-write")
	token, err = conf.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(verifier))
	require.NoError(t, err)
	require.NoError(t, admit(token.AccessToken, base+"/mcp"))
	require.Equal(t, 200, call(t, "PATCH", base+"/api/v1/users/2", ada, map[string]any{"password": "another long one"}, nil))
	require.ErrorContains(t, admit(token.AccessToken, base+"/mcp"), "TOKEN_INVALID")
}

func login(t *testing.T, base, email, password string) string {
	t.Helper()
	var l struct {
		Token string `json:"access_token"`
	}
	require.Equal(t, 200, call(t, "POST", base+"/api/v1/user/login", "", map[string]any{"email": email, "password": password}, &l))
	return l.Token
}

// call sends JSON and reads JSON.
func call(t *testing.T, method, address, token string, in, out any) int {
	t.Helper()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		require.NoError(t, err)
		body = strings.NewReader(string(b))
	}
	req, err := http.NewRequestWithContext(t.Context(), method, address, body)
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	if out != nil {
		require.NoError(t, json.NewDecoder(resp.Body).Decode(out))
	}
	return resp.StatusCode
}

var hiddenField = regexp.MustCompile(`name="(form|request)" value="([^"]*)"`)

// consent is what a user does in a browser.
func consent(t *testing.T, address, email, password, profile string) url.Values {
	t.Helper()
	return consentFrom(t, address, "http://127.0.0.1:4711/", email, password, profile)
}

// consentFrom is consent for a program that waits for its answer at a callback.
func consentFrom(t *testing.T, address, callback, email, password, profile string) url.Values {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	var last url.Values
	browser := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), callback) {
			last = r.URL.Query()
			return http.ErrUseLastResponse
		}
		return nil
	}}
	u, err := url.Parse(address)
	require.NoError(t, err)
	step := func(resp *http.Response, err error) url.Values {
		t.Helper()
		require.NoError(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Less(t, resp.StatusCode, 400, "%s", b)
		f := url.Values{}
		for _, m := range hiddenField.FindAllStringSubmatch(string(b), -1) {
			f.Set(m[1], html.UnescapeString(m[2]))
		}
		return f
	}
	f := step(browser.Get(address))
	f.Set("email", email)
	f.Set("password", password)
	f = step(browser.PostForm("http://"+u.Host+"/oauth/login", f))
	f.Set("decision", "allow")
	f.Set("profile", profile)
	step(browser.PostForm("http://"+u.Host+"/oauth/consent", f))
	require.NotNil(t, last, "the program was answered")
	return last
}
