package platform

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
)

// Pass is one as operators and the business see it.
type Pass struct {
	PassID     cloud.PassID     `json:"pass_id"`
	BusinessID cloud.BusinessID `json:"business_id"`
	Operator   string           `json:"operator" doc:"Name and email when the pass was opened"`
	AccountID  cloud.AccountID  `json:"account_id" doc:"Of the operator, as audit lines name it"`
	Reason     string           `json:"reason"`
	Status     string           `json:"status" doc:"active, ended or expired"`
	CreatedAt  *string          `json:"created_at"`
	ExpiresAt  *string          `json:"expires_at"`
	EndedAt    *string          `json:"ended_at"`
}

func showPass(p cloud.PlatformPass, now time.Time, l *time.Location) Pass {
	return Pass{PassID: p.ID, BusinessID: p.BusinessID, Operator: p.Operator, AccountID: p.AccountID, Reason: p.Reason, Status: p.Status(now), CreatedAt: cloud.Stamp(p.CreatedAt, l), ExpiresAt: cloud.Stamp(p.ExpiresAt, l), EndedAt: cloud.Stamp(p.EndedAt, l)}
}

// OpenPassInput asks for a pass into a business.
type OpenPassInput struct {
	ID     cloud.BusinessID `path:"business_id" json:"-"`
	Reason string           `json:"reason" required:"true" max:"255" doc:"The business's administrators read it"`
	Hours  int              `json:"hours" required:"true" min:"1" max:"4"`
}

// OpenPassOutput shows a pass with its token, once.
type OpenPassOutput struct {
	Result bool   `json:"result"`
	Pass   Pass   `json:"pass"`
	Token  string `json:"token" doc:"Bearer token inside the business, as an administrator. It is in this answer and nowhere else"`
}

// OpenPass lets the operator into a business for some hours. Errors:
// BUSINESS_NOT_FOUND, VALIDATION_FAILED.
func (s *Service) OpenPass(ctx context.Context, c cloud.Caller, in OpenPassInput) (out OpenPassOutput, err error) {
	if err := blank(in.Reason); err != nil {
		return out, err
	}
	now, token := moment(), auth.NewToken()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := found(v, in.ID)
		if err != nil {
			return nil, err
		}
		id, err := v.NewID(cloud.PassIDs)
		if err != nil {
			return nil, err
		}
		p := cloud.PlatformPass{ID: cloud.PassID(id), BusinessID: b.ID, AccountID: c.Account.ID, Operator: strings.TrimSpace(c.Account.Name + " (" + c.Account.Email + ")"), Reason: in.Reason,
			TokenHash: auth.Hash(token), CreatedAt: now, ExpiresAt: now.Add(time.Duration(in.Hours) * time.Hour)}
		t := cloud.Token{Hash: p.TokenHash, AccountID: c.Account.ID, Name: "pass " + target("pass", id), CreatedAt: now, ExpiresAt: p.ExpiresAt, Kind: cloud.PassToken}
		out = OpenPassOutput{true, showPass(p, now, time.UTC), token}
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{t}}, RowChanges: cloud.RowChanges{Rows: []cloud.Row{p}},
			AuditChanges: cloud.AuditChanges{Audits: lines(c, b.ID, now, "platform_pass_opened", target("pass", id))}}, nil
	})
	return out, err
}

// PassesInput asks for a part of the passes into a business.
type PassesInput struct {
	PageInput
	ID cloud.BusinessID `path:"business_id"`
}

// PassesOutput lists passes.
type PassesOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Passes []Pass `json:"passes"`
}

// ListPasses lists the passes into a business, newest first. Error:
// BUSINESS_NOT_FOUND.
func (s *Service) ListPasses(ctx context.Context, _ cloud.Caller, in PassesInput) (PassesOutput, error) {
	return s.passes(ctx, in.ID, in.PageInput, in)
}

// ListOwnPasses lists the passes into the caller's business, newest first.
func (s *Service) ListOwnPasses(ctx context.Context, c cloud.Caller, in PageInput) (PassesOutput, error) {
	return s.passes(ctx, c.Account.BusinessID, in, in)
}

func (s *Service) passes(ctx context.Context, id cloud.BusinessID, k PageInput, in any) (out PassesOutput, err error) {
	page, err := k.Part(in, "-id")
	if err != nil {
		return out, err
	}
	now := moment()
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := found(v, id)
		if err != nil {
			return err
		}
		list, listed, err := cloud.List(v, cloud.PlatformPass{BusinessID: b.ID}, page)
		out = PassesOutput{Result: err == nil, PageOutput: k.Output(in, listed), Passes: []Pass{}}
		for _, p := range list {
			out.Passes = append(out.Passes, showPass(p, now, b.Location()))
		}
		return err
	})
	return out, err
}

// ByPass names a pass.
type ByPass struct {
	ID cloud.PassID `path:"pass_id"`
}

// PassOutput shows a pass.
type PassOutput struct {
	Result bool `json:"result"`
	Pass   Pass `json:"pass"`
}

// EndPass ends a pass of the caller's, at once: an operator's own, or one into an
// administrator's business. Errors: PASS_NOT_FOUND, PASS_ENDED.
func (s *Service) EndPass(ctx context.Context, c cloud.Caller, in ByPass) (out PassOutput, err error) {
	now := moment()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		p, err := cloud.Find(v, cloud.PlatformPass{ID: in.ID})
		own := p.AccountID == c.Account.ID && c.Account.Type == cloud.PlatformAdmin || p.BusinessID == c.Account.BusinessID && c.Account.BusinessID != 0
		switch {
		case errors.Is(err, cloud.ErrNotFound), err == nil && !own:
			return nil, cloud.E(cloud.NotFound, "PASS_NOT_FOUND")
		case err != nil:
			return nil, err
		case !p.Live(now):
			return nil, cloud.E(cloud.Conflict, "PASS_ENDED")
		}
		p.EndedAt, p.EndedBy = now, c.Account.ID
		waiting, err := askedBy(v, p, now)
		if err != nil {
			return nil, err
		}
		out = PassOutput{true, showPass(p, now, time.UTC)}
		return &cloud.Changes{ApprovalChanges: cloud.ApprovalChanges{Approvals: waiting}, RowChanges: cloud.RowChanges{Rows: []cloud.Row{p}}, AuditChanges: cloud.AuditChanges{Audits: lines(c, p.BusinessID, now, "platform_pass_ended", target("pass", int64(p.ID)))}}, nil
	})
	return out, err
}

// maxWaiting is how many calls of one operator are looked at; fewer may wait.
const maxWaiting = 200

// askedBy are the calls that an operator asked the business's people for by a pass, as
// they expire with it. One that was approved may be running and stays.
func askedBy(v cloud.View, p cloud.PlatformPass, now time.Time) (out []cloud.Approval, err error) {
	list, _, err := v.Approvals(cloud.ApprovalFilter{BusinessID: p.BusinessID, Status: cloud.ApprovalPending, Now: now, RequestedBy: p.AccountID, Page: cloud.Page{Sort: "requested_at", Limit: maxWaiting}})
	for _, a := range list {
		if a.Pass() == p.ID && !a.Claimed() {
			a.ExpiresAt = now
			out = append(out, a)
		}
	}
	return out, err
}
