// Package tool runs the tools of the catalogue for agents: it finds who calls
// and what the connection is narrowed to, and takes every call through the same
// steps: token, scopes, account type, arguments, dry run, approval, confirmation,
// execution, audit (mcp-ai 4, mcp-wire 8.1). A tool acts by
// operations of the catalogue, through their pipeline, as the caller.
//
// A dry run is the operation itself, of whose decisions nothing is written. A
// call that waits for approval is run later, at most once, in the name of who
// asked for it. The wire is that of cloud/mcp. Safe for concurrent use.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/mcp"
)

// Store is what this package reads of the database itself.
type Store interface {
	Look(ctx context.Context, fn func(cloud.View) error) error
}

// Approvals keeps writes that wait for a person's word.
type Approvals interface {
	// Propose queues a write for so many hours, 0 for the usual time, and gives
	// its id and how answers show it.
	Propose(ctx context.Context, c cloud.Caller, a cloud.Approval, hours int) (cloud.ApprovalID, any, error)
	// Find finds one of the caller's business.
	Find(ctx context.Context, c cloud.Caller, id cloud.ApprovalID) (cloud.Approval, error)
}

// GraphQL runs documents.
type GraphQL interface {
	// Mutated are the operations that a document may change something by.
	Mutated(query, name string) []*catalog.Operation
	// Run runs a request body as the caller that ctx admits. Operations that take
	// or give credentials are refused with NOT_FOR_TOOLS. A key makes repeats
	// of its mutations give their first answers; replayed says that one did.
	Run(ctx context.Context, body []byte, key string, w catalog.Who) (answer []byte, replayed bool)
}

// Config is what New needs.
type Config struct {
	Catalog   *catalog.Catalog
	Pipeline  *catalog.Pipeline
	Store     Store
	Approvals Approvals
	GraphQL   GraphQL      // nil: there is no tool for it
	DigestKey []byte       // of digests of previews (cloud.Marks): the same as approvals have
	Log       *slog.Logger // nil: nothing is logged
	// PerMinute is how often one caller may call one tool; 0 is 120, negative
	// unbounded.
	PerMinute int
}

// Service runs tools.
type Service struct {
	cfg Config
}

// New builds the service and adds the tools that are about tools to the
// catalogue.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.PerMinute == 0 {
		cfg.PerMinute = 120
	}
	s := &Service{cfg: cfg}
	cfg.Catalog.AddTools(s.own()...)
	return s
}

// callTime bounds one call.
const callTime = 60 * time.Second

// Tools are the tools of a server for cloud/mcp.
func (s *Service) Tools(server string) []mcp.Tool {
	var out []mcp.Tool
	for _, t := range s.cfg.Catalog.Tools(server) {
		out = append(out, mcp.Tool{Name: t.Name, Title: t.Title, Description: described(t), Input: t.Input(), Output: t.Output(), Annotations: Hints(t),
			Run: func(ctx context.Context, c *mcp.Call) (*mcp.Result, error) { return s.run(ctx, t, c) }})
	}
	return out
}

// described is a tool's description with the arguments of which one is needed.
func described(t *catalog.Tool) string {
	if len(t.OneOf) == 0 {
		return t.Description
	}
	var groups []string
	for _, g := range t.OneOf {
		groups = append(groups, strings.Join(g, " + "))
	}
	return t.Description + " Give at least one of: " + strings.Join(groups, ", ") + "."
}

// Hints says what a tool may do, by its risk and effect (mcp-wire 13).
func Hints(t *catalog.Tool) mcp.Annotations {
	a := mcp.Annotations{Destructive: true, OpenWorld: t.Outside}
	switch {
	case t.Risk == catalog.RiskLow && t.Effect == catalog.Usual:
		a.ReadOnly, a.Destructive, a.Idempotent = true, false, true
	case t.Effect == catalog.Creates:
		a.Destructive = false
	case t.Effect == catalog.Overwrites:
		a.Idempotent = true
	}
	return a
}

