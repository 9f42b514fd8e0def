package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postern-io/postern/cloud"
)

const (
	pgConns   = 16 // unless pool_max_conns is in the address
	pgTries   = 24 // of one transaction that others got in the way of
	pgPatient = 3  // of them, before those of this node take turns
	pgStripes = 256
	pgUndo    = 5 * time.Second // for a rollback, then the connection is closed
)

const sqlLockDevice = `SELECT id FROM device WHERE id = $1 @lock`

// postgres is the PostgreSQL engine.
type postgres struct {
	pool      *pgxpool.Pool
	committed func(*cloud.Changes)
	observe   func(time.Duration, int)
	trigrams  bool // orders are searched by them
	// stripes keep decisions about one device on this node in line before
	// they reach the row lock, up to and including the notification after commit.
	stripes [pgStripes]sync.Mutex
	// patience is held by the one decision that has been overtaken often and is
	// tried again now, so that many at once about one row all come to their end.
	patience chan struct{}

	stop   context.CancelFunc // ends what runs beside
	beside sync.WaitGroup
}

// readAddress reads the address of a database.
func readAddress(url string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database address does not parse") // the cause may show the password
	}
	return cfg, nil
}

// openPool opens connections to PostgreSQL.
func openPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	cfg, err := readAddress(url)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(url, "pool_max_conns") {
		cfg.MaxConns = pgConns
	}
	return connectPool(ctx, cfg)
}

// openUnbounded is openPool for migrations and loads: none of its sessions is ended for waiting, or for
// a statement that takes long, whatever the server bounds others to.
func openUnbounded(ctx context.Context, url string) (*pgxpool.Pool, error) {
	cfg, err := readAddress(url)
	if err != nil {
		return nil, err
	}
	cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, pgUnbounded, pgx.QueryExecModeSimpleProtocol, false)
		return err
	}
	return connectPool(ctx, cfg)
}

func connectPool(ctx context.Context, cfg *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	return pool, nil
}

