package platform

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
)

// Business is one as operators see it: nothing of what it does.
type Business struct {
	BusinessID   cloud.BusinessID `json:"business_id"`
	Code         string           `json:"code"`
	Name         string           `json:"name"`
	Timezone     string           `json:"timezone"`
	SupportPhone string           `json:"support_phone"`
	SupportEmail string           `json:"support_email"`
	Status       string           `json:"status" doc:"active or suspended"`
	SuspendedAt  *string          `json:"suspended_at"`
	Reason       *string          `json:"suspended_reason"`
	Limits       Limits           `json:"limits"`
	Features     []string         `json:"features" doc:"Families that are on"`
}

// Limits are bounds of a business; 0 is none.
type Limits struct {
	Cabinets          int `json:"cabinets" min:"0" max:"1000000" doc:"How many cabinets it may have; 0: no bound"`
	Accounts          int `json:"accounts" min:"0" max:"1000000" doc:"How many accounts of people and partners may be switched on; 0: no bound"`
	RequestsPerMinute int `json:"requests_per_minute" min:"0" max:"1000000" doc:"Calls with a token a minute, of all its people and keys; 0: no bound"`
}

func (l Limits) stored() cloud.BusinessLimits {
	return cloud.BusinessLimits{Cabinets: l.Cabinets, Accounts: l.Accounts, RequestsPerMinute: l.RequestsPerMinute}
}

func show(b cloud.Business, s cloud.BusinessState) Business {
	out := Business{BusinessID: b.ID, Code: b.Code, Name: b.Name, Timezone: b.Timezone, SupportPhone: b.SupportPhone, SupportEmail: b.SupportEmail, Status: "active",
		SuspendedAt: cloud.Stamp(s.SuspendedAt, time.UTC), Limits: Limits{s.Limits.Cabinets, s.Limits.Accounts, s.Limits.RequestsPerMinute}, Features: []string{}}
	if s.Suspended() {
		out.Status, out.Reason = "suspended", cloud.OrNull(s.Reason)
	}
	for _, f := range b.Settings.Features {
		if f.Enabled && !f.Revoked {
			out.Features = append(out.Features, f.Family)
		}
	}
	return out
}

// BusinessesOutput lists businesses.
type BusinessesOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Businesses []Business `json:"businesses"`
}

// List lists all businesses, newest first.
func (s *Service) List(ctx context.Context, _ cloud.Caller, in PageInput) (out BusinessesOutput, err error) {
	page, err := in.Part(in, "-id")
	if err != nil {
		return out, err
	}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		list, listed, err := v.Businesses(page)
		if err != nil {
			return err
		}
		out = BusinessesOutput{Result: true, PageOutput: in.Output(in, listed), Businesses: []Business{}}
		for _, b := range list {
			state, err := v.BusinessState(b.ID)
			if err != nil {
				return err
			}
			out.Businesses = append(out.Businesses, show(b, state))
		}
		return nil
	})
	return out, err
}

// ByBusiness names a business.
type ByBusiness struct {
	ID cloud.BusinessID `path:"business_id"`
}

// BusinessOutput shows a business.
type BusinessOutput struct {
	Result   bool     `json:"result"`
	Business Business `json:"business"`
}

// Find shows a business. Error: BUSINESS_NOT_FOUND.
func (s *Service) Find(ctx context.Context, _ cloud.Caller, in ByBusiness) (out BusinessOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := found(v, in.ID)
		if err != nil {
			return err
		}
		state, err := v.BusinessState(b.ID)
		out = BusinessOutput{err == nil, show(b, state)}
		return err
	})
	return out, err
}

// CreateInput makes a business and invites its first administrator.
type CreateInput struct {
	Code     string `json:"code" required:"true" max:"32" doc:"Unique in the deployment: 1 to 32 of a-z, 0-9 and -"`
	Name     string `json:"name" required:"true" max:"120"`
	Timezone string `json:"timezone" required:"true" max:"64" doc:"IANA name, such as America/Toronto"`
	Email    string `json:"administrator_email" required:"true" max:"256"`
	Person   string `json:"administrator_name" required:"true" max:"120"`
	Limits   Limits `json:"limits"`
}

// CreateOutput shows a new business with the link for its first administrator.
type CreateOutput struct {
	Result    bool     `json:"result"`
	Business  Business `json:"business"`
	Mailed    bool     `json:"mailed" doc:"The link goes to the administrator by mail. false where the deployment has no mail server"`
	Link      string   `json:"invitation_link" doc:"For the administrator, good for 7 days. It is in this answer and nowhere else; empty when it goes by mail"`
	ExpiresAt *string  `json:"invitation_expires_at"`
}

