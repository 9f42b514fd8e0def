package page

import (
	"context"
	"errors"

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
	address, cookie, err := p.cfg.OIDC.Begin(c, string(ctx.QueryArgs().Peek("business")))
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
	state, code := string(ctx.QueryArgs().Peek("state")), string(ctx.QueryArgs().Peek("code"))
	if len(state) > maxOIDC || len(code) > maxOIDC {
		p.refuseOIDC(ctx, cloud.E(cloud.Unauthenticated, "OIDC_EXPIRED"))
		return
	}
	x, err := p.cfg.OIDC.Finish(c, business, cookie, state, code)
	if err != nil {
		p.refuseOIDC(ctx, err)
		return
	}
	l, err := p.cfg.Auth.External(c, x)
	if err != nil {
		p.refuseOIDC(ctx, err)
		return
	}
	p.enter(ctx, l)
}

// refuseOIDC shows the login page with what went wrong.
func (p consolePages) refuseOIDC(ctx *fasthttp.RequestCtx, err error) {
	var shown *cloud.Error
	if !errors.As(err, &shown) || shown.Kind == cloud.Internal {
		p.trouble(ctx, err)
		return
	}
	f := p.frame(ctx, "console.login")
	status := fasthttp.StatusUnauthorized
	if shown.Kind == cloud.Unavailable {
		status = fasthttp.StatusServiceUnavailable
	}
	p.show(ctx, status, "login.html", loginPage{frame: f, CSRF: p.formToken(ctx, &forStaff), Error: locale.Error(f.Lang, shown.Code, shown.Args...), Forgotten: p.cfg.Mails, Passkeys: p.cfg.Passkeys, Providers: p.providers()})
}
