package tool

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
)

const graphQLTool = cloud.GraphQLQueryTool

// changes reports whether a call may change anything: a GraphQL document that
// only reads is a read, whatever its tool may do otherwise.
func (k *call) changes() bool {
	if k.tool.Name == graphQLTool {
		return len(k.mutated()) > 0
	}
	return k.tool.Writes() || k.tool.Effect != catalog.Usual
}

// mutated are the operations by which the document may change something.
func (k *call) mutated() []*catalog.Operation {
	return k.cfg.GraphQL.Mutated(k.given.Text("query"), k.given.Text("operation_name"))
}

// mutation checks a document that changes something: it must be meant, and what
// asks for a person's word must have it unless the call waits for one anyway, and
// a call that waits approves no other.
func (k *call) mutation() error {
	if k.tool.Name != graphQLTool || !k.changes() {
		return nil
	}
	if !k.given.Bool("allow_mutation", false) {
		return &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Members: map[string]any{"message": locale.Word(k.caller.Language, "tool.mutation")}}
	}
	if k.dry {
		return nil
	}
	if k.waits() {
		if slices.ContainsFunc(k.mutated(), (*catalog.Operation).Approves) {
			return cloud.E(cloud.Forbidden, "APPROVAL_NEEDS_PERSON")
		}
		return nil
	}
	for _, o := range k.mutated() {
		variables, _ := k.given["variables"].(map[string]any)
		if o.Confirm && variables["confirm"] != true {
			what := locale.Word(k.caller.Language, "tool.ask."+graphQLTool, o.Summary)
			return required("CONFIRMATION_REQUIRED", locale.Error(k.caller.Language, "CONFIRMATION_REQUIRED", graphQLTool+" (variables.confirm)", what), map[string]any{"operation": o.Name})
		}
	}
	return nil
}

// runGraphQL runs a document in the caller's name.
func (s *Service) runGraphQL(ctx context.Context, a catalog.Agent, given catalog.Given) (any, error) {
	r, ok := a.(*running)
	if !ok {
		return nil, errors.New("tool: run_graphql_query is not called as a tool")
	}
	variables, _ := given["variables"].(map[string]any)
	body := map[string]any{"query": given.Text("query"), "variables": catalog.Given(variables).Without("confirm")}
	if name := given.Text("operation_name"); name != "" {
		body["operationName"] = name
	}
	for _, o := range s.cfg.GraphQL.Mutated(given.Text("query"), given.Text("operation_name")) {
		if !slices.ContainsFunc(r.writes, func(w write) bool { return w.operation == o }) {
			r.writes = append(r.writes, write{o, nil})
		}
	}
	key := ""
	if r.once != "" && len(r.writes) > 0 {
		key = r.once
	}
	who := r.who
	if who.Via = r.via; who.Via.Consent == "" && slices.ContainsFunc(r.writes, func(w write) bool { return w.operation.Confirm }) {
		who.Via.Consent = "argument"
	}
	raw, replayed := s.cfg.GraphQL.Run(catalog.Admitted(ctx, r.caller), compact(body), key, who)
	r.replayed = r.replayed || replayed
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, err
	}
	if held := graphQLHeld(out["errors"]); held != nil {
		return nil, held
	}
	errs, _ := out["errors"].([]any)
	if done := graphQLDone(out["data"], errs); len(errs) > 0 && len(r.writes) > 0 && done != nil {
		return nil, &cloud.Error{Kind: cloud.Conflict, Code: "PARTLY_DONE", Details: map[string]any{"data": done, "errors": errs}}
	}
	if len(errs) > 0 && (len(r.writes) > 0 || out["data"] == nil) {
		if refused := graphQLRefusal(errs[0]); refused != nil {
			return nil, refused
		}
	}
	out["result"] = true
	return out, nil
}

// graphQLHeld is the first mutation that its key may not make by itself, nil
// when there is none.
func graphQLHeld(errs any) *catalog.Held {
	list, _ := errs.([]any)
	for _, e := range list {
		outcome, _ := catalog.Pick(e, "extensions", "outcome")
		id, _ := catalog.Pick(e, "extensions", "approval_id")
		text, _ := outcome.(string)
		name, _ := id.(string)
		if text != "" {
			body, _ := catalog.Pick(e, "extensions", "held")
			return &catalog.Held{Outcome: text, Approval: cloud.ApprovalID(name), Body: body}
		}
	}
	return nil
}

// graphQLDone are the answers of those mutations of a document that were done,
// nil when there is none: they are done in turn, and one that is refused undoes
// none before it.
func graphQLDone(data any, errs []any) map[string]any {
	fields, _ := data.(map[string]any)
	for _, e := range errs {
		if done, ok := catalog.Pick(e, "extensions", "done"); ok {
			fields, _ = done.(map[string]any)
		}
	}
	maps.DeleteFunc(fields, func(_ string, v any) bool { return v == nil })
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// graphQLRefusal is the error of a mutation that was not done.
func graphQLRefusal(first any) *cloud.Error {
	code, _ := catalog.Pick(first, "extensions", "code")
	message, _ := catalog.Pick(first, "message")
	text, ok := code.(string)
	if !ok || text == "INTERNAL_ERROR" {
		return nil
	}
	return &cloud.Error{Kind: cloud.Conflict, Code: text, Members: map[string]any{"message": message}}
}