var codeForm = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

const invitationLife = 7 * 24 * time.Hour

func (in *CreateInput) check() error {
	f := check.Fields{}
	if !codeForm.MatchString(in.Code) {
		f.Add("code", "Use 1 to 32 of a-z, 0-9 and -, such as harbour-lockers.")
	}
	in.Email = strings.ToLower(strings.TrimSpace(in.Email))
	if name, host, ok := strings.Cut(in.Email, "@"); !ok || name == "" || !strings.Contains(host, ".") || strings.ContainsAny(in.Email, " \t\r\n<>,;") {
		f.Add("administrator_email", "Use an email address, such as jane@example.com.")
	}
	timezone(f, in.Timezone)
	return f.Err()
}

func timezone(f check.Fields, name string) {
	if _, err := time.LoadLocation(name); err != nil || name == "" || name == "Local" {
		f.Add("timezone", "Use an IANA time zone, such as America/Toronto.")
	}
}

// Create makes a business and the invitation of its first administrator. Where there is
// a mail server the link goes to that person and not into the answer: who has it could
// be an administrator without a pass. Error: VALIDATION_FAILED.
func (s *Service) Create(ctx context.Context, c cloud.Caller, in CreateInput) (out CreateOutput, err error) {
	if err := in.check(); err != nil {
		return out, err
	}
	now, token := moment(), auth.NewToken()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		if _, err := v.BusinessByCode(in.Code); !errors.Is(err, cloud.ErrNotFound) {
			return nil, codeTaken(err)
		}
		id, err := v.NewID(cloud.BusinessIDs)
		if err != nil {
			return nil, err
		}
		invitation, err := v.NewID(cloud.InvitationIDs)
		if err != nil {
			return nil, err
		}
		b := cloud.Business{ID: cloud.BusinessID(id), Code: in.Code, Name: in.Name, Timezone: in.Timezone, SupportEmail: in.Email}
		state := cloud.BusinessState{BusinessID: b.ID, Limits: in.Limits.stored()}
		i := cloud.Invitation{ID: cloud.InvitationID(invitation), BusinessID: b.ID, Hash: auth.Hash(token), Email: in.Email, Name: in.Person, Type: cloud.ClientAdmin, InvitedBy: c.Account.ID,
			CreatedAt: now, ExpiresAt: now.Add(invitationLife)}
		ch := &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}, RowChanges: cloud.RowChanges{Rows: []cloud.Row{i}},
			PlatformChanges: cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{state}}, AuditChanges: cloud.AuditChanges{Audits: lines(c, b.ID, now, "business_created", target("business", id))}}
		out = CreateOutput{Result: true, Business: show(b, state), ExpiresAt: cloud.Stamp(i.ExpiresAt, time.UTC), Mailed: s.cfg.MailBase != ""}
		link := s.cfg.InvitationPath + "?" + url.Values{"key": {token}}.Encode()
		if !out.Mailed {
			out.Link = c.ForOthers().BaseURL + link
			return ch, nil
		}
		ch.Notifications = []cloud.Notification{{ID: auth.NewToken()[:24], BusinessID: b.ID, Channel: cloud.ByEmail, Kind: cloud.NotifyInvitation, At: now, Until: i.ExpiresAt,
			NotificationText: cloud.NotificationText{To: i.Email, Language: b.Settings.Locale(), Name: i.Name, Business: b.Name, Link: s.cfg.MailBase + link}}}
		return ch, nil
	})
	if errors.Is(err, cloud.ErrExists) {
		err = codeTaken(nil)
	}
	return out, err
}

func codeTaken(err error) error {
	if err != nil {
		return err
	}
	f := check.Fields{}
	f.Add("code", "A business with this code exists.")
	return f.Err()
}

// EditInput changes a business; members that are left out stay.
type EditInput struct {
	ID           cloud.BusinessID `path:"business_id" json:"-"`
	Name         *string          `json:"name" max:"120"`
	Timezone     *string          `json:"timezone" max:"64"`
	SupportPhone *string          `json:"support_phone" max:"64"`
	SupportEmail *string          `json:"support_email" max:"256"`
	Limits       *Limits          `json:"limits" doc:"All of them; 0 is no bound"`
}

