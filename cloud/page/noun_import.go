package page

import (
	"bytes"
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/job"
	"github.com/postern-io/postern/cloud/locale"
)

// ImportPath is where files with new records are sent to, MaxImport the bytes of such a
// request.
const (
	ImportPath   = ConsolePath + "/{noun}/import"
	MaxImport    = catalog.MaxUpload + 64<<10
	templatePath = ConsolePath + "/{noun}/template.csv"
)

// importForm is the form for a file.
type importForm struct {
	workFrame
	Heading, Noun, Action, Back, Template, Hint string
}

// imports reports whether a visitor may import records of a noun.
func (p nounPages) imports(c context.Context, v visitor, n *catalog.Noun) bool {
	o := p.cfg.Catalog.Find(n.Create)
	return o != nil && o.Many > 0 && p.may(c, v, n.Create) && p.mayAny(c, v, "jobs.import")
}

// importAt is a noun that the visitor may import; otherwise what to show instead has
// been shown.
func (p jobPages) importAt(c context.Context, ctx *fasthttp.RequestCtx) (v visitor, n *catalog.Noun, ok bool) {
	if v, n, ok = p.nounAt(c, ctx); !ok {
		return v, n, false
	}
	if o := p.cfg.Catalog.Find(n.Create); o == nil || o.Many == 0 {
		p.missing(ctx)
		return v, n, false
	}
	if err := p.cfg.Pipeline.May(c, p.cfg.Catalog.Find(n.Create), v.c); err != nil {
		p.refused(ctx, v, err)
		return v, n, false
	}
	return v, n, true
}

// importFile shows the form for a file, or prepares its import.
func (p jobPages) importFile(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), 3*readTime)
	defer cancel()
	v, n, ok := p.importAt(c, ctx)
	if !ok {
		return
	}
	heading := v.T("bulk.import") + ": " + v.T("noun."+n.Name)
	here := ConsolePath + "/" + n.Path
	out := importForm{workFrame: p.work(ctx, v, heading), Heading: heading, Noun: v.T("noun." + n.Name), Action: here + "/import", Back: here, Template: here + "/template.csv", Hint: v.T("bulk.filehint", p.cfg.Catalog.Find(n.Create).Many)}
	again := func(problem string, status int) {
		out.Problem = problem
		p.show(ctx, status, "import.html", out)
	}
	if !ctx.IsPost() {
		again("", fasthttp.StatusOK)
		return
	}
	form, err := ctx.MultipartForm()
	if err != nil || len(form.Value["form"]) != 1 {
		again(v.T("console.expired"), fasthttp.StatusForbidden)
		return
	}
	ctx.PostArgs().Set("form", form.Value["form"][0])
	if !ownForm(ctx, &forStaff) {
		again(v.T("console.expired"), fasthttp.StatusForbidden)
		return
	}
	in := map[string]any{"noun": n.Name, "file": []byte{}}
	if list := form.File["file"]; len(list) == 1 {
		f, err := list[0].Open()
		if err != nil {
			p.trouble(ctx, err)
			return
		}
		raw, err := io.ReadAll(f)
		_ = f.Close()
		if err != nil {
			p.trouble(ctx, err)
			return
		}
		if !strings.HasPrefix(http.DetectContentType(raw), "text/") {
			again(v.T("bulk.notcsv"), fasthttp.StatusUnprocessableEntity)
			return
		}
		in["file"], in["name"] = raw, outside(filepath.Base(list[0].Filename), 150)
	}
	p.prepared(c, ctx, v, "jobs.import", in, func(problem string) { again(problem, fasthttp.StatusUnprocessableEntity) })
}

// template is an empty file with all columns of a noun.
func (p jobPages) template(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, n, ok := p.importAt(c, ctx)
	if !ok {
		return
	}
	var head []string
	for _, required := range []bool{true, false} {
		for _, f := range job.FlatColumns(p.cfg.Catalog.Find(n.Create)) {
			if f.Required == required {
				head = append(head, noFormula(job.Label(locale.Word, v.Lang, f.Path)))
			}
		}
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(head)
	w.Flush()
	ctx.SetContentType("text/csv; charset=utf-8")
	ctx.Response.Header.Set("Content-Disposition", `attachment; filename="`+n.Path+`-template.csv"`)
	ctx.SetBodyString("\ufeff" + b.String()) // spreadsheets take it for UTF-8 then
}
