package order_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/interception"
	"github.com/postern-io/postern/cloud/order/proof"
)

func signed(path string, until time.Time) string {
	return "/files/" + path + "?until=" + until.Format(time.DateOnly)
}

// shelf keeps files in a folder; with names set, which golden files need, it
// only says so.
type shelf struct {
	*object.Files
	names bool
	n     int
}

func (s *shelf) Put(ctx context.Context, area string, body io.Reader, max int64, kinds ...string) (cloud.StoredFile, error) {
	if !s.names {
		return s.Files.Put(ctx, area, body, max, kinds...)
	}
	s.n++
	return cloud.StoredFile{Path: fmt.Sprintf("%s/%d.jpg", area, s.n), MIME: cloud.JPEG, Size: 184220}, nil
}

func photo() []byte {
	var b bytes.Buffer
	_ = jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 9, 7)), nil) // to memory
	return b.Bytes()
}

// rows are the stored paths that are needed.
func (w *world) rows() (out []string) {
	for i := range 256 {
		some, err := w.db.ListKeptFiles(w.t.Context(), fmt.Sprintf("proof/%02x", i))
		require.NoError(w.t, err)
		out = append(out, some...)
	}
	return out
}

// there says whether a file can be read.
func (w *world) there(path string) bool {
	f, err := w.files.Get(w.t.Context(), path)
	if err == nil {
		require.NoError(w.t, f.Close())
	}
	return err == nil
}

func TestProofFiles(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx, o := t.Context(), w.ref("PO-1")
		lat, far := 43.6, 200.0
		in := proof.AttachInput{OrderID: o.OrderID, Type: "photo", File: photo(), Service: 1, Result: 1, CapturedAt: "2026-11-20T10:00:00-05:00", Latitude: &lat, Longitude: &lat}
		out, err := proof.New(w.orders, w.files).Attach(ctx, w.staff, in)
		require.NoError(t, err)
		f := out.File
		require.Equal(t, "delivered", string(*f.EventKey))
		require.Equal(t, cloud.OrderDelivered, *f.StatusID)
		require.Equal(t, "image/jpeg", *f.MIME)
		require.EqualValues(t, len(in.File), *f.Size)
		require.Equal(t, "2026-11-20T10:00:00-05:00", *f.CapturedAt)
		require.Equal(t, w.staff.Account.ID, f.UploadedBy.ID)
		require.Equal(t, "https://acme.example/files/"+f.URL+"?until="+time.Now().UTC().AddDate(0, 0, 7).Format(time.DateOnly), *f.FullURL)
		require.Equal(t, []order.FileBody{f}, w.find(o.OrderID).ProofDetail)
		require.True(t, w.there(f.URL))
		require.Equal(t, []string{f.URL}, w.rows())

		in.Replaces = f.FileID
		out, err = proof.New(w.orders, w.files).Attach(ctx, w.staff, in)
		require.NoError(t, err)
		require.Len(t, w.find(o.OrderID).ProofDetail, 1)
		require.NotEqual(t, f.FileID, out.File.FileID)
		require.Equal(t, []string{out.File.URL}, w.rows(), "what was replaced is needed no more")
		require.Equal(t, "FILE_NOT_FOUND", failure(proof.New(w.orders, w.files).Attach(ctx, w.staff, in)), "it is replaced already")
		_, err = proof.New(w.orders, w.files).Detach(ctx, w.staff, proof.DetachInput{OrderID: o.OrderID, FileID: out.File.FileID})
		require.NoError(t, err)
		require.Empty(t, w.find(o.OrderID).ProofFiles)
		require.Empty(t, w.rows())
		require.Equal(t, "FILE_NOT_FOUND", failure(proof.New(w.orders, w.files).Detach(ctx, w.staff, proof.DetachInput{OrderID: o.OrderID, FileID: 1})))
		require.Equal(t, []string{"6001:0>1", "3050:1>1", "3051:1>1", "3052:1>1"}, w.did(o.OrderID))

		in.Replaces = 0
		for name, spoil := range map[string]func(in *proof.AttachInput){
			"no picture": func(in *proof.AttachInput) { in.File = []byte("<html>") }, "another type": func(in *proof.AttachInput) { in.Type = "document" },
			"no type": func(in *proof.AttachInput) { in.Type = "song" }, "no service": func(in *proof.AttachInput) { in.Service = 3 },
			"no moment": func(in *proof.AttachInput) { in.CapturedAt = "noon" }, "nowhere": func(in *proof.AttachInput) { in.Longitude = &far },
		} {
			bad := in
			spoil(&bad)
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(proof.New(w.orders, w.files).Attach)(ctx, w.staff, bad)), name)
		}
		long := in
		long.File = append(photo(), make([]byte, 20<<20)...)
		require.Equal(t, "PAYLOAD_TOO_LARGE", failure(proof.New(w.orders, w.files).Attach(ctx, w.staff, long)))
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(proof.New(w.orders, w.files).Attach(ctx, w.customer, in)))
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(proof.New(w.orders, w.files).Attach(ctx, w.broker, in)))
		require.Equal(t, "ORDER_NOT_FOUND", failure(proof.New(w.orders, w.files).Attach(ctx, w.stranger, in)))
		require.Equal(t, "ORDER_NOT_FOUND", failure(proof.New(w.orders, w.files).Attach(ctx, w.driver, in)), "of somebody else's order")
		require.Empty(t, w.rows())
	})
}

