package mcp

import (
	"bytes"
	"context"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/peer"
)

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
	x := &exchange{s: s, l: l, h: &ctx.Request.Header, version: only(&ctx.Request.Header, "MCP-Protocol-Version"), from: s.request(ctx, l), stream: stream, admitted: func(c Caller) { peer.SetAccount(ctx, c.Account) }}
	if in.b[0] == '[' {
		return s.guarded(&x.from, nil, func() answer { return x.batch(c, &in) })
	}
	m, ok := decode(in.b)
	if !ok {
		return refused(nil, l.refusal(fasthttp.StatusBadRequest, CodeInvalidRequest, codeMessage))
	}
	m.repeated = in.arguments[-1]
	return s.guarded(&x.from, m.id, func() answer { return x.single(c, m) })
}

// exchange is one body on its way through the ladder.
type exchange struct {
	s       *Server
	l       language
	h       *fasthttp.RequestHeader // only while the handler runs
	version header
	from    Request
	stream  bool
	// admitted notes the caller with the request, while the request lasts.
	admitted func(Caller)
}

func (x *exchange) single(ctx context.Context, m *message) answer {
	j, e := x.admit(ctx, m)
	if e == nil {
		e = x.place(j)
	}
	if e != nil {
		return refused(m.id, e)
	}
	return x.s.perform(ctx, j)
}

// admit asks who a message is from: steps 9 and 10.
func (x *exchange) admit(ctx context.Context, m *message) (*job, *Error) {
	j := &job{message: m, request: requestOf(x.from, m), streams: x.stream}
	if x.s.cfg.Admit == nil {
		return j, nil
	}
	caller, err := x.s.cfg.Admit(ctx, j.request)
	if err != nil {
		return nil, x.s.publicError(j.request, err)
	}
	x.admitted(caller)
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
	messages := make([]*message, len(list)) // nil: not one
	for i, raw := range list {
		m, ok := decode(raw)
		if !ok {
			continue
		}
		if claim, _ := m.meta.text(metaVersion); claim == modern {
			return whole
		}
		messages[i], m.repeated = m, in.arguments[i]
	}
	jobs := make([]*job, len(list))
	for i, m := range messages {
		if m == nil {
			continue
		}
		j, e := x.admit(ctx, m)
		if e != nil {
			return refused(nil, e)
		}
		jobs[i], j.streams = j, false
	}
	invalid := errorBody(nil, x.l.refusal(0, CodeInvalidRequest, codeMessage))
	out := []byte{'['}
	for _, j := range jobs {
		body := invalid
		if j != nil {
			body = x.s.guarded(j.request, j.id, func() answer { return x.one(ctx, j) }).body
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
