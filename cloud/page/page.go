// Package page renders what people look at: the recipient's tracking page, the
// operations console with what is said about orders and the webhooks' receivers and
// log, the tracking protocol's
// description and the interface's, and where people decide about programs that
// want to act for them.
//
// Pages are made on the server and work without script; a small script of our
// own refreshes them. Everything comes from the binary, nothing from other
// hosts, and the content security policy admits no inline script or style.
// Pages never hold a pickup code, a delivery code or a secret, but for a new
// signing secret in the answer to the form that asked for it, the token for the
// chat of its order on a tracking page, which the public tracking answer gives too,
// the codes that the secret of a recipient's or a sender's own link shows,
// and the codes of a first parcel on the page of the person who sent it.
//
// A page says when it was made and when its news were last confirmed. The
// console and the tracking pages follow changes over server-sent events (package
// stream): at most five updates a second, each read from the database at that
// moment, so that a notice that is lost loses nothing for long. Chats listen to the
// broker, and ask again and again where they cannot. Safe for concurrent use.
package page

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/approval"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	otepdocs "github.com/postern-io/postern/cloud/docs/otep"
	webhookdocs "github.com/postern-io/postern/cloud/docs/webhook"
	"github.com/postern-io/postern/cloud/limit"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/oauth"
	"github.com/postern-io/postern/cloud/oidc"
	"github.com/postern-io/postern/cloud/page/stream"
	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webhook"
)

// Store is what pages read.
type Store interface {
	Look(ctx context.Context, fn func(cloud.View) error) error
	ListDevices(ctx context.Context, b cloud.BusinessID, after cloud.DeviceID, limit int) ([]cloud.Device, error)
	ListLockedParcels(ctx context.Context, b cloud.BusinessID, since time.Time, limit int) ([]cloud.ProofGuesses, error)
	ListBusinessOutbox(ctx context.Context, f cloud.BusinessLog) ([]cloud.OutboxRow, error)
	CountFailing(ctx context.Context, b cloud.BusinessID) (int, error)
}

// Config is what New needs.
type Config struct {
	Store     Store
	Tracking  *tracking.Service
	Gate      *auth.Gate
	Auth      *auth.Service
	FindToken func(ctx context.Context, hash [32]byte) (auth.Session, error) // cloud.ErrNotFound when unknown
	// Deliveries lists a business's newest deliveries.
	Deliveries func(ctx context.Context, b cloud.BusinessID, limit int) ([]cloud.Delivery, error)
	// Peers reports whether other nodes may write into the same database: their commits
	// come without a notice. nil: there are none.
	Peers func() bool
	// Approvals are the writes of agents that people decide about; nil: there
	// are no pages about them.
	Approvals *approval.Service
	// Receivers are the receivers of events, and what they were sent; nil: there
	// are no pages about them. Actions there are operations of Catalog,
	// through Pipeline.
	Receivers *webhook.Service
	Catalog   *catalog.Catalog
	Pipeline  *catalog.Pipeline
	// DigestKey is the deployment's key of digests of previews (cloud.Marks).
	DigestKey []byte
	// Chats says that there are pages of what is said about orders. What people do
	// there are operations of Catalog, through Pipeline.
	Chats bool
	// LiveURL is where these pages listen over WebSocket, as ws or wss; "": they ask
	// again and again.
	LiveURL string
	// Mails says that there is a mail server: people may ask for a link to a new
	// password.
	Mails bool
	// Passkeys says that people may make passkeys and sign in with them.
	Passkeys bool
	// OIDC asks the sign-in providers of businesses; nil: there are none.
	OIDC *oidc.Service
	// Secure sets cookies for https only, whichever way a request came.
	Secure bool
	// Nodes share the limits of pages.
	Nodes limit.Nodes
	// PerMinute bounds set-up pages and checks of timelines by address; 0 is 60,
	// negative unbounded. Tracking counts lookups of parcels.
	PerMinute int
	// Limits are shown with the interface: calls a minute by name, negative ones are
	// none.
	Limits  map[string]int
	BaseURL string // own public address, for examples; "": one of an example
	// Interface gives the OpenAPI description of the REST addresses, as JSON. It is
	// asked once, when the page is read first; nil: there is no page about it.
	Interface func() []byte
	// Changelog is what changed from release to release, in the form of Keep a Changelog.
	Changelog string
	// Webhooks is the guide for receivers of webhooks; nil: there is no page of it.
	Webhooks *webhookdocs.Guide
	// Agents is the authorization server whose questions people answer here; nil:
	// there are no such pages.
	Agents *oauth.Service
	// Setup finishes the first start; nil: there are no such pages.
	Setup *setup.Service
	// Program is how a person at this machine starts a program of ours, such as
	// bin/edge for edge; nil: by its name. Commands on pages for other machines have
	// the name.
	Program func(name string) string
	Log     *slog.Logger
}

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// Pages answers requests for pages.
type Pages struct {
	*kit
	approvalPages
	chatPages
	trackingPages
	consentPages
	consolePages
	webhookPages
	setupPages
	personPages
	guidePages
	nounPages
	drawnPages
	handler   fasthttp.RequestHandler
	addresses map[string][]string
}

