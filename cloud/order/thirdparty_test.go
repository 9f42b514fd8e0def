package order_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/contractor"
	"github.com/postern-io/postern/cloud/order/interception"
	"github.com/postern-io/postern/cloud/order/thirdparty"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/tracking"
)

// companies are a delivery company that receives every event, another one of
// the same business, one that only fills lockers, and one of another business.
func (w *world) companies() (swift, quick, box, far cloud.Caller) {
	ch := &cloud.Changes{}
	add := func(id cloud.ProviderID, b cloud.BusinessID, code string, services ...string) cloud.Caller {
		p := cloud.Provider{ID: id, BusinessID: b, Code: code, Name: strings.ToUpper(code), Services: services}
		ch.Providers = append(ch.Providers, p)
		return cloud.Caller{Provider: p, Account: cloud.Account{ID: cloud.AccountID(100 + id), BusinessID: b, Type: cloud.ProviderType, Name: code, Enabled: true}, Language: "en"}
	}
	swift, quick = add(17, 42, "swift", "third_party"), add(18, 42, "quick", "locker", "third_party")
	box, far = add(19, 42, "box", "locker"), add(20, 43, "far", "third_party")
	ch.Endpoints = []cloud.Endpoint{{ID: 70, BusinessID: 42, ProviderID: 17, Kind: "third_party_delivery", URL: "https://swift.example/h", Events: []string{"*"}, Secret: []byte(hookSecret),
		SandboxEnabled: true, Enabled: true, Status: "healthy"}}
	require.NoError(w.t, w.db.Decide(w.t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return ch, nil }))
	return swift, quick, box, far
}

// toldCompany is what a company received, oldest first.
func (w *world) toldCompany(p cloud.ProviderID) (out []cloud.OutboxWork) {
	w.t.Helper()
	_, rows, err := w.db.ListOutbox(w.t.Context(), cloud.OutboxFilter{BusinessID: 42, ProviderID: p, Page: cloud.Page{Limit: 1000}})
	require.NoError(w.t, err)
	for _, r := range slices.Backward(rows) {
		x, err := w.db.FindOutbox(w.t.Context(), r.Delivery.ID)
		require.NoError(w.t, err)
		require.Equal(w.t, cloud.ChannelThirdParty, x.Event.Channel)
		require.Equal(w.t, 8, x.Delivery.MaxAttempts)
		out = append(out, x)
	}
	return out
}

func (w *world) entrust(id cloud.OrderID, packages ...string) thirdparty.ThirdPartyBody {
	w.t.Helper()
	out, err := thirdparty.New(w.orders).Assign(w.t.Context(), w.staff, thirdparty.ThirdPartyInput{OrderID: id, ProviderID: 17, Packages: packages, Service: "same_day", Note: "ring twice"})
	require.NoError(w.t, err)
	require.True(w.t, out.Result)
	return out.Assignment
}

func (w *world) handOver(number string, packages ...string) thirdparty.ThirdPartyBody {
	w.t.Helper()
	out, err := thirdparty.New(w.orders).HandOver(w.t.Context(), w.staff, thirdparty.HandOverInput{ThirdPartyKey: thirdparty.ThirdPartyKey{Number: number}, Packages: packages})
	require.NoError(w.t, err)
	return out.Assignment
}

func outcomes(number string, list ...thirdparty.OutcomeInput) thirdparty.OutcomesInput {
	return thirdparty.OutcomesInput{ThirdPartyKey: thirdparty.ThirdPartyKey{Number: number}, Packages: list}
}

func became(number, outcome string) thirdparty.OutcomeInput {
	o := thirdparty.OutcomeInput{Number: number, Outcome: outcome}
	if outcome == "failed" {
		o.FailureCode = "damaged"
	}
	return o
}

