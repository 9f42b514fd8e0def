package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"time"
)

// Bundle is a support bundle being filled: named files that help to understand
// a program's state. Secrets and codes are left out of it.
type Bundle struct {
	buf  bytes.Buffer
	gz   *gzip.Writer
	tar  *tar.Writer
	made time.Time
	err  error
}

// NewBundle begins a bundle made at now.
func NewBundle(now time.Time) *Bundle {
	b := &Bundle{made: now}
	b.gz = gzip.NewWriter(&b.buf)
	b.tar = tar.NewWriter(b.gz)
	return b
}

// Add puts a file into the bundle. The first error is kept for Write.
func (b *Bundle) Add(name string, content []byte) {
	if b.err != nil {
		return
	}
	b.err = b.tar.WriteHeader(&tar.Header{Name: "support/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: b.made, Format: tar.FormatPAX})
	if b.err == nil {
		_, b.err = b.tar.Write(content)
	}
}

// AddJSON puts v into the bundle as indented JSON.
func (b *Bundle) AddJSON(name string, v any) {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("%s: %w", name, err)
	}
	b.Add(name, append(raw, '\n'))
}

// Write writes the bundle as a tar.gz file, mode 0600.
func (b *Bundle) Write(name string) error {
	for _, end := range []func() error{b.tar.Close, b.gz.Close} {
		if err := end(); b.err == nil {
			b.err = err
		}
	}
	if b.err != nil {
		return fmt.Errorf("make support bundle: %w", b.err)
	}
	return WriteFile(name, b.buf.Bytes())
}
