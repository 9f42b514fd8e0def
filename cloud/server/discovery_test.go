package server

import (
	"crypto/md5"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/internal/ring"
)

// ask sends a request without a body; headers are pairs.
func (w *agentWorld) ask(method, url string, headers ...string) reply {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, url, nil)
	require.NoError(w.t, err)
	req.Header.Set("Accept-Encoding", "identity")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	out := reply{status: resp.StatusCode, header: resp.Header, raw: raw}
	_ = json.Unmarshal(raw, &out.json) // some are text
	return out
}

var discovered = map[string]string{
	"/api/.well-known/ai-tools.json": "application/json; charset=utf-8", "/llms.txt": "text/plain; charset=utf-8", "/api/ai/tools": "application/json; charset=utf-8",
	"/api/ai/tools?format=openai&server=developer": "application/json; charset=utf-8", "/api/ai/tools/openapi": "application/json; charset=utf-8",
	"/api/ai/tools/graphql": "application/json; charset=utf-8", "/api/ai/capabilities": "application/json; charset=utf-8",
	"/api/ai-skill": "text/markdown; charset=utf-8", "/api/ai-skill/version": "application/json; charset=utf-8",
}

// Discovery over the wire: anybody reads it, caches may keep it, and nothing but
// reading is taken.
func TestDiscoveryIsServed(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	for path, kind := range discovered {
		t.Run(path, func(t *testing.T) {
			r := w.ask("GET", w.base+path, "Origin", "https://somewhere.example")
			require.Equal(t, 200, r.status, "%s", r.raw)
			h := r.header
			require.Equal(t, []string{kind, "public, max-age=300", "*"}, []string{h.Get("Content-Type"), h.Get("Cache-Control"), h.Get("Access-Control-Allow-Origin")})
			tag := h.Get("ETag")
			require.Regexp(t, `^"[0-9a-f]+"$`, tag)
			for _, have := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
				same := w.ask("GET", w.base+path, "If-None-Match", have)
				require.Equal(t, []any{304, 0, tag}, []any{same.status, len(same.raw), same.header.Get("ETag")})
			}
			require.Equal(t, 200, w.ask("GET", w.base+path, "If-None-Match", `"x"`).status)
			head := w.ask("HEAD", w.base+path)
			require.Equal(t, []any{200, 0, tag, fmt.Sprint(len(r.raw))}, []any{head.status, len(head.raw), head.header.Get("ETag"), head.header.Get("Content-Length")})
			for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
				no := w.ask(method, w.base+path)
				require.Equal(t, []any{405, "METHOD_NOT_ALLOWED"}, []any{no.status, no.json["code"]})
				for _, m := range []string{"GET", "HEAD", "OPTIONS"} {
					require.Contains(t, no.header.Get("Allow"), m)
				}
			}
			may := w.ask("OPTIONS", w.base+path, "Origin", "https://somewhere.example", "Access-Control-Request-Method", "GET")
			require.Equal(t, []any{204, "*"}, []any{may.status, may.header.Get("Access-Control-Allow-Origin")})
		})
	}
	for _, query := range []string{"format=xml", "server=nosuch", "format=xml&server=nosuch"} {
		r := w.ask("GET", w.base+"/api/ai/tools?"+query, "Accept-Language", "de")
		require.Equal(t, []any{422, "VALIDATION_FAILED", "*", "no-store"}, []any{r.status, r.json["code"], r.header.Get("Access-Control-Allow-Origin"), r.header.Get("Cache-Control")})
		require.Empty(t, r.header.Get("ETag"))
		if strings.HasPrefix(query, "format") {
			require.Equal(t, []any{"openai", "anthropic", "mcp", "langchain"}, r.json["details"].(map[string]any)["format"])
		}
		require.Contains(t, fmt.Sprint(r.json["errors"]), "oder nichts für")
	}
	skill := w.ask("GET", w.base+"/api/ai-skill", "Accept-Encoding", "gzip")
	require.Equal(t, `attachment; filename="SKILL.md"`, skill.header.Get("Content-Disposition"))
	require.Equal(t, fmt.Sprintf(`"%x"`, md5.Sum(skill.raw)), skill.header.Get("ETag"), "the tag is that of the file, whatever the client takes")
	version := w.ask("GET", w.base+"/api/ai-skill/version").json
	require.Equal(t, fmt.Sprintf("%x", md5.Sum(w.ask("GET", version["download_url"].(string)).raw)), version["hash"])

	// What is listed is what the servers list.
	for server, path := range servers {
		result := w.post(path, list).json["result"].(map[string]any)
		require.ElementsMatch(t, result["tools"], w.ask("GET", w.base+"/api/ai/tools?server="+server).json["tools"], "the same definitions, to the letter")
	}
}

