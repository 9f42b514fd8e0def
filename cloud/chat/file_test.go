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
		a, err := r.upload(customer, drawing(t))
		require.NoError(t, err)
		require.Equal(t, Attachment{ID: a.ID, Name: "door", MIME: "image/png", Size: int64(len(drawing(t))), URL: a.URL, Width: ptr(30), Height: ptr(20)}, a)
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
		_, err = r.upload(stranger, drawing(t))
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
		left, err := r.upload(driver, drawing(t))
		require.NoError(t, err)
		r.wait(24 * time.Hour)
		require.NoError(t, s.Sweep(t.Context()))
		_, err = r.send(driver, SendInput{AttachmentIDs: []int64{left.ID}})
		require.NoError(t, err)
		left, err = r.upload(driver, drawing(t))
		require.NoError(t, err)
		r.wait(24*time.Hour + time.Millisecond)
		require.NoError(t, s.Sweep(t.Context()))
		bad(driver, SendInput{AttachmentIDs: []int64{left.ID}})
		paths, err := r.db.ListKeptFiles(t.Context(), "chat/"+left.URL[strings.Index(left.URL, "/chat/")+6:][:2])
		require.NoError(t, err)
		require.NotContains(t, paths, left.URL)
	})
}

// Where a photo was taken is not kept; how it is to be turned is.
func TestPhotosAreKeptWithoutTheirPlace(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, r *rig) {
		var plain bytes.Buffer
		require.NoError(t, jpeg.Encode(&plain, image.NewGray(image.Rect(0, 0, 30, 20)), nil))
		const where = "GPS 43.6532 N 79.3832 W"
		exif := "Exif\x00\x00II\x2a\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00" + where
		with := func(segment string) []byte {
			return []byte("\xff\xd8\xff\xe1" + string([]byte{0, byte(len(segment) + 2)}) + segment + plain.String()[2:] + where)
		}
		a, err := r.upload(customer, with(exif))
		require.NoError(t, err)
		require.Equal(t, []int{20, 30}, []int{*a.Width, *a.Height}, "as it is shown")
		got := r.kept(a.URL)
		require.Len(t, got, int(a.Size))
		require.NotContains(t, string(got), where)
		shown, err := jpeg.Decode(bytes.NewReader(got))
		require.NoError(t, err)
		want, err := jpeg.Decode(bytes.NewReader(plain.Bytes()))
		require.NoError(t, err)
		require.Equal(t, want, shown)
		long := append(with(exif), make([]byte, maxFile)...)
		_, err = r.upload(customer, long)
		r.refused(err, "PAYLOAD_TOO_LARGE")
		_, err = r.upload(customer, with(exif)[:200])
		r.refused(err, "VALIDATION_FAILED")
	})
}
