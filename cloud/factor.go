package cloud

import "time"

// SecondFactor is what an account proves itself with besides its password.
type SecondFactor struct {
	AccountID    AccountID
	Secret       []byte    // of time-based codes (RFC 6238), 20 bytes, sealed at rest; nil: there are none
	Pending      []byte    // a secret that is set up once a code of it was given, sealed at rest
	PendingUntil time.Time // when Pending is of no use any more
	Step         int64     // counter of the last code that was taken: it and those before are not taken again
	Recovery     []string  // SHA-256 in hexadecimal of the recovery codes that are left
	Wrong        int       // wrong codes in a row
	LockedUntil  time.Time // no time-based code is looked at before
	SetUpAt      time.Time // zero: there is no second factor
	ResetAt      time.Time // when an administrator took it away; zero: nothing was taken away since it was set up
}

// On reports whether the account has a second factor.
func (f SecondFactor) On() bool { return len(f.Secret) > 0 }

// TicketKind says what a ticket is good for.
type TicketKind string

// Kinds of tickets.
const (
	LoginTicket TicketKind = "login" // the second step of a login whose password was good
	ResetTicket TicketKind = "reset" // a new password
	// PasskeyTicket is nothing to use: it says that a challenge of a passkey was.
	PasskeyTicket TicketKind = "passkey"
)

// Ticket is a secret that is good once, for a while. Only its digest is kept.
type Ticket struct {
	Hash      [32]byte // SHA-256
	Kind      TicketKind
	AccountID AccountID
	// PasswordMark is the SHA-256 of the account's password hash when the ticket was
	// made: a ticket ends with the password.
	PasswordMark [32]byte
	Name         string        // of the token that comes of it
	Life         time.Duration // of that token
	ExpiresAt    time.Time
	UsedAt       time.Time
	Mailed       bool      // it went to the account's address, and into no answer
	MadeBy       AccountID // administrator who has it from an answer; 0: none
}

// LoginFailures are the last failed tries to log in with one email.
type LoginFailures struct {
	Key         [32]byte    // digest of the email, whether an account has it or not
	Times       []time.Time // since the last lock, oldest first
	LockedUntil time.Time   // no password is looked at before
	OverAt      time.Time   // when nothing of this counts any more; zero: now
}

// FactorView reads the present of second factors and of tickets.
type FactorView interface {
	// SecondFactor is an account's; the zero one with its id when it has none. In a
	// decision on PostgreSQL it waits for others that decide about it.
	SecondFactor(AccountID) (SecondFactor, error)
	// Ticket finds a ticket by its digest, expired and used ones too.
	Ticket(hash [32]byte) (Ticket, error)
	// LoginFailures are those of a key, with none when it has none. In a decision on
	// PostgreSQL it waits for others that decide about them.
	LoginFailures(key [32]byte) (LoginFailures, error)
}

// FactorChanges are the changes of second factors and of tickets.
type FactorChanges struct {
	SecondFactors []SecondFactor
	Tickets       []Ticket
	DropTickets   time.Time // those that expired before it; zero: none
	// EndTickets ends all tickets of accounts that were not used.
	EndTickets []AccountID
	// LoginFailures replace those of their keys; DropFailures removes those that are
	// over by then, unless it is zero.
	LoginFailures []LoginFailures
	DropFailures  time.Time
	// LimitLogins lets the logins of a business's people who have no second factor
	// into nothing but what sets one up, and ends their agents; strong ones go on.
	LimitLogins []BusinessID
}