// Pages of one matter each.
type (
	approvalPages struct{ *kit }
	chatPages     struct{ *kit }
	trackingPages struct{ *kit }
	consentPages  struct{ *kit }
	consolePages  struct{ *kit }
	webhookPages  struct{ *kit }
	setupPages    struct{ *kit }
	personPages   struct{ *kit }
	guidePages    struct{ *kit }
	nounPages     struct{ *kit }
	jobPages      struct{ nounPages } // of work over many records, and of files
	drawnPages    struct{ nounPages } // of the console, with the parts of the generated ones
)

// kit is what every page is made with: frame, session, form token, answers and
// errors.
type kit struct {
	cfg        Config
	log        *slog.Logger
	tmpl       *template.Template
	assets     map[string]asset // by file name
	version    string           // changes with any asset
	limits     *limit.Buckets
	hub        *stream.Hub // of pages that are kept up to date
	guides     *guides
	chatPolicy string // policy of pages with a chat
}

// Bounds.
const (
	readTime  = 10 * time.Second
	assetLife = "public, max-age=31536000, immutable"
)

// New builds the pages; it starts nothing.
func New(cfg Config) (*Pages, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Program == nil {
		cfg.Program = func(name string) string { return name }
	}
	if cfg.PerMinute == 0 {
		cfg.PerMinute = 60
	}
	k := &kit{cfg: cfg, log: cfg.Log, assets: map[string]asset{}, limits: limit.New(0, cfg.Nodes)}
	k.hub = stream.New(stream.Config{Owner: livePages{drawnPages{nounPages{k}}}.ownerOf, Log: cfg.Log})
	var err error
	if k.tmpl, err = template.New("pages").Funcs(formFuncs).ParseFS(templateFiles, "templates/*.html"); err != nil {
		return nil, fmt.Errorf("read page templates: %w", err)
	}
	if err := k.loadAssets(); err != nil {
		return nil, err
	}
	if k.chatPolicy, err = hearing(cfg.LiveURL); err != nil {
		return nil, err
	}
	p := &Pages{k, approvalPages{k}, chatPages{k}, trackingPages{k}, consentPages{k}, consolePages{k}, webhookPages{k}, setupPages{k}, personPages{k}, guidePages{k}, nounPages{k}, drawnPages{nounPages{k}}, nil, nil}
	if p.handler, err = p.routes(); err != nil {
		return nil, err
	}
	return p, nil
}

// Addresses are those that pages answer, by method; a part in braces stands for any.
func (p *Pages) Addresses() map[string][]string { return p.addresses }

// Handler answers one request.
func (p *Pages) Handler(ctx *fasthttp.RequestCtx) { p.handler(ctx) }

