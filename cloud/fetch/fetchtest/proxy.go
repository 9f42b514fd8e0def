package fetchtest

import (
	"bufio"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proxy is a little HTTP proxy that knows CONNECT alone. Its fields are set
// before it is used.
type Proxy struct {
	// Dial connects to a host and port, as the proxy sees them.
	Dial func(to string) (net.Conn, error)
	// Login is what it asks for, user:password; empty: nothing.
	Login string

	mu     sync.Mutex
	asked  []string
	answer func(to string, c net.Conn) bool
}

// Instead has f answer a client in place of the proxy, as far as it returns
// true; nil ends that.
func (p *Proxy) Instead(f func(to string, c net.Conn) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = f
}

// Say answers with a text.
func Say(text string) func(string, net.Conn) bool {
	return func(_ string, c net.Conn) bool {
		_, _ = io.WriteString(c, text)
		return true
	}
}

// Asked are the hosts and ports that ways were asked for.
func (p *Proxy) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

// Listen serves on the loopback until the test ends, and gives the address.
func (p *Proxy) Listen(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.Handle(c) })
		}
	})
	return l.Addr().String()
}

// Handle serves one client until either side ends.
func (p *Proxy) Handle(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	req, err := http.ReadRequest(r)
	if err != nil || req.Method != http.MethodConnect || req.Host != req.RequestURI {
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, req.Host)
	answer := p.answer
	p.mu.Unlock()
	if answer != nil && answer(req.Host, c) {
		return
	}
	if p.Login != "" && req.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte(p.Login)) {
		_, _ = io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"out\"\r\nContent-Length: 0\r\n\r\n")
		return
	}
	to, err := p.Dial(req.Host)
	if err != nil {
		_, _ = io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
		return
	}
	defer to.Close()
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{to, c}, {c, to}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = way[0].Close(), way[1].Close()
			done <- struct{}{}
		}()
	}
	<-done
	<-done
}
