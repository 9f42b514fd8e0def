package locker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/protocol/wire"
)

// A stolen cabinet that still connects: its session ends, what it reports is not
// believed, it gets no way in again, its codes and commands are dead, and staff see
// what was inside.
func TestStolenCabinetThatStillConnects(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		s.settle(a)
		s.status(cloud.DeliveryDelivered)
		_, err := s.Lockers.Create(ctx, s.Box.ProviderCaller, locker.CreateInput{ReferenceNumber: "R-2", DeviceID: s.ID,
			Recipient: cloud.Recipient{Name: "Ada", Phone: "+14165550199"}, Packages: []locker.PackageInput{{TrackingNumber: "PK-9", Size: "S"}}})
		require.NoError(s.t, err)
		in := locker.StolenInput{Device: s.ID, Reason: "police report 12"}
		_, err = s.Lockers.ReportStolen(ctx, s.stranger(), in)
		require.Equal(s.t, "DEVICE_NOT_FOUND", code(err))
		require.True(s.t, s.Online())
		var before cloud.Session
		s.Look(func(v cloud.View) (err error) { before, err = v.Session(s.ID); return err })

		out, err := s.Lockers.ReportStolen(ctx, s.staff(), in)
		require.NoError(s.t, err)
		require.Equal(s.t, "disabled", out.Device.Status)
		require.Contains(s.t, s.Faults(), cloud.DevReportedStolen)
		require.Equal(s.t, []string{"item_missing high"}, s.exceptions())
		require.Empty(s.t, s.liveCodes())
		require.Empty(s.t, s.commandKinds())
		second, err := s.Lockers.Find(ctx, s.Box.ProviderCaller, "ref:R-2")
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.DeliveryFailed, second.Delivery.Status)

		// The box sends a pickup on the connection that it had.
		epoch := s.Batch(wire.Settlement, s.Record(wire.KindPickupCompleted, wire.PickupCompleted{DeliveryRef: s.code, OpeningID: "op_theft", Doors: a.Doors, How: "keypad", CodeNumber: 2, ListNumber: 2}))
		payload, err := wire.Encode(epoch)
		require.NoError(s.t, err)
		s.World.Devices.Receive("CAB-1", before.Generation, "up", payload)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		s.status(cloud.DeliveryDelivered)
		require.False(s.t, s.find().PickupCodeActive)
		require.Equal(s.t, []string{"PK-1 stored"}, s.orders())

		// With its secret, or a certificate of its name, it does not come in again.
		_, err = s.World.Devices.LoginCertificate(ctx, "CAB-1", time.Now())
		require.Error(s.t, err)
		require.False(s.t, s.Online())
		_, err = s.staffOpen(s.staff(), 1)
		require.Equal(s.t, "DEVICE_DISABLED", code(err))
		_, err = s.Lockers.ReportStolen(ctx, s.staff(), in)
		require.Equal(s.t, "DEVICE_DISABLED", code(err))
	})
}

// A cabinet that is stolen during an opening: the opening ends unverified and what
// waited for the cabinet ends. A statement makes no deposit of it any more.
func TestCabinetStolenDuringAnOpening(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		s.open()
		_, err := s.Lockers.SendDeviceCommand(ctx, s.staff(), locker.DeviceCommandInput{Device: s.ID, Type: "reboot"})
		require.NoError(s.t, err)
		_, err = s.Lockers.ReportStolen(ctx, s.staff(), locker.StolenInput{Device: s.ID, Reason: "gone"})
		require.NoError(s.t, err)
		require.Contains(s.t, s.exceptions(), "deposit_unverified medium")
		require.Empty(s.t, s.commandKinds())
		s.Look(func(v cloud.View) error {
			rows, err := v.RunningOpenings(s.ID)
			require.Empty(s.t, rows)
			return err
		})
		_, err = s.Lockers.Confirm(ctx, s.Box.ProviderCaller, locker.ConfirmInput{Delivery: locker.DeliveryKey(s.id())})
		require.Equal(s.t, "DEVICE_DISABLED", code(err))
		require.Empty(s.t, s.liveCodes())
	})
}

// The report was a mistake, or the cabinet was found: with a token that staff make
// after the report it enrols again and is in use. What had a way in before the
// report stays out, and the parcel inside can be collected with a code drawn anew.
func TestCabinetThatIsFoundEnrolsAgain(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		a := s.open()
		s.settle(a)
		before, row := device.NewToken(s.ID, time.Now().UTC())
		require.NoError(s.t, s.Store.Decide(ctx, s.ID, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Enrolments: []cloud.EnrolmentToken{row}}}, nil
		}))
		issued := time.Now().UTC()
		time.Sleep(time.Minute)
		_, err := s.Lockers.ReportStolen(ctx, s.staff(), locker.StolenInput{Device: s.ID, Reason: "it was moved"})
		require.NoError(s.t, err)
		devicetest.Wait(s.t, "end of the stolen cabinet's connection", s.Closed)
		enrol := func(token string) (device.Secrets, error) {
			return s.World.Devices.Enrol(ctx, s.Store, device.Enrolment{Code: "CAB-1", Token: token}, func(ctx context.Context, id cloud.DeviceID, x device.Secrets, decide func(cloud.View) (*cloud.Changes, error)) error {
				return s.Lockers.Rekey(ctx, id, locker.CodeSecrets{Salt: x.Salt, Key: x.Key, Params: wire.CodeParams{MemoryKiB: 8, Passes: 1}}, decide)
			})
		}
		_, err = enrol(before)
		require.ErrorContains(s.t, err, "TOKEN_INVALID")
		_, err = s.Setup.RenewToken(ctx, s.stranger(), setup.DeviceInput{ID: s.ID})
		require.Equal(s.t, "DEVICE_NOT_FOUND", code(err))
		time.Sleep(time.Minute)
		made, err := s.Setup.RenewToken(ctx, s.staff(), setup.DeviceInput{ID: s.ID})
		require.NoError(s.t, err)
		secrets, err := enrol(made.Enrolment.Token)
		require.NoError(s.t, err)

		out, err := s.Lockers.FindDevice(ctx, s.staff(), s.ID)
		require.NoError(s.t, err)
		require.Equal(s.t, "offline", out.Device.Status)
		require.NotContains(s.t, s.Faults(), cloud.DevReportedStolen)
		_, err = s.Setup.RenewToken(ctx, s.staff(), setup.DeviceInput{ID: s.ID})
		require.Equal(s.t, "DEVICE_ENROLLED", code(err))
		require.Equal(s.t, cloud.GridOccupied, s.cell(a.Doors[0]).State)
		_, err = s.World.Devices.Login(ctx, "CAB-1", secrets.Secret)
		require.NoError(s.t, err)
		_, err = s.World.Devices.LoginCertificate(ctx, "CAB-1", issued)
		require.ErrorIs(s.t, err, device.ErrLogin)
		_, err = s.World.Devices.LoginCertificate(ctx, "CAB-1", time.Now().UTC())
		require.NoError(s.t, err)

		_, err = s.Lockers.RotatePickupCode(ctx, s.Box.ProviderCaller, locker.RotateInput{Delivery: "ref:R-1"})
		require.NoError(s.t, err)
		require.NotEmpty(s.t, s.liveCodes())
	})
}
