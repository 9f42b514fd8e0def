package page_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/api"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/page"
)

// The page shows every operation of the table with what a caller must know.
func TestDocsShowEveryOperation(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	ops := api.New(api.Config{}).Operations()
	for _, l := range locale.All() {
		g := r.do("GET", "/docs", nil, "Accept-Language", l.Code)
		require.Equal(t, 200, g.status)
		require.Contains(t, g.body, `<html lang="`+l.Code+`">`)
		require.Equal(t, 1, strings.Count(g.body, "<h1"))
		require.Equal(t, len(ops), strings.Count(g.body, `<details class="op"`))
		for _, bad := range []string{"ZgotmplZ", "%!", "%s", ">docs.", "<style", "&lt;nil&gt;"} {
			require.NotContains(t, g.body, bad)
		}
		require.NotRegexp(t, `\s(style|on[a-z]+)=`, g.body)
		require.NotRegexp(t, `<script(?:>|[^>]*>[^<])`, g.body)
		require.NotRegexp(t, `(?:src|href|action)="(?:https?:)?//`, g.body)
		ids := map[string]bool{}
		for _, m := range regexp.MustCompile(`\sid="([^"]+)"`).FindAllStringSubmatch(g.body, -1) {
			require.False(t, ids[m[1]], "two of %s", m[1])
			ids[m[1]] = true
		}
		for _, op := range ops {
			at := strings.Index(g.body, `<details class="op" id="`+op.Name+`"`)
			require.Positive(t, at, op.Name)
			shown, _, _ := strings.Cut(g.body[at+1:], `<details class="op"`)
			require.Contains(t, shown, ">"+op.Method+"<")
			require.Contains(t, shown, `<code class="at">`+op.Path+"</code>")
			require.Contains(t, shown, escaped(op.Summary))
			require.Contains(t, shown, locale.Value(l.Code, "risk", string(op.Risk)))
			if op.Types == nil && op.NeedsToken() {
				require.Contains(t, shown, "<dd>"+escaped(locale.Word(l.Code, "docs.token"))+"</dd>")
			} else if op.Types == nil {
				require.Contains(t, shown, escaped(locale.Word(l.Code, map[bool]string{true: "docs.open", false: "docs.anyone"}[op.NoToken])))
			}
			for _, typ := range op.Types {
				require.Contains(t, shown, "<code>"+string(typ)+"</code>")
			}
			for _, s := range append(op.Scopes, op.Errors...) {
				require.Contains(t, shown, "<code>"+s+"</code>")
			}
			for _, m := range op.Members() {
				require.Contains(t, shown, "<code>"+m.Name+"</code>", op.Name)
			}
			if op.Worked() != nil {
				require.Contains(t, shown, `<pre class="json"`, op.Name)
			}
		}
	}
}

// What a schema says is on the page: limits, the only values, members of
// members, what is required.
func TestDocsTellWhatSchemasSay(t *testing.T) {
	t.Parallel()
	document := `{"info":{"version":"7"},"tags":[{"name":"A B"},{"name":"Empty"}],"paths":{"/x/{id}":{"put":{"operationId":"x.save","summary":"Save <x>","tags":["A B"],"x-ai-risk":"high",
		"security":[{"bearer":[]}],"x-account-types":["broker"],
		"parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"integer","minimum":1}}],
		"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/X"},"example":{"n":12345678901234567890}}}},
		"responses":{"201":{"content":{"application/json":{"schema":{"type":"array","items":{"$ref":"#/components/schemas/X"}}}}},"default":{}}}}},
		"components":{"schemas":{"X":{"type":"object","required":["name"],"properties":{
			"name":{"type":"string","minLength":1,"maxLength":64,"description":"What it is called"},
			"kind":{"type":["string","null"],"enum":["a","b"]},
			"free":{"description":"any JSON value"},
			"more":{"type":"object","additionalProperties":true},
			"next":{"anyOf":[{"$ref":"#/components/schemas/X"},{"type":"null"}]},
			"list":{"type":"array","maxItems":20,"items":{"type":"object","properties":{"when":{"type":"string","format":"date-time"}}}}}}}}}`
	r := newRig(t, func(c *page.Config) { c.Interface = func() []byte { return []byte(document) } })
	body := r.do("GET", "/docs", nil).body
	for _, want := range []string{"Save &lt;x&gt;", `id="area-A-B"`, "path · integer ≥ 1", "string 1–64", "string | null", "<code>a</code> <code>b</code>", "array of object ≤ 20", `<span class="within">list[].</span><wbr>when</code>`,
		"date-time", "object | null", "What it is called", `<span class="within">[].</span><wbr>name</code>`, `<span class="hush">201</span>`, "12345678901234567890", "Risk: high"} {
		require.Contains(t, body, want)
	}
	require.NotContains(t, body, "Empty", "an area without operations")
	require.NotContains(t, body, `next.</span>`, "a type that holds itself ends")
	require.Less(t, strings.Index(body, "<code>name</code>"), strings.Index(body, "<code>free</code>"), "what is required comes first")
}

func TestDocsAreAPageLikeOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := r.do("GET", "/docs", nil)
	require.Contains(t, g.header("Content-Security-Policy"), "default-src 'none'")
	require.NotContains(t, g.header("Content-Security-Policy"), "unsafe")
	require.Equal(t, 304, r.do("GET", "/docs", nil, "If-None-Match", g.header("ETag")).status)
	require.Equal(t, 200, r.do("GET", "/docs", nil, "Accept-Language", "de", "If-None-Match", g.header("ETag")).status)
	require.Equal(t, "gzip", r.do("GET", "/docs", nil, "Accept-Encoding", "gzip").header("Content-Encoding"))
	require.Equal(t, 405, r.do("POST", "/docs", url.Values{}).status)
	require.Contains(t, r.do("GET", "/docs?lang=fr", nil).body, `href="/docs?lang=de"`)
	require.Contains(t, r.do("GET", "/", nil).body, `href="/docs"`, "the footer links to it")
	r.signedIn()
	console := r.do("GET", "/console", nil).body
	require.Equal(t, 1, strings.Count(console, `href="/docs"`), "and so does the console's")
	for _, m := range regexp.MustCompile(`href="(/[^"?]*)`).FindAllStringSubmatch(g.body, -1) {
		require.Contains(t, []int{200, 303}, r.do("GET", m[1], nil).status, m[1])
	}
}

func TestDocsOfNothing(t *testing.T) {
	t.Parallel()
	for _, document := range []string{"{", `{"paths":{"/x":{"get":{"responses":{"200":{"content":{"application/json":{"schema":{"type":7}}}}}}}}}`} {
		r := newRig(t, func(c *page.Config) { c.Interface = func() []byte { return []byte(document) } })
		require.Equal(t, 500, r.do("GET", "/docs", nil).status)
		require.Equal(t, 200, r.do("GET", "/", nil).status, "the other pages are there")
	}
}
