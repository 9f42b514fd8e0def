package page

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/locale"
)

// Entrances of links. Each keeps the link's secret in the browser, so that it
// stands in no address from then on. Links lead here from anywhere.
var (
	forInvitation = entrance{account.InvitationPath, "postern_invitation", "postern_invitation_form", fasthttp.CookieSameSiteLaxMode, nil}
	forForgotten  = entrance{forgottenPath, "", "postern_forgotten_form", fasthttp.CookieSameSiteLaxMode, nil}
	forReset      = entrance{account.ResetPath, "postern_reset", "postern_reset_form", fasthttp.CookieSameSiteLaxMode, nil}
)

// forgottenPath is where people without their password ask for a link to another.
const forgottenPath = "/password-forgotten"

const linkLife = time.Hour // of the cookie

// linkPage asks for what a link needs besides: the email that was invited, a
// password, a code of the second factor.
type linkPage struct {
	frame
	At, CSRF, Email, Error string
	Invited                bool
	Asks                   bool // for a code of the second factor
	Dead                   bool // there is no link
}

func (p personPages) linkRoutes(get, post func(string, fasthttp.RequestHandler)) {
	for _, at := range []*entrance{&forInvitation, &forReset} {
		get(at.path, func(ctx *fasthttp.RequestCtx) { p.link(ctx, at) })
		post(at.path, func(ctx *fasthttp.RequestCtx) { p.follow(ctx, at) })
	}
	if p.cfg.Mails {
		get(forgottenPath, p.forgotten)
		post(forgottenPath, p.requestReset)
	}
}

// forgottenPage asks for the email of an account. Sent says that a request was kept,
// which says nothing about accounts.
type forgottenPage struct {
	frame
	CSRF, Email, Error string
	Sent               bool
}

func (p personPages) forgotten(ctx *fasthttp.RequestCtx) {
	p.showForgotten(ctx, fasthttp.StatusOK, false, "")
}

func (p personPages) showForgotten(ctx *fasthttp.RequestCtx, status int, sent bool, problem string) {
	out := forgottenPage{frame: p.frame(ctx, "forgotten.title"), CSRF: p.formToken(ctx, &forForgotten), Sent: sent, Error: problem}
	if email := string(ctx.PostArgs().Peek("email")); len(email) <= maxField {
		out.Email = email
	}
	p.show(ctx, status, "forgotten.html", out)
}

// requestReset keeps the wish for a link, and answers alike whether or not there is
// an account.
func (p personPages) requestReset(ctx *fasthttp.RequestCtx) {
	if !p.limited(ctx) {
		return
	}
	lang := p.frame(ctx, "").Lang
	if !ownForm(ctx, &forForgotten) {
		p.showForgotten(ctx, fasthttp.StatusForbidden, false, locale.Word(lang, "console.expired"))
		return
	}
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	_, err := p.answer(c, ctx, lang, "", "user.password_reset.request", map[string]any{"email": string(ctx.PostArgs().Peek("email"))})
	switch shown := cloud.Shown(err); {
	case shown != nil && shown.Kind != cloud.Limited:
		p.showForgotten(ctx, fasthttp.StatusUnprocessableEntity, false, problemText(lang, shown))
	case err != nil:
		p.trouble(ctx, err)
	default:
		p.showForgotten(ctx, fasthttp.StatusOK, true, "")
	}
}

// link keeps the secret of a link and goes on without it.
func (p personPages) link(ctx *fasthttp.RequestCtx, at *entrance) {
	if key := string(ctx.QueryArgs().Peek("key")); key != "" && len(key) <= maxField {
		p.setCookie(ctx, at.session, key, at.path, linkLife, at.site)
		seeOther(ctx, at.path)
		return
	}
	p.showLink(ctx, at, fasthttp.StatusOK, nil)
}

func (p personPages) showLink(ctx *fasthttp.RequestCtx, at *entrance, status int, problem *cloud.Error) {
	out := linkPage{frame: p.frame(ctx, "link.invitation"), At: at.path, CSRF: p.formToken(ctx, at), Invited: at == &forInvitation, Dead: len(ctx.Request.Header.Cookie(at.session)) == 0}
	if !out.Invited {
		out.Title = out.T("link.reset")
	}
	if email := string(ctx.PostArgs().Peek("email")); len(email) <= maxField {
		out.Email = email
	}
	if out.Dead {
		out.Error = out.T("link.missing")
	}
	if problem != nil {
		out.Error = problemText(out.Lang, problem)
		switch problem.Code {
		case "SECOND_FACTOR_REQUIRED":
			out.Error, out.Asks = out.T("login.second"), true
		case "SECOND_FACTOR_INVALID", "SECOND_FACTOR_LOCKED":
			out.Asks = true
		}
	}
	p.show(ctx, status, "link.html", out)
}

// follow does what a link is for, and leads to the login.
func (p personPages) follow(ctx *fasthttp.RequestCtx, at *entrance) {
	if !p.limited(ctx) {
		return
	}
	if !ownForm(ctx, at) {
		p.message(ctx, fasthttp.StatusForbidden, "trouble.title", "console.expired")
		return
	}
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	operation, members := "invitations.accept", []string{"email", "password"}
	if at == &forReset {
		operation, members = "user.password_reset.complete", []string{"password", "otp"}
	}
	in := map[string]any{"token": string(ctx.Request.Header.Cookie(at.session))}
	for _, m := range members {
		if v := string(ctx.PostArgs().Peek(m)); v != "" {
			in[m] = v
		}
	}
	_, err := p.answer(c, ctx, p.frame(ctx, "").Lang, "", operation, in)
	switch shown := cloud.Shown(err); {
	case shown != nil && shown.Kind != cloud.Limited:
		p.showLink(ctx, at, fasthttp.StatusUnprocessableEntity, shown)
	case err != nil:
		p.trouble(ctx, err)
	default:
		p.setCookie(ctx, at.session, "", at.path, 0, at.site)
		p.setCookie(ctx, at.form, "", at.path, 0, at.site)
		seeOther(ctx, ConsolePath+"/login")
	}
}
