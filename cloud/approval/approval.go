// Package approval holds the rules of writes that agents propose and people
// decide about: who may propose, see, approve and reject, until when, and what
// is kept of what came of it.
//
//	            Propose            Reject
//	(nothing) ───────────▶ pending ──────▶ rejected
//	                        │    ▲
//	                claim   ▼    │ put back: nothing was done
//	                pending, claimed
//	                        │ Config.Run
//	                        ▼
//	               executed, or failed when the tool refused
//
// Approving is two transactions with the call between them. The first claims
// the approval, so that of several reviewers on several nodes one runs it. When
// the process ends before the second, the claim stands; once it is two minutes
// old the approval may be approved again, and Config.Run, which does a call at
// most once, gives what came of it the first time. Until then it is not certain
// that it was not done, so a claimed approval neither expires nor is rejected.
//
// An approval is held to what was shown: Approve compares the digest of what the
// reviewer saw with what a dry run says now, and the transactions of the call
// write nothing else.
//
// Nothing marks approvals as expired: the reader of one without a decision
// about in time says so. Everything is bound to the caller's business. Safe for
// concurrent use.
package approval

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Store is what this package needs of the database.
type Store interface {
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	Look(ctx context.Context, fn func(cloud.View) error) error
}

// Config is what New needs.
type Config struct {
	Store Store
	// Run does an approved call now, as its requester (Approval.RequestedBy) with
	// the reviewer in the audit, and nothing but what Approval.Marks stand for:
	// anything else is the error APPROVAL_CHANGED. It does a call at most once for
	// one approval: it may be asked again for one whose first run was cut off, and
	// then gives the first answer again. A refusal of the tool is a *cloud.Error;
	// with any other error, and those that ask to come again, nothing was done,
	// unless the context is over. nil: nothing can run.
	Run func(ctx context.Context, reviewer cloud.Caller, a cloud.Approval) (json.RawMessage, error)
	// Foresee says what Run would do now. A *cloud.Error says why that is nothing.
	// nil: nothing can run.
	Foresee func(ctx context.Context, reviewer cloud.Caller, a cloud.Approval) (Foresight, error)
	// Holds reports whether a caller has all of some scopes.
	Holds func(c cloud.Caller, scopes []string) bool
	// DigestKey is the deployment's key of digests of previews (cloud.Marks).
	DigestKey []byte
	// Message says a public code in words.
	Message func(lang, code string, args ...any) string
}

// Foresight is what a dry run says.
type Foresight struct {
	Preview json.RawMessage // as people are shown it
	Marks   cloud.Marks     // of its effects
	Refused bool            // the call would be refused, as Preview says
}

// Service is the feature.
type Service struct {
	cfg      Config
	store    Store
	now      func() time.Time
	patience time.Duration // with one call
}

// New builds the service; it starts nothing.
func New(cfg Config) *Service {
	return &Service{cfg: cfg, store: cfg.Store, now: time.Now, patience: runTime}
}

// Error codes of this package.
const (
	codeUnknown     = "APPROVAL_NOT_FOUND"
	codeDecided     = "APPROVAL_ALREADY_DECIDED"
	codeExpired     = "APPROVAL_EXPIRED"
	codeChanged     = "APPROVAL_CHANGED"
	codeTooMany     = "TOO_MANY_APPROVALS"
	codeSelf        = "SELF_APPROVAL_NOT_ALLOWED"
	codeRequester   = "REQUESTER_NOT_ALLOWED"
	codeForbidden   = "FORBIDDEN"
	codeType        = "ACCOUNT_TYPE_NOT_ALLOWED"
	codeAnonymous   = "UNAUTHENTICATED"
	codeInvalid     = "VALIDATION_FAILED"
	codeUnavailable = "MODULE_UNAVAILABLE"
)

// Scopes of readers and of reviewers.
const (
	ReadScope  = "approvals:read"
	WriteScope = "approvals:write"
)

// Times.
const (
	defaultHours = 72
	maxHours     = 168
	claimLife    = 2 * time.Minute  // after which a claim without an end may be taken over
	runTime      = time.Minute      // of one call
	dryTime      = 5 * time.Second  // of one preview
	keeping      = 10 * time.Second // of what is written when a call is over
)

func (s *Service) digest(m cloud.Marks) string { return m.Digest(s.cfg.DigestKey) }

// time is now as it is stored.
func (s *Service) time() time.Time { return s.now().UTC().Truncate(time.Millisecond) }

// letters are those of a ULID; their order is that of what they stand for.
var letters = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

var wellFormed = regexp.MustCompile(`^apr_[0-9A-HJKMNP-TV-Z]{26}$`)

// newID is the time in milliseconds and ten random bytes.
func newID(now time.Time) cloud.ApprovalID {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // never fails
	return cloud.ApprovalID("apr_" + letters.EncodeToString(b[:]))
}

