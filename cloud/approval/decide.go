package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// RejectInput says no.
type RejectInput struct {
	ID     cloud.ApprovalID `path:"approval_id" json:"-"`
	Reason string           `json:"reason" max:"500"`
}

// ApproveInput says yes to what was shown.
type ApproveInput struct {
	ID   cloud.ApprovalID `path:"approval_id" json:"-"`
	Note string           `json:"note" max:"500"`
	// Digest is that of the preview that the caller saw; empty: of the one that the
	// approval was made with.
	Digest string `json:"digest" max:"64" doc:"digest of the preview that was shown; that of the approval when absent"`
}

// Reject ends an approval; the call is never run. Its requester may. It
// does not ask for the scopes of the tool: nothing comes of it. Errors:
// APPROVAL_NOT_FOUND, APPROVAL_ALREADY_DECIDED, APPROVAL_EXPIRED,
// VALIDATION_FAILED.
func (s *Service) Reject(ctx context.Context, c cloud.Caller, in RejectInput) (out Output, err error) {
	if err := s.may(c, WriteScope); err != nil {
		return out, err
	}
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		a, err := find(v, c, in.ID)
		if err != nil {
			return nil, err
		}
		now := s.time()
		if err := open(a, false, now); err != nil {
			return nil, err
		}
		a.Status = cloud.ApprovalRejected
		reviewed(&a, c, in.Reason, now)
		if out, err = s.describe(v, c, a, now); err != nil {
			return nil, err
		}
		return &cloud.Changes{ApprovalChanges: cloud.ApprovalChanges{Approvals: []cloud.Approval{a}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, a, now, "rejected", "")}, Answer: out}, nil
	})
	return out, err
}

func reviewed(a *cloud.Approval, c cloud.Caller, note string, now time.Time) {
	a.ReviewedBy, a.ReviewerName, a.ReviewedAt, a.Note = c.Account.ID, name(c.Account), now, stripControl(note)
}

// Approve runs the call and shows what came of it: the approval is executed, or
// failed when the tool refused or the requester may not any more. When the call
// would do anything else than what the caller saw, nothing is done and the error
// APPROVAL_CHANGED has the new preview and its digest. An error of the tool that
// asks to come again, or one of ours, is given back and the approval waits as
// before. A run that is not over after a minute is neither: see the package.
// Errors: APPROVAL_NOT_FOUND, APPROVAL_ALREADY_DECIDED, APPROVAL_EXPIRED,
// APPROVAL_CHANGED, SELF_APPROVAL_NOT_ALLOWED, FORBIDDEN, MODULE_UNAVAILABLE,
// VALIDATION_FAILED.
func (s *Service) Approve(ctx context.Context, c cloud.Caller, in ApproveInput) (Output, error) {
	out, err := s.approve(ctx, c, in)
	if out.Outcome = cloud.ApprovalExecuted; err != nil {
		return Output{}, err
	} else if out.Approval.Status == cloud.ApprovalFailed {
		out.Outcome = cloud.ApprovalFailed
	}
	return out, nil
}

func (s *Service) approve(ctx context.Context, c cloud.Caller, in ApproveInput) (Output, error) {
	if err := s.may(c, WriteScope); err != nil {
		return Output{}, err
	}
	if s.cfg.Run == nil {
		return Output{}, cloud.E(cloud.Unavailable, codeUnavailable)
	}
	seen, err := s.same(ctx, c, in)
	if err != nil {
		return Output{}, err
	}
	before, a, out, err := s.claim(ctx, c, in, seen)
	if err != nil || !a.Claimed() {
		return out, err
	}
	// The caller that waits for the answer may leave; the call goes on.
	ctx = context.WithoutCancel(ctx)
	run, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	result, err := s.cfg.Run(run, c, a)
	end, stop := context.WithTimeout(ctx, keeping)
	defer stop()
	refused := refusal(err)
	switch {
	case codeOf(err) == codeChanged: // between the dry run and the call
		_, kept := s.finish(end, c, a, before, "put_back", codeChanged)
		f, _ := s.foresee(end, c, before)
		return Output{}, errors.Join(s.changed(f), kept)
	case err == nil:
		if a.Status = cloud.ApprovalExecuted; json.Valid(result) {
			a.Result = result
		}
		return s.finish(end, c, a, a, "executed", "")
	case refused != nil:
		fail(&a, refused)
		return s.finish(end, c, a, a, "failed", refused.Code)
	case run.Err() != nil: // it may have been done: only Run can tell
		return Output{}, &cloud.Error{Kind: cloud.Unavailable, Code: codeUnavailable, RetryAfter: int(claimLife / time.Second), Err: err}
	}
	if _, kept := s.finish(end, c, a, before, "put_back", codeOf(err)); kept != nil {
		err = errors.Join(err, kept)
	}
	return Output{}, err
}

