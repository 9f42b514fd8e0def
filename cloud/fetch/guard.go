package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/idna"
)

// GuardConfig says which receivers a deployment allows beyond public https.
type GuardConfig struct {
	// Networks are private networks that receivers may be in, for installations
	// on the customer's premises, tests and the demo. Loopback and link-local
	// addresses are only allowed by a network that lies within theirs.
	Networks []netip.Prefix
	// Ports are allowed beside 443 and 8443 (80 and 8080 with HTTP).
	Ports []uint16
	// HTTP allows plain http.
	HTTP bool
	// Hosts are names that are never receivers, such as the platform's own. A
	// name covers all names below it.
	Hosts []string
}

// Guard decides where the platform may connect to on behalf of a business.
// What it checks when an address is saved is for friendly messages; decisive is
// the check of each concrete address right before a socket connects. It is safe
// for concurrent use.
type Guard struct{ cfg atomic.Pointer[GuardConfig] }

// NewGuard returns a guard.
func NewGuard(cfg GuardConfig) *Guard {
	g := &Guard{}
	g.Set(cfg)
	return g
}

// Set changes what the guard allows, from the next check on. Connections that are open
// stay.
func (g *Guard) Set(cfg GuardConfig) { g.cfg.Store(&cfg) }

// ErrBlocked is wrapped by every refusal of a Guard. Its text names no address
// that the caller did not give.
var ErrBlocked = errors.New("address is not allowed for webhooks")

const maxURL = 2048

// Names that only mean something inside.
var insideSuffixes = []string{"localhost", "local", "internal", "home.arpa", "lan", "svc"}

// Target is a receiver's address taken apart.
type Target struct {
	TLS  bool
	Host string // lower case ASCII, an address without brackets
	Port uint16
	Path string // with the query, never empty
	// Masked is the address with the values of its query hidden, for logs.
	Masked string
	addr   netip.Addr // when Host is a literal
}

// HostHeader is the value of Host: the port only when it is not the scheme's.
func (t *Target) HostHeader() string {
	host := t.Host
	if t.addr.Is6() {
		host = "[" + host + "]"
	}
	if t.TLS && t.Port == 443 || !t.TLS && t.Port == 80 {
		return host
	}
	return host + ":" + strconv.Itoa(int(t.Port))
}

// CheckURL takes a receiver's address apart and refuses what can be refused
// without asking the network.
func (g *Guard) CheckURL(raw string) (*Target, error) {
	if raw == "" || len(raw) > maxURL {
		return nil, fmt.Errorf("%w: an address has 1 to %d characters", ErrBlocked, maxURL)
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return nil, fmt.Errorf("%w: it does not parse", ErrBlocked)
	}
	t := &Target{TLS: u.Scheme == "https", Path: u.RequestURI()}
	switch {
	case !t.TLS && (u.Scheme != "http" || !g.cfg.Load().HTTP):
		return nil, fmt.Errorf("%w: the scheme must be https", ErrBlocked)
	case u.User != nil:
		return nil, fmt.Errorf("%w: it holds a user name", ErrBlocked)
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return nil, fmt.Errorf("%w: it holds a fragment", ErrBlocked)
	case !printable(t.Path):
		return nil, fmt.Errorf("%w: its path holds other characters than printable ASCII", ErrBlocked)
	}
	if err := g.host(t, u); err != nil {
		return nil, err
	}
	if err := g.port(t, u); err != nil {
		return nil, err
	}
	t.Masked = masked(u, t)
	return t, nil
}

