package page

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/oauth"
	"github.com/postern-io/postern/cloud/oidc"
)

// Where people decide about programs that want to act for them. A program
// sends its user to AuthorizePath; a user who is not logged in does so there and
// goes on with the same request. The login is good for this decision only and
// ends with it.
const (
	agentsPath      = "/oauth"
	agentsLoginPath = agentsPath + "/login"
	agentsOIDCPath  = agentsLoginPath + "/oidc"
	agentsLogin     = "agents"      // name of the login
	agentsOpener    = "unsafe-none" // what opened the page may go on to look at it

	consentLife = 10 * time.Minute // of a login, and of a page until it is sent
)

// forAgents is the entrance of everybody who has a password. Programs lead to
// it from anywhere, so its cookies come along when a browser is sent here, and
// not with forms of other sites.
var forAgents = entrance{agentsPath, "postern_agents", "postern_agents_form", fasthttp.CookieSameSiteLaxMode,
	[]cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker, cloud.DriverAccount, cloud.Customer, cloud.PlatformAdmin}}

// consentPolicy is policy without form-action: browsers hold that against every
// redirect that follows a form, and where the program's own address goes on to
// is not ours to know.
var consentPolicy = strings.Replace(policy, " form-action 'self';", "", 1)

// agentRoutes are the pages of the authorization server.
func (p consentPages) agentRoutes(get, post func(string, fasthttp.RequestHandler)) {
	page := func(h fasthttp.RequestHandler) fasthttp.RequestHandler {
		return func(ctx *fasthttp.RequestCtx) {
			// Programs in a browser open these pages in a window of their own and
			// wait there for the answer.
			ctx.Response.Header.Set("Cross-Origin-Opener-Policy", agentsOpener)
			h(ctx)
		}
	}
	get(oauth.AuthorizePath, page(p.authorize))
	post(agentsLoginPath, page(p.agentLogin))
	post(oauth.ConsentPath, page(p.consent))
	if p.cfg.Passkeys {
		post(agentsLoginPath+"/passkey", func(ctx *fasthttp.RequestCtx) { writePasskeyOptions(p.kit, ctx, &forAgents) })
	}
	if p.cfg.OIDC != nil {
		get(agentsOIDCPath, page(p.beginAgentOIDC))
	}
}

// pending checks the authorization request that a page is about. ok is false
// when that was answered already: to the user, or by way of the program.
func (p consentPages) pending(c context.Context, ctx *fasthttp.RequestCtx, query string) (r *oauth.Request, ok bool) {
	r, err := p.cfg.Agents.Check(c, p.cfg.Agents.Base(ctx), withoutLanguage(query), ctx.RemoteIP().String())
	var refusal *oauth.Refusal
	switch {
	case err == nil:
		return r, true
	case !errors.As(err, &refusal):
		p.trouble(ctx, err)
	case refusal.Local:
		seeOther(ctx, refusal.Redirect)
	default:
		f := p.frame(ctx, "agent.oops.title")
		p.show(ctx, fasthttp.StatusBadRequest, "refusal.html", refusalPage{f, refusal.Err.Code, refusal.Err.Text, template.URL(refusal.Redirect), refusal.Host})
	}
	return nil, false
}

type refusalPage struct {
	frame
	Code, Detail string // for the program's maker, in English
	// Back is where the program gets the error when the user wants that, an address
	// that was checked, of whatever scheme; empty: nowhere.
	Back template.URL
	Host string
}

// withoutLanguage is a request without our own parameter.
func withoutLanguage(query string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(query, "&"), func(s string) bool { return strings.HasPrefix(s, "lang=") }), "&")
}

// agentFrame starts a page about a request; its language links ask the same
// request again.
func (p consentPages) agentFrame(ctx *fasthttp.RequestCtx, title string, r *oauth.Request) frame {
	f := p.frame(ctx, title)
	f.Path, f.Query = oauth.AuthorizePath, r.Query
	return f
}

func (p consentPages) authorize(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	r, ok := p.pending(c, ctx, string(ctx.QueryArgs().QueryString()))
	if !ok {
		return
	}
	s, ok, err := p.session(c, ctx, &forAgents)
	switch {
	case err != nil:
		p.trouble(ctx, err)
	case ok:
		p.showRequest(c, ctx, r, s, fasthttp.StatusOK, "")
	default:
		p.askLogin(ctx, r, fasthttp.StatusOK, "", "", nil)
	}
}

