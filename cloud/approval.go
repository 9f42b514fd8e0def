package cloud

import (
	"encoding/json"
	"time"
)

// ApprovalID names an approval: apr_ and 26 characters.
type ApprovalID string

// Approval is a write of an agent that waits for a person's word, or had it.
type Approval struct {
	ID         ApprovalID
	BusinessID BusinessID
	Server     string // operations, developer
	Tool       string
	Arguments  json.RawMessage // as they were given, without confirm; sealed at rest, masked where they are shown
	Summary    string          // one line for people
	Preview    json.RawMessage // what a dry run said when it was proposed
	Reason     string
	Risk       string   // medium, high
	Scopes     []string // that the reviewer needs
	Status     string   // as below

	RequestedBy   AccountID
	RequesterName string
	TokenName     string
	RequestedAt   time.Time
	ExpiresAt     time.Time

	// ReviewedBy is set as soon as somebody decided; an approved call then runs
	// and the status follows it.
	ReviewedBy   AccountID
	ReviewerName string
	ReviewedAt   time.Time
	Note         string
	Result       json.RawMessage // of the tool, once executed
	Error        json.RawMessage // code, message and details of a failed one
}

// States of an approval.
const (
	ApprovalPending  = "pending"
	ApprovalExecuted = "executed"
	ApprovalFailed   = "failed" // approved, but the tool answered with an error
	ApprovalRejected = "rejected"
	ApprovalExpired  = "expired"
)

// ApprovalFilter chooses approvals of a business. Zero fields choose all.
type ApprovalFilter struct {
	BusinessID  BusinessID
	Status      string
	Tool        string
	RequestedBy AccountID
	Page        Page // newest first
}
