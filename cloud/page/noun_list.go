package page

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
)

// nounList is the page of a noun's list.
type nounList struct {
	workFrame
	Chips    []pageLink // the states of the records
	Noun     *catalog.Noun
	Heading  string
	Filters  []filter // the usual ones
	Further  []filter
	Filtered bool // any filter is set
	Table    nounTable
	Total    string // in words
	First    string // address of the first page; "" on it
	Next     string // address of the next page; "" on the last
	New      string // address of the form that creates one; "" where the visitor may not
	Others   []verbLink
	Begin    *verbLink // where an empty list leads to; nil for none
	Settings bool      // Begin is the page of settings that such records come of
	CSV      string
	Columns  []choice // that can be shown
	Empty    string
	Views    []savedLink
	Query    string   // of this list, to save
	Saves    bool     // the visitor may save views
	Many     []choice // verbs that the visitor may do to many
	Filter   []pair   // of this list, for all that match
	Import   string   // address of the form for a file; "" where the visitor may not
	Shares   bool
}

// savedLink leads to a saved view.
type savedLink struct {
	ID, To, Text string
	Own, Current bool
}

// nounTable is a table of records.
type nounTable struct {
	Caption string
	Columns []column
	Rows    []tableRow
	Picks   string // what the box of a row says; "" where none are chosen
	More    int    // rows that are not shown
	Keys    string // letters that press verbs of a row, with what its address is followed by: "a=/driver s=/hold"
}

type column struct {
	Path, Text string
	Sort       string // address that sorts by it; "" when that is not offered
	Sorted     string // ascending, descending, ""
}

type tableRow struct {
	To    string // address of the record
	ID    string // where rows can be chosen; "" elsewhere
	Cells []shown
}

// filter is a member of the list's input as a field of a form.
type filter struct {
	Name, Label, Kind string // Kind: choices, date, number, text, search
	Value             string
	Choices           []choice
	State             bool   // it takes the states of records
	Default           string // that the list takes without it, "" for none
}

type choice struct {
	Value, Text string
	Chosen      bool
}

// paging are members of a list's input that no filter shows.
var paging = []string{"page", "per_page", "cursor", "sort", "before", "before_id", "after_id", "limit", "fields", "include"}

// usualFilters are the filters that a list shows at once; the others stand in a menu.
const usualFilters = 5

// csvRows are the most rows of a list as CSV.
const csvRows = 10000

// showNoun shows a noun's list, or its only record.
func (p nounPages) showNoun(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, n, ok := p.nounAt(c, ctx)
	if !ok {
		return
	}
	path, _ := ctx.UserValue("noun").(string)
	switch {
	case n.List == "":
		p.showOnly(c, ctx, v, n)
		return
	case p.cfg.Catalog.Find(n.List).Target() != "" || n.Area == "" && strings.HasSuffix(path, ".csv"):
		p.missing(ctx)
		return
	case strings.HasSuffix(path, ".csv"):
		p.csv(c, ctx, v, n)
		return
	}
	out, err := p.list(c, ctx, v, n)
	if err != nil {
		problem, fields, ok := p.explain(v.Lang, err)
		if !ok {
			p.trouble(ctx, err)
			return
		}
		out.Problem = addFields(v.Lang, problem, fields)
		p.show(ctx, fasthttp.StatusOK, "nounlist.html", out)
		return
	}
	p.savedViews(c, ctx, v, n, &out)
	if p.cfg.Catalog.Find(n.List).Target() == "" {
		followTopics(p.kit, ctx, &out.frame, "list:"+n.Name+"?"+changed(ctx, map[string]string{"lang": ""}))
	}
	p.show(ctx, fasthttp.StatusOK, "nounlist.html", out)
}

