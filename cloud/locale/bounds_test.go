package locale

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/check"
)

func TestEverySentenceAboutBoundsHasEveryLanguage(t *testing.T) {
	t.Parallel()
	for _, m := range check.Messages() {
		require.Contains(t, bounds, m)
	}
	for key, m := range bounds {
		require.True(t, slices.Contains(check.Messages(), key), "%q is used by nothing", key)
		require.Equal(t, key, m[0])
		args := []any{"packages[3].size", "S, M or L", "70", "12"}[:strings.Count(key, "%s")]
		english := fmt.Sprintf(key, args...)
		for i, lang := range languages {
			got := Field(lang, english)
			require.NotContains(t, got, "%s", "%s %s", lang, key)
			for _, a := range args {
				require.Contains(t, got, a, "%s %s", lang, key)
			}
			if i > 0 {
				require.NotEqual(t, english, got, "%s is not translated into %s", key, lang)
			}
		}
	}
	require.Equal(t, "La caisse est pleine.", Field(French, "La caisse est pleine."), "a sentence that is not known stays")
}

// A sentence about a member that no package says is deleted.
func TestNoSentenceIsLeftOver(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	require.NoError(t, fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "locale/") {
			return err
		}
		src, err := fs.ReadFile(os.DirFS(".."), path)
		all.Write(src)
		return err
	}))
	src := strings.ReplaceAll(all.String(), `\"`, `"`)
	for sentence := range fields {
		if !strings.HasPrefix(sentence, "This parameter is not known. ") { // which ends with a list
			require.True(t, strings.Contains(src, sentence), sentence)
		}
	}
}
