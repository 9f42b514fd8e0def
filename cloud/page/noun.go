package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/job"
	"github.com/postern-io/postern/cloud/locale"
)

// The generated console: lists, details and forms of the catalogue's nouns. All of it
// follows from the rows: who may see what from Pipeline.May, fields from the input
// types, bounds from their tags. A page runs the operations that the interface runs,
// with the visitor's own token.

// drawnRoutes are the drawn pages of the console, which take the address of generated
// ones.
func (p drawnPages) drawnRoutes(get, post func(path string, h fasthttp.RequestHandler)) {
	get(dayPath, p.day)
	get(workPath, p.workItems)
	post(workPath, p.markWork)
	get(findPath, p.findRecords)
	get(auditPath, p.audit)
	get(kitPath, p.showKit)
	get(reportsPath, p.reports)
	get(reportsPath+"/{report}", p.exportReport)
	get(auditPath+"/export.csv", p.exportAudit)
}

// nounRoutes are the generated pages of the console.
func (p nounPages) nounRoutes(get, post func(path string, h fasthttp.RequestHandler)) {
	if p.cfg.Catalog.Find("jobs.find") != nil {
		j := jobPages{p}
		get(manyPath, j.many)
		post(manyPath, j.many)
		get(ImportPath, j.importFile)
		post(ImportPath, j.importFile)
		get(templatePath, j.template)
		get(jobPath, j.showJob)
		post(jobPath, j.changeJob)
		get(jobRows, j.jobCSV)
	}
	get(ConsolePath+"/{noun}", p.showNoun)
	post(ConsolePath+"/{noun}", p.saveView)
	get(ConsolePath+"/{noun}/{id}", p.showRecord)
	post(ConsolePath+"/{noun}/{id}", p.runVerb)
	get(ConsolePath+"/{noun}/{id}/{verb}", p.showVerb)
	post(ConsolePath+"/{noun}/{id}/{verb}", p.runVerb)
}

// workFrame is what generated pages have besides the shell.
type workFrame struct {
	frame
	Done    string      // what was just done, in words; "" for nothing
	Problem string      // why what was just tried did not work
	Follows *afterwards // about what was just done; nil for nothing
}

// desk is what pages have whose visitor is signed in: the navigation, cut by rights,
// the search and the way out.
type desk struct {
	CSRF, User, Business string
	Finds                bool   // the visitor may search
	Find                 string // what the search field holds
	Areas                func() []navArea
}

// navArea is a part of the navigation.
type navArea struct {
	Name  string // "" for the first, which has no heading
	Links []navLink
}

type navLink struct {
	Path, Text, Icon string
	Key              string // letter after g; "" none
	Alone            string // letter by itself; "" none
	Counts           bool   // there is a count of what waits
	Count            navCount
	Current          bool
}

// work starts a generated page for a visitor.
func (p *kit) work(ctx *fasthttp.RequestCtx, v visitor, title string) workFrame {
	f := workFrame{frame: v.frame}
	f.Title = title
	if done := string(ctx.QueryArgs().Peek("done")); p.cfg.Catalog.Find(done) != nil {
		f.Done = f.T("work.done", f.T("verb."+done))
	}
	showAfter(p, ctx, v, &f)
	return f
}

// deskOf is the desk of a visitor's pages.
func (p *kit) deskOf(c context.Context, ctx *fasthttp.RequestCtx, v visitor) *desk {
	return &desk{CSRF: p.formToken(ctx, &forStaff), User: outside(v.c.Account.Name, maxValue), Business: outside(v.business, maxValue), Finds: p.mayAny(c, v, "search.find"), Areas: func() []navArea { return countAreas(c, p, ctx, v) }}
}

