// Package node lets the processes of a deployment that share a database know of each
// other: each has a name and, from its start to its end, a lease.
//
//   - Name. One running process has a name at a time. Another that starts with it is
//     refused while the first answers at its address, and takes the name over otherwise.
//   - Lease. A process renews its row every Beat. Others that saw the row unchanged for
//     Silence, while their own renewals went well, end it with all that the process had
//     taken up: clocks are not compared. A process whose lease was ended stops (ErrEnded).
//   - Doubt. A process that could not renew for two thirds of Silence does no more of what
//     one process may do at a time, until it can again.
//   - Tasks. A background task of which one is enough is done by the process that has its
//     row, for as long as its lease.
//
// A process that has a SQLite database to itself writes its row once, never renews it,
// and does every task.
package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Store keeps leases. cloud/store's DB is one.
type Store interface {
	ListNodes(ctx context.Context) ([]cloud.Node, error)
	EnterNode(ctx context.Context, n, former cloud.Node) error
	RenewNode(ctx context.Context, instance string) error
	EndNode(ctx context.Context, instance string, beat int64) error
	ListTasks(ctx context.Context) (map[string]string, error)
	TakeTask(ctx context.Context, name, instance string) error
	LeaveTask(ctx context.Context, name, instance string) error
	Peers() bool
}

// The usual times of leases.
const (
	Beat      = 10 * time.Second
	Silence   = 3 * Beat
	Doubt     = 2 * Silence / 3
	askTime   = time.Second     // that the holder of a name has for its answer
	lookAgain = 2 * time.Second // between looks for tasks that no process does
	retry     = time.Second     // after a renewal that failed
	leaveTime = 5 * time.Second
)

// Errors of Enter and Run.
var (
	ErrTaken = errors.New("another running process has this node's name")
	ErrEnded = errors.New("this process's lease was ended by another, which saw it stand still: it stops, and may be started again")
)

// NewInstance gives a process its random name.
func NewInstance() string { return rand.Text() }

// Config is what New needs.
type Config struct {
	Store Store
	// Self is this process; its Address is set by Enter.
	Self cloud.Node
	// Ask gives the instance that answers at an address.
	Ask func(ctx context.Context, address string) (instance string, err error)
	Log *slog.Logger
}

// Member is this process among the others. Safe for concurrent use.
type Member struct {
	cfg   Config
	alone bool
	look  chan struct{} // of size 1
	cores atomic.Int64  // of living, which every call asks for

	mu      sync.Mutex
	sure    context.Context // ends when the lease is in doubt
	doubt   context.CancelFunc
	timer   *time.Timer
	renewed time.Time
	living  []cloud.Node
	changed chan struct{} // closed when living changes
	seen    map[string]sight
	held    map[string]time.Time // tasks of this process, since when; zero: another has it, or none
	lost    int                  // times that the lease came into doubt
}

// sight is a beat of another process and since when it stands there.
type sight struct {
	beat  int64
	since time.Time
}

// New makes a member that has not entered yet.
func New(cfg Config) *Member {
	m := &Member{cfg: cfg, alone: !cfg.Store.Peers(), look: make(chan struct{}, 1), changed: make(chan struct{}), seen: map[string]sight{}, held: map[string]time.Time{}}
	m.sure, m.doubt = context.WithCancel(context.Background())
	return m
}

// Instance is this process's.
func (m *Member) Instance() string { return m.cfg.Self.Instance }

// Enter takes the name and the lease. Error: ErrTaken.
func (m *Member) Enter(ctx context.Context, address string) error {
	m.cfg.Self.Address = address
	err := m.enterAs(ctx, address)
	if err != nil && !errors.Is(err, ErrTaken) {
		return fmt.Errorf("take the lease of %s: %w", m.cfg.Self.Name, err)
	}
	return err
}