// may refuses every account but staff with a scope.
func (s *Service) may(c cloud.Caller, scope string) error {
	switch c.Account.Type {
	case cloud.ClientAdmin, cloud.ClientEmployee:
		return s.holds(c, scope)
	}
	if c.Anonymous() {
		return cloud.E(cloud.Unauthenticated, codeAnonymous)
	}
	return cloud.E(cloud.Forbidden, codeType)
}

// holds names the first of some scopes that the caller does not have.
func (s *Service) holds(c cloud.Caller, scopes ...string) error {
	for _, scope := range scopes {
		if !s.cfg.Holds(c, []string{scope}) {
			return &cloud.Error{Kind: cloud.Forbidden, Code: codeForbidden, Details: map[string]any{"scope": scope}}
		}
	}
	return nil
}

// find finds an approval of the caller's business.
func find(v cloud.View, c cloud.Caller, id cloud.ApprovalID) (cloud.Approval, error) {
	if !wellFormed.MatchString(string(id)) {
		return cloud.Approval{}, cloud.E(cloud.NotFound, codeUnknown)
	}
	a, err := v.Approval(c.Account.BusinessID, id)
	if errors.Is(err, cloud.ErrNotFound) {
		err = cloud.E(cloud.NotFound, codeUnknown)
	}
	return a, err
}

// open refuses an approval that is decided or expired. One that was claimed
// long ago is open to reviewers.
func open(a cloud.Approval, approving bool, now time.Time) error {
	switch {
	case a.StatusAt(now) == cloud.ApprovalExpired:
		return cloud.E(cloud.Conflict, codeExpired)
	case a.Status != cloud.ApprovalPending, a.Claimed() && (!approving || now.Sub(a.ReviewedAt) < claimLife):
		return &cloud.Error{Kind: cloud.Conflict, Code: codeDecided, Details: map[string]any{"status": a.Status}}
	}
	return nil
}

// pageSurface is that of people at a page: there is a login behind it, never a
// key or a program.
const pageSurface = "web"

// approver refuses who may not approve this: without the scopes of the tool, or
// about a request of the caller's own where the business does not allow it. A
// key that asks first asks its own user, too, who could do the same without it.
func (s *Service) approver(v cloud.View, c cloud.Caller, a cloud.Approval) error {
	if err := s.holds(c, a.Scopes...); err != nil {
		return err
	}
	if c.Account.ID != a.RequestedBy || a.OwnerDecides && c.Surface == pageSurface {
		return nil
	}
	b, err := v.Business(a.BusinessID)
	if err == nil && !b.Settings.SelfApproval {
		err = cloud.E(cloud.Forbidden, codeSelf)
	}
	return err
}

// requester refuses a call whose requester is not there any more as when the call was
// asked for, and a call that a key or an agent asked for that was revoked.
func requester(v cloud.View, a cloud.Approval) error {
	r, err := a.Requester(v, time.Now())
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return err
	}
	gone := err != nil || !r.Enabled || r.BusinessID != a.BusinessID || r.Type != a.RequesterType
	if !gone {
		if gone, err = revoked(v, a); err != nil {
			return err
		}
	}
	if gone {
		return cloud.E(cloud.Forbidden, codeRequester)
	}
	return nil
}

// revoked reports whether the key or the agent's access that asked was revoked. A
// login may end.
func revoked(v cloud.View, a cloud.Approval) (bool, error) {
	tokens, err := v.Tokens(a.RequestedBy)
	if err != nil {
		return false, err
	}
	grants, err := v.OAuthGrants(a.RequestedBy)
	return slices.ContainsFunc(tokens, func(t cloud.Token) bool {
		return !t.Login() && t.Grant == 0 && t.Source() == a.Token && !t.RevokedAt.IsZero()
	}) || slices.ContainsFunc(grants, func(g cloud.OAuthGrant) bool {
		return cloud.Token{Grant: g.ID}.Source() == a.Token && !g.EndedAt.IsZero()
	}), err
}

func name(a cloud.Account) string { return cmp.Or(a.Name, a.Email) }

func audit(c cloud.Caller, a cloud.Approval, now time.Time, action, code string) []cloud.Audit {
	detail := map[string]any{"approval_id": a.ID, "tool": a.Tool, "server": a.Server, "requested_by": a.RequestedBy}
	if code != "" {
		detail["error_code"] = code
	}
	if c.Pass != 0 {
		detail["pass_id"] = int64(c.Pass)
	}
	raw, err := json.Marshal(detail)
	if err != nil {
		panic(fmt.Sprintf("approval: encode audit line: %v", err)) // of texts and numbers
	}
	return []cloud.Audit{{BusinessID: a.BusinessID, At: now, Actor: c.Account.ID.Actor(), Action: "approval." + action,
		Target: "approval:" + string(a.ID), Detail: string(raw)}}
}
