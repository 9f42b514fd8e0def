package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/lockfile"
)

// SchemaStatus compares the tables of a database with what this program needs. Numbers
// are those of migrations.
type SchemaStatus struct {
	Program  int64        // the newest that this program knows
	Database int64        // the newest that was run; 0: there is no database yet
	Oldest   int64        // programs that know less may not run
	Pending  []string     // files that were not run yet, in order
	Running  []cloud.Node // processes with a lease; on SQLite the last one that ran
}

// Errors of schemas. Both name the numbers and what to do.
var (
	ErrOldProgram    = errors.New("this program is too old for the database")
	ErrSchemaPending = errors.New("the database needs migrations")
	ErrOldRunning    = errors.New("programs that run are too old for the next migration")
	errNoMigrations  = errors.New("this program has no migrations")
)

// Progress says how a migration goes on.
type Progress struct {
	Migration string        // file
	Rows      int64         // that were filled in so far, in one that fills
	Phase     string        // of an index that is built, with the share that is done
	Done      bool          // it has been run
	Took      time.Duration // when it is done
}

const (
	lockTries = 150 // of a migration that waits for a table, a second apart
	fillRows  = 500 // in one transaction
	leaseTime = 30 * time.Second
)

const (
	sqlIsClaimed     = `SELECT 1 FROM setup WHERE id = 1 AND keys_digest IS NOT NULL`
	sqlOldestSchema  = `SELECT number FROM schema_oldest`
	sqlRaiseOldest   = `UPDATE schema_oldest SET number = $1 WHERE number < $1`
	sqlOlderNodes    = `SELECT instance, name, address, version, schema_number, beat FROM node WHERE schema_number < $1 ORDER BY name`
	sqlBeginFill     = `INSERT INTO schema_fill (number, key, filled) VALUES ($1, $2, 0) ON CONFLICT (number) DO NOTHING`
	sqlFindFill      = `SELECT key, filled FROM schema_fill WHERE number = $1 @lock`
	sqlNoteFill      = `UPDATE schema_fill SET key = $2, filled = $3 WHERE number = $1`
	ranMigrations    = `SELECT version_id FROM goose_db_version WHERE is_applied AND version_id > 0`
	liteHasTable     = `SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = $1`
	pgHasTable       = `SELECT COUNT(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1`
	pgIndexProgress  = `SELECT phase, CASE WHEN blocks_total > 0 THEN 100 * blocks_done / blocks_total ELSE 0 END FROM pg_stat_progress_create_index WHERE datname = current_database()`
	firstWithNumbers = 270 // the migration that notes the numbers of programs
	firstWithNodes   = 250
)

// schema brings the tables of one database up to date.
type schema struct {
	files   fs.FS
	all     []migration
	dialect goose.Dialect
	tokens  *strings.Replacer
	db      *sql.DB
	path    string // of a SQLite database
	report  func(Progress)
	held    bool                                                  // this process has the SQLite database by Hold
	permit  func(ctx context.Context, running []cloud.Node) error // see Config.Permit
	quiet   bool                                                  // of the migrations of a new database
	silence time.Duration                                         // after which a lease whose beat stands still is of no process
}

// newSchema is the schema of a database: of the SQLite file at path, or of PostgreSQL.
func newSchema(db *sql.DB, path string, report func(Progress)) (*schema, error) {
	s := &schema{files: migrations, db: db, path: path, report: report, silence: leaseTime, dialect: goose.DialectSQLite3, tokens: liteTokens}
	if path == "" {
		s.dialect, s.tokens = goose.DialectPostgres, pgTokens
	}
	if s.report == nil {
		s.report = func(Progress) {}
	}
	var err error
	if s.all, err = readMigrations(s.files); err == nil && len(s.all) == 0 {
		err = errNoMigrations
	}
	return s, err
}

// logProgress is how a start reports what takes time.
func logProgress(log *slog.Logger) func(Progress) {
	return func(p Progress) {
		switch {
		case !p.Done:
			log.Info("migration runs", "migration", p.Migration, "rows", p.Rows, "phase", p.Phase)
		case p.Took > time.Second:
			log.Info("migration was run", "migration", p.Migration, "seconds", p.Took.Seconds())
		}
	}
}

