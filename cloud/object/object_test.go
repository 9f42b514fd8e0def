package object

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/object/objecttest"
)

var key = bytes.Repeat([]byte{7}, 32)

// shelf is a store of one kind with what tests see of it.
type shelf struct {
	*Files
	dir    string             // of a folder
	server *objecttest.Server // of a bucket
}

func onFolder(t testing.TB) shelf {
	dir := filepath.Join(t.TempDir(), "files")
	f, err := Open(dir, key)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return shelf{f, dir, nil}
}

func onBucket(t testing.TB) shelf {
	s := objecttest.Start(t)
	b, err := OpenBucket(t.Context(), bucketOf(t, s))
	require.NoError(t, err)
	f, err := New(b, key)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return shelf{f, "", s}
}

func bucketOf(t testing.TB, s *objecttest.Server) BucketConfig {
	return BucketConfig{URL: s.URL, Name: objecttest.Bucket, KeyID: objecttest.KeyID, Secret: objecttest.Secret, Prefix: "live/", Spool: t.TempDir()}
}

// onEach runs a test on each kind of store.
func onEach(t *testing.T, test func(*testing.T, shelf)) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) shelf{"folder": onFolder, "bucket": onBucket} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// age sets the time at which an object of a folder was written; a bucket's server has
// its own clock.
func (s shelf) age(t testing.TB, name string, at time.Time) {
	if s.server == nil {
		require.NoError(t, os.Chtimes(filepath.Join(s.dir, name), at, at))
	}
}

// names are all objects of the store, drafts of a folder too.
func (s shelf) names(t testing.TB) (out []string) {
	if s.server == nil {
		return files(t, s.dir)
	}
	for o, err := range s.store.List(t.Context(), "") {
		require.NoError(t, err)
		out = append(out, o.Name)
	}
	spool, err := os.ReadDir(s.store.(*Bucket).cfg.Spool)
	require.NoError(t, err)
	require.Empty(t, spool, "drafts leave nothing")
	return out
}

func picture(t testing.TB, encode func(io.Writer, image.Image) error) []byte {
	var b bytes.Buffer
	require.NoError(t, encode(&b, image.NewGray(image.Rect(0, 0, 9, 7))))
	return b.Bytes()
}

func asJPEG(t testing.TB) []byte {
	return picture(t, func(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) })
}

// files are all regular files of the folder, relative to it.
func files(t testing.TB, dir string) (out []string) {
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, p)
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	}))
	return out
}

func TestWhatWasPutComesBackUntilItIsDeleted(t *testing.T) { onEach(t, comesBack) }

