package page

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// nounForm is the page of an operation: its form, then what it would change.
type nounForm struct {
	workFrame
	Heading, About string // what is done, to which record
	Back           string // address to return to
	Action         string
	Summary        string
	Fields         []formField
	Was            string // the values that the form began with, as JSON by path
	Key            string
	Risk           string
	Submit         string
	Step           string // form, preview, result
	// Of a preview: what the operation would change, with the digest that it is held to.
	Things  []thing
	Edits   bool   // it is about the record alone: without things nothing changes
	Besides string // kinds of things that change and of which nothing is shown
	Digest  string
	Type    string // what a person types to confirm; "" for nothing
	Typed   string // problem of it
	Hidden  []pair // the values of the form
	Given   []leaf // those that were filled in
	Result  []leaf
	Once    bool          // the result is shown once
	QR      template.HTML // of the result: its member qr as a QR code
	// What someone else changed while the form was open, where the person changed it
	// too.
	Clashes []clash
}

type pair struct{ Name, Value string }

// showVerb shows the form of an operation about a record.
func (p nounPages) showVerb(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, n, ok := p.nounAt(c, ctx)
	if !ok {
		return
	}
	id, _ := ctx.UserValue("id").(string)
	verb, _ := ctx.UserValue("verb").(string)
	o := p.verbOf(n, verb)
	if o == "" {
		p.missing(ctx)
		return
	}
	p.form(c, ctx, v, n, o, unescape(id), nil)
}

// runVerb takes a form of an operation: it shows what the operation would change, or
// runs it.
func (p nounPages) runVerb(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, n, ok := p.nounAt(c, ctx)
	if !ok {
		return
	}
	id, _ := ctx.UserValue("id").(string)
	verb, _ := ctx.UserValue("verb").(string)
	o := ""
	switch {
	case verb != "":
		o, id = p.verbOf(n, verb), unescape(id)
	case n.List == "":
		o, id = p.verbOf(n, id), ""
	case id == "new":
		o, id = n.Create, ""
	}
	if o == "" {
		p.missing(ctx)
		return
	}
	if !ownForm(ctx, &forStaff) {
		p.form(c, ctx, v, n, o, id, cloud.E(cloud.Forbidden, "FORBIDDEN"))
		return
	}
	if ctx.PostArgs().Has("undo") {
		p.undo(c, ctx, v, n, o, id)
		return
	}
	p.form(c, ctx, v, n, o, id, nil)
}

