package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/mcp"
)

// propose queues a call of a tool for a person to decide about. The change that would be
// refused now is refused now.
func (u *session) propose(ctx context.Context, t *catalog.Tool, given catalog.Given, reason string, hours int) (pendingBody, error) {
	scopes, risk := u.needs(t, given)
	f, err := u.as(scopes).foresee(ctx, t, given)
	if err != nil {
		return pendingBody{}, err
	}
	if f.refused != nil && u.reads(scopes) { // others do not learn it
		return pendingBody{}, f.refused
	}
	summary := t.Title
	if s := f.subject(u.caller.Language); s != "" {
		summary += ": " + s
	}
	id, body, err := u.cfg.Approvals.Propose(ctx, u.caller, cloud.Approval{Server: u.server, Tool: t.Name, Arguments: compact(f.given), Summary: summary, Preview: compact(f.whole(u.caller.Language)), Marks: f.marks,
		Reason: reason, Risk: string(risk), Scopes: scopes, TokenName: u.token.Name, Token: u.source(), OwnerDecides: u.token.Policy.Asks()}, hours)
	return pendingBody{true, pending, id, body}, err
}

// source is which key, grant, login or pass asks.
func (u *session) source() string {
	if u.caller.Pass != 0 {
		return cloud.PassSource(u.caller.Pass)
	}
	return u.token.Source()
}

// needs are the scopes and the risk of a call: those of its tool, and for a
// GraphQL document also those of what it changes.
func (s *Service) needs(t *catalog.Tool, given catalog.Given) ([]string, catalog.Risk) {
	scopes, risk := slices.Clone(t.Scopes), t.Risk
	if t.Name == graphQLTool {
		for _, o := range s.cfg.GraphQL.Mutated(given.Text("query"), given.Text("operation_name")) {
			scopes = append(scopes, o.Scopes...)
			if o.Risk == catalog.RiskHigh {
				risk = o.Risk
			}
		}
		slices.Sort(scopes)
	}
	return slices.Compact(scopes), risk
}

// reads reports whether the caller's own scopes read what some scopes change.
func (u *session) reads(scopes []string) bool {
	return catalog.Holds(u.caller, cloud.ReadScopes(scopes))
}

// as is the session with the scopes of a call: proposing does not need them.
func (u *session) as(scopes []string) *session {
	other := *u
	if other.caller.Scopes != nil {
		other.caller.Scopes = append([]string{}, scopes...)
	}
	return &other
}

// Hold is Config.Hold of the pipeline: it tries a call that came by REST or
// GraphQL, or with queue asks a person to decide about it. The same call that
// waits already is not asked about twice.
func (s *Service) Hold(ctx context.Context, o *catalog.Operation, c cloud.Caller, given map[string]any, queue bool) (*catalog.Held, error) {
	u := &session{Service: s, server: catalog.APIServer, caller: c, entered: ctx, who: catalog.Who{Language: c.Language, BaseURL: c.BaseURL, PublicURL: c.PublicURL, Surface: c.Surface, IP: catalog.AddressOf(ctx)}}
	u.token, _ = catalog.TokenOf(ctx)
	if call := cloud.CallOf(ctx); call != nil {
		u.who.RequestID = call.RequestID
	}
	ctx = catalog.Admitted(ctx, c)
	if !queue {
		f, err := u.foresee(ctx, o.Call(), given)
		return &catalog.Held{Outcome: preview, Body: f.body(c)}, err
	}
	body, err := u.propose(ctx, o.Call(), given, "", 0)
	return &catalog.Held{Outcome: pending, Approval: body.ID, Body: body}, err
}

// pendingBody is the answer to a call that waits.
type pendingBody struct {
	Result   bool             `json:"result"`
	Outcome  string           `json:"outcome"`
	ID       cloud.ApprovalID `json:"approval_id"`
	Approval any              `json:"approval"`
}

// proposed is the call that propose_write is asked to queue.
func (u *session) proposed(ctx context.Context, given catalog.Given) (*catalog.Tool, catalog.Given, error) {
	name := given.Text("tool")
	t := u.cfg.Catalog.Tool(u.server, name)
	if t == nil || !t.Writes() || slices.Contains(deciding, name) {
		var names []string
		for _, x := range u.cfg.Catalog.Tools(u.server) {
			if x.Writes() && !slices.Contains(deciding, x.Name) {
				names = append(names, x.Name)
			}
		}
		return nil, nil, u.wrong(ctx, []catalog.Problem{{Argument: "tool", Rule: "enum", Got: name, Want: strings.Join(names, ", ")}})
	}
	if t.Types != nil && !slices.Contains(t.Types, u.caller.Account.Type) {
		return nil, nil, cloud.E(cloud.Forbidden, "ACCOUNT_TYPE_NOT_ALLOWED")
	}
	raw := compact(given["arguments"])
	arguments, problems := t.Check(raw, "")
	if len(problems) > 0 {
		return nil, nil, u.wrong(ctx, problems)
	}
	return t, catalog.Given(arguments).Without("confirm"), nil
}