// A company's events are what the description says they are.
func TestThirdPartyEvents(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		order.SetNumber(w.orders, storetest.OldNumber)
		swift, _, _, _ := w.companies()
		in := input(cloud.DeliveryOrder)
		in.Ref, in.ExternalID, in.WindowStart, in.WindowEnd, in.Note = "PO-7781", "shop-99812", "13:00", "17:00", "for staff"
		in.Sender = nil
		o := w.create(w.staff, in)
		back := w.entrust(o.OrderID)
		_, err := thirdparty.New(w.orders).Cancel(t.Context(), w.staff, thirdparty.CancelThirdPartyInput{ThirdPartyKey: thirdparty.ThirdPartyKey{Number: back.Number}, Reason: "reassigned", Note: "too slow"})
		require.NoError(t, err)
		a := w.entrust(o.OrderID)
		_, err = thirdparty.New(w.orders).SetLeg(t.Context(), swift, thirdparty.LegInput{ThirdPartyKey: thirdparty.ThirdPartyKey{Number: a.Number}, ExternalOrder: "SW-55120", ExternalNumber: "SWP100200300"})
		require.NoError(t, err)
		w.handOver(a.Number)
		_, err = thirdparty.New(w.orders).Report(t.Context(), swift, outcomes(a.Number, became(a.Numbers[0], "delivered"), became(a.Numbers[1], "failed")))
		require.NoError(t, err)

		var examples struct {
			Events []struct {
				Event     string
				Reference string `json:"reference_type"`
				Body      map[string]any
			}
		}
		told := w.toldCompany(17)
		var names []string
		for _, x := range told {
			names = append(names, strings.TrimPrefix(x.Event.Event, "third_party_delivery."))
		}
		require.Equal(t, []string{"created", "cancelled", "created", "packages_handed_over", "partial_delivery"}, names)
		times := regexp.MustCompile(`"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)"`)
		millis := regexp.MustCompile(`("occurred_at_ms": )\d+`)
		ids := regexp.MustCompile(`"TPD-\d+"`)
		for _, x := range told[1:] {
			require.NotContains(t, string(x.Event.Body), "for staff")
			require.NotContains(t, string(x.Event.Body), "555-0123", "numbers of people are not in it")
			var b bytes.Buffer
			require.NoError(t, json.Indent(&b, x.Event.Body, "", "  "))
			got := strings.ReplaceAll(ids.ReplaceAllString(millis.ReplaceAllString(times.ReplaceAllString(b.String(), `"<time>"`), `$1<ms>`), `"TPD-<n>"`), fmt.Sprint("TPA-", time.Now().Year()), "TPA-<year>")
			file := filepath.Join("testdata", "events", x.Event.Event+".json")
			if *update && strings.HasSuffix(t.Name(), "/SQLite") {
				require.NoError(t, os.WriteFile(file, []byte(got+"\n"), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got+"\n", x.Event.Event)
		}
		require.NoError(t, json.Unmarshal(found(t, "webhook-examples.json"), &examples))
		seen := 0
		for _, e := range examples.Events {
			i := slices.IndexFunc(told, func(x cloud.OutboxWork) bool { return x.Event.Event == e.Event })
			if i < 0 {
				continue
			}
			require.Equal(t, e.Reference, told[i].Event.ReferenceType)
			var body map[string]any
			require.NoError(t, json.Unmarshal(told[i].Event.Body, &body))
			alike(t, e.Event, e.Body, body)
			seen++
		}
		require.Equal(t, 4, seen)
	})
}

