package chat

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
)

// fields collects what is wrong with an input.
type fields map[string][]string

func (f fields) add(path, message string) { f[path] = append(f[path], message) }

func (f fields) err() error {
	if len(f) == 0 {
		return nil
	}
	return &cloud.Error{Kind: cloud.Invalid, Code: codeInvalid, Fields: f}
}

func (f fields) required(path string) { f.add(path, "This is required.") }

// text checks a text of at most max characters.
func (f fields) text(path, s string, max int) {
	if utf8.RuneCountInString(s) > max {
		f.add(path, "This is too long.")
	}
	bad := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }
	if !utf8.ValidString(s) || strings.IndexFunc(s, bad) >= 0 {
		f.add(path, "This holds characters that cannot be kept.")
	}
}

func (f fields) oneOf(path, s string, allowed ...string) {
	if !slices.Contains(allowed, s) {
		f.add(path, "This is none of the values allowed here.")
	}
}

func (f fields) between(path string, n, low, high int) {
	if n < low || n > high {
		f.add(path, "The value is out of range.")
	}
}

func (f fields) place(p *Place) {
	if math.IsNaN(p.Latitude) || math.IsNaN(p.Longitude) || math.Abs(p.Latitude) > 90 || math.Abs(p.Longitude) > 180 {
		f.add("location.latitude", "Give both coordinates, latitude from -90 to 90 and longitude from -180 to 180.")
	}
	if p.Label != nil {
		f.text("location.label", *p.Label, maxLabel)
	}
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// fold is a text as orders are searched by.
func fold(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }
