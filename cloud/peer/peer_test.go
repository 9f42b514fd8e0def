package peer

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"github.com/pires/go-proxyproto"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
	"pgregory.net/rapid"
)

func proxies(t testing.TB, header string, networks ...string) Proxies {
	t.Helper()
	var list []netip.Prefix
	for _, n := range networks {
		list = append(list, netip.MustParsePrefix(n))
	}
	p, err := New(list, header)
	require.NoError(t, err)
	return p
}

// Who calls is the first address from the end that is no trusted proxy; what a
// caller wrote itself stands further left and counts for nothing.
func TestWhoCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header, conn string
		in           map[string][]string
		want         string
		https        bool
		proxied      bool
	}{
		"no proxy":                       {"", "203.0.113.5", nil, "203.0.113.5", false, false},
		"a forged header from outside":   {"", "203.0.113.5", map[string][]string{"X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Proto": {"https"}}, "203.0.113.5", false, false},
		"one proxy":                      {"", "10.0.0.1", map[string][]string{"X-Forwarded-For": {"203.0.113.5"}, "X-Forwarded-Proto": {"https"}}, "203.0.113.5", true, true},
		"a forged entry before it":       {"", "10.0.0.1", map[string][]string{"X-Forwarded-For": {"10.0.0.9, 192.0.2.1, 203.0.113.5"}}, "203.0.113.5", false, true},
		"a forged line before it":        {"", "10.0.0.1", map[string][]string{"X-Forwarded-For": {"192.0.2.1", "203.0.113.5"}}, "203.0.113.5", false, true},
		"two proxies":                    {"", "10.0.0.1", map[string][]string{"X-Forwarded-For": {"203.0.113.5, 10.0.0.2"}}, "203.0.113.5", false, true},
		"only proxies":                   {"", "10.0.0.1", map[string][]string{"X-Forwarded-For": {"10.0.0.3, 10.0.0.2"}}, "10.0.0.3", false, true},
		"an entry that is no address":    {"", "10.0.0.1", map[string][]string{"X-Forwarded-For": {"192.0.2.1, evil, 10.0.0.2"}}, "10.0.0.2", false, true},
		"nothing that can be read":       {"", "10.0.0.1", map[string][]string{"X-Forwarded-For": {"evil"}}, "10.0.0.1", false, true},
		"ports and brackets":             {"", "10.0.0.1", map[string][]string{"X-Forwarded-For": {"[2001:db8::7]:4711"}}, "2001:db8::7", false, true},
		"a mapped address":               {"", "10.0.0.1", map[string][]string{"X-Forwarded-For": {"::ffff:203.0.113.5"}}, "203.0.113.5", false, true},
		"the other header":               {"", "10.0.0.1", map[string][]string{"Forwarded": {"for=127.0.0.1;proto=https"}}, "10.0.0.1", false, false},
		"Forwarded":                      {Forwarded, "10.0.0.1", map[string][]string{"Forwarded": {`for=192.0.2.1;proto=http, for="[2001:db8::7]:4711";proto=https;by=10.0.0.1`}}, "2001:db8::7", true, true},
		"a comma within quotes":          {Forwarded, "10.0.0.1", map[string][]string{"Forwarded": {`for=203.0.113.5;host="a,for=192.0.2.9"`}}, "203.0.113.5", false, true},
		"an open quote before it":        {Forwarded, "10.0.0.1", map[string][]string{"Forwarded": {`for=198.51.100.7;x=", for=203.0.113.5`}}, "203.0.113.5", false, true},
		"an open quote in another line":  {Forwarded, "10.0.0.1", map[string][]string{"Forwarded": {`for=198.51.100.7;x="`, `for=203.0.113.5`}}, "203.0.113.5", false, true},
		"escaped quotes in a value":      {Forwarded, "10.0.0.1", map[string][]string{"Forwarded": {`for=203.0.113.5;host="\",for=198.51.100.7;x=\""`}}, "203.0.113.5", false, true},
		"an obfuscated node":             {Forwarded, "10.0.0.1", map[string][]string{"Forwarded": {`for=203.0.113.5, for=_hidden`}}, "10.0.0.1", false, true},
		"the other header the other way": {Forwarded, "10.0.0.1", map[string][]string{"X-Forwarded-For": {"127.0.0.1"}}, "10.0.0.1", false, false},
		"protocols of two proxies":       {"", "10.0.0.1", map[string][]string{"X-Forwarded-For": {"203.0.113.5"}, "X-Forwarded-Proto": {"https, http"}}, "203.0.113.5", false, true},
	} {
		p := proxies(t, c.header, "10.0.0.0/8", "2001:db8:ffff::/48")
		h, proxied := p.caller(netip.MustParseAddr(c.conn), func(n string) []string { return c.in[n] })
		require.Equal(t, c.want, h.from.String(), name)
		asked := &http.Request{RemoteAddr: net.JoinHostPort(c.conn, "4711"), Header: http.Header(c.in)}
		require.Equal(t, c.want, addrOf(p.Caller(asked)).String(), name)
		require.Equal(t, []bool{c.https, c.proxied}, []bool{h.https, proxied}, name)
	}
	_, err := New(nil, "x-real-ip")
	require.ErrorContains(t, err, "x-forwarded-for or forwarded")
}

