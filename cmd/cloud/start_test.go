package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	lease "github.com/postern-io/postern/cloud/node"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// A second cloud on a folder, or of a name, of one that runs prints no address and is not
// said to serve.
func TestASecondCloudIsRefusedBeforeItPrints(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	for name, c := range map[string]struct {
		args []string
		want error
	}{
		"folder":     {[]string{"-data", data}, store.ErrInUse},
		"PostgreSQL": {[]string{"-data", filepath.Join(t.TempDir(), "data"), "-node", "one", "-database", storetest.MigratedPostgresURL(t)}, lease.ErrTaken},
	} {
		t.Run(name, func(t *testing.T) {
			first := startNode(t, c.args...)
			var out, log watched
			err := run(t.Context(), append([]string{"-listen", "127.0.0.1:0", "-mqtt-listen", "127.0.0.1:0"}, c.args...), strings.NewReader(""), &out, &log)
			require.ErrorIs(t, err, c.want)
			require.Empty(t, out.text())
			require.Empty(t, log.find("serving", "msg"))
			_, err = program(t, append(c.args[:len(c.args):len(c.args)], "setup", "-email", "ops@platform.example", "-operator")...)
			require.NoError(t, err, "a program that migrates nothing is let in")
			first.stop()
			startNode(t, c.args...).stop()
		})
	}
}

// What is missing or damaged in the data folder is named by its path, with what to do, and
// nothing is made in its place.
func TestMissingAndDamagedDataIsNamed(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, at []string) {
		data, onFile := at[1], len(at) == 2
		keys, database := filepath.Join(data, "keys.json"), filepath.Join(data, "postern.db")
		with := func(args ...string) []string { return append(at[:len(at):len(at)], args...) }
		start := func() error {
			return run(t.Context(), with("-listen", "127.0.0.1:0", "-mqtt-listen", "127.0.0.1:0"), strings.NewReader(""), io.Discard, io.Discard)
		}
		startNode(t, at...).stop()
		good, err := os.ReadFile(keys)
		require.NoError(t, err)

		require.NoError(t, os.WriteFile(keys, nil, 0o600))
		err = start()
		require.ErrorContains(t, err, keys+" is damaged")
		require.ErrorContains(t, err, "put your saved copy")

		require.NoError(t, os.Remove(keys))
		for _, command := range []func() error{start, func() error {
			_, err := program(t, with("setup", "-email", "ops@platform.example", "-operator")...)
			return err
		}} {
			err = command()
			require.ErrorIs(t, err, server.ErrKeysMissing)
			require.ErrorContains(t, err, keys)
			require.NoFileExists(t, keys, "none are made beside a database that belongs to others")
		}
		_, err = program(t, with("backup", t.TempDir())...)
		require.ErrorContains(t, err, keys)
		require.NoError(t, os.WriteFile(keys, good, 0o600))
		startNode(t, at...).stop()
		if !onFile {
			return
		}

		whole, err := os.ReadFile(database)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(database, append(whole[:100:100], make([]byte, 20_000)...), 0o600))
		err = start()
		require.ErrorIs(t, err, store.ErrDamaged)
		require.ErrorContains(t, err, database)

		left, err := filepath.Glob(database + "*")
		require.NoError(t, err)
		for _, name := range left {
			require.NoError(t, os.Remove(name))
		}
		long := time.Now().Add(-time.Hour)
		require.NoError(t, os.Chtimes(keys, long, long))
		n := startNode(t, at...)
		require.Contains(t, n.out.text(), "A database belonged to the keys in "+keys)
		require.Contains(t, n.out.text(), "cloud restore")
		require.Contains(t, n.log.text(), "its database is gone")
		n.stop()
		n = startNode(t, at...)
		require.NotContains(t, n.out.text(), "A database belonged")
		n.stop()
	})
}
