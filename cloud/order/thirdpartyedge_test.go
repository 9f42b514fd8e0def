package order_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/interception"
	"github.com/postern-io/postern/cloud/order/thirdparty"
	"github.com/postern-io/postern/cloud/tracking"
)

func (w *world) shipment(id cloud.OrderID) (s cloud.Shipment) {
	w.t.Helper()
	require.NoError(w.t, w.db.Look(w.t.Context(), func(v cloud.View) (err error) { s, err = v.OrderShipment(42, id); return err }))
	return s
}

func (w *world) report(c cloud.Caller, number string, list ...thirdparty.OutcomeInput) thirdparty.ThirdPartyBody {
	w.t.Helper()
	out, err := thirdparty.New(w.orders).Report(w.t.Context(), c, outcomes(number, list...))
	require.NoError(w.t, err)
	return out.Assignment
}

func (w *world) callOff(number, reason string) thirdparty.ThirdPartyBody {
	w.t.Helper()
	out, err := thirdparty.New(w.orders).Cancel(w.t.Context(), w.staff, thirdparty.CancelThirdPartyInput{ThirdPartyKey: thirdparty.ThirdPartyKey{Number: number}, Reason: reason})
	require.NoError(w.t, err)
	return out.Assignment
}

func (w *world) override(id cloud.OrderID, to cloud.OrderStatus) {
	w.t.Helper()
	_, err := w.orders.Override(w.t.Context(), w.staff, order.OverrideInput{OrderID: id, Status: to, Reason: "by hand"})
	require.NoError(w.t, err)
}

// A time without offset is the business's own, also when that is ahead of UTC.
func TestThirdPartyTimesAreTheBusinesss(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift, _, _, _ := w.companies()
		for _, zone := range []string{"Asia/Shanghai", "America/Toronto"} {
			require.NoError(t, w.db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 42, Code: "acme", Name: "Acme", Timezone: zone}}}}, nil
			}))
			place, err := time.LoadLocation(zone)
			require.NoError(t, err)
			o := w.ref(zone)
			a := w.entrust(o.OrderID)
			w.handOver(a.Number)
			at := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
			x := became(a.Numbers[0], "delivered")
			x.OccurredAt = at.In(place).Format(time.DateTime)
			got := w.report(swift, a.Number, x)
			require.Equal(t, at.In(place).Format(time.RFC3339), *got.Packages[0].OccurredAt, zone)
			x = became(a.Numbers[1], "delivered")
			x.OccurredAt = time.Now().Add(10 * time.Minute).In(place).Format(time.DateTime)
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(thirdparty.New(w.orders).Report)(t.Context(), swift, outcomes(a.Number, x))), "%s: it has not come yet", zone)
		}
	})
}

// A list of any length is refused before it is looked at.
func TestThirdPartyListsHaveAnEnd(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift, _, _, _ := w.companies()
		o := w.ref("LONG")
		many := make([]string, 101)
		for i := range many {
			many[i] = o.Packages[0].Number
		}
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(thirdparty.New(w.orders).Assign)(t.Context(), w.staff, thirdparty.ThirdPartyInput{OrderID: o.OrderID, ProviderID: 17, Packages: many})))
		a := w.entrust(o.OrderID)
		key := thirdparty.ThirdPartyKey{Number: a.Number}
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(thirdparty.New(w.orders).HandOver)(t.Context(), w.staff, thirdparty.HandOverInput{ThirdPartyKey: key, Packages: many})))
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(thirdparty.New(w.orders).SetLeg)(t.Context(), swift, thirdparty.LegInput{ThirdPartyKey: key, ExternalOrder: "1", Packages: many})))
		begun := time.Now()
		huge := make([]thirdparty.OutcomeInput, 100_000)
		for i := range huge {
			huge[i] = became(fmt.Sprintf("SR204518837-%d", i), "delivered")
		}
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(thirdparty.New(w.orders).Report)(t.Context(), swift, outcomes(a.Number, huge...))))
		require.Less(t, time.Since(begun), time.Minute) // squares of them take longer
	})
}