// Whatever stands in a header, the caller is an address, and never one that stands
// left of the first that is no proxy.
func TestNoHeaderChoosesTheCaller(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		header := rapid.SampledFrom([]string{"", Forwarded}).Draw(rt, "header")
		p := proxies(t, header, "10.0.0.0/8")
		real := netip.MustParseAddr("203.0.113.5")
		forged := rapid.StringMatching(`[ -~]{0,60}`).Draw(rt, "forged")
		in := map[string][]string{"X-Forwarded-For": {forged + ", " + real.String()}}
		if header == Forwarded {
			in = map[string][]string{"Forwarded": {forged + ", for=" + real.String()}}
			if rapid.Bool().Draw(rt, "lines") {
				in = map[string][]string{"Forwarded": {forged, "for=" + real.String()}}
			}
		}
		h, _ := p.caller(netip.MustParseAddr("10.0.0.1"), func(n string) []string { return in[n] })
		if h.from != real {
			rt.Fatalf("%q made %s the caller", forged, h.from)
		}
	})
}

// The PROXY protocol counts from trusted proxies; from others it is no request.
func TestTheProxyProtocol(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trusted string
		header  *proxyproto.Header
		want    string // address that was seen; "" when the request is unreadable
	}{
		"version 1":    {"127.0.0.0/8", proxyproto.HeaderProxyFromAddrs(1, &net.TCPAddr{IP: net.IPv4(203, 0, 113, 5), Port: 1}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2}), "203.0.113.5"},
		"version 2":    {"127.0.0.0/8", proxyproto.HeaderProxyFromAddrs(2, &net.TCPAddr{IP: net.IPv4(203, 0, 113, 5), Port: 1}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2}), "203.0.113.5"},
		"none":         {"127.0.0.0/8", nil, "127.0.0.1"},
		"from outside": {"10.0.0.0/8", proxyproto.HeaderProxyFromAddrs(1, &net.TCPAddr{IP: net.IPv4(203, 0, 113, 5), Port: 1}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := proxies(t, "", c.trusted)
			ln, err := net.Listen("tcp4", "127.0.0.1:0")
			require.NoError(t, err)
			s := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
				p.Resolve(ctx)
				_, _ = fmt.Fprint(ctx, ctx.RemoteIP())
			}}
			done := make(chan error, 1)
			go func() { done <- s.Serve(p.Listener(ln)) }()
			t.Cleanup(func() { require.NoError(t, s.Shutdown()); require.NoError(t, <-done) })
			conn, err := net.Dial("tcp4", ln.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			if c.header != nil {
				_, err = c.header.WriteTo(conn)
				require.NoError(t, err)
			}
			_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			require.NoError(t, err)
			var resp fasthttp.Response
			require.NoError(t, resp.Read(bufio.NewReader(conn)))
			if c.want == "" {
				require.Equal(t, 400, resp.StatusCode())
				return
			}
			require.Equal(t, c.want, string(resp.Body()))
		})
	}
}

// What is this machine's own request, and what is encrypted on its way.
func TestLocalAndSecure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conn, host    string
		head          [2]string
		local, secure bool
		ip            string
	}{
		"this machine":              {"127.0.0.1", "localhost:8080", [2]string{}, true, false, "127.0.0.1"},
		"by its IPv6 loopback":      {"::1", "[::1]:8080", [2]string{}, true, false, "::1"},
		"another host":              {"203.0.113.5", "localhost:8080", [2]string{}, false, false, "203.0.113.5"},
		"a name that resolves here": {"127.0.0.1", "tms.example", [2]string{}, false, false, "127.0.0.1"},
		"an unknown local proxy":    {"127.0.0.1", "localhost", [2]string{"X-Real-Ip", "203.0.113.5"}, false, false, "127.0.0.1"},
		"a trusted proxy":           {"10.0.0.1", "tms.example", [2]string{"X-Forwarded-Proto", "https"}, false, true, "10.0.0.1"},
		"forged from outside":       {"203.0.113.5", "tms.example", [2]string{"X-Forwarded-Proto", "https"}, false, false, "203.0.113.5"},
		"a neighbour":               {"192.168.1.7", "tms.example", [2]string{}, false, false, "192.168.1.7"},
		"a stranger behind a proxy": {"10.0.0.1", "localhost", [2]string{"X-Forwarded-For", "203.0.113.5"}, false, false, "203.0.113.5"},
		"a caller behind a proxy":   {"10.0.0.1", "localhost", [2]string{"X-Forwarded-For", "127.0.0.1"}, false, false, "127.0.0.1"},
	} {
		p := proxies(t, "", "10.0.0.0/8")
		var req fasthttp.Request
		req.Header.SetHost(c.host)
		if c.head[0] != "" {
			req.Header.Set(c.head[0], c.head[1])
		}
		var ctx fasthttp.RequestCtx
		ctx.Init(&req, &net.TCPAddr{IP: net.ParseIP(c.conn), Port: 4711}, nil)
		p.Resolve(&ctx)
		require.Equal(t, []any{c.local, c.secure, c.ip}, []any{Local(&ctx), Secure(&ctx), ctx.RemoteIP().String()}, name)
	}
}

// A proxy in front that was not named is noticed, and a stranger's header is not.
func TestAProxyThatIsNotTrustedIsNoticed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conn, header string
		want         bool
	}{
		"this computer":     {"127.0.0.1", "X-Forwarded-For", true},
		"by IPv6":           {"::1", "Forwarded", true},
		"a private network": {"192.168.1.7", "X-Forwarded-For", true},
		"mapped":            {"::ffff:192.168.1.7", "Forwarded", true},
		"a trusted proxy":   {"10.0.0.1", "X-Forwarded-For", false},
		"a stranger":        {"203.0.113.5", "X-Forwarded-For", false},
		"another header":    {"127.0.0.1", "Via", false},
	} {
		var req fasthttp.Request
		req.Header.Set(c.header, "203.0.113.9")
		var ctx fasthttp.RequestCtx
		ctx.Init(&req, &net.TCPAddr{IP: net.ParseIP(c.conn), Port: 4711}, nil)
		require.Equal(t, c.want, proxies(t, "", "10.0.0.0/8").Overlooks(&ctx), name)
	}
}