// run takes one call from beginning to end and leaves a line about it.
func (s *Service) run(ctx context.Context, t *catalog.Tool, c *mcp.Call) (*mcp.Result, error) {
	u, ok := c.Caller.Value.(*session)
	if !ok {
		return nil, errors.New("tool: the call has no session")
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(u.in(ctx), callTime)
	defer cancel()
	k := &call{session: u, tool: t, call: c}
	out, err := k.answer(ctx)
	outcome := k.outcome
	switch {
	case err != nil:
		if out, err = k.refuse(err); err == nil {
			outcome = k.code
		}
	case outcome == "":
		outcome = "executed"
	}
	s.cfg.Log.Info("tool called", "server", u.server, "tool", t.Name, "account", u.caller.Account.ID, "token", u.token.Name, "client", c.Request.Client,
		"arguments", masked(t, k.given), "outcome", outcome, "took", time.Since(began).Round(time.Microsecond), "request_id", u.who.RequestID)
	return out, err
}

// refuse makes of an error what the model reads. Errors of ours, and those that
// are the transport's, stay errors.
func (k *call) refuse(err error) (*mcp.Result, error) {
	var wire *mcp.Error
	var shown *cloud.Error
	if errors.As(err, &wire) {
		k.code = fmt.Sprint(wire.Code)
		return nil, err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		shown = &cloud.Error{Kind: cloud.Timeout, Code: "TOOL_TIMEOUT", Args: []any{k.tool.Name}}
	} else if shown, _ = cloud.Answered(err); shown.Kind == cloud.Internal {
		k.code = "INTERNAL_ERROR"
		return nil, err
	}
	k.code = shown.Code
	return &mcp.Result{IsError: true, Content: []mcp.Content{{"type": "text", "text": string(k.errorBody(shown))}}}, nil
}

// failure is an error as tools tell it.
type failure struct {
	Result     bool                `json:"result"`
	Code       string              `json:"code"`
	Message    string              `json:"message"`
	Errors     map[string][]string `json:"errors,omitempty"`
	Details    map[string]any      `json:"details,omitempty"`
	RetryAfter int                 `json:"retry_after,omitempty"`
}

const maxFaults = 5 // members of which faults are named at once

// errorBody says what went wrong and what to do next. Messages are of ours;
// what others wrote is only in details.
func (k *call) errorBody(e *cloud.Error) []byte {
	lang := k.caller.Language
	f := failure{Code: e.Code, Message: locale.Error(lang, e.Code, e.Args...), Details: e.Details, RetryAfter: e.RetryAfter}
	if text, ok := e.Members["message"].(string); ok {
		f.Message = text
	}
	var fields []string
	for name := range e.Fields {
		fields = append(fields, name)
	}
	slices.Sort(fields)
	for _, name := range fields[:min(len(fields), maxFaults)] {
		if f.Errors == nil {
			f.Errors = map[string][]string{}
		}
		for _, m := range e.Fields[name] {
			f.Errors[name] = append(f.Errors[name], locale.Field(lang, m))
		}
	}
	if next := hint(e.Code); next != "" && k.session.sees(next) {
		f.Message += " " + locale.Word(lang, "tool.next", next)
	}
	return compact(f)
}

// hint is the tool that helps where a code says that something is not there.
func hint(code string) string {
	switch code {
	case "ORDER_NOT_FOUND", "AMBIGUOUS_ORDER_REF", "TRACKING_NOT_FOUND":
		return "find_order"
	case "ROUTE_NOT_FOUND":
		return "get_routes"
	case "DRIVER_NOT_FOUND":
		return "get_drivers"
	case "APPROVAL_NOT_FOUND", "APPROVAL_ALREADY_DECIDED":
		return "list_pending_approvals"
	case "WEBHOOK_DELIVERY_NOT_FOUND":
		return "get_webhook_delivery_logs"
	}
	return ""
}

// compact is v as JSON with nothing escaped for HTML.
func compact(v any) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte(`{"result":false,"code":"INTERNAL_ERROR"}`)
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}
