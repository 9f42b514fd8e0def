package report_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/report"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

var (
	toronto, _ = time.LoadLocation("America/Toronto")
	now        = time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	ann        = cloud.Caller{Account: cloud.Account{ID: 1, BusinessID: 7, Type: cloud.ClientAdmin}}
)

// both runs a test on both databases, with two businesses.
func both(t *testing.T, test func(t *testing.T, db *store.DB, s *report.Service)) {
	for name, open := range map[string]func(testing.TB) *store.DB{"SQLite": storetest.OpenSQLite, "PostgreSQL": storetest.OpenPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			write(t, db, 0, cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 7, Code: "a", Timezone: "America/Toronto"}, {ID: 8, Code: "b", Timezone: "Asia/Kolkata"}}}})
			test(t, db, &report.Service{Store: db, Now: func() time.Time { return now }})
		})
	}
}

func write(t *testing.T, db *store.DB, d cloud.DeviceID, c cloud.Changes) {
	t.Helper()
	require.NoError(t, db.Decide(t.Context(), d, func(cloud.View) (*cloud.Changes, error) { return &c, nil }))
}

func save(t *testing.T, db *store.DB, ds ...cloud.Delivery) {
	t.Helper()
	for i := range ds {
		ds[i].Number = fmt.Sprint("N", ds[i].ID)
	}
	write(t, db, 0, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: ds}})
}

// Whatever is saved of deliveries, in whatever order and however often, reports count what
// the rows say at last: times that came late, times that were corrected, test deliveries
// apart, and of one business alone.
func TestReportsCountWhatDeliveriesSay(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, db *store.DB, s *report.Service) {
		const seed = 20261125
		r := rand.New(rand.NewPCG(seed, 1))
		stored := map[cloud.DeliveryID]cloud.Delivery{}
		for range 60 {
			var batch []cloud.Delivery
			ids := map[cloud.DeliveryID]bool{}
			for range 1 + r.IntN(6) {
				id := cloud.DeliveryID(1 + r.IntN(40))
				if ids[id] {
					continue
				}
				ids[id] = true
				d := cloud.Delivery{ID: id, BusinessID: cloud.BusinessID(7 + id%2), Livemode: id%5 != 0}
				if r.IntN(5) > 0 {
					d.DepositedAt = now.Add(-time.Duration(r.IntN(9*24*3600)) * time.Second)
					if r.IntN(2) == 0 {
						d.PickedUpAt = d.DepositedAt.Add(time.Duration(r.IntN(100*3600)) * time.Second)
					}
				}
				if old, ok := stored[id]; ok && !old.DepositedAt.IsZero() {
					d.Corrections = 1
				}
				if old, ok := stored[id]; ok && r.IntN(3) == 0 { // saved again as it is
					d = old
				}
				stored[id] = d
				batch = append(batch, d)
			}
			save(t, db, batch...)
		}
		from := time.Date(2026, 11, 4, 0, 0, 0, 0, toronto)
		in := report.DeliveriesInput{RangeInput: report.RangeInput{From: "2026-11-04", To: "2026-11-10"}}
		for _, live := range []bool{true, false} {
			in.Livemode = &live
			deposits, collections, waited := map[string]int{}, map[string]int{}, time.Duration(0)
			for _, d := range stored {
				if d.BusinessID != 7 || d.Livemode != live {
					continue
				}
				if !d.DepositedAt.IsZero() && !d.DepositedAt.Before(from) {
					deposits[d.DepositedAt.In(toronto).Format(time.DateOnly)]++
				}
				if day := d.PickedUpAt.In(toronto); !d.PickedUpAt.IsZero() && !d.PickedUpAt.Before(from) && day.Format(time.DateOnly) <= "2026-11-10" {
					collections[day.Format(time.DateOnly)]++
					waited += d.PickedUpAt.Sub(d.DepositedAt)
				}
			}
			out, err := s.Deliveries(t.Context(), ann, in)
			require.NoError(t, err)
			require.Len(t, out.Items, 7)
			require.Equal(t, "day", out.Step)
			sum := report.HourCount{}
			for _, x := range out.Items {
				require.Equal(t, deposits[x.At[:10]], x.Deposits, x.At)
				require.Equal(t, collections[x.At[:10]], x.Collections, x.At)
			}
			for _, h := range out.Hours {
				sum.Deposits, sum.Collections = sum.Deposits+h.Deposits, sum.Collections+h.Collections
			}
			require.Equal(t, out.Deposits, sum.Deposits)
			require.Equal(t, out.Collections, sum.Collections)
			times, err := s.Collection(t.Context(), ann, in)
			require.NoError(t, err)
			require.Equal(t, out.Collections, times.Collections)
			if times.Collections > 0 {
				require.InDelta(t, waited.Hours()/float64(times.Collections), *times.MeanHours, .01)
			}
		}
	})
}

