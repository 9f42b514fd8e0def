package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/locale"
)

// The interface's description for people, made of the OpenAPI document that
// programs read. It depends on nothing but the language.

const docsPath = "/docs"

type docsPage struct {
	frame
	Release string
	Areas   []area
	Count   int
	Limits  []docsLimit
}

// docsLimit is one limit with its name in the settings.
type docsLimit struct {
	Name string
	N    int // calls a minute; negative: no limit
}

// area is the operations of one interface area.
type area struct {
	Name, Anchor string
	Ops          []docsOp
}

// docsOp is one operation as it is shown.
type docsOp struct {
	ID, Method, Path, Summary, Risk string
	Description                     string
	Open, Anyone                    bool // no token is looked at; none is needed
	Who, Scopes, Codes              []string
	Params, Body, Answer            []part
	Media                           []string // types of the body
	Status                          string
	Example                         string // of the body, as JSON
}

// described is what is read of the document.
type described struct {
	Info       struct{ Version string }
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
	Parameters  []struct {
		Name, In, Description string
		Required              bool
		Schema                *schema
	}
	RequestBody *content
	Responses   map[string]content
}

type content struct {
	Content map[string]struct {
		Schema  *schema
		Example json.RawMessage
	}
}

// readInterface reads an OpenAPI document into what the page shows.
func readInterface(document []byte) (docsPage, error) {
	var d described
	if err := json.Unmarshal(document, &d); err != nil {
		return docsPage{}, fmt.Errorf("read the interface's description: %w", err)
	}
	out := docsPage{Release: d.Info.Version}
	byArea := map[string][]docsOp{}
	for path, methods := range d.Paths {
		for method, o := range methods {
			name := "" // one without an area stands with its like
			if len(o.Tags) > 0 {
				name = o.Tags[0]
			}
			byArea[name] = append(byArea[name], d.show(strings.ToUpper(method), path, o))
			out.Count++
		}
	}
	for _, t := range d.Tags {
		ops := byArea[t.Name]
		if len(ops) == 0 {
			continue
		}
		slices.SortFunc(ops, func(a, b docsOp) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method)) })
		out.Areas = append(out.Areas, area{t.Name, "area-" + strings.ReplaceAll(t.Name, " ", "-"), ops})
	}
	return out, nil
}

// show is one operation for people.
func (d *described) show(method, path string, o operation) docsOp {
	out := docsOp{ID: o.ID, Method: method, Path: path, Summary: o.Summary, Description: o.Description, Risk: o.Risk, Who: o.Types, Scopes: o.Scopes, Codes: o.Codes}
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
			good, out.Answer = append(good, status), d.parts(r.Content[typeJSON].Schema)
		}
	}
	for i := range out.Answer {
		out.Answer[i].Required = false // callers are to give nothing here
	}
	slices.Sort(good)
	out.Status = strings.Join(good, ", ")
	return out
}

func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Indent(&b, raw, "", "  ") != nil {
		return ""
	}
	return b.String()
}

// opView is one operation with the page that it is on; partsView some parts.
type opView struct {
	docsPage
	O docsOp
}

type partsView struct {
	docsPage
	Parts []part
}

// Op and With are what parts of the page are made from.
func (f docsPage) Op(o docsOp) opView          { return opView{f, o} }
func (f docsPage) With(parts []part) partsView { return partsView{f, parts} }

// E is what an error code says in the page's language; what is only known at
// the time it happens is left open.
func (f docsPage) E(code string) string {
	return strings.NewReplacer("%s", "…", "%d", "…", "%v", "…").Replace(locale.Error(f.Lang, code))
}

// Known reports whether a code has a message of its own.
func (f docsPage) Known(code string) bool { return locale.HasError(code) }

// Short reports whether an answer is shown unfolded.
func (o docsOp) Short() bool { return len(o.Answer) <= 12 }

// JSON is a document with its parts marked for reading.
func (o docsOp) JSON() template.HTML { return marked(o.Example) }

// docs answers with the page that read gives.
func (p guidePages) docs(read func() (docsPage, error)) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		f := p.frame(ctx, "docs.title")
		f.Path, f.Made, f.Robots, f.Kit = docsPath, time.Time{}, true, []string{"guide", "docs"}
		m, err := p.guides.cached("docs "+f.Lang, typeHTML, func() ([]byte, error) {
			shown, err := read()
			if err != nil {
				return nil, err
			}
			var b bytes.Buffer
			shown.frame = f
			err = p.tmpl.ExecuteTemplate(&b, "docs.html", shown)
			return b.Bytes(), err
		})
		p.guideAnswer(ctx, m, err)
	}
}
