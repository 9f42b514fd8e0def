package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/mcp"
)

// call is one call of a tool.
type call struct {
	*session
	tool    *catalog.Tool
	call    *mcp.Call
	given   catalog.Given
	outcome string // preview, pending_approval, input_required; "" so far
	code    string // of what went wrong
}

// Outcomes of tools that write.
const (
	executed = "executed"
	preview  = catalog.OutcomePreview
	pending  = catalog.OutcomePending
)

// answer takes the steps in their order.
func (k *call) answer(ctx context.Context) (*mcp.Result, error) {
	if err := k.mayCall(); err != nil {
		return nil, err
	}
	if err := k.check(ctx); err != nil {
		return nil, err
	}
	if err := k.mutation(); err != nil {
		return nil, err
	}
	t, changes := k.tool, k.changes()
	confirmed := k.given.Bool("confirm", false)
	given := k.given.Without("confirm")
	switch {
	case k.dry && changes:
		k.outcome = preview
		p, err := k.preview(ctx, given)
		if err != nil {
			return nil, err
		}
		return k.result(p.body(k.caller))
	case k.waits() && changes && t.Writes() && !slices.Contains(deciding, t.Name):
		k.outcome = pending
		body, err := k.propose(ctx, t, given, "", 0)
		if err != nil {
			return nil, err
		}
		return k.result(body)
	}
	via := k.via()
	var once string
	if t.Confirm && !confirmed {
		asked, marks, err := k.askPerson(ctx, given)
		if asked != nil || err != nil {
			return asked, err
		}
		via.Consent, once = "question", questionOnce(k.call.Nonce)
		if !slices.Contains(deciding, t.Name) { // a decision is written besides, and holds the call to its own marks
			ctx = cloud.WithExpected(ctx, marks.Expect())
		}
	} else if t.Confirm {
		via.Consent = "argument"
	}
	r := &running{session: k.session, tool: t, via: via, once: once}
	out, err := r.runOperation(ctx, given)
	var held *catalog.Held
	if errors.As(err, &held) {
		k.outcome = held.Outcome
		return k.result(held.Body)
	}
	if err != nil {
		return nil, err
	}
	if once != "" && r.replayed { // the answer was used before
		return nil, k.stale()
	}
	return k.result(out)
}

// questionOnce makes the writes that a person agreed to happen at most once.
func questionOnce(nonce string) string { return "question/" + nonce }

// waits reports whether the call waits for a person: by the connection's header,
// by the policy of its key, or because the tool asks a person and the client puts
// no questions.
func (k *call) waits() bool {
	_, risk := k.needs(k.tool, k.given)
	if k.tool.Asks && !k.call.CanAsk {
		return true
	}
	return k.approval || k.token.Policy.Waits(k.tool.Confirm || risk == catalog.RiskHigh)
}

// deciding are the tools that decide about what waits: they never wait.
var deciding = []string{"approve_pending_write", "reject_pending_write"}

func (k *call) via() cloud.Via {
	return cloud.Via{Server: k.server, Tool: k.tool.Name, Token: k.token.Name}
}

// mayCall checks token, limit, scopes and account type.
func (k *call) mayCall() error {
	t, lang := k.tool, k.caller.Language
	if !t.Public() && k.caller.Anonymous() {
		if _, ok := k.tokenGiven(k.call.Request); ok {
			return cloud.E(cloud.Invalid, "API_TOKEN_ARGUMENT_REMOVED")
		}
		return &mcp.Error{Status: 401, Code: 401, Message: locale.Error(lang, "UNAUTHENTICATED"), Data: map[string]any{"code": "UNAUTHENTICATED"},
			Headers: [][2]string{{"WWW-Authenticate", k.challenge("", strings.Join(t.Scopes, " "))}}}
	}
	who := "ip/" + k.who.IP
	if !k.caller.Anonymous() {
		who = fmt.Sprintf("account/%d", k.caller.Account.ID)
	}
	if st := k.cfg.Pipeline.Take("tool/"+t.Name+"/"+who, k.cfg.PerMinute); !st.OK {
		return &cloud.Error{Kind: cloud.Limited, Code: "RATE_LIMITED", RetryAfter: st.RetryAfter}
	}
	if s := k.missingScope(t, k.ceiling); s != "" {
		if k.token.Grant != 0 {
			return &mcp.Error{Status: 403, Code: 403, Message: locale.Error(lang, "SCOPE_REQUIRED", t.Name, s), Data: map[string]any{"code": "SCOPE_REQUIRED"},
				Headers: [][2]string{{"WWW-Authenticate", k.challenge(`error="insufficient_scope"`, strings.Join(t.Scopes, " "))}}}
		}
		return required("SCOPE_REQUIRED", locale.Error(lang, "SCOPE_REQUIRED", t.Name, s), map[string]any{"scope": s})
	}
	if s := k.missingScope(t, k.caller.Scopes); s != "" {
		value := k.profile
		if k.narrowed == "X-MCP-Scopes" {
			value = strings.Join(k.caller.Scopes, ",")
		}
		return required("SCOPE_REQUIRED", locale.Word(lang, "tool.narrowed", t.Name, s, value, k.narrowed), map[string]any{"scope": s, "header": k.narrowed})
	}
	if t.Types != nil && !slices.Contains(t.Types, k.caller.Account.Type) {
		types := make([]string, len(t.Types))
		for i, x := range t.Types {
			types[i] = string(x)
		}
		return required("ACCOUNT_TYPE_NOT_ALLOWED", locale.Word(lang, "tool.types", t.Name, strings.Join(types, ", "), string(k.caller.Account.Type)), map[string]any{"account_types": types})
	}
	return nil
}

