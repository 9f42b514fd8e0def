// Package check collects what is wrong with an input, member by member, in words
// that say what to do. The words are English here; package locale has them in
// the caller's language.
package check

import (
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

// Err is nil when nothing is wrong, else an error of kind cloud.Invalid.
func (f Fields) Err() error {
	if len(f) == 0 {
		return nil
	}
	return &cloud.Error{Kind: cloud.Invalid, Code: Code, Fields: f}
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
