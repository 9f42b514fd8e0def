package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the README tells to type works as it stands, and answers what is said
// behind the commands.
func TestCommandsOfTheReadme(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "sed", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the commands need %s, which is missing here", tool)
		}
	}
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	for section, promises := range map[string]int{"Orders, contractors and routes in five minutes": 6, "An agent in five minutes": 8} {
		t.Run(section, func(t *testing.T) {
			t.Parallel()
			_, text, ok := strings.Cut(string(readme), "## "+section+"\n")
			require.True(t, ok, "the README has lost the section")
			_, text, _ = strings.Cut(text, "```sh\n")
			script, _, ok := strings.Cut(text, "```\n")
			require.True(t, ok)
			typed(t, script, promises)
		})
	}
}

// typed runs commands against a server of their own. What stands behind them is
// in what they print, in that order.
func typed(t *testing.T, script string, promises int) {
	box := sandbox(t)
	file, err := json.MarshalIndent(box, "", "  ") // as both commands write it
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "sandbox.json")
	writeFile(t, path, string(file))
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
	cmd.Env = append(os.Environ(), "BASE="+box.BaseURL, "SANDBOX="+path, "LC_ALL=C")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, "%s", errs.String())

	said := string(out)
	promised := regexp.MustCompile(`(?m)  # ("[A-Za-z_]+":.+)$`).FindAllStringSubmatch(script, -1)
	require.Len(t, promised, promises)
	for _, p := range promised {
		_, rest, ok := strings.Cut(said, p[1])
		require.True(t, ok, "%s is not in what is left of the answers: %s", p[1], said)
		said = rest
	}
	if strings.Contains(script, "Accept-Language: de") {
		require.Contains(t, string(out), "Diesen Auftrag")
	}
}
