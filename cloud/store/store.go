// Package store keeps everything the core knows, in SQLite or PostgreSQL.
//
// One call of Decide is one transaction: the decision looks through a View, the
// Changes it returns are written together or not at all, and Decide returns
// after they are durable.
//
//   - Order. Decisions about one device run one after the other, each seeing
//     all that the earlier ones wrote. On SQLite all decisions do: one goroutine
//     owns the writer, takes what waits (at most 512), and commits once for
//     all of them; one that fails is taken out without harm to the others. On
//     PostgreSQL each decision is its own transaction and locks the device row.
//   - Repetition. A decision may be run more than once before it is written:
//     it has no side effects.
//   - OnCommit functions are called after the commit and before Decide returns,
//     one at a time. On SQLite the order is that of the commits. On
//     PostgreSQL it is that of the commits for one device; decisions about
//     different devices that commit at the same moment come in either order.
//   - Loss. What Decide returned nil for survives a power cut (SQLite: WAL with
//     synchronous=FULL; PostgreSQL: as the server is set).
//
// Times are kept in UTC to the millisecond; the zero time is NULL. A timeline
// event is kept whole, with its own times as they were given. Secrets of
// endpoints and bodies of events are sealed with Config.Box.
//
// SQL is the same text on both engines but for the tokens of dialect.go.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/seal"
	"github.com/postern-io/postern/cloud/span"
	"github.com/postern-io/postern/internal/lockfile"
)

// Config says where the data is and who is asking.
type Config struct {
	// URL is a postgres:// or postgresql:// address, or a path (file: or not)
	// of a SQLite database. Empty is postern.db in Dir.
	URL string
	// Dir is the data directory, made when it is missing. Used for SQLite.
	Dir string
	// Instance names this process in leases; "node-1" when empty. Two processes on one
	// PostgreSQL database need different ones.
	Instance string
	// Box seals secrets and event bodies. Required.
	Box *seal.Box
	// SchemaByCommand leaves migrations to MigrateSchema: a database that needs some is
	// not opened. Otherwise Open runs them.
	SchemaByCommand bool
	// Held says that this process has the database by Hold, until it has closed it.
	Held bool
	// Permit is asked before Open runs migrations of a PostgreSQL database, with the name,
	// address and instance of the processes that have a lease; its error is that of Open. nil:
	// nothing is asked.
	Permit func(ctx context.Context, running []cloud.Node) error
	// Observe receives each transaction that was written: how long it took with its commit,
	// and how many changes were in it. It must return at once. nil: nothing does.
	Observe func(took time.Duration, changes int)
	// Logger gets faults that cannot be returned to a caller. nil is slog.Default.
	Logger *slog.Logger
}

// DB is an open store. It is safe for concurrent use.
type DB struct {
	*database
	accounts
	orders
	lockers
	devices
	chats
	webhooks
	pushes
	calls
	timelines
	nodes
	shares
}

// Sections of the database: what is read and written outside of decisions, by room.
type (
	accounts  struct{ *database }
	orders    struct{ *database }
	lockers   struct{ *database }
	devices   struct{ *database }
	chats     struct{ *database }
	webhooks  struct{ *database }
	pushes    struct{ *database }
	calls     struct{ *database }
	timelines struct{ *database }
	nodes     struct{ *database }
	shares    struct{ *database } // of nodes in what is to be sent
)

// database is what the sections share: transactions, ids and what is done after a
// commit.
type database struct {
	engine engine
	box    *seal.Box
	log    *slog.Logger
	node   string
	ids    idBlocks
	own    atomic.Bool   // new outbox rows are written leased to this node
	slots  atomic.Uint64 // of these rows that it sends, a bit each
	logins logins
	window window // of timelines; zero is usualWindow
	newest int    // events that FindTimeline reads; zero is newestEvents

	hookMu sync.Mutex
	hooks  []func(*cloud.Changes)
}

// engine runs transactions on one of the databases.
type engine interface {
	// write runs fn in a transaction that has dev to itself and commits.
	write(ctx context.Context, dev cloud.DeviceID, fn task) error
	// read runs fn on one unchanging state of the database.
	read(ctx context.Context, fn func(context.Context, querier) error) error
	// readSnapshot runs fn, which asks a single query, without a transaction around it.
	readSnapshot(ctx context.Context, fn func(context.Context, querier) error) error
	connections() Connections
	close() error
}

// task is the inside of a writing transaction. It may be run again. The Changes
// it returns, when not nil, reach the functions of OnCommit.
type task func(context.Context, session) (*cloud.Changes, error)

