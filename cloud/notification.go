package cloud

import (
	"regexp"
	"strings"
	"time"
	"unicode"
)

// NotificationKind says what a notification is about.
type NotificationKind string

// Kinds of notifications.
const (
	NotifyInvitation    NotificationKind = "invitation"     // a link that joins a business
	NotifyReset         NotificationKind = "reset"          // a link to a new password that the person asked for
	NotifyAdminReset    NotificationKind = "admin_reset"    // a link to a new password that an administrator made
	NotifyAdminPassword NotificationKind = "admin_password" // an administrator set another password
	NotifyPassword      NotificationKind = "password"       // the password was changed
	NotifyPasskey       NotificationKind = "passkey"        // a passkey can sign in from now on
	NotifyFactorRemoved NotificationKind = "factor_removed" // an administrator removed the second factor

	NotifyParcelWaiting  NotificationKind = "parcel_waiting"  // a parcel lies in a locker, with its pickup code
	NotifyParcelCode     NotificationKind = "parcel_code"     // its pickup code, because it is a new one or was asked for again
	NotifyParcelReminder NotificationKind = "parcel_reminder" // the time to collect it is over soon
	NotifyParcelOverdue  NotificationKind = "parcel_overdue"  // it was not collected in time, and still can be
	NotifyDeliveryCode   NotificationKind = "delivery_code"   // the code of a delivery, for its courier

	NotifyDropoffCode     NotificationKind = "dropoff_code"     // the code with which a sender brings a parcel
	NotifyParcelCollected NotificationKind = "parcel_collected" // a courier has collected what a sender brought
)

// NotificationKinds lists them.
func NotificationKinds() []NotificationKind {
	return []NotificationKind{NotifyInvitation, NotifyReset, NotifyAdminReset, NotifyAdminPassword, NotifyPassword, NotifyFactorRemoved, NotifyPasskey, NotifyParcelWaiting, NotifyParcelCode, NotifyParcelReminder, NotifyParcelOverdue, NotifyDeliveryCode, NotifyDropoffCode, NotifyParcelCollected}
}

// NotificationChannel is a way by which notifications reach people.
type NotificationChannel string

// Channels of notifications.
const (
	ByEmail NotificationChannel = "email"
	BySMS   NotificationChannel = "sms"
)

// PhoneNumber is a telephone number of E.164 with its +, such as +14165550123, of what a
// person wrote; "" when it is none with a country code. A trunk prefix that is written
// beside the country code, as in +44 (0)20 7946 0958, is left out.
func PhoneNumber(s string) string {
	s = strings.Replace(strings.TrimPrefix(strings.TrimSpace(s), "tel:"), "(0)", "", 1)
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || strings.ContainsRune("-.()/\u2010\u2011\u2013", r) {
			return -1
		}
		return r
	}, s)
	if rest, ok := strings.CutPrefix(s, "00"); ok {
		s = "+" + rest
	}
	if phoneNumber.MatchString(s) {
		return s
	}
	return ""
}

var phoneNumber = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)

// Notification is a message to one person by one channel. It is written with what it is
// about and sent afterwards.
type Notification struct {
	ID         string // 26 characters at most, also in the mail's Message-ID
	BusinessID BusinessID
	AccountID  AccountID  // 0: the person has none yet
	ProviderID ProviderID // whose delivery it is about; 0 without one
	DeliveryID DeliveryID // that it is about; 0: none
	Channel    NotificationChannel
	Kind       NotificationKind
	At         time.Time
	From       time.Time // it is not sent before; zero: At
	Until      time.Time // it is of no use afterwards
	// Sandbox says that it is about a test: it is kept to be read there and never sent.
	Sandbox bool
	NotificationText
}

// NotificationText is what of a notification is sealed at rest, and erased when it was
// sent or has ended otherwise.
type NotificationText struct {
	To       string `json:"to"`       // email address, or telephone number of E.164 with its +
	Language string `json:"language"` // those that the person reads, the best first, separated by commas
	Name     string `json:"name"`     // of the person
	Business string `json:"business"` // name
	Link     string `json:"link,omitempty"`
	// Parcel is what a notification about a parcel says; nil in others.
	Parcel *ParcelNotice `json:"parcel,omitempty"`
}

// ParcelNotice is what the recipient of a parcel in a locker needs.
type ParcelNotice struct {
	Numbers []string  `json:"numbers"` // tracking numbers
	Code    string    `json:"code"`
	Locker  string    `json:"locker"` // its name
	Address string    `json:"address"`
	Doors   []string  `json:"doors"` // labels of compartments
	Until   time.Time `json:"until"` // in the time zone of the locker
}

// NotificationState is what became of a notification.
type NotificationState string

// States of a notification. All but the first are its end.
const (
	NotificationWaiting NotificationState = "waiting"
	NotificationSent    NotificationState = "sent"    // the mail server or gateway took it
	NotificationFailed  NotificationState = "failed"  // it refused it, or was asked too often
	NotificationExpired NotificationState = "expired" // it was of no use any more: too late, or no longer true
	NotificationSandbox NotificationState = "sandbox" // it is about a test and stays in the inbox of the sandbox
)

// NotificationRow is a notification with what became of it.
type NotificationRow struct {
	Notification
	State      NotificationState
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

// NotificationFilter chooses notifications of a business that are about deliveries. Zero
// fields choose all.
type NotificationFilter struct {
	BusinessID BusinessID // required
	ProviderID ProviderID
	DeliveryID DeliveryID
	Status     NotificationState
	Sandbox    bool // those of the sandbox alone; else all others
	Page       Page
}

// NotificationView reads notifications and the present of requests for mails.
type NotificationView interface {
	// Notifications lists a part of those about deliveries, the text of those that have
	// ended is gone.
	Notifications(NotificationFilter) ([]NotificationRow, Listed, error)
	// SandboxNotification finds one in the sandbox of a business. Error: ErrNotFound.
	SandboxNotification(BusinessID, string) (NotificationRow, error)

	// ResetRequest finds a request; in a decision on PostgreSQL it waits for others
	// that decide about it.
	ResetRequest(digest [32]byte) (ResetRequest, error)
}

// NotificationChanges are the changes of notifications.
type NotificationChanges struct {
	Notifications []Notification // insert
	// ResetRequests are kept unless one of the same address was made within
	// ResetPause before.
	ResetRequests     []ResetRequest
	DoneResetRequests []ResetRequest
}
