package agentdocs

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud/catalog"
)

// hints are what an agent should know of an operation before it is called.
type hints struct {
	Purpose     string       `json:"purpose"`
	WhenToUse   string       `json:"when_to_use"`
	Risk        catalog.Risk `json:"risk"`
	Scopes      []string     `json:"scopes"`
	Confirm     bool         `json:"confirm"`
	SideEffects string       `json:"side_effects"`
	Related     []string     `json:"related"`

	tools      []string
	category   string
	idempotent bool
}

// hintsOf are those of an operation: in the words of the tools that it is
// behind, where there are any.
func (s *Service) hintsOf(o *catalog.Operation) hints {
	h := hints{Purpose: o.Summary, WhenToUse: "No tool stands for it: call it over REST or GraphQL where it is there.", Risk: o.Risk, Scopes: list(o.Scopes), Confirm: o.Confirm,
		SideEffects: o.SideEffects(), Related: []string{}, tools: []string{}, idempotent: !o.Writes() || o.Method == "PUT" || o.Method == "DELETE"}
	var when []string
	for i, t := range s.cfg.Catalog.Behind(o) {
		if i == 0 {
			h.category = t.Category
			if t.Risk == catalog.RiskLow && t.Effect == catalog.Usual {
				h.SideEffects, h.idempotent = t.SideEffects(), true
			}
		}
		h.idempotent = h.idempotent || t.Effect == catalog.Overwrites
		h.tools = append(h.tools, t.Name)
		when = append(when, t.Name+": "+t.Description)
		for _, r := range s.cfg.Catalog.Related(t) {
			if !slices.Contains(h.Related, r) {
				h.Related = append(h.Related, r)
			}
		}
	}
	if len(when) > 0 {
		h.WhenToUse = strings.Join(when, " ")
	}
	h.Related = slices.DeleteFunc(h.Related, func(r string) bool { return slices.Contains(h.tools, r) })
	return h
}

// example is a worked call with an answer that was really given.
type example struct {
	Title    string          `json:"title"`
	Request  any             `json:"request"`
	Response json.RawMessage `json:"response"`
}

// annotations are the members x-ai-* of an operation (mcp-ai 7).
func (s *Service) annotations(o *catalog.Operation) map[string]any {
	h := s.hintsOf(o)
	out := map[string]any{"x-ai-tool": h.tools, "x-ai-purpose": h.Purpose, "x-ai-when-to-use": h.WhenToUse, "x-ai-risk": h.Risk, "x-ai-scopes": h.Scopes,
		"x-ai-confirm": h.Confirm, "x-ai-side-effects": h.SideEffects, "x-ai-idempotent": h.idempotent, "x-ai-related": h.Related, "x-ai-examples": []example{}}
	if h.category != "" {
		out["x-ai-category"] = h.category
	}
	if request := o.Worked(); request != nil || o.Answered != nil {
		out["x-ai-examples"] = []example{{o.Summary, request, o.Answered}}
	}
	return out
}

// graphQLBody describes the GraphQL schema.
type graphQLBody struct {
	Endpoint   string    `json:"endpoint"`
	SDL        string    `json:"sdl,omitempty"`
	Operations []graphQL `json:"operations"`
}

type graphQL struct {
	Name      string                    `json:"name"`
	Kind      string                    `json:"kind"` // query, mutation
	Arguments []catalog.GraphQLArgument `json:"arguments"`
	Returns   string                    `json:"returns"`
	Hints     graphQLHints              `json:"aiHints"`
}

type graphQLHints struct {
	hints
	Example graphQLExample `json:"example"`
}

type graphQLExample struct {
	Query     string         `json:"query"`
	Variables map[string]any `json:"variables,omitempty"`
}

func (s *Service) graphQL(base string) graphQLBody {
	return graphQLBody{base + pathEndpoint, s.cfg.SDL, s.fields("", "")}
}

// fields are the root fields of a kind, "" for any, whose name or purpose has a
// word in it.
func (s *Service) fields(kind, word string) []graphQL {
	out := []graphQL{}
	for _, f := range s.cfg.Fields {
		x := graphQL{f.Name, "query", f.Arguments, f.Returns, graphQLHints{s.hintsOf(f.Operation), graphQLExample{f.Document, f.Variables}}}
		if f.Mutation {
			x.Kind = "mutation"
		}
		if (kind == "" || kind == x.Kind) && holds(word, x.Name, x.Hints.Purpose, x.Hints.WhenToUse) {
			out = append(out, x)
		}
	}
	return out
}

// holds reports whether one of the texts has the word in it, in any case.
func holds(word string, texts ...string) bool {
	word = strings.ToLower(strings.TrimSpace(word))
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(strings.ToLower(s), word) })
}
