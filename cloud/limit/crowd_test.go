package limit

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Whatever comes and goes, no address has more connections than it may, all together are
// no more than they may be, and who is refused would have been one too many.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := Connections{Address: rapid.IntRange(1, 4).Draw(t, "address"), Total: rapid.IntRange(1, 9).Draw(t, "total")}
		own := netip.MustParseAddr("127.0.0.1")
		c := NewCrowd(most, func(a netip.Addr) bool { return a == own })
		type conn struct {
			from  string
			leave func()
		}
		var open []conn
		count := map[string]int{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(open) > 0 && rapid.Bool().Draw(t, "leaves") {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "who")
				open[i].leave()
				count[open[i].from]--
				open = append(open[:i], open[i+1:]...)
				continue
			}
			from := rapid.SampledFrom([]string{"127.0.0.1", "192.0.2.1", "192.0.2.2", "::ffff:192.0.2.1"}).Draw(t, "from")
			leave, ok := c.Enter(&net.TCPAddr{IP: net.ParseIP(from), Port: 4000})
			if from == "::ffff:192.0.2.1" {
				from = "192.0.2.1"
			}
			full := len(open) >= most.Total || from != "127.0.0.1" && count[from] >= most.Address
			require.Equal(t, !full, ok)
			if ok {
				open, count[from] = append(open, conn{from, leave}), count[from]+1
			}
		}
	})
	leave, ok := NewCrowd(Connections{Address: -1, Total: -1}, nil).Enter(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)})
	require.True(t, ok)
	leave()
}

func TestFiguresOfConnectionsChange(t *testing.T) {
	t.Parallel()
	c := NewCrowd(Connections{Address: 1}, nil)
	from := &net.TCPAddr{IP: net.IPv4(203, 0, 113, 7), Port: 1}
	leave, ok := c.Enter(from)
	require.True(t, ok)
	_, ok = c.Enter(from)
	require.False(t, ok)
	c.SetMost(Connections{Address: 2})
	_, ok = c.Enter(from)
	require.True(t, ok)
	c.SetMost(Connections{Total: 1})
	leave()
	_, ok = c.Enter(from)
	require.False(t, ok, "open ones count")
}
