package route_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/route"
	"github.com/postern-io/postern/cloud/webhook"
)

// open takes every address.
type open struct{}

func (open) CheckURL(context.Context, string) error { return nil }

// ear is a business that gets the events of its drivers, at a time that the test sets.
type ear struct {
	*world
	receivers *webhook.Service
	now       time.Time
	heard     int // events that were looked at
}

func newEar(w *world) *ear {
	e := &ear{world: w, receivers: webhook.New(w.db, open{}), now: time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)}
	w.routes = route.New(route.Config{Store: w.db, Orders: w.orders, Webhooks: e.receivers})
	route.SetNow(w.routes, func() time.Time { return e.now })
	return e
}

func (e *ear) set(c cloud.Caller, members string) error {
	var in webhook.SettingsInput
	require.NoError(e.t, json.Unmarshal([]byte(members), &in))
	if c.Account.Type == cloud.Customer {
		in.CustomerID = c.Account.ID
	}
	if err := check.Input(&in); err != nil {
		return err
	}
	_, err := e.receivers.SaveSettings(e.t.Context(), e.admin, in)
	return err
}

func (e *ear) duty(on bool) {
	_, err := e.routes.Duty(e.t.Context(), e.driver, route.DutyInput{OnDuty: &on})
	require.NoError(e.t, err)
}

// at says where the driver is, recorded so long ago.
func (e *ear) at(latitude float64, ago time.Duration) {
	longitude, battery := -79.38, 76
	_, err := e.routes.Locate(e.t.Context(), e.driver, route.LocateInput{Points: []route.Point{{Latitude: &latitude, Longitude: &longitude, Battery: &battery, RecordedAt: e.now.Add(-ago).Format(time.RFC3339Nano)}}})
	require.NoError(e.t, err)
}

// wait lets time go by, second by second, as the service's loop would see it.
func (e *ear) wait(d time.Duration) {
	for range d / time.Second {
		e.now = e.now.Add(time.Second)
		require.NoError(e.t, route.TellDue(e.t.Context(), e.routes))
	}
}

type told struct {
	EventID    string `json:"event_id"`
	Event      string
	OccurredAt string `json:"occurred_at"`
	Data       struct {
		Driver   map[string]any
		OnDuty   bool `json:"on_duty"`
		Shift    map[string]string
		Location map[string]any
		RouteIDs []int `json:"route_ids"`
		Battery  int
		Source   string
	}
}

// fresh is what was sent since it was last asked, oldest first.
func (e *ear) fresh() (out []told) {
	_, rows, err := e.db.ListAccountOutbox(e.t.Context(), cloud.AccountLog{BusinessID: 42, Page: cloud.Page{Limit: 1000}})
	require.NoError(e.t, err)
	slices.Reverse(rows)
	for _, r := range rows[e.heard:] {
		x, err := e.db.FindOutbox(e.t.Context(), r.Delivery.ID)
		require.NoError(e.t, err)
		require.Equal(e.t, "driver", x.Event.ReferenceType)
		require.Equal(e.t, "6", x.Event.ReferenceID)
		var b told
		require.NoError(e.t, json.Unmarshal(x.Event.Body, &b))
		out = append(out, b)
	}
	e.heard = len(rows)
	return out
}

func latitudes(events []told) (out []float64) {
	for _, x := range events {
		out = append(out, x.Data.Location["latitude"].(float64))
	}
	return out
}

