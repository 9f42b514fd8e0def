package order

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
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
		url := s.c.BaseURL + s.sign(f.Path, s.now.Add(fileSigned))
		b.FullURL = &url
	}
	return b
}

// proven are the statuses that a file goes with, by service and its result.
var proven = map[[2]int]cloud.OrderStatus{{1, 1}: cloud.OrderDelivered, {1, 2}: cloud.OrderDeliveryFailed, {2, 1}: cloud.OrderPickedUp, {2, 2}: cloud.OrderPickupFailed}

// Files keeps what is uploaded.
type Files interface {
	// Put keeps what body holds, up to max bytes, if it is of one of kinds. Errors:
	// cloud.ErrFileSize, cloud.ErrFileKind.
	Put(area string, body io.Reader, max int64, kinds ...string) (cloud.StoredFile, error)
	Delete(path string) error
}

const (
	maxFiles  = 100
	maxFile   = 20 << 20 // bytes
	proofArea = "proof"
)

// fileKinds are the types of proof files, and the content types of each.
var fileKinds = map[string][]string{"photo": pictures, "signature": pictures, "document": {cloud.PDF}, "video": {cloud.MP4}}

var pictures = []string{cloud.JPEG, cloud.PNG, cloud.WebP}

// AttachInput is a file that shows what happened at a stop.
type AttachInput struct {
	OrderID    cloud.OrderID `path:"order_id" json:"-"`
	File       []byte        `body:"file" doc:"JPEG, PNG or WebP of a photo or signature, PDF of a document, MP4 of a video; up to 20 MB"`
	Type       string        `json:"type" required:"true" enum:"photo,signature,document,video"`
	Service    int           `json:"service_type" required:"true" enum:"1,2" doc:"1 delivery, 2 pickup"`
	Result     int           `json:"service_status" required:"true" enum:"1,2" doc:"1 success, 2 failed"`
	CapturedAt string        `json:"captured_at" format:"moment"`
	Latitude   *float64      `json:"latitude" min:"-90" max:"90" with:"longitude"`
	Longitude  *float64      `json:"longitude" min:"-180" max:"180" with:"latitude"`
	Replaces   int64         `json:"replaces_file_id" doc:"The file that this one takes the place of; a driver's own"`
}

// FileOutput shows a proof file.
type FileOutput struct {
	Result bool     `json:"result"`
	File   FileBody `json:"file"`
}

// Attach keeps a file with an order, or in place of another. Staff may, and the
// driver who has the order. Errors: ORDER_NOT_FOUND, FILE_NOT_FOUND,
// PAYLOAD_TOO_LARGE, VALIDATION_FAILED.
func (s *Service) Attach(ctx context.Context, c cloud.Caller, in AttachInput) (out FileOutput, err error) {
	r, err := reachOf(c)
	if err == nil && r.driver == 0 {
		err = RequireStaff(c)
	}
	if err != nil {
		return out, err
	}
	if s.files == nil {
		return out, cloud.E(cloud.Unavailable, "MODULE_UNAVAILABLE")
	}
	// Nothing is written to the disk for what would be refused anyway.
	err = s.store.Look(ctx, func(v cloud.View) error {
		o, err := find(v, r, Key{OrderID: in.OrderID})
		if err != nil {
			return err
		}
		_, err = s.begin(v, c, s.time(), o).attached(in)
		return err
	})
	if err != nil {
		return out, err
	}
	stored, err := s.files.Put(proofArea, bytes.NewReader(in.File), maxFile, fileKinds[in.Type]...)
	switch {
	case errors.Is(err, cloud.ErrFileSize):
		return out, cloud.E(cloud.TooLarge, "PAYLOAD_TOO_LARGE")
	case errors.Is(err, cloud.ErrFileKind):
		f := newFields()
		f.Add("file", "Use JPEG, PNG or WebP for photos and signatures, PDF for documents and MP4 for videos.")
		return out, f.Err()
	case err != nil:
		return out, err
	}
	_, err = s.Decide(ctx, c, Key{OrderID: in.OrderID}, func(d *Decision) (err error) {
		out, err = d.attach(in, stored)
		return err
	})
	if err != nil {
		// Whether a decision was stored is not known when its answer was lost: what
		// has no row is swept.
		var refused *cloud.Error
		if errors.As(err, &refused) {
			err = errors.Join(err, s.files.Delete(stored.Path))
		}
		return FileOutput{}, err
	}
	return out, nil
}

