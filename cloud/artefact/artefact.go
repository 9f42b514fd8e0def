// Package artefact keeps the signed programs that cabinets are updated with, beside the
// uploaded files, where every node finds them.
//
// One that is there was whole and signed by a release key of the settings when it was added,
// and its manifest is verified again each time that it is offered. A version is never
// replaced by another program of the same name. No row names them, so they are in no backup
// of the database: add them again after a restore in another place. Safe for concurrent use.
package artefact

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/protocol/release"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// Prefix is what addresses of artefacts begin with.
const Prefix = "/api/v1/devices/programs/"

// openTime is how long it may take until an artefact is open.
const openTime = 30 * time.Second

// Errors of Add.
var (
	ErrNoKeys  = errors.New("the setting release_keys is empty: cabinets take no update without a release key")
	ErrProduct = errors.New("the artefact is for another product")
	ErrOther   = errors.New("another program with this version is there already")
)

// Shelf has the artefacts.
type Shelf struct {
	programs object.Programs
	keys     signed.Keys
}

// New takes the store and the public keys of releases.
func New(programs object.Programs, keys []ed25519.PublicKey) *Shelf {
	pinned := make([]wire.PinnedKey, len(keys))
	for i, k := range keys {
		pinned[i] = wire.PinnedKey{ID: signed.KeyID(k), Key: k}
	}
	return &Shelf{programs, signed.PinnedKeys(pinned)}
}

func nameOf(product, version, system, arch string) string {
	return product + "-" + version + "-" + system + "-" + arch
}

// Add takes an artefact of the agent. One that is there already is no error. Errors: those
// above, release.ErrArtefact, signed.ErrSignature, and those of r and the store.
func (s *Shelf) Add(ctx context.Context, r io.Reader) (release.Manifest, error) {
	if len(s.keys) == 0 {
		return release.Manifest{}, ErrNoKeys
	}
	m, envelope, err := release.Read(r, s.keys)
	if err != nil {
		return m, err
	}
	if m.Product != release.Edge {
		return m, fmt.Errorf("%w: it is %s, and must be %s", ErrProduct, m.Product, release.Edge)
	}
	name := nameOf(m.Product, m.Version, m.System, m.Arch)
	switch there, _, err := s.read(ctx, name); {
	case err == nil && !bytes.Equal(there.Digest, m.Digest):
		return m, fmt.Errorf("%w: %s for %s/%s", ErrOther, m.Version, m.System, m.Arch)
	case err == nil:
		return m, m.Copy(io.Discard, r)
	case errors.Is(err, signed.ErrSignature): // by a key that is known no more
	case !errors.Is(err, cloud.ErrNotFound):
		return m, err
	}
	return m, s.programs.Write(ctx, name, func(w io.Writer) error {
		if _, err := w.Write(release.Head(envelope)); err != nil {
			return err
		}
		return m.Copy(w, r)
	})
}

// read reads the manifest of one that is there.
func (s *Shelf) read(ctx context.Context, name string) (m release.Manifest, envelope []byte, err error) {
	r, _, err := s.programs.Open(ctx, name)
	if err != nil {
		return m, nil, err
	}
	m, envelope, err = release.Read(r, s.keys)
	return m, envelope, errors.Join(err, r.Close())
}

// List lists the manifests of those that are offered, by name.
func (s *Shelf) List(ctx context.Context) (list []release.Manifest, err error) {
	for name, err := range s.programs.List(ctx) {
		if err != nil {
			return nil, fmt.Errorf("list artefacts: %w", err)
		}
		m, _, err := s.read(ctx, name)
		if errors.Is(err, signed.ErrSignature) || errors.Is(err, release.ErrArtefact) || errors.Is(err, cloud.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read artefact %s: %w", name, err)
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b release.Manifest) int {
		return strings.Compare(nameOf(a.Product, a.Version, a.System, a.Arch), nameOf(b.Product, b.Version, b.System, b.Arch))
	})
	return list, nil
}

