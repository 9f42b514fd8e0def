// Package backup copies what a cloud keeps into another store, while the cloud runs, and
// makes a cloud from such a copy.
//
//	backups/<id>/database.gz     the database at one moment (store.Dump)
//	backups/<id>/files.gz        names, sizes and digests of the uploaded files
//	backups/<id>/keys.age        the keys file, encrypted to a recipient; or it is left out
//	backups/<id>/manifest.json   written last: without it there is no backup
//	contents/<name>              uploaded files, each once for all backups
//
// An id begins with the time, so that the last one in order is the newest. A backup that
// was interrupted has no manifest; no reader takes it for a whole one. Files are copied
// before the database and again after it, so that none that a row names is missing.
package backup

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"filippo.io/age"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/store"
)

// Format is the version of what this package writes. A reader refuses higher ones.
const Format = 1

const (
	root         = "backups/"
	contents     = "contents/"
	manifestName = "manifest.json"
	databaseName = "database.gz"
	filesName    = "files.gz"
	keysName     = "keys.age"
	idTime       = "20060102T150405Z" // at the head of an id

	// unfinishedFor is how old a backup without a manifest is when it is removed.
	unfinishedFor = 24 * time.Hour

	// namedIDs bounds how many backups an error names.
	namedIDs = 5
)

// GraceAhead is how far a backup may be dated ahead of this machine's clock, since clocks of
// nodes differ a little. One that is dated later is of a clock that was wrong: it is never
// the newest, is not counted and is not removed.
const GraceAhead = 5 * time.Minute

// Manifest says what a backup holds.
type Manifest struct {
	Format   int        `json:"format"`
	ID       string     `json:"id"`
	TakenAt  time.Time  `json:"taken_at"` // no change of the database after it is missing in what the manifest before it lacks
	Release  string     `json:"release"`  // of the program
	Schema   string     `json:"schema"`   // of the program's tables
	Dump     store.Dump `json:"dump"`
	Database Part       `json:"database"`
	Files    Part       `json:"files"`
	Uploads  int        `json:"uploads"`        // uploaded files
	Bytes    int64      `json:"upload_bytes"`   // of them
	Keys     *Part      `json:"keys,omitempty"` // nil: they are kept elsewhere
	// KeysDigest names the keys that the database belongs to without giving them away; empty
	// in backups of before it was noted.
	KeysDigest []byte `json:"keys_digest,omitempty"`
}

// Part is an object of a backup.
type Part struct {
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// Database is what is copied.
type Database interface {
	Dump(ctx context.Context, spool string, w io.Writer) (store.Dump, error)
}

// Config is what New needs.
type Config struct {
	Database Database
	Files    object.Store // uploaded files
	Target   object.Store // backups
	Spool    string       // a folder with room for a copy of a SQLite database
	Keys     []byte       // the keys file
	// KeysDigest names the keys without giving them away; empty: it is not noted.
	KeysDigest []byte
	// Recipients may decrypt the keys file; none: it is left out.
	Recipients []age.Recipient
	Release    string
	Keep       int           // backups; 0: all
	Every      time.Duration // of Run
	Log        *slog.Logger
}

// Service takes backups.
type Service struct {
	cfg   Config
	now   func() time.Time
	ahead atomic.Pointer[[]string] // that the log has named

	Metrics Metrics
}

// New builds the service.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{cfg: cfg, now: time.Now}
}

// Errors of this package.
var (
	ErrNone    = errors.New("there is no whole backup")
	ErrUnknown = errors.New("there is no whole backup of this id")
	ErrDamaged = errors.New("the backup is damaged")
	ErrNewer   = errors.New("the backup was written by a newer release; use that one")
)

