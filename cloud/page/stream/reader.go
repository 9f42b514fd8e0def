package stream

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Reader is one open page.
type Reader struct {
	h       *Hub
	session string
	account cloud.AccountID
	members []*member    // guarded by Hub.mu
	gone    bool         // guarded by Hub.mu: it counts no longer
	failing atomic.Int32 // its sources that could not be read
	signal  chan struct{}

	mu      sync.Mutex // guards what follows
	queue   [][]byte
	pending int  // bytes that were handed to it and not written
	closed  bool // it ends when the queue is taken, or at once when it is behind
}

// Enter counts a reader. session is what may have Config.Each readers, "" for those
// without one; the rights of account, when it is not 0, are checked at once when it
// changes. since is the id of the latest event that the reader knows. Error: ErrFull.
func (h *Hub) Enter(session string, account cloud.AccountID, since string, topics []Topic) (*Reader, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readers >= h.cfg.Most || session != "" && h.sessions[session] >= h.cfg.Each {
		return nil, ErrFull
	}
	h.readers++
	if session != "" {
		h.sessions[session]++
	}
	r := &Reader{h: h, session: session, account: account, signal: make(chan struct{}, 1)}
	if account != 0 {
		if h.accounts[account] == nil {
			h.accounts[account] = map[*Reader]bool{}
		}
		h.accounts[account][r] = true
	}
	n := h.numberOf(since)
	for i := range topics {
		h.join(r, &topics[i], n, nil)
	}
	return r, nil
}

// join makes a reader a member of a topic's view. once, when not nil, gets the sections
// one time in place of events.
func (h *Hub) join(r *Reader, t *Topic, since int64, once chan<- []kept) {
	s := h.sources[t.Key]
	if s == nil {
		s = &source{h: h, key: t.Key, list: t.Wants, look: cmp.Or(t.Look, h.cfg.Look), pace: cmp.Or(t.Pace, h.cfg.Pace), views: map[string]*view{}}
		h.sources[t.Key] = s
		for _, w := range t.Wants {
			if h.index[w.Subject] == nil {
				h.index[w.Subject] = map[*source]bool{}
			}
			h.index[w.Subject][s] = true
		}
	}
	v := s.views[t.View]
	if v == nil {
		v = &view{name: t.Name, render: t.Render, members: map[*member]bool{}, version: -1}
		s.views[t.View] = v
	}
	m := &member{r: r, topic: t, source: s, view: v, since: since, first: true, once: once}
	v.members[m] = true
	s.size++
	r.members = append(r.members, m)
	if s.failed {
		r.failing.Add(1)
	}
	s.schedule()
}

// Leave ends a reader. It may be called again.
func (r *Reader) Leave() { r.h.drop(r, nil) }

// drop takes a reader out and counts why; nil: for no reason that is counted.
func (h *Hub) drop(r *Reader, why *int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropLocked(r, why)
}

func (h *Hub) dropLocked(r *Reader, why *int) {
	if r.gone {
		return
	}
	r.gone = true
	if why != nil {
		*why++
	}
	h.readers--
	if r.session != "" {
		if h.sessions[r.session]--; h.sessions[r.session] == 0 {
			delete(h.sessions, r.session)
		}
	}
	if set := h.accounts[r.account]; set != nil {
		if delete(set, r); len(set) == 0 {
			delete(h.accounts, r.account)
		}
	}
	for _, m := range r.members {
		delete(m.view.members, m)
		if m.source.size--; m.source.size == 0 {
			m.source.rest()
		}
		if m.once != nil {
			close(m.once)
		}
	}
	r.mu.Lock()
	r.closed, r.queue = true, nil
	r.mu.Unlock()
	r.wake()
}

