package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/lockfile"
)

// Migrations of later releases: the first expands, later ones make an index, fill rows in
// and contract.
var later = []struct{ name, text string }{
	{"00990_sample.sql", "-- +goose Up\nCREATE TABLE sample (id @int PRIMARY KEY, name TEXT NOT NULL, old TEXT NOT NULL DEFAULT '') @strict;\n"},
	{"00991_expand.sql", "-- +goose Up\nALTER TABLE sample ADD COLUMN filled @int NOT NULL DEFAULT 0;\n"},
	{"00992_index.sql", "-- +goose NO TRANSACTION\n-- +goose Up\nDROP INDEX @beside IF EXISTS sample_name;\nCREATE INDEX @beside sample_name ON sample (name);\n"},
	{"00993_fill.sql", "-- oldest: 991\n-- fill\nUPDATE sample SET filled = filled + 1 WHERE id IN (SELECT id FROM sample WHERE id > $1 ORDER BY id LIMIT $2) RETURNING id\n"},
	{"00994_contract.sql", "-- oldest: 993\n-- +goose Up\nALTER TABLE sample DROP COLUMN old;\n"},
}

// testSchemas are databases of each engine, and a program for them that knows migrations
// up to a number.
func testSchemas(t *testing.T, test func(t *testing.T, at func(number int64) *schema)) {
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			path, url := "", ""
			if engine == "sqlite" {
				path = filepath.Join(t.TempDir(), "s.db")
				first, err := sql.Open("sqlite", "file:"+path+"?"+liteWriterDSN) // a change of the journal mode waits for no lock
				require.NoError(t, err)
				require.NoError(t, first.PingContext(t.Context()))
				require.NoError(t, first.Close())
			} else {
				url = freshSchema(t)
			}
			test(t, func(number int64) *schema {
				var db *sql.DB
				if path != "" {
					var err error
					db, err = sql.Open("sqlite", "file:"+path+"?"+liteWriterDSN)
					require.NoError(t, err)
					db.SetMaxOpenConns(1)
				} else {
					pool, err := openPool(t.Context(), url)
					require.NoError(t, err)
					t.Cleanup(pool.Close)
					db = stdlib.OpenDBFromPool(pool)
				}
				t.Cleanup(func() { require.NoError(t, db.Close()) })
				s, err := newSchema(db, path, nil)
				require.NoError(t, err)
				files := fstest.MapFS{}
				for _, name := range []string{"00250_nodes.sql", "00270_schema.sql"} { // what schemas need
					b, err := fs.ReadFile(migrations, name)
					require.NoError(t, err)
					text, _, _ := strings.Cut(string(b), "CREATE INDEX")
					files[name] = &fstest.MapFile{Data: []byte(text)}
				}
				for i, m := range later {
					if number >= int64(990+i) {
						files[m.name] = &fstest.MapFile{Data: []byte(m.text)}
					}
				}
				s.files = files
				s.all, err = readMigrations(files)
				require.NoError(t, err)
				return s
			})
		})
	}
}

func (s *schema) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := s.db.ExecContext(t.Context(), sql, args...)
	require.NoError(t, err)
}

func (s *schema) number(t *testing.T, sql string) (n int64) {
	t.Helper()
	require.NoError(t, s.db.QueryRowContext(t.Context(), sql).Scan(&n))
	return n
}

func (s *schema) addSamples(t *testing.T, n int) {
	t.Helper()
	s.exec(t, fmt.Sprintf("INSERT INTO sample (id, name) WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < %d) SELECT id, 'x' FROM n", n))
}

