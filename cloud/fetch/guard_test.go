package fetch

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"code.dny.dev/ssrf"
	"github.com/postern-io/postern/cloud/fetch/fetchtest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// next and last of a range, and the neighbours outside of it.
func bounds(p netip.Prefix) (before, first, last, after netip.Addr) {
	first = p.Masked().Addr()
	b := first.AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	last, _ = netip.AddrFromSlice(b)
	return first.Prev(), first, last, last.Next()
}

func TestGuardRanges(t *testing.T) {
	t.Parallel()
	g := NewGuard(GuardConfig{})
	inside := func(a netip.Addr) bool { // by the ranges alone
		for _, p := range append(append([]netip.Prefix{}, forbidden4...), forbidden6...) {
			if p.Contains(a) {
				return true
			}
		}
		return a.Is6() && !public6.Contains(a)
	}
	for _, p := range append(append([]netip.Prefix{}, forbidden4...), forbidden6...) {
		before, first, last, after := bounds(p)
		require.False(t, g.Allows(first), "%v", first)
		require.False(t, g.Allows(last), "%v", last)
		for _, a := range []netip.Addr{before, after} {
			if a.IsValid() {
				require.Equal(t, !inside(a), g.Allows(a), "%v beside %v", a, p)
			}
		}
	}
	for _, a := range []string{"::", "::1", "::ffff:8.8.8.8", "::8.8.8.8", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1", "5f00::1", "fd00:ec2::254",
		"fe80::1", "fec0::1", "ff02::1", "2002:7f00:1::", "2001::1", "169.254.169.254", "255.255.255.255", "3fff::1", "4000::", "1fff::"} {
		require.False(t, g.Allows(netip.MustParseAddr(a)), a)
	}
	for _, a := range []string{"8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "2a00::1", "2620:4f:8001::"} {
		require.True(t, g.Allows(netip.MustParseAddr(a)), a)
	}
	require.False(t, g.Allows(netip.Addr{}))
	require.False(t, g.Allows(netip.MustParseAddr("2a00::1%eth0")))
}

// Whatever a list kept by others refuses, ours refuses too.
func TestGuardIsNoWiderThanAnotherList(t *testing.T) {
	t.Parallel()
	g, other := NewGuard(GuardConfig{}), ssrf.New(ssrf.WithAnyPort())
	rapid.Check(t, func(t *rapid.T) {
		var a netip.Addr
		if rapid.Bool().Draw(t, "v4") {
			var b [4]byte
			binary.BigEndian.PutUint32(b[:], rapid.Uint32().Draw(t, "a"))
			a = netip.AddrFrom4(b)
		} else {
			var b [16]byte
			binary.BigEndian.PutUint64(b[:], rapid.Uint64().Draw(t, "hi"))
			binary.BigEndian.PutUint64(b[8:], rapid.Uint64().Draw(t, "lo"))
			b[0] = rapid.SampledFrom([]byte{0, 0x20, 0x26, 0x2a, 0x3f, 0xfc, 0xfe, b[0]}).Draw(t, "top")
			a = netip.AddrFrom16(b)
		}
		if other.SafeAddr(a) != nil {
			require.False(t, g.Allows(a), "%v", a)
		}
	})
}

func TestGuardNetworks(t *testing.T) {
	t.Parallel()
	f := func(network, addr string, want bool) {
		t.Helper()
		g := NewGuard(GuardConfig{Networks: prefixes(network)})
		require.Equal(t, want, g.Allows(netip.MustParseAddr(addr)))
	}
	f("10.1.0.0/16", "10.1.2.3", true)
	f("10.1.0.0/16", "10.2.2.3", false)
	f("0.0.0.0/0", "127.0.0.1", false)
	f("0.0.0.0/0", "169.254.169.254", false)
	f("0.0.0.0/0", "0.0.0.0", false)
	f("127.0.0.1/32", "127.0.0.1", true)
	f("127.0.0.0/8", "127.9.9.9", true)
	f("127.0.0.1/32", "127.0.0.2", false)
	f("169.254.0.0/16", "169.254.1.1", true)
	f("::/0", "::1", false)
	f("::1/128", "::1", true)
	f("::/0", "fe80::1", false)
}

