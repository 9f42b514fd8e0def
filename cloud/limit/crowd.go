package limit

import (
	"net"
	"net/netip"
	"sync"
)

// ConnsPerAddress is how many connections of a protocol one address may have open.
const ConnsPerAddress = 1024

// Crowd counts open connections by address, IPv6 by /64, so that one cannot take the
// place of all others. Addresses may be exempt: proxies, private networks and this
// machine speak for many. Any number of goroutines may use it.
type Crowd struct {
	most   int // of one address
	exempt func(netip.Addr) bool

	mu   sync.Mutex // guards what follows
	open map[string]int
}

// NewCrowd is a count of at most so many connections of one address; 0 or less: any
// number. exempt gets addresses without an IPv4-in-IPv6 form; nil: no address is exempt.
func NewCrowd(most int, exempt func(netip.Addr) bool) *Crowd {
	if exempt == nil {
		exempt = func(netip.Addr) bool { return false }
	}
	return &Crowd{most: most, exempt: exempt, open: map[string]int{}}
}

// Enter counts a connection from an address, and gives what ends it, to be called
// once. ok is false when the address has too many. Addresses that are none of TCP are
// not counted.
func (c *Crowd) Enter(from net.Addr) (leave func(), ok bool) {
	tcp, isTCP := from.(*net.TCPAddr)
	if !isTCP || c.most <= 0 || c.exempt(tcp.AddrPort().Addr().Unmap()) {
		return func() {}, true
	}
	name := Address(tcp.AddrPort().Addr().Unmap().String())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[name] >= c.most {
		return nil, false
	}
	c.open[name]++
	return func() { c.leave(name) }, true
}

func (c *Crowd) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[name]--; c.open[name] == 0 {
		delete(c.open, name)
	}
}