func openPostgres(ctx context.Context, cfg Config, log *slog.Logger, committed func(*cloud.Changes), observe func(time.Duration, int)) (*postgres, error) {
	pool, err := openPool(ctx, cfg.URL)
	if err != nil {
		return nil, err
	}
	if err := awaitPostgres(ctx, pool, log); err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	if err := checkLoaded(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	own, err := openUnbounded(ctx, cfg.URL)
	if err != nil {
		pool.Close()
		return nil, err
	}
	defer own.Close()
	db := stdlib.OpenDBFromPool(own)
	s, err := newSchema(db, "", logProgress(log))
	if err == nil {
		s.permit, s.quiet = cfg.Permit, true
		err = s.open(ctx, cfg.SchemaByCommand)
	}
	if err == nil {
		err = checkLoaded(ctx, pool) // of a load that has begun meanwhile
	}
	if err = errors.Join(err, db.Close()); err != nil {
		pool.Close()
		return nil, err
	}
	trigrams, later, err := indexSearch(ctx, pool, log)
	if err != nil {
		pool.Close()
		return nil, err
	}
	e := &postgres{pool: pool, committed: committed, observe: observe, trigrams: trigrams, patience: make(chan struct{}, 1)}
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	e.stop = stop
	if later != nil {
		e.beside.Go(func() {
			if err := later(beside); err != nil {
				log.Warn("searches of orders go without an index until a node has made it after its start", "error", err)
			}
		})
	}
	return e, nil
}

func (e *postgres) close() error {
	e.stop()
	e.beside.Wait()
	e.pool.Close()
	return nil
}

func (e *postgres) write(ctx context.Context, dev cloud.DeviceID, fn task) error {
	if dev != 0 {
		mu := &e.stripes[uint64(dev)%pgStripes]
		mu.Lock()
		defer mu.Unlock()
	}
	var err error
	for try := range pgTries {
		if try == pgPatient {
			select {
			case e.patience <- struct{}{}:
				defer func() { <-e.patience }()
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		} else if try > 0 {
			if err := pause(ctx, try); err != nil {
				return err
			}
		}
		var changes *cloud.Changes
		begun := time.Now()
		changes, err = e.writeOnce(ctx, dev, fn)
		if err == nil {
			e.observe(time.Since(begun), 1)
			if changes != nil {
				e.committed(changes)
			}
			return nil
		}
		if !overtaken(err) {
			return away(err)
		}
	}
	return fmt.Errorf("gave up after %d tries: %w", pgTries, err)
}

// pause waits a little longer, on average, with every try.
func pause(ctx context.Context, try int) error {
	t := time.NewTimer(time.Duration(rand.Int64N(int64(time.Millisecond) << min(try, 6))))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// overtaken reports whether the transaction may succeed when it is run again.
func overtaken(err error) bool {
	var pg *pgconn.PgError
	return errors.Is(err, errOvertaken) || errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

// How transactions begin. It travels with the first statement.
const (
	pgBeginDevice  = "BEGIN ISOLATION LEVEL READ COMMITTED"
	pgBeginWriting = "BEGIN ISOLATION LEVEL REPEATABLE READ"
	pgBeginReading = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
)

// writeOnce is one try. With a device, the lock on its row comes first and each
// statement after it sees all that was committed before. Without one, the
// transaction keeps to one state and is refused when a row it changes was
// changed since.
func (e *postgres) writeOnce(ctx context.Context, dev cloud.DeviceID, fn task) (changes *cloud.Changes, err error) {
	begin := pgBeginWriting
	if dev != 0 {
		begin = pgBeginDevice
	}
	err = e.within(ctx, begin, func(s *pgSession) error {
		if dev != 0 {
			if _, err := list(ctx, s, sqlLockDevice, scanInt, int64(dev)); err != nil {
				return fmt.Errorf("lock device: %w", err)
			}
		}
		if changes, err = fn(ctx, s); err != nil {
			return err
		}
		if s.broken != nil {
			return s.broken // the decision swallowed it, but the transaction is lost
		}
		return s.commit(ctx)
	})
	if err != nil {
		return nil, err
	}
	return changes, nil
}

// within lends fn a transaction, and undoes what it has not committed.
func (e *postgres) within(ctx context.Context, begin string, fn func(*pgSession) error) error {
	c, err := e.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer c.Release() // closes it if it is in the middle of something
	s := &pgSession{tx: c, begin: begin}
	err = fn(s)
	if c.Conn().PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pgUndo)
		defer cancel()
		_, _ = c.Exec(ctx, "ROLLBACK")
	}
	return err
}

func (e *postgres) read(ctx context.Context, fn func(context.Context, querier) error) error {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	return away(e.within(ctx, pgBeginReading, func(s *pgSession) error { return fn(ctx, s) }))
}

func (e *postgres) readSnapshot(ctx context.Context, fn func(context.Context, querier) error) error {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	return away(fn(ctx, &pgSession{tx: e.pool}))
}

// pgSession is one transaction, or the pool for a single query. What begins and
// what ends a transaction goes with the statements beside it: a round trip each
// is most of what a small decision costs.
type pgSession struct {
	tx interface {
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
		SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
	}
	begin     string // goes before the first statement; then ""
	committed bool
	broken    error
}

func (s *pgSession) postgres() bool { return true }

// pgText is a statement in this dialect; most are as they stand.
func pgText(text string) string {
	if strings.IndexByte(text, '@') < 0 {
		return text
	}
	return pgTokens.Replace(text)
}

func (s *pgSession) query(ctx context.Context, text string, args ...any) (rows, error) {
	if s.begin != "" {
		return s.first(ctx, text, args)
	}
	r, err := s.tx.Query(ctx, pgText(text), args...)
	if err != nil {
		s.broken = err
		return nil, known(err)
	}
	return pgRows{r, s, nil}, nil
}

// first is the query that a transaction begins with.
func (s *pgSession) first(ctx context.Context, text string, args []any) (rows, error) {
	var b pgx.Batch
	s.start(&b)
	b.Queue(pgText(text), args...)
	answers := s.tx.SendBatch(ctx, &b)
	_, err := answers.Exec()
	if err == nil {
		var r pgx.Rows
		if r, err = answers.Query(); err == nil {
			return pgRows{r, s, answers}, nil
		}
	}
	_ = answers.Close() // repeats err
	s.broken = err
	return nil, known(err)
}

// start puts what begins the transaction into b, if it has not begun.
func (s *pgSession) start(b *pgx.Batch) {
	if s.begin != "" {
		b.Queue(s.begin)
		s.begin = ""
	}
}

// commit ends a transaction that has begun and is not at its end yet.
func (s *pgSession) commit(ctx context.Context) error {
	if s.committed || s.begin != "" {
		return nil
	}
	ctx, done, err := lasting(ctx)
	if err != nil {
		return err
	}
	defer done()
	var b pgx.Batch
	b.Queue("COMMIT")
	answers := s.tx.SendBatch(ctx, &b)
	return errors.Join(s.ended(answers), answers.Close())
}

// lasting is a context for the end of a transaction. It goes on for pgUndo after its caller's:
// a caller that gives up while the transaction is committed would otherwise leave this process
// without the knowledge of what it has written. Error: the caller has given up already.
func lasting(ctx context.Context) (context.Context, func(), error) {
	if ctx.Done() == nil {
		return ctx, func() {}, nil
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(pgUndo, cancel) })
	return out, func() { stop(); cancel() }, nil
}

// ended reads how the transaction ended. A lost one ends too, but as undone.
func (s *pgSession) ended(answers pgx.BatchResults) error {
	tag, err := answers.Exec()
	if err == nil && tag.String() != "COMMIT" {
		err = pgx.ErrTxCommitRollback
	}
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	s.committed = true
	return nil
}

func (s *pgSession) change(ctx context.Context, text string, args ...any) (rows, error) {
	return s.query(ctx, text, args...)
}

// apply sends all ops in one go and then reads the answers.
func (s *pgSession) apply(ctx context.Context, ops []op) error { return s.send(ctx, ops, false) }

// last is apply at the end of a task. Where no answer can refuse the
// transaction, its end goes along.
func (s *pgSession) last(ctx context.Context, ops []op) error {
	return s.send(ctx, ops, !slices.ContainsFunc(ops, func(o op) bool { return o.need != anything }))
}

func (s *pgSession) send(ctx context.Context, ops []op, end bool) error {
	if len(ops) == 0 {
		return nil
	}
	var b pgx.Batch
	begins := s.begin != ""
	s.start(&b)
	ops = merge(ops)
	for i := range ops {
		sql, args := ops[i].sql, ops[i].args
		if ops[i].then != nil {
			sql, args = touching(&ops[i])
		}
		b.Queue(pgText(sql), args...)
	}
	if end {
		last, done, err := lasting(ctx)
		if err != nil {
			s.broken = err
			return err
		}
		defer done()
		ctx = last
		b.Queue("COMMIT")
	}
	answers := s.tx.SendBatch(ctx, &b)
	err := s.answers(answers, ops, begins, end)
	if e := answers.Close(); err == nil { // else it repeats err or what followed from it
		err = e
	}
	return err
}

// pgRowsAtOnce are the numbers of rows that are inserted by one statement, each
// of which is prepared for itself.
var pgRowsAtOnce = []int{32, 8, 2}

// merge makes one statement of several beside each other that insert one row
// each into the same table: starting one costs as much as a row.
func merge(ops []op) []op {
	var out []op // nil while it would be ops[:i]
	for i := 0; i < len(ops); {
		n := 1
		for i+n < len(ops) && n < pgRowsAtOnce[0] && ops[i].inserts(&ops[i+n]) {
			n++
		}
		for _, step := range pgRowsAtOnce {
			if n >= step {
				n = step
				break
			}
		}
		if n > 1 && out == nil {
			out = append(make([]op, 0, len(ops)), ops[:i]...)
		}
		switch {
		case n > 1:
			m := op{sql: manyRows(ops[i].sql, len(ops[i].args), n)}
			for _, o := range ops[i : i+n] {
				m.args = append(m.args, o.args...)
			}
			out = append(out, m)
		case out != nil:
			out = append(out, ops[i])
		}
		i += n
	}
	if out == nil {
		return ops
	}
	return out
}

// inserts reports whether both are the same insertion of a row that is not
// counted.
func (o *op) inserts(next *op) bool {
	return o.sql == next.sql && o.need == anything && o.count == nil && next.need == anything && next.count == nil && o.then == nil &&
		strings.HasPrefix(o.sql, "INSERT") && strings.HasSuffix(o.sql, ")") && !strings.Contains(o.sql, "SELECT")
}

var manyTexts sync.Map // [2]any{text, rows} to text

// manyRows is text, which inserts the row of its args parameters, for n rows.
func manyRows(text string, args, n int) string {
	type key struct {
		text string
		n    int
	}
	if t, ok := manyTexts.Load(key{text, n}); ok {
		return t.(string)
	}
	head, row, _ := strings.Cut(text, "VALUES ")
	var b strings.Builder
	b.WriteString(head + "VALUES " + row)
	for i := 1; i < n; i++ {
		b.WriteString(", ")
		b.WriteString(shiftParams(row, i*args))
	}
	manyTexts.Store(key{text, n}, b.String())
	return b.String()
}

// shiftParams is text with n added to the numbers of its parameters.
func shiftParams(text string, n int) string {
	return pgParam.ReplaceAllStringFunc(text, func(p string) string {
		k, _ := strconv.Atoi(p[1:])
		return "$" + strconv.Itoa(k+n)
	})
}

var pgParam = regexp.MustCompile(`\$\d+`)

func (s *pgSession) answers(answers pgx.BatchResults, ops []op, begins, end bool) error {
	if begins {
		if _, err := answers.Exec(); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
	}
	for i := range ops {
		tag, err := answers.Exec()
		if err == nil {
			err = ops[i].done(tag.RowsAffected())
		} else if k := known(err); k != err {
			err = k
		} else {
			err = fmt.Errorf("%s: %w", headline(ops[i].sql), err)
		}
		if err != nil {
			return err
		}
	}
	if end {
		return s.ended(answers)
	}
	return nil
}

// pgRows remembers what went wrong while reading.
type pgRows struct {
	pgx.Rows
	s     *pgSession
	batch pgx.BatchResults // they came with, or nil
}

func (r pgRows) Close() {
	r.Rows.Close()
	if r.batch != nil {
		_ = r.batch.Close() // repeats the error of the rows
	}
}

func (r pgRows) Err() error {
	err := r.Rows.Err()
	if err != nil {
		r.s.broken = err
	}
	return known(err)
}
