package device_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/protocol/wire"
)

// A device that was acknowledged more than is stored gets what is stored, once it has
// proven that its status is no record of an earlier one; its new epoch is taken.
func TestDeviceAheadOfTheDatabaseGetsWhatIsStored(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		d.Status(nil)
		drain(d)
		d.Tell(wire.KindTamper, wire.Tamper{What: "stored"})
		stored := d.Next
		refused := func() (out []wire.Ack) {
			time.Sleep(time.Second)
			for len(d.Acks) > 0 {
				if a := <-d.Acks; a.Refused != "" {
					out = append(out, a)
				}
			}
			return out
		}
		healthy := func(s *wire.Status) { s.Acked, s.Backlog = []uint64{stored[0], 1}, []uint64{3, 0}; s.Ends[0].Last += 3 }
		d.Status(healthy)
		require.Empty(t, refused(), "records that wait are none that were acknowledged")
		require.NotContains(t, d.Faults(), cloud.DevStoreFork)
		ahead := []func(*wire.Status){
			func(s *wire.Status) { s.Ends[0].Last += 5; s.Acked = []uint64{stored[0] + 3, 1} },
			func(s *wire.Status) { s.Ends[1].Last += 4; s.Acked = []uint64{stored[0], 3} },
			func(s *wire.Status) { s.Ends[0].Last += 5; s.Backlog = []uint64{2, 0} }, // an older agent
		}
		d.Status(ahead[0])
		require.Empty(t, refused(), "it may be a record")
		for i, f := range ahead {
			d.Status(f)
			a := refused()
			require.Len(t, a, 1, "%d", i)
			require.Equal(t, wire.Ack{Epoch: d.Epoch, Next: stored[0], Head: d.Head[0], Refused: wire.RefusedFork, Holds: stored[:]}, a[0])
		}
		require.Contains(t, d.Faults()[cloud.DevStoreFork].Detail, "restored")

		old := d.Epoch
		d.NewEpoch(devicetest.EpochOf(100), &old)
		d.Status(nil)
		drain(d)
		d.Tell(wire.KindGap, wire.Gap{Epoch: old, First: stored[0], Last: stored[0] + 2, Reason: wire.GapCloudRestored})
		d.Tell(wire.KindTamper, wire.Tamper{What: "it works on"})
		stats, err := w.Store.JournalStats(t.Context(), d.ID)
		require.NoError(t, err)
		require.EqualValues(t, 3, stats.Missing, "what is gone has a name")
	})
}
