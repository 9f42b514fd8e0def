package rest

import (
	"io"
	"net"
	"sync"
	"time"
)

// lingering is a listener whose connections can be closed slowly. Whoever is
// refused in the midst of a long body goes on sending; if the connection were
// gone by then, its system would take the refusal away unread.
type lingering struct {
	net.Listener
	slow sync.Map // remote addresses, as the HTTP library wraps connections
}

const (
	lingerTime = 5 * time.Second
	lingerMost = 64 << 20 // bytes that are read for nothing
)

func (l *lingering) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok && err == nil {
		return &lingerer{TCPConn: tcp, of: l}, nil
	}
	return c, err
}

// linger has the connection from an address closed slowly.
func (l *lingering) linger(from net.Addr) {
	if _, tcp := from.(*net.TCPAddr); tcp {
		l.slow.Store(from.String(), true)
	}
}

type lingerer struct {
	*net.TCPConn
	of   *lingering
	once sync.Once
	err  error
}

// Close closes the connection, after what is still being sent has come when it
// was to be closed slowly.
func (c *lingerer) Close() error {
	c.once.Do(func() {
		if _, slow := c.of.slow.LoadAndDelete(c.RemoteAddr().String()); slow && c.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
			_, _ = io.CopyN(io.Discard, c.TCPConn, lingerMost)
		}
		c.err = c.TCPConn.Close()
	})
	return c.err
}