// A company that was done while the order was stopped: the call that lets the order go
// on does not send it back to a company that has it no more.
func TestThirdPartyIsDoneWhileTheOrderIsStopped(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		swift, _, _, _ := w.companies()
		for _, outcome := range []string{"failed", "returned", "some"} {
			for _, withdraw := range []bool{true, false} {
				name := fmt.Sprint(outcome, withdraw)
				o := w.ref(name)
				a := w.entrust(o.OrderID)
				w.handOver(a.Number)
				stop := w.intercept(w.staff, interception.InterceptInput{OrderID: o.OrderID, Outcome: "hold_at_warehouse"})
				list := []thirdparty.OutcomeInput{became(a.Numbers[0], strings.Replace(outcome, "some", "delivered", 1)), became(a.Numbers[1], strings.Replace(outcome, "some", "failed", 1))}
				require.NotNil(t, w.report(swift, a.Number, list...).EndedAt)
				require.Equal(t, cloud.OrderIntercepted, w.find(o.OrderID).StatusID, "it is still stopped")
				var err error
				if withdraw {
					_, err = interception.New(w.orders).Withdraw(ctx, w.staff, interception.StopInput{ID: stop.ID})
				} else {
					_, err = interception.New(w.orders).Fail(ctx, w.staff, interception.FailInput{ID: stop.ID})
				}
				require.NoError(t, err, name)
				want := cloud.OrderDeliveryFailed
				if outcome == "some" {
					want = cloud.OrderPartlyDelivered
				}
				got := w.find(o.OrderID)
				require.Equal(t, want.String(), got.Status, name)
				require.EqualValues(t, "delivery_failed", *got.OTEPStatus, name)
				require.True(t, got.SelfDelivery, name)
				w.codes(o.OrderID)
			}
		}
		// Of one that it was not handed a company may say no all the same.
		o := w.ref("no van")
		a := w.entrust(o.OrderID)
		stop := w.intercept(w.staff, interception.InterceptInput{OrderID: o.OrderID, Outcome: "hold_at_warehouse"})
		_, err := thirdparty.New(w.orders).Reject(ctx, swift, thirdparty.RejectThirdPartyInput{ThirdPartyKey: thirdparty.ThirdPartyKey{Number: a.Number}, Reason: "no van"})
		require.NoError(t, err)
		require.Equal(t, "INTERCEPTED x-intercepted", w.find(o.OrderID).Status+" "+string(*w.find(o.OrderID).OTEPStatus))
		_, err = interception.New(w.orders).Withdraw(ctx, w.staff, interception.StopInput{ID: stop.ID})
		require.NoError(t, err)
		require.Equal(t, cloud.OrderNew, w.find(o.OrderID).StatusID)
		w.entrust(o.OrderID)
		w.codes(o.OrderID)
		// One that is stopped is not handed over either, not even what was left behind.
		o = w.ref("rest")
		a = w.entrust(o.OrderID)
		w.handOver(a.Number, a.Numbers[0])
		w.intercept(w.staff, interception.InterceptInput{OrderID: o.OrderID, Outcome: "hold_at_warehouse"})
		require.Equal(t, "ORDER_STATUS_CONFLICT", failure(thirdparty.New(w.orders).HandOver(ctx, w.staff, thirdparty.HandOverInput{ThirdPartyKey: thirdparty.ThirdPartyKey{Number: a.Number}})))
		require.Equal(t, cloud.OrderPackageCreated, w.find(o.OrderID).Packages[1].Status)
	})
}

// Once a company is done with an order that goes on, it neither adds to its
// timeline nor is named as who brings it.
func TestThirdPartyHasNoPartInWhatComesNext(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift, quick, _, _ := w.companies()
		end := map[string]func(o order.OrderBody, a thirdparty.ThirdPartyBody){
			"failed": func(o order.OrderBody, a thirdparty.ThirdPartyBody) {
				w.report(swift, a.Number, became(a.Numbers[0], "failed"), became(a.Numbers[1], "failed"))
			},
			"partly": func(o order.OrderBody, a thirdparty.ThirdPartyBody) {
				w.report(swift, a.Number, became(a.Numbers[0], "delivered"), became(a.Numbers[1], "failed"))
			},
			"cancelled": func(o order.OrderBody, a thirdparty.ThirdPartyBody) {
				_, err := w.orders.Cancel(t.Context(), w.staff, order.ReasonInput{OrderID: o.OrderID})
				require.NoError(t, err)
			},
		}
		for name, fn := range end {
			o := w.ref(name)
			a := w.entrust(o.OrderID)
			w.handOver(a.Number)
			require.Equal(t, cloud.ProviderID(17), w.shipment(o.OrderID).ProviderID)
			fn(o, a)
			require.Zero(t, w.shipment(o.OrderID).ProviderID, name)
			w.codes(o.OrderID)
			if name != "partly" {
				continue
			}
			shown, err := tracking.New(w.db).Public(t.Context(), cloud.Caller{Language: "en"}, tracking.PublicInput{Number: o.Number})
			require.NoError(t, err)
			require.Equal(t, "Acme", *shown.Carrier.Name)
			// Another company brings the rest.
			w.override(o.OrderID, cloud.OrderDeliveryRescheduled)
			out, err := thirdparty.New(w.orders).Assign(t.Context(), w.staff, thirdparty.ThirdPartyInput{OrderID: o.OrderID, ProviderID: 18})
			require.NoError(t, err)
			require.Equal(t, a.Numbers[1:], out.Assignment.Numbers)
			w.handOver(out.Assignment.Number)
			require.Equal(t, cloud.ProviderID(18), w.shipment(o.OrderID).ProviderID)
			require.Equal(t, cloud.ThirdPartyCompleted, w.report(quick, out.Assignment.Number, became(a.Numbers[1], "delivered")).Status)
			require.Equal(t, cloud.OrderDelivered, w.find(o.OrderID).StatusID)
			require.Equal(t, cloud.ProviderID(18), w.shipment(o.OrderID).ProviderID, "it brought it")
			w.codes(o.OrderID)
		}
	})
}

