package webhook

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/webhook/webhooktest"
)

const login = "postern:hunter2-ünd:more"

// proxied puts a proxy before the network in memory. What the proxy is asked for
// it finds at the addresses of names; the network's own dial is then for direct
// connections, which there must be none of.
func proxied(t *testing.T, n *testNet, cfg ProxyConfig) (*webhooktest.Proxy, *Proxy) {
	there := &webhooktest.Proxy{Login: cfg.Login, Dial: func(to string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(to)
		if err != nil {
			return nil, err
		}
		addrs, err := n.LookupNetIP(t.Context(), "ip", host)
		if err != nil {
			return nil, err
		}
		n.mu.Lock()
		serve := n.serve[netip.MustParseAddrPort(net.JoinHostPort(addrs[0].String(), port))]
		n.mu.Unlock()
		if serve == nil {
			return nil, errors.New("connection refused")
		}
		here, there := net.Pipe()
		n.wg.Go(func() { defer there.Close(); serve(there) })
		return here, nil
	}}
	if cfg.Dial == nil {
		cfg.Dial = func(_ context.Context, addr string) (net.Conn, error) {
			require.Equal(t, "proxy.internal:3128", addr)
			here, c := net.Pipe()
			n.wg.Go(func() { there.Handle(c) })
			return here, nil
		}
	}
	cfg.URL = "http://proxy.internal:3128"
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	p, err := NewProxy(cfg)
	require.NoError(t, err)
	return there, p
}

// logged is a log that tests read.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// hidden requires that a text shows nothing of the login.
func hidden(t *testing.T, text string) {
	t.Helper()
	require.NotContains(t, text, "hunter2")
	require.NotContains(t, text, base64.StdEncoding.EncodeToString([]byte(login)))
	require.NotContains(t, text, "Proxy-Authorization")
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
			cert, pool := certificate(t, z.certified, time.Now().Add(time.Hour))
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			var sni string
			r := &receiver{}
			srv := &http.Server{Handler: r, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
			go func() {
				if z.certified == "" {
					_ = srv.Serve(l)
				} else {
					_ = srv.Serve(tls.NewListener(l, &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { sni = h.ServerName; return &cert, nil }}))
				}
			}()
			defer srv.Close()
			there := &webhooktest.Proxy{Login: login, Dial: func(string) (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }}
			cfg := ProxyConfig{URL: "http://" + there.Listen(t), Login: login}
			if z.outer {
				outer, roots := certificate(t, "proxy.example.com", time.Now().Add(time.Hour))
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
			n := newNet() // which does not know far.example.com
			c, target := testClient(t, n, &tls.Config{RootCAs: pool}, z.url)
			c.proxy, err = NewProxy(cfg)
			require.NoError(t, err)
			a := c.post(t.Context(), target, []byte(emptyPost), nil)
			require.Equal(t, z.code, a.code, a.err)
			hidden(t, a.err+a.head+a.body)
			require.Equal(t, []string{net.JoinHostPort(target.Host, fmt.Sprint(target.Port))}, there.Asked())
			require.Empty(t, n.dials, "no direct connection")
			require.Empty(t, a.remote, "it would be the proxy's")
			if z.certified != "" {
				require.Equal(t, target.Host, sni)
			}
			if z.code == "" {
				for range 3 {
					a = c.post(t.Context(), target, []byte(emptyPost), nil)
					require.Equal(t, "", a.code, a.err)
					require.True(t, a.reused)
				}
				require.Len(t, there.Asked(), 1, "the connection is kept")
				require.Len(t, r.seen(), 4)
				for _, p := range r.seen() {
					require.Empty(t, p.head.Get("Proxy-Authorization"), "the login is for the proxy alone")
				}
			}
			c.sweep(true)
		})
	}
}

