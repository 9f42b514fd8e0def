package device_test

import (
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// A close that was not seen was reported as if it had been: nothing said that the
// deposit lay anywhere in an hour.
func TestDepositThatWasNotSeenHasBounds(t *testing.T) {
	t.Parallel()
	story := func(t *testing.T, w *devicetest.World) {
		defer w.Stop()
		d := w.Connect(devicetest.Signing, nil)
		d.Greet(nil)
		create(w, "R-1", d.Code, "PK-1", "PK-2")
		o := startOpening(w, d, "R-1")
		now := time.Now()
		at := func(ago time.Duration) int64 { return now.Add(-ago).UnixNano() }
		stamp := func(ago time.Duration) time.Time { return now.Add(-ago).UTC().Truncate(time.Millisecond) }
		body := wire.OpeningSettled{OpeningID: o.OpeningID, ConfirmedBy: wire.ByTimeoutDoorClosed, Doors: []wire.SettledDoor{
			{Door: o.Doors[0], OpenedAt: at(9 * time.Minute), ClosedAt: at(8 * time.Minute)},
			{Door: o.Doors[1], OpenedAt: at(9 * time.Minute), ClosedAt: at(time.Minute), ClosedAfter: at(7 * time.Minute), ClosedBefore: at(time.Minute)}},
			Packages: []wire.SettledPackage{{Ref: "PK-1", Door: o.Doors[0], Outcome: wire.Deposited}, {Ref: "PK-2", Door: o.Doors[1], Outcome: wire.Deposited}}}
		d.Mono += 1e6
		d.Send(0, wire.MustEncode(wire.Record{Kind: wire.KindOpeningSettled, At: now.UnixNano(), Boot: d.Boot, Mono: d.Mono, Clock: wire.ClockSynced, Body: wire.MustEncode(body)}))
		var out locker.DeliveryOutput
		require.Eventually(t, func() bool {
			var err error
			out, err = w.Lockers.Find(t.Context(), w.Box.ProviderCaller, "ref:R-1")
			require.NoError(t, err)
			return out.Delivery.DepositedAt != nil
		}, time.Minute, 10*time.Millisecond)
		row := deliveryOf(w, out.Delivery.DeliveryNumber)
		near := func(ago time.Duration, got time.Time) {
			t.Helper()
			require.WithinDuration(t, stamp(ago), got, time.Second)
		}
		near(time.Minute, row.DepositedAt)
		near(7*time.Minute, row.DepositedEarliest)
		near(time.Minute, row.DepositedLatest)
		require.NotNil(t, out.Delivery.DepositedEarliest)
		require.Equal(t, *out.Delivery.DepositedAt, *out.Delivery.DepositedLatest)
		timeline, err := w.Store.FindTimeline(t.Context(), "PK-1", nil)
		events := timeline.Events
		require.NoError(t, err)
		i := slices.IndexFunc(events, func(e cloud.TimelineEvent) bool { return e.Event.StatusCode == otep.AvailableForPickup })
		last := events[i].Event
		parsed, err := time.Parse(time.RFC3339Nano, last.Extensions["occurred_earliest"].(string))
		require.NoError(t, err)
		near(7*time.Minute, parsed)
		require.Contains(t, last.Extensions, "occurred_latest")
		require.NotContains(t, last.Extensions, "occurred_at_approximate")
		_, outbox, err := w.Store.ListOutbox(t.Context(), cloud.OutboxFilter{ProviderID: w.Box.ProviderCaller.Provider.ID, Page: cloud.Page{Limit: 100}})
		require.NoError(t, err)
		told := false
		for _, e := range outbox {
			if e.Event.Event != locker.EventDelivered {
				continue
			}
			var body struct {
				Data map[string]any `json:"data"`
			}
			work, err := w.Store.FindOutbox(t.Context(), e.Delivery.ID)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(work.Event.Body, &body))
			told = true
			require.Equal(t, *out.Delivery.DepositedEarliest, body.Data["deposited_earliest"])
			require.Equal(t, *out.Delivery.DepositedLatest, body.Data["deposited_latest"])
		}
		require.True(t, told)
	}
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { story(t, devicetest.New(t, nil)) })
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		story(t, devicetest.NewOn(t, storetest.MigratedPostgresURL(t), nil))
	})
}

