package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/mail"
)

// mailBase is what links in mails begin with; empty: there is no mail server.
func (s *Server) mailBase() string {
	if s.cfg.Mail == nil {
		return ""
	}
	return strings.TrimSuffix(s.cfg.BaseURL, "/")
}

// sendMails builds what sends mails, where there is a mail server.
func (s *Server) sendMails(access *account.Access) {
	if s.mailBase() == "" {
		return
	}
	s.mailServer.Store(s.cfg.Mail)
	s.mails = mail.New(mail.Config{Store: s.Store, Carrier: &s.mailServer, Log: s.log, Ended: s.auditMail,
		Prepare: func(ctx context.Context) error { return access.ResolveResets(ctx, s.Store) }})
	s.Store.OnCommit(s.mails.Committed)
}

// auditMail keeps an audit line of a mail that was not sent, for the administrators
// of its business.
func (s *Server) auditMail(ctx context.Context, m cloud.MailRow) error {
	return s.Store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		line := cloud.Audit{BusinessID: m.BusinessID, At: m.EndedAt, Actor: "system", Action: "mail_not_sent", Target: "mail:" + m.ID,
			Detail: fmt.Sprintf(`{"kind":%q,"state":%q}`, m.Kind, m.State)}
		if m.AccountID != 0 {
			line.Target = fmt.Sprintf("account:%d", m.AccountID)
		}
		return &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{line}}, Unaudited: true}, nil
	})
}
