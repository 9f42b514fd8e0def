package locker_test

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// read is the pass behind a text, as the cabinet reads it.
func (s *story) read(text string) wire.Pass {
	s.t.Helper()
	p, err := signed.PinnedKeys([]wire.PinnedKey{s.Server.Signer.Pinned()}).OpenPass(text)
	require.NoError(s.t, err)
	require.Equal(s.t, "CAB-1", p.DeviceCode)
	return p
}

func (s *story) courierQR(c cloud.Caller, in locker.CourierQRInput) (locker.QROutput, error) {
	in.Delivery = locker.DeliveryKey(s.id())
	return s.Lockers.IssueCourierQR(ctx, c, in)
}

func codeOf(err error) string {
	var x *cloud.Error
	if errors.As(err, &x) {
		return x.Code
	}
	return ""
}

// The cabinet is offline. A courier's code names the delivery's compartments and packages,
// what it opened there settles as any deposit at the cabinet, and its use is on record.
func TestACourierIsGivenAQRCode(t *testing.T) {
	tell(t, 2, nil, func(s *story) {
		s.Drop()
		out, err := s.courierQR(s.Box.ProviderCaller, locker.CourierQRInput{})
		require.NoError(t, err)
		p := s.read(out.QR)
		require.Equal(t, wire.OpenDeposit, p.Kind)
		require.Equal(t, s.code, p.DeliveryRef)
		require.Equal(t, time.Now().Add(4*time.Hour).UnixNano(), p.NotAfter)
		require.Equal(t, hex.EncodeToString(p.ID), out.QRID)
		require.Equal(t, []cloud.GridID{s.grid(p.Doors[0]), s.grid(p.Doors[1])}, out.Grids)
		require.Equal(t, map[uint][]string{p.Doors[0]: {"PK-1"}, p.Doors[1]: {"PK-2"}}, p.Packages)
		entries := s.listed(wire.CodeDelivery)
		require.Equal(t, entries[len(entries)-1].Number, p.CodeNumber, "it stands for the delivery code")
		require.Equal(t, uint64(1), p.Generation)

		long, err := s.courierQR(s.staff(), locker.CourierQRInput{Hours: new(8)})
		require.NoError(t, err, "staff may as well")
		require.Equal(t, int64(wire.MaxCourierPass), s.read(long.QR).NotAfter-s.read(long.QR).NotBefore)

		rows, err := s.Store.ListAudits(ctx, s.Box.ProviderCaller.Provider.BusinessID, 0, 2)
		require.NoError(t, err)
		for i, r := range rows {
			require.Equal(t, "qr_code_issued", r.Action)
			require.Equal(t, s.code, r.Target)
			require.Contains(t, r.Detail, []string{long.QRID, out.QRID}[i])
			require.NotContains(t, r.Detail, signed.PassPrefix)
		}

		s.Device = s.Connect("CAB-1", s.Memory)
		s.Greet(nil)
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_l", Kind: wire.OpenDeposit, Doors: p.Doors, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code,
			How: wire.PassInput, PassID: p.ID})
		s.settle(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_l", Doors: p.Doors, Packages: p.Packages}})
		s.status(cloud.DeliveryDelivered)
		require.True(t, s.find().PickupCodeActive)
		s.Look(func(v cloud.View) error {
			row, err := cloud.Find(v, cloud.QRCode{PassID: out.QRID})
			require.Equal(t, "op_l", row.OpeningID)
			require.False(t, row.UsedAt.IsZero())
			return err
		})
		_, err = s.courierQR(s.Box.ProviderCaller, locker.CourierQRInput{})
		require.Equal(t, "DELIVERY_STATE_CONFLICT", codeOf(err), "it is delivered")
	})
}

