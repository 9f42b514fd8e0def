package picture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What people would not show to everybody with a tracking number.
var secrets = []string{"GPS 43.6532 N 79.3832 W", "SERIAL-8675309", "Ada's phone", "small copy"}

// tiff is the content of an Exif segment: a maker, an orientation (0: none), a
// serial number, a place, and a small picture in a second directory.
func tiff(order binary.ByteOrder, turn uint16) []byte {
	o := order.(binary.AppendByteOrder)
	mark := map[bool]string{true: "II\x2a\x00", false: "MM\x00\x2a"}[order == binary.ByteOrder(binary.LittleEndian)]
	type entry struct {
		tag, kind uint16
		text      string
	}
	dir := func(at int, next bool, list ...entry) []byte { // what does not fit follows the directory
		var head, tail []byte
		head = o.AppendUint16(head, uint16(len(list)))
		after := at + 2 + 12*len(list) + 4
		for _, e := range list {
			head = o.AppendUint16(o.AppendUint16(head, e.tag), e.kind)
			if e.kind == 3 {
				head = append(o.AppendUint16(o.AppendUint32(head, 1), turn), 0, 0)
				continue
			}
			head = o.AppendUint32(o.AppendUint32(head, uint32(len(e.text))), uint32(after+len(tail)))
			tail = append(tail, e.text...)
		}
		last := 0
		if next {
			last = after + len(tail)
		}
		return append(o.AppendUint32(head, uint32(last)), tail...)
	}
	list := []entry{{0x010f, 2, secrets[2]}, {tagOrientation, 3, ""}, {0x8825, 2, secrets[0]}, {0xa431, 2, secrets[1]}}
	if turn == 0 {
		list = append(list[:1], list[2:]...)
	}
	b := append(o.AppendUint32([]byte(mark), 8), dir(8, true, list...)...)
	return append(b, dir(len(b), false, entry{0x0201, 2, secrets[3]})...)
}

func seg(marker byte, content string) string {
	return string(binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(len(content)+2))) + content
}

func exif(order binary.ByteOrder, turn uint16) string {
	return seg(app1, exifMark+string(tiff(order, turn)))
}

// colours is a picture in which no two places look alike.
func colours(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetNRGBA(x, y, color.NRGBA{uint8(x * 255 / w), uint8(y * 255 / h), uint8(x ^ y), 255})
		}
	}
	return m
}

func asJPEG(t testing.TB, m image.Image) string {
	var b bytes.Buffer
	require.NoError(t, jpeg.Encode(&b, m, nil))
	return b.String()
}

func asPNG(t testing.TB, m image.Image) string {
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, m))
	return b.String()
}

// photo is a JPEG file with segments after its beginning.
func photo(t testing.TB, segments ...string) string {
	return jpegMark + strings.Join(segments, "") + asJPEG(t, colours(30, 20))[2:]
}

// progressive is a picture of 8 × 8 in three scans, with tables between them.
func progressive(segments ...string) string {
	const comment = "SERIAL-8675309"
	dc := "\x00\x01" + strings.Repeat("\x00", 15) + "\x05"         // one code, 0: five bits follow
	ac := "\x10\x00\x02" + strings.Repeat("\x00", 14) + "\x00\x04" // 00: the end, 01: four bits follow
	head := seg(dqt, "\x00"+strings.Repeat("\x08", 64)) + seg(sof2, "\x08\x00\x08\x00\x08\x01\x01\x11\x00")
	return jpegMark + strings.Join(segments, "") + head + seg(dht, dc) + seg(sos, "\x01\x01\x00\x00\x00\x01") + "\x57" + seg(dht, ac) + seg(com, comment) +
		seg(sos, "\x01\x01\x00\x01\x05\x01") + "\x68" + seg(app1+12, comment) + seg(sos, "\x01\x01\x00\x06\x3f\x01") + "\x3f" + "\xff\xd9"
}

func chunk(name, content string) string {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(content))), name+content...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:])))
}