// Edit changes a business's name, time zone, contacts and limits. Errors:
// BUSINESS_NOT_FOUND, VALIDATION_FAILED.
func (s *Service) Edit(ctx context.Context, c cloud.Caller, in EditInput) (out BusinessOutput, err error) {
	f := check.Fields{}
	if in.Name != nil && strings.TrimSpace(*in.Name) == "" {
		f.Say("name", check.MessageRequired)
	}
	if in.Timezone != nil {
		timezone(f, *in.Timezone)
	}
	if err := f.Err(); err != nil {
		return out, err
	}
	now := moment()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := found(v, in.ID)
		if err != nil {
			return nil, err
		}
		state, err := v.BusinessState(b.ID)
		if err != nil {
			return nil, err
		}
		for _, x := range []struct {
			to   *string
			from *string
		}{{&b.Name, in.Name}, {&b.Timezone, in.Timezone}, {&b.SupportPhone, in.SupportPhone}, {&b.SupportEmail, in.SupportEmail}} {
			if x.from != nil {
				*x.to = *x.from
			}
		}
		if in.Limits != nil {
			state.Limits = in.Limits.stored()
		}
		out = BusinessOutput{true, show(b, state)}
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}, PlatformChanges: cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{state}},
			AuditChanges: cloud.AuditChanges{Audits: lines(c, b.ID, now, "business_changed", target("business", int64(b.ID)))}}, nil
	})
	return out, err
}

// SuspendInput suspends a business.
type SuspendInput struct {
	ID     cloud.BusinessID `path:"business_id" json:"-"`
	Reason string           `json:"reason" required:"true" max:"255" doc:"The business's people and partners read it"`
}

// Suspend keeps everybody of a business out at once, and its webhooks back. Its
// cabinets go on: parcels inside can be collected. Errors: BUSINESS_NOT_FOUND,
// BUSINESS_SUSPENDED, VALIDATION_FAILED.
func (s *Service) Suspend(ctx context.Context, c cloud.Caller, in SuspendInput) (out BusinessOutput, err error) {
	if err := blank(in.Reason); err != nil {
		return out, err
	}
	return s.change(ctx, c, in.ID, "business_suspended", func(_ cloud.View, state *cloud.BusinessState, now time.Time) error {
		if state.Suspended() {
			return cloud.E(cloud.Conflict, "BUSINESS_SUSPENDED")
		}
		state.SuspendedAt, state.Reason, state.By = now, in.Reason, c.Account.ID
		return nil
	})
}

// Resume ends a suspension. Webhook deliveries that waited are sent within minutes. Errors:
// BUSINESS_NOT_FOUND, BUSINESS_NOT_SUSPENDED, BUSINESS_REMOVAL_RUNNING.
func (s *Service) Resume(ctx context.Context, c cloud.Caller, in ByBusiness) (BusinessOutput, error) {
	return s.change(ctx, c, in.ID, "business_resumed", func(v cloud.View, state *cloud.BusinessState, _ time.Time) error {
		if !state.Suspended() {
			return cloud.E(cloud.Conflict, "BUSINESS_NOT_SUSPENDED")
		}
		jobs, err := v.BusinessJobs(in.ID, cloud.RemovalJob, 1)
		if err != nil {
			return err
		}
		if len(jobs) > 0 && jobs[0].FinishedAt.IsZero() { // its people would be let into what is half gone
			return cloud.E(cloud.Conflict, "BUSINESS_REMOVAL_RUNNING")
		}
		state.SuspendedAt, state.Reason, state.By = time.Time{}, "", 0
		return nil
	})
}

func (s *Service) change(ctx context.Context, c cloud.Caller, id cloud.BusinessID, action string, edit func(cloud.View, *cloud.BusinessState, time.Time) error) (out BusinessOutput, err error) {
	now := moment()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := found(v, id)
		if err != nil {
			return nil, err
		}
		state, err := v.BusinessState(b.ID)
		if err != nil {
			return nil, err
		}
		before := state.Suspended()
		if err := edit(v, &state, now); err != nil {
			return nil, err
		}
		var staff []cloud.StaffRota // staff codes end with a suspension, and are drawn after it
		if state.Suspended() != before {
			switch _, err := v.StaffRota(b.ID); {
			case err == nil:
				staff = []cloud.StaffRota{{BusinessID: b.ID, NextAt: now}}
			case !errors.Is(err, cloud.ErrNotFound):
				return nil, err
			}
		}
		out = BusinessOutput{true, show(b, state)}
		// The business's row is written too, so that two operators meet there.
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}, LockerChanges: cloud.LockerChanges{StaffRotas: staff}, PlatformChanges: cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{state}},
			AuditChanges: cloud.AuditChanges{Audits: lines(c, b.ID, now, action, target("business", int64(b.ID)))}}, nil
	})
	return out, err
}
