// Package verdict notes what suites and validators of other people found in a test, for the
// table that `make conformance` writes. Only tests record; the command reads.
package verdict

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Attr is the attribute of a test under which `go test -json` shows a Verdict.
const Attr = "verdict"

// Axe is the checker of accessibility, as its package is named.
const Axe = "axe-core"

// Verdict is what a suite found of a subject: how many of all its checks the subject passed.
// Verdicts of the same suite and subject are added up.
type Verdict struct {
	Suite   string `json:"suite"`   // a Go module, npm package or program, as it is named there
	Subject string `json:"subject"` // what it judged
	Passed  int    `json:"passed"`
	All     int    `json:"all"`
}

// Record notes a verdict, before the test fails by it.
func Record(t testing.TB, suite, subject string, passed, all int) {
	t.Helper()
	raw, err := json.Marshal(Verdict{suite, subject, passed, all})
	require.NoError(t, err)
	t.Attr(Attr, string(raw))
}

// RecordTest notes, when the test ends, whether the subject passed it: one check.
func RecordTest(t testing.TB, suite, subject string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			Record(t, suite, subject, 0, 1)
		} else if !t.Skipped() {
			Record(t, suite, subject, 1, 1)
		}
	})
}

// RecordPages notes what axe found on pages: its violations, by the name of each page. It
// notes nothing where there are none.
func RecordPages(t testing.TB, subject string, pages map[string][]string) {
	t.Helper()
	passed := 0
	for _, violations := range pages {
		if len(violations) == 0 {
			passed++
		}
	}
	if len(pages) > 0 {
		Record(t, Axe, subject, passed, len(pages))
	}
}
