package device

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
)

// Whatever a session has queued, in whatever order: lanes and statuses keep their
// own order, nothing of lane 0 is taken past a status, nothing of lane 1 before a
// waiting lane 0, and a session with anything urgent is in the urgent line.
func TestLaneZeroIsTakenFirstAndNeverPastAStatus(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		x := &session{}
		var statuses, zeros []byte
		before := map[byte]int{} // statuses before a batch of lane 0
		for n := range byte(rnd.IntN(24)) {
			in := incoming{leaf: topic.Up, lane: wire.Lane(rnd.IntN(2)), payload: []byte{n}}
			switch {
			case rnd.IntN(5) == 0:
				in.leaf, in.lane = topic.Status, wire.Telemetry
				statuses = append(statuses, n)
			case in.lane == wire.Settlement:
				zeros = append(zeros, n)
				before[n] = len(statuses)
			}
			x.queue = append(x.queue, in)
		}
		all := len(x.queue)
		var gotStatuses, gotZeros []byte
		last, taken := -1, 0
		for len(x.queue) > 0 {
			urgent := len(gotStatuses)+len(gotZeros) < len(statuses)+len(zeros)
			require.Equal(t, urgent, x.class() == classUrgent)
			free := false // a batch of lane 0 with no status before it
			for _, in := range x.queue {
				if in.leaf != topic.Up {
					break
				}
				free = free || in.lane == wire.Settlement
			}
			run := x.cut()
			require.LessOrEqual(t, len(run), takeAtOnce)
			for _, in := range run {
				taken++
				n := in.payload[0]
				switch {
				case in.leaf != topic.Up:
					require.Len(t, run, 1)
					gotStatuses = append(gotStatuses, n)
				case in.lane == wire.Settlement:
					require.Len(t, gotStatuses, before[n])
					gotZeros = append(gotZeros, n)
				default:
					require.False(t, free, "lane 0 waits")
					require.Greater(t, int(n), last)
					last = int(n)
				}
			}
		}
		require.Equal(t, all, taken)
		require.Equal(t, statuses, gotStatuses)
		require.Equal(t, zeros, gotZeros)
	}
}
