package order_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
)

func signed(path string, until time.Time) string {
	return "https://files.example/" + path + "?until=" + until.Format(time.DateOnly)
}

func TestProofFiles(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx, o := t.Context(), w.ref("PO-1")
		lat, far := 43.6, 200.0
		in := order.AttachInput{OrderID: o.OrderID, Type: "photo", Path: "proof/2026/door.jpg", Service: 1, Result: 1, MIME: "image/jpeg", Size: 4096,
			CapturedAt: "2026-11-20T10:00:00-05:00", Latitude: &lat, Longitude: &lat}
		out, err := w.orders.Attach(ctx, w.staff, in)
		require.NoError(t, err)
		f := out.Order.ProofDetail[0]
		require.Equal(t, "delivered", string(*f.EventKey))
		require.Equal(t, cloud.OrderDelivered, *f.StatusID)
		require.Equal(t, "proof/2026/door.jpg", f.URL)
		require.Equal(t, "2026-11-20T10:00:00-05:00", *f.CapturedAt)
		require.Equal(t, w.staff.Account.ID, f.UploadedBy.ID)
		require.Equal(t, []string{*f.FullURL}, out.Order.ProofFiles)
		require.Contains(t, *f.FullURL, time.Now().UTC().AddDate(0, 0, 7).Format(time.DateOnly))
		got := w.find(o.OrderID)
		require.Equal(t, out.Order.ProofDetail, got.ProofDetail)

		in.Replaces, in.Path = f.FileID, "proof/2026/better.jpg"
		out, err = w.orders.Attach(ctx, w.staff, in)
		require.NoError(t, err)
		require.Len(t, out.Order.ProofDetail, 1)
		require.NotEqual(t, f.FileID, out.Order.ProofDetail[0].FileID)
		require.Equal(t, "FILE_NOT_FOUND", failure(w.orders.Attach(ctx, w.staff, in)), "it is replaced already")
		_, err = w.orders.Detach(ctx, w.staff, order.DetachInput{OrderID: o.OrderID, FileID: out.Order.ProofDetail[0].FileID})
		require.NoError(t, err)
		require.Empty(t, w.find(o.OrderID).ProofFiles)
		require.Equal(t, "FILE_NOT_FOUND", failure(w.orders.Detach(ctx, w.staff, order.DetachInput{OrderID: o.OrderID, FileID: 1})))
		require.Equal(t, []string{"6001:0>1", "3050:1>1", "3051:1>1", "3052:1>1"}, w.did(o.OrderID))

		in.Replaces = 0
		for _, spoil := range []func(in *order.AttachInput){
			func(in *order.AttachInput) { in.Path = "../etc/passwd" }, func(in *order.AttachInput) { in.Path = "/etc/passwd" }, func(in *order.AttachInput) { in.Path = "" },
			func(in *order.AttachInput) { in.Type = "song" }, func(in *order.AttachInput) { in.Service = 3 }, func(in *order.AttachInput) { in.Size = -1 },
			func(in *order.AttachInput) { in.CapturedAt = "noon" }, func(in *order.AttachInput) { in.Longitude = &far },
		} {
			bad := in
			spoil(&bad)
			require.Equal(t, "VALIDATION_FAILED", failure(w.orders.Attach(ctx, w.staff, bad)))
		}
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(w.orders.Attach(ctx, w.customer, in)))
		require.Equal(t, "ORDER_NOT_FOUND", failure(w.orders.Attach(ctx, w.stranger, in)))
	})
}
