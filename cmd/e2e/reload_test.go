package e2e

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// certificateOf writes a certificate of this machine with a serial number, and its key.
func certificateOf(t *testing.T, dir string, serial int64) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "postern test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	require.NoError(t, err)
	cert, key = filepath.Join(dir, fmt.Sprint(serial, ".crt")), filepath.Join(dir, fmt.Sprint(serial, ".key"))
	writeFile(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
	return cert, key
}

// SIGHUP has a program that runs read its settings again: what can change while it runs is
// applied, each other setting is named, and settings that are not in order change nothing.
func TestSettingsAreReadAgain(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts programs")
	}
	bin, dir := build(t), t.TempDir()
	web, secure, admin := freeAddress(t), freeAddress(t), freeAddress(t)
	config, token := filepath.Join(dir, "cloud.yaml"), filepath.Join(dir, "token")
	cert1, key1 := certificateOf(t, dir, 1)
	cert2, key2 := certificateOf(t, dir, 2)
	write := func(cert, key, more string) {
		writeFile(t, config, fmt.Sprintf("listen: %s\nbase_url: https://localhost\nmqtt: {listen: '', tls_listen: %s}\nadmin: {listen: %s, token_file: %s}\ntls: {cert: %s, key: %s}\ndata: %s\n%s\n",
			web, secure, admin, token, cert, key, filepath.Join(dir, "data"), more))
	}
	writeFile(t, token, "the-first-token-of-all")
	write(cert1, key1, "log_level: warn")
	p := bin.start(t, "cloud", "--config", config)
	status := func(address, path, token string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		require.NoError(t, err)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		a, err := page.Do(r)
		if err != nil {
			return 0
		}
		require.NoError(t, a.Body.Close())
		return a.StatusCode
	}
	serial := func() int64 {
		c, err := tls.Dial("tcp", secure, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // its serial number is looked at
		require.NoError(t, err)
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	ring.Await(t, func() bool { return status(web, "/readyz", "") == http.StatusOK }, "it serves")
	require.EqualValues(t, 1, serial())
	require.Equal(t, http.StatusOK, status(admin, "/metrics", "the-first-token-of-all"))
	require.Equal(t, http.StatusNotFound, status(web, "/nothing-1", ""))
	require.Empty(t, p.text())

	// All that can change, and two that cannot.
	reads := 0
	reload := func() (applied, waiting []string) {
		t.Helper()
		before := len(p.text())
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
		reads++
		ring.Await(t, func() bool { return strings.Count(p.text(), `"settings read again"`) == reads }, "settings are read again")
		for line := range strings.Lines(p.text()[before:]) {
			var m struct{ Msg, Setting string }
			require.NoError(t, json.Unmarshal([]byte(line), &m), line)
			switch m.Msg {
			case "setting applied":
				applied = append(applied, m.Setting)
			case "setting needs a restart":
				waiting = append(waiting, m.Setting)
			}
		}
		return applied, waiting
	}
	writeFile(t, token, "the-second-token-of-all")
	write(cert2, key2, "log_level: info\naccess_log: true\nwebhook: {http: true, allow_networks: [10.0.0.0/8]}\nconnections: {http: {total: 1}}\nnode: other\nlimits: {pages: 5}")
	applied, waiting := reload()
	require.Equal(t, []string{"access_log", "admin.token_file", "connections.http.total", "log_level", "tls.cert", "tls.key", "webhook.allow_networks", "webhook.http"}, applied)
	require.Equal(t, []string{"limits.pages", "node"}, waiting)
	require.EqualValues(t, 2, serial())
	require.Equal(t, http.StatusUnauthorized, status(admin, "/metrics", "the-first-token-of-all"))
	require.Equal(t, http.StatusOK, status(admin, "/metrics", "the-second-token-of-all"))
	require.Equal(t, http.StatusNotFound, status(web, "/nothing-2", ""))
	p.awaitLog(t, "request", "operation")
	ring.Await(t, func() bool {
		one, err := net.Dial("tcp", web)
		require.NoError(t, err)
		defer one.Close()
		if _, err = fmt.Fprint(one, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return false
		}
		if _, err = bufio.NewReader(one).ReadString('\n'); err != nil {
			return false // the former connection has not ended yet
		}
		return status(web, "/healthz", "") == 0
	}, "a second connection is closed")

	// What was named is named again as long as it is not what runs.
	write(cert2, key2, "access_log: true\nwebhook: {http: true, allow_networks: [10.0.0.0/8]}\nnode: other")
	applied, waiting = reload()
	require.Equal(t, []string{"connections.http.total"}, applied)
	require.Equal(t, []string{"node"}, waiting)

	// Settings that are not in order: a word that is unknown, a certificate that does not
	// belong to its key.
	for i, wrong := range []func(){func() { write(cert1, key1, "acces_log: false") }, func() { write(cert1, key2, "access_log: false") }} {
		wrong()
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
		ring.Await(t, func() bool { return strings.Count(p.text(), `"the settings that were read again are not used"`) == i+1 })
		lines := strings.Count(p.text(), `"msg":"request"`)
		require.EqualValues(t, 2, serial())
		require.Equal(t, http.StatusNotFound, status(web, "/nothing-3", ""))
		ring.Await(t, func() bool { return strings.Count(p.text(), `"msg":"request"`) == lines+1 }, "the access log goes on")
	}
	require.Contains(t, p.text(), `there is no setting \"acces_log\"`)
	require.Contains(t, p.text(), "private key does not match")

	write(cert1, key1, "access_log: false\nlog_level: warn")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	ring.Await(t, func() bool { return serial() == 1 }, "settings that are in order are used again")
	for _, secret := range []string{"the-first-token", "the-second-token", "PRIVATE KEY"} {
		require.NotContains(t, p.text(), secret)
	}
	require.False(t, slices.Contains(strings.Split(p.text(), "\n"), "panic"))
	p.stop(t)
}