// required is a refusal with a message of its own.
func required(code, message string, details map[string]any) error {
	return &cloud.Error{Kind: cloud.Forbidden, Code: code, Details: details, Members: map[string]any{"message": message}}
}

// check reads the arguments.
func (k *call) check(ctx context.Context) error {
	raw := k.call.Arguments
	if k.argument {
		raw = without(raw, tokenArgument)
	}
	var problems []catalog.Problem
	if k.given, problems = k.tool.Check(raw, k.call.Repeated); len(problems) > 0 {
		return k.wrong(ctx, problems)
	}
	return nil
}

// maxProblems bounds what one answer says is wrong.
const maxProblems = 50

// wrong says what is wrong with arguments, each in a sentence.
func (u *session) wrong(ctx context.Context, problems []catalog.Problem) error {
	var lines []string
	for i, p := range problems {
		if i == maxProblems {
			lines = append(lines, locale.Word(u.caller.Language, "errors.more", strconv.Itoa(i), strconv.Itoa(len(problems)-i)))
			break
		}
		if cloud.IsSecretName(p.Argument) && p.Got != "" {
			p.Got = cloud.Masked
		}
		text := locale.Word(u.caller.Language, "tool.wrong."+p.Rule, p.Argument, p.Got, p.Want)
		switch p.Rule {
		case "date":
			today := u.Today(ctx)
			text += " " + locale.Word(u.caller.Language, "tool.today", today, today)
		case "unknown":
			if p.Want != "" {
				text += " " + locale.Word(u.caller.Language, "tool.nearest", p.Want)
			}
		}
		lines = append(lines, text)
	}
	return &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Members: map[string]any{"message": strings.Join(lines, " ")}}
}

// without is a JSON object less one member.
func without(raw json.RawMessage, name string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return raw
	}
	delete(all, name)
	return compact(all)
}

// loggedArguments are arguments whose texts name things, for logs.
var loggedArguments = []string{"type", "status", "format", "mode", "order_ref", "tracking_number", "approval_id", "async_id", "tool", "sort", "date", "scheduled_date"}

// loggedText is how many characters of a value a log has.
const loggedText = 64

// masked are arguments as logs have them: those of the tool, with the values of
// numbers, switches and names of things, where they are what the tool takes. What
// follows a question mark could be the secret of a link.
func masked(t *catalog.Tool, g catalog.Given) map[string]any {
	out := map[string]any{}
	for _, a := range t.Arguments {
		v, ok := g[a.Name]
		if !ok {
			continue
		}
		out[a.Name] = "…"
		switch v := v.(type) {
		case bool:
			out[a.Name] = v
		case json.Number:
			if (a.Kind == "integer" || a.Kind == "number") && len(v) <= loggedText && !cloud.IsSecretName(a.Name) {
				out[a.Name] = v
			}
		case string:
			if slices.Contains(loggedArguments, a.Name) {
				v, _, _ = strings.Cut(v, "?")
				if r := []rune(v); len(r) > loggedText {
					v = string(r[:loggedText]) + "…"
				}
				out[a.Name] = v
			}
		}
	}
	return out
}
