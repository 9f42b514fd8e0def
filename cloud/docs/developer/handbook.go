// Package developer teaches people's agents how to build on the interface: short
// guides by topic, in Markdown, and a check of received webhook signatures.
//
// Guides hold what the program itself runs on: operations, their examples and
// recorded answers from the catalogue, bodies of events from those that send
// them, waits from the sender, messages of errors, and the tracking protocol
// from its own guide. Nothing is stored, and what the check is given stays with
// the call. Safe for concurrent use.
package developer

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
)

// Config is what New needs.
type Config struct {
	Catalog *catalog.Catalog
	// Events are all that endpoints may receive: those with settings are for
	// businesses and customers, the others for providers.
	Events []cloud.HookEvent
	// Waits are the sender's, after the first, second, … failed attempt.
	Waits []time.Duration
	// Fields are the root fields of the GraphQL schema.
	Fields []catalog.GraphQLField
	// Versions are the revisions of the agents' protocol.
	Versions []string
}

// Service gives guides.
type Service struct {
	cfg  Config
	text *template.Template
}

//go:embed text/*.md
var texts embed.FS

//go:embed code/*.txt
var code embed.FS

// New reads the guides and adds their tools to the catalogue. All other tools
// should be there before the first guide is asked for.
func New(cfg Config) (*Service, error) {
	s := &Service{cfg: cfg}
	var err error
	if s.text, err = template.New("").Funcs(s.words()).ParseFS(texts, "text/*.md"); err != nil {
		return nil, fmt.Errorf("read the guides: %w", err)
	}
	cfg.Catalog.AddTools(s.tools()...)
	return s, nil
}

// view is what a guide is written from.
type view struct {
	Base     string // the deployment's address
	Lang     string // of messages
	Code     string // language of worked programs, curl for the command line
	Event    *cloud.HookEvent
	Account  []cloud.HookEvent
	Provider []cloud.HookEvent
	Fields   []catalog.GraphQLField
	Versions []string
}

// write writes one guide.
func (s *Service) write(name string, v view) (string, error) {
	v.Account, v.Provider, v.Fields, v.Versions = s.events(true), s.events(false), s.cfg.Fields, s.cfg.Versions
	var b bytes.Buffer
	if err := s.text.ExecuteTemplate(&b, name+".md", v); err != nil {
		return "", fmt.Errorf("write the guide %s: %w", name, err)
	}
	return strings.TrimSpace(b.String()) + "\n", nil
}

// words are what guides are written with.
func (s *Service) words() template.FuncMap {
	return template.FuncMap{
		"op": s.line, "at": s.address, "ops": s.lines, "request": s.request, "answer": s.answer, "codes": s.codes, "message": message, "program": program,
		"tools": s.cfg.Catalog.Tools, "servers": catalog.ToolServers, "profiles": catalog.Profiles, "scopes": catalog.ProfileScopes, "settings": cloud.HookSettings,
		"event": s.event, "told": s.eventsOf, "waits": s.waits, "join": strings.Join, "string": func(b []byte) string { return string(b) },
		"add": func(a, b int) int { return a + b }, "attempts": func() []int { return []int{cloud.AccountAttempts, cloud.ProviderAttempts} },
		"readers": func() string { return "`" + strings.Join(languages(), "`, `") + "`" },
	}
}

// find is an operation that a guide names.
func (s *Service) find(name string) (*catalog.Operation, error) {
	if o := s.cfg.Catalog.Find(name); o != nil {
		return o, nil
	}
	return nil, fmt.Errorf("there is no operation %s", name)
}

// line is an operation on a line: where it is, what it does, what it asks for.
func (s *Service) line(name string) (string, error) {
	o, err := s.find(name)
	if err != nil {
		return "", err
	}
	out := fmt.Sprintf("`%s %s`: %s", o.Method, o.Path, o.Summary)
	switch {
	case !o.NeedsToken():
		out += " (no token needed)"
	case len(o.Scopes) > 0:
		out += " (" + strings.Join(o.Scopes, ", ") + ")"
	}
	return out, nil
}

// address is where an operation is.
func (s *Service) address(name string) (string, error) {
	o, err := s.find(name)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("`%s %s`", o.Method, o.Path), nil
}

// lines are those of every operation whose name begins so.
func (s *Service) lines(start string) ([]string, error) {
	var out []string
	for _, o := range s.cfg.Catalog.Operations() {
		if strings.HasPrefix(o.Name, start) {
			text, err := s.line(o.Name)
			if err != nil {
				return nil, err
			}
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no operation begins with %s", start)
	}
	return out, nil
}

// request is an operation's worked input, indented.
func (s *Service) request(name string) (string, error) {
	o, err := s.find(name)
	if err != nil {
		return "", err
	}
	if o.Example == "" {
		return "", fmt.Errorf("%s has no example", name)
	}
	return indented(o.Worked())
}

// answer is what is picked from an answer that an operation really gave.
func (s *Service) answer(name string, members ...string) (string, error) {
	o, err := s.find(name)
	if err != nil {
		return "", err
	}
	var all map[string]any
	if err := json.Unmarshal(o.Answered, &all); err != nil {
		return "", fmt.Errorf("read the recorded answer of %s: %w", name, err)
	}
	out := map[string]any{}
	for _, m := range members {
		v, ok := all[m]
		if !ok {
			return "", fmt.Errorf("the answer of %s has no member %s", name, m)
		}
		out[m] = v
	}
	return indented(out)
}

func indented(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return strings.TrimSpace(b.String()), err
}

// codes are the errors that operations answer, beside those that every one may.
func (s *Service) codes() []string {
	var out []string
	for _, o := range s.cfg.Catalog.Operations() {
		out = append(out, o.Errors...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// message is what an error says in a language.
func message(lang, code string) string {
	return strings.NewReplacer("|", `\|`, "%[1]s", "…", "%[2]s", "…", "%s", "…", "%d", "…").Replace(locale.Error(lang, code))
}

// program is a worked program: auth or verify, in a language.
func program(name, language string) (string, error) {
	b, err := code.ReadFile("code/" + name + "." + language + ".txt")
	return strings.TrimSpace(string(b)), err
}

// eventsOf are the events that a setting tells.
func (s *Service) eventsOf(setting string) []string {
	var out []string
	for _, e := range s.events(true) {
		if slices.Contains(e.Settings, setting) {
			out = append(out, e.Name)
		}
	}
	return out
}

// event finds an event by name; nil when there is none.
func (s *Service) event(name string) *cloud.HookEvent {
	for i := range s.cfg.Events {
		if s.cfg.Events[i].Name == name {
			return &s.cfg.Events[i]
		}
	}
	return nil
}

// waits are those between so many attempts, in words.
func (s *Service) waits(attempts int) string {
	var out []string
	for _, w := range s.cfg.Waits[:min(attempts-1, len(s.cfg.Waits))] {
		text := w.String() // 2m0s
		if rest, whole := strings.CutSuffix(text, "m0s"); whole {
			text = rest + "m"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func languages() []string {
	var out []string
	for _, l := range locale.All() {
		out = append(out, l.Code)
	}
	return out
}

// events are those of the account channel, or those of providers.
func (s *Service) events(account bool) (out []cloud.HookEvent) {
	for _, e := range s.cfg.Events {
		if (e.Channel == "") == account {
			out = append(out, e)
		}
	}
	return out
}
