package fetch

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/postern-io/postern/cloud/fetch/fetchtest"
	"github.com/stretchr/testify/require"
)

// Of several addresses of a name one that swallows connections leaves time for
// the others; when all do, the attempt ends in time.
func TestASilentAddressLeavesTimeForTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, r := fetchtest.NewNetwork(), &fetchtest.Receiver{}
		n.Serve[netip.AddrPortFrom(fetchtest.AddrA.Addr(), 80)] = r.Handle
		silent := fetchtest.Addrs("2606:4700::1", "2606:4700::2", "93.184.216.40")
		c, target := testClient(t, n, nil, "http://a.example.com/")
		c.dial = func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
			if slices.Contains(silent, a.Addr()) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return n.Dial(ctx, a)
		}
		for k := range silent {
			n.Names["a.example.com"] = append(slices.Clone(silent[:k+1]), fetchtest.AddrA.Addr())
			clear(c.names.known)
			a := c.Post(t.Context(), target, []byte(emptyPost), nil)
			require.Equal(t, []any{200, ""}, []any{a.Status, a.Code}, "after %d", k+1)
			require.Less(t, a.Phases.Connect, connectTimeout)
			c.Sweep(true)
		}
		n.Names["a.example.com"] = silent
		for range 30 { // the time of the last address and that of all end at once, in either order
			clear(c.names.known)
			a := c.Post(t.Context(), target, []byte(emptyPost), nil)
			require.Equal(t, CodeTimeout, a.Code)
			require.Equal(t, connectTimeout, a.Phases.Total)
		}
		n.Handlers.Wait()
	})
}
