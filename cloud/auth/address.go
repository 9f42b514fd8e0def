package auth

import (
	"net/netip"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// From reports whether a token may be used from an address, by its list of addresses and
// prefixes. Text that is no address is none of the list.
func From(t cloud.Token, ip string) bool {
	if len(t.IPAllowlist) == 0 {
		return true
	}
	at, err := netip.ParseAddr(ip)
	if err != nil {
		return false
	}
	at = at.Unmap().WithZone("")
	for _, text := range t.IPAllowlist {
		if !strings.Contains(text, "/") {
			a, err := netip.ParseAddr(text)
			if err == nil && a == at {
				return true
			}
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err == nil && p.Contains(at) {
			return true
		}
	}
	return false
}
