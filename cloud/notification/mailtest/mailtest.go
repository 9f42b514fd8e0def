// Package mailtest is a mail server (RFC 5321) on the loopback for tests. It takes
// mails over STARTTLS with a login and delivers none.
package mailtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/notification"
)

// Login of the server.
const (
	User     = "postern"
	Password = "a password of the mail server"
)

// Mail is what the server took.
type Mail struct {
	From, To, Raw string
	TLS           bool
}

// Server is a running mail server.
type Server struct {
	t    testing.TB
	conf *tls.Config
	pool *x509.CertPool
	addr string
	// Mails are what was taken, in the order that it came.
	Mails chan Mail

	mu      sync.Mutex
	refuse  *smtp.SMTPError // of each recipient; nil: they are taken
	running *smtp.Server
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	s := &Server{t: t, Mails: make(chan Mail, 100)}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	form := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(raw)
	require.NoError(t, err)
	s.pool = x509.NewCertPool()
	s.pool.AddCert(cert)
	s.conf = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Start takes connections, at the same address each time.
func (s *Server) Start() {
	ln, err := net.Listen("tcp", max(s.addr, "127.0.0.1:0"))
	require.NoError(s.t, err)
	s.addr = ln.Addr().String()
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{s: s, c: c}, nil }))
	server.Domain, server.TLSConfig, server.ReadTimeout = "localhost", s.conf, 10*time.Second
	s.mu.Lock()
	s.running = server
	s.mu.Unlock()
	go func() { _ = server.Serve(ln) }()
}

// Stop ends all connections; further ones are refused.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		_ = s.running.Close()
		s.running = nil
	}
}

// Refuse answers recipients with a code; 0 takes them again.
func (s *Server) Refuse(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = nil
	if code != 0 {
		s.refuse = &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 1, 1}, Message: "not here"}
	}
}

// Settings are those by which the server is reached.
func (s *Server) Settings() notification.MailServer {
	_, port, err := net.SplitHostPort(s.addr)
	require.NoError(s.t, err)
	n, err := strconv.Atoi(port)
	require.NoError(s.t, err)
	return notification.MailServer{Host: "localhost", Port: n, Encryption: notification.StartTLS, User: User, Password: Password, From: "Postern <no-reply@tms.example>", TLS: &tls.Config{RootCAs: s.pool}}
}

type session struct {
	s        *Server
	c        *smtp.Conn
	in       bool
	from, to string
}

func (x *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (x *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if x.in = user == User && password == Password; !x.in {
			return errors.New("wrong login")
		}
		return nil
	}), nil
}

func (x *session) Mail(from string, _ *smtp.MailOptions) error {
	if !x.in {
		return smtp.ErrAuthRequired
	}
	x.from = from
	return nil
}

func (x *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if x.s.refuse != nil {
		return x.s.refuse
	}
	x.to = to
	return nil
}

func (x *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	_, encrypted := x.c.TLSConnectionState()
	x.s.Mails <- Mail{x.from, x.to, string(raw), encrypted}
	return nil
}

func (x *session) Reset() { x.from, x.to = "", "" }

func (x *session) Logout() error { return nil }