// A cabinet whose clock was never set: the close lies after the opening, though
// nothing else is known of it. Its event came before that of the announcement.
func TestDepositOfACabinetWithoutAClock(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		create(w, "R-1", d.Code, "PK-1")
		opened := time.Now().Truncate(time.Millisecond)
		o := startOpening(w, d, "R-1")
		time.Sleep(time.Second)
		body := wire.OpeningSettled{OpeningID: o.OpeningID, ConfirmedBy: wire.ByDoorClose, Doors: []wire.SettledDoor{{Door: o.Doors[0], ClosedAt: 5}},
			Packages: []wire.SettledPackage{{Ref: "PK-1", Door: o.Doors[0], Outcome: wire.Deposited}}}
		d.Mono += 1e6
		b := d.Batch(0, wire.MustEncode(wire.Record{Kind: wire.KindOpeningSettled, At: 5 + 2e9, Boot: d.Boot, Mono: d.Mono, Body: wire.MustEncode(body)}))
		b.Sent.Clock = wire.ClockUnset
		d.Sign(&b)
		d.Up(wire.MustEncode(b))
		d.Ack()
		synctest.Wait()
		out, err := w.Lockers.Find(t.Context(), w.Box.ProviderCaller, "ref:R-1")
		require.NoError(t, err)
		row := deliveryOf(w, out.Delivery.DeliveryNumber)
		require.False(t, row.DepositedAt.Before(opened), "%s is before %s", row.DepositedAt, opened)
	})
}

// The last of several closes lies between the latest of the lower bounds and the
// latest of the upper ones; a later one that was seen is exact.
func TestBoundsOfTheLastClose(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		n := 0
		f := func(name string, doors []wire.SettledDoor, clock wire.Clock, earliest, latest time.Duration, exact bool) {
			t.Helper()
			n++
			ref := []string{"", "R-1", "R-2", "R-3", "R-4"}[n]
			create(w, ref, d.Code, "PK-"+ref)
			o := startOpening(w, d, ref)
			now := time.Now()
			for i := range doors {
				for _, at := range []*int64{&doors[i].OpenedAt, &doors[i].ClosedAt, &doors[i].ClosedAfter, &doors[i].ClosedBefore} {
					if *at != 0 {
						*at = now.Add(-time.Duration(*at)).UnixNano()
					}
				}
				doors[i].Door = o.Doors[0]
			}
			body := wire.OpeningSettled{OpeningID: o.OpeningID, ConfirmedBy: wire.ByTimeoutDoorClosed, Doors: doors, Packages: []wire.SettledPackage{{Ref: "PK-" + ref, Door: o.Doors[0], Outcome: wire.Deposited}}}
			d.Mono += 1e6
			raw := wire.MustEncode(wire.Record{Kind: wire.KindOpeningSettled, At: now.UnixNano(), Boot: d.Boot, Mono: d.Mono, Clock: clock, Body: wire.MustEncode(body)})
			b := d.Batch(0, raw)
			if clock != wire.ClockSynced {
				b.Sent.Clock = clock
				d.Sign(&b)
			}
			d.Up(wire.MustEncode(b))
			d.Ack()
			synctest.Wait() // that may have been the receipt of the opening
			out, err := w.Lockers.Find(t.Context(), w.Box.ProviderCaller, locker.DeliveryKey("ref:"+ref))
			require.NoError(t, err)
			row := deliveryOf(w, out.Delivery.DeliveryNumber)
			if exact {
				require.Zero(t, row.DepositedEarliest, name)
				require.Zero(t, row.DepositedLatest, name)
				require.Nil(t, out.Delivery.DepositedEarliest, name)
				return
			}
			if earliest != 0 {
				require.WithinDuration(t, now.Add(-earliest), row.DepositedEarliest, 50*time.Millisecond, name)
			}
			require.WithinDuration(t, now.Add(-latest), row.DepositedLatest, 50*time.Millisecond, name)
		}
		const m = int64(time.Minute)
		f("seen", []wire.SettledDoor{{OpenedAt: 9 * m, ClosedAt: 8 * m}}, wire.ClockSynced, 0, 0, true)
		f("one that was seen comes last", []wire.SettledDoor{{OpenedAt: 9 * m, ClosedAt: 2 * m}, {OpenedAt: 9 * m, ClosedAt: 5 * m, ClosedAfter: 8 * m, ClosedBefore: 5 * m}}, wire.ClockSynced, 0, 0, true)
		f("one that was seen lies between", []wire.SettledDoor{{OpenedAt: 9 * m, ClosedAt: 6 * m}, {OpenedAt: 9 * m, ClosedAt: 5 * m, ClosedAfter: 8 * m, ClosedBefore: 5 * m}}, wire.ClockSynced, 6*time.Minute, 5*time.Minute, false)
		f("a clock that was carried over", []wire.SettledDoor{{OpenedAt: 9 * m, ClosedAt: 8 * m}}, wire.ClockCarried, 0, 0, false) // not before the announcement
	})
}
