package page

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/protocol/otep"
)

// storyLine is something that happened to a record.
type storyLine struct {
	at    time.Time
	At    *moment
	Icon  string
	What  string
	More  string
	State shown
	To    string
}

// repeats reports whether another line tells the same, such as the event of a step.
func (l storyLine) repeats(o storyLine) bool {
	return l.at.Sub(o.at).Abs() < 2*time.Second && strings.EqualFold(l.What, o.What)
}

// maxStory are the newest lines of a story that a page shows.
const maxStory = 100

// story is what happened to a record as far as a visitor may read it, newest first.
// What cannot be read leaves its part out, and the page says so.
func (p nounPages) story(c context.Context, ctx *fasthttp.RequestCtx, v visitor, n *catalog.Noun, record map[string]any) (out []storyLine, partly bool) {
	for _, s := range n.Story {
		if !has(record, s.Only) || !p.may(c, v, s.Operation) {
			continue
		}
		in, whole := map[string]any{}, true
		for member, text := range s.Fills {
			whole = whole && isFilled(text, record)
			in[member] = filledIn(text, record)
		}
		if !whole { // it is about something that the record does not have
			continue
		}
		answer, err := p.read(c, ctx, v, s.Operation, in)
		if err != nil {
			level := slog.LevelError
			if _, _, known := p.explain(v.Lang, err); known {
				level = slog.LevelWarn
			}
			p.log.Log(c, level, "read a part of a story", "noun", n.Name, "operation", s.Operation, "err", err)
			partly = true
			continue
		}
		rows, _ := at(answer, s.Rows).([]any)
		first := len(out)
		for _, x := range rows {
			row, ok := x.(map[string]any)
			if !ok {
				continue
			}
			if l := p.storyLine(v.frame, s, row); !slices.ContainsFunc(out[:first], l.repeats) {
				out = append(out, l)
			}
		}
		if n := len(out); n > first && !out[first].at.After(out[n-1].at) { // oldest first
			slices.Reverse(out[first:])
		}
	}
	slices.SortStableFunc(out, func(a, b storyLine) int { return b.at.Compare(a.at) })
	return out[:min(len(out), maxStory)], partly
}

// has reports whether members of a record have values.
func has(record map[string]any, values map[string]string) bool {
	for member, value := range values {
		if plainText(at(record, member)) != value {
			return false
		}
	}
	return true
}

func (p nounPages) storyLine(f frame, s catalog.Strand, row map[string]any) storyLine {
	what := plainText(at(row, s.What))
	l := storyLine{Icon: s.Icon, What: outside(what, maxValue)}
	switch s.Words {
	case "":
	case "otep":
		l.What = locale.Headline(f.Lang, otep.Code(what))
	case "action":
		l.What = actionWords(p.cfg.Catalog, f.Lang, what)
	default:
		l.What = f.V(s.Words, what)
	}
	if t, err := time.Parse(time.RFC3339Nano, plainText(row[s.At])); err == nil {
		l.at, l.At = t, f.Time(t)
	}
	var more []string
	for _, path := range s.More {
		if text := plainText(at(row, path)); text != "" && path == "surface" {
			more = append(more, f.V("value", text))
		} else if text != "" {
			more = append(more, outside(text, maxValue))
		}
	}
	l.More = strings.Join(more, " · ")
	if s.State != "" {
		l.State = p.value(f, s.State, row[s.State], s.States)
	}
	if n := p.cfg.Catalog.Noun(s.Noun); n != nil {
		l.To = recordAddress(n, row)
	}
	return l
}

var inBraces = regexp.MustCompile(`\{([a-z_0-9.]+)\}`)

// isFilled reports whether all members that a text names have values.
func isFilled(text string, record map[string]any) bool {
	for _, m := range inBraces.FindAllString(text, -1) {
		if filledIn(m, record) == "" {
			return false
		}
	}
	return true
}

// filledIn is a text with members of a record in place of their paths in braces.
func filledIn(text string, record map[string]any) string {
	return inBraces.ReplaceAllStringFunc(text, func(m string) string { return plainText(at(record, strings.Trim(m, "{}"))) })
}
