package order

import (
	"context"
	"io/fs"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// FileBody is a proof file as answers show it (interface 4.7).
type FileBody struct {
	FileID     int64              `json:"file_id"`
	Type       string             `json:"type"` // photo, signature, document, video
	URL        string             `json:"url"`  // stored path
	FullURL    *string            `json:"full_url"`
	EventID    *int64             `json:"tracking_event_id"`
	StatusID   *cloud.OrderStatus `json:"tracking_event_status_id"`
	EventKey   *otep.Code         `json:"tracking_event_key"`
	Service    *int               `json:"service_type"`   // 1 delivery, 2 pickup
	Result     *int               `json:"service_status"` // 1 success, 2 failed
	MIME       *string            `json:"mime_type"`
	Size       *int64             `json:"size"`
	CapturedAt *string            `json:"captured_at"`
	Latitude   *float64           `json:"latitude"`
	Longitude  *float64           `json:"longitude"`
	UploadedBy cloud.Operator     `json:"uploaded_by"`
}

// fileSigned is how long an address of a file can be used.
const fileSigned = 7 * 24 * time.Hour

func (s *shower) file(f cloud.ProofFile, zone *time.Location) FileBody {
	b := FileBody{FileID: f.ID, Type: f.Type, URL: f.Path, EventKey: cloud.OrNull(f.Event), Service: cloud.OrNull(f.Service), Result: cloud.OrNull(f.Result),
		MIME: cloud.OrNull(f.MIME), Size: cloud.OrNull(f.Size), CapturedAt: cloud.Stamp(f.CapturedAt, zone), Latitude: f.Latitude, Longitude: f.Longitude, UploadedBy: f.By}
	if status, ok := proven[[2]int{f.Service, f.Result}]; ok {
		b.StatusID = &status
	}
	if s.sign != nil {
		url := s.sign(f.Path, s.now.Add(fileSigned))
		b.FullURL = &url
	}
	return b
}

// proven are the statuses that a file goes with, by service and its result.
var proven = map[[2]int]cloud.OrderStatus{{1, 1}: cloud.OrderDelivered, {1, 2}: cloud.OrderDeliveryFailed, {2, 1}: cloud.OrderPickedUp, {2, 2}: cloud.OrderPickupFailed}

// AttachInput names a stored file that shows what happened at a stop.
type AttachInput struct {
	OrderID    cloud.OrderID `path:"order_id" json:"-"`
	Type       string        `json:"type"`
	Path       string        `json:"url"`            // stored path, relative
	Service    int           `json:"service_type"`   // 1 delivery, 2 pickup
	Result     int           `json:"service_status"` // 1 success, 2 failed
	MIME       string        `json:"mime_type"`
	Size       int64         `json:"size"` // bytes
	CapturedAt string        `json:"captured_at"`
	Latitude   *float64      `json:"latitude"`
	Longitude  *float64      `json:"longitude"`
	Replaces   int64         `json:"replaces_file_id"` // 0: none
}

const maxFiles = 100

// Attach keeps a file with an order, or in place of another. Staff may. Errors:
// ORDER_NOT_FOUND, FILE_NOT_FOUND, VALIDATION_FAILED.
func (s *Service) Attach(ctx context.Context, c cloud.Caller, in AttachInput) (OrderOutput, error) {
	if err := staff(c); err != nil {
		return OrderOutput{}, err
	}
	return s.decide(ctx, c, Key{OrderID: in.OrderID}, func(w *work) error { return w.attach(in) })
}

func (w *work) attach(in AttachInput) error {
	b, err := w.v.Business(w.o.BusinessID)
	if err != nil {
		return err
	}
	f := fields{}
	f.oneOf("type", in.Type, "photo", "signature", "document", "video")
	f.required("url", in.Path, 512)
	if in.Path != "" && (!fs.ValidPath(in.Path) || in.Path == ".") {
		f.add("url", "This is none of the values allowed here.")
	}
	status, known := proven[[2]int{in.Service, in.Result}]
	if !known {
		f.add("service_type", "This is none of the values allowed here.")
	}
	f.text("mime_type", in.MIME, 127)
	if in.Size < 0 || len(w.o.Files) >= maxFiles {
		f.add("size", "The value is out of range.")
	}
	f.place("", in.Latitude, in.Longitude)
	captured := f.moment("captured_at", in.CapturedAt, b.Location())
	if err := f.err(); err != nil {
		return err
	}
	id, err := w.v.NewID(cloud.FileIDs)
	if err != nil {
		return err
	}
	operation, action := actAttach, "added"
	if in.Replaces != 0 {
		if _, err := w.drop(in.Replaces); err != nil {
			return err
		}
		operation, action = actReplace, "updated"
	}
	w.o.Files = append(slices.Clone(w.o.Files), cloud.ProofFile{ID: id, Type: in.Type, Path: in.Path, MIME: in.MIME, Size: in.Size, Event: status.State().Code,
		Service: in.Service, Result: in.Result, CapturedAt: captured.Truncate(time.Millisecond), Latitude: in.Latitude, Longitude: in.Longitude, By: operator(w.c), AddedAt: w.now})
	w.tellProof(action, w.o.Files[len(w.o.Files)-1])
	w.did(operation.by(w.c), w.o.Status, "", nil)
	return nil
}

// DetachInput names a file of an order.
type DetachInput struct {
	OrderID cloud.OrderID `path:"order_id" json:"-"`
	FileID  int64         `path:"file_id" json:"-"`
}

// Detach takes a file away from an order; the stored file stays where it is.
// Staff may. Errors: ORDER_NOT_FOUND, FILE_NOT_FOUND.
func (s *Service) Detach(ctx context.Context, c cloud.Caller, in DetachInput) (OrderOutput, error) {
	if err := staff(c); err != nil {
		return OrderOutput{}, err
	}
	return s.decide(ctx, c, Key{OrderID: in.OrderID}, func(w *work) error {
		f, err := w.drop(in.FileID)
		if err != nil {
			return err
		}
		w.tellProof("removed", f)
		w.did(actDetach.by(w.c), w.o.Status, "", nil)
		return nil
	})
}

func (w *work) drop(id int64) (cloud.ProofFile, error) {
	i := slices.IndexFunc(w.o.Files, func(f cloud.ProofFile) bool { return f.ID == id })
	if i < 0 {
		return cloud.ProofFile{}, cloud.E(cloud.NotFound, "FILE_NOT_FOUND")
	}
	f := w.o.Files[i]
	w.o.Files = slices.Delete(slices.Clone(w.o.Files), i, i+1)
	return f, nil
}
