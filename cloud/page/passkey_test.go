package page_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"html"
	"net"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/ring"
)

var optionsField = regexp.MustCompile(`data-options="(\{[^"]+)"`)

// A passkey is made on the page of the account and signs in on the login page, alone
// and after the password; it is renamed and removed.
func TestPasskeysOnPages(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signedIn()
	l, err := r.w.FindToken(t.Context(), auth.Hash(r.cookies["postern_session"]))
	require.NoError(t, err)
	rp := virtualwebauthn.RelyingParty{ID: "cloud.test", Name: "Postern", Origin: "https://cloud.test"}
	device := virtualwebauthn.NewAuthenticatorWithOptions(virtualwebauthn.AuthenticatorOptions{UserHandle: fmt.Appendf(nil, "account/%d", l.Account.ID)})
	key := newKey(t)
	require.Equal(t, 422, r.account("passkey", "password", "wrong").status)
	g := r.account("passkey", "password", webtest.Password)
	require.Equal(t, 200, g.status, g.body)
	o, err := virtualwebauthn.ParseAttestationOptions(html.UnescapeString(optionsField.FindStringSubmatch(g.body)[1]))
	require.NoError(t, err)
	made := virtualwebauthn.CreateAttestationResponse(rp, device, key, *o)
	require.Equal(t, 422, r.account("passkey_add", "name", "Phone", "credential", "{}").status)
	g = r.account("passkey_add", "name", "My <phone>", "credential", made)
	require.Equal(t, 200, g.status, g.body)
	require.Contains(t, g.body, "My &lt;phone&gt;")
	for _, l := range locale.All() {
		r.cookies["postern_lang"] = l.Code
		g = r.do("GET", "/account", nil)
		require.Contains(t, g.body, `<p id="alone">`+locale.Word(l.Code, "account.off.passkey")+"</p>", l.Code)
		require.NotContains(t, g.body, locale.Word(l.Code, "account.off"), "there is a passkey beside the password")
	}
	r.cookies["postern_lang"] = "en"
	require.Equal(t, 422, r.account("passkey_add", "name", "Phone", "credential", made).status, "replayed")

	sign := func(challenge string) (form, answer string) {
		t.Helper()
		form = r.cookies["postern_form"]
		g := r.do("POST", "/console/login/passkey", url.Values{"form": {form}, "challenge": {challenge}})
		require.Equal(t, 200, g.status, g.body)
		o, err := virtualwebauthn.ParseAssertionOptions(g.body)
		require.NoError(t, err)
		key.Counter++
		return form, virtualwebauthn.CreateAssertionResponse(rp, device, key, *o)
	}
	delete(r.cookies, "postern_session")
	g = r.do("GET", "/console/login", nil)
	require.Contains(t, g.body, `data-passkey="get"`)
	require.Equal(t, 403, r.do("POST", "/console/login/passkey", url.Values{"form": {"x"}}).status, "another site's form")
	form, answer := sign("")
	require.Equal(t, 403, r.do("POST", "/console/login", url.Values{"form": {"x"}, "credential": {answer}}).status)
	require.Equal(t, 401, r.do("POST", "/console/login", url.Values{"form": {form}, "credential": {"{}"}}).status)
	g = r.do("POST", "/console/login", url.Values{"form": {form}, "credential": {answer}, "next": {"/mcp-approvals"}})
	require.Equal(t, []any{303, "/mcp-approvals"}, []any{g.status, g.header("Location")}, g.body)
	require.Equal(t, 200, r.do("GET", "/console", nil).status)

	_, recovery := r.setUpFactor()
	delete(r.cookies, "postern_session")
	g = r.signIn(r.w.Emails[cloud.ClientAdmin])
	require.Equal(t, 401, g.status)
	challenge := challengeField.FindStringSubmatch(g.body)[1]
	form, answer = sign(challenge)
	g = r.do("POST", "/console/login", url.Values{"form": {form}, "challenge": {challenge}, "credential": {answer}})
	require.Equal(t, 303, g.status, g.body)
	require.Equal(t, 200, r.do("GET", "/console", nil).status)

	g = r.do("GET", "/account", nil)
	id := regexp.MustCompile(`name="passkey_id" value="(\d+)"`).FindStringSubmatch(g.body)[1]
	require.Equal(t, 422, r.account("passkey", "password", webtest.Password).status, "a code is missing")
	require.Equal(t, 200, r.account("passkey", "password", webtest.Password, "otp", recovery[0]).status)
	g = r.account("passkey_rename", "passkey_id", id, "name", "Old phone")
	require.Contains(t, g.body, "Old phone")
	g = r.account("passkey_remove", "passkey_id", id)
	require.Equal(t, 200, g.status)
	require.NotContains(t, g.body, "Old phone")
	require.Equal(t, 422, r.account("passkey_remove", "passkey_id", id).status)

	without := newRig(t, func(c *page.Config) { c.Passkeys = false })
	require.NotContains(t, without.do("GET", "/console/login", nil).body, "passkey")
	require.Equal(t, 404, without.do("POST", "/console/login/passkey", nil).status)
}

