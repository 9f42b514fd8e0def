package graphql

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/postern-io/postern/cloud"
)

// Tools of others ask for the schema by one document (getIntrospectionQuery of
// graphql-js), with few differences. Its answers are made once, when the first
// is asked for, and are bytes from then on.

// standard are the answers to those documents, by their text as compact has it.
type standard map[string]func() json.RawMessage

func (s *Server) standards() standard {
	out := standard{}
	for _, descriptions := range []bool{true, false} {
		for _, more := range []bool{true, false} {
			for _, levels := range []int{7, 9} {
				query := introspectionQuery(descriptions, more, levels)
				out[compact(query)] = sync.OnceValue(func() json.RawMessage { return s.introspected(query) })
			}
		}
	}
	return out
}

// find is the answer to a document, nil when it is none of the standard ones.
func (s standard) find(query string, name *string) func() json.RawMessage {
	if name != nil && *name != "" && *name != "IntrospectionQuery" || strings.ContainsAny(query, `"#`) {
		return nil
	}
	return s[compact(query)]
}

// compact is a document with one space between all of its names and marks.
func compact(query string) string {
	return strings.Join(strings.Fields(strings.NewReplacer(",", " ", "{", " { ", "}", " } ", "(", " ( ", ")", " ) ", ":", " : ", "...", " ... ").Replace(query)), " ")
}

// introspected is the data of a document of ours.
func (s *Server) introspected(query string) json.RawMessage {
	doc, err := parser.ParseQuery(&ast.Source{Name: "introspection", Input: query})
	if err != nil || len(validator.ValidateWithRules(s.schema, doc, rules.NewDefaultRules())) > 0 {
		return nil
	}
	e := &execution{s: s, doc: doc, unbounded: true}
	raw, err := json.Marshal(e.run(context.Background(), doc.Operations[0]))
	if err != nil {
		return nil
	}
	return raw
}

// mayIntrospect lets a caller ask for the schema: it is one call of the caller's
// limit, and strangers may be left out.
func (s *Server) mayIntrospect(ctx context.Context, q Request) error {
	_, c, _, err := s.cfg.Pipeline.Enter(ctx, q.Who)
	if err == nil && s.cfg.HideSchema && c.Anonymous() {
		return cloud.E(cloud.Unauthenticated, "UNAUTHENTICATED")
	}
	return err
}

// introspects reports whether an operation asks for the schema.
func introspects(doc *ast.QueryDocument, set ast.SelectionSet, open map[string]bool) bool {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			if sel.Name == "__schema" || sel.Name == "__type" {
				return true
			}
		case *ast.InlineFragment:
			if introspects(doc, sel.SelectionSet, open) {
				return true
			}
		case *ast.FragmentSpread:
			if f := doc.Fragments.ForName(sel.Name); f != nil && !open[sel.Name] {
				open[sel.Name] = true
				if introspects(doc, f.SelectionSet, open) {
					return true
				}
			}
		}
	}
	return false
}

// introspectionQuery is the document with descriptions or without, with what
// newer editions of the language know of the schema, and so many wrappings of a
// type.
func introspectionQuery(descriptions, more bool, levels int) string {
	on := func(yes bool, text string) string {
		if yes {
			return text
		}
		return ""
	}
	d := on(descriptions, "description")
	ref := "kind name"
	for range levels {
		ref = "kind name ofType { " + ref + " }"
	}
	return `query IntrospectionQuery { __schema { ` + on(more, d) + ` queryType { name } mutationType { name } subscriptionType { name } types { ...FullType } directives { name ` + d + " " + on(more, "isRepeatable") + ` locations args { ...InputValue } } } }
fragment FullType on __Type { kind name ` + d + " " + on(more, "specifiedByURL") + ` fields(includeDeprecated: true) { name ` + d + ` args { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason } inputFields { ...InputValue } interfaces { ...TypeRef } enumValues(includeDeprecated: true) { name ` + d + ` isDeprecated deprecationReason } possibleTypes { ...TypeRef } }
fragment InputValue on __InputValue { name ` + d + ` type { ...TypeRef } defaultValue }
fragment TypeRef on __Type { ` + ref + ` }`
}