// attached checks a file for an order and is what is kept of it.
func (d *Decision) attached(in AttachInput) (cloud.ProofFile, error) {
	b, err := d.View.Business(d.Order.BusinessID)
	if err != nil {
		return cloud.ProofFile{}, err
	}
	f := newFields()
	status := proven[[2]int{in.Service, in.Result}]
	if in.Replaces == 0 && len(d.Order.Files) >= maxFiles {
		f.Add("file", "An order has at most 100 files.")
	}
	if err := f.Err(); err != nil {
		return cloud.ProofFile{}, err
	}
	return cloud.ProofFile{Type: in.Type, Event: status.State().Code, Service: in.Service, Result: in.Result, CapturedAt: check.Moment(in.CapturedAt, b.Location()).Truncate(time.Millisecond),
		Latitude: in.Latitude, Longitude: in.Longitude, By: OperatorOf(d.Caller), AddedAt: d.Now}, nil
}

func (d *Decision) attach(in AttachInput, stored cloud.StoredFile) (out FileOutput, err error) {
	file, err := d.attached(in)
	if err != nil {
		return out, err
	}
	if file.ID, err = d.View.NewID(cloud.FileIDs); err != nil {
		return out, err
	}
	file.Path, file.MIME, file.Size = stored.Path, stored.MIME, stored.Size
	operation, action := actAttach, "added"
	if in.Replaces != 0 {
		old, err := d.drop(in.Replaces)
		if err != nil {
			return out, err
		}
		if d.Caller.Account.Type == cloud.DriverAccount && old.By.ID != d.Caller.Account.ID {
			return out, cloud.E(cloud.NotFound, "FILE_NOT_FOUND")
		}
		operation, action = actReplace, "updated"
	}
	d.Order.Files = append(slices.Clone(d.Order.Files), file)
	d.Changes.Files = append(d.Changes.Files, d.keptFile(file))
	d.AddProofEvent(action, file)
	kind := operation.Operation(d.Caller)
	if d.Caller.Account.Type == cloud.DriverAccount {
		kind = opUploaded
	}
	d.LogOperation(kind, d.Order.Status, "", nil)
	show := d.service.shower(d.View, d.Caller)
	zone, err := show.zone(d.Order.BusinessID)
	if err != nil {
		return out, err
	}
	out = FileOutput{Result: true, File: show.file(file, zone)}
	d.Changes.Answer = out
	return out, nil
}

// opUploaded is the operation of a driver's upload.
const opUploaded = 2010

func (d *Decision) keptFile(f cloud.ProofFile) cloud.KeptFile {
	return cloud.KeptFile{Path: f.Path, BusinessID: d.Order.BusinessID, OrderID: d.Order.ID, At: d.Now}
}

// DetachInput names a file of an order.
type DetachInput struct {
	OrderID cloud.OrderID `path:"order_id" json:"-"`
	FileID  int64         `path:"file_id" json:"-"`
}

// Detach takes a file away from an order; the stored file is removed some time
// later. Staff may. Errors: ORDER_NOT_FOUND, FILE_NOT_FOUND.
func (s *Service) Detach(ctx context.Context, c cloud.Caller, in DetachInput) (OrderOutput, error) {
	if err := RequireStaff(c); err != nil {
		return OrderOutput{}, err
	}
	return s.Decide(ctx, c, Key{OrderID: in.OrderID}, func(d *Decision) error {
		f, err := d.drop(in.FileID)
		if err != nil {
			return err
		}
		d.AddProofEvent("removed", f)
		d.LogOperation(actDetach.Operation(d.Caller), d.Order.Status, "", nil)
		return nil
	})
}

func (d *Decision) drop(id int64) (cloud.ProofFile, error) {
	i := slices.IndexFunc(d.Order.Files, func(f cloud.ProofFile) bool { return f.ID == id })
	if i < 0 {
		return cloud.ProofFile{}, cloud.E(cloud.NotFound, "FILE_NOT_FOUND")
	}
	f := d.Order.Files[i]
	d.Order.Files = slices.Delete(slices.Clone(d.Order.Files), i, i+1)
	d.Changes.DroppedFiles = append(d.Changes.DroppedFiles, d.keptFile(f))
	return f, nil
}