// An order that a company carries, from the business's and its recipient's side.
func TestThirdPartyCarriesAnOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		swift, quick, box, far := w.companies()
		o := w.ref("TP-1")
		a := w.entrust(o.OrderID)
		require.Regexp(t, `^TPA-20\d\d-\d{6}$`, a.Number)
		require.Equal(t, cloud.ThirdPartyCreated, a.Status)
		require.Equal(t, []string{o.Number + "-1", o.Number + "-2"}, a.Numbers)
		require.Equal(t, cloud.OutcomePending, a.Packages[0].Outcome)
		require.Equal(t, "Acme", a.Pickup.Name, "without a sender it waits at the business")
		require.Equal(t, "1 Secret Lane, Toronto ON", a.Dropoff.Address)
		require.Equal(t, &order.ThirdPartyRef{Number: a.Number, ProviderCode: "swift", ProviderName: "SWIFT", Status: cloud.ThirdPartyCreated}, w.find(o.OrderID).ThirdParty)
		require.Equal(t, cloud.OrderNew, w.find(o.OrderID).StatusID, "nothing was handed over")
		require.Equal(t, "information_submitted booking_confirmed", w.codes(o.OrderID))

		// No other company gets it meanwhile.
		again := thirdparty.ThirdPartyInput{OrderID: o.OrderID, ProviderID: 18}
		require.Equal(t, "HELD_BY_THIRD_PARTY", failure(thirdparty.New(w.orders).Assign(ctx, w.staff, again)))
		given, err := contractor.New(w.orders).Assign(ctx, w.admin, contractor.AssignInput{OrderIDs: []cloud.OrderID{o.OrderID}, BrokerID: 5})
		require.NoError(t, err)
		require.Equal(t, "HELD_BY_THIRD_PARTY", given.Errors[0].Code)
		require.Equal(t, "HELD_BY_THIRD_PARTY", failure(w.orders.Delete(ctx, w.admin, order.OrderRef{OrderID: o.OrderID})))

		key := thirdparty.ThirdPartyKey{Number: a.Number}
		got, err := thirdparty.New(w.orders).Accept(ctx, swift, key)
		require.NoError(t, err)
		require.NotNil(t, got.Assignment.AcceptedAt)
		later, err := thirdparty.New(w.orders).Accept(ctx, swift, key)
		require.NoError(t, err)
		require.Equal(t, got.Assignment.AcceptedAt, later.Assignment.AcceptedAt, "once more changes nothing")

		// Its own order gives the parcels its number, by which they are found.
		leg := thirdparty.LegInput{ThirdPartyKey: key, ExternalOrder: "SW-1", ExternalNumber: "SWP-100"}
		got, err = thirdparty.New(w.orders).SetLeg(ctx, swift, leg)
		require.NoError(t, err)
		require.Equal(t, "swift", got.Assignment.Legs[0].CarrierCode)
		require.Equal(t, "booked", got.Assignment.Legs[0].Status)
		require.Equal(t, a.Numbers, got.Assignment.Legs[0].Numbers)
		leg.LegID, leg.Status, leg.ExternalNumber = 1, "moved_on", "SWP-200"
		got, err = thirdparty.New(w.orders).SetLeg(ctx, swift, leg)
		require.NoError(t, err)
		require.Len(t, got.Assignment.Legs, 1, "it took the place of the first")
		require.Equal(t, "SWP-200", *w.find(o.OrderID).ExternalNumber)
		require.Equal(t, "SWP-200", *w.find(o.OrderID).Packages[1].ExternalNumber)
		leg.LegID = 3
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(thirdparty.New(w.orders).SetLeg)(ctx, swift, leg)))
		public := func(number string) (tracking.PublicOutput, error) {
			return tracking.New(w.db).Public(ctx, cloud.Caller{Language: "en"}, tracking.PublicInput{Number: number})
		}
		shown, err := public("swp-200")
		require.NoError(t, err)
		require.Equal(t, o.OrderID, shown.OrderID)
		require.Equal(t, "Acme", *shown.Carrier.Name, "Acme still has it")
		require.Equal(t, "TRACKING_NOT_FOUND", failure(public("SWP-100")))

		// With the first package it is the company's to tell of.
		shipment := func() (s cloud.Shipment) {
			require.NoError(t, w.db.Look(ctx, func(v cloud.View) (err error) { s, err = v.OrderShipment(42, o.OrderID); return err }))
			return s
		}
		require.Zero(t, shipment().ProviderID)
		h := w.handOver(a.Number, strings.ToLower(a.Numbers[0]))
		require.Equal(t, cloud.ThirdPartyHandedOver, h.Status)
		require.Equal(t, []cloud.ThirdPartyOutcome{"handed_over", "pending"}, []cloud.ThirdPartyOutcome{h.Packages[0].Outcome, h.Packages[1].Outcome})
		require.Equal(t, cloud.OrderHandedOver, w.find(o.OrderID).StatusID)
		require.Equal(t, cloud.OrderPackageCreated, w.find(o.OrderID).Packages[1].Status, "it is still here")
		require.Equal(t, cloud.ProviderID(17), shipment().ProviderID)
		shown, err = public(o.Number)
		require.NoError(t, err)
		require.Equal(t, "SWIFT", *shown.Carrier.Name)
		require.Equal(t, "ASSIGNMENT_STATE_CONFLICT", failure(thirdparty.New(w.orders).Report(ctx, swift, outcomes(a.Number, became(a.Numbers[1], "delivered")))), "it does not have that one")
		require.Equal(t, "PACKAGE_NOT_IN_ASSIGNMENT", failure(thirdparty.New(w.orders).Report(ctx, swift, outcomes(a.Number, became("NOPE", "delivered")))))
		require.Equal(t, "PACKAGE_NOT_IN_ASSIGNMENT", failure(thirdparty.New(w.orders).HandOver(ctx, w.staff, thirdparty.HandOverInput{ThirdPartyKey: key, Packages: []string{"NOPE"}})))
		w.handOver(a.Number)
		require.Equal(t, "ASSIGNMENT_STATE_CONFLICT", failure(thirdparty.New(w.orders).HandOver(ctx, w.staff, thirdparty.HandOverInput{ThirdPartyKey: key})), "nothing is left")
		require.Equal(t, "ASSIGNMENT_STATE_CONFLICT", failure(thirdparty.New(w.orders).Accept(ctx, swift, key)))
		require.Equal(t, "ASSIGNMENT_STATE_CONFLICT", failure(thirdparty.New(w.orders).Reject(ctx, swift, thirdparty.RejectThirdPartyInput{ThirdPartyKey: key})))

		// One fails and is brought after all; only then is it over.
		at := time.Now().Add(-time.Hour).Truncate(time.Second)
		first := became(a.Numbers[0], "failed")
		first.OccurredAt, first.Proofs = at.Format(time.RFC3339), []string{"https://swift.example/photo/1"}
		got, err = thirdparty.New(w.orders).Report(ctx, swift, outcomes(a.Number, first))
		require.NoError(t, err)
		when, err := time.Parse(time.RFC3339, *got.Assignment.Packages[0].OccurredAt)
		require.NoError(t, err)
		require.True(t, when.Equal(at))
		require.Equal(t, first.Proofs, got.Assignment.Packages[0].Proofs)
		require.Equal(t, cloud.OrderHandedOver, w.find(o.OrderID).StatusID)
		require.Equal(t, cloud.OrderPackageFailed, w.find(o.OrderID).Packages[0].Status)
		before := w.did(o.OrderID)
		_, err = thirdparty.New(w.orders).Report(ctx, swift, outcomes(a.Number, first))
		require.NoError(t, err)
		require.Equal(t, before, w.did(o.OrderID), "reported again it changes nothing")
		got, err = thirdparty.New(w.orders).Report(ctx, swift, outcomes(a.Number, became(a.Numbers[0], "delivered"), became(a.Numbers[1], "delivered")))
		require.NoError(t, err)
		require.Equal(t, cloud.ThirdPartyCompleted, got.Assignment.Status)
		require.NotNil(t, got.Assignment.CompletedAt)
		require.Equal(t, cloud.OrderDelivered, w.find(o.OrderID).StatusID)
		require.Equal(t, "information_submitted booking_confirmed picked_up delivered", w.codes(o.OrderID))
		require.Equal(t, []string{"6001:0>1", "8001:1>1", "8002:1>13", "8002:13>13", "1005:13>13", "1005:13>41"}, w.did(o.OrderID))
		require.Equal(t, "ASSIGNMENT_STATE_CONFLICT", failure(thirdparty.New(w.orders).Report(ctx, swift, outcomes(a.Number, became(a.Numbers[0], "returned")))))

		// Each sees what is its own.
		for _, c := range []cloud.Caller{quick, box, far} {
			require.Equal(t, "ASSIGNMENT_NOT_FOUND", failure(thirdparty.New(w.orders).Find(ctx, c, key)))
			require.Equal(t, "ASSIGNMENT_NOT_FOUND", failure(thirdparty.New(w.orders).Accept(ctx, c, key)))
			list, err := thirdparty.New(w.orders).List(ctx, c, thirdparty.ThirdPartiesInput{ProviderID: 17})
			require.NoError(t, err)
			require.Empty(t, list.Assignments)
		}
		require.Equal(t, "ASSIGNMENT_NOT_FOUND", failure(thirdparty.New(w.orders).Find(ctx, w.stranger, key)))
		for _, c := range []cloud.Caller{w.customer, w.broker, w.driver} {
			require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(thirdparty.New(w.orders).Find(ctx, c, key)))
			require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(thirdparty.New(w.orders).List(ctx, c, thirdparty.ThirdPartiesInput{})))
			require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(thirdparty.New(w.orders).Assign(ctx, c, again)))
			require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(thirdparty.New(w.orders).HandOver(ctx, c, thirdparty.HandOverInput{ThirdPartyKey: key})))
		}
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(thirdparty.New(w.orders).HandOver(ctx, swift, thirdparty.HandOverInput{ThirdPartyKey: key})), "a company does not hand over to itself")
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(thirdparty.New(w.orders).Cancel(ctx, swift, thirdparty.CancelThirdPartyInput{ThirdPartyKey: key, Reason: "cancelled"})))
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(thirdparty.New(w.orders).Report(ctx, w.admin, outcomes(a.Number, first))), "nor does the business report for it")
		require.Equal(t, "UNAUTHENTICATED", failure(thirdparty.New(w.orders).Accept(ctx, cloud.Caller{}, key)))
		require.Equal(t, "UNAUTHENTICATED", failure(thirdparty.New(w.orders).Find(ctx, cloud.Caller{}, key)))
		for _, c := range []cloud.Caller{swift, w.staff} {
			one, err := thirdparty.New(w.orders).Find(ctx, c, key)
			require.NoError(t, err)
			require.Equal(t, got, one)
			list, err := thirdparty.New(w.orders).List(ctx, c, thirdparty.ThirdPartiesInput{OrderID: o.OrderID, Status: cloud.ThirdPartyCompleted})
			require.NoError(t, err)
			require.Equal(t, []thirdparty.ThirdPartyBody{got.Assignment}, list.Assignments)
			require.Equal(t, "ASSIGNMENT_NOT_FOUND", failure(thirdparty.New(w.orders).Find(ctx, c, thirdparty.ThirdPartyKey{Number: "TPA\x00"})))
		}
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(thirdparty.New(w.orders).List)(ctx, swift, thirdparty.ThirdPartiesInput{Status: "lost"})))
		require.Equal(t, "ORDER_NOT_FOUND", failure(thirdparty.New(w.orders).Assign(ctx, w.stranger, again)))
	})
}