// Every link of the documents leads somewhere.
func TestLinksOfDiscoveryAnswer(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	seen := map[string]bool{}
	follow := func(url string) {
		t.Helper()
		if seen[url] {
			return
		}
		seen[url] = true
		r := w.ask("GET", url)
		switch path := strings.TrimPrefix(url, w.base); path {
		case "/api/mcp", "/api/mcp/developer", "/api/mcp/lockers", "/api/graphql", "/api/v1/user/login":
			require.Contains(t, []int{405, 400}, r.status, "%s takes POST only", path)
		case "/api/v1/user/api-keys":
			require.Equal(t, 401, r.status, "keys are their owner's")
		default:
			require.Equal(t, 200, r.status, path)
		}
	}
	url := regexp.MustCompile(regexp.QuoteMeta(w.base) + `[\w./?=&-]*\w`)
	for _, path := range []string{"/api/.well-known/ai-tools.json", "/llms.txt", "/api/ai/capabilities", "/api/ai-skill/version"} {
		found := url.FindAllString(string(w.ask("GET", w.base+path).raw), -1)
		require.NotEmpty(t, found, path)
		for _, x := range found {
			follow(x)
		}
	}
	skill := string(w.ask("GET", w.base+"/api/ai-skill").raw)
	for _, m := range regexp.MustCompile(`BASE(/[\w./?=&-]*\w)`).FindAllStringSubmatch(skill, -1) {
		follow(w.base + m[1])
	}
	require.Greater(t, len(seen), 12)
}

// Discovery is limited like any anonymous call.
func TestDiscoveryIsLimited(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{Limits: catalog.Limits{Authenticated: -1, Anonymous: 5}})
	codes := map[int]int{}
	for range 8 {
		r := w.ask("GET", w.base+"/api/ai/capabilities")
		codes[r.status]++
		if r.status == 429 {
			require.Equal(t, "RATE_LIMITED", r.json["code"])
			require.NotEmpty(t, r.header.Get("Retry-After"))
		}
	}
	require.Equal(t, map[int]int{200: 5, 429: 3}, codes)
}

// The tools that read the documents say what the documents say.
func TestToolsThatReadDiscovery(t *testing.T) {
	ring.SkipUnlessCheck(t, "single calls of the same tools; this one walks over all of them")
	t.Parallel()
	w := newAgentWorld(t, Config{})
	call := func(tool, arguments string) map[string]any {
		t.Helper()
		r := w.on("/mcp/developer", tool, arguments)
		require.False(t, r.failed || r.body == nil, "%s", r.raw)
		return r.body
	}
	all := len(w.s.Catalog.Operations())
	got := call("get_api_endpoints", `{}`)
	require.Equal(t, []any{true, float64(all), 1.0, 20.0}, []any{got["result"], got["total"], got["page"], got["per_page"]})
	require.Len(t, got["endpoints"], 20)
	seen := map[string]bool{}
	for page := 1; ; page++ {
		rows := call("get_api_endpoints", fmt.Sprintf(`{"page":%d,"per_page":50}`, page))["endpoints"].([]any)
		if len(rows) == 0 {
			break
		}
		for _, x := range rows {
			seen[x.(map[string]any)["operation_id"].(string)] = true
		}
	}
	for _, o := range w.s.Catalog.Operations() {
		require.True(t, seen[o.Name], o.Name)
	}
	require.Empty(t, call("get_api_endpoints", `{"page":9223372036854775807,"per_page":200}`)["endpoints"])
	got = call("get_api_endpoints", `{"keyword":"ordercreate","method":"POST","tag":"client","include_schemas":true}`)
	var made map[string]any
	for _, x := range got["endpoints"].([]any) {
		if x := x.(map[string]any); x["operation_id"] == "orders.create" {
			made = x
		}
	}
	require.Equal(t, []any{"POST", "/api/v1/client/orderCreate", "bearer", "medium"}, []any{made["method"], made["path"], made["auth"], made["risk"]})
	require.NotEmpty(t, made["request_body"])
	require.NotEmpty(t, made["answer"])
	raw, err := json.Marshal(got)
	require.NoError(t, err)
	refs := regexp.MustCompile(`#/components/schemas/(\w+)`).FindAllStringSubmatch(string(raw), -1)
	require.NotEmpty(t, refs)
	for _, m := range refs {
		require.Contains(t, got["schemas"], m[1], "what is referred to is there")
	}
	rows := 0
	for page := 1; ; page++ { // with schemas a page is as long as fits
		got := call("get_api_endpoints", fmt.Sprintf(`{"include_schemas":true,"per_page":200,"page":%d}`, page))
		require.Equal(t, 10.0, got["per_page"])
		require.NotContains(t, got, "truncated")
		if len(got["endpoints"].([]any)) == 0 {
			break
		}
		rows += len(got["endpoints"].([]any))
	}
	require.Equal(t, all, rows)
	auth := map[string]string{}
	for _, word := range []string{"login", "tracking/{", "user/me"} {
		for _, x := range call("get_api_endpoints", fmt.Sprintf(`{"keyword":%q}`, word))["endpoints"].([]any) {
			auth[x.(map[string]any)["operation_id"].(string)] = x.(map[string]any)["auth"].(string)
		}
	}
	require.Equal(t, []string{"none", "optional", "bearer"}, []string{auth["user.login"], auth["tracking.public"], auth["user.me"]})

	got = call("get_graphql_operations", `{"kind":"mutation","keyword":"cancel","include_sdl":true}`)
	require.NotEmpty(t, got["operations"])
	require.Contains(t, got["sdl"], "type Mutation")
	for _, narrowed := range []string{`"kind":"mutation","keyword":"cancel"`, `"kind":"query","keyword":"order"`, `"keyword":"user"`, `"keyword":"smartLocker"`, `"kind":"query","keyword":"me"`} {
		got := call("get_graphql_operations", `{`+narrowed+`,"include_sdl":true}`)
		require.NotContains(t, got, "truncated")
		part, err := gqlparser.LoadSchema(&ast.Source{Input: got["sdl"].(string)})
		require.NoError(t, err, narrowed)
		fields := 0
		for _, root := range []*ast.Definition{part.Query, part.Mutation} {
			if root != nil {
				fields += len(slices.DeleteFunc(slices.Clone(root.Fields), func(f *ast.FieldDefinition) bool { return strings.HasPrefix(f.Name, "__") }))
			}
		}
		require.Len(t, got["operations"], fields, "it has these and no others")
		for _, x := range got["operations"].([]any) {
			query := x.(map[string]any)["aiHints"].(map[string]any)["example"].(map[string]any)["query"].(string)
			_, failed := gqlparser.LoadQueryWithRules(part, query, rules.NewDefaultRules())
			require.Empty(t, failed, query)
		}
	}
	require.NotContains(t, call("get_graphql_operations", `{"kind":"query"}`), "sdl")
	hash := w.ask("GET", w.base+"/api/ai-skill/version").json["hash"].(string)
	for current, want := range map[string]bool{hash: false, strings.ToUpper(hash): false, strings.Repeat("0", 32): true} {
		got := call("check_skill_update", fmt.Sprintf(`{"current_hash":%q}`, current))
		require.Equal(t, []any{want, hash, w.base + "/api/ai-skill"}, []any{got["update_available"], got["hash"], got["download_url"]})
	}
}