// open makes sure that this program may run on the database, with all tables that it
// needs: it runs what is pending, or says so when that is left to the command. Errors:
// ErrOldProgram, ErrSchemaPending, ErrOldRunning.
func (s *schema) open(ctx context.Context, byCommand bool) error {
	at, err := s.status(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("look at the schema: %w", err)
	case at.Program < at.Oldest:
		return fmt.Errorf("%w: this program has schema %d, the database has schema %d and takes programs of schema %d or newer; start the release that the other nodes run, or a newer one", ErrOldProgram, at.Program, at.Database, at.Oldest)
	case len(at.Pending) > 0 && byCommand:
		return fmt.Errorf("%w: it has schema %d and this program needs schema %d (%d migrations); run \"cloud schema up\" with this program and these settings, or set migrate to start", ErrSchemaPending, at.Database, at.Program, len(at.Pending))
	}
	if len(at.Pending) == 0 {
		return nil
	}
	if s.permit != nil {
		if err := s.permit(ctx, at.Running); err != nil {
			return err
		}
	}
	if at.Database == 0 && s.quiet {
		s.report = reportWaits(s.report)
	}
	return s.up(ctx, 0)
}

// reportWaits reports of the migrations of a new database, which has no rows to change,
// nothing but what they wait for.
func reportWaits(report func(Progress)) func(Progress) {
	return func(p Progress) {
		if p.Phase != "" {
			report(p)
		}
	}
}

// status reads how things stand and changes nothing.
func (s *schema) status(ctx context.Context) (out SchemaStatus, err error) {
	out.Program = s.all[len(s.all)-1].number
	ran, err := s.ran(ctx)
	if err != nil {
		return out, err
	}
	for _, n := range ran {
		out.Database = max(out.Database, n)
	}
	for _, m := range s.all {
		if !slices.Contains(ran, m.number) {
			out.Pending = append(out.Pending, m.name)
		}
	}
	if out.Database >= firstWithNumbers {
		if err := s.db.QueryRowContext(ctx, sqlOldestSchema).Scan(&out.Oldest); err != nil {
			return out, err
		}
		out.Running, err = s.older(ctx, s.db, math.MaxInt64)
	} else if out.Database >= firstWithNodes {
		out.Oldest = firstWithNodes
	}
	return out, err
}

// ran are the numbers of the migrations that were run.
func (s *schema) ran(ctx context.Context) (out []int64, err error) {
	has := liteHasTable
	if s.path == "" {
		has = pgHasTable
	}
	var n int
	if err := s.db.QueryRowContext(ctx, has, "goose_db_version").Scan(&n); err != nil || n == 0 {
		return nil, err
	}
	rows, err := s.db.QueryContext(ctx, ranMigrations)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v int64
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// up runs what is pending up to a number; 0 is all. Several processes may do so at once.
// On SQLite no node may run meanwhile but the one that does it. Error: ErrOldRunning.
func (s *schema) up(ctx context.Context, to int64) (err error) {
	if s.path != "" {
		f, err := lockfile.Acquire(s.path+".schema.lock", 10*time.Minute)
		if err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
	}
	ran, err := s.ran(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if s.path != "" && !s.held && slices.ContainsFunc(s.all, func(m migration) bool { return !slices.Contains(ran, m.number) && (to == 0 || m.number <= to) }) {
		release, refused := holdLite(s.path)
		if errors.Is(refused, ErrInUse) {
			return fmt.Errorf("migrate: %w: a program runs on the database %s; stop it first", ErrOldRunning, s.path)
		}
		if refused != nil {
			return fmt.Errorf("migrate: %w", refused)
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	for i := 0; i < len(s.all); i++ {
		m := s.all[i]
		if slices.Contains(ran, m.number) || to > 0 && m.number > to {
			continue
		}
		if !m.special() { // those of a row go together
			for i+1 < len(s.all) && !s.all[i+1].special() && (to == 0 || s.all[i+1].number <= to) {
				i++
			}
			m.number = s.all[i].number
		}
		if err := s.run(ctx, m); err != nil {
			return fmt.Errorf("migrate: %s: %w", m.name, err)
		}
	}
	return nil
}

// special reports whether a migration is run by itself.
func (m migration) special() bool { return m.oldest > 0 || m.fill != "" || m.beside }

// run runs a migration, and those before it that were not run.
func (s *schema) run(ctx context.Context, m migration) (err error) {
	if m.oldest > 0 {
		if err := s.raise(ctx, m.oldest); err != nil {
			return err
		}
	}
	begun := time.Now()
	if m.special() {
		s.report(Progress{Migration: m.name})
	}
	if m.fill != "" {
		if err := s.fill(ctx, m); err != nil {
			return err
		}
	}
	watched, stop := context.WithCancel(ctx)
	if m.beside && s.path == "" {
		go s.watchIndex(watched, m)
	}
	defer stop()
	for try := 0; ; try++ {
		results, err := s.goose(ctx, s.db, m.number)
		for _, r := range results {
			s.report(Progress{Migration: r.Source.Path, Done: true, Took: r.Duration})
		}
		if m.fill != "" && err == nil {
			s.report(Progress{Migration: m.name, Done: true, Took: time.Since(begun)})
		}
		if !s.again(ctx, m, err, try) {
			return err
		}
	}
}

// again reports whether a migration that did not get its table is to be tried again, and
// lets the writers pass that waited behind it.
func (s *schema) again(ctx context.Context, m migration, err error, try int) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "55P03" && !overtaken(err) || try == lockTries {
		return false
	}
	s.report(Progress{Migration: m.name, Phase: "waits for a table that is in use"})
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Second):
		return true
	}
}

// watchIndex reports how far an index is.
func (s *schema) watchIndex(ctx context.Context, m migration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * time.Second):
		}
		var phase string
		var share int
		if s.db.QueryRowContext(ctx, pgIndexProgress).Scan(&phase, &share) == nil {
			s.report(Progress{Migration: m.name, Phase: fmt.Sprintf("%s, %d %%", phase, share)})
		}
	}
}

