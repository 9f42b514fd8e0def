package order_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order/interception"
)

// What people do in the console is distinguished from calls of the interface: in the
// order's history an interception has 3043 to 3045 there, and 6012 to 6014 here. No
// header of a call makes it one of the console.
func TestInterceptionsFromTheConsoleAreDistinct(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		console := w.staff
		console.Surface = "web"
		w.set(0, map[string]any{"webhook_sign_secret": hookSecret, "order_intercept_webhook_url": "https://a.example.com/"})
		for _, x := range []struct {
			by                         cloud.Caller
			asked, withdrawn, executed string
		}{{console, "3043", "3045", "3044"}, {w.staff, "6012", "6014", "6013"}} {
			id := w.onTheRoad()
			stops := interception.New(w.orders)
			i := w.intercept(x.by, interception.InterceptInput{OrderID: id, Outcome: "return_to_sender"})
			_, err := stops.Withdraw(t.Context(), x.by, interception.StopInput{ID: i.ID})
			require.NoError(t, err)
			i = w.intercept(x.by, interception.InterceptInput{OrderID: id, Outcome: "return_to_sender"})
			_, err = stops.Execute(t.Context(), x.by, interception.StopInput{ID: i.ID})
			require.NoError(t, err)
			var types []string
			for _, line := range w.did(id) {
				if kind, _, _ := strings.Cut(line, ":"); slices.Contains([]string{"3043", "3044", "3045", "6012", "6013", "6014"}, kind) {
					types = append(types, kind)
				}
			}
			require.Equal(t, []string{x.asked, x.withdrawn, x.asked, x.executed}, types)
			var sent []string
			for _, e := range w.log(cloud.AccountLog{ReferenceType: "order", ReferenceID: fmt.Sprint(id)}) {
				if d := w.body(e).Data; strings.HasPrefix(e.Event.Event, "order_intercept.") {
					sent = append(sent, fmt.Sprint(d["operation_type"]))
				}
			}
			require.Equal(t, types, slices.Compact(sent), "webhooks say the same, of a request and of its coming into force")
		}
	})
}
