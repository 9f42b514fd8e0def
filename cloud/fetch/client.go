package fetch

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// Timeout is the longest that one request takes, from the lookup of the name to
// the last byte of the answer.
const Timeout = 10 * time.Second

const (
	connectTimeout = 5 * time.Second
	idleLife       = 15 * time.Second
	connLife       = 5 * time.Minute
	readLimit      = 64 << 10
	keepLimit      = 4 << 10
	maxIdle        = 64 // connections to one host, which may serve many URLs
)

// Codes of what went wrong with a request.
const (
	CodeTimeout = "TIMEOUT"
	CodeDNS     = "DNS"
	CodeTLS     = "TLS"
	CodeConnect = "CONNECT"
	CodeStatus  = "HTTP_STATUS"
	CodeBlocked = "BLOCKED_URL"
	CodeProxy   = "PROXY" // not of the receiver: the deployment's own proxy is at fault
)

// Config is the settings of a client and of a fetcher. A nil Guard allows HTTPS to
// public addresses alone.
type Config struct {
	Guard    *Guard
	Proxy    *Proxy      // nil: addresses are connected to directly
	TLS      *tls.Config // nil is the system's
	Resolver Resolver    // nil is the system's
	Dial     func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
}

// Client posts over connections of its own. Every connection is made to an
// address that the guard has just allowed, or by way of the deployment's proxy
// to a host that it does not forbid; nothing is ever redirected.
//
// It uses fasthttp's reading of answers but not its host client, which hides
// what the log needs: whether a connection was reused, whether it failed before
// the first byte of an answer, and how long each phase took.
type Client struct {
	guard *Guard
	proxy *Proxy // nil: receivers are connected to directly
	names names
	tls   *tls.Config
	dial  func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)

	mu   sync.Mutex
	idle map[connKey][]*conn // last used last
}

// NewClient builds a client.
func NewClient(cfg Config) *Client {
	if cfg.Guard == nil {
		cfg.Guard = NewGuard(GuardConfig{})
	}
	if cfg.Resolver == nil {
		cfg.Resolver = net.DefaultResolver
	}
	if cfg.Dial == nil {
		cfg.Dial = dialTCP
	}
	return &Client{guard: cfg.Guard, proxy: cfg.Proxy, tls: cfg.TLS, dial: cfg.Dial, idle: map[connKey][]*conn{},
		names: names{resolver: cfg.Resolver, known: map[string]resolved{}}}
}

// connKey is what connections must have in common to stand for each other.
type connKey struct {
	tls  bool
	host string
	port uint16
}

type conn struct {
	net.Conn
	r     *bufio.Reader
	born  time.Time
	since time.Time // idle since
}

// Answer is what came back from one attempt, or why nothing did.
type Answer struct {
	Status     int
	Code       string // of the attempt; "" is success
	Reason     string // for the log: names no address
	Head, Body string
	RetryAfter string
	Directive  string // what the receiver wants of the sender: abort, disable
	Remote     string // address that was connected to
	Reused     bool
	Repeated   bool
	ByProxy    bool          // the deployment's proxy refused, not our guard
	Wait       time.Duration // when code is CodeProxy
	Sent       time.Time     // when the first byte went out; zero when none did
	Phases     Phases
}

// Unsent reports whether no connection was even tried, or none that would tell
// anything about the receiver.
func (a *Answer) Unsent() bool {
	return a.Code == CodeBlocked || a.Code == CodeProxy || a.Code == "" && a.Status == 0
}

// Phases are the durations of a request; zero when a phase did not happen.
type Phases struct{ DNS, Connect, TLS, FirstByte, Total time.Duration }

// drop closes a connection that nothing good is expected of: without a word of
// TLS, which a receiver that does not read could hold up.
func (cn *conn) drop() {
	_ = bare(cn.Conn).Close()
}

// bare is the connection below TLS, and below that of a proxy.
func bare(c net.Conn) net.Conn {
	for {
		t, ok := c.(*tls.Conn)
		if !ok {
			return c
		}
		c = t.NetConn()
	}
}

