package page

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	otepdocs "github.com/postern-io/postern/cloud/docs/otep"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/protocol/otep"
)

// The public description of the tracking protocol. Its pages depend on nothing
// but the language, so each is made once, when it is first asked for.

type guidePage struct {
	frame
	G     otepdocs.View
	Here  string // name of this page
	Check check
}

// Ordered counts the phases that have a place in the order, Beside the others.
func (g guidePage) Ordered() int { return len(g.G.Phases) - g.Beside() }

// Beside counts the phases beside the order.
func (g guidePage) Beside() (n int) {
	for _, p := range g.G.Phases {
		if p.Order == 0 {
			n++
		}
	}
	return n
}

// check is the validator's form and what it said.
type check struct {
	Text    string
	Sound   string // samples to try
	Faulty  string
	Problem string // why there is no verdict
	At      string // in a text that is no JSON: line, column, what is wrong
	Verdict *tracking.Conformance
}

// guides is the guide with what was made of it.
type guides struct {
	guide *otepdocs.Guide
	mu    sync.Mutex
	made  map[string]*made // by page and language; both come from our own lists
}

type made struct {
	kind       string
	body, gzip []byte
	tag        string
}

const (
	typeHTML     = "text/html; charset=utf-8"
	typeMarkdown = "text/markdown; charset=utf-8"
	typeJSON     = "application/json"
	typeSchema   = "application/schema+json"
)

// guideName is a page: its name, where it stands under the guide, and the key
// of its title.
type guideName struct{ name, path, title string }

var guideNames = []guideName{
	{"overview", "", "guide.title"}, {"spec", "/spec", "guide.spec"}, {"codebook", "/codebook", "guide.codebook"}, {"examples", "/examples", "guide.examples"},
	{"vocab", "/vocab", "guide.vocab"}, {"codelist", "/code-lists/OtepEventCode", "guide.vocab"},
}

func (p guidePages) guideRoutes(r *router.Router) error {
	g, err := otepdocs.New(p.cfg.BaseURL)
	if err != nil {
		return err
	}
	p.guides = &guides{guide: g, made: map[string]*made{}}
	get := func(path string, h fasthttp.RequestHandler) {
		r.GET(otepdocs.Path+path, h)
		r.HEAD(otepdocs.Path+path, h)
	}
	for _, n := range guideNames {
		get(n.path, p.guidePage(n))
	}
	get("/spec.md", p.guideFile("spec.md", typeMarkdown, func(lang string) ([]byte, error) { return text(g.Spec(lang)) }))
	get("/skill", p.guideFile("skill", typeMarkdown, func(string) ([]byte, error) { return text(g.Skill()) }))
	get("/schema.json", p.guideFile("schema.json", typeSchema, func(string) ([]byte, error) { return otep.Schema(), nil }))
	get("/codebook.json", p.guideFile("codebook.json", typeJSON, func(string) ([]byte, error) { return otep.Codebook(), nil }))
	get("/validate", p.checker)
	r.POST(otepdocs.Path+"/validate", p.checker)
	return nil
}

func text(s string, err error) ([]byte, error) { return []byte(s), err }

// guidePage answers with a page of the guide.
func (p guidePages) guidePage(n guideName) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		f := p.guideFrame(ctx, n.title, otepdocs.Path+n.path)
		m, err := p.guides.cached(n.name+" "+f.Lang, typeHTML, func() ([]byte, error) {
			var b bytes.Buffer
			err := p.tmpl.ExecuteTemplate(&b, "guide_"+n.name+".html", p.guideView(f, n.name))
			return b.Bytes(), err
		})
		p.guideAnswer(ctx, m, err)
	}
}

// guideFile answers with a file of the guide, in the caller's language where
// it has one.
func (p guidePages) guideFile(name, kind string, body func(lang string) ([]byte, error)) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		lang := p.guideFrame(ctx, "", "").Lang
		m, err := p.guides.cached(name+" "+lang, kind, func() ([]byte, error) { return body(lang) })
		p.guideAnswer(ctx, m, err)
	}
}

// guideFrame is the frame of a page that is the same for everybody.
func (p guidePages) guideFrame(ctx *fasthttp.RequestCtx, title, path string) frame {
	f := p.frame(ctx, title)
	f.Path, f.Made, f.Robots, f.Kit = path, time.Time{}, true, []string{"guide"}
	return f
}

func (p guidePages) guideView(f frame, name string) guidePage {
	v := guidePage{frame: f, G: p.guides.guide.View(f.Lang), Here: name}
	v.Check = check{Text: otepdocs.Faulty(), Sound: otepdocs.Sample(), Faulty: otepdocs.Faulty()}
	return v
}

