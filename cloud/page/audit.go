package page

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
)

// auditPath is the page of the audit trail, which takes the address of the generated one.
const auditPath = ConsolePath + "/audit"

// auditFilters are the members of audit.list that the page filters by.
var auditFilters = []string{"actor", "action", "target", "from", "to"}

// auditPage is a part of the audit trail.
type auditPage struct {
	workFrame
	Values   map[string]string // of the filters, by name
	People   []choice
	Lines    []auditShown
	Total    string
	Filtered bool
	First    string // address of the first page; "" on it
	Next     string // address of the next page; "" on the last
	Export   string // address of all chosen lines as a file; "" where the visitor may not
}

// auditShown is a line of the trail.
type auditShown struct {
	At               *moment
	Actor, Who, Hour string // who did it, in words; address of what they did in the hour until then
	Action           string
	Target           shown
	Outcome          shown
	Face, IP         string
	Before, After    string // of what changed its state
	Facts            []fact
	Pass             bool // an operator of the platform did it by a pass
}

// audit shows who did what.
func (p drawnPages) audit(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.auditor(c, ctx, "audit.list")
	if !ok {
		return
	}
	page := auditPage{workFrame: p.work(ctx, v, v.T("noun.audit_line")), Values: map[string]string{}}
	in := auditGiven(ctx, auditFilters)
	for name, x := range in {
		page.Values[name], page.Filtered = x.(string), true
	}
	filters := changed(ctx, map[string]string{"cursor": "", "lang": "", "per_page": ""})
	page.Query = filters
	if cursor := string(ctx.QueryArgs().Peek("cursor")); cursor != "" {
		in["cursor"] = cursor
		page.First = auditPath + "?" + filters
	}
	if p.may(c, v, "audit.export") {
		page.Export = auditPath + "/export.csv?" + filters
	}
	refs := p.references(c, ctx, v)
	for _, x := range refs.choices("user_id") {
		x.Value = "account:" + x.Value
		x.Chosen = x.Value == page.Values["actor"]
		page.People = append(page.People, x)
	}
	out, err := run[account.AuditOutput](c, ctx, p.kit, v, "audit.list", in)
	if err != nil {
		problem, fields, known := p.explain(v.Lang, err)
		if !known {
			p.trouble(ctx, err)
			return
		}
		page.Problem = addFields(v.Lang, problem, fields)
	}
	for _, l := range out.Lines {
		page.Lines = append(page.Lines, p.auditLine(v.frame, refs, l))
	}
	if actor := page.Values["actor"]; actor != "" && !slices.ContainsFunc(page.People, func(x choice) bool { return x.Chosen }) {
		name := actor
		if len(page.Lines) > 0 {
			name = page.Lines[0].Who
		}
		page.People = append(page.People, choice{actor, name, true})
	}
	if out.NextCursor != nil {
		page.Next = auditPath + "?" + changed(ctx, map[string]string{"cursor": *out.NextCursor, "lang": ""})
	}
	total := strconv.Itoa(out.Total)
	if out.LowerBound {
		total += "+"
	}
	page.Total = v.T("work.total", total)
	p.show(ctx, fasthttp.StatusOK, "audit.html", page)
}

// auditor is a visitor who may call an operation of the trail.
func (p drawnPages) auditor(c context.Context, ctx *fasthttp.RequestCtx, operation string) (v visitor, ok bool) {
	if v, ok = p.worker(c, ctx); !ok {
		return v, false
	}
	if err := p.cfg.Pipeline.May(c, p.cfg.Catalog.Find(operation), v.c); err != nil {
		p.refused(ctx, v, err)
		return v, false
	}
	return v, true
}

// auditGiven are the filters of a request that have a value.
func auditGiven(ctx *fasthttp.RequestCtx, names []string) map[string]any {
	in := map[string]any{}
	for _, name := range names {
		if x := strings.TrimSpace(string(ctx.QueryArgs().Peek(name))); x != "" && len(x) <= maxField {
			in[name] = x
		}
	}
	return in
}

// exportAudit sends the chosen lines as a file.
func (p drawnPages) exportAudit(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.auditor(c, ctx, "audit.export")
	if !ok {
		return
	}
	a, err := p.answerTo(c, visitorCaller(p.kit, ctx, v), "audit.export", auditGiven(ctx, auditFilters), catalog.Key{})
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	file, ok := a.Body.(catalog.Stream)
	if !ok {
		p.missing(ctx)
		return
	}
	ctx.SetContentType(file.Type)
	for _, h := range a.Headers {
		ctx.Response.Header.Set(h[0], h[1])
	}
	ctx.SetBodyStream(file, int(file.Size))
}

