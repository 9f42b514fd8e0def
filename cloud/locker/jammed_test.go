package locker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// shutDoors are the details of the open exception about doors that stayed shut; "" for none.
func (s *story) shutDoors() (detail string) {
	s.t.Helper()
	require.NoError(s.t, s.Store.Look(ctx, func(v cloud.View) error {
		faults, err := v.DeviceExceptions(s.ID)
		for _, f := range faults {
			if f.Type == cloud.DevDoorShut && f.ClosedAt.IsZero() {
				detail = f.Detail
			}
		}
		return err
	}))
	return detail
}

// A recipient stands before a door that does not open: staff are asked to look at its lock until
// it has opened, also for staff, and no report says that it was open.
func TestStaffLearnOfADoorThatDoesNotOpenForItsRecipient(t *testing.T) {
	t.Parallel()
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		s.settle(a)
		door := a.Doors[0]
		require.Empty(t, s.shutDoors())
		attempt := func(id string, kind wire.OpeningKind, who string) asked {
			b := asked{OpenDoors: wire.OpenDoors{OpeningID: id, Kind: kind, Doors: a.Doors}}
			s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: id, Kind: kind, Doors: a.Doors, CommandID: wire.LocalCommand, Who: who, DeliveryRef: s.code})
			return b
		}
		s.end(attempt("op_p1", wire.OpenPickup, "recipient"), wire.EndOpenFailed)
		require.Equal(t, "door 1", s.shutDoors())
		require.Equal(t, "jammed", s.cell(door).DoorStatus)
		require.Equal(t, cloud.GridOccupied, s.cell(door).State, "the parcel lies there, and its code stays")
		history, err := s.Lockers.ListDoorHistory(ctx, s.Box.AdminCaller, locker.HistoryInput{Device: s.ID})
		require.NoError(t, err)
		newest := history.Reports[0]
		require.Equal(t, "op_p1", newest.OpeningID)
		require.Nil(t, newest.Doors[0].OpenedAt)
		require.Equal(t, wire.DoorOpenFailed, *newest.Doors[0].Error)
		var works []string
		require.NoError(t, s.Store.Look(ctx, func(v cloud.View) error {
			list, _, err := v.WorkItems(cloud.WorkFilter{BusinessID: s.Box.AdminCaller.Account.BusinessID, Now: time.Now(), Limit: 50})
			for _, x := range list {
				works = append(works, x.Type)
			}
			return err
		}))
		require.Contains(t, works, cloud.DevDoorShut)

		attempt("op_s1", wire.OpenStaff, "staff")
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: "op_s1", Door: door, Pulses: 1})
		require.Empty(t, s.shutDoors())
		require.Equal(t, "open", s.cell(door).DoorStatus)
	})
}