func TestACourierIsRefusedAQRCode(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		_, err := s.courierQR(s.stranger(), locker.CourierQRInput{})
		require.Equal(t, "DELIVERY_NOT_FOUND", codeOf(err))
		out, err := s.courierQR(s.Box.ProviderCaller, locker.CourierQRInput{})
		require.NoError(t, err)
		require.Equal(t, cloud.GridReserved, s.cell(s.read(out.QR).Doors[0]).State)

		s.open()
		_, err = s.courierQR(s.Box.ProviderCaller, locker.CourierQRInput{})
		require.Equal(t, "DELIVERY_STATE_CONFLICT", codeOf(err), "an opening runs")
	})
	tell(t, 1, nil, func(s *story) {
		preview := cloud.WithPreview(ctx, &cloud.Preview{})
		out, err := s.Lockers.IssueCourierQR(preview, s.staff(), locker.CourierQRInput{Delivery: locker.DeliveryKey(s.id())})
		require.NoError(t, err)
		require.Empty(t, out.QR, "a dry run gives out nothing")
		require.NoError(t, s.Store.Decide(ctx, s.ID, func(v cloud.View) (*cloud.Changes, error) {
			d, err := v.DeliveryByNumber(s.code)
			d.DeliverBefore = time.Now().Add(time.Minute)
			for i := range d.Packages {
				d.Packages[i].TrackingNumber = strings.Repeat("9", 64)
			}
			return &cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d}}}, err
		}))
		out, err = s.courierQR(s.staff(), locker.CourierQRInput{})
		require.NoError(t, err)
		require.Equal(t, time.Now().Add(time.Minute).UnixNano(), s.read(out.QR).NotAfter, "no longer than the delivery waits")
		require.NoError(t, s.cancel())
		_, err = s.courierQR(s.Box.ProviderCaller, locker.CourierQRInput{})
		require.Equal(t, "DELIVERY_STATE_CONFLICT", codeOf(err))
	})
}

// Staff open doors of an offline cabinet: the history has who and why.
func TestStaffAreGivenAQRCode(t *testing.T) {
	tell(t, 1, nil, func(s *story) {
		s.Drop()
		in := locker.OpeningQRInput{Device: s.ID, Grids: []cloud.GridID{s.grid(2), s.grid(1), s.grid(2)}, Reason: "The link is down"}
		out, err := s.Lockers.IssueOpeningQR(ctx, s.staff(), in)
		require.NoError(t, err)
		p := s.read(out.QR)
		require.Equal(t, wire.OpenStaff, p.Kind)
		require.ElementsMatch(t, []uint{1, 2}, p.Doors)
		require.Equal(t, int64(wire.MaxStaffPass), p.NotAfter-p.NotBefore)

		s.Device = s.Connect("CAB-1", s.Memory)
		s.Greet(nil)
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_s", Kind: wire.OpenStaff, Doors: p.Doors, CommandID: wire.LocalCommand, Who: "staff", How: wire.PassInput, PassID: p.ID})
		s.Tell(wire.KindOpeningEnded, wire.OpeningEnded{OpeningID: "op_s", Reason: wire.EndDone})
		history, err := s.Lockers.ListDoorHistory(ctx, s.staff(), locker.HistoryInput{Device: s.ID})
		require.NoError(t, err)
		line := history.Reports[0]
		require.Equal(t, "staff", line.By)
		require.Equal(t, s.staff().Account.Name, *line.ByName)
		require.Equal(t, "The link is down", *line.Reason)

		_, err = s.Lockers.IssueOpeningQR(ctx, s.stranger(), in)
		require.Equal(t, "DEVICE_NOT_FOUND", codeOf(err))
		for code, grids := range map[string][]cloud.GridID{"VALIDATION_FAILED": nil, "GRID_NOT_FOUND": {999999}} {
			in.Grids = grids
			_, err = s.Lockers.IssueOpeningQR(ctx, s.staff(), in)
			require.Equal(t, code, codeOf(err))
		}
		in.Grids = []cloud.GridID{s.grid(1)}
		for code, change := range map[string]func(*cloud.Device){"DEVICE_DISABLED": func(d *cloud.Device) { d.Disabled = true },
			"QR_NOT_SUPPORTED": func(d *cloud.Device) { d.Disabled, d.Protocol = false, cloud.ProtocolHTTP }} {
			require.NoError(t, s.Store.Decide(ctx, s.ID, func(v cloud.View) (*cloud.Changes, error) {
				d, err := v.Device(s.ID)
				change(&d)
				return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}}, err
			}))
			_, err = s.Lockers.IssueOpeningQR(ctx, s.staff(), in)
			require.Equal(t, code, codeOf(err))
		}
	})
}