// fill runs the statement of a migration until it fills in no more. Each transaction
// notes its last key: the next one goes on there, whichever process it is of.
func (s *schema) fill(ctx context.Context, m migration) error {
	for try := 0; ; {
		n, rows, err := s.fillOnce(ctx, m)
		if s.again(ctx, m, err, try) {
			try++
			continue
		}
		if err != nil || n == 0 {
			return err
		}
		try = 0
		s.report(Progress{Migration: m.name, Rows: rows})
	}
}

func (s *schema) fillOnce(ctx context.Context, m migration) (n int, filled int64, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback()
		}
	}()
	var key int64
	if _, err := tx.ExecContext(ctx, sqlBeginFill, m.number, int64(math.MinInt64)); err != nil {
		return 0, 0, err
	}
	if err := tx.QueryRowContext(ctx, s.tokens.Replace(sqlFindFill), m.number).Scan(&key, &filled); err != nil {
		return 0, 0, err
	}
	rows, err := tx.QueryContext(ctx, s.tokens.Replace(m.fill), key, fillRows)
	if err != nil {
		return 0, 0, err
	}
	defer rows.Close()
	for ; rows.Next(); n++ {
		var k int64
		if err := rows.Scan(&k); err != nil {
			return 0, 0, err
		}
		key = max(key, k)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return 0, 0, err
	}
	filled += int64(n)
	if _, err := tx.ExecContext(ctx, sqlNoteFill, m.number, key, filled); err != nil {
		return 0, 0, err
	}
	return n, filled, tx.Commit()
}