// A wait stands in the class that it reaches into, and hours are those of the zone: also of
// one that is a half or a quarter of an hour away, and when clocks go back.
func TestReportsKnowTimeZones(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, db *store.DB, s *report.Service) {
		at := time.Date(2026, 11, 1, 5, 50, 0, 0, time.UTC) // 1:50 in Toronto, the first of two; 11:20 in Kolkata, 11:35 in Kathmandu
		for i, wait := range []time.Duration{59 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour, 71 * time.Hour, 72 * time.Hour, 30 * 24 * time.Hour} {
			save(t, db, cloud.Delivery{ID: cloud.DeliveryID(i + 1), BusinessID: 7, Livemode: true, DepositedAt: at.Add(-wait), PickedUpAt: at})
		}
		day := report.RangeInput{From: "2026-11-01", To: "2026-11-01"}
		out, err := s.Deliveries(t.Context(), ann, report.DeliveriesInput{RangeInput: day})
		require.NoError(t, err)
		require.Equal(t, "hour", out.Step)
		require.Len(t, out.Items, 25, "the day on which clocks go back has 25 hours")
		require.Equal(t, []report.DeliveryCount{{At: "2026-11-01T00:00:00-04:00", Deposits: 2}, {At: "2026-11-01T01:00:00-04:00", Collections: 7}, {At: "2026-11-01T01:00:00-05:00"}}, out.Items[:3])
		require.Equal(t, 7, out.Hours[1].Collections)
		for zone, want := range map[string]string{"Asia/Kolkata": "2026-11-01T11:00:00+05:30", "Asia/Kathmandu": "2026-11-01T11:00:00+05:45"} {
			day.TimeZone = zone
			out, err := s.Deliveries(t.Context(), ann, report.DeliveriesInput{RangeInput: day})
			require.NoError(t, err)
			require.Equal(t, want, out.Items[11].At)
			require.Equal(t, 7, out.Items[11].Collections, zone)
		}
		times, err := s.Collection(t.Context(), ann, report.DeliveriesInput{RangeInput: report.RangeInput{From: "2026-10-30", To: "2026-11-02"}})
		require.NoError(t, err)
		var counts []int
		for _, w := range times.Waits {
			counts = append(counts, w.Collections)
		}
		require.Equal(t, []int{1, 1, 1, 1, 0, 1, 2}, counts)
		require.Nil(t, times.Waits[6].ToHours)
		require.Nil(t, times.Days[0].MeanHours)
		require.Equal(t, 7, times.Days[2].Collections)

		// The attempts of a day's last hour belong to the day, also where it ends in the middle of an hour of UTC.
		write(t, db, 0, cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{{ID: 1, BusinessID: 7, Kind: "account", URL: "https://hooks.example.com", Status: "healthy", Enabled: true}}}})
		for utc, attempts := range map[time.Time]int{time.Date(2026, 11, 1, 18, 0, 0, 0, time.UTC): 5, time.Date(2026, 11, 2, 4, 0, 0, 0, time.UTC): 3, time.Date(2026, 11, 2, 5, 0, 0, 0, time.UTC): 1} {
			_, err := db.NoteHealth(t.Context(), []cloud.EndpointTally{{EndpointID: 1, Hour: utc.Unix() / 3600, Attempts: attempts, SucceededAt: utc}})
			require.NoError(t, err)
		}
		for zone, want := range map[string][2]int{"America/Toronto": {8, 3}, "Asia/Kolkata": {5, 5}} {
			day.TimeZone = zone
			hooks, err := s.Webhooks(t.Context(), ann, day)
			require.NoError(t, err)
			require.Equal(t, want, [2]int{hooks.Attempts, hooks.Items[len(hooks.Items)-1].Attempts}, zone)
		}
	})
}

