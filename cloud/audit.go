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
