package oidc_test

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/oidc"
	"github.com/postern-io/postern/cloud/oidc/oidctest"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

const callbacks = "https://cloud.test/console/login/oidc/callback"

type rig struct {
	t    *testing.T
	p    *oidctest.Provider
	s    *oidc.Service
	auth *auth.Service
	db   *store.DB
}

func newRig(t *testing.T, change func(*oidc.Provider)) *rig {
	r := &rig{t: t, p: oidctest.New(t, callbacks+"/acme"), db: storetest.OpenSQLite(t)}
	conf := oidc.Provider{Business: "acme", Name: "Acme SSO", Issuer: r.p.URL, ClientID: "postern", Secret: "a secret of the client"}
	if change != nil {
		change(&conf)
	}
	r.s = oidc.New(oidc.Config{Providers: []oidc.Provider{conf}, Redirect: callbacks, Key: []byte("logins"), Client: r.client(true)})
	r.auth = auth.New(r.db)
	if conf.Required {
		r.auth.Demanding([]string{"ACME"})
	}
	hash := auth.HashPassword("correct horse battery")
	person := func(id cloud.AccountID, b cloud.BusinessID, kind cloud.AccountType, email string) cloud.Account {
		return cloud.Account{ID: id, BusinessID: b, Type: kind, Email: email, Name: email[:3], PasswordHash: hash, Enabled: true}
	}
	r.write(cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "acme", Name: "Acme"}, {ID: 2, Code: "rival", Name: "Rival"}},
		Accounts: []cloud.Account{person(10, 1, cloud.ClientAdmin, "ann@a.example"), person(11, 1, cloud.ClientAdmin, "ben@a.example"), person(12, 1, cloud.Customer, "cus@a.example"), person(20, 2, cloud.ClientAdmin, "out@x.example")}})
	return r
}

// client goes through the guard; open lets it reach the loopback.
func (r *rig) client(open bool) *http.Client {
	u, err := url.Parse(r.p.URL)
	require.NoError(r.t, err)
	_, port, err := net.SplitHostPort(u.Host)
	require.NoError(r.t, err)
	n, err := strconv.ParseUint(port, 10, 16)
	require.NoError(r.t, err)
	g := fetch.GuardConfig{Ports: []uint16{uint16(n)}, HTTP: true}
	if open {
		g.Networks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
	return fetch.NewHTTPClient(fetch.Config{Guard: fetch.NewGuard(g)})
}

func (r *rig) write(ch cloud.AccountChanges) {
	r.t.Helper()
	require.NoError(r.t, r.db.Decide(r.t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return &cloud.Changes{AccountChanges: ch}, nil }))
}

func (r *rig) account(id cloud.AccountID) cloud.Account {
	r.t.Helper()
	a, err := r.db.FindAccount(r.t.Context(), id)
	require.NoError(r.t, err)
	return a
}

// enter is a whole login of a person of the provider.
func (r *rig) enter(who string) (auth.Login, error) {
	r.t.Helper()
	address, cookie, err := r.s.Begin(r.t.Context(), "acme", "")
	if err != nil {
		return auth.Login{}, err
	}
	q := r.p.SignIn(address, who)
	x, err := r.s.Finish(r.t.Context(), "acme", cookie, q.Get("state"), q.Get("code"))
	if err != nil {
		return auth.Login{}, err
	}
	return r.auth.External(r.t.Context(), x)
}