// What is forbidden by its address, here or by what its name is known to be here,
// is never asked for; nor is what is forbidden by its name or port.
func TestProxyIsNotAskedForWhatIsForbidden(t *testing.T) {
	t.Parallel()
	n := newNet()
	n.names["inside.example.com"] = prefixAddrs("10.0.0.1")
	n.names["mixed.example.com"] = prefixAddrs("93.184.216.34", "169.254.169.254")
	there, p := proxied(t, n, ProxyConfig{})
	f := NewFetcher(FetcherConfig{Guard: NewGuard(GuardConfig{Hosts: []string{"own.example"}}), Proxy: p, Resolver: n, Dial: n.dial})
	for _, url := range []string{"https://10.0.0.1/", "https://127.0.0.1/", "https://169.254.169.254/", "https://[::1]/", "https://[fd00::1]/", "https://2130706433/",
		"https://inside.example.com/", "https://mixed.example.com/", "https://proxy.internal/", "https://api.own.example/", "https://a.example.com:22/", "http://a.example.com/"} {
		_, err := f.Fetch(t.Context(), url)
		require.ErrorIs(t, err, ErrBlocked, url)
	}
	require.Empty(t, there.Asked())
	require.Empty(t, n.dials)
}

// A resolver that does not answer costs a second, once a minute.
func TestProxyKnowsNamesThatNobodyHereKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, r := newNet(), &receiver{}
		n.serve[netip.AddrPortFrom(addrA.Addr(), 80)] = r.handle
		there, p := proxied(t, n, ProxyConfig{})
		there.Dial = func(string) (net.Conn, error) {
			here, c := net.Pipe()
			n.wg.Go(func() { defer c.Close(); r.handle(c) })
			return here, nil
		}
		c, target := testClient(t, n, nil, "http://far.example.com/")
		c.proxy, c.names.resolver = p, silence{}
		for i, want := range []time.Duration{proxyResolve, 0, proxyResolve} {
			start := time.Now()
			a := c.post(t.Context(), target, []byte(emptyPost), nil)
			require.Equal(t, "", a.code, a.err)
			require.Equal(t, want, time.Since(start))
			c.sweep(true)
			if i == 1 {
				time.Sleep(nameLife)
			}
		}
		require.Equal(t, []string{"far.example.com:80", "far.example.com:80", "far.example.com:80"}, there.Asked())
		n.wg.Wait()
	})
}

// silence is a resolver that says nothing.
type silence struct{}

func (silence) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A kept way that the receiver closed is no failure: the request goes once more,
// over a new way.
func TestProxyRepeatsOverANewWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNet()
		n.serve[netip.AddrPortFrom(addrA.Addr(), 80)] = func(c net.Conn) {
			if readPost(c) {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				time.Sleep(time.Second) // and closes
			}
		}
		there, p := proxied(t, n, ProxyConfig{})
		c, target := testClient(t, n, nil, "http://a.example.com/")
		c.proxy = p
		require.Equal(t, "", c.post(t.Context(), target, []byte(emptyPost), nil).code)
		time.Sleep(2 * time.Second)
		a := c.post(t.Context(), target, []byte(emptyPost), nil)
		require.Equal(t, "", a.code, a.err)
		require.True(t, a.repeated)
		require.Len(t, there.Asked(), 2)
		time.Sleep(2 * time.Second)
		there.Instead(webhooktest.Say("HTTP/1.1 502 Bad Gateway\r\n\r\n"))
		require.Equal(t, CodeProxy, c.post(t.Context(), target, []byte(emptyPost), nil).code, "no way is no attempt, kept before or not")
		require.Empty(t, n.dials)
		c.sweep(true)
		n.wg.Wait()
	})
}