// A program checks in both directions whether it fits the database, and says both numbers.
func TestProgramsFitTheirDatabase(t *testing.T) {
	t.Parallel()
	testSchemas(t, func(t *testing.T, at func(int64) *schema) {
		old, now, next := at(990), at(992), at(994)
		st, err := old.status(t.Context())
		require.NoError(t, err)
		require.Zero(t, st.Database)
		require.Len(t, st.Pending, len(old.all))
		require.ErrorIs(t, old.open(t.Context(), true), ErrSchemaPending)
		require.NoError(t, old.open(t.Context(), false))
		require.NoError(t, old.open(t.Context(), true))

		err = now.open(t.Context(), true)
		require.ErrorIs(t, err, ErrSchemaPending)
		require.ErrorContains(t, err, "schema 990")
		require.ErrorContains(t, err, "schema 992 (2 migrations)")
		require.ErrorContains(t, err, "cloud schema up")
		require.NoError(t, now.open(t.Context(), false))
		require.NoError(t, old.open(t.Context(), false), "what was added does not disturb older programs")

		require.NoError(t, next.open(t.Context(), false))
		require.NoError(t, next.open(t.Context(), true))
		for _, s := range []*schema{old, now} {
			err = s.open(t.Context(), false)
			require.ErrorIs(t, err, ErrOldProgram)
			require.ErrorContains(t, err, fmt.Sprintf("this program has schema %d, the database has schema 994 and takes programs of schema 993 or newer", s.all[len(s.all)-1].number))
		}
		st, err = old.status(t.Context())
		require.NoError(t, err)
		require.Equal(t, SchemaStatus{Program: 990, Database: 994, Oldest: 993}, st)
	})
}

// Migrations that several processes run at once are run once. A step that fills goes on
// where it was interrupted and fills each row once.
func TestMigrationsRunOnce(t *testing.T) {
	t.Parallel()
	testSchemas(t, func(t *testing.T, at func(int64) *schema) {
		var starts sync.WaitGroup
		for range 3 {
			s := at(991)
			starts.Go(func() {
				if err := s.open(t.Context(), false); err != nil {
					t.Error(err)
				}
			})
		}
		starts.Wait()
		rows := 5*fillRows + 7
		at(991).addSamples(t, rows)

		cut := at(993)
		ctx, stop := context.WithCancel(t.Context())
		cut.report = func(p Progress) {
			if p.Rows == 2*fillRows {
				stop()
			}
		}
		require.Error(t, cut.open(ctx, false))
		require.EqualValues(t, 2*fillRows, cut.number(t, "SELECT filled FROM schema_fill WHERE number = 993"))
		for range 3 {
			s := at(994)
			starts.Go(func() {
				if err := s.open(t.Context(), false); err != nil {
					t.Error(err)
				}
			})
		}
		starts.Wait()
		s := at(994)
		require.EqualValues(t, rows, s.number(t, "SELECT filled FROM schema_fill WHERE number = 993"))
		require.EqualValues(t, rows, s.number(t, "SELECT COUNT(*) FROM sample WHERE filled = 1"))
		for _, m := range s.all {
			require.EqualValues(t, 1, s.number(t, fmt.Sprint("SELECT COUNT(*) FROM goose_db_version WHERE version_id = ", m.number)), m.name)
		}
	})
}

// A migration that older programs cannot live with waits until none of them runs; a lease
// whose beat stands still is of none.
func TestAContractionWaitsForOlderPrograms(t *testing.T) {
	t.Parallel()
	testSchemas(t, func(t *testing.T, at func(int64) *schema) {
		old, next := at(992), at(994)
		require.NoError(t, old.open(t.Context(), false))
		if next.path != "" {
			f, err := lockfile.Acquire(next.path+".lock", 0)
			require.NoError(t, err)
			require.ErrorIs(t, next.open(t.Context(), false), ErrOldRunning)
			require.EqualValues(t, 250, next.number(t, sqlOldestSchema))
			require.NoError(t, f.Close())
			require.NoError(t, next.open(t.Context(), false))
			f, err = lockfile.Acquire(next.path+".lock", 0)
			require.NoError(t, err, "a migration lets the database go")
			require.NoError(t, f.Close())
			return
		}
		add := func(name string, number int64) {
			old.exec(t, `INSERT INTO node (name, instance, generation, address, version, schema, schema_number, edge, core, started_at, beat) VALUES ($1, $1, 1, 'http://there', 'v1', '', $2, TRUE, TRUE, 0, 0)`, name, number)
		}
		add("newer", 993)
		add("older", 990)
		ctx, stop := context.WithCancel(t.Context())
		var beats sync.WaitGroup
		beats.Go(func() {
			for ctx.Err() == nil {
				_, _ = old.db.ExecContext(ctx, `UPDATE node SET beat = beat + 1`)
				time.Sleep(20 * time.Millisecond)
			}
		})
		err := next.open(t.Context(), false)
		stop()
		beats.Wait()
		require.ErrorIs(t, err, ErrOldRunning)
		ctx, stop = context.WithTimeout(t.Context(), 20*time.Second)
		beats.Go(func() { // one that is started again and again has another instance each time
			for n := 0; ctx.Err() == nil; n++ {
				_, _ = old.db.ExecContext(ctx, `UPDATE node SET instance = $1 WHERE name = 'older'`, fmt.Sprint("older", n))
				time.Sleep(20 * time.Millisecond)
			}
		})
		err = next.open(ctx, false)
		stop()
		beats.Wait()
		require.ErrorIs(t, err, ErrOldRunning)
		require.ErrorContains(t, err, `"older" at http://there has schema 990 (release v1), the migration takes programs of schema 991 or newer`)
		require.EqualValues(t, 250, next.number(t, sqlOldestSchema))
		require.NoError(t, old.open(t.Context(), false))

		next.silence = time.Second
		require.NoError(t, next.open(t.Context(), false))
		require.EqualValues(t, 1, next.number(t, `SELECT COUNT(*) FROM node`), "the lease of the one that stands still ended")
		require.EqualValues(t, 993, next.number(t, sqlOldestSchema))
	})
}