// A file from before events were kept with files goes with none, and says so.
func TestAFileOfNoEvent(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		o := w.stored(w.ref("PO-1").OrderID)
		o.Files = []cloud.ProofFile{{ID: 7, Type: "photo", Path: "proof/7.jpg"}}
		w.write(o)
		raw, err := json.Marshal(w.find(o.ID).ProofDetail[0])
		require.NoError(t, err)
		var f map[string]any
		require.NoError(t, json.Unmarshal(raw, &f))
		require.Equal(t, []any{7.0, "photo", "proof/7.jpg"}, []any{f["file_id"], f["type"], f["url"]})
		for _, name := range []string{"tracking_event_id", "tracking_event_status_id", "tracking_event_key", "service_type", "service_status"} {
			require.Contains(t, f, name)
			require.Nil(t, f[name], name)
		}
	})
}

// A driver uploads to orders that it has, and replaces no file but its own.
func TestDriversUploadProof(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx, o := t.Context(), w.ref("PO-1").OrderID
		in := proof.AttachInput{OrderID: o, Type: "photo", File: photo(), Service: 1, Result: 1}
		office, err := proof.New(w.orders, w.files).Attach(ctx, w.staff, in)
		require.NoError(t, err)
		require.NoError(t, w.orders.Move(ctx, w.staff, order.MoveInput{BusinessID: 42, OrderID: o, To: cloud.OrderDriverAssigned, Trigger: order.AssignDriver, Operation: 3012,
			Set: func(o *cloud.Order) { o.DriverID = w.driver.Account.ID }}))
		mine, err := proof.New(w.orders, w.files).Attach(ctx, w.driver, in)
		require.NoError(t, err)
		require.Equal(t, "driver", mine.File.UploadedBy.Type)
		require.Contains(t, w.did(o), "2010:11>11")
		in.Replaces = office.File.FileID
		require.Equal(t, "FILE_NOT_FOUND", failure(proof.New(w.orders, w.files).Attach(ctx, w.driver, in)))
		in.Replaces = mine.File.FileID
		_, err = proof.New(w.orders, w.files).Attach(ctx, w.driver, in)
		require.NoError(t, err)
		require.Len(t, w.rows(), 2)
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(proof.New(w.orders, w.files).Detach(ctx, w.driver, proof.DetachInput{OrderID: o, FileID: mine.File.FileID})))
	})
}

// An order that is deleted takes its files with it: their rows at once, what is
// on the disk when it is swept.
func TestFilesGoWithTheirOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx, o := t.Context(), w.ref("PO-1").OrderID
		out, err := proof.New(w.orders, w.files).Attach(ctx, w.staff, proof.AttachInput{OrderID: o, Type: "signature", File: photo(), Service: 2, Result: 2})
		require.NoError(t, err)
		require.Len(t, w.rows(), 1)
		_, err = w.orders.Delete(ctx, w.admin, order.OrderRef{OrderID: o})
		require.NoError(t, err)
		require.Empty(t, w.rows())
		require.True(t, w.there(out.File.URL))
	})
}