// failure is an error with its public code.
type failure struct {
	code string
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// Post sends head and body to t and reads the answer. It returns within
// attemptTimeout whatever the receiver does.
func (c *Client) Post(ctx context.Context, t *Target, head, body []byte) Answer {
	start := time.Now()
	ctx, cancel := context.WithDeadline(ctx, start.Add(Timeout))
	defer cancel()
	var a Answer
	c.try(ctx, t, head, body, &a)
	if a.Reused && a.Code != "" && a.Status == 0 && a.Phases.FirstByte == 0 && a.Code != CodeTimeout && ctx.Err() == nil {
		// The receiver closed an idle connection just as it was used: not a
		// failure of the receiver, and nothing was read that could be lost.
		a = Answer{Repeated: true, Sent: a.Sent}
		c.drop(t)
		c.try(ctx, t, head, body, &a)
	}
	a.Phases.Total = time.Since(start)
	return a
}

// try makes one request.
func (c *Client) try(ctx context.Context, t *Target, head, body []byte, a *Answer) {
	cn, err := c.connection(ctx, t, a)
	if err == nil {
		var keep bool
		keep, err = c.exchange(ctx, cn, head, body, a)
		if keep && err == nil {
			c.put(t, cn)
		} else {
			cn.drop()
		}
	}
	if err == nil || a.Status != 0 {
		a.JudgeStatus()
		return
	}
	a.Code, a.Reason = classify(err)
	a.ByProxy = errors.Is(err, errProxyRefuses)
	var d *detour
	if errors.As(err, &d) {
		a.Wait = d.wait
	}
}

// JudgeStatus makes everything but 2xx a failure. A failure to read the rest
// of an answer does not matter once its status is known.
func (a *Answer) JudgeStatus() {
	if a.Status < 200 || a.Status > 299 {
		a.Code, a.Reason = CodeStatus, fmt.Sprintf("the receiver answered %d", a.Status)
	}
}

// classify names what went wrong without telling anything about the inside.
func classify(err error) (code, text string) {
	var f *failure
	var dns *net.DNSError
	var d *detour
	switch {
	case errors.Is(err, ErrBlocked):
		return CodeBlocked, ErrBlocked.Error()
	case errors.Is(err, errProxyRefuses):
		return CodeBlocked, errProxyRefuses.Error()
	case errors.As(err, &d):
		return CodeProxy, d.Error()
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return CodeTimeout, "no complete answer in time"
	case errors.As(err, &dns):
		return CodeDNS, "the host name does not resolve"
	case errors.As(err, &f):
		return f.code, f.Error()
	}
	return CodeConnect, "the connection failed"
}

// connection takes an idle connection or makes one.
func (c *Client) connection(ctx context.Context, t *Target, a *Answer) (*conn, error) {
	if cn := c.reuseConn(t); cn != nil {
		a.Reused, a.Remote = true, c.remote(cn)
		return cn, nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	mark := time.Now()
	lap := func(d *time.Duration) { now := time.Now(); *d, mark = now.Sub(mark), now }
	addrs, err := c.resolve(ctx, t)
	if err != nil {
		return nil, err
	}
	if !t.addr.IsValid() {
		lap(&a.Phases.DNS)
	}
	if err := c.guard.all(addrs); err != nil {
		return nil, err
	}
	var nc net.Conn
	if c.proxy != nil {
		nc, err = c.proxy.open(ctx, t)
	} else {
		nc, err = c.connect(ctx, addrs, t.Port)
	}
	if err != nil {
		return nil, err
	}
	lap(&a.Phases.Connect)
	if t.TLS {
		if nc, err = c.handshake(ctx, nc, t.Host); err != nil {
			return nil, err
		}
		lap(&a.Phases.TLS)
	}
	a.Remote = c.remote(nc)
	return &conn{Conn: nc, r: bufio.NewReaderSize(nc, 4<<10), born: time.Now()}, nil
}

// resolve finds the addresses of a target. None, and no error, is what comes of a
// name that only the proxy may know.
func (c *Client) resolve(ctx context.Context, t *Target) ([]netip.Addr, error) {
	if t.addr.IsValid() {
		return []netip.Addr{t.addr}, nil
	}
	asking := ctx
	if c.proxy != nil {
		var cancel context.CancelFunc
		asking, cancel = context.WithTimeout(ctx, proxyResolve)
		defer cancel()
	}
	addrs, err := c.names.lookup(asking, t.Host)
	switch {
	case err == nil:
		return addrs, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case c.proxy != nil:
		c.names.remember(t.Host, nil) // not asked for again at once
		return nil, nil
	}
	return nil, &net.DNSError{Err: "lookup failed", Name: t.Host}
}

// remote is the address at the other end, "" when it is not known.
func (c *Client) remote(nc net.Conn) string {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok && c.proxy == nil {
		return a.IP.String()
	}
	return ""
}

// connect tries each address, each checked right before its socket, and each with
// its share of the time that is left.
func (c *Client) connect(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, error) {
	err := error(&failure{CodeDNS, errors.New("the host name has no address")})
	deadline, _ := ctx.Deadline()
	for i, addr := range addrs {
		addr = addr.Unmap()
		if !c.guard.Allows(addr) {
			return nil, ErrBlocked
		}
		share, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(addrs)-i))
		var nc net.Conn
		nc, err = c.dial(share, netip.AddrPortFrom(addr, port))
		late := share.Err() != nil
		cancel()
		if err == nil {
			return nc, nil
		}
		if ctx.Err() != nil || late && i == len(addrs)-1 {
			return nil, context.DeadlineExceeded
		}
		err = &failure{CodeConnect, errors.New("the connection was refused or broke off")}
	}
	return nil, err
}