// A range has its first and last day, is not longer than 31 days and never runs backwards.
func TestReportsRefuseRanges(t *testing.T) {
	t.Parallel()
	db := storetest.OpenSQLite(t)
	write(t, db, 0, cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 7, Code: "a", Timezone: "America/Toronto"}}}})
	s := &report.Service{Store: db, Now: func() time.Time { return now }}
	out, err := s.Orders(t.Context(), ann, report.RangeInput{})
	require.NoError(t, err)
	require.Equal(t, report.Range{From: "2026-11-04", To: "2026-11-10", TimeZone: "America/Toronto"}, out.Range)
	out, err = s.Orders(t.Context(), ann, report.RangeInput{From: "2026-10-01", To: "2026-10-31"})
	require.NoError(t, err)
	require.Len(t, out.Days, 31)
	for member, in := range map[string]report.RangeInput{"from": {From: "2026-10-01", To: "2026-11-01"}, "to": {From: "2026-11-05", To: "2026-11-04"}} {
		_, err := s.Orders(t.Context(), ann, in)
		var e *cloud.Error
		require.ErrorAs(t, err, &e)
		require.Contains(t, e.Fields, member)
	}
	_, err = s.Webhooks(t.Context(), ann, report.RangeInput{From: "0001-01-01", To: "9999-12-31"})
	require.Error(t, err, "and costs nothing")
}

// A cabinet that comes back had a gap; one that is away has one until now. Short ones, and
// logins of one that is connected, are none.
func TestConnectionGaps(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, db *store.DB, s *report.Service) {
		session := func(id cloud.DeviceID, online bool, connected, seen time.Time) {
			write(t, db, id, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Sessions: []cloud.Session{{DeviceID: id, Online: online, ConnectedAt: connected, LastSeenAt: seen}}}})
		}
		for id := range cloud.DeviceID(4) {
			write(t, db, 0, cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{{ID: id + 1, BusinessID: 7 + cloud.BusinessID(id/3), Code: fmt.Sprint("C", id), Name: fmt.Sprint("Cabinet ", id+1)}}}})
		}
		ago := func(d time.Duration) time.Time { return now.Add(-d) }
		for _, id := range []cloud.DeviceID{1, 4} {
			session(id, true, ago(50*time.Hour), ago(50*time.Hour))
			session(id, false, ago(50*time.Hour), ago(30*time.Hour)) // gone
			session(id, false, ago(29*time.Hour), ago(29*time.Hour)) // logs in
			session(id, true, ago(29*time.Hour), ago(29*time.Hour))  // says its status
			session(id, true, ago(28*time.Hour), ago(28*time.Hour))  // logs in again without a break
			session(id, false, ago(28*time.Hour), ago(27*time.Hour))
			session(id, false, ago(27*time.Hour).Add(30*time.Second), ago(27*time.Hour).Add(30*time.Second)) // too short
			session(id, true, ago(27*time.Hour).Add(30*time.Second), ago(27*time.Hour).Add(30*time.Second))
		}
		session(2, true, ago(9*time.Hour), ago(9*time.Hour))
		session(2, false, ago(9*time.Hour), ago(3*time.Hour))
		out, err := s.Connections(t.Context(), ann, report.ConnectionsInput{})
		require.NoError(t, err)
		require.Equal(t, []report.CabinetConnection{{DeviceID: 2, DeviceName: "Cabinet 2", Gaps: 1, DownMinutes: 180, LongestMinutes: 180, Offline: true}, {DeviceID: 1, DeviceName: "Cabinet 1", Gaps: 1, DownMinutes: 60, LongestMinutes: 60}}, out.Items)
		require.Equal(t, 240, out.DownMinutes)
		out, err = s.Connections(t.Context(), ann, report.ConnectionsInput{RangeInput: report.RangeInput{From: "2026-11-08", To: "2026-11-08"}})
		require.NoError(t, err)
		require.Empty(t, out.Items)
		one := 1
		out, err = s.Connections(t.Context(), ann, report.ConnectionsInput{CabinetsInput: report.CabinetsInput{Limit: &one}})
		require.NoError(t, err)
		require.Len(t, out.Items, 1)
		require.Equal(t, 2, out.Cabinets)
		gaps := func() int {
			t.Helper()
			out, err := s.Connections(t.Context(), ann, report.ConnectionsInput{})
			require.NoError(t, err)
			return len(out.Items)
		}
		require.NoError(t, db.PruneReports(t.Context(), ago(29*time.Hour)))
		require.Equal(t, 2, gaps(), "it ended at that moment")
		require.NoError(t, db.PruneReports(t.Context(), ago(29*time.Hour).Add(time.Millisecond)))
		require.Equal(t, 1, gaps(), "one that goes on is read from the session")
	})
}

