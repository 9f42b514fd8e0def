package chat

import (
	"strings"

	"github.com/postern-io/postern/cloud/check"
)

// fields collects what is wrong with an input.
type fields struct{ check.Fields }

func newFields() fields { return fields{check.Fields{}} }

func (f fields) required(path string) { f.Say(path, check.MessageRequired) }

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// fold is a text as orders are searched by.
func fold(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }
