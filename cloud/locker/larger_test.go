package locker_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// door is the compartment that is kept for R-1.
func (s *story) door() uint {
	s.t.Helper()
	for n := uint(1); n <= devicetest.Doors; n++ {
		if c := s.cell(n); c.DeliveryID != 0 {
			return n
		}
	}
	s.t.Fatal("no compartment is kept")
	return 0
}

// takeLarger is a courier who opens R-1's compartment by the code and takes another one.
func (s *story) takeLarger(from, to uint) {
	s.t.Helper()
	s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_1", Kind: wire.OpenDeposit, Doors: []uint{from}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
	s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: "op_1", Door: from})
	s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_2", Kind: wire.OpenReassign, Doors: []uint{to}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
}

// A courier's parcel does not fit: what the cabinet gave in its place is what the cloud
// keeps, lists and shows, and the former compartment is free.
func TestALargerCompartmentAtTheCabinet(t *testing.T) {
	t.Parallel()
	f := func(name string, does func(s *story, from, to uint)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(t, 1, slog.New(slog.DiscardHandler), func(s *story) {
				from := s.door()
				to := from + 1
				does(s, from, to)
			})
		})
	}
	second := func(to uint) asked {
		return asked{OpenDoors: wire.OpenDoors{OpeningID: "op_2", Doors: []uint{to}, Packages: map[uint][]string{to: {"PK-1"}}}}
	}
	f("deposited there", func(s *story, from, to uint) {
		s.takeLarger(from, to)
		require.Equal(s.t, s.cell(to).GridID, *s.find().Packages[0].GridID)
		require.Equal(s.t, cloud.GridReserved, s.cell(to).State)
		require.NotEqual(s.t, cloud.GridFree, s.cell(from).State, "its door is open")
		s.end(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_1"}}, wire.EndCancelled)
		require.Equal(s.t, cloud.GridFree, s.cell(from).State)
		s.settle(second(to))
		s.status(cloud.DeliveryDelivered)
		require.Equal(s.t, cloud.GridOccupied, s.cell(to).State)
		require.Contains(s.t, s.liveCodes(), "pickup now")
		require.Empty(s.t, s.exceptions())
	})
	f("deposited before the former door is closed", func(s *story, from, to uint) {
		s.takeLarger(from, to)
		s.settle(second(to))
		s.status(cloud.DeliveryDelivered)
		s.end(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_1"}}, wire.EndCancelled)
		require.Equal(s.t, cloud.GridFree, s.cell(from).State)
		require.Equal(s.t, cloud.GridOccupied, s.cell(to).State)
		require.Empty(s.t, s.exceptions())
	})
	f("the larger one does not open", func(s *story, from, to uint) {
		s.takeLarger(from, to)
		s.end(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_1"}}, wire.EndCancelled)
		s.end(second(to), wire.EndOpenFailed)
		require.Equal(s.t, cloud.GridBlocked, s.cell(to).State)
		now := s.door()
		require.NotEqual(s.t, to, now)
		require.Equal(s.t, cloud.GridReserved, s.cell(now).State, "another one is kept for it")
		require.Equal(s.t, s.cell(now).GridID, *s.find().Packages[0].GridID)
	})
	f("it was reserved for another delivery, of which the cabinet had no word", func(s *story, from, to uint) {
		for s.cell(to).State != cloud.GridReserved {
			_, err := s.Lockers.Create(ctx, s.Box.ProviderCaller, locker.CreateInput{ReferenceNumber: "R-2", DeviceID: s.ID,
				Recipient: cloud.Recipient{Name: "Jo Doe", Phone: "+14165550124"}, Packages: []locker.PackageInput{{TrackingNumber: "PK-9", Size: "M"}}})
			require.NoError(s.t, err)
			time.Sleep(time.Second)
		}
		s.takeLarger(from, to)
		s.settle(second(to))
		s.end(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_1"}}, wire.EndCancelled)
		s.status(cloud.DeliveryDelivered)
		out, err := s.Lockers.Find(ctx, s.Box.ProviderCaller, "ref:R-2")
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.DeliveryCreated, out.Delivery.Status)
		require.NotNil(s.t, out.Delivery.Packages[0].GridID, "it is given another one")
		require.NotEqual(s.t, s.cell(to).GridID, *out.Delivery.Packages[0].GridID)
		require.Equal(s.t, cloud.GridOccupied, s.cell(to).State)
	})
}
