package order_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/contractor"
)

// assign hands an order to a contractor.
func (w *world) assign(to cloud.Caller, ids ...cloud.OrderID) contractor.AssignOutput {
	w.t.Helper()
	out, err := contractor.New(w.orders).Assign(w.t.Context(), w.admin, contractor.AssignInput{OrderIDs: ids, BrokerID: to.Account.ID, Note: "before noon"})
	require.NoError(w.t, err)
	return out
}

func (w *world) assignments(c cloud.Caller, in order.AssignmentsInput) order.AssignmentsOutput {
	w.t.Helper()
	out, err := w.orders.Assignments(w.t.Context(), c, in)
	require.NoError(w.t, err)
	return out
}

func TestAssignmentsFromHandToHand(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		a, b := w.ref("PO-1"), w.ref("PO-2")
		foreign := w.create(w.stranger, input(cloud.DeliveryOrder))
		out := w.assign(w.broker, a.OrderID, foreign.OrderID, b.OrderID, a.OrderID, 99_999)
		require.True(t, out.Result)
		require.Equal(t, 2, out.Assigned)
		require.Equal(t, 2, out.Skipped)
		require.Equal(t, []string{"ORDER_NOT_FOUND", "ORDER_NOT_FOUND"}, []string{out.Errors[0].Code, out.Errors[1].Code}, "another's is like none")
		require.Equal(t, out.Errors[0].Message, out.Errors[1].Message)

		o := w.find(a.OrderID)
		require.Equal(t, w.broker.Account.ID, o.BrokerAssignment.BrokerID)
		require.Equal(t, w.broker.Account.Name, *o.BrokerAssignment.BrokerName)
		require.Contains(t, w.did(a.OrderID), "6020:1>1")
		require.Equal(t, []cloud.OrderID{b.OrderID, a.OrderID}, ids(must(w.orders.List(ctx, w.broker, order.ListInput{})).Orders))

		// To another contractor in one step, with the first row ended.
		require.Equal(t, 1, w.assign(w.rival, a.OrderID).Assigned)
		require.Equal(t, "ALREADY_ASSIGNED", w.assign(w.rival, a.OrderID).Errors[0].Code)
		list := w.assignments(w.staff, order.AssignmentsInput{OrderID: a.OrderID})
		require.Equal(t, 2, list.Total)
		require.Equal(t, 50, list.PerPage)
		require.Equal(t, cloud.AssignmentActive, list.Assignments[0].Status)
		require.Nil(t, list.Assignments[0].EndedAt)
		require.Equal(t, "PO-1", *list.Assignments[0].Ref)
		require.Equal(t, cloud.OrderNew, *list.Assignments[0].StatusID)
		require.Equal(t, "before noon", *list.Assignments[0].Note)
		old := list.Assignments[1]
		require.Equal(t, cloud.AssignmentRevoked, old.Status)
		require.Equal(t, "reassigned", *old.EndReason)
		require.Equal(t, w.admin.Account.ID, *old.EndedBy)

		// A contractor sees its own, whatever it asks for, and gives back its own.
		require.Equal(t, 2, w.assignments(w.broker, order.AssignmentsInput{BrokerID: w.rival.Account.ID}).Total)
		require.Equal(t, 1, w.assignments(w.rival, order.AssignmentsInput{}).Total)
		require.Zero(t, w.assignments(w.stranger, order.AssignmentsInput{}).Total)
		require.Equal(t, 1, w.assignments(w.staff, order.AssignmentsInput{Status: cloud.AssignmentRevoked}).Total)
		for _, id := range []cloud.OrderID{a.OrderID, foreign.OrderID, 99_999} {
			_, err := contractor.New(w.orders).GiveBack(ctx, w.broker, contractor.ReleaseOrderInput{OrderID: id})
			require.Equal(t, "NOT_ASSIGNED", code(err))
		}
		french := w.rival
		french.Language = "fr"
		done, err := contractor.New(w.orders).GiveBack(ctx, french, contractor.ReleaseOrderInput{OrderID: a.OrderID, Reason: "no van today"})
		require.NoError(t, err)
		require.Contains(t, done.Message, "commande")
		require.Nil(t, w.find(a.OrderID).BrokerAssignment)
		require.Equal(t, "no van today", *w.assignments(w.rival, order.AssignmentsInput{}).Assignments[0].EndReason)
		require.Contains(t, w.did(a.OrderID), "6022:1>1")

		back, err := contractor.New(w.orders).Revoke(ctx, w.admin, contractor.RevokeInput{OrderIDs: []cloud.OrderID{a.OrderID, b.OrderID}})
		require.NoError(t, err)
		require.Equal(t, 1, back.Revoked)
		require.True(t, back.Result)
		require.Equal(t, contractor.OrderError{OrderID: a.OrderID, Code: "NOT_ASSIGNED", Message: back.Errors[0].Message}, back.Errors[0])
		back, err = contractor.New(w.orders).Revoke(ctx, w.admin, contractor.RevokeInput{OrderIDs: []cloud.OrderID{a.OrderID}})
		require.NoError(t, err)
		require.False(t, back.Result)
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestAssignmentsEndWithTheirOrders(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		last := func(id cloud.OrderID) order.AssignmentBody {
			return w.assignments(w.staff, order.AssignmentsInput{OrderID: id}).Assignments[0]
		}
		a, b, c := w.ref("PO-1"), w.ref("PO-2"), w.ref("PO-3")
		w.assign(w.broker, a.OrderID, b.OrderID, c.OrderID)

		_, err := w.orders.Cancel(ctx, w.staff, order.ReasonInput{OrderID: a.OrderID})
		require.NoError(t, err)
		require.Equal(t, cloud.AssignmentRevoked, last(a.OrderID).Status)
		require.Equal(t, "order_cancelled", *last(a.OrderID).EndReason)

		_, err = w.orders.Delete(ctx, w.admin, order.OrderRef{OrderID: b.OrderID})
		require.NoError(t, err)
		require.Equal(t, "order_deleted", *last(b.OrderID).EndReason)
		require.Nil(t, last(b.OrderID).Ref, "the order is gone")

		w.move(c.OrderID, cloud.OrderRoutePlanned, order.PutOnRoute)
		require.Equal(t, "ORDER_ON_ROUTE", w.assign(w.rival, c.OrderID).Errors[0].Code)
		_, err = contractor.New(w.orders).GiveBack(ctx, w.broker, contractor.ReleaseOrderInput{OrderID: c.OrderID})
		require.Equal(t, "ORDER_ON_ROUTE", code(err))
		w.move(c.OrderID, cloud.OrderOutForDelivery, order.StartDelivery)
		w.move(c.OrderID, cloud.OrderRejected, order.DeliveryResult)
		require.Equal(t, cloud.AssignmentReleased, last(c.OrderID).Status)
		require.Equal(t, "order_completed", *last(c.OrderID).EndReason)
		_, err = w.orders.Find(ctx, w.broker, order.Key{OrderID: c.OrderID})
		require.NoError(t, err, "who completed it goes on seeing it")

		// What comes back is everybody's.
		_, err = w.orders.Override(ctx, w.staff, order.OverrideInput{OrderID: c.OrderID, Status: cloud.OrderReceived, Reason: "it came back"})
		require.NoError(t, err)
		require.Equal(t, "ORDER_NOT_FOUND", failure(w.orders.Find(ctx, w.broker, order.Key{OrderID: c.OrderID})))

		// The order in place of another has no contractor yet.
		d := w.ref("PO-4")
		w.assign(w.broker, d.OrderID)
		moved, err := w.orders.Reroute(ctx, w.staff, order.RerouteInput{OrderID: d.OrderID, NewAddress: address("Joan"), Reason: "moved"})
		require.NoError(t, err)
		require.Nil(t, moved.NewOrder.BrokerAssignment)
		require.Equal(t, "order_cancelled", *last(d.OrderID).EndReason)
	})
}

func TestAssignmentsThatAreNone(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		a := w.ref("PO-1")
		many := make([]cloud.OrderID, 501)
		for _, in := range []contractor.AssignInput{{BrokerID: 5}, {OrderIDs: many, BrokerID: 5}, {OrderIDs: []cloud.OrderID{a.OrderID}}, {OrderIDs: []cloud.OrderID{a.OrderID}, BrokerID: 2},
			{OrderIDs: []cloud.OrderID{a.OrderID}, BrokerID: 7}, {OrderIDs: []cloud.OrderID{a.OrderID}, BrokerID: 5, Note: strings.Repeat("é", 501)}} {
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(contractor.New(w.orders).Assign)(t.Context(), w.admin, in)))
		}
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(contractor.New(w.orders).Revoke)(t.Context(), w.admin, contractor.RevokeInput{})))
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(contractor.New(w.orders).Revoke)(t.Context(), w.admin, contractor.RevokeInput{OrderIDs: []cloud.OrderID{1}, Reason: strings.Repeat("x", 256)})))
		for _, in := range []order.AssignmentsInput{{LongKeyset: check.LongKeyset{PerPage: new(201)}}, {Status: "gone"}, {LongKeyset: check.LongKeyset{Keyset: check.Keyset{Page: new(-1)}}}} {
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.Assignments)(t.Context(), w.admin, in)))
		}
		require.Zero(t, w.assignments(w.staff, order.AssignmentsInput{}).Total)
	})
}
