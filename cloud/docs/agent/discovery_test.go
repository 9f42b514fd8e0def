package agentdocs_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/api"
	"github.com/postern-io/postern/cloud/catalog"
	agentdocs "github.com/postern-io/postern/cloud/docs/agent"
	"github.com/postern-io/postern/cloud/graphql"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/tool"
)

var update = flag.Bool("update", false, "rewrite the golden skill file")

const base = "https://host.example"

type noGraphQL struct{ tool.GraphQL }

// world is the documents over the real table.
type world struct {
	t       *testing.T
	catalog *catalog.Catalog
	service *agentdocs.Service
	graph   *graphql.Server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := api.New(api.Config{Enrol: func(context.Context, string, string, []byte) (any, error) { return nil, nil }})
	graph, err := graphql.New(graphql.Config{Catalog: c})
	require.NoError(t, err)
	tools := tool.New(tool.Config{Catalog: c, GraphQL: noGraphQL{}})
	s, err := agentdocs.New(agentdocs.Config{Catalog: c, Tools: tools.Tools, Versions: tool.Versions, SDL: graph.Schema(), Fields: graph.Fields(), Version: "1.2.3", About: func(scope string) string { return locale.Scope(locale.English, scope) }})
	require.NoError(t, err)
	return &world{t, c, s, graph}
}

// get makes a document; query is its parameters in pairs.
func (w *world) get(path string, query ...string) (agentdocs.File, error) {
	w.t.Helper()
	for _, d := range w.service.Documents() {
		if d.Path == path {
			return d.Get(base, func(name string) string {
				if i := slices.Index(query, name); i >= 0 && i%2 == 0 {
					return query[i+1]
				}
				return ""
			})
		}
	}
	w.t.Fatalf("there is no document at %s", path)
	return agentdocs.File{}, nil
}

func (w *world) json(path string, query ...string) (out map[string]any) {
	w.t.Helper()
	f, err := w.get(path, query...)
	require.NoError(w.t, err)
	require.NoError(w.t, json.Unmarshal(f.Body, &out))
	return out
}

func (w *world) tools(server string) (out []string) {
	for _, x := range w.catalog.Tools(server) {
		out = append(out, x.Name)
	}
	return out
}

func names(list any, path ...string) (out []string) {
	for _, x := range list.([]any) {
		for _, p := range path {
			x = x.(map[string]any)[p]
		}
		out = append(out, x.(string))
	}
	return out
}

// servers are all tool servers, in the order in which they are listed.
var servers = []string{catalog.OperationsServer, catalog.DeveloperServer, catalog.LockersServer}

// Every tool of the servers is in every document that lists tools, and nothing
// else is.
func TestEveryToolIsInEveryDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all []string
	for _, s := range servers {
		all = append(all, w.tools(s)...)
		path := map[string][]string{"openai": {"function", "name"}, "anthropic": {"name"}, "mcp": {"name"}, "langchain": {"name"}, "": {"name"}}
		for format, at := range path {
			d := w.json("/api/ai/tools", "format", format, "server", s)
			require.Equal(t, w.tools(s), names(d["tools"], at...), format)
			require.Equal(t, []any{s, float64(len(w.tools(s)))}, []any{d["server"], d["count"]})
		}
	}
	require.Equal(t, "mcp", w.json("/api/ai/tools")["format"])
	require.Equal(t, catalog.OperationsServer, w.json("/api/ai/tools")["server"])
	distinct := slices.Compact(slices.Sorted(slices.Values(all)))

	manifest := w.json("/api/.well-known/ai-tools.json")
	require.Equal(t, all, names(manifest["tools"], "name"))
	for _, path := range []string{"/api/.well-known/ai-tools.json", "/api/ai/capabilities"} {
		var listed []string
		for _, c := range w.json(path)["categories"].([]any) {
			c := c.(map[string]any)
			require.NotEmpty(t, c["title"])
			listed = append(listed, names(c["tools"])...)
		}
		require.ElementsMatch(t, distinct, listed, path)
		for i, x := range w.json(path)["servers"].([]any) {
			require.Equal(t, float64(len(w.tools(servers[i]))), x.(map[string]any)["tool_count"])
		}
	}
	llms, err := w.get("/llms.txt")
	require.NoError(t, err)
	var lines []string
	for _, m := range regexp.MustCompile("(?m)^- `([a-z_]+)` \\((?:operations|developer|lockers) server; ").FindAllSubmatch(llms.Body, -1) {
		lines = append(lines, string(m[1]))
	}
	require.ElementsMatch(t, all, lines)

	// The OpenAPI and GraphQL documents have the tools that have an operation.
	var backed, described []string
	for _, x := range w.catalog.Tools("") {
		if x.Operation != "" {
			backed = append(backed, x.Name)
		}
	}
	for _, item := range w.json("/api/ai/tools/openapi")["paths"].(map[string]any) {
		for _, o := range item.(map[string]any) {
			described = append(described, names(o.(map[string]any)["x-ai-tool"])...)
		}
	}
	slices.Sort(backed)
	slices.Sort(described)
	require.Equal(t, slices.Compact(backed), slices.Compact(described))
}