// Take takes a backup, reads it back, and gives its manifest.
func (s *Service) Take(ctx context.Context) (m Manifest, err error) {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	at := s.now().UTC().Truncate(time.Millisecond)
	m = Manifest{Format: Format, ID: at.Format(idTime) + "-" + hex.EncodeToString(random[:]), TakenAt: at, Release: s.cfg.Release, Schema: store.Schema(), KeysDigest: s.cfg.KeysDigest}
	defer func() {
		if err != nil {
			err = fmt.Errorf("take backup %s: %w", m.ID, err)
		}
	}()
	files, err := s.knownFiles(ctx)
	if err != nil {
		return m, err
	}
	if err := files.copy(ctx, s.cfg.Files, s.cfg.Target); err != nil {
		return m, err
	}
	m.TakenAt = s.now().UTC().Truncate(time.Millisecond)
	if m.Database, err = s.write(ctx, m.ID, databaseName, func(w io.Writer) (err error) {
		m.Dump, err = s.cfg.Database.Dump(ctx, s.cfg.Spool, w)
		return err
	}); err != nil {
		return m, err
	}
	if err := files.copy(ctx, s.cfg.Files, s.cfg.Target); err != nil {
		return m, err
	}
	if m.Files, err = s.write(ctx, m.ID, filesName, files.encode); err != nil {
		return m, err
	}
	m.Uploads, m.Bytes = files.total()
	if len(s.cfg.Recipients) > 0 {
		keys, err := s.writeKeys(ctx, m.ID)
		if err != nil {
			return m, err
		}
		m.Keys = &keys
	}
	if err := Verify(ctx, s.cfg.Target, m, s.cfg.Spool); err != nil {
		return m, err
	}
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, err
	}
	_, err = object.Write(ctx, s.cfg.Target, root+m.ID+"/"+manifestName, func(w io.Writer) error {
		_, err := w.Write(append(raw, '\n'))
		return err
	})
	return m, err
}

// write writes a compressed part.
func (s *Service) write(ctx context.Context, id, name string, fill func(io.Writer) error) (p Part, err error) {
	h := sha256.New()
	p.Size, err = object.Write(ctx, s.cfg.Target, root+id+"/"+name, func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(io.MultiWriter(w, h), gzip.BestSpeed)
		if err != nil {
			return err
		}
		return errors.Join(fill(z), z.Close())
	})
	p.SHA256 = hex.EncodeToString(h.Sum(nil))
	return p, err
}

func (s *Service) writeKeys(ctx context.Context, id string) (p Part, err error) {
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, s.cfg.Recipients...)
	if err != nil {
		return p, err
	}
	_, err = w.Write(s.cfg.Keys)
	if err = errors.Join(err, w.Close()); err != nil {
		return p, err
	}
	sum := sha256.Sum256(sealed.Bytes())
	p = Part{Size: int64(sealed.Len()), SHA256: hex.EncodeToString(sum[:])}
	_, err = object.Write(ctx, s.cfg.Target, root+id+"/"+keysName, func(w io.Writer) error {
		_, err := w.Write(sealed.Bytes())
		return err
	})
	return p, err
}

// Verify reads a backup and compares it with its manifest: the digest of each part, pages
// and rows of the database, and that each uploaded file is there in its size. spool is a
// folder with room for a copy of a SQLite database. Error: ErrDamaged.
func Verify(ctx context.Context, target object.Store, m Manifest, spool string) error {
	if m.Keys != nil {
		if _, err := readPart(ctx, target, m.ID, keysName, *m.Keys, io.Discard); err != nil {
			return err
		}
	}
	files, err := readFiles(ctx, target, m)
	if err != nil {
		return err
	}
	have, err := sizes(ctx, target)
	if err != nil {
		return err
	}
	for name, f := range files.list {
		if n, ok := have[name]; !ok || n != f.Size {
			return fmt.Errorf("%w: the file %s is not there", ErrDamaged, name)
		}
	}
	return openDatabase(ctx, target, m, func(r io.Reader) error { return store.CheckDump(ctx, m.Dump, spool, r) })
}

// openDatabase gives the decompressed database to use, and compares the digest of what was
// read of it.
func openDatabase(ctx context.Context, target object.Store, m Manifest, use func(io.Reader) error) error {
	return readZipped(ctx, target, m.ID, databaseName, m.Database, use)
}

func readZipped(ctx context.Context, target object.Store, id, name string, want Part, use func(io.Reader) error) (err error) {
	p, err := openPart(ctx, target, id, name, want)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	z, err := gzip.NewReader(p)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	if err := use(z); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, z); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	return p.end()
}

// readPart copies a part to w and compares it with its digest.
func readPart(ctx context.Context, target object.Store, id, name string, want Part, w io.Writer) (n int64, err error) {
	p, err := openPart(ctx, target, id, name, want)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if n, err = io.Copy(w, p); err != nil {
		return n, err
	}
	return n, p.end()
}

// partReader computes the digest of what is read.
type partReader struct {
	io.ReadCloser
	name string
	want Part
	size int64
	hash hash.Hash
}

func openPart(ctx context.Context, target object.Store, id, name string, want Part) (*partReader, error) {
	r, _, err := target.Open(ctx, root+id+"/"+name)
	if errors.Is(err, cloud.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s is not there", ErrDamaged, name)
	}
	if err != nil {
		return nil, err
	}
	return &partReader{ReadCloser: r, name: name, want: want, hash: sha256.New()}, nil
}

