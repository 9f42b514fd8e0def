package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
)

// maxLog is how much of the log a support bundle can have, in bytes.
const maxLog = 1 << 20

// logRing keeps the newest lines of the log, as JSON. Safe for concurrent use.
type logRing struct {
	mu    sync.Mutex // guards all below
	lines [][]byte
	size  int
}

// Write keeps one line.
func (r *logRing) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, append([]byte(nil), line...))
	r.size += len(line)
	drop := 0
	for ; r.size > maxLog; drop++ {
		r.size -= len(r.lines[drop])
	}
	r.lines = r.lines[drop:]
	return len(line), nil
}

// newest are the newest lines, oldest first, at most max bytes.
func (r *logRing) newest(max int) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, size := len(r.lines), 0
	for first > 0 && size+len(r.lines[first-1]) <= max {
		first--
		size += len(r.lines[first])
	}
	out := make([]byte, 0, size)
	for _, line := range r.lines[first:] {
		out = append(out, line...)
	}
	return out
}

// bothLogs hands records to two handlers.
type bothLogs struct{ a, b slog.Handler }

func (h bothLogs) Enabled(ctx context.Context, l slog.Level) bool {
	return h.a.Enabled(ctx, l) || h.b.Enabled(ctx, l)
}

func (h bothLogs) Handle(ctx context.Context, r slog.Record) (err error) {
	for _, x := range []slog.Handler{h.a, h.b} {
		if x.Enabled(ctx, r.Level) {
			err = errors.Join(err, x.Handle(ctx, r.Clone()))
		}
	}
	return err
}

func (h bothLogs) WithAttrs(attrs []slog.Attr) slog.Handler {
	return bothLogs{h.a.WithAttrs(attrs), h.b.WithAttrs(attrs)}
}

func (h bothLogs) WithGroup(name string) slog.Handler {
	return bothLogs{h.a.WithGroup(name), h.b.WithGroup(name)}
}

// keepLog makes a logger that also keeps its newest lines, from Info on.
func keepLog(log *slog.Logger) (*slog.Logger, *logRing) {
	ring := &logRing{}
	return slog.New(bothLogs{log.Handler(), slog.NewJSONHandler(ring, nil)}), ring
}
