package locale_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locale"
)

// What is proposed for an exception is said in words of the reader's language alone.
func TestResolutionsAreInWords(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, lang := range []string{"en", "zh-Hans", "zh-Hant", "fr", "de", "es"} {
		for _, typ := range []string{"door_left_open", "deposit_unverified", "item_missing", "overdue", "door_open_failed"} {
			for _, action := range []string{"door_closed_on_site", "deposit_confirmed", "deposit_cancelled", "package_found", "package_lost", "package_returned", "extended", "no_action"} {
				said := locale.Resolution(lang, "Pier 7, A-3", typ, action)
				require.NotContains(t, said, "_")
				require.NotContains(t, said, "happens.")
				require.Contains(t, said, "Pier 7, A-3")
				require.False(t, seen[said], said)
				seen[said] = true
			}
		}
	}
}