// form is a request about an operation, whether it asks for the form or sends it.
func (p nounPages) form(c context.Context, ctx *fasthttp.RequestCtx, v visitor, n *catalog.Noun, operation, id string, problem error) {
	o := p.cfg.Catalog.Find(operation)
	denied := p.cfg.Pipeline.May(c, o, v.c)
	if denied != nil && !keepsTyped(ctx, denied) {
		p.refused(ctx, v, denied)
		return
	}
	back := ConsolePath + "/" + n.Path
	out := nounForm{Heading: label(v.Lang, operation), Summary: o.Summary, Action: string(ctx.Path()), Risk: string(o.Risk), Submit: label(v.Lang, operation), Step: "form"}
	if q := string(ctx.QueryArgs().Peek("of")); q != "" {
		out.Action += "?of=" + url.QueryEscape(q)
	}
	m := &maker{p: p, of: operation, f: v.frame, c: c, ctx: ctx, v: v, values: map[string]string{}, rows: map[string]int{}, refs: p.references(c, ctx, v)}
	target, many := "", false
	if operation != n.Create {
		target, many = n.About(o)
	}
	members := formMembers(o, target)
	if operation == n.Create {
		for i := range members {
			members[i].Required = members[i].Required || members[i].OfNew()
		}
	}
	edits := o.Method == "PATCH" || o.Method == "PUT"
	var record map[string]any
	if operation != n.Create {
		var err error
		if record, err = p.find(c, ctx, v, n, id); err != nil && !keepsTyped(ctx, err) {
			p.refused(ctx, v, err)
			return
		}
		denied = cmp.Or(denied, err)
		m.offerParts(n, record)
		if id != "" && record != nil {
			out.About = titleOf(v.Lang, n, record)
			back = recordAddress(n, record)
		}
	}
	out.Back = back
	out.workFrame = p.work(ctx, v, out.Heading)
	seal := newSealer(p.kit, ctx, string(ctx.Path()))
	posted := ctx.IsPost() && problem == nil
	if posted && !m.sent(ctx.PostArgs(), seal) {
		posted, problem = false, cloud.E(cloud.Invalid, "VALIDATION_FAILED")
		clear(m.values)
		clear(m.rows)
	}
	status := fasthttp.StatusOK
	if problem != nil {
		out.Problem, status = v.T("console.expired"), statusFor(problem)
	}
	if posted {
		out.Was, out.Key = string(ctx.PostArgs().Peek("was")), string(ctx.PostArgs().Peek("key"))
	} else {
		if edits {
			m.flattened("", members, record)
		}
		out.Was = marshalJSON(m.values)
		for _, x := range members { // filled in by the address, as a link from another record does
			if given := string(ctx.QueryArgs().Peek(x.Name)); given != "" && len(given) <= maxField && !isSecret(x.Name) {
				m.values[x.Name] = given
			}
		}
		out.Key = rand.Text()
	}
	if denied != nil && posted {
		denyForm(p.kit, ctx, v, out, m.fields("", members), denied)
		return
	}
	step := string(ctx.PostArgs().Peek("step"))
	if !posted || step == "edit" || m.edit(ctx.PostArgs()) {
		out.Fields = m.fields("", members)
		p.show(ctx, status, "nounform.html", out)
		return
	}
	// An answer with a secret is not kept: who sends the form again is not shown it.
	key := catalog.Key{Value: out.Key, Address: "page " + operation + " " + id, Always: true, Bare: o.Secret}
	used := func() bool {
		ok, err := p.cfg.Pipeline.Used(c, v.c, key)
		return ok && err == nil
	}
	if edits && !(step == "do" && used()) {
		if out.Was, out.Clashes = m.merge(members, record, out.Was); len(out.Clashes) > 0 {
			out.Problem, out.Fields = v.T("work.meanwhile"), m.fields("", members)
			p.show(ctx, fasthttp.StatusConflict, "nounform.html", out)
			return
		}
	}
	in := m.input("", members)
	if edits {
		in = m.changedOnly(o, members, in, out.Was)
	}
	switch {
	case target == "" || id == "":
	case many:
		in[target] = []any{idOf(id)}
	default:
		in[target] = idOf(id)
	}
	again := func(err error) {
		if keepsTyped(ctx, err) {
			denyForm(p.kit, ctx, v, out, m.fields("", members), err)
			return
		}
		text, fields, ok := p.explain(v.Lang, err)
		if !ok {
			p.trouble(ctx, err)
			return
		}
		if m.problems = maps.Clone(fields); len(fields) > 0 {
			text = v.T("work.fields")
		}
		out.Problem, out.Step = text, "form"
		out.Fields = m.fields("", members)
		for name := range fields {
			if shows(out.Fields, name) {
				delete(fields, name)
			}
		}
		out.Problem = addFields(v.Lang, out.Problem, fields)
		p.show(ctx, fasthttp.StatusUnprocessableEntity, "nounform.html", out)
	}
	who := visitorCaller(p.kit, ctx, v)
	do := c
	key.Request = requestOf(in)
	if o.Risk != catalog.RiskLow && !(step == "do" && used()) {
		pv := &cloud.Preview{}
		_, err := p.answerTo(cloud.WithPreview(c, pv), who, operation, in, catalog.Key{})
		if err != nil && step == "do" && used() { // the same form, sent twice at once
			err = &cloud.Error{Kind: cloud.Conflict, Code: "IDEMPOTENCY_IN_PROGRESS", RetryAfter: 1}
		}
		if err != nil {
			again(err)
			return
		}
		marks := pv.Marks()
		out.Digest = marks.Digest(p.cfg.DigestKey)
		out.Things, out.Besides = m.things(effectsOf(cloud.EffectsFor(v.c, pv.Effects())))
		for _, t := range out.Things {
			if t.Dropped && out.About != "" {
				out.Type = out.About
			}
		}
		typed := strings.TrimSpace(string(ctx.PostArgs().Peek("typed")))
		seen := string(ctx.PostArgs().Peek("digest"))
		if step != "do" || seen != out.Digest || out.Type != "" && typed != out.Type {
			if step == "do" && seen != out.Digest {
				out.Problem = v.T("work.changed")
			} else if step == "do" {
				out.Typed = v.T("work.type", out.Type)
			}
			out.Step, out.Edits = "preview", edits
			for _, path := range slices.Sorted(maps.Keys(m.values)) {
				value := m.values[path]
				if isSecret(path) {
					value = seal.seal(path, value)
				}
				out.Hidden = append(out.Hidden, pair{"in:" + path, value})
			}
			out.Given = m.given(in, target)
			p.show(ctx, fasthttp.StatusOK, "nounform.html", out)
			return
		}
		do = cloud.WithExpected(c, marks.Expect())
	}
	receipt := &cloud.Receipt{}
	a, err := p.answerTo(cloud.WithReceipt(do, receipt), who, operation, in, key)
	if err != nil {
		again(err)
		return
	}
	answer, err := asObject(a.Body)
	if err != nil {
		p.trouble(ctx, err)
		return
	}
	if kept := refusedOf(answer); len(kept) > 0 { // of several records, some stay as they were
		out.Problem, out.Step, out.Key = v.T("work.refused", strings.Join(kept, " ")), "form", rand.Text()
		out.Fields = m.fields("", members)
		p.show(ctx, fasthttp.StatusConflict, "nounform.html", out)
		return
	}
	found := recordOf(o, answer)
	if (o.Secret || o.Shows) && len(found) > 0 {
		delete(found, "result")
		if text, has := found["qr"].(string); has {
			delete(found, "qr")
			if out.QR, err = drawQR(text, "scan"); err != nil {
				p.trouble(ctx, err)
				return
			}
		}
		out.Step, out.Once, out.Result = "result", o.Secret, m.leaves(found)
		out.showDone(p.kit, ctx, v, after{Operation: operation, Notices: receipt.Notices(), Target: receipt.Target()})
		p.show(ctx, fasthttp.StatusOK, "nounform.html", out)
		return
	}
	to := back
	if operation == n.Create && recordAddress(n, found) != "" {
		to = recordAddress(n, found)
	}
	if out.Type != "" || operation != n.Create && id != "" && p.isGone(c, ctx, v, n, id) {
		to = ConsolePath + "/" + n.Path
	}
	sep := "?"
	if strings.Contains(to, "?") {
		sep = "&"
	}
	seeOther(ctx, to+sep+sealAfter(p.kit, ctx, after{Operation: operation, Notices: receipt.Notices(), Target: receipt.Target(), Undo: p.undoOf(c, v, who, n, o, id, record)}))
}

