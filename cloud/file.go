package cloud

import (
	"errors"
	"time"
)

// StoredFile is a file that is kept outside of the database.
type StoredFile struct {
	Path string // where it is kept: an area, a slash, a random name
	MIME string
	Size int64 // bytes
}

// Content types of files that can be kept.
const (
	JPEG = "image/jpeg"
	PNG  = "image/png"
	WebP = "image/webp"
	PDF  = "application/pdf"
	MP4  = "video/mp4"
	Gzip = "application/gzip"
)

// Errors of a file store.
var (
	ErrFileSize = errors.New("the file is too long")
	ErrFileKind = errors.New("the file is of no kind that is taken here")
)

// KeptFile is the row that says that a stored file is still needed. A file
// without one is removed some time later.
type KeptFile struct {
	Path       string
	BusinessID BusinessID
	OrderID    OrderID // it goes with it; 0: with none
	At         time.Time
}

// FileChanges are the changes of stored files.
type FileChanges struct {
	// Files say which stored files are needed; DroppedFiles are needed no more.
	Files        []KeptFile // insert
	DroppedFiles []KeptFile
}
