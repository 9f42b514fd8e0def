package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/postern-io/postern/cloud"
)

const (
	litePragmas = "_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)" +
		"&_pragma=foreign_keys(1)&_pragma=mmap_size(4294967296)&_pragma=cache_size(-16384)" +
		"&_pragma=wal_autocheckpoint(16384)&_pragma=journal_size_limit(67108864)"
	liteWriterDSN = litePragmas + "&_txlock=immediate"
	liteReaderDSN = litePragmas + "&_pragma=query_only(1)"

	liteReaders = 8
	// liteStatements are kept prepared on a connection.
	liteStatements = 512
	liteGroup      = 512  // changes in one commit
	liteQueue      = 1024 // changes that wait; more wait in their callers
)

// lite is the SQLite engine.
type lite struct {
	path      string
	committed func(*cloud.Changes)
	observe   func(time.Duration, int)
	waits     atomic.Int64 // for a reader
	writing   atomic.Bool
	logins    atomic.Uint64 // commits that may have changed what a token stands for

	writerDB, readerDB *sql.DB
	writer             *liteConn      // owned by the loop
	readers            chan *liteConn // idle ones
	unopened           chan struct{}  // one for each reader that may yet be opened

	queue chan *job
	stop  chan struct{} // closed by close: no new jobs
	once  sync.Once
	done  chan struct{} // closed when the loop ended
}

// job is one task on its way through the writer. The goroutine that moves state from
// jobWaiting decides: the loop takes it, or its caller leaves.
type job struct {
	fn     task
	state  atomic.Int32
	result chan error // of capacity 1

	changes *cloud.Changes // of the last run
	err     error
}

const (
	jobWaiting int32 = iota
	jobTaken
	jobLeft
)

var errClosed = errors.New("store is closed")

func openLite(ctx context.Context, path string, cfg Config, log *slog.Logger, committed func(*cloud.Changes), observe func(time.Duration, int)) (*lite, error) {
	e := &lite{
		path: path, committed: committed, observe: observe,
		readers:  make(chan *liteConn, liteReaders),
		unopened: make(chan struct{}, liteReaders),
		queue:    make(chan *job, liteQueue),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
	}
	if err := makePrivate(path); err != nil {
		return nil, err
	}
	if err := e.open(ctx, cfg, log); err != nil {
		return nil, errors.Join(damaged(path, err), e.closeDBs())
	}
	go e.loop()
	return e, nil
}

// makePrivate makes a database file that other users of the machine cannot read; SQLite
// gives its other files the mode of the first. One that is there is never opened here,
// since closing it would drop SQLite's locks.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if info, err := os.Stat(name); err == nil && info.Mode().Perm()&0o077 != 0 {
			_ = os.Chmod(name, 0o600) // another user's stays as it is
		}
	}
	return nil
}

// ErrDamaged says that the file of a SQLite database cannot be read.
var ErrDamaged = errors.New("the file of the database is damaged")

// damaged names the file, and what to do, in an error of a file that cannot be read.
func damaged(path string, err error) error {
	var said *sqlite.Error
	if !errors.As(err, &said) || said.Code()&0xff != sqlite3.SQLITE_CORRUPT && said.Code()&0xff != sqlite3.SQLITE_NOTADB {
		return err
	}
	return fmt.Errorf("%w: move %s away, with the files beside it whose names begin with its own, and restore a backup (cloud restore): %w", ErrDamaged, path, err)
}

func (e *lite) open(ctx context.Context, cfg Config, log *slog.Logger) error {
	var err error
	if e.writerDB, err = sql.Open("sqlite", "file:"+e.path+"?"+liteWriterDSN); err != nil {
		return err
	}
	e.writerDB.SetMaxOpenConns(1)
	s, err := newSchema(e.writerDB, e.path, logProgress(log))
	if err == nil {
		s.held, s.quiet = cfg.Held, true
		err = s.open(ctx, cfg.SchemaByCommand)
	}
	if err != nil {
		return err
	}
	if e.writer, err = newLiteConn(ctx, e.writerDB); err != nil {
		return err
	}
	e.writer.kept = map[keptKey]keptRow{}
	if e.readerDB, err = sql.Open("sqlite", "file:"+e.path+"?"+liteReaderDSN); err != nil {
		return err
	}
	e.readerDB.SetMaxOpenConns(liteReaders)
	e.readerDB.SetMaxIdleConns(liteReaders)
	for range liteReaders {
		e.unopened <- struct{}{}
	}
	<-e.unopened
	first, err := e.openReader(ctx)
	if err != nil {
		return err
	}
	e.readers <- first
	return nil
}

