package page_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/cloud/webtest"
)

var (
	secretField    = regexp.MustCompile(`<code id="secret">([A-Z2-7]{32})</code>`)
	challengeField = regexp.MustCompile(`name="challenge" value="([^"]{64})"`)
	recoveryField  = regexp.MustCompile(`<li><code>([a-z0-9-]{19})</code>`)
)

// account sends a form of the page.
func (r *rig) account(do string, pairs ...string) got {
	r.t.Helper()
	m := formField.FindStringSubmatch(r.do("GET", "/account", nil).body)
	require.NotNil(r.t, m)
	form := url.Values{"form": {m[1]}, "do": {do}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return r.do("POST", "/account", form)
}

func (r *rig) setUpFactor() (secret string, recovery []string) {
	r.t.Helper()
	g := r.account("begin", "password", webtest.Password)
	require.Equal(r.t, 200, g.status, g.body)
	secret = secretField.FindStringSubmatch(g.body)[1]
	g = r.account("confirm", "otp", codeAt(r.t, secret, -1))
	require.Equal(r.t, 200, g.status, g.body)
	for _, m := range recoveryField.FindAllStringSubmatch(g.body, -1) {
		recovery = append(recovery, m[1])
	}
	require.Len(r.t, recovery, 10)
	return secret, recovery
}

// codeAt is the code of so many periods from now. One that would be another a moment later is
// waited for: that of the period before would be too old.
func codeAt(t testing.TB, secret string, step int) string {
	const room = 5 * time.Second
	if left := auth.CodePeriod - time.Duration(time.Now().UnixNano())%auth.CodePeriod; left < room {
		time.Sleep(left)
	}
	c, err := totp.GenerateCode(secret, time.Now().Add(time.Duration(step)*auth.CodePeriod))
	require.NoError(t, err)
	return c
}

func TestSecondFactorOnPages(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.Equal(t, "/console/login?next=/account", r.do("GET", "/account", nil).header("Location"))
	email := r.w.Emails[cloud.ClientAdmin]
	r.signedIn()
	g := r.account("begin", "password", "wrong")
	require.Equal(t, 422, g.status)
	require.NotRegexp(t, secretField, g.body)
	require.Equal(t, 403, r.do("POST", "/account", url.Values{"form": {strings.Repeat("x", 32)}, "do": {"begin"}, "password": {webtest.Password}}).status)
	require.Equal(t, 422, r.account("confirm", "otp", "000000").status)
	secret, recovery := r.setUpFactor()
	g = r.do("GET", "/account", nil)
	for _, s := range append(recovery, secret) {
		require.NotContains(t, g.body, s, "shown once")
	}
	require.Equal(t, 404, r.account("anything").status)

	// The console asks for a code after the password.
	delete(r.cookies, "postern_session")
	g = r.signIn(email)
	require.Equal(t, 401, g.status)
	require.NotContains(t, g.set, "postern_session")
	require.NotContains(t, g.body, `name="password"`)
	challenge := challengeField.FindStringSubmatch(g.body)[1]
	step := func(form, otp string) got {
		return r.do("POST", "/console/login", url.Values{"form": {form}, "challenge": {challenge}, "otp": {otp}, "next": {"/mcp-approvals"}})
	}
	form := formField.FindStringSubmatch(g.body)[1]
	require.Equal(t, 403, step("x", recovery[0]).status, "another site's form")
	g = step(form, "12345")
	require.Equal(t, 401, g.status)
	require.Contains(t, g.body, challenge, "the same page once more")
	require.NotContains(t, g.body, "12345")
	g = step(form, codeAt(t, secret, 0))
	require.Equal(t, 303, g.status, g.body)
	require.Equal(t, "/mcp-approvals", g.header("Location"))
	require.Equal(t, 200, r.do("GET", "/console", nil).status)
	delete(r.cookies, "postern_session")
	r.do("GET", "/console/login", nil)
	g = step(r.cookies["postern_form"], recovery[0])
	require.Equal(t, 401, g.status, "used up")
	require.Contains(t, g.body, `name="password"`)
}

// A person who must set up a second factor comes nowhere else before.
func TestDemandedSecondFactorOnPages(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	b := r.w.Business
	b.Settings.SecondFactor = true
	r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}})
	g := r.signIn(r.w.Emails[cloud.ClientEmployee])
	require.Equal(t, "/account", g.header("Location"))
	for _, path := range []string{"/console", "/mcp-approvals", "/console/chats"} {
		require.NotEqual(t, 200, r.do("GET", path, nil).status, path)
	}
	g = r.do("GET", "/account", nil)
	require.Contains(t, g.body, "Your business demands a second factor")
	require.NotContains(t, g.body, "new_password")
	require.Equal(t, 422, r.account("password", "password", webtest.Password, "new_password", "another long password").status)
	r.setUpFactor()
	require.Equal(t, 200, r.do("GET", "/console", nil).status)
}

