package platform_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/platform"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/protocol/wire"
)

func code(t *testing.T, err error) string {
	t.Helper()
	var e *cloud.Error
	require.ErrorAs(t, err, &e)
	return e.Code
}

var someOperator = cloud.Caller{Account: cloud.Account{ID: 6, Type: cloud.PlatformAdmin}}

// begin suspends a business and begins its removal by what is shown.
func begin(t *testing.T, s *platform.Service, id cloud.BusinessID, name string) (platform.RemovalPreview, error) {
	t.Helper()
	if _, err := s.Suspend(t.Context(), someOperator, platform.SuspendInput{ID: id, Reason: "Over"}); err != nil {
		require.Equal(t, "BUSINESS_SUSPENDED", code(t, err))
	}
	shown, err := s.PreviewRemoval(t.Context(), someOperator, platform.ByBusiness{ID: id})
	require.NoError(t, err)
	yes := true
	_, err = s.Remove(t.Context(), someOperator, platform.RemoveInput{ID: id, Digest: shown.Digest, Code: name, Reason: "Over", Confirm: &yes})
	return shown, err
}

func onBoth(t *testing.T, test func(*testing.T, *webtest.World, *platform.Service)) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *store.DB{"SQLite": storetest.OpenSQLite, "PostgreSQL": storetest.OpenPostgres} {
		t.Run(name, func(t *testing.T) {
			w := webtest.NewOn(t, open(t))
			test(t, w, service(t, w.DB, w.DB))
		})
	}
}

// numbers are the deliveries of a preview with where they lie.
func numbers(p platform.RemovalPreview) (out []string) {
	for _, x := range p.Parcels {
		text := x.Cabinet
		for _, more := range []*string{x.Grid, x.Number, x.Status} {
			if more != nil {
				text += " " + *more
			}
		}
		out = append(out, text)
	}
	return out
}

func free(t *testing.T, w *webtest.World) {
	t.Helper()
	var cell cloud.Compartment
	require.NoError(t, w.DB.Look(t.Context(), func(v cloud.View) (err error) { cell, err = v.Compartment(88, 3); return err }))
	cell.State, cell.DeliveryID = cloud.GridFree, 0
	w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{cell}}})
}

func ended(t *testing.T, w *webtest.World, id cloud.DeliveryID, status cloud.DeliveryStatus) cloud.Delivery {
	t.Helper()
	var d cloud.Delivery
	require.NoError(t, w.DB.Look(t.Context(), func(v cloud.View) (err error) { d, err = v.Delivery(id); return err }))
	was := d
	d.Status = status
	w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{d}}})
	return was
}

// A parcel that was not collected in time lies in its compartment, and its code works;
// one that is announced may be brought: its code works without the cloud. A business
// with either is not removed, and the answer says which. Once both have ended it may be.
func TestAParcelKeepsABusiness(t *testing.T) {
	onBoth(t, func(t *testing.T, w *webtest.World, s *platform.Service) {
		late := w.Delivery
		late.Status, late.ExpiredKind, late.ExpiredAt = cloud.DeliveryExpired, "pickup_overdue", time.Now().UTC().Truncate(time.Millisecond)
		w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{late}}})
		shown, err := begin(t, s, 42, "acme")
		require.Equal(t, "PARCELS_INSIDE", code(t, err))
		require.Equal(t, 2, shown.Inside)
		require.Equal(t, []string{"TOR-FRONT-01 A03 LD-000064021 expired", "TOR-UNION-02 LD-000064022 created"}, numbers(shown))
		var refused *cloud.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, shown.Parcels, refused.Details["parcels"])
		free(t, w)
		_, err = begin(t, s, 42, "acme")
		require.Equal(t, "PARCELS_INSIDE", code(t, err), "one is announced")
		ended(t, w, 64022, cloud.DeliveryCancelled)
		// Its cabinet was away and still knows the code.
		w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{func() cloud.Device { d := w.Spare; d.CodeList = 3; return d }()}},
			LockerChanges: cloud.LockerChanges{Codes: []cloud.CodeRow{{DeviceID: 89, DeliveryID: 64022, CreatedAt: time.Now().UTC(), Entry: wire.CodeEntry{Number: 3, Op: wire.CodeRevoke, Kind: wire.CodeDelivery, DeliveryRef: "LD-000064022"}}}}})
		shown, err = begin(t, s, 42, "acme")
		require.Equal(t, "PARCELS_INSIDE", code(t, err), "a courier may use the code there")
		require.Equal(t, []string{"TOR-UNION-02 LD-000064022 cancelled"}, numbers(shown))
		held, one := uint64(3), uint64(1)
		w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Seen: []cloud.DeviceSeen{{DeviceID: 89, LastSeenAt: time.Now().UTC(), CodesHeld: &held, HeldGeneration: &one}}}})
		shown, err = begin(t, s, 42, "acme")
		require.NoError(t, err)
		require.Zero(t, shown.Inside)
	})
}

