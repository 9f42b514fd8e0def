package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/docs/code"
	"github.com/postern-io/postern/cloud/locale"
)

// The interface's description for people, made of the OpenAPI document that programs
// read: an index of operations with a search, a page of each operation, and the
// changelog. It depends on nothing but the language and what is searched for.

const (
	docsPath      = "/docs"
	docsOpPath    = docsPath + "/operations/{name}"
	changelogPath = docsPath + "/changelog"
)

// docsModel is what is read of the document, once.
type docsModel struct {
	Release string
	Base    string // where the server is reached
	Areas   []docsArea
	Count   int
	Limits  []docsLimit
	ops     map[string]*docsOp
}

// docsLimit is one limit with its name in the settings.
type docsLimit struct {
	Name string
	N    int // calls a minute; negative: no limit
}

// docsArea is the operations of one interface area.
type docsArea struct {
	Name, Anchor string
	Ops          []*docsOp
}

// docsOp is one operation as it is shown.
type docsOp struct {
	ID, Method, Path, Summary, Risk string
	Area, AreaAnchor                string
	Description                     string
	Open, Anyone                    bool // no token is looked at; none is needed
	Who, Scopes, Codes              []string
	Params, Body, Answer            []part
	Media                           []string // types of the body
	Status                          string
	Example                         string // of the body, as JSON
	Answered                        string // example of the answer, as JSON
	Programs                        []docsProgram
	words                           string // by which it is found, in small letters
}

// docsProgram is the example of an operation in a programming language.
type docsProgram struct{ ID, Name, Text string }

// described is what is read of the document.
type described struct {
	Info       struct{ Version string }
	Servers    []struct{ URL string }
	Tags       []struct{ Name string }
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]*schema }
}

