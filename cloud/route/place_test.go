package route_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
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
		_, err = w.routes.Locate(ctx, w.driver, route.LocateInput{Points: []route.Point{at(0, ""), at(far, ""), {}, bad}})
		var e *cloud.Error
		require.True(t, errors.As(err, &e))
		require.ElementsMatch(t, []string{"points.1.latitude", "points.2.latitude", "points.3.heading", "points.3.recorded_at"}, keys(e.Fields))
		require.Equal(t, 6.0, last().Latitude, "none of it is kept")
		for _, n := range []int{0, 101} {
			_, err = w.routes.Locate(ctx, w.driver, route.LocateInput{Points: make([]route.Point, n)})
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

func keys(m map[string][]string) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}