// A deployment behind NAT64 may list its network: what is reached through it is
// looked at as if it were reached without.
func TestGuardLooksThroughNAT64(t *testing.T) {
	t.Parallel()
	g := NewGuard(GuardConfig{Networks: prefixes("64:ff9b::/96", "10.1.0.0/16", "::/0")})
	for addr, want := range map[string]bool{"64:ff9b::8.8.8.8": true, "64:ff9b::127.0.0.1": false, "64:ff9b::10.0.0.1": false, "64:ff9b::169.254.169.254": false,
		"64:ff9b::10.1.2.3": true, "64:ff9b::0.0.0.0": false, "::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false} {
		require.Equal(t, want, g.Allows(netip.MustParseAddr(addr)), addr)
	}
	require.False(t, NewGuard(GuardConfig{}).Allows(netip.MustParseAddr("64:ff9b::8.8.8.8")))
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	g := NewGuard(GuardConfig{Hosts: []string{"postern.example"}})
	for _, u := range []string{"", "ftp://a.example.com/", "http://a.example.com/", "//a.example.com/", "https:a.example.com", "https://",
		"https://user@a.example.com/", "https://u:p@a.example.com/", "https://a.example.com/#x", "https://a.example.com/#", "https://a.example.com:22/",
		"https://a.example.com:0/", "https://a.example.com:99999/", "https://localhost/", "https://intranet/", "https://x.localhost/", "https://x.local/",
		"https://x.internal/", "https://x.home.arpa/", "https://x.lan/", "https://x.svc/", "https://postern.example/", "https://api.postern.example/",
		"https://127.1/", "https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/", "https://0x7f.1/", "https://127.0.0.1/", "https://10.0.0.1./",
		"https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[fe80::1%25eth0]/", "https://[::]/", "https://a..b/", "https://-a.example.com/",
		"https://a.example.com/\r\nX: y", "https://a b.example.com/", "https://" + string(make([]byte, 3000)), "https://LOCALHOST/",
		"https://x.LOCAL./", "https://１２７.0.0.1/"} {
		_, err := g.CheckURL(u)
		require.ErrorIs(t, err, ErrBlocked, u)
	}
	f := func(raw, host, header, path, masked string, port uint16) {
		t.Helper()
		got, err := g.CheckURL(raw)
		require.NoError(t, err)
		require.Equal(t, []any{host, header, path, masked, port}, []any{got.Host, got.HostHeader(), got.Path, got.Masked, got.Port})
	}
	f("https://a.example.com", "a.example.com", "a.example.com", "/", "https://a.example.com", 443)
	f("https://A.Example.COM.:8443/h?k=secret&z", "a.example.com", "a.example.com:8443", "/h?k=secret&z", "https://a.example.com:8443/h?k=***&z=***", 8443)
	f("https://bücher.example/ü", "xn--bcher-kva.example", "xn--bcher-kva.example", "/%C3%BC", "https://xn--bcher-kva.example/%C3%BC", 443)
	f("https://8.8.8.8/", "8.8.8.8", "8.8.8.8", "/", "https://8.8.8.8/", 443)
	f("https://[2606:4700:4700::1111]/", "2606:4700:4700::1111", "[2606:4700:4700::1111]", "/", "https://[2606:4700:4700::1111]/", 443)
	_, err := NewGuard(GuardConfig{HTTP: true, Ports: []uint16{9000}}).CheckURL("http://a.example.com:9000/")
	require.NoError(t, err)
}

// Whatever the validator lets pass as an address, the guard lets pass too.
func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"https://8.8.8.8/", "https://[2606::1]/", "https://0x7f.0.0.1/", "https://a.example.com:8443/x?y=z"} {
		f.Add(s)
	}
	g := NewGuard(GuardConfig{})
	f.Fuzz(func(t *testing.T, raw string) {
		target, err := g.CheckURL(raw)
		if err != nil {
			return
		}
		if a, err := netip.ParseAddr(target.Host); err == nil && !g.Allows(a) {
			t.Fatalf("%q leads to %v", raw, a)
		}
		if !printable(target.HostHeader()) || !printable(target.Path) || target.Port != 443 && target.Port != 8443 {
			t.Fatalf("%q gives %+v", raw, target)
		}
	})
}

func TestCheckSave(t *testing.T) {
	t.Parallel()
	n, g := fetchtest.NewNetwork(), NewGuard(GuardConfig{})
	n.Names["mixed.example.com"] = []netip.Addr{fetchtest.AddrA.Addr(), netip.MustParseAddr("10.0.0.1")}
	f := func(url string, unresolved bool, want error) {
		t.Helper()
		u, err := g.CheckSave(t.Context(), n, url)
		require.Equal(t, unresolved, u)
		require.ErrorIs(t, err, want)
	}
	f("https://a.example.com/", false, nil)
	f("https://later.example.com/", true, nil)
	f("https://mixed.example.com/", false, ErrBlocked)
	f("https://10.0.0.1/", false, ErrBlocked)
	synctest.Test(t, func(t *testing.T) { // where names outside are not known
		start := time.Now()
		u, err := g.CheckSave(t.Context(), silence{}, "https://a.example.com/")
		require.NoError(t, err)
		require.True(t, u)
		require.Equal(t, saveResolve, time.Since(start))
	})
}

func TestWhatAGuardAllowsChanges(t *testing.T) {
	t.Parallel()
	g := NewGuard(GuardConfig{})
	_, err := g.CheckURL("http://shop.example/")
	require.ErrorIs(t, err, ErrBlocked)
	g.Set(GuardConfig{HTTP: true, Hosts: []string{"other.example"}})
	_, err = g.CheckURL("http://shop.example/")
	require.NoError(t, err)
	_, err = g.CheckURL("http://a.other.example/")
	require.ErrorIs(t, err, ErrBlocked)
}
