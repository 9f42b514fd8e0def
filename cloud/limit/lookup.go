package limit

import (
	"math"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// Lookups is the one count of what callers ask about parcels: those without an
// account by address and by parcel, those with one by account.
//
//	what is counted                      by                   bound
//	a parcel that is there               address and parcel   Parcel a minute
//	                                     address              Address a minute; its network ten times as many
//	                                     parcel, no proof     Everywhere a minute, then waits of 30 s to 15 min
//	what is not there, by its cost       address              Misses units a minute; its network ten times as many
//	                                     address              20 at once, one more every 3 min, then waits of 30 s to 1 h
//	wrong digits of a recipient          address              10 an hour
//	what is not there, with an account   account              1,000 an hour
//
// Recipients share addresses (a house, an office, a carrier's network): while an
// address waits for its misses, parcels that it found within the last hour and
// callers who prove to be recipients pass. While a parcel waits, who proves to be
// its recipient passes. Counts live in memory of this node, which has its part of every
// bound, and are bounded. Safe for concurrent use.
type Lookups struct {
	lim               LookupLimits
	buckets           *Buckets
	misses, networks  *Budget
	guesses, accounts *Budget
	missing, crowded  *Blocks
	recent            *recent
}

// LookupLimits are figures a minute. Where Misses is 0 or less nothing is
// counted; of the others one of 0 or less lets everything pass.
type LookupLimits struct {
	Parcel     int // about one parcel, from one address
	Address    int // about all parcels, from one address
	Everywhere int // about one parcel, from all addresses, by callers without proof
	Misses     int // units of what is not there, from one address
}

// What a lookup costs an address that finds nothing, in units. A number of our
// own that is mistyped is no guess; one that can be computed is a better guess
// than others.
const (
	CostMistyped = 1
	CostMiss     = 5
	CostOldMiss  = 10
)

// Bounds beside those of LookupLimits.
const (
	missBurst     = 100.0 / 60 // of the units of a minute
	networkShare  = 10         // how many times an address's figures its network has
	missesToWait  = 20
	firstWait     = 30 * time.Second
	longestWait   = time.Hour
	longestCrowd  = 15 * time.Minute // that a parcel waits
	accountMisses = 1000             // an hour
	guessesAnHour = 10
	minutesAnHour = 60.0
	rememberFound = time.Hour
)

// NewLookups counts lookups, on so many nodes.
func NewLookups(lim LookupLimits, nodes Nodes) *Lookups {
	l := &Lookups{lim: lim}
	if lim.Misses <= 0 {
		return l
	}
	n := float64(lim.Misses)
	l.buckets = New(0, nodes)
	l.misses, l.networks = NewBudget(n, n*missBurst, nodes), NewBudget(n*networkShare, n*networkShare, nodes)
	l.guesses, l.accounts = NewBudget(guessesAnHour/minutesAnHour, guessesAnHour, nodes), NewBudget(accountMisses/minutesAnHour, accountMisses, nodes)
	l.missing, l.crowded = NewBlocks(missesToWait, firstWait, longestWait, nodes), NewBlocks(1, firstWait, longestCrowd, nodes)
	l.recent = newRecent(rememberFound)
	return l
}

// Lookup is one lookup of a caller without an account.
type Lookup struct {
	l             *Lookups // nil: nothing is counted
	host, network string
	number        string
	wait          time.Duration // of the address
	onProof       bool          // let in because of a proof that was not looked at yet
}

// Enter begins a lookup of a number, in the form that makes equal numbers equal.
// keyed says that the caller brings the secret of a link. wait is how long the
// caller has to wait, 0 when it may look; then Found or Missed ends the lookup.
// An address of "" is our own.
func (l *Lookups) Enter(address, number string, keyed bool, now time.Time) (k Lookup, wait time.Duration) {
	if l == nil || l.buckets == nil || address == "" {
		return Lookup{}, 0
	}
	k = Lookup{l: l, host: Address(address), network: network(address), number: number}
	k.wait = max(l.missing.Wait(k.host, now), l.misses.Wait(k.host, now), l.networks.Wait(k.network, now))
	switch {
	case k.wait == 0 || l.recent.has(k.host+"/"+number, now):
		return k, 0
	case keyed && l.buckets.Take("keyed/"+k.host, l.lim.Parcel, now).OK:
		k.onProof = true
		return k, 0
	}
	return k, k.wait
}

// Found ends a lookup that found a parcel. proven says that the caller has shown
// to be its recipient. A wait above 0 refuses the lookup after all.
func (k Lookup) Found(parcel int64, proven bool, now time.Time) (wait time.Duration) {
	l := k.l
	if l == nil {
		return 0
	}
	if k.onProof {
		if !proven {
			return k.wait
		}
		l.buckets.Give("keyed/"+k.host, now)
	}
	id := strconv.FormatInt(parcel, 10)
	for _, x := range []struct {
		key string
		per int
	}{{"parcel/" + k.host + "/" + id, l.lim.Parcel}, {"address/" + k.host, l.lim.Address}, {"network/" + k.network, networkShare * l.lim.Address}} {
		if s := l.buckets.Take(x.key, x.per, now); !s.OK {
			return s.wait()
		}
	}
	if !proven {
		if wait := l.crowd(id, now); wait > 0 {
			return wait
		}
	}
	l.recent.add(k.host+"/"+k.number, now)
	return 0
}

// crowd counts a lookup of one parcel by a caller without proof.
func (l *Lookups) crowd(parcel string, now time.Time) time.Duration {
	if wait := l.crowded.Wait(parcel, now); wait > 0 {
		return wait
	}
	s := l.buckets.Take("everywhere/"+parcel, l.lim.Everywhere, now)
	if s.OK {
		return 0
	}
	l.crowded.Miss(parcel, now)
	return max(s.wait(), l.crowded.Wait(parcel, now))
}

// Missed ends a lookup that found nothing, at a cost in units. A wait above 0
// refuses it, so that it does not say that there is nothing.
func (k Lookup) Missed(cost float64, now time.Time) (wait time.Duration) {
	l := k.l
	if l == nil {
		return 0
	}
	l.misses.Spend(k.host, cost, now)
	l.networks.Spend(k.network, cost, now)
	if cost >= CostMiss {
		l.missing.Miss(k.host, now)
	}
	if k.onProof {
		return k.wait
	}
	return 0
}

// State is where an address stands with lookups of all parcels.
func (l *Lookups) State(address string, now time.Time) State {
	if l.buckets == nil {
		return State{OK: true}
	}
	s := l.buckets.Peek("address/"+Address(address), l.lim.Address, now)
	s.OK = true // Enter and Found decide
	return s
}

// AccountWait is how long an account has to wait with its next lookup.
func (l *Lookups) AccountWait(id int64, now time.Time) time.Duration {
	if l == nil || l.buckets == nil {
		return 0
	}
	return l.accounts.Wait(strconv.FormatInt(id, 10), now)
}

// AccountMissed counts a lookup of an account that found nothing.
func (l *Lookups) AccountMissed(id int64, now time.Time) {
	if l != nil && l.buckets != nil {
		l.accounts.Spend(strconv.FormatInt(id, 10), 1, now)
	}
}

// Guess counts digits that an address is about to give, before they are
// compared: tries at once are no more than tries in a row. A wait above 0 refuses
// them. Right digits are given back by GuessedRight.
func (l *Lookups) Guess(address string, now time.Time) (wait time.Duration) {
	if l == nil || l.buckets == nil || address == "" {
		return 0
	}
	return l.guesses.Take(Address(address), now)
}

// GuessedRight gives back what Guess counted: the digits were right, or were not
// compared.
func (l *Lookups) GuessedRight(address string, now time.Time) {
	if l != nil && l.buckets != nil && address != "" {
		l.guesses.Spend(Address(address), -1, now)
	}
}

// wait is how long it takes until a bucket that refused has a token.
func (s State) wait() time.Duration { return time.Duration(s.RetryAfter) * time.Second }

// Seconds is a wait in whole seconds, rounded up.
func Seconds(wait time.Duration) int { return int(math.Ceil(wait.Seconds())) }

// Address is what stands for a network address in limits: of IPv6 the network of
// 64 bits, all of whose addresses one caller may have.
func Address(ip string) string {
	a, err := netip.ParseAddr(ip)
	if err != nil || !a.Is6() || a.Is4In6() {
		return ip
	}
	return masked(a, 64)
}

// network is the network that an address is in: 24 bits, or 48 of IPv6.
func network(ip string) string {
	a, err := netip.ParseAddr(ip)
	if err != nil {
		return ip
	}
	if a = a.Unmap(); a.Is6() {
		return masked(a, 48)
	}
	return masked(a, 24)
}

func masked(a netip.Addr, bits int) string {
	p, err := a.WithZone("").Prefix(bits)
	if err != nil {
		return a.String()
	}
	return p.String()
}

// recent remembers keys for a while. It is bounded as Buckets are.
type recent struct {
	life time.Duration
	max  int

	mu   sync.Mutex
	list map[string]time.Time // the last time
}

func newRecent(life time.Duration) *recent {
	return &recent{life: life, max: DefaultKeys, list: map[string]time.Time{}}
}

func (r *recent) has(key string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.list[key]
	return known && now.Sub(at) < r.life
}

func (r *recent) add(key string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.list[key]; !known && len(r.list) >= r.max {
		for k, at := range r.list {
			if now.Sub(at) >= r.life || len(r.list) > r.max-r.max/8 {
				delete(r.list, k)
			}
		}
	}
	r.list[key] = now
}
