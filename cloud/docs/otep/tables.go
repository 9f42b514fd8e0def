package otepdocs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/protocol/otep"
)

// Phase is a phase with its codes.
type Phase struct {
	Name    string
	Order   int // 1 to 6, 0 beside the order
	Address string
	Codes   []Code
}

// Code is a status code with its label in the reader's language.
type Code struct {
	otep.Spec
	Label string
	Next  []otep.Code // that may follow it, besides itself
	// Spellings are accepted on input.
	Spellings []string
}

// Address is how the code is named outside of a timeline.
func (c Code) Address() string { return c.URI("universal") }

// Phases are all codes by phase, ordered phases first.
func Phases(lang string) []Phase {
	spellings := accepted()
	out := []Phase{}
	for _, name := range otep.Phases() {
		n, _ := otep.PhaseOrder(name)
		p := Phase{Name: name, Order: n, Address: "otep:phase:" + name}
		for _, s := range otep.Vocabulary() {
			if s.Phase == name {
				p.Codes = append(p.Codes, Code{Spec: s, Label: locale.Status(lang, s.Code), Next: otep.Next(s.Code), Spellings: spellings[s.Code]})
			}
		}
		out = append(out, p)
	}
	return out
}

// accepted are the other spellings of codes, as the codebook tells them.
func accepted() map[otep.Code][]string {
	var book struct {
		Spellings map[string]otep.Code `json:"accepted_spellings"`
	}
	if err := json.Unmarshal(otep.Codebook(), &book); err != nil {
		panic(err) // our own document
	}
	out := map[otep.Code][]string{}
	for s, c := range book.Spellings {
		out[c] = append(out[c], s)
	}
	for _, list := range out {
		slices.Sort(list)
	}
	return out
}

// Rule is a rule of conformance in words.
type Rule struct {
	ID      string
	Warning bool
	Message string
	Hint    string
}

// value stands for the values in a rule's message and hint.
const value = "…"

// Rules are the rules of conformance, with hints in the reader's language.
func Rules(lang string) []Rule {
	var out []Rule
	for _, r := range otep.Rules() {
		blanks := slices.Repeat([]string{value}, max(2, strings.Count(r.Message, "%s")))
		out = append(out, Rule{ID: r.ID, Warning: r.Warning, Message: strings.ReplaceAll(r.Message, "%s", value), Hint: locale.Hint(lang, r.ID, blanks...)})
	}
	return out
}

// Limit is a bound of requests.
type Limit struct {
	Name  string // key of its words
	Value string
}

// Limits are the bounds.
func Limits() []Limit {
	count := func(n int) string { return fmt.Sprint(n) }
	size := func(n int) string {
		if n >= 1<<20 {
			return fmt.Sprintf("%d MiB", n>>20)
		}
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return []Limit{
		{"batch", count(otep.MaxBatchNumbers)}, {"events", count(otep.MaxEvents)}, {"timelines", count(otep.MaxIngestTimelines)},
		{"ingest", size(otep.MaxIngestBytes)}, {"validate", size(otep.MaxValidateBytes)}, {"message", count(otep.MaxMessage)},
		{"extensions", size(otep.MaxExtensionsBytes)}, {"telemetry", count(otep.MaxTelemetry)},
	}
}

// EventCode is an entry of our ONE Record code list.
type EventCode struct {
	Code string
	Used []Code // status codes that give it
}

// EventCodes are the entries of our ONE Record code list.
func EventCodes(lang string) []EventCode {
	var out []EventCode
	for _, c := range projection.OwnEventCodes() {
		e := EventCode{Code: c}
		for _, s := range otep.Vocabulary() {
			if s.OneRecord == c {
				e.Used = append(e.Used, Code{Spec: s, Label: locale.Status(lang, s.Code)})
			}
		}
		out = append(out, e)
	}
	return out
}

// Count is how many universal codes there are.
func Count() int {
	n := 0
	for _, s := range otep.Vocabulary() {
		if s.Universal() {
			n++
		}
	}
	return n
}
