package peer

import (
	"net"
	"time"

	"github.com/pires/go-proxyproto"
)

// headerWait is how long a trusted proxy may take for its PROXY header.
const headerWait = 5 * time.Second

// Listener reads the PROXY protocol, version 1 or 2, on connections from trusted
// proxies: their RemoteAddr is the one that the header names. A trusted proxy may
// leave the header out. Connections of others are passed on as they are, so that a
// header from them is an ordinary unreadable request. It stands below TLS.
func (p Proxies) Listener(ln net.Listener) net.Listener {
	return &proxyproto.Listener{Listener: ln, ReadHeaderTimeout: headerWait, ConnPolicy: func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
		if p.Trusts(addrOf(o.Upstream)) {
			return proxyproto.USE, nil
		}
		return proxyproto.SKIP, nil
	}}
}
