package page

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/protocol/wiring"
)

// SetupPath is where the first start is finished: the one-time address is this
// with the parameter key. The cabinet's page is for administrators who have
// logged in.
const (
	SetupPath   = "/setup"
	cabinetPath = SetupPath + "/cabinet"
)

// forSetup keeps the one-time value in the browser. Links lead here from
// anywhere, a terminal or a message.
var forSetup = entrance{SetupPath, "postern_setup", "postern_setup_form", fasthttp.CookieSameSiteLaxMode, nil}

func (p setupPages) setupRoutes(get, post func(string, fasthttp.RequestHandler)) {
	safe := func(h fasthttp.RequestHandler) fasthttp.RequestHandler {
		return func(ctx *fasthttp.RequestCtx) {
			if !peer.Secure(ctx) && !peer.Local(ctx) {
				p.message(ctx, fasthttp.StatusForbidden, "setup.insecure.title", "setup.insecure.body")
				return
			}
			h(ctx)
		}
	}
	private := func(h fasthttp.RequestHandler) fasthttp.RequestHandler {
		return safe(func(ctx *fasthttp.RequestCtx) {
			if p.limited(ctx) {
				h(ctx)
			}
		})
	}
	get(SetupPath, private(p.setupForm))
	post(SetupPath, private(p.setUp))
	get(cabinetPath, private(p.cabinetForm))
	post(cabinetPath, private(p.addCabinet))
	// These look again by themselves; the limit of the visitor's own login counts.
	get(cabinetPath+"/{id:[0-9]+}", safe(p.connection))
	get(cabinetPath+"/{id:[0-9]+}/parcel", safe(p.firstParcel))
	post(cabinetPath+"/{id:[0-9]+}/parcel", safe(p.sendFirstParcel))
}

type setupPage struct {
	frame
	CSRF   string
	Input  setup.Input // what was typed, without the password
	Errors []fieldError
}

// Countries are those that the business can be in.
func (p setupPage) Countries() []choice { return countryChoices(p.Lang, p.Input.Country) }

// fieldError is what is wrong with one field of a form.
type fieldError struct{ Field, Text string }

// fieldErrors are the messages of an error in the page's language, in the order
// of the form's fields.
func fieldErrors(lang string, err error, fields ...string) (out []fieldError) {
	var shown *cloud.Error
	if !errors.As(err, &shown) {
		return nil
	}
	for _, name := range fields {
		for _, m := range shown.Fields[name] {
			out = append(out, fieldError{name, locale.Field(lang, m)})
		}
	}
	return out
}

// problem is what is wrong with a field, "" when nothing is.
func problem(list []fieldError, field string) string {
	i := slices.IndexFunc(list, func(e fieldError) bool { return e.Field == field })
	if i < 0 {
		return ""
	}
	return list[i].Text
}

// Problem is what is wrong with a field, "" when nothing is.
func (s setupPage) Problem(field string) string { return problem(s.Errors, field) }

// admitted finds whether a one-time value is good, and answers when it is not.
func (p setupPages) admitted(c context.Context, ctx *fasthttp.RequestCtx, token string) bool {
	err := p.cfg.Setup.CheckToken(c, token)
	if err != nil {
		p.setupRefused(ctx, err)
	}
	return err == nil
}

func (p setupPages) setupRefused(ctx *fasthttp.RequestCtx, err error) {
	switch {
	case errors.Is(err, setup.ErrDone):
		f := p.frame(ctx, "setup.done.title")
		p.show(ctx, fasthttp.StatusGone, "message.html", messagePage{frame: f, Heading: f.T("setup.done.title"), Body: f.T("setup.done.body"), Login: true})
	case errors.Is(err, setup.ErrToken):
		p.message(ctx, fasthttp.StatusForbidden, "setup.expired.title", "setup.expired.body")
	default:
		p.trouble(ctx, err)
	}
}

// setupForm asks for the first business. The one-time value moves from the
// address into a cookie, so that it stays in no history.
func (p setupPages) setupForm(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	if key := string(ctx.QueryArgs().Peek("key")); key != "" {
		if len(key) <= maxField && p.admitted(c, ctx, key) {
			p.setCookie(ctx, forSetup.session, key, SetupPath, setup.AddressLife, forSetup.site)
			seeOther(ctx, SetupPath)
		} else if len(key) > maxField {
			p.setupRefused(ctx, setup.ErrToken)
		}
		return
	}
	if p.admitted(c, ctx, string(ctx.Request.Header.Cookie(forSetup.session))) {
		f := p.frame(ctx, "setup.title")
		p.show(ctx, fasthttp.StatusOK, "setup.html", setupPage{frame: f, CSRF: p.formToken(ctx, &forSetup), Input: setup.Input{Timezone: "UTC"}})
	}
}

