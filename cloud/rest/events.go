package rest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// eventTime is how long one write to the receiver of an event stream may take, whose connection
// is closed otherwise.
const eventTime = 10 * time.Second

// serveEvents answers with server-sent events. They take the connection over: they need none of
// the server's buffers, and go on after the request's time. They end when the caller leaves, its
// token is no longer good or the server stops.
func (s *Server) serveEvents(ctx *fasthttp.RequestCtx, op *catalog.Operation, who catalog.Who, live catalog.EventStream) {
	h := &ctx.Response.Header
	ctx.SetContentType("text/event-stream")
	h.Set("Cache-Control", "no-store")
	if ctx.IsHead() {
		live.Close()
		return
	}
	h.Set("X-Accel-Buffering", "no")
	h.Set("Connection", "close")
	h.Set("X-Request-Id", RequestID(ctx))
	h.Set("X-Content-Type-Options", "nosniff")
	s.admitOrigin(ctx)
	h.SetContentLength(-2) // until the connection ends
	head, stopped := bytes.Clone(h.Header()), ctx.Done()
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(c net.Conn) {
		if u, ok := c.(interface{ UnsafeConn() net.Conn }); ok {
			c = u.UnsafeConn()
		}
		go s.follow(c, head, stopped, live, func(c context.Context) (cloud.Caller, error) { return s.cfg.Pipeline.Again(c, op, who) })
	})
}

// follow writes an answer to a connection until it ends, and closes that.
func (s *Server) follow(c net.Conn, head []byte, stopped <-chan struct{}, live catalog.EventStream, again func(context.Context) (cloud.Caller, error)) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer c.Close()
	defer live.Close()
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("event stream panicked", "panic", p, "stack", stack())
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
	w := &timedWriter{c: c}
	if _, err := w.Write(head); err != nil {
		return
	}
	if err := live.Serve(ctx, w, again); err != nil && ctx.Err() == nil && cloud.Shown(err) == nil && w.failed == nil && !errors.Is(err, io.EOF) {
		s.log.Error("event stream failed", "err", err)
	}
}

// timedWriter writes to a connection, each time within eventTime.
type timedWriter struct {
	c      net.Conn
	failed error
}

// Write implements io.Writer.
func (w *timedWriter) Write(b []byte) (int, error) {
	if w.failed = w.c.SetWriteDeadline(time.Now().Add(eventTime)); w.failed != nil {
		return 0, w.failed
	}
	n, err := w.c.Write(b)
	w.failed = err
	return n, err
}