func code(err error) string {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// A person comes in by the verified email of an account of the business, and by the
// subject from then on; everybody else stays out.
func TestSignInByAProvider(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	ctx := t.Context()
	l, err := r.enter("ann")
	require.NoError(t, err)
	require.Equal(t, []any{cloud.AccountID(10), false}, []any{l.Account.ID, l.SetsUp})
	_, err = r.enter("eve")
	require.Equal(t, "OIDC_NO_ACCOUNT", code(err), "an email that was not verified")
	_, err = r.enter("out")
	require.Equal(t, "OIDC_NO_ACCOUNT", code(err), "an account of another business")
	_, err = r.enter("thief")
	require.Equal(t, "OIDC_NO_ACCOUNT", code(err), "another person who got the address")
	changed := r.account(10)
	changed.Email = "anna@a.example"
	r.write(cloud.AccountChanges{Accounts: []cloud.Account{changed}})
	l, err = r.enter("ann")
	require.NoError(t, err, "by the subject, whatever the email")
	require.Equal(t, cloud.AccountID(10), l.Account.ID)
	changed.Enabled = false
	r.write(cloud.AccountChanges{Accounts: []cloud.Account{changed}})
	_, err = r.enter("ann")
	require.Equal(t, "ACCOUNT_DISABLED", code(err))

	// State, cookie and code are one browser's, once.
	address, cookie, err := r.s.Begin(ctx, "ACME", "")
	require.NoError(t, err)
	u, err := url.Parse(address)
	require.NoError(t, err)
	require.Equal(t, "S256", u.Query().Get("code_challenge_method"))
	require.NotEmpty(t, u.Query().Get("nonce"))
	q := r.p.SignIn(address, "cus")
	_, other, err := r.s.Begin(ctx, "acme", "")
	require.NoError(t, err)
	for why, c := range map[string][2]string{"another browser": {other, q.Get("state")}, "no cookie": {"", q.Get("state")}, "another state": {cookie, "x"}, "a cookie that was changed": {"A" + cookie[1:], q.Get("state")}, "half a cookie": {cookie[:20], q.Get("state")}} {
		_, err = r.s.Finish(ctx, "acme", c[0], c[1], q.Get("code"))
		require.Equal(t, "OIDC_EXPIRED", code(err), why)
	}
	_, err = r.s.Finish(ctx, "acme", cookie, q.Get("state"), "")
	require.Equal(t, "OIDC_REFUSED", code(err), "the person said no")
	x, err := r.s.Finish(ctx, "acme", cookie, q.Get("state"), q.Get("code"))
	require.NoError(t, err)
	require.Equal(t, []any{"cus", "cus@a.example", true, r.p.URL}, []any{x.Subject, x.Email, x.EmailVerified, x.Issuer})
	_, err = r.s.Finish(ctx, "acme", cookie, q.Get("state"), q.Get("code"))
	require.Equal(t, "OIDC_REFUSED", code(err), "the code was used")
	// A code that was given to another login has another verifier.
	a1, c1, err := r.s.Begin(ctx, "acme", "")
	require.NoError(t, err)
	_, c2, err := r.s.Begin(ctx, "acme", "")
	require.NoError(t, err)
	a2, c3, err := r.s.Begin(ctx, "acme", "")
	require.NoError(t, err)
	require.NotEqual(t, c1, c2)
	stolen, mine := r.p.SignIn(a1, "ann"), r.p.SignIn(a2, "cus")
	_, err = r.s.Finish(ctx, "acme", c3, mine.Get("state"), stolen.Get("code"))
	require.Equal(t, "OIDC_REFUSED", code(err), "PKCE")
	_, _, err = r.s.Begin(ctx, "rival", "")
	require.Equal(t, "OIDC_NO_PROVIDER", code(err))
}

// A provider that is down, comes back, or has other keys; one with a wrong secret, and one
// that the guard keeps from being asked.
func TestProviderDownAndWithOtherKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.p.Stop(503)
	_, err := r.enter("ann")
	require.Equal(t, "OIDC_UNAVAILABLE", code(err))
	r.p.Start()
	_, err = r.enter("ann")
	require.NoError(t, err, "it is back")
	r.p.Start()
	_, err = r.enter("ann")
	require.NoError(t, err, "with other keys, which it publishes")
	address, cookie, err := r.s.Begin(t.Context(), "acme", "")
	require.NoError(t, err)
	q := r.p.SignIn(address, "ann")
	r.p.Stop(502)
	_, err = r.s.Finish(t.Context(), "acme", cookie, q.Get("state"), q.Get("code"))
	require.Equal(t, "OIDC_UNAVAILABLE", code(err), "down in the middle")
	r.p.Start()
	_, err = r.s.Finish(t.Context(), "acme", cookie, q.Get("state"), q.Get("code"))
	require.Equal(t, "OIDC_REFUSED", code(err), "it forgot the login")

	// A token by keys that the provider does not publish.
	signing, published := r.p.Face(), http.Handler(nil)
	r.p.Start()
	published = r.p.Face()
	mixed := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.HasSuffix(q.URL.Path, "/keys") {
			published.ServeHTTP(w, q)
			return
		}
		signing.ServeHTTP(w, q)
	}))
	r.p.SetFace(mixed)
	_, err = r.enter("ann")
	require.Equal(t, "OIDC_REFUSED", code(err))
	r.p.Start()

	wrong := oidc.New(oidc.Config{Providers: []oidc.Provider{{Business: "acme", Issuer: r.p.URL, ClientID: "postern", Secret: "another"}}, Redirect: callbacks, Client: r.client(true)})
	address, cookie, err = wrong.Begin(t.Context(), "acme", "")
	require.NoError(t, err)
	q = r.p.SignIn(address, "ann")
	_, err = wrong.Finish(t.Context(), "acme", cookie, q.Get("state"), q.Get("code"))
	require.Equal(t, "OIDC_REFUSED", code(err))
	closed := oidc.New(oidc.Config{Providers: []oidc.Provider{{Business: "acme", Issuer: r.p.URL, ClientID: "postern"}}, Redirect: callbacks, Client: r.client(false)})
	_, _, err = closed.Begin(t.Context(), "acme", "")
	require.Equal(t, "OIDC_UNAVAILABLE", code(err), "an address that the guard refuses")
}

