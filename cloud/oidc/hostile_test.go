package oidc_test

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/oidc"
	"github.com/postern-io/postern/cloud/oidc/oidctest"
)

// claimant is a provider that says what a test makes it say.
type claimant struct {
	url      string
	key      *rsa.PrivateKey
	token    func(map[string]any) string // of the usual claims
	info     map[string]any
	verifier string // that the last exchange brought
}

func newClaimant(t *testing.T) *claimant {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	c := &claimant{key: key}
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": c.url, "authorization_endpoint": c.url + "/authorize", "token_endpoint": c.url + "/token", "jwks_uri": c.url + "/keys", "userinfo_endpoint": c.url + "/me", "id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		e := big.NewInt(int64(key.E)).Bytes()
		answer(w, map[string]any{"keys": []map[string]any{{"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig", "n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(e)}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		c.verifier = r.FormValue("code_verifier")
		now := time.Now().Unix()
		answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": c.token(map[string]any{"iss": c.url, "aud": "postern", "sub": "ann", "nonce": r.FormValue("code"), "iat": now, "exp": now + 300, "email": "ann@a.example", "email_verified": true})})
	})
	mux.HandleFunc("/me", func(w http.ResponseWriter, _ *http.Request) { answer(w, c.info) })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

func part(v any) string {
	raw, _ := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(raw)
}

func signRS256(key *rsa.PrivateKey, claims map[string]any) string {
	text := part(map[string]any{"alg": "RS256", "kid": "one"}) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	sig, _ := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

// A token that is unsigned, signed by another key or with the client's secret, or that
// is for another login, client or time, lets no person in; nor does an address of one
// document that another one calls verified.
func TestHostileAnswersOfAProvider(t *testing.T) {
	t.Parallel()
	c := newClaimant(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	u, err := url.Parse(c.url)
	require.NoError(t, err)
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	require.NoError(t, err)
	client := fetch.NewHTTPClient(fetch.Config{Guard: fetch.NewGuard(fetch.GuardConfig{Ports: []uint16{uint16(port)}, HTTP: true, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})})
	s := oidc.New(oidc.Config{Providers: []oidc.Provider{{Business: "acme", Issuer: c.url, ClientID: "postern", Secret: "secret", RoleClaim: "role", Roles: map[string]cloud.AccountType{"boss": cloud.ClientAdmin, "clerk": cloud.ClientEmployee}}}, Redirect: callbacks, Key: []byte("logins"), Client: client})
	finish := func(nonce func(string) string) (auth.External, error) {
		address, cookie, err := s.Begin(t.Context(), "acme", "")
		require.NoError(t, err)
		to, err := url.Parse(address)
		require.NoError(t, err)
		q := to.Query()
		return s.Finish(t.Context(), "acme", cookie, q.Get("state"), nonce(q.Get("nonce"))) // the claimant takes the code for the nonce
	}
	same := func(n string) string { return n }
	with := func(changes map[string]any) func(map[string]any) string {
		return func(m map[string]any) string {
			m["role"] = "clerk"
			maps.Copy(m, changes)
			for k, v := range m {
				if v == nil {
					delete(m, k)
				}
			}
			return signRS256(c.key, m)
		}
	}
	c.token = with(nil)
	x, err := finish(same)
	require.NoError(t, err)
	require.Equal(t, []any{"ann@a.example", true, cloud.ClientEmployee}, []any{x.Email, x.EmailVerified, x.Role})
	require.NotEmpty(t, c.verifier)

	for name, token := range map[string]func(map[string]any) string{
		"unsigned":                       func(m map[string]any) string { return part(map[string]any{"alg": "none"}) + "." + part(m) + "." },
		"another key with the same name": func(m map[string]any) string { return signRS256(other, m) },
		"the client's secret": func(m map[string]any) string {
			text := part(map[string]any{"alg": "HS256", "kid": "one"}) + "." + part(m)
			mac := hmac.New(sha256.New, []byte("secret"))
			mac.Write([]byte(text))
			return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
		},
		"another issuer": with(map[string]any{"iss": "https://other.example"}),
		"another client": with(map[string]any{"aud": "other"}),
		"expired":        with(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}),
		"no nonce":       with(map[string]any{"nonce": nil}),
	} {
		c.token = token
		_, err := finish(same)
		require.Equal(t, "OIDC_REFUSED", code(err), name)
	}
	c.token = with(nil)
	_, err = finish(func(string) string { return "the nonce of another login" })
	require.Equal(t, "OIDC_REFUSED", code(err), "a token of another login")

	for _, m := range []struct {
		name        string
		token, info map[string]any
		email       string
		verified    bool
		role        cloud.AccountType
	}{
		{"verified without an address, another one from the endpoint", map[string]any{"email": nil}, map[string]any{"sub": "ann", "email": "boss@a.example"}, "boss@a.example", false, cloud.ClientEmployee},
		{"an address of the token, another one from the endpoint", map[string]any{"email_verified": nil, "role": nil}, map[string]any{"sub": "ann", "email": "boss@a.example", "email_verified": true, "role": "clerk"}, "ann@a.example", false, cloud.ClientEmployee},
		{"both from the endpoint", map[string]any{"email": nil, "email_verified": nil}, map[string]any{"sub": "ann", "email": "ann@a.example", "email_verified": true, "role": "boss"}, "ann@a.example", true, cloud.ClientEmployee},
	} {
		c.token, c.info = with(m.token), m.info
		x, err := finish(same)
		require.NoError(t, err, m.name)
		require.Equal(t, []any{m.email, m.verified, m.role}, []any{x.Email, x.EmailVerified, x.Role}, m.name)
	}
	c.token, c.info = with(map[string]any{"email": nil}), map[string]any{"sub": "ben", "email": "ben@a.example", "email_verified": true}
	_, err = finish(same)
	require.Equal(t, "OIDC_REFUSED", code(err), "another person")
}

// A provider of one business that sends people on to the provider of another one, with
// what an own login there began with, is given no code of that: it would let the
// provider's owner in as them.
func TestAProviderGetsNoCodeOfAnother(t *testing.T) {
	t.Parallel()
	r, rogue := newRig(t, nil), newClaimant(t)
	var ports []uint16
	for _, address := range []string{r.p.URL, rogue.url} {
		u, err := url.Parse(address)
		require.NoError(t, err)
		n, err := strconv.ParseUint(u.Port(), 10, 16)
		require.NoError(t, err)
		ports = append(ports, uint16(n))
	}
	client := fetch.NewHTTPClient(fetch.Config{Guard: fetch.NewGuard(fetch.GuardConfig{Ports: ports, HTTP: true, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})})
	s := oidc.New(oidc.Config{Providers: []oidc.Provider{{Business: "acme", Issuer: r.p.URL, ClientID: "postern", Secret: oidctest.Secret}, {Business: "Rival", Issuer: rogue.url, ClientID: "postern", Secret: "secret"}},
		Redirect: callbacks, Key: []byte("logins"), Client: client})
	query := func(address string) url.Values {
		u, err := url.Parse(address)
		require.NoError(t, err)
		return u.Query()
	}
	ctx := t.Context()
	mine, _, err := s.Begin(ctx, "acme", "") // of the rogue's owner
	require.NoError(t, err)
	theirs, cookie, err := s.Begin(ctx, "rival", "") // of a person with a session at acme's provider
	require.NoError(t, err)
	require.Equal(t, []string{callbacks + "/acme", callbacks + "/rival"}, []string{query(mine).Get("redirect_uri"), query(theirs).Get("redirect_uri")})
	on := query(mine)
	on.Set("state", query(theirs).Get("state"))
	front, _, _ := strings.Cut(mine, "?")
	back := r.p.SignIn(front+"?"+on.Encode(), "ann")
	_, err = s.Finish(ctx, "acme", cookie, back.Get("state"), back.Get("code"))
	require.Equal(t, "OIDC_EXPIRED", code(err))
	require.Empty(t, rogue.verifier, "the rogue was asked about the code")
}