// Open opens the database, brings its tables to this version and starts the
// writer. Several nodes may open one PostgreSQL database at once. Errors: ErrOldProgram,
// ErrSchemaPending, ErrOldRunning, ErrDamaged.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	if cfg.Box == nil {
		return nil, errors.New("open store: a sealing box is required")
	}
	db := &database{box: cfg.Box, log: cfg.Logger, node: cfg.Instance}
	if db.log == nil {
		db.log = slog.Default()
	}
	if db.node == "" {
		db.node = "node-1"
	}
	db.slots.Store(^uint64(0))
	observe := cfg.Observe
	if observe == nil {
		observe = func(time.Duration, int) {}
	}
	var err error
	if isPostgres(cfg.URL) {
		db.engine, err = openPostgres(ctx, cfg, db.log, db.committed, observe)
	} else {
		var path string
		if path, err = litePath(cfg); err == nil {
			db.engine, err = openLite(ctx, path, cfg, db.log, db.committed, observe)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return &DB{db, accounts{db}, orders{db}, lockers{db}, devices{db}, chats{db}, webhooks{db}, pushes{db}, calls{db}, timelines{db}, nodes{db}, shares{db}}, nil
}

func isPostgres(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}

// litePath is the database file that cfg asks for; its directory exists after.
func litePath(cfg Config) (string, error) {
	path := strings.TrimPrefix(cfg.URL, "file:")
	if path == "" {
		path = filepath.Join(cfg.Dir, "postern.db")
	}
	if strings.ContainsAny(path, "?#%") {
		return "", fmt.Errorf("database path %q holds one of ?, # and %%; settings cannot be given in it", path)
	}
	return path, os.MkdirAll(filepath.Dir(path), 0o700)
}

// ErrInUse says that another running node has the SQLite database.
var ErrInUse = errors.New("another running node has this database; stop it first, or give several nodes a PostgreSQL database")

// Hold keeps other nodes from running on the same SQLite database, and from migrating it,
// until release is called or the process ends. A node holds it before it opens it, with
// Config.Held. Programs that only look or change a little, such as those of an administrator,
// need no hold. On PostgreSQL, which several nodes share, it does nothing. Errors: ErrInUse.
func Hold(cfg Config) (release func() error, err error) {
	if isPostgres(cfg.URL) {
		return func() error { return nil }, nil
	}
	path, err := litePath(cfg)
	if err != nil {
		return nil, err
	}
	return holdLite(path)
}

// Hold is that of a database that was opened without it.
func (db *database) Hold() (release func() error, err error) {
	e, ok := db.engine.(*lite)
	if !ok {
		return func() error { return nil }, nil
	}
	return holdLite(e.path)
}

func holdLite(path string) (release func() error, err error) {
	f, err := lockfile.Acquire(path+".lock", 0)
	if errors.Is(err, lockfile.ErrHeld) {
		err = ErrInUse
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f.Close, nil
}

// Close waits for running transactions, ends the writer and closes the
// database. No other method may be called after it.
func (db *database) Close() error { return db.engine.close() }

// Decide runs fn inside one transaction and writes the Changes it returns. A
// decision about a device names it in dev; Changes.Generation is checked
// against that device. An error of fn is returned as it is and nothing is
// written. Other errors: cloud.ErrStale when a condition does not hold,
// cloud.ErrExists when a natural key is taken, cloud.ErrNotFound when Changes
// speak of the present of a device or compartment that is not stored,
// cloud.ErrRepeated when ctx is of a call that another call is the first of. A
// decision whose context expects other changes (cloud.WithExpected) is refused, and
// one of a call whose caller's rights ended (cloud.Call.Rights) with the error of those.
//
// When ctx ends before the decision was begun, nothing is written; after that
// Decide waits for the outcome.
func (db *database) Decide(ctx context.Context, dev cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error {
	if p := cloud.PreviewOf(ctx); p != nil {
		fn = previewed(p, fn)
	}
	written := func() {}
	if e := cloud.ExpectedOf(ctx); e != nil {
		fn = expected(e, fn, &written)
	}
	ids := &givenIDs{blocks: &db.ids}
	ctx, decision := span.Child(ctx, "decision")
	defer decision.End()
	for {
		err := db.decide(ctx, dev, ids, fn)
		var dry dryError
		if err == nil {
			written()
		}
		if !errors.As(err, &dry) {
			return err
		}
		if err := db.refill(ctx, dry.kind); err != nil {
			return err
		}
	}
}

// previewed is a decision of which nothing is written: p takes down what would be.
func previewed(p *cloud.Preview, fn func(cloud.View) (*cloud.Changes, error)) func(cloud.View) (*cloud.Changes, error) {
	return func(v cloud.View) (*cloud.Changes, error) {
		c, err := fn(v)
		if err == nil && c != nil {
			err = p.Take(v, c)
		}
		return nil, err
	}
}

// expected is a decision that may write no more than e expects.
func expected(e *cloud.Expected, fn func(cloud.View) (*cloud.Changes, error), written *func()) func(cloud.View) (*cloud.Changes, error) {
	return func(v cloud.View) (*cloud.Changes, error) {
		c, err := fn(v)
		if err != nil || c == nil {
			return c, err
		}
		*written, err = e.Check(v, c)
		return c, err
	}
}

// write is a transaction that is no decision. There is none in a preview.
func (db *database) write(ctx context.Context, dev cloud.DeviceID, fn func(context.Context, session) (*cloud.Changes, error)) error {
	if cloud.PreviewOf(ctx) != nil {
		return errors.New("nothing is written in a preview")
	}
	return db.engine.write(ctx, dev, fn)
}

func (db *database) decide(ctx context.Context, dev cloud.DeviceID, ids *givenIDs, fn func(cloud.View) (*cloud.Changes, error)) error {
	call, follows := cloud.CallOf(ctx), span.Header(ctx)
	var kept *cloud.KeptAnswer
	var audited bool
	var stored *cloud.Changes
	row, done := cloud.JobStepOf(ctx), false
	err := db.engine.write(ctx, dev, func(ctx context.Context, s session) (*cloud.Changes, error) {
		kept, audited, stored, done = nil, false, nil, false
		ids.again()
		if err := isFirst(ctx, s, call); err != nil {
			return nil, err
		}
		if err := stepIsOpen(ctx, s, row); err != nil {
			return nil, err
		}
		v := newView(snapshot{ctx: ctx, q: s, box: db.box, locks: true, ids: ids, sequences: sequences{}, checkpoints: checkpoints{}, window: cmp.Or(db.window, usualWindow)})
		if call != nil && call.Rights != nil {
			if err := call.Rights(v); err != nil {
				return nil, err
			}
		}
		changes, err := db.decideOnce(v, fn)
		if err != nil || changes == nil || changes.Empty() {
			return nil, err
		}
		changes.Follow(follows)
		w := db.writer(dev)
		if kept, err = w.once(call, changes); err != nil { // first, so that of two repeats one waits here
			return nil, err
		}
		if done, err = addStep(&w, row, changes); err != nil {
			return nil, err
		}
		if err = w.budget(v, call, changes); err != nil {
			return nil, err
		}
		addCheckpoints(&w, v.snapshot.checkpoints)
		if err = w.changes(changes); err != nil {
			return nil, err
		}
		raise(&w, v.snapshot.sequences)
		audited, stored = w.audits(call, changes, time.Now()), changes
		return changes, s.last(ctx, w.ops)
	})
	if err == nil && kept != nil {
		call.Once.Take(*kept)
	}
	if err == nil && call != nil && call.Budget != nil {
		call.Count()
	}
	if err == nil && done {
		row.Take()
	}
	if r := cloud.ReceiptOf(ctx); r != nil && err == nil && stored != nil && call != nil {
		r.Take(stored, call.Target)
	}
	if errors.Is(err, errOverBudget) {
		return call.Budget.Over()
	}
	if err == nil && audited && call != nil {
		call.Committed()
	}
	return err
}

// writer makes the statements of a decision of this node.
func (db *database) writer(dev cloud.DeviceID) writer {
	w := writer{box: db.box, node: db.node, dev: dev, ops: make([]op, 0, 24)}
	if db.own.Load() {
		w.owner, w.slots = db.node, db.slots.Load()
	}
	return w
}

// decideOnce turns a panic of a decision into its error: on SQLite it runs on
// the goroutine that everybody's changes depend on.
func (db *database) decideOnce(v cloud.View, fn func(cloud.View) (*cloud.Changes, error)) (c *cloud.Changes, err error) {
	defer func() {
		if p := recover(); p != nil {
			db.log.Error("decision panicked", "panic", p, "stack", string(debug.Stack()))
			c, err = nil, fmt.Errorf("decision panicked: %v", p)
		}
	}()
	return fn(v)
}

// Look runs fn on one unchanging state of the database, beside the writer.
func (db *database) Look(ctx context.Context, fn func(cloud.View) error) error {
	return db.engine.read(ctx, func(ctx context.Context, q querier) error {
		return fn(newView(snapshot{ctx: ctx, q: q, box: db.box}))
	})
}

// OnCommit registers fn, which receives every committed Changes of this node. It
// is called before the store is used; fn must return at once and must neither
// keep nor change what it is given.
func (db *database) OnCommit(fn func(*cloud.Changes)) {
	db.hookMu.Lock()
	defer db.hookMu.Unlock()
	db.hooks = append(db.hooks, fn)
}

// committed calls the functions of OnCommit, one Changes at a time.
func (db *database) committed(c *cloud.Changes) {
	db.hookMu.Lock()
	defer db.hookMu.Unlock()
	for _, fn := range db.hooks {
		fn(c)
	}
}

// readLimit bounds every read that comes without a deadline: a reader that
// never ends keeps the write-ahead log growing.
const readLimit = 30 * time.Second
