package approval

import (
	"context"
	"encoding/json"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

const (
	all                   = "all"
	byRequest, byDecision = "requested_at", "reviewed_at"
)

// ListInput asks for a page of approvals. Fields that are not given do not
// filter.
type ListInput struct {
	Status      string          `query:"status" json:"status" enum:"pending,executed,rejected,failed,expired,all" doc:"pending when absent"`
	Tool        string          `query:"tool" json:"tool" max:"64" line:"true"`
	RequestedBy cloud.AccountID `query:"requested_by" json:"requested_by"`
	check.Keyset
}

// ListOutput is a page of approvals.
type ListOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Approvals []Body `json:"approvals"`
}

func (in *ListInput) filter() (cloud.ApprovalFilter, error) {
	f := check.Fields{}
	if in.Status == "" {
		in.Status = cloud.ApprovalPending
	}
	if stripControl(in.Tool) != in.Tool {
		f.Say("tool", check.MessageControl)
	}
	q := cloud.ApprovalFilter{Status: in.Status, Tool: in.Tool, RequestedBy: in.RequestedBy}
	if q.Status == all {
		q.Status = ""
	}
	if err := f.Err(); err != nil {
		return q, err
	}
	var err error
	q.Page, err = in.Part(*in, "-"+byRequest)
	return q, err
}

// List shows a page of the business's approvals, newest first. Error:
// VALIDATION_FAILED.
func (s *Service) List(ctx context.Context, c cloud.Caller, in ListInput) (ListOutput, error) {
	q, err := in.filter()
	if err != nil {
		return ListOutput{}, err
	}
	out, listed, err := s.list(ctx, c, q)
	out.PageOutput = in.Output(in, listed)
	return out, err
}

// Waiting shows the approvals that wait for a decision, those that wait
// longest first.
func (s *Service) Waiting(ctx context.Context, c cloud.Caller, limit int) (ListOutput, error) {
	return s.first(ctx, c, cloud.ApprovalFilter{Status: cloud.ApprovalPending, Page: cloud.Page{Sort: byRequest, Limit: limit}})
}

// Decided shows the approvals that were decided about, the last ones first.
func (s *Service) Decided(ctx context.Context, c cloud.Caller, limit int) (ListOutput, error) {
	return s.first(ctx, c, cloud.ApprovalFilter{Decided: true, Page: cloud.Page{Sort: byDecision, Down: true, Limit: limit}})
}

// first is a list's first page, for callers that ask for no other.
func (s *Service) first(ctx context.Context, c cloud.Caller, q cloud.ApprovalFilter) (ListOutput, error) {
	out, listed, err := s.list(ctx, c, q)
	out.PageOutput = check.PageOutput{Total: listed.Total, Page: 1, PerPage: q.Page.Limit, LowerBound: listed.AtLeast}
	return out, err
}

func (s *Service) list(ctx context.Context, c cloud.Caller, q cloud.ApprovalFilter) (out ListOutput, listed cloud.Listed, err error) {
	if err := s.may(c, ReadScope); err != nil {
		return out, listed, err
	}
	now := s.time()
	q.BusinessID, q.Now = c.Account.BusinessID, now
	out = ListOutput{Result: true, Approvals: []Body{}}
	err = s.store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(q.BusinessID)
		if err != nil {
			return err
		}
		var found []cloud.Approval
		found, listed, err = v.Approvals(q)
		out.Approvals = out.Approvals[:0]
		for _, a := range found {
			out.Approvals = append(out.Approvals, s.show(c, a, b.Location(), now))
		}
		return err
	})
	return out, listed, err
}

// ByApproval names an approval.
type ByApproval struct {
	ID cloud.ApprovalID `path:"approval_id" json:"-"`
}

// Find shows an approval. Error: APPROVAL_NOT_FOUND.
func (s *Service) Find(ctx context.Context, c cloud.Caller, in ByApproval) (out Output, err error) {
	if err := s.may(c, ReadScope); err != nil {
		return out, err
	}
	return out, s.store.Look(ctx, func(v cloud.View) error {
		a, err := find(v, c, in.ID)
		if err == nil {
			out, err = s.describe(v, c, a, s.time())
		}
		return err
	})
}

// Review is what a reviewer needs to decide about an approval.
type Review struct {
	Approval Body
	// NotApprove and NotReject say why the caller cannot; nil: the caller can.
	NotApprove, NotReject error
	// Fresh is what a dry run says now, for reviewers; nil without
	// one, where FreshError says why.
	Fresh      json.RawMessage
	FreshError error
	// Digest is that of what is shown: of Fresh, else of the approval.
	Digest string
}

// Review shows an approval with what the caller can do about it and what it
// would do now. Error: APPROVAL_NOT_FOUND.
func (s *Service) Review(ctx context.Context, c cloud.Caller, in ByApproval) (r Review, err error) {
	if err := s.may(c, ReadScope); err != nil {
		return r, err
	}
	var a cloud.Approval
	var gone error
	err = s.store.Look(ctx, func(v cloud.View) (err error) {
		if a, err = find(v, c, in.ID); err != nil {
			return err
		}
		now := s.time()
		out, err := s.describe(v, c, a, now)
		if err != nil {
			return err
		}
		r.Approval, r.Digest = out.Approval, out.Approval.Digest
		if r.NotApprove, r.NotReject = s.may(c, WriteScope), s.may(c, WriteScope); r.NotApprove != nil {
			return nil
		}
		r.NotReject = open(a, false, now)
		if r.NotApprove = open(a, true, now); r.NotApprove == nil {
			r.NotApprove = s.approver(v, c, a)
		}
		if r.NotApprove == nil && !a.Claimed() {
			gone = requester(v, a)
		}
		return nil
	})
	if err != nil || r.NotApprove != nil || a.Claimed() { // what may have run is not tried
		return r, err
	}
	if r.FreshError = gone; gone == nil {
		var f Foresight
		if f, r.FreshError = s.foresee(ctx, c, a); r.FreshError == nil {
			r.Fresh, r.Digest = f.Preview, s.digest(f.Marks)
		}
	}
	return r, nil
}

// foresee is what a dry run says, masked.
func (s *Service) foresee(ctx context.Context, c cloud.Caller, a cloud.Approval) (Foresight, error) {
	if s.cfg.Foresee == nil {
		return Foresight{}, cloud.E(cloud.Unavailable, codeUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, dryTime)
	defer cancel()
	f, err := s.cfg.Foresee(ctx, c, a)
	f.Preview = Mask(f.Preview)
	return f, err
}
