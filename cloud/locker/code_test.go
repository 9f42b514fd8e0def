package locker

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/protocol/wire"
)

// Until a cabinet has reported a list number at or above a revocation, the old
// code may be live there, so its value is not drawn again. A revocation names no
// verifier: the former entry, which the cabinet had long confirmed, was missed.
func TestRevokedCodeIsNotDrawnAgainBeforeTheCabinetKnows(t *testing.T) {
	t.Parallel()
	db := storetest.OpenSQLite(t)
	now := time.Now().UTC()
	former, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	device := cloud.Device{ID: 7, BusinessID: 1, Code: "CAB-1", CodeList: 3, CreatedAt: now}
	require.NoError(t, db.Decide(context.Background(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "a"}}},
			DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{device}},
			LockerChanges: cloud.LockerChanges{Codes: []cloud.CodeRow{
				{DeviceID: 7, DeliveryID: 5, CreatedAt: now, DroppedAt: now, Entry: wire.CodeEntry{Number: 2, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: former}},
				{DeviceID: 7, DeliveryID: 5, CreatedAt: now, Entry: wire.CodeEntry{Number: 3, Op: wire.CodeRevoke, Kind: wire.CodePickup}},
			}}}, nil
	}))
	free := func(held uint64, verifier []byte) (err error) {
		d := device
		d.CodesHeld, d.HeldGeneration = held, 1
		require.NoError(t, db.Look(context.Background(), func(v cloud.View) error { err = codeFree(v, d, verifier); return nil }))
		return err
	}
	require.ErrorIs(t, free(1, former), errCodeTaken)
	require.ErrorIs(t, free(2, former), errCodeTaken, "it holds the code and not its revocation")
	require.NoError(t, free(3, former))
	require.NoError(t, free(2, other))
	device.CodeGeneration = 2 // a list that it holds of another generation confirms nothing
	require.ErrorIs(t, free(3, former), errCodeTaken)
}
