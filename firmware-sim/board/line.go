package board

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/postern-io/postern/protocol/lockbus"
)

// ErrUnplugged is returned while a line's adapter is not plugged in.
var ErrUnplugged = errors.New("adapter is unplugged")

// line is one bus. Guarded by the cabinet's mutex, except the channel.
type line struct {
	name   string
	boards []*board
	// unasked are frames that boards send by themselves; when full, they are
	// lost as on a real bus.
	unasked   chan []byte
	open      map[io.Closer]context.CancelFunc
	goneUntil time.Time
	prev      []byte // the answer before, as it was meant
	answering bool
	overlaps  int
}

func newLine(name string) *line {
	return &line{name: name, unasked: make(chan []byte, 64), open: map[io.Closer]context.CancelFunc{}}
}

func (l *line) add(b *board) { l.boards = append(l.boards, b) }

func (l *line) cut() {
	for c, cancel := range l.open {
		cancel()
		_ = c.Close()
	}
}

// Unplug takes a line's adapter away for d: streams being served are closed,
// and new ones are refused until then.
func (c wiring) Unplug(name string, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[name]
	if l == nil {
		return fmt.Errorf("unplug: no line %q", name)
	}
	c.unplug(l, d)
	return nil
}

func (c wiring) unplug(l *line, d time.Duration) {
	l.goneUntil = time.Now().Add(d)
	l.cut()
}

// Plugged reports whether a line's adapter is there, and if not, when it will
// be back.
func (c wiring) Plugged(name string) (back time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[name]
	if l == nil {
		return time.Time{}, false
	}
	return l.goneUntil, !time.Now().Before(l.goneUntil)
}

// Dial returns an agent's end of a fresh stream to a line and serves the other
// end until either is closed. It fails with ErrUnplugged like opening a port
// whose adapter is gone.
func (c wiring) Dial(name string) (net.Conn, error) {
	if _, ok := c.Plugged(name); !ok {
		return nil, fmt.Errorf("open line %q: %w", name, ErrUnplugged)
	}
	agent, boards := net.Pipe()
	go func() { _ = c.ServeLine(context.Background(), name, boards) }()
	return agent, nil
}

// ServeTCP serves a line to one agent after the other until ctx ends. It
// closes ln.
func (c wiring) ServeTCP(ctx context.Context, name string, ln net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	defer ln.Close()
	for {
		conn, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept on line %q: %w", name, err)
		}
		_ = c.ServeLine(ctx, name, conn) // an agent that leaves, or an unplugged adapter: wait for the next
	}
}

// ServeLine plays the boards of one line on rw until ctx ends or the stream
// does, and closes rw. It returns nil when ctx ended, ErrUnplugged when the
// adapter was taken away, and otherwise the stream's error. A line is served on
// one stream at a time.
func (c wiring) ServeLine(ctx context.Context, name string, rw io.ReadWriteCloser) error {
	defer rw.Close()
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l, err := c.attach(name, rw, cancel)
	if err != nil {
		return err
	}
	defer func() {
		c.mu.Lock()
		delete(l.open, rw)
		c.mu.Unlock()
	}()

	defer context.AfterFunc(ctx, func() { _ = rw.Close() })()
	in := make(chan []byte, 64)
	broken := make(chan error, 1)
	go c.pump(ctx, l, rw, in, broken)

	s := &serving{c: c, l: l, rw: rw, scanners: map[lockbus.Family]*lockbus.Scanner{}}
	err = s.loop(ctx, in, broken)
	if outer.Err() != nil {
		return nil
	}
	if _, ok := c.Plugged(name); !ok {
		return ErrUnplugged
	}
	return err
}

// attach notes that a line is being served on rw.
func (c wiring) attach(name string, rw io.Closer, cancel context.CancelFunc) (*line, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[name]
	if l == nil {
		return nil, fmt.Errorf("serve line: no line %q", name)
	}
	if c.closed || time.Now().Before(l.goneUntil) {
		return nil, fmt.Errorf("serve line %q: %w", name, ErrUnplugged)
	}
	l.open[rw] = cancel
	return l, nil
}

// pump moves bytes off the stream at once, so that a writer never waits for the
// boards; bytes that find in full are lost.
func (c wiring) pump(ctx context.Context, l *line, r io.Reader, in chan<- []byte, broken chan<- error) {
	buf := make([]byte, 256)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			c.mu.Lock()
			if l.answering {
				l.overlaps++
			}
			c.mu.Unlock()
			select {
			case in <- append([]byte(nil), buf[:n]...):
			default:
			}
		}
		if err != nil {
			broken <- err
			return
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// serving is one stream being served; it belongs to one goroutine.
type serving struct {
	c        wiring
	l        *line
	rw       io.Writer
	scanners map[lockbus.Family]*lockbus.Scanner
}

func (s *serving) loop(ctx context.Context, in <-chan []byte, broken <-chan error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-broken:
			return fmt.Errorf("line %q: %w", s.l.name, err)
		case p := <-s.l.unasked:
			if _, err := s.rw.Write(p); err != nil {
				return fmt.Errorf("line %q: %w", s.l.name, err)
			}
		case p := <-in:
			if err := s.feedBytes(ctx, p); err != nil {
				return fmt.Errorf("line %q: %w", s.l.name, err)
			}
		}
	}
}

// feedBytes feeds bytes to every family on the line and answers what they ask.
func (s *serving) feedBytes(ctx context.Context, p []byte) error {
	for _, b := range s.l.boards {
		if s.scanners[b.cfg.Family] == nil {
			s.scanners[b.cfg.Family] = lockbus.NewRequestScanner(b.codec)
		}
	}
	for _, fam := range lockbus.Families() {
		sc := s.scanners[fam]
		if sc == nil {
			continue
		}
		sc.Feed(p)
		for f, ok := sc.Next(nil); ok; f, ok = sc.Next(nil) {
			if err := s.answer(ctx, fam, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// answer plays one request: its time on the wire, the boards' work, and what
// comes back.
func (s *serving) answer(ctx context.Context, fam lockbus.Family, req lockbus.Frame) error {
	s.busy(true)
	defer s.busy(false)
	for _, b := range s.l.boards {
		if b.cfg.Family != fam || req.Board != b.cfg.Address && req.Board != lockbus.AllBoards {
			continue
		}
		raw, err := b.codec.AppendRequest(nil, req)
		if err != nil {
			continue // cannot be: it was decoded by the same codec
		}
		if !sleep(ctx, b.wire(len(raw))) {
			return nil
		}
		work, echo := s.c.begin(b, req)
		if echo {
			if _, err := s.rw.Write(raw); err != nil {
				return err
			}
		}
		if !sleep(ctx, b.cfg.Turnaround+work) {
			return nil
		}
		for _, out := range s.c.finish(b, req) {
			if !sleep(ctx, out.wait+b.wire(len(out.p))) {
				return nil
			}
			if _, err := s.rw.Write(out.p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *serving) busy(on bool) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.l.answering = on
}

// Overlaps is how often bytes came in while the line's boards were still at the
// request before: on a real bus both would be spoiled.
func (c wiring) Overlaps(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.lines[name]; l != nil {
		return l.overlaps
	}
	return 0
}

// wire is how long n bytes take, ten bits each.
func (b *board) wire(n int) time.Duration {
	return time.Duration(n) * 10 * time.Second / time.Duration(b.cfg.Baud)
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
