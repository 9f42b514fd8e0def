package board

import (
	"slices"
	"time"

	"github.com/postern-io/postern/edge"
)

// What goes wrong with a board, as a view of it says it.
const (
	failedSilent  = "no_answer"
	failedDamaged = "damaged"
	failedPort    = "line_closed"
)

// maxMoves is how many changed bits a board remembers.
const maxMoves = 128

// sight is what is shown of a board that no rule needs. Its unit's mu guards it.
type sight struct {
	raw     State
	readAt  time.Time
	triedAt time.Time
	err     string
	errAt   time.Time
	states  []string // of the unit's channels, debounced
	moves   []edge.BitMove
}

// look keeps a poll that was begun at start for views. bad says that bytes came, but no
// answer.
func (u *unit) look(s State, out Outcome, bad bool, start time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	v := &u.sight
	v.triedAt = start
	if out == Confirmed || s.Known != 0 {
		v.note(s, start)
		v.readAt = time.Now()
	}
	switch {
	case out == Confirmed:
	case out == NotSent:
		v.err, v.errAt = failedPort, start
	case bad:
		v.err, v.errAt = failedDamaged, start
	default:
		v.err, v.errAt = failedSilent, start
	}
	v.states = v.states[:0]
	for _, c := range u.channels {
		v.states = append(v.states, c.state())
	}
}

// note adds the bits that differ from the poll before.
func (v *sight) note(s State, at time.Time) {
	for n := range uint(64) {
		bit := uint64(1) << n
		if s.Known&v.raw.Known&bit != 0 && (s.Closed^v.raw.Closed)&bit != 0 {
			v.moves = append(v.moves, edge.BitMove{At: at, Channel: n + 1, Set: s.Closed&bit != 0})
		}
		if s.ItemsKnown&v.raw.ItemsKnown&bit != 0 && (s.Items^v.raw.Items)&bit != 0 {
			v.moves = append(v.moves, edge.BitMove{At: at, Channel: n + 1, Item: true, Set: s.Items&bit != 0})
		}
	}
	if n := len(v.moves) - maxMoves; n > 0 {
		v.moves = slices.Delete(v.moves, 0, n)
	}
	known, items := s.Known, s.ItemsKnown
	s.Closed |= v.raw.Closed &^ known // what was not answered this time stays
	s.Items |= v.raw.Items &^ items
	s.Known |= v.raw.Known
	s.ItemsKnown |= v.raw.ItemsKnown
	v.raw = s
}

// state is a door as its debounced switch says it.
func (c *channel) state() string {
	switch {
	case !c.hook.known:
		return "unknown"
	case c.hook.value:
		return "open"
	}
	return "closed"
}

func (u *unit) view(line string) edge.BoardView {
	u.mu.Lock()
	defer u.mu.Unlock()
	x := u.sight
	v := edge.BoardView{Name: u.cfg.Name, Line: line, Family: u.cfg.Family.String(), Address: u.cfg.Address, Health: u.healthNow(), ReadAt: x.readAt, TriedAt: x.triedAt, Err: x.err, ErrAt: x.errAt}
	bit := func(known, set uint64, n uint) *bool {
		if known&(1<<(n-1)) == 0 {
			return nil
		}
		b := set&(1<<(n-1)) != 0
		return &b
	}
	for n := uint(1); n <= min(u.cfg.Family.Channels(), 64); n++ {
		c := edge.ChannelView{Channel: n, Switch: bit(x.raw.Known, x.raw.Closed, n), Item: bit(x.raw.ItemsKnown, x.raw.Items, n)}
		for i, own := range u.channels {
			if own.number == n {
				c.Door = own.door
				c.State = "unknown"
				if i < len(x.states) {
					c.State = x.states[i]
				}
			}
		}
		if c.Door != 0 || c.Switch != nil {
			v.Channels = append(v.Channels, c)
		}
	}
	return v
}

func (u *unit) movesSince(at time.Time) (out []edge.BitMove) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, m := range u.sight.moves {
		if !m.At.Before(at) {
			out = append(out, m)
		}
	}
	return out
}

// healthNow is a copy of the counters. The caller holds u.mu.
func (u *unit) healthNow() edge.BoardHealth {
	h := u.health
	h.Edges = make(map[uint]uint64, len(u.health.Edges))
	for ch, n := range u.health.Edges {
		h.Edges[ch] = n
	}
	return h
}