// auditLine shows a line of the trail.
func (p drawnPages) auditLine(f frame, refs *references, l account.AuditLine) auditShown {
	out := auditShown{Actor: auditPath + "?" + url.Values{"actor": {l.Actor}}.Encode(), Who: actorName(f, l), Action: actionWords(p.cfg.Catalog, f.Lang, l.Action), IP: outside(l.IP, maxValue), Pass: l.PassID != nil}
	if l.Surface != "" {
		out.Face = f.V("value", l.Surface)
	}
	if l.At != nil {
		if t, err := time.Parse(time.RFC3339Nano, *l.At); err == nil {
			out.At = f.Time(t)
			out.Hour = auditPath + "?" + url.Values{"actor": {l.Actor}, "from": {t.Add(-time.Hour).Format(time.RFC3339)}, "to": {t.Add(time.Second).Format(time.RFC3339)}}.Encode()
		}
	}
	out.Target = p.target(f, refs.titleOf, l.Action, l.Target)
	if l.Outcome != "" {
		out.Outcome = stateShown(f, "outcome", l.Outcome)
		if l.Outcome != "done" {
			out.Outcome.Tone = "bad"
			if w := locale.Error(f.Lang, l.Outcome); strings.ToUpper(l.Outcome) == l.Outcome && !strings.Contains(w, "%") && w != locale.Error(f.Lang, "UNKNOWN") { // the code of an error
				out.Outcome.Text = w
			}
		}
	}
	kind := "value"
	if strings.HasPrefix(l.Target, "order:") {
		kind = "order"
	}
	before, after := plainText(jsonValue(l.Details["before"])), plainText(jsonValue(l.Details["after"]))
	if after != "" && after != before {
		out.Before, out.After = f.V(kind, before), f.V(kind, after)
		if before == "0" {
			out.Before = ""
		}
	}
	names := make([]string, 0, len(l.Details))
	for name := range l.Details {
		text := plainText(jsonValue(l.Details[name]))
		if name == "operation_type" || text != "" && strings.HasSuffix(l.Target, text) { // the action and the record say it
			continue
		}
		if after == "" || name != "before" && name != "after" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if s := refs.name(name, p.value(f, name, jsonValue(l.Details[name]), "")); s.Text != "" || s.At != nil {
			out.Facts = append(out.Facts, fact{memberWords(f.Lang, name), s})
		}
	}
	return out
}

// actorName is who did what a line says: by name, or the kind of those without one.
func actorName(f frame, l account.AuditLine) string {
	if l.ActorName != nil {
		return outside(*l.ActorName, maxValue)
	}
	if kind, id, _ := strings.Cut(l.Actor, ":"); f.V("value", kind) != kind { // recipient:543, system
		return strings.TrimSpace(f.V("value", kind) + " " + outside(id, maxValue))
	}
	return outside(l.Actor, maxValue)
}

// jsonValue is a value as an answer that was read has it.
func jsonValue(v any) any {
	o, err := asObject(map[string]any{"v": v})
	if err != nil {
		return nil
	}
	return o["v"]
}

// actionWords are an action of the trail in words: those of the operation, or else its
// own name.
func actionWords(c *catalog.Catalog, lang, action string) string {
	if c.Find(action) != nil {
		if w := label(lang, action); w != "verb."+action {
			return w
		}
	}
	if w := locale.Action(lang, action); w != "" {
		return w
	}
	w := words(strings.NewReplacer(".", " ", "-", " ").Replace(action))
	if w == "" {
		return ""
	}
	r, size := utf8.DecodeRuneInString(w)
	return string(unicode.ToUpper(r)) + w[size:]
}

// target is what an action of a line is about, order:8 or order_id=8, by its noun and with
// its page where it has one. What is called id alone is of the noun of the action. title
// is what a record is called.
func (p drawnPages) target(f frame, title func(*catalog.Noun, string) string, action, target string) shown {
	kind, id, ok := strings.Cut(target, ":")
	if !ok {
		if kind, id, ok = strings.Cut(target, "="); !ok {
			return shown{Text: outside(target, maxValue)}
		}
		kind = strings.TrimSuffix(kind, "_id")
	}
	n := p.cfg.Catalog.NounOf(kind + "_id")
	if n == nil {
		n = p.cfg.Catalog.Noun(locale.NounOf(kind))
	}
	if kind == "id" {
		if n = p.cfg.Catalog.NounWith(action); strings.HasPrefix(action, "third_party.deliveries.") { // a partner's
			n = p.cfg.Catalog.Noun("delivery")
		}
	}
	switch {
	case kind == "approval" && p.cfg.Approvals != nil:
		return shown{Text: locale.Thing(f.Lang, kind), To: approvalsPath + "/" + url.PathEscape(id)}
	case kind == "work_item":
		work, _, _ := cloud.ParseWorkID(id)
		return shown{Text: f.V("value", work), To: workPath + "/" + url.PathEscape(id)}
	case n != nil && id == "0":
		return shown{Text: f.T("noun." + n.Name)}
	case n != nil:
		return shown{Text: outside(f.T("noun."+n.Name+".one")+" "+title(n, id), maxValue), To: recordAddress(n, map[string]any{n.ID: id})}
	}
	return shown{Text: outside(capital(locale.Thing(f.Lang, kind))+" "+id, maxValue)}
}
