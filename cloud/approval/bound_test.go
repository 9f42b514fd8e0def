package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// propose keeps the call of an order and gives its id.
func (w *world) propose(t *testing.T, by cloud.AccountID, order int) cloud.ApprovalID {
	t.Helper()
	in := cancelOrder
	in.Arguments = json.RawMessage(fmt.Sprintf(`{"order_id":%d}`, order))
	out, err := w.s[0].Propose(t.Context(), people[by], in)
	require.NoError(t, err)
	return out.Approval.ApprovalID
}

func (w *world) approval(t *testing.T, id cloud.ApprovalID) (a cloud.Approval) {
	t.Helper()
	require.NoError(t, w.db.Look(t.Context(), func(v cloud.View) (err error) {
		a, err = v.Approval(1, id)
		return err
	}))
	return a
}

// A call runs as its requester, so it must not run once that account is anything
// else than when it asked: a broker's request does not become an employee's.
func TestARequesterWhoChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(a *cloud.Account){
		"type":     func(a *cloud.Account) { a.Type = cloud.ClientEmployee },
		"business": func(a *cloud.Account) { a.BusinessID = 2 },
		"disabled": func(a *cloud.Account) { a.Enabled = false },
	} {
		w := newWorld(t, storetest.OpenSQLite(t))
		id := w.propose(t, 5, 1)
		a := people[5].Account
		change(&a)
		w.write(t, &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}})
		r, err := w.s[0].Review(t.Context(), people[2], ByApproval{id})
		require.NoError(t, err)
		require.Equal(t, "REQUESTER_NOT_ALLOWED", code(r.FreshError), name)
		require.Nil(t, r.Fresh, name)
		out, err := w.s[0].Approve(t.Context(), people[2], ApproveInput{ID: id})
		require.NoError(t, err, name)
		require.Equal(t, []any{cloud.ApprovalFailed, "REQUESTER_NOT_ALLOWED"}, []any{out.Outcome, out.Approval.Error.Code}, name)
		require.Zero(t, w.tool.runs[id], "%s: nothing ran", name)
		require.Equal(t, cloud.ApprovalFailed, w.approval(t, id).Status)
	}
}

// What a key or an agent asked for is not run once it was revoked: it may have been
// in wrong hands. A login that has ended is no revocation.
func TestARequesterWhoseKeyWasRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	now := w.now
	w.write(t, &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{
		{Hash: [32]byte{1}, ID: 7, AccountID: 5, Name: "key", CreatedAt: now}, {Hash: [32]byte{2}, ID: 8, AccountID: 5, Name: "other", CreatedAt: now},
		{Hash: [32]byte{3}, AccountID: 5, Name: "login", CreatedAt: now, RevokedAt: now}}},
		OAuthChanges: cloud.OAuthChanges{OAuthGrants: []cloud.OAuthGrant{{ID: 12, AccountID: 5, CreatedAt: now, ExpiresAt: now.Add(time.Hour), Code: cloud.OAuthCode{ExpiresAt: now}}}}})
	ids := map[string]cloud.ApprovalID{}
	for i, token := range []string{"key/7", "key/8", "grant/12", "login", ""} {
		in := cancelOrder
		in.Token, in.Arguments = token, json.RawMessage(fmt.Sprintf(`{"order_id":%d}`, i+1))
		out, err := w.s[0].Propose(t.Context(), people[5], in)
		require.NoError(t, err)
		ids[token] = out.Approval.ApprovalID
	}
	w.write(t, &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: [32]byte{1}, ID: 7, AccountID: 5, Name: "key", CreatedAt: now, RevokedAt: now}}},
		OAuthChanges: cloud.OAuthChanges{OAuthEnds: []cloud.OAuthEnd{{ID: 12, At: now}}}})
	for token, id := range ids {
		out, err := w.s[0].Approve(t.Context(), people[2], ApproveInput{ID: id})
		require.NoError(t, err, token)
		if token == "key/7" || token == "grant/12" {
			require.Equal(t, []any{cloud.ApprovalFailed, "REQUESTER_NOT_ALLOWED"}, []any{out.Outcome, out.Approval.Error.Code}, token)
			require.Zero(t, w.tool.runs[id], token)
		} else {
			require.Equal(t, cloud.ApprovalExecuted, out.Outcome, token)
		}
	}
}

