package chat

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store/storetest"
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
// A file is for the order that it was uploaded for, and of these, too, the 21st in
// a minute waits: also one that is none.
func TestFilesOfOneOrderAndMinute(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	s := r.nodes[0]
	other, err := s.Attach(t.Context(), r.caller(admin), AttachInput{OrderID: 71, File: drawing(t)})
	require.NoError(t, err)
	_, err = r.send(admin, SendInput{AttachmentIDs: []int64{other.Attachment.ID}})
	r.refused(err, "VALIDATION_FAILED")
	_, err = s.Send(t.Context(), r.caller(admin), SendInput{OrderID: 71, AttachmentIDs: []int64{other.Attachment.ID}})
	require.NoError(t, err)

	s.cfg.PerMinute = perMinute
	for range 10 {
		_, err = r.upload(customer, []byte("no picture"))
		r.refused(err, "VALIDATION_FAILED")
		_, err = r.upload(customer, drawing(t))
		require.NoError(t, err)
	}
	_, err = r.upload(customer, drawing(t))
	r.refused(err, "RATE_LIMITED")
	r.says(customer, "messages are counted on their own")
	_, err = r.upload(driver, drawing(t))
	require.NoError(t, err)
	r.wait(time.Minute)
	_, err = r.upload(customer, drawing(t))
	require.NoError(t, err)
}

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

// grained is a picture of 800 × 600 that no encoder makes small.
func grained(t *testing.T) *bytes.Buffer {
	m, noise := image.NewGray(image.Rect(0, 0, 800, 600)), rand.New(rand.NewPCG(1, 2))
	for i := range m.Pix {
		m.Pix[i] = uint8(noise.IntN(256))
	}
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, m))
	return &b
}

// A large picture has a small one, which lives and goes with it: with its message,
// with its conversation, with its order, and when no message takes it.
func TestThumbnails(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, r *rig) {
		file := grained(t)
		up := func() Attachment {
			t.Helper()
			a, err := r.upload(customer, file.Bytes())
			require.NoError(t, err)
			require.Equal(t, []int{800, 600}, []int{*a.Width, *a.Height})
			require.Equal(t, int64(file.Len()), a.Size)
			require.NotNil(t, a.ThumbnailURL)
			require.Regexp(t, `^https://cloud\.test/api/v1/files/chat/[0-9a-f]{32}\.jpg\?expires=[0-9]+&signature=[0-9a-f]{64}$`, *a.ThumbnailURL)
			return a
		}
		stored := func(a Attachment) (paths []string) {
			for _, u := range []string{a.URL, *a.ThumbnailURL} {
				path, _, _ := strings.Cut(u[strings.Index(u, "/chat/")+1:], "?")
				list, err := r.db.ListKeptFiles(t.Context(), path[:7])
				require.NoError(t, err)
				if slices.Contains(list, path) {
					paths = append(paths, path)
				}
			}
			return paths
		}
		post := func() Message {
			t.Helper()
			a := up()
			said, err := r.send(customer, SendInput{AttachmentIDs: []int64{a.ID}})
			require.NoError(t, err)
			require.Equal(t, []Attachment{a}, said.Attachments)
			require.Len(t, stored(a), 2)
			return said
		}
		s := r.nodes[0]
		first := post()
		c, err := jpeg.DecodeConfig(bytes.NewReader(r.kept(*first.Attachments[0].ThumbnailURL)))
		require.NoError(t, err)
		require.Equal(t, []int{480, 360}, []int{c.Width, c.Height})
		require.Equal(t, file.Bytes(), r.kept(first.Attachments[0].URL))
		require.Equal(t, first.Attachments, r.messages(driver)[0].Attachments)
		told := r.told()
		require.Equal(t, first.Attachments, told[len(told)-1].Data.Message.Attachments)

		_, err = s.Delete(t.Context(), r.caller(customer), MessageInput{first.ID})
		require.NoError(t, err)
		require.Empty(t, stored(first.Attachments[0]), "with its message")

		idle := up()
		require.Len(t, stored(idle), 2)
		r.wait(idleFile + time.Millisecond)
		require.NoError(t, s.Sweep(t.Context()))
		require.Empty(t, stored(idle), "when no message takes it")

		second := post()
		r.write(&cloud.Changes{ChatChanges: cloud.ChatChanges{DroppedConversations: []cloud.OrderKey{{BusinessID: 42, ID: theOrder}}}, Unaudited: true})
		require.Empty(t, stored(second.Attachments[0]), "with its conversation")

		third := post()
		r.write(&cloud.Changes{OrderChanges: cloud.OrderChanges{DroppedOrders: []cloud.OrderKey{{BusinessID: 42, ID: theOrder}}}})
		require.Empty(t, stored(third.Attachments[0]), "with its order")
	})
}

