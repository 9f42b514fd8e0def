package agentdocs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/postern-io/postern/cloud/catalog"
)

// own are the tools that read these documents.
func (s *Service) own() []catalog.Tool {
	row := func(name, title, description, arguments string, run func(base string, given catalog.Given) (any, error)) catalog.Tool {
		return catalog.Tool{Name: name, Title: title, Servers: []string{catalog.DeveloperServer}, Category: "developer", Description: description, Arguments: catalog.Arguments(arguments),
			Run: func(_ context.Context, a catalog.Agent, given catalog.Given) (any, error) {
				return run(a.Caller().BaseURL, given)
			}}
	}
	return []catalog.Tool{
		row("get_api_endpoints", "Get API endpoints", "REST endpoints with summary, auth and schema, by area, word or method. Give include_schemas for parameters, bodies and answers, ten a page at most.", `
			tag text · one interface area
			keyword text
			method GET|POST|PUT|PATCH|DELETE
			include_schemas boolean · default false
			page integer 1.. · default 1
			per_page integer 1..200 · default 20`, s.endpoints),
		row("get_graphql_operations", "Get GraphQL operations", "GraphQL operations with arguments and hints, each with a document that can be sent. With include_sdl the schema has what these need. Run one with run_graphql_query.", `
			kind query|mutation
			keyword text
			include_sdl boolean · default false`, s.operations),
		row("check_skill_update", "Check skill update", "Is there a newer integration skill file than the local one. Gives its version, hash and where to download it.",
			`current_hash! text 32..32 · MD5 of the local file`, s.checkSkill),
	}
}

type skillUpdate struct {
	Result    bool `json:"result"`
	Available bool `json:"update_available"`
	skillVersion
}

func (s *Service) checkSkill(base string, given catalog.Given) (any, error) {
	return skillUpdate{true, !strings.EqualFold(given.Text("current_hash"), s.hash), s.skillVersion(base)}, nil
}

type operationsBody struct {
	Result bool `json:"result"`
	Total  int  `json:"total"`
	graphQLBody
}

func (s *Service) operations(base string, given catalog.Given) (any, error) {
	out := operationsBody{Result: true, graphQLBody: graphQLBody{Endpoint: base + pathEndpoint, Operations: s.fields(given.Text("kind"), given.Text("keyword"))}}
	out.Total = len(out.Operations)
	if given.Bool("include_sdl", false) {
		var err error
		if out.SDL, err = schemaOf(s.cfg.SDL, out.Operations); err != nil {
			return nil, fmt.Errorf("read the GraphQL schema: %w", err)
		}
	}
	return out, nil
}

// schemaOf is the part of a schema that some root fields need, without descriptions, which
// /api/ai/tools/graphql has.
func schemaOf(sdl string, fields []graphQL) (string, error) {
	whole, err := parser.ParseSchema(&ast.Source{Input: sdl})
	if err != nil {
		return "", err
	}
	isAsked := map[string]bool{}
	for _, f := range fields {
		isAsked[f.Name] = true
	}
	needed := map[string]bool{}
	var need func(name string)
	all := func(list ast.ArgumentDefinitionList) {
		for _, a := range list {
			need(a.Type.Name())
		}
	}
	need = func(name string) {
		d := whole.Definitions.ForName(name)
		if d == nil || needed[name] {
			return
		}
		needed[name] = true
		for _, f := range d.Fields {
			need(f.Type.Name())
			all(f.Arguments)
		}
		for _, other := range append(slices.Clone(d.Interfaces), d.Types...) {
			need(other)
		}
	}
	for _, name := range []string{"Query", "Mutation"} {
		if root := whole.Definitions.ForName(name); root != nil {
			root.Fields = slices.DeleteFunc(root.Fields, func(f *ast.FieldDefinition) bool { return !isAsked[f.Name] })
			if len(root.Fields) > 0 {
				need(name)
			}
		}
	}
	part := &ast.SchemaDocument{Directives: whole.Directives, Definitions: slices.DeleteFunc(whole.Definitions, func(d *ast.Definition) bool { return !needed[d.Name] })}
	var out strings.Builder
	formatter.NewFormatter(&out, formatter.WithoutDescription(), formatter.WithIndent("  ")).FormatSchemaDocument(part)
	return out.String(), nil
}

type endpointsBody struct {
	Result    bool       `json:"result"`
	Total     int        `json:"total"`
	Page      int64      `json:"page"`
	PerPage   int64      `json:"per_page"`
	Document  string     `json:"document"`
	Endpoints []endpoint `json:"endpoints"`
	// Schemas are the named types that the endpoints of this page refer to.
	Schemas map[string]any `json:"schemas,omitempty"`
}