// A file whose decision cannot be stored is not left behind.
func TestARefusedUploadLeavesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx, o := t.Context(), w.ref("PO-1").OrderID
		gone := &vanishing{Files: w.files.Files, then: func() {
			_, err := w.orders.Delete(ctx, w.admin, order.OrderRef{OrderID: o})
			require.NoError(t, err)
		}}
		s := proof.New(order.New(order.Config{Store: w.db}), gone)
		require.Equal(t, "ORDER_NOT_FOUND", failure(s.Attach(ctx, w.staff, proof.AttachInput{OrderID: o, Type: "photo", File: photo(), Service: 1, Result: 1})))
		require.NotEmpty(t, gone.path)
		require.False(t, w.there(gone.path))
		none, err := w.files.Sweep(ctx, func(context.Context, string) ([]string, error) { return nil, nil })
		require.NoError(t, err)
		require.Zero(t, none)
	})
}

// vanishing does something when a file was just put.
type vanishing struct {
	*object.Files
	then func()
	path string
}

func (v *vanishing) Put(ctx context.Context, area string, body io.Reader, max int64, kinds ...string) (cloud.StoredFile, error) {
	s, err := v.Files.Put(ctx, area, body, max, kinds...)
	v.path = s.Path
	v.then()
	return s, err
}

func TestDetailShowsWhatIsAskedFor(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		o := w.create(w.customer, input(cloud.DeliveryOrder)).OrderID
		key := order.Key{OrderID: o}
		_, err := w.orders.Hold(ctx, w.staff, order.ReasonInput{OrderID: o, Reason: "Waits for customs"})
		require.NoError(t, err)
		bare, err := w.orders.Detail(ctx, w.staff, order.DetailInput{Key: key, Include: []string{"packages", "proof", "price"}})
		require.NoError(t, err)
		require.Equal(t, order.DetailOutput{OrderOutput: bare.OrderOutput}, bare)
		all := []string{"tracking", "operation_events", "interception"}
		out, err := w.orders.Detail(ctx, w.staff, order.DetailInput{Key: key, Include: all})
		require.NoError(t, err)
		require.Equal(t, "information_submitted", string(*out.Tracking.Current))
		require.NotEmpty(t, out.Tracking.Events[0].StatusLabel)
		require.Len(t, out.Operations, 2)
		require.Equal(t, "Waits for customs", *out.Operations[1].Note)
		require.NotNil(t, out.Interceptions)
		require.Empty(t, out.Interceptions)
		mine, err := w.orders.Detail(ctx, w.customer, order.DetailInput{Key: key, Include: all})
		require.NoError(t, err)
		require.Nil(t, mine.Operations[1].Note, "what staff wrote")
		for _, bad := range []string{"", "events", "Tracking", "order"} {
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.Detail)(ctx, w.staff, order.DetailInput{Key: key, Include: []string{"tracking", bad}})))
		}
		require.Equal(t, "ORDER_NOT_FOUND", failure(w.orders.Detail(ctx, w.other, order.DetailInput{Key: key, Include: all})))
		require.Equal(t, "ORDER_NOT_FOUND", failure(w.orders.Detail(ctx, w.stranger, order.DetailInput{Key: key, Include: all})))
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(w.orders.Detail(ctx, w.driver, order.DetailInput{Key: key, Include: all})))
	})
}

