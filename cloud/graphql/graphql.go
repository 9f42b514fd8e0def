// Package graphql answers GraphQL over HTTP. Schema and execution come from the
// catalogue: a root field is an operation, its arguments the operation's input,
// its answer projected onto what was asked for. Every field passes the same
// pipeline as a REST call, limits and scopes included.
//
// Requests are bounded before anything runs: by characters, tokens, depth,
// fields and root fields. Introspection is not held to depth and fields but to
// the nodes of the schema that it visits; it is one call of its caller's limit,
// and what tools of others ask for is answered from bytes. A request that cannot be
// run counts as one call, and after too many of them no other is looked at.
package graphql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
)

// Limits of a request.
const (
	MaxCharacters = 20_000
	MaxTokens     = 4_000
	MaxDepth      = 10
	MaxFields     = 200
	MaxRoots      = 10
	MaxSelections = 240    // of a document as it is written, before fragments are opened
	MaxNodes      = 60_000 // of the schema that an introspection visits
	MaxProblems   = 10     // of a document that are listed
)

// Config is what New needs.
type Config struct {
	Catalog  *catalog.Catalog
	Pipeline *catalog.Pipeline
	Log      *slog.Logger
	// HideSchema leaves introspection to callers with a token.
	HideSchema bool
	// Timeout bounds one request; 0 is 30 s.
	Timeout time.Duration
}

// Server answers GraphQL requests. Safe for concurrent use.
type Server struct {
	cfg    Config
	schema *ast.Schema
	text   string
	fields map[string]field
	known  *standard
}

// New builds the schema of a table.
func New(cfg Config) (*Server, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	s := &Server{cfg: cfg}
	var err error
	s.schema, s.fields, s.text, err = build(cfg.Catalog)
	s.known = s.standards()
	return s, err
}

// Schema is the schema's text.
func (s *Server) Schema() string { return s.text }

// Request is one request as it came.
type Request struct {
	Body   []byte
	Accept string
	Key    string // Idempotency-Key, for a request with one mutation field
	Always bool   // every mutation field is held to the key, with its own name
	Tool   bool   // a tool asks: operations that take or give credentials are refused
	catalog.Who
}

// Response is what goes back.
type Response struct {
	Status int
	Type   string
	Body   []byte
	// Replayed is set for the first answer of a call that was repeated.
	Replayed bool
	// Unknown are variables that the operation does not declare, sorted.
	Unknown []string
	// Account is that of the caller, 0 when it is not known.
	Account cloud.AccountID
}

// params is the body of a request (GraphQL over HTTP, 6.1).
type params struct {
	Query         *string        `json:"query"`
	Variables     map[string]any `json:"variables"`
	OperationName *string        `json:"operationName"`
	Extensions    map[string]any `json:"extensions"`
}

// result is the body of an answer.
type result struct {
	Data   *any     `json:"data,omitempty"` // nil: nothing was run
	Errors []failed `json:"errors,omitempty"`

	replayed bool
	unknown  []string // variables
	account  cloud.AccountID
}

type failed struct {
	Message    string         `json:"message"`
	Locations  []location     `json:"locations,omitempty"`
	Path       []any          `json:"path,omitempty"`
	Extensions map[string]any `json:"extensions,omitempty"`
}

type location struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

const (
	typeJSON    = "application/json; charset=utf-8"
	typeGraphQL = "application/graphql-response+json; charset=utf-8"
)

// Serve answers a request.
func (s *Server) Serve(ctx context.Context, q Request) Response {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	kind := typeJSON
	if prefersGraphQL(q.Accept) {
		kind = typeGraphQL
	}
	q.Surface = "graphql"
	r, readable := s.answer(ctx, q)
	out := Response{Status: 200, Type: kind, Replayed: r.replayed, Unknown: r.unknown, Account: r.account}
	if r.Data == nil && (kind == typeGraphQL || !readable) {
		out.Status = 400
	}
	var err error
	if out.Body, err = json.Marshal(r); err != nil {
		s.cfg.Log.Error("encode answer", "request_id", q.RequestID, "err", err)
		return Response{Status: 500, Type: kind, Body: []byte(`{"errors":[{"message":"internal error"}]}`)}
	}
	return out
}

// prefersGraphQL reports whether an Accept header asks for the newer type.
func prefersGraphQL(accept string) bool {
	for item := range strings.SplitSeq(accept, ",") {
		kind, _, _ := strings.Cut(item, ";")
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "application/graphql-response+json":
			return true
		case "application/json", "*/*", "application/*":
			return false
		}
	}
	return false
}

// answer answers a request, unless its caller sent too many that could not be
// run. readable is false for a body that is no GraphQL request.
func (s *Server) answer(ctx context.Context, q Request) (r result, readable bool) {
	if err := s.cfg.Pipeline.MayRead(ctx, q.Who); err != nil {
		return s.turnedAway(q, err), true
	}
	if r, readable = s.read(ctx, q); r.Data != nil {
		return r, readable
	}
	if err := s.cfg.Pipeline.ReadInVain(ctx, q.Who); err != nil {
		return s.turnedAway(q, err), true
	}
	return r, readable
}

