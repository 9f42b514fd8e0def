package httpdevice_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"mime/multipart"
	"strings"
	"testing"
	"time"

	"crypto/rand"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/httpdevice"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
)

func jpegFile(t testing.TB) []byte {
	var b bytes.Buffer
	require.NoError(t, jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 32, 32)), nil))
	return b.Bytes()
}

// send makes a signed call with a form, and gives the code of its error.
func (b *box) send(file []byte, texts map[string]string) (id cloud.DevicePhotoID, code string) {
	b.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for k, v := range texts {
		require.NoError(b.t, w.WriteField(k, v))
	}
	if file != nil {
		part, err := w.CreateFormFile("file", "x.jpg")
		require.NoError(b.t, err)
		_, err = part.Write(file)
		require.NoError(b.t, err)
	}
	require.NoError(b.t, w.Close())
	r := b.request("POST", "/photos", "", nil)
	r.Request.SetBody(body.Bytes())
	r.Request.Header.SetContentType(w.FormDataContentType())
	at, nonce := fmt.Sprint(time.Now().Unix()), rand.Text()
	sum := httpdevice.Sign([]byte(b.secret), at, nonce, "POST", string(r.RequestURI()), body.Bytes())
	for k, v := range map[string]string{"X-Device-Timestamp": at, "X-Device-Nonce": nonce, "X-Device-Signature": hex.EncodeToString(sum)} {
		r.Request.Header.Set(k, v)
	}
	out, err := b.arrive(b.node, r)
	if err != nil {
		var e *cloud.Error
		require.ErrorAs(b.t, err, &e)
		return 0, e.Code
	}
	var x struct {
		ID cloud.DevicePhotoID `json:"photo_id"`
	}
	reencode(b.t, out, &x)
	return x.ID, ""
}

// A device with a camera sends what it has seen of a compartment; it stands as evidence beside the
// exception of that compartment, once, and beside no other.
func TestPhotosAreEvidence(t *testing.T) {
	try(t, func(b *box) {
		d := b.create("1")
		v := b.verify(*d.DeliveryCode)
		require.Equal(t, "open", v.Action)
		door := v.Doors[0]
		order := b.fetch(1).Commands[0]
		b.ack(order.ID, "done")
		b.report(2, door)
		for seq := range uint64(12) {
			time.Sleep(time.Minute)
			b.report(3+seq, door)
		}
		list, err := b.Lockers.ListCabinetExceptions(ctx, b.Box.AdminCaller, locker.CabinetExceptionsInput{Status: "open"})
		require.NoError(t, err)
		require.Len(t, list.Exceptions, 1)
		photos := func() []locker.PhotoBody {
			t.Helper()
			x, err := b.Lockers.FindCabinetException(ctx, b.Box.AdminCaller, locker.ByException{ID: list.Exceptions[0].ExceptionID})
			require.NoError(t, err)
			return x.Exception.Photos
		}
		require.Empty(t, photos())
		file := jpegFile(t)
		id, code := b.send(file, map[string]string{"photo_id": "p-1", "door": fmt.Sprint(door), "opening_id": v.OpeningID, "taken_at": time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)})
		require.Empty(t, code)
		again, code := b.send(file, map[string]string{"photo_id": "p-1", "door": "7"})
		require.Empty(t, code)
		require.Equal(t, id, again)
		_, code = b.send(file, map[string]string{"photo_id": "p-2", "door": fmt.Sprint(door%8 + 1)})
		require.Empty(t, code)
		time.Sleep(time.Minute)
		whole, code := b.send(file, map[string]string{"photo_id": "p-3"})
		require.Empty(t, code)
		_, code = b.send(file, map[string]string{"photo_id": "p-4", "door": fmt.Sprint(door), "taken_at": time.Now().Add(-3 * time.Hour).UTC().Format(time.RFC3339)})
		require.Empty(t, code)
		got := photos()
		require.Len(t, got, 2)
		require.Equal(t, []cloud.DevicePhotoID{whole, id}, []cloud.DevicePhotoID{got[0].ID, got[1].ID})
		require.Contains(t, got[0].URL, "photo/")
		for i := range 210 { // of another door
			_, code := b.send(file, map[string]string{"photo_id": fmt.Sprint("more-", i), "door": fmt.Sprint(door%8 + 1)})
			require.Empty(t, code)
			time.Sleep(20 * time.Second)
		}
		require.Len(t, photos(), 2, "those of another door hide none")
	})
}

func TestPhotosThatAreRefused(t *testing.T) {
	try(t, func(b *box) {
		file := jpegFile(t)
		var animated bytes.Buffer
		require.NoError(t, gif.Encode(&animated, image.NewGray(image.Rect(0, 0, 8, 8)), nil))
		for i, x := range []struct {
			file  []byte
			texts map[string]string
			code  string
		}{
			{nil, map[string]string{"photo_id": "p"}, "VALIDATION_FAILED"},
			{file, nil, "VALIDATION_FAILED"},
			{file, map[string]string{"photo_id": strings.Repeat("x", 65)}, "VALIDATION_FAILED"},
			{file, map[string]string{"photo_id": "p", "door": "left"}, "VALIDATION_FAILED"},
			{file, map[string]string{"photo_id": "p", "taken_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}, "VALIDATION_FAILED"},
			{animated.Bytes(), map[string]string{"photo_id": "p"}, "VALIDATION_FAILED"},
			{append(bytes.Clone(file), make([]byte, locker.MaxPhoto)...), map[string]string{"photo_id": "p"}, "PAYLOAD_TOO_LARGE"},
		} {
			time.Sleep(time.Minute)
			_, code := b.send(x.file, x.texts)
			require.Equal(t, x.code, code, i)
		}
		err := b.call("POST", "/photos", "", map[string]any{"photo_id": "p"}, &struct{}{})
		var e *cloud.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "UNSUPPORTED_MEDIA_TYPE", e.Code)
		require.Contains(t, locale.Error("en", e.Code, e.Args...), "multipart/form-data")
		time.Sleep(time.Minute)
		for i := range 5 {
			_, code := b.send(file, map[string]string{"photo_id": fmt.Sprint(i)})
			require.Equal(t, map[bool]string{true: "RATE_LIMITED"}[i == 4], code, i)
		}
	})
}
