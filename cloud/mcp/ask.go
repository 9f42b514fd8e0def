package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// other answers with what is no plain result: an error, or questions.
func (s *Server) other(j *job, c *Call, res *Result, err error) answer {
	switch {
	case err != nil:
		return refused(j.id, s.publicError(j.request, err))
	case res == nil || res.Ask == nil:
		return refused(j.id, s.publicError(j.request, errors.New("a result is missing or no object")))
	case !j.modern:
		return refused(j.id, s.publicError(j.request, errors.New("a question on a wire without questions")))
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
		return refused(j.id, s.publicError(j.request, fmt.Errorf("write questions: %w", err)))
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