// raise keeps programs away that know less than a number, from now on. Error:
// ErrOldRunning when one of them runs. On SQLite up keeps all others away.
func (s *schema) raise(ctx context.Context, number int64) error {
	if s.path != "" {
		_, err := s.db.ExecContext(ctx, sqlRaiseOldest, number)
		return err
	}
	seen := map[string]int64{}
	for begun := time.Now(); ; {
		still := map[string]int64(nil)
		if time.Since(begun) >= s.silence {
			still = seen
		}
		older, err := s.raiseOnce(ctx, number, still)
		if err == nil || !errors.Is(err, ErrOldRunning) {
			return err
		}
		for _, n := range older {
			if beat, known := seen[n.Instance]; known && beat != n.Beat || !known && len(seen) > 0 { // or was started since
				return fmt.Errorf("%w: %q at %s has schema %d (release %s), the migration takes programs of schema %d or newer; update it, or stop it, and try again", ErrOldRunning, n.Name, n.Address, n.SchemaNumber, n.Version, number)
			}
		}
		if len(seen) == 0 {
			for _, n := range older {
				seen[n.Instance] = n.Beat
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// raiseOnce raises the number unless older programs have a lease. Leases whose beat still
// stands where it stood are of processes that ended, and end.
func (s *schema) raiseOnce(ctx context.Context, number int64, still map[string]int64) (older []cloud.Node, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback()
		}
	}()
	if _, err := tx.ExecContext(ctx, sqlRaiseOldest, number); err != nil { // a node that enters has read the row
		return nil, err
	}
	for instance, beat := range still {
		if _, err := tx.ExecContext(ctx, sqlEndNode, instance, beat); err != nil {
			return nil, err
		}
	}
	if older, err = s.older(ctx, tx, number); err != nil {
		return nil, err
	}
	if len(older) > 0 {
		return older, ErrOldRunning
	}
	return nil, tx.Commit()
}

// older are the processes with a lease whose programs know less than a number. It reads what
// the table has had since schemas have numbers: the tables are not migrated yet.
func (s *schema) older(ctx context.Context, db interface {
	QueryContext(ctx context.Context, sql string, args ...any) (*sql.Rows, error)
}, number int64) (out []cloud.Node, err error) {
	rows, err := db.QueryContext(ctx, sqlOlderNodes, number)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n cloud.Node
		if err := rows.Scan(&n.Instance, &n.Name, &n.Address, &n.Version, &n.SchemaNumber, &n.Beat); err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, rows.Err()
}

// InspectSchema reads how the tables of a database stand and changes nothing. A SQLite
// database that is not there has schema 0.
func InspectSchema(ctx context.Context, cfg Config) (out SchemaStatus, err error) {
	if !isPostgres(cfg.URL) {
		path, err := litePath(cfg)
		if err != nil {
			return out, err
		}
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			s, err := newSchema(nil, path, nil)
			if err != nil {
				return out, err
			}
			out.Program = s.all[len(s.all)-1].number
			for _, m := range s.all {
				out.Pending = append(out.Pending, m.name)
			}
			return out, nil
		}
	}
	err = withSchema(ctx, cfg, nil, func(s *schema) error {
		out, err = s.status(ctx)
		return err
	})
	return out, err
}

// IsClaimed reports whether the database that cfg names is there and belongs to keys; it
// changes nothing. Errors: ErrRestoring, ErrDamaged.
func IsClaimed(ctx context.Context, cfg Config) (claimed bool, err error) {
	if !isPostgres(cfg.URL) {
		if empty, err := IsEmpty(ctx, cfg); err != nil || empty {
			return false, err
		}
	} else if err := awaitAddress(ctx, cfg); err != nil {
		return false, err
	}
	err = withSchema(ctx, cfg, nil, func(s *schema) error {
		has := liteHasTable
		if s.path == "" {
			has = pgHasTable
		}
		var n int
		if err := s.db.QueryRowContext(ctx, has, "setup").Scan(&n); err != nil || n == 0 {
			return err
		}
		err := s.db.QueryRowContext(ctx, sqlIsClaimed).Scan(&n)
		claimed = err == nil
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return claimed, err
}

// awaitAddress waits until a PostgreSQL database answers.
func awaitAddress(ctx context.Context, cfg Config) error {
	pool, err := openPool(ctx, cfg.URL)
	if err != nil {
		return err
	}
	defer pool.Close()
	log := cfg.Logger
	if log == nil {
		log = slog.Default()
	}
	if err := awaitPostgres(ctx, pool, log); err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	return nil
}

// MigrateSchema runs the migrations that a database needs for this program, while other
// programs use it; on SQLite no node may. Several may do so at once: one runs them, the
// others wait. report may be nil. Errors: ErrOldProgram, ErrOldRunning.
func MigrateSchema(ctx context.Context, cfg Config, report func(Progress)) error {
	return withSchema(ctx, cfg, report, func(s *schema) error { return s.open(ctx, false) })
}

// withSchema lends the schema of the database that cfg names.
func withSchema(ctx context.Context, cfg Config, report func(Progress), f func(*schema) error) (err error) {
	var db *sql.DB
	path := ""
	if isPostgres(cfg.URL) {
		pool, err := openUnbounded(ctx, cfg.URL)
		if err != nil {
			return fmt.Errorf("open database: %w", err)
		}
		defer pool.Close()
		if err := checkLoaded(ctx, pool); err != nil {
			return err
		}
		db = stdlib.OpenDBFromPool(pool)
	} else if path, err = litePath(cfg); err == nil {
		if err = makePrivate(path); err == nil {
			db, err = sql.Open("sqlite", "file:"+path+"?"+liteWriterDSN)
		}
	}
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if path != "" {
		db.SetMaxOpenConns(1)
	}
	s, err := newSchema(db, path, report)
	if err != nil {
		return err
	}
	return damaged(path, f(s))
}
