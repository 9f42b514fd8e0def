package page

import (
	"fmt"
	"reflect"
	"strings"
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

// The form of a record shows a list of objects as rows of fields, and as one field where rows
// would leave some of it out.
func TestAListWithMoreRowsThanAFormHasIsOneField(t *testing.T) {
	t.Parallel()
	members := catalog.BodyMembers(reflect.TypeFor[struct {
		Items []struct {
			Name string `json:"name"`
		} `json:"items"`
	}]())
	values := func(n int) (rows int, values map[string]string) {
		m := &maker{values: map[string]string{}, rows: map[string]int{}}
		list := []any{}
		for i := range n {
			list = append(list, map[string]any{"name": fmt.Sprint("N", i)})
		}
		m.flattened("", members, map[string]any{"items": list})
		return m.rows["items"], m.values
	}
	rows, all := values(maxFormRows)
	require.Equal(t, maxFormRows, rows)
	require.Len(t, all, maxFormRows)
	require.Equal(t, "N49", all["items[49].name"])
	rows, all = values(maxFormRows + 1)
	require.Zero(t, rows)
	require.Len(t, all, 1)
	require.Equal(t, maxFormRows+1, strings.Count(all["items"], `"name"`))
}
