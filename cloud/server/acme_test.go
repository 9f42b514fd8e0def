package server

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// pebble is a certificate authority for tests, which looks for names at this
// machine.
type pebble struct {
	url, roots string // directory, and a file with the certificate that it shows
	issued     *x509.CertPool
	orders     atomic.Int32
}

// answerNames is a name server for which every name is this machine.
func answerNames(t *testing.T) string {
	t.Helper()
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		if q.Question[0].Qtype == dns.TypeA {
			m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.IPv4(127, 0, 0, 1)})
		}
		_ = w.WriteMsg(m)
	})
	ln := local(t)
	conn, err := net.ListenPacket("udp4", ln.Addr().String())
	require.NoError(t, err)
	for _, s := range []*dns.Server{{PacketConn: conn, Handler: handler}, {Listener: ln, Handler: handler}} {
		started, done := make(chan struct{}), make(chan error, 1)
		s.NotifyStartedFunc = func() { close(started) }
		go func() { done <- s.ActivateAndServe() }()
		<-started
		t.Cleanup(func() { require.NoError(t, s.Shutdown()); require.NoError(t, <-done) })
	}
	return ln.Addr().String()
}

// startPebble starts an authority that asks for challenges at two ports.
func startPebble(t *testing.T, httpPort, tlsPort int) *pebble {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	t.Setenv("PEBBLE_WFE_NONCEREJECT", "0")
	resolver := answerNames(t)
	quiet := log.New(io.Discard, "", 0)
	rows := db.NewMemoryStore()
	issuer := ca.New(quiet, rows, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "default"}})
	front := wfe.New(quiet, rows, va.New(quiet, httpPort, tlsPort, false, resolver, rows), issuer, []string{"pebble.example"}, false, false, 1, 1)
	p := &pebble{issued: x509.NewCertPool()}
	handler := front.Handler()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/order-plz" {
			p.orders.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	p.url, p.roots = srv.URL+wfe.DirectoryPath, filepath.Join(t.TempDir(), "roots.pem")
	require.NoError(t, os.WriteFile(p.roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	p.issued.AddCert(issuer.GetRootCert(0).Cert)
	return p
}

// Certificates are fetched for a name, by a challenge over plain HTTP or in a
// handshake. A second node of the same database shows the same one and asks for
// none of its own.
func TestFetchedCertificates(t *testing.T) {
	for name, ln := range map[string]Listeners{"over HTTP": {HTTP: local(t)}, "in a handshake": {HTTPS: local(t)}} {
		t.Run(name, func(t *testing.T) {
			ln.MQTTTLS = local(t)
			p := startPebble(t, portOf(ln.HTTP), portOf(ln.HTTPS))
			database := storetest.MigratedPostgresURL(t)
			conf := Config{Dir: t.TempDir(), Database: database, Node: "one", RedirectTLS: "https://tms.example",
				TLS: TLSConfig{Names: []string{"tms.example"}, Authority: p.url, AuthorityRoots: p.roots}, Log: slog.New(slog.DiscardHandler)}
			start := func(ln Listeners) *Server {
				s, err := New(t.Context(), conf)
				require.NoError(t, err)
				ctx, stop := context.WithCancel(context.Background())
				done := make(chan error, 1)
				go func() { done <- s.Run(ctx, ln) }()
				t.Cleanup(func() { stop(); require.NoError(t, <-done) })
				return s
			}
			first := start(ln)
			var serial *big.Int
			ring.Await(t, func() bool { serial = shown(ln.MQTTTLS, "tms.example", p.issued); return serial != nil }, "a certificate of the authority")
			require.Nil(t, shown(ln.MQTTTLS, "evil.example", p.issued), "no certificate for a name that is not ours")
			require.EqualValues(t, 1, p.orders.Load())

			conf.Node = "two"
			second := Listeners{HTTPS: local(t)}
			start(second)
			ring.Await(t, func() bool { return shown(second.HTTPS, "tms.example", p.issued) != nil }, "the certificate at the second node")
			require.Equal(t, serial, shown(second.HTTPS, "tms.example", p.issued))
			require.EqualValues(t, 1, p.orders.Load(), "fetched once for all nodes")
			keys, err := first.Store.ListCertificateFiles(t.Context(), "")
			require.NoError(t, err)
			require.NotEmpty(t, keys)
		})
	}
}

// What the client of authorities keeps is sealed, listed by paths, and locked by
// one owner at a time, whose lock ends when it does not renew it.
func TestTheCertificateStore(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) *store.DB{
		"SQLite":     func(t *testing.T) *store.DB { return storetest.OpenSQLite(t) },
		"PostgreSQL": func(t *testing.T) *store.DB { return storetest.OpenPostgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, d := t.Context(), open(t)
			s := newCertificateStore(d)
			for _, key := range []string{"acme/x/users/a.json", "acme/x/users/b.json", "certificates/x/a.crt", "certificates-old"} {
				require.NoError(t, s.Store(ctx, key, []byte("secret of "+key)))
			}
			v, err := s.Load(ctx, "certificates/x/a.crt")
			require.NoError(t, err)
			require.Equal(t, "secret of certificates/x/a.crt", string(v))
			list, err := s.List(ctx, "acme/x", true)
			require.NoError(t, err)
			require.Equal(t, []string{"acme/x/users/a.json", "acme/x/users/b.json"}, list)
			list, err = s.List(ctx, "acme", false)
			require.NoError(t, err)
			require.Equal(t, []string{"acme/x"}, list)
			info, err := s.Stat(ctx, "certificates/x/a.crt")
			require.NoError(t, err)
			require.True(t, info.IsTerminal)
			require.True(t, s.Exists(ctx, "certificates"))
			require.NoError(t, s.Delete(ctx, "certificates"))
			require.False(t, s.Exists(ctx, "certificates/x/a.crt"))
			require.True(t, s.Exists(ctx, "certificates-old"))
			_, err = s.Load(ctx, "certificates/x/a.crt")
			require.ErrorIs(t, err, os.ErrNotExist)

			now := time.Now().UTC()
			ok, err := d.LockCertificate(ctx, "l", "one", now, now.Add(time.Minute))
			require.NoError(t, err)
			require.True(t, ok)
			ok, err = d.LockCertificate(ctx, "l", "two", now, now.Add(time.Minute))
			require.NoError(t, err)
			require.False(t, ok)
			require.NoError(t, d.KeepCertificateLock(ctx, "l", "one", now.Add(2*time.Minute)))
			require.Error(t, d.KeepCertificateLock(ctx, "l", "two", now.Add(2*time.Minute)))
			ok, err = d.LockCertificate(ctx, "l", "two", now.Add(3*time.Minute), now.Add(4*time.Minute))
			require.NoError(t, err)
			require.True(t, ok, "its owner did not come back")
			require.NoError(t, d.UnlockCertificate(ctx, "l", "one"), "a lock that was lost")
			ok, err = d.LockCertificate(ctx, "l", "three", now.Add(3*time.Minute), now.Add(4*time.Minute))
			require.NoError(t, err)
			require.False(t, ok)
		})
	}
}
