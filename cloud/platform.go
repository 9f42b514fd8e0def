package cloud

import "time"

// BusinessState is what the platform did to a business. The zero state is that of
// one that nothing was done to.
type BusinessState struct {
	BusinessID  BusinessID
	SuspendedAt time.Time // zero: it is not suspended
	Reason      string    // of the suspension, for the business too
	By          AccountID // operator who suspended it
	Limits      BusinessLimits
}

// Suspended reports whether the business is suspended: nobody of it gets in, and no
// webhook of it is sent. Its cabinets go on.
func (s BusinessState) Suspended() bool { return !s.SuspendedAt.IsZero() }

// BusinessLimits are bounds that the platform sets. 0: no bound.
type BusinessLimits struct {
	Cabinets          int `json:"cabinets,omitempty"`
	People            int `json:"people,omitempty"`
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
}

// PassID names a pass.
type PassID int64

// PassIDs is their sequence.
const PassIDs IDKind = "platform_pass"

// PassToken is the kind of a token that lets an operator of the platform into a
// business for as long as its pass lives.
const PassToken TokenKind = "pass"

// PlatformPass lets an operator act inside a business for some hours, as its
// administrators do and see.
type PlatformPass struct {
	ID         PassID
	BusinessID BusinessID
	AccountID  AccountID // the operator
	Operator   string    // name and email, for the business
	Reason     string
	TokenHash  [32]byte
	CreatedAt  time.Time
	ExpiresAt  time.Time
	EndedAt    time.Time // before its time; zero: it was not
	EndedBy    AccountID
}

// Live reports whether the pass lets in at now.
func (p PlatformPass) Live(now time.Time) bool { return p.EndedAt.IsZero() && now.Before(p.ExpiresAt) }

// Status is active, ended or expired.
func (p PlatformPass) Status(now time.Time) string {
	switch {
	case !p.EndedAt.IsZero():
		return "ended"
	case p.Live(now):
		return "active"
	}
	return "expired"
}

// PlatformView reads the present of what the platform does.
type PlatformView interface {
	// Businesses lists a part of all businesses, by id.
	Businesses(Page) ([]Business, Listed, error)
	// BusinessState is the zero one with its id for a business that nothing was done
	// to. In a decision it stays as it is until that is written.
	BusinessState(BusinessID) (BusinessState, error)
	Pass(PassID) (PlatformPass, error)
	// Passes list a part of the passes into a business, by id.
	Passes(BusinessID, Page) ([]PlatformPass, Listed, error)
}

// PlatformChanges are the changes of what the platform does.
type PlatformChanges struct {
	BusinessStates []BusinessState
	Passes         []PlatformPass
}