// setUp makes the first business and logs its administrator in.
func (p setupPages) setUp(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	f := p.frame(ctx, "setup.title")
	field := func(name string) string { return string(ctx.PostArgs().Peek(name)) }
	in := setup.Input{Business: field("business"), Timezone: strings.TrimSpace(field("timezone")), Country: strings.ToUpper(field("country")), Locale: f.Lang,
		Name: field("name"), Email: field("email"), Password: field("password")}
	again := func(status int, errs []fieldError) {
		in.Password = ""
		p.show(ctx, status, "setup.html", setupPage{frame: f, CSRF: p.formToken(ctx, &forSetup), Input: in, Errors: errs})
	}
	if !ownForm(ctx, &forSetup) {
		again(fasthttp.StatusForbidden, []fieldError{{"form", f.T("console.expired")}})
		return
	}
	made, err := p.cfg.Setup.Begin(c, string(ctx.Request.Header.Cookie(forSetup.session)), in, auth.TokenLife)
	if errs := fieldErrors(f.Lang, err, "business", "business_code", "timezone", "country", "name", "email", "password"); len(errs) > 0 {
		again(fasthttp.StatusUnprocessableEntity, errs)
		return
	}
	if err != nil {
		p.setupRefused(ctx, err)
		return
	}
	p.setCookie(ctx, forSetup.session, "", SetupPath, 0, forSetup.site)
	p.setCookie(ctx, forSetup.form, "", SetupPath, 0, forSetup.site)
	p.setCookie(ctx, forStaff.session, made.Token, cookiePath, auth.TokenLife, fasthttp.CookieSameSiteLaxMode)
	seeOther(ctx, cabinetPath)
}

type cabinetPage struct {
	frame
	CSRF    string
	Input   setup.CabinetInput
	Layouts []wiring.Template
	Waiting []cloud.Device // that never enrolled
	Errors  []fieldError
}

// Problem is what is wrong with a field, "" when nothing is.
func (s cabinetPage) Problem(field string) string { return problem(s.Errors, field) }

const addsCabinets = "smart_lockers.devices.create"

// cabinetMaker is the visitor of a page that makes cabinets.
func (p setupPages) cabinetMaker(c context.Context, ctx *fasthttp.RequestCtx) (v visitor, ok bool) {
	v, ok = p.reader(c, ctx, addsCabinets)
	v.Title = v.T("cabinet.title")
	return v, ok
}

func (p setupPages) cabinetForm(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	if v, ok := p.cabinetMaker(c, ctx); ok {
		p.showCabinet(c, ctx, v, fasthttp.StatusOK, cabinetPage{frame: v.frame})
	}
}

func (p setupPages) showCabinet(c context.Context, ctx *fasthttp.RequestCtx, v visitor, status int, page cabinetPage) {
	var err error
	if page.Waiting, _, err = p.cfg.Setup.Waiting(c, v.c.Account.BusinessID); err != nil {
		p.trouble(ctx, err)
		return
	}
	page.CSRF, page.Layouts = p.formToken(ctx, &forStaff), wiring.Templates()
	if page.Input.Type != cloud.TypeScanPost {
		page.Input.Layout = cmp.Or(page.Input.Layout, page.Layouts[0].Name)
	}
	p.show(ctx, status, "cabinet.html", page)
}

// addCabinet makes a cabinet, or another token for one that never enrolled, and
// shows the token, once.
func (p setupPages) addCabinet(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.cabinetMaker(c, ctx)
	if !ok {
		return
	}
	page := cabinetPage{frame: v.frame}
	if !ownForm(ctx, &forStaff) {
		page.Errors = []fieldError{{"form", page.T("console.expired")}}
		p.showCabinet(c, ctx, v, fasthttp.StatusForbidden, page)
		return
	}
	field := func(name string) string { return string(ctx.PostArgs().Peek(name)) }
	operation, in := addsCabinets, map[string]any{}
	if id := field("renew"); id != "" {
		operation, in["id"] = "smart_lockers.devices.renew_token", id
	} else {
		page.Input = setup.CabinetInput{Name: field("device_name"), Code: field("device_code"), Address: field("address"), PostalCode: field("postal_code"), Country: field("country"), Layout: field("layout")}
		for _, name := range cabinetFields {
			in[name] = field(name)
		}
		if page.Input.Layout == cloud.TypeScanPost { // the choice of no compartments
			page.Input.Type, page.Input.Layout = cloud.TypeScanPost, ""
			in["device_type"] = cloud.TypeScanPost
			delete(in, "layout")
		}
	}
	made, err := run[setup.EnrolmentOutput](c, ctx, p.kit, v, operation, in)
	var shown *cloud.Error
	switch page.Errors = fieldErrors(page.Lang, err, cabinetFields...); {
	case len(page.Errors) > 0:
		p.showCabinet(c, ctx, v, fasthttp.StatusUnprocessableEntity, page)
		return
	case errors.As(err, &shown) && (shown.Kind == cloud.NotFound || shown.Kind == cloud.Conflict):
		page.Errors = []fieldError{{"form", locale.Error(page.Lang, shown.Code)}}
		p.showCabinet(c, ctx, v, statusOf(shown), page)
		return
	case err != nil:
		p.refused(ctx, v, err)
		return
	}
	p.showEnrolment(c, ctx, v, made)
}

// cabinetFields are the members of a new cabinet, as the operation and the form name
// them.
var cabinetFields = []string{"device_name", "device_code", "address", "postal_code", "country", "layout"}
