package fetch

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
)

// ProxyConfig is what NewProxy needs.
type ProxyConfig struct {
	// URL is where it listens: http://host:port, or https:// where it wants TLS
	// for itself.
	URL string
	// Login is what it asks for, user:password; empty: nothing.
	Login   string
	TLS     *tls.Config                                              // for https; nil is the system's
	Dial    func(ctx context.Context, addr string) (net.Conn, error) // nil is TCP
	Metrics prometheus.Registerer                                    // nil for nowhere
	Logger  *slog.Logger                                             // nil is slog.Default
}

// Proxy is an HTTP proxy by which all receivers are reached: it opens a way to
// a host and port (CONNECT), and what goes over it is as without a proxy. It is
// asked for names, so that its own rules decide what is inside; what the guard
// knows to be inside it is never asked for. Its address is the only one that no
// guard checks.
//
// A way that it does not open is its own fault and not the receiver's, with one
// exception: see blame. Safe for concurrent use.
type Proxy struct {
	addr   string // host:port
	auth   string // value of Proxy-Authorization, "" for none
	tls    *tls.Config
	dial   func(ctx context.Context, addr string) (net.Conn, error)
	log    *slog.Logger
	faults *prometheus.CounterVec
	isDown prometheus.Gauge

	mu       sync.Mutex         // guards what follows
	down     time.Time          // since when no connection gets through; zero: it works
	logged   bool               // whether the log has that …
	toldAt   time.Time          // … and when it last had such a thing
	opened   [2]opening         // the last two targets that ways were opened to
	troubled map[string]trouble // targets that none was opened to since
}

type opening struct {
	to string
	at time.Time
}

// trouble is that of one target: when it began, and when it was last seen.
type trouble struct{ since, seen time.Time }

const (
	proxyFirst   = 5 * time.Second  // least and …
	proxyMost    = time.Minute      // … most wait after a fault of the proxy
	proxyDoubt   = 30 * time.Second // until a fault that may be a target's is held to be the proxy's
	proxyTell    = 5 * time.Minute  // between two words in the log about the same
	troubleKept  = 10 * time.Minute
	maxTroubled  = 4096
	proxyAnswer  = 4 << 10     // of the head of its answer
	proxyResolve = time.Second // for names that it may know alone
)

// NewProxy builds a proxy; it connects to nothing. No error shows the address or
// the login.
func NewProxy(cfg ProxyConfig) (*Proxy, error) {
	u, err := url.Parse(cfg.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("use the proxy's address, such as http://proxy.internal:3128")
	case u.User != nil:
		return nil, errors.New("leave user and password out of the proxy's address: they go into a file of their own")
	}
	p := &Proxy{addr: u.Host, dial: cfg.Dial, log: cfg.Logger, troubled: map[string]trouble{},
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "webhook_proxy_faults_total", Help: "Ways that the outgoing proxy did not open by its own fault."}, []string{"reason"}),
		isDown: prometheus.NewGauge(prometheus.GaugeOpts{Name: "webhook_proxy_down", Help: "1 while nothing gets through the outgoing proxy."})}
	if cfg.Login != "" {
		user, _, ok := strings.Cut(cfg.Login, ":")
		if !ok || user == "" || strings.ContainsFunc(cfg.Login, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return nil, errors.New("the proxy's login is user:password on one line")
		}
		p.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(cfg.Login))
	}
	if u.Scheme == "https" {
		p.tls = &tls.Config{}
		if cfg.TLS != nil {
			p.tls = cfg.TLS.Clone()
		}
		p.tls.ServerName, p.tls.MinVersion, p.tls.NextProtos = u.Hostname(), tls.VersionTLS12, []string{"http/1.1"}
	}
	if p.dial == nil {
		p.dial = func(ctx context.Context, addr string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", addr)
		}
	}
	if p.log == nil {
		p.log = slog.Default()
	}
	if cfg.Metrics != nil {
		cfg.Metrics.MustRegister(p.faults, p.isDown)
	}
	return p, nil
}