func TestThirdPartyInputs(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		swift, _, _, _ := w.companies()
		o := w.ref("TP-2")
		for _, in := range []thirdparty.ThirdPartyInput{{ProviderID: 19}, {ProviderID: 20}, {ProviderID: 99}, {}, {ProviderID: 17, Packages: []string{"NOPE"}}, {ProviderID: 17, Packages: []string{}},
			{ProviderID: 17, Note: strings.Repeat("x", 501)}, {ProviderID: 17, Service: strings.Repeat("x", 65)}} {
			in.OrderID = o.OrderID
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(thirdparty.New(w.orders).Assign)(ctx, w.staff, in)), "%+v", in)
		}
		require.Equal(t, "information_submitted", w.codes(o.OrderID), "nothing happened")
		for status, want := range map[cloud.OrderStatus]string{cloud.OrderHold: "ORDER_STATUS_CONFLICT", cloud.OrderOutForDelivery: "ORDER_STATUS_CONFLICT", cloud.OrderDelivered: "ORDER_STATUS_CONFLICT",
			cloud.OrderRoutePlanned: "ORDER_ON_ROUTE", cloud.OrderHandedOver: "HELD_BY_THIRD_PARTY"} {
			x := w.ref(fmt.Sprint("AT-", status))
			_, err := w.orders.Override(ctx, w.staff, order.OverrideInput{OrderID: x.OrderID, Status: status, Reason: "so"})
			require.NoError(t, err)
			require.Equal(t, want, failure(thirdparty.New(w.orders).Assign(ctx, w.staff, thirdparty.ThirdPartyInput{OrderID: x.OrderID, ProviderID: 17})), status.String())
		}
		held := w.ref("HELD")
		_, err := contractor.New(w.orders).Assign(ctx, w.admin, contractor.AssignInput{OrderIDs: []cloud.OrderID{held.OrderID}, BrokerID: 5})
		require.NoError(t, err)
		require.Equal(t, "HELD_BY_CONTRACTOR", failure(thirdparty.New(w.orders).Assign(ctx, w.staff, thirdparty.ThirdPartyInput{OrderID: held.OrderID, ProviderID: 17})))

		a := w.entrust(o.OrderID, strings.ToLower(o.Packages[1].Number))
		require.Equal(t, []string{o.Packages[1].Number}, a.Numbers)
		key := thirdparty.ThirdPartyKey{Number: a.Number}
		require.Equal(t, "PACKAGE_NOT_IN_ASSIGNMENT", failure(thirdparty.New(w.orders).HandOver(ctx, w.staff, thirdparty.HandOverInput{ThirdPartyKey: key, Packages: []string{o.Packages[0].Number}})))
		require.Equal(t, "PACKAGE_NOT_IN_ASSIGNMENT", failure(thirdparty.New(w.orders).SetLeg(ctx, swift, thirdparty.LegInput{ThirdPartyKey: key, ExternalOrder: "1", Packages: []string{o.Packages[0].Number}})))
		for _, in := range []thirdparty.LegInput{{}, {ExternalOrder: strings.Repeat("x", 65)}, {ExternalOrder: "1\n2"}, {ExternalOrder: "1", LabelURL: "javascript:alert(1)"}, {ExternalOrder: "1", LabelURL: "http://a.example"},
			{ExternalOrder: "1", LabelURL: "https://me:pw@a.example"}, {ExternalOrder: "1", Status: "No Way"}, {ExternalOrder: "1", LegID: -1}, {ExternalOrder: "1", LegID: 1}} {
			in.ThirdPartyKey = key
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(thirdparty.New(w.orders).SetLeg)(ctx, swift, in)), "%+v", in)
		}
		for range 50 {
			_, err := thirdparty.New(w.orders).SetLeg(ctx, swift, thirdparty.LegInput{ThirdPartyKey: key, ExternalOrder: "1"})
			require.NoError(t, err)
		}
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(thirdparty.New(w.orders).SetLeg)(ctx, swift, thirdparty.LegInput{ThirdPartyKey: key, ExternalOrder: "51"})), "there is an end to legs")
		require.Equal(t, "ASSIGNMENT_STATE_CONFLICT", failure(thirdparty.New(w.orders).Report(ctx, swift, outcomes(a.Number, became(a.Numbers[0], "delivered")))), "it has nothing yet")
		w.handOver(a.Number)
		n := a.Numbers[0]
		for _, list := range [][]thirdparty.OutcomeInput{nil, {{Number: n, Outcome: "lost"}}, {{Number: n, Outcome: "failed"}}, {{Number: n, Outcome: "failed", FailureCode: "no way"}},
			{{Number: n, Outcome: "delivered", FailureCode: "damaged"}}, {{Number: n, Outcome: "delivered", OccurredAt: "soon"}}, {{Number: n, Outcome: "delivered", Proofs: []string{"http://x"}}},
			{{Number: n, Outcome: "delivered", Proofs: slices.Repeat([]string{"https://x.example/"}, 11)}}, {{Outcome: "delivered"}},
			{{Number: n, Outcome: "delivered", OccurredAt: time.Now().Add(time.Hour).Format(time.RFC3339)}}, {became(n, "delivered"), became(strings.ToLower(n), "returned")},
			slices.Repeat([]thirdparty.OutcomeInput{became(n, "delivered")}, 101)} {
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(thirdparty.New(w.orders).Report)(ctx, swift, outcomes(a.Number, list...))), "%+v", list)
		}
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(thirdparty.New(w.orders).Cancel)(ctx, w.staff, thirdparty.CancelThirdPartyInput{ThirdPartyKey: key, Reason: "because"})))
		// The company has one of two: the order is delivered in part.
		_, err = thirdparty.New(w.orders).Report(ctx, swift, outcomes(a.Number, became(n, "delivered")))
		require.NoError(t, err)
		got := w.find(o.OrderID)
		require.Equal(t, cloud.OrderPartlyDelivered, got.StatusID)
		require.Equal(t, cloud.ThirdPartyCompleted, got.ThirdParty.Status, "it brought all that it had")
		require.Equal(t, cloud.OrderPackageCreated, got.Packages[0].Status)
		require.True(t, got.SelfDelivery, "the rest is the business's own to bring")
	})
}

