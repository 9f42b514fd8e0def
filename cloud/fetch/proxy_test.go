package fetch

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/fetch/fetchtest"
)

// proxied puts a proxy before the network in memory.
func proxied(t *testing.T, n *fetchtest.Network, cfg ProxyConfig) (*fetchtest.Proxy, *Proxy) {
	there, dial := fetchtest.ProxyBefore(t, n, cfg.Login)
	if cfg.Dial == nil {
		cfg.Dial = dial
	}
	cfg.URL = "http://proxy.internal:3128"
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	p, err := NewProxy(cfg)
	require.NoError(t, err)
	return there, p
}

// Over TCP and TLS, as it is out there: the way is opened by name, the receiver's
// certificate is looked at as without a proxy, and the connection is kept.
func TestProxyOpensAWay(t *testing.T) {
	t.Parallel()
	for name, z := range map[string]struct {
		certified, url, code string
		outer                bool // the proxy has TLS itself
	}{
		"good":             {"a.example.com", "https://a.example.com/", "", false},
		"TLS to the proxy": {"a.example.com", "https://a.example.com:8443/", "", true},
		"another name":     {"c.example.com", "https://a.example.com/", CodeTLS, false},
		"not known here":   {"far.example.com", "https://far.example.com/", "", false},
		"plain http":       {"", "http://a.example.com:8080/", "", false},
		"an address":       {"", "http://93.184.216.34/", "", false},
		"an address of 6":  {"", "http://[2606:4700:4700::1111]/", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cert, pool := fetchtest.Certificate(t, z.certified, time.Now().Add(time.Hour))
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			var sni string
			r := &fetchtest.Receiver{}
			srv := &http.Server{Handler: r, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
			go func() {
				if z.certified == "" {
					_ = srv.Serve(l)
				} else {
					_ = srv.Serve(tls.NewListener(l, &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { sni = h.ServerName; return &cert, nil }}))
				}
			}()
			defer srv.Close()
			there := &fetchtest.Proxy{Login: fetchtest.Login, Dial: func(string) (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }}
			cfg := ProxyConfig{URL: "http://" + there.Listen(t), Login: fetchtest.Login}
			if z.outer {
				outer, roots := fetchtest.Certificate(t, "proxy.example.com", time.Now().Add(time.Hour))
				front, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{outer}})
				require.NoError(t, err)
				defer front.Close()
				go func() {
					for c, err := front.Accept(); err == nil; c, err = front.Accept() {
						go there.Handle(c)
					}
				}()
				cfg.URL, cfg.TLS = "https://proxy.example.com:3128", &tls.Config{RootCAs: roots}
				cfg.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
					require.Equal(t, "proxy.example.com:3128", addr)
					var d net.Dialer
					return d.DialContext(ctx, "tcp", front.Addr().String())
				}
			}
			n := fetchtest.NewNetwork() // which does not know far.example.com
			c, target := testClient(t, n, &tls.Config{RootCAs: pool}, z.url)
			c.proxy, err = NewProxy(cfg)
			require.NoError(t, err)
			a := c.Post(t.Context(), target, []byte(emptyPost), nil)
			require.Equal(t, z.code, a.Code, a.Reason)
			fetchtest.RequireNoLogin(t, a.Reason+a.Head+a.Body)
			require.Equal(t, []string{net.JoinHostPort(target.Host, fmt.Sprint(target.Port))}, there.Asked())
			require.Empty(t, n.Dials, "no direct connection")
			require.Empty(t, a.Remote, "it would be the proxy's")
			if z.certified != "" {
				require.Equal(t, target.Host, sni)
			}
			if z.code == "" {
				for range 3 {
					a = c.Post(t.Context(), target, []byte(emptyPost), nil)
					require.Equal(t, "", a.Code, a.Reason)
					require.True(t, a.Reused)
				}
				require.Len(t, there.Asked(), 1, "the connection is kept")
				require.Len(t, r.Seen(), 4)
				for _, p := range r.Seen() {
					require.Empty(t, p.Head.Get("Proxy-Authorization"), "the login is for the proxy alone")
				}
			}
			c.Sweep(true)
		})
	}
}

// What is forbidden by its address, here or by what its name is known to be here,
// is never asked for; nor is what is forbidden by its name or port.
func TestProxyIsNotAskedForWhatIsForbidden(t *testing.T) {
	t.Parallel()
	n := fetchtest.NewNetwork()
	n.Names["inside.example.com"] = fetchtest.Addrs("10.0.0.1")
	n.Names["mixed.example.com"] = fetchtest.Addrs("93.184.216.34", "169.254.169.254")
	there, p := proxied(t, n, ProxyConfig{})
	f := NewFetcher(Config{Guard: NewGuard(GuardConfig{Hosts: []string{"own.example"}}), Proxy: p, Resolver: n, Dial: n.Dial})
	for _, url := range []string{"https://10.0.0.1/", "https://127.0.0.1/", "https://169.254.169.254/", "https://[::1]/", "https://[fd00::1]/", "https://2130706433/",
		"https://inside.example.com/", "https://mixed.example.com/", "https://proxy.internal/", "https://api.own.example/", "https://a.example.com:22/", "http://a.example.com/"} {
		_, err := f.Fetch(t.Context(), url)
		require.ErrorIs(t, err, ErrBlocked, url)
	}
	require.Empty(t, there.Asked())
	require.Empty(t, n.Dials)
}