type agentLoginPage struct {
	frame
	Name, Host, CSRF, Email, Error string
	Local                          bool
	Clients                        []map[string]string // businesses to choose from, when the email is known in several
	Challenge                      string              // as that of loginPage
	Passkeys                       bool
	Providers                      []link // each to its sign-in page
}

// link is an address with the words that lead to it.
type link struct{ Href, Words string }

// agentProviders lead to the sign-in providers and back to a request.
func (p consentPages) agentProviders(f frame, r *oauth.Request) (out []link) {
	if len(r.Query) > oidc.MaxNext {
		return nil
	}
	for _, o := range consolePages(p).providers() {
		out = append(out, link{agentsOIDCPath + "?" + url.Values{"business": {o.Business}, "request": {r.Query}}.Encode(), f.T("login.provider", o.Name)})
	}
	return out
}

func (p consentPages) askLogin(ctx *fasthttp.RequestCtx, r *oauth.Request, status int, problem, challenge string, clients []map[string]string) {
	f := p.agentFrame(ctx, "agent.title", r)
	email := string(ctx.PostArgs().Peek("email"))
	if len(email) > maxField {
		email = ""
	}
	p.show(ctx, status, "agentlogin.html", agentLoginPage{frame: f, Name: r.Client.Name, Host: r.Host(), Local: r.Local(), CSRF: p.formToken(ctx, &forAgents), Email: email, Error: problem, Clients: clients, Challenge: challenge,
		Passkeys: p.cfg.Passkeys, Providers: p.agentProviders(f, r)})
}

// agentLogin lets a user in who then goes on with the request: to our own
// page and with what was checked, wherever the form says.
func (p consentPages) agentLogin(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	r, ok := p.pending(c, ctx, string(ctx.PostArgs().Peek("request")))
	if !ok {
		return
	}
	f := p.agentFrame(ctx, "agent.title", r)
	if !ownForm(ctx, &forAgents) {
		p.askLogin(ctx, r, fasthttp.StatusForbidden, f.T("console.expired"), "", nil)
		return
	}
	l, status, problem, challenge, err := p.attempt(c, ctx, &forAgents, f.Lang, auth.Try{Name: agentsLogin, ClientCode: string(ctx.PostArgs().Peek("client_code")), Life: consentLife})
	switch {
	case status != 0:
		var shown *cloud.Error
		var clients []map[string]string
		if errors.As(err, &shown) {
			clients, _ = shown.Details["clients"].([]map[string]string)
		}
		p.askLogin(ctx, r, status, problem, challenge, clients)
		return
	case err != nil:
		p.trouble(ctx, err)
		return
	case l.SetsUp:
		p.revoke(c, l.Token)
		p.askLogin(ctx, r, fasthttp.StatusForbidden, locale.Error(f.Lang, "SECOND_FACTOR_SETUP_REQUIRED"), "", nil)
		return
	}
	p.enterAgent(ctx, l, r.Query)
}

// enterAgent keeps the token of a login in the browser and goes on with a request.
func (p consentPages) enterAgent(ctx *fasthttp.RequestCtx, l auth.Login, query string) {
	p.setCookie(ctx, forAgents.session, l.Token, agentsPath, consentLife, forAgents.site)
	p.setCookie(ctx, forAgents.form, "", agentsPath, 0, forAgents.site)
	seeOther(ctx, oauth.AuthorizePath+"?"+query)
}

type consentPage struct {
	frame
	Form                    string
	Name, Host, Site, Error string
	Local                   bool
	Account, Email          string
	Business                string // empty for the platform's own people
	Reach                   string // of resources: all, operations, developer
	Offers                  []oauth.Offer
	Asks                    []string // levels of asking, the first is chosen
}

// showRequest shows who wants what.
func (p consentPages) showRequest(c context.Context, ctx *fasthttp.RequestCtx, r *oauth.Request, s auth.Session, status int, problem string) {
	var b cloud.Business
	err := p.cfg.Store.Look(c, func(v cloud.View) (err error) { b, err = v.Business(s.Account.BusinessID); return err })
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		p.trouble(ctx, err)
		return
	}
	page := consentPage{frame: p.agentFrame(ctx, "agent.title", r), Form: sealedForm(ctx, r.Query, time.Now()), Error: problem, Name: r.Client.Name, Host: r.Host(), Site: r.Site(), Local: r.Local(),
		Account: s.Account.Name, Email: s.Account.Email, Business: b.Name, Reach: reach(r.Resource), Offers: oauth.Offers(s.Account, r.Scopes)}
	if slices.ContainsFunc(page.Offers, writes) {
		page.Asks = []string{cloud.AskAll, cloud.AskHigh, cloud.AskNever}
	}
	p.show(ctx, status, "consent.html", page)
	ctx.Response.Header.Set("Content-Security-Policy", consentPolicy)
}