// cached gives the text of a key, made by body when it is not there yet.
func (g *guides) cached(key, kind string, body func() ([]byte, error)) (*made, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.made[key]; m != nil {
		return m, nil
	}
	b, err := body()
	if err != nil {
		return nil, err
	}
	m, err := newMade(kind, b)
	if err == nil {
		g.made[key] = m
	}
	return m, err
}

// newMade is a page or a file with its compressed form and its tag.
func newMade(kind string, b []byte) (*made, error) {
	sum := sha256.Sum256(b)
	m := &made{kind: kind, body: b, tag: hex.EncodeToString(sum[:12])}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	m.gzip = z.Bytes()
	return m, nil
}

// guideAnswer sends what was made, or word that the caller has it. Caches ask
// each time: a page names assets by their version.
func (p guidePages) guideAnswer(ctx *fasthttp.RequestCtx, m *made, err error) {
	if err != nil {
		p.trouble(ctx, err)
		return
	}
	h := &ctx.Response.Header
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept-Language, Cookie, Accept-Encoding")
	body, tag := m.body, m.tag
	if ctx.Request.Header.HasAcceptEncoding("gzip") {
		h.Set("Content-Encoding", "gzip")
		body, tag = m.gzip, m.tag+"-gzip" // another representation (RFC 9110 8.8.3.3)
	}
	h.Set("ETag", `"`+tag+`"`)
	if holds(string(ctx.Request.Header.Peek("If-None-Match")), m.tag) {
		h.Del("Content-Encoding")
		ctx.SetStatusCode(fasthttp.StatusNotModified)
		return
	}
	ctx.SetContentType(m.kind)
	ctx.SetBody(body)
}

// holds reports whether an If-None-Match header holds a tag, of either
// representation.
func holds(header, tag string) bool {
	for item := range strings.SplitSeq(header, ",") {
		item = strings.Trim(strings.TrimPrefix(strings.TrimSpace(item), "W/"), `"`)
		if item == "*" || strings.TrimSuffix(item, "-gzip") == tag {
			return true
		}
	}
	return false
}

// checker is the validator for people whose browser runs no script.
func (p guidePages) checker(ctx *fasthttp.RequestCtx) {
	v := p.guideView(p.guideFrame(ctx, "check.title", otepdocs.Path+"/validate"), "validate")
	if string(ctx.QueryArgs().Peek("sample")) == "sound" {
		v.Check.Text = v.Check.Sound
	}
	if !ctx.IsPost() {
		p.show(ctx, fasthttp.StatusOK, "guide_validate.html", v)
		return
	}
	if !p.limited(ctx) {
		return
	}
	v.Check.Text = strings.TrimSpace(string(ctx.FormValue("timeline")))
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	verdict, err := p.cfg.Tracking.Validate(c, cloud.Caller{Language: v.Lang}, tracking.ValidateInput{Body: []byte(v.Check.Text)})
	var shown *cloud.Error
	switch {
	case err == nil:
		v.Check.Verdict = &verdict
		p.show(ctx, fasthttp.StatusOK, "guide_validate.html", v)
	case errors.As(err, &shown):
		v.Check.Problem = locale.Error(v.Lang, shown.Code)
		if at := shown.Details; at["line"] != nil {
			v.Check.At = fmt.Sprintf("%v:%v %v", at["line"], at["column"], at["problem"])
		}
		status := fasthttp.StatusBadRequest
		if shown.Kind == cloud.TooLarge {
			status, v.Check.Text = fasthttp.StatusRequestEntityTooLarge, ""
		}
		p.show(ctx, status, "guide_validate.html", v)
	default:
		p.trouble(ctx, err)
	}
}

// JSON is a document with its parts marked for reading.
func (f frame) JSON(s string) template.HTML { return marked(s) }

// marked escapes a JSON document and puts its members, texts, numbers and
// words into spans of the classes k, s, n and w.
func marked(s string) template.HTML {
	var b strings.Builder
	span := func(class, part string) {
		b.WriteString(`<span class="` + class + `">` + template.HTMLEscapeString(part) + `</span>`)
	}
	for i := 0; i < len(s); {
		end := i + 1
		switch c := s[i]; {
		case c == '"':
			for end < len(s) && s[end] != '"' {
				if s[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(s))
			class := "s"
			if strings.HasPrefix(s[end:], ":") {
				class = "k"
			}
			span(class, s[i:end])
		case c == '-' || c >= '0' && c <= '9':
			end = i + len(s[i:]) - len(strings.TrimLeft(s[i:], "+-.0123456789eE"))
			span("n", s[i:end])
		case c >= 'a' && c <= 'z':
			end = i + len(s[i:]) - len(strings.TrimLeft(s[i:], "abcdefghijklmnopqrstuvwxyz"))
			span("w", s[i:end])
		default:
			b.WriteString(template.HTMLEscapeString(s[i:end]))
		}
		i = end
	}
	return template.HTML(b.String()) //nolint:gosec // every part was escaped above
}
