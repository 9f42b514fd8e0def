package account

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/collection"
)

// Where the pages behind links are.
const (
	InvitationPath = "/invitation"
	ResetPath      = "/password-reset"
)

const (
	invitationLife = 7 * 24 * time.Hour
	resetLife      = time.Hour
	wrongEmails    = 5   // given with one link before it ends
	maxInvitations = 200 // that wait in a business
)

// Invitation is one as the business sees it.
type Invitation struct {
	ID          cloud.InvitationID `json:"invitation_id"`
	Status      string             `json:"status" doc:"pending, accepted, withdrawn or expired"`
	AccountType cloud.AccountType  `json:"account_type"`
	Email       string             `json:"email"`
	Name        string             `json:"name"`
	Permissions []string           `json:"permissions" max:"100"`
	InvitedBy   cloud.AccountID    `json:"invited_by"`
	UserID      *cloud.AccountID   `json:"user_id" doc:"The account that came of it"`
	CreatedAt   *string            `json:"created_at"`
	ExpiresAt   *string            `json:"expires_at"`
	AcceptedAt  *string            `json:"accepted_at"`
}

func showInvitation(i cloud.Invitation, now time.Time, l *time.Location) Invitation {
	return Invitation{ID: i.ID, Status: i.Status(now), AccountType: i.Type, Email: i.Email, Name: i.Name, Permissions: orEmpty(i.Permissions), InvitedBy: i.InvitedBy, UserID: cloud.OrNull(i.AccountID),
		CreatedAt: cloud.Stamp(i.CreatedAt, l), ExpiresAt: cloud.Stamp(i.ExpiresAt, l), AcceptedAt: cloud.Stamp(i.AcceptedAt, l)}
}

// InvitationsInput asks for a part of the business's invitations.
type InvitationsInput struct{ PageInput }

// InvitationsOutput lists invitations.
type InvitationsOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Invitations []Invitation `json:"invitations"`
}

// ListInvitations lists the invitations of the caller's business, newest first.
func (s *Access) ListInvitations(ctx context.Context, c cloud.Caller, in InvitationsInput) (InvitationsOutput, error) {
	now := moment()
	list, page, err := collection.ListLike(ctx, s.cfg.Store, c, in, cloud.Invitation{BusinessID: c.Account.BusinessID},
		func(i cloud.Invitation, l *time.Location) Invitation { return showInvitation(i, now, l) })
	return InvitationsOutput{Result: err == nil, PageOutput: page, Invitations: list}, err
}

// InviteInput asks a person to join.
type InviteInput struct {
	AccountType cloud.AccountType `json:"account_type" required:"true" enum:"client_admin,client_employee,broker,driver,customer"`
	Email       string            `json:"email" required:"true" max:"256" doc:"The invited person gives it when accepting"`
	Name        string            `json:"name" required:"true" max:"120"`
	Permissions cloud.Scopes      `json:"permissions" max:"100" doc:"Scopes of a client_employee"`
}

// InviteOutput shows the link of an invitation, once.
type InviteOutput struct {
	Result     bool       `json:"result"`
	Invitation Invitation `json:"invitation"`
	Mailed     bool       `json:"mailed" doc:"The link goes to the person by mail. false where the deployment has no mail server"`
	Token      string     `json:"token" doc:"Of invitations.accept; empty when the link goes by mail"`
	Link       string     `json:"link" doc:"Give it to the person. It is in this answer and nowhere else; empty when it goes by mail"`
}

