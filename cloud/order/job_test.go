package order_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

func numbered(n int) (out []order.BatchRow) {
	for i := range n {
		in := input(cloud.DeliveryOrder)
		in.Ref = fmt.Sprint("ROW-", i+1)
		out = append(out, order.BatchRow{CreateInput: in})
	}
	return out
}

// run runs workers until the job has finished.
func (w *world) run(id string, workers int) order.JobOutput {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, workers)
	for range workers {
		go func() {
			s := order.New(order.Config{Store: w.db, Sealer: storetest.Box(w.t), Webhooks: w.hooks})
			order.SetNumber(s, order.NumberOf(w.orders))
			ended <- s.Run(ctx, slog.New(slog.DiscardHandler))
		}()
	}
	var out order.JobOutput
	ring.Await(w.t, func() bool {
		var err error
		out, err = w.orders.Job(w.t.Context(), w.staff, order.JobInput{ID: id, Keyset: check.Keyset{PerPage: new(200)}})
		require.NoError(w.t, err)
		return out.FinishedAt != nil
	})
	cancel()
	for range workers {
		require.NoError(w.t, <-ended)
	}
	return out
}

func TestAsynchronousBatch(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx, list := t.Context(), numbered(12)
		list[4].Packages = nil
		a, err := w.orders.BatchAsync(ctx, w.customer, order.BatchInput{Orders: list})
		require.NoError(t, err)
		require.Equal(t, "queued", a.Status)
		require.Regexp(t, `^bat_`, a.AsyncID)
		for _, c := range []cloud.Caller{w.other, w.stranger} {
			require.Equal(t, "ASYNC_JOB_NOT_FOUND", failure(w.orders.Job(ctx, c, order.JobInput{ID: a.AsyncID})))
		}
		require.Equal(t, "ASYNC_JOB_NOT_FOUND", failure(w.orders.Job(ctx, w.staff, order.JobInput{ID: "bat_\x00"})))
		waiting, err := w.orders.Job(ctx, w.customer, order.JobInput{ID: a.AsyncID})
		require.NoError(t, err)
		require.Equal(t, []int{12, 0}, []int{waiting.Total, waiting.Processed})

		// Several workers, as after a crash when the one that is dead still writes.
		out := w.run(a.AsyncID, 3)
		require.Equal(t, "completed", out.Status)
		require.Equal(t, []int{12, 12, 11, 1}, []int{out.Total, out.Processed, out.Succeeded, out.Failed})
		for i, r := range out.Results {
			require.Equal(t, i+1, r.Row)
			require.Equal(t, i != 4, r.Result)
		}
		require.Equal(t, "VALIDATION_FAILED", *out.Results[4].Code)
		made, err := w.orders.List(ctx, w.staff, order.ListInput{Keyset: check.Keyset{PerPage: new(100)}})
		require.NoError(t, err)
		require.Equal(t, 11, made.Total, "each order once")
		require.Equal(t, w.customer.Account.ID, *made.Orders[0].CustomerID)

		// A row that cannot be read is an error of that row.
		var typed order.BatchInput
		require.NoError(t, json.Unmarshal([]byte(`{"orders":[{"type":"D","order_ref":"T-1","packages":[{"weight":"heavy"}]},7,{"type":"D","order_ref":"T-3"}]}`), &typed))
		wrong, err := w.orders.BatchAsync(ctx, w.customer, typed)
		require.NoError(t, err)
		out = w.run(wrong.AsyncID, 1)
		require.Equal(t, []any{"completed", 3, 3}, []any{out.Status, out.Processed, out.Failed})
		require.Equal(t, map[string][]string{"packages.0.weight": {"packages[0].weight must be a number."}}, out.Results[0].Errors)
		require.Equal(t, "T-1", *out.Results[0].Ref)
		require.Equal(t, map[string][]string{"body": {"body must be an object."}}, out.Results[1].Errors)
		require.Contains(t, out.Results[2].Errors, "packages")

		// So is one with text that no database takes, which its result has nowhere.
		var zero order.BatchInput
		require.NoError(t, json.Unmarshal([]byte(`{"orders":[{"type":"D","order_ref":"Z-1","recipient":{"name":"a\u0000b"},"packages":7},{"order_ref":"\u0000"},{"order_ref":"Z-3","\u0000":"\u0000"},{"note":"\ud83d"}]}`), &zero))
		wrong, err = w.orders.BatchAsync(ctx, w.customer, zero)
		require.NoError(t, err)
		out = w.run(wrong.AsyncID, 1)
		require.Equal(t, []any{"completed", 4, 4}, []any{out.Status, out.Processed, out.Failed})
		for i, want := range []map[string][]string{
			{"recipient.name": {"recipient.name must not contain the character U+0000."}}, {"order_ref": {"order_ref must not contain the character U+0000."}},
			{"body": {"body must not contain the character U+0000."}}, {"note": {"note must be valid UTF-8."}},
		} {
			require.Equal(t, "VALIDATION_FAILED", *out.Results[i].Code)
			require.Equal(t, want, out.Results[i].Errors)
		}
		require.Equal(t, "Z-1", *out.Results[0].Ref)
		require.Nil(t, out.Results[1].Ref)

		list[0].Ref = "NEW-1"
		b, err := w.orders.BatchAsync(ctx, w.customer, order.BatchInput{Orders: list, StopOnError: true})
		require.NoError(t, err)
		out = w.run(b.AsyncID, 1)
		require.Equal(t, "failed", out.Status)
		require.Equal(t, []int{2, 1, 1}, []int{out.Processed, out.Succeeded, out.Failed})
		require.Equal(t, "DUPLICATE_ORDER_REF", *out.Results[1].Code)
		require.Regexp(t, `^This reference is used by order \d+\. `, *out.Results[1].Message)

		// An account that may no longer sign in makes no orders.
		c, err := w.orders.BatchAsync(ctx, w.other, order.BatchInput{Orders: numbered(2)})
		require.NoError(t, err)
		gone := w.other.Account
		gone.Enabled = false
		require.NoError(t, w.db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{gone}}}, nil
		}))
		out = w.run(c.AsyncID, 1)
		require.Equal(t, "ACCOUNT_DISABLED", *out.Results[0].Code)
		require.Equal(t, 2, out.Failed)

		// An employee who lost the permission, or the account's type, makes no more.
		lost, err := w.orders.BatchAsync(ctx, w.staff, order.BatchInput{Orders: numbered(2)})
		require.NoError(t, err)
		become := func(kind cloud.AccountType, permissions ...string) {
			a := w.staff.Account
			a.Type, a.Permissions = kind, permissions
			require.NoError(t, w.db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}}, nil
			}))
		}
		become(cloud.ClientEmployee, "orders:read")
		out = w.run(lost.AsyncID, 1)
		require.Equal(t, []any{2, "FORBIDDEN"}, []any{out.Failed, *out.Results[0].Code})
		become(cloud.ClientEmployee, "orders:write")
		lost, err = w.orders.BatchAsync(ctx, w.staff, order.BatchInput{Orders: numbered(2)})
		require.NoError(t, err)
		become(cloud.DriverAccount)
		out = w.run(lost.AsyncID, 1)
		require.Equal(t, []any{2, "ACCOUNT_TYPE_NOT_ALLOWED"}, []any{out.Failed, *out.Results[0].Code})
		become(cloud.ClientEmployee, "orders:write")

		// A business that was suspended since makes none either.
		d, err := w.orders.BatchAsync(ctx, w.staff, order.BatchInput{Orders: numbered(2)})
		require.NoError(t, err)
		suspend := func(at time.Time) {
			require.NoError(t, w.db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{PlatformChanges: cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{{BusinessID: w.staff.Account.BusinessID, SuspendedAt: at}}}}, nil
			}))
		}
		suspend(time.Now().UTC())
		out = w.run(d.AsyncID, 1)
		require.Equal(t, []any{2, "BUSINESS_SUSPENDED"}, []any{out.Failed, *out.Results[0].Code})
		suspend(time.Time{})
		for _, n := range []int{0, 2001} {
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.BatchAsync)(ctx, w.staff, order.BatchInput{Orders: make([]order.BatchRow, n)})))
		}
	})
}
