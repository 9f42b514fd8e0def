package chat

import (
	"bytes"
	"encoding/binary"
	"image"
	_ "image/jpeg" // pictures that are taken
	_ "image/png"
)

// size is that of a picture in pixels, 0 when its header does not say.
func size(file []byte) (width, height int) {
	if c, _, err := image.DecodeConfig(bytes.NewReader(file)); err == nil && c.Width > 0 && c.Height > 0 {
		return c.Width, c.Height
	}
	return webPSize(file)
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
