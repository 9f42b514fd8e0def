package page

import (
	"html/template"
	"regexp"
	"strings"
)

// release is a release of the changelog.
type release struct {
	Name, Anchor string
	Parts        []releasePart
}

// releasePart are the changes of one kind: Added, Changed, Fixed.
type releasePart struct {
	Name  string
	Items []template.HTML
}

var (
	inCode   = regexp.MustCompile("`([^`]+)`")
	inLink   = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`)
	noAnchor = regexp.MustCompile(`[^a-z0-9.]+`)
)

// readChangelog reads a changelog in the form of Keep a Changelog: releases, kinds of
// changes, and their items, which may go on in further lines. Links are their text.
func readChangelog(text string) (out []release) {
	var item []string
	end := func() {
		if len(item) == 0 || len(out) == 0 {
			item = nil
			return
		}
		r := &out[len(out)-1]
		if len(r.Parts) == 0 {
			r.Parts = append(r.Parts, releasePart{})
		}
		p := &r.Parts[len(r.Parts)-1]
		p.Items = append(p.Items, inline(strings.Join(item, " ")))
		item = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n ")
		if name, ok := strings.CutPrefix(line, "## "); ok {
			end()
			name = inLink.ReplaceAllString(name, "$1")
			out = append(out, release{Name: name, Anchor: "release-" + strings.Trim(noAnchor.ReplaceAllString(strings.ToLower(name), "-"), "-")})
		} else if name, ok := strings.CutPrefix(line, "### "); ok && len(out) > 0 {
			end()
			r := &out[len(out)-1]
			r.Parts = append(r.Parts, releasePart{Name: name})
		} else if first, ok := strings.CutPrefix(line, "- "); ok {
			end()
			item = []string{first}
		} else if line = strings.TrimSpace(line); line == "" {
			end()
		} else {
			item = append(item, line)
		}
	}
	end()
	return out
}

// inline is a text with its code marked.
func inline(s string) template.HTML {
	s = template.HTMLEscapeString(inLink.ReplaceAllString(s, "$1"))
	return template.HTML(inCode.ReplaceAllString(s, "<code>$1</code>")) // escaped above
}
