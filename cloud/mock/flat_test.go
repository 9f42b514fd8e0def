package mock

import (
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/hosted"
	"github.com/postern-io/postern/protocol/wire"
)

// What a mock cabinet keeps is one map: the members that every hosted cabinet keeps stand
// beside its own.
func TestTheKeptFormIsFlat(t *testing.T) {
	t.Parallel()
	b, err := wire.Encode(cabinet{Kept: hosted.Kept{Form: form, Start: 7}})
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, cbor.Unmarshal(b, &m))
	require.ElementsMatch(t, []string{"Form", "Start", "Last", "Acted", "Rules", "Generation", "Reports", "Placed", "Doors", "Faults", "Unanswered"}, keys(m))
}

func keys(m map[string]any) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}
