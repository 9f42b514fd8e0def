package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// budgets bound what keys do in a day, also when many calls come at once.
func budgets(t *testing.T, db *store.DB) {
	call := func(key, day string, p cloud.KeyPolicy) context.Context {
		return cloud.WithCall(t.Context(), &cloud.Call{BusinessID: 1, Actor: "account:1", Operation: "things.make", Budget: &cloud.Budget{Key: key, Day: day, Policy: p}})
	}
	code := func(err error) string {
		var e *cloud.Error
		if errors.As(err, &e) {
			return e.Code
		}
		require.NoError(t, err)
		return ""
	}
	three := cloud.KeyPolicy{WritesPerDay: 3}
	var written, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			switch err := db.Decide(call("a", "2026-11-22", three), 0, makes(cloud.BusinessID(500+i), nil)); code(err) {
			case "":
				written.Add(1)
			case "DAILY_LIMIT_REACHED":
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	require.Equal(t, []int64{3, 9}, []int64{written.Load(), refused.Load()})
	require.Empty(t, code(db.Decide(call("b", "2026-11-22", three), 0, makes(520, nil))), "another key has its own day")
	require.Empty(t, code(db.Decide(call("a", "2026-11-23", three), 0, makes(521, nil))), "and so has another day")

	ctx := call("c", "2026-11-22", cloud.KeyPolicy{WritesPerDay: 1})
	require.ErrorIs(t, db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) { return nil, errNo }), errNo)
	require.Empty(t, code(db.Decide(ctx, 0, makes(522, nil))), "what was refused took nothing")
	require.Empty(t, code(db.Decide(ctx, 0, makes(523, nil))), "the same call goes on")

	order := func(id cloud.OrderID, total cloud.Money) func(cloud.View) (*cloud.Changes, error) {
		return func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{{ID: id, BusinessID: 1, Number: "B" + string(rune('0'+id)), Type: "D", Status: 1, Prices: &cloud.OrderPrices{Total: total}}}}}, nil
		}
	}
	ten := cloud.KeyPolicy{MoneyPerDay: 1000}
	require.Empty(t, code(db.Decide(call("d", "2026-11-22", ten), 0, order(1, 600))))
	require.Equal(t, "DAILY_LIMIT_REACHED", code(db.Decide(call("d", "2026-11-22", ten), 0, order(2, 401))))
	require.Empty(t, code(db.Decide(call("d", "2026-11-22", ten), 0, order(1, 1000))), "a price that rises takes the difference")
	require.Equal(t, "DAILY_LIMIT_REACHED", code(db.Decide(call("d", "2026-11-22", ten), 0, order(3, 1))))
	require.NoError(t, db.DropCalls(t.Context(), now))
}
