package developer

import (
	"encoding/json"
	"fmt"
	"github.com/postern-io/postern/cloud/docs/asyncapi"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/api"
	"github.com/postern-io/postern/cloud/catalog"
	agentdocs "github.com/postern-io/postern/cloud/docs/agent"
	"github.com/postern-io/postern/cloud/graphql"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/tool"
	"github.com/postern-io/postern/cloud/webhook/sender"
)

const base = "https://host.example"

var caller = cloud.Caller{BaseURL: base, Language: locale.English}

type noGraphQL struct{ tool.GraphQL }

// real is the handbook over the real table.
func real(t *testing.T) *Service {
	t.Helper()
	c := api.New(api.Config{})
	graph, err := graphql.New(graphql.Config{Catalog: c})
	require.NoError(t, err)
	tool.New(tool.Config{Catalog: c, GraphQL: noGraphQL{}})
	_, err = agentdocs.New(agentdocs.Config{Catalog: c})
	require.NoError(t, err)
	s, err := New(Config{Catalog: c, Events: slices.Concat(order.Events(), locker.Events()), Waits: sender.Waits(), Fields: graph.Fields(), Versions: tool.Versions})
	require.NoError(t, err)
	return s
}

// topics are the values that an argument of a tool takes.
func (s *Service) topics(name, argument string) []string {
	for _, a := range s.cfg.Catalog.Tool(catalog.DeveloperServer, name).Arguments {
		if a.Name == argument {
			return a.Enum
		}
	}
	return nil
}

// guides are all of them, by name, for a language.
func (s *Service) guides(t *testing.T, lang string) map[string]answer {
	t.Helper()
	out := map[string]answer{}
	add := func(name string, a any, err error) {
		require.NoError(t, err, name)
		out[name] = a.(answer)
	}
	for _, topic := range s.topics("get_integration_guide", "topic") {
		for _, language := range []string{"", "go", "php", "python", "cobol"} {
			a, err := s.integration(caller, catalog.Given{"topic": topic, "language": language, "lang": lang})
			add("integration "+topic+" "+language, a, err)
		}
	}
	for _, topic := range s.topics("get_webhook_guide", "topic") {
		a, err := s.webhooks(caller, catalog.Given{"topic": topic, "lang": lang})
		add("webhook "+topic, a, err)
	}
	for _, section := range s.topics("get_otep_guide", "section") {
		a, err := s.otep(caller, catalog.Given{"section": section, "lang": lang})
		add("otep "+section, a, err)
	}
	return out
}

// Every topic of the published lists has a guide that names only what there is:
// tools, addresses, codes and events.
func TestGuidesNameWhatThereIs(t *testing.T) {
	t.Parallel()
	s := real(t)
	addresses := map[string]bool{"/api/graphql": true, "/api/mcp": true, "/api/mcp/developer": true, "/api/mcp/lockers": true, "/mcp-approvals": true, "/docs": true, "/api/ai-skill": true, "/api/ai/tools": true,
		"/api/ai/tools/openapi": true, "/api/ai/tools/graphql": true, "/api/v1": true}
	for _, o := range s.cfg.Catalog.Operations() {
		addresses[o.Path] = true
	}
	addresses["/api/v1/tracking/NUMBER"], addresses["/api/v1/otep/trackings/NUMBER"] = addresses["/api/v1/tracking/{tracking_number}"], addresses["/api/v1/otep/trackings/{tracking_number}"]
	members := []string{"get_", "otep_", "validate_", "verify_", "run_", "replay_", "check_", "find_", "list_"}
	for _, lang := range languages() {
		for name, g := range s.guides(t, lang) {
			require.True(t, g.Result, name)
			require.True(t, (g.Markdown != nil) != (g.Data != nil), name)
			whole, err := json.Marshal(g)
			require.NoError(t, err)
			require.Less(t, len(whole), 96<<10, "%s is more than a tool's result may have", name)
			if g.Data != nil {
				require.True(t, json.Valid(g.Data), name)
				continue
			}
			text := *g.Markdown
			require.True(t, strings.HasPrefix(text, "# ") || strings.HasPrefix(text, "---\nname: otep"), name)
			require.NotContains(t, text, "no value", name)
			require.NotContains(t, text, "%!", name)
			require.Zero(t, strings.Count(text, "```")%2, "%s: a block does not end", name)
			if strings.HasPrefix(name, "otep") { // has tests of its own
				continue
			}
			require.Equal(t, locale.English, g.Lang, name)
			for _, m := range regexp.MustCompile("`([a-z]+_[a-z_]+)`").FindAllStringSubmatch(text, -1) {
				if slices.ContainsFunc(members, func(p string) bool { return strings.HasPrefix(m[1], p) }) {
					require.NotNil(t, s.cfg.Catalog.Tool(catalog.DeveloperServer, m[1]), "%s names %s", name, m[1])
				}
			}
			for _, m := range regexp.MustCompile("`([A-Z]+(?:_[A-Z]+)+)`").FindAllStringSubmatch(text, -1) {
				require.True(t, locale.HasError(m[1]) || strings.HasPrefix(m[1], "POSTERN_"), "%s names %s", name, m[1])
			}
			for _, m := range regexp.MustCompile(`(?:https://host\.example|(?:GET|POST|PUT|PATCH|DELETE) )(/[\w./{}-]*[\w}])`).FindAllStringSubmatch(text, -1) {
				require.True(t, addresses[m[1]] || m[1] == "/track/NUMBER" || m[1] == asyncapi.Path, "%s names %s", name, m[1])
			}
			for _, b := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(text, -1) {
				require.True(t, json.Valid([]byte(b[1])), "%s: %s", name, b[1])
			}
			require.Less(t, len(text), 64<<10, "%s is too long to read", name)
		}
	}
}

