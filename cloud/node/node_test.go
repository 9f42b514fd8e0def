package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/cloud"
)

// rows is a database of leases in memory that can be away.
type rows struct {
	mu    sync.Mutex
	nodes map[string]cloud.Node // by name
	tasks map[string]string
	away  bool
}

func (s *rows) begin() (func(), error) {
	s.mu.Lock()
	if s.away {
		s.mu.Unlock()
		return nil, errors.New("the database is away")
	}
	return s.mu.Unlock, nil
}

func (s *rows) ListNodes(context.Context) ([]cloud.Node, error) {
	end, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	return slices.SortedFunc(maps.Values(s.nodes), func(a, b cloud.Node) int { return strings.Compare(a.Instance, b.Instance) }), nil
}

func (s *rows) remove(instance string, beat int64) bool {
	for name, n := range s.nodes {
		if n.Instance == instance && (beat < 0 || n.Beat == beat) {
			delete(s.nodes, name)
			maps.DeleteFunc(s.tasks, func(_, at string) bool { return at == instance })
			return true
		}
	}
	return false
}

func (s *rows) EnterNode(_ context.Context, n, former cloud.Node) error {
	end, err := s.begin()
	if err != nil {
		return err
	}
	defer end()
	s.remove(former.Instance, -1)
	if _, taken := s.nodes[n.Name]; taken {
		return cloud.ErrStale
	}
	n.Generation = former.Generation + 1
	s.nodes[n.Name] = n
	return nil
}

func (s *rows) RenewNode(_ context.Context, instance string) error {
	end, err := s.begin()
	if err != nil {
		return err
	}
	defer end()
	for name, n := range s.nodes {
		if n.Instance == instance {
			n.Beat++
			s.nodes[name] = n
			return nil
		}
	}
	return cloud.ErrStale
}

func (s *rows) EndNode(_ context.Context, instance string, beat int64) error {
	end, err := s.begin()
	if err != nil {
		return err
	}
	defer end()
	if !s.remove(instance, beat) && beat >= 0 {
		return cloud.ErrStale
	}
	return nil
}

func (s *rows) ListTasks(context.Context) (map[string]string, error) {
	end, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	return maps.Clone(s.tasks), nil
}

func (s *rows) lives(instance string) bool {
	for _, n := range s.nodes {
		if n.Instance == instance {
			return true
		}
	}
	return false
}

func (s *rows) TakeTask(_ context.Context, name, instance string) error {
	end, err := s.begin()
	if err != nil {
		return err
	}
	defer end()
	if at, taken := s.tasks[name]; taken && s.lives(at) || !s.lives(instance) {
		return cloud.ErrStale
	}
	s.tasks[name] = instance
	return nil
}

func (s *rows) LeaveTask(_ context.Context, name, instance string) error {
	end, err := s.begin()
	if err != nil {
		return err
	}
	defer end()
	if s.tasks[name] == instance {
		delete(s.tasks, name)
	}
	return nil
}

func (s *rows) Peers() bool { return true }

// paused is a store whose process stands still: what it asks waits until it goes on.
type paused struct {
	*rows
	mu    sync.Mutex
	until chan struct{}
}

func (s *paused) wait() {
	s.mu.Lock()
	until := s.until
	s.mu.Unlock()
	if until != nil {
		<-until
	}
}

func (s *paused) RenewNode(ctx context.Context, instance string) error {
	s.wait()
	return s.rows.RenewNode(ctx, instance)
}

func (s *paused) ListTasks(ctx context.Context) (map[string]string, error) {
	s.wait()
	return s.rows.ListTasks(ctx)
}

// goOn ends a standstill.
func (s *paused) goOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until != nil {
		close(s.until)
		s.until = nil
	}
}

// tables are how many nodes there are, and who does a task.
func (s *rows) tables(task string) (nodes int, holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.nodes), s.tasks[task]
}

func newRows() *rows { return &rows{nodes: map[string]cloud.Node{}, tasks: map[string]string{}} }

func member(s Store, instance, name string, ask func(context.Context, string) (string, error)) *Member {
	return New(Config{Store: s, Self: cloud.Node{Instance: instance, Name: name}, Ask: ask, Log: slog.New(slog.DiscardHandler)})
}

// A name whose holder answers is refused; one whose holder does not is taken over, with
// a higher generation, and the former holder stops.
func TestNameIsTakenOverOnlyFromAProcessThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, answers := newRows(), true
		ask := func(_ context.Context, address string) (string, error) {
			require.Equal(t, "http://one", address)
			if !answers {
				return "", errors.New("nobody is there")
			}
			return "first", nil
		}
		first, second := member(s, "first", "one", ask), member(s, "second", "one", ask)
		require.NoError(t, first.Enter(t.Context(), "http://one"))
		ran := make(chan error, 1)
		go func() { ran <- first.Run(t.Context()) }()
		err := second.Enter(t.Context(), "http://two")
		require.ErrorIs(t, err, ErrTaken)
		require.ErrorContains(t, err, `"one" runs at http://one`)

		answers = false
		require.NoError(t, second.Enter(t.Context(), "http://two"))
		require.EqualValues(t, 2, s.nodes["one"].Generation)
		require.Equal(t, "second", s.nodes["one"].Instance)
		require.ErrorIs(t, <-ran, ErrEnded)
		require.Error(t, first.Sure().Err(), "the former holder does nothing more")
		require.Equal(t, "second", s.nodes["one"].Instance, "it does not end its successor's lease")
	})
}

