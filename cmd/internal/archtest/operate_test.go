package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// named finds log texts and metrics in a document.
var named = regexp.MustCompile("`\"([^`\"]+)\"`|`((?:webhook|postern)_\\w+)`")

// Log texts and metrics that docs/operate.md tells people to look for are in the programs.
func TestOperatorsFindWhatTheyLookFor(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	doc, err := os.ReadFile(filepath.Join(root, "docs", "operate.md"))
	require.NoError(t, err)
	var code strings.Builder
	for _, dir := range []string{"cloud", "edge", "cmd/cloud"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path)
			code.Write(b)
			return err
		}))
	}
	names := named.FindAllStringSubmatch(string(doc), -1)
	require.Greater(t, len(names), 15)
	for _, m := range names {
		if !strings.Contains(code.String(), `"`+m[1]+m[2]) {
			t.Errorf("docs/operate.md names %s, which no program writes", m[0])
		}
	}
}