// The numbers of an order and its packages are those of its company's legs, and
// its own again without it.
func TestThirdPartyNumbersGoWithTheCompany(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		swift, _, _, _ := w.companies()
		in := input(cloud.DeliveryOrder)
		in.Packages[0].ExternalNumber = "OWN-1"
		o := w.create(w.staff, in)
		null := func(s *string) string {
			if s == nil {
				return ""
			}
			return *s
		}
		numbers := func() string {
			x := w.find(o.OrderID)
			return strings.Join([]string{null(x.ExternalNumber), null(x.Packages[0].ExternalNumber), null(x.Packages[1].ExternalNumber)}, " ")
		}
		finds := func(number string, want bool) {
			t.Helper()
			_, err := tracking.New(w.db).Public(ctx, cloud.Caller{Language: "en"}, tracking.PublicInput{Number: number})
			require.Equal(t, want, err == nil, "%s: %v", number, err)
			list, err := w.orders.List(ctx, w.staff, order.ListInput{Keyword: number})
			require.NoError(t, err)
			require.Equal(t, want, len(list.Orders) == 1, number)
		}
		require.Equal(t, " OWN-1 ", numbers())
		a := w.entrust(o.OrderID)
		leg := thirdparty.LegInput{ThirdPartyKey: thirdparty.ThirdPartyKey{Number: a.Number}, ExternalOrder: "SW-1", ExternalNumber: "SWP-111"}
		set := func() {
			t.Helper()
			_, err := thirdparty.New(w.orders).SetLeg(ctx, swift, leg)
			require.NoError(t, err)
		}
		leg.ExternalNumber = strings.Repeat("é", 64)
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(thirdparty.New(w.orders).SetLeg)(ctx, swift, leg)), "nobody could look for it")
		leg.ExternalNumber = " SWP-111 "
		set()
		require.Equal(t, "SWP-111 SWP-111 SWP-111", numbers())
		finds("SWP-111", true)
		finds("OWN-1", false)
		// The leg is for one package only now, and another one has its own.
		leg.LegID, leg.Packages = 1, a.Numbers[:1]
		set()
		require.Equal(t, " SWP-111 ", numbers())
		leg.LegID, leg.Packages, leg.ExternalNumber = 0, a.Numbers[1:], "SWP-222"
		set()
		require.Equal(t, " SWP-111 SWP-222", numbers())
		finds("SWP-222", true)
		got := w.callOff(a.Number, "reassigned")
		require.Equal(t, "SWP-222", *got.Packages[1].ExternalNumber, "the assignment keeps what was")
		require.Equal(t, " OWN-1 ", numbers())
		finds("SWP-111", false)
		finds("SWP-222", false)
		finds("OWN-1", true)
		// What was brought keeps the numbers under which it was.
		a = w.entrust(o.OrderID)
		leg = thirdparty.LegInput{ThirdPartyKey: thirdparty.ThirdPartyKey{Number: a.Number}, ExternalOrder: "SW-1", ExternalNumber: "SWP-333"}
		set()
		w.handOver(a.Number)
		w.report(swift, a.Number, became(a.Numbers[0], "delivered"), became(a.Numbers[1], "delivered"))
		require.Equal(t, "SWP-333 SWP-333 SWP-333", numbers())
		finds("SWP-333", true)
	})
}

