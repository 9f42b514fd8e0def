package locker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/protocol/wire"
)

// post makes a warehouse post and enrols it.
func (s *story) post(code string) cloud.DeviceID {
	s.t.Helper()
	made, err := s.Setup.AddCabinet(ctx, s.staff(), setup.CabinetInput{Name: "Dock 3", Code: code, Type: cloud.TypeScanPost})
	require.NoError(s.t, err)
	keep := func(ctx context.Context, id cloud.DeviceID, x device.Secrets, decide func(cloud.View) (*cloud.Changes, error)) error {
		return s.Lockers.Rekey(ctx, id, locker.CodeSecrets{Salt: x.Salt, Key: x.Key, Params: wire.CodeParams{MemoryKiB: 8, Passes: 1}}, decide)
	}
	_, err = s.World.Devices.Enrol(ctx, s.Store, device.Enrolment{Code: code, Token: made.Enrolment.Token}, keep)
	require.NoError(s.t, err)
	return made.Device.ID
}

func (s *story) confOf(id cloud.DeviceID) (row cloud.Device, conf wire.Config) {
	s.t.Helper()
	s.Look(func(v cloud.View) (err error) { row, err = v.Device(id); return err })
	require.NoError(s.t, wire.Decode(row.Config, &conf))
	return row, conf
}

// Carriers are answered of a post what they are answered of a cabinet that there is not.
func TestCarriersNeverSeeAPost(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		id, unknown := s.post("DOCK-3"), cloud.DeviceID(999_999)
		require.NoError(s.t, s.Store.Decide(ctx, id, func(v cloud.View) (*cloud.Changes, error) {
			d, err := v.Device(id)
			d.Public, d.OwnerProviderID = true, s.Box.ProviderCaller.Provider.ID // whatever its row says
			return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}}, err
		}))
		who := s.Box.ProviderCaller
		list, err := s.Lockers.ListLockers(ctx, who, locker.LockersInput{})
		require.NoError(s.t, err)
		require.NotEmpty(s.t, list.Lockers)
		for _, l := range list.Lockers {
			require.NotEqual(s.t, id, l.DeviceID)
		}
		for name, call := range map[string]func(cloud.DeviceID) error{
			"find": func(id cloud.DeviceID) error {
				_, err := s.Lockers.FindLocker(ctx, who, locker.LockerInput{Device: id})
				return err
			},
			"availability": func(id cloud.DeviceID) error {
				_, err := s.Lockers.ShowAvailability(ctx, who, locker.AvailabilityInput{Device: id})
				return err
			},
			"create": func(id cloud.DeviceID) error {
				_, err := s.Lockers.Create(ctx, who, locker.CreateInput{ReferenceNumber: "R-9", DeviceID: id, Recipient: cloud.Recipient{Name: "Jane", Phone: "+14165550123"}, Packages: []locker.PackageInput{{TrackingNumber: "PK-9", Size: "M"}}})
				return err
			},
		} {
			require.Equal(s.t, "DEVICE_NOT_FOUND", code(call(id)), name)
			require.Equal(s.t, call(unknown), call(id), name)
		}
		var business cloud.Business
		s.Look(func(v cloud.View) (err error) { business, err = v.Business(s.staff().Account.BusinessID); return err })
		points, err := s.Lockers.ListPickupPoints(ctx, cloud.Caller{}, locker.PickupPointsInput{ClientCode: business.Code})
		require.NoError(s.t, err)
		for _, p := range points.PickupPoints {
			require.NotEqual(s.t, id, p.DeviceID)
		}
	})
}

