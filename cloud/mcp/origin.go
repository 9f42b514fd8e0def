package mcp

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/internal/loopback"
)

// BaseURL is our own address as the caller of ctx reaches it, without a slash
// at the end: that of public whose host the request names, else the first of
// them, else peer.Public. No header chooses the host.
func BaseURL(ctx *fasthttp.RequestCtx, public []string) string {
	host := string(ctx.Host())
	for _, p := range public {
		if _, rest, ok := strings.Cut(p, "://"); ok {
			if own, _, _ := strings.Cut(rest, "/"); strings.EqualFold(own, host) {
				return strings.TrimRight(p, "/")
			}
		}
	}
	if len(public) > 0 {
		return strings.TrimRight(public[0], "/")
	}
	return peer.Public(ctx, "")
}

// origins are those that may call, in lower case.
func origins(public, further []string) (map[string]bool, error) {
	all := map[string]bool{}
	for _, list := range [][]string{public, further} {
		for _, p := range list {
			o, ok := originOf(p)
			if !ok {
				return nil, fmt.Errorf("address %q is not http or https with a host", p)
			}
			all[o] = true
		}
	}
	return all, nil
}

// originOf is scheme and host of an address, in lower case, without the port
// that the scheme has anyway.
func originOf(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", false
	}
	host := strings.ToLower(u.Host)
	if u.Scheme == "http" {
		host = strings.TrimSuffix(host, ":80")
	} else {
		host = strings.TrimSuffix(host, ":443")
	}
	return u.Scheme + "://" + host, true
}

// allowed reports whether a page of this origin may call.
func (s *Server) allowed(ctx *fasthttp.RequestCtx, origin string) bool {
	o, ok := originOf(origin)
	if !ok || strings.Count(origin, "/") != 2 {
		return false
	}
	if s.origins[o] {
		return true
	}
	if len(s.cfg.Public) == 0 {
		if own, _ := originOf(BaseURL(ctx, nil)); own == o {
			return true
		}
	}
	_, host, _ := strings.Cut(o, "://")
	return onLoopback(ctx) && loopback.IsHost(host)
}

// hostAllowed keeps pages from reaching a server on this machine by a name of
// their own that resolves to it.
func (s *Server) hostAllowed(ctx *fasthttp.RequestCtx) bool {
	host := string(ctx.Host())
	if !onLoopback(ctx) || loopback.IsHost(host) {
		return true
	}
	for _, p := range s.cfg.Public {
		if u, err := url.Parse(p); err == nil && strings.EqualFold(u.Host, host) {
			return true
		}
	}
	return false
}

// onLoopback reports whether the connection came to a loopback address.
func onLoopback(ctx *fasthttp.RequestCtx) bool {
	a, ok := ctx.LocalAddr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}
