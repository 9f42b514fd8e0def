// Package proof adds files to orders that show what happened at a stop: photos,
// signatures, documents and videos (interface 4.7). The bytes go to object storage,
// the row to the order. Staff add and remove any, a driver adds to orders that it
// has. Safe for concurrent use.
package proof

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/order"
)

// Service is the feature.
type Service struct {
	orders *order.Service
	files  Files
}

// New builds the service; it starts nothing. With nil files none are taken.
func New(orders *order.Service, files Files) *Service { return &Service{orders: orders, files: files} }

// Channels of the operations.
var (
	actionAttach  = order.Action{Office: 3050, API: 3050}
	actionReplace = order.Action{Office: 3051, API: 3051}
	actionDetach  = order.Action{Office: 3052, API: 3052}
)

// Files keeps what is uploaded.
type Files interface {
	// Put keeps what body holds, up to max bytes, if it is of one of kinds. Errors:
	// cloud.ErrFileSize, cloud.ErrFileKind.
	Put(ctx context.Context, area string, body io.Reader, max int64, kinds ...string) (cloud.StoredFile, error)
	Delete(ctx context.Context, path string) error
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
	Result bool           `json:"result"`
	File   order.FileBody `json:"file"`
}

// Attach keeps a file with an order, or in place of another. Staff may, and the
// driver who has the order. Errors: ORDER_NOT_FOUND, FILE_NOT_FOUND,
// PAYLOAD_TOO_LARGE, VALIDATION_FAILED.
func (s *Service) Attach(ctx context.Context, c cloud.Caller, in AttachInput) (out FileOutput, err error) {
	if c.Account.Type != cloud.DriverAccount {
		if err := order.RequireStaff(c); err != nil {
			return out, err
		}
	}
	if s.files == nil {
		return out, cloud.E(cloud.Unavailable, "MODULE_UNAVAILABLE")
	}
	// Nothing is written to the disk for what would be refused anyway.
	err = s.orders.Store().Look(ctx, func(v cloud.View) error {
		o, err := order.FindIn(v, c, order.Key{OrderID: in.OrderID})
		if err != nil {
			return err
		}
		_, err = describe(v, c, o, in)
		return err
	})
	if err != nil {
		return out, err
	}
	stored, err := s.files.Put(ctx, proofArea, bytes.NewReader(in.File), maxFile, fileKinds[in.Type]...)
	switch {
	case errors.Is(err, cloud.ErrFileSize):
		return out, cloud.E(cloud.TooLarge, "PAYLOAD_TOO_LARGE")
	case errors.Is(err, cloud.ErrFileKind):
		f := check.Fields{}
		f.Add("file", "Use JPEG, PNG or WebP for photos and signatures, PDF for documents and MP4 for videos.")
		return out, f.Err()
	case err != nil:
		return out, err
	}
	_, err = s.orders.Decide(ctx, c, order.Key{OrderID: in.OrderID}, func(d *order.Decision) (err error) {
		out, err = attach(d, in, stored)
		return err
	})
	if err != nil {
		// Whether a decision was stored is not known when its answer was lost: what
		// has no row is swept.
		var refused *cloud.Error
		if errors.As(err, &refused) {
			err = errors.Join(err, s.files.Delete(ctx, stored.Path))
		}
		return FileOutput{}, err
	}
	return out, nil
}

// describe checks a file for an order and is what the order keeps of it.
func describe(v cloud.View, c cloud.Caller, o cloud.Order, in AttachInput) (cloud.ProofFile, error) {
	b, err := v.Business(o.BusinessID)
	if err != nil {
		return cloud.ProofFile{}, err
	}
	f := check.Fields{}
	status := order.ProvenStatus(in.Service, in.Result)
	if in.Replaces == 0 && len(o.Files) >= maxFiles {
		f.Add("file", "An order has at most 100 files.")
	}
	if err := f.Err(); err != nil {
		return cloud.ProofFile{}, err
	}
	return cloud.ProofFile{Type: in.Type, Event: status.State().Code, Service: in.Service, Result: in.Result, CapturedAt: check.Moment(in.CapturedAt, b.Location()).Truncate(time.Millisecond),
		Latitude: in.Latitude, Longitude: in.Longitude, By: order.OperatorOf(c)}, nil
}

// attach adds the stored file to the order, or puts it in place of another.
func attach(d *order.Decision, in AttachInput, stored cloud.StoredFile) (out FileOutput, err error) {
	file, err := describe(d.View, d.Caller, d.Order, in)
	if err != nil {
		return out, err
	}
	if file.ID, err = d.View.NewID(cloud.FileIDs); err != nil {
		return out, err
	}
	file.AddedAt, file.Path, file.MIME, file.Size = d.Now, stored.Path, stored.MIME, stored.Size
	operation, action := actionAttach, "added"
	if in.Replaces != 0 {
		old, err := d.RemoveFile(in.Replaces)
		if err != nil {
			return out, err
		}
		if d.Caller.Account.Type == cloud.DriverAccount && old.By.ID != d.Caller.Account.ID {
			return out, cloud.E(cloud.NotFound, "FILE_NOT_FOUND")
		}
		operation, action = actionReplace, "updated"
	}
	d.AddFile(file, action)
	kind := operation.Operation(d.Caller)
	if d.Caller.Account.Type == cloud.DriverAccount {
		kind = opUploaded
	}
	d.LogOperation(kind, d.Order.Status, "", nil)
	out.Result = true
	out.File, err = d.ShowFile(file)
	d.Changes.Answer = out
	return out, err
}

// opUploaded is the operation of a driver's upload.
const opUploaded = 2010

// DetachInput names a file of an order.
type DetachInput struct {
	OrderID cloud.OrderID `path:"order_id" json:"-"`
	FileID  int64         `path:"file_id" json:"-"`
}

// Detach takes a file away from an order; the stored file is removed some time
// later. Staff may. Errors: ORDER_NOT_FOUND, FILE_NOT_FOUND.
func (s *Service) Detach(ctx context.Context, c cloud.Caller, in DetachInput) (order.OrderOutput, error) {
	if err := order.RequireStaff(c); err != nil {
		return order.OrderOutput{}, err
	}
	return s.orders.Decide(ctx, c, order.Key{OrderID: in.OrderID}, func(d *order.Decision) error {
		f, err := d.RemoveFile(in.FileID)
		if err != nil {
			return err
		}
		d.AddProofRemoved(f)
		d.LogOperation(actionDetach.Operation(d.Caller), d.Order.Status, "", nil)
		return nil
	})
}