// same refuses an approval of which a dry run now says anything else than what
// the caller saw, and gives what it says. It is nil where that is not known: a
// call that may have run is not tried, and one that would be refused, or whose
// requester may not any more, does nothing.
func (s *Service) same(ctx context.Context, c cloud.Caller, in ApproveInput) (*Foresight, error) {
	var a cloud.Approval
	skip := false
	err := s.store.Look(ctx, func(v cloud.View) (err error) {
		if a, err = find(v, c, in.ID); err == nil {
			err = s.approver(v, c, a)
		}
		if err == nil {
			err = open(a, true, s.time())
		}
		skip = err == nil && (a.Claimed() || requester(v, a) != nil)
		return err
	})
	if err != nil || skip || s.cfg.Foresee == nil {
		return nil, err
	}
	f, err := s.foresee(ctx, c, a)
	switch {
	case refusal(err) != nil, err == nil && f.Refused:
		return nil, nil
	case err != nil:
		return nil, err
	case s.digest(f.Marks) != cmp.Or(in.Digest, s.digest(a.Marks)):
		return nil, s.changed(f)
	}
	return &f, nil
}

// changed is the error of a call that would do something else than was shown.
func (s *Service) changed(f Foresight) error {
	e := &cloud.Error{Kind: cloud.Conflict, Code: codeChanged}
	if f.Preview != nil {
		e.Details = map[string]any{"digest": s.digest(f.Marks), "preview": f.Preview}
	}
	return e
}

// claim takes an approval for the caller, in one transaction, and gives it as it
// was and as it is: held to what was seen. One whose requester is gone is failed at once; one that was
// claimed before may have run as its requester while that was right, which only
// Run can tell.
func (s *Service) claim(ctx context.Context, c cloud.Caller, in ApproveInput, seen *Foresight) (before, a cloud.Approval, out Output, err error) {
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		if before, err = find(v, c, in.ID); err != nil {
			return nil, err
		}
		a = before
		if err := s.approver(v, c, a); err != nil {
			return nil, err
		}
		now := s.time()
		if err := open(a, true, now); err != nil {
			return nil, err
		}
		var refused *cloud.Error
		if !a.Claimed() {
			if err := requester(v, a); err != nil && !errors.As(err, &refused) {
				return nil, err
			}
		}
		reviewed(&a, c, in.Note, now)
		if seen != nil && !slices.Equal(seen.Marks, a.Marks) {
			a.Preview, a.Marks = seen.Preview, seen.Marks
		}
		lines := audit(c, a, now, "approved", "")
		if refused != nil {
			fail(&a, refused)
			lines = append(lines, audit(c, a, now, "failed", refused.Code)...)
		}
		if out, err = s.describe(v, c, a, now); err != nil {
			return nil, err
		}
		return &cloud.Changes{ApprovalChanges: cloud.ApprovalChanges{Approvals: []cloud.Approval{a}}, AuditChanges: cloud.AuditChanges{Audits: lines}, Answer: out, Unfinished: refused == nil}, nil
	})
	return before, a, out, err
}

// finish writes what comes after the claim a: its end, or what was before it,
// which may be an older claim. A person who took the claim over is not
// disturbed.
func (s *Service) finish(ctx context.Context, c cloud.Caller, a, next cloud.Approval, action, code string) (out Output, err error) {
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		stored, err := v.Approval(a.BusinessID, a.ID)
		if err != nil {
			return nil, err
		}
		now := s.time()
		if !stored.Claimed() || stored.ReviewedBy != a.ReviewedBy || !stored.ReviewedAt.Equal(a.ReviewedAt) {
			if stored.Status == cloud.ApprovalPending {
				return nil, open(stored, false, now)
			}
			out, err = s.describe(v, c, stored, now)
			return nil, err
		}
		if out, err = s.describe(v, c, next, now); err != nil {
			return nil, err
		}
		return &cloud.Changes{ApprovalChanges: cloud.ApprovalChanges{Approvals: []cloud.Approval{next}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, a, now, action, code)}, Answer: out}, nil
	})
	return out, err
}

// refusal is what a tool refused for good; nil for errors after which nothing
// was decided.
func refusal(err error) *cloud.Error {
	var e *cloud.Error
	if !errors.As(err, &e) || e.RetryAfter != 0 {
		return nil
	}
	switch e.Kind {
	case cloud.Internal, cloud.Limited, cloud.Unavailable, cloud.Timeout:
		return nil
	}
	return e
}

func codeOf(err error) string {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return "INTERNAL_ERROR"
}

func fail(a *cloud.Approval, e *cloud.Error) {
	raw, err := json.Marshal(failure{e.Code, e.Args, e.Details, e.Fields})
	if err != nil { // details that have no encoding are not needed to say what happened
		raw, _ = json.Marshal(failure{Code: e.Code, Fields: e.Fields})
	}
	a.Status, a.Error = cloud.ApprovalFailed, raw
}