// A resolver that does not answer costs a second, once a minute.
func TestProxyResolvesNamesThatThisHostCannot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, r := fetchtest.NewNetwork(), &fetchtest.Receiver{}
		n.Serve[netip.AddrPortFrom(fetchtest.AddrA.Addr(), 80)] = r.Handle
		there, p := proxied(t, n, ProxyConfig{})
		there.Dial = func(string) (net.Conn, error) {
			here, c := net.Pipe()
			n.Handlers.Go(func() { defer c.Close(); r.Handle(c) })
			return here, nil
		}
		c, target := testClient(t, n, nil, "http://far.example.com/")
		c.proxy, c.names.resolver = p, silence{}
		for i, want := range []time.Duration{proxyResolve, 0, proxyResolve} {
			start := time.Now()
			a := c.Post(t.Context(), target, []byte(emptyPost), nil)
			require.Equal(t, "", a.Code, a.Reason)
			require.Equal(t, want, time.Since(start))
			c.Sweep(true)
			if i == 1 {
				time.Sleep(NameLife)
			}
		}
		require.Equal(t, []string{"far.example.com:80", "far.example.com:80", "far.example.com:80"}, there.Asked())
		n.Handlers.Wait()
	})
}

// silence is a resolver that says nothing.
type silence struct{}

// A kept way that the receiver closed is no failure: the request goes once more,
// over a new way.
func TestProxyRepeatsOverANewWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := fetchtest.NewNetwork()
		n.Serve[netip.AddrPortFrom(fetchtest.AddrA.Addr(), 80)] = func(c net.Conn) {
			if fetchtest.ReadPost(c) {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				time.Sleep(time.Second) // and closes
			}
		}
		there, p := proxied(t, n, ProxyConfig{})
		c, target := testClient(t, n, nil, "http://a.example.com/")
		c.proxy = p
		require.Equal(t, "", c.Post(t.Context(), target, []byte(emptyPost), nil).Code)
		time.Sleep(2 * time.Second)
		a := c.Post(t.Context(), target, []byte(emptyPost), nil)
		require.Equal(t, "", a.Code, a.Reason)
		require.True(t, a.Repeated)
		require.Len(t, there.Asked(), 2)
		time.Sleep(2 * time.Second)
		there.Instead(fetchtest.Say("HTTP/1.1 502 Bad Gateway\r\n\r\n"))
		require.Equal(t, CodeProxy, c.Post(t.Context(), target, []byte(emptyPost), nil).Code, "no way is no attempt, kept before or not")
		require.Empty(t, n.Dials)
		c.Sweep(true)
		n.Handlers.Wait()
	})
}

// Documents and pushes go by the proxy, too.
func TestFetchByTheProxy(t *testing.T) {
	t.Parallel()
	n := fetchtest.NewNetwork()
	cert, pool := fetchtest.Certificate(t, "a.example.com", time.Now().Add(time.Hour))
	n.Serve[fetchtest.AddrA] = func(c net.Conn) {
		tc := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		if _, err := http.ReadRequest(bufio.NewReader(tc)); err == nil {
			_, _ = io.WriteString(tc, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
	}
	there, p := proxied(t, n, ProxyConfig{Login: fetchtest.Login})
	f := NewFetcher(Config{Guard: NewGuard(GuardConfig{}), Proxy: p, TLS: &tls.Config{RootCAs: pool}, Resolver: n, Dial: n.Dial})
	d, err := f.Fetch(t.Context(), "https://a.example.com/")
	require.NoError(t, err)
	require.Equal(t, "{}", string(d.Body))
	there.Instead(fetchtest.Say("HTTP/1.1 502 " + fetchtest.Login + "\r\n\r\n"))
	_, err = f.Fetch(t.Context(), "https://a.example.com/")
	require.ErrorContains(t, err, CodeProxy)
	fetchtest.RequireNoLogin(t, err.Error())
	require.Equal(t, []string{"a.example.com:443", "a.example.com:443"}, there.Asked())
	require.Empty(t, n.Dials)
	n.Handlers.Wait()
}

// Who leaves while the proxy is asked says nothing about it.
func TestLeavingIsNoFaultOfTheProxy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := fetchtest.NewNetwork()
		var log fetchtest.Log
		there, p := proxied(t, n, ProxyConfig{Logger: log.Logger()})
		there.Instead(func(string, net.Conn) bool { time.Sleep(time.Minute); return true })
		c, target := testClient(t, n, nil, "http://a.example.com/")
		c.proxy = p
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		a := c.Post(ctx, target, []byte(emptyPost), nil)
		require.Equal(t, CodeConnect, a.Code)
		require.Empty(t, p.troubled)
		require.Empty(t, log.String())
		n.Handlers.Wait()
	})
}
func TestProxyAddresses(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"", "proxy:3128", "http://proxy", "socks5://proxy:1080", "http://proxy:3128/path", "http://proxy:3128?x", "http://postern:hunter2@proxy:3128",
		"http://postern:hunter2@proxy:x", "http://hunter2:3128:1", "http://hunter2\x7f:3128"} {
		_, err := NewProxy(ProxyConfig{URL: u})
		require.Error(t, err, u)
		require.NotContains(t, err.Error(), "hunter2")
	}
	for _, x := range []string{"hunter2", ":hunter2", "a:hunter2\nb", "a\r:hunter2"} {
		_, err := NewProxy(ProxyConfig{URL: "http://proxy:3128", Login: x})
		require.ErrorContains(t, err, "user:password", x)
		require.NotContains(t, err.Error(), "hunter2")
	}
	p, err := NewProxy(ProxyConfig{URL: "https://[2606:4700::1]:3128/", Login: fetchtest.Login})
	require.NoError(t, err)
	require.Equal(t, "[2606:4700::1]:3128", p.addr)
	text := fmt.Sprintf("%v %+v %#v %s", p, p, p, p)
	var log fetchtest.Log
	log.Logger().Info("x", "proxy", p)
	fetchtest.RequireNoLogin(t, text+log.String())
	require.NotContains(t, text+log.String(), "cG9zdGVybj")
}

func (silence) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