// read reads, checks and runs a request.
func (s *Server) read(ctx context.Context, q Request) (r result, readable bool) {
	refuse := func(code, message string) (result, bool) {
		return result{Errors: []failed{{Message: message, Extensions: s.extensions(q, &cloud.Error{Kind: cloud.Malformed, Code: code})}}}, false
	}
	var p params
	if !utf8.Valid(q.Body) || json.Unmarshal(q.Body, &p) != nil {
		return refuse("MALFORMED_JSON", locale.Error(q.Language, "MALFORMED_JSON"))
	}
	if p.Query == nil || strings.TrimSpace(*p.Query) == "" {
		return refuse("BAD_REQUEST", "The member query is missing: send {\"query\": \"…\"}.")
	}
	if n := utf8.RuneCountInString(*p.Query); n > MaxCharacters {
		return refuse("PAYLOAD_TOO_LARGE", fmt.Sprintf("The query has %d characters; at most %d are taken. Send less at once.", n, MaxCharacters))
	}
	if answer := s.known.find(*p.Query, p.OperationName); answer != nil {
		if err := s.mayIntrospect(ctx, q); err != nil {
			return s.turnedAway(q, err), true
		}
		var data any = answer()
		return result{Data: &data}, true
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Name: "request", Input: *p.Query}, MaxTokens)
	if err != nil {
		return result{Errors: s.problems(q, asList(err))}, true
	}
	if written(doc) > MaxSelections { // what is checked next costs their square
		return refuse("BAD_REQUEST", tooMuch)
	}
	if list := s.faults(doc); len(list) > 0 {
		return result{Errors: s.problems(q, list)}, true
	}
	name := ""
	if p.OperationName != nil {
		name = *p.OperationName
	}
	op := doc.Operations.ForName(name)
	if op == nil || name == "" && len(doc.Operations) > 1 {
		return refuse("BAD_REQUEST", "The document has no operation of this name; give operationName.")
	}
	if over := bounded(doc, op); over != "" {
		return result{Errors: []failed{{Message: over, Extensions: s.extensions(q, &cloud.Error{Kind: cloud.Malformed, Code: "BAD_REQUEST"})}}}, true
	}
	vars, err := validator.VariableValues(s.schema, op, p.Variables)
	if err != nil {
		return result{Errors: s.problems(q, asList(err))}, true
	}
	if introspects(doc, op.SelectionSet, map[string]bool{}) {
		if err := s.mayIntrospect(ctx, q); err != nil {
			return s.turnedAway(q, err), true
		}
	}
	e := &execution{s: s, q: q, doc: doc, vars: vars}
	if q.Key != "" && !q.Always && op.Operation == ast.Mutation && len(e.collect(op.SelectionSet, "Mutation")) > 1 {
		return refuse("BAD_REQUEST", "An Idempotency-Key goes with one mutation field: send the others in requests of their own.")
	}
	data := e.run(ctx, op)
	if e.nodes > MaxNodes {
		return refuse("BAD_REQUEST", tooMuch)
	}
	return result{Data: &data, Errors: e.errors, replayed: e.replayed, unknown: undeclared(op, p.Variables), account: e.account}, true
}

// undeclared are the first variables of a request that its operation does not
// declare.
func undeclared(op *ast.OperationDefinition, given map[string]any) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if op.VariableDefinitions.ForName(name) == nil && len(out) < MaxProblems {
			out = append(out, "variables."+name)
		}
	}
	return out
}

// Mutated are the operations that a document may change something by; none for
// one that only reads or cannot be run.
func (s *Server) Mutated(query, name string) (out []*catalog.Operation) {
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Name: "request", Input: query}, MaxTokens)
	if err != nil || written(doc) > MaxSelections || len(s.faults(doc)) > 0 {
		return nil
	}
	op := doc.Operations.ForName(name)
	if op == nil || op.Operation != ast.Mutation || bounded(doc, op) != "" {
		return nil
	}
	open := map[string]bool{}
	var walk func(ast.SelectionSet)
	walk = func(set ast.SelectionSet) { // of fields that directives may leave out, too
		for _, sel := range set {
			switch sel := sel.(type) {
			case *ast.Field:
				if at, ok := s.fields[sel.Name]; ok {
					out = append(out, at.op)
				}
			case *ast.InlineFragment:
				walk(sel.SelectionSet)
			case *ast.FragmentSpread:
				if f := doc.Fragments.ForName(sel.Name); f != nil && !open[sel.Name] {
					open[sel.Name] = true
					walk(f.SelectionSet)
				}
			}
		}
	}
	walk(op.SelectionSet)
	return out
}

// faults are what the schema has against a document. They propose names for those that it
// does not know only where there are few: each proposal costs as much as a hundred checks.
func (s *Server) faults(doc *ast.QueryDocument) gqlerror.List {
	list := validator.ValidateWithRules(s.schema, doc, plainRules)
	if len(list) == 0 || len(list) > MaxProblems {
		return list
	}
	return validator.ValidateWithRules(s.schema, doc, proposingRules)
}

