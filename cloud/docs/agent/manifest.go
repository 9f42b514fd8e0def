package agentdocs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// name is what this deployment calls itself.
const name = "Postern"

// about is the summary of all there is, in a sentence.
const about = "Parcel lockers, delivery orders, routes and tracking, as REST, GraphQL, webhooks and tools for agents."

// manifestBody is all there is for agents. Hash is that of everything but
// GeneratedAt and itself.
type manifestBody struct {
	Name        string         `json:"name"`
	Version     string         `json:"version"`
	GeneratedAt string         `json:"generated_at,omitempty"`
	BaseURL     string         `json:"base_url"`
	Auth        auth           `json:"auth"`
	Servers     []server       `json:"servers"`
	Profiles    []profile      `json:"profiles"`
	Scopes      []scope        `json:"scopes"`
	Categories  []category     `json:"categories"`
	Tools       []manifestTool `json:"tools"`
	Links       links          `json:"links"`
	Hash        string         `json:"hash,omitempty"`
}

type auth struct {
	Type   string `json:"type"`
	Login  string `json:"login"`
	Header string `json:"header"`
}

type server struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	URL       string   `json:"url"`
	Audience  string   `json:"audience"`
	Transport string   `json:"transport"`
	Versions  []string `json:"protocol_versions"`
	Count     int      `json:"tool_count"`
}

type profile struct {
	Name   string   `json:"name"`
	Scopes []string `json:"scopes"`
}

type scope struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type category struct {
	Name  string   `json:"name"`
	Title string   `json:"title"`
	Count int      `json:"tool_count,omitempty"`
	Tools []string `json:"tools"`
}

type manifestTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Category    string          `json:"category"`
	Server      string          `json:"server"`
	Risk        catalog.Risk    `json:"risk"`
	Scopes      []string        `json:"scopes"`
	Confirm     bool            `json:"confirm_required"`
	Asks        bool            `json:"person_required,omitempty"` // done by a person's word alone: a question or an approval
	Public      bool            `json:"public"`
	InputSchema json.RawMessage `json:"input_schema"`
	BacksOnto   *string         `json:"backs_onto"` // null: several operations, or none
}

// links are addresses of what there is besides.
type links struct {
	OpenAPI      string `json:"openapi"`
	GraphQL      string `json:"graphql"`
	Tools        string `json:"tools"`
	Capabilities string `json:"capabilities"`
	Skill        string `json:"skill"`
	SkillVersion string `json:"skill_version"`
	LLMs         string `json:"llms_txt"`
	OTEPGuide    string `json:"otep_guide"`
	AsyncAPI     string `json:"asyncapi"`
	Webhooks     string `json:"webhooks_guide"`
	Docs         string `json:"docs"`
}

func linksOf(base string) links {
	return links{OpenAPI: base + pathOpenAPI, GraphQL: base + pathGraphQL, Tools: base + pathTools, Capabilities: base + pathCapabilities, Skill: base + pathSkill,
		SkillVersion: base + pathSkillVersion, LLMs: base + pathLLMs, OTEPGuide: base + pathGuide, AsyncAPI: base + pathAsyncAPI, Webhooks: base + pathWebhooks, Docs: base + "/docs"}
}

func (s *Service) servers(base string) []server {
	var out []server
	for _, x := range catalog.ToolServers() {
		out = append(out, server{x.ID, name + " " + strings.ToLower(x.Name), base + x.Path, x.Audience, "http", s.cfg.Versions, len(s.cfg.Catalog.Tools(x.ID))})
	}
	return out
}

// categories are those that have tools, each with the names of its tools on any
// server.
func (s *Service) categories() []category {
	var out []category
	for _, c := range s.cfg.Catalog.Categories("") {
		x := category{Name: c.Name, Title: c.Title}
		for _, t := range s.cfg.Catalog.Tools("") {
			if t.Category == c.Name && !slices.Contains(x.Tools, t.Name) {
				x.Tools = append(x.Tools, t.Name)
			}
		}
		out = append(out, x)
	}
	return out
}