// A passkey lets in on the page that asks about an agent too, where the business demands a
// second factor that the person has not: the passkey is as good.
func TestAPasskeyLetsInAtAgents(t *testing.T) {
	t.Parallel()
	r := agents(t)
	r.signedIn()
	l, err := r.w.FindToken(t.Context(), auth.Hash(r.cookies["postern_session"]))
	require.NoError(t, err)
	rp := virtualwebauthn.RelyingParty{ID: "cloud.test", Name: "Postern", Origin: "https://cloud.test"}
	device := virtualwebauthn.NewAuthenticatorWithOptions(virtualwebauthn.AuthenticatorOptions{UserHandle: fmt.Appendf(nil, "account/%d", l.Account.ID)})
	key := newKey(t)
	g := r.account("passkey", "password", webtest.Password)
	o, err := virtualwebauthn.ParseAttestationOptions(html.UnescapeString(optionsField.FindStringSubmatch(g.body)[1]))
	require.NoError(t, err)
	require.Equal(t, 200, r.account("passkey_add", "name", "Phone", "credential", virtualwebauthn.CreateAttestationResponse(rp, device, key, *o)).status)
	require.NoError(t, r.w.DB.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(l.Account.BusinessID)
		b.Settings.SecondFactor = true
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}, err
	}))

	address := authorizeURL(r.registered())
	g = r.do("GET", address, nil)
	require.Contains(t, g.body, `data-options="/oauth/login/passkey"`)
	asked := fields(g.body)
	g = r.do("POST", "/oauth/login", plus(asked, "email", r.w.Emails[cloud.ClientAdmin], "password", webtest.Password))
	require.Equal(t, 403, g.status, "the password alone")
	require.Equal(t, 403, r.do("POST", "/oauth/login/passkey", url.Values{"form": {r.cookies["postern_form"] + "x"}}).status)
	sign := func() string {
		t.Helper()
		g := r.do("POST", "/oauth/login/passkey", url.Values{"form": {asked.Get("form")}})
		require.Equal(t, 200, g.status, g.body)
		o, err := virtualwebauthn.ParseAssertionOptions(g.body)
		require.NoError(t, err)
		key.Counter++
		return virtualwebauthn.CreateAssertionResponse(rp, device, key, *o)
	}
	answer := sign()
	require.Equal(t, 401, r.do("POST", "/console/login", url.Values{"form": {r.cookies["postern_form"]}, "credential": {answer}}).status, "made for another page")
	g = r.do("POST", "/oauth/login", plus(asked, "credential", sign()))
	require.Equal(t, 303, g.status, g.body)
	s, err := r.w.FindToken(t.Context(), auth.Hash(r.cookies["postern_agents"]))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(10*time.Minute), s.Token.ExpiresAt, time.Minute)
	g = r.do("GET", g.header("Location"), nil)
	require.Equal(t, 200, g.status)
	require.Len(t, back(t, r.consent(g, "decision", "allow", "profile", "support")).Get("code"), 64)
}

// In a real browser, with its own virtual authenticator: a passkey is made and signs
// in, by the keyboard too; login, forgotten password and account under axe, on a desk
// and on a telephone, in light and dark.
func TestPasskeysInARealBrowser(t *testing.T) {
	ring.SkipUnlessFull(t, "its pages are tested without a browser, others in one")
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	base := fmt.Sprintf("http://localhost:%d", ln.Addr().(*net.TCPAddr).Port)
	passkeysAt = base
	w, s, _ := server(t, func(c *page.Config) { c.Mails = true })
	passkeysAt = ""
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	out := nodeAt(t, base, nil, "passkey.mjs", withBrowser(t, []string{w.Emails[cloud.ClientAdmin], webtest.Password})...)
	require.NoError(t, s.Shutdown(context.Background()))
	require.NoError(t, <-done)
	var f struct {
		Axe                        map[string][]string
		Console, Foreign, Overflow []string
		Made, Entered, Keyboard    string
		Refused, Hidden            bool
	}
	require.NoError(t, json.Unmarshal(out, &f))
	require.Len(t, f.Axe, 16)
	for name, violations := range f.Axe {
		require.Empty(t, violations, name)
	}
	require.Empty(t, f.Console)
	require.Empty(t, f.Foreign)
	require.Empty(t, f.Overflow)
	require.Equal(t, []any{"My phone", "/console", "/console"}, []any{f.Made, f.Entered, f.Keyboard})
	require.True(t, f.Refused, "a passkey that was removed")
	require.True(t, f.Hidden, "without script there is no button")
}

// newKey is a key of an authenticator whose coordinates have all 32 bytes: the library
// leaves leading zeros out, and a key without them is no valid one.
func newKey(t testing.TB) virtualwebauthn.Credential {
	t.Helper()
	for {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		raw, err := k.PublicKey.Bytes()
		require.NoError(t, err)
		if raw[1] == 0 || raw[33] == 0 {
			continue
		}
		pkcs8, err := x509.MarshalPKCS8PrivateKey(k)
		require.NoError(t, err)
		return virtualwebauthn.NewCredentialWithImportedKey(virtualwebauthn.KeyTypeEC2, pkcs8)
	}
}
