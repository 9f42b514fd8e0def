package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
)

// AccountPath is where people keep what lets them in: second factor, password,
// sessions, language.
const AccountPath = "/account"

// forPeople is the entrance of everybody who has a password, by the console's
// login; a person who must set up a second factor first may come in here too.
var forPeople = entrance{cookiePath, SessionCookie, "postern_form", fasthttp.CookieSameSiteStrictMode, forAgents.types}

// accountPage shows what a person keeps. Secret, Draw and Recovery are on it once,
// in the answer to the form that made them.
type accountPage struct {
	frame
	CSRF        string
	Name, Email string
	Console     bool // the person may go there
	SetsUp      bool // nothing else is open before a second factor is set up
	Done, Error string
	Factor      account.Factor
	Begun       bool // a code is waited for
	Secret      string
	Draw        template.HTML
	Recovery    []string
	Sessions    []account.Session
	Locale      string
	HasPasskeys bool // the deployment has them
	Passkeys    []account.Passkey
	Options     string // JSON by which the browser makes a passkey
	Staff       *staffCard
}

// staffCard has the codes by which the person opens cabinets at their screens; nil where
// the person opens none.
type staffCard struct {
	locker.StaffCodesOutput
	Account cloud.AccountID
}

// Days are the codes in two parts, with their days in words.
func (p accountPage) Days() (out []staffDay) {
	for _, x := range p.Staff.Codes {
		out = append(out, staffDay{p.Day(stamp(x.StartsAt)), x.Code[:len(x.Code)/2] + " " + x.Code[len(x.Code)/2:]})
	}
	return out
}

type staffDay struct {
	Day  *moment
	Code string
}

// Stamp is a time of an answer as pages show it.
func (p accountPage) Stamp(at *string) *moment {
	if at == nil {
		return nil
	}
	return p.Time(stamp(at))
}

// personOf finds who is signed in, whatever that login is good for.
func (p *kit) personOf(c context.Context, ctx *fasthttp.RequestCtx) (s auth.Session, ok bool, err error) {
	s, known, err := p.tokenOf(c, ctx, &forPeople)
	now := time.Now()
	return s, known && (auth.Valid(s.Token, now) || auth.SetsUp(s.Token, now)) && lets(s, &forPeople), err
}

func (p personPages) account(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	p.showAccount(c, ctx, fasthttp.StatusOK, func(*accountPage) {})
}

// showAccount shows the page as things stand, after fill has said what was done.
func (p personPages) showAccount(c context.Context, ctx *fasthttp.RequestCtx, status int, fill func(*accountPage)) {
	s, ok, err := p.personOf(c, ctx)
	if err != nil {
		p.trouble(ctx, err)
		return
	}
	if !ok {
		seeOther(ctx, ConsolePath+"/login?next="+AccountPath)
		return
	}
	out := accountPage{frame: p.frame(ctx, "account.title"), CSRF: p.formToken(ctx, &forPeople), Name: s.Account.Name, Email: s.Account.Email, SetsUp: s.Token.Kind == cloud.SetupToken,
		Console: slices.Contains(workers, s.Account.Type), Locale: s.Account.Locale}
	err = p.cfg.Store.Look(c, func(v cloud.View) error {
		b, err := v.Business(s.Account.BusinessID)
		if errors.Is(err, cloud.ErrNotFound) {
			return nil
		}
		out.Zone = b.Location()
		return err
	})
	if err != nil {
		p.trouble(ctx, err)
		return
	}
	token := string(ctx.Request.Header.Cookie(forPeople.session))
	factor, err := runAs[account.FactorOutput](c, ctx, p.kit, out.Lang, token, "user.second_factor.find", nil)
	if err == nil && !out.SetsUp {
		var list account.SessionsOutput
		list, err = runAs[account.SessionsOutput](c, ctx, p.kit, out.Lang, token, "user.sessions.list", map[string]any{"per_page": 50})
		out.Sessions = list.Sessions
	}
	if err == nil && !out.SetsUp && p.cfg.Passkeys {
		var list account.PasskeysOutput
		list, err = runAs[account.PasskeysOutput](c, ctx, p.kit, out.Lang, token, "user.passkeys.list", nil)
		out.HasPasskeys, out.Passkeys = true, list.Passkeys
	}
	const codes = "user.staff_codes.find"
	if err == nil && !out.SetsUp && p.mayAny(c, visitor{frame: out.frame, c: caller(s, out.Lang, "")}, codes) {
		out.Staff = &staffCard{Account: s.Account.ID}
		out.Staff.StaffCodesOutput, err = runAs[locker.StaffCodesOutput](c, ctx, p.kit, out.Lang, token, codes, nil)
	}
	if err != nil {
		p.trouble(ctx, err)
		return
	}
	out.Factor = factor.Factor
	fill(&out)
	p.show(ctx, status, "account.html", out)
}

