// Package check collects what is wrong with an input, member by member, in words
// that say what to do. The words are English here; package locale has them in
// the caller's language.
package check

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Code is the code of the error of an input that fails its checks.
const Code = "VALIDATION_FAILED"

// Fields are messages by member, a path such as packages.0.weight. The zero value
// reads as none; make one to add to it. It is not safe for concurrent use.
type Fields map[string][]string

// Add notes what is wrong with a member.
func (f Fields) Add(path, message string) { f[path] = append(f[path], message) }

// Bounds of what an answer says is wrong.
const (
	MaxFields   = 50 // members
	MaxMessages = 5  // of one member
)

// Err is nil when nothing is wrong, else an error of kind cloud.Invalid. It names the
// first MaxFields members, with an index as a number; the message and details.more_errors
// count the rest.
func (f Fields) Err() error {
	if len(f) == 0 {
		return nil
	}
	e := &cloud.Error{Kind: cloud.Invalid, Code: Code, Fields: f}
	for path, list := range f {
		if len(list) > MaxMessages {
			f[path] = list[:MaxMessages]
		}
	}
	if more := len(f) - MaxFields; more > 0 {
		e.Fields = map[string][]string{}
		for _, path := range slices.SortedFunc(maps.Keys(f), comparePaths)[:MaxFields] {
			e.Fields[path] = f[path]
		}
		e.Args, e.Details = []any{strconv.Itoa(MaxFields), strconv.Itoa(more)}, map[string]any{"more_errors": more}
	}
	return e
}

// Listed are details that name things, the first MaxFields of them; more_{name} counts the
// rest.
func Listed[T any](name string, list []T) map[string]any {
	if more := len(list) - MaxFields; more > 0 {
		return map[string]any{name: list[:MaxFields], "more_" + name: more}
	}
	return map[string]any{name: list}
}

// comparePaths orders packages.2 before packages.10.
func comparePaths(a, b string) int {
	for {
		x, restA, moreA := strings.Cut(a, ".")
		y, restB, moreB := strings.Cut(b, ".")
		if x != y {
			n, errN := strconv.Atoi(x)
			m, errM := strconv.Atoi(y)
			if errN == nil && errM == nil && n != m {
				return cmp.Compare(n, m)
			}
			return cmp.Compare(x, y)
		}
		if !moreA || !moreB {
			return cmp.Compare(len(a), len(b))
		}
		a, b = restA, restB
	}
}

// Agreed checks a member by which a person agrees: it must be there, and true.
func (f Fields) Agreed(path string, given *bool) {
	switch {
	case given == nil:
		f.Say(path, MessageRequired)
	case !*given:
		f.Say(path, MessageTrue)
	}
}

// Line checks a text of one line of at most max characters.
func (f Fields) Line(path, s string, max int) {
	most := float64(max)
	(&Rules{Max: &most, Line: true}).text(f, path, s)
}

// Ahead checks that a day, as YYYY-MM-DD, has not passed at now. An empty or
// unreadable text breaks other rules.
func (f Fields) Ahead(path, day string, now time.Time) {
	t, err := time.ParseInLocation(time.DateOnly, day, now.Location())
	if err == nil && t.AddDate(0, 0, 1).Before(now) {
		f.Add(path, "The date has passed.")
	}
}