// navigation lists the pages that a visitor may see. The entry of the longest address
// that the page's own begins with is the current one.
func (p *kit) navigation(c context.Context, v visitor) []navArea {
	var out []navArea
	if slices.Contains(staff, v.c.Account.Type) {
		out = append(out, navArea{Links: []navLink{{Path: ConsolePath, Text: v.T("work.home"), Icon: "home", Key: "g"}, {Path: workPath, Text: v.T("noun.work_item"), Icon: "inbox", Key: "w", Alone: "e"}}})
	}
	for _, name := range catalog.Areas() {
		a := navArea{Name: v.T("area." + name)}
		for _, n := range p.cfg.Catalog.Nouns() {
			if n.Area == name && p.mayAny(c, v, n.List, n.Find) {
				a.Links = append(a.Links, navLink{Path: ConsolePath + "/" + n.Path, Text: v.T("noun." + n.Name), Icon: n.Icon, Key: n.Key})
			}
		}
		if a.Links = append(a.Links, p.drawn(c, v, name)...); len(a.Links) > 0 {
			out = append(out, a)
		}
	}
	var current *navLink
	for i := range out {
		for k := range out[i].Links {
			l := &out[i].Links[k]
			if (v.Path == l.Path || l.Path != ConsolePath && strings.HasPrefix(v.Path, l.Path+"/")) && (current == nil || len(l.Path) > len(current.Path)) {
				current = l
			}
		}
	}
	if current != nil {
		current.Current = true
	}
	return out
}

// drawn are the drawn pages of an area that a visitor may see.
func (p *kit) drawn(c context.Context, v visitor, area string) (out []navLink) {
	if area == "delivery" && p.may(c, v, "routes.list") {
		out = append(out, navLink{Path: dayPath, Text: v.T("work.day"), Icon: "board", Key: "b"})
	}
	if area == "business" && slices.ContainsFunc(reportKinds, func(k reportKind) bool { return p.mayAny(c, v, k.operation) }) {
		out = append(out, navLink{Path: reportsPath, Text: v.T("report.title"), Icon: "chart", Key: "e"})
	}
	if !slices.Contains(staff, v.c.Account.Type) {
		return out
	}
	if area == "connections" && p.cfg.Receivers != nil && p.may(c, v, "webhook_logs.list") {
		out = append(out, navLink{Path: hooksPath, Text: v.T("hooklog.title"), Icon: "webhook"})
	}
	if area == "connections" && p.cfg.Approvals != nil && p.may(c, v, "approvals.list") {
		out = append(out, navLink{Path: approvalsPath, Text: v.T("approvals.title"), Icon: "shield"})
	}
	if area == "delivery" && p.cfg.Chats && p.may(c, v, "order_chat.conversations") {
		out = append(out, navLink{Path: chatsPath, Text: v.T("chat.title"), Icon: "chat", Key: "m", Alone: "m"})
	}
	return out
}

// mayAny reports whether a visitor may call the first of some operations that there
// is.
func (p *kit) mayAny(c context.Context, v visitor, operations ...string) bool {
	for _, name := range operations {
		if name != "" && p.cfg.Catalog.Find(name) != nil {
			return p.may(c, v, name)
		}
	}
	return false
}

// nounAt is the noun of a request with its visitor; otherwise what to show instead has
// been shown.
func (p nounPages) nounAt(c context.Context, ctx *fasthttp.RequestCtx) (v visitor, n *catalog.Noun, ok bool) {
	path, _ := ctx.UserValue("noun").(string)
	if n = p.cfg.Catalog.NounAt(strings.TrimSuffix(path, ".csv")); n == nil {
		p.missing(ctx)
		return v, nil, false
	}
	if v, ok = p.worker(c, ctx); !ok {
		return v, nil, false
	}
	read := n.List
	if read == "" || n.Find != "" && ctx.UserValue("id") != nil {
		read = n.Find
	}
	if read == "" {
		p.missing(ctx)
		return v, nil, false
	}
	if err := p.cfg.Pipeline.May(c, p.cfg.Catalog.Find(read), v.c); err != nil && !keepsTyped(ctx, err) {
		p.refused(ctx, v, err)
		return v, nil, false
	}
	return v, n, true
}

