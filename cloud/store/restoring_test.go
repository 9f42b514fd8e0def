package store

import (
	"bytes"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/ring"
)

// stuck is a dump that stops in its middle until it is let go.
type stuck struct {
	io.Reader
	reached, done chan struct{}
}

func (s *stuck) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err == io.EOF {
		close(s.reached)
		<-s.done
		s.Reader = bytes.NewReader(nil)
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

// A load whose process dies in the middle leaves no database that a node would take for a new
// one; it is made again, and nothing disturbs one that is under way.
func TestALoadThatDiedIsMadeAgain(t *testing.T) {
	t.Parallel()
	from, ctx := openTest(t, Config{URL: freshSchema(t)}), t.Context()
	require.NoError(t, from.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 7, Code: "7", Name: "seven"}}}}, nil
	}))
	var dump bytes.Buffer
	d, err := from.Dump(ctx, "", &dump)
	require.NoError(t, err)

	url := freshSchema(t)
	cfg := Config{URL: url, Box: testBox(t), Logger: slog.New(slog.DiscardHandler)}
	first := &stuck{Reader: bytes.NewReader(dump.Bytes()[:dump.Len()/2]), reached: make(chan struct{}), done: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		ended <- LoadDump(ctx, Config{URL: url + "&application_name=first"}, d, time.Now(), first)
	}()
	<-first.reached
	require.ErrorIs(t, LoadDump(ctx, cfg, d, time.Now(), bytes.NewReader(dump.Bytes())), ErrRestoring, "the first is under way")
	_, err = Open(ctx, cfg)
	require.ErrorIs(t, err, ErrRestoring)

	c, err := connectPostgres(ctx, url)
	require.NoError(t, err)
	defer c.Close(ctx)
	_, err = c.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'first'")
	require.NoError(t, err)
	ring.Await(t, func() bool {
		var n int
		return c.QueryRow(ctx, "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'first'").Scan(&n) == nil && n == 0
	})
	_, err = Open(ctx, cfg)
	require.ErrorIs(t, err, ErrRestoring, "what it left is no database")
	require.ErrorIs(t, MigrateSchema(ctx, cfg, nil), ErrRestoring)
	empty, err := IsEmpty(ctx, cfg)
	require.NoError(t, err)
	require.True(t, empty)
	require.NoError(t, LoadDump(ctx, cfg, d, time.Now(), bytes.NewReader(dump.Bytes())))
	close(first.done)
	require.Error(t, <-ended)

	db := openTest(t, Config{URL: url})
	require.NoError(t, db.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(7)
		require.Equal(t, "seven", b.Name)
		return err
	}))
	require.ErrorIs(t, LoadDump(ctx, cfg, d, time.Now(), bytes.NewReader(dump.Bytes())), ErrNotEmpty)
}

// A load is as patient as it has to be, whatever the server bounds transactions to.
func TestALoadOutlastsTheBoundsOfTheServer(t *testing.T) {
	t.Parallel()
	from, ctx := openTest(t, Config{URL: freshSchema(t)}), t.Context()
	var dump bytes.Buffer
	d, err := from.Dump(ctx, "", &dump)
	require.NoError(t, err)
	cfg := Config{URL: freshSchema(t) + "&idle_in_transaction_session_timeout=300&default_transaction_isolation=repeatable%20read", Box: testBox(t), Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, LoadDump(ctx, cfg, d, time.Now(), &slow{Reader: bytes.NewReader(dump.Bytes())}))
	db, err := Open(ctx, cfg)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

// slow is a dump that takes a second.
type slow struct {
	io.Reader
	waited bool
}

func (s *slow) Read(p []byte) (int, error) {
	if !s.waited {
		s.waited = true
		time.Sleep(time.Second)
	}
	return s.Reader.Read(p)
}

// Nothing is loaded where other tables are, and these stay.
func TestALoadLeavesOtherTablesAlone(t *testing.T) {
	t.Parallel()
	from, ctx := openTest(t, Config{URL: freshSchema(t)}), t.Context()
	var dump bytes.Buffer
	d, err := from.Dump(ctx, "", &dump)
	require.NoError(t, err)
	cfg := Config{URL: freshSchema(t)}
	c, err := connectPostgres(ctx, cfg.URL)
	require.NoError(t, err)
	defer c.Close(ctx)
	_, err = c.Exec(ctx, "CREATE TABLE restoring (car TEXT)")
	require.NoError(t, err)
	empty, err := IsEmpty(ctx, cfg)
	require.NoError(t, err)
	require.False(t, empty)
	require.ErrorIs(t, LoadDump(ctx, cfg, d, time.Now(), bytes.NewReader(dump.Bytes())), ErrNotEmpty)
	all, err := allTables(ctx, c)
	require.NoError(t, err)
	require.Equal(t, []string{"restoring"}, all)
}
