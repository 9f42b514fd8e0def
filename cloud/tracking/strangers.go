package tracking

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/limit"
)

// What reading costs an address, in units. A number that everybody can compute
// and that is missing is a guess.
const (
	costFound    = 1
	costMistyped = 1
	costMiss     = 5
	costOldMiss  = 10
)

// Bounds beside the units of a minute.
const (
	burst          = 100.0 / 60 // of the units of a minute
	networkShare   = 10         // how many times an address's units its network has
	missesToBlock  = 20
	missesOfTokens = 1000 // an hour
	guessesAnHour  = 10
)

// strangers bounds what callers without a token read. The zero value of its
// limits bounds nothing.
type strangers struct {
	units, networks, guesses, tokens *limit.Budget
	blocks                           *limit.Blocks
}

func newStrangers(perMinute int) *strangers {
	if perMinute <= 0 {
		return &strangers{}
	}
	n := float64(perMinute)
	return &strangers{units: limit.NewBudget(n, n*burst), networks: limit.NewBudget(n*networkShare, n*networkShare),
		guesses: limit.NewBudget(guessesAnHour/60.0, guessesAnHour), tokens: limit.NewBudget(missesOfTokens/60.0, missesOfTokens),
		blocks: limit.NewBlocks(missesToBlock, 30*time.Second, time.Hour)}
}

// reader is whose units a read costs: an address and its network, or a token's
// account.
type reader struct {
	account       string
	host, network string
}

func readerOf(c cloud.Caller, address string) reader {
	if !c.Anonymous() {
		return reader{account: strconv.FormatInt(int64(c.Account.ID), 10)}
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return reader{}
	}
	ip = ip.Unmap()
	host, network := 32, 24
	if ip.Is6() {
		host, network = 64, 48
	}
	return reader{host: masked(ip, host), network: masked(ip, network)}
}

func masked(ip netip.Addr, bits int) string {
	p, err := ip.WithZone("").Prefix(bits)
	if err != nil {
		return ip.String()
	}
	return p.String()
}

// admit says how long a reader has to wait, 0 when it may read now.
func (s *strangers) admit(r reader, now time.Time) time.Duration {
	if s.units == nil {
		return 0
	}
	if r.account != "" {
		return s.tokens.Wait(r.account, now)
	}
	if r.host == "" {
		return 0
	}
	return max(s.blocks.Wait(r.host, now), s.units.Wait(r.host, now), s.networks.Wait(r.network, now))
}

// charge takes what a read cost.
func (s *strangers) charge(r reader, cost float64, now time.Time) {
	miss := cost >= costMiss
	switch {
	case s.units == nil:
	case r.account != "" && miss:
		s.tokens.Spend(r.account, 1, now)
	case r.host != "":
		s.units.Spend(r.host, cost, now)
		s.networks.Spend(r.network, cost, now)
		if miss {
			s.blocks.Miss(r.host, now)
		}
	}
}

// mayGuess says how long an address has to wait with its next digits.
func (s *strangers) mayGuess(address string, now time.Time) time.Duration {
	r := readerOf(cloud.Caller{}, address)
	if s.guesses == nil || r.host == "" {
		return 0
	}
	return s.guesses.Wait(r.host, now)
}

// guessed counts wrong digits of an address.
func (s *strangers) guessed(address string, now time.Time) {
	if r := readerOf(cloud.Caller{}, address); s.guesses != nil && r.host != "" {
		s.guesses.Spend(r.host, 1, now)
	}
}
