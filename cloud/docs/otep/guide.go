// Package otepdocs is the public description of the tracking protocol: what its
// pages, its Markdown and its samples are made from.
//
// It holds no list of its own. Codes, phases, reasons, sources, moves, rules,
// formats, limits and members come from the tables that the rules and the
// projections run on, and every example is what those made of one sample. Words
// are those of package locale. Read only after New, safe for concurrent use.
package otepdocs

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/protocol/otep"
)

// Path is where the guide stands. Addresses in documents of other formats point
// into it (package projection).
const Path = "/api/otep-guide"

//go:embed sample.json
var sample []byte

//go:embed faulty.json
var faulty []byte

// Sample is a conformant timeline, as a producer sends it.
func Sample() string { return string(sample) }

// Faulty is a timeline with an error in each member of its event.
func Faulty() string { return string(faulty) }

// Example is the sample in one format.
type Example struct {
	projection.Format
	Body string // JSON, indented
}

// Guide is the description for one deployment.
type Guide struct {
	Base     string // its address, without a slash at the end
	Examples []Example
	Fields   []Group
}

// New makes the guide. base is the deployment's address; "" is an example.
func New(base string) (*Guide, error) {
	if base == "" {
		base = "https://api.example.com"
	}
	g := &Guide{Base: strings.TrimRight(base, "/")}
	t, _, err := otep.Read(sample, time.Time{})
	if err != nil {
		return nil, fmt.Errorf("read the guide's sample: %w", err)
	}
	now := t.Events[len(t.Events)-1].RecordedAt.Time
	for i := range t.Events {
		e := &t.Events[i]
		e.EventID = otep.ID(t.Subject, *e)
		e.StatusLabel = locale.Status(locale.English, e.StatusCode)
	}
	t = otep.Fold(t.Profile, t.Subject, t.Events)
	p := projection.New(projection.Config{BaseURL: g.Base, Label: func(c otep.Code) string { return locale.Status(locale.English, c) }})
	for _, f := range projection.Formats() {
		body, err := pretty(p.Document(f, t, now))
		if err != nil {
			return nil, fmt.Errorf("write the sample as %s: %w", f.Name, err)
		}
		g.Examples = append(g.Examples, Example{f, body})
	}
	if g.Fields, err = fields(g.Examples[0].Body); err != nil {
		return nil, err
	}
	return g, nil
}

func pretty(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}