// openReader opens the reader whose place the caller took from unopened. The
// place goes back when that fails.
func (e *lite) openReader(ctx context.Context) (*liteConn, error) {
	c, err := newLiteConn(ctx, e.readerDB)
	if err != nil {
		e.unopened <- struct{}{}
	}
	return c, err
}

// reader is an idle reader, or a new one when all that were opened are busy: each
// reads the whole schema before its first statement. The caller returns it to
// readers.
func (e *lite) reader(ctx context.Context) (*liteConn, error) {
	select {
	case c := <-e.readers:
		return c, nil
	default:
	}
	if len(e.unopened) == 0 {
		e.waits.Add(1)
	}
	select {
	case c := <-e.readers:
		return c, nil
	case <-e.unopened:
		return e.openReader(ctx)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-e.stop:
		return nil, errClosed
	}
}

func (e *lite) close() error {
	e.once.Do(func() { close(e.stop) })
	<-e.done
	return e.closeDBs()
}

func (e *lite) closeDBs() error {
	var errs []error
	if e.readerDB != nil {
		for range cap(e.readers) {
			select {
			case c := <-e.readers: // one that is still out comes back
				errs = append(errs, c.close())
			case <-e.unopened:
			}
		}
		errs = append(errs, e.readerDB.Close())
	}
	if e.writer != nil {
		errs = append(errs, e.writer.close())
	}
	if e.writerDB != nil {
		errs = append(errs, e.writerDB.Close())
	}
	return errors.Join(errs...)
}

func (e *lite) write(ctx context.Context, _ cloud.DeviceID, fn task) error {
	j := &job{fn: fn, result: make(chan error, 1)}
	select {
	case e.queue <- j:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-e.stop:
		return errClosed
	}
	select {
	case err := <-j.result:
		return away(err)
	case <-ctx.Done():
		if j.state.CompareAndSwap(jobWaiting, jobLeft) {
			return context.Cause(ctx)
		}
	case <-e.done:
		if j.state.CompareAndSwap(jobWaiting, jobLeft) {
			return errClosed
		}
	}
	return away(<-j.result)
}

// loop owns the writer: it takes what waits, commits it together, and answers.
func (e *lite) loop() {
	defer close(e.done)
	group := make([]*job, 0, liteGroup)
	for {
		group = group[:0]
		select {
		case j := <-e.queue:
			group = joinGroup(group, j)
		case <-e.stop:
			for len(e.queue) > 0 {
				e.run(joinGroup(nil, <-e.queue))
			}
			return
		}
	more:
		for len(group) < liteGroup {
			select {
			case j := <-e.queue:
				group = joinGroup(group, j)
			default:
				break more
			}
		}
		e.run(group)
		clear(group)
	}
}

// joinGroup adds j unless its caller has left.
func joinGroup(group []*job, j *job) []*job {
	if j.state.CompareAndSwap(jobWaiting, jobTaken) {
		return append(group, j)
	}
	return group
}

// run writes a group in one transaction and answers everyone in it.
func (e *lite) run(group []*job) {
	if len(group) == 0 {
		return
	}
	ctx := context.Background() // a half-done group is of no use
	begun := time.Now()
	e.writing.Store(true)
	err := e.together(ctx, group)
	if errors.Is(err, errSpoilt) {
		err = e.apart(ctx, group)
	}
	e.writing.Store(false)
	if e.writer.logins {
		e.writer.logins = false
		e.logins.Add(1) // before the writers are answered
	}
	if err == nil {
		e.observe(time.Since(begun), len(group))
	}
	for _, j := range group {
		if j.err == nil && err != nil {
			j.err, j.changes = err, nil
		}
		if j.err == nil && j.changes != nil {
			e.committed(j.changes)
		}
	}
	for _, j := range group {
		j.result <- damaged(e.path, j.err)
	}
}

