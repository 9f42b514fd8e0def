package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func small(t testing.TB, file string) image.Image {
	t.Helper()
	out, err := NewThumbnails().Make(t.Context(), []byte(file))
	require.NoError(t, err)
	require.NotNil(t, out)
	require.Less(t, len(out), len(file))
	m, err := jpeg.Decode(bytes.NewReader(out))
	require.NoError(t, err)
	return m
}

func none(t *testing.T, file string) {
	t.Helper()
	out, err := NewThumbnails().Make(t.Context(), []byte(file))
	require.NoError(t, err)
	require.Nil(t, out)
}

// grained is a picture that no encoder makes small.
func grained(w, h int) *image.NRGBA {
	m, r := colours(w, h), rand.New(rand.NewPCG(1, 2))
	for i := range m.Pix {
		if i&3 != 3 {
			m.Pix[i] ^= uint8(r.IntN(64))
		}
	}
	return m
}

// like reports whether two colours look alike.
func like(a, b color.Color) bool {
	r, g, bl, _ := a.RGBA()
	r2, g2, b2, _ := b.RGBA()
	near := func(x, y uint32) bool { return max(x, y)-min(x, y) < 24<<8 }
	return near(r, r2) && near(g, g2) && near(bl, b2)
}

func TestThumbnailSizes(t *testing.T) {
	t.Parallel()
	for _, c := range [][4]int{{1000, 500, 480, 240}, {500, 1000, 240, 480}, {481, 481, 480, 480}, {480, 480, 480, 480}, {300, 200, 300, 200}, {2000, 1, 480, 1}, {1, 3000, 1, 480}, {4000, 3000, 480, 360}, {1500, 7, 480, 2}} {
		w, h, ow, oh := c[0], c[1], c[2], c[3]
		m := shrink(colours(w, h))
		require.Equal(t, image.Rect(0, 0, ow, oh), m.Rect)
		for _, at := range [][2]int{{0, 0}, {ow - 1, 0}, {0, oh - 1}, {ow - 1, oh - 1}, {ow / 2, oh / 2}} { // the third colour changes too fast to compare
			got, x, y := m.RGBAAt(at[0], at[1]), (at[0]*w+w/2)/ow, (at[1]*h+h/2)/oh
			require.InDelta(t, min(x, w-1)*255/w, int(got.R), 4, "%v %v", c, at)
			require.InDelta(t, min(y, h-1)*255/h, int(got.G), 64, "%v %v", c, at)
			require.Equal(t, uint8(255), got.A)
		}
	}
	require.Equal(t, image.Rect(0, 0, 480, 320), small(t, asJPEG(t, colours(3000, 2000))).Bounds())
	require.Equal(t, image.Rect(0, 0, 320, 480), small(t, asPNG(t, grained(600, 900))).Bounds())
	none(t, asPNG(t, image.NewGray(image.Rect(0, 0, 30, 20)))) // would be longer than the file
	none(t, webp(part("VP8 ", vp8)))
	none(t, "%PDF-1.7")
	whole := asJPEG(t, colours(3000, 2000))
	none(t, whole[:len(whole)/2]+"\xff\xc4\x00\x03\xff\xff\xd9")
}

// Each pixel is the mean of what it stands for, whatever the sizes: against sums
// of parts in floating point.
func TestShrinkIsTheMean(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for _, size := range [][2]int{{700, 9}, {960, 4}, {5, 1441}, {483, 31}} {
		m := image.NewNRGBA(image.Rect(3, 5, 3+size[0], 5+size[1]))
		for i := range m.Pix {
			m.Pix[i] = uint8(r.IntN(256))
		}
		out := shrink(m)
		ow, oh := out.Rect.Dx(), out.Rect.Dy()
		fx, fy := float64(size[0])/float64(ow), float64(size[1])/float64(oh)
		share := func(i int, from, to float64) float64 { return max(0, min(float64(i+1), to)-max(float64(i), from)) }
		for range 200 {
			x, y := r.IntN(ow), r.IntN(oh)
			want := 0.0
			for sy := int(float64(y) * fy); sy < size[1] && float64(sy) < float64(y+1)*fy; sy++ {
				for sx := int(float64(x) * fx); sx < size[0] && float64(sx) < float64(x+1)*fx; sx++ {
					c := m.NRGBAAt(3+sx, 5+sy)
					a := float64(c.A) / 255
					want += (float64(c.G)*a + 255*(1-a)) * share(sx, float64(x)*fx, float64(x+1)*fx) * share(sy, float64(y)*fy, float64(y+1)*fy)
				}
			}
			require.InDelta(t, want/(fx*fy), float64(out.RGBAAt(x, y).G), 1.6, "%v at %d, %d", size, x, y)
		}
	}
}

