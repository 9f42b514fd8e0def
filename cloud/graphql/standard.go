package graphql

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/postern-io/postern/cloud"
)

// Tools of others ask for the schema by the documents that getIntrospectionQuery of
// graphql-js makes from its options. They cost more than other documents may, and
// are answered from bytes that are made when the first one asks.

// standard are those documents by the digest of their text as compact has it.
type standard struct {
	options map[[32]byte]introspection
	run     func(query string) json.RawMessage

	mu    sync.Mutex // guards what follows
	asked []answered // the last ones, newest last
}

type answered struct {
	of   [32]byte
	data json.RawMessage
}

// keptAnswers bounds the memory of answers: tools in use differ by few options.
const keptAnswers = 8

func (s *Server) standards() *standard {
	out := &standard{options: map[[32]byte]introspection{}, run: s.introspected}
	for bits := range 1 << 6 {
		on := func(n int) bool { return bits>>n&1 == 1 }
		for _, levels := range []int{7, 9} {
			for _, kinds := range []bool{false, true} {
				o := introspection{descriptions: on(0), schemaDescription: on(1), specifiedBy: on(2), repeatable: on(3), inputDeprecation: on(4), oneOf: on(5), rootKinds: kinds, levels: levels}
				out.options[sha256.Sum256([]byte(compact(o.query())))] = o
			}
		}
	}
	return out
}

// find is the answer to a document, nil when it is none of the standard ones.
func (s *standard) find(query string, name *string) func() json.RawMessage {
	if len(query) > 8<<10 || name != nil && *name != "" && *name != "IntrospectionQuery" || strings.ContainsAny(query, `"#`) {
		return nil
	}
	of := sha256.Sum256([]byte(compact(query)))
	o, ok := s.options[of]
	if !ok {
		return nil
	}
	return func() json.RawMessage {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.IndexFunc(s.asked, func(a answered) bool { return a.of == of })
		if i < 0 {
			s.asked = append(s.asked, answered{of, s.run(o.query())})
		} else {
			again := s.asked[i]
			s.asked = append(slices.Delete(s.asked, i, i+1), again)
		}
		s.asked = s.asked[max(0, len(s.asked)-keptAnswers):]
		return s.asked[len(s.asked)-1].data
	}
}

// compact is a document with one space between all of its names and marks.
func compact(query string) string {
	return strings.Join(strings.Fields(strings.NewReplacer(",", " ", "{", " { ", "}", " } ", "(", " ( ", ")", " ) ", ":", " : ", "...", " ... ").Replace(query)), " ")
}

// introspected is the data of a document of ours.
func (s *Server) introspected(query string) json.RawMessage {
	doc, err := parser.ParseQuery(&ast.Source{Name: "introspection", Input: query})
	if err != nil || len(s.faults(doc)) > 0 {
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

// introspection are the options of getIntrospectionQuery; rootKinds and levels are
// what its editions differ in.
type introspection struct {
	descriptions, schemaDescription, specifiedBy, repeatable, inputDeprecation, oneOf bool

	rootKinds bool // kinds of root types, and names before kinds below
	levels    int  // wrappings of a type
}

func (o introspection) query() string {
	on := func(yes bool, text string) string {
		if yes {
			return text + " "
		}
		return ""
	}
	d, old := on(o.descriptions, "description"), on(o.inputDeprecation, "(includeDeprecated: true)")
	root, ref := "name", "kind name"
	if o.rootKinds {
		root, ref = "name kind", "name kind"
	}
	inner := ref
	for range o.levels - 1 {
		inner = ref + " ofType { " + inner + " }"
	}
	return `query IntrospectionQuery { __schema { ` + on(o.schemaDescription && o.descriptions, "description") + `queryType { ` + root + ` } mutationType { ` + root + ` } subscriptionType { ` + root + ` } types { ...FullType } directives { name ` + d +
		on(o.repeatable, "isRepeatable") + `locations args` + old + ` { ...InputValue } } } }
fragment FullType on __Type { kind name ` + d + on(o.specifiedBy, "specifiedByURL") + on(o.oneOf, "isOneOf") + `fields(includeDeprecated: true) { name ` + d + `args` + old + ` { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason } inputFields` + old +
		` { ...InputValue } interfaces { ...TypeRef } enumValues(includeDeprecated: true) { name ` + d + `isDeprecated deprecationReason } possibleTypes { ...TypeRef } }
fragment InputValue on __InputValue { name ` + d + `type { ...TypeRef } defaultValue ` + on(o.inputDeprecation, "isDeprecated deprecationReason") + `}
fragment TypeRef on __Type { kind name ofType { ` + inner + ` } }`
}
