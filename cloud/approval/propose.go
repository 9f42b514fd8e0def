package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Bounds, of texts in characters.
const (
	maxOpen    = 20  // approvals of one key, grant or login that wait
	maxOfUser  = 100 // of one user by all keys together
	maxSummary = 300
	maxText    = 500 // of reasons
)

// ProposeInput is a call that waits for a person. Tool and arguments have been
// checked against the tool's schema, without confirm.
type ProposeInput struct {
	Server, Tool string
	Arguments    json.RawMessage // an object
	Summary      string          // one line for people; longer ones are cut
	Preview      json.RawMessage // what a dry run says now; nil: nothing
	Marks        cloud.Marks     // of the effects in Preview
	Reason       string          // the agent's words, at most 500 characters
	Risk         string          // medium, high
	Scopes       []string        // of the tool
	TokenName    string
	Token        string // as cloud.Approval
	OwnerDecides bool   // as cloud.Approval
	Hours        int    // until it expires, 1 to 168; 0: 72
}

// Propose keeps a call until a person decides about it. The caller needs the
// scope approvals:read, which the caller of this function has checked. The same
// call of the same key that waits already is shown instead. At most 20 of one key,
// grant or login wait, and at most 100 of one user. Errors: VALIDATION_FAILED,
// TOO_MANY_APPROVALS with details.per (key, user) and details.limit.
func (s *Service) Propose(ctx context.Context, c cloud.Caller, in ProposeInput) (out Output, err error) {
	if c.Anonymous() {
		return out, cloud.E(cloud.Unauthenticated, codeAnonymous)
	}
	if err := in.check(); err != nil {
		return out, err
	}
	now := s.time()
	a := cloud.Approval{ID: newID(now), BusinessID: c.Account.BusinessID, Server: in.Server, Tool: in.Tool, Arguments: bytes.Clone(in.Arguments), Summary: oneLine(in.Summary),
		Preview: bytes.Clone(in.Preview), Marks: in.Marks, Reason: stripControl(in.Reason), Risk: in.Risk, Scopes: in.Scopes, Status: cloud.ApprovalPending,
		RequestedBy: c.Account.ID, RequesterType: c.Account.Type, RequesterName: name(c.Account), TokenName: in.TokenName, Token: in.Token, OwnerDecides: in.OwnerDecides,
		RequestedAt: now, ExpiresAt: now.Add(time.Duration(in.Hours) * time.Hour)}
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		if c.Pass != 0 { // what its operator asks for ends with it
			p, err := cloud.Find(v, cloud.PlatformPass{ID: c.Pass})
			if err != nil {
				return nil, err
			}
			if !p.Live(now) {
				return nil, cloud.E(cloud.Unauthenticated, "TOKEN_INVALID")
			}
			a.ExpiresAt = now.Add(min(time.Duration(in.Hours)*time.Hour, p.ExpiresAt.Sub(now)))
		}
		waiting, listed, err := v.Approvals(cloud.ApprovalFilter{BusinessID: a.BusinessID, Status: cloud.ApprovalPending, Now: now, RequestedBy: a.RequestedBy, Page: cloud.Page{Sort: byRequest, Limit: maxOfUser}})
		if err != nil {
			return nil, err
		}
		own := 0
		for _, w := range waiting {
			if same(a, w) {
				out, err = s.describe(v, c, w, now)
				return nil, err
			}
			if w.Token == a.Token {
				own++
			}
		}
		switch {
		case own >= maxOpen:
			return nil, tooMany("key", maxOpen)
		case listed.Total >= maxOfUser:
			return nil, tooMany("user", maxOfUser)
		}
		if out, err = s.describe(v, c, a, now); err != nil {
			return nil, err
		}
		return &cloud.Changes{ApprovalChanges: cloud.ApprovalChanges{Approvals: []cloud.Approval{a}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, a, now, "proposed", "")}, Answer: out}, nil
	})
	return out, err
}

func tooMany(per string, limit int) error {
	return &cloud.Error{Kind: cloud.Limited, Code: codeTooMany, Args: []any{maxOpen, maxOfUser}, Details: map[string]any{"per": per, "limit": limit}}
}

// same reports whether two approvals are of the same call of the same key.
func same(a, b cloud.Approval) bool {
	return a.Server == b.Server && a.Tool == b.Tool && a.Token == b.Token && a.TokenName == b.TokenName && a.Reason == b.Reason && !b.Claimed() && bytes.Equal(a.Arguments, b.Arguments) && slices.Equal(a.Marks, b.Marks)
}

func (in *ProposeInput) check() error {
	if in.Hours == 0 {
		in.Hours = defaultHours
	}
	f := check.Fields{}
	if in.Hours < 1 || in.Hours > maxHours {
		f.Say("expires_in_hours", check.MessageBetween, "1", strconv.Itoa(maxHours))
	}
	if n := utf8.RuneCountInString(in.Reason); n > maxText { // what else it holds is left out when it is shown
		f.Say("reason", check.MessageLong, strconv.Itoa(maxText), strconv.Itoa(n))
	}
	if err := f.Err(); err != nil {
		return err
	}
	if in.Server == "" || in.Tool == "" || !isObject(in.Arguments) || len(in.Preview) > 0 && !json.Valid(in.Preview) {
		return fmt.Errorf("a call of %q on %q is proposed without its arguments as an object", in.Tool, in.Server)
	}
	return nil
}

func isObject(raw json.RawMessage) bool {
	return json.Valid(raw) && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{"))
}

// stripControl leaves out of a text what changes how the rest of it is read, or is not
// seen: control characters but for line ends, marks of direction and the like.
// Joiners are letters of some scripts.
func stripControl(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\u200c', r == '\u200d':
			return r
		case r == '\t', unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")))
}

func oneLine(s string) string {
	r := []rune(strings.Join(strings.Fields(stripControl(s)), " "))
	if len(r) > maxSummary {
		r = append(r[:maxSummary-1], '…')
	}
	return string(r)
}