// The first place of a shift is sent at once, then the newest whenever the
// interval has passed, and nothing else; what was sent is complete.
func TestPlacesAreSent(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		e := newEar(w)
		e.at(1, 0)
		require.Empty(t, e.fresh(), "nobody wants to hear of it")
		require.NoError(t, e.set(e.admin, `{"webhook_sign_secret":"0123456789abcdef","driver_location_webhook_url":"https://a.example/x","driver_location_min_interval_sec":30}`))
		e.wait(time.Second)
		e.at(2, 0)
		first := e.fresh()
		require.Equal(t, []float64{2}, latitudes(first))
		x := first[0]
		require.Equal(t, "DLU-6-1795186801", x.EventID)
		require.Equal(t, cloud.EventDriverPlace, x.Event)
		require.Equal(t, map[string]any{"driver_id": 6.0, "name": "driver 6", "phone": nil, "vehicle_type": nil}, x.Data.Driver)
		require.Equal(t, 76, x.Data.Battery)
		require.Equal(t, "2026-11-20T10:00:01-05:00", x.Data.Location["recorded_at"])
		require.NotNil(t, x.Data.RouteIDs)

		for i := range 20 {
			e.wait(time.Second)
			e.at(3+float64(i), 0)
		}
		e.at(9, 10*time.Second) // late: kept nowhere
		require.Empty(t, e.fresh(), "not before the interval is over")
		e.wait(10 * time.Second)
		require.Equal(t, []float64{22}, latitudes(e.fresh()), "the newest, without another point")
		e.wait(time.Hour)
		require.Empty(t, e.fresh(), "nothing new, nothing told")
		e.at(30, 0)
		require.Equal(t, []float64{30}, latitudes(e.fresh()), "at once after a long silence")

		e.wait(2 * time.Second)
		e.duty(true)
		e.at(31, 0)
		require.Equal(t, []float64{31}, latitudes(e.fresh()), "a new shift")
		e.wait(2 * time.Second)
		e.at(32, 0)
		require.Empty(t, e.fresh())
		require.NoError(t, e.set(e.admin, `{"driver_location_webhook_url":""}`))
		e.wait(time.Minute)
		require.Empty(t, e.fresh(), "nobody hears of it any more")
		require.NoError(t, e.set(e.admin, `{"driver_location_webhook_url":"https://a.example/x","driver_location_min_interval_sec":null}`))
		e.at(33, 0)
		e.at(34, -time.Millisecond)
		require.Equal(t, []float64{33}, latitudes(e.fresh()))
		e.wait(time.Minute)
		require.Empty(t, e.fresh(), "a clock that is ahead counts as now")

		for _, bad := range []string{`{"driver_location_min_interval_sec":4}`, `{"driver_location_min_interval_sec":3601}`} {
			require.ErrorContains(t, e.set(e.admin, bad), "VALIDATION_FAILED")
		}
		for _, bad := range []string{`{"driver_location_min_interval_sec":60}`, `{"driver_location_webhook_url":"https://a.example/x"}`} {
			require.ErrorContains(t, e.set(e.customer, bad), "VALIDATION_FAILED", "the business's own")
		}
	})
}

// A place is a minute after the one before where no interval is set.
func TestPlacesAreAMinuteApart(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		e := newEar(w)
		require.NoError(t, e.set(e.admin, `{"webhook_sign_secret":"0123456789abcdef","driver_location_webhook_url":"https://a.example/x"}`))
		e.at(1, 0)
		e.wait(time.Second)
		e.at(2, 0)
		e.wait(58 * time.Second)
		require.Equal(t, []float64{1}, latitudes(e.fresh()), "59 seconds")
		e.wait(time.Second)
		require.Equal(t, []float64{2}, latitudes(e.fresh()), "60 seconds")

		// Another driver has an interval of its own.
		latitude, longitude := 3.0, -79.38
		_, err := e.routes.Locate(t.Context(), w.second, route.LocateInput{Points: []route.Point{{Latitude: &latitude, Longitude: &longitude, RecordedAt: e.now.Format(time.RFC3339Nano)}}})
		require.NoError(t, err)
		list, _, err := e.db.ListAccountOutbox(t.Context(), cloud.AccountLog{BusinessID: 42, ReferenceType: "driver", ReferenceID: fmt.Sprint(w.second.Account.ID), Page: cloud.Page{Limit: 10}})
		require.NoError(t, err)
		require.Equal(t, 1, list.Total)
	})
}

