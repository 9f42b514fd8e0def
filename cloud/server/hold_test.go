package server_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/internal/ring"
)

// A second node on one SQLite database is refused at once, and takes over once the first
// has ended. What only looks at the database, as an administrator's program, is let in.
func TestASecondNodeOnSQLiteIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *server.Server {
		s, err := server.New(t.Context(), server.Config{Dir: dir})
		require.NoError(t, err)
		return s
	}
	first, ended := open(), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { ended <- first.Run(ctx, server.Listeners{}) }()
	ring.Await(t, func() bool {
		probe := open()
		release, err := probe.Store.Hold()
		if err == nil {
			require.NoError(t, release())
		}
		require.NoError(t, probe.Broker.Close())
		require.NoError(t, probe.Store.Close())
		return err != nil
	}, "the first node runs")

	require.ErrorIs(t, open().Run(t.Context(), server.Listeners{}), store.ErrInUse)
	stop()
	require.NoError(t, <-ended)

	again, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, open().Run(again, server.Listeners{}))
}