// What a person changed after the preview is not what was shown: the digest is another
// one, although as much is there as before.
func TestARemovalIsOfTheContentThatWasShown(t *testing.T) {
	onBoth(t, func(t *testing.T, w *webtest.World, s *platform.Service) {
		_, err := s.Suspend(t.Context(), someOperator, platform.SuspendInput{ID: 43, Reason: "Over"})
		require.NoError(t, err)
		preview := func() platform.RemovalPreview {
			p, err := s.PreviewRemoval(t.Context(), someOperator, platform.ByBusiness{ID: 43})
			require.NoError(t, err)
			return p
		}
		shown := preview()
		require.Equal(t, shown.Digest, preview().Digest)
		ctx := cloud.WithCall(t.Context(), &cloud.Call{BusinessID: 43, Actor: "account:6", Operation: "settings.save"})
		require.NoError(t, w.DB.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
			b, err := v.Business(43)
			b.SupportPhone = "+1 555 0100"
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}, err
		}))
		yes := true
		_, err = s.Remove(t.Context(), someOperator, platform.RemoveInput{ID: 43, Digest: shown.Digest, Code: "other", Reason: "Over", Confirm: &yes})
		require.Equal(t, "APPROVAL_CHANGED", code(t, err))
		now := preview()
		require.NotEqual(t, shown.Digest, now.Digest)
		w.Write(t, cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{{BusinessID: 42, At: time.Now(), Actor: "account:1", Action: "x", Target: "y", Detail: "{}"}}}})
		require.Equal(t, now.Digest, preview().Digest, "another business is none of it")
		_, err = s.Remove(t.Context(), someOperator, platform.RemoveInput{ID: 43, Digest: now.Digest, Code: "other", Reason: "Over", Confirm: &yes})
		require.NoError(t, err)
	})
}

// A deposit that was under way when the removal was asked for: the removal finds it once
// the cabinets are cut off, stops, and gives them back as they were. The process ends
// between the two.
func TestARemovalStopsAtAParcelThatWasUnderWay(t *testing.T) {
	onBoth(t, func(t *testing.T, w *webtest.World, s *platform.Service) {
		stolen := w.Spare
		stolen.Disabled, stolen.CutOffAt = true, time.Now().UTC().Add(-time.Hour).Truncate(time.Millisecond)
		w.Write(t, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{stolen}}})
		free(t, w)
		was := ended(t, w, 64021, cloud.DeliveryFailed)
		ended(t, w, 64022, cloud.DeliveryCancelled)
		_, err := begin(t, s, 42, "acme")
		require.NoError(t, err)
		w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{was}}}) // by a courier whose cabinet knew nothing of the failure
		jobs, err := w.DB.OpenBusinessJobs(t.Context())
		require.NoError(t, err)
		cut, err := s.Step(t.Context(), jobs[0])
		require.NoError(t, err)
		require.Zero(t, cut.Rows)
		devices := func() (out []bool) {
			require.NoError(t, w.DB.Look(t.Context(), func(v cloud.View) error {
				for _, id := range []cloud.DeviceID{88, 89} {
					d, err := v.Device(id)
					if err != nil {
						return err
					}
					require.Equal(t, d.Disabled, d.IsCutOff())
					out = append(out, d.Disabled)
				}
				return nil
			}))
			return out
		}
		require.Equal(t, []bool{true, true}, devices())
		require.NoError(t, service(t, w.DB, w.DB).Work(t.Context()))
		require.Equal(t, []bool{false, true}, devices(), "the stolen one stays what it is")
		state, err := s.FindRemoval(t.Context(), someOperator, platform.ByJob{ID: jobs[0].ID})
		require.NoError(t, err)
		require.Equal(t, []any{"stopped", int64(0)}, []any{state.Job.Status, state.Job.Rows})
		lines, err := w.DB.ListAudits(t.Context(), 42, 0, 1)
		require.NoError(t, err)
		require.Equal(t, "business_removal_stopped", lines[0].Action)
		_, err = s.Resume(t.Context(), someOperator, platform.ByBusiness{ID: 42})
		require.NoError(t, err)
	})
}

// A business that is being removed is not resumed: its people would be let into what
// is half gone.
func TestABusinessThatIsBeingRemovedIsNotResumed(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	s := platform.New(platform.Config{Store: w.DB, Jobs: w.DB, Over: store.ExportOver, Archives: archives(t), DigestKey: []byte("k")})
	_, err := begin(t, s, 43, "other")
	require.NoError(t, err)
	_, err = s.Resume(t.Context(), someOperator, platform.ByBusiness{ID: 43})
	require.Equal(t, "BUSINESS_REMOVAL_RUNNING", code(t, err))
}
