// Package loopback tells names of this computer from those of others.
package loopback

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// IsHost reports whether a host as in a Host header or an address, perhaps with a
// port, names this machine itself: another name could be a site's own that resolves to
// it. It is localhost or an address of the loopback, and nothing that an address
// in a link could hide.
func IsHost(host string) bool {
	name := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		name = h
	} else if inner, ok := strings.CutPrefix(host, "["); ok {
		name = strings.TrimSuffix(inner, "]")
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(name)
	return err == nil && a.IsLoopback() && a.Zone() == ""
}