// Approvals that cannot be rejected stay as they are, each with its reason.
func TestManyAreRejectedTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	ctx := t.Context()
	executed, late, first, second := w.propose(t, 5, 1), w.propose(t, 5, 2), w.propose(t, 5, 3), w.propose(t, 1, 4)
	_, err := w.s[0].Approve(ctx, people[2], ApproveInput{ID: executed})
	require.NoError(t, err)
	overdue := w.approval(t, late)
	overdue.ExpiresAt = w.now
	w.write(t, &cloud.Changes{ApprovalChanges: cloud.ApprovalChanges{Approvals: []cloud.Approval{overdue}}})
	unknown := newID(w.now)
	in := RejectManyInput{IDs: []cloud.ApprovalID{second, executed, first, unknown, late, first}, Reason: "not these"}
	order := slices.Clone(in.IDs)
	for _, c := range []cloud.Caller{people[4], people[5], people[6], {}} {
		_, err := w.s[0].RejectMany(ctx, c, in)
		require.Error(t, err)
	}
	foreign, err := w.s[0].RejectMany(ctx, people[10], in)
	require.NoError(t, err)
	require.Empty(t, foreign.Rejected)
	out, err := w.s[0].RejectMany(ctx, people[2], in)
	require.NoError(t, err)
	require.Equal(t, order, in.IDs, "the caller's list stays as it is")
	require.ElementsMatch(t, []cloud.ApprovalID{first, second}, out.Rejected)
	require.ElementsMatch(t, []NotRejected{{executed, "APPROVAL_ALREADY_DECIDED"}, {unknown, "APPROVAL_NOT_FOUND"}, {late, "APPROVAL_EXPIRED"}}, out.NotRejected)
	require.Equal(t, cloud.ApprovalExecuted, w.approval(t, executed).Status)
	require.Equal(t, cloud.ApprovalPending, w.approval(t, late).Status)
	a := w.approval(t, first)
	require.Equal(t, []any{cloud.ApprovalRejected, cloud.AccountID(2), "Ben", "not these"}, []any{a.Status, a.ReviewedBy, a.ReviewerName, a.Note})
	one := w.propose(t, 5, 5)
	out, err = w.s[0].RejectMany(ctx, people[2], RejectManyInput{IDs: []cloud.ApprovalID{one}})
	require.NoError(t, err, "one is enough")
	require.Equal(t, []cloud.ApprovalID{one}, out.Rejected)
	for _, ids := range [][]cloud.ApprovalID{nil, slices.Repeat([]cloud.ApprovalID{one}, 51)} {
		in := RejectManyInput{IDs: ids}
		require.Equal(t, "VALIDATION_FAILED", code(check.Input(&in)))
	}
	_, err = w.s[0].RejectMany(ctx, people[2], RejectManyInput{IDs: slices.Repeat([]cloud.ApprovalID{one}, 50)})
	require.NoError(t, err)
}

func TestPagesOfApprovals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	ctx := t.Context()
	var ids []cloud.ApprovalID
	for i := range 3 {
		ids = append(ids, w.propose(t, 5, i))
		w.now = w.now.Add(time.Second)
	}
	pages := func(in ListInput) (out []cloud.ApprovalID) {
		list, err := w.s[0].List(ctx, people[2], in)
		require.NoError(t, err)
		require.Equal(t, 3, list.Total)
		for _, a := range list.Approvals {
			out = append(out, a.ApprovalID)
		}
		return out
	}
	require.Equal(t, []cloud.ApprovalID{ids[2], ids[1], ids[0]}, pages(ListInput{}))
	require.Equal(t, []cloud.ApprovalID{ids[0]}, pages(ListInput{Keyset: check.Keyset{Page: new(2), PerPage: new(2)}}))
	require.Empty(t, pages(ListInput{Keyset: check.Keyset{Page: new(10_000_000), PerPage: new(200)}}))
	list, err := w.s[0].List(ctx, people[2], ListInput{Tool: strings.Repeat("x", 64)})
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 20}, []int{list.Total, list.Page, list.PerPage})
	for _, in := range []ListInput{{Keyset: check.Keyset{Page: new(10_000_001)}}, {Keyset: check.Keyset{PerPage: new(201)}}, {Keyset: check.Keyset{PerPage: new(-1)}}, {Tool: strings.Repeat("x", 65)}} {
		require.Equal(t, "VALIDATION_FAILED", code(check.Input(&in)), "%+v", in)
	}
	waiting, err := w.s[0].Waiting(ctx, people[2], 2)
	require.NoError(t, err)
	require.Equal(t, []any{ids[0], 1, 2}, []any{waiting.Approvals[0].ApprovalID, waiting.Page, waiting.PerPage}, "the oldest first")
}