// What the manifest says of a tool is what the catalogue says.
func TestTheManifest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.json("/api/.well-known/ai-tools.json")
	require.Equal(t, []any{"Postern", "1.2.3", base}, []any{m["name"], m["version"], m["base_url"]})
	require.Equal(t, map[string]any{"type": "bearer", "login": "/api/v1/user/login", "header": "Authorization"}, m["auth"])
	for _, x := range m["tools"].([]any) {
		x := x.(map[string]any)
		row := w.catalog.Tool(x["server"].(string), x["name"].(string))
		require.Equal(t, []any{row.Title, row.Category, string(row.Risk), row.Confirm, row.Public()}, []any{x["title"], x["category"], x["risk"], x["confirm_required"], x["public"]})
		require.ElementsMatch(t, row.Scopes, names(x["scopes"]))
		if row.Operation != "" {
			o := w.catalog.Find(row.Operation)
			require.Equal(t, o.Method+" "+o.Path, x["backs_onto"])
		} else {
			require.Nil(t, x["backs_onto"])
		}
	}
	require.ElementsMatch(t, cloud.AllScopes(), names(m["scopes"], "name"))
	for _, x := range names(m["scopes"], "description") {
		require.NotEmpty(t, x)
	}
	require.ElementsMatch(t, catalog.Profiles(), names(m["profiles"], "name"))

	// The hash is that of everything but itself and the time.
	f, err := w.get("/api/.well-known/ai-tools.json")
	require.NoError(t, err)
	again, err := newWorld(t).get("/api/.well-known/ai-tools.json")
	require.NoError(t, err)
	require.Equal(t, f.Tag, again.Tag)
	without := regexp.MustCompile(`"generated_at":"[^"]*",|,"hash":"[^"]*"`)
	sum := fmt.Sprintf("%x", sha(without.ReplaceAll(f.Body, nil)))
	require.Equal(t, m["hash"], sum)
}

// A third-party reader takes the description, and every operation
// has what agents are to know.
func TestOpenAPIWithHints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, err := w.get("/api/ai/tools/openapi")
	require.NoError(t, err)
	doc, err := openapi3.NewLoader().LoadFromData(f.Body)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context(), openapi3.EnableExamplesValidation()))
	require.Equal(t, "1.0", doc.Info.Version)
	count := 0
	for _, item := range doc.Paths.Map() {
		for _, o := range item.Operations() {
			count++
			row, behind := w.catalog.Find(o.OperationID), w.catalog.Behind(w.catalog.Find(o.OperationID))
			x := o.Extensions
			require.Equal(t, row.Summary, x["x-ai-purpose"])
			require.NotEmpty(t, x["x-ai-when-to-use"])
			require.Equal(t, string(row.Risk), x["x-ai-risk"])
			require.ElementsMatch(t, row.Scopes, names(x["x-ai-scopes"]))
			require.Equal(t, row.Confirm, x["x-ai-confirm"])
			require.NotEmpty(t, x["x-ai-side-effects"])
			require.IsType(t, true, x["x-ai-idempotent"])
			require.Len(t, behind, len(row.Tools), "%s: every tool that it names is there", row.Name)
			if len(behind) > 0 {
				require.Equal(t, behind[0].Category, x["x-ai-category"])
				require.NotEmpty(t, x["x-ai-related"])
				require.Contains(t, x["x-ai-when-to-use"], behind[0].Description)
			}
			for _, r := range names(x["x-ai-related"]) {
				require.True(t, slices.ContainsFunc(w.catalog.Tools(""), func(t *catalog.Tool) bool { return t.Name == r }), r)
			}
			examples := x["x-ai-examples"].([]any)
			require.Equal(t, row.Worked() != nil || row.Answered != nil, len(examples) == 1, row.Name)
			if row.Method == "GET" {
				require.Equal(t, []any{"None: it only reads.", true}, []any{x["x-ai-side-effects"], x["x-ai-idempotent"]})
			}
		}
	}
	require.Equal(t, len(w.catalog.Operations()), count)
}

// Schemas of every form compile, and are those that the servers list.
func TestSchemasOfEveryFormat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, s := range servers {
		for format, at := range map[string][]string{"openai": {"function", "parameters"}, "anthropic": {"input_schema"}, "mcp": {"inputSchema"}, "langchain": {"args_schema"}} {
			for i, x := range w.json("/api/ai/tools", "format", format, "server", s)["tools"].([]any) {
				row := w.catalog.Tools(s)[i]
				var schema any = x
				for _, p := range at {
					schema = schema.(map[string]any)[p]
				}
				compiles(t, schema)
				got, err := json.Marshal(schema)
				require.NoError(t, err)
				require.JSONEq(t, string(row.Input()), string(got), "%s %s", format, row.Name)
				if format == "mcp" {
					compiles(t, x.(map[string]any)["outputSchema"])
				}
			}
		}
	}
}

