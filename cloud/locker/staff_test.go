package locker_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

func (s *story) staff() cloud.Caller {
	return cloud.Caller{Account: cloud.Account{ID: 2, BusinessID: s.Box.ProviderCaller.Provider.BusinessID, Type: cloud.ClientEmployee, Name: "Sam"}}
}

func (s *story) stranger() cloud.Caller {
	return cloud.Caller{Account: cloud.Account{ID: 9, BusinessID: 9999, Type: cloud.ClientAdmin, Name: "Eve"}}
}

func (s *story) grid(door uint) cloud.GridID { return s.cell(door).GridID }

// commandKinds are those of commands without an outcome.
func (s *story) commandKinds() (out []wire.CommandKind) {
	s.Look(func(v cloud.View) error {
		rows, err := v.OpenCommands(s.ID)
		for _, c := range rows {
			out = append(out, c.Kind)
		}
		return err
	})
	return out
}

// staffOpen opens doors without a wait.
func (s *story) staffOpen(c cloud.Caller, doors ...uint) (locker.StaffOpenOutput, error) {
	zero := 0
	in := locker.StaffOpenInput{Device: s.ID, Reason: "Clean a spill", Attended: new(true), WaitSeconds: &zero}
	for _, n := range doors {
		in.Grids = append(in.Grids, s.grid(n))
	}
	return s.Lockers.OpenGrids(ctx, c, in)
}

// An operator opens the wrong door: the answer says what lies behind it and that
// nothing takes it back, the delivery stays as it is and can be collected, and the
// history has who did it and why.
func TestOperatorWhoOpensTheWrongDoor(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		s.settle(a)
		door := a.Doors[0]
		s.status(cloud.DeliveryDelivered)
		told, _ := s.events()

		out, err := s.staffOpen(s.staff(), door)
		require.NoError(s.t, err)
		require.False(s.t, out.Reversible)
		require.True(s.t, out.Pending)
		require.Equal(s.t, cloud.GridOccupied, out.Contents[0].State)
		require.Equal(s.t, s.find().DeliveryID, *out.Contents[0].DeliveryID)
		var b wire.OpenDoors
		id := s.Command(&b).CommandID
		require.Equal(s.t, wire.OpenStaff, b.Kind)
		require.Equal(s.t, []uint{door}, b.Doors)
		require.Empty(s.t, b.DeliveryRef)
		require.Nil(s.t, b.Code)
		s.begin(asked{b, id})
		s.outcome(id, wire.OutcomeDone, nil)
		s.end(asked{b, id}, "done")

		s.status(cloud.DeliveryDelivered)
		require.True(s.t, s.find().PickupCodeActive)
		require.Equal(s.t, cloud.GridOccupied, s.cell(door).State)
		again, _ := s.events()
		require.Equal(s.t, told, again)
		s.Look(func(v cloud.View) error {
			o, err := v.Opening(b.OpeningID)
			require.Equal(s.t, "Clean a spill", o.Reason)
			require.Equal(s.t, cloud.Requester{Type: "console", ID: "2", Name: "Sam"}, o.Requester)
			require.Equal(s.t, cloud.OpeningEnded, o.State)
			return err
		})
		lines, err := s.Store.ListAudits(ctx, s.staff().Account.BusinessID, 0, 100)
		require.NoError(s.t, err)
		found := false
		for _, l := range lines {
			found = found || l.Action == "doors_opened" && l.Actor == "account:2" && strings.Contains(l.Detail, "Clean a spill") && strings.Contains(l.Detail, b.OpeningID)
		}
		require.True(s.t, found)
		s.pickUp("op_collect", 2, nil, door)
		s.status(cloud.DeliveryPickedUp)
	})
}

