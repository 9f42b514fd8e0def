package device_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/protocol/wire"
)

// The counters of the link say what came: records and batches that were stored,
// batches that brought nothing new, and batches that left a hole.
func TestCountersOfTheLink(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		m := &w.Devices.Metrics
		synctest.Wait()
		batches, records, repeats, holes := m.Batches.Load(), m.Records.Load(), m.Repeats.Load(), m.Holes.Load()
		first := d.Send(1, scans(d, 3)...)
		d.Ack()
		d.Up(wire.MustEncode(first))
		d.Ack()
		d.Batch(1, scans(d, 2)...) // lost on its way
		d.Send(1, scans(d, 1)...)
		d.Ack()
		synctest.Wait()
		require.Equal(t, []uint64{1, 3, 1, 1}, []uint64{m.Batches.Load() - batches, m.Records.Load() - records, m.Repeats.Load() - repeats, m.Holes.Load() - holes})
	})
}
