package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

func TestReadyAsksTheNodeOnThisMachine(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-some-length"
	status := http.StatusOK
	node := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || r.Header.Get("Authorization") != "" && r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if status == http.StatusPermanentRedirect {
			w.Header().Set("Location", "/readyz?again")
		}
		w.WriteHeader(status)
	}
	plain, secure := httptest.NewServer(http.HandlerFunc(node)), httptest.NewTLSServer(http.HandlerFunc(node))
	defer plain.Close()
	defer secure.Close()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(plain.URL, "http://"))
	require.NoError(t, err)
	_, securePort, err := net.SplitHostPort(strings.TrimPrefix(secure.URL, "https://"))
	require.NoError(t, err)
	secret := file(t, token)
	for _, c := range []string{
		"listen: ':" + port + "'",
		"listen: '0.0.0.0:" + port + "'",
		"listen: '127.0.0.1:" + port + "'",
		"listen: ''\nadmin: {listen: '127.0.0.1:" + port + "', token_file: " + secret + "}",
		"listen: ''\ntls: {listen: ':" + securePort + "', names: [tms.example]}",
		"listen: ''\ntls: {names: [tms.example]}\nadmin: {listen: ':" + securePort + "', tls: true, token_file: " + secret + "}",
	} {
		for _, s := range []int{http.StatusOK, http.StatusServiceUnavailable, http.StatusPermanentRedirect} {
			status = s
			out, err := program(t, "-config", file(t, c), "ready")
			if s == http.StatusOK {
				require.NoError(t, err, c)
				require.Equal(t, "ready\n", out)
			} else {
				require.ErrorContains(t, err, http.StatusText(s), c)
				require.NotContains(t, err.Error(), token)
			}
		}
	}
	plain.Close()
	_, err = program(t, "-listen", ":"+port, "ready")
	require.ErrorContains(t, err, "ready: ")
	_, err = program(t, "-listen", "", "-admin-listen", "", "ready")
	require.ErrorContains(t, err, "set listen")
}

func TestKeysLieWhereTheSettingSays(t *testing.T) {
	ring.SkipUnlessCheck(t, "it needs processes of its own")
	t.Parallel()
	dir := t.TempDir()
	keys, data := filepath.Join(dir, "mounted.json"), filepath.Join(dir, "data")
	out, err := program(t, "keys", keys)
	require.NoError(t, err)
	require.Contains(t, out, keys)
	_, err = program(t, "keys", keys)
	require.ErrorContains(t, err, "exist", "keys are never replaced")
	config := file(t, "keys_file: "+keys)
	_, err = program(t, "-config", config, "-data", data, "rebuild")
	require.ErrorContains(t, err, "no data to look at")
	_, err = program(t, "-config", config, "-data", data, "demo-data")
	require.NoError(t, err)
	_, err = program(t, "-config", config, "-data", data, "rebuild")
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(data, "keys.json"))
	_, err = program(t, "-data", data, "demo-data")
	require.ErrorContains(t, err, "other keys", "the database knows them")
	_, err = program(t, "-config", file(t, "keys_file: "+keys+"x"), "-check")
	require.ErrorContains(t, err, "keys_file")
	require.NoError(t, os.Chmod(keys, 0o644))
	_, err = program(t, "-config", config, "-check")
	require.ErrorContains(t, err, "keys_file: "+keys+" is readable by others")
}
