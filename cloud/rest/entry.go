package rest

import (
	"net/http"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/peer"
)

// entered is what every request passes first: whose it is, and whether it came
// the way that it should.
func (s *Server) entered(h fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		begun := time.Now()
		defer func() { s.observe(ctx, begun) }()
		s.room.shrink(&ctx.Request.Header, int64(len(ctx.Request.Body())))
		defer s.room.release(&ctx.Request.Header)
		s.warnOfProxy(ctx)
		s.cfg.Proxies.Resolve(ctx)
		if peer.Secure(ctx) {
			h(ctx)
			if s.cfg.Secure != "" {
				ctx.Response.Header.Set("Strict-Transport-Security", s.cfg.Secure)
			}
			return
		}
		switch {
		case s.cfg.Challenge != nil && s.cfg.Challenge(ctx):
		case s.cfg.RedirectTLS == "" || isProbe(string(ctx.Path())):
			h(ctx)
		default:
			named(opRedirect, s.guarded(s.toTLS))(ctx)
		}
	}
}

// warnOfProxy logs once that a proxy in front is not trusted, so that all of its callers
// count as one. Nothing of what the header says is logged.
func (s *Server) warnOfProxy(ctx *fasthttp.RequestCtx) {
	if s.warnedOfProxy.Load() || !s.cfg.Proxies.Overlooks(ctx) || s.warnedOfProxy.Swap(true) {
		return
	}
	s.log.Warn("a proxy says who calls and is not trusted: limits, allow-lists and audit lines take all of its callers for one; name it in proxies.trusted if it is yours", "proxy", ctx.RemoteIP().String())
}

// isProbe reports whether an address is for balancers, which ask nodes directly.
func isProbe(path string) bool {
	return path == "/healthz" || path == "/readyz"
}

// toTLS sends who reads to the encrypted address. Who writes is refused: what is
// secret in the request has crossed the network already, and a redirect would hide
// that.
func (s *Server) toTLS(ctx *fasthttp.RequestCtx) {
	if m := string(ctx.Method()); m != http.MethodGet && m != http.MethodHead || len(ctx.Request.Header.Peek("Authorization")) > 0 {
		s.refuse(ctx, cloud.E(cloud.Forbidden, "HTTPS_REQUIRED"))
		return
	}
	ctx.Response.Header.Set("Location", strings.TrimRight(s.cfg.RedirectTLS, "/")+string(ctx.URI().RequestURI()))
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.SetStatusCode(http.StatusPermanentRedirect)
}
