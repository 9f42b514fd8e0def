package page

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
)

// nounRecord is the page of one record.
type nounRecord struct {
	workFrame
	Noun    *catalog.Noun
	List    string // address of the noun's list; "" for a record that is the only one
	Heading string
	State   *shown
	Says    string     // what the state means, in a sentence; "" where it has none
	Buttons []verbLink // the first three that the visitor may use
	Menu    []verbLink
	refs    *references // of the record and of its related lists
	Groups  []factGroup
	Related []relatedList
	Story   []storyLine
	Partly  bool   // a part of the story could not be read
	Empty   string // what the record is for, where nothing is set in it; "" otherwise
	Call    string // how a program reads the record
}

// verbLink leads to what can be done to a record.
type verbLink struct {
	To, Text, Risk string
	Key            string // letter that presses it; "" none
	Off            string // why it cannot be done now; "" it can
}

// relatedList are the first records of a related list.
type relatedList struct {
	Title string
	Table nounTable
	All   string // address of the whole list; "" when there is no page of it
}

const relatedRows = 8

// showRecord shows one record, or the form that creates one.
func (p nounPages) showRecord(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, n, ok := p.nounAt(c, ctx)
	if !ok {
		return
	}
	id, _ := ctx.UserValue("id").(string)
	if n.List == "" {
		if o := p.verbOf(n, id); o != "" {
			p.form(c, ctx, v, n, o, "", nil)
			return
		}
		p.missing(ctx)
		return
	}
	if id == "new" && n.Create != "" {
		p.form(c, ctx, v, n, n.Create, "", nil)
		return
	}
	if id = unescape(id); n.ID == "" {
		p.missing(ctx)
		return
	}
	out, err := p.wholeRecord(c, ctx, v, n, id)
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	followTopics(p.kit, ctx, &out.frame, "record:"+n.Name+":"+url.PathEscape(id)+"?"+changed(ctx, map[string]string{"lang": ""}))
	p.show(ctx, fasthttp.StatusOK, "nounrecord.html", out)
}

// wholeRecord reads a record with its story and related lists.
func (p nounPages) wholeRecord(c context.Context, ctx *fasthttp.RequestCtx, v visitor, n *catalog.Noun, id string) (nounRecord, error) {
	record, err := p.find(c, ctx, v, n, id)
	if err != nil {
		return nounRecord{}, err
	}
	out := p.record(c, ctx, v, n, id, record)
	out.Story, out.Partly = p.story(c, ctx, v, n, record)
	p.relate(c, ctx, v, n, id, &out)
	return out, nil
}

func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// showOnly shows the only record of a noun without a list.
func (p nounPages) showOnly(c context.Context, ctx *fasthttp.RequestCtx, v visitor, n *catalog.Noun) {
	record, err := p.find(c, ctx, v, n, "")
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	out := p.record(c, ctx, v, n, "", record)
	out.Heading, out.List = v.T("noun."+n.Name), ""
	if !slices.ContainsFunc(out.Groups, func(g factGroup) bool { return len(g.Facts) > 0 || g.Table != nil }) {
		if out.Empty = v.T("noun." + n.Name + ".empty"); out.Empty == "noun."+n.Name+".empty" {
			out.Empty = v.T("work.none")
		}
	}
	p.show(ctx, fasthttp.StatusOK, "nounrecord.html", out)
}

// record lays out a record with what the visitor may do to it.
func (p nounPages) record(c context.Context, ctx *fasthttp.RequestCtx, v visitor, n *catalog.Noun, id string, record map[string]any) nounRecord {
	heading := titleOf(v.Lang, n, record)
	here := ConsolePath + "/" + n.Path
	refs := p.references(c, ctx, v)
	if n.Name == "delivery" {
		refs.cabinet = record["device_id"]
	}
	out := nounRecord{workFrame: p.work(ctx, v, strings.TrimPrefix(heading+" · "+v.T("noun."+n.Name+".one"), " · ")), Noun: n, List: here, Heading: heading, Groups: p.facts(v, n, record, refs), refs: refs}
	if n.Area == "" {
		out.List = ""
	}
	if n.State != "" {
		s := p.value(v.frame, n.State, record[n.State], n.States)
		out.State = &s
		key := "state." + n.States + "." + plainText(record[n.State])
		if says := v.T(key); says != key {
			out.Says = says
		}
	}
	base := here
	if id != "" {
		base += "/" + url.PathEscape(id)
	}
	var off []verbLink
	for _, o := range n.Verbs {
		op := p.cfg.Catalog.Find(o)
		now, ok := offer(p.kit, c, v, n, op, record)
		if !ok {
			continue
		}
		l := verbLink{Off: now, To: base + "/" + verbPath(n, o), Text: label(v.Lang, o), Risk: string(op.Risk), Key: n.Keys[o]}
		if l.Off != "" {
			off = append(off, l)
			continue
		}
		if of := string(ctx.QueryArgs().Peek("of")); of != "" {
			l.To += "?of=" + url.QueryEscape(of)
		}
		if len(out.Buttons) < 3 {
			out.Buttons = append(out.Buttons, l)
		} else {
			out.Menu = append(out.Menu, l)
		}
	}
	if n.Name == "order" && p.cfg.Chats && slices.Contains(staff, v.c.Account.Type) && p.may(c, v, "order_chat.find") {
		out.Menu = append(out.Menu, verbLink{To: chatsPath + "/" + url.PathEscape(id), Text: v.T("chat.title"), Key: "m"})
	}
	for _, l := range n.Links {
		to, ok := linkTo(l.To, record)
		switch x := (verbLink{To: to, Text: v.T(l.Words)}); {
		case !ok || !has(record, l.Only) || !p.mayAny(c, v, l.Operation):
		case len(n.Verbs) == 0:
			out.Buttons = append(out.Buttons, x)
		default:
			out.Menu = append(out.Menu, x)
		}
	}
	out.Menu = append(out.Menu, off...)
	if o := p.cfg.Catalog.Find(n.Find); o != nil {
		out.Call = "curl -H 'Authorization: Bearer …' " + p.base(ctx) + addressOf(o, id)
	}
	return out
}