// list reads a noun's list with the filters of a request. Where the list cannot be read
// the page has its filters still.
func (p nounPages) list(c context.Context, ctx *fasthttp.RequestCtx, v visitor, n *catalog.Noun) (nounList, error) {
	given, filters := p.filters(c, ctx, v, n)
	out := nounList{workFrame: p.work(ctx, v, v.T("noun."+n.Name)), Noun: n, Heading: v.T("noun." + n.Name), Empty: v.T("noun." + n.Name + ".empty")}
	for _, f := range filters {
		out.Filtered = out.Filtered || f.Value != ""
		if len(out.Filters) < usualFilters || f.Value != "" {
			out.Filters = append(out.Filters, f)
		} else {
			out.Further = append(out.Further, f)
		}
	}
	columns := p.columns(ctx, n)
	query := func(change map[string]string) string { return "?" + changed(ctx, change) }
	out.Chips = stateChips(v.frame, n, filters, query)
	out.CSV = ConsolePath + "/" + n.Path + ".csv" + query(map[string]string{"cursor": "", "lang": ""})
	switch {
	case n.Create == "":
	case p.may(c, v, n.Create):
		out.New = ConsolePath + "/" + n.Path + "/new"
	default: // its words lead to what this visitor may not do
		out.Empty = v.T("work.none")
	}
	for _, name := range n.Others {
		if other := p.cfg.Catalog.Noun(name); other != nil && other.Create != "" && p.may(c, v, other.Create) {
			out.Others = append(out.Others, verbLink{To: ConsolePath + "/" + other.Path + "/new", Text: label(v.Lang, other.Create)})
			if p.imports(c, v, other) {
				out.Import = ConsolePath + "/" + other.Path + "/import"
			}
		}
	}
	if p.imports(c, v, n) {
		out.Import = ConsolePath + "/" + n.Path + "/import"
	}
	if n.Begin == catalog.OwnAccount {
		out.Begin = &verbLink{To: AccountPath, Text: v.T("account.title")}
	}
	if b := p.cfg.Catalog.Noun(n.Begin); b != nil && p.may(c, v, cmp.Or(b.List, b.Find)) {
		out.Settings = b.List == ""
		out.Begin = &verbLink{To: ConsolePath + "/" + b.Path, Text: v.T("noun." + b.Name)}
	}
	if key := "noun." + n.Name + ".empty." + string(v.c.Account.Type); v.T(key) != key { // of who works for others
		out.Empty, out.Begin = v.T(key), nil
	}
	answer, err := p.read(c, ctx, v, n.List, given)
	if err != nil {
		return out, err
	}
	out.Table = p.table(v.frame, n, columns, answer, p.references(c, ctx, v))
	out.Table.Caption = out.Heading
	sorts := p.sorts(n)
	for i := range out.Table.Columns {
		col := &out.Table.Columns[i]
		if !slices.Contains(sorts, col.Path) {
			continue
		}
		now, to := string(ctx.QueryArgs().Peek("sort")), col.Path
		switch now {
		case col.Path:
			col.Sorted, to = "ascending", "-"+col.Path
		case "-" + col.Path:
			col.Sorted = "descending"
		}
		col.Sort = query(map[string]string{"sort": to, "cursor": ""})
	}
	if total := totalOf(v.frame, answer); total != "" {
		out.Total = v.T("work.total", total)
	}
	if len(ctx.QueryArgs().Peek("cursor")) > 0 {
		out.First = query(map[string]string{"cursor": ""})
	}
	if next := plainText(answer["next_cursor"]); next != "" {
		out.Next = query(map[string]string{"cursor": next})
	}
	if p.may(c, v, "saved_views.list") {
		out.Query = changed(ctx, map[string]string{"cursor": "", "lang": "", "page": ""})
		out.Saves, out.Shares = p.may(c, v, "saved_views.create"), slices.Contains(staff, v.c.Account.Type)
	}
	out.Table.Keys = p.rowKeys(c, v, n)
	if out.Many = p.bulkVerbs(c, v, n); len(out.Many) > 0 {
		out.Table.Picks = v.T("bulk.choose")
		for name, x := range ctx.QueryArgs().All() {
			if k := string(name); len(x) > 0 && !slices.Contains([]string{"cursor", "lang", "column", "done", "after", "id", "verb", "all", "sort"}, k) {
				out.Filter = append(out.Filter, pair{k, string(x)})
			}
		}
	}
	shownPaths := columns
	for _, path := range p.offered(n) {
		x := choice{path, memberWords(v.Lang, path), slices.Contains(shownPaths, path)}
		if !slices.ContainsFunc(out.Columns, func(o choice) bool { return o.Text == x.Text }) { // a record's ID and its name are called the same
			out.Columns = append(out.Columns, x)
		}
	}
	return out, nil
}

