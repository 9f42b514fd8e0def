package catalog

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-io/postern/cloud"
)

var inBraces = regexp.MustCompile(`\{([a-z_]+)\}`)

// OpenAPI is the description of the REST addresses (OpenAPI 3.1), as JSON. base
// is the server's own address. The result is the same for the same table.
func (c *Catalog) OpenAPI(base, version string) []byte { return c.Annotated(base, version, nil) }

// Annotated is OpenAPI with further members of each operation; also nil adds
// none.
func (c *Catalog) Annotated(base, version string, also func(o *Operation) map[string]any) []byte {
	s := newSchemas()
	paths := object{}
	for i := range c.list {
		o := &c.list[i]
		item, _ := paths[o.Path].(object)
		if item == nil {
			item = object{}
			paths[o.Path] = item
		}
		described := s.operation(o)
		if also != nil {
			maps.Copy(described, also(o))
		}
		item[strings.ToLower(o.Method)] = described
	}
	s.list["Error"] = errorSchema()
	areas := make([]any, len(tags))
	for i, t := range tags {
		areas[i] = object{"name": t.name, "description": t.about}
	}
	doc := object{
		"openapi": "3.1.0",
		"info": object{"title": "Postern", "version": version, "description": "Parcel lockers, tracking and delivery. Tokens come from POST /api/v1/user/login. " +
			"Messages are in the language of Accept-Language (en, zh-Hans, zh-Hant, fr, de, es); codes and names never change with it.",
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"servers": []any{object{"url": base}},
		"tags":    areas,
		"paths":   paths,
		"components": object{
			"schemas":         s.list,
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer", "description": "An access token or API key"}},
			"responses":       problems(),
		},
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic("catalog: the description has no encoding: " + err.Error()) // plain values of our own
	}
	return b
}

func errorSchema() object {
	text := object{"type": "string"}
	return object{"type": "object", "required": []string{"result", "code", "error_code", "message", "request_id"}, "properties": object{
		"result": object{"type": "boolean", "const": false}, "code": text, "error_code": object{"type": "string", "description": "The same as code"},
		"message":    object{"type": "string", "description": "For people, in the language of Accept-Language"},
		"errors":     object{"description": "Messages by dotted path of the member; a list of findings where the code is one of OTEP"},
		"details":    object{"type": "object", "description": "For programs", "additionalProperties": true},
		"warnings":   object{"type": "array", "description": "Of OTEP_NOT_CONFORMANT: findings that are no errors", "items": object{}},
		"timelines":  object{"type": "array", "description": "Of OTEP_NOT_CONFORMANT: what became of each timeline", "items": object{}},
		"request_id": text}}
}

// heldSchema is the answer to a call that waits for a person.
func heldSchema() object {
	return object{"type": "object", "required": []string{"result", "outcome", "approval_id"}, "properties": object{"result": object{"type": "boolean"},
		"outcome": object{"type": "string", "enum": []string{OutcomePending}}, "approval_id": object{"type": "string"}, "approval": object{"type": "object", "additionalProperties": true}}}
}

// operation describes one row.
func (s *schemas) operation(o *Operation) object {
	out := object{"operationId": o.Name, "summary": o.Summary, "description": o.Description, "tags": []string{o.Tag}, "x-ai-risk": o.Risk}
	if len(o.Tools) > 0 {
		out["x-ai-tool"], out["x-ai-confirm"] = o.Tools, o.Confirm
	}
	if params := s.parameters(o); len(params) > 0 {
		out["parameters"] = params
	}
	if body := s.body(o); body != nil {
		out["requestBody"] = body
	}
	status := o.Status
	if status == 0 {
		status = 200
	}
	good := object{"description": "Done"}
	if status != 204 {
		good["content"] = s.content(o)
	}
	responses := o.problems()
	if o.Tagged {
		tag := object{"ETag": object{"description": "Stands for the answer, in If-None-Match of the next call", "required": true, "schema": object{"type": "string"}}}
		good["headers"] = tag
		responses["304"] = object{"description": "Nothing has changed since the answer that If-None-Match names", "headers": tag}
	}
	for _, n := range append([]int{status}, o.Also...) {
		responses[strconv.Itoa(n)] = good
	}
	if o.Held() && !o.NoToken && responses["202"] == nil {
		responses["202"] = object{"description": "The key asks a person first (require_approval): the call is done once it is approved", "content": object{"application/json": object{"schema": heldSchema()}}}
	}
	out["responses"] = responses
	if codes := o.Errors; len(codes) > 0 || o.Idempotent {
		if o.Idempotent {
			codes = append(slices.Clone(codes), "IDEMPOTENCY_KEY_REUSED", "IDEMPOTENCY_IN_PROGRESS")
		}
		out["x-error-codes"] = codes
	}
	if o.NoToken {
		out["security"] = []any{}
	} else if !o.NeedsToken() {
		out["security"] = []any{object{}, object{"bearer": []string{}}}
	} else {
		out["security"] = []any{object{"bearer": []string{}}}
	}
	if o.Recipient {
		out["x-recipient-token"] = true
	}
	if o.Types != nil {
		out["x-account-types"] = accountTypes(o.Types)
	}
	if len(o.Scopes) > 0 {
		out["x-scopes"] = o.Scopes
	}
	return out
}

// content is the body of a good answer by type. An operation that gives
// documents of others gives those that are JSON bare, too, or nothing else.
func (s *schemas) content(o *Operation) object {
	out := object{}
	for _, m := range o.Gives {
		out[m] = object{"schema": object{"type": "object"}}
	}
	if o.Live {
		out["text/event-stream"] = object{"schema": object{"type": "string", "description": "Server-sent events until the caller leaves: id is a cursor, event a kind, data a member of the list in JSON; a comment every 15 seconds"}}
	}
	media := object{}
	if o.Answered != nil {
		media["example"] = json.RawMessage(o.Answered)
	}
	switch {
	case o.Streams():
		for _, m := range o.Media {
			out[m] = object{"schema": object{"type": "string", "format": "binary"}}
		}
	case len(o.Gives) == 0:
		media["schema"] = s.of(o.out, false)
		out["application/json"] = media
	case hasBody(o.out):
		bare := object{"type": "object", "description": "The document alone, without the members of an answer of ours", "not": object{"properties": object{"result": object{}}, "required": []string{"result"}}}
		media["schema"] = object{"anyOf": []any{s.of(o.out, false), bare}}
		out["application/json"] = media
	}
	return out
}

func accountTypes(list []cloud.AccountType) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = string(t)
	}
	return out
}

