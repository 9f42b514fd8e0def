package artefact

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/router"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/protocol/release"
	"github.com/postern-io/postern/protocol/signed"
)

func key(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32))
}

func signedBy(t *testing.T, seed byte, m release.Manifest, program string) []byte {
	t.Helper()
	s, err := signed.NewSigner(key(seed))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, release.Write(&out, s, m, []byte(program)))
	return out.Bytes()
}

func edge(version string) release.Manifest {
	return release.Manifest{Product: release.Edge, Version: version, System: "linux", Arch: "arm64"}
}

func newShelf(t *testing.T, dir string, seeds ...byte) *Shelf {
	t.Helper()
	f, err := object.Open(dir, make([]byte, 32))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	var keys []ed25519.PublicKey
	for _, s := range seeds {
		keys = append(keys, key(s).Public().(ed25519.PublicKey))
	}
	return New(f.Programs(), keys)
}

// Nothing is offered that a release key of the settings has not signed, whole, and nothing is
// left of what was refused.
func TestOnlySignedProgramsAreOffered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newShelf(t, dir, 1)
	good := signedBy(t, 1, edge("1.4.0"), "program")
	for name, c := range map[string]struct {
		raw  []byte
		want error
	}{
		"another key":     {signedBy(t, 2, edge("1.4.0"), "program"), signed.ErrSignature},
		"another program": {bytes.Replace(good, []byte("program"), []byte("Program"), 1), release.ErrArtefact},
		"cut off":         {good[:len(good)-1], release.ErrArtefact},
		"more behind it":  {append(bytes.Clone(good), 0), release.ErrArtefact},
		"nothing":         {nil, release.ErrArtefact},
		"another product": {signedBy(t, 1, release.Manifest{Product: "cloud", Version: "1.4.0", System: "linux", Arch: "arm64"}, "x"), ErrProduct},
	} {
		_, err := s.Add(t.Context(), bytes.NewReader(c.raw))
		require.ErrorIs(t, err, c.want, name)
	}
	_, err := newShelf(t, dir).Add(t.Context(), bytes.NewReader(good))
	require.ErrorIs(t, err, ErrNoKeys)
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	left, err := filepath.Glob(filepath.Join(dir, ".new", "*"))
	require.NoError(t, err)
	require.Empty(t, left)

	for range 2 {
		m, err := s.Add(t.Context(), bytes.NewReader(good))
		require.NoError(t, err)
		require.Equal(t, "1.4.0", m.Version)
	}
	_, err = s.Add(t.Context(), bytes.NewReader(signedBy(t, 1, edge("1.4.0"), "another")))
	require.ErrorIs(t, err, ErrOther)
	until := time.Now().Add(time.Hour)
	u, err := s.FindUpdate(t.Context(), "1.4.0", "linux/arm64", until)
	require.NoError(t, err)
	require.EqualValues(t, 7, u.Size)
	for _, c := range [][2]string{{"1.4.1", "linux/arm64"}, {"1.4.0", "linux/amd64"}, {"1.4.0", ""}, {"", "linux/arm64"}, {"../1.4.0", "linux/arm64"}, {"1.4.0", "linux/../x"}} {
		_, err := s.FindUpdate(t.Context(), c[0], c[1], until)
		require.ErrorIs(t, err, cloud.ErrNotFound, c)
	}
	list, err = s.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)

	later := newShelf(t, dir, 3) // the first key is known no more
	_, err = later.FindUpdate(t.Context(), "1.4.0", "linux/arm64", until)
	require.ErrorIs(t, err, cloud.ErrNotFound)
	m, err := later.Add(t.Context(), bytes.NewReader(signedBy(t, 3, edge("1.4.0"), "program")))
	require.NoError(t, err, "signed again")
	require.Equal(t, "1.4.0", m.Version)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "programs", "edge-1.4.0-linux-arm64"), good[:20], 0o600))
	_, err = s.FindUpdate(t.Context(), "1.4.0", "linux/arm64", until)
	require.ErrorIs(t, err, cloud.ErrNotFound, "damaged since")
}

// An artefact is read by ranges at its address, until its time is over, and at no other.
func TestProgramsAreReadByRanges(t *testing.T) {
	t.Parallel()
	s := newShelf(t, t.TempDir(), 1)
	raw := signedBy(t, 1, edge("1.4.0"), strings.Repeat("program", 1000))
	_, err := s.Add(t.Context(), bytes.NewReader(raw))
	require.NoError(t, err)
	ln := fasthttputil.NewInmemoryListener()
	r := router.New()
	r.ANY(Prefix+"{name}", s.Serve)
	server := &fasthttp.Server{Handler: r.Handler}
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() { require.NoError(t, ln.Close()) })
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return ln.Dial() }}}
	read := func(method, address, part string) (int, string, []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://cloud.test"+address, nil)
		require.NoError(t, err)
		if part != "" {
			req.Header.Set("Range", part)
		}
		resp, err := client.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, resp.Header.Get("Content-Range"), body
	}
	u, err := s.FindUpdate(t.Context(), "1.4.0", "linux/arm64", time.Now().Add(time.Hour))
	require.NoError(t, err)
	status, _, body := read("GET", u.URL, "")
	require.Equal(t, 200, status)
	require.Equal(t, raw, body)
	n := len(raw)
	for part, want := range map[string][2]int{"bytes=0-": {0, n}, "bytes=5-9": {5, 10}, fmt.Sprintf("bytes=100-%d", 10*n): {100, n}, fmt.Sprintf("bytes=%d-%d", n-1, n-1): {n - 1, n}} {
		status, where, body := read("GET", u.URL, part)
		require.Equal(t, 206, status, part)
		require.Equal(t, fmt.Sprintf("bytes %d-%d/%d", want[0], want[1]-1, n), where)
		require.Equal(t, raw[want[0]:want[1]], body, part)
	}
	for part, want := range map[string]int{fmt.Sprintf("bytes=%d-", n): 416, "bytes=-5": 400, "bytes=9-5": 400, "lines=1-2": 400, "bytes=1-2,5-6": 400, "bytes=x-": 400} {
		status, _, _ := read("GET", u.URL, part)
		require.Equal(t, want, status, part)
	}
	status, _, _ = read("POST", u.URL, "")
	require.Equal(t, 405, status)
	old, err := s.FindUpdate(t.Context(), "1.4.0", "linux/arm64", time.Now().Add(-time.Second))
	require.NoError(t, err)
	status, _, _ = read("GET", old.URL, "")
	require.Equal(t, 410, status)
	name, query, _ := strings.Cut(u.URL, "?")
	for _, bad := range []string{name, strings.Replace(u.URL, "signature=", "signature=0", 1), Prefix + "edge-1.4.1-linux-arm64?" + query, Prefix + "..%2fx?" + query} {
		status, _, _ := read("GET", bad, "")
		require.Equal(t, 404, status, bad)
	}
}

func FuzzRange(f *testing.F) {
	for _, s := range []string{"", "bytes=0-", "bytes=1-2", "bytes=-1", "bytes=9223372036854775807-", "bytes=0-9223372036854775807"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if from, to, ok := parseRange(text); ok && (from < 0 || to < from && text != "" && !strings.HasSuffix(text, "-")) {
			t.Fatal(text, from, to)
		}
	})
}