// offer reports whether a visitor is offered an operation about a record, and why it
// cannot be done now, "" when it can.
func offer(p *kit, c context.Context, v visitor, n *catalog.Noun, o *catalog.Operation, record map[string]any) (notYet string, ok bool) {
	if o == nil || !p.may(c, v, o.Name) || o.Offered != nil && !o.Offered(c, v.c, record) {
		return "", false
	}
	return notNow(v.frame, n, o, record), true
}

// notNow is why an operation cannot be done about a record as it is, "" when it can.
func notNow(f frame, n *catalog.Noun, o *catalog.Operation, record map[string]any) string {
	if state := plainText(record[n.State]); n.State != "" && len(o.When) > 0 && !slices.Contains(o.When, state) {
		return f.T("work.notnow", stateShown(f, n.States, state).Text)
	}
	for _, member := range o.Free {
		if value := record[member]; value != nil {
			if key := "work.notwith." + member; locale.Word(f.Lang, key) != key {
				return f.T(key, outside(plainText(value), maxValue))
			}
			return f.T("work.notwith", memberWords(f.Lang, member))
		}
	}
	for _, member := range o.Needs {
		if s := plainText(record[member]); s == "" || s == "0" || s == "[]" {
			return f.T("work.notwithout", memberWords(f.Lang, member))
		}
	}
	return ""
}

// linkTo is the address of a page about a record, whose members are escaped where the
// address is not one of them; false where one has no value.
func linkTo(text string, record map[string]any) (string, bool) {
	whole, ok := inBraces.FindString(text) == text, true
	to := inBraces.ReplaceAllStringFunc(text, func(m string) string {
		v := filledIn(m, record)
		ok = ok && v != "" && v != "0"
		if whole {
			return v
		}
		return strings.ReplaceAll(url.QueryEscape(v), "+", "%20") // in a path, a query and a fragment alike
	})
	return to, ok
}

// addressOf is an operation's address about a record.
func addressOf(o *catalog.Operation, id string) string {
	out := ""
	for i, part := range splitPath(o.Path) {
		if i%2 == 1 {
			part = url.PathEscape(id)
		}
		out += part
	}
	return out
}

// splitPath are the parts of a path outside and inside of braces by turns.
func splitPath(path string) (parts []string) {
	from := 0
	for i, c := range path {
		if c == '{' || c == '}' {
			parts = append(parts, path[from:i])
			from = i + 1
		}
	}
	return append(parts, path[from:])
}

// relate adds the related lists that the visitor may read.
func (p nounPages) relate(c context.Context, ctx *fasthttp.RequestCtx, v visitor, n *catalog.Noun, id string, out *nounRecord) {
	for _, r := range n.Related {
		other := p.cfg.Catalog.Noun(r.Noun)
		o := p.cfg.Catalog.Find(other.List)
		if !p.may(c, v, other.List) {
			continue
		}
		in := map[string]any{r.By: id}
		pageSize(o, relatedRows, in)
		answer, err := p.read(c, ctx, v, other.List, in)
		if err != nil {
			if _, _, known := p.explain(v.Lang, err); !known {
				p.log.Error("read related list", "noun", other.Name, "err", err)
			}
			continue
		}
		l := relatedList{Title: v.T("noun." + other.Name), Table: p.table(v.frame, other, slices.DeleteFunc(slices.Clone(other.Columns), func(path string) bool { return path == r.By }), answer, out.refs)}
		l.Table.Caption = l.Title
		l.Table.Rows = l.Table.Rows[:min(len(l.Table.Rows), relatedRows)]
		if o.Target() != "" { // records of it are found below this one
			for i := range l.Table.Rows {
				if to := l.Table.Rows[i].To; to != "" {
					l.Table.Rows[i].To = to + "?of=" + url.QueryEscape(id)
				}
			}
		}
		if other.Area != "" && len(l.Table.Rows) == relatedRows {
			l.All = ConsolePath + "/" + other.Path + "?" + url.Values{r.By: {id}}.Encode()
		}
		out.Related = append(out.Related, l)
	}
}