// String is the proxy's address, without its login.
func (p *Proxy) String() string { return p.addr }

// GoString is String.
func (p *Proxy) GoString() string { return p.addr }

// fault is why the proxy opened no way. Its reason is the label of a metric, its
// words are for the operator of the proxy; neither holds anything that it answered
// but the status.
type fault struct {
	reason, words string
	general       bool // it has nothing to do with the target
}

func faultOfStatus(status int) *fault {
	switch {
	case status == fasthttp.StatusProxyAuthRequired:
		return &fault{"login", "it wants another login (407): check user and password in webhook.proxy_secret_file", true}
	case status >= 400 && status < 500 && status != fasthttp.StatusRequestTimeout && status != fasthttp.StatusTooManyRequests:
		return &fault{faultRefused, fmt.Sprintf("it refuses to connect (%d): check its rules for this node and for port 443", status), false}
	}
	return &fault{"status", fmt.Sprintf("it answers %d: look into its own log", status), false}
}

// Reasons of faults by which a target, where it is to blame, is known.
const (
	faultRefused = "refused"
	faultSilent  = "silent"
)

// proxyJitter spreads the waits of nodes that use one proxy.
const proxyJitter = 0.2

// detour is the error of a way that was not opened by the proxy's fault: wait so
// long and try again.
type detour struct{ wait time.Duration }

func (*detour) Error() string { return "the outgoing proxy made no connection" }

// errProxyRefuses is the error of a target that the proxy's own rules forbid.
var errProxyRefuses = errors.New("the outgoing proxy does not let webhooks go to this address")

// open makes a connection to a target's host and port by way of the proxy.
// Its error is a detour where the proxy is to blame.
func (p *Proxy) open(ctx context.Context, t *Target) (net.Conn, error) {
	to := net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port)))
	nc, f := p.connect(ctx, to)
	switch {
	case f == nil:
		p.through(to, time.Now())
		return nc, nil
	case errors.Is(ctx.Err(), context.Canceled): // the caller has left
		return nil, ctx.Err()
	}
	if wait, mine := p.blame(to, f, time.Now()); mine {
		return nil, &detour{wait}
	}
	switch f.reason {
	case faultRefused:
		return nil, errProxyRefuses
	case faultSilent:
		return nil, context.DeadlineExceeded
	}
	return nil, &failure{CodeConnect, errors.New("the host could not be reached")}
}

// connect asks the proxy for a way, until ctx's deadline.
func (p *Proxy) connect(ctx context.Context, to string) (net.Conn, *fault) {
	nc, err := p.dial(ctx, p.addr)
	if err != nil {
		return nil, &fault{"unreachable", "it cannot be connected to: check that it runs, and its address in webhook.proxy", true}
	}
	if p.tls != nil {
		tc := tls.Client(nc, p.tls)
		if tc.HandshakeContext(ctx) != nil {
			_ = nc.Close()
			return nil, &fault{"tls", "the TLS handshake with it failed: check its certificate, or whether webhook.proxy is to begin with http://", true}
		}
		nc = tc
	}
	if f := p.sendConnect(ctx, nc, to); f != nil {
		_ = bare(nc).Close()
		return nil, f
	}
	return nc, nil
}

