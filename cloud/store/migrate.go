package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema names the tables of this version: a hash over names and texts of all
// migrations, as 16 hexadecimal digits.
func Schema() string {
	h := sha256.New()
	_ = fs.WalkDir(migrations, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(migrations, path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(b), b)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func migrateLite(ctx context.Context, db *sql.DB) error {
	return migrate(ctx, goose.DialectSQLite3, db, liteTokens, 0)
}

// migratePostgres lets one of several starting nodes do the work, by a lock in
// a table: advisory locks do not exist everywhere the wire protocol does.
func migratePostgres(ctx context.Context, db *sql.DB) error {
	return migratePostgresTo(ctx, db, 0)
}

// migratePostgresTo stops at a version; 0 is the newest.
func migratePostgresTo(ctx context.Context, db *sql.DB, version int64) error {
	l, err := lock.NewPostgresTableLocker(lock.WithTableLockTimeout(time.Second, 60))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return migrate(ctx, goose.DialectPostgres, db, pgTokens, version, goose.WithLocker(l))
}

// newestMigration is the version of the newest migration of this release.
func newestMigration() (int64, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return 0, err
	}
	newest := int64(0)
	for _, name := range files {
		v, err := goose.NumericComponent(name)
		if err != nil {
			return 0, err
		}
		newest = max(newest, v)
	}
	return newest, nil
}

func migrate(ctx context.Context, d goose.Dialect, db *sql.DB, tokens *strings.Replacer, to int64, opts ...goose.ProviderOption) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	opts = append(opts, goose.WithDisableGlobalRegistry(true))
	p, err := goose.NewProvider(d, db, tokenFS{files, tokens}, opts...)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if to == 0 {
		_, err = p.Up(ctx)
	} else {
		_, err = p.UpTo(ctx, to)
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// tokenFS replaces the dialect's tokens in files while they are read.
type tokenFS struct {
	fs.FS
	tokens *strings.Replacer
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