// Roles come from a claim: an administrator who lost the role is an employee, never the
// last one, and a person without a role is refused.
func TestRolesOfAProvider(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(p *oidc.Provider) {
		p.RoleClaim = "preferred_username"
		p.Roles = map[string]cloud.AccountType{"ann": cloud.ClientEmployee, "eve": cloud.ClientAdmin}
	})
	r.p.People["eve"].EmailVerified = true
	l, err := r.enter("ann")
	require.NoError(t, err)
	require.Equal(t, cloud.ClientEmployee, l.Account.Type)
	require.Equal(t, cloud.ClientEmployee, r.account(10).Type)
	_, err = r.enter("cus")
	require.Equal(t, "OIDC_NO_ROLE", code(err))
	_, err = r.enter("eve")
	require.NoError(t, err)
	require.Equal(t, cloud.ClientAdmin, r.account(11).Type)
	r.p.People["ann"].Username, r.p.People["eve"].Username = "eve", "ann"
	r.p.People["ann"].ID, r.p.People["eve"].ID = "ann", "eve"
	for range 2 { // eve's account loses the role
		l, err = r.enter("ann")
		require.NoError(t, err)
		require.Equal(t, []any{cloud.AccountID(11), cloud.ClientAdmin}, []any{l.Account.ID, l.Account.Type})
	}
	require.Equal(t, cloud.ClientAdmin, r.account(11).Type)
	_, err = r.enter("eve")
	require.NoError(t, err)
	require.Equal(t, cloud.ClientAdmin, r.account(10).Type)
	_, err = r.enter("ann")
	require.NoError(t, err)
	require.Equal(t, cloud.ClientEmployee, r.account(11).Type)
}

// The last administrator whose claims give no role comes in as one, with an audit line;
// others without a role stay out and are not linked, also while there is a second
// administrator.
func TestTheLastAdministratorWithoutARole(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(p *oidc.Provider) {
		p.RoleClaim, p.Roles = "preferred_username", map[string]cloud.AccountType{"x": cloud.ClientAdmin}
	})
	kept := func() (n int) {
		t.Helper()
		require.NoError(t, r.db.Look(t.Context(), func(v cloud.View) error {
			list, _, err := v.Audits(cloud.AuditFilter{BusinessID: 1, Action: "role_kept", Page: cloud.Page{Sort: "at", Limit: 10}})
			n = len(list)
			return err
		}))
		return n
	}
	for _, who := range []string{"ann", "cus"} {
		_, err := r.enter(who)
		require.Equal(t, "OIDC_NO_ROLE", code(err), who)
	}
	require.NoError(t, r.db.Look(t.Context(), func(v cloud.View) error {
		list, err := v.IdentitiesOf(10)
		require.Empty(t, list, "a refused login links nothing")
		return err
	}))
	require.Zero(t, kept())
	ben := r.account(11)
	ben.Enabled = false
	r.write(cloud.AccountChanges{Accounts: []cloud.Account{ben}})
	l, err := r.enter("ann")
	require.NoError(t, err)
	require.Equal(t, cloud.ClientAdmin, l.Account.Type)
	require.Equal(t, 1, kept())
	_, err = r.enter("cus")
	require.Equal(t, "OIDC_NO_ROLE", code(err))
}

// Where a business demands its provider the password lets no person in; other businesses are
// as they were.
func TestBusinessThatDemandsItsProvider(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(p *oidc.Provider) { p.Required = true })
	_, err := r.auth.Login(t.Context(), "ann@a.example", "correct horse battery")
	require.Equal(t, "OIDC_REQUIRED", code(err))
	_, err = r.auth.Login(t.Context(), "ann@a.example", "wrong")
	require.Equal(t, "INVALID_CREDENTIALS", code(err), "nothing is said to who does not know the password")
	_, err = r.auth.Login(t.Context(), "out@x.example", "correct horse battery")
	require.NoError(t, err)
	_, err = r.enter("ann")
	require.NoError(t, err)
}