// totalOf is how many records a list has, in words; "" for a list that is not counted.
func totalOf(f frame, answer map[string]any) string {
	n, err := strconv.ParseFloat(plainText(answer["total"]), 64)
	if err != nil {
		return ""
	}
	text := f.number(n)
	if answer["total_is_lower_bound"] == true {
		text += "+"
	}
	return text
}

// savedViews adds the visitor's saved views of a list.
func (p nounPages) savedViews(c context.Context, ctx *fasthttp.RequestCtx, v visitor, n *catalog.Noun, out *nounList) {
	if !p.may(c, v, "saved_views.list") {
		return
	}
	answer, err := p.read(c, ctx, v, "saved_views.list", map[string]any{"noun": n.Name})
	if err != nil {
		p.log.Error("list saved views", "err", err)
		return
	}
	list, _ := answer["saved_views"].([]any)
	for _, x := range list {
		if r, ok := x.(map[string]any); ok {
			query := plainText(r["query"])
			out.Views = append(out.Views, savedLink{ID: plainText(r["saved_view_id"]), To: ConsolePath + "/" + n.Path + "?" + query, Text: outside(plainText(r["name"]), maxField), Own: r["own"] == true, Current: query == out.Query})
		}
	}
}

// saveView saves or removes a view of a list.
func (p nounPages) saveView(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, n, ok := p.nounAt(c, ctx)
	if !ok {
		return
	}
	if !ownForm(ctx, &forStaff) {
		p.message(ctx, fasthttp.StatusForbidden, "trouble.title", "console.expired")
		return
	}
	args := ctx.PostArgs()
	operation, in := "saved_views.create", map[string]any{"noun": n.Name, "name": string(args.Peek("name")), "query": string(args.Peek("query")), "shared": len(args.Peek("shared")) > 0}
	to := "?" + string(args.Peek("query"))
	if id := string(args.Peek("remove")); id != "" {
		operation, in, to = "saved_views.remove", map[string]any{"id": id}, ""
	}
	who := visitorCaller(p.kit, ctx, v)
	if _, err := p.answerTo(c, who, operation, in, catalog.Key{}); err != nil {
		p.refused(ctx, v, err)
		return
	}
	seeOther(ctx, ConsolePath+"/"+n.Path+to)
}

// changed is the query of a request with some values in place of its own; "" leaves
// one out.
func changed(ctx *fasthttp.RequestCtx, change map[string]string) string {
	q := url.Values{}
	for k, x := range ctx.QueryArgs().All() {
		if _, replaced := change[string(k)]; !replaced && len(x) > 0 && string(k) != "done" && string(k) != "after" {
			q.Add(string(k), string(x))
		}
	}
	for k, x := range change {
		if x != "" {
			q.Set(k, x)
		}
	}
	return q.Encode()
}

// filters are the list's filters with what the request sets, and its input.
func (p nounPages) filters(c context.Context, ctx *fasthttp.RequestCtx, v visitor, n *catalog.Noun) (given map[string]any, list []filter) {
	given = map[string]any{}
	refs := p.references(c, ctx, v)
	args := ctx.QueryArgs()
	for _, name := range []string{"cursor", "sort"} {
		if x := string(args.Peek(name)); x != "" {
			given[name] = x
		}
	}
	for _, m := range p.cfg.Catalog.Find(n.List).Members() {
		if m.Place == "path" || slices.Contains(paging, m.Name) {
			continue
		}
		f := p.filter(v.frame, n, m)
		if list := refs.choices(m.Name); f.Kind == "number" && len(list) > 0 {
			f.Kind, f.Choices = "choices", list
		}
		for _, x := range args.PeekMulti(m.Name) {
			if len(x) > 0 && len(x) <= maxField {
				f.Value = string(x)
			}
		}
		for i := range f.Choices {
			f.Choices[i].Chosen = f.Choices[i].Value == cmp.Or(f.Value, f.Default)
		}
		if f.Value != "" {
			given[m.Name] = f.Value
		}
		list = append(list, f)
	}
	slices.SortStableFunc(list, func(a, b filter) int { return slices.Index(filterKinds, a.Kind) - slices.Index(filterKinds, b.Kind) })
	return given, list
}