func (p *Pages) routes() (fasthttp.RequestHandler, error) {
	r := router.New()
	r.RedirectFixedPath, r.HandleOPTIONS = false, false
	r.SaveMatchedRoutePath = true // for the access log
	get := func(path string, h fasthttp.RequestHandler) {
		r.GET(path, h)
		r.HEAD(path, h)
	}
	get("/", p.home)
	get("/track", p.search)
	get("/track/{number}", p.track)
	if p.cfg.Catalog != nil && p.cfg.Pipeline != nil {
		get("/dropoff/{number}", p.dropoff)
		r.POST("/dropoff/{number}", p.dropoffPost)
	}
	get("/assets/{file}", p.asset)
	get("/robots.txt", p.robots)
	get("/favicon.ico", p.favicon)
	get("/console", p.console)
	get("/console/login", p.loginForm)
	r.POST("/console/login", p.login)
	if p.cfg.Passkeys {
		r.POST("/console/login/passkey", p.passkeyOptions)
	}
	if p.cfg.OIDC != nil {
		r.GET(oidcPath, p.beginOIDC)
		r.GET(OIDCCallback+"/{business}", p.finishOIDC)
	}
	r.POST("/console/logout", p.logout)
	get(cabinetView, p.showStanding)
	get(layoutPath, p.layoutForm)
	r.POST(layoutPath, p.changeLayout)
	get(AccountPath, p.account)
	r.POST(AccountPath, p.changeAccount)
	p.linkRoutes(get, func(path string, h fasthttp.RequestHandler) { r.POST(path, h) })
	if p.cfg.Approvals != nil {
		get(approvalsPath, p.approvals)
		r.POST(approvalsPath, p.rejectTogether)
		get(approvalsPath+"/{id}", p.approval)
		r.POST(approvalsPath+"/{id}", p.decide)
	}
	if p.cfg.Receivers != nil {
		get(hooksPath, p.showDeliveries)
		get(hooksPath+"/{id}", p.showDelivery)
		r.POST(hooksPath+"/{id}", p.replay)
		get(hooksPath+"/receivers/{id}", p.receiver)
		r.POST(hooksPath+"/receivers/{id}", p.manage)
		get(replaysPath, p.replayForm)
		r.POST(replaysPath, p.replayMany)
		get(replaysPath+"/{job}", p.replayJob)
		r.POST(replaysPath+"/{job}", p.cancelReplay)
	}
	r.POST("/track/{number}", p.trackPost)
	if p.cfg.Chats {
		get(chatsPath, p.chats)
		get(chatsPath+"/{id}", p.chat)
		r.POST(chatsPath+"/{id}", p.chatPost)
		r.GET(chatsPath+"/{id}/api", p.chatCall("find"))
		r.GET(chatsPath+"/{id}/api/messages", p.chatCall("messages"))
		r.POST(chatsPath+"/{id}/api/messages", p.chatCall("send"))
		r.PATCH(chatsPath+"/{id}/api/messages/{message}", p.chatCall("edit"))
		r.DELETE(chatsPath+"/{id}/api/messages/{message}", p.chatCall("delete"))
		r.POST(ChatUploads, p.chatCall("attach"))
		for _, what := range []string{"read", "typing", "token"} {
			r.POST(chatsPath+"/{id}/api/"+what, p.chatCall(what))
		}
	}
	if p.cfg.Agents != nil {
		p.agentRoutes(get, func(path string, h fasthttp.RequestHandler) { r.POST(path, h) })
	}
	if p.cfg.Setup != nil {
		p.setupRoutes(get, func(path string, h fasthttp.RequestHandler) { r.POST(path, h) })
	}
	if err := p.guideRoutes(r); err != nil {
		return nil, err
	}
	if p.cfg.Catalog != nil && p.cfg.Pipeline != nil {
		post := func(path string, h fasthttp.RequestHandler) { r.POST(path, h) }
		get(livePath, livePages{p.drawnPages}.streamTopics)
		p.drawnRoutes(get, post)
		p.nounRoutes(get, post)
	}
	if p.cfg.Webhooks != nil {
		get(webhookdocs.Path, p.hookGuide)
	}
	if p.cfg.Interface != nil {
		p.docsRoutes(get, sync.OnceValues(func() (*docsModel, error) {
			d, err := readInterface(p.cfg.Interface())
			if err != nil {
				return nil, err
			}
			for _, name := range slices.Sorted(maps.Keys(p.cfg.Limits)) {
				d.Limits = append(d.Limits, docsLimit{name, p.cfg.Limits[name]})
			}
			return d, nil
		}))
	}
	r.NotFound = func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == otepdocs.Path+"/" { // the router overlooks it among routes below
			ctx.Redirect(otepdocs.Path, fasthttp.StatusMovedPermanently)
			return
		}
		p.missing(ctx)
	}
	r.MethodNotAllowed = func(ctx *fasthttp.RequestCtx) {
		p.message(ctx, fasthttp.StatusMethodNotAllowed, "oops.title", "oops.body")
	}
	p.addresses = r.List()
	return func(ctx *fasthttp.RequestCtx) {
		headers(ctx)
		r.Handler(ctx)
	}, nil
}

