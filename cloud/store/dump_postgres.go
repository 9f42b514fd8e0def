package store

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// A dump of PostgreSQL is a tar file. Each entry is a piece of a table, named
//
//	TABLE/COLUMN,COLUMN,…/NUMBER
//
// and holds lines of COPY's text format. Every table has at least one, in a database
// without rows an empty one.
const dumpPiece = 4 << 20 // bytes, and the rest of a line

// What is asked about tables. Names of tables and columns cannot be arguments of COPY.
const (
	pgTables = `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY table_name`
	pgFields = `SELECT column_name, is_identity = 'YES' FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position`
)

func (e *postgres) dump(ctx context.Context, w io.Writer) (d Dump, err error) {
	d = Dump{Engine: EnginePostgres, Rows: map[string]int64{}}
	t := tar.NewWriter(w)
	c, err := e.pool.Acquire(ctx)
	if err != nil {
		return d, err
	}
	defer c.Release()
	if _, err := c.Exec(ctx, pgBeginReading); err != nil {
		return d, err
	}
	defer func() {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), pgUndo)
		defer cancel()
		_, _ = c.Exec(undo, "ROLLBACK")
	}()
	if err := c.QueryRow(ctx, dumpVersion).Scan(&d.Version); err != nil {
		return d, err
	}
	tables, err := tablesOf(ctx, c.Conn())
	if err != nil {
		return d, err
	}
	for _, table := range tables {
		columns, _, err := fieldsOf(ctx, c.Conn(), table)
		if err != nil {
			return d, err
		}
		p := &pieces{to: t, name: table + "/" + strings.Join(columns, ",")}
		tag, err := c.Conn().PgConn().CopyTo(ctx, p, "COPY "+quoteName(table)+" ("+columnList(columns)+") TO STDOUT")
		if err = errors.Join(err, p.end()); err != nil {
			return d, fmt.Errorf("copy %s: %w", table, err)
		}
		d.Rows[table] = tag.RowsAffected()
	}
	return d, t.Close()
}

func tablesOf(ctx context.Context, c *pgx.Conn) ([]string, error) {
	all, err := allTables(ctx, c)
	return slices.DeleteFunc(all, func(name string) bool { return strings.HasPrefix(name, ownTables) || name == pgLoading }), err
}

// fieldsOf are the columns of a table, and the one whose numbers the server gives.
func fieldsOf(ctx context.Context, c *pgx.Conn, table string) (names []string, identity string, err error) {
	r, err := c.Query(ctx, pgFields, table)
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	for r.Next() {
		var name string
		var is bool
		if err := r.Scan(&name, &is); err != nil {
			return nil, "", err
		}
		if names = append(names, name); is {
			identity = name
		}
	}
	return names, identity, r.Err()
}

func columnList(columns []string) string {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = quoteName(c)
	}
	return strings.Join(quoted, ", ")
}

// pieces cuts lines into entries of a tar file.
type pieces struct {
	to   *tar.Writer
	name string
	n    int
	buf  bytes.Buffer
}

func (p *pieces) Write(b []byte) (int, error) {
	p.buf.Write(b)
	if p.buf.Len() < dumpPiece {
		return len(b), nil
	}
	return len(b), p.flush()
}

func (p *pieces) flush() error {
	err := p.to.WriteHeader(&tar.Header{Name: fmt.Sprintf("%s/%06d", p.name, p.n), Mode: 0o600, Size: int64(p.buf.Len())})
	if err == nil {
		_, err = p.to.Write(p.buf.Bytes())
	}
	p.n++
	p.buf.Reset()
	return err
}

func (p *pieces) end() error {
	if p.n > 0 && p.buf.Len() == 0 {
		return nil
	}
	return p.flush()
}

// readPieces calls table for every table of a dump, with its lines.
func readPieces(r io.Reader, table func(name string, columns []string, lines io.Reader) error) error {
	t := tar.NewReader(r)
	h, err := t.Next()
	for err == nil {
		prefix, columns, name, ok := cutPiece(h.Name)
		if !ok {
			return fmt.Errorf("%w: an entry is named %q", ErrDumpDamaged, h.Name)
		}
		p := &pieceReader{t: t, prefix: prefix}
		if err := table(name, columns, p); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, p); err != nil {
			return err
		}
		h, err = p.next, p.err
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", ErrDumpDamaged, err)
	}
	return nil
}