// Foreseen is what an approved call would do now.
type Foreseen struct {
	Preview json.RawMessage
	Marks   cloud.Marks // of its effects
	Refused bool        // it would be refused, as Preview says
}

// Foresee says what an approved call would do now. The error is a *cloud.Error
// when its requester may not call the tool any more.
func (s *Service) Foresee(ctx context.Context, reviewer cloud.Caller, a cloud.Approval) (Foreseen, error) {
	f, err := s.approving(ctx, reviewer, a)
	if err != nil {
		return Foreseen{}, err
	}
	return Foreseen{compact(f.body(reviewer)), f.marks, f.refused != nil}, nil
}

// Approved does an approved call, now, as its requester, with the reviewer in
// the audit, and nothing else than what Approval.Marks stand for. For one
// approval it is done at most once: called again, it gives the first answer. The
// error is a *cloud.Error when the tool refuses, APPROVAL_CHANGED when it would
// do something else.
func (s *Service) Approved(ctx context.Context, reviewer cloud.Caller, a cloud.Approval) (json.RawMessage, error) {
	u, t, given, err := s.requester(ctx, reviewer, a)
	if err != nil {
		return nil, err
	}
	r := &running{session: u, tool: t, once: "approval/" + string(a.ID),
		via: cloud.Via{Server: a.Server, Tool: a.Tool, Token: a.TokenName, Consent: "approval", Approval: a.ID, Reviewer: reviewer.Account.ID}}
	out, err := r.runOperation(cloud.WithExpected(ctx, a.Marks.Expect()), given)
	if err != nil {
		return nil, err
	}
	return bounded(with(compact(out), `"outcome":"`+executed+`"`), reviewer.Language)
}

// approving foresees what approving a call would do.
func (s *Service) approving(ctx context.Context, reviewer cloud.Caller, a cloud.Approval) (foreseen, error) {
	u, t, given, err := s.requester(ctx, reviewer, a)
	if err != nil {
		return foreseen{}, err
	}
	return u.foresee(ctx, t, given)
}

// requester is the session of who asked for a call that another account decides
// about, with the call itself. It has the scopes of the approval, which the
// reviewer holds.
func (s *Service) requester(ctx context.Context, reviewer cloud.Caller, a cloud.Approval) (*session, *catalog.Tool, catalog.Given, error) {
	t := s.tool(a)
	if t == nil {
		return nil, nil, nil, cloud.E(cloud.Conflict, "TOOL_NOT_FOUND", a.Tool)
	}
	surface := "mcp"
	if a.Server == catalog.APIServer {
		surface = "api"
	}
	u := &session{Service: s, server: a.Server, token: cloud.Token{Name: a.TokenName}, entered: ctx,
		caller: cloud.Caller{Language: reviewer.Language, BaseURL: reviewer.BaseURL, PublicURL: reviewer.PublicURL, Surface: surface, Scopes: append([]string{}, a.Scopes...)}}
	u.who = catalog.Who{Language: reviewer.Language, BaseURL: reviewer.BaseURL, PublicURL: reviewer.PublicURL, Surface: surface, IP: catalog.AddressOf(ctx)}
	if call := cloud.CallOf(ctx); call != nil {
		u.who.RequestID = call.RequestID
	}
	err := s.cfg.Store.Look(ctx, func(v cloud.View) error {
		var err error
		if u.caller.Account, err = a.Requester(v, time.Now()); err != nil {
			return err
		}
		u.caller.Pass = a.Pass()
		if id := u.caller.Account.ProviderID; id != 0 {
			u.caller.Provider, err = v.Provider(id)
		}
		return err
	})
	switch {
	case errors.Is(err, cloud.ErrNotFound), err == nil && (!u.caller.Account.Enabled || u.caller.Account.BusinessID != a.BusinessID):
		return nil, nil, nil, cloud.E(cloud.Forbidden, "ACCOUNT_DISABLED")
	case err != nil:
		return nil, nil, nil, err
	case t.Types != nil && !slices.Contains(t.Types, u.caller.Account.Type):
		return nil, nil, nil, cloud.E(cloud.Forbidden, "ACCOUNT_TYPE_NOT_ALLOWED")
	}
	if a.Server == catalog.APIServer { // the operation checks its input
		given, err := readObject(a.Arguments)
		return u, t, given, err
	}
	given, problems := t.Check(a.Arguments, "")
	if len(problems) > 0 {
		return nil, nil, nil, u.wrong(ctx, problems)
	}
	return u, t, catalog.Given(given).Without("confirm"), nil
}

