package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"time"
)

// Bounds of the work. A decoded picture takes up to 8 bytes a pixel and a
// progressive JPEG file up to 4 more for each of its colours, so pixels alone say
// little: what a picture will take is computed before it is decoded, and as one
// is decoded at a time, that is what all of them take. Until it is collected,
// what the one before took may lie beside it.
const (
	thumbSide    = 480 // pixels, the longest
	thumbQuality = 80
	maxPixels    = 50_000_000
	maxSide      = 1<<16 - 1
	maxMemory    = 200 << 20 // bytes
	maxScans     = 100       // of a JPEG file: usual are ten; each goes over all pixels
	maxWait      = 5 * time.Second
)

// Thumbnails makes small pictures, one after the other. Safe for concurrent use.
type Thumbnails struct {
	turn   chan struct{}
	decode func(file []byte) (image.Image, error)
}

// NewThumbnails is a maker of small pictures. One is enough for a process.
func NewThumbnails() *Thumbnails {
	return &Thumbnails{turn: make(chan struct{}, 1), decode: func(file []byte) (image.Image, error) {
		m, _, err := image.Decode(bytes.NewReader(file))
		return m, err
	}}
}

// Make is a picture as a JPEG file of at most 480 pixels on its longest side,
// turned as it is shown, and on white where one sees through. It is nil when
// there is none: of WebP, of what takes too much to decode or cannot be, when it
// would be no smaller than the file, and when others keep it waiting for
// seconds. Error: that of ctx, which ended meanwhile.
func (t *Thumbnails) Make(ctx context.Context, file []byte) ([]byte, error) {
	if !bearable(file) {
		return nil, ctx.Err()
	}
	late := time.NewTimer(maxWait)
	defer late.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late.C:
		return nil, nil
	case t.turn <- struct{}{}:
	}
	defer func() { <-t.turn }()
	m, err := t.decode(file)
	if err != nil {
		return nil, ctx.Err()
	}
	var out bytes.Buffer
	if err := jpeg.Encode(&out, turn(shrink(m), orientation(file)), &jpeg.Options{Quality: thumbQuality}); err != nil || out.Len() >= len(file) {
		return nil, ctx.Err()
	}
	return out.Bytes(), ctx.Err()
}

// bearable reports whether a picture can be decoded within the bounds.
func bearable(file []byte) bool {
	c, kind, err := image.DecodeConfig(bytes.NewReader(file))
	if err != nil || c.Width <= 0 || c.Height <= 0 || c.Width > maxSide || c.Height > maxSide || c.Width*c.Height > maxPixels {
		return false
	}
	each := 4 // bytes of a pixel
	switch c.ColorModel {
	case color.GrayModel:
		each = 1
	case color.YCbCrModel:
		each = 3
	case color.Gray16Model:
		each = 2
	case color.RGBA64Model, color.NRGBA64Model, color.CMYKModel:
		each = 8
	}
	switch {
	case kind == "png" && len(file) > 28 && file[28] != 0: // its parts are decoded by themselves before they are joined
		each *= 2
	case kind == "jpeg":
		colours, progressive, scans := frame(file)
		if c.ColorModel == color.RGBAModel {
			each = 7 // from three
		}
		if progressive {
			each += 4 * colours
		}
		if scans > maxScans {
			return false
		}
	}
	return c.Width*c.Height*each <= maxMemory
}

// frame is what the headers of a JPEG file say about the work that it makes.
func frame(file []byte) (colours int, progressive bool, scans int) {
	for at := len(jpegMark); ; {
		marker, body, next := segment(file, at)
		switch {
		case body == nil:
			return colours, progressive, scans
		case marker >= sof0 && marker <= sof2 && len(body) > 5:
			colours, progressive = int(body[5]), marker == sof2
		case marker == sos:
			scans++
			next = scanEnd(file, next)
		}
		at = next
	}
}

// shrink is a picture of at most the size of a thumbnail, on white. Each of its
// pixels is the mean of the area that it stands for.
func shrink(m image.Image) *image.RGBA {
	b := m.Bounds()
	w, h := b.Dx(), b.Dy()
	ow, oh := w, h
	if long := max(w, h); long > thumbSide {
		ow, oh = max(1, (w*thumbSide+long/2)/long), max(1, (h*thumbSide+long/2)/long)
	}
	out := image.NewRGBA(image.Rect(0, 0, ow, oh))
	row := image.NewRGBA(image.Rect(0, 0, w, 1))
	wide, sum := make([]uint32, 3*ow), make([]uint64, 3*ow) // of a row of m, and of those of a row of out
	for y, oy, need := 0, 0, h; y < h; y++ {
		draw.Draw(row, row.Rect, image.White, image.Point{}, draw.Src)
		draw.Draw(row, row.Rect, m, image.Pt(b.Min.X, b.Min.Y+y), draw.Over)
		across(wide, row.Pix, w, ow)
		// A pixel of m is ow wide and oh high, one of out w wide and h high, so that all
		// that they share are whole numbers.
		for left := oh; left > 0; {
			part := min(left, need)
			for i, v := range wide {
				sum[i] += uint64(v) * uint64(part)
			}
			if left, need = left-part, need-part; need > 0 {
				break
			}
			area := uint64(w) * uint64(h)
			to := out.Pix[oy*out.Stride:]
			for x := range ow {
				for i := range 3 {
					to[4*x+i] = uint8((sum[3*x+i] + area/2) / area)
				}
				to[4*x+3] = 255
			}
			clear(sum)
			oy, need = oy+1, h
		}
	}
	return out
}

// across sums a row of w pixels up to one of ow.
func across(to []uint32, pix []byte, w, ow int) {
	clear(to)
	need := w
	for o, x := 0, 0; x < w; x++ {
		p := pix[4*x : 4*x+3 : 4*x+3]
		for left := ow; left > 0; {
			part := min(left, need)
			t := to[3*o : 3*o+3 : 3*o+3]
			t[0] += uint32(p[0]) * uint32(part)
			t[1] += uint32(p[1]) * uint32(part)
			t[2] += uint32(p[2]) * uint32(part)
			if left, need = left-part, need-part; need == 0 {
				o, need = o+1, w
			}
		}
	}
}

// turn is a picture as its orientation says that it is shown (CIPA DC-008 4.6.4).
func turn(m *image.RGBA, how int) *image.RGBA {
	if how == 1 {
		return m
	}
	w, h := m.Rect.Dx(), m.Rect.Dy()
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	if how > 4 {
		out = image.NewRGBA(image.Rect(0, 0, h, w))
	}
	for y := range h {
		for x := range w {
			left, up := w-1-x, h-1-y
			to := [...]image.Point{2: {left, y}, 3: {left, up}, 4: {x, up}, 5: {y, x}, 6: {up, x}, 7: {up, left}, 8: {y, left}}[how]
			binary.NativeEndian.PutUint32(out.Pix[out.PixOffset(to.X, to.Y):], binary.NativeEndian.Uint32(m.Pix[m.PixOffset(x, y):]))
		}
	}
	return out
}
