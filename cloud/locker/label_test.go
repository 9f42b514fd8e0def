package locker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// A GS1 label names its parcel by the SSCC, whatever else stands on it.
func TestALabelNamesItsParcel(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		const sscc = "340123450000000017"
		require.NoError(s.t, s.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
			x, err := v.ShipmentByNumber("PK-1")
			x.SSCC = sscc
			return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{x}}}, err
		}))
		before := len(s.moves())
		for i, label := range []string{"]C100" + sscc, "00" + sscc + "\r\n", "https://id.example.com/00/" + sscc + "?400=PO1", "]C100" + sscc + "400PO1\x1d420M5J2L7"} {
			s.Tell(wire.KindTrackingEvent, wire.TrackingEvent{Subject: label, StatusCode: []string{"in_transit", "arrival_scan"}[i%2]})
			require.Len(s.t, s.moves(), before+i+1, label)
		}
		for _, label := range []string{"]C100340123450000000018", "]C100106141411234567897", "00" + sscc + "1"} {
			s.Tell(wire.KindTrackingEvent, wire.TrackingEvent{Subject: label, StatusCode: "in_transit"})
		}
		require.Len(s.t, s.moves(), before+4, "of others and of none")
	})
}
