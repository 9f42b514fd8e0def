package order_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/interception"
	"github.com/postern-io/postern/protocol/otep"
)

// Whatever carriers, staff and drivers do to an order: no request fails for it, a request once more changes
// nothing, what is kept of the shipment is what a read says, and no derived event has the id of another one.
func TestTrackedOrdersAgainstChance(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		codes := []string{"information_submitted", "booking_confirmed", "awaiting_pickup", "out_for_pickup", "picked_up", "received", "arrival_scan", "in_transit", "package_outbound", "out_for_delivery", "delivered", "delivery_failed",
			"delivery_rescheduled", "rejected_by_recipient", "return_to_sender", "cancelled", "x-available_for_pickup", "removed_from_route", "route_cancelled", "pickup_failed"}
		swift, rival := w.carrier(31, "swift"), w.carrier(32, "rival")
		for seed := range 12 {
			r := rand.New(rand.NewPCG(uint64(seed), 7))
			in := input(cloud.DeliveryOrder)
			in.Ref = fmt.Sprint("AM-", seed)
			in.Packages = nil
			for range 1 + r.IntN(4) {
				in.Packages = append(in.Packages, order.PackageInput{Weight: 1})
			}
			o := w.create(w.staff, in)
			numbers := []string{o.Number}
			for _, p := range o.Packages {
				numbers = append(numbers, p.Number)
			}
			base := time.Now()
			var ids []string
			var trail []string
			for step := range 25 {
				c := swift
				if r.IntN(4) == 0 {
					c = rival
				}
				n := numbers[r.IntN(len(numbers))]
				switch k := r.IntN(14); {
				case k < 9:
					var list []ev
					known := slices.Clone(ids) // of earlier requests
					for range 1 + r.IntN(3) {
						id := fmt.Sprint("i", len(ids))
						if len(ids) > 0 && r.IntN(6) == 0 {
							id = ids[r.IntN(len(ids))]
						}
						x := e(id, codes[r.IntN(len(codes))], base.Add(time.Duration(r.IntN(240)-20)*time.Second).Truncate(time.Second))
						if len(known) > 0 && r.IntN(5) == 0 {
							x["corrects"] = known[r.IntN(len(known))]
						}
						dup := false
						for _, y := range list {
							dup = dup || y["event_id"] == id
						}
						if dup {
							continue
						}
						ids = append(ids, id)
						list = append(list, x)
					}
					var gone []string
					if len(ids) > 0 && r.IntN(4) == 0 {
						gone = append(gone, ids[r.IntN(len(ids))])
					}
					body := timelineOf(about(n), gone, list...)
					trail = append(trail, c.Provider.Code+" "+string(body))
					_, err := w.send(c, body)
					var refused *cloud.Error
					if err != nil {
						require.True(t, errors.As(err, &refused), "seed %d: %v\n%v", seed, err, trail)
						require.Contains(t, []string{"OTEP_NOT_CONFORMANT", "OTEP_EVENT_CONFLICT"}, refused.Code, "seed %d %v", seed, trail)
					}
					s1 := w.find(o.OrderID).StatusID
					c1, r1, _ := w.shown(o.Number)
					out, err := w.send(c, body)
					if err == nil {
						require.Zero(t, out.Accepted+out.Withdrawn, "seed %d: repeated: %+v\n%v", seed, out.Timelines[0].Events, trail)
					}
					require.Equal(t, s1, w.find(o.OrderID).StatusID, "seed %d: repeated\n%v", seed, trail)
					c2, r2, _ := w.shown(o.Number)
					require.Equal(t, c1+r1, c2+r2, "seed %d: repeated\n%v", seed, trail)
				case k == 9:
					to := []cloud.OrderStatus{1, 4, 30, 44, 40, 32, 13, 43, 23}[r.IntN(9)]
					_, err := w.orders.Override(t.Context(), w.staff, order.OverrideInput{OrderID: o.OrderID, Status: to, Reason: "x"})
					trail = append(trail, fmt.Sprint("override ", to, " ", err))
				case k == 10:
					_, err := interception.New(w.orders).Intercept(t.Context(), w.staff, interception.InterceptInput{OrderID: o.OrderID, Outcome: "hold_at_warehouse"})
					trail = append(trail, fmt.Sprint("intercept ", err))
				case k == 11:
					err := w.orders.Move(t.Context(), cloud.Caller{}, order.MoveInput{BusinessID: 42, OrderID: o.OrderID, To: cloud.OrderRoutePlanned, Trigger: order.PutOnRoute, Operation: 1005})
					trail = append(trail, fmt.Sprint("route ", err))
				case k == 12:
					err := w.orders.Move(t.Context(), cloud.Caller{}, order.MoveInput{BusinessID: 42, OrderID: o.OrderID, To: cloud.OrderOutForDelivery, Trigger: order.StartDelivery, Operation: 1005})
					trail = append(trail, fmt.Sprint("start ", err))
				case k == 13:
					for _, x := range w.openReviews(w.staff) {
						a := x.Actions[r.IntN(len(x.Actions))].Action
						if a == "accept_at" {
							a = "reject"
						}
						got := w.decide(w.staff, x.ID, a, "")
						trail = append(trail, fmt.Sprint("decide ", x.Kind, " ", a, " ", got))
						require.NotEqual(t, "REVIEW_NOT_FOUND", got, "seed %d %v", seed, trail)
					}
				}
				require.NoError(t, w.db.Look(t.Context(), func(v cloud.View) error {
					s, err := v.OrderShipment(42, o.OrderID)
					require.NoError(t, err)
					_, _, out := w.shown(o.Number)
					tl := out.Data.(otep.Timeline)
					cur := otep.Code("")
					if tl.Current != nil {
						cur = *tl.Current
					}
					require.Equal(t, s.Current, cur, "seed %d step %d\n%v", seed, step, trail)
					seen := map[string]bool{}
					for _, x := range tl.Events {
						if seen[x.EventID] && x.Source.Synthesized {
							raw, _ := json.Marshal(tl.Events)
							t.Fatalf("seed %d: id %s twice in %s\n%v", seed, x.EventID, raw, trail)
						}
						seen[x.EventID] = true
					}
					return nil
				}))
			}
		}
	})
}
