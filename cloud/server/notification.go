package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/notification"
)

// mailBase is what links in mails begin with; empty: there is no mail server.
func (s *Server) mailBase() string {
	if s.cfg.Mail == nil {
		return ""
	}
	return strings.TrimSuffix(s.cfg.BaseURL, "/")
}

// channelsOf are the channels by which people are notified.
func channelsOf(cfg Config) (out []cloud.NotificationChannel) {
	if cfg.Mail != nil {
		out = append(out, cloud.ByEmail)
	}
	if cfg.SMSURL != "" {
		out = append(out, cloud.BySMS)
	}
	return out
}

// sendNotifications builds what sends notifications by the channels that there are.
func sendNotifications(s *Server, access *account.Access) {
	sender := func(by cloud.NotificationChannel, c notification.Carrier, prepare func(context.Context) error) *notification.Sender {
		x := notification.New(notification.Config{Store: s.Store, Channel: by, Carrier: c, Log: s.log, Ended: s.auditUnsent, Prepare: prepare, When: s.Lockers.WhenToNotify})
		s.Store.OnCommit(x.Committed)
		return x
	}
	if s.cfg.Mail != nil {
		s.mailServer.use(s.cfg.Mail)
		s.mails = sender(cloud.ByEmail, &s.mailServer, func(ctx context.Context) error { return access.ResolveResets(ctx, s.Store) })
	}
	if s.cfg.SMSURL != "" {
		s.smsGateway.use(gatewayOf(s, s.cfg))
		s.sms = sender(cloud.BySMS, &s.smsGateway, nil)
	}
}

// auditUnsent keeps an audit line of a notification that was not sent, for the
// administrators of its business.
func (s *Server) auditUnsent(ctx context.Context, m cloud.NotificationRow) error {
	return s.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		line := cloud.Audit{BusinessID: m.BusinessID, At: m.EndedAt, Actor: "system", Action: map[cloud.NotificationChannel]string{cloud.ByEmail: "mail_not_sent", cloud.BySMS: "sms_not_sent"}[m.Channel], Target: "mail:" + m.ID,
			Detail: fmt.Sprintf(`{"kind":%q,"state":%q}`, m.Kind, m.State)}
		switch {
		case m.AccountID != 0:
			line.Target = fmt.Sprintf("account:%d", m.AccountID)
		case m.DeliveryID != 0:
			if d, err := v.Delivery(m.DeliveryID); err == nil {
				line.Target = d.Number
			} else if !errors.Is(err, cloud.ErrNotFound) {
				return nil, err
			}
		}
		return &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{line}}, Unaudited: true}, nil
	})
}
