package board_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/board"
	"github.com/postern-io/postern/protocol/lockbus"
)

func TestEachUnlockRequestIsTracedBeforeItIsWritten(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, fam lockbus.Family) {
		var traces []edge.PulseTrace
		var before [][]edge.PulseOutcome
		var r *rig
		inBubble(t, single(fam), func(x *rig) {
			r = x
			r.after(2 * time.Second)
			by := edge.Authority{Boot: 3, OpeningID: "op_1", Act: "cmd-1", Kind: edge.ByCommand, Mono: 9}
			r.cab.Pulse(2, by)
			r.cab.Pulse(2, by)
			r.after(4 * time.Second)
			synctest.Wait()
			require.Len(t, traces, 2)
			for i, got := range traces {
				require.Len(t, before[i], i, "the answer comes after")
				require.False(t, got.At.IsZero())
				got.At = time.Time{}
				require.Equal(t, edge.PulseTrace{Board: "A", Channel: 3, Door: 2, Authority: by}, got)
			}
			r.cab.Pulse(99, by) // there is no such door
			r.after(time.Second)
			require.Len(t, traces, 2, "nothing was written")
		}, func(c *board.Config) {
			c.Trace = func(p edge.PulseTrace) {
				traces, before = append(traces, p), append(before, results(r.all()))
			}
		})
	})
}
