package cloud

import "time"

// InvitationID names an invitation.
type InvitationID int64

// InvitationIDs is their sequence.
const InvitationIDs IDKind = "invitation"

// Invitation asks a person to join a business. Only the digest of its link is kept.
type Invitation struct {
	ID          InvitationID `row:",sort"`
	BusinessID  BusinessID
	Hash        [32]byte `row:",unique,secret"` // SHA-256
	Email       string   // lower case; who accepts it has to know it
	Name        string
	Type        AccountType
	Permissions []string // of an employee
	InvitedBy   AccountID
	Wrong       int `row:",secret"` // other emails that were given with the link
	CreatedAt   time.Time
	ExpiresAt   time.Time
	AcceptedAt  time.Time
	WithdrawnAt time.Time
	AccountID   AccountID // that came of it; 0: none yet
	Mailed      bool      // its link went to the address, and into no answer
}

// Status is pending, accepted, withdrawn or expired at now.
func (i Invitation) Status(now time.Time) string {
	switch {
	case !i.AcceptedAt.IsZero():
		return "accepted"
	case !i.WithdrawnAt.IsZero():
		return "withdrawn"
	case !now.Before(i.ExpiresAt):
		return "expired"
	}
	return "pending"
}

// RowKind implements Row.
func (Invitation) RowKind() IDKind { return InvitationIDs }

// RowID implements Row.
func (i Invitation) RowID() int64 { return int64(i.ID) }
