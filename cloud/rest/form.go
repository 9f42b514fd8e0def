package rest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/check"
)

// Bounds of a form. Uploads and downloads may take longer than other calls.
const (
	maxText      = 8 << 10 // bytes of a part that is no file
	maxParts     = 32
	maxForm      = catalog.MaxUpload + 64<<10
	transferTime = 5 * time.Minute
	knowTime     = 5 * time.Second
)

// received lets uploads of callers with a good token be long, gives uploads and
// downloads time, and mounts what they ask for. A body is in memory as soon as it
// comes, so its sender is known before.
func (s *Server) received(h *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
	m, r := s.transfer(h)
	known := false
	switch {
	case m != nil && m.Upload == "":
		c.MaxRequestBodySize = m.MaxBody
	case m != nil || r != nil && !r.Streams():
		if known = s.isKnown(uploader(h, m)); !known {
			break
		}
		if c.MaxRequestBodySize, c.ReadTimeout = maxForm, transferTime; m != nil {
			c.MaxRequestBodySize = m.MaxBody
		}
	}
	if m != nil && m.Slow || r != nil && r.Streams() {
		c.WriteTimeout = transferTime
	}
	most := cmp.Or(c.MaxRequestBodySize, maxBody)
	size := h.ContentLength()
	if size == -1 { // in chunks
		size = most
	}
	if size > smallBody && size <= most {
		var who token
		if known {
			who = sha256.Sum256([]byte(uploader(h, m)))
		} else if login := uploader(h, nil); s.isKnown(login) {
			who = sha256.Sum256([]byte(login))
		}
		if !s.room.reserve(h, int64(size), who, cmp.Or(c.ReadTimeout, readTimeout)) {
			c.MaxRequestBodySize = 1 // see unreadable
		}
	}
	return c
}

// transfer finds the mount, or the row whose body is a file, that a request is for;
// nil: neither.
func (s *Server) transfer(h *fasthttp.RequestHeader) (*Mount, *catalog.Operation) {
	path, _, _ := strings.Cut(string(h.RequestURI()), "?")
	for i := range s.cfg.Mounts {
		if m := &s.cfg.Mounts[i]; sameShape(m.Path, path) {
			return m, nil
		}
	}
	for _, r := range s.transfers {
		if r.Method == string(h.Method()) && sameShape(r.Path, path) {
			return nil, r
		}
	}
	return nil, nil
}

// uploader is the Authorization of who sends a file, by the cookie of a mount.
func uploader(h *fasthttp.RequestHeader, m *Mount) string {
	if m == nil {
		return string(h.Peek("Authorization"))
	}
	return "Bearer " + string(h.Cookie(m.Upload))
}

// isKnown is knows, where it does not matter why not.
func (s *Server) isKnown(authorization string) bool {
	ok, err := s.knows(authorization)
	return err == nil && ok
}

// knows reports whether an Authorization lets anybody in.
func (s *Server) knows(authorization string) (bool, error) {
	ctx, cancel := context.WithTimeout(s.ctx, knowTime)
	defer cancel()
	return s.cfg.Pipeline.Knows(ctx, authorization)
}

// unknown is the error of an upload that comes with a token which is not good; nil
// for other requests.
func (s *Server) unknown(h *fasthttp.RequestHeader) error {
	m, r := s.transfer(h)
	given := r != nil && !r.Streams() && len(h.Peek("Authorization")) > 0
	if m != nil {
		given = m.Upload != "" && len(h.Cookie(m.Upload)) > 0
	}
	if !given {
		return nil
	}
	ok, err := s.knows(uploader(h, m))
	if err == nil && !ok {
		err = cloud.E(cloud.Unauthenticated, "TOKEN_INVALID")
	}
	return err
}

// sameShape reports whether an address is one of a pattern with {names}. Each request is
// held against each pattern: nothing is allocated.
func sameShape(pattern, path string) bool {
	for {
		want, restOfPattern, more := strings.Cut(pattern, "/")
		got, restOfPath, also := strings.Cut(path, "/")
		if more != also || want != got && !strings.HasPrefix(want, "{") {
			return false
		}
		if !more {
			return true
		}
		pattern, path = restOfPattern, restOfPath
	}
}

// form is a body of multipart/form-data.
type form struct {
	texts map[string]string
	file  []byte
	given bool // there was a file
}

// readForm reads the form of a request. Of parts with one name the first counts.
// Errors: UNSUPPORTED_MEDIA_TYPE, BAD_REQUEST, PAYLOAD_TOO_LARGE.
func readForm(ctx *fasthttp.RequestCtx) (form, error) {
	kind, params, err := mime.ParseMediaType(string(ctx.Request.Header.ContentType()))
	boundary := params["boundary"]
	if err != nil || kind != catalog.FormType || boundary == "" || len(ctx.Request.Header.ContentEncoding()) > 0 {
		return form{}, cloud.E(cloud.Malformed, "UNSUPPORTED_MEDIA_TYPE", "multipart/form-data")
	}
	return parseForm(ctx.Request.Body(), boundary)
}

// parseForm keeps nothing of body.
func parseForm(body []byte, boundary string) (form, error) {
	f := form{texts: map[string]string{}}
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for n := 0; ; n++ {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil || n == maxParts {
			return form{}, cloud.E(cloud.Malformed, "BAD_REQUEST")
		}
		if err := f.readPart(p); err != nil {
			return form{}, err
		}
	}
}

func (f *form) readPart(p *multipart.Part) error {
	name, limit := p.FormName(), maxText
	if name == "file" {
		limit = catalog.MaxUpload
	}
	raw, err := io.ReadAll(io.LimitReader(p, int64(limit)+1))
	switch {
	case err != nil:
		return cloud.E(cloud.Malformed, "BAD_REQUEST")
	case len(raw) > limit:
		return cloud.E(cloud.TooLarge, "PAYLOAD_TOO_LARGE")
	case name == "file":
		if !f.given {
			f.file, f.given = raw, true
		}
		return nil
	case !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0:
		return cloud.E(cloud.Malformed, "BAD_REQUEST")
	}
	if _, twice := f.texts[name]; !twice {
		f.texts[name] = string(raw)
	}
	return nil
}

// digest is the same for the same form, however its parts are put together.
func (f form) digest() []byte {
	h := sha256.New()
	part := func(b []byte) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	for _, name := range slices.Sorted(maps.Keys(f.texts)) {
		part([]byte(name))
		part([]byte(f.texts[name]))
	}
	part(f.file)
	return h.Sum(nil)
}

// takeForm fills an input from a form.
func (r *route) takeForm(v reflect.Value, f form) error {
	if len(f.file) == 0 {
		return invalid("file", fmt.Sprintf(check.MessageRequired, "file"))
	}
	v.FieldByIndex(r.Upload()).SetBytes(f.file)
	for _, m := range r.Members() {
		if text := f.texts[m.Name]; m.Place == "" && text != "" && !catalog.SetText(v.FieldByIndex(m.Field.Index), text) {
			return catalog.WrongText(m.Name, m.Type)
		}
	}
	return nil
}