// proxyFaults are the ways in which a proxy fails.
var proxyFaults = map[string]struct {
	reason, words string
	dial          error
	answer        func(string, net.Conn) bool
}{
	"is not there":    {reason: "unreachable", words: "check that it runs", dial: errors.New("connection refused")},
	"wants a login":   {reason: "login", words: "proxy_secret_file", answer: webhooktest.Say("HTTP/1.1 407 No\r\nX: " + login + "\r\n\r\n")},
	"is overloaded":   {reason: "status", words: "503", answer: webhooktest.Say("HTTP/1.1 503 No\r\nContent-Length: 5\r\n\r\n" + login)},
	"is broken":       {reason: "status", words: "500", answer: webhooktest.Say("HTTP/1.0 500 No\r\n\r\n")},
	"limits":          {reason: "status", words: "429", answer: webhooktest.Say("HTTP/1.1 429 No\r\n\r\n")},
	"redirects":       {reason: "status", words: "302", answer: webhooktest.Say("HTTP/1.1 302 Found\r\nLocation: http://portal/\r\n\r\n")},
	"refuses all":     {reason: faultRefused, words: "403", answer: webhooktest.Say("HTTP/1.1 403 Forbidden\r\n\r\n")},
	"hangs":           {reason: faultSilent, words: "does not answer", answer: func(string, net.Conn) bool { time.Sleep(time.Minute); return true }},
	"trickles":        {reason: faultSilent, words: "does not answer", answer: func(_ string, c net.Conn) bool { return trickleTo(c, "HTTP/1.1 200 OK\r\n\r\n") }},
	"closes":          {reason: "unreadable", words: "HTTP proxy", answer: func(string, net.Conn) bool { return true }},
	"speaks rubbish":  {reason: "unreadable", words: "HTTP proxy", answer: webhooktest.Say("SSH-2.0-OpenSSH_9.9\r\n\r\n")},
	"says too much":   {reason: "unreadable", words: "HTTP proxy", answer: webhooktest.Say("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 10<<10) + "\r\n\r\n")},
	"goes on":         {reason: "unreadable", words: "HTTP proxy", answer: webhooktest.Say("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")},
	"another wire":    {reason: "status", words: "101", answer: webhooktest.Say("HTTP/1.1 101 Switching\r\n\r\n")},
	"speaks too soon": {reason: "unreadable", words: "HTTP proxy", answer: webhooktest.Say("\x15\x03\x01\x00\x02\x02\x0a")},
}

func trickleTo(c net.Conn, text string) bool {
	for _, b := range []byte(text) {
		if _, err := c.Write([]byte{b}); err != nil {
			break
		}
		time.Sleep(time.Second)
	}
	return true
}

// Nothing that the proxy does wrong is put on the receiver: its delivery is put
// off with a reason, no attempt is counted or logged, nothing counts for its
// health, and when the proxy is well again it is sent at once. Whoever runs the
// proxy reads of it once, and in words.
func TestFaultsOfTheProxyAreNotTheReceivers(t *testing.T) {
	t.Parallel()
	for name, z := range proxyFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var log logged
				var broken sync.Mutex // held while it is not there
				dialErr := z.dial
				registry := prometheus.NewRegistry()
				there, p := proxied(t, w.net, ProxyConfig{Login: login, Logger: log.logger(), Metrics: registry})
				dial := p.dial
				p.dial = func(ctx context.Context, addr string) (net.Conn, error) {
					broken.Lock()
					defer broken.Unlock()
					if dialErr != nil {
						return nil, dialErr
					}
					return dial(ctx, addr)
				}
				there.Instead(z.answer)
				w.proxy, w.log = p, log.logger()
				d := w.run()
				synctest.Wait()
				const all = perURL + 2
				for range all {
					w.emit(nil)
				}
				time.Sleep(5 * time.Minute)
				row, as := w.resting(1)
				require.Equal(t, ReasonProxy, row.Reason)
				require.Equal(t, 0, row.Attempts)
				require.Empty(t, as)
				require.LessOrEqual(t, time.Until(row.NextAt), 72*time.Second, "it is tried again soon")
				why, until := d.Held(42, "http://a.example.com/hook?key=hidden")
				require.Equal(t, waitProxy, why)
				require.False(t, until.Before(row.NextAt), "at the earliest")
				require.LessOrEqual(t, len(there.Asked()), 12*all, "but the proxy is not flooded")
				require.Equal(t, 1, strings.Count(log.String(), "webhooks do not get through"), log.String())
				require.Contains(t, log.String(), z.words)
				require.Zero(t, w.count("webhook_attempts_total", "channel", cloud.ChannelLocker))
				require.Positive(t, w.count("webhook_postponed_total", "reason", waitProxy))
				h, err := w.db.FindHealth(t.Context(), 3)
				require.NoError(t, err)
				require.Zero(t, h.Failures)
				metrics := w.metrics
				w.metrics = registry
				require.Positive(t, w.count("webhook_proxy_faults_total", "reason", z.reason))
				require.Equal(t, 1.0, w.gauge("webhook_proxy_down"))

				broken.Lock()
				dialErr = nil
				broken.Unlock()
				there.Instead(nil)
				time.Sleep(2 * time.Minute)
				require.Zero(t, w.gauge("webhook_proxy_down"))
				w.metrics = metrics
				w.stop()
				for id := cloud.OutboxID(1); id <= all; id++ {
					row, as = w.row(id)
					require.Equal(t, cloud.OutboxSuccess, row.State)
					require.Len(t, as, 1)
					require.Equal(t, 1, as[0].Attempt)
					hidden(t, as[0].Error+as[0].RequestHead+as[0].AnswerHead+as[0].AnswerBody+row.Reason)
				}
				require.Len(t, w.a.seen(), all)
				require.Equal(t, "1", w.a.seen()[0].head.Get("X-Webhook-Attempt"))
				require.Equal(t, 1, strings.Count(log.String(), "webhooks get through the outgoing proxy again"))
				hidden(t, log.String())
				require.Empty(t, w.net.dials, "no direct connection")
				w.close()
			})
		})
	}
}