// maxChips is the most states of a list that stand as chips when its noun names none.
const maxChips = 6

// stateChips are links that filter a list by one state each, and by none.
func stateChips(f frame, n *catalog.Noun, filters []filter, query func(map[string]string) string) (out []pageLink) {
	for _, x := range filters {
		if !x.State || len(n.Usual) == 0 && len(x.Choices) > maxChips {
			continue
		}
		of := func(value string) string { return query(map[string]string{x.Name: value, "cursor": "", "lang": ""}) }
		for _, c := range x.Choices {
			if len(n.Usual) == 0 || slices.Contains(n.Usual, c.Value) {
				out = append(out, pageLink{of(c.Value), c.Text, c.Chosen})
			}
		}
		switch {
		case len(out) < 2:
		case x.Default != "": // one of the choices is all
			return out
		default:
			return append([]pageLink{{of(""), f.T("todo.all"), x.Value == ""}}, out...)
		}
	}
	return nil
}

// filterKinds are the kinds of filters in the order in which a list shows them.
var filterKinds = []string{"search", "choices", "date", "text", "number"}

// filter is a member of an input as a filter.
func (p nounPages) filter(f frame, n *catalog.Noun, m catalog.Member) filter {
	r := m.Rules()
	t := bare(m.Type)
	out := filter{Name: m.Name, Label: memberWords(f.Lang, m.Name), Kind: "text"}
	if len(r.Enum) > 0 {
		out.Default = r.Default
	}
	enum := r.Enum
	if t.Kind() == reflect.Slice {
		t = bare(t.Elem())
		if r.Item != nil {
			enum = r.Item.Enum
		}
	}
	kind := "value"
	if n.State != "" && (m.Name == n.State || m.Name == n.State+"s" || m.Name == "status" || m.Name == "status_ids") {
		kind, out.State = n.States, true
	}
	if t == reflect.TypeFor[cloud.OrderStatus]() {
		for _, x := range cloud.OrderStates() {
			enum = append(enum, strconv.Itoa(int(x.ID)))
		}
	}
	switch {
	case len(enum) > 0:
		out.Kind = "choices"
		for _, x := range enum {
			text := f.V(kind, x)
			if x == "all" {
				text = f.T("todo.all")
			}
			out.Choices = append(out.Choices, choice{Value: x, Text: text})
		}
	case t.Kind() == reflect.Bool:
		out.Kind = "choices"
		out.Choices = []choice{{Value: "true", Text: f.T("work.yes")}, {Value: "false", Text: f.T("work.no")}}
	case r.Format == "date" || isMoment(r.Format):
		out.Kind = "date"
	case m.Name == "keyword":
		out.Kind = "search"
	case t.Kind() != reflect.String:
		out.Kind = "number"
	}
	return out
}

