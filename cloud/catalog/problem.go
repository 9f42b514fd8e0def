package catalog

import (
	"slices"
	"strconv"
	"strings"
)

// problem is an answer that many operations give when they do not do what they
// were asked.
type problem struct {
	status      int
	name, about string
	// by reports whether an operation may answer so.
	by func(o *Operation) bool
}

var problemList = []problem{
	{400, "Unreadable", "The request cannot be read", func(*Operation) bool { return true }},
	{401, "Unauthenticated", "There is no token, or it is not good", func(o *Operation) bool { return !o.NoToken || slices.ContainsFunc(o.Errors, unknownCaller) }},
	{403, "Forbidden", "The caller may not do this", func(o *Operation) bool { return !o.NoToken || slices.ContainsFunc(o.Errors, other) }},
	{404, "NotFound", "What the request names is not there, or not the caller's", func(o *Operation) bool {
		return strings.Contains(o.Path, "{") || slices.ContainsFunc(o.Errors, notFound)
	}},
	{409, "Conflict", "Things stand so that it cannot be done; the code says how", func(o *Operation) bool {
		return o.Idempotent || slices.ContainsFunc(o.Errors, other)
	}},
	{422, "Invalid", "Members of the request have no good value; errors names them", func(*Operation) bool { return true }},
	{429, "TooMany", "The caller came too often; Retry-After says when to try again", func(*Operation) bool { return true }},
}

// unknownCaller reports whether a code says that what a caller proves itself with
// is not good.
func unknownCaller(code string) bool {
	return slices.Contains([]string{"INVALID_CREDENTIALS", "CHALLENGE_EXPIRED", "SECOND_FACTOR_REQUIRED", "SECOND_FACTOR_INVALID"}, code)
}

func notFound(code string) bool { return strings.HasSuffix(code, "_NOT_FOUND") }
func other(code string) bool    { return !notFound(code) }

// problems are the answers of one operation that are errors. The default is for
// those that any call may meet: time is over, something is not available.
func (o *Operation) problems() object {
	out := object{"default": object{"$ref": "#/components/responses/Error"}}
	for _, r := range problemList {
		if r.by(o) {
			out[strconv.Itoa(r.status)] = object{"$ref": "#/components/responses/" + r.name}
		}
	}
	return out
}

// problems are the answers that operations refer to.
func problems() object {
	body := object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Error"}}}
	out := object{"Error": object{"description": "What went wrong, and what to do next, in the caller's language", "content": body}}
	for _, r := range problemList {
		answer := object{"description": r.about, "content": body}
		if r.status == 429 {
			answer["headers"] = object{"Retry-After": object{"description": "Seconds", "required": true, "schema": object{"type": "integer", "minimum": 1}}}
		}
		out[r.name] = answer
	}
	return out
}
