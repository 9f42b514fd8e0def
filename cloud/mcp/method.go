package mcp

import (
	"context"
	"fmt"

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
	if t, ok := m.meta.text(headerTrace); ok {
		r.Trace = t
	}
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
		return refused(j.id, l.refusal(status, CodeMethodNotFound, codeMethod, short(stripControl(j.method))))
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
