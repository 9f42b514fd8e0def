package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// call is tools/call.
func (s *Server) call(ctx context.Context, j *job) answer {
	l := language(j.request.Language)
	name, ok := j.params.text("name")
	if !ok {
		return refused(j.id, l.invalid("name"))
	}
	t, ok := s.tool(name)
	if !ok {
		return refused(j.id, l.refusal(0, CodeInvalidParams, codeTool, short(stripControl(name))))
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
		res, err := t.Run(ctx, c)
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
	res, err := m.Run(ctx, c)
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