// FindUpdate is the order for a version of the agent on a platform, such as linux/arm64,
// with an address that is good until a time. Error: cloud.ErrNotFound, when there is none or
// a key that is known no more has signed it.
func (s *Shelf) FindUpdate(ctx context.Context, version, platform string, until time.Time) (wire.Update, error) {
	system, arch, _ := strings.Cut(platform, "/")
	if !release.IsVersion(version) {
		return wire.Update{}, cloud.ErrNotFound
	}
	name := nameOf(release.Edge, version, system, arch)
	m, envelope, err := s.read(ctx, name)
	if errors.Is(err, signed.ErrSignature) || errors.Is(err, release.ErrArtefact) || err == nil && nameOf(m.Product, m.Version, m.System, m.Arch) != name {
		return wire.Update{}, cloud.ErrNotFound
	}
	if err != nil {
		return wire.Update{}, err
	}
	return wire.Update{Version: m.Version, URL: Prefix + s.programs.Address(name, until), Size: m.Size, Digest: m.Digest, Signature: envelope}, nil
}

// Serve answers a request of a device at Prefix and a name: the bytes that its header Range
// names, "bytes=FROM-TO" or "bytes=FROM-". Without one it is the whole artefact.
func (s *Shelf) Serve(ctx *fasthttp.RequestCtx) {
	refuse := func(status int) {
		ctx.Response.Reset()
		ctx.SetStatusCode(status)
	}
	ctx.Response.Header.Set("Cache-Control", "no-store")
	if !ctx.IsGet() {
		refuse(fasthttp.StatusMethodNotAllowed)
		return
	}
	name, _ := ctx.UserValue("name").(string)
	query := ctx.QueryArgs()
	switch ok, over := s.programs.Signed(name, string(query.Peek("expires")), string(query.Peek("signature"))); {
	case !ok:
		refuse(fasthttp.StatusNotFound)
		return
	case over:
		refuse(fasthttp.StatusGone)
		return
	}
	asked := string(ctx.Request.Header.Peek("Range"))
	from, to, ok := parseRange(asked)
	if !ok {
		refuse(fasthttp.StatusBadRequest)
		return
	}
	opening, cancel := context.WithTimeout(context.Background(), openTime) // a request's context ends with the node alone
	defer cancel()
	r, size, err := s.programs.OpenFrom(opening, strings.Clone(name), from)
	switch {
	case errors.Is(err, io.EOF):
		refuse(fasthttp.StatusRequestedRangeNotSatisfiable)
		ctx.Response.Header.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		return
	case errors.Is(err, cloud.ErrNotFound):
		refuse(fasthttp.StatusNotFound)
		return
	case err != nil:
		refuse(fasthttp.StatusServiceUnavailable)
		return
	}
	to = min(to, size-1)
	if asked != "" {
		ctx.SetStatusCode(fasthttp.StatusPartialContent)
		ctx.Response.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, size))
	}
	ctx.SetContentType("application/octet-stream")
	ctx.SetBodyStream(&part{io.LimitReader(r, to-from+1), r}, int(to-from+1))
}

// part is a part of an artefact; fasthttp closes it.
type part struct {
	io.Reader
	io.Closer
}

// parseRange reads a header Range; without one it is everything.
func parseRange(text string) (from, to int64, ok bool) {
	if text == "" {
		return 0, 1<<63 - 2, true
	}
	text, isBytes := strings.CutPrefix(text, "bytes=")
	a, b, isRange := strings.Cut(text, "-")
	from, err := strconv.ParseInt(a, 10, 64)
	if b == "" {
		return from, 1<<63 - 2, isBytes && isRange && err == nil && from >= 0
	}
	to, toErr := strconv.ParseInt(b, 10, 64)
	return from, to, isBytes && isRange && err == nil && toErr == nil && from >= 0 && to >= from
}
