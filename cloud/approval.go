package cloud

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// ApprovalID names an approval: apr_ and 26 characters, younger ones sort
// after older ones.
type ApprovalID string

// Approval is a write of an agent that waits for a person's word, or had it.
// Arguments, Preview, Result and Error are sealed at rest.
type Approval struct {
	ID         ApprovalID      `json:"ID"`
	BusinessID BusinessID      `json:"BusinessID"`
	Server     string          `json:"Server"` // operations, developer
	Tool       string          `json:"Tool"`
	Arguments  json.RawMessage `json:"Arguments"` // an object, as given but for confirm; masked where it is shown
	Summary    string          `json:"Summary"`   // one line for people
	Preview    json.RawMessage `json:"Preview"`   // what a dry run said when it was proposed; nil: nothing
	Marks      Marks           `json:"Marks"`     // of the effects in Preview: what may be done, and nothing else
	Reason     string          `json:"Reason"`    // the agent's words
	Risk       string          `json:"Risk"`      // medium, high
	Scopes     []string        `json:"Scopes"`    // that who approves needs
	Status     string          `json:"Status"`    // as it is stored: pending, executed, failed, rejected

	RequestedBy   AccountID   `json:"RequestedBy"`
	RequesterType AccountType `json:"RequesterType"`
	RequesterName string      `json:"RequesterName"`
	TokenName     string      `json:"TokenName"`
	Token         string      `json:"Token"` // which key or grant asked, as Token.Source says; "" in approvals of before
	// OwnerDecides says that a key asked whose policy asks a person first: the
	// requester's own user may decide at the page.
	OwnerDecides bool      `json:"OwnerDecides"`
	RequestedAt  time.Time `json:"RequestedAt"`
	ExpiresAt    time.Time `json:"ExpiresAt"`

	// ReviewedBy is set with the decision. While the status is pending
	// that is a claim: the call has been approved and may be running.
	ReviewedBy   AccountID       `json:"ReviewedBy"`
	ReviewerName string          `json:"ReviewerName"`
	ReviewedAt   time.Time       `json:"ReviewedAt"`
	Note         string          `json:"Note"`
	Result       json.RawMessage `json:"Result"` // of the tool, once executed
	Error        json.RawMessage `json:"Error"`  // code, args, details and fields of a failed one
}

// States of an approval.
const (
	ApprovalPending  = "pending"
	ApprovalExecuted = "executed"
	ApprovalFailed   = "failed" // approved, but the tool answered with an error
	ApprovalRejected = "rejected"
	ApprovalExpired  = "expired" // never stored: pending, undecided and too old
)

// ReadScopes are the scopes that let read what some scopes let change. Those
// without a read scope of their area stand for themselves.
func ReadScopes(scopes []string) []string {
	out := make([]string, len(scopes))
	for i, s := range scopes {
		if area, ok := strings.CutSuffix(s, ":write"); ok && area != "settings" {
			s = area + ":read"
		}
		out[i] = s
	}
	return out
}

const passSource = "pass/"

// PassSource is Approval.Token of a call that a pass asks for.
func PassSource(id PassID) string { return passSource + strconv.FormatInt(int64(id), 10) }

// Pass is that of the operator of the platform who asked, 0 for all others.
func (a Approval) Pass() PassID {
	text, ok := strings.CutPrefix(a.Token, passSource)
	if !ok {
		return 0
	}
	id, _ := strconv.ParseInt(text, 10, 64) // of ours
	return PassID(id)
}

// Requester is the account in whose name the approval is done: that of an operator of
// the platform is an administrator of the business while the pass lives. Error:
// ErrNotFound when there is none any more, or the pass has ended.
func (a Approval) Requester(v View, now time.Time) (Account, error) {
	r, err := v.Account(a.RequestedBy)
	if err != nil || a.Pass() == 0 {
		return r, err
	}
	p, err := Find(v, PlatformPass{ID: a.Pass()})
	if err != nil {
		return r, err
	}
	if !p.Live(now) || p.AccountID != r.ID || r.Type != PlatformAdmin {
		return r, ErrNotFound
	}
	r.BusinessID, r.Type = p.BusinessID, ClientAdmin
	return r, nil
}

// Claimed reports whether the approval was given and its outcome is not known
// yet.
func (a Approval) Claimed() bool { return a.Status == ApprovalPending && a.ReviewedBy != 0 }

// StatusAt is the status at a moment. An approval that was claimed in time does not
// expire: it may have run.
func (a Approval) StatusAt(now time.Time) string {
	if a.Status == ApprovalPending && !a.Claimed() && !now.Before(a.ExpiresAt) {
		return ApprovalExpired
	}
	return a.Status
}

// ApprovalFilter chooses approvals of a business. Zero fields choose all.
type ApprovalFilter struct {
	BusinessID  BusinessID
	Status      string    // as Approval.StatusAt says at Now
	Now         time.Time // needed with a status of pending or expired
	Decided     bool      // only executed, failed and rejected ones
	Tool        string
	RequestedBy AccountID
	Page        Page // sorts: id, requested_at, reviewed_at
}

// ApprovalView reads the present of approvals.
type ApprovalView interface {
	// Approval, in a decision on PostgreSQL, waits for others that decide about
	// the same approval.
	Approval(BusinessID, ApprovalID) (Approval, error)
	// Approvals lists a part of what a business has, and says how much there is.
	Approvals(ApprovalFilter) ([]Approval, Listed, error)
}

// ApprovalChanges are the changes of approvals.
type ApprovalChanges struct {
	Approvals []Approval
}

func (s *ApprovalChanges) preview(e *effectList) {
	previewEach(e, "Approvals", s.Approvals, func(a Approval) {
		old, err := e.view.Approval(a.BusinessID, a.ID)
		e.showMembers(Effect{Type: "approval", ID: a.ID, Name: string(a.ID), Before: old.members(), After: a.members()}, old, err)
	})
}

func (a Approval) members() map[string]any {
	return map[string]any{"tool": a.Tool, "status": a.Status, "summary": a.Summary, "review_note": OrNull(a.Note)}
}