// refusedOf are why records of an operation on several stay as they were, by what names
// each of them: the members errors of its answer.
func refusedOf(answer map[string]any) (out []string) {
	list, _ := answer["errors"].([]any)
	for _, x := range list {
		e, _ := x.(map[string]any)
		if e["message"] == nil {
			continue
		}
		name := cmp.Or(plainText(e["order_ref"]), plainText(e["order_id"]))
		out = append(out, outside(strings.TrimPrefix(name+": "+plainText(e["message"]), ": "), maxValue))
	}
	return out
}

// denyForm shows a form again whose sender has lost a right since it was made: with what
// was typed, and with the scope that is missing.
func denyForm(p *kit, ctx *fasthttp.RequestCtx, v visitor, out nounForm, fields []formField, err error) {
	var shown *cloud.Error
	if errors.As(err, &shown) {
		out.Problem = describeError(v.frame, shown) + " " + v.T("work.denied")
	}
	out.Step, out.Fields = "form", fields
	p.show(ctx, fasthttp.StatusForbidden, "nounform.html", out)
}

// endedPage holds what was typed into a form whose sender is signed out by now.
type endedPage struct {
	frame
	Action string
	Kept   []pair
}

// keepTyped answers a form without a session: the sender signs in beside it and has the
// form again with all that was typed, but for secrets. Nothing is run by that.
func (p *kit) keepTyped(ctx *fasthttp.RequestCtx) {
	out := endedPage{frame: p.frame(ctx, "ended.title"), Action: string(ctx.RequestURI())}
	for name, value := range ctx.PostArgs().All() {
		if path, typed := strings.CutPrefix(string(name), "in:"); typed && !isSecret(path) || slices.Contains([]string{"form", "was", "key"}, string(name)) {
			out.Kept = append(out.Kept, pair{string(name), string(value)})
		}
	}
	p.show(ctx, fasthttp.StatusUnauthorized, "ended.html", out)
}

