package picture

import (
	"bytes"
	"encoding/binary"
)

// Markers of JPEG (ITU-T T.81 table B.1).
const (
	sof0 = 0xc0 // baseline; 1 extended, 2 progressive
	sof2 = 0xc2
	dht  = 0xc4
	rst0 = 0xd0
	rst7 = 0xd7
	eoi  = 0xd9
	sos  = 0xda
	dqt  = 0xdb
	dnl  = 0xdc
	dri  = 0xdd
	app0 = 0xe0
	app1 = 0xe1
	appF = 0xef
	com  = 0xfe
)

const exifMark = "Exif\x00\x00"

// stripJPEG copies a JPEG file segment by segment up to its end:
//
//	ff marker, length of two bytes with itself, content; after a scan's header its data
func stripJPEG(file []byte) (out []byte, ok bool) {
	out = append(make([]byte, 0, len(file)+4), jpegMark...)
	frame, scan, exif := false, false, false
	for at := len(jpegMark); ; {
		marker, body, next := segment(file, at)
		switch {
		case marker == eoi:
			return append(out, 0xff, eoi), frame && scan
		case body == nil:
			return nil, false
		case marker >= sof0 && marker <= sof2:
			if frame {
				return nil, false
			}
			frame = true
		case marker == sos:
			if !frame {
				return nil, false
			}
			scan = true
		case marker == dht, marker == dqt, marker == dri, marker == dnl:
		case marker == com:
			body = nil
		case marker >= app0 && marker <= appF:
			if tiff, is := bytes.CutPrefix(body, []byte(exifMark)); is && marker == app1 && !exif && !scan {
				body, exif = minimalExif(turnOf(tiff)), true
			} else {
				body = colour(marker, body)
			}
		default:
			return nil, false
		}
		if body != nil {
			out = append(out, 0xff, marker)
			out = binary.BigEndian.AppendUint16(out, uint16(len(body)+2))
			out = append(out, body...)
		}
		if marker == sos {
			end := scanEnd(file, next)
			out = append(out, file[next:end]...)
			next = end
		}
		at = next
	}
}

// segment is what begins at a place of a JPEG file, and where the next one
// begins. body is nil at the end of the picture and where there is no segment.
func segment(file []byte, at int) (marker byte, body []byte, next int) {
	if at >= len(file) || file[at] != 0xff {
		return 0, nil, at
	}
	for at < len(file) && file[at] == 0xff { // some write more than one (T.81 B.1.1.2)
		at++
	}
	if at == len(file) {
		return 0, nil, at
	}
	if marker = file[at]; marker == eoi || at+3 > len(file) {
		return marker, nil, at
	}
	start := at + 3
	end := at + 1 + int(binary.BigEndian.Uint16(file[at+1:]))
	if end < start || end > len(file) {
		return marker, nil, at
	}
	return marker, file[start:end:end], end
}

// scanEnd is where the data of a scan ends: at a marker that neither restarts it
// nor stands for the byte ff, or at the end of the file.
func scanEnd(file []byte, at int) int {
	for at < len(file) {
		i := bytes.IndexByte(file[at:], 0xff)
		if i < 0 {
			break
		}
		at += i
		next := at + 1
		for next < len(file) && file[next] == 0xff {
			next++
		}
		if next == len(file) {
			break
		}
		if m := file[next]; m != 0 && (m < rst0 || m > rst7) {
			return at
		}
		at = next + 1
	}
	return len(file)
}

// colour is what of an application's segment is needed for the colours, nil when
// nothing is: JFIF without its small picture, a profile, how Adobe's are coded.
func colour(marker byte, body []byte) []byte {
	is := func(name string) bool { return bytes.HasPrefix(body, []byte(name)) }
	switch {
	case marker == app0 && is("JFIF\x00"):
		body = bytes.Clone(body[:min(14, len(body))])
		if len(body) == 14 {
			body[12], body[13] = 0, 0 // width and height of the small picture
		}
		return body
	case marker == app0+2 && is("ICC_PROFILE\x00"):
		return body
	case marker == app0+14 && is("Adobe") && len(body) >= 12:
		return body[:12]
	}
	return nil
}

// orientation is how a JPEG file is to be turned to be shown, as its Exif segment
// says: 1, not at all, to 8 (CIPA DC-008 4.6.4). Pictures above 4 lie on their side.
func orientation(file []byte) int {
	if !bytes.HasPrefix(file, []byte(jpegMark)) {
		return 1
	}
	for at := len(jpegMark); ; {
		marker, body, next := segment(file, at)
		if body == nil || marker == sos {
			return 1
		}
		if tiff, ok := bytes.CutPrefix(body, []byte(exifMark)); ok && marker == app1 {
			return turnOf(tiff)
		}
		at = next
	}
}

const (
	tagOrientation = 0x0112
	typeShort      = 3
)

// turnOf is the orientation in the first directory of a TIFF header, 1 when there
// is none that is one.
func turnOf(tiff []byte) int {
	const entry = 12
	var order binary.ByteOrder = binary.BigEndian
	switch {
	case len(tiff) < 8:
		return 1
	case string(tiff[:4]) == "II\x2a\x00":
		order = binary.LittleEndian
	case string(tiff[:4]) != "MM\x00\x2a":
		return 1
	}
	at := uint64(order.Uint32(tiff[4:]))
	if at+2 > uint64(len(tiff)) {
		return 1
	}
	for n := order.Uint16(tiff[at:]); n > 0 && at+2+entry <= uint64(len(tiff)); n-- {
		if e := tiff[at+2 : at+2+entry]; order.Uint16(e) == tagOrientation {
			if how := order.Uint16(e[8:]); order.Uint16(e[2:]) == typeShort && how >= 1 && how <= 8 {
				return int(how)
			}
			return 1
		}
		at += entry
	}
	return 1
}

// minimalExif is the content of an Exif segment that says how to turn a picture
// and nothing else; nil when it is not to be turned.
func minimalExif(turn int) []byte {
	if turn == 1 {
		return nil
	}
	b := []byte(exifMark + "MM\x00\x2a\x00\x00\x00\x08\x00\x01") // a header, and a directory of one entry
	b = binary.BigEndian.AppendUint16(b, tagOrientation)
	b = binary.BigEndian.AppendUint16(b, typeShort)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint16(b, uint16(turn))
	return append(b, 0, 0, 0, 0, 0, 0) // the rest of the value, and no directory after this one
}
