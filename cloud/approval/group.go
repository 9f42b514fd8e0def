package approval

import (
	"context"
	"errors"
	"slices"

	"github.com/postern-io/postern/cloud"
)

// RejectManyInput says no to several.
type RejectManyInput struct {
	IDs    []cloud.ApprovalID `json:"approval_ids" required:"true" max:"50"`
	Reason string             `json:"reason" max:"500"`
}

// RejectManyOutput says what became of each.
type RejectManyOutput struct {
	Result      bool               `json:"result"`
	Rejected    []cloud.ApprovalID `json:"rejected"`
	NotRejected []NotRejected      `json:"not_rejected"`
}

// NotRejected is an approval that cannot be rejected.
type NotRejected struct {
	ID   cloud.ApprovalID `json:"approval_id"`
	Code string           `json:"code" doc:"As the error of rejecting it alone"`
}

// RejectMany ends approvals together, in one transaction; those that cannot be
// rejected stay as they are. Error: VALIDATION_FAILED.
func (s *Service) RejectMany(ctx context.Context, c cloud.Caller, in RejectManyInput) (out RejectManyOutput, err error) {
	if err := s.may(c, WriteScope); err != nil {
		return out, err
	}
	ids := slices.Clone(in.IDs)
	slices.Sort(ids) // one order, so that two such calls do not wait for each other
	ids = slices.Compact(ids)
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		now := s.time()
		out = RejectManyOutput{Result: true, Rejected: []cloud.ApprovalID{}, NotRejected: []NotRejected{}}
		ch := &cloud.Changes{}
		for _, id := range ids {
			a, err := find(v, c, id)
			if err == nil {
				err = open(a, false, now)
			}
			var refused *cloud.Error
			switch {
			case errors.As(err, &refused):
				out.NotRejected = append(out.NotRejected, NotRejected{id, refused.Code})
				continue
			case err != nil:
				return nil, err
			}
			a.Status = cloud.ApprovalRejected
			reviewed(&a, c, in.Reason, now)
			ch.Approvals, ch.Audits = append(ch.Approvals, a), append(ch.Audits, audit(c, a, now, "rejected", "")...)
			out.Rejected = append(out.Rejected, id)
		}
		ch.Answer = out
		return ch, nil
	})
	return out, err
}

// Group is the approvals of one requester, by one key, for one tool.
type Group struct {
	Tool, TokenName string
	RequestedBy     Requester
	Approvals       []Body // in the order of the list
}

// Groups puts approvals together that one requester asked for by one key with
// one tool, in the order of the first of each.
func Groups(list []Body) (out []Group) {
	for _, a := range list {
		name := ""
		if a.RequestedBy.TokenName != nil {
			name = *a.RequestedBy.TokenName
		}
		i := slices.IndexFunc(out, func(g Group) bool {
			return g.Tool == a.Tool && g.TokenName == name && g.RequestedBy.UserID == a.RequestedBy.UserID
		})
		if i < 0 {
			i, out = len(out), append(out, Group{Tool: a.Tool, TokenName: name, RequestedBy: a.RequestedBy})
		}
		out[i].Approvals = append(out[i].Approvals, a)
	}
	return out
}