// What is about doors is refused of a post in words of a post, whatever compartment is named;
// a layout of no doors is taken and changes nothing.
func TestAPostHasNoDoors(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		id, grid := s.post("DOCK-3"), s.grid(1)
		for name, call := range map[string]func() error{
			"open": func() error {
				_, err := s.Lockers.OpenGrids(ctx, s.staff(), locker.StaffOpenInput{Device: id, Grids: []cloud.GridID{grid}, Reason: "Clean", Attended: new(true), WaitSeconds: new(0)})
				return err
			},
			"opening_qr": func() error {
				_, err := s.Lockers.IssueOpeningQR(ctx, s.staff(), locker.OpeningQRInput{Device: id, Grids: []cloud.GridID{grid}, Reason: "Clean"})
				return err
			},
			"block": func() error {
				_, err := s.Lockers.Block(ctx, s.staff(), locker.BlockInput{Device: id, Grid: grid, Reason: "bent"})
				return err
			},
			"unblock": func() error {
				_, err := s.Lockers.Unblock(ctx, s.staff(), locker.UnblockInput{Device: id, Grid: grid})
				return err
			},
			"clear": func() error {
				_, err := s.Lockers.Clear(ctx, s.staff(), locker.ClearInput{Device: id, Grid: grid, Reason: "empty"})
				return err
			},
			"test": func() error {
				_, err := s.Lockers.TestChannel(ctx, s.staff(), locker.ChannelTestInput{Device: id, Grid: grid, Reason: "stuck", Attended: new(true)})
				return err
			},
			"boards": func() error {
				_, err := s.Lockers.Diagnose(ctx, s.staff(), locker.DiagnoseInput{Device: id, Type: "board_view"})
				return err
			},
		} {
			require.Equal(s.t, "DEVICE_HAS_NO_DOORS", code(call()), name)
		}
		_, err := s.Lockers.Diagnose(ctx, s.staff(), locker.DiagnoseInput{Device: id, Type: "support_bundle"})
		require.NoError(s.t, err)
		_, err = s.Lockers.SendDeviceCommand(ctx, s.staff(), locker.DeviceCommandInput{Device: id, Type: "reboot"})
		require.NoError(s.t, err)
		_, err = s.Lockers.FindHealth(ctx, s.staff(), locker.HealthInput{Device: id})
		require.NoError(s.t, err)

		_, before := s.confOf(id)
		for name, shelves := range map[string][]locker.LayoutShelf{"absent": nil, "empty": {}} {
			out, err := s.Lockers.SetLayout(ctx, s.staff(), locker.LayoutInput{Device: id, Shelves: shelves})
			require.NoError(s.t, err, name)
			require.Empty(s.t, out.Device.Grids)
			require.Empty(s.t, out.Device.Shelves)
		}
		_, after := s.confOf(id)
		require.Equal(s.t, before, after)
		doors := []locker.LayoutShelf{{Code: "A", Grids: []locker.LayoutGrid{{Door: 1, Column: 1, Row: 1, Size: "M"}}}}
		_, err = s.Lockers.SetLayout(ctx, s.staff(), locker.LayoutInput{Device: id, Shelves: doors})
		var shown *cloud.Error
		require.ErrorAs(s.t, err, &shown)
		require.Equal(s.t, []any{cloud.Invalid, []string{"A warehouse post has no doors."}}, []any{shown.Kind, shown.Fields["shelves"]})
		for _, shelves := range [][]locker.LayoutShelf{nil, {}} {
			_, err = s.Lockers.SetLayout(ctx, s.staff(), locker.LayoutInput{Device: s.ID, Shelves: shelves})
			require.Equal(s.t, "VALIDATION_FAILED", code(err), "a cabinet has doors")
		}
		for name, in := range map[string]locker.DeviceEdit{
			"a post as a cabinet": {Device: id, Type: new(cloud.TypeKiosk)}, "a cabinet as a post": {Device: s.ID, Type: new(cloud.TypeScanPost)}, "a pickup point": {Device: id, Public: new(true)}} {
			_, err = s.Lockers.EditDevice(ctx, s.staff(), in)
			require.Equal(s.t, "VALIDATION_FAILED", code(err), name)
		}
		out, err := s.Lockers.EditDevice(ctx, s.staff(), locker.DeviceEdit{Device: id, Type: new(cloud.TypeScanPost), Name: new("Dock 4"), Address: new("7 Quay Street"), Public: new(false)})
		require.NoError(s.t, err)
		require.Equal(s.t, []any{"Dock 4", cloud.TypeScanPost, false}, []any{out.Device.DeviceName, out.Device.DeviceType, out.Device.Features.RemoteOpen})
		_, err = s.Lockers.ReplaceHardware(ctx, s.staff(), locker.ReplaceInput{Device: id, Reason: "broken"})
		require.NoError(s.t, err)
		_, err = s.Setup.RenewToken(ctx, s.staff(), setup.DeviceInput{ID: id})
		require.NoError(s.t, err)
		out, err = s.Lockers.Retire(ctx, s.staff(), locker.RetireInput{Device: id, Reason: "moved"})
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.StatusRetired, out.Device.Status)
	})
}

