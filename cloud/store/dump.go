package store

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Dump says what is in a dump of a database.
type Dump struct {
	Engine  string           `json:"engine"`  // EngineSQLite or EnginePostgres
	Version int64            `json:"version"` // of the newest migration
	Rows    map[string]int64 `json:"rows"`    // of each table
}

// The engines of dumps. A dump is loaded by the engine that wrote it.
const (
	EngineSQLite   = "sqlite"
	EnginePostgres = "postgres"
)

// Errors of dumps.
var (
	// ErrDumpDamaged says that a dump does not hold what it was written with.
	ErrDumpDamaged = errors.New("the dump of the database is damaged")
	// ErrNotEmpty says that a database is in the place where one is to be loaded.
	ErrNotEmpty = errors.New("there is a database already; name an empty one, or another data folder")
	// ErrRestoring says that a load into a PostgreSQL database is under way, or died: it is
	// not a whole database.
	ErrRestoring = errors.New("a restore into this database is under way or was interrupted: wait for it, or start it again with \"cloud restore\"")
	// ErrNewerDump says that the program is too old for a dump.
	ErrNewerDump = errors.New("the dump was written by a newer release; use that one")
)

// Dump writes all that the database holds at one moment to w, while it is in use. spool is
// a folder with room for a copy of a SQLite database.
//
//	SQLite      the database file that VACUUM INTO makes
//	PostgreSQL  a tar file: tables as text of COPY, from one REPEATABLE READ transaction
func (db *database) Dump(ctx context.Context, spool string, w io.Writer) (d Dump, err error) {
	switch e := db.engine.(type) {
	case *lite:
		d, err = e.dump(ctx, spool, w)
	case *postgres:
		d, err = e.dump(ctx, w)
	}
	if err != nil {
		return d, fmt.Errorf("dump database: %w", err)
	}
	return d, nil
}

// CheckDump reads a dump to its end and compares it with what was written. spool is a
// folder with room for it. Error: ErrDumpDamaged.
func CheckDump(ctx context.Context, want Dump, spool string, r io.Reader) error {
	if want.Engine == EnginePostgres {
		return checkPostgres(want, r)
	}
	path, err := unpackLite(ctx, want, spool, r)
	return errors.Join(err, removeLite(path))
}

// LoadDump makes the database that cfg names from a dump, which was written at a time.
// Nothing may be there. Commands that were under way then expire with it and are not
// sent; ids continue above those that were given since. When it
// fails the database is as empty as before; where a process dies with it, the next load
// begins with nothing. Errors: ErrNotEmpty, ErrRestoring, ErrDumpDamaged, ErrNewerDump.
func LoadDump(ctx context.Context, cfg Config, d Dump, at time.Time, r io.Reader) error {
	switch {
	case d.Version > SchemaNumber():
		return ErrNewerDump
	case (d.Engine == EnginePostgres) != isPostgres(cfg.URL):
		return fmt.Errorf("the dump is of %s: set the database to be one", d.Engine)
	case d.Engine == EnginePostgres:
		return loadPostgres(ctx, cfg.URL, d, at, r)
	}
	return loadLite(ctx, cfg, d, at, r)
}

// IsEmpty reports whether nothing is in the place of the database that cfg names.
func IsEmpty(ctx context.Context, cfg Config) (bool, error) {
	if isPostgres(cfg.URL) {
		return isEmptyPostgres(ctx, cfg.URL)
	}
	path, err := litePath(cfg)
	if err != nil {
		return false, err
	}
	_, err = os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	return false, err
}

func (e *lite) dump(ctx context.Context, spool string, w io.Writer) (d Dump, err error) {
	path, err := spoolName(spool)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, removeLite(path)) }()
	if err := e.backup(ctx, path); err != nil {
		return d, err
	}
	if d, err = inspectLite(ctx, path); err != nil {
		return d, err
	}
	f, err := os.Open(path)
	if err != nil {
		return d, err
	}
	_, err = io.Copy(w, f)
	return d, errors.Join(err, f.Close())
}

// spoolFor is how old a copy is that a process has left when it ended.
const spoolFor = 24 * time.Hour

