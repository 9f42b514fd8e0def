package locale

import (
	"fmt"
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
