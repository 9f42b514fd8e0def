package order

import (
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
		url := s.c.BaseURL + s.sign(f.Path, s.now.Add(fileSigned))
		b.FullURL = &url
	}
	return b
}

// proven are the statuses that a file goes with, by service and its result.
var proven = map[[2]int]cloud.OrderStatus{{1, 1}: cloud.OrderDelivered, {1, 2}: cloud.OrderDeliveryFailed, {2, 1}: cloud.OrderPickedUp, {2, 2}: cloud.OrderPickupFailed}

// ProvenStatus is the status that a file goes with, by service (1 delivery, 2
// pickup) and its result (1 success, 2 failed); 0 for other numbers.
func ProvenStatus(service, result int) cloud.OrderStatus { return proven[[2]int{service, result}] }

// ShowFile is a proof file as answers show it.
func (d *Decision) ShowFile(f cloud.ProofFile) (FileBody, error) {
	show := d.service.shower(d.View, d.Caller)
	zone, err := show.zone(d.Order.BusinessID)
	if err != nil {
		return FileBody{}, err
	}
	return show.file(f, zone), nil
}

// AddFile adds a proof file to the order; action is what its event says: added, or
// updated.
func (d *Decision) AddFile(f cloud.ProofFile, action string) {
	d.Order.Files = append(slices.Clone(d.Order.Files), f)
	d.Changes.Files = append(d.Changes.Files, d.keptFile(f))
	d.addProofEvent(action, f)
}

// RemoveFile takes a proof file out of the order. The stored file is removed later.
// Error: FILE_NOT_FOUND.
func (d *Decision) RemoveFile(id int64) (cloud.ProofFile, error) {
	i := slices.IndexFunc(d.Order.Files, func(f cloud.ProofFile) bool { return f.ID == id })
	if i < 0 {
		return cloud.ProofFile{}, cloud.E(cloud.NotFound, "FILE_NOT_FOUND")
	}
	f := d.Order.Files[i]
	d.Order.Files = slices.Delete(slices.Clone(d.Order.Files), i, i+1)
	d.Changes.DroppedFiles = append(d.Changes.DroppedFiles, d.keptFile(f))
	return f, nil
}

// AddProofRemoved adds the event that a proof file was removed.
func (d *Decision) AddProofRemoved(f cloud.ProofFile) { d.addProofEvent("removed", f) }

// keptFile is the row that keeps a stored file from being swept.
func (d *Decision) keptFile(f cloud.ProofFile) cloud.KeptFile {
	return cloud.KeptFile{Path: f.Path, BusinessID: d.Order.BusinessID, OrderID: d.Order.ID, At: d.Now}
}
