package board_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/edge/board"
	sim "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/lockbus"
)

// rig is an agent's cabinet on simulated hardware, inside a bubble.
type rig struct {
	t    testing.TB
	sim  *sim.Cabinet
	cab  *board.Cabinet
	told int // events that after has returned

	mu     sync.Mutex
	events []stamped
	last   map[edge.DoorNumber]edge.DoorReading
	proofs []edge.DoorReading
}

type stamped struct {
	edge.Event
	seen time.Time
}

// single is a cabinet with one board of a family and three doors.
func single(fam lockbus.Family) sim.Config {
	addr := uint8(1)
	c := sim.Config{Seed: 7, Boards: []sim.Board{{Name: "A", Line: "main", Family: fam, Address: addr}}}
	for i := range uint(3) {
		c.Doors = append(c.Doors, sim.Door{Number: i + 1, Board: "A", Channel: i + 2})
	}
	return c
}

// layoutOf is the agent's configuration of the same wiring.
func layoutOf(c sim.Config) board.Layout {
	l := board.Layout{Doors: map[edge.DoorNumber]edge.Place{}}
	at := map[string]int{}
	for _, b := range c.Boards {
		i, ok := at[b.Line]
		if !ok {
			i = len(l.Lines)
			at[b.Line] = i
			l.Lines = append(l.Lines, board.LineConfig{Name: b.Line, Port: b.Line})
		}
		l.Lines[i].Boards = append(l.Lines[i].Boards, board.BoardConfig{
			Name: b.Name, Family: b.Family, Address: b.Address, Items: !b.NoItems, Inverted: b.Inverted,
		})
	}
	for _, d := range c.Doors {
		l.Doors[edge.DoorNumber(d.Number)] = edge.Place{Board: d.Board, Channel: d.Channel, Inverted: d.Inverted}
	}
	return l
}

// inBubble runs f with a rig in simulated time; everything is stopped after.
func inBubble(t *testing.T, cfg sim.Config, f func(r *rig), adapt ...func(*board.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := sim.New(cfg)
		require.NoError(t, err)
		r := &rig{t: t, sim: s}
		bc := board.Config{
			Layout: layoutOf(cfg), Log: slog.New(slog.DiscardHandler), Sink: r.take,
			Open: func(_ context.Context, l board.LineConfig) (board.Port, error) {
				conn, err := s.Dial(l.Port)
				if err != nil {
					return nil, err
				}
				return board.ConnPort(conn), nil
			},
		}
		for _, a := range adapt {
			a(&bc)
		}
		r.cab = board.New(bc)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.cab.Run(ctx) }()
		defer func() { // also when f fails
			cancel()
			err := <-done
			s.Close()
			synctest.Wait()
			require.NoError(t, err)
		}()
		f(r)
	})
}

// take keeps proofs of a door's being open apart from its changes.
func (r *rig) take(e edge.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d, ok := e.(edge.DoorReading); ok {
		if r.last == nil {
			r.last = map[edge.DoorNumber]edge.DoorReading{}
		}
		same, before := r.last[d.Door], d
		same.OpenFor, before.OpenFor = 0, 0
		if r.last[d.Door] = d; same == before && d.Open {
			r.proofs = append(r.proofs, d)
			return
		}
	}
	r.events = append(r.events, stamped{e, time.Now()})
}

func (r *rig) all() []stamped {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]stamped(nil), r.events...)
}

// after lets time pass and returns the events since it last returned.
func (r *rig) after(d time.Duration) []stamped {
	time.Sleep(d)
	synctest.Wait()
	got := r.all()[r.told:]
	r.told += len(got)
	return got
}

func readings(events []stamped, door edge.DoorNumber) (out []edge.DoorReading) {
	for _, e := range events {
		if d, ok := e.Event.(edge.DoorReading); ok && d.Door == door {
			out = append(out, d)
		}
	}
	return out
}

func results(events []stamped) (out []edge.PulseOutcome) {
	for _, e := range events {
		if p, ok := e.Event.(edge.PulseResult); ok {
			out = append(out, p.Outcome)
		}
	}
	return out
}

func losses(events []stamped) (out []edge.BoardLost) {
	for _, e := range events {
		if l, ok := e.Event.(edge.BoardLost); ok {
			out = append(out, l)
		}
	}
	return out
}

func states(events []stamped, door edge.DoorNumber) string {
	s := ""
	for _, d := range readings(events, door) {
		switch {
		case d.Suspect:
			s += "?"
		case d.Open:
			s += "o"
		default:
			s += "c"
		}
	}
	return s
}

func eachFamily(t *testing.T, f func(t *testing.T, fam lockbus.Family)) {
	for _, fam := range lockbus.Families() {
		t.Run(fam.String(), func(t *testing.T) {
			t.Parallel()
			f(t, fam)
		})
	}
}

func (r *rig) do(err error) { require.NoError(r.t, err) }
