package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/object/objecttest"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// By settings alone a cloud on PostgreSQL with its files in a bucket has backups in another
// place of it; what they hold becomes a cloud on an empty database with files in a folder, with
// the recipient's private key and nothing else.
func TestBackupsBySettingsBecomeACloud(t *testing.T) {
	t.Parallel()
	s3, dir := objecttest.Start(t), t.TempDir()
	database := storetest.MigratedPostgresURL(t)
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	bucket := func(prefix string) string {
		return "{url: '" + s3.URL + "', name: postern, key_id: " + objecttest.KeyID + ", secret_file: '" + file(t, objecttest.Secret) + "', prefix: " + prefix + "}"
	}
	config := file(t, "listen: 127.0.0.1:0\nmqtt: {listen: '127.0.0.1:0'}\ndata: "+dir+"\ndatabase_file: "+file(t, database)+"\nbucket: "+bucket("files")+
		"\nbackup: {bucket: "+bucket("copies")+", recipient: "+identity.Recipient().String()+"}\n")
	out, err := program(t, "-config", config, "-check")
	require.NoError(t, err)
	require.Contains(t, out, "backups: every 15m0s to bucket postern")
	_, err = program(t, "-config", config, "demo-data")
	require.NoError(t, err)
	s, err := load(options{Config: config})
	require.NoError(t, err)
	srv, err := open(t.Context(), s, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	put, err := srv.Files.Put(t.Context(), "proof", strings.NewReader("%PDF-1.7"), 100, cloud.PDF)
	require.NoError(t, err)
	require.NoError(t, closeAll(srv))

	ctx, stop := context.WithCancel(t.Context())
	var log watched
	done := make(chan error, 1)
	go func() { done <- run(ctx, []string{"-config", config}, strings.NewReader(""), io.Discard, &log) }()
	ring.Await(t, func() bool { return log.find("backup taken", "backup") != "" || len(done) > 0 })
	stop()
	require.NoError(t, <-done)
	id := log.find("backup taken", "backup")
	require.NotContains(t, log.buf.String(), objecttest.Secret)
	out, err = program(t, "-config", config, "backup", "--list")
	require.NoError(t, err)
	require.Contains(t, out, id)
	require.Contains(t, out, "postgres, 1 files, keys true")
	out, err = program(t, "-config", config, "backup", "--verify", "newest")
	require.NoError(t, err)
	require.Contains(t, out, id+" of ")

	data := filepath.Join(t.TempDir(), "data")
	restored := file(t, "data: "+data+"\ndatabase_file: "+file(t, storetest.PostgresURL(t))+"\nbackup: {bucket: "+bucket("copies")+"}\n")
	_, err = program(t, "-config", restored, "restore")
	require.ErrorContains(t, err, "--identity")
	key := file(t, identity.String()+"\n")
	out, err = program(t, "-config", restored, "restore", "--identity", key)
	require.NoError(t, err)
	require.Contains(t, out, "restored backup "+id)
	want, err := os.ReadFile(filepath.Join(dir, "keys.json"))
	require.NoError(t, err)
	have, err := os.ReadFile(filepath.Join(data, "keys.json"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, have))
	if s, err = load(options{Config: restored}); err != nil {
		t.Fatal(err)
	}
	srv, err = open(t.Context(), s, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	_, err = srv.Store.FindDeviceByCode(t.Context(), "CAB-1001")
	require.NoError(t, err)
	f, err := srv.Files.Get(t.Context(), put.Path)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, closeAll(srv))
}