func TestStaffOpenDoorsOnlyWhereAPersonStands(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		zero := 0
		good := locker.StaffOpenInput{Device: s.ID, Grids: []cloud.GridID{s.grid(1)}, Reason: "Clean", Attended: new(true), WaitSeconds: &zero}
		for member, spoil := range map[string]func(*locker.StaffOpenInput){
			"attended": func(in *locker.StaffOpenInput) { in.Attended = new(false) },
		} {
			in := good
			spoil(&in)
			_, err := s.Lockers.OpenGrids(ctx, s.staff(), in)
			var e *cloud.Error
			require.True(s.t, errors.As(err, &e), member)
			require.Contains(s.t, e.Fields, member)
		}
		_, err := s.Lockers.OpenGrids(ctx, s.stranger(), good)
		require.Equal(s.t, "DEVICE_NOT_FOUND", code(err))
		other := good
		other.Grids = []cloud.GridID{987654}
		_, err = s.Lockers.OpenGrids(ctx, s.staff(), other)
		require.Equal(s.t, "GRID_NOT_FOUND", code(err))
		require.Empty(s.t, s.commandKinds())

		out, err := s.staffOpen(s.staff(), 1)
		require.NoError(s.t, err)
		var b wire.OpenDoors
		id := s.Command(&b).CommandID
		s.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: id, Outcome: wire.OutcomeRefused, Reason: wire.ReasonBusy})
		s.Look(func(v cloud.View) error {
			c, err := v.Command(id)
			require.Equal(s.t, cloud.CommandRefused, c.State)
			return err
		})
		require.NotNil(s.t, out.Opening)

		s.Drop()
		synctest.Wait()
		_, err = s.staffOpen(s.staff(), 1)
		require.Equal(s.t, "DEVICE_OFFLINE", code(err))
	})
}

func TestStaffBlockEmptyCompartmentsOnly(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		s.settle(a)
		_, err := s.Lockers.Block(ctx, s.staff(), locker.BlockInput{Device: s.ID, Grid: s.grid(a.Doors[0]), Reason: "bent"})
		require.Equal(s.t, "GRID_NOT_FREE", code(err))
		require.Equal(s.t, cloud.GridOccupied, s.cell(a.Doors[0]).State)

		free := uint(1)
		for s.cell(free).State != cloud.GridFree {
			free++
		}
		_, err = s.Lockers.Block(ctx, s.stranger(), locker.BlockInput{Device: s.ID, Grid: s.grid(free), Reason: "bent"})
		require.Equal(s.t, "DEVICE_NOT_FOUND", code(err))
		out, err := s.Lockers.Block(ctx, s.staff(), locker.BlockInput{Device: s.ID, Grid: s.grid(free), Reason: "bent"})
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.GridBlocked, out.Grid.State)
		require.Equal(s.t, "bent", *out.Grid.BlockReason)
		var b wire.DoorReason
		require.Equal(s.t, wire.CmdBlock, s.Command(&b).Kind)
		require.Equal(s.t, free, b.Door)

		back, err := s.Lockers.Unblock(ctx, s.staff(), locker.UnblockInput{Device: s.ID, Grid: s.grid(free), Reason: "straight again"})
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.GridFree, back.Grid.State)
		require.Equal(s.t, wire.CmdUnblock, s.Command(&b).Kind)
	})
}

func TestStaffCancelAndExpireDeliveries(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		in := locker.EndInput{Delivery: locker.DeliveryKey(s.id()), Reason: "The site is closed"}
		_, err := s.Lockers.CancelDelivery(ctx, s.stranger(), in)
		require.Equal(s.t, "DELIVERY_NOT_FOUND", code(err))
		_, err = s.Lockers.ExpireDelivery(ctx, s.stranger(), in)
		require.Equal(s.t, "DELIVERY_NOT_FOUND", code(err))
		out, err := s.Lockers.CancelDelivery(ctx, s.staff(), in)
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.DeliveryCancelled, out.Delivery.Status)
		require.Nil(s.t, out.Delivery.DeliveryCode)
		_, bodies := s.events()
		require.Contains(s.t, bodies, "cancelled")
		_, err = s.Lockers.ExpireDelivery(ctx, s.staff(), in)
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err))
	})
	tell(t, 1, nil, func(s *story) {
		in := locker.EndInput{Delivery: locker.DeliveryKey(s.id()), Reason: "Send it back"}
		a := s.open()
		_, err := s.Lockers.ExpireDelivery(ctx, s.staff(), in)
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err)) // an opening runs
		s.settle(a)
		out, err := s.Lockers.ExpireDelivery(ctx, s.staff(), in)
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.DeliveryExpired, out.Delivery.Status)
		require.Equal(s.t, []string{"overdue low"}, s.exceptions())
		require.Nil(s.t, out.Delivery.PickupCode)
		s.pickUp("op_late", 2, nil, a.Doors[0]) // its code works
		s.status(cloud.DeliveryPickedUp)
	})
	tell(t, 1, nil, func(s *story) {
		s.ask() // its doors are on their way to be opened
		_, err := s.Lockers.ExpireDelivery(ctx, s.staff(), locker.EndInput{Delivery: locker.DeliveryKey(s.id()), Reason: "Never came"})
		require.Equal(s.t, "DELIVERY_STATE_CONFLICT", code(err))
	})
	tell(t, 1, nil, func(s *story) {
		out, err := s.Lockers.ExpireDelivery(ctx, s.staff(), locker.EndInput{Delivery: locker.DeliveryKey(s.id()), Reason: "Never came"})
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.DeliveryExpired, out.Delivery.Status)
		require.Empty(s.t, s.liveCodes())
	})
}

