package page

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
)

// after is what a page says about what was just done. It travels sealed in the address
// of the page that follows: of use to the same session alone.
type after struct {
	Operation string         `json:"operation"`
	Notices   []cloud.Notice `json:"notices,omitempty"`
	Target    string         `json:"target,omitempty"` // of the audit line
	Taken     bool           `json:"taken,omitempty"`  // it took something back
	Undo      *undoing       `json:"undo,omitempty"`
}

// undoing is the call that takes back what was done.
type undoing struct {
	Operation string         `json:"operation"`
	Path      string         `json:"path"` // of its form
	In        map[string]any `json:"in"`
	Digest    string         `json:"digest"` // of what it would change
	At        time.Time      `json:"at"`
	Key       string         `json:"key"`
	Back      string         `json:"back,omitempty"` // address of the page that follows; "" the record's
}

// Undo is offered for undoShown after a call; a page without script may send it until
// undoLife.
const (
	undoShown = 10 * time.Second
	undoLife  = 2 * time.Minute
)

// afterwards is what a page shows of an after.
type afterwards struct {
	Notices string // who is notified, in words
	Audit   string // address of the audit line; "" where the visitor may not read it
	Undo    string // address of the form; "" when nothing takes it back
	Sealed  string
}

// afterSealer seals what was done for a session.
func afterSealer(p *kit, ctx *fasthttp.RequestCtx) sealer {
	return newSealer(p, ctx, "after")
}

// showAfter adds what was just done to a page.
func showAfter(p *kit, ctx *fasthttp.RequestCtx, v visitor, f *workFrame) {
	sealed := string(ctx.QueryArgs().Peek("after"))
	raw, ok := afterSealer(p, ctx).open("after", sealed)
	var a after
	if sealed == "" || raw == sealed || !ok || json.Unmarshal([]byte(raw), &a) != nil || p.cfg.Catalog.Find(a.Operation) == nil {
		return
	}
	f.showDone(p, ctx, v, a)
	f.Follows.Sealed = sealed
}

// showDone tells what was done.
func (f *workFrame) showDone(p *kit, ctx *fasthttp.RequestCtx, v visitor, a after) {
	f.Done = f.T("work.done", f.T("verb."+a.Operation))
	if a.Taken {
		f.Done = f.T("work.undone", f.T("verb."+a.Operation))
	}
	out := &afterwards{Notices: f.T("work.told.none")}
	var list []string
	for _, n := range a.Notices {
		list = append(list, f.T("notice."+n.Kind, n.Count))
	}
	if len(list) > 0 {
		out.Notices = f.T("work.told", strings.Join(list, ", "))
	}
	if a.Target != "" && slices.Contains(staff, v.c.Account.Type) && p.may(context.Background(), v, "audit.list") {
		out.Audit = auditPath + "?" + url.Values{"target": {a.Target}}.Encode()
	}
	if u := a.Undo; u != nil && time.Since(u.At) < undoShown && p.mayAny(context.Background(), v, u.Operation) {
		out.Undo = u.Path
	}
	f.Follows = out
}

// sealAfter is the part of the next page's address that says what was done.
func sealAfter(p *kit, ctx *fasthttp.RequestCtx, a after) string {
	raw, _ := json.Marshal(a) // of plain values
	return "done=" + url.QueryEscape(a.Operation) + "&after=" + url.QueryEscape(afterSealer(p, ctx).seal("after", string(raw)))
}

// undoOf is the call that takes back what an operation did to a record, as it was
// before; nil when there is none.
func (p nounPages) undoOf(c context.Context, v visitor, who catalog.Who, n *catalog.Noun, o *catalog.Operation, id string, before map[string]any) *undoing {
	if o.Undo == nil || id == "" || !p.may(c, v, o.Undo.Operation) {
		return nil
	}
	for _, name := range o.Undo.Empty {
		if plainText(before[name]) != "" {
			return nil
		}
	}
	inverse := p.cfg.Catalog.Find(o.Undo.Operation)
	target, _ := n.About(inverse)
	u := &undoing{Operation: inverse.Name, Path: ConsolePath + "/" + n.Path + "/" + url.PathEscape(id) + "/" + verbPath(n, inverse.Name), In: map[string]any{target: id}, At: time.Now().UTC(), Key: "undo-" + strconv.FormatInt(time.Now().UnixNano(), 36)}
	for _, m := range inverse.Members() {
		if text, ok := o.Undo.Fills[m.Name]; ok {
			u.In[m.Name] = scalar(bare(m.Type), filledIn(text, before))
		}
	}
	digest, _, err := foreseeCall(p.kit, c, who, inverse.Name, u.In)
	if err != nil {
		return nil
	}
	u.Digest = digest
	return u
}

// foreseeCall is the digest of what a call would change, with what holds the call to it.
func foreseeCall(p *kit, c context.Context, who catalog.Who, operation string, in map[string]any) (string, *cloud.Expected, error) {
	pv := &cloud.Preview{}
	if _, err := p.answerTo(cloud.WithPreview(c, pv), who, operation, in, catalog.Key{}); err != nil {
		return "", nil, err
	}
	marks := pv.Marks()
	return marks.Digest(p.cfg.DigestKey), marks.Expect(), nil
}

// undo takes back what was done, unless the record has moved on since.
func (p nounPages) undo(c context.Context, ctx *fasthttp.RequestCtx, v visitor, n *catalog.Noun, operation, id string) {
	raw, ok := afterSealer(p.kit, ctx).open("after", string(ctx.PostArgs().Peek("undo")))
	var a after
	if !ok || json.Unmarshal([]byte(raw), &a) != nil || a.Undo == nil || a.Undo.Operation != operation || a.Undo.Path != string(ctx.Path()) {
		p.missing(ctx)
		return
	}
	refuse := func(words string, status int) {
		record, err := p.find(c, ctx, v, n, id)
		if err != nil {
			p.refused(ctx, v, err)
			return
		}
		out := p.record(c, ctx, v, n, id, record)
		out.Problem = words
		p.relate(c, ctx, v, n, id, &out)
		p.show(ctx, status, "nounrecord.html", out)
	}
	u := a.Undo
	if time.Since(u.At) > undoLife {
		refuse(v.T("work.undo.late"), fasthttp.StatusConflict)
		return
	}
	who := visitorCaller(p.kit, ctx, v)
	digest, expected, err := foreseeCall(p.kit, c, who, operation, u.In)
	receipt := &cloud.Receipt{}
	switch {
	case err == nil && digest != u.Digest:
		refuse(v.T("work.undo.moved"), fasthttp.StatusConflict)
		return
	case err == nil:
		raw, _ := json.Marshal(u.In)
		_, err = p.answerTo(cloud.WithReceipt(cloud.WithExpected(c, expected), receipt), who, operation, u.In, catalog.Key{Value: u.Key, Address: "page undo " + id, Request: raw, Always: true})
	}
	if err != nil {
		text, _, known := p.explain(v.Lang, err)
		if !known {
			p.trouble(ctx, err)
			return
		}
		refuse(locale.Word(v.Lang, "work.undo.moved")+" "+text, statusFor(err))
		return
	}
	back := u.Back
	if back == "" {
		back = recordAddress(n, map[string]any{n.ID: id})
	}
	sep := "?"
	if strings.Contains(back, "?") {
		sep = "&"
	}
	seeOther(ctx, back+sep+sealAfter(p.kit, ctx, after{Operation: a.Operation, Taken: true, Notices: receipt.Notices(), Target: receipt.Target()}))
}
