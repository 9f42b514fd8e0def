package locker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Bounds of photos of devices.
const (
	// MaxPhoto is how many bytes one may have.
	MaxPhoto  = 1 << 20
	photoArea = "photo"
	keepPhoto = historyLife // and its file: as long as the openings beside which it is shown
	// Photos that were taken so long before and after an exception was opened are evidence of it.
	photoBefore, photoAfter = time.Hour, 24 * time.Hour
	// photosRead are the newest photos of a compartment, and of a device as a whole, among which those
	// of an exception are looked for.
	photosRead = 200
)

// ReportedPhoto is a photo that a device sends.
type ReportedPhoto struct {
	Name      string // the device's own
	Door      uint   // 0: of no compartment alone
	OpeningID string
	TakenAt   time.Time
}

// StorePhoto keeps the file of a photo, a JPEG, PNG or WebP picture of at most MaxPhoto bytes.
// drop removes it again. Errors: cloud.ErrFileKind, cloud.ErrFileSize, MODULE_UNAVAILABLE.
func (s *Service) StorePhoto(ctx context.Context, file []byte) (path string, drop func() error, err error) {
	if s.cfg.Files == nil {
		return "", nil, cloud.E(cloud.Unavailable, "MODULE_UNAVAILABLE")
	}
	stored, err := s.cfg.Files.Put(ctx, photoArea, bytes.NewReader(file), MaxPhoto, cloud.JPEG, cloud.PNG, cloud.WebP)
	return stored.Path, func() error { return s.cfg.Files.Delete(context.WithoutCancel(ctx), stored.Path) }, err
}

// ReportPhoto takes a photo whose file is kept. One with the name of an earlier one of the same
// device changes nothing: used is false, and its file is not needed.
func (w reports) ReportPhoto(x ReportedPhoto, path string) (id cloud.DevicePhotoID, used bool, err error) {
	name := strconv.FormatInt(int64(w.device.ID), 10) + ":" + x.Name
	before, err := cloud.Find(w.v, cloud.DevicePhoto{Name: name})
	if err == nil || !errors.Is(err, cloud.ErrNotFound) {
		return before.ID, false, err
	}
	n, err := w.v.NewID(cloud.DevicePhotoIDs)
	if err != nil {
		return 0, false, err
	}
	p := cloud.DevicePhoto{DeviceID: w.device.ID, Name: name, Door: cmp.Or(int64(x.Door), cloud.WholeDevice), OpeningID: x.OpeningID, TakenAt: x.TakenAt, Path: path}
	p.Begin(n, w.device.BusinessID, w.received)
	w.ch.Rows = append(w.ch.Rows, p)
	w.ch.Files = append(w.ch.Files, cloud.KeptFile{Path: path, BusinessID: w.device.BusinessID, At: w.received})
	return p.ID, true, nil
}

// PhotoBody is a photo of a device.
type PhotoBody struct {
	ID      cloud.DevicePhotoID `json:"photo_id"`
	TakenAt *string             `json:"taken_at" doc:"By the device's clock"`
	URL     string              `json:"url" doc:"Good for an hour"`
}

// photosOf are the photos of an exception's compartment, and of its device as a whole, about the
// time at which it was opened, the newest first.
func (s registry) photosOf(v cloud.View, e cloud.Exception, l *time.Location) ([]PhotoBody, error) {
	out := []PhotoBody{}
	if s.cfg.SignFile == nil {
		return out, nil
	}
	cells, err := v.Compartments(e.DeviceID)
	if err != nil {
		return nil, err
	}
	door := int64(cloud.WholeDevice)
	if i := slices.IndexFunc(cells, func(c cloud.Compartment) bool { return c.GridCode == e.GridCode }); i >= 0 {
		door = int64(cells[i].Door)
	}
	var list []cloud.DevicePhoto
	doors := []int64{cloud.WholeDevice}
	if door != cloud.WholeDevice {
		doors = append(doors, door)
	}
	for _, of := range doors {
		like := cloud.DevicePhoto{Kept: cloud.Kept[cloud.DevicePhotoID]{BusinessID: e.BusinessID}, DeviceID: e.DeviceID, Door: of}
		part, _, err := cloud.List(v, like, cloud.Page{Sort: "id", Down: true, Limit: photosRead})
		if err != nil {
			return nil, err
		}
		list = append(list, part...)
	}
	slices.SortFunc(list, func(a, b cloud.DevicePhoto) int { return cmp.Compare(b.ID, a.ID) })
	for _, p := range list {
		if !p.TakenAt.Before(e.OpenedAt.Add(-photoBefore)) && p.TakenAt.Before(e.OpenedAt.Add(photoAfter)) {
			out = append(out, PhotoBody{p.ID, cloud.Stamp(p.TakenAt, l), s.cfg.SignFile(p.Path, time.Now().Add(fileLife))})
		}
	}
	return out, nil
}