func TestSummariesAreCut(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{maxSummary - 1: strings.Repeat("ß", maxSummary-1), maxSummary: strings.Repeat("ß", maxSummary), maxSummary + 1: strings.Repeat("ß", maxSummary-1) + "…"} {
		require.Equal(t, want, oneLine(strings.Repeat("ß", n)), n)
	}
	require.Nil(t, withoutDetails(json.RawMessage(`{`)), "what cannot be read is not shown")
	require.Nil(t, withoutDetails(nil))
}

var errGone = errors.New("the database is gone")

// failingView is a view of which one part does not answer.
type failingView struct {
	cloud.View
	part string
}

func (v failingView) Account(id cloud.AccountID) (cloud.Account, error) {
	if v.part == "account" {
		return people[id].Account, errGone
	}
	return v.View.Account(id)
}

func (v failingView) Approvals(q cloud.ApprovalFilter) ([]cloud.Approval, cloud.Listed, error) {
	if v.part == "approvals" {
		return nil, cloud.Listed{}, errGone
	}
	return v.View.Approvals(q)
}

func (v failingView) Business(id cloud.BusinessID) (cloud.Business, error) {
	if v.part == "business" {
		return cloud.Business{}, errGone
	}
	return v.View.Business(id)
}

// failingStore gives such views.
type failingStore struct {
	Store
	part string
}

func (s failingStore) Look(ctx context.Context, fn func(cloud.View) error) error {
	return s.Store.Look(ctx, func(v cloud.View) error { return fn(failingView{v, s.part}) })
}

func (s failingStore) Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error {
	if d != 0 {
		return errors.New("an approval belongs to no device")
	}
	return s.Store.Decide(ctx, d, func(v cloud.View) (*cloud.Changes, error) { return fn(failingView{v, s.part}) })
}

// An error of ours is no answer about a requester or an approval.
func TestErrorsOfTheStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	ctx := t.Context()
	id := w.propose(t, 5, 1)
	for part, calls := range map[string][]func(s *Service) error{
		"account": {func(s *Service) error { _, err := s.Approve(ctx, people[2], ApproveInput{ID: id}); return err }},
		"approvals": {
			func(s *Service) error { _, err := s.Propose(ctx, people[5], cancelOrder); return err },
			func(s *Service) error { _, err := s.List(ctx, people[2], ListInput{}); return err },
		},
		"business": {
			func(s *Service) error { _, err := s.Review(ctx, people[2], ByApproval{id}); return err },
			func(s *Service) error { _, err := s.Find(ctx, people[2], ByApproval{id}); return err },
			func(s *Service) error { _, err := s.List(ctx, people[2], ListInput{}); return err },
			func(s *Service) error { _, err := s.Propose(ctx, people[5], cancelOrder); return err },
			func(s *Service) error { _, err := s.Reject(ctx, people[2], RejectInput{ID: id}); return err },
		},
	} {
		s := *w.s[0]
		s.store = failingStore{w.db, part}
		for i, call := range calls {
			require.ErrorIs(t, call(&s), errGone, "%s %d", part, i)
			require.Equal(t, cloud.ApprovalPending, w.approval(t, id).Status)
			require.False(t, w.approval(t, id).Claimed())
		}
	}
	s := *w.s[0]
	s.store = failingStore{w.db, ""}
	_, err := s.RejectMany(ctx, people[2], RejectManyInput{IDs: []cloud.ApprovalID{id}})
	require.NoError(t, err)
	id = w.propose(t, 5, 2)
	out, err := s.Approve(ctx, people[2], ApproveInput{ID: id})
	require.NoError(t, err)
	require.Equal(t, cloud.ApprovalExecuted, out.Outcome)
}