// Cabinets, orders and webhooks of one business are counted, and those of another are not.
func TestReportsOfOneBusiness(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, db *store.DB, s *report.Service) {
		grid := cloud.GridID(0)
		for b := cloud.BusinessID(7); b <= 8; b++ {
			for n := range 2 {
				id := cloud.DeviceID(int(b)*10 + n)
				c := cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{{ID: id, BusinessID: b, Code: fmt.Sprint("C", id), Name: "Pier"}}}}
				for i, state := range []string{cloud.GridFree, cloud.GridOccupied, cloud.GridBlocked, cloud.GridReserved, cloud.GridCleaning}[n:] {
					grid++
					c.Compartments = append(c.Compartments, cloud.Compartment{GridID: grid, DeviceID: id, Door: uint(i) + 1, Column: 1, PickupEnabled: true, State: state})
				}
				grid++
				c.Compartments = append(c.Compartments, cloud.Compartment{GridID: grid, DeviceID: id, Door: 29, Column: 1, PickupEnabled: true, DoorStatus: "unknown", State: cloud.GridFree})
				grid++
				c.Compartments = append(c.Compartments, cloud.Compartment{GridID: grid, DeviceID: id, Door: 30, State: cloud.GridFree}) // removed from the layout
				write(t, db, 0, c)
			}
			write(t, db, 0, cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{{ID: cloud.EndpointID(b), BusinessID: b, Kind: "account", URL: "https://hooks.example.com", Status: "healthy", Enabled: true}}}})
			hour := now.Unix()/3600 - 30
			_, err := db.NoteHealth(t.Context(), []cloud.EndpointTally{{EndpointID: cloud.EndpointID(b), Hour: hour, Attempts: 5, Failures: 2, SucceededAt: now}, {EndpointID: cloud.EndpointID(b), Hour: hour + 30, Attempts: 3, SucceededAt: now}})
			require.NoError(t, err)
			for i, status := range []cloud.OrderStatus{cloud.OrderDelivered, cloud.OrderDelivered, cloud.OrderNew} {
				write(t, db, 0, cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{{ID: cloud.OrderID(int(b)*10 + i), BusinessID: b, Number: fmt.Sprint("SO", b, i), Status: status, ScheduledDate: "2026-11-09", CreatedAt: now}}}})
			}
		}
		full, err := s.Occupancy(t.Context(), ann, report.CabinetsInput{})
		require.NoError(t, err)
		require.Equal(t, report.Occupancy{Compartments: 11, Occupied: 2, Reserved: 2, Free: 1, Blocked: 4, Unread: 2}, full.Occupancy)
		require.Equal(t, []cloud.DeviceID{71, 70}, []cloud.DeviceID{full.Items[0].DeviceID, full.Items[1].DeviceID}, "the fullest first")
		hooks, err := s.Webhooks(t.Context(), ann, report.RangeInput{})
		require.NoError(t, err)
		require.Equal(t, []int{8, 2}, []int{hooks.Attempts, hooks.Failures})
		require.Equal(t, 5, hooks.Items[5].Attempts)
		orders, err := s.Orders(t.Context(), ann, report.RangeInput{})
		require.NoError(t, err)
		require.Equal(t, []report.StatusCount{{cloud.OrderNew, 1}, {cloud.OrderDelivered, 2}}, orders.Statuses)
		require.Equal(t, 3, orders.Days[5].Orders)
	})
}

// Parcels of many cabinets that are put in at once are all counted.
func TestDepositsAtOnceAreAllCounted(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, db *store.DB, s *report.Service) {
		var all sync.WaitGroup
		errs := make([]error, 48)
		for i := range errs {
			all.Go(func() {
				var ds []cloud.Delivery
				for n := range 4 { // in other quarters and shards each
					id := cloud.DeliveryID(1000 + i*4 + n)
					at := now.Add(-time.Duration((i+n*(1+i%3))%7) * 15 * time.Minute)
					ds = append(ds, cloud.Delivery{ID: id, Number: fmt.Sprint("N", id), BusinessID: 7, Livemode: true, DepositedAt: at, PickedUpAt: at.Add(time.Minute)})
				}
				errs[i] = db.Decide(context.WithoutCancel(t.Context()), cloud.DeviceID(i+1), func(cloud.View) (*cloud.Changes, error) {
					return &cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: ds}}, nil
				})
			})
		}
		all.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		out, err := s.Deliveries(t.Context(), ann, report.DeliveriesInput{})
		require.NoError(t, err)
		require.Equal(t, []int{192, 192}, []int{out.Deposits, out.Collections})
	})
}