// What changes nothing leaves no trace.
func TestThirdPartyRepeatsLeaveNoTrace(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift, _, _, _ := w.companies()
		o := w.ref("AGAIN")
		a := w.entrust(o.OrderID)
		key := thirdparty.ThirdPartyKey{Number: a.Number}
		trace := func() string {
			lines, err := w.db.ListAudits(t.Context(), 42, 0, 200)
			require.NoError(t, err)
			return fmt.Sprint(len(lines), w.stored(o.OrderID).UpdatedAt.UnixMilli(), w.did(o.OrderID), len(w.toldCompany(17)))
		}
		_, err := thirdparty.New(w.orders).Accept(t.Context(), swift, key)
		require.NoError(t, err)
		before := trace()
		time.Sleep(2 * time.Millisecond)
		_, err = thirdparty.New(w.orders).Accept(t.Context(), swift, key)
		require.NoError(t, err)
		require.Equal(t, before, trace())
		w.handOver(a.Number)
		w.report(swift, a.Number, became(a.Numbers[0], "failed"))
		before = trace()
		time.Sleep(2 * time.Millisecond)
		w.report(swift, a.Number, became(a.Numbers[0], "failed"))
		require.Equal(t, before, trace())
		// Another reason is something new.
		refused := thirdparty.OutcomeInput{Number: a.Numbers[0], Outcome: "failed", FailureCode: "recipient_refused"}
		require.Equal(t, "recipient_refused", *w.report(swift, a.Number, refused).Packages[0].FailureCode)
	})
}

// Staff may set by hand what the company's papers say later.
func TestThirdPartyBesideOverrides(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift, _, _, _ := w.companies()
		o := w.ref("13 by hand")
		a := w.entrust(o.OrderID)
		w.override(o.OrderID, cloud.OrderHandedOver)
		require.Equal(t, cloud.ThirdPartyHandedOver, w.handOver(a.Number).Status)
		w.report(swift, a.Number, became(a.Numbers[0], "delivered"), became(a.Numbers[1], "delivered"))
		require.Equal(t, cloud.OrderDelivered, w.find(o.OrderID).StatusID)
		w.codes(o.OrderID)

		o = w.ref("away and back")
		a = w.entrust(o.OrderID)
		w.handOver(a.Number)
		w.override(o.OrderID, cloud.OrderOutForDelivery)
		require.Equal(t, "HELD_BY_THIRD_PARTY", failure(thirdparty.New(w.orders).Assign(t.Context(), w.staff, thirdparty.ThirdPartyInput{OrderID: o.OrderID, ProviderID: 18})))
		w.override(o.OrderID, cloud.OrderHandedOver)
		w.callOff(a.Number, "cancelled")
		require.Contains(t, []cloud.OrderStatus{cloud.OrderNew, cloud.OrderReceived}, w.find(o.OrderID).StatusID)
		w.entrust(o.OrderID)
		w.codes(o.OrderID)

		o = w.ref("13 without a company")
		w.override(o.OrderID, cloud.OrderHandedOver)
		require.Equal(t, "HELD_BY_THIRD_PARTY", failure(thirdparty.New(w.orders).Assign(t.Context(), w.staff, thirdparty.ThirdPartyInput{OrderID: o.OrderID, ProviderID: 18})))
		w.override(o.OrderID, cloud.OrderNew)
		w.entrust(o.OrderID)
	})
}

// One package went into a locker and was collected, the company brought the
// other to the door: everything is delivered.
func TestThirdPartyFillsALockerInPart(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift, _, _, _ := w.companies()
		for _, both := range []bool{false, true} {
			o := w.ref(fmt.Sprint("part", both))
			a := w.entrust(o.OrderID)
			w.handOver(a.Number)
			locker := func(kind cloud.LockerNewsKind) {
				t.Helper()
				require.NoError(t, w.db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
					return w.orders.FromLocker(v, []cloud.LockerNews{{BusinessID: 42, OrderID: o.OrderID, Kind: kind, Packages: []cloud.PackageID{o.Packages[0].PackageID}, Moment: cloud.Moment{At: time.Now()}}})
				}))
			}
			locker(cloud.LockerDeposited)
			locker(cloud.LockerCollected)
			require.Equal(t, cloud.OrderPartlyDelivered, w.find(o.OrderID).StatusID)
			list := []thirdparty.OutcomeInput{became(a.Numbers[1], "delivered")}
			if both {
				list = append(list, became(a.Numbers[0], "delivered"))
			}
			require.Equal(t, cloud.ThirdPartyCompleted, w.report(swift, a.Number, list...).Status)
			require.Equal(t, "DELIVERED", w.find(o.OrderID).Status)
			w.codes(o.OrderID)
		}
	})
}

