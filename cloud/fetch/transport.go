package fetch

import (
	"context"
	"io"
	"net"
	"net/http"
)

// maxAnswer is how much of an answer an HTTP client reads, in bytes.
const maxAnswer = 1 << 20

// NewHTTPClient is a client of the standard library for libraries that bring their own
// requests, behind the same guard and proxy: each address and each connection is
// checked, none is kept, nothing is redirected, and of an answer 1 MiB is read.
func NewHTTPClient(cfg Config) *http.Client {
	c := NewClient(cfg)
	t := &http.Transport{DisableKeepAlives: true, TLSClientConfig: cfg.TLS, TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: Timeout}
	t.DialContext = func(ctx context.Context, _, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		target, err := c.guard.CheckURL("https://" + addr + "/")
		if err != nil {
			return nil, err
		}
		addrs, err := c.resolve(ctx, target)
		if err == nil {
			err = c.guard.all(addrs)
		}
		if err != nil {
			return nil, err
		}
		if c.proxy != nil {
			return c.proxy.open(ctx, target)
		}
		return c.connect(ctx, addrs, target.Port)
	}
	return &http.Client{Timeout: Timeout, Transport: guarded{c.guard, t}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// guarded checks the address of each request before anything is connected to.
type guarded struct {
	guard *Guard
	next  http.RoundTripper
}

func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := g.guard.CheckURL(r.URL.String()); err != nil {
		return nil, err
	}
	a, err := g.next.RoundTrip(r)
	if err == nil {
		a.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(a.Body, maxAnswer), a.Body}
	}
	return a, err
}