// The rules that a document is checked by, which the checks only read: those that propose names,
// and the same without proposals.
var proposingRules, plainRules = rules.NewDefaultRules(), withoutProposals()

func withoutProposals() *rules.Rules {
	out := rules.NewDefaultRules()
	for _, r := range []struct{ with, without validator.Rule }{
		{rules.FieldsOnCorrectTypeRule, rules.FieldsOnCorrectTypeRuleWithoutSuggestions},
		{rules.KnownArgumentNamesRule, rules.KnownArgumentNamesRuleWithoutSuggestions},
		{rules.KnownTypeNamesRule, rules.KnownTypeNamesRuleWithoutSuggestions},
		{rules.ScalarLeafsRule, rules.ScalarLeafsRuleWithoutSuggestions},
		{rules.ValuesOfCorrectTypeRule, rules.ValuesOfCorrectTypeRuleWithoutSuggestions},
	} {
		out.ReplaceRule(r.with.Name, r.without.RuleFunc)
	}
	return out
}

func asList(err error) gqlerror.List {
	var one *gqlerror.Error
	var list gqlerror.List
	switch {
	case errors.As(err, &list):
		return list
	case errors.As(err, &one):
		return gqlerror.List{one}
	}
	return gqlerror.List{{Message: err.Error()}}
}

// problems are the first errors of the document itself.
func (s *Server) problems(q Request, list gqlerror.List) []failed {
	list = list[:min(len(list), MaxProblems)]
	out := make([]failed, len(list))
	for i, e := range list {
		refused := &cloud.Error{Kind: cloud.Malformed, Code: "BAD_REQUEST"}
		out[i] = failed{Message: e.Message}
		if fields := ofVariable(e); fields != nil {
			refused.Fields = locale.Fields(q.Language, fields)
			out[i].Message = slices.Collect(maps.Values(refused.Fields))[0][0]
		}
		out[i].Extensions = s.extensions(q, refused)
		for _, l := range e.Locations {
			out[i].Locations = append(out[i].Locations, location{l.Line, l.Column})
		}
	}
	return out
}

// extensions is what programs read of an error.
func (s *Server) extensions(q Request, e *cloud.Error) map[string]any {
	x := map[string]any{"code": e.Code, "error_code": e.Code, "http_status": catalog.Status(e), "request_id": q.RequestID}
	if len(e.Fields) > 0 {
		x["errors"] = e.Fields
	}
	if len(e.Details) > 0 {
		x["details"] = e.Details
	}
	return x
}

// written counts the selections of a document as it is written.
func written(doc *ast.QueryDocument) int {
	n := 0
	var count func(ast.SelectionSet)
	count = func(set ast.SelectionSet) {
		for _, sel := range set {
			n++
			switch sel := sel.(type) {
			case *ast.Field:
				count(sel.SelectionSet)
			case *ast.InlineFragment:
				count(sel.SelectionSet)
			}
		}
	}
	for _, op := range doc.Operations {
		count(op.SelectionSet)
	}
	for _, f := range doc.Fragments {
		count(f.SelectionSet)
	}
	return n
}

const tooMuch = "The query asks for too much at once: at most 240 selections as written, 200 fields, 10 operations and 60,000 nodes of the schema."

// turnedAway is the answer to a request of which nothing was run.
func (s *Server) turnedAway(q Request, err error) result {
	shown, ours := cloud.Answered(err)
	if ours {
		s.cfg.Log.Error("introspection failed", "request_id", q.RequestID, "err", err)
	}
	return result{Errors: []failed{{Message: locale.Error(q.Language, shown.Code, shown.Args...), Extensions: s.extensions(q, shown)}}}
}

// bounded holds an operation to depth and count of fields: what to say of one
// that has more, "" of others.
func bounded(doc *ast.QueryDocument, op *ast.OperationDefinition) string {
	var fields, roots int
	var walk func(set ast.SelectionSet, depth int, open map[string]bool) string
	walk = func(set ast.SelectionSet, depth int, open map[string]bool) string {
		if depth > MaxDepth {
			return "The query is nested too deeply: at most 10 levels."
		}
		for _, sel := range set {
			over := ""
			switch sel := sel.(type) {
			case *ast.Field:
				if depth == 1 {
					roots++
				}
				if roots > MaxRoots {
					return tooMuch
				}
				if strings.HasPrefix(sel.Name, "__") {
					continue // introspection, which is held to its nodes
				}
				fields++
				over = walk(sel.SelectionSet, depth+1, open)
			case *ast.InlineFragment:
				over = walk(sel.SelectionSet, depth, open)
			case *ast.FragmentSpread:
				if f := doc.Fragments.ForName(sel.Name); f != nil && !open[sel.Name] {
					open[sel.Name] = true
					over = walk(f.SelectionSet, depth, open)
					delete(open, sel.Name)
				}
			}
			if over != "" {
				return over
			}
			if fields > MaxFields || roots > MaxRoots {
				return tooMuch
			}
		}
		return ""
	}
	return walk(op.SelectionSet, 1, map[string]bool{})
}