func TestStaffSendEveryKindOfDeviceCommand(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		for kind, want := range map[string]wire.CommandKind{"reset_tries": wire.CmdResetTries, "reboot": wire.CmdReboot, "sync": wire.CmdSyncConfig, "update_config": wire.CmdSyncConfig} {
			out, err := s.Lockers.SendDeviceCommand(ctx, s.staff(), locker.DeviceCommandInput{Device: s.ID, Type: kind, Reason: "test"})
			require.NoError(s.t, err)
			require.Equal(s.t, kind, out.Command.Type)
			require.Equal(s.t, want, s.Command(new(any)).Kind)
			_, err = s.Lockers.SendDeviceCommand(ctx, s.stranger(), locker.DeviceCommandInput{Device: s.ID, Type: kind})
			require.Equal(s.t, "DEVICE_NOT_FOUND", code(err))
		}
	})
}

// programs has one version for one platform.
type programs struct{ until time.Time }

func (p *programs) FindUpdate(_ context.Context, version, platform string, until time.Time) (wire.Update, error) {
	if platform == "linux/broken" {
		return wire.Update{}, errors.New("the disk does not answer")
	}
	if version != "1.4.0" || platform != "linux/arm64" {
		return wire.Update{}, cloud.ErrNotFound
	}
	p.until = until
	return wire.Update{Version: version, URL: "/x", Size: 1, Digest: []byte{1}, Signature: []byte{2}}, nil
}

// An update is sent to a cabinet that takes it and for which there is a program.
func TestStaffSendAnUpdate(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		there := &programs{}
		l := locker.New(locker.Config{Store: s.Store, Sealer: s.Server.Box, Programs: there})
		send := func(version string) error {
			_, err := l.SendDeviceCommand(ctx, s.staff(), locker.DeviceCommandInput{Device: s.ID, Type: "update", Version: version})
			return err
		}
		said := func(p cloud.DeviceProgram) {
			require.NoError(s.t, s.Store.Decide(ctx, s.ID, func(cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Seen: []cloud.DeviceSeen{{DeviceID: s.ID, Program: &p}}}}, nil
			}))
		}
		require.Equal(s.t, "UPDATE_NOT_POSSIBLE", code(send("1.4.0")), "it has not said that it takes them")
		said(cloud.DeviceProgram{Platform: "linux/arm64", Updates: true})
		require.Equal(s.t, "RELEASE_NOT_FOUND", code(send("1.5.0")))
		require.Equal(s.t, "VALIDATION_FAILED", code(send("")))
		_, err := l.SendDeviceCommand(ctx, s.staff(), locker.DeviceCommandInput{Device: s.ID, Type: "reboot", Version: "1.4.0"})
		require.Equal(s.t, "VALIDATION_FAILED", code(err))
		_, err = l.SendDeviceCommand(ctx, s.stranger(), locker.DeviceCommandInput{Device: s.ID, Type: "update", Version: "1.4.0"})
		require.Equal(s.t, "DEVICE_NOT_FOUND", code(err))
		require.Empty(s.t, s.commandKinds())

		require.NoError(s.t, send("1.4.0"))
		var u wire.Update
		c := s.Command(&u)
		require.Equal(s.t, wire.CmdUpdate, c.Kind)
		require.Equal(s.t, "1.4.0", u.Version)
		require.WithinDuration(s.t, time.Unix(0, c.ExpiresAt), there.until, time.Second, "the address is good as long as the command")
		said(cloud.DeviceProgram{Platform: "linux/arm", Updates: true})
		require.Equal(s.t, "RELEASE_NOT_FOUND", code(send("1.4.0")))
		_, err = s.Lockers.SendDeviceCommand(ctx, s.staff(), locker.DeviceCommandInput{Device: s.ID, Type: "update", Version: "1.4.0"})
		require.Equal(s.t, "RELEASE_NOT_FOUND", code(err), "a cloud without programs")
	})
}

func (s *story) id() string { return strconv.FormatInt(int64(s.find().DeliveryID), 10) }
