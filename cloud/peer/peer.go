// Package peer finds out who is at the other end of a connection: the address
// that limits, allow-lists and audit lines speak of, and whether the caller's own
// connection is encrypted.
//
// What a request says about that in headers counts only when the connection came
// from a trusted proxy, and only what trusted proxies added: the list of addresses
// is read from its end, and the first address that is no trusted proxy is the
// caller. One header is read and the other is not, because a proxy that sets one
// passes the other on as the caller wrote it. All methods are safe for concurrent
// use.
package peer

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/internal/loopback"
)

// Headers that proxies can be set to use.
const (
	XForwardedFor = "x-forwarded-for" // with X-Forwarded-Proto
	Forwarded     = "forwarded"       // RFC 7239
)

const maxHops = 32 // addresses that are read of a header

// Proxies are those whose word about their callers counts. The zero value trusts
// none.
type Proxies struct {
	networks  []netip.Prefix
	forwarded bool // the header is Forwarded
}

// New makes the set of proxies of some networks that say who calls by a header;
// "" is XForwardedFor.
func New(networks []netip.Prefix, header string) (Proxies, error) {
	p := Proxies{networks: slices.Clone(networks)}
	switch strings.ToLower(header) {
	case "", XForwardedFor:
	case Forwarded:
		p.forwarded = true
	default:
		return p, fmt.Errorf("header %q: use %s or %s", header, XForwardedFor, Forwarded)
	}
	return p, nil
}

// Trusts reports whether an address is that of a trusted proxy.
func (p Proxies) Trusts(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return slices.ContainsFunc(p.networks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// SpeakForMany reports whether an address may stand for many callers: a trusted
// proxy, a private network, or this machine.
func (p Proxies) SpeakForMany(a netip.Addr) bool {
	return a.IsLoopback() || a.IsPrivate() || p.Trusts(a)
}

// hop is one step on a request's way: who asked, and by which scheme.
type hop struct {
	from  netip.Addr
	https bool
}

// caller finds who calls behind a connection from conn. proxied is false when
// the connection is the caller's own.
func (p Proxies) caller(conn netip.Addr, header func(string) []string) (h hop, proxied bool) {
	h.from = conn
	if !p.Trusts(conn) {
		return h, false
	}
	hops, found := p.hops(header)
	if found { // the proxy may say how it was reached and not by whom
		h.https = hops[len(hops)-1].https
	}
	for i := len(hops) - 1; i >= 0 && i >= len(hops)-maxHops; i-- {
		if !hops[i].from.IsValid() {
			return h, found // what stands further left is not known to come from a proxy
		}
		if h = hops[i]; !p.Trusts(h.from) {
			break
		}
	}
	return h, found
}

// hops lists what the header says, oldest first. One that cannot be read has no
// address.
func (p Proxies) hops(header func(string) []string) (out []hop, found bool) {
	if p.forwarded {
		return forwardedHops(strings.Join(header("Forwarded"), ","))
	}
	protos := strings.Split(strings.Join(header("X-Forwarded-Proto"), ","), ",")
	https := strings.EqualFold(strings.TrimSpace(protos[len(protos)-1]), "https")
	lines := header("X-Forwarded-For")
	for _, item := range strings.Split(strings.Join(lines, ","), ",") {
		out = append(out, hop{parseNode(strings.TrimSpace(item)), https})
	}
	return out, len(lines) > 0 || len(header("X-Forwarded-Proto")) > 0
}

// forwardedHops reads a Forwarded header.
func forwardedHops(line string) (out []hop, found bool) {
	for _, element := range splitQuoted(line, ',') {
		var h hop
		for _, pair := range splitQuoted(element, ';') {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			value = strings.Trim(strings.TrimSpace(value), `"`)
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "for":
				h.from = parseNode(value)
			case "proto":
				h.https = strings.EqualFold(value, "https")
			}
		}
		out = append(out, h)
	}
	return out, line != ""
}

// splitQuoted splits at a separator outside of double quotes, which are matched
// from the end: a quote that a caller left open takes nothing in of what a proxy
// added after it.
func splitQuoted(s string, sep byte) []string {
	var out []string
	quoted, to := false, len(s)
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case s[i] == '"' && !escaped(s[:i]):
			quoted = !quoted
		case s[i] == sep && !quoted:
			out = append(out, s[i+1:to])
			to = i
		}
	}
	out = append(out, s[:to])
	slices.Reverse(out)
	return out
}

