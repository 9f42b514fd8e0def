package chat

import (
	"strings"

	"github.com/postern-io/postern/cloud/check"
)

// fields collects what is wrong with an input.
type fields struct{ check.Fields }

func newFields() fields { return fields{check.Fields{}} }

func (f fields) required(path string) { f.Add(path, "This is required.") }

func (f fields) place(p *Place) {
	f.Place("location.", &p.Latitude, &p.Longitude)
	if p.Label != nil {
		f.Text("location.label", *p.Label, maxLabel)
	}
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// fold is a text as orders are searched by.
func fold(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }
