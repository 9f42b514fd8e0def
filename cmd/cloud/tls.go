package main

import (
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cmd/internal/cli"
)

// tlsSettings are those of certificates: own files, or names for which they are
// fetched.
type tlsSettings struct {
	Listen string   `yaml:"listen" json:"listen"` // HTTPS
	Cert   string   `yaml:"cert" json:"cert"`
	Key    string   `yaml:"key" json:"key"`
	Names  []string `yaml:"names" json:"names"` // fetched by ACME
	Email  string   `yaml:"email" json:"email"`
	// Authority is the ACME directory; empty: Let's Encrypt. Roots are certificates
	// that its own is checked against; empty: the system's.
	Authority string `yaml:"authority" json:"authority"`
	Roots     string `yaml:"authority_roots" json:"authority_roots"`
	HSTS      string `yaml:"hsts" json:"hsts"` // how long browsers remember HTTPS; 0s: they do not

	hsts time.Duration
}

func (t tlsSettings) hasCertificate() bool { return t.Cert != "" || len(t.Names) > 0 }

func (t tlsSettings) server() server.TLSConfig {
	return server.TLSConfig{Cert: t.Cert, Key: t.Key, Names: t.Names, Email: t.Email, Authority: t.Authority, AuthorityRoots: t.Roots, HSTS: t.hsts}
}

const maxHSTS = 2 * 365 * 24 * time.Hour

func (s *settings) checkTLS(bad func(string, ...any)) {
	t := &s.TLS
	if (t.Cert == "") != (t.Key == "") {
		bad("tls: set both cert and key, or neither")
	}
	if t.Cert != "" && len(t.Names) > 0 {
		bad("tls: set cert and key, or names for certificates that are fetched, not both")
	}
	if t.Key != "" {
		if err := cli.CheckSecret(t.Key); err != nil {
			bad("tls.key: %w", err)
		}
		if _, err := os.Stat(t.Cert); err != nil {
			bad("tls.cert: %w", err)
		}
	}
	for i, name := range t.Names {
		t.Names[i] = strings.ToLower(name)
		if !strings.Contains(name, ".") || strings.ContainsAny(name, ":/* ") || net.ParseIP(name) != nil {
			bad("tls.names %q: use a public name such as tms.example", name)
		}
	}
	if t.Authority != "" && !isURL(t.Authority, "https") {
		bad("tls.authority %q: use the address of an ACME directory, https://…", t.Authority)
	}
	var err error
	if t.hsts, err = time.ParseDuration(t.HSTS); err != nil || t.hsts < 0 || t.hsts > maxHSTS {
		bad("tls.hsts %q: use 0s to 17520h", t.HSTS)
	}
	if s.BaseURL == "" && t.Listen != "" && len(t.Names) > 0 {
		s.BaseURL = "https://" + t.Names[0]
		if _, port, err := net.SplitHostPort(t.Listen); err == nil && port != "443" {
			s.BaseURL += ":" + port
		}
	}
	if u, err := url.Parse(s.BaseURL); t.Listen != "" && (err != nil || u.Scheme != "https") {
		bad("base_url %q: with tls.listen, set the public address that the certificate is for, https://…", s.BaseURL)
	}
}

// redirect is where plain HTTP leads: the public address, when this node has
// HTTPS itself.
func (s settings) redirect() string {
	if s.TLS.Listen == "" {
		return ""
	}
	return s.BaseURL
}