func TestOwnAccount(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	email := r.w.Emails[cloud.Customer]
	r.signIn(email)
	first := r.cookies["postern_session"]
	delete(r.cookies, "postern_session")
	r.signIn(email)
	g := r.do("GET", "/account", nil)
	require.Equal(t, 200, g.status)
	require.Equal(t, 422, r.account("password", "password", webtest.Password, "new_password", "short").status)
	require.Equal(t, 200, r.account("others").status)
	l, err := r.w.FindToken(t.Context(), auth.Hash(first))
	require.NoError(t, err)
	require.False(t, l.Token.RevokedAt.IsZero())
	require.Equal(t, 303, r.account("locale", "locale", "de").status)
	require.Contains(t, r.do("GET", "/account", nil).body, "Mein Konto")
	delete(r.cookies, "postern_lang")
	delete(r.cookies, "postern_session")
	r.signIn(email)
	require.Contains(t, r.do("GET", "/account", nil).body, "Mein Konto", "the language comes with the login")
	require.Equal(t, 200, r.account("password", "password", webtest.Password, "new_password", "another long password").status)
	require.Equal(t, 200, r.do("GET", "/account", nil).status)
	delete(r.cookies, "postern_session")
	require.Equal(t, 401, r.signIn(email).status)
}

// The login for agents' programs asks for a code too, and no person who must set up
// a second factor lets a program in.
func TestSecondFactorBeforeConsent(t *testing.T) {
	t.Parallel()
	r := agents(t)
	r.signedIn()
	_, recovery := r.setUpFactor()
	g := r.do("GET", authorizeURL(r.registered()), nil)
	g = r.do("POST", "/oauth/login", plus(fields(g.body), "email", r.w.Emails[cloud.ClientAdmin], "password", webtest.Password))
	require.Equal(t, 401, g.status)
	require.NotContains(t, g.set, "postern_agents")
	challenge := challengeField.FindStringSubmatch(g.body)[1]
	g = r.do("POST", "/oauth/login", plus(fields(g.body), "challenge", challenge, "otp", "000000"))
	require.Equal(t, 401, g.status)
	require.NotContains(t, g.set, "postern_agents")
	g = r.do("POST", "/oauth/login", plus(fields(g.body), "challenge", challenge, "otp", recovery[0]))
	require.Equal(t, 303, g.status, g.body)
	require.Contains(t, g.set, "postern_agents")

	b := r.w.Business
	b.Settings.SecondFactor = true
	r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}})
	delete(r.cookies, "postern_agents")
	g = r.do("GET", authorizeURL(r.registered()), nil)
	g = r.do("POST", "/oauth/login", plus(fields(g.body), "email", r.w.Emails[cloud.DriverAccount], "password", webtest.Password))
	require.Equal(t, 403, g.status)
	require.NotContains(t, g.set, "postern_agents")
}

