package store

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// The search's index is made beside writers, and again when a node left it half made.
func TestTheIndexOfTheSearchIsMadeBesideWriters(t *testing.T) {
	t.Parallel()
	url := freshSchema(t)
	db := openTest(t, Config{URL: url})
	pool, ctx := db.engine.(*postgres).pool, t.Context()
	_, err := pool.Exec(ctx, `INSERT INTO order_search (rowid, business_id, order_id, field, value) SELECT n, 1, n, 1, md5(n::text) || md5((n + 1)::text) FROM generate_series(1, 40000) AS n`)
	require.NoError(t, err)
	next := 100_000
	add := func(db interface {
		Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	}, ctx context.Context) error {
		next++
		_, err := db.Exec(ctx, `INSERT INTO order_search (rowid, business_id, order_id, field, value) VALUES ($1, 1, 0, 1, 'x')`, next)
		return err
	}
	for _, name := range []string{"order_search_prefix", "order_search_grams"} {
		var there, valid bool
		is := func() {
			require.NoError(t, pool.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass($1)), EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass($1) AND indisvalid)`, name).Scan(&there, &valid))
		}
		if is(); !there { // a server without pg_trgm
			continue
		}
		_, err := pool.Exec(ctx, "DROP INDEX "+name)
		require.NoError(t, err)
		writer, err := pool.Begin(ctx) // it has written, and goes on for a while
		require.NoError(t, err)
		require.NoError(t, add(writer, ctx))
		made := make(chan error, 1)
		go func() {
			_, later, err := indexSearch(ctx, pool, slog.New(slog.DiscardHandler))
			if err == nil {
				err = later(ctx)
			}
			made <- err
		}()
		time.Sleep(200 * time.Millisecond) // it waits for the writer by now, and lets others write
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		require.NoError(t, add(writer, bounded))
		require.NoError(t, add(pool, bounded), "another writer does not wait for the index")
		_, later, err := indexSearch(bounded, pool, slog.New(slog.DiscardHandler))
		require.NoError(t, err, "another node starts meanwhile")
		cancel()
		second := make(chan error, 1)
		go func() { second <- later(ctx) }()
		require.NoError(t, writer.Commit(ctx))
		require.NoError(t, <-made)
		require.NoError(t, <-second, "the other node waits for it beside its work")
		is()
		require.True(t, valid, name)

		_, err = pool.Exec(ctx, fmt.Sprintf(`UPDATE pg_index SET indisvalid = FALSE WHERE indexrelid = to_regclass('%s')`, name))
		if err != nil { // not a superuser
			continue
		}
		_, later, err = indexSearch(ctx, pool, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		require.NoError(t, later(ctx))
		is()
		require.True(t, valid, name)
	}
	locked, err := pool.Begin(ctx) // as VACUUM and the making of an index lock it
	require.NoError(t, err)
	defer func() { require.NoError(t, locked.Rollback(context.WithoutCancel(ctx))) }()
	_, err = locked.Exec(ctx, "LOCK TABLE order_search IN SHARE UPDATE EXCLUSIVE MODE")
	require.NoError(t, err)
	bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, later, err := indexSearch(bounded, pool, slog.New(slog.DiscardHandler))
	require.NoError(t, err, "a start with its indexes waits for no lock")
	require.Nil(t, later)
}
