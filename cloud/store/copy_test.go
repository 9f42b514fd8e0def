package store_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/seal"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// releases are the copies of a database in testdata/copies, each written by the
// code of its time: after a day of the demo and with a row of whatever that day
// leaves empty. Every later release opens them all, so that no migration forgets
// what older databases hold.
//
//	testdata/copies/NAME/key               the key that opens sealed values, base64
//	testdata/copies/NAME/sqlite.db.gz      written by VACUUM INTO
//	testdata/copies/NAME/postgres.sql.gz   a plain dump, of the schema named copySchema
//	testdata/copies/NAME/*.golden          what the finders read in each
//
// Before a release, add its name here and write its copy, which plays the demo's
// day twice and takes five minutes; pg_dump must be there and the database of
// the variable empty of a schema named like copySchema:
//
//	POSTERN_RING=check POSTERN_TEST_POSTGRES=postgres://… go test ./cloud/store -run TestCopies -write-copy NAME -timeout 15m
//
// A copy that is written stays as it is: a difference to its golden file is a
// fault of the present code.
var releases = []string{"2026-11"}

var writeCopy = flag.String("write-copy", "", "write the copy of this `release` in testdata/copies, by the present code")

// copySchema is the schema's name in dumps. Nothing else in them has it.
const copySchema = "postern_copy_schema"

func TestCopiesOpen(t *testing.T) {
	if *writeCopy != "" {
		require.Contains(t, releases, *writeCopy, "add it to releases first")
		writeRelease(t, *writeCopy)
	}
	for _, name := range releases {
		dir := filepath.Join("testdata", "copies", name)
		t.Run(name+"/SQLite", func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(data, "postern.db"), unzip(t, filepath.Join(dir, "sqlite.db.gz")), 0o600))
			openCopy(t, store.Config{Dir: data, Box: openCopyBox(t, dir)}, filepath.Join(dir, "sqlite.golden"))
		})
		t.Run(name+"/PostgreSQL", func(t *testing.T) {
			t.Parallel()
			address := storetest.PostgresURL(t)
			loadDump(t, address, string(unzip(t, filepath.Join(dir, "postgres.sql.gz"))))
			openCopy(t, store.Config{URL: address, Box: openCopyBox(t, dir)}, filepath.Join(dir, "postgres.golden"))
		})
	}
}

// openCopy brings a copy to the present version, compares what is in it, writes
// to it, and opens it once more.
func openCopy(t *testing.T, cfg store.Config, golden string) {
	cfg.Instance, cfg.Logger = "test", slog.New(slog.DiscardHandler)
	db, err := store.Open(t.Context(), cfg)
	require.NoError(t, err)
	got := storetest.DescribeCopy(t, db)
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
	storetest.WriteToCopy(t, db)
	require.NoError(t, db.Close())
	db, err = store.Open(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

func openCopyBox(t *testing.T, dir string) *seal.Box {
	text, err := os.ReadFile(filepath.Join(dir, "key"))
	require.NoError(t, err)
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	box, err := seal.New(key)
	require.NoError(t, err)
	return box
}

func unzip(t *testing.T, path string) []byte {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	r, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	return b
}

// loadDump runs a dump's statements in the schema of an address.
func loadDump(t *testing.T, address, dump string) {
	u, err := url.Parse(address)
	require.NoError(t, err)
	cfg, err := pgx.ParseConfig(address)
	require.NoError(t, err)
	cfg.RuntimeParams = map[string]string{"search_path": u.Query().Get("search_path")}
	delete(cfg.RuntimeParams, "pool_max_conns")
	c, err := pgx.ConnectConfig(t.Context(), cfg)
	require.NoError(t, err)
	defer c.Close(context.Background())
	_, err = c.PgConn().Exec(t.Context(), strings.ReplaceAll(dump, copySchema, u.Query().Get("search_path"))).ReadAll()
	require.NoError(t, err)
}

// writeRelease plays the demo's day on both engines and copies what it stored.
func writeRelease(t *testing.T, name string) {
	require.NotEmpty(t, os.Getenv(ring.EnvPostgres), "set "+ring.EnvPostgres)
	dir := filepath.Join("testdata", "copies", name)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	demo := filepath.Join(t.TempDir(), "demo")
	runProgram(t, "go", "build", "-o", demo, "github.com/postern-io/postern/cmd/demo")

	day := t.TempDir()
	data := filepath.Join(day, "cloud")
	runProgram(t, demo, "--once", "--dir", day)
	keys, err := os.ReadFile(filepath.Join(data, "keys.json"))
	require.NoError(t, err)
	var of struct{ Seal []byte }
	require.NoError(t, json.Unmarshal(keys, &of))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key"), []byte(base64.StdEncoding.EncodeToString(of.Seal)+"\n"), 0o644))
	db := storetest.Open(t, store.Config{Dir: data, Instance: "demo", Box: openCopyBox(t, dir)})
	storetest.FillCopy(t, db)
	file := filepath.Join(day, "copy.db")
	require.NoError(t, db.Backup(t.Context(), file))
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	writeCopied(t, dir, "sqlite", "db", b, db)

	day = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(day, "cloud"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(day, "cloud", "keys.json"), keys, 0o600))
	address := makeCopySchema(t)
	runProgram(t, demo, "--once", "--dir", day, "--database", address)
	db = storetest.Open(t, store.Config{URL: address, Instance: "demo", Box: openCopyBox(t, dir)})
	storetest.FillCopy(t, db)
	dump := runProgram(t, "pg_dump", "--schema", copySchema, "--inserts", "--rows-per-insert", "50", "--no-owner", "--no-privileges", "--no-tablespaces", "--no-comments", os.Getenv(ring.EnvPostgres))
	writeCopied(t, dir, "postgres", "sql", keepPlainLines(dump), db)
}

// makeCopySchema makes the schema of the dump, dropped with the test, and returns
// the address of a database in it.
func makeCopySchema(t *testing.T) string {
	base := os.Getenv(ring.EnvPostgres)
	c, err := pgx.Connect(t.Context(), base)
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "CREATE SCHEMA "+copySchema)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := c.Exec(context.Background(), "DROP SCHEMA "+copySchema+" CASCADE")
		require.NoError(t, err)
		require.NoError(t, c.Close(context.Background()))
	})
	u, err := url.Parse(base)
	require.NoError(t, err)
	q := u.Query()
	q.Set("search_path", copySchema)
	u.RawQuery = q.Encode()
	return u.String()
}

// Lines of a dump that only pg_dump's own version of the server takes, the
// schema itself, and the index of an extension: the store makes that when it
// opens.
var notPlain = regexp.MustCompile(`(?m)^(--.*|\\(un)?restrict .*|SET .*|SELECT pg_catalog\.set_config\(.*|CREATE SCHEMA .*|CREATE INDEX order_search_(grams|prefix) .*)\n`)

func keepPlainLines(dump []byte) []byte { return notPlain.ReplaceAll(dump, nil) }

func writeCopied(t *testing.T, dir, name, kind string, b []byte, db *store.DB) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	require.NoError(t, err)
	_, err = w.Write(b)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+"."+kind+".gz"), out.Bytes(), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+".golden"), []byte(storetest.DescribeCopy(t, db)), 0o644))
}

// runProgram runs a program and returns what it printed.
func runProgram(t *testing.T, program string, args ...string) []byte {
	cmd := exec.CommandContext(t.Context(), program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %v: %s", program, args, stderr.String())
	return out
}