// drawing is a PNG file with chunks after its header and before its end.
func drawing(t testing.TB, m image.Image, chunks ...string) string {
	const head, end = 8 + 25, 12
	p := asPNG(t, m)
	all := strings.Join(chunks, "")
	return p[:head] + all + p[head:len(p)-end] + chunk("tIME", "\x07\xea\x01\x01\x01\x01\x01") + p[len(p)-end:]
}

func part(name, content string) string {
	b := string(binary.LittleEndian.AppendUint32([]byte(name), uint32(len(content)))) + content
	return b + strings.Repeat("\x00", len(content)&1)
}

func webp(parts ...string) string {
	all := "WEBP" + strings.Join(parts, "")
	return "RIFF" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(all)))) + all
}

// vp8 is the only chunk of a file of 100 × 20. Its length is odd.
const vp8 = "\x10\x00\x00\x9d\x01\x2a\x64\x00\x14\x00 the pixels, not even"

// decoded are the pixels of a file, as the standard library sees them.
func decoded(t *testing.T, file string) *image.NRGBA {
	t.Helper()
	m, _, err := image.Decode(strings.NewReader(file))
	require.NoError(t, err)
	out := image.NewNRGBA(m.Bounds())
	draw.Draw(out, out.Bounds(), m, m.Bounds().Min, draw.Src)
	return out
}

func clean(t *testing.T, file string) string {
	t.Helper()
	out, err := Strip([]byte(file))
	require.NoError(t, err)
	again, err := Strip(out)
	require.NoError(t, err)
	require.Equal(t, out, again, "again")
	return string(out)
}

func TestPhotosLoseWhereTheyWereTaken(t *testing.T) {
	t.Parallel()
	plain := asJPEG(t, colours(30, 20))
	jfif := "JFIF\x00\x01\x02\x00\x00\x48\x00\x48"
	icc, adobe := seg(app0+2, "ICC_PROFILE\x00\x01\x01profile"), seg(app0+14, "Adobe\x00\x64\x00\x00\x00\x00\x01")
	turned := func(n int) string { return seg(app1, string(minimalExif(n))) }
	for name, c := range map[string]struct{ in, out string }{
		"plain":                  {plain, plain},
		"Exif, big-endian":       {photo(t, exif(binary.BigEndian, 1)), plain},
		"Exif, little-endian":    {photo(t, exif(binary.LittleEndian, 1)), plain},
		"Exif says nothing":      {photo(t, exif(binary.BigEndian, 0)), plain},
		"Exif lies":              {photo(t, exif(binary.BigEndian, 9)), plain},
		"Exif is cut off":        {photo(t, seg(app1, exifMark+"MM\x00\x2a\xff\xff\xff\xffSERIAL-8675309")), plain},
		"turned, big-endian":     {photo(t, exif(binary.BigEndian, 6)), photo(t, turned(6))},
		"turned, little-endian":  {photo(t, exif(binary.LittleEndian, 8)), photo(t, turned(8))},
		"the first Exif decides": {photo(t, exif(binary.BigEndian, 3), exif(binary.BigEndian, 6)), photo(t, turned(3))},
		"XMP":                    {photo(t, seg(app1, "http://ns.adobe.com/xap/1.0/\x00<x>Ada's phone</x>")), plain},
		"IPTC":                   {photo(t, seg(app0+13, "Photoshop 3.0\x008BIM GPS 43.6532 N 79.3832 W")), plain},
		"words":                  {photo(t, seg(com, "Ada's phone")), plain},
		"unknown":                {photo(t, seg(app0+7, "SERIAL-8675309"), seg(appF, "small copy"), seg(app0+2, "MPF\x00small copy")), plain},
		"colours stay":           {photo(t, icc, exif(binary.BigEndian, 1), adobe), photo(t, icc, adobe)},
		"Adobe and more":         {photo(t, seg(app0+14, "Adobe\x00\x64\x00\x00\x00\x00\x01SERIAL-8675309")), photo(t, adobe)},
		"JFIF's small picture":   {photo(t, seg(app0, jfif+"\x02\x02small copy.."), seg(app0, "JFXX\x00\x10small copy")), photo(t, seg(app0, jfif+"\x00\x00"))},
		"a video after it":       {plain + "\x00\x00\x00\x18ftypmp42 GPS 43.6532 N 79.3832 W", plain},
		"a picture after it":     {plain + photo(t, exif(binary.BigEndian, 1)), plain},
		"bytes between segments": {photo(t, "\xff\xff\xff"+exif(binary.BigEndian, 1)), plain},
		"progressive":            {progressive(exif(binary.LittleEndian, 1)), strings.NewReplacer(seg(com, "SERIAL-8675309"), "", seg(app1+12, "SERIAL-8675309"), "").Replace(progressive())},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := clean(t, c.in)
			require.Equal(t, c.out, got)
			for _, s := range secrets {
				require.NotContains(t, got, s)
			}
			require.Equal(t, decoded(t, c.in), decoded(t, got))
			w, h := Size([]byte(c.in))
			w2, h2 := Size([]byte(got))
			require.Equal(t, []int{w, h}, []int{w2, h2})
			require.Equal(t, orientation([]byte(c.in)), orientation([]byte(got)))
		})
	}
	all := photo(t, exif(binary.BigEndian, 1))
	for _, s := range secrets {
		require.Contains(t, all, s, "the test has something to look for")
	}
}