// An answer of some other process at the address is no answer of the holder.
func TestAnswerOfAnotherInstanceLeavesTheNameFree(t *testing.T) {
	s := newRows()
	ask := func(context.Context, string) (string, error) { return "somebody", nil }
	require.NoError(t, member(s, "first", "one", ask).Enter(t.Context(), "http://one"))
	require.NoError(t, member(s, "second", "one", ask).Enter(t.Context(), "http://two"))
}

// A lease that is not renewed is ended by another process after Silence and at most two
// beats, and its task goes on there; no process is ended because the database was away.
func TestLeaseOfAProcessThatStandsStillIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRows()
		count := func() int { n, _ := s.tables(""); return n }
		still := &paused{rows: s}
		a, b := member(still, "a", "one", nil), member(s, "b", "two", nil)
		defer still.goOn()
		require.NoError(t, a.Enter(t.Context(), ""))
		require.NoError(t, b.Enter(t.Context(), ""))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ran := make(chan error, 2)
		go func() { ran <- a.Run(ctx) }()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = b.Run(ctx)
		}()
		begun := make(chan string, 10)
		doing := func(m *Member) {
			_ = m.Task(ctx, "sweep", func(inner context.Context) error {
				begun <- m.Instance()
				<-inner.Done()
				return nil
			})
		}
		go doing(a)
		synctest.Wait()
		go doing(b)
		time.Sleep(time.Minute)
		require.Equal(t, "a", <-begun)
		require.Empty(t, begun, "one process does a task")

		s.mu.Lock()
		s.away = true
		s.mu.Unlock()
		time.Sleep(5 * time.Minute)
		require.Error(t, a.Sure().Err(), "who cannot renew is not sure")
		require.Error(t, b.Sure().Err())
		s.mu.Lock()
		s.away = false
		s.mu.Unlock()
		time.Sleep(2*Beat + retry)
		require.Equal(t, 2, count(), "no node is ended after an absence of the database")
		require.NoError(t, a.Sure().Err())

		still.mu.Lock()
		still.until = make(chan struct{})
		still.mu.Unlock()
		<-a.Sure().Done()
		require.Equal(t, 2, count(), "it gives up before another ends its lease")
		time.Sleep(Silence)
		nodes, holder := s.tables("sweep")
		require.Equal(t, []any{1, "b"}, []any{nodes, holder})
		still.goOn()
		require.ErrorIs(t, <-ran, ErrEnded)
		cancel()
		<-ended
		require.NoError(t, b.Leave())
		require.Zero(t, count())
	})
}

// Whatever processes do, stop, stand still or lose the database: a task is done by one at
// a time, and by some process soon after there is one.
func TestTaskIsDoneByOneProcessAtATime(t *testing.T) {
	type step struct {
		Kind           string
		Which, Seconds int
	}
	steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
		return step{rapid.SampledFrom([]string{"start", "stop", "stall", "away", "back", "wait"}).Draw(r, "kind"), rapid.IntRange(0, 9).Draw(r, "which"),
			rapid.IntRange(0, 40).Draw(r, "seconds")}
	}), 3, 25)
	rapid.Check(t, func(r *rapid.T) {
		list, most, now := steps.Draw(r, "steps"), 0, 0
		synctest.Test(t, func(t *testing.T) {
			s := newRows()
			var mu sync.Mutex
			doing := map[string]int{}
			ctx, cancel := context.WithCancel(t.Context())
			type process struct {
				store *paused
				stop  context.CancelFunc
			}
			var running []process
			start := func(n int) {
				p := process{store: &paused{rows: s}}
				var inner context.Context
				inner, p.stop = context.WithCancel(ctx)
				m := member(p.store, fmt.Sprintf("i%d", n), fmt.Sprintf("n%d", n), nil)
				if m.Enter(inner, "") != nil {
					p.stop()
					return
				}
				running = append(running, p)
				var loops sync.WaitGroup
				loops.Go(func() {
					_ = m.Run(inner)
					p.stop()
				})
				go func() {
					loops.Wait()
					_ = m.Leave()
				}()
				loops.Go(func() {
					_ = m.Task(inner, "sweep", func(at context.Context) error {
						mu.Lock()
						doing[m.Instance()]++
						most = max(most, len(doing))
						mu.Unlock()
						<-at.Done()
						mu.Lock()
						delete(doing, m.Instance())
						mu.Unlock()
						return nil
					})
				})
			}
			for n, x := range list {
				switch x.Kind {
				case "start":
					start(n)
				case "stop":
					if len(running) > 0 {
						at := x.Which % len(running)
						running[at].stop()
						running[at].store.goOn()
						running = slices.Delete(running, at, at+1)
					}
				case "stall":
					if len(running) > 0 {
						p := running[x.Which%len(running)]
						p.store.mu.Lock()
						if p.store.until == nil {
							p.store.until = make(chan struct{})
						}
						p.store.mu.Unlock()
					}
				case "away":
					s.mu.Lock()
					s.away = true
					s.mu.Unlock()
				case "back":
					s.mu.Lock()
					s.away = false
					s.mu.Unlock()
				}
				time.Sleep(time.Duration(x.Seconds) * time.Second)
			}
			s.mu.Lock()
			s.away = false
			s.mu.Unlock()
			for _, p := range running {
				p.store.goOn()
			}
			start(1000)
			time.Sleep(3 * Silence)
			mu.Lock()
			now = len(doing)
			mu.Unlock()
			cancel()
			synctest.Wait()
		})
		if most > 1 || now != 1 {
			r.Fatalf("%d processes did one task at a time, %d at the end", most, now)
		}
	})
}
