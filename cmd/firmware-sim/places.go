package main

import (
	"net"

	"github.com/postern-io/postern/protocol/wiring"
)

// places are the addresses that are served.
type places struct {
	tcp, page        string // HOST:PORT; tcp empty: pseudo-terminals, page empty: none
	anyLine, anyPage bool   // another port will do when the usual one is taken
	next             bool   // the command that comes next is printed
}

// places are those of the flags, and the usual ones where nothing is said.
func (opt options) places() (at places) {
	plain := opt.Config == ""
	if opt.TCP != nil {
		at.tcp = *opt.TCP
	} else if plain && opt.Link == "" {
		at.tcp, at.anyLine = wiring.LineAddress, true
	}
	if opt.Page != nil {
		at.page = *opt.Page
	} else if plain {
		at.page, at.anyPage = wiring.SimulatorAddress, true
	}
	at.next = plain
	return at
}

// sizes are those of the compartments by door; nil for a cabinet of a file, which
// has none.
func (opt options) sizes() map[uint]string {
	if opt.Config != "" {
		return nil
	}
	out := map[uint]string{}
	for i, size := range opt.layout().Each() {
		out[uint(i+1)] = size
	}
	return out
}

// listen takes an address, or where any port will do, a free one of its host.
func listen(addr string, anyPort bool) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err == nil || !anyPort {
		return ln, err
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	return net.Listen("tcp", net.JoinHostPort(host, "0"))
}
