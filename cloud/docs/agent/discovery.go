// Package agentdocs tells programs what there is: the tools of all servers and
// the operations behind them in the forms that agents' platforms take, and a
// skill file that leads an agent through an integration (mcp-ai 7).
//
// Everything is made from the catalogue, the GraphQL schema and the tools'
// definitions; there is no list of tools here. Documents hold nothing of any
// business, are made once for each address that the deployment is reached at,
// and are kept for a bounded number of addresses. Safe for concurrent use.
package agentdocs

import (
	"bytes"
	"crypto/md5" //nolint:gosec // names a file's content, as mcp-ai 7 has it; it protects nothing
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/mcp"
)

// Config is what New needs.
type Config struct {
	Catalog *catalog.Catalog
	// Tools are the definitions of a server's tools, as it lists them.
	Tools func(server string) []mcp.Tool
	// Versions are the revisions of the protocol that the servers speak.
	Versions []string
	// SDL is the GraphQL schema; Fields are its root fields.
	SDL     string
	Fields  []catalog.GraphQLField
	Version string // of the product
	// About says in a few words what a scope lets one do; nil: nothing.
	About func(scope string) string
}

// Service makes the documents and runs the tools that read them.
type Service struct {
	cfg   Config
	skill File
	hash  string // MD5 of the skill file

	mu   sync.Mutex
	made map[string]map[string]File // by address, then by name
}

// Addresses of the documents.
const (
	pathManifest     = "/api/.well-known/ai-tools.json"
	pathLLMs         = "/llms.txt"
	pathTools        = "/api/ai/tools"
	pathOpenAPI      = "/api/ai/tools/openapi"
	pathGraphQL      = "/api/ai/tools/graphql"
	pathCapabilities = "/api/ai/capabilities"
	pathSkill        = "/api/ai-skill"
	pathSkillVersion = "/api/ai-skill/version"
	pathGuide        = "/api/otep-guide"
	pathAsyncAPI     = "/api/asyncapi-webhooks.json"
	pathWebhooks     = "/api/webhooks-guide"
	pathLogin        = "/api/v1/user/login"
	pathEndpoint     = "/api/graphql"
)

const (
	typeJSON     = "application/json; charset=utf-8"
	typeMarkdown = "text/markdown; charset=utf-8"
	typeText     = "text/plain; charset=utf-8"
)

// interfaceVersion is that of the interface which the documents describe.
const interfaceVersion = "1.0"

// File is a document as it is sent: its bytes, their media type, the tag that
// stands for them, the name to save it under ("" to show it), and whether the
// bytes go out only as they are.
type File struct {
	Body  []byte
	Type  string
	Tag   string
	Name  string
	Whole bool
}

// Document is a document at its address.
type Document struct {
	Path string
	// Get makes it for the address at which the deployment is reached. Value
	// reads the query. The error is a *cloud.Error.
	Get func(base string, value func(name string) string) (File, error)
}

// New prepares the documents and adds the tools that read them to the
// catalogue. All other tools must be there before the first document is asked
// for.
func New(cfg Config) (*Service, error) {
	if cfg.About == nil {
		cfg.About = func(string) string { return "" }
	}
	s := &Service{cfg: cfg, made: map[string]map[string]File{}}
	body, err := skillFile(cfg.Versions)
	if err != nil {
		return nil, fmt.Errorf("write the skill file: %w", err)
	}
	sum := md5.Sum(body) //nolint:gosec // as above
	s.hash = hex.EncodeToString(sum[:])
	s.skill = File{Body: body, Type: typeMarkdown, Tag: s.hash, Name: "SKILL.md", Whole: true}
	cfg.Catalog.AddTools(s.own()...)
	return s, nil
}

// Documents lists the documents.
func (s *Service) Documents() []Document {
	// at is a document that depends on the address alone.
	at := func(path string, make func(base string) File) Document {
		return Document{path, func(base string, _ func(string) string) (File, error) {
			return s.once(base, path, func() File { return make(base) }), nil
		}}
	}
	return []Document{
		at(pathManifest, s.manifest),
		at(pathLLMs, func(base string) File { return textFile(s.llms(base), typeText) }),
		{pathTools, s.formats},
		at(pathOpenAPI, func(base string) File {
			return textFile(s.cfg.Catalog.Annotated(base, interfaceVersion, s.annotations), typeJSON)
		}),
		at(pathGraphQL, func(base string) File { return jsonFile(s.graphQL(base)) }),
		at(pathCapabilities, func(base string) File { return jsonFile(s.capabilities(base)) }),
		at(pathSkill, func(string) File { return s.skill }),
		at(pathSkillVersion, func(base string) File { return jsonFile(s.skillVersion(base)) }),
	}
}

// maxBases bounds for how many addresses documents are kept: who calls may
// choose a Host. When it is full it begins anew.
const maxBases = 16

// once makes a document unless it is there.
func (s *Service) once(base, name string, make func() File) File {
	s.mu.Lock()
	f, ok := s.made[base][name]
	s.mu.Unlock()
	if ok {
		return f
	}
	f = make() // two callers may make the same one
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made[base] == nil {
		if len(s.made) >= maxBases {
			clear(s.made)
		}
		s.made[base] = map[string]File{}
	}
	s.made[base][name] = f
	return f
}

// textFile is a document whose tag is that of its bytes.
func textFile(body []byte, kind string) File {
	return File{Body: body, Type: kind, Tag: digest(body)[:24]}
}

func jsonFile(v any) File { return textFile(compact(v), typeJSON) }

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// compact is v as JSON with nothing escaped for HTML.
func compact(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("discovery: a document has no encoding: " + err.Error()) // plain values of our own
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// formats answers with the tools of one server in one platform's form.
func (s *Service) formats(base string, value func(string) string) (File, error) {
	format, server := value("format"), value("server")
	if format == "" {
		format = "mcp"
	}
	if server == "" {
		server = catalog.OperationsServer
	}
	ids := []string{}
	for _, x := range catalog.ToolServers() {
		ids = append(ids, x.ID)
	}
	wrong := &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Fields: map[string][]string{}, Details: map[string]any{}}
	if !slices.Contains(formatNames, format) {
		wrong.Fields["format"], wrong.Details["format"] = []string{"Use one of openai, anthropic, mcp and langchain, or leave it out for mcp."}, formatNames
	}
	if !slices.Contains(ids, server) {
		wrong.Fields["server"], wrong.Details["server"] = []string{"Use operations, developer or lockers, or leave it out for operations."}, ids
	}
	if len(wrong.Fields) > 0 {
		return File{}, wrong
	}
	return s.once(base, pathTools+"?"+format+"&"+server, func() File {
		list := []any{}
		for _, t := range s.cfg.Tools(server) {
			list = append(list, formed(format, t, s.cfg.Catalog.Tool(server, t.Name)))
		}
		return jsonFile(struct {
			Format string `json:"format"`
			Server string `json:"server"`
			Count  int    `json:"count"`
			Tools  []any  `json:"tools"`
		}{format, server, len(list), list})
	}), nil
}

// skillVersion says which skill file there is.
type skillVersion struct {
	Version     string `json:"version"`
	Hash        string `json:"hash"`
	DownloadURL string `json:"download_url"`
}

func (s *Service) skillVersion(base string) skillVersion {
	return skillVersion{SkillVersion, s.hash, base + pathSkill}
}

// stamp is when a document was made.
func stamp() string { return time.Now().UTC().Format(time.RFC3339) }
