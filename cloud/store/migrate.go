package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var embedded embed.FS

// migrations are those of this program. Tests bring others.
var migrations, _ = fs.Sub(embedded, "migrations")

// Schema names the tables of this version: a hash over names and texts of all
// migrations, as 16 hexadecimal digits.
func Schema() string { return schemaDigest() }

var schemaDigest = sync.OnceValue(func() string {
	h := sha256.New()
	_ = fs.WalkDir(embedded, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(embedded, path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(b), b)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)[:8])
})

// migration is one file, and what lines at its head say about it:
//
//	-- oldest: 270   programs whose newest migration has a smaller number cannot run on
//	                 the tables after it; it waits until none of them runs
//	-- fill          its one statement fills in the rows after the key $1, at most $2 of
//	                 them in the order of the key, and returns their keys; it is run in
//	                 transactions of its own until there are none
//
// One with NO TRANSACTION makes indexes beside the writers.
type migration struct {
	name   string
	number int64
	oldest int64  // 0: as before
	fill   string // the statement; empty: goose runs the file
	beside bool
}

var (
	oldestLine = regexp.MustCompile(`(?m)^-- oldest: (\d+)$`)
	fillLine   = regexp.MustCompile(`(?m)^-- fill$`)
	besideLine = regexp.MustCompile(`(?m)^-- \+goose NO TRANSACTION$`)
)

// readMigrations lists the migrations of a folder by number.
func readMigrations(files fs.FS) (out []migration, err error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		m := migration{name: name}
		if m.number, err = goose.NumericComponent(name); err != nil {
			return nil, err
		}
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		m.beside = besideLine.Match(b)
		if found := oldestLine.FindSubmatch(b); found != nil {
			if m.oldest, err = strconv.ParseInt(string(found[1]), 10, 64); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		if at := fillLine.FindIndex(b); at != nil {
			m.fill = strings.TrimSpace(string(b[at[1]:]))
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b migration) int { return cmp.Compare(a.number, b.number) })
	return out, nil
}

// SchemaNumber is the number of the newest migration of this program.
func SchemaNumber() int64 {
	all, err := readMigrations(migrations)
	if err != nil || len(all) == 0 {
		return 0 // they are embedded, and tests read them
	}
	return all[len(all)-1].number
}

// goose runs the migrations up to a number that neither fill rows nor were run. Those
// that fill are noted as run.
func (s *schema) goose(ctx context.Context, db *sql.DB, to int64) ([]*goose.MigrationResult, error) {
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if s.path == "" { // a table: advisory locks do not exist everywhere the wire protocol does
		l, err := lock.NewPostgresTableLocker(lock.WithTableLockTimeout(time.Second, lockPatience))
		if err != nil {
			return nil, err
		}
		options = append(options, goose.WithLocker(l))
	}
	for _, m := range s.all {
		if m.fill != "" {
			options = append(options, goose.WithExcludeNames([]string{m.name}), goose.WithGoMigrations(goose.NewGoMigration(m.number, nil, nil)))
		}
	}
	p, err := goose.NewProvider(s.dialect, db, tokenFS{s.files, s.tokens, s.path == ""}, options...)
	if err != nil {
		return nil, err
	}
	return p.UpTo(ctx, to)
}

const (
	lockPatience = 3600 // seconds that a process waits for another one that migrates
	// A transaction that waits for a table, with all writers that come meanwhile behind
	// it, gives up and is tried again. A file without one gets a warning for the line.
	upLine    = "-- +goose Up\n"
	upBounded = upLine + "SET LOCAL lock_timeout = '2s';\n"
)

// tokenFS replaces the dialect's tokens in files while they are read, and bounds how long
// they wait for a lock.
type tokenFS struct {
	fs.FS
	tokens  *strings.Replacer
	bounded bool
}

// Open implements fs.FS.
func (t tokenFS) Open(name string) (fs.File, error) {
	f, err := t.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".sql") {
		return f, err
	}
	defer f.Close()
	b, err := fs.ReadFile(t.FS, name)
	if err != nil {
		return nil, err
	}
	if t.bounded {
		b = bytes.Replace(b, []byte(upLine), []byte(upBounded), 1)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return &tokenFile{Reader: bytes.NewReader([]byte(t.tokens.Replace(string(b)))), info: info}, nil
}

type tokenFile struct {
	*bytes.Reader
	info fs.FileInfo
}

func (f *tokenFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *tokenFile) Close() error               { return nil }
