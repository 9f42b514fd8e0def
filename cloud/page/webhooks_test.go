package page_test

import (
	"bytes"
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	webhookdocs "github.com/postern-io/postern/cloud/docs/webhook"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/page"
	platform "github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signature"
)

func TestWebhookGuideInEveryLanguage(t *testing.T) {
	ring.SkipUnlessCheck(t, "one language; this one walks over all of them")
	t.Parallel()
	r := newRig(t, nil)
	texts := map[string]bool{}
	for _, l := range locale.All() {
		g := r.do("GET", webhookdocs.Path, nil, "Accept-Language", l.Code)
		require.Equal(t, 200, g.status)
		require.Equal(t, "text/html; charset=utf-8", g.header("Content-Type"))
		require.Equal(t, 304, r.do("GET", webhookdocs.Path, nil, "Accept-Language", l.Code, "If-None-Match", g.header("ETag")).status)
		require.Contains(t, g.body, `<html lang="`+l.Code+`">`)
		require.Equal(t, 1, strings.Count(g.body, "<h1"))
		require.NotContains(t, g.body, `name="robots"`)
		for _, bad := range []string{"ZgotmplZ", "%!", "%s", ">hooks.", ">guide.", "<style"} {
			require.NotContains(t, g.body, bad)
		}
		require.NotRegexp(t, `\s(style|on[a-z]+)=`, g.body)
		require.NotRegexp(t, `<script(?:>|[^>]*>[^<])`, g.body)
		ids := map[string]bool{}
		for _, m := range regexp.MustCompile(`\sid="([^"]+)"`).FindAllStringSubmatch(g.body, -1) {
			require.False(t, ids[m[1]], "two of %s", m[1])
			ids[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(g.body, -1) {
			require.True(t, ids[m[1]], "a link leads to #%s", m[1])
		}
		for _, e := range platform.HookEvents() {
			require.True(t, ids[e.Name], e.Name)
			if e.Channel != "" {
				require.Regexp(t, `id="`+e.Name+`"[^§]{0,600}?`+html.EscapeString(locale.Word(l.Code, "hooks.kind"))+`: <code>`+e.Kind()+`</code>`, g.body)
			}
		}
		texts[locale.Word(l.Code, "hooks.lead")] = true
		require.Contains(t, html.UnescapeString(g.body), locale.Word(l.Code, "hooks.lead"))
	}
	require.Len(t, texts, len(locale.All()))
	require.Contains(t, r.do("GET", webhookdocs.Path+"?lang=fr", nil).body, `<html lang="fr">`)
	require.Contains(t, r.do("GET", "/", nil).body, `href="`+webhookdocs.Path+`"`, "pages link to the guide")

	without := newRig(t, func(c *page.Config) { c.Webhooks = nil })
	require.Equal(t, 404, without.do("GET", webhookdocs.Path, nil).status)
}

// The page shows the files that tests run, byte for byte.
func TestWebhookGuideShowsTheTestedFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	body := html.UnescapeString(r.do("GET", webhookdocs.Path, nil).body)
	shown := 0
	for _, pattern := range []string{"*.*", "verify/*.go"} {
		files, err := filepath.Glob("../docs/webhook/snippets/" + pattern)
		require.NoError(t, err)
		for _, f := range files {
			raw, err := os.ReadFile(f)
			require.NoError(t, err)
			require.Contains(t, body, ">"+strings.TrimSpace(string(raw))+"</pre>", f)
			shown++
		}
	}
	require.Equal(t, 6, shown)
	require.Contains(t, body, "30 s, 2 min, 8 min, 32 min, 128 min<", "waits of accounts")
	require.Contains(t, body, "128 min, 8.5 h, 34.1 h<", "waits of providers")
}

// Requests of the guide are whole: a reader who copies one can verify it.
func TestRequestsOfTheGuideVerify(t *testing.T) {
	t.Parallel()
	g, err := platform.HookGuide("")
	require.NoError(t, err)
	require.Len(t, g.Requests, 7)
	for _, q := range g.Requests {
		head := map[string]string{}
		for line := range strings.Lines(q.Head) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			head[strings.ToLower(name)] = value
		}
		get := func(name string) string { return head[strings.ToLower(name)] }
		_, err := signature.Verify(get, []byte(q.Body), time.Unix(1795216320, 0), "0123456789abcdef0123456789abcdef")
		require.NoError(t, err, q.Name)
		require.True(t, json.Valid([]byte(q.Body)))
		if q.Name == "ce_binary" {
			require.Equal(t, []string{"order/120045", "https://api.example.com/businesses/42"}, []string{head["ce-subject"], head["ce-source"]})
		}
		var b bytes.Buffer
		require.NoError(t, json.Indent(&b, []byte(q.Body), "", " "))
	}
}
