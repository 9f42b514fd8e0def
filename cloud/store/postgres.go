package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
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
)

const sqlLockDevice = `SELECT id FROM device WHERE id = $1 @lock`

// postgres is the PostgreSQL engine.
type postgres struct {
	pool      *pgxpool.Pool
	committed func(*cloud.Changes)
	trigrams  bool // orders are searched by them
	// stripes keep decisions about one device on this node in line before
	// they reach the row lock, up to and including what is told after commit.
	stripes [pgStripes]sync.Mutex
	// patience is held by the one decision that has been overtaken often and is
	// tried again now, so that many at once about one row all come to their end.
	patience chan struct{}
}

func openPostgres(ctx context.Context, url string, log *slog.Logger, committed func(*cloud.Changes)) (*postgres, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database address does not parse") // the cause may show the password
	}
	if !strings.Contains(url, "pool_max_conns") {
		cfg.MaxConns = pgConns
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	db := stdlib.OpenDBFromPool(pool)
	if err = errors.Join(migratePostgres(ctx, db), db.Close()); err != nil {
		pool.Close()
		return nil, err
	}
	trigrams, err := indexSearch(ctx, pool, log)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &postgres{pool: pool, committed: committed, trigrams: trigrams, patience: make(chan struct{}, 1)}, nil
}

func (e *postgres) close() error {
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
		changes, err = e.writeOnce(ctx, dev, fn)
		if err == nil {
			if changes != nil {
				e.committed(changes)
			}
			return nil
		}
		if !overtaken(err) {
			return err
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
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

// writeOnce is one try. With a device, the lock on its row comes first and each
// statement after it sees all that was committed before. Without one, the
// transaction keeps to one state and is refused when a row it changes was
// changed since.
func (e *postgres) writeOnce(ctx context.Context, dev cloud.DeviceID, fn task) (*cloud.Changes, error) {
	level := pgx.ReadCommitted
	if dev == 0 {
		level = pgx.RepeatableRead
	}
	tx, err := e.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: level})
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	s := &pgSession{tx: tx}
	if dev != 0 {
		if _, err := list(ctx, s, sqlLockDevice, scanInt, int64(dev)); err != nil {
			return nil, fmt.Errorf("lock device: %w", err)
		}
	}
	changes, err := fn(ctx, s)
	if err == nil && s.broken != nil {
		err = s.broken // the decision swallowed it, but the transaction is lost
	}
	if err != nil {
		return nil, err
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	return changes, nil
}

func (e *postgres) read(ctx context.Context, fn func(context.Context, querier) error) error {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	tx, err := e.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("begin reading: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	return fn(ctx, &pgSession{tx: tx})
}

func (e *postgres) look(ctx context.Context, fn func(context.Context, querier) error) error {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	return fn(ctx, &pgSession{tx: e.pool})
}

// pgSession is one transaction, or the pool for a single query.
type pgSession struct {
	tx interface {
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
		SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
	}
	broken error
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
	r, err := s.tx.Query(ctx, pgText(text), args...)
	if err != nil {
		s.broken = err
		return nil, known(err)
	}
	return pgRows{r, s}, nil
}

func (s *pgSession) change(ctx context.Context, text string, args ...any) (rows, error) {
	return s.query(ctx, text, args...)
}

// apply sends all ops in one go and then reads the answers.
func (s *pgSession) apply(ctx context.Context, ops []op) error {
	if len(ops) == 0 {
		return nil
	}
	var b pgx.Batch
	for i := range ops {
		b.Queue(pgText(ops[i].sql), ops[i].args...)
	}
	answers := s.tx.SendBatch(ctx, &b)
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
			_ = answers.Close() // repeats err or what followed from it
			return err
		}
	}
	return answers.Close()
}

// pgRows remembers what went wrong while reading.
type pgRows struct {
	pgx.Rows
	s *pgSession
}

func (r pgRows) Err() error {
	err := r.Rows.Err()
	if err != nil {
		r.s.broken = err
	}
	return known(err)
}
