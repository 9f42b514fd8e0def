package cloud

import "time"

// AuditChanges are the changes of the audit log.
type AuditChanges struct {
	Audits []Audit // insert
}

// Audit is one line of who did what.
type Audit struct {
	BusinessID BusinessID
	At         time.Time
	Actor      string // account:12, device:FRONT-01, system
	Action     string
	Target     string
	Detail     string // JSON without secrets
}

// AuditLine is a line with its place in the trail.
type AuditLine struct {
	N int64
	Audit
}

// AuditFilter chooses lines of a business. Zero fields choose all; of Actor and
// Action one is given at most, unless there is a Target.
type AuditFilter struct {
	BusinessID            BusinessID
	Actor, Action, Target string
	From, To              time.Time // To is not included
	Page                  Page      // sorted by at
}

// AuditView reads the audit log.
type AuditView interface {
	// Audits lists a part of a business's lines.
	Audits(AuditFilter) ([]AuditLine, Listed, error)
}
