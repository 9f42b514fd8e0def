package main

import (
	"context"
	"io"
	"log/slog"
	"math"
)

// logs are the program's log and its access log, as JSON lines to one writer. What they
// write can be changed while the program runs. Safe for concurrent use.
type logs struct {
	main, access *slog.Logger
	// mainLevel and accessLevel are the least levels that are written.
	mainLevel, accessLevel slog.LevelVar
}

// off is above the level of every line.
const off = slog.Level(math.MaxInt)

func newLogs(w io.Writer, s settings) (*logs, error) {
	l := &logs{}
	lines := slog.NewJSONHandler(w, nil)
	l.main = slog.New(leveled{lines, &l.mainLevel})
	l.access = slog.New(leveled{lines, &l.accessLevel})
	return l, l.apply(s)
}

// apply writes from now on what the settings say.
func (l *logs) apply(s settings) error {
	if err := l.mainLevel.UnmarshalText([]byte(s.LogLevel)); err != nil {
		return err
	}
	l.accessLevel.Set(off)
	if s.AccessLog {
		l.accessLevel.Set(slog.LevelInfo)
	}
	return nil
}

// leveled is a handler with a level of its own, so that several write to one place and
// never into each other's lines.
type leveled struct {
	slog.Handler
	level *slog.LevelVar
}

// Enabled implements slog.Handler.
func (h leveled) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// WithAttrs implements slog.Handler.
func (h leveled) WithAttrs(a []slog.Attr) slog.Handler {
	return leveled{h.Handler.WithAttrs(a), h.level}
}

// WithGroup implements slog.Handler.
func (h leveled) WithGroup(name string) slog.Handler {
	return leveled{h.Handler.WithGroup(name), h.level}
}
