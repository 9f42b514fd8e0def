package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// TLSConfig says which certificates a node shows. The zero value: none.
type TLSConfig struct {
	Cert, Key string   // files, PEM; read again when they change
	Names     []string // public names for which certificates are fetched by ACME
	Email     string   // at which the authority warns; empty: none
	// Authority is the ACME directory; empty: Let's Encrypt. AuthorityRoots is a
	// file of certificates that its own is checked against; empty: the system's.
	Authority, AuthorityRoots string
	HSTS                      time.Duration // how long browsers remember HTTPS; 0: they do not
}

// certificateFiles are a certificate and its key, read again when one of the
// files has changed. While they cannot be read, or do not fit each other, the
// former certificate stays. Safe for concurrent use.
type certificateFiles struct {
	log *slog.Logger

	mu        sync.Mutex // guards what follows
	cert, key string
	current   *tls.Certificate
	seen      [2]fileState // when current was read, or could not be
}

type fileState struct {
	at   time.Time
	size int64
}

func loadCertificate(cert, key string, log *slog.Logger) (*certificateFiles, error) {
	f := &certificateFiles{cert: cert, key: key, log: log}
	f.seen = f.state()
	c, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read tls.cert and tls.key: %w", err)
	}
	f.current = &c
	return f, nil
}

func (f *certificateFiles) state() (out [2]fileState) {
	for i, name := range []string{f.cert, f.key} {
		if info, err := os.Stat(name); err == nil {
			out[i] = fileState{info.ModTime(), info.Size()}
		}
	}
	return out
}

// find is the certificate for a handshake, as tls.Config.GetCertificate.
func (f *certificateFiles) find(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.state(); now != f.seen {
		f.seen = now
		if c, err := tls.LoadX509KeyPair(f.cert, f.key); err != nil {
			f.log.Error("the changed certificate is not used", "err", err)
		} else {
			f.current = &c
			f.log.Info("certificate read again", "not_after", c.Leaf.NotAfter)
		}
	}
	return f.current, nil
}

// use shows the certificate of two files from now on. When they cannot be read, or do not
// fit each other, nothing changes.
func (f *certificateFiles) use(cert, key string) error {
	next, err := loadCertificate(cert, key, f.log)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cert, f.key, f.current, f.seen = next.cert, next.key, next.current, next.seen
	return nil
}

// certificates makes the TLS configuration of all listeners; nil: there is none.
func (s *Server) certificates() (*tls.Config, error) {
	t := s.cfg.TLS
	switch {
	case len(t.Names) > 0:
		a, err := newAuthority(t, newCertificateStore(s.Store), s.log)
		if err != nil {
			return nil, err
		}
		s.authority = a
		return a.config(), nil
	case t.Cert == "":
		return nil, nil
	}
	files, err := loadCertificate(t.Cert, t.Key, s.log)
	if err != nil {
		return nil, err
	}
	s.files = files
	return &tls.Config{GetCertificate: files.find, MinVersion: tls.VersionTLS12}, nil
}

// hsts is what answers over TLS say of later visits.
func (t TLSConfig) hsts() string {
	if t.HSTS <= 0 {
		return ""
	}
	return fmt.Sprintf("max-age=%d", int64(t.HSTS/time.Second))
}
