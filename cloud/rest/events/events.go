// Package events writes answers that go on to connections that were taken over from the HTTP
// server: server-sent events, until the caller leaves, is too slow, may not go on or the server
// stops. Nothing is kept for a slow caller. Safe for concurrent use.
package events

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// WriteTime is how long one write to a caller may take, whose connection is closed otherwise.
const WriteTime = 10 * time.Second

// Serve writes the head of an answer and what live gives to a connection and closes that. It does
// not wait for it. The answer ends with ctx and when stopped is closed; again gives its caller
// anew while it may go on.
func Serve(ctx context.Context, c net.Conn, head []byte, stopped <-chan struct{}, live catalog.EventStream, again func(context.Context) (cloud.Caller, error), log *slog.Logger) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		defer c.Close()
		defer live.Close()
		defer func() {
			if p := recover(); p != nil {
				log.Error("event stream panicked", "panic", p, "stack", string(debug.Stack()))
			}
		}()
		w := &writer{c: c}
		if _, err := w.Write(head); err != nil {
			return
		}
		if err := live.Serve(ctx, w, again); err != nil && ctx.Err() == nil && w.failed == nil && cloud.Shown(err) == nil && !errors.Is(err, io.EOF) {
			log.Error("event stream failed", "err", err)
		}
	}()
	go func() { // a caller that leaves says so at once
		var b [1]byte
		_, _ = c.Read(b[:])
		cancel()
	}()
	go func() {
		select {
		case <-stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
}

// writer writes to a connection, each time within WriteTime.
type writer struct {
	c      net.Conn
	failed error
}

// Write implements io.Writer.
func (w *writer) Write(b []byte) (int, error) {
	if w.failed = w.c.SetWriteDeadline(time.Now().Add(WriteTime)); w.failed != nil {
		return 0, w.failed
	}
	n, err := w.c.Write(b)
	w.failed = err
	return n, err
}
