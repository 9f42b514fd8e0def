package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// slots: a slot has one running process at a time, and passes on when that leaves it or
// has lost its lease.
func slots(t *testing.T, db *store.DB) {
	ctx := t.Context()
	got, err := db.TakeSlots(ctx, 0b111)
	require.NoError(t, err)
	require.Zero(t, got, "a process without a lease gets none")
	self := cloud.Node{Instance: db.Instance(), Name: "here", SchemaNumber: store.SchemaNumber(), StartedAt: now}
	require.NoError(t, db.EnterNode(ctx, self, cloud.Node{}))
	got, err = db.TakeSlots(ctx, 0b111|1<<63)
	require.NoError(t, err)
	require.EqualValues(t, uint64(0b111|1<<63), got)
	got, err = db.TakeSlots(ctx, 0b1110)
	require.NoError(t, err)
	require.EqualValues(t, 0b1110, got, "what it has already is given again")
	require.NoError(t, db.LeaveSlots(ctx, 0b1000))
	require.NoError(t, db.EndNode(ctx, self.Instance, -1))
}