// keepsTyped reports whether a request sends one of our forms whose sender lacks a right
// by now: the form is shown again, so that nothing that was typed is lost.
func keepsTyped(ctx *fasthttp.RequestCtx, err error) bool {
	var shown *cloud.Error
	return ctx.IsPost() && errors.As(err, &shown) && shown.Kind == cloud.Forbidden && ctx.PostArgs().Has("step") && ownForm(ctx, &forStaff)
}

// read runs an operation that changes nothing for a visitor and gives its answer as
// JSON has it.
func (p *kit) read(c context.Context, ctx *fasthttp.RequestCtx, v visitor, operation string, in map[string]any) (map[string]any, error) {
	a, err := p.answerTo(c, visitorCaller(p, ctx, v), operation, in, catalog.Key{})
	if err != nil {
		return nil, err
	}
	return asObject(a.Body)
}

// asObject is a value as JSON has it; nil when it is no object.
func asObject(body any) (map[string]any, error) {
	raw, ok := body.(json.RawMessage)
	if ok && len(raw) == 0 { // of a call that was made before
		return nil, nil
	}
	if !ok {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	var out map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		return nil, err
	}
	return out, nil
}

// at is the value at a path in a record, nil for none. An element of a list is named by
// its number.
func at(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// titleOf is what people call a record.
func titleOf(lang string, n *catalog.Noun, record map[string]any) string {
	if n.Name == "work_item" && plainText(record["kind"]) != cloud.WorkApproval {
		return itemTitle(lang, record)
	}
	for _, path := range n.Title {
		if s := plainText(at(record, path)); s != "" {
			if slices.Contains([]string{"type", "kind", "family"}, path) {
				s = capital(valueWords(lang, path, s))
			}
			return outside(s, maxValue)
		}
	}
	return plainText(record[n.ID])
}

// plainText is a value as text: "" for none.
func plainText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return marshalJSON(v)
}

// recordAddress is that of a record's page, "" for records that have none.
func recordAddress(n *catalog.Noun, record map[string]any) string {
	id := plainText(record[n.ID])
	switch {
	case n.ID == "" || id == "":
		return ""
	case n.Page != "":
		return strings.ReplaceAll(n.Page, "{id}", url.PathEscape(id))
	}
	return ConsolePath + "/" + n.Path + "/" + url.PathEscape(id)
}

// find reads one record: by the noun's own operation, or else among those of its list.
func (p nounPages) find(c context.Context, ctx *fasthttp.RequestCtx, v visitor, n *catalog.Noun, id string) (map[string]any, error) {
	in := map[string]any{}
	if n.Find != "" {
		o := p.cfg.Catalog.Find(n.Find)
		if target := o.Target(); target != "" {
			in[target] = id
		}
		out, err := p.read(c, ctx, v, n.Find, in)
		if err != nil {
			return nil, err
		}
		return recordOf(o, out), nil
	}
	o := p.cfg.Catalog.Find(n.List)
	if parent := o.Target(); parent != "" { // shown with another record alone
		if in[parent] = string(ctx.QueryArgs().Peek("of")); in[parent] == "" {
			return nil, cloud.E(cloud.NotFound, "NOT_FOUND")
		}
	}
	for _, m := range o.Members() { // those too that the list leaves out unless it is asked for all
		switch {
		case m.Name == "status" && slices.Contains(m.Rules().Enum, "all"):
			in["status"] = "all"
		case m.Name == "per_page":
			in["per_page"] = csvPage
		}
	}
	member, _ := o.Listed()
	for range maxLooked {
		out, err := p.read(c, ctx, v, n.List, in)
		if err != nil {
			return nil, err
		}
		rows, _ := out[member].([]any)
		for _, r := range rows {
			if record, ok := r.(map[string]any); ok && plainText(record[n.ID]) == id {
				return record, nil
			}
		}
		if in["cursor"] = out["next_cursor"]; in["cursor"] == nil {
			break
		}
	}
	return nil, cloud.E(cloud.NotFound, "NOT_FOUND")
}