// spoolName is a new name in a folder, which exists after. Copies that were left there go.
func spoolName(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	left, _ := filepath.Glob(filepath.Join(dir, "dump-*.db*"))
	for _, name := range left {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > spoolFor {
			_ = os.Remove(name)
		}
	}
	f, err := os.CreateTemp(dir, "dump-*.db")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// removeLite removes a database file that no process uses. It need not be there.
func removeLite(path string) (err error) {
	if path == "" {
		return nil
	}
	for _, name := range []string{path, path + "-wal", path + "-shm", path + "-journal"} {
		if gone := os.Remove(name); gone != nil && !errors.Is(gone, os.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// openFile opens a database file that no other connection uses.
func openFile(path, pragmas string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)"+pragmas)
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// What is asked of a database file.
const (
	liteTables   = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`
	dumpVersion  = `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied`
	ownTables    = "goose_" // a prefix of tables of the migrations' library
	shadowTables = "order_search_"
)

// inspectLite counts what is in a database file.
func inspectLite(ctx context.Context, path string) (d Dump, err error) {
	db, err := openFile(path, "&mode=ro&_pragma=query_only(1)")
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	d = Dump{Engine: EngineSQLite, Rows: map[string]int64{}}
	if err := db.QueryRowContext(ctx, dumpVersion).Scan(&d.Version); err != nil {
		return d, err
	}
	tables, err := liteNames(ctx, db)
	if err != nil {
		return d, err
	}
	for _, table := range tables {
		var n int64
		if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+quoteName(table)).Scan(&n); err != nil {
			return d, err
		}
		d.Rows[table] = n
	}
	return d, nil
}

func liteNames(ctx context.Context, db *sql.DB) (out []string, err error) {
	rows, err := db.QueryContext(ctx, liteTables)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(name, ownTables) && !strings.HasPrefix(name, shadowTables) {
			out = append(out, name)
		}
	}
	return out, rows.Err()
}

// quoteName is the name of a table as statements of both engines take it.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// unpackLite writes a dump to a file of a folder and checks it: the pages, and the rows
// of every table. The file, which the caller removes, is there after an error too.
func unpackLite(ctx context.Context, want Dump, dir string, r io.Reader) (path string, err error) {
	if path, err = spoolName(dir); err != nil {
		return path, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return path, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	_, err = io.Copy(w, r)
	if err = errors.Join(err, w.Flush(), f.Sync(), f.Close()); err != nil {
		return path, err
	}
	have, err := inspectLite(ctx, path)
	if err == nil {
		err = checkPages(ctx, path)
	}
	if err != nil {
		return path, fmt.Errorf("%w: %w", ErrDumpDamaged, err)
	}
	return path, want.compare(have)
}

func checkPages(ctx context.Context, path string) (err error) {
	db, err := openFile(path, "&mode=ro&_pragma=query_only(1)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var text string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&text); err != nil {
		return err
	}
	if text != "ok" {
		return errors.New(text)
	}
	return nil
}

// compare names the first difference. Error: ErrDumpDamaged.
func (d Dump) compare(have Dump) error {
	if d.Engine != have.Engine || d.Version != have.Version {
		return fmt.Errorf("%w: it is of %s, migration %d, and was written from %s, migration %d", ErrDumpDamaged, have.Engine, have.Version, d.Engine, d.Version)
	}
	for _, table := range slices.Sorted(maps.Keys(d.Rows)) {
		if n, ok := have.Rows[table]; !ok || n != d.Rows[table] {
			return fmt.Errorf("%w: table %s has %d rows of %d", ErrDumpDamaged, table, n, d.Rows[table])
		}
	}
	if len(have.Rows) != len(d.Rows) {
		return fmt.Errorf("%w: it has %d tables of %d", ErrDumpDamaged, len(have.Rows), len(d.Rows))
	}
	return nil
}

// loadLite makes the file under another name and renames it when it is whole.
func loadLite(ctx context.Context, cfg Config, d Dump, at time.Time, r io.Reader) (err error) {
	path, err := litePath(cfg)
	if err != nil {
		return err
	}
	if empty, err := IsEmpty(ctx, cfg); err != nil || !empty {
		return errors.Join(err, ErrNotEmpty)
	}
	draft, err := unpackLite(ctx, d, filepath.Dir(path), r)
	defer func() { err = errors.Join(err, removeLite(draft)) }()
	if err != nil {
		return err
	}
	db, err := openFile(draft, "&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, liteTokens.Replace(sqlMakeRecovery))
	for _, o := range recoverySteps(d.Version, at, time.Now()) {
		if err == nil {
			_, err = db.ExecContext(ctx, o.sql, o.args...)
		}
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := os.Link(draft, path); err != nil { // unlike a rename it never replaces another file
		return errors.Join(err, ErrNotEmpty)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