func comesBack(t *testing.T, f shelf) {
	webp := append([]byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f"), make([]byte, 12)...)
	mp4 := []byte("\x00\x00\x00\x1cftypM4V \x00\x00\x02\x00M4V isommp42rest of the film")
	for kind, body := range map[string][]byte{cloud.JPEG: asJPEG(t), cloud.PNG: picture(t, png.Encode), cloud.WebP: webp, cloud.PDF: []byte("%PDF-1.7\nrest"), cloud.MP4: mp4} {
		s, err := f.Put(t.Context(), "proof", bytes.NewReader(body), int64(len(body)), cloud.JPEG, cloud.PNG, cloud.WebP, cloud.PDF, cloud.MP4)
		require.NoError(t, err, kind)
		require.Equal(t, kind, s.MIME)
		require.EqualValues(t, len(body), s.Size)
		require.Regexp(t, `^proof/[0-9a-f]{32}\.[a-z0-9]{3,4}$`, s.Path)
		got, err := f.Get(t.Context(), s.Path)
		require.NoError(t, err)
		raw, err := io.ReadAll(got)
		require.NoError(t, errors.Join(err, got.Close()))
		require.Equal(t, body, raw)
		require.Equal(t, kind, got.MIME)
		require.EqualValues(t, len(body), got.Size)
		require.NoError(t, f.Delete(t.Context(), s.Path))
		require.NoError(t, f.Delete(t.Context(), s.Path), "again")
		_, err = f.Get(t.Context(), s.Path)
		require.ErrorIs(t, err, cloud.ErrNotFound)
	}
	require.Empty(t, f.names(t))
}

// Nothing is left of what is refused, and what a caller says of a file does not
// count.
func TestWhatIsNoFileOfAKindIsRefused(t *testing.T) { onEach(t, isRefused) }

func isRefused(t *testing.T, f shelf) {
	whole := asJPEG(t)
	for name, body := range map[string][]byte{"empty": {}, "a page": []byte("<html><script>alert(1)</script>"), "only the mark": {0xff, 0xd8, 0xff, 0xe0},
		"cut": whole[:20], "a GIF": []byte("GIF89a\x01\x00\x01\x00"), "a program": []byte("MZ\x90\x00"), "a film of another kind": []byte("\x00\x00\x00\x14ftypqt  \x00\x00\x02\x00qt  "),
		"PNG's mark": []byte("\x89PNG\r\n\x1a\nnothing"), "half a container": []byte("RIFF\x00\x00\x00\x00WEBP"), "a box that lies": []byte("\xff\xff\xff\xffftyp")} {
		_, err := f.Put(t.Context(), "proof", bytes.NewReader(body), 1<<20, cloud.JPEG, cloud.PNG, cloud.WebP, cloud.PDF, cloud.MP4)
		require.ErrorIs(t, err, cloud.ErrFileKind, name)
	}
	_, err := f.Put(t.Context(), "proof", bytes.NewReader(whole), 1<<20, cloud.PDF)
	require.ErrorIs(t, err, cloud.ErrFileKind, "a picture is no document")
	_, err = f.Put(t.Context(), "proof", bytes.NewReader(whole), int64(len(whole))-1, cloud.JPEG)
	require.ErrorIs(t, err, cloud.ErrFileSize)
	broken := errors.New("the line broke")
	_, err = f.Put(t.Context(), "proof", io.MultiReader(bytes.NewReader(whole), &failing{broken}), 1<<20, cloud.JPEG)
	require.ErrorIs(t, err, broken)
	require.Empty(t, f.names(t))
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func TestNoPathLeadsOut(t *testing.T) {
	t.Parallel()
	f := onFolder(t)
	dir := f.dir
	secret := filepath.Join(filepath.Dir(dir), "keys.json")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	s, err := f.Put(t.Context(), "proof", bytes.NewReader(asJPEG(t)), 1<<20, cloud.JPEG)
	require.NoError(t, err)
	name := strings.TrimPrefix(s.Path, "proof/")
	for _, bad := range []string{"", ".", "..", "../keys.json", "proof/../../keys.json", "proof/..", "/" + s.Path, s.Path + "/", s.Path + "\x00", s.Path + "\n", "proof//" + name,
		"PROOF/" + name, ".new/" + name, "proof/" + strings.ToUpper(name), "proof/" + name[:2] + "/" + name, strings.ReplaceAll(s.Path, "/", `\`), "proof/%2e%2e", secret} {
		_, err := f.Get(t.Context(), bad)
		require.ErrorIs(t, err, cloud.ErrNotFound, "%q", bad)
		require.NoError(t, f.Delete(t.Context(), bad))
	}
	// Not even a link that somebody laid there is followed out of the folder.
	require.NoError(t, os.Remove(filepath.Join(dir, "proof", name[:2], name)))
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, "proof", name[:2], name)))
	_, err = f.Get(t.Context(), s.Path)
	require.Error(t, err)
	require.FileExists(t, secret)
}

func FuzzGet(f *testing.F) {
	folder := onFolder(f)
	require.NoError(f, os.WriteFile(filepath.Join(filepath.Dir(folder.dir), "x.jpg"), nil, 0o600))
	f.Add("proof/0123456789abcdef0123456789abcdef.jpg")
	f.Add("../x.jpg")
	f.Fuzz(func(t *testing.T, path string) {
		_, err := folder.Get(t.Context(), path)
		require.ErrorIs(t, err, cloud.ErrNotFound)
	})
}

func FuzzKindOf(f *testing.F) {
	f.Add(asJPEG(f))
	f.Add([]byte("\x00\x00\x00\x14ftypisom"))
	f.Fuzz(func(t *testing.T, body []byte) {
		kind, err := kindOf(bytes.NewReader(body))
		require.NoError(t, err)
		require.True(t, kind == "" || endings[kind] != "")
	})
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	f := onFolder(t)
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f.now = func() time.Time { return at }
	const path = "proof/0123456789abcdef0123456789abcdef.jpg"
	u, err := url.Parse(f.Address(path, at.Add(time.Hour)))
	require.NoError(t, err)
	require.Equal(t, Prefix+path, u.Path)
	expires, signature := u.Query().Get("expires"), u.Query().Get("signature")
	check := func(path, expires, signature string, wantOK, wantOver bool) {
		t.Helper()
		ok, over := f.Signed(path, expires, signature)
		require.Equal(t, []bool{wantOK, wantOver}, []bool{ok, over})
	}
	check(path, expires, signature, true, false)
	check(strings.Replace(path, "0", "1", 1), expires, signature, false, false)
	check(path, "9999999999", signature, false, false)
	check(path, "", signature, false, false)
	check(path, expires, "", false, false)
	check(path, expires, strings.ToUpper(signature), false, false)
	at = at.Add(time.Hour - time.Second)
	check(path, expires, signature, true, false)
	at = at.Add(time.Second)
	check(path, expires, signature, true, true)
	check(path, expires, signature[1:]+"0", false, false)
	other, err := Open(t.TempDir(), bytes.Repeat([]byte{8}, 32))
	require.NoError(t, err)
	defer other.Close()
	ok, _ := other.Signed(path, expires, signature)
	require.False(t, ok, "another deployment's")
	_, err = Open(t.TempDir(), key[:31])
	require.Error(t, err)
}

// Against a model: puts whose row is written, puts that a crash cut off from
// theirs, drafts of a crash, rows that were dropped, and time that passes.
// Whatever has a row stays; the rest goes a day after it was written, not
// before.
func TestSweepRemovesWhatNoRowNames(t *testing.T) { onEach(t, isSwept) }

func isSwept(t *testing.T, f shelf) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	body := asJPEG(t)
	now := time.Now().Truncate(time.Second)
	f.now = func() time.Time { return now }
	if f.server != nil {
		f.server.SetTime(now)
	}
	writtenAt := map[string]time.Time{}
	rows, orphans := map[string]bool{}, map[string]time.Time{}
	known := func(_ context.Context, shard string) (out []string, err error) {
		for p := range rows {
			if strings.HasPrefix(p, shard) {
				out = append(out, p)
			}
		}
		return out, nil
	}
	where := func(path string) string { p, _ := place(path); return p }
	for range 300 {
		switch r.IntN(6) {
		case 0, 1, 2:
			s, err := f.Put(t.Context(), []string{"proof", "chat"}[r.IntN(2)], bytes.NewReader(body), 1<<20, cloud.JPEG)
			require.NoError(t, err)
			f.age(t, where(s.Path), now)
			writtenAt[s.Path] = now
			if r.IntN(3) > 0 {
				rows[s.Path] = true
			} else {
				orphans[where(s.Path)] = now
			}
		case 3:
			if f.server != nil {
				continue
			}
			draft := unfinished + "/" + strings.Repeat("0", 30) + string(rune('a'+r.IntN(26))) + string(rune('a'+r.IntN(26)))
			require.NoError(t, os.WriteFile(filepath.Join(f.dir, draft), body[:5], 0o600))
			require.NoError(t, os.Chtimes(filepath.Join(f.dir, draft), now, now))
			orphans[draft] = now
		case 4:
			for p := range rows { // its order is deleted
				delete(rows, p)
				orphans[where(p)] = writtenAt[p]
				break
			}
		case 5:
			if now = now.Add(time.Duration(r.IntN(10)) * time.Hour); f.server != nil {
				f.server.SetTime(now)
			}
			n := 0
			for p, at := range orphans {
				if now.Sub(at) >= orphanAge {
					delete(orphans, p)
					n++
				}
			}
			removed, err := f.Sweep(t.Context(), known)
			require.NoError(t, err)
			require.Equal(t, n, removed)
		}
		var want []string
		for p := range rows {
			want = append(want, where(p))
		}
		for p := range orphans {
			want = append(want, p)
		}
		got := f.names(t)
		slices.Sort(want)
		slices.Sort(got)
		require.Equal(t, want, got)
	}
	_, err := f.Sweep(t.Context(), func(context.Context, string) ([]string, error) { return nil, io.ErrUnexpectedEOF })
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "rows that cannot be read are not taken for none")
}