// resting is the row of a delivery when it waits for its time, and is neither in
// flight nor in memory.
func (w *world) resting(id cloud.OutboxID) (cloud.OutboxDelivery, []cloud.OutboxAttempt) {
	for range 600 {
		if row, as := w.row(id); row.State == cloud.OutboxRetrying && row.NextAt.After(time.Now()) {
			return row, as
		}
		time.Sleep(time.Second)
	}
	row, _ := w.row(id)
	require.Fail(w.t, "it does not wait for a time", "%+v", row)
	return row, nil
}

func (w *world) gauge(name string) float64 {
	families, err := w.metrics.Gather()
	require.NoError(w.t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.Metric[0].GetGauge().GetValue()
		}
	}
	require.Fail(w.t, "there is no "+name)
	return 0
}

// A target that alone gets no way, while others do, is in trouble of its own: the
// proxy cannot reach it, or its rules forbid it. Its deliveries are counted as
// without a proxy; those of the others do not notice.
func TestProxyThatFailsForOneTargetAlone(t *testing.T) {
	t.Parallel()
	for name, z := range map[string]struct {
		answer  func(string, net.Conn) bool
		code    string
		counted bool // for the receiver's health
	}{
		"cannot reach it": {webhooktest.Say("HTTP/1.1 503 No\r\n\r\n"), CodeConnect, true},
		"waits for it":    {func(string, net.Conn) bool { time.Sleep(time.Minute); return true }, CodeTimeout, true},
		"hangs up":        {func(string, net.Conn) bool { return true }, CodeConnect, true},
		"forbids it":      {webhooktest.Say("HTTP/1.1 403 Forbidden\r\n\r\n"), CodeBlocked, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var log logged
				there, p := proxied(t, w.net, ProxyConfig{Logger: log.logger()})
				there.Instead(func(to string, c net.Conn) bool { return to == "b.example.com:80" && z.answer(to, c) })
				w.endpoint(func(e *cloud.Endpoint) { e.ID, e.ProviderID, e.URL = 4, 18, "http://b.example.com/" })
				w.proxy = p
				w.run()
				synctest.Wait()
				bad := w.emit(func(o *cloud.OutboxWrite) { o.Deliveries[0].EndpointID = 4 })
				var good []cloud.OutboxID
				for range 10 { // more seldom than ways are kept
					good = append(good, w.emit(nil))
					time.Sleep(idleLife + 5*time.Second)
				}
				for _, id := range good {
					row, as := w.row(id)
					require.Equal(t, cloud.OutboxSuccess, row.State)
					require.Len(t, as, 1)
				}
				row, as := w.resting(bad) // as a rule may be changed, and a receiver may come back
				require.Equal(t, z.code, row.Reason)
				require.Greater(t, row.Attempts, 1)
				require.Len(t, as, row.Attempts)
				require.Equal(t, z.code, as[0].ErrorCode)
				h, err := w.db.FindHealth(t.Context(), 4)
				require.NoError(t, err)
				require.Equal(t, z.counted, h.Failures > 0)
				require.Empty(t, log.String(), "nobody is got out of bed")
				require.Empty(t, w.net.dials)
				w.stop()
				w.close()
			})
		})
	}
}