// policy admits what comes from here and nothing inline.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func headers(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store") // a page from a cache looks fresh and is not
}

// frame is what every page has; page data embeds it.
type frame struct {
	Lang      string
	Version   string
	Title     string
	Path      string // of this page, for language links
	Query     string // of this page, where it says what it is about
	Made      time.Time
	Zone      *time.Location
	Robots    bool     // search engines may keep it
	Kit       []string // names of the further style sheets and scripts of its kind of page
	Languages []locale.Language
	Desk      *desk  // of a visitor who is signed in; nil for others
	Live      string // ticket of what the page follows; "": it stays as it is
	since     string // id of the latest event when the page began to be read
}

// T is a word in the page's language.
func (f frame) T(key string, args ...any) string { return locale.Word(f.Lang, key, args...) }

// V is an enum value in words.
func (f frame) V(kind, value string) string { return locale.Value(f.Lang, kind, value) }

// moment is a time as pages show it: in words, and whole where a pointer rests on it.
type moment struct {
	ISO, Text, Full string
	Later           string // within the hour: what it is called without minutes; else ""
	// Of a time less than an hour ago: the minutes and their pattern, so that the words of
	// a page that stays open go on.
	Ago     string
	Minutes int
}

// Day is a day in words as of today in the page's zone.
func (f frame) Day(t time.Time) *moment {
	now := time.Now()
	if f.Zone != nil {
		now = now.In(f.Zone)
	}
	iso := t.Format(time.DateOnly)
	return &moment{ISO: iso, Text: locale.Day(f.Lang, t, now), Full: iso}
}

// Time is a time in the page's zone, in words as of now; nil when it did not happen.
func (f frame) Time(t time.Time) *moment { return f.timeAt(t, time.Now()) }

// timeAt is a time as seen at now.
func (f frame) timeAt(t, now time.Time) *moment {
	if t.IsZero() {
		return nil
	}
	l := f.Zone
	if l == nil {
		l = time.UTC
	}
	t = t.In(l)
	m := &moment{ISO: t.Format(time.RFC3339), Text: locale.Moment(f.Lang, t, now), Full: t.Format("2006-01-02 15:04 MST")}
	if age := now.Sub(t); age.Abs() < time.Hour {
		m.Later = locale.Clock(f.Lang, t, now)
		if age >= 0 {
			m.Minutes, m.Ago = int(age/time.Minute), locale.Ago(f.Lang)
		}
	}
	return m
}

const (
	langCookie = "postern_lang"
	langLife   = 365 * 24 * time.Hour
)

// frame starts a page in the caller's language: the one chosen by a link, else
// chosen before, else what the browser asks for.
func (p *kit) frame(ctx *fasthttp.RequestCtx, title string) frame {
	lang := string(ctx.QueryArgs().Peek("lang"))
	if locale.Known(lang) {
		p.setCookie(ctx, langCookie, lang, "/", langLife, fasthttp.CookieSameSiteLaxMode)
	} else if lang = string(ctx.Request.Header.Cookie(langCookie)); !locale.Known(lang) {
		lang = locale.Negotiate(string(ctx.Request.Header.Peek("Accept-Language")))
	}
	return frame{Lang: lang, Version: p.version, Title: locale.Word(lang, title), Path: string(ctx.URI().PathOriginal()), Made: time.Now().UTC(), Zone: time.UTC, Languages: locale.All(), since: p.hub.ID()}
}

func (p *kit) setCookie(ctx *fasthttp.RequestCtx, name, value, path string, life time.Duration, site fasthttp.CookieSameSite) {
	var c fasthttp.Cookie
	c.SetKey(name)
	c.SetValue(value)
	c.SetPath(path)
	c.SetHTTPOnly(true)
	c.SetSameSite(site)
	c.SetSecure(p.cfg.Secure || peer.Secure(ctx))
	if life > 0 {
		c.SetMaxAge(int(life / time.Second))
	} else {
		c.SetExpire(fasthttp.CookieExpireDelete)
	}
	ctx.Response.Header.SetCookie(&c)
}

