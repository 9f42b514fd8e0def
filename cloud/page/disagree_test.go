package page

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// A compartment about which cabinet and cloud disagree takes nothing: it is not drawn as free,
// and says why.
func TestACompartmentInDisputeIsNotFree(t *testing.T) {
	t.Parallel()
	f := frame{Lang: "en"}
	cells := []cloud.Compartment{{GridID: 1, GridCode: "A01", Size: "S", Column: 1, Row: 1, PickupEnabled: true, Door: 1, DoorStatus: "closed", State: cloud.GridFree, Dispute: &cloud.Dispute{Cabinet: "LD-3"}},
		{GridID: 2, GridCode: "A02", Size: "S", Column: 1, Row: 2, PickupEnabled: true, Door: 2, DoorStatus: "closed", State: cloud.GridFree, Dispute: &cloud.Dispute{Cabinet: "LD-4", Accepted: true}}}
	drawn, counts := columns(f, cells, true, false)
	require.Equal(t, []string{cloud.GridBlocked, "Contents disagree"}, []string{drawn[0][0].Sign, drawn[0][0].Reason})
	require.Equal(t, []string{cloud.GridFree, ""}, []string{drawn[0][1].Sign, drawn[0][1].Reason})
	require.Len(t, counts, 2)
}
