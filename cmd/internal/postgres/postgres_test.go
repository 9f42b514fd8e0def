package postgres

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// What was committed is there after a crash, and at the standby that takes over.
func TestAStandbyTakesOver(t *testing.T) {
	ring.SkipUnlessFull(t, "the databases that CI starts")
	ctx := t.Context()
	first, err := New(ctx, os.TempDir())
	ring.Needs(t, ring.EnvTools, "PostgreSQL's programs", err == nil)
	t.Cleanup(func() { require.NoError(t, first.Remove()) })
	t.Cleanup(func() { require.NoError(t, first.Crash()) })
	require.NoError(t, first.Start(ctx))
	require.NoError(t, first.CreateDatabase(ctx))
	second, err := first.Standby(ctx, os.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, second.Remove()) })
	t.Cleanup(func() { require.NoError(t, second.Stop()) })
	do := func(sql string) (n int) {
		c, err := pgx.Connect(ctx, Address(first, second))
		require.NoError(t, err)
		defer c.Close(context.WithoutCancel(ctx))
		require.NoError(t, c.QueryRow(ctx, sql).Scan(&n))
		return n
	}
	const add = `WITH x AS (INSERT INTO kept VALUES (1) RETURNING 1) SELECT count(*) FROM kept`
	require.NoError(t, first.query(ctx, "postern", `CREATE TABLE kept (n int)`))
	require.Equal(t, 0, do(add))
	require.NoError(t, first.Crash())
	require.NoError(t, first.Start(ctx))
	require.Equal(t, 1, do(add))
	require.NoError(t, first.Crash())
	require.NoError(t, second.Promote(ctx))
	require.Equal(t, 2, do(add))
	require.Equal(t, 3, do(`SELECT count(*) FROM kept`))
}