// show renders a page.
func (p *kit) show(ctx *fasthttp.RequestCtx, status int, name string, data any) {
	var b bytes.Buffer
	if err := p.tmpl.ExecuteTemplate(&b, name, data); err != nil {
		p.log.Error("render page", "page", name, "err", err)
		ctx.SetStatusCode(fasthttp.StatusInternalServerError)
		ctx.SetContentType("text/plain; charset=utf-8")
		ctx.SetBodyString(locale.Error(locale.English, "INTERNAL_ERROR"))
		return
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("text/html; charset=utf-8")
	ctx.Response.Header.Set("Vary", "Accept-Language, Cookie")
	ctx.SetBody(b.Bytes())
}

// limited takes one of the caller's calls and answers when there is none left.
func (p *kit) limited(ctx *fasthttp.RequestCtx) (ok bool) {
	return p.within(ctx, p.limits.Take("ip/"+limit.Address(ctx.RemoteIP().String()), max(p.cfg.PerMinute, 0), time.Now()))
}

// within answers a caller who came too often.
func (p *kit) within(ctx *fasthttp.RequestCtx, st limit.State) bool {
	if !st.OK {
		p.trouble(ctx, &cloud.Error{Kind: cloud.Limited, Code: "RATE_LIMITED", RetryAfter: st.RetryAfter})
	}
	return st.OK
}

type messagePage struct {
	frame
	Heading, Body string
	Login         bool // leads to the login of staff instead of to tracking
}

func (p *kit) message(ctx *fasthttp.RequestCtx, status int, heading, body string) {
	f := p.frame(ctx, heading)
	p.show(ctx, status, "message.html", messagePage{frame: f, Heading: f.T(heading), Body: f.T(body)})
}

func (p *kit) missing(ctx *fasthttp.RequestCtx) {
	p.message(ctx, fasthttp.StatusNotFound, "oops.title", "oops.body")
}

// trouble shows an error as a page. Internal errors are logged.
func (p *kit) trouble(ctx *fasthttp.RequestCtx, err error) {
	code, status := "INTERNAL_ERROR", fasthttp.StatusInternalServerError
	switch shown, ours := cloud.Answered(err); {
	case shown.Kind == cloud.Limited:
		code, status = shown.Code, fasthttp.StatusTooManyRequests
		ctx.Response.Header.Set("Retry-After", fmt.Sprint(shown.RetryAfter))
	case errors.Is(err, context.DeadlineExceeded):
		code, status = "MODULE_UNAVAILABLE", fasthttp.StatusServiceUnavailable
	default:
		p.log.Error("page failed", "path", string(ctx.Path()), "err", err)
		if ours {
			code, status = shown.Code, catalog.Status(shown)
		}
	}
	f := p.frame(ctx, "trouble.title")
	p.show(ctx, status, "message.html", messagePage{frame: f, Heading: f.T("trouble.title"), Body: locale.Error(f.Lang, code)})
}

func (p *Pages) home(ctx *fasthttp.RequestCtx) {
	f := p.frame(ctx, "track.title")
	f.Robots = true
	p.show(ctx, fasthttp.StatusOK, "home.html", homePage{frame: f, Fresh: p.fresh()})
}

type homePage struct {
	frame
	Number  string
	Missing string // why there is nothing for Number
	Fresh   bool   // nothing is set up yet
}

// fresh reports whether the deployment waits for its first administrator.
func (p *kit) fresh() bool {
	if p.cfg.Setup == nil {
		return false
	}
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	return errors.Is(p.cfg.Setup.CheckToken(c, ""), setup.ErrToken)
}

// search sends the search form's number to its page.
func (p *kit) search(ctx *fasthttp.RequestCtx) {
	number := strings.TrimSpace(string(ctx.QueryArgs().Peek("number")))
	to := "/"
	if number != "" {
		to = "/track/" + url.PathEscape(number)
	}
	ctx.Response.Header.Set("Location", to)
	ctx.SetStatusCode(fasthttp.StatusSeeOther)
}
