package wiring

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A layout fits on its board, its sizes are known ones, and no two programs take one
// address.
func TestLayoutsFitTheirBoard(t *testing.T) {
	t.Parallel()
	for _, x := range Templates() {
		require.LessOrEqual(t, x.Doors(), int(Family.Channels()), x.Name)
		for _, size := range x.Each() {
			require.Contains(t, []string{"S", "M", "L", "XL"}, size)
		}
		got, ok := Find(x.Name)
		require.True(t, ok)
		require.Equal(t, x, got)
	}
	_, ok := Find("huge")
	require.False(t, ok)
	seen := map[string]bool{}
	for _, a := range []string{LineAddress, SimulatorAddress, ScreenAddress} {
		host, _, err := net.SplitHostPort(a)
		require.NoError(t, err)
		require.True(t, net.ParseIP(host).IsLoopback())
		require.False(t, seen[a], a)
		seen[a] = true
	}
}
