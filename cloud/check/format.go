package check

import (
	"net/mail"
	"net/url"
	"time"

	"golang.org/x/mod/semver"

	"github.com/postern-io/postern/cloud"
)

// format is a form that texts of a member have: a regular expression, a function, or both
// where an expression says too little.
type format struct {
	example string
	pattern string
	parse   func(s string) bool
	message string // of a text without it; "" for MessageForm and the example
}

// formats are those that the tag format names.
var formats = map[string]format{
	"date":      {example: "2026-11-20", parse: layouts(time.DateOnly)},
	"date-time": {example: "2026-11-20T18:12:00-05:00", parse: layouts(time.RFC3339, time.DateTime)},
	"moment":    {example: "2026-11-20T18:12:00-05:00", parse: layouts(moments...)},
	"time":      {example: "18:12", pattern: `^([01][0-9]|2[0-3]):[0-5][0-9]$`},
	"email":     {example: "ann@example.com", parse: isEmail},
	"https":     {example: "https://example.com/path", parse: isHTTPS},
	"uuid":      {example: "6f1c0f1e-6d0a-4f39-9a8b-0a8a5b0c7a11", pattern: `^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`},
	"phone":     {example: "+14165550123", pattern: `^(\+|\(\+?)?[0-9][0-9 ()./-]{2,30}((, ?| ?x ?| ?ext\.? ?|;ext=)[0-9]{1,8})?$`}, // with or without an extension
	"country":   {example: "CA", pattern: `^[A-Za-z]{2}$`, parse: cloud.IsCountry, message: MessageCountry},
	"currency":  {example: "CAD", pattern: `^[A-Za-z]{3}$`},      // ISO 4217
	"time-zone": {example: "America/Toronto", parse: isTimeZone}, // of the IANA database
	"color":     {example: "#0B5FFF", pattern: `^#[0-9A-Fa-f]{6}$`},
	"version":   {example: "2.4.0", parse: func(s string) bool { return semver.IsValid("v" + s) }}, // semver.org
}

// moments are the layouts of a point in time that people give: a date alone is the
// beginning of that day.
var moments = []string{time.RFC3339, time.DateTime, time.DateOnly}

// Moment is the point in time, in UTC, that a text of the formats date, date-time
// or moment names, in a zone where it has no offset. It is zero for any other text.
func Moment(s string, zone *time.Location) time.Time {
	for _, l := range moments {
		if t, err := time.ParseInLocation(l, s, zone); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// Formats are the names of the formats.
func Formats() []string {
	out := make([]string, 0, len(formats))
	for name := range formats {
		out = append(out, name)
	}
	return out
}

// FormatExample is a text that has a format, "" of one that is not known.
func FormatExample(name string) string { return formats[name].example }

// FormatPattern is the regular expression of a format, "" where it has none.
func FormatPattern(name string) string { return formats[name].pattern }

// HasFormat reports whether a text has a format, which must be one of Formats.
func HasFormat(name, s string) bool { return formats[name].has(s) }

func (f format) has(s string) bool {
	return (f.pattern == "" || pattern(f.pattern).MatchString(s)) && (f.parse == nil || f.parse(s))
}

// sayForm adds what is said of a text without the format.
func (f format) sayForm(to Fields, path string) {
	if f.message != "" {
		to.Say(path, f.message)
		return
	}
	to.Say(path, MessageForm, f.example)
}

func layouts(list ...string) func(string) bool {
	return func(s string) bool {
		for _, l := range list {
			if _, err := time.Parse(l, s); err == nil {
				return true
			}
		}
		return false
	}
}

func isEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s
}

func isHTTPS(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil
}

func isTimeZone(s string) bool {
	if s == "Local" { // of this machine, which no other knows
		return false
	}
	_, err := time.LoadLocation(s)
	return err == nil
}
