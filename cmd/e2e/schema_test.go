package e2e

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// schemaCloud is a cloud on one database, of whichever release.
type schemaCloud struct {
	dir, database string
}

// args are the settings of a node, before its own.
func (c schemaCloud) args(more ...string) []string {
	args := append([]string{"--data", c.dir}, more...)
	if c.database != "" {
		args = append(args, "--database", c.database)
	}
	return args
}

// run runs a command of a release to its end.
func (c schemaCloud) run(t *testing.T, bin programs, more ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(string(bin), "cloud"), c.args(more...)...).CombinedOutput()
	return string(out), err
}

// start starts a node of a release and waits until it serves.
func (c schemaCloud) start(t *testing.T, bin programs, more ...string) *process {
	t.Helper()
	http := freeAddress(t)
	p := bin.start(t, "cloud", c.args(append(more, "--listen", http, "--mqtt-listen", freeAddress(t), "--node", "node-"+http)...)...)
	ring.Await(t, func() bool { return answers(http) || p.over() }, "the node serves")
	return p
}

// The schema of a database by the commands of the built program: what is pending, a
// start that waits for the command, and a database that is too new.
func TestSchemaCommands(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and starts programs")
	}
	bin := build(t)
	c := schemaCloud{dir: filepath.Join(t.TempDir(), "data")}
	out, err := c.run(t, bin, "schema", "status")
	require.Error(t, err)
	require.Contains(t, out, "there is no data folder")

	out, err = c.run(t, bin, "--migrate", "command", "--listen", "", "--mqtt-listen", freeAddress(t))
	require.Error(t, err)
	require.Contains(t, out, fmt.Sprintf("needs schema %d", store.SchemaNumber()))
	require.Contains(t, out, `run "cloud schema up"`)
	out, err = c.run(t, bin, "schema", "up")
	require.NoError(t, err, out)
	require.Contains(t, out, "done      00001_base.sql in ")
	require.Contains(t, out, fmt.Sprintf("database  %d", store.SchemaNumber()))
	out, err = c.run(t, bin, "schema", "up")
	require.NoError(t, err, out)
	require.Equal(t, fmt.Sprintf("database  %d\n", store.SchemaNumber()), out)
	c.start(t, bin, "--migrate", "command").stop(t)
	c.start(t, bin).stop(t)
	out, err = c.run(t, bin, "schema", "status")
	require.NoError(t, err, out)
	require.Equal(t, fmt.Sprintf("program   %d\ndatabase  %[1]d, takes programs of 250 or newer\npending   none\n", store.SchemaNumber()), out)

	db, err := sql.Open("sqlite", filepath.Join(c.dir, "postern.db"))
	require.NoError(t, err)
	for _, q := range []string{"INSERT INTO goose_db_version (version_id, is_applied) VALUES (988, 1)", "UPDATE schema_oldest SET number = 987"} {
		_, err = db.Exec(q)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	for _, command := range [][]string{{"--listen", "", "--mqtt-listen", freeAddress(t)}, {"schema", "up"}, {"rebuild"}} {
		out, err = c.run(t, bin, command...)
		require.Error(t, err)
		require.Contains(t, out, fmt.Sprintf("this program has schema %d, the database has schema 988 and takes programs of schema 987 or newer; start the release that the other nodes run, or a newer one", store.SchemaNumber()))
	}
	out, err = c.run(t, bin, "schema", "status")
	require.NoError(t, err, out)
	require.Contains(t, out, "this program is too old")
}

// Releases after this one: each adds migrations to those of the one before.
var releases = []map[string]string{
	{"00991_expand.sql": "-- +goose Up\nALTER TABLE setup ADD COLUMN later @int NOT NULL DEFAULT 0;\n",
		"00992_index.sql": "-- +goose NO TRANSACTION\n-- +goose Up\nDROP INDEX @beside IF EXISTS audit_later;\nCREATE INDEX @beside audit_later ON audit (at, n);\n"},
	{"00993_contract.sql": "-- oldest: 992\n-- +goose Up\nALTER TABLE setup DROP COLUMN later;\n"},
}

