package store

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// A large notice goes in parts that PostgreSQL carries, and names every device and
// opening once.
func TestNoticesFitWhatPostgreSQLCarries(t *testing.T) {
	t.Parallel()
	for _, count := range []int{0, 1, noticeIDs, noticeIDs + 1, 1000} {
		var n Notice
		for i := range count {
			one := Notice{Devices: []cloud.DeviceID{cloud.DeviceID(1<<62 + i)}, Openings: []string{fmt.Sprintf("op_%024d", i)}, Touches: []cloud.Touch{{Kind: "Deliveries", Device: cloud.DeviceID(i)}}}
			n.add(one)
			n.add(one)
		}
		parts, err := n.parts("me")
		require.NoError(t, err)
		devices, openings := map[cloud.DeviceID]int{}, map[string]int{}
		for _, p := range parts {
			require.Less(t, len(p), 8000)
			var got wrapped
			require.NoError(t, json.Unmarshal([]byte(p), &got))
			require.Equal(t, "me", got.From)
			require.False(t, got.Missed)
			for _, d := range got.Devices {
				devices[d]++
			}
			for _, o := range got.Openings {
				openings[o]++
			}
		}
		require.Len(t, devices, count)
		require.Len(t, openings, count)
		for d, times := range devices {
			require.Equal(t, 1, times, "%d", d)
		}
	}
}