func (s *schemas) parameters(o *Operation) []any {
	var out []any
	given, named := o.WorkedInput(), map[string]bool{}
	for _, f := range reflect.VisibleFields(o.in) {
		in := place(f)
		name := f.Tag.Get(in)
		if in == "" || name == "*" || in == "header" && name == "Accept" { // RFC: described by the media types
			continue
		}
		p := object{"name": name, "in": in, "required": in == "path" || f.Tag.Get("required") == "true", "schema": described(s.of(f.Type, true), f, true)}
		if d := f.Tag.Get("doc"); d != "" {
			p["description"] = d
			delete(p["schema"].(object), "description")
		}
		if v, ok := given[name]; ok {
			p["example"] = v
		}
		if in == "path" {
			named[name] = true
		}
		out = append(out, p)
	}
	for _, m := range inBraces.FindAllStringSubmatch(o.Path, -1) {
		if !named[m[1]] {
			panic("catalog: " + o.Name + " has no member for {" + m[1] + "}")
		}
	}
	if o.Tagged {
		out = append(out, object{"name": "If-None-Match", "in": "header", "required": false, "description": "ETag of an answer that is there already", "schema": object{"type": "string"}})
	}
	if o.Idempotent {
		out = append(out, object{"name": "Idempotency-Key", "in": "header", "required": false, "description": "The same key with the same body gives the first answer again for 24 hours",
			"schema": object{"type": "string", "minLength": 1, "maxLength": 128}})
	}
	return out
}

func (s *schemas) body(o *Operation) object {
	content, required := object{}, o.raw != nil
	switch {
	case o.upload != nil:
		content, required = s.form(o), true
	case o.raw != nil:
		f := o.in.FieldByIndex(o.raw)
		media := object{"schema": object{"type": "object", "description": f.Tag.Get("doc")}}
		if example := o.Worked(); example != nil {
			media["example"] = example
		}
		for _, m := range append([]string{"application/json"}, o.Media...) {
			content[m] = media
		}
	case o.HasBody():
		schema := s.bodySchema(o.in)
		if schema == nil {
			return nil
		}
		media := object{"schema": schema}
		if example := o.Worked(); example != nil {
			media["example"] = example
		}
		content["application/json"] = media
		required = s.requires(schema)
	default:
		return nil
	}
	return object{"required": required, "content": content}
}

// requires reports whether a body must have any member.
func (s *schemas) requires(schema object) bool {
	if ref, ok := schema["$ref"].(string); ok {
		schema, _ = s.list[strings.TrimPrefix(ref, "#/components/schemas/")].(object)
	}
	return schema["required"] != nil
}

// bodySchema is the schema of an input's body; nil when all of it comes from
// elsewhere.
func (s *schemas) bodySchema(t reflect.Type) object {
	if hasBody(t) {
		return s.of(t, true)
	}
	return nil
}

// hasBody reports whether any member of a struct shows in a body.
func hasBody(t reflect.Type) bool {
	return slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		_, _, ok := jsonName(f)
		return ok && place(f) == ""
	})
}