func TestDrawingsLoseTheirWords(t *testing.T) {
	t.Parallel()
	see := colours(20, 30)
	for i := 3; i < len(see.Pix); i += 16 {
		see.Pix[i] = uint8(i) // transparency
	}
	plain := drawing(t, see)
	shown := []string{chunk("gAMA", "\x00\x00\xb1\x8f"), chunk("sRGB", "\x00"), chunk("cHRM", strings.Repeat("\x00\x00\x12\x34", 8))}
	clear := clean(t, drawing(t, see, shown...))
	require.Contains(t, clear, strings.Join(shown, ""))
	require.NotContains(t, clear, "tIME")
	hidden := []string{chunk("eXIf", string(tiff(binary.BigEndian, 6))), chunk("tEXt", "Author\x00Ada's phone"), chunk("zTXt", "x\x00\x00SERIAL-8675309"), chunk("iTXt", "XML:com.adobe.xmp\x00\x00\x00\x00\x00GPS 43.6532 N 79.3832 W"),
		chunk("meMo", "small copy"), chunk("caBX", "small copy"), chunk("pHYs", "\x00\x00\x0b\x13\x00\x00\x0b\x13\x01")}
	in := drawing(t, see, append(hidden, shown...)...) + photo(t, exif(binary.BigEndian, 1))
	got := clean(t, in)
	require.Equal(t, clear, got)
	require.Equal(t, see, decoded(t, got))
	require.Equal(t, decoded(t, in), decoded(t, got))
	w, h := Size([]byte(got))
	require.Equal(t, []int{20, 30}, []int{w, h})
	require.Equal(t, asPNG(t, see), clean(t, plain))

	palette := image.NewPaletted(image.Rect(0, 0, 4, 4), color.Palette{color.NRGBA{1, 2, 3, 0}, color.White})
	require.Equal(t, asPNG(t, palette), clean(t, asPNG(t, palette)), "PLTE and tRNS")
}

