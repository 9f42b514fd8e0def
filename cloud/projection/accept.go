package projection

import (
	"strings"
)

// Select finds the format that a request asks for: the name in its query, else
// the first item of its Accept header that has a profile parameter naming one.
// ok is false for a name that is no format; an Accept profile that is none
// means the native format.
func Select(name, accept string) (f Format, ok bool) {
	if strings.TrimSpace(name) != "" {
		return Find(name)
	}
	for _, item := range splitHeader(accept, ',') {
		for _, param := range splitHeader(item, ';')[1:] {
			key, v, _ := strings.Cut(param, "=")
			if !strings.EqualFold(strings.TrimSpace(key), "profile") {
				continue
			}
			if f, ok := profiled(unquoted(strings.TrimSpace(v))); ok {
				return f, true
			}
		}
	}
	return formats[0], true
}

// profiled finds a format by what a profile parameter names: one or several
// addresses or names (RFC 6906).
func profiled(v string) (Format, bool) {
	for _, word := range strings.Fields(v) {
		for _, f := range formats {
			if strings.EqualFold(word, f.Name) || f.profile != "" && strings.EqualFold(strings.TrimRight(word, "/"), strings.TrimRight(f.profile, "/")) {
				return f, true
			}
		}
	}
	return Format{}, false
}

// splitHeader splits at a separator outside of quotes.
func splitHeader(s string, sep byte) []string {
	var out []string
	start, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == sep && !quoted:
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:])
}

func unquoted(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	var b strings.Builder
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '\\' && i+1 < len(s)-1 {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