func (c *Client) handshake(ctx context.Context, nc net.Conn, host string) (net.Conn, error) {
	cfg := &tls.Config{}
	if c.tls != nil {
		cfg = c.tls.Clone()
	}
	cfg.ServerName, cfg.MinVersion, cfg.NextProtos = host, tls.VersionTLS12, []string{"http/1.1"}
	tc := tls.Client(nc, cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		_ = bare(nc).Close()
		if ctx.Err() != nil {
			return nil, context.DeadlineExceeded
		}
		return nil, &failure{CodeTLS, errors.New("the TLS handshake failed: " + tlsReason(err))}
	}
	return tc, nil
}

// tlsReason is the part of a handshake error that helps the receiver's owner.
func tlsReason(err error) string {
	var v *tls.CertificateVerificationError
	if errors.As(err, &v) {
		return "the certificate is not valid for this host"
	}
	var r tls.RecordHeaderError
	if errors.As(err, &r) {
		return "the receiver does not speak TLS"
	}
	return "the two sides could not agree"
}

// exchange writes the request and reads the answer, at most readLimit bytes of
// its body. keep says whether the connection can carry another request.
func (c *Client) exchange(ctx context.Context, cn *conn, head, body []byte, a *Answer) (keep bool, err error) {
	deadline, _ := ctx.Deadline()
	if err := cn.SetDeadline(deadline); err != nil {
		return false, err
	}
	written := make(chan error, 1)
	a.Sent = time.Now()
	if len(head)+len(body) <= 32<<10 {
		_, err := cn.Write(append(head[:len(head):len(head)], body...))
		written <- err
	} else { // a receiver may answer before it has read everything
		go func() {
			_, err := cn.Write(head)
			if err == nil {
				_, err = cn.Write(body)
			}
			written <- err
		}()
	}
	if _, err := cn.r.Peek(1); err != nil {
		return false, unread(err)
	}
	a.Phases.FirstByte = time.Since(a.Sent)
	var h fasthttp.ResponseHeader
	for {
		if err := h.Read(cn.r); err != nil {
			return false, unread(err)
		}
		if h.StatusCode() >= 200 || h.StatusCode() == 101 {
			break
		}
	}
	a.Status = h.StatusCode()
	a.Head = cut(headLines(&h), keepLimit)
	a.RetryAfter = cut(string(h.Peek("Retry-After")), 64)
	a.Directive = strings.ToLower(cut(string(h.Peek("Webhook-Delivery")), 16))
	whole := readBody(cn.r, &h, a)
	select {
	case err := <-written:
		return whole && err == nil && !h.ConnectionClose() && a.Status != 101, nil
	default: // still writing: closing ends it
		return false, nil
	}
}