func TestWebPLosesItsExif(t *testing.T) {
	t.Parallel()
	place, who := part("EXIF", string(tiff(binary.LittleEndian, 6))), part("XMP ", "Ada's phone")
	icc, alpha := part("ICCP", "profile"), part("ALPH", "alpha")
	frame := strings.Repeat("\x00", 16)
	extended := func(flags string) string { return part("VP8X", flags+"\x00\x00\x00\x63\x00\x00\x13\x00\x00") }
	anim := part("ANIM", "\x00\x00\x00\x00\x00\x00")
	simple := webp(part("VP8 ", vp8))
	unpadded := simple[:len(simple)-1]
	unpadded = unpadded[:4] + string(binary.LittleEndian.AppendUint32(nil, uint32(len(unpadded)-8))) + unpadded[8:]
	for name, c := range map[string]struct{ in, out string }{
		"simple":       {simple, simple},
		"lossless":     {webp(part("VP8L", "\x2f\x63\xc0\x04\x00 pixels")), webp(part("VP8L", "\x2f\x63\xc0\x04\x00 pixels"))},
		"simple, more": {webp(part("VP8 ", vp8), place), simple},
		"extended":     {webp(extended("\x3c"), icc, alpha, part("VP8 ", vp8), place, who, part("more", "small copy")), webp(extended("\x30"), icc, alpha, part("VP8 ", vp8))},
		"follows":      {simple + "SERIAL-8675309", simple},
		"no padding":   {unpadded, simple},
		"animation":    {webp(extended("\x0e"), anim, part("ANMF", frame+part("VP8 ", vp8)+who), place), webp(extended("\x02"), anim, part("ANMF", frame+part("VP8 ", vp8)))},
	} {
		got := clean(t, c.in)
		require.Equal(t, c.out, got, name)
		w, h := Size([]byte(got))
		require.Equal(t, []int{100, 20}, []int{w, h}, name)
	}
}