func printable(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

func (g *Guard) host(t *Target, u *url.URL) error {
	name := u.Hostname()
	if strings.HasPrefix(u.Host, "[") || strings.Count(name, ":") > 0 {
		a, err := netip.ParseAddr(name)
		if err != nil || !a.Is6() || a.Zone() != "" {
			return fmt.Errorf("%w: it holds no plain IPv6 address", ErrBlocked)
		}
		return g.literal(t, a)
	}
	name, err := idna.Lookup.ToASCII(strings.TrimSuffix(name, "."))
	if err != nil || name == "" || len(name) > 253 {
		return fmt.Errorf("%w: the host name is not valid", ErrBlocked)
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if numeric(last) { // some resolvers read shortened, octal and hexadecimal forms
		a, err := netip.ParseAddr(name)
		if err != nil {
			return fmt.Errorf("%w: the host is an address in an unusual form", ErrBlocked)
		}
		return g.literal(t, a)
	}
	if slices.ContainsFunc(strings.Split(name, "."), func(l string) bool { return l == "" || len(l) > 63 }) {
		return fmt.Errorf("%w: the host name is not valid", ErrBlocked)
	}
	if !strings.Contains(name, ".") {
		return fmt.Errorf("%w: the host name has no dot", ErrBlocked)
	}
	for _, s := range slices.Concat(insideSuffixes, g.cfg.Load().Hosts) {
		if name == s || strings.HasSuffix(name, "."+s) {
			return fmt.Errorf("%w: names of this kind are inside", ErrBlocked)
		}
	}
	t.Host = name
	return nil
}

func (g *Guard) literal(t *Target, a netip.Addr) error {
	if !g.Allows(a) {
		return fmt.Errorf("%w: it is not a public one", ErrBlocked)
	}
	t.Host, t.addr = a.String(), a
	return nil
}

// numeric reports whether a label could be part of an address: digits, or
// hexadecimal after 0x.
func numeric(label string) bool {
	if rest, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(rest, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

func (g *Guard) port(t *Target, u *url.URL) error {
	t.Port = 80
	if t.TLS {
		t.Port = 443
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("%w: the port is not valid", ErrBlocked)
		}
		t.Port = uint16(n)
	}
	allowed := t.Port == 443 || t.Port == 8443 || g.cfg.Load().HTTP && (t.Port == 80 || t.Port == 8080)
	if !allowed && !slices.Contains(g.cfg.Load().Ports, t.Port) {
		return fmt.Errorf("%w: the port is none of the allowed ones", ErrBlocked)
	}
	return nil
}

// masked hides the values of a query, which often hold a receiver's own keys.
func masked(u *url.URL, t *Target) string {
	m := u.Scheme + "://" + t.HostHeader() + u.EscapedPath()
	if u.RawQuery == "" {
		return m
	}
	var parts []string
	for _, p := range strings.Split(u.RawQuery, "&") {
		name, _, _ := strings.Cut(p, "=")
		parts = append(parts, name+"=***")
	}
	return m + "?" + strings.Join(parts, "&")
}

func prefixes(s ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(s))
	for i := range s {
		out[i] = netip.MustParsePrefix(s[i])
	}
	return out
}

// Addresses that are no public receiver's (IANA special-purpose registries).
var (
	forbidden4 = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
		"192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4")
	public6    = netip.MustParsePrefix("2000::/3")
	forbidden6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	// Never by way of a wider network.
	localOnly = prefixes("127.0.0.0/8", "169.254.0.0/16", "::1/128", "fe80::/10")
)

// Allows reports whether a socket may connect to a.
func (g *Guard) Allows(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	return g.listed(a) || public(a)
}

func public(a netip.Addr) bool {
	in := func(ps []netip.Prefix) bool {
		return slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	if a.Is4() {
		return !in(forbidden4)
	}
	return public6.Contains(a) && !in(forbidden6) // mapped IPv4 addresses are outside of public6
}

// listed reports whether the deployment allows a by name of its network.
func (g *Guard) listed(a netip.Addr) bool {
	if inner, ok := embedded(a); ok && !g.Allows(inner) {
		return false
	}
	return slices.ContainsFunc(g.cfg.Load().Networks, func(p netip.Prefix) bool {
		if !p.Contains(a) || a.IsUnspecified() {
			return false
		}
		for _, home := range localOnly {
			if home.Contains(a) && !(home.Contains(p.Addr()) && p.Bits() >= home.Bits()) {
				return false
			}
		}
		return true
	})
}

// embedded is the IPv4 address that is reached by way of an IPv6 one: a mapped one,
// or one of NAT64.
func embedded(a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:])), a.Is4In6() || nat64.Contains(a)
}

// Resolver looks up the addresses of a name; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// CheckSave checks an address that a user wants to save, with the addresses its
// name has now. A name that does not resolve yet, or not soon enough for a user
// who waits, is fine and reported by unresolved.
func (g *Guard) CheckSave(ctx context.Context, r Resolver, raw string) (unresolved bool, err error) {
	t, err := g.CheckURL(raw)
	if err != nil || t.addr.IsValid() {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, saveResolve)
	defer cancel()
	addrs, err := r.LookupNetIP(ctx, "ip", t.Host)
	if err != nil {
		return true, nil
	}
	return false, g.all(addrs)
}

// all refuses a name if any of its addresses is forbidden: which one a
// connection would get is the name owner's choice.
func (g *Guard) all(addrs []netip.Addr) error {
	for _, a := range addrs {
		if !g.Allows(a.Unmap()) {
			return fmt.Errorf("%w: its name leads inside", ErrBlocked)
		}
	}
	return nil
}

// names caches what names resolve to for a short time.
type names struct {
	resolver Resolver
	mu       sync.Mutex
	known    map[string]resolved
}

type resolved struct {
	addrs []netip.Addr
	until time.Time
}

// NameLife is how long the addresses of a name are known without another lookup.
const NameLife = 60 * time.Second

const (
	maxNames    = 4096
	saveResolve = 2 * time.Second
)

func (n *names) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	k, ok := n.known[host]
	n.mu.Unlock()
	if ok && time.Now().Before(k.until) {
		return k.addrs, nil
	}
	addrs, err := n.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	n.remember(host, addrs)
	return addrs, nil
}

// remember remembers what a name resolves to.
func (n *names) remember(host string, addrs []netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) >= maxNames {
		clear(n.known)
	}
	n.known[host] = resolved{addrs, time.Now().Add(NameLife)}
}

var _ Resolver = (*net.Resolver)(nil)
