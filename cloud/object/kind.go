package object

import (
	"bytes"
	"encoding/binary"
	"image/jpeg"
	"image/png"
	"io"

	"github.com/postern-io/postern/cloud"
)

// endings and kinds are the content types that can be kept.
var (
	endings = map[string]string{cloud.JPEG: ".jpg", cloud.PNG: ".png", cloud.WebP: ".webp", cloud.PDF: ".pdf", cloud.MP4: ".mp4", cloud.Gzip: ".gz"}
	kinds   = func() map[string]string {
		out := map[string]string{}
		for kind, ending := range endings {
			out[ending] = kind
		}
		return out
	}()
)

// kindOf is the content type of a file by its bytes, "" when it is none of
// ours. Pictures must have a header that tells their size.
func kindOf(r io.ReadSeeker) (string, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	head := make([]byte, 256)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return "", err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	switch head = head[:n]; {
	case bytes.HasPrefix(head, []byte{0xff, 0xd8, 0xff}):
		if c, err := jpeg.DecodeConfig(r); err == nil && c.Width > 0 && c.Height > 0 {
			return cloud.JPEG, nil
		}
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		if c, err := png.DecodeConfig(r); err == nil && c.Width > 0 && c.Height > 0 {
			return cloud.PNG, nil
		}
	case isWebP(head):
		return cloud.WebP, nil
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return cloud.PDF, nil
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b, 8}):
		return cloud.Gzip, nil
	case isMP4(head):
		return cloud.MP4, nil
	}
	return "", nil
}

// isWebP looks for the container and its first chunk (RFC 9649 2.4 to 2.7).
func isWebP(head []byte) bool {
	if len(head) < 20 || string(head[:4]) != "RIFF" || string(head[8:12]) != "WEBP" {
		return false
	}
	chunk := string(head[12:16])
	return chunk == "VP8 " || chunk == "VP8L" || chunk == "VP8X"
}

// isMP4 looks for a file type box with a brand of MP4 (ISO/IEC 14496-12 4.3).
func isMP4(head []byte) bool {
	if len(head) < 16 || string(head[4:8]) != "ftyp" {
		return false
	}
	size := min(int(binary.BigEndian.Uint32(head)), len(head))
	for at := 8; at+4 <= size; at += 4 {
		if at == 12 {
			continue // the minor version
		}
		switch brand := string(head[at : at+4]); {
		case brand == "mp41", brand == "mp42", brand == "avc1", brand == "isom", brand[:3] == "iso" && brand[3] >= '2' && brand[3] <= '9':
			return true
		}
	}
	return false
}