// headLines are an answer's headers, one a line.
func headLines(h *fasthttp.ResponseHeader) string {
	var s strings.Builder
	for k, v := range h.All() {
		s.Write(k)
		s.WriteString(": ")
		if string(k) == fasthttp.HeaderLocation { // never followed, only shown
			s.WriteString(cut(string(v), 200))
		} else {
			s.Write(v)
		}
		s.WriteByte('\n')
	}
	return strings.ToValidUTF8(s.String(), "?")
}

// unread says that no answer could be read.
func unread(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	var small *fasthttp.ErrSmallBuffer
	if errors.As(err, &small) {
		return &failure{CodeConnect, errors.New("the head of the answer is too long")}
	}
	return &failure{CodeConnect, errors.New("the connection ended before a readable answer")}
}

// readBody keeps the beginning of an answer's body and reports whether it ended
// where it said it would.
func readBody(r *bufio.Reader, h *fasthttp.ResponseHeader, a *Answer) bool {
	var src io.Reader
	n := h.ContentLength()
	switch {
	case h.StatusCode() == 204 || h.StatusCode() == 304 || n == 0:
		return true
	case n > 0:
		src = io.LimitReader(r, int64(n))
	case n == -1:
		src = httputil.NewChunkedReader(r)
	default:
		src = r
	}
	b, err := io.ReadAll(io.LimitReader(src, readLimit))
	a.Body = cut(strings.ToValidUTF8(string(b), "\uFFFD"), keepLimit)
	switch {
	case err != nil || n == -2 || len(b) == readLimit:
		return false
	case n > 0:
		return len(b) == n
	}
	if n == -1 { // the trailer's end
		line, err := r.ReadString('\n')
		return err == nil && strings.TrimRight(line, "\r\n") == ""
	}
	return true
}

// cut is at most n bytes of s that a database takes: PostgreSQL keeps in text no NUL
// and nothing that is not UTF-8, and would refuse all outcomes of a batch.
func cut(s string, n int) string {
	s = strings.ReplaceAll(s, "\x00", "")
	return strings.ToValidUTF8(s[:min(len(s), n)], "")
}

func keyOf(t *Target) connKey { return connKey{t.TLS, t.Host, t.Port} }

// reuseConn gives the idle connection that was used last, if one is young enough.
func (c *Client) reuseConn(t *Target) *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, now := keyOf(t), time.Now()
	for l := c.idle[k]; len(l) > 0; l = c.idle[k] {
		cn := l[len(l)-1]
		c.idle[k] = l[:len(l)-1]
		if !cn.old(now) {
			return cn
		}
		_ = cn.Close()
	}
	delete(c.idle, k)
	return nil
}

func (cn *conn) old(now time.Time) bool {
	return now.Sub(cn.since) > idleLife || now.Sub(cn.born) > connLife
}

func (c *Client) put(t *Target, cn *conn) {
	cn.since = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	k := keyOf(t)
	if len(c.idle[k]) >= maxIdle || cn.r.Buffered() > 0 {
		_ = cn.Close()
		return
	}
	c.idle[k] = append(c.idle[k], cn)
}

// drop closes the idle connections to t: one was stale, so the others are.
func (c *Client) drop(t *Target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cn := range c.idle[keyOf(t)] {
		_ = cn.Close()
	}
	delete(c.idle, keyOf(t))
}

// Sweep closes connections that have been idle too long; all of them when
// everything is true.
func (c *Client) Sweep(everything bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for k, l := range c.idle {
		kept := l[:0]
		for _, cn := range l {
			if everything || cn.old(now) {
				_ = cn.Close()
			} else {
				kept = append(kept, cn)
			}
		}
		if c.idle[k] = kept; len(kept) == 0 {
			delete(c.idle, k)
		}
	}
}

// dialTCP connects to an address that the guard has allowed.
func dialTCP(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr.String())
}
