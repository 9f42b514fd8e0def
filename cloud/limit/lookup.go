package limit

import (
	"net/netip"
	"time"
)

// Lookups bounds how often people without an account ask about parcels. Many
// recipients share an address (a house, an office, a carrier's network), so each
// parcel has a limit of its own at each address and one recipient does not use up
// another's. Guessing numbers is bounded by address: who asks for what is not
// there uses up the misses, and then only gets answers about parcels that this
// address found within the last minute. Safe for concurrent use.
type Lookups struct{ buckets *Buckets }

// LookupLimits are calls a minute; a limit of 0 or less lets everything pass.
type LookupLimits struct {
	Parcel  int // about one parcel, from one address
	Address int // about all parcels, from one address
	Misses  int // about what is not there, from one address
}

// NewLookups counts in buckets, under keys that begin with lookup.
func NewLookups(b *Buckets) Lookups { return Lookups{b} }

// Take takes a call about a parcel from an address.
func (l Lookups) Take(address, parcel string, lim LookupLimits, now time.Time) State {
	address = Address(address)
	key := address + "/" + parcel
	if found := l.buckets.Peek("lookup/found/"+key, 1, now); found.OK {
		if s := l.buckets.Peek("lookup/missed/"+address, lim.Misses, now); !s.OK {
			return s
		}
	}
	s := l.buckets.Take("lookup/parcel/"+key, lim.Parcel, now)
	if !s.OK {
		return s
	}
	if all := l.buckets.Take("lookup/address/"+address, lim.Address, now); !all.OK {
		return all
	}
	return s
}

// Found notes that the parcel was there: for a minute, misses do not stop calls
// about it.
func (l Lookups) Found(address, parcel string, now time.Time) {
	l.buckets.Take("lookup/found/"+Address(address)+"/"+parcel, 1, now)
}

// Missed notes that nothing was there.
func (l Lookups) Missed(address string, lim LookupLimits, now time.Time) {
	l.buckets.Take("lookup/missed/"+Address(address), lim.Misses, now)
}

// Address is what stands for a network address in limits: of IPv6 the network of
// 64 bits, all of whose addresses one caller may have.
func Address(ip string) string {
	a, err := netip.ParseAddr(ip)
	if err != nil || !a.Is6() || a.Is4In6() {
		return ip
	}
	p, err := a.WithZone("").Prefix(64)
	if err != nil {
		return ip
	}
	return p.String()
}
