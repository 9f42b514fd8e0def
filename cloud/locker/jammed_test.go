package locker_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
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
		require.Equal(t, cloud.ShutDoor{Name: s.cell(door).Name(), Since: time.Now()}.String(), s.shutDoors())
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

// Two locks are jammed one after the other, and the cabinet reports in between that all doors are
// shut: each door is named with its own time, until it has opened, and the answer to the staff
// who tried says which one it is.
func TestEveryDoorThatStaysShutIsNamed(t *testing.T) {
	t.Parallel()
	tell(t, 1, nil, func(s *story) {
		t := s.t
		s.Snapshot = true // its status has all doors
		fail := func(door uint) error {
			failed := make(chan error, 1)
			go func() {
				_, err := s.Lockers.OpenGrids(ctx, s.staff(), locker.StaffOpenInput{Device: s.ID, Grids: []cloud.GridID{s.grid(door)}, Reason: "Look", Attended: new(true)})
				failed <- err
			}()
			var a asked
			a.id = s.Command(&a.OpenDoors).CommandID
			s.begin(a)
			s.outcome(a.id, wire.OutcomeFailed, map[uint]string{door: wire.DoorOpenFailed})
			s.end(a, wire.EndOpenFailed)
			return <-failed
		}
		named := func(door uint, since time.Time) string {
			return cloud.ShutDoor{Name: s.cell(door).Name(), Since: since}.String()
		}
		report := func(open ...uint) {
			s.Status(func(st *wire.Status) {
				for i := range st.Doors {
					if slices.Contains(open, st.Doors[i].Door) {
						st.Doors[i].State = wire.DoorOpen
					}
				}
			})
			synctest.Wait()
		}
		opens := func(id string, door uint) {
			s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: id, Kind: wire.OpenStaff, Doors: []uint{door}, CommandID: wire.LocalCommand, Who: "staff"})
			s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: id, Door: door, Pulses: 1})
			s.Tell(wire.KindDoorClosed, wire.DoorClosed{OpeningID: id, Door: door})
			s.end(asked{OpenDoors: wire.OpenDoors{OpeningID: id}}, "done")
		}
		first := time.Now()
		refused := (*cloud.Error)(nil)
		require.ErrorAs(t, fail(2), &refused)
		require.Equal(t, "DELIVERY_STATE_CONFLICT", refused.Code)
		for _, lang := range []string{locale.English, locale.German, locale.French, locale.Spanish} {
			text := locale.Error(lang, refused.Code, refused.Args...)
			require.Contains(t, text, s.cell(2).Name(), lang)
			require.NotContains(t, text, locale.Error(lang, refused.Code), "there is no delivery")
		}
		require.Equal(t, []map[string]any{{"grid_id": s.grid(2), "grid_code": s.cell(2).GridCode, "door_name": s.cell(2).Name(), "error_code": new(wire.DoorOpenFailed)}}, refused.Details["doors"])
		require.Equal(t, named(2, first), s.shutDoors())
		time.Sleep(12 * time.Minute)
		report()
		require.Equal(t, "jammed", s.cell(2).DoorStatus, "a shut door says nothing of its lock")
		second := time.Now()
		require.Error(t, fail(3))
		report()
		require.Equal(t, named(2, first)+"; "+named(3, second), s.shutDoors())

		time.Sleep(time.Minute)
		opens("op_first", 2)
		report()
		require.Equal(t, named(3, second), s.shutDoors())
		require.Equal(t, "closed", s.cell(2).DoorStatus)
		var items []cloud.WorkItem
		s.Look(func(v cloud.View) (err error) {
			items, _, err = v.WorkItems(cloud.WorkFilter{BusinessID: s.Box.AdminCaller.Account.BusinessID, Now: time.Now(), Limit: 50})
			return err
		})
		at := slices.IndexFunc(items, func(x cloud.WorkItem) bool { return x.Type == cloud.DevDoorShut })
		require.GreaterOrEqual(t, at, 0)
		require.Equal(t, s.cell(3).Name(), items[at].Door)
		require.WithinDuration(t, second, items[at].Since, time.Second)

		report(3) // it stands open, and no record says so
		require.Empty(t, s.shutDoors())
		require.Equal(t, "open", s.cell(3).DoorStatus)
		report()

		// Of several doors one stays shut: the others have opened.
		_, err := s.staffOpen(s.staff(), 2, 3)
		require.NoError(t, err)
		var a asked
		a.id = s.Command(&a.OpenDoors).CommandID
		s.begin(a)
		third := time.Now()
		s.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: a.OpeningID, Door: 2, Pulses: 1})
		s.outcome(a.id, wire.OutcomePartial, map[uint]string{3: wire.DoorOpenFailed})
		require.Equal(t, named(3, third), s.shutDoors())
	})
}
