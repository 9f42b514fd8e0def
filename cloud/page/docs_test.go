package page_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern"
	"github.com/postern-io/postern/cloud/api"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/internal/ring"
)

// ids are the ids of a page, which must differ.
func ids(t *testing.T, body string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`\sid="([^"]+)"`).FindAllStringSubmatch(body, -1) {
		require.False(t, out[m[1]], "two of %s", m[1])
		out[m[1]] = true
	}
	return out
}

// isPlain checks what no page of the description may hold.
func isPlain(t *testing.T, body string) {
	t.Helper()
	require.Equal(t, 1, strings.Count(body, "<h1"))
	for _, bad := range []string{"ZgotmplZ", "%!", "%s<", ">docs.", "<style", "&lt;nil&gt;"} {
		require.NotContains(t, body, bad)
	}
	require.NotRegexp(t, `\s(style|on[a-z]+)=`, body)
	require.NotRegexp(t, `<script(?:>|[^>]*>[^<])`, body)
	require.NotRegexp(t, `(?:src|href|action)="(?:https?:)?//`, body)
}

// The list leads to a page of every operation of the table, with what a caller must know,
// in every language.
func TestDocsShowEveryOperation(t *testing.T) {
	ring.SkipUnlessCheck(t, "a page of the documents")
	t.Parallel()
	r := newRig(t, nil)
	ops := api.New(api.Config{}).Operations()
	for _, l := range locale.All() {
		g := r.do("GET", "/docs", nil, "Accept-Language", l.Code)
		require.Equal(t, 200, g.status)
		require.Contains(t, g.body, `<html lang="`+l.Code+`">`)
		require.Equal(t, len(ops), strings.Count(g.body, `class="op"`))
		isPlain(t, g.body)
		there := ids(t, g.body)
		require.Less(t, len(g.body), 135_000, "the list is small")
		for i, op := range ops {
			require.True(t, there[op.Name], op.Name)
			require.Contains(t, g.body, `href="/docs/operations/`+op.Name+`"`)
			if l.Code != "en" && i%23 != 0 { // every page has the same template
				continue
			}
			one := r.do("GET", "/docs/operations/"+op.Name, nil, "Accept-Language", l.Code)
			require.Equal(t, 200, one.status, op.Name)
			shown := one.body
			isPlain(t, shown)
			ids(t, shown)
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
	require.Equal(t, 404, r.do("GET", "/docs/operations/nothing.such", nil).status)
	require.Equal(t, 404, r.do("GET", "/docs/operations/", nil).status)
}

// The example of an operation is a program in six languages: a call of the operation's own
// address, with its example and without a token where none is looked at.
func TestDocsHavePrograms(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for name, want := range map[string][]string{
		"work_items.snooze": {`curl -X POST &#39;http`, `/api/v1/work-items/exception-9301/snooze`, `&#34;hours&#34;: 4`, `os.environ[&#34;POSTERN_TOKEN&#34;]`, `http.NewRequest(&#34;POST&#34;`, `BodyPublishers.ofString`, `getenv(&#39;POSTERN_TOKEN&#39;)`, `String.raw`},
		"orders.find":       {`/api/v1/orders/120045`},
		"otep.tracking":     {`/api/v1/otep/trackings/SWP100200300`},
	} {
		body := r.do("GET", "/docs/operations/"+name, nil).body
		for _, w := range want {
			require.Contains(t, body, w, name)
		}
		require.Equal(t, 6, strings.Count(body, `<details name="program"`))
	}
	require.NotContains(t, r.do("GET", "/docs/operations/user.login", nil).body, "POSTERN_TOKEN\"", "no token is looked at")
	require.NotContains(t, r.do("GET", "/docs/operations/orders.proof_files.upload", nil).body, `name="program"`, "a file is no JSON")
}

// Every word that is searched for stands somewhere in an operation that is found; a search
// works without script and is no page of its own for search engines.
func TestDocsAreSearched(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	count := func(q string) int {
		g := r.do("GET", "/docs?q="+url.QueryEscape(q), nil)
		require.Equal(t, 200, g.status)
		isPlain(t, g.body)
		return strings.Count(g.body, `class="op"`)
	}
	all := count("")
	require.Equal(t, 1, count("user.me"))
	require.Equal(t, count("post snooze"), count("  SNOOZE   Post "))
	require.Positive(t, count("WORK_ITEM_TAKEN"), "an error code")
	require.Positive(t, count("lockers:read"), "a scope")
	require.Less(t, count("lockers:read"), all/2)
	require.Zero(t, count("no such thing"))
	g := r.do("GET", "/docs?q="+url.QueryEscape(`"><script>`+strings.Repeat("x", 9000)+"\xff"), nil)
	require.Equal(t, 200, g.status)
	isPlain(t, g.body)
	require.Contains(t, g.body, `value="&#34;&gt;&lt;script&gt;`)
	require.Contains(t, g.body, `name="robots" content="noindex"`)
	require.Less(t, len(g.body), 20_000)
}

// The changelog is a page: what it says is text.
func TestDocsHaveAChangelog(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *page.Config) {
		c.Changelog = "# Changelog\n\nIntro [x](https://example.com).\n\n## [1.2.0](https://example.com) - 2026-11-01\n\n### Added\n\n- First <b>item</b> with `code <i>`\n  that goes on.\n- Second [link](https://example.com/a).\n\n## 1.1.0\n\n- Alone\n"
	})
	g := r.do("GET", "/docs/changelog", nil)
	require.Equal(t, 200, g.status)
	isPlain(t, g.body)
	for _, want := range []string{`<h2 id="release-1.2.0-2026-11-01">1.2.0 - 2026-11-01</h2>`, "<h3>Added</h3>", "<li>First &lt;b&gt;item&lt;/b&gt; with <code>code &lt;i&gt;</code> that goes on.</li>", "<li>Second link.</li>", "<li>Alone</li>"} {
		require.Contains(t, g.body, want)
	}
	require.NotContains(t, g.body, "Intro")
	require.Contains(t, r.do("GET", "/docs", nil).body, `href="/docs/changelog"`)
	require.Equal(t, 304, r.do("GET", "/docs/changelog", nil, "If-None-Match", g.header("ETag")).status)
	none := newRig(t, func(c *page.Config) { c.Changelog = "" })
	require.Equal(t, 404, none.do("GET", "/docs/changelog", nil).status)
	require.NotContains(t, none.do("GET", "/docs", nil).body, "changelog")
	ours := newRig(t, func(c *page.Config) { c.Changelog = postern.Changelog }).do("GET", "/docs/changelog", nil).body
	isPlain(t, ours)
	ids(t, ours)
	require.Greater(t, strings.Count(ours, "<li>"), 50)
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
	list := r.do("GET", "/docs", nil).body
	require.Contains(t, list, "Save &lt;x&gt;")
	require.Contains(t, list, `id="area-A-B"`)
	require.NotContains(t, list, "Empty", "an area without operations")
	body := r.do("GET", "/docs/operations/x.save", nil).body
	for _, want := range []string{"Save &lt;x&gt;", `href="/docs#area-A-B"`, "path · integer ≥ 1", "string 1–64", "string | null", "<code>a</code> <code>b</code>", "array of object ≤ 20", `<span class="within">list[].</span><wbr>when</code>`,
		"date-time", "object | null", "What it is called", `<span class="within">[].</span><wbr>name</code>`, `<span class="hush">201</span>`, "12345678901234567890", "Risk: high", "https://cloud.example.com/x/id"} {
		require.Contains(t, body, want)
	}
	require.NotContains(t, body, `next.</span>`, "a type that holds itself ends")
	require.Less(t, strings.Index(body, "<code>name</code>"), strings.Index(body, "<code>free</code>"), "what is required comes first")
}

func TestDocsAreAPageLikeOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, path := range []string{"/docs", "/docs/operations/user.me"} {
		g := r.do("GET", path, nil)
		require.Contains(t, g.header("Content-Security-Policy"), "default-src 'none'")
		require.NotContains(t, g.header("Content-Security-Policy"), "unsafe")
		require.Equal(t, 304, r.do("GET", path, nil, "If-None-Match", g.header("ETag")).status)
		require.Equal(t, 200, r.do("GET", path, nil, "Accept-Language", "de", "If-None-Match", g.header("ETag")).status)
		require.Equal(t, "gzip", r.do("GET", path, nil, "Accept-Encoding", "gzip").header("Content-Encoding"))
		require.Equal(t, 405, r.do("POST", path, url.Values{}).status)
	}
	require.Contains(t, r.do("GET", "/docs/operations/user.me?lang=fr", nil).body, `href="/docs/operations/user.me?lang=de"`)
	require.Contains(t, r.do("GET", "/docs?q=doors&lang=fr", nil).body, `href="/docs?q=doors&amp;lang=de"`)
	require.Contains(t, r.do("GET", "/", nil).body, `href="/docs"`, "the footer links to it")
	g := r.do("GET", "/docs", nil)
	r.signedIn()
	console := r.do("GET", "/console", nil).body
	require.Equal(t, 1, strings.Count(console, `href="/docs"`), "and so does the console's")
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`href="(/[^"?#]*)`).FindAllStringSubmatch(g.body, -1) {
		if strings.HasPrefix(m[1], "/docs/operations/") || seen[m[1]] {
			continue
		}
		seen[m[1]] = true
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
