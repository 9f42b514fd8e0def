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

// Suspended reports whether the business is suspended: no account of it gets in, and no
// webhook of it is sent. Its cabinets go on.
func (s BusinessState) Suspended() bool { return !s.SuspendedAt.IsZero() }

// BusinessLimits are bounds that the platform sets. 0: no bound.
type BusinessLimits struct {
	Cabinets          int `json:"cabinets,omitempty"`
	Accounts          int `json:"accounts,omitempty"` // that are switched on
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
	ID         PassID `row:",sort,unique"`
	BusinessID BusinessID
	AccountID  AccountID // the operator
	Operator   string    // name and email, for the business
	Reason     string
	TokenHash  [32]byte `row:",unique,secret"`
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

// RowKind implements Row.
func (PlatformPass) RowKind() IDKind { return PassIDs }

// RowID implements Row.
func (p PlatformPass) RowID() int64 { return int64(p.ID) }

// PlatformView reads the present of what the platform does.
type PlatformView interface {
	// Businesses lists a part of all businesses, by id.
	Businesses(Page) ([]Business, Listed, error)
	// BusinessState is the zero one with its id for a business that nothing was done
	// to. In a decision it stays as it is until that is written.
	BusinessState(BusinessID) (BusinessState, error)
	// Suspension is BusinessState for decisions of the business's own people: many of
	// them hold it at once, and a suspension waits for them.
	Suspension(BusinessID) (BusinessState, error)
	// BusinessRevision says how far what a business has was written.
	BusinessRevision(BusinessID) (BusinessRevision, error)
	// BusinessHealths list a part of how businesses were when they were counted.
	BusinessHealths(Page) ([]BusinessHealth, Listed, error)
	BusinessJob(BusinessJobID) (BusinessJob, error)
	// BusinessJobs list the newest jobs of a kind about a business, at most limit.
	BusinessJobs(b BusinessID, kind string, limit int) ([]BusinessJob, error)
}

// PlatformChanges are the changes of what the platform does.
type PlatformChanges struct {
	BusinessStates []BusinessState
	BusinessJobs   []BusinessJob // insert, or finish
}

// BusinessHealth is how a business was at a moment.
type BusinessHealth struct {
	BusinessID                                    BusinessID
	Cabinets, Online, Endpoints, Failing, Backlog int
	CountedAt                                     time.Time
}

// BusinessRevision is another one after any change that a person, a partner or an
// operator made in a business, since each leaves an audit line, and after a new delivery
// or exception of its cabinets. 0 is none.
type BusinessRevision struct {
	Audit     int64 // newest line of its audit trail
	Delivery  int64 // newest delivery
	Exception int64 // newest exception of its cabinets
}

// BusinessJobID names a job about a business.
type BusinessJobID int64

// BusinessJobIDs is their sequence.
const BusinessJobIDs IDKind = "business_job"

// Kinds of jobs about a business.
const (
	ExportJob  = "export"
	RemovalJob = "removal"
)

// RemovalStopped is BusinessJob.Bytes of a removal that found a parcel in a cabinet and
// removed nothing.
const RemovalStopped = -1

// BusinessJob is work on all data of a business, in small steps. The node that does a step
// writes where it stands in the same transaction, so that one that dies is gone on
// with, and of two that do the same step one is refused.
type BusinessJob struct {
	ID          BusinessJobID
	BusinessID  BusinessID
	Kind        string
	RequestedBy AccountID
	Reason      string
	Step        int    // table that it is at
	Position    string // key in that table that it is behind; "" before the first
	Part        int    // of an export's archive that comes next
	Rows        int64  // that were exported or removed
	// Bytes are those of an export's archive. Of a removal 1 says that its round takes
	// parents too, and RemovalStopped that it was stopped.
	Bytes int64
	// Found counts rows that this round of a removal found; of an export it is until
	// when a node has it, in milliseconds.
	Found      int64
	CreatedAt  time.Time
	FinishedAt time.Time // zero: it goes on
}