type operation struct {
	ID          string   `json:"operationId"`
	Summary     string   `json:"summary"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Risk        string   `json:"x-ai-risk"`
	Types       []string `json:"x-account-types"`
	Scopes      []string `json:"x-scopes"`
	Codes       []string `json:"x-error-codes"`
	Security    []map[string]any
	Parameters  []parameter
	RequestBody *content
	Responses   map[string]content
}

type parameter struct {
	Name, In, Description string
	Required              bool
	Schema                *schema
	Example               any
}

type content struct {
	Content map[string]struct {
		Schema  *schema
		Example json.RawMessage
	}
}

// readInterface reads an OpenAPI document into what the pages show.
func readInterface(document []byte) (*docsModel, error) {
	var d described
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, fmt.Errorf("read the interface's description: %w", err)
	}
	out := &docsModel{Release: d.Info.Version, Base: "https://cloud.example.com", ops: map[string]*docsOp{}}
	if len(d.Servers) > 0 && strings.Contains(d.Servers[0].URL, "://") {
		out.Base = strings.TrimRight(d.Servers[0].URL, "/")
	}
	byArea := map[string][]*docsOp{}
	for path, methods := range d.Paths {
		for method, o := range methods {
			area := "" // one without an area stands with its like
			if len(o.Tags) > 0 {
				area = o.Tags[0]
			}
			op := d.show(out.Base, strings.ToUpper(method), path, o)
			op.Area, op.AreaAnchor = area, areaAnchor(area)
			op.words = strings.ToLower(strings.Join(slices.Concat([]string{op.ID, op.Method, op.Path, op.Summary, op.Description, area}, op.Who, op.Scopes, op.Codes), " "))
			byArea[area] = append(byArea[area], op)
			out.ops[op.ID] = op
			out.Count++
		}
	}
	for _, t := range d.Tags {
		ops := byArea[t.Name]
		if len(ops) == 0 {
			continue
		}
		slices.SortFunc(ops, func(a, b *docsOp) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method)) })
		out.Areas = append(out.Areas, docsArea{t.Name, areaAnchor(t.Name), ops})
	}
	return out, nil
}

func areaAnchor(name string) string { return "area-" + strings.ReplaceAll(name, " ", "-") }

// show is one operation for people.
func (d *described) show(base, method, path string, o operation) *docsOp {
	out := &docsOp{ID: o.ID, Method: method, Path: path, Summary: o.Summary, Description: o.Description, Risk: o.Risk, Who: o.Types, Scopes: o.Scopes, Codes: o.Codes}
	out.Open = len(o.Security) == 0
	out.Anyone = !out.Open && len(o.Security[0]) == 0
	for _, p := range o.Parameters {
		one := d.part(p.Name, p.Schema, p.Required)
		one.In, one.Doc = p.In, cmp.Or(p.Description, one.Doc)
		out.Params = append(out.Params, one)
	}
	if o.RequestBody != nil {
		for kind, m := range o.RequestBody.Content {
			out.Media = append(out.Media, kind)
			if kind == typeJSON || len(o.RequestBody.Content) == 1 { // a form
				out.Body = d.parts(m.Schema)
				out.Example = indented(m.Example)
			}
		}
		slices.Sort(out.Media)
	}
	var good []string
	for status, r := range o.Responses {
		if strings.HasPrefix(status, "2") {
			good = append(good, status)
			if shown := d.parts(r.Content[typeJSON].Schema); len(out.Answer) == 0 || status < slices.Min(good) {
				out.Answer = shown
			}
			if e := indented(r.Content[typeJSON].Example); e != "" {
				out.Answered = e
			}
		}
	}
	for i := range out.Answer {
		out.Answer[i].Required = false // callers are to give nothing here
	}
	slices.Sort(good)
	out.Status = strings.Join(good, ", ")
	if c, ok := exampleCall(base, method, path, o, out); ok {
		for _, l := range code.Languages() {
			out.Programs = append(out.Programs, docsProgram{l.ID, l.Name, l.Write(c)})
		}
	}
	return out
}

// exampleCall is the call of an operation's example. ok is false for one whose body is no
// JSON, such as an uploaded file.
func exampleCall(base, method, path string, o operation, shown *docsOp) (c code.Call, ok bool) {
	query := url.Values{}
	c = code.Call{Method: method, Token: !shown.Open && !shown.Anyone}
	for _, p := range o.Parameters {
		text, isText := p.Example.(string)
		if p.Example != nil && !isText {
			raw, err := json.Marshal(p.Example)
			if err != nil || raw[0] == '{' || raw[0] == '[' {
				continue
			}
			text = string(raw)
		}
		switch {
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(cmp.Or(text, p.Name)))
		case p.Example == nil:
		case p.In == "query":
			query.Set(p.Name, text)
		case p.In == "header":
			c.Headers = append(c.Headers, [2]string{p.Name, text})
		}
	}
	c.URL = base + path
	if len(query) > 0 {
		c.URL += "?" + query.Encode()
	}
	if o.RequestBody != nil {
		_, isJSON := o.RequestBody.Content[typeJSON]
		c.Body = shown.Example
		return c, isJSON
	}
	return c, true
}

func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Indent(&b, raw, "", "  ") != nil {
		return ""
	}
	return b.String()
}

// search gives the operations in which every word of a text stands somewhere, by areas.
func (m *docsModel) search(text string) (areas []docsArea, count int) {
	words := strings.Fields(strings.ToLower(text))
	if len(words) == 0 {
		return m.Areas, m.Count
	}
	for _, a := range m.Areas {
		found := docsArea{Name: a.Name, Anchor: a.Anchor}
		for _, o := range a.Ops {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(o.words, w) }) {
				found.Ops = append(found.Ops, o)
			}
		}
		if count += len(found.Ops); len(found.Ops) > 0 {
			areas = append(areas, found)
		}
	}
	return areas, count
}

// docsFrame is what all pages of the description have.
type docsFrame struct {
	frame
	*docsModel
	Q         string // what is searched for
	changelog bool   // there is one
}

// docsIndex lists operations; docsOpPage is the page of one.
type (
	docsIndex struct {
		docsFrame
		Found []docsArea
		Shown int
	}
	docsOpPage struct {
		docsFrame
		O        *docsOp
		Siblings []*docsOp
	}
	docsChangelog struct {
		docsFrame
		Releases []release
	}
	partsView struct {
		docsFrame
		Parts []part
	}
)

// Changes reports whether there is a changelog.
func (f docsFrame) Changes() bool { return f.changelog }

// With is what a list of parts is made from.
func (f docsFrame) With(parts []part) partsView { return partsView{f, parts} }

// OpPath is the address of an operation's page.
func (f docsFrame) OpPath(o *docsOp) string { return docsPath + "/operations/" + o.ID }

// E is what an error code says in the page's language; what is only known at
// the time it happens is left open.
func (f docsFrame) E(code string) string {
	return strings.NewReplacer("%s", "…", "%d", "…", "%v", "…").Replace(locale.Error(f.Lang, code))
}

// Known reports whether a code has a message of its own.
func (f docsFrame) Known(code string) bool { return locale.HasError(code) }

// Short reports whether an answer is shown unfolded.
func (o docsOp) Short() bool { return len(o.Answer) <= 12 }

// JSON is the example of the body with its parts marked for reading, AnsweredJSON that of
// the answer.
func (o docsOp) JSON() template.HTML         { return marked(o.Example) }
func (o docsOp) AnsweredJSON() template.HTML { return marked(o.Answered) }

// maxSearch are the characters that are searched for.
const maxSearch = 120

// docsRoutes are the pages of the description that read gives.
func (p guidePages) docsRoutes(get func(path string, h fasthttp.RequestHandler), read func() (*docsModel, error)) {
	start := func(ctx *fasthttp.RequestCtx, title, path string) (docsFrame, bool) {
		m, err := read()
		if err != nil {
			p.trouble(ctx, err)
			return docsFrame{}, false
		}
		f := p.frame(ctx, title)
		f.Path, f.Made, f.Robots, f.Kit = path, time.Time{}, true, []string{"guide", "docs"}
		return docsFrame{frame: f, docsModel: m, changelog: p.cfg.Changelog != ""}, true
	}
	get(docsPath, func(ctx *fasthttp.RequestCtx) {
		f, ok := start(ctx, "docs.title", docsPath)
		if !ok {
			return
		}
		q := strings.TrimSpace(string(ctx.QueryArgs().Peek("q")))
		if f.Q = clipped(q, maxSearch); f.Q != "" {
			f.Query, f.Robots = url.Values{"q": {f.Q}}.Encode(), false
			found, n := f.search(f.Q)
			p.sendDocs(ctx, "docs.html", docsIndex{f, found, n})
			return
		}
		m, err := p.guides.cached("docs "+f.Lang, typeHTML, func() ([]byte, error) { return p.render("docs.html", docsIndex{f, f.Areas, f.Count}) })
		p.guideAnswer(ctx, m, err)
	})
	get(docsOpPath, func(ctx *fasthttp.RequestCtx) {
		name, _ := ctx.UserValue("name").(string)
		f, ok := start(ctx, "docs.title", docsPath+"/operations/"+name)
		if !ok {
			return
		}
		o := f.ops[name]
		if o == nil {
			p.missing(ctx)
			return
		}
		f.Title = o.ID + " · " + f.Title
		page := docsOpPage{docsFrame: f, O: o}
		for _, a := range f.Areas {
			if a.Name == o.Area {
				page.Siblings = a.Ops
			}
		}
		p.sendDocs(ctx, "docsop.html", page)
	})
	if p.cfg.Changelog == "" {
		return
	}
	get(changelogPath, func(ctx *fasthttp.RequestCtx) {
		f, ok := start(ctx, "docs.changelog", changelogPath)
		if !ok {
			return
		}
		m, err := p.guides.cached("changelog "+f.Lang, typeHTML, func() ([]byte, error) {
			return p.render("docschangelog.html", docsChangelog{f, readChangelog(p.cfg.Changelog)})
		})
		p.guideAnswer(ctx, m, err)
	})
}

// render makes a page.
func (p guidePages) render(name string, data any) ([]byte, error) {
	var b bytes.Buffer
	err := p.tmpl.ExecuteTemplate(&b, name, data)
	return b.Bytes(), err
}

// sendDocs answers with a page that is one of so many that none is kept.
func (p guidePages) sendDocs(ctx *fasthttp.RequestCtx, name string, data any) {
	body, err := p.render(name, data)
	var m *made
	if err == nil {
		m, err = newMade(typeHTML, body)
	}
	p.guideAnswer(ctx, m, err)
}

// clipped is the beginning of a text of at most n characters.
func clipped(s string, n int) string {
	if r := []rune(strings.ToValidUTF8(s, "")); len(r) > n {
		return string(r[:n])
	}
	return strings.ToValidUTF8(s, "")
}
