// Package fetchtest is a network in memory for tests of what goes out: names,
// addresses, receivers, certificates and an HTTP proxy.
package fetchtest

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
)

// Addresses of the network in memory, as the public has them: a.example.com leads
// to AddrA, b.example.com to AddrB.
var (
	AddrA = netip.MustParseAddrPort("93.184.216.34:443")
	AddrB = netip.MustParseAddrPort("93.184.216.35:443")
)

// Network is a network in memory. Names are its host names, Serve the handlers of
// its addresses, Dials the addresses that were dialled; Mu guards all three while
// it is in use.
type Network struct {
	Mu       sync.Mutex
	Names    map[string][]netip.Addr
	Serve    map[netip.AddrPort]func(net.Conn)
	Dials    []netip.AddrPort
	Handlers sync.WaitGroup
}

// NewNetwork makes a network with two names and no handlers.
func NewNetwork() *Network {
	return &Network{Serve: map[netip.AddrPort]func(net.Conn){}, Names: map[string][]netip.Addr{
		"a.example.com": {AddrA.Addr()}, "b.example.com": {AddrB.Addr()}}}
}

// LookupNetIP finds the addresses of a name.
func (n *Network) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	if a, ok := n.Names[host]; ok {
		return a, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// Dial connects to the handler of an address.
func (n *Network) Dial(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	n.Mu.Lock()
	serve := n.Serve[addr]
	n.Dials = append(n.Dials, addr)
	n.Mu.Unlock()
	if serve == nil {
		return nil, errors.New("connection refused")
	}
	here, there := net.Pipe()
	n.Handlers.Go(func() { defer there.Close(); serve(there) })
	return here, nil
}
