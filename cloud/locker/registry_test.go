package locker_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// One event of the registry, with the members of its body.
type told struct {
	ID         string              `json:"event_id"`
	Event      string              `json:"event"`
	OccurredAt string              `json:"occurred_at"`
	CustomerID *cloud.AccountID    `json:"customer_id"`
	Data       locker.RegistryData `json:"data"`
	raw        string
}

// registry is the events of the cabinet's registry, in the order of emission.
func (s *parcels) registry() (out []told) {
	s.t.Helper()
	_, rows, err := s.Store.ListAccountOutbox(ctx, cloud.AccountLog{BusinessID: s.staff.Account.BusinessID, ReferenceType: "device_order", Page: cloud.Page{Limit: 1000}})
	require.NoError(s.t, err)
	for _, r := range slices.Backward(rows) {
		x, err := s.Store.FindOutbox(ctx, r.Delivery.ID)
		require.NoError(s.t, err)
		var b told
		require.NoError(s.t, json.Unmarshal(x.Event.Body, &b))
		b.raw = string(x.Event.Body)
		require.Equal(s.t, x.Event.Event, b.Event)
		require.Regexp(s.t, `^DOE-\d+$`, b.ID)
		require.Equal(s.t, cloud.HookDeviceOrder, x.Delivery.Setting)
		var want string
		if b.Data.Order != nil {
			want = fmt.Sprint(b.Data.Order.ID)
		} else {
			want = fmt.Sprint("exception-", b.Data.Exception.ID)
		}
		require.Equal(s.t, want, x.Event.ReferenceID)
		for _, secret := range []string{"pickup_code", "delivery_code", "Jane"} {
			require.NotContains(s.t, b.raw, secret)
		}
		out = append(out, b)
	}
	return out
}