// escaped reports whether a backslash before a character makes it an ordinary one:
// a proxy may quote what its caller wrote.
func escaped(before string) bool {
	return (len(before)-len(strings.TrimRight(before, `\`)))%2 == 1
}

// parseNode reads an address that may have a port and brackets.
func parseNode(s string) netip.Addr {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a.Unmap().WithZone("")
	}
	if a, err := netip.ParseAddrPort(s); err == nil {
		return a.Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// wayKey is where a request keeps how it came.
type wayKey struct{}

// way is how a request came.
type way struct{ https, local bool }

// Resolve gives a request the address of its caller, as RemoteAddr and RemoteIP
// of ctx from then on, and remembers what Secure and Local say. It is called once,
// before anything looks at the request.
func (p Proxies) Resolve(ctx *fasthttp.RequestCtx) {
	ctx.SetRemoteAddr(nil) // a connection's requests may have several callers
	conn := addrOf(ctx.RemoteAddr())
	h, proxied := p.caller(conn, func(name string) []string {
		var out []string
		for _, v := range ctx.Request.Header.PeekAll(name) {
			out = append(out, string(v))
		}
		return out
	})
	w := way{https: ctx.IsTLS()}
	if proxied {
		w.https = h.https
	}
	if h.from != conn {
		ctx.SetRemoteAddr(&net.TCPAddr{IP: h.from.AsSlice()})
	}
	w.local = conn.IsLoopback() && !proxied && !claimsForwarding(ctx) && loopback.IsHost(string(ctx.Host()))
	ctx.SetUserValue(wayKey{}, w)
}

// Overlooks reports whether a request names a caller in a header that does not count,
// because its connection is from this computer or a private network and from no trusted
// proxy: most likely the proxy in front was not named. It is asked before Resolve.
func (p Proxies) Overlooks(ctx *fasthttp.RequestCtx) bool {
	if len(ctx.Request.Header.Peek("X-Forwarded-For")) == 0 && len(ctx.Request.Header.Peek("Forwarded")) == 0 {
		return false
	}
	conn := addrOf(ctx.RemoteAddr())
	return (conn.IsLoopback() || conn.IsPrivate()) && !p.Trusts(conn)
}

// Caller is the address of who sent a request of net/http: the one that limits,
// log and audit speak of. It has no port when a proxy told it.
func (p Proxies) Caller(r *http.Request) net.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return &net.TCPAddr{}
	}
	h, _ := p.caller(ap.Addr().Unmap(), r.Header.Values)
	if h.from != ap.Addr().Unmap() {
		return &net.TCPAddr{IP: h.from.AsSlice()}
	}
	return net.TCPAddrFromAddrPort(ap)
}

// claimsForwarding reports whether a request says that a proxy passed it on: then
// it is not known where it comes from unless that proxy is trusted.
func claimsForwarding(ctx *fasthttp.RequestCtx) bool {
	return ClaimsForwarding(func(name string) bool { return len(ctx.Request.Header.Peek(name)) > 0 })
}

// ClaimsForwarding reports whether a request, of which has says whether it has a header,
// says that a proxy passed it on.
func ClaimsForwarding(has func(name string) bool) bool {
	return slices.ContainsFunc([]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Real-Ip", "Via"}, has)
}

// Secure reports whether the caller's own connection is encrypted: ours, or the
// one to a trusted proxy.
func Secure(ctx *fasthttp.RequestCtx) bool {
	w, ok := ctx.UserValue(wayKey{}).(way)
	return ok && w.https || !ok && ctx.IsTLS()
}

// Scheme is that of the caller's own connection, https or http, as Secure says.
func Scheme(ctx *fasthttp.RequestCtx) string {
	if Secure(ctx) {
		return "https"
	}
	return "http"
}

// Asked is our own address as the request names it, by the caller's own scheme and
// the Host header, without a slash at the end. The caller chooses the host: it is
// good for links back to the caller and for nothing that others are given.
func Asked(ctx *fasthttp.RequestCtx) string { return Scheme(ctx) + "://" + string(ctx.Host()) }

// Public is our own address in what others than the caller get: the configured one,
// else a name of the loopback that the request names, else the local address of the
// connection, so that no header chooses the host. It has no slash at the end.
func Public(ctx *fasthttp.RequestCtx, configured string) string {
	if configured != "" {
		return strings.TrimRight(configured, "/")
	}
	host := string(ctx.Host())
	if !loopback.IsHost(host) {
		host = ctx.LocalAddr().String()
	}
	return Scheme(ctx) + "://" + strings.ToLower(host)
}

// accountKey is where a request keeps whose it is.
type accountKey struct{}

// SetAccount notes the account that a request is of, once a face has found it; 0 changes
// nothing.
func SetAccount(ctx *fasthttp.RequestCtx, id int64) {
	if id != 0 {
		ctx.SetUserValue(accountKey{}, id)
	}
}

// Account is the account that SetAccount noted; 0: none is known.
func Account(ctx *fasthttp.RequestCtx) int64 {
	id, _ := ctx.UserValue(accountKey{}).(int64)
	return id
}

// Local reports whether a request was made on this machine: over the loopback, to
// a name of the loopback, through no proxy that shows itself.
func Local(ctx *fasthttp.RequestCtx) bool {
	w, _ := ctx.UserValue(wayKey{}).(way)
	return w.local
}

// addrOf is the IP address of a network address, invalid when it has none.
func addrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		ip, _ := netip.AddrFromSlice(tcp.IP)
		return ip.Unmap()
	}
	if a != nil {
		if ap, err := netip.ParseAddrPort(a.String()); err == nil {
			return ap.Addr().Unmap()
		}
	}
	return netip.Addr{}
}