// Flats have numbers, and not every address has every part.
func TestThirdPartyPlaces(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift, _, _, _ := w.companies()
		in := input(cloud.DeliveryOrder)
		in.Recipient.Line2 = "Unit 5"
		a := w.entrust(w.create(w.staff, in).OrderID)
		require.Equal(t, "1 Secret Lane, Unit 5, Toronto ON", a.Dropoff.Address)
		require.Empty(t, a.Pickup.Address)
		// A pickup order is fetched at its sender's and delivered to the business.
		o := w.create(w.staff, input(cloud.PickupOrder))
		a = w.entrust(o.OrderID)
		require.Equal(t, []string{"Bob Sender", "Acme", ""}, []string{a.Pickup.Name, a.Dropoff.Name, a.Dropoff.Address})
		w.handOver(a.Number)
		w.report(swift, a.Number, became(a.Numbers[0], "delivered"), became(a.Numbers[1], "delivered"))
		require.Equal(t, cloud.OrderDelivered, w.find(o.OrderID).StatusID)
		w.codes(o.OrderID)
		// The order of one that ended may be gone.
		gone := w.ref("GONE")
		a = w.entrust(gone.OrderID)
		w.callOff(a.Number, "cancelled")
		_, err := w.orders.Delete(t.Context(), w.admin, order.OrderRef{OrderID: gone.OrderID})
		require.NoError(t, err)
		left, err := thirdparty.New(w.orders).Find(t.Context(), swift, thirdparty.ThirdPartyKey{Number: a.Number})
		require.NoError(t, err)
		require.Equal(t, a.Numbers, left.Assignment.Numbers)
		require.Empty(t, left.Assignment.Dropoff.Address)
	})
}

// Of acts that exclude each other one is done, whichever comes first, and what was
// done was sent.
func TestThirdPartyAtTheSameMoment(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		swift, _, _, _ := w.companies()
		// race runs acts all at once and counts those that were done.
		race := func(acts ...func() error) (done int) {
			t.Helper()
			var wg sync.WaitGroup
			errs := make([]error, len(acts))
			start := make(chan struct{})
			for i, act := range acts {
				wg.Go(func() { <-start; errs[i] = act() })
			}
			close(start)
			wg.Wait()
			for _, err := range errs {
				if err == nil {
					done++
					continue
				}
				require.Contains(t, []string{"HELD_BY_THIRD_PARTY", "ASSIGNMENT_STATE_CONFLICT", "ORDER_STATUS_CONFLICT", "ORDER_NOT_CANCELLABLE", "ASSIGNMENT_NOT_FOUND"}, code(err))
			}
			return done
		}
		times := func(n int, fn func() error) (out []func() error) {
			for range n {
				out = append(out, fn)
			}
			return out
		}
		events := func(number string) (names []string) {
			for _, x := range w.toldCompany(17) {
				if x.Event.ReferenceID == number {
					names = append(names, strings.TrimPrefix(x.Event.Event, "third_party_delivery."))
				}
			}
			return names
		}
		for round := range 6 {
			o := w.ref(fmt.Sprint("race", round))
			assign := func() error {
				_, err := thirdparty.New(w.orders).Assign(ctx, w.staff, thirdparty.ThirdPartyInput{OrderID: o.OrderID, ProviderID: 17})
				return err
			}
			require.Equal(t, 1, race(times(6, assign)...))
			number := w.find(o.OrderID).ThirdParty.Number
			require.Equal(t, []string{"created"}, events(number))
			key := thirdparty.ThirdPartyKey{Number: number}
			handOver := func() error {
				_, err := thirdparty.New(w.orders).HandOver(ctx, w.staff, thirdparty.HandOverInput{ThirdPartyKey: key})
				return err
			}
			takeBack := func() error {
				_, err := thirdparty.New(w.orders).Cancel(ctx, w.staff, thirdparty.CancelThirdPartyInput{ThirdPartyKey: key, Reason: "reassigned"})
				return err
			}
			reject := func() error {
				_, err := thirdparty.New(w.orders).Reject(ctx, swift, thirdparty.RejectThirdPartyInput{ThirdPartyKey: key})
				return err
			}
			if round%2 == 0 {
				race(append(times(3, handOver), append(times(3, takeBack), times(2, reject)...)...)...)
				got := w.find(o.OrderID)
				require.Equal(t, cloud.OrderNew, got.StatusID)
				require.Equal(t, cloud.ThirdPartyCancelled, got.ThirdParty.Status)
				told := events(number)
				require.Equal(t, "cancelled", told[len(told)-1])
				require.LessOrEqual(t, len(told), 3, "created, perhaps handed over, cancelled: %v", told)
				w.codes(o.OrderID)
				continue
			}
			require.Equal(t, 1, race(times(5, handOver)...))
			require.Equal(t, []string{"created", "packages_handed_over"}, events(number))
			report := func() error {
				_, err := thirdparty.New(w.orders).Report(ctx, swift, outcomes(number, became(o.Packages[0].Number, "delivered"), became(o.Packages[1].Number, "failed")))
				return err
			}
			cancel := func() error {
				_, err := w.orders.Cancel(ctx, w.staff, order.ReasonInput{OrderID: o.OrderID})
				return err
			}
			race(append(times(4, report), times(3, cancel)...)...)
			got := w.find(o.OrderID)
			require.Equal(t, cloud.OrderCancelled, got.StatusID, "a part that was delivered does not keep it from being cancelled")
			last := map[cloud.ThirdPartyStatus]string{cloud.ThirdPartyPartly: "partial_delivery", cloud.ThirdPartyCancelled: "cancelled"}[got.ThirdParty.Status]
			require.Equal(t, []string{"created", "packages_handed_over", last}, events(number))
			w.codes(o.OrderID)
		}
	})
}

