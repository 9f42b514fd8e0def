package route_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/route"
)

// A driver's place is the newest that was recorded, in whatever order points
// come; a clock that is ahead does not hide what comes after it.
func TestWhereADriverWas(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		last := func() *route.PlaceBody {
			out, err := w.routes.Driver(ctx, w.staff, route.ByDriver{DriverID: w.driver.Account.ID})
			require.NoError(t, err)
			return out.Driver.Place
		}
		at := func(latitude float64, recorded string) route.Point {
			longitude := -79.38
			return route.Point{Latitude: &latitude, Longitude: &longitude, RecordedAt: recorded}
		}
		require.Nil(t, last())
		out, err := w.routes.Locate(ctx, w.driver, route.LocateInput{Points: []route.Point{at(1, "2026-01-01T10:02:00Z"), at(2, "2026-01-01T10:03:00Z"), at(3, "2026-01-01T10:01:00Z")}})
		require.NoError(t, err)
		require.Equal(t, 3, out.Accepted)
		require.Equal(t, 2.0, last().Latitude)
		require.Equal(t, "2026-01-01T05:03:00-05:00", *last().RecordedAt)
		out, err = w.routes.Locate(ctx, w.driver, route.LocateInput{Points: []route.Point{at(4, "2026-01-01T10:02:59Z")}})
		require.NoError(t, err)
		require.Equal(t, 1, out.Accepted, "late, and welcome")
		require.Equal(t, 2.0, last().Latitude)
		_, err = w.routes.Locate(ctx, w.driver, route.LocateInput{Points: []route.Point{at(5, time.Now().Add(24*time.Hour).Format(time.RFC3339))}})
		require.NoError(t, err)
		require.Equal(t, 5.0, last().Latitude)
		time.Sleep(2 * time.Millisecond)
		_, err = w.routes.Locate(ctx, w.driver, route.LocateInput{Points: []route.Point{at(6, "")}})
		require.NoError(t, err)
		require.Equal(t, 6.0, last().Latitude)

		far, heading := 91.0, math.NaN()
		bad := at(1, "yesterday")
		bad.Heading = &heading
		_, err = checktest.Given(w.routes.Locate)(ctx, w.driver, route.LocateInput{Points: []route.Point{at(0, ""), at(far, ""), {}, bad}})
		var e *cloud.Error
		require.True(t, errors.As(err, &e))
		require.ElementsMatch(t, []string{"points.1.latitude", "points.2.latitude", "points.2.longitude", "points.3.heading", "points.3.recorded_at"}, keys(e.Fields))
		require.Equal(t, 6.0, last().Latitude, "none of it is kept")
		for _, n := range []int{0, 101} {
			_, err = checktest.Given(w.routes.Locate)(ctx, w.driver, route.LocateInput{Points: make([]route.Point, n)})
			require.True(t, errors.As(err, &e))
			require.Contains(t, e.Fields, "points")
		}
		_, err = w.routes.Locate(ctx, w.staff, route.LocateInput{Points: []route.Point{at(1, "")}})
		require.ErrorContains(t, err, "ACCOUNT_TYPE_NOT_ALLOWED")
		require.NoError(t, w.db.Look(ctx, func(v cloud.View) error {
			_, err := v.DriverPlace(43, w.driver.Account.ID)
			require.ErrorIs(t, err, cloud.ErrNotFound, "of another business")
			return nil
		}))
	})
}

// Of a batch the place is that of the point which the driver's clock calls the
// last, also when that clock is ahead, or was once not set at all.
func TestThePlaceOfABatchIsItsLast(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		now := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
		w.routes = route.New(route.Config{Store: w.db, Orders: w.orders})
		route.SetNow(w.routes, func() time.Time { return now })
		at := func(ago time.Duration) string { return now.Add(-ago).Format(time.RFC3339Nano) }
		for name, recorded := range map[string]func() []string{ // the second is the last
			"the clock is ahead":       func() []string { return []string{at(-time.Hour), at(-2 * time.Hour), at(-90 * time.Minute)} },
			"one has no time":          func() []string { return []string{at(time.Second), "", at(2 * time.Second)} },
			"none has a time":          func() []string { return []string{"", ""} },
			"the same second":          func() []string { return []string{at(time.Second), at(time.Second)} },
			"a clock of the year 1500": func() []string { return []string{"1500-01-01T00:00:00Z", at(time.Second)} },
			"a clock that was not set": func() []string { return []string{"0001-01-01T00:00:00Z", at(time.Second)} },
			"some of it is old":        func() []string { return []string{at(time.Hour), at(0)} },
		} {
			now = now.Add(10 * time.Minute)
			var in route.LocateInput
			for i, s := range recorded() {
				latitude, longitude := float64(i), -79.38
				in.Points = append(in.Points, route.Point{Latitude: &latitude, Longitude: &longitude, RecordedAt: s})
			}
			_, err := w.routes.Locate(t.Context(), w.driver, in)
			require.NoError(t, err, name)
			out, err := w.routes.Driver(t.Context(), w.staff, route.ByDriver{DriverID: w.driver.Account.ID})
			require.NoError(t, err)
			require.Equal(t, 1.0, out.Driver.Place.Latitude, name)
		}
	})
}

func keys(m map[string][]string) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}
