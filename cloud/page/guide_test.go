package page_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/api"
	otepdocs "github.com/postern-io/postern/cloud/docs/otep"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
)

var guidePaths = []string{"", "/spec", "/codebook", "/examples", "/vocab", "/code-lists/OtepEventCode", "/validate"}

func TestEveryGuidePageInEveryLanguage(t *testing.T) {
	ring.SkipUnlessCheck(t, "one language; this one walks over all of them")
	t.Parallel()
	r := newRig(t, nil)
	for _, l := range locale.All() {
		for _, path := range guidePaths {
			g := r.do("GET", otepdocs.Path+path, nil, "Accept-Language", l.Code)
			require.Equal(t, 200, g.status, path)
			require.Equal(t, "text/html; charset=utf-8", g.header("Content-Type"))
			require.Contains(t, g.body, `<html lang="`+l.Code+`">`)
			require.Equal(t, 1, strings.Count(g.body, "<h1"), path)
			require.Contains(t, g.body, `<main id="main"`)
			require.NotContains(t, g.body, `name="robots"`)
			for _, bad := range []string{"ZgotmplZ", "%!", ">guide.", ">check.", ">col.", "<style"} {
				require.NotContains(t, g.body, bad, path)
			}
			require.NotRegexp(t, `\s(style|on[a-z]+)=`, g.body, path)
			require.NotRegexp(t, `<script(?:>|[^>]*>[^<])`, g.body, path)
			require.NotRegexp(t, `(?:src|href|action)="(?:https?:)?//`, g.body, path)
			ids := map[string]bool{}
			for _, m := range regexp.MustCompile(`\sid="([^"]+)"`).FindAllStringSubmatch(g.body, -1) {
				require.False(t, ids[m[1]], "%s has two of %s", path, m[1])
				ids[m[1]] = true
			}
		}
	}
}

// Links of the guide lead somewhere, down to the anchor.
func TestGuideLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	bodies := map[string]string{}
	get := func(path string) string {
		if b, ok := bodies[path]; ok {
			return b
		}
		g := r.do("GET", path, nil)
		require.Equal(t, 200, g.status, path)
		bodies[path] = g.body
		return g.body
	}
	link := regexp.MustCompile(`href="([^"?]*?)(?:#([^"]*))?"`)
	seen := 0
	for _, path := range guidePaths {
		for _, m := range link.FindAllStringSubmatch(get(otepdocs.Path+path), -1) {
			to := m[1]
			if to == "" {
				to = otepdocs.Path + path
			}
			if body := get(to); m[2] != "" {
				seen++
				require.Contains(t, body, ` id="`+m[2]+`"`, "%s links to %s#%s", path, to, m[2])
			}
		}
	}
	require.Greater(t, seen, 300)
	require.Contains(t, r.do("GET", "/", nil).body, `href="`+otepdocs.Path+`"`, "pages link to the guide")
}

// Addresses that our documents point to are there.
func TestAddressesInDocumentsAreThere(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	vocab, list := r.do("GET", otepdocs.Path+"/vocab", nil).body, r.do("GET", otepdocs.Path+"/code-lists/OtepEventCode", nil).body
	for _, term := range projection.Terms() {
		require.Contains(t, vocab, ` id="`+term.Name+`"`)
	}
	for _, c := range otep.Vocabulary() {
		for _, profile := range otep.Profiles() {
			require.Contains(t, vocab, ` id="`+strings.TrimPrefix(c.URI(profile), "otep:")+`"`)
		}
	}
	for _, phase := range otep.Phases() {
		require.Contains(t, vocab, ` id="phase:`+phase+`"`)
	}
	for _, c := range projection.OwnEventCodes() {
		require.Contains(t, list, ` id="`+c+`"`)
	}
	require.Equal(t, len(projection.OwnEventCodes()), strings.Count(list, `class="card" id="`))
}

func TestGuideTablesHaveEveryRowOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	spec, book, examples := r.do("GET", otepdocs.Path+"/spec", nil).body, r.do("GET", otepdocs.Path+"/codebook", nil).body, r.do("GET", otepdocs.Path+"/examples", nil).body
	for _, rule := range otep.Rules() {
		require.Equal(t, 1, strings.Count(spec, `<tr id="`+rule.ID+`">`))
	}
	require.Equal(t, len(otep.Rules()), len(regexp.MustCompile(`<tr id="V\d\d">`).FindAllString(spec, -1)))
	for _, c := range otep.Vocabulary() {
		require.Equal(t, 1, strings.Count(book, ` id="`+string(c.Code)+`"`))
		require.Contains(t, book, "<code>"+c.Amazon+"</code>")
	}
	require.Equal(t, len(otep.Vocabulary()), strings.Count(book, "<article"))
	require.Equal(t, len(otep.Reasons()), strings.Count(book, ` id="reason-`))
	require.Equal(t, len(otep.SourceTypes()), strings.Count(book, ` id="source-`))
	require.Equal(t, len(otep.Sensors()), strings.Count(book, ` id="reading-`))
	require.Equal(t, len(otep.Profiles()), strings.Count(book, ` id="profile-`))
	require.Equal(t, len(otep.Phases()), strings.Count(book, ` id="phase-`))
	for _, f := range projection.Formats() {
		require.Contains(t, examples, ` id="`+f.Name+`"`)
	}
	require.Equal(t, len(projection.Formats()), strings.Count(examples, `class="example"`))
	moves := 0
	for _, c := range otep.Vocabulary() {
		moves += len(otep.Next(c.Code))
	}
	transitions := spec[strings.Index(spec, `<dl class="moves">`):strings.Index(spec, `<table class="rules">`)]
	require.Equal(t, moves+20, strings.Count(transitions, `class="chip"`), "each valid move, and each code once")
}

// The operations that the guide tells of are those that there are.
func TestGuideCallsAreTheOperations(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, op := range api.New(api.Config{}).Operations() {
		if strings.HasPrefix(op.Path, "/api/v1/otep/") {
			want = append(want, op.Method+" "+op.Path)
		}
	}
	g, err := otepdocs.New("")
	require.NoError(t, err)
	for _, c := range g.View(locale.English).Calls {
		got = append(got, c.Method+" "+c.Path)
	}
	require.ElementsMatch(t, want, got)
}

func TestGuideFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *page.Config) { c.BaseURL = "https://tms.example" })
	g := r.do("GET", otepdocs.Path+"/schema.json", nil)
	require.Equal(t, "application/schema+json", g.header("Content-Type"))
	require.Equal(t, string(otep.Schema()), g.body)
	g = r.do("GET", otepdocs.Path+"/codebook.json", nil, "Accept-Language", "de")
	require.Equal(t, "application/json", g.header("Content-Type"))
	require.Equal(t, string(otep.Codebook()), g.body)
	g = r.do("GET", otepdocs.Path+"/spec.md", nil, "Accept-Language", "de")
	require.Equal(t, "text/markdown; charset=utf-8", g.header("Content-Type"))
	require.Contains(t, g.body, "Regeln der Konformität")
	require.NotContains(t, g.body, "<html")
	g = r.do("GET", otepdocs.Path+"/skill", nil)
	require.Equal(t, "text/markdown; charset=utf-8", g.header("Content-Type"))
	require.Contains(t, g.body, "https://tms.example/api/v1/otep/validate")
	require.Contains(t, r.do("GET", otepdocs.Path+"/examples", nil).body, "https://tms.example/api/v1/otep/trackings/SR123456789")
}

func TestGuideIsCachedByItsTag(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, path := range append([]string{"/spec.md", "/skill", "/schema.json", "/codebook.json"}, guidePaths[:6]...) {
		g := r.do("GET", otepdocs.Path+path, nil)
		tag := g.header("ETag")
		require.NotEmpty(t, tag, path)
		again := r.do("GET", otepdocs.Path+path, nil, "If-None-Match", tag)
		require.Equal(t, 304, again.status, path)
		require.Empty(t, again.body)
		require.Equal(t, tag, again.header("ETag"))
		require.Equal(t, 200, r.do("GET", otepdocs.Path+path, nil, "If-None-Match", `"other"`).status)
		zipped := r.do("GET", otepdocs.Path+path, nil, "Accept-Encoding", "gzip")
		require.Equal(t, "gzip", zipped.header("Content-Encoding"))
		require.NotEqual(t, tag, zipped.header("ETag"))
		z, err := gzip.NewReader(strings.NewReader(zipped.body))
		require.NoError(t, err)
		plain, err := io.ReadAll(z)
		require.NoError(t, err)
		require.Equal(t, g.body, string(plain), path)
		require.Equal(t, 304, r.do("GET", otepdocs.Path+path, nil, "Accept-Encoding", "gzip", "If-None-Match", "W/"+zipped.header("ETag")).status)
		require.Contains(t, g.header("Vary"), "Accept-Language")
	}
	head := r.do("HEAD", otepdocs.Path, nil)
	require.Equal(t, 200, head.status)
	require.Empty(t, head.body)
	require.Equal(t, otepdocs.Path, strings.TrimPrefix(r.do("GET", otepdocs.Path+"/", nil).header("Location"), "http://cloud.test"), "a slash too many")
	english := r.do("GET", otepdocs.Path, nil).header("ETag")
	require.Equal(t, 200, r.do("GET", otepdocs.Path, nil, "Accept-Language", "fr", "If-None-Match", english).status, "another language is another page")
}

func TestGuideRefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, path := range []string{"/nothing", "/spec/x", "/code-lists/Other", "/spec.html"} {
		require.Equal(t, 404, r.do("GET", otepdocs.Path+path, nil).status, path)
	}
	for _, path := range append([]string{"/schema.json", "/skill"}, guidePaths[:6]...) {
		require.Equal(t, 405, r.do("POST", otepdocs.Path+path, url.Values{}).status, path)
	}
	require.Equal(t, 405, r.do("DELETE", otepdocs.Path+"/validate", nil).status)
	require.Contains(t, r.do("GET", "/api/otep-guides", nil).header("Content-Type"), "application/json", "beside it the interface answers")
	require.Contains(t, r.do("GET", "/api/v1/nothing", nil).header("Content-Type"), "application/json")
}

func TestValidatorWithoutScript(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	post := func(text string, headers ...string) got {
		return r.do("POST", otepdocs.Path+"/validate", url.Values{"timeline": {text}}, headers...)
	}
	g := post(otepdocs.Faulty(), "Accept-Language", "de")
	require.Equal(t, 200, g.status)
	require.Equal(t, "no-store", g.header("Cache-Control"))
	report, err := otep.Validate([]byte(otepdocs.Faulty()), time.Now())
	require.NoError(t, err)
	require.Contains(t, g.body, "Nicht konform")
	for _, e := range report.Errors {
		for _, want := range []string{">" + e.Rule + "<", "<code>" + e.Path + "</code>", escaped(e.Message), escaped(locale.Hint("de", e.Rule, e.Args...))} {
			require.Contains(t, g.body, want)
		}
	}
	g = post(otepdocs.Sample())
	require.Contains(t, g.body, `class="card seal yes"`)
	require.NotContains(t, g.body, `class="findings bad"`)
	require.Regexp(t, `<textarea[^>]*>[^<]*Toronto Hub`, r.do("GET", otepdocs.Path+"/validate?sample=sound", nil).body)

	g = post(`</textarea><script>alert(1)</script>`)
	require.Equal(t, 400, g.status)
	require.NotContains(t, g.body, "<script>alert")
	require.Contains(t, g.body, escaped(locale.Error("en", "OTEP_INVALID_JSON")))
	require.Contains(t, post("{\"a\":1,\n\"b\":x}").body, `<code lang="en">2:5 invalid character &#39;x&#39; looking for beginning of value</code>`)
	require.Equal(t, 400, post("").status)
	require.Equal(t, 413, post(strings.Repeat(" ", 10)+`{"a":"`+strings.Repeat("x", otep.MaxValidateBytes)+`"}`).status)
}

// escaped is a text as it stands in a page.
func escaped(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "+", "&#43;").Replace(s)
}

// Browsers send the form in parts.
func TestValidatorTakesAFormInParts(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	require.NoError(t, w.WriteField("timeline", otepdocs.Faulty()))
	require.NoError(t, w.Close())
	var req fasthttp.Request
	var resp fasthttp.Response
	req.Header.SetMethod("POST")
	req.SetRequestURI("http://cloud.test" + otepdocs.Path + "/validate")
	req.Header.SetContentType(w.FormDataContentType())
	req.SetBody(b.Bytes())
	require.NoError(t, r.c.DoTimeout(&req, &resp, 30*time.Second))
	require.Equal(t, 200, resp.StatusCode())
	require.Contains(t, string(resp.Body()), "Not conformant")
}

func TestValidatorIsLimited(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *page.Config) { c.PerMinute = 1 })
	form := url.Values{"timeline": {otepdocs.Sample()}}
	require.Equal(t, 200, r.do("POST", otepdocs.Path+"/validate", form).status)
	g := r.do("POST", otepdocs.Path+"/validate", form)
	require.Equal(t, 429, g.status)
	require.NotEmpty(t, g.header("Retry-After"))
	require.Equal(t, 200, r.do("GET", otepdocs.Path, nil).status, "reading is not limited")
}

// What a page shows of a document is that document.
func TestMarkedDocumentsStayThemselves(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	body := r.do("GET", otepdocs.Path+"/examples", nil).body
	g, err := otepdocs.New("")
	require.NoError(t, err)
	tags := regexp.MustCompile(`<[^>]*>`)
	shown := regexp.MustCompile(`(?s)<pre class="json tall"[^>]*>(.*?)</pre>`).FindAllStringSubmatch(body, -1)
	require.Len(t, shown, len(g.Examples))
	for i, m := range shown {
		text := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&amp;", "&").Replace(tags.ReplaceAllString(m[1], ""))
		require.Equal(t, g.Examples[i].Body, text)
		require.True(t, json.Valid([]byte(text)))
	}
}