// content is the manifest without what changes with the time.
func (s *Service) content(base string) manifestBody {
	m := manifestBody{Name: name, Version: s.cfg.Version, BaseURL: base, Auth: auth{"bearer", pathLogin, "Authorization"}, Servers: s.servers(base),
		Categories: s.categories(), Links: linksOf(base)}
	for _, p := range catalog.Profiles() {
		m.Profiles = append(m.Profiles, profile{p, catalog.ProfileScopes(p)})
	}
	for _, x := range cloud.AllScopes() {
		m.Scopes = append(m.Scopes, scope{x, s.cfg.About(x)})
	}
	for _, x := range catalog.ToolServers() {
		for _, d := range s.cfg.Tools(x.ID) {
			t := s.cfg.Catalog.Tool(x.ID, d.Name)
			m.Tools = append(m.Tools, manifestTool{t.Name, t.Title, d.Description, t.Category, x.ID, t.Risk, list(t.Scopes), t.Confirm, t.Asks, t.Public(), d.Input, s.backs(t)})
		}
	}
	return m
}

// backs is the operation behind a tool, nil for one that has none of its own.
func (s *Service) backs(t *catalog.Tool) *string {
	o := s.cfg.Catalog.Find(t.Operation)
	if o == nil {
		return nil
	}
	text := o.Method + " " + o.Path
	return &text
}

// manifest is the whole content with its hash. Its tag stands for everything but
// when it was made.
func (s *Service) manifest(base string) File {
	m := s.content(base)
	m.Hash = digest(compact(m))
	m.GeneratedAt = stamp()
	return File{Body: compact(m), Type: typeJSON, Tag: m.Hash[:24]}
}

// capabilitiesBody is the short form of the manifest.
type capabilitiesBody struct {
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Categories []category `json:"categories"`
	Servers    []server   `json:"servers"`
	Formats    []string   `json:"formats"`
}

func (s *Service) capabilities(base string) capabilitiesBody {
	out := capabilitiesBody{name, s.cfg.Version, s.categories(), s.servers(base), formatNames}
	for i := range out.Categories {
		out.Categories[i].Count = len(out.Categories[i].Tools)
	}
	return out
}

// llms is the manifest for readers of Markdown (llmstxt.org).
func (s *Service) llms(base string) []byte {
	m := s.content(base)
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# %s\n\n> %s\n", m.Name, about)
	line("Base URL: %s. Log in with POST %s, or make an API key, and send it as `%s: Bearer …`; tools marked public need none.", m.BaseURL, m.Auth.Login, m.Auth.Header)
	line("Tool servers speak the Model Context Protocol over HTTP. `X-MCP-Profile` or `X-MCP-Scopes` narrow a connection, `X-MCP-Dry-Run: 1` shows what a write would change, `X-MCP-Require-Approval: 1` queues every write for a person.")
	line("\n## Servers\n")
	for _, x := range m.Servers {
		line("- [%s](%s): %s. %d tools.", x.Name, x.URL, x.Audience, x.Count)
	}
	for _, c := range m.Categories {
		line("\n## %s\n\n%s.\n", c.Name, c.Title)
		for _, t := range m.Tools {
			if t.Category == c.Name {
				line("- `%s` (%s): %s", t.Name, strings.Join(t.traits(), "; "), t.Description)
			}
		}
	}
	line("\n## Profiles\n")
	for _, p := range m.Profiles {
		line("- `%s`: %s", p.Name, strings.Join(p.Scopes, ", "))
	}
	line("\n## Scopes\n")
	for _, x := range m.Scopes {
		line("- `%s`: %s", x.Name, x.Description)
	}
	line("\n## Links\n")
	for _, l := range [][2]string{{"Manifest of all tools", base + pathManifest}, {"Tools by platform", m.Links.Tools}, {"REST as OpenAPI, with hints for agents", m.Links.OpenAPI},
		{"REST for people", m.Links.Docs}, {"GraphQL operations", m.Links.GraphQL}, {"Overview", m.Links.Capabilities}, {"Integration skill", m.Links.Skill},
		{"Version of the skill", m.Links.SkillVersion}, {"Guide to the tracking protocol", m.Links.OTEPGuide}} {
		line("- [%s](%s)", l[0], l[1])
	}
	return []byte(b.String())
}

// traits are what to know of a tool before it is called.
func (t manifestTool) traits() []string {
	out := []string{t.Server + " server", string(t.Risk) + " risk"}
	if t.Public {
		out = append(out, "public")
	} else {
		out = append(out, strings.Join(t.Scopes, " + "))
	}
	if t.Asks {
		out = append(out, "waits for a person's word")
	} else if t.Confirm {
		out = append(out, "asks for confirm=true")
	}
	return out
}
