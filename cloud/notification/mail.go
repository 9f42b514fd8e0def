package notification

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/postern-io/postern/cloud"
)

// Encryption of the connection to a mail server.
const (
	StartTLS = "starttls" // demanded after the greeting
	TLS      = "tls"      // from the first byte
	Plain    = "none"     // for a server on this machine alone
)

// MailServer is a mail server (RFC 5321).
type MailServer struct {
	Host       string
	Port       int
	Encryption string // StartTLS, TLS or Plain
	// User and Password of the login; empty: there is none. A password goes over an
	// encrypted connection alone.
	User, Password string
	From           string // address, or name and address: Postern <no-reply@tms.example>
	TLS            *tls.Config
}

// NewMailServer checks a mail server's settings. It connects to nothing.
func NewMailServer(s MailServer) (*MailServer, error) {
	if _, err := mail.ParseAddress(s.From); err != nil {
		return nil, errors.New("the sender is no address such as Postern <no-reply@tms.example>")
	}
	if s.User != "" && s.Encryption == Plain {
		return nil, errors.New("a login needs an encrypted connection")
	}
	_, err := s.client()
	return &s, err
}

func (s *MailServer) client() (*gomail.Client, error) {
	options := []gomail.Option{gomail.WithPort(s.Port), gomail.WithTimeout(sendTimeout), gomail.WithoutNoop()}
	conf := &tls.Config{}
	if s.TLS != nil {
		conf = s.TLS.Clone()
	}
	conf.ServerName, conf.MinVersion = s.Host, tls.VersionTLS12
	options = append(options, gomail.WithTLSConfig(conf))
	switch s.Encryption {
	case StartTLS:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	case TLS:
		options = append(options, gomail.WithSSL())
	case Plain:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		return nil, fmt.Errorf("encryption %q: use starttls, tls or none", s.Encryption)
	}
	if s.User != "" {
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(s.User), gomail.WithPassword(s.Password))
	}
	return gomail.NewClient(s.Host, options...)
}

// Send implements Carrier. Its errors name neither addresses nor texts.
func (s *MailServer) Send(ctx context.Context, m cloud.Notification) error {
	msg, err := s.message(m)
	if err != nil {
		return err
	}
	c, err := s.client()
	if err != nil {
		return err
	}
	conn, err := c.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return fmt.Errorf("reach the mail server: %w", err)
	}
	defer func() { _ = c.CloseWithSMTPClient(conn) }() // the mail was taken, or was not
	err = c.SendWithSMTPClient(conn, msg)
	if err == nil || msg.IsDelivered() {
		return nil
	}
	var refused *gomail.SendError
	if !errors.As(err, &refused) {
		return errors.New("the connection broke off")
	}
	if code := refused.ErrorCode(); code >= 500 && !refused.IsTemp() {
		return fmt.Errorf("%w: it answered %d", ErrRefused, code)
	}
	return fmt.Errorf("the mail server answered %d: %s", refused.ErrorCode(), refused.Reason)
}

// message is a mail as it is sent. ErrRefused for an address that is none.
func (s *MailServer) message(m cloud.Notification) (*gomail.Msg, error) {
	l, err := Compose(m, time.Now())
	if err != nil {
		return nil, err
	}
	from, err := mail.ParseAddress(s.From)
	if err != nil {
		return nil, errors.New("the sender is no address")
	}
	msg := gomail.NewMsg()
	msg.FromMailAddress(from)
	if err := msg.To(m.To); err != nil {
		return nil, fmt.Errorf("%w: the recipient is no address", ErrRefused)
	}
	_, host, _ := strings.Cut(from.Address, "@")
	msg.SetMessageIDWithValue(m.ID + "@" + host)
	msg.SetDateWithValue(m.At)
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.Subject(l.Subject)
	msg.SetBodyString(gomail.TypeTextPlain, l.Text)
	msg.AddAlternativeString(gomail.TypeTextHTML, l.HTML)
	return msg, nil
}
