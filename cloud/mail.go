package cloud

import "time"

// MailKind says what a mail is about.
type MailKind string

// Kinds of mails.
const (
	InvitationMail    MailKind = "invitation"     // a link that joins a business
	ResetMail         MailKind = "reset"          // a link to a new password that the person asked for
	AdminResetMail    MailKind = "admin_reset"    // a link to a new password that an administrator made
	AdminPasswordMail MailKind = "admin_password" // an administrator set another password
	PasswordMail      MailKind = "password"       // the password was changed
	PasskeyMail       MailKind = "passkey"        // a passkey can sign in from now on
	FactorRemovedMail MailKind = "factor_removed" // an administrator removed the second factor

	ParcelWaitingMail  MailKind = "parcel_waiting"  // a parcel lies in a locker, with its pickup code
	ParcelCodeMail     MailKind = "parcel_code"     // its pickup code, because it is a new one or was asked for again
	ParcelReminderMail MailKind = "parcel_reminder" // the time to collect it is over soon
	ParcelOverdueMail  MailKind = "parcel_overdue"  // it was not collected in time, and still can be
)

// MailKinds lists them.
func MailKinds() []MailKind {
	return []MailKind{InvitationMail, ResetMail, AdminResetMail, AdminPasswordMail, PasswordMail, FactorRemovedMail, PasskeyMail, ParcelWaitingMail, ParcelCodeMail, ParcelReminderMail, ParcelOverdueMail}
}

// Mail is a message to one person. It is written with what it is about and sent by
// the deployment's mail server afterwards.
type Mail struct {
	ID         string // 26 characters at most, also in the mail's Message-ID
	BusinessID BusinessID
	AccountID  AccountID // 0: the person has none yet
	Kind       MailKind
	At         time.Time
	Until      time.Time // it is of no use afterwards
	MailText
}

// MailText is what of a mail is sealed at rest, and erased when the mail has ended.
type MailText struct {
	To       string `json:"to"` // address
	Language string `json:"language"`
	Name     string `json:"name"`     // of the person
	Business string `json:"business"` // name
	Link     string `json:"link,omitempty"`
	// Parcel is what a mail about a parcel says; nil in others.
	Parcel *MailParcel `json:"parcel,omitempty"`
}

// MailParcel is what the recipient of a parcel in a locker needs.
type MailParcel struct {
	Numbers []string  `json:"numbers"` // tracking numbers
	Code    string    `json:"code"`
	Locker  string    `json:"locker"` // its name
	Address string    `json:"address"`
	Doors   []string  `json:"doors"` // labels of compartments
	Until   time.Time `json:"until"` // in the time zone of the locker
}

// MailState is what became of a mail.
type MailState string

// States of a mail. All but the first are its end.
const (
	MailWaiting MailState = "waiting"
	MailSent    MailState = "sent"    // the mail server took it
	MailFailed  MailState = "failed"  // the mail server refused it, or was asked too often
	MailExpired MailState = "expired" // it was of no use any more
)

// MailRow is a mail with what became of it.
type MailRow struct {
	Mail
	State      MailState
	Attempts   int // that were begun, the present one included
	NextAt     time.Time
	EndedAt    time.Time
	Reason     string // why it was not sent
	Generation int64  // of the lease that it is tried under
}

// ResetRequest is the wish of an anonymous caller for a link to a new password. It
// is kept whether or not an account has the address, and looked at later.
type ResetRequest struct {
	Digest   [32]byte // SHA-256 of Email: one request an address waits
	Email    string   // lower case
	Language string   // of the page that it was made on
	At       time.Time
	DoneAt   time.Time // zero: it was not looked at yet
}

// ResetPause is how long a further request for one address is not kept.
const ResetPause = 10 * time.Minute

// MailView reads the present of requests for mails.
type MailView interface {
	// ResetRequest finds a request; in a decision on PostgreSQL it waits for others
	// that decide about it.
	ResetRequest(digest [32]byte) (ResetRequest, error)
}

// MailChanges are the changes of mails.
type MailChanges struct {
	Mails []Mail // insert
	// ResetRequests are kept unless one of the same address was made within
	// ResetPause before.
	ResetRequests     []ResetRequest
	DoneResetRequests []ResetRequest
}
