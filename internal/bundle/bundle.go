// Package bundle fills support bundles: named files, as a tar in gzip. Secrets and codes are
// left out by its callers, and hidden where one slips through.
package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Bundle is a support bundle being filled: named files that help to understand
// a program's state. One goroutine uses it.
type Bundle struct {
	buf  bytes.Buffer
	gz   *gzip.Writer
	tar  *tar.Writer
	made time.Time
	hide *strings.Replacer // nil: nothing
	err  error
}

// Hidden stands where a secret stood.
const Hidden = "[hidden]"

// New begins a bundle made at now.
func New(now time.Time) *Bundle {
	b := &Bundle{made: now}
	b.gz = gzip.NewWriter(&b.buf)
	b.tar = tar.NewWriter(b.gz)
	return b
}

// Hide hides texts in the files that are added from now on. Empty ones count for nothing.
func (b *Bundle) Hide(secrets ...string) {
	var pairs []string
	for _, s := range secrets {
		if s != "" {
			pairs = append(pairs, s, Hidden)
		}
	}
	b.hide = strings.NewReplacer(pairs...)
}

// Add puts a file into the bundle. The first error is kept for Bytes.
func (b *Bundle) Add(name string, content []byte) {
	if b.hide != nil {
		content = []byte(b.hide.Replace(string(content)))
	}
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

// AddAbout says which program made the bundle, and when: about.json.
func (b *Bundle) AddAbout(program, version string) {
	b.AddJSON("about.json", map[string]any{"program": program, "version": version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH, "made_at": b.made})
}

// AddFacts puts each fact into a JSON file of its name, in the order of names.
func (b *Bundle) AddFacts(facts map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		b.AddJSON(name+".json", facts[name])
	}
}

// Bytes ends the bundle: a tar.gz file.
func (b *Bundle) Bytes() ([]byte, error) {
	for _, end := range []func() error{b.tar.Close, b.gz.Close} {
		if err := end(); b.err == nil {
			b.err = err
		}
	}
	if b.err != nil {
		return nil, fmt.Errorf("make support bundle: %w", b.err)
	}
	return b.buf.Bytes(), nil
}