// Configurations of a post are made like those of a cabinet, and have no doors: by changed
// opening hours, and by a roll-out of a profile.
func TestConfigurationsOfAPostHaveNoDoors(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		id := s.post("DOCK-3")
		_, err := s.Lockers.EditDevice(ctx, s.staff(), locker.DeviceEdit{Device: id, Hours: &[]check.HoursInput{{Day: new(1), Open: "06:00", Close: "22:00"}}})
		require.NoError(s.t, err)
		row, conf := s.confOf(id)
		require.Equal(s.t, []any{uint64(2), uint64(2), 1, 0}, []any{row.ConfigVersion, conf.Version, len(conf.Hours), len(conf.Layout)})
		require.NoError(s.t, conf.CheckPost())
		version, err := s.Lockers.Configure(ctx, id, func(c *wire.Config) error { c.Texts = map[string]string{wire.TextNotice: "Dock closed"}; return nil })
		require.NoError(s.t, err)
		require.EqualValues(s.t, 3, version)
		_, err = s.Lockers.Configure(ctx, id, func(c *wire.Config) error {
			c.Layout = []wire.LayoutDoor{{Door: 1, Board: "A", Channel: 1, Size: "M"}}
			return nil
		})
		require.ErrorContains(s.t, err, "a warehouse post has no doors")

		profile := cloud.CabinetProfile{Name: "Docks", Revision: 1, Settings: cloud.CabinetSettings{SessionS: 300, Notice: "new"}}
		profile.Begin(77, row.BusinessID, time.Now())
		require.NoError(s.t, s.Store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{profile}}}, nil
		}))
		_, err = s.Lockers.CreateRollout(ctx, s.staff(), locker.RolloutInput{Profile: 77, Devices: []cloud.DeviceID{id}, First: 1, Percent: 10, Healthy: 60, Patience: 720})
		require.NoError(s.t, err)
		time.Sleep(5 * time.Minute)
		_, conf = s.confOf(id)
		require.Equal(s.t, []any{uint64(4), "new", 0}, []any{conf.Version, conf.Texts[wire.TextNotice], len(conf.Layout)})
	})
}

// Staff codes open doors: their verifiers go to no device that has none.
func TestAPostHoldsNoStaffCodes(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		id := s.post("DOCK-3")
		admin := s.Box.AdminCaller
		_, err := s.Lockers.DrawStaffCodes(ctx, admin, locker.StaffCodesInput{})
		require.NoError(s.t, err)
		time.Sleep(5 * time.Minute)
		out, err := s.Lockers.FindStaffCodes(ctx, admin, locker.StaffCodesInput{})
		require.NoError(s.t, err)
		require.Equal(s.t, 3, out.Cabinets, "the cabinets of the sandbox alone")
		s.Look(func(v cloud.View) error {
			rows, err := v.CodeRows(id, 0, 1_000)
			require.Empty(s.t, rows)
			return err
		})
		entries, _ := s.staffEntries()
		require.NotZero(s.t, entries)
	})
}