// endpoint is an operation of the OpenAPI document. The members behind Risk are
// there with schemas.
type endpoint struct {
	Method       string   `json:"method"`
	Path         string   `json:"path"`
	ID           string   `json:"operation_id"`
	Summary      string   `json:"summary"`
	Tag          string   `json:"tag"`
	Auth         string   `json:"auth"` // none, optional, bearer
	AccountTypes []string `json:"account_types"`
	Scopes       []string `json:"scopes"`
	Risk         string   `json:"risk"`
	Tools        []string `json:"tools"`

	Parameters  any `json:"parameters,omitempty"`
	RequestBody any `json:"request_body,omitempty"`
	Answer      any `json:"answer,omitempty"`
	ErrorCodes  any `json:"error_codes,omitempty"`
}

// described is what is read of an OpenAPI document.
type described struct {
	Paths      map[string]map[string]describedOperation
	Components struct{ Schemas map[string]any }
}

type describedOperation struct {
	ID           string   `json:"operationId"`
	Summary      string   `json:"summary"`
	Tags         []string `json:"tags"`
	Security     []map[string]any
	AccountTypes []string `json:"x-account-types"`
	Scopes       []string `json:"x-scopes"`
	Risk         string   `json:"x-ai-risk"`
	Tools        []string `json:"x-ai-tool"`
	Codes        any      `json:"x-error-codes"`
	Parameters   any
	RequestBody  any
	Responses    map[string]any
}

// maxWithSchemas is how many endpoints a page has at most together with the
// types that they refer to: what fits a tool's result.
const maxWithSchemas = 10

func (s *Service) endpoints(base string, given catalog.Given) (any, error) {
	file := s.once(base, pathOpenAPI, func() File { return textFile(s.cfg.Catalog.Annotated(base, interfaceVersion, s.annotations), typeJSON) })
	var d described
	if err := json.Unmarshal(file.Body, &d); err != nil {
		return nil, fmt.Errorf("read our description: %w", err)
	}
	all := []endpoint{}
	schemas := given.Bool("include_schemas", false)
	for path, methods := range d.Paths {
		for method, o := range methods {
			if x := o.endpoint(strings.ToUpper(method), path, schemas); x.wanted(given) {
				all = append(all, x)
			}
		}
	}
	slices.SortFunc(all, func(a, b endpoint) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	out := endpointsBody{Result: true, Total: len(all), Page: given.Int("page", 1), PerPage: given.Int("per_page", 20), Document: base + pathOpenAPI}
	if schemas {
		out.PerPage = min(out.PerPage, maxWithSchemas)
	}
	from := min((out.Page-1)*out.PerPage, int64(len(all)))
	if out.Page > int64(len(all)) { // the product may be too large to have
		from = int64(len(all))
	}
	out.Endpoints = all[from:min(from+out.PerPage, int64(len(all)))]
	if schemas {
		out.Schemas = map[string]any{}
		d.gather(out.Schemas, out.Endpoints)
	}
	return out, nil
}

func (o describedOperation) endpoint(method, path string, schemas bool) endpoint {
	x := endpoint{Method: method, Path: path, ID: o.ID, Summary: o.Summary, Tag: o.Tags[0], Auth: "bearer", AccountTypes: list(o.AccountTypes), Scopes: list(o.Scopes), Risk: o.Risk, Tools: list(o.Tools)}
	switch {
	case len(o.Security) == 0:
		x.Auth = "none"
	case len(o.Security[0]) == 0:
		x.Auth = "optional"
	}
	if !schemas {
		return x
	}
	x.Parameters, x.RequestBody, x.ErrorCodes = o.Parameters, o.RequestBody, o.Codes
	for status, r := range o.Responses {
		if strings.HasPrefix(status, "2") {
			x.Answer = r
		}
	}
	return x
}

func (x endpoint) wanted(given catalog.Given) bool {
	return (given.Text("method") == "" || given.Text("method") == x.Method) && (given.Text("tag") == "" || strings.EqualFold(given.Text("tag"), x.Tag)) &&
		holds(given.Text("keyword"), x.Path, x.ID, x.Summary, strings.Join(x.Tools, " "))
}

const schemaRef = "#/components/schemas/"

// gather collects the named types that a value refers to, and those that they
// refer to.
func (d described) gather(into map[string]any, v any) {
	raw := compact(v)
	for part := range bytes.SplitSeq(raw, []byte(`"`+schemaRef)) {
		name, _, ok := bytes.Cut(part, []byte(`"`))
		if !ok || into[string(name)] != nil {
			continue
		}
		if schema := d.Components.Schemas[string(name)]; schema != nil {
			into[string(name)] = schema
			d.gather(into, schema)
		}
	}
}