// accountForms are the forms of the page by their name, with the operation that
// each runs and the members that it gives.
var accountForms = map[string]struct {
	operation string
	members   []string
	done      string // words
}{
	"begin":    {"user.second_factor.begin", []string{"password"}, "account.done.begin"},
	"confirm":  {"user.second_factor.confirm", []string{"otp"}, "account.done.confirm"},
	"codes":    {"user.second_factor.recovery_codes", []string{"password", "otp"}, "account.done.codes"},
	"remove":   {"user.second_factor.remove", []string{"password", "otp"}, "account.done.remove"},
	"password": {"user.password.change", []string{"password", "new_password", "otp"}, "account.done.password"},
	"locale":   {"user.locale.change", []string{"locale"}, ""},
	"end":      {"user.sessions.end", []string{"session_id"}, "account.done.end"},
	"others":   {"user.sessions.end_others", nil, "account.done.others"},

	"draw":   {"user.staff_codes.draw", nil, "account.done.draw"},
	"undraw": {"smart_lockers.staff_codes.end", []string{"account_id"}, "account.done.undraw"},

	"passkey":        {"user.passkeys.begin", []string{"password", "otp"}, "account.done.passkey"},
	"passkey_add":    {"user.passkeys.create", []string{"name", "credential"}, "account.done.passkey_add"},
	"passkey_rename": {"user.passkeys.rename", []string{"passkey_id", "name"}, "account.done.passkey_rename"},
	"passkey_remove": {"user.passkeys.remove", []string{"passkey_id"}, "account.done.passkey_remove"},
}

// changeAccount runs what a form of the page asks for.
func (p personPages) changeAccount(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	f := p.frame(ctx, "account.title")
	name := string(ctx.PostArgs().Peek("do"))
	form, ok := accountForms[name]
	switch {
	case !ownForm(ctx, &forPeople):
		p.showAccount(c, ctx, fasthttp.StatusForbidden, func(out *accountPage) { out.Error = f.T("console.expired") })
		return
	case !ok:
		p.missing(ctx)
		return
	}
	in := map[string]any{}
	for _, m := range form.members {
		v := string(ctx.PostArgs().Peek(m))
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && strings.HasSuffix(m, "_id") {
			in[m] = n
		} else if v != "" {
			in[m] = v
		}
	}
	a, err := p.answer(c, ctx, f.Lang, string(ctx.Request.Header.Cookie(forPeople.session)), form.operation, in)
	if shown := cloud.Shown(err); shown != nil {
		p.showAccount(c, ctx, fasthttp.StatusUnprocessableEntity, func(out *accountPage) {
			out.Error, out.Begun = problemText(f.Lang, shown), name == "confirm" && shown.Code != "SECOND_FACTOR_NOT_BEGUN"
		})
		return
	}
	if err != nil {
		p.trouble(ctx, err)
		return
	}
	if name == "locale" {
		lang, _ := in["locale"].(string)
		p.keepLanguage(ctx, lang)
		seeOther(ctx, AccountPath)
		return
	}
	p.showAccount(c, ctx, fasthttp.StatusOK, func(out *accountPage) {
		out.Done = f.T(form.done)
		switch body := a.Body.(type) {
		case account.BeginFactorOutput:
			out.Begun, out.Secret = true, body.Secret
			if out.Draw, err = drawQR(body.URI, "scan"); err != nil {
				p.log.Error("draw second factor", "err", err)
			}
		case account.RecoveryOutput:
			out.Recovery = body.Recovery
		case account.PasskeyOptionsOutput:
			options, err := json.Marshal(body.Options)
			if err != nil {
				p.log.Error("show options of a passkey", "err", err)
			}
			out.Options = string(options)
		}
	})
}

// problemText is an error in words: those of its members where it has any.
func problemText(lang string, e *cloud.Error) string {
	var out []string
	for _, list := range e.Fields {
		for _, m := range list {
			out = append(out, locale.Field(lang, m))
		}
	}
	slices.Sort(out)
	return cmp.Or(strings.Join(slices.Compact(out), " "), locale.Error(lang, e.Code, e.Args...))
}

// keepLanguage makes pages speak a person's language.
func (p *kit) keepLanguage(ctx *fasthttp.RequestCtx, lang string) {
	if locale.Known(lang) {
		p.setCookie(ctx, langCookie, lang, "/", langLife, fasthttp.CookieSameSiteLaxMode)
	}
}