func (p *partReader) Read(to []byte) (int, error) {
	n, err := p.ReadCloser.Read(to)
	p.hash.Write(to[:n])
	p.size += int64(n)
	return n, err
}

// end reads the rest and compares.
func (p *partReader) end() error {
	if _, err := io.Copy(io.Discard, p); err != nil {
		return err
	}
	if p.size != p.want.Size || hex.EncodeToString(p.hash.Sum(nil)) != p.want.SHA256 {
		return fmt.Errorf("%w: %s is not what was written", ErrDamaged, p.name)
	}
	return nil
}

// List lists whole backups, the newest first.
func List(ctx context.Context, target object.Store) (out []Manifest, err error) {
	ids, err := listIDs(ctx, target)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Backward(ids.whole) {
		m, err := read(ctx, target, id)
		if errors.Is(err, cloud.ErrNotFound) { // removed since
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// Find gives the manifest of a backup. Errors: ErrNone, ErrUnknown, ErrNewer, ErrDamaged.
func Find(ctx context.Context, target object.Store, id string) (Manifest, error) {
	ids, err := listIDs(ctx, target)
	switch {
	case err != nil:
		return Manifest{}, err
	case len(ids.whole) == 0:
		return Manifest{}, ErrNone
	case !slices.Contains(ids.whole, id):
		newest := slices.Clone(ids.whole)
		slices.Reverse(newest)
		return Manifest{}, fmt.Errorf("%w: %q; the newest that are there: %s", ErrUnknown, id, NameSome(newest))
	}
	return read(ctx, target, id)
}

// FindNewest gives the manifest of the newest backup as of a time, and the ids of those that
// are dated more than GraceAhead later, which it leaves out. Errors: ErrNone, ErrNewer,
// ErrDamaged.
func FindNewest(ctx context.Context, target object.Store, now time.Time) (m Manifest, ahead []string, err error) {
	ids, err := listIDs(ctx, target)
	if err != nil {
		return m, nil, err
	}
	whole, ahead := splitAhead(ids.whole, now.Add(GraceAhead))
	switch {
	case len(whole) > 0:
		m, err = read(ctx, target, whole[len(whole)-1])
	case len(ahead) > 0:
		err = fmt.Errorf("%w that is dated before now, %s; those that are dated later can be chosen by id: %s", ErrNone, now.UTC().Format(time.RFC3339), NameSome(ahead))
	default:
		err = ErrNone
	}
	return m, ahead, err
}

// splitAhead splits ids, in order, at a time: those that are dated later come second.
func splitAhead(ids []string, at time.Time) (until, later []string) {
	for _, id := range ids {
		if IsAhead(id, at) {
			later = append(later, id)
		} else {
			until = append(until, id)
		}
	}
	return until, later
}

// IsAhead reports whether the id of a backup is dated later than a time.
func IsAhead(id string, at time.Time) bool {
	text, _, _ := strings.Cut(id, "-")
	taken, err := time.Parse(idTime, text)
	return err == nil && taken.After(at)
}

// NameSome names at most five ids.
func NameSome(ids []string) string {
	if n := len(ids) - namedIDs; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:namedIDs], ", "), n)
	}
	return strings.Join(ids, ", ")
}

// read reads a manifest. Error: cloud.ErrNotFound.
func read(ctx context.Context, target object.Store, id string) (m Manifest, err error) {
	r, _, err := target.Open(ctx, root+id+"/"+manifestName)
	if err != nil {
		return m, err
	}
	raw, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return m, err
	}
	if err := json.Unmarshal(raw, &m); err != nil || m.ID != id {
		return m, fmt.Errorf("%w: the manifest of %s", ErrDamaged, id)
	}
	if m.Format > Format {
		return m, ErrNewer
	}
	return m, nil
}

// ids are the backups of a target, in order.
type ids struct {
	whole   []string
	parts   map[string][]string  // names of the objects of each, whole or not
	written map[string]time.Time // the last of them
}

func listIDs(ctx context.Context, target object.Store) (ids, error) {
	out := ids{parts: map[string][]string{}, written: map[string]time.Time{}}
	for o, err := range target.List(ctx, root) {
		if err != nil {
			return out, fmt.Errorf("list backups: %w", err)
		}
		id, name, ok := strings.Cut(strings.TrimPrefix(o.Name, root), "/")
		if !ok {
			continue
		}
		if out.parts[id] = append(out.parts[id], o.Name); name == manifestName {
			out.whole = append(out.whole, id)
		}
		if o.At.After(out.written[id]) {
			out.written[id] = o.At
		}
	}
	slices.Sort(out.whole)
	return out, nil
}