// maxLooked are the pages of a list in which a record is looked for that has no
// address of its own.
const maxLooked = 25

// recordOf is the record in an answer: the member that holds it, or all of it.
func recordOf(o *catalog.Operation, answer map[string]any) map[string]any {
	member, _ := o.Found()
	record, ok := answer[member].(map[string]any)
	if !ok {
		return answer
	}
	for name, v := range answer { // what is answered beside it
		if _, taken := record[name]; !taken && name != "result" && name != member {
			record[name] = v
		}
	}
	return record
}

// label is a verb in words.
func label(lang, operation string) string { return locale.Word(lang, "verb."+operation) }

// memberWords is a member's name in words.
func memberWords(lang, path string) string {
	name := lastPart(path)
	if of, ok := strings.CutSuffix(path, ".name"); ok { // recipient.name is the recipient
		name = lastPart(of)
	}
	key := "member." + name
	if w := locale.Word(lang, key); w != key {
		return w
	}
	return words(name)
}

// pathWords is a path of members in words: each of them, and the place in a list of
// objects.
func pathWords(lang, path string) string {
	parts := strings.Split(path, ".")
	for i, x := range parts {
		name, place, _ := strings.Cut(x, "[")
		w := memberWords(lang, name)
		if n, err := strconv.Atoi(strings.TrimSuffix(place, "]")); err == nil {
			w += " " + strconv.Itoa(n+1)
		}
		parts[i] = w
	}
	return outside(strings.Join(parts, " · "), maxValue)
}

// elementAtEnd is the path of a list's element: that of the list and the place in it.
var elementAtEnd = regexp.MustCompile(`^(.*)\[(\d+)\]$`)

// explain is why an operation did not work, in words, and what is wrong with its
// members by name.
func (p nounPages) explain(lang string, err error) (problem string, fields map[string]string, ok bool) {
	shown := cloud.Shown(err)
	if shown == nil {
		return "", nil, false
	}
	fields = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(shown.Fields)) {
		if list := shown.Fields[name]; len(list) > 0 {
			at := job.FieldPath(name)
			text := locale.FieldOf(lang, list[0], memberWords(lang, at))
			if m := elementAtEnd.FindStringSubmatch(at); m != nil { // of a list with one field
				n, _ := strconv.Atoi(m[2])
				at, text = m[1], strconv.Itoa(n+1)+": "+locale.FieldOf(lang, list[0], memberWords(lang, m[1]))
			}
			fields[at] = strings.TrimSpace(fields[at] + " " + text)
		}
	}
	if len(fields) > 0 && shown.Code == "VALIDATION_FAILED" { // its words are about the answer of a program
		return locale.Word(lang, "work.fields"), fields, true
	}
	return locale.Error(lang, shown.Code, shown.Args...), fields, true
}

// verbName is a verb in addresses: the last part of its operation's name.
func verbName(operation string) string { return lastPart(operation) }

// lastPart is the last name of a path: weight of packages.weight.
func lastPart(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// verbOf finds a noun's verb by its name in addresses, "" when there is none.
func (p nounPages) verbOf(n *catalog.Noun, name string) string {
	i := slices.IndexFunc(n.Verbs, func(o string) bool { return verbName(o) == name || strings.ReplaceAll(o, ".", "-") == name })
	if i < 0 {
		return ""
	}
	return n.Verbs[i]
}

// verbPath is the end of a verb's address: its name, or the operation's where two
// verbs of the noun share a name.
func verbPath(n *catalog.Noun, operation string) string {
	name := verbName(operation)
	for _, o := range n.Verbs {
		if o != operation && verbName(o) == name {
			return strings.ReplaceAll(operation, ".", "-")
		}
	}
	return name
}
