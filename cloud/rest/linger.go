package rest

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud/limit"
)

// slow holds the remote addresses of connections that are to be closed slowly. Who
// is refused in the midst of a long body goes on sending; if the connection were
// gone by then, its system would take the refusal away unread.
type slow struct{ addresses sync.Map }

// mark has the connection from an address closed slowly.
func (s *slow) mark(from net.Addr) { s.addresses.Store(from.String(), true) }

const (
	lingerTime = 5 * time.Second
	lingerMost = 64 << 20 // bytes that are read for nothing
)

// lingering is a listener whose connections can be closed slowly, and of which one
// address has not too many.
type lingering struct {
	net.Listener
	slow  *slow
	crowd *limit.Crowd
}

func (l *lingering) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		half, ok := c.(halfCloser)
		if err != nil || !ok {
			return c, err
		}
		leave, ok := l.crowd.Enter(known(c))
		if !ok {
			_ = c.Close() // nothing has been said yet
			continue
		}
		x := &lingerer{halfCloser: half, slow: l.slow, leave: leave}
		if t, ok := c.(*tls.Conn); ok { // the HTTP library must see that there is TLS
			return &tlsLingerer{x, t}, nil
		}
		return x, nil
	}
}

// known is the address of a connection as far as it is known at once: another kind
// of connection waits for its header.
func known(conn net.Conn) net.Addr {
	if t, isTLS := conn.(*tls.Conn); isTLS {
		conn = t.NetConn()
	}
	if tcp, direct := conn.(*net.TCPConn); direct {
		return tcp.RemoteAddr()
	}
	return nil
}

type halfCloser interface {
	net.Conn
	CloseWrite() error
}

type lingerer struct {
	halfCloser
	slow  *slow
	leave func()
	once  sync.Once
	err   error
}

type tlsLingerer struct {
	*lingerer
	tls *tls.Conn
}

func (c *tlsLingerer) Handshake() error                     { return c.tls.Handshake() }
func (c *tlsLingerer) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

// Close closes the connection, after what is still being sent has come when it
// was to be closed slowly.
func (c *lingerer) Close() error {
	c.once.Do(func() {
		if _, slow := c.slow.addresses.LoadAndDelete(c.RemoteAddr().String()); slow && c.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
			_, _ = io.CopyN(io.Discard, c.halfCloser, lingerMost)
		}
		c.err = c.halfCloser.Close()
		c.leave()
	})
	return c.err
}