// Invite makes an invitation that is good for 7 days and gives its link. Errors:
// VALIDATION_FAILED, INVITATION_LIMIT.
func (s *Access) Invite(ctx context.Context, c cloud.Caller, in InviteInput) (out InviteOutput, err error) {
	f := newFields()
	in.Email = f.email(in.Email)
	f.filled("name", &in.Name, true)
	if err := f.Err(); err != nil {
		return out, err
	}
	if in.AccountType != cloud.ClientEmployee {
		in.Permissions = nil
	}
	now, token := moment(), auth.NewToken()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := businessOf(v, c)
		if err != nil {
			return nil, err
		}
		known, _, err := v.Accounts(cloud.AccountFilter{BusinessID: b.ID, Email: in.Email, Page: cloud.Page{Sort: "id", Limit: 1}})
		if err != nil {
			return nil, err
		}
		if len(known) > 0 {
			return nil, taken(cloud.ErrExists)
		}
		if _, err := roomFor(v, cloud.Account{}, cloud.Account{BusinessID: b.ID, Enabled: true}); err != nil { // the person would be refused
			return nil, err
		}
		latest, _, err := cloud.List(v, cloud.Invitation{BusinessID: b.ID}, cloud.Page{Sort: "id", Down: true, Limit: maxInvitations})
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		waiting := 0
		for _, i := range latest {
			if i.Status(now) != "pending" {
				continue
			}
			if i.Email == in.Email { // the newer link replaces the former
				i.WithdrawnAt = now
				ch.Rows = append(ch.Rows, i)
				continue
			}
			waiting++
		}
		if waiting >= maxInvitations {
			return nil, cloud.E(cloud.Conflict, "INVITATION_LIMIT")
		}
		id, err := v.NewID(cloud.InvitationIDs)
		if err != nil {
			return nil, err
		}
		i := cloud.Invitation{ID: cloud.InvitationID(id), BusinessID: b.ID, Hash: auth.Hash(token), Email: in.Email, Name: in.Name, Type: in.AccountType, Permissions: distinct(in.Permissions),
			InvitedBy: c.Account.ID, CreatedAt: now, ExpiresAt: now.Add(invitationLife), Mailed: s.mails()}
		ch.Rows = append(ch.Rows, i)
		ch.Audits = audit(c, now, "invitation_made", "invitation", id)
		out = InviteOutput{Result: true, Invitation: showInvitation(i, now, b.Location()), Mailed: s.mails()}
		if !out.Mailed {
			out.Token, out.Link = token, link(c, InvitationPath, token)
			return ch, nil
		}
		m := mailTo(cloud.NotifyInvitation, cloud.Account{BusinessID: b.ID, Email: i.Email, Name: i.Name}, b, now, i.ExpiresAt)
		m.Link = s.mailLink(InvitationPath, token)
		ch.Notifications = append(ch.Notifications, m)
		return ch, nil
	})
	return out, err
}

// link is the address of a page that takes a one-time secret.
func link(c cloud.Caller, path, token string) string {
	return c.ForOthers().BaseURL + path + "?" + url.Values{"key": {token}}.Encode()
}

// ByInvitation names an invitation.
type ByInvitation struct {
	ID cloud.InvitationID `path:"id"`
}

// WithdrawInvitation ends an invitation that was not accepted. Errors:
// INVITATION_NOT_FOUND, INVITATION_USED.
func (s *Access) WithdrawInvitation(ctx context.Context, c cloud.Caller, in ByInvitation) (Done, error) {
	now := moment()
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		i, err := cloud.Find(v, cloud.Invitation{BusinessID: c.Account.BusinessID, ID: in.ID})
		switch {
		case errors.Is(err, cloud.ErrNotFound):
			return nil, cloud.E(cloud.NotFound, "INVITATION_NOT_FOUND")
		case err != nil:
			return nil, err
		case !i.AcceptedAt.IsZero():
			return nil, cloud.E(cloud.Conflict, "INVITATION_USED")
		}
		if i.WithdrawnAt.IsZero() {
			i.WithdrawnAt = now
		}
		return &cloud.Changes{RowChanges: cloud.RowChanges{Rows: []cloud.Row{i}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "invitation_withdrawn", "invitation", int64(i.ID))}}, nil
	})
	return Done{err == nil}, err
}

// checkInviter returns ended unless an account gives people access to a business: an
// administrator of it, or an operator of the platform, who invites the first one.
func checkInviter(v cloud.View, id cloud.AccountID, b cloud.BusinessID, ended error) error {
	a, err := v.Account(id)
	switch {
	case errors.Is(err, cloud.ErrNotFound):
		return ended
	case err != nil:
		return err
	case a.Enabled && (a.Type == cloud.PlatformAdmin || a.Type == cloud.ClientAdmin && a.BusinessID == b):
		return nil
	}
	return ended
}

// AcceptInput takes an invitation up.
type AcceptInput struct {
	Token    string `json:"token" required:"true" max:"128" doc:"Of the invitation"`
	Email    string `json:"email" required:"true" max:"256" doc:"The address that was invited"`
	Password string `json:"password" required:"true" min:"10" max:"256"`
}

