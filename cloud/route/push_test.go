package route_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/interception"
	"github.com/postern-io/postern/cloud/route"
)

// pushed are a driver's pushes since the last look: type and what it is about.
func (w *world) pushed(seen map[string]bool, driver cloud.Caller) (out []string) {
	w.t.Helper()
	list, err := w.db.ListPushes(w.t.Context(), driver.Account.BusinessID, driver.Account.ID, time.Time{}.Add(time.Hour), 1000)
	require.NoError(w.t, err)
	for _, p := range list {
		if seen[p.ID] {
			continue
		}
		seen[p.ID] = true
		require.NotEmpty(w.t, p.Title)
		require.LessOrEqual(w.t, len([]rune(p.Body)), 120)
		require.NotContains(w.t, p.Title+p.Body, "Secret Lane")
		require.NotContains(w.t, p.Title+p.Body, "Jane")
		about := int64(p.Data.OrderID)
		if strings.HasPrefix(p.Type, "route") {
			about = p.Data.RouteID
		}
		out = append(out, fmt.Sprint(p.Type, " ", about))
	}
	return out
}

func TestDriversArePushedWhatOthersDo(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx, seen := t.Context(), map[string]bool{}
		german := w.driver.Account
		german.Locale = "de"
		w.write(&cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{german}}})
		got := func(d cloud.Caller, want ...string) {
			t.Helper()
			require.ElementsMatch(t, want, w.pushed(seen, d))
		}
		words := func(kind string, id any) string { return fmt.Sprint(kind, " ", id) }
		give := func(id cloud.OrderID, d *cloud.AccountID) {
			t.Helper()
			_, err := w.routes.Assign(ctx, w.staff, route.AssignInput{OrderID: id, DriverID: d})
			require.NoError(t, err)
		}
		a, b := w.create(cloud.DeliveryOrder), w.create(cloud.DeliveryOrder)
		give(a, &w.driver.Account.ID)
		give(a, &w.driver.Account.ID)
		list, err := w.db.ListPushes(ctx, 42, w.driver.Account.ID, time.Unix(0, 1), 10)
		require.NoError(t, err)
		require.Equal(t, "Neuer Auftrag", list[0].Title, "in the driver's language")
		require.Equal(t, w.order(a).Number+" · Toronto", list[0].Body)
		require.Equal(t, w.order(a).Number, list[0].Data.TrackingNumber)
		got(w.driver, words("order_assigned", a))
		note, date := "for staff", time.Now().AddDate(0, 0, 3).Format(time.DateOnly)
		_, err = w.orders.Update(ctx, w.staff, order.UpdateInput{OrderID: a, Note: &note})
		require.NoError(t, err)
		got(w.driver)
		_, err = w.orders.Update(ctx, w.staff, order.UpdateInput{OrderID: a, ScheduledDate: &date})
		require.NoError(t, err)
		got(w.driver, words("order_updated", a))
		give(a, &w.second.Account.ID)
		got(w.driver, words("order_unassigned", a))
		got(w.second, words("order_assigned", a))
		give(a, nil)
		got(w.second, words("order_unassigned", a))
		give(b, &w.driver.Account.ID)
		got(w.driver, words("order_assigned", b))
		_, err = w.routes.Decline(ctx, w.driver, route.DeclineInput{OrderID: b})
		require.NoError(t, err)
		got(w.driver)

		// What a driver does itself, and a route that no driver got yet.
		c, d, e, f := w.create(cloud.DeliveryOrder), w.create(cloud.DeliveryOrder), w.create(cloud.DeliveryOrder), w.create(cloud.DeliveryOrder)
		x := w.open(w.staff, w.driver, c, d)
		got(w.driver)
		_, err = w.routes.Dispatch(ctx, w.staff, route.ByRoute{RouteID: x})
		require.NoError(t, err)
		got(w.driver, words("route_assigned", x))
		w.add(w.staff, x, e, f)
		got(w.driver, words("route_updated", x))
		out, err := w.routes.Remove(ctx, w.staff, route.OrdersInput{RouteID: x, OrderIDs: []cloud.OrderID{e, f, 999999}})
		require.NoError(t, err)
		require.Equal(t, 2, out.Removed)
		got(w.driver, words("route_updated", x))
		_, err = w.routes.Edit(ctx, w.staff, route.EditInput{RouteID: x, RouteInput: route.RouteInput{DriverID: &w.second.Account.ID}})
		require.NoError(t, err)
		got(w.driver, words("route_cancelled", x))
		got(w.second, words("route_assigned", x))
		_, err = w.routes.Accept(ctx, w.second, route.ByOrder{OrderID: c})
		require.NoError(t, err)
		_, err = w.routes.StartDelivery(ctx, w.second, route.ByOrder{OrderID: c})
		require.NoError(t, err)
		got(w.second)
		_, err = interception.New(w.orders).Intercept(ctx, w.staff, interception.InterceptInput{OrderID: c, Outcome: "return_to_sender"})
		require.NoError(t, err)
		got(w.second, words("order_intercepted", c))
		_, err = w.orders.Cancel(ctx, w.staff, order.ReasonInput{OrderID: d, Reason: "x"})
		require.NoError(t, err)
		got(w.second, words("order_cancelled", d))

		// An order that a driver had by itself goes on the route of another, and one
		// goes from hand to hand: its former driver gets nothing of the other's route.
		h := w.create(cloud.DeliveryOrder)
		give(h, &w.second.Account.ID)
		got(w.second, words("order_assigned", h))
		z := w.open(w.staff, w.driver, h)
		got(w.second, words("order_unassigned", h))
		got(w.driver)
		all, err := w.db.ListPushes(ctx, 42, w.second.Account.ID, time.Unix(0, 1), 1000)
		require.NoError(t, err)
		require.Zero(t, all[len(all)-1].Data.RouteID)
		_, err = w.routes.Dispatch(ctx, w.staff, route.ByRoute{RouteID: z})
		require.NoError(t, err)
		got(w.driver, words("route_assigned", z))

		g := w.create(cloud.DeliveryOrder)
		y := w.open(w.staff, w.driver, g)
		_, err = w.routes.Dispatch(ctx, w.staff, route.ByRoute{RouteID: y})
		require.NoError(t, err)
		_, err = w.routes.Cancel(ctx, w.staff, route.ByRoute{RouteID: y})
		require.NoError(t, err)
		got(w.driver, words("route_assigned", y), words("route_cancelled", y))
		got(w.theirs)
	})
}