// bare is a type without pointers.
func bare(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// columns are the paths that a list shows: those of the address, else the noun's.
func (p nounPages) columns(ctx *fasthttp.RequestCtx, n *catalog.Noun) []string {
	offered := p.offered(n)
	var out []string
	for _, x := range ctx.QueryArgs().PeekMulti("column") {
		if path := string(x); slices.Contains(offered, path) && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	if len(out) == 0 {
		return n.Columns
	}
	return out
}

// offered are the paths that a list can show.
func (p nounPages) offered(n *catalog.Noun) []string {
	out := slices.Clone(n.Columns)
	for _, path := range p.cfg.Catalog.Find(n.List).ListedMembers() {
		if !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	return out
}

// sorts are the members that the list sorts by.
func (p nounPages) sorts(n *catalog.Noun) (out []string) {
	for _, m := range p.cfg.Catalog.Find(n.List).Members() {
		if m.Name == "sort" {
			for _, x := range m.Rules().Enum {
				out = append(out, strings.TrimPrefix(x, "-"))
			}
		}
	}
	return out
}

// table lays out the records of a list's answer.
func (p nounPages) table(f frame, n *catalog.Noun, columns []string, answer map[string]any, refs *references) nounTable {
	t := nounTable{}
	for _, path := range columns {
		t.Columns = append(t.Columns, column{Path: path, Text: memberWords(f.Lang, path)})
	}
	member, _ := p.cfg.Catalog.Find(n.List).Listed()
	rows, _ := answer[member].([]any)
	for _, x := range rows {
		record, ok := x.(map[string]any)
		if !ok {
			continue
		}
		row := tableRow{To: recordAddress(n, record), ID: plainText(record[n.ID])}
		for _, path := range columns {
			kind := ""
			if path == n.State {
				kind = n.States
			}
			row.Cells = append(row.Cells, refs.name(path, p.value(f, path, at(record, path), kind)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// csv streams the filtered list, at most csvRows rows. Times are in the business's
// zone, and no cell is a formula.
func (p nounPages) csv(c context.Context, ctx *fasthttp.RequestCtx, v visitor, n *catalog.Noun) {
	given, _ := p.filters(c, ctx, v, n)
	delete(given, "cursor")
	pageSize(p.cfg.Catalog.Find(n.List), csvPage, given)
	columns := p.columns(ctx, n)
	answer, err := p.read(c, ctx, v, n.List, given)
	if err != nil {
		p.refused(ctx, v, err)
		return
	}
	who := visitorCaller(p.kit, ctx, v)
	ctx.SetContentType("text/csv; charset=utf-8")
	ctx.Response.Header.Set("Content-Disposition", `attachment; filename="`+n.Path+"-"+time.Now().In(v.Zone).Format("2006-01-02")+`.csv"`)
	refs := p.references(c, ctx, v)
	again := func(cursor string) (map[string]any, error) {
		c, cancel := context.WithTimeout(context.Background(), readTime)
		defer cancel()
		given["cursor"] = cursor
		a, err := p.answerTo(c, who, n.List, given, catalog.Key{})
		if err != nil {
			return nil, err
		}
		return asObject(a.Body)
	}
	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		out := csv.NewWriter(w)
		var head []string
		for _, path := range columns {
			head = append(head, noFormula(memberWords(v.Lang, path)))
		}
		_ = out.Write(head)
		for written := 0; written < csvRows; {
			t := p.table(v.frame, n, columns, answer, refs)
			for _, r := range t.Rows {
				var line []string
				for _, cell := range r.Cells {
					text := cell.Text
					if cell.At != nil {
						text = cell.At.Full
					}
					line = append(line, noFormula(text))
				}
				_ = out.Write(line)
				written++
			}
			out.Flush()
			next := plainText(answer["next_cursor"])
			if next == "" || w.Flush() != nil || len(t.Rows) == 0 {
				return
			}
			if answer, err = again(next); err != nil {
				p.log.Warn("list as CSV ended early", "noun", n.Name, "err", err)
				_ = out.Write([]string{locale.Word(v.Lang, "work.csv.cut")})
				out.Flush()
				return
			}
		}
	})
}

// csvPage are the records of a list that one call reads for CSV.
const csvPage = 200

// pageSize asks for a number of records, or for as many as the list gives at once; a
// list without pages is asked for nothing.
func pageSize(o *catalog.Operation, most int, in map[string]any) {
	for _, m := range o.Members() {
		if m.Name != "per_page" {
			continue
		}
		if top := m.Rules().Max; top != nil {
			most = min(most, int(*top))
		}
		in["per_page"] = most
	}
}

// noFormula is a cell that no spreadsheet takes for a formula.
func noFormula(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		if _, err := strconv.ParseFloat(s, 64); err != nil {
			return "'" + s
		}
	}
	return s
}

// rowKeys are the letters that press verbs of a row, for what the visitor may do: each
// with what the record's address is followed by.
func (p nounPages) rowKeys(c context.Context, v visitor, n *catalog.Noun) string {
	var out []string
	for _, o := range n.Verbs {
		if key := n.Keys[o]; key != "" && p.may(c, v, o) && !slices.ContainsFunc(out, func(x string) bool { return strings.HasPrefix(x, key+"=") }) {
			out = append(out, key+"=/"+verbPath(n, o))
		}
	}
	return strings.Join(out, " ")
}
