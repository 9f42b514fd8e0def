package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/store/storetest"
)

// writeCertificate writes a certificate for tms.example and its key to two files.
func writeCertificate(t *testing.T, dir string, serial int64) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "tms.example"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"tms.example"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	require.NoError(t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600))
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return cert, key, pool
}

func local(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	return ln
}

// serveNode runs a node on all of its listeners until the test ends.
func serveNode(t *testing.T, cfg Config) (*Server, Listeners) {
	t.Helper()
	return serveNodeOn(t, cfg, func(*Listeners) {})
}

func serveNodeOn(t *testing.T, cfg Config, change func(*Listeners)) (*Server, Listeners) {
	t.Helper()
	s, err := New(t.Context(), cfg)
	require.NoError(t, err)
	ln := Listeners{HTTP: local(t), HTTPS: local(t), MQTTTLS: local(t), WebSocketTLS: local(t)}
	opened := ln
	change(&ln)
	for _, pair := range [][2]net.Listener{{opened.HTTPS, ln.HTTPS}, {opened.MQTTTLS, ln.MQTTTLS}, {opened.WebSocketTLS, ln.WebSocketTLS}} {
		if pair[1] == nil {
			require.NoError(t, pair[0].Close())
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, ln) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-done) })
	return s, ln
}

// shown is the serial number of the certificate that a listener shows for a name;
// nil when it shows none that is trusted.
func shown(ln net.Listener, name string, pool *x509.CertPool) *big.Int {
	c, err := tls.Dial("tcp4", ln.Addr().String(), &tls.Config{ServerName: name, RootCAs: pool, MinVersion: tls.VersionTLS12})
	if err != nil {
		return nil
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber
}

// One certificate serves HTTPS, MQTT and WebSocket; when its files change it is
// read again, and while they do not fit each other the former one stays.
func TestOwnCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, pool := writeCertificate(t, dir, 1)
	var log written
	_, ln := serveNode(t, Config{Dir: storetest.MigratedDir(t), BaseURL: "https://tms.example", RedirectTLS: "https://tms.example", TLS: TLSConfig{Cert: cert, Key: key, HSTS: time.Hour}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, l := range []net.Listener{ln.HTTPS, ln.MQTTTLS, ln.WebSocketTLS} {
		require.Equal(t, big.NewInt(1), shown(l, "tms.example", pool))
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{ServerName: "tms.example", RootCAs: pool, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(client.CloseIdleConnections)
	ask := func(base, method, path, token string) (*http.Response, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
		require.NoError(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		r, err := client.Do(req)
		require.NoError(t, err)
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return r, string(b)
	}
	safe, plain := "https://"+ln.HTTPS.Addr().String(), "http://"+ln.HTTP.Addr().String()
	r, _ := ask(safe, "GET", "/", "")
	require.Equal(t, []any{200, "max-age=3600"}, []any{r.StatusCode, r.Header.Get("Strict-Transport-Security")})
	r, _ = ask(plain, "GET", "/track/X?lang=de", "")
	require.Equal(t, []any{308, "https://tms.example/track/X?lang=de", ""}, []any{r.StatusCode, r.Header.Get("Location"), r.Header.Get("Strict-Transport-Security")})
	r, _ = ask(plain, "GET", "//evil.example/x", "")
	require.True(t, strings.HasPrefix(r.Header.Get("Location"), "https://tms.example/"), r.Header.Get("Location"))
	for _, c := range [][3]string{{"POST", "/api/v1/user/login", ""}, {"GET", "/api/v1/user/me", "some-token"}, {"POST", "/console/login", ""}} {
		r, body := ask(plain, c[0], c[1], c[2])
		require.Equal(t, 403, r.StatusCode, c)
		require.Contains(t, body, "HTTPS_REQUIRED")
		require.NotContains(t, body, "some-token")
	}
	r, _ = ask(plain, "GET", "/healthz", "")
	require.Equal(t, 200, r.StatusCode, "balancers ask nodes directly")
	r, _ = ask(plain, "GET", "/setup?key=x", "")
	require.Equal(t, 308, r.StatusCode)

	// The key alone changes: what fits stays. Then the certificate follows.
	next := t.TempDir()
	newCert, newKey, newPool := writeCertificate(t, next, 2)
	move := func(from, to string) {
		b, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, b, 0o600))
		stamp := time.Now().Add(time.Duration(len(b)) * time.Second) // whatever the clock of the file system counts in
		require.NoError(t, os.Chtimes(to, stamp, stamp))
	}
	move(newKey, key)
	require.Equal(t, big.NewInt(1), shown(ln.HTTPS, "tms.example", pool))
	require.Contains(t, log.text(), "the changed certificate is not used")
	move(newCert, cert)
	for _, l := range []net.Listener{ln.HTTPS, ln.MQTTTLS, ln.WebSocketTLS} {
		require.Equal(t, big.NewInt(2), shown(l, "tms.example", newPool))
	}
	require.NoError(t, os.Remove(cert))
	require.Equal(t, big.NewInt(2), shown(ln.HTTPS, "tms.example", newPool), "the file is gone for a moment")
	_, err := New(t.Context(), Config{Dir: storetest.MigratedDir(t), TLS: TLSConfig{Cert: cert, Key: key}})
	require.ErrorContains(t, err, "tls.cert")
}

// The whole body of a refused upload is still read over TLS, so that the refusal is.
func TestARefusedUploadOverTLSGetsAnAnswer(t *testing.T) {
	t.Parallel()
	cert, key, pool := writeCertificate(t, t.TempDir(), 1)
	_, ln := serveNode(t, Config{Dir: storetest.MigratedDir(t), TLS: TLSConfig{Cert: cert, Key: key}})
	c, err := tls.Dial("tcp4", ln.HTTPS.Addr().String(), &tls.Config{ServerName: "tms.example", RootCAs: pool, MinVersion: tls.VersionTLS12})
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "POST /api/v1/otep/validate HTTP/1.1\r\nHost: x\r\nContent-Length: 41943040\r\n\r\n")
	require.NoError(t, err)
	part := make([]byte, 1<<20)
	for range 40 {
		_, err = c.Write(part)
		require.NoError(t, err)
	}
	answer := make([]byte, 12)
	_, err = io.ReadFull(c, answer)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 413", string(answer))
}