// What is too large to look at is kept as it is, at once.
func TestPicturesThatAreTooLargeHaveNoThumbnail(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	m := image.NewPaletted(image.Rect(0, 0, 8000, 6500), color.Palette{color.Black, color.White})
	var file bytes.Buffer
	require.NoError(t, png.Encode(&file, m))
	require.Less(t, file.Len(), 1<<16)
	a, err := r.upload(customer, file.Bytes())
	require.NoError(t, err)
	require.Nil(t, a.ThumbnailURL)
	require.Equal(t, []int{8000, 6500}, []int{*a.Width, *a.Height})
	require.Equal(t, file.Bytes(), r.kept(a.URL))
}

// What is refused or cannot be kept whole leaves neither file.
func TestNoFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	file := grained(t)
	s := r.nodes[0]
	l := &lossy{Files: r.files, fail: 2}
	s.cfg.Files = l
	_, err := r.upload(customer, file.Bytes())
	require.ErrorIs(t, err, io.ErrShortWrite)
	require.Len(t, l.put, 1)
	require.Equal(t, l.put, l.gone)

	l = &lossy{Files: r.files}
	l.then = func() { // closed while the files are written
		_, err := s.Close(t.Context(), r.caller(admin), OrderInput{theOrder})
		require.NoError(t, err)
	}
	r.says(admin, "hello")
	s.cfg.Files = l
	_, err = r.upload(customer, file.Bytes())
	r.refused(err, "CONVERSATION_CLOSED")
	require.Len(t, l.put, 2)
	require.Equal(t, l.put, l.gone)
}

// lossy is a folder that notes what comes and goes.
type lossy struct {
	Files
	put, gone []string
	fail      int    // the number of the put that fails
	then      func() // after the second
}

func (l *lossy) Put(ctx context.Context, area string, body io.Reader, max int64, kinds ...string) (cloud.StoredFile, error) {
	if len(l.put)+1 == l.fail {
		return cloud.StoredFile{}, io.ErrShortWrite
	}
	f, err := l.Files.Put(ctx, area, body, max, kinds...)
	if l.put = append(l.put, f.Path); len(l.put) == 2 {
		l.then()
	}
	return f, err
}

func (l *lossy) Delete(ctx context.Context, path string) error {
	l.gone = append(l.gone, path)
	return l.Files.Delete(ctx, path)
}

// A small file may be a picture of so many pixels that a reader's browser gives up.
func TestHugePicturesAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.OpenSQLite(t))
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))))
	sized := func(width, height uint32) []byte {
		file := bytes.Clone(b.Bytes())
		binary.BigEndian.PutUint32(file[16:], width)
		binary.BigEndian.PutUint32(file[20:], height)
		binary.BigEndian.PutUint32(file[29:], crc32.ChecksumIEEE(file[12:29]))
		return file
	}
	_, err := r.upload(customer, sized(10_000, 10_000))
	require.NoError(t, err)
	_, err = r.upload(customer, sized(10_001, 10_000))
	r.refused(err, "VALIDATION_FAILED")
	var refused *cloud.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, tooManyPixels, refused.Fields["file"][0])
}
