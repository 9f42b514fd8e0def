package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const coverageFile = "../../../docs/interface/coverage.md"

// heldBy is a test as a row of the coverage names it.
var heldBy = regexp.MustCompile("^`([a-z0-9_/-]+_test\\.go): (Test\\w+)`$")

// verdicts are the sections of the coverage with how many rows of each are held,
// missing and later, as the lines of its first table, and what is wrong with rows.
func verdicts(text string, there func(file, test string) bool) (lines, faults []string) {
	var section string
	var all, some [3]int
	end := func() {
		if section != "" {
			lines = append(lines, fmt.Sprintf("| %s | %d | %d | %d |", section, some[0], some[1], some[2]))
		}
		for i := range all {
			all[i] += some[i]
		}
		some = [3]int{}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "## "); ok {
			end()
			section = name
			continue
		}
		if section == "" || !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| Clause |") || strings.HasPrefix(line, "|---") {
			continue
		}
		clause, _, _ := strings.Cut(section, " ")
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 || strings.TrimSpace(cells[0]) != clause || strings.TrimSpace(cells[1]) == "" {
			faults = append(faults, "no clause "+clause+", fact and verdict: "+line)
			continue
		}
		switch verdict := strings.TrimSpace(cells[2]); {
		case strings.HasPrefix(verdict, "missing: "):
			some[1]++
		case strings.HasPrefix(verdict, "later: "):
			some[2]++
		default:
			some[0]++
			for name := range strings.SplitSeq(verdict, "; ") {
				if m := heldBy.FindStringSubmatch(name); m == nil || !there(m[1], m[2]) {
					faults = append(faults, fmt.Sprintf("there is no test %s: %s", name, line))
				}
			}
		}
	}
	end()
	return append([]string{"| Section | Held | Missing | Later |", "|---|---|---|---|"}, append(lines, fmt.Sprintf("| All | %d | %d | %d |", all[0], all[1], all[2]))...), faults
}

// Every row of docs/interface/coverage.md has a verdict, the tests that it names are
// there, and the table at its top counts them (-update counts anew).
func TestCoverageOfTheInterface(t *testing.T) {
	t.Parallel()
	_, faults := verdicts("## 1 Bad\n| 2 | fact | later: x |\n| 1 | fact | |\n| 1 | fact | `a_test.go: TestA`; `b_test.go: TestB` |\n", func(file, _ string) bool { return file == "a_test.go" })
	require.Len(t, faults, 3, "another clause, no verdict, no such test")

	raw, err := os.ReadFile(coverageFile)
	require.NoError(t, err)
	sources := map[string]string{}
	lines, faults := verdicts(string(raw), func(file, test string) bool {
		if _, ok := sources[file]; !ok {
			source, _ := os.ReadFile(filepath.Join("../../..", file)) // one that is not there has no test
			sources[file] = string(source)
		}
		return strings.Contains(sources[file], "\nfunc "+test+"(")
	})
	for _, f := range faults {
		t.Error(f)
	}
	require.Greater(t, len(lines), 40)
	head, rest, ok := strings.Cut(string(raw), "<!-- counts -->\n")
	require.True(t, ok)
	kept, rest, ok := strings.Cut(rest, "<!-- /counts -->")
	require.True(t, ok)
	want := strings.Join(lines, "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(coverageFile, []byte(head+"<!-- counts -->\n"+want+"<!-- /counts -->"+rest), 0o644))
		return
	}
	require.Equal(t, want, kept, "count anew with -update")
}