// On SQLite no migration runs beside a node: not even one that adds. The node that holds the
// database runs them itself.
func TestMigrationsOfSQLiteWaitForTheNode(t *testing.T) {
	t.Parallel()
	testSchemas(t, func(t *testing.T, at func(int64) *schema) {
		old, adds, all := at(990), at(991), at(994)
		require.NoError(t, old.open(t.Context(), false))
		if old.path == "" {
			return
		}
		release, err := Hold(Config{URL: old.path})
		require.NoError(t, err)
		_, err = Hold(Config{URL: old.path})
		require.ErrorIs(t, err, ErrInUse)
		err = adds.open(t.Context(), false)
		require.ErrorIs(t, err, ErrOldRunning)
		require.ErrorContains(t, err, old.path+"; stop it first")
		ran, err := adds.ran(t.Context())
		require.NoError(t, err)
		require.NotContains(t, ran, int64(991))
		require.NoError(t, old.open(t.Context(), false), "a program that needs no migration is let in")
		all.held = true
		require.NoError(t, all.open(t.Context(), false))
		require.NoError(t, release())
		release, err = Hold(Config{URL: old.path})
		require.NoError(t, err)
		require.NoError(t, release())
	})
}

// Whether a process may migrate a PostgreSQL database is asked with those that run there.
func TestAMigrationIsAskedFor(t *testing.T) {
	t.Parallel()
	testSchemas(t, func(t *testing.T, at func(int64) *schema) {
		old, next := at(990), at(991)
		require.NoError(t, old.open(t.Context(), false))
		old.exec(t, `INSERT INTO node (name, instance, generation, address, version, schema, schema_number, edge, core, started_at, beat) VALUES ('one', 'i', 1, 'http://there', 'v1', '', 990, TRUE, TRUE, 0, 0)`)
		refused := errors.New("refused")
		var seen []cloud.Node
		next.permit = func(_ context.Context, running []cloud.Node) error { seen = running; return refused }
		require.ErrorIs(t, next.open(t.Context(), false), refused)
		require.Len(t, seen, 1)
		require.Equal(t, []string{"one", "i", "http://there"}, []string{seen[0].Name, seen[0].Instance, seen[0].Address})
		ran, err := next.ran(t.Context())
		require.NoError(t, err)
		require.NotContains(t, ran, int64(991))
		next.permit = nil
		require.NoError(t, next.open(t.Context(), false))
		next.permit = func(context.Context, []cloud.Node) error { return refused }
		require.NoError(t, next.open(t.Context(), false), "nothing is pending")
	})
}

// A damaged file is named, with what to do.
func TestADamagedDatabaseIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := Open(t.Context(), Config{Dir: dir, Box: testBox(t)})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	path := filepath.Join(dir, "postern.db")
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	for name, bad := range map[string][]byte{
		"its head":   append(bytes.Repeat([]byte{0xa5}, 4096), good[4096:]...),
		"its schema": append(append(bytes.Clone(good[:100]), bytes.Repeat([]byte{0xa5}, 3996)...), good[4096:]...),
	} {
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		_, err := Open(t.Context(), Config{Dir: dir, Box: testBox(t)})
		require.ErrorIs(t, err, ErrDamaged, name)
		require.ErrorContains(t, err, "move "+path+" away", name)
		require.ErrorContains(t, err, "cloud restore", name)
		_, err = InspectSchema(t.Context(), Config{Dir: dir})
		require.ErrorIs(t, err, ErrDamaged, name)
	}
}

