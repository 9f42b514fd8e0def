package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// nodes proves leases of processes and of tasks.
func nodes(t *testing.T, db *store.DB) {
	ctx := t.Context()
	at := time.Now().UTC().Truncate(time.Millisecond)
	one := cloud.Node{Instance: "i1", Name: "one", Address: "http://one", Version: "v1", Schema: "s", SchemaNumber: store.SchemaNumber(), Edge: true, Core: true, StartedAt: at}
	require.NoError(t, db.EnterNode(ctx, one, cloud.Node{}))
	again := one
	again.Instance = "i2"
	require.ErrorIs(t, db.EnterNode(ctx, again, cloud.Node{}), cloud.ErrStale, "the name is taken")
	require.NoError(t, db.RenewNode(ctx, "i1"))
	one.Generation, one.Beat = 1, 1
	list, err := db.ListNodes(ctx)
	require.NoError(t, err)
	require.Equal(t, []cloud.Node{one}, list)

	require.ErrorIs(t, db.TakeTask(ctx, "sweep", "nobody"), cloud.ErrStale, "who has no lease takes no task")
	require.NoError(t, db.TakeTask(ctx, "sweep", "i1"))
	two := cloud.Node{Instance: "i3", Name: "two", SchemaNumber: store.SchemaNumber(), Core: true, StartedAt: at}
	require.NoError(t, db.EnterNode(ctx, two, cloud.Node{}))
	require.ErrorIs(t, db.TakeTask(ctx, "sweep", "i3"), cloud.ErrStale)
	tasks, err := db.ListTasks(ctx)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"sweep": "i1"}, tasks)
	require.NoError(t, db.LeaveTask(ctx, "sweep", "i3"), "which does not have it")
	require.NoError(t, db.LeaveTask(ctx, "sweep", "i1"))
	require.NoError(t, db.TakeTask(ctx, "sweep", "i3"))
	require.NoError(t, db.LeaveTask(ctx, "sweep", "i3"))
	require.NoError(t, db.TakeTask(ctx, "sweep", "i1"))

	require.ErrorIs(t, db.EndNode(ctx, "i1", 0), cloud.ErrStale, "it was renewed since")
	require.NoError(t, db.EnterNode(ctx, again, one))
	require.ErrorIs(t, db.RenewNode(ctx, "i1"), cloud.ErrStale)
	list, err = db.ListNodes(ctx)
	require.NoError(t, err)
	again.Generation = 2
	two.Generation = 1
	require.Equal(t, []cloud.Node{again, two}, list)
	tasks, err = db.ListTasks(ctx)
	require.NoError(t, err)
	require.Empty(t, tasks, "a task ends with its process's lease")
	require.NoError(t, db.EndNode(ctx, "i2", 0))
	require.NoError(t, db.EndNode(ctx, "i3", -1))
	require.NoError(t, db.EndNode(ctx, "i3", -1))
	list, err = db.ListNodes(ctx)
	require.NoError(t, err)
	require.Empty(t, list)
}