// What is sent by hand is answered at once, and says whose fault it was.
func TestSendNowByAProxyThatIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, p := proxied(t, w.net, ProxyConfig{Dial: func(context.Context, string) (net.Conn, error) { return nil, errors.New("no route to host") }})
		w.proxy = p
		d := w.run()
		synctest.Wait()
		o := event(1)
		o.Deliveries[0].State, o.Deliveries[0].MaxAttempts = cloud.OutboxDelivering, 1
		w.write(&cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{o}}})
		work, err := w.db.FindOutbox(t.Context(), 1)
		require.NoError(t, err)
		ep, err := w.db.FindEndpoint(t.Context(), 3)
		require.NoError(t, err)
		r, err := d.SendNow(t.Context(), ep, work, cloud.HookTweak{})
		require.NoError(t, err)
		require.Equal(t, cloud.OutboxFailed, r.State)
		require.Equal(t, ReasonProxy, r.Reason)
		row, as := w.row(1)
		require.Equal(t, ReasonProxy, row.Reason)
		require.Empty(t, as)
		w.stop()
		w.close()
	})
}

// Documents and pushes go by the proxy, too.
func TestFetchByTheProxy(t *testing.T) {
	t.Parallel()
	n := newNet()
	cert, pool := certificate(t, "a.example.com", time.Now().Add(time.Hour))
	n.serve[addrA] = func(c net.Conn) {
		tc := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		if _, err := http.ReadRequest(bufio.NewReader(tc)); err == nil {
			_, _ = io.WriteString(tc, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
	}
	there, p := proxied(t, n, ProxyConfig{Login: login})
	f := NewFetcher(FetcherConfig{Guard: NewGuard(GuardConfig{}), Proxy: p, TLS: &tls.Config{RootCAs: pool}, Resolver: n, Dial: n.dial})
	d, err := f.Fetch(t.Context(), "https://a.example.com/")
	require.NoError(t, err)
	require.Equal(t, "{}", string(d.Body))
	there.Instead(webhooktest.Say("HTTP/1.1 502 " + login + "\r\n\r\n"))
	_, err = f.Fetch(t.Context(), "https://a.example.com/")
	require.ErrorContains(t, err, CodeProxy)
	hidden(t, err.Error())
	require.Equal(t, []string{"a.example.com:443", "a.example.com:443"}, there.Asked())
	require.Empty(t, n.dials)
	n.wg.Wait()
}

// Who leaves while the proxy is asked says nothing about it.
func TestLeavingIsNoFaultOfTheProxy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNet()
		var log logged
		there, p := proxied(t, n, ProxyConfig{Logger: log.logger()})
		there.Instead(func(string, net.Conn) bool { time.Sleep(time.Minute); return true })
		c, target := testClient(t, n, nil, "http://a.example.com/")
		c.proxy = p
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		a := c.post(ctx, target, []byte(emptyPost), nil)
		require.Equal(t, CodeConnect, a.code)
		require.Empty(t, p.troubled)
		require.Empty(t, log.String())
		n.wg.Wait()
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
	p, err := NewProxy(ProxyConfig{URL: "https://[2606:4700::1]:3128/", Login: login})
	require.NoError(t, err)
	require.Equal(t, "[2606:4700::1]:3128", p.addr)
	text := fmt.Sprintf("%v %+v %#v %s", p, p, p, p)
	var log logged
	log.logger().Info("x", "proxy", p)
	hidden(t, text+log.String())
	require.NotContains(t, text+log.String(), "cG9zdGVybj")
}