// Damage that a start does not meet is named when it is met.
func TestADamagedPageIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := Open(t.Context(), Config{Dir: dir, Box: testBox(t)})
	require.NoError(t, err)
	pages, err := readList(t.Context(), first.database, `SELECT rootpage FROM sqlite_schema WHERE name = 'setup' OR tbl_name = 'delivery' AND rootpage > 0`, scanInt)
	require.NoError(t, err)
	require.Greater(t, len(pages), 2)
	require.NoError(t, first.Close())
	f, err := os.OpenFile(filepath.Join(dir, "postern.db"), os.O_RDWR, 0)
	require.NoError(t, err)
	for _, page := range pages {
		_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, 4096), (page-1)*4096)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	db := openTest(t, Config{Dir: dir})
	read := func(v cloud.View) error { _, err := v.Setup(); return err }
	require.ErrorIs(t, db.Look(t.Context(), read), ErrDamaged)
	err = db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) { return nil, read(v) })
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, filepath.Join(dir, "postern.db"))
	_, err = db.ListDeliveries(t.Context(), DeliveryFilter{BusinessID: 1, Limit: 1})
	require.ErrorIs(t, err, ErrDamaged, "no empty list")
	_, err = db.Dump(t.Context(), t.TempDir(), io.Discard)
	require.ErrorIs(t, err, ErrDamaged)
}

// A process that opened the database before a contraction, and enters after it, is refused.
func TestAnOldProgramDoesNotEnterAfterAContraction(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{"sqlite": {Dir: t.TempDir()}, "postgres": {}} {
		t.Run(name, func(t *testing.T) {
			if name == "postgres" {
				cfg.URL = freshSchema(t)
			}
			db := openTest(t, cfg)
			require.NoError(t, db.exec(t.Context(), sqlRaiseOldest, int64(math.MaxInt32)))
			err := db.EnterNode(t.Context(), cloud.Node{Instance: "i", Name: "n", SchemaNumber: SchemaNumber()}, cloud.Node{})
			require.ErrorIs(t, err, ErrOldProgram)
		})
	}
}

// Writers go on while a migration makes an index, and while one waits for a table.
func TestWritersGoOnDuringMigrations(t *testing.T) {
	t.Parallel()
	testSchemas(t, func(t *testing.T, at func(int64) *schema) {
		first := at(990)
		if first.path != "" {
			t.Skip("a SQLite database has one writer, which migrates before it serves")
		}
		require.NoError(t, first.open(t.Context(), false))
		first.addSamples(t, 1000)
		for i, other := range []string{"SELECT COUNT(*) FROM sample", "INSERT INTO sample (id, name) VALUES (-1, 'held')"} {
			number := int64(991 + i)
			// Somebody's transaction is under way: an index that does not let writers pass
			// waits for it, and all that write after it behind the index.
			held, err := first.db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = held.ExecContext(t.Context(), other)
			require.NoError(t, err)
			waits := make(chan bool, 1)
			s, done := at(number), make(chan error, 1)
			s.report = func(p Progress) {
				if strings.HasPrefix(p.Phase, "waits") {
					select {
					case waits <- true:
					default:
					}
				}
			}
			go func() { done <- s.open(t.Context(), false) }()
			locked := `SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND (query LIKE '%sample_name%' OR query LIKE '%ADD COLUMN filled%')`
			for first.number(t, locked) == 0 && len(done) == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for i := range 20 {
				_, err := first.db.ExecContext(ctx, "INSERT INTO sample (id, name) VALUES ($1, 'late')", -100*number-int64(i))
				require.NoError(t, err, "a writer waits for the migration %d", number)
			}
			if number == 991 {
				require.True(t, <-waits)
			}
			select {
			case err := <-done:
				require.Fail(t, "the migration did not wait", "%v", err)
			default:
			}
			require.NoError(t, held.Rollback())
			require.NoError(t, <-done)
		}
	})
}