// Every kind of order that needs attention is listed once, under its own type,
// with when and why; what is done or in time is not.
func TestExceptions(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		zone, err := time.LoadLocation("America/Toronto")
		require.NoError(t, err)
		today := time.Now().In(zone)
		day := func(n int) string { return today.AddDate(0, 0, n).Format(time.DateOnly) }
		made := map[string]cloud.OrderID{}
		add := func(name, date string, status cloud.OrderStatus) {
			in := input(cloud.DeliveryOrder)
			in.Ref = name
			o := w.stored(w.create(w.customer, in).OrderID)
			o.Status, o.ScheduledDate = status, date
			made[name] = o.ID
			w.write(o)
		}
		add("on its way in time", day(0), cloud.OrderOutForDelivery)
		add("late", day(-2), cloud.OrderOutForDelivery)
		add("late long ago", day(-30), cloud.OrderNew)
		add("nobody's", day(0), cloud.OrderNew)
		add("tomorrow's", day(1), cloud.OrderNew)
		add("done late", day(-2), cloud.OrderDelivered)
		add("in a locker", day(-2), cloud.OrderInLocker)
		add("failed and late", day(-3), cloud.OrderDeliveryFailed)
		add("some", "", cloud.OrderPartlyDelivered)
		add("refused", "", cloud.OrderRejected)
		add("not fetched", "", cloud.OrderPickupFailed)
		held := w.ref("held").OrderID
		_, err = w.orders.Hold(ctx, w.staff, order.ReasonInput{OrderID: held, Reason: "Waits for customs"})
		require.NoError(t, err)
		stopped := w.ref("stopped").OrderID
		w.intercept(w.staff, interception.InterceptInput{OrderID: stopped, Outcome: "return_to_sender", Reason: "Fraud check"})
		list := func(c cloud.Caller, in order.ExceptionsInput) map[string]order.ExceptionBody {
			t.Helper()
			out, err := w.orders.Exceptions(ctx, c, in)
			require.NoError(t, err)
			require.Equal(t, len(out.Exceptions), out.Total)
			all := map[string]order.ExceptionBody{}
			for _, e := range out.Exceptions {
				all[*e.Ref] = e
			}
			require.Len(t, all, out.Total, "once each")
			return all
		}
		got := list(w.staff, order.ExceptionsInput{})
		types := map[string]string{}
		for ref, e := range got {
			types[ref] = e.Type
		}
		require.Equal(t, map[string]string{"late": "overdue", "nobody's": "unassigned", "failed and late": "delivery_failed", "some": "delivery_failed", "refused": "delivery_failed",
			"not fetched": "pickup_failed", "held": "on_hold", "stopped": "intercepted"}, types)
		require.Equal(t, "Waits for customs", *got["held"].Reason)
		require.Equal(t, "Fraud check", *got["stopped"].Reason)
		require.Equal(t, day(-1)+"T00:00:00", (*got["late"].Since)[:19], "the end of its day")
		require.Contains(t, got["held"].Actions, "release_order")
		require.Equal(t, []string{"get_order_detail"}, got["refused"].Actions, "it has ended")

		require.Len(t, list(w.staff, order.ExceptionsInput{Types: []string{"overdue", "on_hold"}}), 2)
		require.Contains(t, list(w.staff, order.ExceptionsInput{Types: []string{"overdue"}, DateFrom: day(-60)}), "late long ago")
		require.Empty(t, list(w.staff, order.ExceptionsInput{DateFrom: day(1), DateTo: day(2)}))
		require.Len(t, list(w.staff, order.ExceptionsInput{CustomerID: w.customer.Account.ID}), 6)
		mine := list(w.customer, order.ExceptionsInput{})
		require.Len(t, mine, 6)
		require.Equal(t, []string{"get_order_detail"}, mine["late"].Actions, "staff's tools are not a customer's")
		for _, c := range []cloud.Caller{w.other, w.broker, w.stranger} {
			require.Empty(t, list(c, order.ExceptionsInput{}))
		}
		require.Empty(t, list(w.customer, order.ExceptionsInput{CustomerID: w.other.Account.ID}))

		var pages []string
		for page := 1; page <= 5; page++ {
			out, err := w.orders.Exceptions(ctx, w.staff, order.ExceptionsInput{Keyset: check.Keyset{Page: new(page), PerPage: new(2)}})
			require.NoError(t, err)
			require.Equal(t, 8, out.Total)
			for _, e := range out.Exceptions {
				pages = append(pages, *e.Ref)
			}
		}
		require.Len(t, pages, 8)
		require.Equal(t, "late nobody's", strings.Join(pages[6:], " "), "what stopped comes first")

		for _, bad := range []order.ExceptionsInput{{Types: []string{"cancel_failed"}}, {DateFrom: "soon"}, {DateFrom: day(2), DateTo: day(1)}, {Keyset: check.Keyset{PerPage: new(201)}}, {Keyset: check.Keyset{Page: new(-1)}}} {
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.Exceptions)(ctx, w.staff, bad)))
		}
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(w.orders.Exceptions(ctx, w.driver, order.ExceptionsInput{})))
		require.Equal(t, "UNAUTHENTICATED", failure(w.orders.Exceptions(ctx, cloud.Caller{}, order.ExceptionsInput{})))
	})
}

func (w *world) stored(id cloud.OrderID) (o cloud.Order) {
	w.t.Helper()
	require.NoError(w.t, w.db.Look(w.t.Context(), func(v cloud.View) (err error) { o, err = v.Order(42, id); return err }))
	return o
}

func (w *world) write(o cloud.Order) {
	w.t.Helper()
	require.NoError(w.t, w.db.Decide(w.t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}}, nil
	}))
}