// A picture whose corners differ is shown the same way up by all orientations.
func TestThumbnailsAreTurned(t *testing.T) {
	t.Parallel()
	red, green, blue, grey := color.NRGBA{230, 20, 20, 255}, color.NRGBA{20, 200, 20, 255}, color.NRGBA{20, 20, 230, 255}, color.NRGBA{120, 120, 120, 255}
	corners := func(w, h int, list ...color.NRGBA) image.Image { // from the left, then down
		m := image.NewNRGBA(image.Rect(0, 0, w, h))
		for y := range h {
			for x := range w {
				m.SetNRGBA(x, y, list[2*(2*y/h)+2*x/w])
			}
		}
		return m
	}
	// How red, green above blue, grey lie in a file of an orientation: where its
	// first row and first column are when it is shown (CIPA DC-008 4.6.4).
	for how, lie := range map[uint16][]color.NRGBA{
		0: {red, green, blue, grey}, // says nothing
		1: {red, green, blue, grey}, // top, left
		2: {green, red, grey, blue}, // top, right
		3: {grey, blue, green, red}, // bottom, right
		4: {blue, grey, red, green}, // bottom, left
		5: {red, blue, green, grey}, // left, top
		6: {green, grey, red, blue}, // right, top
		7: {grey, green, blue, red}, // right, bottom
		8: {blue, red, grey, green}, // left, bottom
	} {
		w, h := 960, 640
		if how > 4 {
			w, h = h, w
		}
		plain := asJPEG(t, corners(w, h, lie...))
		m := small(t, clean(t, jpegMark+exif(binary.BigEndian, how)+plain[2:]))
		require.Equal(t, image.Rect(0, 0, 480, 320), m.Bounds(), how)
		for i, want := range []color.NRGBA{red, green, blue, grey} {
			got := m.At(40+400*(i%2), 30+260*(i/2))
			require.True(t, like(want, got), "%d: corner %d is %v", how, i, got)
		}
	}
}

func TestThumbnailsAreOnWhite(t *testing.T) {
	t.Parallel()
	m := colours(900, 600)
	for y := range 600 {
		for x := range 450 {
			m.SetNRGBA(x, y, color.NRGBA{0, 0, 0, 0})
		}
		for x := 450; x < 900; x++ {
			m.SetNRGBA(x, y, color.NRGBA{0, 0, 0, 128})
		}
	}
	for y := range 600 { // so that the file is not shorter than a small one
		for x := range 100 {
			m.Pix[m.PixOffset(x, y)] = uint8(x * y)
		}
	}
	got := small(t, asPNG(t, m))
	require.True(t, like(color.White, got.At(150, 100)), "%v", got.At(150, 100))
	require.True(t, like(color.Gray{127}, got.At(360, 100)), "%v", got.At(360, 100))
}

