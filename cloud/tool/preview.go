package tool

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
)

// foreseen is what a call would do.
type foreseen struct {
	tool     *catalog.Tool
	writes   []write
	given    catalog.Given // the arguments as they are done: orders by their ids
	effects  []cloud.Effect
	marks    cloud.Marks  // of effects
	refused  *cloud.Error // why it would not be done, nil when it would
	warnings []string
	key      []byte // of digests
}

// digest is that of the marks.
func (f foreseen) digest() string { return f.marks.Digest(f.key) }

// previewBody is a foreseen call as agents and reviewers see it (mcp-ai 4).
type previewBody struct {
	Result      bool     `json:"result"`
	Outcome     string   `json:"outcome"`
	Tool        string   `json:"tool"`
	Risk        string   `json:"risk"`
	Confirm     bool     `json:"confirm_required"`
	WouldChange change   `json:"would_change"`
	Checks      []check  `json:"checks"`
	Warnings    []string `json:"warnings"`
	Digest      string   `json:"digest"` // of what would change: ids, versions, before and after
}

type change struct {
	Method   string         `json:"method"`
	Path     string         `json:"path"`
	Body     any            `json:"body"`
	Affected []cloud.Effect `json:"affected"`
}

type check struct {
	Check   string  `json:"check"`
	OK      bool    `json:"ok"`
	Message *string `json:"message"`
}

// foresee runs a tool of which nothing is written. A call that is refused for a reason
// that the caller can read is no error.
func (u *session) foresee(ctx context.Context, t *catalog.Tool, given catalog.Given) (foreseen, error) {
	p := &cloud.Preview{}
	r := &running{session: u, tool: t, via: cloud.Via{Server: u.server, Tool: t.Name, Token: u.token.Name}}
	ctx = cloud.WithPreview(ctx, p)
	given, err := r.named(ctx, given)
	if err == nil {
		_, err = r.runOperation(ctx, given)
	}
	f := foreseen{tool: t, given: given, writes: r.writes, effects: p.Effects(), marks: p.Marks(), warnings: r.warnings, key: u.cfg.DigestKey}
	if err != nil && (!errors.As(err, &f.refused) || f.refused.Kind == cloud.Internal) {
		return f, err
	}
	return f, nil
}

func (k *call) preview(ctx context.Context, given catalog.Given) (foreseen, error) {
	switch k.tool.Name {
	case "propose_write":
		t, arguments, err := k.proposed(ctx, given)
		if err != nil {
			return foreseen{}, err
		}
		scopes, _ := k.needs(t, arguments)
		f, err := k.as(scopes).foresee(ctx, t, arguments)
		if !k.reads(scopes) {
			f = foreseen{key: k.cfg.DigestKey}
		}
		f.tool = k.tool
		return f, err
	case "approve_pending_write":
		a, err := k.cfg.Approvals.Find(ctx, k.caller, cloud.ApprovalID(given.Text("approval_id")))
		if err != nil {
			return foreseen{}, err
		}
		f, err := k.approving(ctx, k.caller, a)
		f.tool = k.tool
		return f, err
	}
	return k.foresee(ctx, k.tool, given)
}

// body is the preview as a caller may see it, in its language.
func (f foreseen) body(c cloud.Caller) previewBody {
	f.effects = cloud.EffectsFor(c, f.effects)
	return f.whole(c.Language)
}

// whole is the preview in a language, with prices. Checks are named after the step
// that they stand for; one that fails has the code of the refusal.
func (f foreseen) whole(lang string) previewBody {
	out := previewBody{Result: true, Outcome: preview, Tool: f.tool.Name, Risk: string(f.tool.Risk), Confirm: f.tool.Confirm, Warnings: append([]string{}, f.warnings...), Digest: f.digest(),
		WouldChange: change{Affected: append([]cloud.Effect{}, f.effects...)}}
	if n := len(f.writes); n > 0 {
		w := f.writes[n-1]
		out.WouldChange.Method, out.WouldChange.Path, out.WouldChange.Body = w.operation.Method, addressed(w.operation, w.values), w.body()
	}
	out.Checks = []check{{Check: "arguments_valid", OK: true}, {Check: "caller_may", OK: true}}
	if f.refused != nil {
		text := locale.Error(lang, f.refused.Code, f.refused.Args...)
		out.Checks = append(out.Checks, check{strings.ToLower(f.refused.Code), false, &text})
		for name, list := range f.refused.Fields {
			for _, m := range list {
				out.Warnings = append(out.Warnings, name+": "+locale.Field(lang, m))
			}
		}
		slices.Sort(out.Warnings)
		return out
	}
	out.Checks = append(out.Checks, check{Check: "state_allows", OK: true})
	if len(f.effects) == 0 {
		out.Warnings = append(out.Warnings, locale.Word(lang, "tool.nothing"))
	}
	return out
}

// body is what the operation would be sent, without what its address says and
// without secrets.
func (w write) body() any {
	out := map[string]any{}
	for _, m := range w.operation.Members() {
		if v, ok := w.values[m.Name]; ok && m.Place == "" {
			out[m.Name] = v
		}
	}
	return cloud.MaskSecrets(out)
}

// subject is what a call is about, as people call it in a language: what others wrote is in
// quotes. Of an exception it says what is proposed, and what the cabinet does then.
func (f foreseen) subject(lang string) string {
	var parts []string
	for _, e := range f.effects {
		if action, ok := e.After["resolution"].(string); ok && e.Type == "exception" && strings.HasPrefix(f.tool.Operation, "device_order_exceptions.") {
			return locale.Resolution(lang, e.Name, e.Kind, action)
		}
	}
	for _, e := range f.effects[:min(len(f.effects), 3)] {
		name := e.Name
		if name == "" {
			name = strings.ReplaceAll(e.Type, "_", " ")
		}
		parts = append(parts, name)
	}
	if n := len(f.effects); n > 3 {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ", ")
}
