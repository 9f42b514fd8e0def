package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// job is a message that passed the ladder up to its method.
type job struct {
	*message
	request *Request
	caller  Caller
	modern  bool
	streams bool // the client takes an event stream
}

// requestOf is the request that a message makes of what its HTTP request said.
func requestOf(from Request, m *message) *Request {
	r := from
	r.Method, r.Client = m.method, m.client()
	if m.method == "tools/call" {
		r.Tool, _ = m.params.text("name")
		if args := m.params.get("arguments"); args != nil {
			r.Arguments = args
		}
	}
	return &r
}

// perform answers a job: steps 14 and on.
func (s *Server) perform(ctx context.Context, j *job) answer {
	if j.id == nil {
		return answer{status: fasthttp.StatusAccepted}
	}
	l := language(j.request.Language)
	run := s.method(j)
	if run == nil {
		status := fasthttp.StatusOK
		if j.modern {
			status = fasthttp.StatusNotFound
		}
		return refused(j.id, l.refusal(status, CodeMethodNotFound, codeMethod, short(plain(j.method))))
	}
	if e := l.envelope(j.message); e != nil {
		return refused(j.id, e)
	}
	return run(ctx, j)
}

// method is what answers a method on a job's wire, nil when nothing does.
func (s *Server) method(j *job) func(context.Context, *job) answer {
	switch {
	case j.method == "tools/call":
		return s.call
	case j.method == "tools/list":
		return s.list
	case j.method == "server/discover" && j.modern:
		return func(_ context.Context, j *job) answer { return s.done(j, s.discover, hold{3_600_000, "public"}) }
	case j.method == "ping" && !j.modern:
		return func(_ context.Context, j *job) answer { return s.done(j, nil, hold{}) }
	case j.method == "initialize" && !j.modern:
		return s.greet
	}
	if m, ok := s.cfg.Methods[j.method]; ok && (j.modern && m.Modern || !j.modern && m.Legacy) {
		return func(ctx context.Context, j *job) answer { return s.further(ctx, j, m) }
	}
	return nil
}

// greet is initialize.
func (s *Server) greet(_ context.Context, j *job) answer {
	v, _ := j.params.text("protocolVersion")
	if !known(v) || v == modern {
		v = newest
	}
	return s.done(j, append([]byte(`"protocolVersion":"`+v+`",`), s.handshake...), hold{})
}

// hold says how long a modern result may be kept, and by whom.
type hold struct {
	ms    int
	scope string
}

// done wraps the members of a result.
func (s *Server) done(j *job, members []byte, h hold) answer {
	b := append(opened(j.id, 160+len(members)+len(s.meta)), `"result":{`...)
	if j.modern {
		b = append(b, `"resultType":"complete",`...)
	}
	b = append(b, members...)
	if j.modern {
		if len(members) > 0 {
			b = append(b, ',')
		}
		if h.scope != "" {
			b = fmt.Appendf(b, `"ttlMs":%d,"cacheScope":%q,`, h.ms, h.scope)
		}
		b = append(b, s.meta...)
	}
	return answer{status: fasthttp.StatusOK, body: append(b, "}}"...)}
}

// call is tools/call.
func (s *Server) call(ctx context.Context, j *job) answer {
	l := language(j.request.Language)
	name, ok := j.params.text("name")
	if !ok {
		return refused(j.id, l.invalid("name"))
	}
	t, ok := s.tool(name)
	if !ok {
		return refused(j.id, l.refusal(0, CodeInvalidParams, codeTool, short(plain(name))))
	}
	args := j.params.get("arguments")
	if args == nil {
		args = []byte("{}")
	}
	if !isObject(args) {
		return refused(j.id, l.invalid("arguments"))
	}
	c, e := s.prepare(j, args)
	if e != nil {
		return refused(j.id, e)
	}
	run := func(ctx context.Context, c *Call) answer {
		res, err := s.guarded(ctx, c, t.Run)
		if err == nil && res != nil && res.Ask == nil {
			var members []byte
			if members, err = content(res); err == nil {
				return s.done(j, members, hold{})
			}
		}
		return s.other(j, c, res, err)
	}
	if t.Streams && j.streams {
		return s.stream(j, c, run)
	}
	return run(ctx, c)
}