// Every pair of outcomes of two packages, in one report and in two.
func TestThirdPartyOutcomes(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift, _, _, _ := w.companies()
		results := []string{"delivered", "failed", "returned", "refused"}
		of := func(number, result string) thirdparty.OutcomeInput {
			if result == "refused" {
				return thirdparty.OutcomeInput{Number: number, Outcome: "failed", FailureCode: "RECIPIENT_REFUSED"}
			}
			return became(number, result)
		}
		for _, x := range results {
			for _, y := range results {
				for _, apart := range []bool{false, true} {
					o := w.ref(fmt.Sprint(x, y, apart))
					a := w.entrust(o.OrderID)
					w.handOver(a.Number)
					list := []thirdparty.OutcomeInput{of(a.Numbers[0], x), of(a.Numbers[1], y)}
					if apart {
						_, err := thirdparty.New(w.orders).Report(t.Context(), swift, outcomes(a.Number, list[0]))
						require.NoError(t, err)
						require.Equal(t, cloud.OrderHandedOver, w.find(o.OrderID).StatusID)
						list = list[1:]
					}
					out, err := thirdparty.New(w.orders).Report(t.Context(), swift, outcomes(a.Number, list...))
					require.NoError(t, err)
					delivered := strings.Count(x+y, "delivered")
					wantOrder, want := cloud.OrderDeliveryFailed, cloud.ThirdPartyCompleted
					switch {
					case delivered == 2:
						wantOrder = cloud.OrderDelivered
					case delivered == 1:
						wantOrder, want = cloud.OrderPartlyDelivered, cloud.ThirdPartyPartly
					case x == "returned" && y == "returned":
						wantOrder = cloud.OrderReturned
					case x == "refused" && y == "refused":
						wantOrder = cloud.OrderRejected
					}
					got := w.find(o.OrderID)
					require.Equal(t, wantOrder.String(), got.Status, "%s %s", x, y)
					require.Equal(t, want, out.Assignment.Status, "%s %s", x, y)
					shown := map[string]cloud.OrderPackageStatus{"delivered": cloud.OrderPackageDelivered, "failed": cloud.OrderPackageFailed, "returned": cloud.OrderPackageReturned, "refused": cloud.OrderPackageFailed}
					require.Equal(t, shown[x], got.Packages[0].Status, "%s %s", x, y)
					require.Equal(t, shown[y], got.Packages[1].Status, "%s %s", x, y)
					w.codes(o.OrderID) // no bad move
					told := w.toldCompany(17)
					require.Equal(t, want == cloud.ThirdPartyPartly, told[len(told)-1].Event.Event == "third_party_delivery.partial_delivery", "%s %s", x, y)
				}
			}
		}
	})
}

