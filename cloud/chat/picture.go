package chat

import (
	"bytes"
	"encoding/binary"
	"image"
	_ "image/jpeg" // pictures that are taken
	_ "image/png"
)

// size is that of a picture in pixels as it is shown, 0 when its header does not
// say.
func size(file []byte) (width, height int) {
	if c, _, err := image.DecodeConfig(bytes.NewReader(file)); err == nil && c.Width > 0 && c.Height > 0 {
		if lies(file) {
			return c.Height, c.Width
		}
		return c.Width, c.Height
	}
	return webPSize(file)
}

// lies reports whether a JPEG file is shown turned by a quarter, as photos of
// telephones held upright are: its Exif segment says so (CIPA DC-008 4.6.4).
func lies(file []byte) bool {
	if !bytes.HasPrefix(file, []byte{0xff, 0xd8}) {
		return false
	}
	for at := 2; at+4 <= len(file) && file[at] == 0xff && file[at+1] != 0xda; { // segments up to the picture itself
		end := at + 2 + int(binary.BigEndian.Uint16(file[at+2:]))
		if end < at+4 || end > len(file) {
			return false
		}
		if exif, ok := bytes.CutPrefix(file[at+4:end], []byte("Exif\x00\x00")); ok && file[at+1] == 0xe1 {
			return turned(exif)
		}
		at = end
	}
	return false
}

// turned reports whether the orientation in the first directory of a TIFF header
// is one of those that lie on their side.
func turned(tiff []byte) bool {
	const orientation, entry = 0x0112, 12
	if len(tiff) < 8 {
		return false
	}
	var order binary.ByteOrder = binary.BigEndian
	if string(tiff[:2]) == "II" {
		order = binary.LittleEndian
	}
	at := uint64(order.Uint32(tiff[4:]))
	if at+2 > uint64(len(tiff)) {
		return false
	}
	for n := order.Uint16(tiff[at:]); n > 0 && at+2+entry <= uint64(len(tiff)); n-- {
		if e := tiff[at+2 : at+2+entry]; order.Uint16(e) == orientation {
			how := order.Uint16(e[8:])
			return how >= 5 && how <= 8
		}
		at += entry
	}
	return false
}

// webPSize reads the first chunk of a WebP file (RFC 9649 2.5 to 2.7).
func webPSize(file []byte) (width, height int) {
	if len(file) < 30 || string(file[:4]) != "RIFF" || string(file[8:12]) != "WEBP" {
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