func cutPiece(entry string) (prefix string, columns []string, table string, ok bool) {
	parts := strings.Split(entry, "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" {
		return "", nil, "", false
	}
	return parts[0] + "/" + parts[1] + "/", strings.Split(parts[1], ","), parts[0], true
}

// pieceReader reads the pieces of one table after another.
type pieceReader struct {
	t      *tar.Reader
	prefix string
	next   *tar.Header // the first of another table
	err    error       // why there is none
}

func (p *pieceReader) Read(to []byte) (int, error) {
	for p.next == nil && p.err == nil {
		n, err := p.t.Read(to)
		if !errors.Is(err, io.EOF) || n > 0 {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return n, err
		}
		h, err := p.t.Next()
		if p.err = err; err == nil && !strings.HasPrefix(h.Name, p.prefix) {
			p.next = h
		}
	}
	if p.err != nil && !errors.Is(p.err, io.EOF) {
		return 0, p.err
	}
	return 0, io.EOF
}

// checkPostgres counts the lines of every table.
func checkPostgres(want Dump, r io.Reader) error {
	have := Dump{Engine: EnginePostgres, Version: want.Version, Rows: map[string]int64{}}
	err := readPieces(r, func(name string, _ []string, lines io.Reader) error {
		n, err := countLines(lines)
		have.Rows[name] = n
		return err
	})
	if err != nil {
		return err
	}
	return want.compare(have)
}

// countLines counts rows: COPY writes a line feed inside a value as \n.
func countLines(r io.Reader) (n int64, err error) {
	buf := make([]byte, 64<<10)
	for {
		k, err := r.Read(buf)
		n += int64(bytes.Count(buf[:k], []byte{'\n'}))
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func isEmptyPostgres(ctx context.Context, url string) (bool, error) {
	c, err := connectPostgres(ctx, url)
	if err != nil {
		return false, err
	}
	all, err := allTables(ctx, c)
	return len(all) == 0 || slices.Contains(all, pgLoading), errors.Join(err, c.Close(ctx))
}

// allTables asks by the simple protocol, which leaves a transaction no snapshot that building
// an index beside writers would wait for.
func allTables(ctx context.Context, c *pgx.Conn) ([]string, error) {
	r, err := c.Query(ctx, pgTables, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(r, pgx.RowTo[string])
}

func connectPostgres(ctx context.Context, url string) (*pgx.Conn, error) {
	cfg, err := readAddress(url) // which knows the pool's settings too
	if err != nil {
		return nil, err
	}
	c, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	return c, nil
}

// loadPostgres makes the tables of the dump's time and fills them in one transaction. Later
// migrations are those of the next start. Tables that it made go when that fails.
func loadPostgres(ctx context.Context, url string, d Dump, at time.Time, r io.Reader) (err error) {
	place, err := takePlace(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.leave(ctx, err == nil)) }()
	pool, err := openUnbounded(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, db.Close()) }()
	s, err := newSchema(db, "", nil)
	if err == nil {
		err = s.up(ctx, d.Version)
	}
	if err != nil {
		return err
	}
	c, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	return fillPostgres(ctx, c.Conn(), d, at, r)
}

// pgLoading is a table that is there while a dump is loaded, and after a load that died. A
// database with it is none: no node starts on it, and the next load begins with nothing.
// A load keeps it locked.
const pgLoading = "postern_restoring"

// pgUnbounded lets a session, or with true a transaction alone, wait for as long as it takes, whatever the
// server bounds it to; by names, since servers do not have them all.
const pgUnbounded = `SELECT set_config(name, '0', $1) FROM pg_settings WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout', 'statement_timeout')`

// loadingPlace is a database that this process loads a dump into.
type loadingPlace struct {
	c  *pgx.Conn
	tx pgx.Tx
}

// takePlace takes an empty database, or one that a load has died in. Errors: ErrNotEmpty,
// ErrRestoring when another process loads.
func takePlace(ctx context.Context, url string) (p loadingPlace, err error) {
	if p.c, err = connectPostgres(ctx, url); err != nil {
		return p, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.c.Close(context.WithoutCancel(ctx)))
		}
	}()
	all, err := allTables(ctx, p.c)
	empty := len(all) == 0
	switch {
	case err != nil:
		return p, err
	case empty:
		err = markPlace(ctx, p.c)
	case !slices.Contains(all, pgLoading):
		err = ErrNotEmpty
	}
	if err != nil {
		return p, err
	}
	// Whatever the server's default, this one keeps no snapshot: the making of indexes would wait for it.
	if p.tx, err = p.c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}); err != nil {
		return p, err
	}
	if _, err = p.tx.Exec(ctx, "LOCK TABLE "+pgLoading+" IN SHARE UPDATE EXCLUSIVE MODE NOWAIT"); err != nil {
		var pg *pgconn.PgError
		if errors.As(err, &pg) && (pg.Code == "55P03" || pg.Code == "42P01") {
			err = ErrRestoring
		}
		return p, err
	}
	if err = p.clear(ctx, url, empty); err != nil && empty { // which leaves the place as it was
		_, gone := p.tx.Exec(ctx, "DROP TABLE "+pgLoading)
		err = errors.Join(err, gone, p.tx.Commit(ctx))
	}
	return p, err
}

