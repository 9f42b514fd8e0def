package page

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/catalog"
)

// A member that belongs to one element of a list is left out where the record does not offer
// that, and stays where it does, or where nothing is known of the list.
func TestMembersOfWhatIsNotOfferedAreLeftOut(t *testing.T) {
	t.Parallel()
	n := &catalog.Noun{Parts: []catalog.Part{{Input: "resolution_action", Of: "resolutions", ID: "resolution_action", Only: map[string]string{"hours": "extended"}}}}
	offered := func(actions ...string) map[string]any {
		list := []any{}
		for _, a := range actions {
			list = append(list, map[string]any{"resolution_action": a})
		}
		return map[string]any{"resolutions": list}
	}
	left := func(record map[string]any) []string {
		m := &maker{}
		m.offerParts(n, record)
		return m.left
	}
	require.Equal(t, []string{"hours"}, left(offered("no_action", "door_closed_on_site")))
	require.Empty(t, left(offered("extended", "package_returned")))
	require.Empty(t, left(map[string]any{}))
}