// Links to the pages lose their secret at once; an invitation and a new password end
// at the login.
func TestLinks(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin := r.w.Tokens[cloud.ClientAdmin]
	token := func(path, body string) string {
		g := r.raw("POST", path, "application/json", body, "Authorization", "Bearer "+admin)
		require.Less(t, g.status, 300, g.body)
		return regexp.MustCompile(`"token":"([^"]+)"`).FindStringSubmatch(g.body)[1]
	}
	require.Contains(t, r.do("GET", "/invitation", nil).body, "Open the link")
	key := token("/api/v1/invitations", `{"account_type":"customer","name":"Zoe","email":"zoe@acme.example"}`)
	g := r.do("GET", "/invitation?key="+key, nil)
	require.Equal(t, []any{303, "/invitation"}, []any{g.status, g.header("Location")})
	send := func(path string, pairs ...string) got {
		g := r.do("GET", path, nil)
		require.NotContains(t, g.body, key)
		form := url.Values{"form": {formField.FindStringSubmatch(g.body)[1]}}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		return r.do("POST", path, form)
	}
	require.Equal(t, 403, r.do("POST", "/invitation", url.Values{"email": {"zoe@acme.example"}, "password": {"another long password"}}).status)
	g = send("/invitation", "email", "eve@acme.example", "password", "another long password")
	require.Equal(t, 422, g.status)
	require.Contains(t, g.body, "another email address")
	g = send("/invitation", "email", "zoe@acme.example", "password", "short")
	require.Equal(t, 422, g.status)
	g = send("/invitation", "email", "zoe@acme.example", "password", webtest.Password)
	require.Equal(t, []any{303, "/console/login"}, []any{g.status, g.header("Location")}, g.body)
	require.Equal(t, "/console", r.signIn("zoe@acme.example").header("Location"))
	r.do("GET", "/invitation?key="+key, nil)
	require.Contains(t, send("/invitation", "email", "zoe@acme.example", "password", webtest.Password).body, "accepted already")

	_, recovery := r.setUpFactor()
	id := regexp.MustCompile(`"id":(\d+)[^}]*"email":"zoe`).FindStringSubmatch(r.raw("GET", "/api/v1/customers", "", "", "Authorization", "Bearer "+admin).body)
	key = token("/api/v1/users/"+id[1]+"/password-reset", "{}")
	r.do("GET", "/password-reset?key="+key, nil)
	g = send("/password-reset", "password", "another long password")
	require.Equal(t, 422, g.status)
	require.Contains(t, g.body, `name="otp"`)
	g = send("/password-reset", "password", "another long password", "otp", recovery[0])
	require.Equal(t, 303, g.status, g.body)
	require.Equal(t, 303, r.do("GET", "/account", nil).status, "the session has ended")
}

// Without a mail server nothing leads to a forgotten password; with one the page
// answers alike for every address.
func TestForgottenPassword(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.NotContains(t, r.do("GET", "/console/login", nil).body, "/password-forgotten")
	require.Equal(t, 404, r.do("GET", "/password-forgotten", nil).status)
	r = newRig(t, func(c *page.Config) { c.Mails = true })
	require.Contains(t, r.do("GET", "/console/login", nil).body, `href="/password-forgotten"`)
	ask := func(email string) got {
		g := r.do("GET", "/password-forgotten", nil)
		return r.do("POST", "/password-forgotten", url.Values{"form": {formField.FindStringSubmatch(g.body)[1]}, "email": {email}})
	}
	known, unknown := ask(r.w.Emails[cloud.ClientAdmin]), ask("eve@x.example")
	require.Equal(t, 200, known.status, known.body)
	stamp := regexp.MustCompile(`(datetime=|\d\d:\d\d)[^<]*`)
	require.Equal(t, stamp.ReplaceAllString(known.body, ""), stamp.ReplaceAllString(unknown.body, ""))
	require.Contains(t, known.body, "on its way")
	require.NotContains(t, known.body, r.w.Emails[cloud.ClientAdmin])
	require.Equal(t, 422, ask("eve").status)
	require.Equal(t, 403, r.do("POST", "/password-forgotten", url.Values{"form": {"x"}, "email": {"eve@x.example"}}).status)
}

// Staff draw their codes for cabinets on their own page, which shows them in two parts, and
// end them there. Who opens no cabinets is shown nothing of it.
func TestStaffCodesOnTheAccountPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.signIn(r.w.Emails[cloud.ClientAdmin])
	code := regexp.MustCompile(`<time[^>]*>([^<]+)</time></?[a-z]*> <code>(\d{4} \d{4})</code>`)
	g := r.do("GET", "/account", nil)
	require.Contains(t, g.body, "None are drawn for you yet.")
	require.Empty(t, code.FindAllString(g.body, -1))
	g = r.account("draw")
	require.Equal(t, 200, g.status, g.body)
	clean(t, r, g)
	first := code.FindAllStringSubmatch(g.body, -1)
	require.Len(t, first, 8, g.body)
	require.Equal(t, "today", first[0][1])
	require.Contains(t, r.do("GET", "/account", nil).body, first[0][2], "they can be read again")
	g = r.account("draw")
	require.NotContains(t, g.body, first[0][2])
	g = r.account("undraw", "account_id", "1")
	require.Equal(t, 200, g.status, g.body)
	require.Contains(t, g.body, "None are drawn for you yet.")

	r = newRig(t, nil)
	r.signIn(r.w.Emails[cloud.Broker])
	require.NotContains(t, r.do("GET", "/account", nil).body, "staff’s view")
}
