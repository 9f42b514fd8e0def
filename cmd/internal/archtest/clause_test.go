package archtest

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	cited   = regexp.MustCompile("\\b(device-link|locker-hardware|lockers-devices|mcp-ai|mcp-wire|platform-interface|rest-graphql|webhooks|OTEP|otep)(?:\\.md)?`? (\\d+(?:\\.\\d+)*)\\b")
	wrapped = regexp.MustCompile(`\n\s*//\s?`)
	clause  = regexp.MustCompile(`(?m)^#{2,4} (\d+(?:\.\d+)*)\.? `)
)

// citations are the clauses that a text names, as "device-link 4.1".
func citations(text string) (out []string) {
	for _, m := range cited.FindAllStringSubmatch(wrapped.ReplaceAllString(text, " "), -1) {
		out = append(out, strings.ToLower(m[1])+" "+m[2])
	}
	return out
}

// clauses are the headings of docs/interface, in the same form.
func clauses(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../../../docs/interface/*.md")
	require.NoError(t, err)
	out := map[string]bool{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range clause.FindAllStringSubmatch(string(raw), -1) {
			name := strings.TrimSuffix(filepath.Base(f), ".md") + " " + m[1]
			require.False(t, out[name], "%s is there twice", name)
			out[name] = true
		}
	}
	return out
}

// A clause that code or choices cite is a heading of docs/interface.
func TestCitedClausesAreThere(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"device-link 4.1", "locker-hardware 3", "otep 14", "mcp-wire 10.5"}, citations("// Limits of device-link.md 4.1 and locker-hardware\n// 3 (OTEP 14), `mcp-wire.md` 10.5."))
	there := clauses(t)
	require.False(t, there["device-link 99"])
	seen := map[string]bool{}
	require.NoError(t, filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case d.Name() == "clause_test.go" || filepath.Ext(path) != ".go" && d.Name() != "choices.md": // this file has examples
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, c := range citations(string(raw)) {
			seen[c] = true
			if !there[c] {
				t.Errorf("%s cites %s, which is no heading of docs/interface", path, c)
			}
		}
		return nil
	}))
	require.Greater(t, len(seen), 18, "%s", slices.Sorted(maps.Keys(seen)))
}
