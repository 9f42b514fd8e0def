package rest

import (
	"bytes"
	"context"
	"net"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/rest/events"
)

// serveEvents answers with server-sent events. They take the connection over: they need none of
// the server's buffers, and go on after the request's time.
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
		events.Serve(s.ctx, c, head, stopped, live, func(c context.Context) (cloud.Caller, error) { return s.cfg.Pipeline.Again(c, op, who) }, s.log)
	})
}
