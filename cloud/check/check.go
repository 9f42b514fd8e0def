// Package check collects what is wrong with an input, member by member, in words
// that say what to do. The words are English here; package locale has them in
// the caller's language.
package check

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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

// Text checks a text of at most max characters, which may have several lines.
func (f Fields) Text(path, s string, max int) {
	f.text(path, s, max, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' })
}

// Line checks a text of one line of at most max characters.
func (f Fields) Line(path, s string, max int) { f.text(path, s, max, unicode.IsControl) }

func (f Fields) text(path, s string, max int, bad func(rune) bool) {
	if utf8.RuneCountInString(s) > max {
		f.Add(path, "This is too long.")
	}
	if !utf8.ValidString(s) || strings.IndexFunc(s, bad) >= 0 {
		f.Add(path, "This holds characters that cannot be kept.")
	}
}

// OneOf checks that s is one of those allowed.
func (f Fields) OneOf(path, s string, allowed ...string) {
	if !slices.Contains(allowed, s) {
		f.Add(path, "This is none of the values allowed here.")
	}
}

// Between checks that low ≤ n ≤ high.
func (f Fields) Between(path string, n, low, high int) {
	if n < low || n > high {
		f.Add(path, "The value is out of range.")
	}
}

// Place checks coordinates in degrees, of which both are given or none. Their
// members are at+"latitude" and at+"longitude".
func (f Fields) Place(at string, latitude, longitude *float64) {
	off := func(x *float64, most float64) bool { return !(math.Abs(*x) <= most) } // NaN is off too
	if (latitude == nil) != (longitude == nil) || latitude != nil && (off(latitude, 90) || off(longitude, 180)) {
		f.Add(at+"latitude", "Give both coordinates, latitude from -90 to 90 and longitude from -180 to 180.")
	}
}