// However an order gets away from its company, the company receives an event of it.
func TestThirdPartyLosesItsOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		swift, _, _, _ := w.companies()
		ended := func(name string, handed bool, status cloud.ThirdPartyStatus, fn func(o order.OrderBody, a thirdparty.ThirdPartyBody)) order.OrderBody {
			t.Helper()
			o := w.ref(name)
			a := w.entrust(o.OrderID)
			if handed {
				w.handOver(a.Number)
			}
			heard := len(w.toldCompany(17))
			fn(o, a)
			got := w.find(o.OrderID)
			require.Equal(t, status, got.ThirdParty.Status, name)
			told := w.toldCompany(17)[heard:]
			if status == cloud.ThirdPartyCancelled {
				require.Len(t, told, 1, name)
				require.Equal(t, "third_party_delivery.cancelled", told[0].Event.Event)
			} else {
				require.Empty(t, told, name)
			}
			one, err := thirdparty.New(w.orders).Find(ctx, swift, thirdparty.ThirdPartyKey{Number: a.Number})
			require.NoError(t, err)
			require.NotNil(t, one.Assignment.EndedAt)
			w.codes(o.OrderID)
			// An order that is not over may be given to a company again.
			if !got.StatusID.State().Terminal && slices.Contains([]cloud.OrderStatus{1, 4, 30, 44}, got.StatusID) {
				w.entrust(o.OrderID)
			}
			return got
		}
		for _, handed := range []bool{false, true} {
			for _, reason := range []string{"cancelled", "fallback_to_self_delivery", "reassigned"} {
				got := ended(fmt.Sprint("back ", reason, handed), handed, cloud.ThirdPartyCancelled, func(o order.OrderBody, a thirdparty.ThirdPartyBody) {
					out, err := thirdparty.New(w.orders).Cancel(ctx, w.staff, thirdparty.CancelThirdPartyInput{ThirdPartyKey: thirdparty.ThirdPartyKey{Number: a.Number}, Reason: reason, Note: "why"})
					require.NoError(t, err)
					require.Equal(t, []string{reason, "why"}, []string{*out.Assignment.Reason, *out.Assignment.EndNote})
					require.Equal(t, cloud.OutcomeCancelled, out.Assignment.Packages[1].Outcome)
				})
				require.Equal(t, cloud.OrderNew, got.StatusID, "in its earlier status")
				require.True(t, got.SelfDelivery)
				require.True(t, strings.HasPrefix(w.codes(got.OrderID), map[bool]string{false: "information_submitted booking_confirmed route_cancelled",
					true: "information_submitted booking_confirmed picked_up"}[handed]), w.codes(got.OrderID))
			}
			ended(fmt.Sprint("order cancelled", handed), handed, cloud.ThirdPartyCancelled, func(o order.OrderBody, _ thirdparty.ThirdPartyBody) {
				_, err := w.orders.Cancel(ctx, w.staff, order.ReasonInput{OrderID: o.OrderID})
				require.NoError(t, err)
			})
			ended(fmt.Sprint("returned by hand", handed), handed, cloud.ThirdPartyCancelled, func(o order.OrderBody, _ thirdparty.ThirdPartyBody) {
				_, err := w.orders.Override(ctx, w.staff, order.OverrideInput{OrderID: o.OrderID, Status: cloud.OrderReturned, Reason: "so"})
				require.NoError(t, err)
			})
			got := ended(fmt.Sprint("by a locker", handed), handed, cloud.ThirdPartyCompleted, func(o order.OrderBody, _ thirdparty.ThirdPartyBody) {
				w.move(o.OrderID, cloud.OrderInLocker, order.Deposit)
				w.move(o.OrderID, cloud.OrderDelivered, order.Collect)
			})
			require.Equal(t, cloud.OrderDelivered, got.StatusID)
		}
		ended("refused", false, cloud.ThirdPartyCancelled, func(_ order.OrderBody, a thirdparty.ThirdPartyBody) {
			out, err := thirdparty.New(w.orders).Reject(ctx, swift, thirdparty.RejectThirdPartyInput{ThirdPartyKey: thirdparty.ThirdPartyKey{Number: a.Number}, Reason: "no van"})
			require.NoError(t, err)
			require.Equal(t, []string{"fallback_to_self_delivery", "no van"}, []string{*out.Assignment.Reason, *out.Assignment.EndNote})
		})
		var next cloud.OrderID
		moved := ended("rerouted", false, cloud.ThirdPartyCancelled, func(o order.OrderBody, _ thirdparty.ThirdPartyBody) {
			out, err := w.orders.Reroute(ctx, w.staff, order.RerouteInput{OrderID: o.OrderID, NewAddress: address("Elsewhere")})
			require.NoError(t, err)
			require.Nil(t, out.NewOrder.ThirdParty)
			next = out.NewOrder.OrderID
		})
		w.entrust(next)
		require.Equal(t, cloud.OrderCancelled, moved.StatusID)

		// What an interception brings back, the company has no more; what it never had
		// it may still get.
		for _, handed := range []bool{true, false} {
			for outcome, to := range map[string]cloud.OrderStatus{"redeliver": cloud.OrderDeliveryRescheduled, "hold_at_warehouse": cloud.OrderReceived} {
				o := w.ref(fmt.Sprint("brought back ", outcome, handed))
				a := w.entrust(o.OrderID)
				if handed {
					w.handOver(a.Number)
				}
				heard := len(w.toldCompany(17))
				in := interception.InterceptInput{OrderID: o.OrderID, Outcome: outcome}
				out, err := interception.New(w.orders).Intercept(ctx, w.staff, in)
				require.NoError(t, err)
				_, err = interception.New(w.orders).Execute(ctx, w.staff, interception.StopInput{ID: out.Interception.ID})
				require.NoError(t, err)
				got := w.find(o.OrderID)
				require.Equal(t, to, got.StatusID)
				told := w.toldCompany(17)[heard:]
				if !handed {
					require.Equal(t, cloud.ThirdPartyCreated, got.ThirdParty.Status)
					require.Empty(t, told)
					continue
				}
				require.Equal(t, cloud.ThirdPartyCancelled, got.ThirdParty.Status)
				require.True(t, got.SelfDelivery)
				require.Len(t, told, 1)
				w.entrust(o.OrderID)
			}
		}

		// One that is intercepted is not taken back meanwhile; the company may have
		// been quicker.
		o := w.ref("stopped")
		a := w.entrust(o.OrderID)
		w.handOver(a.Number)
		_, err := interception.New(w.orders).Intercept(ctx, w.staff, interception.InterceptInput{OrderID: o.OrderID, Outcome: "return_to_sender"})
		require.NoError(t, err)
		require.Equal(t, "ORDER_STATUS_CONFLICT", failure(thirdparty.New(w.orders).Cancel(ctx, w.staff, thirdparty.CancelThirdPartyInput{ThirdPartyKey: thirdparty.ThirdPartyKey{Number: a.Number}, Reason: "cancelled"})))
		_, err = thirdparty.New(w.orders).Report(ctx, swift, outcomes(a.Number, became(a.Numbers[0], "delivered"), became(a.Numbers[1], "delivered")))
		require.NoError(t, err)
		require.Equal(t, cloud.OrderDelivered, w.find(o.OrderID).StatusID)
		require.Equal(t, "failed", w.find(o.OrderID).Interception.Status)
		w.codes(o.OrderID)
	})
}