func names(list []told) string {
	var out []string
	for _, b := range list {
		name := strings.TrimPrefix(b.Event, "device_order.")
		if o := b.Data.Order; o != nil {
			name += ":" + o.Status
		}
		if x := b.Data.Exception; x != nil {
			name += ":" + x.Type + "," + x.Status
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func TestAccountsReceiveEventsOfTheRegistry(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e and the other stories of this package")
	t.Parallel()
	carried(t, "stored, overdue, extended, collected", 1, func(s *parcels) {
		a := s.open()
		s.settle(a)
		s.soon(time.Second)
		s.until(func() bool { return s.find().Status == cloud.DeliveryExpired })
		_, err := s.Lockers.Extend(ctx, s.Box.ProviderCaller, locker.ExtendInput{Delivery: "ref:R-1", Hours: 24})
		require.NoError(s.t, err)
		s.pickUp("op_p", 2, nil, a.Doors...)
		got := s.registry()
		require.Equal(s.t, "stored:stored overdue:overdue exception_opened:overdue:overdue,open exception_closed:stored:overdue,resolved picked_up:picked_up", names(got))
		o := got[0].Data.Order
		require.Equal(s.t, []any{"locker_delivery", "recipient", "smart_locker", s.ID, "One", "R-1", s.made.OrderID, (*string)(nil), (*string)(nil)},
			[]any{o.Kind, *o.NextActor, o.DeviceType, o.DeviceID, o.DeviceName, *o.Reference, *o.OrderID, o.RemovalReason, o.EndedAt})
		require.Equal(s.t, got[0].OccurredAt, *o.StoredAt)
		require.Equal(s.t, []string{s.cell(a.Doors[0]).GridCode, "shop-7"}, []string{o.GridCode, *o.ExternalID})
		require.NotNil(s.t, o.DueAt)
		require.Nil(s.t, o.OverdueAt)
		require.Nil(s.t, got[0].CustomerID)
		require.Equal(s.t, []string{"operator", got[1].OccurredAt}, []string{*got[1].Data.Order.NextActor, *got[1].Data.Order.OverdueAt})
		require.Equal(s.t, "extended", *got[3].Data.Exception.Resolution)
		last := got[4].Data.Order
		require.Nil(s.t, last.NextActor)
		require.Equal(s.t, got[4].OccurredAt, *last.EndedAt)
		ids := map[string]bool{}
		for _, b := range got {
			ids[b.ID] = true
		}
		require.Len(s.t, ids, len(got))
	})
	carried(t, "narrowed to exceptions", 1, func(s *parcels) {
		var in webhook.SettingsInput
		require.NoError(s.t, json.Unmarshal([]byte(`{"device_order_events":"device_order.exception_*"}`), &in))
		_, err := webhook.New(s.Store, anyURL{}).SaveSettings(ctx, s.staff, in)
		require.NoError(s.t, err)
		s.settle(s.open())
		s.soon(time.Second)
		s.until(func() bool { return s.find().Status == cloud.DeliveryExpired })
		require.Equal(s.t, "exception_opened:overdue:overdue,open", names(s.registry()))
	})
	carried(t, "all in one batch", 1, func(s *parcels) {
		a := s.open()
		s.Send(wire.KindOpeningSettled.Lane(),
			s.Record(wire.KindOpeningSettled, wire.OpeningSettled{OpeningID: a.OpeningID, ConfirmedBy: wire.ByDoorClose,
				Packages: []wire.SettledPackage{{Ref: s.made.Packages[0].Number, Door: a.Doors[0], Outcome: wire.Deposited}}}),
			s.Record(wire.KindExceptionOpened, wire.Exception{ID: "x9", Type: wire.ExItemMissing, Severity: wire.SeverityHigh, Door: a.Doors[0], Evidence: "empty"}),
			s.Record(wire.KindExceptionClosed, wire.Exception{ID: "x9", Type: wire.ExItemMissing, Severity: wire.SeverityHigh, Door: a.Doors[0], Evidence: "package_found"}))
		s.Ack()
		got := s.registry()
		require.Equal(s.t, "stored:stored exception_opened:stored:item_missing,open exception_closed:stored:item_missing,resolved", names(got))
		require.Equal(s.t, []any{"high", "package_found"}, []any{got[1].Data.Exception.Severity, *got[2].Data.Exception.Resolution})
	})
	carried(t, "a deposit that is not verified at first", 1, func(s *parcels) {
		a := s.open()
		s.end(a, wire.EndDepositUnverified)
		require.NoError(s.t, s.confirm())
		require.Contains(s.t, names(s.registry()), "stored:stored")
		require.NotContains(s.t, names(s.registry()), "unverified:unverified")
	})
	carried(t, "taken out in a correction", 2, func(s *parcels) {
		a := s.open()
		s.settle(a)
		s.takeOut(a, 0)
		got := s.registry()
		require.Equal(s.t, 1, strings.Count(names(got), "removed:removed"))
		for _, b := range got {
			if b.Event == locker.EventRemoved {
				require.Equal(s.t, "anomaly", *b.Data.Order.RemovalReason)
			}
		}
	})
	carried(t, "a door without a parcel", 1, func(s *parcels) {
		s.Tell(wire.KindExceptionOpened, wire.Exception{ID: "x1", Type: wire.ExDoorLeftOpen, Severity: wire.SeverityLow, Door: 6, Evidence: "60 s"})
		got := s.registry()
		require.Equal(s.t, "exception_opened:door_left_open,open", names(got))
		require.Contains(s.t, got[0].raw, `"device_order":null`)
	})
	carried(t, "a carrier's own cabinet", 1, func(s *parcels) {
		s.own(s.Box.ProviderCaller.Provider.ID)
		s.settle(s.open())
		require.Empty(s.t, s.registry())
	})
}

// own gives the cabinet to a carrier.
func (s *parcels) own(p cloud.ProviderID) {
	s.t.Helper()
	require.NoError(s.t, s.Store.Decide(ctx, s.ID, func(v cloud.View) (*cloud.Changes, error) {
		d, err := v.Device(s.ID)
		d.OwnerProviderID = p
		return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{d}}}, err
	}))
}