// What there is not is said in a sentence.
func TestWhatThereIsNotIsSaid(t *testing.T) {
	t.Parallel()
	all := real(t).guides(t, locale.English)
	for name, word := range map[string]string{"integration labels ": "no shipping labels", "webhook ohp": "does not speak"} {
		text := *all[name].Markdown
		require.Contains(t, text, "This version ")
		require.Contains(t, text, word)
		require.Less(t, len(text), 300)
	}
}

// A worked program is in the language that was asked for, and the answer says
// in which it is.
func TestProgramsByLanguage(t *testing.T) {
	t.Parallel()
	all := real(t).guides(t, locale.English)
	for language, want := range map[string]string{"go": "package main", "php": "<?php", "python": "import urllib", "": "curl -sS", "cobol": "curl -sS"} {
		g := all["integration auth "+language]
		require.Contains(t, *g.Markdown, want)
		if language == "" || language == "cobol" {
			language = "curl"
		}
		require.Equal(t, language, g.Language)
	}
}

func TestTheProtocolGuide(t *testing.T) {
	t.Parallel()
	s := real(t)
	german := s.guides(t, locale.German)
	require.Equal(t, locale.German, german["otep spec"].Lang)
	require.NotEqual(t, *s.guides(t, locale.English)["otep spec"].Markdown, *german["otep spec"].Markdown)
	require.Equal(t, locale.English, german["otep overview"].Lang, "it is there in English only, and says so")
	var examples map[string]any
	require.NoError(t, json.Unmarshal(german["otep examples"].Data, &examples))
	require.Contains(t, examples, "epcis")
	require.Contains(t, *german["otep overview"].Markdown, base)
}

func TestErrorsInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	s := real(t)
	for _, lang := range languages() {
		text := *s.guides(t, lang)["integration errors "].Markdown
		require.Contains(t, text, locale.Error(lang, "ORDER_NOT_FOUND"))
		for _, o := range s.cfg.Catalog.Operations() {
			for _, code := range o.Errors {
				require.Contains(t, text, "| `"+code+"` |")
			}
		}
	}
	_, err := s.integration(caller, catalog.Given{"lang": "tlh"})
	var e *cloud.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "VALIDATION_FAILED", e.Code)
	require.Equal(t, languages(), e.Details["lang"])
}

// Calls to copy are what the interface takes.
func TestQueriesOfGuides(t *testing.T) {
	t.Parallel()
	s := real(t)
	graph, err := graphql.New(graphql.Config{Catalog: s.cfg.Catalog})
	require.NoError(t, err)
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: graph.Schema()})
	found := 0
	for name, g := range s.guides(t, locale.English) {
		if g.Markdown == nil {
			continue
		}
		for _, m := range regexp.MustCompile(`-d '(\{.*\})'`).FindAllStringSubmatch(*g.Markdown, -1) {
			var body struct{ Query string }
			require.NoError(t, json.Unmarshal([]byte(m[1]), &body), name)
			if body.Query != "" {
				_, list := gqlparser.LoadQueryWithRules(schema, body.Query, rules.NewDefaultRules())
				require.Empty(t, list, name)
				found++
			}
		}
	}
	require.Positive(t, found)
	require.Contains(t, *s.guides(t, locale.English)["integration tracking "].Markdown, "- `POST /api/v1/otep/ingest`: Ingest events into timelines\n", "who sends needs a token")
}

// Each event has its body; the list has them all with their settings.
func TestTheGuideOfEvents(t *testing.T) {
	t.Parallel()
	s := real(t)
	list := *s.guides(t, locale.English)["webhook events"].Markdown
	for _, e := range slices.Concat(order.Events(), locker.Events()) {
		out, err := s.webhooks(caller, catalog.Given{"event": e.Name})
		require.NoError(t, err)
		g := out.(answer)
		require.Equal(t, "events", g.Topic)
		var body struct{ Event string }
		require.NoError(t, json.Unmarshal(g.Sample, &body))
		require.Equal(t, e.Name, body.Event)
		require.Contains(t, *g.Markdown, "# "+e.Name+"\n")
		require.Contains(t, list, "`"+e.Name+"`")
		if e.Channel != "" {
			require.Contains(t, *g.Markdown, "`"+map[string]string{cloud.ChannelLocker: "locker_provider", cloud.ChannelThirdParty: "third_party_delivery"}[e.Channel]+"`")
			require.Contains(t, *s.guides(t, locale.English)["webhook providers"].Markdown, "| `"+e.Name+"` | `"+e.Kind()+"` |")
		}
		for _, setting := range e.Settings {
			require.Contains(t, *g.Markdown, "`"+setting+"`")
			require.Regexp(t, "(?m)^\\| `"+setting+"` \\|.*`"+regexp.QuoteMeta(e.Name)+"`", list)
		}
	}
	_, err := s.webhooks(caller, catalog.Given{"event": "order.teleported"})
	require.Contains(t, fmt.Sprint(err.(*cloud.Error).Details["event"]), "order.created")
}

func TestTheGuideOfRetries(t *testing.T) {
	t.Parallel()
	text := *real(t).guides(t, locale.English)["webhook retries"].Markdown
	require.Contains(t, text, "| account | 6 | 30s, 2m, 8m, 32m, 2h8m | failed |")
	require.Contains(t, text, "| provider | 8 | 30s, 2m, 8m, 32m, 2h8m, 8h32m, 34h8m | dead letter |")
}