// An order in place of another one does not bring the company's numbers along.
func TestThirdPartyNumbersStayBehind(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift, _, _, _ := w.companies()
		in := input(cloud.DeliveryOrder)
		in.Packages[0].ExternalNumber = "OWN-1"
		o := w.create(w.staff, in)
		a := w.entrust(o.OrderID)
		_, err := thirdparty.New(w.orders).SetLeg(t.Context(), swift, thirdparty.LegInput{ThirdPartyKey: thirdparty.ThirdPartyKey{Number: a.Number}, ExternalOrder: "SW-1", ExternalNumber: "SWP-111"})
		require.NoError(t, err)
		out, err := w.orders.Reroute(t.Context(), w.staff, order.RerouteInput{OrderID: o.OrderID, NewAddress: address("Elsewhere"), Reason: "moved"})
		require.NoError(t, err)
		require.Equal(t, "OWN-1", *out.NewOrder.Packages[0].ExternalNumber)
		require.Nil(t, out.NewOrder.Packages[1].ExternalNumber)
		_, err = tracking.New(w.db).Public(t.Context(), cloud.Caller{Language: "en"}, tracking.PublicInput{Number: "SWP-111"})
		require.Equal(t, "TRACKING_NOT_FOUND", code(err))
		left, err := thirdparty.New(w.orders).Find(t.Context(), swift, thirdparty.ThirdPartyKey{Number: a.Number})
		require.NoError(t, err)
		require.Equal(t, []string{"cancelled", "moved"}, []string{*left.Assignment.Reason, *left.Assignment.EndNote})
		told := w.toldCompany(17)
		require.Equal(t, "third_party_delivery.cancelled", told[len(told)-1].Event.Event)
		require.Len(t, told, 2, "told once")
		w.codes(o.OrderID)
		w.codes(out.NewOrder.OrderID)
	})
}

// A company that reported the end itself has reported it once, and one that lost
// its service finishes what it has.
func TestThirdPartyTellsTheEndTwice(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		swift, _, _, _ := w.companies()
		o := w.ref("TWICE")
		a := w.entrust(o.OrderID)
		w.handOver(a.Number)
		at := time.Now().UTC()
		raw := fmt.Sprintf(`{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":%q},"events":[{"status_code":"out_for_delivery","occurred_at":%q,"source":{"type":"third_party"}},
{"status_code":"delivered","occurred_at":%q,"source":{"type":"third_party"}}]}`, o.Number, at.Format(time.RFC3339Nano), at.Add(time.Millisecond).Format(time.RFC3339Nano))
		_, err := tracking.New(w.db).Ingest(ctx, swift, tracking.IngestInput{Body: []byte(raw)})
		require.NoError(t, err)
		before := w.codes(o.OrderID)
		require.True(t, strings.HasSuffix(before, " out_for_delivery delivered"), before)

		swift.Provider.Services, swift.Provider.Name = []string{"otep"}, "Swift & Sons"
		require.NoError(t, w.db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{swift.Provider}}}, nil
		}))
		w.report(swift, a.Number, became(a.Numbers[0], "delivered"), became(a.Numbers[1], "delivered"))
		require.Equal(t, before, w.codes(o.OrderID))
		got := w.find(o.OrderID)
		require.Equal(t, []string{"DELIVERED", "Swift & Sons"}, []string{got.Status, got.ThirdParty.ProviderName})
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(thirdparty.New(w.orders).Assign)(ctx, w.staff, thirdparty.ThirdPartyInput{OrderID: w.ref("NEXT").OrderID, ProviderID: 17})))
	})
}

