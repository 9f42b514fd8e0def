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
	"time"

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

// A backup of a clock that was ahead is taken by its id alone, an id that is not there is
// answered with those that are, and other keys are refused before anything is written. Without a
// place for backups the commands say how to name one.
func TestRestoreSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	data, copies := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "copies")
	_, err := program(t, "-data", data, "demo-data")
	require.NoError(t, err)
	for _, args := range [][]string{{"backup"}, {"backup", "--list"}, {"backup", "--verify", "newest"}} {
		_, err := program(t, append([]string{"-data", data}, args...)...)
		require.ErrorContains(t, err, "name a folder, or set backup.folder or backup.bucket", args)
	}
	took := func() string {
		out, err := program(t, "-data", data, "backup", copies)
		require.NoError(t, err)
		return strings.TrimSuffix(strings.Fields(out)[2], ":")
	}
	wrong := took()
	ahead := time.Now().AddDate(1, 0, 0).UTC().Format("20060102T150405Z") + wrong[strings.Index(wrong, "-"):]
	require.NoError(t, os.Rename(filepath.Join(copies, "backups", wrong), filepath.Join(copies, "backups", ahead)))
	name := filepath.Join(copies, "backups", ahead, "manifest.json")
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(name, 0o600))
	require.NoError(t, os.WriteFile(name, bytes.ReplaceAll(raw, []byte(wrong), []byte(ahead)), 0o600))
	keys := filepath.Join(data, "keys.json")
	_, err = program(t, "-data", filepath.Join(t.TempDir(), "none"), "restore", "--keys", keys, copies)
	require.ErrorContains(t, err, ahead)
	good := took()

	out, err := program(t, "-data", data, "backup", "--list", copies)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(out, "dated later than now"))
	out, err = program(t, "-data", data, "backup", "--verify", "newest", copies)
	require.NoError(t, err)
	require.Contains(t, out, good+" of ")
	require.Contains(t, out, ahead+"; choose one by --verify ID")
	out, err = program(t, "-data", data, "backup", "--verify", ahead, copies)
	require.NoError(t, err)
	require.Contains(t, out, ahead+" of ")
	_, err = program(t, "-data", data, "backup", "--verify", "nope", copies)
	require.ErrorContains(t, err, `no whole backup of this id: "nope"`)
	require.ErrorContains(t, err, good)

	other := filepath.Join(t.TempDir(), "keys.json")
	_, err = program(t, "keys", other)
	require.NoError(t, err)
	into := filepath.Join(t.TempDir(), "restored")
	_, err = program(t, "-data", into, "restore", "--keys", other, copies)
	require.ErrorContains(t, err, "not the keys of the backup")
	left, err := os.ReadDir(into)
	require.NoError(t, err)
	for _, f := range left {
		require.NotContains(t, []string{"keys.json", "postern.db"}, f.Name(), "nothing is written")
	}
	out, err = program(t, "-data", into, "restore", "--keys", keys, copies)
	require.NoError(t, err)
	require.Contains(t, out, ahead+"; choose one by --id ID")
	require.Contains(t, out, "restored backup "+good)
}
