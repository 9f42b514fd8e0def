package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/limit"
)

// Route is one address of the server that is no page.
type Route struct {
	Path   string
	Handle fasthttp.RequestHandler
}

// MaxBody bounds the body of a request to a Route, in bytes.
const MaxBody = 32 << 10

const answerTime = 10 * time.Second

// Routes are the addresses that programs call.
func (s *Service) Routes() []Route {
	out := []Route{
		{serverPath, open(fasthttp.MethodGet, s.about(func(base string) any { return s.describe(base) }))},
		{TokenPath, open(fasthttp.MethodPost, s.asked("token", s.cfg.Limits.Token, s.answerToken))},
		{RegisterPath, open(fasthttp.MethodPost, s.asked("register", s.cfg.Limits.Register, s.answerRegister))},
		{RevokePath, open(fasthttp.MethodPost, s.asked("token", s.cfg.Limits.Token, s.answerRevoke))},
	}
	for _, r := range resources {
		out = append(out, Route{resourcePath + r.path, open(fasthttp.MethodGet, s.about(func(base string) any { return describe(base, r) }))})
	}
	return out
}

// open lets pages of any site call an address, which looks at no cookies.
func open(method string, h fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		head := &ctx.Response.Header
		head.Set("Access-Control-Allow-Origin", "*")
		switch m := string(ctx.Method()); {
		case m == method || m == fasthttp.MethodHead && method == fasthttp.MethodGet:
			h(ctx)
		case m == fasthttp.MethodOptions:
			head.Set("Access-Control-Allow-Methods", method)
			head.Set("Access-Control-Allow-Headers", "Content-Type, Authorization, MCP-Protocol-Version")
			head.Set("Access-Control-Max-Age", "600")
			ctx.SetStatusCode(fasthttp.StatusNoContent)
		default:
			head.Set("Allow", method+", OPTIONS")
			writeAnswer(ctx, fasthttp.StatusMethodNotAllowed, fail(InvalidRequest, "Use "+method+"."))
		}
	}
}

// about answers with a description.
func (s *Service) about(what func(base string) any) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		write(ctx, fasthttp.StatusOK, what(s.Base(ctx)))
		ctx.Response.Header.Set("Cache-Control", "public, max-age=3600")
	}
}

// asked answers a program that asks for something, so often a minute.
func (s *Service) asked(bucket string, perMinute int, h func(context.Context, *fasthttp.RequestCtx) error) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if state := s.limits.Take(bucket+"/"+limit.Address(ctx.RemoteIP().String()), perMinute, time.Now()); !state.OK {
			tooOften(ctx, state)
			return
		}
		c, cancel := context.WithTimeout(context.Background(), answerTime)
		defer cancel()
		if err := h(c, ctx); err != nil {
			s.refuse(ctx, err)
		}
	}
}

func tooOften(ctx *fasthttp.RequestCtx, state limit.State) {
	ctx.Response.Header.Set("Retry-After", strconv.Itoa(state.RetryAfter))
	writeAnswer(ctx, fasthttp.StatusTooManyRequests, fail(TemporarilyUnavailable, "Too many requests. Try again after the time in Retry-After."))
}

// refuse answers with an error (RFC 6749 5.2). Internal errors are logged.
func (s *Service) refuse(ctx *fasthttp.RequestCtx, err error) {
	var e *Error
	if !errors.As(err, &e) {
		s.log.Error("authorization server failed", "path", string(ctx.Path()), "err", err)
		writeAnswer(ctx, fasthttp.StatusInternalServerError, fail(ServerError, "Something went wrong here. Try again later."))
		return
	}
	switch e.Code {
	case InvalidClient:
		if len(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization)) > 0 {
			ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, "Basic")
		}
		writeAnswer(ctx, fasthttp.StatusUnauthorized, e)
	case TemporarilyUnavailable:
		ctx.Response.Header.Set("Retry-After", "600")
		writeAnswer(ctx, fasthttp.StatusServiceUnavailable, e)
	default:
		writeAnswer(ctx, fasthttp.StatusBadRequest, e)
	}
}

func writeAnswer(ctx *fasthttp.RequestCtx, status int, e *Error) {
	write(ctx, status, struct {
		Error string `json:"error"`
		Text  string `json:"error_description"`
	}{e.Code, e.Text})
}

func write(ctx *fasthttp.RequestCtx, status int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // plain values of ours
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.SetBody(b.Bytes())
}

// posted is the form of a request. A client that brings a password has the
// wrong server: there are none here.
func posted(ctx *fasthttp.RequestCtx) (form, error) {
	if len(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization)) > 0 {
		return nil, fail(InvalidClient, "Clients have no secret here: send client_id in the body, without an Authorization header.")
	}
	if kind, _, err := mime.ParseMediaType(string(ctx.Request.Header.ContentType())); err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, fail(InvalidRequest, "The body must be application/x-www-form-urlencoded.")
	}
	return readForm(string(ctx.Request.Body()))
}

func (s *Service) answerToken(c context.Context, ctx *fasthttp.RequestCtx) error {
	f, err := posted(ctx)
	if err != nil {
		return err
	}
	t, err := s.token(c, f, s.Base(ctx), ctx.RemoteIP().String())
	if err == nil {
		write(ctx, fasthttp.StatusOK, t)
		ctx.Response.Header.Set("Pragma", "no-cache")
	}
	return err
}

func (s *Service) answerRevoke(c context.Context, ctx *fasthttp.RequestCtx) error {
	f, err := posted(ctx)
	if err != nil {
		return err
	}
	if err = s.revoke(c, f, ctx.RemoteIP().String()); err == nil {
		ctx.Response.Header.Set("Cache-Control", "no-store")
		ctx.SetStatusCode(fasthttp.StatusOK)
	}
	return err
}

// registered is the answer to a registration (RFC 7591 3.2.1).
type registered struct {
	ID            string   `json:"client_id"`
	IssuedAt      int64    `json:"client_id_issued_at"`
	Name          string   `json:"client_name,omitempty"`
	RedirectURIs  []string `json:"redirect_uris"`
	AuthMethod    string   `json:"token_endpoint_auth_method"`
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
}

func (s *Service) answerRegister(c context.Context, ctx *fasthttp.RequestCtx) error {
	if kind, _, err := mime.ParseMediaType(string(ctx.Request.Header.ContentType())); err != nil || kind != "application/json" {
		return fail(InvalidMetadata, "The body must be application/json.")
	}
	m, err := readMetadata(ctx.Request.Body())
	if err != nil {
		return err
	}
	x, err := s.register(c, m, ctx.RemoteIP().String())
	if err == nil {
		write(ctx, fasthttp.StatusCreated, registered{x.ID, x.CreatedAt.Unix(), x.Name, x.RedirectURIs, "none", grantTypes, []string{"code"}})
	}
	return err
}