// Accept makes the account that an invitation is for, with a password of the
// person's own. The link works once, within its time, for who gives the email that
// was invited and while the administrator who invited is one; the fifth other email
// ends it. Errors: INVITATION_NOT_FOUND,
// INVITATION_USED, INVITATION_WITHDRAWN, INVITATION_EXPIRED, INVITATION_EMAIL_WRONG,
// VALIDATION_FAILED.
func (s *Access) Accept(ctx context.Context, _ cloud.Caller, in AcceptInput) (Done, error) {
	f := newFields()
	in.Email = f.email(in.Email)
	f.filled("password", &in.Password, true)
	if err := f.Err(); err != nil {
		return Done{}, err
	}
	usable := func(v cloud.View, now time.Time) (cloud.Invitation, error) {
		i, err := cloud.Find(v, cloud.Invitation{Hash: auth.Hash(in.Token)})
		if errors.Is(err, cloud.ErrNotFound) {
			return i, cloud.E(cloud.NotFound, "INVITATION_NOT_FOUND")
		}
		if err != nil {
			return i, err
		}
		switch i.Status(now) {
		case "accepted":
			return i, cloud.E(cloud.Conflict, "INVITATION_USED")
		case "withdrawn":
			return i, cloud.E(cloud.Conflict, "INVITATION_WITHDRAWN")
		case "expired":
			return i, cloud.E(cloud.Conflict, "INVITATION_EXPIRED")
		}
		return i, checkInviter(v, i.InvitedBy, i.BusinessID, cloud.E(cloud.Conflict, "INVITATION_WITHDRAWN"))
	}
	// No hash is made without a link that works.
	if err := s.cfg.Store.Look(ctx, func(v cloud.View) error { _, err := usable(v, moment()); return err }); err != nil {
		return Done{}, err
	}
	hash := auth.HashPassword(in.Password)
	err := auth.Decide(ctx, s.cfg.Store, func(v cloud.View, ch *cloud.Changes, now time.Time) (*cloud.Error, error) {
		i, err := usable(v, now)
		if err != nil {
			return nil, err
		}
		state, err := v.Suspension(i.BusinessID)
		if err != nil {
			return nil, err
		}
		if state.Suspended() {
			return nil, cloud.E(cloud.Forbidden, "BUSINESS_SUSPENDED")
		}
		line := cloud.Audit{BusinessID: i.BusinessID, At: now, Actor: "anonymous", Target: "invitation:" + strconv.FormatInt(int64(i.ID), 10), Detail: "{}"}
		if i.Email != in.Email {
			if i.Wrong++; i.Wrong >= wrongEmails {
				i.WithdrawnAt = now
			}
			line.Action = "invitation_email_wrong"
			ch.Rows, ch.Audits = []cloud.Row{i}, []cloud.Audit{line}
			return cloud.E(cloud.Forbidden, "INVITATION_EMAIL_WRONG"), nil
		}
		id, err := v.NewID(cloud.AccountIDs)
		if err != nil {
			return nil, err
		}
		a := cloud.Account{ID: cloud.AccountID(id), BusinessID: i.BusinessID, Type: i.Type, Email: i.Email, Name: i.Name, PasswordHash: hash, Permissions: slices.Clone(i.Permissions), Enabled: true, CreatedAt: now}
		if i.Mailed {
			a.ProveMail()
		}
		i.AcceptedAt, i.AccountID, line.Action = now, a.ID, "invitation_accepted"
		if ch.Accounts, err = unreviewed(v, a); err != nil {
			return nil, err
		}
		limited, err := roomFor(v, cloud.Account{}, a)
		if err != nil {
			return nil, err
		}
		ch.Businesses = append(ch.Businesses, limited...)
		ch.Accounts = append(ch.Accounts, a)
		ch.Rows, ch.Audits = []cloud.Row{i}, []cloud.Audit{line}
		return nil, nil
	})
	return Done{err == nil}, taken(err)
}

// ResetOutput shows the link to a new password, once.
type ResetOutput struct {
	Result    bool    `json:"result"`
	Mailed    bool    `json:"mailed" doc:"The link goes to the person by mail. false where the deployment has no mail server"`
	Token     string  `json:"token" doc:"Of user.password_reset.complete; empty when the link goes by mail"`
	Link      string  `json:"link" doc:"Give it to the person. It is in this answer and nowhere else; empty when it goes by mail"`
	ExpiresAt *string `json:"expires_at"`
}

