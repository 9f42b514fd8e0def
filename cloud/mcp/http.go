package mcp

import (
	"bufio"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/locale"
)

const (
	maxBody  = 4 << 20 // bytes
	gzipFrom = 1 << 10 // bytes
)

// answer is what a message gets, with the HTTP around it. Without a body there
// is nothing to say.
type answer struct {
	status  int
	body    []byte
	headers [][2]string
	stream  func(w *bufio.Writer)
}

// refused is the answer with an error.
func refused(id []byte, e *Error) answer {
	a := answer{status: e.Status, body: errorBody(id, e), headers: e.Headers}
	if a.status == 0 {
		a.status = fasthttp.StatusOK
	}
	return a
}

// Handle answers one request. It may be mounted at any address.
func (s *Server) Handle(ctx *fasthttp.RequestCtx) {
	l := language(locale.Negotiate(string(ctx.Request.Header.Peek("Accept-Language"))))
	if e := s.greets(ctx, l); e != nil {
		s.write(ctx, refused(nil, e), false)
		return
	}
	if ctx.IsOptions() {
		options(ctx)
		return
	}
	json, stream := accepts(joined(&ctx.Request.Header, "Accept"))
	if e := readable(ctx, l, json || stream); e != nil {
		s.write(ctx, refused(nil, e), false)
		return
	}
	s.write(ctx, s.body(ctx, l, stream), !json)
}

// TooLarge answers a request whose body the HTTP server did not read because
// it is over its limit.
func (s *Server) TooLarge(ctx *fasthttp.RequestCtx) {
	l := language(locale.Negotiate(string(ctx.Request.Header.Peek("Accept-Language"))))
	e := s.greets(ctx, l)
	if e == nil {
		e = l.tooLarge()
	}
	s.write(ctx, refused(nil, e), false)
}

func (l language) tooLarge() *Error {
	return l.refusal(fasthttp.StatusRequestEntityTooLarge, fasthttp.StatusRequestEntityTooLarge, codeTooLarge)
}

// greets checks who may call at all: steps 1 and 2 of the ladder.
func (s *Server) greets(ctx *fasthttp.RequestCtx, l language) *Error {
	if !ctx.IsPost() && !ctx.IsOptions() {
		e := l.refusal(fasthttp.StatusMethodNotAllowed, fasthttp.StatusMethodNotAllowed, codeHTTPMethod)
		e.Headers = [][2]string{{"Allow", "POST, OPTIONS"}}
		return e
	}
	if h := only(&ctx.Request.Header, "Origin"); h.times > 0 {
		if h.times > 1 || !s.allowed(ctx, h.value) {
			return l.refusal(fasthttp.StatusForbidden, fasthttp.StatusForbidden, codeOrigin)
		}
		ctx.Response.Header.Set("Access-Control-Allow-Origin", h.value)
		ctx.Response.Header.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After")
		ctx.Response.Header.Add("Vary", "Origin")
	}
	if !s.hostAllowed(ctx) {
		return l.refusal(fasthttp.StatusForbidden, fasthttp.StatusForbidden, codeHost)
	}
	return nil
}

// options answers a page's browser that asks before it calls.
func options(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set("Allow", "POST, OPTIONS")
	h.Set("Cache-Control", "no-store")
	h.Set("Access-Control-Allow-Methods", "POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Accept-Language, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID, "+
		"X-MCP-Profile, X-MCP-Scopes, X-MCP-Dry-Run, X-MCP-Require-Approval, traceparent, tracestate, baggage")
	h.Set("Access-Control-Max-Age", "600")
	ctx.SetStatusCode(fasthttp.StatusNoContent)
}

// readable checks what a body is before it is looked at: steps 3 and 4.
func readable(ctx *fasthttp.RequestCtx, l language, answerable bool) *Error {
	kind, _, _ := strings.Cut(string(ctx.Request.Header.ContentType()), ";")
	coding := string(ctx.Request.Header.ContentEncoding())
	switch {
	case !strings.EqualFold(strings.TrimSpace(kind), "application/json"), coding != "" && !strings.EqualFold(coding, "identity"):
		return l.refusal(fasthttp.StatusUnsupportedMediaType, fasthttp.StatusUnsupportedMediaType, codeMedia)
	case len(ctx.Request.Body()) > maxBody:
		return l.tooLarge()
	case !answerable:
		return l.refusal(fasthttp.StatusNotAcceptable, fasthttp.StatusNotAcceptable, codeAccept)
	}
	return nil
}

// accepts tells whether the client takes JSON and event streams. Without the
// header it takes JSON; streams must be named.
func accepts(header string) (json, stream bool) {
	if header == "" {
		return true, false
	}
	for item := range strings.SplitSeq(header, ",") {
		kind, parameters, _ := strings.Cut(item, ";")
		if refusing(parameters) {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "application/json", "application/*", "*/*":
			json = true
		case "text/event-stream":
			stream = true
		}
	}
	return json, stream
}

// refusing reports a weight of zero.
func refusing(parameters string) bool {
	for p := range strings.SplitSeq(parameters, ";") {
		if q, ok := strings.CutPrefix(strings.TrimSpace(p), "q="); ok && strings.Trim(q, "0.") == "" {
			return true
		}
	}
	return false
}

// write sends an answer. framed is for clients that take nothing but event
// streams: they get a good answer as one event.
func (s *Server) write(ctx *fasthttp.RequestCtx, a answer, framed bool) {
	h := &ctx.Response.Header
	h.Set("Cache-Control", "no-store")
	if a.stream == nil && framed && a.status == fasthttp.StatusOK && a.body != nil {
		body := a.body
		a.stream = func(w *bufio.Writer) { frame(w, body) }
	}
	if a.stream != nil {
		h.Set("Cache-Control", "no-cache, no-transform")
		h.Set("X-Accel-Buffering", "no")
		ctx.SetContentType("text/event-stream")
		ctx.Response.ImmediateHeaderFlush = true
		ctx.SetBodyStreamWriter(a.stream)
		return
	}
	ctx.SetStatusCode(a.status)
	for _, x := range a.headers {
		h.Add(x[0], x[1])
	}
	if a.body == nil {
		return
	}
	ctx.SetContentType("application/json")
	if len(a.body) >= gzipFrom && ctx.Request.Header.HasAcceptEncoding("gzip") {
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		a.body = fasthttp.AppendGzipBytesLevel(nil, a.body, fasthttp.CompressBestSpeed)
	}
	ctx.SetBody(a.body)
}