// A company's events about a parcel that it was handed are taken.
func TestThirdPartyAddsToTheTimeline(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift, quick, _, _ := w.companies()
		o := w.ref("TP-3")
		s := tracking.New(w.db)
		add := func(c cloud.Caller) string {
			raw := fmt.Sprintf(`{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":%q},"events":[{"status_code":"out_for_delivery","occurred_at":%q,"source":{"type":"third_party"}}]}`,
				o.Number, time.Now().Format(time.RFC3339))
			return failure(s.Ingest(t.Context(), c, tracking.IngestInput{Body: []byte(raw)}))
		}
		require.NotEqual(t, "<nil>", add(swift))
		a := w.entrust(o.OrderID)
		require.NotEqual(t, "<nil>", add(swift), "it was not handed over")
		w.handOver(a.Number)
		require.NotEqual(t, "<nil>", add(quick))
		require.Equal(t, "<nil>", add(swift))
		_, err := thirdparty.New(w.orders).Cancel(t.Context(), w.staff, thirdparty.CancelThirdPartyInput{ThirdPartyKey: thirdparty.ThirdPartyKey{Number: a.Number}, Reason: "cancelled"})
		require.NoError(t, err)
		require.NotEqual(t, "<nil>", add(swift), "it was taken back")
	})
}

