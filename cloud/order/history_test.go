package order_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

func TestOperations(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx, o := t.Context(), w.create(w.customer, input(cloud.DeliveryOrder))
		secret, mine := "call the boss first", "ring"
		_, err := w.orders.Update(ctx, w.staff, order.UpdateInput{OrderID: o.OrderID, Note: &secret})
		require.NoError(t, err)
		_, err = w.orders.Update(ctx, w.customer, order.UpdateInput{OrderID: o.OrderID, Instruction: &mine})
		require.NoError(t, err)
		_, err = w.orders.Hold(ctx, w.staff, order.ReasonInput{OrderID: o.OrderID, Reason: secret})
		require.NoError(t, err)

		list := func(c cloud.Caller, in order.OperationsInput) order.OperationsOutput {
			t.Helper()
			in.OrderID = o.OrderID
			out, err := w.orders.Operations(ctx, c, in)
			require.NoError(t, err)
			return out
		}
		all := list(w.staff, order.OperationsInput{})
		require.Equal(t, 4, all.Total)
		require.Nil(t, all.Events[0].Before)
		require.Equal(t, cloud.FieldChange{From: "", To: secret}, all.Events[1].Changes["note"])
		require.Equal(t, "note changed", all.Events[1].Name)
		require.Equal(t, "api", all.Events[1].Channel)
		require.Equal(t, w.staff.Account.ID, *all.Events[3].Operator.ID)
		require.Equal(t, secret, *all.Events[3].Note)

		seen := list(w.customer, order.OperationsInput{})
		require.Equal(t, 3, seen.Total, "a note of the staff is not for customers")
		require.Equal(t, "customer 3", *seen.Events[1].Operator.Name)
		require.Equal(t, cloud.OrderHold, seen.Events[2].After)
		require.Nil(t, seen.Events[2].Operator.Name)
		require.Nil(t, seen.Events[2].Note)

		require.Equal(t, 1, list(w.staff, order.OperationsInput{Types: []int{6005}}).Total)
		require.Equal(t, 0, list(w.staff, order.OperationsInput{From: time.Now().Add(time.Hour).Format(time.RFC3339)}).Total)
		require.Equal(t, 0, list(w.staff, order.OperationsInput{To: "2020-01-01 00:00:00"}).Total)
		page := list(w.staff, order.OperationsInput{Keyset: check.Keyset{Page: new(2), PerPage: new(3)}})
		require.Equal(t, 4, page.Total)
		require.Equal(t, all.Events[3:], page.Events)
		require.Empty(t, list(w.staff, order.OperationsInput{Keyset: check.Keyset{Page: new(9)}}).Events)
		in := order.OperationsInput{Key: order.Key{OrderID: o.OrderID}}
		for _, c := range []cloud.Caller{w.other, w.stranger, w.driver} {
			require.Equal(t, "ORDER_NOT_FOUND", failure(w.orders.Operations(ctx, c, in)))
		}
		in.PerPage = new(201)
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.Operations)(ctx, w.staff, in)))
	})
}

// failingStore is a database that fails once an order has been found.
type failingStore struct {
	*store.DB
	left int // reads that still work
}

func (s *failingStore) Look(ctx context.Context, fn func(cloud.View) error) error {
	if s.left--; s.left < 0 {
		return errors.New("database is gone")
	}
	return s.DB.Look(ctx, fn)
}

// Operations are not shown in another time zone when the business's zone could not be read.
func TestOperationsWithoutTheZoneOfTheBusiness(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	o := w.create(w.staff, input(cloud.DeliveryOrder))
	orders := order.New(order.Config{Store: &failingStore{DB: w.db, left: 1}})
	_, err := orders.Operations(t.Context(), w.staff, order.OperationsInput{Key: order.Key{OrderID: o.OrderID}})
	require.ErrorContains(t, err, "database is gone")
}