// isGone reports whether a record has no page any more.
func (p nounPages) isGone(c context.Context, ctx *fasthttp.RequestCtx, v visitor, n *catalog.Noun, id string) bool {
	_, err := p.find(c, ctx, v, n, id)
	var shown *cloud.Error
	return errors.Is(err, cloud.ErrNotFound) || errors.As(err, &shown) && shown.Kind == cloud.NotFound
}

// formMembers are the members of an operation's input that a form asks for: not what
// names the record, nor what only programs need.
func formMembers(o *catalog.Operation, target string) []catalog.Member {
	return slices.DeleteFunc(o.Members(), func(m catalog.Member) bool {
		return m.Name == target || m.Name == "wait_seconds" || m.Name == "config_version" || m.Name == "seen_delivery_id" // the digest of a preview holds the page to what it showed
	})
}

// idOf is an ID as JSON has it: a number where it is one.
func idOf(id string) any {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && strconv.FormatInt(n, 10) == id {
		return json.Number(id)
	}
	return id
}

// changedOnly leaves out the members that are as they were when the form was made:
// what another person changed meanwhile stays. One that was emptied is given as empty.
// A save takes all.
func (m *maker) changedOnly(o *catalog.Operation, members []catalog.Member, in map[string]any, was string) map[string]any {
	old := map[string]string{}
	if json.Unmarshal([]byte(was), &old) != nil {
		return in
	}
	now := maps.Clone(m.values)
	maps.DeleteFunc(now, func(_ string, v string) bool { return strings.TrimSpace(v) == "" })
	out := map[string]any{}
	for _, x := range members {
		of := func(all map[string]string) map[string]string {
			part := map[string]string{}
			for path, v := range all {
				if rest, ok := strings.CutPrefix(path, x.Name); ok && strings.TrimSpace(v) != "" && (rest == "" || rest[0] == '.' || rest[0] == '[') {
					part[path] = strings.TrimSpace(v)
				}
			}
			return part
		}
		before, after := of(old), of(now)
		switch {
		case maps.Equal(before, after) && o.Method == "PATCH":
		case in[x.Name] != nil:
			out[x.Name] = in[x.Name]
		case len(before) > 0 && bare(x.Type).Kind().String() == "string":
			out[x.Name] = ""
		case len(before) > 0 && bare(x.Type).Kind().String() == "slice":
			out[x.Name] = []any{}
		}
	}
	return out
}

// shows reports whether a field of a form shows the problem of a member.
func shows(fields []formField, name string) bool {
	for _, f := range fields {
		if f.Name == name || shows(f.Fields, name) {
			return true
		}
		for _, row := range f.Rows {
			if shows(row, name) {
				return true
			}
		}
	}
	return false
}

// given are the values that a person filled in, but for secrets.
func (m *maker) given(in map[string]any, target string) []leaf {
	shown, _ := withoutSecrets(in).(map[string]any)
	delete(shown, target)
	return m.leavesWith(shown, "{}") // what was emptied is said too
}

// withoutSecrets is a copy of a value as JSON has it, without members that hold secrets.
func withoutSecrets(x any) any {
	switch x := x.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range x {
			if !isSecret(name) {
				out[name] = withoutSecrets(inner)
			}
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, inner := range x {
			out[i] = withoutSecrets(inner)
		}
		return out
	}
	return x
}

// requestOf is an input as bytes that are the same for the same.
func requestOf(in map[string]any) []byte {
	raw, _ := json.Marshal(in) // of plain values, sorted
	return raw
}