// Two nodes find the same place due, and tell it once.
func TestAPlaceIsSentOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		e := newEar(w)
		require.NoError(t, e.set(e.admin, `{"webhook_sign_secret":"0123456789abcdef","driver_location_webhook_url":"https://a.example/x"}`))
		e.at(1, 0)
		e.now = e.now.Add(time.Second)
		e.at(2, 0)
		e.now = e.now.Add(time.Minute)
		errs := make(chan error, 4)
		for range 4 {
			go func() { errs <- route.TellDue(t.Context(), e.routes) }()
		}
		for range 4 {
			require.NoError(t, <-errs)
		}
		require.Equal(t, []float64{1, 2}, latitudes(e.fresh()))
	})
}

// Points of one driver come to several nodes at once, whose clocks differ: the
// newest is kept, and one of them is sent.
func TestPointsOfADriverAtSeveralNodes(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		e := newEar(w)
		require.NoError(t, e.set(e.admin, `{"webhook_sign_secret":"0123456789abcdef","driver_location_webhook_url":"https://a.example/x"}`))
		const nodes = 6
		for round := range 10 {
			e.now = e.now.Add(time.Hour)
			errs := make(chan error, nodes)
			for i := range nodes {
				now := e.now.Add(time.Duration(i) * 2 * time.Second)
				s := route.New(route.Config{Store: w.db, Orders: w.orders, Webhooks: e.receivers})
				route.SetNow(s, func() time.Time { return now })
				latitude, longitude := float64(i), -79.38
				p := route.Point{Latitude: &latitude, Longitude: &longitude, RecordedAt: now.Format(time.RFC3339Nano)}
				go func() {
					_, err := s.Locate(t.Context(), w.driver, route.LocateInput{Points: []route.Point{p}})
					errs <- err
				}()
			}
			for range nodes {
				require.NoError(t, <-errs)
			}
			require.Len(t, e.fresh(), 1, round)
			require.NoError(t, w.db.Look(t.Context(), func(v cloud.View) error {
				p, err := v.DriverPlace(42, w.driver.Account.ID)
				require.Equal(t, float64(nodes-1), p.Latitude)
				return err
			}))
		}
	})
}

// A route that goes on over midnight is one that its driver drives, until it is
// done; one of yesterday that never began is none.
func TestAPlaceNamesTheRouteOfTheNight(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		e := newEar(w)
		require.NoError(t, e.set(e.admin, `{"webhook_sign_secret":"0123456789abcdef","driver_location_webhook_url":"https://a.example/x"}`))
		e.now = time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC) // eleven in the evening in Toronto
		begun := e.now.Add(-time.Hour)
		night := func(id cloud.RouteID, date string, started time.Time) cloud.Route {
			return cloud.Route{ID: id, BusinessID: 42, Date: date, DriverID: e.driver.Account.ID, DispatchedAt: begun, StartedAt: started, CreatedAt: begun, UpdatedAt: begun}
		}
		stop := func(r cloud.RouteID, s cloud.OrderStatus) cloud.Order {
			o := w.order(w.create(cloud.DeliveryOrder))
			o.Status, o.RouteID, o.Stop, o.DriverID, o.DriverName = s, r, 1, e.driver.Account.ID, "driver 6"
			return o
		}
		w.write(&cloud.Changes{RouteChanges: cloud.RouteChanges{Routes: []cloud.Route{night(901, "2026-11-20", begun), night(902, "2026-11-20", time.Time{}), night(903, "2026-11-20", begun), night(904, "2026-11-21", time.Time{})}},
			OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{stop(901, cloud.OrderOutForDelivery), stop(902, cloud.OrderDriverAssigned), stop(903, cloud.OrderDelivered)}}})
		e.at(1, 0)
		require.Equal(t, []int{901, 902}, e.fresh()[0].Data.RouteIDs)
		e.now = e.now.Add(2 * time.Hour)
		e.at(2, 0)
		require.Equal(t, []int{901, 904}, e.fresh()[0].Data.RouteIDs)
	})
}