// Figures older than they are kept go, those at the bound stay, of every business; a second
// run, or another node's, finds nothing.
func TestOldFiguresAreRemoved(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, db *store.DB, s *report.Service) {
		bound := now.Truncate(cloud.ReportSlot)
		var ds []cloud.Delivery
		for i, age := range []time.Duration{-time.Hour, 0, time.Minute, 30 * time.Hour, 400 * 24 * time.Hour} {
			for b := range cloud.BusinessID(2) {
				ds = append(ds, cloud.Delivery{ID: cloud.DeliveryID(2*i + int(b) + 1), BusinessID: 7 + b, Livemode: true, DepositedAt: bound.Add(-age)})
			}
		}
		save(t, db, ds...)
		counts := func() (out []int) {
			t.Helper()
			require.NoError(t, db.Look(t.Context(), func(v cloud.View) error {
				out = nil
				for b := range cloud.BusinessID(2) {
					r := cloud.ReportRange{BusinessID: 7 + b, From: bound.Add(-500 * 24 * time.Hour), To: bound.Add(24 * time.Hour)}
					slots, err := v.DeliverySlots(r, true)
					if err != nil {
						return err
					}
					out = append(out, len(slots))
				}
				return nil
			}))
			return out
		}
		require.Equal(t, []int{5, 5}, counts())
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i := range errs {
			wg.Go(func() { errs[i] = db.PruneReports(t.Context(), bound) })
		}
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
		require.Equal(t, []int{2, 2}, counts())
		require.NoError(t, db.PruneReports(t.Context(), bound))
		require.Equal(t, []int{2, 2}, counts())
	})
}

// An order is on time when it was delivered by the end of the day that it is planned for, in
// the zone of the business. One that is still open is due once that day is over, a
// cancelled one never.
func TestOrdersOnTime(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, db *store.DB, s *report.Service) {
		var here *time.Location
		require.NoError(t, db.Look(t.Context(), func(v cloud.View) error {
			b, err := v.Business(7)
			here = b.Location()
			return err
		}))
		today := now.In(here)
		midnight := time.Date(today.Year(), today.Month(), today.Day(), 0, 0, 0, 0, here)
		yesterday := midnight.AddDate(0, 0, -1)
		day := func(t time.Time) string { return t.Format(time.DateOnly) }
		for i, x := range []struct {
			planned string
			status  cloud.OrderStatus
			at      time.Time
		}{
			{day(yesterday), cloud.OrderDelivered, midnight.Add(-time.Minute)}, // the last minute
			{day(yesterday), cloud.OrderDelivered, midnight},                   // too late
			{day(yesterday), cloud.OrderDeliveryFailed, midnight.Add(-time.Hour)},
			{day(yesterday), cloud.OrderCancelled, midnight.Add(-time.Hour)},
			{day(today), cloud.OrderDelivered, midnight.Add(-time.Hour)}, // before its day
			{day(today), cloud.OrderDeliveryFailed, midnight.Add(time.Minute)},
			{day(today), cloud.OrderNew, midnight},
			{day(yesterday.AddDate(0, 0, -10)), cloud.OrderDelivered, midnight},
		} {
			write(t, db, 0, cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{{ID: cloud.OrderID(i + 1), BusinessID: 7, Number: fmt.Sprint("SO", i), Status: x.status, StatusAt: x.at, ScheduledDate: x.planned, CreatedAt: now, UpdatedAt: now}}}})
		}
		out, err := s.Orders(t.Context(), ann, report.RangeInput{})
		require.NoError(t, err)
		require.Equal(t, report.Punctuality{Due: 4, OnTime: 2}, out.Punctuality)
		require.Equal(t, report.Punctuality{Due: 3, OnTime: 1}, out.Days[5].Punctuality)
		require.Equal(t, report.Punctuality{Due: 1, OnTime: 1}, out.Days[6].Punctuality)
	})
}