// Whatever everybody does, an order and its assignment go together.
func TestThirdPartyModel(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift, quick, _, _ := w.companies()
		seed := uint64(time.Now().UnixNano())
		r := rand.New(rand.NewPCG(seed, 1))
		t.Log("seed", seed)
		steps, done := 250, map[string]int{}
		var orders []order.OrderBody
		for i := range 4 {
			orders = append(orders, w.ref(fmt.Sprint("M-", i)))
		}
		open := map[cloud.OrderID]string{}
		for range steps {
			o := orders[r.IntN(len(orders))]
			number := open[o.OrderID]
			key := thirdparty.ThirdPartyKey{Number: number}
			had := w.find(o.OrderID)
			who := []cloud.Caller{swift, swift, quick}[r.IntN(3)]
			var err error
			name := ""
			switch r.IntN(10) {
			case 0, 1:
				name = "assign"
				var out thirdparty.ThirdPartyOutput
				if out, err = thirdparty.New(w.orders).Assign(t.Context(), w.staff, thirdparty.ThirdPartyInput{OrderID: o.OrderID, ProviderID: 17}); err == nil {
					require.Empty(t, number, "one at a time")
					open[o.OrderID] = out.Assignment.Number
				}
			case 2, 3:
				name = "hand over"
				in := thirdparty.HandOverInput{ThirdPartyKey: key}
				if r.IntN(2) == 0 {
					in.Packages = []string{o.Packages[r.IntN(2)].Number}
				}
				_, err = thirdparty.New(w.orders).HandOver(t.Context(), w.staff, in)
			case 4:
				name = "cancel"
				_, err = thirdparty.New(w.orders).Cancel(t.Context(), w.staff, thirdparty.CancelThirdPartyInput{ThirdPartyKey: key, Reason: "reassigned"})
			case 5:
				name = "reject"
				_, err = thirdparty.New(w.orders).Reject(t.Context(), who, thirdparty.RejectThirdPartyInput{ThirdPartyKey: key})
			case 6, 7:
				name = "report"
				_, err = thirdparty.New(w.orders).Report(t.Context(), who, outcomes(number, became(o.Packages[r.IntN(2)].Number, []string{"delivered", "failed", "returned"}[r.IntN(3)])))
			case 8:
				name = "reschedule"
				day := time.Now().AddDate(0, 0, 2+r.IntN(5)).Format(time.DateOnly)
				_, err = w.orders.Update(t.Context(), w.staff, order.UpdateInput{OrderID: o.OrderID, ScheduledDate: &day})
			case 9:
				name = "put on a route"
				err = w.orders.Move(t.Context(), cloud.Caller{}, order.MoveInput{BusinessID: 42, OrderID: o.OrderID, To: had.StatusID, Trigger: order.TakeOffRoute, Operation: 3011})
			}
			if err != nil {
				require.Contains(t, []string{"HELD_BY_THIRD_PARTY", "ASSIGNMENT_NOT_FOUND", "ASSIGNMENT_STATE_CONFLICT", "PACKAGE_NOT_IN_ASSIGNMENT", "ORDER_STATUS_CONFLICT"}, code(err), name)
				require.Equal(t, had, w.find(o.OrderID), "what is refused changes nothing: %s", name)
			} else {
				done[name]++
			}
			now := w.find(o.OrderID)
			w.codes(o.OrderID)
			if number = open[o.OrderID]; number == "" {
				require.NotEqual(t, cloud.OrderHandedOver, now.StatusID)
				continue
			}
			a, err := thirdparty.New(w.orders).Find(t.Context(), swift, thirdparty.ThirdPartyKey{Number: number})
			require.NoError(t, err)
			require.Equal(t, number, now.ThirdParty.Number)
			require.Equal(t, a.Assignment.Status, now.ThirdParty.Status)
			over := a.Assignment.EndedAt != nil
			require.Equal(t, over, a.Assignment.Status != "created" && a.Assignment.Status != "handed_over")
			require.Equal(t, a.Assignment.Status == "handed_over", now.StatusID == cloud.OrderHandedOver, "%s: %s and %s", name, a.Assignment.Status, now.Status)
			for i, p := range a.Assignment.Packages {
				if shown, final := map[cloud.ThirdPartyOutcome]cloud.OrderPackageStatus{cloud.OutcomeDelivered: cloud.OrderPackageDelivered, cloud.OutcomeReturned: cloud.OrderPackageReturned}[p.Outcome]; final && !over {
					require.Equal(t, shown, now.Packages[i].Status)
				}
			}
			if over {
				delete(open, o.OrderID)
			}
			if now.StatusID.State().Terminal {
				orders[slices.IndexFunc(orders, func(x order.OrderBody) bool { return x.OrderID == o.OrderID })] = w.ref(fmt.Sprint("M-", o.OrderID, "-next"))
			}
		}
		for _, name := range []string{"assign", "hand over", "cancel", "report"} {
			require.Positive(t, done[name], "%s: %v", name, done)
		}
		told := 0
		for _, x := range w.toldCompany(17) {
			var b struct {
				EventID string `json:"event_id"`
				Data    struct {
					Status string `json:"status"`
				} `json:"data"`
			}
			require.NoError(t, json.Unmarshal(x.Event.Body, &b))
			require.Equal(t, map[string]string{"created": "created", "packages_handed_over": "handed_over", "cancelled": "cancelled", "partial_delivery": "partially_delivered"}[strings.TrimPrefix(x.Event.Event,
				"third_party_delivery.")], b.Data.Status)
			told++
		}
		require.GreaterOrEqual(t, told, done["assign"]+done["hand over"]+done["cancel"]+done["reject"])
	})
}