// Another source of an order's timeline stays one when a company gives the order
// back that never had it.
func TestThirdPartyLeavesOtherSources(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.companies()
		o := w.ref("SOURCE")
		s := w.shipment(o.OrderID)
		s.ProviderID = 19
		require.NoError(t, w.db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{s}}}, nil
		}))
		w.callOff(w.entrust(o.OrderID).Number, "cancelled")
		require.Equal(t, cloud.ProviderID(19), w.shipment(o.OrderID).ProviderID)
	})
}

// Whatever else happens to orders meanwhile: stops, lockers, cancellations, other
// addresses. An assignment is open as long as its order says so, and no order waits
// at a company that is done.
func TestThirdPartyModelOfAllElse(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		swift, _, _, _ := w.companies()
		seed := uint64(time.Now().UnixNano())
		r := rand.New(rand.NewPCG(seed, 1))
		t.Log("seed", seed)
		fresh := func() order.OrderBody { return w.create(w.staff, input([]cloud.OrderType{"D", "P", "P2P"}[r.IntN(3)])) }
		orders, done, numbers := []order.OrderBody{fresh(), fresh(), fresh()}, map[string]int{}, map[string]bool{}
		for range 500 {
			at := r.IntN(len(orders))
			o := w.find(orders[at].OrderID)
			key := thirdparty.ThirdPartyKey{}
			if o.ThirdParty != nil {
				key.Number = o.ThirdParty.Number
			}
			stop := interception.StopInput{}
			if o.Interception != nil {
				stop.ID = o.Interception.ID
			}
			news := func(kind cloud.LockerNewsKind) error {
				n := cloud.LockerNews{BusinessID: 42, OrderID: o.OrderID, Kind: kind, Packages: []cloud.PackageID{o.Packages[r.IntN(2)].PackageID}, Moment: cloud.Moment{At: time.Now()}}
				return w.db.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) { return w.orders.FromLocker(v, []cloud.LockerNews{n}) })
			}
			acts := []struct {
				name string
				do   func() error
			}{
				{"assign", func() error {
					_, err := thirdparty.New(w.orders).Assign(ctx, w.staff, thirdparty.ThirdPartyInput{OrderID: o.OrderID, ProviderID: 17})
					return err
				}},
				{"hand over", func() error {
					in := thirdparty.HandOverInput{ThirdPartyKey: key}
					if r.IntN(2) == 0 {
						in.Packages = []string{o.Packages[r.IntN(2)].Number}
					}
					_, err := thirdparty.New(w.orders).HandOver(ctx, w.staff, in)
					return err
				}},
				{"report", func() error {
					_, err := thirdparty.New(w.orders).Report(ctx, swift, outcomes(key.Number, became(o.Packages[r.IntN(2)].Number, []string{"delivered", "failed", "returned"}[r.IntN(3)])))
					return err
				}},
				{"take back", func() error {
					_, err := thirdparty.New(w.orders).Cancel(ctx, w.staff, thirdparty.CancelThirdPartyInput{ThirdPartyKey: key, Reason: "reassigned"})
					return err
				}},
				{"leg", func() error {
					_, err := thirdparty.New(w.orders).SetLeg(ctx, swift, thirdparty.LegInput{ThirdPartyKey: key, ExternalOrder: "1", ExternalNumber: fmt.Sprint("SWP-", r.IntN(1e9))})
					return err
				}},
				{"stop", func() error {
					_, err := interception.New(w.orders).Intercept(ctx, w.staff, interception.InterceptInput{OrderID: o.OrderID, Outcome: []string{"return_to_sender", "redeliver", "hold_at_warehouse", "dispose"}[r.IntN(4)]})
					return err
				}},
				{"let go", func() error { _, err := interception.New(w.orders).Withdraw(ctx, w.staff, stop); return err }},
				{"miss", func() error {
					_, err := interception.New(w.orders).Fail(ctx, w.staff, interception.FailInput{ID: stop.ID, Delivered: r.IntN(3) == 0})
					return err
				}},
				{"execute", func() error { _, err := interception.New(w.orders).Execute(ctx, w.staff, stop); return err }},
				{"deposit", func() error { return news(cloud.LockerDeposited) }},
				{"collect", func() error { return news(cloud.LockerCollected) }},
				{"remove", func() error { return news(cloud.LockerRemoved) }},
				{"hold", func() error {
					_, err := w.orders.Hold(ctx, w.staff, order.ReasonInput{OrderID: o.OrderID})
					return err
				}},
				{"release", func() error {
					_, err := w.orders.Release(ctx, w.staff, order.ReasonInput{OrderID: o.OrderID})
					return err
				}},
				{"cancel", func() error {
					if r.IntN(3) > 0 {
						return cloud.E(cloud.Conflict, "ORDER_STATUS_CONFLICT")
					}
					_, err := w.orders.Cancel(ctx, w.staff, order.ReasonInput{OrderID: o.OrderID})
					return err
				}},
			}
			act := acts[[]int{0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 4, 4, 4, 5, 5, 6, 6, 6, 7, 8, 9, 10, 11, 12, 13, 13, 14}[r.IntN(40)]]
			if err := act.do(); err != nil {
				require.Contains(t, []string{"HELD_BY_THIRD_PARTY", "ASSIGNMENT_NOT_FOUND", "ASSIGNMENT_STATE_CONFLICT", "PACKAGE_NOT_IN_ASSIGNMENT", "ORDER_STATUS_CONFLICT", "INTERCEPTION_OPEN",
					"INTERCEPTION_NOT_FOUND", "INTERCEPTION_STATUS_CONFLICT"}, code(err), act.name)
				require.Equal(t, o, w.find(o.OrderID), "what is refused changes nothing: %s", act.name)
			} else {
				done[act.name]++
			}
			now, kept := w.find(o.OrderID), w.stored(o.OrderID)
			w.codes(o.OrderID)
			over := now.StatusID.State().Terminal
			if now.ThirdParty != nil {
				numbers[now.ThirdParty.Number] = true
				a, err := thirdparty.New(w.orders).Find(ctx, swift, thirdparty.ThirdPartyKey{Number: now.ThirdParty.Number})
				require.NoError(t, err)
				require.Equal(t, kept.ThirdPartyOpen, a.Assignment.EndedAt == nil, act.name)
				require.Equal(t, kept.ThirdPartyOpen, a.Assignment.Status == "created" || a.Assignment.Status == "handed_over", act.name)
				if over {
					require.False(t, kept.ThirdPartyOpen, act.name)
				}
				for _, p := range a.Assignment.Packages {
					require.False(t, a.Assignment.EndedAt != nil && (p.Outcome == "pending" || p.Outcome == "handed_over"), "%s: %s", act.name, p.Outcome)
				}
				delivered := true
				for _, p := range now.Packages {
					delivered = delivered && p.Status == cloud.OrderPackageDelivered
				}
				require.False(t, delivered && now.StatusID == cloud.OrderPartlyDelivered && a.Assignment.EndedAt != nil, "%s: all is delivered", act.name)
			}
			if now.StatusID == cloud.OrderHandedOver {
				require.True(t, kept.ThirdPartyOpen, "%s: it waits at a company that is done", act.name)
			}
			if !kept.ThirdPartyOpen && !over {
				require.True(t, now.SelfDelivery, act.name)
				require.Zero(t, w.shipment(o.OrderID).ProviderID, act.name)
			}
			stuck := !kept.ThirdPartyOpen && !slices.Contains([]cloud.OrderStatus{1, 3, 4, 30, 44, 48}, now.StatusID)
			if over || stuck && r.IntN(2) == 0 {
				orders[at] = fresh()
			}
		}
		for _, name := range []string{"assign", "hand over", "report", "leg", "stop", "deposit"} {
			require.Positive(t, done[name], "%s: %v", name, done)
		}
		told := map[string]int{}
		for _, x := range w.toldCompany(17) {
			told[x.Event.Event+" "+x.Event.ReferenceID]++
		}
		for number := range numbers {
			a, err := thirdparty.New(w.orders).Find(ctx, swift, thirdparty.ThirdPartyKey{Number: number})
			require.NoError(t, err)
			require.Equal(t, 1, told["third_party_delivery.created "+number])
			require.Equal(t, a.Assignment.Status == "cancelled", told["third_party_delivery.cancelled "+number] == 1, number)
			require.Equal(t, a.Assignment.Status == "partially_delivered", told["third_party_delivery.partial_delivery "+number] == 1, number)
		}
	})
}
