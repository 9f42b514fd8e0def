package picture

import "encoding/binary"

// isWebP looks for the container and its first chunk (RFC 9649 2.4 to 2.7).
func isWebP(file []byte) bool {
	if len(file) < 20 || string(file[:4]) != "RIFF" || string(file[8:12]) != "WEBP" {
		return false
	}
	chunk := string(file[12:16])
	return chunk == "VP8 " || chunk == "VP8L" || chunk == "VP8X"
}

// Chunks of WebP that say what is shown: of a file, and of a frame of an
// animation.
var (
	shownWebP  = map[string]bool{"VP8X": true, "VP8 ": true, "VP8L": true, "ALPH": true, "ANIM": true, "ANMF": true, "ICCP": true}
	shownFrame = map[string]bool{"VP8 ": true, "VP8L": true, "ALPH": true}
)

// stripWebP copies a WebP file chunk by chunk, as far as its header says that it
// goes.
func stripWebP(file []byte) (out []byte, ok bool) {
	size := uint64(binary.LittleEndian.Uint32(file[4:]))
	if size < 4 || size > uint64(len(file)-8) {
		return nil, false
	}
	body := file[12 : 8+size]
	if len(body) < 8 {
		return nil, false
	}
	out = append(make([]byte, 0, len(file)), file[:12]...)
	shown := shownWebP
	if string(body[:4]) != "VP8X" { // such a file is this one chunk
		shown = map[string]bool{string(body[:4]): true}
	}
	if out, ok = chunks(out, body, shown); !ok {
		return nil, false
	}
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	return out, true
}

// chunks appends the chunks of body that are shown, and reports whether all is
// whole and has pixels:
//
//	name of four bytes, length of four, content, a byte more when that is odd
func chunks(out, body []byte, shown map[string]bool) (_ []byte, ok bool) {
	const header, frame = 8, 16
	pixels := false
	for first := true; len(body) > 0; first = false {
		if len(body) < header {
			return nil, false
		}
		n := uint64(binary.LittleEndian.Uint32(body[4:]))
		if n > uint64(len(body)-header) {
			return nil, false
		}
		name, content := string(body[:4]), body[header:header+n]
		body = body[min(header+n+n&1, uint64(len(body))):]
		if !shown[name] {
			continue
		}
		begin := len(out)
		out = append(out, name+"\x00\x00\x00\x00"...)
		switch {
		case name == "VP8X" && (!first || n < 10), pixels && (name == "VP8 " || name == "VP8L"): // nor a second picture
			return nil, false
		case name == "VP8X":
			const exif, xmp = 0x08, 0x04
			out = append(out, content[:10]...)
			out[begin+header] &^= exif | xmp
		case name == "ANMF":
			if n < frame {
				return nil, false
			}
			out = append(out, content[:frame]...)
			if out, ok = chunks(out, content[frame:], shownFrame); !ok {
				return nil, false
			}
			pixels = true
		default:
			out = append(out, content...)
			pixels = pixels || name == "VP8 " || name == "VP8L"
		}
		kept := len(out) - begin - header
		binary.LittleEndian.PutUint32(out[begin+4:], uint32(kept))
		if kept&1 == 1 {
			out = append(out, 0)
		}
	}
	return out, pixels
}
