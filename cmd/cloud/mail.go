package main

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/postern-io/postern/cloud/notification"
	"github.com/postern-io/postern/cmd/internal/cli"
)

// mailSettings are those of the mail server that mails to people go by.
type mailSettings struct {
	Server       string `yaml:"server" json:"server"` // host:port; empty: there is none
	Encryption   string `yaml:"encryption" json:"encryption"`
	From         string `yaml:"from" json:"from"`
	User         string `yaml:"user" json:"user"`
	PasswordFile string `yaml:"password_file" json:"password_file"`
	Roots        string `yaml:"roots" json:"roots"` // certificates that the server's own is checked against; empty: the system's

	server *notification.MailServer
}

// checkMail reads the password of the mail server's login. Nothing is connected to.
func (s *settings) checkMail(bad func(string, ...any)) {
	m := &s.Mail
	if m.Server == "" {
		if m.From != "" || m.User != "" || m.PasswordFile != "" {
			bad("mail: set mail.server, or leave the others out")
		}
		return
	}
	host, port, err := net.SplitHostPort(m.Server)
	number, numberErr := strconv.ParseUint(port, 10, 16)
	if err != nil || numberErr != nil || host == "" || number == 0 {
		bad("mail.server %q: use host:port, such as mail.example:587", m.Server)
		return
	}
	if s.BaseURL == "" {
		bad("mail.server: set base_url too, links in mails begin with it")
	}
	if m.Encryption == notification.Plain && !cli.IsLoopback(m.Server) {
		bad("mail.encryption: none shows links that let people in to the network; use starttls or tls")
	}
	if (m.User == "") != (m.PasswordFile == "") {
		bad("mail: set both user and password_file, or neither")
	}
	out := notification.MailServer{Host: host, Port: int(number), Encryption: m.Encryption, From: m.From, User: m.User}
	if m.PasswordFile != "" {
		raw, err := cli.ReadSecret(m.PasswordFile)
		if err != nil {
			bad("mail.password_file: %w", err)
			return
		}
		if out.Password = strings.Trim(string(raw), "\r\n"); out.Password == "" {
			bad("mail.password_file: %s is empty", m.PasswordFile)
		}
	}
	if m.Roots != "" {
		raw, err := os.ReadFile(m.Roots)
		out.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
		if err != nil || !out.TLS.RootCAs.AppendCertsFromPEM(raw) {
			bad("mail.roots %q: name a readable file with certificates in PEM", m.Roots)
		}
	}
	if m.server, err = notification.NewMailServer(out); err != nil {
		bad("mail: %w", err)
	}
}