// errSpoilt says that one member of a group failed after it had written.
var errSpoilt = errors.New("group has to be split")

// together runs the group without anything between its members. One that fails
// before it wrote leaves no trace and needs no care.
func (e *lite) together(ctx context.Context, group []*job) error {
	w := e.writer
	if err := w.control("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	for _, j := range group {
		w.dirty = false
		j.changes, j.err = j.fn(ctx, w)
		if j.err != nil && w.dirty {
			w.rollback()
			return errSpoilt
		}
	}
	return w.commit()
}

// apart runs the group again in one transaction with a savepoint for each
// member, so that only the guilty one is undone.
func (e *lite) apart(ctx context.Context, group []*job) error {
	w := e.writer
	if err := w.control("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	for _, j := range group {
		err := w.control("SAVEPOINT member")
		if err == nil {
			j.changes, j.err = j.fn(ctx, w)
			if j.err != nil {
				err = w.control("ROLLBACK TO member")
			}
		}
		if err == nil {
			err = w.control("RELEASE member")
		}
		if err != nil { // the engine has given up the transaction
			w.rollback()
			return fmt.Errorf("transaction ended early: %w", errors.Join(j.err, err))
		}
	}
	return w.commit()
}

func (e *lite) read(ctx context.Context, fn func(context.Context, querier) error) error {
	return e.readSnapshot(ctx, func(ctx context.Context, q querier) error {
		c := q.(*liteConn)
		if err := c.control("BEGIN DEFERRED"); err != nil {
			return fmt.Errorf("begin reading: %w", err)
		}
		defer c.rollback()
		return fn(ctx, c)
	})
}

func (e *lite) readSnapshot(ctx context.Context, fn func(context.Context, querier) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	c, err := e.reader(ctx)
	if err != nil {
		return away(err)
	}
	defer func() { e.readers <- c }()
	return away(damaged(e.path, fn(ctx, c)))
}

// walSize is the size of the write-ahead log in bytes.
func (e *lite) walSize() (int64, error) {
	info, err := os.Stat(e.path + "-wal")
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// backup writes a consistent copy to path, which must not exist.
func (e *lite) backup(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", "file:"+e.path+"?"+litePragmas)
	if err != nil {
		return err
	}
	f, made := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // an empty file is taken, and keeps its mode
	if made == nil {
		made = f.Close()
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO $1", path)
	if err = damaged(e.path, err); err != nil && made == nil {
		err = errors.Join(err, os.Remove(path))
	}
	return errors.Join(err, db.Close())
}

// liteConn is one connection with its prepared statements. It serves one
// goroutine at a time.
type liteConn struct {
	conn  *sql.Conn
	stmts map[string]liteStmt
	// dirty is set once the transaction may hold something of the running
	// task, or is in doubt.
	dirty bool
	// logins is set once a statement has written a table that loginTables names.
	logins bool
	// kept are rows of those tables that the running transaction has read and not
	// written since: decisions of one group ask for the same rights. nil on readers.
	kept map[keptKey]keptRow
}

// keptKey is a statement and the row that it asks for.
type keptKey struct {
	sql string
	id  int64
}

// keptRow is what was read: a row, or that there is none.
type keptRow struct {
	row any
	err error
}

// oneKept is one for rows of tables that loginTables names, each of which a transaction of
// the writer reads once. Callers share what the answer points to, and change none of it.
func oneKept[T any](ctx context.Context, q querier, sql string, scan func(rows, *T) error, id int64) (T, error) {
	c, ok := q.(*liteConn)
	if !ok || c.kept == nil {
		return one(ctx, q, sql, scan, id)
	}
	if k, ok := c.kept[keptKey{sql, id}]; ok {
		return k.row.(T), k.err
	}
	v, err := one(ctx, q, sql, scan, id)
	if err == nil || errors.Is(err, cloud.ErrNotFound) {
		c.kept[keptKey{sql, id}] = keptRow{v, err}
	}
	return v, err
}

// touches notes that a statement is about to run, and forgets the rows that it may write.
func (c *liteConn) touches(s liteStmt) {
	if s.logins {
		c.logins = true
		clear(c.kept)
	}
}

// liteStmt is a prepared statement.
type liteStmt struct {
	*sql.Stmt
	logins bool // it names a table of what tokens stand for
}

// loginTables are the tables that FindToken reads.
var loginTables = regexp.MustCompile(`\b(token|account|provider|business_state|platform_pass)\b`)

func newLiteConn(ctx context.Context, db *sql.DB) (*liteConn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &liteConn{conn: c, stmts: map[string]liteStmt{}}, nil
}

func (c *liteConn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.conn.Close())...)
}

