package tracking

import (
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/protocol/otep"
)

// Conformance is the answer of the validator.
type Conformance struct {
	Result     bool      `json:"result"` // the check took place
	Conformant bool      `json:"conformant"`
	Version    string    `json:"otep_version"` // the validator's
	Level      int       `json:"level"`        // 0 to 2
	Errors     []Finding `json:"errors"`
	Warnings   []Finding `json:"warnings"`
}

// Finding is one entry of it. Only the hint is in the caller's language.
type Finding struct {
	Path    string `json:"path"`
	Message string `json:"message"`
	Code    string `json:"code"` // id of the rule
	Hint    string `json:"hint"`
}

// Conform puts a report into words.
func Conform(lang string, r otep.Report) Conformance {
	return Conformance{
		Result: true, Conformant: r.Conformant(), Version: otep.Version, Level: r.Level,
		Errors: Findings(lang, "", r.Errors), Warnings: Findings(lang, "", r.Warnings),
	}
}

// Findings puts entries into words, prefix before each path. It is never nil.
func Findings(lang, prefix string, entries []otep.Entry) []Finding {
	out := make([]Finding, len(entries))
	for i, e := range entries {
		out[i] = Finding{Path: prefix + e.Path, Message: e.Message, Code: e.Rule, Hint: locale.Hint(lang, e.Rule, e.Args...)}
	}
	return out
}
