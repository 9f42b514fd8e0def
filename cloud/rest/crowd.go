package rest

import (
	"crypto/tls"
	"net"
	"net/netip"
	"sync"

	"github.com/postern-io/postern/cloud/limit"
)

// crowd counts open connections by address, so that one cannot take the place of
// all others. Proxies, private networks and this machine may speak for many and are
// not counted.
type crowd struct {
	most   int // of one address
	exempt func(netip.Addr) bool

	mu   sync.Mutex // guards what follows
	open map[string]int
}

// enter counts a connection, and says under which name it leaves; "" where it is not
// counted. ok is false when the address has too many.
func (c *crowd) enter(conn net.Conn) (name string, ok bool) {
	if t, isTLS := conn.(*tls.Conn); isTLS {
		conn = t.NetConn()
	}
	tcp, direct := conn.(*net.TCPConn) // another kind would wait for its header to know the address
	if !direct || c.most <= 0 {
		return "", true
	}
	from, _ := tcp.RemoteAddr().(*net.TCPAddr)
	if from == nil || c.exempt(from.AddrPort().Addr().Unmap()) {
		return "", true
	}
	name = limit.Address(from.AddrPort().Addr().Unmap().String())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[name] >= c.most {
		return "", false
	}
	c.open[name]++
	return name, true
}

func (c *crowd) leave(name string) {
	if name == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[name]--; c.open[name] == 0 {
		delete(c.open, name)
	}
}
