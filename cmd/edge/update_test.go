package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A restart for an update ends the cabinet that runs, and nothing where none does yet.
func TestARestartEndsTheCabinet(t *testing.T) {
	t.Parallel()
	var r remoteUpdates
	r.Restart()
	ctx, end := context.WithCancel(t.Context())
	r.end.Store(&end)
	r.Restart()
	require.ErrorIs(t, ctx.Err(), context.Canceled)
}