func (m *Member) enterAs(ctx context.Context, address string) error {
	for {
		list, err := m.cfg.Store.ListNodes(ctx)
		if err != nil {
			return fmt.Errorf("list nodes: %w", err)
		}
		var former cloud.Node
		for _, n := range list {
			switch {
			case m.alone && n.Name != m.cfg.Self.Name: // no other process runs on this database
				if err := m.cfg.Store.EndNode(ctx, n.Instance, -1); err != nil {
					return fmt.Errorf("end the lease of %s: %w", n.Name, err)
				}
			case n.Name == m.cfg.Self.Name:
				former = n
			}
		}
		if former.Instance != "" && !m.alone && former.Address != address && Answers(ctx, m.cfg.Ask, former) { // no other process listens where this one does
			return Taken(former)
		}
		err = m.cfg.Store.EnterNode(ctx, m.cfg.Self, former)
		if errors.Is(err, cloud.ErrStale) { // another took the name in between
			continue
		}
		if err != nil {
			return err
		}
		if former.Instance != "" && !m.alone {
			m.cfg.Log.Warn("the name of a process that does not answer was taken over", "name", former.Name, "address", former.Address, "instance", former.Instance)
		}
		m.cfg.Self.Generation = former.Generation + 1
		return m.noteRenewal(ctx, time.Now())
	}
}

// Taken is ErrTaken with the process that has the name.
func Taken(by cloud.Node) error {
	return fmt.Errorf("%w: %q runs at %s; stop that one or give this one another name", ErrTaken, by.Name, by.Address)
}

// Answers reports whether a process is there under its address, by a question of a second
// at most; ask gives the instance that answers at an address.
func Answers(ctx context.Context, ask func(ctx context.Context, address string) (instance string, err error), n cloud.Node) bool {
	if n.Address == "" || ask == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	instance, err := ask(ctx, n.Address)
	return err == nil && instance == n.Instance
}

// Run renews the lease and ends those of processes that stand still, until ctx ends.
// Leave is called after it. Error: ErrEnded.
func (m *Member) Run(ctx context.Context) error {
	if m.alone {
		<-ctx.Done()
		return nil
	}
	wait := Beat
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		case <-m.look:
		}
		wait = Beat
		switch err := m.renew(ctx, time.Now()); {
		case errors.Is(err, cloud.ErrStale):
			m.stop()
			return ErrEnded
		case err != nil && ctx.Err() == nil:
			m.cfg.Log.Warn("renew this process's lease", "err", err)
			wait = retry
		}
	}
}

// renew renews the lease, looks at those of others, and ends the ones that stand still.
// The Silence of others is counted anew after a renewal that failed: a database that was
// away stops everybody's.
func (m *Member) renew(ctx context.Context, begun time.Time) error {
	bounded, cancel := context.WithTimeout(ctx, Beat)
	defer cancel()
	err := m.cfg.Store.RenewNode(bounded, m.cfg.Self.Instance)
	if err == nil {
		err = m.noteRenewal(bounded, begun)
	}
	if err != nil {
		m.mu.Lock()
		clear(m.seen)
		m.mu.Unlock()
		return err
	}
	for _, n := range m.still(begun, time.Now()) {
		err := m.cfg.Store.EndNode(bounded, n.Instance, n.Beat)
		if err != nil && !errors.Is(err, cloud.ErrStale) {
			return fmt.Errorf("end the lease of %s: %w", n.Name, err)
		}
		if err == nil {
			m.cfg.Log.Warn("the lease of a process that stood still was ended", "name", n.Name, "address", n.Address, "instance", n.Instance)
		}
	}
	return nil
}

// noteRenewal notes a renewal that was begun at a time, and who else is there.
func (m *Member) noteRenewal(ctx context.Context, begun time.Time) error {
	list, err := m.cfg.Store.ListNodes(ctx)
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renewed = begun
	if m.sure.Err() != nil {
		m.sure, m.doubt = context.WithCancel(context.Background())
	}
	if m.timer != nil {
		m.timer.Stop()
	}
	if !m.alone {
		doubt := m.doubt
		m.timer = time.AfterFunc(time.Until(begun.Add(Doubt)), func() { m.loseLease(doubt) })
	}
	if !slices.EqualFunc(list, m.living, func(a, b cloud.Node) bool { return a.Instance == b.Instance }) {
		close(m.changed)
		m.changed = make(chan struct{})
	}
	m.living = list
	cores := int64(0)
	for _, n := range list {
		if n.Core {
			cores++
		}
	}
	m.cores.Store(cores)
	return nil
}