// MakeReset gives the link by which a person of the caller's business chooses a new
// password, within an hour and once. Former links, logins and agents of the person
// end; of the caller's own account the logins stay until the password was chosen.
// Where there is a mail server the link goes to the person and not into the answer.
// Error: USER_NOT_FOUND.
func (s *Access) MakeReset(ctx context.Context, c cloud.Caller, in ByUser) (out ResetOutput, err error) {
	now, token := moment(), auth.NewToken()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		a, err := owned(v, c, in.ID, peopleTypes, "USER_NOT_FOUND")
		if err != nil {
			return nil, err
		}
		b, err := businessOf(v, c)
		if err != nil {
			return nil, err
		}
		t := resetTicket(a, token, now)
		if t.Mailed = s.mails(); !t.Mailed {
			t.MadeBy = c.Account.ID
		}
		out = ResetOutput{Result: true, Mailed: s.mails(), ExpiresAt: cloud.Stamp(t.ExpiresAt, b.Location())}
		ch := &cloud.Changes{FactorChanges: cloud.FactorChanges{Tickets: []cloud.Ticket{t}, EndTickets: []cloud.AccountID{a.ID}, DropTickets: now.Add(-invitationLife)},
			AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "password_reset_made", "account", int64(a.ID))}}
		if out.Mailed {
			m := mailTo(cloud.NotifyAdminReset, a, b, now, t.ExpiresAt)
			m.Link = s.mailLink(ResetPath, token)
			ch.Notifications = []cloud.Notification{m}
		} else {
			out.Token, out.Link = token, link(c, ResetPath, token)
		}
		if a.ID == c.Account.ID {
			return ch, nil
		}
		ch.Accounts = []cloud.Account{a} // a login of this moment meets the change there
		return ch, endLogins(v, ch, c, a.ID, now)
	})
	return out, err
}

// NewPasswordInput chooses a new password.
type NewPasswordInput struct {
	Token    string `json:"token" required:"true" max:"128" doc:"Of the link"`
	Password string `json:"password" required:"true" min:"10" max:"256"`
	OTP      string `json:"otp" max:"64" doc:"Time-based code, or a recovery code, of an account with a second factor"`
}

// CompleteReset gives an account a new password and ends its logins and agents. By a link
// that went by mail the account's address is proven; the keys and passkeys of a customer
// whose address was not are ended with it: another person may have made them.
// Errors: RESET_EXPIRED, SECOND_FACTOR_REQUIRED, SECOND_FACTOR_INVALID,
// SECOND_FACTOR_LOCKED, VALIDATION_FAILED.
func (s *Access) CompleteReset(ctx context.Context, _ cloud.Caller, in NewPasswordInput) (Done, error) {
	f := newFields()
	f.filled("password", &in.Password, true)
	if err := f.Err(); err != nil {
		return Done{}, err
	}
	usable := func(v cloud.View, now time.Time) (t cloud.Ticket, a cloud.Account, err error) {
		over := cloud.E(cloud.Conflict, "RESET_EXPIRED")
		t, err = v.Ticket(auth.Hash(in.Token))
		if errors.Is(err, cloud.ErrNotFound) || err == nil && (t.Kind != cloud.ResetTicket || !t.UsedAt.IsZero() || !now.Before(t.ExpiresAt)) {
			return t, a, over
		}
		if err == nil {
			a, err = v.Account(t.AccountID)
		}
		if err == nil && (!a.Enabled || auth.Mark(a) != t.PasswordMark) {
			return t, a, over
		}
		if err == nil && t.MadeBy != 0 {
			err = checkInviter(v, t.MadeBy, a.BusinessID, over)
		}
		return t, a, err
	}
	err := s.cfg.Store.Look(ctx, func(v cloud.View) error { _, _, err := usable(v, moment()); return err })
	if err != nil {
		return Done{}, err
	}
	hash := auth.HashPassword(in.Password)
	err = auth.Decide(ctx, s.cfg.Store, func(v cloud.View, ch *cloud.Changes, now time.Time) (*cloud.Error, error) {
		t, a, err := usable(v, now)
		if err != nil {
			return nil, err
		}
		if problem, err := auth.Prove(v, ch, a, in.OTP, now); problem != nil || err != nil {
			return problem, err
		}
		proven := a.IsMailProven()
		t.UsedAt, a.PasswordHash = now, hash
		c := cloud.Caller{Account: a}
		if t.Mailed {
			a.ProveMail()
		}
		if t.Mailed && !proven && a.Type == cloud.Customer {
			if err := endFormerAccess(v, ch, a.ID, now); err != nil {
				return nil, err
			}
		}
		ch.Tickets, ch.Accounts, ch.Audits = append(ch.Tickets, t), append(ch.Accounts, a), append(ch.Audits, audit(c, now, "password_reset", "account", int64(a.ID))...)
		if err := s.cfg.addMail(v, ch, cloud.NotifyPassword, a, now); err != nil {
			return nil, err
		}
		return nil, endLogins(v, ch, c, a.ID, now)
	})
	return Done{err == nil}, err
}
