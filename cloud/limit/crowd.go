package limit

import (
	"math"
	"net"
	"net/netip"
	"sync"
)

// Connections are how many a protocol has open at this node. 0 is the usual figure, a
// negative one no limit.
type Connections struct {
	Address int `yaml:"address" json:"address"` // from one address, IPv6 by /64; 1,024
	Total   int `yaml:"total" json:"total"`     // 50,000
}

// The usual figures.
const (
	ConnsPerAddress = 1024
	ConnsTotal      = 50_000
)

// Crowd counts open connections in all and by address, so that one cannot take the place
// of all others, and all together not the node's memory. Addresses may be exempt from the
// count by address: proxies, private networks and this machine speak for many. Any number
// of goroutines may use it.
type Crowd struct {
	exempt func(netip.Addr) bool

	mu   sync.Mutex // guards what follows
	most Connections
	open map[string]int
	all  int
}

// NewCrowd is a count of at most so many connections. exempt gets addresses without an
// IPv4-in-IPv6 form; nil: no address is exempt.
func NewCrowd(most Connections, exempt func(netip.Addr) bool) *Crowd {
	if exempt == nil {
		exempt = func(netip.Addr) bool { return false }
	}
	return &Crowd{most: most.withDefaults(), exempt: exempt, open: map[string]int{}}
}

func (most Connections) withDefaults() Connections {
	for v, usual := range map[*int]int{&most.Address: ConnsPerAddress, &most.Total: ConnsTotal} {
		if *v == 0 {
			*v = usual
		}
		if *v < 0 {
			*v = math.MaxInt
		}
	}
	return most
}

// SetMost changes the figures. Connections that are open stay.
func (c *Crowd) SetMost(most Connections) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = most.withDefaults()
}

// Enter counts a connection from an address, and gives what ends it, to be called
// once. ok is false when there are too many. Addresses that are none of TCP are
// not counted.
func (c *Crowd) Enter(from net.Addr) (leave func(), ok bool) {
	tcp, isTCP := from.(*net.TCPAddr)
	if !isTCP {
		return func() {}, true
	}
	name := "" // of an exempt one
	if a := tcp.AddrPort().Addr().Unmap(); !c.exempt(a) {
		name = Address(a.String())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= c.most.Total || name != "" && c.open[name] >= c.most.Address {
		return nil, false
	}
	c.all++
	if name != "" {
		c.open[name]++
	}
	return func() { c.leave(name) }, true
}

func (c *Crowd) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if name == "" {
		return
	}
	if c.open[name]--; c.open[name] == 0 {
		delete(c.open, name)
	}
}