// sendConnect sends CONNECT and reads the answer's head, and nothing beyond it.
func (p *Proxy) sendConnect(ctx context.Context, nc net.Conn, to string) *fault {
	deadline, _ := ctx.Deadline()
	if nc.SetDeadline(deadline) != nil {
		return faultOfAnswer(nil)
	}
	head := "CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\nUser-Agent: Postern\r\n"
	if p.auth != "" {
		head += "Proxy-Authorization: " + p.auth + "\r\n"
	}
	if _, err := nc.Write([]byte(head + "\r\n")); err != nil {
		return faultOfAnswer(err)
	}
	r := bufio.NewReaderSize(nc, proxyAnswer)
	if _, err := r.Peek(1); err != nil { // the next call would hide what it is
		return faultOfAnswer(err)
	}
	var h fasthttp.ResponseHeader
	for {
		if err := h.Read(r); err != nil {
			return faultOfAnswer(err)
		}
		if h.StatusCode() >= 200 || h.StatusCode() == fasthttp.StatusSwitchingProtocols {
			break
		}
	}
	if h.StatusCode() < 200 || h.StatusCode() > 299 {
		return faultOfStatus(h.StatusCode())
	}
	if r.Buffered() > 0 { // the target has no request yet
		return faultOfAnswer(nil)
	}
	if nc.SetDeadline(time.Time{}) != nil {
		return faultOfAnswer(nil)
	}
	return nil
}

func faultOfAnswer(err error) *fault {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &fault{faultSilent, "it takes connections and does not answer: look into its own log", false}
	}
	return &fault{"unreadable", "its answer cannot be read: check that webhook.proxy names an HTTP proxy", false}
}

// through notes that a way was opened.
func (p *Proxy) through(to string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opened[0].to != to {
		p.opened[1] = p.opened[0]
	}
	p.opened[0] = opening{to, now}
	delete(p.troubled, to)
	if p.down.IsZero() {
		return
	}
	if p.logged {
		p.log.Info("outgoing proxy works again for webhooks", "proxy", p.addr, "after", now.Sub(p.down).Round(time.Second).String())
	}
	p.down, p.logged = time.Time{}, false
	p.isDown.Set(0)
}

// blame says whether a fault is the proxy's own, and then how long to wait.
//
// Proxies answer for a host that they cannot reach, or may not, as they do when
// they are ill themselves: 503, 403, nothing at all. So the first time it counts
// as the proxy's. When the same target gets no way some seconds later, it is the
// target's own trouble if a way to another one was opened in between, and the
// proxy's if none was.
func (p *Proxy) blame(to string, f *fault, now time.Time) (wait time.Duration, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := now
	if !f.general {
		since = p.trouble(to, now)
	}
	if now.Sub(since) >= proxyFirst && p.down.IsZero() && p.othersSince(to, since) {
		return 0, false
	}
	p.faults.WithLabelValues(f.reason).Inc()
	if f.general || now.Sub(since) >= proxyDoubt {
		p.noteDown(to, f, now)
		since = p.down
	}
	wait = min(max(now.Sub(since), proxyFirst), proxyMost)
	return time.Duration(float64(wait) * (1 + proxyJitter*rand.Float64())), true
}

// trouble notes that no way to a target was opened, and gives the first time.
func (p *Proxy) trouble(to string, now time.Time) time.Time {
	t, known := p.troubled[to]
	if !known || now.Sub(t.seen) > troubleKept {
		t.since = now
	}
	t.seen = now
	if len(p.troubled) >= maxTroubled {
		clear(p.troubled)
	}
	p.troubled[to] = t
	return t.since
}

// othersSince reports whether a way to another target was opened.
func (p *Proxy) othersSince(to string, since time.Time) bool {
	for _, o := range p.opened {
		if o.to != to && o.at.After(since) {
			return true
		}
	}
	return false
}

// noteDown notes that no connection gets through, and logs it once.
func (p *Proxy) noteDown(to string, f *fault, now time.Time) {
	if p.down.IsZero() {
		p.down = now
		p.isDown.Set(1)
	}
	if p.logged || !p.toldAt.IsZero() && now.Sub(p.toldAt) < proxyTell {
		return
	}
	p.logged, p.toldAt = true, now
	p.log.Error("webhooks do not get through the outgoing proxy; they wait and are tried again by themselves, receivers are not blamed",
		"proxy", p.addr, "reason", f.words, "asked_for", to)
}
