package chat

import (
	"bytes"
	"image"
	"image/jpeg"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, r *rig) {
		s := r.nodes[0]
		a, err := r.upload(customer, picture(t))
		require.NoError(t, err)
		require.Equal(t, Attachment{ID: a.ID, Name: "door", MIME: "image/png", Size: int64(len(picture(t))), URL: a.URL, Width: ptr(30), Height: ptr(20)}, a)
		require.Regexp(t, `^https://cloud\.test/api/v1/files/chat/[0-9a-f]{32}\.png\?expires=[0-9]+&signature=[0-9a-f]{64}$`, a.URL)
		doc, err := r.upload(customer, []byte("%PDF-1.7 x"))
		require.NoError(t, err)
		require.Nil(t, doc.Width)
		for _, file := range [][]byte{[]byte("<script>"), []byte("\x89PNG\r\n\x1a\nnot a picture"), []byte("GIF89a"), append([]byte("RIFF\x1a\x00\x00\x00WEBPVP8 "), make([]byte, 30)...)} {
			_, err = r.upload(customer, file)
			r.refused(err, "VALIDATION_FAILED")
		}
		_, err = r.upload(customer, append([]byte("%PDF-1.7"), make([]byte, maxFile-8)...))
		require.NoError(t, err, "10 MB")
		_, err = r.upload(customer, append([]byte("%PDF-1.7"), make([]byte, maxFile-7)...))
		r.refused(err, "PAYLOAD_TOO_LARGE")
		_, err = r.upload(stranger, picture(t))
		r.refused(err, "ORDER_NOT_FOUND")

		bad := func(who cloud.AccountID, in SendInput) {
			t.Helper()
			_, err := r.send(who, in)
			r.refused(err, "VALIDATION_FAILED")
		}
		bad(driver, SendInput{AttachmentIDs: []int64{a.ID}})
		bad(customer, SendInput{AttachmentIDs: []int64{a.ID, a.ID}})
		bad(customer, SendInput{Kind: "image", AttachmentIDs: []int64{a.ID, doc.ID}})
		m, err := r.send(customer, SendInput{AttachmentIDs: []int64{doc.ID, a.ID}})
		require.NoError(t, err)
		require.Equal(t, "file", m.Kind)
		require.Equal(t, []Attachment{doc, a}, m.Attachments)
		require.Equal(t, "door", r.pushes[0].Body)
		bad(customer, SendInput{AttachmentIDs: []int64{a.ID}})

		// What no message has is let go of a day later.
		left, err := r.upload(driver, picture(t))
		require.NoError(t, err)
		r.wait(24 * time.Hour)
		require.NoError(t, s.Sweep(t.Context()))
		_, err = r.send(driver, SendInput{AttachmentIDs: []int64{left.ID}})
		require.NoError(t, err)
		left, err = r.upload(driver, picture(t))
		require.NoError(t, err)
		r.wait(24*time.Hour + time.Millisecond)
		require.NoError(t, s.Sweep(t.Context()))
		bad(driver, SendInput{AttachmentIDs: []int64{left.ID}})
		paths, err := r.db.ListKeptFiles(t.Context(), "chat/"+left.URL[strings.Index(left.URL, "/chat/")+6:][:2])
		require.NoError(t, err)
		require.NotContains(t, paths, left.URL)
	})
}

func TestPictureSizes(t *testing.T) {
	t.Parallel()
	webp := func(kind string, body ...byte) []byte {
		return append([]byte("RIFF\x00\x00\x00\x00WEBP"+kind+"\x0a\x00\x00\x00"), append(body, make([]byte, 10)...)...)
	}
	for _, c := range []struct {
		file []byte
		w, h int
	}{{picture(t), 30, 20}, {webp("VP8L", 0x2f, 0x63, 0xc0, 0x04, 0x00), 100, 20}, {webp("VP8X", 0, 0, 0, 0, 99, 0, 0, 19, 0, 0), 100, 20}, {webp("VP8 ", 0, 0, 0, 0x9d, 0x01, 0x2a, 100, 0, 20, 0), 100, 20},
		{webp("VP8L", 0x2e), 0, 0}, {webp("ANIM"), 0, 0}, {nil, 0, 0}, {[]byte("RIFF"), 0, 0}} {
		w, h := size(c.file)
		require.Equal(t, [2]int{c.w, c.h}, [2]int{w, h}, "%q", c.file[:min(20, len(c.file))])
	}
}

// A photo that is shown turned by a quarter has the size that it is shown with,
// and what is wrong in its header turns nothing.
func TestPicturesOnTheirSide(t *testing.T) {
	t.Parallel()
	var plain bytes.Buffer
	require.NoError(t, jpeg.Encode(&plain, image.NewGray(image.Rect(0, 0, 30, 20)), nil))
	with := func(segment string) []byte {
		n := len(segment) + 2
		return []byte("\xff\xd8\xff\xe1" + string([]byte{byte(n >> 8), byte(n)}) + segment + plain.String()[2:])
	}
	big := func(how byte) string {
		return "Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x02\x01\x00\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string(rune(how)) + "\x00\x00"
	}
	little := "Exif\x00\x00II\x2a\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00"
	for _, c := range []struct {
		file []byte
		w, h int
	}{{plain.Bytes(), 30, 20}, {with(big(1)), 30, 20}, {with(big(3)), 30, 20}, {with(big(5)), 20, 30}, {with(big(6)), 20, 30}, {with(big(8)), 20, 30}, {with(big(9)), 30, 20}, {with(little), 20, 30},
		{with("Exif\x00\x00"), 30, 20}, {with("Exif\x00\x00MM\x00\x2a\xff\xff\xff\xff"), 30, 20}, {with(little[:20]), 30, 20}, {with("http://ns.adobe.com/xap/1.0/\x00"), 30, 20}} {
		w, h := size(c.file)
		require.Equal(t, [2]int{c.w, c.h}, [2]int{w, h}, "%q", c.file[:min(48, len(c.file))])
		require.NotPanics(t, func() {
			for i := range c.file {
				size(c.file[:i])
			}
		})
	}
}

func FuzzPictureSize(f *testing.F) {
	f.Add([]byte("\xff\xd8\xff\xe1\x00\x22Exif\x00\x00II\x2a\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00"))
	f.Add([]byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = lies(b)
		w, h := size(b)
		require.Equal(t, w > 0, h > 0)
		require.GreaterOrEqual(t, w, 0)
	})
}
