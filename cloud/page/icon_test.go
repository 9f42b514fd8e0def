package page

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/api"
	"github.com/postern-io/postern/cloud/setup"
)

// Each noun of the navigation, and each part of a story, has an icon that is drawn: one
// that is not there would be an empty box.
func TestNounsHaveIcons(t *testing.T) {
	t.Parallel()
	drawn := slices.Sorted(maps.Keys(icons))
	seen := 0
	for _, n := range api.New(api.Config{Setup: new(setup.Service)}).Nouns() {
		if n.Icon != "" || n.Area != "" {
			seen++
			require.Contains(t, drawn, n.Icon, "the noun %s: draw its icon in icon.go, or take one of these", n.Name)
		}
		for _, x := range n.Story {
			require.Contains(t, drawn, x.Icon, "the story of %s, %s", n.Name, x.Operation)
		}
	}
	require.Greater(t, seen, 20)
}