func compiles(t *testing.T, schema any) {
	t.Helper()
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", schema))
	_, err := c.Compile("schema.json")
	require.NoError(t, err)
}

func TestUnknownFormatsAndServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, valid := range map[string]int{"format": 4, "server": 3} {
		_, err := w.get("/api/ai/tools", name, "nosuch")
		var e *cloud.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, 422, catalog.Status(e))
		require.Len(t, e.Details[name], valid)
		require.Len(t, e.Fields[name], 1)
		require.NotEqual(t, e.Fields[name][0], locale.Field(locale.German, e.Fields[name][0]), "it is there in other languages")
	}
}

// Every operation of the GraphQL document is in the schema, with a document
// that can be sent as it is.
func TestGraphQLOperations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.json("/api/ai/tools/graphql")
	require.Equal(t, base+"/api/graphql", d["endpoint"])
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: d["sdl"].(string)})
	require.NoError(t, err)
	var want []string
	for _, o := range w.catalog.Operations() {
		if o.GraphQL != nil {
			want = append(want, o.GraphQL.Field)
		}
	}
	require.ElementsMatch(t, want, names(d["operations"], "name"))
	for _, x := range d["operations"].([]any) {
		x := x.(map[string]any)
		hints := x["aiHints"].(map[string]any)
		require.ElementsMatch(t, []string{"purpose", "when_to_use", "risk", "scopes", "confirm", "side_effects", "related", "example"}, slices.Collect(maps.Keys(hints)))
		example := hints["example"].(map[string]any)
		query := example["query"].(string)
		doc, err := gqlparser.LoadQueryWithRules(schema, query, rules.NewDefaultRules())
		require.Empty(t, err, query)
		op := doc.Operations[0]
		require.Equal(t, x["kind"], string(op.Operation))
		if vars, ok := example["variables"].(map[string]any); ok {
			for _, v := range op.VariableDefinitions {
				if v.Type.NonNull {
					require.Contains(t, vars, v.Variable, query)
				}
			}
			_, err := validator.VariableValues(schema, op, vars)
			require.NoError(t, err, "%s %v", query, vars)
		}
	}
}

// The skill file changes only with its text, and then its version does.
func TestTheSkillFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, err := w.get("/api/ai-skill")
	require.NoError(t, err)
	const golden = "testdata/SKILL.md"
	if *update {
		require.NoError(t, os.WriteFile(golden, f.Body, 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(f.Body))
	sum := md5.Sum(f.Body)
	hash := hex.EncodeToString(sum[:])
	require.Equal(t, []any{hash, "SKILL.md", true}, []any{f.Tag, f.Name, f.Whole})
	v := w.json("/api/ai-skill/version")
	require.Equal(t, map[string]any{"version": "1.0", "hash": hash, "download_url": base + "/api/ai-skill"}, v)

	text := string(f.Body)
	_, head, _ := strings.Cut(text, "---\n")
	head, _, _ = strings.Cut(head, "---\n")
	for _, line := range []string{"name: ", "description: ", "user_invocable: true\n", "trigger: /integrate\n"} {
		require.Contains(t, head, line)
	}
	for i := range 7 {
		require.Contains(t, text, fmt.Sprintf("\n## %d. ", i+1))
	}
	require.NotContains(t, text, base, "it is the same everywhere")
	for _, p := range catalog.Profiles() {
		require.Contains(t, text, "| `"+p+"` |")
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(text, -1)
	require.Len(t, blocks, 3)
	for _, b := range blocks {
		require.True(t, json.Valid([]byte(b[1])), b[1])
	}
	for _, m := range regexp.MustCompile("`([a-z]+_[a-z_]+)`").FindAllStringSubmatch(text, -1) {
		known := slices.Contains(slices.Concat(w.tools(servers[0]), w.tools(servers[1]), w.tools(servers[2]), []string{"pending_approval"}), m[1]) || slices.Contains([]string{"current_hash", "retry_after", "get_integration_guide", "get_webhook_guide", "verify_webhook_signature", "get_otep_guide"}, m[1])
		require.True(t, known, "%s is no tool", m[1])
	}
	for _, m := range regexp.MustCompile("`([A-Z]+_[A-Z_]+)`").FindAllStringSubmatch(text, -1) {
		require.True(t, locale.HasError(m[1]) || m[1] == "POSTERN_TOKEN", m[1])
	}
}

// No document publishes what should not be public, and JSON is not escaped for HTML.
func TestDocumentsAreClean(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, d := range w.service.Documents() {
		f, err := w.get(d.Path)
		require.NoError(t, err)
		require.NotEmpty(t, f.Tag)
		require.False(t, bytes.Contains(f.Body, []byte(`\u003c`)), d.Path)
		same, err := w.get(d.Path)
		require.NoError(t, err)
		require.Equal(t, f, same)
	}
}

func sha(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}
