package httpdevice

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime/multipart"
	"reflect"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/locker"
)

// Bounds of photos.
const (
	maxPhotoBody    = locker.MaxPhoto + 16<<10
	photosPerMinute = 4
)

// photoInput are the parts of a form beside the file.
type photoInput struct {
	Name      string `json:"photo_id" required:"true" max:"64" doc:"The device's own name of it; one that was taken before changes nothing"`
	Door      int    `json:"door" min:"0" max:"65535" doc:"compartment_number of what it shows; left out where it shows no compartment alone"`
	OpeningID string `json:"opening_id" max:"40"`
	TakenAt   string `json:"taken_at" format:"moment" doc:"Now when absent, and not in the future; UTC where it has no offset"`
}

type photoOutput struct {
	Result bool                `json:"result"`
	ID     cloud.DevicePhotoID `json:"photo_id"`
}

// photo takes a picture that the device has taken, a form in multipart/form-data with the part
// "file".
func (s *Service) photo(ctx context.Context, c *call, r *fasthttp.RequestCtx) (any, error) {
	in, file, err := readPhoto(r)
	if err != nil {
		return nil, err
	}
	f, now := check.Fields{}, time.Now().UTC()
	at := readTime(f, "taken_at", in.TakenAt, c.device.CreatedAt, now)
	if err := f.Err(); err != nil {
		return nil, err
	}
	if state := s.calls.Take("photo "+strconv.FormatInt(int64(c.device.ID), 10), photosPerMinute, now); !state.OK {
		return nil, limited(time.Minute)
	}
	path, drop, err := s.cfg.Lockers.StorePhoto(ctx, file)
	switch {
	case errors.Is(err, cloud.ErrFileSize):
		return nil, cloud.E(cloud.TooLarge, "PAYLOAD_TOO_LARGE")
	case errors.Is(err, cloud.ErrFileKind):
		f.Add("file", "Send a JPEG, PNG or WebP picture.")
		return nil, f.Err()
	case err != nil:
		return nil, err
	}
	out, used := photoOutput{Result: true}, false
	err = s.play(ctx, c, func(m *machine) (err error) {
		out.ID, used, err = m.Work.ReportPhoto(locker.ReportedPhoto{Name: in.Name, Door: uint(in.Door), OpeningID: in.OpeningID, TakenAt: at}, path)
		return err
	})
	var refused *cloud.Error
	if errors.As(err, &refused) || err == nil && !used { // what may have been stored is not known: it is swept if it has no row
		err = errors.Join(err, drop())
	}
	return out, err
}

// readPhoto reads the form of a photo. Errors: UNSUPPORTED_MEDIA_TYPE, BAD_REQUEST,
// VALIDATION_FAILED.
func readPhoto(r *fasthttp.RequestCtx) (in photoInput, file []byte, err error) {
	boundary := string(r.Request.Header.MultipartFormBoundary())
	if boundary == "" || len(r.Request.Header.ContentEncoding()) > 0 {
		return in, nil, cloud.E(cloud.Malformed, "UNSUPPORTED_MEDIA_TYPE", "multipart/form-data")
	}
	form, err := multipart.NewReader(bytes.NewReader(r.PostBody()), boundary).ReadForm(maxPhotoBody) // all of it in memory
	if err != nil {
		return in, nil, cloud.E(cloud.Malformed, "BAD_REQUEST")
	}
	text := func(name string) string {
		if v := form.Value[name]; len(v) > 0 {
			return v[0]
		}
		return ""
	}
	in = photoInput{Name: text("photo_id"), OpeningID: text("opening_id"), TakenAt: text("taken_at")}
	if n := text("door"); n != "" && !catalog.SetText(reflect.ValueOf(&in.Door).Elem(), n) {
		return in, nil, catalog.WrongText("door", reflect.TypeFor[int]())
	}
	f := check.Fields{}
	if len(form.File["file"]) != 1 {
		f.Add("file", "Send one picture, a JPEG, PNG or WebP file of at most 1 MiB, in the part “file”.")
		return in, nil, f.Err()
	}
	part, err := form.File["file"][0].Open()
	if err != nil {
		return in, nil, err
	}
	defer part.Close()
	if file, err = io.ReadAll(part); err != nil {
		return in, nil, err
	}
	return in, file, check.Input(&in)
}
