package picture

import (
	"encoding/binary"
	"hash/crc32"
)

// shownPNG are the chunks of PNG that say what is shown (PNG third edition, 11):
// pixels, colours, transparency and the frames of an animation.
var shownPNG = map[string]bool{
	"IHDR": true, "PLTE": true, "IDAT": true, "IEND": true, "tRNS": true, "bKGD": true,
	"cHRM": true, "gAMA": true, "iCCP": true, "sBIT": true, "sRGB": true, "cICP": true, "mDCV": true, "cLLI": true,
	"acTL": true, "fcTL": true, "fdAT": true,
}

// stripPNG copies a PNG file chunk by chunk up to its end:
//
//	length of four bytes, name of four, content, checksum of four over name and content
func stripPNG(file []byte) (out []byte, ok bool) {
	const around = 12
	out = append(make([]byte, 0, len(file)), pngMark...)
	data := false
	for at := len(pngMark); at+around <= len(file); {
		n := uint64(binary.BigEndian.Uint32(file[at:]))
		if n > uint64(len(file)-at-around) {
			return nil, false
		}
		end := at + around + int(n)
		chunk, name := file[at:end], string(file[at+4:at+8])
		first := at == len(pngMark)
		at = end
		switch {
		case first != (name == "IHDR"):
			return nil, false
		case !shownPNG[name] && name[0]&0x20 == 0: // one without which nothing can be shown (5.4)
			return nil, false
		case !shownPNG[name]:
			continue
		case crc32.ChecksumIEEE(chunk[4:len(chunk)-4]) != binary.BigEndian.Uint32(chunk[len(chunk)-4:]):
			return nil, false
		}
		out = append(out, chunk...)
		switch name {
		case "IDAT":
			data = true
		case "IEND":
			return out, data && n == 0
		}
	}
	return nil, false
}