func (r *Reader) wake() {
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

// push hands an event to the reader; false when it is behind.
func (r *Reader) push(text []byte, behind int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending > behind {
		return false
	}
	r.queue = append(r.queue, text)
	r.pending += len(text)
	r.wake()
	return true
}

// takeQueue gives what waits; ok is false when the reader has ended.
func (r *Reader) takeQueue() (list [][]byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, r.queue = r.queue, nil
	return list, !r.closed
}

func (r *Reader) written(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending -= n
}

// Run writes events, and a heartbeat when there was none for a while, until the reader's
// right ends, done is closed or a write fails. A reader whose topics cannot be read
// gets no heartbeat: what its page shows may be old. ready, when not nil, is called
// before each write. It ends the reader.
func (r *Reader) Run(w io.Writer, done <-chan struct{}, ready func() error) error {
	defer r.Leave()
	beat := time.NewTimer(r.h.nextBeat())
	defer beat.Stop()
	write := func(text []byte) error {
		if ready != nil {
			if err := ready(); err != nil {
				return err
			}
		}
		_, err := w.Write(text)
		return err
	}
	for {
		select {
		case <-done:
			return nil
		case <-r.signal:
			list, ok := r.takeQueue()
			if !ok {
				return nil
			}
			for _, text := range list {
				if err := write(text); err != nil {
					return err
				}
				r.written(len(text))
			}
		case now := <-beat.C:
			if r.failing.Load() > 0 {
				break
			}
			if err := write(fmt.Appendf(nil, "event: beat\ndata: %d\n\n", now.Unix())); err != nil {
				return err
			}
		}
		beat.Reset(r.h.nextBeat())
	}
}

// nextBeat is how long a reader waits for its next heartbeat: up to the period of the
// hub, to a moment that thousands of readers share. One that wakes alone costs several
// times what it costs among others.
func (h *Hub) nextBeat() time.Duration {
	now := time.Now()
	return now.Add(h.cfg.Beat).Truncate(h.cfg.Beat / beatsShared).Sub(now)
}

// beatsShared are the moments in a period at which readers get heartbeats.
const beatsShared = 12

// writeTime is how long one write to a browser may take at most, and half of it at least.
const writeTime = 10 * time.Second

// Serve writes the head of an answer and then what the reader gets to a connection, which
// it takes over, until the browser leaves or Run ends. It does not wait for that.
func (r *Reader) Serve(c net.Conn, head []byte, done <-chan struct{}, log *slog.Logger) {
	go func() {
		defer func() {
			if e := recover(); e != nil {
				log.Error("stream panicked", "panic", e)
			}
			r.Leave()
			_ = c.Close()
		}()
		var moved time.Time // once for several writes: a deadline costs as much as a heartbeat
		deadline := func() error {
			now := time.Now()
			if now.Sub(moved) < writeTime/2 {
				return nil
			}
			moved = now
			return c.SetWriteDeadline(now.Add(writeTime))
		}
		if deadline() != nil {
			return
		}
		if _, err := c.Write(append(head, "retry: 2000\n\n"...)); err != nil {
			return
		}
		_ = r.Run(c, done, deadline) // a browser that is gone is no error
	}()
	go func() { // a browser that leaves says so at once
		var b [1]byte
		_, _ = c.Read(b[:])
		r.Leave()
	}()
}

// Answer is what a topic shows now.
type Answer struct {
	Topic    string
	Sections []Section
}

// Poll gives what topics show now, for a page that follows nothing: read like for
// readers, and not again within the pace. Error: ErrEnded when the right to read has
// ended.
func (h *Hub) Poll(ctx context.Context, topics []Topic) ([]Answer, error) {
	r := &Reader{h: h, signal: make(chan struct{}, 1)}
	got := make([]chan []kept, len(topics))
	h.mu.Lock()
	h.readers++
	for i := range topics {
		got[i] = make(chan []kept, 1)
		h.join(r, &topics[i], -1, got[i])
	}
	h.mu.Unlock()
	defer r.Leave()
	out := make([]Answer, len(topics))
	for i := range topics {
		out[i].Topic = topics[i].Name
		select {
		case list, ok := <-got[i]:
			if !ok {
				return nil, ErrEnded
			}
			for _, x := range list {
				if x.Of == "" {
					out[i].Sections = append(out[i].Sections, x.Section)
				}
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return out, nil
}
