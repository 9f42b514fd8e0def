package otep

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
)

// Schema is the JSON Schema (2020-12) of a timeline, the same at every call. It takes what
// Validate finds no error in, but for what a schema cannot see: check digits, the bytes of
// extensions, ids that are repeated, the version of an event, moves and the order of events.
// The result that Fold makes of conformant events is valid.
func Schema() []byte { return bytes.Clone(schema()) }

var schema = sync.OnceValue(func() []byte {
	return written(object{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "OTEP timeline",
		"description": "Open Tracking Event Protocol " + Version + ". Unknown members are ignored.",
		"type":        "object",
		"required":    []string{"otep_version", "subject", "events"},
		"properties":  properties(timelineShape),
		"if":          object{"required": []string{"current_status"}, "properties": object{"current_status": codeSchema(Delivered)}},
		"then":        object{"properties": object{"delivered": object{"enum": []any{true, nil}}}},
		"else":        object{"if": object{"required": []string{"current_status"}}, "then": object{"properties": object{"delivered": object{"enum": []any{false, nil}}}}},
		"$defs": object{
			"date_time":   object{"type": "string", "format": "date-time", "pattern": `^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:[0-5]\d(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})$`},
			"status_code": statusSchema(),
			"subject":     subjectSchema(),
			"event":       eventSchema(),
			"location":    locationSchema(),
			"source":      object{"type": "object", "required": []string{"type"}, "properties": properties(sourceShape)},
			"pod":         object{"type": "object", "properties": properties(proofShape)},
			"file":        object{"type": "object", "properties": properties(fileShape)},
			"withdrawal":  object{"type": "object", "required": withdrawalShape.needed, "properties": properties(withdrawalShape)},
			"reading":     object{"type": "object", "required": []string{"type", "value"}, "properties": properties(readingShape)},
		},
	})
})

// properties are the schemas of an object's members.
func properties(s *shape) object {
	out := object{}
	for name, x := range s.slots {
		out[name] = x.write()
	}
	return out
}

const namePattern = "^(x-)?[a-z][a-z0-9_]*$"

var (
	versionSchema  = object{"type": "string", "pattern": `^0+\.\d+(\.\d+)?$`, "examples": []string{Version}}
	positiveSchema = object{"type": []string{"integer", "null"}, "minimum": 1, "maximum": int64(math.MaxInt64)}
)

func anys[T any](list []T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// codesWhere lists registered codes.
func codesWhere(ok func(Spec) bool) []Code {
	out := []Code{}
	for _, s := range Vocabulary() {
		if ok(s) {
			out = append(out, s.Code)
		}
	}
	return out
}

// codeSchema takes some codes as producers write them: the codes, their spellings and the
// addresses of both.
func codeSchema(codes ...Code) object {
	var names []string
	for _, c := range codes {
		names = append(names, string(c))
	}
	for _, word := range slices.Sorted(maps.Keys(spellings)) {
		if slices.Contains(codes, spellings[word]) {
			names = append(names, word)
		}
	}
	return object{"anyOf": []any{object{"enum": names}, address(strings.Join(names, "|"))}}
}

// address takes addresses of codes, which stand as a pattern.
func address(codes string) object {
	return object{"type": "string", "pattern": `^otep:(x-)?[a-z][a-z0-9_]*:(` + codes + `)$`,
		"not": object{"pattern": `^otep:((` + strings.Join(slices.DeleteFunc(slices.Clone(reserved), func(s string) bool { return s == universalProfile }), "|") + `)|[a-z0-9_-]{65,}):`}}
}

// statusSchema takes what Canonical does.
func statusSchema() object {
	own := codeSchema(codesWhere(func(Spec) bool { return true })...)["anyOf"].([]any)
	const experimental = `x-[a-z][a-z0-9_]{0,61}`
	return object{"anyOf": append(own, object{"type": "string", "pattern": "^" + experimental + "$"}, address(experimental))}
}

func subjectSchema() object {
	var one []any
	for _, name := range identifiers {
		one = append(one, object{"required": []string{name}, "properties": object{name: object{"not": object{"type": "null"}}}})
	}
	return object{"type": "object", "anyOf": one, "properties": properties(subjectShape)}
}

func eventSchema() object {
	// A registered code decides the phase; another one must bring it.
	rules := []any{}
	for _, p := range phases {
		rules = append(rules, object{
			"if":   object{"required": []string{"status_code"}, "properties": object{"status_code": codeSchema(codesWhere(func(s Spec) bool { return s.Phase == p })...)}},
			"then": object{"properties": object{"phase": object{"enum": []any{p, nil}}}},
		})
	}
	rules = append(rules, object{
		"if":   object{"properties": object{"status_code": object{"not": codeSchema(codesWhere(func(Spec) bool { return true })...)}}},
		"then": object{"required": []string{"phase"}, "properties": object{"phase": object{"enum": phases}}},
	})
	return object{"type": "object", "required": []string{"occurred_at", "status_code"}, "allOf": rules, "properties": properties(eventShape)}
}

func locationSchema() object {
	both := func(kind string) object {
		return object{"latitude": object{"type": kind}, "longitude": object{"type": kind}}
	}
	return object{"type": "object", "properties": properties(locationShape),
		"anyOf": []any{object{"required": []string{"latitude", "longitude"}, "properties": both("number")}, object{"properties": both("null")}}}
}

func incidentCodes() (out []string) {
	for _, r := range incidents {
		out = append(out, r.Code)
	}
	return out
}

func familySchema() object {
	var types, other []string
	for _, f := range families {
		types, other = append(types, f.Type), append(other, f.Spellings...)
	}
	return object{"anyOf": []any{object{"enum": types}, object{"enum": other, "description": "accepted spellings"}}}
}

func sensorNames() (out []string) {
	for _, s := range sensors {
		out = append(out, s.Type)
	}
	return out
}
