// Package picture takes out of pictures what is not needed to show them: where
// and when a photo was taken, with which device and by whom, small copies of what
// it showed before it was cut, and whatever follows its end. Nothing is encoded
// anew: what is shown are the same pixels in the same colours.
//
// It keeps what it knows and drops the rest, so what was not thought of goes too.
// Parts of a picture that lie about themselves, or that end too early, make it no
// picture. Functions hold no state and may be called at the same time.
package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	_ "image/jpeg" // pictures that are taken
	_ "image/png"
)

// ErrFalse says that a file begins like a picture and is none.
var ErrFalse = errors.New("the file is not the picture that it begins as")

const (
	jpegMark = "\xff\xd8"
	pngMark  = "\x89PNG\r\n\x1a\n"
)

// Is reports whether a file begins like a picture: JPEG, PNG or WebP.
func Is(file []byte) bool {
	return bytes.HasPrefix(file, []byte(jpegMark)) || bytes.HasPrefix(file, []byte(pngMark)) || isWebP(file)
}

// Strip is a picture without what is not needed to show it. The result can be
// given to it again, which changes nothing. Error: ErrFalse.
func Strip(file []byte) ([]byte, error) {
	var out []byte
	var ok bool
	switch {
	case bytes.HasPrefix(file, []byte(jpegMark)):
		out, ok = stripJPEG(file)
	case bytes.HasPrefix(file, []byte(pngMark)):
		out, ok = stripPNG(file)
	case isWebP(file):
		out, ok = stripWebP(file)
	}
	if w, _ := Size(out); !ok || w == 0 {
		return nil, ErrFalse
	}
	return out, nil
}

// Size is that of a picture in pixels as it is shown, 0 when its header does not
// say.
func Size(file []byte) (width, height int) {
	if c, _, err := image.DecodeConfig(bytes.NewReader(file)); err == nil && c.Width > 0 && c.Height > 0 {
		if orientation(file) > 4 {
			return c.Height, c.Width
		}
		return c.Width, c.Height
	}
	return webPSize(file)
}

// webPSize reads the first chunk of a WebP file (RFC 9649 2.5 to 2.7).
func webPSize(file []byte) (width, height int) {
	if len(file) < 30 || !isWebP(file) {
		return 0, 0
	}
	switch body := file[20:]; string(file[12:16]) {
	case "VP8 ": // a frame tag of three bytes and a start code (RFC 6386 9.1)
		if bytes.Equal(body[3:6], []byte{0x9d, 0x01, 0x2a}) {
			return int(binary.LittleEndian.Uint16(body[6:]) & 0x3fff), int(binary.LittleEndian.Uint16(body[8:]) & 0x3fff)
		}
	case "VP8L": // a signature of one byte, then 14 bits each, less one
		if bits := binary.LittleEndian.Uint32(body[1:]); body[0] == 0x2f {
			return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
		}
	case "VP8X": // flags of four bytes, then 24 bits each, less one
		u24 := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
		return u24(body[4:]) + 1, u24(body[7:]) + 1
	}
	return 0, 0
}
