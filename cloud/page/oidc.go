package page

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/oidc"
)

// Where people go to their business's sign-in provider, and where it sends them back.
const (
	oidcPath       = ConsolePath + "/login/oidc"
	OIDCCallback   = oidcPath + "/callback" // and the code of the business
	oidcCookie     = "postern_oidc"
	maxOIDC        = 2048 // bytes of what a provider sends back
	oidcCookieSite = fasthttp.CookieSameSiteLaxMode
)

func (p consolePages) providers() []oidc.Provider {
	if p.cfg.OIDC == nil {
		return nil
	}
	return p.cfg.OIDC.Providers()
}

// beginOIDC sends a person to the provider of a business.
func (p consolePages) beginOIDC(ctx *fasthttp.RequestCtx) {
	if !p.limited(ctx) {
		return
	}
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	address, cookie, err := p.cfg.OIDC.Begin(c, string(ctx.QueryArgs().Peek("business")), "")
	if err != nil {
		p.refuseOIDC(ctx, err)
		return
	}
	p.setCookie(ctx, oidcCookie, cookie, oidcPath, oidc.Life, oidcCookieSite)
	seeOther(ctx, address)
}

// finishOIDC takes what the provider sent back, and logs the person in.
func (p consolePages) finishOIDC(ctx *fasthttp.RequestCtx) {
	if !p.limited(ctx) {
		return
	}
	c, cancel := context.WithTimeout(context.Background(), 2*readTime)
	defer cancel()
	business, _ := ctx.UserValue("business").(string)
	cookie := string(ctx.Request.Header.Cookie(oidcCookie))
	p.setCookie(ctx, oidcCookie, "", oidcPath, 0, oidcCookieSite) // good once
	next := ""
	if p.cfg.Agents != nil {
		next = p.cfg.OIDC.Next(cookie)
	}
	refuse := p.refuseOIDC
	if next != "" {
		ctx.Response.Header.Set("Cross-Origin-Opener-Policy", agentsOpener)
		refuse = func(ctx *fasthttp.RequestCtx, err error) { consentPages(p).refuseAgentOIDC(c, ctx, next, err) }
	}
	state, code := string(ctx.QueryArgs().Peek("state")), string(ctx.QueryArgs().Peek("code"))
	if len(state) > maxOIDC || len(code) > maxOIDC {
		refuse(ctx, cloud.E(cloud.Unauthenticated, "OIDC_EXPIRED"))
		return
	}
	x, err := p.cfg.OIDC.Finish(c, business, cookie, state, code)
	if err != nil {
		refuse(ctx, err)
		return
	}
	if next != "" {
		x.Name, x.Life = agentsLogin, consentLife
	}
	l, err := p.cfg.Auth.External(c, x)
	if err != nil {
		refuse(ctx, err)
		return
	}
	if next != "" {
		consentPages(p).enterAgent(ctx, l, next)
		return
	}
	p.enter(ctx, l)
}

// refuseOIDC shows the login page with what went wrong.
func (p consolePages) refuseOIDC(ctx *fasthttp.RequestCtx, err error) {
	f := p.frame(ctx, "console.login")
	status, problem := oidcProblem(f, err)
	if status == 0 {
		p.trouble(ctx, err)
		return
	}
	p.show(ctx, status, "login.html", loginPage{frame: f, CSRF: p.formToken(ctx, &forStaff), Error: problem, Forgotten: p.cfg.Mails, Passkeys: p.cfg.Passkeys, Providers: p.providers()})
}

// oidcProblem is a refused login by a provider as a status with words; 0: it is none of
// the person's concern.
func oidcProblem(f frame, err error) (status int, problem string) {
	shown := cloud.Shown(err)
	switch {
	case shown == nil:
		return 0, ""
	case shown.Kind == cloud.Unavailable:
		status = fasthttp.StatusServiceUnavailable
	default:
		status = fasthttp.StatusUnauthorized
	}
	return status, locale.Error(f.Lang, shown.Code, shown.Args...)
}

// beginAgentOIDC sends a person who decides about a program to the provider of a business.
func (p consentPages) beginAgentOIDC(ctx *fasthttp.RequestCtx) {
	if !p.limited(ctx) {
		return
	}
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	r, ok := p.pending(c, ctx, string(ctx.QueryArgs().Peek("request")))
	if !ok {
		return
	}
	if len(r.Query) > oidc.MaxNext {
		p.askLogin(ctx, r, fasthttp.StatusUnauthorized, p.frame(ctx, "agent.title").T("console.expired"), "", nil)
		return
	}
	address, cookie, err := p.cfg.OIDC.Begin(c, string(ctx.QueryArgs().Peek("business")), r.Query)
	if err != nil {
		p.refuseAgentOIDC(c, ctx, r.Query, err)
		return
	}
	p.setCookie(ctx, oidcCookie, cookie, oidcPath, oidc.Life, oidcCookieSite)
	seeOther(ctx, address)
}

// refuseAgentOIDC asks again for the login of a request, with what went wrong.
func (p consentPages) refuseAgentOIDC(c context.Context, ctx *fasthttp.RequestCtx, query string, err error) {
	r, ok := p.pending(c, ctx, query)
	if !ok {
		return
	}
	status, problem := oidcProblem(p.agentFrame(ctx, "agent.title", r), err)
	if status == 0 {
		p.trouble(ctx, err)
		return
	}
	p.askLogin(ctx, r, status, problem, "", nil)
}
