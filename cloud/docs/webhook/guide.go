// Package webhookdocs is the guide for receivers of webhooks: what its page is
// made from. Events, waits and requests are those that the sender has; the code
// that verifies signatures is that of files which tests run against real
// requests. Read only after New, safe for concurrent use.
package webhookdocs

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Path is where the guide stands.
const Path = "/api/webhooks-guide"

// Config is what a guide is made from.
type Config struct {
	Base   string // the deployment's address; "" is an example
	Events []cloud.HookEvent
	// Account and Provider are the waits after failed attempts of either channel.
	Account, Provider []time.Duration
	Requests          []Request
}

// Request is an example of what goes out.
type Request struct {
	Name string // of the format or signature, as it is set
	Head string // headers, one a line
	Body string
}

// Event is an event with a body.
type Event struct {
	cloud.HookEvent
	Body string // JSON, indented
}

// Snippet is code that verifies a signature, whole and ready to copy.
type Snippet struct {
	Language, File, Code string
}

// Guide is the guide for one deployment.
type Guide struct {
	Path, Base        string
	Events            []Event
	Snippets          []Snippet
	Account, Provider []string // waits: 30 s, 2 min, …
	Requests          []Request
}

//go:embed snippets/verify/verify.go snippets/verify.mjs snippets/verify.py snippets/verify.php snippets/Verify.java snippets/Verify.cs
var files embed.FS

// Snippets are the code in each language.
func Snippets() ([]Snippet, error) {
	out := []Snippet{{"Go", "verify/verify.go", ""}, {"JavaScript", "verify.mjs", ""}, {"Python", "verify.py", ""}, {"PHP", "verify.php", ""}, {"Java", "Verify.java", ""}, {"C#", "Verify.cs", ""}}
	for i := range out {
		code, err := files.ReadFile("snippets/" + out[i].File)
		if err != nil {
			return nil, fmt.Errorf("read the example in %s: %w", out[i].Language, err)
		}
		out[i].Code = strings.TrimSpace(string(code))
		out[i].File = out[i].File[strings.LastIndexByte(out[i].File, '/')+1:]
	}
	return out, nil
}

// New makes a guide.
func New(c Config) (*Guide, error) {
	g := &Guide{Path: Path, Base: strings.TrimRight(c.Base, "/"), Account: waits(c.Account), Provider: waits(c.Provider), Requests: c.Requests}
	if g.Base == "" {
		g.Base = "https://api.example.com"
	}
	for _, e := range c.Events {
		var b bytes.Buffer
		if err := json.Indent(&b, e.Sample, "", "  "); err != nil {
			return nil, fmt.Errorf("read the sample of %s: %w", e.Name, err)
		}
		g.Events = append(g.Events, Event{e, b.String()})
	}
	var err error
	g.Snippets, err = Snippets()
	return g, err
}

// waits are waits as people write them.
func waits(list []time.Duration) (out []string) {
	for _, d := range list {
		switch {
		case d < time.Minute:
			out = append(out, fmt.Sprintf("%g s", d.Seconds()))
		case d < 3*time.Hour:
			out = append(out, fmt.Sprintf("%.0f min", d.Minutes()))
		default:
			out = append(out, fmt.Sprintf("%.1f h", d.Hours()))
		}
	}
	return out
}