// Beginning and ending work is sent with the shift that it is about.
func TestDutyIsSent(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		e := newEar(w)
		require.NoError(t, e.set(e.admin, `{"webhook_sign_secret":"0123456789abcdef","order_lifecycle_webhook_url":"https://a.example/x","order_lifecycle_events":"driver.*"}`))
		e.duty(true)
		on := e.fresh()
		require.Len(t, on, 1)
		require.Equal(t, "driver.on_duty_changed", on[0].Event)
		require.Regexp(t, `^DLE-\d+$`, on[0].EventID)
		require.Equal(t, "driver_app", on[0].Data.Source)
		require.True(t, on[0].Data.OnDuty)
		require.Nil(t, on[0].Data.Shift)
		require.Nil(t, on[0].Data.Location)
		e.duty(true)
		require.Empty(t, e.fresh(), "nothing changed")

		e.at(43.65, 0)
		w.write(&cloud.Changes{RouteChanges: cloud.RouteChanges{Drivers: []cloud.Driver{{Account: e.driver.Account, Phone: "+14165550177", OnDuty: true, Vehicle: cloud.Vehicle{Type: "van"}, ShiftStart: "22:00", ShiftEnd: "06:00"}}}})
		e.now = time.Date(2026, 11, 21, 6, 30, 0, 0, time.UTC) // half past one in Toronto
		e.at(43.66, cloud.PlaceFresh)
		e.duty(false)
		off := e.fresh()
		require.Len(t, off, 1)
		require.False(t, off[0].Data.OnDuty)
		require.Equal(t, map[string]any{"driver_id": 6.0, "name": "driver 6", "phone": "+14165550177", "vehicle_type": "van"}, off[0].Data.Driver)
		require.Equal(t, map[string]string{"start": "2026-11-20T22:00:00-05:00", "end": "2026-11-21T06:00:00-05:00"}, off[0].Data.Shift, "the night that it is")
		require.Equal(t, map[string]any{"latitude": 43.66, "longitude": -79.38}, off[0].Data.Location)
		e.now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) // seven in the morning
		e.duty(true)
		next := e.fresh()[0].Data
		require.Equal(t, "2026-11-21T22:00:00-05:00", next.Shift["start"], "the next night")
		require.Nil(t, next.Location, "where it was hours ago, which the event cannot say")

		require.NoError(t, e.set(e.admin, `{"order_lifecycle_events":"order.*"}`))
		e.duty(false)
		require.Empty(t, e.fresh(), "narrowed to others")
	})
}

// A failed delivery says what the driver said comes next: another try, another day, or
// nothing.
func TestWhatFollowsAFailedDeliveryIsSent(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.orders = order.New(order.Config{Store: w.db, Webhooks: webhook.New(w.db, open{})})
		e := newEar(w)
		require.NoError(t, e.set(e.admin, `{"webhook_sign_secret":"0123456789abcdef","order_lifecycle_webhook_url":"https://a.example/x","order_lifecycle_events":"order.delivery_failed"}`))
		said := map[string]string{"": "redelivery", "redelivery": "redelivery", "reschedule": "reschedule", "refused": "refused"}
		for in, want := range said {
			o := w.create(cloud.DeliveryOrder)
			w.dispatch(w.open(w.staff, w.driver, o))
			w.status(cloud.OrderOutForDelivery)(w.routes.StartDelivery(t.Context(), w.driver, route.ByOrder{OrderID: o}))
			_, err := w.routes.Deliver(t.Context(), w.driver, route.ResultInput{OrderID: o, Result: "failed", FailureCode: "weather", FollowUp: in})
			require.NoError(t, err)
			_, rows, err := e.db.ListAccountOutbox(t.Context(), cloud.AccountLog{BusinessID: 42, ReferenceType: "order", ReferenceID: fmt.Sprint(o), Page: cloud.Page{Limit: 10}})
			require.NoError(t, err)
			require.Len(t, rows, 1)
			x, err := e.db.FindOutbox(t.Context(), rows[0].Delivery.ID)
			require.NoError(t, err)
			var b struct {
				Event string
				Data  struct {
					FollowUp string `json:"follow_up"`
				}
			}
			require.NoError(t, json.Unmarshal(x.Event.Body, &b))
			require.Equal(t, []string{"order.delivery_failed", want}, []string{b.Event, b.Data.FollowUp}, "%q", in)
		}
	})
}
