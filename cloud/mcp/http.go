package mcp

import (
	"bufio"
	"bytes"
	"context"
	"slices"
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
		return l.refusal(fasthttp.StatusRequestEntityTooLarge, fasthttp.StatusRequestEntityTooLarge, codeTooLarge)
	case !answerable:
		return l.refusal(fasthttp.StatusNotAcceptable, fasthttp.StatusNotAcceptable, codeAccept)
	}
	return nil
}

// body answers what was posted. Nothing it keeps belongs to ctx.
func (s *Server) body(ctx *fasthttp.RequestCtx, l language, stream bool) answer {
	in := scan{b: trimmed(bytes.Clone(ctx.Request.Body()))}
	if !in.read() {
		return refused(nil, l.refusal(fasthttp.StatusBadRequest, CodeParse, codeJSON))
	}
	if in.outside != "" {
		return refused(nil, l.refusal(fasthttp.StatusBadRequest, CodeInvalidRequest, codeTwice, in.outside))
	}
	c, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
	defer cancel()
	x := &exchange{s: s, l: l, h: &ctx.Request.Header, version: only(&ctx.Request.Header, "MCP-Protocol-Version"), from: s.request(ctx, l), stream: stream}
	if in.b[0] == '[' {
		return x.batch(c, &in)
	}
	m, ok := decode(in.b)
	if !ok {
		return refused(nil, l.refusal(fasthttp.StatusBadRequest, CodeInvalidRequest, codeMessage))
	}
	m.repeated = in.arguments[-1]
	j, e := x.admit(c, m)
	if e == nil {
		e = x.place(j)
	}
	if e != nil {
		return refused(m.id, e)
	}
	return s.perform(c, j)
}

// exchange is one body on its way through the ladder.
type exchange struct {
	s       *Server
	l       language
	h       *fasthttp.RequestHeader // only while the handler runs
	version header
	from    Request
	stream  bool
}

// admit asks who a message is from: steps 9 and 10.
func (x *exchange) admit(ctx context.Context, m *message) (*job, *Error) {
	j := &job{message: m, request: requestOf(x.from, m), streams: x.stream}
	if x.s.cfg.Admit == nil {
		return j, nil
	}
	caller, err := x.s.cfg.Admit(ctx, j.request)
	if err != nil {
		return nil, x.s.shown(j.request, err)
	}
	j.caller = caller
	return j, nil
}

// place decides the wire and compares the headers: steps 11 to 13.
func (x *exchange) place(j *job) (e *Error) {
	if j.modern, e = x.l.era(j.message, x.version); e != nil || !j.modern || j.id == nil {
		return e
	}
	return x.s.mirrorsBody(x.h, x.l, j.message)
}

// batch answers an array (4.4). Everybody is admitted before anything runs, so
// that a refusal of the caller leaves nothing half done.
func (x *exchange) batch(ctx context.Context, in *scan) answer {
	whole := refused(nil, x.l.refusal(fasthttp.StatusBadRequest, CodeInvalidRequest, codeBatch))
	list := elements(in.b, maxBatch)
	old := x.version.times == 0 || x.version.times == 1 && (x.version.value == assumed || x.version.value == "2024-11-05")
	if !old || len(list) == 0 || len(list) > maxBatch || slices.ContainsFunc(list, func(raw []byte) bool { return !isObject(raw) }) {
		return whole
	}
	invalid := x.l.refusal(0, CodeInvalidRequest, codeMessage)
	jobs := make([]*job, len(list))
	for i, raw := range list {
		m, ok := decode(raw)
		if !ok {
			continue
		}
		if claim, _ := m.meta.text(metaVersion); claim == modern {
			return whole
		}
		m.repeated = in.arguments[i]
		var e *Error
		if jobs[i], e = x.admit(ctx, m); e != nil {
			return refused(nil, e)
		}
		jobs[i].streams = false
	}
	out := []byte{'['}
	for _, j := range jobs {
		body := errorBody(nil, invalid)
		if j != nil {
			body = x.one(ctx, j).body
		}
		if body == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, body...)
	}
	if len(out) == 1 {
		return answer{status: fasthttp.StatusAccepted}
	}
	return answer{status: fasthttp.StatusOK, body: append(out, ']')}
}

// one answers a member of a batch.
func (x *exchange) one(ctx context.Context, j *job) answer {
	e := x.place(j)
	switch {
	case j.response || j.id == nil:
		return answer{}
	case e == nil && j.method == "initialize":
		e = x.l.refusal(0, CodeInvalidRequest, codeBatch)
	}
	if e != nil {
		return refused(j.id, e)
	}
	return x.s.perform(ctx, j)
}

// request is what Config.Admit gets to know, copied.
func (s *Server) request(ctx *fasthttp.RequestCtx, l language) Request {
	h := &ctx.Request.Header
	r := Request{
		Authorization: joined(h, "Authorization"), Profile: optional(h, "X-MCP-Profile"), Scopes: optional(h, "X-MCP-Scopes"),
		DryRun: on(h, "X-MCP-Dry-Run"), Approval: on(h, "X-MCP-Require-Approval"),
		Path: string(ctx.Path()), BaseURL: BaseURL(ctx, s.cfg.Public), IP: ctx.RemoteIP().String(), Language: string(l),
	}
	if s.cfg.RequestID != nil {
		r.RequestID = s.cfg.RequestID(ctx)
	}
	return r
}

// joined is all values of a header as one list.
func joined(h *fasthttp.RequestHeader, name string) string {
	all := h.PeekAll(name)
	if len(all) == 1 {
		return strings.TrimSpace(string(all[0]))
	}
	return string(bytes.Join(all, []byte(", ")))
}

// optional is a header that may be missing, which is something else than empty.
func optional(h *fasthttp.RequestHeader, name string) *string {
	if len(h.PeekAll(name)) == 0 {
		return nil
	}
	v := joined(h, name)
	return &v
}

// on reads a flag. What is neither yes nor no is yes, the safe side.
func on(h *fasthttp.RequestHeader, name string) bool {
	return slices.ContainsFunc(h.PeekAll(name), func(b []byte) bool {
		switch strings.ToLower(string(bytes.Trim(b, " \t"))) {
		case "", "0", "false", "off", "no":
			return false
		}
		return true
	})
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