// further is a method of Config.Methods.
func (s *Server) further(ctx context.Context, j *job, m Method) answer {
	args := []byte("{")
	for i, p := range j.params {
		if i > 0 {
			args = append(args, ',')
		}
		args = append(append(quote(args, string(p.name)), ':'), p.value...)
	}
	c, e := s.prepare(j, append(args, '}'))
	if e != nil {
		return refused(j.id, e)
	}
	res, err := s.guarded(ctx, c, m.Run)
	if err != nil || res == nil || res.Ask != nil || !isObject(res.Structured) {
		return s.other(j, c, res, err)
	}
	h := hold{}
	if m.Cached {
		h = hold{300_000, "private"}
	}
	return s.done(j, inner(res.Structured), h)
}

// prepare makes the call that a tool gets.
func (s *Server) prepare(j *job, args json.RawMessage) (*Call, *Error) {
	c := &Call{
		Request: j.request, Caller: j.caller, Arguments: args, Repeated: j.repeated, Modern: j.modern,
		Progress: func(float64, float64, string) {}, Notify: func(string, any) {},
	}
	if !j.modern {
		return c, nil
	}
	l := language(j.request.Language)
	c.Capabilities = j.meta.get(metaCapabilities)
	c.CanAsk = declares(c.Capabilities, "elicitation/create")
	if raw := j.params.get("inputResponses"); raw != nil {
		answers, ok := split(raw)
		if !ok {
			return nil, l.invalid("inputResponses")
		}
		c.Answers = make(map[string]json.RawMessage, len(answers))
		for _, a := range answers {
			c.Answers[string(a.name)] = a.value
		}
	}
	if raw := j.params.get("requestState"); raw != nil {
		if !isText(raw) || !s.openState(c, string(unquote(raw)), time.Now()) {
			return nil, l.refusal(0, CodeInvalidParams, codeState)
		}
	}
	return c, nil
}

// other answers with what is no plain result: an error, or questions.
func (s *Server) other(j *job, c *Call, res *Result, err error) answer {
	switch {
	case err != nil:
		return refused(j.id, s.shown(j.request, err))
	case res == nil || res.Ask == nil:
		return refused(j.id, s.shown(j.request, errors.New("a result is missing or no object")))
	case !j.modern:
		return refused(j.id, s.shown(j.request, errors.New("a question on a wire without questions")))
	}
	for _, q := range res.Ask {
		if !declares(c.Capabilities, q.Method) {
			e := language(j.request.Language).refusal(fasthttp.StatusBadRequest, CodeMissingCapability, codeCapability, capability(q.Method))
			e.Data = map[string]any{"requiredCapabilities": needed(q.Method)}
			return refused(j.id, e)
		}
	}
	ask, err := encode(res.Ask)
	if err != nil {
		return refused(j.id, s.shown(j.request, fmt.Errorf("write questions: %w", err)))
	}
	b := append(opened(j.id, 128+len(ask)+len(s.meta)), `"result":{"resultType":"input_required","inputRequests":`...)
	b = append(b, ask...)
	if res.State != nil {
		b = append(b, `,"requestState":`...)
		b = quote(b, s.sealState(c, res.State, time.Now()))
	}
	b = append(append(append(b, ','), s.meta...), "}}"...)
	return answer{status: fasthttp.StatusOK, body: b}
}

// capability is the one that a client needs to answer a question.
func capability(method string) string {
	name, _, _ := strings.Cut(method, "/")
	return name
}

// needed is that capability as a client declares it.
func needed(method string) map[string]any {
	if c := capability(method); c == "elicitation" {
		return map[string]any{c: map[string]any{"form": struct{}{}}}
	}
	return map[string]any{capability(method): struct{}{}}
}

// declares reports whether a client can answer a question. For forms, an empty
// elicitation object is enough, and one that only has another mode is not.
func declares(capabilities json.RawMessage, method string) bool {
	all, _ := split(capabilities)
	has, ok := split(all.get(capability(method)))
	return ok && (method != "elicitation/create" || len(has) == 0 || isObject(has.get("form")))
}

// content writes the members of a tool's result.
func content(res *Result) ([]byte, error) {
	b := append(make([]byte, 0, 96+len(res.Structured)*5/2), `"content":[`...)
	if res.Content == nil {
		b = append(b, `{"type":"text","text":`...)
		b = append(quote(b, string(res.Structured)), '}')
	}
	for i, c := range res.Content {
		if i > 0 {
			b = append(b, ',')
		}
		block, err := encode(c)
		if err != nil {
			return nil, fmt.Errorf("write content: %w", err)
		}
		b = append(b, block...)
	}
	b = append(b, ']')
	switch {
	case res.IsError:
		b = append(b, `,"isError":true`...)
	case res.Structured != nil:
		b = append(append(b, `,"structuredContent":`...), res.Structured...)
	}
	return b, nil
}
