package server

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
	"go.uber.org/zap"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// authority fetches and renews certificates for the configured names (RFC 8555).
// Accounts, keys, certificates and open challenges lie in the database, so that
// one node fetches and all of them show the certificate and answer challenges.
type authority struct {
	conf  TLSConfig
	log   *slog.Logger
	magic *certmagic.Config
	cache *certmagic.Cache
	roots *x509.CertPool

	mu     sync.Mutex // guards issuer
	issuer *certmagic.ACMEIssuer
}

func newAuthority(conf TLSConfig, files certmagic.Storage, log *slog.Logger) (*authority, error) {
	a := &authority{conf: conf, log: log}
	if conf.AuthorityRoots != "" {
		pem, err := os.ReadFile(conf.AuthorityRoots)
		if err != nil {
			return nil, fmt.Errorf("read tls.authority_roots: %w", err)
		}
		if a.roots = x509.NewCertPool(); !a.roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.authority_roots: no certificate in %s; it must be PEM", conf.AuthorityRoots)
		}
	}
	a.cache = certmagic.NewCache(certmagic.CacheOptions{GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return a.magic, nil }, Logger: zap.NewNop()})
	a.magic = certmagic.New(a.cache, certmagic.Config{Storage: files, Logger: zap.NewNop(), OnEvent: a.event, DefaultServerName: conf.Names[0]})
	return a, nil
}

// event tells operators what became of a certificate. Nothing in it is secret.
func (a *authority) event(_ context.Context, name string, data map[string]any) error {
	switch name {
	case "cert_obtained":
		a.log.Info("certificate fetched", "name", data["identifier"], "renewal", data["renewal"])
	case "cert_failed":
		a.log.Error("certificate is not fetched", "name", data["identifier"], "err", data["error"])
	}
	return nil
}

// config is the TLS configuration that shows the certificates and answers
// challenges in handshakes.
func (a *authority) config() *tls.Config {
	t := a.magic.TLSConfig()
	t.MinVersion = tls.VersionTLS12
	t.NextProtos = slices.Concat([]string{"http/1.1"}, t.NextProtos)
	return t
}

// challenge answers what an authority asks over plain HTTP.
func (a *authority) challenge(ctx *fasthttp.RequestCtx) bool {
	if !strings.HasPrefix(string(ctx.Path()), "/.well-known/acme-challenge/") {
		return false
	}
	a.mu.Lock()
	issuer := a.issuer
	a.mu.Unlock()
	if issuer == nil {
		return false
	}
	answered := false
	fasthttpadaptor.NewFastHTTPHandlerFunc(func(w http.ResponseWriter, r *http.Request) { answered = issuer.HandleHTTPChallenge(w, r) })(ctx)
	return answered
}

// Run keeps the certificates until ctx ends. The ports are those that this node
// listens on, 0 for none: challenges come there, as the network leads them.
func (a *authority) run(ctx context.Context, httpPort, tlsPort int) error {
	defer a.cache.Stop()
	issuer := certmagic.NewACMEIssuer(a.magic, certmagic.ACMEIssuer{CA: a.conf.Authority, Email: a.conf.Email, Agreed: true, TrustedRoots: a.roots, Logger: zap.NewNop(),
		AltHTTPPort: httpPort, AltTLSALPNPort: tlsPort, DisableHTTPChallenge: httpPort == 0, DisableTLSALPNChallenge: tlsPort == 0})
	if a.conf.Authority == "" {
		issuer.CA = certmagic.LetsEncryptProductionCA
	}
	a.mu.Lock()
	a.issuer = issuer
	a.mu.Unlock()
	a.magic.Issuers = []certmagic.Issuer{issuer}
	if err := a.magic.ManageAsync(ctx, a.conf.Names); err != nil {
		return fmt.Errorf("fetch certificates: %w", err)
	}
	<-ctx.Done()
	return nil
}

// portOf is the port of a listener, 0 of none.
func portOf(ln net.Listener) int {
	if ln == nil {
		return 0
	}
	if a, ok := ln.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}

// certificateStore keeps an authority's files in the database.
type certificateStore struct {
	db    *store.DB
	owner string // of locks: this start of this node
}

func newCertificateStore(db *store.DB) certificateStore {
	return certificateStore{db, db.Instance() + "/" + rand.Text()}
}

var (
	_ certmagic.Storage          = certificateStore{}
	_ certmagic.LockLeaseRenewer = certificateStore{}
)

// notThere is an error in the words that the library looks for.
func notThere(err error) error {
	if errors.Is(err, cloud.ErrNotFound) {
		return fs.ErrNotExist
	}
	return err
}

// Store implements certmagic.Storage.
func (s certificateStore) Store(ctx context.Context, key string, value []byte) error {
	return s.db.SaveCertificateFile(ctx, key, value, time.Now().UTC())
}

// Load implements certmagic.Storage.
func (s certificateStore) Load(ctx context.Context, key string) ([]byte, error) {
	f, err := s.db.FindCertificateFile(ctx, key)
	return f.Value, notThere(err)
}

// Delete implements certmagic.Storage.
func (s certificateStore) Delete(ctx context.Context, key string) error {
	return s.db.DropCertificateFiles(ctx, key)
}

// Exists implements certmagic.Storage.
func (s certificateStore) Exists(ctx context.Context, key string) bool {
	_, err := s.Stat(ctx, key)
	return err == nil
}

// List implements certmagic.Storage.
func (s certificateStore) List(ctx context.Context, dir string, recursive bool) ([]string, error) {
	keys, err := s.db.ListCertificateFiles(ctx, dir)
	if err != nil || recursive {
		return keys, err
	}
	var out []string
	for _, key := range keys {
		first, _, _ := strings.Cut(strings.TrimPrefix(key, strings.Trim(dir, "/")+"/"), "/")
		if name := path.Join(dir, first); len(out) == 0 || out[len(out)-1] != name {
			out = append(out, name)
		}
	}
	return out, nil
}

// Stat implements certmagic.Storage.
func (s certificateStore) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	f, err := s.db.FindCertificateFile(ctx, key)
	if errors.Is(err, cloud.ErrNotFound) { // perhaps a folder
		if below, listErr := s.db.ListCertificateFiles(ctx, key); listErr == nil && len(below) > 0 {
			return certmagic.KeyInfo{Key: key}, nil
		}
	}
	return certmagic.KeyInfo{Key: key, Modified: f.ModifiedAt, Size: f.Size, IsTerminal: true}, notThere(err)
}

// How long a lock lives unless it is renewed, and how often a taken one is tried.
const (
	lockLife  = 2 * time.Minute
	lockPause = 500 * time.Millisecond
)

// Lock implements certmagic.Storage.
func (s certificateStore) Lock(ctx context.Context, name string) error {
	for {
		now := time.Now().UTC()
		ok, err := s.db.LockCertificate(ctx, name, s.owner, now, now.Add(lockLife))
		if err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPause):
		}
	}
}

// RenewLockLease implements certmagic.LockLeaseRenewer.
func (s certificateStore) RenewLockLease(ctx context.Context, name string, life time.Duration) error {
	return s.db.KeepCertificateLock(ctx, name, s.owner, time.Now().UTC().Add(life))
}

// Unlock implements certmagic.Storage.
func (s certificateStore) Unlock(ctx context.Context, name string) error {
	return s.db.UnlockCertificate(context.WithoutCancel(ctx), name, s.owner)
}