// tool is what an approval calls, nil when it is not there any more.
func (s *Service) tool(a cloud.Approval) *catalog.Tool {
	if a.Server != catalog.APIServer {
		return s.cfg.Catalog.Tool(a.Server, a.Tool)
	}
	if o := s.cfg.Catalog.Find(a.Tool); o != nil {
		return o.Call()
	}
	return nil
}

// readObject reads an object with its numbers as they are written.
func readObject(raw json.RawMessage) (out catalog.Given, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&out)
	return out, err
}

// askPerson puts a call to a person, where the client can, or refuses it with what it
// would do. Without a result and an error the person agreed, to what the marks
// stand for.
func (k *call) askPerson(ctx context.Context, given catalog.Given) (*mcp.Result, cloud.Marks, error) {
	f, err := k.preview(ctx, given)
	if err != nil {
		return nil, nil, err
	}
	if k.call.CanAsk && k.call.Answers != nil {
		agreed, err := k.agreed()
		if err != nil {
			return nil, nil, err
		}
		if agreed {
			marks, err := k.unchanged(ctx, f)
			return nil, marks, err
		}
	}
	if f.refused != nil {
		return nil, nil, f.refused
	}
	lang := k.caller.Language
	what := locale.Word(lang, "tool.ask."+k.tool.Name, f.subject(lang))
	if k.tool.Asks {
		what = locale.Word(lang, "tool.question", k.tool.Title, f.subject(lang), cmp.Or(k.given.Text("reason"), "–"))
		if k.tool.Risk == catalog.RiskHigh {
			what += " " + locale.Word(lang, "tool.final")
		}
	}
	if !k.call.CanAsk {
		return nil, nil, &cloud.Error{Kind: cloud.Conflict, Code: "CONFIRMATION_REQUIRED", Details: map[string]any{"affected": cloud.EffectsFor(k.caller, f.effects), "digest": f.digest()},
			Members: map[string]any{"message": locale.Error(lang, "CONFIRMATION_REQUIRED", k.tool.Name, what)}}
	}
	k.outcome = "input_required"
	form := map[string]any{"type": "object", "properties": map[string]any{"confirm": map[string]any{"type": "boolean", "title": k.tool.Title}}, "required": []string{"confirm"}}
	return &mcp.Result{State: []byte(f.digest()), Ask: map[string]mcp.Question{
		"confirm": {Method: "elicitation/create", Params: map[string]any{"mode": "form", "message": what, "requestedSchema": form}}}}, nil, nil
}

// agreed reads the client's answer to the question: false when there is none
// that can be read. A refusal is an error.
func (k *call) agreed() (bool, error) {
	if k.call.State == nil {
		return false, k.stale()
	}
	var answer struct {
		Action  string `json:"action"`
		Content struct {
			Confirm *bool `json:"confirm"`
		} `json:"content"`
	}
	if json.Unmarshal(k.call.Answers["confirm"], &answer) != nil {
		return false, nil
	}
	switch yes := answer.Content.Confirm; {
	case answer.Action == "accept" && yes != nil && *yes:
		return true, nil
	case answer.Action == "accept" && yes != nil, answer.Action == "decline", answer.Action == "cancel":
		return false, cloud.E(cloud.Conflict, "CONFIRMATION_DECLINED", k.tool.Name)
	}
	return false, nil
}

// unchanged is the marks of a call that would do what the question said. One
// that would do something else is refused with what that is.
func (k *call) unchanged(ctx context.Context, f foreseen) (cloud.Marks, error) {
	if f.refused == nil && f.digest() == string(k.call.State) {
		return f.marks, nil
	}
	if used, err := k.cfg.Pipeline.Used(ctx, k.caller, onceKey(questionOnce(k.call.Nonce), 1, nil)); used || err != nil {
		return nil, cmp.Or(err, k.stale())
	}
	return nil, &cloud.Error{Kind: cloud.Conflict, Code: "APPROVAL_CHANGED", Details: map[string]any{"digest": f.digest(), "preview": f.body(k.caller)}}
}

func (u *session) stale() error {
	return &mcp.Error{Code: -32602, Message: locale.Word(u.caller.Language, "tool.stale")}
}