// What ends too early or lies about its lengths is no picture, whatever is left of
// it; what follows its end does not matter.
func TestFalsePictures(t *testing.T) {
	t.Parallel()
	jpg, pic, web := photo(t, exif(binary.BigEndian, 6)), drawing(t, colours(5, 5), chunk("tEXt", "x\x00y")), webp(part("VP8X", "\x0c\x00\x00\x00\x63\x00\x00\x13\x00\x00"), part("VP8 ", vp8), part("EXIF", "xx"))
	no := func(file string, what ...any) {
		t.Helper()
		_, err := Strip([]byte(file))
		require.ErrorIs(t, err, ErrFalse, what...)
	}
	for _, file := range []string{jpg, progressive(), pic, web} {
		clean(t, file)
		for i := range file {
			no(file[:i], "%d of %d", i, len(file))
		}
	}
	scan := asJPEG(t, colours(30, 20))
	frame := scan[strings.Index(scan, "\xff\xc0"):strings.Index(scan, "\xff\xc4")]
	for name, file := range map[string]string{
		"nothing":                    "",
		"another kind":               "GIF89a",
		"a short segment":            photo(t, "\xff\xe1\x00\x01"),
		"a segment beyond the end":   photo(t, "\xff\xe1\xff\xff"),
		"no segment":                 photo(t, "x"),
		"a second beginning":         photo(t, jpegMark),
		"a second frame":             photo(t, frame),
		"only an end":                jpegMark + "\xff\xd9",
		"a scan without a frame":     jpegMark + scan[strings.Index(scan, "\xff\xda"):],
		"a kind that nobody shows":   photo(t, seg(0xc9, "x")),
		"a restart without a scan":   photo(t, "\xff\xd0"),
		"no pixels":                  strings.Replace(scan, "\x00\x14\x00\x1e\x03", "\x00\x14\x00\x00\x03", 1),
		"a chunk beyond the end":     pngMark + "\xff\xff\xff\xffIHDR",
		"a header that comes later":  pngMark + chunk("tEXt", "x") + pic[8:],
		"a second header":            drawing(t, colours(5, 5), pic[8:8+25]),
		"a chunk that one must know": drawing(t, colours(5, 5), chunk("XXXX", "x")),
		"a wrong checksum":           strings.Replace(drawing(t, colours(5, 5), chunk("sRGB", "\x00")), "sRGB\x00", "sRGB\x01", 1),
		"no data":                    pic[:8+25] + chunk("IEND", ""),
		"an end with something":      pic[:len(pic)-12] + chunk("IEND", "x"),
		"RIFF beyond the end":        web[:4] + "\xff\xff\xff\x7f" + web[8:],
		"RIFF of nothing":            web[:4] + "\x00\x00\x00\x00" + web[8:],
		"a short VP8X":               webp(part("VP8X", "\x00\x00\x00\x00"), part("VP8 ", vp8)),
		"VP8X alone":                 webp(part("VP8X", "\x00\x00\x00\x00\x63\x00\x00\x13\x00\x00"), part("EXIF", "xx")),
		"two pictures":               webp(part("VP8 ", vp8), part("VP8 ", vp8)),
		"VP8X twice":                 webp(part("VP8X", "\x00\x00\x00\x00\x63\x00\x00\x13\x00\x00"), part("VP8X", "\x00\x00\x00\x00\x63\x00\x00\x13\x00\x00"), part("VP8 ", vp8)),
		"a frame without pixels":     webp(part("VP8X", "\x02\x00\x00\x00\x63\x00\x00\x13\x00\x00"), part("ANMF", strings.Repeat("\x00", 16)+part("ALPH", "x"))),
		"a short frame":              webp(part("VP8X", "\x02\x00\x00\x00\x63\x00\x00\x13\x00\x00"), part("ANMF", "x")),
		"a chunk that lies":          strings.Replace(web, "EXIF\x02", "EXIF\x03", 1),
	} {
		no(file, name)
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		file string
		w, h int
	}{
		{asPNG(t, colours(30, 20)), 30, 20}, {asJPEG(t, colours(30, 20)), 30, 20}, {webp(part("VP8L", "\x2f\x63\xc0\x04\x00\x00\x00\x00\x00\x00")), 100, 20}, {webp(part("VP8 ", vp8)), 100, 20},
		{webp(part("VP8L", "\x2e\x63\xc0\x04\x00\x00\x00\x00\x00\x00")), 0, 0}, {webp(part("ANIM", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")), 0, 0}, {"", 0, 0}, {"RIFF", 0, 0},
		{photo(t, seg(app1, exifMark)), 30, 20}, {photo(t, seg(app1, exifMark+"MM\x00\x2a\xff\xff\xff\xff")), 30, 20},
	} {
		w, h := Size([]byte(c.file))
		require.Equal(t, []int{c.w, c.h}, []int{w, h}, "%d", i)
	}
	for turn := range uint16(10) {
		for _, order := range []binary.ByteOrder{binary.BigEndian, binary.LittleEndian} {
			want := []int{30, 20}
			if turn >= 5 && turn <= 8 {
				want = []int{20, 30}
			}
			w, h := Size([]byte(photo(t, exif(order, turn))))
			require.Equal(t, want, []int{w, h}, fmt.Sprint(turn, order))
		}
	}
}

func FuzzStrip(f *testing.F) {
	for _, file := range []string{photo(f, exif(binary.BigEndian, 6), seg(app0+2, "ICC_PROFILE\x00\x01\x01")), progressive(exif(binary.LittleEndian, 8)), drawing(f, colours(5, 5), chunk("tEXt", "x\x00y")),
		webp(part("VP8X", "\x3c\x00\x00\x00\x63\x00\x00\x13\x00\x00"), part("VP8 ", vp8), part("EXIF", "xx")), webp(part("VP8X", "\x02\x00\x00\x00\x63\x00\x00\x13\x00\x00"), part("ANMF", strings.Repeat("\x00", 16)+part("VP8 ", vp8)))} {
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		before := bytes.Clone(file)
		out, err := Strip(file)
		require.Equal(t, before, file, "what is given is not written to")
		if err != nil {
			require.ErrorIs(t, err, ErrFalse)
			return
		}
		require.True(t, Is(out))
		w, h := Size(out)
		require.Equal(t, w > 0, h > 0)
		again, err := Strip(out)
		require.NoError(t, err)
		require.Equal(t, out, again)
		if len(file) > 1<<16 || w*h > 1<<16 {
			return
		}
		a, _, err := image.Decode(bytes.NewReader(file))
		if err != nil {
			return
		}
		b, _, err := image.Decode(bytes.NewReader(out))
		require.NoError(t, err)
		require.Equal(t, a, b, "the same pixels")
	})
}