// markPlace makes the table that says that a load is under way, where no other is there.
func markPlace(ctx context.Context, c *pgx.Conn) error {
	tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, "CREATE TABLE "+pgLoading+" (since TIMESTAMPTZ NOT NULL DEFAULT now())"); err != nil {
		return fmt.Errorf("%w: %w", ErrRestoring, err) // another was quicker
	}
	all, err := allTables(ctx, c)
	if err == nil && len(all) > 1 {
		err = ErrNotEmpty
	}
	if err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// clear takes away what an earlier load left. A place that was empty a moment ago has
// nothing, unless a node has begun a cloud since: ErrNotEmpty.
func (p loadingPlace) clear(ctx context.Context, url string, wasEmpty bool) error {
	if _, err := p.tx.Exec(ctx, pgUnbounded, pgx.QueryExecModeSimpleProtocol, true); err != nil {
		return err
	}
	c, err := connectPostgres(ctx, url) // what it drops is gone at once
	if err != nil {
		return err
	}
	if wasEmpty {
		all, err := allTables(ctx, c)
		if err == nil && len(all) > 1 {
			err = ErrNotEmpty
		}
		return errors.Join(err, c.Close(ctx))
	}
	return errors.Join(dropTables(ctx, c, pgLoading), c.Close(ctx))
}

// leave makes a database of what was loaded, or takes it away.
func (p loadingPlace) leave(ctx context.Context, whole bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	var err error
	if !whole {
		err = dropTables(ctx, p.c, pgLoading)
	}
	if err == nil {
		_, err = p.tx.Exec(ctx, "DROP TABLE "+pgLoading)
	}
	if err == nil {
		err = p.tx.Commit(ctx)
	}
	return errors.Join(err, p.c.Close(ctx))
}

// checkLoaded says whether a database is one. Error: ErrRestoring.
func checkLoaded(ctx context.Context, pool *pgxpool.Pool) error {
	var n int
	err := pool.QueryRow(ctx, pgHasTable, pgLoading).Scan(&n)
	if err == nil && n > 0 {
		err = ErrRestoring
	}
	return err
}

// dropTables takes away all tables but one.
func dropTables(ctx context.Context, c *pgx.Conn, but string) error {
	all, err := allTables(ctx, c)
	for _, table := range all {
		if err == nil && table != but {
			_, err = c.Exec(ctx, "DROP TABLE "+quoteName(table)+" CASCADE")
		}
	}
	return err
}

func fillPostgres(ctx context.Context, c *pgx.Conn, d Dump, at time.Time, r io.Reader) (err error) {
	tx, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), pgUndo)
			defer cancel()
			_ = tx.Rollback(undo)
		}
	}()
	known, err := tablesOf(ctx, c)
	if err != nil {
		return err
	}
	for _, table := range known { // migrations bring some rows
		if _, err := tx.Exec(ctx, "TRUNCATE "+quoteName(table)); err != nil {
			return err
		}
	}
	var version int64
	if err := tx.QueryRow(ctx, dumpVersion).Scan(&version); err != nil {
		return err
	}
	if version != d.Version { // another process has run migrations since, on tables without rows
		return fmt.Errorf("%w: the tables were brought to schema %d meanwhile", ErrRestoring, version)
	}
	have := Dump{Engine: EnginePostgres, Version: d.Version, Rows: map[string]int64{}}
	err = readPieces(r, func(name string, columns []string, lines io.Reader) error {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%w: there is no table %q", ErrDumpDamaged, name)
		}
		tag, err := c.PgConn().CopyFrom(ctx, lines, "COPY "+quoteName(name)+" ("+columnList(columns)+") FROM STDIN")
		if err != nil {
			return fmt.Errorf("load %s: %w", name, err)
		}
		have.Rows[name] = tag.RowsAffected()
		_, identity, err := fieldsOf(ctx, c, name)
		if err != nil || identity == "" || have.Rows[name] == 0 {
			return err
		}
		_, err = tx.Exec(ctx, "SELECT setval(pg_get_serial_sequence($1, $2), MAX("+quoteName(identity)+")) FROM "+quoteName(name), name, identity)
		return err
	})
	if err == nil {
		err = d.compare(have)
	}
	if err == nil {
		_, err = tx.Exec(ctx, pgText(sqlMakeRecovery))
	}
	for _, o := range recoverySteps(d.Version, at, time.Now()) {
		if err == nil {
			_, err = tx.Exec(ctx, o.sql, o.args...)
		}
	}
	if err != nil {
		return err
	}
	return tx.Commit(ctx)
}
