package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBundleCanBeRead(t *testing.T) {
	t.Parallel()
	b := New(time.Unix(1_700_000_000, 0))
	b.AddJSON("a.json", map[string]int{"n": 1})
	b.Hide("", "hush")
	b.Add("b.txt", []byte("say hush, hush"))
	raw, err := b.Bytes()
	require.NoError(t, err)
	gz, err := gzip.NewReader(bytes.NewReader(raw))
	require.NoError(t, err)
	r := tar.NewReader(gz)
	for name, want := range map[string]string{"support/a.json": `{"n":1}`} {
		h, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, name, h.Name)
		raw, err := io.ReadAll(r)
		require.NoError(t, err)
		require.JSONEq(t, want, string(raw))
	}
	_, err = r.Next()
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "say "+Hidden+", "+Hidden, string(text))

	bad := New(time.Now())
	bad.AddJSON("b.json", func() {})
	_, err = bad.Bytes()
	require.ErrorContains(t, err, "b.json")
}
