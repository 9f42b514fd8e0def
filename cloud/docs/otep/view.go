package otepdocs

import (
	"bytes"
	_ "embed"
	"fmt"
	"reflect"
	"strings"
	"text/template"

	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/protocol/otep"
)

// View is the guide in one language, for templates.
type View struct {
	*Guide
	Version   string
	Path      string
	Sample    string
	Universal int // codes that every profile has
	Moves     int // valid ones
	Phases    []Phase
	Reasons   []otep.Incident
	Sources   []otep.Family
	Sensors   []otep.Sensor
	Profiles  []string
	Rules     []Rule
	Limits    []Limit
	Calls     []Call
	Terms     []projection.Term
	Events    []EventCode
}

// Call is an operation of the interface.
type Call struct {
	Method, Path string
	Token        bool // needed
	Text         string
}

// View gives the guide in a language.
func (g *Guide) View(lang string) View {
	v := View{Guide: g, Version: otep.Version, Path: Path, Sample: strings.TrimSpace(Sample()), Universal: Count(), Phases: Phases(lang), Reasons: otep.Reasons(),
		Sources: otep.SourceTypes(), Sensors: otep.Sensors(), Profiles: otep.Profiles(), Rules: Rules(lang), Limits: Limits(), Calls: calls(lang),
		Terms: projection.Terms(), Events: EventCodes(lang)}
	for _, p := range v.Phases {
		for _, c := range p.Codes {
			v.Moves += len(c.Next)
		}
	}
	return v
}

func calls(lang string) []Call {
	const base = "/api/v1/otep"
	word := func(key string, args ...any) string { return locale.Word(lang, key, args...) }
	return []Call{
		{"GET", base + "/trackings/{tracking_number}", false, word("guide.read.text")},
		{"GET", base + "/trackings/{tracking_number}/events", false, word("guide.events.text")},
		{"POST", base + "/trackings/batch", false, word("guide.batch.text", fmt.Sprint(otep.MaxBatchNumbers))},
		{"POST", base + "/validate", false, word("guide.check.text")},
		{"POST", base + "/ingest", true, word("guide.send.text")},
		{"POST", base + "/ingest/epcis", true, word("guide.epcis.text")},
		{"GET", base + "/epcis/events", true, word("guide.pull.text")},
		{"GET", base + "/changes", true, word("guide.changes.text")},
		{"GET", base + "/subscriptions", true, word("guide.subscriptions.text")},
		{"POST", base + "/subscriptions", true, word("guide.subscribe.text")},
		{"GET", base + "/subscriptions/{id}", true, word("guide.subscription.text")},
		{"DELETE", base + "/subscriptions/{id}", true, word("guide.unsubscribe.text")},
		{"GET", base + "/containers", true, word("guide.containers.text")},
		{"POST", base + "/containers", true, word("guide.containers.create.text")},
		{"GET", base + "/containers/{id}", true, word("guide.container.text")},
		{"POST", base + "/containers/{id}/bind", true, word("guide.bind.text")},
		{"POST", base + "/containers/{id}/unbind", true, word("guide.unbind.text")},
		{"GET", base + "/trackings/{tracking_number}/aliases", true, word("guide.aliases.text")},
		{"POST", base + "/trackings/{tracking_number}/aliases", true, word("guide.aliases.add.text")},
		{"DELETE", base + "/trackings/{tracking_number}/aliases/{id}", true, word("guide.aliases.remove.text")},
		{"POST", base + "/trackings/{tracking_number}/disputes", true, word("guide.dispute.text")},
		{"GET", base + "/reviews", true, word("guide.reviews.text")},
		{"GET", base + "/reviews/{id}", true, word("guide.review.text")},
		{"POST", base + "/reviews/{id}/decide", true, word("guide.decide.text")},
	}
}

//go:embed spec.md
var specText string

//go:embed skill.md
var skillText string

// Spec is the specification as Markdown.
func (g *Guide) Spec(lang string) (string, error) { return g.markdown("spec", specText, lang) }

// Skill tells an agent how to read and send, as Markdown, in English.
func (g *Guide) Skill() (string, error) { return g.markdown("skill", skillText, locale.English) }

func (g *Guide) markdown(name, text, lang string) (string, error) {
	t, err := template.New(name).Funcs(template.FuncMap{
		"T":    func(key string, args ...any) string { return locale.Word(lang, key, args...) },
		"V":    func(kind, value string) string { return locale.Value(lang, kind, value) },
		"str":  func(v any) string { return fmt.Sprint(v) },
		"n":    length,
		"cell": strings.NewReplacer("|", `\|`, "\n", " ").Replace,
	}).Parse(text)
	if err != nil {
		return "", fmt.Errorf("read the guide's %s: %w", name, err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, g.View(lang)); err != nil {
		return "", fmt.Errorf("write the guide's %s: %w", name, err)
	}
	return b.String(), nil
}

func length(list any) string { return fmt.Sprint(reflect.ValueOf(list).Len()) }