// A rule that changes between the dry run and the claim counts.
func TestARuleThatChangesDuringApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	w.business(t, true)
	id := w.propose(t, 1, 1)
	s := *w.s[0]
	s.cfg.Foresee = func(context.Context, cloud.Caller, cloud.Approval) (Foresight, error) {
		w.business(t, false)
		return Foresight{Preview: json.RawMessage(`{}`)}, nil
	}
	_, err := s.Approve(t.Context(), people[1], ApproveInput{ID: id})
	require.Equal(t, "SELF_APPROVAL_NOT_ALLOWED", code(err))
	require.Zero(t, w.tool.runs[id])
	require.False(t, w.approval(t, id).Claimed())
}

// What is decided is not tried again, so its answer is that it is decided.
func TestADecidedCallIsNotTried(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	id := w.propose(t, 5, 1)
	_, err := w.s[0].Approve(t.Context(), people[2], ApproveInput{ID: id})
	require.NoError(t, err)
	s := *w.s[0]
	s.cfg.Foresee = func(context.Context, cloud.Caller, cloud.Approval) (Foresight, error) {
		t.Error("a dry run of a call that is decided")
		return Foresight{}, nil
	}
	_, err = s.Approve(t.Context(), people[2], ApproveInput{ID: id})
	require.Equal(t, "APPROVAL_ALREADY_DECIDED", code(err))
}

func TestAFailureWithoutAnEncoding(t *testing.T) {
	t.Parallel()
	a := cloud.Approval{}
	fail(&a, &cloud.Error{Code: "ORDER_STATUS_CONFLICT", Details: map[string]any{"x": func() {}}, Fields: map[string][]string{"f": {"bad"}}})
	require.Equal(t, cloud.ApprovalFailed, a.Status)
	require.Contains(t, string(a.Error), "ORDER_STATUS_CONFLICT")
	require.Contains(t, string(a.Error), "bad")
}

func TestGroupsOfApprovals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	for i, by := range []cloud.AccountID{5, 1, 5, 5, 1} {
		w.propose(t, by, i)
		w.now = w.now.Add(time.Second)
	}
	list, err := w.s[0].Waiting(t.Context(), people[2], 10)
	require.NoError(t, err)
	groups := Groups(list.Approvals)
	require.Len(t, groups, 2)
	require.Equal(t, []int{3, 2}, []int{len(groups[0].Approvals), len(groups[1].Approvals)})
	require.Equal(t, []string{"Eve", "Ada"}, []string{groups[0].RequestedBy.Name, groups[1].RequestedBy.Name})
}

// The end of a call disturbs no claim but its own: neither another reviewer's nor
// a later one of the same reviewer.
func TestAnEndOfAnotherClaimIsNotWritten(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]func(a *cloud.Approval){
		"reviewer": func(a *cloud.Approval) { a.ReviewedBy = 1 },
		"moment":   func(a *cloud.Approval) { a.ReviewedAt = a.ReviewedAt.Add(-claimLife) },
	} {
		w := newWorld(t, storetest.OpenSQLite(t))
		stored := w.approval(t, w.propose(t, 5, 1))
		reviewed(&stored, people[2], "", w.now)
		w.write(t, &cloud.Changes{ApprovalChanges: cloud.ApprovalChanges{Approvals: []cloud.Approval{stored}}})
		a := stored
		other(&a)
		next := a
		next.Status = cloud.ApprovalExecuted
		_, err := w.s[0].finish(t.Context(), people[2], a, next, "executed", "")
		require.Equal(t, "APPROVAL_ALREADY_DECIDED", code(err), name)
		require.Equal(t, stored, w.approval(t, stored.ID), name)
	}
}