// Other people's tools read what is served to agents: a validator and a linter of
// OpenAPI documents, the reference implementation of GraphQL, and a strict
// compiler of JSON Schemas.
func TestDiscoveryBeforeOtherPeoplesTools(t *testing.T) {
	t.Parallel()
	ring.SkipUnlessFull(t, "cloud/docs/agent checks the documents by itself")
	const folder = "../page/browser"
	_, err := os.Stat(folder + "/node_modules")
	ring.Needs(t, ring.EnvBrowsers, "node_modules (npm ci in cloud/page/browser)", err == nil)
	w := newAgentWorld(t, Config{})
	cmd := exec.CommandContext(t.Context(), "node", "discovery.mjs", w.base)
	cmd.Dir = folder
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, errs.String())
	var found struct {
		Operations, Queries, Schemas int
		Lint, Faults                 []string
	}
	require.NoError(t, json.Unmarshal(out, &found))
	require.Empty(t, found.Lint)
	require.Empty(t, found.Faults)
	require.Equal(t, len(w.s.Catalog.Operations()), found.Operations)
	fields := 0
	for _, o := range w.s.Catalog.Operations() {
		if o.GraphQL != nil {
			fields++
		}
	}
	require.Equal(t, fields, found.Queries)
	require.Equal(t, 4*(len(w.s.Catalog.Tools("operations"))+len(w.s.Catalog.Tools("developer"))), found.Schemas)
}

// The commands of the skill file do what it says: the deployment is recognised,
// a person gets a key without showing a password, and the calls of the test
// answer with it.
func TestCommandsOfTheSkillFile(t *testing.T) {
	ring.SkipUnlessCheck(t, "it runs other programs")
	t.Parallel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	for _, program := range []string{"curl", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	w := agentWorldOf(t, Config{}, true)
	skill := string(w.ask("GET", w.base+"/api/ai-skill").raw)
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(skill, -1) {
		blocks = append(blocks, m[1])
	}
	require.Len(t, blocks, 4)
	run := func(block, input string, env ...string) string {
		t.Helper()
		block = strings.ReplaceAll(strings.ReplaceAll(block, `"BASE/`, `"`+w.base+"/"), "BASE=https://…", "BASE="+w.base)
		cmd := exec.CommandContext(t.Context(), shell, "-c", "set -eo pipefail\n"+block)
		cmd.Env, cmd.Stdin = append(os.Environ(), env...), strings.NewReader(input)
		out, err := cmd.Output()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	require.Contains(t, run(blocks[0], ""), `"name":"Postern"`)
	made := run(blocks[1], w.box.Admin.Email+"\n"+w.box.Admin.Password+"\n")
	require.NotContains(t, made, w.box.Admin.Password)
	var key struct {
		Token string                   `json:"token"`
		Key   struct{ Profile string } `json:"api_key"`
	}
	require.NoError(t, json.Unmarshal([]byte(strings.TrimSpace(made)), &key), made)
	require.Equal(t, "ops-readonly", key.Key.Profile)
	tested := run(blocks[2], "", "POSTERN_TOKEN="+key.Token)
	require.Contains(t, tested, `"authenticated":true`)
	require.Contains(t, tested, "TRACKING_NOT_FOUND")
	require.Contains(t, run(blocks[3], ""), `"hash":`)
}
