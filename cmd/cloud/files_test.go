package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/object/objecttest"
	"github.com/postern-io/postern/internal/ring"
)

// Files move to a bucket and back, nodes serve them from where they are, and the
// key's secret is shown nowhere.
func TestFilesMoveToABucketAndBack(t *testing.T) {
	ring.SkipUnlessCheck(t, "it needs processes of its own")
	t.Parallel()
	dir, server := t.TempDir(), objecttest.Start(t)
	secret := file(t, objecttest.Secret+"\n")
	_, err := program(t, "-data", dir, "demo-data")
	require.NoError(t, err)
	folder := filepath.Join(dir, "files")
	f, err := object.Open(folder, make([]byte, 32))
	require.NoError(t, err)
	put, err := f.Put(t.Context(), "proof", strings.NewReader("%PDF-1.7"), 100, cloud.PDF)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	_, err = program(t, "-data", dir, "files", "move", "--to", "bucket")
	require.ErrorContains(t, err, "is not set")
	conf := "data: " + dir + "\nbucket: {url: '" + server.URL + "', name: postern, key_id: " + objecttest.KeyID + ", secret_file: '" + secret + "', prefix: files}\n"
	config := file(t, conf)
	out, err := program(t, "-config", config, "-check")
	require.NoError(t, err)
	require.Contains(t, out, "files in bucket postern at "+server.URL)
	require.NotContains(t, out, objecttest.Secret)
	for range 2 { // a copy, and nothing to copy
		out, err = program(t, "-config", config, "files", "move", "--to", "bucket", "--keep")
		require.NoError(t, err)
		require.Contains(t, out, "copied 1 files to the bucket")
	}
	out, err = program(t, "-config", config, "files", "move", "--to", "bucket")
	require.NoError(t, err)
	require.Contains(t, out, "moved 1 files to the bucket; 0 of them")
	require.NoFileExists(t, filepath.Join(folder, "proof", put.Path[6:8], put.Path[6:]))

	var log watched
	opt := options{Config: config}
	s, err := load(opt)
	require.NoError(t, err)
	srv, err := open(t.Context(), s, slog.New(slog.NewJSONHandler(&log, nil)))
	require.NoError(t, err)
	got, err := srv.Files.Get(t.Context(), put.Path)
	require.NoError(t, err)
	require.NoError(t, got.Close())
	require.NoError(t, closeAll(srv))
	require.NotContains(t, log.buf.String(), objecttest.Secret)

	out, err = program(t, "-config", config, "files", "move", "--to", "folder")
	require.NoError(t, err)
	require.Contains(t, out, "moved 1 files to the folder; 1 of them")
	require.FileExists(t, filepath.Join(folder, "proof", put.Path[6:8], put.Path[6:]))

	wrong := file(t, strings.ReplaceAll(conf, secret, file(t, "hunter3")))
	_, err = program(t, "-config", wrong, "files", "move", "--to", "bucket")
	require.ErrorContains(t, err, "refuses the key")
	require.NotContains(t, err.Error(), "hunter3")
	list, err := os.ReadDir(filepath.Join(dir, "spool"))
	require.NoError(t, err)
	require.Empty(t, list)
}