func (c *liteConn) postgres() bool { return false }

// prepared is the statement for text, prepared once per connection.
func (c *liteConn) prepared(text string) (liteStmt, error) {
	if s, ok := c.stmts[text]; ok {
		return s, nil
	}
	for old, s := range c.stmts { // lists have as many statements as ways to ask
		if len(c.stmts) < liteStatements {
			break
		}
		delete(c.stmts, old)
		_ = s.Close()
	}
	p, err := c.conn.PrepareContext(context.Background(), liteTokens.Replace(text))
	if err != nil {
		return liteStmt{}, fmt.Errorf("prepare: %w", err)
	}
	s := liteStmt{p, loginTables.MatchString(text)}
	c.stmts[text] = s
	return s, nil
}

// control begins or ends a transaction or a part of one. No caller's leaving
// cuts it short: the driver would say that it failed though it was done, and
// the transaction would stay open for the next user of the connection.
func (c *liteConn) control(text string) error {
	s, err := c.prepared(text)
	if err != nil {
		return err
	}
	clear(c.kept)
	_, err = s.ExecContext(context.Background())
	return err
}

func (c *liteConn) commit() error {
	if err := c.control("COMMIT"); err != nil {
		c.rollback()
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// rollback ends the transaction; that the engine has ended it already is fine.
func (c *liteConn) rollback() { _ = c.control("ROLLBACK") }

func (c *liteConn) query(ctx context.Context, text string, args ...any) (rows, error) {
	s, err := c.prepared(text)
	if err != nil {
		c.dirty = true
		return nil, err
	}
	r, err := s.QueryContext(ctx, args...)
	if err != nil {
		c.dirty = true
		return nil, known(err)
	}
	return liteRows{r, c}, nil
}

func (c *liteConn) change(ctx context.Context, text string, args ...any) (rows, error) {
	c.dirty = true
	r, err := c.query(ctx, text, args...)
	c.touches(c.stmts[text])
	return r, err
}

func (c *liteConn) apply(ctx context.Context, ops []op) error {
	for i := range ops {
		n, err := c.one(ctx, &ops[i])
		if err == nil {
			err = ops[i].done(n)
		}
		if err == nil && n > 0 && ops[i].then != nil {
			_, err = c.one(ctx, ops[i].then)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *liteConn) last(ctx context.Context, ops []op) error { return c.apply(ctx, ops) }

// one runs an op and counts its rows.
func (c *liteConn) one(ctx context.Context, o *op) (int64, error) {
	if o.need == probe {
		r, err := c.query(ctx, o.sql, o.args...)
		if err != nil {
			return 0, err
		}
		defer r.Close()
		if r.Next() {
			return 1, nil
		}
		return 0, r.Err()
	}
	s, err := c.prepared(o.sql)
	if err != nil {
		c.dirty = true
		return 0, err
	}
	c.touches(s)
	res, err := s.ExecContext(ctx, o.args...)
	if err != nil {
		c.dirty = true
		if k := known(err); k != err {
			return 0, k
		}
		return 0, fmt.Errorf("%s: %w", headline(o.sql), err)
	}
	n, _ := res.RowsAffected()
	c.dirty = c.dirty || n > 0
	return n, nil
}

// headline is the first words of a statement, for errors.
func headline(text string) string { return strings.Join(strings.Fields(text)[:3], " ") }

// liteRows marks its connection when reading failed: the engine may have given
// up the transaction.
type liteRows struct {
	*sql.Rows
	c *liteConn
}

func (r liteRows) Close() { _ = r.Rows.Close() }

func (r liteRows) Err() error {
	err := r.Rows.Err()
	if err != nil {
		r.c.dirty = true
	}
	return known(err)
}

var _ = sqlite.Error{} // the driver registers itself as "sqlite"
