package approval

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Body is an approval as answers show it. Secrets in it are ***.
type Body struct {
	ApprovalID  cloud.ApprovalID `json:"approval_id"`
	Tool        string           `json:"tool"`
	Server      string           `json:"server" doc:"operations or developer"`
	Arguments   json.RawMessage  `json:"arguments" doc:"An object, secrets masked; null for those who may not see it"`
	Summary     string           `json:"summary"`
	Preview     json.RawMessage  `json:"preview" doc:"What a dry run said when it was asked for; null: nothing"`
	Digest      string           `json:"digest" doc:"Of what the preview says is changed: ids, versions, before and after. Who approves sends the one that was shown"`
	Reason      *string          `json:"reason"`
	Risk        string           `json:"risk" doc:"medium or high"`
	Scopes      []string         `json:"required_scopes" doc:"That who approves needs"`
	Status      string           `json:"status" doc:"pending, executed, failed, rejected or expired"`
	RequestedBy Requester        `json:"requested_by"`
	RequestedAt *string          `json:"requested_at" format:"date-time"`
	ExpiresAt   *string          `json:"expires_at" format:"date-time"`
	ReviewedBy  *Person          `json:"reviewed_by" doc:"While the status is pending: who approved a call that may be running"`
	ReviewedAt  *string          `json:"reviewed_at" format:"date-time"`
	ReviewNote  *string          `json:"review_note"`
	Result      json.RawMessage  `json:"result" doc:"Of the tool, once executed"`
	Error       *Failure         `json:"error"`
}

// Requester is who asked for a write.
type Requester struct {
	UserID    cloud.AccountID `json:"user_id"`
	Name      string          `json:"name"`
	TokenName *string         `json:"token_name"`
}

// Person is who decided.
type Person struct {
	UserID cloud.AccountID `json:"user_id"`
	Name   string          `json:"name"`
}

// Failure is why an approved call did nothing.
type Failure struct {
	Code    string              `json:"code"`
	Message string              `json:"message"`
	Details map[string]any      `json:"details"`
	Fields  map[string][]string `json:"fields,omitempty" doc:"Messages by member, in English"`
}

// Output shows an approval.
type Output struct {
	Result   bool   `json:"result"`
	Outcome  string `json:"outcome,omitempty" enum:"executed,failed" doc:"Of approving: what came of the call"`
	Approval Body   `json:"approval"`
}

// failure is an error as it is stored; its message is made for each reader.
type failure struct {
	Code    string              `json:"code"`
	Args    []any               `json:"args,omitempty"`
	Details map[string]any      `json:"details,omitempty"`
	Fields  map[string][]string `json:"fields,omitempty"`
}

func (s *Service) describe(v cloud.View, c cloud.Caller, a cloud.Approval, now time.Time) (Output, error) {
	b, err := v.Business(a.BusinessID)
	if err != nil {
		return Output{}, err
	}
	return Output{Result: true, Approval: s.show(c, a, b.Location(), now)}, nil
}

// sees reports whether a caller is shown what an approval is about: who may decide
// about it, and its requester, who asked with as little as approvals:read, where
// the caller's own scopes read what the tool changes.
func (s *Service) sees(c cloud.Caller, a cloud.Approval) bool {
	if s.may(c, WriteScope) == nil && s.holds(c, a.Scopes...) == nil {
		return true
	}
	return c.Account.ID == a.RequestedBy && s.cfg.Holds(c, cloud.ReadScopes(a.Scopes))
}

func (s *Service) show(c cloud.Caller, a cloud.Approval, zone *time.Location, now time.Time) Body {
	if !s.sees(c, a) {
		a.Summary, a.Reason, a.Arguments, a.Preview, a.Marks, a.Result, a.Note = a.Tool, "", nil, nil, nil, nil, ""
		a.Error = withoutDetails(a.Error)
	}
	if c.PricesHidden(cloud.LocalDelivery) {
		a.Preview, a.Result = masked(a.Preview, cloud.HidePrices), masked(a.Result, cloud.HidePrices)
	}
	b := Body{ApprovalID: a.ID, Tool: a.Tool, Server: a.Server, Arguments: maskArguments(a), Summary: a.Summary, Preview: Mask(a.Preview), Digest: s.digest(a.Marks), Reason: cloud.OrNull(a.Reason),
		Risk: a.Risk, Scopes: append([]string{}, a.Scopes...), Status: a.StatusAt(now), RequestedBy: Requester{a.RequestedBy, a.RequesterName, cloud.OrNull(a.TokenName)},
		RequestedAt: cloud.Stamp(a.RequestedAt, zone), ExpiresAt: cloud.Stamp(a.ExpiresAt, zone), ReviewedAt: cloud.Stamp(a.ReviewedAt, zone),
		ReviewNote: cloud.OrNull(a.Note), Result: Mask(a.Result), Error: s.failed(c.Language, a.Error)}
	if a.ReviewedBy != 0 {
		b.ReviewedBy = &Person{a.ReviewedBy, a.ReviewerName}
	}
	return b
}

// failed is a stored error in the reader's language.
func (s *Service) failed(lang string, raw json.RawMessage) *Failure {
	var f failure
	d := json.NewDecoder(bytes.NewReader(Mask(raw)))
	d.UseNumber()
	if d.Decode(&f) != nil || f.Code == "" { // there is none
		return nil
	}
	return &Failure{Code: f.Code, Message: s.cfg.Message(lang, f.Code, f.Args...), Details: f.Details, Fields: f.Fields}
}

// withoutDetails is a stored error with its code alone.
func withoutDetails(raw json.RawMessage) json.RawMessage {
	var f failure
	if json.Unmarshal(raw, &f) != nil {
		return nil
	}
	out, _ := json.Marshal(failure{Code: f.Code}) // a text
	return out
}

// Mask gives JSON with secrets replaced by their stand-in, null for none.
func Mask(raw json.RawMessage) json.RawMessage { return masked(raw, cloud.MaskSecrets) }

// maskArguments is Mask of the arguments of a tool.
func maskArguments(a cloud.Approval) json.RawMessage {
	return masked(a.Arguments, func(v any) any { return cloud.MaskToolArguments(a.Tool, v) })
}

func masked(raw json.RawMessage, mask func(any) any) json.RawMessage {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(mask(v)) != nil { // it was read a moment ago
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}
