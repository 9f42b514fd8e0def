package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/protocol/wire"
)

// Of the batches of a device that are kept as evidence only, the newest stay; the
// journal proper, and other devices, have nothing to do with it.
func asidesAreBounded(t *testing.T, db *store.DB) {
	write(t, db, 0, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{device(1), device(2)},
		Batches: []cloud.JournalBatch{
			{DeviceID: 1, Epoch: epoch(1), First: 1, Count: 1, Bytes: []byte{1}}, {DeviceID: 2, Epoch: epoch(2), First: 7, Count: 1, Bytes: []byte{1}, Aside: wire.RefusedFork}}}})
	kept := func(dev cloud.DeviceID) (firsts []uint64, size int) {
		rows, err := db.ListAsides(t.Context(), dev, 0, 1000)
		require.NoError(t, err)
		for _, r := range rows {
			firsts, size = append(firsts, r.First), size+len(r.Bytes)
		}
		return firsts, size
	}
	aside := func(first uint64, size int) cloud.JournalBatch {
		return cloud.JournalBatch{DeviceID: 1, Epoch: epoch(1), First: first, Count: 1, Bytes: make([]byte, size), Aside: wire.RefusedBadBatch}
	}
	for n := uint64(1); n <= cloud.MaxAside+30; n += 2 { // one may be refused again and again
		write(t, db, 1, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Batches: []cloud.JournalBatch{aside(n, 10), aside(n+1, 10)}}})
	}
	firsts, _ := kept(1)
	require.Len(t, firsts, cloud.MaxAside)
	require.EqualValues(t, 31, firsts[0], "the newest stay")
	require.EqualValues(t, cloud.MaxAside+30, firsts[len(firsts)-1])
	for n := range uint64(90) {
		write(t, db, 1, &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Batches: []cloud.JournalBatch{aside(1000+n, wire.MaxPayload)}}})
	}
	firsts, size := kept(1)
	require.EqualValues(t, 1089, firsts[len(firsts)-1])
	require.LessOrEqual(t, size, cloud.MaxAsideBytes)
	require.Greater(t, size, cloud.MaxAsideBytes-wire.MaxPayload-10)
	others, _ := kept(2)
	require.Equal(t, []uint64{7}, others)
	look(t, db, func(v cloud.View) {
		rows, err := v.Journal(1, epoch(1), 0, 1, 1)
		require.NoError(t, err)
		require.Len(t, rows, 1)
	})
}