// still are the processes whose beat stands where it was for Silence, as read between
// two times: this process may have stood still itself.
func (m *Member) still(from, to time.Time) (out []cloud.Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := make(map[string]sight, len(m.living))
	for _, n := range m.living {
		if n.Instance == m.cfg.Self.Instance {
			continue
		}
		at, known := m.seen[n.Instance]
		if !known || at.beat != n.Beat {
			at = sight{n.Beat, to}
		}
		seen[n.Instance] = at
		if from.Sub(at.since) >= Silence {
			out = append(out, n)
		}
	}
	m.seen = seen
	return out
}

// stop does no more of what one process may do at a time.
func (m *Member) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.timer != nil {
		m.timer.Stop()
	}
	m.doubt()
}

// Leave ends the lease, so that others go on at once. It is called when Run and all tasks
// have ended; without it others go on when the lease was silent for long enough.
func (m *Member) Leave() error {
	m.stop()
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	if err := m.cfg.Store.EndNode(ctx, m.cfg.Self.Instance, -1); err != nil {
		return fmt.Errorf("end this process's lease: %w", err)
	}
	return nil
}

// Living are the processes with a lease as of the last renewal, by instance, and a
// channel that is closed when there are others.
func (m *Member) Living() ([]cloud.Node, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.living, m.changed
}

// Look renews the lease at once and looks at those of others. It never waits.
func (m *Member) Look() {
	select {
	case m.look <- struct{}{}:
	default:
	}
}

// Cores is how many processes with a lease serve callers, as of the last renewal.
func (m *Member) Cores() int { return int(m.cores.Load()) }

// Sure is a context that ends when the lease is in doubt or has ended. One that begins
// later is another.
func (m *Member) Sure() context.Context {
	m.mu.Lock()
	defer m.mu.Unlock()
	// The timer stands still with a virtual machine that is paused; the machine's clock does not.
	if !m.alone && !m.renewed.IsZero() && m.sure.Err() == nil && time.Now().Round(0).Sub(m.renewed.Round(0)) >= Doubt {
		m.lost++
		m.timer.Stop() // which would count it as well
		m.doubt()
	}
	return m.sure
}

// Task runs f while this process is the one that does the task, again and again until
// ctx ends. The context of f ends when the lease is in doubt. An error of f ends Task.
func (m *Member) Task(ctx context.Context, name string, f func(context.Context) error) error {
	if m.alone {
		m.setHeld(name, time.Now())
		defer m.setHeld(name, time.Time{})
		return f(ctx)
	}
	m.setHeld(name, time.Time{})
	for ctx.Err() == nil {
		if sure := m.Sure(); sure.Err() == nil && m.takes(ctx, name) && sure.Err() == nil {
			inner, cancel := context.WithCancel(ctx)
			stop := context.AfterFunc(sure, cancel)
			m.setHeld(name, time.Now())
			err := f(inner)
			m.setHeld(name, time.Time{})
			stop()
			cancel()
			if ctx.Err() != nil || err != nil {
				m.leaveTask(context.WithoutCancel(ctx), name)
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookAgain):
		}
	}
	return nil
}

// takes takes a task that no process does.
func (m *Member) takes(ctx context.Context, name string) bool {
	tasks, err := m.cfg.Store.ListTasks(ctx)
	if err == nil {
		switch tasks[name] {
		case m.cfg.Self.Instance:
			return true
		case "":
			err = m.cfg.Store.TakeTask(ctx, name, m.cfg.Self.Instance)
			if err == nil {
				return true
			}
		default:
			return false
		}
	}
	if !errors.Is(err, cloud.ErrStale) && ctx.Err() == nil {
		m.cfg.Log.Warn("look for a task to do", "task", name, "err", err)
	}
	return false
}

func (m *Member) leaveTask(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := m.cfg.Store.LeaveTask(ctx, name, m.cfg.Self.Instance); err != nil {
		m.cfg.Log.Warn("leave a task", "task", name, "err", err)
	}
}
