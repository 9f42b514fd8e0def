package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// The status says which doors are out of use and behind which a parcel is not confirmed, so
// that the cloud finds out what orders never arrived.
func TestStatusTellsWhatDoorsAreFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		b.config(b.old, 1, nil)
		b.sync("n")
		st := b.agent.status()
		require.Equal(t, uint(wire.SnapshotOfUse), st.Snapshot)
		require.Empty(t, st.Blocked)
		require.Empty(t, st.Unconfirmed)
		_, err := b.agent.loop.Do(context.Background(), locker.Tampered{What: wire.TamperStoreRolledBack})
		require.NoError(t, err)
		b.codes(wire.Codes{To: 1, Generation: 3, Entries: []wire.CodeEntry{{Number: 1, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: make([]byte, 32),
			DeliveryRef: "LD-1", Active: wire.ActiveAtSettle, Doors: []uint{1}, Packages: map[uint][]string{1: {"PK-1"}}}}}, "n1")
		order := func(id string, kind wire.CommandKind, body any) {
			at := time.Now().UnixNano()
			_, err := b.agent.loop.Do(context.Background(), locker.Ordered{Command: wire.Command{CommandID: id, DeviceCode: "CAB-1", IssuedAt: at, ExpiresAt: at + int64(time.Minute),
				Kind: kind, Body: wire.MustEncode(body)}})
			require.NoError(t, err)
		}
		time.Sleep(time.Second)
		order("c1", wire.CmdBlock, wire.DoorReason{Door: 1, Reason: "bent"})
		st = b.agent.status()
		require.Equal(t, map[uint]string{1: "bent"}, st.Blocked)
		require.Equal(t, []uint{1}, st.Unconfirmed)
		order("c2", wire.CmdCloseSession, wire.CloseSession{OpeningID: "op_x", How: wire.CloseSettle, ConfirmedBy: wire.ByConsole, DeliveryRef: "LD-1", Packages: map[uint][]string{1: {"PK-1"}}})
		order("c3", wire.CmdUnblock, wire.DoorReason{Door: 1})
		st = b.agent.status()
		require.Empty(t, st.Blocked)
		require.Empty(t, st.Unconfirmed)
		require.Equal(t, "LD-1", st.Contents[1])
	})
}
