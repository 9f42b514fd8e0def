package rest

import (
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
)

// publicPaths begin the addresses at which everybody may look for a parcel, from
// pages of any origin: a shop's own tracking page. Nothing there looks at cookies.
var publicPaths = []string{"/api/v1/tracking/", "/api/v1/otep/trackings", "/api/v1/otep/validate"}

func isPublic(path string) bool {
	return slices.ContainsFunc(publicPaths, func(p string) bool { return strings.HasPrefix(path, p) })
}

const (
	publicHeaders = "Accept, Accept-Language, Content-Type, If-None-Match, X-Request-Id, X-Tracking-Key"
	tokenHeaders  = publicHeaders + ", Authorization, Idempotency-Key, Last-Event-ID"
	shownHeaders  = "ETag, Idempotent-Replayed, Link, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id, X-Unknown-Members"
	preflightLife = "600" // seconds
)

// admitOrigin lets the page of another origin read the answer, when it is one of
// those configured or asks what everybody may ask. Cookies never count: a page
// sends a token or nothing. headers are those that it may send; "" when it may
// not ask.
func (s *Server) admitOrigin(ctx *fasthttp.RequestCtx) (headers string) {
	origin := string(ctx.Request.Header.Peek("Origin"))
	h := &ctx.Response.Header
	switch {
	case origin == "":
		return ""
	case slices.Contains(s.cfg.Origins, strings.ToLower(origin)):
		h.Set("Access-Control-Allow-Origin", origin)
		headers = tokenHeaders
	case isPublic(string(ctx.Path())):
		h.Set("Access-Control-Allow-Origin", "*")
		headers = publicHeaders
	default:
		return ""
	}
	h.Set("Access-Control-Expose-Headers", shownHeaders)
	return headers
}

// shared is a route that pages of other origins may ask.
func (s *Server) shared(h fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		defer func() {
			if s.admitOrigin(ctx); len(s.cfg.Origins) > 0 {
				ctx.Response.Header.Add("Vary", "Origin")
			}
		}()
		h(ctx)
	}
}

// asked answers whether a page may ask an address with some methods.
func (s *Server) asked(methods []string) fasthttp.RequestHandler {
	return s.guarded(func(ctx *fasthttp.RequestCtx) {
		headers := ""
		if len(ctx.Request.Header.Peek("Access-Control-Request-Method")) > 0 {
			headers = s.admitOrigin(ctx)
		}
		if headers == "" {
			s.refuse(ctx, cloud.E(cloud.Malformed, "METHOD_NOT_ALLOWED"))
			return
		}
		h := &ctx.Response.Header
		h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
		h.Set("Access-Control-Allow-Headers", headers)
		h.Set("Access-Control-Max-Age", preflightLife)
		h.Add("Vary", "Origin")
		ctx.SetStatusCode(fasthttp.StatusNoContent)
	})
}