// writes reports whether an offer lets a client change anything.
func writes(o oauth.Offer) bool {
	return slices.ContainsFunc(o.Scopes, func(s string) bool { return s == "*" || strings.HasSuffix(s, ":write") })
}

// reach is what a resource stands for.
func reach(resource string) string {
	switch {
	case strings.HasSuffix(resource, "/mcp/developer"):
		return "developer"
	case strings.HasSuffix(resource, "/mcp/lockers"):
		return "lockers"
	case strings.HasSuffix(resource, "/mcp"):
		return "operations"
	}
	return "all"
}

// consent takes the user's decision and sends the user back to the program.
func (p consentPages) consent(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	r, ok := p.pending(c, ctx, string(ctx.PostArgs().Peek("request")))
	if !ok {
		return
	}
	s, ok, err := p.session(c, ctx, &forAgents)
	switch {
	case err != nil:
		p.trouble(ctx, err)
		return
	case !ok:
		p.askLogin(ctx, r, fasthttp.StatusForbidden, p.frame(ctx, "agent.title").T("console.expired"), "", nil)
		return
	case !sameSite(ctx) || !openedForm(ctx, r.Query, time.Now()):
		p.showRequest(c, ctx, r, s, fasthttp.StatusForbidden, p.frame(ctx, "agent.title").T("agent.expired"))
		return
	}
	to, ip := "", ctx.RemoteIP().String()
	switch string(ctx.PostArgs().Peek("decision")) {
	case "allow":
		to, err = p.cfg.Agents.Allow(c, r, s.Token, oauth.Choice{Profile: string(ctx.PostArgs().Peek("profile")), Ask: string(ctx.PostArgs().Peek("ask"))}, ip)
	case "switch":
		to = oauth.AuthorizePath + "?" + r.Query
	default:
		to, err = p.cfg.Agents.Refuse(c, r, s.Account, ip)
	}
	switch {
	case errors.Is(err, oauth.ErrNoOffer):
		p.showRequest(c, ctx, r, s, fasthttp.StatusBadRequest, p.frame(ctx, "agent.title").T("agent.choose"))
		return
	case err != nil:
		p.trouble(ctx, err)
		return
	}
	p.revoke(c, string(ctx.Request.Header.Cookie(forAgents.session)))
	p.setCookie(ctx, forAgents.session, "", agentsPath, 0, forAgents.site)
	seeOther(ctx, to)
}

// sealedForm is what the page's form brings back: when it was made, under the
// secret of the login that it was shown to, for this request only.
func sealedForm(ctx *fasthttp.RequestCtx, query string, now time.Time) string {
	at := strconv.FormatInt(now.Unix(), 36)
	return at + "." + base64.RawURLEncoding.EncodeToString(formMAC(ctx, query, at))
}

func formMAC(ctx *fasthttp.RequestCtx, query, at string) []byte {
	m := hmac.New(sha256.New, ctx.Request.Header.Cookie(forAgents.session))
	_, _ = fmt.Fprintf(m, "consent\n%s\n%s", at, query)
	return m.Sum(nil)
}

// openedForm reports whether a form was made by sealedForm, not long ago.
func openedForm(ctx *fasthttp.RequestCtx, query string, now time.Time) bool {
	at, mac, _ := strings.Cut(string(ctx.PostArgs().Peek("form")), ".")
	got, err1 := base64.RawURLEncoding.DecodeString(mac)
	made, err2 := strconv.ParseInt(at, 36, 64)
	age := now.Sub(time.Unix(made, 0))
	return err1 == nil && err2 == nil && age > -time.Minute && age < consentLife && hmac.Equal(got, formMAC(ctx, query, at))
}

// Link is this page in another language.
func (f frame) Link(code string) string {
	q := url.Values{"lang": {code}}.Encode()
	if f.Query != "" {
		q = f.Query + "&" + q
	}
	return f.Path + "?" + q
}