// A small file that says that it is huge costs nothing; nor does one that makes
// its few pixels be gone over again and again.
func TestBombs(t *testing.T) {
	sized := func(w, h uint32, depth, kind, interlaced byte) string {
		b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
		return pngMark + chunk("IHDR", string(append(b, depth, kind, 0, 0, interlaced))) + chunk("IDAT", "x\x9c\x03\x00\x00\x00\x00\x01") + chunk("IEND", "")
	}
	frame := func(marker byte, w, h uint16, colours byte) string {
		b := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16([]byte{8}, h), w)
		b = append(b, colours)
		for i := range colours {
			b = append(b, i+1, 0x11, 0)
		}
		return jpegMark + seg(marker, string(b)) + seg(sos, "\x01\x01\x00\x00\x3f\x00") + "\x00\xff\xd9"
	}
	scans := progressive()
	end := strings.LastIndex(scans, "\xff\xda")
	many := scans[:end] + strings.Repeat(scans[end:len(scans)-2], maxScans) + "\xff\xd9"
	for name, file := range map[string]string{
		"long":               sized(1<<31-1, 1<<10, 8, 6, 0),
		"wide":               sized(70000, 1, 8, 6, 0),
		"over 50 megapixels": sized(8000, 6251, 1, 0, 0),
		"deep":               sized(7000, 7000, 16, 6, 0),
		"interlaced":         sized(7000, 7000, 8, 6, 1),
		"JPEG":               frame(sof0, 65535, 65535, 3),
		"progressive":        frame(sof2, 5000, 5000, 3),
		"four colours":       frame(sof0, 6000, 6000, 4),
		"scans":              many,
	} {
		require.False(t, bearable([]byte(file)), name)
		out, err := Strip([]byte(file))
		require.NoError(t, err, name)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		none(t, string(out))
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20), name)
	}
	for name, file := range map[string]string{"PNG": sized(7000, 7000, 8, 6, 0), "baseline": frame(sof0, 8000, 6000, 3), "progressive": frame(sof2, 4000, 3000, 3), "a few scans": scans} {
		require.True(t, bearable([]byte(file)), name)
	}
}

// One is decoded at a time, callers that leave get nothing, and no caller waits
// for ever.
func TestThumbnailsWaitForEachOther(t *testing.T) {
	t.Parallel()
	file := []byte(asPNG(t, grained(600, 600)))
	synctest.Test(t, func(t *testing.T) {
		maker := NewThumbnails()
		decode := maker.decode
		var now, most atomic.Int32
		maker.decode = func(file []byte) (image.Image, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second)
			return decode(file)
		}
		var wait sync.WaitGroup
		var made atomic.Int32
		for range 20 {
			wait.Go(func() {
				out, err := maker.Make(t.Context(), file)
				require.NoError(t, err)
				if out != nil {
					made.Add(1)
				}
			})
		}
		synctest.Wait()
		ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		_, err := maker.Make(ctx, file)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		wait.Wait()
		require.Equal(t, int32(1), most.Load())
		require.InDelta(t, 5, int(made.Load()), 1, "the others waited for five seconds")
		out, err := maker.Make(t.Context(), file)
		require.NoError(t, err)
		require.NotNil(t, out)
	})
}

func FuzzThumbnail(f *testing.F) {
	f.Add([]byte(photo(f, exif(binary.BigEndian, 6))))
	f.Add([]byte(progressive(exif(binary.LittleEndian, 8))))
	f.Add([]byte(drawing(f, colours(5, 5))))
	maker := NewThumbnails()
	f.Fuzz(func(t *testing.T, file []byte) {
		if w, h := Size(file); w*h > 1<<20 {
			return
		}
		out, err := maker.Make(t.Context(), file)
		require.NoError(t, err)
		if out != nil {
			w, h := Size(out)
			require.True(t, w > 0 && h > 0 && max(w, h) <= thumbSide)
		}
	})
}

func BenchmarkThumbnail(b *testing.B) {
	file := []byte(asJPEG(b, colours(4000, 3000)))
	m, _, err := image.Decode(bytes.NewReader(file))
	require.NoError(b, err)
	var p bytes.Buffer
	require.NoError(b, (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&p, colours(4000, 3000)))
	maker := NewThumbnails()
	b.Run("shrink", func(b *testing.B) {
		for b.Loop() {
			shrink(m)
		}
	})
	for name, file := range map[string][]byte{"JPEG": file, "PNG": p.Bytes()} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = maker.Make(b.Context(), file)
			}
		})
	}
}