// buildRelease builds the cloud with the migrations of n later releases.
func buildRelease(t *testing.T, n int) programs { return buildCloud(t, migrations(t, n)) }

// migrations are the files of n later releases by where they stand in ours.
func migrations(t *testing.T, n int) map[string]string {
	t.Helper()
	dir := t.TempDir()
	folder, err := filepath.Abs("../../cloud/store/migrations")
	require.NoError(t, err)
	out := map[string]string{}
	for _, files := range releases[:n] {
		for name, text := range files {
			writeFile(t, filepath.Join(dir, name), text)
			out[filepath.Join(folder, name)] = filepath.Join(dir, name)
		}
	}
	return out
}

// buildCloud builds the cloud with other files in place of some.
func buildCloud(t *testing.T, replace map[string]string) programs {
	t.Helper()
	dir := t.TempDir()
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	writeFile(t, filepath.Join(dir, "overlay.json"), string(overlay))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-overlay", filepath.Join(dir, "overlay.json"), "-o", dir, "../cloud")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return programs(dir)
}

// Releases follow each other on one database while nodes run: one that adds runs beside
// the one before it, one that takes away waits until that one has ended, which is then
// refused.
func TestReleasesFollowEachOther(t *testing.T) {
	ring.SkipUnlessFull(t, "the store's tests run migrations of later releases in process, and the commands are those of the built program")
	t.Parallel()
	now, adds, takes := build(t), buildRelease(t, 1), buildRelease(t, 2)
	for engine, c := range map[string]schemaCloud{"sqlite": {dir: t.TempDir()}, "postgres": {dir: t.TempDir()}} {
		t.Run(engine, func(t *testing.T) {
			if engine == "postgres" {
				c.database = storetest.MigratedPostgresURL(t)
			}
			first := c.start(t, now)
			out, err := c.run(t, adds, "schema", "up")
			if c.database == "" { // its one node ends before the next release
				require.Error(t, err)
				require.Contains(t, out, "a program runs on the database")
				for _, command := range [][]string{{"setup", "--email", "ops@platform.example", "--operator"}, {"demo-data"}, {"rebuild"}} {
					out, err = c.run(t, adds, command...)
					require.Error(t, err)
					require.Contains(t, out, "a program runs on the database")
				}
				out, err = c.run(t, adds, "--listen", "", "--mqtt-listen", freeAddress(t))
				require.Error(t, err)
				require.Contains(t, out, "another running node has this database")
				require.NotContains(t, out, "serving")
				out, err = c.run(t, adds, "schema", "status")
				require.NoError(t, err, out)
				require.Contains(t, out, "pending   00991_expand.sql")
				require.False(t, first.over())
				first.stop(t)
				out, err = c.run(t, adds, "schema", "up")
			}
			require.NoError(t, err, out)
			require.Contains(t, out, "done      00992_index.sql")
			if c.database == "" {
				first = c.start(t, now)
			} else {
				second := c.start(t, adds, "--migrate", "command")
				c.start(t, now).stop(t)
				second.stop(t)
			}
			out, err = c.run(t, takes, "schema", "up")
			require.Error(t, err, out)
			require.Contains(t, out, "programs that run are too old for the next migration")
			require.False(t, first.over())
			out, err = c.run(t, takes, "schema", "status")
			require.NoError(t, err, out)
			require.Contains(t, out, "pending   00993_contract.sql")
			require.Contains(t, out, fmt.Sprintf("schema %d", store.SchemaNumber()))
			first.stop(t)
			out, err = c.run(t, takes, "schema", "up")
			require.NoError(t, err, out)
			out, err = c.run(t, now, "--listen", "", "--mqtt-listen", freeAddress(t))
			require.Error(t, err)
			require.Contains(t, out, fmt.Sprintf("this program has schema %d, the database has schema 993 and takes programs of schema 992 or newer", store.SchemaNumber()))
			c.start(t, takes).stop(t)
			c.start(t, adds).stop(t)
		})
	}
}
