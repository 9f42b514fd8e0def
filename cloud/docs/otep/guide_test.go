package otepdocs_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	otepdocs "github.com/postern-io/postern/cloud/docs/otep"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/protocol/otep"
)

var future = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

func newGuide(t *testing.T) *otepdocs.Guide {
	g, err := otepdocs.New("https://tms.example/")
	require.NoError(t, err)
	return g
}

func TestSamplesSayWhatTheyPromise(t *testing.T) {
	t.Parallel()
	good, err := otep.Validate([]byte(otepdocs.Sample()), future)
	require.NoError(t, err)
	require.Empty(t, good.Errors)
	require.Empty(t, good.Warnings)
	bad, err := otep.Validate([]byte(otepdocs.Faulty()), future)
	require.NoError(t, err)
	require.Empty(t, bad.Warnings)
	found := [][2]string{}
	for _, e := range bad.Errors {
		found = append(found, [2]string{e.Rule, e.Path})
	}
	require.Equal(t, [][2]string{{"V11", "events[0].occurred_at"}, {"V18", "events[0].status_code"}, {"V24", "events[0].source.type"}}, found)
}

func TestThereIsAnExampleOfEveryFormat(t *testing.T) {
	t.Parallel()
	g := newGuide(t)
	names := []string{}
	for _, e := range g.Examples {
		names = append(names, e.Name)
		require.True(t, json.Valid([]byte(e.Body)), e.Name)
		require.NotContains(t, e.Body, "api.example.com", "%s names this deployment", e.Name)
	}
	require.Equal(t, projection.Names(), names)
	var native otep.Timeline
	require.NoError(t, json.Unmarshal([]byte(g.Examples[0].Body), &native))
	require.Equal(t, "evt_3bb8f382b2d362260118", native.Events[0].EventID, "the published sample")
	require.True(t, native.Delivered)
	unnamed, err := otepdocs.New("")
	require.NoError(t, err)
	require.Equal(t, "https://api.example.com", unnamed.Base)
}

// Every member that the schema has is in the tables, with its duty, and no
// other.
func TestFieldsAreThoseOfTheSchema(t *testing.T) {
	t.Parallel()
	type object struct {
		Required   []string                   `json:"required"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var schema struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(otep.Schema(), &schema))
	g := newGuide(t)
	groups := map[string]bool{}
	for _, group := range g.Fields {
		groups[group.Name] = true
		want := schema.Defs[group.Name]
		if group.Name == "timeline" {
			want = schema.object
		}
		names, required := []string{}, []string{}
		for _, f := range group.Fields {
			names = append(names, f.Name)
			require.NotEmpty(t, f.Type)
			if f.Required {
				required = append(required, f.Name)
			}
		}
		all := []string{}
		for name := range want.Properties {
			all = append(all, name)
		}
		require.ElementsMatch(t, all, names, group.Name)
		require.ElementsMatch(t, want.Required, required, group.Name)
	}
	for name, def := range schema.Defs {
		if def.Properties != nil {
			require.True(t, groups[name], "%s is described", name)
		}
	}
}

var ruleRow = regexp.MustCompile(`(?m)^\| V\d\d \|`)

func TestMarkdownHasEveryRow(t *testing.T) {
	t.Parallel()
	g := newGuide(t)
	for _, l := range locale.All() {
		spec, err := g.Spec(l.Code)
		require.NoError(t, err)
		require.NotContains(t, spec, "%!", "a blank without a value")
		require.NotContains(t, spec, "guide.", "a word that is not there")
		for _, r := range otep.Rules() {
			require.Contains(t, spec, "| "+r.ID+" |")
			require.Contains(t, spec, strings.ReplaceAll(locale.Hint(l.Code, r.ID, "…", "…"), "|", `\|`))
		}
		require.Len(t, ruleRow.FindAllString(spec, -1), len(otep.Rules()))
		for _, c := range otep.Vocabulary() {
			require.Contains(t, spec, "| `"+string(c.Code)+"`")
			require.Contains(t, spec, locale.Status(l.Code, c.Code))
		}
		for _, r := range otep.Reasons() {
			require.Contains(t, spec, "| `"+r.Code+"` |")
		}
		for _, f := range projection.Formats() {
			require.Contains(t, spec, "| `"+f.Name+"` | "+f.Title)
		}
	}
	skill, err := g.Skill()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(skill, "---\nname: otep\n"))
	require.Contains(t, skill, "https://tms.example/api/v1/otep/ingest")
	for _, c := range otep.Vocabulary() {
		require.Contains(t, skill, "`"+string(c.Code)+"`")
	}
	for _, r := range otep.Reasons() {
		require.Contains(t, skill, "`"+r.Code+"`")
	}
	for _, f := range projection.Names() {
		require.Contains(t, skill, "`"+f+"`")
	}
}

func TestViewCountsWhatTheTablesHave(t *testing.T) {
	t.Parallel()
	v := newGuide(t).View(locale.German)
	require.Equal(t, 20, v.Universal)
	require.Equal(t, 223, v.Moves)
	codes := 0
	for _, p := range v.Phases {
		codes += len(p.Codes)
	}
	require.Equal(t, len(otep.Vocabulary()), codes)
	require.Len(t, v.Events, 3)
	for _, e := range v.Events {
		require.NotEmpty(t, e.Used, e.Code)
	}
	for _, l := range v.Limits {
		require.NotEqual(t, l.Name, locale.Value(locale.English, "limit", l.Name), "limit %s has words", l.Name)
	}
	for _, term := range v.Terms {
		require.NotEqual(t, strings.ReplaceAll(term.Name, "_", " "), locale.Value(locale.English, "term", term.Name), "term %s has words", term.Name)
	}
	for _, p := range v.Phases {
		require.NotEqual(t, strings.ReplaceAll(p.Name, "_", " "), locale.Value(locale.English, "phase", p.Name), fmt.Sprintf("phase %s has words", p.Name))
	}
}
